//! `PRAGMA integrity_check` and `quick_check`: the trees as the storage layer sees them, then the tables.
//!
//! A table that is sound is found so by one walk over its rows ([`rows`]), queries for its constraints, and sums for its indexes
//! ([`sums`]). Only where one of them finds anything, or an index is none of those that sums are for, each row is looked at in
//! detail ([`detail`]), which says what is wrong.
//!
//! What it finds is said in SQLite's words. A row that cannot be read ends the check with
//! `database disk image is malformed` as its last line; it is no error of the statement.

mod detail;
mod fields;
mod rows;
mod sums;

use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::{Code, Error, Result};
use iolite_btree::Btree;
use iolite_catalog::{Index, Table};
use iolite_ext::Host;
use iolite_plan::bind::{Connector, index_key};
use iolite_sql::print::{expr, quote_name};
use iolite_value::{KeyInfo, Value};
use rows::Walk;
use std::rc::Rc;
use sums::Sum;

const MAX_ERRORS: usize = 100;

/// How much may be found, and the one table that is to be checked.
fn limits(value: Option<&str>, number: bool) -> (usize, Option<&str>) {
    let Some(v) = value else { return (MAX_ERRORS, None) };
    // What is quoted is a table's name, though it looks like a number.
    let digits =
        || v.trim_start_matches('-').split(|c: char| !c.is_ascii_digit()).next()?.parse::<i32>().ok();
    match digits().filter(|_| number) {
        Some(n) => (if n > 0 { n as usize } else { MAX_ERRORS }, None),
        None => (MAX_ERRORS, Some(v)),
    }
}

/// A complaint if the one table that is to be checked is not there.
pub(crate) fn test(conn: &Connection, schema: Option<&str>, value: Option<&str>, number: bool) -> Result<()> {
    let (_, Some(only)) = limits(value, number) else { return Ok(()) };
    if conn.0.catalog.borrow().table(schema, only).is_some() {
        return Ok(());
    }
    let of = schema.map_or(String::new(), |s| format!("{s}."));
    Err(Error::sql(format!("no such table: {of}{only}")))
}

/// Runs the check; answers `ok` or what was found.
pub(crate) fn run(
    conn: &Connection,
    schema: Option<&str>,
    value: Option<&str>,
    number: bool,
    quick: bool,
) -> Result<Vec<Vec<Value>>> {
    let (limit, only) = limits(value, number);
    let only = only.map(str::to_string);
    let mut c = Check { conn, quick, left: limit, lines: Vec::new(), refuted: Vec::new(), steps: 0 };
    let schemas = conn.0.catalog.borrow().schemas.clone();
    let mut named = false;
    for (db, s) in schemas.iter().enumerate() {
        if schema.is_some_and(|n| !n.eq_ignore_ascii_case(&s.name)) {
            continue;
        }
        let Some(b) = conn.0.btree_if_open(db) else { continue };
        let mut tables: Vec<Rc<Table>> = s.tables().filter(|t| t.root.get() > 0).cloned().collect();
        let mut modules: Vec<Rc<Table>> = s.tables().filter(|t| t.is_virtual()).cloned().collect();
        if let Some(o) = &only {
            tables.retain(|t| t.name.eq_ignore_ascii_case(o));
            modules.retain(|t| t.name.eq_ignore_ascii_case(o));
            named |= s.table(o).is_some();
            let others = tables.is_empty() && modules.is_empty();
            if others && s.table(o).is_none_or(|t| t.root.get() != 1) {
                continue;
            }
            named = true;
        }
        match b.reading(|b| c.database(db, &s.name, b, &tables, only.is_some())) {
            Err(e) if e.code().primary() == Code::Corrupt => {
                c.lines.push(Error::from(Code::Corrupt).message().to_string());
                break;
            }
            other => other?,
        }
        for t in modules {
            // What cannot be connected says nothing of the file.
            let Ok(table) = conn.connect(db, &t) else { continue };
            if let Some(line) = table.vtab.integrity(quick)? {
                c.say(line);
            }
        }
    }
    if let Some(o) = only.filter(|_| !named) {
        let of = schema.map_or(String::new(), |s| format!("{s}."));
        return Err(Error::sql(format!("no such table: {of}{o}")));
    }
    if c.lines.is_empty() {
        // Each row was found: by luck, among entries that are not in order or not all of rows.
        for index in std::mem::take(&mut c.refuted) {
            c.say(format!("entries of index {index} are not those of its table"));
        }
    }
    if c.lines.is_empty() {
        c.lines.push("ok".into());
    }
    c.lines.into_iter().map(|l| Ok(vec![Value::text(l)?])).collect()
}

struct Check<'a> {
    conn: &'a Connection,
    quick: bool,
    /// How many more findings are wanted.
    left: usize,
    lines: Vec<String>,
    /// Indexes of which sums say that they are wrong.
    refuted: Vec<Rc<str>>,
    /// Entries that were looked at since an interrupt was last asked for.
    steps: usize,
}

/// After how many entries an interrupt and the progress handler are asked for.
const ASK_AFTER: usize = 64;

impl Check<'_> {
    fn say(&mut self, line: String) {
        if self.left > 0 {
            self.left -= 1;
            self.lines.push(line);
        }
    }

    /// Before each entry that is looked at: whether the statement may go on.
    #[inline]
    fn another(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps >= ASK_AFTER {
            self.steps = 0;
            self.conn.0.check_after(ASK_AFTER)?;
        }
        Ok(())
    }

    /// `SQLITE_CORRUPT`: nothing more can be read.
    fn database(
        &mut self,
        db: usize,
        name: &str,
        b: &Btree,
        tables: &[Rc<Table>],
        partial: bool,
    ) -> Result<()> {
        let mut roots: Vec<u32> = if partial { vec![0] } else { vec![1] };
        for t in tables {
            roots.push(t.root.get());
            roots.extend(own_trees(t).map(|i| i.root.get()));
        }
        let (found, entries) = b.integrity_check(&roots, self.left)?;
        if !found.is_empty() {
            self.left -= found.len();
            self.lines.push(format!("*** in database {name} ***\n{}", found.join("\n")));
        }
        // In the order of the roots, of which the first is nobody's here.
        let mut entries = entries.into_iter().skip(1);
        for t in tables {
            let rows = entries.next();
            for (i, found) in own_trees(t).zip(&mut entries) {
                // Each index has an entry for each row; of a partial one nothing is known.
                if i.filter.is_none() && Some(found) != rows {
                    self.say(format!("wrong # of entries in index {}", i.name));
                }
            }
        }
        for t in tables {
            if self.left == 0 {
                break;
            }
            let mut doubted = Vec::new();
            let clear = self.doubts(name, b, t, &mut doubted)?;
            if !clear || !doubted.is_empty() {
                self.detail(db, b, t, &doubted)?;
            }
        }
        Ok(())
    }

    /// Whether nothing is wrong with a table's rows by themselves; and the indexes that have to be looked at in detail.
    fn doubts(
        &mut self,
        schema: &str,
        b: &Btree,
        t: &Rc<Table>,
        doubted: &mut Vec<Rc<Index>>,
    ) -> Result<bool> {
        let indexes: Vec<Rc<Index>> = match self.quick {
            true => Vec::new(),
            false => own_trees(t).collect(),
        };
        let mut sums: Vec<Option<Sum>> = indexes.iter().map(|i| Sum::new(t, i)).collect();
        let mut hash_key = [0; 8];
        self.conn.0.random(&mut hash_key);
        let hash_key = u64::from_le_bytes(hash_key);
        let clear = match self.is_clear(b, t, &mut sums, hash_key) {
            Err(e) if e.code().primary() == Code::Corrupt => false,
            clear => clear? && self.meets_constraints(schema, t)?,
        };
        for (i, s) in indexes.into_iter().zip(sums) {
            match s {
                Some(s) if clear => match self.agrees(b, t, &s, hash_key)? {
                    Some(true) => continue,
                    Some(false) => self.refuted.push(i.name.clone()),
                    None => {}
                },
                _ => {}
            }
            doubted.push(i);
        }
        Ok(clear)
    }

    /// Whether all records are sound, in order, and hold what their columns allow. Adds them to the sums.
    fn is_clear(&mut self, b: &Btree, t: &Table, sums: &mut [Option<Sum>], hash_key: u64) -> Result<bool> {
        let mut walk = Walk::new(self, b, t)?;
        while walk.next()? {
            self.another()?;
            if walk.is_out_of_order()? {
                return Ok(false);
            }
            for r in &walk.rules {
                if let Some(at) = r.stored
                    && walk.refused(r, at)?.is_some()
                {
                    return Ok(false);
                }
            }
            for s in sums.iter_mut().flatten() {
                s.row(hash_key, &walk.rec, &walk.fields, walk.cursor.rowid());
            }
        }
        Ok(true)
    }

    /// Whether no row fails a CHECK, and NOT NULL holds for columns that are computed; the types of these are for the detail.
    fn meets_constraints(&self, schema: &str, t: &Table) -> Result<bool> {
        let computed = t.columns.iter().any(|c| !c.is_stored());
        let checked = !t.checks.is_empty() && !self.conn.0.settings.ignore_checks();
        if computed {
            return Ok(false);
        }
        if !checked {
            return Ok(true);
        }
        let all: Vec<String> = t.checks.iter().map(|k| format!("NOT ({})", expr(&k.expr))).collect();
        let sql = format!(
            "SELECT 1 FROM {}.{} NOT INDEXED WHERE {} LIMIT 1",
            quote_name(schema),
            quote_name(&t.name),
            all.join(" OR ")
        );
        Ok(self.conn.nested_rows(&sql, &[])?.is_empty())
    }

    fn key(&self, t: &Table, i: &Index) -> Result<Rc<KeyInfo>> {
        with_env(self.conn, |env| index_key(env, t, i))
    }
}

/// The indexes of a table that are not the table itself.
fn own_trees(t: &Table) -> impl Iterator<Item = Rc<Index>> {
    let table = t.primary_index();
    t.each_index().filter(move |i| table.as_ref().is_none_or(|t| !Rc::ptr_eq(t, i)))
}

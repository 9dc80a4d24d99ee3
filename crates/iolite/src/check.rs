//! `PRAGMA integrity_check` and `quick_check`: the trees as the storage layer sees them, then rows: their records, order and
//! types from the trees themselves, constraints by queries, indexes by a program of code generation.
//!
//! What it finds is said in SQLite's words. A row that cannot be read ends the check with
//! `database disk image is malformed` as its last line; it is no error of the statement.

use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::{Code, Error, Result, varint};
use iolite_btree::{Btree, TreeKind};
use iolite_catalog::{Index, Table};
use iolite_ext::Host;
use iolite_plan::bind::{Connector, index_key};
use iolite_sql::print::{expr, quote_name};
use iolite_value::{Affinity, KeyInfo, Value, compare, record};
use std::cmp::Ordering;
use std::rc::Rc;

const MAX_ERRORS: usize = 100;

/// Runs the check; answers `ok` or what was found.
pub(crate) fn run(
    conn: &Connection,
    schema: Option<&str>,
    value: Option<&str>,
    number: bool,
    quick: bool,
) -> Result<Vec<Vec<Value>>> {
    let mut limit = MAX_ERRORS;
    let mut only: Option<String> = None;
    if let Some(v) = value {
        // What is quoted is a table's name, though it looks like a number.
        let digits =
            || v.trim_start_matches('-').split(|c: char| !c.is_ascii_digit()).next()?.parse::<i32>().ok();
        match digits().filter(|_| number) {
            Some(n) => limit = if n > 0 { n as usize } else { MAX_ERRORS },
            None => only = Some(v.to_string()),
        }
    }
    let mut c = Check { conn, quick, left: limit, lines: Vec::new() };
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
        tables.sort_by_key(|t| t.root.get());
        match b.reading(|b| c.database(db, &s.name, b, &tables, only.is_some())) {
            Err(e) if e.code().primary() == Code::Corrupt => {
                c.lines.push(Error::from(Code::Corrupt).message().to_string());
                break;
            }
            other => other?,
        }
        modules.sort_by(|a, b| a.name.cmp(&b.name));
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
}

impl Check<'_> {
    fn say(&mut self, line: String) {
        if self.left > 0 {
            self.left -= 1;
            self.lines.push(line);
        }
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
            for i in t.indexes.borrow().iter().filter(|i| i.root.get() != t.root.get()) {
                roots.push(i.root.get());
            }
        }
        let found = b.integrity_check(&roots, self.left)?;
        if !found.is_empty() {
            self.left -= found.len();
            self.lines.push(format!("*** in database {name} ***\n{}", found.join("\n")));
        }
        for t in tables {
            self.counts(b, t)?;
        }
        for t in tables {
            if self.left == 0 {
                break;
            }
            self.records(b, t)?;
            self.constraints(name, t)?;
            if !self.quick {
                self.indexes(db, b, t)?;
            }
        }
        Ok(())
    }

    /// Each index has an entry for each row; of a partial one nothing is known.
    fn counts(&mut self, b: &Btree, t: &Rc<Table>) -> Result<()> {
        let kind = if t.has_rowid() { TreeKind::Table } else { TreeKind::Index };
        let count = |root: u32, kind: TreeKind| match b.cursor(root, kind, false)?.count() {
            // The trees themselves were complained about.
            Err(e) if e.code().primary() == Code::Corrupt => Ok(None),
            other => other.map(Some),
        };
        let Some(rows) = count(t.root.get(), kind)? else { return Ok(()) };
        for i in t.indexes.borrow().iter().filter(|i| i.filter.is_none() && i.root.get() != t.root.get()) {
            if count(i.root.get(), TreeKind::Index)?.is_some_and(|n| n != rows) {
                self.say(format!("wrong # of entries in index {}", i.name));
            }
        }
        Ok(())
    }

    /// The records of a table: that they can be read, their order, the types of their values.
    fn records(&mut self, b: &Btree, t: &Rc<Table>) -> Result<()> {
        let key = t.primary_index().map(|i| self.key(t, &i).map(|k| (k, i.key_len))).transpose()?;
        let kind = if key.is_some() { TreeKind::Index } else { TreeKind::Table };
        // As many fields as are looked at: those behind them are nobody's.
        let alias_is_last = t.rowid_alias.is_some() && t.storage.last().copied() == t.rowid_alias;
        let looked_at = t.storage.len() - alias_is_last as usize;
        let enc = self.conn.0.encoding();
        let mut c = b.cursor(t.root.get(), kind, false)?;
        let (mut last, mut rec) = (Vec::new(), Vec::new());
        let mut more = c.first()?;
        while more && self.left > 0 {
            self.conn.0.check_after(1)?;
            c.read_entry(&mut rec)?;
            if !is_sound(&rec, looked_at) {
                return Err(Code::Corrupt.into());
            }
            if let Some((key, n)) = &key
                && !self.quick
                && !last.is_empty()
                && compare::records(&last, &rec, *n, key)? != Ordering::Less
            {
                self.say(format!("row not in PRIMARY KEY order for {}", t.name));
            }
            self.types(t, &rec, enc)?;
            std::mem::swap(&mut last, &mut rec);
            more = c.next()?;
        }
        Ok(())
    }

    /// The types of a row's values, as far as the table's columns say anything about them.
    fn types(&mut self, t: &Rc<Table>, rec: &[u8], enc: iolite_base::Encoding) -> Result<()> {
        let mut h = record::Header::new(rec)?;
        for &k in &t.storage {
            let field = h.next(rec)?;
            let c = &t.columns[k];
            if t.rowid_alias == Some(k) {
                continue;
            }
            let Some((serial, bytes)) = field.filter(|f| f.0 != 0) else {
                // A column that was added later has its default where the record ends before it.
                if c.not_null.is_some() && (field.is_some() || c.default.is_none()) {
                    self.say(format!("NULL value in {}.{}", t.name, c.name));
                }
                continue;
            };
            let (int, real) = (matches!(serial, 1..=6 | 8 | 9), serial == 7);
            let is_text = serial >= 13 && serial & 1 == 1;
            let is_blob = serial >= 12 && serial & 1 == 0;
            if t.strict {
                let ty = c.decltype.to_ascii_uppercase();
                let fits = match &*ty {
                    "INT" | "INTEGER" => int,
                    "REAL" => int || real,
                    "TEXT" => is_text,
                    "BLOB" => is_blob,
                    _ => true,
                };
                if !fits {
                    self.say(format!("non-{ty} value in {}.{}", t.name, c.name));
                }
            } else if c.affinity == Affinity::Text && (int || real) {
                self.say(format!("NUMERIC value in {}.{}", t.name, c.name));
            } else if is_text && matches!(c.affinity, Affinity::Numeric | Affinity::Integer | Affinity::Real)
            {
                let mut v = record::value_of(serial, bytes, enc)?;
                Affinity::Numeric.apply(&mut v)?;
                if !matches!(v, Value::Text(..)) {
                    self.say(format!("TEXT value in {}.{}", t.name, c.name));
                }
            }
        }
        Ok(())
    }

    /// CHECK, and NOT NULL of columns that are computed.
    fn constraints(&mut self, schema: &str, t: &Rc<Table>) -> Result<()> {
        let table = format!("{}.{}", quote_name(schema), quote_name(&t.name));
        for c in t.columns.iter().filter(|c| c.not_null.is_some() && !c.is_stored()) {
            let q = quote_name(&c.name);
            let sql = format!("SELECT 1 FROM {table} NOT INDEXED WHERE {q} IS NULL LIMIT {}", self.left);
            for _ in self.conn.nested_rows(&sql, &[])? {
                self.say(format!("NULL value in {}.{}", t.name, c.name));
            }
        }
        if self.conn.0.settings.ignore_checks() {
            return Ok(());
        }
        for k in &t.checks {
            let sql = format!(
                "SELECT 1 FROM {table} NOT INDEXED WHERE NOT ({}) LIMIT {}",
                expr(&k.expr),
                self.left
            );
            for _ in self.conn.nested_rows(&sql, &[])? {
                self.say(format!("CHECK constraint failed in {}", t.name));
            }
        }
        Ok(())
    }

    /// Each row is in each index, and nothing twice that is to be unique.
    fn indexes(&mut self, db: usize, b: &Btree, t: &Rc<Table>) -> Result<()> {
        let list = t.indexes.borrow().clone();
        if list.iter().all(|i| i.root.get() == t.root.get()) {
            return Ok(());
        }
        let settings = self.conn.0.codegen_settings();
        let plan = with_env(self.conn, |env| iolite_plan::index_check(env, db, t))?;
        let mut program = iolite_bytecode::Program::default();
        iolite_codegen::emit(&plan, &settings, None, &mut program)?;
        let mut rows = Vec::new();
        let ran = self.conn.program_rows(program, self.left, &mut rows);
        for r in rows {
            let name = list.get(r[0].to_int() as usize).map_or("", |i| &i.name);
            self.say(format!("row {} missing from index {name}", r[1].to_int()));
        }
        ran?;
        for i in list.iter().filter(|i| i.unique.is_some() && i.root.get() != t.root.get()) {
            self.unique(b, t, i)?;
        }
        Ok(())
    }

    fn unique(&mut self, b: &Btree, t: &Table, i: &Index) -> Result<()> {
        let key = self.key(t, i)?;
        let mut c = b.cursor(i.root.get(), TreeKind::Index, false)?;
        let (mut last, mut rec) = (Vec::new(), Vec::new());
        let mut more = c.first()?;
        while more && self.left > 0 {
            self.conn.0.check_after(1)?;
            c.read_entry(&mut rec)?;
            if !last.is_empty()
                && !compare::has_null(&rec, i.key_len)?
                && compare::records(&last, &rec, i.key_len, &key)? == Ordering::Equal
            {
                self.say(format!("non-unique entry in index {}", i.name));
            }
            std::mem::swap(&mut last, &mut rec);
            more = c.next()?;
        }
        Ok(())
    }

    fn key(&self, t: &Table, i: &Index) -> Result<Rc<KeyInfo>> {
        with_env(self.conn, |env| index_key(env, t, i))
    }
}

/// Whether a record's header is well formed as far as its first `fields` fields.
fn is_sound(rec: &[u8], fields: usize) -> bool {
    let Some((end, mut at)) = varint::get(rec) else { return false };
    let mut size = end;
    if end > rec.len() as u64 {
        return false;
    }
    let end = end as usize;
    for _ in 0..fields {
        if at >= end {
            break;
        }
        let Some((serial, n)) = varint::get(&rec[at..]) else { return false };
        at += n;
        size += record::serial_len(serial) as u64;
    }
    if at >= end { at == end && size == rec.len() as u64 } else { size <= rec.len() as u64 }
}

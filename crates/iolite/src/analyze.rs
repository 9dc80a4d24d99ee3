//! ANALYZE: fills `sqlite_stat1` (file format, section 2.6.3), and `PRAGMA optimize`, which says when.
//!
//! For each index: its entries, and for each prefix of its fields the average number of entries that share it, rounded
//! up. With a limit (`PRAGMA analysis_limit`) the averages are those of the first entries: so many, and as many again behind
//! the next other first field where all had the same.

use crate::binding::with_env;
use crate::connection::Connection;
use crate::work::work_program;
use iolite_base::{Error, Result, raw_text};
use iolite_btree::{Cursor, TreeKind};
use iolite_bytecode::Program;
use iolite_catalog::{ColumnSource, Index, IndexColumn, Table};
use iolite_ext::Host;
use iolite_plan::bind::index_key;
use iolite_sql::ast::QualifiedName;
use iolite_sql::print::{quote_name, quote_text};
use iolite_value::Value;
use iolite_value::compare::{KeyInfo, first_difference, has_null, records};
use std::cmp::Ordering;
use std::rc::Rc;

/// Compiles ANALYZE.
pub(crate) fn compile(conn: &Connection, what: Option<&QualifiedName>) -> Result<Program> {
    let (list, databases, emptied) = targets(conn, what)?;
    let dbs = databases.clone();
    let work = move |c: &Connection| {
        for db in &dbs {
            prepare(c, *db)?;
        }
        // What is said of tables that are there no more goes, too.
        for db in &emptied {
            let schema = quote_name(&c.0.catalog.borrow().schemas[*db].name).into_owned();
            c.exec_nested(&format!("DELETE FROM {schema}.sqlite_stat1"))?;
        }
        for (db, table, only) in &list {
            if !emptied.contains(db) {
                forget(c, *db, table, only.as_deref())?;
            }
            analyse(c, *db, table, only.as_deref())?;
        }
        for db in &dbs {
            c.0.read_stats(*db)?;
        }
        Ok(Vec::new())
    };
    work_program(conn, &[], Rc::new(work), &databases)
}

type Target = (usize, Rc<Table>, Option<Rc<str>>);

/// What is to be analysed, in which databases (one without tables gets its `sqlite_stat1`, too), and which of them as wholes.
type Targets = (Vec<Target>, Vec<usize>, Vec<usize>);

fn targets(conn: &Connection, what: Option<&QualifiedName>) -> Result<Targets> {
    let catalog = conn.0.catalog.borrow();
    let mut out: Vec<Target> = Vec::new();
    let mut databases: Vec<usize> = Vec::new();
    let mut wholes: Vec<usize> = Vec::new();
    let mut whole = |databases: &mut Vec<usize>, db: usize| {
        databases.push(db);
        wholes.push(db);
        let tables = catalog.schemas[db].tables().filter(|t| wanted(t));
        out.extend(tables.map(|t| (db, t.clone(), None)));
    };
    match what {
        None => (0..catalog.schemas.len()).filter(|d| *d != 1).for_each(|d| whole(&mut databases, d)),
        Some(q) => {
            let schema = q.schema.as_ref().map(|s| &*s.text);
            let name = &*q.name.text;
            if let Some(s) = schema.filter(|s| catalog.database(s).is_none()) {
                return Err(Error::sql(format!("unknown database {s}")).at_place(q.place()));
            }
            if schema.is_none()
                && let Some(db) = catalog.database(name)
            {
                whole(&mut databases, db);
            } else if let Some((db, t)) = catalog.table(schema, name) {
                // Even where nothing is to be counted there is a table of statistics afterwards: a dump relies on it.
                databases.push(db);
                if wanted(&t) {
                    out.push((db, t, None));
                }
            } else if let Some((db, i)) = catalog.index(schema, name) {
                if let Some(t) = catalog.schemas[db].table(&i.table) {
                    out.push((db, t.clone(), Some(i.name.clone())));
                }
            } else {
                let shown = schema.map_or(name.to_string(), |s| format!("{s}.{name}"));
                return Err(Error::sql(format!("no such table: {shown}")));
            }
        }
    }
    for t in &out {
        if !databases.contains(&t.0) {
            databases.push(t.0);
        }
    }
    Ok((out, databases, wholes))
}

fn wanted(t: &Table) -> bool {
    !t.is_view() && !t.is_virtual() && !t.name.to_ascii_lowercase().starts_with("sqlite_")
}

fn prepare(c: &Connection, db: usize) -> Result<()> {
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    c.exec_nested(&format!("CREATE TABLE IF NOT EXISTS {schema}.sqlite_stat1(tbl,idx,stat)"))
}

/// Drops what is known of a table, or of one of its indexes.
fn forget(c: &Connection, db: usize, t: &Table, only: Option<&str>) -> Result<()> {
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    let name = quote_text(&t.name);
    let keep = only.map_or(String::new(), |i| format!(" AND idx={}", quote_text(i)));
    c.exec_nested(&format!("DELETE FROM {schema}.sqlite_stat1 WHERE tbl={name}{keep}"))
}

fn analyse(c: &Connection, db: usize, t: &Rc<Table>, only: Option<&str>) -> Result<()> {
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    let insert = format!("INSERT INTO {schema}.sqlite_stat1 VALUES(?1,?2,?3)");
    let value = |s: &str| Value::text(raw_text::decode(s));
    let indexes = t.indexes.borrow().clone();
    let mut any = false;
    for i in &indexes {
        if only.is_some_and(|o| !i.name.eq_ignore_ascii_case(o)) {
            continue;
        }
        let is_table = t.primary_index().is_some_and(|p| Rc::ptr_eq(&p, i));
        let Some(stat) = statistics(c, db, t, i)? else { continue };
        any |= i.filter.is_none();
        let label = if is_table { &t.name } else { &i.name };
        c.nested_rows(&insert, &[value(&t.name)?, value(label)?, value(&stat)?])?;
    }
    if any || only.is_some() {
        return Ok(());
    }
    let kind = if t.has_rowid() { TreeKind::Table } else { TreeKind::Index };
    let rows = c.0.btree_of(db)?.reading(|b| b.cursor(t.root.get(), kind, false)?.count())?;
    if rows > 0 {
        c.nested_rows(&insert, &[value(&t.name)?, Value::Null, value(&rows.to_string())?])?;
    }
    Ok(())
}

/// The line of an index: its entries in order, each compared with the one before.
fn statistics(c: &Connection, db: usize, t: &Table, i: &Index) -> Result<Option<String>> {
    let key = with_env(c, |env| index_key(env, t, i))?;
    let fields = i.key_len;
    // A unique key without NULLs differs in every entry. Where a single value is the key, all that come behind one that is not
    // NULL are taken for different.
    let not_null = |f: &IndexColumn| match f.source {
        ColumnSource::Column(k) => t.columns[k].not_null.is_some(),
        _ => false,
    };
    let unique = i.unique.is_some();
    let never_equal = unique && i.columns[..fields].iter().all(not_null);
    let compared = if never_equal { fields - 1 } else { fields };
    let limit = c.0.settings.analysis_limit() as u64;
    let mut entries = 0u64;
    let mut all = 0;
    // How often the limit was reached.
    let mut skips = 0;
    // How often each prefix of the key has changed.
    let mut changes = vec![0u64; fields];
    let mut all_differ = false;
    c.0.btree_of(db)?.reading(|b| {
        let mut cursor = b.cursor(i.root.get(), TreeKind::Index, false)?;
        let (mut last, mut entry) = (Vec::new(), Vec::new());
        if limit > 0 {
            all = cursor.count()?;
        }
        let mut more = cursor.first()?;
        while more {
            if entries % 1024 == 1023 {
                c.0.check_after(1024)?;
            }
            cursor.read_entry(&mut entry)?;
            let common = match entries {
                0 => 0,
                _ if all_differ => 0,
                _ => first_difference(&last, &entry, compared, &key)?.0,
            };
            changes[common..].iter_mut().for_each(|n| *n += 1);
            all_differ = all_differ || unique && fields == 1 && !has_null(&entry, 1)?;
            entries += 1;
            std::mem::swap(&mut last, &mut entry);
            if limit > 0 && entries > limit.saturating_mul(skips + 1) {
                skips += 1;
                if changes[0] > 1 || !skip_first_field(&mut cursor, &last, &key)? {
                    break;
                }
            }
            more = cursor.next()?;
        }
        Ok(())
    })?;
    if entries == 0 {
        // An empty partial index says so; an empty table says nothing.
        return Ok(i.filter.as_ref().map(|_| format!("0{}", " 0".repeat(fields))));
    }
    let mut out = if skips > 0 { all } else { entries }.to_string();
    for distinct in changes {
        // Rounded up, but hardly more than one is one.
        let average = match entries.div_ceil(distinct.max(1)) {
            2 if entries * 10 <= distinct * 11 => 1,
            a => a,
        };
        out.push_str(&format!(" {average}"));
    }
    Ok(Some(out))
}

/// Goes to the first entry whose first field is behind that of `entry`.
fn skip_first_field(cursor: &mut Cursor, entry: &[u8], key: &KeyInfo) -> Result<bool> {
    let behind = |e: &[u8]| Ok(records(e, entry, 1, key)?.then(Ordering::Less));
    match cursor.seek_key(&mut { behind })? {
        Some(Ordering::Greater) => Ok(true),
        Some(_) => cursor.next(),
        None => Ok(false),
    }
}

/// Bits of what `PRAGMA optimize` is given.
mod optimize_bits {
    /// Answers what would be done.
    pub const ASK: i64 = 0x1;
    /// Runs ANALYZE where it may help.
    pub const ANALYZE: i64 = 0x2;
    /// Looks at some entries of an index only.
    pub const LIMIT: i64 = 0x10;
    /// Looks at tables that nobody has asked, too.
    pub const ALL_TABLES: i64 = 0x1_0000;
}

/// `PRAGMA optimize`: analyses the tables of a database, or of all, for which that may help. Those are tables with an index
/// that was never analysed, and those that have become ten times larger or smaller since, if a plan used what is known
/// of them.
pub(crate) fn optimize(c: &Connection, schema: Option<&str>, bits: i64) -> Result<Vec<Vec<Value>>> {
    /// Entries of an index that are looked at.
    const LIMIT: i64 = 2000;
    if bits & optimize_bits::ANALYZE == 0 {
        return Ok(Vec::new());
    }
    let mut statements = Vec::new();
    let catalog = c.0.catalog.borrow().clone();
    for (db, s) in catalog.schemas.iter().enumerate() {
        if db == 1 || schema.is_some_and(|n| !n.eq_ignore_ascii_case(&s.name)) {
            continue;
        }
        for t in s.tables().filter(|t| wanted(t)) {
            if may_help(c, db, t, bits & optimize_bits::ALL_TABLES != 0)? {
                statements.push(format!("ANALYZE {}.{}", quoted(&s.name), quoted(&t.name)));
            }
        }
    }
    if bits & optimize_bits::ASK != 0 {
        return statements.iter().map(|s| Ok(vec![Value::text(raw_text::decode(s))?])).collect();
    }
    let limit = &c.0.settings.analysis_limit;
    let kept = limit.get();
    if bits & optimize_bits::LIMIT != 0 && (kept == 0 || kept > LIMIT) {
        limit.set(LIMIT);
    }
    let done = statements.iter().try_for_each(|s| c.execute_batch(s));
    limit.set(kept);
    done.map(|()| Vec::new())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn may_help(c: &Connection, db: usize, t: &Table, all: bool) -> Result<bool> {
    let indexes = t.indexes.borrow();
    let missing = indexes.iter().any(|i| !i.stat.borrow().measured);
    if !(missing || all || t.stat_used.get()) {
        return Ok(false);
    }
    let kind = if t.has_rowid() { TreeKind::Table } else { TreeKind::Index };
    let rows = c.0.btree_of(db)?.reading(|b| b.cursor(t.root.get(), kind, false)?.estimate())? as f64;
    let known = t.rows.get();
    // A table of a handful of rows may become empty.
    let shrunk = rows < known / 10.0 && (rows > 0.0 || known >= 10.0);
    Ok(if missing { rows > 0.0 } else { shrunk || rows > known * 10.0 })
}

//! ANALYZE: fills `sqlite_stat1` (file format, section 2.6.3).
//!
//! For each index: its entries, and for each prefix of its fields the average number of entries that share it, rounded
//! up.

use crate::connection::Connection;
use crate::control::work_program;
use crate::run::{exec_nested, nested_rows, with_env};
use iolite_base::{Error, Result};
use iolite_btree::TreeKind;
use iolite_bytecode::Program;
use iolite_catalog::{ColumnSource, Index, IndexColumn, Table};
use iolite_plan::bind::index_key;
use iolite_sql::ast::QualifiedName;
use iolite_sql::print::{quote_name, quote_text};
use iolite_value::Value;
use iolite_value::compare::{first_difference, has_null};
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
            exec_nested(&c.0, &format!("DELETE FROM {schema}.sqlite_stat1"))?;
        }
        for (db, table, only) in &list {
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
        let mut tables: Vec<Rc<Table>> = catalog.schemas[db].tables().cloned().collect();
        // The newest first: rows of statistics come in the order in which they do on stock for a handful of tables.
        tables.sort_by_key(|t| std::cmp::Reverse(t.root.get()));
        out.extend(tables.into_iter().filter(|t| wanted(t)).map(|t| (db, t, None)));
    };
    match what {
        None => (0..catalog.schemas.len()).filter(|d| *d != 1).for_each(|d| whole(&mut databases, d)),
        Some(q) => {
            let schema = q.schema.as_ref().map(|s| &*s.text);
            let name = &*q.name.text;
            if let Some(s) = schema.filter(|s| catalog.database(s).is_none()) {
                return Err(Error::sql(format!("unknown database {s}")));
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
    exec_nested(&c.0, &format!("CREATE TABLE IF NOT EXISTS {schema}.sqlite_stat1(tbl,idx,stat)"))
}

fn analyse(c: &Connection, db: usize, t: &Rc<Table>, only: Option<&str>) -> Result<()> {
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    let table = format!("{schema}.{}", quote_name(&t.name));
    let name = quote_text(&t.name);
    let keep = only.map_or(String::new(), |i| format!(" AND idx={}", quote_text(i)));
    exec_nested(&c.0, &format!("DELETE FROM {schema}.sqlite_stat1 WHERE tbl={name}{keep}"))?;
    let rows = count(c, &format!("SELECT count(*) FROM {table} NOT INDEXED"))?;
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
        let sql = format!(
            "INSERT INTO {schema}.sqlite_stat1 VALUES({name},{},{})",
            quote_text(label),
            quote_text(&stat)
        );
        exec_nested(&c.0, &sql)?;
    }
    if !any && only.is_none() && rows > 0 {
        exec_nested(&c.0, &format!("INSERT INTO {schema}.sqlite_stat1 VALUES({name},NULL,'{rows}')"))?;
    }
    Ok(())
}

fn count(c: &Connection, sql: &str) -> Result<i64> {
    let rows = nested_rows(&c.0, sql, &[])?;
    Ok(match rows.first().and_then(|r| r.first()) {
        Some(Value::Int(n)) => *n,
        _ => 0,
    })
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
    let mut entries = 0u64;
    // How often each prefix of the key has changed.
    let mut changes = vec![0u64; fields];
    let mut all_differ = false;
    c.0.btree_of(db)?.reading(|b| {
        let mut cursor = b.cursor(i.root.get(), TreeKind::Index, false)?;
        let (mut last, mut entry) = (Vec::new(), Vec::new());
        let mut more = cursor.first()?;
        while more {
            if entries.is_multiple_of(1024) {
                c.0.check_interrupt()?;
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
            more = cursor.next()?;
        }
        Ok(())
    })?;
    if entries == 0 {
        // An empty partial index says so; an empty table says nothing.
        return Ok(i.filter.as_ref().map(|_| format!("0{}", " 0".repeat(fields))));
    }
    let mut out = entries.to_string();
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

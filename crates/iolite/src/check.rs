//! `PRAGMA integrity_check` and `quick_check`: the trees as the storage layer sees them, then rows against
//! constraints and indexes by queries.

use crate::connection::Connection;
use crate::run::nested_rows;
use iolite_base::Result;
use iolite_catalog::{ColumnSource, Table};
use iolite_sql::print::{expr, quote_name};
use iolite_value::Value;
use std::rc::Rc;

const MAX_ERRORS: usize = 100;

/// Runs the check; answers `ok` or what was found.
pub(crate) fn run(
    conn: &Connection,
    schema: Option<&str>,
    value: Option<&str>,
    quick: bool,
) -> Result<Vec<Vec<Value>>> {
    let mut limit = MAX_ERRORS;
    let mut only: Option<String> = None;
    if let Some(v) = value {
        match v.parse::<i64>() {
            Ok(n) => limit = if n > 0 { n as usize } else { MAX_ERRORS },
            Err(_) => only = Some(v.to_string()),
        }
    }
    let schemas = conn.0.catalog.borrow().schemas.clone();
    let mut found: Vec<String> = Vec::new();
    for (db, s) in schemas.iter().enumerate() {
        if schema.is_some_and(|n| !n.eq_ignore_ascii_case(&s.name)) {
            continue;
        }
        let Some(b) = conn.0.btree_if_open(db) else { continue };
        let mut tables: Vec<Rc<Table>> = s.tables().filter(|t| t.root.get() > 0).cloned().collect();
        if let Some(o) = &only {
            tables.retain(|t| t.name.eq_ignore_ascii_case(o));
        }
        let mut roots: Vec<u32> = if only.is_some() { vec![0] } else { vec![1] };
        for t in &tables {
            roots.push(t.root.get());
            for i in t.indexes.borrow().iter().filter(|i| i.root.get() != t.root.get()) {
                roots.push(i.root.get());
            }
        }
        let was = b.txn_state();
        b.begin_read()?;
        let report = b.integrity_check(&roots, limit - found.len());
        if was == iolite_btree::TxnState::None {
            b.end_read();
        }
        found.extend(report?);
        tables.sort_by_key(|t| t.root.get());
        for t in &tables {
            if found.len() >= limit {
                break;
            }
            rows(conn, &s.name, t, quick, limit, &mut found)?;
        }
    }
    found.truncate(limit);
    if found.is_empty() {
        return Ok(vec![vec![Value::text("ok")?]]);
    }
    found.into_iter().map(|f| Ok(vec![Value::text(f)?])).collect()
}

/// Checks a table's rows.
fn rows(
    conn: &Connection,
    schema: &str,
    t: &Rc<Table>,
    quick: bool,
    limit: usize,
    found: &mut Vec<String>,
) -> Result<()> {
    let table = format!("{}.{}", quote_name(schema), quote_name(&t.name));
    let mut report = |sql: &str, text: &dyn Fn(&[Value]) -> String| -> Result<()> {
        if found.len() < limit {
            for r in nested_rows(&conn.0, sql, &[])? {
                found.push(text(&r));
            }
        }
        Ok(())
    };
    for c in &t.columns {
        if c.not_null.is_some() {
            let q = quote_name(&c.name);
            let sql = format!("SELECT 1 FROM {table} NOT INDEXED WHERE {q} IS NULL");
            report(&sql, &|_| format!("NULL value in {}.{}", t.name, c.name))?;
        }
    }
    for k in &t.checks {
        let sql = format!("SELECT 1 FROM {table} NOT INDEXED WHERE NOT ({})", expr(&k.expr));
        report(&sql, &|_| format!("CHECK constraint failed in {}", t.name))?;
    }
    // A name of the rowid that no column has taken.
    let rowid = ["rowid", "_rowid_", "oid"].into_iter().find(|n| t.column(n).is_none());
    let (false, true, Some(rowid)) = (quick, t.has_rowid(), rowid) else { return Ok(()) };
    for i in t.indexes.borrow().iter() {
        let filter = i.filter.as_ref().map_or(String::new(), |f| format!(" WHERE {}", expr(f)));
        let name = quote_name(&i.name);
        let count = |sql: &str| -> Result<i64> {
            let r = nested_rows(&conn.0, sql, &[])?;
            Ok(r.first().and_then(|r| r.first()).map_or(0, |v| v.to_int()))
        };
        let in_table = count(&format!("SELECT count(*) FROM {table} NOT INDEXED{filter}"))?;
        let b = conn.btree(schema)?;
        let mut c = b.cursor(i.root.get(), iolite_btree::TreeKind::Index, false)?;
        let in_index = c.count()? as i64;
        drop(c);
        if in_table != in_index {
            found.push(format!("wrong # of entries in index {}", i.name));
            continue;
        }
        let plain = i.columns[..i.key_len].iter().all(|c| matches!(c.source, ColumnSource::Column(_)));
        if !plain || i.filter.is_some() {
            continue;
        }
        // Each row must be found through the index.
        let conds: Vec<String> = i.columns[..i.key_len]
            .iter()
            .filter_map(|c| match c.source {
                ColumnSource::Column(k) => {
                    let q = quote_name(&t.columns[k].name).into_owned();
                    let coll = c.collation.as_deref().unwrap_or("BINARY");
                    Some(format!("b.{q} COLLATE {} IS a.{q}", quote_name(coll)))
                }
                _ => None,
            })
            .collect();
        let sql = format!(
            "SELECT a.{rowid} FROM {table} AS a NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM {table} AS b INDEXED BY {name} WHERE {} AND b.{rowid}=a.{rowid})",
            conds.join(" AND ")
        );
        for r in nested_rows(&conn.0, &sql, &[])? {
            found.push(format!("row {} missing from index {}", r[0].to_int(), i.name));
            if found.len() >= limit {
                break;
            }
        }
    }
    Ok(())
}

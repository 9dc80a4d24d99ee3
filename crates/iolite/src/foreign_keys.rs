//! `PRAGMA foreign_key_check`: rows whose parents are missing, found by a query for each table.

use crate::connection::Connection;
use iolite_base::{Error, Result};
use iolite_catalog::Table;
use iolite_plan::bind::{mismatch, parent_key};
use iolite_sql::print::quote_name;
use iolite_value::Value;
use std::rc::Rc;

/// The rows of the pragma: table, rowid, parent, number of the key; of one table or of all in the database, the newest first.
pub(crate) fn check(c: &Connection, schema: Option<&str>, table: Option<&str>) -> Result<Vec<Vec<Value>>> {
    let mut out = Vec::new();
    let (schema, tables) = meant(c, schema, table)?;
    for t in tables {
        check_table(c, &schema, &t, &mut out)?;
    }
    Ok(out)
}

/// The complaints that come before any row is looked at.
pub(crate) fn test(c: &Connection, schema: Option<&str>, table: Option<&str>) -> Result<()> {
    let (schema, tables) = meant(c, schema, table)?;
    for t in tables {
        for f in t.foreign_keys.iter().rev() {
            if schema.table(&f.parent).is_some_and(|parent| parent_key(parent, f).is_none()) {
                return Err(mismatch(&t, f));
            }
        }
    }
    Ok(())
}

/// The schema and its tables that are to be checked.
fn meant(
    c: &Connection,
    schema: Option<&str>,
    table: Option<&str>,
) -> Result<(Rc<iolite_catalog::Schema>, Vec<Rc<Table>>)> {
    let catalog = c.0.catalog.borrow().clone();
    match table {
        Some(name) => {
            let (db, t) = catalog.table(schema, name).ok_or_else(|| {
                let shown = schema.map_or(name.to_string(), |s| format!("{s}.{name}"));
                Error::sql(format!("no such table: {shown}"))
            })?;
            Ok((catalog.schemas[db].clone(), vec![t]))
        }
        None => {
            let db = schema.map_or(Ok(0), |s| c.0.database_number(s))?;
            Ok((catalog.schemas[db].clone(), catalog.schemas[db].tables().cloned().collect()))
        }
    }
}

/// So many keys find the parents by a join, which takes half of what a query for each row does; a FROM clause takes 64 tables.
const JOINED: usize = 32;

fn check_table(
    c: &Connection,
    schema: &iolite_catalog::Schema,
    t: &Table,
    out: &mut Vec<Vec<Value>>,
) -> Result<()> {
    if t.foreign_keys.is_empty() {
        return Ok(());
    }
    let own = |k: usize| format!("\"child row\".{}", quote_name(&t.columns[k].name));
    let (mut tests, mut joins) = (Vec::new(), String::new());
    // Keys are numbered from the last to the first.
    for (id, f) in t.foreign_keys.iter().rev().enumerate() {
        let mut test: Vec<String> = f.columns.iter().map(|k| format!("{} IS NOT NULL", own(*k))).collect();
        if let Some(parent) = schema.table(&f.parent) {
            let Some(in_parent) = parent_key(parent, f) else { return Err(mismatch(t, f)) };
            let from = format!("{}.{}", quote_name(&schema.name), quote_name(&parent.name));
            let row = format!("\"parent row {id}\"");
            let same = in_parent.same(parent, &row, &f.columns, own).join(" AND ");
            if id < JOINED {
                joins += &format!(" LEFT JOIN {from} AS {row} ON {same}");
                test.push(format!(
                    "{row}.{} IS NULL",
                    quote_name(&parent.columns[in_parent.columns[0]].name)
                ));
            } else {
                test.push(format!("NOT EXISTS (SELECT 1 FROM {from} AS {row} WHERE {same})"));
            }
        }
        tests.push(format!("({})", test.join(" AND ")));
    }
    let free = ["rowid", "oid", "_rowid_"].into_iter().find(|n| t.column(n).is_none());
    let rowid = match t.has_rowid() {
        true => match (t.rowid_alias, free) {
            (Some(alias), _) => own(alias),
            (None, Some(name)) => format!("\"child row\".{name}"),
            (None, None) => "NULL".into(),
        },
        false => "NULL".into(),
    };
    let from = format!("{}.{}", quote_name(&schema.name), quote_name(&t.name));
    // An expression is no deeper than 1,000.
    let some: Vec<String> = tests.chunks(500).map(|part| format!("({})", part.join(" OR "))).collect();
    // The rows come in the order of the table, not of an index that has the columns.
    let text = format!(
        "SELECT {rowid}, {} FROM {from} AS \"child row\" NOT INDEXED{joins} WHERE {}",
        tests.join(", "),
        some.join(" OR ")
    );
    for row in c.nested_rows(&text, &[])? {
        for (id, f) in t.foreign_keys.iter().rev().enumerate() {
            if row[id + 1].to_int() != 0 {
                let text = |s: &str| Value::text(s);
                out.push(vec![text(&t.name)?, row[0].clone(), text(&f.parent)?, Value::Int(id as i64)]);
            }
        }
    }
    Ok(())
}

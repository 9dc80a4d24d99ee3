//! The columnar engine: which queries, how much memory, what has happened.

use super::words::number;
use super::{Call, Pragma, Rows, int, one, text};
use iolite_base::Result;
use iolite_value::Value;

pub(super) static PRAGMAS: &[Pragma] = &[
    Pragma::new("column_cache", column_cache),
    Pragma::new("column_cache_size", column_cache_size),
    Pragma::new("column_cache_stats", column_cache_stats).columns(&["name", "value"]),
    Pragma::new("column_cache_trust", column_cache_trust),
    Pragma::new("column_work_size", column_work_size),
];

/// Whether columns are kept in a file beside the database: `memory`, `persist`.
fn column_cache(c: &Call<'_>) -> Result<Rows> {
    let persist = c.value.map(|v| v.eq_ignore_ascii_case("persist"));
    one(text(crate::columns::column_cache(c.inner(), c.db()?, persist)?)?)
}

/// What the columns of the process may take together, in KiB.
fn column_cache_size(c: &Call<'_>) -> Result<Rows> {
    int(crate::column_store::column_cache_size(c.value.map(number)))
}

/// What has happened among the columns of a database.
fn column_cache_stats(c: &Call<'_>) -> Result<Rows> {
    let db = c.db()?;
    let mut out = Vec::new();
    for (name, n) in c.conn.column_counters(db).named() {
        out.push(vec![text(name)?, Value::Int(n as i64)]);
    }
    for (why, n) in c.conn.column_refusals(db) {
        out.push(vec![text(&format!("left to rows: {why}"))?, Value::Int(n as i64)]);
    }
    if let Some(note) = c.conn.column_note(db) {
        out.push(vec![text("note")?, text(&note)?]);
    }
    Ok(out)
}

/// What that file is believed by: `stat`, `hash`.
fn column_cache_trust(c: &Call<'_>) -> Result<Rows> {
    let hash = c.value.map(|v| v.eq_ignore_ascii_case("hash"));
    one(text(crate::columns::column_cache_trust(c.inner(), c.db()?, hash)?)?)
}

/// What the maps, the groups or the rows of a query in columns may take each, in KiB.
fn column_work_size(c: &Call<'_>) -> Result<Rows> {
    int(crate::column_store::column_work_size(c.value.map(number)))
}

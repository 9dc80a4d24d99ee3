//! The differential tester: generated schemas, data and statements on iolite and on stock SQLite, each on a database
//! of its own; rows, errors, states and files are compared.
//!
//! A round is reproducible by its seed. [`session`] runs rounds, [`plans`] those that compare plans
//! (of [`drawn`] statements), [`generate`] holds the generator's state, [`query`], [`nested`],
//! [`expr`], [`write`] and [`ddl`] make statements, [`pair`] compares, [`shrink`] shortens what was found.

pub mod coverage;
mod ddl;
pub mod drawn;
pub mod explained;
mod expr;
pub mod generate;
pub mod growth;
pub mod model;
mod nested;
pub mod pair;
mod params;
pub mod plans;
mod query;
pub mod rng;
pub mod session;
pub mod shop;
pub mod shrink;
mod write;

use generate::Callable;
use iolite::engine::FunctionFlags;

/// Functions whose answers depend on more than their arguments, or that are one engine's own.
const LEFT_OUT: &[&str] = &[
    "random",
    "randomblob",
    "changes",
    "total_changes",
    "last_insert_rowid",
    "current_date",
    "current_time",
    "current_timestamp",
    "sqlite_version",
    "sqlite_source_id",
    "sqlite_compileoption_get",
    "iolite_version",
    "load_extension",
    "sqlite_log",
    "sqlite_offset",
    // Called, it fails: whether it is called is a matter of the plan.
    "match",
];

/// The functions that both engines have.
pub fn callables() -> Vec<Callable> {
    let c = iolite_stock::Connection::open(":memory:").expect("a database in memory opens");
    let rows = c.query("SELECT DISTINCT name, type FROM pragma_function_list").unwrap_or_default();
    let known = |name: &str| {
        rows.iter().find_map(|r| match (&r[0], &r[1]) {
            (iolite_stock::Value::Text(n), iolite_stock::Value::Text(t)) if n == name.as_bytes() => {
                Some(String::from_utf8_lossy(t).into_owned())
            }
            _ => None,
        })
    };
    let mut out = Vec::new();
    for e in iolite_func::tables().into_iter().flatten() {
        if LEFT_OUT.contains(&e.name) {
            continue;
        }
        let f = e.function();
        if f.flags.has(FunctionFlags::WINDOW_ONLY) || known(e.name).is_none() {
            continue;
        }
        out.push(Callable { name: e.name, args: e.args, aggregate: f.is_aggregate() });
    }
    out
}

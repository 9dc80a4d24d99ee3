//! Which engines there are on this machine, each behind the face of `iolite-bench`.
//!
//! A library is looked for where its variable says, then in the cache folder, then where the system keeps libraries. What
//! is absent stays in the list with the reason.

mod duckdb;
pub mod libraries;
pub mod pairs;
pub mod turso;

pub use duckdb::DuckDb;
use iolite_bench::engine::{Engine, Iolite, Result, Stock};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
pub use turso::Turso;

/// An engine as an envelope names it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Presence {
    /// Its name.
    pub name: String,
    /// Its version, if it is there.
    pub version: Option<String>,
    /// Why it is not there.
    pub absent: Option<String>,
}

/// Where fetched libraries are kept: `IOLITE_BENCH_CACHE`, or a folder among the temporary ones.
pub fn cache() -> PathBuf {
    std::env::var_os("IOLITE_BENCH_CACHE")
        .map_or_else(|| std::env::temp_dir().join("iolite-bench-engines"), PathBuf::from)
}

/// The SQL engines that are there: iolite and stock, and DuckDB on this many threads if it is found.
pub fn sql(threads: usize) -> Vec<Box<dyn Engine>> {
    let mut out: Vec<Box<dyn Engine>> = vec![Box::new(Iolite), Box::new(Stock)];
    if let Ok(d) = DuckDb::find(threads) {
        out.push(Box::new(d));
    }
    out
}

/// The engines with SQLite's file format that are there: stock, iolite, and behind them Turso if it is found.
pub fn rows() -> Vec<Box<dyn Engine>> {
    let mut out: Vec<Box<dyn Engine>> = vec![Box::new(Stock), Box::new(Iolite)];
    if let Ok(t) = Turso::find() {
        out.push(Box::new(t));
    }
    out
}

/// All engines, there or not.
pub fn presences() -> Vec<Presence> {
    let of = |name: &str, r: Result<String>| match r {
        Ok(v) => Presence { name: name.into(), version: Some(v), absent: None },
        Err(e) => Presence { name: name.into(), version: None, absent: Some(e.message) },
    };
    vec![
        of("iolite", Ok(Iolite.version())),
        of("stock", Ok(Stock.version())),
        of("duckdb", DuckDb::find(1).map(|d| d.version())),
        of("lmdb", pairs::lmdb().map(|l| l.version())),
        of("berkeley", pairs::berkeley().map(|b| b.version())),
        of("sqlite-vec", libraries::version("sqlite-vec")),
        of("usearch", libraries::version("usearch")),
        of("hnswlib", libraries::version("hnswlib")),
        of("turso", Turso::find().map(|t| t.version())),
    ]
}

/// The settings of an engine for a workload: pragmas that mean the same to iolite and stock, what DuckDB understands instead.
pub fn settings<'s>(engine: &str, sqlite: &'s str, duckdb: &'s str) -> &'s str {
    if engine == "duckdb" { duckdb } else { sqlite }
}

//! DuckDB behind the face: prepared statements and the appender of its C API.

use crate::native::duckdb::{Api, Connection, Statement};
use iolite_bench::engine::{Database, Engine, Query, Result, Source, Value};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// DuckDB on a number of threads.
pub struct DuckDb {
    api: &'static Api,
    threads: usize,
}

struct Db(Connection);

struct Prepared<'d>(Statement<'d>);

fn places() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> =
        std::env::var_os("IOLITE_BENCH_DUCKDB").map(PathBuf::from).into_iter().collect();
    out.push(super::cache().join("package/libduckdb.so"));
    out.push("libduckdb.so".into());
    out
}

impl DuckDb {
    /// Finds the library.
    pub fn find(threads: usize) -> Result<DuckDb> {
        static FOUND: OnceLock<std::result::Result<&'static Api, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let mut why = Vec::new();
            for p in places() {
                match Api::load(&p) {
                    Ok(a) => return Ok(a),
                    Err(e) => why.push(e.message),
                }
            }
            Err(why.join("; "))
        });
        found.clone().map(|api| DuckDb { api, threads }).map_err(Into::into)
    }
}

impl Engine for DuckDb {
    fn name(&self) -> &'static str {
        "duckdb"
    }

    fn version(&self) -> String {
        format!("DuckDB {}", self.api.version())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        let c = self.api.connect(&path.to_string_lossy(), self.threads)?;
        Ok(Box::new(Db(c)))
    }
}

impl Database for Db {
    fn batch(&self, sql: &str) -> Result<()> {
        self.0.execute(sql).map_err(|e| e.at(sql))
    }

    fn prepare<'d>(&'d self, sql: &str) -> Result<Box<dyn Query + 'd>> {
        Ok(Box::new(Prepared(self.0.prepare(sql).map_err(|e| e.at(sql))?)))
    }

    fn load(&self, table: &str, _columns: usize, source: &mut Source<'_>) -> Result<u64> {
        self.0.append(table, source)
    }
}

impl Query for Prepared<'_> {
    fn run(&mut self, params: &[Value]) -> Result<i64> {
        self.0.run(params)
    }

    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.0.rows(params)
    }
}

//! Stock SQLite behind the face.

use super::{Database, Engine, Error, Kind, Query, Result, Value};
use std::path::Path;

/// Stock SQLite, the pinned build.
pub struct Stock;

/// Stock SQLite with an extension.
pub struct Extended {
    /// The name in tables.
    pub name: &'static str,
    /// The extension's library.
    pub library: std::path::PathBuf,
}

impl Engine for Extended {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        format!("SQLite {} with {}", iolite_stock::version(), self.name)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        let c = iolite_stock::Connection::open(&path.to_string_lossy()).map_err(error)?;
        c.load_extension(&self.library.to_string_lossy()).map_err(error)?;
        Ok(Box::new(Db(c)))
    }
}

struct Db(iolite_stock::Connection);

struct Statement<'d>(iolite_stock::Statement<'d>);

fn error(e: iolite_stock::Error) -> Error {
    let kind = match e.code & 0xff {
        5 | 6 => Kind::Busy,
        19 => Kind::Constraint,
        _ => Kind::Other,
    };
    Error { kind, message: e.message }
}

impl Engine for Stock {
    fn name(&self) -> &'static str {
        "stock"
    }

    fn version(&self) -> String {
        format!("SQLite {}", iolite_stock::version())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        let c = iolite_stock::Connection::open(&path.to_string_lossy()).map_err(error)?;
        Ok(Box::new(Db(c)))
    }
}

impl Database for Db {
    fn batch(&self, sql: &str) -> Result<()> {
        self.0.execute_batch(sql).map_err(|e| error(e).at(sql))
    }

    fn prepare<'d>(&'d self, sql: &str) -> Result<Box<dyn Query + 'd>> {
        let s = self.0.prepare(sql).map_err(|e| error(e).at(sql))?;
        Ok(Box::new(Statement(s)))
    }

    fn busy_timeout(&self, ms: u32) -> Result<()> {
        self.0.busy_timeout(ms as i32);
        Ok(())
    }
}

impl Statement<'_> {
    fn bind(&mut self, params: &[Value]) -> Result<()> {
        for (i, p) in params.iter().enumerate() {
            self.0.bind(i + 1, p).map_err(error)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<bool> {
        match self.0.step() {
            Ok(s) => Ok(s),
            Err(e) => {
                self.0.reset();
                Err(error(e))
            }
        }
    }
}

impl Query for Statement<'_> {
    #[inline]
    fn run(&mut self, params: &[Value]) -> Result<i64> {
        self.bind(params)?;
        let n = self.0.column_count();
        let mut sum = 0i64;
        while self.step()? {
            for i in 0..n {
                sum = sum.wrapping_add(self.0.sum_of(i));
            }
        }
        self.0.reset();
        Ok(sum)
    }

    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.bind(params)?;
        let mut out = Vec::new();
        while self.step()? {
            out.push(self.0.row());
        }
        self.0.reset();
        Ok(out)
    }
}

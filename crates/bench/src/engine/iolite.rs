//! iolite behind the face.

use super::{Database, Engine, Error, Kind, Query, Result, Value};
use std::path::Path;

/// iolite.
pub struct Iolite;

struct Db(iolite::engine::Connection);

struct Statement(iolite::engine::Statement);

fn error(e: iolite::Error) -> Error {
    let kind = match e.code().primary() {
        iolite::Code::Busy | iolite::Code::Locked => Kind::Busy,
        iolite::Code::Constraint => Kind::Constraint,
        _ => Kind::Other,
    };
    Error { kind, message: e.to_string() }
}

impl Engine for Iolite {
    fn name(&self) -> &'static str {
        "iolite"
    }

    fn version(&self) -> String {
        format!("{} (SQLite {})", iolite::IOLITE_VERSION, iolite::SQLITE_VERSION)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        let c = iolite::engine::Connection::open(&path.to_string_lossy()).map_err(error)?;
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
        self.0.busy_timeout(ms).map_err(error)
    }
}

fn to_own(v: &Value) -> Result<iolite::engine::Value> {
    Ok(match v {
        Value::Null => iolite::engine::Value::Null,
        Value::Int(n) => iolite::engine::Value::Int(*n),
        Value::Real(r) => iolite::engine::Value::Real(*r),
        Value::Text(t) => iolite::engine::Value::text(t).map_err(error)?,
        Value::Blob(b) => iolite::engine::Value::blob(b).map_err(error)?,
    })
}

fn from_own(v: &iolite::engine::Value) -> Value {
    match v {
        iolite::engine::Value::Null => Value::Null,
        iolite::engine::Value::Int(n) => Value::Int(*n),
        iolite::engine::Value::Real(r) => Value::Real(*r),
        iolite::engine::Value::Text(b, _) => Value::Text(b.to_vec()),
        iolite::engine::Value::Blob(b, _) => Value::Blob(b.to_vec()),
    }
}

impl Statement {
    fn bind(&mut self, params: &[Value]) -> Result<()> {
        for (i, p) in params.iter().enumerate() {
            self.0.bind(i + 1, to_own(p)?).map_err(error)?;
        }
        Ok(())
    }

    /// After an error the statement is made ready again; what it says then is what is already known.
    fn step(&mut self) -> Result<bool> {
        match self.0.step() {
            Ok(s) => Ok(s == iolite::engine::Step::Row),
            Err(e) => {
                let _ = self.0.reset();
                Err(error(e))
            }
        }
    }
}

impl Query for Statement {
    #[inline]
    fn run(&mut self, params: &[Value]) -> Result<i64> {
        self.bind(params)?;
        let mut sum = 0i64;
        while self.step()? {
            for v in self.0.row() {
                sum = sum.wrapping_add(match v {
                    iolite::engine::Value::Int(n) => *n,
                    iolite::engine::Value::Real(r) => *r as i64,
                    iolite::engine::Value::Text(b, _) | iolite::engine::Value::Blob(b, _) => b.len() as i64,
                    iolite::engine::Value::Null => 0,
                });
            }
        }
        self.0.reset().map_err(error)?;
        Ok(sum)
    }

    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.bind(params)?;
        let mut out = Vec::new();
        while self.step()? {
            out.push(self.0.row().iter().map(from_own).collect());
        }
        self.0.reset().map_err(error)?;
        Ok(out)
    }
}

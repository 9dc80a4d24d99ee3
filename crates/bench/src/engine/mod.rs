//! The face of a database that measured code sees: text batches, prepared queries, parameters, rows.
//!
//! Each engine does the same work behind it: parameters are copied once, each value of each row is looked at. What it
//! does not know: which engine it is, which pragmas it runs with.

mod iolite;
mod stock;

pub use iolite::Iolite;
pub use iolite_stock::Value;
use std::path::Path;
pub use stock::{Extended, Stock};

/// What kind of error it was, as far as measuring cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Somebody else holds a lock.
    Busy,
    /// A constraint forbids it.
    Constraint,
    /// Everything else.
    Other,
}

/// An error.
#[derive(Clone, Debug)]
pub struct Error {
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub message: String,
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error { kind: Kind::Other, message }
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Error {
        message.to_string().into()
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        e.to_string().into()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error {
    /// The same with what was being done.
    pub fn at(mut self, what: &str) -> Error {
        let short: String = what.chars().take(300).collect();
        self.message = format!("{}: {short}", self.message);
        self
    }
}

/// Results.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine.
pub trait Engine {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Its version.
    fn version(&self) -> String;
    /// Opens or creates a database file; `:memory:` is one in memory, an empty name a transient one.
    fn open(&self, path: &Path) -> Result<Box<dyn Database>>;
}

/// A source of rows: fills the row, or answers that there is none.
pub type Source<'s> = dyn FnMut(&mut Vec<Value>) -> bool + 's;

/// A connection.
pub trait Database {
    /// Runs a text of statements.
    fn batch(&self, sql: &str) -> Result<()>;
    /// Prepares a statement.
    fn prepare<'d>(&'d self, sql: &str) -> Result<Box<dyn Query + 'd>>;
    /// Milliseconds to wait for locks.
    fn busy_timeout(&self, _ms: u32) -> Result<()> {
        Ok(())
    }

    /// All rows of a query.
    fn rows(&self, sql: &str) -> Result<Vec<Vec<Value>>> {
        self.prepare(sql)?.rows(&[])
    }

    /// Fills a table in one transaction, in the way the engine offers for that.
    fn load(&self, table: &str, columns: usize, source: &mut Source<'_>) -> Result<u64> {
        let marks = vec!["?"; columns].join(",");
        self.batch("BEGIN")?;
        let mut n = 0;
        {
            let mut q = self.prepare(&format!("INSERT INTO {table} VALUES({marks})"))?;
            let mut row = Vec::with_capacity(columns);
            while source(&mut row) {
                q.run(&row)?;
                row.clear();
                n += 1;
            }
        }
        self.batch("COMMIT")?;
        Ok(n)
    }
}

/// A prepared statement.
pub trait Query {
    /// Runs to the end; answers a sum over all values seen (lengths of texts and blobs), so that nothing is left out.
    fn run(&mut self, params: &[Value]) -> Result<i64>;
    /// Runs and answers all rows.
    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>>;
}

/// An integer parameter.
#[inline]
pub fn int(n: i64) -> Value {
    Value::Int(n)
}

/// A text parameter.
#[inline]
pub fn text(s: impl Into<String>) -> Value {
    Value::Text(s.into().into_bytes())
}

/// A row as text, for messages and plain comparisons.
pub fn show(row: &[Value]) -> String {
    let one = |v: &Value| match v {
        Value::Null => "NULL".into(),
        Value::Int(n) => n.to_string(),
        Value::Real(r) => format!("{r}"),
        Value::Text(t) => String::from_utf8_lossy(t).into_owned(),
        Value::Blob(b) => format!("blob of {}", b.len()),
    };
    row.iter().map(one).collect::<Vec<_>>().join("|")
}

/// The engine with this name, of those that are always there.
pub fn find(name: &str) -> Result<Box<dyn Engine>> {
    match name {
        "iolite" => Ok(Box::new(Iolite)),
        "stock" => Ok(Box::new(Stock)),
        _ => Err(format!("no such engine: {name}").into()),
    }
}

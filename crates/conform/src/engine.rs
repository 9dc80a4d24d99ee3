//! One of the two engines: what a program that works on a file needs of it.
//!
//! Within one process only one of them may have a file open: closing it in the other one would drop its locks.

/// A connection.
pub enum Db {
    /// Ours.
    Iolite(iolite::engine::Connection),
    /// Stock SQLite's.
    Stock(iolite_stock::Connection),
}

/// What a statement may answer instead of being done.
#[derive(Debug)]
pub enum Trouble {
    /// Somebody is in the way.
    Busy,
    /// Anything else.
    Other(String),
}

impl Db {
    /// Opens a file with the engine of this name: `stock`, or any other for ours.
    pub fn open(engine: &str, path: &str) -> Result<Db, String> {
        match engine {
            "stock" => iolite_stock::Connection::open(path).map(Db::Stock).map_err(|e| format!("{e:?}")),
            _ => iolite::engine::Connection::open(path).map(Db::Iolite).map_err(|e| format!("{e:?}")),
        }
    }

    /// Runs statements.
    pub fn run(&self, sql: &str) -> Result<(), Trouble> {
        match self {
            Db::Iolite(c) => c.execute_batch(sql).map_err(|e| match e.code().primary() {
                iolite::Code::Busy => Trouble::Busy,
                _ => Trouble::Other(format!("{e:?}")),
            }),
            Db::Stock(c) => c.execute_batch(sql).map_err(|e| match e.code & 0xff {
                5 => Trouble::Busy,
                _ => Trouble::Other(format!("{e:?}")),
            }),
        }
    }

    /// The first row of a query, as numbers.
    pub fn numbers(&self, sql: &str) -> Result<Vec<i64>, Trouble> {
        match self {
            Db::Iolite(c) => match c.query(sql, &[]) {
                Ok(rows) => Ok(rows.first().map_or(Vec::new(), |r| r.iter().map(|v| v.to_int()).collect())),
                Err(e) if e.code().primary() == iolite::Code::Busy => Err(Trouble::Busy),
                Err(e) => Err(Trouble::Other(format!("{e:?}"))),
            },
            Db::Stock(c) => match c.query(sql) {
                Ok(rows) => Ok(rows.first().map_or(Vec::new(), |r| {
                    r.iter().map(|v| if let iolite_stock::Value::Int(n) = v { *n } else { -1 }).collect()
                })),
                Err(e) if e.code & 0xff == 5 => Err(Trouble::Busy),
                Err(e) => Err(Trouble::Other(format!("{e:?}"))),
            },
        }
    }
}

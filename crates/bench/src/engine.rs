//! Two engines behind one face: just what the cases need.

/// Errors are texts here.
pub type Result<T> = std::result::Result<T, String>;

/// A database of one of the engines.
pub enum Engine {
    /// iolite.
    Iolite(iolite::Connection),
    /// Stock SQLite.
    Stock(iolite_stock::Connection),
}

/// A prepared statement of one of the engines.
pub enum Query<'e> {
    /// iolite's.
    Iolite(Box<iolite::Statement>),
    /// Stock SQLite's.
    Stock(iolite_stock::Statement<'e>),
}

/// A parameter.
#[derive(Clone, Debug)]
pub enum Param {
    /// An integer.
    Int(i64),
    /// A text.
    Text(String),
}

impl Engine {
    /// Opens a database.
    pub fn open(engine: &str, path: &str) -> Result<Engine> {
        match engine {
            "iolite" => iolite::Connection::open(path).map(Engine::Iolite).map_err(|e| e.to_string()),
            "stock" => iolite_stock::Connection::open(path).map(Engine::Stock).map_err(|e| e.message),
            _ => Err(format!("no such engine: {engine}")),
        }
    }

    /// Runs a text of statements.
    pub fn batch(&self, sql: &str) -> Result<()> {
        match self {
            Engine::Iolite(c) => c.execute_batch(sql).map_err(|e| format!("{e}: {sql}")),
            Engine::Stock(c) => c.execute_batch(sql).map_err(|e| format!("{}: {sql}", e.message)),
        }
    }

    /// A query's rows as text, a line each.
    pub fn rows(&self, sql: &str) -> Result<String> {
        use std::fmt::Write;
        let mut out = String::new();
        match self {
            Engine::Iolite(c) => {
                let mut s = c.prepare(sql).map_err(|e| format!("{e}: {sql}"))?;
                while s.step().map_err(|e| format!("{e}: {sql}"))? == iolite::Step::Row {
                    for v in s.row() {
                        let _ = write!(out, "{}|", v.to_string_lossy());
                    }
                    out.push('\n');
                }
            }
            Engine::Stock(c) => {
                for row in c.query(sql).map_err(|e| format!("{}: {sql}", e.message))? {
                    for v in row {
                        let v = match v {
                            iolite_stock::Value::Null => iolite::Value::Null,
                            iolite_stock::Value::Int(i) => iolite::Value::Int(i),
                            iolite_stock::Value::Real(r) => iolite::Value::Real(r),
                            iolite_stock::Value::Text(t) => {
                                iolite::Value::text(t).map_err(|e| e.to_string())?
                            }
                            iolite_stock::Value::Blob(b) => {
                                iolite::Value::blob(&b).map_err(|e| e.to_string())?
                            }
                        };
                        let _ = write!(out, "{}|", v.to_string_lossy());
                    }
                    out.push('\n');
                }
            }
        }
        Ok(out)
    }

    /// Prepares a statement.
    pub fn prepare(&self, sql: &str) -> Result<Query<'_>> {
        match self {
            Engine::Iolite(c) => {
                c.prepare(sql).map(|s| Query::Iolite(Box::new(s))).map_err(|e| format!("{e}: {sql}"))
            }
            Engine::Stock(c) => c.prepare(sql).map(Query::Stock).map_err(|e| format!("{}: {sql}", e.message)),
        }
    }
}

impl Query<'_> {
    /// Runs with parameters to the end; answers a sum over all values seen, so that nothing is left out.
    #[inline]
    pub fn run(&mut self, params: &[Param]) -> Result<i64> {
        let mut sum = 0i64;
        match self {
            Query::Iolite(s) => {
                for (i, p) in params.iter().enumerate() {
                    let v = match p {
                        Param::Int(n) => iolite::Value::Int(*n),
                        Param::Text(t) => iolite::Value::text(t).map_err(|e| e.to_string())?,
                    };
                    s.bind(i + 1, v).map_err(|e| e.to_string())?;
                }
                while s.step().map_err(|e| e.to_string())? == iolite::Step::Row {
                    for v in s.row() {
                        sum = sum.wrapping_add(match v {
                            iolite::Value::Int(n) => *n,
                            iolite::Value::Real(r) => *r as i64,
                            iolite::Value::Text(b, _) | iolite::Value::Blob(b, _) => b.len() as i64,
                            iolite::Value::Null => 0,
                        });
                    }
                }
                s.reset().map_err(|e| e.to_string())?;
            }
            Query::Stock(s) => {
                for (i, p) in params.iter().enumerate() {
                    let v = match p {
                        Param::Int(n) => iolite_stock::Value::Int(*n),
                        Param::Text(t) => iolite_stock::Value::Text(t.clone().into_bytes()),
                    };
                    s.bind(i + 1, &v).map_err(|e| e.message)?;
                }
                let n = s.column_count();
                while s.step().map_err(|e| e.message)? {
                    for i in 0..n {
                        sum = sum.wrapping_add(s.sum_of(i));
                    }
                }
                s.reset();
            }
        }
        Ok(sum)
    }
}

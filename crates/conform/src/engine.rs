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

impl From<iolite::engine::Error> for Trouble {
    fn from(e: iolite::engine::Error) -> Trouble {
        match e.code().primary() {
            iolite::engine::Code::Busy => Trouble::Busy,
            _ => Trouble::Other(format!("{e:?}")),
        }
    }
}

impl From<iolite_stock::Error> for Trouble {
    fn from(e: iolite_stock::Error) -> Trouble {
        if e.code & 0xff == 5 { Trouble::Busy } else { Trouble::Other(format!("{e:?}")) }
    }
}

/// A row's value: database, table, column, rowid.
pub type Cell<'a> = (&'a str, &'a str, &'a str, i64);

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
            Db::Iolite(c) => Ok(c.execute_batch(sql)?),
            Db::Stock(c) => Ok(c.execute_batch(sql)?),
        }
    }

    /// The first row of a query, as numbers.
    pub fn numbers(&self, sql: &str) -> Result<Vec<i64>, Trouble> {
        match self {
            Db::Iolite(c) => {
                let rows = c.query(sql, &[])?;
                Ok(rows.first().map_or(Vec::new(), |r| r.iter().map(|v| v.to_int()).collect()))
            }
            Db::Stock(c) => {
                let number = |v: &_| if let iolite_stock::Value::Int(n) = v { *n } else { -1 };
                Ok(c.query(sql)?.first().map_or(Vec::new(), |r| r.iter().map(number).collect()))
            }
        }
    }

    /// An online backup of a database into a new file, so many pages at a time. `pause` is called between the steps, and
    /// says whether to go on.
    pub fn back_up(
        &self,
        database: &str,
        to: &str,
        pages: i32,
        mut pause: impl FnMut() -> bool,
    ) -> Result<bool, Trouble> {
        let mut steps = |step: &mut dyn FnMut() -> Result<bool, Trouble>| loop {
            match step() {
                Ok(true) => return Ok(true),
                Ok(false) | Err(Trouble::Busy) if pause() => {}
                Ok(false) | Err(Trouble::Busy) => return Ok(false),
                Err(e) => return Err(e),
            }
        };
        match self {
            Db::Iolite(c) => {
                let target = iolite::engine::Connection::open(to)?;
                let mut b = target.backup("main", c, database)?;
                steps(&mut || Ok(b.step(pages)?))
            }
            Db::Stock(c) => {
                let target = iolite_stock::Connection::open(to)?;
                let mut b = c.backup(database, &target)?;
                steps(&mut || Ok(b.step(pages)?))
            }
        }
    }

    /// Overwrites all bytes of a value through a handle, so many at a time.
    pub fn overwrite(
        &self,
        (database, table, column, rowid): Cell<'_>,
        byte: u8,
        by: usize,
    ) -> Result<usize, Trouble> {
        let piece = vec![byte; by];
        let pieces = |len: usize| (0..len).step_by(by).map(move |at| (at, by.min(len - at)));
        match self {
            Db::Iolite(c) => {
                let mut b = c.blob_open(Some(database), table, column, rowid, true)?;
                for (at, n) in pieces(b.len()) {
                    b.write(at, &piece[..n])?;
                }
                let len = b.len();
                b.close()?;
                Ok(len)
            }
            Db::Stock(c) => {
                let mut b = c.blob_open(database, table, column, rowid, true)?;
                for (at, n) in pieces(b.len()) {
                    b.write(at, &piece[..n])?;
                }
                Ok(b.len())
            }
        }
    }

    /// A value, read through a handle, so many bytes at a time.
    pub fn value(&self, (database, table, column, rowid): Cell<'_>, by: usize) -> Result<Vec<u8>, Trouble> {
        let mut out = Vec::new();
        match self {
            Db::Iolite(c) => {
                let mut b = c.blob_open(Some(database), table, column, rowid, false)?;
                out.resize(b.len(), 0);
                out.chunks_mut(by).enumerate().try_for_each(|(i, p)| b.read(i * by, p))?;
                b.close()?;
            }
            Db::Stock(c) => {
                let mut b = c.blob_open(database, table, column, rowid, false)?;
                out.resize(b.len(), 0);
                out.chunks_mut(by).enumerate().try_for_each(|(i, p)| b.read(i * by, p))?;
            }
        }
        Ok(out)
    }
}

//! A connection that can move between threads.
//!
//! The engine below counts references without locks: programs, pages that values lie in, functions, hooks. Two threads must never
//! touch such a count at the same time. They do not, since all counted things of a connection are reached through it alone:
//!
//! - [`Connection`] owns the one handle of its engine. It is no `Clone` and no `Sync`, and gives the handle to nobody outside this crate.
//! - Whatever holds handles of the engine borrows the connection: statements, rows, blobs, backups, transactions. While one of
//!   them is there, the connection cannot move. One that is leaked (`mem::forget`) is never touched again, and what it holds
//!   stays counted.
//! - What is handed out by value is a copy: [`Value`](crate::Value) owns its bytes, names are `String`s, an [`Error`] is plain data. What a program
//!   looks at where it is ([`ValueRef`](crate::ValueRef), `&str`) is borrowed.
//! - What the program hands in (functions, collating sequences, hooks) is `Send` and owned, and sees values only by
//!   [`ValueRef`](crate::ValueRef); what they answer is copied.
//! - What connections of a process share (files' locks, cached pages, the write queue) is counted with locks (`Arc`) and guarded by
//!   mutexes, none of which is held between calls. The counters of memory that a thread keeps may lie on another one than that of
//!   the memory: only their sum has a meaning.

use super::interrupt::InterruptHandle;
use super::params::Params;
use super::row::Row;
use super::statement::Statement;
use crate::{engine, open::OpenFlags};
use iolite_base::{Code, Error, Limit, Result};
use iolite_btree::{CheckpointMode, CheckpointResult, TxnState};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

pub(super) type Trace = Rc<RefCell<dyn FnMut(&str) + Send>>;
pub(super) type Profile = Rc<RefCell<dyn FnMut(&str, Duration) + Send>>;

/// A connection to a database, and to those attached to it.
///
/// It can move between threads; to work on one database from several threads at once, give each a connection.
///
/// ```
/// # fn main() -> iolite::Result<()> {
/// use iolite::{Connection, params};
///
/// let db = Connection::open_in_memory()?;
/// db.execute("CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, age INTEGER)", [])?;
/// db.execute("INSERT INTO person(name, age) VALUES (?1, ?2)", params!["Ada", 36])?;
/// let age: i64 = db.query_row("SELECT age FROM person WHERE name = ?1", ["Ada"], |row| row.get(0))?;
/// assert_eq!(age, 36);
/// # Ok(())
/// # }
/// ```
///
/// It cannot be shared, and what borrows it stays on its thread:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<iolite::Connection>();
/// ```
///
/// ```compile_fail,E0505
/// let db = iolite::Connection::open_in_memory().unwrap();
/// let s = db.prepare("SELECT 1").unwrap();
/// std::thread::spawn(move || drop(db));
/// drop(s);
/// ```
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<iolite::Statement<'static>>();
/// ```
pub struct Connection {
    pub(crate) engine: engine::Connection,
    pub(super) trace: RefCell<Option<Trace>>,
    pub(super) profile: RefCell<Option<Profile>>,
    /// Whether there is a function to tell of statements.
    pub(super) traced: Cell<bool>,
}

// SAFETY: the counts without locks that are reached from `engine` are reached from nowhere else while nothing borrows the
// connection, and what borrows it keeps it from moving: the whole argument is at the module's head. The callbacks are `Send`.
#[allow(unsafe_code)]
unsafe impl Send for Connection {}

impl Connection {
    fn new(engine: engine::Connection) -> Connection {
        Connection {
            engine,
            trace: RefCell::default(),
            profile: RefCell::default(),
            traced: Cell::new(false),
        }
    }

    /// Opens a database file, creating it if it is missing. An empty path is a private database that vanishes when it is closed,
    /// `:memory:` one that has no file at all, and a `file:` URI may say more. The connection waits up to five seconds for locks, keeps
    /// its own for some milliseconds after a statement (`PRAGMA lock_lease_ms`), and leaves checkpoints to a thread.
    ///
    /// ```
    /// # fn main() -> iolite::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-open-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db");
    /// let db = iolite::Connection::open(&path)?;
    /// db.execute_batch("CREATE TABLE IF NOT EXISTS note(text)")?;
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Connection> {
        let c = Connection::open_with_flags(path, OpenFlags::default())?;
        c.engine.tune()?;
        c.busy_timeout(Duration::from_secs(5))?;
        Ok(c)
    }

    /// A private database in memory.
    ///
    /// ```
    /// let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a)")?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn open_in_memory() -> Result<Connection> {
        Connection::open(":memory:")
    }

    /// Opens a database as `flags` say, with the settings of stock SQLite: no lock is kept after a statement, and checkpoints run
    /// on the thread that commits.
    ///
    /// ```
    /// use iolite::{Code, Connection, OpenFlags};
    ///
    /// let flags = OpenFlags { create: false, ..OpenFlags::default() };
    /// let e = Connection::open_with_flags("/no/such/folder/my.db", flags).err().unwrap();
    /// assert_eq!(e.code(), Code::Cantopen);
    /// ```
    pub fn open_with_flags(path: impl AsRef<Path>, flags: OpenFlags) -> Result<Connection> {
        let name = crate::open::bytes_of(path.as_ref());
        engine::Connection::open_interruptible(&name, flags, Default::default(), None).map(Connection::new)
    }

    /// Closes the connection. A transaction that is open is taken back. Dropping it does the same, and hears of no error.
    ///
    /// ```
    /// iolite::Connection::open_in_memory()?.close()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        self.engine.0.close()
    }

    /// Runs one statement that answers no rows; says how many rows it changed.
    ///
    /// ```
    /// # use iolite::{Connection, Code, params, named_params};
    /// let db = Connection::open_in_memory()?;
    /// db.execute("CREATE TABLE t(a, b)", [])?;
    /// assert_eq!(db.execute("INSERT INTO t VALUES (?1, ?2), (3, NULL)", params![1, "one"])?, 2);
    /// assert_eq!(db.execute("UPDATE t SET b = :b WHERE a = :a", named_params! {":a": 3, ":b": "three"})?, 1);
    ///
    /// // Rows must be asked for, and a second statement is not passed over.
    /// assert!(db.execute("SELECT 1", []).is_err());
    /// assert_eq!(db.execute("DELETE FROM t; DELETE FROM t", []).unwrap_err().code(), Code::Misuse);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn execute<P: Params>(&self, sql: &str, params: P) -> Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    /// Runs all statements of a text, dropping their rows.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        let mut rest = sql;
        while let Some((s, tail)) = self.engine.prepare_next(rest)? {
            let mut s = self.allowed(s)?;
            while s.step()? {}
            s.reset()?;
            rest = tail;
        }
        Ok(())
    }

    /// The first row of a query, as `f` reads it. Without one, an error with code [`Code::Done`], which
    /// [`OptionalExtension`](crate::OptionalExtension) turns into `None`.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let (a, b): (i64, String) = db.query_row("SELECT 1, 'x'", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    /// assert_eq!((a, b.as_str()), (1, "x"));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query_row<T, P, F>(&self, sql: &str, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        self.prepare(sql)?.query_row(params, f)
    }

    /// As [`Connection::query_row`], for a function with an error type of its own.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let n: Result<u8, Box<dyn std::error::Error>> = db.query_row_and_then("SELECT '12'", [], |row| {
    ///     Ok(row.get::<_, String>(0)?.parse()?)
    /// });
    /// assert_eq!(n.unwrap(), 12);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query_row_and_then<T, E, P, F>(&self, sql: &str, params: P, f: F) -> Result<T, E>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T, E>,
        E: From<Error>,
    {
        let mut s = self.prepare(sql)?;
        let mut rows = s.query(params)?;
        f(rows.next()?.ok_or_else(super::row::no_row)?)
    }

    /// Prepares a statement. A text with a second statement is refused (`SQLITE_MISUSE`). The program of a text that was prepared
    /// lately is used again; `PRAGMA plan_cache` says how many are kept.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT value FROM (SELECT 1 AS value UNION SELECT 2) WHERE value >= ?1")?;
    /// let values = s.query_map([1], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    /// assert_eq!(values, [1, 2]);
    /// assert!(db.prepare("SELECT 1; SELECT 2").is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        self.allowed(self.engine.prepare(sql)?)
    }

    /// The same as [`Connection::prepare`], which keeps programs by itself.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.prepare_cached("SELECT 1")?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        self.prepare(sql)
    }

    /// Rows changed by the last INSERT, UPDATE or DELETE.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")?;
    /// assert_eq!(db.changes(), 2);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn changes(&self) -> u64 {
        self.engine.changes() as u64
    }

    /// Rows changed since the connection was opened, those of triggers included.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); DELETE FROM t")?;
    /// assert_eq!(db.total_changes(), 4);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn total_changes(&self) -> u64 {
        self.engine.total_changes() as u64
    }

    /// The rowid of the last INSERT.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY); INSERT INTO t VALUES (7)")?;
    /// assert_eq!(db.last_insert_rowid(), 7);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn last_insert_rowid(&self) -> i64 {
        self.engine.last_insert_rowid()
    }

    /// Whether no transaction is open.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("BEGIN")?;
    /// assert!(!db.is_autocommit());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn is_autocommit(&self) -> bool {
        self.engine.is_autocommit()
    }

    /// The state of the transaction on one database, or the highest of all. An error if there is no such database.
    ///
    /// ```
    /// # use iolite::TxnState;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("BEGIN IMMEDIATE")?;
    /// assert_eq!(db.transaction_state(Some("main"))?, TxnState::Write);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn transaction_state(&self, database: Option<&str>) -> Result<TxnState> {
        self.engine.txn_state(database).ok_or_else(|| unknown(database))
    }

    /// The file of the main database; `None` where there is none.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.path(), None);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn path(&self) -> Option<String> {
        let name = self.engine.file_name("main").ok().filter(|n| !n.is_empty())?;
        Some(String::from_utf8_lossy(&name).into_owned())
    }

    /// The name of the database with this number, if there is one: 0 is `main`, 1 is `temp`, then come those attached.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.db_name(0).as_deref(), Some("main"));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn db_name(&self, number: usize) -> Option<String> {
        self.engine.database_name(number).map(|n| n.to_string())
    }

    /// Waits up to this long for locks of others, before a statement answers `SQLITE_BUSY`.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.busy_timeout(std::time::Duration::from_secs(5))?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn busy_timeout(&self, timeout: Duration) -> Result<()> {
        self.engine.busy_timeout(timeout.as_millis().min(i32::MAX as u128) as u32)
    }

    /// A handle by which another thread stops what runs here.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let handle = db.get_interrupt_handle();
    /// std::thread::spawn(move || handle.interrupt()).join().unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle::new(self.engine.interrupt_handle())
    }

    /// A limit on what statements may be.
    ///
    /// ```
    /// # use iolite::Limit;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.set_limit(Limit::SqlLength, 10);
    /// assert_eq!(db.limit(Limit::SqlLength), 10);
    /// assert!(db.prepare("SELECT 1, 2, 3, 4").is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn limit(&self, which: Limit) -> i32 {
        self.engine.limit(which, None)
    }

    /// Sets a limit, and answers what it was.
    ///
    /// ```
    /// # use iolite::Limit;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let before = db.set_limit(Limit::Attached, 2);
    /// assert_eq!(db.set_limit(Limit::Attached, before), 2);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn set_limit(&self, which: Limit, value: i32) -> i32 {
        self.engine.limit(which, Some(value))
    }

    /// Writes the changed pages of the open transaction to the database's file early. `SQLITE_BUSY` if that was not possible everywhere.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.cache_flush()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn cache_flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Copies the log of a database, or of all, back into its file.
    ///
    /// ```
    /// # use iolite::CheckpointMode;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert!(!db.checkpoint(Some("main"), CheckpointMode::Passive)?.busy);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn checkpoint(&self, database: Option<&str>, mode: CheckpointMode) -> Result<CheckpointResult> {
        self.engine.checkpoint(database, mode)
    }

    /// Whether a table or view of this name is there.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a)")?;
    /// assert!(db.table_exists(None, "T")? && !db.table_exists(None, "u")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn table_exists(&self, database: Option<&str>, table: &str) -> Result<bool> {
        let schema = super::named::schema_prefix(database);
        self.query_row(
            &format!("SELECT count(*) FROM {schema}sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE"),
            [table],
            |row| row.get(0),
        )
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A statement that was leaked keeps its count: the files must not stay open for it.
        let _ = self.engine.0.close();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("path", &self.path()).finish()
    }
}

fn unknown(database: Option<&str>) -> Error {
    Error::new(Code::Error, format!("unknown database {}", database.unwrap_or_default()))
}

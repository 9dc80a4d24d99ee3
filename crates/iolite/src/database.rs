//! A database as several threads know it: a name from which each makes connections of its own, and the one write
//! queue they share.
//!
//! What always holds: a [`Database`] can be shared between threads, a [`Connection`] can only move from one to another;
//! at most one write queue of a `Database` runs at a time, and it ends with its last [`Writer`].

use crate::api::Connection;
use crate::writer::{Queue, Writer, WriterOptions};
use iolite_base::Result;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A database that threads of a process share. Clones are the same database.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-database-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
/// let other = db.clone();
/// let seen = std::thread::spawn(move || other.connect()?.table_exists(None, "t"));
/// assert!(seen.join().unwrap()?);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone)]
pub struct Database(Arc<Shared>);

struct Shared {
    name: String,
    queue: Mutex<Weak<Queue>>,
}

impl Database {
    /// Names a database file, creating it if it is missing. `SQLITE_CANTOPEN` if it cannot be opened;
    /// `SQLITE_MISUSE` for a database in memory, which is one connection's own.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-db-open-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// assert!(Database::open(":memory:").is_err());
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn open(name: &str) -> Result<Database> {
        let c = Connection::open(name)?;
        if c.engine.btree("main")?.is_memory() || name.is_empty() {
            return Err(iolite_base::Error::new(
                iolite_base::Code::Misuse,
                "a database in memory belongs to one connection",
            ));
        }
        c.close()?;
        Ok(Database(Arc::new(Shared { name: name.into(), queue: Mutex::default() })))
    }

    /// A connection, for the thread that asks. It waits up to five seconds for locks.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-connect-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// let connections = [db.connect()?, db.connect()?];
    /// # drop(connections);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn connect(&self) -> Result<Connection> {
        Connection::open(&self.0.name)
    }

    /// The write queue, started if it does not run.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-db-writer-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// let writer = db.writer()?;
    /// writer.run(|c| c.execute_batch("CREATE TABLE t(a)"))?;
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn writer(&self) -> Result<Writer> {
        self.writer_with(WriterOptions::default())
    }

    /// As [`Database::writer`]; the options count if this call starts the queue.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-db-with-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// let writer = db.writer_with(WriterOptions { capacity: 10, ..WriterOptions::default() })?;
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn writer_with(&self, options: WriterOptions) -> Result<Writer> {
        let mut running = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(w) = running.upgrade().and_then(Writer::join) {
            return Ok(w);
        }
        let own = self.clone();
        let (writer, queue) = Writer::start(move || own.connect(), options)?;
        *running = queue;
        Ok(writer)
    }
}

//! Transactions and savepoints that end with their scope.

use super::connection::Connection;
use iolite_base::Result;
use std::ops::Deref;

/// When a transaction takes its locks.
///
/// ```
/// # use iolite::{Connection, TransactionBehavior};
/// let mut db = Connection::open_in_memory()?;
/// let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// tx.commit()?;
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TransactionBehavior {
    /// When something is first read or written.
    #[default]
    Deferred,
    /// The lock to write, at once.
    Immediate,
    /// At once, and nobody may read in rollback-journal modes.
    Exclusive,
}

/// What happens to a transaction or savepoint that is dropped.
///
/// ```
/// # use iolite::{Connection, DropBehavior};
/// let mut db = Connection::open_in_memory()?;
/// {
///     let mut tx = db.transaction()?;
///     tx.set_drop_behavior(DropBehavior::Commit);
///     tx.execute("CREATE TABLE t(a)", [])?;
/// }
/// assert!(db.table_exists(None, "t")?);
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DropBehavior {
    /// It is taken back.
    #[default]
    Rollback,
    /// It is committed; if that fails, taken back.
    Commit,
    /// Nothing: it stays open.
    Ignore,
    /// A panic.
    Panic,
}

/// A transaction. It is taken back when it is dropped, unless [`Transaction::commit`] or
/// [`Transaction::set_drop_behavior`] say otherwise.
///
/// ```
/// # use iolite::{Connection, Result};
/// fn transfer(db: &mut Connection, amount: i64) -> Result<()> {
///     let tx = db.transaction()?;
///     tx.execute("UPDATE account SET balance = balance - ?1 WHERE name = 'a'", [amount])?;
///     tx.execute("UPDATE account SET balance = balance + ?1 WHERE name = 'b'", [amount])?;
///     tx.commit()
/// }
///
/// let mut db = Connection::open_in_memory()?;
/// db.execute_batch(
///     "CREATE TABLE account(name TEXT, balance INTEGER CHECK (balance >= 0));
///      INSERT INTO account VALUES ('a', 10), ('b', 0)",
/// )?;
/// transfer(&mut db, 4)?;
/// assert!(transfer(&mut db, 40).is_err());
/// let left: i64 = db.query_row("SELECT balance FROM account WHERE name = 'a'", [], |row| row.get(0))?;
/// assert_eq!((left, db.is_autocommit()), (6, true));
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction<'conn> {
    conn: &'conn Connection,
    on_drop: DropBehavior,
}

/// A savepoint: a transaction inside of another one, or the outermost one. It is taken back when it is dropped.
///
/// ```
/// # use iolite::Connection;
/// let mut db = Connection::open_in_memory()?;
/// let mut tx = db.transaction()?;
/// tx.execute_batch("CREATE TABLE t(a)")?;
/// {
///     let sp = tx.savepoint()?;
///     sp.execute("INSERT INTO t VALUES (1)", [])?;
/// }
/// let kept = tx.savepoint()?;
/// kept.execute("INSERT INTO t VALUES (2)", [])?;
/// kept.commit()?;
/// tx.commit()?;
/// assert_eq!(db.query_row("SELECT group_concat(a) FROM t", [], |row| row.get::<_, String>(0))?, "2");
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Debug)]
pub struct Savepoint<'conn> {
    conn: &'conn Connection,
    name: String,
    on_drop: DropBehavior,
    ended: bool,
}

impl Connection {
    /// Begins a transaction.
    ///
    /// ```
    /// # use iolite::Connection;
    /// let mut db = Connection::open_in_memory()?;
    /// let tx = db.transaction()?;
    /// tx.execute_batch("CREATE TABLE t(a)")?;
    /// tx.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(self, TransactionBehavior::Deferred)
    }

    /// Begins a transaction that takes its locks as `behavior` says.
    ///
    /// ```
    /// # use iolite::TransactionBehavior;
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let tx = db.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    /// tx.rollback()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn transaction_with_behavior(&mut self, behavior: TransactionBehavior) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(self, behavior)
    }

    /// As [`Connection::transaction`], where the connection is borrowed elsewhere, too. An error if a transaction is open.
    ///
    /// ```
    /// # use iolite::Connection;
    /// let db = Connection::open_in_memory()?;
    /// let tx = db.unchecked_transaction()?;
    /// assert!(db.unchecked_transaction().is_err());
    /// tx.rollback()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn unchecked_transaction(&self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(self, TransactionBehavior::Deferred)
    }

    /// Opens a savepoint, which begins a transaction if none is open.
    ///
    /// ```
    /// # use iolite::Connection;
    /// let mut db = Connection::open_in_memory()?;
    /// let sp = db.savepoint()?;
    /// sp.execute_batch("CREATE TABLE t(a)")?;
    /// sp.commit()?;
    /// assert!(db.is_autocommit() && db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::open(self, 0, None)
    }

    /// Opens a savepoint with a name of one's own.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let sp = db.savepoint_with_name("before the import")?;
    /// sp.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint_with_name(&mut self, name: impl Into<String>) -> Result<Savepoint<'_>> {
        Savepoint::open(self, 0, Some(name.into()))
    }
}

impl<'conn> Transaction<'conn> {
    /// Begins a transaction where the compiler does not see that none is open. An error if one is.
    ///
    /// ```
    /// # use iolite::{Transaction, TransactionBehavior};
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let tx = Transaction::new_unchecked(&db, TransactionBehavior::Immediate)?;
    /// tx.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn new_unchecked(
        conn: &'conn Connection,
        behavior: TransactionBehavior,
    ) -> Result<Transaction<'conn>> {
        conn.execute_batch(match behavior {
            TransactionBehavior::Deferred => "BEGIN DEFERRED",
            TransactionBehavior::Immediate => "BEGIN IMMEDIATE",
            TransactionBehavior::Exclusive => "BEGIN EXCLUSIVE",
        })?;
        Ok(Transaction { conn, on_drop: DropBehavior::Rollback })
    }

    /// Opens a savepoint in it.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut tx = db.transaction()?;
    /// tx.savepoint()?.commit()?;
    /// tx.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::open(self.conn, 1, None)
    }

    /// Opens a savepoint with a name of one's own.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut tx = db.transaction()?;
    /// tx.savepoint_with_name("half")?.commit()?;
    /// tx.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint_with_name(&mut self, name: impl Into<String>) -> Result<Savepoint<'_>> {
        Savepoint::open(self.conn, 1, Some(name.into()))
    }

    /// What happens when it is dropped.
    ///
    /// ```
    /// # use iolite::DropBehavior;
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.transaction()?.drop_behavior(), DropBehavior::Rollback);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn drop_behavior(&self) -> DropBehavior {
        self.on_drop
    }

    /// Says what happens when it is dropped.
    ///
    /// ```
    /// # use iolite::DropBehavior;
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut tx = db.transaction()?;
    /// tx.set_drop_behavior(DropBehavior::Commit);
    /// tx.execute_batch("CREATE TABLE t(a)")?;
    /// drop(tx);
    /// assert!(db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn set_drop_behavior(&mut self, behavior: DropBehavior) {
        self.on_drop = behavior;
    }

    /// Commits. After an error that leaves the transaction open, it is taken back.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let tx = db.transaction()?;
    /// tx.execute_batch("CREATE TABLE t(a)")?;
    /// tx.commit()?;
    /// assert!(db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn commit(mut self) -> Result<()> {
        let done = self.conn.execute_batch("COMMIT");
        if done.is_ok() {
            self.on_drop = DropBehavior::Ignore;
        }
        done
    }

    /// Takes it back.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let tx = db.transaction()?;
    /// tx.execute_batch("CREATE TABLE t(a)")?;
    /// tx.rollback()?;
    /// assert!(!db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn rollback(mut self) -> Result<()> {
        self.on_drop = DropBehavior::Ignore;
        self.conn.execute_batch("ROLLBACK")
    }

    /// Ends it as dropping would, and hears of an error.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// db.transaction()?.finish()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        // It may have ended by itself: an error can take the whole transaction back.
        if self.conn.is_autocommit() {
            return Ok(());
        }
        match std::mem::replace(&mut self.on_drop, DropBehavior::Ignore) {
            DropBehavior::Rollback => self.conn.execute_batch("ROLLBACK"),
            DropBehavior::Commit => {
                let done = self.conn.execute_batch("COMMIT");
                if done.is_err() && !self.conn.is_autocommit() {
                    self.conn.execute_batch("ROLLBACK")?;
                }
                done
            }
            DropBehavior::Ignore => Ok(()),
            DropBehavior::Panic => panic!("a transaction was dropped while it was open"),
        }
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Whatever goes wrong at this point, the next use of the connection reports.
        let _ = self.end();
    }
}

impl<'conn> Savepoint<'conn> {
    fn open(conn: &'conn Connection, depth: u32, name: Option<String>) -> Result<Savepoint<'conn>> {
        let name = name.unwrap_or_else(|| format!("iolite_savepoint_{depth}"));
        conn.execute_batch(&format!("SAVEPOINT {}", super::named::quoted(&name)))?;
        Ok(Savepoint { conn, name, on_drop: DropBehavior::Rollback, ended: false })
    }

    /// Opens a savepoint in it.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut sp = db.savepoint()?;
    /// sp.savepoint()?.commit()?;
    /// sp.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        // The innermost of a name is meant: one name does for all.
        Savepoint::open(self.conn, 1, None)
    }

    /// Opens a savepoint with a name of one's own.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut sp = db.savepoint()?;
    /// sp.savepoint_with_name("inner")?.commit()?;
    /// sp.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn savepoint_with_name(&mut self, name: impl Into<String>) -> Result<Savepoint<'_>> {
        Savepoint::open(self.conn, 1, Some(name.into()))
    }

    /// What happens when it is dropped.
    ///
    /// ```
    /// # use iolite::DropBehavior;
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.savepoint()?.drop_behavior(), DropBehavior::Rollback);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn drop_behavior(&self) -> DropBehavior {
        self.on_drop
    }

    /// Says what happens when it is dropped.
    ///
    /// ```
    /// # use iolite::DropBehavior;
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut sp = db.savepoint()?;
    /// sp.set_drop_behavior(DropBehavior::Commit);
    /// sp.execute_batch("CREATE TABLE t(a)")?;
    /// drop(sp);
    /// assert!(db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn set_drop_behavior(&mut self, behavior: DropBehavior) {
        self.on_drop = behavior;
    }

    /// Keeps what was done since; if it is the outermost one, commits.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let sp = db.savepoint()?;
    /// sp.execute_batch("CREATE TABLE t(a)")?;
    /// sp.commit()?;
    /// assert!(db.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn commit(mut self) -> Result<()> {
        self.release()
    }

    /// Takes back what was done since; the savepoint stays open.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let mut sp = db.savepoint()?;
    /// sp.execute_batch("CREATE TABLE t(a)")?;
    /// sp.rollback()?;
    /// assert!(!sp.table_exists(None, "t")?);
    /// sp.commit()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn rollback(&mut self) -> Result<()> {
        self.run("ROLLBACK TO")
    }

    /// Ends it as dropping would, and hears of an error.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// db.savepoint()?.finish()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn run(&self, what: &str) -> Result<()> {
        self.conn.execute_batch(&format!("{what} {}", super::named::quoted(&self.name)))
    }

    fn release(&mut self) -> Result<()> {
        self.run("RELEASE")?;
        self.ended = true;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.ended || self.conn.is_autocommit() {
            return Ok(());
        }
        match std::mem::replace(&mut self.on_drop, DropBehavior::Ignore) {
            DropBehavior::Rollback => self.rollback().and_then(|()| self.release()),
            DropBehavior::Commit => self.release().or_else(|e| {
                self.rollback().and_then(|()| self.release())?;
                Err(e)
            }),
            DropBehavior::Ignore => Ok(()),
            DropBehavior::Panic => panic!("a savepoint was dropped while it was open"),
        }
    }
}

impl Deref for Savepoint<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        // Whatever goes wrong at this point, the next use of the connection reports.
        let _ = self.end();
    }
}

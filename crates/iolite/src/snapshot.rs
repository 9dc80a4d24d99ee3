//! States of a database's log by name: `sqlite3_snapshot_get` and its kin (documentation page `c3ref/snapshot`).

use crate::connection::Connection;
use iolite_base::{Code, Result};
use iolite_btree::{Btree, SnapshotName, TxnState};

impl Connection {
    /// The database, for who keeps a transaction open and has not written in it.
    fn reading_only(&self, database: &str) -> Result<Btree> {
        let at = self.0.catalog.borrow().database(database).ok_or(Code::Error)?;
        let b = self.0.btree_if_open(at).ok_or(Code::Error)?;
        if self.is_autocommit() || b.txn_state() == TxnState::Write {
            return Err(Code::Error.into());
        }
        Ok(b)
    }

    /// The name of the state that the transaction reads; it begins to read, if it did not. `SQLITE_ERROR` in autocommit mode,
    /// while writing, and without a log that somebody has written to.
    pub fn snapshot(&self, database: &str) -> Result<SnapshotName> {
        let b = self.reading_only(database)?;
        b.begin_read()?;
        b.snapshot_name()
    }

    /// Reads the state that was named from now on, until the transaction ends. `SQLITE_ERROR_SNAPSHOT` if it is gone,
    /// `SQLITE_ERROR` where [`Connection::snapshot`] answers that, and where a statement is reading another.
    pub fn open_snapshot(&self, database: &str, name: &SnapshotName) -> Result<()> {
        let b = self.reading_only(database)?;
        if b.txn_state() == TxnState::Read && self.0.txn.running() > 0 {
            return Err(Code::Error.into());
        }
        b.begin_read_at(name)
    }

    /// Makes states of a log readable again that was left behind by others. `SQLITE_ERROR` while a transaction reads.
    pub fn recover_snapshots(&self, database: &str) -> Result<()> {
        let at = self.0.catalog.borrow().database(database).ok_or(Code::Error)?;
        let b = self.0.btree_if_open(at).ok_or(Code::Error)?;
        if b.txn_state() != TxnState::None {
            return Err(Code::Error.into());
        }
        b.recover_snapshots()
    }
}

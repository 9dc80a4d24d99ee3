//! Who takes part in a transaction beside the trees, and who wants to hear of its end.

use iolite_base::Result;

/// Something that keeps changes of its own during a transaction: a virtual table.
///
/// It joins the transaction when it is first written to, and is called in this order:
///
/// ```text
/// begin -> (savepoint | release | rollback_to)* -> sync -> commit
///                                                   |
///                       rollback <------------------+   (or at any time before)
/// ```
///
/// What always holds: after `sync` has answered for all participants, nothing can say no but the trees; then comes `commit` or
/// `rollback`, and neither can fail. Savepoints are numbered from 0; a participant that joins late is first told of all that
/// are open.
pub trait Participant {
    /// A transaction begins for it.
    fn begin(&self) -> Result<()>;
    /// The transaction is about to be committed: what was kept back is written now. The last chance to refuse.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    /// The transaction is committed.
    fn commit(&self);
    /// The transaction is taken back.
    fn rollback(&self);
    /// Savepoint `n` is opened.
    fn savepoint(&self, n: usize) -> Result<()>;
    /// Savepoint `n` and those above it are closed; their changes stay.
    fn release(&self, n: usize) -> Result<()>;
    /// Goes back to when savepoint `n` was opened. It stays open; those above it are gone.
    fn rollback_to(&self, n: usize) -> Result<()>;
}

/// A change of one row, for hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum RowChange {
    Insert,
    Update,
    Delete,
}

/// Who hears of the changes of a connection, and of what becomes of them. It may use the connection. One that has to know of
/// savepoints takes part as a [`Participant`]. Rows of tables without rowid are not told of, as with `sqlite3_update_hook`.
pub trait ChangeListener {
    /// A row was changed; the transaction may still be taken back.
    fn row_changed(&self, _change: RowChange, _database: &str, _table: &str, _rowid: i64) {}
    /// A transaction that changed something is committed.
    fn committed(&self) {}
    /// A transaction that changed something is taken back.
    fn rolled_back(&self) {}
}

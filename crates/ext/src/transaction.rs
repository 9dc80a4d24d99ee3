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
/// `rollback`, and neither can fail. Savepoints are numbered from 0; a participant that joins late is told of the innermost
/// that is open, which stands for those around it. Only those it was told of, or that stand around such, are released or
/// gone back to. Where `SAVEPOINT` began the transaction, that savepoint is the transaction: going back to it is going back
/// to -1. A table that is made in a transaction takes part from then on, without `begin`.
pub trait Participant {
    /// Whether it joins the transaction in which it is written to; otherwise only that in which it was made.
    fn joins_by_writing(&self) -> bool {
        true
    }
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
    fn savepoint(&self, n: i32) -> Result<()>;
    /// Savepoint `n` and those above it are closed; their changes stay.
    fn release(&self, n: i32) -> Result<()>;
    /// Goes back to when savepoint `n` was opened. It stays open; those above it are gone.
    fn rollback_to(&self, n: i32) -> Result<()>;
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

//! One run of a statement: what it has begun, and whether it may go on.

use crate::connection::Inner;
use std::cell::Cell;
use std::rc::Rc;

/// One run of a statement on its connection.
pub(crate) struct Running {
    pub conn: Rc<Inner>,
    /// The statement may have to be undone alone.
    pub needs_statement: bool,
    /// The depth of its savepoint, once it has one.
    pub savepoint: Cell<Option<usize>>,
    /// A schema turned out to be out of date.
    pub stale: Cell<bool>,
    /// It has begun a transaction.
    pub reads: Cell<bool>,
    /// It is about to take the locks that it begins with.
    pub waits: Cell<bool>,
    /// What it changes makes other statements expire, not this one.
    pub expires: Cell<bool>,
    /// The connection's count when a statement that writes began.
    pub undone: Option<u32>,
    /// The counter of deferred foreign keys when it began.
    pub deferred: i64,
}

impl Running {
    /// What a statement that writes has changed was taken back under it.
    pub fn is_undone(&self) -> bool {
        self.undone.is_some_and(|n| n != self.conn.txn.undone())
    }
}

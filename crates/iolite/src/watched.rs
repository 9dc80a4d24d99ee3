//! Rows whose changes somebody wants to hear of: those that handles of incremental access stand on.

use std::cell::Cell;
use std::rc::Rc;

/// The row that a handle stands on, as the machine's reports are held against it.
pub(crate) struct Watched {
    pub database: Rc<str>,
    pub table: Rc<str>,
    pub rowid: Cell<i64>,
    pub changed: Cell<bool>,
}

//! A change of a row that is about to be made, for those who want to know before (documentation page
//! `c3ref/preupdate_blobwrite`).

use crate::{Host, RowChange};
use iolite_value::Value;
use std::rc::Rc;

/// A change of a row that is about to be made.
pub struct Preupdate {
    /// What is done.
    pub change: RowChange,
    /// The database's name.
    pub database: Rc<str>,
    /// The table's name.
    pub table: Rc<str>,
    /// How many columns the table has.
    pub columns: usize,
    /// The rowid before; 0 for tables without.
    pub old_rowid: i64,
    /// The rowid after; 0 for tables without.
    pub new_rowid: i64,
    /// 0: done by the statement itself; above, by triggers, which triggers have fired.
    pub depth: usize,
    /// The row as it is, by column, if there is one. Columns that are computed when they are read have no value.
    pub old: Option<Vec<Option<Value>>>,
    /// The row as it will be, by column, if there will be one that is known.
    pub new: Option<Vec<Option<Value>>>,
    /// The column that incremental access writes to.
    pub blob_column: Option<usize>,
}

/// Who is told. It may use the connection, but not change the row in question.
pub trait PreupdateListener {
    /// A row is about to be changed.
    fn before_change(&self, host: &dyn Host, change: &Preupdate);
}

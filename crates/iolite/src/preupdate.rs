//! Telling of changes of rows before they are made (documentation page `c3ref/preupdate_blobwrite`).
//!
//! The machine tells what it is about to do in records; here they become rows, column by column. Generated columns that
//! are not stored have no value.

use iolite_base::Result;
use iolite_catalog::{ColumnSource, Table};
use iolite_value::{Affinity, Value};
use iolite_vdbe::RowChange;
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
    /// The row as it is, by column, if there is one.
    pub old: Option<Vec<Option<Value>>>,
    /// The row as it will be, by column, if there will be one that is known.
    pub new: Option<Vec<Option<Value>>>,
    /// The column that incremental access writes to.
    pub blob_column: Option<usize>,
}

/// Who wants to know.
pub type PreupdateHook = dyn Fn(&Preupdate);

/// The fields of a record by column.
pub(crate) fn by_column(table: &Table, rowid: i64, fields: &[Value]) -> Vec<Option<Value>> {
    let index = table.primary_index().filter(|_| !table.has_rowid());
    let place = |c: usize| match &index {
        Some(i) => i.columns.iter().position(|x| matches!(x.source, ColumnSource::Column(n) if n == c)),
        None => table.storage.iter().position(|x| *x == c),
    };
    let value = |c: usize| -> Option<Value> {
        if table.rowid_alias == Some(c) {
            return Some(Value::Int(rowid));
        }
        let mut v = match fields.get(place(c)?) {
            Some(v) => v.clone(),
            None => table.absent_value(c).map(|v| (**v).clone()).unwrap_or_default(),
        };
        // Records hold whole numbers of such columns as integers.
        if table.columns[c].affinity == Affinity::Real {
            let _: Result<()> = Affinity::Real.apply(&mut v);
        }
        Some(v)
    };
    (0..table.columns.len()).map(value).collect()
}

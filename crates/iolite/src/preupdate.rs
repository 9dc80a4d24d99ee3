//! Telling of changes of rows before they are made (documentation page `c3ref/preupdate_blobwrite`).
//!
//! The machine tells what it is about to do in records; here they become rows, column by column. Generated columns that
//! are not stored have no value.

use crate::connection::{Connection, Inner};
use iolite_base::Result;
use iolite_catalog::{ColumnSource, Table};
use iolite_value::{Affinity, Value};
use iolite_vdbe::{RowBefore, RowChange};
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

impl Connection {
    /// Calls `f` before each change of a row of a table, but not of the schema and other tables of the engine's own.
    pub fn preupdate_hook(&self, f: Option<Rc<PreupdateHook>>) {
        *self.0.preupdate_hook.borrow_mut() = f;
    }
}

impl Inner {
    /// Tells of a change if somebody wants to know.
    pub fn tell_before(&self, change: &RowBefore) {
        let catalog = self.catalog.borrow().clone();
        let Some(schema) = catalog.schemas.get(change.db) else { return };
        let root = change.root;
        let holds = |t: &Table| t.primary_index().map_or(t.root.get(), |i| i.root.get()) == root;
        let Some(table) = schema.tables().find(|t| holds(t)) else { return };
        let rowid = |r: &Option<(i64, Vec<Value>)>| r.as_ref().map(|r| r.0);
        let (old, new) = (rowid(&change.old), rowid(&change.new));
        let row =
            |r: &Option<(i64, Vec<Value>)>| r.as_ref().map(|(id, fields)| by_column(table, *id, fields));
        self.tell_preupdate(&Preupdate {
            change: change.change,
            database: schema.name.clone(),
            table: table.name.clone(),
            columns: table.columns.len(),
            old_rowid: old.or(new).unwrap_or(0),
            new_rowid: new.or(old).unwrap_or(0),
            depth: change.depth,
            old: row(&change.old),
            new: row(&change.new),
            blob_column: None,
        });
    }

    /// Tells of a write by incremental access to field `field` of a row with these fields.
    pub fn tell_blob_write(&self, database: &str, table: &Table, field: usize, rowid: i64, fields: &[Value]) {
        self.tell_preupdate(&Preupdate {
            change: RowChange::Delete,
            database: database.into(),
            table: table.name.clone(),
            columns: table.columns.len(),
            old_rowid: rowid,
            new_rowid: rowid,
            depth: 0,
            old: Some(by_column(table, rowid, fields)),
            new: None,
            blob_column: table.storage.get(field).copied(),
        });
    }

    /// Whether somebody wants to know of changes before they are made.
    pub fn watches_before(&self) -> bool {
        self.preupdate_hook.borrow().is_some()
    }

    fn tell_preupdate(&self, p: &Preupdate) {
        let hook = self.preupdate_hook.borrow().clone();
        if let Some(f) = hook.filter(|_| !p.table.starts_with("sqlite_")) {
            f(p);
        }
    }
}

/// The fields of a record by column.
fn by_column(table: &Table, rowid: i64, fields: &[Value]) -> Vec<Option<Value>> {
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

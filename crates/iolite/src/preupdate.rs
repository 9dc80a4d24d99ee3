//! Telling of changes of rows before they are made (documentation page `c3ref/preupdate_blobwrite`).
//!
//! The machine tells what it is about to do in records; here they become rows, column by column. Generated columns that
//! are not stored have no value.

use iolite_base::Result;
use iolite_catalog::{ColumnSource, Table};
use iolite_ext::{Host, Preupdate, PreupdateListener};
use iolite_value::{Affinity, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The program's own hook.
pub type PreupdateHook = dyn Fn(&Preupdate);

/// Who wants to know.
pub(crate) struct Listeners {
    hook: RefCell<Option<Rc<PreupdateHook>>>,
    list: RefCell<Rc<[Rc<dyn PreupdateListener>]>>,
    any: Cell<bool>,
}

impl Default for Listeners {
    fn default() -> Listeners {
        Listeners { hook: RefCell::default(), list: RefCell::new(Rc::from([])), any: Cell::default() }
    }
}

/// A table of the engine's own of whose rows everybody hears.
pub(crate) const STATISTICS: &str = "sqlite_stat1";

impl Listeners {
    /// Whether there is anybody.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.get()
    }

    fn changed(&self) {
        self.any.set(self.hook.borrow().is_some() || !self.list.borrow().is_empty());
    }

    pub fn set_hook(&self, hook: Option<Rc<PreupdateHook>>) {
        let _old = self.hook.replace(hook);
        self.changed();
    }

    pub fn add(&self, l: Rc<dyn PreupdateListener>) {
        // The newest hears first.
        let list = std::iter::once(l).chain(self.list.borrow().iter().cloned()).collect();
        self.list.replace(list);
        self.changed();
    }

    pub fn remove(&self, l: &Rc<dyn PreupdateListener>) {
        let list = self.list.borrow().iter().filter(|x| !Rc::ptr_eq(x, l)).cloned().collect();
        self.list.replace(list);
        self.changed();
    }

    /// Tells everybody.
    pub fn tell(&self, host: &dyn Host, p: &Preupdate) {
        let own = p.table.get(..7).is_some_and(|s| s.eq_ignore_ascii_case("sqlite_"));
        if own && !p.table.eq_ignore_ascii_case(STATISTICS) {
            return;
        }
        let hook = self.hook.borrow().clone();
        if let Some(f) = hook {
            f(p);
        }
        // Whoever is told may add and remove listeners.
        let list = self.list.borrow().clone();
        list.iter().for_each(|l| l.before_change(host, p));
    }
}

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

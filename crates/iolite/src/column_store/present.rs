//! The columns of a database, once they are wanted, and what a connection knows of the size of its tables.

use super::ColumnCounters;
use iolite_base::Pgno;
use iolite_btree::Btree;
use iolite_columnar::{Closing, Store};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The columns of a database that is attached to a connection, once they are wanted. A forked child leaves its parent's behind:
/// another thread may have been in the midst of them.
#[derive(Default)]
pub(crate) struct Columns(RefCell<Option<Kept>>);

struct Kept {
    store: Arc<Store>,
    /// How many forks there had been when they were wanted.
    forks: u32,
}

impl Columns {
    /// Those of this process.
    pub fn get(&self) -> Option<Arc<Store>> {
        let mut kept = self.0.borrow_mut();
        if kept.as_ref().is_some_and(|k| k.forks != iolite_os::forks()) {
            std::mem::forget(kept.take());
        }
        kept.as_ref().map(|k| k.store.clone())
    }

    /// They are wanted.
    pub fn wanted(&self, bt: &Btree) -> Arc<Store> {
        self.get().unwrap_or_else(|| {
            let store = Store::of(bt);
            self.0.replace(Some(Kept { store: store.clone(), forks: iolite_os::forks() }));
            store
        })
    }

    fn take(&mut self) -> Option<Arc<Store>> {
        let store = self.get();
        self.0.take();
        store
    }
}

/// Before a database of a connection closes: its columns are to be written afterwards, if this connection is the last
/// one of the process to hold them.
pub(crate) fn closing(columns: &mut Columns, bt: Option<&Btree>) -> Option<Closing> {
    let store = columns.take()?;
    let bt = bt?;
    store.settle();
    (Arc::strong_count(&store) == 1).then(|| store.closing(bt)).flatten()
}

/// `PRAGMA column_cache_size`: what the columns of the process may take together, in KiB.
pub(crate) fn column_cache_size(set: Option<i64>) -> i64 {
    if let Some(kib) = set.and_then(|n| usize::try_from(n).ok()) {
        iolite_columnar::set_budget(kib.saturating_mul(1024));
    }
    (iolite_columnar::budget() / 1024) as i64
}

/// `PRAGMA column_work_size`: what a map, the groups or the rows of a query in columns may take each, in KiB.
pub(crate) fn column_work_size(set: Option<i64>) -> i64 {
    if let Some(kib) = set.and_then(|n| usize::try_from(n).ok()) {
        iolite_columnar::set_work_size(kib.saturating_mul(1024));
    }
    (iolite_columnar::work_size() / 1024) as i64
}

/// A table: its database and its root page.
pub(crate) type At = (usize, Pgno);

/// What a connection remembers of tables that have grown.
#[derive(Default)]
pub(crate) struct Growth {
    /// Tables that seemed small and were found not to be.
    grown: RefCell<Vec<At>>,
    /// A run was ended for that: the statement is to be compiled anew.
    again: Cell<bool>,
}

impl Growth {
    /// Whether this table was found not to be small.
    pub fn has_grown(&self, at: At) -> bool {
        self.grown.borrow().contains(&at)
    }

    /// This table is not small; the run that found it out ends.
    pub fn note(&self, at: At) {
        self.grown.borrow_mut().push(at);
        self.again.set(true);
    }

    /// Whether the run that has just failed was ended because tables have grown.
    pub fn take_again(&self) -> bool {
        self.again.take()
    }
}

/// Why columns are no longer kept beside a database, if something went wrong.
pub(crate) fn note(columns: &Columns) -> Option<String> {
    columns.get().and_then(|s| s.note())
}

/// How often queries in columns were left to rows while they ran, by reason.
pub(crate) fn refusals(columns: &Columns) -> Vec<(String, u64)> {
    columns.get().map_or_else(Vec::new, |s| s.refusals())
}

/// What has happened among the columns of a database.
pub(crate) fn counters(columns: &Columns) -> ColumnCounters {
    let Some(store) = columns.get() else { return ColumnCounters::default() };
    let n = |a: &std::sync::atomic::AtomicU64| a.load(std::sync::atomic::Ordering::Relaxed);
    let c = &store.counters;
    ColumnCounters {
        decoded: n(&c.decoded),
        patched: n(&c.patched),
        hashed: n(&c.hashed),
        derived: n(&c.derived),
        adopted: n(&c.adopted),
        loaded: n(&c.loaded),
        rejected: n(&c.rejected),
        published: n(&c.published),
        evicted: n(&c.evicted),
    }
}

//! The columnar engine, joined to connections: where a database's columns are, and what a run in columns needs.

use super::ColumnCounters;
use crate::connection::{Attached, Inner};
use iolite_base::{Code, Result};
use iolite_btree::Btree;
use iolite_columnar::{Closing, Profile, Runtime, Store};
use iolite_ext::Host;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// The columns of a database that is attached to a connection, once they are wanted.
pub(crate) type Columns = OnceCell<Arc<Store>>;

/// The columns that a connection has to do with, each with its trees.
pub(super) fn stores(conn: &Inner) -> Vec<(Arc<Store>, Btree)> {
    let dbs = conn.databases.borrow();
    dbs.iter().filter_map(|d| d.columns.get().cloned().zip(d.btree.clone())).collect()
}

/// Before a database of a connection closes: its columns are to be written afterwards, if this connection is the last
/// one of the process to hold them.
pub(crate) fn closing(d: &mut Attached) -> Option<Closing> {
    let store = d.columns.take()?;
    let bt = d.btree.as_ref()?;
    store.settle();
    (Arc::strong_count(&store) == 1).then(|| store.closing(bt)).flatten()
}

/// `PRAGMA column_cache`: whether columns are kept beside the database; sets it if `persist` says so.
pub(crate) fn column_cache(conn: &Inner, db: usize, persist: Option<bool>) -> Result<&'static str> {
    let bt = conn.btree_of(db)?;
    bt.reading(|bt| {
        let store = store(conn, db, bt)?;
        if let Some(on) = persist {
            store.set_persistent(bt, on);
        }
        Ok(if store.is_persistent() { "persist" } else { "memory" })
    })
}

/// `PRAGMA column_cache_trust`: whether what the operating system says of a file is believed.
pub(crate) fn column_cache_trust(conn: &Inner, db: usize, hash: Option<bool>) -> Result<&'static str> {
    let store = store(conn, db, &conn.btree_of(db)?)?;
    if let Some(h) = hash {
        store.set_hash_only(h);
    }
    Ok(if store.is_hash_only() { "hash" } else { "stat" })
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

pub(crate) fn store(conn: &Inner, db: usize, bt: &Btree) -> Result<Arc<Store>> {
    let dbs = conn.databases.borrow();
    let d = dbs.get(db).ok_or(Code::Internal)?;
    Ok(d.columns.get_or_init(|| Store::of(bt)).clone())
}

/// What a run in columns needs of its connection.
pub(super) struct Run<'a> {
    pub conn: &'a Rc<Inner>,
    pub host: &'a dyn Host,
    pub force: bool,
    pub profile: Option<&'a Profile>,
}

/// Instructions that a piece of a run stands for.
const PIECE: usize = 1000;

impl Runtime for Run<'_> {
    fn host(&self) -> &dyn Host {
        self.host
    }

    fn btree(&self, db: usize) -> Result<Btree> {
        self.conn.btree_of(db)
    }

    fn store(&self, db: usize) -> Result<Arc<Store>> {
        store(self.conn, db, &self.conn.btree_of(db)?)
    }

    fn check(&self) -> Result<()> {
        crate::env::interrupted_after(self.conn, PIECE)
    }

    fn force(&self) -> bool {
        self.force
    }

    fn temporary(&self) -> Result<Option<Box<dyn iolite_os::File>>> {
        if self.conn.settings.temp_store() == 2 {
            return Ok(None);
        }
        let flags = iolite_os::OpenFlags::read_write(iolite_os::FileKind::Temp);
        self.conn.vfs.open(None, flags).map(Some)
    }

    fn threads(&self) -> usize {
        Host::threads(&**self.conn)
    }

    fn derives(&self) -> bool {
        self.conn.settings.column_derivation()
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile
    }

    fn nanos(&self) -> u64 {
        self.conn.vfs.clock().monotonic_nanos()
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

//! The columnar engine, joined to connections: where a database's columns are, and what a run in columns needs.

use crate::connection::Inner;
use iolite_base::{Code, Result};
use iolite_btree::Btree;
use iolite_columnar::{Profile, Runtime, Store};
use iolite_ext::Host;
use std::rc::Rc;
use std::sync::Arc;

/// The columns that a connection has to do with, each with its trees.
pub(super) fn stores(conn: &Inner) -> Vec<(Arc<Store>, Btree)> {
    let dbs = conn.databases.borrow();
    dbs.iter().filter_map(|d| d.columns.get().zip(d.btree.clone())).collect()
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

pub(crate) fn store(conn: &Inner, db: usize, bt: &Btree) -> Result<Arc<Store>> {
    let dbs = conn.databases.borrow();
    let d = dbs.get(db).ok_or(Code::Internal)?;
    Ok(d.columns.wanted(bt))
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
        self.conn.interrupted_after(PIECE)
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

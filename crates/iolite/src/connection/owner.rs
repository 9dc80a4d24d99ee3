//! What a connection's transaction asks of it.

use super::Inner;
use crate::txn::Owner;
use iolite_btree::{Btree, TxnState};
use iolite_os::Vfs;
use std::rc::Rc;

impl Inner {
    /// The trees of all databases that have any.
    pub fn open_trees(&self) -> Vec<Btree> {
        self.databases.borrow().iter().filter_map(|d| d.btree.clone()).collect()
    }
}

impl Owner for Inner {
    fn open_trees(&self) -> Vec<Btree> {
        Inner::open_trees(self)
    }

    fn each_tree(&self, mut f: impl FnMut(usize, &Btree)) {
        for (db, d) in self.databases.borrow().iter().enumerate() {
            if let Some(b) = &d.btree {
                f(db, b);
            }
        }
    }

    fn database_name(&self, db: usize) -> Option<Rc<str>> {
        self.databases.borrow().get(db).map(|d| d.name.clone())
    }

    fn vfs(&self) -> &dyn Vfs {
        &*self.vfs
    }

    fn end_reads(&self) {
        self.each_tree(|_, b| {
            if b.txn_state() == TxnState::Read {
                b.end_read();
            }
        });
    }

    fn check_schemas(&self) {
        Inner::check_schemas(self);
    }

    fn count_rows(&self, own: i64, total: i64) {
        self.changes.set(own);
        self.total_changes.set(self.total_changes.get() + total);
    }

    fn conclude(&self) {
        if let Some(s) = &self.sharing {
            s.member.concluded();
        }
    }
}

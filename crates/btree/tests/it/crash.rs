//! What the crash simulator found, each as a test of its own: the files are copied in the midst of things, as a crash
//! leaves them, and opened anew.

use crate::support::*;
use iolite_btree::*;
use iolite_os::{MemoryVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

/// The files as they are now, on a disk of their own.
fn crashed(vfs: &MemoryVfs) -> Arc<dyn Vfs> {
    let copy = MemoryVfs::new();
    for name in ["a.db", "a.db-journal", "a.db-wal"] {
        if let Some(data) = vfs.content(Path::new(name)) {
            copy.put(Path::new(name), data);
        }
    }
    Arc::new(copy)
}

#[test]
fn a_crash_in_the_first_transaction_leaves_an_empty_database() {
    let vfs = Arc::new(MemoryVfs::new());
    let bt = Btree::open(vfs.clone(), "a.db", &OpenOptions::default()).unwrap();
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    bt.commit_phase_one(None).unwrap();
    let after = Btree::open(crashed(&vfs), "a.db", &OpenOptions::default()).unwrap();
    after.begin_read().unwrap();
    assert_eq!(after.page_count(), 0);
}

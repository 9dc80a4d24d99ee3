//! What the crash simulator found, each as a test of its own: the files are copied in the midst of things, as
//! a crash leaves them, and opened anew.

use crate::support::*;
use iolite_base::{Code, Result};
use iolite_btree::*;
use iolite_os::{Access, Clock, Entropy, File, MemoryVfs, OpenFlags, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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
    bt.commit_phase_one(Commit::Alone).unwrap();
    let after = Btree::open(crashed(&vfs), "a.db", &OpenOptions::default()).unwrap();
    after.begin_read().unwrap();
    assert_eq!(after.page_count(), 0);
}

/// A VFS that refuses to delete files while told to.
struct Keeps(MemoryVfs, AtomicBool);

impl Vfs for Keeps {
    fn name(&self) -> &str {
        "keeps"
    }
    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        self.0.open(path, flags)
    }
    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        if self.1.load(Relaxed) { Err(Code::IoerrDelete.into()) } else { self.0.delete(path, sync_dir) }
    }
    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        self.0.access(path, what)
    }
    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        self.0.full_path(path)
    }
    fn clock(&self) -> &dyn Clock {
        self.0.clock()
    }
    fn entropy(&self) -> &dyn Entropy {
        self.0.entropy()
    }
}

#[test]
fn a_commit_whose_journal_cannot_be_deleted_is_rolled_back_by_the_next_reader() {
    let vfs = Arc::new(Keeps(MemoryVfs::new(), AtomicBool::new(false)));
    let bt = Btree::open(vfs.clone(), "a.db", &OpenOptions::default()).unwrap();
    let create = |cookie| {
        bt.begin_write(false).unwrap();
        bt.set_meta(6, cookie).unwrap();
        let done = bt.commit();
        if done.is_err() {
            bt.rollback(true).unwrap();
        }
        done
    };
    create(1).unwrap();
    vfs.1.store(true, Relaxed);
    assert_eq!(create(2).unwrap_err().code(), Code::IoerrDelete);
    // While the journal stays, nobody can read past it.
    assert_eq!(bt.begin_read().unwrap_err().code(), Code::IoerrDelete);
    vfs.1.store(false, Relaxed);
    bt.begin_read().unwrap();
    assert_eq!(bt.meta(6).unwrap(), 1);
    bt.end_read();
    create(3).unwrap();
    bt.begin_read().unwrap();
    assert_eq!(bt.meta(6).unwrap(), 3);
}

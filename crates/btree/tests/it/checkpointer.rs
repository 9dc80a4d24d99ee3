//! Checkpoints that a thread makes beside the commits (`PRAGMA checkpoint_thread`).

use crate::support::*;
use iolite_base::{Code, Result};
use iolite_btree::*;
use iolite_os::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Files of the system; syncs by threads of the library's own are counted, and fail if told to.
#[derive(Default)]
struct Watched {
    inner: UnixVfs,
    syncs: Arc<AtomicU32>,
    fail: Arc<AtomicBool>,
}

struct WatchedFile {
    inner: Box<dyn File>,
    syncs: Arc<AtomicU32>,
    fail: Arc<AtomicBool>,
}

impl Vfs for Watched {
    fn name(&self) -> &str {
        "watched"
    }
    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        let inner = self.inner.open(path, flags)?;
        Ok(Box::new(WatchedFile { inner, syncs: self.syncs.clone(), fail: self.fail.clone() }))
    }
    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        self.inner.delete(path, sync_dir)
    }
    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        self.inner.access(path, what)
    }
    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.full_path(path)
    }
    fn threads(&self) -> bool {
        true
    }
    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }
    fn entropy(&self) -> &dyn Entropy {
        self.inner.entropy()
    }
}

impl File for WatchedFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        self.inner.read(buf, offset)
    }
    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.inner.write(buf, offset)
    }
    fn truncate(&self, size: u64) -> Result<()> {
        self.inner.truncate(size)
    }
    fn sync(&self, kind: SyncKind) -> Result<()> {
        if std::thread::current().name() == Some("iolite-checkpoint") {
            if self.fail.load(SeqCst) {
                return Err(Code::IoerrFsync.into());
            }
            self.syncs.fetch_add(1, SeqCst);
        }
        self.inner.sync(kind)
    }
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }
    fn lock(&self, level: LockLevel) -> Result<()> {
        self.inner.lock(level)
    }
    fn unlock(&self, level: LockLevel) -> Result<()> {
        self.inner.unlock(level)
    }
    fn check_reserved(&self) -> Result<bool> {
        self.inner.check_reserved()
    }
    fn sector_size(&self) -> u32 {
        self.inner.sector_size()
    }
    fn characteristics(&self) -> Characteristics {
        self.inner.characteristics()
    }
    fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }
    fn identity(&self) -> Option<FileId> {
        self.inner.identity()
    }
    fn has_moved(&self) -> Result<bool> {
        self.inner.has_moved()
    }
    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.inner.shm_map(index, size, extend)
    }
    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        self.inner.shm_lock(first, n, how)
    }
    fn shm_barrier(&self) {
        self.inner.shm_barrier();
    }
    fn shm_unmap(&self, delete: bool) -> Result<()> {
        self.inner.shm_unmap(delete)
    }
    fn shm_release(&self) -> Option<Arc<dyn ShmRelease>> {
        self.inner.shm_release()
    }
}

fn open_on(vfs: &Arc<Watched>, path: &str) -> Btree {
    let bt = Btree::open(vfs.clone(), path, &OpenOptions::default()).unwrap();
    bt.set_synchronous(SyncMode::Normal).unwrap();
    bt.set_lock_lease(10).unwrap();
    bt.set_wal_autocheckpoint(40);
    bt.set_checkpoint_thread(true).unwrap();
    bt
}

fn database(vfs: &Arc<Watched>, path: &str) -> (Btree, u32) {
    let bt = open_on(vfs, path);
    bt.set_journal_mode(JournalMode::Wal).unwrap();
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    bt.commit().unwrap();
    (bt, root)
}

fn add(bt: &Btree, root: u32, id: i64) -> Result<()> {
    bt.begin_write(false)?;
    let mut c = bt.cursor(root, TreeKind::Table, true)?;
    let added = c.insert_row(id, &record(&[Col::Int(id)]), 0, InsertAt::Unknown);
    drop(c);
    added.and_then(|_| bt.commit()).inspect_err(|_| {
        let _ = bt.rollback(true);
    })
}

fn count(bt: &Btree, root: u32) -> u64 {
    bt.begin_read().unwrap();
    let n = bt.cursor(root, TreeKind::Table, false).unwrap().count().unwrap();
    bt.end_read();
    n
}

#[test]
fn the_thread_copies_and_the_log_stays_short() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let vfs = Arc::new(Watched::default());
    let (bt, root) = database(&vfs, &path);
    for i in 0..3000 {
        add(&bt, root, i).unwrap();
    }
    let log = std::fs::metadata(format!("{path}-wal")).unwrap().len();
    // 4,000 frames or so were written. From 8 times the threshold on, commits copy themselves.
    assert!(log < 700 * 4120, "the log begins anew now and then: {log} bytes");
    // An explicit checkpoint is in nobody's way, nor is anybody in its.
    let done = bt.checkpoint(CheckpointMode::Truncate).unwrap();
    assert!(!done.busy && done.log == done.checkpointed, "{done:?}");
    assert!(vfs.syncs.load(SeqCst) >= 2, "it was the thread that synced");
    assert_eq!(count(&bt, root), 3000);
    assert!(bt.integrity_check(&[1, root], 5).unwrap().is_empty());
}

#[test]
fn the_last_connection_to_close_finds_nobody_in_its_way() {
    for round in 0..20 {
        let s = Scratch::new();
        let path = s.path("a.db");
        let vfs = Arc::new(Watched::default());
        let (bt, root) = database(&vfs, &path);
        let n = 45 + round * 7;
        for i in 0..n {
            add(&bt, root, i).unwrap();
        }
        if round % 2 == 0 {
            drop(bt);
            assert!(!Path::new(&format!("{path}-wal")).exists(), "the log was folded and removed");
        } else {
            assert_eq!(bt.set_journal_mode(JournalMode::Delete).unwrap(), JournalMode::Delete);
        }
        assert_eq!(count(&open(&path, &OpenOptions::default()), root), n as u64);
    }
}

#[test]
fn commits_of_several_threads_go_on_beside_it() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let vfs = Arc::new(Watched::default());
    let (bt, root) = database(&vfs, &path);
    std::thread::scope(|scope| {
        for k in 0..4 {
            let (vfs, path) = (&vfs, &path);
            scope.spawn(move || {
                let bt = open_on(vfs, path);
                bt.set_busy_timeout(10_000).unwrap();
                for i in 0..400 {
                    add(&bt, root, k * 1000 + i).unwrap();
                    assert!(count(&bt, root) > i as u64);
                }
            });
        }
    });
    assert_eq!(count(&bt, root), 1600);
    assert!(bt.integrity_check(&[1, root], 5).unwrap().is_empty());
}

#[test]
fn after_a_failed_sync_of_the_thread_nobody_writes() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let vfs = Arc::new(Watched::default());
    let (bt, root) = database(&vfs, &path);
    vfs.fail.store(true, SeqCst);
    let start = Instant::now();
    let mut written = 0;
    let failed = loop {
        match add(&bt, root, written) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
        assert!(start.elapsed() < Duration::from_secs(60));
    };
    assert_eq!(failed.code(), Code::IoerrFsync);
    assert_eq!(count(&bt, root), written as u64, "what was committed is read on");
    vfs.fail.store(false, SeqCst);
    drop(bt);
    let bt = open_on(&vfs, &path);
    assert_eq!(count(&bt, root), written as u64);
    add(&bt, root, written).unwrap();
}

//! Checkpoints that a thread makes beside the commits (`PRAGMA checkpoint_thread`).

use crate::support::*;
use iolite_base::{Code, Result};
use iolite_btree::*;
use iolite_os::*;
use std::path::Path;
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
    fn threads(&self) -> bool {
        true
    }
    iolite_os::pass_to_inner!(delete access full_path clock entropy);
}

impl File for WatchedFile {
    fn sync(&self, kind: SyncKind) -> Result<()> {
        if std::thread::current().name() == Some("iolite-checkpoint") {
            if self.fail.load(SeqCst) {
                return Err(Code::IoerrFsync.into());
            }
            self.syncs.fetch_add(1, SeqCst);
        }
        self.inner.sync(kind)
    }
    iolite_os::pass_to_inner!(read write truncate size lock unlock check_reserved sector_size characteristics is_read_only identity has_moved shm_map shm_lock shm_barrier shm_unmap shm_release);
}

fn open_on(vfs: &Arc<Watched>, path: &str) -> Btree {
    let bt = Btree::open(vfs.clone(), path, &OpenOptions::default()).unwrap();
    bt.set_synchronous(SyncMode::Normal).unwrap();
    bt.set_lock_lease(LeaseTerms::from_the_first(10)).unwrap();
    bt.set_wal_autocheckpoint(40);
    bt.set_checkpoint_thread(true).unwrap();
    bt
}

/// A database on watched files, its place and its only tree.
fn database() -> (Scratch, String, Arc<Watched>, Btree, u32) {
    let s = Scratch::new();
    let path = s.path("a.db");
    let vfs = Arc::new(Watched::default());
    let bt = open_on(&vfs, &path);
    let root = logged_tree(&bt);
    (s, path, vfs, bt, root)
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

#[test]
fn the_thread_copies_and_the_log_stays_short() {
    let (_s, path, vfs, bt, root) = database();
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
    assert!(bt.integrity_check(&[1, root], 5).unwrap().0.is_empty());
}

#[test]
fn the_last_connection_to_close_finds_nobody_in_its_way() {
    for round in 0..20 {
        let (_s, path, _vfs, bt, root) = database();
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
    let (_s, path, vfs, bt, root) = database();
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
    assert!(bt.integrity_check(&[1, root], 5).unwrap().0.is_empty());
}

#[test]
fn after_a_failed_sync_of_the_thread_nobody_writes() {
    let (_s, path, vfs, bt, root) = database();
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

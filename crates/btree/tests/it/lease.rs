//! Read locks that are kept between statements (`PRAGMA lock_lease_ms`).

use crate::support::*;
use iolite_btree::*;
use iolite_os::*;
use std::path::Path;
use std::time::{Duration, Instant};

/// A database in WAL mode whose log holds frames that nobody copied back, and its only tree.
fn database(path: &str) -> (Btree, u32) {
    let bt = open(path, &OpenOptions::default());
    let root = logged_tree(&bt);
    (bt, root)
}

fn add(bt: &Btree, root: u32, id: i64) {
    bt.begin_write(false).unwrap();
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    c.insert_row(id, &record(&[Col::Int(id)]), 0, InsertAt::Unknown).unwrap();
    drop(c);
    bt.commit().unwrap();
}

/// Whether a stranger gets all marks but the first for himself: what a RESTART checkpoint needs.
fn marks_are_free(path: &str) -> bool {
    let flags = OpenFlags::read_write(FileKind::MainDb);
    let f = vfs().open(Some(Path::new(path)), flags).unwrap();
    f.shm_map(0, 32768, false).unwrap();
    f.shm_lock(4, 4, ShmLock::Exclusive).is_ok()
}

fn soon(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn a_lock_is_kept_for_its_time_and_no_longer() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let (writer, root) = database(&path);
    add(&writer, root, 1);
    let bt = open(&path, &OpenOptions::default());
    assert_eq!(bt.lock_lease(), 0);
    assert_eq!(count(&bt, root), 1);
    assert!(marks_are_free(&path), "nothing is kept unless asked for");
    bt.set_lock_lease(LeaseTerms::from_the_first(60_000)).unwrap();
    assert_eq!(count(&bt, root), 1);
    assert!(!marks_are_free(&path));
    assert_eq!(count(&bt, root), 1);
    assert!(!marks_are_free(&path));
    bt.set_lock_lease(LeaseTerms::NONE).unwrap();
    assert!(marks_are_free(&path));
    bt.set_lock_lease(LeaseTerms::from_the_first(4)).unwrap();
    for _ in 0..3 {
        assert_eq!(count(&bt, root), 1);
        assert!(soon(|| marks_are_free(&path)));
    }
}

#[test]
fn a_lock_is_kept_once_reads_follow_each_other() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let (writer, root) = database(&path);
    add(&writer, root, 1);
    let bt = open(&path, &OpenOptions::default());
    bt.set_lock_lease(LeaseTerms { millis: 60_000, after: 5 }).unwrap();
    for _ in 0..4 {
        assert_eq!(count(&bt, root), 1);
        assert!(marks_are_free(&path));
    }
    assert_eq!(count(&bt, root), 1);
    assert!(!marks_are_free(&path));
    // A commit of one's own moves the mark, and does not begin the count anew.
    add(&bt, root, 2);
    assert!(!marks_are_free(&path));

    bt.set_lock_lease(LeaseTerms { millis: 30, after: 5 }).unwrap();
    let read = || assert_eq!(count(&bt, root), 2);
    assert!(soon(|| {
        (0..5).for_each(|_| read());
        !marks_are_free(&path)
    }));
    assert!(soon(|| marks_are_free(&path)));
    read();
    assert!(marks_are_free(&path), "one read after a pause keeps nothing");
}

#[test]
fn a_kept_lock_hides_no_commit() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let (writer, root) = database(&path);
    let bt = open(&path, &OpenOptions::default());
    bt.set_lock_lease(LeaseTerms::from_the_first(60_000)).unwrap();
    writer.set_lock_lease(LeaseTerms::from_the_first(60_000)).unwrap();
    for i in 1..200 {
        let (w, r) = if i % 5 == 0 { (&bt, &writer) } else { (&writer, &bt) };
        add(w, root, i);
        assert_eq!(count(r, root), i as u64);
        assert_eq!(count(w, root), i as u64);
        if i % 7 == 0 {
            // Idle locks of this process are in nobody's way.
            let how = [CheckpointMode::Passive, CheckpointMode::Restart, CheckpointMode::Truncate];
            let done = w.checkpoint(how[i as usize / 7 % 3]).unwrap();
            assert!(!done.busy && done.log == done.checkpointed, "{done:?}");
        }
        assert_eq!(count(r, root), i as u64);
    }
}

#[test]
fn no_lock_is_kept_on_a_log_that_is_to_be_copied_back() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let (writer, root) = database(&path);
    writer.set_wal_autocheckpoint(0);
    let bt = open(&path, &OpenOptions::default());
    bt.set_wal_autocheckpoint(5);
    bt.set_lock_lease(LeaseTerms::from_the_first(60_000)).unwrap();
    for i in 0..10 {
        add(&writer, root, i);
    }
    count(&bt, root);
    assert!(marks_are_free(&path));
}

/// Stock SQLite, in a process of its own, empties the log while a connection here has read a moment ago.
#[test]
fn a_checkpoint_of_another_process_gets_through() {
    if shell(":memory:", "SELECT 1").is_none() {
        eprintln!("no sqlite3 shell here: not run");
        return;
    }
    let s = Scratch::new();
    let path = s.path("a.db");
    let (writer, root) = database(&path);
    let bt = open(&path, &OpenOptions::default());
    bt.set_lock_lease(LeaseTerms::from_the_first(10)).unwrap();
    for i in 0..5 {
        add(&writer, root, i);
        assert_eq!(count(&bt, root), i as u64 + 1);
        let answer = shell(&path, "PRAGMA busy_timeout = 20000; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        assert!(answer.contains("0|0|0"), "{answer}");
        assert_eq!(count(&bt, root), i as u64 + 1);
    }
}

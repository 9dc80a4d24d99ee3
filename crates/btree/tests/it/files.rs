//! Files around the database: exclusive locking, backups, several databases in one commit, full disks and
//! failing calls.

use crate::support::*;
use iolite_base::{Code, Result};
use iolite_btree::*;
use iolite_os::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

fn table_with(bt: &Btree, rows: i64, size: usize) -> u32 {
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    fill(bt, root, 0, rows, size);
    bt.commit().unwrap();
    root
}

fn fill(bt: &Btree, root: u32, from: i64, n: i64, size: usize) {
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    for i in from..from + n {
        let blob = vec![i as u8; size];
        c.insert_row(i, &record(&[Col::Blob(&blob)]), 0, InsertAt::Unknown).unwrap();
    }
}

fn rows(bt: &Btree, root: u32) -> u64 {
    bt.begin_read().unwrap();
    let n = bt.cursor(root, TreeKind::Table, false).unwrap().count().unwrap();
    bt.end_read();
    n
}

#[test]
fn exclusive_locking_keeps_others_out_and_needs_no_shared_memory() {
    for mode in [JournalMode::Delete, JournalMode::Wal] {
        let s = Scratch::new();
        let path = s.path("a.db");
        let bt = open(&path, &OpenOptions::default());
        bt.set_locking_mode(LockingMode::Exclusive).unwrap();
        assert_eq!(bt.set_journal_mode(mode).unwrap(), mode);
        let root = table_with(&bt, 100, 50);
        let counter = bt.change_counter().unwrap();
        for i in 0..5 {
            bt.begin_write(false).unwrap();
            fill(&bt, root, 100 + i, 1, 50);
            bt.commit().unwrap();
        }
        assert!(!Path::new(&format!("{path}-shm")).exists());
        assert!(bt.change_counter().unwrap() <= counter + 5);
        let other = open(&path, &OpenOptions::default());
        assert_eq!(other.begin_read().unwrap_err().code(), Code::Busy);
        bt.set_locking_mode(LockingMode::Normal).unwrap();
        assert_eq!(rows(&bt, root), 105);
        assert_eq!(rows(&other, root), 105);
        drop((bt, other));
        check_with_shell(&path);
    }
}

#[test]
fn leaving_wal_mode_needs_to_be_alone() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let bt = open(&path, &OpenOptions::default());
    bt.set_journal_mode(JournalMode::Wal).unwrap();
    let root = table_with(&bt, 500, 50);
    let other = open(&path, &OpenOptions::default());
    assert_eq!(rows(&other, root), 500);
    assert_eq!(bt.set_journal_mode(JournalMode::Delete).unwrap_err().code(), Code::Busy);
    assert_eq!(bt.journal_mode(), JournalMode::Wal);
    bt.begin_write(false).unwrap();
    fill(&bt, root, 500, 1, 5);
    bt.commit().unwrap();
    assert_eq!(rows(&other, root), 501);
    other.close().unwrap();
    assert_eq!(bt.set_journal_mode(JournalMode::Truncate).unwrap(), JournalMode::Truncate);
    assert!(!Path::new(&format!("{path}-wal")).exists());
    assert!(!Path::new(&format!("{path}-shm")).exists());
    bt.begin_write(false).unwrap();
    fill(&bt, root, 501, 1, 5);
    bt.commit().unwrap();
    assert_eq!(std::fs::metadata(format!("{path}-journal")).unwrap().len(), 0);
    assert_eq!(rows(&bt, root), 502);
    check_with_shell(&path);
}

#[test]
fn the_busy_handler_is_asked_in_one_row() {
    for mode in [JournalMode::Delete, JournalMode::Wal] {
        for exclusive in [false, true] {
            let s = Scratch::new();
            let path = s.path("a.db");
            let holder = open(&path, &OpenOptions::default());
            holder.set_journal_mode(mode).unwrap();
            table_with(&holder, 10, 10);
            let bt = open(&path, &OpenOptions::default());
            let asked = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let list = asked.clone();
            bt.set_busy_handler(Some(std::rc::Rc::new(move |n| {
                list.borrow_mut().push(n);
                n < 4
            })))
            .unwrap();
            // Another one writes, and in a rollback mode keeps readers out, too.
            holder.begin_write(exclusive).unwrap();
            assert_eq!(bt.begin_write(exclusive).unwrap_err().code(), Code::Busy);
            assert_eq!(asked.take(), [0, 1, 2, 3, 4]);
            let reads = bt.begin_read();
            if exclusive && mode == JournalMode::Delete {
                assert_eq!(reads.unwrap_err().code(), Code::Busy);
                assert_eq!(asked.take(), [0, 1, 2, 3, 4]);
            } else {
                reads.unwrap();
                // Who reads already does not wait.
                assert_eq!(bt.begin_write(exclusive).unwrap_err().code(), Code::Busy);
                assert!(asked.take().is_empty());
                bt.end_read();
            }
            holder.rollback(true).unwrap();
            bt.begin_write(exclusive).unwrap();
            bt.rollback(true).unwrap();
        }
    }
}

#[test]
fn backups_follow_the_source() {
    let s = Scratch::new();
    let from = open(&s.path("a.db"), &OpenOptions { page_size: 1024, ..OpenOptions::default() });
    let root = table_with(&from, 500, 100);
    let to = open(&s.path("b.db"), &OpenOptions::default());
    let mut b = Backup::new(&to, &from).unwrap();
    assert!(!b.step(10).unwrap());
    assert_eq!(b.remaining() + 10, b.page_count());
    // Another connection changes the source meanwhile.
    let other = open(&s.path("a.db"), &OpenOptions::default());
    other.begin_write(false).unwrap();
    fill(&other, root, 500, 300, 100);
    other.commit().unwrap();
    while !b.step(7).unwrap() {}
    assert_eq!((rows(&to, root), b.remaining()), (800, 0));
    assert_eq!(to.page_size(), 1024);
    check_with_shell(&s.path("b.db"));
    // Into memory, and over a file with pages of another size, larger or smaller.
    let memory = open("", &OpenOptions { memory: true, ..OpenOptions::default() });
    memory.copy_from(&from).unwrap();
    assert_eq!(rows(&memory, root), 800);
    for size in [512, 8192] {
        let path = s.path(&format!("c{size}.db"));
        let to = open(&path, &OpenOptions { page_size: size, ..OpenOptions::default() });
        table_with(&to, 3000, 50);
        to.copy_from(&from).unwrap();
        assert_eq!((to.page_size(), rows(&to, root)), (1024, 800));
        check_with_shell(&path);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), to.page_count() as u64 * 1024);
        // And taken back.
        to.begin_write(true).unwrap();
        let small = open("", &OpenOptions { memory: true, page_size: size, ..OpenOptions::default() });
        table_with(&small, 5, 5);
        to.replace_content(&small).unwrap();
        to.rollback(true).unwrap();
        assert_eq!(rows(&to, root), 800);
        check_with_shell(&path);
    }
}

#[test]
fn two_databases_commit_together_or_not_at_all() {
    let s = Scratch::new();
    let (a, b) = (s.path("a.db"), s.path("b.db"));
    for crash_at in 0..4 {
        for p in [&a, &b] {
            let _ = std::fs::remove_file(p);
            let bt = open(p, &OpenOptions::default());
            table_with(&bt, 10, 10);
        }
        let (x, y) = (open(&a, &OpenOptions::default()), open(&b, &OpenOptions::default()));
        let mut names = Vec::new();
        for bt in [&x, &y] {
            bt.begin_write(false).unwrap();
            fill(bt, 2, 10, 5, 10);
            assert!(bt.needs_super_journal());
            names.push(bt.journal_name().to_str().unwrap().as_bytes().to_vec());
        }
        let list = x.write_super_journal(&names).unwrap();
        let name = list.to_str().unwrap();
        x.commit_phase_one(Commit::Together { super_journal: Some(name.as_bytes()) }).unwrap();
        if crash_at > 0 {
            y.commit_phase_one(Commit::Together { super_journal: Some(name.as_bytes()) }).unwrap();
        }
        if crash_at > 1 {
            std::fs::remove_file(&list).unwrap();
        }
        if crash_at > 2 {
            x.commit_phase_two(true).unwrap();
        }
        // The machine stops: what is on disk now is what there is.
        let after = Scratch::new();
        let mut copies: Vec<PathBuf> = Vec::new();
        for f in std::fs::read_dir(&s.0).unwrap() {
            let f = f.unwrap().path();
            // The names inside the journals are absolute: the copies go to their place afterwards.
            let to = after.0.join(f.file_name().unwrap());
            std::fs::copy(&f, &to).unwrap();
            copies.push(to);
        }
        x.rollback(true).ok();
        y.rollback(true).ok();
        drop((x, y));
        for f in std::fs::read_dir(&s.0).unwrap() {
            std::fs::remove_file(f.unwrap().path()).unwrap();
        }
        for c in copies {
            std::fs::copy(&c, s.0.join(c.file_name().unwrap())).unwrap();
        }
        let want = if crash_at > 1 { 15 } else { 10 };
        // One by us, the other by stock where there is one.
        let x = open(&a, &OpenOptions::default());
        assert_eq!(rows(&x, 2), want, "stopped at step {crash_at}");
        match shell(&b, "SELECT count(*) FROM t") {
            Some(n) => assert_eq!(n, want.to_string(), "stopped at step {crash_at}"),
            None => assert_eq!(rows(&open(&b, &OpenOptions::default()), 2), want),
        }
        assert!(!list.exists(), "nobody needs the list any more");
    }
}

#[test]
fn an_empty_file_reads_as_an_empty_schema() {
    let s = Scratch::new();
    let path = s.path("a.db");
    let bt = open(&path, &OpenOptions::default());
    bt.begin_read().unwrap();
    let mut c = bt.cursor(1, TreeKind::Table, false).unwrap();
    assert!(!c.first().unwrap() && !c.last().unwrap());
    assert_eq!((c.seek_rowid(5).unwrap(), c.count().unwrap(), bt.meta(1).unwrap()), (None, 0, 0));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "opening changes nothing");
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    assert!(c.first().unwrap());
    drop(c);
    bt.rollback(true).unwrap();
    bt.begin_read().unwrap();
    assert!(!bt.cursor(1, TreeKind::Table, false).unwrap().first().unwrap());
    bt.end_read();
    assert_eq!((bt.page_count(), std::fs::metadata(&path).unwrap().len()), (0, 0));
}

/// Calls to the world that can fail, counted down.
struct Faulty {
    inner: Arc<MemoryVfs>,
    left: Arc<AtomicI64>,
    code: Code,
    once: bool,
}

impl Faulty {
    fn ask(left: &AtomicI64, code: Code, once: bool) -> Result<()> {
        let n = left.fetch_sub(1, SeqCst);
        if n == 0 || (n < 0 && !once && n > -1_000_000) { Err(code.into()) } else { Ok(()) }
    }
}

struct FaultyFile {
    inner: Box<dyn File>,
    left: Arc<AtomicI64>,
    code: Code,
    once: bool,
}

impl Vfs for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        Faulty::ask(&self.left, Code::Cantopen, self.once)?;
        let inner = self.inner.open(path, flags)?;
        Ok(Box::new(FaultyFile { inner, left: self.left.clone(), code: self.code, once: self.once }))
    }
    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        Faulty::ask(&self.left, Code::IoerrDelete, self.once)?;
        self.inner.delete(path, sync_dir)
    }
    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        Faulty::ask(&self.left, Code::IoerrAccess, self.once)?;
        self.inner.access(path, what)
    }
    iolite_os::pass_to_inner!(full_path clock entropy);
}

impl FaultyFile {
    fn ask(&self, code: Code) -> Result<()> {
        Faulty::ask(&self.left, code, self.once)
    }
}

impl File for FaultyFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        self.ask(Code::IoerrRead)?;
        self.inner.read(buf, offset)
    }
    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        if let Err(e) = self.ask(self.code) {
            // Part of it got there.
            let _ = self.inner.write(&buf[..buf.len() / 2], offset);
            return Err(e);
        }
        self.inner.write(buf, offset)
    }
    fn truncate(&self, size: u64) -> Result<()> {
        self.ask(Code::IoerrTruncate)?;
        self.inner.truncate(size)
    }
    fn sync(&self, kind: SyncKind) -> Result<()> {
        self.ask(Code::IoerrFsync)?;
        self.inner.sync(kind)
    }
    fn size(&self) -> Result<u64> {
        self.ask(Code::IoerrFstat)?;
        self.inner.size()
    }
    fn lock(&self, level: LockLevel) -> Result<()> {
        self.ask(Code::IoerrLock)?;
        self.inner.lock(level)
    }
    fn check_reserved(&self) -> Result<bool> {
        self.ask(Code::IoerrCheckreservedlock)?;
        self.inner.check_reserved()
    }
    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.ask(Code::IoerrShmmap)?;
        self.inner.shm_map(index, size, extend)
    }
    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        if !matches!(how, ShmLock::UnlockShared | ShmLock::UnlockExclusive) {
            self.ask(Code::IoerrShmlock)?;
        }
        self.inner.shm_lock(first, n, how)
    }
    iolite_os::pass_to_inner!(unlock sector_size characteristics is_read_only identity has_moved shm_barrier shm_unmap);
}

/// A transaction of several statements, each taken back alone if it fails.
fn work(bt: &Btree, root: u32) -> Result<()> {
    bt.begin_write(false)?;
    let done = (|| {
        for i in 0..40 {
            bt.savepoint_open(0)?;
            let one = (|| {
                let mut c = bt.cursor(root, TreeKind::Table, true)?;
                c.insert_row(1000 + i, &vec![3; 400 + i as usize * 20], 0, InsertAt::Unknown)?;
                if c.seek_rowid(i * 3)? == Some(std::cmp::Ordering::Equal) {
                    c.delete(false)?;
                }
                Ok(())
            })();
            match one {
                Ok(()) => bt.savepoint_release(0)?,
                Err(e) => {
                    bt.savepoint_rollback(0)?;
                    bt.savepoint_release(0)?;
                    return Err(e);
                }
            }
        }
        bt.commit()
    })();
    if done.is_err() {
        let _ = bt.rollback(true);
    }
    done
}

#[test]
fn a_failing_call_anywhere_leaves_all_or_nothing() {
    let modes = [JournalMode::Delete, JournalMode::Persist, JournalMode::Truncate, JournalMode::Wal];
    for mode in modes {
        for (code, once) in [(Code::Full, true), (Code::IoerrWrite, true), (Code::Full, false)] {
            let mut finished = false;
            for n in 0..5000 {
                let inner = Arc::new(MemoryVfs::new());
                let left = Arc::new(AtomicI64::new(i64::MAX));
                let vfs = Arc::new(Faulty { inner: inner.clone(), left: left.clone(), code, once });
                let opts = OpenOptions { page_size: 512, cache_size: 8, ..OpenOptions::default() };
                let bt = Btree::open(vfs.clone(), "x", &opts).unwrap();
                bt.set_journal_mode(mode).unwrap();
                let root = table_with(&bt, 100, 100);
                left.store(n, SeqCst);
                let done = work(&bt, root);
                let failed = left.load(SeqCst) < 0;
                left.store(i64::MAX, SeqCst);
                // What this connection sees, and what one sees that comes after a crash.
                let mine = rows_or_fail(&bt, root);
                let fresh = Btree::open(inner.clone(), "x", &opts).unwrap();
                drop(bt);
                let theirs = rows_or_fail(&fresh, root).unwrap();
                let found = fresh.integrity_check(&[1, root], 5).unwrap().0;
                assert!(found.is_empty(), "{mode:?} {code:?} call {n}: {found:?}");
                let all = 100 + 40 - 34;
                if done.is_ok() {
                    assert_eq!(theirs, all, "{mode:?} {code:?} call {n}");
                } else {
                    assert!(theirs == 100 || theirs == all, "{mode:?} {code:?} call {n}: {theirs} rows");
                }
                if let Ok(mine) = mine {
                    assert_eq!(mine, theirs, "{mode:?} {code:?} call {n}: {done:?}");
                }
                if !failed {
                    finished = true;
                    break;
                }
            }
            assert!(finished);
        }
    }
}

fn rows_or_fail(bt: &Btree, root: u32) -> Result<u64> {
    bt.begin_read()?;
    let n = bt.cursor(root, TreeKind::Table, false)?.count();
    bt.end_read();
    n
}

#[test]
fn running_out_of_memory_anywhere_leaves_all_or_nothing() {
    // The plan for failing allocations is process-wide: a process of its own.
    if std::env::var_os("IOLITE_NOMEM").is_none() {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "files::running_out_of_memory_anywhere_leaves_all_or_nothing",
                "--test-threads=1",
            ])
            .env("IOLITE_NOMEM", "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    for mode in [JournalMode::Delete, JournalMode::Wal] {
        for n in (0..).step_by(3) {
            let inner = Arc::new(MemoryVfs::new());
            let opts = OpenOptions { page_size: 512, cache_size: 8, ..OpenOptions::default() };
            let bt = Btree::open(inner.clone(), "x", &opts).unwrap();
            bt.set_journal_mode(mode).unwrap();
            let root = table_with(&bt, 100, 100);
            iolite_base::alloc::fail_in(n);
            let done = work(&bt, root);
            let failed = !iolite_base::alloc::failure_pending();
            iolite_base::alloc::fail_in(-1);
            drop(bt);
            let fresh = Btree::open(inner.clone(), "x", &opts).unwrap();
            let theirs = rows_or_fail(&fresh, root).unwrap();
            assert_eq!(fresh.integrity_check(&[1, root], 5).unwrap().0, [] as [String; 0]);
            assert!(theirs == 106 || (theirs == 100 && done.is_err()), "{mode:?} allocation {n}");
            if !failed {
                assert!(n > 100);
                break;
            }
        }
    }
}

/// Amounts on many pages; whoever reads must always find the same sum.
#[test]
fn every_snapshot_is_consistent() {
    snapshots(Arc::new(UnixVfs::new()));
}

#[test]
fn every_snapshot_is_consistent_with_process_locks() {
    snapshots(Arc::new(UnixVfs::with_process_locks()));
}

#[test]
fn every_snapshot_is_consistent_in_memory() {
    snapshots(Arc::new(MemoryVfs::new()));
}

fn snapshots(vfs: Arc<dyn Vfs>) {
    const ACCOUNTS: i64 = 300;
    for mode in [JournalMode::Wal, JournalMode::Delete, JournalMode::Persist] {
        let s = Scratch::new();
        let path = s.path("a.db");
        let opts = OpenOptions { page_size: 512, cache_size: 15, ..OpenOptions::default() };
        let bt = Btree::open(vfs.clone(), &path, &opts).unwrap();
        bt.set_synchronous(SyncMode::Off).unwrap();
        bt.set_journal_mode(mode).unwrap();
        bt.begin_write(false).unwrap();
        let root = bt.create_tree(TreeKind::Table).unwrap();
        declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a, b)");
        let put = |c: &mut Cursor, i: i64, v: i64| {
            let rec = record(&[Col::Int(v), Col::Blob(&[5; 50])]);
            c.insert_row(i, &rec, 0, InsertAt::Unknown).unwrap();
        };
        let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
        for i in 0..ACCOUNTS {
            put(&mut c, i, 1000);
        }
        drop(c);
        bt.commit().unwrap();
        let value = |c: &mut Cursor| {
            let mut b = [0; 8];
            c.read_payload(3, &mut b).unwrap();
            i64::from_be_bytes(b)
        };
        std::thread::scope(|scope| {
            for t in 0..2u64 {
                let (path, opts, vfs) = (&path, &opts, vfs.clone());
                scope.spawn(move || {
                    let bt = Btree::open(vfs, path, opts).unwrap();
                    bt.set_busy_timeout(60_000).unwrap();
                    bt.set_lock_lease(LeaseTerms::from_the_first(3)).unwrap();
                    bt.begin_read().unwrap();
                    bt.end_read();
                    // One commits with a sync, the other on top of it without.
                    bt.set_synchronous(if t == 0 { SyncMode::Full } else { SyncMode::Off }).unwrap();
                    bt.set_wal_autocheckpoint(if t == 0 { 10 } else { 0 });
                    let mut r = Rng(t);
                    for i in 0..300 {
                        bt.begin_write(false).unwrap();
                        let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
                        for _ in 0..1 + r.below(6) {
                            let (a, b) = (r.below(ACCOUNTS as u64) as i64, r.below(ACCOUNTS as u64) as i64);
                            let n = r.below(50) as i64;
                            for (k, d) in [(a, -n), (b, n)] {
                                c.seek_rowid(k).unwrap();
                                let v = value(&mut c);
                                put(&mut c, k, v + d);
                            }
                        }
                        drop(c);
                        if r.below(10) == 0 {
                            bt.rollback(true).unwrap();
                        } else {
                            bt.commit().unwrap();
                        }
                        if mode == JournalMode::Wal && t == 1 && i % 40 == 7 {
                            let how =
                                [CheckpointMode::Full, CheckpointMode::Restart, CheckpointMode::Truncate];
                            match bt.checkpoint(how[i / 40 % 3]) {
                                Ok(_) => {}
                                Err(e) => assert_eq!(e.code().primary(), Code::Busy),
                            }
                        }
                    }
                });
            }
            for t in 0..3 {
                let (path, opts, vfs) = (&path, &opts, vfs.clone());
                scope.spawn(move || {
                    let bt = Btree::open(vfs, path, opts).unwrap();
                    bt.set_busy_timeout(60_000).unwrap();
                    bt.set_lock_lease(LeaseTerms::from_the_first(t * 4)).unwrap();
                    for _ in 0..150 {
                        bt.begin_read().unwrap();
                        let mut c = bt.cursor(root, TreeKind::Table, false).unwrap();
                        let (mut sum, mut more) = (0, c.first().unwrap());
                        while more {
                            sum += value(&mut c);
                            more = c.next().unwrap();
                        }
                        assert_eq!(sum, ACCOUNTS * 1000, "{mode:?}");
                        drop(c);
                        bt.end_read();
                    }
                });
            }
        });
        assert_eq!(bt.begin_read().map(|()| bt.integrity_check(&[1, root], 5).unwrap().0.len()).unwrap(), 0);
        bt.end_read();
        bt.close().unwrap();
        if Path::new(&path).exists() {
            check_with_shell(&path);
        }
    }
}

/// The other half of the next test: a user who may only read.
#[test]
fn child_that_may_only_read() {
    let Ok(path) = std::env::var("IOLITE_READ_AT") else { return };
    let want: u64 = std::env::var("IOLITE_READ_ROWS").unwrap().parse().unwrap();
    let bt = open(&path, &OpenOptions::default());
    bt.set_lock_lease(LeaseTerms::from_the_first(1000)).unwrap();
    for _ in 0..3 {
        assert_eq!(rows(&bt, 2), want);
    }
    assert_eq!(bt.begin_write(false).unwrap_err().code(), Code::Readonly);
    assert!(bt.is_read_only());
}

#[test]
fn a_log_is_read_without_the_right_to_write() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let s = Scratch::new();
    if std::fs::metadata(&s.0).unwrap().uid() != 0 {
        eprintln!("needs root, to become somebody else: not run");
        return;
    }
    let path = s.path("a.db");
    let read = |want: u64| {
        std::fs::set_permissions(&s.0, std::fs::Permissions::from_mode(0o555)).unwrap();
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::child_that_may_only_read", "--nocapture"])
            .env("IOLITE_READ_AT", &path)
            .env("IOLITE_READ_ROWS", want.to_string())
            .uid(65534)
            .output();
        std::fs::set_permissions(&s.0, std::fs::Permissions::from_mode(0o755)).unwrap();
        let Ok(done) = done else {
            eprintln!("the test cannot be run by another user: not run");
            return;
        };
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
    };
    let bt = open(&path, &OpenOptions::default());
    bt.set_journal_mode(JournalMode::Wal).unwrap();
    bt.set_wal_autocheckpoint(0);
    let root = table_with(&bt, 300, 100);
    // With the writer there; then with what it left behind when it died.
    read(300);
    bt.begin_write(false).unwrap();
    fill(&bt, root, 300, 50, 100);
    bt.commit().unwrap();
    read(350);
    for suffix in ["", "-wal", "-shm"] {
        std::fs::copy(format!("{path}{suffix}"), s.path(&format!("b.db{suffix}"))).unwrap();
    }
    drop(bt);
    for suffix in ["", "-wal", "-shm"] {
        std::fs::rename(s.path(&format!("b.db{suffix}")), format!("{path}{suffix}")).unwrap();
    }
    read(350);
}

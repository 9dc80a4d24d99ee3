//! Beside stock SQLite: each reads, continues and recovers what the other left, and both work on one file at
//! the same time.
//!
//! Stock SQLite is Python's `sqlite3` module and the `sqlite3` shell, in processes of their own. Where they
//! are missing, these tests say so and pass.

use crate::support::*;
use iolite_base::Code;
use iolite_btree::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

fn have_stock() -> bool {
    let there = shell(":memory:", "SELECT 1").is_some()
        && Command::new("python3").args(["-c", "import sqlite3"]).status().is_ok_and(|s| s.success());
    if !there {
        eprintln!("no sqlite3 shell or Python here: not run");
    }
    there
}

/// Runs a Python program to its end, or to its violent death.
fn python(code: &str, path: &str) {
    let prelude = "import sqlite3, os, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
def fill(n, size):
  db.executemany('INSERT INTO t VALUES(?,?)', [(i, os.urandom(size)) for i in range(n)])
def die():
  os.kill(os.getpid(), 9)
";
    Command::new("python3").args(["-c", &format!("{prelude}{code}"), path]).status().unwrap();
}

/// A Python program that is told line by line what to execute, and answers each line.
struct Peer(Child, BufReader<std::process::ChildStdout>);

impl Peer {
    fn new(path: &str) -> Peer {
        let code = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
for line in sys.stdin:
  try: print(db.execute(line).fetchall(), flush=True)
  except Exception as e: print(e, flush=True)
";
        let mut c = Command::new("python3")
            .args(["-c", code, path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(c.stdout.take().unwrap());
        Peer(c, out)
    }

    fn ask(&mut self, sql: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{sql}").unwrap();
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn table_root(bt: &Btree) -> u32 {
    // All these files have one table, whose root is page 2, or 3 behind the first pointer map.
    if bt.auto_vacuum() == AutoVacuum::None { 2 } else { 3 }
}

fn count(bt: &Btree) -> u64 {
    bt.begin_read().unwrap();
    let mut c = bt.cursor(table_root(bt), TreeKind::Table, false).unwrap();
    let n = c.count().unwrap();
    let mut walked = 0;
    let mut more = c.first().unwrap();
    while more {
        let mut all = vec![0; c.payload_len() as usize];
        c.read_payload(0, &mut all).unwrap();
        walked += 1;
        more = c.next().unwrap();
    }
    assert_eq!(n, walked);
    assert_eq!(bt.integrity_check(&[1, table_root(bt)], 10).unwrap().0, [] as [String; 0]);
    bt.end_read();
    n
}

fn add_rows(bt: &Btree, from: i64, n: i64, size: usize) {
    let mut c = bt.cursor(table_root(bt), TreeKind::Table, true).unwrap();
    for i in from..from + n {
        let blob = vec![i as u8; size];
        c.insert_row(i, &record(&[Col::Int(i), Col::Blob(&blob)]), 0, InsertAt::Unknown).unwrap();
    }
}

#[test]
fn files_made_by_stock_are_read_and_continued() {
    if !have_stock() {
        return;
    }
    for page in [512, 1024, 4096, 65536] {
        for auto in [0, 1, 2] {
            for mode in ["delete", "wal"] {
                let s = Scratch::new();
                let path = s.path("a.db");
                let sql = format!(
                    "PRAGMA page_size={page}; PRAGMA auto_vacuum={auto}; PRAGMA journal_mode={mode};
                     CREATE TABLE t(a, b);
                     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000)
                     INSERT INTO t SELECT i, randomblob(i % 700 * (i % 3)) FROM n;
                     DELETE FROM t WHERE a % 7 = 0;"
                );
                shell(&path, &sql);
                let bt = open(&path, &OpenOptions::default());
                assert_eq!(count(&bt), 1715);
                assert_eq!(bt.page_size(), page);
                bt.begin_write(false).unwrap();
                add_rows(&bt, 5000, 500, 300);
                bt.commit().unwrap();
                assert_eq!(count(&bt), 2215);
                assert_eq!(
                    shell(&path, "PRAGMA integrity_check; SELECT count(*) FROM t").unwrap(),
                    "ok\n2215"
                );
                bt.close().unwrap();
                assert!(!std::path::Path::new(&format!("{path}-wal")).exists());
                check_with_shell(&path);
            }
        }
    }
}

#[test]
fn a_hot_journal_left_by_stock_is_played_back() {
    if !have_stock() {
        return;
    }
    for (page, mode) in [(512, "delete"), (4096, "delete"), (4096, "persist"), (1024, "truncate")] {
        let s = Scratch::new();
        let path = s.path("a.db");
        python(
            &format!(
                "db.execute('PRAGMA page_size={page}')
db.execute('PRAGMA journal_mode={mode}')
db.execute('CREATE TABLE t(a,b)')
fill(1000, 200)
db.execute('PRAGMA cache_size=5')
db.execute('BEGIN')
db.execute('UPDATE t SET b = randomblob(300)')
fill(1000, 200)
die()"
            ),
            &path,
        );
        assert!(std::fs::metadata(format!("{path}-journal")).unwrap().len() > 0);
        let bt = open(&path, &OpenOptions { read_only: true, ..OpenOptions::default() });
        assert_eq!(bt.begin_read().unwrap_err().code(), Code::ReadonlyRollback);
        let bt = open(&path, &OpenOptions::default());
        assert_eq!(count(&bt), 1000, "page size {page}, {mode}");
        drop(bt);
        check_with_shell(&path);
    }
}

#[test]
fn a_log_left_by_stock_is_recovered() {
    if !have_stock() {
        return;
    }
    for page in [512, 4096, 65536] {
        let s = Scratch::new();
        let path = s.path("a.db");
        python(
            &format!(
                "db.execute('PRAGMA page_size={page}')
db.execute('PRAGMA journal_mode=wal')
db.execute('CREATE TABLE t(a,b)')
db.execute('PRAGMA wal_autocheckpoint=0')
for j in range(20):
  db.execute('BEGIN')
  fill(300, 900)
  db.execute('COMMIT')
db.execute('PRAGMA cache_size=5')
db.execute('BEGIN')
db.execute('UPDATE t SET b = randomblob(300)')
die()"
            ),
            &path,
        );
        let bt = open(&path, &OpenOptions::default());
        assert_eq!(count(&bt), 6000);
        bt.begin_write(false).unwrap();
        add_rows(&bt, 9000, 10, 100);
        bt.commit().unwrap();
        assert_eq!(shell(&path, "SELECT count(*) FROM t; PRAGMA integrity_check").unwrap(), "6010\nok");
        bt.close().unwrap();
        assert_eq!(shell(&path, "SELECT count(*) FROM t; PRAGMA integrity_check").unwrap(), "6010\nok");
    }
}

/// The other half of the next test: a process that dies in the middle of its work.
#[test]
fn child_that_dies() {
    let Ok(path) = std::env::var("IOLITE_DIE_AT") else { return };
    let mode = JournalMode::from_name(&std::env::var("IOLITE_DIE_MODE").unwrap()).unwrap();
    let bt = open(&path, &OpenOptions { cache_size: 10, page_size: 1024, ..OpenOptions::default() });
    bt.set_journal_mode(mode).unwrap();
    bt.set_wal_autocheckpoint(0);
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a, b)");
    bt.commit().unwrap();
    for i in 0..20 {
        bt.begin_write(false).unwrap();
        add_rows(&bt, 100 * i, 100, 250);
        bt.commit().unwrap();
    }
    bt.begin_write(false).unwrap();
    add_rows(&bt, 500, 3000, 400);
    std::process::abort();
}

#[test]
fn what_we_left_is_recovered_by_stock_and_by_us() {
    if !have_stock() {
        return;
    }
    for mode in ["delete", "persist", "truncate", "wal"] {
        for by_stock in [true, false] {
            let s = Scratch::new();
            let path = s.path("a.db");
            let died = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "stock::child_that_dies"])
                .env("IOLITE_DIE_AT", &path)
                .env("IOLITE_DIE_MODE", mode)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(!died.success());
            let left = if mode == "wal" { "-wal" } else { "-journal" };
            assert!(std::fs::metadata(format!("{path}{left}")).unwrap().len() > 1000);
            if !by_stock {
                let bt = open(&path, &OpenOptions::default());
                assert_eq!(count(&bt), 2000);
                bt.close().unwrap();
            }
            let said =
                shell(&path, "SELECT count(*), max(length(b)) FROM t; PRAGMA integrity_check").unwrap();
            assert_eq!(said, "2000|250\nok", "{mode}");
        }
    }
}

#[test]
fn locks_of_both_kinds_conflict_as_they_should() {
    if !have_stock() {
        return;
    }
    let s = Scratch::new();
    let path = s.path("a.db");
    shell(&path, "CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 2)");
    let bt = open(&path, &OpenOptions::default());
    let mut peer = Peer::new(&path);
    // He reads: we may write, but not commit.
    peer.ask("BEGIN");
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(1,)]");
    bt.begin_write(false).unwrap();
    add_rows(&bt, 10, 1, 10);
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(1,)]");
    assert_eq!(bt.commit_phase_one(Commit::Alone).unwrap_err().code(), Code::Busy);
    assert_eq!(peer.ask("COMMIT"), "[]");
    bt.commit().unwrap();
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(2,)]");
    // He writes: we may read, but not write.
    peer.ask("BEGIN IMMEDIATE");
    assert_eq!(bt.begin_write(false).unwrap_err().code(), Code::Busy);
    assert_eq!(count(&bt), 2);
    peer.ask("INSERT INTO t VALUES(5,6)");
    peer.ask("COMMIT");
    let before = bt.data_version();
    assert_eq!(count(&bt), 3);
    assert_ne!(bt.data_version(), before);
    // We write: he may not.
    bt.begin_write(false).unwrap();
    assert_eq!(peer.ask("BEGIN IMMEDIATE"), "database is locked");
    bt.rollback(true).unwrap();
    assert_eq!(peer.ask("BEGIN EXCLUSIVE"), "[]");
    assert_eq!(bt.begin_read().unwrap_err().code(), Code::Busy);
    peer.ask("COMMIT");
}

#[test]
fn snapshots_of_both_in_one_log() {
    if !have_stock() {
        return;
    }
    let s = Scratch::new();
    let path = s.path("a.db");
    shell(&path, "PRAGMA journal_mode=wal; CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 2)");
    let bt = open(&path, &OpenOptions::default());
    assert_eq!(count(&bt), 1);
    let mut peer = Peer::new(&path);
    peer.ask("BEGIN");
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(1,)]");
    for i in 0..30 {
        bt.begin_write(false).unwrap();
        add_rows(&bt, 10 + 10 * i, 10, 500);
        bt.commit().unwrap();
    }
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(1,)]");
    // His snapshot keeps the log from being emptied.
    let r = bt.checkpoint(CheckpointMode::Passive).unwrap();
    assert!(r.checkpointed < r.log);
    assert!(bt.checkpoint(CheckpointMode::Truncate).unwrap().busy);
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(1,)]");
    assert_eq!(peer.ask("INSERT INTO t VALUES(7,8)"), "database is locked");
    peer.ask("COMMIT");
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(301,)]");
    // Now we hold one.
    bt.begin_read().unwrap();
    peer.ask("INSERT INTO t VALUES(7,8)");
    let mut c = bt.cursor(2, TreeKind::Table, false).unwrap();
    assert_eq!(c.count().unwrap(), 301);
    assert_eq!(bt.begin_write(false).unwrap_err().code(), Code::BusySnapshot);
    assert_eq!(peer.ask("PRAGMA wal_checkpoint(TRUNCATE)").split(',').next(), Some("[(1"));
    assert_eq!(c.count().unwrap(), 301);
    drop(c);
    bt.end_read();
    assert_eq!(count(&bt), 302);
    let r = bt.checkpoint(CheckpointMode::Truncate).unwrap();
    assert_eq!(r, CheckpointResult { busy: false, log: 0, checkpointed: 0 });
    assert_eq!(std::fs::metadata(format!("{path}-wal")).unwrap().len(), 0);
    assert_eq!(peer.ask("SELECT count(*) FROM t"), "[(302,)]");
    peer.ask("INSERT INTO t VALUES(7,8)");
    assert_eq!(count(&bt), 303);
    assert_eq!(peer.ask("PRAGMA integrity_check"), "[('ok',)]");
    drop(peer);
    bt.close().unwrap();
    check_with_shell(&path);
}

/// Reads the counter in row 1 and writes it back, one higher.
fn bump(bt: &Btree) {
    bt.begin_write(false).unwrap();
    let mut c = bt.cursor(2, TreeKind::Table, true).unwrap();
    assert!(c.first().unwrap());
    let mut row = vec![0; c.payload_len() as usize];
    c.read_payload(0, &mut row).unwrap();
    // One column; small numbers are stored short.
    let body = &row[2..];
    let n = body.iter().fold(0i64, |n, b| n << 8 | *b as i64);
    let n = if row[1] == 9 { 1 } else { n };
    let rowid = c.rowid();
    c.insert_row(rowid, &record(&[Col::Int(n + 1)]), 0, InsertAt::Unknown).unwrap();
    drop(c);
    bt.commit().unwrap();
}

#[test]
fn two_processes_count_together() {
    if !have_stock() {
        return;
    }
    for mode in ["delete", "wal", "truncate", "persist"] {
        let s = Scratch::new();
        let path = s.path("a.db");
        shell(&path, &format!("PRAGMA journal_mode={mode}; CREATE TABLE t(a); INSERT INTO t VALUES(0)"));
        let code = format!(
            "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
db.execute('PRAGMA journal_mode={mode}')
db.execute('PRAGMA synchronous=off')
db.execute('PRAGMA wal_autocheckpoint=20')
for i in range(400):
  db.execute('BEGIN IMMEDIATE')
  db.execute('UPDATE t SET a = a + 1')
  db.execute('COMMIT')
"
        );
        let mut child = Command::new("python3").args(["-c", &code, &path]).spawn().unwrap();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || {
                    let bt = open(&path, &OpenOptions::default());
                    bt.begin_read().unwrap_or(());
                    bt.end_read();
                    bt.set_journal_mode(JournalMode::from_name(mode).unwrap()).unwrap_or(JournalMode::Delete);
                    bt.set_synchronous(SyncMode::Off).unwrap();
                    bt.set_wal_autocheckpoint(15);
                    bt.set_busy_timeout(60_000).unwrap();
                    for _ in 0..400 {
                        bump(&bt);
                    }
                    bt.close().unwrap();
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert!(child.wait().unwrap().success());
        assert_eq!(shell(&path, "SELECT a FROM t; PRAGMA integrity_check").unwrap(), "1200\nok", "{mode}");
    }
}

//! Large values that go to the file at once (`PRAGMA large_value_direct`).

use iolite::engine::{Connection, OpenFlags, Value};
use std::path::{Path, PathBuf};

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir = std::env::temp_dir().join(format!("iolite-it-large-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join("a.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SIZE: usize = 1_000_000;

/// A value that differs from page to page.
fn value(seed: u8, size: usize) -> Vec<u8> {
    (0..size).map(|i| (i / 997) as u8 ^ seed.wrapping_mul(37) ^ (i as u8)).collect()
}

fn open(path: &Path) -> Connection {
    let c = Connection::open_with(path.to_str().unwrap(), OpenFlags::default()).unwrap();
    c.execute_batch(
        "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-8000; PRAGMA large_value_direct=on",
    )
    .unwrap();
    c
}

fn put(c: &Connection, seed: u8) {
    let mut s = c.prepare("UPDATE b SET v = ? WHERE id = 1").unwrap();
    s.bind(1, Value::blob(&value(seed, SIZE)).unwrap()).unwrap();
    while s.step().unwrap() == iolite::engine::Step::Row {}
}

fn seed_of(c: &Connection) -> u8 {
    let rows = c.query("SELECT v FROM b WHERE id = 1", &[]).unwrap();
    let Value::Blob(b, _) = &rows[0][0] else { panic!("no blob") };
    let seed = (0..=255).find(|&s| value(s, 8) == b[..8]).unwrap();
    assert!(b[..] == value(seed, SIZE)[..], "the value is none that was written");
    seed
}

fn int(c: &Connection, sql: &str) -> i64 {
    c.query(sql, &[]).unwrap()[0][0].to_int()
}

/// Frames in the log.
fn frames(c: &Connection) -> i64 {
    c.query("PRAGMA wal_checkpoint(noop)", &[]).unwrap()[0][1].to_int()
}

/// A database in which a value was replaced once, and whose log is empty: there is room for the next one.
fn ready(path: &Path) -> Connection {
    let c = open(path);
    c.execute_batch("CREATE TABLE b(id INTEGER PRIMARY KEY, v BLOB); INSERT INTO b VALUES(1, 0), (2, 0)")
        .unwrap();
    put(&c, 1);
    put(&c, 2);
    c.execute_batch("PRAGMA wal_checkpoint(truncate)").unwrap();
    c
}

fn is_sound(c: &Connection) {
    let rows = c.query("PRAGMA integrity_check", &[]).unwrap();
    assert_eq!(rows[0][0].to_string_lossy(), "ok");
}

#[test]
fn the_pragma_reads_back() {
    let c = Connection::open_in_memory().unwrap();
    assert_eq!(int(&c, "PRAGMA large_value_direct"), 0);
    assert_eq!(int(&c, "PRAGMA large_value_direct=ON"), 1);
    c.execute_batch("ATTACH ':memory:' AS other").unwrap();
    assert_eq!(int(&c, "PRAGMA other.large_value_direct"), 1);
    assert_eq!(int(&c, "PRAGMA large_value_direct=0"), 0);
}

#[test]
fn values_are_read_back_the_log_stays_short_and_the_file_does_not_grow() {
    let f = Folder::new("updates");
    let c = ready(&f.file());
    let size = std::fs::metadata(f.file()).unwrap().len();
    for seed in 3..40 {
        put(&c, seed);
        assert_eq!(seed_of(&c), seed);
    }
    assert!(frames(&c) < 37 * 12, "{} frames", frames(&c));
    assert_eq!(std::fs::metadata(f.file()).unwrap().len(), size);
    is_sound(&c);
    c.execute_batch("PRAGMA wal_checkpoint(truncate)").unwrap();
    assert_eq!((seed_of(&c), int(&c, "PRAGMA page_count") * 4096), (39, size as i64));
    is_sound(&c);
    // And off again.
    c.execute_batch("PRAGMA large_value_direct=off").unwrap();
    put(&c, 40);
    assert!(frames(&c) > 200);
}

#[test]
fn a_small_cache_writes_before_the_commit_and_a_rollback_takes_it_back() {
    let f = Folder::new("spill");
    let c = ready(&f.file());
    c.execute_batch("PRAGMA cache_size=20; BEGIN").unwrap();
    put(&c, 3);
    assert_eq!(seed_of(&c), 3);
    c.execute_batch("ROLLBACK").unwrap();
    assert_eq!(seed_of(&c), 2);
    put(&c, 4);
    assert_eq!(seed_of(&c), 4);
    assert!(frames(&c) < 30, "{} frames", frames(&c));
    c.execute_batch("BEGIN; SAVEPOINT s").unwrap();
    put(&c, 5);
    c.execute_batch("ROLLBACK TO s").unwrap();
    assert_eq!(seed_of(&c), 4);
    put(&c, 6);
    put(&c, 7);
    c.execute_batch("RELEASE s; INSERT INTO b VALUES(3, zeroblob(20000)); COMMIT").unwrap();
    assert_eq!(seed_of(&c), 7);
    is_sound(&c);
    drop(c);
    let c = open(&f.file());
    assert_eq!(seed_of(&c), 7);
    is_sound(&c);
}

#[test]
fn readers_of_older_states_see_the_older_value() {
    let f = Folder::new("readers");
    let c = ready(&f.file());
    let r = open(&f.file());
    assert_eq!(seed_of(&r), 2);
    r.execute_batch("BEGIN").unwrap();
    assert_eq!(seed_of(&r), 2);
    // This one still reads 2, whose pages are not free: the value 3 goes to those of 1, the value 4 must not go to those of 2.
    put(&c, 3);
    assert_eq!(seed_of(&r), 2);
    put(&c, 4);
    assert_eq!((seed_of(&r), seed_of(&c)), (2, 4));
    let long = frames(&c);
    assert!(long > 200, "{long} frames");
    r.execute_batch("COMMIT").unwrap();
    assert_eq!(seed_of(&r), 4);
    c.execute_batch("PRAGMA wal_checkpoint(truncate)").unwrap();
    put(&c, 5);
    assert_eq!((seed_of(&r), seed_of(&c)), (5, 5));
    assert!(frames(&c) < 30);
}

#[test]
fn connections_let_go_of_what_they_know_of_pages_that_were_free() {
    let f = Folder::new("caches");
    let c = ready(&f.file());
    let others: Vec<Connection> = (0..3).map(|_| open(&f.file())).collect();
    for seed in 3..60u8 {
        put(&c, seed);
        for (i, o) in others.iter().enumerate() {
            // Page by page through the cache, and some of them only now and then.
            if (seed as usize).is_multiple_of(i + 1) {
                let first = value(seed, SIZE)[..20_000].to_vec();
                let rows = o.query("SELECT substr(v, 1, 20000) FROM b WHERE id = 1", &[]).unwrap();
                let Value::Blob(b, _) = &rows[0][0] else { panic!("no blob") };
                assert!(b[..] == first[..], "connection {i} at {seed}");
                assert_eq!(seed_of(o), seed);
            }
        }
        if seed.is_multiple_of(7) {
            c.execute_batch("PRAGMA wal_checkpoint(restart)").unwrap();
        }
    }
    is_sound(&c);
}

#[test]
fn pages_that_the_transaction_freed_itself_come_back_with_a_rollback() {
    // The pages of rows that go in the same transaction are not free when it begins.
    let f = Folder::new("same");
    let c = ready(&f.file());
    c.execute_batch("INSERT INTO b SELECT 9, v FROM b WHERE id = 1; PRAGMA wal_checkpoint(truncate)")
        .unwrap();
    c.execute_batch("BEGIN; DELETE FROM b WHERE id = 9").unwrap();
    put(&c, 3);
    put(&c, 4);
    c.execute_batch("ROLLBACK").unwrap();
    assert_eq!(seed_of(&c), 2);
    let rows = c.query("SELECT v FROM b WHERE id = 9", &[]).unwrap();
    let Value::Blob(b, _) = &rows[0][0] else { panic!("no blob") };
    assert!(b[..] == value(2, SIZE)[..]);
    is_sound(&c);
}

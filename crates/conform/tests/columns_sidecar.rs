//! The sidecar of columns: what a later process takes from it, and that no bytes in it are believed that are not true.

use iolite_stock as stock;
use std::path::PathBuf;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iolite-sidecar-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const QUERIES: [&str; 4] = [
    "SELECT count(*), sum(a), sum(b), min(id), max(pad), total(r) FROM t",
    "SELECT name, count(*), sum(b), avg(r) FROM t, d WHERE t.a = d.id GROUP BY name",
    "SELECT w, count(*), min(a) FROM t WHERE b < 5 GROUP BY w",
    "SELECT pad, id FROM t WHERE a = 17 ORDER BY r, id LIMIT 20",
];

/// A table of some segments with columns of every kind, written by stock.
fn made(path: &str, mode: &str) {
    let s = stock::Connection::open(path).unwrap();
    s.execute_batch(&format!("PRAGMA page_size=1024; PRAGMA journal_mode={mode}")).unwrap();
    s.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER, r REAL, w, big INTEGER);
         CREATE TABLE d(id INTEGER PRIMARY KEY, name TEXT, year INTEGER);
         INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 30000)
           SELECT i, i % 100, 'p' || (i % 3000), nullif(i % 7, 6), i * 0.25,
             CASE i % 5 WHEN 0 THEN 1 WHEN 1 THEN 2.5 WHEN 2 THEN '1' WHEN 3 THEN x'31' END, i * 1000000007 FROM c;
         INSERT INTO d WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 99)
           SELECT i, 'n' || i % 10, 1990 + i % 10 FROM c;",
    )
    .unwrap();
}

fn open(path: &str) -> iolite::engine::Connection {
    settle();
    iolite::engine::set_column_segment_leaves(512);
    let c = iolite::engine::Connection::open(path).unwrap();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    c
}

fn answer(c: &iolite::engine::Connection, q: &str) -> String {
    match c.query(q, &[]) {
        Ok(rows) => rows.iter().map(|r| format!("{r:?}\n")).collect(),
        Err(e) => format!("error {e}"),
    }
}

fn answers(c: &iolite::engine::Connection) -> Vec<String> {
    QUERIES.iter().map(|q| answer(c, q)).collect()
}

/// All queries in columns and in rows; they must agree.
fn agree(c: &iolite::engine::Connection, note: &str) {
    let before = c.column_runs();
    let columns = answers(c);
    assert_eq!(c.column_runs() - before, QUERIES.len() as u64, "{note}");
    c.execute_batch("PRAGMA analytics=off").unwrap();
    assert_eq!(columns, answers(c), "{note}");
    c.execute_batch("PRAGMA analytics=force").unwrap();
}

/// A database with its sidecar, all columns in it.
fn with_sidecar(f: &Folder, mode: &str) -> String {
    let path = f.file("a.db");
    for s in ["", "-wal", "-col"] {
        let _ = std::fs::remove_file(format!("{path}{s}"));
    }
    made(&path, mode);
    let c = open(&path);
    c.execute_batch("PRAGMA column_cache=persist").unwrap();
    agree(&c, "first");
    c.close().unwrap();
    assert!(std::fs::metadata(format!("{path}-col")).unwrap().len() > 100_000);
    path
}

fn settle() {
    // Until then a change of the file could leave no trace in its times.
    std::thread::sleep(std::time::Duration::from_millis(40));
}

#[test]
fn a_new_process_decodes_nothing() {
    for mode in ["DELETE", "WAL"] {
        let f = Folder::new(&format!("cold-{mode}"));
        let path = with_sidecar(&f, mode);
        for _ in 0..2 {
            let c = open(&path);
            agree(&c, mode);
            let n = c.column_counters(0);
            assert!(n.loaded >= 20 && n.adopted == 2, "{mode} {n:?}");
            assert_eq!((n.decoded, n.hashed, n.patched, n.rejected), (0, 0, 0, 0), "{mode}");
            assert_eq!(c.column_note(0), None);
            c.close().unwrap();
        }
        // By hashes alone.
        let c = open(&path);
        c.execute_batch("PRAGMA column_cache_trust=hash").unwrap();
        agree(&c, mode);
        let n = c.column_counters(0);
        assert!(n.decoded == 0 && n.hashed > 1000 && n.loaded >= 20, "{n:?}");
    }
}

#[test]
fn what_others_changed_meanwhile_is_seen() {
    for mode in ["DELETE", "WAL"] {
        let f = Folder::new(&format!("meanwhile-{mode}"));
        let path = with_sidecar(&f, mode);
        for (sql, rebuilt) in [
            ("UPDATE t SET a = 51 WHERE id IN (77, 20000)", 0),
            ("UPDATE t SET pad = 'new', r = -1 WHERE id = 12345", 0),
            ("DELETE FROM t WHERE id BETWEEN 100 AND 130", 1),
            ("INSERT INTO t(a, b) VALUES(17, 3)", 1),
            ("ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 4", 0),
            ("VACUUM", 99),
            ("DELETE FROM t WHERE id > 5000", 99),
            ("INSERT INTO t SELECT id + 100000, a, pad, b, r, w, big, 1 FROM t", 99),
            (
                "DROP TABLE d; CREATE TABLE d(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO d VALUES(17, 'x')",
                99,
            ),
        ] {
            let s = stock::Connection::open(&path).unwrap();
            s.execute_batch(sql).unwrap();
            drop(s);
            settle();
            let c = open(&path);
            agree(&c, sql);
            let n = c.column_counters(0);
            // A segment is decoded once for each set of columns that a query is the first to want.
            assert!(n.decoded <= rebuilt * 4, "{mode} {sql} {n:?}");
            assert!(n.hashed > 0, "{mode} {sql} {n:?}");
            c.close().unwrap();
            // Written anew at the close, it is good again.
            let c = open(&path);
            agree(&c, sql);
            let n = c.column_counters(0);
            assert_eq!((n.decoded, n.hashed, n.rejected), (0, 0, 0), "{mode} {sql} {n:?}");
        }
    }
}

#[test]
fn a_vacuum_counts_as_a_change() {
    let f = Folder::new("vacuum");
    let path = f.file("a.db");
    made(&path, "DELETE");
    let counter = || {
        let b = std::fs::read(&path).unwrap();
        u32::from_be_bytes(b[24..28].try_into().unwrap())
    };
    let (a, b) = (open(&path), open(&path));
    b.execute_batch("DELETE FROM t WHERE id % 3 = 0").unwrap();
    agree(&a, "before");
    let before = counter();
    b.execute_batch("VACUUM").unwrap();
    assert_eq!(counter(), before + 1);
    agree(&a, "after");
}

#[test]
fn a_log_that_went_on_says_what_changed() {
    let f = Folder::new("log");
    let path = f.file("a.db");
    made(&path, "WAL");
    // Somebody has the file open all the time: the log is never folded.
    let keeper = stock::Connection::open(&path).unwrap();
    keeper
        .execute_batch("PRAGMA wal_autocheckpoint=0; SELECT count(*) FROM t; UPDATE d SET year = 1")
        .unwrap();
    let c = open(&path);
    settle();
    c.execute_batch("PRAGMA column_cache=persist").unwrap();
    agree(&c, "log");
    c.close().unwrap();
    keeper.execute_batch("UPDATE t SET a = 3 WHERE id IN (5, 29000)").unwrap();
    let c = open(&path);
    agree(&c, "log");
    let n = c.column_counters(0);
    assert!(n.decoded == 0 && n.hashed == 0 && n.patched > 0 && n.loaded >= 20, "{n:?}");
}

#[test]
fn several_connections_and_a_copy_share_what_is_there() {
    let f = Folder::new("share");
    let path = with_sidecar(&f, "WAL");
    let (a, b) = (open(&path), open(&path));
    agree(&a, "a");
    agree(&b, "b");
    assert_eq!(a.column_counters(0).decoded, 0);
    a.close().unwrap();
    agree(&b, "b");
    // One process knows a table that the other never looked at: it is carried over.
    b.execute_batch("CREATE TABLE e AS SELECT id, a FROM t").unwrap();
    b.close().unwrap();
    let c = open(&path);
    answer(&c, "SELECT sum(a) FROM e");
    assert!(c.column_counters(0).decoded > 0);
    c.close().unwrap();
    settle();
    let c = open(&path);
    agree(&c, "carried over");
    let n = c.column_counters(0);
    assert_eq!((n.decoded, n.rejected), (0, 0), "{n:?}");
    c.close().unwrap();
    // A copy of both files: the pages are the same, which hashes prove.
    let copy = f.file("b.db");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(format!("{path}-col"), format!("{copy}-col")).unwrap();
    // Without a log, the state of a file has a name once its times are past.
    settle();
    let c = open(&copy);
    agree(&c, "copy");
    let n = c.column_counters(0);
    assert!(n.decoded == 0 && n.hashed > 1000, "{n:?}");
}

#[test]
fn a_sidecar_of_another_database_is_of_no_use_and_no_harm() {
    let f = Folder::new("other");
    let path = with_sidecar(&f, "DELETE");
    let other = f.file("b.db");
    made(&other, "DELETE");
    let s = stock::Connection::open(&other).unwrap();
    s.execute_batch(
        "UPDATE t SET a = (a * 7) % 100, pad = 'q' || pad, r = -r; UPDATE d SET name = 'm' || id % 7",
    )
    .unwrap();
    drop(s);
    std::fs::copy(format!("{path}-col"), format!("{other}-col")).unwrap();
    let c = open(&other);
    agree(&c, "other");
    assert!(c.column_counters(0).hashed > 0);
    c.close().unwrap();
    // Restored over the file, with the same sidecar beside it.
    std::fs::copy(&other, &path).unwrap();
    let c = open(&path);
    agree(&c, "restored");
}

#[test]
fn it_is_off_until_asked_for_and_goes_when_told() {
    let f = Folder::new("off");
    let path = f.file("a.db");
    let side = format!("{path}-col");
    made(&path, "WAL");
    let c = open(&path);
    agree(&c, "off");
    assert_eq!(
        answer(&c, "PRAGMA column_cache"),
        "[Text(\"memory\")]\n"
            .replace("Text(\"memory\")", &format!("{:?}", c.query("SELECT 'memory'", &[]).unwrap()[0][0]))
    );
    c.close().unwrap();
    assert!(!std::path::Path::new(&side).exists());
    let path = with_sidecar(&f, "WAL");
    // It may be deleted at any time.
    let c = open(&path);
    answer(&c, QUERIES[0]);
    std::fs::remove_file(&side).unwrap();
    agree(&c, "deleted");
    c.close().unwrap();
    let path = with_sidecar(&f, "WAL");
    let c = open(&path);
    c.execute_batch("PRAGMA column_cache=memory").unwrap();
    agree(&c, "memory");
    c.close().unwrap();
    assert!(!std::path::Path::new(&side).exists());
    // Rows deleted for good do not live on beside the database.
    let path = with_sidecar(&f, "WAL");
    let c = open(&path);
    c.execute_batch("PRAGMA secure_delete=on; DELETE FROM t WHERE id < 50; PRAGMA column_cache_trust=hash")
        .unwrap();
    agree(&c, "secure");
    c.close().unwrap();
    assert!(!std::path::Path::new(&side).exists());
}

#[test]
fn what_a_stranger_may_have_made_is_not_believed() {
    let f = Folder::new("stranger");
    let path = with_sidecar(&f, "WAL");
    // Only root may give files away; the owner's own sidecar is read by everybody.
    let given = std::os::unix::fs::chown(format!("{path}-col"), Some(4321), None).is_ok();
    settle();
    let c = open(&path);
    agree(&c, "stranger");
    let n = c.column_counters(0);
    assert_eq!(n.loaded == 0, given, "{n:?}");
    assert_eq!(c.column_note(0).is_some_and(|n| n.contains("no sidecar")), given);
}

#[test]
fn what_is_no_sidecar_is_left_alone() {
    let f = Folder::new("foreign");
    let path = f.file("a.db");
    let side = format!("{path}-col");
    made(&path, "WAL");
    std::fs::write(&side, "my notes").unwrap();
    let c = open(&path);
    c.execute_batch("PRAGMA column_cache=persist").unwrap();
    agree(&c, "foreign");
    assert!(c.column_note(0).is_some_and(|n| n.contains("no sidecar")));
    c.execute_batch("PRAGMA column_cache=memory").unwrap();
    c.close().unwrap();
    assert_eq!(std::fs::read(&side).unwrap(), b"my notes");
    // One of a later version is not read, and replaced where the user wants a sidecar.
    let mut later = b"iolite columns".to_vec();
    later.extend_from_slice(&[9; 3000]);
    std::fs::write(&side, &later).unwrap();
    let c = open(&path);
    agree(&c, "later");
    c.close().unwrap();
    let c = open(&path);
    agree(&c, "rebuilt");
    assert_eq!(c.column_counters(0).decoded, 0);
}

#[test]
fn where_it_cannot_be_written_queries_go_on() {
    let f = Folder::new("full");
    let path = f.file("a.db");
    made(&path, "WAL");
    // No file can be made under this name, and none can be written on a full disk.
    let new = format!("{path}-col.new");
    std::fs::create_dir(&new).unwrap();
    let c = open(&path);
    c.execute_batch("PRAGMA column_cache=persist").unwrap();
    agree(&c, "folder");
    assert!(c.column_note(0).is_some_and(|n| n.contains("cannot be written")), "{:?}", c.column_note(0));
    assert!(answer(&c, "PRAGMA column_cache_stats").contains("note"));
    c.close().unwrap();
    std::fs::remove_dir(&new).unwrap();
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    let c = open(&path);
    c.execute_batch("PRAGMA column_cache=persist").unwrap();
    agree(&c, "full");
    assert!(c.column_note(0).is_some(), "{:?}", c.column_note(0));
    c.close().unwrap();
}

fn rounds() -> u64 {
    std::env::var("IOLITE_SIDECAR_ROUNDS").ok().and_then(|v| v.parse().ok()).unwrap_or(300)
}

#[test]
fn no_bytes_are_believed_that_are_not_true() {
    let f = Folder::new("bytes");
    let path = with_sidecar(&f, "DELETE");
    settle();
    let side = format!("{path}-col");
    let image = std::fs::read(&side).unwrap();
    let want = {
        let c = open(&path);
        c.execute_batch("PRAGMA analytics=off").unwrap();
        answers(&c)
    };
    let mut r = Rng(99);
    let (mut rejected, mut loaded, mut decoded) = (0, 0, 0);
    for round in 0..rounds() {
        let mut bytes = image.clone();
        let n = bytes.len() as u64;
        match round % 8 {
            // Every region in turn, then anything anywhere, then lengths.
            0 => {
                let at = (round / 8 * 4099 % n) as usize;
                bytes[at] ^= 1 << (round % 7);
            }
            1 => {
                let from = r.below(n) as usize;
                let to = (from + r.below(5000) as usize).min(bytes.len());
                bytes[from..to].fill(r.below(256) as u8);
            }
            2 => bytes.truncate(r.below(n) as usize),
            3 => {
                let from = bytes.len() - (r.below(4000) as usize + 1);
                (from..bytes.len()).for_each(|i| bytes[i] = r.below(256) as u8);
            }
            4 => {
                let at = r.below(96) as usize;
                bytes[at] = r.below(256) as u8;
            }
            5 => {
                // Two blocks changed places.
                let (a, b) = (r.below(n - 512) as usize, r.below(n - 512) as usize);
                (0..512).for_each(|i| bytes[b + i] = image[a + i]);
            }
            6 => bytes.extend((0..r.below(500)).map(|_| 7)),
            _ => {
                for _ in 0..1 + r.below(200) {
                    let at = r.below(n) as usize;
                    bytes[at] = r.below(256) as u8;
                }
            }
        }
        std::fs::write(&side, &bytes).unwrap();
        let c = open(&path);
        if round % 3 == 0 {
            c.execute_batch("PRAGMA column_cache_trust=hash").unwrap();
        }
        for (i, q) in QUERIES.iter().enumerate() {
            if i == 2 && round % 5 == 0 {
                // Cut or overwritten while open.
                match round % 2 {
                    0 => std::fs::write(&side, b"").unwrap(),
                    _ => std::fs::write(&side, vec![0xa5; image.len()]).unwrap(),
                }
            }
            assert_eq!(answer(&c, q), want[i], "round {round}: {q}");
        }
        assert_eq!(c.column_runs(), QUERIES.len() as u64, "round {round}");
        let k = c.column_counters(0);
        rejected += k.rejected;
        loaded += k.loaded;
        decoded += k.decoded;
        // Not written anew at the close: the next round has the same file before it.
        c.execute_batch("PRAGMA column_cache=memory").unwrap();
    }
    assert!(rejected > 20 && loaded > 1000 && decoded > 100, "{rejected} {loaded} {decoded}");
}

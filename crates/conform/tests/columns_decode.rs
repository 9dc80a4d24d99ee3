//! Columns decoded by several threads say what rows say, also where a thread meets what it cannot decode.

use iolite::engine::Connection;

fn rows(c: &Connection, q: &str) -> String {
    format!("{:?}", c.query(q, &[]).unwrap())
}

/// What EXPLAIN ANALYZE says of a query.
fn analyzed(c: &Connection, q: &str) -> String {
    rows(c, &format!("EXPLAIN ANALYZE {q}"))
}

struct File(String);

impl File {
    fn new(name: &str) -> File {
        let f = File(
            std::env::temp_dir()
                .join(format!("iolite-{name}-{}.db", std::process::id()))
                .display()
                .to_string(),
        );
        iolite::engine::set_column_segment_leaves(16);
        f
    }

    /// A new connection, with nothing decoded if it is the only one.
    fn open(&self, threads: usize) -> Connection {
        let c = Connection::open(&self.0).unwrap();
        c.execute_batch(&format!("PRAGMA analytics=force; PRAGMA threads={threads}")).unwrap();
        c
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", self.0));
        }
    }
}

const QUERIES: [&str; 6] = [
    "SELECT count(*), sum(a), max(b), min(c), max(c) FROM t",
    "SELECT c, count(*), sum(a) FROM t GROUP BY c ORDER BY c LIMIT 50",
    "SELECT typeof(m), count(*), min(m), max(m) FROM t GROUP BY typeof(m) ORDER BY 1",
    "SELECT m, count(*) FROM t GROUP BY m ORDER BY 2 DESC, 1 LIMIT 30",
    "SELECT count(DISTINCT u), min(u), max(u), total(b) FROM t WHERE a < 700",
    "SELECT id, u, m, x FROM t WHERE a = 17 ORDER BY id",
];

/// A table with numbers, texts, columns that change their kind midway, and one that some rows end before.
fn fill(c: &Connection, wide: &str) {
    c.execute_batch(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, m, u TEXT);
         INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
           SELECT i, i * 7919 % 1000, i / 8.0, 'text ' || (i * 31 % 977),
             CASE WHEN i < 9000 THEN i % 50 WHEN i % 7 = 0 THEN NULL WHEN i % 7 < 3 THEN i % 50 / 2.0
               WHEN i > 20000 AND i < 27000 THEN i % 40 ELSE 'm' || (i % 90) END,
             'unique ' || i || {wide} FROM n;
         ALTER TABLE t ADD COLUMN x DEFAULT 'none';
         UPDATE t SET x = id WHERE id % 3 = 0 AND id > 15000;"
    ))
    .unwrap();
}

#[test]
fn threads_decode_what_one_decodes() {
    let f = File::new("decode");
    let c = f.open(1);
    fill(&c, "''");
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want: Vec<String> = QUERIES.iter().map(|q| rows(&c, q)).collect();
    drop(c);
    for threads in [2, 3, 8] {
        let c = f.open(threads);
        let line = format!("DECODED WITH {threads} THREADS");
        assert!(analyzed(&c, QUERIES[0]).contains(&line), "{}", analyzed(&c, QUERIES[0]));
        for (q, want) in QUERIES.iter().zip(&want) {
            assert_eq!(rows(&c, q), *want, "{threads} threads: {q}");
        }
        // All is there now.
        let decoded = c.column_counters(0).decoded;
        QUERIES.iter().for_each(|q| drop(rows(&c, q)));
        assert_eq!(c.column_counters(0).decoded, decoded);
        // What a change leaves is decoded by one, and put in.
        c.execute_batch("BEGIN; UPDATE t SET a = a + 1, m = 'new' WHERE id % 5000 = 0").unwrap();
        let changed: Vec<String> = QUERIES.iter().map(|q| rows(&c, q)).collect();
        c.execute_batch("PRAGMA analytics=off").unwrap();
        assert_eq!(changed, QUERIES.map(|q| rows(&c, q)));
        c.execute_batch("ROLLBACK").unwrap();
    }
}

#[test]
fn what_a_thread_cannot_decode_the_one_that_asked_does() {
    let f = File::new("decode-wide");
    let c = f.open(1);
    // Some rows in the middle have values on overflow pages.
    fill(&c, "CASE WHEN i BETWEEN 14000 AND 14010 THEN hex(zeroblob(5000)) ELSE '' END");
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want: Vec<String> = QUERIES.iter().map(|q| rows(&c, q)).collect();
    drop(c);
    let c = f.open(4);
    for (q, want) in QUERIES.iter().zip(&want) {
        assert_eq!(rows(&c, q), *want, "{q}");
    }
    drop(c);
    // With hardly any room.
    let c = f.open(4);
    c.execute_batch("PRAGMA column_work_size=64").unwrap();
    for (q, want) in QUERIES.iter().zip(&want) {
        assert_eq!(rows(&c, q), *want, "{q}");
    }
    c.execute_batch("PRAGMA column_work_size=524288").unwrap();
}

#[test]
fn damage_that_a_thread_meets_is_the_error_of_rows() {
    let f = File::new("decode-damage");
    let c = f.open(1);
    fill(&c, "''");
    let leaf = c.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int();
    assert_eq!(leaf, 30000);
    let size = c.query("PRAGMA page_size", &[]).unwrap()[0][0].to_int() as usize;
    drop(c);
    let mut bytes = std::fs::read(&f.0).unwrap();
    // The leaf of a table in the middle of the file gets cells that lie nowhere.
    let page = (bytes.len() / size / 2..bytes.len() / size).find(|p| bytes[p * size] == 13).unwrap();
    bytes[page * size + 8..page * size + 20].fill(0xff);
    std::fs::write(&f.0, bytes).unwrap();
    let c = f.open(4);
    let columns = QUERIES.map(|q| c.query(q, &[]).map_err(|e| e.code()).map(|r| format!("{r:?}")));
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let rows = QUERIES.map(|q| c.query(q, &[]).map_err(|e| e.code()).map(|r| format!("{r:?}")));
    assert!(rows.iter().all(|r| r.is_err()), "{rows:?}");
    assert_eq!(columns, rows);
}

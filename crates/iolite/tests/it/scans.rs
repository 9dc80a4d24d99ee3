//! Loops that go through rows and aggregate: what they find does not depend on how a row's columns can be read.

use iolite::engine::{Connection, Value};

/// A row that cannot be read in passing (NULLs, texts, reals, overflowing or short records, sums beyond 64 bits) stands between
/// rows that can, at each place of a leaf in turn.
#[test]
fn rows_that_are_not_plain_count_once() {
    for page_size in [512, 4096] {
        for odd in [
            "(?1, NULL, NULL, NULL)",
            "(?1, 'text', 'text', x'00')",
            "(?1, 2.5, 2.5, 1.5)",
            "(?1, 9223372036854775807, 5, 1)",
            "(?1, 3, zeroblob(3000), 3)",
            "(?1, 4, 4, zeroblob(3000))",
            "(?1, -1, 0, 1)",
        ] {
            let c = Connection::open_in_memory().unwrap();
            c.execute_batch(&format!(
                "PRAGMA analytics = off; PRAGMA page_size = {page_size};
                 CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c);
                 CREATE INDEX tb ON t(b, a);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                 INSERT INTO t(id, a, b, c) SELECT 2 * i, i * 1000, i, i % 7 FROM n"
            ))
            .unwrap();
            for place in [1, 3, 51, 101, 333, 555, 801] {
                c.execute(&format!("INSERT INTO t(id, a, b, c) VALUES {odd}"), &[Value::Int(place)]).unwrap();
                loops_agree(&c, &format!("{odd} at {place}, pages of {page_size}"));
            }
            c.execute_batch("ALTER TABLE t ADD COLUMN d DEFAULT 11; INSERT INTO t VALUES(900, 1, 2, 3, 4)")
                .unwrap();
            loops_agree(&c, &format!("{odd} and short records, pages of {page_size}"));
        }
    }
}

/// A loop of columns and steps alone, and one with a condition in it, which goes from instruction to instruction.
fn loops_agree(c: &Connection, what: &str) {
    let columns =
        if c.query("SELECT d FROM t", &[]).is_ok() { &["a", "b", "c", "d"][..] } else { &["a", "b", "c"] };
    for x in columns {
        for steps in [
            format!("count(*), count({x}), total({x}), min({x}), max({x})"),
            format!("count({x})"),
            format!("total({x}), count(c), min(a)"),
            format!("avg({x}), count(b)"),
            format!("group_concat({x})"),
        ] {
            let ask = |sql: String| {
                let rows = c.query(&sql, &[]).unwrap();
                rows[0].iter().map(|v| format!("{v:?}")).collect::<Vec<_>>()
            };
            let (loops, plain) = (
                ask(format!("SELECT {steps} FROM t")),
                ask(format!("SELECT {steps} FROM t WHERE +id < 5000")),
            );
            assert_eq!(loops, plain, "{steps}: {what}");
            let (loops, plain) = (
                ask(format!("SELECT {steps} FROM t INDEXED BY tb")),
                ask(format!("SELECT {steps} FROM t INDEXED BY tb WHERE +id < 5000")),
            );
            assert_eq!(loops, plain, "{steps} by index: {what}");
        }
    }
}

/// Exact sums, with the row that makes them overflow in the middle of a leaf.
#[test]
fn sums_are_exact_wherever_the_loop_stops() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "PRAGMA analytics = off; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO t(id, a, b) SELECT i, i, iif(i % 10, i, NULL) FROM n",
    )
    .unwrap();
    let sum = |sql: &str| format!("{:?}", c.query(sql, &[]).unwrap()[0]);
    assert_eq!(sum("SELECT sum(a), sum(b), count(b) FROM t"), "[Int(12502500), Int(11250000), Int(4500)]");
    c.execute_batch("UPDATE t SET a = 9223372036854775807 WHERE id = 2500").unwrap();
    assert!(c.query("SELECT sum(a) FROM t", &[]).is_err());
    assert_eq!(sum("SELECT sum(b), count(a) FROM t"), "[Int(11250000), Int(5000)]");
}

/// Leaves that lie in a row in the file are read ahead: some of them may be elsewhere. They are in the log, changed by this
/// connection, changed by another one between two steps of the scan's transaction, or the cache holds ten pages.
#[test]
fn pages_that_are_read_ahead_are_those_of_the_snapshot() {
    let dir = std::env::temp_dir().join(format!("iolite-scans-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for (mode, cache) in [("delete", 2000), ("delete", 10), ("wal", 2000), ("wal", 10)] {
        let path = dir.join(format!("{mode}-{cache}.db"));
        let _ = std::fs::remove_file(&path);
        let open = || {
            let c = Connection::open(path.to_str().unwrap()).unwrap();
            c.execute_batch(&format!("PRAGMA analytics = off; PRAGMA cache_size = {cache}")).unwrap();
            c
        };
        let c = open();
        c.execute_batch(&format!(
            "PRAGMA page_size = 1024; PRAGMA journal_mode = {mode};
             CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
             INSERT INTO t SELECT i, i * 2, printf('%060d', i) FROM n;
             CREATE INDEX ta ON t(a)"
        ))
        .unwrap();
        drop(c);
        // Every seventh leaf or so is in the log, or was moved to the end of the file.
        let changes =
            "UPDATE t SET b = hex(zeroblob(400)) WHERE id % 100 = 7; UPDATE t SET a = -a WHERE id % 100 = 8";
        let (writer, reader) = (open(), open());
        let sums = |c: &Connection| {
            [
                "SELECT sum(id), sum(a), sum(length(b)) FROM t",
                "SELECT sum(a) FROM t INDEXED BY ta",
                "SELECT group_concat(id) FROM (SELECT id FROM t ORDER BY id DESC)",
                "SELECT group_concat(a) FROM (SELECT a FROM t INDEXED BY ta ORDER BY a DESC)",
            ]
            .map(|sql| format!("{:?}", c.query(sql, &[]).unwrap()))
        };
        let before = sums(&open());
        if mode == "wal" {
            reader.execute_batch("BEGIN; SELECT 1 FROM t LIMIT 1").unwrap();
        }
        writer.execute_batch("BEGIN").unwrap();
        writer.execute_batch(changes).unwrap();
        let own = sums(&writer);
        assert_ne!(own, before);
        writer.execute_batch("COMMIT").unwrap();
        if mode == "wal" {
            assert_eq!(sums(&reader), before, "{mode}, cache of {cache}: the snapshot");
            reader.execute_batch("COMMIT").unwrap();
        }
        // Once by one that has read before, and by new ones, first scans and second ones.
        let fresh = open();
        for c in [&reader, &fresh, &reader, &fresh, &writer] {
            assert_eq!(sums(c), own, "{mode}, cache of {cache}");
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A scan of a table that is larger than the share of the cache which new pages have reads each page once, also where registers hold
/// texts in pages that are to leave.
#[test]
fn a_first_scan_reads_each_page_once() {
    let path = std::env::temp_dir().join(format!("iolite-first-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let path = path.to_str().unwrap();
    let pages = {
        let c = Connection::open(path).unwrap();
        c.execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
             INSERT INTO t SELECT i, i, hex(randomblob(600)) FROM n",
        )
        .unwrap();
        let Value::Int(pages) = c.query("PRAGMA page_count", &[]).unwrap()[0][0] else { panic!() };
        pages
    };
    assert!(pages > 2500, "{pages}");
    for order in ["", "ORDER BY id DESC"] {
        let c = Connection::open(path).unwrap();
        c.execute_batch("PRAGMA analytics = off; PRAGMA cache_size = -65536").unwrap();
        let sql = format!("EXPLAIN ANALYZE SELECT id FROM t WHERE b LIKE '%no such%' {order}");
        let lines = c.query(&sql, &[]).unwrap();
        let read = lines.iter().flatten().find_map(|v| {
            let line = format!("{v:?}");
            let (before, _) = line.split_once(" pages read")?;
            before.rsplit(' ').next()?.parse::<i64>().ok()
        });
        let read = read.unwrap();
        assert!(read > pages - 20 && read <= pages + 20, "{read} of {pages} {order}");
    }
    std::fs::remove_file(path).unwrap();
}

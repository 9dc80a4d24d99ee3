//! One budget for the columns of a process: those used least go first, and come back when they are wanted. A process of
//! its own, since the budget is everybody's.

fn rows(c: &iolite::engine::Connection, q: &str) -> String {
    format!("{:?}", c.query(q, &[]).unwrap())
}

fn budget(c: &iolite::engine::Connection) -> i64 {
    c.query("PRAGMA column_cache_size", &[]).unwrap()[0][0].to_int()
}

#[test]
fn columns_make_room_for_others() {
    iolite::engine::set_column_segment_leaves(16);
    let name = std::env::temp_dir().join(format!("iolite-budget-{}.db", std::process::id()));
    let c = iolite::engine::Connection::open(&name.display().to_string()).unwrap();
    c.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, d INTEGER);
         CREATE TABLE u(id INTEGER PRIMARY KEY, a INTEGER);
         INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
           SELECT i, i * 7919 % 1000, i / 8.0, 'text ' || (i % 5000), i * i FROM n;
         INSERT INTO u SELECT id, a FROM t WHERE id < 1000;",
    )
    .unwrap();
    let queries = [
        "SELECT sum(a), count(*) FROM t",
        "SELECT sum(b), max(b) FROM t WHERE b > 17",
        "SELECT count(DISTINCT c), min(c) FROM t",
        "SELECT sum(d) FROM t WHERE a < 500",
        "SELECT u.a, count(*), sum(t.b) FROM t, u WHERE t.a = u.id GROUP BY u.a",
        "SELECT a, c FROM t WHERE d % 7 = 3 ORDER BY b DESC LIMIT 5",
    ];
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want: Vec<String> = queries.iter().map(|q| rows(&c, q)).collect();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    let before = budget(&c);
    for (kib, in_columns) in [(1_000_000, true), (400, true), (64, false), (0, false), (700, true)] {
        c.execute_batch(&format!("PRAGMA column_cache_size={kib}")).unwrap();
        assert_eq!(budget(&c), kib);
        let runs = c.column_runs();
        for _ in 0..3 {
            for (q, want) in queries.iter().zip(&want) {
                assert_eq!(rows(&c, q), *want, "{kib} KiB: {q}");
            }
        }
        assert!(!in_columns || c.column_runs() > runs + 6, "{kib} KiB: {} runs", c.column_runs() - runs);
    }
    assert!(c.column_counters(0).evicted > 5, "{:?}", c.column_counters(0));
    streams(&c);
    streams_of_mixed_kinds(&c);
    keeps_a_part(&c);
    c.execute_batch(&format!("PRAGMA column_cache_size={before}")).unwrap();
    drop(c);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", name.display()));
    }
}

/// A scan of more than the budget holds decodes its columns segment by segment, and runs in columns.
fn streams(c: &iolite::engine::Connection) {
    c.execute_batch(
        "CREATE TABLE w(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, d INTEGER, e INTEGER);
         INSERT INTO w WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
           SELECT i, i * 7919 % 1000, i / 8.0, 'text ' || (i % 5000), i * i % 65537, CASE i % 5 WHEN 0 THEN NULL ELSE i END
           FROM n;",
    )
    .unwrap();
    let queries = [
        "SELECT sum(a), count(*), sum(d), max(e) FROM w",
        "SELECT sum(b), max(b), group_concat(a) FROM w WHERE b > 4000",
        "SELECT a % 10, sum(d), count(c), min(e) FROM w GROUP BY a % 10",
        "SELECT c, count(*), sum(e) FROM w WHERE d < 30000 GROUP BY c ORDER BY 3 DESC LIMIT 9",
        "SELECT u.a, count(*), sum(w.d) FROM w, u WHERE w.a = u.id AND w.e > 9 GROUP BY u.a",
        "SELECT a, c, b FROM w WHERE d % 97 = 3",
        "SELECT a, c FROM w WHERE d % 7 = 3 ORDER BY b DESC LIMIT 5",
        "SELECT count(*), sum(e) FROM w WHERE id BETWEEN 20000 AND 21000",
    ];
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want: Vec<String> = queries.iter().map(|q| rows(c, q)).collect();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    for kib in [400, 150, 40] {
        c.execute_batch(&format!("PRAGMA column_cache_size={kib}")).unwrap();
        for round in 0..2 {
            for (q, want) in queries.iter().zip(&want) {
                let runs = c.column_runs();
                assert_eq!(rows(c, q), *want, "{kib} KiB, round {round}: {q}");
                assert!(c.column_runs() > runs, "in rows, {kib} KiB, round {round}: {q}");
            }
            c.execute_batch(
                "UPDATE w SET a = a + 1 WHERE id % 5000 = 7; UPDATE w SET a = a - 1 WHERE id % 5000 = 7",
            )
            .unwrap();
        }
    }
}

/// A column has integers in one segment and texts in another, and neither has room: what is decoded again while the scan goes on
/// is what it was when the scan began.
fn streams_of_mixed_kinds(c: &iolite::engine::Connection) {
    let queries = [
        "SELECT a, count(b), count(DISTINCT hex(b)), max(b) FROM m WHERE a > '' GROUP BY a ORDER BY 1",
        "SELECT b, count(*) FROM m WHERE a <> 'group 3' GROUP BY b",
        "SELECT count(*), min(a) FROM m WHERE b = 17",
        "SELECT count(*) FROM m, m x WHERE m.b = x.id AND x.a > 'group 4'",
    ];
    for kib in [0, 1, 40, 100_000] {
        for q in queries {
            // No dictionary holds anything yet.
            c.execute_batch(&format!(
                "PRAGMA column_cache_size={kib}; PRAGMA analytics=off; DROP TABLE IF EXISTS m;
                 CREATE TABLE m(id INTEGER PRIMARY KEY, a TEXT, b);
                 INSERT INTO m WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
                   SELECT i, 'group ' || (i % 7), CASE WHEN i > 5000 THEN 'text' ELSE i / 100 END FROM n;"
            ))
            .unwrap();
            let want = rows(c, q);
            c.execute_batch("PRAGMA analytics=force").unwrap();
            for round in 0..3 {
                assert_eq!(rows(c, q), want, "{kib} KiB, round {round}: {q}");
            }
        }
    }
}

/// A cycle of queries over more than the budget finds most of what it wants: what goes is not what is wanted next.
fn keeps_a_part(c: &iolite::engine::Connection) {
    c.execute_batch(
        "CREATE TABLE v(a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER);
         INSERT INTO v WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
           SELECT i * 7919 % 1000, i * 7907 % 1000, i * 7901 % 1000, i * 7883 % 1000, i * 7879 % 1000, i * 7877 % 1000 FROM n;
         PRAGMA threads=1; PRAGMA column_cache_size=1; SELECT sum(a) FROM v; PRAGMA column_cache_size=100000;",
    )
    .unwrap();
    let before = c.column_counters(0).decoded;
    rows(c, "SELECT sum(a), sum(b), sum(c), sum(d), sum(e), sum(f) FROM v");
    let segments = c.column_counters(0).decoded - before;
    assert!(segments > 20, "{segments}");
    // Two bytes a value, six columns: 720,000 bytes, of which a column has no room.
    c.execute_batch("PRAGMA column_cache_size=610").unwrap();
    let cycle = || {
        for column in ["a", "b", "c", "d", "e", "f"] {
            rows(c, &format!("SELECT sum({column}) FROM v"));
        }
    };
    (0..3).for_each(|_| cycle());
    let before = c.column_counters(0).decoded;
    (0..4).for_each(|_| cycle());
    let decoded = c.column_counters(0).decoded - before;
    // By the last use alone all six columns are decoded each time around.
    assert!(
        decoded < 4 * 3 * segments,
        "{decoded} segments decoded in four cycles of six columns with {segments} each"
    );
}

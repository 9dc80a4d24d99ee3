//! Which columns a query decodes, and from which run on.

use iolite::engine::Connection;

fn rows(c: &Connection, q: &str) -> String {
    format!("{:?}", c.query(q, &[]).unwrap())
}

/// A wide table with narrow indexes, in which rows find what the queries below ask for.
fn wide() -> Connection {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a INTEGER, b TEXT, r REAL, n, pad, c, d, e, f, g, h, i, j, k, l, m);
         INSERT INTO t(a, b, r, n, pad) WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 20000)
           SELECT i * 7919 % 1000, 'b' || i % 90, CASE WHEN i % 3 THEN 0.0 ELSE -0.0 END, CASE WHEN i % 2 THEN 1 ELSE 1.0 END,
             zeroblob(900) FROM i;
         CREATE INDEX narrow ON t(a);
         CREATE INDEX by_all ON t(b, a, r, n)",
    )
    .unwrap();
    c
}

#[test]
fn queries_that_want_the_same_column_wait_together() {
    let runs = |query: &dyn Fn(usize) -> String| {
        let c = wide();
        let decoded = |n: &usize| {
            rows(&c, &query(*n));
            c.column_counters(0).decoded > 0
        };
        (1..100).find(decoded)
    };
    let again = runs(&|_| "SELECT avg(a) FROM t".to_string()).unwrap();
    assert!(again > 2);
    assert_eq!(runs(&|n| format!("SELECT avg(a + {n}) FROM t")), Some(again));
    // What only the last of them wants is new.
    let last = |n: usize| format!("SELECT avg(a), max(b || {n}) FROM t");
    assert!(runs(&|n| if n < again { "SELECT avg(a) FROM t".to_string() } else { last(n) }) > Some(again));
}

#[test]
fn rows_that_all_look_alike_are_not_sorted() {
    let c = wide();
    for (q, columns) in [
        ("SELECT a, a FROM t INDEXED BY by_all WHERE a = 17", 1),
        ("SELECT b, 5 FROM t WHERE b = 'b7' AND +a < 500", 2),
        // The zeros, and 1 beside 1.0, are equal and look different.
        ("SELECT r FROM t WHERE r = 0 AND +a < 500", 4),
        ("SELECT n FROM t WHERE n = 1 AND +a < 500", 4),
        ("SELECT a FROM t INDEXED BY by_all WHERE a IN (17, 18)", 4),
    ] {
        c.execute_batch("PRAGMA analytics=off").unwrap();
        let want = rows(&c, q);
        c.execute_batch("PRAGMA analytics=force").unwrap();
        assert_eq!(rows(&c, q), want, "{q}");
        let ran = rows(&c, &format!("EXPLAIN ANALYZE {q}"));
        assert!(ran.contains(&format!(" {columns} columns")), "{q}: {ran}");
    }
}

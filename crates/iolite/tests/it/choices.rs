//! What the planner chooses, as EXPLAIN QUERY PLAN tells it.

use iolite::engine::Connection;
use std::rc::Rc;

fn plan(c: &Connection, sql: &str) -> Vec<String> {
    let rows = c.query(&format!("EXPLAIN QUERY PLAN {sql}"), &[]).unwrap();
    rows.iter().map(|r| r[3].to_string_lossy()).collect()
}

#[test]
fn what_holds_of_a_column_is_used_for_those_that_equal_it() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE a(x INTEGER PRIMARY KEY, p); CREATE TABLE b(y INTEGER, z TEXT); CREATE TABLE c(w INTEGER, v TEXT);
         CREATE INDEX by_y ON b(y); CREATE INDEX by_w ON c(w)",
    )
    .unwrap();
    let a = "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)";
    let partial = "SEARCH a USING AUTOMATIC PARTIAL COVERING INDEX (p=?)";
    let cases: &[(&str, &[&str])] = &[
        ("b CROSS JOIN c CROSS JOIN a WHERE x=y AND w=x", &["SCAN b", "SEARCH c USING INDEX by_w (w=?)", a]),
        ("b CROSS JOIN a WHERE x=y AND x IN (1,2)", &["SEARCH b USING INDEX by_y (y=?)", a]),
        ("b CROSS JOIN a WHERE x=y AND x>?", &["SEARCH b USING INDEX by_y (y>?)", a]),
        ("b CROSS JOIN a WHERE x=y AND x BETWEEN 2 AND 4", &["SEARCH b USING INDEX by_y (y>? AND y<?)", a]),
        ("c LEFT JOIN a ON x=w WHERE x>2", &["SEARCH c USING INDEX by_w (w>?)", a]),
        ("b CROSS JOIN a WHERE p=y AND p=3", &["SEARCH b USING INDEX by_y (y=?)", "SCAN a"]),
        // A number is another text, not the same comparison, not of each row that comes out.
        ("b CROSS JOIN a WHERE p=z AND p=3", &["SCAN b", "BLOOM FILTER ON a (p=?)", partial]),
        ("b CROSS JOIN a WHERE x=+y AND x=3", &["SCAN b", a]),
        ("c LEFT JOIN a ON x=w AND x>2", &["SCAN c", &format!("{a} LEFT-JOIN")]),
    ];
    for (from, want) in cases {
        assert_eq!(&plan(&c, &format!("SELECT * FROM {from}")), want, "{from}");
    }
}

#[test]
fn values_of_in_come_in_order() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX down ON t(a DESC, b);
         INSERT INTO t(a, b) VALUES (1,1),(2,2),(3,3),(1,2),(2,1),(3,1)",
    )
    .unwrap();
    let ids = |sql: &str| -> Vec<i64> {
        assert!(!plan(&c, sql).iter().any(|l| l.contains("TEMP B-TREE")), "{sql}");
        c.query(sql, &[]).unwrap().iter().map(|r| r[0].to_int()).collect()
    };
    assert_eq!(ids("SELECT id FROM t WHERE id IN (5,1,9,3) ORDER BY id"), [1, 3, 5]);
    assert_eq!(ids("SELECT id FROM t WHERE id IN (SELECT b FROM t) ORDER BY id DESC"), [3, 2, 1]);
    assert_eq!(ids("SELECT id FROM t WHERE a IN (3,1) ORDER BY a, b DESC"), [4, 1, 3, 6]);
    assert_eq!(ids("SELECT id FROM t WHERE a IN (3,1) ORDER BY a DESC, b"), [6, 3, 1, 4]);
    assert_eq!(ids("SELECT id FROM t WHERE a IN (3,1) AND b=1 ORDER BY a"), [1, 6]);
    assert_eq!(ids("SELECT max(id) FROM t WHERE a IN (1,2) GROUP BY a"), [5, 4]);
    // Without ORDER BY, too, in the index's order.
    assert_eq!(ids("SELECT id FROM t WHERE a IN (1,2)"), [5, 2, 1, 4]);
}

#[test]
fn what_is_partly_sorted_is_sorted_in_blocks() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b, c); CREATE INDEX by_a ON t(a);
         WITH r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<30000) INSERT INTO t SELECT i/10, i*7%10, i FROM r",
    )
    .unwrap();
    let sql = "SELECT c FROM t ORDER BY a, b DESC LIMIT 4";
    let want = ["SCAN t USING INDEX by_a", "USE TEMP B-TREE FOR LAST TERM OF ORDER BY"];
    assert_eq!(plan(&c, sql), want);
    assert_eq!(
        plan(&c, "SELECT c FROM t ORDER BY a, b, c")[1],
        "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY"
    );
    // One block is enough: the work ends before anybody asks whether to go on.
    c.progress_handler(Some(Rc::new(|| true)));
    let got: Vec<i64> = c.query(sql, &[]).unwrap().iter().map(|r| r[0].to_int()).collect();
    assert_eq!(got, [7, 4, 1, 8]);
    let all = c.query("SELECT c FROM t ORDER BY +a, b DESC LIMIT 4", &[]).unwrap_err();
    assert_eq!(all.message(), "interrupted");
}

#[test]
fn a_filter_is_filled_for_many_look_ups_only() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE facts(d INTEGER); CREATE TABLE dim(id INTEGER PRIMARY KEY, kind TEXT);
         WITH r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<400) INSERT INTO dim SELECT i, i%7 FROM r;
         WITH r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<700) INSERT INTO facts SELECT i%500 FROM r; ANALYZE;
         PRAGMA analytics=off",
    )
    .unwrap();
    let sql = "SELECT count(*) FROM facts CROSS JOIN dim ON id=d WHERE kind='3'";
    let filters = |c: &Connection| plan(c, sql).iter().filter(|l| l.starts_with("BLOOM")).count();
    assert_eq!(filters(&c), 0);
    c.execute_batch("INSERT INTO facts SELECT d FROM facts; ANALYZE").unwrap();
    assert_eq!(filters(&c), 1);
}

#[test]
fn a_whole_unique_key_goes_before_all_but_the_rowid() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c TEXT COLLATE NOCASE, d, UNIQUE(a, b));
         CREATE INDEX wide ON t(a, b, c, d); CREATE UNIQUE INDEX by_c ON t(c)",
    )
    .unwrap();
    let cases = [
        (
            "SELECT a FROM t WHERE a=1 AND b='2'",
            "SEARCH t USING COVERING INDEX sqlite_autoindex_t_1 (a=? AND b=?)",
        ),
        ("SELECT d FROM t WHERE b='2' AND a=1", "SEARCH t USING INDEX sqlite_autoindex_t_1 (a=? AND b=?)"),
        ("SELECT id FROM t WHERE c='y' AND id=7", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"),
        ("SELECT d FROM t WHERE c='y' COLLATE BINARY", "SCAN t"),
        ("SELECT d FROM t NOT INDEXED WHERE c='y'", "SCAN t"),
        (
            "DELETE FROM t WHERE a=1 AND b='2' AND d",
            "SEARCH t USING INDEX sqlite_autoindex_t_1 (a=? AND b=?)",
        ),
    ];
    for (sql, want) in cases {
        assert_eq!(plan(&c, sql), [want], "{sql}");
    }
}

#[test]
fn an_index_sought_for_many_rows_has_a_filter_before_it() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE big(id INTEGER PRIMARY KEY, a INT); CREATE TABLE small(x INT, flag INT); CREATE INDEX sx ON small(x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) INSERT INTO big SELECT i, i % 300 FROM n;
         INSERT INTO small SELECT id, id % 9 FROM big WHERE id < 100; ANALYZE; PRAGMA analytics = off",
    )
    .unwrap();
    let filter = "BLOOM FILTER ON small (x=?)";
    let seek = "SEARCH small USING INDEX sx (x=?)";
    let of = |from: &str| plan(&c, &format!("SELECT * FROM {from}"));
    assert_eq!(of("big CROSS JOIN small ON x = a WHERE flag = 3"), ["SCAN big", filter, seek]);
    // Nothing is left out by conditions of its own, and few rows are sought.
    assert_eq!(of("big CROSS JOIN small ON x = a"), ["SCAN big", seek]);
    let few = of("big CROSS JOIN small ON x = a WHERE flag = 3 AND big.id IN (1, 20)");
    assert_eq!(few[1..], [seek], "{few:?}");
}

//! UPDATE and DELETE with ORDER BY and LIMIT. The answers are those of a SQLite that was compiled with them.

use iolite::engine::Connection;

/// Runs a script; each row, and each error, is a line.
fn lines(c: &Connection, script: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for sql in script {
        match c.query(sql, &[]) {
            Ok(rows) => out.extend(rows.iter().map(|r| {
                let shown: Vec<_> =
                    r.iter().map(|v| if v.is_null() { "-".into() } else { v.to_string_lossy() }).collect();
                shown.join("|")
            })),
            Err(e) => out.push(e.to_string()),
        }
    }
    out
}

fn with(setup: &str) -> Connection {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(setup).unwrap();
    c
}

const NUMBERS: &str =
    "CREATE TABLE t(a, b); INSERT INTO t SELECT value, value % 3 FROM generate_series(1, 9);";

#[test]
fn delete_takes_the_first_rows_in_the_order_asked_for() {
    let c = with(NUMBERS);
    let script = [
        "DELETE FROM t RETURNING a, b ORDER BY b DESC, a LIMIT 2",
        "SELECT changes()",
        "DELETE FROM t WHERE b = 1 LIMIT 1 OFFSET 1",
        "DELETE FROM t ORDER BY a DESC LIMIT 1, 1",
        "SELECT group_concat(a) FROM t",
        "DELETE FROM t LIMIT 0",
        "DELETE FROM t LIMIT -1 OFFSET 4",
        "SELECT group_concat(a) FROM t",
        "WITH c(x) AS (SELECT max(a) FROM t) DELETE FROM t WHERE a IN c LIMIT 5",
        "SELECT group_concat(a) FROM t",
    ];
    let want = ["2|2", "5|2", "2", "1,3,6,7,9", "1,3,6,7", "1,3,6"];
    assert_eq!(lines(&c, &script), want);
}

#[test]
fn update_changes_the_first_rows_in_the_order_asked_for() {
    let c = with(NUMBERS);
    let script = [
        "UPDATE t SET b = -b WHERE a > 4 ORDER BY a DESC LIMIT 1, 2",
        "UPDATE t AS x SET b = 9 RETURNING a, b LIMIT 1",
        "UPDATE t SET a = a + 100 ORDER BY a LIMIT (SELECT 2)",
        "SELECT group_concat(a || ':' || b, ' ') FROM t",
    ];
    assert_eq!(lines(&c, &script), ["1|9", "101:9 102:2 3:0 4:1 5:2 6:0 7:-1 8:-2 9:0"]);
}

#[test]
fn tables_without_rowids_are_bounded_by_their_keys() {
    let c = with(
        "CREATE TABLE w(k TEXT, n INT, v, PRIMARY KEY(k, n)) WITHOUT ROWID; \
         INSERT INTO w SELECT 'k' || (value % 2), value, value FROM generate_series(1, 6);",
    );
    let script = [
        "DELETE FROM w ORDER BY v DESC LIMIT 2",
        "UPDATE w SET v = NULL, n = n + 100 WHERE k = 'k1' ORDER BY n LIMIT 1",
        "SELECT k, n, v FROM w",
    ];
    assert_eq!(lines(&c, &script), ["k0|2|2", "k0|4|4", "k1|3|3", "k1|101|-"]);
}

#[test]
fn views_are_bounded_by_their_rows() {
    let c = with(
        "CREATE TABLE t(a, b); INSERT INTO t SELECT value, 0 FROM generate_series(1, 4); \
         CREATE VIEW v AS SELECT a, b FROM t; \
         CREATE TRIGGER d INSTEAD OF DELETE ON v BEGIN DELETE FROM t WHERE a = old.a; END; \
         CREATE TRIGGER u INSTEAD OF UPDATE ON v BEGIN UPDATE t SET b = new.b WHERE a = old.a; END;",
    );
    let script = [
        "DELETE FROM v ORDER BY a DESC LIMIT 1",
        "UPDATE v SET b = 'v' WHERE a < 3 ORDER BY a DESC LIMIT 1",
        "SELECT a, b FROM t",
        "UPDATE v SET b = 1 FROM t AS s WHERE s.a = v.a LIMIT 1",
    ];
    let refused = "LIMIT is not available on UPDATE of a view with FROM";
    assert_eq!(lines(&c, &script), ["1|0", "2|v", "3|0", refused]);
}

#[test]
fn rows_joined_with_several_count_once() {
    let c = with(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0); \
         CREATE TABLE s(a, c); INSERT INTO s SELECT a, a * 10 FROM t; INSERT INTO s SELECT a, a * 10 FROM t;",
    );
    let script =
        ["UPDATE t SET b = s.c FROM s WHERE s.a = t.a ORDER BY t.a DESC LIMIT 2", "SELECT a, b FROM t"];
    assert_eq!(lines(&c, &script), ["1|0", "2|20", "3|30"]);
}

#[test]
fn columns_may_have_the_names_of_the_rowid() {
    let c = with(
        "CREATE TABLE t(rowid, oid); INSERT INTO t VALUES (1, 1), (1, 1); CREATE TABLE u(rowid, oid, _rowid_);",
    );
    let script = ["DELETE FROM t LIMIT 1", "SELECT count(*) FROM t", "DELETE FROM u LIMIT 1"];
    assert_eq!(lines(&c, &script), ["1", "no name is left for the rowid of u"]);
}

#[test]
fn an_index_that_is_named_finds_the_rows_and_is_not_scanned_for_them() {
    let c = with(
        "CREATE TABLE t(a, b); CREATE INDEX i ON t(b); INSERT INTO t VALUES (1, 5), (2, 6), (3, 5); \
         ATTACH ':memory:' AS m; CREATE TABLE m.t(a); INSERT INTO m.t VALUES (7), (8); PRAGMA writable_schema = on;",
    );
    let plan = c.query("EXPLAIN QUERY PLAN DELETE FROM t INDEXED BY i WHERE b = 5 LIMIT 1", &[]).unwrap();
    assert_eq!(plan[0][3].to_string_lossy(), "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)");
    let script = [
        "DELETE FROM t INDEXED BY i WHERE b = 5 LIMIT 1",
        "UPDATE t NOT INDEXED SET a = a + 10 WHERE b = 5 LIMIT 1",
        "SELECT a FROM main.t ORDER BY a",
        "WITH t AS (SELECT 99 AS x) DELETE FROM m.t ORDER BY a DESC LIMIT 1",
        "SELECT a FROM m.t",
        "UPDATE sqlite_schema SET sql = sql LIMIT 1",
        "SELECT changes()",
    ];
    assert_eq!(lines(&c, &script), ["2", "13", "7", "1"]);
}

#[test]
fn bounds_that_make_no_sense_are_refused() {
    let c = with(NUMBERS);
    let script = [
        "DELETE FROM t ORDER BY a",
        "UPDATE t SET a = 1 ORDER BY a",
        "DELETE FROM t LIMIT 'x'",
        "DELETE FROM t LIMIT NULL",
        "UPDATE t SET a = 1 ORDER BY nosuch LIMIT 1",
        "CREATE TRIGGER r AFTER DELETE ON t BEGIN DELETE FROM t LIMIT 1; END",
        "SELECT count(*) FROM t",
    ];
    let want = [
        "ORDER BY without LIMIT on DELETE",
        "ORDER BY without LIMIT on UPDATE",
        "datatype mismatch",
        "datatype mismatch",
        "no such column: nosuch",
        "near \"LIMIT\": syntax error",
        "9",
    ];
    assert_eq!(lines(&c, &script), want);
}

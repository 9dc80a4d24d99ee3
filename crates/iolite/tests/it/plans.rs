//! Preparing the same text again: what a kept program must notice.

use iolite::engine::{Connection, Value};

fn rows(c: &Connection, sql: &str) -> Vec<Vec<Value>> {
    c.query(sql, &[]).unwrap()
}

fn ints(c: &Connection, sql: &str) -> Vec<i64> {
    rows(c, sql).iter().map(|r| r[0].to_int()).collect()
}

#[test]
fn the_same_text_is_the_same_program() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").unwrap();
    let sql = "SELECT a FROM t";
    let (a, b) = (c.prepare(sql).unwrap(), c.prepare(sql).unwrap());
    assert!(std::ptr::eq(a.program(), b.program()));
    c.execute_batch("PRAGMA plan_cache = 0").unwrap();
    let (a, b) = (c.prepare(sql).unwrap(), c.prepare(sql).unwrap());
    assert!(!std::ptr::eq(a.program(), b.program()));
    assert_eq!(ints(&c, "PRAGMA plan_cache"), [0]);
}

#[test]
fn two_runs_of_one_program_know_nothing_of_each_other() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)").unwrap();
    let sql = "SELECT a, ?1 FROM t ORDER BY a";
    let (mut a, mut b) = (c.prepare(sql).unwrap(), c.prepare(sql).unwrap());
    a.bind(1, Value::Int(7)).unwrap();
    a.step().unwrap();
    a.step().unwrap();
    b.step().unwrap();
    assert_eq!((a.row()[0].to_int(), a.row()[1].to_int()), (2, 7));
    assert_eq!((b.row()[0].to_int(), b.row()[1].is_null()), (1, true));
}

#[test]
fn schema_settings_and_functions_make_it_new() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('x'), ('X')").unwrap();
    assert_eq!(rows(&c, "SELECT * FROM t")[0].len(), 1);
    c.execute_batch("ALTER TABLE t ADD COLUMN b DEFAULT 5").unwrap();
    assert_eq!(rows(&c, "SELECT * FROM t")[0].len(), 2);

    let like = "SELECT count(*) FROM t WHERE a LIKE 'x'";
    assert_eq!(ints(&c, like), [2]);
    c.execute_batch("PRAGMA case_sensitive_like = 1").unwrap();
    assert_eq!(ints(&c, like), [1]);
    c.execute_batch("PRAGMA case_sensitive_like = 0").unwrap();
    assert_eq!(ints(&c, like), [2]);

    let order = "SELECT rowid FROM t";
    assert_eq!(ints(&c, order), [1, 2]);
    c.execute_batch("PRAGMA reverse_unordered_selects = 1").unwrap();
    assert_eq!(ints(&c, order), [2, 1]);
    c.execute_batch("PRAGMA reverse_unordered_selects = 0").unwrap();

    // A temporary table hides the one that the kept program reads.
    c.execute_batch("CREATE TEMP TABLE t(a); INSERT INTO temp.t VALUES (9)").unwrap();
    assert_eq!(ints(&c, order), [1]);
    c.execute_batch("DROP TABLE temp.t; DROP TABLE t").unwrap();
    assert_eq!(c.query(order, &[]).unwrap_err().message(), "no such table: t");
}

#[test]
fn what_another_connection_changes_is_noticed() {
    let dir = std::env::temp_dir().join(format!("iolite-plans-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a.db").display().to_string();
    let (a, b) = (Connection::open(&path).unwrap(), Connection::open(&path).unwrap());
    a.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(rows(&b, "SELECT * FROM t")[0].len(), 1);
    a.execute_batch("ALTER TABLE t ADD COLUMN b").unwrap();
    assert_eq!(rows(&b, "SELECT * FROM t")[0].len(), 2);
    assert_eq!(rows(&b, "SELECT * FROM t")[0].len(), 2);
    drop((a, b));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_temporary_names_hide_is_noticed_by_statements_that_are_kept() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(x); INSERT INTO t VALUES('main'); CREATE VIRTUAL TABLE temp.f USING fts5(x)",
    )
    .unwrap();
    let mut kept = c.prepare("SELECT count(*) FROM t").unwrap();
    let mut n = |sql: &str| {
        c.execute_batch(sql).unwrap();
        kept.step().unwrap();
        let n = kept.row()[0].to_int();
        kept.reset().unwrap();
        n
    };
    assert_eq!(n(""), 1);
    assert_eq!(n("CREATE TEMP TABLE u(x); ALTER TABLE u RENAME TO t"), 0);
    assert_eq!(n("BEGIN; ALTER TABLE temp.t RENAME TO u"), 1);
    assert_eq!(n("ROLLBACK"), 0);
    assert_eq!(n("SAVEPOINT s; DROP TABLE temp.t"), 1);
    assert_eq!(n("ROLLBACK TO s"), 0);
    assert_eq!(n("DROP TABLE temp.t; RELEASE s"), 1);
    assert_eq!(n("ALTER TABLE f RENAME TO t"), 0);
    assert_eq!(n("DROP TABLE temp.t"), 1);
    assert_eq!(n("BEGIN; CREATE TEMP VIEW t AS SELECT 1 UNION SELECT 2"), 2);
    assert_eq!(n("ROLLBACK"), 1);
}

//! Transactions, savepoints, conflict policies: what is there afterwards.

use iolite::engine::{Code, Connection, Step, Value};

fn ints(c: &Connection, sql: &str) -> Vec<i64> {
    c.query(sql, &[]).unwrap().iter().map(|r| r[0].to_int()).collect()
}

#[test]
fn a_failed_statement_undoes_itself_and_nothing_else() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a UNIQUE); BEGIN; INSERT INTO t VALUES(1)").unwrap();
    let e = c.execute_batch("INSERT INTO t SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 1").unwrap_err();
    assert_eq!(e.code(), Code::ConstraintUnique);
    assert_eq!(e.message(), "UNIQUE constraint failed: t.a");
    c.execute_batch("INSERT INTO t VALUES(4); COMMIT").unwrap();
    assert_eq!(ints(&c, "SELECT a FROM t ORDER BY a"), [1, 4]);
}

#[test]
fn or_fail_keeps_and_or_rollback_drops_what_was_done() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(3)").unwrap();
    assert!(c.execute_batch("INSERT OR FAIL INTO t SELECT 1 UNION ALL SELECT 3 UNION ALL SELECT 5").is_err());
    assert_eq!(ints(&c, "SELECT a FROM t ORDER BY a"), [1, 3]);
    c.execute_batch("BEGIN; INSERT INTO t VALUES(7)").unwrap();
    assert!(c.execute_batch("INSERT OR ROLLBACK INTO t VALUES(8), (1)").is_err());
    assert!(c.is_autocommit());
    assert_eq!(ints(&c, "SELECT a FROM t ORDER BY a"), [1, 3]);
}

#[test]
fn savepoints_nest() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a); SAVEPOINT one; INSERT INTO t VALUES(1); SAVEPOINT two; INSERT INTO t VALUES(2);
         ROLLBACK TO two; INSERT INTO t VALUES(3); RELEASE two; ROLLBACK TO one; INSERT INTO t VALUES(4); RELEASE one",
    )
    .unwrap();
    assert!(c.is_autocommit());
    assert_eq!(ints(&c, "SELECT a FROM t"), [4]);
}

#[test]
fn a_statement_is_compiled_anew_when_the_schema_has_changed() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES(1), (2)").unwrap();
    let mut s = c.prepare("SELECT count(*) FROM t WHERE a > ?1").unwrap();
    c.execute_batch("CREATE INDEX ta ON t(a); INSERT INTO t VALUES(3)").unwrap();
    s.bind(1, Value::Int(1)).unwrap();
    assert_eq!(s.step().unwrap(), Step::Row);
    assert_eq!(s.row()[0].to_int(), 2);
}

#[test]
fn a_small_cache_loses_no_change_of_a_page_that_was_held_when_it_left() {
    let dir = std::env::temp_dir().join(format!("iolite-it-held-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for size in 1..=10 {
        let path = dir.join(format!("held{size}.db"));
        let c = Connection::open(path.to_str().unwrap()).unwrap();
        // Page 1 holds the schema's rows and the freelist's head: one statement changes both, in turns.
        let long = "x".repeat(600);
        c.execute_batch(&format!(
            "PRAGMA page_size = 512; PRAGMA cache_size = {size}; CREATE TABLE t0(c);
             CREATE TABLE t1(a UNIQUE, b UNIQUE, c UNIQUE, d CHECK (d <> '{long}'));
             CREATE TABLE t2(a UNIQUE, b UNIQUE, c UNIQUE, d CHECK (d <> '{long}'));
             DROP TABLE t1; CREATE INDEX i ON t0(c) WHERE c <> '{long}';
             CREATE TABLE t3(a UNIQUE, b UNIQUE, c UNIQUE, d UNIQUE, e UNIQUE, f CHECK (f <> '{long}'));
             DROP TABLE t2; CREATE TABLE t4(a UNIQUE, b UNIQUE, c UNIQUE, d CHECK (d <> '{long}'))"
        ))
        .unwrap();
        assert_eq!(
            c.query("PRAGMA integrity_check", &[]).unwrap()[0][0].text_bytes().unwrap().as_ref(),
            b"ok"
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn two_connections_see_each_others_commits_and_locks() {
    let dir = std::env::temp_dir().join(format!("iolite-it-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("two.db");
    for mode in ["delete", "wal"] {
        let _ = std::fs::remove_file(&path);
        let a = Connection::open(path.to_str().unwrap()).unwrap();
        a.execute_batch(&format!("PRAGMA journal_mode={mode}; CREATE TABLE t(a)")).unwrap();
        let b = Connection::open(path.to_str().unwrap()).unwrap();
        assert!(ints(&b, "SELECT a FROM t").is_empty());
        a.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES(1)").unwrap();
        assert_eq!(b.execute_batch("INSERT INTO t VALUES(2)").unwrap_err().code(), Code::Busy);
        a.execute_batch("COMMIT").unwrap();
        assert_eq!(ints(&b, "SELECT a FROM t"), [1]);
        b.execute_batch("ALTER TABLE t ADD COLUMN b DEFAULT 5").unwrap();
        assert_eq!(ints(&a, "SELECT b FROM t"), [5]);
        drop((a, b));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn files_have_a_housekeeper_however_they_are_opened_and_memory_has_none() {
    let s = iolite_testkit::Scratch::new();
    let name = s.path("a.db").to_string_lossy().into_owned();
    let of = |c: &Connection| [ints(c, "PRAGMA lock_lease_ms"), ints(c, "PRAGMA checkpoint_thread")].concat();
    let c = Connection::open(&name).unwrap();
    assert_eq!(of(&c), [10, 1]);
    assert_eq!(of(&Connection::open_with(&name, iolite::engine::OpenFlags::default()).unwrap()), [10, 1]);
    c.execute_batch("PRAGMA lock_lease_ms = 25; PRAGMA checkpoint_thread = off; ATTACH ':memory:' AS m")
        .unwrap();
    assert_eq!(of(&c), [25, 0]);
    assert_eq!(of(&Connection::open_in_memory().unwrap()), [0, 0]);
    let vfs = std::sync::Arc::new(iolite_os::MemoryVfs::new());
    assert_eq!(of(&Connection::open_on(vfs, "a.db", iolite::engine::OpenFlags::default()).unwrap()), [0, 0]);
}

#[test]
fn an_update_that_changes_nothing_writes_nothing() {
    let dir = std::env::temp_dir().join(format!("iolite-same-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a.db");
    let c = Connection::open(&path.to_string_lossy()).unwrap();
    c.execute_batch("PRAGMA journal_mode=wal; CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 'x'), (2, 'y')")
        .unwrap();
    let log = || std::fs::metadata(dir.join("a.db-wal")).unwrap().len();
    let before = log();
    c.execute_batch("UPDATE t SET b = b || ''; UPDATE t SET a = a").unwrap();
    assert_eq!((log(), c.changes()), (before, 2));
    c.execute_batch("UPDATE t SET b = 'z' WHERE a = 2").unwrap();
    assert!(log() > before);
    assert_eq!(c.query("SELECT group_concat(b) FROM t", &[]).unwrap()[0][0].to_string_lossy(), "x,z");
    drop(c);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn parameters_are_changed_in_place_between_runs_alone() {
    let c = Connection::open(":memory:").unwrap();
    let mut s = c.prepare("SELECT ?1 UNION ALL SELECT ?2").unwrap();
    s.bindings_mut().unwrap()[1].set_text(b"first").unwrap();
    s.step().unwrap();
    assert_eq!(s.bindings_mut().unwrap_err().code(), Code::Misuse);
    s.step().unwrap();
    assert_eq!(s.row()[0].to_string_lossy(), "first");
    s.reset().unwrap();
    s.bindings_mut().unwrap()[1].set_text(b"2").unwrap();
    s.step().unwrap();
    s.step().unwrap();
    assert_eq!(s.row()[0].to_string_lossy(), "2");
}

#[test]
fn statements_that_read_stop_where_a_change_of_the_schema_is_taken_back() {
    ["off", "force"].into_iter().for_each(stopped_reads);
}

fn stopped_reads(analytics: &str) {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!(
        "PRAGMA analytics = {analytics}; CREATE TABLE t(id INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT i, i % 7 FROM n"
    ))
    .unwrap();
    let rest = |sql: &str, back: &str| {
        let mut s = c.prepare(sql).unwrap();
        s.step().unwrap();
        c.execute_batch(back).unwrap();
        let mut rows = 1;
        loop {
            match s.step() {
                Ok(Step::Row) => rows += 1,
                Ok(Step::Done) => break Ok(rows),
                Err(e) => break Err(e.code()),
            }
        }
    };
    let stopped = Err(Code::AbortRollback);
    for (begin, back) in [("BEGIN", "ROLLBACK"), ("BEGIN; SAVEPOINT s", "ROLLBACK TO s")] {
        let after = |change: &str, sql: &str| {
            c.execute_batch(&format!("{begin}; {change}")).unwrap();
            let found = rest(sql, back);
            let _ = c.execute_batch("ROLLBACK");
            found
        };
        // Its tree is gone, as is the one of a table.
        assert_eq!(after("CREATE INDEX tv ON t(v)", "SELECT id FROM t WHERE v > 3"), stopped);
        assert_eq!(after("CREATE TABLE q AS SELECT * FROM t", "SELECT v FROM q"), stopped);
        // Which trees are gone is not looked at.
        assert_eq!(after("CREATE TEMP TABLE q(x)", "SELECT id FROM t"), stopped, "{back}");
        assert_eq!(after("CREATE TABLE q(x)", "SELECT DISTINCT id FROM t WHERE v > 3"), stopped);
        // Rows that were sorted or grouped are there.
        assert_eq!(after("CREATE TABLE q(x)", "SELECT id FROM t ORDER BY v DESC"), Ok(500));
        assert_eq!(after("CREATE TABLE q(x)", "SELECT v, count(*) FROM t GROUP BY v"), Ok(7));
        // Columns are computed before the first row is out.
        let left = if analytics == "off" || !cfg!(feature = "columnar") { 500 } else { 499 };
        assert_eq!(after("DELETE FROM t WHERE id = 400", "SELECT id FROM t"), Ok(left));
        assert_eq!(after("", "SELECT id FROM t"), Ok(500));
    }
    // What a statement of its own has changed nobody else has seen.
    let mut s = c.prepare("SELECT id FROM t").unwrap();
    s.step().unwrap();
    c.execute_batch("ALTER TABLE t ADD COLUMN v").unwrap_err();
    assert_eq!(s.step().unwrap(), Step::Row);
    drop(s);
    // The next run is whole.
    let mut s = c.prepare("SELECT count(*), max(v) FROM t").unwrap();
    s.step().unwrap();
    assert_eq!(s.row()[0].to_int(), 500);
}

/// An UPDATE that nothing but a row's length can stop keeps no copies of pages: a row that grows too long takes the
/// transaction back, so that no half of it stays.
#[test]
fn a_row_that_grows_too_long_leaves_no_half_of_an_update() {
    for journal in ["wal", "delete", "memory"] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!(
            "PRAGMA journal_mode = {journal}; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX ta ON t(a);
             INSERT INTO t VALUES (1, 'x', 'y'), (2, 'x', 'y'), (3, 'x', printf('%.*c', 600, 'z')), (4, 'x', 'y')"
        ))
        .unwrap();
        c.limit(iolite_base::Limit::Length, Some(1000));
        c.execute_batch("BEGIN; INSERT INTO t VALUES (5, 'in', 'transaction')").unwrap();
        assert_eq!(
            c.execute_batch("UPDATE t SET a = b WHERE id < 9").unwrap_err().message(),
            "string or blob too big"
        );
        let left = c.query("SELECT count(*), group_concat(a, '') FROM t", &[]).unwrap();
        assert_eq!((left[0][0].to_int(), left[0][1].to_string_lossy()), (4, "xxxx".to_string()), "{journal}");
    }
}

/// The same of statements that change more than one place: the row that is in the way, entries of indexes, what a trigger writes.
#[test]
fn a_row_that_is_too_long_leaves_no_half_of_a_statement() {
    let long = format!("'{}'", "z".repeat(600));
    for statement in [
        "INSERT INTO t VALUES (9, 'new', LONG, LONG)",
        "REPLACE INTO t VALUES (1, 'two', LONG, LONG)",
        "REPLACE INTO t VALUES (7, 'two', 'x', LONG), (8, 'one', LONG, LONG)",
        "INSERT INTO t VALUES (9, 'two', 'x', LONG) ON CONFLICT(a) DO UPDATE SET b = c, c = LONG, a = LONG",
        "UPDATE t SET b = LONG, c = LONG WHERE id = 1",
        "UPDATE t SET id = 9, b = LONG, c = LONG WHERE a = 'one'",
        "INSERT INTO watched VALUES (LONG)",
        "DELETE FROM watched",
        "INSERT INTO w VALUES ('two', LONG, LONG)",
        "REPLACE INTO w VALUES ('two', 'b1', LONG), ('three', 'b2', LONG), ('one', LONG, LONG)",
        "INSERT INTO copy SELECT b, c FROM t UNION ALL SELECT LONG, LONG",
    ] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b, c); CREATE INDEX tb ON t(b);
             INSERT INTO t VALUES (1, 'one', 'b1', 'c1'), (2, 'two', 'b2', 'c2'), (3, 'three', 'b3', 'c3');
             CREATE TABLE w(a PRIMARY KEY, b UNIQUE, c) WITHOUT ROWID; INSERT INTO w SELECT a, b, c FROM t;
             CREATE TABLE copy(x, y); CREATE INDEX copy_x ON copy(x); CREATE TABLE log(x, y);
             CREATE TABLE watched(x); INSERT INTO watched VALUES ('kept'), (printf('%.*c', 600, 'z'));
             CREATE TRIGGER new_one AFTER INSERT ON watched BEGIN
               INSERT INTO log VALUES (new.x, 1); INSERT INTO log VALUES (new.x, new.x); END;
             CREATE TRIGGER gone AFTER DELETE ON watched BEGIN INSERT INTO log VALUES (old.x, old.x); END",
        )
        .unwrap();
        let all = || {
            let tables = ["t", "w", "copy", "watched", "log"];
            tables.map(|t| format!("{:?}", c.query(&format!("SELECT * FROM {t}"), &[]).unwrap()))
        };
        let before = all();
        c.execute_batch("BEGIN; INSERT INTO t VALUES (5, 'five', 'in', 'transaction')").unwrap();
        let within = all();
        c.limit(iolite_base::Limit::Length, Some(1000));
        let e = c.execute_batch(&statement.replace("LONG", &long)).unwrap_err();
        assert_eq!(e.message(), "string or blob too big", "{statement}");
        c.limit(iolite_base::Limit::Length, Some(1_000_000));
        let after = all();
        assert!(after == before || after == within, "{statement}: {after:?}");
        let check = c.query("PRAGMA integrity_check", &[]).unwrap();
        assert_eq!(check[0][0].to_string_lossy(), "ok", "{statement}");
    }
}

/// A function is not put in the place of another while a statement runs that may call it.
#[test]
fn like_heeds_case_from_the_next_statement_that_finds_none_running() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(v); INSERT INTO t VALUES ('a'), ('A')").unwrap();
    let found = || c.query("SELECT count(*) FROM t WHERE v LIKE 'a'", &[]).unwrap()[0][0].to_int();
    let mut s = c.prepare("SELECT v FROM t").unwrap();
    s.step().unwrap();
    c.execute_batch("PRAGMA case_sensitive_like = on").unwrap();
    assert_eq!(found(), 2);
    s.reset().unwrap();
    assert_eq!(found(), 2);
    c.execute_batch("PRAGMA case_sensitive_like = on").unwrap();
    assert_eq!(found(), 1);
}

#[test]
fn many_triggers_take_turns() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE TABLE l(n, x)").unwrap();
    for i in 0..20 {
        // Programs of several sizes, with cursors, values that are computed once, aggregates and lists.
        let wide = (0..i).map(|k| format!("+{k}*new.a")).collect::<String>();
        c.execute_batch(&format!(
            "CREATE TRIGGER g{i} AFTER INSERT ON t WHEN new.a%{}=0 BEGIN
               INSERT INTO l SELECT {i}, count(*)+(SELECT max(a) FROM t){wide} FROM t WHERE a IN (1,2,new.a) AND b LIKE '%x%';
             END",
            i + 1
        ))
        .unwrap();
    }
    for _ in 0..2 {
        c.execute_batch("DELETE FROM l; DELETE FROM t").unwrap();
        c.execute_batch(
            "WITH s(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM s WHERE i<60) INSERT INTO t SELECT i, i||'x' FROM s",
        )
        .unwrap();
        let row = |i: i64, a: i64| a + a.clamp(1, 3) + a * (0..i).sum::<i64>();
        let want = (1..=60).flat_map(|a| (0..20).filter(move |i| a % (i + 1) == 0).map(move |i| row(i, a)));
        assert_eq!(ints(&c, "SELECT sum(x) FROM l"), [want.sum::<i64>()]);
    }
}

#[test]
fn a_log_grows_by_what_changes_however_small_the_cache() {
    let dir = std::env::temp_dir().join(format!("iolite-it-spills-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a.db");
    let c = Connection::open(path.to_str().unwrap()).unwrap();
    c.execute_batch(
        "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=10;
         CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX tb ON t(b);
         WITH s(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM s WHERE i<3000)
         INSERT INTO t SELECT i, i*7919%3001, printf('%060d', i) FROM s;
         BEGIN; UPDATE t SET b=b+1; SAVEPOINT one; UPDATE t SET b=b*7%3001, c='gone'; ROLLBACK TO one;
         UPDATE t SET c=c||'x' WHERE a%3=0; COMMIT",
    )
    .unwrap();
    let log = dir.join("a.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() < 2_500_000);
    // What was written over is there after a crash, too, and nothing of a transaction that did not end.
    c.execute_batch("BEGIN; UPDATE t SET b=b+5, c=c||'lost'; UPDATE t SET b=b+5").unwrap();
    let copy = dir.join("b.db");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(&log, dir.join("b.db-wal")).unwrap();
    c.execute_batch("ROLLBACK; UPDATE t SET b=b WHERE a=1").unwrap();
    for c in [&c, &Connection::open(copy.to_str().unwrap()).unwrap()] {
        let row = c.query("SELECT count(*), sum(b), sum(length(c)), count(DISTINCT b) FROM t", &[]).unwrap();
        let row: Vec<i64> = row[0].iter().map(Value::to_int).collect();
        assert_eq!(row, [3000, 3000 * 3001 / 2 + 3000, 60 * 3000 + 1000, 3000]);
        assert_eq!(c.query("PRAGMA integrity_check", &[]).unwrap()[0][0].to_string_lossy(), "ok");
    }
    drop(c);
    std::fs::remove_dir_all(&dir).unwrap();
}

//! What stands in a schema may call: functions that are for direct use only, or not known to be harmless, are refused there.

use iolite::engine::{Connection, Function, FunctionFlags, Implementation, Value};

fn register(c: &Connection, name: &str, flags: FunctionFlags) {
    let imp = Implementation::Scalar(|_, args| Ok(args.first().cloned().unwrap_or(Value::Int(1))));
    c.create_function(Function { name: name.into(), args: 1, flags, imp });
}

fn connection() -> Connection {
    let c = Connection::open_in_memory().unwrap();
    register(&c, "direct", FunctionFlags::DIRECT_ONLY.and(FunctionFlags::DETERMINISTIC));
    register(&c, "plain", FunctionFlags::DETERMINISTIC);
    register(&c, "harmless", FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS));
    c
}

/// How a text of statements ends.
fn outcome(c: &Connection, sql: &str) -> String {
    for one in sql.split(";;") {
        if let Err(e) = c.query(one, &[]) {
            return e.message().to_string();
        }
    }
    "ok".into()
}

/// Each place of a schema, with a statement that makes use of it.
const PLACES: &[&str] = &[
    "CREATE VIEW v AS SELECT F(1) AS x;; SELECT x FROM v",
    "CREATE VIEW v AS SELECT 1 AS x WHERE 1 IN (SELECT F(1));; SELECT x FROM v",
    "CREATE VIEW w AS SELECT F(2) AS x;; CREATE VIEW v AS SELECT x FROM w;; SELECT x FROM v",
    "CREATE TABLE t(a);; CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT F(new.a); END;; INSERT INTO t VALUES (1)",
    "CREATE TABLE t(a);; CREATE TRIGGER r BEFORE INSERT ON t WHEN F(new.a) BEGIN SELECT 1; END;; INSERT INTO t VALUES (1)",
    "CREATE TABLE t(a);; CREATE TABLE u(a);; CREATE TRIGGER r AFTER DELETE ON t BEGIN INSERT INTO u SELECT F(old.a); END;; DELETE FROM t",
    "CREATE TABLE t(a CHECK (F(a)));; INSERT INTO t VALUES (1)",
    "CREATE TABLE t(a, b DEFAULT (F(3)));; INSERT INTO t(a) VALUES (1)",
    "CREATE TABLE t(a, b AS (F(a)));; INSERT INTO t VALUES (1);; SELECT b FROM t",
    "CREATE TABLE t(a, b AS (F(a)) STORED);; INSERT INTO t VALUES (1)",
    "CREATE TABLE t(a);; CREATE INDEX i ON t(F(a));; INSERT INTO t VALUES (1)",
    "CREATE TABLE t(a);; CREATE INDEX i ON t(a) WHERE F(a);; INSERT INTO t VALUES (1)",
];

#[test]
fn functions_for_direct_use_are_refused_in_the_schema() {
    for place in PLACES {
        for (name, trusted, allowed) in [
            ("direct", true, false),
            ("direct", false, false),
            ("plain", true, true),
            ("plain", false, false),
            ("harmless", true, true),
            ("harmless", false, true),
            ("abs", false, true),
        ] {
            let c = connection();
            if !trusted {
                c.query("PRAGMA trusted_schema = OFF", &[]).unwrap();
            }
            let want = if allowed { "ok".to_string() } else { format!("unsafe use of {name}()") };
            assert_eq!(
                outcome(&c, &place.replace("F(", &format!("{name}("))),
                want,
                "{place} {name} {trusted}"
            );
        }
    }
}

#[test]
fn statements_and_temporary_objects_may_call_them() {
    let c = connection();
    c.query("PRAGMA trusted_schema = OFF", &[]).unwrap();
    for sql in [
        "SELECT direct(1), plain(2)",
        "CREATE TABLE t(a);; INSERT INTO t SELECT direct(1);; UPDATE t SET a = plain(a) WHERE direct(a)",
        "WITH w AS (SELECT direct(1) AS x) SELECT x FROM w JOIN (SELECT plain(2) AS y)",
        "CREATE TEMP VIEW tv AS SELECT direct(1) AS x;; SELECT x FROM tv",
        "CREATE TEMP TRIGGER tr AFTER INSERT ON t BEGIN SELECT direct(new.a); END;; INSERT INTO t VALUES (2)",
    ] {
        assert_eq!(outcome(&c, sql), "ok", "{sql}");
    }
    // The setting counts for statements that were prepared before.
    let c = connection();
    assert_eq!(outcome(&c, "CREATE VIEW v AS SELECT plain(1) AS x"), "ok");
    let mut s = c.prepare("SELECT x FROM v").unwrap();
    s.step().unwrap();
    s.reset().unwrap();
    c.query("PRAGMA trusted_schema = OFF", &[]).unwrap();
    assert_eq!(s.step().unwrap_err().message(), "unsafe use of plain()");
    // Names in what may not run are found all the same.
    assert_eq!(outcome(&c, "CREATE TABLE n(a);; CREATE VIEW nv AS SELECT plain(a) AS b FROM n"), "ok");
    assert_eq!(outcome(&c, "ALTER TABLE n RENAME TO m;; ALTER TABLE m RENAME COLUMN a TO aa"), "ok");
}

#[test]
fn a_like_of_ones_own_is_asked_for_every_row() {
    let c = Connection::open_in_memory().unwrap();
    let sql = "CREATE TABLE t(a TEXT COLLATE nocase);; CREATE INDEX i ON t(a);; INSERT INTO t VALUES ('abc'), ('xyz')";
    assert_eq!(outcome(&c, sql), "ok");
    let count =
        |c: &Connection| c.query("SELECT count(*) FROM t WHERE a LIKE 'ab%'", &[]).unwrap()[0][0].to_int();
    assert_eq!(count(&c), 1);
    c.query("PRAGMA case_sensitive_like = ON", &[]).unwrap();
    assert_eq!(outcome(&c, "INSERT INTO t VALUES ('ABC')"), "ok");
    assert_eq!(count(&c), 1);
    let imp = Implementation::Scalar(|_, _| Ok(Value::Int(1)));
    let flags = FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS);
    c.create_function(Function { name: "like".into(), args: 2, flags, imp });
    assert_eq!(count(&c), 3);
}

#[test]
fn a_function_of_ones_own_goes_before_a_built_in_one() {
    let c = Connection::open_in_memory().unwrap();
    let own = |name: &str, args| {
        let imp = Implementation::Scalar(|_, args| Value::text(format!("own {}", args.len())));
        c.create_function(Function { name: name.into(), args, flags: FunctionFlags::DETERMINISTIC, imp });
    };
    for name in ["hex", "ABS", "substr", "coalesce", "concat"] {
        own(name, -1);
        let got = c.query(&format!("SELECT {name}(1, 2), {name}(1)"), &[]).unwrap();
        assert_eq!(
            (&*got[0][0].to_string_lossy(), &*got[0][1].to_string_lossy()),
            ("own 2", "own 1"),
            "{name}"
        );
    }
    own("upper", 2);
    let got = c.query("SELECT upper('a', 'b'), upper('a')", &[]).unwrap();
    assert_eq!((&*got[0][0].to_string_lossy(), &*got[0][1].to_string_lossy()), ("own 2", "A"));
    c.remove_function("upper", 2);
    assert!(c.query("SELECT upper('a', 'b')", &[]).is_err());
}

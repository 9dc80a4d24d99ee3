//! EXPLAIN ANALYZE of statements that run in rows: what it counts, and that the statement does what it always does.

use iolite::engine::{Connection, Value};

/// The lines, each below its parents, without what depends on the machine.
fn analyzed(c: &Connection, sql: &str) -> Vec<String> {
    let rows = c.query(&format!("EXPLAIN ANALYZE {sql}"), &[]).unwrap();
    let depth = |mut id: i64| {
        let mut depth = 0;
        while let Some(r) = rows.iter().find(|r| r[0].to_int() == id && id != 0) {
            (id, depth) = (r[1].to_int(), depth + 1);
        }
        depth
    };
    rows.iter()
        .map(|r| {
            let text = r[3].to_string_lossy();
            let vague = |w: &&str| ["ticks", "%", "ms"].iter().any(|end| w.ends_with(end));
            let counts: Vec<&str> = text.split(", ").filter(|w| !vague(w)).collect();
            "  ".repeat(depth(r[1].to_int())) + &counts.join(", ")
        })
        .collect()
}

fn sample() -> Connection {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "PRAGMA analytics = off;
         CREATE TABLE t(id INTEGER PRIMARY KEY, g, c); CREATE INDEX by_g ON t(g);
         CREATE TABLE d(id INTEGER PRIMARY KEY, name);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
           INSERT INTO t SELECT i, i % 10, 'c' || i FROM n;
         INSERT INTO d VALUES (1, 'one'), (2, 'two'), (3, 'three');",
    )
    .unwrap();
    c
}

/// The lines of the plan; those of the opcodes come behind.
fn plan(c: &Connection, sql: &str) -> Vec<String> {
    analyzed(c, sql).into_iter().take_while(|l| l != "OPCODES").collect()
}

#[test]
fn lines_tell_how_often_they_ran_and_through_how_many_rows() {
    let c = sample();
    assert_eq!(
        plan(&c, "SELECT name, count(*) FROM t, d WHERE t.g = d.id AND t.id > 20 GROUP BY name ORDER BY 2"),
        [
            "SEARCH t USING INTEGER PRIMARY KEY (rowid>?)",
            "  RAN: 1 times, 80 rows",
            "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
            "  RAN: 80 times, 24 rows",
            "USE TEMP B-TREE FOR GROUP BY",
            "  RAN: 1 times, 3 rows",
            "USE TEMP B-TREE FOR ORDER BY",
            "  RAN: 1 times, 3 rows",
        ]
    );
    assert_eq!(
        plan(&c, "SELECT id, (SELECT name FROM d WHERE d.id = t.g) FROM t WHERE g = 2 OR id < 5"),
        [
            "MULTI-INDEX OR",
            "  RAN: 1 times, 13 rows",
            "  INDEX 1",
            "    RAN: 1 times",
            "    SEARCH t USING COVERING INDEX by_g (g=?)",
            "      RAN: 1 times, 10 rows",
            "  INDEX 2",
            "    RAN: 1 times",
            "    SEARCH t USING INTEGER PRIMARY KEY (rowid<?)",
            "      RAN: 1 times, 4 rows",
            "CORRELATED SCALAR SUBQUERY 1",
            "  RAN: 13 times",
            "  SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
            "    RAN: 13 times, 12 rows",
        ]
    );
}

#[test]
fn shares_add_up_to_the_whole() {
    let c = sample();
    let rows =
        c.query("EXPLAIN ANALYZE SELECT count(*) FROM t a, t b WHERE a.g < b.g AND a.c <> b.c", &[]).unwrap();
    let head = rows.iter().find(|r| r[3].to_string_lossy() == "OPCODES").unwrap()[0].to_int();
    let share = |r: &[Value]| {
        let text = r[3].to_string_lossy();
        text.strip_suffix(" %").and_then(|t| t.rsplit_once(", ")).map_or(0.0, |t| t.1.parse::<f64>().unwrap())
    };
    let sum = |lines: bool| -> f64 {
        rows.iter().filter(|r| (r[1].to_int() == head) != lines).map(|r| share(r)).sum()
    };
    assert!((sum(false) - 100.0).abs() < 2.0, "{rows:?}");
    assert!(sum(true) > 50.0 && sum(true) < 101.0, "{rows:?}");
}

#[test]
fn opcodes_are_counted_those_of_triggers_too() {
    let c = sample();
    c.execute_batch(
        "CREATE TRIGGER more AFTER INSERT ON d BEGIN UPDATE t SET c = new.name WHERE id = new.id; END",
    )
    .unwrap();
    let lines = analyzed(&c, "INSERT INTO d VALUES (50, 'x'), (51, 'y')");
    assert!(lines.contains(&"  Program: 2 times".into()), "{lines:?}");
    assert!(lines.contains(&"  Param: 4 times".into()), "{lines:?}");
    let changed = c.query("SELECT c FROM t WHERE id IN (50, 51)", &[]).unwrap();
    assert_eq!(changed.iter().map(|r| r[0].to_string_lossy()).collect::<Vec<_>>(), ["x", "y"]);
}

#[test]
fn a_statement_keeps_its_parameters_and_may_be_run_again() {
    let c = sample();
    let mut s = c.prepare("EXPLAIN ANALYZE SELECT * FROM t WHERE id <= ?").unwrap();
    for n in [7, 9] {
        s.reset().unwrap();
        s.bind(1, Value::Int(n)).unwrap();
        let mut lines = Vec::new();
        while s.step().unwrap() == iolite::engine::Step::Row {
            lines.push(s.row()[3].to_string_lossy());
        }
        let wanted = [format!("RAN: 1 times, {n} rows"), format!("RUN: {n} rows")];
        assert!(wanted.iter().all(|w| lines.iter().any(|l| l.starts_with(w))), "{n}: {lines:?}");
        assert_eq!(lines.iter().filter(|l| *l == "OPCODES").count(), 1);
    }
}

#[test]
fn a_statement_that_fails_reports_its_error_and_changes_nothing() {
    let c = sample();
    let e =
        c.query("EXPLAIN ANALYZE INSERT INTO d SELECT id + 2, 'n' FROM t ORDER BY id DESC", &[]).unwrap_err();
    assert!(e.to_string().contains("UNIQUE constraint failed: d.id"), "{e}");
    assert_eq!(c.query("SELECT count(*) FROM d", &[]).unwrap()[0][0].to_int(), 3);
}

#[test]
fn windows_and_rows_without_a_match_have_lines_of_their_own() {
    let c = sample();
    let told = |sql: &str, line: &str| {
        let all = plan(&c, sql);
        let at = all.iter().position(|l| l == line).unwrap_or_else(|| panic!("{line}: {all:#?}"));
        all[at + 1].trim().to_string()
    };
    let sql = "SELECT sum(g) OVER (ORDER BY id) FROM t";
    assert_eq!(told(sql, "SCAN (subquery-2)"), "RAN: 1 times, 100 rows");
    let sql = "SELECT count(*) FROM t RIGHT JOIN d ON d.id = t.g AND t.id > 1000";
    assert_eq!(told(sql, "RIGHT-JOIN d"), "RAN: 1 times, 3 rows");
}

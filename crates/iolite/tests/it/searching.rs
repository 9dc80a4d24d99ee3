//! Looking things up in indexes: whatever the keys are, and while others change the table.

use iolite::engine::{Connection, Step, Value};

/// A table of many small pages; keys of all widths, unevenly spread, among them what is no integer.
fn table(c: &Connection) {
    c.execute_batch(
        "PRAGMA analytics = off; PRAGMA page_size = 512; CREATE TABLE t(id INTEGER PRIMARY KEY, k, v); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) \
         INSERT INTO t SELECT i, CASE i % 10 WHEN 0 THEN NULL WHEN 1 THEN i * 0.5 WHEN 2 THEN 'k' || i \
         WHEN 3 THEN -(1 << (i % 60)) WHEN 4 THEN (1 << (i % 62)) + i WHEN 5 THEN i % 3 \
         WHEN 6 THEN 9223372036854775807 - i ELSE i * 7919 % 5003 END, printf('%.*c', i % 60, 'x') FROM n; \
         CREATE INDEX tk ON t(k); CREATE INDEX tkd ON t(k DESC, v);",
    )
    .unwrap();
}

/// The answer as a text.
fn answer(c: &Connection, sql: &str, args: &[Value]) -> String {
    format!("{:?}", c.query(sql, args).unwrap())
}

#[test]
fn keys_of_all_sorts_are_found_where_a_scan_finds_them() {
    let c = Connection::open_in_memory().unwrap();
    table(&c);
    let mut keys: Vec<Value> = c.query("SELECT DISTINCT k FROM t WHERE id % 13 = 0", &[]).unwrap().concat();
    keys.extend([0, 1, -1, 2, 4999, 5003, 70_000, i64::MIN, i64::MAX].map(Value::Int));
    for key in keys {
        for op in ["=", "<", ">="] {
            let mut sought = Vec::new();
            for (from, column) in
                [("t INDEXED BY tk", "k"), ("t INDEXED BY tkd", "k"), ("t NOT INDEXED", "+k")]
            {
                let sql = format!(
                    "SELECT count(*), coalesce(sum(id), 0), coalesce(sum(length(v)), 0) FROM {from} \
                     WHERE {column} {op} ?1"
                );
                sought.push(answer(&c, &sql, std::slice::from_ref(&key)));
            }
            assert_eq!(sought[0], sought[2], "{op} {key:?}");
            assert_eq!(sought[1], sought[2], "{op} {key:?}");
        }
    }
}

#[test]
fn rows_in_the_order_of_an_index_are_those_of_a_sort() {
    let c = Connection::open_in_memory().unwrap();
    table(&c);
    let by_index = answer(&c, "SELECT id, k, v FROM t INDEXED BY tk ORDER BY k", &[]);
    let sorted = answer(&c, "SELECT id, k, v FROM t NOT INDEXED ORDER BY +k, id", &[]);
    assert!(by_index == sorted);
}

#[test]
fn a_scan_goes_on_while_its_rows_are_changed() {
    let c = Connection::open_in_memory().unwrap();
    table(&c);
    let mut live: Vec<i64> = c
        .query("SELECT id FROM t WHERE k >= 0 AND k < 1000000 ORDER BY +k, id", &[])
        .unwrap()
        .iter()
        .map(|r| r[0].to_int())
        .collect();
    let mut scan =
        c.prepare("SELECT id, v FROM t INDEXED BY tk WHERE k >= 0 AND k < 1000000 ORDER BY k").unwrap();
    let mut grow = c.prepare("UPDATE t SET v = printf('%.*c', 200, 'y') WHERE id = ?1").unwrap();
    let mut delete = c.prepare("DELETE FROM t WHERE id = ?1").unwrap();
    let (mut seen, mut grown) = (0, Vec::new());
    while scan.step().unwrap() == Step::Row {
        let (id, length) = (scan.row()[0].to_int(), scan.row()[1].to_string_lossy().len() as i64);
        assert_eq!(Some(&id), live.get(seen), "row number {seen}");
        assert_eq!(length, if grown.contains(&id) { 200 } else { (id % 60).max(1) }, "row {id}");
        seen += 1;
        // A row that comes a little later grows or vanishes.
        if let (0, Some(&later)) = (seen % 3, live.get(seen + 2)) {
            let change = if seen % 2 == 0 { &mut grow } else { &mut delete };
            change.reset().unwrap();
            change.bind(1, Value::Int(later)).unwrap();
            assert_eq!(change.step().unwrap(), Step::Done);
            if seen % 2 == 0 {
                grown.push(later);
            } else {
                live.remove(seen + 2);
            }
        }
    }
    assert_eq!(seen, live.len());
    drop((scan, grow, delete));
    assert_eq!(c.query("PRAGMA integrity_check", &[]).unwrap()[0][0].to_string_lossy(), "ok");
}

//! Keys are found in an index wherever they stand: what a seek finds is what a scan finds.

use crate::draw::Draw;
use iolite::engine::Connection;

/// A value of a kind and length that search by parts of keys might take for another.
fn value(d: &mut Draw) -> String {
    let text = |d: &mut Draw| {
        let n = d.below(14);
        (0..n).map(|_| ["a", "b", "é", "A"][d.below(4) as usize]).collect::<String>()
    };
    match d.below(9) {
        0 => "NULL".to_string(),
        1 => (d.below(5) as i64 - 2).to_string(),
        2 => (d.below(1 << 17) as i64 - (1 << 16)).to_string(),
        3 => format!("{}", (d.below(1 << 31) << 20) as i64 - (1 << 50)),
        4 => format!("{}.5", d.below(6)),
        5 => format!("x'{}'", "61".repeat(d.below(10) as usize)),
        6 => format!("'{}' || char(0) || '{}'", text(d), text(d)),
        7 => format!("'{}{}'", "long beginning ".repeat(1 + d.below(12) as usize), text(d)),
        _ => format!("'{}'", text(d)),
    }
}

#[test]
fn a_seek_finds_what_a_scan_finds() {
    for (seed, size, encoding) in [(1, 512, "UTF-8"), (2, 4096, "UTF-8"), (3, 1024, "UTF-16le")] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!(
            "PRAGMA page_size = {size}; PRAGMA encoding = '{encoding}';
             CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
             CREATE INDEX ab ON t(a, b); CREATE INDEX ba ON t(b DESC, a); CREATE INDEX an ON t(a COLLATE NOCASE, b)"
        ))
        .unwrap();
        let mut d = Draw(seed);
        let mut values = Vec::new();
        for _ in 0..900 {
            let (a, b) = (value(&mut d), value(&mut d));
            c.execute_batch(&format!("INSERT INTO t(a, b) VALUES ({a}, {b})")).unwrap();
            values.push((a, b));
            if d.below(4) == 0 {
                let (a, b) = &values[d.below(values.len() as u64) as usize];
                c.execute_batch(&format!("DELETE FROM t WHERE a IS {a} AND b IS {b}")).unwrap();
            }
        }
        let rows = |from: &str, test: &str| {
            format!(
                "{:?}",
                c.query(&format!("SELECT id FROM t {from} WHERE {test} ORDER BY id"), &[]).unwrap()
            )
        };
        for (n, (a, b)) in values.iter().enumerate() {
            let other = value(&mut d);
            let tests = [
                (format!("a IS {a} AND b IS {b}"), "ab"),
                (format!("a = {a} AND b >= {other}"), "ab"),
                (format!("b < {b} AND b > {other}"), "ba"),
                (format!("b = {b} AND a <= {other}"), "ba"),
                (format!("a COLLATE NOCASE = {a} AND b > {other}"), "an"),
            ];
            let (test, index) = &tests[n % tests.len()];
            assert_eq!(
                rows(&format!("INDEXED BY {index}"), test),
                rows("NOT INDEXED", test),
                "{seed}: {test}"
            );
        }
        let checked = c.query("PRAGMA integrity_check", &[]).unwrap();
        assert_eq!(checked[0][0].to_string_lossy(), "ok", "{seed}");
    }
}

#[test]
fn a_filtered_distinct_aggregate_sees_rows_behind_the_first_of_each_value() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) INSERT INTO t SELECT i % 6, i FROM n;
         CREATE INDEX ab ON t(a, b); ANALYZE",
    )
    .unwrap();
    for result in
        ["count(DISTINCT a) FILTER (WHERE b > 590)", "count(DISTINCT a) FILTER (WHERE b > 590), count(*)"]
    {
        let found = c.query(&format!("SELECT {result} FROM t"), &[]).unwrap();
        assert_eq!(found[0][0].to_int(), 6, "{result}");
    }
}

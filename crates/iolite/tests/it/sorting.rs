//! Sorts and sets that do not fit in memory.

use iolite::engine::{Connection, Value};

const ROWS: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k, v); \
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
    INSERT INTO t SELECT i, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN i * 7919 % 1000 WHEN 2 THEN i * 0.25 \
    WHEN 3 THEN printf('%.*c', i % 300, 'x') WHEN 4 THEN zeroblob(i % 90) ELSE 'k' || (i * 31 % 500) END, i % 11 FROM n;";

fn ids(c: &Connection, sql: &str) -> Vec<i64> {
    c.query(sql, &[]).unwrap().iter().map(|r| r[0].to_int()).collect()
}

/// A query's rows are those that it has with memory enough; twice, since what an earlier run left must not be there.
fn is_the_same_with(c: &Connection, sql: &str, memories: [usize; 2]) {
    c.execute_batch("PRAGMA sort_memory = 1000000000").unwrap();
    let whole = format!("{:?}", c.query(sql, &[]).unwrap());
    for memory in memories {
        c.execute_batch(&format!("PRAGMA sort_memory = {memory}")).unwrap();
        let mut q = c.prepare(sql).unwrap();
        for _ in 0..2 {
            let mut rows = Vec::new();
            while q.step().unwrap() == iolite::engine::Step::Row {
                rows.push(q.row().to_vec());
            }
            assert!(format!("{rows:?}") == whole, "{sql}, {memory} bytes");
            q.reset().unwrap();
        }
    }
}

#[test]
fn the_order_is_that_of_a_sort_in_memory() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!("PRAGMA analytics = off; {ROWS}")).unwrap();
    for order in ["k", "k DESC", "v, k COLLATE NOCASE DESC", "k NULLS LAST, v DESC", "v"] {
        let sql = format!("SELECT id, k FROM t ORDER BY {order}");
        c.execute_batch("PRAGMA sort_memory = 1000000000").unwrap();
        let whole = ids(&c, &sql);
        assert_eq!(whole.len(), 20_000);
        for memory in [4096, 60_000, 900_000] {
            c.execute_batch(&format!("PRAGMA sort_memory = {memory}")).unwrap();
            assert_eq!(ids(&c, &sql), whole, "{order}, {memory} bytes");
            assert_eq!(ids(&c, &format!("{sql} LIMIT 40 OFFSET 9000")), whole[9000..9040], "{order}");
        }
    }
}

#[test]
fn indexes_are_built_and_checked() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!("PRAGMA sort_memory = 4096; {ROWS}")).unwrap();
    c.execute_batch("CREATE INDEX tk ON t(k DESC, v)").unwrap();
    let e = c.execute_batch("CREATE UNIQUE INDEX tv ON t(v)").unwrap_err();
    assert_eq!(e.message(), "UNIQUE constraint failed: t.v");
    let check = c.query("PRAGMA integrity_check", &[]).unwrap();
    assert_eq!(check[0][0].to_string_lossy(), "ok");
}

/// Which keys are equal is told apart from which records are.
#[test]
fn unique_indexes_are_built_where_no_key_comes_twice() {
    for memory in [64 << 20, 4096] {
        for (column, twice, fails) in [
            ("a", "NULL", false),
            ("a", "5", true),
            ("a", "'X5'", false),
            ("a COLLATE NOCASE", "'X5'", true),
            ("a, b", "5", false),
            ("a, b COLLATE NOCASE", "5", true),
            ("a DESC", "5.0", true),
        ] {
            let c = Connection::open_in_memory().unwrap();
            c.execute_batch(&format!(
                "PRAGMA sort_memory = {memory}; CREATE TABLE t(a, b);
                 WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
                 INSERT INTO t SELECT i * 7 % 3000, 'x' FROM n;
                 INSERT INTO t VALUES('x5', 'x'), (NULL, 'x'), ({twice}, 'X')"
            ))
            .unwrap();
            let made = c.execute_batch(&format!("CREATE UNIQUE INDEX u ON t({column})"));
            assert_eq!(made.is_err(), fails, "{column} {twice}");
            let rows = c.query("SELECT count(*) FROM t INDEXED BY u WHERE a < 5", &[]);
            assert_eq!(
                rows.map(|r| r[0][0].to_int()).ok(),
                (!fails && !column.contains("NOCASE")).then_some(5)
            );
            let check = c.query("PRAGMA integrity_check", &[]).unwrap();
            assert_eq!(check[0][0].to_string_lossy(), "ok");
        }
    }
}

#[test]
fn a_sort_can_be_left_in_the_middle_and_run_again() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!("PRAGMA analytics = off; PRAGMA sort_memory = 4096; {ROWS}")).unwrap();
    let mut q = c.prepare("SELECT id FROM t WHERE v = ?1 ORDER BY k, id DESC").unwrap();
    for v in [3, 4, 3] {
        q.bind(1, Value::Int(v)).unwrap();
        let mut n = 0;
        while n < 500 && q.step().unwrap() == iolite::engine::Step::Row {
            n += 1;
        }
        assert_eq!(n, 500);
        q.reset().unwrap();
    }
}

#[test]
fn sets_of_rows_say_the_same_with_little_memory() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!(
        "PRAGMA analytics = off; {ROWS} CREATE TABLE u(k TEXT COLLATE NOCASE); INSERT INTO u SELECT k FROM t"
    ))
    .unwrap();
    let queries = [
        "SELECT DISTINCT k, v FROM t",
        "SELECT count(DISTINCT k), count(DISTINCT v), group_concat(DISTINCT v) FROM t",
        "SELECT v, count(DISTINCT k) FROM t GROUP BY v",
        "SELECT v, count(DISTINCT k) FROM t GROUP BY v ORDER BY v DESC",
        "SELECT DISTINCT upper(k) COLLATE NOCASE FROM u",
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x * 7 % 5003 FROM r) SELECT count(*), sum(x) FROM r",
        "SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE v < 3)",
        "SELECT k IN (SELECT k FROM t WHERE v < 3), k NOT IN (SELECT k FROM t WHERE v < 3 AND k IS NOT NULL) FROM t",
        "SELECT NULL IN (SELECT k FROM t WHERE v > 99), 'none' IN (SELECT k FROM t)",
        "SELECT id FROM t WHERE (v, k) IN (SELECT v, k FROM t WHERE id % 3 = 0)",
        "SELECT id FROM t WHERE k COLLATE NOCASE IN (SELECT upper(k) FROM t WHERE v = 5)",
    ];
    queries.iter().for_each(|sql| is_the_same_with(&c, sql, [4096, 100_000]));
}

#[test]
fn the_queue_of_a_recursive_query_keeps_its_order() {
    let c = Connection::open_in_memory().unwrap();
    for sql in [
        "WITH RECURSIVE n(i, s) AS (SELECT 1, 'x' UNION ALL SELECT i * 2 + d.column1, s || i \
            FROM n, (VALUES (0), (1)) d WHERE i < 3000) SELECT i FROM n",
        "WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(9000) UNION ALL SELECT i + 1, b FROM n WHERE i < 50) SELECT i + length(b) FROM n",
        "WITH RECURSIVE n(i) AS (VALUES (1), (500) UNION SELECT (i * 7 + k.column1) % 997 \
            FROM n, (VALUES (1), (3), (5)) k) SELECT i FROM n",
    ] {
        c.execute_batch("PRAGMA sort_memory = 1000000000").unwrap();
        let whole = ids(&c, sql);
        assert!(whole.len() >= 50);
        c.execute_batch("PRAGMA sort_memory = 4096").unwrap();
        assert_eq!(ids(&c, sql), whole, "{sql}");
    }
}

/// BINARY compares the bytes that the database stores. Groups and windows sort values that are UTF-8 in memory.
#[test]
fn groups_and_windows_of_a_utf16_database_have_its_order() {
    for (encoding, first) in [("UTF-8", "a"), ("UTF-16le", "\u{1e00}"), ("UTF-16be", "a")] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!(
            "PRAGMA encoding = '{encoding}'; CREATE TABLE t(id INTEGER PRIMARY KEY, k);
             CREATE TABLE letter(c); INSERT INTO letter VALUES('a'), ('z'), (char(0x161)), (char(0x1e00)), (char(0xffee)), (char(0x1f600));
             INSERT INTO t(k) SELECT x.c || y.c || z.c FROM letter x, letter y, letter z"
        ))
        .unwrap();
        let sorted = ids(&c, "SELECT id FROM t ORDER BY k");
        let k = c.query("SELECT substr(k, 1, 1) FROM t ORDER BY k LIMIT 1", &[]).unwrap();
        assert_eq!(k[0][0].to_string_lossy(), first, "{encoding}");
        assert_eq!(ids(&c, "SELECT min(id) FROM t GROUP BY k ORDER BY k"), sorted, "{encoding}");
        assert_eq!(
            ids(&c, "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY k) AS n FROM t) ORDER BY n"),
            sorted
        );
        assert_eq!(
            ids(
                &c,
                "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY id % 1 ORDER BY k) AS n FROM t) ORDER BY n"
            ),
            sorted,
            "{encoding}"
        );
    }
}

#[test]
fn window_functions_are_the_same_where_their_rows_are_stored() {
    for encoding in ["UTF-8", "UTF-16le"] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!("PRAGMA encoding = '{encoding}'; PRAGMA analytics = off; {ROWS}")).unwrap();
        c.execute_batch("DELETE FROM t WHERE id > 4000").unwrap();
        for sql in [
            "SELECT id, k, row_number() OVER (), count(*) OVER () FROM t",
            "SELECT id, sum(v) OVER (ORDER BY k, id) FROM t",
            "SELECT id, k, rank() OVER (PARTITION BY v ORDER BY k DESC), lag(k, 3, 'none') OVER (ORDER BY id), \
                max(k) OVER (PARTITION BY v ORDER BY id ROWS 5 PRECEDING) FROM t",
            "SELECT v, k, ntile(9) OVER w, first_value(id) OVER w, dense_rank() OVER (ORDER BY v), \
                group_concat(id) FILTER (WHERE id % 5 = 0) OVER (PARTITION BY v, k COLLATE NOCASE ORDER BY id DESC) \
                FROM t WINDOW w AS (PARTITION BY typeof(k) ORDER BY v, id) ORDER BY id LIMIT 500 OFFSET 1000",
        ] {
            is_the_same_with(&c, sql, [4096, 90_000]);
        }
        c.execute_batch("PRAGMA sort_memory = 4096").unwrap();
        let e = c.query("SELECT sum(v) OVER (ORDER BY id ROWS -1 PRECEDING) FROM t", &[]).unwrap_err();
        assert_eq!(e.message(), "frame starting offset must be a non-negative integer");
        c.execute_batch("DELETE FROM t WHERE id > 10").unwrap();
        assert_eq!(c.query("SELECT sum(v) OVER () FROM t", &[]).unwrap().len(), 10);
    }
}

/// Windows over rows that arrive in their order: few rows wanted are few rows read.
#[test]
fn windows_over_rows_in_their_order_come_out_early() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    let c = iolite::Connection::open_in_memory().unwrap();
    c.execute_batch(&format!("PRAGMA analytics = off; {ROWS} CREATE INDEX by_k ON t(k, v)")).unwrap();
    let calls = std::sync::Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    c.create_scalar_function("seen", 1, Default::default(), move |x| {
        counted.fetch_add(1, Relaxed);
        x.get::<i64>(0)
    })
    .unwrap();
    for (sql, most) in [
        ("SELECT sum(seen(id)) OVER (ORDER BY id) FROM t LIMIT 5", 100),
        ("SELECT row_number() OVER (), lag(seen(id)) OVER () FROM t LIMIT 5", 100),
        ("SELECT lead(seen(id), 3) OVER (ORDER BY id DESC) FROM t ORDER BY id DESC LIMIT 100", 600),
        (
            "SELECT * FROM (SELECT seen(id) AS i, count(*) OVER (ORDER BY id ROWS 2 PRECEDING) AS n FROM t) \
                WHERE n = 2 LIMIT 1",
            100,
        ),
        ("SELECT EXISTS (SELECT rank() OVER (ORDER BY id), seen(id) FROM t)", 100),
        ("SELECT k, rank() OVER (PARTITION BY k ORDER BY v, seen(id)) FROM t WHERE k > 1 LIMIT 3", 5000),
    ] {
        calls.store(0, Relaxed);
        c.execute_batch(sql).unwrap();
        assert!((1..=most).contains(&calls.load(Relaxed)), "{}: {sql}", calls.load(Relaxed));
    }
}

/// However many steps the rows of windows come out in, their values are those of rows that are sorted first.
#[test]
fn windows_are_the_same_in_steps() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(&format!(
        "PRAGMA analytics = off; {ROWS} DELETE FROM t WHERE id > 5000; CREATE INDEX by_k ON t(k, v)"
    ))
    .unwrap();
    let rows = |sql: &str| format!("{:?}", c.query(sql, &[]).unwrap());
    for over in [
        "ORDER BY # RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ORDER BY # ROWS BETWEEN 3 PRECEDING AND 70 FOLLOWING EXCLUDE TIES",
        "ORDER BY # GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
        "ORDER BY # RANGE BETWEEN 5 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP",
        "PARTITION BY # ORDER BY v, id",
        "PARTITION BY # ORDER BY v ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    ] {
        for (column, order) in [("id", "t"), ("k", "t INDEXED BY by_k")] {
            for functions in
                ["sum(v) OVER w, max(id) OVER w", "lead(v, 2) OVER w, rank() OVER w", "ntile(3) OVER w"]
            {
                if column == "k" && over.contains("RANGE BETWEEN 5") {
                    continue;
                }
                let query = |by: &str, from: &str| {
                    let over = over.replace('#', by);
                    format!("SELECT id, {functions} FROM {from} WINDOW w AS ({over}) LIMIT 4500")
                };
                // The rows of an index come by its second column.
                let sorted = format!(
                    "(SELECT * FROM t ORDER BY {column}, {} LIMIT -1)",
                    if column == "k" { "v, id" } else { "1" }
                );
                let expected = rows(&query(&format!("+{column}"), &sorted));
                let sql = query(column, order);
                for memory in [1_000_000_000, 30_000] {
                    c.execute_batch(&format!("PRAGMA sort_memory = {memory}")).unwrap();
                    assert!(rows(&sql) == expected, "{memory}: {sql}");
                }
                c.execute_batch("PRAGMA sort_memory = 1000000000").unwrap();
            }
        }
    }
}

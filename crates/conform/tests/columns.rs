//! Three ways to one answer: generated queries on stock SQLite, on iolite in rows, and on iolite in columns, over one
//! file that both engines change in between. Values, their order and errors must be the same; and the queries must
//! really have run in columns, which a counter says.

use iolite_stock as stock;

mod columns_queries;
use columns_queries::*;

fn three_ways(name: &str, setup: &str, seed: u64, rows: u64, queries: u32) {
    let indexes = name == "indexes";
    let file = File::new(name);
    let mut r = Rng(seed);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(setup).unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, rows)).unwrap();
    if indexes {
        s.execute_batch(INDEXES).unwrap();
    }
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    let (mut run, mut ran) = (0, 0);
    for i in 0..queries {
        let q = query(&mut r);
        run += 1;
        ran += compare(&q, &s, &c, seed, indexes) as u32;
        if i % 3 == 0 {
            let sql = change(&mut r);
            // Both engines write, now and then several statements in one transaction.
            if r.chance(50) {
                s.execute_batch(&sql).unwrap();
            } else if r.chance(70) {
                c.execute_batch(&sql).unwrap();
            } else {
                let more = change(&mut r);
                c.execute_batch("BEGIN").unwrap();
                c.execute_batch(&sql).unwrap();
                // What is not committed yet is seen by the one who wrote it alone.
                let q = "SELECT g, count(*), sum(k), min(t) FROM fact GROUP BY g";
                c.execute_batch("PRAGMA analytics=force").unwrap();
                let columns = by_iolite(&c, q);
                c.execute_batch("PRAGMA analytics=off").unwrap();
                assert_eq!(columns, by_iolite(&c, q), "uncommitted, seed {seed}: {sql}");
                c.execute_batch(&more).unwrap();
                c.execute_batch(if r.chance(50) { "COMMIT" } else { "ROLLBACK" }).unwrap();
            }
        }
        if i % 40 == 39 {
            s.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
        }
    }
    assert!(ran * 2 > run || indexes && ran * 4 > run, "only {ran} of {run} queries ran in columns");
}

#[test]
fn all_ways_agree_in_wal_mode() {
    three_ways("wal", "PRAGMA journal_mode=WAL", 1, 3000, queries());
}

#[test]
fn all_ways_agree_with_a_rollback_journal() {
    three_ways("delete", "PRAGMA journal_mode=DELETE", 2, 3000, queries());
}

#[test]
fn columns_follow_rows_where_there_are_indexes() {
    three_ways("indexes", "PRAGMA journal_mode=WAL", 5, 3000, queries());
}

#[test]
fn all_ways_agree_on_small_pages() {
    three_ways("small", "PRAGMA page_size=512; PRAGMA journal_mode=WAL", 3, 1500, queries());
}

#[test]
fn all_ways_agree_on_a_file_that_shrinks_and_moves() {
    three_ways("vacuum", "PRAGMA auto_vacuum=FULL; PRAGMA journal_mode=WAL", 4, 2000, queries());
}

/// Shapes of analytical queries: what they must be is that they run in columns, in the order of the loops.
#[test]
fn nested_queries_and_any_order_of_loops_run_in_columns() {
    let file = File::new("shapes");
    let mut r = Rng(11);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, 2500)).unwrap();
    s.execute_batch(
        "CREATE INDEX fact_d2 ON fact(d2, k); CREATE INDEX dim_grp ON dim(grp, grp, up); ANALYZE",
    )
    .unwrap();
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    let queries = [
        "SELECT d.name, sum(f.r) FROM dim d, fact f WHERE d.grp = 3 AND f.d2 = d.id GROUP BY d.name",
        "SELECT d.grp, total(f.r * (1 - d.x)), avg(f.r) FROM fact f, dim d, dim e
         WHERE f.d2 = d.id AND d.up = e.id AND e.grp IN (1, 2) GROUP BY d.grp ORDER BY 2 DESC",
        "SELECT d.id, d.name, d.grp, sum(f.r) FROM dim d, fact f WHERE d.id = f.d2 GROUP BY d.id, d.name, d.grp
         ORDER BY 4 DESC LIMIT 7",
        "SELECT d.id, count(f.id) FROM dim d LEFT JOIN fact f ON f.d2 = d.id AND f.t LIKE '%a%1%' GROUP BY d.id",
        "SELECT f.id, f.k, d.name FROM dim d, fact f WHERE d.grp = 2 AND f.d2 = d.id AND f.k > 20",
        "SELECT g, sum(r) FROM fact WHERE EXISTS (SELECT 1 FROM dim2 z WHERE z.num = fact.k) GROUP BY g",
        "SELECT g, count(*) FROM fact WHERE NOT EXISTS
           (SELECT 1 FROM fact z WHERE z.k = fact.k AND z.g <> fact.g AND z.r > 100) GROUP BY g",
        "SELECT count(*), sum(k) FROM fact WHERE k NOT IN (SELECT num FROM dim2 WHERE num IS NOT NULL)",
        "SELECT sum(r) FROM fact WHERE r < (SELECT 0.7 * avg(z.r) FROM fact z WHERE z.d2 = fact.d2)",
        "SELECT g, sum(k) FROM fact GROUP BY g HAVING sum(k) > (SELECT avg(k) * 50 FROM fact)",
        "SELECT sum(f.r) FROM fact f, dim d WHERE f.d2 = d.id
           AND (d.grp = 1 AND f.k < 30 AND f.g IN (1, 2) OR d.grp = 4 AND f.k > 50 AND d.up < 20)",
        "SELECT g, sum(CASE WHEN t LIKE 'a%' THEN r * 2 ELSE 0 END) FROM fact GROUP BY g",
        "SELECT count(*) FROM fact f, dim2 z WHERE f.k = z.num AND f.t = z.code",
    ];
    for q in queries {
        assert!(compare(q, &s, &c, 11, true), "in rows: {q}");
        assert!(compare(q, &s, &c, 11, true), "in rows: {q}");
    }
}

/// A file with a table of some segments, opened by both engines.
fn large(name: &str, mode: &str) -> (File, stock::Connection, iolite::engine::Connection) {
    iolite::engine::set_column_segment_leaves(512);
    let file = File::new(name);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(&format!("PRAGMA page_size=1024; PRAGMA journal_mode={mode}")).unwrap();
    s.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER);
         CREATE TABLE d(id INTEGER PRIMARY KEY, name TEXT, year INTEGER);
         INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40000)
           SELECT i, i % 100, printf('%.*c', 20, 'p'), i % 7 FROM c;
         INSERT INTO d WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 99)
           SELECT i, 'n' || i % 10, 1990 + i % 10 FROM c;",
    )
    .unwrap();
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    (file, s, c)
}

const TOTAL: &str = "SELECT count(*), sum(a), sum(b), min(id), max(pad) FROM t";

fn same(s: &stock::Connection, c: &iolite::engine::Connection, q: &str) {
    let before = c.column_runs();
    assert_eq!(by_iolite(c, q), by_stock(s, q), "{q}");
    assert!(c.column_runs() > before, "not in columns: {q}");
}

#[test]
fn what_did_not_change_is_not_read_again() {
    for mode in ["WAL", "DELETE"] {
        let (_file, s, c) = large(&format!("again-{mode}"), mode);
        same(&s, &c, TOTAL);
        let first = c.column_counters(0);
        assert!(first.decoded > 2, "{first:?}");
        same(&s, &c, TOTAL);
        assert_eq!(c.column_counters(0), first, "{mode}");
        // A column more: its segments are decoded, the others stay.
        same(&s, &c, "SELECT b, count(*) FROM t GROUP BY b");
        assert_eq!(c.column_counters(0), first);
        s.execute_batch("UPDATE t SET a = 50 WHERE id IN (77, 30000)").unwrap();
        same(&s, &c, TOTAL);
        let now = c.column_counters(0);
        assert_eq!(
            now.decoded, first.decoded,
            "{mode}: two leaves changed, no segment is decoded as a whole"
        );
        assert_eq!(now.patched, 2, "{mode}");
        // A log knows what changed; without one the leaves are hashed.
        assert_eq!(now.hashed > 0, mode == "DELETE");
        s.execute_batch(
            "DELETE FROM t WHERE id BETWEEN 100 AND 130; INSERT INTO t VALUES(1000000, 1, 'x', 2)",
        )
        .unwrap();
        same(&s, &c, TOTAL);
        assert!(c.column_counters(0).decoded < first.decoded + 4);
    }
}

#[test]
fn values_in_overflow_pages_change_behind_their_leaves() {
    let (_file, s, c) = large("overflow", "WAL");
    s.execute_batch("UPDATE t SET pad = printf('%.*c', 5000, 'o') WHERE id % 1000 = 0").unwrap();
    same(&s, &c, TOTAL);
    for i in 1..6 {
        // Only the overflow page is written: the column lies behind the long text.
        s.execute_batch(&format!("UPDATE t SET b = {i} WHERE id = 5000")).unwrap();
        same(&s, &c, TOTAL);
        same(&s, &c, "SELECT b, count(*) FROM t GROUP BY b");
    }
}

#[test]
fn tables_come_and_go_under_the_same_root() {
    for mode in ["WAL", "DELETE"] {
        let (_file, s, c) = large(&format!("roots-{mode}"), mode);
        same(&s, &c, TOTAL);
        for sql in [
            "DELETE FROM t",
            "INSERT INTO t SELECT id, id, name, year FROM d",
            "ALTER TABLE t ADD COLUMN e INTEGER DEFAULT 5",
            "DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER, e)",
            "INSERT INTO t SELECT id * 3, year, name, id, 'e' FROM d",
            "VACUUM",
            "INSERT INTO t SELECT NULL, x.year, y.name, x.id, 1.5 FROM d x, d y",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "UPDATE t SET a = a + 1",
        ] {
            s.execute_batch(sql).unwrap();
            same(&s, &c, TOTAL);
            if c.query("SELECT 1 FROM pragma_table_info('t') WHERE name = 'e'", &[])
                .is_ok_and(|r| !r.is_empty())
            {
                same(&s, &c, "SELECT e, count(*) FROM t GROUP BY e");
            }
        }
    }
}

#[test]
fn each_reader_sees_its_own_snapshot() {
    let (file, s, c) = large("snapshots", "WAL");
    let old = iolite::engine::Connection::open(&file.name()).unwrap();
    old.execute_batch("PRAGMA analytics=force; BEGIN").unwrap();
    let before = by_iolite(&old, TOTAL);
    assert_eq!(before, by_stock(&s, TOTAL));
    for i in 0..5 {
        s.execute_batch(&format!(
            "UPDATE t SET a = {i} WHERE id % 997 = {i}; INSERT INTO t VALUES(NULL, 1, 'y', 2)"
        ))
        .unwrap();
        same(&s, &c, TOTAL);
        // Newer segments are there for the file; the older snapshot takes none of them.
        assert_eq!(by_iolite(&old, TOTAL), before);
        same(&s, &c, TOTAL);
    }
    old.execute_batch("COMMIT").unwrap();
    same(&s, &old, TOTAL);
    // What a transaction changed and did not commit is seen by itself only.
    c.execute_batch("BEGIN; UPDATE t SET b = 100 WHERE id < 9000").unwrap();
    let own = by_iolite(&c, TOTAL);
    assert_ne!(own, by_stock(&s, TOTAL));
    same(&s, &old, TOTAL);
    c.execute_batch("SAVEPOINT x; DELETE FROM t WHERE id > 100").unwrap();
    assert_ne!(by_iolite(&c, TOTAL), own);
    c.execute_batch("ROLLBACK TO x").unwrap();
    assert_eq!(by_iolite(&c, TOTAL), own);
    c.execute_batch("ROLLBACK").unwrap();
    same(&s, &c, TOTAL);
}

#[test]
fn derived_columns_follow_both_tables() {
    let (_file, s, c) = large("derived", "WAL");
    let q = "SELECT year, count(*), sum(b) FROM t, d WHERE t.a = d.id AND name <> 'n3' GROUP BY year";
    for _ in 0..3 {
        same(&s, &c, q);
    }
    let derived = c.column_counters(0).derived;
    assert!(derived > 0);
    same(&s, &c, q);
    assert_eq!(c.column_counters(0).derived, derived, "what is derived stays");
    s.execute_batch("UPDATE t SET b = 3 WHERE id % 5000 = 1").unwrap();
    same(&s, &c, q);
    assert_eq!(c.column_counters(0).derived, derived, "the outer key did not change");
    for sql in [
        "UPDATE d SET name = 'n3' WHERE id = 5",
        "UPDATE t SET a = 5 WHERE id = 30000",
        "UPDATE t SET a = 5000 WHERE id = 29000",
        "DELETE FROM d WHERE id = 7",
        "UPDATE d SET year = NULL WHERE id = 8",
        "INSERT INTO d VALUES(5000, 'new', 2020)",
        "UPDATE d SET name = NULL WHERE id = 9",
    ] {
        s.execute_batch(sql).unwrap();
        for _ in 0..3 {
            same(&s, &c, q);
        }
    }
}

/// Once the columns of `d` lie beside `t`, `e` is still reached by its key, not by the seven values of its column.
#[test]
fn tables_behind_derived_columns_are_reached_by_their_best_key() {
    let c = iolite::engine::Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a INTEGER, b INTEGER); CREATE TABLE d(id INTEGER PRIMARY KEY, e INTEGER);
         CREATE TABLE e(k INTEGER PRIMARY KEY, b INTEGER, pad); CREATE INDEX e_b ON e(b);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 119999)
         INSERT INTO t SELECT i % 1000, i % 7 FROM n;
         INSERT INTO d SELECT rowid - 1, rowid % 3000 FROM t LIMIT 1000;
         INSERT INTO e SELECT rowid - 1, rowid % 7, zeroblob(150) FROM t LIMIT 3000; ANALYZE",
    )
    .unwrap();
    let q = "SELECT count(*) FROM t CROSS JOIN d CROSS JOIN e INDEXED BY e_b WHERE t.b = e.b AND t.a = d.id AND d.e = e.k";
    let mut runs = [0; 12];
    for n in &mut runs {
        assert_eq!(c.query(q, &[]).unwrap()[0][0].to_int(), 17_000);
        *n = c.column_runs();
    }
    assert!(c.column_counters(0).derived > 0);
    assert!(runs[11] >= runs[8] + 3, "given up: {runs:?}");
}

#[test]
fn a_database_in_memory_has_columns_too() {
    let c = iolite::engine::Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a INTEGER, b INTEGER);
         INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 50000)
           SELECT i % 10, i FROM c;",
    )
    .unwrap();
    // Without being forced: the table is large enough.
    let q = "SELECT a, sum(b) FROM t GROUP BY a";
    let sums = by_iolite(&c, q);
    assert_eq!(c.column_runs(), 1);
    let decoded = c.column_counters(0).decoded;
    c.execute_batch("UPDATE t SET b = b + 1 WHERE rowid = 40000").unwrap();
    assert_ne!(by_iolite(&c, q), sums);
    assert_eq!(c.column_counters(0).decoded, decoded);
    // Small tables, and rows found by key, stay with programs.
    c.execute_batch("CREATE TABLE s AS SELECT * FROM t LIMIT 100").unwrap();
    by_iolite(&c, "SELECT a, sum(b) FROM s GROUP BY a");
    by_iolite(&c, "SELECT b FROM t WHERE rowid = 7");
    assert_eq!(c.column_runs(), 2);
    c.execute_batch("PRAGMA analytics=off").unwrap();
    by_iolite(&c, q);
    assert_eq!(c.column_runs(), 2);
}

#[test]
fn a_run_in_columns_can_be_interrupted() {
    let (_file, _s, c) = large("interrupt", "WAL");
    c.progress_handler(Some(std::rc::Rc::new(|| true)));
    assert_eq!(c.query(TOTAL, &[]).unwrap_err().code(), iolite::Code::Interrupt);
    c.progress_handler(None);
    assert!(c.query(TOTAL, &[]).is_ok());
}

#[test]
fn explain_says_what_runs_in_columns_and_why_not() {
    let (_file, _s, c) = large("explain", "WAL");
    let plan = |q: &str| {
        let rows = c.query(&format!("EXPLAIN QUERY PLAN {q}"), &[]).unwrap();
        rows.iter().map(|r| r[3].to_string_lossy()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        plan("SELECT year, sum(b) FROM t, d WHERE t.a = d.id GROUP BY year"),
        "SCAN t IN COLUMNS; JOIN d IN COLUMNS"
    );
    let q = "SELECT a, (SELECT count(*) FROM d WHERE d.id = t.b) FROM t";
    assert!(plan(q).starts_with("IN ROWS: a nested query that depends on the row"), "{}", plan(q));
    let q = "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.id = t.b)";
    assert_eq!(plan(q), "SCAN t IN COLUMNS; NESTED d IN COLUMNS");
    let q = "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM t)";
    assert_eq!(plan(q), "SCAN (subquery-1) IN COLUMNS; NESTED t IN COLUMNS");
    assert_eq!(plan("SELECT id, rank() OVER (ORDER BY b) FROM t"), "SCAN t IN COLUMNS; WINDOWS IN COLUMNS");
    c.execute_batch("PRAGMA analytics=auto").unwrap();
    assert_eq!(plan("SELECT * FROM t WHERE id = 5"), "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)");
}

#[test]
fn groups_by_a_row_number_and_what_follows_from_it_run_in_columns() {
    let file = File::new("row-groups");
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(
        "CREATE TABLE city(id INTEGER PRIMARY KEY, label TEXT);
         CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city INTEGER);
         CREATE TABLE buy(id INTEGER PRIMARY KEY, person INTEGER, price INTEGER);
         CREATE INDEX by_person ON buy(person);
         WITH r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 30000)
           INSERT INTO buy SELECT i, i * 7919 % 900, i % 50 FROM r;
         INSERT INTO person SELECT id, 'p' || id % 90, id % 31 FROM buy WHERE id < 900;
         INSERT INTO city SELECT id, 'c' || id % 7 FROM buy WHERE id < 29;
         ANALYZE;",
    )
    .unwrap();
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    for join in ["JOIN", "LEFT JOIN"] {
        let q = format!(
            "SELECT p.id, name, label, sum(price), count(*) FROM person p {join} city ON city.id = p.city
             CROSS JOIN buy ON buy.person = p.id WHERE price > 20 GROUP BY p.id, name, label"
        );
        c.execute_batch("PRAGMA analytics=off").unwrap();
        let rows = by_iolite(&c, &q);
        assert_eq!(rows, by_stock(&s, &q));
        c.execute_batch("PRAGMA analytics=force").unwrap();
        let before = c.column_runs();
        assert_eq!(by_iolite(&c, &q), rows);
        assert!(c.column_runs() > before, "{q}");
    }
}

#[test]
fn threads_change_no_answer() {
    let (_file, s, c) = large("threads", "WAL");
    s.execute_batch(
        "UPDATE t SET b = NULL WHERE id % 11 = 0; UPDATE t SET a = 1000000000 + id * 1000 WHERE id < 20",
    )
    .unwrap();
    for q in [
        TOTAL,
        "SELECT b, count(*), sum(a), min(a), max(id), avg(a), count(b) FROM t WHERE a < 60 GROUP BY b",
        "SELECT year, b, sum(a * 2 - t.id), total(b) FROM t, d WHERE t.a = d.id AND d.year > 1992 GROUP BY year, b",
        "SELECT a, b, count(*), sum(t.id), max(t.id) FROM t GROUP BY a, b",
        "SELECT id % 1003, sum(b) FROM t GROUP BY 1 HAVING sum(b) > 5 LIMIT 50",
        "SELECT pad, sum(b) FROM t WHERE a + b > id % 90 GROUP BY pad",
        "SELECT b, count(*) FROM t WHERE a < b OR a > 70 AND id < a * 100 OR b IS NULL GROUP BY b",
        "SELECT b, sum(a) FROM t, d WHERE t.a = d.id AND (d.year = 1993 AND t.b < 4 OR d.year = 1995 AND t.b > 2)
         GROUP BY b",
        "SELECT t.id, b, year, count(*) FROM t, d WHERE t.a = d.id GROUP BY t.id, b, year LIMIT 100",
        "SELECT b, count(*) FROM t WHERE a NOT IN (SELECT id FROM d WHERE year = 1994) GROUP BY b",
    ] {
        let mut answers = Vec::new();
        for n in [0, 1, 2, 5] {
            c.execute_batch(&format!("PRAGMA threads={n}")).unwrap();
            let before = c.column_runs();
            answers.push(by_iolite(&c, q));
            assert!(c.column_runs() > before, "{q}");
        }
        c.execute_batch("PRAGMA analytics=off").unwrap();
        answers.push(by_iolite(&c, q));
        c.execute_batch("PRAGMA analytics=force").unwrap();
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "{q}");
    }
    let plan = c.query("EXPLAIN ANALYZE SELECT b, sum(a) FROM t GROUP BY b", &[]).unwrap();
    assert!(plan.iter().any(|r| r[3].to_string_lossy().starts_with("SCAN WITH 3 THREADS")), "{plan:?}");
    c.progress_handler(Some(std::rc::Rc::new(|| true)));
    assert_eq!(
        c.query("SELECT b, sum(a) FROM t GROUP BY b", &[]).unwrap_err().code(),
        iolite::Code::Interrupt
    );
}

/// Blocks of which all rows are counted, by codes of every width, with NULLs in some segments, in all of one, in none.
#[test]
fn groups_are_counted_by_codes_of_every_width() {
    let (_file, s, c) = large("counted", "WAL");
    s.execute_batch(
        "CREATE TABLE w(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f TEXT, r REAL, p REAL,
           n INTEGER, m INTEGER, v, pad TEXT);
         INSERT INTO w WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50001)
           SELECT i, i * 104729 % 10, i * 7907 % 200, i * 7919 % 3000, i / 300 * 1000 + i % 3, i * 2654435761 % 4000000000,
             'f' || i % 7, (i * 31 % 1000) / 8.0, CASE WHEN i % 5 = 0 THEN NULL WHEN i % 5 = 1 THEN -0.0 ELSE i % 3 END,
             CASE WHEN i BETWEEN 20000 AND 40000 THEN NULL WHEN i < 5000 AND i % 9 = 0 THEN NULL ELSE i % 14 - 3 END,
             CASE WHEN i < 30000 THEN 100 + i % 20 WHEN i % 2 THEN NULL ELSE i % 5 END,
             CASE i % 4 WHEN 0 THEN i % 3 WHEN 1 THEN i % 3 + 0.5 WHEN 2 THEN 'v' || i % 3 END, printf('%.*c', 9, 'p') FROM n;",
    )
    .unwrap();
    for column in ["a", "b", "c", "d", "e", "f", "r", "p", "n", "m", "v", "id / 999"] {
        for rest in [
            format!("count(*) FROM w GROUP BY {column}"),
            format!("count(*) FROM w WHERE id > 15000 GROUP BY {column} ORDER BY 1 DESC"),
            format!("count(*), sum(a), sum(r), max(n), count(m) FROM w GROUP BY {column}"),
            format!("a, count(*), avg(b), sum(a), total(p) FROM w GROUP BY {column}, a"),
            format!("count(*) FROM w WHERE c < 2990 GROUP BY {column}"),
        ] {
            for threads in [1, 3] {
                c.execute_batch(&format!("PRAGMA threads={threads}")).unwrap();
                same(&s, &c, &format!("SELECT {column}, {rest}"));
            }
        }
    }
    same(&s, &c, "SELECT sum(a), sum(b), sum(c), sum(d), sum(e), sum(r), count(*) FROM w");
}

#[test]
fn explain_analyze_runs_the_query_and_says_what_happened() {
    let (_file, s, c) = large("analyze", "WAL");
    let lines = |q: &str| -> Vec<(i64, i64, String)> {
        let rows = c.query(&format!("EXPLAIN ANALYZE {q}"), &[]).unwrap();
        rows.iter().map(|r| (r[0].to_int(), r[1].to_int(), r[3].to_string_lossy())).collect()
    };
    let q = "SELECT year, sum(b) FROM t, d WHERE t.a = d.id AND t.b < 3 AND year > 1991 GROUP BY year";
    let said = lines(q);
    let all: Vec<&str> = said.iter().map(|l| &*l.2).collect();
    assert_eq!(all[0], "SCAN t IN COLUMNS");
    let has = |what: &str| all.iter().any(|l| l.contains(what));
    for what in [
        "COLUMNS OF t: 40000 rows",
        "segments decoded",
        "BUILD d: 100 rows, 80 kept",
        "FILTER b BY RANGE: 40000 rows tested, 17144 passed",
        "SCAN OF t: 40000 rows",
        "13715 rows selected",
        "GROUPS: 8",
        "RESULT: 8 rows",
        "RUN: 8 rows",
    ] {
        assert!(has(what), "{what}: {all:#?}");
    }
    // Both ends of a range are one condition.
    let between = lines("SELECT count(*) FROM t WHERE b BETWEEN 2 AND 4 AND b < 4");
    let filters: Vec<&str> = between.iter().map(|l| &*l.2).filter(|l| l.contains("FILTER")).collect();
    assert!(matches!(filters[..], [f] if f.contains("b BY RANGE: 40000 rows tested")), "{filters:?}");
    // What is learned hangs below the arm's line; again, nothing is decoded.
    assert!(said.iter().filter(|l| l.2.contains(" OF ")).all(|l| l.1 == said[0].0), "{said:?}");
    assert!(!lines(q).iter().any(|l| l.2.contains("decoded")));
    s.execute_batch("UPDATE t SET b = 6 WHERE id = 9").unwrap();
    assert!(lines(q).iter().any(|l| l.2.contains("1 segments patched")));
    // Rows, too, are run, and so is what writes.
    c.execute_batch("PRAGMA analytics=off").unwrap();
    assert!(lines("SELECT a FROM t WHERE id < 10").iter().any(|l| l.2.starts_with("RUN: 9 rows")));
    lines("DELETE FROM t WHERE id = 1");
    assert_eq!(c.changes(), 1);
}

#[test]
fn damaged_pages_end_in_the_answer_of_rows() {
    let (file, s, c) = large("damage", "DELETE");
    s.execute_batch("UPDATE t SET pad = printf('%.*c', 3000, 'o') WHERE id % 1500 = 0").unwrap();
    drop((s, c));
    let image = std::fs::read(&file.0).unwrap();
    let mut r = Rng(77);
    for round in 0..150 {
        let mut bytes = image.clone();
        for _ in 0..1 + r.below(30) {
            // Never the first page: it names the size of pages and the schema.
            let at = 1024 + r.below(bytes.len() as u64 - 1024) as usize;
            bytes[at] = if r.chance(30) { 0xff } else { r.below(256) as u8 };
        }
        let copy = File::new(&format!("damage-{round}"));
        std::fs::write(&copy.0, &bytes).unwrap();
        let c = iolite::engine::Connection::open(&copy.name()).unwrap();
        for q in [
            TOTAL,
            "SELECT b, count(*), min(a) FROM t WHERE a < 40 GROUP BY b",
            "SELECT year, sum(b) FROM t, d WHERE t.a = d.id GROUP BY year",
        ] {
            c.execute_batch("PRAGMA analytics=off").unwrap();
            let rows = by_iolite(&c, q);
            c.execute_batch("PRAGMA analytics=force").unwrap();
            let columns = by_iolite(&c, q);
            // Rows may stop at damage that columns do not look at: they read what they need.
            if !rows.starts_with("error") {
                assert_eq!(columns, rows, "round {round}: {q}");
            }
        }
    }
}

/// Within a write transaction, columns of tables that it did not change are those of before; of others, what it wrote.
#[test]
fn a_write_transaction_reads_columns_of_what_it_did_not_change() {
    for mode in ["WAL", "DELETE"] {
        let (_file, s, c) = large(&format!("writing-{mode}"), mode);
        let groups = "SELECT a % 7, count(*), sum(b), max(pad) FROM t GROUP BY a % 7";
        c.execute_batch("CREATE TABLE sums(k, n, s, m); CREATE TABLE other(x); PRAGMA analytics=force")
            .unwrap();
        same(&s, &c, groups);
        let decoded = |c: &iolite::engine::Connection| c.column_counters(0).decoded;
        // What another connection changed is patched, also if the first to ask is a write transaction.
        if mode == "WAL" {
            s.execute_batch("UPDATE t SET a = a + 1 WHERE id = 77").unwrap();
        }
        let (before, runs) = (decoded(&c), c.column_runs());
        c.execute_batch(&format!("INSERT INTO sums {groups}")).unwrap();
        c.execute_batch(&format!("CREATE TABLE made AS {groups}")).unwrap();
        c.execute_batch("BEGIN; INSERT INTO other VALUES(1), (2)").unwrap();
        let inside = by_iolite(&c, groups);
        if mode == "WAL" {
            assert_eq!(decoded(&c), before, "{mode}");
        }
        assert_eq!(inside, by_stock(&s, groups), "{mode}");
        assert_eq!(by_iolite(&c, "SELECT * FROM made"), inside, "{mode}");
        assert_eq!(by_iolite(&c, "SELECT * FROM sums"), inside, "{mode}");
        assert!(c.column_runs() >= runs + 3, "{mode}");
        // Its own changes: of a row, of many, of the whole table; and back to a savepoint.
        for sql in [
            "UPDATE t SET b = b + 5, a = a + 3 WHERE id = 4000",
            "SAVEPOINT here; DELETE FROM t WHERE id % 3 = 0",
            "ROLLBACK TO here; INSERT INTO t(a, b, pad) SELECT a, b, pad FROM t WHERE id < 900",
            "DELETE FROM t",
        ] {
            c.execute_batch(sql).unwrap();
            let columns = by_iolite(&c, groups);
            c.execute_batch("PRAGMA analytics=off").unwrap();
            assert_eq!(by_iolite(&c, groups), columns, "{mode}: {sql}");
            c.execute_batch("PRAGMA analytics=force").unwrap();
        }
        c.execute_batch("ROLLBACK").unwrap();
        same(&s, &c, groups);
        c.execute_batch("BEGIN; UPDATE t SET a = a + 1 WHERE id = 5; COMMIT").unwrap();
        same(&s, &c, groups);
    }
}

#[test]
fn columns_beside_groups_are_those_of_the_rows_that_stand_for_them() {
    let file = File::new("bare");
    let mut r = Rng(12);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, 3000)).unwrap();
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    let queries = [
        "SELECT g, k, t FROM fact GROUP BY g",
        "SELECT g, max(k), id, r FROM fact GROUP BY g",
        "SELECT min(r), id, t, v FROM fact WHERE k > 50",
        "SELECT max(t), id, k FROM fact",
        "SELECT k, min(g), max(d2), id FROM fact GROUP BY k ORDER BY id DESC LIMIT 30",
        "SELECT g, max(d.x), d.name, f.id FROM fact f LEFT JOIN dim d ON f.d2 = d.id GROUP BY g",
        "SELECT d.grp, min(f.r), f.id, d.name, d.id + f.k FROM fact f, dim d WHERE f.d2 = d.id GROUP BY d.grp",
        "SELECT t, count(*), max(k), id FROM fact GROUP BY t HAVING id % 2 = 0",
        "SELECT max(k), t FROM fact WHERE k > 1000",
        "SELECT count(*), t, id FROM fact",
        "SELECT g, sum(k), group_concat(c), id FROM fact WHERE r > 20 GROUP BY g",
        "SELECT a, max(b), rowid FROM empty",
        "SELECT d2, max(n), id, v FROM fact GROUP BY d2",
    ];
    for q in queries {
        for _ in 0..2 {
            assert!(compare(q, &s, &c, 12, true), "in rows: {q}");
        }
    }
}

/// An arm over small tables is not compiled for columns; a statement that was prepared then comes to them once they grow.
#[test]
fn statements_over_small_tables_come_to_columns_when_these_grow() {
    let c = iolite::engine::Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
         CREATE TABLE k(v INTEGER);
         CREATE TABLE made(b INTEGER, n INTEGER);
         INSERT INTO k VALUES (3), (5), (8);
         INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, i % 10, i % 4 FROM n;
         ANALYZE;",
    )
    .unwrap();
    let q = "SELECT b, sum(a) FROM t WHERE a IN (SELECT v FROM k) GROUP BY b";
    let compiled = |q: &str| {
        let program = c.query(&format!("EXPLAIN {q}"), &[]).unwrap();
        program.iter().any(|r| r[1].to_string_lossy() == "SourceNext")
    };
    let in_columns = || compiled(q);
    let rows = |p: &mut iolite::engine::Statement| {
        let mut out = Vec::new();
        while p.step().unwrap() == iolite::engine::Step::Row {
            out.push(p.row().iter().map(iolite::engine::Value::to_int).collect::<Vec<i64>>());
        }
        p.reset().unwrap();
        out
    };
    let mut read = c.prepare(q).unwrap();
    let mut write = c.prepare(&format!("INSERT INTO made {q}")).unwrap();
    let small = rows(&mut read);
    rows(&mut write);
    assert_eq!((c.column_runs(), in_columns()), (0, false));
    c.execute_batch(
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 501 UNION ALL SELECT i + 1 FROM n WHERE i < 80000) SELECT i, i % 10, i % 4 FROM n;",
    )
    .unwrap();
    let large = rows(&mut read);
    assert_eq!((c.column_runs(), in_columns()), (1, true));
    rows(&mut write);
    assert_eq!(c.column_runs(), 2);
    let made = rows(&mut c.prepare("SELECT b, n FROM made ORDER BY rowid").unwrap());
    assert_eq!(made, [small.clone(), large.clone()].concat());
    assert_eq!(rows(&mut read), large);
    c.execute_batch("PRAGMA analytics=off").unwrap();
    assert_eq!(rows(&mut read), large);
    assert_eq!(c.column_runs(), 3);
    // Without statistics a table is small once it was seen to be.
    c.execute_batch(
        "PRAGMA analytics=auto; CREATE TABLE u(a, b); INSERT INTO u SELECT a, b FROM t LIMIT 100",
    )
    .unwrap();
    let q = "SELECT b, sum(a) FROM u GROUP BY b";
    assert!(compiled(q));
    let few = rows(&mut c.prepare(q).unwrap());
    assert!(!compiled(q));
    c.execute_batch("INSERT INTO u SELECT a, b FROM t").unwrap();
    assert_ne!(rows(&mut c.prepare(q).unwrap()), few);
    assert_eq!(c.column_runs(), 4);
}

#[test]
fn distinct_values_of_a_constant_are_one_or_none() {
    let (_file, s, c) = large("constants", "WAL");
    for q in [
        "SELECT count(DISTINCT NULL), count(DISTINCT 7), sum(DISTINCT 7), sum(DISTINCT NULL) FROM t",
        "SELECT count(DISTINCT CAST(NULL AS INTEGER)) FROM t",
        "SELECT -count(DISTINCT -CAST(NULL AS REAL)) + count(*) FROM t",
        "SELECT a, count(DISTINCT NULL), count(DISTINCT 'x'), max(DISTINCT 3) FROM t GROUP BY a",
    ] {
        assert_eq!(by_iolite(&c, q), by_stock(&s, q), "{q}");
    }
}

#[test]
fn a_column_beside_an_extreme_of_filtered_values_is_that_of_a_row() {
    let (_file, s, c) = large("filtered", "WAL");
    for q in [
        "SELECT a, max(b) FILTER (WHERE id < 0), pad FROM t GROUP BY a",
        "SELECT a, min(id) FILTER (WHERE b = 3), b FROM t GROUP BY a",
        "SELECT max(id) FILTER (WHERE id < 0), pad FROM t",
    ] {
        assert_eq!(by_iolite(&c, q), by_stock(&s, q), "{q}");
    }
}

#[test]
fn a_join_that_multiplies_rows_takes_little_room() {
    let c = iolite::engine::Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b, pad); CREATE TABLE d(a, c);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
         INSERT INTO t SELECT i % 2, i, zeroblob(200) FROM n;
         INSERT INTO d VALUES (0, 1), (0, 2), (1, 3)",
    )
    .unwrap();
    let ask = |q: &str| {
        let row = c.query(q, &[]).unwrap().swap_remove(0);
        row.iter().map(|v| v.to_int()).collect::<Vec<i64>>()
    };
    c.execute_batch("PRAGMA analytics = force").unwrap();
    let before = c.column_runs();
    let (x, y) = (3000 * 3000 * 2, 3000 * 3000 * 3);
    assert_eq!(ask("SELECT count(*) FROM t AS s JOIN t AS u ON s.a = u.a"), [x]);
    assert_eq!(
        ask("SELECT count(*), count(c) FROM t AS s LEFT JOIN t AS u ON s.a = u.a LEFT JOIN d ON d.a = u.b"),
        [x, 3000]
    );
    // Each piece goes through the joins behind it, and through what remains to be tested.
    assert_eq!(
        ask("SELECT count(*), sum(c) FROM t AS s JOIN t AS u ON s.a = u.a JOIN d ON d.a = u.a"),
        [y, 3000 * 3000 * 6]
    );
    assert_eq!(ask("SELECT count(*) FROM t AS s JOIN t AS u ON s.a = u.a WHERE s.b < u.b"), [3000 * 2999]);
    assert_eq!(c.column_runs(), before + 4);
    // Where rows are passed on, the loops give the first of them at once.
    c.execute_batch("PRAGMA analytics = auto").unwrap();
    let mut s = c.prepare("SELECT s.b, u.b FROM t AS s JOIN t AS u ON s.a = u.a").unwrap();
    for _ in 0..10 {
        s.step().unwrap();
    }
    drop(s);
    let stats = c.query("PRAGMA column_cache_stats", &[]).unwrap();
    assert!(
        stats.iter().any(|r| r[0].to_string_lossy().contains("a join that multiplies rows")),
        "{stats:?}"
    );
}

//! What a query in columns makes goes to temporary files where it has no room. The room is everybody's in a process, so
//! these tests have one of their own.

mod columns_queries;
use columns_queries::*;
use iolite_stock as stock;

fn room(c: &iolite::engine::Connection, kib: i64) {
    c.execute_batch(&format!("PRAGMA column_work_size={kib}")).unwrap();
}

/// Generated queries with next to no room, three ways.
fn with_little_room(seed: u64, indexes: bool) {
    let file = File::new(&format!("spill{seed}"));
    let mut r = Rng(seed);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch("PRAGMA journal_mode=WAL").unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, 3000)).unwrap();
    if indexes {
        s.execute_batch(INDEXES).unwrap();
    }
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    let (mut run, mut ran) = (0, 0);
    for i in 0..queries() {
        let q = query(&mut r);
        room(&c, [0, 1, 2, 4, 16, 64][r.below(6) as usize]);
        run += 1;
        ran += compare(&q, &s, &c, seed, indexes) as u32;
        if i % 7 == 0 {
            s.execute_batch(&change(&mut r)).unwrap();
        }
    }
    assert!(ran * 2 > run || indexes && ran * 4 > run, "only {ran} of {run} queries ran in columns");
}

const TABLES: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, d INTEGER);
CREATE TABLE u(id INTEGER PRIMARY KEY, k INTEGER, c TEXT, x INTEGER);
INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  SELECT i, i * 7919 % 1000, i / 8.0, 'text ' || (i * 31 % 5000), i * 1000003 % 7000000 * 11 FROM n;
INSERT INTO u SELECT id, d, CASE id % 9 WHEN 0 THEN NULL ELSE c END, id % 77 FROM t WHERE id % 3 < 2;
INSERT INTO u SELECT NULL, NULL, c, 5 FROM t WHERE id % 100 = 0;";

/// Groups, maps, sorted combinations, results, DISTINCT in both places; what one wants from the other among them.
const QUERIES: &[&str] = &[
    "SELECT a, d % 100, count(*), sum(b) FROM t GROUP BY a, d % 100",
    "SELECT c, count(*), sum(d), min(b) FROM t GROUP BY c HAVING count(*) > 3 ORDER BY 3 DESC, 1 LIMIT 7",
    "SELECT b, count(*), sum(a) FROM t GROUP BY b",
    "SELECT c || d, group_concat(id), avg(b) FROM t WHERE a < 700 GROUP BY c || d",
    "SELECT d, c, count(*) FROM t GROUP BY d, c ORDER BY c DESC, d",
    "SELECT DISTINCT sum(a), count(*) FROM t GROUP BY d % 4000",
    "SELECT a, count(DISTINCT c), sum(DISTINCT d % 50) FROM t GROUP BY a",
    "SELECT d, max(b), c, id FROM t GROUP BY d HAVING a > 100",
    "SELECT t.d, min(u.x), u.id, t.c FROM t, u WHERE u.k = t.d GROUP BY t.d ORDER BY t.c",
    "SELECT count(DISTINCT c || d), group_concat(DISTINCT c), sum(DISTINCT b) FROM t",
    "SELECT DISTINCT c || d FROM t WHERE a > 5",
    "SELECT DISTINCT c, a % 3 FROM t ORDER BY 2 DESC, 1 LIMIT 50 OFFSET 20",
    "SELECT c, d FROM t WHERE a <> 3 ORDER BY d % 1000, c",
    "SELECT c, b FROM t ORDER BY a DESC LIMIT 5000",
    "SELECT c, b, d FROM t WHERE d % 3 = 1",
    "SELECT t.a, count(*), sum(u.x) FROM t, u WHERE u.k = t.d AND t.a < 900 GROUP BY t.a",
    "SELECT t.id, u.id, t.c FROM t, u WHERE u.k = t.d AND t.a < 900 ORDER BY t.b DESC, u.id",
    "SELECT t.a, count(u.id), sum(u.x) FROM t LEFT JOIN u ON u.k = t.d GROUP BY t.a",
    "SELECT t.id, u.x FROM t LEFT JOIN u ON u.k = t.d AND u.x > 60 WHERE t.a < 500",
    "SELECT u.x, count(*), max(t.b) FROM u, t WHERE u.c = t.c AND t.a < 100 GROUP BY u.x",
    "SELECT u.id, t.id FROM u LEFT JOIN t ON t.c = u.c AND t.a < 20 WHERE u.x < 7",
    "SELECT count(*), sum(v.x) FROM u, u v, t WHERE v.k = u.k AND t.d = u.k AND v.c = t.c",
    "SELECT v.id, count(*) FROM t, u, u v WHERE t.d = u.k AND v.k = t.d AND u.x = v.x GROUP BY v.id",
    "SELECT sum(b) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.d AND u.x < 30)",
    "SELECT a, sum(b) FROM t WHERE b > (SELECT avg(u.x) FROM u WHERE u.k = t.d) GROUP BY a",
];

/// Windows go to rows where they have no room.
const WINDOWS: &[&str] = &[
    "SELECT id, sum(a) OVER (PARTITION BY c ORDER BY b), rank() OVER (ORDER BY a DESC) FROM t",
    "SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY a ORDER BY d) AS n FROM t) GROUP BY n",
    "SELECT c, max(c) OVER (ORDER BY id ROWS 5 PRECEDING), avg(b) OVER (PARTITION BY a) FROM t ORDER BY id DESC LIMIT 60",
    "SELECT a, s, lag(s) OVER (ORDER BY s, a) FROM (SELECT a, sum(b) AS s FROM t GROUP BY a)",
];

#[test]
fn answers_do_not_depend_on_room() {
    iolite::engine::set_column_segment_leaves(16);
    let file = File::new("room");
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    c.execute_batch(TABLES).unwrap();
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want: Vec<String> = QUERIES.iter().map(|q| by_iolite(&c, q)).collect();
    let windows: Vec<String> = WINDOWS.iter().map(|q| by_iolite(&c, q)).collect();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    let before = c.query("PRAGMA column_work_size", &[]).unwrap()[0][0].to_int();
    let mut ran = Vec::new();
    for kib in [before, 1000, 64, 8, 0] {
        room(&c, kib);
        for (q, want) in WINDOWS.iter().zip(&windows) {
            let runs = c.column_runs();
            assert_eq!(by_iolite(&c, q), *want, "{kib} KiB: {q}");
            assert!(c.column_runs() > runs || kib < before, "{kib} KiB: {q}");
        }
        for (i, (q, want)) in QUERIES.iter().zip(&want).enumerate() {
            let runs = c.column_runs();
            assert_eq!(by_iolite(&c, q), *want, "{kib} KiB: {q}");
            if kib == before {
                ran.push(c.column_runs() > runs);
            }
            // Of two large maps in next to no room the shares are too many.
            assert!(c.column_runs() > runs || !ran[i] || kib < 64 && q.contains(" u v"), "{kib} KiB: {q}");
        }
    }
    assert!(ran.iter().filter(|r| **r).count() + 3 > QUERIES.len(), "{ran:?}");
    // Where temporary files are to be in memory, there are none.
    room(&c, 8);
    c.execute_batch("PRAGMA temp_store=MEMORY").unwrap();
    let runs = c.column_runs();
    for (q, want) in QUERIES.iter().zip(&want).take(4) {
        assert_eq!(by_iolite(&c, q), *want, "{q}");
    }
    assert_eq!(c.column_runs(), runs);
    c.execute_batch("PRAGMA temp_store=DEFAULT").unwrap();
    equal_keys_at_the_limit(&c, before);
    generated(&c, before);
}

fn generated(c: &iolite::engine::Connection, before: i64) {
    with_little_room(21, false);
    with_little_room(22, true);
    full_disks();
    interrupted();
    room(c, before);
}

/// Keys that compare equal and are not the same, in groups for which there was no room, on both sides of where the answer ends.
fn equal_keys_at_the_limit(c: &iolite::engine::Connection, before: i64) {
    c.execute_batch(
        "CREATE TABLE equal(k TEXT COLLATE RTRIM, x);
         INSERT INTO equal WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
           SELECT format('%04d', i / 2) || substr(' ', 1, i % 2), i FROM n;",
    )
    .unwrap();
    for limit in 1..4 {
        let q = format!("SELECT k, count(DISTINCT x) FROM equal GROUP BY k LIMIT {limit}");
        c.execute_batch("PRAGMA analytics=off").unwrap();
        let want = c.query(&q, &[]).unwrap();
        c.execute_batch("PRAGMA analytics=force").unwrap();
        for kib in [0, before] {
            room(c, kib);
            assert_eq!(format!("{:?}", c.query(&q, &[]).unwrap()), format!("{want:?}"), "{kib} KiB: {q}");
        }
    }
}

fn full_disks() {
    use iolite_sim::disk::{Disk, Fault, Op};
    let disk = std::sync::Arc::new(Disk::new(3));
    let c =
        iolite::engine::Connection::open_on(disk.clone(), "full.db", iolite::engine::OpenFlags::default())
            .unwrap();
    c.execute_batch(TABLES).unwrap();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    room(&c, 8);
    for q in QUERIES.iter().filter(|q| !q.contains("EXISTS") && !q.contains("LIMIT 50 ")).take(10) {
        let want = by_iolite(&c, q);
        disk.set_fault(Some(Fault { op: Op::Write, nth: 1, persistent: true, code: iolite::Code::Full }));
        let e = c.query(q, &[]).map(|rows| rows.len()).unwrap_err();
        assert_eq!(e.code(), iolite::Code::Full, "{q}");
        disk.set_fault(None);
        assert_eq!(by_iolite(&c, q), want, "{q}");
    }
}

fn interrupted() {
    let file = File::new("stop");
    let c = iolite::engine::Connection::open(&file.name()).unwrap();
    c.execute_batch(TABLES).unwrap();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    for (kib, q) in QUERIES.iter().map(|q| (8, q)).chain(WINDOWS.iter().map(|q| (1 << 19, q))) {
        room(&c, kib);
        assert!(c.query(q, &[]).is_ok());
        // The first look, the tenth, the hundredth.
        for n in [0, 10, 100] {
            let left = std::rc::Rc::new(std::cell::Cell::new(n));
            let counted = left.clone();
            c.progress_handler(Some(std::rc::Rc::new(move || {
                counted.set(counted.get() - 1);
                counted.get() < 0
            })));
            if let Err(e) = c.query(q, &[]) {
                assert_eq!(e.code(), iolite::Code::Interrupt, "{q}");
            } else {
                assert!(left.get() >= 0, "{q}");
            }
            c.progress_handler(None);
        }
    }
}

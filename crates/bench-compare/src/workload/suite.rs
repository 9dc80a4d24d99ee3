//! W1 to W13: the small operations with default settings of the columns (`auto`), aggregation beside DuckDB on one thread,
//! four writing threads. Turso takes part in W1 to W6 and W9; what it cannot do is missing for it alone. W10 to W12 need search, which does not exist yet.

use super::{Seat, TUNED, TUNED_KEEPS, compare, in_turn, place, timed};
use crate::Options;
use crate::engine::{self, Turso, settings};
use crate::envelope::Run;
use crate::stats;
use iolite_bench::cases;
use iolite_bench::engine::{Database, Engine, Kind, Query, Result, find, int, text};
use iolite_bench::random::Random;

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    small(o, run)?;
    sums(o, run)?;
    joins(o, run)?;
    writers(o, run)?;
    run.missing.push("W10: cosine top-10 over vectors: there is no vector module".into());
    run.missing.push("W11: BM25 top-10: there is no fts5".into());
    run.missing.push("W12: hybrid search: there is neither".into());
    Ok(())
}

fn per(n: usize, f: impl FnOnce() -> Result<()>) -> Result<f64> {
    timed(f).map(|t| t.1 * 1e6 / n as f64)
}

type Measure = fn(&dyn Database, usize) -> Result<i64>;

fn loops(
    db: &dyn Database,
    sql: &str,
    n: usize,
    turn: usize,
    f: impl Fn(&mut Random, &mut dyn Query) -> Result<i64>,
) -> Result<i64> {
    let mut q = db.prepare(sql)?;
    let mut r = Random(17 + turn as u64);
    let mut sum = 0i64;
    for _ in 0..n {
        sum = sum.wrapping_add(f(&mut r, &mut *q)?);
    }
    Ok(sum)
}

fn ranges(db: &dyn Database, turn: usize, width: i64, n: usize) -> Result<i64> {
    loops(db, "SELECT id, payload FROM kv2 WHERE secondary BETWEEN ?1 AND ?2", n, turn, |r, q| {
        let k = r.range(0, 100_000 - width);
        q.run(&[int(k), int(k + width - 1)])
    })
}

const SMALL: &[(&str, usize, Measure)] = &[
    ("W1: read by key", 20_000, |db, t| {
        loops(db, "SELECT payload FROM kv2 WHERE id = ?1", 20_000, t, |r, q| {
            q.run(&[int(r.range(1, 100_000))])
        })
    }),
    ("W2: range of 100 rows", 500, |db, t| ranges(db, t, 100, 500)),
    ("W2: range of 1,000 rows", 50, |db, t| ranges(db, t, 1_000, 50)),
    ("W2: range of 10,000 rows", 5, |db, t| ranges(db, t, 10_000, 5)),
    ("W5: read and UPDATE in turn", 4_000, |db, t| {
        let mut w = db.prepare("UPDATE kv2 SET payload = ?2 WHERE id = ?1")?;
        let w = std::cell::RefCell::new(&mut w);
        loops(db, "SELECT payload FROM kv2 WHERE id = ?1", 2_000, t, |r, q| {
            let s = q.run(&[int(r.range(1, 100_000))])?;
            let k = r.range(1, 100_000);
            w.borrow_mut().run(&[int(k), text(format!("{:032}{k:032}", t + 1))])?;
            Ok(s)
        })
    }),
    ("W6: read by secondary", 20_000, |db, t| {
        loops(db, "SELECT payload FROM kv2 WHERE secondary = ?1", 20_000, t, |r, q| {
            q.run(&[int(r.range(0, 99_999))])
        })
    }),
];

const KV2: &str = "CREATE TABLE kv2(id INTEGER PRIMARY KEY, secondary INTEGER, payload TEXT); \
                   CREATE UNIQUE INDEX kv2s ON kv2(secondary);";

fn fill(db: &dyn Database, rows: i64) -> Result<u64> {
    let mut i = 0;
    db.load("kv2", 3, &mut |row| {
        row.extend([int(i + 1), int(i * 48_271 % 100_000), cases::payload(i)]);
        i += 1;
        i <= rows
    })
}

/// Those that answer as the first one does. A wrong answer is a failure; an error is one of stock and iolite alone, which come
/// first: what another cannot do is missing.
fn able(names: &[&str], title: &str, run: &mut Run, f: impl Fn(usize) -> Result<i64>) -> Result<Vec<usize>> {
    let mut out = Vec::new();
    let mut first = None;
    for (k, name) in names.iter().enumerate() {
        match f(k) {
            Ok(sum) if *first.get_or_insert(sum) == sum => out.push(k),
            Ok(sum) => run.failures.push(format!("{title}: {name} answers {sum}, {} {first:?}", names[0])),
            Err(e) if k >= 2 => run.missing.push(format!("{title}: {name}: {e}")),
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

/// Microseconds of an insert into a new file that has some rows already: in one transaction if it has none, else each alone.
fn inserts(e: &dyn Engine, title: &str, before: i64, rows: i64) -> Result<f64> {
    let s = Seat::open(e, e.name(), "insert", TUNED)?;
    s.db.batch(KV2)?;
    fill(&*s.db, before)?;
    let mut q = s.db.prepare("INSERT INTO kv2 VALUES(?1, ?2, ?3)")?;
    let us = per(rows as usize, || {
        if before == 0 {
            s.db.batch("BEGIN")?;
        }
        for i in before..before + rows {
            q.run(&[int(i + 1), int(i * 48_271 % 100_000), cases::payload(i)])?;
        }
        if before == 0 {
            s.db.batch("COMMIT")?;
        }
        Ok(())
    })?;
    drop(q);
    let n = s.db.rows("SELECT count(*) FROM kv2")?;
    s.remove();
    if n != [[int(before + rows)]] { Err(format!("{title}: {n:?} rows").into()) } else { Ok(us) }
}

fn small(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    let engines = engine::rows();
    let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
    let mut seats = Vec::new();
    for e in &engines {
        run.set("", e.name(), TUNED, TUNED_KEEPS);
        let s = Seat::open(&**e, e.name(), "suite", TUNED)?;
        s.db.batch(KV2)?;
        fill(&*s.db, 100_000)?;
        seats.push(s);
    }
    compare(&seats, "kv2", "SELECT count(*), sum(id), sum(secondary), max(payload) FROM kv2", false)?;
    for (title, n, f) in SMALL {
        let able = able(&names, title, run, |k| f(&*seats[k].db, 0))?;
        run.gates.push(format!("{title}: sums of answers equal in {} engines", able.len()));
        let t = in_turn(able.len(), turns, |k, t| per(*n, || f(&*seats[able[k]].db, t + 1).map(|_| ())))?;
        for (k, samples) in t.into_iter().enumerate() {
            run.less(title, "", names[able[k]], "us", samples);
        }
    }
    compare(&seats, "W5", "SELECT id, payload FROM kv2", false)?;
    seats.into_iter().for_each(Seat::remove);
    // Inserts begin with a new file each time.
    for (title, before, rows) in [
        ("W3: 100,000 inserts in one transaction", 0, 100_000),
        ("W4: 1,000 inserts into 1,000 rows, commit each", 1_000, 1_000),
    ] {
        let able = able(&names, title, run, |k| inserts(&*engines[k], title, before, rows).map(|_| 0))?;
        let t = in_turn(able.len(), turns, |k, _| inserts(&*engines[able[k]], title, before, rows))?;
        for (k, samples) in t.into_iter().enumerate() {
            run.less(title, "", names[able[k]], "us", samples);
        }
    }
    Ok(())
}

/// Aggregation and joins are compared on one thread.
const ONE_THREAD: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; \
                          PRAGMA cache_size=-65536; PRAGMA threads=1;";

/// W7 and W8 over integers and reals, with groups in no order.
fn sums(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 11, 5);
    let rows = o.number("rows", 1_000_000, 1_000_000);
    const QUERIES: &[(&str, &str)] = &[
        ("W7: SUM of integers", "SELECT sum(v) FROM w"),
        ("W7: SUM of reals", "SELECT sum(r) FROM w"),
        ("W8: GROUP BY, 10 groups", "SELECT a, count(*) FROM w GROUP BY a"),
        ("W8: GROUP BY, 1,000 groups", "SELECT b, count(*) FROM w GROUP BY b"),
        ("W8: GROUP BY, 100,000 groups", "SELECT c, count(*) FROM w GROUP BY c"),
        ("W8: GROUP BY reals, 1,000 groups", "SELECT r, count(*) FROM w GROUP BY r"),
        ("W8: SUM of reals by 1,000 groups", "SELECT b, sum(r) FROM w GROUP BY b"),
    ];
    let duck = "PRAGMA memory_limit='1GB'";
    let mut seats = Vec::new();
    for e in engine::sql(1) {
        let s = settings(e.name(), ONE_THREAD, duck);
        run.set(
            "W7, W8",
            e.name(),
            s,
            if e.name() == "duckdb" { "each commit; one thread" } else { TUNED_KEEPS },
        );
        seats.push(Seat::open(&*e, e.name(), "sums", s)?);
    }
    for s in &seats {
        s.db.batch(
            "CREATE TABLE w(id INTEGER PRIMARY KEY, v INTEGER, a INTEGER, b INTEGER, c INTEGER, r DOUBLE)",
        )?;
        let mut i = 0i64;
        let mut rng = Random(9);
        s.db.load("w", 6, &mut |row| {
            row.extend([
                int(i),
                int(rng.range(0, 999)),
                int(rng.range(0, 9)),
                int(rng.range(0, 999)),
                int(rng.range(0, 99_999)),
            ]);
            row.push(iolite_bench::engine::Value::Real(rng.range(0, 999) as f64 / 10.0));
            i += 1;
            i <= rows
        })?;
        s.db.batch(if s.name == "duckdb" { "CHECKPOINT" } else { "PRAGMA wal_checkpoint(TRUNCATE)" })?;
    }
    // The same file once more, read in rows.
    let path = seats[0].path.clone();
    let db = find("iolite")?.open(&path)?;
    db.batch(ONE_THREAD)?;
    db.batch("PRAGMA analytics=off")?;
    run.set("W7, W8", "iolite rows", &format!("{ONE_THREAD} PRAGMA analytics=off;"), TUNED_KEEPS);
    seats.push(Seat { name: "iolite rows".into(), db, path: path.clone() });
    for (title, sql) in QUERIES {
        match compare(&seats, title, sql, true) {
            Ok(n) => run.gates.push(format!("{title}: {n} rows equal in all engines")),
            Err(e) => {
                run.failures.push(e.message);
                continue;
            }
        }
        let mut prepared = seats.iter().map(|s| s.db.prepare(sql)).collect::<Result<Vec<_>>>()?;
        let t = in_turn(seats.len(), turns, |k, _| timed(|| prepared[k].run(&[])).map(|t| t.1 * 1e3))?;
        drop(prepared);
        for (k, samples) in t.into_iter().enumerate() {
            run.less(title, "", &seats[k].name, "ms", samples);
        }
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// W9: customers join orders by key, with one probe each.
fn joins(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    for n in [10_000, 100_000] {
        let title = format!("W9: join of {n} and {n} rows");
        let mut seats = Vec::new();
        let turso = Turso::find().ok().map(|t| Box::new(t) as Box<dyn Engine>);
        for e in engine::sql(1).into_iter().chain(turso) {
            let s = Seat::open(
                &*e,
                e.name(),
                "join",
                settings(e.name(), ONE_THREAD, "PRAGMA memory_limit='1GB'"),
            )?;
            s.db.batch(
                "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT); \
                 CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, amount INTEGER)",
            )?;
            let (mut i, mut j) = (0, 0);
            s.db.load("customers", 2, &mut |row| {
                row.extend([int(i), text(format!("name{i}"))]);
                i += 1;
                i <= n
            })?;
            s.db.load("orders", 3, &mut |row| {
                row.extend([int(j), int(j * 7919 % n), int(j % 500)]);
                j += 1;
                j <= n
            })?;
            seats.push(s);
        }
        let rows = find("iolite")?.open(&seats[0].path)?;
        rows.batch(ONE_THREAD)?;
        rows.batch("PRAGMA analytics=off")?;
        let path = seats[0].path.clone();
        seats.push(Seat { name: "iolite rows".into(), db: rows, path });
        let sql =
            "SELECT sum(o.amount), count(c.name) FROM orders o JOIN customers c ON c.id = o.customer_id";
        compare(&seats, &title, sql, false)?;
        run.gates.push(format!("{title}: equal in all engines"));
        let mut prepared = seats.iter().map(|s| s.db.prepare(sql)).collect::<Result<Vec<_>>>()?;
        let t = in_turn(seats.len(), turns, |k, _| timed(|| prepared[k].run(&[])).map(|t| t.1 * 1e3))?;
        drop(prepared);
        for (k, samples) in t.into_iter().enumerate() {
            run.less(&title, "", &seats[k].name, "ms", samples);
        }
        seats.into_iter().for_each(Seat::remove);
    }
    Ok(())
}

/// W13: four threads of fifty transactions, each one UPDATE, tried again while others hold the lock.
fn writers(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    let title = "W13: 4 threads of 50 transactions";
    let names = ["stock", "iolite"];
    let mut latencies: [Vec<f64>; 2] = Default::default();
    let t = in_turn(2, turns, |k, turn| {
        let e = find(names[k])?;
        let path = place(&format!("writers-{}", names[k]))?;
        let db = e.open(&path)?;
        db.batch(TUNED)?;
        db.batch("CREATE TABLE c(id INTEGER PRIMARY KEY, n INTEGER)")?;
        let mut i = 0;
        db.load("c", 2, &mut |row| {
            row.extend([int(i), int(0)]);
            i += 1;
            i <= 1_000
        })?;
        let ((), seconds) = timed(|| {
            std::thread::scope(|s| {
                let hands: Vec<_> = (0..4)
                    .map(|w| {
                        s.spawn({
                            let path = path.clone();
                            move || writer(names[k], &path, w + 4 * turn as u64)
                        })
                    })
                    .collect();
                for h in hands {
                    latencies[k].extend(h.join().map_err(|_| "a thread panicked")??);
                }
                Ok(())
            })
        })?;
        let n = db.rows("SELECT sum(n) FROM c")?;
        drop(db);
        cases::remove(&path);
        if n != [[int(200)]] {
            Err(format!("{title}: {} counts {n:?}", names[k]).into())
        } else {
            Ok(200.0 / seconds)
        }
    })?;
    run.gates.push(format!("{title}: no update lost"));
    for (k, samples) in t.into_iter().enumerate() {
        run.more(title, "", names[k], "tx/s", samples);
        latencies[k].sort_by(f64::total_cmp);
        let shares = [0.5, 0.95, 0.99];
        if let Some(r) = run.rows.last_mut() {
            r.percentiles = shares.map(|s| (s, stats::quantile(&latencies[k], s))).to_vec();
        }
    }
    Ok(())
}

fn writer(engine: &str, path: &std::path::Path, seed: u64) -> Result<Vec<f64>> {
    let e: Box<dyn Engine> = find(engine)?;
    let db = e.open(path)?;
    // First: a connection that closes meanwhile tries for an exclusive lock, and whoever opens then finds it busy.
    db.busy_timeout(5_000)?;
    db.batch(TUNED)?;
    let mut q = db.prepare("UPDATE c SET n = n + 1 WHERE id = ?1")?;
    let mut r = Random(seed);
    let mut out = Vec::new();
    for _ in 0..50 {
        let id = r.range(0, 999);
        let (_, s) = timed(|| {
            loop {
                match q.run(&[int(id)]) {
                    Err(e) if e.kind == Kind::Busy => continue,
                    r => return r,
                }
            }
        })?;
        out.push(s * 1e6);
    }
    Ok(out)
}

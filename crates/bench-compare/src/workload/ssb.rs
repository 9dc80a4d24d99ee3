//! The Star Schema Benchmark on iolite (columns and rows), stock SQLite and DuckDB on one thread: warm in turn with
//! constants drawn anew for each repetition, and cold in a process of its own.

use super::{Seat, again, compare, in_turn, timed};
use crate::Options;
use crate::engine::{self, DuckDb, settings};
use crate::envelope::Run;
use crate::stats;
use iolite_bench::engine::{Engine, Result, find};
use iolite_bench::random::Random;
use iolite_bench::ssb;
use std::path::{Path, PathBuf};

const SQLITE: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576;";
const ONE_THREAD: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576; PRAGMA threads=1; PRAGMA column_derivation=off;";
const DUCK: &str = "PRAGMA memory_limit='1GB'";

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sf: f64 = o.number("sf", 1.0, 0.1);
    let turns = o.number("repeat", 7, 5);
    run.scale.push(format!("scale factor {sf}"));
    let mut seats = Vec::new();
    for e in engine::sql(1) {
        let s = settings(e.name(), ONE_THREAD, DUCK);
        run.set("", e.name(), s, "read only; statistics gathered, one thread, 1 GB");
        let seat = Seat::open(&*e, e.name(), "ssb", s)?;
        let (rows, seconds) = timed(|| ssb::load(&*seat.db, sf))?;
        run.less("load", "prepared inserts, DuckDB by appender", e.name(), "s", vec![seconds]);
        eprintln!("  {rows} rows of lineorder");
        seat.db.batch("ANALYZE")?;
        seat.db.batch(if e.name() == "duckdb" { "CHECKPOINT" } else { "PRAGMA wal_checkpoint(TRUNCATE)" })?;
        let bytes = std::fs::metadata(&seat.path)?.len() as f64;
        run.less("size", "", e.name(), "MB", vec![bytes / 1e6]);
        seats.push(seat);
    }
    let mut seats = cold(o, run, seats)?;
    // iolite in rows, with derived join codes, and on two threads, are further connections to iolite's file.
    let path = seats[0].path.clone();
    let more = |name: &str, text: &str, run: &mut Run| -> Result<Seat> {
        let db = find("iolite")?.open(&path)?;
        let all = format!("{SQLITE} {text}");
        db.batch(&all)?;
        run.set("", name, &all, "as iolite");
        Ok(Seat { name: name.into(), db, path: path.clone() })
    };
    let rows = more("iolite rows", "PRAGMA analytics=off;", run)?;
    let plain =
        more("iolite rows, no lookahead", "PRAGMA analytics=off; PRAGMA lookahead_filters=off;", run)?;
    let codes = more("iolite, derived codes", "PRAGMA threads=1; PRAGMA column_derivation=on;", run)?;
    let threads = more("iolite, 2 threads", "PRAGMA threads=2; PRAGMA column_derivation=off;", run)?;
    for s in &seats {
        for t in ["lineorder", "part", "supplier", "customer", "date"] {
            s.db.prepare(&format!("SELECT * FROM {t}"))?.run(&[])?;
        }
    }
    seats.extend([rows, plain, codes, threads]);
    let mut first = Random(7);
    let mut wrong = Vec::new();
    for (name, sql) in ssb::queries(&mut first) {
        match compare(&seats, name, &sql, true) {
            Ok(n) => run.gates.push(format!("{name}: {n} rows equal in all engines")),
            Err(e) => {
                run.failures.push(e.message);
                wrong.push(name);
            }
        }
    }
    plans(run, &seats)?;
    // Each engine draws the same constants, from a generator of its own.
    let names: Vec<&str> = ssb::queries(&mut Random(7)).iter().map(|q| q.0).collect();
    let mut middle = vec![vec![]; seats.len()];
    for (q, name) in names.iter().enumerate().filter(|n| !wrong.contains(n.1)) {
        let mut draws: Vec<Random> = seats.iter().map(|_| Random(1_000 + q as u64)).collect();
        let mut sums: Vec<Vec<i64>> = vec![Vec::new(); seats.len()];
        let t = in_turn(seats.len(), turns, |k, _| {
            let sql = ssb::queries(&mut draws[k]).swap_remove(q).1;
            let (sum, s) = timed(|| seats[k].db.prepare(&sql)?.run(&[]))?;
            sums[k].push(sum);
            Ok(s * 1e3)
        })?;
        if sums.iter().any(|s| *s != sums[0]) {
            run.failures.push(format!("{name}: sums of answers differ with constants drawn anew"));
            continue;
        }
        for (k, samples) in t.into_iter().enumerate() {
            middle[k].push(stats::summary(&samples).median);
            run.less(name, "warm", &seats[k].name, "ms", samples);
        }
    }
    for (k, s) in seats.iter().enumerate() {
        run.less("geometric mean", "warm", &s.name, "ms", vec![stats::geometric(&middle[k])]);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// The figure of the paper that shows where the interpreter's time goes: shares of the dearest opcodes in each query run in rows.
fn opcodes(run: &mut Run, name: &str, analyzed: &str) {
    const SHOWN: usize = 6;
    let shares = analyzed.lines().filter_map(|l| {
        let (_, detail) = l.rsplit_once('|')?;
        let (opcode, cost) = detail.split_once(": ")?;
        let (_, share) = cost.strip_suffix(" %")?.rsplit_once(", ")?;
        (opcode != "RAN").then_some((opcode, share.parse::<f64>().ok()?))
    });
    let mut rest = 100.0;
    for (opcode, share) in shares.take(SHOWN) {
        rest -= share;
        run.less(name, "ticks by opcode, iolite rows", opcode, "%", vec![share]);
    }
    run.less(name, "ticks by opcode, iolite rows", "all others", "%", vec![rest]);
}

/// The plan of Q2.1 and the bytecode of Q1.1, as figure 5 and table 1 show them; what iolite says of each query's run.
fn plans(run: &mut Run, seats: &[Seat]) -> Result<()> {
    let q = ssb::queries(&mut Random(7));
    let shown = |s: &Seat, explain: &str, sql: &str| -> Result<String> {
        let rows = s.db.rows(&format!("{explain} {sql}"))?;
        let text: Vec<String> = rows.iter().map(|r| iolite_bench::engine::show(r)).collect();
        Ok(text.join("\n"))
    };
    for s in seats.iter().filter(|s| ["stock", "iolite", "iolite rows"].contains(&s.name.as_str())) {
        for (title, name, explain) in
            [("plan of Q2.1", "Q2.1", "EXPLAIN QUERY PLAN"), ("bytecode of Q1.1", "Q1.1", "EXPLAIN")]
        {
            let Some((_, sql)) = q.iter().find(|x| x.0 == name) else { continue };
            run.texts.push((format!("{title}, {}", s.name), shown(s, explain, sql)?));
        }
    }
    for s in seats.iter().filter(|s| s.name == "iolite" || s.name == "iolite rows") {
        for (name, sql) in &q {
            match shown(s, "EXPLAIN ANALYZE", sql) {
                Ok(t) => {
                    if s.name == "iolite rows" {
                        opcodes(run, name, &t);
                    }
                    run.texts.push((format!("EXPLAIN ANALYZE of {name}, {}", s.name), t));
                }
                Err(e) => run.failures.push(format!("EXPLAIN ANALYZE of {name}, {}: {e}", s.name)),
            }
        }
    }
    Ok(())
}

/// Each query first thing in a new process; the system's cache of the file stays warm, and no engine has anything beside
/// its file. All connections are closed meanwhile: DuckDB's would keep the file locked.
fn cold(o: &Options, run: &mut Run, seats: Vec<Seat>) -> Result<Vec<Seat>> {
    let turns = o.number("cold", 3, 2);
    let there: Vec<(String, PathBuf)> = seats.into_iter().map(|s| (s.name, s.path)).collect();
    for (q, (name, _)) in ssb::queries(&mut Random(7)).iter().enumerate() {
        let t = in_turn(there.len(), turns, |k, _| {
            let path = there[k].1.to_string_lossy().into_owned();
            let out = again(&["ssb".into(), there[k].0.clone(), path, q.to_string()])?;
            out.trim().parse::<f64>().map_err(|_| out.into())
        })?;
        for (k, samples) in t.into_iter().enumerate() {
            run.less(name, "cold process", &there[k].0, "ms", samples);
        }
    }
    let open = |(name, path): (String, PathBuf)| -> Result<Seat> {
        let e: Box<dyn Engine> = if name == "duckdb" { Box::new(DuckDb::find(1)?) } else { find(&name)? };
        let db = e.open(&path)?;
        db.batch(settings(&name, ONE_THREAD, DUCK))?;
        Ok(Seat { name, db, path })
    };
    there.into_iter().map(open).collect()
}

/// One query of a cold process: opening, preparing and running, in milliseconds.
pub fn worker(o: &Options) -> Result<()> {
    let [_, engine, path, q] = &o.words[..] else { return Err("ssb ENGINE PATH QUERY".into()) };
    let e: Box<dyn Engine> = if engine == "duckdb" { Box::new(DuckDb::find(1)?) } else { find(engine)? };
    let q: usize = q.parse().map_err(|_| "a number is wanted")?;
    let sql = ssb::queries(&mut Random(7)).swap_remove(q).1;
    let (_, s) = timed(|| {
        let db = e.open(Path::new(path))?;
        db.batch(settings(
            engine,
            "PRAGMA cache_size=-1048576; PRAGMA temp_store=MEMORY; PRAGMA threads=1;",
            DUCK,
        ))?;
        let n = db.prepare(&sql)?.run(&[])?;
        Ok(n)
    })?;
    println!("{}", s * 1e3);
    Ok(())
}

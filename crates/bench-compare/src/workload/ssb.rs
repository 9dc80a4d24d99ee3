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
use std::path::Path;

const SQLITE: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576;";
const DUCK: &str = "PRAGMA memory_limit='1GB'";

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sf: f64 = o.number("sf", 1.0, 0.1);
    let turns = o.number("repeat", 7, 5);
    run.scale.push(format!("scale factor {sf}"));
    let mut seats = Vec::new();
    for e in engine::sql(1) {
        let s = settings(e.name(), SQLITE, DUCK);
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
    cold(o, run, &seats, sf)?;
    // iolite in rows is a second connection to iolite's file.
    let path = seats[0].path.clone();
    let db = find("iolite")?.open(&path)?;
    db.batch(SQLITE)?;
    db.batch("PRAGMA analytics=off")?;
    run.set("", "iolite rows", &format!("{SQLITE} PRAGMA analytics=off;"), "as iolite");
    let rows = Seat { name: "iolite rows".into(), db, path };
    for s in &seats {
        for t in ["lineorder", "part", "supplier", "customer", "date"] {
            s.db.prepare(&format!("SELECT * FROM {t}"))?.run(&[])?;
        }
    }
    seats.push(rows);
    let mut first = Random(7);
    for (name, sql) in ssb::queries(&mut first) {
        match compare(&seats, name, &sql, true) {
            Ok(n) => run.gates.push(format!("{name}: {n} rows equal in all engines")),
            Err(e) => run.failures.push(e.message),
        }
    }
    plans(run, &seats)?;
    // Each engine draws the same constants, from a generator of its own.
    let names: Vec<&str> = ssb::queries(&mut Random(7)).iter().map(|q| q.0).collect();
    let mut middle = vec![vec![]; seats.len()];
    for (q, name) in names.iter().enumerate() {
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
        }
        for (k, samples) in t.into_iter().enumerate() {
            middle[k].push(stats::summary(&samples).median);
            run.less(name, "warm", &seats[k].name, "ms", samples);
        }
    }
    for (k, s) in seats.iter().enumerate() {
        run.less("geometric mean", "warm", &s.name, "ms", vec![stats::geometric(&middle[k])]);
    }
    for s in seats {
        s.remove();
    }
    run.missing.push("per-opcode cycle profiles (figure 4): there is no EXPLAIN ANALYZE".into());
    run.missing.push("LIP on and off (figure 6): there is no switch".into());
    run.missing.push("derived join codes on and off: there is no switch".into());
    Ok(())
}

/// The plan of Q2.1 and the bytecode of Q1.1, as figure 5 and table 1 show them.
fn plans(run: &mut Run, seats: &[Seat]) -> Result<()> {
    let q = ssb::queries(&mut Random(7));
    for s in seats.iter().filter(|s| s.name != "duckdb") {
        for (title, name, explain) in
            [("plan of Q2.1", "Q2.1", "EXPLAIN QUERY PLAN"), ("bytecode of Q1.1", "Q1.1", "EXPLAIN")]
        {
            let Some((_, sql)) = q.iter().find(|x| x.0 == name) else { continue };
            let rows = s.db.rows(&format!("{explain} {sql}"))?;
            let text: Vec<String> = rows.iter().map(|r| iolite_bench::engine::show(r)).collect();
            run.texts.push((format!("{title}, {}", s.name), text.join("\n")));
        }
    }
    Ok(())
}

/// Each query first thing in a new process; the system's cache of the file stays warm.
fn cold(o: &Options, run: &mut Run, seats: &[Seat], sf: f64) -> Result<()> {
    let turns = o.number("cold", 3, 2);
    let names: Vec<&str> = ssb::queries(&mut Random(7)).iter().map(|q| q.0).collect();
    for s in seats {
        // The writer's connection would keep DuckDB's file locked.
        s.db.batch(if s.name == "duckdb" { "CHECKPOINT" } else { "SELECT 1" })?;
    }
    for (q, name) in names.iter().enumerate() {
        if sf >= 1.0 && !matches!(*name, "Q1.1" | "Q2.1" | "Q3.1" | "Q4.1") {
            continue;
        }
        let there: Vec<&Seat> = seats.iter().filter(|s| s.name != "duckdb").collect();
        let t = in_turn(there.len(), turns, |k, _| {
            let path = there[k].path.to_string_lossy().into_owned();
            let out = again(&["ssb".into(), there[k].name.clone(), path, q.to_string()])?;
            out.trim().parse::<f64>().map_err(|_| out.into())
        })?;
        for (k, samples) in t.into_iter().enumerate() {
            run.less(name, "cold process", &there[k].name, "ms", samples);
        }
    }
    Ok(())
}

/// One query of a cold process: opening, preparing and running, in milliseconds.
pub fn worker(o: &Options) -> Result<()> {
    let [_, engine, path, q] = &o.words[..] else { return Err("ssb ENGINE PATH QUERY".into()) };
    let e: Box<dyn Engine> = if engine == "duckdb" { Box::new(DuckDb::find(1)?) } else { find(engine)? };
    let q: usize = q.parse().map_err(|_| "a number is wanted")?;
    let sql = ssb::queries(&mut Random(7)).swap_remove(q).1;
    let (_, s) = timed(|| {
        let db = e.open(Path::new(path))?;
        db.batch(settings(engine, "PRAGMA cache_size=-1048576; PRAGMA temp_store=MEMORY;", DUCK))?;
        let n = db.prepare(&sql)?.run(&[])?;
        Ok(n)
    })?;
    println!("{}", s * 1e3);
    Ok(())
}

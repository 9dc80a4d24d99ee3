//! The wide table of a web analytics service: its questions on iolite, stock SQLite and DuckDB on one thread, warm in turn
//! and cold in a process of its own, without and with columns in the sidecar. Answers are compared with stock's, the order of their rows included; DuckDB's by
//! their number, since orders with ties are its own.
//!
//! The tables are kept among the benchmarks' files and used again: `--fresh` makes them anew, `--drop` removes them.

use super::{again, in_turn, timed};
use crate::Options;
use crate::engine::{self, DuckDb, settings};
use crate::envelope::Run;
use crate::gate;
use crate::stats;
use iolite_bench::cases;
use iolite_bench::engine::{Database, Engine, Result, find};
use iolite_bench::events::{self, Question, questions};
use std::path::{Path, PathBuf};

const SQLITE: &str = "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576; PRAGMA threads=1;";
const DUCK: &str = "PRAGMA memory_limit='2GB'";

struct Seat {
    name: String,
    path: PathBuf,
    db: Box<dyn Database>,
}

fn engine_of(name: &str) -> Result<Box<dyn Engine>> {
    Ok(if name == "duckdb" {
        Box::new(DuckDb::find(1)?)
    } else {
        find(if name == "iolite rows" { "iolite" } else { name })?
    })
}

fn open(name: &str, path: &Path) -> Result<Box<dyn Database>> {
    let db = engine_of(name)?.open(path)?;
    db.batch(settings(name, SQLITE, DUCK))?;
    if name == "iolite rows" {
        db.batch("PRAGMA analytics=off")?;
    }
    Ok(db)
}

fn sql_of<'q>(q: &'q Question, engine: &str) -> &'q str {
    match (&q.duck, engine) {
        (Some(d), "duckdb") => d,
        _ => &q.sql,
    }
}

/// Where an engine's table lies. iolite and stock have one file.
fn place(rows: u64, engine: &str) -> Result<PathBuf> {
    let dir = cases::directory();
    std::fs::create_dir_all(&dir)?;
    Ok(dir.join(format!("events-v1-{rows}-{engine}.db")))
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let rows: u64 = o.number("rows", 1_000_000, 100_000);
    let (turns, cold) = (o.number("repeat", 5, 3), o.number("cold", 2, 1));
    run.scale.push(format!("{rows} rows"));
    let only = o.text("only");
    let mut seats = Vec::new();
    for e in engine::sql(1) {
        let (name, duck) = (e.name().to_string(), e.name() == "duckdb");
        run.set("", &name, settings(&name, SQLITE, DUCK), "reads; one thread");
        let path = place(rows, if duck { "duckdb" } else { "sqlite" })?;
        if o.has("fresh") && name != "stock" {
            cases::remove(&path);
        }
        let there = path.exists();
        let db = open(&name, &path)?;
        if !there {
            let (n, seconds) = timed(|| events::load(&*db, rows, !duck))?;
            eprintln!("  {n} rows");
            run.less("load", "prepared inserts, DuckDB by appender", &name, "s", vec![seconds]);
            if duck {
                db.batch("CHECKPOINT")?;
            }
        }
        seats.push(Seat { name, path, db });
    }
    let list: Vec<(usize, Question)> = questions(rows)
        .into_iter()
        .enumerate()
        .filter(|(_, q)| only.is_none_or(|n| n.split(',').any(|n| n == q.name)))
        .collect();
    let mut middle = vec![vec![]; seats.len()];
    let mut right = Vec::new();
    for (i, q) in &list {
        let mut answers = Vec::new();
        for s in &seats {
            // The columns of a second run are there: the first one may leave them to rows.
            if s.name == "iolite" {
                s.db.rows(&q.sql)?;
            }
            match s.db.rows(sql_of(q, &s.name)) {
                Ok(rows) => answers.push((s.name.as_str(), rows)),
                Err(e) => run.failures.push(format!("{}: {}: {e}", q.name, s.name)),
            }
        }
        let n = answers.first().map_or(0, |a| a.1.len());
        if answers.iter().any(|a| a.1.len() != n) {
            run.failures.push(format!("{}: other numbers of rows", q.name));
        }
        answers.retain(|a| a.0 != "duckdb");
        match gate::equal(&q.name, &answers, false) {
            Ok(()) => {
                run.gates.push(format!("{}: {n} rows as stock's", q.name));
                right.push(*i);
            }
            Err(e) => {
                eprintln!("  {}", e.message);
                run.failures.push(e.message);
                continue;
            }
        }
        let t = in_turn(seats.len(), turns, |k, _| {
            Ok(timed(|| seats[k].db.prepare(sql_of(q, &seats[k].name))?.run(&[]))?.1 * 1e3)
        })?;
        let medians: Vec<f64> = t.iter().map(|s| stats::summary(s).median).collect();
        eprintln!("  {:28} {}", q.name, medians.iter().map(|m| format!("{m:10.2}")).collect::<String>());
        for (k, samples) in t.into_iter().enumerate() {
            middle[k].push(medians[k]);
            run.less(&q.name, "warm", &seats[k].name, "ms", samples);
        }
    }
    for (k, s) in seats.iter().enumerate() {
        run.less("geometric mean", "warm", &s.name, "ms", vec![stats::geometric(&middle[k])]);
        eprintln!("  geometric mean, {}: {:.2}", s.name, stats::geometric(&middle[k]));
    }
    let there: Vec<(String, PathBuf)> = seats.into_iter().map(|s| (s.name, s.path)).collect();
    let asked: Vec<&(usize, Question)> = list.iter().filter(|(i, _)| right.contains(i)).collect();
    if cold > 0 {
        cold_runs(run, &asked, &there, (rows, cold), "cold process")?;
        let beside: Vec<_> = there.iter().filter(|t| t.0 == "iolite" || t.0 == "duckdb").cloned().collect();
        if let Some((_, path)) = there.iter().find(|t| t.0 == "iolite") {
            keep_columns(&asked, path)?;
            let done = cold_runs(run, &asked, &beside, (rows, cold), "cold process, columns in the sidecar");
            open("iolite", path)?.batch("PRAGMA column_cache = memory")?;
            done?;
        }
    }
    if o.has("drop") {
        there.iter().for_each(|t| cases::remove(&t.1));
    }
    Ok(())
}

/// Each question in processes of its own, in turn.
fn cold_runs(
    run: &mut Run,
    asked: &[&(usize, Question)],
    seats: &[(String, PathBuf)],
    (rows, turns): (u64, usize),
    state: &str,
) -> Result<()> {
    let mut middle = vec![vec![]; seats.len()];
    for (i, q) in asked {
        let t = in_turn(seats.len(), turns, |k, _| {
            let path = seats[k].1.to_string_lossy().into_owned();
            let out = again(&["events".into(), seats[k].0.clone(), path, i.to_string(), rows.to_string()])?;
            out.trim().parse::<f64>().map_err(|_| out.into())
        })?;
        let medians: Vec<f64> = t.iter().map(|s| stats::summary(s).median).collect();
        let shown = medians.iter().map(|m| format!("{m:10.2}")).collect::<String>();
        eprintln!("  {:28} {shown} {state}", q.name);
        for (k, samples) in t.into_iter().enumerate() {
            middle[k].push(medians[k]);
            run.less(&q.name, state, &seats[k].0, "ms", samples);
        }
    }
    for (k, s) in seats.iter().enumerate() {
        run.less("geometric mean", state, &s.0, "ms", vec![stats::geometric(&middle[k])]);
        eprintln!("  geometric mean, {}, {state}: {:.2}", s.0, stats::geometric(&middle[k]));
    }
    Ok(())
}

/// Puts the columns of all questions into the file beside the database.
fn keep_columns(asked: &[&(usize, Question)], path: &Path) -> Result<()> {
    let db = open("iolite", path)?;
    db.batch("PRAGMA column_cache = persist")?;
    for (_, q) in asked {
        // The first run of some is left to rows.
        db.rows(&q.sql)?;
        db.rows(&q.sql)?;
    }
    Ok(())
}

/// One question of a cold process: opening, preparing and running, in milliseconds.
pub fn worker(o: &Options) -> Result<()> {
    let [_, engine, path, q, rows] = &o.words[..] else {
        return Err("events ENGINE PATH QUESTION ROWS".into());
    };
    let number = |s: &str| s.parse::<u64>().map_err(|_| "a number is wanted");
    let q = questions(number(rows)?).swap_remove(number(q)? as usize);
    let (_, s) = timed(|| open(engine, Path::new(path))?.prepare(sql_of(&q, engine))?.run(&[]))?;
    println!("{}", s * 1e3);
    Ok(())
}

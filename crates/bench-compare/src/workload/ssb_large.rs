//! The Star Schema Benchmark where it is large, on iolite alone: what a second thread gains, and the memory that it takes.
//!
//! All queries run in one process and on one connection, so that what was decoded is there for both settings, and so that the
//! process's greatest memory is that of the queries: it counts the page cache, the columns, and the machine's libraries.

use super::{Seat, again, in_turn, timed};
use crate::envelope::Run;
use crate::{Options, machine, stats};
use iolite_bench::engine::{Result, find};
use iolite_bench::random::Random;
use iolite_bench::ssb;
use std::path::Path;

const LOADING: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-262144;";
const READING: &str = "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY; PRAGMA column_derivation=off; PRAGMA column_cache_size=1700000;";
const THREADS: [(&str, u32); 2] = [("iolite", 1), ("iolite, 2 threads", 2)];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sf: f64 = o.number("large-sf", 10.0, 0.1);
    let turns = o.number("repeat", 5, 3);
    run.scale.push(format!("scale factor {sf}"));
    for (name, n) in THREADS {
        run.set("", name, &format!("{READING} PRAGMA threads={n};"), "read only; statistics gathered");
    }
    let seat = Seat::open(&*find("iolite")?, "iolite", "ssb-large", LOADING)?;
    let (rows, seconds) = timed(|| ssb::load(&*seat.db, sf))?;
    eprintln!("  {rows} rows of lineorder");
    run.less("load", "prepared inserts", "iolite", "s", vec![seconds]);
    seat.db.batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
    run.less("size", "", "iolite", "MB", vec![std::fs::metadata(&seat.path)?.len() as f64 / 1e6]);
    let path = seat.path.to_string_lossy().into_owned();
    let out = again(&["ssb-large".into(), path, turns.to_string()]);
    seat.remove();
    let out = out?;
    let mut middle = [Vec::new(), Vec::new()];
    for l in out.lines() {
        let Some((what, figures)) = l.split_once(':') else { return Err(l.into()) };
        let figures: Vec<f64> = figures.split(' ').filter_map(|f| f.parse().ok()).collect();
        let (case, k) = what.split_once(' ').unwrap_or((what, "0"));
        match (case, k.parse::<usize>()) {
            ("gate", _) => run.gates.push("answers of rows, of one thread and of two are equal".into()),
            ("memory", _) => run.less("greatest memory", "", "iolite", "MB", figures),
            ("first", _) => run.less("all queries, first run", "", "iolite", "s", figures),
            (case, Ok(k)) => {
                middle[k].push(stats::summary(&figures).median);
                run.less(case, "warm", THREADS[k].0, "ms", figures);
            }
            _ => return Err(l.into()),
        }
    }
    for (k, (name, _)) in THREADS.iter().enumerate() {
        run.less("geometric mean", "warm", name, "ms", vec![stats::geometric(&middle[k])]);
    }
    Ok(())
}

/// The queries, in a process of its own.
pub fn worker(o: &Options) -> Result<()> {
    let [_, path, turns] = &o.words[..] else { return Err("ssb-large PATH TURNS".into()) };
    let turns = turns.parse().map_err(|_| "a number is wanted")?;
    let db = find("iolite")?.open(Path::new(path))?;
    db.batch(READING)?;
    let queries = ssb::queries(&mut Random(7));
    let mut first = 0.0;
    for (name, sql) in &queries {
        db.batch("PRAGMA analytics=auto; PRAGMA threads=1")?;
        let (one, s) = timed(|| db.rows(sql))?;
        first += s;
        db.batch("PRAGMA threads=2")?;
        let two = db.rows(sql)?;
        db.batch("PRAGMA analytics=off")?;
        let rows = db.rows(sql)?;
        for (what, answer) in [("one thread", &one), ("two threads", &two)] {
            crate::gate::equal(name, &[("rows", rows.clone()), (what, answer.clone())], true)?;
        }
    }
    db.batch("PRAGMA analytics=auto")?;
    println!("gate:");
    println!("first:{first}");
    for (q, (name, _)) in queries.iter().enumerate() {
        let mut draws = THREADS.map(|_| Random(1_000 + q as u64));
        let t = in_turn(2, turns, |k, _| {
            let sql = ssb::queries(&mut draws[k]).swap_remove(q).1;
            db.batch(&format!("PRAGMA threads={}", THREADS[k].1))?;
            let mut s = db.prepare(&sql)?;
            timed(|| s.run(&[])).map(|t| t.1 * 1e3)
        })?;
        for (k, samples) in t.iter().enumerate() {
            let all: Vec<String> = samples.iter().map(f64::to_string).collect();
            println!("{name} {k}:{}", all.join(" "));
        }
    }
    println!("memory:{}", machine::greatest() / 1e6);
    Ok(())
}

//! TPC-H: 22 queries on iolite, stock SQLite (both with indexes on foreign keys) and DuckDB on one thread, in turn.
//!
//! A query that takes an engine longer than the limit in its first run is not repeated there; its one time is what is reported.

use super::{Seat, timed, tpch_data, tpch_queries::QUERIES};
use crate::Options;
use crate::engine::{self, settings};
use crate::envelope::Run;
use crate::gate;
use crate::stats;
use iolite_bench::engine::{Result, find};

const SQLITE: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576; PRAGMA threads=1;";

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sf: f64 = o.number("sf", 0.1, 0.01);
    let turns = o.number("repeat", 3, 3);
    let limit: f64 = o.number("limit", 5.0, 2.0);
    run.scale.push(format!("scale factor {sf}"));
    let mut seats = Vec::new();
    for e in engine::sql(1) {
        let s = settings(e.name(), SQLITE, "PRAGMA memory_limit='1GB'");
        let duck = e.name() == "duckdb";
        run.set(
            "",
            e.name(),
            s,
            if duck { "reads; one thread, primary keys" } else { "reads; indexes on foreign keys, ANALYZE" },
        );
        let seat = Seat::open(&*e, e.name(), "tpch", s)?;
        let (n, seconds) = timed(|| tpch_data::load(&*seat.db, sf))?;
        eprintln!("  {n} rows of lineitem");
        run.less("load", "prepared inserts, DuckDB by appender", e.name(), "s", vec![seconds]);
        if !duck {
            seat.db.batch(tpch_data::INDEXES)?;
        }
        seat.db.batch("ANALYZE")?;
        seat.db.batch(if duck { "CHECKPOINT" } else { "PRAGMA wal_checkpoint(TRUNCATE)" })?;
        seats.push(seat);
    }
    let path = seats[0].path.clone();
    let db = find("iolite")?.open(&path)?;
    db.batch(SQLITE)?;
    db.batch("PRAGMA analytics=off")?;
    run.set("", "iolite rows", &format!("{SQLITE} PRAGMA analytics=off;"), "as iolite");
    seats.push(Seat { name: "iolite rows".into(), db, path });
    let mut middle = vec![vec![]; seats.len()];
    for (i, sql) in QUERIES.iter().enumerate() {
        let name = format!("Q{}", i + 1);
        let mut answers = Vec::new();
        let mut times = vec![Vec::new(); seats.len()];
        let mut first = vec![0.0; seats.len()];
        for (k, s) in seats.iter().enumerate() {
            match timed(|| s.db.rows(sql)) {
                Ok((rows, t)) => {
                    first[k] = t;
                    answers.push((s.name.as_str(), rows));
                }
                Err(e) => {
                    first[k] = f64::MAX;
                    run.failures.push(format!("{name}: {}: {e}", s.name));
                }
            }
        }
        match gate::equal(&name, &answers, false) {
            Ok(()) => run.gates.push(format!(
                "{name}: {} rows equal in {} engines",
                answers[0].1.len(),
                answers.len()
            )),
            // Times of a wrong answer do not count.
            Err(e) => {
                run.failures.push(e.message);
                continue;
            }
        }
        for t in 0..turns {
            for k in 0..seats.len() {
                let k = if t % 2 == 0 { k } else { seats.len() - 1 - k };
                if first[k] > limit {
                    if t == 0 && first[k] < f64::MAX {
                        times[k].push(first[k] * 1e3);
                    }
                    continue;
                }
                super::settle();
                times[k].push(timed(|| seats[k].db.prepare(sql)?.run(&[]))?.1 * 1e3);
            }
        }
        for (k, samples) in times.into_iter().enumerate().filter(|x| !x.1.is_empty()) {
            middle[k].push(stats::summary(&samples).median);
            run.less(&name, "", &seats[k].name, "ms", samples);
        }
    }
    for (k, s) in seats.iter().enumerate() {
        run.less("geometric mean", "", &s.name, "ms", vec![stats::geometric(&middle[k])]);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

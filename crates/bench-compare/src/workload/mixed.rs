//! Mixed load: one thread commits TATP's UPDATE_LOCATION without pause, another asks SSB-like questions of the same tables.
//! Reported: processor time of the writing thread for each commit, commits and queries a second; with columns off and auto.

use super::{TUNED, TUNED_KEEPS, in_turn, tatp};
use crate::Options;
use crate::envelope::Run;
use crate::machine::thread_cpu;
use iolite_bench::engine::{Result, find, int};
use iolite_bench::random::Random;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const QUERIES: [&str; 4] = [
    "SELECT bit_1, hex_1, count(*), sum(vlr_location) FROM subscriber WHERE byte2_1 < 200 GROUP BY bit_1, hex_1 ORDER BY 1, 2",
    "SELECT ai_type, count(*), sum(data1 * data2) FROM access_info, subscriber WHERE subscriber.s_id = access_info.s_id \
     AND hex_2 BETWEEN 3 AND 9 GROUP BY ai_type ORDER BY 1",
    "SELECT sum(data_a), count(*) FROM special_facility WHERE is_active = 1 AND error_cntrl < 100",
    "SELECT sf_type, start_time, count(*), sum(end_time) FROM call_forwarding GROUP BY sf_type, start_time ORDER BY 1, 2",
];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let n = o.number("subscribers", 100_000, 10_000);
    let turns = o.number("repeat", 5, 3);
    let seconds: f64 = o.number("seconds", 2.0, 0.5);
    run.scale.push(format!("{n} subscribers"));
    let names = ["stock", "iolite off", "iolite auto"];
    let mut seats = Vec::new();
    for name in names {
        let (engine, text) = settings(name);
        run.set("", name, &text, TUNED_KEEPS);
        seats.push(tatp::loaded(&*find(engine)?, name, n, &text)?);
    }
    for q in QUERIES {
        let all =
            names.iter().zip(&seats).map(|(n, s)| Ok((*n, s.db.rows(q)?))).collect::<Result<Vec<_>>>()?;
        crate::gate::equal(q, &all, false)?;
    }
    run.gates.push("answers of the four queries equal before anything is written".into());
    for readers in [0usize, 1] {
        let label = if readers == 0 { "writer alone" } else { "writer and one reader" };
        let (mut cpu, mut queries) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
        let commits = in_turn(3, turns, |k, t| {
            let stop = AtomicBool::new(false);
            let path = seats[k].path.as_path();
            let (engine, text) = settings(names[k]);
            std::thread::scope(|s| {
                let hands: Vec<_> =
                    (0..readers).map(|_| s.spawn(|| reader(engine, path, &text, &stop))).collect();
                let done = writer(engine, path, &text, n, t as u64, seconds);
                stop.store(true, Ordering::Relaxed);
                let mut asked = 0;
                for h in hands {
                    asked += h.join().map_err(|_| "a reader panicked")??;
                }
                let (commits, used) = done?;
                cpu[k].push(used * 1e6 / commits as f64);
                queries[k].push(asked as f64 / seconds);
                Ok(commits as f64 / seconds)
            })
        })?;
        for (k, samples) in commits.into_iter().enumerate() {
            run.more("commits", label, names[k], "tx/s", samples);
            run.less("writer's processor time a commit", label, names[k], "us", std::mem::take(&mut cpu[k]));
            if readers > 0 {
                run.more("queries", label, names[k], "q/s", std::mem::take(&mut queries[k]));
            }
        }
    }
    // What columns answer after all the writing is what rows answer on the same file.
    for q in QUERIES {
        let off = find("iolite")?.open(&seats[2].path)?;
        off.batch("PRAGMA analytics=off")?;
        let stock = find("stock")?.open(&seats[2].path)?;
        crate::gate::equal(
            q,
            &[("columns", seats[2].db.rows(q)?), ("rows", off.rows(q)?), ("stock", stock.rows(q)?)],
            false,
        )?;
    }
    run.gates.push("columns, rows and stock answer the same on the written file".into());
    let stop = AtomicBool::new(false);
    let path = seats[2].path.as_path();
    let checked = std::thread::scope(|s| {
        let hand = s.spawn(|| checker(path, &stop));
        let done = writer("iolite", path, TUNED, n, 77, seconds);
        stop.store(true, Ordering::Relaxed);
        let checked = hand.join().map_err(|_| "the checking reader panicked")?;
        done.and(checked)
    })?;
    run.gates.push(format!(
        "while commits went on: {checked} answers of columns equal those of rows at the same snapshot"
    ));
    seats.into_iter().for_each(super::Seat::remove);
    Ok(())
}

fn settings(name: &str) -> (&'static str, String) {
    match name {
        "iolite off" => ("iolite", format!("{TUNED} PRAGMA analytics=off;")),
        "iolite auto" => ("iolite", format!("{TUNED} PRAGMA analytics=auto;")),
        _ => ("stock", TUNED.to_string()),
    }
}

/// Commits and seconds of processor time.
fn writer(engine: &str, path: &Path, text: &str, n: i64, seed: u64, seconds: f64) -> Result<(u64, f64)> {
    let db = find(engine)?.open(path)?;
    db.busy_timeout(5_000)?;
    db.batch(text)?;
    let mut q = db.prepare("UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?")?;
    let mut r = Random(500 + seed);
    let (start, before) = (Instant::now(), thread_cpu());
    let end = Duration::from_secs_f64(seconds);
    let mut commits = 0;
    while start.elapsed() < end {
        q.run(&[int(r.range(1, i32::MAX as i64)), super::tatp_data::number(r.range(1, n))])?;
        commits += 1;
    }
    Ok((commits, thread_cpu() - before))
}

/// Asks in columns and in rows within one transaction, until told to stop; answers how often.
fn checker(path: &Path, stop: &AtomicBool) -> Result<u64> {
    let db = find("iolite")?.open(path)?;
    db.busy_timeout(5_000)?;
    db.batch(TUNED)?;
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) || n == 0 {
        for q in QUERIES {
            db.batch("BEGIN; PRAGMA analytics=auto")?;
            let columns = db.rows(q)?;
            db.batch("PRAGMA analytics=off")?;
            let rows = db.rows(q)?;
            db.batch("COMMIT")?;
            crate::gate::equal(q, &[("columns", columns), ("rows", rows)], false)?;
            n += 1;
        }
    }
    Ok(n)
}

/// Queries until told to stop.
fn reader(engine: &str, path: &Path, text: &str, stop: &AtomicBool) -> Result<u64> {
    let db = find(engine)?.open(path)?;
    db.busy_timeout(5_000)?;
    db.batch(text)?;
    let mut all = QUERIES.iter().map(|q| db.prepare(q)).collect::<Result<Vec<_>>>()?;
    let mut n = 0;
    loop {
        for q in &mut all {
            if stop.load(Ordering::Relaxed) {
                return Ok(n);
            }
            q.run(&[])?;
            n += 1;
        }
    }
}

//! TATP: one client on each engine in slices of time taken in turn; eight clients at WAL FULL; system calls of the syncing
//! modes counted by strace.

use super::tatp_data::{Client, MIX, load};
use super::tatp_queue::{self, Shared};
use super::{Seat, compare};
use crate::Options;
use crate::engine::{DuckDb, Turso, settings};
use crate::envelope::Run;
use crate::stats;
use iolite_bench::cases;
use iolite_bench::engine::{Engine, Kind, Result, find};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A journal mode and a level of durability.
const CONFIGS: &[(&str, &str, &str, &str)] = &[
    ("WAL NORMAL", "WAL", "NORMAL", "consistent; the last commits may be lost"),
    ("WAL FULL", "WAL", "FULL", "each commit"),
    ("DELETE FULL", "DELETE", "FULL", "each commit"),
    ("DELETE NORMAL", "DELETE", "NORMAL", "each commit, but for rare losses of power"),
    ("TRUNCATE FULL", "TRUNCATE", "FULL", "each commit"),
];
const CACHE: &str = "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1048576; PRAGMA analytics=off;";
const DUCK: &str = "PRAGMA memory_limit='1GB'";
const SUMS: &str = "SELECT (SELECT sum(vlr_location) FROM subscriber), (SELECT sum(bit_1) FROM subscriber), \
                    (SELECT sum(data_a) FROM special_facility), (SELECT count(*) FROM call_forwarding), \
                    (SELECT sum(end_time) FROM call_forwarding)";

fn pragmas(journal: &str, sync: &str) -> String {
    format!("PRAGMA journal_mode={journal}; PRAGMA synchronous={sync}; {CACHE}")
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sizes: Vec<i64> = match o.text("subscribers") {
        Some(l) => l.split(',').filter_map(|n| n.parse().ok()).collect(),
        None if o.has("small") => vec![10_000],
        None => vec![10_000, 100_000],
    };
    if !sizes.contains(&1_000_000) {
        run.missing.push("1,000,000 subscribers: ask with `--subscribers 1000000`".into());
    }
    // `--threads` alone: for looking into group commit.
    for n in sizes.into_iter().filter(|_| !o.has("threads")) {
        run.scale.push(format!("{n} subscribers"));
        masters(n)?;
        for (config, journal, sync, keeps) in CONFIGS {
            // `--config "WAL NORMAL"` alone: for looking into one of them.
            if o.text("config").is_some_and(|c| c != *config) {
                continue;
            }
            if let Err(e) = one_client(o, run, n, config, &pragmas(journal, sync), keeps) {
                run.failures.push(format!("{n} subscribers, {config}: {e}"));
            }
        }
    }
    if o.has("config") {
        return Ok(());
    }
    masters(10_000)?;
    eight_clients(o, run)?;
    if o.has("threads") {
        return Ok(());
    }
    syncs(run);
    if let Err(e) = order(run) {
        run.missing.push(format!("order of syncs by strace: {e}"));
    }
    Ok(())
}

fn master(engine: &str, n: i64) -> std::path::PathBuf {
    cases::directory().join(format!("tatp-{engine}-{n}-1.db"))
}

/// The loaded databases; both SQLite engines start with copies of the same file.
fn masters(n: i64) -> Result<()> {
    std::fs::create_dir_all(cases::directory())?;
    let mut all: Vec<Box<dyn Engine>> = vec![find("stock")?];
    if let Ok(d) = DuckDb::find(1) {
        all.push(Box::new(d));
    }
    for e in all {
        let path = master(e.name(), n);
        if path.exists() {
            continue;
        }
        let part = path.with_extension("part");
        cases::remove(&part);
        let db = e.open(&part)?;
        load(&*db, n)?;
        db.batch(if e.name() == "duckdb" { "CHECKPOINT" } else { "ANALYZE" })?;
        drop(db);
        std::fs::rename(part, path)?;
    }
    Ok(())
}

fn seat(e: &dyn Engine, name: &str, n: i64, settings: &str) -> Result<Seat> {
    let path = super::place(&format!("tatp-{}", name.replace(' ', "-")))?;
    let from = if e.name() == "duckdb" { "duckdb" } else { "stock" };
    std::fs::copy(master(from, n), &path)?;
    let db = e.open(&path)?;
    db.batch(settings)?;
    Ok(Seat { name: name.into(), db, path })
}

/// What a slice of time gave: transactions a second, and the microseconds and counts by type.
struct Slice {
    rate: f64,
    by_type: [(f64, u64); 7],
}

fn slice(c: &mut Client<'_>, seconds: f64) -> Result<Slice> {
    let start = Instant::now();
    let end = Duration::from_secs_f64(seconds);
    let mut by_type = [(0.0, 0); 7];
    let mut n = 0u64;
    let mut last = start;
    loop {
        let t = c.draw();
        c.run(t)?;
        let now = Instant::now();
        by_type[t].0 += (now - last).as_secs_f64() * 1e6;
        by_type[t].1 += 1;
        last = now;
        n += 1;
        if now - start >= end {
            return Ok(Slice { rate: n as f64 / (now - start).as_secs_f64(), by_type });
        }
    }
}

fn one_client(o: &Options, run: &mut Run, n: i64, config: &str, text: &str, keeps: &str) -> Result<()> {
    let turns = o.number("repeat", 7, 5);
    let seconds: f64 = o.number("seconds", 2.0, 0.4);
    let warm: f64 = o.number("warm", 2.0, 0.4);
    let mut engines: Vec<Box<dyn Engine>> = vec![find("stock")?, find("iolite")?];
    if config == "WAL FULL" {
        engines.extend(DuckDb::find(1).ok().map(|d| Box::new(d) as Box<dyn Engine>));
    }
    let mut seats = Vec::new();
    for e in &engines {
        let s = settings(e.name(), text, DUCK);
        run.set(config, e.name(), s, keeps);
        seats.push(seat(&**e, e.name(), n, s)?);
    }
    let label = format!("{config}, {n} subscribers");
    {
        let new = |s: &Seat| -> Result<i64> {
            let mut c = Client::new(&*s.db, n, 5, "BEGIN")?;
            let mut sum = 0i64;
            for _ in 0..2_000 {
                let t = c.draw();
                sum = sum.wrapping_add(c.run(t).map_err(|e| e.at(&format!("{}, {}", s.name, MIX[t].1)))?);
            }
            Ok(sum)
        };
        let mut sums = seats.iter().map(new).collect::<Result<Vec<_>>>()?;
        if let Ok(e) = Turso::find() {
            let there = seat(&e, e.name(), n, text).and_then(|s| new(&s).map(|sum| (s, sum)));
            match there {
                Ok((s, sum)) => {
                    run.set(config, e.name(), text, keeps);
                    seats.push(s);
                    sums.push(sum);
                }
                Err(err) => {
                    run.missing.push(format!("{label}: {}: {err}", e.name()));
                    cases::remove(&super::place("tatp-turso")?);
                }
            }
        }
        if sums.iter().any(|s| *s != sums[0]) {
            return Err(format!("answers of 2,000 transactions differ: {sums:?}").into());
        }
        compare(&seats, "contents after 2,000 transactions", SUMS, false)?;
        run.gates.push(format!(
            "{label}: answers and contents of 2,000 transactions equal in {} engines",
            seats.len()
        ));
    }
    let mut clients = seats.iter().map(|s| Client::new(&*s.db, n, 6, "BEGIN")).collect::<Result<Vec<_>>>()?;
    for c in &mut clients {
        slice(c, warm)?;
    }
    let mut types = vec![vec![Vec::new(); 7]; seats.len()];
    let rates = super::in_turn(clients.len(), turns, |k, _| {
        let s = slice(&mut clients[k], seconds)?;
        for (i, (us, count)) in s.by_type.iter().enumerate() {
            if *count > 0 {
                types[k][i].push(us / *count as f64);
            }
        }
        Ok(s.rate)
    })?;
    drop(clients);
    for (k, samples) in rates.into_iter().enumerate() {
        run.more("transactions", &label, &seats[k].name, "tx/s", samples);
        for (i, (_, name, _)) in MIX.iter().enumerate() {
            run.less(name, &label, &seats[k].name, "us", std::mem::take(&mut types[k][i]));
        }
    }
    for s in &seats[..2] {
        let ok = s.db.rows("PRAGMA integrity_check")?;
        if iolite_bench::engine::show(&ok[0]) != "ok" {
            run.failures.push(format!(
                "{label}: {} integrity_check: {}",
                s.name,
                iolite_bench::engine::show(&ok[0])
            ));
        }
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// iolite with writes through its queue.
const QUEUE: &str = "iolite, queue";

/// The engine of a name in tables.
fn base(name: &str) -> &str {
    if name == QUEUE { "iolite" } else { name }
}

/// Eight threads with a connection each at WAL FULL.
fn eight_clients(o: &Options, run: &mut Run) -> Result<()> {
    let (n, label) = (10_000, "WAL FULL, 10000 subscribers, 8 threads");
    let turns = o.number("repeat", 5, 3);
    let seconds: f64 = o.number("seconds", 2.0, 0.5);
    let text = format!("{} PRAGMA wal_autocheckpoint=1000;", pragmas("WAL", "FULL"));
    // `--engine NAME` alone: for a profiler.
    let only = o.text("engine");
    let names: Vec<&str> =
        ["stock", "iolite", QUEUE].into_iter().filter(|n| only.is_none_or(|o| o == *n)).collect();
    let names = &names[..];
    let mut seats = Vec::new();
    for &name in names {
        let how = if name == QUEUE {
            "for reads; writes as jobs of `Database::writer()`, each asking for a sync"
        } else {
            "busy_timeout 10 s"
        };
        run.set("8 threads", name, &format!("{text} {how}"), "each commit");
        seats.push(seat(&*find(base(name))?, name, n, &text)?);
    }
    let mut waits = vec![Vec::new(); names.len()];
    let rates = super::in_turn(names.len(), turns, |k, turn| {
        let path = seats[k].path.as_path();
        let queue = if names[k] == QUEUE { Some(Shared::new(path)?) } else { None };
        let (queue, text) = (queue.as_ref(), text.as_str());
        let counts: Result<Vec<(u64, Vec<f64>)>> = std::thread::scope(|s| {
            let hands: Vec<_> = (0..8)
                .map(|w| {
                    let seed = w + 8 * turn as u64;
                    s.spawn(move || client_thread(base(names[k]), queue, path, text, n, seed, seconds))
                })
                .collect();
            hands.into_iter().map(|h| h.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
        });
        let counts = counts?;
        let total: u64 = counts.iter().map(|c| c.0).sum();
        counts.into_iter().for_each(|c| waits[k].extend(c.1));
        Ok(total as f64 / seconds)
    });
    match rates {
        Err(e) => run.failures.push(format!("{label}: {e}")),
        Ok(rates) => {
            for (k, samples) in rates.into_iter().enumerate() {
                run.more("transactions", label, names[k], "tx/s", samples);
                waits[k].sort_by(f64::total_cmp);
                if let Some(r) = run.rows.last_mut() {
                    r.percentiles = [0.5, 0.99, 0.999].map(|s| (s, stats::quantile(&waits[k], s))).to_vec();
                }
            }
        }
    }
    for s in &seats {
        let ok = s.db.rows("PRAGMA integrity_check")?;
        if iolite_bench::engine::show(&ok[0]) != "ok" {
            let what = iolite_bench::engine::show(&ok[0]);
            run.failures.push(format!("{label}: {}: integrity_check: {what}", s.name));
        }
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// A client's count, and its writes' latencies.
fn client_thread(
    engine: &str,
    queue: Option<&Shared>,
    path: &Path,
    text: &str,
    n: i64,
    seed: u64,
    seconds: f64,
) -> Result<(u64, Vec<f64>)> {
    let e = find(engine)?;
    let db = e.open(path)?;
    db.busy_timeout(10_000)?;
    db.batch(text)?;
    let mut c = Client::new(&*db, n, 100 + seed, "BEGIN IMMEDIATE")?;
    let queue = queue.map(Shared::writer).transpose()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut count, mut waits) = (0, Vec::new());
    while Instant::now() < end {
        let which = c.draw();
        let t = Instant::now();
        let done = match &queue {
            Some(q) if which >= 3 => tatp_queue::write(q, &mut c, which),
            _ => c.run(which).map(|_| ()),
        };
        match done {
            Ok(()) => count += 1,
            Err(e) if e.kind == Kind::Busy => {}
            Err(e) => return Err(e.at(MIX[which].1)),
        }
        if which >= 3 {
            waits.push(t.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok((count, waits))
}

/// Counts system calls of 1,000 transactions in each syncing mode.
fn syncs(run: &mut Run) {
    let Ok(me) = std::env::current_exe() else { return };
    for (config, journal, sync, _) in CONFIGS {
        for engine in ["stock", "iolite"] {
            let count = |transactions: &str| -> Result<Vec<(String, u64)>> {
                let out = Command::new("strace")
                    .args(["-f", "-c", "-U", "name,calls", "-e"])
                    .arg("trace=fdatasync,fsync,pwrite64,pread64,unlink,ftruncate,fcntl,openat")
                    .arg(&me)
                    .args(["worker", "tatp", engine, journal, sync, transactions])
                    .output()?;
                if !out.status.success() {
                    return Err(String::from_utf8_lossy(&out.stderr).trim().to_string().into());
                }
                let text = String::from_utf8_lossy(&out.stderr).into_owned();
                let line = |l: &str| {
                    let mut p = l.split_whitespace();
                    let name = p.next()?.to_string();
                    Some((name, p.next()?.parse().ok()?))
                };
                Ok(text.lines().filter_map(line).filter(|(n, _)| n != "total").collect())
            };
            let done = count("0").and_then(|before| {
                let after = count("1000")?;
                let less = |(n, c): (String, u64)| {
                    let b = before.iter().find(|x| x.0 == n).map_or(0, |x| x.1);
                    format!("{n} {}", c.saturating_sub(b))
                };
                Ok(after.into_iter().map(less).collect::<Vec<_>>().join(", "))
            });
            match done {
                Ok(text) => {
                    run.texts.push((format!("system calls of 1,000 transactions, {config}, {engine}"), text))
                }
                Err(e) => run.missing.push(format!("system calls by strace, {config}, {engine}: {e}")),
            }
        }
    }
}

/// The order of syncs, deletions and cuts in a commit of the mode DELETE FULL, by strace: the lists of both engines must agree.
fn order(run: &mut Run) -> Result<()> {
    let me = std::env::current_exe()?;
    let seen = |engine: &str| -> Result<Vec<String>> {
        let out = Command::new("strace")
            .args(["-f", "-y", "-e", "trace=fdatasync,fsync,unlink,ftruncate"])
            .arg(&me)
            .args(["worker", "tatp", engine, "DELETE", "FULL", "300"])
            .output()?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).trim().to_string().into());
        }
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        let of = |l: &str| {
            let (call, rest) = l.trim_start_matches(|c: char| !c.is_ascii_lowercase()).split_once('(')?;
            let place = rest.split(['>', ',', ')']).next().unwrap_or("");
            let file = match place {
                p if p.contains("-journal") => "journal",
                p if p.contains(".db") => "database",
                _ => "directory",
            };
            let call = if call == "fsync" { "fdatasync" } else { call };
            Some(format!("{call} {file}"))
        };
        let calls: Vec<String> = text
            .lines()
            .filter(|l| l.contains("tatp-") || l.contains("iolite-bench"))
            .filter_map(of)
            .collect();
        // Up to the last commit: what closing and removing the file do is not asked.
        let end = calls.iter().rposition(|c| c == "fdatasync database").map_or(0, |i| i + 1);
        Ok(calls[..end].to_vec())
    };
    let (a, b) = (seen("stock")?, seen("iolite")?);
    let begin = a.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    let first = a.iter().zip(&b).position(|(x, y)| x != y);
    let verdict = match first {
        None if a.len() == b.len() => format!("equal: {} calls in the same order: {begin}, ...", a.len()),
        None => format!("stock makes {} calls, iolite {}", a.len(), b.len()),
        Some(i) => format!("differs at call {i}: stock {}, iolite {}", a[i], b[i]),
    };
    run.texts.push(("order of syncs of 300 transactions, DELETE FULL".into(), verdict));
    Ok(())
}

/// Some transactions in a process that strace watches.
pub fn worker(o: &Options) -> Result<()> {
    let [_, engine, journal, sync, count] = &o.words[..] else {
        return Err("tatp ENGINE JOURNAL SYNC N".into());
    };
    let e = find(engine)?;
    // `--subscribers N`, `--only I` (one transaction of the mix): for a profiler.
    let n = o.number("subscribers", 10_000, 10_000);
    masters(n)?;
    let s = seat(&*e, engine, n, &pragmas(journal, sync))?;
    let mut c = Client::new(&*s.db, n, 6, "BEGIN")?;
    let only: Option<usize> = o.text("only").and_then(|t| t.parse().ok());
    for _ in 0..count.parse::<u64>().unwrap_or(0) {
        let t = only.unwrap_or_else(|| c.draw());
        c.run(t)?;
    }
    drop(c);
    s.remove();
    Ok(())
}

/// A loaded database of its own under a name, for the mixed load.
pub fn loaded(engine: &dyn Engine, name: &str, n: i64, settings: &str) -> Result<Seat> {
    masters(n)?;
    seat(engine, name, n, settings)
}

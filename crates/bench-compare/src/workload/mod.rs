//! The workloads, and what they have in common: places for files, engines taken in turn, processes of their own.

mod blob;
mod events;
mod footprint;
mod kv;
mod load;
mod memory;
mod mixed;
mod mobile;
pub mod prepare;
mod ranks;
mod row;
mod ssb;
mod ssb_large;
mod suite;
mod tatp;
mod tatp_data;
mod tatp_queue;
mod text;
mod tpch;
mod tpch_data;
mod tpch_queries;
mod vectors;
mod web;
pub mod writes;

use crate::Options;
use crate::envelope::Run;
use crate::gate;
use iolite_bench::cases;
use iolite_bench::engine::{Database, Engine, Result};
use std::path::PathBuf;
use std::time::Instant;

/// A workload.
pub struct Workload {
    /// Its name on the command line.
    pub id: &'static str,
    /// Raised when its shape changes.
    pub version: u32,
    /// What it is.
    pub title: &'static str,
    /// Measures it.
    pub run: fn(&Options, &mut Run) -> Result<()>,
}

/// All workloads.
pub const ALL: &[Workload] = &[
    Workload { id: "row", version: 3, title: "The row engine, case by case", run: row::run },
    Workload { id: "suite", version: 3, title: "W1 to W13", run: suite::run },
    Workload { id: "ssb", version: 4, title: "Star Schema Benchmark", run: ssb::run },
    Workload {
        id: "ssb-large",
        version: 1,
        title: "Star Schema Benchmark at scale 10, iolite alone",
        run: ssb_large::run,
    },
    Workload { id: "tatp", version: 2, title: "TATP, one client and eight", run: tatp::run },
    Workload { id: "kv", version: 2, title: "SQLite as a key-value database", run: kv::run },
    Workload { id: "blob", version: 1, title: "Blobs of 100 KB and 10 MB", run: blob::run },
    Workload { id: "footprint", version: 2, title: "Sizes of libraries and databases", run: footprint::run },
    Workload { id: "web", version: 2, title: "Web mix by processes and threads", run: web::run },
    Workload { id: "load", version: 1, title: "CSV import and maintenance", run: load::run },
    Workload { id: "prepare", version: 1, title: "Preparing 50 statement shapes", run: prepare::run },
    Workload {
        id: "memory",
        version: 1,
        title: "Memory after opening and after a workload",
        run: memory::run,
    },
    Workload { id: "mobile", version: 1, title: "Mobile trace shape", run: mobile::run },
    Workload { id: "tpch", version: 4, title: "TPC-H", run: tpch::run },
    Workload { id: "events", version: 1, title: "A wide table of events", run: events::run },
    Workload { id: "vectors", version: 1, title: "W10: nearest vectors", run: vectors::run },
    Workload {
        id: "text",
        version: 1,
        title: "W11 and W12: ranked texts, alone and with vectors",
        run: text::run,
    },
    Workload { id: "ranks", version: 1, title: "Rows by rank, in other shapes and states", run: ranks::run },
    Workload { id: "mixed", version: 1, title: "TATP writers beside SSB queries", run: mixed::run },
];

/// The settings that the workloads call tuned.
pub const TUNED: &str =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-65536;";

/// What is kept with them after a loss of power.
pub const TUNED_KEEPS: &str = "consistent; the last commits may be lost";

/// Dispatches what runs in a process of its own.
pub fn worker(o: &Options) -> Result<()> {
    match o.words.first().map(String::as_str) {
        Some("ssb") => ssb::worker(o),
        Some("events") => events::worker(o),
        Some("ssb-large") => ssb_large::worker(o),
        Some("web") => web::worker(o),
        Some("tatp") => tatp::worker(o),
        Some("memory") => memory::worker(o),
        _ => Err("no such worker".into()),
    }
}

/// A place for a database of this process.
pub fn place(name: &str) -> Result<PathBuf> {
    let dir = cases::directory();
    std::fs::create_dir_all(&dir)?;
    let p = dir.join(format!("{name}-{}.db", std::process::id()));
    cases::remove(&p);
    Ok(p)
}

/// Takes engines in turn: `f` answers one sample of an engine in a turn. The order alternates: A B, B A, A B.
pub fn in_turn(
    engines: usize,
    turns: usize,
    mut f: impl FnMut(usize, usize) -> Result<f64>,
) -> Result<Vec<Vec<f64>>> {
    let mut out = vec![Vec::new(); engines];
    for t in 0..turns {
        for k in 0..engines {
            let k = if t % 2 == 0 { k } else { engines - 1 - k };
            settle();
            out[k].push(f(k, t)?);
        }
    }
    Ok(out)
}

/// As [`in_turn`], for engines that keep much in small pieces: before each turn what the others left free is given back to the
/// system. A page cache in the gaps between it answered a read in 1.1 us that takes 0.85 in a process of its own. Elsewhere a
/// query would be made to clear its temporary memory anew each time, which no program of one engine does.
pub fn in_turn_apart(
    engines: usize,
    turns: usize,
    mut f: impl FnMut(usize, usize) -> Result<f64>,
) -> Result<Vec<Vec<f64>>> {
    in_turn(engines, turns, |k, t| {
        crate::native::trim();
        f(k, t)
    })
}

/// Lets the allocator put its lists in order, outside of anybody's time: after stock SQLite's sorter has given back a million
/// small pieces, the next large request of the process took 105 ms, whoever made it. And lets a checkpoint that a thread makes
/// beside the last engine's commits come to its end: 10 ms or so.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(25));
    for shift in 10..24 {
        std::hint::black_box(Vec::<u8>::with_capacity(1 << shift));
    }
}

/// Seconds that something takes.
pub fn timed<T>(f: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let t = Instant::now();
    let x = f()?;
    Ok((x, t.elapsed().as_secs_f64()))
}

/// An open database with the name under which its figures are reported.
pub struct Seat {
    /// `iolite`, or with a setting: `iolite rows`.
    pub name: String,
    /// The database.
    pub db: Box<dyn Database>,
    /// Its file.
    pub path: PathBuf,
}

impl Seat {
    /// Opens a new database with settings.
    pub fn open(e: &dyn Engine, name: &str, file: &str, settings: &str) -> Result<Seat> {
        let path = place(&format!("{file}-{}", name.replace(' ', "-")))?;
        let db = e.open(&path)?;
        db.batch(settings)?;
        Ok(Seat { name: name.into(), db, path })
    }

    /// Closes and removes it.
    pub fn remove(self) {
        drop(self.db);
        cases::remove(&self.path);
    }
}

/// Compares a query's answers of all seats.
pub fn compare(seats: &[Seat], what: &str, sql: &str, sorted: bool) -> Result<usize> {
    let mut all = Vec::new();
    for s in seats {
        let rows = s.db.rows(sql).map_err(|e| e.at(&format!("{what}, {}", s.name)))?;
        all.push((s.name.as_str(), rows));
    }
    gate::equal(what, &all, sorted)?;
    Ok(all.first().map_or(0, |a| a.1.len()))
}

/// Runs this program again with these arguments and answers what it prints.
pub fn again(args: &[String]) -> Result<String> {
    let me = std::env::current_exe()?;
    let out = std::process::Command::new(me).arg("worker").args(args).output()?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).trim().to_string().into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

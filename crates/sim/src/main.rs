//! `sim`: crash and fault simulation of all journal modes and synchronous levels.

#![forbid(unsafe_code)]

use iolite_os::FileKind;
use iolite_sim::crash::{Counts, Effort, check, lies};
use iolite_sim::disk::{Disk, Op};
use iolite_sim::fault;
use iolite_sim::race::{RACES, Search, explore, left_behind};
use iolite_sim::script::{FILES, MODES, SYNCS, Setting, Subject, record};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

const USAGE: &str = "sim [--mode M] [--sync S] [--seed N] [--only crash|exclusive|large|search|fault|alloc|files|races] [--race N] [--quick]

Runs scripted transactions in each journal mode (delete, truncate, persist, memory, off, wal) and synchronous level
(off, normal, full, extra), or in the named ones, and recovers what power losses and crashes at every write and sync
may leave. At the first failure it says how to repeat it, and exits with 1.";

struct Options {
    mode: Option<String>,
    sync: Option<String>,
    seed: u64,
    quick: bool,
    what: String,
    /// Of the races, this one and those behind it.
    race: usize,
}

fn options() -> Result<Options, String> {
    let mut o = Options { mode: None, sync: None, seed: 1, quick: false, what: "all".into(), race: 0 };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut value = || args.next().ok_or(format!("{a} needs a value"));
        match a.as_str() {
            "--mode" => o.mode = Some(value()?),
            "--sync" => o.sync = Some(value()?),
            "--seed" => o.seed = value()?.parse().map_err(|_| "--seed needs a number".to_string())?,
            "--race" => o.race = value()?.parse().map_err(|_| "--race needs a number".to_string())?,
            "--only" => o.what = value()?,
            "--quick" => o.quick = true,
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(o)
}

fn run(o: &Options) -> Result<Counts, String> {
    let effort = if o.quick { Effort::quick() } else { Effort::full() };
    let mut all = Counts::default();
    println!(
        "{:<10}{:<8}{:>4}{:>8}{:>10}{:>12}{:>8}{:>7}{:>8}",
        "mode", "sync", "av", "points", "images", "recoveries", "nested", "stock", "s"
    );
    for mode in MODES {
        for sync in SYNCS {
            if o.mode.as_deref().is_some_and(|m| m != mode) || o.sync.as_deref().is_some_and(|s| s != sync) {
                continue;
            }
            if o.what != "all" && o.what != "crash" && o.what != "exclusive" {
                continue;
            }
            // The fourth time with EXCLUSIVE locks.
            for round in if o.what == "exclusive" {
                3..4
            } else if o.quick {
                0..1
            } else {
                0..4
            } {
                let start = Instant::now();
                let (auto_vacuum, exclusive) = if round == 3 { (0, true) } else { (round, false) };
                let setting = Setting {
                    mode,
                    sync,
                    auto_vacuum,
                    exclusive,
                    subject: Subject::Rows,
                    others: &[],
                    seed: o.seed,
                };
                let r = record(Arc::new(Disk::new(o.seed)), setting, setting.script(o.quick))?;
                let c = check(&r, effort, 0)?;
                println!(
                    "{mode:<10}{sync:<8}{:>4}{:>8}{:>10}{:>12}{:>8}{:>7}{:>8.1}",
                    if exclusive { "ex".into() } else { auto_vacuum.to_string() },
                    c.points,
                    c.images,
                    c.recoveries,
                    c.nested,
                    c.stock,
                    start.elapsed().as_secs_f64()
                );
                all.add(c);
            }
        }
    }
    if o.what == "all" || o.what == "crash" {
        dropped(o)?;
    }
    if o.what == "all" || o.what == "large" {
        large(o, &mut all)?;
    }
    if o.what == "all" || o.what == "search" {
        search(o, &mut all)?;
    }
    if matches!(o.what.as_str(), "all" | "races" | "large") {
        races(o)?;
    }
    if matches!(o.what.as_str(), "all" | "fault" | "alloc") {
        faults(o, &mut all)?;
    }
    if matches!(o.what.as_str(), "all" | "files") {
        files(o, &mut all)?;
    }
    Ok(all)
}

/// Large values that go to the file at once: crashes, and each sync left out.
fn large(o: &Options, all: &mut Counts) -> Result<(), String> {
    for n in 0..if o.quick { 24 } else { 128 } {
        left_behind(o.seed.wrapping_add(n), false)?;
        left_behind(o.seed.wrapping_add(n), true)?;
    }
    let effort = if o.quick { Effort::quick() } else { Effort::full() };
    for (sync, exclusive) in [("off", false), ("normal", false), ("full", false), ("normal", true)] {
        let unwanted = |given: &Option<String>, this: &str| given.as_deref().is_some_and(|g| g != this);
        if unwanted(&o.mode, "wal") || unwanted(&o.sync, sync) {
            continue;
        }
        let start = Instant::now();
        let setting = Setting {
            mode: "wal",
            sync,
            auto_vacuum: 0,
            exclusive,
            subject: Subject::Large,
            others: &[],
            seed: o.seed,
        };
        let r = record(Arc::new(Disk::new(o.seed)), setting, setting.script(true))?;
        let c = check(&r, effort, 0)?;
        println!(
            "large values: wal {sync}{}: {c:?}, {:.1} s",
            if exclusive { " exclusive" } else { "" },
            start.elapsed().as_secs_f64()
        );
        all.add(c);
        if sync != "normal" || exclusive {
            continue;
        }
        for of in [FileKind::Wal, FileKind::MainDb] {
            let (caught, n) = lies(setting, &setting.script(true), Some(of), lies_stride(o))?;
            println!("dropped syncs: large values, {of:?}: {caught} of {n} caught");
            if caught == 0 {
                return Err(format!("no dropped sync was caught: {setting:?} {of:?}"));
            }
        }
    }
    Ok(())
}

/// Tables of texts and vectors: crashes, failing calls, failing allocations.
fn search(o: &Options, all: &mut Counts) -> Result<(), String> {
    let effort = if o.quick { Effort::quick() } else { Effort::full() };
    for (mode, sync, auto_vacuum) in
        [("delete", "full", 0), ("wal", "normal", 1), ("wal", "full", 0), ("truncate", "normal", 2)]
    {
        let unwanted = |given: &Option<String>, this: &str| given.as_deref().is_some_and(|g| g != this);
        if unwanted(&o.mode, mode) || unwanted(&o.sync, sync) {
            continue;
        }
        let start = Instant::now();
        let setting = Setting {
            mode,
            sync,
            auto_vacuum,
            exclusive: false,
            subject: Subject::Search,
            others: &[],
            seed: o.seed,
        };
        let clean = record(Arc::new(Disk::new(o.seed)), setting, setting.script(o.quick))?;
        let mut c = check(&clean, effort, 0)?;
        let stride = if o.quick { 211 } else { 11 };
        for (op, code) in fault::FILE_FAULTS {
            c.add(fault::calls(&clean, op, code, false, stride)?);
        }
        c.add(fault::allocations(&clean, if o.quick { 211 } else { 31 })?);
        println!("search: {mode} {sync}: {c:?}, {:.1} s", start.elapsed().as_secs_f64());
        all.add(c);
    }
    Ok(())
}

/// Every how many-th sync is left out. Odd: a rollback journal at FULL is synced twice for each commit, and the
/// second makes up for the first.
fn lies_stride(o: &Options) -> usize {
    if o.quick { 3 } else { 1 }
}

/// Every sync, left out: how many are missed.
fn dropped(o: &Options) -> Result<(), String> {
    let kinds = [
        ("delete", "full", Some(FileKind::Journal)),
        ("delete", "full", Some(FileKind::MainDb)),
        ("delete", "full", None),
        ("delete", "extra", None),
        ("truncate", "normal", Some(FileKind::Journal)),
        ("persist", "normal", Some(FileKind::Journal)),
        ("wal", "full", Some(FileKind::Wal)),
        ("wal", "normal", Some(FileKind::Wal)),
        ("wal", "normal", Some(FileKind::MainDb)),
    ];
    for (mode, sync, of) in kinds {
        if o.mode.as_deref().is_some_and(|m| m != mode) || o.sync.as_deref().is_some_and(|s| s != sync) {
            continue;
        }
        let setting = Setting {
            mode,
            sync,
            auto_vacuum: 0,
            exclusive: false,
            subject: Subject::Rows,
            others: &[],
            seed: o.seed,
        };
        let (caught, all) = lies(setting, &setting.script(true), of, lies_stride(o))?;
        let of = of.map_or("directory".to_string(), |k| format!("{k:?}"));
        println!("dropped syncs: {mode} {sync} {of}: {caught} of {all} caught");
        if caught == 0 {
            return Err(format!("no dropped sync was caught: {setting:?} {of}"));
        }
    }
    Ok(())
}

/// Connections interleaved.
fn races(o: &Options) -> Result<(), String> {
    let (stride, random) = if o.quick { (4, 100) } else { (1, 2000) };
    for (i, setup) in RACES.iter().enumerate().skip(o.race).filter(|s| o.what != "large" || s.1.large) {
        let start = Instant::now();
        // Runs with large values have many calls.
        let (stride, random) = match (setup.large, o.quick) {
            (false, _) => (stride, random),
            (true, quick) => (if quick { 0 } else { 40 }, random / 2),
        };
        let s = explore(*setup, o.seed, Search { every: 1, pairs: stride, drawn: random })?;
        println!(
            "schedules {i}: {:?}{} {:?} lease {}: {} with up to two preemptions, {} deaths, {} drawn, {:.1} s",
            setup.parts,
            if setup.large { " large" } else { "" },
            setup.modes,
            setup.lease,
            s.systematic,
            s.deaths,
            s.random,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

fn faults(o: &Options, all: &mut Counts) -> Result<(), String> {
    println!("{:<10}{:<8}{:>8}{:>10}{:>12}{:>8}", "mode", "sync", "faults", "images", "recoveries", "s");
    let stride = if o.quick { 17 } else { 1 };
    for mode in MODES {
        for sync in ["normal", "full"] {
            if o.mode.as_deref().is_some_and(|m| m != mode) || o.sync.as_deref().is_some_and(|s| s != sync) {
                continue;
            }
            let start = Instant::now();
            let setting = Setting {
                mode,
                sync,
                auto_vacuum: 1,
                exclusive: false,
                subject: Subject::Rows,
                others: &[],
                seed: o.seed,
            };
            let clean = fault::measure(setting, setting.script(o.quick))?;
            let mut c = Counts::default();
            for op in Op::ALL {
                if o.what == "alloc" {
                    break;
                }
                for persistent in [false, true] {
                    c.add(fault::calls(&clean, op, op.code(), persistent, stride)?);
                    if op == Op::Write {
                        c.add(fault::calls(&clean, op, iolite::Code::Full, persistent, stride)?);
                    }
                    if matches!(op, Op::Lock | Op::ShmLock) && !persistent {
                        c.add(fault::calls(&clean, op, iolite::Code::Busy, persistent, stride)?);
                    }
                }
            }
            if o.what == "alloc" {
                c = Counts::default();
            }
            c.add(fault::allocations(&clean, stride)?);
            println!(
                "{mode:<10}{sync:<8}{:>8}{:>10}{:>12}{:>8.1}",
                c.faults,
                c.images,
                c.recoveries,
                start.elapsed().as_secs_f64()
            );
            all.add(c);
        }
    }
    Ok(())
}

/// Calls that fail, in transactions over three files in every combination of modes.
fn files(o: &Options, all: &mut Counts) -> Result<(), String> {
    let stride = if o.quick { 13 } else { 1 };
    for mode in FILES {
        for others in FILES.iter().flat_map(|a| FILES.iter().map(move |b| [*a, *b])) {
            let start = Instant::now();
            let others: &'static [&'static str] = Box::leak(Box::new(others));
            let setting = Setting {
                mode,
                sync: o.sync.as_deref().and_then(|s| SYNCS.into_iter().find(|x| *x == s)).unwrap_or("full"),
                auto_vacuum: 0,
                exclusive: false,
                subject: Subject::Rows,
                others,
                seed: o.seed,
            };
            let clean = fault::measure(setting, setting.script(true))?;
            let mut c = Counts::default();
            for (op, code) in fault::FILE_FAULTS {
                for persistent in [false, true] {
                    c.add(fault::calls(&clean, op, code, persistent, stride)?);
                }
            }
            c.add(fault::allocations(&clean, 7 * stride)?);
            println!("files: {mode} {others:?}: {} faults, {:.1} s", c.faults, start.elapsed().as_secs_f64());
            all.add(c);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let o = match options() {
        Ok(o) => o,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    match run(&o) {
        Ok(c) => {
            println!("{c:?}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            println!("FAILED {e}");
            ExitCode::FAILURE
        }
    }
}

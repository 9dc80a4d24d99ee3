//! `sim`: crash and fault simulation of all journal modes and synchronous levels.

#![forbid(unsafe_code)]

use iolite_sim::crash::{Counts, Effort, check};
use iolite_sim::disk::Disk;
use iolite_sim::script::{MODES, SYNCS, Setting, record};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

const USAGE: &str = "sim [--mode M] [--sync S] [--seed N] [--quick]

Runs scripted transactions in each journal mode (delete, truncate, persist, memory, off, wal) and synchronous level
(off, normal, full, extra), or in the named ones, and recovers what power losses and crashes at every write and sync
may leave. At the first failure it says how to repeat it, and exits with 1.";

struct Options {
    mode: Option<String>,
    sync: Option<String>,
    seed: u64,
    quick: bool,
}

fn options() -> Result<Options, String> {
    let mut o = Options { mode: None, sync: None, seed: 1, quick: false };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut value = || args.next().ok_or(format!("{a} needs a value"));
        match a.as_str() {
            "--mode" => o.mode = Some(value()?),
            "--sync" => o.sync = Some(value()?),
            "--seed" => o.seed = value()?.parse().map_err(|_| "--seed needs a number".to_string())?,
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
            for auto_vacuum in if o.quick { 0..1 } else { 0..3 } {
                let start = Instant::now();
                let setting = Setting { mode, sync, auto_vacuum, seed: o.seed };
                let r = record(Arc::new(Disk::new(o.seed)), setting, setting.script(o.quick))?;
                let c = check(&r, effort, 0)?;
                println!(
                    "{mode:<10}{sync:<8}{auto_vacuum:>4}{:>8}{:>10}{:>12}{:>8}{:>7}{:>8.1}",
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
    Ok(all)
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

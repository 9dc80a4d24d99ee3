//! The row engine alone: the cases of `iolite-bench`, stock, iolite and Turso in turn, columns off. A case that Turso cannot do
//! is missing for it alone.
//!
//! Beside the two commits with a sync stands a bare write of one frame with fdatasync, to a file that has its length as the
//! log has, taken in the same turns.

use crate::Options;
use crate::engine;
use crate::envelope::Run;
use crate::machine;
use iolite_bench::cases::{CASES, sample, tear_down};
use iolite_bench::engine::{Engine, Result};

/// Bytes of one frame of the log.
const FRAME: usize = 4096 + 24;

/// Measures all cases, or those named by `--cases a,b`.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 11, 5);
    let found = engine::rows();
    for c in CASES.iter().filter(|c| o.text("cases").is_none_or(|l| l.split(',').any(|n| n == c.name))) {
        let mut engines: Vec<&dyn Engine> = found.iter().map(|e| &**e).collect();
        // Once without stock's and iolite's times: an error here is not theirs.
        if let [stock, _, other] = engines[..]
            && let Err(e) = sample(&[stock, other], c, 1)
        {
            run.missing.push(format!("{}: {}: {e}", c.title, other.name()));
            engines.pop();
            tear_down(other, c);
        }
        let synced = c.name.ends_with("-full");
        for e in &engines {
            let keeps = match (c.name.ends_with("-delete"), synced) {
                (false, false) => "consistent; the last commits may be lost",
                _ => "each commit",
            };
            run.set(c.name, e.name(), c.pragmas, keeps);
        }
        let mut times = vec![Vec::new(); engines.len()];
        let mut bare = Vec::new();
        let done = (|| -> Result<()> {
            if synced {
                for _ in 0..turns {
                    for (k, t) in sample(&engines, c, 1)?.into_iter().enumerate() {
                        times[k].extend(t);
                    }
                    let a = machine::appends(c.timed, FRAME, true)?;
                    bare.push(a.iter().sum::<f64>() / a.len() as f64);
                }
            } else {
                times = sample(&engines, c, turns)?;
            }
            Ok(())
        })();
        if let Err(e) = done {
            run.failures.push(format!("{}: {e}", c.name));
            continue;
        }
        for (k, e) in engines.iter().enumerate() {
            let us = times[k].iter().map(|s| s * 1e6).collect();
            run.less(c.title, "", e.name(), "us", us);
        }
        if synced {
            run.less(c.title, "", "bare write and fdatasync", "us", bare.iter().map(|s| s * 1e6).collect());
        }
        run.gates.push(format!("{}: answers and contents equal", c.title));
    }
    Ok(())
}

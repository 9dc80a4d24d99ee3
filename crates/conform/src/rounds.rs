//! Rounds of an instrument, each drawn from a seed and its number, until the time is over or five have failed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often what was drawn, or happened.
pub type Counts = BTreeMap<String, u64>;

/// Runs the rounds of the program `name` with its arguments `[--seconds N] [--seed S] [--round R]`: `play` is given a folder of its
/// own, the seed and the round's number. The folder of a round that fails stays.
pub fn run(
    name: &str,
    args: &[&str],
    mut play: impl FnMut(&Path, u64, u64, &mut Counts) -> Result<(), String>,
) -> ExitCode {
    let (mut seconds, mut seed, mut only) = (60, 1, None);
    for pair in args.chunks(2) {
        match (pair[0], pair.get(1).and_then(|v| v.parse::<u64>().ok())) {
            ("--seconds", Some(n)) => seconds = n,
            ("--seed", Some(n)) => seed = n,
            ("--round", Some(n)) => only = Some(n),
            _ => {
                eprintln!("usage: {name} [--seconds N] [--seed S] [--round R]");
                return ExitCode::from(2);
            }
        }
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut counts = Counts::new();
    let (mut passed, mut failed) = (0, 0);
    for round in only.unwrap_or(0).. {
        let dir = std::env::temp_dir().join(format!("iolite-{name}-{}-{round}", std::process::id()));
        match play(&dir, seed, round, &mut counts) {
            Ok(()) => {
                passed += 1;
                let _ = std::fs::remove_dir_all(&dir);
            }
            Err(e) => {
                failed += 1;
                println!("FAILED seed {seed} round {round} (kept in {}):\n{e}", dir.display());
            }
        }
        if only.is_some() || Instant::now() >= end || failed >= 5 {
            break;
        }
    }
    for (what, n) in &counts {
        println!("{n:>8} {what}");
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

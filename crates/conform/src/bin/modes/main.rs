//! `modes [--seconds N] [--seed S] [--round R] [--steps K] [--engines E,E,E] [--show N]`: histories in which everything is changed
//! in the midst.
//!
//! Two or three processes of both engines with two connections each, some with a shared cache, work on two files. A round is a list of drawn steps, made one after
//! the other: transactions over one file or both with savepoints, statements and backups that stay open, changes of
//! journal mode, locking mode, caches, memory maps, page size, auto-vacuum and all other settings, VACUUM, checkpoints, changes
//! of the schema, ATTACH and DETACH; processes are killed. A step may be held before its n-th call to the system (`testkit::traced`) while
//! others are made, and goes on then, or its process is killed there.
//!
//! What must hold: `play.rs` says it, after each read and in the end, when both engines look at the files. Only what
//! is in the way is ever refused. `journal_mode` `memory` and `off` promise nothing to who is killed or takes something back: a
//! round does not do so in them.
//!
//! A round that fails is played again with fewer steps as long as it fails in the same way, then with stock alone: what stock does, too, is told so.
//! Since nothing is left to the scheduler, it mostly comes again.

mod agent;
mod draw;
mod play;

use draw::{Actor, Op};
use iolite_conform::differ::rng::Rng;
use play::{End, Play};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const USAGE: &str =
    "usage: modes [--seconds N] [--seed S] [--round R] [--steps K] [--engines E,E,E] [--show N]";

/// What must not be, and the story that led there.
type Failure = (String, Vec<String>);

/// A round, as drawn.
struct Round {
    /// The bytes that each page of a file reserves, and its other settings.
    files: [(i32, String); 2],
    /// And whether the two connections of the process share a cache.
    engines: Vec<(&'static str, bool)>,
    steps: Vec<(Actor, Op)>,
    kills: Vec<bool>,
    first: &'static str,
}

impl Round {
    fn draw(seed: u64, steps: usize, engines: &Option<Vec<&'static str>>) -> Round {
        let mut rng = Rng::new(seed);
        // Files that are attached to each other have one encoding.
        let encoding = *rng.pick(&["UTF-8", "UTF-8", "UTF-16le", "UTF-16be"]);
        let mut file = || {
            let pragmas = format!(
                "PRAGMA encoding = '{encoding}'; PRAGMA page_size = {}; PRAGMA auto_vacuum = {}; PRAGMA journal_mode = {}",
                rng.pick(draw::PAGES),
                rng.below(3),
                rng.pick(&["wal", "delete"])
            );
            (*rng.pick(&[0, 0, 0, 8, 32]), pragmas)
        };
        let files = [file(), file()];
        // Two processes meet more often than three.
        let mut drawn = vec![*rng.pick(&["iolite", "iolite", "stock"]), "iolite", "stock"];
        drawn.truncate(2 + rng.below(2));
        let engines = engines.clone().unwrap_or(drawn);
        let engines: Vec<_> = engines.into_iter().map(|e| (e, rng.chance(15))).collect();
        let steps = draw::history(&mut rng, steps, engines.len());
        let kills = engines.iter().map(|_| rng.chance(50)).collect();
        Round { files, engines, steps, kills, first: rng.pick::<&str>(&["iolite", "stock"]) }
    }

    /// Plays it; the failure and the story of a round that failed.
    fn play(&self, dir: &Path) -> (Result<End, Failure>, BTreeMap<String, u64>) {
        let mut play = match Play::new(dir, &self.files, &self.engines) {
            Ok(play) => play,
            Err(e) => return (Err((e, Vec::new())), BTreeMap::new()),
        };
        let mut ended = Ok(End::Passed);
        for (who, op) in &self.steps {
            ended = play.step(*who, op);
            if !matches!(ended, Ok(End::Passed)) {
                break;
            }
        }
        let kills: &[bool] = if matches!(ended, Ok(End::Passed)) { &self.kills } else { &[] };
        let (last, play) = match ended {
            Ok(End::Passed) => play.finish(kills, self.first),
            _ => play.drop_all(),
        };
        let ended = ended.and_then(|end| last.map(|()| end));
        (ended.map_err(|e| (e, play.story)), play.counts)
    }

    fn with(&self, steps: Vec<(Actor, Op)>) -> Round {
        Round {
            files: self.files.clone(),
            engines: self.engines.clone(),
            steps,
            kills: self.kills.clone(),
            first: self.first,
        }
    }
}

/// The kind of a failure.
fn kind(failure: &str) -> String {
    failure.split(':').next().unwrap_or("").to_string()
}

/// Whether a round fails in this way, in one of some attempts.
fn fails(round: &Round, dir: &Path, how: &str) -> Option<Failure> {
    (0..2).find_map(|_| round.play(dir).0.err().filter(|f| kind(&f.0) == how))
}

/// Leaves steps out, many at a time at first, as long as it fails in the same way.
fn shrink(round: &Round, dir: &Path, how: &str) -> (Vec<(Actor, Op)>, Option<Failure>) {
    let (mut steps, mut last) = (round.steps.clone(), None);
    let mut size = steps.len().div_ceil(2);
    let end = Instant::now() + Duration::from_secs(60);
    while size > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            if let Some(f) = fails(&round.with(fewer.clone()), dir, how) {
                (steps, last) = (fewer, Some(f));
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    // What is made while another is held.
    for i in 0..steps.len() {
        let mut j = 0;
        while let Op::Pause { op, before, during, kill } = &steps[i].1 {
            let mut fewer = steps.clone();
            let mut inner = during.clone();
            let op = op.clone();
            fewer[i].1 = if j < inner.len() {
                inner.remove(j);
                Op::Pause { op, before: *before, during: inner, kill: *kill }
            } else if j == inner.len() {
                *op
            } else {
                break;
            };
            match fails(&round.with(fewer.clone()), dir, how).filter(|_| Instant::now() < end) {
                Some(f) => (steps, last) = (fewer, Some(f)),
                None => j += 1,
            }
        }
    }
    (steps, last)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agent", "stock"] => return agent::serve("stock"),
        ["agent", _] => return agent::serve("iolite"),
        _ => {}
    }
    let (mut seconds, mut seed, mut only, mut steps, mut show, mut engines) = (60, 1, None, 250, 3, None);
    let mut rest = args.iter();
    while let (Some(a), value) = (rest.next(), rest.next().cloned().unwrap_or_default()) {
        match (a.as_str(), value.parse::<u64>()) {
            ("--seconds", Ok(n)) => seconds = n,
            ("--seed", Ok(n)) => seed = n,
            ("--round", Ok(n)) => only = Some(n),
            ("--steps", Ok(n)) => steps = n as usize,
            ("--show", Ok(n)) => show = n,
            ("--engines", _) => {
                let of = |e: &str| if e == "stock" { "stock" } else { "iolite" };
                engines = Some(value.split(',').map(of).collect());
            }
            _ => {
                eprintln!("{USAGE}");
                std::process::exit(2);
            }
        }
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let dir = std::env::temp_dir().join(format!("iolite-modes-{}", std::process::id()));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (mut passed, mut void, mut failed, mut stocks) = (0, 0, 0, 0);
    for number in only.unwrap_or(0).. {
        let round = Round::draw(seed.wrapping_mul(1_000_003).wrapping_add(number), steps, &engines);
        let (ended, drawn) = round.play(&dir);
        drawn.into_iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
        match ended {
            Ok(End::Passed) => passed += 1,
            Ok(End::Void) => void += 1,
            Err((failure, story)) => {
                let how = kind(&failure);
                let (fewer, found) = shrink(&round, &dir, &how);
                let mut alone = round.with(fewer);
                alone.engines = round.engines.iter().map(|e| ("stock", e.1)).collect();
                let too = fails(&alone, &dir, &how).is_some();
                let (failure, story) = found.unwrap_or((format!("{failure} (not again)"), story));
                if too {
                    stocks += 1
                } else {
                    failed += 1
                }
                let whose = if too { "stock does so, too" } else { "FAILED" };
                println!(
                    "{whose}: seed {seed} round {number}: {failure}\n{:?} {:?}",
                    round.files, round.engines
                );
                story.iter().for_each(|l| println!("  {l:.600}"));
            }
        }
        if only.is_some() || Instant::now() >= end || failed >= show {
            break;
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    counts.iter().for_each(|(what, n)| println!("{n:>8} {what}"));
    println!(
        "{passed} passed, {void} without a verdict, {stocks} that fail with stock alone, {failed} failed"
    );
    if failed > 0 {
        std::process::exit(1);
    }
}

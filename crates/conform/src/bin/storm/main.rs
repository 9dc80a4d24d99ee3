//! `storm [--seconds N] [--seed S] [--round R]`: processes of both engines with several threads each, by the C interface.
//!
//! A round has one database and some processes, which are killed and stopped at random. Within a process, threads hand
//! connections to each other, share their caches, or all use one connection: they commit, take back, hold statements,
//! vacuum, back up, change journal modes, interrupt each other, close while others finalize, and fork. Whatever a statement
//! shows is held against the model (`model`); at the end both engines look at the file, and stock checks it. Nothing but a
//! code that means "not now" may be answered, and each process comes to its end in time. A round is drawn from the seed and its
//! number; what the threads meet when is the scheduler's.

mod handle;
mod model;
mod shared;
mod worker;

use handle::{Handle, library};
use iolite_conform::differ::rng::Rng;
use iolite_conform::rounds::{self, Counts};
use iolite_testkit::{continue_process, stop_process};
use model::{Known, SCHEMA, check};
use shared::Shared;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long a process may take to come to its end.
const LONGEST: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["worker", dir, number, seed] => return told(work(dir, number, seed)),
        ["verify", dir, engine] => return told(verify(Path::new(dir), engine)),
        _ => {}
    }
    rounds::run("storm", &args, |dir, seed, round, counts| {
        play(dir, seed.wrapping_mul(1_000_003).wrapping_add(round), counts)
    })
}

/// What a process of a round found goes to its errors.
fn told(found: Result<Vec<String>, String>) -> ExitCode {
    let found = found.unwrap_or_else(|e| vec![e]);
    found.iter().for_each(|f| eprintln!("{f}"));
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn work(dir: &str, number: &str, seed: &str) -> Result<Vec<String>, String> {
    let number = number.parse().map_err(|_| "no number")?;
    worker::work(Path::new(dir), number, seed.parse().map_err(|_| "no seed")?)
}

fn play(dir: &Path, seed: u64, counts: &mut Counts) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    let mut rng = Rng::new(seed);
    let shared = Shared::of(dir).map_err(|e| e.to_string())?;
    shared.begin(63, 2);
    prepare(dir, &mut rng)?;
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let process = |args: &[&str], name: &str| -> Result<Child, String> {
        let errors = File::options().append(true).create(true).open(dir.join(format!("{name}.err")));
        Command::new(&exe)
            .args(args)
            .stdin(Stdio::null())
            .stderr(errors.map_err(|e| e.to_string())?)
            .spawn()
            .map_err(|e| e.to_string())
    };
    let mut count = |what: &str| *counts.entry(what.to_string()).or_default() += 1;
    let path = dir.to_string_lossy().into_owned();
    let mut generation = 0;
    let mut start = |i: usize| {
        generation += 1;
        let seed = seed ^ (generation << 24);
        let drawn = worker::Drawn::draw(&mut Rng::new(seed));
        let name = format!("p{i}-{}-{:?}", drawn.engine, drawn.kind);
        process(&["worker", &path, &i.to_string(), &seed.to_string()], &name).map(|c| (c, name))
    };
    let mut wrong = Vec::new();
    let mut workers: Vec<(Child, String)> = (0..rng.range(1, 3)).map(&mut start).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let lasts = Duration::from_millis(1000 + rng.below(3000) as u64);
    let disturbed = rng.chance(70);
    let mut ended = |w: &mut (Child, String), killed: bool| {
        let last = Instant::now() + LONGEST;
        loop {
            match w.0.try_wait() {
                Ok(Some(status)) if status.success() || killed => return,
                Ok(Some(status)) => return wrong.push(format!("{}: {status}", w.1)),
                _ if Instant::now() < last => std::thread::sleep(Duration::from_millis(5)),
                _ => {
                    wrong.push(format!("{} did not come to its end", w.1));
                    let _ = w.0.kill();
                    let _ = w.0.wait();
                    return;
                }
            }
        }
    };
    while begun.elapsed() < lasts {
        std::thread::sleep(Duration::from_millis(5 + rng.below(200) as u64));
        let i = rng.below(workers.len());
        if !disturbed {
            continue;
        }
        if rng.chance(30) {
            count("stops");
            stop_process(workers[i].0.id());
            std::thread::sleep(Duration::from_millis(5 + rng.below(150) as u64));
            continue_process(workers[i].0.id());
        } else if rng.chance(60) {
            count("kills");
            let early = matches!(workers[i].0.try_wait(), Ok(Some(_)));
            let _ = workers[i].0.kill();
            ended(&mut workers[i], !early);
            workers[i] = start(i)?;
        }
    }
    shared.end();
    for w in &mut workers {
        count(w.1.split_once('-').map_or("", |n| n.1));
        ended(w, false);
    }
    let engines = if rng.chance(50) { ["iolite", "stock"] } else { ["stock", "iolite"] };
    for engine in engines {
        let name = format!("verify-{engine}");
        ended(&mut (process(&["verify", &path, engine], &name)?, name), false);
    }
    *counts.entry("transactions".into()).or_default() +=
        (0..63).map(|w| shared.acknowledged(w) as u64).sum::<u64>();
    for e in std::fs::read_dir(dir).map_err(|e| e.to_string())?.flatten() {
        if e.file_name().to_string_lossy().ends_with(".err") {
            let text = std::fs::read_to_string(e.path()).unwrap_or_default();
            wrong.extend(text.lines().take(8).map(str::to_owned));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The database, made by stock.
fn prepare(dir: &Path, rng: &mut Rng) -> Result<(), String> {
    let db = Handle::open(library("stock")?, &dir.join("a.db").to_string_lossy(), 0);
    let db = db.map_err(|e| format!("{e:?}"))?;
    let settings = format!(
        "PRAGMA page_size = {}; PRAGMA auto_vacuum = {}; PRAGMA journal_mode = {}; {SCHEMA}",
        rng.pick(&[512, 1024, 4096, 4096, 65536]),
        rng.below(3),
        rng.pick(&["wal", "wal", "delete", "truncate", "persist"]),
    );
    db.run(&settings).map_err(|e| format!("{e:?}"))
}

/// Looks at the file when all is over.
fn verify(dir: &Path, engine: &str) -> Result<Vec<String>, String> {
    let shared = Shared::of(dir).map_err(|e| e.to_string())?;
    let name = dir.join("a.db").to_string_lossy().into_owned();
    let told = |e| format!("at the end, {engine}: {e:?}");
    // A forked child may outlive its killed parent.
    let db = Handle::open(library(engine)?, &name, 12_000).map_err(told)?;
    let state = check(&db, &Known::of_now(shared), shared).map_err(told)?;
    let whole = db.row("PRAGMA integrity_check").map_err(told)?;
    let broken = (whole != ["ok"]).then(|| format!("integrity_check: {whole:?}"));
    Ok(state.into_iter().chain(broken).map(|w| format!("at the end, {engine}: {w}")).collect())
}

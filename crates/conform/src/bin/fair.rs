//! `fair [--seconds N] [--rounds N]`: a writer beside readers that never wait, of both engines in all pairings.
//!
//! One process commits small transactions, two read without a pause, all with a busy timeout. Each journal mode is run with each
//! pairing of engines, the pairings in turn within a round. Told are the commits and reads per second (medians over the rounds) and
//! the slowest commit. Stock's writer beside stock's readers is what the others are measured against.

use iolite_conform::engine::{Db, Trouble};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: fair [--seconds N] [--rounds N]";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (mut seconds, mut rounds) = (2.0, 3);
    let mut rest = &args[..];
    loop {
        rest = match rest {
            ["work", role, engine, path, time] => {
                let time = Duration::from_secs_f64(time.parse().unwrap_or(1.0));
                let done =
                    if *role == "writer" { write(engine, path, time) } else { read(engine, path, time) };
                return match done {
                    Ok(Told { done, slowest }) => println!("{done} {}", slowest.as_micros()),
                    Err(e) => fail(&format!("{role} of {engine}: {e}")),
                };
            }
            ["--seconds", n, rest @ ..] => {
                seconds = n.parse().unwrap_or_else(|_| fail(USAGE));
                rest
            }
            ["--rounds", n, rest @ ..] => {
                rounds = n.parse().unwrap_or_else(|_| fail(USAGE));
                rest
            }
            [] => break,
            _ => fail(USAGE),
        };
    }
    if let Err(e) = run(seconds, rounds) {
        fail(&e);
    }
}

fn fail(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(1);
}

/// What a process did.
#[derive(Clone, Copy, Default)]
struct Told {
    /// Its commits, or reads.
    done: u64,
    slowest: Duration,
}

const ROWS: i64 = 10_000;

fn write(engine: &str, path: &str, time: Duration) -> Result<Told, String> {
    let db = open(engine, path)?;
    turn(time, |round| db.run(&format!("UPDATE t SET v=v+1 WHERE id={}", round as i64 * 7919 % ROWS + 1)))
}

fn read(engine: &str, path: &str, time: Duration) -> Result<Told, String> {
    let db = open(engine, path)?;
    turn(time, |round| {
        let from = round as i64 * 104_729 % ROWS;
        db.numbers(&format!("SELECT count(*), sum(v) FROM t WHERE id BETWEEN {from} AND {}", from + 200))
            .map(drop)
    })
}

fn open(engine: &str, path: &str) -> Result<Db, String> {
    let db = Db::open(engine, path)?;
    db.run("PRAGMA busy_timeout=20000; PRAGMA synchronous=NORMAL").map_err(|e| format!("{e:?}"))?;
    Ok(db)
}

/// Does it until the time is over.
fn turn(time: Duration, act: impl Fn(u64) -> Result<(), Trouble>) -> Result<Told, String> {
    let mut told = Told::default();
    let start = Instant::now();
    while start.elapsed() < time {
        let one = Instant::now();
        act(told.done).map_err(|e| format!("{e:?}"))?;
        told.slowest = told.slowest.max(one.elapsed());
        told.done += 1;
    }
    Ok(told)
}

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];
/// The writer's engine and the readers'.
const PAIRS: [(&str, &str); 4] =
    [("stock", "stock"), ("iolite", "iolite"), ("iolite", "stock"), ("stock", "iolite")];

fn run(seconds: f64, rounds: usize) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("iolite-fair-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    println!(
        "{:<10}{:<9}{:<9}{:>11}{:>8}{:>14}{:>11}{:>8}",
        "mode", "writer", "readers", "commits/s", "ratio", "slowest (ms)", "reads/s", "ratio"
    );
    for mode in MODES {
        let mut seen = [const { Vec::new() }; PAIRS.len()];
        for _ in 0..rounds {
            for (pair, seen) in PAIRS.iter().zip(&mut seen) {
                seen.push(one(&dir, mode, *pair, seconds)?);
            }
        }
        let median = |f: &dyn Fn(&(Told, u64)) -> f64, of: &[(Told, u64)]| {
            let mut all: Vec<f64> = of.iter().map(f).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let commits = |of: &[(Told, u64)]| median(&|s| s.0.done as f64 / seconds, of);
        let reads = |of: &[(Told, u64)]| median(&|s| s.1 as f64 / seconds, of);
        for ((writer, readers), of) in PAIRS.iter().zip(&seen) {
            let slowest = of.iter().map(|s| s.0.slowest).max().unwrap_or_default();
            println!(
                "{mode:<10}{writer:<9}{readers:<9}{:>11.0}{:>8.2}{:>14.1}{:>11.0}{:>8.2}",
                commits(of),
                commits(of) / commits(&seen[0]),
                slowest.as_secs_f64() * 1e3,
                reads(of),
                reads(of) / reads(&seen[0]),
            );
        }
    }
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())
}

/// A new file, one writer and two readers: what the writer did, and how often was read.
fn one(dir: &Path, mode: &str, (writer, readers): (&str, &str), seconds: f64) -> Result<(Told, u64), String> {
    let path = dir.join("fair.db");
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        let _ = std::fs::remove_file(name);
    }
    let name = path.to_string_lossy().into_owned();
    {
        let c = iolite_stock::Connection::open(&name).map_err(|e| e.message)?;
        c.execute_batch(&format!(
            "PRAGMA journal_mode={mode}; CREATE TABLE t(id INTEGER PRIMARY KEY, v INTEGER, pad TEXT); \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < {ROWS}) \
             INSERT INTO t SELECT i, i, printf('%.*c', 60, 'x') FROM n"
        ))
        .map_err(|e| e.message)?;
    }
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let start = |role: &str, engine: &str| -> Result<Child, String> {
        Command::new(&me)
            .args(["work", role, engine, &name, &seconds.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())
    };
    let children = [start("reader", readers), start("reader", readers), start("writer", writer)];
    let mut told = Vec::new();
    for child in children {
        let out = child?.wait_with_output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let n: Vec<u64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        match n[..] {
            [done, slowest] if out.status.success() => {
                told.push(Told { done, slowest: Duration::from_micros(slowest) })
            }
            _ => return Err(format!("a process failed in mode {mode}, writer {writer}, readers {readers}")),
        }
    }
    Ok((told[2], told[0].done + told[1].done))
}

//! `fair [--seconds N] [--rounds N] [--mode M]`: a writer beside readers that never wait, of both engines in all pairings.
//!
//! One process commits small transactions, two read without a pause, all with a busy timeout. Each journal mode is run with each
//! pairing of engines, the pairings in turn within a round. Told are the commits and reads per second, the time within which 999 of
//! 1,000 commits were done, and the slowest commit, each the median over the rounds. Stock's writer beside stock's readers is what
//! the others are measured against.

use iolite_conform::engine::{Db, Trouble};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: fair [--seconds N] [--rounds N] [--mode M]";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (mut seconds, mut rounds, mut modes) = (2.0, 3, MODES.to_vec());
    let mut rest = &args[..];
    loop {
        rest = match rest {
            ["work", role, engine, path, mode, time] => {
                let time = Duration::from_secs_f64(time.parse().unwrap_or(1.0));
                let done = if *role == "writer" {
                    write(engine, path, mode, time)
                } else {
                    read(engine, path, mode, time)
                };
                return match done {
                    Ok(t) => println!("{} {} {}", t.done, t.slow.as_micros(), t.slowest.as_micros()),
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
            ["--mode", m, rest @ ..] => {
                modes.retain(|known| known == m);
                rest
            }
            [] => break,
            _ => fail(USAGE),
        };
    }
    if let Err(e) = run(seconds, rounds, &modes) {
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
    /// 999 of 1,000 took no longer.
    slow: Duration,
    slowest: Duration,
}

const ROWS: i64 = 10_000;

fn write(engine: &str, path: &str, mode: &str, time: Duration) -> Result<Told, String> {
    let db = open(engine, path, mode)?;
    turn(time, |round| db.run(&format!("UPDATE t SET v=v+1 WHERE id={}", round as i64 * 7919 % ROWS + 1)))
}

fn read(engine: &str, path: &str, mode: &str, time: Duration) -> Result<Told, String> {
    let db = open(engine, path, mode)?;
    turn(time, |round| {
        let from = round as i64 * 104_729 % ROWS;
        db.numbers(&format!("SELECT count(*), sum(v) FROM t WHERE id BETWEEN {from} AND {}", from + 200))
            .map(drop)
    })
}

/// A connection, in this mode: the rollback modes are a connection's, not the file's.
fn open(engine: &str, path: &str, mode: &str) -> Result<Db, String> {
    let db = Db::open(engine, path)?;
    db.run(&format!("PRAGMA busy_timeout=20000; PRAGMA journal_mode={mode}; PRAGMA synchronous=NORMAL"))
        .map_err(|e| format!("{e:?}"))?;
    Ok(db)
}

/// Does it until the time is over.
fn turn(time: Duration, act: impl Fn(u64) -> Result<(), Trouble>) -> Result<Told, String> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let one = Instant::now();
        act(times.len() as u64).map_err(|e| format!("{e:?}"))?;
        times.push(one.elapsed());
    }
    times.sort();
    let at = |n: usize| times.get(n).copied().unwrap_or_default();
    let done = times.len();
    Ok(Told { done: done as u64, slow: at(done * 999 / 1000), slowest: at(done.saturating_sub(1)) })
}

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];
/// The writer's engine and the readers'.
const PAIRS: [(&str, &str); 4] =
    [("stock", "stock"), ("iolite", "iolite"), ("iolite", "stock"), ("stock", "iolite")];

fn run(seconds: f64, rounds: usize, modes: &[&str]) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("iolite-fair-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    println!(
        "{:<10}{:<9}{:<9}{:>11}{:>8}{:>12}{:>14}{:>11}{:>8}",
        "mode", "writer", "readers", "commits/s", "ratio", "99.9 % (ms)", "slowest (ms)", "reads/s", "ratio"
    );
    for mode in modes {
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
            println!(
                "{mode:<10}{writer:<9}{readers:<9}{:>11.0}{:>8.2}{:>12.1}{:>14.1}{:>11.0}{:>8.2}",
                commits(of),
                commits(of) / commits(&seen[0]),
                median(&|s| s.0.slow.as_secs_f64() * 1e3, of),
                median(&|s| s.0.slowest.as_secs_f64() * 1e3, of),
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
            .args(["work", role, engine, &name, mode, &seconds.to_string()])
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
            [done, slow, slowest] if out.status.success() => {
                let [slow, slowest] = [slow, slowest].map(Duration::from_micros);
                told.push(Told { done, slow, slowest })
            }
            _ => return Err(format!("a process failed in mode {mode}, writer {writer}, readers {readers}")),
        }
    }
    Ok((told[2], told[0].done + told[1].done))
}

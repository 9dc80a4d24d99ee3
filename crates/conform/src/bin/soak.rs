//! `soak [--seconds N]`: two iolite processes and one of stock SQLite write and read the same file, in DELETE and in WAL mode.
//!
//! Each process adds to two counters, its own and one that both share, and writes a line to a log, all in one transaction;
//! in between it reads and checks that counters and log agree. Now and then a large value is replaced as well, which in WAL
//! mode goes to the file at once where iolite writes it (`PRAGMA large_value_direct`). At the end the sums must add up, both engines must find
//! the file in order, and nothing but `SQLITE_BUSY` may have gone wrong.

use iolite_conform::engine::{Db, Trouble};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["worker", engine, path, seconds] => {
            let seconds = seconds.parse().unwrap_or(1);
            match worker(engine, path, Duration::from_secs(seconds)) {
                Ok((commits, busy)) => println!("{commits} {busy}"),
                Err(e) => {
                    eprintln!("{engine}: {e}");
                    std::process::exit(1);
                }
            }
        }
        ["--seconds", n] => run(n.parse().unwrap_or(60)),
        [] => run(60),
        _ => {
            eprintln!("usage: soak [--seconds N]");
            std::process::exit(2);
        }
    }
}

/// The processes: all but the last are iolite's.
const WORKERS: [&str; 3] = ["iolite", "second", "stock"];

/// The large value that goes with a number.
const LARGE: &str = "CAST(printf('%.*c', 100000, char(65 + n % 26)) AS BLOB)";

fn worker(engine: &str, path: &str, time: Duration) -> Result<(u64, u64), String> {
    let db = Db::open(engine, path)?;
    if let Db::Iolite(c) = &db {
        c.execute_batch("PRAGMA large_value_direct=on").map_err(|e| format!("{e:?}"))?;
    }
    let (mut commits, mut busy) = (0u64, 0u64);
    let start = Instant::now();
    let mut round = 0u64;
    while start.elapsed() < time {
        round += 1;
        let done = if round.is_multiple_of(3) {
            // One snapshot: the counters and the log must agree in it.
            db.numbers(
                "SELECT (SELECT n FROM counter WHERE id='both'), (SELECT count(*) FROM log), \
                 (SELECT sum(n) FROM counter WHERE id<>'both'), (SELECT count(*) FROM log INDEXED BY log_who)",
            )
            .and_then(|v| match v[..] {
                [a, b, c, d] if a == b && a == c && a == d => Ok(()),
                _ => Err(Trouble::Other(format!("a snapshot does not add up: {v:?}"))),
            })
            .and_then(|()| db.numbers(&format!("SELECT v = {LARGE}, length(v) FROM big")))
            .and_then(|v| match v[..] {
                [1, 100_000] => Ok(()),
                _ => Err(Trouble::Other(format!("the large value is none that was written: {v:?}"))),
            })
        } else {
            transaction(&db, engine, round).inspect(|()| commits += 1)
        };
        match done {
            Ok(()) => {}
            Err(Trouble::Busy) => {
                busy += 1;
                std::thread::sleep(Duration::from_micros(200 + round % 7 * 100));
            }
            Err(Trouble::Other(e)) => return Err(e),
        }
    }
    Ok((commits, busy))
}

fn transaction(db: &Db, engine: &str, round: u64) -> Result<(), Trouble> {
    db.run("BEGIN IMMEDIATE")?;
    let text = "x".repeat((round * 37 % 900) as usize);
    let done = db
        .run(&format!("UPDATE counter SET n=n+1 WHERE id IN ('both', '{engine}')"))
        .and_then(|()| db.run(&format!("INSERT INTO log(who, text) VALUES('{engine}', '{text}')")))
        .and_then(|()| match round.is_multiple_of(4) {
            true => db.run(&format!("UPDATE big SET n=n+1; UPDATE big SET v={LARGE}")),
            false => Ok(()),
        })
        .and_then(|()| commit(db));
    if done.is_err() {
        // Whatever happened, the transaction must be gone before the next try.
        let _ = db.run("ROLLBACK");
    }
    done
}

/// COMMIT may be busy while readers finish; the transaction stays open then.
fn commit(db: &Db) -> Result<(), Trouble> {
    for _ in 0..2000 {
        match db.run("COMMIT") {
            Err(Trouble::Busy) => std::thread::sleep(Duration::from_micros(300)),
            other => return other,
        }
    }
    Err(Trouble::Busy)
}

fn run(seconds: u64) {
    let mut ok = true;
    for mode in ["delete", "wal"] {
        let dir = std::env::temp_dir().join(format!("iolite-soak-{}", std::process::id()));
        let done = one_mode(mode, &dir, seconds);
        let _ = std::fs::remove_dir_all(&dir);
        match done {
            Ok(line) => println!("{mode}: {line}"),
            Err(e) => {
                println!("{mode}: FAILED: {e}");
                ok = false;
            }
        }
    }
    println!("{} passed, {} failed", ok as u8, !ok as u8);
    if !ok {
        std::process::exit(1);
    }
}

fn one_mode(mode: &str, dir: &Path, seconds: u64) -> Result<String, String> {
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    let path: PathBuf = dir.join("soak.db");
    let name = path.to_string_lossy().into_owned();
    {
        let c = iolite_stock::Connection::open(&name).map_err(|e| e.message)?;
        c.execute_batch(&format!(
            "PRAGMA journal_mode={mode}; CREATE TABLE counter(id TEXT PRIMARY KEY, n INTEGER); \
             CREATE TABLE log(id INTEGER PRIMARY KEY, who TEXT, text TEXT); CREATE INDEX log_who ON log(who); \
             INSERT INTO counter VALUES('both', 0), ('iolite', 0), ('second', 0), ('stock', 0); \
             CREATE TABLE big(n INTEGER, v BLOB); INSERT INTO big VALUES(0, NULL); UPDATE big SET v={LARGE}"
        ))
        .map_err(|e| e.message)?;
    }
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let start = |engine: &str| -> Result<Child, String> {
        Command::new(&me)
            .args(["worker", engine, &name, &seconds.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())
    };
    let children = WORKERS.map(|engine| (engine, start(engine)));
    let mut counts = Vec::new();
    for (engine, child) in children {
        let child = child?;
        let out = child.wait_with_output().map_err(|e| e.to_string())?;
        if !out.status.success() {
            return Err(format!("the {engine} process failed"));
        }
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let n: Vec<u64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        counts.push((n[0], n[1]));
    }
    for engine in ["iolite", "stock"] {
        let db = Db::open(engine, &name)?;
        let sums = db
            .numbers(
                "SELECT sum(n) FILTER (WHERE id='both'), sum(n) FILTER (WHERE id='iolite'), \
                 sum(n) FILTER (WHERE id='second'), sum(n) FILTER (WHERE id='stock') FROM counter",
            )
            .map_err(|_| "cannot read the counters".to_string())?;
        let want = [counts[0].0 + counts[1].0 + counts[2].0, counts[0].0, counts[1].0, counts[2].0];
        let want = want.map(|n| n as i64);
        if sums != want {
            return Err(format!("{engine} reads counters {sums:?}, the processes committed {want:?}"));
        }
    }
    let c = iolite_stock::Connection::open(&name).map_err(|e| e.message)?;
    let stock_says = c.query("PRAGMA integrity_check").map_err(|e| e.message)?;
    if stock_says != vec![vec![iolite_stock::Value::Text(b"ok".to_vec())]] {
        return Err(format!("stock finds {stock_says:?}"));
    }
    drop(c);
    let own = iolite::engine::Connection::open(&name).map_err(|e| e.to_string())?;
    let we_say = own.query("PRAGMA integrity_check", &[]).map_err(|e| e.to_string())?;
    if we_say.len() != 1 || we_say[0][0].to_string_lossy() != "ok" {
        return Err(format!("iolite finds {we_say:?}"));
    }
    Ok(format!(
        "iolite {} and {} commits ({} and {} busy), stock {} ({} busy), sums and both integrity checks right",
        counts[0].0, counts[1].0, counts[0].1, counts[1].1, counts[2].0, counts[2].1
    ))
}

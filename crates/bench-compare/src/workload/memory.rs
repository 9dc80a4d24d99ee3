//! Memory that only the process holds, as the kernel counts it: of a process without a database, after opening one, after a
//! scan, after point reads, after aggregation; each engine in a process of its own.

use super::{TUNED, again, in_turn, place};
use crate::Options;
use crate::engine::{DuckDb, settings};
use crate::envelope::Run;
use crate::machine;
use iolite_bench::cases;
use iolite_bench::engine::{Engine, Result, find, int, text};
use iolite_bench::random::Random;
use std::path::Path;

const STAGES: [&str; 5] =
    ["opened", "after a point read", "after 10,000 point reads", "after SELECT *", "after GROUP BY"];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 3, 2);
    let mut names = vec!["stock", "iolite", "iolite rows"];
    if DuckDb::find(1).is_ok() {
        names.push("duckdb");
    }
    let mut paths = Vec::new();
    for n in &names {
        let e = engine(n)?;
        let path = place(&format!("memory-{}", n.replace(' ', "-")))?;
        let db = e.open(&path)?;
        db.batch(settings(e.name(), "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", "SELECT 1"))?;
        db.batch("CREATE TABLE t(id INTEGER PRIMARY KEY, g INTEGER, payload TEXT)")?;
        let mut i = 0;
        db.load("t", 3, &mut |row| {
            i += 1;
            row.extend([int(i), int(i * 7907 % 1000), text(format!("{i:064}"))]);
            i <= 300_000
        })?;
        drop(db);
        run.set("", n, settings(e.name(), TUNED, "default limit, one thread"), "reads");
        paths.push(path);
    }
    let mut found = vec![vec![Vec::new(); STAGES.len()]; names.len()];
    let mut sums = vec![String::new(); names.len()];
    in_turn(names.len(), turns, |k, _| {
        let out = again(&["memory".into(), names[k].into(), paths[k].to_string_lossy().into_owned()])?;
        let mut lines = out.lines();
        for f in &mut found[k] {
            f.push(lines.next().and_then(|l| l.parse::<f64>().ok()).ok_or("a number is wanted")? / 1e6);
        }
        sums[k] = lines.collect();
        Ok(0.0)
    })?;
    paths.iter().for_each(|p| cases::remove(p));
    if sums.iter().any(|s| *s != sums[0]) {
        return Err(format!("answers differ: {sums:?}").into());
    }
    run.gates.push("sums of the workload's answers equal".into());
    for (k, n) in names.iter().enumerate() {
        for (stage, samples) in STAGES.iter().zip(std::mem::take(&mut found[k])) {
            run.less(stage, "300,000 rows, 64 MB of page cache", n, "MB", samples);
        }
    }
    Ok(())
}

fn engine(name: &str) -> Result<Box<dyn Engine>> {
    match name {
        "duckdb" => Ok(Box::new(DuckDb::find(1)?)),
        _ => find(name.split(' ').next().unwrap_or(name)),
    }
}

/// Runs the workload and prints what each stage holds beyond the empty process.
pub fn worker(o: &Options) -> Result<()> {
    let [_, name, path] = &o.words[..] else { return Err("memory ENGINE PATH".into()) };
    let e = engine(name)?;
    let before = machine::resident();
    let stage = || println!("{}", machine::resident() - before);
    let db = e.open(Path::new(path))?;
    db.batch(settings(e.name(), TUNED, "SELECT 1"))?;
    if name.ends_with("rows") {
        db.batch("PRAGMA analytics=off")?;
    }
    let mut sum = db.rows("SELECT 1")?.len() as i64;
    stage();
    let mut q = db.prepare("SELECT payload FROM t WHERE id = ?")?;
    sum += q.run(&[int(5)])?;
    stage();
    let mut r = Random(1);
    for _ in 0..10_000 {
        sum += q.run(&[int(r.range(1, 300_000))])?;
    }
    stage();
    sum += db.prepare("SELECT * FROM t")?.run(&[])?;
    stage();
    sum += db.prepare("SELECT g, count(*), sum(id) FROM t GROUP BY g")?.run(&[])?;
    stage();
    println!("{sum}");
    Ok(())
}

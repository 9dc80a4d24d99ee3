//! Whole blobs of 100 KB and 10 MB, read and written by one connection with shares of reads from 0 to 100 %, beside plain files.
//!
//! A read looks at the value's bytes through the engine's own call; each write has new content. Files are read with one
//! `pread` into a buffer and written with one write and fdatasync.

use super::{Seat, in_turn, timed};
use crate::Options;
use crate::engine::{DuckDb, settings};
use crate::envelope::Run;
use iolite_bench::cases;
use iolite_bench::engine::{Engine, Query, Result, Value, find};
use iolite_bench::random::Random;
use std::io::Write;
use std::os::unix::fs::FileExt;

const CONFIGS: &[(&str, &str)] = &[
    ("WAL FULL", "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"),
    ("DELETE FULL", "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"),
    ("WAL NORMAL", "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"),
];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    for (label, bytes) in [("100 KB", 100_000), ("10 MB", 10_000_000)] {
        for (config, text) in CONFIGS {
            if let Err(e) = one(o, run, label, bytes, config, text) {
                run.failures.push(format!("{label}, {config}: {e}"));
            }
        }
    }
    if let Err(e) = direct(o, run) {
        run.failures.push(format!("10 MB, large_value_direct: {e}"));
    }
    Ok(())
}

/// Values of 10 MB that go to the file at once, which only iolite can, beside stock's in the same settings.
fn direct(o: &Options, run: &mut Run) -> Result<()> {
    let (bytes, turns, rounds) = (10_000_000, o.number("repeat", 7, 5), 10);
    let (config, text) = CONFIGS[0];
    let mut v = Value::Blob(vec![0u8; bytes]);
    let mut number = 0;
    let mut change = |v: &mut Value| {
        number += 1;
        if let Value::Blob(b) = v {
            renew(b, number);
        }
    };
    let mut seats = Vec::new();
    for name in ["stock", "iolite"] {
        let seat = Seat::open(&*find(name)?, name, "blob-direct", text)?;
        if name == "iolite" {
            seat.db.batch("PRAGMA large_value_direct=on")?;
        }
        seat.db.batch("CREATE TABLE b(id INTEGER PRIMARY KEY, v BLOB)")?;
        seat.db.prepare("INSERT INTO b VALUES(1, ?)")?.run(std::slice::from_ref(&v))?;
        seats.push(seat);
    }
    run.set(
        "WAL FULL, large_value_direct",
        "iolite",
        "as WAL FULL, and PRAGMA large_value_direct=on",
        "each commit",
    );
    let mut writes =
        seats.iter().map(|s| s.db.prepare("UPDATE b SET v = ? WHERE id = 1")).collect::<Result<Vec<_>>>()?;
    // The first values leave the free pages, and a log that begins anew.
    for w in &mut writes {
        for _ in 0..4 {
            change(&mut v);
            w.run(std::slice::from_ref(&v))?;
        }
    }
    let times = in_turn(seats.len(), turns, |k, _| {
        let mut sum = 0.0;
        for _ in 0..rounds {
            change(&mut v);
            sum += timed(|| writes[k].run(std::slice::from_ref(&v)).map(|_| ()))?.1;
        }
        Ok(sum * 1e6 / rounds as f64)
    })?;
    drop(writes);
    for s in &seats {
        change(&mut v);
        s.db.prepare("UPDATE b SET v = ? WHERE id = 1")?.run(std::slice::from_ref(&v))?;
        if s.db.rows("SELECT v FROM b")? != [[v.clone()]] {
            return Err(format!("{}: what is read is not what was written", s.name).into());
        }
    }
    run.gates.push("10 MB, large_value_direct: written values are read back".into());
    for (s, t) in seats.iter().zip(times) {
        run.less("10 MB: write with large_value_direct", config, &s.name, "us", t);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// Changes all of a value, at the cost of one pass over it.
fn renew(value: &mut [u8], number: u64) {
    let mut x = iolite_bench::random::mix(number);
    for c in value.chunks_mut(8) {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        c.copy_from_slice(&x.to_le_bytes()[..c.len()]);
    }
}

/// What reads and writes one value.
enum Target<'s> {
    Sql { read: Box<dyn Query + 's>, write: Box<dyn Query + 's> },
    File { path: std::path::PathBuf, buffer: Vec<u8> },
}

impl Target<'_> {
    fn read(&mut self, bytes: usize) -> Result<()> {
        let n = match self {
            Target::Sql { read, .. } => read.run(&[])?,
            Target::File { path, buffer } => {
                let f = std::fs::File::open(path)?;
                f.read_exact_at(buffer, 0)?;
                std::hint::black_box(&buffer[..]);
                buffer.len() as i64
            }
        };
        if n == bytes as i64 { Ok(()) } else { Err(format!("{n} bytes were read").into()) }
    }

    fn write(&mut self, value: &Value) -> Result<()> {
        match self {
            Target::Sql { write, .. } => write.run(std::slice::from_ref(value)).map(|_| ()),
            Target::File { path, .. } => {
                let Value::Blob(b) = value else { return Err("a blob is wanted".into()) };
                let mut f =
                    std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
                f.write_all(b)?;
                Ok(f.sync_data()?)
            }
        }
    }
}

fn one(o: &Options, run: &mut Run, label: &str, bytes: usize, config: &str, text: &str) -> Result<()> {
    let turns = o.number("repeat", 7, 5);
    let rounds = if bytes > 1_000_000 { 10 } else { 200 };
    let mut engines: Vec<Box<dyn Engine>> = vec![find("stock")?, find("iolite")?];
    if config == "WAL FULL" {
        engines.extend(DuckDb::find(1).ok().map(|d| Box::new(d) as Box<dyn Engine>));
    }
    let mut value = vec![0u8; bytes];
    let mut seats = Vec::new();
    let keeps =
        if config.ends_with("FULL") { "each commit" } else { "consistent; the last commits may be lost" };
    for e in &engines {
        let s = settings(e.name(), text, "PRAGMA memory_limit='1GB'");
        run.set(config, e.name(), s, keeps);
        let seat = Seat::open(&**e, e.name(), "blob", s)?;
        seat.db.batch("CREATE TABLE b(id INTEGER PRIMARY KEY, v BLOB)")?;
        renew(&mut value, 0);
        seat.db.prepare("INSERT INTO b VALUES(1, ?)")?.run(&[Value::Blob(value.clone())])?;
        seats.push(seat);
    }
    // The gate: what is written last is read back byte by byte.
    for s in &seats {
        renew(&mut value, 99);
        s.db.prepare("UPDATE b SET v = ? WHERE id = 1")?.run(&[Value::Blob(value.clone())])?;
        if s.db.rows("SELECT v FROM b")? != [[Value::Blob(value.clone())]] {
            return Err(format!("{}: what is read is not what was written", s.name).into());
        }
    }
    run.gates.push(format!("{label}, {config}: written values are read back"));
    let file = cases::directory().join(format!("blob-{}.bin", std::process::id()));
    let mut targets = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for s in &seats {
        targets.push(Target::Sql {
            read: s.db.prepare("SELECT v FROM b WHERE id = 1")?,
            write: s.db.prepare("UPDATE b SET v = ? WHERE id = 1")?,
        });
        names.push(s.name.clone());
    }
    if config != "WAL NORMAL" {
        run.set(config, "file", "one pread; one write and fdatasync", "each write");
        targets.push(Target::File { path: file.clone(), buffer: vec![0; bytes] });
        names.push("file".into());
    }
    let mut v = Value::Blob(value);
    targets.iter_mut().try_for_each(|t| t.write(&v))?;
    let mut number = 1_000;
    let mut change = |v: &mut Value| {
        number += 1;
        if let Value::Blob(b) = v {
            renew(b, number);
        }
    };
    let reads = in_turn(targets.len(), turns, |k, _| {
        let ((), s) = timed(|| (0..rounds * 5).try_for_each(|_| targets[k].read(bytes)))?;
        Ok(s * 1e6 / (rounds * 5) as f64)
    })?;
    let writes = in_turn(targets.len(), turns, |k, _| {
        let mut sum = 0.0;
        for _ in 0..rounds {
            change(&mut v);
            sum += timed(|| targets[k].write(&v))?.1;
        }
        Ok(sum * 1e6 / rounds as f64)
    })?;
    let mut mixes = Vec::new();
    for share in [50, 90] {
        let mut draws: Vec<Random> = targets.iter().map(|_| Random(share)).collect();
        mixes.push((
            share,
            in_turn(targets.len(), turns, |k, _| {
                let mut sum = 0.0;
                for _ in 0..rounds * 2 {
                    sum += if draws[k].next() % 100 < share {
                        timed(|| targets[k].read(bytes))?.1
                    } else {
                        change(&mut v);
                        timed(|| targets[k].write(&v))?.1
                    };
                }
                Ok(sum * 1e6 / (rounds * 2) as f64)
            })?,
        ));
    }
    for (k, name) in names.iter().enumerate() {
        run.less(&format!("{label}: read"), config, name, "us", reads[k].clone());
        run.less(&format!("{label}: write"), config, name, "us", writes[k].clone());
        for (share, t) in &mixes {
            run.less(&format!("{label}: {share} % reads"), config, name, "us", t[k].clone());
        }
    }
    drop(targets);
    let _ = std::fs::remove_file(file);
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

//! Rows by rank, in shapes and states that nobody tuned for: a program that asks again, one that has just opened the file, one that
//! inserts between its questions.
//!
//! Documents are those of W11, ten times as many. A fresh connection has read the schema, and nothing of the index.

use super::text::{LENGTH, fill, zipf};
use super::{Seat, TUNED, TUNED_KEEPS, in_turn};
use crate::Options;
use crate::envelope::Run;
use crate::gate;
use iolite_bench::engine::{Engine, Iolite, Query, Result, Stock, Value, int, text};
use iolite_bench::random::Random;
use std::time::Instant;

/// Name, query, how many rows.
const SHAPES: &[(&str, &str, usize)] = &[
    ("a rare word", "w4000", 10),
    ("a word in a twelfth", "w70", 10),
    ("a word in every second", "w8", 10),
    ("the most frequent word", "w1", 10),
    ("three words, any", "w6 OR w50 OR w900", 10),
    ("three words, all", "w6 w20 w50", 10),
    ("a frequent and a rare word", "w1 AND w5000", 10),
    ("one word without another", "w20 NOT w2", 10),
    ("any of two without two", "(w30 OR w300) NOT (w3 OR w4)", 10),
    ("a phrase", "\"w1 w2\"", 10),
    ("a rare phrase or a word", "\"w9 w40\" OR w700", 10),
    ("a prefix", "w77*", 10),
    ("near", "NEAR(w3 w12, 4)", 10),
    ("any within all", "w40 AND (w10 OR w11)", 10),
    ("three words, 1 row", "w6 OR w50 OR w900", 1),
    ("three words, 100 rows", "w6 OR w50 OR w900", 100),
    ("three words, 1000 rows", "w6 OR w50 OR w900", 1000),
    ("three words, all rows", "w6 OR w50 OR w900", usize::MAX),
];

fn statement(limit: usize) -> String {
    let limit = if limit == usize::MAX { String::new() } else { format!(" LIMIT {limit}") };
    format!("SELECT rowid, rank FROM f WHERE f MATCH ? ORDER BY rank{limit}")
}

fn once(q: &mut Box<dyn Query + '_>, p: &[Value]) -> Result<f64> {
    let start = Instant::now();
    q.run(p)?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let (rows, turns) = (o.number("documents", 100_000, 20_000), o.number("repeat", 5, 3));
    let engines: [&dyn Engine; 2] = [&Iolite, &Stock];
    let seats = [fill(&Iolite, "iolite", rows, false)?, fill(&Stock, "stock", rows, false)?];
    seats.iter().for_each(|s| run.set("", &s.name, TUNED, TUNED_KEEPS));
    let mut r = Random(77);
    let mut next = rows as i64;
    let mut inserts = |seat: &Seat| -> Result<()> {
        next += 1;
        let words: Vec<String> = (0..LENGTH).map(|_| format!("w{}", zipf(&mut r))).collect();
        let mut q = seat.db.prepare("INSERT INTO f(rowid, body) VALUES (?, ?)")?;
        q.run(&[int(next), text(words.join(" "))]).map(drop)
    };
    for (name, words, limit) in SHAPES {
        let (sql, p) = (statement(*limit), [text(*words)]);
        let answers: Result<Vec<_>> =
            seats.iter().map(|s| Ok((s.name.as_str(), s.db.prepare(&sql)?.rows(&p)?))).collect();
        gate::equal(name, &answers?, false)?;
        let config = format!("{rows} documents");
        let mut tell = |state: &str, samples: Vec<Vec<f64>>| {
            for (s, samples) in seats.iter().zip(samples) {
                run.less(&format!("{name}, {state}"), &config, &s.name, "us", samples);
            }
        };
        let again = in_turn(2, turns, |e, _| {
            let mut q = seats[e].db.prepare(&sql)?;
            once(&mut q, &p)?;
            once(&mut q, &p)
        })?;
        tell("again", again);
        let fresh = in_turn(2, turns, |e, _| {
            let db = engines[e].open(&seats[e].path)?;
            db.batch("PRAGMA cache_size=-65536")?;
            db.rows("SELECT count(*) FROM f_config")?;
            let start = Instant::now();
            db.prepare(&sql)?.run(&p)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        })?;
        tell("fresh", fresh);
        let changed = in_turn(2, turns, |e, _| {
            inserts(&seats[e])?;
            once(&mut seats[e].db.prepare(&sql)?, &p)
        })?;
        tell("after an insert", changed);
        // Both have the same documents again.
        for s in &seats {
            s.db.batch(&format!("DELETE FROM f WHERE rowid > {rows}"))?;
        }
    }
    run.gates.push("rows and ranks equal in all shapes".into());
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

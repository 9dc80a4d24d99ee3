//! W11 and W12: the ten best texts by BM25 for one to three words, and of texts and vectors together, half by each.
//!
//! Words are drawn by a law of Zipf from 20,000; a document has 60 of them. The vectors are those of W10, in 384 dimensions.

use super::vectors::{Cloud, blob};
use super::{Seat, TUNED, TUNED_KEEPS, in_turn};
use crate::Options;
use crate::engine::libraries::sqlite_vec;
use crate::envelope::Run;
use crate::gate;
use iolite_bench::engine::{Engine, Iolite, Result, Stock, Value, int, text};
use iolite_bench::random::Random;
use std::time::Instant;

const WORDS: usize = 20_000;
/// How many words a document has.
pub(super) const LENGTH: usize = 60;
const DIMENSIONS: usize = 384;

/// A word's number by Zipf's law: the shares of 1, 1/2, 1/3...
pub(super) fn zipf(r: &mut Random) -> usize {
    let top = (WORDS as f64).ln();
    ((r.unit() * top).exp() as usize).clamp(1, WORDS)
}

fn document(r: &mut Random) -> String {
    let words: Vec<String> = (0..LENGTH).map(|_| format!("w{}", zipf(r))).collect();
    words.join(" ")
}

/// A database with documents, and a vector for each.
pub(super) fn fill(e: &dyn Engine, name: &str, rows: usize, vectors: bool) -> Result<Seat> {
    let seat = Seat::open(e, name, "text", TUNED)?;
    let mut r = Random(3);
    seat.db.batch("CREATE VIRTUAL TABLE f USING fts5(body)")?;
    let mut n = 0;
    seat.db.load("f(rowid, body)", 2, &mut |row| {
        n += 1;
        row.extend([int(n), text(document(&mut r))]);
        n <= rows as i64
    })?;
    if vectors {
        seat.db.batch(&format!(
            "CREATE VIRTUAL TABLE v USING vec0(e float[{DIMENSIONS}] distance_metric=cosine)"
        ))?;
        let mut cloud = Cloud::new(9, DIMENSIONS, 100);
        let mut n = 0;
        seat.db.load("v(rowid, e)", 2, &mut |row| {
            n += 1;
            row.extend([int(n), blob(&cloud.vector())]);
            n <= rows as i64
        })?;
    }
    Ok(seat)
}

/// Microseconds of a query in the middle of all its parameters.
fn median(seat: &Seat, sql: &str, params: &[Vec<Value>]) -> Result<f64> {
    let mut q = seat.db.prepare(sql)?;
    let mut times = Vec::new();
    for p in params {
        let start = Instant::now();
        q.run(p)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(crate::stats::summary(&times).median)
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let (rows, many) = (o.number("documents", 10_000, 10_000), o.number("matches", 100_000, 30_000));
    let turns = o.number("repeat", 7, 3);
    ranked(run, rows, many, turns)?;
    hybrid(run, rows, turns)
}

fn ranked(run: &mut Run, rows: usize, many: usize, turns: usize) -> Result<()> {
    let seats = [fill(&Iolite, "iolite", rows, false)?, fill(&Stock, "stock", rows, false)?];
    seats.iter().for_each(|s| run.set("", &s.name, TUNED, TUNED_KEEPS));
    let sql = "SELECT rowid, rank FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10";
    for words in 1..=3 {
        let mut r = Random(words as u64);
        let asked: Vec<Vec<Value>> = (0..60)
            .map(|_| {
                let all: Vec<String> = (0..words).map(|_| format!("w{}", zipf(&mut r).max(5))).collect();
                vec![text(all.join(" OR "))]
            })
            .collect();
        let case = format!("W11: ten best, {words} words");
        for p in &asked {
            let answers: Result<Vec<_>> =
                seats.iter().map(|s| Ok((s.name.as_str(), s.db.prepare(sql)?.rows(p)?))).collect();
            gate::equal(&case, &answers?, false)?;
        }
        run.gates.push(format!("{case}: rows and ranks equal"));
        let samples = in_turn(2, turns, |e, _| median(&seats[e], sql, &asked))?;
        for (s, samples) in seats.iter().zip(samples) {
            run.less(&case, &format!("{rows} documents"), &s.name, "us", samples);
        }
    }
    seats.into_iter().for_each(Seat::remove);
    let seats: Result<Vec<Seat>> = [&Iolite as &dyn Engine, &Stock]
        .into_iter()
        .map(|e| {
            let seat = Seat::open(e, e.name(), "common", TUNED)?;
            seat.db.batch("CREATE VIRTUAL TABLE f USING fts5(body)")?;
            let (mut r, mut n) = (Random(5), 0);
            seat.db.load("f(rowid, body)", 2, &mut |row| {
                n += 1;
                let more: Vec<String> = (0..r.range(3, 20)).map(|_| format!("w{}", zipf(&mut r))).collect();
                row.extend([int(n), text(format!("common {}", more.join(" ")))]);
                n <= many as i64
            })?;
            Ok(seat)
        })
        .collect();
    let seats = seats?;
    let asked = vec![vec![text("common")]; 5];
    let samples = in_turn(2, turns, |e, _| median(&seats[e], sql, &asked))?;
    for (s, samples) in seats.iter().zip(samples) {
        run.less("ten best of a common word", &format!("{many} matches"), &s.name, "us", samples);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// The same search in SQL that both engines know.
const PLAIN: &str = "WITH a AS (SELECT rowid AS id, row_number() OVER (ORDER BY rank, rowid) AS r FROM f WHERE f MATCH ?1 ORDER BY rank, rowid LIMIT 40), \
     near AS MATERIALIZED (SELECT rowid AS id, distance FROM v WHERE e MATCH ?2 AND k = 40), \
     b AS (SELECT id, row_number() OVER (ORDER BY distance, id) AS r FROM near) \
     SELECT id, coalesce(1.0/(60+a.r),0)+coalesce(1.0/(60+b.r),0) AS s FROM a FULL JOIN b USING(id) ORDER BY s DESC, id LIMIT 10";

const HYBRID: &str = "SELECT rowid, score FROM hybrid('f', ?1, 'v', ?2, 10)";

fn hybrid(run: &mut Run, rows: usize, turns: usize) -> Result<()> {
    let mut seats = vec![fill(&Iolite, "iolite", rows, true)?];
    match sqlite_vec() {
        Ok(e) => seats.push(fill(&e, "sqlite-vec", rows, true)?),
        Err(e) => run.missing.push(format!("sqlite-vec: {}", e.message)),
    }
    let (mut r, mut cloud) = (Random(11), Cloud::new(9, DIMENSIONS, 100));
    let asked: Vec<Vec<Value>> = (0..60)
        .map(|_| {
            let words: Vec<String> = (0..2).map(|_| format!("w{}", zipf(&mut r).max(5))).collect();
            vec![text(words.join(" OR ")), blob(&cloud.vector())]
        })
        .collect();
    let sql = |e: usize| if e == 0 { HYBRID } else { PLAIN };
    for p in &asked {
        let answers: Result<Vec<_>> = seats
            .iter()
            .enumerate()
            .map(|(e, s)| Ok((s.name.as_str(), s.db.prepare(sql(e))?.rows(p)?)))
            .collect();
        gate::equal("W12", &answers?, false)?;
    }
    run.gates.push("W12: rows and scores of hybrid equal those of plain SQL on stock with sqlite-vec".into());
    let samples = in_turn(seats.len(), turns, |e, _| median(&seats[e], sql(e), &asked))?;
    for (s, samples) in seats.iter().zip(samples) {
        run.less("W12: ten best of both", &format!("{rows} documents"), &s.name, "us", samples);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

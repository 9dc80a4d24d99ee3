//! Times of both engines, interleaved: medians and their ratio.

use crate::cases::{CASES, Data, measured, set_up, tear_down};
use crate::engine::Result;
use std::time::Instant;

const REPEATS: usize = 7;

/// Prints the table.
pub fn run(only: &[&str]) -> Result<()> {
    println!("| case | stock | iolite | speed-up |");
    println!("|---|---:|---:|---:|");
    for c in CASES.iter().filter(|c| only.is_empty() || only.contains(&c.name)) {
        let mut times = [Vec::new(), Vec::new()];
        let rounds = c.rounds * if c.rounds > 100 { 10 } else { 1 };
        if c.data == Data::Empty {
            for _ in 0..REPEATS {
                for (k, engine) in ["stock", "iolite"].into_iter().enumerate() {
                    let e = set_up(engine, c)?;
                    let t = Instant::now();
                    measured(&e, c, rounds)?;
                    times[k].push(t.elapsed().as_secs_f64());
                    drop(e);
                    tear_down(engine, c);
                }
            }
        } else {
            let engines = [set_up("stock", c)?, set_up("iolite", c)?];
            let first = [measured(&engines[0], c, rounds)?, measured(&engines[1], c, rounds)?];
            if first[0] != first[1] {
                return Err(format!("{}: answers differ: {first:?}", c.name));
            }
            for _ in 0..REPEATS {
                for (k, e) in engines.iter().enumerate() {
                    let t = Instant::now();
                    measured(e, c, rounds)?;
                    times[k].push(t.elapsed().as_secs_f64() / rounds as f64);
                }
            }
            drop(engines);
            tear_down("stock", c);
            tear_down("iolite", c);
        }
        let median = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2] * 1e6
        };
        let (a, b) = (median(&mut times[0]), median(&mut times[1]));
        println!("| {} | {a:.2} us | {b:.2} us | {:.2} |", c.title, a / b);
    }
    Ok(())
}

//! Times of both engines, interleaved: medians and their ratio.

use iolite_bench::cases::{CASES, sample};
use iolite_bench::engine::{Iolite, Result, Stock};

const REPEATS: usize = 7;

/// Prints the table.
pub fn run(only: &[&str]) -> Result<()> {
    println!("| case | stock us | iolite us | speed-up |");
    println!("|---|---:|---:|---:|");
    for c in CASES.iter().filter(|c| only.is_empty() || only.contains(&c.name)) {
        let mut times = sample(&[&Stock, &Iolite], c, REPEATS)?;
        let [a, b] = [0, 1].map(|k| {
            times[k].sort_by(f64::total_cmp);
            times[k][REPEATS / 2] * 1e6
        });
        println!("| {} | {a:.2} | {b:.2} | {:.2} |", c.title, a / b);
    }
    Ok(())
}

//! Instruction counts by callgrind: what a case costs beyond setting it up, per round.

use iolite_bench::cases::{CASES, Case, Data};
use iolite_bench::engine::Result;
use std::process::Command;

/// Prints the table.
pub fn run(only: &[&str]) -> Result<()> {
    println!("| case | stock | iolite | ratio |");
    println!("|---|---:|---:|---:|");
    for c in CASES.iter().filter(|c| only.is_empty() || only.contains(&c.name)) {
        let stock = per_round("stock", c)?;
        let own = per_round("iolite", c)?;
        println!("| {} | {stock} | {own} | {:.2} |", c.title, own as f64 / stock as f64);
    }
    Ok(())
}

fn per_round(engine: &str, c: &Case) -> Result<u64> {
    let with = count(engine, c, c.rounds)?;
    let without = if c.data == Data::Empty { 0 } else { count(engine, c, 0)? };
    Ok(with.saturating_sub(without) / c.rounds as u64)
}

fn count(engine: &str, c: &Case, n: usize) -> Result<u64> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(me)
        .args(["step", engine, c.name, &n.to_string()])
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&out.stderr);
    text.lines()
        .find_map(|l| l.split("Collected :").nth(1))
        .and_then(|n| n.trim().parse().ok())
        .ok_or_else(|| format!("no count for {engine} {}:\n{text}", c.name).into())
}

//! `cargo xtask COMMAND`: chores of the project.
//!
//! - `tidy`: layers, file lengths, where `unsafe` stands, headers, forbidden words.
//! - `faults [SEED [NUMBER ...]]`: puts defects back in a copy and sees whether their instruments find them.
//! - `fuzz [SECONDS [TARGET ...]]`: hostile inputs to SQL, files, JSON, indexes and changesets.
//! - `speed [ROUNDS]`: a mixed script of everyday programs on stock SQLite and on iolite.
//! - `dist [small] [rows]`: builds a release and lays out `dist/bin` and `dist/lib`; the smallest library, one without
//!   columns, or both, in `dist/small`, `dist/rows`, `dist/small-rows`.
#![forbid(unsafe_code)]

mod dist;
mod faults;
mod fuzz;
mod speed;
mod tidy;

use std::path::PathBuf;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ok = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(&root()),
        Some("speed") => speed::run(&root(), args.get(1).and_then(|n| n.parse().ok()).unwrap_or(5)),
        Some("faults") => {
            let which: Vec<usize> = args.iter().skip(2).filter_map(|n| n.parse().ok()).collect();
            faults::run(&root(), args.get(1).map_or("1", String::as_str), &which)
        }
        Some("fuzz") => fuzz::run(&root(), &args[1..]),
        Some("dist") => dist::run(&root(), &args[1..]),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy | faults [SEED [NUMBER ...]] | fuzz [SECONDS [TARGET ...]] | speed [ROUNDS] | dist [small] [rows]"
            );
            false
        }
    };
    if !ok {
        std::process::exit(1);
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

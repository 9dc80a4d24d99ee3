//! `iolite-bench COMMAND`: measures iolite beside stock SQLite.
//!
//! - `step ENGINE CASE N`: sets a case up and runs its measured part N times; what the other commands run under callgrind.
//! - `instructions`: instruction counts per case of both engines, as a table in Markdown.
//! - `quick`: times of both engines, interleaved, as a table.
//! - `groups`: SUM and GROUP BY over a million rows.
//! - `first ENGINE FILE SETTINGS SQL N`: N first runs of a query on a file.
//! - `ssb [--sf N] [--repeat N] [--file PATH] [--no-stock] [--settings PRAGMAS]`: the Star Schema Benchmark, warm.
#![forbid(unsafe_code)]

mod first;
mod groups;
mod instructions;
mod quick;
mod star;

use iolite_bench::cases;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["step", engine, case, n] => cases::step(engine, case, n.parse().unwrap_or(1)),
        ["instructions", ref only @ ..] => instructions::run(only),
        ["quick", ref only @ ..] => quick::run(only),
        ["first", engine, file, settings, sql, n] => {
            first::run(engine, file, settings, sql, n.parse().unwrap_or(1))
        }
        ["groups"] => groups::run(),
        ["ssb", ref rest @ ..] => star::run(rest),
        _ => Err("usage: iolite-bench step ENGINE CASE N | instructions [CASE...] | quick [CASE...] | groups | first ENGINE FILE SETTINGS SQL N | ssb [--sf N]".into()),
    };
    if let Err(e) = done {
        eprintln!("iolite-bench: {e}");
        std::process::exit(1);
    }
}

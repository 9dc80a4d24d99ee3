//! Fuzzing: hostile inputs for as long as one likes, kept by what branches they take (libFuzzer).
//!
//! The targets are a workspace of their own, `fuzz/`, which is compiled with counters of branches. The stable compiler does that, for
//! the pass is LLVM's. What fuzzing begins with, and what it keeps, lies in the target folder and is used again; an input
//! that fails is written there and named.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The targets, and the longest input of each.
const TARGETS: [(&str, usize); 7] = [
    ("sql", 2000),
    ("file", 40_000),
    ("json", 2000),
    ("rtree", 2000),
    ("text_index", 2000),
    ("vector_index", 2000),
    ("changeset", 1000),
];

/// What has branches counted and comparisons told.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// `fuzz [SECONDS [TARGET ...]]`: each target, or each named one, for so many seconds. Answers whether all inputs came through.
pub fn run(root: &Path, args: &[String]) -> bool {
    let seconds: u64 = match args.first().map(|a| a.parse()) {
        None => 60,
        Some(Ok(n)) => n,
        Some(Err(_)) => {
            eprintln!("usage: cargo xtask fuzz [SECONDS [TARGET ...]]");
            return false;
        }
    };
    let named = args.get(1..).unwrap_or_default();
    if let Some(n) = named.iter().find(|n| !TARGETS.iter().any(|t| t.0 == n.as_str())) {
        let all: Vec<&str> = TARGETS.iter().map(|t| t.0).collect();
        eprintln!("there is no target {n}, but {}", all.join(", "));
        return false;
    }
    let Some(bin) = build(root) else { return false };
    let folder = bin.join("fuzzing");
    let seeds = folder.join("seeds");
    if !Command::new(bin.join("seeds")).arg(&seeds).status().is_ok_and(|s| s.success()) {
        eprintln!("the seeds could not be written");
        return false;
    }
    let chosen = |t: &&(&str, usize)| named.is_empty() || named.iter().any(|n| n == t.0);
    TARGETS
        .iter()
        .filter(chosen)
        .map(|t| one(&bin, &folder, t.0, t.1, seconds))
        .fold(true, |all, one| all & one)
}

/// Compiles the targets; answers the folder of the programs.
fn build(root: &Path) -> Option<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("fuzz");
    let done = Command::new("cargo")
        .args(["build", "--quiet", "--profile", "fuzz", "--bins", "--target", &triple, "--target-dir"])
        .arg(&target)
        .current_dir(root.join("fuzz"))
        // The named target keeps the flags away from what runs while compiling.
        .env("RUSTFLAGS", COVERAGE.join(" "))
        .status();
    done.is_ok_and(|s| s.success()).then(|| target.join(triple).join("fuzz"))
}

fn one(bin: &Path, folder: &Path, name: &str, longest: usize, seconds: u64) -> bool {
    let kept = folder.join("kept").join(name);
    let failed = folder.join("failed");
    for dir in [&kept, &failed] {
        if let Err(e) = std::fs::create_dir_all(dir) {
            eprintln!("{}: {e}", dir.display());
            return false;
        }
    }
    let mut c = Command::new(bin.join(name));
    c.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={longest}"));
    c.args(["-timeout=25", "-rss_limit_mb=3000", "-detect_leaks=0", "-print_final_stats=1"]);
    c.arg(format!("-artifact_prefix={}/{name}-", failed.display()));
    let words = folder.join("seeds").join(format!("{name}.words"));
    if words.is_file() {
        c.arg(format!("-dict={}", words.display()));
    }
    c.arg(&kept).arg(folder.join("seeds").join(name)).current_dir(folder);
    let Ok(out) = c.output() else {
        eprintln!("{name}: the target does not run");
        return false;
    };
    let told = String::from_utf8_lossy(&out.stderr);
    let stat =
        |what: &str| told.lines().find_map(|l| l.strip_prefix(what)).map_or("?", str::trim).to_string();
    let covered = told.lines().rev().find_map(|l| l.split(" cov: ").nth(1)?.split(' ').next()).unwrap_or("?");
    let runs = stat("stat::number_of_executed_units:");
    println!("{name}: {runs} inputs, {covered} branches, most memory {} MB", stat("stat::peak_rss_mb:"));
    if out.status.success() {
        return true;
    }
    let lines: Vec<&str> = told.lines().filter(|l| !l.starts_with('#')).collect();
    println!("{name} FAILED\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    false
}

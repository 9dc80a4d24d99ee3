//! `cargo xtask speed [ROUNDS]`: the mixed script of `crates/capi/bench/everyday.c` on stock SQLite and on iolite, in turn.
//!
//! Both are used through the C functions with default settings: stock is the oracle's static library, compiled as distributions
//! compile it, iolite the shared library of a release build. Told is the least processor time of each step over the rounds, and the
//! ratio; the sums over what the queries answered must agree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds, runs, prints a table in Markdown; answers whether all went well.
pub fn run(root: &Path, rounds: usize) -> bool {
    match table(root, rounds) {
        Ok(text) => {
            print!("{text}");
            true
        }
        Err(e) => {
            eprintln!("speed: {e}");
            false
        }
    }
}

fn done(c: &mut Command) -> Result<String, String> {
    let out = c.output().map_err(|e| format!("{c:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{c:?}: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The newest file of this name below `dir`.
fn newest(dir: &Path, name: &str) -> Option<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .ok()?
        .filter_map(|e| Some(e.ok()?.path().join("out").join(name)))
        .filter_map(|p| Some((std::fs::metadata(&p).ok()?.modified().ok()?, p)))
        .collect();
    found.sort();
    found.pop().map(|f| f.1)
}

fn table(root: &Path, rounds: usize) -> Result<String, String> {
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from));
    done(Command::new("cargo").current_dir(root).args([
        "build",
        "--release",
        "-p",
        "iolite-capi",
        "-p",
        "iolite-stock",
    ]))?;
    let dir = target.join("speed");
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let library = dir.join("libsqlite3.so.0");
    std::fs::copy(target.join("release/libiolite_capi.so"), &library).map_err(|e| e.to_string())?;
    let stock =
        newest(&target.join("release/build"), "libsqlite3.a").ok_or("the oracle's library is not there")?;
    let source = root.join("crates/capi/bench/everyday.c");
    let program = |name: &str| dir.join(format!("everyday-{name}"));
    let compile = |name: &str, library: &Path, more: &[&str]| {
        let mut c = Command::new("cc");
        c.args(["-O2", "-o"]).arg(program(name)).arg(&source).arg(library).args(more);
        done(&mut c)
    };
    compile("stock", &stock, &["-lm", "-lpthread", "-ldl"])?;
    compile("iolite", &library, &[&format!("-Wl,-rpath,{}", dir.display())])?;
    let mut order: Vec<String> = Vec::new();
    let mut least: BTreeMap<(String, usize), u64> = BTreeMap::new();
    for _ in 0..rounds {
        for (k, name) in ["stock", "iolite"].into_iter().enumerate() {
            let files = dir.join("files");
            let _ = std::fs::remove_dir_all(&files);
            std::fs::create_dir_all(&files).map_err(|e| e.to_string())?;
            for line in done(Command::new(program(name)).arg(&files))?.lines() {
                let (step, time) = line.split_once('\t').ok_or("a line without a time")?;
                let time: u64 = time.parse().map_err(|_| "a time that is no number")?;
                let slot = least.entry((step.to_string(), k)).or_insert(time);
                *slot = time.min(*slot);
                if !order.iter().any(|s| s == step) {
                    order.push(step.to_string());
                }
            }
        }
    }
    let time = |step: &str, k: usize| least.get(&(step.to_string(), k)).copied().unwrap_or(0);
    if time("sum", 0) != time("sum", 1) {
        return Err("the engines answer differently".into());
    }
    order.retain(|s| s != "sum");
    let mut out = String::from("| step | stock ms | iolite ms | ratio |\n|---|---:|---:|---:|\n");
    let mut line = |step: &str, s: u64, i: u64| {
        let ratio = i as f64 / s.max(1) as f64;
        out.push_str(&format!("| {step} | {:.2} | {:.2} | {ratio:.2} |\n", s as f64 / 1e3, i as f64 / 1e3));
    };
    for step in &order {
        line(step, time(step, 0), time(step, 1));
    }
    let whole = |k| order.iter().map(|s| time(s, k)).sum();
    line("the whole", whole(0), whole(1));
    Ok(out)
}

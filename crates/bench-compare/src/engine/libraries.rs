//! Vector libraries of Python's: `usearch` and `hnswlib` in a process of their own, and sqlite-vec's library to be loaded into stock.
//!
//! The interpreter is that of a virtual environment in the cache folder, which `bench-compare fetch` makes; `IOLITE_BENCH_PYTHON` names another.

use iolite_bench::engine::{Extended, Result};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What `fetch` installs.
pub const PACKAGES: &str = "numpy sqlite-vec==0.1.9 usearch hnswlib";
/// Where, in the cache folder.
pub const ENVIRONMENT: &str = "python";

const DRIVER: &str = include_str!("libraries.py");

fn python() -> PathBuf {
    std::env::var_os("IOLITE_BENCH_PYTHON")
        .map_or_else(|| super::cache().join(ENVIRONMENT).join("bin/python"), PathBuf::from)
}

fn ask(script: &str) -> Result<String> {
    let out = Command::new(python())
        .args(["-c", script])
        .output()
        .map_err(|e| format!("{}: {e}", python().display()))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        return Err(why.lines().last().unwrap_or("").to_string().into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// The version of a package.
pub fn version(package: &str) -> Result<String> {
    ask(&format!(
        "import {0}; from importlib.metadata import version; print(version('{0}'))",
        package.replace('-', "_")
    ))
    .map(|v| format!("{package} {v}"))
}

/// Stock with sqlite-vec.
pub fn sqlite_vec() -> Result<Extended> {
    let library = ask("import sqlite_vec; print(sqlite_vec.loadable_path())")?;
    Ok(Extended { name: "sqlite-vec", library: library.into() })
}

/// A library in a process of its own.
pub struct Library {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Its version.
    pub version: String,
}

/// What a search of all queries gave.
pub struct Searched {
    /// Microseconds of each query.
    pub times: Vec<f64>,
    /// The rows found by each.
    pub found: Vec<Vec<i64>>,
}

impl Library {
    /// Starts one on files of vectors and queries.
    pub fn start(
        name: &str,
        (base, queries): (&Path, &Path),
        dimensions: usize,
        metric: &str,
        k: usize,
    ) -> Result<Library> {
        let mut child = Command::new(python())
            .args(["-c", DRIVER, name])
            .args([base, queries])
            .args([dimensions.to_string(), metric.into(), k.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", python().display()))?;
        let to = child.stdin.take().ok_or("no input")?;
        let from = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut library = Library { child, to, from, version: String::new() };
        library.version = library.answer()?["version"].as_str().unwrap_or("").into();
        Ok(library)
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|e| format!("the library's process: {e}").into())
    }

    fn ask(&mut self, command: &str) -> Result<Value> {
        writeln!(self.to, "{command}")?;
        self.to.flush()?;
        self.answer()
    }

    /// Builds its graph; answers the seconds.
    pub fn build(&mut self, threads: usize) -> Result<f64> {
        self.ask(&format!("build {threads}"))?["seconds"].as_f64().ok_or_else(|| "no time".into())
    }

    /// Searches exactly, or by the graph with this breadth.
    pub fn search(&mut self, breadth: Option<usize>) -> Result<Searched> {
        let a = self.ask(&breadth.map_or("exact".into(), |b| format!("search {b}")))?;
        let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
        let times = list(&a["times"]).iter().filter_map(Value::as_f64).collect();
        let found =
            list(&a["found"]).iter().map(|r| list(r).iter().filter_map(Value::as_i64).collect()).collect();
        Ok(Searched { times, found })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

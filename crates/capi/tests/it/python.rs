//! Python's `sqlite3` module on this library: `tests/python/tour.py` must print what it prints on stock SQLite, and the example that searches
//! a folder of texts finds what it should.

use std::path::PathBuf;
use std::process::Command;

/// What the engine cannot do yet; lines of the tour that may differ.
const KNOWN: &[&str] = &["window functions are not supported yet"];

fn python(library: Option<&PathBuf>, args: &[&str]) -> Option<String> {
    let mut c = Command::new("python3");
    c.args(args).env_remove("LD_LIBRARY_PATH");
    if let Some(l) = library {
        c.env("LD_LIBRARY_PATH", l);
    }
    let o = c.output().ok()?;
    Some(format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr)))
}

/// A folder with this library under the name by which Python looks for it; none, with a word about why, where Python does not take it.
fn library(name: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().expect("this test's own path");
    // Tests leave it there; only `cargo build` copies it one folder up.
    let built = exe.with_file_name("libiolite_capi.so");
    let dir = std::env::temp_dir().join(format!("iolite-capi-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a scratch folder");
    if !built.exists() || std::fs::copy(&built, dir.join("libsqlite3.so.0")).is_err() {
        println!("not run: no shared library beside this test");
        return None;
    }
    let version = "import sqlite3; print(sqlite3.sqlite_version)";
    if python(Some(&dir), &["-c", version]).is_none_or(|v| v.trim() != iolite_base::SQLITE_VERSION) {
        println!("not run: python3 is missing, or brings an SQLite of its own");
        return None;
    }
    Some(dir)
}

#[test]
fn tour() {
    let Some(dir) = library("tour") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/tour.py");
    let ours = python(Some(&dir), &[script]).expect("python ran before");
    let stock = python(None, &[script]).expect("python ran before");
    let _ = std::fs::remove_dir_all(&dir);
    assert!(ours.trim_end().ends_with("end"), "{ours}");
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), stock.lines().collect());
    let differs = |(a, b): &(&&str, &&str)| a != b && !KNOWN.iter().any(|k| a.contains(k));
    let wrong: Vec<_> = a.iter().zip(&b).filter(differs).collect();
    assert!(wrong.is_empty() && a.len() == b.len(), "{} and {} lines, {wrong:#?}", a.len(), b.len());
}

#[test]
fn the_example_searches_a_folder() {
    let Some(dir) = library("example") else { return };
    for (name, body) in [
        (
            "engine.txt",
            "The analytical engine weaves algebraic patterns, as the loom weaves flowers and leaves.",
        ),
        ("garden.txt", "Roses want sun and a deep soil; prune them in spring."),
        ("sea.txt", "The tide comes twice a day, and the moon draws it."),
    ] {
        std::fs::write(dir.join(name), body).expect("a text");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/search_notes.py");
    let folder = dir.to_string_lossy().into_owned();
    let first = python(Some(&dir), &[script, &folder, "weaving", "patterns"]).expect("python ran before");
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[..2], ["3 new or changed", "engine.txt (words 1, vector 1)"], "{first}");
    std::fs::write(dir.join("sea.txt"), "Weaving nets is an old craft of patterns.").expect("a text");
    let second = python(Some(&dir), &[script, &folder, "nets"]).expect("python ran before");
    let lines: Vec<&str> = second.lines().collect();
    assert_eq!(lines[..2], ["1 new or changed", "sea.txt (words 1, vector 1)"], "{second}");
    let _ = std::fs::remove_dir_all(&dir);
}

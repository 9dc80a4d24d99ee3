//! Golden files: texts of statements, and beside them what becomes of each.

use std::fs;
use std::path::{Path, PathBuf};

/// Holds `NAME.extension` against `NAME.sql`, for each such file of a folder: each statement, which has a line of its own,
/// stands there behind `>`, and below it what `answer` says. With `UPDATE` in the environment the files are written anew.
///
/// # Panics
/// Panics if a file is not what it was, or there is none.
pub fn golden(dir: &Path, extension: &str, answer: impl Fn(&str) -> String) {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a folder of golden files")
        .map(|e| e.expect("a file").path())
        .filter(|p| p.extension().is_some_and(|e| e == "sql"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden files in {}", dir.display());
    for path in files {
        let text = fs::read_to_string(&path).expect("a text");
        let mut now = String::new();
        for sql in text.lines().filter(|l| !l.is_empty() && !l.starts_with("--")) {
            now += &format!("> {sql}\n{}\n", answer(sql));
        }
        let beside = path.with_extension(extension);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&beside, now).expect("writing a golden file");
            continue;
        }
        let before = fs::read_to_string(&beside).unwrap_or_default();
        let differs = before.lines().zip(now.lines()).position(|(a, b)| a != b);
        let at = differs.unwrap_or_else(|| before.lines().count().min(now.lines().count()));
        assert!(
            before == now,
            "{}, line {}, has changed (UPDATE=1 writes it anew):\nwas {:?}\nis  {:?}",
            beside.display(),
            at + 1,
            before.lines().nth(at),
            now.lines().nth(at)
        );
    }
}

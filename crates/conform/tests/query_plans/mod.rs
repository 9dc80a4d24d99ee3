//! EXPLAIN QUERY PLAN beside stock SQLite's: `tests/plans/NAME.sql`, and `NAME.out` beside it.
//!
//! The first paragraph of a text is run; of each line of the others the plan is told, by both engines. Where stock's tree is
//! another, both stand there. `UPDATE=1` writes the files anew. Ids of lines are not compared: the tree is what they are for.

use std::fmt::Write;
use std::path::Path;

/// A line of a plan: id, parent, text.
type Line = (i64, i64, String);

/// The lines as a tree, children indented.
fn tree(lines: &[Line]) -> String {
    fn below(lines: &[Line], parent: i64, depth: usize, out: &mut String) {
        for l in lines.iter().filter(|l| l.1 == parent) {
            let _ = writeln!(out, "{:1$}{2}", "", 2 * depth, l.2);
            below(lines, l.0, depth + 1, out);
        }
    }
    let mut out = String::new();
    below(lines, 0, 1, &mut out);
    assert_eq!(out.lines().count(), lines.len(), "lines that hang on nothing: {lines:?}");
    out
}

fn ours(c: &iolite::engine::Connection, sql: &str) -> String {
    match c.query(&format!("EXPLAIN QUERY PLAN {sql}"), &[]) {
        Ok(rows) => {
            let line =
                |r: &Vec<iolite::engine::Value>| (r[0].to_int(), r[1].to_int(), r[3].to_string_lossy());
            tree(&rows.iter().map(line).collect::<Vec<Line>>())
        }
        Err(e) => format!("  error: {}\n", e.message()),
    }
}

fn stocks(c: &iolite_stock::Connection, sql: &str) -> String {
    use iolite_stock::Value::{Int, Text};
    match c.query(&format!("EXPLAIN QUERY PLAN {sql}")) {
        Ok(rows) => {
            let line = |r: &Vec<iolite_stock::Value>| match &r[..] {
                [Int(id), Int(parent), _, Text(t)] => (*id, *parent, String::from_utf8_lossy(t).into_owned()),
                other => panic!("no line of a plan: {other:?}"),
            };
            tree(&rows.iter().map(line).collect::<Vec<Line>>())
        }
        Err(e) => format!("  error: {}\n", e.message),
    }
}

fn explained(text: &str) -> String {
    let own = iolite::engine::Connection::open_in_memory().expect("a database in memory opens");
    let stock = iolite_stock::Connection::open(":memory:").expect("a database in memory opens");
    let (setup, statements) = text.split_once("\n\n").expect("a paragraph of setup");
    own.execute_batch(setup).expect("the setup runs");
    stock.execute_batch(setup).expect("the setup runs on stock");
    let mut out = String::new();
    for sql in statements.lines().filter(|l| !l.is_empty() && !l.starts_with("--")) {
        let (a, b) = (ours(&own, sql), stocks(&stock, sql));
        let _ = write!(out, "> {sql}\n{a}");
        if a != b {
            let _ = write!(out, "stock\n{b}");
        }
    }
    out
}

#[test]
fn plans_are_told_as_stock_tells_them() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("the folder of plans")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "sql"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let got = explained(&std::fs::read_to_string(&path).expect("a text"));
        let out = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&out, &got).expect("the plans can be written");
        }
        let expected = std::fs::read_to_string(&out).unwrap_or_default();
        assert_eq!(got, expected, "{} (UPDATE=1 writes it anew)", path.display());
    }
}

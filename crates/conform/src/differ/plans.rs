//! Rounds about plans: schemas and queries of `drawn`. Of each query the tree of EXPLAIN QUERY PLAN is compared, then its
//! answer.

use super::coverage::Coverage;
use super::drawn::Drawer;
use super::pair::{MAX_ROWS, Pair, Stmt, V};
use super::session::{Finding, Round};
use std::fmt::Write;
use std::path::Path;

/// Queries of a round.
const QUERIES: usize = 60;

/// Runs the round with this seed.
pub fn round(seed: u64, dir: &Path) -> Round {
    let mut d = Drawer::new(seed, &[0, 12, 300, 300, 2000]);
    let mut pair = Pair::new(dir, true);
    let mut round = Round { statements: 0, plans: 0, findings: Vec::new(), coverage: Coverage::default() };
    let mut script: Vec<Stmt> = d.schema().into_iter().map(|sql| Stmt::plain("setup", sql)).collect();
    for (i, s) in script.iter().enumerate() {
        round.statements += 1;
        if let Some(difference) = pair.run(s) {
            script.truncate(i + 1);
            round.findings.push(Finding { script, difference, in_memory: true });
            return round;
        }
    }
    for _ in 0..QUERIES {
        let q = d.query();
        let plan = Stmt::plan(q.kind, &q.sql);
        let answer = q.ordered.map(|ordered| Stmt { ordered, ..Stmt::plain(q.kind, q.sql) });
        for s in std::iter::once(plan).chain(answer) {
            round.statements += 1;
            script.push(s.clone());
            round.plans += usize::from(s.plan);
            // Where EXPLAIN is before a change of rows, stock counts it as one that changed none. Of too many rows, the first
            // ones may be others.
            let found = pair.run(&s).filter(|d| d.what != "state");
            let cut = !s.plan && pair.last.rows.len() >= MAX_ROWS;
            if let Some(difference) = found.filter(|_| !cut) {
                round.findings.push(Finding { script: script.clone(), difference, in_memory: true });
            }
            script.pop();
            if pair.exhausted {
                return round;
            }
        }
    }
    round
}

/// The tree of EXPLAIN QUERY PLAN's rows, children indented.
pub fn tree(rows: &[Vec<V>]) -> String {
    fn below(rows: &[Vec<V>], parent: i64, depth: usize, out: &mut String) {
        for r in rows {
            if let [V::Int(id), V::Int(p), _, V::Text(detail)] = &r[..]
                && *p == parent
            {
                let _ = writeln!(out, "{:1$}{2}", "", 2 * depth, String::from_utf8_lossy(detail));
                below(rows, *id, depth + 1, out);
            }
        }
    }
    let mut out = String::new();
    below(rows, 0, 0, &mut out);
    out
}

/// The lines that only one of two trees has, names taken out.
pub fn signature(stock: &str, ours: &str) -> String {
    let lines = |s: &str| s.lines().map(anonymous).collect::<Vec<_>>();
    let (mut a, mut b) = (lines(stock), lines(ours));
    a.retain(|l| match b.iter().position(|x| x == l) {
        Some(k) => {
            b.remove(k);
            false
        }
        None => true,
    });
    if a.is_empty() && b.is_empty() {
        return "the same lines elsewhere".into();
    }
    format!("stock: {} | ours: {}", a.join("; "), b.join("; "))
}

/// A line without names and numbers.
fn anonymous(line: &str) -> String {
    let (head, list) = line.trim().split_once(" (").unwrap_or((line.trim(), ""));
    let mut out = String::new();
    for w in head.split(' ') {
        let named =
            w.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '(');
        let _ = write!(out, "{}{}", if out.is_empty() { "" } else { " " }, if named { "#" } else { w });
    }
    let parts: Vec<String> = list
        .trim_end_matches(')')
        .split(" AND ")
        .map(|p| {
            let name = if p.starts_with("rowid") { "rowid" } else { "" };
            format!("{name}{}", p.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        })
        .collect();
    if !list.is_empty() && list.contains('?') {
        let _ = write!(out, " ({})", parts.join(" "));
    }
    out
}

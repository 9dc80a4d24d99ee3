//! Makes a script that shows a difference short: statements first, then tokens.

use super::pair::{Difference, Pair, Stmt};
use std::path::Path;
use std::time::{Duration, Instant};

/// As long as this is worth: what hangs takes seconds each time.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Runs a script on fresh databases; answers the first difference and the number of its statement.
pub fn replay(script: &[Stmt], dir: &Path, in_memory: bool) -> Option<(usize, Difference)> {
    let mut p = Pair::new(dir, in_memory);
    for (i, s) in script.iter().enumerate() {
        if let Some(d) = p.run(s) {
            return Some((i, d));
        }
        if p.exhausted {
            return None;
        }
    }
    p.finish().map(|d| (script.len(), d))
}

/// The shortest script found that still differs in the same way, and its difference.
pub fn shrink(mut script: Vec<Stmt>, d: Difference, dir: &Path, in_memory: bool) -> (Vec<Stmt>, Difference) {
    let mut best = d;
    let kind = script.last().map_or("", |s| s.kind);
    let wanted = best.signature(kind);
    let mut budget = 4_000;
    let end = Instant::now() + MAX_TIME;
    let mut test = |script: &[Stmt]| -> Option<(usize, Difference)> {
        if budget == 0 || Instant::now() > end {
            return None;
        }
        budget -= 1;
        let (i, d) = replay(script, dir, in_memory)?;
        let kind = script.get(i).or(script.last()).map_or("", |s| s.kind);
        (d.signature(kind) == wanted).then_some((i, d))
    };
    match test(&script) {
        Some((i, d)) => {
            script.truncate(i + 1);
            best = d;
        }
        None => return (script, best),
    }
    let mut size = script.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < script.len() {
            let mut shorter = script.clone();
            shorter.drain(at..(at + size).min(script.len()));
            match test(&shorter) {
                Some((i, d)) => {
                    shorter.truncate(i + 1);
                    script = shorter;
                    best = d;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    for n in (0..script.len()).rev() {
        let mut size = 16;
        while size > 0 {
            let mut at = 0;
            loop {
                let tokens = tokens(&script[n].sql);
                if at >= tokens.len() {
                    break;
                }
                let mut shorter = tokens.clone();
                shorter.drain(at..(at + size).min(tokens.len()));
                let mut trial = script.clone();
                trial[n].sql = shorter.join("");
                let orders = |s: &str| s.matches("ORDER BY").count();
                if trial[n].ordered && orders(&trial[n].sql) < orders(&script[n].sql) {
                    at += 1;
                    continue;
                }
                match test(&trial) {
                    Some((i, d)) if i + 1 >= trial.len() => {
                        script = trial;
                        best = d;
                    }
                    _ => at += 1,
                }
            }
            size = if size > 4 { size / 2 } else { size - 1 };
        }
    }
    (script, best)
}

/// The words, numbers, strings and signs of a text; a group in brackets that holds no bracket is one token too, as
/// space before a token belongs to it.
pub(super) fn tokens(sql: &str) -> Vec<String> {
    let b: Vec<char> = sql.chars().collect();
    let mut out: Vec<String> = Vec::new();
    let mut i = 0;
    while i < b.len() {
        let start = i;
        while i < b.len() && b[i].is_whitespace() {
            i += 1;
        }
        if i < b.len() {
            let c = b[i];
            i += 1;
            if c == '\'' || c == '"' {
                while i < b.len() {
                    i += 1;
                    if b[i - 1] == c {
                        if b.get(i) == Some(&c) {
                            i += 1;
                        } else {
                            break;
                        }
                    }
                }
            } else if c.is_alphanumeric() || c == '_' {
                while i < b.len() && (b[i].is_alphanumeric() || b[i] == '_' || b[i] == '.') {
                    i += 1;
                }
            }
        }
        out.push(b[start..i].iter().collect());
    }
    out
}

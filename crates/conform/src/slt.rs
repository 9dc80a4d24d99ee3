//! sqllogictest scripts: reading them, running them against iolite.
//!
//! A script is a list of records. `statement ok|error` runs SQL; `query TYPES SORT [LABEL]` compares rows, either value by
//! value or, above the hash threshold, by count and MD5. `skipif` and `onlyif` name engines: this one answers to
//! `sqlite`, whose results the scripts hold. Records with the same label must have the same result.
//!
//! Two rules of the scripts' own runner hold here too: an error while rows are fetched ends the rows, and a query with
//! an empty result list says nothing about its rows (that list was written where the outcome was left open).

use iolite::engine::{Connection, Step, Value};
use md5::{Digest, Md5};
use std::collections::HashMap;
use std::fmt::Write;

/// What became of a script.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Records run.
    pub executed: usize,
    /// Records that are not for this engine.
    pub skipped: usize,
    /// Records whose outcome was another: line and what was wrong.
    pub failures: Vec<(usize, String)>,
    /// Arms of queries that ran in columns.
    pub in_columns: u64,
}

/// How rows are ordered before they are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    None,
    Row,
    Value,
}

struct Record<'a> {
    line: usize,
    head: Vec<&'a str>,
    sql: String,
    expected: Vec<&'a str>,
    conditions: Vec<(bool, &'a str)>,
}

/// Runs a script on a fresh database in memory.
pub fn run(script: &str) -> Report {
    let mut report = Report::default();
    let mut labels: HashMap<String, String> = HashMap::new();
    let conn = match Connection::open_in_memory() {
        Ok(c) => c,
        Err(e) => {
            report.failures.push((0, format!("cannot open a database: {e}")));
            return report;
        }
    };
    crate::choose_analytics(&conn);
    for r in records(script) {
        let applies = r.conditions.iter().all(|(only, who)| *only == who.eq_ignore_ascii_case("sqlite"));
        match r.head[0] {
            // Lists above the threshold are given by their hash, which shows in the list itself.
            "hash-threshold" => continue,
            "halt" if applies => break,
            "halt" => continue,
            _ => {}
        }
        if !applies {
            report.skipped += 1;
            continue;
        }
        report.executed += 1;
        let outcome = match r.head[0] {
            "statement" => statement(&conn, &r),
            "query" => query(&conn, &r, &mut labels),
            other => Err(format!("unknown record: {other}")),
        };
        if let Err(why) = outcome {
            report.failures.push((r.line, why));
        }
    }
    report.in_columns = conn.column_runs();
    let errors = conn.column_errors();
    if errors > 0 {
        report.failures.push((0, format!("{errors} runs in columns ended with an error of the engine")));
    }
    report
}

fn records(script: &str) -> Vec<Record<'_>> {
    let mut out = Vec::new();
    let lines: Vec<&str> = script.lines().map(|l| l.trim_end_matches('\r')).collect();
    let mut i = 0;
    let mut conditions = Vec::new();
    while i < lines.len() {
        let line = lines[i].trim();
        if line.is_empty() || line.starts_with('#') {
            i += 1;
            continue;
        }
        let head: Vec<&str> = line.split_whitespace().take_while(|w| !w.starts_with('#')).collect();
        let at = i + 1;
        i += 1;
        match head[0] {
            "skipif" | "onlyif" => {
                conditions.push((head[0] == "onlyif", head.get(1).copied().unwrap_or("")));
                continue;
            }
            "hash-threshold" | "halt" => {
                let conditions = std::mem::take(&mut conditions);
                out.push(Record { line: at, head, sql: String::new(), expected: Vec::new(), conditions });
                continue;
            }
            _ => {}
        }
        let mut sql = String::new();
        while i < lines.len() && !lines[i].trim().is_empty() && lines[i] != "----" {
            sql.push_str(lines[i]);
            sql.push('\n');
            i += 1;
        }
        let mut expected = Vec::new();
        if i < lines.len() && lines[i] == "----" {
            i += 1;
            while i < lines.len() && !lines[i].is_empty() {
                expected.push(lines[i]);
                i += 1;
            }
        }
        let conditions = std::mem::take(&mut conditions);
        out.push(Record { line: at, head, sql, expected, conditions });
    }
    out
}

fn statement(conn: &Connection, r: &Record<'_>) -> Result<(), String> {
    let outcome = conn.execute_batch(&r.sql);
    match (r.head.get(1).copied(), outcome) {
        (Some("ok"), Ok(())) | (Some("error"), Err(_)) => Ok(()),
        (Some("ok"), Err(e)) => Err(format!("{e:?}\n  {}", r.sql.trim())),
        (Some("error"), Ok(())) => Err(format!("no error\n  {}", r.sql.trim())),
        (other, _) => Err(format!("unknown expectation: {other:?}")),
    }
}

fn query(conn: &Connection, r: &Record<'_>, labels: &mut HashMap<String, String>) -> Result<(), String> {
    let fail = |why: String| format!("{why}\n  {}", r.sql.trim());
    let types: Vec<char> = r.head.get(1).map_or(Vec::new(), |t| t.chars().collect());
    let sort = match r.head.get(2).copied() {
        Some("rowsort") => Sort::Row,
        Some("valuesort") => Sort::Value,
        _ => Sort::None,
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut s = conn.prepare(&r.sql).map_err(|e| fail(format!("{e:?}")))?;
    if s.column_count() != types.len() {
        return Err(fail(format!("{} columns instead of {}", s.column_count(), types.len())));
    }
    while s.step() == Ok(Step::Row) {
        rows.push(s.row().iter().zip(&types).map(|(v, t)| show(v, *t)).collect());
    }
    let mut values: Vec<String> = match sort {
        Sort::Row => {
            rows.sort();
            rows.into_iter().flatten().collect()
        }
        _ => rows.into_iter().flatten().collect(),
    };
    if sort == Sort::Value {
        values.sort();
    }
    let hashed = || {
        let mut h = Md5::new();
        for v in &values {
            h.update(v.as_bytes());
            h.update(b"\n");
        }
        let mut hex = String::new();
        for b in h.finalize() {
            let _ = write!(hex, "{b:02x}");
        }
        format!("{} values hashing to {hex}", values.len())
    };
    if let Some(label) = r.head.get(3) {
        let own = hashed();
        match labels.get(*label) {
            Some(other) if *other != own => return Err(fail(format!("differs from label {label}"))),
            Some(_) => {}
            None => {
                labels.insert(label.to_string(), own);
            }
        }
    }
    let expects_hash = r.expected.len() == 1 && r.expected[0].contains(" values hashing to ");
    if r.expected.is_empty() {
        return Ok(());
    }
    if expects_hash {
        let own = hashed();
        if own != r.expected[0] {
            return Err(fail(format!("{own} instead of {}", r.expected[0])));
        }
    } else if values.iter().map(String::as_str).ne(r.expected.iter().copied()) {
        let short = |v: Vec<&str>| v.into_iter().take(12).collect::<Vec<_>>().join(" ");
        let got = short(values.iter().map(String::as_str).collect());
        let want = short(r.expected.clone());
        return Err(fail(format!("got      {got}\n  expected {want}")));
    }
    Ok(())
}

/// A value as the scripts write it.
fn show(v: &Value, ty: char) -> String {
    if v.is_null() {
        return "NULL".into();
    }
    match ty {
        'I' => v.to_int().to_string(),
        'R' => format!("{:.3}", v.to_real()),
        _ => {
            let text = v.to_string_lossy();
            if text.is_empty() {
                return "(empty)".into();
            }
            text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect()
        }
    }
}

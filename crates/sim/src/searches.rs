//! Searches beside scans: what an index of texts or vectors finds is what a look at every row finds.
//!
//! It knows the tables of the script about search by their columns: texts are in `body`, made of words that blanks divide; vectors are in `e`, and where
//! the table has lists or a graph, it is told to search exactly by `probes = 0` or `ef = 0`.
//!
//! What it does not ask of lists and graphs is that they find all that is near: rows that they answer are rows of the table, at the
//! distance that a scan tells.

use crate::rng::digest;
use crate::state::cell;
use iolite::engine::{Connection, Value};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// How many rows a search is asked for.
const NEAREST: usize = 5;
/// Words that the script's texts have often, seldom and never, and queries of them: what is asked, and the same as a condition on padded texts.
const QUERIES: [(&str, &str); 6] = [
    ("all", "x LIKE '% all %'"),
    ("w1", "x LIKE '% w1 %'"),
    ("row60", "x LIKE '% row60 %'"),
    ("w1 OR x2 OR changed", "x LIKE '% w1 %' OR x LIKE '% x2 %' OR x LIKE '% changed %'"),
    ("all NOT x0", "x LIKE '% all %' AND x NOT LIKE '% x0 %'"),
    ("\"w2 x1\" OR gone", "x LIKE '% w2 x1 %' OR x LIKE '% gone %'"),
];
/// What vectors are searched for.
const ASKED: [&str; 3] = ["[1, 1, 1, 1]", "[9, 9, 9, 9]", "[3, 0, 2, 55]"];

/// Contents of which it is known that a fresh connection's searches agree with them.
static AGREED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// As [`check`], for a connection that has just been opened on this content: searches hang on nothing else there, so that one look at each
/// content will do.
pub fn check_content(c: &Connection, content: &str) -> Result<(), String> {
    let key = digest(1, content.as_bytes());
    if AGREED.lock().is_ok_and(|a| a.contains(&key)) {
        return Ok(());
    }
    check(c)?;
    if let Ok(mut agreed) = AGREED.lock() {
        agreed.insert(key);
    }
    Ok(())
}

/// Compares the searches of all virtual tables of a connection's main database with scans; an error tells of a difference.
pub fn check(c: &Connection) -> Result<(), String> {
    let rows = |sql: &str| c.query(sql, &[]).map_err(|e| format!("{sql}: {e:?}"));
    let ask = |sql: &str| {
        let line = |row: &Vec<Value>| {
            let mut line = String::new();
            row.iter().for_each(|v| cell(v, &mut line));
            line
        };
        Ok(rows(sql)?.iter().map(line).collect())
    };
    for row in
        rows("SELECT name, sql FROM main.sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%' ORDER BY name")?
    {
        let (name, made) = (text(&row[0]), text(&row[1]));
        if made.contains("fts5") {
            texts(&ask, &name)?;
        } else {
            vectors(&ask, &name, &made)?;
        }
    }
    Ok(())
}

/// Asks for rows, each as a line.
type Ask<'a> = &'a dyn Fn(&str) -> Result<Vec<String>, String>;

fn text(v: &Value) -> String {
    match v {
        Value::Text(b, _) => String::from_utf8_lossy(b).into_owned(),
        other => format!("{other:?}"),
    }
}

fn same(name: &str, what: &str, found: &[String], wanted: &[String]) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{name}: {what} finds {found:?}, a scan {wanted:?}"))
}

fn texts(ask: Ask<'_>, name: &str) -> Result<(), String> {
    for (query, condition) in QUERIES {
        let found = ask(&format!("SELECT rowid FROM {name} WHERE {name} MATCH '{query}' ORDER BY rowid"))?;
        let scanned = ask(&format!(
            "SELECT rowid FROM (SELECT rowid, ' ' || body || ' ' AS x FROM {name}) WHERE {condition} ORDER BY rowid"
        ))?;
        same(name, query, &found, &scanned)?;
        let best = |by: &str| {
            ask(&format!(
                "SELECT rowid, rank FROM {name} WHERE {name} MATCH '{query}' ORDER BY {by} LIMIT {NEAREST}"
            ))
        };
        same(
            name,
            &format!("{query} by rank"),
            &best("rank, rowid")?,
            &best(&format!("bm25({name}), rowid"))?,
        )?;
    }
    Ok(())
}

fn vectors(ask: Ask<'_>, name: &str, made: &str) -> Result<(), String> {
    let distance = if made.contains("cosine") { "vec_distance_cosine" } else { "vec_distance_l2" };
    let exactly = match made {
        _ if made.contains("ivf") => " AND probes = 0",
        _ if made.contains("hnsw") => " AND ef = 0",
        _ => "",
    };
    for asked in ASKED {
        let all = ask(&format!("SELECT rowid, {distance}(e, '{asked}') AS d FROM {name} ORDER BY d, rowid"))?;
        let search = |how: &str| {
            ask(&format!(
                "SELECT rowid, distance FROM {name} WHERE e MATCH '{asked}' AND k = {NEAREST}{how} ORDER BY distance"
            ))
        };
        same(name, asked, &search(exactly)?, &all[..all.len().min(NEAREST)])?;
        // Asked again and again, a search makes what it keeps in memory.
        for _ in 0..8 {
            if let Some(stranger) = search("")?.iter().find(|row| !all.contains(row)) {
                return Err(format!("{name}: {asked} finds {stranger:?}, which no scan finds"));
            }
        }
    }
    Ok(())
}

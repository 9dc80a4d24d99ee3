//! A round: one pair of databases from its first pragma to the comparison of files.

use super::coverage::Coverage;
use super::explained::explain;
use super::generate::{Callable, Features, Gen};
use super::model::Model;
use super::pair::{Difference, Pair, Stmt, only_reads};
use super::rng::Rng;
use std::collections::BTreeMap;
use std::path::Path;

/// What a round found.
#[derive(Clone)]
pub struct Finding {
    /// The statements up to and with the one that differs.
    pub script: Vec<Stmt>,
    /// What differs.
    pub difference: Difference,
    /// In memory.
    pub in_memory: bool,
}

/// A round's result.
pub struct Round {
    /// Statements run.
    pub statements: usize,
    /// Plans compared.
    pub plans: usize,
    /// Differences.
    pub findings: Vec<Finding>,
    /// Counts.
    pub coverage: Coverage,
}

/// How many statements a round has, the first part apart.
const LENGTH: usize = 220;

/// Runs the round with this seed.
pub fn round(seed: u64, dir: &Path, callables: &[Callable], features: Features, only: Option<&str>) -> Round {
    let mut rng = Rng::new(seed);
    let in_memory = rng.chance(35);
    let mut pair = Pair::new(dir, in_memory);
    pair.coverage = Some(Coverage::default());
    let mut script: Vec<Stmt> = Vec::new();
    let mut findings = Vec::new();
    let mut statements = 0;
    let mut pending: Vec<Stmt> = opening(&mut rng, in_memory, features).into_iter().rev().collect();
    let utf8 = !pending.iter().any(|s| s.sql.contains("UTF-16"));
    let alike = rng.chance(40);
    let mut g = Gen {
        rng,
        model: Model::default(),
        callables,
        features,
        used: BTreeMap::new(),
        serial: 0,
        utf8,
        alike,
        ctes: Vec::new(),
        schema_expr: false,
        nest: 0,
        aliases: false,
    };
    let mut step = 0;
    let mut over = false;
    while step < LENGTH || !pending.is_empty() {
        g.used.clear();
        g.ctes.clear();
        let s = match pending.pop() {
            Some(s) => s,
            None => {
                step += 1;
                let Some(s) = statement(&mut g, step, pair.stock().is_autocommit()) else { continue };
                if g.features.wrong_names && takes_parameters(s.kind) && g.rng.chance(60) {
                    Stmt { sql: misnamed(&s.sql, &mut g.rng), ..s }
                } else if takes_parameters(s.kind) && g.rng.chance(30) {
                    let (sql, params) = super::params::lift(&s.sql, &mut g.rng);
                    Stmt { sql, params, ..s }
                } else {
                    s
                }
            }
        };
        if only.is_some_and(|k| step > 25 && !s.kind.starts_with(k)) {
            continue;
        }
        statements += 1;
        script.push(s.clone());
        let d = pair.run(&s);
        let failed = pair.last.error.is_some();
        if let Some(c) = &mut pair.coverage {
            let query = !pair.last.columns.is_empty();
            c.outcome(s.kind, failed, query, pair.last.rows.is_empty());
            if !failed {
                for (f, n) in &g.used {
                    *c.functions.entry(f).or_default() += n;
                }
            }
        }
        if let Some(difference) = d {
            let diverged = explain(&script, &difference).is_some_and(|e| e.diverges);
            let fatal = !only_reads(&s.sql) || pair.exhausted || diverged;
            findings.push(Finding { script: script.clone(), difference, in_memory });
            script.pop();
            if fatal {
                over = true;
                break;
            }
            continue;
        }
        if pair.exhausted {
            over = true;
            break;
        }
        if only_reads(&s.sql) {
            // Queries leave nothing behind: the script to be shrunk is shorter without them.
            script.pop();
            continue;
        }
        g.model = Model::read(pair.stock());
        if let Some(t) = written(&s.sql, &g) {
            pending.push(plain("dump", format!("SELECT * FROM {t}")));
        }
    }
    if !over && let Some(difference) = pair.finish() {
        findings.push(Finding { script, difference, in_memory });
    }
    let coverage = pair.coverage.take().unwrap_or_default();
    Round { statements, plans: 0, findings, coverage }
}

fn plain(kind: &'static str, sql: String) -> Stmt {
    Stmt::plain(kind, sql)
}

/// A statement with other names in the place of some: of the words outside quotes, those that are not capitals.
fn misnamed(sql: &str, rng: &mut Rng) -> String {
    let share = *rng.pick(&[3, 10, 25]);
    let (mut out, mut quote, mut word) = (String::new(), None, String::new());
    for ch in sql.chars().chain([' ']) {
        if quote.is_none() && (ch.is_ascii_alphanumeric() || ch == '_') {
            word.push(ch);
            continue;
        }
        let is_name = word.starts_with(|c: char| c.is_ascii_lowercase());
        let wrong = is_name && rng.chance(share);
        out += if wrong { *rng.pick(&["nosuch", "other", "a", "b"]) } else { &*word };
        word.clear();
        out.push(ch);
        quote = match quote {
            None if matches!(ch, '\'' | '"' | '`') => Some(ch),
            Some(q) if q == ch => None,
            q => q,
        };
    }
    out.truncate(out.trim_end().len());
    out
}

fn takes_parameters(kind: &str) -> bool {
    let kinds =
        ["select", "lookup", "compound", "nested", "with", "insert", "replace", "upsert", "update", "delete"];
    kinds.iter().any(|k| kind.starts_with(k))
}

/// The table that a statement names as its target.
fn written(sql: &str, g: &Gen<'_>) -> Option<String> {
    let head = sql.split_whitespace().next()?;
    if !["INSERT", "REPLACE", "UPDATE", "DELETE"].contains(&head) {
        return None;
    }
    let t =
        g.model.tables.iter().find(|t| sql.split_whitespace().take(5).any(|w| w.starts_with(&t.full())))?;
    Some(t.full())
}

/// Settings of the fresh databases.
fn opening(rng: &mut Rng, in_memory: bool, features: Features) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut add = |s: String| out.push(plain("pragma", s));
    match rng.below(5) {
        0 => add("PRAGMA encoding = 'UTF-16le'".into()),
        1 => add("PRAGMA encoding = 'UTF-16be'".into()),
        _ => {}
    }
    if rng.chance(50) {
        add(format!("PRAGMA page_size = {}", rng.pick(&[512, 1024, 4096, 8192, 65536])));
    }
    if rng.chance(40) {
        add(format!("PRAGMA auto_vacuum = {}", rng.pick(&[1, 2])));
    }
    if !in_memory && rng.chance(70) {
        add(format!(
            "PRAGMA journal_mode = {}",
            rng.pick(&["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL", "WAL"])
        ));
    }
    if rng.chance(60) {
        add("PRAGMA recursive_triggers = 1".into());
    }
    if features.foreign_keys && rng.chance(85) {
        add("PRAGMA foreign_keys = 1".into());
    }
    out
}

fn statement(g: &mut Gen<'_>, step: usize, autocommit: bool) -> Option<Stmt> {
    if step <= 4 {
        return Some(plain("create table", g.create_table()));
    }
    if step <= 14 {
        let (kind, sql) = g.insert()?;
        return Some(plain(kind, sql));
    }
    if step <= 20 {
        return match g.rng.below(4) {
            0 | 1 => Some(plain("create index", g.create_index()?)),
            2 => Some(plain("create view", g.create_view())),
            _ => Some(plain("create trigger", g.create_trigger()?)),
        };
    }
    let weights = [
        48, // query
        14, // insert
        8,  // update
        5,  // delete
        2,  // write view
        5,  // transactions
        1,  // create table
        1,  // create table as
        2,  // create index
        1,  // create view
        1,  // create trigger
        1,  // drop
        1,  // reindex, analyze, vacuum
        3,  // pragma
        1,  // attach, detach
        2,  // explain query plan
        1,  // mistakes
        if g.features.alter { 5 } else { 0 },
    ];
    Some(match g.rng.weighted(weights.iter().copied()) {
        0 => {
            let (kind, sql, ordered) = g.query();
            Stmt { ordered, ..plain(kind, sql) }
        }
        1 => from_pair(g.insert()?),
        2 => from_pair(g.update()?),
        3 => from_pair(g.delete()?),
        4 => from_pair(g.write_view()?),
        5 => transaction(g, autocommit),
        6 => plain("create table", g.create_table()),
        7 => plain("create table as", g.create_table_as()),
        8 => plain("create index", g.create_index()?),
        9 => plain("create view", g.create_view()),
        10 => plain("create trigger", g.create_trigger()?),
        11 => from_pair(g.drop_something()?),
        12 => match g.rng.below(4) {
            0 => plain("analyze", "ANALYZE".into()),
            1 => plain("vacuum", "VACUUM".into()),
            2 => plain("reindex", "REINDEX".into()),
            _ => {
                let t = g.base_table()?;
                plain("reindex", format!("REINDEX {}", t.full()))
            }
        },
        13 => plain("pragma", g.pragma()?),
        14 => match g.model.attached.first().cloned() {
            // Within a transaction it depends on which databases have been read whether they can be detached.
            Some(name) if autocommit && g.rng.chance(40) => plain("detach", format!("DETACH {name}")),
            Some(_) if g.rng.chance(80) => return None,
            _ => {
                let name = g.name("aux");
                let file = if g.rng.chance(50) { ":memory:".into() } else { format!("@DIR@/{name}.db") };
                plain("attach", format!("ATTACH '{file}' AS {name}"))
            }
        },
        15 => {
            let (_, sql, _) = g.query();
            Stmt { loose: true, ..plain("explain query plan", format!("EXPLAIN QUERY PLAN {sql}")) }
        }
        16 => mistake(g),
        _ => plain("alter", g.alter()?),
    })
}

fn from_pair((kind, sql): (&'static str, String)) -> Stmt {
    plain(kind, sql)
}

fn transaction(g: &mut Gen<'_>, autocommit: bool) -> Stmt {
    let r = g.rng.below(100);
    if autocommit {
        return match r {
            0..=49 => plain(
                "begin",
                g.one(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "BEGIN DEFERRED TRANSACTION"]),
            ),
            50..=94 => plain("savepoint", "SAVEPOINT s1".into()),
            95..=96 => plain("commit", "COMMIT".into()),
            _ => plain("release", "RELEASE s1".into()),
        };
    }
    if g.features.foreign_keys && g.rng.chance(40) {
        return plain("pragma", "PRAGMA defer_foreign_keys = 1".into());
    }
    match r {
        0..=19 => plain("commit", g.one(&["COMMIT", "END"])),
        20..=29 => plain("rollback", "ROLLBACK".into()),
        30..=57 => {
            plain("savepoint", g.one(&["SAVEPOINT s1", "SAVEPOINT s2", "SAVEPOINT s3", "SAVEPOINT S1"]))
        }
        58..=83 => plain(
            "rollback to",
            g.one(&[
                "ROLLBACK TO s1",
                "ROLLBACK TO s2",
                "ROLLBACK TO s3",
                "ROLLBACK TRANSACTION TO SAVEPOINT s1",
            ]),
        ),
        84..=97 => plain("release", g.one(&["RELEASE s1", "RELEASE SAVEPOINT s2", "RELEASE s3"])),
        _ => plain("begin", "BEGIN".into()),
    }
}

/// Statements that fail, one way or another.
fn mistake(g: &mut Gen<'_>) -> Stmt {
    let table = g.any_table().map_or("nosuch".into(), |t| t.full());
    let sql = match g.rng.below(26) {
        0 => format!("SELECT nosuch FROM {table}"),
        1 => "SELECT * FROM nosuch".into(),
        2 => format!("SELECT nosuch(1) FROM {table}"),
        3 => format!("SELECT abs(1, 2) FROM {table}"),
        4 => format!("SELECT * FROM {table} WHERE"),
        5 => format!("SELECT (SELECT 1, 2) FROM {table}"),
        6 => format!("INSERT INTO {table} VALUES (1,2,3,4,5,6,7,8,9,10)"),
        7 => format!("INSERT INTO {table}(nosuch) VALUES (1)"),
        8 => format!("UPDATE {table} SET nosuch = 1"),
        9 => format!("DELETE FROM {table} WHERE nosuch = 1"),
        10 => "SELECT 1 UNION SELECT 1, 2".into(),
        11 => format!("SELECT * FROM {table} ORDER BY 99"),
        12 => format!("SELECT count(*) FROM {table} GROUP BY 99"),
        13 => format!("SELECT * FROM {table} WHERE count(*) > 1"),
        14 => "SELECT max(count(*)) FROM (SELECT 1)".into(),
        15 => format!("CREATE TABLE {table}(a)"),
        16 => "DROP TABLE nosuch".into(),
        17 => "DROP INDEX nosuch".into(),
        18 => format!("SELECT a FROM {table} AS p, {table} AS q"),
        19 => format!("CREATE INDEX i ON {table}(nosuch)"),
        20 => "SELECT 'abc".into(),
        21 => "SELECT * FROM (SELECT 1) LIMIT 'x'".into(),
        22 => format!("SELECT * FROM {table} INDEXED BY nosuch"),
        23 => "SELECT abs(-9223372036854775807 - 1)".into(),
        24 => format!("CREATE TABLE dup{}(a, a)", g.serial),
        _ => "SELECT (1, 2) = (1, 2, 3)".into(),
    };
    plain("mistake", sql)
}

//! Texts written from SQLite's documentation, page by page: statements of fact in our own words, each with SQL that shows
//! it and the answers. Stock SQLite and ours both have to give these answers, and the same codes, messages, column names,
//! declared types and counts of changes besides.
//!
//! `pages/NAME.txt` belongs to the page NAME. Its lines:
//!
//! ```text
//! @ CREATE TABLE t(a, b)      run before each fact that follows, on a database in memory that is new for each fact;
//! @file                       (in a file instead); a block of such lines replaces the one before
//! # NULL sorts first.         a fact; statements follow
//! > SELECT a FROM t           a statement, and below it its rows, or `error CODE: MESSAGE`
//!   ORDER BY a                (a line that begins with two spaces continues it)
//! NULL
//! >> SELECT a AS x FROM t     the same, with names and declared types of the columns before the rows
//! > EXPLAIN QUERY PLAN SELECT 1  a plan's lines begin with as many dashes as they stand deep
//! - SCAN CONSTANT ROW
//! ~ why                       ours is known to give other answers here
//! ! fact -- why               a fact that no text here can show, and why; who else shows it
//! ```

use crate::differ::pair::{Outcome, Pair, Stmt, V};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A line of a page's text that is more than a comment.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Item {
    /// What runs before each of the facts that follow, and whether in a file.
    Setup { statements: Vec<String>, file: bool },
    /// A fact and what shows it.
    Fact { text: String, known: Option<String>, shown: Vec<Shown> },
    /// A fact without a test, and the reason.
    Untested { text: String, why: String },
    /// A remark, kept when the text is written anew.
    Remark(String),
}

/// A statement and its answer.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its text.
    pub sql: String,
    /// Names and types of its columns belong to the answer.
    pub header: bool,
    /// The lines of its answer.
    pub answer: Vec<String>,
}

/// What became of a fact.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Where stock's answer was another than the text's.
    pub stock: Option<String>,
    /// Where ours was another than the text's, or differed from stock beside it.
    pub ours: Option<String>,
    /// The answers of stock.
    pub answers: Vec<Vec<String>>,
}

/// All pages: their names and files, sorted.
pub fn files() -> Vec<(String, PathBuf)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages");
    let entries = std::fs::read_dir(dir).expect("the folder of pages");
    let mut out: Vec<(String, PathBuf)> = entries
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .map(|p| (p.file_stem().expect("a name").to_string_lossy().into_owned(), p))
        .collect();
    out.sort();
    out
}

/// Reads a page's text.
pub fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = Vec::new();
    // Lines of one setup stand together.
    let mut in_setup = false;
    for (n, line) in text.lines().enumerate() {
        let bad = |why: &str| format!("line {}: {why}: {line}", n + 1);
        let setup = line.starts_with('@');
        if setup {
            if !in_setup {
                items.push(Item::Setup { statements: Vec::new(), file: false });
            }
            let Some(Item::Setup { statements, file }) = items.last_mut() else { unreachable!() };
            match line[1..].trim() {
                "file" => *file = true,
                "" => {}
                sql => statements.push(sql.into()),
            }
        } else if let Some(text) = line.strip_prefix("# ") {
            items.push(Item::Fact { text: text.into(), known: None, shown: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("! ") {
            let (text, why) = rest.split_once(" -- ").ok_or_else(|| bad("no reason"))?;
            items.push(Item::Untested { text: text.into(), why: why.into() });
        } else if line.starts_with("//") {
            items.push(Item::Remark(line.into()));
        } else if let Some(why) = line.strip_prefix("~ ") {
            let Some(Item::Fact { known, .. }) = items.last_mut() else {
                return Err(bad("a known difference without a fact"));
            };
            *known = Some(why.into());
        } else if !line.is_empty() {
            let Some(Item::Fact { shown, .. }) = items.last_mut() else {
                return Err(bad("an answer without a fact"));
            };
            if let Some(sql) = line.strip_prefix('>') {
                let header = sql.starts_with('>');
                let sql = sql.trim_start_matches('>').trim().to_string();
                shown.push(Shown { sql, header, answer: Vec::new() });
            } else {
                let s = shown.last_mut().ok_or_else(|| bad("an answer without a statement"))?;
                match line.strip_prefix("  ") {
                    Some(more) if s.answer.is_empty() => {
                        s.sql.push('\n');
                        s.sql.push_str(more);
                    }
                    _ => s.answer.push(line.into()),
                }
            }
        }
        in_setup = setup;
    }
    Ok(items)
}

/// Writes a page's text, with other answers where they are given.
pub fn print(items: &[Item], verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    let mut verdicts = verdicts.iter();
    for item in items {
        match item {
            Item::Remark(text) => {
                let _ = writeln!(out, "{text}");
                continue;
            }
            Item::Setup { statements, file } => {
                if *file {
                    out += "@file\n";
                }
                for s in statements {
                    let _ = writeln!(out, "@ {s}");
                }
                if statements.is_empty() && !file {
                    out += "@\n";
                }
            }
            Item::Untested { text, why } => {
                let _ = writeln!(out, "! {text} -- {why}");
            }
            Item::Fact { text, known, shown } => {
                let _ = writeln!(out, "# {text}");
                if let Some(why) = known {
                    let _ = writeln!(out, "~ {why}");
                }
                let mut answers = verdicts.next().into_iter().flat_map(|v| v.answers.iter());
                for s in shown {
                    let _ = writeln!(
                        out,
                        "{} {}",
                        if s.header { ">>" } else { ">" },
                        s.sql.replace('\n', "\n  ")
                    );
                    for line in answers.next().unwrap_or(&s.answer) {
                        let _ = writeln!(out, "{line}");
                    }
                }
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Runs the facts of a page on both engines; ours in columns wherever it can if `columns`.
pub fn run(name: &str, items: &[Item], columns: bool) -> Vec<Verdict> {
    let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let dir = base.join(format!("pages-{}-{name}-{columns}", std::process::id()));
    let mut setup: (&[String], bool) = (&[], false);
    let mut out = Vec::new();
    for item in items {
        match item {
            Item::Setup { statements, file } => setup = (statements, *file),
            Item::Fact { shown, .. } => {
                // How many rows of its own tables a change of such a table changes is not compared.
                let counts = !["fts", "rtree", "geopoly"].iter().any(|n| name.starts_with(n));
                out.push(fact(&dir, setup, shown, (columns, counts)));
            }
            Item::Untested { .. } | Item::Remark(_) => {}
        }
    }
    out
}

fn fact(
    dir: &Path,
    (setup, file): (&[String], bool),
    shown: &[Shown],
    (columns, counts): (bool, bool),
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut pair = Pair::new(dir, !file);
    if columns {
        pair.force_columns();
    }
    let note = |slot: fn(&mut Verdict) -> &mut Option<String>, v: &mut Verdict, sql: &str, why: String| {
        let all = slot(v).get_or_insert_default();
        let _ = write!(all, "{}{sql}\n{why}", if all.is_empty() { "" } else { "\n" });
    };
    for sql in setup {
        let d = pair.run(&statement(sql));
        if let Some((_, text)) = &pair.last.error {
            note(|v| &mut v.stock, &mut verdict, sql, text.clone());
        }
        if let Some(d) = d {
            note(|v| &mut v.ours, &mut verdict, sql, format!("stock: {}\nours:  {}", d.stock, d.ours));
        }
    }
    for s in shown {
        // Plans in columns are others.
        if columns && s.sql.starts_with("EXPLAIN") {
            verdict.answers.push(s.answer.clone());
            continue;
        }
        let d = pair.run(&statement(&s.sql));
        let own = format!("{}/@", dir.display());
        let shown = |o: &Outcome| -> Vec<String> {
            lines(o, s.header).iter().map(|l| l.replace(&own, "@DIR@")).collect()
        };
        let theirs = shown(&pair.last);
        if theirs != s.answer {
            note(
                |v| &mut v.stock,
                &mut verdict,
                &s.sql,
                format!("text:  {}\nstock: {}", s.answer.join("\n       "), theirs.join("\n       ")),
            );
        }
        let ours = pair.last_ours.as_ref().map(shown);
        match (d, ours) {
            (None, Some(o)) if o == theirs => {}
            (Some(d), Some(o)) if o == theirs && d.what == "state" && !counts => {}
            // Numbers of a plan's lines are each engine's own.
            (Some(d), Some(o)) if o == theirs && d.what == "rows" && s.sql.starts_with("EXPLAIN QUERY") => {}
            // Stock's ALTER shows the columns of a query of its own.
            (Some(d), Some(o)) if o == theirs && d.what == "columns" && s.sql.starts_with("ALTER") => {}
            (_, Some(o)) if o != theirs => note(
                |v| &mut v.ours,
                &mut verdict,
                &s.sql,
                format!("stock: {}\nours:  {}", theirs.join("\n       "), o.join("\n       ")),
            ),
            (d, _) => {
                let (what, theirs, ours) =
                    d.map_or(("exhausted", String::new(), String::new()), |d| (d.what, d.stock, d.ours));
                note(
                    |v| &mut v.ours,
                    &mut verdict,
                    &s.sql,
                    format!("{what}\nstock: {theirs}\nours:  {ours}"),
                );
            }
        }
        verdict.answers.push(theirs);
        if pair.exhausted {
            break;
        }
    }
    verdict
}

fn statement(sql: &str) -> Stmt {
    Stmt { ordered: true, ..Stmt::plain("page", sql.into()) }
}

/// An outcome as the texts show it.
fn lines(o: &Outcome, header: bool) -> Vec<String> {
    let mut out = Vec::new();
    if let Some((code, message)) = &o.error {
        out.push(format!("error {code}: {}", message.escape_debug()));
        return out;
    }
    if header {
        let named = |(name, ty): &(String, Option<String>)| match ty {
            Some(t) => format!("{} {t}", name.escape_debug()),
            None => name.escape_debug().to_string(),
        };
        out.push(format!("({})", o.columns.iter().map(named).collect::<Vec<_>>().join(", ")));
    }
    let names: Vec<&str> = o.columns.iter().map(|c| &*c.0).collect();
    if names == ["id", "parent", "notused", "detail"] {
        return tree(&o.rows);
    }
    for r in &o.rows {
        out.push(r.iter().map(V::show).collect::<Vec<_>>().join("|"));
    }
    out
}

/// A plan: as many dashes before a line as it stands deep.
fn tree(rows: &[Vec<V>]) -> Vec<String> {
    let mut depths: Vec<(&V, usize)> = Vec::new();
    let mut out = Vec::new();
    for r in rows {
        let [id, parent, _, V::Text(detail)] = &r[..] else { continue };
        let depth = depths.iter().find(|d| d.0 == parent).map_or(0, |d| d.1) + 1;
        depths.push((id, depth));
        out.push(format!("{} {}", "-".repeat(depth), String::from_utf8_lossy(detail)));
    }
    out
}

/// The table of all pages.
pub fn report() -> String {
    let mut table = String::new();
    let mut rest = String::new();
    let mut sum = [0usize; 5];
    for (name, path) in files() {
        let items = read(&path);
        let verdicts = run(&name, &items, false);
        let (mut differ, mut untested) = (String::new(), String::new());
        let mut facts = verdicts.iter();
        let mut n = [0usize; 5];
        for item in &items {
            match item {
                Item::Fact { text, known, shown } => {
                    n[4] += shown.len();
                    let v = facts.next().expect("a verdict for each fact");
                    n[0] += 1;
                    n[1] += usize::from(v.stock.is_none());
                    n[2] += usize::from(v.ours.is_none());
                    if v.ours.is_some() {
                        let why = known.as_deref().unwrap_or("not yet looked into");
                        let _ = writeln!(differ, "- differs: {text} In iolite: {why}.");
                    }
                }
                Item::Untested { text, why } => {
                    n[3] += 1;
                    let _ = writeln!(untested, "- not tested: {text} ({why})");
                }
                _ => {}
            }
        }
        let _ = writeln!(table, "| {name} | {} | {} | {} | {} | {} |", n[4], n[0], n[1], n[2], n[3]);
        if n[3] > 0 || !differ.is_empty() {
            let _ = write!(rest, "\n## {name}\n\n{differ}{untested}");
        }
        for (s, n) in sum.iter_mut().zip(n) {
            *s += n;
        }
    }
    format!(
        "# Compatibility with SQLite's documentation, page by page\n\n\
         Written by `cargo run --profile perf -p iolite-conform --bin pages -- --report docs/compatibility.md`; \
         `cargo test -p iolite-conform` compares. Each page of SQLite 3.53's documentation has a text in \
         `crates/conform/pages`: statements of fact, each with SQL and its answers, which run on stock SQLite and on iolite.\n\n\
         | page | statements | facts tested | hold on stock | hold on iolite | not tested |\n|---|---:|---:|---:|---:|---:|\n{table}\
         | **all** | {} | {} | {} | {} | {} |\n\n\
         Below: where iolite differs, and the facts that no text tests, with the reason.\n{rest}",
        sum[4], sum[0], sum[1], sum[2], sum[3]
    )
}

/// Reads a page's file.
pub fn read(path: &Path) -> Vec<Item> {
    let text = std::fs::read_to_string(path).expect("a page's text");
    parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

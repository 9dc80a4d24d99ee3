//! Both engines side by side, each on a database of its own: runs a statement on both and says what differs.
//!
//! `@DIR@` in a statement stands for the engine's own folder.

use super::coverage::Coverage;
use super::plans;
use iolite::engine::Step;
use iolite_stock as stock;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A value of either engine. Reals by their bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum V {
    Null,
    Int(i64),
    Real(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl V {
    fn of_stock(v: stock::Value) -> V {
        match v {
            stock::Value::Null => V::Null,
            stock::Value::Int(i) => V::Int(i),
            stock::Value::Real(r) => V::Real(r.to_bits()),
            stock::Value::Text(b) => V::Text(b),
            stock::Value::Blob(b) => V::Blob(b),
        }
    }

    fn of_ours(v: &iolite::engine::Value) -> V {
        match v {
            iolite::engine::Value::Null => V::Null,
            iolite::engine::Value::Int(i) => V::Int(*i),
            iolite::engine::Value::Real(r) => V::Real(r.to_bits()),
            iolite::engine::Value::Text(b, _) => V::Text(b.to_vec()),
            iolite::engine::Value::Blob(b, _) => V::Blob(b.to_vec()),
        }
    }

    fn to_stock(&self) -> stock::Value {
        match self {
            V::Null => stock::Value::Null,
            V::Int(i) => stock::Value::Int(*i),
            V::Real(b) => stock::Value::Real(f64::from_bits(*b)),
            V::Text(b) => stock::Value::Text(b.clone()),
            V::Blob(b) => stock::Value::Blob(b.clone()),
        }
    }

    fn to_ours(&self) -> iolite::Result<iolite::engine::Value> {
        Ok(match self {
            V::Null => iolite::engine::Value::Null,
            V::Int(i) => iolite::engine::Value::Int(*i),
            V::Real(b) => iolite::engine::Value::Real(f64::from_bits(*b)),
            V::Text(b) => iolite::engine::Value::text(b)?,
            V::Blob(b) => iolite::engine::Value::blob(b)?,
        })
    }

    /// Equal where an ORDER BY cannot tell them apart.
    fn ties(&self, other: &V) -> bool {
        let number = |v: &V| match v {
            V::Int(i) => Some(*i as f64),
            V::Real(b) => Some(f64::from_bits(*b)),
            _ => None,
        };
        let folded = |v: &V| match v {
            V::Text(b) => Some(b.to_ascii_lowercase().trim_ascii_end().to_vec()),
            _ => None,
        };
        self == other
            || number(self).is_some_and(|a| number(other) == Some(a))
            || folded(self).is_some_and(|a| folded(other) == Some(a))
    }

    /// As the shell's `quote` mode shows it.
    pub fn show(&self) -> String {
        match self {
            V::Null => "NULL".into(),
            V::Int(i) => i.to_string(),
            V::Real(b) => format!("{:?}", f64::from_bits(*b)),
            V::Text(b) => format!("'{}'", String::from_utf8_lossy(b).escape_debug()),
            V::Blob(b) => format!("x'{}'", b.iter().map(|x| format!("{x:02x}")).collect::<String>()),
        }
    }
}

/// What a statement came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Code and message of the error.
    pub error: Option<(i32, String)>,
    /// The rows.
    pub rows: Vec<Vec<V>>,
    /// Column names and declared types.
    pub columns: Vec<(String, Option<String>)>,
    /// changes(), total_changes(), last_insert_rowid(), autocommit.
    pub state: (i64, i64, i64, bool),
}

/// A statement of a script.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its kind, for the coverage table.
    pub kind: &'static str,
    /// Its text.
    pub sql: String,
    /// What is bound to its parameters.
    pub params: Vec<V>,
    /// ORDER BY settles the order of the rows up to ties of equal numbers.
    pub ordered: bool,
    /// Only whether it fails is compared.
    pub loose: bool,
    /// It asks for a plan: the tree is compared.
    pub plan: bool,
}

impl Stmt {
    /// A statement whose rows are compared as a set.
    pub fn plain(kind: &'static str, sql: String) -> Stmt {
        Stmt { kind, sql, params: Vec::new(), ordered: false, loose: false, plan: false }
    }

    /// EXPLAIN QUERY PLAN of a statement.
    pub fn plan(kind: &'static str, sql: &str) -> Stmt {
        Stmt { plan: true, ..Stmt::plain(kind, format!("EXPLAIN QUERY PLAN {sql}")) }
    }

    /// A statement to be run again, as findings show it: its text, and behind `; -- with ` what is bound.
    pub fn parse(line: &str) -> Stmt {
        let (sql, list) = line.split_once("; -- with ").unwrap_or((line, ""));
        let mut s = Stmt { ordered: true, ..Stmt::plain("replay", sql.into()) };
        if !list.is_empty() {
            let list = list.replace("\\'", "''");
            let db = stock::Connection::open(":memory:").expect("there is memory");
            let mut rows = db.query(&format!("SELECT {list}")).expect("values are shown as literals");
            s.params = rows.remove(0).into_iter().map(V::of_stock).collect();
        }
        s
    }
}

impl std::fmt::Display for Stmt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{};", self.sql)?;
        if !self.params.is_empty() {
            let shown: Vec<String> = self.params.iter().map(V::show).collect();
            write!(f, " -- with {}", shown.join(", "))?;
        }
        Ok(())
    }
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What differs: `rows`, `error`, `columns`, `state`, `panic`, `file`, `plan`.
    pub what: &'static str,
    /// Stock SQLite's side.
    pub stock: String,
    /// Ours.
    pub ours: String,
    /// The code and message with which the writing statement before it failed on both, if it did. Triggers that recurred too deeply
    /// count for all that follows: what is left of them may be in other tables than the next one's.
    pub before: Option<(i32, String)>,
    /// A writing statement had failed before.
    pub failed: bool,
}

impl Difference {
    fn new(what: &'static str, stock: String, ours: String) -> Difference {
        Difference { what, stock, ours, before: None, failed: false }
    }

    /// Differences of one cause mostly have one signature: names and numbers are taken out.
    pub fn signature(&self, kind: &str) -> String {
        if self.what == "plan" {
            return format!("plan of {kind} | {}", plans::signature(&self.stock, &self.ours));
        }
        let side = |s: &str| -> String {
            match self.what {
                "rows" => String::new(),
                "columns" | "state" => String::new(),
                _ => {
                    let mut out = String::new();
                    // The table of a WITH clause and a stored one are missing for different reasons.
                    if let Some(t) = s.strip_prefix("error 1: no such table: ") {
                        let kind = if t.starts_with('w') { "w" } else { "t" };
                        return format!("no such table {kind}{}", if t.contains('.') { "." } else { "" });
                    }
                    for w in s.split(' ') {
                        let named = w.bytes().any(|b| b.is_ascii_digit() || b == b'.' || b == b'"');
                        out += if named { "#" } else { w };
                        out.push(' ');
                    }
                    out.truncate(out.floor_char_boundary(160));
                    out
                }
            }
        };
        let kind = if matches!(self.what, "rows" | "columns" | "state") { kind } else { "" };
        format!("{} {kind} | {}| {}", self.what, side(&self.stock), side(&self.ours))
    }
}

/// Both engines.
pub struct Pair {
    dir: PathBuf,
    stock: Option<stock::Connection>,
    ours: Option<iolite::engine::Connection>,
    /// How many errors its columnar engine had.
    column_errors: u64,
    deadline: Rc<Cell<Instant>>,
    in_memory: bool,
    /// Counts, if wanted.
    pub coverage: Option<Coverage>,
    /// A statement ran too long on stock: nothing more can be compared.
    pub exhausted: bool,
    /// The last statement's outcome on stock.
    pub last: Outcome,
    /// The last statement's outcome on ours, if it came to one.
    pub last_ours: Option<Outcome>,
    /// The last writing statement's error.
    before: Option<(i32, String)>,
    /// A writing statement has failed.
    failed: bool,
}

/// Whether a statement leaves rows and schema as they are.
pub fn only_reads(sql: &str) -> bool {
    ["SELECT", "VALUES", "WITH", "EXPLAIN"].iter().any(|w| sql.starts_with(w))
}

/// Rows beyond these are not fetched.
pub const MAX_ROWS: usize = 20_000;
/// Thousands of stock's instructions after which a statement is given up.
const MAX_STEPS: i64 = 3_000;
/// After this our side is thought to hang: stock's steps take less than a tenth of it.
const MAX_TIME: Duration = Duration::from_secs(8);

impl Pair {
    /// Fresh databases in a folder that is emptied first; in memory if the name says so.
    pub fn new(dir: &Path, in_memory: bool) -> Pair {
        let _ = std::fs::remove_dir_all(dir);
        for side in ["stock", "ours"] {
            std::fs::create_dir_all(dir.join(side)).expect("a folder for the databases");
        }
        let mut p = Pair {
            dir: dir.into(),
            stock: None,
            ours: None,
            column_errors: 0,
            deadline: Rc::new(Cell::new(Instant::now())),
            in_memory,
            coverage: None,
            exhausted: false,
            last: Outcome::default(),
            last_ours: None,
            before: None,
            failed: false,
        };
        p.open("stock", "ours").expect("fresh databases open");
        p
    }

    fn file(&self, side: &str) -> String {
        if self.in_memory { ":memory:".into() } else { format!("{}/{side}/main.db", self.dir.display()) }
    }

    /// Opens the database of one side with stock and the other's with ours.
    fn open(&mut self, stock_side: &str, our_side: &str) -> Result<(), Difference> {
        let c = stock::Connection::open(&self.file(stock_side));
        let fail = |s: String, o: String| Difference::new("file", s, o);
        self.stock = Some(c.map_err(|e| fail(e.message, String::new()))?);
        let flags = iolite::engine::OpenFlags::default();
        let c = iolite::engine::Connection::open_with(&self.file(our_side), flags)
            .map_err(|e| fail(String::new(), e.to_string()))?;
        crate::choose_analytics(&c);
        let deadline = self.deadline.clone();
        c.progress_handler(Some(Rc::new(move || Instant::now() > deadline.get())));
        self.ours = Some(c);
        Ok(())
    }

    /// Stock's connection.
    pub fn stock(&self) -> &stock::Connection {
        self.stock.as_ref().expect("open")
    }

    /// Has ours run in columns whatever can run there.
    pub fn force_columns(&self) {
        let c = self.ours.as_ref().expect("open");
        c.execute_batch("PRAGMA analytics = force").expect("a setting");
    }

    fn run_stock(&self, sql: &str, params: &[V]) -> Outcome {
        let c = self.stock();
        c.limit_steps(MAX_STEPS);
        let sql = sql.replace("@DIR@", &self.dir.join("stock").to_string_lossy());
        let mut out = Outcome::default();
        let mut run = || -> Result<(), stock::Error> {
            let mut s = c.prepare(&sql)?;
            for (i, v) in params.iter().enumerate() {
                s.bind(i + 1, &v.to_stock())?;
            }
            for i in 0..s.column_count() {
                out.columns.push((s.column_name(i), s.column_decltype(i)));
            }
            while s.step()? {
                out.rows.push(s.row().into_iter().map(V::of_stock).collect());
                if out.rows.len() >= MAX_ROWS {
                    break;
                }
            }
            Ok(())
        };
        let r = run();
        if let Err(e) = r {
            out.error = Some((e.code, e.message.replace("/stock", "/@")));
        }
        out.state = (c.changes(), c.total_changes(), c.last_insert_rowid(), c.is_autocommit());
        out
    }

    fn run_ours(&mut self, kind: &'static str, sql: &str, params: &[V]) -> Result<Outcome, String> {
        self.deadline.set(Instant::now() + MAX_TIME);
        let sql = sql.replace("@DIR@", &self.dir.join("ours").to_string_lossy());
        let c = self.ours.as_ref().expect("open");
        let coverage = &mut self.coverage;
        let mut out = Outcome::default();
        let r = catch_unwind(AssertUnwindSafe(|| -> Result<(), iolite::Error> {
            let mut s = c.prepare(&sql)?;
            for (i, v) in params.iter().enumerate() {
                s.bind(i + 1, v.to_ours()?)?;
            }
            for m in s.columns() {
                out.columns.push((m.name.to_string(), m.decltype.as_ref().map(|d| d.to_string())));
            }
            if let Some(cov) = coverage {
                cov.program(kind, s.program());
            }
            while s.step()? == Step::Row {
                out.rows.push(s.row().iter().map(V::of_ours).collect());
                if out.rows.len() >= MAX_ROWS {
                    break;
                }
            }
            Ok(())
        }));
        match r {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                out.error = Some((e.code().number() as i32, e.message().replace("/ours", "/@")));
            }
            Err(p) => {
                let text = p.downcast_ref::<String>().cloned();
                let text = text.or_else(|| p.downcast_ref::<&str>().map(|s| s.to_string()));
                return Err(text.unwrap_or_default());
            }
        }
        out.state = (c.changes(), c.total_changes(), c.last_insert_rowid(), c.is_autocommit());
        Ok(out)
    }

    /// Runs a statement on both.
    pub fn run(&mut self, s: &Stmt) -> Option<Difference> {
        let theirs = self.run_stock(&s.sql, &s.params);
        self.last = theirs.clone();
        self.last_ours = None;
        if theirs.error.as_ref().is_some_and(|e| e.0 == 9) {
            self.exhausted = true;
            return None;
        }
        let ours = match self.run_ours(s.kind, &s.sql, &s.params) {
            Ok(o) => o,
            Err(text) => {
                // A connection that has panicked is not used again, not even to close it.
                std::mem::forget(self.ours.take());
                self.exhausted = true;
                return Some(Difference::new("panic", show_outcome(&theirs), text));
            }
        };
        if ours.error.as_ref().is_some_and(|e| e.0 == 9) {
            self.exhausted = true;
            return Some(Difference::new("hang", show_outcome(&theirs), "runs on and on".into()));
        }
        let mut d = compare(s, &theirs, &ours);
        self.last_ours = Some(ours);
        let errors = self.ours.as_ref().map_or(0, |c| c.column_errors());
        if d.is_none() && errors > self.column_errors {
            d = Some(Difference::new(
                "columns",
                show_outcome(&theirs),
                "an error of the columnar engine".into(),
            ));
        }
        self.column_errors = errors;
        if let Some(d) = &mut d {
            (d.before, d.failed) = (self.before.clone(), self.failed);
        }
        if !only_reads(&s.sql) {
            let recurred = |e: &(i32, String)| e.1 == "too many levels of trigger recursion";
            if !self.before.as_ref().is_some_and(recurred) {
                self.before = theirs.error.clone();
            }
            self.failed |= theirs.error.is_some();
        }
        d
    }

    /// The last statement's outcome on stock, as text.
    pub fn shown(&self) -> String {
        show_outcome(&self.last)
    }

    /// Ends the script: each engine checks its own file, opens, checks and continues the other's.
    pub fn finish(&mut self) -> Option<Difference> {
        if self.exhausted || self.ours.is_none() {
            return None;
        }
        let stmt = |sql: &str| Stmt::plain("check", sql.into());
        if !self.stock().is_autocommit()
            && let Some(d) = self.run(&stmt("ROLLBACK"))
        {
            return Some(d);
        }
        if let Some(d) = self.check() {
            return Some(d);
        }
        if self.in_memory {
            return None;
        }
        self.close();
        if let Err(d) = self.open("ours", "stock") {
            return Some(d);
        }
        if let Some(mut d) = self.check() {
            d.what = "file";
            return Some(d);
        }
        let go_on = [
            "CREATE TABLE differ_last(a INTEGER PRIMARY KEY, b TEXT UNIQUE)",
            "INSERT INTO differ_last(b) VALUES ('x'), ('y'), (hex(zeroblob(3000)))",
            "DELETE FROM differ_last WHERE a = 2",
        ];
        for sql in go_on {
            if let Some(mut d) = self.run(&stmt(sql)) {
                d.what = "file";
                return Some(d);
            }
        }
        if let Some(mut d) = self.check() {
            d.what = "file";
            return Some(d);
        }
        None
    }

    /// Integrity and the content of all tables.
    fn check(&mut self) -> Option<Difference> {
        let stmt = |sql: &str| Stmt::plain("check", sql.into());
        for sql in ["PRAGMA integrity_check", "SELECT type, name, tbl_name, sql FROM sqlite_schema"] {
            if let Some(d) = self.run(&stmt(sql)) {
                return Some(d);
            }
        }
        let tables =
            self.stock().query("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap_or_default();
        for t in tables {
            let stock::Value::Text(name) = &t[0] else { continue };
            let name = String::from_utf8_lossy(name).replace('"', "\"\"");
            if let Some(d) = self.run(&stmt(&format!("SELECT * FROM main.\"{name}\""))) {
                return Some(d);
            }
        }
        None
    }

    fn close(&mut self) {
        self.stock = None;
        if let Some(c) = self.ours.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| c.close()));
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.close();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn show_rows(rows: &[Vec<V>]) -> String {
    let mut out = String::new();
    for r in rows.iter().take(30) {
        let v: Vec<String> = r.iter().map(V::show).collect();
        out += &v.join("|");
        out.push('\n');
    }
    if rows.len() > 30 {
        out += &format!("... {} rows\n", rows.len());
    }
    out
}

fn show_outcome(o: &Outcome) -> String {
    match &o.error {
        Some((code, text)) => format!("error {code}: {text}"),
        None => format!("ok\n{}", show_rows(&o.rows)),
    }
}

/// Whether rows are the same as far as the statement settles them.
fn same_rows(s: &Stmt, a: &[Vec<V>], b: &[Vec<V>]) -> bool {
    // A row for each page given back; how cells are spread over pages is nowhere laid down.
    if s.sql.starts_with("PRAGMA incremental_vacuum") {
        return true;
    }
    if a == b {
        return true;
    }
    if a.len() != b.len() {
        return false;
    }
    let sorted = |rows: &[Vec<V>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let close = |(x, y): (&Vec<V>, &Vec<V>)| x.len() == y.len() && x.iter().zip(y).all(|(v, w)| v.ties(w));
    // Where LIMIT cuts, rows that tie may be the ones left out.
    let cut = s.ordered && s.sql.contains("LIMIT");
    (cut || sorted(a) == sorted(b)) && (!s.ordered || a.iter().zip(b).all(close))
}

fn compare(s: &Stmt, theirs: &Outcome, ours: &Outcome) -> Option<Difference> {
    let differ = |what, a: String, b: String| Some(Difference::new(what, a, b));
    if s.loose {
        return match (&theirs.error, &ours.error) {
            (None, None) | (Some(_), Some(_)) => None,
            _ => differ("error", show_outcome(theirs), show_outcome(ours)),
        };
    }
    if theirs.error != ours.error {
        let short = |o: &Outcome| match &o.error {
            Some(_) => show_outcome(o),
            None => "ok".into(),
        };
        return differ("error", short(theirs), short(ours));
    }
    if s.plan {
        let (a, b) = (plans::tree(&theirs.rows), plans::tree(&ours.rows));
        return if a == b { None } else { differ("plan", a, b) };
    }
    if theirs.error.is_none() {
        // What stock's ALTER TABLE runs inside shows its columns.
        if theirs.columns != ours.columns && s.kind != "alter" {
            return differ("columns", format!("{:?}", theirs.columns), format!("{:?}", ours.columns));
        }
        if !same_rows(s, &theirs.rows, &ours.rows) {
            return differ("rows", show_rows(&theirs.rows), show_rows(&ours.rows));
        }
    }
    if theirs.state != ours.state {
        return differ("state", format!("{:?}", theirs.state), format!("{:?}", ours.state));
    }
    None
}

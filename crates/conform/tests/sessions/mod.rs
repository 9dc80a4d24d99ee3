//! Texts with several connections and statements that stay open: `tests/sessions/NAME.txt`. Each is run on stock SQLite and on
//! iolite, each on a file of its own, and must answer the same, line by line.
//!
//! ```text
//! a: SQL          runs SQL on connection `a`, which is opened on the file when it is first named
//! a.s = SQL       prepares statement `s` of `a`
//! a.s             steps it: a row, `done`, or an error
//! a.s!            resets it
//! close a         closes `a` (its statements first)
//! bytes 44 00ff   writes bytes into the file at an offset
//! check           what stock's `PRAGMA integrity_check` says of the file
//! ```
//!
//! `@DIR@` is the engine's own folder. A line that begins with `loose ` need only fail on both or on neither.

use iolite_stock as stock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One engine with its connections and statements.
trait Engine {
    fn run(&mut self, connection: &str, sql: &str) -> String;
    fn prepare(&mut self, connection: &str, name: &str, sql: &str) -> String;
    fn step(&mut self, name: &str) -> String;
    fn reset(&mut self, name: &str);
    fn close(&mut self, connection: &str);
}

fn shown(cells: &[String]) -> String {
    cells.join("|") + "\n"
}

fn blob(b: &[u8]) -> String {
    format!("x'{}'", b.iter().map(|x| format!("{x:02x}")).collect::<String>())
}

#[derive(Default)]
struct Stock {
    path: PathBuf,
    connections: BTreeMap<String, Box<stock::Connection>>,
    /// Those with statements, which borrow them, are never freed.
    kept: BTreeMap<String, &'static stock::Connection>,
    statements: BTreeMap<String, stock::Statement<'static>>,
}

impl Stock {
    fn connection(&mut self, name: &str) -> &stock::Connection {
        if let Some(c) = self.kept.get(name) {
            return c;
        }
        let path = self.path.to_string_lossy().into_owned();
        let open = || Box::new(stock::Connection::open(&path).expect("stock opens the file"));
        self.connections.entry(name.into()).or_insert_with(open)
    }

    fn keep(&mut self, name: &str) -> &'static stock::Connection {
        self.connection(name);
        if let Some(c) = self.connections.remove(name) {
            self.kept.insert(name.into(), Box::leak(c));
        }
        self.kept[name]
    }

    fn cell(v: &stock::Value) -> String {
        match v {
            stock::Value::Null => "NULL".into(),
            stock::Value::Int(i) => i.to_string(),
            stock::Value::Real(r) => format!("{r:?}"),
            stock::Value::Text(b) => String::from_utf8_lossy(b).into_owned(),
            stock::Value::Blob(b) => blob(b),
        }
    }

    fn error(e: &stock::Error) -> String {
        format!("error {}: {}\n", e.code & 255, e.message)
    }
}

impl Engine for Stock {
    fn run(&mut self, connection: &str, sql: &str) -> String {
        match self.connection(connection).query(sql) {
            Ok(rows) => rows.iter().map(|r| shown(&r.iter().map(Stock::cell).collect::<Vec<_>>())).collect(),
            Err(e) => Stock::error(&e),
        }
    }

    fn prepare(&mut self, connection: &str, name: &str, sql: &str) -> String {
        match self.keep(connection).prepare(sql) {
            Ok(s) => {
                self.statements.insert(format!("{connection}.{name}"), s);
                String::new()
            }
            Err(e) => Stock::error(&e),
        }
    }

    fn step(&mut self, name: &str) -> String {
        let Some(s) = self.statements.get_mut(name) else { return "not prepared\n".into() };
        match s.step() {
            Ok(true) => shown(&s.row().iter().map(Stock::cell).collect::<Vec<_>>()),
            Ok(false) => "done\n".into(),
            Err(e) => {
                s.reset();
                Stock::error(&e)
            }
        }
    }

    fn reset(&mut self, name: &str) {
        if let Some(s) = self.statements.get_mut(name) {
            s.reset();
        }
    }

    fn close(&mut self, connection: &str) {
        self.statements.retain(|k, _| !k.starts_with(&format!("{connection}.")));
        self.connections.remove(connection);
        self.kept.remove(connection);
    }
}

struct Ours {
    path: PathBuf,
    connections: BTreeMap<String, iolite::engine::Connection>,
    statements: BTreeMap<String, iolite::engine::Statement>,
}

impl Ours {
    fn connection(&mut self, name: &str) -> iolite::engine::Connection {
        let path = self.path.to_string_lossy().into_owned();
        let open = || iolite::engine::Connection::open(&path).expect("iolite opens the file");
        self.connections.entry(name.into()).or_insert_with(open).clone()
    }

    fn cell(v: &iolite::engine::Value) -> String {
        match v {
            iolite::engine::Value::Null => "NULL".into(),
            iolite::engine::Value::Int(i) => i.to_string(),
            iolite::engine::Value::Real(r) => format!("{r:?}"),
            iolite::engine::Value::Text(b, _) => String::from_utf8_lossy(b).into_owned(),
            iolite::engine::Value::Blob(b, _) => blob(b),
        }
    }

    fn error(e: &iolite::Error) -> String {
        format!("error {}: {}\n", e.code().number() & 255, e.message())
    }
}

impl Engine for Ours {
    fn run(&mut self, connection: &str, sql: &str) -> String {
        match self.connection(connection).query(sql, &[]) {
            Ok(rows) => rows.iter().map(|r| shown(&r.iter().map(Ours::cell).collect::<Vec<_>>())).collect(),
            Err(e) => Ours::error(&e),
        }
    }

    fn prepare(&mut self, connection: &str, name: &str, sql: &str) -> String {
        match self.connection(connection).prepare(sql) {
            Ok(s) => {
                self.statements.insert(format!("{connection}.{name}"), s);
                String::new()
            }
            Err(e) => Ours::error(&e),
        }
    }

    fn step(&mut self, name: &str) -> String {
        let Some(s) = self.statements.get_mut(name) else { return "not prepared\n".into() };
        match s.step() {
            Ok(iolite::engine::Step::Row) => shown(&s.row().iter().map(Ours::cell).collect::<Vec<_>>()),
            Ok(iolite::engine::Step::Done) => "done\n".into(),
            Err(e) => {
                let _ = s.reset();
                Ours::error(&e)
            }
        }
    }

    fn reset(&mut self, name: &str) {
        if let Some(s) = self.statements.get_mut(name) {
            let _ = s.reset();
        }
    }

    fn close(&mut self, connection: &str) {
        self.statements.retain(|k, _| !k.starts_with(&format!("{connection}.")));
        self.connections.remove(connection);
    }
}

fn patch(path: &Path, offset: usize, hex: &str) {
    let mut bytes = std::fs::read(path).expect("the file is there");
    for (i, pair) in hex.as_bytes().chunks(2).enumerate() {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits");
        bytes[offset + i] = u8::from_str_radix(pair, 16).expect("hexadecimal digits");
    }
    std::fs::write(path, bytes).expect("the file can be written");
}

fn answer(e: &mut dyn Engine, path: &Path, line: &str) -> String {
    let dir = path.parent().expect("a folder").to_string_lossy();
    if let Some(c) = line.strip_prefix("close ") {
        e.close(c);
        return String::new();
    }
    if line == "check" {
        let c = stock::Connection::open(&path.to_string_lossy()).expect("stock opens the file");
        let rows = c.query("PRAGMA integrity_check").expect("stock checks the file");
        return rows.iter().map(|r| shown(&r.iter().map(Stock::cell).collect::<Vec<_>>())).collect();
    }
    if let Some(rest) = line.strip_prefix("bytes ") {
        let (at, hex) = rest.split_once(' ').expect("an offset and bytes");
        patch(path, at.parse().expect("an offset"), hex);
        return String::new();
    }
    if let Some((who, sql)) = line.split_once(": ")
        && who.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return e.run(who, &sql.replace("@DIR@", &dir));
    }
    if let Some((who, sql)) = line.split_once(" = ")
        && let Some((c, s)) = who.split_once('.')
        && s.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return e.prepare(c, s, &sql.replace("@DIR@", &dir));
    }
    match line.strip_suffix('!') {
        Some(s) => {
            e.reset(s);
            String::new()
        }
        None => e.step(line),
    }
}

#[test]
fn sessions_answer_as_on_stock() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of scripts")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let mut differ = Vec::new();
    for script in scripts {
        let name = script.file_stem().expect("a name").to_string_lossy().into_owned();
        let base = std::env::temp_dir().join(format!("iolite-sessions-{}-{name}", std::process::id()));
        let at = |engine: &str| {
            let dir = base.join(engine);
            std::fs::create_dir_all(&dir).expect("a folder");
            dir.join("a.db")
        };
        let (theirs_at, ours_at) = (at("stock"), at("ours"));
        let mut theirs = Stock { path: theirs_at.clone(), ..Stock::default() };
        let mut ours =
            Ours { path: ours_at.clone(), connections: BTreeMap::new(), statements: BTreeMap::new() };
        let text = std::fs::read_to_string(&script).expect("a script");
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with("--")) {
            let (loose, line) = line.strip_prefix("loose ").map_or((false, line), |l| (true, l));
            let want = answer(&mut theirs, &theirs_at, line);
            let got = answer(&mut ours, &ours_at, line);
            let same = want == got || loose && want.starts_with("error") == got.starts_with("error");
            if !same {
                differ.push(format!("{name}: {line}\nstock: {want}ours:  {got}"));
            }
        }
        let _ = std::fs::remove_dir_all(&base);
    }
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
}

//! `bench-compare write-counts`: instructions of statements that change rows, under callgrind, which must be there. Each is prepared
//! once, then bound, run and reset some hundreds of times, on a copy of its own of one file: within one transaction, whose COMMIT counts,
//! and with a commit each.

use super::{TUNED, place, timed};
use crate::{Options, stats};
use iolite_bench::cases;
use iolite_bench::engine::{Database, Engine, Result, Value, find, int, text};
use iolite_bench::random::{Random, mix};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::native::sqlite::Sqlite;

/// Rows of each table before.
const ROWS: i64 = 4_000;
/// Runs before what is counted, so that pages are in the cache, and those that are counted.
const WARM: i64 = 150;
const RUNS: i64 = 300;

/// Parameters of the run with this number.
type Params = fn(&mut Random, i64) -> Vec<Value>;

/// A statement.
struct Shape {
    title: &'static str,
    sql: &'static str,
    params: Params,
}

const fn shape(title: &'static str, sql: &'static str, params: Params) -> Shape {
    Shape { title, sql, params }
}

/// A key of a row that is there, if nobody deleted it.
fn key(r: &mut Random) -> Value {
    int(r.range(1, ROWS))
}

/// The text that stands for a number; not in the number's order.
fn name(n: i64) -> Value {
    text(format!("{:x}", mix(n as u64) >> 20))
}

/// The tables, all of whose rows follow from the numbers 1 to [`ROWS`]: `n`, `m` (the same numbers, mixed), `t` (a text).
const SCHEMA: &[(&str, &str)] = &[
    ("CREATE TABLE plain(a INTEGER, b INTEGER, c TEXT); CREATE INDEX plain_b ON plain(b)", "n, m, t"),
    ("CREATE TABLE keyed(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)", "n, m, t"),
    ("CREATE TABLE named(a TEXT PRIMARY KEY, b INTEGER, c TEXT)", "t, m, 'some text'"),
    (
        "CREATE TABLE indexed(a INTEGER, b INTEGER, c TEXT); CREATE INDEX indexed_b ON indexed(b); CREATE INDEX indexed_c ON indexed(c)",
        "n, m, t",
    ),
    ("CREATE TABLE nocase(a TEXT COLLATE NOCASE PRIMARY KEY, b INTEGER)", "t, n"),
    ("CREATE TABLE worded(a TEXT PRIMARY KEY, b INTEGER, c TEXT) WITHOUT ROWID", "t, m, 'some text'"),
    ("CREATE TABLE pair(a INTEGER, b TEXT, c INTEGER, PRIMARY KEY(a, b))", "n / 4, 'part' || (n % 4), m"),
    (
        "CREATE TABLE flat(a INTEGER, b INTEGER, c INTEGER, d TEXT, PRIMARY KEY(a, b)) WITHOUT ROWID; CREATE INDEX flat_c ON flat(c)",
        "n / 4, n % 4, m, t",
    ),
    (
        "CREATE TABLE partial(a INTEGER PRIMARY KEY, state INTEGER, b INTEGER); CREATE INDEX partial_b ON partial(b) WHERE state = 1",
        "n, n % 2, m",
    ),
    (
        "CREATE TABLE lowered(a INTEGER PRIMARY KEY, b TEXT, c INTEGER); CREATE INDEX lowered_b ON lowered(lower(b), c)",
        "n, 'Ab' || t, m",
    ),
    (
        "CREATE TABLE five(a INTEGER PRIMARY KEY, b INTEGER, c TEXT, d REAL, e INTEGER, f TEXT); CREATE INDEX five_b ON five(b); CREATE INDEX five_c ON five(c); CREATE INDEX five_d ON five(d); CREATE INDEX five_e ON five(e, b); CREATE UNIQUE INDEX five_f ON five(f)",
        "n, m, 'c' || (m % 100), m / 3.0, n % 50, t",
    ),
    ("CREATE TABLE log(what TEXT, at INTEGER)", "t, n"),
    ("CREATE TABLE watched(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)", "n, m, t"),
    ("CREATE TABLE parent(a INTEGER PRIMARY KEY, b TEXT)", "n, t"),
    (
        "CREATE TABLE child(a INTEGER PRIMARY KEY, b INTEGER REFERENCES parent(a) ON DELETE CASCADE, c TEXT); CREATE INDEX child_b ON child(b)",
        "n, m, t",
    ),
    ("CREATE TABLE long(a INTEGER PRIMARY KEY, b INTEGER, c BLOB)", "n, m, zeroblob(5000)"),
    (
        "CREATE TABLE strictly(a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT NOT NULL, d REAL CHECK(d > 0)) STRICT; CREATE INDEX strictly_b ON strictly(b)",
        "n, m, t, m + 1.5",
    ),
    ("CREATE TABLE auto(a INTEGER PRIMARY KEY AUTOINCREMENT, b INTEGER, c TEXT DEFAULT 'none')", "n, m, t"),
    (
        "CREATE TABLE computed(a INTEGER PRIMARY KEY, b INTEGER, c INTEGER AS (b * 2) STORED, d TEXT AS (b || 'x')); CREATE INDEX computed_d ON computed(d)",
        "n, m",
    ),
    (
        "CREATE TABLE wide(a INTEGER PRIMARY KEY, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20)",
        "n, m, t, n, m, t, n, m, t, n, m, t, n, m, t, n, m, t, n, m, t",
    ),
    (
        "CREATE VIRTUAL TABLE words USING fts5(title, body)",
        "'title ' || t, 'the ' || t || ' of word' || (n % 100) || ' and word' || (m % 1000) || ' in a text'",
    ),
    ("CREATE VIRTUAL TABLE outside USING fts5(c, content = 'keyed', content_rowid = 'a')", "t"),
];

/// Triggers, made after the rows.
const TRIGGERS: &str = "
CREATE TRIGGER watched_new AFTER INSERT ON watched BEGIN INSERT INTO log VALUES('new', new.a); END;
CREATE TRIGGER watched_other AFTER UPDATE OF b ON watched WHEN new.b % 2 BEGIN INSERT INTO log VALUES('changed', new.a); END;
CREATE TRIGGER watched_gone BEFORE DELETE ON watched BEGIN UPDATE log SET at = at + 1 WHERE rowid = old.a; END;
";

/// A text as long as a title, of words that are drawn.
fn words(r: &mut Random, n: usize) -> Value {
    let one = |r: &mut Random| format!("word{}", r.range(1, 2000));
    text((0..n).map(|_| one(r)).collect::<Vec<_>>().join(" "))
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    shape("INSERT, no index", "INSERT INTO log VALUES(?1, ?2)", |r, i| vec![name(i), int(r.range(0, 9999))]),
    shape("INSERT by key, mixed", "INSERT INTO keyed VALUES(?1, ?2, ?3)", |r, i| vec![int(ROWS + 1 + (i * 7919) % 10007), int(r.range(0, 9999)), text("a text")]),
    shape("INSERT, one index", "INSERT INTO plain VALUES(?1, ?2, ?3)", |r, i| vec![int(i), int(r.range(0, ROWS)), text("a text")]),
    shape("INSERT, two indexes", "INSERT INTO indexed VALUES(?1, ?2, ?3)", |r, i| vec![int(i), int(r.range(0, ROWS)), name(i + 7777)]),
    shape("INSERT, five indexes", "INSERT INTO five VALUES(?1, ?2, ?3, ?4, ?5, ?6)", |r, i| vec![int(ROWS + 1 + i), int(r.range(0, ROWS)), text("c17"), Value::Real(i as f64 * 1.7), int(i % 50), name(i + 7777)]),
    shape("INSERT, text key", "INSERT INTO named VALUES(?1, ?2, 'new')", |r, i| vec![name(i + 7777), int(r.range(0, 9999))]),
    shape("INSERT, NOCASE key", "INSERT INTO nocase VALUES(?1, ?2)", |_, i| vec![name(i + 7777), int(i)]),
    shape("INSERT, WITHOUT ROWID", "INSERT INTO worded VALUES(?1, ?2, 'new')", |r, i| vec![name(i + 7777), int(r.range(0, 9999))]),
    shape("INSERT, two key columns", "INSERT INTO pair VALUES(?1, ?2, ?3)", |_, i| vec![int((i * 7919) % 1000), text(format!("part{}", 4 + i % 9)), int(i)]),
    shape("INSERT, two key columns, WITHOUT ROWID", "INSERT INTO flat VALUES(?1, ?2, ?3, ?4)", |_, i| vec![int((i * 7919) % 1000), int(4 + i), int(i), text("a text")]),
    shape("INSERT, partial index", "INSERT INTO partial VALUES(?1, ?2, ?3)", |r, i| vec![int(ROWS + 1 + i), int(i % 2), int(r.range(0, 9999))]),
    shape("INSERT, expression index", "INSERT INTO lowered VALUES(?1, ?2, ?3)", |r, i| vec![int(ROWS + 1 + i), name(i), int(r.range(0, 9999))]),
    shape("INSERT, STRICT", "INSERT INTO strictly VALUES(?1, ?2, ?3, ?4)", |r, i| vec![int(ROWS + 1 + i), int(r.range(0, 9999)), text("a text"), Value::Real(2.5)]),
    shape("INSERT, AUTOINCREMENT", "INSERT INTO auto(b) VALUES(?1)", |_, i| vec![int(i)]),
    shape("INSERT, generated columns", "INSERT INTO computed(b) VALUES(?1)", |r, _| vec![int(r.range(0, 9999))]),
    shape("INSERT, foreign key", "INSERT INTO child(b, c) VALUES(?1, 'a text')", |r, _| vec![key(r)]),
    shape("INSERT, trigger", "INSERT INTO watched(b, c) VALUES(?1, 'a text')", |r, _| vec![key(r)]),
    shape("INSERT, RETURNING", "INSERT INTO keyed(b, c) VALUES(?1, 'a text') RETURNING a, b", |r, _| vec![key(r)]),
    shape("INSERT, 20 columns", "INSERT INTO wide VALUES(NULL,?1,?2,?1,?1,?2,?1,?1,?2,?1,?1,?2,?1,?1,?2,?1,?1,?2,?1,?1,?2)", |r, i| vec![key(r), name(i)]),
    shape("INSERT, overflow pages", "INSERT INTO long(b, c) VALUES(?1, ?2)", |r, i| vec![key(r), Value::Blob(vec![i as u8; 6000])]),
    shape("INSERT of three rows", "INSERT INTO plain VALUES(?1, ?2, 'x'), (?1, ?2 + 1, 'y'), (?1, ?2 + 2, 'z')", |r, i| vec![int(i), key(r)]),
    shape("INSERT OR IGNORE, there", "INSERT OR IGNORE INTO named VALUES((SELECT a FROM named WHERE rowid = ?1), ?2, 'new')", |r, i| vec![key(r), int(i)]),
    shape("INSERT OR IGNORE, key there", "INSERT OR IGNORE INTO keyed VALUES(?1, ?2, 'new')", |r, i| vec![key(r), int(i)]),
    shape("INSERT OR IGNORE, half there", "INSERT OR IGNORE INTO worded VALUES(?1, ?2, 'new')", |_, i| vec![name(if i % 2 == 0 { i + 7777 } else { i / 2 }), int(i)]),
    shape("INSERT OR IGNORE, two key columns", "INSERT OR IGNORE INTO pair VALUES(?1, ?2, 7)", |r, i| vec![int(r.range(1, 999)), text(format!("part{}", i % 9))]),
    shape("REPLACE, integer key", "REPLACE INTO keyed VALUES(?1, ?2, 'replaced')", |r, i| vec![int(r.range(1, 2 * ROWS)), int(i)]),
    shape("REPLACE, text key", "REPLACE INTO named VALUES((SELECT a FROM named WHERE rowid = ?1), ?2, 'replaced')", |r, i| vec![key(r), int(i)]),
    shape("REPLACE, NOCASE key", "REPLACE INTO nocase VALUES((SELECT upper(a) FROM nocase WHERE rowid = ?1), ?2)", |r, i| vec![key(r), int(i)]),
    shape("REPLACE, WITHOUT ROWID", "REPLACE INTO worded VALUES(?1, ?2, 'replaced')", |r, i| vec![name(r.range(1, 2 * ROWS)), int(i)]),
    shape("REPLACE, WITHOUT ROWID and index", "REPLACE INTO flat VALUES(?1, ?2, ?3, 'replaced')", |r, i| vec![int(r.range(1, 999)), int(i % 8), int(i)]),
    shape("REPLACE, five indexes", "REPLACE INTO five VALUES(?1, ?2, 'c3', 1.5, ?3, ?4)", |r, i| vec![key(r), int(i), int(i % 50), name(i + 7777)]),
    shape("UPSERT, text key", "INSERT INTO named VALUES(?1, ?2, 'new') ON CONFLICT(a) DO UPDATE SET b = b + excluded.b", |_, i| vec![name(if i % 2 == 0 { i + 7777 } else { i / 2 }), int(i)]),
    shape("UPSERT, integer key", "INSERT INTO keyed VALUES(?1, ?2, 'new') ON CONFLICT(a) DO UPDATE SET b = excluded.b, c = 'again'", |r, i| vec![int(r.range(1, 2 * ROWS)), int(i)]),
    shape("UPSERT, WITHOUT ROWID", "INSERT INTO flat VALUES(?1, ?2, ?3, 'x') ON CONFLICT DO UPDATE SET c = c + 1", |r, i| vec![int(r.range(1, 999)), int(i % 8), int(i)]),
    shape("UPSERT DO NOTHING", "INSERT INTO pair VALUES(?1, ?2, 7) ON CONFLICT DO NOTHING", |r, i| vec![int(r.range(1, 999)), text(format!("part{}", i % 9))]),
    shape("UPSERT, RETURNING", "INSERT INTO pair VALUES(?1, ?2, 7) ON CONFLICT(a, b) DO UPDATE SET c = c + 1 RETURNING c", |r, i| vec![int(r.range(1, 999)), text(format!("part{}", i % 9))]),
    shape("UPDATE by key", "UPDATE keyed SET b = ?2 WHERE a = ?1", |r, i| vec![key(r), int(i)]),
    shape("UPDATE of a text by key", "UPDATE keyed SET c = ?2 WHERE a = ?1", |r, i| vec![key(r), name(i)]),
    shape("UPDATE by text key", "UPDATE worded SET b = b + 1 WHERE a = ?1", |r, _| vec![name(r.range(1, ROWS))]),
    shape("UPDATE of an indexed column", "UPDATE plain SET b = b + ?2 WHERE rowid = ?1", |r, i| vec![key(r), int(i)]),
    shape("UPDATE of an indexed column by it", "UPDATE plain SET b = b + 1000 WHERE b = ?1", |r, _| vec![key(r)]),
    shape("UPDATE of an indexed text", "UPDATE indexed SET c = ?2 WHERE rowid = ?1", |r, i| vec![key(r), name(i + 7777)]),
    shape("UPDATE of all indexed columns", "UPDATE five SET b = b + 1, c = c || 'x', d = d + 1, e = e + 1, f = f || 'y' WHERE a = ?1", |r, _| vec![key(r)]),
    shape("UPDATE of a column beside five indexes", "UPDATE five SET d = ?2 WHERE a = ?1", |r, i| vec![key(r), Value::Real(i as f64)]),
    shape("UPDATE of an index, WITHOUT ROWID", "UPDATE flat SET c = c + 5 WHERE a = ?1 AND b = 2", |r, _| vec![int(r.range(1, 999))]),
    shape("UPDATE of a key", "UPDATE keyed SET a = a + 100000 WHERE a = ?1", |r, _| vec![key(r)]),
    shape("UPDATE of a key, WITHOUT ROWID", "UPDATE flat SET a = a + 1000 WHERE a = ?1 AND b = 2", |r, _| vec![int(r.range(1, 999))]),
    shape("UPDATE into a partial index", "UPDATE partial SET state = 1 - state WHERE a = ?1", |r, _| vec![key(r)]),
    shape("UPDATE, expression index", "UPDATE lowered SET b = ?2 WHERE a = ?1", |r, i| vec![key(r), name(i)]),
    shape("UPDATE, STRICT", "UPDATE strictly SET b = b + 1, d = d * 2 WHERE a = ?1", |r, _| vec![key(r)]),
    shape("UPDATE, generated columns", "UPDATE computed SET b = ?2 WHERE a = ?1", |r, i| vec![key(r), int(i)]),
    shape("UPDATE, trigger", "UPDATE watched SET b = b + 1 WHERE a = ?1", |r, _| vec![key(r)]),
    shape("UPDATE, foreign key", "UPDATE child SET b = ?2 WHERE a = ?1", |r, _| vec![key(r), key(r)]),
    shape("UPDATE, RETURNING", "UPDATE plain SET b = b + 1 WHERE rowid = ?1 RETURNING b, c", |r, _| vec![key(r)]),
    shape("UPDATE one of 20 columns", "UPDATE wide SET c7 = ?2 WHERE a = ?1", |r, i| vec![key(r), int(i)]),
    shape("UPDATE before overflow pages", "UPDATE long SET b = ?2 WHERE a = ?1", |r, i| vec![key(r), int(i)]),
    shape("UPDATE by a range of keys", "UPDATE keyed SET b = b + 1 WHERE a BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("UPDATE by a range of an index", "UPDATE plain SET a = a + 1 WHERE b BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("UPDATE of an indexed column by a range of keys", "UPDATE plain SET b = b + 1 WHERE rowid BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("UPDATE of an indexed column by a range of it", "UPDATE plain SET b = b + 1 WHERE b BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("DELETE by key", "DELETE FROM keyed WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE by text key", "DELETE FROM named WHERE a = ?1", |r, _| vec![name(r.range(1, ROWS))]),
    shape("DELETE by text key, WITHOUT ROWID", "DELETE FROM worded WHERE a = ?1", |r, _| vec![name(r.range(1, ROWS))]),
    shape("DELETE by two key columns", "DELETE FROM pair WHERE a = ?1 AND b = 'part2'", |r, _| vec![int(r.range(1, 999))]),
    shape("DELETE by part of a key, WITHOUT ROWID", "DELETE FROM flat WHERE a = ?1", |r, _| vec![int(r.range(1, 999))]),
    shape("DELETE by index", "DELETE FROM indexed WHERE b = ?1", |r, _| vec![key(r)]),
    shape("DELETE beside five indexes", "DELETE FROM five WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE by a range of keys", "DELETE FROM keyed WHERE a BETWEEN ?1 AND ?1 + 9", |_, i| vec![int((i * 10) % ROWS)]),
    shape("DELETE by a range of an index", "DELETE FROM plain WHERE b BETWEEN ?1 AND ?1 + 9", |_, i| vec![int((i * 10) % ROWS)]),
    shape("DELETE by a range beside indexes", "DELETE FROM indexed WHERE b BETWEEN ?1 AND ?1 + 9", |_, i| vec![int((i * 10) % ROWS)]),
    shape("DELETE, expression index", "DELETE FROM lowered WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE, trigger", "DELETE FROM watched WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE, CASCADE", "DELETE FROM parent WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE, RETURNING", "DELETE FROM plain WHERE rowid = ?1 RETURNING *", |r, _| vec![key(r)]),
    shape("DELETE, overflow pages", "DELETE FROM long WHERE a = ?1", |r, _| vec![key(r)]),
    shape("DELETE by a condition", "DELETE FROM keyed WHERE a BETWEEN ?1 AND ?1 + 19 AND b % 2", |r, _| vec![key(r)]),
    shape("INSERT ... SELECT, one index", "INSERT INTO plain SELECT a + 100000, b, c FROM keyed WHERE a BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("INSERT ... SELECT, two indexes", "INSERT INTO indexed SELECT a + 100000, b, c FROM keyed WHERE a BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("INSERT ... SELECT from itself", "INSERT INTO plain SELECT a, b + 1, c FROM plain WHERE rowid BETWEEN ?1 AND ?1 + 19", |r, _| vec![key(r)]),
    shape("FTS5 INSERT", "INSERT INTO words(title, body) VALUES(?1, ?2)", |r, _| vec![words(r, 4), words(r, 30)]),
    shape("FTS5 INSERT, short", "INSERT INTO words(title, body) VALUES('a title', ?1)", |r, _| vec![words(r, 3)]),
    shape("FTS5 UPDATE", "UPDATE words SET body = ?2 WHERE rowid = ?1", |r, _| vec![key(r), words(r, 10)]),
    shape("FTS5 DELETE", "DELETE FROM words WHERE rowid = ?1", |r, _| vec![key(r)]),
    shape("FTS5 INSERT, outside content", "INSERT INTO outside(rowid, c) VALUES(?1, ?2)", |r, i| vec![int(ROWS + 1 + i), words(r, 8)]),
];

/// The tables with their rows.
fn fill(db: &dyn Database) -> Result<()> {
    db.batch(&format!(
        "CREATE TEMP TABLE numbers(n INTEGER PRIMARY KEY, m INTEGER, t TEXT);
         WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {ROWS})
         INSERT INTO numbers SELECT n, 1 + n * 1237 % {ROWS}, NULL FROM c; BEGIN"
    ))?;
    for n in 1..=ROWS {
        db.prepare("UPDATE numbers SET t = ?2 WHERE n = ?1")?.run(&[int(n), name(n)])?;
    }
    db.batch("COMMIT")?;
    for (create, columns) in SCHEMA {
        let table =
            create.split(['(', ' ']).nth(if create.contains("VIRTUAL") { 3 } else { 2 }).unwrap_or("");
        db.batch(create)?;
        let stored = match table {
            "computed" => "(a, b)",
            "words" => "(title, body)",
            "outside" => "(c)",
            _ => "",
        };
        db.batch(&format!("INSERT INTO {table}{stored} SELECT {columns} FROM numbers ORDER BY n"))?;
    }
    db.batch(TRIGGERS)
}

/// Whether statements commit by themselves.
const MODES: [(bool, &str); 2] = [(false, "in a transaction"), (true, "commit each")];

fn chosen(o: &Options) -> Vec<&'static Shape> {
    SHAPES.iter().filter(|s| o.words.is_empty() || o.words.iter().any(|w| w == s.title)).collect()
}

/// Prints instructions of a run of each statement: stock, iolite through Rust and, with `--library FILE`, through the C functions of that
/// file. Words are statements to count alone, `--keep DIR` keeps callgrind's files. `--times` prints nanoseconds instead, of the quickest of
/// `--repeat N` turns.
pub fn counts(o: &Options) -> Result<()> {
    let keep = o.text("keep").map(PathBuf::from);
    let dir = keep.clone().unwrap_or(place("write-counts")?.with_extension("d"));
    std::fs::create_dir_all(&dir)?;
    let file = dir.join("tables.db");
    cases::remove(&file);
    fill(&*find("stock")?.open(&file)?)?;
    let mut engines = vec!["stock", "iolite"];
    engines.extend(o.text("library"));
    let counts = match o.has("times") {
        true => times(o, &engines, &file)?,
        false => engines.iter().map(|e| count(o, e, &file, &dir)).collect::<Result<Vec<_>>>()?,
    };
    let head = ["stock", "iolite", "ratio", "through C", "ratio"];
    let columns = 2 * engines.len() - 1;
    let heads = MODES.map(|(_, m)| format!("{m}: {}", head[..columns].join(" | ")));
    println!("| statement | {} |", heads.join(" | "));
    println!("|---|{}", "---:|".repeat(2 * columns));
    let cells = |i: usize| {
        let mut line = String::new();
        for m in [0, 1] {
            let stock = counts[0][i][m];
            line += &format!(" | {stock:.0}");
            counts[1..].iter().for_each(|c| line += &format!(" | {:.0} | {:.2}", c[i][m], c[i][m] / stock));
        }
        line
    };
    for (i, s) in chosen(o).iter().enumerate() {
        println!("| {}{} |", s.title, cells(i));
    }
    let mean = |e: usize, m: usize| stats::geometric(&counts[e].iter().map(|c| c[m]).collect::<Vec<_>>());
    let mut line = String::from("| geometric mean");
    for m in [0, 1] {
        line += &format!(" | {:.0}", mean(0, m));
        (1..engines.len())
            .for_each(|e| line += &format!(" | {:.0} | {:.2}", mean(e, m), mean(e, m) / mean(0, m)));
    }
    println!("{line} |");
    if keep.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// Measures times: engines take turns, so that each meets what else goes on.
fn times(o: &Options, engines: &[&str], file: &Path) -> Result<Vec<Vec<[f64; 2]>>> {
    let opened = engines.iter().map(|e| engine(e)).collect::<Result<Vec<_>>>()?;
    let mut all = vec![Vec::new(); engines.len()];
    for s in chosen(o) {
        let mut least = vec![[f64::MAX; 2]; engines.len()];
        for _ in 0..o.number("repeat", 9, 5) {
            for (e, least) in opened.iter().zip(&mut least) {
                for (m, (commits, _)) in MODES.iter().enumerate() {
                    let t = one(&**e, file, s, *commits).map_err(|e| e.at(s.title))?;
                    least[m] = least[m].min(t * 1e9 / RUNS as f64);
                }
            }
        }
        all.iter_mut().zip(least).for_each(|(all, least)| all.push(least));
    }
    Ok(all)
}

fn engine(name: &str) -> Result<Box<dyn Engine>> {
    match name {
        "stock" | "iolite" => find(name),
        library => Ok(Box::new(Sqlite::load(Path::new(library))?)),
    }
}

/// Counts in a process of its own, which callgrind reads: a file for each statement in each mode.
fn count(o: &Options, engine: &str, file: &Path, dir: &Path) -> Result<Vec<[f64; 2]>> {
    let own = dir.join(Path::new(engine).file_name().unwrap_or_default());
    let _ = std::fs::remove_dir_all(&own);
    std::fs::create_dir_all(&own)?;
    let mut c = Command::new("valgrind");
    c.args(["--tool=callgrind", "--collect-atstart=no", "--compress-strings=no"]);
    c.args(["--toggle-collect=*writes*measured*", "--dump-after=bench_compare::workload::writes::measured*"]);
    c.arg(format!("--callgrind-out-file={}", own.join("out").display()));
    c.arg(std::env::current_exe()?).args(["write-worker"]).args(&o.words);
    c.arg("--engine").arg(engine).arg("--file").arg(file);
    let out = c.output().map_err(|e| format!("valgrind: {e}"))?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    let total = |i: usize| -> Result<f64> {
        let text = std::fs::read_to_string(own.join(format!("out.{i}")))?;
        let line = text.lines().find_map(|l| l.strip_prefix("totals: "));
        let n: Option<f64> = line.and_then(|n| n.trim().parse().ok());
        n.map(|n| n / RUNS as f64).ok_or_else(|| format!("no count for {engine}").into())
    };
    (0..chosen(o).len()).map(|i| Ok([total(2 * i + 1)?, total(2 * i + 2)?])).collect()
}

/// What callgrind reads.
pub fn worker(o: &Options) -> Result<()> {
    let engine = engine(o.text("engine").unwrap_or("stock"))?;
    let file = Path::new(o.text("file").unwrap_or_default());
    for s in chosen(o) {
        for (commits, _) in MODES {
            one(&*engine, file, s, commits).map_err(|e| e.at(s.title))?;
        }
    }
    Ok(())
}

/// One statement on a copy of the file: the seconds that its runs took.
fn one(engine: &dyn Engine, file: &Path, s: &Shape, commits: bool) -> Result<f64> {
    let copy = file.with_extension("copy.db");
    cases::remove(&copy);
    std::fs::copy(file, &copy)?;
    let db = engine.open(&copy)?;
    db.batch(TUNED)?;
    db.batch("PRAGMA foreign_keys = ON")?;
    let mut r = Random(11);
    let mut params = |from: i64, n: i64| (from..from + n).map(|i| (s.params)(&mut r, i)).collect::<Vec<_>>();
    let (before, then) = (params(0, WARM), params(WARM, RUNS));
    let seconds = {
        let mut q = db.prepare(s.sql)?;
        db.batch("BEGIN")?;
        before.iter().try_for_each(|p| q.run(p).map(drop))?;
        db.batch("COMMIT")?;
        timed(|| measured(&*db, &mut *q, &then, commits))?.1
    };
    drop(db);
    cases::remove(&copy);
    Ok(seconds)
}

/// What is counted; callgrind finds it by its name.
#[inline(never)]
fn measured(
    db: &dyn Database,
    q: &mut dyn iolite_bench::engine::Query,
    params: &[Vec<Value>],
    commits: bool,
) -> Result<()> {
    if !commits {
        db.batch("BEGIN")?;
    }
    params.iter().try_for_each(|p| q.run(p).map(drop))?;
    if !commits {
        db.batch("COMMIT")?;
    }
    Ok(())
}

//! How long preparing takes, over fifty statement shapes from point reads to joins of eight tables, on the tables of TATP, the
//! Star Schema Benchmark and TPC-H. Nothing is run; a shape that one engine does not understand is a failure.
//!
//! `bench-compare prepare-counts` counts instructions instead of time, under callgrind, which must be there.

use super::{Seat, TUNED, TUNED_KEEPS, in_turn, place, tatp_data, timed, tpch_data, tpch_queries};
use crate::Options;
use crate::envelope::Run;
use crate::native::sqlite::Sqlite;
use crate::stats;
use iolite_bench::engine::{Database, Engine, Result, find};
use iolite_bench::random::Random;
use iolite_bench::{cases, ssb};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is measured is compiling: no program may be found by its text.
const COMPILED: &str = "PRAGMA plan_cache = 0";

const SHAPES: &[(&str, &str)] = &[
    ("constant", "SELECT 1"),
    ("point by key", "SELECT vlr_location FROM subscriber WHERE s_id = ?1"),
    ("point, all columns", "SELECT * FROM subscriber WHERE s_id = ?1"),
    ("point by unique index", "SELECT s_id FROM subscriber WHERE sub_nbr = ?1"),
    (
        "point by two columns",
        "SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ?1 AND ai_type = ?2",
    ),
    ("range by key", "SELECT s_id FROM subscriber WHERE s_id BETWEEN ?1 AND ?2"),
    ("IN list", "SELECT s_id FROM subscriber WHERE s_id IN (1, 2, 3, 4, 5, 6, 7, 8)"),
    ("OR of keys", "SELECT s_id FROM subscriber WHERE s_id = 1 OR s_id = 5 OR sub_nbr = 'x'"),
    ("count", "SELECT count(*) FROM subscriber"),
    (
        "aggregates",
        "SELECT count(*), sum(bit_1), avg(hex_1), min(vlr_location), max(vlr_location) FROM subscriber",
    ),
    ("group", "SELECT bit_1, count(*) FROM subscriber GROUP BY bit_1"),
    (
        "group, having, order",
        "SELECT hex_1, hex_2, sum(bit_1) AS s FROM subscriber GROUP BY hex_1, hex_2 HAVING s > 2 ORDER BY s DESC",
    ),
    ("distinct", "SELECT DISTINCT hex_1, hex_2 FROM subscriber"),
    ("order, limit", "SELECT s_id FROM subscriber ORDER BY vlr_location DESC LIMIT 10 OFFSET 5"),
    (
        "join of two",
        "SELECT s.sub_nbr, a.data1 FROM subscriber s JOIN access_info a ON a.s_id = s.s_id WHERE s.s_id = ?1",
    ),
    (
        "TATP destination",
        "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
    ),
    (
        "join of three",
        "SELECT count(*) FROM subscriber s, special_facility f, call_forwarding c WHERE f.s_id = s.s_id AND c.s_id = f.s_id AND c.sf_type = f.sf_type",
    ),
    (
        "LEFT JOIN of four",
        "SELECT s.sub_nbr, a.data1, f.data_a, c.numberx FROM subscriber s LEFT JOIN access_info a ON a.s_id = s.s_id LEFT JOIN special_facility f ON f.s_id = s.s_id LEFT JOIN call_forwarding c ON c.s_id = f.s_id AND c.sf_type = f.sf_type WHERE s.s_id = ?1",
    ),
    (
        "self join",
        "SELECT a.s_id FROM subscriber a JOIN subscriber b ON b.s_id = a.s_id + 1 WHERE a.bit_1 <> b.bit_1",
    ),
    (
        "nested query",
        "SELECT s_id FROM subscriber WHERE vlr_location = (SELECT max(vlr_location) FROM subscriber)",
    ),
    (
        "correlated",
        "SELECT s_id, (SELECT count(*) FROM access_info a WHERE a.s_id = s.s_id) FROM subscriber s WHERE s_id < 10",
    ),
    (
        "EXISTS",
        "SELECT s_id FROM subscriber s WHERE EXISTS (SELECT 1 FROM call_forwarding c WHERE c.s_id = s.s_id)",
    ),
    (
        "IN query",
        "SELECT s_id FROM subscriber WHERE s_id IN (SELECT s_id FROM special_facility WHERE data_a > 200)",
    ),
    (
        "query in FROM",
        "SELECT t, n FROM (SELECT ai_type AS t, count(*) AS n FROM access_info GROUP BY ai_type) WHERE n > 3",
    ),
    (
        "WITH",
        "WITH x AS (SELECT s_id, bit_1 FROM subscriber WHERE hex_1 = 3) SELECT bit_1, count(*) FROM x GROUP BY 1",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 10) SELECT sum(i) FROM c",
    ),
    ("UNION ALL", "SELECT s_id FROM access_info UNION ALL SELECT s_id FROM special_facility"),
    (
        "UNION, order",
        "SELECT s_id FROM access_info UNION SELECT s_id FROM special_facility ORDER BY 1 LIMIT 3",
    ),
    ("EXCEPT", "SELECT s_id FROM subscriber EXCEPT SELECT s_id FROM call_forwarding"),
    ("window", "SELECT s_id, row_number() OVER (PARTITION BY hex_1 ORDER BY vlr_location) FROM subscriber"),
    (
        "two windows",
        "SELECT s_id, rank() OVER (ORDER BY hex_1), sum(bit_1) OVER (PARTITION BY hex_1 ORDER BY s_id ROWS 3 PRECEDING) FROM subscriber",
    ),
    (
        "CASE",
        "SELECT CASE WHEN bit_1 = 1 THEN 'a' WHEN bit_2 = 1 THEN 'b' ELSE 'c' END FROM subscriber WHERE s_id = ?1",
    ),
    (
        "functions",
        "SELECT upper(substr(sub_nbr, 3, 5)), abs(vlr_location), coalesce(bit_1, 0), length(sub_nbr) FROM subscriber",
    ),
    ("LIKE", "SELECT s_id FROM subscriber WHERE sub_nbr LIKE '00000%'"),
    ("date functions", "SELECT strftime('%Y-%m', d_datekey, 'unixepoch'), date('now') FROM date"),
    (
        "wide condition",
        "SELECT s_id FROM subscriber WHERE bit_1 = 1 AND bit_2 = 0 AND bit_3 = 1 AND hex_1 > 3 AND hex_2 < 9 AND byte2_1 BETWEEN 4 AND 200 AND (hex_3 = 1 OR hex_4 = 2)",
    ),
    ("INSERT", "INSERT INTO call_forwarding VALUES(?, ?, ?, ?, ?)"),
    (
        "INSERT of three rows",
        "INSERT INTO call_forwarding VALUES(1, 1, 0, 1, 'a'), (1, 1, 8, 9, 'b'), (1, 1, 16, 17, 'c')",
    ),
    (
        "INSERT from SELECT",
        "INSERT INTO access_info SELECT s_id + 1000000, ai_type, data1, data2, data3, data4 FROM access_info",
    ),
    (
        "UPSERT",
        "INSERT INTO access_info VALUES(1, 1, 1, 1, 'a', 'b') ON CONFLICT(s_id, ai_type) DO UPDATE SET data1 = excluded.data1 + 1",
    ),
    ("REPLACE", "INSERT OR REPLACE INTO special_facility VALUES(1, 1, 1, 1, 1, 'x')"),
    ("RETURNING", "UPDATE subscriber SET bit_1 = 1 WHERE s_id = ?1 RETURNING bit_1, bit_2"),
    ("UPDATE by key", "UPDATE subscriber SET vlr_location = ?1 WHERE s_id = ?2"),
    ("UPDATE by index", "UPDATE subscriber SET vlr_location = ?1 WHERE sub_nbr = ?2"),
    (
        "UPDATE from a query",
        "UPDATE subscriber SET bit_1 = (SELECT max(is_active) FROM special_facility f WHERE f.s_id = subscriber.s_id) WHERE s_id < 100",
    ),
    ("DELETE by key", "DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?"),
    (
        "DELETE by query",
        "DELETE FROM call_forwarding WHERE s_id IN (SELECT s_id FROM special_facility WHERE is_active = 0)",
    ),
];

/// The tables, empty but for those of TATP, with their statistics.
fn fill(db: &dyn Database) -> Result<()> {
    tatp_data::load(db, 1_000)?;
    db.batch(ssb::SCHEMA)?;
    db.batch("ALTER TABLE part RENAME TO ssb_part; ALTER TABLE supplier RENAME TO ssb_supplier; ALTER TABLE customer RENAME TO ssb_customer")?;
    db.batch(tpch_data::SCHEMA)?;
    db.batch("ANALYZE")
}

/// All shapes: those above, and three queries of the benchmarks.
fn shapes() -> Vec<(String, String)> {
    let mut shapes: Vec<(String, String)> = SHAPES.iter().map(|s| (s.0.into(), s.1.into())).collect();
    let rename = |s: &str| {
        s.replace(" part", " ssb_part")
            .replace(" supplier", " ssb_supplier")
            .replace("customer, lineorder", "ssb_customer, lineorder")
    };
    if let Some((_, q)) = ssb::queries(&mut Random(7)).into_iter().find(|q| q.0 == "Q2.1") {
        shapes.push(("SSB Q2.1".into(), rename(&q)));
    }
    for i in [5, 8] {
        shapes.push((format!("TPC-H Q{i}"), tpch_queries::QUERIES[i - 1].into()));
    }
    shapes
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    let rounds = o.number("rounds", 200, 50);
    let names = ["stock", "iolite"];
    let mut seats = Vec::new();
    for n in names {
        run.set("", n, TUNED, TUNED_KEEPS);
        let s = Seat::open(&*find(n)?, n, "prepare", TUNED)?;
        s.db.batch(COMPILED)?;
        fill(&*s.db)?;
        seats.push(s);
    }
    let shapes = shapes();
    let mut logs = [Vec::new(), Vec::new()];
    for (title, sql) in &shapes {
        let columns = seats.iter().map(|s| s.db.prepare(sql).map(|_| ())).collect::<Result<Vec<_>>>();
        if let Err(e) = columns {
            run.failures.push(format!("{title}: {e}"));
            continue;
        }
        let t = in_turn(2, turns, |k, _| {
            let ((), s) = timed(|| (0..rounds).try_for_each(|_| seats[k].db.prepare(sql).map(drop)))?;
            Ok(s * 1e6 / rounds as f64)
        })?;
        for (k, samples) in t.into_iter().enumerate() {
            logs[k].push(stats::summary(&samples).median);
            run.less(title, "", names[k], "us", samples);
        }
    }
    run.gates.push(format!("{} shapes are understood by both engines", logs[0].len()));
    for (k, l) in logs.iter().enumerate() {
        run.less("geometric mean of all shapes", "", names[k], "us", vec![stats::geometric(l)]);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

/// Prints instructions for each shape: stock, iolite through Rust and, with `--library FILE`, through the C functions of that file.
/// Words are shapes to count alone, `--keep DIR` keeps callgrind's files, `--siblings` counts other shapes on a schema of their own.
pub fn counts(o: &Options) -> Result<()> {
    let keep = o.text("keep").map(PathBuf::from);
    let dir = keep.clone().unwrap_or(place("prepare-counts")?.with_extension("d"));
    std::fs::create_dir_all(&dir)?;
    let file = dir.join("tables.db");
    cases::remove(&file);
    {
        let db = find("stock")?.open(&file)?;
        db.batch(TUNED)?;
        match o.has("siblings") {
            true => db.batch(SIBLINGS_SCHEMA)?,
            false => fill(&*db)?,
        }
    }
    let mut engines = vec!["stock", "iolite"];
    engines.extend(o.text("library"));
    let shapes = chosen(o);
    let counts = engines.iter().map(|e| count(o, e, &file, &dir)).collect::<Result<Vec<_>>>()?;
    let head = ["stock", "iolite", "ratio", "through C", "ratio"];
    let columns = 2 * engines.len() - 1;
    println!("| shape | {} |", head[..columns].join(" | "));
    println!("|---|{}", "---:|".repeat(columns));
    for (i, (title, _)) in shapes.iter().enumerate() {
        print!("| {title} | {}", counts[0][i]);
        counts[1..].iter().for_each(|c| print!(" | {} | {:.2}", c[i], c[i] as f64 / counts[0][i] as f64));
        println!(" |");
    }
    let mean = |c: &[u64]| stats::geometric(&c.iter().map(|n| *n as f64).collect::<Vec<_>>());
    print!("| geometric mean | {:.0}", mean(&counts[0]));
    counts[1..].iter().for_each(|c| print!(" | {:.0} | {:.2}", mean(c), mean(c) / mean(&counts[0])));
    println!(" |");
    if keep.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// The shapes that the options ask for.
fn chosen(o: &Options) -> Vec<(String, String)> {
    let mut all = match o.has("siblings") {
        true => SIBLINGS.iter().map(|s| (s.0.into(), s.1.into())).collect(),
        false => shapes(),
    };
    all.retain(|s| o.words.is_empty() || o.words.contains(&s.0));
    all
}

/// Counts in a process of its own, which callgrind reads: a file for each shape.
fn count(o: &Options, engine: &str, file: &Path, dir: &Path) -> Result<Vec<u64>> {
    let own = dir.join(Path::new(engine).file_name().unwrap_or_default());
    let _ = std::fs::remove_dir_all(&own);
    std::fs::create_dir_all(&own)?;
    let mut c = Command::new("valgrind");
    c.args(["--tool=callgrind", "--collect-atstart=no", "--compress-strings=no"]);
    c.args([
        "--toggle-collect=*prepare*measured*",
        "--dump-after=bench_compare::workload::prepare::measured*",
    ]);
    c.arg(format!("--callgrind-out-file={}", own.join("out").display()));
    c.arg(std::env::current_exe()?).args(["prepare-worker"]).args(&o.words);
    c.arg("--engine").arg(engine).arg("--file").arg(file);
    if o.has("siblings") {
        c.arg("--siblings");
    }
    let out = c.output().map_err(|e| format!("valgrind: {e}"))?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    let total = |i: usize| -> Result<u64> {
        let text = std::fs::read_to_string(own.join(format!("out.{i}")))?;
        let line = text.lines().find_map(|l| l.strip_prefix("totals: "));
        let n: Option<u64> = line.and_then(|n| n.trim().parse().ok());
        n.map(|n| n / ROUNDS as u64).ok_or_else(|| format!("no count for {engine}").into())
    };
    (1..=chosen(o).len()).map(total).collect()
}

/// How often a shape is prepared under callgrind; as often before, so that what is made once is there.
const ROUNDS: usize = 5;

/// What callgrind reads.
pub fn worker(o: &Options) -> Result<()> {
    let engine = o.text("engine").unwrap_or("stock");
    let engine: Box<dyn Engine> = match engine {
        "stock" | "iolite" => find(engine)?,
        library => Box::new(Sqlite::load(Path::new(library))?),
    };
    let db = engine.open(Path::new(o.text("file").unwrap_or_default()))?;
    db.batch(TUNED)?;
    db.batch(COMPILED)?;
    for (title, sql) in &chosen(o) {
        (0..ROUNDS).try_for_each(|_| db.prepare(sql).map(drop)).map_err(|e| e.at(title))?;
        measured(&*db, sql)?;
    }
    Ok(())
}

/// What is counted; callgrind finds it by its name.
#[inline(never)]
fn measured(db: &dyn Database, sql: &str) -> Result<()> {
    (0..ROUNDS).try_for_each(|_| db.prepare(sql).map(drop))
}

/// Shapes that nobody worked on, over another schema: views, triggers, foreign keys, checks, generated columns, collations.
const SIBLINGS_SCHEMA: &str = "
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE, mail TEXT UNIQUE, born TEXT, city INTEGER REFERENCES city(id),
  height REAL CHECK(height > 0), note TEXT DEFAULT 'none', upper_name TEXT AS (upper(name)));
CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT, country TEXT, people INTEGER);
CREATE INDEX city_country ON city(country, name);
CREATE INDEX person_city ON person(city, born);
CREATE TABLE visit(person INTEGER, city INTEGER, day TEXT, cost REAL, PRIMARY KEY(person, city, day)) WITHOUT ROWID;
CREATE TABLE journal(at TEXT, what TEXT);
CREATE TRIGGER person_named AFTER UPDATE OF name ON person BEGIN
  INSERT INTO journal VALUES(datetime('now'), old.name || ' is ' || new.name); END;
CREATE TRIGGER person_gone BEFORE DELETE ON person WHEN old.city IS NOT NULL BEGIN
  DELETE FROM visit WHERE person = old.id; UPDATE city SET people = people - 1 WHERE id = old.city; END;
CREATE VIEW resident AS SELECT p.id, p.name, c.name AS city, c.country FROM person p JOIN city c ON c.id = p.city;
CREATE VIEW spending AS SELECT person, sum(cost) AS total, count(*) AS n FROM visit GROUP BY person;
CREATE TABLE log1(id INTEGER PRIMARY KEY, level INTEGER, source TEXT, text TEXT, at INTEGER);
CREATE INDEX log1_at ON log1(at) WHERE level > 2;
CREATE INDEX log1_source ON log1(lower(source), at DESC);
";

const SIBLINGS: &[(&str, &str)] = &[
    ("view by key", "SELECT name, city FROM resident WHERE id = ?"),
    (
        "view joined with a view",
        "SELECT r.name, s.total FROM resident r JOIN spending s ON s.person = r.id WHERE r.country = 'NO' ORDER BY s.total DESC LIMIT 10",
    ),
    ("NOCASE and ORDER BY", "SELECT id, mail FROM person WHERE name = 'ann' ORDER BY born DESC, id"),
    (
        "two WITH",
        "WITH rich(p) AS (SELECT person FROM spending WHERE total > 1000), far AS (SELECT id FROM city WHERE country <> 'NO') SELECT v.day, v.cost FROM visit v, rich, far WHERE v.person = rich.p AND v.city = far.id",
    ),
    (
        "NOT EXISTS",
        "SELECT name FROM person p WHERE NOT EXISTS (SELECT * FROM visit v WHERE v.person = p.id AND v.city = p.city AND v.cost > 100)",
    ),
    ("partial index", "SELECT text FROM log1 WHERE at BETWEEN 100 AND 200 AND level > 2"),
    (
        "index on an expression",
        "SELECT id, text FROM log1 WHERE lower(source) = 'kernel' AND at < ? ORDER BY at DESC LIMIT 20",
    ),
    ("INSERT of named columns", "INSERT INTO person(name, mail, city) VALUES('Ann', 'ann@example.org', 3)"),
    ("INSERT, without rowid", "INSERT OR IGNORE INTO visit VALUES(?, ?, date('now'), ?)"),
    (
        "INSERT of eight rows",
        "INSERT INTO log1(level, source, text, at) VALUES(1, 'a', 'b', 1), (1, 'a', 'b', 2), (1, 'a', 'b', 3), (1, 'a', 'b', 4), (1, 'a', 'b', 5), (1, 'a', 'b', 6), (1, 'a', 'b', 7), (1, 'a', 'b', 8)",
    ),
    ("UPDATE with a trigger", "UPDATE person SET name = ?1 WHERE id = ?2"),
    (
        "UPDATE of four columns",
        "UPDATE person SET mail = ?1, born = ?2, height = height * 1.1, note = coalesce(note, '') || 'x' WHERE id = ?3",
    ),
    (
        "UPDATE FROM",
        "UPDATE city SET people = n FROM (SELECT city AS c, count(*) AS n FROM person GROUP BY city) WHERE c = city.id",
    ),
    ("DELETE with a trigger", "DELETE FROM person WHERE id = ?"),
    ("DELETE by a range", "DELETE FROM log1 WHERE at < ? AND level <= 2"),
    (
        "UPSERT, named",
        "INSERT INTO city(id, name, people) VALUES(?, ?, 1) ON CONFLICT(id) DO UPDATE SET people = people + excluded.people, name = excluded.name WHERE people < 100 RETURNING people",
    ),
    (
        "CASE in aggregates",
        "SELECT country, sum(CASE WHEN people > 1000 THEN 1 ELSE 0 END), max(length(name)), group_concat(name, ', ') FROM city GROUP BY country HAVING count(*) > 1 ORDER BY 2 DESC",
    ),
    (
        "three windows",
        "SELECT day, sum(cost) OVER w, lag(cost, 1, 0) OVER w, ntile(4) OVER (ORDER BY cost) FROM visit WINDOW w AS (PARTITION BY person ORDER BY day)",
    ),
    (
        "compound of three",
        "SELECT name FROM person UNION SELECT name FROM city EXCEPT SELECT source FROM log1 ORDER BY 1",
    ),
    (
        "tree by WITH RECURSIVE",
        "WITH RECURSIVE t(id, depth, path) AS (SELECT id, 0, name FROM city WHERE country = 'NO' UNION ALL SELECT p.id, t.depth + 1, t.path || '/' || p.name FROM person p JOIN t ON p.city = t.id WHERE depth < 5) SELECT * FROM t ORDER BY path",
    ),
    (
        "row values",
        "SELECT * FROM visit WHERE (person, city) IN (SELECT id, city FROM person WHERE height > 1.8) AND (day, cost) > ('2020-01-01', 10)",
    ),
    (
        "LEFT JOIN, IS NULL",
        "SELECT c.name FROM city c LEFT JOIN person p ON p.city = c.id AND p.born > '1990' WHERE p.id IS NULL",
    ),
    ("json_each", "SELECT value FROM person, json_each(person.note) WHERE person.id = ?"),
    (
        "star join of five",
        "SELECT a.name, b.name, count(*) FROM person a, person b, visit v, visit w, city c WHERE v.person = a.id AND w.person = b.id AND v.city = c.id AND w.city = c.id AND a.id < b.id GROUP BY a.id, b.id",
    ),
];

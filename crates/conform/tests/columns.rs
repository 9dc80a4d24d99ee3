//! Three ways to one answer: generated queries on stock SQLite, on iolite in rows, and on iolite in columns, over one
//! file that both engines change in between. Values, their order and errors must be the same; and the queries must
//! really have run in columns, which a counter says.

use iolite_stock as stock;
use std::fmt::Write;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const SCHEMA: &str = "
CREATE TABLE fact(id INTEGER PRIMARY KEY, k INTEGER, g INTEGER, r REAL, t TEXT, v, n NUMERIC, big INTEGER,
  c TEXT COLLATE NOCASE, d2 INTEGER);
CREATE TABLE dim(id INTEGER PRIMARY KEY, name TEXT, grp INTEGER, x REAL, up INTEGER);
CREATE TABLE dim2(code TEXT, label TEXT, w INTEGER, num INTEGER);
CREATE TABLE empty(a INTEGER PRIMARY KEY, b TEXT);
";

fn literal(r: &mut Rng, kind: &str) -> String {
    if r.chance(6) {
        return "NULL".into();
    }
    match kind {
        "k" => format!("{}", r.below(130)),
        "g" => format!("{}", r.below(12) as i64 - 3),
        "r" => match r.below(5) {
            0 => format!("{}", r.below(100)),
            1 => format!("-{}.5", r.below(100)),
            2 => "1e300".into(),
            _ => format!("{}.{}", r.below(1000), r.below(1000)),
        },
        "t" => format!("'{}{}'", r.pick(&["a", "b", "Zz", "", "10", "x y", "é"]), r.below(9)),
        "v" => match r.below(7) {
            0 => format!("{}", r.below(5)),
            1 => format!("{}.0", r.below(5)),
            2 => format!("'{}'", r.below(5)),
            3 => format!("x'0{}'", r.below(9)),
            4 => format!("{}.25", r.below(5)),
            _ => format!("'t{}'", r.below(30)),
        },
        "n" => r.pick(&["1", "2", "2.0", "'3'", "'abc'", "4.5", "-7", "1e20"]).into(),
        "big" => match r.below(40) {
            0 => "9223372036854775807".into(),
            1 => "-9223372036854775808".into(),
            _ => format!("{}", r.below(1 << 40) as i64 - (1 << 39)),
        },
        "c" => format!("'{}'", r.pick(&["ab", "AB", "Ab", "cd", "CD", "e", ""])),
        _ => format!("{}", r.below(60)),
    }
}

fn fact_row(r: &mut Rng, id: Option<u64>) -> String {
    let id = id.map_or("NULL".into(), |i| i.to_string());
    let mut s = format!("({id}");
    for kind in ["k", "g", "r", "t", "v", "n", "big", "c", "d2"] {
        let _ = write!(s, ",{}", literal(r, kind));
    }
    s + ")"
}

fn fill(r: &mut Rng, rows: u64) -> String {
    let mut s = String::from("BEGIN;");
    for i in 0..rows {
        // Some gaps among the rowids, some rows with overflow pages.
        let _ = write!(s, "INSERT INTO fact VALUES{};", fact_row(r, Some(i + i / 700 * 2000)));
        if i % 500 == 499 {
            let _ = write!(
                s,
                "UPDATE fact SET t = t || printf('%.*c', 5000, 'o') WHERE id = (SELECT max(id) FROM fact);"
            );
        }
    }
    for i in 0..120 {
        let (x, up) = (literal(r, "r"), literal(r, "d2"));
        let _ = write!(s, "INSERT INTO dim VALUES({i}, {}, {}, {x}, {up});", literal(r, "t"), r.below(7));
    }
    for _ in 0..150 {
        let (a, b) = (literal(r, "t"), literal(r, "c"));
        let _ = write!(s, "INSERT INTO dim2 VALUES({a}, {b}, {}, {});", r.below(50), r.below(60));
    }
    s + "COMMIT;"
}

fn condition(r: &mut Rng, p: &str) -> String {
    let op = r.pick(&["=", "<>", "<", "<=", ">", ">="]);
    match r.below(22) {
        20 | 21 => nested(r, p),
        16 => format!("{p}k {op} {p}g * {}", r.below(40)),
        17 => format!("{p}r * 2 {op} {p}r + {p}k"),
        18 => format!("{p}r / {p}g {op} 1.5 - {p}r"),
        0 => format!("{p}k {op} {}", r.below(130)),
        1 => format!("{p}k BETWEEN {} AND {}", r.below(60), 50 + r.below(80)),
        2 => format!("{p}g {op} {}.5", r.below(5)),
        3 => format!("{p}r {op} {}", r.below(600)),
        4 => format!("{p}t {op} '{}'", r.pick(&["a3", "b", "10", "Zz5"])),
        5 if r.chance(40) => {
            let n = 1 + r.below(3);
            format!(
                "substr({p}t, 1, {n}) {}",
                r.pick(&["IN ('a', 'a3', '1', 'Zz')", "NOT IN ('a', 'b')", "= 'a'"])
            )
        }
        5 => format!(
            "{p}t {}LIKE '{}'",
            r.pick(&["", "NOT "]),
            r.pick(&["a%", "%1", "_z%", "%", "%a%3%", "A3", "%Z"])
        ),
        6 => format!("{p}v {op} {}", r.pick(&["2", "'2'", "1.5", "x'03'", "'t9'"])),
        7 => format!("{p}n {op} {}", r.pick(&["2", "'3'", "4", "'abc'", "1e19"])),
        8 => format!("{p}c {op} '{}'", r.pick(&["ab", "CD", "E"])),
        9 => format!("{p}g IN (1, 3, {})", r.pick(&["5", "NULL", "'4'", "2.0"])),
        10 => format!("{p}t IS {}NULL", r.pick(&["", "NOT "])),
        11 => format!("({} OR {})", condition(r, p), condition(r, p)),
        12 => format!("NOT ({})", condition(r, p)),
        13 => format!("{p}k % {} = {}", 2 + r.below(5), r.below(3)),
        14 => format!("{p}g IS {}", r.pick(&["2", "NULL", "NOT 3", "TRUE"])),
        _ => format!("length({p}t) > {}", r.below(4)),
    }
}

/// A condition with a query in it.
fn nested(r: &mut Rng, p: &str) -> String {
    let q = if p.is_empty() { "fact." } else { p };
    let not = r.pick(&["", "NOT "]);
    let n = r.below(60);
    match r.below(12) {
        0 => format!("{p}g {not}IN (SELECT grp FROM dim WHERE up < {n})"),
        1 => format!("{p}k {not}IN (SELECT num FROM dim2 WHERE w > {n})"),
        2 => format!("{p}t {not}IN (SELECT code FROM dim2 WHERE w > {n})"),
        3 => format!("{p}v {not}IN (SELECT {} FROM dim2)", r.pick(&["w", "label", "code", "num"])),
        4 => format!("{not}EXISTS (SELECT 1 FROM dim2 z WHERE z.num = {q}k AND z.w > {n})"),
        5 => format!("{not}EXISTS (SELECT * FROM dim z WHERE z.id = {q}d2 AND z.grp = {})", r.below(6)),
        6 => {
            let op = r.pick(&["<>", "<", ">="]);
            format!(
                "{not}EXISTS (SELECT 1 FROM dim z, dim2 y WHERE z.id = y.num AND z.up = {q}k AND y.w {op} {q}g)"
            )
        }
        7 => format!("{p}k {} (SELECT {}(w) FROM dim2)", r.pick(&["<", ">"]), r.pick(&["avg", "sum", "max"])),
        8 => format!("{p}k < (SELECT max(z.w) FROM dim2 z WHERE z.num = {q}k)"),
        9 => format!("{p}g >= (SELECT count(*) FROM dim2 z WHERE z.num = {q}k AND z.w < {n})"),
        10 => format!(
            "(SELECT total(z.up) / 7 FROM dim z WHERE z.grp = {q}g AND z.up = {q}k) {not}IN (0.0, 3.0)"
        ),
        _ => format!("{p}r > (SELECT 1.1 * avg(z.r) FROM fact z WHERE z.g = {q}g AND z.k < {})", n * 2),
    }
}

fn key(r: &mut Rng, p: &str) -> String {
    match r.below(13) {
        0 | 1 => format!("{p}g"),
        2 => format!("{p}t"),
        3 => format!("{p}k"),
        4 => format!("{p}v"),
        5 => format!("{p}c"),
        6 => format!("{p}n"),
        7 => format!("{p}k % 7"),
        8 => format!("substr({p}t, 1, 1)"),
        9 => format!("{p}r > 100"),
        10 => format!("CASE {p}g WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE {p}c END"),
        11 => format!("typeof({p}v)"),
        _ => format!("coalesce({p}g, -1)"),
    }
}

fn aggregate(r: &mut Rng, p: &str) -> String {
    match r.below(25) {
        22 => format!("sum(CASE WHEN {p}k > 50 THEN 1 ELSE 0 END), sum({p}g > 3)"),
        23 => format!("sum(CASE {p}c WHEN 'ab' THEN 2 WHEN 'e' THEN NULL ELSE length({p}c) END)"),
        24 => format!("avg(length({p}c)), max({p}k % 10), count(nullif({p}g, 2))"),
        18 => format!("sum({p}r * (1 - {p}r))"),
        19 => format!("avg({p}r + {p}k), total({p}r / {p}g)"),
        20 => format!("sum({p}r - {p}k * 2)"),
        0 | 1 => "count(*)".into(),
        2 => format!("sum({p}k)"),
        3 => format!("sum({p}k * {p}g)"),
        4 => format!("sum({p}big)"),
        5 => format!("avg({p}k)"),
        6 => format!("total({p}r)"),
        7 => format!("sum({p}r)"),
        8 => format!("min({p}k), max({p}g)"),
        9 => format!("min({p}t)"),
        10 => format!("max({p}v)"),
        11 => format!("count({p}t)"),
        12 => format!("count(DISTINCT {})", key(r, p)),
        13 => format!("sum(DISTINCT {p}g)"),
        14 => format!("group_concat({p}c)"),
        15 => format!("sum(k) FILTER (WHERE {})", condition(r, p)),
        16 => format!("avg({p}n)"),
        _ => format!("sum({p}k + {}) - sum({p}g)", r.below(9)),
    }
}

/// FROM, WHERE, and the prefix of the fact table's columns.
fn from(r: &mut Rng) -> (String, String) {
    let filter = |r: &mut Rng, p: &str| {
        let mut s = String::new();
        for _ in 0..r.below(3) {
            let _ = write!(s, " AND {}", condition(r, p));
        }
        s
    };
    match r.below(9) {
        0..=2 => {
            let f = filter(r, "");
            ("fact".into(), format!("1{f}"))
        }
        3 | 4 => {
            let f = filter(r, "f.");
            let d =
                r.pick(&["", " AND d.grp = 3", " AND d.name > 'a'", " AND d.up < 20", " AND d.x IS NULL"]);
            ("fact f, dim d".into(), format!("f.d2 = d.id{d}{f}"))
        }
        5 => {
            let f = filter(r, "f.");
            let on = r.pick(&["", " AND d.grp < 4", " AND d.name = 'a3'"]);
            let w = r.pick(&["", " AND d.grp IS NULL", " AND d.grp = 2", " AND coalesce(d.grp, 9) > 3"]);
            (format!("fact f LEFT JOIN dim d ON f.d2 = d.id{on}"), format!("1{w}{f}"))
        }
        6 => {
            let f = filter(r, "f.");
            ("fact f JOIN dim2 d ON f.t = d.code".into(), format!("d.w < 40{f}"))
        }
        7 => {
            let f = filter(r, "f.");
            ("fact f, dim d, dim e".into(), format!("f.d2 = d.id AND d.up = e.id AND e.grp <> 2{f}"))
        }
        _ => {
            let f = filter(r, "f.");
            ("fact f, dim2 d".into(), format!("f.d2 = d.num AND d.w BETWEEN 5 AND 30{f}"))
        }
    }
}

/// A query that all three can be asked. Which of several equal keys stands for its group depends, with min() or max()
/// beside it, on their row: there rows and stock differ, columns follow the rows.
fn query(r: &mut Rng) -> String {
    loop {
        let q = any_query(r);
        let (list, groups) = q.split_once(" GROUP BY ").unwrap_or((&q, ""));
        let by_value = list.contains("min(") || list.contains("max(");
        let vague = ["c", "v", "n"].iter().any(|k| {
            groups.split([',', ' ']).any(|g| g == *k || g.strip_prefix("f.") == Some(k))
                || groups.contains("CASE")
        });
        if !(by_value && vague) {
            return q;
        }
    }
}

fn any_query(r: &mut Rng) -> String {
    let (from, filter) = from(r);
    let alias = from.contains("fact f");
    let p = if alias { "f." } else { "" };
    let inner = |r: &mut Rng| {
        let dim =
            if from.contains("dim2") { r.pick(&["d.label", "d.w"]) } else { r.pick(&["d.grp", "d.name"]) };
        if alias && r.chance(60) { dim.to_string() } else { key(r, p) }
    };
    let tail = |r: &mut Rng, n: usize| {
        let mut s = String::new();
        if r.chance(60) {
            let _ = write!(
                s,
                " ORDER BY {}{}",
                1 + r.below(n as u64),
                r.pick(&["", " DESC", " DESC NULLS LAST"])
            );
            if r.chance(50) {
                let _ = write!(s, ", {}", 1 + r.below(n as u64));
            }
        }
        if r.chance(30) {
            let _ = write!(s, " LIMIT {}", r.below(20));
            if r.chance(40) {
                let _ = write!(s, " OFFSET {}", r.below(10));
            }
        }
        s
    };
    match r.below(10) {
        0 | 1 => {
            let list: Vec<String> = (0..1 + r.below(3)).map(|_| aggregate(r, p)).collect();
            format!("SELECT {} FROM {from} WHERE {filter}", list.join(", "))
        }
        2..=6 => {
            let keys: Vec<String> = (0..1 + r.below(2)).map(|_| inner(r)).collect();
            let mut list = keys.clone();
            list.extend((0..1 + r.below(3)).map(|_| aggregate(r, p)));
            let having = if r.chance(25) { " HAVING count(*) > 3" } else { "" };
            let n = list.len();
            let s = format!(
                "SELECT {} FROM {from} WHERE {filter} GROUP BY {}{having}",
                list.join(", "),
                keys.join(", ")
            );
            s + &tail(r, n)
        }
        7 => {
            let list: Vec<String> = (0..1 + r.below(2)).map(|_| inner(r)).collect();
            let s = format!("SELECT DISTINCT {} FROM {from} WHERE {filter}", list.join(", "));
            s + &tail(r, list.len())
        }
        8 => {
            let list: Vec<String> = (0..1 + r.below(4)).map(|_| inner(r)).collect();
            let s = format!("SELECT {} FROM {from} WHERE {filter}", list.join(", "));
            s + &tail(r, list.len())
        }
        _ => {
            let (a, b) = (condition(r, ""), condition(r, ""));
            format!(
                "SELECT g, s FROM (SELECT g, sum(k) AS s FROM fact WHERE {a} GROUP BY g) UNION ALL \
                 SELECT g, count(*) FROM fact WHERE {b} GROUP BY g"
            )
        }
    }
}

fn change(r: &mut Rng) -> String {
    match r.below(8) {
        0 => format!(
            "INSERT INTO fact VALUES {}",
            (0..20).map(|_| fact_row(r, None)).collect::<Vec<_>>().join(",")
        ),
        1 => format!("UPDATE fact SET k = {} WHERE id % 37 = {}", literal(r, "k"), r.below(37)),
        2 => format!("UPDATE fact SET t = {} WHERE id % 91 = {}", literal(r, "t"), r.below(91)),
        3 => format!("UPDATE fact SET v = {} WHERE id % 200 = {}", literal(r, "v"), r.below(200)),
        4 => format!("DELETE FROM fact WHERE id % 211 = {}", r.below(211)),
        5 => format!("UPDATE dim SET grp = {} WHERE id = {}", r.below(9), r.below(120)),
        6 => format!("UPDATE fact SET r = r + 1, g = {} WHERE id = {}", literal(r, "g"), r.below(3000)),
        _ => {
            format!("UPDATE fact SET t = printf('%.*c', {}, 'q') WHERE id = {}", r.below(9000), r.below(3000))
        }
    }
}

fn by_stock(c: &stock::Connection, sql: &str) -> String {
    let rows = match c.query(sql) {
        Ok(r) => r,
        Err(e) => return format!("error: {}", e.message),
    };
    let mut out = String::new();
    for row in rows {
        for v in row {
            let _ = match v {
                stock::Value::Null => write!(out, "NULL|"),
                stock::Value::Int(i) => write!(out, "{i}|"),
                stock::Value::Real(r) => write!(out, "{r:?}|"),
                stock::Value::Text(t) => write!(out, "'{}'|", String::from_utf8_lossy(&t)),
                stock::Value::Blob(b) => write!(out, "{b:?}|"),
            };
        }
        out.push('\n');
    }
    out
}

fn by_iolite(c: &iolite::Connection, sql: &str) -> String {
    let rows = match c.query(sql, &[]) {
        Ok(r) => r,
        Err(e) => return format!("error: {e}"),
    };
    let mut out = String::new();
    for row in rows {
        for v in row {
            let _ = match &v {
                iolite::Value::Null => write!(out, "NULL|"),
                iolite::Value::Int(i) => write!(out, "{i}|"),
                iolite::Value::Real(r) => write!(out, "{r:?}|"),
                iolite::Value::Text(..) => write!(out, "'{}'|", v.to_string_lossy()),
                iolite::Value::Blob(b, _) => write!(out, "{:?}|", &b[..]),
            };
        }
        out.push('\n');
    }
    out
}

struct File(std::path::PathBuf);

impl File {
    fn new(name: &str) -> File {
        let f = File(std::env::temp_dir().join(format!("iolite-columns-{}-{name}.db", std::process::id())));
        f.remove();
        f
    }

    fn name(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    fn remove(&self) {
        for s in ["", "-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(format!("{}{s}", self.name()));
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Compares one query; answers whether it ran in columns. With indexes stock's rows come in orders of their own.
fn compare(q: &str, s: &stock::Connection, c: &iolite::Connection, seed: u64, indexes: bool) -> bool {
    c.execute_batch("PRAGMA analytics=off").unwrap();
    let want = by_stock(s, q);
    let rows = by_iolite(c, q);
    c.execute_batch("PRAGMA analytics=force").unwrap();
    let before = c.column_runs();
    let columns = by_iolite(c, q);
    assert_eq!(columns, rows, "columns and rows differ, seed {seed}: {q}");
    // Among rows that sort equal the engines may choose; which of them LIMIT takes follows from that.
    let sorted = |s: &str| {
        let mut l: Vec<&str> = s.lines().collect();
        l.sort_unstable();
        l.join("\n")
    };
    // What depends on the order of the rows depends on the order of the loops.
    let by_order = ["group_concat", "f.r", "f.n", "f.big", "f.c", "f.v"].iter().any(|f| q.contains(f));
    if indexes || q.contains("fact f") && by_order {
        return c.column_runs() > before;
    }
    if q.contains("LIMIT") {
        assert_eq!(rows.lines().count(), want.lines().count(), "seed {seed}: {q}");
    } else {
        assert_eq!(sorted(&rows), sorted(&want), "rows and stock differ, seed {seed}: {q}");
    }
    c.column_runs() > before
}

const INDEXES: &str = "CREATE INDEX fact_g ON fact(g, t DESC); CREATE INDEX fact_k ON fact(k)";

fn three_ways(name: &str, setup: &str, seed: u64, rows: u64, queries: u32) {
    let indexes = name == "indexes";
    let file = File::new(name);
    let mut r = Rng(seed);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(setup).unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, rows)).unwrap();
    if indexes {
        s.execute_batch(INDEXES).unwrap();
    }
    let c = iolite::Connection::open(&file.name()).unwrap();
    let (mut run, mut ran) = (0, 0);
    for i in 0..queries {
        let q = query(&mut r);
        run += 1;
        ran += compare(&q, &s, &c, seed, indexes) as u32;
        if i % 3 == 0 {
            let sql = change(&mut r);
            // Both engines write, now and then several statements in one transaction.
            if r.chance(50) {
                s.execute_batch(&sql).unwrap();
            } else if r.chance(70) {
                c.execute_batch(&sql).unwrap();
            } else {
                let more = change(&mut r);
                c.execute_batch("BEGIN").unwrap();
                c.execute_batch(&sql).unwrap();
                // What is not committed yet is seen by the one who wrote it alone.
                let q = "SELECT g, count(*), sum(k), min(t) FROM fact GROUP BY g";
                c.execute_batch("PRAGMA analytics=force").unwrap();
                let columns = by_iolite(&c, q);
                c.execute_batch("PRAGMA analytics=off").unwrap();
                assert_eq!(columns, by_iolite(&c, q), "uncommitted, seed {seed}: {sql}");
                c.execute_batch(&more).unwrap();
                c.execute_batch(if r.chance(50) { "COMMIT" } else { "ROLLBACK" }).unwrap();
            }
        }
        if i % 40 == 39 {
            s.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
        }
    }
    assert!(ran * 2 > run || indexes && ran * 4 > run, "only {ran} of {run} queries ran in columns");
}

fn queries() -> u32 {
    std::env::var("IOLITE_COLUMN_QUERIES").ok().and_then(|v| v.parse().ok()).unwrap_or(150)
}

#[test]
fn all_ways_agree_in_wal_mode() {
    three_ways("wal", "PRAGMA journal_mode=WAL", 1, 3000, queries());
}

#[test]
fn all_ways_agree_with_a_rollback_journal() {
    three_ways("delete", "PRAGMA journal_mode=DELETE", 2, 3000, queries());
}

#[test]
fn columns_follow_rows_where_there_are_indexes() {
    three_ways("indexes", "PRAGMA journal_mode=WAL", 5, 3000, queries());
}

#[test]
fn all_ways_agree_on_small_pages() {
    three_ways("small", "PRAGMA page_size=512; PRAGMA journal_mode=WAL", 3, 1500, queries());
}

#[test]
fn all_ways_agree_on_a_file_that_shrinks_and_moves() {
    three_ways("vacuum", "PRAGMA auto_vacuum=FULL; PRAGMA journal_mode=WAL", 4, 2000, queries());
}

/// Shapes of analytical queries: what they must be is that they run in columns, in the order of the loops.
#[test]
fn nested_queries_and_any_order_of_loops_run_in_columns() {
    let file = File::new("shapes");
    let mut r = Rng(11);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(SCHEMA).unwrap();
    s.execute_batch(&fill(&mut r, 2500)).unwrap();
    s.execute_batch(
        "CREATE INDEX fact_d2 ON fact(d2, k); CREATE INDEX dim_grp ON dim(grp, grp, up); ANALYZE",
    )
    .unwrap();
    let c = iolite::Connection::open(&file.name()).unwrap();
    let queries = [
        "SELECT d.name, sum(f.r) FROM dim d, fact f WHERE d.grp = 3 AND f.d2 = d.id GROUP BY d.name",
        "SELECT d.grp, total(f.r * (1 - d.x)), avg(f.r) FROM fact f, dim d, dim e
         WHERE f.d2 = d.id AND d.up = e.id AND e.grp IN (1, 2) GROUP BY d.grp ORDER BY 2 DESC",
        "SELECT d.id, d.name, d.grp, sum(f.r) FROM dim d, fact f WHERE d.id = f.d2 GROUP BY d.id, d.name, d.grp
         ORDER BY 4 DESC LIMIT 7",
        "SELECT d.id, count(f.id) FROM dim d LEFT JOIN fact f ON f.d2 = d.id AND f.t LIKE '%a%1%' GROUP BY d.id",
        "SELECT f.id, f.k, d.name FROM dim d, fact f WHERE d.grp = 2 AND f.d2 = d.id AND f.k > 20",
        "SELECT g, sum(r) FROM fact WHERE EXISTS (SELECT 1 FROM dim2 z WHERE z.num = fact.k) GROUP BY g",
        "SELECT g, count(*) FROM fact WHERE NOT EXISTS
           (SELECT 1 FROM fact z WHERE z.k = fact.k AND z.g <> fact.g AND z.r > 100) GROUP BY g",
        "SELECT count(*), sum(k) FROM fact WHERE k NOT IN (SELECT num FROM dim2 WHERE num IS NOT NULL)",
        "SELECT sum(r) FROM fact WHERE r < (SELECT 0.7 * avg(z.r) FROM fact z WHERE z.d2 = fact.d2)",
        "SELECT g, sum(k) FROM fact GROUP BY g HAVING sum(k) > (SELECT avg(k) * 50 FROM fact)",
        "SELECT sum(f.r) FROM fact f, dim d WHERE f.d2 = d.id
           AND (d.grp = 1 AND f.k < 30 AND f.g IN (1, 2) OR d.grp = 4 AND f.k > 50 AND d.up < 20)",
        "SELECT g, sum(CASE WHEN t LIKE 'a%' THEN r * 2 ELSE 0 END) FROM fact GROUP BY g",
        "SELECT count(*) FROM fact f, dim2 z WHERE f.k = z.num AND f.t = z.code",
    ];
    for q in queries {
        assert!(compare(q, &s, &c, 11, true), "in rows: {q}");
        assert!(compare(q, &s, &c, 11, true), "in rows: {q}");
    }
}

/// A file with a table of some segments, opened by both engines.
fn large(name: &str, mode: &str) -> (File, stock::Connection, iolite::Connection) {
    iolite::set_column_segment_leaves(512);
    let file = File::new(name);
    let s = stock::Connection::open(&file.name()).unwrap();
    s.execute_batch(&format!("PRAGMA page_size=1024; PRAGMA journal_mode={mode}")).unwrap();
    s.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER);
         CREATE TABLE d(id INTEGER PRIMARY KEY, name TEXT, year INTEGER);
         INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40000)
           SELECT i, i % 100, printf('%.*c', 20, 'p'), i % 7 FROM c;
         INSERT INTO d WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 99)
           SELECT i, 'n' || i % 10, 1990 + i % 10 FROM c;",
    )
    .unwrap();
    let c = iolite::Connection::open(&file.name()).unwrap();
    c.execute_batch("PRAGMA analytics=force").unwrap();
    (file, s, c)
}

const TOTAL: &str = "SELECT count(*), sum(a), sum(b), min(id), max(pad) FROM t";

fn same(s: &stock::Connection, c: &iolite::Connection, q: &str) {
    let before = c.column_runs();
    assert_eq!(by_iolite(c, q), by_stock(s, q), "{q}");
    assert!(c.column_runs() > before, "not in columns: {q}");
}

#[test]
fn what_did_not_change_is_not_read_again() {
    for mode in ["WAL", "DELETE"] {
        let (_file, s, c) = large(&format!("again-{mode}"), mode);
        same(&s, &c, TOTAL);
        let first = c.column_counters(0);
        assert!(first.decoded > 2, "{first:?}");
        same(&s, &c, TOTAL);
        assert_eq!(c.column_counters(0), first, "{mode}");
        // A column more: its segments are decoded, the others stay.
        same(&s, &c, "SELECT b, count(*) FROM t GROUP BY b");
        assert_eq!(c.column_counters(0), first);
        s.execute_batch("UPDATE t SET a = 50 WHERE id IN (77, 30000)").unwrap();
        same(&s, &c, TOTAL);
        let now = c.column_counters(0);
        assert_eq!(
            now.decoded, first.decoded,
            "{mode}: two leaves changed, no segment is decoded as a whole"
        );
        assert_eq!(now.patched, 2, "{mode}");
        // A log knows what changed; without one the leaves are hashed.
        assert_eq!(now.hashed > 0, mode == "DELETE");
        s.execute_batch(
            "DELETE FROM t WHERE id BETWEEN 100 AND 130; INSERT INTO t VALUES(1000000, 1, 'x', 2)",
        )
        .unwrap();
        same(&s, &c, TOTAL);
        assert!(c.column_counters(0).decoded < first.decoded + 4);
    }
}

#[test]
fn values_in_overflow_pages_change_behind_their_leaves() {
    let (_file, s, c) = large("overflow", "WAL");
    s.execute_batch("UPDATE t SET pad = printf('%.*c', 5000, 'o') WHERE id % 1000 = 0").unwrap();
    same(&s, &c, TOTAL);
    for i in 1..6 {
        // Only the overflow page is written: the column lies behind the long text.
        s.execute_batch(&format!("UPDATE t SET b = {i} WHERE id = 5000")).unwrap();
        same(&s, &c, TOTAL);
        same(&s, &c, "SELECT b, count(*) FROM t GROUP BY b");
    }
}

#[test]
fn tables_come_and_go_under_the_same_root() {
    for mode in ["WAL", "DELETE"] {
        let (_file, s, c) = large(&format!("roots-{mode}"), mode);
        same(&s, &c, TOTAL);
        for sql in [
            "DELETE FROM t",
            "INSERT INTO t SELECT id, id, name, year FROM d",
            "ALTER TABLE t ADD COLUMN e INTEGER DEFAULT 5",
            "DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER, e)",
            "INSERT INTO t SELECT id * 3, year, name, id, 'e' FROM d",
            "VACUUM",
            "INSERT INTO t SELECT NULL, x.year, y.name, x.id, 1.5 FROM d x, d y",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "UPDATE t SET a = a + 1",
        ] {
            s.execute_batch(sql).unwrap();
            same(&s, &c, TOTAL);
            if c.query("SELECT 1 FROM pragma_table_info('t') WHERE name = 'e'", &[])
                .is_ok_and(|r| !r.is_empty())
            {
                same(&s, &c, "SELECT e, count(*) FROM t GROUP BY e");
            }
        }
    }
}

#[test]
fn each_reader_sees_its_own_snapshot() {
    let (file, s, c) = large("snapshots", "WAL");
    let old = iolite::Connection::open(&file.name()).unwrap();
    old.execute_batch("PRAGMA analytics=force; BEGIN").unwrap();
    let before = by_iolite(&old, TOTAL);
    assert_eq!(before, by_stock(&s, TOTAL));
    for i in 0..5 {
        s.execute_batch(&format!(
            "UPDATE t SET a = {i} WHERE id % 997 = {i}; INSERT INTO t VALUES(NULL, 1, 'y', 2)"
        ))
        .unwrap();
        same(&s, &c, TOTAL);
        // Newer segments are there for the file; the older snapshot takes none of them.
        assert_eq!(by_iolite(&old, TOTAL), before);
        same(&s, &c, TOTAL);
    }
    old.execute_batch("COMMIT").unwrap();
    same(&s, &old, TOTAL);
    // What a transaction changed and did not commit is seen by itself only.
    c.execute_batch("BEGIN; UPDATE t SET b = 100 WHERE id < 9000").unwrap();
    let own = by_iolite(&c, TOTAL);
    assert_ne!(own, by_stock(&s, TOTAL));
    same(&s, &old, TOTAL);
    c.execute_batch("SAVEPOINT x; DELETE FROM t WHERE id > 100").unwrap();
    assert_ne!(by_iolite(&c, TOTAL), own);
    c.execute_batch("ROLLBACK TO x").unwrap();
    assert_eq!(by_iolite(&c, TOTAL), own);
    c.execute_batch("ROLLBACK").unwrap();
    same(&s, &c, TOTAL);
}

#[test]
fn derived_columns_follow_both_tables() {
    let (_file, s, c) = large("derived", "WAL");
    let q = "SELECT year, count(*), sum(b) FROM t, d WHERE t.a = d.id AND name <> 'n3' GROUP BY year";
    for _ in 0..3 {
        same(&s, &c, q);
    }
    let derived = c.column_counters(0).derived;
    assert!(derived > 0);
    same(&s, &c, q);
    assert_eq!(c.column_counters(0).derived, derived, "what is derived stays");
    s.execute_batch("UPDATE t SET b = 3 WHERE id % 5000 = 1").unwrap();
    same(&s, &c, q);
    assert_eq!(c.column_counters(0).derived, derived, "the outer key did not change");
    for sql in [
        "UPDATE d SET name = 'n3' WHERE id = 5",
        "UPDATE t SET a = 5 WHERE id = 30000",
        "UPDATE t SET a = 5000 WHERE id = 29000",
        "DELETE FROM d WHERE id = 7",
        "UPDATE d SET year = NULL WHERE id = 8",
        "INSERT INTO d VALUES(5000, 'new', 2020)",
        "UPDATE d SET name = NULL WHERE id = 9",
    ] {
        s.execute_batch(sql).unwrap();
        for _ in 0..3 {
            same(&s, &c, q);
        }
    }
}

#[test]
fn a_database_in_memory_has_columns_too() {
    let c = iolite::Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a INTEGER, b INTEGER);
         INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 50000)
           SELECT i % 10, i FROM c;",
    )
    .unwrap();
    // Without being forced: the table is large enough.
    let q = "SELECT a, sum(b) FROM t GROUP BY a";
    let sums = by_iolite(&c, q);
    assert_eq!(c.column_runs(), 1);
    let decoded = c.column_counters(0).decoded;
    c.execute_batch("UPDATE t SET b = b + 1 WHERE rowid = 40000").unwrap();
    assert_ne!(by_iolite(&c, q), sums);
    assert_eq!(c.column_counters(0).decoded, decoded);
    // Small tables, and rows found by key, stay with programs.
    c.execute_batch("CREATE TABLE s AS SELECT * FROM t LIMIT 100").unwrap();
    by_iolite(&c, "SELECT a, sum(b) FROM s GROUP BY a");
    by_iolite(&c, "SELECT b FROM t WHERE rowid = 7");
    assert_eq!(c.column_runs(), 2);
    c.execute_batch("PRAGMA analytics=off").unwrap();
    by_iolite(&c, q);
    assert_eq!(c.column_runs(), 2);
}

#[test]
fn a_run_in_columns_can_be_interrupted() {
    let (_file, _s, c) = large("interrupt", "WAL");
    c.progress_handler(Some(std::rc::Rc::new(|| true)));
    assert_eq!(c.query(TOTAL, &[]).unwrap_err().code(), iolite::Code::Interrupt);
    c.progress_handler(None);
    assert!(c.query(TOTAL, &[]).is_ok());
}

#[test]
fn explain_says_what_runs_in_columns_and_why_not() {
    let (_file, _s, c) = large("explain", "WAL");
    let plan = |q: &str| {
        let rows = c.query(&format!("EXPLAIN QUERY PLAN {q}"), &[]).unwrap();
        rows.iter().map(|r| r[3].to_string_lossy()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        plan("SELECT year, sum(b) FROM t, d WHERE t.a = d.id GROUP BY year"),
        "SCAN t IN COLUMNS; JOIN d IN COLUMNS"
    );
    let q = "SELECT a, (SELECT count(*) FROM d WHERE d.id = t.b) FROM t";
    assert!(plan(q).starts_with("IN ROWS: a nested query that depends on the row"), "{}", plan(q));
    let q = "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.id = t.b)";
    assert_eq!(plan(q), "SCAN t IN COLUMNS; NESTED d IN COLUMNS");
    c.execute_batch("PRAGMA analytics=auto").unwrap();
    assert_eq!(plan("SELECT * FROM t WHERE id = 5"), "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)");
}

#[test]
fn threads_change_no_answer() {
    let (_file, s, c) = large("threads", "WAL");
    s.execute_batch(
        "UPDATE t SET b = NULL WHERE id % 11 = 0; UPDATE t SET a = 1000000000 + id * 1000 WHERE id < 20",
    )
    .unwrap();
    for q in [
        TOTAL,
        "SELECT b, count(*), sum(a), min(a), max(id), avg(a), count(b) FROM t WHERE a < 60 GROUP BY b",
        "SELECT year, b, sum(a * 2 - t.id), total(b) FROM t, d WHERE t.a = d.id AND d.year > 1992 GROUP BY year, b",
        "SELECT a, b, count(*), sum(t.id), max(t.id) FROM t GROUP BY a, b",
        "SELECT id % 1003, sum(b) FROM t GROUP BY 1 HAVING sum(b) > 5 LIMIT 50",
        "SELECT pad, sum(b) FROM t WHERE a + b > id % 90 GROUP BY pad",
        "SELECT b, count(*) FROM t WHERE a < b OR a > 70 AND id < a * 100 OR b IS NULL GROUP BY b",
        "SELECT b, sum(a) FROM t, d WHERE t.a = d.id AND (d.year = 1993 AND t.b < 4 OR d.year = 1995 AND t.b > 2)
         GROUP BY b",
        "SELECT t.id, b, year, count(*) FROM t, d WHERE t.a = d.id GROUP BY t.id, b, year LIMIT 100",
        "SELECT b, count(*) FROM t WHERE a NOT IN (SELECT id FROM d WHERE year = 1994) GROUP BY b",
    ] {
        let mut answers = Vec::new();
        for n in [0, 1, 2, 5] {
            c.execute_batch(&format!("PRAGMA threads={n}")).unwrap();
            let before = c.column_runs();
            answers.push(by_iolite(&c, q));
            assert!(c.column_runs() > before, "{q}");
        }
        c.execute_batch("PRAGMA analytics=off").unwrap();
        answers.push(by_iolite(&c, q));
        c.execute_batch("PRAGMA analytics=force").unwrap();
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "{q}");
    }
    let plan = c.query("EXPLAIN ANALYZE SELECT b, sum(a) FROM t GROUP BY b", &[]).unwrap();
    assert!(plan.iter().any(|r| r[3].to_string_lossy().starts_with("SCAN WITH 3 THREADS")), "{plan:?}");
    c.progress_handler(Some(std::rc::Rc::new(|| true)));
    assert_eq!(
        c.query("SELECT b, sum(a) FROM t GROUP BY b", &[]).unwrap_err().code(),
        iolite::Code::Interrupt
    );
}

#[test]
fn explain_analyze_runs_the_query_and_says_what_happened() {
    let (_file, s, c) = large("analyze", "WAL");
    let lines = |q: &str| -> Vec<(i64, i64, String)> {
        let rows = c.query(&format!("EXPLAIN ANALYZE {q}"), &[]).unwrap();
        rows.iter().map(|r| (r[0].to_int(), r[1].to_int(), r[3].to_string_lossy())).collect()
    };
    let q = "SELECT year, sum(b) FROM t, d WHERE t.a = d.id AND t.b < 3 AND year > 1991 GROUP BY year";
    let said = lines(q);
    let all: Vec<&str> = said.iter().map(|l| &*l.2).collect();
    assert_eq!(all[0], "SCAN t IN COLUMNS");
    let has = |what: &str| all.iter().any(|l| l.contains(what));
    for what in [
        "COLUMNS OF t: 40000 rows",
        "segments decoded",
        "BUILD d: 100 rows, 80 kept",
        "FILTER b BY RANGE: 40000 rows tested, 17144 passed",
        "SCAN OF t: 40000 rows",
        "13715 rows selected",
        "GROUPS: 8",
        "RESULT: 8 rows",
        "RUN: 8 rows",
    ] {
        assert!(has(what), "{what}: {all:#?}");
    }
    // What is learned hangs below the arm's line; again, nothing is decoded.
    assert!(said.iter().filter(|l| l.2.contains(" OF ")).all(|l| l.1 == said[0].0), "{said:?}");
    assert!(!lines(q).iter().any(|l| l.2.contains("decoded")));
    s.execute_batch("UPDATE t SET b = 6 WHERE id = 9").unwrap();
    assert!(lines(q).iter().any(|l| l.2.contains("1 segments patched")));
    // Rows, too, are run, and so is what writes.
    c.execute_batch("PRAGMA analytics=off").unwrap();
    assert!(lines("SELECT a FROM t WHERE id < 10").iter().any(|l| l.2.starts_with("RUN: 9 rows")));
    lines("DELETE FROM t WHERE id = 1");
    assert_eq!(c.changes(), 1);
}

#[test]
fn damaged_pages_end_in_the_answer_of_rows() {
    let (file, s, c) = large("damage", "DELETE");
    s.execute_batch("UPDATE t SET pad = printf('%.*c', 3000, 'o') WHERE id % 1500 = 0").unwrap();
    drop((s, c));
    let image = std::fs::read(&file.0).unwrap();
    let mut r = Rng(77);
    for round in 0..150 {
        let mut bytes = image.clone();
        for _ in 0..1 + r.below(30) {
            // Never the first page: it names the size of pages and the schema.
            let at = 1024 + r.below(bytes.len() as u64 - 1024) as usize;
            bytes[at] = if r.chance(30) { 0xff } else { r.below(256) as u8 };
        }
        let copy = File::new(&format!("damage-{round}"));
        std::fs::write(&copy.0, &bytes).unwrap();
        let c = iolite::Connection::open(&copy.name()).unwrap();
        for q in [
            TOTAL,
            "SELECT b, count(*), min(a) FROM t WHERE a < 40 GROUP BY b",
            "SELECT year, sum(b) FROM t, d WHERE t.a = d.id GROUP BY year",
        ] {
            c.execute_batch("PRAGMA analytics=off").unwrap();
            let rows = by_iolite(&c, q);
            c.execute_batch("PRAGMA analytics=force").unwrap();
            let columns = by_iolite(&c, q);
            // Rows may stop at damage that columns do not look at: they read what they need.
            if !rows.starts_with("error") {
                assert_eq!(columns, rows, "round {round}: {q}");
            }
        }
    }
}

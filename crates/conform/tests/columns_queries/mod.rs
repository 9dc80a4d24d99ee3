//! Generated queries over tables that both engines change, and the comparison of what three ways answer.
#![allow(dead_code)]

use iolite_stock as stock;
use std::fmt::Write;

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub const SCHEMA: &str = "
CREATE TABLE fact(id INTEGER PRIMARY KEY, k INTEGER, g INTEGER, r REAL, t TEXT, v, n NUMERIC, big INTEGER,
  c TEXT COLLATE NOCASE, d2 INTEGER);
CREATE TABLE dim(id INTEGER PRIMARY KEY, name TEXT, grp INTEGER, x REAL, up INTEGER);
CREATE TABLE dim2(code TEXT, label TEXT, w INTEGER, num INTEGER);
CREATE TABLE empty(a INTEGER PRIMARY KEY, b TEXT);
";

pub fn literal(r: &mut Rng, kind: &str) -> String {
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

pub fn fact_row(r: &mut Rng, id: Option<u64>) -> String {
    let id = id.map_or("NULL".into(), |i| i.to_string());
    let mut s = format!("({id}");
    for kind in ["k", "g", "r", "t", "v", "n", "big", "c", "d2"] {
        let _ = write!(s, ",{}", literal(r, kind));
    }
    s + ")"
}

pub fn fill(r: &mut Rng, rows: u64) -> String {
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

pub fn condition(r: &mut Rng, p: &str) -> String {
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
pub fn nested(r: &mut Rng, p: &str) -> String {
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

pub fn key(r: &mut Rng, p: &str) -> String {
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

pub fn aggregate(r: &mut Rng, p: &str) -> String {
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
pub fn from(r: &mut Rng) -> (String, String) {
    let filter = |r: &mut Rng, p: &str| {
        let mut s = String::new();
        for _ in 0..r.below(3) {
            let _ = write!(s, " AND {}", condition(r, p));
        }
        s
    };
    match r.below(13) {
        // Queries in FROM that the planner does not take apart.
        9 => {
            let (f, own) = (filter(r, "f."), condition(r, "x."));
            let sub = format!(
                "SELECT x.d2 AS id, count(*) AS grp, min(x.t) AS name, max(x.k) AS up FROM fact x WHERE {own} GROUP BY x.d2"
            );
            (
                format!("fact f, ({sub}) d"),
                format!("f.d2 = d.id{}{f}", r.pick(&["", " AND d.grp > 20", " AND f.k = d.up"])),
            )
        }
        10 => {
            let f = filter(r, "f.");
            let on = r.pick(&["d.id = f.d2", "d.id = f.d2 AND d.grp > 2", "d.name = f.t"]);
            (
                format!("fact f LEFT JOIN (SELECT DISTINCT up AS id, grp, name FROM dim) d ON {on}"),
                format!("1{f}"),
            )
        }
        11 => {
            let f = filter(r, "f.");
            ("(SELECT * FROM fact f GROUP BY f.id) f, dim d".into(), format!("f.d2 = d.id{f}"))
        }
        12 => {
            let f = filter(r, "f.");
            let sub = "SELECT grp, up, count(*) AS id, min(name) AS name FROM dim GROUP BY grp, up";
            (format!("({sub}) d JOIN fact f ON f.d2 = d.up AND f.g = d.grp"), format!("1{f}"))
        }
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
pub fn query(r: &mut Rng) -> String {
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

pub fn any_query(r: &mut Rng) -> String {
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
            // A column beside the groups: of which row it is, is said for columns and rows, not for stock.
            if r.chance(15) {
                list.push(format!("/*bare*/ {p}{}", r.pick(&["k", "r", "t", "id", "g + 1"])));
                if r.chance(60) {
                    list.push(format!("{}({p}{})", r.pick(&["min", "max"]), r.pick(&["k", "g", "r", "t"])));
                }
            }
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

pub fn change(r: &mut Rng) -> String {
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

pub fn by_stock(c: &stock::Connection, sql: &str) -> String {
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

pub fn by_iolite(c: &iolite::engine::Connection, sql: &str) -> String {
    let rows = match c.query(sql, &[]) {
        Ok(r) => r,
        Err(e) => return format!("error: {e}"),
    };
    let mut out = String::new();
    for row in rows {
        for v in row {
            let _ = match &v {
                iolite::engine::Value::Null => write!(out, "NULL|"),
                iolite::engine::Value::Int(i) => write!(out, "{i}|"),
                iolite::engine::Value::Real(r) => write!(out, "{r:?}|"),
                iolite::engine::Value::Text(..) => write!(out, "'{}'|", v.to_string_lossy()),
                iolite::engine::Value::Blob(b, _) => write!(out, "{:?}|", &b[..]),
            };
        }
        out.push('\n');
    }
    out
}

pub struct File(pub std::path::PathBuf);

impl File {
    pub fn new(name: &str) -> File {
        let f = File(std::env::temp_dir().join(format!("iolite-columns-{}-{name}.db", std::process::id())));
        f.remove();
        f
    }

    pub fn name(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    pub fn remove(&self) {
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
pub fn compare(
    q: &str,
    s: &stock::Connection,
    c: &iolite::engine::Connection,
    seed: u64,
    indexes: bool,
) -> bool {
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
    if indexes || q.contains("bare") || q.contains("fact f") && by_order {
        return c.column_runs() > before;
    }
    if q.contains("LIMIT") && want.contains("integer overflow") && !rows.contains("integer overflow") {
        // Stock sums up groups that LIMIT leaves out, where it sorts them and we do not: the overflow is in one of those.
        let all = by_iolite(c, q.split(" LIMIT ").next().unwrap());
        assert!(all.contains("integer overflow"), "seed {seed}: {q}");
    } else if q.contains("LIMIT") {
        assert_eq!(rows.lines().count(), want.lines().count(), "seed {seed}: {q}");
    } else {
        assert_eq!(sorted(&rows), sorted(&want), "rows and stock differ, seed {seed}: {q}");
    }
    c.column_runs() > before
}

pub const INDEXES: &str = "CREATE INDEX fact_g ON fact(g, t DESC); CREATE INDEX fact_k ON fact(k)";

pub fn queries() -> u32 {
    std::env::var("IOLITE_COLUMN_QUERIES").ok().and_then(|v| v.parse().ok()).unwrap_or(150)
}

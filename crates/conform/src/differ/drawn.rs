//! Plain schemas with indexes, mostly filled, half of them analysed, and statements of every form that a planner has
//! something to decide about: what `plans` compares the plans of, and the program `times` the times.
//!
//! What always holds: names are short and alike in all tables, so that differences of one cause look alike. What this does
//! not know: odd values, collating sequences of every kind and changes of rows between queries, which `session` draws.

use super::rng::Rng;
use std::fmt::Write;

struct Table {
    name: String,
    columns: Vec<Column>,
    rowid: bool,
}

struct Column {
    name: &'static str,
    /// Its values repeat after so many rows.
    period: usize,
    text: bool,
}

/// Draws the statements of a round.
pub struct Drawer {
    rng: Rng,
    tables: Vec<Table>,
    /// Numbers of rows that a table may have.
    sizes: &'static [usize],
    /// Columns are compared with those of their type, and patterns are for texts.
    alike: bool,
}

/// A source of a query: its alias, and the table's number.
type Item = (String, usize);

/// A query: its kind, its text, and whether its order is settled; `None` if rows may be left out at will.
pub struct Drawn {
    /// What form of statement it is; `change` where it writes.
    pub kind: &'static str,
    /// The text.
    pub sql: String,
    /// Whether the order of the rows is settled.
    pub ordered: Option<bool>,
}

impl Drawer {
    /// Tables get as many rows as one of `sizes` says.
    pub fn new(seed: u64, sizes: &'static [usize]) -> Drawer {
        Drawer { rng: Rng::new(seed), tables: Vec::new(), sizes, alike: false }
    }

    /// Has columns be compared with those of their type, as programs do.
    pub fn alike(mut self) -> Drawer {
        self.alike = true;
        self
    }

    /// A column that is compared with texts, or with none.
    fn column_for(&mut self, item: &Item, text: bool) -> String {
        let mut found = self.column_of(item);
        for _ in 0..12 {
            if !self.alike || found.1 == text {
                break;
            }
            found = self.column_of(item);
        }
        found.0
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.rng.below(list.len())]
    }

    /// The statements that make and fill the tables.
    pub fn schema(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        let analysed = self.rng.chance(50);
        for n in 1..=self.rng.range(2, 4) {
            let name = format!("t{n}");
            let mut columns: Vec<Column> = ["a", "b", "c", "d", "e"][..self.rng.range(2, 5)]
                .iter()
                .map(|name| Column {
                    name,
                    period: *self.rng.pick(&[2, 7, 40, 40, 500, 100_000]),
                    text: self.rng.chance(25),
                })
                .collect();
            let kind = self.rng.below(10);
            let mut parts = Vec::new();
            for (k, c) in columns.iter_mut().enumerate() {
                let ty = if c.text {
                    *self.rng.pick(&["TEXT", "TEXT", "VARCHAR(40)", "TEXT COLLATE NOCASE"])
                } else {
                    *self.rng.pick(&["INT", "INT", "INTEGER", ""])
                };
                let more = match (kind, k) {
                    (0..=4, 0) => {
                        (c.period, c.text) = (usize::MAX, false);
                        parts.push(format!("{} INTEGER PRIMARY KEY", c.name));
                        continue;
                    }
                    (5, 1) => {
                        c.period = usize::MAX;
                        " UNIQUE"
                    }
                    _ if self.rng.chance(25) => " NOT NULL",
                    _ => "",
                };
                parts.push(format!("{} {ty}{more}", c.name));
            }
            let rowid = kind < 8;
            if !rowid {
                columns[0].period = usize::MAX;
                let key = if kind == 8 { "a" } else { "a, b" };
                parts.push(format!("PRIMARY KEY({key})"));
            }
            let tail = if rowid { "" } else { " WITHOUT ROWID" };
            out.push(format!("CREATE TABLE {name}({}){tail}", parts.join(", ")));
            self.tables.push(Table { name, columns, rowid });
        }
        for t in 0..self.tables.len() {
            let rows = *self.rng.pick(self.sizes);
            let values: Vec<String> = self.tables[t]
                .columns
                .iter()
                .map(|c| match (c.period, c.text) {
                    (usize::MAX, false) => "i".into(),
                    (usize::MAX, true) => "'x' || i".into(),
                    (p, false) => format!("i * 7 % {p}"),
                    (p, true) => format!("'x' || (i * 7 % {p})"),
                })
                .collect();
            let name = &self.tables[t].name;
            if rows > 0 {
                out.push(format!(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
                     INSERT INTO {name} SELECT {} FROM n",
                    values.join(", ")
                ));
            }
            for k in 0..self.rng.below(4) {
                let mut of: Vec<&str> = self.tables[t].columns.iter().map(|c| c.name).collect();
                let n = of.len();
                of.rotate_left(self.rng.below(n));
                if self.rng.chance(40) {
                    of.reverse();
                }
                of.truncate(self.rng.range(1, 3));
                let fields: Vec<String> = of
                    .iter()
                    .map(|c| match self.rng.below(16) {
                        0 => format!("{c} DESC"),
                        1 => format!("{c} COLLATE NOCASE"),
                        2 => format!("abs({c})"),
                        _ => c.to_string(),
                    })
                    .collect();
                let only = if self.rng.chance(8) {
                    format!(" WHERE {} {}", of[0], self.one(&["IS NOT NULL", "> 5"]))
                } else {
                    String::new()
                };
                let name = &self.tables[t].name;
                out.push(format!("CREATE INDEX {name}i{k} ON {name}({}){only}", fields.join(", ")));
            }
        }
        let (t, u) = (self.table(), self.table());
        let view = self.simple(t);
        out.push(format!("CREATE VIEW v1(a, b) AS {view}"));
        let (one, two) = (self.simple(t), self.simple(u));
        out.push(format!("CREATE VIEW v2(a, b) AS {one} UNION ALL {two}"));
        if analysed {
            out.push("ANALYZE".into());
        }
        out
    }

    fn table(&mut self) -> usize {
        self.rng.below(self.tables.len())
    }

    /// Two columns of a table, with or without a condition.
    fn simple(&mut self, t: usize) -> String {
        let item = ("".to_string(), t);
        let (a, b) = (self.column(&item), self.column(&item));
        let filter =
            if self.rng.chance(30) { format!(" WHERE {}", self.condition(&item)) } else { String::new() };
        format!("SELECT {a}, {b} FROM {}{filter}", self.tables[t].name)
    }

    fn column_of(&mut self, (alias, t): &Item) -> (String, bool, usize) {
        let t = &self.tables[*t];
        if t.rowid && self.rng.chance(5) {
            let name = if alias.is_empty() { "rowid".into() } else { format!("{alias}.rowid") };
            return (name, false, 2000);
        }
        let c = self.rng.pick(&t.columns);
        let name = if alias.is_empty() { c.name.into() } else { format!("{alias}.{}", c.name) };
        (name, c.text, c.period.min(2000))
    }

    fn column(&mut self, item: &Item) -> String {
        self.column_of(item).0
    }

    fn value(&mut self, text: bool, period: usize) -> String {
        let n = self.rng.below(period);
        if text { format!("'x{n}'") } else { n.to_string() }
    }

    /// A condition about one source.
    fn condition(&mut self, item: &Item) -> String {
        let (c, text, period) = self.column_of(item);
        let (x, y) = (self.value(text, period), self.value(text, period));
        let mut form = self.rng.below(28);
        while self.alike && (!text && matches!(form, 19 | 20) || text && form == 26) {
            form = self.rng.below(28);
        }
        match form {
            0..=9 => format!("{c} = {x}"),
            10..=12 => format!("{c} {} {x}", self.one(&[">", "<", ">=", "<="])),
            13 => format!("{c} BETWEEN {x} AND {y}"),
            14 | 15 => format!("{c} IN ({x}, {y})"),
            16 => format!("{c} IS NULL"),
            17 => format!("{c} IS NOT NULL"),
            18 => format!("{c} IS {x}"),
            19 => format!("{c} LIKE 'x1%'"),
            20 => format!("{c} GLOB 'x1*'"),
            21 => format!("{c} <> {x}"),
            22 => {
                let d = self.column_for(item, false);
                format!("({c}, {d}) > ({x}, 3)")
            }
            23 => format!("{}({c} = {x})", self.one(&["likely", "unlikely"])),
            24 => format!("likelihood({c} > {x}, {})", self.one(&["0.001", "0.2", "0.9"])),
            25 => format!("+{c} = {x}"),
            26 => format!("abs({c}) = {x}"),
            _ => {
                let d = self.column_for(item, text);
                format!("{c} = {d}")
            }
        }
    }

    /// Conditions about some sources.
    fn conditions(&mut self, items: &[Item], most: usize) -> String {
        let n = self.rng.below(most + 1);
        if n == 0 {
            return String::new();
        }
        let list: Vec<String> = (0..n)
            .map(|_| {
                let item = self.rng.pick(items).clone();
                if self.rng.chance(14) {
                    let arms: Vec<String> = (0..self.rng.range(2, 3))
                        .map(|_| {
                            let one = self.condition(&item);
                            if self.rng.chance(25) {
                                format!("({one} AND {})", self.condition(&item))
                            } else {
                                one
                            }
                        })
                        .collect();
                    return format!("({})", arms.join(" OR "));
                }
                self.condition(&item)
            })
            .collect();
        format!(" WHERE {}", list.join(" AND "))
    }

    /// An ORDER BY over some sources, or none.
    fn order(&mut self, items: &[Item]) -> String {
        if self.rng.chance(50) {
            return String::new();
        }
        let terms: Vec<String> = (0..self.rng.range(1, 2))
            .map(|_| {
                let item = self.rng.pick(items).clone();
                let tail = self.one(&["", "", "", "", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST"]);
                format!("{}{tail}", self.column(&item))
            })
            .collect();
        format!(" ORDER BY {}", terms.join(", "))
    }

    fn limit(&mut self) -> &'static str {
        self.one(&["", "", "", " LIMIT 3", " LIMIT 5 OFFSET 2"])
    }

    fn columns(&mut self, items: &[Item]) -> String {
        if self.rng.chance(25) {
            return "*".into();
        }
        let n = self.rng.range(1, 3);
        let list: Vec<String> = (0..n)
            .map(|_| {
                let item = self.rng.pick(items).clone();
                self.column(&item)
            })
            .collect();
        list.join(", ")
    }

    /// A join: its FROM clause and its sources.
    fn join(&mut self, outer: bool) -> (String, Vec<Item>) {
        let n = self.rng.range(2, 3);
        let mut items: Vec<Item> = Vec::new();
        let mut from = String::new();
        for k in 0..n {
            let t = self.table();
            let item = (format!("s{k}"), t);
            let name = format!("{} AS s{k}", self.tables[t].name);
            if k == 0 {
                from = name;
            } else {
                let before = self.rng.pick(&items).clone();
                let (left, text, _) = self.column_of(&before);
                let on = format!("{left} = {}", self.column_for(&item, text));
                let on = if self.rng.chance(20) { format!("{on} AND {}", self.condition(&item)) } else { on };
                let word = match outer {
                    true => *self.rng.pick(&["LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "JOIN", "RIGHT JOIN"]),
                    false => *self.rng.pick(&["JOIN", "JOIN", "JOIN", "JOIN", "CROSS JOIN"]),
                };
                let _ = write!(from, " {word} {name} ON {on}");
            }
            items.push(item);
        }
        (from, items)
    }

    /// A query that stands in FROM, of columns x and y.
    fn nested(&mut self) -> String {
        let t = self.table();
        let item = ("".to_string(), t);
        let name = self.tables[t].name.clone();
        let (a, b) = (self.column(&item), self.column(&item));
        let filter = self.conditions(std::slice::from_ref(&item), 1);
        match self.rng.below(10) {
            0 | 1 => format!("SELECT {a} AS x, {b} AS y FROM {name}{filter}"),
            2 | 3 => format!("SELECT {a} AS x, count(*) AS y FROM {name}{filter} GROUP BY 1"),
            4 => format!("SELECT DISTINCT {a} AS x, {b} AS y FROM {name}{filter}"),
            5 => format!("SELECT {a} AS x, {b} AS y FROM {name}{filter} ORDER BY 1, 2 LIMIT 10"),
            6 | 7 => {
                let u = self.table();
                let right = self.simple(u);
                let op = self.one(&["UNION ALL", "UNION ALL", "UNION ALL", "UNION", "EXCEPT"]);
                format!("SELECT {a} AS x, {b} AS y FROM {name}{filter} {op} {right}")
            }
            8 => format!("SELECT {a} AS x, sum({b}) OVER (PARTITION BY {a}) AS y FROM {name}{filter}"),
            _ => format!("SELECT {a} AS x, {b} AS y FROM {name}{filter} ORDER BY {b}"),
        }
    }

    /// A statement on the tables of [`Self::schema`].
    pub fn query(&mut self) -> Drawn {
        let t = self.table();
        let item = ("".to_string(), t);
        let items = std::slice::from_ref(&item);
        let name = self.tables[t].name.clone();
        let all = Some(false);
        let (kind, sql, ordered) = match self.rng.below(36) {
            0..=5 => {
                let (columns, filter) = (self.columns(items), self.conditions(items, 3));
                let (order, limit) = (self.order(items), self.limit());
                let sql = format!("SELECT {columns} FROM {name}{filter}{order}{limit}");
                ("one table", sql, if limit.is_empty() { all } else { None })
            }
            6..=10 => {
                let (from, items) = self.join(false);
                let (columns, filter) = (self.columns(&items), self.conditions(&items, 2));
                let (order, limit) = (self.order(&items), self.limit());
                let sql = format!("SELECT {columns} FROM {from}{filter}{order}{limit}");
                ("join", sql, if limit.is_empty() { all } else { None })
            }
            11..=13 => {
                let (from, items) = self.join(true);
                let (columns, filter, order) =
                    (self.columns(&items), self.conditions(&items, 1), self.order(&items));
                ("outer join", format!("SELECT {columns} FROM {from}{filter}{order}"), all)
            }
            14..=16 => {
                let (from, items) = if self.rng.chance(60) { (name, vec![item]) } else { self.join(false) };
                let (first, second) = (self.rng.pick(&items).clone(), self.rng.pick(&items).clone());
                let (k, l) = (self.column(&first), self.column(&second));
                let keys = if self.rng.chance(40) { format!("{k}, {l}") } else { k };
                let filter = self.conditions(&items, 2);
                let order = match self.rng.below(4) {
                    0 => format!(" ORDER BY {keys}"),
                    1 => " ORDER BY 1 DESC".to_string(),
                    2 => " ORDER BY count(*)".to_string(),
                    _ => String::new(),
                };
                let f = self.one(&["count(*)", "count(*)", "max", "sum", "count(DISTINCT"]);
                let call = match f {
                    "count(*)" => f.to_string(),
                    "count(DISTINCT" => format!("{f} {l})"),
                    _ => format!("{f}({l})"),
                };
                ("group", format!("SELECT {keys}, {call} FROM {from}{filter} GROUP BY {keys}{order}"), all)
            }
            17 => {
                let (columns, filter, order) =
                    (self.columns(items), self.conditions(items, 2), self.order(items));
                ("distinct", format!("SELECT DISTINCT {columns} FROM {name}{filter}{order}"), all)
            }
            18 | 19 => {
                let c = self.column(&item);
                let f = match self.rng.below(5) {
                    0 => "count(*)".to_string(),
                    1 => format!("min({c})"),
                    2 => format!("max({c})"),
                    3 => format!("count({c})"),
                    _ => format!("min({c}), max({c})"),
                };
                ("whole", format!("SELECT {f} FROM {name}{}", self.conditions(items, 2)), all)
            }
            20 | 21 => {
                let u = self.table();
                let (one, two) = (self.simple(t), self.simple(u));
                let op = self.one(&["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
                let order = self.one(&["", " ORDER BY 1, 2", " ORDER BY 2, 1"]);
                ("compound", format!("{one} {op} {two}{order}"), Some(!order.is_empty()))
            }
            22..=26 => {
                let inner = self.nested();
                let filter = match self.rng.below(4) {
                    0 => "q.x = 3".to_string(),
                    1 => "q.x > 2 AND q.y < 40".to_string(),
                    2 => "q.y IS NOT NULL".to_string(),
                    _ => "1".to_string(),
                };
                let order = self.one(&["", "", " ORDER BY q.x, q.y", " ORDER BY 1"]);
                let limit = if inner.contains("LIMIT") { None } else { all };
                if self.rng.chance(50) {
                    let what = self.one(&["*", "x", "count(*)", "max(y)"]);
                    let order = if what == "*" || what == "x" { order } else { "" };
                    let cut = if what == "*" || what == "x" { self.limit() } else { "" };
                    let sql = format!("SELECT {what} FROM ({inner}) AS q WHERE {filter}{order}{cut}");
                    ("in FROM", sql, if cut.is_empty() { limit } else { None })
                } else {
                    let s = ("s".to_string(), t);
                    let word = self.one(&["JOIN", "JOIN", "LEFT JOIN"]);
                    let on = format!("q.{} = {}", self.one(&["x", "y"]), self.column(&s));
                    let parts = if self.rng.chance(60) || word == "LEFT JOIN" && self.rng.chance(50) {
                        format!("{name} AS s {word} ({inner}) AS q")
                    } else {
                        format!("({inner}) AS q {word} {name} AS s")
                    };
                    ("in FROM joined", format!("SELECT * FROM {parts} ON {on} WHERE {filter}{order}"), limit)
                }
            }
            27..=29 => {
                let u = self.table();
                let (other, inner) = (self.tables[u].name.clone(), ("u".to_string(), u));
                let (c, text, _) = self.column_of(&("s".into(), t));
                let d = self.column_for(&inner, text);
                let more = self.condition(&inner);
                let more = if self.rng.chance(50) { format!(" AND {more}") } else { String::new() };
                let condition = match self.rng.below(6) {
                    0 | 1 => format!("{c} IN (SELECT {d} FROM {other} AS u WHERE 1{more})"),
                    2 => format!("{c} NOT IN (SELECT {d} FROM {other} AS u WHERE 1{more})"),
                    3 => format!("EXISTS (SELECT 1 FROM {other} AS u WHERE {d} = {c}{more})"),
                    4 => format!("NOT EXISTS (SELECT 1 FROM {other} AS u WHERE {d} = {c}{more})"),
                    _ => format!("{c} = (SELECT max({d}) FROM {other} AS u WHERE 1{more})"),
                };
                ("nested", format!("SELECT * FROM {name} AS s WHERE {condition}"), all)
            }
            30 => {
                let inner = self.nested();
                let hint = self.one(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
                let limit = if inner.contains("LIMIT") { None } else { all };
                let from = self.one(&["w", "w", "w AS p JOIN w AS q ON p.x = q.y"]);
                ("with", format!("WITH w(x, y) AS {hint}({inner}) SELECT * FROM {from}"), limit)
            }
            31 | 32 => {
                let view = self.one(&["v1", "v2"]);
                let (c, s) = (self.one(&["a", "b"]), ("s".to_string(), t));
                let order = self.one(&["", " ORDER BY v.a", " ORDER BY v.b DESC, v.a"]);
                let sql = match self.rng.below(3) {
                    0 => format!("SELECT * FROM {view} AS v WHERE v.{c} = 5{order}"),
                    1 => format!("SELECT count(*) FROM {view} AS v WHERE v.{c} < 50"),
                    _ => {
                        format!(
                            "SELECT * FROM {name} AS s JOIN {view} AS v ON {} = v.{c}{order}",
                            self.column(&s)
                        )
                    }
                };
                ("view", sql, all)
            }
            33 => {
                let (a, b, c) = (self.column(&item), self.column(&item), self.column(&item));
                let filter = self.conditions(items, 1);
                let over = match self.rng.below(3) {
                    0 => format!("PARTITION BY {a}"),
                    1 => format!("ORDER BY {b}"),
                    _ => format!("PARTITION BY {a} ORDER BY {b}"),
                };
                ("window", format!("SELECT {c}, sum({b}) OVER ({over}) FROM {name}{filter}"), None)
            }
            _ => {
                let filter = self.conditions(items, 2);
                let c = self.rng.pick(&self.tables[t].columns).name;
                let sql = match self.rng.below(2) {
                    0 => format!("DELETE FROM {name}{filter}"),
                    _ => format!("UPDATE {name} SET {c} = {c} + 1{filter}"),
                };
                ("change", sql, None)
            }
        };
        Drawn { kind, sql, ordered }
    }
}

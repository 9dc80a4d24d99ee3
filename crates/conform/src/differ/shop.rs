//! A shop's tables, filled as such tables are: skewed keys, few states, long texts, values of mixed classes, NULLs; and questions that people ask of
//! them, drawn. For the program `times`: data and queries that nothing was tuned for.
//!
//! What always holds: the tables are the same in every run, questions hang on the seed alone and name what there is.

use super::rng::Rng;

/// Makes and fills the tables: some 300,000 rows.
pub const TABLES: &str = "
CREATE TABLE cust(id INTEGER PRIMARY KEY, name TEXT, mail TEXT UNIQUE, city TEXT, country TEXT, joined TEXT, score REAL, tags TEXT, ref INT);
CREATE TABLE ord(id INTEGER PRIMARY KEY, cust INT, at TEXT, ts INT, status TEXT, total REAL, disc NUMERIC, note TEXT, flags INT);
CREATE TABLE item(id INTEGER PRIMARY KEY, ord INT, sku TEXT, qty INT, price REAL, w BLOB, memo TEXT);
CREATE TABLE sku(sku TEXT PRIMARY KEY, title TEXT, cat TEXT, price REAL, stock INT, attrs TEXT) WITHOUT ROWID;
CREATE TABLE ev(at INT, kind TEXT, cust INT, val, js TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
  INSERT INTO cust SELECT i, 'ba' || (i * 7919 % 2003) || ' to' || (i * 4243 % 1999), 'u' || i || '@' || (i * 31 % 997) || '.org',
    'City' || (i * 7919 % 120), substr('DEDEDEDEFRFRUSJP', 1 + 2 * (i * 4273 % 8), 2), printf('20%02d-%02d-%02d', 10 + i * 13 % 16, 1 + i * 7 % 12, 1 + i % 28),
    iif(i % 10 = 3, NULL, i * 6421 % 1000 / 10.0), iif(i % 4 = 0, '', 'ca' || (i % 97) || ' di' || (i % 13)), iif(i % 3 = 0, NULL, i * 577 % 9000)
  FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  INSERT INTO ord SELECT i, iif(i % 2, 1 + i * 7919 % 9000, 1 + i * i % 97), printf('20%02d-%02d-%02d %02d:%02d:00', 18 + i * 11 % 8, 1 + i * 5 % 12, 1 + i % 28, i % 24, i * 3 % 60),
    1500000000 + i * 104729 % 250000000, substr('new paiddonesentdonedonedoneback', 1 + 4 * (i * 6121 % 8), 4), i * 7907 % 30000 / 100.0,
    iif(i % 5 = 0, NULL, i % 4 * 2.5), iif(i % 3, NULL, 'mo' || (i * 17 % 20011) || ' ae' || (i % 501)), i * 37 % 256 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
  INSERT INTO item SELECT i, 1 + i * 7919 % 60000, printf('SK-%05d', (i * 6421 % 3000) * (i * 4243 % 3000) / 3000), 1 + i % 12, i * 7907 % 10000 / 100.0,
    iif(i % 5, NULL, zeroblob(i % 17)), iif(i % 6 = 0, '', 'so' || (i * 13 % 9973) || ' bu' || (i % 211)) FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
  INSERT INTO sku SELECT printf('SK-%05d', i), 'ti' || (i * 7919 % 3001) || ' do' || (i % 71), substr('toysbookfoodtoolgamehome', 1 + 4 * (i * 13 % 6), 4),
    i * 7907 % 10000 / 100.0, i * 577 % 500, '{\"color\":\"' || substr('redbluegrey', 1 + 4 * (i % 3), 3) || '\",\"size\":' || (i % 9) || ',\"dim\":[' || (i % 99) || ']}' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80000)
  INSERT INTO ev SELECT 1600000000 + i * 37 + i * 7919 % 200, substr('view view click view login error ', 1 + 6 * (i * 4243 % 5), 5), 1 + i * 6421 % 9000,
    CASE i % 5 WHEN 0 THEN i % 1000 WHEN 1 THEN i * 7907 % 50000 / 1000.0 WHEN 2 THEN 've' || (i % 2003) WHEN 3 THEN NULL ELSE i % 6 END,
    '{\"a\":' || (i % 100) || ',\"b\":\"ce' || (i * 17 % 2003) || '\",\"c\":[1,2,' || (i % 10) || ']}' FROM n;
CREATE INDEX ord_cust ON ord(cust);
CREATE INDEX ord_status ON ord(status, ts);
CREATE INDEX item_ord ON item(ord);
CREATE INDEX item_sku ON item(sku, qty);
CREATE INDEX cust_city ON cust(country, city);
CREATE INDEX ev_kind ON ev(kind, at);
";

/// A table, and its columns of integers, of reals or mixed, and of texts.
struct Table {
    name: &'static str,
    ints: &'static [&'static str],
    numbers: &'static [&'static str],
    texts: &'static [&'static str],
}

const ALL: [Table; 5] = [
    Table {
        name: "cust",
        ints: &["id", "ref"],
        numbers: &["score"],
        texts: &["name", "mail", "city", "country", "joined", "tags"],
    },
    Table {
        name: "ord",
        ints: &["id", "cust", "ts", "flags"],
        numbers: &["total", "disc"],
        texts: &["at", "status", "note"],
    },
    Table { name: "item", ints: &["id", "ord", "qty"], numbers: &["price"], texts: &["sku", "memo"] },
    Table { name: "sku", ints: &["stock"], numbers: &["price"], texts: &["sku", "title", "cat", "attrs"] },
    Table { name: "ev", ints: &["at", "cust"], numbers: &["val"], texts: &["kind", "js"] },
];

/// Joins: two tables by their numbers, and what joins them.
const JOINS: [(usize, usize, &str); 4] = [
    (1, 0, "ord.cust = cust.id"),
    (2, 1, "item.ord = ord.id"),
    (2, 3, "item.sku = sku.sku"),
    (4, 0, "ev.cust = cust.id"),
];

/// Draws questions.
pub struct Asker(Rng);

impl Asker {
    /// For a seed.
    pub fn new(seed: u64) -> Asker {
        Asker(Rng::new(seed))
    }

    /// A query.
    pub fn query(&mut self) -> String {
        let (tables, from) = self.from();
        let mut conditions = Vec::new();
        for t in &tables {
            for _ in 0..self.0.below(3) {
                conditions.push(self.condition(*t));
            }
        }
        if self.0.chance(10) && tables[0] == 1 {
            let inner = self.condition(2).replace("item.", "q.");
            let not = self.0.pick(&["", "NOT "]);
            conditions.push(format!("{not}EXISTS (SELECT 1 FROM item q WHERE q.ord = ord.id AND {inner})"));
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let t = *self.0.pick(&tables);
        match self.0.below(100) {
            0..20 => format!("SELECT {} FROM {from}{filter}", self.aggregates(t)),
            20..52 => self.groups(&tables, t, &format!("{from}{filter}")),
            52..80 => self.rows(&tables, &format!("{from}{filter}")),
            80..88 => format!("SELECT DISTINCT {} FROM {from}{filter}{}", self.key(t), self.limit()),
            88..94 => {
                let (by, what, column) = (self.key(t), self.int(t), self.column(t));
                let limit = self.0.pick(&["", " LIMIT 10", " LIMIT 1000"]);
                format!(
                    "SELECT {column}, sum({what}) OVER (PARTITION BY {by} ORDER BY {what}, {column}) FROM {from}{filter}{limit}"
                )
            }
            _ => format!(
                "WITH z AS (SELECT {} AS k, count(*) AS v FROM {from}{filter} GROUP BY 1) SELECT count(*), min(k), max(v) FROM z WHERE v > {}",
                self.key(t),
                self.0.below(20)
            ),
        }
    }

    fn from(&mut self) -> (Vec<usize>, String) {
        if self.0.chance(55) {
            let t = self.0.below(ALL.len());
            return (vec![t], ALL[t].name.to_string());
        }
        let (a, b, on) = *self.0.pick(&JOINS);
        let join = self.0.pick(&["JOIN", "JOIN", "LEFT JOIN"]);
        let mut tables = vec![a, b];
        let mut from = format!("{} {join} {} ON {on}", ALL[a].name, ALL[b].name);
        if self.0.chance(40)
            && let Some((c, d, on)) = JOINS.iter().find(|(c, d, _)| tables.contains(c) != tables.contains(d))
        {
            let new = if tables.contains(c) { *d } else { *c };
            from += &format!(" JOIN {} ON {on}", ALL[new].name);
            tables.push(new);
        }
        (tables, from)
    }

    fn named(&mut self, t: usize, list: &[&str]) -> String {
        format!("{}.{}", ALL[t].name, self.0.pick(list))
    }

    fn int(&mut self, t: usize) -> String {
        self.named(t, ALL[t].ints)
    }

    fn text(&mut self, t: usize) -> String {
        self.named(t, ALL[t].texts)
    }

    fn column(&mut self, t: usize) -> String {
        match self.0.below(3) {
            0 => self.int(t),
            1 => self.named(t, ALL[t].numbers),
            _ => self.text(t),
        }
    }

    /// A value that a column may have, and often has not.
    fn value(&mut self, column: &str) -> String {
        let field = column.rsplit('.').next().unwrap_or(column);
        let r = &mut self.0;
        match field {
            "id" | "ord" => r.range(1, 60_000).to_string(),
            "cust" | "ref" => r.range(1, 9000).to_string(),
            "ts" => (1_500_000_000 + r.below(250_000_000)).to_string(),
            "at" if column == "ev.at" => (1_600_000_000 + r.below(3_000_000)).to_string(),
            "at" | "joined" => format!("'20{}-{:02}'", r.range(10, 26), r.range(1, 12)),
            "flags" | "stock" => r.below(500).to_string(),
            "qty" => r.range(1, 12).to_string(),
            "score" | "total" | "disc" | "price" | "val" => format!("{}.{}", r.below(100), r.below(10)),
            "status" => format!("'{}'", r.pick(&["new ", "paid", "done", "back", "none"])),
            "kind" => format!("'{}'", r.pick(&["view", "click", "error", "none"])),
            "country" => format!("'{}'", r.pick(&["DE", "FR", "JP", "XX"])),
            "city" => format!("'City{}'", r.below(130)),
            "sku" => format!("'SK-{:05}'", r.below(3100)),
            "cat" => format!("'{}'", r.pick(&["toys", "food", "none"])),
            _ => format!("'{}'", r.pick(&["a", "ba", "ca9", "di", "m", "so12", "t", "z"])),
        }
    }

    fn condition(&mut self, t: usize) -> String {
        let c = self.column(t);
        match self.0.below(100) {
            0..32 => format!(
                "{c} {} {}",
                self.0.pick(&["=", "<", ">", "<=", ">=", "<>"]).to_owned(),
                self.value(&c)
            ),
            32..44 => format!("{c} BETWEEN {} AND {}", self.value(&c), self.value(&c)),
            44..56 => {
                let list: Vec<String> = (0..self.0.range(1, 7)).map(|_| self.value(&c)).collect();
                format!("{c} IN ({})", list.join(", "))
            }
            56..70 => {
                let (c, r) = (self.text(t), &mut self.0);
                let (not, start) = (r.pick(&["", "", "NOT "]), r.pick(&["%", "%", ""]));
                format!(
                    "{c} {not}LIKE '{start}{}{}'",
                    r.pick(&["ba", "di1", "e", "so", "u9"]),
                    r.pick(&["%", "%", "_%", ""])
                )
            }
            70..76 => format!("{c} IS {}NULL", self.0.pick(&["", "NOT "])),
            76..83 => format!("{} % {} = {}", self.int(t), self.0.range(2, 9), self.0.below(3)),
            83..88 => format!("length({}) > {}", self.text(t), self.0.below(20)),
            88..94 => format!("({} OR {})", self.condition(t), self.condition(t)),
            94..97 => {
                format!("substr({}, 1, 2) = '{}'", self.text(t), self.0.pick(&["ba", "so", "SK", "20"]))
            }
            _ => format!("NOT ({})", self.condition(t)),
        }
    }

    fn key(&mut self, t: usize) -> String {
        match self.0.below(10) {
            0..7 => self.column(t),
            7 => format!("{} % {}", self.int(t), self.0.range(2, 50)),
            8 => format!("substr({}, 1, {})", self.text(t), self.0.range(1, 7)),
            _ => format!("CASE WHEN {} THEN 'x' ELSE 'y' END", self.condition(t)),
        }
    }

    fn aggregate(&mut self, t: usize) -> String {
        match self.0.below(10) {
            0 | 1 => "count(*)".into(),
            2 => format!("count(DISTINCT {})", self.column(t)),
            3 => format!("sum(CASE WHEN {} THEN 1 ELSE 0 END)", self.condition(t)),
            4 => format!("sum({} * {})", self.int(t), self.named(t, ALL[t].numbers)),
            5 => format!("count(*) FILTER (WHERE {})", self.condition(t)),
            6 => format!("{}({})", self.0.pick(&["min", "max"]).to_owned(), self.column(t)),
            _ => format!(
                "{}({})",
                self.0.pick(&["sum", "avg", "min", "max"]).to_owned(),
                self.named(t, ALL[t].numbers)
            ),
        }
    }

    fn aggregates(&mut self, t: usize) -> String {
        let n = self.0.range(1, 3);
        self.list(n, &[t], Asker::aggregate).join(", ")
    }

    fn limit(&mut self) -> &'static str {
        let all = ["", "", " LIMIT 1", " LIMIT 10", " LIMIT 50", " LIMIT 500", " LIMIT 10 OFFSET 1000"];
        all[self.0.below(all.len())]
    }

    /// So many expressions, each over one of the tables.
    fn list(&mut self, n: usize, tables: &[usize], one: fn(&mut Asker, usize) -> String) -> Vec<String> {
        let mut list = Vec::with_capacity(n);
        for _ in 0..n {
            let t = *self.0.pick(tables);
            list.push(one(self, t));
        }
        list
    }

    fn groups(&mut self, tables: &[usize], t: usize, from: &str) -> String {
        let n = self.0.range(1, 2);
        let keys = self.list(n, tables, Asker::key).join(", ");
        let by = if n == 1 { "1" } else { "1, 2" };
        let order = match self.0.below(3) {
            0 => format!(" ORDER BY {} DESC, 1", n + 1),
            1 => " ORDER BY 1".to_string(),
            _ => String::new(),
        };
        format!("SELECT {keys}, {} FROM {from} GROUP BY {by}{order}{}", self.aggregates(t), self.limit())
    }

    fn rows(&mut self, tables: &[usize], from: &str) -> String {
        let n = self.0.range(1, 5);
        let columns = self.list(n, tables, Asker::column);
        let order = match self.0.below(5) {
            0 | 1 => String::new(),
            2 | 3 => format!(" ORDER BY {} {}", columns[0], self.0.pick(&["", "DESC"])),
            _ => format!(" ORDER BY {}, {}", columns[n - 1], columns[0]),
        };
        format!("SELECT {} FROM {from}{order}{}", columns.join(", "), self.limit())
    }
}

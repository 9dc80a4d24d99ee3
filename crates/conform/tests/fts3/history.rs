//! Drawn histories of an FTS3 or FTS4 table: options, changes, commands, transactions, queries.
//!
//! Queries are those of which the documentation says what they answer. Where stock's answer depends on how far it has come in
//! other parts of a query, nothing is asked: places of phrases that are `NEAR` each other or stand below `NOT`, `AND` within `OR`.

use crate::drawn::Draw;

const WORDS: &[&str] = &[
    "one", "two", "three", "abc", "abcd", "x", "y", "hello", "world", "running", "café", "Ärger", "beta",
    "a", "b", "c", "日本",
];

/// What a table is and has.
pub(super) struct History {
    d: Draw,
    columns: Vec<&'static str>,
    version: usize,
    language: bool,
    next: i64,
    open: bool,
    marks: usize,
    pub statements: Vec<String>,
}

fn quoted(s: &str) -> String {
    format!("'{}'", s.replace('\'', "''"))
}

impl History {
    /// A table with drawn options.
    pub fn new(seed: u64) -> History {
        let mut d = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        d.below(2);
        let columns = ["a", "b", "c"][..1 + d.below(3)].to_vec();
        let version = [3, 4, 4, 4][d.below(4)];
        let mut args: Vec<String> = columns.iter().map(|c| c.to_string()).collect();
        let mut language = false;
        if version == 4 {
            if d.one_in(3) {
                args.push(format!("prefix='{}'", d.of(&["1", "2", "1,3"])));
            }
            if d.one_in(5) {
                args.push("matchinfo=fts3".into());
            }
            if d.one_in(4) {
                args.push("order=desc".into());
            }
            if d.one_in(5) {
                args.push(format!("notindexed={}", columns[0]));
            }
            if d.one_in(5) {
                args.push("languageid=lid".into());
                language = true;
            }
        }
        if d.one_in(2) {
            let tokenizers = ["porter", "unicode61", "simple", "unicode61 \"remove_diacritics=0\""];
            args.push(format!("tokenize={}", d.of(&tokenizers)));
        }
        let statements = vec![
            format!("PRAGMA page_size={}", d.of(&["512", "1024", "4096"])),
            format!("CREATE VIRTUAL TABLE t USING fts{version}({})", args.join(", ")),
        ];
        History { d, columns, version, language, next: 1, open: false, marks: 0, statements }
    }

    fn word(&mut self) -> String {
        match self.d.below(2) {
            0 => self.d.of(WORDS).to_string(),
            _ => format!("w{}", self.d.below(200)),
        }
    }

    fn value(&mut self) -> String {
        if self.d.one_in(20) {
            return self.d.of(&["NULL", "5", "3.25", "x'616263'"]).into();
        }
        let n = [0, 1, 2, 3, 5, 8, 20, 60, 200][self.d.below(9)];
        let between = self.d.of(&[" ", " ", ", ", ". "]);
        let words: Vec<String> = (0..n).map(|_| self.word()).collect();
        quoted(&words.join(between))
    }

    fn term(&mut self) -> String {
        let (a, b) = (self.word(), self.word());
        let short = |w: &str| w.chars().take(2).collect::<String>();
        match self.d.below(8) {
            0..4 => a,
            4 => format!("{}*", short(&a)),
            5 => format!("\"{a} {b}\""),
            6 => format!("{}:{a}", self.d.of(&self.columns.clone())),
            _ => format!("\"{a} {}*\"", short(&b)),
        }
    }

    fn query(&mut self, depth: usize) -> String {
        if depth > 2 || self.d.one_in(2) {
            return self.term();
        }
        let (a, b) = (self.query(depth + 1), self.query(depth + 1));
        let operator = self.d.of(&["AND", "OR", "NOT", ""]);
        format!("({a}) {operator} ({b})")
    }

    fn insert(&mut self) {
        let id = match self.d.below(6) {
            0 => 1 + self.d.below(self.next as usize + 200) as i64,
            _ => self.next,
        };
        let or = self.d.of(&["", "", " OR REPLACE", " OR IGNORE"]);
        let mut columns = format!("docid, {}", self.columns.join(", "));
        let mut values = id.to_string();
        for _ in 0..self.columns.len() {
            values += &format!(", {}", self.value());
        }
        if self.language {
            columns += ", lid";
            values += &format!(", {}", self.d.below(3));
        }
        self.statements.push(format!("INSERT{or} INTO t({columns}) VALUES ({values})"));
        self.next = self.next.max(id + 1);
    }

    fn command(&mut self, command: &str) {
        self.statements.push(format!("INSERT INTO t(t) VALUES ('{command}')"));
    }

    /// The next statements. `queries`: some of them ask.
    pub fn step(&mut self, queries: bool) {
        let id = 1 + self.d.below(self.next as usize + 1);
        match self.d.below(100) {
            0..50 => self.insert(),
            50..58 => self.statements.push(format!("DELETE FROM t WHERE docid = {id}")),
            58..66 => {
                let (column, value) = (self.d.of(&self.columns.clone()), self.value());
                self.statements.push(format!("UPDATE t SET {column} = {value} WHERE docid = {id}"));
            }
            66 => {
                let to = 1 + self.d.below(self.next as usize + 9);
                self.statements.push(format!("UPDATE t SET docid = {to} WHERE docid = {id}"));
            }
            67..70 => {
                self.statements.push(if self.open { "COMMIT" } else { "BEGIN" }.into());
                self.open = !self.open;
                self.marks = 0;
            }
            70 => self.command("optimize"),
            71 | 72 => {
                let (work, least) = (self.d.of(&["1", "2", "5", "20", "100"]), self.d.of(&["2", "3", "8"]));
                self.command(&format!("merge={work},{least}"));
            }
            73 if self.d.one_in(3) => {
                let n = self.d.of(&["0", "1", "2", "4", "8"]);
                self.command(&format!("automerge={n}"));
            }
            74 => self.command("integrity-check"),
            75 if self.d.one_in(5) => self.command("rebuild"),
            76 if self.open => {
                self.statements.push("SAVEPOINT s".into());
                self.marks += 1;
            }
            77 if self.marks > 0 => {
                self.statements.push("ROLLBACK TO s".into());
            }
            78.. if queries => self.ask(),
            _ => {}
        }
    }

    fn ask(&mut self) {
        let order = self.d.of(&["", " ORDER BY docid", " ORDER BY docid DESC"]);
        let language = match self.language && self.d.one_in(2) {
            true => format!(" AND lid = {}", self.d.below(3)),
            false => String::new(),
        };
        let more = if self.version == 4 { "na" } else { "" };
        let (query, answer) = match self.d.below(4) {
            0 => (self.query(0), "docid".to_string()),
            1 => (format!("{} NEAR/{} {}", self.word(), self.d.below(8), self.word()), "docid".into()),
            2 => {
                let query = [self.term(), self.term()].join(" ");
                let n = self.d.below(50) as i64 - 20;
                (query, format!("snippet(t, '[', ']', '..', -1, {n}), offsets(t)"))
            }
            _ => {
                let query = [self.term(), self.term()].join(self.d.of(&[" ", " OR "]));
                (query, format!("hex(matchinfo(t, 'pcsxyb{more}'))"))
            }
        };
        let sql = format!("SELECT docid, {answer} FROM t WHERE t MATCH {}{language}{order}", quoted(&query));
        self.statements.push(sql);
    }

    /// Ends what is open.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            self.statements.push("COMMIT".into());
        }
        self.marks = 0;
    }
}

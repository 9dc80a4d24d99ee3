//! Drawn histories of an FTS5 table: options, changes, commands, transactions, queries.

use crate::drawn::Draw;

const WORDS: &[&str] = &[
    "one", "two", "three", "abc", "abcd", "abd", "x", "y", "z", "hello", "world", "running", "runs", "ran",
    "café", "naïve", "Ärger", "12", "3.5", "foo_bar", "zeta", "alpha", "beta", "be", "a", "b", "c", "日本",
];

/// What a table is and has.
pub(super) struct History {
    d: Draw,
    pub columns: Vec<&'static str>,
    content: &'static str,
    /// Entries are taken out in place, at least now and then.
    secure: bool,
    /// `detail=none`.
    bare: bool,
    rows: Vec<i64>,
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
        let mut d = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        d.below(2);
        let columns = ["a", "b", "c"][..1 + d.below(3)].to_vec();
        let mut args: Vec<String> = columns.iter().map(|c| c.to_string()).collect();
        if columns.len() > 1 && d.one_in(5) {
            args[0] += " UNINDEXED";
        }
        let detail = d.of(&["full", "full", "full", "column", "none"]);
        args.push(format!("detail={detail}"));
        let content = d.of(&["own", "own", "own", "none", "deletable", "other"]);
        match content {
            "none" => args.push("content=''".into()),
            "deletable" => args.push("content='', contentless_delete=1".into()),
            "other" => args.push("content='src', content_rowid='id'".into()),
            _ => {}
        }
        if d.one_in(3) {
            args.push(format!("prefix='{}'", d.of(&["1", "2", "2 3", "1 4"])));
        }
        if d.one_in(2) {
            let t = [
                "porter",
                "ascii",
                "unicode61 remove_diacritics 0",
                "unicode61 remove_diacritics 2",
                "trigram",
            ];
            args.push(format!("tokenize='{}'", d.of(&t)));
        }
        if !matches!(content, "deletable" | "none") && d.one_in(6) {
            args.push("columnsize=0".into());
        }
        let mut statements = Vec::new();
        if content == "other" {
            statements.push(format!("CREATE TABLE src(id INTEGER PRIMARY KEY, {})", columns.join(", ")));
        }
        statements.push(format!("CREATE VIRTUAL TABLE t USING fts5({})", args.join(", ")));
        let mut h = History {
            d,
            columns,
            content,
            // Not drawn: seeds without it keep their histories. Stock mistakes what has 64 bytes of places for a deletion, or a
            // deletion for none.
            secure: seed.is_multiple_of(4)
                && !args.iter().any(|a| a.contains("trigram") || a.contains("='1")),
            bare: detail == "none",
            rows: Vec::new(),
            next: 1,
            open: false,
            marks: 0,
            statements,
        };
        if h.secure {
            h.command("secure-delete", "1");
        }
        for (name, values) in [
            ("pgsz", &["32", "50", "100", "500"][..]),
            ("hashsize", &["100", "2000", "8000"]),
            ("automerge", &["0", "2", "3", "8"]),
            ("crisismerge", &["2", "3", "5"]),
            ("usermerge", &["2", "3"]),
            ("deletemerge", &["0", "5", "20"]),
        ] {
            if h.d.one_in(2) {
                let value = h.d.of(values);
                h.command(name, value);
            }
        }
        h
    }

    fn command(&mut self, name: &str, value: &str) {
        self.statements.push(format!("INSERT INTO t(t, rank) VALUES ('{name}', {value})"));
    }

    fn text(&mut self) -> String {
        let n = [0, 1, 2, 3, 5, 8, 20, 60][self.d.below(8)];
        let between = self.d.of(&[" ", " ", ", ", ". "]);
        let word = |h: &mut History| match h.d.below(2) {
            0 => h.d.of(WORDS).to_string(),
            _ => format!("w{}", h.d.below(60)),
        };
        (0..n).map(|_| word(self)).collect::<Vec<_>>().join(between)
    }

    fn value(&mut self) -> String {
        match self.d.below(20) {
            0 => self.d.of(&["NULL", "5", "3.25", "x'616263'"]).into(),
            _ => {
                let text = self.text();
                quoted(&text)
            }
        }
    }

    fn term(&mut self) -> String {
        let (a, b) = (self.d.of(WORDS), self.d.of(WORDS));
        match self.d.below(10) {
            0..5 => format!("\"{a}\""),
            5 => format!("\"w{}\"", self.d.below(60)),
            6 => format!("\"{}\"*", a.chars().take(1 + self.d.below(2)).collect::<String>()),
            7 => format!("\"{a} {b}\""),
            8 => format!("^\"{a}\""),
            _ => format!("NEAR(\"{a}\" \"{b}\", {})", self.d.below(8)),
        }
    }

    /// A query, without parts of which only the engine's way through them says where their phrases are.
    fn query(&mut self, depth: usize) -> String {
        let leaf = depth > 2 || self.d.below(10) < 5;
        if leaf {
            return self.term();
        }
        let a = self.query(depth + 1);
        let b = self.query(depth + 1);
        match self.d.below(5) {
            0 => format!("{} {}", self.term(), self.term()),
            1 => format!("({a}) AND ({b})"),
            2 => format!("({a}) OR ({b})"),
            3 => format!("({a}) NOT ({b})"),
            _ => format!("{{{}}} : ({a})", self.columns[self.d.below(self.columns.len())]),
        }
    }

    fn insert(&mut self) {
        let id = match self.d.below(10) {
            0 => self.next + self.d.below(100_000) as i64,
            1 => -(self.d.below(50) as i64),
            2 => 1 + self.d.below(self.next as usize) as i64,
            _ => self.next,
        };
        let taken = self.rows.contains(&id);
        let values: Vec<String> = (0..self.columns.len()).map(|_| self.value()).collect();
        let (columns, values) = (self.columns.join(", "), values.join(", "));
        let or = match self.content {
            "own" => self.d.of(&["", "", " OR REPLACE", " OR IGNORE"]),
            "deletable" if taken => " OR REPLACE",
            _ if taken => return,
            _ => "",
        };
        if self.content == "other" {
            self.statements.push(format!("INSERT INTO src VALUES ({id}, {values})"));
            self.statements
                .push(format!("INSERT INTO t(rowid, {columns}) SELECT * FROM src WHERE id = {id}"));
        } else {
            self.statements.push(format!("INSERT{or} INTO t(rowid, {columns}) VALUES ({id}, {values})"));
        }
        if !taken {
            self.rows.push(id);
        }
        if id >= self.next && id < self.next + 1000 {
            self.next = id + 1;
        }
    }

    fn delete(&mut self) {
        if self.rows.is_empty() || self.content == "none" {
            return;
        }
        let at = self.d.below(self.rows.len());
        let id = self.rows.swap_remove(at);
        if self.content == "other" {
            let columns = self.columns.join(", ");
            self.statements.push(format!(
                "INSERT INTO t(t, rowid, {columns}) SELECT 'delete', * FROM src WHERE id = {id}"
            ));
            self.statements.push(format!("DELETE FROM src WHERE id = {id}"));
        } else {
            self.statements.push(format!("DELETE FROM t WHERE rowid = {id}"));
        }
    }

    fn update(&mut self) {
        if self.rows.is_empty() || !matches!(self.content, "own" | "deletable") {
            return;
        }
        let id = self.rows[self.d.below(self.rows.len())];
        let which = self.d.below(self.columns.len());
        let mut sets = Vec::new();
        for i in 0..self.columns.len() {
            if self.content == "deletable" || i == which {
                let value = self.value();
                sets.push(format!("{} = {value}", self.columns[i]));
            }
        }
        self.statements.push(format!("UPDATE t SET {} WHERE rowid = {id}", sets.join(", ")));
    }

    /// The next statements. `queries`: some of them ask.
    pub fn step(&mut self, queries: bool) {
        match self.d.below(100) {
            0..45 => self.insert(),
            45..60 => self.delete(),
            60..70 => self.update(),
            // Stock loses rows of a transaction that bare entries are taken out in.
            70..73 if self.secure && self.bare => {}
            70..73 => {
                let verb = if self.open { "COMMIT" } else { "BEGIN" };
                self.statements.push(verb.into());
                self.open = !self.open;
                self.marks = 0;
            }
            73 | 74 if self.open => {
                self.statements.push("SAVEPOINT s".into());
                self.marks += 1;
            }
            75 if self.open && self.marks > 0 => {
                self.statements.push("RELEASE s".into());
                self.marks -= 1;
            }
            76 => {
                let leaves = self.d.of(&["1", "5", "50", "-1", "-20"]);
                self.command("merge", leaves);
            }
            77 => self.statements.push("INSERT INTO t(t) VALUES ('optimize')".into()),
            78 => self.statements.push("INSERT INTO t(t) VALUES ('integrity-check')".into()),
            79 if self.secure && !self.bare && (self.content != "other" || self.d.one_in(2)) => {
                let on = self.d.of(&["0", "1", "1"]);
                self.command("secure-delete", on);
            }
            79 if self.content == "other" => {
                self.statements.push("INSERT INTO t(t) VALUES ('rebuild')".into())
            }
            80.. if queries => {
                let q = self.query(0);
                let q = quoted(&q);
                let column = self.d.below(self.columns.len());
                let sql = match self.d.below(7) {
                    0 => format!("SELECT rowid FROM t({q}) ORDER BY rowid"),
                    1 => format!("SELECT rowid FROM t({q}) ORDER BY rowid DESC"),
                    2 => {
                        format!("SELECT rowid FROM t({q}) WHERE rowid > {} ORDER BY rowid", self.d.below(40))
                    }
                    3 => {
                        let t = self.term();
                        format!("SELECT rowid, rank FROM t({}) ORDER BY rank LIMIT 20", quoted(&t))
                    }
                    4 => {
                        let t = self.term();
                        format!("SELECT rowid, bm25(t, 2.0, 0.5) FROM t({}) ORDER BY rowid", quoted(&t))
                    }
                    5 => {
                        let t = self.term();
                        format!(
                            "SELECT highlight(t, {column}, '[', ']') FROM t({}) ORDER BY rowid",
                            quoted(&t)
                        )
                    }
                    _ => {
                        let t = self.term();
                        let n = 1 + self.d.below(12);
                        let t = quoted(&t);
                        format!("SELECT snippet(t, -1, '[', ']', '..', {n}) FROM t({t}) ORDER BY rowid")
                    }
                };
                self.statements.push(sql);
            }
            _ => {}
        }
    }

    /// Ends what is open.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            self.statements.push("COMMIT".into());
        }
    }
}

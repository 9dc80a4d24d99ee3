//! Expressions.

use super::generate::{Callable, Gen, Scope};

const JSON: &[&str] = &[
    "'{\"a\":1,\"b\":[1,2,{\"c\":null}],\"d\":\"x\"}'",
    "'[1,2.5,\"a\",null,true]'",
    "'{}'",
    "'[]'",
    "'3'",
    "'\"s\"'",
    "'{\"a\":{\"b\":{\"c\":[10,20]}}}'",
    "'[[1],[2,[3]]]'",
    "'{a:1,b:''x''}'",
    "jsonb('{\"a\":[1,\"é\"]}')",
    "'null'",
    "jsonb('[1,2,3]')",
    "NULL",
    "'[1,{\"a\":\"\\u00e9\\n\"}]'",
];
const PATHS: &[&str] = &[
    "'$'",
    "'$.a'",
    "'$.b'",
    "'$.b[1]'",
    "'$[0]'",
    "'$[#-1]'",
    "'$.a.b'",
    "'$.b[2].c'",
    "'$.zz'",
    "'$[1].a'",
    "'$[#]'",
];
const TIMES: &[&str] = &[
    "'2024-02-29'",
    "'2023-12-31 23:59:59.999'",
    "'2000-01-01T12:00'",
    "2460000.5",
    "'12:34:56'",
    "1700000000",
    "'1970-01-01 00:00:00'",
    "'-4713-11-24 12:00'",
    "'9999-12-31'",
    "'2024-03-10 02:30:00+05:30'",
    "NULL",
    "'bogus'",
    "'2024-01-31'",
    "0",
];
const MODIFIERS: &[&str] = &[
    "'+1 day'",
    "'-1 month'",
    "'start of month'",
    "'start of year'",
    "'start of day'",
    "'weekday 0'",
    "'unixepoch'",
    "'auto'",
    "'+1.5 hours'",
    "'-3 years'",
    "'subsec'",
    "'julianday'",
    "'+01:30'",
    "'ceiling'",
    "'floor'",
    "'utc'",
    "'+0001-01-01 00:00'",
    "'12 months'",
    "'weekday 3'",
];
const FORMATS: &[&str] = &[
    "'%d'",
    "'%5d|%-5d|%05d'",
    "'%s'",
    "'%q'",
    "'%Q'",
    "'%w'",
    "'%x %X %o'",
    "'%.3f'",
    "'%e'",
    "'%g'",
    "'%c'",
    "'%,d'",
    "'%+d% d'",
    "'%10.4s|'",
    "'%%'",
    "'%!.15g'",
    "'%#x'",
    "'%-8s|'",
    "'%.*f'",
    "'%i %u'",
    "'%J'",
];

impl Gen<'_> {
    /// A column or literal.
    pub fn leaf(&mut self, sc: &Scope) -> String {
        if self.rng.chance(70)
            && let Some(c) = sc.column(&mut self.rng)
        {
            return c;
        }
        self.literal()
    }

    /// A column if there is one.
    pub fn column(&mut self, sc: &Scope) -> String {
        match sc.column(&mut self.rng) {
            Some(c) => c,
            None => self.literal(),
        }
    }

    /// An expression.
    pub fn expr(&mut self, sc: &Scope, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(sc);
        }
        let d = depth - 1;
        match self.rng.below(46) {
            0..=6 => self.leaf(sc),
            7..=11 => {
                let op = self.one(&["+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>", "+", "-", "||"]);
                if self.rng.chance(8) {
                    // At the edge of the integers.
                    let edge =
                        self.one(&["9223372036854775807", "-9223372036854775807", "4611686018427387904"]);
                    return format!("({edge} {op} (1 + {}))", self.leaf(sc));
                }
                format!("({} {op} {})", self.expr(sc, d), self.expr(sc, d))
            }
            12..=17 => self.condition(sc, depth),
            18 => {
                let op = self.one(&["-", "+", "~", "NOT "]);
                format!("({op}{})", self.expr(sc, d))
            }
            19..=20 => self.case(sc, d),
            21..=22 => {
                let mut ty = self.one(&["INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "VARCHAR(3)"]);
                if ty == "BLOB" && !self.utf8 {
                    ty = "TEXT".into();
                }
                format!("CAST({} AS {ty})", self.expr(sc, d))
            }
            23 => format!("({} COLLATE {})", self.expr(sc, d), self.collation()),
            24..=39 => self.call(sc, d),
            40..=43 if !self.schema_expr => self.scalar_subquery(sc, d),
            _ => {
                let op = *self.rng.pick(&["->", "->>"]);
                *self.used.entry(op).or_default() += 1;
                let (j, p) = (self.one(JSON), self.one(PATHS));
                format!("({j} {op} {p})")
            }
        }
    }

    /// BINARY, NOCASE or RTRIM.
    pub fn collation(&mut self) -> String {
        self.one(&["BINARY", "NOCASE", "RTRIM"])
    }

    fn case(&mut self, sc: &Scope, d: usize) -> String {
        let mut s = String::from("CASE");
        let base = self.rng.chance(40);
        if base {
            s += &format!(" {}", self.expr(sc, d));
        }
        for _ in 0..self.rng.range(1, 3) {
            let when = if base { self.leaf(sc) } else { self.condition(sc, d) };
            s += &format!(" WHEN {when} THEN {}", self.expr(sc, d));
        }
        if self.rng.chance(60) {
            s += &format!(" ELSE {}", self.expr(sc, d));
        }
        s + " END"
    }

    /// A condition.
    pub fn condition(&mut self, sc: &Scope, depth: usize) -> String {
        let d = depth.saturating_sub(1);
        let not = if self.rng.chance(30) { "NOT " } else { "" };
        match self.rng.below(if depth == 0 { 10 } else { 34 }) {
            0..=5 => {
                let op = self.one(&[
                    "=",
                    "=",
                    "=",
                    "<>",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "==",
                    "!=",
                    "IS",
                    "IS NOT",
                    "IS DISTINCT FROM",
                    "IS NOT DISTINCT FROM",
                ]);
                format!("{} {op} {}", self.column(sc), self.leaf(sc))
            }
            6..=7 => format!("{} {}BETWEEN {} AND {}", self.column(sc), not, self.leaf(sc), self.leaf(sc)),
            8 => {
                let op =
                    self.one(&["ISNULL", "NOTNULL", "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE"]);
                format!("{} {op}", self.column(sc))
            }
            9 | 10 => {
                let n = self.rng.range(0, 4);
                let list: Vec<String> = (0..n).map(|_| self.leaf(sc)).collect();
                format!("{} {not}IN ({})", self.column(sc), list.join(", "))
            }
            11..=14 => {
                let op = self.one(&["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"]);
                format!("({} {op} {})", self.expr(sc, d), self.expr(sc, d))
            }
            15..=17 => format!("({} AND {})", self.condition(sc, d), self.condition(sc, d)),
            18..=20 => format!("({} OR {})", self.condition(sc, d), self.condition(sc, d)),
            21 => format!("NOT ({})", self.condition(sc, d)),
            22..=23 => {
                let (op, p) = if self.rng.chance(60) {
                    (
                        "LIKE",
                        self.one(&["'a%'", "'%b%'", "'A_c'", "'_'", "'%'", "''", "'1%'", "'ab%'", "'%é'"]),
                    )
                } else {
                    (
                        "GLOB",
                        self.one(&["'a*'", "'*b*'", "'[a-c]*'", "'?'", "'*'", "'[^a]*'", "'1*'", "'A*'"]),
                    )
                };
                let p = if self.rng.chance(15) { self.leaf(sc) } else { p };
                let escape = if op == "LIKE" && self.rng.chance(15) { " ESCAPE '\\'" } else { "" };
                format!("{} {not}{op} {p}{escape}", self.column(sc))
            }
            24 => {
                let op = self.one(&["=", "<", ">=", "<>", "IS"]);
                let (a, b, c, e) = (self.leaf(sc), self.leaf(sc), self.leaf(sc), self.leaf(sc));
                format!("(({a}, {b}) {op} ({c}, {e}))")
            }
            25..=27 if !self.schema_expr => self.in_query(sc, d, not),
            28..=29 if !self.schema_expr => {
                let q = self.subquery(sc, d, 1);
                format!("{not}EXISTS ({q})")
            }
            30 if !self.schema_expr => {
                let q = self.subquery(sc, d, 2);
                format!("(({}, {}) {not}IN ({q}))", self.column(sc), self.leaf(sc))
            }
            _ => self.expr(sc, d),
        }
    }

    fn in_query(&mut self, sc: &Scope, d: usize, not: &str) -> String {
        if self.rng.chance(10)
            && let Some(t) = self.base_table()
            && t.columns.len() == 1
        {
            return format!("{} {not}IN {}", self.column(sc), t.full());
        }
        let q = self.subquery(sc, d, 1);
        format!("{} {not}IN ({q})", self.column(sc))
    }

    fn scalar_subquery(&mut self, sc: &Scope, d: usize) -> String {
        if self.rng.chance(30) {
            return format!("(SELECT {})", self.expr(sc, d));
        }
        let q = self.aggregate_subquery(sc, d);
        format!("({q})")
    }

    /// A call of any scalar function.
    pub fn call(&mut self, sc: &Scope, d: usize) -> String {
        let scalars = self.callables.iter().filter(|c| !c.aggregate).count();
        let pick = self.rng.below(scalars);
        let mut c = *self.callables.iter().filter(|c| !c.aggregate).nth(pick).expect("below the count");
        // Blobs that a UTF-16 database's functions read as text.
        let makes_blob = c.name.starts_with("jsonb") || matches!(c.name, "zeroblob" | "unhex");
        let of_build = self.schema_expr && c.name == "sqlite_compileoption_used";
        if !self.utf8 && makes_blob || of_build {
            c = Callable { name: "quote", args: 1, aggregate: false };
        }
        self.call_of(c, sc, d)
    }

    /// A call of this function.
    pub fn call_of(&mut self, c: Callable, sc: &Scope, d: usize) -> String {
        *self.used.entry(c.name).or_default() += 1;
        let n = match (c.args, c.name) {
            (_, "json_object" | "jsonb_object") => 2 * self.rng.range(0, 2),
            (
                _,
                "json_set" | "json_insert" | "json_replace" | "jsonb_set" | "jsonb_insert" | "jsonb_replace",
            ) => 1 + 2 * self.rng.range(0, 2),
            (_, "json_array_insert" | "jsonb_array_insert") => 1 + 2 * self.rng.range(0, 2),
            (_, "min" | "max") => self.rng.range(2, 3),
            (-4, _) => self.rng.range(2, 4),
            (-3, _) => self.rng.range(1, 3),
            (n, "date" | "time" | "datetime" | "julianday" | "unixepoch") if n < 0 => self.rng.range(1, 3),
            (n, "strftime") if n < 0 => self.rng.range(2, 4),
            (n, _) if n < 0 => self.rng.range(1, 3),
            (n, _) => n as usize,
        };
        let args: Vec<String> = (0..n).map(|i| self.argument(c.name, i, n, sc, d)).collect();
        format!("{}({})", c.name, args.join(", "))
    }

    fn argument(&mut self, f: &str, i: usize, n: usize, sc: &Scope, d: usize) -> String {
        match (f, i) {
            ("json_array_insert" | "jsonb_array_insert", 0) => {
                self.one(&["'[1,2,3]'", "'[]'", "'{\"a\":[1]}'", "NULL"])
            }
            ("json_array_insert" | "jsonb_array_insert", _) if i % 2 == 1 => {
                self.one(&["'$[0]'", "'$[1]'", "'$[#]'", "'$.a[0]'"])
            }
            ("json_object" | "jsonb_object", _) if i.is_multiple_of(2) => self.text(),
            ("json_object" | "jsonb_object" | "json_array" | "jsonb_array" | "json_quote", _) => {
                // Blobs are no JSON.
                match self.rng.below(4) {
                    0 => self.one(JSON).replace("jsonb", "json"),
                    1 => self.text(),
                    _ => self.int(),
                }
            }
            ("json_pretty", 1) => self.one(&["' '", "'  '", "NULL"]),
            ("json_valid", 1) => self.one(&["1", "2", "4", "6", "8", "5"]),
            ("json_patch" | "jsonb_patch", 1) => self.one(JSON),
            ("json_valid" | "json_error_position", 0) => {
                if self.rng.chance(50) {
                    self.one(JSON)
                } else {
                    self.leaf(sc)
                }
            }
            _ if f.starts_with("json") && i == 0 => self.one(JSON),
            (
                "json_set" | "json_insert" | "json_replace" | "jsonb_set" | "jsonb_insert" | "jsonb_replace",
                _,
            ) if i.is_multiple_of(2) => {
                if self.rng.chance(30) {
                    self.one(JSON)
                } else {
                    self.int()
                }
            }
            _ if f.starts_with("json") => self.one(PATHS),
            ("strftime", 0) => self.one(&[
                "'%Y-%m-%d'",
                "'%H:%M:%f'",
                "'%j %w %W %u'",
                "'%s %J'",
                "'%e %k %l %I %p %P'",
                "'%G-%V %g %U'",
                "'%F %T %R'",
            ]),
            ("strftime", 1)
            | ("date" | "time" | "datetime" | "julianday" | "unixepoch", 0)
            | ("timediff", _) => {
                if self.rng.chance(85) {
                    self.one(TIMES)
                } else {
                    self.leaf(sc)
                }
            }
            ("strftime" | "date" | "time" | "datetime" | "julianday" | "unixepoch", _) => self.one(MODIFIERS),
            ("printf" | "format", 0) => self.one(FORMATS),
            ("printf" | "format", _) => self.leaf(sc),
            ("zeroblob", _) => self.small(),
            // A lone surrogate becomes U+FFFD in a UTF-16 database at once or when it is stored.
            ("char", _) if !self.utf8 => self.one(&["65", "97", "233", "26085", "128512", "-1", "1114112"]),
            ("char", _) => self.one(&["65", "97", "233", "26085", "128512", "0", "-1", "55296", "1114112"]),
            ("substr" | "substring", 1) => self.one(&["-6", "-4", "-3", "-2", "-1", "0", "1", "2", "3", "5"]),
            ("substr" | "substring", 2) => self.one(&["1", "2", "3", "4", "0", "-1", "-2"]),
            ("round", 1) => self.small(),
            ("likelihood", 1) => self.one(&["0.5", "0.25", "1.0", "0.0"]),
            ("replace", 1 | 2) => self.text(),
            ("like", 2) => "'\\'".into(),
            ("like" | "glob", 0) => self.one(&["'a%'", "'%b%'", "'*a*'", "'?b*'", "'_'"]),
            ("unhex", 0) => self.one(&["'6162'", "'61 62'", "'6'", "'zz'", "''", "NULL", "'é61'"]),
            ("unhex", 1) => self.one(&["' '", "'é'", "''", "'z'"]),
            ("sqlite_compileoption_used", _) => self.one(&["'THREADSAFE'", "'nosuch'"]),
            // abs of the smallest integer fails: it is tested, but not in every third statement.
            ("abs", _) => {
                let c = self.column(sc);
                format!("coalesce({c}, 0) / 2")
            }
            ("exp" | "cosh" | "sinh", _) => self.small(),
            ("median" | "sum" | "total" | "avg", _) => self.column(sc),
            _ if n == 0 => String::new(),
            _ => self.expr(sc, d),
        }
    }

    /// A call of an aggregate over the columns in scope. Where order matters, the call orders its input.
    pub fn aggregate(&mut self, sc: &Scope, d: usize) -> String {
        let all = self.callables.iter().filter(|c| c.aggregate).count();
        let pick = self.rng.below(all);
        let c = *self.callables.iter().filter(|c| c.aggregate).nth(pick).expect("below the count");
        if !self.utf8 && c.name.starts_with("jsonb") {
            return "count(*)".into();
        }
        *self.used.entry(c.name).or_default() += 1;
        let x = self.column(sc);
        // With DISTINCT in min() and max(), stock takes bare columns from rows that have neither the least nor the
        // greatest value.
        let extreme = matches!(c.name, "min" | "max");
        let distinct = if self.rng.chance(20) && !extreme { "DISTINCT " } else { "" };
        let mut s = match c.name {
            "count" if c.args == 0 => "count(*)".to_string(),
            "group_concat" | "string_agg" | "json_group_array" | "jsonb_group_array" => {
                let x = if c.name.starts_with("json") { format!("quote({x})") } else { x };
                let second = if c.args == 2 {
                    format!(", {}", self.one(&["','", "'-'", "''", "NULL", "'; '"]))
                } else {
                    String::new()
                };
                format!("{}({x}{second} ORDER BY {x} COLLATE BINARY, typeof({x}))", c.name)
            }
            "json_group_object" | "jsonb_group_object" => {
                format!("{}(quote({x}), typeof({x}) ORDER BY {x} COLLATE BINARY, typeof({x}))", c.name)
            }
            "sum" | "total" | "avg" | "median" => {
                let x = match self.rng.below(3) {
                    0 => format!("CAST({x} AS INTEGER) % 100000"),
                    1 => format!("length({x})"),
                    _ => format!("({x} > 2)"),
                };
                format!("{}({distinct}{x})", c.name)
            }
            "percentile" | "percentile_cont" | "percentile_disc" => {
                let p = if c.name == "percentile" {
                    self.one(&["0", "25", "50", "90.5", "100"])
                } else {
                    self.one(&["0.0", "0.25", "0.5", "1.0"])
                };
                format!("{}(length({x}), {p})", c.name)
            }
            _ => {
                let x = if self.rng.chance(30) { self.expr(sc, d.min(1)) } else { x };
                let args = if c.args > 1 { format!("{x}, 1") } else { x };
                format!("{}({}{args})", c.name, if c.args > 1 { "" } else { distinct })
            }
        };
        if self.rng.chance(20) {
            s += &format!(" FILTER (WHERE {})", self.condition(sc, d.min(1)));
        }
        s
    }
}

//! Queries: SELECT in every form.

use super::generate::{Gen, Scope, Source};

/// A query and what is known of it.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Its text, without ORDER BY.
    pub sql: String,
    /// How many columns it has.
    pub columns: usize,
}

/// A FROM clause.
pub struct From {
    /// Its text.
    pub sql: String,
    /// What can be named of it.
    pub sources: Vec<Source>,
}

impl Gen<'_> {
    /// A table, view, common table expression, subquery or list of values, with an alias.
    fn source_item(&mut self, outer: &Scope, d: usize) -> From {
        if self.nest > 0 && !self.schema_expr && self.rng.chance(60) {
            self.nest -= 1;
            let f = self.nested(d);
            self.nest += 1;
            return f;
        }
        let alias = self.name("t");
        if !self.ctes.is_empty() && self.rng.chance(30) {
            let i = self.rng.below(self.ctes.len());
            let c = self.ctes[i].clone();
            let source = Source { alias: alias.clone(), columns: c.columns };
            return From { sql: format!("{} AS {alias}", c.alias), sources: vec![source] };
        }
        if d > 0 && self.rng.chance(15) && !self.schema_expr {
            return self.nested(d - 1);
        }
        if self.rng.chance(4) {
            let rows: Vec<String> = (0..self.rng.range(1, 3))
                .map(|_| format!("({}, {})", self.literal(), self.literal()))
                .collect();
            let source = Source { alias: alias.clone(), columns: vec!["column1".into(), "column2".into()] };
            return From { sql: format!("(VALUES {}) AS {alias}", rows.join(", ")), sources: vec![source] };
        }
        if self.features.table_functions && self.rng.chance(3) && !self.schema_expr {
            let (a, b) = (self.rng.below(4), self.rng.below(9));
            let f = self.one(&["json_each", "json_tree"]);
            let sql = format!("{f}('[{a},{{\"k\":{b}}},[null,\"z\"]]') AS {alias}");
            let columns = ["key", "value", "type", "atom", "fullkey", "path"];
            let columns = columns.iter().map(|c| c.to_string()).collect();
            let _ = outer;
            return From { sql, sources: vec![Source { alias, columns }] };
        }
        match self.any_table() {
            Some(t) => {
                let with_rowid = self.rng.chance(30);
                let source = self.source(&t, &alias, with_rowid);
                let full = if self.rng.chance(70) { super::model::quote(&t.name) } else { t.full() };
                From { sql: format!("{full} AS {alias}"), sources: vec![source] }
            }
            None => {
                let source = Source { alias: alias.clone(), columns: vec!["x".into()] };
                From { sql: format!("(SELECT 1 AS x) AS {alias}"), sources: vec![source] }
            }
        }
    }

    /// A query with columns named c1, c2 and so on.
    pub fn named(&mut self, q: &Query) -> String {
        let names: Vec<String> = (1..=q.columns).map(|i| format!("c{i}")).collect();
        let w = self.name("w");
        format!("WITH {w}({}) AS ({}) SELECT * FROM {w}", names.join(", "), q.sql)
    }

    fn from(&mut self, outer: &Scope, d: usize) -> From {
        let n = [1, 1, 1, 2, 2, 3][self.rng.below(6)];
        let mut f = self.source_item(outer, d);
        for _ in 1..n {
            let right = self.source_item(outer, d);
            let r = right.sources[0].clone();
            let l = f.sources[self.rng.below(f.sources.len())].clone();
            let common = r
                .columns
                .iter()
                .find(|c| **c != "rowid" && f.sources.iter().filter(|s| s.columns.contains(c)).count() == 1);
            let on = format!(
                "{}.{} = {}.{}",
                l.alias,
                self.rng.pick(&l.columns),
                r.alias,
                self.rng.pick(&r.columns)
            );
            let kind = self.rng.below(14);
            f.sources.push(r.clone());
            let scope = Scope { sources: f.sources.clone() };
            let on = if self.rng.chance(25) { format!("{on} AND {}", self.condition(&scope, 1)) } else { on };
            f.sql = match (kind, common) {
                (0, _) => format!("{}, {}", f.sql, right.sql),
                (1..=3, _) => format!("{} JOIN {} ON {on}", f.sql, right.sql),
                (4..=6, _) => format!("{} LEFT JOIN {} ON {on}", f.sql, right.sql),
                (7, _) => format!("{} RIGHT JOIN {} ON {on}", f.sql, right.sql),
                (8, _) => format!("{} FULL OUTER JOIN {} ON {on}", f.sql, right.sql),
                (9, _) => format!("{} CROSS JOIN {} ON {on}", f.sql, right.sql),
                (10 | 11, Some(c)) => format!("{} JOIN {} USING ({c})", f.sql, right.sql),
                (12, Some(c)) => format!("{} LEFT JOIN {} USING ({c})", f.sql, right.sql),
                (13, Some(_)) if f.sources.len() == 2 => format!("{} NATURAL JOIN {}", f.sql, right.sql),
                _ => format!("{} INNER JOIN {} ON {on}", f.sql, right.sql),
            };
        }
        f
    }

    /// One SELECT, without ORDER BY, over the given number of columns.
    pub fn core(&mut self, outer: &Scope, d: usize, columns: Option<usize>) -> Query {
        let n = columns.unwrap_or_else(|| self.rng.range(1, 4));
        let names = std::mem::take(&mut self.aliases);
        if !names && self.rng.chance(4) {
            let rows: Vec<String> = (0..self.rng.range(1, 3))
                .map(|_| {
                    let r: Vec<String> = (0..n).map(|_| self.literal()).collect();
                    format!("({})", r.join(", "))
                })
                .collect();
            return Query { sql: format!("VALUES {}", rows.join(", ")), columns: n };
        }
        let f = self.from(outer, d);
        let mut sources = outer.sources.clone();
        sources.extend(f.sources.clone());
        let sc = Scope { sources };
        let inner = Scope { sources: f.sources.clone() };
        let filter =
            if self.rng.chance(55) { format!(" WHERE {}", self.condition(&sc, d)) } else { String::new() };
        match self.rng.below(12) {
            0 | 1 => {
                let keys: Vec<String> = (0..self.rng.range(1, 2)).map(|_| self.column(&inner)).collect();
                let outs: Vec<String> = (0..n)
                    .map(|i| if i < keys.len() { keys[i].clone() } else { self.aggregate(&inner, d) })
                    .collect();
                let having = if self.rng.chance(30) {
                    format!(
                        " HAVING {} {} {}",
                        self.aggregate(&inner, 0),
                        self.one(&[">", "<", "IS NOT", "<>"]),
                        self.small()
                    )
                } else {
                    String::new()
                };
                let sql = format!(
                    "SELECT {} FROM {}{filter} GROUP BY {}{having}",
                    self.listed(&outs, names),
                    f.sql,
                    keys.join(", ")
                );
                Query { sql, columns: n }
            }
            2 => {
                let outs: Vec<String> = (0..n).map(|_| self.aggregate(&inner, d)).collect();
                let outs = self.listed(&outs, names);
                Query { sql: format!("SELECT {outs} FROM {}{filter}", f.sql), columns: n }
            }
            3 => {
                let outs: Vec<String> = (0..n).map(|_| self.column(&inner)).collect();
                let outs = self.listed(&outs, names);
                Query { sql: format!("SELECT DISTINCT {outs} FROM {}{filter}", f.sql), columns: n }
            }
            4 if columns.is_none() && f.sources.len() == 1 => {
                let n = f.sources[0].columns.iter().filter(|c| *c != "rowid").count();
                Query { sql: format!("SELECT * FROM {}{filter}", f.sql), columns: n }
            }
            5 if n > 1 && f.sources.len() == 1 && f.sources[0].columns.iter().any(|c| c == "rowid") => {
                // Bare columns take their values from the row with the minimum or maximum, here a unique one.
                let m = self.one(&["min", "max"]);
                let a = f.sources[0].alias.clone();
                let mut outs = vec![format!("{m}({a}.rowid)")];
                outs.extend((1..n).map(|_| self.column(&inner)));
                let outs = self.listed(&outs, names);
                let group = if self.rng.chance(50) {
                    format!(" GROUP BY {}", self.column(&inner))
                } else {
                    String::new()
                };
                let sql = format!("SELECT {outs} FROM {}{filter}{group}", f.sql);
                Query { sql, columns: n }
            }
            _ => {
                let outs: Vec<String> = (0..n)
                    .map(|_| {
                        let mut e = self.expr(&sc, d);
                        if self.rng.chance(6) {
                            e = format!("{e} COLLATE {}", self.collation());
                        }
                        if self.rng.chance(20) && columns.is_none() {
                            let a = self.name("x");
                            format!("{e} AS {a}")
                        } else {
                            e
                        }
                    })
                    .collect();
                let outs = self.listed(&outs, names);
                Query { sql: format!("SELECT {outs} FROM {}{filter}", f.sql), columns: n }
            }
        }
    }

    /// A compound.
    pub fn compound(&mut self, outer: &Scope, d: usize, columns: Option<usize>) -> Query {
        let n = columns.unwrap_or_else(|| self.rng.range(1, 3));
        if n == 1 && self.rng.chance(25) {
            // Values that are equal and look different.
            let f = self.source_item(outer, 0);
            let c = self.column(&Scope { sources: f.sources.clone() });
            let op = self.one(&["UNION", "UNION", "INTERSECT", "EXCEPT"]);
            let sql = match self.rng.below(2) {
                0 => format!("SELECT {c} FROM {} {op} SELECT {c} * 1.0 FROM {}", f.sql, f.sql),
                _ => {
                    let coll = self.one(&["NOCASE", "RTRIM"]);
                    format!(
                        "SELECT {c} COLLATE {coll} FROM {} {op} SELECT upper({c}) || ' ' FROM {}",
                        f.sql, f.sql
                    )
                }
            };
            return Query { sql, columns: 1 };
        }
        let mut sql = self.core(outer, d, Some(n)).sql;
        for _ in 0..self.rng.range(1, 2) {
            let op = self.one(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
            let right = self.core(outer, d, Some(n));
            sql = format!("{sql} {op} {}", right.sql);
        }
        Query { sql, columns: n }
    }

    /// A query in an expression.
    pub fn subquery(&mut self, outer: &Scope, d: usize, columns: usize) -> String {
        if d > 0 && self.rng.chance(15) {
            return self.compound(outer, d - 1, Some(columns)).sql;
        }
        self.core(outer, d.saturating_sub(1), Some(columns)).sql
    }

    /// A query of one value in an expression: one row whatever the plan.
    pub fn aggregate_subquery(&mut self, outer: &Scope, d: usize) -> String {
        let f = self.source_item(outer, 0);
        let mut sources = outer.sources.clone();
        sources.extend(f.sources.clone());
        let sc = Scope { sources };
        let inner = Scope { sources: f.sources };
        let filter = if self.rng.chance(60) {
            format!(" WHERE {}", self.condition(&sc, d.min(1)))
        } else {
            String::new()
        };
        format!("SELECT {} FROM {}{filter}", self.aggregate(&inner, 0), f.sql)
    }

    /// One column of one table in its own order, in a range, mostly from its upper end.
    fn range(&mut self) -> (&'static str, String, bool) {
        let f = self.source_item(&Scope::default(), 0);
        let c = self.column(&Scope { sources: f.sources.clone() });
        let (lo, hi) = (self.one(&[">", ">="]), self.one(&["<", "<="]));
        let (x, y) = (self.literal(), self.literal());
        let range = match self.rng.below(3) {
            0 => format!("{c} {lo} {x}"),
            1 => format!("{c} {hi} {y}"),
            _ => format!("{c} {lo} {x} AND {c} {hi} {y}"),
        };
        let end = self.one(&[" DESC", " DESC", ""]);
        let limit =
            if self.rng.chance(50) { format!(" LIMIT {}", self.rng.range(1, 5)) } else { String::new() };
        ("range", format!("SELECT {c} FROM {} WHERE {range} ORDER BY {c}{end}{limit}", f.sql), true)
    }

    /// A complete query: kind, text, and whether its order is settled.
    pub fn query(&mut self) -> (&'static str, String, bool) {
        self.ctes.clear();
        let none = Scope::default();
        let d = self.rng.range(1, 3);
        let (kind, q) = match self.rng.below(24) {
            0..=9 => ("select", self.core(&none, d, None)),
            10..=12 => ("compound", self.compound(&none, d.min(2), None)),
            13..=14 => ("with", self.with(d)),
            15 => ("recursive", self.recursive()),
            16 => {
                let n = self.rng.range(1, 4);
                let e: Vec<String> = (0..n).map(|_| self.call(&none, 1)).collect();
                ("functions", Query { sql: format!("SELECT {}", e.join(", ")), columns: n })
            }
            17 => ("window", self.window(d)),
            18 => return self.range(),
            19..=22 => self.over_nested(1),
            _ => {
                // Index and rowid look-ups on one table.
                let f = self.source_item(&none, 0);
                let sc = Scope { sources: f.sources.clone() };
                let terms: Vec<String> = (0..self.rng.range(1, 3)).map(|_| self.condition(&sc, 0)).collect();
                let op = self.one(&[" AND ", " AND ", " OR "]);
                let outs: Vec<String> = (0..3).map(|_| self.column(&sc)).collect();
                let sql = format!("SELECT {} FROM {} WHERE {}", outs.join(", "), f.sql, terms.join(&op));
                ("lookup", Query { sql, columns: 3 })
            }
        };
        if self.rng.chance(55) {
            return (kind, q.sql, false);
        }
        let order: Vec<String> = (1..=q.columns)
            .map(|i| {
                // A compound's terms may carry a collating sequence too.
                let tail = self.one(&["", "", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"]);
                format!("{i} COLLATE BINARY{tail}")
            })
            .collect();
        let mut sql = format!("{} ORDER BY {}", q.sql, order.join(", "));
        // A compound's own ORDER BY may not carry a collating sequence: stock loses a GROUP BY of the last arm then.
        let compound = [" UNION ", " INTERSECT ", " EXCEPT "].iter().any(|w| q.sql.contains(w));
        if kind == "compound" && self.rng.chance(40) {
            sql = format!("{} ORDER BY {}", q.sql, order.join(", ").replace(" COLLATE BINARY", ""));
        } else if q.sql.starts_with("VALUES") || compound && (kind == "compound" || kind == "with") {
            sql = format!("SELECT * FROM ({}) ORDER BY {}", q.sql, order.join(", "));
        }
        if self.rng.chance(40) {
            sql += &format!(" LIMIT {}", self.one(&["3", "1", "5", "10", "0", "-1", "2+2"]));
            if self.rng.chance(40) {
                sql += &format!(" OFFSET {}", self.one(&["0", "1", "2", "-1", "4"]));
            }
        }
        (kind, sql, true)
    }

    fn with(&mut self, d: usize) -> Query {
        let mut parts = Vec::new();
        for _ in 0..self.rng.range(1, 2) {
            let n = self.rng.range(1, 3);
            let body = if self.rng.chance(25) {
                self.compound(&Scope::default(), d - 1, Some(n))
            } else {
                self.core(&Scope::default(), d - 1, Some(n))
            };
            let alias = self.name("w");
            let columns: Vec<String> = (1..=n).map(|i| format!("k{i}")).collect();
            let how = self.one(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            parts.push(format!("{alias}({}) AS {how}({})", columns.join(", "), body.sql));
            self.ctes.push(Source { alias, columns });
        }
        let q = if self.rng.chance(20) {
            self.compound(&Scope::default(), d - 1, None)
        } else {
            self.core(&Scope::default(), d, None)
        };
        self.ctes.clear();
        Query { sql: format!("WITH {} {}", parts.join(", "), q.sql), columns: q.columns }
    }

    fn recursive(&mut self) -> Query {
        let r = self.name("r");
        if self.rng.chance(30) {
            // Rows that are equal under a collating sequence count once.
            let (seed, coll) = (self.one(&["1", "0"]), self.collation());
            let n = self.one(&["n", "(n + 1) % 3"]);
            let s = self.one(&[
                "upper(s)",
                "lower(s)",
                "s || ' '",
                "CASE n WHEN 0 THEN upper(s) ELSE s || ' ' END",
            ]);
            let sql = format!(
                "WITH RECURSIVE {r}(n, s) AS (SELECT {seed}, 'aB' COLLATE {coll} UNION SELECT {n}, {s} FROM {r} LIMIT 12) \
                 SELECT n, s, length(s) FROM {r}"
            );
            return Query { sql, columns: 3 };
        }
        let limit = self.rng.range(2, 12);
        let op = self.one(&["UNION", "UNION ALL"]);
        let seed = self.one(&["1", "0", "2"]);
        let step = self.one(&["n + 1", "n + 2", "n * 2 + 1"]);
        let tail = self.one(&["", "", " ORDER BY 1 DESC", " LIMIT 5"]);
        let source = Source { alias: r.clone(), columns: vec!["n".into(), "s".into()] };
        let sc = Scope::of(source);
        let e = self.expr(&sc, 1);
        let sql = format!(
            "WITH RECURSIVE {r}(n, s) AS (SELECT {seed}, 'a' {op} SELECT {step}, s || n FROM {r} WHERE n < {limit}{tail}) \
             SELECT n, s, {e} FROM {r}"
        );
        Query { sql, columns: 3 }
    }

    /// Window functions over one source.
    pub fn window(&mut self, d: usize) -> Query {
        let f = self.source_item(&Scope::default(), 0);
        let sc = Scope { sources: f.sources.clone() };
        let alias = &f.sources[0].alias;
        // An order that leaves no ties but of equal rows.
        let all: Vec<String> =
            f.sources[0].columns.iter().map(|c| format!("{alias}.{c} COLLATE BINARY")).collect();
        let all = all.join(", ");
        let rowid = f.sources[0].columns.iter().any(|c| c == "rowid").then(|| format!("{alias}.rowid"));
        let mut calls = Vec::new();
        for _ in 0..self.rng.range(1, 3) {
            let call = match self.rng.below(16) {
                0 => "row_number()".into(),
                1 => "rank()".into(),
                2 => "dense_rank()".into(),
                3 => "percent_rank()".into(),
                4 => "cume_dist()".into(),
                5 => format!("ntile({})", self.rng.range(1, 4)),
                6 => format!("lag({}, {})", self.column(&sc), self.rng.range(0, 2)),
                7 => format!("lead({}, 1, 'none')", self.column(&sc)),
                8 => format!("first_value({})", self.column(&sc)),
                9 => format!("nth_value({}, 2)", self.column(&sc)),
                10 => format!("last_value({})", self.column(&sc)),
                11 => format!("count({})", self.column(&sc)),
                12 => format!("sum(CAST({} AS INTEGER) % 100000)", self.column(&sc)),
                13 => format!("min({})", self.column(&sc)),
                // Quoted, as stock loses count of rows that are the empty string.
                14 => format!("group_concat(quote({}), '-')", self.column(&sc)),
                _ => format!("max({})", self.column(&sc)),
            };
            let part = if self.rng.chance(60) {
                format!("PARTITION BY {} ", self.column(&sc))
            } else {
                String::new()
            };
            let (order, frame) = match &rowid {
                Some(r) if self.rng.chance(35) => {
                    let end = self.one(&["", " DESC"]);
                    let frames = &[
                        " RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
                        " RANGE BETWEEN 1 FOLLOWING AND 4 FOLLOWING",
                        " RANGE 1.5 PRECEDING",
                        " GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING",
                    ];
                    (format!("{r}{end}"), self.one(frames))
                }
                _ => {
                    let frames = &[
                        "",
                        " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                        " ROWS UNBOUNDED PRECEDING",
                        " ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
                        " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
                        " GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE GROUP",
                        " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
                        " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW",
                    ];
                    (all.clone(), self.one(frames))
                }
            };
            calls.push(format!("{call} OVER ({part}ORDER BY {order}{frame})"));
        }
        let filter = if self.rng.chance(40) {
            format!(" WHERE {}", self.condition(&sc, d.min(1)))
        } else {
            String::new()
        };
        let n = calls.len() + 1;
        let sql = format!("SELECT {}, {} FROM {}{filter}", self.column(&sc), calls.join(", "), f.sql);
        Query { sql, columns: n }
    }
}

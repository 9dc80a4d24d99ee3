//! INSERT, UPDATE, DELETE in every form.

use super::generate::{Gen, Scope, Source};
use super::model::{Table, quote};

impl Gen<'_> {
    fn policy(&mut self) -> String {
        self.one(&[
            "",
            "",
            "OR IGNORE ",
            "OR REPLACE ",
            "OR IGNORE ",
            "OR REPLACE ",
            "OR ABORT ",
            "OR FAIL ",
            "OR ROLLBACK ",
        ])
    }

    /// RETURNING, sometimes. A view's triggers decide what came of its rows, so it has none.
    fn returning(&mut self, t: &Table) -> String {
        if !self.rng.chance(20) {
            return String::new();
        }
        let sc = Scope::of(Source { alias: String::new(), columns: self.source(t, "", true).columns });
        // Subqueries may see the table at any moment of the statement (documentation page lang_returning).
        self.schema_expr = true;
        let out = match self.rng.below(3) {
            0 => " RETURNING *".into(),
            1 => format!(" RETURNING {} AS r1, {}", self.column(&sc), self.expr(&sc, 1)),
            _ => format!(" RETURNING {}", self.column(&sc)),
        };
        self.schema_expr = false;
        out
    }

    /// The columns that an INSERT names.
    fn insert_columns(&mut self, t: &Table) -> Vec<usize> {
        let all: Vec<usize> = (0..t.columns.len()).filter(|i| !t.columns[*i].generated).collect();
        if self.rng.chance(60) {
            return all;
        }
        let some: Vec<usize> =
            all.iter().copied().filter(|i| t.columns[*i].not_null || self.rng.chance(65)).collect();
        if some.is_empty() { all } else { some }
    }

    /// INSERT and REPLACE.
    pub fn insert(&mut self) -> Option<(&'static str, String)> {
        let t = self.base_table()?;
        let columns = self.insert_columns(&t);
        let names: Vec<String> = columns.iter().map(|i| quote(&t.columns[*i].name)).collect();
        let policy = self.policy();
        let verb = if self.rng.chance(8) { "REPLACE ".into() } else { format!("INSERT {policy}") };
        let head = format!("{verb}INTO {}({})", t.full(), names.join(", "));
        let (kind, mut sql) = match self.rng.below(20) {
            0 => ("insert default", format!("INSERT {policy}INTO {} DEFAULT VALUES", t.full())),
            1..=3 => {
                let q = self.core(&Scope::default(), 1, Some(columns.len()));
                // The order of rows decides which rowids they get.
                let order: Vec<String> = (1..=columns.len()).map(|i| format!("{i} COLLATE BINARY")).collect();
                let q = format!("SELECT * FROM ({}) ORDER BY {} LIMIT 12", q.sql, order.join(", "));
                ("insert select", format!("{head} {q}"))
            }
            _ => {
                let n = self.rng.range(1, 4);
                let rows: Vec<String> = (0..n)
                    .map(|_| {
                        let r: Vec<String> = columns
                            .iter()
                            .map(|i| {
                                let c = &t.columns[*i];
                                if c.pk && c.decltype == "INTEGER" && self.rng.chance(55) {
                                    "NULL".into()
                                } else if self.rng.chance(4) {
                                    self.call(&Scope::default(), 0)
                                } else {
                                    self.value_in(&t, c)
                                }
                            })
                            .collect();
                        format!("({})", r.join(", "))
                    })
                    .collect();
                ("insert", format!("{head} VALUES {}", rows.join(", ")))
            }
        };
        if verb.starts_with("REPLACE") {
            return Some(("replace", sql + &self.returning(&t)));
        }
        let mut kind = kind;
        if kind != "insert default" && !policy.contains("REPLACE") && self.rng.chance(35) {
            kind = "upsert";
            sql += &self.upsert(&t);
        }
        let r = self.returning(&t);
        if !r.is_empty() && kind == "insert" {
            kind = "insert returning";
        }
        Some((kind, sql + &r))
    }

    fn upsert(&mut self, t: &Table) -> String {
        let mut out = String::new();
        let columns = t.columns.iter().map(|c| quote(&c.name)).collect();
        // Stock gives generated columns of `excluded` the type of another column.
        let stored = t.columns.iter().filter(|c| !c.generated).map(|c| quote(&c.name)).collect();
        let both = Scope {
            sources: vec![
                Source { alias: quote(&t.name), columns },
                Source { alias: "excluded".into(), columns: stored },
            ],
        };
        if !t.keys.is_empty() && self.rng.chance(80) {
            let k = self.rng.pick(&t.keys).clone();
            let names: Vec<String> = k.iter().map(|c| quote(c)).collect();
            out += &format!(" ON CONFLICT({})", names.join(", "));
            out += &self.upsert_action(t, &both);
            if self.rng.chance(30) {
                out += " ON CONFLICT";
                out += &self.upsert_action(t, &both);
            }
        } else {
            out += " ON CONFLICT";
            out += &self.upsert_action(t, &both);
        }
        out
    }

    fn upsert_action(&mut self, t: &Table, both: &Scope) -> String {
        if self.rng.chance(25) {
            return " DO NOTHING".into();
        }
        let mut s = format!(" DO UPDATE SET {}", self.assignments(t, both, 1));
        if self.rng.chance(25) {
            s += &format!(" WHERE {}", self.condition(both, 1));
        }
        s
    }

    fn assignments(&mut self, t: &Table, sc: &Scope, d: usize) -> String {
        let all: Vec<_> = t.assignable().into_iter().cloned().collect();
        let n = self.rng.range(1, 2.min(all.len()));
        let first = self.rng.below(all.len());
        let mut out = Vec::new();
        for i in 0..n {
            let c = &all[(first + i) % all.len()];
            let v = match self.rng.below(10) {
                0..=4 => self.value_in(t, c),
                5..=7 => self.column(sc),
                _ => self.expr(sc, d),
            };
            out.push((quote(&c.name), v));
        }
        if n == 2 && self.rng.chance(20) {
            return format!("({}, {}) = ({}, {})", out[0].0, out[1].0, out[0].1, out[1].1);
        }
        out.iter().map(|(c, v)| format!("{c} = {v}")).collect::<Vec<_>>().join(", ")
    }

    /// UPDATE.
    pub fn update(&mut self) -> Option<(&'static str, String)> {
        let t = self.base_table()?;
        if t.assignable().is_empty() {
            return None;
        }
        let mut policy = self.policy();
        // Where several rows change and each may conflict, the outcome depends on their order, which no page settles.
        let one_row = !t.keys.is_empty() && !matches!(policy.as_str(), "" | "OR ABORT " | "OR ROLLBACK ");
        let from = self.rng.chance(15);
        if one_row && (from || !t.rowid) {
            policy.clear();
        }
        let in_key = |t: &Table, set: &str| t.keys.iter().flatten().any(|k| set.contains(&quote(k)));
        let mut source = self.source(&t, &quote(&t.name), true);
        if t.schema == "temp" {
            source.alias = quote(&t.name);
        }
        let sc = Scope::of(source.clone());
        if from && let Some(s) = self.base_table() {
            // One row for each key, so that it is settled which one is taken.
            let from = Source { alias: "src".into(), columns: vec!["k".into(), "v".into()] };
            let s_scope = Scope::of(self.source(&s, "s", false));
            let (k, v) = (self.column(&s_scope), self.column(&s_scope));
            let both = Scope { sources: vec![source.clone(), from] };
            let set = self.assignments(&t, &both, 1);
            let key = self.rng.pick(&source.columns).clone();
            let sql = format!(
                "UPDATE {policy}{} SET {set} FROM (SELECT {k} AS k, max({v}) AS v FROM {} AS s GROUP BY 1) AS src \
                 WHERE src.k = {}.{key}",
                t.full(),
                s.full(),
                source.alias
            );
            return Some(("update from", sql));
        }
        let set = self.assignments(&t, &sc, 2);
        let mut sql = format!("UPDATE {policy}{} SET {set}", t.full());
        // Triggers see the rows in the order of the plan.
        let watched = self.model.triggered.contains(&t.name);
        if t.rowid && (one_row && !policy.is_empty() || in_key(&t, &set) || watched) {
            sql += &format!(" WHERE rowid = {}", self.rng.range(1, 12));
        } else if self.rng.chance(85) {
            sql += &format!(" WHERE {}", self.condition(&sc, 1));
        }
        let r = self.returning(&t);
        Some((if r.is_empty() { "update" } else { "update returning" }, sql + &r))
    }

    /// DELETE.
    pub fn delete(&mut self) -> Option<(&'static str, String)> {
        let t = self.base_table()?;
        let mut sql = format!("DELETE FROM {}", t.full());
        let sc = Scope::of(self.source(&t, &quote(&t.name), true));
        if t.rowid && self.model.triggered.contains(&t.name) {
            sql += &format!(" WHERE rowid = {}", self.rng.range(1, 12));
        } else if self.rng.chance(97) {
            sql += &format!(" WHERE {}", self.condition(&sc, 1));
            if self.rng.chance(50) {
                sql += &format!(" AND {}", self.condition(&sc, 0));
            }
        }
        let r = self.returning(&t);
        Some((if r.is_empty() { "delete" } else { "delete returning" }, sql + &r))
    }

    /// A write through the triggers of a view.
    pub fn write_view(&mut self) -> Option<(&'static str, String)> {
        let views: Vec<Table> = self.model.tables.iter().filter(|t| t.view).cloned().collect();
        if views.is_empty() {
            return None;
        }
        let t = self.rng.pick(&views).clone();
        let sc = Scope::of(self.source(&t, &quote(&t.name), false));
        let c = quote(&self.rng.pick(&t.columns).name);
        let sql = match self.rng.below(3) {
            0 => format!("INSERT INTO {}({c}) VALUES ({}), ({})", t.full(), self.literal(), self.literal()),
            1 => format!("UPDATE {} SET {c} = {} WHERE {}", t.full(), self.literal(), self.condition(&sc, 1)),
            _ => format!("DELETE FROM {} WHERE {}", t.full(), self.condition(&sc, 1)),
        };
        Some(("write view", sql))
    }
}

//! Queries in FROM, and queries around them: what a planner takes apart, pushes conditions into, or runs first. Their arms differ in
//! affinities and collating sequences, and all of their columns can be named from outside.

use super::generate::{Gen, Scope, Source};
use super::query::{From, Query};

impl Gen<'_> {
    /// A query in FROM: one SELECT, a compound, or a windowed one, sometimes the first rows of it.
    pub fn nested(&mut self, d: usize) -> From {
        let alias = self.name("t");
        let q = self.nested_query(d);
        let columns = (1..=q.columns).map(|i| format!("c{i}")).collect();
        From { sql: format!("({}) AS {alias}", q.sql), sources: vec![Source { alias, columns }] }
    }

    /// A query whose columns are named c1, c2 and so on.
    pub fn nested_query(&mut self, d: usize) -> Query {
        let none = Scope::default();
        if self.rng.chance(15) {
            // By another way to the same names, and with windows.
            let n = self.rng.range(1, 3);
            let q = if self.rng.chance(60) { self.window(d) } else { self.core(&none, d, Some(n)) };
            return Query { sql: self.named(&q), columns: q.columns };
        }
        let n = self.rng.range(1, 3);
        self.aliases = true;
        let mut q = self.core(&none, d, Some(n));
        let arms = [0, 0, 0, 1, 1, 2][self.rng.below(6)];
        for _ in 0..arms {
            let op = self.one(&["UNION ALL", "UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
            let right = self.core(&none, d, Some(n));
            q.sql = format!("{} {op} {}", q.sql, right.sql);
        }
        if self.rng.chance(25) {
            q.sql += &self.bounds(&q, arms > 0);
        }
        q
    }

    /// ORDER BY all columns, and mostly a bound.
    fn bounds(&mut self, q: &Query, compound: bool) -> String {
        let terms: Vec<String> = (1..=q.columns)
            .map(|i| {
                // A compound's terms may not carry a collating sequence: stock loses a GROUP BY of the last arm then.
                let collation = if compound { "" } else { " COLLATE BINARY" };
                format!("{i}{collation}{}", self.one(&["", "", " DESC", " NULLS LAST"]))
            })
            .collect();
        let mut out = format!(" ORDER BY {}", terms.join(", "));
        if self.rng.chance(80) {
            out += &format!(" LIMIT {}", self.one(&["1", "2", "3", "5", "8", "0", "-1", "1+1"]));
            if self.rng.chance(40) {
                out += &format!(" OFFSET {}", self.one(&["0", "1", "2", "4", "-1"]));
            }
        }
        out
    }

    /// A result's columns, with names where these are wanted.
    pub fn listed(&self, columns: &[String], names: bool) -> String {
        let named = |(i, c): (usize, &String)| if names { format!("{c} AS c{}", i + 1) } else { c.clone() };
        columns.iter().enumerate().map(named).collect::<Vec<_>>().join(", ")
    }

    /// A query over queries.
    pub fn over_nested(&mut self, d: usize) -> (&'static str, Query) {
        self.nest = self.rng.range(1, 3);
        let none = Scope::default();
        let q = match self.rng.below(10) {
            0 | 1 => ("compound", self.compound(&none, d, None)),
            2 => ("window", self.window(d)),
            _ => ("nested", self.core(&none, d, None)),
        };
        self.nest = 0;
        q
    }
}

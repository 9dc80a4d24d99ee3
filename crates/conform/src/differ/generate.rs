//! The generator's state and the small things: literals, names, choices.

use super::model::{Column, Model, Table, quote};
use super::rng::Rng;
use std::collections::BTreeMap;

/// What is generated beyond the common ground.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// ALTER TABLE.
    pub alter: bool,
    /// json_each and json_tree.
    pub table_functions: bool,
    /// Foreign key enforcement.
    pub foreign_keys: bool,
    /// Names that mean nothing, several in a statement: which is told?
    pub wrong_names: bool,
}

/// A function that both engines have.
#[derive(Clone, Copy)]
pub struct Callable {
    /// Its name.
    pub name: &'static str,
    /// Its number of arguments, negative for variable.
    pub args: i16,
    /// An aggregate.
    pub aggregate: bool,
}

/// Something that columns can be read from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name that qualifies its columns.
    pub alias: String,
    /// Columns, quoted.
    pub columns: Vec<String>,
}

/// The columns that an expression may name.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The sources.
    pub sources: Vec<Source>,
}

/// The generator.
pub struct Gen<'a> {
    /// Random choices.
    pub rng: Rng,
    /// The schema as of now.
    pub model: Model,
    /// All callable functions.
    pub callables: &'a [Callable],
    /// What is on.
    pub features: Features,
    /// Functions used in the statement at hand.
    pub used: BTreeMap<&'static str, usize>,
    /// Counts names.
    pub serial: usize,
    /// Text outside UTF-8 is allowed.
    pub utf8: bool,
    /// Values are few, and alike: equal under some affinity or collating sequence, and different under others.
    pub alike: bool,
    /// Common table expressions in reach: name and columns.
    pub ctes: Vec<Source>,
    /// No subqueries, no nondeterminism: an expression of the schema.
    pub schema_expr: bool,
    /// How many queries in FROM the next one may have inside.
    pub nest: usize,
    /// The next SELECT's columns are named c1, c2 and so on.
    pub aliases: bool,
}

const INTS: &[&str] = &[
    "0",
    "1",
    "1",
    "2",
    "2",
    "3",
    "3",
    "4",
    "5",
    "7",
    "10",
    "-1",
    "-2",
    "100",
    "12",
    "255",
    "256",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775807",
];
const REALS: &[&str] =
    &["0.5", "1.5", "2.0", "-0.5", "3.0", "1e3", "1e10", "-2.25", "0.1", "1e-5", "9.5e15", "1.0e300"];
const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'b'",
    "'A'",
    "'B'",
    "'abc'",
    "'ABC'",
    "'a '",
    "'1'",
    "'2'",
    "'1.0'",
    "'0x10'",
    "'12abc'",
    "' 3'",
    "'3 '",
    "'é'",
    "'日本'",
    "'1e2'",
    "'x''y'",
    "'-5'",
    "'zebra'",
    "'.5'",
    "'a_b%c'",
    "'😀z'",
    "'9223372036854775808'",
];
const ALIKE: &[&str] = &[
    "1",
    "1",
    "'1'",
    "1.0",
    "'1.0'",
    "' 1'",
    "x'31'",
    "2",
    "'2'",
    "2.5",
    "'2.5'",
    "0",
    "'0'",
    "''",
    "x''",
    "NULL",
    "10",
    "'10'",
    "9",
    "'9'",
    "'a'",
    "'A'",
    "'a '",
    "x'61'",
    "'b'",
    "-1",
    "'1e0'",
    "9007199254740993",
    "'9007199254740993'",
    "9007199254740992.0",
];
const BLOBS: &[&str] = &["x''", "x'00'", "x'61'", "x'6162'", "x'ff'", "x'3132'", "x'0001ff'"];

impl Gen<'_> {
    /// A new name with this letter.
    pub fn name(&mut self, letter: &str) -> String {
        self.serial += 1;
        format!("{letter}{}", self.serial)
    }

    /// One of several texts.
    pub fn one(&mut self, list: &[&str]) -> String {
        loop {
            let s = *self.rng.pick(list);
            // Functions of a UTF-16 database read blobs as UTF-16 text, which no page says and iolite does not do.
            if self.utf8 || !(s.starts_with("x'") || s.starts_with("jsonb(")) || list.len() == BLOBS.len() {
                return s.to_string();
            }
        }
    }

    /// An integer literal.
    pub fn int(&mut self) -> String {
        self.one(INTS)
    }

    /// A small one.
    pub fn small(&mut self) -> String {
        self.one(&["0", "1", "2", "3", "4", "5", "-1", "-2", "6"])
    }

    /// A text literal.
    pub fn text(&mut self) -> String {
        if self.utf8 && self.rng.chance(1) {
            return self.one(&["CAST(x'ff61' AS TEXT)", "CAST(x'61c3' AS TEXT)", "CAST(x'610062' AS TEXT)"]);
        }
        self.one(TEXTS)
    }

    /// Any literal.
    pub fn literal(&mut self) -> String {
        if self.alike {
            return self.one(ALIKE);
        }
        match self.rng.below(20) {
            0..=8 => self.int(),
            9..=11 => self.one(REALS),
            12..=16 => self.text(),
            17 if self.utf8 => self.one(BLOBS),
            _ => "NULL".into(),
        }
    }

    /// A value that mostly suits a column.
    pub fn value_for(&mut self, c: &Column, strict: bool) -> String {
        if !c.not_null && self.rng.chance(8) {
            return "NULL".into();
        }
        if c.pk && c.decltype == "INTEGER" {
            // The largest rowid makes the next one random.
            return self.rng.range(1, 60).to_string();
        }
        if !strict && (self.alike || self.rng.chance(12)) {
            return self.literal();
        }
        let ty = c.decltype.to_ascii_uppercase();
        let low = self.rng.chance(70);
        if ty.contains("INT") || ty.contains("BOOL") {
            if low { self.rng.below(30).to_string() } else { self.int() }
        } else if ty.contains("CHAR") || ty.contains("TEXT") || ty.contains("DATE") {
            self.text()
        } else if ty.contains("REAL") {
            if low { self.one(REALS) } else { self.int() }
        } else if ty.contains("BLOB") {
            if !self.utf8 {
                return if strict { "zeroblob(0)".into() } else { self.text() };
            }
            if strict || low { self.one(BLOBS) } else { self.literal() }
        } else {
            self.literal()
        }
    }

    /// A value for a column of a table: often that of a row of the parent, where the column refers to one.
    pub fn value_in(&mut self, t: &Table, c: &Column) -> String {
        if self.features.foreign_keys && self.rng.chance(65) {
            let key = t.references.iter().find_map(|r| {
                let to = &r.columns.iter().find(|(from, _)| *from == c.name)?.1;
                let parent = self.model.tables.iter().find(|p| p.schema == t.schema && p.name == r.parent)?;
                let to = to.clone().or_else(|| Some(parent.columns.iter().find(|c| c.pk)?.name.clone()))?;
                parent.columns.iter().any(|c| c.name == to).then(|| (parent.full(), quote(&to)))
            });
            if let Some((parent, key)) = key {
                let nth = self.rng.below(4);
                return format!(
                    "(SELECT {key} FROM {parent} ORDER BY 1 COLLATE BINARY LIMIT 1 OFFSET {nth})"
                );
            }
        }
        self.value_for(c, t.strict)
    }

    /// A table to read from.
    pub fn any_table(&mut self) -> Option<Table> {
        let n = self.model.tables.len();
        if n == 0 { None } else { Some(self.model.tables[self.rng.below(n)].clone()) }
    }

    /// A table to write to.
    pub fn base_table(&mut self) -> Option<Table> {
        let all: Vec<&Table> = self.model.tables.iter().filter(|t| !t.view).collect();
        if all.is_empty() { None } else { Some((*self.rng.pick(&all)).clone()) }
    }

    /// The columns of a table as a source.
    pub fn source(&self, t: &Table, alias: &str, rowid: bool) -> Source {
        let mut columns: Vec<String> = t.columns.iter().map(|c| quote(&c.name)).collect();
        if rowid && t.rowid {
            columns.push("rowid".into());
        }
        Source { alias: alias.into(), columns }
    }
}

impl Scope {
    /// One source.
    pub fn of(s: Source) -> Scope {
        Scope { sources: vec![s] }
    }

    /// A column, qualified.
    pub fn column(&self, rng: &mut Rng) -> Option<String> {
        let full: Vec<&Source> = self.sources.iter().filter(|s| !s.columns.is_empty()).collect();
        if full.is_empty() {
            return None;
        }
        // Inner sources stand last and are named more often.
        let s = if rng.chance(60) { full[full.len() - 1] } else { *rng.pick(&full) };
        let c = rng.pick(&s.columns);
        Some(if s.alias.is_empty() { c.clone() } else { format!("{}.{c}", s.alias) })
    }
}

//! What a database says about a table: columns, primary key, defaults.
//!
//! Columns that are computed from others do not count: changesets do not hold them. Where it is asked for, a table without
//! a primary key has its rowid as a first column, which is the key. `sqlite_stat1` has no primary key either; `tbl` and `idx`
//! stand for it.

use crate::record;
use crate::{literal, quoted};
use iolite_base::Result;
use iolite_ext::Host;
use iolite_value::Value;

/// The rowid as a column.
pub(crate) const ROWID: &str = "_rowid_";
/// The table of statistics, whose key may be NULL.
pub(crate) const STAT1: &str = "sqlite_stat1";

/// A table of a database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shape {
    pub columns: Vec<String>,
    /// For each column its place in the primary key, from 1, or 0.
    pub keys: Vec<u8>,
    /// The expressions of the defaults.
    defaults: Vec<Option<String>>,
    /// Where each column stands in the table.
    pub places: Vec<usize>,
    /// How many columns the table has, computed ones included.
    pub total: usize,
    /// The first column is the rowid.
    pub rowid: bool,
    pub stat1: bool,
}

impl Shape {
    /// The table `name` of database `db`: without columns if there is none.
    pub fn of(host: &dyn Host, db: &str, name: &str, rowid: bool) -> Result<Shape> {
        let mut s = Shape { stat1: name.eq_ignore_ascii_case(STAT1), ..Shape::default() };
        let rows = host.query(&format!("PRAGMA {}.table_xinfo({})", quoted(db), literal(name)), &[])?;
        s.total = rows.len();
        for (at, row) in rows.iter().enumerate() {
            let [_, column, _, _, default, key, hidden, ..] = row.as_slice() else { continue };
            if hidden.to_int() != 0 {
                continue;
            }
            let key =
                if s.stat1 { [1, 2].get(at).copied().unwrap_or(0) } else { key.to_int().clamp(0, 255) as u8 };
            s.add(&column.text_carried(), key, at);
            s.defaults.push((!default.is_null()).then(|| default.text_carried().into_owned()));
        }
        if rowid && !s.columns.is_empty() && !s.has_key() {
            s.columns.insert(0, ROWID.into());
            s.keys.insert(0, 1);
            s.defaults.insert(0, None);
            s.places.insert(0, 0);
            s.rowid = true;
        }
        Ok(s)
    }

    fn add(&mut self, column: &str, key: u8, place: usize) {
        self.columns.push(column.into());
        self.keys.push(key);
        self.places.push(place);
    }

    pub fn has_key(&self) -> bool {
        self.keys.iter().any(|k| *k != 0)
    }

    pub fn is_key(&self, n: usize) -> bool {
        self.keys.get(n).is_some_and(|k| *k != 0)
    }

    /// A column's name in SQL.
    pub fn column(&self, n: usize) -> String {
        if self.rowid && n == 0 { ROWID.into() } else { quoted(&self.columns[n]) }
    }

    /// All columns in SQL.
    pub fn list(&self) -> String {
        (0..self.columns.len()).map(|n| self.column(n)).collect::<Vec<_>>().join(", ")
    }

    /// The defaults of columns from `first` on, as fields, one after the other.
    pub fn defaults_from(&self, host: &dyn Host, first: usize) -> Result<Vec<u8>> {
        let list: Vec<&str> = self
            .defaults
            .get(first..)
            .unwrap_or_default()
            .iter()
            .map(|d| d.as_deref().unwrap_or("NULL"))
            .collect();
        let mut out = Vec::new();
        if !list.is_empty() {
            let rows = host.query(&format!("SELECT {}", list.join(", ")), &[])?;
            rows.iter().flatten().try_for_each(|v| record::put(&mut out, v))?;
        }
        Ok(out)
    }

    /// Whether a table of this kind can take changes of one that had `keys`: the same key, in the same order, and no
    /// fewer columns.
    pub fn takes(&self, keys: &[u8]) -> bool {
        self.keys.starts_with(keys)
    }

    /// The condition for the row whose key is bound to the parameters `?1` and so on, by column; NULL keys are not found.
    pub fn key_condition(&self) -> String {
        let terms: Vec<String> = (0..self.columns.len())
            .filter(|n| self.is_key(*n))
            .map(|n| match self.stat1 && n == 1 {
                // A blob without bytes stands for NULL.
                true => "idx IS (CASE WHEN ?2=X'' THEN NULL ELSE ?2 END)".into(),
                false => format!("{} = ?{}", self.column(n), n + 1),
            })
            .collect();
        terms.join(" AND ")
    }

    /// The value of column `n` as a changeset holds it: the table of statistics keeps no NULL in its key there.
    pub fn stored(&self, n: usize, v: Value) -> Result<Value> {
        if self.stat1 && n == 1 && v.is_null() { Value::blob(b"") } else { Ok(v) }
    }
}

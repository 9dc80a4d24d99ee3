//! The rows of a table as they are in the file: whether their records can be read, are in order, and hold what the columns allow.

use super::Check;
use super::fields::Fields;
use iolite_base::{Code, Encoding, Result};
use iolite_btree::{Btree, Cursor, TreeKind};
use iolite_catalog::Table;
use iolite_value::{Affinity, KeyInfo, Value, compare, record};
use std::cmp::Ordering;
use std::rc::Rc;

/// What a column allows.
pub struct Rule {
    /// The column's number in the table.
    pub column: usize,
    /// Its place in the record; none: it is computed.
    pub stored: Option<usize>,
    /// NULL is none of its values. Where a record ends before the column, only if it has no default.
    not_null: bool,
    has_default: bool,
    values: Values,
}

/// Which values other than NULL a column may hold.
enum Values {
    Any,
    /// Those of a STRICT table's type.
    Integers,
    Numbers,
    Texts,
    Blobs,
    /// No numbers: TEXT affinity would have made texts of them.
    NotNumbers,
    /// No texts that look like numbers.
    NotNumericTexts,
}

impl Rule {
    fn of(t: &Table, k: usize) -> Rule {
        let c = &t.columns[k];
        let alias = t.rowid_alias == Some(k);
        let values = match (t.strict, c.affinity) {
            // The row's number stands elsewhere.
            _ if alias => Values::Any,
            (true, _) => match &*c.decltype.to_ascii_uppercase() {
                "INT" | "INTEGER" => Values::Integers,
                "REAL" => Values::Numbers,
                "TEXT" => Values::Texts,
                "BLOB" => Values::Blobs,
                _ => Values::Any,
            },
            (false, Affinity::Text) => Values::NotNumbers,
            (false, Affinity::Numeric | Affinity::Integer | Affinity::Real) => Values::NotNumericTexts,
            (false, _) => Values::Any,
        };
        Rule {
            column: k,
            stored: t.storage.iter().position(|s| *s == k),
            not_null: c.not_null.is_some() && !alias,
            has_default: c.default.is_some(),
            values,
        }
    }

    fn asks_nothing(&self) -> bool {
        !self.not_null && matches!(self.values, Values::Any)
    }

    /// What is wrong with a field, as a complaint begins; `None` stands for a record that ends before it.
    #[inline]
    fn refuses(&self, field: Option<(u64, &[u8])>, enc: Encoding) -> Result<Option<&'static str>> {
        match field.filter(|f| !matches!(f.0, 0 | 10 | 11)) {
            Some((serial, bytes)) => self.values.refuse(serial, bytes, enc),
            None => Ok((self.not_null && (field.is_some() || !self.has_default)).then_some("NULL")),
        }
    }

    /// The same of a computed value.
    pub fn refuses_value(&self, v: &Value) -> Result<Option<&'static str>> {
        let serial = match v {
            Value::Null => return Ok(self.not_null.then_some("NULL")),
            Value::Int(_) => 1,
            Value::Real(_) => 7,
            Value::Text(..) => 13,
            Value::Blob(..) => 12,
        };
        match (&self.values, v) {
            (Values::NotNumericTexts, Value::Text(text, _)) => {
                self.values.refuse(serial, text, Encoding::Utf8)
            }
            (values, _) => values.refuse(serial, &[], Encoding::Utf8),
        }
    }
}

impl Values {
    #[inline]
    fn refuse(&self, serial: u64, bytes: &[u8], enc: Encoding) -> Result<Option<&'static str>> {
        let (int, real) = (matches!(serial, 1..=6 | 8 | 9), serial == 7);
        let text = serial >= 13 && serial & 1 == 1;
        let blob = serial >= 12 && serial & 1 == 0;
        Ok(match self {
            Values::Any => None,
            Values::Integers => (!int).then_some(OF_STRICT),
            Values::Numbers => (!int && !real).then_some(OF_STRICT),
            Values::Texts => (!text).then_some(OF_STRICT),
            Values::Blobs => (!blob).then_some(OF_STRICT),
            Values::NotNumbers => (int || real).then_some("NUMERIC"),
            Values::NotNumericTexts if text => {
                let mut v = record::value_of(serial, bytes, enc)?;
                Affinity::Numeric.apply(&mut v)?;
                (!matches!(v, Value::Text(..))).then_some("TEXT")
            }
            Values::NotNumericTexts => None,
        })
    }
}

/// The beginning of a complaint that names the column's type.
const OF_STRICT: &str = "non-";

/// The walk through a table.
pub struct Walk {
    /// Stands on the row at hand.
    pub cursor: Cursor,
    pub rec: Vec<u8>,
    pub fields: Fields,
    /// Those of columns that allow not everything, in the columns' order.
    pub rules: Vec<Rule>,
    /// As many fields as are looked at.
    looked_at: usize,
    /// The order of a table without rowids, where it is looked at; and how many fields it is of.
    order: Option<(Rc<KeyInfo>, usize)>,
    before: Vec<u8>,
    enc: Encoding,
    begun: bool,
}

impl Walk {
    pub(super) fn new(c: &Check<'_>, b: &Btree, t: &Table) -> Result<Walk> {
        let key = t.primary_index().map(|i| c.key(t, &i).map(|k| (k, i.key_len))).transpose()?;
        let kind = if key.is_some() { TreeKind::Index } else { TreeKind::Table };
        let alias_is_last = t.rowid_alias.is_some() && t.storage.last().copied() == t.rowid_alias;
        Ok(Walk {
            cursor: b.cursor(t.root.get(), kind, false)?,
            rec: Vec::new(),
            fields: Fields::default(),
            rules: (0..t.columns.len()).map(|k| Rule::of(t, k)).filter(|r| !r.asks_nothing()).collect(),
            looked_at: t.storage.len() - alias_is_last as usize,
            order: key.filter(|_| !c.quick),
            before: Vec::new(),
            enc: c.conn.0.encoding(),
            begun: false,
        })
    }

    /// Goes to the next row. `SQLITE_CORRUPT` for a record that is none.
    pub fn next(&mut self) -> Result<bool> {
        if self.order.is_some() && self.begun {
            std::mem::swap(&mut self.before, &mut self.rec);
        }
        let there = if self.begun { self.cursor.next()? } else { self.cursor.first()? };
        self.begun = true;
        if !there {
            return Ok(false);
        }
        self.cursor.read_entry(&mut self.rec)?;
        if self.fields.read(&self.rec, self.looked_at) { Ok(true) } else { Err(Code::Corrupt.into()) }
    }

    /// Whether the row does not come behind the one before it.
    pub fn is_out_of_order(&self) -> Result<bool> {
        match &self.order {
            Some((key, n)) if !self.before.is_empty() => {
                Ok(compare::records(&self.before, &self.rec, *n, key)? != Ordering::Less)
            }
            _ => Ok(false),
        }
    }

    /// What is wrong with a stored field.
    #[inline]
    pub fn refused(&self, r: &Rule, at: usize) -> Result<Option<&'static str>> {
        r.refuses(self.fields.get(&self.rec, at), self.enc)
    }
}

/// The complaint about a column.
pub fn complaint(t: &Table, column: usize, wrong: &str) -> String {
    let c = &t.columns[column];
    let ty = if wrong == OF_STRICT { c.decltype.to_ascii_uppercase() } else { String::new() };
    format!("{wrong}{ty} value in {}.{}", t.name, c.name)
}

//! Whether an index holds the entries of its table and no others, without looking for any of them.
//!
//! An entry is a row of values; each row of values has a hash under a key drawn for this check. The hashes of the entries that the
//! table's rows should have are summed while the rows are walked, and those of the entries that the index has while it is walked in turn,
//! with a look at their order and at what is to be unique. If the sums and numbers are equal, so are the two sets, but for one chance in
//! 2^64. Both walks go from page to page where a search for each row would go all over the index.
//!
//! Sums only ever say that all is well. Where they do not, whatever the reason, each row is looked up in the index, and that tells what is
//! wrong. Values that are equal have equal hashes whatever their serial types are: an integral REAL is the integer. (The hash of
//! `base::hash` makes one of several short texts, which does for tables in memory and not for this.)
//! This does not know expressions or conditions: indexes with these are always looked up.

use super::Check;
use super::fields::Fields;
use iolite_base::{Code, Result};
use iolite_btree::{Btree, TreeKind};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_value::{compare, record};
use std::cmp::Ordering;
use std::rc::Rc;

/// Where a field of an entry is found in the table's record.
enum Field {
    /// In the record, at this place; and whether a record that ends before it stands for another value than NULL.
    Stored(usize, bool),
    Rowid,
}

/// What the rows of a table say about one of its indexes.
pub struct Sum {
    pub index: Rc<Index>,
    fields: Vec<Field>,
    total: Total,
    /// A row was met whose entry is not known.
    unknown: bool,
}

#[derive(Default, PartialEq, Eq)]
struct Total {
    sum: u64,
    entries: u64,
}

impl Total {
    fn add(&mut self, hash: u64) {
        self.sum = self.sum.wrapping_add(hash);
        self.entries += 1;
    }
}

impl Sum {
    /// For an index whose fields are all in the table's records.
    pub fn new(t: &Table, index: &Rc<Index>) -> Option<Sum> {
        if index.filter.is_some() {
            return None;
        }
        let field = |source: &ColumnSource| match source {
            ColumnSource::Rowid => Some(Field::Rowid),
            ColumnSource::Column(k) if t.rowid_alias == Some(*k) => Some(Field::Rowid),
            ColumnSource::Column(k) => {
                let at = t.storage.iter().position(|s| s == k)?;
                Some(Field::Stored(at, t.columns[*k].default.is_some()))
            }
            ColumnSource::Expr(_) => None,
        };
        let fields: Option<Vec<Field>> = index.columns.iter().map(|c| field(&c.source)).collect();
        Some(Sum { index: index.clone(), fields: fields?, total: Total::default(), unknown: false })
    }

    /// A row of the table.
    pub fn row(&mut self, key: u64, rec: &[u8], fields: &Fields, rowid: i64) {
        let mut hash = Hash(key);
        for f in &self.fields {
            match *f {
                Field::Rowid => hash.int(rowid),
                Field::Stored(at, replaced) => match fields.get(rec, at) {
                    Some((serial, bytes)) => hash.value(serial, bytes),
                    None if replaced => self.unknown = true,
                    None => hash.null(),
                },
            }
        }
        self.total.add(hash.0);
    }
}

impl Check<'_> {
    /// Whether the entries of the index are those of the rows that were summed, in order, and unique where they have to be. `None`: these
    /// rows do not tell.
    pub(super) fn agrees(&mut self, b: &Btree, t: &Table, s: &Sum, hash_key: u64) -> Result<Option<bool>> {
        if s.unknown {
            return Ok(None);
        }
        match self.entries(b, t, &s.index, hash_key) {
            Err(e) if e.code().primary() == Code::Corrupt => Ok(Some(false)),
            found => Ok(Some(found?.is_some_and(|total| total == s.total))),
        }
    }

    /// The sum of an index's entries; `None` where two of them are not in order, or equal and must not be.
    fn entries(&mut self, b: &Btree, t: &Table, i: &Index, hash_key: u64) -> Result<Option<Total>> {
        let key = self.key(t, i)?;
        let n = i.columns.len();
        let mut c = b.cursor(i.root.get(), TreeKind::Index, false)?;
        let (mut last, mut rec) = (Vec::new(), Vec::new());
        let (mut fields, mut total) = (Fields::default(), Total::default());
        let mut more = c.first()?;
        while more {
            self.another()?;
            c.read_entry(&mut rec)?;
            if !fields.read(&rec, n) {
                return Ok(None);
            }
            let mut hash = Hash(hash_key);
            for k in 0..n {
                match fields.get(&rec, k) {
                    Some((serial, bytes)) => hash.value(serial, bytes),
                    None => return Ok(None),
                }
            }
            total.add(hash.0);
            if total.entries > 1 {
                let (same, order) = compare::first_difference(&last, &rec, n, &key)?;
                let repeated =
                    i.unique.is_some() && same >= i.key_len && !compare::has_null(&rec, i.key_len)?;
                if order != Ordering::Less || repeated {
                    return Ok(None);
                }
            }
            std::mem::swap(&mut last, &mut rec);
            more = c.next()?;
        }
        Ok(Some(total))
    }
}

/// The hash of a row of values: each word is multiplied into it, and the two halves of the product put together.
struct Hash(u64);

impl Hash {
    #[inline]
    fn word(&mut self, w: u64) {
        let product = u128::from(self.0 ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(29);
    }

    fn null(&mut self) {
        self.word(1);
    }

    #[inline]
    fn int(&mut self, i: i64) {
        self.word(2);
        self.word(i as u64);
    }

    fn real(&mut self, r: f64) {
        // Both bounds are powers of two: whatever integral value lies between them is an i64.
        let integral =
            r.trunc() == r && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&r);
        if r.is_nan() {
            self.null();
        } else if integral {
            self.int(r as i64);
        } else {
            self.word(3);
            self.word(r.to_bits());
        }
    }

    #[inline]
    fn value(&mut self, serial: u64, bytes: &[u8]) {
        match serial {
            1..=6 | 8 | 9 => self.int(record::read_int(serial, bytes).unwrap_or(0)),
            7 => self.real(record::read_real(bytes)),
            0 | 10 | 11 => self.null(),
            _ => self.bytes(serial, bytes),
        }
    }

    /// A text or a blob: the serial type says which, and how long it is.
    #[inline]
    fn bytes(&mut self, serial: u64, bytes: &[u8]) {
        self.word(serial);
        let mut words = bytes.chunks_exact(8);
        for w in &mut words {
            self.word(u64::from_le_bytes(w.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        let rest = match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => rest.iter().fold(0, |w, b| w << 8 | u64::from(*b)),
        };
        self.word(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_base::Encoding;
    use iolite_value::Value;

    fn hash(values: &[Value]) -> u64 {
        let mut rec = Vec::new();
        record::encode(values, Encoding::Utf8, &mut rec).unwrap();
        let mut fields = Fields::default();
        assert!(fields.read(&rec, values.len()));
        let mut h = Hash(7);
        for k in 0..values.len() {
            let (serial, bytes) = fields.get(&rec, k).unwrap();
            h.value(serial, bytes);
        }
        h.0
    }

    #[test]
    fn what_is_equal_has_one_hash_and_what_is_not_has_others() {
        assert_eq!(hash(&[Value::Int(5)]), hash(&[Value::real(5.0)]));
        assert_eq!(hash(&[Value::Int(0)]), hash(&[Value::real(-0.0)]));
        assert_eq!(hash(&[Value::Int(i64::MIN)]), hash(&[Value::real(i64::MIN as f64)]));
        let text = |s: &str| Value::text(s).unwrap();
        let different = [
            vec![Value::Null],
            vec![Value::Int(0)],
            vec![Value::Int(1)],
            vec![Value::real(1.5)],
            vec![Value::real(9.3e18)],
            vec![text("")],
            vec![text("a")],
            vec![text("ab")],
            vec![text("ba")],
            vec![text("abcd")],
            vec![text("abcdefg")],
            vec![text("abcdeff")],
            vec![text("abcdefgh")],
            vec![text("abcdefghi")],
            vec![text("a"), text("b")],
            vec![text("b"), text("a")],
            vec![text("ab"), text("")],
            vec![Value::Null, Value::Null],
            vec![Value::Int(1), Value::Int(2)],
            vec![Value::Int(2), Value::Int(1)],
        ];
        let hashes: std::collections::HashSet<u64> = different.iter().map(|v| hash(v)).collect();
        assert_eq!(hashes.len(), different.len());
    }
}

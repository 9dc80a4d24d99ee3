//! Results of nested queries, and the sets that IN makes of it.

use iolite_base::Result;
use iolite_base::hash::FastSet;
use iolite_value::{Affinity, Collation, Value};
use std::collections::HashSet;

/// The result of a nested query, run before the query around it.
pub(crate) enum NestedResult {
    /// It depends on the row.
    Correlated,
    Value(Value),
    Rows(Vec<Value>),
}

/// The values of `IN (SELECT ...)`.
pub(crate) struct ValueSet {
    pub ints: FastSet<i64>,
    others: HashSet<Vec<u8>>,
    null: bool,
    collation: Collation,
}

/// Bytes that values share exactly if they compare equal; integers stand for themselves.
fn image(v: &Value, coll: &Collation) -> std::result::Result<i64, Vec<u8>> {
    let tagged = |tag: u8, b: &[u8]| {
        let mut out = vec![tag];
        out.extend_from_slice(b);
        out
    };
    match v {
        Value::Int(i) => Ok(*i),
        Value::Real(r) => {
            let i = *r as i64;
            match iolite_value::compare::int_real(i, *r).is_eq() {
                true => Ok(i),
                false => Err(tagged(1, &r.to_bits().to_le_bytes())),
            }
        }
        Value::Text(t, _) => Err(match coll.fold(t) {
            Some(f) => tagged(2, &f),
            None => tagged(2, t),
        }),
        Value::Blob(b, ..) => Err(tagged(3, b)),
        Value::Null => Err(Vec::new()),
    }
}

impl ValueSet {
    /// The set of some values.
    pub fn new(rows: &[Value], affinity: Affinity, coll: &Collation) -> Result<ValueSet> {
        let mut set = ValueSet {
            ints: FastSet::default(),
            others: HashSet::new(),
            null: false,
            collation: coll.clone(),
        };
        for v in rows {
            let mut v = v.clone();
            affinity.apply(&mut v)?;
            match image(&v, coll) {
                _ if v.is_null() => set.null = true,
                Ok(i) => {
                    set.ints.insert(i);
                }
                Err(b) => {
                    set.others.insert(b);
                }
            }
        }
        Ok(set)
    }

    /// Whether nothing is in it, NULL included.
    pub fn is_empty(&self) -> bool {
        self.ints.is_empty() && self.others.is_empty() && !self.null
    }

    /// Whether all in it are integers, so that it can be tested by them.
    pub fn only_ints(&self) -> bool {
        self.others.is_empty() && !self.null && !self.ints.is_empty()
    }

    /// Whether a value, converted before, is in it; `None` is NULL.
    pub fn has(&self, v: &Value) -> Option<bool> {
        if self.is_empty() {
            return Some(false);
        }
        if v.is_null() {
            return None;
        }
        let found = match image(v, &self.collation) {
            Ok(i) => self.ints.contains(&i),
            Err(b) => self.others.contains(&b),
        };
        if found {
            Some(true)
        } else if self.null {
            None
        } else {
            Some(false)
        }
    }
}

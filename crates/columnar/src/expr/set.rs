//! Results of nested queries, and the sets that IN makes of them and of long lists.

use crate::store::chunk::Field;
use iolite_base::Result;
use iolite_base::hash::FastSet;
use iolite_value::compare::int_real;
use iolite_value::{Affinity, Collation, Value};
use std::borrow::Cow;

/// The result of a nested query, run before the query around it.
pub(crate) enum NestedResult {
    /// It depends on the row.
    Correlated,
    Value(Value),
    Rows(Vec<Value>),
}

/// The values behind IN, where there are more than a few.
pub(crate) struct ValueSet {
    pub ints: FastSet<i64>,
    /// The bits of reals that are no integers.
    reals: FastSet<u64>,
    /// Folded.
    texts: FastSet<Box<[u8]>>,
    blobs: FastSet<Box<[u8]>>,
    null: bool,
    affinity: Affinity,
    collation: Collation,
}

/// The integer that a real is.
fn whole(r: f64) -> Option<i64> {
    let i = r as i64;
    int_real(i, r).is_eq().then_some(i)
}

impl ValueSet {
    /// The set of some values, which an affinity converts, as it does what is looked for.
    pub fn new<'v>(
        values: impl IntoIterator<Item = &'v Value>,
        affinity: Affinity,
        coll: &Collation,
    ) -> Result<ValueSet> {
        let mut set = ValueSet {
            ints: FastSet::default(),
            reals: FastSet::default(),
            texts: FastSet::default(),
            blobs: FastSet::default(),
            null: false,
            affinity,
            collation: coll.clone(),
        };
        for v in values {
            let mut v = Cow::Borrowed(v);
            if set.converts(Field::of(&v)) {
                set.affinity.apply(v.to_mut())?;
            }
            match Field::of(&v) {
                Field::Null => set.null = true,
                Field::Int(i) => _ = set.ints.insert(i),
                Field::Real(r) => match whole(r) {
                    Some(i) => _ = set.ints.insert(i),
                    None => _ = set.reals.insert(r.to_bits()),
                },
                Field::Text(t) => _ = set.texts.insert(coll.fold(t).map_or_else(|| t.into(), Into::into)),
                Field::Blob(b) => _ = set.blobs.insert(b.into()),
            }
        }
        Ok(set)
    }

    /// Whether a value has to be converted before it is looked for.
    fn converts(&self, f: Field<'_>) -> bool {
        match self.affinity {
            Affinity::Text => matches!(f, Field::Int(_) | Field::Real(_)),
            Affinity::Real => matches!(f, Field::Int(_) | Field::Text(_)),
            a => a.is_numeric() && matches!(f, Field::Text(_)),
        }
    }

    /// Whether nothing is in it, NULL included.
    pub fn is_empty(&self) -> bool {
        !self.null
            && self.ints.is_empty()
            && self.reals.is_empty()
            && self.texts.is_empty()
            && self.blobs.is_empty()
    }

    /// Whether all in it are integers, so that integers can be tested by them.
    pub fn only_ints(&self) -> bool {
        let others = !self.reals.is_empty() || !self.texts.is_empty() || !self.blobs.is_empty();
        !others && !self.null && !self.ints.is_empty() && self.affinity != Affinity::Text
    }

    /// What is in it, if that is texts alone.
    pub fn only_texts(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let others = !self.ints.is_empty() || !self.reals.is_empty() || !self.blobs.is_empty();
        (!others && !self.null).then(|| self.texts.iter().map(|t| &**t))
    }

    /// Whether a value is in it; `None` is NULL.
    pub fn has(&self, f: Field<'_>) -> Result<Option<bool>> {
        if self.converts(f) {
            let mut v = f.value()?;
            self.affinity.apply(&mut v)?;
            return Ok(self.has_converted(Field::of(&v)));
        }
        Ok(self.has_converted(f))
    }

    fn has_converted(&self, f: Field<'_>) -> Option<bool> {
        if self.is_empty() {
            return Some(false);
        }
        let found = match f {
            Field::Null => return None,
            Field::Int(i) => self.ints.contains(&i),
            Field::Real(r) => match whole(r) {
                Some(i) => self.ints.contains(&i),
                None => self.reals.contains(&r.to_bits()),
            },
            Field::Text(t) => match self.collation.fold(t) {
                Some(folded) => self.texts.contains(&*folded),
                None => self.texts.contains(t),
            },
            Field::Blob(b) => self.blobs.contains(b),
        };
        if found { Some(true) } else { (!self.null).then_some(false) }
    }
}

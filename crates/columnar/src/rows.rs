//! Result rows: duplicates removed, sorted, cut. The values of all rows lie in one vector.

use crate::chunk::Dict;
use crate::evict::within;
use crate::expr::{Eval, Ex, Row};
use crate::group::distinct_code;
use iolite_base::{Result, alloc};
use iolite_value::compare::KeyField;
use iolite_value::{Collation, Value, compare};
use std::collections::HashSet;

/// Collects result rows.
pub(crate) struct Rows<'q> {
    result: &'q [Ex],
    order: &'q [(Ex, KeyField)],
    distinct: Option<Seen<'q>>,
    /// Rows wanted; all if `None`.
    limit: Option<usize>,
    rows: usize,
    values: Vec<Value>,
    /// What rows are sorted by.
    keys: Vec<Value>,
    /// Bytes of texts and blobs among all these, or of such as were there.
    held: usize,
    /// The first key of the last row that is still wanted, if it is an integer.
    worst: Option<i64>,
    /// Its image ([`prefix`]).
    worst_image: Option<u64>,
}

/// The rows that came before: how they compare, the numbers of their values, their combinations.
type Seen<'q> = (&'q [Collation], Dict, HashSet<Vec<u32>>);

/// The rows of a query, ready to be taken.
pub struct Answer {
    values: Vec<Value>,
    width: usize,
    /// Where each row is; in order if `None`.
    order: Option<Vec<u32>>,
    rows: usize,
    next: usize,
}

impl<'q> Rows<'q> {
    /// Begins.
    pub fn new(
        result: &'q [Ex],
        order: &'q [(Ex, KeyField)],
        distinct: Option<&'q [Collation]>,
        limit: Option<usize>,
    ) -> Rows<'q> {
        let distinct = distinct.map(|c| (c, Dict::default(), HashSet::new()));
        Rows {
            result,
            order,
            distinct,
            limit,
            rows: 0,
            values: Vec::new(),
            keys: Vec::new(),
            held: 0,
            worst: None,
            worst_image: None,
        }
    }

    /// Whether no further row is wanted.
    pub fn full(&self) -> bool {
        self.order.is_empty() && self.limit.is_some_and(|n| self.rows >= n)
    }

    /// Takes all rows at once, in order: `fill` puts their values into a vector, or leaves it alone.
    pub fn take_all(
        &mut self,
        n: usize,
        fill: impl FnOnce(&[Ex], &mut Vec<Value>) -> Result<bool>,
    ) -> Result<bool> {
        let fits = within(n * self.result.len() * size_of::<Value>()).is_ok();
        if self.rows > 0 || self.distinct.is_some() || !self.order.is_empty() || self.limit.is_some() || !fits
        {
            return Ok(false);
        }
        let done = fill(self.result, &mut self.values)?;
        self.rows = if done { n } else { 0 };
        Ok(done)
    }

    /// Adds a row.
    pub fn add(&mut self, row: &dyn Row, eval: &Eval<'_>) -> Result<()> {
        if self.full() {
            return Ok(());
        }
        // A row that sorts behind the last one wanted need not be computed.
        if let (Some(worst), Some((e, f)), None) = (self.worst_image, self.order.first(), &self.distinct)
            && prefix(&eval.value(e, row)?, f) > worst
        {
            return Ok(());
        }
        let start = self.values.len();
        alloc::reserve(&mut self.values, self.result.len())?;
        for e in self.result {
            self.values.push(eval.value(e, row)?);
        }
        if let Some((colls, dict, seen)) = &mut self.distinct {
            let mut key = Vec::with_capacity(colls.len());
            for (v, c) in self.values[start..].iter().zip(*colls) {
                key.push(distinct_code(dict, v, c)?);
            }
            if !seen.insert(key) {
                self.values.truncate(start);
                return Ok(());
            }
        }
        alloc::reserve(&mut self.keys, self.order.len())?;
        for (e, _) in self.order {
            self.keys.push(eval.value(e, row)?);
        }
        let bytes = |v: &Value| match v {
            Value::Text(b, _) | Value::Blob(b, _) => b.len(),
            _ => 0,
        };
        let keys = &self.keys[self.keys.len() - self.order.len()..];
        self.held += self.values[start..].iter().chain(keys).map(bytes).sum::<usize>();
        self.rows += 1;
        if let Some(n) = self.limit
            && !self.order.is_empty()
            && self.rows >= 2 * n + 1024
        {
            self.cut(n)?;
        }
        let seen = self.distinct.as_ref().map_or(0, |d| d.1.held() + d.2.len() * 64);
        within((self.values.len() + self.keys.len()) * size_of::<Value>() + self.held + seen)
    }

    /// The rows' places, sorted; equal ones stay as they came.
    fn sorted(&self) -> Result<Vec<u32>> {
        let (n, keys, order) = (self.order.len(), &self.keys, self.order);
        // An image of the first key decides most comparisons.
        let mut at: Vec<(u64, u32)> = crate::chunk::room(self.rows)?;
        at.extend((0..self.rows).map(|i| (prefix(&keys[i * n], &order[0].1), i as u32)));
        at.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| {
                let (x, y) = (&keys[a.1 as usize * n..][..n], &keys[b.1 as usize * n..][..n]);
                for ((x, y), (_, f)) in x.iter().zip(y).zip(order) {
                    let o = compare::compare(x, y, &f.coll);
                    if o.is_ne() {
                        return f.direct(o, x.is_null() || y.is_null());
                    }
                }
                a.1.cmp(&b.1)
            })
        });
        Ok(at.into_iter().map(|a| a.1).collect())
    }

    /// Where the first key of the sort is an integer column's and only the first rows are wanted: the value beyond which
    /// a row has no chance, and whether that means above it.
    pub fn limit_of_first(&self) -> Option<(i64, bool)> {
        let (_, f) = self.order.first()?;
        match (self.limit, self.worst) {
            (Some(_), Some(w)) if self.distinct.is_none() => Some((w, !f.desc)),
            _ => None,
        }
    }

    /// The first expression that rows are sorted by.
    pub fn first_key(&self) -> Option<&'q Ex> {
        self.order.first().map(|o| &o.0).filter(|_| self.limit.is_some())
    }

    /// Keeps the first `n` rows in order.
    fn cut(&mut self, n: usize) -> Result<()> {
        let mut at = self.sorted()?;
        at.truncate(n);
        let taken = |from: &mut Vec<Value>, width: usize| -> Result<Vec<Value>> {
            let mut out = crate::chunk::room(n * width)?;
            for i in &at {
                out.extend(from[*i as usize * width..][..width].iter_mut().map(std::mem::take));
            }
            Ok(out)
        };
        self.values = taken(&mut self.values, self.result.len())?;
        self.keys = taken(&mut self.keys, self.order.len())?;
        self.rows = at.len();
        self.held = 0;
        let last = self.keys.chunks(self.order.len()).last().and_then(|k| k.first());
        self.worst_image = last.filter(|_| self.rows == n).map(|v| prefix(v, &self.order[0].1));
        self.worst = match self.keys.chunks(self.order.len()).last().and_then(|k| k.first()) {
            Some(Value::Int(i)) if self.rows == n => Some(*i),
            _ => None,
        };
        Ok(())
    }

    /// The rows.
    pub fn finish(self) -> Result<Answer> {
        let order = if self.order.is_empty() { None } else { Some(self.sorted()?) };
        let rows = self.limit.map_or(self.rows, |n| n.min(self.rows));
        Ok(Answer { width: self.result.len(), values: self.values, order, rows, next: 0 })
    }
}

/// An image of a value that sorts as the value does, as far as it goes: different images decide, equal ones do not.
fn prefix(v: &Value, f: &KeyField) -> u64 {
    let real = |r: f64| {
        let bits = r.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        1 << 62 | ordered >> 2
    };
    let p = match v {
        Value::Null => return if f.desc != f.nulls_large { u64::MAX } else { 0 },
        // Equal images for numbers that are near each other: the comparison decides then.
        Value::Int(i) => real(*i as f64),
        Value::Real(r) => real(*r + 0.0),
        Value::Text(b, _) if f.coll == Collation::Binary => {
            let mut first = [0u8; 8];
            let n = b.len().min(8);
            first[..n].copy_from_slice(&b[..n]);
            2 << 62 | u64::from_be_bytes(first) >> 2
        }
        Value::Text(..) => 2 << 62,
        Value::Blob(..) => 3 << 62,
    };
    if f.desc { !p } else { p }
}

impl Answer {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Puts the next row into `out`, or answers `false`.
    pub fn next(&mut self, out: &mut [Value]) -> bool {
        if self.next >= self.rows {
            return false;
        }
        let row = self.order.as_ref().map_or(self.next, |o| o[self.next] as usize);
        self.next += 1;
        let values = &mut self.values[row * self.width..][..self.width];
        for (to, v) in out.iter_mut().zip(values) {
            *to = std::mem::take(v);
        }
        true
    }
}

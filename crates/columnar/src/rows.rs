//! Result rows: duplicates removed, sorted, cut.

use crate::chunk::Dict;
use crate::expr::{Eval, Ex, Row};
use crate::group::distinct_code;
use iolite_base::{Code, Result, alloc};
use iolite_value::compare::KeyField;
use iolite_value::{Collation, Value, compare};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Collects result rows.
pub(crate) struct Rows<'q> {
    result: &'q [Ex],
    order: &'q [(Ex, KeyField)],
    distinct: Option<(&'q [Collation], Dict, HashSet<Vec<u32>>)>,
    /// Rows wanted; all if `None`.
    limit: Option<usize>,
    /// Sort keys and row.
    rows: Vec<(Vec<Value>, Vec<Value>)>,
}

/// Beyond this many values the rows go to a program, which need not hold them all.
const MOST_VALUES: usize = 20_000_000;

impl<'q> Rows<'q> {
    /// Begins.
    pub fn new(
        result: &'q [Ex],
        order: &'q [(Ex, KeyField)],
        distinct: Option<&'q [Collation]>,
        limit: Option<usize>,
    ) -> Rows<'q> {
        let distinct = distinct.map(|c| (c, Dict::default(), HashSet::new()));
        Rows { result, order, distinct, limit, rows: Vec::new() }
    }

    /// Whether no further row is wanted.
    pub fn full(&self) -> bool {
        self.order.is_empty() && self.limit.is_some_and(|n| self.rows.len() >= n)
    }

    /// Adds a row.
    pub fn add(&mut self, row: &dyn Row, eval: &Eval<'_>) -> Result<()> {
        if self.full() {
            return Ok(());
        }
        let mut out = Vec::with_capacity(self.result.len());
        for e in self.result {
            out.push(eval.value(e, row)?);
        }
        if let Some((colls, dict, seen)) = &mut self.distinct {
            let mut key = Vec::with_capacity(out.len());
            for (v, c) in out.iter().zip(*colls) {
                key.push(distinct_code(dict, v, c)?);
            }
            if !seen.insert(key) {
                return Ok(());
            }
        }
        let mut keys = Vec::with_capacity(self.order.len());
        for (e, _) in self.order {
            keys.push(eval.value(e, row)?);
        }
        alloc::reserve(&mut self.rows, 1)?;
        self.rows.push((keys, out));
        if let Some(n) = self.limit
            && !self.order.is_empty()
            && self.rows.len() >= 2 * n + 1024
        {
            self.sort();
            self.rows.truncate(n);
        }
        if self.rows.len() * self.result.len().max(1) > MOST_VALUES {
            return Err(Code::Internal.into());
        }
        Ok(())
    }

    fn sort(&mut self) {
        let order = self.order;
        self.rows.sort_by(|a, b| {
            for ((x, y), (_, f)) in a.0.iter().zip(&b.0).zip(order) {
                let o = compare::compare(x, y, &f.coll);
                if o.is_ne() {
                    return f.direct(o, x.is_null() || y.is_null());
                }
            }
            Ordering::Equal
        });
    }

    /// The rows.
    pub fn finish(mut self) -> Vec<Vec<Value>> {
        if !self.order.is_empty() {
            self.sort();
        }
        if let Some(n) = self.limit {
            self.rows.truncate(n);
        }
        self.rows.into_iter().map(|r| r.1).collect()
    }
}

//! Compounds whose arms are merged: UNION, EXCEPT and INTERSECT need equal rows next to each other, ORDER BY needs all rows in
//! one order. Each arm is asked for its rows in an order, and pairs of arms are merged as SQLite pairs them.
//!
//! What this does not know: how an arm comes to its order (`planner`).

use crate::bound::*;
use crate::plan::{Merge, MergePlan, MergedPair};
use iolite_value::Collation;
use iolite_value::compare::KeyField;

/// More arms than this under one operator are merged in two halves.
const IN_A_ROW: usize = 3;

/// How the arms of a compound are merged: those up to the last operator that removes rows, all if there is an ORDER BY.
pub(crate) fn of(s: &Select, binary: &Collation) -> Option<MergePlan> {
    let last = match s.order_by.is_empty() {
        true => s.ops.iter().rposition(|o| *o != CompoundOp::UnionAll)? + 1,
        false => s.cores.len() - 1,
    };
    let by = s.order_by.iter().filter_map(|t| Some((t.column?, t.key_field()))).collect();
    let mut m = Merger { s, binary, orders: vec![Vec::new(); s.cores.len()] };
    let root = m.merged(0, last, by);
    Some(MergePlan { ops: s.ops.clone(), root, arms: last + 1, orders: m.orders })
}

struct Merger<'a> {
    s: &'a Select,
    binary: &'a Collation,
    orders: Vec<Vec<OrderTerm>>,
}

impl Merger<'_> {
    /// Arms `first..=last`, by an order of result columns.
    fn merged(&mut self, first: usize, last: usize, mut by: Vec<(usize, KeyField)>) -> Merge {
        if first == last {
            let expr = |k: usize| self.s.cores[first].result[k].clone();
            let term = |(k, f): (usize, KeyField)| OrderTerm {
                expr: expr(k),
                column: Some(k),
                desc: f.desc,
                nulls_large: f.nulls_large,
                collation: f.coll,
            };
            self.orders[first] = by.into_iter().map(term).collect();
            return Merge::Arm(first);
        }
        let op = self.s.ops[last - 1];
        let mut same = Vec::new();
        if op != CompoundOp::UnionAll {
            same = (0..self.s.columns.len()).map(|k| self.collation(first, last, k)).collect();
            for (k, coll) in same.iter().enumerate() {
                // What ORDER BY takes for equal may be two rows.
                if by.iter().all(|b| b.0 != k || b.1.coll != *coll) {
                    by.push((k, KeyField { coll: coll.clone(), ..KeyField::default() }));
                }
            }
        }
        let alike = self.s.ops[first..last].iter().rev().take_while(|o| **o == op).count() + 1;
        let halved = matches!(op, CompoundOp::Union | CompoundOp::UnionAll) && alike > IN_A_ROW;
        let right = if halved { last - (alike - 1) / 2 } else { last };
        let left = self.merged(first, right - 1, by.clone());
        let right = self.merged(right, last, by.clone());
        Merge::Both(Box::new(MergedPair { op, by, same, left, right }))
    }

    /// How a column of some arms compares: as in the first that says it.
    fn collation(&self, first: usize, last: usize, k: usize) -> Collation {
        let arms = self.s.cores[first..=last].iter();
        let mut said = arms.filter_map(|c| match c.values.len() {
            0 => c.result[k].collation().map(|c| c.0),
            1 => c.values.fields()[k].collation().map(|c| c.0),
            // The columns of several rows are a table's.
            _ => Some(self.binary.clone()),
        });
        said.next().unwrap_or_else(|| self.binary.clone())
    }
}

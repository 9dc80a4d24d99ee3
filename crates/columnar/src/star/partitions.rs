//! The answer of a query whose groups had no room: those that were taken in first, and those whose rows waited.
//!
//! Each lot of groups is written with its keys and aggregates, sorted by the keys; merged, they come in the order in
//! which all groups would have come.

use super::scope::JoinScope;
use crate::expr::{Ex, Row};
use crate::op::result::{Answer, Rows};
use crate::op::spill::{PARTS, Partitions};
use crate::star::group::Groups;
use crate::star::scope::Run;
use iolite_base::{Code, Result};
use iolite_value::compare::KeyField;
use iolite_value::{Value, compare};

/// A group as it was written.
struct Written<'v> {
    values: &'v [Value],
    keys: usize,
    aggs: usize,
}

impl Row for Written<'_> {
    fn slot(&self, _: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }

    fn key(&self, i: usize) -> Result<Value> {
        self.at(i)
    }

    fn agg(&self, i: usize) -> Result<Value> {
        self.at(self.keys + i)
    }

    fn bare(&self, i: usize) -> Result<Value> {
        self.at(self.keys + self.aggs + i)
    }
}

impl Written<'_> {
    fn at(&self, i: usize) -> Result<Value> {
        self.values.get(i).cloned().ok_or_else(|| Code::Internal.into())
    }
}

impl Run<'_> {
    /// Takes in what waits, and makes the result. `s` names no table that is scanned.
    pub(crate) fn waiting_groups(
        &self,
        first: Groups<'_>,
        waiting: Partitions,
        s: &JoinScope<'_>,
        limit: Option<usize>,
    ) -> Result<Option<Answer>> {
        let (q, rt) = (self.q, Some(self.rt));
        let start = self.now();
        let n = first.keys.len();
        let mut all: Vec<Ex> = (0..n).map(Ex::Key).collect();
        all.extend((0..first.aggs.len()).map(Ex::Agg));
        all.extend((0..q.bare.len()).map(Ex::Bare));
        let by: Vec<(Ex, KeyField)> =
            q.key_order.iter().map(|k| (Ex::Key(*k), q.key_fields[*k].clone())).collect();
        let mut sorted = Rows::new(&all, &by, None, None, rt);
        let (keys, aggs) = (first.keys.clone(), first.aggs.clone());
        let tables = first.noted().to_vec();
        self.write(first, &mut sorted, s)?;
        let (mut open, mut lots) = (vec![waiting], 1);
        while let Some(parts) = open.pop() {
            for p in 0..PARTS {
                self.rt.check()?;
                let Some(mut g) = Groups::new(q, keys.clone(), aggs.clone(), s)? else { return Ok(None) };
                g.add_waiting(&parts, p, &tables, s)?;
                g.settle(s)?;
                open.extend(g.take_waiting()?);
                self.write(g, &mut sorted, s)?;
                lots += 1;
            }
        }
        let mut groups = sorted.finish()?;
        if let Some(p) = self.rt.profile() {
            let spent = crate::profile::shown(self.now() - start);
            p.line(format!("GROUPS: {}, in {lots} lots by a temporary file, {spent}", groups.len()));
        }
        let mut rows = Rows::new(&self.bound.result, &self.bound.order, q.distinct.as_deref(), limit, rt);
        let mut before: Option<Vec<Value>> = None;
        let mut values = vec![Value::Null; all.len()];
        while groups.next(&mut values)? {
            // Two groups whose keys compare equal though they differ are one to everybody else, also where only the first of
            // them is wanted.
            let same = |b: &Vec<Value>| {
                by.iter().zip(&q.key_order).all(|((_, f), k)| {
                    b[*k].is_null() == values[*k].is_null()
                        && compare::compare(&b[*k], &values[*k], &f.coll).is_eq()
                })
            };
            if before.as_ref().is_some_and(same) {
                return Ok(None);
            }
            if rows.full() {
                break;
            }
            let row = Written { values: &values, keys: n, aggs: aggs.len() };
            let having = self.bound.having.as_ref();
            if having.map_or(Ok(true), |h| self.eval.holds(h, &row))? {
                rows.add(&row, self.eval)?;
            }
            before = Some(values[..n].to_vec());
        }
        self.result(rows).map(Some)
    }

    fn write(&self, mut groups: Groups<'_>, to: &mut Rows<'_>, s: &JoinScope<'_>) -> Result<()> {
        for g in 0..groups.count() {
            if g % 4096 == 0 {
                self.rt.check()?;
            }
            if groups.is_there(g) {
                to.add(&groups.row(g as u32, s)?, self.eval)?;
            }
        }
        Ok(())
    }
}

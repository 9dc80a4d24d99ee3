//! Queries nested in expressions.
//!
//! One that depends on nothing outside is run before all else, and stands for its value or for a set. Of those that
//! depend on the enclosing query, these are known: EXISTS over equalities of own columns with expressions outside, and at
//! most one other comparison; and a single row of aggregates over such equalities. Their own columns become keys: the
//! nested query is run once, for all keys that are met, and each row outside finds its answer by key.

use super::{Answer, Compiler, known, no};
use crate::expr::{Ex, NestedUse, SetFrom, SetUse};
use crate::query::{Nested, NestedKind, Query};
use iolite_plan::bound::*;
use iolite_plan::executor::Block;
use iolite_plan::plan::*;
use iolite_value::compare::KeyField;
use iolite_value::{Affinity, Collation};

/// A comparison of an own column with something outside.
pub(super) struct Outside {
    slot: usize,
    op: CmpOp,
    value: Expr,
}

/// What it would take to answer these for no row is known.
const AGGREGATES: [&str; 6] = ["count", "sum", "total", "avg", "min", "max"];

impl Compiler<'_> {
    /// Whether an expression reads columns that are no columns of this query.
    pub(super) fn reads_outside(&self, e: &Expr) -> bool {
        self.inside
            && e.any(&mut |x| matches!(x, Expr::Column(c) if self.q.tables.iter().all(|t| t.id != c.table)))
    }

    fn reads_inside(&self, e: &Expr) -> bool {
        e.any(&mut |x| {
            matches!(x, Expr::Column(c) if self.q.tables.iter().any(|t| t.id == c.table))
                || matches!(x, Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_))
        })
    }

    /// Notes a comparison with something outside.
    pub(super) fn outside(
        &mut self,
        own: Ex,
        op: CmpOp,
        null_eq: bool,
        affinity: Affinity,
        value: &Expr,
        on: Option<usize>,
    ) -> Answer<()> {
        let Ex::Slot(slot) = own else { return no("a nested query over an expression") };
        let left = on.is_some() || self.q.tables[self.q.slots[slot].table].left;
        let texts = affinity == Affinity::Text && !matches!(op, CmpOp::Eq | CmpOp::Ne);
        if null_eq || left || texts || self.reads_inside(value) {
            return no("a nested query with another comparison");
        }
        self.outsides.push(Outside { slot, op, value: value.clone() });
        Ok(())
    }

    /// A condition that reads columns outside.
    pub(super) fn outside_condition(&mut self, e: &Expr, on: Option<usize>) -> Answer<()> {
        let Expr::Compare(c) = e else { return no("a nested query with another condition") };
        let (own, op, value) = match (self.reads_outside(&c.lhs), self.reads_outside(&c.rhs)) {
            (false, true) => (&c.lhs, c.op, &c.rhs),
            (true, false) => (&c.rhs, c.op.swapped(), &c.lhs),
            _ => return no("a nested query with another condition"),
        };
        let own = self.expr(own)?;
        self.outside(own, op, c.null_eq, c.affinity, value, on)
    }

    /// Compiles a nested query; answers its number and the operands of its use.
    fn nest(&mut self, s: &Subquery, kind: NestedKind) -> Answer<(usize, Vec<Ex>)> {
        if self.depth > 3 {
            return no("queries nested too deeply");
        }
        let Some(plan) = self.block.nested.get(s.id) else { return no("a nested query without a plan") };
        let [core] = &plan.cores[..] else { return no("a nested compound query") };
        if plan.limit.is_some() || plan.offset.is_some() || core.levels.is_empty() || core.window.is_some() {
            return no("a nested query of another form");
        }
        let exists = kind == NestedKind::Exists;
        if exists && (core.grouping != Grouping::None || s.outer.is_empty()) {
            return no("EXISTS of another form");
        }
        let order = if plan.ordered || exists { &[][..] } else { &plan.order_by[..] };
        let limited = matches!(kind, NestedKind::Scalar(_));
        let block = Block { core, order, limited, ..*self.block };
        let mut x = Compiler::new(&block, self.overridden);
        x.inside = !s.outer.is_empty();
        x.depth = self.depth + 1;
        x.exists = exists;
        x.params = std::mem::take(&mut self.params);
        let made = x.block();
        self.params = std::mem::take(&mut x.params);
        made?;
        let mut query = x.q;
        let (mut keys, mut operands, mut other) = (Vec::new(), Vec::new(), None);
        for o in x.outsides {
            if o.op == CmpOp::Eq {
                keys.push(o.slot);
                operands.push(self.expr(&o.value)?);
            } else if other.is_none() && exists {
                other = Some((o.op, o.slot, o.value));
            } else {
                return no("a nested query with another comparison");
            }
        }
        if keys.is_empty() != s.outer.is_empty() || keys.len() > 2 {
            return no("a nested query without an equality");
        }
        let other = match other {
            Some((op, slot, value)) => {
                operands.push(self.expr(&value)?);
                Some((op, slot))
            }
            None => None,
        };
        if let (NestedKind::Scalar(n), false) = (kind, keys.is_empty()) {
            by_key(&mut query, n, &keys)?;
        }
        self.q.nested.push(Nested { query, kind, keys, other });
        Ok((self.q.nested.len() - 1, operands))
    }

    /// A nested query's value.
    pub(super) fn scalar(&mut self, s: &Subquery, n: usize) -> Answer<Ex> {
        let (number, args) = self.nest(s, NestedKind::Scalar(n))?;
        self.correlated(NestedUse { number, args })
    }

    /// Whether a nested query has rows.
    pub(super) fn exists(&mut self, s: &Subquery) -> Answer<Ex> {
        let (number, args) = self.nest(s, NestedKind::Exists)?;
        self.correlated(NestedUse { number, args })
    }

    fn correlated(&mut self, used: NestedUse) -> Answer<Ex> {
        if !used.args.is_empty() && !self.in_condition {
            return no("a nested query that depends on the row, in a result");
        }
        Ok(Ex::Nested(Box::new(used)))
    }

    /// `e IN (SELECT ...)`.
    pub(super) fn in_select(&mut self, i: &InSelect) -> Answer<Ex> {
        let ([lhs], true) = (&i.lhs[..], i.select.outer.is_empty()) else {
            return no("IN (SELECT ...) of several columns, or of what depends on the row");
        };
        let lhs = self.boxed(lhs)?;
        let (number, _) = self.nest(&i.select, NestedKind::Set)?;
        let collation = known(i.collations.first().cloned().unwrap_or(Collation::Binary))?;
        let affinity = i.affinities.first().copied().unwrap_or(Affinity::Blob);
        let from = SetFrom::Query(number);
        Ok(Ex::InSet(Box::new(SetUse { not: i.not, lhs: *lhs, from, set: None, affinity, collation })))
    }
}

/// One row of aggregates becomes one for each key.
fn by_key(q: &mut Query, n: usize, keys: &[usize]) -> Answer<()> {
    let named = |a: &super::AggSpec| AGGREGATES.contains(&&*a.function.name.to_ascii_lowercase());
    if q.grouping != Grouping::All || q.having.is_some() || q.distinct.is_some() || !q.aggs.iter().all(named)
    {
        return no("a nested query of rows that depend on the row");
    }
    let value = q.result.swap_remove(n);
    q.empty = Some(value.clone());
    q.grouping = Grouping::Hash;
    q.keys = keys.iter().map(|k| Ex::Slot(*k)).collect();
    q.key_order = (0..keys.len()).collect();
    let field = KeyField { coll: Collation::Binary, desc: false, nulls_large: false };
    q.key_fields = keys.iter().map(|_| field.clone()).collect();
    q.result = (0..keys.len()).map(Ex::Key).collect();
    q.result.push(value);
    q.order.clear();
    q.limited = false;
    Ok(())
}

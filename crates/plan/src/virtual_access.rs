//! Accesses to virtual tables: what a query asks of the table is offered to its module, which says what it makes of it.
//!
//! A module is asked once for each set of tables that may stand before it, since what they say is usable only then. What it
//! does not take over is tested by the engine, as with any other table.

use crate::access::{Accesses, Candidate, OrderKey};
use crate::bound::*;
use crate::plan::*;
use crate::terms::{Mask, Op, Positions, Term};
use iolite_base::{Code, Result};
use iolite_ext::{Constraint, ConstraintOp, IndexInfo, OrderTerm as Sorted, OrderUse, VirtualTable};
use iolite_value::{Collation, Value};
use std::rc::Rc;

/// A condition as it is offered.
struct Offer {
    column: i32,
    op: ConstraintOp,
    collation: Collation,
    value: EqTerm,
    needs: Mask,
    term: usize,
}

fn plain(value: &Expr) -> EqTerm {
    EqTerm::Eq { value: value.clone(), null_ok: true, convert: false }
}

impl Accesses<'_> {
    pub(crate) fn virtual_table(
        &self,
        i: usize,
        vtab: &Rc<dyn VirtualTable>,
        out: &mut Vec<Candidate>,
    ) -> Result<()> {
        let offers = self.offers(i);
        let order = self.asked_of(i);
        let mut columns_used = 0u64;
        for c in self.sources[i].used.iter() {
            columns_used |= 1 << c.min(63);
        }
        let mut needs_sets: Vec<Mask> = vec![offers.iter().fold(0, |m, o| m | o.needs), 0];
        needs_sets.extend(offers.iter().map(|o| o.needs));
        needs_sets.sort_unstable();
        needs_sets.dedup();
        for needs in needs_sets {
            let constraints = offers.iter().map(|o| Constraint {
                column: o.column,
                op: o.op,
                usable: o.needs & !needs == 0,
                collation: o.collation.clone(),
                value: match &o.value {
                    EqTerm::Eq { value: Expr::Const(v), .. } => Some(v.clone()),
                    _ => None,
                },
            });
            let mut info = IndexInfo {
                constraints: constraints.collect(),
                order_by: order.iter().flatten().map(|o| o.0).collect(),
                order_use: match self.asked {
                    Some(a) if a.groups => OrderUse::Grouped,
                    _ => OrderUse::Sorted,
                },
                columns_used,
                usage: vec![Default::default(); offers.len()],
                cost: 1e12,
                rows: 1_000_000,
                ..IndexInfo::default()
            };
            match vtab.best_index(&mut info) {
                Ok(()) => {}
                Err(e) if e.code() == Code::Constraint => continue,
                Err(e) => return Err(e),
            }
            out.push(self.chosen(i, vtab, &offers, info, order.as_deref())?);
        }
        Ok(())
    }

    /// What the module has chosen, as a candidate.
    fn chosen(
        &self,
        i: usize,
        vtab: &Rc<dyn VirtualTable>,
        offers: &[Offer],
        info: IndexInfo,
        order: Option<&[(Sorted, Collation)]>,
    ) -> Result<Candidate> {
        let name = || self.sources[i].name.clone();
        let malfunction = || iolite_base::Error::sql(format!("{}.xBestIndex malfunction", name()));
        if info.usage.len() != offers.len() {
            return Err(malfunction());
        }
        let mut args: Vec<(i32, EqTerm)> = Vec::new();
        let mut c = self.scan(i, info.rows.max(0) as f64, info.cost);
        let mut several = false;
        for (k, (u, o)) in info.usage.iter().zip(offers).enumerate() {
            if u.arg <= 0 {
                continue;
            }
            if !info.constraints.get(k).is_some_and(|c| c.usable) {
                return Err(malfunction());
            }
            args.push((u.arg, o.value.clone()));
            several |= !matches!(o.value, EqTerm::Eq { .. });
            c.needs |= o.needs;
            if u.omit {
                c.used.push(o.term);
            }
        }
        args.sort_by_key(|a| a.0);
        if args.iter().enumerate().any(|(k, a)| a.0 != k as i32 + 1) {
            return Err(malfunction());
        }
        // The values of IN come one after the other: rows of different ones are in no order.
        c.one_row = info.unique && !several;
        if let Some(order) = order.filter(|_| info.ordered && !several) {
            let key = |(s, collation): &(Sorted, Collation)| OrderKey {
                column: Some(if s.column < 0 { ROWID } else { s.column }),
                expr: None,
                collation: collation.clone(),
                desc: s.desc,
            };
            c.order = order.iter().map(key).collect();
        }
        let args = args.into_iter().map(|a| a.1).collect();
        c.access = Access::Virtual { vtab: Rc::new(VtabHandle(vtab.clone())), info: Box::new(info), args };
        Ok(c)
    }

    /// The order that is asked of the table alone, if it is one of its columns as these compare by themselves.
    fn asked_of(&self, i: usize) -> Option<Vec<(Sorted, Collation)>> {
        let asked = self.asked?;
        let s = &self.sources[i];
        let one = |t: &OrderTerm| match &t.expr {
            Expr::Column(c) if c.table == s.id && !t.nulls_large && c.collation == t.collation => {
                let column = if c.column == ROWID { -1 } else { c.column };
                Some((Sorted { column, desc: t.desc }, t.collation.clone()))
            }
            _ => None,
        };
        asked.terms.iter().map(one).collect()
    }

    /// The conditions on columns of the table.
    fn offers(&self, i: usize) -> Vec<Offer> {
        let mut out = Vec::new();
        for (n, t) in self.terms.iter().enumerate().filter(|(_, t)| self.applies(t, i)) {
            for f in t.forms.iter().filter(|f| f.source == i) {
                let Some(column) = f.column else { continue };
                let (op, value) = match &f.op {
                    // What LIKE implies holds for a table's own collating sequence only.
                    Op::Range(_) if t.derived => continue,
                    Op::Eq { null_ok: false } => (ConstraintOp::Eq, plain(&f.value)),
                    Op::Eq { null_ok: true } => (ConstraintOp::Is, plain(&f.value)),
                    Op::Range(CmpOp::Lt) => (ConstraintOp::Lt, plain(&f.value)),
                    Op::Range(CmpOp::Le) => (ConstraintOp::Le, plain(&f.value)),
                    Op::Range(CmpOp::Gt) => (ConstraintOp::Gt, plain(&f.value)),
                    Op::Range(_) => (ConstraintOp::Ge, plain(&f.value)),
                    Op::IsNull => (ConstraintOp::IsNull, plain(&Expr::Const(Value::Null))),
                    Op::InList(l) => (ConstraintOp::Eq, EqTerm::InList(l.clone())),
                    Op::InSelect(s, k) if s.lhs.len() == 1 => {
                        (ConstraintOp::Eq, EqTerm::InSelect(s.clone(), *k))
                    }
                    Op::InSelect(..) => continue,
                };
                let column = if column == ROWID { -1 } else { column };
                out.push(Offer {
                    column,
                    op,
                    collation: f.collation.clone(),
                    value,
                    needs: f.needs,
                    term: n,
                });
            }
            if !t.derived {
                self.other_offers(i, n, t, &mut out);
            }
        }
        out
    }

    /// Conditions that no index serves, but a module might.
    fn other_offers(&self, i: usize, term: usize, t: &Term, out: &mut Vec<Offer>) {
        let id = self.sources[i].id;
        let pos = Positions(self.sources);
        let mut offer = |column: &Expr, op, value: &Expr, collation: &Collation| {
            let Expr::Column(c) = column.without_collate() else { return };
            let needs = pos.mask(value);
            if c.table != id || needs & 1 << i != 0 {
                return;
            }
            let column = if c.column == ROWID { -1 } else { c.column };
            out.push(Offer { column, op, collation: collation.clone(), value: plain(value), needs, term });
        };
        match &t.expr {
            Expr::Compare(c) if c.op == CmpOp::Ne => {
                let op = if c.null_eq { ConstraintOp::IsNot } else { ConstraintOp::Ne };
                offer(&c.lhs, op, &c.rhs, &c.collation);
                offer(&c.rhs, op, &c.lhs, &c.collation);
            }
            Expr::NotNull(e) => {
                offer(e, ConstraintOp::IsNotNull, &Expr::Const(Value::Null), &Collation::Binary);
            }
            Expr::Call(call) if call.args.len() == 2 => {
                let op = match call.function.name.to_ascii_lowercase().as_str() {
                    "like" => ConstraintOp::Like,
                    "glob" => ConstraintOp::Glob,
                    "regexp" => ConstraintOp::Regexp,
                    "match" => ConstraintOp::Match,
                    _ => return,
                };
                offer(&call.args[1], op, &call.args[0], &Collation::Binary);
            }
            _ => {}
        }
    }
}

//! Accesses to virtual tables: what a query says of the table is offered to its module, which says what it makes of it.
//!
//! A module is asked first with all that is said. If what it chose comes from no other table of the join, and has no IN whose
//! values it wants one by one, that is its plan; otherwise it is asked once more for each set of tables that may stand before
//! it, since what they say is usable only then, and without IN. LIMIT and OFFSET are offered where the table alone decides
//! which rows come; they count only if it takes over all other conditions, too. What it does not take over is tested by the
//! engine, as with any other table.
//!
//! Of an OR, each arm is offered by itself: what the modules make of them is run one after the other, and rows are taken once.
//!
//! The table on the right side of a RIGHT JOIN is read once for its matches and once for the rest: only what it is called
//! with as a function is offered.

use crate::access::{Accesses, Candidate, OrderKey};
use crate::bound::*;
use crate::plan::*;
use crate::terms::{self, Mask, Op, Positions, Term};
use iolite_base::{Code, Error, Result};
use iolite_catalog::Table;
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
    /// The term that it comes from; none: LIMIT or OFFSET.
    term: Option<usize>,
}

impl Offer {
    fn is_in(&self) -> bool {
        !matches!(self.value, EqTerm::Eq { .. })
    }
}

/// All that a module is asked about one table.
struct Question<'q> {
    source: usize,
    vtab: &'q Rc<dyn VirtualTable>,
    offers: Vec<Offer>,
    /// The order that is asked of the table alone.
    order: Option<Vec<(Sorted, Collation)>>,
}

/// Which offers are usable.
#[derive(Clone, Copy)]
struct Usable {
    needs: Mask,
    ins: bool,
    limits: bool,
}

/// What a module made of them.
enum Answer {
    Unusable,
    /// It took LIMIT or OFFSET where it cannot have them.
    NoLimits,
    /// A plan, and whether the values of an IN come one by one.
    Plan(Box<Candidate>, bool),
}

/// The plans of a table so far.
#[derive(Default)]
struct Found {
    /// The last one: what it needs, and whether it has values of an IN one by one.
    last: Option<(Mask, bool)>,
    /// One needs no other table.
    alone: bool,
    /// One needs no other table, and no IN one by one.
    alone_plain: bool,
}

impl Found {
    fn add(&mut self, answer: Answer, out: &mut Vec<Candidate>) {
        self.last = None;
        if let Answer::Plan(c, ins) = answer {
            self.last = Some((c.needs, ins));
            self.alone |= c.needs == 0;
            self.alone_plain |= c.needs == 0 && !ins;
            out.push(*c);
        }
    }
}

fn plain(value: &Expr) -> EqTerm {
    EqTerm::Eq { value: value.clone(), null_ok: true, convert: false }
}

impl Accesses<'_> {
    pub(crate) fn virtual_table(
        &self,
        i: usize,
        (table, vtab): (&Table, &Rc<dyn VirtualTable>),
        out: &mut Vec<Candidate>,
    ) -> Result<()> {
        let offers = self.offers(i, table, vtab);
        self.plans_of(i, vtab, offers, out)?;
        self.arms_of_conditions(i, (table, vtab), out)
    }

    /// A plan for each OR: its arms one after the other, each with all that is said beside the OR. The module's rowids tell which
    /// rows were there before.
    fn arms_of_conditions(
        &self,
        i: usize,
        (table, vtab): (&Table, &Rc<dyn VirtualTable>),
        out: &mut Vec<Candidate>,
    ) -> Result<()> {
        if !table.has_rowid() || self.sources[i].join.right {
            return Ok(());
        }
        for (n, t) in self.terms.iter().enumerate() {
            if t.derived || t.mask & 1 << i == 0 || !self.applies(t, i) {
                continue;
            }
            let Some(arms) = terms::arms(&t.expr, t.on, &Positions(self.sources)) else { continue };
            let of_arm = |arm: &[Term]| Accesses { terms: arm, limits: None, ..*self }.offers(i, table, vtab);
            let offers: Vec<Vec<Offer>> = arms.iter().map(|a| of_arm(a)).collect();
            if offers.iter().any(Vec::is_empty) {
                continue;
            }
            let beside = || {
                let all = Accesses { limits: None, ..*self }.offers(i, table, vtab);
                all.into_iter().filter(|o| o.term != Some(n))
            };
            let mut branches = Vec::with_capacity(arms.len());
            let (mut needs, mut cost, mut rows) = (t.mask & !(1 << i), 0.0, 0.0);
            // What is said beside it and left to the module by every arm need not be tested.
            let mut used: Vec<usize> = beside().filter_map(|o| o.term).collect();
            for (arm, mut offers) in arms.iter().zip(offers) {
                let shift = |o: Offer| Offer { term: o.term.map(|k| k + arm.len()), ..o };
                offers.extend(beside().map(shift));
                let mut plans = Vec::new();
                self.plans_of(i, vtab, offers, &mut plans)?;
                let Some(best) = plans.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost)) else { break };
                needs |= best.needs;
                cost += best.cost;
                rows += best.rows;
                used.retain(|k| best.used.contains(k + arm.len()));
                let tested = arm.iter().enumerate().filter(|(k, t)| !t.derived && !best.used.contains(*k));
                let filter = tested.map(|(_, t)| t.expr.clone()).collect();
                branches.push(OrBranch { access: best.access, filter });
            }
            if branches.len() < arms.len() {
                continue;
            }
            // As much more as SQLite takes for taking rows once.
            let mut c = self.scan(i, rows, cost * 1.07);
            c.needs = needs;
            c.access = Access::Or(branches);
            c.used = NumberSet::one(n);
            used.into_iter().for_each(|k| c.used.insert(k));
            out.push(c);
        }
        Ok(())
    }

    /// The plans that a module makes of what it is offered.
    fn plans_of(
        &self,
        i: usize,
        vtab: &Rc<dyn VirtualTable>,
        offers: Vec<Offer>,
        out: &mut Vec<Candidate>,
    ) -> Result<()> {
        let q = Question { source: i, vtab, offers, order: self.asked_of(i) };
        let all = Usable { needs: Mask::MAX, ins: true, limits: false };
        let mut found = Found::default();
        found.add(
            match self.ask(&q, Usable { limits: true, ..all })? {
                Answer::NoLimits => self.ask(&q, all)?,
                answer => answer,
            },
            out,
        );
        let Some((best, ins)) = found.last else { return Ok(()) };
        if found.alone_plain {
            return Ok(());
        }
        let mut known = vec![0, best];
        if ins {
            found.add(self.ask(&q, Usable { ins: false, ..all })?, out);
            known.extend(found.last.map(|l| l.0));
        }
        let mut sets: Vec<Mask> = q.offers.iter().map(|o| o.needs).collect();
        sets.sort_unstable();
        sets.dedup();
        for needs in sets.into_iter().filter(|n| !known.contains(n)) {
            found.add(self.ask(&q, Usable { needs, ..all })?, out);
        }
        if !found.alone {
            found.add(self.ask(&q, Usable { needs: 0, ..all })?, out);
        }
        if !found.alone_plain {
            found.add(self.ask(&q, Usable { needs: 0, ins: false, ..all })?, out);
        }
        Ok(())
    }

    /// Asks the module once.
    fn ask(&self, q: &Question<'_>, u: Usable) -> Result<Answer> {
        let constraint = |o: &Offer| Constraint {
            column: o.column,
            op: o.op,
            usable: o.needs & !u.needs == 0 && (u.ins || !o.is_in()) && (u.limits || o.term.is_some()),
            collation: o.collation.clone(),
            value: match (&o.value, o.op) {
                (_, ConstraintOp::IsNull | ConstraintOp::IsNotNull) => None,
                (EqTerm::Eq { value: Expr::Collate(..), .. }, _) => None,
                (EqTerm::Eq { value, .. }, _) => value.constant_value(),
                _ => None,
            },
            is_in: o.is_in(),
        };
        let columns = self.sources[q.source].used.iter();
        let mut info = IndexInfo {
            constraints: q.offers.iter().map(constraint).collect(),
            order_by: q.order.iter().flatten().map(|o| o.0).collect(),
            order_use: self.asked.map_or(OrderUse::Sorted, |a| a.purpose),
            columns_used: columns.fold(0, |bits, c| bits | 1 << c.min(63)),
            usage: vec![Default::default(); q.offers.len()],
            ..IndexInfo::default()
        };
        match q.vtab.best_index(&mut info) {
            Ok(()) => self.answer(q, info),
            Err(e) if e.code() == Code::Constraint => Ok(Answer::Unusable),
            Err(e) => Err(e),
        }
    }

    /// What the module has chosen, as a candidate.
    fn answer(&self, q: &Question<'_>, mut info: IndexInfo) -> Result<Answer> {
        let SourceKind::Virtual { table, .. } = &self.sources[q.source].kind else {
            return Err(Code::Internal.into());
        };
        let malfunction = || Error::sql(format!("{}.xBestIndex malfunction", table.name));
        if info.usage.len() != q.offers.len() {
            return Err(malfunction());
        }
        let mut args: Vec<(i32, VirtualArg)> = Vec::new();
        let mut c = self.scan(q.source, info.rows.max(0) as f64, info.cost);
        let (mut ins, mut limits) = (false, false);
        for (k, o) in q.offers.iter().enumerate() {
            let u = info.usage[k];
            if u.arg <= 0 {
                continue;
            }
            if !info.constraints.get(k).is_some_and(|c| c.usable) {
                return Err(malfunction());
            }
            let list = u.list && o.is_in();
            let recheck = if list || u.omit { None } else { equals_one(&o.value) };
            args.push((u.arg, VirtualArg { value: o.value.clone(), list, recheck }));
            ins |= o.is_in() && !list;
            limits |= o.term.is_none();
            c.needs |= o.needs;
            if let Some(term) = o.term.filter(|_| u.omit || o.is_in() && !list) {
                c.used.insert(term);
            }
        }
        args.sort_by_key(|a| a.0);
        if args.iter().enumerate().any(|(k, a)| a.0 != k as i32 + 1) {
            return Err(malfunction());
        }
        // Whether it gives the first rows of an order that it does not deliver is its own to know, as with SQLite.
        if limits && (ins || info.usage.iter().any(|u| u.arg <= 0)) {
            return Ok(Answer::NoLimits);
        }
        // The values of IN come one after the other: rows of different ones are in no order.
        info.unique &= !ins;
        c.one_row = info.unique;
        let sorted = info.order_use != OrderUse::Distinct;
        if let Some(order) = q.order.as_deref().filter(|_| info.ordered && !ins && sorted) {
            let key = |(s, collation): &(Sorted, Collation)| OrderKey {
                column: Some(if s.column < 0 { ROWID } else { s.column }),
                expr: None,
                never_null: false,
                collation: collation.clone(),
                desc: s.desc,
            };
            c.order = order.iter().map(key).collect();
        }
        let args = args.into_iter().map(|a| a.1).collect();
        let vtab = Rc::new(VtabHandle(q.vtab.clone()));
        c.access = Access::Virtual { vtab, info: Box::new(info), args };
        Ok(Answer::Plan(Box::new(c), ins))
    }

    /// The order that is asked of the table alone, if all of it are its columns as these compare by themselves.
    fn asked_of(&self, i: usize) -> Option<Vec<(Sorted, Collation)>> {
        let asked = self.asked?;
        let s = &self.sources[i];
        let distinct = matches!(asked.purpose, OrderUse::Distinct | OrderUse::DistinctSorted);
        if distinct && s.rowid_used {
            return None;
        }
        let mut out = Vec::new();
        for t in asked.terms.iter().filter(|t| !t.expr.is_constant()) {
            match t.expr.without_collate() {
                Expr::Column(c) if c.table == s.id && !t.nulls_large => {
                    if c.column != ROWID && c.collation != t.collation {
                        return None;
                    }
                    let column = if c.column == ROWID { -1 } else { c.column };
                    out.push((Sorted { column, desc: t.desc }, t.collation.clone()));
                }
                _ => return None,
            }
        }
        (!out.is_empty()).then_some(out)
    }

    /// The conditions on columns of the table: first those that any table could use, in the order in which SQLite has them,
    /// which is that of the text with ON behind WHERE; then, the last ones first, those that only modules know; then LIMIT.
    fn offers(&self, i: usize, table: &Table, vtab: &Rc<dyn VirtualTable>) -> Vec<Offer> {
        let right = self.sources[i].join.right;
        let argument = |t: &Term| {
            let hidden = |c: Option<i32>| c.is_some_and(|c| c >= 0 && table.columns[c as usize].hidden);
            let equal = |f: &crate::terms::Form| matches!(f.op, Op::Eq { .. }) && f.needs == 0;
            t.on == Some(i) && t.forms.iter().any(|f| f.source == i && hidden(f.column) && equal(f))
        };
        let offered = |t: &Term| if right { argument(t) } else { self.applies(t, i) };
        let mut terms: Vec<(usize, &Term)> = self.terms.iter().enumerate().filter(|t| offered(t.1)).collect();
        terms.sort_by_key(|(_, t)| t.on.is_some());
        let mut out = Vec::new();
        for (n, t) in &terms {
            self.simple_offers(i, *n, t, &mut out);
        }
        for (n, t) in terms.iter().rev().filter(|(_, t)| !t.derived && !right) {
            self.other_offers(i, *n, t, vtab, &mut out);
        }
        self.limit_offers(i, &mut out);
        out
    }

    /// Conditions that an index would serve.
    fn simple_offers(&self, i: usize, term: usize, t: &Term, out: &mut Vec<Offer>) {
        for f in t.forms.iter().filter(|f| f.source == i) {
            let Some(column) = f.column else { continue };
            let (op, value) = match &f.op {
                // What follows for a column from another one's range is not worth a question.
                Op::Range(_) if t.derived && !says_itself(t, &f.lhs) => continue,
                Op::Eq { null_ok: false } => (ConstraintOp::Eq, plain(&f.value)),
                Op::Eq { null_ok: true } => (ConstraintOp::Is, plain(&f.value)),
                Op::Range(CmpOp::Lt) => (ConstraintOp::Lt, plain(&f.value)),
                Op::Range(CmpOp::Le) => (ConstraintOp::Le, plain(&f.value)),
                Op::Range(CmpOp::Gt) => (ConstraintOp::Gt, plain(&f.value)),
                Op::Range(_) => (ConstraintOp::Ge, plain(&f.value)),
                Op::RowRange(..) | Op::NotNull => continue,
                Op::IsNull => (ConstraintOp::IsNull, plain(&Expr::Const(Value::Null))),
                Op::InList(l) if l.list.len() == 1 => (ConstraintOp::Eq, plain(&l.list[0])),
                Op::InList(l) => (ConstraintOp::Eq, EqTerm::InList(l.clone())),
                Op::InSelect(s, k) if s.lhs.len() == 1 => (ConstraintOp::Eq, EqTerm::InSelect(s.clone(), *k)),
                Op::InSelect(..) => continue,
            };
            let (column, collation) = (if column == ROWID { -1 } else { column }, f.collation.clone());
            out.push(Offer { column, op, collation, value, needs: f.needs, term: Some(term) });
        }
    }

    /// Conditions that no index serves, but a module might.
    fn other_offers(
        &self,
        i: usize,
        term: usize,
        t: &Term,
        vtab: &Rc<dyn VirtualTable>,
        out: &mut Vec<Offer>,
    ) {
        let id = self.sources[i].id;
        let pos = Positions(self.sources);
        let mut offer = |column: &Expr, op, value: &Expr, collation: &Collation| {
            let Expr::Column(c) = column.without_collate() else { return };
            let needs = pos.mask(value);
            if c.table != id || needs & 1 << i != 0 {
                return;
            }
            let column = if c.column == ROWID { -1 } else { c.column };
            let (value, collation) = (plain(value), collation.clone());
            out.push(Offer { column, op, collation, value, needs, term: Some(term) });
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
                let name = call.function.name.to_ascii_lowercase();
                let known = match &*name {
                    "like" => Some(ConstraintOp::Like),
                    "glob" => Some(ConstraintOp::Glob),
                    "regexp" => Some(ConstraintOp::Regexp),
                    "match" => Some(ConstraintOp::Match),
                    _ => None,
                };
                let second = matches!(&call.args[1], Expr::Column(c) if c.table == id);
                match known.filter(|_| second) {
                    Some(op) => offer(&call.args[1], op, &call.args[0], &Collation::Binary),
                    None => {
                        let own = |e: &Expr| matches!(e, Expr::Column(c) if c.table == id);
                        let over =
                            Some(&call.args[0]).filter(|e| own(e)).and_then(|_| vtab.function(&name, 2));
                        if let Some(n) = over.and_then(|o| o.constraint).filter(|n| *n >= 150) {
                            let op = ConstraintOp::Function(n);
                            offer(&call.args[0], op, &call.args[1], &Collation::Binary);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// LIMIT and OFFSET, where each condition and the whole order are the table's to decide.
    fn limit_offers(&self, i: usize, out: &mut Vec<Offer>) {
        let Some((limit, offset)) = self.limits.filter(|_| self.sources.len() == 1) else { return };
        let decides = |n: usize| out.iter().any(|o| o.term == Some(n) && o.needs == 0);
        let id = self.sources[i].id;
        let own = |t: &OrderTerm| {
            matches!(&t.expr, Expr::Column(c) if c.table == id && c.collation == t.collation)
                && !t.nulls_large
        };
        let conditions = self.terms.iter().enumerate().all(|(n, t)| t.derived || decides(n));
        if !conditions || !self.asked.is_none_or(|a| a.terms.iter().all(own)) {
            return;
        }
        let offers = [(ConstraintOp::Offset, offset), (ConstraintOp::Limit, Some(limit))];
        for (op, value) in offers.into_iter().filter_map(|(op, e)| e.map(|e| (op, plain(e)))) {
            out.push(Offer { column: 0, op, collation: Collation::Binary, value, needs: 0, term: None });
        }
    }
}

/// The comparison of what stands before IN with one of its values.
fn equals_one(values: &EqTerm) -> Option<Box<Compare>> {
    let (lhs, affinity, collation) = match values {
        EqTerm::InList(l) => (&l.lhs, l.affinity, &l.collation),
        EqTerm::InSelect(s, k) => (&s.lhs[*k], s.affinities[*k], &s.collations[*k]),
        EqTerm::Eq { .. } | EqTerm::IsNull | EqTerm::Any => return None,
    };
    let (lhs, rhs) = (lhs.clone(), Expr::Const(Value::Null));
    let collation = collation.clone();
    Some(Box::new(Compare { op: CmpOp::Eq, null_eq: false, affinity, collation, lhs, rhs }))
}

/// Whether a term is about this side itself: what LIKE implies, and not what follows from another column.
fn says_itself(t: &Term, lhs: &Expr) -> bool {
    matches!(&t.expr, Expr::Compare(c) if c.lhs.same(lhs))
}

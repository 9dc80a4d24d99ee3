//! Questions about bound expressions: affinity, collation, equality, what they refer to; and walking them.

use crate::bound::*;
use iolite_ext::FunctionFlags;
use iolite_value::{Affinity, Collation, Value};
use std::ops::ControlFlow;

impl Expr {
    /// An integer constant.
    pub fn int(i: i64) -> Expr {
        Expr::Const(Value::Int(i))
    }

    /// The expression's affinity (documentation page `datatype3`, section 3.3).
    pub fn affinity(&self) -> Affinity {
        match self {
            // OLD and NEW hold values that have been converted already; in comparisons they have no affinity.
            Expr::TriggerColumn(c, _) if c.column != crate::bound::ROWID => Affinity::None,
            Expr::Column(c) | Expr::TriggerColumn(c, _) => c.affinity,
            Expr::Cast(_, a) => *a,
            Expr::Collate(e, _) | Expr::IfNotNullRow(_, e) | Expr::NoSubtype(e) => e.affinity(),
            Expr::Merged(e) => e.first_result().affinity(),
            Expr::Agg(_, a) | Expr::Window(_, a) | Expr::CaseBase(a, _) => *a,
            Expr::Subquery(s, n) => s.select.columns.get(*n).map_or(Affinity::None, |c| c.affinity),
            Expr::Row(list) => list.first().map_or(Affinity::None, |e| e.affinity()),
            _ => Affinity::None,
        }
    }

    /// An explicit `COLLATE` anywhere that counts, or the collation of a column.
    pub fn collation(&self) -> Option<(Collation, bool)> {
        match self {
            Expr::Collate(_, c) => Some((c.clone(), true)),
            // A row number has none.
            Expr::Column(c) if c.column == ROWID => None,
            Expr::Column(c) | Expr::TriggerColumn(c, _) => Some((c.collation.clone(), false)),
            Expr::CaseBase(_, c) => Some((c.clone(), false)),
            Expr::Merged(e) => e.first_result().collation(),
            Expr::Plus(e) | Expr::Cast(e, _) | Expr::IfNotNullRow(_, e) | Expr::NoSubtype(e) => e.collation(),
            _ => self.explicit_collation().map(|c| (c, true)),
        }
    }

    /// What the first arm of a CASE gives; of other expressions, themselves.
    pub(crate) fn first_result(&self) -> &Expr {
        match self {
            Expr::Merged(e) => e.first_result(),
            Expr::Case { arms, .. } => arms.first().map_or(self, |a| a.1.first_result()),
            _ => self,
        }
    }

    /// The result of an aggregate or window function of these arguments: a `COLLATE` inside of them counts for it.
    pub(crate) fn of_arguments(self, args: &[Expr]) -> Expr {
        match args.iter().find_map(Expr::explicit_collation) {
            Some(c) => Expr::Collate(Box::new(self), c),
            None => self,
        }
    }

    /// A `COLLATE` inside an operand counts for the whole operator.
    fn explicit_collation(&self) -> Option<Collation> {
        match self {
            Expr::Collate(_, c) => Some(c.clone()),
            Expr::Column(_) | Expr::Const(_) | Expr::Param(_) | Expr::Subquery(..) | Expr::Exists(_) => None,
            Expr::Agg(..) | Expr::Window(..) => None,
            _ => {
                let mut found = None;
                self.children(&mut |e| {
                    if found.is_none() {
                        found = e.explicit_collation();
                    }
                });
                found
            }
        }
    }

    /// Calls `f` on each direct operand; nested queries are not entered.
    pub fn children<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::CaseBase(..) => {}
            Expr::Agg(..) | Expr::Window(..) => {}
            Expr::Subquery(..) | Expr::Exists(_) | Expr::TriggerColumn(..) => {}
            Expr::Plus(e)
            | Expr::Neg(e)
            | Expr::BitNot(e)
            | Expr::Not(e)
            | Expr::IsNull(e)
            | Expr::NotNull(e)
            | Expr::Cast(e, _)
            | Expr::Collate(e, _)
            | Expr::IfNotNullRow(_, e)
            | Expr::NoSubtype(e)
            | Expr::Merged(e)
            | Expr::IsTruth { e, .. } => f(e),
            Expr::Binary(_, a, b) | Expr::And(a, b) | Expr::Or(a, b) => {
                f(a);
                f(b);
            }
            Expr::Compare(c) => {
                f(&c.lhs);
                f(&c.rhs);
            }
            Expr::RowOrder(fields) => fields.iter().for_each(|c| {
                f(&c.lhs);
                f(&c.rhs);
            }),
            Expr::Between { lo, hi } => {
                f(&lo.lhs);
                f(&lo.rhs);
                f(&hi.rhs);
            }
            Expr::InList(i) => {
                f(&i.lhs);
                i.list.iter().for_each(f);
            }
            Expr::InSelect(i) => i.lhs.iter().for_each(f),
            Expr::Case { base, arms, otherwise } => {
                if let Some(b) = base {
                    f(b);
                }
                for (w, t) in arms {
                    f(w);
                    f(t);
                }
                if let Some(o) = otherwise {
                    f(o);
                }
            }
            Expr::Call(c) => c.args.iter().for_each(f),
            Expr::Row(list) => list.iter().for_each(f),
            Expr::Raise(_, m) => {
                if let Some(m) = m {
                    f(m);
                }
            }
        }
    }

    /// Whether it is one of those without operands that most expressions end in.
    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self, Expr::Const(_) | Expr::Param(_) | Expr::Column(_))
    }

    /// As [`Expr::children`], to change them.
    pub fn children_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::CaseBase(..) => {}
            Expr::Agg(..) | Expr::Window(..) => {}
            Expr::Subquery(..) | Expr::Exists(_) | Expr::TriggerColumn(..) => {}
            Expr::Plus(e)
            | Expr::Neg(e)
            | Expr::BitNot(e)
            | Expr::Not(e)
            | Expr::IsNull(e)
            | Expr::NotNull(e)
            | Expr::Cast(e, _)
            | Expr::Collate(e, _)
            | Expr::IfNotNullRow(_, e)
            | Expr::NoSubtype(e)
            | Expr::Merged(e)
            | Expr::IsTruth { e, .. } => f(e),
            Expr::Binary(_, a, b) | Expr::And(a, b) | Expr::Or(a, b) => {
                f(a);
                f(b);
            }
            Expr::Compare(c) => {
                f(&mut c.lhs);
                f(&mut c.rhs);
            }
            Expr::RowOrder(fields) => fields.iter_mut().for_each(|c| {
                f(&mut c.lhs);
                f(&mut c.rhs);
            }),
            Expr::Between { lo, hi } => {
                f(&mut lo.lhs);
                f(&mut lo.rhs);
                f(&mut hi.lhs);
                f(&mut hi.rhs);
            }
            Expr::InList(i) => {
                f(&mut i.lhs);
                i.list.iter_mut().for_each(f);
            }
            Expr::InSelect(i) => i.lhs.iter_mut().for_each(f),
            Expr::Case { base, arms, otherwise } => {
                if let Some(b) = base {
                    f(b);
                }
                for (w, t) in arms {
                    f(w);
                    f(t);
                }
                if let Some(o) = otherwise {
                    f(o);
                }
            }
            Expr::Call(c) => c.args.iter_mut().for_each(f),
            Expr::Row(list) => list.iter_mut().for_each(f),
            Expr::Raise(_, m) => {
                if let Some(m) = m {
                    f(m);
                }
            }
        }
    }

    /// Calls `f` on the expression and all below it, until it breaks. Nested queries are not entered.
    pub fn walk(&self, f: &mut dyn FnMut(&Expr) -> ControlFlow<()>) -> ControlFlow<()> {
        f(self)?;
        if self.is_leaf() {
            return ControlFlow::Continue(());
        }
        let mut flow = ControlFlow::Continue(());
        self.children(&mut |e| {
            if flow.is_continue() {
                flow = e.walk(f);
            }
        });
        flow
    }

    /// Of how many expressions it consists; the same for those that are [`Expr::same`].
    pub fn size(&self) -> usize {
        let mut n = usize::from(!matches!(self, Expr::NoSubtype(_)));
        if !self.is_leaf() {
            self.children(&mut |e| n += e.size());
        }
        n
    }

    /// Whether `pred` holds for the expression or one below it.
    pub fn any(&self, pred: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if self.is_leaf() {
            return pred(self);
        }
        self.walk(&mut |e| if pred(e) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            .is_break()
    }

    /// The tables it refers to, those of enclosing queries that nested queries refer to included.
    pub fn tables(&self, f: &mut dyn FnMut(TableId)) {
        match self {
            Expr::Column(c) => return f(c.table),
            Expr::Const(_) | Expr::Param(_) => return,
            _ => {}
        }
        let _ = self.walk(&mut |e| {
            match e {
                Expr::Column(c) => f(c.table),
                Expr::IfNotNullRow(t, _) => f(*t),
                Expr::Subquery(s, _) | Expr::Exists(s) => s.outer.iter().for_each(|t| f(*t)),
                Expr::InSelect(i) => i.select.outer.iter().for_each(|t| f(*t)),
                _ => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// Whether each row of a table gives it one value, whenever in a run the row is read: what is kept of the table beyond a
    /// row of another may depend on it. An aggregate here is that of a query around, and new with each of its groups.
    pub fn belongs_to(&self, table: TableId) -> bool {
        let mut own = !has_subquery(self) && !self.changes_by_call();
        self.tables(&mut |t| own &= t == table);
        own && !self.any(&mut |e| matches!(e, Expr::Agg(..) | Expr::Window(..)))
    }

    /// Whether its value is the same for the whole run: no columns, no nested query, no changing function.
    pub fn is_constant(&self) -> bool {
        !self.any(&mut |e| match e {
            Expr::Column(_) | Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_) | Expr::Agg(..) => {
                true
            }
            Expr::Raise(..) | Expr::TriggerColumn(..) | Expr::CaseBase(..) | Expr::IfNotNullRow(..) => true,
            Expr::Window(..) => true,
            Expr::Call(c) => {
                !(c.function.flags.has(FunctionFlags::DETERMINISTIC)
                    || c.function.flags.has(FunctionFlags::SLOW_CHANGE))
            }
            _ => false,
        })
    }

    /// Whether it may have another value for each row, though it reads none of them.
    pub fn changes_by_call(&self) -> bool {
        let steady =
            |f: FunctionFlags| f.has(FunctionFlags::DETERMINISTIC) || f.has(FunctionFlags::SLOW_CHANGE);
        self.any(&mut |x| matches!(x, Expr::Call(c) if !steady(c.function.flags)))
    }

    /// Whether computing it is no error, whatever the values: nothing is called, no text grows.
    pub fn cannot_fail(&self) -> bool {
        use Expr::*;
        !self.any(&mut |x| match x {
            Const(_) | Param(_) | Column(_) | TriggerColumn(..) => false,
            Plus(_) | Neg(_) | BitNot(_) | Not(_) => false,
            Binary(op, ..) => *op == BinOp::Concat,
            Compare(_) | RowOrder(_) | And(..) | Or(..) | IsNull(_) | NotNull(_) | IsTruth { .. } => false,
            Between { .. } | InList(_) | Case { .. } | CaseBase(..) | Collate(..) | NoSubtype(_) => false,
            Subquery(q, _) | Exists(q) => !query_cannot_fail(&q.select),
            _ => true,
        })
    }

    /// Structural equality: evaluates to the same value wherever both can be evaluated.
    pub fn same(&self, other: &Expr) -> bool {
        self.alike(other, false)
    }

    /// Whether both are written in the same way; their calls may give another value each time.
    pub fn same_form(&self, other: &Expr) -> bool {
        self.alike(other, true)
    }

    /// `volatile`: a call that may give another value each time is like another of the same form.
    fn alike(&self, other: &Expr, volatile: bool) -> bool {
        match (self, other) {
            (Expr::NoSubtype(a), b) | (b, Expr::NoSubtype(a)) => a.alike(b, volatile),
            (Expr::Const(a), Expr::Const(b)) => {
                a.class() == b.class()
                    && match (a, b) {
                        (Value::Real(x), Value::Real(y)) => x.to_bits() == y.to_bits(),
                        _ => iolite_value::compare::compare(a, b, &Collation::Binary).is_eq(),
                    }
            }
            (Expr::Param(a), Expr::Param(b)) => a == b,
            (Expr::Column(a), Expr::Column(b)) => a.table == b.table && a.column == b.column,
            (Expr::TriggerColumn(_, a), Expr::TriggerColumn(_, b)) => a == b,
            (Expr::Agg(a, _), Expr::Agg(b, _)) | (Expr::Window(a, _), Expr::Window(b, _)) => a == b,
            (Expr::Subquery(a, i), Expr::Subquery(b, j)) => a.id == b.id && i == j,
            (Expr::Exists(a), Expr::Exists(b)) => a.id == b.id,
            (Expr::Binary(o, ..), Expr::Binary(p, ..)) if o != p => false,
            (Expr::Compare(a), Expr::Compare(b)) if !a.compares_as(b) => false,
            (Expr::RowOrder(a), Expr::RowOrder(b))
                if a.len() != b.len() || !a.iter().zip(b).all(|(a, b)| a.compares_as(b)) =>
            {
                false
            }
            (Expr::Between { lo: a, .. }, Expr::Between { lo: b, .. })
                if a.affinity != b.affinity || a.collation != b.collation =>
            {
                false
            }
            (Expr::IsTruth { truth: a, not: b, .. }, Expr::IsTruth { truth: c, not: d, .. })
                if a != c || b != d =>
            {
                false
            }
            (Expr::InList(a), Expr::InList(b)) if a.not != b.not || a.collation != b.collation => false,
            (Expr::InSelect(a), Expr::InSelect(b)) if a.not != b.not || a.select.id != b.select.id => false,
            (Expr::Cast(_, a), Expr::Cast(_, b)) if a != b => false,
            (Expr::Collate(_, a), Expr::Collate(_, b)) if a != b => false,
            (Expr::Call(a), Expr::Call(b))
                if !a.function.name.eq_ignore_ascii_case(&b.function.name)
                    || !(volatile || a.function.flags.has(FunctionFlags::DETERMINISTIC)) =>
            {
                false
            }
            (Expr::Case { base: a, .. }, Expr::Case { base: b, .. }) if a.is_some() != b.is_some() => false,
            (Expr::IfNotNullRow(a, x), Expr::IfNotNullRow(b, y)) => a == b && x.alike(y, volatile),
            (Expr::Raise(..), _) | (Expr::IfNotNullRow(..), _) => false,
            (a, b) if std::mem::discriminant(a) != std::mem::discriminant(b) => false,
            (a, b) => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                a.children(&mut |e| left.push(e));
                b.children(&mut |e| right.push(e));
                left.len() == right.len() && left.iter().zip(&right).all(|(x, y)| x.alike(y, volatile))
            }
        }
    }

    /// What [`Expr::RowOrder`] is, of comparisons of single values: less in the first field, or equal there and the rest in
    /// order.
    pub fn row_order(fields: &[Compare]) -> Expr {
        let one = |c: &Compare| Expr::Compare(Box::new(c.clone()));
        let [before @ .., last] = fields else { return Expr::int(0) };
        before.iter().rev().fold(one(last), |rest, c| {
            let equal = Compare { op: CmpOp::Eq, ..c.clone() };
            Expr::Or(Box::new(one(c)), Box::new(Expr::And(Box::new(one(&equal)), Box::new(rest))))
        })
    }

    /// Without `COLLATE` and unary plus around it... only `COLLATE`.
    pub fn without_collate(&self) -> &Expr {
        let mut e = self;
        while let Expr::Collate(inner, _) = e {
            e = inner;
        }
        e
    }

    /// The value of an expression that needs no code: a literal, with a sign, a collating sequence or a CAST around it.
    pub(crate) fn constant_value(&self) -> Option<Value> {
        match self {
            Expr::Const(v) => Some(v.clone()),
            Expr::Neg(a) => a.constant_value().map(|v| iolite_value::arith::negate(&v)),
            Expr::Plus(a) | Expr::Collate(a, _) => a.constant_value(),
            Expr::Cast(a, aff) => aff.cast(&a.constant_value()?).ok(),
            _ => None,
        }
    }

    /// Whether the value can be NULL, as far as the form tells.
    pub fn surely_not_null(&self) -> bool {
        match self {
            Expr::Const(v) => !v.is_null(),
            Expr::IsNull(_) | Expr::NotNull(_) | Expr::IsTruth { .. } | Expr::Exists(_) => true,
            Expr::Collate(e, _) | Expr::Plus(e) => e.surely_not_null(),
            Expr::Compare(c) => c.null_eq,
            _ => false,
        }
    }

    /// The expression as a column of a query in FROM shows it: those have no subtypes.
    pub fn as_column(self) -> Expr {
        if self.may_have_subtype() { Expr::NoSubtype(Box::new(self)) } else { self }
    }

    /// Whether its value may have a subtype, which nothing that is stored has.
    pub fn may_have_subtype(&self) -> bool {
        match self {
            Expr::Call(c) => {
                c.function.flags.has(FunctionFlags::SUBTYPE) || c.args.iter().any(Expr::may_have_subtype)
            }
            Expr::Agg(..) | Expr::Window(..) | Expr::Subquery(..) => true,
            Expr::Case { arms, otherwise, .. } => {
                arms.iter().map(|a| &a.1).chain(otherwise.as_deref()).any(Expr::may_have_subtype)
            }
            Expr::Collate(e, _) | Expr::Plus(e) | Expr::IfNotNullRow(_, e) => e.may_have_subtype(),
            _ => false,
        }
    }

    /// Splits a conjunction.
    pub fn conjuncts(self, out: &mut Vec<Expr>) {
        match self {
            Expr::And(a, b) => {
                a.conjuncts(out);
                b.conjuncts(out);
            }
            other => out.push(other),
        }
    }

    /// The comparisons that a BETWEEN consists of, where the second can stand for itself.
    pub fn ends(&self) -> Option<[Expr; 2]> {
        match self {
            Expr::Between { lo, hi } if !matches!(hi.lhs.without_collate(), Expr::CaseBase(..)) => {
                Some([Expr::Compare(lo.clone()), Expr::Compare(hi.clone())])
            }
            _ => None,
        }
    }

    /// Replaces parts from the top down: where `f` answers an expression, it takes the place of the visited one
    /// and is not entered.
    pub fn replace(&mut self, f: &mut dyn FnMut(&Expr) -> Option<Expr>) {
        if let Some(e) = f(self) {
            *self = e;
            return;
        }
        self.children_mut(&mut |e| e.replace(f));
    }
}

impl Compare {
    /// Whether it compares its sides as another does, whatever they are.
    fn compares_as(&self, other: &Compare) -> bool {
        self.op == other.op
            && self.null_eq == other.null_eq
            && self.affinity == other.affinity
            && self.collation == other.collation
    }
}

/// The affinity with which two expressions are compared (documentation page `datatype3`, section 4.2).
pub fn comparison_affinity(a: &Expr, b: &Expr) -> Affinity {
    match_affinity(a.affinity(), b.affinity())
}

/// The affinity with which the members of a list are compared with what is sought in it.
pub fn list_affinity(lhs: &Expr) -> Affinity {
    match lhs.affinity() {
        Affinity::None => Affinity::Blob,
        Affinity::Real => Affinity::Numeric,
        a => a,
    }
}

/// As [`comparison_affinity`], from the affinities.
pub fn match_affinity(a: Affinity, b: Affinity) -> Affinity {
    if a > Affinity::None && b > Affinity::None {
        if a.is_numeric() || b.is_numeric() { Affinity::Numeric } else { Affinity::Blob }
    } else {
        // One side is no column: it takes the affinity of the other.
        let one = if a > Affinity::None { a } else { b };
        match one {
            Affinity::None => Affinity::Blob,
            other => other,
        }
    }
}

impl InSelect {
    /// Finds with what affinities the sides meet: of a compound, the last arm says so.
    pub fn meet(&mut self) {
        let set = &self.select.select;
        let last = set.cores.last().map_or(&[][..], |c| &c.result);
        let of_set = |k: usize| last.get(k).map_or(set.columns[k].affinity, Expr::affinity);
        self.affinities =
            (0..self.lhs.len()).map(|k| match_affinity(self.lhs[k].affinity(), of_set(k))).collect();
    }
}

/// The collating sequence with which two expressions are compared: an explicit one, left before right; else a
/// column's, left before right.
pub fn comparison_collation(a: &Expr, b: &Expr, default: &Collation) -> Collation {
    match (a.collation(), b.collation()) {
        (Some((c, true)), _) => c,
        (_, Some((c, true))) => c,
        (Some((c, false)), _) => c,
        (None, Some((c, false))) => c,
        (None, None) => default.clone(),
    }
}

/// Whether a nested query is evaluated in it.
pub fn has_subquery(e: &Expr) -> bool {
    e.any(&mut |x| matches!(x, Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_)))
}

/// Which of these conditions are tested after the others: those with a nested query. One that is computed once waits only
/// for what cannot fail: it may be written to keep others from rows that they fail on.
pub(crate) fn tested_last(all: &[Expr]) -> fn(&Expr) -> bool {
    fn correlated(e: &Expr) -> bool {
        e.any(&mut |x| match x {
            Expr::Subquery(q, _) | Expr::Exists(q) => !q.outer.is_empty(),
            Expr::InSelect(i) => !i.select.outer.is_empty(),
            _ => false,
        })
    }
    let mut others = all.iter().filter(|e| !has_subquery(e));
    if others.all(Expr::cannot_fail) { has_subquery } else { correlated }
}

/// Whether a query over stored tables is no error, whatever there is: it computes what cannot fail, and counts or compares rows.
fn query_cannot_fail(q: &Select) -> bool {
    let stored = |s: &Source| match &s.kind {
        SourceKind::Table { table, .. } => table.columns.iter().all(|c| c.generated.is_none()),
        _ => false,
    };
    let bound = |e: &Option<Expr>| matches!(e, None | Some(Expr::Const(Value::Int(_))));
    let counts = [FunctionFlags::COUNT, FunctionFlags::MIN, FunctionFlags::MAX];
    let arm = |c: &Core| {
        c.windows.is_empty()
            && c.sources.iter().all(stored)
            && c.aggs.iter().all(|a| counts.iter().any(|f| a.function.flags.has(*f)))
    };
    let mut sure = q.cores.iter().all(arm) && bound(&q.limit) && bound(&q.offset);
    crate::walk::select(q, &mut |e| sure &= matches!(e, Expr::Agg(..)) || e.cannot_fail());
    sure
}

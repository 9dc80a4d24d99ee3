//! What follows from a condition: whether a partial index has all rows that satisfy it.

use crate::bound::*;

/// Whether `f` is true wherever `t` is.
pub(super) fn follows(t: &Expr, f: &Expr) -> bool {
    if t.same(f) {
        return true;
    }
    match (t, f) {
        (_, Expr::NotNull(e)) => implies_not_null(t, e),
        // What was written as an OR of comparisons.
        (Expr::InList(l), Expr::Or(..)) if !l.not && !l.list.is_empty() => l.list.iter().all(|item| {
            let (affinity, collation) = (l.affinity, l.collation.clone());
            let (op, null_eq, lhs, rhs) = (CmpOp::Eq, false, l.lhs.clone(), item.clone());
            let c = crate::bound::Compare { op, null_eq, affinity, collation, lhs, rhs };
            follows(&Expr::Compare(Box::new(c)), f)
        }),
        (_, Expr::Or(a, b)) => follows(t, a) || follows(t, b),
        (Expr::Between { .. }, Expr::Compare(_)) => {
            t.ends().is_some_and(|ends| ends.iter().any(|end| follows(end, f)))
        }
        // A constant on the left stands on the right as well.
        (Expr::Compare(c), Expr::Compare(_)) if c.lhs.is_constant() && !c.rhs.is_constant() => {
            let op = c.op.swapped();
            let turned =
                crate::bound::Compare { op, lhs: c.rhs.clone(), rhs: c.lhs.clone(), ..(**c).clone() };
            Expr::Compare(Box::new(turned)).same(f)
        }
        _ => false,
    }
}

/// Whether `t` being true means that `e` is not NULL.
pub fn implies_not_null(t: &Expr, e: &Expr) -> bool {
    match t {
        Expr::NotNull(x) => x.same(e),
        _ => rejects_null(t, e, false),
    }
}

/// Whether a value of `x` that is not NULL means that `e` is not NULL. `negated`: there is a NOT around `x`, or what makes
/// another value of it, so that it being false counts as well.
fn rejects_null(x: &Expr, e: &Expr, negated: bool) -> bool {
    if x.same(e) {
        return true;
    }
    let any = |list: &[&Expr]| list.iter().any(|x| rejects_null(x, e, true));
    match x {
        Expr::Compare(c) if !c.null_eq => any(&[&c.lhs, &c.rhs]),
        Expr::Binary(_, a, b) => any(&[a, b]),
        Expr::Collate(a, _) | Expr::Plus(a) | Expr::Neg(a) => rejects_null(a, e, negated),
        Expr::BitNot(a) | Expr::Not(a) => rejects_null(a, e, true),
        Expr::IsTruth { e: a, not: false, .. } if !negated => rejects_null(a, e, false),
        Expr::Between { lo, hi } if !negated => any(&[&lo.lhs, &lo.rhs, &hi.rhs]),
        Expr::InList(i) if !i.list.is_empty() => any(&[&i.lhs]),
        Expr::InSelect(i) if !i.not && !negated => i.lhs.iter().any(|l| rejects_null(l, e, true)),
        Expr::RowOrder(fields) => {
            fields[0].lhs.without_collate().same(e) || fields[0].rhs.without_collate().same(e)
        }
        _ => false,
    }
}

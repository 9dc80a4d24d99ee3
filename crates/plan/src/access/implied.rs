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

/// Whether a value other than NULL means that `e` is not NULL.
fn passes_null(x: &Expr, e: &Expr) -> bool {
    if x.same(e) {
        return true;
    }
    match x {
        Expr::Collate(a, _) | Expr::Plus(a) | Expr::Neg(a) | Expr::BitNot(a) => passes_null(a, e),
        Expr::Binary(_, a, b) => passes_null(a, e) || passes_null(b, e),
        _ => false,
    }
}

/// Whether `t` being true means that `e` is not NULL.
pub fn implies_not_null(t: &Expr, e: &Expr) -> bool {
    match t {
        Expr::NotNull(x) => x.same(e),
        Expr::Compare(c) if !c.null_eq => passes_null(&c.lhs, e) || passes_null(&c.rhs, e),
        Expr::RowOrder(fields) => {
            fields[0].lhs.without_collate().same(e) || fields[0].rhs.without_collate().same(e)
        }
        Expr::Between { lo, .. } => lo.lhs.same(e),
        Expr::InList(i) if !i.not => i.lhs.same(e),
        Expr::InSelect(i) if !i.not => i.lhs.iter().any(|l| l.same(e)),
        _ => false,
    }
}

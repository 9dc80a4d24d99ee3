//! What conditions say together before any row is read: from `a = 5` and `a > 7` follows `5 > 7`, which is tested once.
//!
//! What always holds: conditions stay, so that indexes find the same rows; what follows stands beside them, and reads none of
//! the query's own tables. Values that are equal may still be told apart (1 and 1.0 by `typeof`, or as texts): where the column's
//! value is not known to be the constant itself, something follows from comparisons of numbers alone.

use super::substitute::replace_in_expr;
use crate::bound::*;
use crate::terms::is_column;
use iolite_value::{Affinity, Value};

/// A column, and the constant that it equals in every row.
struct Fixed {
    column: ColumnRef,
    value: Expr,
    /// The column's value is the constant, not merely equal to it.
    is_value: bool,
}

/// Adds what follows to the conditions of an arm.
pub fn conclude(core: &mut Core) {
    if core.filter.len() < 2 || core.sources.iter().any(|s| s.join.right) {
        return;
    }
    if null_yet_compared(core) {
        core.filter.push(Filter { expr: Expr::int(0), on: None });
        return;
    }
    let mut fixed: Vec<(usize, Fixed)> = Vec::new();
    for (k, f) in core.filter.iter().enumerate().filter(|(_, f)| f.on.is_none()) {
        if let Some(one) = fixed_by(&f.expr)
            && !fixed.iter().any(|(_, x)| is_column(&x.column, &one.column))
        {
            fixed.push((k, one));
        }
    }
    if fixed.is_empty() {
        return;
    }
    // What an outer query's row says is known before the loops, too.
    let is_settled = |e: &Expr| {
        let mut own = crate::expr::has_subquery(e) || e.changes_by_call();
        e.tables(&mut |t| own |= core.sources.iter().any(|s| s.id == t));
        !own
    };
    let mut more = Vec::new();
    for (k, f) in core.filter.iter().enumerate().filter(|(_, f)| f.on.is_none() && !is_settled(&f.expr)) {
        let known = |c: &ColumnRef, as_number: bool| {
            let of = fixed.iter().find(|(from, x)| *from != k && is_column(&x.column, c));
            of.filter(|(_, x)| x.is_value || as_number).map(|(_, x)| x.value.clone())
        };
        let reads_one = |x: &Expr| matches!(x, Expr::Column(c) if known(c, true).is_some());
        if !f.expr.any(&mut |x| reads_one(x)) {
            continue;
        }
        let mut new = f.expr.clone();
        put_numbers(&mut new, &|c| known(c, true));
        replace_in_expr(&mut new, &|c| known(c, false));
        if is_settled(&new) {
            more.push(Filter { expr: new, on: None });
        }
    }
    more.into_iter().for_each(|f| core.filter.push(f));
}

/// Whether a column is to be NULL, and to compare with something: no row has both.
fn null_yet_compared(core: &Core) -> bool {
    let conditions = || core.filter.iter().filter(|f| f.on.is_none()).map(|f| &f.expr);
    let null = |e: &Expr| match e {
        Expr::IsNull(e) => match &**e {
            Expr::Column(c) => Some(c.clone()),
            _ => None,
        },
        _ => None,
    };
    conditions().filter_map(null).any(|c| {
        let is = |e: &Expr| matches!(e, Expr::Column(k) if is_column(k, &c));
        conditions().any(|e| matches!(e, Expr::Compare(x) if !x.null_eq && (is(&x.lhs) || is(&x.rhs))))
    })
}

/// Puts constants for columns that equal them into the comparisons of numbers that a condition is made of.
fn put_numbers(e: &mut Expr, known: &dyn Fn(&ColumnRef) -> Option<Expr>) {
    if compares_numbers(e) {
        e.children_mut(&mut |e| {
            if let Expr::Column(c) = e
                && let Some(v) = known(c)
            {
                *e = v;
            }
        });
    } else if matches!(e, Expr::Not(_) | Expr::And(..) | Expr::Or(..)) {
        e.children_mut(&mut |e| put_numbers(e, known));
    }
}

/// Whether numbers that are equal are the same to this condition.
fn compares_numbers(e: &Expr) -> bool {
    match e {
        Expr::Compare(c) => c.affinity != Affinity::Text,
        Expr::Between { lo, hi } => lo.affinity != Affinity::Text && hi.affinity != Affinity::Text,
        Expr::InList(l) => l.affinity != Affinity::Text,
        Expr::IsNull(_) | Expr::NotNull(_) => true,
        _ => false,
    }
}

/// The column that a condition fixes.
fn fixed_by(e: &Expr) -> Option<Fixed> {
    let Expr::Compare(c) = e else { return None };
    // What IS a value that is not NULL equals it: NULL fixes nothing below.
    if c.op != CmpOp::Eq || !c.collation.is_binary() {
        return None;
    }
    let (column, value) = match (&c.lhs, &c.rhs) {
        (Expr::Column(a), v @ Expr::Const(_)) => (a.clone(), v.clone()),
        (v @ Expr::Const(_), Expr::Column(a)) => (a.clone(), v.clone()),
        _ => return None,
    };
    let is_value = match (&value, column.affinity) {
        (Expr::Const(Value::Text(..)), Affinity::Text | Affinity::Blob) => true,
        (Expr::Const(Value::Int(_)), Affinity::Integer | Affinity::Numeric) => true,
        (Expr::Const(Value::Int(_) | Value::Real(_)), a) if a != Affinity::Text => false,
        _ => return None,
    };
    Some(Fixed { column, value, is_value })
}

//! What constants say together of a column that is compared with several: which of two bounds is the tighter one, and whether no
//! value satisfies both.
//!
//! What always holds: constants are held against each other only where the column is compared with them alike (affinity and
//! collating sequence), and only by the engine's own sequences: no user's code runs while a statement is prepared.
//!
//! What it does not know: parameters. A plan serves all their values.

use crate::bound::*;
use crate::terms::{Form, Op, Term};
use iolite_value::{Collation, Value, compare};
use std::cmp::Ordering;

/// More statements than these about columns are not held against each other, nor longer lists.
const MOST: usize = 64;

/// Whether both bound the same side of a column, and the first leaves fewer values.
pub fn is_tighter(new: &Form, old: &Form) -> bool {
    let (Op::Range(a), Op::Range(b)) = (&new.op, &old.op) else { return false };
    let (Some(x), Some(y)) = (constant(new), constant(old)) else { return false };
    is_lower(*a) == is_lower(*b)
        && alike(new, old)
        && order(x, y, new) == Some(if is_lower(*a) { Ordering::Greater } else { Ordering::Less })
}

/// Whether no row satisfies all terms, as far as their constants tell. With outer joins to the right, whose rows without a match come whatever
/// ON says, those of WHERE count alone.
pub fn exclude_all(terms: &[Term], sources: &[Source]) -> bool {
    let right = sources.iter().any(|s| s.join.right);
    let of_all = |t: &&Term| t.on.is_none_or(|p| !right && !sources[p].join.left);
    // A virtual table may have something to say, too.
    let stored = |f: &&Form| match &sources[f.source].kind {
        SourceKind::Table { table, .. } => !table.is_virtual(),
        SourceKind::Subquery(_) => true,
        _ => false,
    };
    if terms.iter().filter(of_all).flat_map(|t| &t.forms).filter(stored).any(is_never_true) {
        return true;
    }
    let says = |f: &&Form| {
        f.column.is_some()
            && match &f.op {
                Op::Eq { null_ok } => !null_ok && constant(f).is_some(),
                Op::Range(_) => constant(f).is_some(),
                Op::InList(l) => l.list.iter().all(|e| matches!(e, Expr::Const(v) if is_plain(v, f))),
                Op::IsNull | Op::NotNull => true,
                _ => false,
            }
    };
    let mut seen: [Option<&Form>; MOST] = [None; MOST];
    let forms = terms.iter().filter(of_all).flat_map(|t| &t.forms).filter(says).filter(stored);
    for (n, f) in forms.take(MOST).enumerate() {
        let of_column = |s: &&&Form| s.source == f.source && s.column == f.column;
        if seen[..n]
            .iter()
            .flatten()
            .filter(of_column)
            .any(|s| null_clashes(s, f) || alike(s, f) && clash(s, f))
        {
            return true;
        }
        seen[n] = Some(f);
    }
    false
}

/// Whether a column is compared with NULL by something else than IS.
fn is_never_true(f: &Form) -> bool {
    f.column.is_some()
        && matches!(f.op, Op::Eq { null_ok: false } | Op::Range(_))
        && matches!(f.value, Expr::Const(Value::Null))
}

/// Whether one is for NULL alone, and the other for all else.
fn null_clashes(a: &Form, b: &Form) -> bool {
    matches!(a.op, Op::IsNull) != matches!(b.op, Op::IsNull)
}

/// Whether no value of the column satisfies both.
fn clash(a: &Form, b: &Form) -> bool {
    let (a, b) = if matches!(a.op, Op::Range(_)) { (b, a) } else { (a, b) };
    let holds = |v: &Value| match (&b.op, constant(b)) {
        (Op::Range(op), Some(end)) => order(v, end, b).is_none_or(|o| op.holds(o)),
        (Op::Eq { .. }, Some(other)) => order(v, other, b).is_none_or(Ordering::is_eq),
        (Op::InList(l), _) if l.list.len() <= MOST => l.list.iter().any(|e| match e {
            Expr::Const(other) => order(v, other, b).is_none_or(Ordering::is_eq),
            _ => true,
        }),
        _ => true,
    };
    match (&a.op, constant(a)) {
        (Op::Range(op), Some(end)) => match (&b.op, constant(b)) {
            (Op::Range(other), Some(v)) if is_lower(*op) != is_lower(*other) => {
                order(v, end, a).is_some_and(|o| !op.holds(o) || o.is_eq() && strict(*other))
            }
            _ => false,
        },
        (Op::Eq { .. }, Some(v)) => !holds(v),
        (Op::InList(l), _) => !l.list.iter().any(|e| matches!(e, Expr::Const(v) if holds(v))),
        _ => false,
    }
}

/// Whether the column is compared in the same way, without a user's code.
fn alike(a: &Form, b: &Form) -> bool {
    let same = a.affinity == b.affinity || a.affinity.is_numeric() && b.affinity.is_numeric();
    same && a.collation == b.collation && !matches!(a.collation, Collation::Custom(_))
}

/// The constant that the column is compared with.
fn constant(f: &Form) -> Option<&Value> {
    match &f.value {
        Expr::Const(v) if is_plain(v, f) => Some(v),
        _ => None,
    }
}

/// Whether a constant is the same number to all numeric affinities, or none of them applies.
fn is_plain(v: &Value, f: &Form) -> bool {
    match v {
        Value::Null => false,
        Value::Int(i) => i.unsigned_abs() <= 1 << 53,
        Value::Real(_) => true,
        Value::Text(..) | Value::Blob(..) => !f.affinity.is_numeric(),
    }
}

/// How constants compare, as the column is compared with them.
fn order(a: &Value, b: &Value, like: &Form) -> Option<Ordering> {
    compare::under(a, b, like.affinity, false, &like.collation).ok().flatten()
}

fn is_lower(op: CmpOp) -> bool {
    matches!(op, CmpOp::Gt | CmpOp::Ge)
}

fn strict(op: CmpOp) -> bool {
    matches!(op, CmpOp::Gt | CmpOp::Lt)
}

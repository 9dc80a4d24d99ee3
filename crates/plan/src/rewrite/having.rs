//! What HAVING asks of the keys of groups alone is asked of the rows instead, before they are grouped.
//!
//! Rows whose keys are equal but not the same (0 and 0.0, or texts under NOCASE) come to one group. Of keys that compare in
//! BINARY only numbers are like that, and as in SQLite such a condition may then leave a part of the rows of a group.

use crate::bound::*;
use iolite_ext::FunctionFlags;

/// Moves terms of HAVING to the WHERE of a query that has groups.
pub fn to_rows(core: &mut Core) {
    if core.group_by.is_empty() {
        return;
    }
    let Some(having) = core.having.take() else { return };
    let mut terms = Vec::new();
    having.conjuncts(&mut terms);
    let (of_keys, rest): (Vec<_>, Vec<_>) = terms.into_iter().partition(|t| is_of_keys(t, &core.group_by));
    core.filter.extend(of_keys.into_iter().map(|expr| Filter { expr, on: None }));
    core.having = rest.into_iter().reduce(|a, b| Expr::And(Box::new(a), Box::new(b)));
}

/// Whether an expression reads nothing but the keys of groups.
fn is_of_keys(e: &Expr, keys: &[Expr]) -> bool {
    let bare = e.without_collate();
    let key = keys.iter().find(|k| k.without_collate().same(bare));
    if key.is_some_and(|k| k.collation().is_none_or(|c| c.0.is_binary())) {
        return true;
    }
    let closed = match e {
        Expr::Call(c) => !c.function.flags.has(FunctionFlags::DETERMINISTIC),
        Expr::Column(_)
        | Expr::Agg(..)
        | Expr::Window(..)
        | Expr::Subquery(..)
        | Expr::Exists(_)
        | Expr::InSelect(_)
        | Expr::IfNotNullRow(..)
        | Expr::Raise(..) => true,
        _ => false,
    };
    let mut all = !closed;
    e.children(&mut |x| all = all && is_of_keys(x, keys));
    all
}

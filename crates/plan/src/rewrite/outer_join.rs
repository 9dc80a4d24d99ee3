//! Outer joins that need not be: a LEFT JOIN whose NULL rows a later condition rejects is an inner join; one whose
//! right side nobody reads, and which can match once at the most, is nothing (documentation page `optoverview`,
//! sections 13 and 17).

use crate::bound::*;

/// Turns LEFT JOINs into inner joins where conditions reject rows of NULLs.
pub fn strengthen(core: &mut Core) {
    loop {
        let weak = core.sources.iter().position(|s| {
            s.join.left && core.filter.iter().any(|f| counts(core, f, s.id) && rejects_null(&f.expr, s.id))
        });
        let Some(i) = weak else { return };
        core.sources[i].join.left = false;
    }
}

/// Whether the condition is tested on rows that the join of `table` has already made.
fn counts(core: &Core, f: &Filter, table: TableId) -> bool {
    let Some(on) = f.on else { return !core.sources.iter().any(|s| s.join.right) };
    let at = |t: TableId| core.sources.iter().position(|s| s.id == t);
    match (at(on), at(table)) {
        (Some(p), Some(q)) => {
            p > q && !core.sources[p].join.left && !core.sources.iter().any(|s| s.join.right)
        }
        _ => false,
    }
}

/// Whether the condition cannot be true while all columns of `table` are NULL.
pub fn rejects_null(e: &Expr, table: TableId) -> bool {
    match e {
        Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
        Expr::RowOrder(fields) => null_if(&fields[0].lhs, table) || null_if(&fields[0].rhs, table),
        Expr::NotNull(x) => null_if(x, table),
        Expr::IsTruth { e, truth: true, not: false } => rejects_null(e, table) || null_if(e, table),
        Expr::And(a, b) => rejects_null(a, table) || rejects_null(b, table),
        Expr::Or(a, b) => rejects_null(a, table) && rejects_null(b, table),
        Expr::Between { lo, hi } => {
            null_if(&lo.lhs, table) || null_if(&lo.rhs, table) && null_if(&hi.rhs, table)
        }
        // `NULL NOT IN ()` is true.
        Expr::InList(i) => !i.list.is_empty() && null_if(&i.lhs, table),
        Expr::InSelect(i) => !i.not && i.lhs.iter().any(|l| null_if(l, table)),
        Expr::Not(x) => match &**x {
            Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
            Expr::Call(_) => null_if(x, table),
            _ => false,
        },
        other => null_if(other, table),
    }
}

/// Whether the value is NULL while all columns of `table` are NULL.
fn null_if(e: &Expr, table: TableId) -> bool {
    match e {
        Expr::Column(c) => c.table == table,
        Expr::IfNotNullRow(t, _) => *t == table,
        Expr::Plus(x) | Expr::Neg(x) | Expr::BitNot(x) | Expr::Collate(x, _) | Expr::Cast(x, _) => {
            null_if(x, table)
        }
        Expr::Binary(_, a, b) => null_if(a, table) || null_if(b, table),
        Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
        Expr::Call(c)
            if matches!(&*c.function.name, "like" | "glob" | "length" | "abs" | "upper" | "lower") =>
        {
            c.args.iter().any(|a| null_if(a, table))
        }
        _ => false,
    }
}

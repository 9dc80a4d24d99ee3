//! What is declared NOT NULL: `IS NULL` is false of it and `IS NOT NULL` true, and where NULLs stand in an order says
//! nothing.
//!
//! What always holds: the row of NULLs of an outer join has NULLs in such columns, too, and they are left alone then.

use crate::bound::*;

/// Leaves out what is known of columns that are never NULL.
pub fn simplify(core: &mut Core, order_by: &mut [OrderTerm]) {
    for o in order_by.iter_mut().filter(|o| o.nulls_large) {
        o.nulls_large = !never_null(core, &o.expr);
    }
    let told = |f: &Filter| f.on.is_none() && matches!(f.expr, Expr::IsNull(_) | Expr::NotNull(_));
    if !core.filter.iter().any(told) {
        return;
    }
    let filter = std::mem::take(&mut core.filter);
    let keep = |mut f: Filter| match &f.expr {
        Expr::NotNull(e) if f.on.is_none() && never_null(core, e) => None,
        Expr::IsNull(e) if f.on.is_none() && never_null(core, e) => {
            f.expr = Expr::int(0);
            Some(f)
        }
        _ => Some(f),
    };
    core.filter = filter.into_iter().filter_map(keep).collect();
}

/// Whether an expression is a column that has no NULL in any row of the join.
fn never_null(core: &Core, e: &Expr) -> bool {
    let Expr::Column(c) = e.without_collate() else { return false };
    let Some(k) = core.sources.iter().position(|s| s.id == c.table) else { return false };
    let SourceKind::Table { table, .. } = &core.sources[k].kind else { return false };
    let outer = core.sources[k].join.left || core.sources[k + 1..].iter().any(|s| s.join.right);
    let declared = match usize::try_from(c.column) {
        Ok(n) => table.rowid_alias == Some(n) || table.columns[n].not_null.is_some(),
        Err(_) => true,
    };
    declared && !outer
}

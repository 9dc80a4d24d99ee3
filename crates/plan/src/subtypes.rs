//! Where values lose their subtypes: rows that SQLite sorts into groups or that windows go over lie in tables of its own, and what is
//! stored has none. Only columns of virtual tables and what functions answer have subtypes at all.

use crate::bound::*;
use crate::plan::*;

/// The tables of a block whose columns may have subtypes.
pub(crate) fn modules(plan: &CorePlan) -> Vec<TableId> {
    let is_virtual = |l: &&Level| matches!(l.source.kind, SourceKind::Virtual { .. });
    plan.levels.iter().filter(is_virtual).map(|l| l.source.id).collect()
}

/// Takes the subtypes from columns of these tables, and from aggregates if wanted, wherever `e` reads them.
pub(crate) fn strip(e: &mut Expr, tables: &[TableId], aggregates: bool) {
    e.replace(&mut |x| {
        let stored = match x {
            Expr::Agg(..) => aggregates,
            Expr::Column(c) => tables.contains(&c.table),
            _ => false,
        };
        stored.then(|| Expr::NoSubtype(Box::new(x.clone())))
    });
}

/// The same for all that a block reads of rows that are sorted into groups.
pub(crate) fn strip_grouped(plan: &mut CorePlan) {
    let tables = modules(plan);
    if tables.is_empty() {
        return;
    }
    let of_aggs = plan.aggs.iter_mut().flat_map(|a| {
        a.args.iter_mut().chain(&mut a.filter).chain(a.order_by.iter_mut().map(|o| &mut o.expr))
    });
    for e in plan.group_by.iter_mut().chain(&mut plan.having).chain(plan.result.iter_mut()).chain(of_aggs) {
        strip(e, &tables, false);
    }
}

//! Flattening: a query in FROM that only filters and projects dissolves into the one around it
//! (documentation page `optoverview`, section 11).

use super::substitute::{replace_in_core, replace_in_expr};
use super::union_all;
use crate::bound::*;
use iolite_ext::FunctionFlags;

/// What surrounds an arm whose queries in FROM may be flattened.
pub struct Around<'o> {
    /// The ORDER BY of its query.
    pub order_by: &'o mut Vec<OrderTerm>,
    /// It is the only arm.
    pub only: bool,
    /// The rows found are to be changed, in their order.
    pub changing: bool,
}

/// Flattens what can be flattened in `core`.
pub fn flatten(core: &mut Core, around: Around<'_>) {
    let Around { order_by, only, changing } = around;
    let mut i = 0;
    while i < core.sources.len() {
        let (id, alone) = (core.sources[i].id, core.sources.len() == 1);
        if !changing
            && order_is_lost(core, order_by)
            && let SourceKind::Subquery(q) = &mut core.sources[i].kind
            && q.recursive.is_none()
            && q.select.limit.is_none()
            && q.select.offset.is_none()
            && !(alone && begins_with(&q.select.order_by, order_by, id))
        {
            q.select.order_by.clear();
        }
        if fits(core, i, order_by, only && !changing) {
            dissolve(core, i, order_by);
            // What came in may itself be flattened: look at the same place again.
        } else {
            i += 1;
        }
    }
}

/// Moves the LIMIT of the only query in FROM outwards, where nothing around leaves rows out, so that it can be flattened.
pub fn take_limit(s: &mut Select) {
    let [core] = &mut s.cores[..] else { return };
    let [source] = &mut core.sources[..] else { return };
    let SourceKind::Subquery(q) = &mut source.kind else { return };
    let whole = core.filter.is_empty() && !core.aggregate && !core.distinct && core.windows.is_empty();
    // As in SQLite a limit on rows without an order counts those of the order around.
    let ordered_once = s.order_by.is_empty() || q.select.order_by.is_empty();
    let open = s.limit.is_none() && s.offset.is_none() && ordered_once;
    if !whole || !open || q.select.offset.is_some() {
        return;
    }
    let Some(limit) = q.select.limit.take() else { return };
    let one = q.select.cores.len() == 1;
    if if one { fits(core, 0, &s.order_by, true) } else { union_all::fits(core, 0, &s.order_by) } {
        s.limit = Some(limit);
    } else if let SourceKind::Subquery(q) = &mut core.sources[0].kind {
        q.select.limit = Some(limit);
    }
}

/// Whether the order of a query in FROM does not show: the rows are ordered anew or joined, and no aggregate depends on
/// the order in which it sees them.
fn order_is_lost(core: &Core, order_by: &[OrderTerm]) -> bool {
    let any_order = [FunctionFlags::COUNT, FunctionFlags::MIN, FunctionFlags::MAX];
    (!order_by.is_empty() || core.sources.len() > 1)
        && core.windows.is_empty()
        && core.aggs.iter().all(|a| any_order.iter().any(|f| a.function.flags.has(*f)))
}

/// Whether rows in the first order, of the query in FROM with this number, are in the second, too.
fn begins_with(own: &[OrderTerm], around: &[OrderTerm], id: TableId) -> bool {
    let same = |(o, a): (&OrderTerm, &OrderTerm)| {
        matches!(&a.expr, Expr::Column(c) if c.table == id && usize::try_from(c.column).ok() == o.column)
            && (o.desc, o.nulls_large, &o.collation) == (a.desc, a.nulls_large, &a.collation)
    };
    own.len() >= around.len() && own.iter().zip(around).all(same)
}

/// The only query in FROM is a compound that is merged: it is merged in the order that is wanted of the whole.
pub fn hand_down_order(s: &mut Select) {
    let [core] = &mut s.cores[..] else { return };
    let [source] = &mut core.sources[..] else { return };
    let SourceKind::Subquery(q) = &mut source.kind else { return };
    let merged = q.select.ops.iter().any(|o| *o != CompoundOp::UnionAll);
    let free = q.select.order_by.is_empty() && q.select.limit.is_none() && q.recursive.is_none();
    if !merged || !free || core.aggregate || !core.windows.is_empty() {
        return;
    }
    let mut order = Vec::with_capacity(s.order_by.len());
    for o in &s.order_by {
        let Expr::Column(c) = &o.expr else { return };
        let column = usize::try_from(c.column).ok().filter(|_| c.table == source.id && !o.nulls_large);
        let Some(k) = column else { return };
        order.push(OrderTerm { column: Some(k), ..o.clone() });
    }
    q.select.order_by = order;
}

/// `takes`: the arm can take over the order of a query in FROM.
fn fits(core: &Core, i: usize, order_by: &[OrderTerm], takes: bool) -> bool {
    let s = &core.sources[i];
    let SourceKind::Subquery(q) = &s.kind else { return false };
    if q.recursive.is_some() || q.materialize == Some(true) || q.misfit.is_some() || q.select.cores.len() != 1
    {
        return false;
    }
    if q.select.limit.is_some() || q.select.offset.is_some() {
        return false;
    }
    let inner = &q.select.cores[0];
    if inner.aggregate
        || inner.distinct
        || !inner.windows.is_empty()
        || !inner.values.is_empty()
        || inner.sources.is_empty()
    {
        return false;
    }
    if core.sources.len() + inner.sources.len() > 64 {
        return false;
    }
    if core.sources.iter().chain(&inner.sources).any(|x| x.join.right) {
        return false;
    }
    if s.join.left && inner.sources.len() != 1 {
        return false;
    }
    // An order that shows must find a place around.
    let taken = !takes || core.aggregate || !core.windows.is_empty() || !order_by.is_empty();
    if !q.select.order_by.is_empty() && taken {
        return false;
    }
    // What costs much is computed for the rows that come out only: behind the sorter.
    let complex = |e: &Expr| {
        e.any(&mut |x| matches!(x, Expr::Call(_) | Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_)))
    };
    if !q.select.order_by.is_empty() && core.sources.len() == 1 && core.result.iter().any(complex) {
        return false;
    }
    // What an earlier step has made depend on this very source's row of NULLs needs it to stay.
    let pinned = |e: &Expr| e.any(&mut |x| matches!(x, Expr::IfNotNullRow(t, _) if *t == s.id));
    let filters = core.filter.iter().map(|f| &f.expr);
    let exprs = core.result.iter().chain(&core.group_by).chain(&core.having).chain(filters);
    let windows = core.windows.iter().flat_map(WindowDef::exprs);
    let aggs = core.aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter));
    if exprs.chain(aggs).chain(windows).chain(order_by.iter().map(|o| &o.expr)).any(pinned) {
        return false;
    }
    // A group shows a value of one of its rows: by then the cursor, which says whether there is a partner, has gone on.
    if s.join.left && core.aggregate && !inner.result.iter().all(|e| matches!(e, Expr::Column(_))) {
        return false;
    }
    // A result that costs much or changes from call to call must be computed once for each row.
    let volatile = |e: &Expr| {
        e.any(&mut |x| match x {
            Expr::Call(c) => !c.function.flags.has(FunctionFlags::DETERMINISTIC),
            Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_) => s.join.left,
            _ => false,
        })
    };
    !inner.result.iter().any(volatile)
}

fn dissolve(core: &mut Core, i: usize, order_by: &mut Vec<OrderTerm>) {
    let outer = core.sources.several().remove(i);
    let SourceKind::Subquery(q) = outer.kind else { unreachable!("`fits` saw a query") };
    let mut select = q.select;
    let mut inner = select.cores.pop().expect("flattened queries have one arm");
    let left = outer.join.left;
    let only = inner.sources[0].id;
    inner.sources[0].join = outer.join;
    let results = inner.result;
    let columns = select.columns;
    let map = |c: &ColumnRef| -> Option<Expr> {
        if c.table != outer.id {
            return None;
        }
        let k = usize::try_from(c.column).ok()?;
        let mut e = results.get(k)?.clone().as_column();
        if left && !matches!(e, Expr::Column(_)) {
            e = Expr::IfNotNullRow(only, Box::new(e));
        }
        let own = e.collation().map(|x| x.0);
        if own.as_ref() != Some(&columns[k].collation) && own.is_some() {
            e = Expr::Collate(Box::new(e), columns[k].collation.clone());
        }
        Some(e)
    };
    replace_in_core(core, &map);
    order_by.iter_mut().for_each(|o| replace_in_expr(&mut o.expr, &map));
    // What is asked of an inner join may be about any of its tables: it is asked behind them all.
    let one = inner.sources.len() == 1;
    for f in core.filter.iter_mut().filter(|f| f.on == Some(outer.id)) {
        f.on = Some(only).filter(|_| one);
    }
    // Its conditions stand before those around it.
    let around = std::mem::take(&mut core.filter);
    let own =
        inner.filter.into_iter().map(|f| Filter { expr: f.expr, on: if left { Some(only) } else { f.on } });
    core.filter = own.chain(around).collect();
    for (k, s) in inner.sources.into_iter().enumerate() {
        core.sources.several().insert(i + k, s);
    }
    if order_by.is_empty() && !core.aggregate && core.windows.is_empty() {
        *order_by = select.order_by;
        for o in order_by {
            o.column = core.result.iter().position(|e| e.same(&o.expr));
        }
    }
}

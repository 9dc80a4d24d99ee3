//! Visiting every expression of a query, nested queries included.

use crate::bound::*;
use iolite_ext::FunctionFlags;
use std::ops::ControlFlow;

/// Calls `f` on each expression of the query (whole expressions and all below them), entering queries in FROM and
/// in expressions.
pub fn select(s: &Select, f: &mut dyn FnMut(&Expr)) {
    whole(s, &mut |e| expr(e, f));
}

/// Calls `f` on each whole expression of the query, entering queries in FROM.
fn whole(s: &Select, f: &mut dyn FnMut(&Expr)) {
    s.cores.iter().for_each(|c| whole_core(c, f));
    s.order_by.iter().map(|o| &o.expr).chain(&s.limit).chain(&s.offset).for_each(f);
}

fn whole_core(c: &Core, f: &mut dyn FnMut(&Expr)) {
    whole_of_sources(&c.sources, f);
    let Core { filter, group_by, having, aggs, windows, result, values, .. } = c;
    let values = values.fields();
    whole_own(OwnExprs { filter, group_by, having, aggs, windows, result, values }, f);
}

fn whole_of_sources(sources: &[Source], f: &mut dyn FnMut(&Expr)) {
    for s in sources {
        if let SourceKind::Subquery(q) = &s.kind {
            whole_from(q, f);
        }
    }
}

fn whole_from(q: &FromQuery, f: &mut dyn FnMut(&Expr)) {
    whole(&q.select, f);
    if let Some(r) = &q.recursive {
        r.arms.iter().for_each(|a| whole_core(a, f));
        r.order_by.iter().map(|o| &o.expr).chain(&r.limit).chain(&r.offset).for_each(f);
    }
}

/// What an arm computes and tests of its rows.
struct OwnExprs<'c> {
    filter: &'c [Filter],
    group_by: &'c [Expr],
    having: &'c Option<Expr>,
    aggs: &'c [Agg],
    windows: &'c [WindowDef],
    result: &'c [Expr],
    values: &'c [Expr],
}

fn whole_own(c: OwnExprs<'_>, f: &mut dyn FnMut(&Expr)) {
    c.filter.iter().for_each(|x| f(&x.expr));
    c.group_by.iter().chain(c.having).for_each(&mut *f);
    c.result.iter().for_each(&mut *f);
    for a in c.aggs {
        a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.expr)).for_each(&mut *f);
    }
    for w in c.windows {
        w.exprs().for_each(&mut *f);
    }
    c.values.iter().for_each(&mut *f);
}

/// Whether the arm, or any of the expressions in `extra`, reads of a source what is not `held`: columns, or whole expressions
/// over them.
pub fn reads_beyond<'e>(
    c: &Core,
    extra: impl Iterator<Item = &'e Expr>,
    source: TableId,
    held: &dyn Fn(&Expr) -> bool,
) -> bool {
    let mut any = false;
    let mut look = |e: &Expr| any = any || beyond(e, source, held);
    whole_core(c, &mut look);
    extra.into_iter().for_each(look);
    any
}

/// Whether an expression reads of a source what is not `held`: columns, or whole expressions over them.
pub fn beyond(e: &Expr, source: TableId, held: &dyn Fn(&Expr) -> bool) -> bool {
    if e.is_leaf() {
        return matches!(e, Expr::Column(c) if c.table == source && !held(e));
    }
    if held(e) {
        return false;
    }
    let without_subtype = |e: &Expr| held(e) && !e.may_have_subtype();
    let below: &dyn Fn(&Expr) -> bool = match e {
        Expr::Call(c) if c.function.flags.has(FunctionFlags::SUBTYPE) => &without_subtype,
        _ => held,
    };
    let mut any = false;
    let mut look = |e: &Expr| any = any || beyond(e, source, below);
    match e {
        Expr::Subquery(s, _) | Expr::Exists(s) => whole(&s.select, &mut look),
        Expr::InSelect(i) => whole(&i.select.select, &mut look),
        _ => {}
    }
    e.children(&mut look);
    any
}

/// Calls `f` on the expression and all below it, entering nested queries.
pub fn expr(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    if e.is_leaf() {
        return f(e);
    }
    let _ = e.walk(&mut |x| {
        f(x);
        match x {
            Expr::Subquery(s, _) | Expr::Exists(s) => select(&s.select, f),
            Expr::InSelect(i) => select(&i.select.select, f),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// Notes in each source of `c` which columns the arm or any of the expressions in `extra` read.
pub fn mark_used<'e>(c: &mut Core, extra: impl Iterator<Item = &'e Expr>) {
    // What queries in FROM refer to is noted before the sources can be marked.
    let mut inside: Vec<(TableId, i32)> = Vec::new();
    let mut note = |e: &Expr| {
        if let Expr::Column(col) = e
            && !inside.contains(&(col.table, col.column))
        {
            inside.push((col.table, col.column));
        }
    };
    whole_of_sources(&c.sources, &mut |e| expr(e, &mut note));
    let Core { sources, filter, group_by, having, aggs, windows, result, values, .. } = c;
    let mut mark = |table: TableId, column: i32| {
        for s in sources.iter_mut().filter(|s| s.id == table) {
            if column == ROWID {
                s.rowid_used = true;
            } else {
                s.used.insert(column as usize);
            }
        }
    };
    for (table, column) in inside {
        mark(table, column);
    }
    let mut note = |e: &Expr| {
        if let Expr::Column(col) = e {
            mark(col.table, col.column);
        }
    };
    let own = OwnExprs { filter, group_by, having, aggs, windows, result, values: values.fields() };
    whole_own(own, &mut |e| expr(e, &mut note));
    for e in extra {
        expr(e, &mut note);
    }
    for s in sources.iter_mut() {
        // A generated column that is computed when read needs the columns of its expression.
        if let SourceKind::Table { table, .. } = &s.kind
            && table.storage.len() != table.columns.len()
            && s.used.iter().any(|c| table.columns.get(c).is_some_and(|c| !c.is_stored()))
        {
            s.used = NumberSet::first(table.columns.len());
        }
    }
}

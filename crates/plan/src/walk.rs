//! Visiting every expression of a query, nested queries included.

use crate::bound::*;
use std::ops::ControlFlow;

/// Calls `f` on each expression of the query (whole expressions and all below them), entering queries in FROM and
/// in expressions.
pub fn select(s: &Select, f: &mut dyn FnMut(&Expr)) {
    for c in &s.cores {
        core(c, f);
    }
    for e in s.order_by.iter().map(|o| &o.expr).chain(&s.limit).chain(&s.offset) {
        expr(e, f);
    }
}

/// As [`select`], for one arm.
pub fn core(c: &Core, f: &mut dyn FnMut(&Expr)) {
    sources_of(&c.sources, f);
    let Core { filter, group_by, having, aggs, windows, result, values, .. } = c;
    own_exprs(OwnExprs { filter, group_by, having, aggs, windows, result, values }, f);
}

/// What an arm computes and tests of its rows.
struct OwnExprs<'c> {
    filter: &'c [Filter],
    group_by: &'c [Expr],
    having: &'c Option<Expr>,
    aggs: &'c [Agg],
    windows: &'c [WindowDef],
    result: &'c [Expr],
    values: &'c [Vec<Expr>],
}

fn own_exprs(c: OwnExprs<'_>, f: &mut dyn FnMut(&Expr)) {
    c.filter.iter().for_each(|x| expr(&x.expr, f));
    c.group_by.iter().chain(c.having).for_each(|e| expr(e, f));
    c.result.iter().for_each(|e| expr(e, f));
    for a in c.aggs {
        a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.expr)).for_each(|e| expr(e, f));
    }
    for w in c.windows {
        w.exprs().for_each(|e| expr(e, f));
    }
    for row in c.values {
        row.iter().for_each(|e| expr(e, f));
    }
}

fn sources_of(sources: &[Source], f: &mut dyn FnMut(&Expr)) {
    for s in sources {
        if let SourceKind::Subquery(q) = &s.kind {
            from_query(q, f);
        }
    }
}

/// As [`select`], for a query in FROM.
pub fn from_query(q: &FromQuery, f: &mut dyn FnMut(&Expr)) {
    select(&q.select, f);
    if let Some(r) = &q.recursive {
        for a in &r.arms {
            core(a, f);
        }
        for e in r.order_by.iter().map(|o| &o.expr).chain(&r.limit).chain(&r.offset) {
            expr(e, f);
        }
    }
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
    sources_of(&c.sources, &mut |e| {
        if let Expr::Column(col) = e
            && !inside.contains(&(col.table, col.column))
        {
            inside.push((col.table, col.column));
        }
    });
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
    own_exprs(OwnExprs { filter, group_by, having, aggs, windows, result, values }, &mut note);
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

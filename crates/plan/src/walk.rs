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
    for s in &c.sources {
        match &s.kind {
            SourceKind::Subquery(q) => from_query(q, f),
            SourceKind::Virtual { args, .. } => args.iter().for_each(|a| expr(a, f)),
            _ => {}
        }
    }
    let aggs =
        c.aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.expr)));
    let plain = c.filter.iter().map(|x| &x.expr).chain(&c.group_by).chain(&c.having).chain(&c.result);
    for e in plain.chain(aggs).chain(c.values.iter().flatten()) {
        expr(e, f);
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

/// Notes in each source of `c` which columns any of the expressions in `roots` or the arm itself read.
pub fn mark_used(c: &mut Core, extra: &[&Expr]) {
    let mut seen: Vec<(TableId, i32)> = Vec::new();
    {
        let mut note = |e: &Expr| {
            if let Expr::Column(col) = e
                && !seen.contains(&(col.table, col.column))
            {
                seen.push((col.table, col.column));
            }
        };
        core(c, &mut note);
        for e in extra {
            expr(e, &mut note);
        }
    }
    for s in &mut c.sources {
        for &(t, column) in &seen {
            if t == s.id {
                if column == ROWID {
                    s.rowid_used = true;
                } else {
                    let i = column as usize;
                    if s.used.len() <= i {
                        s.used.resize(i + 1, false);
                    }
                    s.used[i] = true;
                }
            }
        }
        // A generated column that is computed when read needs the columns of its expression.
        if let SourceKind::Table { table, .. } = &s.kind
            && table.has_generated()
        {
            s.used = vec![true; table.columns.len()];
        }
    }
}

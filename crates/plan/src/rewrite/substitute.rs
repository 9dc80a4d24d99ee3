//! Replacing columns by expressions, nested queries included.

use crate::bound::*;
use std::rc::Rc;

/// Maps a column reference to what takes its place.
pub type Mapping<'m> = dyn Fn(&ColumnRef) -> Option<Expr> + 'm;

/// Replaces columns in an expression and in the queries nested in it.
pub fn replace_in_expr(e: &mut Expr, map: &Mapping<'_>) {
    match e {
        Expr::Column(c) => {
            if let Some(new) = map(c) {
                *e = new;
            }
        }
        Expr::Subquery(s, _) | Expr::Exists(s) => replace_in_subquery(s, map),
        Expr::InSelect(i) => {
            replace_in_subquery(&mut i.select, map);
            i.lhs.iter_mut().for_each(|l| replace_in_expr(l, map));
        }
        other => other.children_mut(&mut |c| replace_in_expr(c, map)),
    }
}

fn replace_in_subquery(s: &mut Rc<Subquery>, map: &Mapping<'_>) {
    let touched = {
        let mut hit = false;
        crate::walk::select(&s.select, &mut |e| {
            if let Expr::Column(c) = e {
                hit |= map(c).is_some();
            }
        });
        hit
    };
    if !touched {
        return;
    }
    let mut select = s.select.clone();
    let mut outer = s.outer.clone();
    crate::walk::select(&select, &mut |e| {
        if let Expr::Column(c) = e
            && let Some(new) = map(c)
        {
            outer.retain(|t| *t != c.table);
            new.tables(&mut |t| {
                if !outer.contains(&t) {
                    outer.push(t);
                }
            });
        }
    });
    replace_in_select(&mut select, map);
    *s = Rc::new(Subquery { id: s.id, number: s.number, select, outer });
}

/// Replaces columns in a query.
pub fn replace_in_select(s: &mut Select, map: &Mapping<'_>) {
    s.cores.iter_mut().for_each(|c| replace_in_core(c, map));
    let rest = s.order_by.iter_mut().map(|o| &mut o.expr).chain(&mut s.limit).chain(&mut s.offset);
    rest.for_each(|e| replace_in_expr(e, map));
}

/// Replaces columns in one arm.
pub fn replace_in_core(c: &mut Core, map: &Mapping<'_>) {
    for s in &mut c.sources {
        if let SourceKind::Subquery(q) = &mut s.kind {
            replace_in_select(&mut q.select, map);
            if let Some(r) = &mut q.recursive {
                r.arms.iter_mut().for_each(|a| replace_in_core(a, map));
            }
        }
    }
    c.filter.iter_mut().for_each(|f| replace_in_expr(&mut f.expr, map));
    let plain = c.group_by.iter_mut().chain(&mut c.having).chain(&mut c.result);
    plain.chain(c.values.fields_mut()).for_each(|e| replace_in_expr(e, map));
    c.windows.iter_mut().flat_map(WindowDef::exprs_mut).for_each(|e| replace_in_expr(e, map));
    for a in &mut c.aggs {
        let parts = a.args.iter_mut().chain(&mut a.filter).chain(a.order_by.iter_mut().map(|o| &mut o.expr));
        parts.for_each(|e| replace_in_expr(e, map));
    }
}

//! EXISTS as a join: a condition `EXISTS (SELECT ... FROM one table WHERE ...)` becomes a further loop over that table, which
//! ends with the first row that fits. So it can stand where what it depends on is there, and have an automatic index.
//!
//! What always holds: all that the loop's conditions read stands in loops around it (`access`), so that one row that fits is as
//! good as all. Nothing else reads its columns, unless by way of what equals them.

use crate::bound::*;
use std::rc::Rc;

/// Makes loops of what can be one in `core`, after conditions have found their places.
pub fn join(core: &mut Core) {
    if core.sources.is_empty() {
        return;
    }
    for k in 0..core.filter.len() {
        let Filter { expr: Expr::Exists(s), on: None } = &core.filter[k] else { continue };
        if core.sources.len() == 64 || !fits(&s.select) {
            continue;
        }
        let s = s.clone();
        let mut inner = s.select.cores[0].clone();
        let Some(mut source) = inner.sources.several().pop() else { continue };
        core.filter[k].expr = Expr::int(1);
        let own = source.id;
        for e in inner.result.iter().chain(s.select.order_by.iter().map(|o| &o.expr)) {
            e.any(&mut |x| {
                if let Expr::Column(c) = x
                    && c.table == own
                    && let Ok(n) = usize::try_from(c.column)
                {
                    source.used.insert(n);
                }
                false
            });
        }
        source.exists = Some(Rc::clone(&s));
        core.sources.several().push(source);
        for f in inner.filter {
            core.filter.push(f);
        }
    }
}

/// Whether a query has a row as soon as one row of its only table fits.
fn fits(s: &Select) -> bool {
    let [core] = &s.cores[..] else { return false };
    let [source] = &core.sources[..] else { return false };
    s.limit.is_none()
        && s.offset.is_none()
        && !core.aggregate
        && core.values.is_empty()
        && !matches!(source.kind, SourceKind::Subquery(_) | SourceKind::Working(_))
        && source.misfit().is_none()
}

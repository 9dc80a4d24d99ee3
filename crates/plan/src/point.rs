//! The plan that needs no search: one table, and an equality on its rowid with something that is known before.
//!
//! Nothing beats one row found by a rowid, so the search over all accesses would end with the same plan, at ten
//! times the price, and statements of this form are what programs prepare all day. What it does not do: equalities on
//! unique indexes, which the search finds.

use crate::bound::*;
use crate::plan::EqTerm;
use iolite_value::Affinity;

/// The condition of the arm's filter that gives the rowid of its only table, and what the rowid must equal.
pub(crate) fn find(core: &Core) -> Option<(usize, EqTerm)> {
    let [source] = &core.sources[..] else { return None };
    let SourceKind::Table { table, .. } = &source.kind else { return None };
    let forced = matches!(source.indexed, iolite_sql::ast::Indexed::By(_));
    if forced || !table.has_rowid() || source.join != JoinKind::default() {
        return None;
    }
    core.filter.iter().enumerate().find_map(|(n, f)| {
        let Expr::Compare(c) = &f.expr else { return None };
        if c.op != CmpOp::Eq || c.affinity == Affinity::Text {
            return None;
        }
        let is_rowid = |e: &Expr| matches!(e, Expr::Column(x) if x.table == source.id && x.column == ROWID);
        let value = match (is_rowid(&c.lhs), is_rowid(&c.rhs)) {
            (true, false) => &c.rhs,
            (false, true) => &c.lhs,
            _ => return None,
        };
        let mut known = true;
        value.tables(&mut |t| known &= t != source.id);
        known.then(|| (n, EqTerm::Eq { value: value.clone(), null_ok: false, convert: true }))
    })
}

//! `x IN (SELECT column FROM table)`: whether the table or one of its indexes already is what the value is looked up in
//! (documentation page `eqp`, "USING INDEX ... FOR IN-OPERATOR").
//!
//! What always holds: the query gives a column of all rows of one stored table, and the comparison means the same on what is
//! stored. Whether the table may change while the statement runs is for the caller to know.

use crate::access::compares_alike;
use crate::bind::{Env, index_key};
use crate::bound::*;
use crate::plan::{Access, Distinct, Grouping, Lookup, SelectPlan};
use iolite_base::Result;
use iolite_catalog::ColumnSource;

/// Where the values of `plan` can be looked up as `i` compares them.
pub(crate) fn find(env: &Env<'_>, i: &InSelect, plan: &SelectPlan) -> Result<Option<Lookup>> {
    let ([_], [affinity], [collation]) = (&i.lhs[..], &i.affinities[..], &i.collations[..]) else {
        return Ok(None);
    };
    let [core] = &plan.cores[..] else { return Ok(None) };
    let [level] = &core.levels[..] else { return Ok(None) };
    let plain = plan.limit.is_none()
        && plan.offset.is_none()
        && i.select.outer.is_empty()
        && core.window.is_none()
        && core.grouping == Grouping::None
        && core.distinct == Distinct::No
        && core.constant.is_empty()
        && level.on.is_empty()
        && level.filter.is_empty()
        && matches!(level.access, Access::Scan { .. } | Access::IndexScan { .. });
    let (SourceKind::Table { table, .. }, [Expr::Column(c)], true) =
        (&level.source.kind, &core.result[..], plain)
    else {
        return Ok(None);
    };
    // As it is written: what a query around another one becomes is run as it stands.
    let written = i.select.select.cores.first().and_then(|c| c.sources.first());
    if c.table != level.source.id || written.is_none_or(|s| s.id != c.table) {
        return Ok(None);
    }
    let Ok(at) = usize::try_from(c.column) else {
        return Ok(compares_alike(*affinity, c.affinity).then_some(Lookup::Rowids));
    };
    let Some(column) = table.columns.get(at).filter(|c| compares_alike(*affinity, c.affinity)) else {
        return Ok(None);
    };
    if table.rowid_alias == Some(at) {
        return Ok(Some(Lookup::Rowids));
    }
    for index in table.indexes.borrow().iter() {
        let first = &index.columns[0];
        if index.filter.is_none()
            && index.root.get() != 0
            && matches!(first.source, ColumnSource::Column(k) if k == at)
        {
            let key = index_key(env, table, index)?;
            if key.fields[0].coll == *collation {
                return Ok(Some(Lookup::Index(index.clone(), key, column.not_null.is_none())));
            }
        }
    }
    Ok(None)
}

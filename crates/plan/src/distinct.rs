//! SELECT DISTINCT: when there is nothing to remove, and in which order equal results would come next to each other.
//!
//! Likewise for the one aggregate with DISTINCT. What this does not know: the paths that might deliver such an order (`join_order`).

use crate::access::Candidate;
use crate::bound::*;
use crate::cost;
use crate::plan::{Access, EqTerm, Passes};
use crate::terms::{Op, Term};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_value::Collation;

/// The results as an order.
pub(crate) fn terms(core: &Core) -> Vec<OrderTerm> {
    core.result.iter().map(term).collect()
}

/// An order in which equal values of an expression come next to each other.
pub(crate) fn term(e: &Expr) -> OrderTerm {
    let collation = e.collation().map_or(Collation::Binary, |c| c.0);
    OrderTerm { expr: e.clone(), column: None, desc: false, nulls_large: false, collation }
}

/// The argument of the only aggregate with DISTINCT.
pub(crate) fn argument(core: &Core) -> Option<&Expr> {
    let mut distinct = core.aggs.iter().filter(|a| a.distinct);
    match (distinct.next()?, distinct.next()) {
        (a, None) if a.order_by.is_empty() => a.args.first(),
        _ => None,
    }
}

/// The argument of the only aggregate, where it has DISTINCT and counts over all rows: of rows with the same it needs one.
pub(crate) fn lone_argument(core: &Core) -> Option<&Expr> {
    let [a] = &core.aggs[..] else { return None };
    if core.group_by.is_empty() && a.filter.is_none() { argument(core) } else { None }
}

/// How the only loop goes through such values (results, or the argument of an aggregate) where so many entries of its index have each
/// alike that the next is better sought than reached row by row.
pub(crate) fn passes(core: &Core, values: &[Expr], loops: &[Candidate]) -> Option<Passes> {
    let [c] = loops else { return None };
    let single = |e: &EqTerm| matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull);
    let (index, fixed) = match &c.access {
        Access::IndexScan { index, .. } => (index, 0),
        Access::Index(a) if a.eq.iter().all(single) => (&a.index, a.eq.len()),
        _ => return None,
    };
    let source = core.sources[c.source].id;
    let mut fields = fixed;
    for e in values {
        let Expr::Column(column) = e.without_collate() else { return None };
        if column.table != source {
            return None;
        }
        if c.constant.contains(&column.column) {
            continue;
        }
        let is = |s: &ColumnSource| matches!(s, ColumnSource::Column(k) if *k as i32 == column.column);
        let at = index.columns.iter().position(|c| is(&c.source))?;
        fields = fields.max(at + 1);
    }
    let stat = index.stat.borrow();
    let alike = |n: usize| stat.rows.get(n).copied().unwrap_or(1.0);
    let pays = stat.measured && alike(fields) >= cost::PASSED_ROWS;
    pays.then(|| Passes { fields, values: alike(fixed) / alike(fields) })
}

/// Whether no two rows give the same result: it holds a whole key of the only table, as far as the key is not the same in all
/// rows.
pub(crate) fn is_redundant(core: &Core, terms: &[Term]) -> bool {
    let [source] = &core.sources[..] else { return false };
    let SourceKind::Table { table, .. } = &source.kind else { return false };
    if core.aggregate {
        return false;
    }
    let rowid = |e: &Expr| matches!(e, Expr::Column(c) if c.table == source.id && c.column == ROWID);
    core.result.iter().any(rowid)
        || table
            .indexes
            .borrow()
            .iter()
            .any(|i| i.filter.is_none() && holds_key(core, terms, source.id, table, i))
}

/// Whether each column of a unique key is a result that is never NULL, or equals a constant.
fn holds_key(core: &Core, terms: &[Term], source: TableId, table: &Table, index: &Index) -> bool {
    index.unique.is_some()
        && index.columns[..index.key_len].iter().all(|c| {
            let ColumnSource::Column(k) = c.source else { return false };
            let own = &table.columns[k];
            let is_it = |e: &Expr, collation: &Collation| {
                matches!(e.without_collate(), Expr::Column(c) if c.table == source && c.column == k as i32 && c.collation == *collation)
            };
            let shown = |e: &Expr| {
                let collation = e.collation().map_or(Collation::Binary, |c| c.0);
                own.not_null.is_some() && is_it(e, &collation)
            };
            let same_in_all = |t: &Term| {
                t.on.is_none()
                    && t.forms.iter().any(|f| {
                        matches!(f.op, Op::Eq { null_ok: false }) && f.needs == 0 && f.value.is_constant() && is_it(&f.lhs, &f.collation)
                    })
            };
            core.result.iter().any(shown) || terms.iter().any(same_in_all)
        })
}

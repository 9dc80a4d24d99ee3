//! Bloom filters over the keys of inner tables, with lookahead information passing.
//!
//! Whether an inner table has a partner for a row is asked of a small filter over the table's keys as soon as the columns
//! that make the key are there, at the head of the outermost loop that has them, and not only when the loops have come
//! down to that table: in a star join all filters are asked at the head of the fact table's loop ("SQLite: Past, Present,
//! and Future", VLDB 2022, section 4.2). A filter may say yes too often, never no too often, so the loops stay as they are.
//! A LEFT JOIN has none, as a row without a partner must come out of it; its automatic index still has a filter, asked where
//! it is sought. Behind a RIGHT JOIN a filter is asked as soon as that has noted the row.

use crate::bound::{Expr, SourceKind};
use crate::expr::has_subquery;
use crate::plan::*;
use iolite_catalog::ColumnSource;
use iolite_value::{Affinity, Collation, KeyInfo};

/// Decides for each loop whether there is a filter over its keys and where it is asked. A bit of `worth` for each: a filter
/// over keys of a stored table pays.
pub(crate) fn settle(levels: &mut [Level], worth: u64) {
    for j in 0..levels.len() {
        let l = &levels[j];
        // The outermost loop of a nested query, which may be over an automatic index, has no loop around it to ask earlier.
        let depth = if j > 0 { depth(levels, j, worth >> j & 1 != 0) } else { None };
        let own = match &l.access {
            Access::Auto { eq, key, .. } => {
                hashable(key, eq.len())
                    && !holds_text(l, eq)
                    && !l.query.as_ref().is_some_and(|q| q.correlated)
            }
            _ => false,
        };
        levels[j].bloom = match depth {
            Some(d) => Bloom::Early(d),
            None if own => Bloom::AtSeek,
            None => Bloom::None,
        };
    }
}

/// Whether values of these leading key fields can be hashed: equal ones have equal bytes.
fn hashable(key: &KeyInfo, fields: usize) -> bool {
    key.fields.iter().take(fields).all(|f| matches!(f.coll, Collation::Binary | Collation::Binary16(_)))
}

/// Whether one of the columns that are sought holds texts: hashing them costs as much as it spares.
fn holds_text(l: &Level, eq: &[(i32, EqTerm)]) -> bool {
    eq.iter().any(|(c, _)| {
        let Ok(c) = usize::try_from(*c) else { return false };
        match &l.source.kind {
            SourceKind::Subquery(q) => q.select.columns.get(c).is_some_and(|o| o.affinity == Affinity::Text),
            _ => l.source.table().is_some_and(|(_, t)| t.columns[c].affinity == Affinity::Text),
        }
    })
}

/// The loop at whose head the filter of loop `j` is asked.
fn depth(levels: &[Level], j: usize, worth: bool) -> Option<usize> {
    let l = &levels[j];
    if l.source.join.left || l.query.as_ref().is_some_and(|q| q.correlated) {
        return None;
    }
    let values: Vec<&Expr> = match &l.access {
        Access::Auto { eq, key, .. } if hashable(key, eq.len()) && !holds_text(l, eq) => {
            let value = |e: &'_ (i32, EqTerm)| matches!(e.1, EqTerm::Eq { .. });
            if !eq.iter().all(value) {
                return None;
            }
            eq.iter()
                .filter_map(|(_, e)| match e {
                    EqTerm::Eq { value, .. } => Some(value),
                    _ => None,
                })
                .collect()
        }
        Access::RowidEq { eq: EqTerm::Eq { value, .. }, .. } if worth => vec![value],
        Access::Index(a) if worth => index_values(a)?,
        _ => return None,
    };
    if values.iter().any(|v| has_subquery(v)) {
        return None;
    }
    // A RIGHT JOIN has to see what its left side has before a row is left out.
    let mut depth = levels[..j].iter().rposition(|l| l.source.join.right).unwrap_or(0);
    for v in values {
        v.tables(&mut |t| {
            if let Some(d) = levels[..j].iter().position(|l| l.source.id == t) {
                depth = depth.max(d);
            }
        });
    }
    Some(depth)
}

/// The values that an index is sought by, if a filter over the columns that equal them can be asked instead.
fn index_values(a: &IndexAccess) -> Option<Vec<&Expr>> {
    let column = |k: usize| matches!(a.index.columns[k].source, ColumnSource::Column(_));
    if !hashable(&a.key, a.eq.len()) || !(0..a.eq.len()).all(column) {
        return None;
    }
    let mut values = Vec::with_capacity(a.eq.len());
    for e in &a.eq {
        match e {
            EqTerm::Eq { value, .. } => values.push(value),
            _ => return None,
        }
    }
    Some(values)
}

/// Whether a filter over the rows of an inner table that its own conditions let pass is worth a scan of it: the table is
/// known to be half as large as the number of look-ups at the most, and has such conditions (VLDB 2022 paper, section
/// 4.2.1, where it is as large at the most: as estimates go, TPC-H Q8 then scans 150,000 rows to spare 4,000 look-ups).
pub(crate) fn pays(l: &Level, lookups: f64) -> bool {
    let Some((_, table)) = l.source.table() else { return false };
    let rows = table.rows.get();
    let known = rows != iolite_catalog::DEFAULT_ROWS;
    let own = |e: &Expr| {
        let mut reads = false;
        e.tables(&mut |_| reads = true);
        reads && e.belongs_to(l.source.id)
    };
    known
        && rows * 2.0 <= lookups
        && !l.source.join.left
        && match &l.access {
            Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => true,
            Access::Index(a) => !a.eq.is_empty() && index_values(a).is_some(),
            _ => false,
        }
        && l.filter.iter().any(own)
}

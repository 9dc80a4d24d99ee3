//! The plan that needs no search: one table, and equalities on its rowid or on a whole unique key with something that is
//! known before.
//!
//! Nothing beats one row found by its key, so the search over all accesses would end with the same plan, at several times
//! the price, and statements of this form are what programs prepare all day. The rowid goes before unique keys, and of those
//! the first is taken, as the search does it. What this does not do: partial indexes and those on expressions, which the
//! search finds.

use crate::access::{compares_alike, covers};
use crate::bind::{Env, index_key};
use crate::bound::*;
use crate::plan::{Access, EqTerm, IndexAccess};
use iolite_base::{Few, Result};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_sql::ast::Indexed;
use iolite_value::Affinity;
use std::rc::Rc;

/// One row, found by its key; and which conditions of the arm's filter that fulfils.
pub(crate) enum Point {
    Rowid(usize, EqTerm),
    /// Whether the index suffices is not known before [`Point::settle`].
    Key(Few<usize>, Box<IndexAccess>),
}

impl Point {
    /// Whether the access depends on which columns the query needs.
    pub fn is_unsettled(&self) -> bool {
        matches!(self, Point::Key(..))
    }

    /// Says whether the index suffices, once it is known which columns of its table the query needs.
    pub fn settle(&mut self, source: &Source) {
        if let (Point::Key(_, a), SourceKind::Table { table, .. }) = (self, &source.kind) {
            a.covering = covers(source, table, &a.index);
        }
    }

    /// The conditions, and the access.
    pub fn into_access(self) -> (Few<usize>, Access) {
        match self {
            Point::Rowid(n, eq) => (Few::one(n), Access::RowidEq { eq, reverse: false }),
            Point::Key(used, a) => (used, Access::Index(a)),
        }
    }
}

/// Finds the only row that the arm's only table can give, if there is at most one and it is plain to see; not for arms that
/// make something else of their rows, groups or windows.
pub(crate) fn find(env: &Env<'_>, core: &Core) -> Result<Option<Point>> {
    let [source] = &core.sources[..] else { return Ok(None) };
    let SourceKind::Table { table, .. } = &source.kind else { return Ok(None) };
    if matches!(source.indexed, Indexed::By(_))
        || source.join != JoinKind::default()
        || core.filter.is_empty()
        || core.aggregate
        || !core.windows.is_empty()
    {
        return Ok(None);
    }
    if table.has_rowid()
        && let Some((n, _, value)) = equality(core, source, ROWID, |c| c.affinity != Affinity::Text)
    {
        let eq = EqTerm::Eq { value: value.clone(), null_ok: false, convert: true };
        return Ok(Some(Point::Rowid(n, eq)));
    }
    if source.indexed != Indexed::Any {
        return Ok(None);
    }
    for index in table.indexes.borrow().iter() {
        let point = by_key(env, core, source, table, index)?;
        if point.is_some() {
            return Ok(point);
        }
    }
    Ok(None)
}

/// The row that has a key in a unique index, if conditions give all of it.
fn by_key(
    env: &Env<'_>,
    core: &Core,
    source: &Source,
    table: &Rc<Table>,
    index: &Rc<Index>,
) -> Result<Option<Point>> {
    if index.unique.is_none() || index.filter.is_some() || index.root.get() == 0 {
        return Ok(None);
    }
    let mut found = Vec::with_capacity(index.key_len);
    for column in &index.columns[..index.key_len] {
        let ColumnSource::Column(k) = column.source else { return Ok(None) };
        let own = table.columns[k].affinity;
        let Some(e) = equality(core, source, k as i32, |c| !c.null_eq && compares_alike(c.affinity, own))
        else {
            return Ok(None);
        };
        found.push(e);
    }
    let key = index_key(env, table, index)?;
    if !found.iter().zip(&key.fields).all(|((_, c, _), f)| c.collation == f.coll) {
        return Ok(None);
    }
    let eq = found
        .iter()
        .map(|(_, c, value)| EqTerm::Eq {
            value: (*value).clone(),
            null_ok: false,
            convert: c.affinity > Affinity::Blob,
        })
        .collect();
    let used = found.iter().map(|f| f.0).collect();
    let access = IndexAccess {
        index: index.clone(),
        key,
        eq,
        lo: None,
        hi: None,
        not_null: false,
        nulls_apart: false,
        reverse: false,
        covering: false,
        one_row: true,
    };
    Ok(Some(Point::Key(used, Box::new(access))))
}

/// The first condition that says what a column equals, if that does not depend on the table's row: its place, the
/// comparison, and the value.
fn equality<'c>(
    core: &'c Core,
    source: &Source,
    column: i32,
    good: impl Fn(&Compare) -> bool,
) -> Option<(usize, &'c Compare, &'c Expr)> {
    core.filter.iter().enumerate().find_map(|(n, f)| {
        let Expr::Compare(c) = &f.expr else { return None };
        if c.op != CmpOp::Eq || !good(c) {
            return None;
        }
        let is_it = |e: &Expr| matches!(e, Expr::Column(x) if x.table == source.id && x.column == column);
        let value = match (is_it(&c.lhs), is_it(&c.rhs)) {
            (true, false) => &c.rhs,
            (false, true) => &c.lhs,
            _ => return None,
        };
        let mut known = true;
        value.tables(&mut |t| known &= t != source.id);
        known.then_some((n, &**c, value))
    })
}

//! Whether the values that a statement compares have decided about its plan: if not, its program serves other values as well.
//!
//! A parameter means what a literal means, so that answers are the same in any case; what a value may decide is how rows are found,
//! and with that how fast, and in which order where none is asked for. What is not known here is which values were in the text.

use crate::bound::SourceKind;
use crate::plan::{Access, CorePlan, EqTerm, SelectPlan};
use crate::statement::{Body, StatementPlan, modify::Feed};
use iolite_base::hash::hash_bytes;
use iolite_catalog::{ColumnSource, Table};

impl StatementPlan {
    /// Whether it is about the one row, if any, that a whole unique key leads to, and nothing else: values in its
    /// conditions have then decided nothing about the plan.
    pub fn finds_one(&self) -> bool {
        let rows = match &self.body {
            Body::Query(q) if q.cores.len() == 1 => &q.cores[0],
            Body::Modify(m) => match &m.feed {
                Feed::Found { rows, .. } => rows,
                _ => return false,
            },
            _ => return false,
        };
        let one = |a: &Access| match a {
            Access::RowidEq { eq, .. } => matches!(eq, EqTerm::Eq { .. }),
            Access::Index(a) => a.one_row,
            _ => false,
        };
        matches!(&rows.levels[..], [level] if one(&level.access))
    }

    /// A number that is another's only where both find their rows in the same way. None: for other values there may be a better way,
    /// an index that holds some rows alone or one on an expression, or somebody else than the loops runs it.
    pub fn shape(&self) -> Option<u64> {
        let plain = match &self.body {
            Body::Query(q) => plain_query(q),
            Body::Modify(m) => match &m.feed {
                Feed::Found { rows, .. } => plain_core(rows),
                _ => false,
            },
            _ => false,
        };
        if !plain || !self.nested.iter().all(|(_, q)| plain_query(q)) {
            return None;
        }
        let mut text = String::new();
        for line in crate::explain::explain(self, false).list {
            text.push_str(&line.detail);
            text.push('\n');
        }
        Some(hash_bytes(text.as_bytes()))
    }
}

fn plain_query(q: &SelectPlan) -> bool {
    q.cores.iter().all(plain_core)
}

fn plain_core(c: &CorePlan) -> bool {
    c.executor.get().is_none()
        && c.window.as_ref().is_none_or(|w| plain_core(&w.input))
        && c.levels.iter().all(|l| {
            let within = l.query.as_ref().is_none_or(|q| {
                plain_query(&q.select) && q.recursive.as_ref().is_none_or(|r| r.arms.iter().all(plain_core))
            });
            within
                && match &l.source.kind {
                    SourceKind::Table { table, .. } => plain_table(table),
                    SourceKind::Virtual { .. } => false,
                    SourceKind::Subquery(_) | SourceKind::Working(_) => true,
                }
        })
}

/// No value in a condition makes an index of the table fit or not.
fn plain_table(t: &Table) -> bool {
    t.indexes
        .borrow()
        .iter()
        .all(|i| i.filter.is_none() && i.columns.iter().all(|c| !matches!(c.source, ColumnSource::Expr(_))))
}

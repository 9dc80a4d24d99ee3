//! Whether a statement that fails when it has changed something must be undone by itself: then the pages that it changes are kept as they
//! were, which takes as long as changing them. Most statements cannot fail then, but by what ends the whole transaction (files,
//! interruptions, memory and room, rows that grow too long).
//!
//! What this does not know: policies other than ABORT undo nothing, or everything, whatever is kept.

use crate::bind::{Rows, Target, TargetIndex};
use crate::bound::{Expr, Select, SourceKind};
use crate::compiler::Compiler;
use crate::plan::{Access, CorePlan, EqTerm};
use crate::statement::TriggerStep;
use crate::statement::modify::*;
use crate::walk;
use iolite_sql::ast::Conflict;

impl Compiler<'_> {
    /// Whether none of the triggers among these actions can fail. What foreign keys do is seen to where it is planned.
    pub(super) fn cannot_fail(&self, actions: &[RowAction]) -> bool {
        actions.iter().all(|a| match a {
            RowAction::Trigger(n) => {
                let t = &self.triggers[*n];
                t.when.as_ref().is_none_or(Expr::cannot_fail) && t.steps.iter().all(step_cannot_fail)
            }
            RowAction::Count { .. } => true,
            RowAction::Key { .. } => false,
        })
    }
}

/// Whether a statement of a trigger cannot fail, whatever there is.
fn step_cannot_fail(step: &TriggerStep) -> bool {
    let TriggerStep::Modify(m) = step else { return false };
    let t = &m.target;
    if !t.is_stored() || !t.keys.is_empty() || !m.replaced.is_plain() || !m.returning.is_empty() {
        return false;
    }
    let found = match &m.feed {
        Feed::Found { rows, .. } => rows_cannot_fail(rows).then_some(&**rows),
        _ => None,
    };
    match (&m.verb, found) {
        (Verb::Insert(i), _) => {
            let values = match &m.feed {
                Feed::Row(list) => list.iter().all(Expr::cannot_fail),
                feed => matches!(feed, Feed::Defaults),
            };
            values
                && i.upserts.is_empty()
                && i.before.is_empty()
                && i.after.is_empty()
                && insert_cannot_fail(t, i)
        }
        (Verb::Update(c), Some(rows)) => {
            c.before.is_empty()
                && c.after.is_empty()
                && update_cannot_fail(t, c, false)
                && cannot_fail(t, Some(&c.touched), rows, m.pass)
        }
        (Verb::Delete(r), Some(rows)) => r.is_plain() && cannot_fail(t, None, rows, m.pass),
        _ => false,
    }
}

/// Whether finding rows cannot fail.
fn rows_cannot_fail(rows: &CorePlan) -> bool {
    let eq = |e: &EqTerm| match e {
        EqTerm::Eq { value, .. } => value.cannot_fail(),
        EqTerm::IsNull => true,
        _ => false,
    };
    let [level] = &rows.levels[..] else { return false };
    let found = match &level.access {
        Access::Scan { .. } | Access::IndexScan { .. } => true,
        Access::RowidEq { eq: e, .. } => eq(e),
        Access::RowidRange { lo, hi, .. } => lo.iter().chain(hi).all(|b| b.value.cannot_fail()),
        Access::Index(a) => a.eq.iter().all(eq) && a.lo.iter().chain(&a.hi).all(|b| b.value.cannot_fail()),
        _ => false,
    };
    found && level.filter.iter().chain(&rows.constant).all(Expr::cannot_fail)
}

/// Whether a row can be inserted whatever its values are, triggers and clauses for conflicts aside.
pub(super) fn insert_cannot_fail(t: &Target, i: &InsertPlan) -> bool {
    let computed = |(k, c): (usize, &Option<usize>)| {
        let default = t.default_of(k).map(|d| d.as_ref().is_ok_and(Expr::cannot_fail));
        c.is_some() || default.unwrap_or(true)
    };
    matches!(i.key, NewKey::None | NewKey::Made)
        && t.generated.is_empty()
        && !t.calls_out
        && i.columns.iter().enumerate().all(computed)
        && !i.tests.iter().any(|x| can_stop(t, x))
}

/// Whether a row can be changed whatever its values are. `given`: they were computed before.
pub(super) fn update_cannot_fail(t: &Target, c: &Change, given: bool) -> bool {
    let entry = |x: &Test| matches!(x, Test::Entry { .. });
    c.tests.iter().all(entry)
        && !c.key_changes
        && !t.table.is_view()
        && (given || c.sets.iter().all(|s| s.value.cannot_fail()))
}

/// Whether a test can abort the statement.
fn can_stop(t: &Target, test: &Test) -> bool {
    let aborts = |c: &OnConflict| match c {
        OnConflict::Policy(p) => *p == Conflict::Abort,
        // What DO UPDATE does is seen to where it is planned.
        OnConflict::Upsert(_) => false,
    };
    match test {
        Test::NotNull { policy, .. } => *policy == Conflict::Abort,
        Test::Rowid { conflict } => aborts(conflict),
        Test::Entry { index } => !is_plain(&t.indexes[*index]),
        Test::Unique { index, conflict } => aborts(conflict) || !is_plain(&t.indexes[*index]),
        Test::Default { .. } | Test::Generate | Test::Types | Test::Check { .. } => true,
        Test::Again | Test::Parent { .. } => true,
    }
}

/// Whether one of these tests can abort the statement when another one has deleted a row.
pub(super) fn stops_after_replacing(t: &Target, tests: &[Test]) -> bool {
    let first = tests.iter().position(Test::may_replace);
    first.is_some_and(|k| tests[k + 1..].iter().any(|x| can_stop(t, x)))
}

/// Whether nothing can go wrong between the first change of a statement and its last. Rows that were found before the first change
/// went through their conditions. `touched`: indexes that change, all if `None`.
pub(super) fn cannot_fail(t: &Target, touched: Option<&[bool]>, found: &CorePlan, pass: Pass) -> bool {
    let indexes = t.indexes.iter().enumerate();
    let mut changing = indexes.filter(|(k, _)| touched.is_none_or(|list| list[*k])).map(|(_, i)| i);
    let mut tested = found.levels.iter().flat_map(|l| &l.filter).chain(&found.constant);
    t.generated.is_empty() && changing.all(is_plain) && (pass != Pass::One || tested.all(Expr::cannot_fail))
}

/// Whether its entries are columns of the row, and each row has one.
fn is_plain(i: &TargetIndex) -> bool {
    i.filter.is_none() && i.exprs.is_empty()
}

/// Whether computing the rows of an INSERT cannot fail.
pub(super) fn feed_cannot_fail(rows: &Rows) -> bool {
    let Rows::Select(q) = rows else { return true };
    let stored = |s: &SourceKind| match s {
        SourceKind::Table { table, .. } => table.columns.iter().all(|c| c.generated.is_none()),
        _ => false,
    };
    let select = |q: &Select| q.cores.iter().flat_map(|c| &c.sources).all(|s| stored(&s.kind));
    let mut sure = select(q);
    walk::select(q, &mut |e| sure &= e.cannot_fail());
    sure
}

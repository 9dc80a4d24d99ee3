//! What INSERT, REPLACE and UPSERT do.

use super::tests::{NewRow, constraints};
use super::undo::{feed_cannot_fail, insert_cannot_fail};
use crate::bind::{Insert, Rows, Target, Upsert, UpsertTarget};
use crate::bound::{Core, Expr, Select, SourceKind};
use crate::compiler::Compiler;
use crate::plan::SelectPlan;
use crate::planner::Planner;
use crate::statement::modify::*;
use crate::triggers::Event;
use crate::walk;
use iolite_base::Result;
use iolite_sql::ast::{Conflict, TriggerTime};
use std::rc::Rc;

impl Compiler<'_> {
    /// Plans an INSERT.
    pub fn insert(&mut self, s: Insert, mut p: Planner<'_>) -> Result<ModifyPlan> {
        if s.target.virtual_table.is_some() {
            return self.virtual_insert(s, p);
        }
        let Insert { target, columns, rowid, rows, or, upserts: clauses, returning, out } = s;
        let t = &target;
        self.check_writable(t)?;
        self.writes(t.db);
        p.all_nested(&returning)?;
        let is_view = t.table.is_view();
        let fired = self.fired(t, &Event::Insert);
        let watched = !fired.is_empty() || !returning.is_empty();
        let steady = feed_cannot_fail(&rows);
        let (feed, pass) = self.rows_to_insert(rows, t, watched, &mut p)?;
        for (sets, filter) in clauses.iter().filter_map(|u| u.action.as_ref()) {
            p.all_nested(sets.iter().map(|x| &x.value).chain(filter))?;
        }
        let sequence = self.sequence(t)?;
        // What a trigger sees before is what is inserted then: the values are computed once.
        let early = is_view || fired.at(TriggerTime::Before);
        let time = if is_view { TriggerTime::InsteadOf } else { TriggerTime::Before };
        let before = if early { self.actions(t, &fired, time, or)? } else { Vec::new() };
        let replace_fires = self.replace_fires(t);
        let key = new_key(t, rowid, &feed, early, clauses.is_empty() && !replace_fires);
        let row = NewRow {
            target: t,
            or,
            update: None,
            key_changes: true,
            fresh: matches!(key, NewKey::Made),
            replace_fires,
            ignore_checks: self.env.ignore_checks,
            upserts: &clauses,
        };
        let mut tests = if is_view { Vec::new() } else { row.tests() };
        let keeps_written = self.keeps_written(t, &clauses);
        let mut replaced = self.replaced(t, &tests, &mut p).map_err(|e| self.last_complaint(t, e))?;
        let mut upserts = Vec::with_capacity(clauses.len());
        let reached = |k: usize| {
            let hits = |x: &Test| match x {
                Test::Rowid { conflict } | Test::Unique { conflict, .. } => {
                    *conflict == OnConflict::Upsert(k)
                }
                _ => false,
            };
            tests.iter().any(hits)
        };
        for (k, u) in clauses.iter().enumerate() {
            let action = match &u.action {
                Some((sets, filter)) if reached(k) => {
                    // Whatever the statement's policy, the update of a conflicting row aborts where it conflicts itself.
                    let or = Some(Conflict::Abort);
                    let change = self
                        .change(t, sets.clone(), or, !returning.is_empty(), &mut replaced, &mut p)
                        .map_err(|e| self.last_complaint(t, e))?;
                    // One row changes, behind all tests.
                    self.undo |= tests.iter().any(Test::may_replace)
                        || !change.before.is_empty()
                        || !self.cannot_fail(&change.after);
                    Some(UpsertAction { filter: filter.clone(), change })
                }
                _ => None,
            };
            upserts.push(UpsertPlan { excluded: u.excluded, action });
        }
        let alone = matches!(feed, Feed::Row(_) | Feed::Defaults)
            && self.triggers.is_empty()
            && fired.is_empty()
            && replaced.is_plain()
            && !tests.iter().any(Test::may_replace)
            && !self.counts_keys
            && returning.is_empty();
        let mut after = match alone && t.keys.are_immediate() {
            true => {
                tests.extend(self.parent_tests(t, &mut p)?);
                self.awaited(t, &mut p)?
            }
            false => self.key_actions(t, &Event::Insert, alone, &mut p)?,
        };
        if !is_view {
            after.extend(self.actions(t, &fired, TriggerTime::After, or)?);
        }
        // RETURNING counts as a second change, where a constraint may stop the first.
        let may_stop = !t.checks.is_empty()
            || rowid.is_some()
            || t.table.strict
            || t.table.columns.iter().any(|c| c.not_null.is_some())
            || t.indexes.iter().any(|i| i.index.unique.is_some());
        let many = matches!(feed, Feed::Query(_));
        let plan =
            InsertPlan { columns, rowid, key, sequence, early, before, tests, keeps_written, upserts, after };
        let silent = self.cannot_fail(&plan.before) && self.cannot_fail(&plan.after);
        // Where more than one row is inserted, or something happens before, a row may fail when others have been changed.
        let sure = plan.upserts.iter().all(|u| u.action.is_none())
            && replaced.is_plain()
            && t.keys.is_empty()
            && !is_view
            && (pass != Pass::One || steady)
            && insert_cannot_fail(t, &plan);
        let first = !many && plan.before.is_empty();
        let returned = !returning.is_empty()
            && (may_stop || !fired.is_empty() || !returning.iter().all(Expr::cannot_fail));
        self.undo |= !silent || !(first || sure) || returned;
        let verb = Verb::Insert(Box::new(plan));
        Ok(ModifyPlan { target, feed, pass, verb, replaced, returning, out })
    }

    /// Rows first: a query that reads the table, or triggers that may, must be done before the first change.
    pub(super) fn rows_to_insert(
        &mut self,
        rows: Rows,
        t: &Target,
        watched: bool,
        p: &mut Planner<'_>,
    ) -> Result<(Feed, Pass)> {
        Ok(match rows {
            Rows::Row(list) => {
                p.all_nested(&list)?;
                (Feed::Row(list), Pass::One)
            }
            Rows::Defaults => (Feed::Defaults, Pass::One),
            Rows::Select(mut q) => {
                let pass = match (reads_table(&q, t), watched) {
                    (true, _) => Pass::Collected(Why::ReadsTarget),
                    (false, true) => Pass::Collected(Why::Triggers),
                    (false, false) => Pass::One,
                };
                let mut plan = Box::new(SelectPlan::with_one_arm());
                p.select_into(&mut q, &mut plan)?;
                (Feed::Query(plan), pass)
            }
        })
    }

    /// What `excluded` shows where the rowid is taken, and is looked for before all else: the values before the columns'
    /// affinities, but for whole numbers in REAL columns.
    fn keeps_written(&self, t: &Target, clauses: &[Upsert]) -> bool {
        let about_rowid = |u: &&Upsert| matches!(u.target, UpsertTarget::Any | UpsertTarget::Rowid);
        let updates = clauses.iter().find(about_rowid).is_some_and(|u| u.action.is_some());
        let first = constraints(clauses).first().is_none_or(Option::is_none);
        let checked = !t.checks.is_empty() && !self.env.ignore_checks;
        updates && first && !checked && !t.table.strict && t.generated.is_empty() && t.table.has_rowid()
    }
}

/// Where the new rowid comes from. `sure`: one that is made need not be looked for.
fn new_key(t: &Target, rowid: Option<usize>, feed: &Feed, early: bool, sure: bool) -> NewKey {
    let Some(k) = rowid.filter(|_| t.table.has_rowid()) else {
        return if t.table.has_rowid() { NewKey::Made } else { NewKey::None };
    };
    match feed {
        Feed::Row(list) if !early => match &list[k] {
            Expr::Const(v) if v.is_null() && sure => NewKey::Made,
            // Clauses for a conflict, and triggers, are looked at although there cannot be one.
            Expr::Const(v) if v.is_null() => NewKey::MadeAndTested,
            Expr::Const(_) => NewKey::Given,
            _ => NewKey::GivenOrMade,
        },
        _ => NewKey::GivenOrMade,
    }
}

/// Whether a query reads the table.
fn reads_table(q: &Select, t: &Target) -> bool {
    fn select(q: &Select, t: &Target) -> bool {
        q.cores.iter().any(|c| core(c, t))
    }
    fn core(c: &Core, t: &Target) -> bool {
        c.sources.iter().any(|s| match &s.kind {
            SourceKind::Table { table, .. } => Rc::ptr_eq(table, &t.table),
            SourceKind::Subquery(q) => {
                select(&q.select, t)
                    || q.recursive.as_ref().is_some_and(|r| r.arms.iter().any(|a| core(a, t)))
            }
            // The rows of others may be computed without end: they are not collected.
            SourceKind::Virtual { vtab, .. } => {
                t.virtual_table.as_ref().is_some_and(|c| Rc::ptr_eq(&c.vtab, vtab))
            }
            SourceKind::Working(_) => false,
        })
    }
    let mut hit = select(q, t);
    walk::select(q, &mut |e| {
        hit |= match e {
            Expr::Subquery(s, _) | Expr::Exists(s) => select(&s.select, t),
            Expr::InSelect(i) => select(&i.select.select, t),
            _ => false,
        }
    });
    hit
}

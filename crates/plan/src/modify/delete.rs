//! What DELETE does, and what REPLACE does to the rows in its way; which tables may be written at all.

use super::undo::{cannot_fail, stops_after_replacing};
use super::update::{all_columns, is_key_order, key_columns};
use crate::bind::{Delete, Target};
use crate::bound::Expr;
use crate::compiler::Compiler;
use crate::expr::has_subquery;
use crate::plan::{Access, CorePlan, EqTerm};
use crate::planner::Planner;
use crate::statement::modify::*;
use crate::triggers::Event;
use iolite_base::{Error, Result};
use iolite_ext::Implementation;
use iolite_sql::ast::{Conflict, TriggerTime};

impl Compiler<'_> {
    /// Plans a DELETE.
    pub fn delete(&mut self, s: Delete, mut p: Planner<'_>) -> Result<ModifyPlan> {
        if s.target.virtual_table.is_some() {
            return self.virtual_delete(s, p);
        }
        let Delete { target, rows, returning, out } = s;
        let t = &target;
        self.check_writable(t)?;
        self.writes(t.db);
        p.all_nested(&returning)?;
        let is_view = t.table.is_view();
        let removal = self.removal(t, None, true, &mut p)?;
        let unseen = removal.is_plain() && returning.is_empty();
        let silent =
            returning.is_empty() && self.cannot_fail(&removal.before) && self.cannot_fail(&removal.after);
        let (feed, pass) = if !is_view && rows.filter.is_empty() && unseen && t.table.root.get() != 1 {
            (Feed::Everything, Pass::One)
        } else {
            let kept = if is_view { all_columns(t) } else { key_columns(t)? };
            let keys = kept.len();
            let found = self.found(rows, kept, &mut p)?;
            let pass = delete_pass(t, &found, &removal, !returning.is_empty());
            let one_row = pass == Pass::One && found.levels.first().is_some_and(|l| finds_one(&l.access));
            self.undo |= !silent || is_view || !(one_row || cannot_fail(t, None, &found, pass));
            (Feed::Found { rows: Box::new(found), keys, given: false }, pass)
        };
        let (verb, replaced) = (Verb::Delete(removal), Removal::default());
        Ok(ModifyPlan { target, feed, pass, verb, replaced, returning, out })
    }

    /// What happens around the deletion of a row.
    fn removal(
        &mut self,
        t: &Target,
        or: Option<Conflict>,
        fires: bool,
        p: &mut Planner<'_>,
    ) -> Result<Removal> {
        let mut after = self.key_actions(t, &Event::Delete, false, p)?;
        if !fires {
            return Ok(Removal { before: Vec::new(), after });
        }
        let fired = self.fired(t, &Event::Delete);
        let time = if t.table.is_view() { TriggerTime::InsteadOf } else { TriggerTime::Before };
        let before = self.actions(t, &fired, time, or)?;
        after.extend(self.actions(t, &fired, TriggerTime::After, or)?);
        Ok(Removal { before, after })
    }

    /// Whether rows that REPLACE deletes fire triggers.
    pub(super) fn replace_fires(&self, t: &Target) -> bool {
        self.env.recursive_triggers && !self.fired(t, &Event::Delete).is_empty()
    }

    /// What happens to rows that these tests may replace. The statements of triggers replace, too, even where it is the
    /// constraint that says so.
    pub(super) fn replaced(&mut self, t: &Target, tests: &[Test], p: &mut Planner<'_>) -> Result<Removal> {
        let replace = OnConflict::Policy(Conflict::Replace);
        let replaces = |x: &Test| match x {
            Test::Rowid { conflict } | Test::Unique { conflict, .. } => *conflict == replace,
            _ => false,
        };
        if !tests.iter().any(replaces) {
            return Ok(Removal::default());
        }
        let removal = self.removal(t, Some(Conflict::Replace), self.replace_fires(t), p)?;
        self.undo |= !removal.is_plain() || !t.keys.is_empty() || stops_after_replacing(t, tests);
        Ok(removal)
    }

    /// Complains about tables that may not be written.
    pub(super) fn check_writable(&self, t: &Target) -> Result<()> {
        let name = &t.table.name;
        let schema = t.table.root.get() == 1 && !self.env.writable_schema && !self.env.own;
        if schema || self.env.is_protected(t.db, &t.table) {
            return Err(Error::sql(format!("table {name} may not be modified")));
        }
        if t.table.is_view() && self.env.catalog.triggers_of(t.db, &t.table).is_empty() {
            return Err(Error::sql(format!("cannot modify {name} because it is a view")));
        }
        Ok(())
    }
}

/// Whether at most one row is found: nothing is looked for any more once it is changed, whatever happens beside.
pub(super) fn finds_one(a: &Access) -> bool {
    match a {
        Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => true,
        Access::Index(a) => a.one_row && a.eq.iter().all(|e| matches!(e, EqTerm::Eq { .. })),
        _ => false,
    }
}

/// Whether a function of the program's is called, which may change the row at hand.
fn is_users(e: &Expr) -> bool {
    e.any(&mut |x| matches!(x, Expr::Call(c) if matches!(c.function.imp, Implementation::User(_))))
}

/// Whether nothing beside a deletion looks at the table itself: violations of foreign keys are counted in other tables.
fn looks_elsewhere(t: &Target, removal: &Removal) -> bool {
    let elsewhere = |a: &RowAction| match *a {
        RowAction::Count { role, key, .. } => !t.keys.test(role, key).itself,
        RowAction::Trigger(_) | RowAction::Key { .. } => false,
    };
    removal.before.is_empty() && removal.after.iter().all(elsewhere)
}

/// When the rows of a DELETE are deleted.
fn delete_pass(t: &Target, found: &CorePlan, removal: &Removal, returned: bool) -> Pass {
    if t.table.is_view() {
        return Pass::Collected(Why::View);
    }
    let [level] = &found.levels[..] else { return Pass::KeysFirst(Why::Join) };
    if finds_one(&level.access) {
        return Pass::One;
    }
    let simple = match &level.access {
        Access::Scan { .. } | Access::RowidRange { .. } => true,
        // The loop runs on the cursor that deletes the index's entries.
        Access::Index(a) => a.eq.iter().all(|e| matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull)),
        Access::IndexScan { index, .. } => is_key_order(t, index),
        Access::RowidEq { .. } | Access::Or(_) | Access::Auto { .. } | Access::Virtual { .. } => false,
    };
    Pass::KeysFirst(if !looks_elsewhere(t, removal) {
        Why::Triggers
    } else if returned {
        Why::Returning
    } else if level.filter.iter().any(|f| has_subquery(f) || !t.table.has_rowid() && is_users(f)) {
        Why::NestedQuery
    } else if !simple {
        Why::Access
    } else {
        return Pass::One;
    })
}

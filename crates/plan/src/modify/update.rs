//! What UPDATE does: one pass where the loop cannot meet a changed row again, else keys first, changes after.

use super::delete::finds_one;
use super::tests::{NewRow, due_checks};
use super::undo::{cannot_fail, update_cannot_fail};
use crate::bind::{Set, Target, Update};
use crate::bound::{
    ColumnRef, Core, Expr, FromQuery, JoinKind, NumberSet, ROWID, Select, Source, SourceKind, TableId,
};
use crate::compiler::Compiler;
use crate::expr::has_subquery;
use crate::plan::{Access, CorePlan, EqTerm};
use crate::planner::Planner;
use crate::statement::modify::*;
use crate::triggers::Event;
use iolite_base::{Code, Error, Few, Result};
use iolite_catalog::ColumnSource;
use iolite_sql::ast::{Conflict, Indexed, TriggerTime};
use iolite_value::Affinity;
use std::rc::Rc;

impl Compiler<'_> {
    /// Plans an UPDATE.
    pub fn update(&mut self, s: Update, mut p: Planner<'_>) -> Result<ModifyPlan> {
        if s.target.virtual_table.is_some() {
            return self.virtual_update(s, p);
        }
        let Update { target, sets, rows, summary, or, returning, out } = s;
        let t = &target;
        self.check_writable(t)?;
        self.writes(t.db);
        p.all_nested(returning.iter().chain(sets.iter().map(|x| &x.value)))?;
        let mut replaced = Removal::default();
        let is_view = t.table.is_view();
        if is_view && self.fired(t, &event(t, &sets)).is_empty() {
            return Err(Error::sql(format!("cannot modify {} because it is a view", t.table.name)));
        }
        // New values that read other tables are computed in the loop and kept.
        let joined = rows.sources.len() > 1;
        let given = joined || is_view;
        let mut kept = if is_view { all_columns(t) } else { key_columns(t)? };
        let keys = kept.len();
        if given {
            kept.extend(sets.iter().map(|x| x.value.clone()));
        }
        let nested = sets.iter().any(|x| has_subquery(&x.value));
        let filter_nested = rows.filter.iter().any(|f| has_subquery(&f.expr));
        let (rows, kept) = summarized(rows, kept, summary);
        let found = self.found(rows, kept, &mut p)?;
        let change = self.change(t, sets, or, !returning.is_empty(), &mut replaced, &mut p)?;
        let pass = if is_view {
            Pass::Collected(Why::View)
        } else {
            update_pass(t, &change, &found, or, (joined, nested, filter_nested), !returning.is_empty())
        };
        let one_row = pass == Pass::One && found.levels.first().is_some_and(|l| finds_one(&l.access));
        let alone = change.before.is_empty() && change.after.is_empty();
        let silent = alone
            || returning.is_empty() && self.cannot_fail(&change.before) && self.cannot_fail(&change.after);
        let sure = returning.is_empty()
            && update_cannot_fail(t, &change, given)
            && cannot_fail(t, Some(&change.touched), &found, pass);
        // Of one row the tests come before the change, and what comes behind it cannot fail.
        self.undo |= !silent || !(sure || one_row && change.before.is_empty());
        self.undo |= !returning.iter().all(Expr::cannot_fail);
        let feed = Feed::Found { rows: Box::new(found), keys, given };
        let verb = Verb::Update(Box::new(change));
        Ok(ModifyPlan { target, feed, pass, verb, replaced, returning, out })
    }

    /// The plan of the rows to change.
    pub(super) fn found(
        &mut self,
        mut rows: Core,
        result: Vec<Expr>,
        p: &mut Planner<'_>,
    ) -> Result<CorePlan> {
        rows.result = result.into();
        let mut plan = CorePlan::default();
        p.rows_to_change(&mut rows, &mut plan)?;
        Ok(plan)
    }

    /// How a row becomes another. `returned`: somebody wants to see it then.
    pub(super) fn change(
        &mut self,
        t: &Target,
        sets: Vec<Set>,
        or: Option<Conflict>,
        returned: bool,
        replaced: &mut Removal,
        p: &mut Planner<'_>,
    ) -> Result<Change> {
        let (changed, key_changes) = changes(t, &sets);
        let touched = touched_indexes(t, &changed, key_changes);
        let fired = self.fired(t, &event(t, &sets));
        let typed_early = t.table.strict && fired.at(TriggerTime::Before);
        let time = if t.table.is_view() { TriggerTime::InsteadOf } else { TriggerTime::Before };
        let before = self.actions(t, &fired, time, or)?;
        let row = NewRow {
            target: t,
            or,
            update: Some((&changed, &touched)),
            key_changes,
            fresh: false,
            replace_fires: self.replace_fires(t),
            ignore_checks: self.env.ignore_checks,
            upserts: &[],
        };
        let tests = if t.table.is_view() { Vec::new() } else { row.tests() };
        if replaced.is_plain() {
            *replaced = self.replaced(t, &tests, p)?;
        }
        let mut after = self.key_actions(t, &Event::Update(changed.clone()), false, p)?;
        let watched = !fired.is_empty() || !after.is_empty() || returned;
        let reseeks = replaces(t, or) || key_changes;
        // The key is read to seek the row of a table without rowids again.
        let whole = watched || reseeks && !t.table.has_rowid();
        let old = self.old_row(t, &sets, &changed, key_changes, &touched, whole);
        after.extend(self.actions(t, &fired, TriggerTime::After, or)?);
        Ok(Change { sets, changed, key_changes, touched, old, typed_early, before, tests, reseeks, after })
    }

    /// How much of the old row has to be read. The new record can be made out of the old one where nobody asks for the
    /// columns that are not assigned, and there are enough of them to be worth it. (With two, an UPDATE by key took 4
    /// percent more instructions than by decoding them.) `whole`: it is asked for as a whole.
    fn old_row(
        &self,
        t: &Target,
        sets: &[Set],
        changed: &[bool],
        key_changes: bool,
        touched: &[bool],
        whole: bool,
    ) -> OldRow {
        const WORTH: usize = 8;
        // The tests of other indexes ask for the old key.
        let own_key =
            key_changes || t.calls_out || t.indexes.iter().zip(touched).any(|(i, x)| *x && !i.is_table);
        if whole || !t.table.has_rowid() && own_key {
            return OldRow::Whole;
        }
        let patched = t.table.has_rowid()
            && !key_changes
            && t.generated.is_empty()
            && t.table.storage.len() >= sets.len() + WORTH
            && !touched.contains(&true)
            && (self.env.ignore_checks || due_checks(t, Some(changed), key_changes).is_empty());
        if patched { OldRow::Patched } else { OldRow::AsNeeded }
    }
}

/// The rows, and what is kept of them: where the new values summarize, a query in FROM computes it.
pub(super) fn summarized(mut rows: Core, kept: Vec<Expr>, summary: Option<TableId>) -> (Core, Vec<Expr>) {
    let Some(id) = summary else { return (rows, kept) };
    let column = |(i, e): (usize, &Expr)| {
        let column = i as i32;
        Expr::Column(ColumnRef { table: id, column, affinity: e.affinity(), collation: Default::default() })
    };
    let columns = kept.iter().enumerate().map(column).collect();
    rows.result = kept.into();
    let select = Select { cores: Few::one(rows), ..Select::default() };
    let query = Source {
        id,
        kind: SourceKind::Subquery(Box::new(FromQuery::plain(select))),
        name: Default::default(),
        shown: None,
        join: JoinKind::default(),
        indexed: Indexed::Any,
        exists: None,
        used: NumberSet::default(),
        rowid_used: false,
        held: Vec::new(),
        binding: None,
    };
    (Core { sources: Few::one(query), ..Core::default() }, columns)
}

/// A reference to a column of the target's row.
pub(super) fn row_column(t: &Target, column: i32) -> Expr {
    let affinity = if column < 0 { Affinity::Integer } else { t.table.columns[column as usize].affinity };
    Expr::Column(ColumnRef { table: t.id, column, affinity, collation: Default::default() })
}

/// What identifies a row of the target.
pub(super) fn key_columns(t: &Target) -> Result<Vec<Expr>> {
    if t.table.has_rowid() {
        return Ok(vec![row_column(t, ROWID)]);
    }
    let pk = t.table.primary_index().ok_or(Code::Internal)?;
    let column = |c: &iolite_catalog::IndexColumn| match c.source {
        ColumnSource::Column(k) => Some(row_column(t, k as i32)),
        _ => None,
    };
    Ok(pk.columns[..pk.key_len].iter().filter_map(column).collect())
}

/// All columns of a view's row.
pub(super) fn all_columns(t: &Target) -> Vec<Expr> {
    (0..t.table.columns.len() as i32).map(|c| row_column(t, c)).collect()
}

/// Which columns an UPDATE changes, and whether the row's key may change.
fn changes(t: &Target, sets: &[Set]) -> (Vec<bool>, bool) {
    let mut changed = assigned(t, sets);
    let mut key = sets.iter().any(|s| s.column == ROWID);
    for (c, e) in &t.generated {
        if e.any(&mut |x| matches!(x, Expr::Column(k) if k.column < 0 || changed[k.column as usize])) {
            changed[*c] = true;
        }
    }
    if let Some(pk) = t.table.primary_index() {
        let own = &pk.columns[..pk.key_len];
        key = own.iter().any(|c| matches!(c.source, ColumnSource::Column(k) if changed[k]));
    }
    (changed, key)
}

/// The columns that are assigned.
fn assigned(t: &Target, sets: &[Set]) -> Vec<bool> {
    let mut out = vec![false; t.table.columns.len()];
    for s in sets {
        match (s.column, t.table.rowid_alias) {
            (ROWID, Some(alias)) => out[alias] = true,
            (ROWID, None) => {}
            (column, _) => out[column as usize] = true,
        }
    }
    out
}

/// The event of an UPDATE: a trigger's OF names columns that are assigned, not those computed from them.
fn event(t: &Target, sets: &[Set]) -> Event {
    Event::Update(assigned(t, sets))
}

/// The indexes that an UPDATE must touch.
fn touched_indexes(t: &Target, changed: &[bool], key_changes: bool) -> Vec<bool> {
    let affected = |k: usize| changed[k] || t.table.columns[k].generated.is_some();
    let reads = |e: &Expr| {
        e.any(&mut |x| matches!(x, Expr::Column(c) if c.column >= 0 && affected(c.column as usize)))
    };
    let touched = |i: &crate::bind::TargetIndex| {
        key_changes
            || i.is_table
            || i.index.columns.iter().enumerate().any(|(n, c)| match &c.source {
                ColumnSource::Column(k) => affected(*k),
                ColumnSource::Rowid => false,
                ColumnSource::Expr(_) => i.expr(n).is_some_and(reads),
            })
            || i.filter.as_ref().is_some_and(reads)
    };
    t.indexes.iter().map(touched).collect()
}

/// Whether any constraint may replace a row.
fn replaces(t: &Target, or: Option<Conflict>) -> bool {
    or == Some(Conflict::Replace)
        || t.table.key_conflict == Some(Conflict::Replace)
        || t.indexes.iter().any(|i| i.index.unique == Some(Conflict::Replace))
}

/// When the rows of an UPDATE are changed. `joined`, `nested`, `filter_nested`: there is a FROM clause; the new
/// values, or the conditions, hold queries.
fn update_pass(
    t: &Target,
    change: &Change,
    found: &CorePlan,
    or: Option<Conflict>,
    (joined, nested, filter_nested): (bool, bool, bool),
    returned: bool,
) -> Pass {
    let triggers = !change.before.is_empty() || !change.after.is_empty();
    let level = found.levels.first().filter(|_| found.levels.len() == 1);
    let why = if joined {
        Why::Join
    } else if !t.table.is_view() && level.is_some_and(|l| finds_one(&l.access)) {
        return Pass::One;
    } else if triggers {
        Why::Triggers
    } else if change.key_changes {
        Why::KeyChanges
    } else if replaces(t, or) {
        Why::Replace
    } else if nested || level.is_some_and(|l| l.filter.iter().any(has_subquery)) {
        Why::NestedQuery
    } else if returned {
        Why::Returning
    } else if !level.is_some_and(|l| is_safe(&l.access, t, &change.touched)) {
        Why::Access
    } else {
        return Pass::One;
    };
    // A row that several partners match is changed once, by the last.
    let in_place = !joined
        && !triggers
        && !change.key_changes
        && !returned
        && !filter_nested
        && or != Some(Conflict::Replace)
        && level.is_some_and(|l| found_in_place(&l.access, t, &change.touched));
    if in_place { Pass::Collected(why) } else { Pass::KeysFirst(why) }
}

/// Whether the loop may go on over rows it has changed: its order depends on nothing that changes.
fn is_safe(a: &Access, t: &Target, touched: &[bool]) -> bool {
    match a {
        Access::Scan { .. } | Access::RowidRange { .. } | Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => {
            true
        }
        Access::Index(i) => {
            let own = t.indexes.iter().position(|x| Rc::ptr_eq(&x.index, &i.index));
            // Entries of the key's own index stay where they are: the key does not change.
            own.is_some_and(|k| !touched[k] || t.indexes[k].is_table)
                && !i.eq.iter().any(|e| matches!(e, EqTerm::InSelect(..)))
        }
        Access::IndexScan { index, .. } => is_key_order(t, index),
        Access::RowidEq { .. } | Access::Or(_) | Access::Auto { .. } | Access::Virtual { .. } => false,
    }
}

/// Whether an index is the tree of a table without rowids itself.
pub(super) fn is_key_order(t: &Target, index: &Rc<iolite_catalog::Index>) -> bool {
    t.indexes.iter().any(|i| i.is_table && Rc::ptr_eq(&i.index, index))
}

/// Whether rows that are collected first can be changed in the order in which they are found: neither does that order
/// change, nor does a change delete another row.
fn found_in_place(a: &Access, t: &Target, touched: &[bool]) -> bool {
    let replaces = |k: usize| touched[k] && t.indexes[k].index.unique == Some(Conflict::Replace);
    let index = match a {
        Access::IndexScan { index, .. } => Some(index),
        Access::Index(i) => Some(&i.index),
        Access::Scan { .. } | Access::RowidRange { .. } => None,
        Access::RowidEq { .. } | Access::Or(_) | Access::Auto { .. } | Access::Virtual { .. } => {
            return false;
        }
    };
    let own = |i| t.indexes.iter().position(|x| Rc::ptr_eq(&x.index, i));
    index.is_none_or(|i| own(i).is_some_and(|k| !touched[k] || t.indexes[k].is_table))
        && !(0..touched.len()).any(|k| !t.indexes[k].is_table && replaces(k))
}

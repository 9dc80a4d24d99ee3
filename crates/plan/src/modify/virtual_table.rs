//! What INSERT, UPDATE and DELETE do to virtual tables: a module is told of each row, and does what else is to be done.
//!
//! Rows that are found are collected first, since nobody knows what a change does to a cursor, unless there is one at the
//! most: then its cursor is closed before. Of a deletion the keys are collected, of an update the whole new rows. No triggers
//! fire, no constraint is tested, no value is converted.

use super::update::{row_column, summarized};
use crate::bind::{Connected, Delete, Insert, Target, Update};
use crate::bound::{Core, Expr, ROWID};
use crate::compiler::Compiler;
use crate::plan::{Access, CorePlan, VtabHandle};
use crate::planner::Planner;
use crate::statement::modify::*;
use iolite_base::{Code, Result};
use iolite_sql::ast::Conflict;
use std::rc::Rc;

impl Compiler<'_> {
    pub(super) fn virtual_insert(&mut self, s: Insert, mut p: Planner<'_>) -> Result<ModifyPlan> {
        let Insert { target, columns, rowid, rows, or, returning, out, .. } = s;
        self.writes(target.db);
        p.all_nested(&returning)?;
        let (feed, pass) = self.rows_to_insert(rows, &target, false, &mut p)?;
        self.undo |= matches!(feed, Feed::Query(_));
        let verb = self.told(&target, or, VirtualChange::Insert { columns, rowid })?;
        Ok(ModifyPlan { target, feed, pass, verb, replaced: Removal::default(), returning, out })
    }

    pub(super) fn virtual_update(&mut self, s: Update, mut p: Planner<'_>) -> Result<ModifyPlan> {
        let Update { target, sets, rows, summary, or, returning, out } = s;
        self.writes(target.db);
        p.all_nested(sets.iter().map(|x| &x.value))?;
        let t = &target;
        // All that is read while the cursor stands on the row.
        let column = |k: usize| match sets.iter().find(|x| x.column == k as i32) {
            Some(x) => x.value.clone(),
            None => row_column(t, k as i32),
        };
        let mut read: Vec<Expr> = (0..t.table.columns.len()).map(column).collect();
        read.extend(sets.iter().filter(|x| x.column == ROWID).map(|x| x.value.clone()));
        read.push(virtual_key(t)?);
        let (rows, read) = summarized(rows, read, summary);
        let (feed, pass) = self.found_virtual(rows, read, 0, &mut p)?;
        let verb = self.told(t, or, VirtualChange::Update { sets })?;
        Ok(ModifyPlan { target, feed, pass, verb, replaced: Removal::default(), returning, out })
    }

    pub(super) fn virtual_delete(&mut self, s: Delete, mut p: Planner<'_>) -> Result<ModifyPlan> {
        let Delete { target, rows, returning, out } = s;
        self.writes(target.db);
        let (feed, pass) = self.found_virtual(rows, vec![virtual_key(&target)?], 1, &mut p)?;
        let verb = self.told(&target, None, VirtualChange::Delete)?;
        Ok(ModifyPlan { target, feed, pass, verb, replaced: Removal::default(), returning, out })
    }

    /// The rows that are changed, and when.
    fn found_virtual(
        &mut self,
        rows: Core,
        read: Vec<Expr>,
        keys: usize,
        p: &mut Planner<'_>,
    ) -> Result<(Feed, Pass)> {
        let found = self.found(rows, read, p)?;
        let pass = match (is_one_row(&found), keys) {
            (true, _) => Pass::One,
            (false, 0) => Pass::Collected(Why::Access),
            (false, _) => Pass::KeysFirst(Why::Access),
        };
        self.undo |= pass != Pass::One;
        Ok((Feed::Found { rows: Box::new(found), keys, given: keys == 0 }, pass))
    }

    /// The verb, and the table's place among those that the statement writes to.
    fn told(&mut self, t: &Target, or: Option<Conflict>, change: VirtualChange) -> Result<Verb> {
        let Some(Connected { vtab, heeds_conflicts, .. }) = t.virtual_table.as_deref() else {
            return Err(Code::Internal.into());
        };
        let known = self.virtual_tables.iter().find(|h| Rc::ptr_eq(&h.0, vtab)).cloned();
        let handle = known.unwrap_or_else(|| {
            let handle = Rc::new(VtabHandle(vtab.clone()));
            self.virtual_tables.push(handle.clone());
            handle
        });
        let conflict = or.unwrap_or(Conflict::Abort);
        let write = VirtualWrite { vtab: handle, conflict, heeds: *heeds_conflicts, change };
        Ok(Verb::Virtual(Box::new(write)))
    }
}

/// What names a row of a virtual table: its rowid, or its primary key.
pub fn virtual_key(t: &Target) -> Result<Expr> {
    if t.table.has_rowid() {
        return Ok(row_column(t, ROWID));
    }
    let key = t.table.columns.iter().position(|c| c.pk == 1).ok_or(Code::Internal)?;
    Ok(row_column(t, key as i32))
}

/// Whether there is one row at the most.
fn is_one_row(found: &CorePlan) -> bool {
    match &found.levels[..] {
        [level] => matches!(&level.access, Access::Virtual { info, .. } if info.unique),
        _ => false,
    }
}

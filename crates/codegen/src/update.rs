//! UPDATE: one pass where the loop cannot meet a changed row again, else keys first, changes after.

use crate::context::{Codegen, Dest, Place};
use crate::expr::internal;
use crate::trigger::Event;
use crate::write::{Cursors, Row, Writing, due_checks};
use iolite_base::{Error, Few, Result};
use iolite_bytecode::{ColumnMeta, Label, Opcode, P4, p5};
use iolite_catalog::ColumnSource;
use iolite_plan::Planner;
use iolite_plan::bind::{Binder, Set, Target, Update};
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_sql::ast::{self, Conflict, TriggerTime};
use iolite_value::{Affinity, KeyInfo};

impl Codegen<'_> {
    /// An UPDATE statement.
    pub fn statement_update(&mut self, b: &mut Binder<'_>, s: &ast::Update) -> Result<Few<ColumnMeta>> {
        let bound = b.update(s)?;
        self.touch_databases(b.databases);
        self.update(&bound)?;
        Ok(bound.out.into_iter().map(|c| c.meta).collect())
    }

    /// Complains about tables that may not be written.
    pub fn check_writable(&self, t: &Target) -> Result<()> {
        let name = &t.table.name;
        if t.table.root.get() == 1 && !self.settings.writable_schema && !self.settings.nested {
            return Err(Error::sql(format!("table {name} may not be modified")));
        }
        if t.table.is_view() && !self.has_any_trigger(t) {
            return Err(Error::sql(format!("cannot modify {name} because it is a view")));
        }
        Ok(())
    }

    /// The plan of the rows to change.
    pub fn rows_plan(&mut self, rows: &Core, result: Vec<Expr>) -> Result<CorePlan> {
        let mut core = rows.clone();
        core.result = result.into();
        let select = Select { cores: Few::one(core), ..Select::default() };
        let mut p = Planner::for_change(self.env);
        let mut plan = p.select(select)?;
        self.take_plans(p);
        Ok(plan.cores.pop().expect("one arm"))
    }

    /// Which columns an UPDATE changes, and whether the row's key may change.
    fn changes(&self, t: &Target, sets: &[Set]) -> (Vec<bool>, bool) {
        let mut changed = vec![false; t.table.columns.len()];
        let mut key = false;
        for s in sets {
            if s.column == ROWID {
                key = true;
                if let Some(a) = t.table.rowid_alias {
                    changed[a] = true;
                }
            } else {
                changed[s.column as usize] = true;
            }
        }
        for (c, e) in &t.generated {
            if e.any(&mut |x| matches!(x, Expr::Column(k) if k.column < 0 || changed[k.column as usize])) {
                changed[*c] = true;
            }
        }
        if let Some(pk) = t.table.primary_index() {
            key = pk.columns[..pk.key_len]
                .iter()
                .any(|c| matches!(c.source, ColumnSource::Column(k) if changed[k]));
        }
        (changed, key)
    }

    /// Codes an UPDATE.
    pub fn update(&mut self, s: &Update) -> Result<()> {
        let t = &s.target;
        self.check_writable(t)?;
        self.counts_changes = true;
        self.write_database(t.db);
        if t.table.is_virtual() {
            return self.unsupported(&format!("UPDATE of virtual table {}", t.table.name));
        }
        let exprs = t.checks.iter().map(|c| &c.0).chain(t.generated.iter().map(|g| &g.1)).chain(&s.returning);
        self.plan_exprs(exprs.chain(s.sets.iter().map(|x| &x.value)))?;
        let (changed, key_changes) = self.changes(t, &s.sets);
        let event = update_event(t, &changed);
        let triggers = self.has_triggers(t, &event);
        let returning = self.open_returning(&s.returning);
        let end = self.b.label();
        if t.table.is_view() {
            if !triggers {
                return Err(Error::sql(format!("cannot modify {} because it is a view", t.table.name)));
            }
            return self.update_view(s, &event, returning, end);
        }
        let has_from = s.rows.sources.len() > 1;
        let touched = self.touched_indexes(t, &changed, key_changes);
        let replaces = s.or == Some(Conflict::Replace)
            || t.table.key_conflict == Some(Conflict::Replace)
            || t.indexes.iter().any(|i| i.index.unique == Some(Conflict::Replace));
        // New values that read other tables are computed in the loop and kept.
        let mut kept: Vec<Expr> = self.key_exprs(t)?;
        let keys = kept.len();
        if has_from {
            kept.extend(s.sets.iter().map(|x| x.value.clone()));
        }
        let plan = self.rows_plan(&s.rows, kept.clone())?;
        let nested = s.sets.iter().any(|x| iolite_plan::has_subquery(&x.value));
        let one_pass = !has_from
            && !triggers
            && !key_changes
            && !replaces
            && !nested
            && t.table.has_rowid()
            && s.returning.is_empty()
            && plan.levels.len() == 1
            && safe_access(&plan.levels[0].access, t, &touched)
            && !plan.levels[0].filter.iter().any(iolite_plan::has_subquery);
        let cursors;
        if one_pass {
            let only = if replaces { None } else { Some(&touched[..]) };
            cursors = self.open_for_write(t, only)?;
            self.write_cursor = Some((t.id, cursors.table));
            let mut loops = self.open_loops(&plan)?;
            self.write_cursor = None;
            let next = self.innermost_next(&loops);
            self.b.emit(Opcode::FinishSeek, cursors.table, 0, 0);
            self.update_current(t, &s.sets, &cursors, None, s.or, next, &s.returning, returning, false)?;
            self.close_loops(&mut loops)?;
            if !matches!(plan.levels[0].access, Access::RowidEq { eq: EqTerm::Eq { .. }, .. }) {
                self.needs_statement = true;
            }
        } else {
            self.needs_statement = true;
            // A row that several partners match is changed once, by the last.
            let as_found = !has_from
                && !triggers
                && !key_changes
                && s.returning.is_empty()
                && !s.rows.filter.iter().any(|f| iolite_plan::has_subquery(&f.expr))
                && s.or != Some(Conflict::Replace)
                && plan.levels.len() == 1
                && found_in_place(&plan.levels[0].access, t, &touched);
            let temp = if as_found { self.rows_as_found(&plan)? } else { self.rows_by_key(t, &plan, keys)? };
            cursors = self.open_for_write(t, None)?;
            self.b.jump(Opcode::Rewind, temp, end, 0);
            let top = self.b.here();
            let next = self.b.label();
            let key = self.b.regs(keys);
            for k in 0..keys as i32 {
                self.b.emit(Opcode::Column, temp, k, key + k);
            }
            self.seek_key(t, cursors.table, key, keys, next)?;
            let before = self.known.len();
            let given = if has_from {
                let first = self.b.regs(s.sets.len());
                for k in 0..s.sets.len() as i32 {
                    self.b.emit(Opcode::Column, temp, keys as i32 + k, first + k);
                }
                Some(first)
            } else {
                None
            };
            if triggers {
                self.update_with_triggers(s, &event, &cursors, given, key, keys, next, returning)?;
            } else {
                self.update_current(t, &s.sets, &cursors, given, s.or, next, &s.returning, returning, true)?;
            }
            self.known.truncate(before);
            self.b.place(next);
            self.b.emit(Opcode::Next, temp, top as i32, 0);
        }
        self.b.place(end);
        self.close_returning(s.returning.len(), returning);
        Ok(())
    }

    /// Collects the rows to change in a transient table, in the order in which they are found.
    fn rows_as_found(&mut self, plan: &CorePlan) -> Result<i32> {
        let cursor = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, cursor, plan.result.len() as i32, 0);
        let done = self.b.label();
        self.core(plan, &[], Default::default(), &Dest::Table { cursor }, done)?;
        self.b.place(done);
        Ok(cursor)
    }

    /// Collects the rows to change in a transient tree, in the order of their keys, which stand first.
    pub fn rows_by_key(&mut self, t: &Target, plan: &CorePlan, keys: usize) -> Result<i32> {
        let cursor = self.b.cursor();
        let width = plan.result.len();
        let rowid = t.table.has_rowid();
        let info = match t.indexes.iter().find(|i| i.is_table) {
            Some(pk) => {
                let fields = pk.key.fields[..keys].to_vec();
                P4::KeyInfo(std::rc::Rc::new(KeyInfo { enc: self.env.encoding, fields, columns: width }))
            }
            None => P4::None,
        };
        self.b.emit4(Opcode::OpenEphemeral, cursor, width as i32, 0, info);
        let done = self.b.label();
        self.core(plan, &[], Default::default(), &Dest::Keyed { cursor, keys, rowid }, done)?;
        self.b.place(done);
        Ok(cursor)
    }

    /// What identifies a row of the target.
    pub fn key_exprs(&self, t: &Target) -> Result<Vec<Expr>> {
        if t.table.has_rowid() {
            return Ok(vec![Expr::Column(crate::write::row_column(t, ROWID))]);
        }
        let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
        Ok(pk.columns[..pk.key_len]
            .iter()
            .filter_map(|c| match c.source {
                ColumnSource::Column(k) => Some(Expr::Column(crate::write::row_column(t, k as i32))),
                _ => None,
            })
            .collect())
    }

    /// Moves the table's cursor to the row with the key in registers.
    pub fn seek_key(&mut self, t: &Target, cursor: i32, key: i32, n: usize, missing: Label) -> Result<()> {
        if t.table.has_rowid() {
            self.b.jump(Opcode::NotExists, cursor, missing, key);
        } else {
            self.b.jump4(Opcode::NotFound, cursor, missing, key, P4::Int(n as i64));
        }
        Ok(())
    }

    /// Computes the new row from the old one.
    fn new_row(
        &mut self,
        t: &Target,
        sets: &[Set],
        old: Row,
        given: Option<i32>,
        place: Place,
    ) -> Result<Row> {
        let n = t.table.columns.len();
        let new = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.copy(old.rowid, new.rowid);
        for c in 0..n as i32 {
            if !sets.iter().any(|s| s.column == c) {
                self.copy(old.first + c, new.first + c);
            }
        }
        self.assign(t, sets, new, given, place)?;
        Ok(new)
    }

    /// As [`Codegen::new_row`], where nobody asks for the old row as a whole: columns are read from the table's cursor
    /// as they are needed.
    fn new_row_at_cursor(
        &mut self,
        t: &Target,
        sets: &[Set],
        cursor: i32,
        given: Option<i32>,
    ) -> Result<(Row, Row)> {
        let n = t.table.columns.len();
        let old = Row { rowid: self.b.reg(), first: 0 };
        self.b.emit(Opcode::Rowid, cursor, old.rowid, 0);
        let moves = sets.iter().any(|s| s.column == ROWID);
        let rowid = if moves { self.b.reg() } else { old.rowid };
        let new = Row { rowid, first: self.b.regs(n) };
        let place = Place::Table { cursor, table: t.table.clone(), index: None, index_only: false };
        let saved = std::mem::replace(&mut self.copy_columns, true);
        let done = self.at_place(t.id, place.clone(), |g| {
            for c in 0..n {
                let generated = t.table.columns[c].generated.is_some();
                if !generated && t.table.rowid_alias != Some(c) && !sets.iter().any(|s| s.column == c as i32)
                {
                    g.column(&crate::write::row_column(t, c as i32), new.first + c as i32)?;
                }
            }
            Ok(())
        });
        self.copy_columns = saved;
        done?;
        self.assign(t, sets, new, given, place)?;
        Ok((old, new))
    }

    /// Computes the assigned columns of a new row, then everything that follows from them.
    fn assign(&mut self, t: &Target, sets: &[Set], new: Row, given: Option<i32>, place: Place) -> Result<()> {
        self.set_columns(sets, new, given, t, place)?;
        if sets.iter().any(|s| s.column == ROWID) {
            self.b.emit(Opcode::MustBeInt, new.rowid, 0, 0);
        }
        if let Some(a) = t.table.rowid_alias {
            self.copy(new.rowid, new.first + a as i32);
        }
        let seen = t.table.strict
            && self.has_triggers_at(t, &update_event(t, &self.changes(t, sets).0), TriggerTime::Before);
        self.shape_row(t, new, seen)
    }

    /// Computes the assigned columns alone.
    fn set_columns(
        &mut self,
        sets: &[Set],
        new: Row,
        given: Option<i32>,
        t: &Target,
        place: Place,
    ) -> Result<()> {
        let rows_before = self.sub_rows.len();
        self.at_place(t.id, place, |g| {
            // A nested query that gives several columns runs once.
            for (i, s) in sets.iter().enumerate() {
                if let Expr::Subquery(q, _) = &s.value
                    && given.is_none()
                    && !g.sub_rows.iter().any(|(id, _)| *id == q.id)
                    && sets[i + 1..].iter().any(|o| matches!(&o.value, Expr::Subquery(p, _) if p.id == q.id))
                {
                    let first = g.subquery_row(q)?;
                    g.sub_rows.push((q.id, first));
                }
            }
            for (i, s) in sets.iter().enumerate() {
                let to = if s.column == ROWID { new.rowid } else { new.first + s.column };
                match given {
                    Some(first) => g.copy(first + i as i32, to),
                    None => g.expr_to(&s.value, to)?,
                }
            }
            Ok(())
        })?;
        self.sub_rows.truncate(rows_before);
        Ok(())
    }

    /// Whether the new record can be made out of the old one: nobody asks for the columns that are not assigned, and there are
    /// enough of them to be worth it. (With two, an UPDATE by key took 4 percent more instructions than by decoding them.)
    fn is_patch(&self, t: &Target, sets: &[Set], changed: &[bool], key_changes: bool) -> bool {
        const WORTH: usize = 8;
        !key_changes
            && t.generated.is_empty()
            && t.table.storage.len() >= sets.len() + WORTH
            && !self.touched_indexes(t, changed, key_changes).contains(&true)
            && (self.settings.ignore_checks || due_checks(t, Some(changed), key_changes).is_empty())
    }

    /// As [`Codegen::new_row_at_cursor`] with the assigned columns alone.
    fn patched_row(
        &mut self,
        t: &Target,
        sets: &[Set],
        cursor: i32,
        given: Option<i32>,
    ) -> Result<(Row, Row)> {
        let rowid = self.b.reg();
        self.b.emit(Opcode::Rowid, cursor, rowid, 0);
        let new = Row { rowid, first: self.b.regs(t.table.columns.len()) };
        let place = Place::Table { cursor, table: t.table.clone(), index: None, index_only: false };
        self.set_columns(sets, new, given, t, place)?;
        // Of a STRICT table the types are checked behind NOT NULL.
        for s in sets.iter().filter(|_| !t.table.strict) {
            self.apply_affinity(new.first + s.column, &[t.table.columns[s.column as usize].affinity]);
        }
        Ok((Row { rowid, first: 0 }, new))
    }

    /// Changes the row under the table's cursor.
    #[allow(clippy::too_many_arguments)]
    pub fn update_current(
        &mut self,
        t: &Target,
        sets: &[Set],
        cursors: &Cursors,
        given: Option<i32>,
        or: Option<Conflict>,
        next: Label,
        returning: &[Expr],
        returning_cursor: Option<i32>,
        sought: bool,
    ) -> Result<()> {
        let (changed, key_changes) = self.changes(t, sets);
        let event = update_event(t, &changed);
        let plain = t.table.has_rowid() && returning.is_empty() && !(sought && self.has_triggers(t, &event));
        let patch = plain && self.is_patch(t, sets, &changed, key_changes);
        let (old, new) = if patch {
            self.patched_row(t, sets, cursors.table, given)?
        } else if plain {
            self.new_row_at_cursor(t, sets, cursors.table, given)?
        } else {
            let old = self.load_row(t, cursors.table)?;
            let place = self.row_place(old);
            (old, self.new_row(t, sets, old, given, place)?)
        };
        // Upserts fire the update's triggers.
        if sought && self.has_triggers_at(t, &event, TriggerTime::Before) {
            self.fire(t, &event, TriggerTime::Before, Some(old), Some(new), next, or)?;
            self.reseek(t, cursors, old, next)?;
            self.read_again(t, cursors, sets, new)?;
        }
        self.apply_update(t, cursors, old, new, or, &changed, key_changes, patch, next)?;
        self.returning_row(t, returning, new, returning_cursor)?;
        if sought && self.has_triggers_at(t, &event, TriggerTime::After) {
            self.fire(t, &event, TriggerTime::After, Some(old), Some(new), next, or)?;
        }
        Ok(())
    }

    /// Reads the columns that are not set once more, after a trigger that may have changed them.
    fn read_again(&mut self, t: &Target, cursors: &Cursors, sets: &[Set], new: Row) -> Result<()> {
        let again = self.load_row(t, cursors.table)?;
        for c in 0..t.table.columns.len() as i32 {
            if !sets.iter().any(|x| x.column == c) {
                self.copy(again.first + c, new.first + c);
            }
        }
        self.shape_row(t, new, false)
    }

    /// Moves the table's cursor back to the row as it was.
    pub fn reseek(&mut self, t: &Target, cursors: &Cursors, old: Row, missing: Label) -> Result<()> {
        if t.table.has_rowid() {
            self.b.jump(Opcode::NotExists, cursors.table, missing, old.rowid);
            return Ok(());
        }
        let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
        let first = self.b.regs(pk.key_len);
        for (k, c) in pk.columns[..pk.key_len].iter().enumerate() {
            if let ColumnSource::Column(c) = c.source {
                self.copy(old.first + c as i32, first + k as i32);
            }
        }
        self.b.jump4(Opcode::NotFound, cursors.table, missing, first, P4::Int(pk.key_len as i64));
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn apply_update(
        &mut self,
        t: &Target,
        cursors: &Cursors,
        old: Row,
        new: Row,
        or: Option<Conflict>,
        changed: &[bool],
        key_changes: bool,
        patch: bool,
        next: Label,
    ) -> Result<()> {
        let w = Writing {
            target: t,
            cursors,
            new,
            old: Some(old),
            or,
            changed: Some(changed),
            patch,
            key_changes,
            fresh_rowid: false,
            ignore: next,
            named: &[],
            upsert: None,
        };
        let records = self.check_constraints(&w)?;
        let touched = self.touched_indexes(t, changed, key_changes);
        // A REPLACE may have moved the cursor, and may have deleted the row itself.
        let replaces = or == Some(Conflict::Replace)
            || t.table.key_conflict == Some(Conflict::Replace)
            || t.indexes.iter().any(|i| i.index.unique == Some(Conflict::Replace));
        if replaces || key_changes {
            self.reseek(t, cursors, old, next)?;
        }
        self.delete_entries(t, cursors, Some(&touched))?;
        if key_changes {
            self.b.emit4(Opcode::Delete, cursors.table, 0, 0, P4::Name(t.table.name.clone()));
            self.b.p5(p5::IS_UPDATE);
        }
        self.insert_row(&w, &records, p5::COUNT_CHANGE | p5::IS_UPDATE)
    }

    #[allow(clippy::too_many_arguments)]
    fn update_with_triggers(
        &mut self,
        s: &Update,
        event: &Event,
        cursors: &Cursors,
        given: Option<i32>,
        key: i32,
        keys: usize,
        next: Label,
        returning: Option<i32>,
    ) -> Result<()> {
        let t = &s.target;
        let (changed, key_changes) = self.changes(t, &s.sets);
        let mut old = self.load_row(t, cursors.table)?;
        let place = self.row_place(old);
        let mut new = self.new_row(t, &s.sets, old, given, place)?;
        if self.has_triggers_at(t, event, TriggerTime::Before) {
            self.fire(t, event, TriggerTime::Before, Some(old), Some(new), next, s.or)?;
            // The trigger may have deleted or changed the row: columns that are not set are read again.
            self.seek_key(t, cursors.table, key, keys, next)?;
            self.read_again(t, cursors, &s.sets, new)?;
            old = Row { rowid: old.rowid, first: old.first };
            new = Row { rowid: new.rowid, first: new.first };
        }
        self.apply_update(t, cursors, old, new, s.or, &changed, key_changes, false, next)?;
        self.returning_row(t, &s.returning, new, returning)?;
        self.fire(t, event, TriggerTime::After, Some(old), Some(new), next, s.or)
    }

    fn update_view(&mut self, s: &Update, event: &Event, returning: Option<i32>, end: Label) -> Result<()> {
        let t = &s.target;
        let n = t.table.columns.len();
        // The view's rows, with the new values where FROM gives them, are kept first.
        let mut kept: Vec<Expr> =
            (0..n as i32).map(|c| Expr::Column(crate::write::row_column(t, c))).collect();
        kept.extend(s.sets.iter().map(|x| x.value.clone()));
        let plan = self.rows_plan(&s.rows, kept.clone())?;
        let temp = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, temp, kept.len() as i32, 0);
        let done = self.b.label();
        self.core(&plan, &[], Default::default(), &Dest::Table { cursor: temp }, done)?;
        self.b.place(done);
        self.b.jump(Opcode::Rewind, temp, end, 0);
        let top = self.b.here();
        let old = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        let new = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.b.emit(Opcode::Null, 0, old.rowid, 0);
        self.b.emit(Opcode::Null, 0, new.rowid, 0);
        for c in 0..n as i32 {
            self.b.emit(Opcode::Column, temp, c, old.first + c);
            let from = s.sets.iter().position(|x| x.column == c).map_or(c, |k| n as i32 + k as i32);
            self.b.emit(Opcode::Column, temp, from, new.first + c);
        }
        // What an INSERT into a view does not do: the new values get the affinities of the view's columns.
        let affinities: Vec<Affinity> = t.table.columns.iter().map(|c| c.affinity).collect();
        self.apply_affinity(new.first, &affinities);
        let next = self.b.label();
        self.fire(t, event, TriggerTime::InsteadOf, Some(old), Some(new), next, s.or)?;
        self.returning_row(t, &s.returning, new, returning)?;
        self.b.place(next);
        self.b.emit(Opcode::Next, temp, top as i32, 0);
        self.b.place(end);
        self.needs_statement = true;
        self.close_returning(s.returning.len(), returning);
        Ok(())
    }
}

/// Whether the loop may go on over rows it has changed: its order depends on nothing that changes.
pub(crate) fn safe_access(a: &Access, t: &Target, touched: &[bool]) -> bool {
    match a {
        Access::Scan { .. } | Access::RowidRange { .. } | Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => {
            true
        }
        Access::Index(i) => {
            let own = t.indexes.iter().position(|x| std::rc::Rc::ptr_eq(&x.index, &i.index));
            own.is_some_and(|k| !touched[k]) && !i.eq.iter().any(|e| matches!(e, EqTerm::InSelect(..)))
        }
        _ => false,
    }
}

/// Whether rows that are collected first can be changed in the order in which they are found: neither the order in which they are found
/// changes, nor does a change delete another row.
fn found_in_place(a: &Access, t: &Target, touched: &[bool]) -> bool {
    let replaces = |k: usize| touched[k] && t.indexes[k].index.unique == Some(Conflict::Replace);
    let index = match a {
        Access::IndexScan { index, .. } => Some(index),
        Access::Index(i) => Some(&i.index),
        Access::Scan { .. } | Access::RowidRange { .. } => None,
        _ => return false,
    };
    let own = |i| t.indexes.iter().position(|x| std::rc::Rc::ptr_eq(&x.index, i));
    index.is_none_or(|i| own(i).is_some_and(|k| !touched[k] || t.indexes[k].is_table))
        && !(0..touched.len()).any(|k| !t.indexes[k].is_table && replaces(k))
}

/// The event of an UPDATE: a trigger's OF names columns that are assigned, not those computed from them.
fn update_event(t: &Target, changed: &[bool]) -> Event {
    let mut assigned = changed.to_vec();
    t.generated.iter().for_each(|(c, _)| assigned[*c] = false);
    Event::Update(assigned)
}

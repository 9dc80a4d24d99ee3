//! Inserting one row: its values, its rowid, what ON CONFLICT clauses do about one that is in the way.

use crate::context::Row;
use crate::context::{Codegen, Place, internal};
use crate::modify::{Modification, after};
use crate::write::{Clauses, Writing, is_unread};
use iolite_base::{Error, Result};
use iolite_bytecode::Opcode;
use iolite_plan::statement::modify::*;
use iolite_value::Affinity;

/// The registers in which a row of the feed stands, and how many they are; none: it is computed when it is wanted.
type Source = Option<(i32, usize)>;

impl Codegen<'_> {
    /// Inserts the row that the feed gives.
    pub fn insert_row(&mut self, w: &Modification<'_>, i: &InsertPlan, mut source: Source) -> Result<()> {
        let t = w.target();
        let n = t.table.columns.len();
        let is_view = t.table.is_view();
        let row = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        let mut computed = None;
        if i.early {
            if let (Feed::Row(list), None) = (&w.plan.feed, source) {
                let values = self.b.regs(list.len().max(1));
                self.expr_list(list, values)?;
                source = Some((values, list.len()));
            }
            let values = self.b.regs(n);
            self.load_values(w, i, source, values)?;
            computed = Some(values);
            let before = self.row_before(w, i, source, values)?;
            self.act(&i.before, t, (None, Some(before)), w.next)?;
            if is_view {
                self.returning_row(w, before)?;
            }
        }
        if is_view {
            self.count_row();
            return Ok(());
        }
        match computed {
            Some(values) => {
                self.b.emit(Opcode::Copy, values, row.first, n as i32 - 1);
            }
            None => self.load_values(w, i, source, row.first)?,
        }
        self.new_rowid(w, i, source, row.rowid)?;
        let unread = is_unread(w, &i.tests, &i.before, &i.after) && i.upserts.is_empty();
        if let Some(a) = t.table.rowid_alias.filter(|_| !unread) {
            self.copy(row.rowid, row.first + a as i32);
        }
        let excluded = if i.keeps_written { self.keep_as_written(w, row) } else { row };
        if !unread {
            self.shape_row(t, row, false)?;
        }
        let clauses = Clauses { insert: i, row, excluded };
        let (tests, clauses) = (&i.tests[..], Some(&clauses));
        let writing = Writing { work: w, new: row, old: None, tests, change: None, clauses, unread };
        let records = self.test_row(&writing)?;
        let flags = self.insert_flags(i.key == NewKey::Made);
        let record = self.row_record(&writing)?;
        self.write_row(&writing, record, &records, flags)?;
        let (keys, triggers) = after(&i.after);
        self.act(keys, t, (None, Some(row)), w.next)?;
        self.returning_row(w, row)?;
        self.act(triggers, t, (None, Some(row)), w.next)
    }

    /// NEW as BEFORE triggers see it, the rowid -1 where it is not given.
    fn row_before(
        &mut self,
        w: &Modification<'_>,
        i: &InsertPlan,
        source: Source,
        values: i32,
    ) -> Result<Row> {
        let t = w.target();
        let n = t.table.columns.len();
        let is_view = t.table.is_view();
        let before = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.b.emit(Opcode::Copy, values, before.first, n as i32 - 1);
        match i.rowid {
            Some(k) => {
                self.source_value(w, source, k, before.rowid)?;
                let ok = self.b.label();
                self.b.jump(Opcode::NotNull, before.rowid, ok, 0);
                self.b.emit(Opcode::Integer, -1, before.rowid, 0);
                self.b.place(ok);
                if !is_view {
                    self.b.emit(Opcode::MustBeInt, before.rowid, 0, 0);
                }
            }
            None => {
                self.b.emit(Opcode::Integer, -1, before.rowid, 0);
            }
        }
        if !is_view {
            if let Some(a) = t.table.rowid_alias {
                self.copy(before.rowid, before.first + a as i32);
            }
            self.shape_row(t, before, true)?;
        }
        Ok(before)
    }

    /// Value `k` of the source row.
    fn source_value(&mut self, w: &Modification<'_>, source: Source, k: usize, to: i32) -> Result<()> {
        match (&w.plan.feed, source) {
            (_, Some((first, _))) => self.copy(first + k as i32, to),
            (Feed::Row(list), None) => self.expr_to(&list[k], to)?,
            _ => {
                self.b.emit(Opcode::Null, 0, to, 0);
            }
        }
        Ok(())
    }

    /// Loads all columns from the source row and the defaults.
    fn load_values(
        &mut self,
        w: &Modification<'_>,
        i: &InsertPlan,
        source: Source,
        first: i32,
    ) -> Result<()> {
        let t = w.target();
        for (c, from) in i.columns.iter().enumerate() {
            let to = first + c as i32;
            if t.table.rowid_alias == Some(c) || t.table.columns[c].generated.is_some() {
                self.b.emit(Opcode::Null, 0, to, 0);
                continue;
            }
            match (from, t.default_of(c)) {
                (Some(k), _) => self.source_value(w, source, *k, to)?,
                (None, Some(d)) => self.expr_to(d.as_ref().map_err(Error::clone)?, to)?,
                _ => {
                    self.b.emit(Opcode::Null, 0, to, 0);
                }
            }
        }
        Ok(())
    }

    /// Computes the rowid.
    fn new_rowid(&mut self, w: &Modification<'_>, i: &InsertPlan, source: Source, rowid: i32) -> Result<()> {
        let (cursor, sequence) = (w.cursors.table, i.sequence as i32);
        if matches!(i.key, NewKey::Given | NewKey::GivenOrMade) {
            let k = i.rowid.ok_or_else(|| internal("a rowid that nobody gives"))?;
            self.source_value(w, source, k, rowid)?;
        }
        match i.key {
            NewKey::None => {
                self.b.emit(Opcode::Null, 0, rowid, 0);
            }
            NewKey::Made | NewKey::MadeAndTested => {
                self.b.emit(Opcode::NewRowid, cursor, rowid, sequence);
            }
            NewKey::Given => {
                self.b.emit(Opcode::MustBeInt, rowid, 0, 0);
            }
            NewKey::GivenOrMade => {
                let (given, over) = (self.b.label(), self.b.label());
                self.b.jump(Opcode::NotNull, rowid, given, 0);
                self.b.emit(Opcode::NewRowid, cursor, rowid, sequence);
                self.b.jump(Opcode::Goto, 0, over, 0);
                self.b.place(given);
                self.b.emit(Opcode::MustBeInt, rowid, 0, 0);
                self.b.place(over);
            }
        }
        if sequence != 0 {
            self.b.emit(Opcode::AutoincMax, sequence, rowid, 0);
        }
        Ok(())
    }

    /// Keeps the values before the columns' affinities, but for whole numbers in REAL columns.
    fn keep_as_written(&mut self, w: &Modification<'_>, row: Row) -> Row {
        let columns = &w.target().table.columns;
        let written = Row { rowid: row.rowid, first: self.b.regs(columns.len()) };
        self.b.emit(Opcode::Copy, row.first, written.first, columns.len() as i32 - 1);
        for (i, c) in columns.iter().enumerate() {
            if c.affinity == Affinity::Real {
                self.b.emit(Opcode::RealAffinity, written.first + i as i32, 0, 0);
            }
        }
        written
    }

    /// What a clause does about the row in the way: that with the new rowid (`None`) or an index's key.
    pub fn upsert(&mut self, w: &Writing<'_>, clause: usize, which: Option<usize>) -> Result<()> {
        let c = w.clauses.ok_or_else(|| internal("a conflict clause of no INSERT"))?;
        let u = &c.insert.upserts[clause];
        let next = w.work.next;
        let Some(action) = &u.action else {
            self.b.jump(Opcode::Goto, 0, next, 0);
            return Ok(());
        };
        if let Some(k) = which {
            self.seek_conflicting(w.work, k)?;
        }
        let excluded = if which.is_none() { c.excluded } else { c.row };
        self.at_place(u.excluded, Place::of_row(excluded), |g| {
            if let Some(f) = &action.filter {
                let t = w.work.target();
                let own = Place::of_target(w.work.cursors.table, t);
                g.at_place(t.id, own, |g| g.jump_unless(f, next, true))?;
            }
            g.update_row(w.work, &action.change, None)
        })?;
        self.b.jump(Opcode::Goto, 0, next, 0);
        Ok(())
    }
}

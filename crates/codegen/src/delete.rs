//! Deleting one row: by DELETE, and by REPLACE where it is in the way of another.

use crate::context::{Codegen, Row, internal};
use crate::modify::{Modification, after};
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, p5};
use iolite_catalog::ColumnSource;
use iolite_plan::plan::Access;
use iolite_plan::statement::modify::*;

/// What a row that REPLACE deletes has taken.
#[derive(Clone, Copy)]
pub enum Taken {
    /// The rowid: the new row will be written over it.
    Rowid,
    /// The key of this index, whose cursor stands at its entry.
    Entry(usize),
    /// One of these, and more may happen before the new row is written.
    Other,
}

impl Codegen<'_> {
    /// Deletes the row that was found: it is under the table's cursor, or was collected (`stored`).
    pub fn delete_found(&mut self, w: &Modification<'_>, r: &Removal, stored: Option<i32>) -> Result<()> {
        let Feed::Found { rows, keys, .. } = &w.plan.feed else { return Ok(()) };
        let plain = r.is_plain() && w.returning.is_none();
        let t = w.target();
        let Some(temp) = stored else {
            let by_index =
                |a: &Access| matches!(a, Access::Index(_) | Access::IndexScan { .. } | Access::Or(_));
            if by_index(&rows.levels[0].access) {
                self.b.emit(Opcode::FinishSeek, w.cursors.table, 0, 0);
            }
            if plain {
                return self.delete_in_loop(w);
            }
            let old = self.load_row(t, w.cursors.table)?;
            return self.delete_loaded(w, r, old, true);
        };
        let key = self.fields(temp, 0, *keys);
        if t.table.is_view() {
            let old = Row { rowid: self.b.reg(), first: key };
            self.b.emit(Opcode::Null, 0, old.rowid, 0);
            self.act(&r.before, t, (Some(old), None), w.next)?;
            self.count_row();
            return self.returning_row(w, old);
        }
        self.seek_key(w, key, *keys);
        if plain {
            return self.delete_row(w, p5::COUNT_CHANGE);
        }
        let old = self.load_row(t, w.cursors.table)?;
        self.delete_loaded(w, r, old, false)
    }

    /// Deletes the row that the loop has found, whose cursor goes on from there.
    fn delete_in_loop(&mut self, w: &Modification<'_>) -> Result<()> {
        let along = w.along_index().map(|k| (k, p5::SAVE_POSITION));
        self.delete_entries(w, None, along)?;
        let keeps = if along.is_none() { p5::SAVE_POSITION } else { 0 };
        self.delete_record(w, p5::COUNT_CHANGE | keeps)
    }

    /// Deletes the row under the table's cursor, which stands in registers too, with all that happens beside. `in_loop`: the loop found it.
    fn delete_loaded(&mut self, w: &Modification<'_>, r: &Removal, old: Row, in_loop: bool) -> Result<()> {
        let t = w.target();
        if !r.before.is_empty() {
            self.act(&r.before, t, (Some(old), None), w.next)?;
            // The trigger may have deleted or changed the row.
            self.reseek(w, old, w.next)?;
        }
        match in_loop && r.only_counts() {
            true => self.delete_in_loop(w)?,
            false => self.delete_row(w, p5::COUNT_CHANGE)?,
        }
        let (keys, triggers) = after(&r.after);
        self.act(keys, t, (Some(old), None), w.next)?;
        self.returning_row(w, old)?;
        self.act(triggers, t, (Some(old), None), w.next)
    }

    /// REPLACE: deletes the row under the table's cursor, which has what the new row wants.
    pub fn replace_row(&mut self, w: &Modification<'_>, taken: Taken) -> Result<()> {
        let r = &w.plan.replaced;
        if r.is_plain() {
            let (found, flags) = match taken {
                Taken::Entry(k) => (Some((k, 0)), 0),
                Taken::Rowid => (None, p5::WRITTEN_OVER),
                Taken::Other => (None, 0),
            };
            self.delete_entries(w, None, found)?;
            return self.delete_record(w, flags);
        }
        let t = w.target();
        let old = self.load_row(t, w.cursors.table)?;
        let skip = self.b.label();
        self.act(&r.before, t, (Some(old), None), skip)?;
        // The trigger may have deleted or changed the row.
        self.reseek(w, old, skip)?;
        self.delete_row(w, 0)?;
        self.act(&r.after, t, (Some(old), None), skip)?;
        self.b.place(skip);
        Ok(())
    }

    /// Deletes the row under the table's cursor with its index entries.
    fn delete_row(&mut self, w: &Modification<'_>, flags: u16) -> Result<()> {
        self.delete_entries(w, None, None)?;
        self.delete_record(w, flags)
    }

    /// Deletes the row under the table's cursor alone.
    fn delete_record(&mut self, w: &Modification<'_>, flags: u16) -> Result<()> {
        self.b.emit4(Opcode::Delete, w.cursors.table, 0, 0, P4::Name(w.target().table.name.clone()));
        self.b.p5(flags);
        Ok(())
    }

    /// Moves the table's cursor back to the row as it was.
    pub fn reseek(&mut self, w: &Modification<'_>, old: Row, missing: Label) -> Result<()> {
        let t = w.target();
        if t.table.has_rowid() {
            self.b.jump(Opcode::NotExists, w.cursors.table, missing, old.rowid);
            return Ok(());
        }
        let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
        let first = self.b.regs(pk.key_len);
        for (k, c) in pk.columns[..pk.key_len].iter().enumerate() {
            if let ColumnSource::Column(c) = c.source {
                self.copy(old.first + c as i32, first + k as i32);
            }
        }
        self.b.jump4(Opcode::NotFound, w.cursors.table, missing, first, P4::Int(pk.key_len as i64));
        Ok(())
    }
}

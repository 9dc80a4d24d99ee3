//! Making one row another: the old row is read as far as it is needed, the new one computed, tested and written.

use crate::context::{Codegen, Place, Row};
use crate::modify::{Modification, after};
use crate::write::{Writing, is_unread};
use iolite_base::Result;
use iolite_bytecode::{Opcode, P4, p5};
use iolite_plan::bind::Target;
use iolite_plan::bound::*;
use iolite_plan::plan::Access;
use iolite_plan::statement::modify::*;
use iolite_value::Affinity;

impl Codegen<'_> {
    /// Changes the row that was found: it is under the table's cursor, or was collected (`stored`).
    pub fn update_found(&mut self, w: &Modification<'_>, c: &Change, stored: Option<i32>) -> Result<()> {
        let Some(temp) = stored else {
            let Feed::Found { rows, .. } = &w.plan.feed else { return Ok(()) };
            if !matches!(rows.levels[0].access, Access::RowidEq { .. } | Access::RowidRange { .. }) {
                self.b.emit(Opcode::FinishSeek, w.cursors.table, 0, 0);
            }
            return self.update_row(w, c, None);
        };
        let Feed::Found { keys, given, .. } = &w.plan.feed else { return Ok(()) };
        let key = self.fields(temp, 0, *keys);
        let is_view = w.target().table.is_view();
        if !is_view {
            self.seek_key(w, key, *keys);
        }
        let before = self.known.len();
        let given = given.then(|| self.fields(temp, *keys, c.sets.len()));
        match given {
            Some(first) if is_view => self.update_view(w, c, key, first)?,
            _ => self.update_row(w, c, given)?,
        }
        self.known.truncate(before);
        Ok(())
    }

    /// Moves the table's cursor to the row with the key in registers; there is nothing to do where it is gone.
    pub fn seek_key(&mut self, w: &Modification<'_>, key: i32, n: usize) {
        if w.target().table.has_rowid() {
            self.b.jump(Opcode::NotExists, w.cursors.table, w.next, key);
        } else {
            self.b.jump4(Opcode::NotFound, w.cursors.table, w.next, key, P4::Int(n as i64));
        }
    }

    /// Changes the row under the table's cursor. `given`: the assigned values stand in registers.
    pub fn update_row(&mut self, w: &Modification<'_>, c: &Change, given: Option<i32>) -> Result<()> {
        let t = w.target();
        let unread = c.old == OldRow::AsNeeded && is_unread(w, &c.tests, &c.before, &c.after);
        let (old, new) = match c.old {
            OldRow::Patched => self.patched_row(w, c, given)?,
            OldRow::AsNeeded => self.new_row_at_cursor(w, c, given, unread)?,
            OldRow::Whole => {
                let old = self.load_row(t, w.cursors.table)?;
                (old, self.new_row(t, c, old, given)?)
            }
        };
        if !c.before.is_empty() {
            self.act(&c.before, t, (Some(old), Some(new)), w.next)?;
            // The trigger may have deleted or changed the row.
            self.reseek(w, old, w.next)?;
            self.read_again(w, c, new)?;
        } else if t.calls_out {
            // So may a function of the program.
            self.reseek(w, old, w.next)?;
            if c.old != OldRow::Patched {
                self.read_again(w, c, new)?;
            }
        }
        let writing =
            Writing { work: w, new, old: Some(old), tests: &c.tests, change: Some(c), clauses: None, unread };
        let records = self.test_row(&writing)?;
        // A REPLACE may have moved the cursor, and may have deleted the row itself.
        if c.reseeks {
            self.reseek(w, old, w.next)?;
        }
        let record = self.row_record(&writing)?;
        self.delete_entries(w, Some(&c.touched), None)?;
        if c.key_changes {
            self.b.emit4(Opcode::Delete, w.cursors.table, 0, 0, P4::Name(t.table.name.clone()));
            self.b.p5(p5::IS_UPDATE);
        }
        self.write_row(&writing, record, &records, p5::COUNT_CHANGE | p5::IS_UPDATE)?;
        let (keys, triggers) = after(&c.after);
        self.act(keys, t, (Some(old), Some(new)), w.next)?;
        self.returning_row(w, new)?;
        self.act(triggers, t, (Some(old), Some(new)), w.next)
    }

    /// Computes the new row from the old one.
    fn new_row(&mut self, t: &Target, c: &Change, old: Row, given: Option<i32>) -> Result<Row> {
        let n = t.table.columns.len();
        let new = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.copy(old.rowid, new.rowid);
        for k in (0..n as i32).filter(|k| !is_set(c, *k)) {
            self.copy(old.first + k, new.first + k);
        }
        self.assign(t, c, new, given, Place::of_row(old), false)?;
        Ok(new)
    }

    /// As [`Codegen::new_row`], where nobody asks for the old row as a whole: columns are read from the table's cursor
    /// as they are needed.
    fn new_row_at_cursor(
        &mut self,
        w: &Modification<'_>,
        c: &Change,
        given: Option<i32>,
        unread: bool,
    ) -> Result<(Row, Row)> {
        let t = w.target();
        let n = t.table.columns.len();
        let old = Row { rowid: self.b.reg(), first: 0 };
        if t.table.has_rowid() {
            self.b.emit(Opcode::Rowid, w.cursors.table, old.rowid, 0);
        }
        let rowid = if is_set(c, ROWID) { self.b.reg() } else { old.rowid };
        let new = Row { rowid, first: self.b.regs(n) };
        let place = Place::of_target(w.cursors.table, t);
        let saved = std::mem::replace(&mut self.copy_columns, true);
        let done = self.at_place(t.id, place.clone(), |g| {
            for k in 0..n {
                let generated = t.table.columns[k].generated.is_some();
                if !generated && t.table.rowid_alias != Some(k) && !is_set(c, k as i32) {
                    g.column(&crate::write::row_column(t, k as i32), new.first + k as i32)?;
                }
            }
            Ok(())
        });
        self.copy_columns = saved;
        done?;
        self.assign(t, c, new, given, place, unread)?;
        Ok((old, new))
    }

    /// As [`Codegen::new_row_at_cursor`] with the assigned columns alone.
    fn patched_row(&mut self, w: &Modification<'_>, c: &Change, given: Option<i32>) -> Result<(Row, Row)> {
        let t = w.target();
        let rowid = self.b.reg();
        self.b.emit(Opcode::Rowid, w.cursors.table, rowid, 0);
        let new = Row { rowid, first: self.b.regs(t.table.columns.len()) };
        self.set_columns(t, c, new, given, Place::of_target(w.cursors.table, t))?;
        // Of a STRICT table the types are checked behind NOT NULL.
        for s in c.sets.iter().filter(|_| !t.table.strict) {
            self.apply_affinity(new.first + s.column, &[t.table.columns[s.column as usize].affinity]);
        }
        Ok((Row { rowid, first: 0 }, new))
    }

    /// Computes the assigned columns of a new row, then everything that follows from them; unless nobody reads it but for its record.
    fn assign(
        &mut self,
        t: &Target,
        c: &Change,
        new: Row,
        given: Option<i32>,
        place: Place,
        unread: bool,
    ) -> Result<()> {
        self.set_columns(t, c, new, given, place)?;
        if is_set(c, ROWID) {
            self.b.emit(Opcode::MustBeInt, new.rowid, 0, 0);
        }
        if unread {
            return Ok(());
        }
        if let Some(a) = t.table.rowid_alias {
            self.copy(new.rowid, new.first + a as i32);
        }
        self.shape_row(t, new, c.typed_early)
    }

    /// Computes the assigned columns alone.
    fn set_columns(
        &mut self,
        t: &Target,
        c: &Change,
        new: Row,
        given: Option<i32>,
        place: Place,
    ) -> Result<()> {
        let sets = &c.sets;
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

    /// Reads the columns that are not set once more, after a trigger that may have changed them.
    fn read_again(&mut self, w: &Modification<'_>, c: &Change, new: Row) -> Result<()> {
        let t = w.target();
        let again = self.load_row(t, w.cursors.table)?;
        for k in (0..t.table.columns.len() as i32).filter(|k| !is_set(c, *k)) {
            self.copy(again.first + k, new.first + k);
        }
        self.shape_row(t, new, false)
    }

    /// What INSTEAD OF triggers are told about a row of a view, whose columns stand in registers, as do the new values.
    fn update_view(&mut self, w: &Modification<'_>, c: &Change, old: i32, given: i32) -> Result<()> {
        let t = w.target();
        let n = t.table.columns.len();
        let old = Row { rowid: self.b.reg(), first: old };
        let new = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.b.emit(Opcode::Null, 0, old.rowid, 0);
        self.b.emit(Opcode::Null, 0, new.rowid, 0);
        for k in 0..n as i32 {
            let set = c.sets.iter().position(|x| x.column == k);
            self.copy(set.map_or(old.first + k, |s| given + s as i32), new.first + k);
        }
        // What an INSERT into a view does not do: the new values get the affinities of the view's columns.
        let affinities: Vec<Affinity> = t.table.columns.iter().map(|c| c.affinity).collect();
        self.apply_affinity(new.first, &affinities);
        self.act(&c.before, t, (Some(old), Some(new)), w.next)?;
        self.count_row();
        self.returning_row(w, new)
    }
}

fn is_set(c: &Change, column: i32) -> bool {
    c.sets.iter().any(|s| s.column == column)
}

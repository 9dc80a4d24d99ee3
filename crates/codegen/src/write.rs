//! Writing one row: testing it, making index entries, putting it and them in their places.
//!
//! A new row stands in registers ([`Row`]); the table and its indexes are open. The plan says what is tested, and in
//! which order.

use crate::context::Row;
use crate::context::{Codegen, Place, internal};
use crate::delete::Taken;
use crate::modify::Modification;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::{Label, Opcode, P4, PatchField, StrictColumn, StrictType, p5};
use iolite_catalog::ColumnSource;
use iolite_plan::Conflict;
use iolite_plan::bind::{Target, TargetIndex};
use iolite_plan::bound::*;
use iolite_plan::statement::modify::*;
use iolite_value::{Affinity, Value};
use std::rc::Rc;

/// An index entry made by the tests: its record, and its fields in registers. No record: the index is not touched.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub record: i32,
    pub first: i32,
    pub fields: usize,
    /// The test has sought its place.
    pub sought: bool,
}

/// The `ON CONFLICT` clauses of an INSERT, and the row that was to be inserted.
pub(crate) struct Clauses<'i> {
    pub insert: &'i InsertPlan,
    pub row: Row,
    /// What `excluded` shows where the rowid is taken.
    pub excluded: Row,
}

/// How a row is being written.
pub(crate) struct Writing<'w> {
    pub work: &'w Modification<'w>,
    pub new: Row,
    /// Of an UPDATE: the row as it was.
    pub old: Option<Row>,
    /// What is asked of it.
    pub tests: &'w [Test],
    /// Of an UPDATE: the change.
    pub change: Option<&'w Change>,
    /// Of an INSERT: its conflict clauses.
    pub clauses: Option<&'w Clauses<'w>>,
    /// Nobody reads the row but who makes its record: the columns' affinities are applied then.
    pub unread: bool,
}

/// Whether nobody reads a new row's columns but who makes its record.
pub(crate) fn is_unread(
    w: &Modification<'_>,
    tests: &[Test],
    before: &[RowAction],
    after: &[RowAction],
) -> bool {
    let t = w.target();
    let by_rowid = |x: &Test| matches!(x, Test::Rowid { conflict: OnConflict::Policy(_) });
    t.table.has_rowid()
        && tests.iter().all(by_rowid)
        && before.is_empty()
        && after.is_empty()
        && w.plan.returning.is_empty()
        && t.generated.is_empty()
        && !t.table.strict
        && !t.calls_out
}

pub(crate) fn policy_number(c: Conflict) -> i32 {
    match c {
        Conflict::Rollback => 1,
        Conflict::Abort => 2,
        Conflict::Fail => 3,
        Conflict::Ignore => 4,
        Conflict::Replace => 5,
    }
}

impl Codegen<'_> {
    /// Applies the columns' affinities, checks STRICT types, computes generated columns. `seen`: a BEFORE trigger will
    /// see the row.
    pub fn shape_row(&mut self, t: &Target, r: Row, seen: bool) -> Result<()> {
        let table = t.table.clone();
        let affinities: Vec<Affinity> = table.columns.iter().map(|c| c.affinity).collect();
        if table.strict {
            // A whole number is a real to an ON CONFLICT clause, too.
            for (i, _) in affinities.iter().enumerate().filter(|(_, a)| **a == Affinity::Real) {
                self.b.emit(Opcode::RealAffinity, r.first + i as i32, 0, 0);
            }
            // Where nobody reads the row before, types are checked behind NOT NULL.
            if !t.generated.is_empty() || seen {
                self.check_types(t, r, |c| c.generated.is_none());
            }
            return self.generate(t, r, seen);
        }
        self.apply_affinity(r.first, &affinities);
        self.generate(t, r, seen)
    }

    /// Checks the types of those columns of a STRICT table.
    fn check_types(&mut self, t: &Target, r: Row, which: impl Fn(&iolite_catalog::Column) -> bool) {
        let table = &t.table;
        let columns: Vec<StrictColumn> = table
            .columns
            .iter()
            .enumerate()
            .map(|(k, c)| StrictColumn {
                name: table.column_label(k).clone(),
                ty: if which(c) { strict_type(&c.decltype) } else { StrictType::Any },
            })
            .collect();
        let n = columns.len() as i32;
        self.b.emit4(Opcode::TypeCheck, r.first, n, 0, P4::Strict(columns.into()));
    }

    /// Computes generated columns. STRICT: those that are stored have their types checked with the row, or at the end here
    /// if a BEFORE trigger sees them first.
    fn generate(&mut self, t: &Target, r: Row, seen: bool) -> Result<()> {
        if t.generated.is_empty() {
            return Ok(());
        }
        self.at_place(t.id, Place::of_row(r), |g| {
            for (c, e) in &t.generated {
                let reg = r.first + *c as i32;
                let v = g.expr_owned(e)?;
                g.copy(v, reg);
                g.b.free_temp(v);
                let column = &t.table.columns[*c];
                if t.table.strict && !column.is_stored() {
                    g.check_types(t, r, |x| std::ptr::eq(x, column));
                } else {
                    g.apply_affinity(reg, &[column.affinity]);
                }
            }
            if t.table.strict && seen {
                g.check_types(t, r, |c| c.generated.is_some() && c.is_stored());
            }
            Ok(())
        })
    }

    /// Stops the statement because of a constraint.
    fn violate(&mut self, code: Code, policy: Conflict, message: Rc<str>, kind: u16) {
        self.b.emit4(Opcode::Halt, code.number() as i32, policy_number(policy), 0, P4::Name(message));
        self.b.p5(kind);
    }

    /// Tests a new row. Index records are made on the way; answers their registers.
    pub fn test_row(&mut self, w: &Writing<'_>) -> Result<Vec<Entry>> {
        let t = w.work.target();
        let mut records = vec![Entry::default(); t.indexes.len()];
        let mut read_back = None;
        self.at_place(t.id, Place::of_row(w.new), |g| {
            for test in w.tests {
                match *test {
                    Test::Default { column } => g.default_for_null(w, column)?,
                    Test::Generate => {
                        if t.table.strict {
                            g.check_types(t, w.new, |c| c.generated.is_none());
                        }
                        g.generate(t, w.new, false)?;
                    }
                    Test::NotNull { column, policy } => g.refuse_null(w, column, policy),
                    // Columns computed when read were checked when they were computed.
                    Test::Types => g.check_types(t, w.new, |c| c.generated.as_ref().is_none_or(|x| x.stored)),
                    Test::Check { check, policy } => g.check(w, check, policy)?,
                    Test::Rowid { conflict } => g.rowid_unique(w, conflict)?,
                    Test::Entry { index } => {
                        let row = g.indexed_row(w, index, &mut read_back)?;
                        records[index] = g.index_record(w, index, row, None)?
                    }
                    Test::Unique { index, conflict } => {
                        let row = g.indexed_row(w, index, &mut read_back)?;
                        records[index] = g.index_record(w, index, row, Some(conflict))?
                    }
                    Test::Again => g.test_again(w, &records)?,
                    Test::Parent { key } => {
                        g.count_violations(&t.keys, &t.keys.children[key], (w.new, w.new), true, false)?;
                        g.check_keys(false);
                    }
                }
            }
            Ok(records)
        })
    }

    /// The row that an index's entry is computed from: where it computes anything, the row as it will be read, without the subtypes
    /// that its stored values have now. Virtual columns are computed with theirs by whoever reads them. `read_back`: where that is,
    /// once it is there.
    fn indexed_row(&mut self, w: &Writing<'_>, k: usize, read_back: &mut Option<Row>) -> Result<Row> {
        let t = w.work.target();
        if !t.indexes[k].index.computes(&t.table) {
            return Ok(w.new);
        }
        if let Some(row) = *read_back {
            return Ok(row);
        }
        let n = t.table.columns.len();
        let row = Row { rowid: w.new.rowid, first: self.b.regs(n) };
        let read = computed_from(t);
        let is_virtual = |c: usize| !t.table.columns[c].is_stored();
        let mut from = 0;
        for run in read.chunk_by(|a, b| a == b) {
            if run[0] {
                self.b.emit(Opcode::Copy, w.new.first + from, row.first + from, run.len() as i32 - 1);
            }
            from += run.len() as i32;
        }
        let done = self.b.label();
        self.b.jump(Opcode::ClrSubtypes, row.first, done, n as i32);
        self.at_place(t.id, Place::of_row(row), |g| {
            for (c, e) in t.generated.iter().filter(|(c, _)| is_virtual(*c) && read[*c]) {
                let reg = row.first + *c as i32;
                g.expr_to(e, reg)?;
                g.apply_affinity(reg, &[t.table.columns[*c].affinity]);
            }
            Ok(())
        })?;
        self.b.place(done);
        *read_back = Some(row);
        Ok(row)
    }

    fn default_for_null(&mut self, w: &Writing<'_>, column: usize) -> Result<()> {
        let t = w.work.target();
        let reg = w.new.first + column as i32;
        let ok = self.b.label();
        self.b.jump(Opcode::NotNull, reg, ok, 0);
        if let Some(d) = t.default_of(column) {
            self.expr_to(d.as_ref().map_err(Error::clone)?, reg)?;
        }
        self.apply_affinity(reg, &[t.table.columns[column].affinity]);
        self.b.place(ok);
        Ok(())
    }

    fn refuse_null(&mut self, w: &Writing<'_>, column: usize, policy: Conflict) {
        let reg = w.new.first + column as i32;
        if policy == Conflict::Ignore {
            self.b.jump(Opcode::IsNull, reg, w.work.next, 0);
            return;
        }
        let table = &w.work.target().table;
        let message = table.column_label(column).clone();
        let code = Code::ConstraintNotnull.number() as i32;
        self.b.emit4(Opcode::HaltIfNull, code, policy_number(policy), reg, P4::Name(message));
        self.b.p5(p5::NOT_NULL);
    }

    fn check(&mut self, w: &Writing<'_>, check: usize, policy: Conflict) -> Result<()> {
        let (e, label) = &w.work.target().checks[check];
        let ok = self.b.label();
        self.jump_if(e, ok, true)?;
        if policy == Conflict::Ignore {
            self.b.jump(Opcode::Goto, 0, w.work.next, 0);
        } else {
            self.violate(Code::ConstraintCheck, policy, (**label).into(), p5::CHECK);
        }
        self.b.place(ok);
        Ok(())
    }

    /// Triggers that REPLACE fired may have put rows into the way: then the statement fails.
    fn test_again(&mut self, w: &Writing<'_>, records: &[Entry]) -> Result<()> {
        let t = w.work.target();
        let key_changes = w.change.is_none_or(|c| c.key_changes);
        if t.table.has_rowid() {
            let ok = self.b.label();
            if let Some(old) = w.old {
                self.b.jump(Opcode::Eq, old.rowid, ok, w.new.rowid);
            }
            self.b.jump(Opcode::NotExists, w.work.cursors.table, ok, w.new.rowid);
            self.rowid_taken(t, Conflict::Abort);
            self.b.place(ok);
        }
        for (k, i) in t.indexes.iter().enumerate() {
            let e = records[k];
            if i.index.unique.is_none() || e.record == 0 || i.is_table && w.old.is_some() && !key_changes {
                continue;
            }
            let (ok, cursor) = (self.b.label(), w.work.cursors.indexes[k]);
            // A row that a partial index leaves out has no record.
            self.b.jump(Opcode::IsNull, e.record, ok, 0);
            self.b.jump4(Opcode::NoConflict, cursor, ok, e.first, P4::Int(i.index.key_len as i64));
            if let Some(old) = w.old {
                self.own_entry_jump(t, i, cursor, old, ok)?;
            }
            self.index_taken(t, i, Conflict::Abort);
            self.b.place(ok);
        }
        Ok(())
    }

    fn rowid_taken(&mut self, t: &Target, policy: Conflict) {
        let (code, message) = match t.table.rowid_alias {
            Some(c) => (Code::ConstraintPrimarykey, t.table.column_label(c).clone()),
            None => (Code::ConstraintRowid, [&t.table.name, ".rowid"].concat().into()),
        };
        self.violate(code, policy, message, p5::UNIQUE);
    }

    fn index_taken(&mut self, t: &Target, i: &TargetIndex, policy: Conflict) {
        let code = if i.index.origin == iolite_catalog::IndexOrigin::PrimaryKey {
            Code::ConstraintPrimarykey
        } else {
            Code::ConstraintUnique
        };
        self.violate(code, policy, i.index.label(&t.table).clone(), p5::UNIQUE);
    }

    /// Jumps if the index entry found is that of the row as it was.
    fn own_entry_jump(
        &mut self,
        t: &Target,
        i: &TargetIndex,
        cursor: i32,
        old: Row,
        to: Label,
    ) -> Result<()> {
        if t.table.has_rowid() {
            let r = self.b.temp();
            self.b.emit(Opcode::IdxRowid, cursor, r, 0);
            self.b.jump(Opcode::Eq, old.rowid, to, r);
            self.b.free_temp(r);
            return Ok(());
        }
        self.same_key_jump(t, i, cursor, old, to)
    }

    fn rowid_unique(&mut self, w: &Writing<'_>, conflict: OnConflict) -> Result<()> {
        let ok = self.b.label();
        if let Some(old) = w.old {
            self.b.jump(Opcode::Eq, old.rowid, ok, w.new.rowid);
        }
        self.b.jump(Opcode::NotExists, w.work.cursors.table, ok, w.new.rowid);
        match conflict {
            OnConflict::Upsert(clause) => self.upsert(w, clause, None)?,
            OnConflict::Policy(Conflict::Replace) => {
                // The new row is written over the one that is there, if nothing can come in between.
                let unique = |t: &Test| match t {
                    Test::Unique { conflict, .. } => Some(*conflict),
                    _ => None,
                };
                let certain =
                    w.tests.iter().filter_map(unique).all(|c| c == OnConflict::Policy(Conflict::Replace));
                self.replace_row(w.work, if certain { Taken::Rowid } else { Taken::Other })?;
            }
            OnConflict::Policy(Conflict::Ignore) => {
                self.b.jump(Opcode::Goto, 0, w.work.next, 0);
            }
            OnConflict::Policy(p) => self.rowid_taken(w.work.target(), p),
        }
        self.b.place(ok);
        Ok(())
    }

    /// Computes an index's entry into registers; answers the first and how many.
    pub fn index_entry(&mut self, t: &Target, i: &TargetIndex, place: Place) -> Result<(i32, usize)> {
        let n = i.index.columns.len();
        if let Some(first) = place.entry(t, i) {
            return Ok((first, n));
        }
        let first = self.b.regs(n);
        self.at_place(t.id, place, |g| {
            for (k, c) in i.index.columns.iter().enumerate() {
                let to = first + k as i32;
                match &c.source {
                    ColumnSource::Expr(_) => {
                        let e = i.expr(k).ok_or_else(|| internal("an unbound index expression"))?;
                        g.expr_to(e, to)?;
                    }
                    ColumnSource::Rowid => g.column(&row_column(t, ROWID), to)?,
                    ColumnSource::Column(c) => {
                        let column = if t.table.rowid_alias == Some(*c) { ROWID } else { *c as i32 };
                        g.column(&row_column(t, column), to)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok((first, n))
    }

    /// The affinities of an index record's fields.
    pub fn index_affinities(&self, t: &Target, i: &TargetIndex) -> P4 {
        if let Some(list) = i.index.affinities(&t.table) {
            return P4::Affinities(list.clone());
        }
        let list: Vec<Affinity> = i
            .index
            .columns
            .iter()
            .enumerate()
            .map(|(k, c)| match &c.source {
                ColumnSource::Column(c) => t.table.columns[*c].affinity,
                ColumnSource::Rowid => Affinity::Integer,
                ColumnSource::Expr(_) => match i.expr(k).map_or(Affinity::Blob, |e| e.affinity()) {
                    Affinity::None => Affinity::Blob,
                    a => a,
                },
            })
            .collect();
        P4::Affinities(list.into())
    }

    /// Makes the record of an index's entry; where there may be a conflict, looks for one.
    fn index_record(
        &mut self,
        w: &Writing<'_>,
        k: usize,
        row: Row,
        conflict: Option<OnConflict>,
    ) -> Result<Entry> {
        let t = w.work.target();
        let i = &t.indexes[k];
        let record = self.b.reg();
        let done = self.b.label();
        if let Some(f) = &i.filter {
            self.b.emit(Opcode::Null, 0, record, 0);
            self.at_place(t.id, Place::of_row(row), |g| g.jump_unless(f, done, true))?;
        }
        let (first, n) = self.index_entry(t, i, Place::of_row(row))?;
        let affinities = self.index_affinities(t, i);
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, affinities);
        let mut entry = Entry { record, first, fields: n, sought: false };
        let Some(conflict) = conflict else {
            self.b.place(done);
            return Ok(entry);
        };
        // Where nothing is deleted in between, the place that the check found is the place of the new entry.
        entry.sought = w.old.is_none();
        let cursor = w.work.cursors.indexes[k];
        let key_len = i.index.key_len;
        self.b.jump4(Opcode::NoConflict, cursor, done, first, P4::Int(key_len as i64));
        // The entry found may be the row's own.
        if let Some(old) = w.old {
            self.own_entry_jump(t, i, cursor, old, done)?;
        }
        match conflict {
            OnConflict::Upsert(clause) => self.upsert(w, clause, Some(k))?,
            OnConflict::Policy(Conflict::Replace) => {
                self.seek_conflicting(w.work, k)?;
                // The row that is being updated must not be moved under the update's feet.
                let table = w.work.cursors.table;
                let lock = w.old.is_some() && !w.work.plan.replaced.is_plain();
                if lock {
                    self.b.emit(Opcode::CursorLock, table, 0, 0);
                }
                self.replace_row(w.work, Taken::Entry(k))?;
                if lock {
                    self.b.emit(Opcode::CursorUnlock, table, 0, 0);
                }
            }
            OnConflict::Policy(Conflict::Ignore) => {
                self.b.jump(Opcode::Goto, 0, w.work.next, 0);
            }
            OnConflict::Policy(p) => self.index_taken(t, i, p),
        }
        self.b.place(done);
        Ok(entry)
    }

    /// Jumps if the index entry under the cursor belongs to the row `old` (WITHOUT ROWID).
    fn same_key_jump(&mut self, t: &Target, i: &TargetIndex, cursor: i32, old: Row, to: Label) -> Result<()> {
        let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
        let own = t.indexes.iter().find(|x| x.is_table).ok_or_else(|| internal("no primary key"))?;
        let differs = self.b.label();
        let r = self.b.temp();
        for (k, c) in pk.columns[..pk.key_len].iter().enumerate() {
            let ColumnSource::Column(c) = c.source else { continue };
            let f = if i.is_table { Some(k) } else { i.index.field_of(c) };
            let f = f.ok_or_else(|| internal("an index without the primary key"))?;
            self.b.emit(Opcode::Column, cursor, f as i32, r);
            let coll = own.key.fields[k].coll.clone();
            self.b.jump4(Opcode::Ne, r, differs, old.first + c as i32, P4::Collation(Rc::new(coll)));
            self.b.p5(p5::NULL_EQ);
        }
        self.b.free_temp(r);
        self.b.jump(Opcode::Goto, 0, to, 0);
        self.b.place(differs);
        Ok(())
    }

    /// Moves the table's cursor to the row that an index entry belongs to.
    pub fn seek_conflicting(&mut self, w: &Modification<'_>, k: usize) -> Result<()> {
        let t = w.target();
        let i = &t.indexes[k];
        if i.is_table {
            return Ok(());
        }
        let cursor = w.cursors.indexes[k];
        let missing = self.b.label();
        if t.table.has_rowid() {
            let r = self.b.temp();
            self.b.emit(Opcode::IdxRowid, cursor, r, 0);
            self.b.jump(Opcode::NotExists, w.cursors.table, missing, r);
            self.b.free_temp(r);
        } else {
            let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
            let first = self.b.regs(pk.key_len);
            for (n, c) in pk.columns[..pk.key_len].iter().enumerate() {
                let ColumnSource::Column(c) = c.source else { continue };
                let f = i.index.field_of(c).ok_or_else(|| internal("an index without the primary key"))?;
                self.b.emit(Opcode::Column, cursor, f as i32, first + n as i32);
            }
            self.b.jump4(Opcode::NotFound, w.cursors.table, missing, first, P4::Int(pk.key_len as i64));
        }
        self.b.place(missing);
        Ok(())
    }

    /// Deletes the index entries of the row under the table's cursor.
    pub fn delete_entries(
        &mut self,
        w: &Modification<'_>,
        only: Option<&[bool]>,
        found: Option<(usize, u16)>,
    ) -> Result<()> {
        let (t, c) = (w.target(), &w.cursors);
        let place = Place::of_target(c.table, t);
        for (k, i) in t.indexes.iter().enumerate() {
            if i.is_table || only.is_some_and(|o| !o[k]) {
                continue;
            }
            if let Some((_, flags)) = found.filter(|(at, _)| *at == k) {
                self.b.emit(Opcode::Delete, c.indexes[k], 0, 0);
                self.b.p5(flags);
                continue;
            }
            let done = self.b.label();
            if let Some(f) = &i.filter {
                self.at_place(t.id, place.clone(), |g| g.jump_unless(f, done, true))?;
            }
            // The row's page is changed next: nothing holds it.
            let saved = std::mem::replace(&mut self.copy_columns, true);
            let (first, n) = self.index_entry(t, i, place.clone())?;
            self.copy_columns = saved;
            self.b.emit(Opcode::IdxDelete, c.indexes[k], first, n as i32);
            self.b.p5(p5::MUST_EXIST);
            self.b.place(done);
        }
        Ok(())
    }

    /// Makes the record of a tested row of a table with rowids: before anything is changed, for a row may be too long.
    pub fn row_record(&mut self, w: &Writing<'_>) -> Result<Option<i32>> {
        if !w.work.target().table.has_rowid() {
            return Ok(None);
        }
        let patched = w.change.is_some_and(|c| c.old == OldRow::Patched);
        Ok(Some(if patched { self.patched_record(w)? } else { self.whole_record(w) }))
    }

    /// Puts the tested row and its index entries in their places. `record`: what [`Codegen::row_record`] made.
    pub fn write_row(
        &mut self,
        w: &Writing<'_>,
        record: Option<i32>,
        records: &[Entry],
        flags: u16,
    ) -> Result<()> {
        let t = w.work.target();
        for (k, i) in t.indexes.iter().enumerate() {
            let e = records[k];
            if i.is_table || e.record == 0 {
                continue;
            }
            let skip = self.b.label();
            if i.filter.is_some() {
                self.b.jump(Opcode::IsNull, e.record, skip, 0);
            }
            self.b.emit4(
                Opcode::IdxInsert,
                w.work.cursors.indexes[k],
                e.record,
                e.first,
                P4::Int(e.fields as i64),
            );
            if e.sought {
                self.b.p5(p5::USE_SEEK);
            }
            self.b.place(skip);
        }
        if let Some(record) = record {
            self.b.emit4(
                Opcode::Insert,
                w.work.cursors.table,
                record,
                w.new.rowid,
                P4::Name(t.table.name.clone()),
            );
            self.b.p5(flags);
        } else {
            let k = t.indexes.iter().position(|i| i.is_table).ok_or_else(|| internal("no primary key"))?;
            let mut e = records[k];
            if e.record == 0 {
                e.record = self.b.reg();
                (e.first, e.fields) = self.index_entry(t, &t.indexes[k], Place::of_row(w.new))?;
                let affinities = self.index_affinities(t, &t.indexes[k]);
                self.b.emit4(Opcode::MakeRecord, e.first, e.fields as i32, e.record, affinities);
            }
            let key = P4::Int(t.indexes[k].index.key_len as i64);
            self.b.emit4(Opcode::IdxInsert, w.work.cursors.table, e.record, e.first, key);
            // The count of changes and the hooks are those of a row.
            let place = match w.change {
                Some(c) if !c.key_changes => p5::AT_ENTRY,
                _ if e.sought => p5::USE_SEEK,
                _ => 0,
            };
            self.b.p5(flags & (p5::COUNT_CHANGE | p5::IS_UPDATE) | p5::IS_ROW | place);
        }
        Ok(())
    }

    /// Makes the record of a new row, in a register of its own.
    fn whole_record(&mut self, w: &Writing<'_>) -> i32 {
        let t = w.work.target();
        let stored = || t.table.storage.iter().map(|c| w.new.first + *c as i32);
        let n = t.table.storage.len();
        let start = stored().next().unwrap_or(0);
        let contiguous = stored().zip(start..).all(|(r, next)| r == next);
        // The rowid's alias is NULL in the record.
        let alias = t.table.rowid_alias;
        if let Some(a) = alias {
            self.b.emit(Opcode::Null, 0, w.new.first + a as i32, 0);
        }
        let first = if contiguous {
            start
        } else {
            let f = self.b.regs(n);
            for (k, r) in stored().enumerate() {
                self.copy(r, f + k as i32);
            }
            f
        };
        let affinities = t.table.affinities();
        // Not a temporary one, which something else may be in meanwhile: the record's memory is that of the row before.
        let record = self.b.reg();
        let applies = |(k, a): (usize, &Affinity)| {
            *a == Affinity::Real || w.unread && *a > Affinity::Blob && alias != Some(t.table.storage[k])
        };
        let p4 = match affinities.iter().enumerate().any(applies) {
            true => P4::Affinities(affinities.clone()),
            false => P4::None,
        };
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, p4);
        self.b.p5(p5::FOR_INSERT);
        if let Some(a) = alias.filter(|_| !w.unread) {
            self.b.emit(Opcode::SCopy, w.new.rowid, w.new.first + a as i32, 0);
        }
        record
    }

    /// Makes the record of a new row out of that under the cursor, in a register of its own.
    fn patched_record(&mut self, w: &Writing<'_>) -> Result<i32> {
        let table = &w.work.target().table;
        let fields = table.storage.iter().map(|&c| PatchField {
            register: w.change.is_none_or(|x| x.changed[c]).then_some(c as u16),
            default: table.absent_value(c).map_or(Value::Null, |v| (**v).clone()),
            real: table.columns[c].affinity == Affinity::Real,
        });
        let fields: Rc<[PatchField]> = fields.collect();
        let record = self.b.reg();
        self.b.emit4(Opcode::PatchRecord, w.work.cursors.table, w.new.first, record, P4::Patch(fields));
        self.b.p5(p5::FOR_INSERT);
        Ok(record)
    }

    /// Loads the row under the table's cursor into registers.
    pub fn load_row(&mut self, t: &Target, cursor: i32) -> Result<Row> {
        let n = t.table.columns.len();
        let rowid = self.b.reg();
        let first = self.b.regs(n);
        if t.table.has_rowid() {
            self.b.emit(Opcode::Rowid, cursor, rowid, 0);
        } else {
            self.b.emit(Opcode::Null, 0, rowid, 0);
        }
        let place = Place::of_target(cursor, t);
        self.at_place(t.id, place, |g| {
            let saved = std::mem::replace(&mut g.copy_columns, true);
            for c in 0..n {
                let to = first + c as i32;
                if t.table.rowid_alias == Some(c) {
                    g.copy(rowid, to);
                } else {
                    g.column(&row_column(t, c as i32), to)?;
                }
            }
            g.copy_columns = saved;
            Ok(())
        })?;
        Ok(Row { rowid, first })
    }
}

/// A reference to a column of the target's row.
pub(crate) fn row_column(t: &Target, column: i32) -> ColumnRef {
    let affinity = if column < 0 { Affinity::Integer } else { t.table.columns[column as usize].affinity };
    ColumnRef { table: t.id, column, affinity, collation: Default::default() }
}

/// The columns from which entries of computed indexes are made; all of them, where one is computed itself.
fn computed_from(t: &Target) -> Vec<bool> {
    let mut read = vec![false; t.table.columns.len()];
    for i in t.indexes.iter().filter(|i| i.index.computes(&t.table)) {
        for c in &i.index.columns {
            if let ColumnSource::Column(k) = c.source {
                read[k] = true;
            }
        }
        for e in i.exprs.iter().map(|e| &e.1).chain(&i.filter) {
            e.any(&mut |e| {
                if let Expr::Column(c) = e
                    && let Ok(k) = usize::try_from(c.column)
                {
                    read[k] = true;
                }
                false
            });
        }
    }
    if (0..read.len()).any(|c| read[c] && !t.table.columns[c].is_stored()) {
        read.fill(true);
    }
    read
}

fn strict_type(decl: &str) -> StrictType {
    match iolite_catalog::strict_type(decl) {
        Some("INT") => StrictType::Int,
        Some("INTEGER") => StrictType::Integer,
        Some("REAL") => StrictType::Real,
        Some("TEXT") => StrictType::Text,
        Some("BLOB") => StrictType::Blob,
        _ => StrictType::Any,
    }
}

//! Changing rows: constraints, index entries, the row itself.
//!
//! A new row stands in registers ([`Row`]); the table and its indexes are open ([`Cursors`]). Constraints are checked
//! in this order: NOT NULL, CHECK, the rowid, STRICT types (before CHECK, if there is one), unique indexes, those whose policy is REPLACE last, so that nothing has
//! been deleted when another constraint says no.

use crate::context::{Codegen, Place};
use crate::expr::internal;
use iolite_base::{Code, Result};
use iolite_bytecode::{Label, Opcode, P4, PatchField, StrictColumn, StrictType, p5};
use iolite_catalog::{ColumnSource, Table};
use iolite_plan::bind::{Target, TargetIndex};
use iolite_plan::bound::*;
use iolite_sql::ast::Conflict;
use iolite_value::Affinity;
use std::rc::Rc;

/// A row in registers.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// The rowid (of a rowid table).
    pub rowid: i32,
    /// Column `i` is in `first + i`.
    pub first: i32,
}

/// The cursors of a table being written.
#[derive(Clone)]
pub(crate) struct Cursors {
    /// The table (or the primary key's index).
    pub table: i32,
    /// One per index of the target; the table's own for the one that is the table.
    pub indexes: Vec<i32>,
}

/// An index entry made by the check: its record, and its fields in registers. No record: the index is not touched.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub record: i32,
    pub first: i32,
    pub fields: usize,
    /// The check has sought its place.
    pub sought: bool,
}

/// Codes what an upsert does about a conflict on the rowid (`None`) or an index; `false` if no clause is about it.
pub(crate) type OnConflict<'w> = dyn Fn(&mut Codegen<'_>, Option<usize>) -> Result<bool> + 'w;

/// How a row is being written.
pub(crate) struct Writing<'w> {
    pub target: &'w Target,
    pub cursors: &'w Cursors,
    pub new: Row,
    /// Of an UPDATE: the row as it was.
    pub old: Option<Row>,
    /// The statement's `OR` policy.
    pub or: Option<Conflict>,
    /// Of an UPDATE: columns that change; `None`: all.
    pub changed: Option<&'w [bool]>,
    /// The record is made out of the old one: columns that stay have no values in registers.
    pub patch: bool,
    /// The rowid (or primary key) may differ from the old one.
    pub key_changes: bool,
    /// The rowid was made by `NewRowid`: it is unique.
    pub fresh_rowid: bool,
    /// Where a row goes that is ignored.
    pub ignore: Label,
    /// Constraints that ON CONFLICT clauses name, in their order: these are checked first. `None` is the rowid.
    pub named: &'w [Option<usize>],
    /// Upsert handling by constraint: `None` is the rowid.
    pub upsert: Option<&'w OnConflict<'w>>,
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
    /// Opens a table and its indexes for writing. `only`: indexes that are needed, all if `None`.
    pub fn open_for_write(&mut self, t: &Target, only: Option<&[bool]>) -> Result<Cursors> {
        self.write_database(t.db);
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, Opcode::OpenWrite)?;
        self.open_indexes(t, table, only)
    }

    /// Opens the indexes beside an open table cursor.
    pub fn open_indexes(&mut self, t: &Target, table: i32, only: Option<&[bool]>) -> Result<Cursors> {
        let mut indexes = Vec::new();
        for (k, i) in t.indexes.iter().enumerate() {
            if i.is_table {
                indexes.push(table);
                continue;
            }
            let c = self.b.cursor();
            if only.is_none_or(|o| o[k]) {
                let root = i.index.root.get() as i32;
                self.b.emit4(Opcode::OpenWrite, c, root, t.db as i32, P4::KeyInfo(i.key.clone()));
            }
            indexes.push(c);
        }
        Ok(Cursors { table, indexes })
    }

    /// Runs `f` while the table's row is at `place`.
    pub fn at_place<T>(
        &mut self,
        id: TableId,
        place: Place,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let former = self.places.insert(id, place);
        let out = f(self);
        match former {
            Some(p) => self.places.insert(id, p),
            None => self.places.remove(id),
        };
        out
    }

    /// The place of a row in registers.
    pub fn row_place(&self, r: Row) -> Place {
        Place::Registers { rowid: r.rowid, first: r.first }
    }

    /// Applies the columns' affinities, checks STRICT types, computes generated columns. `seen`: a BEFORE trigger will
    /// see the row.
    pub fn shape_row(&mut self, t: &Target, r: Row, seen: bool) -> Result<()> {
        let table = t.table.clone();
        let affinities: Vec<Affinity> = table.columns.iter().map(|c| c.affinity).collect();
        if table.strict {
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
            .map(|c| StrictColumn {
                name: dotted(&table.name, &c.name).into(),
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
        let list = t.generated.clone();
        let place = self.row_place(r);
        self.at_place(t.id, place, |g| {
            for (c, e) in &list {
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
    fn violate(&mut self, code: Code, policy: Conflict, message: &str, kind: u16) {
        self.b.emit4(Opcode::Halt, code.number() as i32, policy_number(policy), 0, P4::Name(message.into()));
        self.b.p5(kind);
    }

    /// Checks all constraints of a new row. Index records are made on the way; answers their registers.
    pub fn check_constraints(&mut self, w: &Writing<'_>) -> Result<Vec<Entry>> {
        let place = self.row_place(w.new);
        let id = w.target.id;
        self.at_place(id, place, |g| {
            g.not_null(w)?;
            let checks = if g.settings.ignore_checks {
                Vec::new()
            } else {
                due_checks(w.target, w.changed, w.key_changes)
            };
            if !checks.is_empty() {
                g.check_stored_types(w);
            }
            for (e, label) in &checks {
                g.check(w, e, label)?;
            }
            g.uniqueness(w, checks.is_empty())
        })
    }

    /// STRICT: the types of what will be stored. Columns computed when read were checked when they were computed.
    fn check_stored_types(&mut self, w: &Writing<'_>) {
        if w.target.table.strict {
            self.check_types(w.target, w.new, |c| c.generated.as_ref().is_none_or(|x| x.stored));
        }
    }

    fn is_changed(&self, w: &Writing<'_>, column: usize) -> bool {
        w.changed.is_none_or(|c| c[column])
    }

    /// NOT NULL: first the columns that are given, defaults taking the place of NULLs under REPLACE; then, since
    /// that may change them, generated columns, and defaults that are NULL themselves.
    fn not_null(&mut self, w: &Writing<'_>) -> Result<()> {
        let t = w.target.table.clone();
        let mut second: Vec<(usize, Conflict)> = Vec::new();
        let mut replaced = false;
        for (i, c) in t.columns.iter().enumerate() {
            let Some(own) = c.not_null else { continue };
            if t.rowid_alias == Some(i) || !self.is_changed(w, i) && c.generated.is_none() {
                continue;
            }
            let policy = w.or.unwrap_or(own);
            if c.generated.is_some() {
                second.push((i, policy));
                continue;
            }
            match &w.target.defaults[i] {
                Some(d) if policy == Conflict::Replace => {
                    let reg = w.new.first + i as i32;
                    let ok = self.b.label();
                    self.b.jump(Opcode::NotNull, reg, ok, 0);
                    self.expr_to(d, reg)?;
                    self.apply_affinity(reg, &[c.affinity]);
                    self.b.place(ok);
                    replaced = true;
                    second.push((i, policy));
                }
                _ => self.refuse_null(w, i, policy),
            }
        }
        if replaced && !w.target.generated.is_empty() {
            if t.strict {
                self.check_types(w.target, w.new, |c| c.generated.is_none());
            }
            self.generate(w.target, w.new, false)?;
        }
        for (i, policy) in second {
            self.refuse_null(w, i, policy);
        }
        Ok(())
    }

    fn refuse_null(&mut self, w: &Writing<'_>, column: usize, policy: Conflict) {
        let reg = w.new.first + column as i32;
        let policy = if policy == Conflict::Replace { Conflict::Abort } else { policy };
        if policy == Conflict::Ignore {
            self.b.jump(Opcode::IsNull, reg, w.ignore, 0);
            return;
        }
        let table = &w.target.table;
        let message = dotted(&table.name, &table.columns[column].name);
        let code = Code::ConstraintNotnull.number() as i32;
        self.b.emit4(Opcode::HaltIfNull, code, policy_number(policy), reg, P4::Name(message.into()));
        self.b.p5(p5::NOT_NULL);
    }

    fn check(&mut self, w: &Writing<'_>, e: &Expr, label: &str) -> Result<()> {
        let ok = self.b.label();
        self.jump_if(e, ok, true)?;
        let policy = match w.or.unwrap_or(Conflict::Abort) {
            Conflict::Replace => Conflict::Abort,
            p => p,
        };
        if policy == Conflict::Ignore {
            self.b.jump(Opcode::Goto, 0, w.ignore, 0);
        } else {
            self.violate(Code::ConstraintCheck, policy, label, p5::CHECK);
        }
        self.b.place(ok);
        Ok(())
    }

    /// The indexes that an UPDATE must touch.
    pub fn touched_indexes(&self, t: &Target, changed: &[bool], key_changes: bool) -> Vec<bool> {
        t.indexes
            .iter()
            .map(|i| {
                if key_changes || i.is_table {
                    return true;
                }
                let reads = |e: &Expr| {
                    e.any(&mut |x| match x {
                        Expr::Column(c) if c.column >= 0 => {
                            changed[c.column as usize]
                                || t.table.columns[c.column as usize].generated.is_some()
                        }
                        _ => false,
                    })
                };
                i.index.columns.iter().enumerate().any(|(n, c)| match &c.source {
                    ColumnSource::Column(k) => changed[*k] || t.table.columns[*k].generated.is_some(),
                    ColumnSource::Rowid => false,
                    ColumnSource::Expr(_) => i.exprs[n].as_ref().is_some_and(&reads),
                }) || i.filter.as_ref().is_some_and(reads)
            })
            .collect()
    }

    /// The rowid, then, if they have not been checked, the types of a STRICT table, then the indexes.
    fn uniqueness(&mut self, w: &Writing<'_>, types: bool) -> Result<Vec<Entry>> {
        let t = w.target;
        let mut records = vec![Entry::default(); t.indexes.len()];
        let touched = w.changed.map(|c| self.touched_indexes(t, c, w.key_changes));
        // The rowid, unless its policy is REPLACE, which that of a clause for all constraints overrides: then it comes
        // after the indexes that are not.
        let rowid_policy = w.or.or(t.table.key_conflict).unwrap_or(Conflict::Abort);
        let check_rowid = t.table.has_rowid() && !w.fresh_rowid && w.key_changes;
        let others_refuse = t
            .indexes
            .iter()
            .any(|i| i.index.unique.is_some_and(|own| w.or.unwrap_or(own) != Conflict::Replace))
            || w.upsert.is_some();
        let for_all = w.upsert.is_some() && w.named.is_empty();
        let rowid_last = rowid_policy == Conflict::Replace && others_refuse && !for_all;
        if types && w.named.iter().any(Option::is_some) {
            self.check_stored_types(w);
        }
        for n in w.named {
            match n {
                Some(k) => records[*k] = self.index_unique(w, *k)?,
                None if check_rowid => self.rowid_unique(w, rowid_policy)?,
                None => {}
            }
        }
        let check_rowid = check_rowid && !w.named.contains(&None);
        if check_rowid && !rowid_last {
            self.rowid_unique(w, rowid_policy)?;
        }
        if types && !w.named.iter().any(Option::is_some) {
            self.check_stored_types(w);
        }
        let mut order: Vec<usize> = (0..t.indexes.len()).collect();
        order.sort_by_key(|k| {
            t.indexes[*k].index.unique.is_some_and(|own| w.or.unwrap_or(own) == Conflict::Replace)
        });
        for k in order {
            if touched.as_ref().is_some_and(|x| !x[k]) || w.named.contains(&Some(k)) {
                continue;
            }
            records[k] = self.index_unique(w, k)?;
        }
        if check_rowid && rowid_last {
            self.rowid_unique(w, rowid_policy)?;
        }
        let replaces =
            |i: &TargetIndex| i.index.unique.is_some_and(|own| w.or.unwrap_or(own) == Conflict::Replace);
        if (rowid_policy == Conflict::Replace || t.indexes.iter().any(replaces)) && self.replace_fires(t) {
            self.recheck(w, &records)?;
        }
        Ok(records)
    }

    /// Whether rows that REPLACE deletes fire triggers.
    pub fn replace_fires(&self, t: &Target) -> bool {
        self.settings.recursive_triggers && self.has_triggers(t, &crate::trigger::Event::Delete)
    }

    /// Triggers that REPLACE fired may have put rows into the way: then the statement fails.
    fn recheck(&mut self, w: &Writing<'_>, records: &[Entry]) -> Result<()> {
        let t = w.target;
        if t.table.has_rowid() {
            let ok = self.b.label();
            if let Some(old) = w.old {
                self.b.jump(Opcode::Eq, old.rowid, ok, w.new.rowid);
            }
            self.b.jump(Opcode::NotExists, w.cursors.table, ok, w.new.rowid);
            self.rowid_taken(t, Conflict::Abort);
            self.b.place(ok);
        }
        for (k, i) in t.indexes.iter().enumerate() {
            let e = records[k];
            if i.index.unique.is_none() || e.record == 0 || i.is_table && w.old.is_some() && !w.key_changes {
                continue;
            }
            let (ok, cursor) = (self.b.label(), w.cursors.indexes[k]);
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
        let (code, column) = match t.table.rowid_alias {
            Some(c) => (Code::ConstraintPrimarykey, &*t.table.columns[c].name),
            None => (Code::ConstraintRowid, "rowid"),
        };
        let message = dotted(&t.table.name, column);
        self.violate(code, policy, &message, p5::UNIQUE);
    }

    fn index_taken(&mut self, t: &Target, i: &TargetIndex, policy: Conflict) {
        let code = if i.index.origin == iolite_catalog::IndexOrigin::PrimaryKey {
            Code::ConstraintPrimarykey
        } else {
            Code::ConstraintUnique
        };
        let message = unique_message(&t.table, i);
        self.violate(code, policy, &message, p5::UNIQUE);
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

    fn rowid_unique(&mut self, w: &Writing<'_>, policy: Conflict) -> Result<()> {
        let ok = self.b.label();
        let t = w.target;
        if let Some(old) = w.old {
            self.b.jump(Opcode::Eq, old.rowid, ok, w.new.rowid);
        }
        self.b.jump(Opcode::NotExists, w.cursors.table, ok, w.new.rowid);
        let handled = match w.upsert {
            Some(f) => f(self, None)?,
            None => false,
        };
        if !handled {
            match policy {
                Conflict::Replace => self.replace_row(w)?,
                Conflict::Ignore => {
                    self.b.jump(Opcode::Goto, 0, w.ignore, 0);
                }
                p => self.rowid_taken(t, p),
            }
        }
        self.b.place(ok);
        Ok(())
    }

    /// Computes an index's entry into registers; answers the first and how many.
    pub fn index_entry(&mut self, t: &Target, i: &TargetIndex, place: Place) -> Result<(i32, usize)> {
        let n = i.index.columns.len();
        let first = self.b.regs(n);
        let columns = i.index.columns.clone();
        self.at_place(t.id, place, |g| {
            for (k, c) in columns.iter().enumerate() {
                let to = first + k as i32;
                match &c.source {
                    ColumnSource::Expr(_) => {
                        let e = i.exprs[k].clone().ok_or_else(|| internal("an unbound index expression"))?;
                        g.expr_to(&e, to)?;
                    }
                    ColumnSource::Rowid => g.column(&row_column(t, ROWID), to)?,
                    ColumnSource::Column(c) => {
                        let column = if t.table.rowid_alias == Some(*c) { ROWID } else { *c as i32 };
                        g.index_column_value(t, column, to)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok((first, n))
    }

    /// A column's value as an index stores it: a whole number of a REAL column stays an integer there as in the table.
    fn index_column_value(&mut self, t: &Target, column: i32, to: i32) -> Result<()> {
        self.column(&row_column(t, column), to)
    }

    /// The affinities of an index record's fields.
    pub fn index_affinities(&self, t: &Target, i: &TargetIndex) -> P4 {
        let list: Vec<Affinity> = i
            .index
            .columns
            .iter()
            .enumerate()
            .map(|(k, c)| match &c.source {
                ColumnSource::Column(c) => t.table.columns[*c].affinity,
                ColumnSource::Rowid => Affinity::Integer,
                ColumnSource::Expr(_) => match i.exprs[k].as_ref().map_or(Affinity::Blob, |e| e.affinity()) {
                    Affinity::None => Affinity::Blob,
                    a => a,
                },
            })
            .collect();
        P4::Affinities(list.into())
    }

    fn index_unique(&mut self, w: &Writing<'_>, k: usize) -> Result<Entry> {
        let t = w.target;
        let i = &t.indexes[k];
        let record = self.b.reg();
        let done = self.b.label();
        let place = self.row_place(w.new);
        if let Some(f) = &i.filter {
            self.b.emit(Opcode::Null, 0, record, 0);
            self.jump_unless(f, done, true)?;
        }
        let (first, n) = self.index_entry(t, i, place)?;
        let affinities = self.index_affinities(t, i);
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, affinities);
        let mut entry = Entry { record, first, fields: n, sought: false };
        let Some(own) = i.index.unique else {
            self.b.place(done);
            return Ok(entry);
        };
        if i.is_table && w.old.is_some() && !w.key_changes {
            self.b.place(done);
            return Ok(entry);
        }
        // Where nothing is deleted in between, the place that the check found is the place of the new entry.
        entry.sought = w.old.is_none();
        let policy = w.or.unwrap_or(own);
        let cursor = w.cursors.indexes[k];
        let key_len = i.index.key_len;
        self.b.jump4(Opcode::NoConflict, cursor, done, first, P4::Int(key_len as i64));
        // The entry found may be the row's own.
        if let Some(old) = w.old {
            self.own_entry_jump(t, i, cursor, old, done)?;
        }
        let handled = match w.upsert {
            Some(f) => f(self, Some(k))?,
            None => false,
        };
        if !handled {
            match policy {
                Conflict::Replace => {
                    self.seek_conflicting(w, k)?;
                    // The row that is being updated must not be moved under the update's feet.
                    let lock = w.old.is_some() && self.replace_fires(t);
                    if lock {
                        self.b.emit(Opcode::CursorLock, w.cursors.table, 0, 0);
                    }
                    self.replace_row(w)?;
                    if lock {
                        self.b.emit(Opcode::CursorUnlock, w.cursors.table, 0, 0);
                    }
                }
                Conflict::Ignore => {
                    self.b.jump(Opcode::Goto, 0, w.ignore, 0);
                }
                p => self.index_taken(t, i, p),
            }
        }
        self.b.place(done);
        Ok(entry)
    }

    /// Jumps if the index entry under the cursor belongs to the row `old` (WITHOUT ROWID).
    fn same_key_jump(&mut self, t: &Target, i: &TargetIndex, cursor: i32, old: Row, to: Label) -> Result<()> {
        let pk = t.table.primary_index().ok_or_else(|| internal("no primary key"))?;
        let differs = self.b.label();
        let r = self.b.temp();
        for (k, c) in pk.columns[..pk.key_len].iter().enumerate() {
            let ColumnSource::Column(c) = c.source else { continue };
            let f = if i.is_table { Some(k) } else { i.index.field_of(c) };
            let f = f.ok_or_else(|| internal("an index without the primary key"))?;
            self.b.emit(Opcode::Column, cursor, f as i32, r);
            let coll = match &pk.columns[k].collation {
                Some(n) => self.env.registry.collation(n, self.env.encoding).unwrap_or_default(),
                None => self.binary(),
            };
            self.b.jump4(Opcode::Ne, r, differs, old.first + c as i32, P4::Collation(Rc::new(coll)));
            self.b.p5(p5::NULL_EQ);
        }
        self.b.free_temp(r);
        self.b.jump(Opcode::Goto, 0, to, 0);
        self.b.place(differs);
        Ok(())
    }

    /// Moves the table's cursor to the row that an index entry belongs to.
    pub fn seek_conflicting(&mut self, w: &Writing<'_>, k: usize) -> Result<()> {
        let t = w.target;
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

    /// REPLACE: deletes the row under the table's cursor. The statements of its triggers replace, too, even where it is
    /// the constraint that says so.
    fn replace_row(&mut self, w: &Writing<'_>) -> Result<()> {
        self.needs_statement = true;
        let t = w.target;
        let or = Some(Conflict::Replace);
        if self.replace_fires(t) {
            let old = self.load_row(t, w.cursors.table)?;
            let skip = self.b.label();
            self.fire(
                t,
                &crate::trigger::Event::Delete,
                iolite_sql::ast::TriggerTime::Before,
                Some(old),
                None,
                skip,
                or,
            )?;
            // The trigger may have deleted or changed the row.
            self.reseek(t, w.cursors, old, skip)?;
            self.delete_row(t, w.cursors, None, 0)?;
            self.fire(
                t,
                &crate::trigger::Event::Delete,
                iolite_sql::ast::TriggerTime::After,
                Some(old),
                None,
                skip,
                or,
            )?;
            self.b.place(skip);
            return Ok(());
        }
        self.delete_row(t, w.cursors, None, 0)
    }

    /// Deletes the row under the table's cursor with its index entries. `only`: indexes to touch.
    pub fn delete_row(&mut self, t: &Target, c: &Cursors, only: Option<&[bool]>, flags: u16) -> Result<()> {
        self.delete_entries(t, c, only)?;
        self.b.emit4(Opcode::Delete, c.table, 0, 0, P4::Name(t.table.name.clone()));
        self.b.p5(flags);
        Ok(())
    }

    /// Deletes the index entries of the row under the table's cursor.
    pub fn delete_entries(&mut self, t: &Target, c: &Cursors, only: Option<&[bool]>) -> Result<()> {
        let place = Place::Table { cursor: c.table, table: t.table.clone(), index: None, index_only: false };
        for (k, i) in t.indexes.iter().enumerate() {
            if i.is_table || only.is_some_and(|o| !o[k]) {
                continue;
            }
            let done = self.b.label();
            if let Some(f) = &i.filter {
                let f = f.clone();
                self.at_place(t.id, place.clone(), |g| g.jump_unless(&f, done, true))?;
            }
            let (first, n) = self.index_entry(t, i, place.clone())?;
            self.b.emit(Opcode::IdxDelete, c.indexes[k], first, n as i32);
            self.b.p5(p5::MUST_EXIST);
            self.b.place(done);
        }
        Ok(())
    }

    /// Inserts the checked row and its index entries.
    pub fn insert_row(&mut self, w: &Writing<'_>, records: &[Entry], flags: u16) -> Result<()> {
        let t = w.target;
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
                w.cursors.indexes[k],
                e.record,
                e.first,
                P4::Int(e.fields as i64),
            );
            if e.sought {
                self.b.p5(p5::USE_SEEK);
            }
            self.b.place(skip);
        }
        if t.table.has_rowid() {
            let record = if w.patch { self.patched_record(w)? } else { self.whole_record(w) };
            self.b.emit4(
                Opcode::Insert,
                w.cursors.table,
                record,
                w.new.rowid,
                P4::Name(t.table.name.clone()),
            );
            self.b.p5(flags);
            self.b.free_temp(record);
        } else {
            let k = t.indexes.iter().position(|i| i.is_table).ok_or_else(|| internal("no primary key"))?;
            let mut record = records[k].record;
            if record == 0 {
                record = self.b.reg();
                let (first, n) = self.index_entry(t, &t.indexes[k], self.row_place(w.new))?;
                let affinities = self.index_affinities(t, &t.indexes[k]);
                self.b.emit4(Opcode::MakeRecord, first, n as i32, record, affinities);
            }
            self.b.emit(Opcode::IdxInsert, w.cursors.table, record, 0);
            // The count of changes and the hooks are those of a row.
            self.b.p5(flags & (p5::COUNT_CHANGE | p5::IS_UPDATE) | p5::IS_ROW);
        }
        Ok(())
    }

    /// Makes the record of a new row, in a temporary register.
    fn whole_record(&mut self, w: &Writing<'_>) -> i32 {
        let t = w.target;
        let stored: Vec<i32> = t.table.storage.iter().map(|c| w.new.first + *c as i32).collect();
        let n = stored.len();
        let contiguous = stored.iter().enumerate().all(|(k, r)| *r == stored[0] + k as i32);
        // The rowid's alias is NULL in the record.
        let alias = t.table.rowid_alias;
        if let Some(a) = alias {
            self.b.emit(Opcode::Null, 0, w.new.first + a as i32, 0);
        }
        let first = if contiguous {
            stored.first().copied().unwrap_or(0)
        } else {
            let f = self.b.regs(n);
            for (k, r) in stored.iter().enumerate() {
                self.copy(*r, f + k as i32);
            }
            f
        };
        let affinities: Vec<Affinity> =
            t.table.storage.iter().map(|c| t.table.columns[*c].affinity).collect();
        let record = self.b.temp();
        let p4 =
            if affinities.contains(&Affinity::Real) { P4::Affinities(affinities.into()) } else { P4::None };
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, p4);
        self.b.p5(p5::FOR_INSERT);
        if let Some(a) = alias {
            self.b.emit(Opcode::SCopy, w.new.rowid, w.new.first + a as i32, 0);
        }
        record
    }

    /// Makes the record of a new row out of that under the cursor, in a temporary register.
    fn patched_record(&mut self, w: &Writing<'_>) -> Result<i32> {
        let table = &w.target.table;
        let fields = table.storage.iter().map(|&c| {
            Ok(PatchField {
                register: self.is_changed(w, c).then_some(c as u16),
                default: self.default_value(table, c)?,
                real: table.columns[c].affinity == Affinity::Real,
            })
        });
        let fields: Vec<PatchField> = fields.collect::<Result<_>>()?;
        let record = self.b.temp();
        self.b.emit4(Opcode::PatchRecord, w.cursors.table, w.new.first, record, P4::Patch(fields.into()));
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
        let place = Place::Table { cursor, table: t.table.clone(), index: None, index_only: false };
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

    /// Opens a transient table for the rows of RETURNING.
    pub fn open_returning(&mut self, list: &[Expr]) -> Option<i32> {
        if list.is_empty() {
            return None;
        }
        let cursor = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, cursor, list.len() as i32, 0);
        Some(cursor)
    }

    /// Computes RETURNING for one row.
    pub fn returning_row(&mut self, t: &Target, list: &[Expr], row: Row, cursor: Option<i32>) -> Result<()> {
        let Some(cursor) = cursor else { return Ok(()) };
        let first = self.b.regs(list.len());
        let place = self.row_place(row);
        self.at_place(t.id, place, |g| g.expr_list(list, first))?;
        let end = self.b.label();
        self.deliver(&crate::context::Dest::Table { cursor }, first, list.len(), end)?;
        self.b.place(end);
        Ok(())
    }

    /// Yields the rows of RETURNING after all changes.
    pub fn close_returning(&mut self, n: usize, cursor: Option<i32>) {
        let Some(cursor) = cursor else { return };
        let first = self.b.regs(n);
        let over = self.b.label();
        self.b.jump(Opcode::Rewind, cursor, over, 0);
        let top = self.b.here();
        for k in 0..n as i32 {
            self.b.emit(Opcode::Column, cursor, k, first + k);
        }
        self.b.emit(Opcode::ResultRow, first, n as i32, 0);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.place(over);
    }
}

/// A reference to a column of the target's row.
pub(crate) fn row_column(t: &Target, column: i32) -> ColumnRef {
    let affinity = if column < 0 { Affinity::Integer } else { t.table.columns[column as usize].affinity };
    ColumnRef { table: t.id, column, affinity, collation: Default::default() }
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

/// `table.column`, as messages name it. Statements have one for each constraint that they test: made in one piece.
fn dotted(table: &str, column: &str) -> String {
    [table, ".", column].concat()
}

fn unique_message(t: &Table, i: &TargetIndex) -> String {
    if i.index.has_expr() {
        return format!("index '{}'", i.index.name);
    }
    let columns = &i.index.columns[..i.index.key_len];
    let mut out = String::with_capacity(columns.len() * (t.name.len() + 16));
    for c in columns {
        let ColumnSource::Column(k) = c.source else { continue };
        let before = if out.is_empty() { "" } else { ", " };
        for part in [before, &t.name, ".", &t.columns[k].name] {
            out.push_str(part);
        }
    }
    out
}

/// The CHECK constraints that a row may violate: one that reads no changed column holds as it held.
pub(crate) fn due_checks(t: &Target, changed: Option<&[bool]>, key_changes: bool) -> Vec<(Expr, Box<str>)> {
    let mut due = t.checks.clone();
    if let Some(changed) = changed
        && t.generated.is_empty()
    {
        due.retain(|(e, _)| {
            e.any(&mut |x| match x {
                Expr::Column(c) => {
                    c.column == ROWID && key_changes || c.column >= 0 && changed[c.column as usize]
                }
                _ => false,
            })
        });
    }
    due
}

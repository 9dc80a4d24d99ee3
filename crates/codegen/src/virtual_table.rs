//! Tables of modules: how their cursors start, and how they are told of changes.
//!
//! A row that is told stands in registers: the old key, the new key, the columns; of an update one more, with a bit for each
//! column that stays as it is and whose value the module did not give.

use crate::context::{Codegen, Dest, Place, Row, internal};
use crate::loops::{Open, Step};
use crate::modify::Modification;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, VirtualPlan};
use iolite_catalog::Table;
use iolite_ext::IndexInfo;
use iolite_plan::Conflict;
use iolite_plan::bind::Target;
use iolite_plan::bound::{CmpOp, Expr};
use iolite_plan::plan::*;
use iolite_plan::statement::modify::*;
use iolite_value::Affinity;
use std::rc::Rc;

/// The bit of an operand that says that the table heeds the conflict policy.
const HEEDS: u16 = 16;
/// So many columns have a bit that says that they stay as they are.
const TRACKED: usize = 63;

impl Codegen<'_> {
    /// Starts a scan by the plan that the module has chosen.
    pub(crate) fn virtual_scan(
        &mut self,
        cursor: i32,
        vtab: &VtabHandle,
        info: &IndexInfo,
        args: &[VirtualArg],
        o: &mut Open,
    ) -> Result<()> {
        let first = self.b.regs(args.len() + 2);
        let mut lists = 0;
        for (k, arg) in args.iter().enumerate() {
            let reg = first + 2 + k as i32;
            match &arg.value {
                // What equals NULL is the table's to say.
                EqTerm::Eq { value, .. } if vtab.0.takes_pointers() => self.argument_to(value, reg)?,
                EqTerm::Eq { value, .. } => self.expr_to(value, reg)?,
                several if arg.list => {
                    self.list_of(several, reg)?;
                    lists |= 1 << k;
                }
                several => self.eq_value(several, reg, false, o)?,
            }
        }
        self.b.emit(Opcode::Integer, info.index_num, first, 0);
        self.b.emit(Opcode::Integer, args.len() as i32, first + 1, 0);
        let plan = VirtualPlan { text: info.index_str.as_str().into(), data: info.index_data.clone() };
        let exit = o.in_exit();
        self.b.jump4(Opcode::VFilter, cursor, exit, first, P4::VirtualPlan(Rc::new(plan)));
        self.b.p5(lists);
        let top = self.b.here();
        o.step = Step::Next { op: Opcode::VNext, cursor, top };
        for (k, arg) in args.iter().enumerate() {
            let Some(c) = &arg.recheck else { continue };
            let own = self.expr(&c.lhs)?;
            let equal = self.emit_compare(c, CmpOp::Eq, own.reg, first + 2 + k as i32, false);
            self.b.jump(Opcode::Goto, 0, o.next, 0);
            self.b.jump_here(equal);
            self.done(own);
        }
        Ok(())
    }

    /// The values of an IN as one list.
    fn list_of(&mut self, values: &EqTerm, reg: i32) -> Result<()> {
        let (cursor, field) = self.in_values(values)?;
        let (value, over) = (self.b.temp(), self.b.label());
        self.b.emit(Opcode::VList, 0, 0, reg);
        self.b.jump(Opcode::Rewind, cursor, over, 0);
        let top = self.b.here();
        self.b.emit(Opcode::Column, cursor, field, value);
        self.b.emit(Opcode::VList, value, 0, reg);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.place(over);
        self.b.free_temp(value);
        Ok(())
    }

    /// Collects the new rows of an update in a transient table, in the order in which they are found.
    pub(crate) fn virtual_rows(&mut self, t: &Target, v: &VirtualWrite, rows: &CorePlan) -> Result<i32> {
        let cursor = self.b.cursor();
        let width = told_width(t) as i32;
        self.b.emit(Opcode::OpenEphemeral, cursor, width, 0);
        let mut loops = self.open_loops(rows)?;
        let next = self.innermost_next(&loops);
        let first = self.updated_row(t, v, rows)?;
        self.deliver(&Dest::Table { cursor, affinities: None }, first, width as usize, next)?;
        self.close_loops(&mut loops)?;
        Ok(cursor)
    }

    /// Computes what is told of the row under the cursor; answers the first register.
    fn updated_row(&mut self, t: &Target, v: &VirtualWrite, rows: &CorePlan) -> Result<i32> {
        let VirtualChange::Update { sets } = &v.change else { return Err(internal("no update")) };
        let Some(Place::Virtual { cursor }) = self.places.get(t.id) else {
            return Err(internal("no virtual cursor"));
        };
        let (cursor, n) = (*cursor, t.table.columns.len());
        let first = self.b.regs(told_width(t));
        let (old, new, columns, unchanged) = (first, first + 1, first + 2, first + 2 + n as i32);
        self.b.emit(Opcode::Integer, 0, unchanged, 0);
        let joined = rows.levels.len() > 1;
        if joined {
            self.keys_of_update(t, rows, old, new)?;
        }
        let set = |k: i32| sets.iter().any(|s| s.column == k);
        for k in 0..n as i32 {
            let value = &rows.result[k as usize];
            // Behind a query that summarizes, the table's cursor stands on no row.
            if set(k) || !matches!(value, Expr::Column(c) if c.table == t.id) {
                self.expr_to(value, columns + k)?;
                continue;
            }
            let tracked = if (k as usize) < TRACKED { P4::Int(unchanged as i64) } else { P4::None };
            self.b.emit4(Opcode::VColumn, cursor, k, columns + k, tracked);
        }
        if !joined {
            self.keys_of_update(t, rows, old, new)?;
        }
        if !t.table.has_rowid() {
            self.copy(columns + key_column(&t.table), new);
        }
        Ok(first)
    }

    /// The old and the new key of a row: the new rowid stands behind the columns of the row that is found, where it is
    /// assigned, the old key at the end.
    fn keys_of_update(&mut self, t: &Target, rows: &CorePlan, old: i32, new: i32) -> Result<()> {
        let n = t.table.columns.len();
        let key = rows.result.last().ok_or_else(|| internal("no key"))?;
        self.expr_to(key, old)?;
        if t.table.has_rowid() {
            self.expr_to(&rows.result[n], new)?;
        }
        Ok(())
    }

    /// Tells the module of one row. `source`: the registers of an INSERT's row; `stored`: where the row was collected.
    pub(crate) fn change_virtual(
        &mut self,
        w: &Modification<'_>,
        v: &VirtualWrite,
        source: Option<(i32, usize)>,
        stored: Option<i32>,
        end: Label,
    ) -> Result<()> {
        let t = w.target();
        let (first, count, kind) = match (&v.change, &w.plan.feed) {
            (VirtualChange::Insert { columns, rowid }, feed) => {
                (self.inserted_row(w, feed, columns, *rowid, source)?, told_width(t) - 1, 1)
            }
            (VirtualChange::Update { .. }, Feed::Found { rows, .. }) => {
                let first = match stored {
                    Some(temp) => self.fields(temp, 0, told_width(t)),
                    None => self.updated_row(t, v, rows)?,
                };
                (first, told_width(t) - 1, 2)
            }
            (VirtualChange::Delete, Feed::Found { rows, .. }) => {
                let first = match stored {
                    Some(temp) => self.fields(temp, 0, 1),
                    None => {
                        let reg = self.b.reg();
                        self.expr_to(&rows.result[0], reg)?;
                        reg
                    }
                };
                (first, 1, 0)
            }
            _ => return Err(internal("a change of a virtual table without rows")),
        };
        let alone = kind != 1 && stored.is_none();
        if let (true, Some(Place::Virtual { cursor })) = (alone, self.places.get(t.id)) {
            let cursor = *cursor;
            self.b.emit(Opcode::Close, cursor, 0, 0);
        }
        let table = P4::VirtualTable(v.vtab.0.clone());
        self.b.emit4(Opcode::VUpdate, kind, count as i32, first, table);
        self.b.p5(policy(v.conflict) | if v.heeds { HEEDS } else { 0 });
        if alone {
            // Its cursor is closed: there is no next row to ask for.
            self.b.jump(Opcode::Goto, 0, end, 0);
        }
        Ok(())
    }

    /// The row of an INSERT; RETURNING sees it as it is before the module does: a rowid that is not given as -1, values with
    /// the affinities of the columns.
    fn inserted_row(
        &mut self,
        w: &Modification<'_>,
        feed: &Feed,
        columns: &[Option<usize>],
        rowid: Option<usize>,
        source: Option<(i32, usize)>,
    ) -> Result<i32> {
        let t = w.target();
        let first = self.b.regs(told_width(t) - 1);
        self.b.emit(Opcode::Null, 0, first, 0);
        let value = |g: &mut Self, from: Option<usize>, to: i32| -> Result<()> {
            match (from, source, feed) {
                (Some(k), Some((at, _)), _) => g.copy(at + k as i32, to),
                (Some(k), None, Feed::Row(list)) => g.expr_to(&list[k], to)?,
                _ => {
                    g.b.emit(Opcode::Null, 0, to, 0);
                }
            }
            Ok(())
        };
        value(self, rowid, first + 1)?;
        if rowid.is_some() {
            let none = self.b.label();
            self.b.jump(Opcode::IsNull, first + 1, none, 0);
            self.b.emit(Opcode::MustBeInt, first + 1, 0, 0);
            self.b.place(none);
        }
        for (k, from) in columns.iter().enumerate() {
            value(self, *from, first + 2 + k as i32)?;
        }
        if w.returning.is_some() {
            let n = columns.len();
            let seen = Row { rowid: self.b.reg(), first: self.b.regs(n) };
            self.b.emit(Opcode::Copy, first + 2, seen.first, n as i32 - 1);
            self.copy(first + 1, seen.rowid);
            let given = self.b.label();
            self.b.jump(Opcode::NotNull, seen.rowid, given, 0);
            self.b.emit(Opcode::Integer, -1, seen.rowid, 0);
            self.b.place(given);
            let affinities: Vec<Affinity> = t.table.columns.iter().map(|c| c.affinity).collect();
            self.apply_affinity(seen.first, &affinities);
            self.returning_row(w, seen)?;
        }
        Ok(first)
    }
}

/// How many registers tell of an update.
fn told_width(t: &Target) -> usize {
    t.table.columns.len() + 3
}

/// The column that names the rows of a WITHOUT ROWID table.
fn key_column(t: &Table) -> i32 {
    t.columns.iter().position(|c| c.pk == 1).unwrap_or(0) as i32
}

/// The number of a conflict policy.
fn policy(c: Conflict) -> u16 {
    match c {
        Conflict::Rollback => 1,
        Conflict::Ignore => 2,
        Conflict::Fail => 3,
        Conflict::Abort => 4,
        Conflict::Replace => 5,
    }
}

//! DELETE.

use crate::context::{Codegen, Dest};
use crate::trigger::Event;
use crate::write::Row;
use iolite_base::{Few, Result};
use iolite_bytecode::{ColumnMeta, Label, Opcode, p5};
use iolite_plan::bind::{Binder, Delete};
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_sql::ast::{self, TriggerTime};

impl Codegen<'_> {
    /// A DELETE statement.
    pub fn statement_delete(&mut self, b: &mut Binder<'_>, s: &ast::Delete) -> Result<Few<ColumnMeta>> {
        let bound = b.delete(s)?;
        self.touch_databases(b.databases);
        self.delete(&bound)?;
        Ok(bound.out.into_iter().map(|c| c.meta).collect())
    }

    /// Codes a DELETE.
    pub fn delete(&mut self, s: &Delete) -> Result<()> {
        let t = &s.target;
        self.check_writable(t)?;
        self.counts_changes = true;
        self.write_database(t.db);
        if t.table.is_virtual() {
            return self.unsupported(&format!("DELETE from virtual table {}", t.table.name));
        }
        self.plan_exprs(s.returning.iter())?;
        let triggers = self.has_triggers(t, &Event::Delete);
        let returning = self.open_returning(&s.returning);
        let end = self.b.label();
        if t.table.is_view() {
            return self.delete_view(s, returning, end);
        }
        if s.rows.filter.is_empty() && !triggers && s.returning.is_empty() && t.table.root.get() != 1 {
            // Everything goes: trees are emptied as wholes, the count comes from the table's.
            let own = t.table.primary_index();
            for i in &t.indexes {
                if !i.is_table {
                    self.b.emit(Opcode::Clear, i.index.root.get() as i32, t.db as i32, 0);
                }
            }
            let root = own.map_or(t.table.root.get(), |i| i.root.get());
            self.b.emit(Opcode::Clear, root as i32, t.db as i32, 1);
            self.b.place(end);
            return Ok(());
        }
        let kept = self.key_exprs(t)?;
        let keys = kept.len();
        let plan = self.rows_plan(&s.rows, kept)?;
        let simple = match &plan.levels[0].access {
            Access::Scan { .. }
            | Access::RowidRange { .. }
            | Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => true,
            // Nothing is looked for in the index once its entry is gone.
            Access::Index(a) => a.one_row && a.eq.iter().all(|e| matches!(e, EqTerm::Eq { .. })),
            _ => false,
        };
        let one_pass = simple
            && !triggers
            && t.table.has_rowid()
            && plan.levels.len() == 1
            && s.returning.is_empty()
            && !plan.levels[0].filter.iter().any(iolite_plan::has_subquery);
        if one_pass {
            let cursors = self.open_for_write(t, None)?;
            self.write_cursor = Some((t.id, cursors.table));
            let mut loops = self.open_loops(&plan)?;
            self.write_cursor = None;
            if matches!(plan.levels[0].access, Access::Index(_)) {
                self.b.emit(Opcode::FinishSeek, cursors.table, 0, 0);
            }
            self.delete_row(t, &cursors, None, p5::COUNT_CHANGE | p5::SAVE_POSITION)?;
            self.close_loops(&mut loops)?;
        } else {
            self.needs_statement = true;
            let temp = self.rows_by_key(t, &plan, keys)?;
            let cursors = self.open_for_write(t, None)?;
            self.b.jump(Opcode::Rewind, temp, end, 0);
            let top = self.b.here();
            let next = self.b.label();
            let key = self.b.regs(keys);
            for k in 0..keys as i32 {
                self.b.emit(Opcode::Column, temp, k, key + k);
            }
            self.seek_key(t, cursors.table, key, keys, next)?;
            if triggers || !s.returning.is_empty() {
                let old = self.load_row(t, cursors.table)?;
                if self.has_triggers_at(t, &Event::Delete, TriggerTime::Before) {
                    self.fire(t, &Event::Delete, TriggerTime::Before, Some(old), None, next, None)?;
                    self.seek_key(t, cursors.table, key, keys, next)?;
                }
                self.delete_row(t, &cursors, None, p5::COUNT_CHANGE)?;
                self.returning_row(t, &s.returning, old, returning)?;
                self.fire(t, &Event::Delete, TriggerTime::After, Some(old), None, next, None)?;
            } else {
                self.delete_row(t, &cursors, None, p5::COUNT_CHANGE)?;
            }
            self.b.place(next);
            self.b.emit(Opcode::Next, temp, top as i32, 0);
        }
        self.b.place(end);
        self.close_returning(s.returning.len(), returning);
        Ok(())
    }

    fn delete_view(&mut self, s: &Delete, returning: Option<i32>, end: Label) -> Result<()> {
        let t = &s.target;
        let n = t.table.columns.len();
        let kept: Vec<Expr> = (0..n as i32).map(|c| Expr::Column(crate::write::row_column(t, c))).collect();
        let plan = self.rows_plan(&s.rows, kept)?;
        let temp = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, temp, n as i32, 0);
        let done = self.b.label();
        self.core(&plan, &[], Default::default(), &Dest::Table { cursor: temp }, done)?;
        self.b.place(done);
        self.b.jump(Opcode::Rewind, temp, end, 0);
        let top = self.b.here();
        let old = Row { rowid: self.b.reg(), first: self.b.regs(n) };
        self.b.emit(Opcode::Null, 0, old.rowid, 0);
        for c in 0..n as i32 {
            self.b.emit(Opcode::Column, temp, c, old.first + c);
        }
        let next = self.b.label();
        self.fire(t, &Event::Delete, TriggerTime::InsteadOf, Some(old), None, next, None)?;
        self.returning_row(t, &s.returning, old, returning)?;
        self.b.place(next);
        self.b.emit(Opcode::Next, temp, top as i32, 0);
        self.b.place(end);
        self.needs_statement = true;
        self.close_returning(s.returning.len(), returning);
        Ok(())
    }
}

//! Blocks that a row source runs, as the plan says.
//!
//! A source may still decline when it is opened (a value is of an unforeseen kind, its tables are small after all): the
//! block's loops stand behind it in the same program. It is not opened at all where the index that the first loop seeks leads to few entries, which
//! are counted before.

use crate::context::{Codegen, Dest};
use crate::loops::Open;
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_ext::{Implementation, SourceFactory};
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::has_subquery;
use iolite_plan::plan::*;
use std::rc::Rc;

impl Codegen<'_> {
    /// Has the prologue ask whether tables are still small.
    pub(crate) fn watch(&mut self, watch: &SourceFactory) {
        if !self.watches.iter().any(|w| Rc::ptr_eq(&w.0, &watch.0)) {
            self.watches.push(watch.clone());
        }
    }

    /// Codes a block that a source runs: the source's rows, and behind them the loops.
    pub(crate) fn by_source(
        &mut self,
        run: &SourceRun,
        c: &CorePlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        let width = c.result.len();
        let declined = self.b.label();
        self.begin(c, Role::Block);
        // What is tested once, and is cheap, is tested before a source is asked; the loops find no row, either.
        let core = c.window.as_ref().map_or(c, |w| &w.input);
        let users = |e: &Expr| matches!(e, Expr::Call(c) if matches!(c.function.imp, Implementation::User(_)));
        let cheap = |e: &&Expr| !has_subquery(e) && !e.changes_by_call() && !e.any(&mut |x| users(x));
        self.jump_unless_each(&mut core.constant.iter().filter(cheap), declined)?;
        if let Some(most) = run.few {
            self.unless_few(c, most, declined)?;
        }
        let given = self.b.regs(run.params.len() + 1);
        match limits.both {
            Some(reg) => self.copy(reg, given),
            None => self.b.load_int(-1, given),
        }
        self.expr_list(&run.params, given + 1)?;
        let first = match dest {
            Dest::Coroutine { first, .. } => *first,
            // Rows that OFFSET skips must not stay where the one row is looked for.
            Dest::Registers { first } if limits.offset.is_none() => *first,
            _ => self.b.regs(width.max(1)),
        };
        let cursor = self.b.cursor();
        let (over, next) = (self.b.label(), self.b.label());
        self.b.jump4(Opcode::SourceOpen, cursor, declined, given, P4::Source(run.source.clone()));
        self.b.p5(run.params.len() as u16 + 1);
        let top = self.b.here();
        self.b.jump(Opcode::SourceNext, cursor, over, first);
        self.b.p5(width as u16);
        self.row_begins();
        if let Some(off) = limits.offset {
            self.b.jump(Opcode::IfPos, off, next, 1);
        }
        self.deliver(dest, first, width, end)?;
        if let Some(l) = limits.limit {
            self.b.jump(Opcode::DecrJumpZero, l, end, 0);
        }
        self.b.place(next);
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
        self.b.place(declined);
        self.by_loops(c, order, limits, dest, end)?;
        self.b.place(over);
        Ok(())
    }

    /// Goes to `declined` if the index that the first loop seeks leads to no more entries than `most`.
    fn unless_few(&mut self, c: &CorePlan, most: u32, declined: Label) -> Result<()> {
        let core = c.window.as_ref().map_or(c, |w| &w.input);
        let Some(first) = core.levels.first() else { return Ok(()) };
        let (Some((db, table)), Access::Index(a)) = (first.source.table(), &first.access) else {
            return Ok(());
        };
        let (cursor, left, enough) = (self.b.cursor(), self.b.reg(), self.b.label());
        let root = a.index.root.get() as i32;
        self.b.emit4(Opcode::OpenRead, cursor, root, db as i32, P4::KeyInfo(a.key.clone()));
        self.b.load_int(i64::from(most) + 1, left);
        let mut entries = Open::plain(self);
        self.index_range(cursor, a, table, &mut entries)?;
        self.b.jump(Opcode::DecrJumpZero, left, enough, 0);
        self.close_level(entries)?;
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.b.jump(Opcode::Goto, 0, declined, 0);
        self.b.place(enough);
        self.b.emit(Opcode::Close, cursor, 0, 0);
        Ok(())
    }
}

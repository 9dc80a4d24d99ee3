//! Nested queries in expressions.

use crate::context::{Codegen, Dest, Subroutine, internal};
use iolite_base::Result;
use iolite_bytecode::Opcode;
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::SelectPlan;
use std::rc::Rc;

impl<'p> Codegen<'p> {
    /// The plan of a nested query.
    pub fn plan_of(&self, s: &Subquery) -> Result<&'p SelectPlan> {
        self.nested.get(s.id).ok_or_else(|| internal("a nested query without a plan"))
    }

    /// Column `n` of a query's first row; NULL if there is none.
    pub fn scalar_subquery(&mut self, s: &Rc<Subquery>, n: usize, target: i32) -> Result<()> {
        if let Some((_, first)) = self.sub_rows.iter().rev().find(|(id, _)| *id == s.id) {
            let from = first + n as i32;
            self.copy(from, target);
            return Ok(());
        }
        let first = self.subquery_row(s)?;
        self.copy(first + n as i32, target);
        Ok(())
    }

    /// Computes a nested query's first row into registers; answers the first of them.
    pub fn subquery_row(&mut self, s: &Rc<Subquery>) -> Result<i32> {
        let width = s.select.columns.len();
        let free = s.outer.is_empty();
        if free && let Some(sub) = self.subroutines.get(s.id).copied() {
            self.b.emit(Opcode::Gosub, sub.return_reg, sub.address, 0);
            return Ok(sub.first);
        }
        let plan = self.plan_of(s)?;
        let first = self.b.regs(width);
        let code = |g: &mut Self| -> Result<()> {
            let former = g.begin(plan, Role::Query);
            g.b.emit(Opcode::Null, 0, first, first + width as i32 - 1);
            g.query(plan, &Dest::Registers { first })?;
            g.resume(former);
            Ok(())
        };
        if !free {
            code(self)?;
            return Ok(first);
        }
        let return_reg = self.b.reg();
        let entry = self.b.emit(Opcode::Gosub, return_reg, 0, 0);
        let over = self.b.emit(Opcode::Goto, 0, 0, 0);
        self.b.jump_here(entry);
        let address = self.b.here() as i32;
        let once = self.b.emit(Opcode::Once, 0, 0, 0);
        code(self)?;
        self.b.jump_here(once);
        self.b.emit(Opcode::Return, return_reg, 0, 0);
        self.b.jump_here(over);
        self.subroutines.insert(s.id, Subroutine { address, return_reg, first });
        Ok(first)
    }

    /// Whether a query has a row.
    pub fn exists(&mut self, s: &Rc<Subquery>, target: i32) -> Result<()> {
        let plan = self.plan_of(s)?;
        let once = s.outer.is_empty();
        let reg = if once { self.b.reg() } else { self.b.temp() };
        let at = if once { Some(self.b.emit(Opcode::Once, 0, 0, 0)) } else { None };
        let former = self.begin(plan, Role::Query);
        self.b.emit(Opcode::Integer, 0, reg, 0);
        self.query(plan, &Dest::Exists { reg })?;
        self.resume(former);
        if let Some(at) = at {
            self.b.jump_here(at);
        }
        self.copy(reg, target);
        if !once {
            self.b.free_temp(reg);
        }
        Ok(())
    }
}

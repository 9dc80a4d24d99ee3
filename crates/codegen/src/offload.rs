//! Arms that somebody else runs: asking the door, and the instructions for an arm that was taken.

use crate::context::{Codegen, Dest};
use crate::door::{Ask, Offer, Taken};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_catalog::Table;
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::Value;
use std::rc::Rc;

impl Codegen<'_> {
    /// Shows an arm to the door.
    pub(crate) fn ask_door(
        &mut self,
        c: &CorePlan,
        order: &[OrderTerm],
        limited: bool,
    ) -> Result<Option<Taken>> {
        let Some(door) = self.settings.door.clone() else { return Ok(None) };
        if self.in_trigger || self.no_once > 0 || c.levels.is_empty() || c.count_only {
            return Ok(None);
        }
        let default_of =
            |t: &Rc<Table>, column: usize| Ok(t.absent_value(column).map_or(Value::Null, |v| (**v).clone()));
        let plan_of = |s: &Subquery| self.nested.get(s.id).cloned();
        let explained = self.notes.on;
        let nested = || self.nested.iter().flat_map(|(_, p)| p.cores.iter());
        let every_table = |f: &mut dyn FnMut(usize, &Table) -> bool| {
            std::iter::once(c).chain(nested()).flat_map(|c| &c.levels).all(|l| match &l.source.kind {
                SourceKind::Table { db, table } => f(*db, table),
                _ => true,
            })
        };
        let every_table = &every_table;
        let ask = Ask {
            core: c,
            order,
            limited,
            explained,
            default_of: &default_of,
            plan_of: &plan_of,
            every_table,
        };
        match door.offer(&ask)? {
            Offer::Take(t) => Ok(Some(t)),
            Offer::No(None) => Ok(None),
            Offer::Small(watch) => {
                self.watches.push(watch);
                Ok(None)
            }
            Offer::No(Some(why)) => {
                self.note(|| format!("IN ROWS: {why}"));
                Ok(None)
            }
        }
    }

    /// Codes a taken arm: the source's rows, and behind them the nested loops for a source that declines.
    pub(crate) fn through_door(
        &mut self,
        t: Taken,
        c: &CorePlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        let noted = !t.notes.is_empty();
        for (i, n) in t.notes.into_iter().enumerate() {
            let id = self.note(|| n);
            if i == 0 {
                t.noted.set(id);
            }
        }
        let width = c.result.len();
        let given = self.b.regs(t.params.len() + 1);
        match limits.both {
            Some(reg) => self.copy(reg, given),
            None => self.b.load_int(-1, given),
        }
        self.expr_list(&t.params, given + 1)?;
        let first = match dest {
            Dest::Coroutine { first, .. } | Dest::Registers { first } => *first,
            _ => self.b.regs(width.max(1)),
        };
        let cursor = self.b.cursor();
        let (declined, over, next) = (self.b.label(), self.b.label(), self.b.label());
        self.b.jump4(Opcode::SourceOpen, cursor, declined, given, P4::Source(t.source));
        self.b.p5(t.params.len() as u16 + 1);
        let top = self.b.here();
        self.b.jump(Opcode::SourceNext, cursor, over, first);
        self.b.p5(width as u16);
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
        let on = self.notes.on;
        self.notes.on &= !noted;
        let coded = self.core_in_rows(c, order, limits, dest, end);
        self.notes.on = on;
        coded?;
        self.b.place(over);
        Ok(())
    }
}

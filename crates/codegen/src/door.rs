//! The door: an arm of a query may be run by somebody else, as one row source.
//!
//! Who stands behind it is not known here. Before an arm is coded, the plan is shown to a [`Door`]; if it takes the arm,
//! the program opens the source and passes its rows on. A source may still decline when it is opened (the table is too
//! small, a value is of an unforeseen kind): the nested loops stand behind it in the same program.

use crate::context::{Codegen, Dest};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_catalog::Table;
use iolite_ext::SourceFactory;
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::Value;
use std::cell::Cell;
use std::rc::Rc;

/// An arm, shown to a [`Door`].
pub struct Ask<'a> {
    /// Its plan.
    pub core: &'a CorePlan,
    /// The order in which its rows are wanted, where the loops do not deliver it.
    pub order: &'a [OrderTerm],
    /// Not all rows may be wanted.
    pub limited: bool,
    /// Somebody asks how the arm will be run.
    pub explained: bool,
    /// What a record that ends before a column stands for.
    #[allow(clippy::type_complexity)]
    pub default_of: &'a dyn Fn(&Rc<Table>, usize) -> Result<Value>,
    /// The plan of a query nested in an expression.
    pub plan_of: &'a dyn Fn(&Subquery) -> Option<SelectPlan>,
    /// Whether something holds for each table of the arm, and of all queries nested in the statement's expressions.
    #[allow(clippy::type_complexity)]
    pub every_table: &'a dyn Fn(&mut dyn FnMut(usize, &Table) -> bool) -> bool,
}

/// What a door answers.
pub enum Offer {
    /// No; with a reason for EXPLAIN QUERY PLAN, if the user wants reasons.
    No(Option<String>),
    /// No, while the tables are small. The source never opens; when they are small no longer, it ends the statement's run
    /// before it has begun, and the statement is compiled anew.
    Small(SourceFactory),
    /// Yes.
    Take(Taken),
}

/// How a taken arm is run.
pub struct Taken {
    /// Makes the source. It is given the number of rows wanted (negative: all), then the values of `params`.
    pub source: SourceFactory,
    /// What the source needs to know from outside.
    pub params: Vec<Expr>,
    /// Lines for EXPLAIN QUERY PLAN; none if the source is going to decline.
    pub notes: Vec<String>,
    /// Where the number of the first of these lines is put, for those who add to it.
    pub noted: Rc<Cell<i32>>,
}

/// Somebody who runs arms of queries.
pub trait Door {
    /// Takes an arm or not.
    fn offer(&self, ask: &Ask<'_>) -> Result<Offer>;
}

impl Codegen<'_> {
    /// Shows an arm to the door.
    pub(crate) fn ask_door(
        &mut self,
        c: &CorePlan,
        order: &[OrderTerm],
        limited: bool,
    ) -> Result<Option<Taken>> {
        let Some(door) = self.settings.door.clone() else { return Ok(None) };
        if self.trigger.is_some() || self.no_once > 0 || c.levels.is_empty() || c.count_only {
            return Ok(None);
        }
        let default_of = |t: &Rc<Table>, column: usize| self.default_value(t, column);
        let plan_of = |s: &Subquery| self.plans.get(&s.id).cloned();
        let explained = self.notes.on;
        let nested = || self.plans.values().flat_map(|p| p.cores.iter());
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
        for l in &c.levels {
            if let SourceKind::Table { db, .. } = &l.source.kind {
                self.read_database(*db);
            }
        }
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

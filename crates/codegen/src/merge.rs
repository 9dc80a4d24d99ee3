//! Arms of a compound that are merged: each is a coroutine that yields its rows sorted, and so is each merged pair.
//!
//! What always holds: the right side is not begun before the left has given a row, or has none and the right one counts
//! alone. Of rows that are equal but look different, UNION shows the right side's, INTERSECT and EXCEPT the left one's.

use crate::context::{Codegen, Dest};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_plan::CompoundOp;
use iolite_plan::explain::Role;
use iolite_plan::plan::*;
use iolite_value::KeyInfo;
use std::rc::Rc;

/// One side of a pair: a coroutine that yields rows into registers.
struct Side {
    yields: i32,
    first: i32,
    /// The subroutine that passes a row on, and where it returns to.
    out: Label,
    back: i32,
}

/// Where the rows of a pair go.
pub(crate) trait Taker {
    /// Emits what becomes of a row in registers from `first` on.
    fn take(&mut self, g: &mut Codegen<'_>, first: i32) -> Result<()>;
}

/// The rows of a pair within a pair.
struct Yields(Dest, usize);

impl Taker for Yields {
    fn take(&mut self, g: &mut Codegen<'_>, first: i32) -> Result<()> {
        let nowhere = g.b.label();
        g.deliver(&self.0, first, self.1, nowhere)
    }
}

impl Codegen<'_> {
    /// Emits the rows of a pair; `limits` hold of both sides as of the pair.
    pub(crate) fn merge_pair(
        &mut self,
        plan: &SelectPlan,
        pair: &MergedPair,
        limits: Limits,
        taker: &mut dyn Taker,
    ) -> Result<()> {
        use CompoundOp::*;
        let limits = if pair.op == UnionAll { limits } else { Limits::default() };
        let left = self.merge_side(plan, &pair.left, limits)?;
        let right = self.merge_side(plan, &pair.right, limits)?;
        let width = plan.columns.len();
        let seen = (pair.op != UnionAll).then(|| (self.b.regs(width), self.b.reg()));
        if let Some((_, started)) = seen {
            self.b.emit(Opcode::Integer, 0, started, 0);
        }
        let begin = self.b.label();
        self.b.jump(Opcode::Goto, 0, begin, 0);
        for (s, used) in [(&left, true), (&right, matches!(pair.op, Union | UnionAll))] {
            if !used {
                continue;
            }
            self.b.place(s.out);
            let repeated = self.b.label();
            if let Some((last, started)) = seen {
                self.skip_repeated(s.first, last, started, &pair.same, repeated);
            }
            taker.take(self, s.first)?;
            self.b.place(repeated);
            self.b.emit(Opcode::Return, s.back, 0, 0);
        }
        let (no_left, only_left, rest_right, end) =
            (self.b.label(), self.b.label(), self.b.label(), self.b.label());
        let compare = self.b.label();
        if matches!(pair.op, Union | UnionAll) {
            self.b.place(rest_right);
            let top = self.b.here();
            self.b.jump(Opcode::Gosub, right.back, right.out, 0);
            self.b.place(no_left);
            self.b.jump(Opcode::Yield, right.yields, end, 0);
            self.b.emit(Opcode::Goto, 0, top as i32, 0);
        } else {
            self.b.place(rest_right);
            self.b.place(no_left);
            self.b.jump(Opcode::Goto, 0, end, 0);
        }
        let keeps_left = pair.op != Intersect;
        if keeps_left {
            self.b.place(only_left);
            let top = self.b.here();
            self.b.jump(Opcode::Gosub, left.back, left.out, 0);
            self.b.jump(Opcode::Yield, left.yields, end, 0);
            self.b.emit(Opcode::Goto, 0, top as i32, 0);
        } else {
            self.b.place(only_left);
            self.b.jump(Opcode::Goto, 0, end, 0);
        }
        // A row that stands alone on its side, and one that stands on both.
        let (less, equal, greater) = (self.b.label(), self.b.label(), self.b.label());
        let shown_alone = keeps_left;
        let shown_equal = matches!(pair.op, Intersect | UnionAll);
        for (label, shown) in [(less, shown_alone), (equal, shown_equal)] {
            self.b.place(label);
            if shown {
                self.b.jump(Opcode::Gosub, left.back, left.out, 0);
            }
            self.b.jump(Opcode::Yield, left.yields, rest_right, 0);
            self.b.jump(Opcode::Goto, 0, compare, 0);
        }
        self.b.place(greater);
        if matches!(pair.op, Union | UnionAll) {
            self.b.jump(Opcode::Gosub, right.back, right.out, 0);
        }
        self.b.jump(Opcode::Yield, right.yields, only_left, 0);
        self.b.jump(Opcode::Goto, 0, compare, 0);
        self.b.place(begin);
        self.b.jump(Opcode::Yield, left.yields, no_left, 0);
        self.b.jump(Opcode::Yield, right.yields, only_left, 0);
        self.b.place(compare);
        self.compare_sides(pair, left.first, right.first, (less, equal, greater));
        self.b.place(end);
        Ok(())
    }

    /// Jumps by how the present rows of both sides compare.
    fn compare_sides(
        &mut self,
        pair: &MergedPair,
        left: i32,
        right: i32,
        (less, equal, greater): (Label, Label, Label),
    ) {
        let mut by = &pair.by[..];
        while let Some((k, _)) = by.first() {
            // Columns that follow each other are compared at once.
            let run = by.iter().enumerate().take_while(|(n, b)| b.0 == k + n).count();
            let (now, rest) = by.split_at(run);
            let fields = now.iter().map(|b| b.1.clone()).collect();
            let key = Rc::new(KeyInfo { enc: self.encoding, fields, columns: run });
            let (x, y) = (left + *k as i32, right + *k as i32);
            self.b.emit4(Opcode::Compare, x, y, run as i32, P4::KeyInfo(key));
            let on = if rest.is_empty() { equal } else { self.b.label() };
            let (l, e, g) = (self.b.raw(less), self.b.raw(on), self.b.raw(greater));
            self.b.emit(Opcode::Jump, l, e, g);
            if !rest.is_empty() {
                self.b.place(on);
            }
            by = rest;
        }
    }

    fn merge_side(&mut self, plan: &SelectPlan, side: &Merge, limits: Limits) -> Result<Side> {
        let (first, out, back) = (self.b.regs(plan.columns.len()), self.b.label(), self.b.reg());
        let yields = match side {
            Merge::Arm(k) => self.arm_yields(plan, *k, limits, first)?,
            Merge::Both(pair) => {
                let yields = self.b.reg();
                let start = self.begin_coroutine(yields);
                let mut taker = Yields(Dest::Coroutine { yield_reg: yields, first }, plan.columns.len());
                self.merge_pair(plan, pair, limits, &mut taker)?;
                self.b.emit(Opcode::EndCoroutine, yields, 0, 0);
                self.b.jump_here(start);
                yields
            }
        };
        Ok(Side { yields, first, out, back })
    }

    fn begin_coroutine(&mut self, yields: i32) -> usize {
        let start = self.b.emit(Opcode::InitCoroutine, yields, 0, 0);
        self.b.at(start).p3 = start as i32 + 1;
        start
    }

    /// Makes an arm a coroutine that yields its rows into registers from `first` on; answers where it is resumed.
    pub(crate) fn arm_yields(
        &mut self,
        plan: &SelectPlan,
        arm: usize,
        limits: Limits,
        first: i32,
    ) -> Result<i32> {
        let former = self.begin(&plan.cores[arm], Role::Block);
        let yield_reg = self.b.reg();
        let start = self.begin_coroutine(yield_reg);
        let temps = self.b.drop_temps();
        let done = self.b.label();
        let limits = match limits.both {
            None => limits,
            Some(all) => {
                let own = self.b.reg();
                self.copy(all, own);
                Limits { limit: Some(own), offset: None, both: Some(own) }
            }
        };
        let order = plan.arm_order(arm);
        self.core(&plan.cores[arm], order, limits, &Dest::Coroutine { yield_reg, first }, done)?;
        self.b.place(done);
        self.b.drop_temps();
        for t in temps {
            self.b.free_temp(t);
        }
        self.b.emit(Opcode::EndCoroutine, yield_reg, 0, 0);
        self.b.jump_here(start);
        self.resume(former);
        Ok(yield_reg)
    }
}

//! Compound queries: UNION, UNION ALL, INTERSECT, EXCEPT.
//!
//! Everything up to the last operator that removes duplicates ends up in a
//! transient index, whose scan delivers it sorted by all columns; the arms behind follow as they are.

use crate::context::{Codegen, Dest};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, p5};
use iolite_plan::CompoundOp;
use iolite_plan::bound::*;
use iolite_plan::explain::{Part, Role};
use iolite_plan::plan::{Distinct, SelectPlan};
use iolite_value::{Affinity, KeyInfo};

impl Codegen<'_> {
    /// Codes a compound query.
    pub fn compound(
        &mut self,
        plan: &SelectPlan,
        limit: Option<&Expr>,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        let limits = self.limits(limit, plan.offset.as_ref(), end)?;
        let former = self.begin(plan, Role::Query);
        let width = plan.columns.len();
        // The rows of all arms pass through registers, to which the order refers.
        let first = self.b.regs(width);
        let stand_in: Vec<Expr> = (0..width)
            .map(|k| {
                let c = ColumnRef {
                    table: 0,
                    column: k as i32,
                    affinity: Affinity::None,
                    collation: plan.columns[k].collation.clone(),
                };
                Expr::TriggerColumn(c, usize::MAX - k)
            })
            .collect();
        let mut order = plan.order_by.clone();
        for t in &mut order {
            if let Some(k) = t.column {
                t.expr = stand_in[k].clone();
            }
        }
        let mut sink = self.open_sink(&stand_in, order[..].into(), Distinct::No, limits, dest, end)?;
        let before = self.known.len();
        for (k, e) in stand_in.iter().enumerate() {
            self.known.push((e.clone(), first + k as i32));
        }
        let last_set = plan.ops.iter().rposition(|o| *o != CompoundOp::UnionAll);
        let mut arm = 0;
        if let Some(k) = last_set {
            let cursor = self.set_of(plan, k + 1)?;
            let over = self.b.label();
            self.b.jump(Opcode::Rewind, cursor, over, 0);
            let top = self.b.here();
            for c in 0..width as i32 {
                self.b.emit(Opcode::Column, cursor, c, first + c);
            }
            let next = self.b.label();
            self.sink_row(&mut sink, next)?;
            self.b.place(next);
            self.b.emit(Opcode::Next, cursor, top as i32, 0);
            self.b.place(over);
            arm = k + 2;
        }
        while arm < plan.cores.len() {
            let up = self.begin(&plan.cores[arm], Role::Block);
            let yield_reg = self.b.reg();
            let start = self.b.emit(Opcode::InitCoroutine, yield_reg, 0, 0);
            self.b.at(start).p3 = start as i32 + 1;
            let temps = self.b.drop_temps();
            let hidden = self.known.split_off(before);
            let done = self.b.label();
            self.core(&plan.cores[arm], &[], Limits::default(), &Dest::Coroutine { yield_reg, first }, done)?;
            self.b.place(done);
            self.known.extend(hidden);
            self.b.drop_temps();
            for t in temps {
                self.b.free_temp(t);
            }
            self.b.emit(Opcode::EndCoroutine, yield_reg, 0, 0);
            self.b.jump_here(start);
            let over = self.b.label();
            let top = self.b.here();
            self.b.jump(Opcode::Yield, yield_reg, over, 0);
            let next = self.b.label();
            self.sink_row(&mut sink, next)?;
            self.b.place(next);
            self.b.emit(Opcode::Goto, 0, top as i32, 0);
            self.b.place(over);
            self.resume(up);
            arm += 1;
        }
        self.close_sink(sink, Part::new(plan, Role::CompoundOrder))?;
        self.known.truncate(before);
        self.resume(former);
        Ok(())
    }

    /// How the rows of a query compare where equal ones count once.
    pub(crate) fn set_key(&self, plan: &SelectPlan) -> P4 {
        let collations = plan.columns.iter().map(|c| c.collation.clone());
        P4::KeyInfo(KeyInfo::ascending(collations, self.encoding))
    }

    fn open_set(&mut self, plan: &SelectPlan) -> i32 {
        let cursor = self.b.cursor();
        let key = self.set_key(plan);
        self.b.emit4(Opcode::OpenEphemeral, cursor, plan.columns.len() as i32, 0, key);
        cursor
    }

    /// The set that arms `0..=last` make.
    fn set_of(&mut self, plan: &SelectPlan, last: usize) -> Result<i32> {
        let is_union = |op: &CompoundOp| matches!(op, CompoundOp::Union | CompoundOp::UnionAll);
        let unions = plan.ops[..last].iter().take_while(|op| is_union(op)).count();
        let mut cursor = self.open_set(plan);
        for arm in union_order(&plan.ops[..unions]) {
            self.arm_into_set(plan, arm, cursor)?;
        }
        for arm in unions + 1..=last {
            match plan.ops[arm - 1] {
                CompoundOp::Union | CompoundOp::UnionAll => {
                    let all = self.open_set(plan);
                    self.arm_into_set(plan, arm, all)?;
                    self.copy_set(plan, cursor, all, None);
                    cursor = all;
                }
                CompoundOp::Except => {
                    self.unless_empty(cursor, |g| g.arm_into(plan, arm, &Dest::Except { cursor }))?;
                }
                CompoundOp::Intersect => {
                    let (other, both) = (self.open_set(plan), self.open_set(plan));
                    self.unless_empty(cursor, |g| g.arm_into_set(plan, arm, other))?;
                    self.copy_set(plan, cursor, both, Some(other));
                    cursor = both;
                }
            }
        }
        Ok(cursor)
    }

    /// Codes what is not run where a set is empty, its constants included.
    fn unless_empty(&mut self, set: i32, code: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let over = self.b.label();
        self.b.jump(Opcode::Rewind, set, over, 0);
        let constants = self.constants.len();
        let start = self.b.emit(Opcode::Goto, 0, 0, 0);
        let body = self.b.here();
        code(self)?;
        self.b.jump(Opcode::Goto, 0, over, 0);
        self.b.jump_here(start);
        self.load_constants(constants)?;
        self.constants.truncate(constants);
        self.b.emit(Opcode::Goto, 0, body as i32, 0);
        self.b.place(over);
        Ok(())
    }

    fn arm_into_set(&mut self, plan: &SelectPlan, arm: usize, cursor: i32) -> Result<()> {
        self.arm_into(plan, arm, &Dest::Set { cursor, affinities: None })
    }

    fn arm_into(&mut self, plan: &SelectPlan, arm: usize, dest: &Dest) -> Result<()> {
        let done = self.b.label();
        let former = self.begin(&plan.cores[arm], Role::Block);
        let known = std::mem::take(&mut self.known);
        // What encloses the compound stays known; its own stand-ins have no meaning inside an arm.
        self.known = known.iter().filter(|(e, _)| !matches!(e, Expr::TriggerColumn(..))).cloned().collect();
        let r = self.core(&plan.cores[arm], &[], Limits::default(), dest, done);
        self.known = known;
        r?;
        self.b.place(done);
        self.resume(former);
        Ok(())
    }

    /// Adds the members of a set to another: those that a third holds too, if there is a third.
    fn copy_set(&mut self, plan: &SelectPlan, from: i32, to: i32, and: Option<i32>) {
        let n = plan.columns.len();
        let first = self.b.regs(n);
        let record = self.b.reg();
        let over = self.b.label();
        self.b.jump(Opcode::Rewind, from, over, 0);
        let top = self.b.here();
        for c in 0..n as i32 {
            self.b.emit(Opcode::Column, from, c, first + c);
        }
        let next = self.b.label();
        if let Some(other) = and {
            self.b.jump4(Opcode::NotFound, other, next, first, P4::Int(n as i64));
        }
        self.b.emit(Opcode::MakeRecord, first, n as i32, record);
        self.b.emit4(Opcode::IdxInsert, to, record, first, P4::Int(n as i64));
        self.b.p5(p5::KEEP);
        self.b.place(next);
        self.b.emit(Opcode::Next, from, top as i32, 0);
        self.b.place(over);
    }
}

/// In which order arms joined by these operators go into a set that keeps the first of equal rows: of rows that are
/// equal but look different, UNION shows that of its right arm, UNION ALL has its left arm first.
fn union_order(ops: &[CompoundOp]) -> Vec<usize> {
    let mut order = std::collections::VecDeque::from([0]);
    for (n, op) in ops.iter().enumerate() {
        match op {
            CompoundOp::UnionAll => order.push_back(n + 1),
            _ => order.push_front(n + 1),
        }
    }
    order.into()
}

//! Compound queries: UNION, UNION ALL, INTERSECT, EXCEPT.
//!
//! The arms up to the last operator that removes rows are merged, all of them if there is an ORDER BY (`merge`); the arms
//! behind follow as they are.

use crate::context::{Codegen, Dest};
use crate::merge::Taker;
use crate::select::{Limits, Sink};
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_plan::CompoundOp;
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::{Distinct, Merge, SelectPlan};
use iolite_value::{Affinity, KeyInfo};

/// The destination of a compound's rows, which are known under stand-ins.
struct Whole<'s, 'p> {
    sink: &'s mut Sink<'p>,
    stand_in: &'p [Expr],
}

impl Taker for Whole<'_, '_> {
    fn take(&mut self, g: &mut Codegen<'_>, first: i32) -> Result<()> {
        let before = g.known.len();
        let stand_in = self.stand_in.iter().enumerate();
        g.known.extend(stand_in.map(|(k, e)| (e.clone(), first + k as i32)));
        let next = g.b.label();
        g.sink_result(self.sink, first, next)?;
        g.b.place(next);
        g.known.truncate(before);
        Ok(())
    }
}

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
        let mut sink = self.open_sink(&stand_in, [][..].into(), Distinct::No, limits, dest, end)?;
        let mut whole = Whole { sink: &mut sink, stand_in: &stand_in };
        let mut arm = 0;
        if let Some(m) = &plan.merge
            && let Merge::Both(pair) = &m.root
        {
            // Of rows that are only merged, none behind the limit is wanted of any arm.
            let all = m.arms == plan.cores.len() && m.ops.iter().all(|o| *o == CompoundOp::UnionAll);
            self.merge_pair(plan, pair, if all { limits } else { Limits::default() }, &mut whole)?;
            arm = m.arms;
        }
        let first = self.b.regs(if arm < plan.cores.len() { width } else { 0 });
        for arm in arm..plan.cores.len() {
            let yields = self.arm_yields(plan, arm, Limits::default(), first)?;
            let up = self.begin(&plan.cores[arm], Role::Block);
            let over = self.b.label();
            let top = self.b.here();
            self.b.jump(Opcode::Yield, yields, over, 0);
            whole.take(self, first)?;
            self.b.emit(Opcode::Goto, 0, top as i32, 0);
            self.b.place(over);
            self.resume(up);
        }
        self.resume(former);
        Ok(())
    }

    /// How the rows of a query compare where equal ones count once.
    pub(crate) fn set_key(&self, plan: &SelectPlan) -> P4 {
        let collations = plan.columns.iter().map(|c| c.collation.clone());
        P4::KeyInfo(KeyInfo::ascending(collations, self.encoding))
    }
}

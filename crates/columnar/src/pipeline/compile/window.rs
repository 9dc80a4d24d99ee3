//! Window functions: the query that yields their rows is one in FROM, whose rows the windows add columns to.

use super::{Answer, Compiler, known, no};
use crate::query::window::*;
use crate::query::{InFrom, Query, TableSpec};
use iolite_catalog::Table;
use iolite_ext::{FunctionFlags, Implementation, Inline};
use iolite_plan::bound::{Expr, Frame, FrameBound};
use iolite_plan::executor::Block;
use iolite_plan::plan::{PassCall, WindowPass, WindowPlan};
use iolite_plan::{FrameExclude, FrameUnit};
use iolite_value::compare::KeyField;
use iolite_value::{Affinity, Value};
use std::rc::Rc;

impl Compiler<'_> {
    /// Compiles windows and what yields their rows, as the only table of the query.
    pub(super) fn windowed(&mut self, w: &WindowPlan) -> Answer<()> {
        if self.depth > 0 || self.inside {
            return no("window functions in a nested query");
        }
        if w.input.levels.is_empty() || w.input.count_only {
            return no("window functions over a row of constants");
        }
        let query = self.of_block(&Block { core: &w.input, order: &[], limited: false, ..*self.block })?;
        let mut windows = Vec::new();
        for pass in &w.windows {
            windows.push(self.window(w, pass)?);
        }
        let width = w.input.result.len() + windows.iter().map(|w| w.calls.len()).sum::<usize>();
        let columns = (0..width).map(|_| (Rc::from(""), Affinity::Blob));
        let table = Rc::new(Table::of_query("windows", columns));
        let query = Some(InFrom::all_of(query));
        self.q.tables.push(TableSpec { db: 0, table, query, windows, id: w.table, left: false });
        Ok(())
    }

    /// A query of its own that another one reads.
    pub(super) fn of_block(&mut self, block: &Block<'_>) -> Answer<Query> {
        let mut x = Compiler::new(block, self.overridden);
        x.params = std::mem::take(&mut self.params);
        let made = x.block();
        self.params = std::mem::take(&mut x.params);
        made.map(|()| x.q)
    }

    fn window(&self, w: &WindowPlan, pass: &WindowPass) -> Answer<WindowSpec> {
        let mut keys = Vec::new();
        for (c, coll) in &pass.partition {
            keys.push((*c, KeyField::ascending(known(coll.clone())?)));
        }
        for (c, t) in &pass.order {
            let coll = known(t.collation.clone())?;
            keys.push((*c, KeyField { coll, desc: t.desc, nulls_large: t.nulls_large }));
        }
        let frame = frame(&pass.frame)?;
        let calls = pass.calls.iter().map(|c| self.window_call(w, c)).collect::<Answer<_>>()?;
        Ok(WindowSpec { keys, parts: pass.partition.len(), frame, calls })
    }

    fn window_call(&self, w: &WindowPlan, c: &PassCall) -> Answer<WindowCall> {
        let function = &c.call.function;
        let constant = |k: usize| match c.args.get(k).map(|slot| &w.input.result[*slot]) {
            Some(Expr::Const(Value::Int(n))) if n.unsigned_abs() < 1 << 32 => Some(*n),
            _ => None,
        };
        let what = match &function.imp {
            Implementation::Inline(Inline::RowNumber) => What::RowNumber,
            Implementation::Inline(Inline::Rank) => What::Rank,
            Implementation::Inline(Inline::DenseRank) => What::DenseRank,
            Implementation::Inline(Inline::PercentRank) => What::PercentRank,
            Implementation::Inline(Inline::CumeDist) => What::CumeDist,
            Implementation::Inline(Inline::FirstValue) => What::First,
            Implementation::Inline(Inline::LastValue) => What::Last,
            Implementation::Inline(shift @ (Inline::Lag | Inline::Lead)) => {
                let by = match c.args.len() {
                    1 => Some(1),
                    2 => constant(1),
                    _ => None,
                };
                let Some(by) = by else { return no("lag or lead with a default, or by a computed number") };
                What::Shifted(if *shift == Inline::Lag { by } else { -by })
            }
            Implementation::Aggregate(_)
                if !function.flags.has(FunctionFlags::SUBTYPE) && !(self.overridden)(&function.name) =>
            {
                What::Aggregate
            }
            _ => return no("a window function that columns do not know"),
        };
        let collation = known(c.call.collation.clone())?;
        let (args, filter) = (c.args.clone(), c.filter);
        Ok(WindowCall { what, args, filter, function: function.clone(), collation })
    }
}

fn frame(f: &Frame) -> Answer<FrameSpec> {
    if f.exclude != FrameExclude::Nothing {
        return no("a frame with EXCLUDE");
    }
    let edge = |b: &FrameBound| {
        let by = |e: &Expr| match e {
            Expr::Const(Value::Int(n)) if f.unit == FrameUnit::Rows => usize::try_from(*n).ok(),
            _ => None,
        };
        Some(match b {
            FrameBound::UnboundedPreceding => Edge::First,
            FrameBound::UnboundedFollowing => Edge::Last,
            FrameBound::CurrentRow => Edge::Current,
            FrameBound::Preceding(e) => Edge::Preceding(by(e)?),
            FrameBound::Following(e) => Edge::Following(by(e)?),
        })
    };
    match (edge(&f.start), edge(&f.end)) {
        (Some(start), Some(end)) => Ok(FrameSpec { by_rows: f.unit == FrameUnit::Rows, start, end }),
        _ => no("a frame of a computed width"),
    }
}

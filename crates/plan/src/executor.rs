//! Who runs a block: the loops of its plan, or somebody else as one row source.
//!
//! When a statement is planned and before its program is made, [`choose`] shows its blocks to an [`Executor`], which first
//! says what it thinks of one, then compiles it or declines. What comes of it stands in the plan ([`RunBy`]), where the
//! code generator finds it and EXPLAIN QUERY PLAN, too. The loops stay in the plan: a source may still decline when it is
//! opened. Not shown are blocks that find rows to be changed as they are found, and those of triggers.
//!
//! What it does not know: who the executor is, how large tables are, programs.

use crate::bound::{Expr, OrderTerm};
use crate::expr::has_subquery;
use crate::plan::*;
use crate::statement::define::Step;
use crate::statement::modify::{Feed, ModifyPlan, Pass};
use crate::statement::{Body, StatementPlan};
use iolite_base::Result;
use iolite_ext::SourceFactory;
use iolite_value::Value;

/// A block, shown to an [`Executor`].
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// Its plan.
    pub core: &'a CorePlan,
    /// The order in which its rows are wanted, where the loops do not deliver it.
    pub order: &'a [OrderTerm],
    /// Not all rows may be wanted.
    pub limited: bool,
    /// All rows are wanted before the first of them is used.
    pub whole: bool,
    /// The plans of the queries nested in the statement's expressions.
    pub nested: &'a NestedPlans,
    /// Its number, if a source runs it.
    pub number: u32,
}

impl Block<'_> {
    /// Whether it passes on its rows as it finds them: if few are wanted, few are read.
    pub fn passes_rows(&self) -> bool {
        passes_rows(self.core, self.order)
    }
}

fn passes_rows(core: &CorePlan, order: &[OrderTerm]) -> bool {
    order.is_empty() && core.grouping == Grouping::None
}

/// What an executor thinks of a block.
pub enum Estimate {
    /// The loops are better at it.
    Loops,
    /// The loops are, while the tables are small: what looks at them again before each run.
    Small(SourceFactory),
    /// It is worth trying.
    Pays,
}

/// What an executor makes of a block.
pub enum Offer {
    /// Nothing; with a reason, if the user wants to hear reasons.
    Declined(Option<String>),
    /// Its rows.
    Run(SourceRun),
}

/// Somebody who runs blocks of queries.
pub trait Executor {
    /// What it would be like to run a block. To be cheap: every block of every statement is shown.
    fn estimate(&self, block: &Block<'_>) -> Result<Estimate>;

    /// Compiles a block.
    fn compile(&self, block: &Block<'_>) -> Result<Offer>;
}

/// Decides for each block of a statement who runs it.
pub fn choose(plan: &StatementPlan, executor: &dyn Executor) -> Result<()> {
    let StatementPlan { body, nested, .. } = plan;
    let mut c = Choice { executor, nested, sources: 0 };
    match body {
        Body::Query(q) => c.query(q)?,
        Body::Modify(m) => c.modify(m)?,
        Body::Define(d) => {
            for step in &d.steps {
                match step {
                    Step::Store { query, .. } => c.query(query)?,
                    Step::Empty { rows, .. } => c.modify(rows)?,
                    _ => {}
                }
            }
        }
        Body::Control(_) | Body::RowCheck(_) => return Ok(()),
    }
    if nested.is_empty() {
        return Ok(());
    }
    // In the order of their numbers, so that the same statement always has the same sources.
    let mut list: Vec<_> = nested.iter().collect();
    list.sort_unstable_by_key(|(id, _)| *id);
    list.into_iter().try_for_each(|(_, q)| c.query(q))
}

struct Choice<'a> {
    executor: &'a dyn Executor,
    nested: &'a NestedPlans,
    /// How many blocks are run by sources.
    sources: u32,
}

impl Choice<'_> {
    fn query(&mut self, q: &SelectPlan) -> Result<()> {
        self.read(q, false)
    }

    /// A query of whose rows, if it is `limited`, not all may be read.
    fn read(&mut self, q: &SelectPlan, limited: bool) -> Result<()> {
        let limited = limited || q.limit.is_some() || q.one_row;
        match &q.cores[..] {
            [core] => {
                let order = if q.ordered { &[][..] } else { &q.order_by[..] };
                self.block(core, order, limited)
            }
            several => {
                // Arms that are merged give their rows one by one; what is sorted behind them wants all.
                let limited = limited && (q.merge.is_some() || q.order_by.is_empty());
                several.iter().enumerate().try_for_each(|(k, c)| self.block(c, q.arm_order(k), limited))
            }
        }
    }

    fn modify(&mut self, m: &ModifyPlan) -> Result<()> {
        match &m.feed {
            Feed::Query(q) => self.query(q),
            Feed::Found { rows, .. } if m.pass != Pass::One => self.block(rows, &[], false),
            Feed::Found { rows, .. } => self.inside(rows, false),
            Feed::Row(_) | Feed::Defaults | Feed::Everything => Ok(()),
        }
    }

    /// The blocks within a block, which passes on its rows one by one and may be `limited`.
    fn inside(&mut self, core: &CorePlan, limited: bool) -> Result<()> {
        for q in core.levels.iter().filter_map(|l| l.query.as_deref()) {
            self.read(&q.select, limited && q.coroutine)?;
            for arm in q.recursive.iter().flat_map(|r| &r.arms) {
                self.block(arm, &[], false)?;
            }
        }
        match &core.window {
            Some(w) => {
                let limited = limited && w.delivered().is_some();
                self.shown(&w.input, &[], limited, !limited)
            }
            None => Ok(()),
        }
    }

    fn block(&mut self, core: &CorePlan, order: &[OrderTerm], limited: bool) -> Result<()> {
        self.shown(core, order, limited, false)
    }

    fn shown(&mut self, core: &CorePlan, order: &[OrderTerm], limited: bool, whole: bool) -> Result<()> {
        if core.levels.iter().any(|l| l.query.is_some()) || core.window.is_some() {
            self.inside(core, limited && passes_rows(core, order))?;
        }
        // A row of constants, a count that no loop makes, and what has no rows.
        let never = |e: &Expr| matches!(e, Expr::Const(Value::Null | Value::Int(0)));
        let loops = !core.levels.is_empty() || core.window.is_some();
        if !loops || core.count_only || core.count_runs || core.constant.iter().any(never) {
            return Ok(());
        }
        let block = Block { core, order, limited, whole, nested: self.nested, number: self.sources };
        let run = match self.executor.estimate(&block)? {
            Estimate::Loops => return Ok(()),
            Estimate::Small(watch) => RunBy::WhileSmall(watch),
            Estimate::Pays => match self.executor.compile(&block)? {
                Offer::Declined(None) => return Ok(()),
                Offer::Declined(Some(why)) => RunBy::Declined(why.into()),
                Offer::Run(run) => {
                    self.sources += 1;
                    RunBy::Source(run)
                }
            },
        };
        // A block is in one place of a plan, and is shown once.
        let _ = core.executor.set(Box::new(run));
        Ok(())
    }
}

/// A loop over so few entries of an index is not slower than any source; loops that begin with it are at least what SQLite would do.
const FEW_ENTRIES: u32 = 32;

/// How many entries the index that a block's first loop seeks may lead to, for its loops to run at once; `None`: there is no such
/// loop, or it asks a query for its keys.
pub fn few_entries(core: &CorePlan) -> Option<u32> {
    let core = core.window.as_ref().map_or(core, |w| &w.input);
    let Access::Index(a) = &core.levels.first()?.access else { return None };
    let plain = |e: &EqTerm| match e {
        EqTerm::Eq { value, .. } => !has_subquery(value),
        e => matches!(e, EqTerm::IsNull),
    };
    let mut bounds = a.lo.iter().chain(&a.hi).flat_map(Bound::values);
    (!a.nulls_apart && a.eq.iter().all(plain) && !bounds.any(has_subquery)).then_some(FEW_ENTRIES)
}

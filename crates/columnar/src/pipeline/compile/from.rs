//! Queries in FROM, views and common table expressions: each is a query of its own whose rows are made before the one around it
//! runs. One that is used twice is made twice.

use super::{Answer, Compiler, no};
use crate::expr::Ex;
use crate::query::InFrom;
use iolite_catalog::Table;
use iolite_plan::bound::Expr;
use iolite_plan::executor::Block;
use iolite_plan::plan::*;
use std::rc::Rc;

impl Compiler<'_> {
    /// Compiles the query of a level; answers its columns as those of a table, too.
    pub(super) fn query_in_from(&mut self, l: &Level, from: &FromPlan) -> Answer<(Rc<Table>, InFrom)> {
        let plan = &from.select;
        if plan.merge.is_some() {
            return no("a compound query in FROM other than by UNION ALL");
        }
        if self.depth > 0 || from.correlated || from.recursive.is_some() || plan.one_row {
            return no("a query in FROM of another form");
        }
        let order = if plan.ordered { &[][..] } else { &plan.order_by[..] };
        if plan.cores.len() > 1 && !order.is_empty() {
            return no("a compound query in FROM with ORDER BY");
        }
        let (limit, offset) = (self.bound_of(&plan.limit)?, self.bound_of(&plan.offset)?);
        let limited = limit.is_some() || from.coroutine && self.block.limited && self.block.passes_rows();
        let mut arms = Vec::with_capacity(plan.cores.len());
        for core in &plan.cores {
            if core.levels.is_empty() && core.window.is_none() || core.count_only {
                return no("a query in FROM that columns do not know");
            }
            let query = self.of_block(&Block { core, order, limited, ..*self.block })?;
            if query.result.len() != plan.columns.len() {
                return no("a query in FROM of another width");
            }
            arms.push(query);
        }
        let columns = plan.columns.iter().map(|c| (c.meta.name.clone(), c.affinity));
        Ok((Rc::new(Table::of_query(&l.source.name, columns)), InFrom { arms, limit, offset }))
    }

    /// What LIMIT or OFFSET says.
    fn bound_of(&mut self, e: &Option<Expr>) -> Answer<Option<Ex>> {
        match e {
            None => Ok(None),
            Some(e @ (Expr::Const(_) | Expr::Param(_))) => self.expr(e).map(Some),
            Some(_) => no("a query in FROM whose LIMIT is computed"),
        }
    }
}

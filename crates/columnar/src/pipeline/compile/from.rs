//! Queries in FROM, views and common table expressions: each is a query of its own whose rows are made before the one around it
//! runs. One that is used twice is made twice.

use super::{Answer, Compiler, no};
use crate::query::Query;
use iolite_catalog::Table;
use iolite_plan::executor::Block;
use iolite_plan::plan::*;
use std::rc::Rc;

impl Compiler<'_> {
    /// Compiles the query of a level; answers its columns as those of a table, too.
    pub(super) fn query_in_from(&mut self, l: &Level, from: &FromPlan) -> Answer<(Rc<Table>, Box<Query>)> {
        let plan = &from.select;
        let [core] = &plan.cores[..] else { return no("a compound query in FROM") };
        if self.depth > 0 || from.correlated || from.recursive.is_some() {
            return no("a query in FROM of another form");
        }
        if plan.limit.is_some() || plan.offset.is_some() || plan.one_row {
            return no("a query in FROM with LIMIT");
        }
        if core.levels.is_empty() && core.window.is_none() || core.count_only {
            return no("a query in FROM that columns do not know");
        }
        let order = if plan.ordered { &[][..] } else { &plan.order_by[..] };
        let limited = from.coroutine && self.block.limited && self.block.passes_rows();
        let query = self.of_block(&Block { core, order, limited, ..*self.block })?;
        let columns = plan.columns.iter().map(|c| (c.meta.name.clone(), c.affinity));
        if query.result.len() != plan.columns.len() {
            return no("a query in FROM of another width");
        }
        Ok((Rc::new(Table::of_query(&l.source.name, columns)), Box::new(query)))
    }
}

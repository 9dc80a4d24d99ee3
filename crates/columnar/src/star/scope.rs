//! What the parts of a star join know: the run that they belong to, and its tables.

use super::build::InnerTable;
use crate::expr::Eval;
use crate::expr::batch::Batch;
use crate::expr::scope::Scope;
use crate::kernel::Bits;
use crate::op::made::Made;
use crate::op::result::Answer;
use crate::query::{Bound, Query};
use crate::runtime::Runtime;
use iolite_base::Result;
use iolite_value::Value;
use std::ops::Deref;
use std::sync::Arc;

/// Where rows and their columns are, and the inner tables by key.
#[derive(Clone, Copy)]
pub(crate) struct JoinScope<'a> {
    pub scope: Scope<'a>,
    /// For each table, its rows by key; `None` for the scanned one, and where columns were laid beside that.
    pub inners: &'a [Option<Arc<InnerTable>>],
}

impl<'a> Deref for JoinScope<'a> {
    type Target = Scope<'a>;

    fn deref(&self) -> &Scope<'a> {
        &self.scope
    }
}

/// Runs a query with parameters; at most so many rows are wanted unless the number is negative. `None`: not here.
pub(crate) type RunQuery = fn(&Query, &dyn Runtime, &[Value], i64, &Extra<'_>) -> Result<Option<Answer>>;

/// How a query is run that another one asks.
#[derive(Default)]
pub(crate) struct Extra<'e> {
    /// When the whole query began: columns that were used since do not make room for others.
    pub since: u64,
    /// The rows of queries in FROM, by the number of the table.
    pub made: &'e [Option<Made>],
    /// Columns of integers of which only some values are wanted: those in the set, less the base.
    pub restrict: Vec<(usize, i64, Bits)>,
    /// Takes joined rows in the place of the result, in any order.
    #[allow(clippy::type_complexity)]
    pub sink: Option<&'e dyn Fn(&Batch<'_>, &JoinScope<'_>) -> Result<()>>,
    /// The tables whose columns it reads.
    pub reads: u64,
}

/// A run of the star path with one table scanned.
pub(crate) struct Run<'a> {
    pub q: &'a Query,
    pub rt: &'a dyn Runtime,
    pub eval: &'a Eval<'a>,
    pub bound: &'a Bound,
    pub params: &'a [Value],
    pub extra: &'a Extra<'a>,
    pub outer: usize,
    /// Runs a nested query.
    pub run_query: RunQuery,
}

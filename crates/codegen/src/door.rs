//! The door: an arm of a query may be run by somebody else, as one row source.
//!
//! Who stands behind it is not known here. Before an arm is coded, the plan is shown to a [`Door`]; if it takes the arm,
//! the program opens the source and passes its rows on. A source may still decline when it is opened (the table is too
//! small, a value is of an unforeseen kind): the nested loops stand behind it in the same program.

use iolite_base::Result;
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

//! The expressions of a query with the values of parameters and of independent nested queries put in.

use super::{Cond, Query};
use crate::expr::set::NestedResult;
use crate::expr::{Eval, Ex};
use iolite_base::Result;
use iolite_plan::bound::CmpOp;
use iolite_value::Value;

/// An aggregate's arguments, and the condition of its FILTER.
pub(crate) type Aggregated = (Vec<Ex>, Option<Ex>);

/// The expressions of a query with parameters put in.
pub(crate) struct Bound {
    pub conds: Vec<Cond>,
    pub keys: Vec<Ex>,
    pub aggs: Vec<Aggregated>,
    pub having: Option<Ex>,
    pub result: Vec<Ex>,
    pub order: Vec<(Ex, iolite_value::compare::KeyField)>,
}

impl Bound {
    pub fn new(q: &Query, params: &[Value], results: &[NestedResult], eval: &Eval<'_>) -> Result<Bound> {
        let bind = |e: &Ex| -> Result<Ex> {
            let mut e = e.clone();
            e.bind(params, results, eval)?;
            Ok(e)
        };
        let list = |l: &[Ex]| -> Result<Vec<Ex>> { l.iter().map(bind).collect() };
        let opt = |e: &Option<Ex>| -> Result<Option<Ex>> { e.as_ref().map(bind).transpose() };
        Ok(Bound {
            conds: q
                .conds
                .iter()
                .map(|c| Ok(Cond { ex: holds(bind(&c.ex)?), on: c.on }))
                .collect::<Result<_>>()?,
            keys: list(&q.keys)?,
            aggs: q.aggs.iter().map(|a| Ok((list(&a.args)?, opt(&a.filter)?))).collect::<Result<_>>()?,
            having: opt(&q.having)?,
            result: list(&q.result)?,
            order: q.order.iter().map(|(e, f)| Ok((bind(e)?, f.clone()))).collect::<Result<_>>()?,
        })
    }
}

/// A condition that holds of the same rows, for which there are kernels: `x IS 5` is `x = 5`.
fn holds(mut e: Ex) -> Ex {
    if let Ex::Compare(c) = &mut e
        && c.op == CmpOp::Eq
        && [&c.lhs, &c.rhs].iter().any(|e| matches!(e, Ex::Const(v) if !v.is_null()))
    {
        c.null_eq = false;
    }
    e
}

//! A condition on one column, for texts: decided by their bytes.
//!
//! What it does not know: values that are no texts. For these the expression says.

use crate::expr::like::Like;
use crate::expr::{Eval, Ex};
use iolite_plan::bound::CmpOp;
use iolite_value::Value;

/// A condition on the bytes of a text.
pub(crate) enum Test {
    Like(Like),
    Compare(CmpOp, Vec<u8>),
}

impl Test {
    /// The condition that an expression is for texts.
    pub fn of(ex: &Ex, eval: &Eval<'_>) -> Option<Test> {
        if let Some(like) = Like::of(ex, eval) {
            return Some(Test::Like(like));
        }
        let Ex::Compare(c) = ex else { return None };
        match c.with_constant()? {
            (op, Value::Text(t, _)) if c.collation.is_binary() && !c.affinity.is_numeric() => {
                Some(Test::Compare(op, t.to_vec()))
            }
            _ => None,
        }
    }

    /// Whether it holds for a text.
    pub fn holds(&self, t: &[u8]) -> bool {
        match self {
            Test::Like(like) => like.holds(t),
            Test::Compare(op, v) => op.holds(t.cmp(v)),
        }
    }
}

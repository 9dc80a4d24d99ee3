//! The value of an expression for one row: for what no kernel knows, and for the values of a dictionary.
//!
//! Every operation is the one that programs use: `value` compares under affinities, computes, converts and casts, functions are
//! the registered ones. What stands here is no more than which operand is looked at when, as a program's jumps have it.
//!
//! What always holds: a call's arguments stay in the call's own frame from row to row, constants among them are put there once,
//! and what a function keeps for a constant argument lasts as long as the expression.
//!
//! What it does not know: what an error says to the user. The query is then run by a program, which finds out what to report.

use super::{Cmp, Ex};
use crate::store::chunk::Field;
use iolite_base::{Code, Limit, Result};
use iolite_ext::{AuxData, Context, Function, Host, Implementation};
use iolite_plan::bound::{BinOp, CmpOp};
use iolite_value::arith::{self, Arith};
use iolite_value::{Affinity, Collation, Value, compare};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;

/// Where the values of columns, keys and aggregates come from.
pub(crate) trait Row {
    /// The value of a column in use.
    fn slot(&self, i: usize) -> Result<Value>;
    /// Puts it in the place of another value.
    fn slot_into(&self, i: usize, to: &mut Value) -> Result<()> {
        *to = self.slot(i)?;
        Ok(())
    }
    /// The value of a column where it lies, if it does.
    fn there(&self, _i: usize) -> Option<Field<'_>> {
        None
    }
    /// A key of the group.
    fn key(&self, _i: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }
    /// An aggregate's value.
    fn agg(&self, _i: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }
    /// A column beside the groups.
    fn bare(&self, _i: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }
    /// What a nested query says of the row.
    fn nested(&self, _number: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }
}

/// A row without columns.
pub(crate) struct NoRow;

impl Row for NoRow {
    fn slot(&self, _: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }
}

/// What a call keeps from row to row: its arguments, and what its function noted for constant ones.
#[derive(Default)]
pub(crate) struct Frame(Cell<Option<Box<Kept>>>);

struct Kept {
    args: Vec<Value>,
    aux: AuxData,
}

impl Clone for Frame {
    fn clone(&self) -> Frame {
        Frame::default()
    }
}

/// Evaluates expressions.
pub(crate) struct Eval<'a> {
    host: &'a dyn Host,
    /// The longest text or blob.
    max: usize,
    /// Values of the bases of the CASEs being evaluated.
    bases: RefCell<Vec<Value>>,
}

fn boolean(t: Option<bool>) -> Value {
    t.map_or(Value::Null, Value::bool)
}

impl Cmp {
    /// The outcome for two values; `None` is NULL.
    pub fn test(&self, a: &Value, b: &Value) -> Result<Option<bool>> {
        let o = compare::under(a, b, self.affinity, self.null_eq, &self.collation)?;
        Ok(o.map(|o| self.op.holds(o)))
    }
}

/// How two operands compare that need no conversion: texts by their bytes, integers. They are looked at where they lie; a copy of
/// each text took a third of the time of a join.
#[inline]
fn there(c: &Cmp, row: &dyn Row) -> Option<Ordering> {
    let operand = |e| match e {
        &Ex::Slot(i) => row.there(i),
        Ex::Const(v) => Some(Field::of(v)),
        _ => None,
    };
    let (Ex::Slot(_), true) = (&c.lhs, c.collation == Collation::Binary) else { return None };
    match (operand(&c.lhs)?, operand(&c.rhs)?) {
        (Field::Text(a), Field::Text(b))
            if matches!(c.affinity, Affinity::None | Affinity::Blob | Affinity::Text) =>
        {
            // Whether they are equal is told by their lengths first.
            let unequal = a.len() != b.len() && matches!(c.op, CmpOp::Eq | CmpOp::Ne);
            Some(if unequal { a.len().cmp(&b.len()) } else { a.cmp(b) })
        }
        (Field::Int(a), Field::Int(b))
            if !matches!(c.affinity, Affinity::Text | Affinity::Real | Affinity::Flexnum) =>
        {
            Some(a.cmp(&b))
        }
        _ => None,
    }
}

impl<'a> Eval<'a> {
    /// For a connection's functions and limits.
    pub fn new(host: &'a dyn Host) -> Eval<'a> {
        Eval { host, max: host.limit(Limit::Length).max(0) as usize, bases: RefCell::default() }
    }

    /// For functions.
    pub fn host(&self) -> &'a dyn Host {
        self.host
    }

    /// The value of `e` in `row`.
    pub fn value(&self, e: &Ex, row: &dyn Row) -> Result<Value> {
        Ok(match e {
            Ex::Const(v) => v.clone(),
            Ex::Slot(i) => row.slot(*i)?,
            Ex::Key(i) => row.key(*i)?,
            Ex::Agg(i) => row.agg(*i)?,
            Ex::Bare(i) => row.bare(*i)?,
            Ex::Param(_) | Ex::Mapped(_) => return Err(Code::Internal.into()),
            Ex::Nested(n) => row.nested(n.number)?,
            Ex::InSet(_) => boolean(self.truth(e, row)?),
            Ex::Neg(a) => arith::negate(&*self.operand(a, row)?),
            Ex::BitNot(a) => arith::bit_not(&*self.operand(a, row)?),
            Ex::Binary(op, a, b) => {
                let (x, y) = (self.operand(a, row)?, self.operand(b, row)?);
                match op {
                    BinOp::Add => arith::arith(Arith::Add, &x, &y),
                    BinOp::Sub => arith::arith(Arith::Sub, &x, &y),
                    BinOp::Mul => arith::arith(Arith::Mul, &x, &y),
                    BinOp::Div => arith::arith(Arith::Div, &x, &y),
                    BinOp::Rem => arith::arith(Arith::Rem, &x, &y),
                    BinOp::Concat => arith::concat(&x, &y, self.max)?,
                    BinOp::BitAnd => arith::bit_and(&x, &y),
                    BinOp::BitOr => arith::bit_or(&x, &y),
                    BinOp::ShiftLeft => arith::shift_left(&x, &y),
                    BinOp::ShiftRight => arith::shift_right(&x, &y),
                }
            }
            Ex::Not(_)
            | Ex::Compare(_)
            | Ex::And(..)
            | Ex::Or(..)
            | Ex::IsNull(..)
            | Ex::Truth { .. }
            | Ex::Between(..)
            | Ex::In { .. } => boolean(self.truth(e, row)?),
            Ex::Case { base, arms, otherwise } => {
                if let Some(b) = base {
                    let v = self.value(b, row)?;
                    self.bases.borrow_mut().push(v);
                }
                let out = self.case(arms, otherwise.as_deref(), row);
                if base.is_some() {
                    self.bases.borrow_mut().pop();
                }
                out?
            }
            Ex::CaseBase => self.bases.borrow().last().cloned().ok_or(Code::Internal)?,
            Ex::Coalesce(list) => {
                for a in list {
                    let v = self.value(a, row)?;
                    if !v.is_null() {
                        return Ok(v);
                    }
                }
                Value::Null
            }
            Ex::Nullif(c) => {
                let x = self.value(&c.lhs, row)?;
                match c.test(&x, &*self.operand(&c.rhs, row)?)? {
                    Some(true) => Value::Null,
                    _ => x,
                }
            }
            Ex::Cast(a, aff) => aff.cast(&*self.operand(a, row)?)?,
            Ex::Call { function, args, collation, frame } => {
                self.call(function, args, collation, frame, row)?
            }
        })
    }

    /// Whether a condition holds; NULL is no.
    pub fn holds(&self, e: &Ex, row: &dyn Row) -> Result<bool> {
        Ok(self.truth(e, row)? == Some(true))
    }

    /// An operand's value; a constant is looked at where it stands.
    fn operand<'e>(&self, e: &'e Ex, row: &dyn Row) -> Result<Cow<'e, Value>> {
        match e {
            Ex::Const(v) => Ok(Cow::Borrowed(v)),
            e => self.value(e, row).map(Cow::Owned),
        }
    }

    /// The truth of a condition; `None` is NULL.
    pub fn truth(&self, e: &Ex, row: &dyn Row) -> Result<Option<bool>> {
        Ok(match e {
            Ex::Compare(c) if let Some(o) = there(c, row) => Some(c.op.holds(o)),
            Ex::Compare(c) => c.test(&*self.operand(&c.lhs, row)?, &*self.operand(&c.rhs, row)?)?,
            Ex::Not(a) => self.truth(a, row)?.map(|t| !t),
            Ex::And(a, b) => match self.truth(a, row)? {
                Some(false) => Some(false),
                a => arith::and(a, self.truth(b, row)?),
            },
            Ex::Or(a, b) => match self.truth(a, row)? {
                Some(true) => Some(true),
                a => arith::or(a, self.truth(b, row)?),
            },
            Ex::IsNull(a, not) => Some(self.operand(a, row)?.is_null() != *not),
            Ex::Truth { e, truth, not } => Some(match self.truth(e, row)? {
                None => *not,
                Some(t) => (t == *truth) != *not,
            }),
            Ex::Between(lo, hi) => {
                let x = self.operand(&lo.lhs, row)?;
                let a = lo.test(&x, &*self.operand(&lo.rhs, row)?)?;
                let b = hi.test(&x, &*self.operand(&hi.rhs, row)?)?;
                arith::and(a, b)
            }
            Ex::In { not, lhs, list, affinity, collation } => {
                let x = self.operand(lhs, row)?;
                self.in_list(&x, list, *affinity, collation, row)?.map(|t| t != *not)
            }
            Ex::InSet(u) => {
                let set = u.set.as_ref().ok_or(Code::Internal)?;
                set.has(Field::of(&*self.operand(&u.lhs, row)?))?.map(|t| t != u.not)
            }
            e => self.operand(e, row)?.truth(),
        })
    }

    fn in_list(
        &self,
        x: &Value,
        list: &[Ex],
        aff: Affinity,
        coll: &Collation,
        row: &dyn Row,
    ) -> Result<Option<bool>> {
        if x.is_null() {
            return Ok(None);
        }
        let mut null = false;
        for item in list {
            match compare::under(x, &*self.operand(item, row)?, aff, false, coll)? {
                None => null = true,
                Some(o) if o.is_eq() => return Ok(Some(true)),
                Some(_) => {}
            }
        }
        Ok(if null { None } else { Some(false) })
    }

    fn case(&self, arms: &[(Ex, Ex)], otherwise: Option<&Ex>, row: &dyn Row) -> Result<Value> {
        for (when, then) in arms {
            if self.holds(when, row)? {
                return self.value(then, row);
            }
        }
        otherwise.map_or(Ok(Value::Null), |e| self.value(e, row))
    }

    fn call(
        &self,
        f: &Function,
        args: &[Ex],
        coll: &Collation,
        frame: &Frame,
        row: &dyn Row,
    ) -> Result<Value> {
        let Implementation::Scalar(code) = &f.imp else { return Err(Code::Internal.into()) };
        let mut kept = frame.0.take().unwrap_or_else(|| Box::new(Kept::new(args)));
        for (to, a) in kept.args.iter_mut().zip(args) {
            match a {
                Ex::Const(_) => {}
                Ex::Slot(i) => row.slot_into(*i, to)?,
                a => *to = self.value(a, row)?,
            }
        }
        let mut ctx =
            Context { host: self.host, collation: coll, aux: &mut kept.aux, pure: None, cursor: None };
        let v = code(&mut ctx, &kept.args)?;
        kept.aux.end_call();
        frame.0.set(Some(kept));
        match &v {
            Value::Text(b, _) | Value::Blob(b, _) if b.len() > self.max => Err(Code::Toobig.into()),
            _ => Ok(v),
        }
    }
}

impl Kept {
    fn new(args: &[Ex]) -> Kept {
        let mut kept = Kept { args: Vec::with_capacity(args.len()), aux: AuxData::default() };
        for (i, a) in args.iter().enumerate() {
            kept.args.push(match a {
                Ex::Const(v) => v.clone(),
                _ => Value::Null,
            });
            kept.aux.constant_args |= u32::from(matches!(a, Ex::Const(_)) && i < 32) << (i & 31);
        }
        kept
    }
}

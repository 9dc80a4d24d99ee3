//! A condition on one column, decided by a value where it lies: no value is made of it.
//!
//! What always holds: the outcome is that of the expression. Where a value would be converted before it is compared, and for expressions that
//! are none of these forms, the expression itself is asked.

use crate::expr::like::{Like, Starts};
use crate::expr::scope::OneField;
use crate::expr::set::ValueSet;
use crate::expr::{Cmp, Eval, Ex};
use crate::store::chunk::Field;
use iolite_base::Result;
use iolite_plan::bound::CmpOp;
use iolite_value::arith;
use iolite_value::compare::int_real;
use iolite_value::{Affinity, Collation, Value, utf8};
use std::cmp::Ordering;
use std::rc::Rc;

/// A condition. See the module's head.
pub(crate) struct Test {
    form: Form,
    /// What says it of values that the form does not know.
    ex: Ex,
}

enum Form {
    /// Of texts.
    Like(Like),
    Starts(Starts),
    Compare(CmpOp, Constant),
    /// Equal to one of these, or not; whether there is a NULL among them.
    In {
        list: Vec<Constant>,
        null: bool,
        not: bool,
    },
    /// In a set, or not.
    Set {
        set: Rc<ValueSet>,
        not: bool,
    },
    /// NULL, or not.
    Null {
        not: bool,
    },
    /// `length` of a text or a blob.
    Length(CmpOp, i64),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Any,
}

/// What a column is compared with.
struct Constant {
    with: Value,
    affinity: Affinity,
    collation: Collation,
}

impl Constant {
    /// How a value compares with it; `None`: one of them has to be converted first. Neither is NULL.
    #[inline]
    fn compare(&self, f: Field<'_>) -> Option<Ordering> {
        let rank = |f: &Field<'_>| match f {
            Field::Null => 0,
            Field::Int(_) | Field::Real(_) => 1,
            Field::Text(_) => 2,
            Field::Blob(_) => 3,
        };
        let with = Field::of(&self.with);
        let (a, b) = (rank(&f), rank(&with));
        let converts = match self.affinity {
            Affinity::Text => a == 1 || b == 1,
            f => f.is_numeric() && (a == 2 || b == 2),
        };
        if converts {
            return None;
        }
        Some(match (f, with) {
            (Field::Text(x), Field::Text(y)) => self.collation.compare(x, y),
            (Field::Int(x), Field::Int(y)) => x.cmp(&y),
            (Field::Int(x), Field::Real(y)) => int_real(x, y),
            (Field::Real(x), Field::Int(y)) => int_real(y, x).reverse(),
            (Field::Real(x), Field::Real(y)) => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
            (Field::Blob(x), Field::Blob(y)) => x.cmp(y),
            _ => a.cmp(&b),
        })
    }
}

impl Test {
    /// The form of a condition on one column.
    pub fn of(ex: &Ex, eval: &Eval<'_>) -> Test {
        let part = |e: &Ex| Box::new(Test::of(e, eval));
        let form = match ex {
            _ if let Some(like) = Like::of(ex, eval) => Form::Like(like),
            _ if let Some(starts) = Starts::of(ex) => Form::Starts(starts),
            Ex::Compare(c) => compare(c).or_else(|| length(c)).unwrap_or(Form::Any),
            Ex::Between(lo, hi) => match (compare(lo), compare(hi)) {
                (Some(a), Some(b)) => Form::And(
                    Box::new(Test { form: a, ex: Ex::Compare(lo.clone()) }),
                    Box::new(Test { form: b, ex: Ex::Compare(hi.clone()) }),
                ),
                _ => Form::Any,
            },
            Ex::In { not, lhs, list, affinity, collation } => {
                listed(*not, lhs, list, *affinity, collation).unwrap_or(Form::Any)
            }
            Ex::InSet(u) if let (Ex::Slot(_), Some(set)) = (&u.lhs, &u.set) => {
                Form::Set { set: set.clone(), not: u.not }
            }
            Ex::IsNull(e, not) if matches!(**e, Ex::Slot(_)) => Form::Null { not: *not },
            Ex::Not(a) => Form::Not(part(a)),
            Ex::And(a, b) => Form::And(part(a), part(b)),
            Ex::Or(a, b) => Form::Or(part(a), part(b)),
            _ => Form::Any,
        };
        Test { form, ex: ex.clone() }
    }

    /// Whether the expression is asked for unusual values alone.
    pub fn is_known(&self) -> bool {
        match &self.form {
            Form::Any => false,
            Form::Not(a) => a.is_known(),
            Form::And(a, b) | Form::Or(a, b) => a.is_known() && b.is_known(),
            _ => true,
        }
    }

    /// Whether it is one comparison.
    pub fn is_comparison(&self) -> bool {
        matches!(self.form, Form::Compare(..) | Form::Null { .. } | Form::Length(..))
    }

    /// Whether it holds for a value; NULL is no.
    #[inline]
    pub fn holds(&self, f: Field<'_>, eval: &Eval<'_>) -> Result<bool> {
        Ok(self.truth(f, eval)? == Some(true))
    }

    /// The truth for a value; `None` is NULL.
    fn truth(&self, f: Field<'_>, eval: &Eval<'_>) -> Result<Option<bool>> {
        Ok(match (&self.form, f) {
            (Form::Null { not }, f) => Some(matches!(f, Field::Null) != *not),
            (Form::Not(a), f) => a.truth(f, eval)?.map(|t| !t),
            (Form::And(a, b), f) => match a.truth(f, eval)? {
                Some(false) => Some(false),
                a => arith::and(a, b.truth(f, eval)?),
            },
            (Form::Or(a, b), f) => match a.truth(f, eval)? {
                Some(true) => Some(true),
                a => arith::or(a, b.truth(f, eval)?),
            },
            (Form::Like(like), Field::Text(t)) => Some(like.holds(t)),
            (Form::Starts(s), Field::Text(t)) if s.known(t) => Some(s.holds(t)),
            (Form::Length(..) | Form::Compare(..) | Form::In { .. }, Field::Null) => None,
            (Form::Length(op, n), Field::Text(t)) => Some(op.holds((utf8::length(t) as i64).cmp(n))),
            (Form::Length(op, n), Field::Blob(b)) => Some(op.holds((b.len() as i64).cmp(n))),
            (Form::Compare(_, c), _) if c.with.is_null() => None,
            (Form::Compare(op, c), f) => match c.compare(f) {
                Some(o) => Some(op.holds(o)),
                None => eval.truth(&self.ex, &OneField(f))?,
            },
            (Form::Set { set, not }, f) => set.has(f)?.map(|t| t != *not),
            (Form::In { list, null, not }, f) => {
                let mut found = if *null { None } else { Some(false) };
                for c in list {
                    match c.compare(f) {
                        Some(Ordering::Equal) => {
                            found = Some(true);
                            break;
                        }
                        Some(_) => {}
                        None => return eval.truth(&self.ex, &OneField(f)),
                    }
                }
                found.map(|t| t != *not)
            }
            (_, f) => eval.truth(&self.ex, &OneField(f))?,
        })
    }
}

/// A comparison of the column with a constant.
fn compare(c: &Cmp) -> Option<Form> {
    let (op, v) = c.with_constant()?;
    Some(Form::Compare(
        op,
        Constant { with: v.clone(), affinity: c.affinity, collation: c.collation.clone() },
    ))
}

/// A comparison of the column's length with an integer.
fn length(c: &Cmp) -> Option<Form> {
    let (Ex::Call { function, args, .. }, Ex::Const(Value::Int(n))) = (&c.lhs, &c.rhs) else { return None };
    let plain = !c.null_eq && c.affinity != Affinity::Text && function.name.eq_ignore_ascii_case("length");
    (plain && matches!(args[..], [Ex::Slot(_)])).then_some(Form::Length(c.op, *n))
}

fn listed(not: bool, lhs: &Ex, list: &[Ex], affinity: Affinity, collation: &Collation) -> Option<Form> {
    if !matches!(lhs, Ex::Slot(_)) {
        return None;
    }
    let (mut constants, mut null) = (Vec::with_capacity(list.len()), false);
    for e in list {
        match e {
            Ex::Const(Value::Null) => null = true,
            Ex::Const(v) => {
                constants.push(Constant { with: v.clone(), affinity, collation: collation.clone() });
            }
            _ => return None,
        }
    }
    Some(Form::In { list: constants, null, not })
}

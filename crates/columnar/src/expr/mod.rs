//! Expressions over columns: what the binder's expressions become, and their value for one row.
//!
//! Every operation is the one that programs use (`value`, `func`); what stands here is the order in which operands are
//! looked at. Vectorized paths elsewhere are allowed only where they give what this gives. An error says no more than
//! "not here": the query is then run by a program, which finds out what to report.

use iolite_base::{Code, Result};
use iolite_ext::{AuxData, Context, Function, Host, Implementation, Inline};
use iolite_plan::bound::{BinOp, CmpOp};
use iolite_value::arith::{self, Arith};
use iolite_value::{Affinity, Collation, Value, compare};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

pub(crate) mod batch;
pub(crate) mod columns;
pub(crate) mod condition;
pub(crate) mod filter;
pub(crate) mod like;
pub(crate) mod scope;
pub(crate) mod set;
pub(crate) mod vector;

use set::{Said, ValueSet};

/// An expression.
#[derive(Clone)]
pub(crate) enum Ex {
    Const(Value),
    /// A value that the program passes.
    Param(usize),
    /// A column in use, by number.
    Slot(usize),
    /// An integer for each value of a column that has few.
    Mapped(Rc<Mapped>),
    /// What a nested query that depends on the row says; or, before parameters are put in, any nested query's value.
    Nested(Box<NestedUse>),
    /// Whether a value is in the set that a nested query makes.
    InSet(Box<SetUse>),
    /// A key of the present group.
    Key(usize),
    /// An aggregate of the present group.
    Agg(usize),
    /// A column beside the groups, of the row that stands for the group.
    Bare(usize),
    Neg(Box<Ex>),
    BitNot(Box<Ex>),
    Not(Box<Ex>),
    Binary(BinOp, Box<Ex>, Box<Ex>),
    Compare(Box<Cmp>),
    And(Box<Ex>, Box<Ex>),
    Or(Box<Ex>, Box<Ex>),
    IsNull(Box<Ex>, bool),
    Truth {
        e: Box<Ex>,
        truth: bool,
        not: bool,
    },
    Between(Box<Cmp>, Box<Cmp>),
    In {
        not: bool,
        lhs: Box<Ex>,
        list: Vec<Ex>,
        affinity: Affinity,
        collation: Collation,
    },
    Case {
        base: Option<Box<Ex>>,
        arms: Vec<(Ex, Ex)>,
        otherwise: Option<Box<Ex>>,
    },
    CaseBase,
    Cast(Box<Ex>, Affinity),
    Call {
        function: Rc<Function>,
        args: Vec<Ex>,
        collation: Collation,
    },
}

/// What an expression of one column comes to, computed once for each value that the column may have.
pub(crate) struct Mapped {
    pub slot: usize,
    /// By code, or by integer less the least; the last place of integers is that of NULL. `None` is NULL.
    pub values: Vec<Option<i64>>,
    /// Least and greatest, and whether some are NULL.
    pub bounds: (i64, i64, bool),
}

/// Where a nested query's answer stands.
#[derive(Clone)]
pub(crate) struct NestedUse {
    pub number: usize,
    /// What its keys must be equal to, then what its other column is compared with.
    pub args: Vec<Ex>,
}

/// `lhs IN (SELECT ...)`.
#[derive(Clone)]
pub(crate) struct SetUse {
    pub not: bool,
    pub lhs: Ex,
    pub number: usize,
    /// What came out.
    pub set: Option<Rc<ValueSet>>,
    pub affinity: Affinity,
    pub collation: Collation,
}

/// A comparison.
#[derive(Clone)]
pub(crate) struct Cmp {
    pub op: CmpOp,
    pub null_eq: bool,
    pub affinity: Affinity,
    pub collation: Collation,
    pub lhs: Ex,
    pub rhs: Ex,
}

/// Where the values of columns, keys and aggregates come from.
pub(crate) trait Row {
    /// The value of a column in use.
    fn slot(&self, i: usize) -> Result<Value>;
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

/// Evaluates expressions.
pub(crate) struct Eval<'a> {
    pub host: &'a dyn Host,
    /// The longest text or blob.
    pub max: usize,
    /// Values of the bases of the CASEs being evaluated.
    pub bases: RefCell<Vec<Value>>,
}

fn boolean(t: Option<bool>) -> Value {
    t.map_or(Value::Null, Value::bool)
}

impl Cmp {
    /// The outcome for two values; `None` is NULL.
    pub fn test(&self, a: &Value, b: &Value) -> Result<Option<bool>> {
        let o = if a.is_null() || b.is_null() {
            if !self.null_eq {
                return Ok(None);
            }
            match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            }
        } else {
            converted(self.affinity, a, b, &self.collation)?
        };
        Ok(Some(match self.op {
            CmpOp::Eq => o.is_eq(),
            CmpOp::Ne => o.is_ne(),
            CmpOp::Lt => o.is_lt(),
            CmpOp::Le => o.is_le(),
            CmpOp::Gt => o.is_gt(),
            CmpOp::Ge => o.is_ge(),
        }))
    }
}

/// Compares two values that are not NULL under an affinity.
pub(crate) fn converted(aff: Affinity, a: &Value, b: &Value, coll: &Collation) -> Result<Ordering> {
    let text = |v: &Value| matches!(v, Value::Text(..));
    let number = |v: &Value| matches!(v, Value::Int(_) | Value::Real(_));
    let convert =
        if aff.is_numeric() { text(a) || text(b) } else { aff == Affinity::Text && (number(a) || number(b)) };
    if !convert {
        return Ok(compare::compare(a, b, coll));
    }
    let to = if aff.is_numeric() { Affinity::Numeric } else { Affinity::Text };
    let (mut x, mut y) = (a.clone(), b.clone());
    to.apply(&mut x)?;
    to.apply(&mut y)?;
    Ok(compare::compare(&x, &y, coll))
}

impl Eval<'_> {
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
            Ex::InSet(u) => {
                let set = u.set.as_ref().ok_or(Code::Internal)?;
                let mut x = self.value(&u.lhs, row)?;
                u.affinity.apply(&mut x)?;
                boolean(set.has(&x).map(|t| t != u.not))
            }
            Ex::Neg(a) => arith::negate(&self.value(a, row)?),
            Ex::BitNot(a) => arith::bit_not(&self.value(a, row)?),
            Ex::Not(a) => boolean(self.value(a, row)?.truth().map(|t| !t)),
            Ex::Binary(op, a, b) => {
                let (x, y) = (self.value(a, row)?, self.value(b, row)?);
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
            Ex::Compare(c) => boolean(c.test(&self.value(&c.lhs, row)?, &self.value(&c.rhs, row)?)?),
            Ex::And(a, b) => boolean(arith::and(self.value(a, row)?.truth(), self.value(b, row)?.truth())),
            Ex::Or(a, b) => boolean(arith::or(self.value(a, row)?.truth(), self.value(b, row)?.truth())),
            Ex::IsNull(a, not) => Value::bool(self.value(a, row)?.is_null() != *not),
            Ex::Truth { e, truth, not } => match self.value(e, row)?.truth() {
                None => Value::bool(*not),
                Some(t) => Value::bool((t == *truth) != *not),
            },
            Ex::Between(lo, hi) => {
                let x = self.value(&lo.lhs, row)?;
                let a = lo.test(&x, &self.value(&lo.rhs, row)?)?;
                let b = hi.test(&x, &self.value(&hi.rhs, row)?)?;
                boolean(arith::and(a, b))
            }
            Ex::In { not, lhs, list, affinity, collation } => {
                let x = self.value(lhs, row)?;
                boolean(self.in_list(&x, list, *affinity, collation, row)?.map(|t| t != *not))
            }
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
            Ex::Cast(a, aff) => aff.cast(&self.value(a, row)?)?,
            Ex::Call { function, args, collation } => self.call(function, args, collation, row)?,
        })
    }

    /// Whether a condition holds; NULL is no.
    pub fn holds(&self, e: &Ex, row: &dyn Row) -> Result<bool> {
        Ok(self.value(e, row)?.truth() == Some(true))
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
            let computed;
            let v = match item {
                Ex::Const(v) => v,
                other => {
                    computed = self.value(other, row)?;
                    &computed
                }
            };
            if v.is_null() {
                null = true;
            } else if converted(aff, x, v, coll)?.is_eq() {
                return Ok(Some(true));
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

    fn call(&self, f: &Function, args: &[Ex], coll: &Collation, row: &dyn Row) -> Result<Value> {
        if let Implementation::Inline(i) = f.imp {
            return match i {
                Inline::Coalesce => {
                    for (k, a) in args.iter().enumerate() {
                        let v = self.value(a, row)?;
                        if !v.is_null() || k + 1 == args.len() {
                            return Ok(v);
                        }
                    }
                    Ok(Value::Null)
                }
                Inline::Iif => {
                    for p in args.chunks(2) {
                        match p {
                            [c, v] if self.holds(c, row)? => return self.value(v, row),
                            [otherwise] => return self.value(otherwise, row),
                            _ => {}
                        }
                    }
                    Ok(Value::Null)
                }
                Inline::Nullif => {
                    let (a, b) = (self.value(&args[0], row)?, self.value(&args[1], row)?);
                    let same = !a.is_null() && !b.is_null() && compare::compare(&a, &b, coll).is_eq();
                    Ok(if same { Value::Null } else { a })
                }
                Inline::Likelihood | Inline::Likely => self.value(&args[0], row),
                _ => Err(Code::Internal.into()),
            };
        }
        let Implementation::Scalar(code) = &f.imp else { return Err(Code::Internal.into()) };
        let mut given = Vec::with_capacity(args.len());
        for a in args {
            given.push(self.value(a, row)?);
        }
        let mut aux = AuxData::default();
        let v = code(
            &mut Context { host: self.host, collation: coll, aux: &mut aux, pure: None, cursor: None },
            &given,
        )?;
        match &v {
            Value::Text(b, _) | Value::Blob(b, _) if b.len() > self.max => Err(Code::Toobig.into()),
            _ => Ok(v),
        }
    }
}

impl Ex {
    /// Calls `f` on each operand.
    pub fn children<'e>(&'e self, f: &mut dyn FnMut(&'e Ex)) {
        match self {
            Ex::Const(_) | Ex::Param(_) | Ex::Slot(_) | Ex::Mapped(_) => {}
            Ex::Key(_) | Ex::Agg(_) | Ex::Bare(_) | Ex::CaseBase => {}
            Ex::Neg(a) | Ex::BitNot(a) | Ex::Not(a) | Ex::IsNull(a, _) | Ex::Cast(a, _) => f(a),
            Ex::Truth { e, .. } => f(e),
            Ex::Binary(_, a, b) | Ex::And(a, b) | Ex::Or(a, b) => {
                f(a);
                f(b);
            }
            Ex::Compare(c) => {
                f(&c.lhs);
                f(&c.rhs);
            }
            Ex::Between(lo, hi) => {
                f(&lo.lhs);
                f(&lo.rhs);
                f(&hi.rhs);
            }
            Ex::In { lhs, list, .. } => {
                f(lhs);
                list.iter().for_each(f);
            }
            Ex::Case { base, arms, otherwise } => {
                base.iter().for_each(|b| f(b));
                for (w, t) in arms {
                    f(w);
                    f(t);
                }
                otherwise.iter().for_each(|o| f(o));
            }
            Ex::Call { args, .. } => args.iter().for_each(f),
            Ex::Nested(n) => n.args.iter().for_each(f),
            Ex::InSet(u) => f(&u.lhs),
        }
    }

    fn children_mut(&mut self, f: &mut dyn FnMut(&mut Ex)) {
        match self {
            Ex::Const(_) | Ex::Param(_) | Ex::Slot(_) | Ex::Mapped(_) => {}
            Ex::Key(_) | Ex::Agg(_) | Ex::Bare(_) | Ex::CaseBase => {}
            Ex::Neg(a) | Ex::BitNot(a) | Ex::Not(a) | Ex::IsNull(a, _) | Ex::Cast(a, _) => f(a),
            Ex::Truth { e, .. } => f(e),
            Ex::Binary(_, a, b) | Ex::And(a, b) | Ex::Or(a, b) => {
                f(a);
                f(b);
            }
            Ex::Compare(c) => {
                f(&mut c.lhs);
                f(&mut c.rhs);
            }
            Ex::Between(lo, hi) => {
                f(&mut lo.lhs);
                f(&mut lo.rhs);
                f(&mut hi.lhs);
                f(&mut hi.rhs);
            }
            Ex::In { lhs, list, .. } => {
                f(lhs);
                list.iter_mut().for_each(f);
            }
            Ex::Case { base, arms, otherwise } => {
                base.iter_mut().for_each(|b| f(b));
                for (w, t) in arms {
                    f(w);
                    f(t);
                }
                otherwise.iter_mut().for_each(|o| f(o));
            }
            Ex::Call { args, .. } => args.iter_mut().for_each(f),
            Ex::Nested(n) => n.args.iter_mut().for_each(f),
            Ex::InSet(u) => f(&mut u.lhs),
        }
    }

    /// Calls `f` with each column that is read.
    pub fn slots(&self, f: &mut dyn FnMut(usize)) {
        match self {
            Ex::Slot(i) => f(*i),
            Ex::Mapped(m) => f(m.slot),
            _ => {}
        }
        self.children(&mut |e| e.slots(f));
    }

    /// A number that the same expressions share, and others hardly ever.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = iolite_base::hash::FastHasher::default();
        self.hash_into(&mut h);
        return h.finish();

        trait Into {
            fn hash_into(&self, h: &mut iolite_base::hash::FastHasher);
        }
        impl Into for Ex {
            fn hash_into(&self, h: &mut iolite_base::hash::FastHasher) {
                std::mem::discriminant(self).hash(h);
                match self {
                    Ex::Const(v) => crate::store::chunk::Field::of(v).hash().hash(h),
                    Ex::Param(i) | Ex::Slot(i) | Ex::Key(i) | Ex::Agg(i) | Ex::Bare(i) => i.hash(h),
                    Ex::Nested(n) => n.number.hash(h),
                    Ex::InSet(u) => (u.number, u.not).hash(h),
                    Ex::Binary(op, ..) => (*op as u8).hash(h),
                    Ex::Compare(c) => (c.op as u8).hash(h),
                    Ex::Between(a, b) => (a.op as u8, b.op as u8).hash(h),
                    Ex::IsNull(_, not) | Ex::In { not, .. } | Ex::Truth { not, .. } => not.hash(h),
                    Ex::Call { function, .. } => function.name.hash(h),
                    _ => {}
                }
                self.children(&mut |e| e.hash_into(h));
            }
        }
    }

    /// The only column that is read, if it is one.
    pub fn only_slot(&self) -> Option<usize> {
        let mut found = None;
        let mut several = false;
        self.slots(&mut |s| {
            several |= found.is_some_and(|f| f != s);
            found = Some(s);
        });
        if several { None } else { found }
    }

    fn varies(&self) -> bool {
        if matches!(self, Ex::Slot(_) | Ex::Key(_) | Ex::Agg(_) | Ex::Bare(_) | Ex::CaseBase | Ex::Nested(_))
        {
            return true;
        }
        let mut any = false;
        self.children(&mut |e| any |= e.varies());
        any
    }

    /// Whether a nested query that depends on the row takes part.
    pub fn is_late(&self) -> bool {
        let mut any = matches!(self, Ex::Nested(_));
        self.children(&mut |e| any |= e.is_late());
        any
    }

    /// Puts parameters' values, and what nested queries have said, in, and computes what has become constant.
    pub fn bind(&mut self, params: &[Value], said: &[Said], eval: &Eval<'_>) -> Result<()> {
        match self {
            Ex::Param(i) => {
                *self = Ex::Const(params.get(*i).cloned().unwrap_or_default());
                return Ok(());
            }
            Ex::Nested(n) => {
                if let Some(Said::Value(v)) = said.get(n.number) {
                    *self = Ex::Const(v.clone());
                    return Ok(());
                }
            }
            Ex::InSet(u) => match said.get(u.number) {
                Some(Said::Rows(rows)) => {
                    u.set = Some(Rc::new(ValueSet::new(rows, u.affinity, &u.collation)?));
                }
                _ => return Err(Code::Internal.into()),
            },
            _ => {}
        }
        let mut failed = None;
        self.children_mut(&mut |e| {
            if let Err(e) = e.bind(params, said, eval) {
                failed.get_or_insert(e);
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        if !matches!(self, Ex::Const(_)) && !self.varies() {
            *self = Ex::Const(eval.value(self, &NoRow)?);
        }
        Ok(())
    }
}

//! Expressions over columns: what the binder's expressions become, and what can be results of them without a row.
//!
//! Values come in two forms: for one row ([`eval`]), by the code that programs use; and for blocks of rows ([`vector`],
//! [`condition`], [`filter`]), by kernels that are allowed only where they give what that code gives.
//!
//! What always holds: a bound expression has no parameters and no independent nested queries, and what does not depend on a row
//! is a constant.

use iolite_base::{Code, Result};
use iolite_ext::Function;
use iolite_plan::bound::{BinOp, CmpOp};
use iolite_value::{Affinity, Collation, Value};
use std::rc::Rc;

pub(crate) mod asked;
pub(crate) mod batch;
pub(crate) mod columns;
pub(crate) mod condition;
mod eval;
pub(crate) mod filter;
pub(crate) mod like;
pub(crate) mod scope;
pub(crate) mod set;
pub(crate) mod test;
pub(crate) mod vector;

pub(crate) use eval::{Eval, Frame, NoRow, Row};
use set::{NestedResult, ValueSet};

/// Lists of no more values are gone through.
const FEW_LISTED: usize = 8;

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
    /// Whether a value is in the set that a nested query or a long list makes.
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
    /// The first operand that is not NULL.
    Coalesce(Vec<Ex>),
    /// The left side, or NULL where the comparison holds.
    Nullif(Box<Cmp>),
    Call {
        function: Rc<Function>,
        args: Vec<Ex>,
        collation: Collation,
        frame: Frame,
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

/// `lhs IN (SELECT ...)`, or a long list of constants.
#[derive(Clone)]
pub(crate) struct SetUse {
    pub not: bool,
    pub lhs: Ex,
    pub from: SetFrom,
    /// What came out.
    pub set: Option<Rc<ValueSet>>,
    pub affinity: Affinity,
    pub collation: Collation,
}

/// Where a set comes from.
#[derive(Clone, Copy, Hash)]
pub(crate) enum SetFrom {
    /// The nested query with this number.
    Query(usize),
    /// A list with this fingerprint.
    List(u64),
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

impl Cmp {
    /// A comparison of a column with a constant, with the column on the left.
    pub fn with_constant(&self) -> Option<(CmpOp, &Value)> {
        match (&self.lhs, &self.rhs) {
            _ if self.null_eq => None,
            (Ex::Slot(_), Ex::Const(v)) => Some((self.op, v)),
            (Ex::Const(v), Ex::Slot(_)) => Some((self.op.swapped(), v)),
            _ => None,
        }
    }

    /// Gives constants the type that the affinity would give them at each row. A comparison of numbers alone converts none, and
    /// its outcome is the same: a column of that affinity has none.
    fn convert_constants(&mut self) -> Result<()> {
        match (&mut self.lhs, &mut self.rhs) {
            (Ex::Slot(_), Ex::Const(v)) | (Ex::Const(v), Ex::Slot(_)) => compared_as(self.affinity).apply(v),
            _ => Ok(()),
        }
    }
}

/// What a comparison under an affinity makes of an operand that has to be converted: texts become numbers, but no number another.
fn compared_as(affinity: Affinity) -> Affinity {
    if affinity.is_numeric() { Affinity::Numeric } else { affinity }
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
            Ex::Compare(c) | Ex::Nullif(c) => {
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
            Ex::Call { args, .. } | Ex::Coalesce(args) => args.iter().for_each(f),
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
            Ex::Compare(c) | Ex::Nullif(c) => {
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
            Ex::Call { args, .. } | Ex::Coalesce(args) => args.iter_mut().for_each(f),
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
                    Ex::InSet(u) => (u.from, u.not).hash(h),
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

    /// Whether, as a condition, it lets one value of a column through.
    pub fn fixes(&self, slot: usize) -> bool {
        let Ex::Compare(c) = self else { return false };
        let constant = matches!(c.rhs, Ex::Const(_) | Ex::Param(_));
        let own = matches!(c.lhs, Ex::Slot(s) if s == slot);
        own && constant && c.op == CmpOp::Eq && c.collation.is_binary() && !c.null_eq
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
    pub fn is_correlated(&self) -> bool {
        let mut any = matches!(self, Ex::Nested(_));
        self.children(&mut |e| any |= e.is_correlated());
        any
    }

    /// Puts parameters' values, and what nested queries have results, in, and computes what has become constant.
    pub fn bind(&mut self, params: &[Value], results: &[NestedResult], eval: &Eval<'_>) -> Result<()> {
        match self {
            Ex::Param(i) => {
                *self = Ex::Const(params.get(*i).cloned().unwrap_or_default());
                return Ok(());
            }
            Ex::Nested(n) => {
                if let Some(NestedResult::Value(v)) = results.get(n.number) {
                    *self = Ex::Const(v.clone());
                    return Ok(());
                }
            }
            Ex::InSet(u) => {
                if let SetFrom::Query(number) = u.from {
                    let Some(NestedResult::Rows(rows)) = results.get(number) else {
                        return Err(Code::Internal.into());
                    };
                    u.set = Some(Rc::new(ValueSet::new(rows, u.affinity, &u.collation)?));
                }
            }
            _ => {}
        }
        let mut failed = None;
        self.children_mut(&mut |e| {
            if let Err(e) = e.bind(params, results, eval) {
                failed.get_or_insert(e);
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        match self {
            Ex::Compare(c) => c.convert_constants()?,
            Ex::Between(a, b) => {
                a.convert_constants()?;
                b.convert_constants()?;
            }
            Ex::In { list, affinity, .. } => {
                for e in list {
                    if let Ex::Const(v) = e {
                        compared_as(*affinity).apply(v)?;
                    }
                }
            }
            _ => {}
        }
        if !matches!(self, Ex::Const(_)) && !self.varies() {
            *self = Ex::Const(eval.value(self, &NoRow)?);
        }
        if let Some(set) = self.listed_set()? {
            *self = set;
        }
        Ok(())
    }

    /// A long list behind IN as a set.
    fn listed_set(&mut self) -> Result<Option<Ex>> {
        let Ex::In { not, lhs, list, affinity, collation } = self else { return Ok(None) };
        let constant = |e: &Ex| matches!(e, Ex::Const(_));
        if list.len() <= FEW_LISTED || !list.iter().all(constant) {
            return Ok(None);
        }
        let values = list.iter().filter_map(|e| if let Ex::Const(v) = e { Some(v) } else { None });
        let affinity = compared_as(*affinity);
        let set = ValueSet::new(values, affinity, collation)?;
        let from = SetFrom::List(list.iter().fold(0, |h, e| e.fingerprint() ^ u64::rotate_left(h, 5)));
        let lhs = std::mem::replace(&mut **lhs, Ex::CaseBase);
        let (set, collation) = (Some(Rc::new(set)), collation.clone());
        Ok(Some(Ex::InSet(Box::new(SetUse { not: *not, lhs, from, set, affinity, collation }))))
    }
}

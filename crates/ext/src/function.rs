use crate::Host;
use iolite_base::{Error, Result};
use iolite_value::{Collation, Value};
use std::any::Any;
use std::rc::Rc;

/// What a function call sees beside its arguments.
pub struct Context<'a> {
    /// The connection.
    pub host: &'a dyn Host,
    /// The collating sequence of the first argument that has one; BINARY otherwise. Only for functions flagged
    /// [`FunctionFlags::NEEDS_COLLATION`].
    pub collation: &'a Collation,
    /// The function's name and the place of the schema in which the call stands, if it stands in one where results must
    /// never change.
    pub pure: Option<(&'a str, &'static str)>,
    /// What earlier calls at the same place of the statement kept, by argument number (`sqlite3_set_auxdata`).
    pub aux: &'a mut AuxData,
    /// The cursor of the column that an overloaded function is called with ([`crate::Overload`]).
    pub cursor: Option<&'a dyn crate::VirtualCursor>,
}

impl Context<'_> {
    /// To be called before the clock, the time zone or the like is asked: refuses where results must never change
    /// (documentation page `deterministic`).
    pub fn not_pure(&self) -> Result<()> {
        match self.pure {
            None => Ok(()),
            Some((name, place)) => Err(Error::sql(format!("non-deterministic use of {name}() in {place}"))),
        }
    }
}

/// Values that a call site keeps between calls while the arguments they were derived from stay constant.
#[derive(Default)]
pub struct AuxData {
    slots: Vec<(i32, Rc<dyn Any>)>,
    /// Which arguments are constant during the run, as a bit set; a slot for another argument is dropped
    /// after each call.
    pub constant_args: u32,
    /// Which arguments are parameters of the statement, likewise.
    pub bound_args: u32,
}

impl AuxData {
    /// What was kept for argument `n`.
    pub fn get<T: 'static>(&self, n: i32) -> Option<Rc<T>> {
        let (_, v) = self.slots.iter().find(|(i, _)| *i == n)?;
        v.clone().downcast().ok()
    }

    /// Keeps `v` for argument `n`.
    pub fn set<T: 'static>(&mut self, n: i32, v: Rc<T>) {
        self.slots.retain(|(i, _)| *i != n);
        self.slots.push((n, v));
    }

    /// Drops what belongs to arguments that may change.
    #[inline]
    pub fn end_call(&mut self) {
        if !self.slots.is_empty() {
            let constant = self.constant_args;
            self.slots.retain(|(n, _)| *n < 0 || (*n < 32 && constant & (1 << n) != 0));
        }
    }

    /// Drops everything: the statement was reset.
    pub fn clear(&mut self) {
        self.slots.clear();
    }
}

/// A built-in scalar function.
pub type ScalarFn = fn(&mut Context<'_>, &[Value]) -> Result<Value>;

/// A user's scalar function.
pub trait Scalar {
    /// Computes the result.
    fn call(&self, ctx: &mut Context<'_>, args: &[Value]) -> Result<Value>;
}

/// The running state of an aggregate over one group (or, as a window function, over one frame).
pub trait Aggregate {
    /// Takes in one row.
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Value]) -> Result<()>;
    /// Takes in one row if that needs no context and cannot fail: true, or nothing has happened and `step` is called.
    /// It is for the most frequent kinds of values of the cheapest functions, where making a context costs more.
    #[inline]
    fn quick_step(&mut self, _args: &[Value]) -> bool {
        false
    }
    /// Takes in rows whose only argument is an integer, one after the other: true, or nothing has happened.
    fn step_ints(&mut self, _list: &[i64]) -> bool {
        false
    }
    /// Takes out the oldest row of the frame. Called only for functions flagged as window functions.
    fn inverse(&mut self, _ctx: &mut Context<'_>, _args: &[Value]) -> Result<()> {
        Err(iolite_base::Error::sql("aggregate cannot be used as a window function"))
    }
    /// Whether the last step changed the result: for `min` and `max`, whose row the bare columns are taken from.
    fn changed(&self) -> bool {
        false
    }
    /// The present value, the state going on.
    fn value(&mut self, ctx: &mut Context<'_>) -> Result<Value>;
    /// The final value.
    fn finish(&mut self, ctx: &mut Context<'_>) -> Result<Value> {
        self.value(ctx)
    }
}

/// How a function is computed.
#[derive(Clone)]
pub enum Implementation {
    /// A built-in scalar.
    Scalar(ScalarFn),
    /// A user's scalar.
    User(Rc<dyn Scalar>),
    /// An aggregate: makes the state of an empty group.
    Aggregate(Rc<dyn Fn() -> Box<dyn Aggregate>>),
    /// Compiled in place; never called.
    Inline(Inline),
}

/// Functions that the compiler turns into code of their own (a window function of this list has no state).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Inline {
    Coalesce,
    Iif,
    Nullif,
    Likelihood,
    Likely,
    SqliteOffset,
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// Properties of a function, as a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FunctionFlags(pub u32);

impl FunctionFlags {
    /// Same arguments, same result within one statement: may be computed once, used in indexes.
    pub const DETERMINISTIC: FunctionFlags = FunctionFlags(1);
    /// Wants [`Context::collation`].
    pub const NEEDS_COLLATION: FunctionFlags = FunctionFlags(2);
    /// Not allowed in triggers, views and schema expressions.
    pub const DIRECT_ONLY: FunctionFlags = FunctionFlags(4);
    /// Harmless even in an untrusted schema.
    pub const INNOCUOUS: FunctionFlags = FunctionFlags(8);
    /// May be used with `OVER`.
    pub const WINDOW: FunctionFlags = FunctionFlags(16);
    /// Only with `OVER`.
    pub const WINDOW_ONLY: FunctionFlags = FunctionFlags(32);
    /// The one-argument aggregate `min`.
    pub const MIN: FunctionFlags = FunctionFlags(64);
    /// The one-argument aggregate `max`.
    pub const MAX: FunctionFlags = FunctionFlags(128);
    /// `count(*)`.
    pub const COUNT: FunctionFlags = FunctionFlags(256);
    /// Constant during one step only (date and time functions, `changes()`): not for indexes, but hoistable.
    pub const SLOW_CHANGE: FunctionFlags = FunctionFlags(512);
    /// Reads or sets subtypes.
    pub const SUBTYPE: FunctionFlags = FunctionFlags(1024);
    /// An ordered-set aggregate: may be written `f(x) WITHIN GROUP (ORDER BY y)`.
    pub const ORDERED_SET: FunctionFlags = FunctionFlags(2048);
    /// Reads blobs among its arguments as texts: in a database of UTF-16 their bytes are UTF-16.
    pub const TEXTS: FunctionFlags = FunctionFlags(4096);
    /// An aggregate that takes pointers of the program for pointers (a user's scalar always does).
    pub const POINTERS: FunctionFlags = FunctionFlags(16384);
    /// Named in a schema, and registered by nobody: [`Function::unknown`].
    pub const UNKNOWN: FunctionFlags = FunctionFlags(8192);

    /// Both sets.
    pub const fn and(self, other: FunctionFlags) -> FunctionFlags {
        FunctionFlags(self.0 | other.0)
    }

    /// Whether all of `other` is here.
    #[inline]
    pub const fn has(self, other: FunctionFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A function as registered.
#[derive(Clone)]
pub struct Function {
    /// Its name, in the case it was registered with.
    pub name: Rc<str>,
    /// The number of arguments; -1: any, -3: one or more, -4: two or more.
    pub args: i16,
    /// Its properties.
    pub flags: FunctionFlags,
    /// Its code.
    pub imp: Implementation,
}

/// What calls of unknown functions come to.
struct Unknown(Rc<str>);

impl Scalar for Unknown {
    fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
        Err(Function::unknown_error(&self.0))
    }
}

impl Function {
    /// Stands for a function that a table's definition names and nobody has registered: what does not call it works.
    pub fn unknown(name: &str) -> Function {
        let name: Rc<str> = name.into();
        let imp = Implementation::User(Rc::new(Unknown(name.clone())));
        Function { name, args: -1, flags: FunctionFlags::DETERMINISTIC.and(FunctionFlags::UNKNOWN), imp }
    }

    /// The complaint about a call of it.
    pub fn unknown_error(name: &str) -> Error {
        Error::sql(format!("unknown function: {name}()"))
    }

    /// Whether this is an aggregate (which includes those that can only be window functions).
    pub fn is_aggregate(&self) -> bool {
        matches!(self.imp, Implementation::Aggregate(_)) || self.flags.has(FunctionFlags::WINDOW_ONLY)
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.name, self.args)
    }
}

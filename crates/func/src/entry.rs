//! One entry of a table of functions.

use iolite_ext::{Aggregate, Function, FunctionFlags, Implementation, Inline, ScalarFn};
use std::rc::Rc;

/// A built-in function: all about it in one place.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The number of arguments. -1: any number; -3: one or more; -4: two or more.
    pub args: i16,
    /// Its properties.
    pub flags: FunctionFlags,
    /// How it is computed.
    pub(crate) code: Code,
    /// Examples, tested: `abs(-5) => 5`; an aggregate's rows stand before a bar: `1; 2; NULL | sum(x) => 3`.
    pub examples: &'static [&'static str],
}

/// How a built-in is computed.
pub(crate) enum Code {
    Scalar(ScalarFn),
    Aggregate(fn() -> Box<dyn Aggregate>),
    Inline(Inline),
}

impl Entry {
    /// The function as the registry keeps it.
    pub fn function(&self) -> Function {
        let imp = match self.code {
            Code::Scalar(f) => Implementation::Scalar(f),
            Code::Aggregate(make) => Implementation::Aggregate(Rc::new(make)),
            Code::Inline(what) => Implementation::Inline(what),
        };
        Function { name: Rc::from(self.name), args: self.args, flags: self.flags, imp }
    }
}

/// A scalar that depends on its arguments alone.
pub(crate) const fn pure(
    name: &'static str,
    args: i16,
    f: ScalarFn,
    examples: &'static [&'static str],
) -> Entry {
    Entry { name, args, flags: crate::PURE, code: Code::Scalar(f), examples }
}

/// A scalar that depends on its arguments alone, and reads them as texts.
pub(crate) const fn of_texts(
    name: &'static str,
    args: i16,
    f: ScalarFn,
    examples: &'static [&'static str],
) -> Entry {
    Entry { name, args, flags: crate::PURE.and(FunctionFlags::TEXTS), code: Code::Scalar(f), examples }
}

/// A scalar with other flags.
pub(crate) const fn scalar(
    name: &'static str,
    args: i16,
    flags: FunctionFlags,
    f: ScalarFn,
    examples: &'static [&'static str],
) -> Entry {
    Entry { name, args, flags, code: Code::Scalar(f), examples }
}

/// An aggregate.
pub(crate) const fn aggregate(
    name: &'static str,
    args: i16,
    flags: FunctionFlags,
    make: fn() -> Box<dyn Aggregate>,
    examples: &'static [&'static str],
) -> Entry {
    Entry { name, args, flags, code: Code::Aggregate(make), examples }
}

//! Built-in SQL functions.
//!
//! Each function is one entry of a table: name, number of arguments, properties, code, and examples that are its
//! tests. Functions see values and the `Context`; registers, cursors and statements are unknown here.
//! Functions that the compiler turns into code of their own (`coalesce`, window functions) have entries too,
//! since names and argument counts are checked against them.
#![deny(unsafe_code)]

mod aggregate;
mod date;
mod entry;
pub mod json;
pub mod like;
mod math;
mod percentile;
pub mod printf;
mod scalar;
pub use scalar::COMPILE_OPTIONS;
mod text;
mod window;

pub use entry::Entry;
pub use scalar::{quote, quote_escaped};

use iolite_base::hash::FastMap;
use iolite_ext::{Builtins, Function, FunctionFlags, Implementation, Inline, Registry};
use std::rc::Rc;
use std::sync::OnceLock;

/// All tables of functions.
pub fn tables() -> [&'static [Entry]; 8] {
    [
        scalar::TABLE,
        text::TABLE,
        math::TABLE,
        date::TABLE,
        json::TABLE,
        aggregate::TABLE,
        percentile::TABLE,
        window::TABLE,
    ]
}

/// A registry that knows every built-in function.
pub fn registry() -> Registry {
    Registry::new(BUILTINS)
}

/// Every built-in function.
pub const BUILTINS: Builtins = Builtins {
    named: |name| by_name().get(name).into_iter().flatten().map(|e| Rc::new(e.function())).collect(),
    names: || by_name().keys().copied().collect(),
};

/// The entries of all tables by their names.
fn by_name() -> &'static FastMap<&'static str, Vec<&'static Entry>> {
    static BY_NAME: OnceLock<FastMap<&'static str, Vec<&'static Entry>>> = OnceLock::new();
    BY_NAME.get_or_init(|| {
        let mut out: FastMap<&'static str, Vec<&'static Entry>> = FastMap::default();
        for e in tables().into_iter().flatten() {
            out.entry(e.name).or_default().push(e);
        }
        out
    })
}

/// Sets `like()` of two and three arguments to heed case or not (`PRAGMA case_sensitive_like`).
pub fn set_case_sensitive_like(registry: &mut Registry, sensitive: bool) {
    let imp = Implementation::Scalar(if sensitive { like::like_case_sensitive } else { like::like_function });
    for args in [2, 3] {
        let flags = FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS);
        registry.add_function(Function { name: Rc::from("like"), args, flags, imp: imp.clone() });
    }
}

/// A built-in function that matches patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// `like`, which takes upper and lower case letters for the same.
    Like,
    /// `like` under `PRAGMA case_sensitive_like`.
    LikeHeedingCase,
    /// `glob`.
    Glob,
}

/// Which of them a function is: only then may an index serve `LIKE` or `GLOB`.
pub fn builtin_pattern(f: &Function) -> Option<Pattern> {
    let Implementation::Scalar(code) = &f.imp else { return None };
    let is = |g: iolite_ext::ScalarFn| std::ptr::fn_addr_eq(*code, g);
    if is(like::like_function) {
        Some(Pattern::Like)
    } else if is(like::like_case_sensitive) {
        Some(Pattern::LikeHeedingCase)
    } else if is(like::glob_function) {
        Some(Pattern::Glob)
    } else {
        None
    }
}

pub(crate) const PURE: FunctionFlags = FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS);
pub(crate) const WINDOWED: FunctionFlags = FunctionFlags::WINDOW.and(FunctionFlags::INNOCUOUS);
pub(crate) const WINDOW_ONLY: FunctionFlags = WINDOWED.and(FunctionFlags::WINDOW_ONLY);

pub(crate) const fn inline(
    name: &'static str,
    args: i16,
    what: Inline,
    examples: &'static [&'static str],
) -> Entry {
    Entry { name, args, flags: PURE, code: entry::Code::Inline(what), examples }
}

//! The SQL functions that belong to FTS5. Auxiliary functions are known to the connection so that they have an answer where
//! there is no table.

use crate::auxiliary;
use crate::locale;
use iolite_base::{Error, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, Scalar, ScalarFn};
use iolite_value::Value;
use std::rc::Rc;
use std::sync::OnceLock;

/// Their names, in lower case.
pub const FUNCTION_NAMES: &[&str] = &[
    "bm25",
    "fts5",
    "fts5_get_locale",
    "fts5_insttoken",
    "fts5_locale",
    "fts5_source_id",
    "highlight",
    "snippet",
];

/// What `fts5_source_id()` answers.
const SOURCE: &str = "fts5: 2026-06-03 19:12:13 iolite";

/// An auxiliary function without a table.
struct Elsewhere(String);

impl Scalar for Elsewhere {
    fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
        Err(Error::sql(format!("unable to use function {} in the requested context", self.0)))
    }
}

/// What `fts5(pointer)` does in this process.
static API: OnceLock<ScalarFn> = OnceLock::new();

/// Lets programs in other languages have the door by which they add tokenizers and functions: `fts5(pointer)` calls `f`.
pub fn set_api(f: ScalarFn) {
    // Whoever comes first: there is one such door in a process.
    let _ = API.set(f);
}

/// `fts5(pointer)`. A user's function: only those are given pointers.
struct Api;

impl Scalar for Api {
    fn call(&self, ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
        API.get().map_or(Ok(Value::Null), |f| f(ctx, args))
    }
}

fn source_id(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Value::text(SOURCE)
}

fn with_locale(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let (l, text) = (&args[0], &args[1]);
    let name = locale::text(l);
    if l.is_null() || name.is_empty() {
        return match text {
            Value::Null => Ok(Value::Null),
            v => Value::text(locale::text(v)),
        };
    }
    let mut out = locale::header(ctx.host).to_vec();
    out.extend_from_slice(&name);
    out.push(0);
    out.extend_from_slice(&locale::text(text));
    Ok(Value::blob(&out)?.with_subtype(b'L'))
}

fn insttoken(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(args[0].clone().with_subtype(b'I'))
}

/// The functions of this name, in lower case.
pub fn functions_named(name: &str) -> Vec<Rc<Function>> {
    let make = |args: i16, flags: u32, imp: Implementation| {
        vec![Rc::new(Function { name: name.into(), args, flags: FunctionFlags(flags), imp })]
    };
    let plain = |f: ScalarFn| Implementation::Scalar(f);
    let innocuous = FunctionFlags::INNOCUOUS.0 | FunctionFlags::DETERMINISTIC.0;
    match name {
        "fts5" => make(1, 0, Implementation::User(Rc::new(Api))),
        "fts5_source_id" => make(0, innocuous, plain(source_id)),
        "fts5_locale" => make(2, FunctionFlags::INNOCUOUS.0 | FunctionFlags::SUBTYPE.0, plain(with_locale)),
        "fts5_insttoken" => make(1, FunctionFlags::INNOCUOUS.0 | FunctionFlags::SUBTYPE.0, plain(insttoken)),
        _ if auxiliary::NAMES.contains(&name) => {
            make(-1, 0, Implementation::User(Rc::new(Elsewhere(name.to_string()))))
        }
        _ => Vec::new(),
    }
}

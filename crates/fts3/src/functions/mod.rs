//! The auxiliary functions `offsets`, `snippet`, `matchinfo`, `optimize`, and what is known of them without a table.

mod matchinfo;
mod offsets;
mod snippet;

use crate::cursor::Cursor;
use crate::tokenize;
use iolite_base::{Error, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, Overload, Scalar};
use iolite_value::Value;
use std::rc::Rc;

/// Their names and numbers of arguments.
const AUXILIARY: [(&str, i16); 5] =
    [("snippet", -1), ("offsets", 1), ("matchinfo", 1), ("matchinfo", 2), ("optimize", 1)];

/// The names of the functions, in lower case, but for `snippet`, which has no answer without a table in any module.
pub const FUNCTION_NAMES: &[&str] = &["fts3_tokenizer", "matchinfo", "offsets", "optimize"];

/// An auxiliary function as the engine calls it.
struct Call(&'static str);

impl Scalar for Call {
    fn call(&self, ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
        let cursor = ctx.cursor.and_then(|c| c.as_any()).and_then(|c| c.downcast_ref::<Cursor>());
        // The table's own column is NULL to all.
        let own = args.first().is_some_and(Value::is_null);
        let Some(cursor) = cursor.filter(|_| own) else {
            return Err(Error::sql(format!("illegal first argument to {}", self.0)));
        };
        match self.0 {
            "offsets" => offsets::offsets(cursor),
            "snippet" => snippet::snippet(cursor, &args[1..]),
            "matchinfo" => matchinfo::matchinfo(cursor, args.get(1)),
            _ => {
                let done = cursor.storage.index.optimize()?;
                Value::text(if done { "Index already optimal" } else { "Index optimized" })
            }
        }
    }
}

/// An auxiliary function without a table.
struct Elsewhere(String);

impl Scalar for Elsewhere {
    fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
        Err(Error::sql(format!("unable to use function {} in the requested context", self.0)))
    }
}

/// The function that goes before the connection's for a table of this crate.
pub(crate) fn overload(name: &str) -> Option<Overload> {
    let (name, _) = AUXILIARY.iter().find(|a| a.0 == name)?;
    let imp = Implementation::User(Rc::new(Call(name)));
    let function = Function { name: (*name).into(), args: -1, flags: FunctionFlags::default(), imp };
    Some(Overload { function: Rc::new(function), constraint: None })
}

/// `fts3_tokenizer(name [, pointer])`. Where nobody has opened the door, pointers to code go neither out nor in.
fn fts3_tokenizer(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if let Some(door) = tokenize::door() {
        return (door.function)(ctx, args);
    }
    if args.len() == 2 {
        return Err(Error::sql("fts3tokenize disabled"));
    }
    let name = args[0].text_lossy();
    if args[0].is_null() || !tokenize::exists(&name) {
        return Err(Error::sql(format!("unknown tokenizer: {name}")));
    }
    Ok(Value::Null)
}

/// The functions of this name, in lower case.
pub fn functions_named(name: &str) -> Vec<Rc<Function>> {
    if name == "fts3_tokenizer" {
        let make = |args| Function {
            name: name.into(),
            args,
            flags: FunctionFlags::DIRECT_ONLY,
            imp: Implementation::Scalar(fts3_tokenizer),
        };
        return vec![Rc::new(make(1)), Rc::new(make(2))];
    }
    let named = AUXILIARY.iter().filter(|a| a.0 == name);
    let make = |a: &(&str, i16)| Function {
        name: name.into(),
        args: a.1,
        flags: FunctionFlags::default(),
        imp: Implementation::User(Rc::new(Elsewhere(name.into()))),
    };
    named.map(|a| Rc::new(make(a))).collect()
}

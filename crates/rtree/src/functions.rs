//! The SQL functions of this crate by their names; those that tell what a tree is made of.

use crate::check;
use crate::geopoly;
use crate::layout::{CoordKind, Layout, MOST_DIMENSIONS, count, depth};
use crate::words::real_text;
use iolite_base::{Error, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, ScalarFn};
use iolite_value::Value;
use std::rc::Rc;

/// Their names, in lower case.
pub const FUNCTION_NAMES: &[&str] = &[
    "geopoly_area",
    "geopoly_bbox",
    "geopoly_blob",
    "geopoly_ccw",
    "geopoly_contains_point",
    "geopoly_debug",
    "geopoly_group_bbox",
    "geopoly_json",
    "geopoly_overlap",
    "geopoly_regular",
    "geopoly_svg",
    "geopoly_within",
    "geopoly_xform",
    "rtreecheck",
    "rtreedepth",
    "rtreenode",
];

/// The functions of this name, in lower case.
pub fn functions_named(name: &str) -> Vec<Rc<Function>> {
    let plain: Option<(i16, ScalarFn)> = match name {
        "rtreecheck" => Some((-1, rtreecheck)),
        "rtreedepth" => Some((1, rtreedepth)),
        "rtreenode" => Some((2, rtreenode)),
        _ => None,
    };
    let Some((args, f)) = plain else { return geopoly::functions_named(name) };
    let (flags, imp) = (FunctionFlags::default(), Implementation::Scalar(f));
    vec![Rc::new(Function { name: name.into(), args, flags, imp })]
}

fn bytes_of(v: &Value) -> Result<Vec<u8>> {
    Ok(if v.is_null() { Vec::new() } else { v.text_bytes()?.to_vec() })
}

fn rtreenode(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let dimensions = args[0].to_int() as i32;
    let node = bytes_of(&args[1])?;
    if !(1..=MOST_DIMENSIONS as i32).contains(&dimensions) || node.len() < 4 {
        return Ok(Value::Null);
    }
    let layout = Layout { dimensions: dimensions as usize, kind: CoordKind::Real, node_size: node.len() };
    if layout.capacity() < count(&node) {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    for n in 0..count(&node) {
        let cell = layout.cell(&node, n);
        let mut text = format!("{{{}", cell.id);
        for v in &cell.bounds[..2 * layout.dimensions] {
            text += &format!(" {}", real_text("%g", *v)?);
        }
        out.push(text + "}");
    }
    Value::text(out.join(" "))
}

fn rtreedepth(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match &args[0] {
        Value::Blob(b, _) if b.len() >= 2 => Ok(Value::Int(depth(b) as i64)),
        _ => Err(Error::sql("Invalid argument to rtreedepth()")),
    }
}

fn rtreecheck(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let (database, table) = match args {
        [t] => ("main".to_string(), t.to_string_lossy()),
        [d, t] => (d.to_string_lossy(), t.to_string_lossy()),
        _ => return Err(Error::sql("wrong number of arguments to function rtreecheck()")),
    };
    let found = check::check(ctx.host, &database, &table)?;
    Value::text(if found.is_empty() { "ok" } else { &found })
}

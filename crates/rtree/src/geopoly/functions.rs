//! The functions of polygons. What is no polygon makes NULL.

use super::overlap::{Relation, relation};
use super::polygon::{Bounds, Polygon, extend};
use iolite_base::Result;
use iolite_ext::{Aggregate, Context, Function, FunctionFlags, Implementation, ScalarFn};
use iolite_value::Value;
use std::rc::Rc;

/// The functions of this name, in lower case.
pub(crate) fn functions_named(name: &str) -> Vec<Rc<Function>> {
    let plain: (i16, ScalarFn) = match name {
        "geopoly_area" => (1, area),
        "geopoly_bbox" => (1, bbox),
        "geopoly_blob" => (1, blob),
        "geopoly_ccw" => (1, ccw),
        "geopoly_contains_point" => (3, contains_point),
        "geopoly_debug" => (1, debug),
        "geopoly_json" => (1, json),
        "geopoly_overlap" => (2, overlap),
        "geopoly_regular" => (4, regular),
        "geopoly_svg" => (-1, svg),
        "geopoly_within" => (2, within),
        "geopoly_xform" => (7, xform),
        "geopoly_group_bbox" => {
            let imp = Implementation::Aggregate(Rc::new(|| Box::new(GroupBox::default()) as _));
            return vec![Rc::new(Function { name: name.into(), args: 1, flags: pure(), imp })];
        }
        _ => return Vec::new(),
    };
    let flags = if name == "geopoly_debug" { FunctionFlags::DIRECT_ONLY } else { pure() };
    let imp = Implementation::Scalar(plain.1);
    vec![Rc::new(Function { name: name.into(), args: plain.0, flags, imp })]
}

fn pure() -> FunctionFlags {
    FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS)
}

/// What `f` makes of a polygon.
fn of(v: &Value, f: impl FnOnce(Polygon) -> Result<Value>) -> Result<Value> {
    Polygon::of(v).map_or(Ok(Value::Null), f)
}

fn area(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| Ok(Value::real(p.area())))
}

fn bbox(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| Polygon::rectangle(p.bounds()).blob())
}

fn blob(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| p.blob())
}

fn ccw(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| if p.area() < 0.0 { p.reversed().blob() } else { p.blob() })
}

fn contains_point(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| Ok(Value::Int(p.position(args[1].to_real(), args[2].to_real()))))
}

/// It is there for SQLite's own tests, and does nothing in a library that is not built for them.
fn debug(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Null)
}

fn json(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    of(&args[0], |p| Value::text(p.json()?))
}

fn svg(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some((first, more)) = args.split_first() else { return Ok(Value::Null) };
    let more: Vec<String> = more.iter().map(|v| v.to_string_lossy()).collect();
    of(first, |p| Value::text(p.svg(&more)?))
}

fn xform(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let by: [f64; 6] = std::array::from_fn(|k| args[k + 1].to_real());
    of(&args[0], |p| p.transformed(&by).blob())
}

fn regular(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let (x, y, radius) = (args[0].to_real(), args[1].to_real(), args[2].to_real());
    let sides = args[3].to_int() as i32;
    if sides < 3 || radius <= 0.0 {
        return Ok(Value::Null);
    }
    Polygon::regular(x, y, radius, sides.min(1000) as usize).blob()
}

fn both(args: &[Value]) -> Option<Relation> {
    Some(relation(&Polygon::of(&args[0])?, &Polygon::of(&args[1])?))
}

fn overlap(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(both(args).map_or(Value::Null, |r| Value::Int(r as i64)))
}

fn within(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(both(args).map_or(Value::Null, |r| {
        Value::Int(match r {
            Relation::Inside => 1,
            Relation::Same => 2,
            _ => 0,
        })
    }))
}

/// The rectangle around all polygons so far.
#[derive(Default)]
struct GroupBox(Option<Bounds>);

impl Aggregate for GroupBox {
    fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        if let Some(p) = Polygon::of(&args[0]) {
            let found = p.bounds();
            extend(self.0.get_or_insert(found), found);
        }
        Ok(())
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
        self.0.map_or(Ok(Value::Null), |b| Polygon::rectangle(b).blob())
    }
}

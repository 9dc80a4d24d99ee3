//! A small evaluator: literals, calls, `->`, `||`, and aggregates over rows written before a bar.

use iolite_base::{Encoding, Error, Limit, Limits, Result};
use iolite_ext::{Aggregate, AuxData, Context, Host, Implementation, Registry};
use iolite_sql::ast::{BinaryOp, Expr, Literal, UnaryOp};
use iolite_value::{Collation, Value, arith, num};
use std::cell::Cell;

/// A connection's stand-in: its clock does not move, its random numbers are counted.
pub struct World {
    pub registry: Registry,
    pub limits: Limits,
    /// Seconds that local time is ahead.
    pub offset: i64,
    seed: Cell<u64>,
}

impl World {
    pub fn new() -> World {
        World {
            registry: iolite_func::registry(),
            limits: Limits::default(),
            offset: 3600,
            seed: Cell::new(1),
        }
    }
}

impl Host for World {
    fn check_interrupt(&self) -> Result<()> {
        Ok(())
    }
    fn last_insert_rowid(&self) -> i64 {
        1
    }
    fn changes(&self) -> i64 {
        2
    }
    fn total_changes(&self) -> i64 {
        3
    }
    fn limit(&self, which: Limit) -> i32 {
        self.limits.get(which)
    }
    fn encoding(&self) -> Encoding {
        Encoding::Utf8
    }
    fn now_julian_ms(&self) -> i64 {
        210_866_760_000_000 + 1_709_210_096_789
    }
    fn local_offset(&self, _: i64) -> Result<i64> {
        Ok(self.offset)
    }
    fn random(&self, out: &mut [u8]) {
        for b in out {
            self.seed.set(self.seed.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            *b = (self.seed.get() >> 56) as u8;
        }
    }
}

/// Evaluates `call`, or `row; row; ... | call`, where the call's `x` stands for the row.
pub fn run(world: &World, question: &str) -> Result<Value> {
    let Some((rows, call)) = split(question) else { return eval(world, &parse(question)?, None) };
    let (mut state, args) = aggregate(world, call)?;
    for row in rows {
        let values = arguments(world, &args, Some(&row?))?;
        with(world, |ctx| state.step(ctx, &values))?;
    }
    with(world, |ctx| state.finish(ctx))
}

fn split(question: &str) -> Option<(Vec<Result<Value>>, &str)> {
    World::new();
    let (rows, call) = question.split_once("| ")?;
    if rows.ends_with('|') || rows.contains('(') {
        return None;
    }
    let world = World::new();
    let rows = rows.trim().split(';').filter(|r| !r.trim().is_empty());
    Some((rows.map(|r| eval(&world, &parse(r.trim())?, None)).collect(), call.trim()))
}

/// An aggregate over the last `width` rows, at each row.
pub fn slide(world: &World, rows: &str, call: &str, width: usize) -> String {
    let question = format!("{rows} | {call}");
    let (rows, call) = split(&question).unwrap();
    let rows: Vec<Value> = rows.into_iter().map(|r| r.unwrap()).collect();
    let (mut state, args) = aggregate(world, call).unwrap();
    let mut shown = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let values = arguments(world, &args, Some(row)).unwrap();
        with(world, |ctx| state.step(ctx, &values)).unwrap();
        if i >= width {
            let values = arguments(world, &args, Some(&rows[i - width])).unwrap();
            with(world, |ctx| state.inverse(ctx, &values)).unwrap();
        }
        shown.push(show(&with(world, |ctx| state.value(ctx)).unwrap()));
    }
    shown.join(", ")
}

fn parse(text: &str) -> Result<Expr> {
    iolite_sql::parse_expr(text)
}

fn with<R>(world: &World, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let mut aux = AuxData::default();
    f(&mut Context { host: world, collation: &Collation::Binary, pure: None, aux: &mut aux, cursor: None })
}

fn aggregate(world: &World, call: &str) -> Result<(Box<dyn Aggregate>, Vec<Expr>)> {
    let Expr::Call(c) = parse(call)? else { panic!("{call} is no call") };
    let f = world.registry.function(&c.name.text, c.args.len()).unwrap_or_else(|| panic!("no {call}"));
    let Implementation::Aggregate(make) = &f.imp else { panic!("{call} is no aggregate") };
    Ok((make(), c.args))
}

fn arguments(world: &World, args: &[Expr], row: Option<&Value>) -> Result<Vec<Value>> {
    args.iter().map(|a| eval(world, a, row)).collect()
}

fn eval(world: &World, e: &Expr, row: Option<&Value>) -> Result<Value> {
    Ok(match e {
        Expr::Literal(l, _) => match l {
            Literal::Null => Value::Null,
            Literal::Integer(s) | Literal::Real(s) => match num::prefix(s.as_bytes()).number {
                num::Number::Int(i) => Value::Int(i),
                num::Number::Real(r) => Value::Real(r),
            },
            Literal::Text(s) => Value::text(s.as_bytes())?,
            Literal::Blob(b) => Value::blob(b)?,
            other => panic!("{other:?}"),
        },
        Expr::Column { column, .. } if &*column.text == "x" => row.expect("a row").clone(),
        // The smallest integer is a literal with its sign.
        Expr::Unary(UnaryOp::Neg, e) => match eval(world, e, row)? {
            Value::Real(9_223_372_036_854_775_808.0) => Value::Int(i64::MIN),
            v => arith::negate(&v),
        },
        Expr::Binary(op, sides) => {
            let args = [eval(world, &sides.0, row)?, eval(world, &sides.1, row)?];
            match op {
                BinaryOp::Arrow => call(world, "->", &args)?,
                BinaryOp::ArrowText => call(world, "->>", &args)?,
                BinaryOp::Concat => arith::concat(&args[0], &args[1], 1 << 30)?,
                BinaryOp::Mul => arith::arith(arith::Arith::Mul, &args[0], &args[1]),
                other => panic!("{other:?}"),
            }
        }
        Expr::Call(c) => call(world, &c.name.text, &arguments(world, &c.args, row)?)?,
        other => panic!("{other:?}"),
    })
}

fn call(world: &World, name: &str, args: &[Value]) -> Result<Value> {
    let f = world
        .registry
        .function(name, args.len())
        .ok_or_else(|| Error::sql(format!("no such function: {name}")))?;
    match &f.imp {
        Implementation::Scalar(code) => with(world, |ctx| code(ctx, args)),
        _ => panic!("{name} is no scalar"),
    }
}

/// A value as the examples write it: as `quote()`, but infinity is `Inf`.
pub fn show(v: &Value) -> String {
    match v {
        Value::Real(r) => num::real_text(*r),
        Value::Text(b, _) => format!("'{}'", String::from_utf8_lossy(b).replace('\'', "''")),
        v => String::from_utf8_lossy(&iolite_func::quote(v).unwrap()).into_owned(),
    }
}

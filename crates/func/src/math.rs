//! Mathematical functions (documentation page `lang_mathfunc`).
//!
//! An argument that is neither a number nor text that wholly is one gives NULL, and so does every result that is no
//! number. Integers stay integers where rounding them means nothing.

use crate::entry::{Entry, pure};
use iolite_base::Result;
use iolite_ext::Context;
use iolite_value::Value;
use iolite_value::num::{self, Number};

/// The functions of C's mathematical library. Rust's own `asinh` and its kin differ from them in the last digit.
#[allow(unsafe_code)]
mod c {
    // SAFETY: these are pure functions of C's standard library, which std links, with these signatures.
    unsafe extern "C" {
        pub safe fn acosh(x: f64) -> f64;
        pub safe fn asinh(x: f64) -> f64;
        pub safe fn atanh(x: f64) -> f64;
        pub safe fn log2(x: f64) -> f64;
    }
}

/// The argument as a number; text is one if it wholly is. `None` if it is none.
pub(crate) fn number(v: &Value) -> Result<Option<Value>> {
    Ok(match v {
        Value::Int(_) | Value::Real(_) => Some(v.clone()),
        Value::Text(b, _) => {
            let p = num::prefix(b);
            (p.any && p.whole).then(|| match p.number {
                Number::Int(i) => Value::Int(i),
                Number::Real(r) => Value::real(r),
            })
        }
        Value::Null | Value::Blob(..) => None,
    })
}

fn real(v: &Value) -> Result<Option<f64>> {
    Ok(number(v)?.map(|n| n.to_real()))
}

fn one(args: &[Value], f: impl Fn(f64) -> f64) -> Result<Value> {
    Ok(real(&args[0])?.map_or(Value::Null, |x| Value::real(f(x))))
}

fn two(args: &[Value], f: impl Fn(f64, f64) -> f64) -> Result<Value> {
    Ok(match (real(&args[0])?, real(&args[1])?) {
        (Some(x), Some(y)) => Value::real(f(x, y)),
        _ => Value::Null,
    })
}

fn whole(args: &[Value], f: impl Fn(f64) -> f64) -> Result<Value> {
    Ok(match number(&args[0])? {
        Some(Value::Real(r)) => Value::real(f(r)),
        Some(n) => n,
        None => Value::Null,
    })
}

macro_rules! functions {
    ($($name:ident = $how:ident($f:expr);)*) => {
        $(fn $name(_: &mut Context<'_>, args: &[Value]) -> Result<Value> { $how(args, $f) })*
    };
}

functions! {
    acos = one(f64::acos);
    acosh = one(|x| c::acosh(x));
    asin = one(f64::asin);
    asinh = one(|x| c::asinh(x));
    atan = one(f64::atan);
    atan2 = two(f64::atan2);
    atanh = one(|x| c::atanh(x));
    ceil = whole(f64::ceil);
    cos = one(f64::cos);
    cosh = one(f64::cosh);
    degrees = one(|x| x * (180.0 / std::f64::consts::PI));
    exp = one(f64::exp);
    floor = whole(f64::floor);
    ln = one(|x| positive(x, f64::ln));
    log10 = one(|x| positive(x, f64::log10));
    log2 = one(|x| positive(x, |x| c::log2(x)));
    modulo = two(|x, y| x % y);
    power = two(f64::powf);
    radians = one(|x| x * (std::f64::consts::PI / 180.0));
    sin = one(f64::sin);
    sinh = one(f64::sinh);
    sqrt = one(f64::sqrt);
    tan = one(f64::tan);
    tanh = one(f64::tanh);
    trunc = whole(f64::trunc);
}

/// A logarithm of what has one; else NaN, which becomes NULL.
fn positive(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    if x > 0.0 { f(x) } else { f64::NAN }
}

/// `log(x)` to base 10, `log(b, x)` to base b.
fn log(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let [base, x] = args else { return log10(ctx, args) };
    // Only the first argument has to be a number.
    let (Some(base), x) = (real(base)?, x.to_real()) else { return Ok(Value::Null) };
    let base = positive(base, f64::ln);
    if base <= 0.0 {
        return Ok(Value::Null);
    }
    Ok(Value::real(positive(x, f64::ln) / base))
}

fn pi(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Real(std::f64::consts::PI))
}

/// `sign(x)`.
fn sign(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(match number(&args[0])? {
        Some(n) => {
            let r = n.to_real();
            Value::Int(if r < 0.0 { -1 } else { (r > 0.0) as i64 })
        }
        None => Value::Null,
    })
}

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    pure("acos", 1, acos, &["acos(1) => 0.0", "acos(2) => NULL", "acos('x') => NULL"]),
    pure("acosh", 1, acosh, &["acosh(1) => 0.0", "acosh(0.5) => NULL"]),
    pure("asin", 1, asin, &["asin(1) => 1.5707963267948966"]),
    pure("asinh", 1, asinh, &["asinh(1) => 0.88137358701954305"]),
    pure("atan", 1, atan, &["atan(1) => 0.78539816339744828"]),
    pure("atan2", 2, atan2, &["atan2(1, -1) => 2.3561944901923448", "atan2(1, NULL) => NULL"]),
    pure("atanh", 1, atanh, &["atanh(0.5) => 0.54930614433405478"]),
    pure("ceil", 1, ceil, &["ceil(1.2) => 2.0", "ceil(3) => 3", "ceil('4') => 4", "ceil(x'31') => NULL"]),
    pure("ceiling", 1, ceil, &["ceiling(-1.2) => -1.0"]),
    pure("cos", 1, cos, &["cos(0) => 1.0"]),
    pure("cosh", 1, cosh, &["cosh(0) => 1.0"]),
    pure("degrees", 1, degrees, &["degrees(pi()) => 180.0"]),
    pure("exp", 1, exp, &["exp(0) => 1.0", "exp(1000) => Inf"]),
    pure("floor", 1, floor, &["floor(1.8) => 1.0", "floor(-1.2) => -2.0"]),
    pure("ln", 1, ln, &["ln(1) => 0.0", "ln(0) => NULL", "ln(-1) => NULL"]),
    pure("log", 1, log, &["log(100) => 2.0"]),
    pure("log", 2, log, &["log(2, 8) => 3.0", "log(1, 8) => NULL", "log(-1, 8) => NULL"]),
    pure("log10", 1, log10, &["log10(1000) => 3.0"]),
    pure("log2", 1, log2, &["log2(8) => 3.0"]),
    pure("mod", 2, modulo, &["mod(7, 3) => 1.0", "mod(-7.5, 2) => -1.5", "mod(1, 0) => NULL"]),
    pure("pi", 0, pi, &["pi() => 3.1415926535897931"]),
    pure("pow", 2, power, &["pow(2, 10) => 1024.0", "pow(-1, 0.5) => NULL"]),
    pure("power", 2, power, &["power(4, 0.5) => 2.0"]),
    pure("radians", 1, radians, &["radians(180) => 3.1415926535897931"]),
    pure("sign", 1, sign, &["sign(-3) => -1", "sign(0.0) => 0", "sign('7') => 1", "sign('x') => NULL"]),
    pure("sin", 1, sin, &["sin(0) => 0.0"]),
    pure("sinh", 1, sinh, &["sinh(0) => 0.0"]),
    pure("sqrt", 1, sqrt, &["sqrt(16) => 4.0", "sqrt(-1) => NULL"]),
    pure("tan", 1, tan, &["tan(0) => 0.0"]),
    pure("tanh", 1, tanh, &["tanh(0) => 0.0"]),
    pure("trunc", 1, trunc, &["trunc(1.9) => 1.0", "trunc(-1.9) => -1.0", "trunc(5) => 5"]),
];

//! The SQL functions `vec_*`, with the results, subtypes and errors of sqlite-vec.

use crate::kernel::{Metric, Query};
use crate::vector::{Kind, Vector, made};
use iolite_base::{Error, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, ScalarFn};
use iolite_value::Value;
use std::rc::Rc;

/// The version of sqlite-vec whose functions and tables these are.
pub(crate) const VERSION: &str = "v0.1.9";

/// The functions: names in lower case, how many arguments they have, their code.
const FUNCTIONS: &[(&str, i16, ScalarFn)] = &[
    ("vec_add", 2, add),
    ("vec_bit", 1, |_, a| Ok(Vector::bit(&a[0])?.value())),
    ("vec_distance_cosine", 2, |_, a| distance(a, Metric::Cosine)),
    ("vec_distance_hamming", 2, |_, a| distance(a, Metric::Hamming)),
    ("vec_distance_l1", 2, |_, a| distance(a, Metric::L1)),
    ("vec_distance_l2", 2, |_, a| distance(a, Metric::L2)),
    ("vec_f32", 1, |_, a| Ok(Vector::f32(&a[0])?.value())),
    ("vec_int8", 1, |_, a| Ok(Vector::i8(&a[0])?.value())),
    ("vec_length", 1, |_, a| Ok(Value::Int(Vector::of(&a[0])?.len() as i64))),
    ("vec_normalize", 1, normalize),
    ("vec_quantize_binary", 1, quantize_binary),
    ("vec_quantize_int8", 2, quantize_int8),
    ("vec_slice", 3, slice),
    ("vec_sub", 2, sub),
    ("vec_to_json", 1, to_json),
    ("vec_type", 1, |_, a| Value::text(Vector::of(&a[0])?.kind.name())),
    ("vec_version", 0, |_, _| Value::text(VERSION)),
];

/// Their names, in lower case.
pub const FUNCTION_NAMES: &[&str] = &[
    "vec_add",
    "vec_bit",
    "vec_distance_cosine",
    "vec_distance_hamming",
    "vec_distance_l1",
    "vec_distance_l2",
    "vec_f32",
    "vec_int8",
    "vec_length",
    "vec_normalize",
    "vec_quantize_binary",
    "vec_quantize_int8",
    "vec_slice",
    "vec_sub",
    "vec_to_json",
    "vec_type",
    "vec_version",
];

/// The functions of this name, in lower case.
pub fn functions_named(name: &str) -> Vec<Rc<Function>> {
    let Some((_, args, f)) = FUNCTIONS.iter().find(|f| f.0 == name) else { return Vec::new() };
    let pure = FunctionFlags::DETERMINISTIC.and(FunctionFlags::INNOCUOUS);
    let flags = match name {
        "vec_type" | "vec_version" => pure,
        _ => pure.and(FunctionFlags::SUBTYPE),
    };
    vec![Rc::new(Function { name: name.into(), args: *args, flags, imp: Implementation::Scalar(*f) })]
}

/// Two vectors that can be computed with each other.
fn two(args: &[Value]) -> Result<(Vector, Vector)> {
    let read = |k: usize, nth: &str| {
        let told = |e: Error| Error::new(e.code(), format!("Error reading {nth} vector: {}", e.message()));
        Vector::of(&args[k]).map_err(told)
    };
    let (a, b) = (read(0, "1st")?, read(1, "2nd")?);
    if a.kind != b.kind {
        return Err(Error::sql(format!(
            "Vector type mistmatch. First vector has type {}, while the second has type {}.",
            a.kind.name(),
            b.kind.name()
        )));
    }
    if a.len() != b.len() {
        return Err(Error::sql(format!(
            "Vector dimension mistmatch. First vector has {} dimensions, while the second has {} dimensions.",
            a.len(),
            b.len()
        )));
    }
    Ok((a, b))
}

fn distance(args: &[Value], metric: Metric) -> Result<Value> {
    let (a, b) = two(args)?;
    let refused =
        |what: &str, of: &str| Err(Error::sql(format!("Cannot calculate {what} distance between two {of}.")));
    match (a.kind, metric) {
        (Kind::Bit, Metric::L2) => return refused("L2", "bitvectors"),
        (Kind::Bit, Metric::L1) => return refused("L1", "bitvectors"),
        (Kind::Bit, Metric::Cosine) => return refused("cosine", "bitvectors"),
        (Kind::F32, Metric::Hamming) => return refused("hamming", "float32 vectors"),
        (Kind::I8, Metric::Hamming) => return refused("hamming", "int8 vectors"),
        _ => {}
    }
    let d = Query::new(a.kind, metric, &a.bytes).distance(&b.bytes);
    Ok(match (a.kind, metric) {
        (Kind::I8, Metric::L1) => Value::Int(d as i64),
        _ => Value::real(d),
    })
}

fn arithmetic(args: &[Value], what: &str, f: fn(f32, f32) -> f32, g: fn(i8, i8) -> i8) -> Result<Value> {
    let (a, b) = two(args)?;
    match a.kind {
        Kind::F32 => Vector::from_numbers(a.numbers().zip(b.numbers()).map(|(a, b)| f(a, b))),
        Kind::Bit => Err(Error::sql(format!("Cannot {what} two bitvectors together."))),
        Kind::I8 => {
            let pairs = a.bytes.iter().zip(b.bytes.iter());
            let bytes: Vec<u8> = pairs.map(|(a, b)| g(*a as i8, *b as i8) as u8).collect();
            made(Kind::I8, &bytes)
        }
    }
}

fn add(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    arithmetic(args, "add", |a, b| a + b, i8::wrapping_add)
}

fn sub(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    arithmetic(args, "subtract", |a, b| a - b, i8::wrapping_sub)
}

/// What 0 / 0 is on the processors that most files come from; Rust leaves its sign open.
const ZERO_BY_ZERO: f32 = f32::from_bits(0xffc0_0000);

fn normalize(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = Vector::of(&args[0])?;
    if v.kind != Kind::F32 {
        return Err(Error::sql("only float32 vectors are supported when normalizing"));
    }
    let length = v.numbers().fold(0f32, |sum, x| sum + x * x).sqrt();
    Vector::from_numbers(
        v.numbers().map(|x| if x == 0.0 && length == 0.0 { ZERO_BY_ZERO } else { x / length }),
    )
}

fn quantize_binary(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = Vector::of(&args[0])?;
    let positive: Vec<bool> = match v.kind {
        Kind::F32 => v.numbers().map(|x| x > 0.0).collect(),
        Kind::I8 => v.bytes.iter().map(|b| (*b as i8) > 0).collect(),
        Kind::Bit => return Err(Error::sql("Can only binary quantize float or int8 vectors")),
    };
    if !positive.len().is_multiple_of(8) {
        return Err(Error::sql("Binary quantization requires vectors with a length divisible by 8"));
    }
    let byte = |bits: &[bool]| bits.iter().rev().fold(0u8, |b, set| b << 1 | u8::from(*set));
    let bytes: Vec<u8> = positive.chunks(8).map(byte).collect();
    made(Kind::Bit, &bytes)
}

fn quantize_int8(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = Vector::f32(&args[0])?;
    match &args[1] {
        Value::Text(t, _) if t.eq_ignore_ascii_case(b"unit") => {}
        _ => return Err(Error::sql("2nd argument to vec_quantize_int8() must be 'unit'.")),
    }
    // The range from -1 to 1 in 255 steps, as 32 bits can say them.
    let step = 2f32 / 255.0;
    let bytes: Vec<u8> = v.numbers().map(|x| ((x + 1.0) / step - 128.0) as i8 as u8).collect();
    made(Kind::I8, &bytes)
}

fn slice(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = Vector::of(&args[0])?;
    let (start, end) = (args[1].to_int() as i32, args[2].to_int() as i32);
    let fail = |what: &str| Err(Error::sql(what));
    if start < 0 {
        return fail("slice 'start' index must be a postive number.");
    }
    if end < 0 {
        return fail("slice 'end' index must be a postive number.");
    }
    let (start, end) = (start as usize, end as usize);
    if start > v.len() {
        return fail("slice 'start' index is greater than the number of dimensions");
    }
    if end > v.len() {
        return fail("slice 'end' index is greater than the number of dimensions");
    }
    if start > end {
        return fail("slice 'start' index is greater than 'end' index");
    }
    if start == end {
        return fail("slice 'start' index is equal to the 'end' index, vectors must have non-zero length");
    }
    if v.kind == Kind::Bit && !start.is_multiple_of(8) {
        return fail("start index must be divisible by 8.");
    }
    if v.kind == Kind::Bit && !end.is_multiple_of(8) {
        return fail("end index must be divisible by 8.");
    }
    made(v.kind, &v.bytes[v.kind.bytes(start)..v.kind.bytes(end)])
}

fn to_json(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = Vector::of(&args[0])?;
    let real = |x: f32| -> Result<String> {
        if x.is_nan() {
            return Ok("null".into());
        }
        let text = iolite_func::printf::format(b"%f", &[Value::Real(f64::from(x))], 1000)?;
        Ok(String::from_utf8_lossy(&text.unwrap_or_default()).into_owned())
    };
    let all: Vec<String> = match v.kind {
        Kind::F32 => v.numbers().map(real).collect::<Result<_>>()?,
        Kind::I8 => v.bytes.iter().map(|b| (*b as i8).to_string()).collect(),
        Kind::Bit => (0..v.len()).map(|k| (v.bytes[k / 8] >> (k % 8) & 1).to_string()).collect(),
    };
    Ok(Value::text(format!("[{}]", all.join(",")))?.with_subtype(b'J'))
}

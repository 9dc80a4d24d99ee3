//! Arithmetic, bit operators and concatenation on values (documentation page `lang_expr`).

use crate::Value;
use crate::num::{self, Number};
use iolite_base::{Bytes, Code, Encoding, Result};

/// The five arithmetic operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

fn number(v: &Value) -> Option<Number> {
    match v {
        Value::Null => None,
        Value::Int(i) => Some(Number::Int(*i)),
        Value::Real(r) => Some(Number::Real(*r)),
        Value::Text(b, _) | Value::Blob(b, _) => {
            let p = num::prefix(b);
            Some(match p.number {
                // An integer that only a NUL ends, not the text, is taken for a real.
                Number::Int(i) if p.whole && b.contains(&0) => Number::Real(i as f64),
                n => n,
            })
        }
    }
}

/// `a op b`. Integer results that do not fit become reals; division by zero is NULL.
#[inline]
pub fn arith(op: Arith, a: &Value, b: &Value) -> Value {
    if let (Value::Int(x), Value::Int(y)) = (a, b) {
        return int_arith(op, *x, *y);
    }
    slow_arith(op, a, b)
}

#[inline]
fn int_arith(op: Arith, x: i64, y: i64) -> Value {
    let exact = match op {
        Arith::Add => x.checked_add(y),
        Arith::Sub => x.checked_sub(y),
        Arith::Mul => x.checked_mul(y),
        Arith::Div if y == 0 => return Value::Null,
        Arith::Div => x.checked_div(y),
        Arith::Rem if y == 0 => return Value::Null,
        Arith::Rem => Some(x.wrapping_rem(y)),
    };
    match exact {
        Some(v) => Value::Int(v),
        None => real_arith(op, x as f64, y as f64),
    }
}

fn real_arith(op: Arith, x: f64, y: f64) -> Value {
    Value::real(match op {
        Arith::Add => x + y,
        Arith::Sub => x - y,
        Arith::Mul => x * y,
        Arith::Div if y == 0.0 => return Value::Null,
        Arith::Div => x / y,
        Arith::Rem => {
            let (i, j) = (num::real_to_int(x), num::real_to_int(y));
            if j == 0 {
                return Value::Null;
            }
            i.wrapping_rem(j) as f64
        }
    })
}

#[inline(never)]
fn slow_arith(op: Arith, a: &Value, b: &Value) -> Value {
    match (number(a), number(b)) {
        (Some(Number::Int(x)), Some(Number::Int(y))) => int_arith(op, x, y),
        // The operands of % are cast to integers: '1e2' is 1, though as a number it is 100.0.
        (Some(_), Some(_)) if op == Arith::Rem => match int_arith(op, a.to_int(), b.to_int()) {
            Value::Int(i) => Value::Real(i as f64),
            other => other,
        },
        // Not of the numbers read: the real of `'-0'` is a negative zero.
        (Some(_), Some(_)) => real_arith(op, a.to_real(), b.to_real()),
        _ => Value::Null,
    }
}

/// `- v`.
pub fn negate(v: &Value) -> Value {
    arith(Arith::Sub, &Value::Int(0), v)
}

/// `a & b`.
pub fn bit_and(a: &Value, b: &Value) -> Value {
    bits(a, b, |x, y| x & y)
}

/// `a | b`.
pub fn bit_or(a: &Value, b: &Value) -> Value {
    bits(a, b, |x, y| x | y)
}

/// `~ v`.
pub fn bit_not(v: &Value) -> Value {
    if v.is_null() { Value::Null } else { Value::Int(!v.to_int()) }
}

/// `a << n`; a negative `n` shifts right.
pub fn shift_left(a: &Value, n: &Value) -> Value {
    bits(a, n, shift)
}

/// `a >> n`, keeping the sign; a negative `n` shifts left.
pub fn shift_right(a: &Value, n: &Value) -> Value {
    bits(a, n, |x, n| shift(x, n.checked_neg().unwrap_or(i64::MAX)))
}

fn shift(x: i64, n: i64) -> i64 {
    match n {
        0..=63 => x.wrapping_shl(n as u32),
        64.. => 0,
        -63..=-1 => x >> -n,
        _ => x >> 63,
    }
}

fn bits(a: &Value, b: &Value, f: impl Fn(i64, i64) -> i64) -> Value {
    if a.is_null() || b.is_null() { Value::Null } else { Value::Int(f(a.to_int(), b.to_int())) }
}

/// `a || b`. `max` is the longest allowed result in bytes.
pub fn concat(a: &Value, b: &Value, max: usize) -> Result<Value> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let (mut room_of_a, mut room_of_b) = ([0; 32], [0; 32]);
    let (x, y) = (a.lent_text(&mut room_of_a), b.lent_text(&mut room_of_b));
    if x.len() + y.len() > max {
        return Err(Code::Toobig.into());
    }
    let mut buf = iolite_base::Buf::with_capacity(x.len() + y.len())?;
    buf.push(x);
    buf.push(y);
    let bytes: Bytes = buf.into_bytes();
    Ok(Value::Text(bytes, 0))
}

/// `a || b` in a database of UTF-16, where a blob's bytes are joined as they are: the halves of a character may come from both.
pub fn concat_utf16(a: &Value, b: &Value, enc: Encoding, max: usize) -> Result<Value> {
    if !matches!(a, Value::Blob(..)) && !matches!(b, Value::Blob(..)) || a.is_null() || b.is_null() {
        return concat(a, b, max);
    }
    let mut whole = a.bytes_in(enc)?;
    whole.extend_from_slice(&b.bytes_in(enc)?);
    let text = crate::utf16::decode(&whole, enc)?;
    if text.len() > max { Err(Code::Toobig.into()) } else { Ok(Value::Text(text, 0)) }
}

/// Three-valued AND.
#[inline]
pub fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Three-valued OR.
#[inline]
pub fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

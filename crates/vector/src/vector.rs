//! A vector as a value: a blob whose subtype says what it is made of, or a text `[1, 2, 3]`.
//!
//! A blob without subtype is one of `f32`, little-endian. Texts are read as loosely as sqlite-vec does.

use iolite_base::{Bytes, Error, Result};
use iolite_value::Value;

/// What a vector is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    F32,
    Bit,
    I8,
}

impl Kind {
    /// The subtype of its blobs.
    pub fn subtype(self) -> u8 {
        match self {
            Kind::F32 => 223,
            Kind::Bit => 224,
            Kind::I8 => 225,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::F32 => "float32",
            Kind::Bit => "bit",
            Kind::I8 => "int8",
        }
    }

    /// The bytes of a vector of so many dimensions.
    pub fn bytes(self, dimensions: usize) -> usize {
        match self {
            Kind::F32 => 4 * dimensions,
            Kind::Bit => dimensions / 8,
            Kind::I8 => dimensions,
        }
    }
}

/// A vector.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub kind: Kind,
    pub bytes: Bytes,
}

const EMPTY: &str = "zero-length vectors are not supported.";

fn found(v: &Value) -> Error {
    let class = match v {
        Value::Null => "NULL",
        Value::Int(_) => "INTEGER",
        _ => "FLOAT",
    };
    Error::sql(format!("Input must have type BLOB (compact format) or TEXT (JSON), found {class}"))
}

impl Vector {
    fn new(kind: Kind, bytes: Bytes) -> Result<Vector> {
        if bytes.is_empty() {
            return Err(Error::sql(EMPTY));
        }
        Ok(Vector { kind, bytes })
    }

    /// What a value stands for.
    pub fn of(v: &Value) -> Result<Vector> {
        match v {
            Value::Blob(b, 224) => Vector::new(Kind::Bit, b.clone()),
            Value::Blob(b, 225) => Vector::new(Kind::I8, b.clone()),
            _ => Vector::f32(v),
        }
    }

    /// A value as numbers of 32 bits, whatever its subtype says.
    pub fn f32(v: &Value) -> Result<Vector> {
        match v {
            Value::Blob(b, _) => {
                let vector = Vector::new(Kind::F32, b.clone())?;
                if !b.len().is_multiple_of(4) {
                    return Err(Error::sql(format!(
                        "invalid float32 vector BLOB length. Must be divisible by 4, found {}",
                        b.len()
                    )));
                }
                Ok(vector)
            }
            Value::Text(t, _) => {
                let mut out = Vec::new();
                read_list(t, |rest| {
                    let (x, used) = real(rest)?;
                    out.extend_from_slice(&(x as f32).to_le_bytes());
                    Ok(used)
                })?;
                Vector::new(Kind::F32, Bytes::copy_of(&out)?)
            }
            _ => Err(found(v)),
        }
    }

    /// A value as integers of 8 bits.
    pub fn i8(v: &Value) -> Result<Vector> {
        match v {
            Value::Blob(b, _) => Vector::new(Kind::I8, b.clone()),
            Value::Text(t, _) => {
                let mut out = Vec::new();
                read_list(t, |rest| {
                    let (n, used) = integer(rest)?;
                    let n = i8::try_from(n)
                        .map_err(|_| Error::sql("JSON parsing error: value out of range for int8"))?;
                    out.push(n as u8);
                    Ok(used)
                })?;
                Vector::new(Kind::I8, Bytes::copy_of(&out)?)
            }
            _ => Err(Error::sql("Unknown type for int8 vector.")),
        }
    }

    /// A value as bits.
    pub fn bit(v: &Value) -> Result<Vector> {
        match v {
            Value::Blob(b, _) => Vector::new(Kind::Bit, b.clone()),
            _ => Err(Error::sql("Unknown type for bitvector.")),
        }
    }

    /// How many dimensions it has.
    pub fn len(&self) -> usize {
        match self.kind {
            Kind::F32 => self.bytes.len() / 4,
            Kind::Bit => self.bytes.len() * 8,
            Kind::I8 => self.bytes.len(),
        }
    }

    /// The numbers of a vector of `f32`.
    pub fn numbers(&self) -> impl Iterator<Item = f32> {
        self.bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
    }

    /// As a value.
    pub fn value(self) -> Value {
        Value::Blob(self.bytes, self.kind.subtype())
    }

    /// A vector of numbers, as a value.
    pub fn from_numbers(numbers: impl Iterator<Item = f32>) -> Result<Value> {
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        made(Kind::F32, &bytes)
    }
}

/// A vector of these bytes, as a value.
pub(crate) fn made(kind: Kind, bytes: &[u8]) -> Result<Value> {
    Ok(Value::Blob(Bytes::copy_of(bytes)?, kind.subtype()))
}

fn broken() -> Error {
    Error::sql("JSON parsing error")
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads a list. `element` reads one from the beginning of what it is given and says how long it is.
fn read_list(text: &[u8], mut element: impl FnMut(&[u8]) -> Result<usize>) -> Result<()> {
    if text.is_empty() {
        return Err(Error::sql(EMPTY));
    }
    let start = text.iter().position(|b| !is_space(*b)).unwrap_or(text.len());
    let Some(mut rest) = text[start..].strip_prefix(b"[") else {
        return Err(Error::sql("JSON array parsing error: Input does not start with '['"));
    };
    while !matches!(rest.first(), None | Some(b']')) {
        let used = element(rest)?;
        rest = rest.get(used..).unwrap_or(&[]);
        let n = rest.iter().take_while(|b| is_space(**b) || **b == b',').count();
        rest = &rest[n..];
    }
    Ok(())
}

/// Where a number begins: behind spaces of any kind and a sign. Answers whether it is negative.
fn sign(text: &[u8]) -> (usize, bool) {
    let mut at = text.iter().take_while(|b| is_space(**b) || matches!(**b, 0x0b | 0x0c)).count();
    let negative = text.get(at) == Some(&b'-');
    at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
    (at, negative)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn integer(text: &[u8]) -> Result<(i64, usize)> {
    let (at, negative) = sign(text);
    let n = digits(&text[at..]);
    let ascii = std::str::from_utf8(&text[at..at + n]).map_err(|_| broken())?;
    let number: i64 = ascii.parse().map_err(|_| broken())?;
    Ok((if negative { -number } else { number }, at + n))
}

fn starts(text: &[u8], word: &str) -> bool {
    text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes()))
}

/// A real as C's `strtod` reads it.
fn real(text: &[u8]) -> Result<(f64, usize)> {
    let (at, negative) = sign(text);
    let signed = |x: f64| if negative { -x } else { x };
    let rest = &text[at..];
    for (word, x) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if starts(rest, word) {
            let x = if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x };
            let mut used = at + word.len();
            if x.is_nan() && text.get(used) == Some(&b'(') {
                let n =
                    text[used + 1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                if text.get(used + 1 + n) == Some(&b')') {
                    used += n + 2;
                }
            }
            return Ok((signed(x), used));
        }
    }
    if starts(rest, "0x")
        && let Some((x, n)) = hexadecimal(&rest[2..])
    {
        return Ok((signed(x), at + 2 + n));
    }
    let mut n = digits(rest);
    let mut any = n;
    if rest.get(n) == Some(&b'.') {
        let after = digits(&rest[n + 1..]);
        any += after;
        if any > 0 {
            n += 1 + after;
        }
    }
    if any == 0 {
        return Err(broken());
    }
    let mantissa = n;
    if matches!(rest.get(n), Some(b'e' | b'E')) {
        let s = usize::from(matches!(rest.get(n + 1), Some(b'-' | b'+')));
        let e = rest.get(n + 1 + s..).map_or(0, digits);
        if e > 0 {
            n += 1 + s + e;
        }
    }
    let ascii = std::str::from_utf8(&rest[..n]).map_err(|_| broken())?;
    let x: f64 = ascii.parse().map_err(|_| broken())?;
    let nonzero = rest[..mantissa].iter().any(|b| (b'1'..=b'9').contains(b));
    if x.is_infinite() || (x == 0.0 && nonzero) {
        return Err(broken());
    }
    Ok((signed(x), at + n))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let (mut x, mut n, mut scale, mut any, mut point) = (0f64, 0, 0i32, false, false);
    while let Some(b) = text.get(n) {
        match (*b as char).to_digit(16) {
            Some(d) => {
                (x, any) = (x * 16.0 + f64::from(d), true);
                scale = scale.saturating_sub(if point { 4 } else { 0 });
            }
            None if *b == b'.' && !point => point = true,
            None => break,
        }
        n += 1;
    }
    if !any {
        return None;
    }
    if matches!(text.get(n), Some(b'p' | b'P')) {
        let (s, negative) = sign(&text[n + 1..]);
        let e = digits(&text[n + 1 + s..]);
        if e > 0 && s <= 1 {
            let digits = &text[n + 1 + s..n + 1 + s + e];
            let exponent = std::str::from_utf8(digits).ok()?.parse::<i32>().unwrap_or(100_000);
            scale = scale.saturating_add(if negative { -exponent } else { exponent });
            n += 1 + s + e;
        }
    }
    Some((x * 2f64.powi(scale), n))
}

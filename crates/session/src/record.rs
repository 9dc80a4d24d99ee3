//! Fields and records as changesets hold them.
//!
//! A field is a byte that says what follows, and its content: 0 for a field without a value, 1 for an integer and 2 for
//! a real of eight bytes each, highest first, 3 for text and 4 for a blob, whose length stands before them as a varint, and 5 for
//! NULL. A record is one field for each column. All that is known to be a record was looked at when it was read, so
//! taking it apart cannot fail; fields are compared as bytes.

use crate::corrupt;
use iolite_base::{Result, varint};
use iolite_value::Value;

/// A field without a value.
pub(crate) const UNDEFINED: &[u8] = &[0];
/// A field that a conflict's resolution has replaced: in the memory of a rebaser alone.
pub(crate) const REPLACED: &[u8] = &[0xff];

/// Whether a field has a value.
pub(crate) fn is_defined(field: &[u8]) -> bool {
    field.first().is_some_and(|k| *k != 0)
}

/// How long the field at the beginning of `b` is, as far as `b` tells: a text may go beyond its end. `None`: there is no field.
pub(crate) fn field_len(b: &[u8]) -> Option<usize> {
    match *b.first()? {
        0 | 5 => Some(1),
        1 | 2 => Some(9),
        3 | 4 => {
            let (n, used) = varint::get(&b[1..])?;
            let n = usize::try_from(n).ok().filter(|n| *n <= i32::MAX as usize)?;
            Some(1 + used + n)
        }
        _ => None,
    }
}

/// The fields of a record, one after the other.
pub(crate) fn fields(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = record;
    std::iter::from_fn(move || {
        let n = if rest.first() == Some(&REPLACED[0]) { 1 } else { field_len(rest)? };
        let (field, behind) = rest.split_at_checked(n)?;
        rest = behind;
        Some(field)
    })
}

/// The field of column `n`; without a value where the record ends before.
pub(crate) fn field(record: &[u8], n: usize) -> &[u8] {
    fields(record).nth(n).unwrap_or(UNDEFINED)
}

/// The value of a field, if it has one.
pub(crate) fn value(field: &[u8]) -> Result<Option<Value>> {
    let word = || field.get(1..9).and_then(|b| b.try_into().ok()).ok_or_else(corrupt);
    let content = || match varint::get(field.get(1..).unwrap_or_default()) {
        Some((_, used)) => Ok(&field[1 + used..]),
        None => Err(corrupt()),
    };
    Ok(match field.first() {
        Some(1) => Some(Value::Int(i64::from_be_bytes(word()?))),
        Some(2) => Some(Value::real(f64::from_be_bytes(word()?))),
        Some(3) => Some(Value::text(content()?)?),
        Some(4) => Some(Value::blob(content()?)?),
        Some(5) => Some(Value::Null),
        _ => None,
    })
}

/// Writes a value as a field.
pub(crate) fn put(out: &mut Vec<u8>, v: &Value) -> Result<()> {
    iolite_base::alloc::reserve(out, 10 + v.bytes().map_or(0, |b| b.len()))?;
    match v {
        Value::Null => out.push(5),
        Value::Int(i) => {
            out.push(1);
            out.extend_from_slice(&i.to_be_bytes());
        }
        Value::Real(r) => {
            out.push(2);
            out.extend_from_slice(&r.to_be_bytes());
        }
        Value::Text(b, _) => put_bytes(out, 3, b),
        Value::Blob(b, _) => put_bytes(out, 4, b),
    }
    Ok(())
}

fn put_bytes(out: &mut Vec<u8>, kind: u8, b: &[u8]) {
    out.push(kind);
    put_varint(out, b.len() as u64);
    out.extend_from_slice(b);
}

/// Writes a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, n: u64) {
    let mut b = [0; varint::MAX_LEN];
    let used = varint::put(&mut b, n);
    out.extend_from_slice(&b[..used]);
}

/// A value as a field of its own.
pub(crate) fn encoded(v: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put(&mut out, v)?;
    Ok(out)
}

/// Whether two fields hold the same: reals by value, all else by bytes.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    match (a.first(), b.first()) {
        (Some(2), Some(2)) => match (value(a), value(b)) {
            (Ok(Some(x)), Ok(Some(y))) => x.to_real() == y.to_real(),
            _ => a == b,
        },
        _ => a == b,
    }
}

//! Sort keys of eight bytes, so that most comparisons of values are those of two numbers.

use crate::sort::first_bytes;
use crate::store::chunk::Field;
use iolite_value::Collation;
use iolite_value::compare::KeyField;

/// An image of a value that sorts as the value does, as far as it goes: different images decide, equal ones do not.
pub(crate) fn sort_key(v: Field<'_>, f: &KeyField) -> u64 {
    let real = |r: f64| {
        let bits = r.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        1 << 62 | ordered >> 2
    };
    let p = match v {
        Field::Null => return if f.desc != f.nulls_large { u64::MAX } else { 0 },
        // Equal images for numbers that are near each other: the comparison decides then.
        Field::Int(i) => real(i as f64),
        Field::Real(r) => real(r + 0.0),
        Field::Text(b) if f.coll == Collation::Binary => 2 << 62 | first_bytes(b) >> 2,
        Field::Text(_) => 2 << 62,
        Field::Blob(_) => 3 << 62,
    };
    if f.desc { !p } else { p }
}

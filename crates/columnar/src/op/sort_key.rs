//! Sort keys of eight bytes, so that most comparisons of values are those of two numbers.

use crate::store::chunk::Field;
use iolite_value::compare::KeyField;
use iolite_value::order::image;

/// An image of a value that sorts as the value does, as far as it goes: different images decide, equal ones do not.
pub(crate) fn sort_key(v: Field<'_>, f: &KeyField) -> u64 {
    image(v.as_ref(), f)
}

//! Pointers that pass through SQL as values (documentation page `bindptr`).

use iolite::engine::Value;
use std::ffi::c_void;
use std::ptr::null_mut;

pub(crate) use iolite_value::POINTER;

/// A pointer of the program, under a name, as a value.
pub(crate) fn of_pointer(p: *mut c_void, name: &[u8]) -> iolite::Result<Value> {
    if p.is_null() {
        return Ok(Value::Null);
    }
    let mut bytes = (p as usize as u64).to_ne_bytes().to_vec();
    bytes.extend(name);
    Ok(Value::blob(&bytes)?.with_subtype(POINTER))
}

/// The pointer in the bytes of such a value, and its name.
pub(crate) fn pointer_in(b: &[u8]) -> Option<(*mut c_void, &[u8])> {
    let (p, name) = b.split_first_chunk::<8>()?;
    Some((u64::from_ne_bytes(*p) as usize as *mut c_void, name))
}

/// The pointer that a value stands for, if it has this name; NULL otherwise.
pub(crate) fn pointer_of(v: &Value, name: &[u8]) -> *mut c_void {
    match v {
        Value::Blob(b, POINTER) => pointer_in(b).filter(|p| p.1 == name).map_or(null_mut(), |p| p.0),
        _ => null_mut(),
    }
}

//! Values as contents show them: long ones by their lengths and digests.

use crate::rng::digest;
use iolite::engine::Value;

/// Appends a value as contents show it.
pub(crate) fn cell(v: &Value, out: &mut String) {
    use std::fmt::Write;
    let _ = match v {
        Value::Null => write!(out, "|null"),
        Value::Int(n) => write!(out, "|{n}"),
        Value::Real(r) => write!(out, "|{r:?}"),
        Value::Text(b, _) if b.len() <= 24 => write!(out, "|{}", String::from_utf8_lossy(b)),
        Value::Blob(b, _) | Value::Text(b, _) => write!(out, "|{}:{:x}", b.len(), digest(0, b)),
    };
}

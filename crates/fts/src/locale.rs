//! Texts that carry a locale: what `fts5_locale()` answers.
//!
//! Such a value is a blob that begins with random bytes, the same for all connections of the process; locale, zero byte, text
//! follow.

use iolite_ext::Host;
use iolite_value::Value;
use std::borrow::Cow;
use std::sync::OnceLock;

static HEADER: OnceLock<[u8; 16]> = OnceLock::new();

/// The bytes that such values begin with.
pub(crate) fn header(host: &dyn Host) -> &'static [u8; 16] {
    HEADER.get_or_init(|| {
        let mut bytes = [0; 16];
        host.random(&mut bytes);
        bytes
    })
}

/// The text and locale of a value that has one.
pub(crate) fn parts(v: &Value) -> Option<(&[u8], &[u8])> {
    let Value::Blob(b, _) = v else { return None };
    let rest = b.strip_prefix(HEADER.get()?)?;
    let at = rest.iter().position(|b| *b == 0)?;
    Some((&rest[at + 1..], &rest[..at]))
}

/// A value's text as bytes.
pub(crate) fn text(v: &Value) -> Cow<'_, [u8]> {
    match v {
        Value::Null => Cow::Borrowed(&[]),
        Value::Text(b, _) | Value::Blob(b, _) => Cow::Borrowed(b),
        number => Cow::Owned(number.lent_text(&mut [0; 32]).to_vec()),
    }
}

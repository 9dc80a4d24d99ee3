//! Text that is mostly a name: up to 22 bytes lie in the value itself, so that parsing a name allocates nothing.
//!
//! The bytes come from a `str` and are never changed: what lies inside is UTF-8.

use std::fmt;
use std::ops::Deref;

const INSIDE: usize = 22;

/// Whether two names are the same to SQL: the case of ASCII letters does not count. Those of a table often differ in their last
/// letter alone, which is looked at before the others.
#[inline]
pub fn same_name(a: &str, b: &str) -> bool {
    let last = |s: &str| s.as_bytes().last().map_or(0, |b| b | 0x20);
    a.len() == b.len() && last(a) == last(b) && (a == b || a.eq_ignore_ascii_case(b))
}

/// An immutable string.
#[derive(Clone)]
pub struct SmallStr(Repr);

#[derive(Clone)]
enum Repr {
    Inside(u8, [u8; INSIDE]),
    Outside(Box<str>),
}

impl SmallStr {
    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // SAFETY: the first `n` bytes were copied from a `str` of that length.
            Repr::Inside(n, bytes) => unsafe { std::str::from_utf8_unchecked(&bytes[..*n as usize]) },
            Repr::Outside(s) => s,
        }
    }
}

impl From<&str> for SmallStr {
    #[inline]
    fn from(s: &str) -> SmallStr {
        if s.len() > INSIDE {
            return SmallStr(Repr::Outside(s.into()));
        }
        let mut bytes = [0; INSIDE];
        copy(s.as_bytes(), &mut bytes);
        SmallStr(Repr::Inside(s.len() as u8, bytes))
    }
}

/// Copies a short text by two or three words that may overlap: a call of `memcpy` takes longer than most names are.
#[inline]
fn copy(s: &[u8], out: &mut [u8; INSIDE]) {
    let n = s.len();
    if let (Some(first), Some(last)) = (s.first_chunk::<8>(), s.last_chunk::<8>()) {
        if let Some(second) = s.get(8..16) {
            out[8..16].copy_from_slice(second);
        }
        out[n - 8..n].copy_from_slice(last);
        out[..8].copy_from_slice(first);
    } else if let (Some(first), Some(last)) = (s.first_chunk::<4>(), s.last_chunk::<4>()) {
        out[n - 4..n].copy_from_slice(last);
        out[..4].copy_from_slice(first);
    } else if let (Some(first), Some(last)) = (s.first(), s.last()) {
        out[n / 2] = s[n / 2];
        out[n - 1] = *last;
        out[0] = *first;
    }
}

impl From<String> for SmallStr {
    fn from(s: String) -> SmallStr {
        s.as_str().into()
    }
}

impl Deref for SmallStr {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for SmallStr {
    fn eq(&self, other: &SmallStr) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SmallStr {}

impl fmt::Debug for SmallStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for SmallStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long() {
        for n in (0..INSIDE + 2).chain([300]) {
            let wide = (n / 2).min(3);
            let narrow = (0..n - 2 * wide).map(|k| char::from(b'a' + k as u8 % 26));
            let s: String = std::iter::repeat_n('é', wide).chain(narrow).collect();
            let t = SmallStr::from(s.as_str());
            assert_eq!((t.as_str(), t.len()), (s.as_str(), n));
            assert_eq!(t.clone(), t);
            assert_eq!(format!("{t} {t:?}"), format!("{s} {s:?}"));
        }
    }
}

//! Text that is mostly a name: up to 22 bytes lie in the value itself, so that parsing a name allocates nothing.
//!
//! The bytes come from a `str` and are never changed: what lies inside is UTF-8.

use std::fmt;
use std::ops::Deref;

const INSIDE: usize = 22;

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
        bytes[..s.len()].copy_from_slice(s.as_bytes());
        SmallStr(Repr::Inside(s.len() as u8, bytes))
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
        for n in [0, 1, INSIDE - 1, INSIDE, INSIDE + 1, 300] {
            let s = "é".repeat(n / 2) + &"x".repeat(n % 2);
            let t = SmallStr::from(s.as_str());
            assert_eq!((t.as_str(), t.len()), (s.as_str(), n));
            assert_eq!(t.clone(), t);
            assert_eq!(format!("{t} {t:?}"), format!("{s} {s:?}"));
        }
    }
}

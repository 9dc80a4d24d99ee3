//! Collating sequences: the three built-in ones and those of users.

use crate::utf16;
use iolite_base::Encoding;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

/// A user-defined collating sequence. It must be a total order on text; see `c3ref/create_collation`.
pub trait Collate {
    /// Compares two texts in UTF-8.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// It stands for one that nobody has registered: nothing may be compared by it.
    fn is_missing(&self) -> bool {
        false
    }
}

/// What stands for a collating sequence that nobody has registered.
struct Missing;

impl Collate for Missing {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        debug_assert!(false, "a comparison by a collating sequence that is missing");
        a.cmp(b)
    }

    fn is_missing(&self) -> bool {
        true
    }
}

/// A collating sequence, resolved.
#[derive(Clone, Default)]
pub enum Collation {
    /// Byte order.
    #[default]
    Binary,
    /// ASCII letters compare equal regardless of case.
    Nocase,
    /// Trailing spaces are ignored.
    Rtrim,
    /// Byte order of the text's UTF-16 form: BINARY in a UTF-16 database.
    Binary16(Encoding),
    /// A user's.
    Custom(Rc<Custom>),
}

const _: () = assert!(size_of::<Collation>() == 16);

/// A user's collating sequence.
pub struct Custom {
    /// Its name.
    pub name: Rc<str>,
    /// Its code.
    pub code: Rc<dyn Collate>,
}

impl Collation {
    /// One of the three that every connection has, for a database of this encoding.
    pub fn builtin(name: &str, enc: Encoding) -> Option<Collation> {
        Some(if name.eq_ignore_ascii_case("BINARY") {
            if enc == Encoding::Utf8 { Collation::Binary } else { Collation::Binary16(enc) }
        } else if name.eq_ignore_ascii_case("NOCASE") {
            Collation::Nocase
        } else if name.eq_ignore_ascii_case("RTRIM") {
            Collation::Rtrim
        } else {
            return None;
        })
    }

    /// Stands for one that nobody has registered.
    pub fn missing(name: &str) -> Collation {
        Collation::Custom(Rc::new(Custom { name: name.into(), code: Rc::new(Missing) }))
    }

    /// Whether it is [`Collation::missing`].
    pub fn is_missing(&self) -> bool {
        matches!(self, Collation::Custom(c) if c.code.is_missing())
    }

    /// The name, as EXPLAIN prints it.
    pub fn name(&self) -> &str {
        match self {
            Collation::Binary | Collation::Binary16(_) => "BINARY",
            Collation::Nocase => "NOCASE",
            Collation::Rtrim => "RTRIM",
            Collation::Custom(c) => &c.name,
        }
    }

    /// Compares two texts.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Collation::Binary => a.cmp(b),
            _ => self.compare_other(a, b),
        }
    }

    #[inline(never)]
    fn compare_other(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Collation::Binary => a.cmp(b),
            Collation::Nocase => {
                // As in C, a NUL ends what is compared; then the longer text is the greater one.
                for (x, y) in a.iter().zip(b) {
                    let o = x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase());
                    if o.is_ne() {
                        return o;
                    }
                    if *x == 0 {
                        break;
                    }
                }
                a.len().cmp(&b.len())
            }
            Collation::Rtrim => trim(a).cmp(trim(b)),
            Collation::Binary16(enc) => utf16::compare(a, b, *enc),
            Collation::Custom(c) => c.code.compare(a, b),
        }
    }

    /// Bytes that two texts share exactly if they compare equal; of a user's own sequence nothing is known.
    pub fn fold<'t>(&self, text: &'t [u8]) -> Option<Cow<'t, [u8]>> {
        match self {
            Collation::Binary | Collation::Binary16(_) => Some(text.into()),
            Collation::Nocase => {
                let mut folded = text.to_ascii_lowercase();
                let end = folded.iter().position(|b| *b == 0).unwrap_or(folded.len());
                folded[end..].fill(0);
                Some(folded.into())
            }
            Collation::Rtrim => Some(trim(text).into()),
            Collation::Custom(..) => None,
        }
    }

    /// Whether two texts compare equal only if their bytes are equal.
    #[inline]
    pub fn is_binary(&self) -> bool {
        matches!(self, Collation::Binary | Collation::Binary16(_))
    }

    /// Whether it sorts texts as their UTF-8 bytes sort: BINARY, but not that of a UTF-16 database, which has the same name and is
    /// equal to it.
    #[inline]
    pub fn sorts_bytes(&self) -> bool {
        matches!(self, Collation::Binary)
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        match (self, other) {
            (Collation::Custom(a), Collation::Custom(b)) => Rc::ptr_eq(&a.code, &b.code),
            _ => self.name() == other.name(),
        }
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn trim(s: &[u8]) -> &[u8] {
    let n = s.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
    &s[..n]
}

//! Collating sequences: the three built-in ones and those of users.

use crate::utf16;
use iolite_base::{Encoding, Result};
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

/// Compares regardless of the case of ASCII letters. As in C, a NUL ends what is compared; then the longer text is the greater one.
fn nocase(a: &[u8], b: &[u8]) -> Ordering {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Eight bytes at once, as long as there is no NUL among them.
    let mut same = 0;
    for (x, y) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let (x, y) = (u64::from_be_bytes(*x), u64::from_be_bytes(*y));
        if x.wrapping_sub(ONES) & !x & HIGH != 0 {
            break;
        }
        let (x, y) = (lower(x), lower(y));
        if x != y {
            return x.cmp(&y);
        }
        same += 8;
    }
    for (x, y) in a[same..].iter().zip(&b[same..]) {
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

/// Eight bytes with the ASCII capitals among them made small.
#[inline(always)]
fn lower(x: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Of each byte the lower seven bits, so that sums stay in it: the high bit says from A on, and beyond Z.
    let low = x & !HIGH;
    let from_a = low + ONES * (0x80 - b'A' as u64);
    let beyond_z = low + ONES * (0x7f - b'Z' as u64);
    let capital = from_a & !beyond_z & !x & HIGH;
    x | capital >> 2
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
            Collation::Nocase => nocase(a, b),
            Collation::Rtrim => trim(a).cmp(trim(b)),
            Collation::Binary16(enc) => utf16::compare(a, b, *enc),
            Collation::Custom(c) => c.code.compare(a, b),
        }
    }

    /// How a stored text begins: the bytes of two texts are in the order of these, or equal. Whether they are all that there is to it.
    pub fn start(&self, stored: &[u8], enc: Encoding) -> Result<([u8; 8], bool)> {
        let mut start = [0; 8];
        let decoded;
        let (text, cut) = match self {
            Collation::Custom(..) => return Ok((start, false)),
            Collation::Binary16(e) if *e == enc => {
                return Ok(utf16::start(stored, enc));
            }
            _ if enc == Encoding::Utf8 => (stored, false),
            // Eight characters at the most, and what may be half of one.
            _ => {
                let end =
                    if matches!(self, Collation::Rtrim) { utf16::trimmed(stored, enc) } else { stored.len() };
                decoded = utf16::decode(&stored[..end.min(18)], enc)?;
                (&decoded[..], end > 18)
            }
        };
        let text = if matches!(self, Collation::Rtrim) && !cut { trim(text) } else { text };
        let n = text.len().min(8);
        start[..n].copy_from_slice(&text[..n]);
        if matches!(self, Collation::Nocase) {
            start.make_ascii_lowercase();
            let end = start.iter().position(|b| *b == 0).unwrap_or(8);
            start[end..].fill(0);
        }
        // Zeros might be those of a shorter one.
        Ok((start, !cut && text.len() < 8 && !text.contains(&0)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nocase_is_what_comparing_bytes_in_turn_says() {
        let slowly = |a: &[u8], b: &[u8]| {
            let n = a.iter().position(|c| *c == 0).map_or(a.len(), |n| n + 1);
            let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
            let n = n.min(b.len());
            a[..n].cmp(&b[..n]).then(a.len().cmp(&b.len()))
        };
        let mut x = 1u32;
        let mut draw = |n: u32| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) % n
        };
        let bytes = b"aAbBzZ@[`{09 \0\x80\xc1\xe1\xff";
        for _ in 0..50_000 {
            let mut a: Vec<u8> = (0..draw(30)).map(|_| bytes[draw(18) as usize]).collect();
            if draw(2) == 0 {
                a.retain(|c| *c != 0);
            }
            let mut b = a.clone();
            for _ in 0..draw(3) {
                let at = draw(30) as usize;
                match b.get_mut(at) {
                    Some(c) if draw(2) == 0 => *c ^= 0x20,
                    Some(c) => *c = bytes[draw(18) as usize],
                    None => b.truncate(at / 2),
                }
            }
            assert_eq!(Collation::Nocase.compare(&a, &b), slowly(&a, &b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn starts_are_in_the_order_of_the_texts() {
        let ends = [
            "",
            " ",
            "  ",
            "a",
            "A",
            "ab",
            "aB ",
            "abcdefg",
            "ABCDEFg ",
            "abcdefgh",
            "abcdefghi",
            "abcdefg\0",
            "a\0b",
            "a\0c",
            "\0",
            "z",
            "[",
            "é",
            "É",
            "éa",
            "aé",
            "漢字",
            "a漢字のテスト",
            "abcdefg漢",
            "abcdef\u{1f600}",
            "abcdefg\u{1f600}",
            "abcdefgh\u{1f600}",
            "\u{ffee}",
            "        ",
            "                    x",
            "a                    ",
            "a                    x",
        ];
        for enc in [Encoding::Utf8, Encoding::Utf16le, Encoding::Utf16be] {
            let binary = Collation::builtin("BINARY", enc).unwrap();
            for coll in [binary, Collation::Nocase, Collation::Rtrim] {
                let stored = |t: &str| match enc {
                    Encoding::Utf8 => t.as_bytes().to_vec(),
                    _ => utf16::encode(t.as_bytes(), enc),
                };
                for (a, b) in ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b))) {
                    let want = coll.compare(a.as_bytes(), b.as_bytes());
                    let (x, all_x) = coll.start(&stored(a), enc).unwrap();
                    let (y, all_y) = coll.start(&stored(b), enc).unwrap();
                    let told = x.cmp(&y);
                    assert!(
                        told == want || told.is_eq() && !(all_x && all_y),
                        "{a:?} {b:?} {enc:?} {}",
                        coll.name()
                    );
                }
            }
        }
    }
}

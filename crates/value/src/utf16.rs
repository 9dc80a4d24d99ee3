//! UTF-16 databases: transcoding at the border, and the byte order of BINARY there.

use crate::utf8;
use iolite_base::{Bytes, Encoding, Result};
use std::cmp::Ordering;

/// UTF-16 bytes to UTF-8. An unpaired surrogate gets the three bytes that its number would have, so that [`encode`] gives the
/// same back; an odd last byte is dropped.
pub fn decode(b: &[u8], enc: Encoding) -> Result<Bytes> {
    let mut out = Vec::new();
    iolite_base::alloc::reserve(&mut out, b.len() / 2 * 3)?;
    let mut rest = b;
    while let [x, y, ..] = *rest {
        if let Some(eight) = rest.first_chunk().and_then(|c| eight_of_ascii(c, enc)) {
            out.extend_from_slice(&eight);
            rest = &rest[16..];
            continue;
        }
        let u = unit([x, y], enc);
        rest = &rest[2..];
        let low = match *rest {
            [x, y, ..] if (0xd800..0xdc00).contains(&u) => Some(unit([x, y], enc)),
            _ => None,
        };
        match low.filter(|l| (0xdc00..0xe000).contains(l)) {
            Some(l) => {
                utf8::push(&mut out, 0x10000 + ((u as u32 & 0x3ff) << 10) + (l as u32 & 0x3ff));
                rest = &rest[2..];
            }
            None => utf8::push(&mut out, u as u32),
        }
    }
    Bytes::copy_of(&out)
}

/// A text without its byte-order mark, and the order of its bytes: the mark's, or else `enc`.
pub fn without_mark(b: &[u8], enc: Encoding) -> (&[u8], Encoding) {
    match b {
        [0xfe, 0xff, rest @ ..] => (rest, Encoding::Utf16be),
        [0xff, 0xfe, rest @ ..] => (rest, Encoding::Utf16le),
        _ => (b, enc),
    }
}

/// As [`encode`], for a reader outside: what is no character in UTF-8 is U+FFFD.
pub fn encode_characters(b: &[u8], enc: Encoding) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * b.len());
    for u in units_of(b, |_| Unit::Char(char::REPLACEMENT_CHARACTER)) {
        out.extend_from_slice(&bytes(u, enc));
    }
    out
}

/// UTF-8 bytes to UTF-16, read as leniently as SQLite does ([`crate::utf8`]), but for what [`decode`] made of surrogates.
pub fn encode(b: &[u8], enc: Encoding) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * b.len());
    let mut rest = b;
    while !rest.is_empty() {
        let ascii = rest.iter().position(|c| !c.is_ascii()).unwrap_or(rest.len());
        rest[..ascii].iter().for_each(|c| out.extend_from_slice(&bytes(*c as u16, enc)));
        rest = &rest[ascii..];
        // No character reaches beyond the next of ASCII.
        let other = rest.iter().position(u8::is_ascii).unwrap_or(rest.len());
        units(&rest[..other]).for_each(|u| out.extend_from_slice(&bytes(u, enc)));
        rest = &rest[other..];
    }
    out
}

/// Eight units, if all are of ASCII.
#[inline]
fn eight_of_ascii(b: &[u8; 16], enc: Encoding) -> Option<[u8; 8]> {
    let low = (enc == Encoding::Utf16be) as u32;
    let all = u128::from_le_bytes(*b);
    if all & (u128::MAX / 0xffff * 0xff80).rotate_left(8 * low) != 0 {
        return None;
    }
    // Bytes, then pairs, then fours move next to each other.
    let mut ascii = all >> (8 * low);
    ascii = (ascii | ascii >> 8) & (u128::MAX / 0xffff_ffff * 0xffff);
    ascii = (ascii | ascii >> 16) & (u128::MAX / 0xffff_ffff_ffff_ffff * 0xffff_ffff);
    Some(((ascii | ascii >> 32) as u64).to_le_bytes())
}

fn unit(b: [u8; 2], enc: Encoding) -> u16 {
    if enc == Encoding::Utf16be { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) }
}

fn bytes(u: u16, enc: Encoding) -> [u8; 2] {
    if enc == Encoding::Utf16be { u.to_be_bytes() } else { u.to_le_bytes() }
}

fn units(b: &[u8]) -> impl Iterator<Item = u16> + '_ {
    units_of(b, Unit::Lone)
}

/// `lone`: what a surrogate, U+FFFE and U+FFFF are.
fn units_of(b: &[u8], lone: fn(u16) -> Unit) -> impl Iterator<Item = u16> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (c, end) = (at < b.len()).then(|| utf8::decode(b, at))?;
        let own = &b[at..end];
        at = end;
        Some(match *own {
            // What counts as no character in UTF-8 is a unit here: surrogates, U+FFFE, U+FFFF.
            [0xed, x @ 0xa0..=0xbf, y] => lone(0xd000 | (x as u16 & 0x3f) << 6 | y as u16 & 0x3f),
            [0xef, 0xbf, y @ 0xbe..=0xbf] => lone(0xffc0 | y as u16 & 0x3f),
            _ => Unit::Char(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)),
        })
    })
    .flat_map(|u| {
        let mut pair = [0; 2];
        let n = match u {
            Unit::Lone(u) => {
                pair[0] = u;
                1
            }
            Unit::Char(c) => c.encode_utf16(&mut pair).len(),
        };
        pair.into_iter().take(n)
    })
}

enum Unit {
    Lone(u16),
    Char(char),
}

/// How two UTF-8 texts compare when their UTF-16 forms are compared byte by byte.
pub fn compare(a: &[u8], b: &[u8], enc: Encoding) -> Ordering {
    units(a).flat_map(|u| bytes(u, enc)).cmp(units(b).flat_map(|u| bytes(u, enc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of three of the units that are treated differently.
    #[test]
    fn texts_become_what_their_characters_become() {
        let kinds = [
            0, 0x61, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xfffd,
            0xfffe, 0xffff,
        ];
        for enc in [Encoding::Utf16le, Encoding::Utf16be] {
            for n in 0..kinds.len().pow(3) {
                let three = [n % 15, n / 15 % 15, n / 225].map(|k| kinds[k]);
                let wide: Vec<u8> = three.into_iter().flat_map(|u| bytes(u, enc)).collect();
                let mut want = Vec::new();
                for c in char::decode_utf16(three) {
                    utf8::push(
                        &mut want,
                        c.map_or_else(|lone| lone.unpaired_surrogate() as u32, |c| c as u32),
                    );
                }
                let narrow = decode(&wide, enc).unwrap();
                assert_eq!(&narrow[..], &want[..], "{three:x?}");
                assert_eq!(encode(&narrow, enc), wide, "{three:x?}");
                let plainly: Vec<u8> = units(&narrow).flat_map(|u| bytes(u, enc)).collect();
                assert_eq!(plainly, wide, "{three:x?}");
                let long = [&encode(b"eight of ascii, and so on", enc)[..], &wide].concat();
                assert_eq!(
                    &decode(&long, enc).unwrap()[..],
                    [b"eight of ascii, and so on", &want[..]].concat()
                );
            }
        }
        // An odd last byte is dropped; half a character in UTF-8 counts as one.
        assert_eq!(&decode(b"a\0b", Encoding::Utf16le).unwrap()[..], b"a");
        assert_eq!(encode(b"a\xe2b\x80", Encoding::Utf16be), b"\0a\xff\xfd\0b\0\x80");
    }
}

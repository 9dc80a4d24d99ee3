//! UTF-16 databases: transcoding at the border, and the byte order of BINARY there.

use crate::utf8;
use iolite_base::{Bytes, Encoding, Result};
use std::cmp::Ordering;

/// UTF-16 bytes to UTF-8. An unpaired surrogate gets the three bytes that its number would have, so that [`encode`] gives the
/// same back; an odd last byte is dropped.
pub fn decode(b: &[u8], enc: Encoding) -> Result<Bytes> {
    let units = b.chunks_exact(2).map(|c| unit([c[0], c[1]], enc));
    let mut out = Vec::new();
    iolite_base::alloc::reserve(&mut out, b.len() / 2 * 3)?;
    for c in char::decode_utf16(units) {
        utf8::push(&mut out, c.map_or_else(|lone| lone.unpaired_surrogate() as u32, |c| c as u32));
    }
    Bytes::copy_of(&out)
}

/// UTF-8 bytes to UTF-16, read as leniently as SQLite does ([`crate::utf8`]), but for what [`decode`] made of surrogates.
pub fn encode(b: &[u8], enc: Encoding) -> Vec<u8> {
    units(b).flat_map(|u| bytes(u, enc)).collect()
}

fn unit(b: [u8; 2], enc: Encoding) -> u16 {
    if enc == Encoding::Utf16be { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) }
}

fn bytes(u: u16, enc: Encoding) -> [u8; 2] {
    if enc == Encoding::Utf16be { u.to_be_bytes() } else { u.to_le_bytes() }
}

fn units(b: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (c, end) = (at < b.len()).then(|| utf8::decode(b, at))?;
        let own = &b[at..end];
        at = end;
        Some(match *own {
            // What counts as no character in UTF-8 is a unit here: surrogates, U+FFFE, U+FFFF.
            [0xed, x @ 0xa0..=0xbf, y] => Unit::Lone(0xd000 | (x as u16 & 0x3f) << 6 | y as u16 & 0x3f),
            [0xef, 0xbf, y @ 0xbe..=0xbf] => Unit::Lone(0xffc0 | y as u16 & 0x3f),
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

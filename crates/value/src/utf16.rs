//! UTF-16 databases: transcoding at the border, and the byte order of BINARY there.

use crate::utf8;
use iolite_base::{Bytes, Encoding, Result};
use std::cmp::Ordering;

/// UTF-16 bytes to UTF-8; unpaired surrogates become U+FFFD, an odd last byte is dropped.
pub fn decode(b: &[u8], enc: Encoding) -> Result<Bytes> {
    let units = b.chunks_exact(2).map(|c| unit([c[0], c[1]], enc));
    let mut out = Vec::new();
    iolite_base::alloc::reserve(&mut out, b.len() / 2 * 3)?;
    for c in char::decode_utf16(units) {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Bytes::copy_of(&out)
}

/// UTF-8 bytes to UTF-16, read as leniently as SQLite does ([`crate::utf8`]): surrogates become U+FFFD.
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
        let c;
        (c, at) = (at < b.len()).then(|| utf8::decode(b, at))?;
        Some(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER))
    })
    .flat_map(|c| {
        let mut pair = [0; 2];
        let n = c.encode_utf16(&mut pair).len();
        pair.into_iter().take(n)
    })
}

/// How two UTF-8 texts compare when their UTF-16 forms are compared byte by byte.
pub fn compare(a: &[u8], b: &[u8], enc: Encoding) -> Ordering {
    units(a).flat_map(|u| bytes(u, enc)).cmp(units(b).flat_map(|u| bytes(u, enc)))
}

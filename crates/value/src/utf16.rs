//! UTF-16 databases: transcoding at the border, and the byte order of BINARY there.

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

/// UTF-8 bytes to UTF-16; invalid sequences become U+FFFD.
pub fn encode(b: &[u8], enc: Encoding) -> Vec<u8> {
    units(b).flat_map(|u| bytes(u, enc)).collect()
}

fn unit(b: [u8; 2], enc: Encoding) -> u16 {
    if enc == Encoding::Utf16be { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) }
}

fn bytes(u: u16, enc: Encoding) -> [u8; 2] {
    if enc == Encoding::Utf16be { u.to_be_bytes() } else { u.to_le_bytes() }
}

/// The UTF-16 units of UTF-8 bytes. A malformed sequence, a lead byte with whatever continuation bytes follow it, is one
/// U+FFFD; a continuation byte that follows nothing stands for itself.
fn units(b: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut at = 0;
    let chars = std::iter::from_fn(move || {
        let lead = *b.get(at)?;
        at += 1;
        if lead < 0xc0 {
            return Some(char::from(lead));
        }
        let mut c = match lead {
            0xc0..=0xdf => lead as u32 & 0x1f,
            0xe0..=0xef => lead as u32 & 0x0f,
            0xf0..=0xf7 => lead as u32 & 0x07,
            0xf8..=0xfb => lead as u32 & 0x03,
            0xfc..=0xfd => lead as u32 & 0x01,
            _ => 0,
        };
        while let Some(next) = b.get(at).filter(|n| **n & 0xc0 == 0x80) {
            c = c.wrapping_shl(6).wrapping_add(*next as u32 & 0x3f);
            at += 1;
        }
        Some(
            char::from_u32(c)
                .filter(|_| c >= 0x80 && c & !1 != 0xfffe)
                .unwrap_or(char::REPLACEMENT_CHARACTER),
        )
    });
    chars.flat_map(|c| {
        let mut pair = [0; 2];
        let n = c.encode_utf16(&mut pair).len();
        pair.into_iter().take(n)
    })
}

/// How two UTF-8 texts compare when their UTF-16 forms are compared byte by byte.
pub fn compare(a: &[u8], b: &[u8], enc: Encoding) -> Ordering {
    units(a).flat_map(|u| bytes(u, enc)).cmp(units(b).flat_map(|u| bytes(u, enc)))
}

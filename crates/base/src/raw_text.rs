//! SQL text that is not UTF-8, carried through code that works on `str`.
//!
//! SQLite takes statements as bytes, and a literal or a name keeps the bytes that stand in it. Here a byte that is no part of a
//! character becomes a character of its own: byte `b` (128 to 255) is U+10FF00 + b, among the last of a private plane. A text
//! that has such characters itself has their bytes carried in the same way, so what always holds is
//! `decode(encode(b)) == b`, for all bytes. Texts without such bytes are lent, and cost one search for a byte.
//!
//! Carried are: the text of a statement, names, texts of the schema. Values are bytes and never carried.

use std::borrow::Cow;

/// The first byte of the characters that carry bytes, and the second.
const FIRST: u8 = 0xf4;
const SECOND: u8 = 0x8f;

/// Whether a text may hold characters that carry bytes, or that look so.
#[inline]
pub fn may_carry(text: &[u8]) -> bool {
    // Without a way out within a piece the compiler makes vectors of it.
    text.chunks(256).any(|piece| piece.iter().fold(false, |found, b| found | (*b == FIRST)))
}

/// The character that carries a byte.
fn carrier(b: u8) -> char {
    char::from_u32(0x10_ff00 + b as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A text that carries these bytes.
pub fn encode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(s) = std::str::from_utf8(bytes)
        && !may_carry(bytes)
    {
        return Cow::Borrowed(s);
    }
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 2);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c as u32 >= 0x10_ff80 {
                let mut own = [0; 4];
                out.extend(c.encode_utf8(&mut own).bytes().map(carrier));
            } else {
                out.push(c);
            }
        }
        out.extend(chunk.invalid().iter().map(|b| carrier(*b)));
    }
    Cow::Owned(out)
}

/// The bytes that a text carries.
pub fn decode(text: &str) -> Cow<'_, [u8]> {
    let b = text.as_bytes();
    if !may_carry(b) {
        return Cow::Borrowed(b);
    }
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while i < b.len() {
        match b[i..] {
            [FIRST, SECOND, third @ (0xbe | 0xbf), last, ..] => {
                out.push((third & 1) << 6 | 0x80 | (last & 0x3f));
                i += 4;
            }
            _ => {
                out.push(b[i]);
                i += 1;
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let last = "a\u{10ff80}\u{10ffff}\u{10ff7f}é".as_bytes();
        for bytes in [&all[..], last, b"k\xe0v", b"\xf4\x8f\xbe", b"\xf4\x8f\xbe\x80\xff", b"plain", b""] {
            let text = encode(bytes);
            assert_eq!(decode(&text), bytes);
            // Carried again, it is the carried text that comes back.
            assert_eq!(decode(&encode(text.as_bytes())), text.as_bytes());
        }
        assert!(matches!(encode("plain é".as_bytes()), Cow::Borrowed(_)));
        for b in 0x80..=0xff_u8 {
            assert_eq!(decode(&encode(&[b])), [b].as_slice());
        }
    }
}

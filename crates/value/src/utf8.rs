//! SQLite's lenient UTF-8: every run of bytes is text.
//!
//! A byte from 0xc0 up starts a character and takes all continuation bytes behind it; any other byte is a
//! character of its own. Functions that work on C strings in SQLite see text only up to the first NUL.

/// The text up to its first NUL.
#[inline]
pub fn to_nul(text: &[u8]) -> &[u8] {
    // Of a short text, looking at its bytes takes less than calling somebody.
    let end = match text.len() {
        0..8 => text.iter().position(|b| *b == 0),
        8..=16 if has_no_nul(text) => None,
        _ => memchr::memchr(0, text),
    };
    &text[..end.unwrap_or(text.len())]
}

/// Whether no byte of 8 to 16 is NUL.
#[inline]
fn has_no_nul(text: &[u8]) -> bool {
    let nul = |w: &[u8; 8]| {
        let w = u64::from_ne_bytes(*w);
        w.wrapping_sub(0x0101_0101_0101_0101) & !w & 0x8080_8080_8080_8080
    };
    // Both may overlap.
    matches!((text.first_chunk(), text.last_chunk()), (Some(a), Some(b)) if nul(a) | nul(b) == 0)
}

/// Whether each byte is a character, and none is NUL.
#[inline]
pub fn is_simple(text: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A byte of zero borrows from its high bit, and none does where all are 1 to 127.
    let word = |w: [u8; 8]| {
        let w = u64::from_ne_bytes(w);
        (w.wrapping_sub(0x0101_0101_0101_0101) | w) & HIGH
    };
    match text.last_chunk::<8>() {
        None => text.iter().all(|b| (1..128).contains(b)),
        // The last eight bytes may overlap those before.
        Some(last) => text.as_chunks::<8>().0.iter().fold(word(*last), |all, w| all | word(*w)) == 0,
    }
}

/// The number of characters before the first NUL: what `length` says.
#[inline]
pub fn length(text: &[u8]) -> usize {
    if is_simple(text) { text.len() } else { count(to_nul(text)) }
}

/// Where the characters from number `from` on, at most `len` of them, begin and end, before the first NUL.
#[inline]
pub fn part(text: &[u8], from: usize, len: usize) -> (usize, usize) {
    let end = from.saturating_add(len).min(text.len());
    if is_simple(&text[..end]) {
        return (from.min(end), end);
    }
    let text = to_nul(text);
    let from = nth(text, from);
    (from, from + nth(&text[from..], len))
}

/// Where the character that starts at `i` ends.
#[inline]
pub fn after(text: &[u8], i: usize) -> usize {
    let mut j = i + 1;
    if text[i] >= 0xc0 {
        while j < text.len() && text[j] & 0xc0 == 0x80 {
            j += 1;
        }
    }
    j
}

/// The code point at `i` and where it ends. Overlong forms, surrogates and the like are U+FFFD.
#[inline]
pub fn decode(text: &[u8], i: usize) -> (u32, usize) {
    let b = text[i];
    if b < 0xc0 {
        return (b as u32, i + 1);
    }
    let first = match b {
        0xc0..=0xdf => b & 0x1f,
        0xe0..=0xef => b & 0x0f,
        0xf0..=0xf7 => b & 0x07,
        0xf8..=0xfb => b & 0x03,
        0xfc..=0xfd => b & 0x01,
        _ => 0,
    };
    let (mut c, mut end) = (first as u32, i + 1);
    while let Some(&b) = text.get(end)
        && b & 0xc0 == 0x80
    {
        c = c.wrapping_shl(6).wrapping_add((b & 0x3f) as u32);
        end += 1;
    }
    let bad = c < 0x80 || c & 0xffff_f800 == 0xd800 || c & 0xffff_fffe == 0xfffe;
    (if bad { 0xfffd } else { c }, end)
}

/// The number of characters.
#[inline]
pub fn count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let (mut i, mut n) = (0, 0);
    while i < text.len() {
        i = after(text, i);
        n += 1;
    }
    n
}

/// Where the character number `n` starts, or the end of the text.
#[inline]
pub fn nth(text: &[u8], n: usize) -> usize {
    let (mut i, mut left) = (0, n);
    while left > 0 && i < text.len() {
        i = after(text, i);
        left -= 1;
    }
    i
}

/// Puts the code point `c`, up to 21 bits, surrogates included, at the start of `out`; how many bytes it takes.
#[inline]
pub fn put(out: &mut [u8], c: u32) -> usize {
    let last = 0x80 | (c & 0x3f) as u8;
    let third = 0x80 | (c >> 6 & 0x3f) as u8;
    match c {
        0..=0x7f => {
            out[0] = c as u8;
            1
        }
        0x80..=0x7ff => {
            out[..2].copy_from_slice(&[0xc0 | (c >> 6) as u8, last]);
            2
        }
        0x800..=0xffff => {
            out[..3].copy_from_slice(&[0xe0 | (c >> 12) as u8, third, last]);
            3
        }
        _ => {
            out[..4].copy_from_slice(&[
                0xf0 | (c >> 18 & 0x07) as u8,
                0x80 | (c >> 12 & 0x3f) as u8,
                third,
                last,
            ]);
            4
        }
    }
}

/// Appends the code point `c`, up to 21 bits, surrogates included.
pub fn push(out: &mut Vec<u8>, c: u32) {
    let mut bytes = [0; 4];
    let n = put(&mut bytes, c);
    out.extend_from_slice(&bytes[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_texts_are_those_of_bytes_1_to_127_wherever_the_others_stand() {
        for n in 0..40 {
            let text = vec![b'x'; n];
            assert!(is_simple(&text));
            for at in 0..n {
                for (byte, simple) in [(0, false), (1, true), (127, true), (128, false), (255, false)] {
                    let mut text = text.clone();
                    text[at] = byte;
                    assert_eq!(is_simple(&text), simple, "{byte} at {at} of {n}");
                }
            }
        }
    }

    #[test]
    fn characters_are_counted_and_cut_before_the_first_nul() {
        for (text, n) in [("", 0), ("häuser", 6), ("ab\0cdefghijk", 2), ("日本語", 3)] {
            assert_eq!(length(text.as_bytes()), n, "{text}");
        }
        let cut = |t: &'static str, from, len| {
            let (from, to) = part(t.as_bytes(), from, len);
            &t[from..to]
        };
        assert_eq!(cut("häuser", 1, 2), "äu");
        assert_eq!(cut("abcdefghijkl", 2, 3), "cde");
        assert_eq!(cut("abc", 5, 3), "");
        assert_eq!(cut("abc", 1, usize::MAX), "bc");
        assert_eq!(cut("ab\0cdefghijk", 1, 5), "b");
        assert_eq!(cut("日本語", 2, 9), "語");
    }
}

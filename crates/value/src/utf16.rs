//! UTF-16 databases: transcoding at the border, and the byte order of BINARY there.

use crate::{Value, utf8};
use iolite_base::{Bytes, Encoding, Result};
use std::cmp::Ordering;

/// UTF-16 bytes to UTF-8. An unpaired surrogate gets the three bytes that its number would have, so that [`encode`] gives the
/// same back; an odd last byte is dropped.
pub fn decode(b: &[u8], enc: Encoding) -> Result<Bytes> {
    let b = whole_units(b);
    if b.len() <= 2 * SHORT {
        let mut out = [0; 3 * SHORT];
        let n = narrow(b, enc, &mut out);
        return Bytes::copy_of(&out[..n]);
    }
    let mut out = Vec::new();
    let mut rest = b;
    iolite_base::alloc::reserve(&mut out, b.len() / 2)?;
    let mut chunks = b.chunks_exact(2 * STRETCH);
    while let Some(ascii) = chunks.next().and_then(|c| of_ascii::<STRETCH>(c, enc)) {
        out.extend_from_slice(&ascii);
        rest = &rest[2 * STRETCH..];
    }
    let (at, room) = (out.len(), rest.len() / 2 * 3);
    iolite_base::alloc::reserve(&mut out, room)?;
    out.resize(at + room, 0);
    let n = narrow(rest, enc, &mut out[at..]);
    Bytes::copy_of(&out[..at + n])
}

/// As [`decode`], to a value that keeps its memory where it can.
pub fn decode_into(b: &[u8], enc: Encoding, to: &mut Value) -> Result<()> {
    let b = whole_units(b);
    if b.len() <= 2 * SHORT {
        let mut out = [0; 3 * SHORT];
        let n = narrow(b, enc, &mut out);
        return to.set_text(&out[..n]);
    }
    *to = Value::Text(decode(b, enc)?, 0);
    Ok(())
}

/// Units to UTF-8, three bytes each at the most; how many bytes they come to.
fn narrow(b: &[u8], enc: Encoding, out: &mut [u8]) -> usize {
    let (mut at, mut n) = (0, 0);
    while let Some(&[x, y]) = b.get(at..at + 2) {
        if let Some(four) = b[at..].first_chunk().and_then(|c| four_of_ascii(*c, enc)) {
            out[n..n + 4].copy_from_slice(&four);
            (at, n) = (at + 8, n + 4);
            continue;
        }
        // The last three or less are looked at together with those before.
        if at == 2 * n
            && at + 8 > b.len()
            && let Some(four) = b.last_chunk().and_then(|c| four_of_ascii(*c, enc))
        {
            n = b.len() / 2;
            out[n - 4..n].copy_from_slice(&four);
            break;
        }
        let u = unit([x, y], enc);
        if u < 0x80 {
            out[n] = u as u8;
            (at, n) = (at + 2, n + 1);
            continue;
        }
        at += 2;
        let low = match b.get(at..at + 2) {
            Some(&[x, y]) if (0xd800..0xdc00).contains(&u) => Some(unit([x, y], enc)),
            _ => None,
        };
        n += match low.filter(|l| (0xdc00..0xe000).contains(l)) {
            Some(l) => {
                at += 2;
                utf8::put(&mut out[n..], 0x10000 + ((u as u32 & 0x3ff) << 10) + (l as u32 & 0x3ff))
            }
            None => utf8::put(&mut out[n..], u as u32),
        };
    }
    n
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
    let mut out = vec![0; encoded_len(b)];
    encode_to(b, enc, &mut out);
    out
}

/// How many bytes [`encode`] makes of a text.
pub fn encoded_len(b: &[u8]) -> usize {
    if b.is_ascii() {
        return 2 * b.len();
    }
    let (mut i, mut n) = (0, 0);
    while i < b.len() {
        if b[i].is_ascii() {
            (i, n) = (i + 1, n + 2);
            continue;
        }
        let (_, units, end) = units_at(b, i, Unit::Lone);
        (i, n) = (end, n + 2 * units);
    }
    n
}

/// As [`encode`], to a place of as many bytes as [`encoded_len`] says.
pub fn encode_to(b: &[u8], enc: Encoding, out: &mut [u8]) {
    let (mut i, mut at) = (0, 0);
    while i < b.len() {
        if let Some(eight) = b[i..].first_chunk().and_then(|c| eight_as_units(*c, enc)) {
            out[at..at + 16].copy_from_slice(&eight);
            (i, at) = (i + 8, at + 16);
            continue;
        }
        if b[i].is_ascii() {
            out[at..at + 2].copy_from_slice(&bytes(b[i] as u16, enc));
            (i, at) = (i + 1, at + 2);
            continue;
        }
        let (two, units, end) = units_at(b, i, Unit::Lone);
        for u in &two[..units] {
            out[at..at + 2].copy_from_slice(&bytes(*u, enc));
            at += 2;
        }
        i = end;
    }
}

/// Texts of no more units are decoded where no memory has to be found.
const SHORT: usize = 64;

/// So many units are looked at together.
const STRETCH: usize = 32;

/// Four units, if all are of ASCII.
#[inline(always)]
fn four_of_ascii(b: [u8; 8], enc: Encoding) -> Option<[u8; 4]> {
    let x = u64::from_le_bytes(b);
    let x = if enc == Encoding::Utf16be { x.rotate_right(8) } else { x };
    let x = (x & 0xff80_ff80_ff80_ff80 == 0).then_some(x)?;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    Some(((x | x >> 16) as u32).to_le_bytes())
}

/// Eight bytes of ASCII as units, if all are.
#[inline(always)]
fn eight_as_units(b: [u8; 8], enc: Encoding) -> Option<[u8; 16]> {
    let x = u64::from_le_bytes(b);
    let spread = |x: u64| {
        let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
        (x | x << 8) & 0x00ff_00ff_00ff_00ff
    };
    let x = (x & 0x8080_8080_8080_8080 == 0).then_some(x)?;
    let both = u128::from(spread(x & 0xffff_ffff)) | u128::from(spread(x >> 32)) << 64;
    Some(if enc == Encoding::Utf16be { both << 8 } else { both }.to_le_bytes())
}

/// Some units, if all are of ASCII.
#[inline]
fn of_ascii<const N: usize>(b: &[u8], enc: Encoding) -> Option<[u8; N]> {
    let swap = enc == Encoding::Utf16be;
    let (mut all, mut out) = (0, [0; N]);
    for (to, from) in out.iter_mut().zip(b.chunks_exact(2)) {
        let u = u16::from_le_bytes([from[0], from[1]]);
        let u = if swap { u.swap_bytes() } else { u };
        all |= u;
        *to = u as u8;
    }
    (all < 0x80).then_some(out)
}

/// How a stored text compares with one in UTF-8, where letters of ASCII decide: under BINARY, or under NOCASE with `fold`. `None`: others do.
pub fn compare_stored(stored: &[u8], key: &[u8], enc: Encoding, fold: bool) -> Option<Ordering> {
    let lower = |c: u8| if fold { c.to_ascii_lowercase() } else { c };
    let mut at = 0;
    // Four units that are equal, and no NUL, decide nothing.
    while let (Some(units), Some(four)) = (stored[2 * at..].first_chunk(), key[at..].first_chunk())
        && four_of_ascii(*units, enc) == Some(*four)
        && !(fold && four.contains(&0))
    {
        at += 4;
    }
    for c in stored[2 * at..].chunks_exact(2) {
        let u = unit([c[0], c[1]], enc);
        let Some(k) = key.get(at) else { return Some(Ordering::Greater).filter(|_| u > 0) };
        if u >= 0x80 || !k.is_ascii() || fold && (u == 0 || *k == 0) {
            return None;
        }
        let o = lower(u as u8).cmp(&lower(*k));
        if o.is_ne() {
            return Some(o);
        }
        at += 1;
    }
    Some(if at < key.len() { Ordering::Less } else { Ordering::Equal })
}

/// How a text of ASCII begins as it is stored: so many units, and whether that is all of it. `None`: it does not begin with one.
pub fn stored_start(key: &[u8], enc: Encoding) -> Option<(Stored, usize, bool)> {
    let (mut out, mut n) = ([0; 2 * STRETCH], 0);
    while let Some(eight) = key[n..].first_chunk().and_then(|c| eight_as_units(*c, enc))
        && let Some(to) = out.get_mut(2 * n..2 * n + 16)
    {
        to.copy_from_slice(&eight);
        n += 8;
    }
    while let (Some(c), Some(to)) = (key.get(n).filter(|c| c.is_ascii()), out.get_mut(2 * n..2 * n + 2)) {
        to.copy_from_slice(&bytes(*c as u16, enc));
        n += 1;
    }
    (n > 0).then_some((out, n, n == key.len()))
}

/// Room for the start of a stored text.
pub type Stored = [u8; 2 * STRETCH];

/// A stored text without an odd last byte.
pub fn whole_units(stored: &[u8]) -> &[u8] {
    &stored[..stored.len() & !1]
}

/// How a stored text begins, where they are compared byte by byte, and whether that is all there is to it: a byte for each of eight units, as long as
/// these say it all. What follows one of more than eight bits is greater than all that may follow a smaller one.
pub fn start(stored: &[u8], enc: Encoding) -> ([u8; 8], bool) {
    let whole = stored.len() < 16;
    let mut first = [0; 16];
    let n = stored.len().min(16) & !1;
    first[..n].copy_from_slice(&stored[..n]);
    let swap = if enc == Encoding::Utf16be { 8 } else { 0 };
    let two = [0, 8]
        .map(|at| u64::from_le_bytes(first[at..at + 8].try_into().expect("eight bytes")).rotate_right(swap));
    // What is left is shorter, or has a unit of more than eight bits.
    if (two[0] | two[1]) & 0xff00_ff00_ff00_ff00 == 0 {
        let pack = |x: u64| {
            let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
            (x | x >> 16) as u32
        };
        let start = u64::from(pack(two[0])) | u64::from(pack(two[1])) << 32;
        let start = start.to_le_bytes();
        return (start, whole && start[..n / 2].iter().all(|u| *u != 0));
    }
    let mut start = [0; 8];
    for (n, u) in stored.chunks_exact(2).take(8).enumerate() {
        let u = unit([u[0], u[1]], enc);
        start[n] = u as u8;
        if u > 0xff {
            let from = if enc == Encoding::Utf16be { n } else { n + 1 };
            start[from..].fill(0xff);
            break;
        }
    }
    (start, false)
}

/// The length of a stored text without the spaces at its end.
pub fn trimmed(stored: &[u8], enc: Encoding) -> usize {
    let units = whole_units(stored).chunks_exact(2);
    2 * units.rev().skip_while(|u| unit([u[0], u[1]], enc) == b' ' as u16).count()
}

/// What two stored texts have behind the units that they share at their start. All of them, if a NUL is among these: NOCASE looks no further.
pub fn rests<'a>(a: &'a [u8], b: &'a [u8], enc: Encoding) -> (&'a [u8], &'a [u8]) {
    let mut at = alike(a, b) & !1;
    if a[..at].chunks_exact(2).any(|u| u == [0, 0]) {
        return (a, b);
    }
    // Its other half may differ.
    if at > 0 && (0xd800..0xdc00).contains(&unit([a[at - 2], a[at - 1]], enc)) {
        at -= 2;
    }
    (&a[at..], &b[at..])
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
        let (pair, n, end) = (at < b.len()).then(|| units_at(b, at, lone))?;
        at = end;
        Some(pair.into_iter().take(n))
    })
    .flatten()
}

/// The units of the character at `i`, how many these are, and where it ends.
#[inline]
fn units_at(b: &[u8], i: usize, lone: fn(u16) -> Unit) -> ([u16; 2], usize, usize) {
    let (c, end) = utf8::decode(b, i);
    let unit = match b[i..end] {
        // What counts as no character in UTF-8 is a unit here: surrogates, U+FFFE, U+FFFF.
        [0xed, x @ 0xa0..=0xbf, y] => lone(0xd000 | (x as u16 & 0x3f) << 6 | y as u16 & 0x3f),
        [0xef, 0xbf, y @ 0xbe..=0xbf] => lone(0xffc0 | y as u16 & 0x3f),
        _ => Unit::Char(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)),
    };
    let mut pair = [0; 2];
    let n = match unit {
        Unit::Lone(u) => {
            pair[0] = u;
            1
        }
        Unit::Char(c) => c.encode_utf16(&mut pair).len(),
    };
    (pair, n, end)
}

enum Unit {
    Lone(u16),
    Char(char),
}

/// How two UTF-8 texts compare when their UTF-16 forms are compared byte by byte. Texts often begin alike: the characters decide that
/// stand where their bytes first differ.
pub fn compare(a: &[u8], b: &[u8], enc: Encoding) -> Ordering {
    let mut at = alike(a, b);
    match (a.get(at), b.get(at)) {
        (Some(x), Some(y)) if x.is_ascii() && y.is_ascii() => return x.cmp(y),
        (None, None) => return Ordering::Equal,
        _ => {}
    }
    // What is no continuation of a character begins one.
    let within = |t: &[u8], at: usize| t.get(at).is_some_and(|b| b & 0xc0 == 0x80);
    while at > 0 && (within(a, at) || within(b, at)) {
        at -= 1;
    }
    units(&a[at..]).flat_map(|u| bytes(u, enc)).cmp(units(&b[at..]).flat_map(|u| bytes(u, enc)))
}

/// How many bytes two texts share at their start.
fn alike(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 32;
    let mut at = 0;
    while let (Some(x), Some(y)) = (a[at..].first_chunk::<STEP>(), b[at..].first_chunk())
        && x == y
    {
        at += STEP;
    }
    while let (Some(x), Some(y)) = (a[at..].first_chunk(), b[at..].first_chunk()) {
        let other = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if other != 0 {
            return at + other.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
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
                let long = [&encode(&[b'y'; 77], enc)[..], &wide].concat();
                assert_eq!(&decode(&long, enc).unwrap()[..], [&[b'y'; 77], &want[..]].concat());
            }
        }
        // Texts that begin alike, with halves of characters among them.
        let ends: [&[u8]; 15] = [
            b"",
            b" ",
            b"  \x01",
            "\u{1f601}".as_bytes(),
            b"a",
            b"B",
            b"\0",
            "\u{e9}".as_bytes(),
            "\u{161}".as_bytes(),
            "\u{ffee}".as_bytes(),
            "\u{1f600}".as_bytes(),
            b"\xc3",
            b"\x80",
            b"\xa9z",
            b"\xf0\x9f",
        ];
        let starts = [&b""[..], b"c", b"\xc3", b"\xe2\x82", &[b'x'; 31], &[b'x'; 64], "\u{161}".as_bytes()];
        for enc in [Encoding::Utf16le, Encoding::Utf16be] {
            for start in starts {
                for (a, b) in ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b))) {
                    let (a, b) = ([start, a].concat(), [start, b].concat());
                    let want = encode(&a, enc).cmp(&encode(&b, enc));
                    assert_eq!(compare(&a, &b, enc), want, "{a:x?} {b:x?}");
                    for (fold, coll) in
                        [(false, crate::Collation::Binary16(enc)), (true, crate::Collation::Nocase)]
                    {
                        let stored = encode(&a, enc);
                        let told = compare_stored(&stored, &b, enc, fold);
                        let plainly = coll.compare(&decode(&stored, enc).unwrap(), &b);
                        assert_eq!(told.unwrap_or(plainly), plainly, "{a:x?} {b:x?} {fold}");
                    }
                    let stored = [encode(&a, enc), encode(&b, enc)];
                    let narrow = stored.each_ref().map(|t| decode(t, enc).unwrap());
                    let (x, y) = rests(&stored[0], &stored[1], enc);
                    let (x, y) = (decode(x, enc).unwrap(), decode(y, enc).unwrap());
                    for coll in [crate::Collation::Nocase, crate::Collation::Rtrim] {
                        let want = coll.compare(&narrow[0], &narrow[1]);
                        assert_eq!(coll.compare(&x, &y), want, "{a:x?} {b:x?}");
                    }
                    let coll = crate::Collation::Binary16(enc);
                    let want = coll.compare(&narrow[0], &narrow[1]);
                    let [(x, all_x), (y, all_y)] = stored.each_ref().map(|t| super::start(t, enc));
                    assert!(x.cmp(&y).is_eq() || x.cmp(&y) == want, "{a:x?} {b:x?}");
                    assert!(!(all_x && all_y && x == y) || want.is_eq(), "{a:x?} {b:x?}");
                    assert_eq!(whole_units(&stored[0]).cmp(whole_units(&stored[1])), want, "{a:x?} {b:x?}");
                }
            }
        }
        // An odd last byte is dropped; half a character in UTF-8 counts as one.
        assert_eq!(&decode(b"a\0b", Encoding::Utf16le).unwrap()[..], b"a");
        assert_eq!(encode(b"a\xe2b\x80", Encoding::Utf16be), b"\0a\xff\xfd\0b\0\x80");
    }
}

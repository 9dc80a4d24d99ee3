//! Varints (file format, section 1.6): big-endian base 128, one to nine bytes, the ninth with eight bits.

/// The longest varint, in bytes.
pub const MAX_LEN: usize = 9;

/// Reads the varint at the start of `b`: its value and length. `None` if `b` ends inside it.
#[inline(always)]
pub fn get(b: &[u8]) -> Option<(u64, usize)> {
    match *b {
        [a, ..] if a < 0x80 => Some((a as u64, 1)),
        [a, c, ..] if c < 0x80 => Some((((a as u64) & 0x7f) << 7 | c as u64, 2)),
        _ => get_long(b),
    }
}

/// Three bytes and more: eight at once where there are so many, since a loop over them costs 70 instructions for
/// three bytes and this 20 for any number up to eight.
#[inline(always)]
fn get_long(b: &[u8]) -> Option<(u64, usize)> {
    let Some(eight) = b.first_chunk::<8>() else { return get_short(b) };
    let x = u64::from_be_bytes(*eight);
    match of_eight(x) {
        Some(found) => Some(found),
        None => b.get(8).map(|&last| (pack(x) << 8 | last as u64, 9)),
    }
}

/// The varint at the start of eight bytes, given as a big-endian number: its value and length. `None` if it is longer.
#[inline(always)]
pub fn of_eight(x: u64) -> Option<(u64, usize)> {
    let ends = !x & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let before = ends.leading_zeros() & 0x38;
    Some((pack(x >> (56 - before)), before as usize / 8 + 1))
}

/// The low seven bits of eight bytes, side by side.
#[inline(always)]
pub fn pack(x: u64) -> u64 {
    let x = x & 0x7f7f_7f7f_7f7f_7f7f;
    let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
    let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
    (x & 0x0000_0000_0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4
}

/// Less than eight bytes up to the end of the slice.
#[cold]
#[inline(never)]
fn get_short(b: &[u8]) -> Option<(u64, usize)> {
    let mut v = 0u64;
    for (i, &byte) in b.iter().enumerate() {
        v = v << 7 | (byte & 0x7f) as u64;
        if byte < 0x80 {
            return Some((v, i + 1));
        }
    }
    None
}

/// How many bytes [`put`] writes for `v`.
#[inline]
pub fn len(v: u64) -> usize {
    match v {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        _ => {
            let bits = 64 - v.leading_zeros() as usize;
            if bits > 56 { 9 } else { bits.div_ceil(7) }
        }
    }
}

/// Writes `v` at the start of `out` and returns its length. Panics if `out` is shorter than that.
#[inline(always)]
pub fn put(out: &mut [u8], v: u64) -> usize {
    if v < 0x80 {
        out[0] = v as u8;
        return 1;
    }
    if v < 0x4000 {
        out[..2].copy_from_slice(&[(v >> 7) as u8 | 0x80, v as u8 & 0x7f]);
        return 2;
    }
    if v < 0x20_0000 {
        out[..3].copy_from_slice(&[(v >> 14) as u8 | 0x80, (v >> 7) as u8 | 0x80, v as u8 & 0x7f]);
        return 3;
    }
    put_long(out, v)
}

#[inline(never)]
fn put_long(out: &mut [u8], v: u64) -> usize {
    let n = len(v);
    let mut v = v;
    if n == 9 {
        out[8] = v as u8;
        v >>= 8;
        for i in (0..8).rev() {
            out[i] = (v as u8 & 0x7f) | 0x80;
            v >>= 7;
        }
        return 9;
    }
    for i in (0..n).rev() {
        out[i] = (v as u8 & 0x7f) | 0x80;
        v >>= 7;
    }
    out[n - 1] &= 0x7f;
    n
}

/// Appends `v` to `out`.
#[inline]
pub fn push(out: &mut Vec<u8>, v: u64) {
    let mut b = [0u8; MAX_LEN];
    let n = put(&mut b, v);
    out.extend_from_slice(&b[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_round_trips_and_is_shortest() {
        let mut seen = [false; 10];
        for shift in 0..64 {
            for v in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut b = [0u8; 9];
                let n = put(&mut b, v);
                seen[n] = true;
                assert_eq!(n, len(v));
                assert_eq!(get(&b[..n]), Some((v, n)));
                assert_eq!(get(&b[..n - 1]), None, "a cut varint is no varint");
                let mut longer = [0xff; 20];
                longer[..n].copy_from_slice(&b[..n]);
                assert_eq!(get(&longer), Some((v, n)), "what follows does not matter");
            }
        }
        assert_eq!(seen[1..], [true; 9]);
    }
}

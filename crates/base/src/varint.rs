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

#[inline(never)]
fn get_long(b: &[u8]) -> Option<(u64, usize)> {
    let mut v = 0u64;
    for (i, &byte) in b.iter().take(8).enumerate() {
        v = v << 7 | (byte & 0x7f) as u64;
        if byte < 0x80 {
            return Some((v, i + 1));
        }
    }
    let last = *b.get(8)?;
    Some((v << 8 | last as u64, 9))
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
#[inline]
pub fn put(out: &mut [u8], v: u64) -> usize {
    if v < 0x80 {
        out[0] = v as u8;
        return 1;
    }
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
            }
        }
        assert_eq!(seen[1..], [true; 9]);
    }
}

//! Numbers as FTS3 writes them: seven bits a byte, the lowest first, the high bit set on all but the last.

/// The longest, in bytes.
pub(crate) const MAX: usize = 10;

/// Reads a number and moves on; `None`: it does not end.
#[inline]
pub(crate) fn get(b: &[u8], at: &mut usize) -> Option<u64> {
    let first = *b.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(first.into());
    }
    let mut n = 0u64;
    for (i, byte) in b[*at..].iter().take(MAX).enumerate() {
        n |= u64::from(byte & 0x7f).wrapping_shl(7 * i as u32);
        if byte & 0x80 == 0 {
            *at += i + 1;
            return Some(n);
        }
    }
    None
}

/// Appends a number.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// How many bytes a number takes.
#[inline]
pub(crate) fn len(n: u64) -> usize {
    (64 - (n | 1).leading_zeros() as usize).div_ceil(7)
}

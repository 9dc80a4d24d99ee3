//! Big-endian integers in byte slices: every fixed-width number of the file format.
//!
//! A position past the end of the slice panics, as indexing does: callers check lengths first.

/// Two bytes at `at`.
#[inline(always)]
pub fn get_u16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(b[at..at + 2].try_into().expect("two bytes"))
}

/// Four bytes at `at`.
#[inline(always)]
pub fn get_u32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

/// Eight bytes at `at`.
#[inline(always)]
pub fn get_u64(b: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

/// Stores two bytes at `at`.
#[inline(always)]
pub fn put_u16(b: &mut [u8], at: usize, v: u16) {
    b[at..at + 2].copy_from_slice(&v.to_be_bytes());
}

/// Stores four bytes at `at`.
#[inline(always)]
pub fn put_u32(b: &mut [u8], at: usize, v: u32) {
    b[at..at + 4].copy_from_slice(&v.to_be_bytes());
}

/// Stores eight bytes at `at`.
#[inline(always)]
pub fn put_u64(b: &mut [u8], at: usize, v: u64) {
    b[at..at + 8].copy_from_slice(&v.to_be_bytes());
}

/// The first eight bytes of a text, zeros behind a shorter one. Texts whose beginnings differ are in the order of these.
#[inline(always)]
pub fn beginning(text: &[u8]) -> u64 {
    let n = text.len();
    if let Some(b) = text.first_chunk() {
        return u64::from_be_bytes(*b);
    }
    // Of a shorter text its first half and its last, which may overlap.
    match (text.first_chunk(), text.last_chunk(), text.first_chunk(), text.last_chunk()) {
        (Some(a), Some(z), ..) => {
            (u32::from_be_bytes(*a) as u64) << 32 | (u32::from_be_bytes(*z) as u64) << (8 * (8 - n))
        }
        (_, _, Some(a), Some(z)) => {
            (u16::from_be_bytes(*a) as u64) << 48 | (u16::from_be_bytes(*z) as u64) << (8 * (8 - n))
        }
        _ => text.first().map_or(0, |b| (*b as u64) << 56),
    }
}

/// How many bytes two texts begin with alike.
#[inline]
pub fn shared(a: &[u8], b: &[u8]) -> usize {
    let (words_a, _) = a.as_chunks::<8>();
    let (words_b, _) = b.as_chunks::<8>();
    let mut at = 0;
    for (x, y) in words_a.iter().zip(words_b) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return at + differ.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::{beginning, shared};

    #[test]
    fn beginnings_are_in_the_order_of_texts() {
        let long = b"abcdefghij";
        for n in 0..=10 {
            let by_hand =
                (0..8).fold(0u64, |w, i| w << 8 | long.get(i).filter(|_| i < n).copied().unwrap_or(0) as u64);
            assert_eq!(beginning(&long[..n]), by_hand, "{n}");
        }
    }

    #[test]
    fn texts_share_what_they_begin_with() {
        for (a, b, n) in [
            ("", "", 0),
            ("abc", "abd", 2),
            ("abc", "abcd", 3),
            ("0123456789x", "0123456789y", 10),
            ("12345678", "12345678", 8),
        ] {
            assert_eq!(
                (shared(a.as_bytes(), b.as_bytes()), shared(b.as_bytes(), a.as_bytes())),
                (n, n),
                "{a} {b}"
            );
        }
    }
}

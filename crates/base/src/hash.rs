//! A fast hash for tables inside the engine. Not for hostile keys that grow tables without bound, not for disk.

use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by small engine values (page numbers, identifiers).
pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FastHasher>>;
/// A set of small engine values.
pub type FastSet<K> = std::collections::HashSet<K, BuildHasherDefault<FastHasher>>;

const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiply-and-fold hashing, eight bytes at a time.
#[derive(Default, Clone, Copy)]
pub struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn mix(&mut self, v: u64) {
        let m = (self.0 ^ v) as u128 * K as u128;
        self.0 = (m as u64) ^ (m >> 64) as u64;
    }
}

/// Less than eight bytes as a number: the first four and the last four, or first, middle and last. (A copy of a length known only at run
/// time is a call.)
#[inline]
fn short(b: &[u8]) -> u64 {
    match (b.first_chunk::<4>(), b.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u32::from_le_bytes(*first) as u64 | (u32::from_le_bytes(*last) as u64) << 24
        }
        _ => match b {
            [] => 0,
            [first, .., last] => *first as u64 | (b[b.len() / 2] as u64) << 8 | (*last as u64) << 16,
            [only] => *only as u64,
        },
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for c in &mut chunks {
            self.mix(u64::from_le_bytes(c.try_into().expect("eight bytes")));
        }
        self.mix(short(chunks.remainder()) ^ (bytes.len() as u64) << 56);
    }
    #[inline]
    fn write_u32(&mut self, v: u32) {
        self.mix(v as u64 | 1 << 40);
    }
    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.mix(v.wrapping_add(K));
    }
    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
}

/// The hash of a run of bytes.
#[inline]
pub fn hash_bytes(b: &[u8]) -> u64 {
    let mut h = FastHasher(K);
    h.write(b);
    h.finish()
}

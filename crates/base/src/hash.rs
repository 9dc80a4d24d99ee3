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
        let mut last = [0u8; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
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

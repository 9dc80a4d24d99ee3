//! A Bloom filter over keys of registers: two bits of a 64-bit word per key, so that a probe touches one line.

use iolite_base::Result;

/// A Bloom filter.
pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// A filter for about `keys` keys.
    pub fn new(keys: usize) -> Result<Bloom> {
        let n = (keys / 4).next_power_of_two().clamp(64, 1 << 17);
        Ok(Bloom { words: iolite_base::alloc::zeroed_words(n)? })
    }

    fn place(&self, h: u64) -> (usize, u64) {
        let word = (h >> 20) as usize & (self.words.len() - 1);
        (word, 1 << (h & 63) | 1 << (h >> 6 & 63))
    }

    /// Adds a key's hash.
    pub fn add(&mut self, h: u64) {
        let (w, bits) = self.place(h);
        self.words[w] |= bits;
    }

    /// Whether the key may have been added.
    pub fn may_have(&self, h: u64) -> bool {
        let (w, bits) = self.place(h);
        self.words[w] & bits == bits
    }
}

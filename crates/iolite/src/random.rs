//! The kernel's randomness, taken in pieces: a system call per `random()` would cost more than the row it is for.
//!
//! Each byte is handed out once and then forgotten, a forked child's included. What is asked for in more than a quarter of a piece comes directly.

use iolite_os::Entropy;

const PIECE: usize = 1024;

/// Bytes fetched and not yet handed out.
pub(crate) struct Randomness {
    bytes: Box<[u8; PIECE]>,
    left: usize,
    /// How many forks there had been when they were fetched.
    forks: u32,
}

impl Default for Randomness {
    fn default() -> Self {
        Randomness { bytes: Box::new([0; PIECE]), left: 0, forks: 0 }
    }
}

impl Randomness {
    pub fn fill(&mut self, out: &mut [u8], source: &dyn Entropy) {
        if out.len() > PIECE / 4 {
            return source.fill(out);
        }
        let forks = iolite_os::forks();
        if self.left < out.len() || self.forks != forks {
            source.fill(&mut self.bytes[..]);
            (self.left, self.forks) = (PIECE, forks);
        }
        let from = &mut self.bytes[self.left - out.len()..self.left];
        out.copy_from_slice(from);
        from.fill(0);
        self.left -= out.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// Counts up, so that a byte handed out twice would show.
    struct Counter(AtomicU8);

    impl Entropy for Counter {
        fn fill(&self, out: &mut [u8]) {
            for b in out {
                *b = self.0.fetch_add(1, Relaxed);
            }
        }
    }

    #[test]
    fn nothing_is_handed_out_twice() {
        let (source, mut r) = (Counter(AtomicU8::new(0)), Randomness::default());
        let mut seen = [0u32; 256];
        for _ in 0..PIECE / 8 {
            let mut b = [0; 8];
            r.fill(&mut b, &source);
            b.iter().for_each(|&b| seen[b as usize] += 1);
        }
        assert!(seen.iter().all(|&n| n == (PIECE / 256) as u32));
        let mut long = [0; PIECE];
        r.fill(&mut long, &source);
        assert_eq!(long[..3], [0, 1, 2]);
    }
}

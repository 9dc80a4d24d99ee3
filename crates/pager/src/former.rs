//! Pages that were in the cache before: for scans the cache grows for those that come back.
//!
//! Memory that is touched for the first time is dear: filling a cache of 64 MB took 40 of the 90 ms that a first scan of 147 MB
//! took. Most pages that a scan reads in a row are never asked for again. So scans take a first share as it comes; from then on,
//! pages that are new to them take the place of those behind, and pages that were here before make the cache grow, up to
//! its size. A page that is sought alone makes it grow at once: rows that an index leads to lie on pages which many other rows
//! lie on, too, and a page that was let go is read twice.
//!
//! What always holds: this decides what is kept, never what a page holds. Two pages may share a bit; then the cache grows early.

use iolite_base::Pgno;

/// Bytes of the first share.
const FIRST: usize = 4 << 20;
/// Bits for each page that the cache may hold.
const BITS: usize = 8;

/// See the module's head.
#[derive(Default)]
pub struct Former {
    /// A bit for each page number, modulo their count.
    bits: Vec<u64>,
}

impl Former {
    /// Notes that a page leaves a cache of `most` pages.
    pub fn note(&mut self, pgno: Pgno, most: usize) {
        if self.bits.is_empty() {
            let words = (most * BITS / 64).next_power_of_two().clamp(64, 1 << 16);
            if iolite_base::alloc::reserve(&mut self.bits, words).is_err() {
                return;
            }
            self.bits.resize(words, 0);
        }
        let (word, bit) = self.place(pgno);
        self.bits[word] |= bit;
    }

    /// Whether a page was here before.
    pub fn has(&self, pgno: Pgno) -> bool {
        if self.bits.is_empty() {
            return false;
        }
        let (word, bit) = self.place(pgno);
        self.bits[word] & bit != 0
    }

    fn place(&self, pgno: Pgno) -> (usize, u64) {
        ((pgno as usize / 64) & (self.bits.len() - 1), 1 << (pgno % 64))
    }
}

/// How many pages of that size the first share has.
pub fn first_share(page_size: u32) -> usize {
    FIRST / page_size as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_after_it_left() {
        let mut f = Former::default();
        assert!(!f.has(7));
        f.note(7, 1000);
        f.note(64_000, 1000);
        assert!(f.has(7) && f.has(64_000) && !f.has(8) && !f.has(64_001));
    }
}

//! How columns are used, and what it is worth to keep them.
//!
//! The column goes first that was used by the fewest queries for each byte that it takes: to decode it again takes about as
//! long whether it is wide or narrow. Uses of long ago count less.

use std::sync::atomic::AtomicU64;

/// Counts uses.
pub(crate) static NOW: AtomicU64 = AtomicU64::new(0);

/// The use of a column.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// When the last one was.
    pub at: u64,
    /// How many queries used it; those long ago count less.
    often: f64,
}

/// After so many uses of columns one of before counts half.
const HALF_LIFE: u64 = 256;

impl Use {
    /// Counts a use, unless that query's was counted.
    pub fn note(&mut self, now: u64, since: u64) {
        if self.often == 0.0 || self.at < since {
            let ago = now.saturating_sub(self.at) as f64 / HALF_LIFE as f64;
            self.often = self.often * (-ago).exp2() + 1.0;
        }
        self.at = now.max(self.at);
    }

    /// What it is worth to keep `bytes` that are used so. Among columns of a cycle the moment does not matter.
    pub fn worth(&self, now: u64, bytes: usize) -> f64 {
        let idle = (now.saturating_sub(self.at) / HALF_LIFE).min(64);
        self.often / bytes as f64 / (idle as f64).exp2()
    }
}

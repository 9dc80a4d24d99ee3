//! Room in the column cache, and room for what a query makes of columns.
//!
//! All stores of a process share one budget. When a query wants columns that are not there and no room is left, or
//! when more is held than the budget allows, others of its file go, a segment at a time and the table's last segments first,
//! until there is room or nothing is left but what the query itself wants. Who still reads a chunk holds it: it goes when they
//! are done.
//!
//! The column goes first that was used by the fewest queries for each byte that it takes: to decode it again takes about as
//! long whether it is wide or narrow. Uses of long ago count less. Of equal ones the one that was used last goes first: by the
//! opposite a cycle of queries that is a little larger than the budget would find nothing of what it wants, since what
//! goes is just what is wanted next. So it finds all but the parts that have no room, and where several columns lack
//! parts, these are of the same segments, which are decoded once.
//!
//! Not counted are dictionaries and what is known of leaves: a column's codes are of no use without the one, a table's
//! columns without the other.
//!
//! Maps of joins, groups, rows that are to be sorted, and result rows have a limit of their own, for each of them. What has
//! no room goes to temporary files (`spill`), or is joined share by share (`join`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes in all column caches.
pub(crate) static USED: AtomicUsize = AtomicUsize::new(0);

/// What the column caches of the process may take together.
static BUDGET: AtomicUsize = AtomicUsize::new(1 << 30);

/// What a map, the groups, or the rows of a query may take each.
static WORK: AtomicUsize = AtomicUsize::new(512 << 20);

/// Counts uses.
pub(crate) static NOW: AtomicU64 = AtomicU64::new(0);

/// What the column caches of the process may take together, in bytes.
pub fn budget() -> usize {
    BUDGET.load(Relaxed)
}

/// Sets it. What is held beyond goes as queries want room.
pub fn set_budget(bytes: usize) {
    BUDGET.store(bytes, Relaxed);
}

/// What a map, the groups, or the rows of a query in columns may take each, in bytes.
pub fn work_size() -> usize {
    WORK.load(Relaxed)
}

/// Sets it.
pub fn set_work_size(bytes: usize) {
    WORK.store(bytes, Relaxed);
}

/// Whether so much is within that.
pub(crate) fn within(bytes: usize) -> bool {
    bytes <= work_size()
}

/// What one query may hold of columns that are not kept.
pub(crate) fn loose() -> usize {
    budget() / 4
}

/// Whether so many bytes more may be kept.
pub(crate) fn fits(bytes: usize) -> bool {
    USED.load(Relaxed) + bytes <= budget()
}

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

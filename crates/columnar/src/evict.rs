//! Room in the column cache, and room for what a query makes of columns.
//!
//! All stores of a process share one budget. When a query wants columns that are not there and little room is left, or
//! when more is held than the budget allows, the columns of its file that were not used for longest go, whole columns
//! at a time, until a quarter is free or nothing is left but what the query itself wants. Who still reads a chunk holds it: it goes when they are done.
//!
//! Not counted are dictionaries and what is known of leaves: a column's codes are of no use without the one, a table's
//! columns without the other.
//!
//! Maps of joins, groups, rows that are to be sorted, and result rows have a limit of their own, for each of them. What has
//! no room goes to temporary files (`spill`), or is joined share by share (`join`).

use crate::decode::ColKey;
use crate::store::{Store, TableState, USED, lock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What the column caches of the process may take together.
static BUDGET: AtomicUsize = AtomicUsize::new(1 << 30);

/// What a map, the groups, or the rows of a query may take each.
static WORK: AtomicUsize = AtomicUsize::new(512 << 20);

/// Counts uses.
static NOW: AtomicU64 = AtomicU64::new(0);

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

impl Store {
    /// Notes that columns of a table are used.
    pub(crate) fn note_use(&self, t: &TableState, keys: impl Iterator<Item = ColKey>) {
        let now = NOW.fetch_add(1, Relaxed);
        let mut used = lock(&t.columns.used);
        keys.for_each(|k| {
            used.insert(k, now);
        });
    }

    /// Makes room if more than `most` is held; columns used at or after `since` stay.
    pub(crate) fn make_room(&self, since: u64, most: usize) {
        let budget = budget();
        if USED.load(Relaxed) <= most {
            return;
        }
        let tables: Vec<Arc<TableState>> = lock(&self.tables).values().cloned().collect();
        let mut columns: Vec<(u64, usize, ColKey)> = Vec::new();
        for (i, t) in tables.iter().enumerate() {
            columns.extend(lock(&t.columns.used).iter().map(|(k, at)| (*at, i, *k)));
        }
        let mut order: Vec<(u64, u32)> = columns.iter().enumerate().map(|(i, c)| (c.0, i as u32)).collect();
        crate::sort::by_number(&mut order);
        for (at, i, key) in order.iter().map(|o| columns[o.1 as usize]) {
            if at >= since || USED.load(Relaxed) <= budget / 4 * 3 {
                break;
            }
            tables[i].segments.iter().for_each(|s| s.forget(&key));
            lock(&tables[i].columns.used).remove(&key);
            self.counters.evicted.fetch_add(1, Relaxed);
        }
    }

    /// The present moment among uses.
    pub(crate) fn moment() -> u64 {
        NOW.load(Relaxed)
    }
}

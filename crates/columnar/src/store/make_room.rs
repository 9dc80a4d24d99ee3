//! Room for columns: which of them go when others are wanted.
//!
//! When a query wants columns that are not there and no room is left, or when more is held than the budget allows, others
//! of the store's file go, a segment at a time and the table's last segments first, until there is room or nothing is left but
//! what the query itself wants. Who still reads a chunk holds it: it goes when they are done.
//!
//! Those worth least go first (`usage`). Of equal ones the one that was used last goes first: the other way round, a cycle of
//! queries that is a little larger than the budget would find nothing of what it wants, since what goes is just what is
//! wanted next. So it finds all but the parts that have no room, and where several columns lack parts, these are of the same
//! segments, which are decoded once.

use super::*;

impl Store {
    /// Notes that columns of a table are used by a query that began at `since`.
    pub(crate) fn note_use(&self, t: &TableState, keys: impl Iterator<Item = ColKey>, since: u64) {
        let now = NOW.fetch_add(1, Relaxed);
        let mut used = lock(&t.columns.used);
        keys.for_each(|k| used.entry(k).or_default().note(now, since));
    }

    /// Makes room if more than `most` is held; columns used at or after `since` stay.
    pub(crate) fn make_room(&self, since: u64, most: usize) {
        if USED.load(Relaxed) <= most {
            return;
        }
        let now = NOW.load(Relaxed);
        // A little more than is needed, so that not every segment asks again.
        let enough = most - most / 32;
        let tables: Vec<Arc<TableState>> = lock(&self.tables).values().cloned().collect();
        let mut columns: Vec<(f64, u64, usize, ColKey)> = Vec::new();
        for (i, t) in tables.iter().enumerate() {
            for (k, u) in lock(&t.columns.used).iter().filter(|(_, u)| u.at < since) {
                let bytes: usize = t.segments.iter().map(|s| s.held(k)).sum();
                if bytes > 0 {
                    columns.push((u.worth(now, bytes), u.at, i, *k));
                }
            }
        }
        // Positive numbers sort as their bits do.
        columns.sort_unstable_by_key(|c| (c.0.to_bits(), u64::MAX - c.1));
        for (.., i, key) in columns {
            if USED.load(Relaxed) <= enough {
                break;
            }
            self.counters.evicted.fetch_add(1, Relaxed);
            for s in tables[i].segments.iter().rev() {
                s.forget(&key);
                if USED.load(Relaxed) <= enough {
                    break;
                }
            }
        }
    }

    /// The present time, counted in uses of columns.
    pub(crate) fn now() -> u64 {
        NOW.load(Relaxed)
    }
}

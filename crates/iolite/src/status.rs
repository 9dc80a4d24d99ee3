//! What a connection counts and how much memory it takes (`sqlite3_db_status`). Memory is an estimate by the number of parts.

use crate::connection::Connection;
use iolite_btree::CacheStats;
use iolite_catalog::{Column, Index, Table};

impl Connection {
    /// One counter of the page caches of all databases; begins anew at zero if `reset`.
    pub fn cache_counter(&self, reset: bool, which: fn(&mut CacheStats) -> &mut u64) -> u64 {
        let databases = self.0.databases.borrow();
        let trees = databases.iter().filter_map(|d| d.btree.as_ref());
        let total: u64 = trees.map(|b| *which(&mut b.cache_stats(false))).sum();
        let mut base = self.0.cache_base.get();
        let before = which(&mut base);
        let value = total.saturating_sub(*before);
        if reset {
            *before = total;
            self.0.cache_base.set(base);
        }
        value
    }

    /// Bytes that cached pages of all databases take.
    pub fn cache_bytes(&self) -> usize {
        let databases = self.0.databases.borrow();
        databases.iter().filter_map(|d| d.btree.as_ref()).map(|b| b.cache_bytes()).sum()
    }

    /// Bytes that the schemas of all databases take.
    pub fn schema_bytes(&self) -> usize {
        let catalog = self.0.catalog.borrow().clone();
        let of_table = |t: &Table| size_of::<Table>() + t.columns.len() * size_of::<Column>();
        let of_index = |i: &Index| size_of::<Index>() + i.columns.len() * size_of::<usize>();
        let of_schema = |s: &iolite_catalog::Schema| {
            s.tables().map(|t| of_table(t)).sum::<usize>() + s.indexes().map(|i| of_index(i)).sum::<usize>()
        };
        catalog.schemas.iter().map(|s| of_schema(s)).sum()
    }

    /// Whether a deferred foreign key is violated for now.
    pub fn has_deferred_violations(&self) -> bool {
        self.0.txn.deferred() > 0
    }
}

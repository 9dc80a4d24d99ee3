//! Queries in columns: their settings and counters, and the engine where it is built in (feature `columnar`).

#[cfg(not(feature = "columnar"))]
mod absent;
#[cfg(feature = "columnar")]
mod engine;
#[cfg(feature = "columnar")]
mod executor;
#[cfg(feature = "columnar")]
mod size;

#[cfg(not(feature = "columnar"))]
pub(crate) use absent::*;
#[cfg(feature = "columnar")]
pub(crate) use {engine::*, executor::choose, size::Growth};

use std::sync::OnceLock;

/// `PRAGMA threads` asks for no more.
pub(crate) const MOST_THREADS: usize = 64;

/// As many threads as the machine runs at once. Asked once in a process: the answer is found in several files, and
/// programs that open a connection for each request would read them each time.
pub(crate) fn cores() -> i64 {
    static CORES: OnceLock<i64> = OnceLock::new();
    *CORES
        .get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS) as i64))
}

/// What has happened in the column cache of a database, for tests and statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColumnCounters {
    /// Segments whose pages were decoded.
    pub decoded: u64,
    /// Segments brought up to date leaf by leaf.
    pub patched: u64,
    /// Leaves hashed to find out whether they changed.
    pub hashed: u64,
    /// Segments for which a column of an inner table was derived.
    pub derived: u64,
    /// Tables taken from the sidecar.
    pub adopted: u64,
    /// Chunks read from the sidecar.
    pub loaded: u64,
    /// Blocks of the sidecar that were not what they ought to be.
    pub rejected: u64,
    /// Sidecars written.
    pub published: u64,
    /// Columns that made room for others.
    pub evicted: u64,
}

impl ColumnCounters {
    /// The counters by name.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("decoded", self.decoded),
            ("patched", self.patched),
            ("hashed", self.hashed),
            ("derived", self.derived),
            ("adopted", self.adopted),
            ("loaded", self.loaded),
            ("rejected", self.rejected),
            ("published", self.published),
            ("evicted", self.evicted),
        ]
    }
}

impl crate::connection::Connection {
    /// Why columns are no longer kept beside a database, if something went wrong.
    pub fn column_note(&self, db: usize) -> Option<String> {
        self.0.databases.borrow().get(db).and_then(|d| note(&d.columns))
    }

    /// How often queries in columns were left to rows while they ran, by reason.
    pub fn column_refusals(&self, db: usize) -> Vec<(String, u64)> {
        self.0.databases.borrow().get(db).map_or_else(Vec::new, |d| refusals(&d.columns))
    }

    /// What has happened in the column cache of a database.
    pub fn column_counters(&self, db: usize) -> ColumnCounters {
        let dbs = self.0.databases.borrow();
        dbs.get(db).map_or_else(ColumnCounters::default, |d| counters(&d.columns))
    }
}

//! What a connection keeps for queries in columns: the columns of each database, and which tables have grown. It knows no
//! connection; what runs in columns, and when, is [`crate::columns`]'.

#[cfg(not(feature = "columnar"))]
mod absent;
#[cfg(feature = "columnar")]
mod present;

#[cfg(not(feature = "columnar"))]
pub(crate) use absent::*;
#[cfg(feature = "columnar")]
pub(crate) use present::*;

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

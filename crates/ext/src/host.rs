use iolite_base::{Encoding, Limit};

/// What a function may ask of the connection it runs on.
pub trait Host {
    /// `last_insert_rowid()`.
    fn last_insert_rowid(&self) -> i64;
    /// `changes()`.
    fn changes(&self) -> i64;
    /// `total_changes()`.
    fn total_changes(&self) -> i64;
    /// A run-time limit.
    fn limit(&self, which: Limit) -> i32;
    /// The main database's text encoding.
    fn encoding(&self) -> Encoding;
    /// The statement's time: milliseconds since the Julian epoch (noon, 4714-11-24 BC, UTC). The same for all
    /// calls within one step of a statement.
    fn now_julian_ms(&self) -> i64;
    /// The local time zone's offset from UTC, in seconds, at a moment given in seconds since 1970 (UTC).
    fn local_offset(&self, unix_seconds: i64) -> iolite_base::Result<i64>;
    /// Fills `out` with random bytes.
    fn random(&self, out: &mut [u8]);
}

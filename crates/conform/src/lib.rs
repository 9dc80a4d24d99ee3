//! Conformance tools.
//!
//! [`slt`] reads and runs sqllogictest scripts; [`differ`] compares with stock SQLite on generated statements; [`engine`] is
//! either of the two for those who have both work on one file.
#![forbid(unsafe_code)]

pub mod differ;
pub mod engine;
pub mod slt;

/// Sets `PRAGMA analytics` on a connection as the variable IOLITE_ANALYTICS says, if it is there.
pub fn choose_analytics(conn: &iolite::engine::Connection) {
    if let Ok(mode) = std::env::var("IOLITE_ANALYTICS") {
        conn.execute_batch(&format!("PRAGMA analytics={mode}")).expect("a setting");
    }
}

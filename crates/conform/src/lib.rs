//! Conformance tools.
//!
//! [`slt`] reads and runs sqllogictest scripts; [`differ`] compares with stock SQLite on generated statements; [`engine`] is
//! either of the two for those who have both work on one file; [`rounds`] has them do so again and again; [`pages`] holds both against
//! texts written from the documentation.
#![forbid(unsafe_code)]

pub mod differ;
pub mod engine;
pub mod pages;
pub mod rounds;
pub mod slt;

/// Sets `PRAGMA analytics` on a connection as the variable IOLITE_ANALYTICS says, if it is there.
pub fn choose_analytics(conn: &iolite::engine::Connection) {
    if let Ok(mode) = std::env::var("IOLITE_ANALYTICS") {
        conn.execute_batch(&format!("PRAGMA analytics={mode}")).expect("a setting");
    }
}

/// The folder with the pinned SQLite's source, where cargo keeps it for the crate `iolite-stock`.
pub fn pinned_source() -> Option<std::path::PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let found = |e: std::fs::DirEntry| e.path().join("libsqlite3-sys-0.38.1/sqlite3");
    registries.flatten().map(found).find(|p| p.join("sqlite3.c").is_file())
}

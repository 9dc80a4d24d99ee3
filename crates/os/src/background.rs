//! Threads beside those of the program.
//!
//! What always holds: no signal is delivered to such a thread, for signals are the program's business. A thread that keeps
//! house for the whole process starts only when there is work for it, never in a forked child (what it would stand on may be
//! half changed there), and not where the variable `IOLITE_HOUSEKEEPING` of the environment is `off` or `0`: its callers
//! then do its work themselves, as SQLite does.

use std::sync::OnceLock;

pub use crate::unix::without_signals;

/// Starts a thread that keeps house. `false`: there is none, and the caller does without.
pub fn keep_house(name: &str, code: impl FnOnce() + Send + 'static) -> bool {
    crate::unix::forks() == 0
        && allowed()
        && without_signals(|| std::thread::Builder::new().name(name.into()).spawn(code)).is_ok()
}

fn allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| !matches!(std::env::var("IOLITE_HOUSEKEEPING").as_deref(), Ok("off" | "0")))
}

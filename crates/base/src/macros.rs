//! Conditions that must hold, but whose failure the surrounding code can survive.

/// True; a debug build stops where it is not. Use where a false condition is answered with an error.
#[macro_export]
macro_rules! always {
    ($cond:expr) => {{
        let held = $cond;
        debug_assert!(held, "always!({})", stringify!($cond));
        held
    }};
}

/// False; a debug build stops where it is not. Use where a true condition is answered with an error.
#[macro_export]
macro_rules! never {
    ($cond:expr) => {{
        let seen = $cond;
        debug_assert!(!seen, "never!({})", stringify!($cond));
        seen
    }};
}

//! Signs of life on long work, for a person at a terminal.
//!
//! Everything goes to standard error, and only if that is a terminal; nothing of it stays on the screen.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A spinner beside a statement that may take long.
pub struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// A spinner if the statement is of a kind that works long without showing rows.
    pub fn of(interactive: bool, sql: &str) -> Spinner {
        let mut words = sql.split_whitespace().map(str::to_ascii_uppercase);
        let (a, b) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let long = match a.trim_end_matches(';') {
            "VACUUM" | "REINDEX" | "ANALYZE" => true,
            "CREATE" => b == "INDEX" || b == "UNIQUE",
            _ => false,
        };
        if !interactive || !long || !std::io::stderr().is_terminal() {
            return Spinner(None);
        }
        let bar = ProgressBar::new_spinner().with_message(format!("{a} {b}"));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner(Some(bar))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(b) = &self.0 {
            b.finish_and_clear();
        }
    }
}

/// A bar for work of known size.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar over `total` units; bytes are shown as such.
    pub fn new(what: &str, total: u64, bytes: bool) -> Bar {
        if !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::new(total).with_message(what.to_string());
        let template = if bytes {
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
        } else {
            "{msg} {wide_bar} {pos}/{len} {eta}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar(Some(bar))
    }

    /// So much is done.
    pub fn set(&self, done: u64) {
        if let Some(b) = &self.0 {
            b.set_position(done);
        }
    }

    /// So much there is.
    pub fn set_total(&self, total: u64) {
        if let Some(b) = &self.0 {
            b.set_length(total);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(b) = &self.0 {
            b.finish_and_clear();
        }
    }
}

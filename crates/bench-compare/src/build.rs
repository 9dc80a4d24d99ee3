//! Builds libraries for their sizes, and watches how long that takes and how much memory all of its processes hold together.

use iolite_bench::engine::Result;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a build took.
pub struct Build {
    /// Seconds on the clock.
    pub seconds: f64,
    /// The most memory that its processes held at one moment, in MB (what they share is counted for each).
    pub peak: f64,
}

/// Runs a command to its end.
pub fn watch(mut command: Command) -> Result<Build> {
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let mut peak = 0.0f64;
    loop {
        if let Some(status) = child.try_wait()? {
            let seconds = begun.elapsed().as_secs_f64();
            return if status.success() {
                Ok(Build { seconds, peak })
            } else {
                Err(format!("{command:?}: {status}").into())
            };
        }
        peak = peak.max(held(child.id()));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// MB that a process and those it started hold now.
fn held(root: u32) -> f64 {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // pid (name) state parent ...; a name may contain anything.
        let parent = stat.rsplit(')').next().and_then(|s| s.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let (mut pages, mut left) = (0.0, vec![root]);
    while let Some(pid) = left.pop() {
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        pages += statm.split(' ').nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        left.extend(children.remove(&pid).unwrap_or_default());
    }
    pages * 4096.0 / 1e6
}

/// The source of stock SQLite that the oracle is compiled from.
pub fn stock_source() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|h| Path::new(&h).join(".cargo")))?;
    let all = std::fs::read_dir(home.join("registry/src")).ok()?.flatten();
    all.map(|d| d.path().join("libsqlite3-sys-0.38.1/sqlite3/sqlite3.c")).find(|p| p.exists())
}

/// Compiles stock SQLite to a library, with its own default options.
pub fn stock(level: &str, to: &Path) -> Result<Build> {
    let source = stock_source().ok_or("the oracle's source is not where cargo keeps it")?;
    let mut c = Command::new("cc");
    c.args([level, "-shared", "-fPIC", "-o"]).arg(to).arg(source).args(["-lm", "-lpthread", "-ldl"]);
    watch(c)
}

/// Compiles iolite's C library from nothing, in a folder of its own; `words` are those of `cargo xtask`, which puts the library
/// in its place.
pub fn iolite(words: &[&str], folder: &Path) -> Result<Build> {
    let _ = std::fs::remove_dir_all(folder);
    let mut c = Command::new("cargo");
    c.arg("xtask").args(words).env("CARGO_TARGET_DIR", folder);
    watch(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_children_is_counted_and_failures_are_told() {
        let mut c = Command::new("sh");
        c.args(["-c", "sleep 0.3; true"]);
        let b = watch(c).unwrap();
        assert!(b.seconds >= 0.3 && b.peak > 0.5, "{} {}", b.seconds, b.peak);
        assert!(watch(Command::new("false")).is_err());
    }
}

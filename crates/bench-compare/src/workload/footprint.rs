//! Sizes: the libraries as they lie in `dist/lib`, on the system and in the cache; databases that the workloads make.
//!
//! Libraries are measured stripped (a copy, by `strip`), where the tool is there.

use super::{Seat, tatp};
use crate::Options;
use crate::engine::{self, cache, settings};
use crate::envelope::Run;
use iolite_bench::cases;
use iolite_bench::engine::{Result, find};
use std::path::{Path, PathBuf};
use std::process::Command;

fn stripped(path: &Path) -> Option<f64> {
    let copy = cases::directory().join(format!("stripped-{}.so", std::process::id()));
    let real = std::fs::canonicalize(path).ok()?;
    let done = Command::new("strip").arg("-o").arg(&copy).arg(real).status();
    let size = std::fs::metadata(&copy).map(|m| m.len() as f64 / 1e6).ok();
    let _ = std::fs::remove_file(copy);
    if done.is_ok_and(|s| s.success()) { size } else { None }
}

/// Looks.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    std::fs::create_dir_all(cases::directory())?;
    let own = o.text("library").map_or("dist/lib/libsqlite3.so.0".to_string(), String::from);
    let duck =
        std::env::var_os("IOLITE_BENCH_DUCKDB").map_or(cache().join("package/libduckdb.so"), PathBuf::from);
    let debian = Path::new("/usr/lib/x86_64-linux-gnu");
    for (name, path) in [
        ("iolite", PathBuf::from(&own)),
        ("Debian's SQLite", debian.join("libsqlite3.so.0")),
        ("duckdb", duck),
        ("berkeley", debian.join("libdb-5.3.so")),
        (
            "lmdb",
            std::env::var_os("IOLITE_BENCH_LMDB")
                .map_or(cache().join("usr/lib/x86_64-linux-gnu/liblmdb.so.0"), PathBuf::from),
        ),
    ] {
        match stripped(&path) {
            Some(mb) => run.less("library, stripped", "", name, "MB", vec![mb]),
            None => run.missing.push(format!(
                "size of {name}: {} is not there (`cargo xtask dist` makes ours)",
                path.display()
            )),
        }
    }
    match o.text("library-os").map(|p| stripped(Path::new(p))) {
        Some(Some(mb)) => run.less("library, stripped", "-Os", "iolite", "MB", vec![mb]),
        _ => run
            .missing
            .push("size at -Os: build with CARGO_PROFILE_RELEASE_OPT_LEVEL=s, `--library-os PATH`".into()),
    }
    let n = o.number("subscribers", 100_000, 10_000);
    for e in engine::sql(1) {
        let label = format!("TATP, {n} subscribers");
        let s: Seat = tatp::loaded(&*e, n, settings(e.name(), "PRAGMA journal_mode=DELETE;", "SELECT 1"))?;
        if e.name() != "duckdb" {
            s.db.batch("VACUUM")?;
        }
        run.less("database", &label, e.name(), "MB", vec![std::fs::metadata(&s.path)?.len() as f64 / 1e6]);
        s.remove();
    }
    // iolite must not need more pages for the same rows than stock does.
    for e in ["stock", "iolite"] {
        let s = Seat::open(&*find(e)?, e, "foot", "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;")?;
        super::tatp_data::load(&*s.db, n)?;
        run.less(
            "database as loaded",
            &format!("TATP, {n} subscribers"),
            e,
            "MB",
            vec![std::fs::metadata(&s.path)?.len() as f64 / 1e6],
        );
        s.remove();
    }
    run.missing.push("build time and peak build memory: not measured by this program".into());
    Ok(())
}

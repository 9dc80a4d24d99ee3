//! Sizes: the libraries as they lie in `dist/lib`, on the system and in the cache; databases that the workloads make.
//!
//! Stock SQLite is also compiled here from the oracle's source, at -O3 and -Os, and iolite with `--build`: how long that takes
//! and how much memory. Libraries are measured stripped (a copy, by `strip`), where the tool is there.

use super::{Seat, tatp};
use crate::Options;
use crate::build;
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
    compiled(o, run);
    let n = o.number("subscribers", 100_000, 10_000);
    for e in engine::sql(1) {
        let label = format!("TATP, {n} subscribers");
        let s: Seat =
            tatp::loaded(&*e, e.name(), n, settings(e.name(), "PRAGMA journal_mode=DELETE;", "SELECT 1"))?;
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
    Ok(())
}

/// A library of ours: what it is called, how `cargo xtask` is asked for it, and where it lies then.
struct Variant {
    label: &'static str,
    words: &'static [&'static str],
    option: &'static str,
    lies: &'static str,
}

const VARIANTS: [Variant; 4] = [
    Variant { label: "-O3", words: &["dist"], option: "library", lies: "dist/lib/libsqlite3.so.0" },
    Variant {
        label: "without columns",
        words: &["dist", "rows"],
        option: "library-rows",
        lies: "dist/rows/lib/libsqlite3.so.0",
    },
    Variant {
        label: "small",
        words: &["dist", "small"],
        option: "library-small",
        lies: "dist/small/lib/libsqlite3.so.0",
    },
    Variant {
        label: "small, without columns",
        words: &["dist", "small", "rows"],
        option: "library-small-rows",
        lies: "dist/small-rows/lib/libsqlite3.so.0",
    },
];

/// Libraries that are compiled here: stock SQLite for speed and for size; with `--build`, iolite too, each from nothing and
/// one after the other, and what that takes.
fn compiled(o: &Options, run: &mut Run) {
    for level in ["-O3", "-Os"] {
        let to = cases::directory().join(format!("stock{level}-{}.so", std::process::id()));
        match build::stock(level, &to) {
            Ok(b) => {
                if let Some(mb) = stripped(&to) {
                    run.less("library, stripped", level, "stock", "MB", vec![mb]);
                }
                took(run, level, "stock", &b);
            }
            Err(e) => run.missing.push(format!("stock SQLite at {level}: {e}")),
        }
        let _ = std::fs::remove_file(to);
    }
    for v in VARIANTS {
        let lies = o.text(v.option).unwrap_or(v.lies);
        if o.has("build") {
            let folder = cases::directory().join(format!("build-{}", std::process::id()));
            match build::iolite(v.words, &folder) {
                Ok(b) => took(run, v.label, "iolite", &b),
                Err(e) => run.failures.push(format!("building iolite: {e}")),
            }
            let _ = std::fs::remove_dir_all(folder);
        }
        match stripped(Path::new(lies)) {
            Some(mb) => run.less("library, stripped", v.label, "iolite", "MB", vec![mb]),
            None => run.missing.push(format!(
                "size of iolite, {}: {lies} is not there (`cargo xtask {}`, or `--build`)",
                v.label,
                v.words.join(" ")
            )),
        }
    }
    if !o.has("build") {
        run.missing.push("iolite's build time and memory: ask with `--build` (a quarter of an hour)".into());
    }
}

fn took(run: &mut Run, label: &str, engine: &str, b: &build::Build) {
    run.less("building the library", label, engine, "s", vec![b.seconds]);
    run.less("building the library: memory of all its processes", label, engine, "MB", vec![b.peak]);
}

//! Gets the libraries of engines that are not there: DuckDB out of its npm package, LMDB and Berkeley DB out of Debian's, vector
//! libraries out of Python's packages, Turso by building `bridges/turso` of the source tree, whose packages are no part of the workspace.

use crate::engine::{cache, libraries, presences, turso};
use iolite_bench::engine::Result;
use std::process::Command;

/// The release that figures are reported with.
const DUCKDB: &str = "@duckdb/node-bindings-linux-x64@1.5.6-r.1";

/// Where the bridge lies.
const BRIDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bridges/turso");

fn shell(script: &str) -> Result<()> {
    let s = Command::new("sh").args(["-ec", script]).current_dir(cache()).status()?;
    if s.success() { Ok(()) } else { Err(format!("failed: {script}").into()) }
}

/// Fetches what is absent into the cache folder.
pub fn run() -> Result<()> {
    std::fs::create_dir_all(cache())?;
    for p in presences().iter().filter(|p| p.absent.is_some()) {
        let script = match p.name.as_str() {
            "duckdb" => format!("npm pack --silent {DUCKDB} && tar -xzf duckdb-node-bindings-*.tgz"),
            "lmdb" => "apt-get download liblmdb0 && dpkg -x liblmdb0_*.deb .".into(),
            "berkeley" => "apt-get download libdb5.3 && dpkg -x libdb5.3_*.deb .".into(),
            "sqlite-vec" | "usearch" | "hnswlib" => format!(
                "python3 -m venv {0} && {0}/bin/pip install --quiet {1}",
                libraries::ENVIRONMENT,
                libraries::PACKAGES
            ),
            "turso" => format!(
                "CARGO_TARGET_DIR=turso cargo build --release --locked --manifest-path '{BRIDGE}/Cargo.toml' \
                 && cp turso/release/{0} {0}",
                turso::LIBRARY
            ),
            other => {
                println!("{other}: cannot be fetched");
                continue;
            }
        };
        match shell(&script) {
            Ok(()) => println!("{}: fetched into {}", p.name, cache().display()),
            Err(e) => println!("{}: {e}", p.name),
        }
    }
    Ok(())
}

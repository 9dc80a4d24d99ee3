//! `cargo xtask COMMAND`: chores of the project.
//!
//! - `tidy`: layers, file lengths, where `unsafe` stands, headers, forbidden words.
//! - `faults [SEED]`: plants twenty faults in a copy and sees whether `differ` finds them.
//! - `dist`: builds a release and lays out `dist/bin` and `dist/lib`.
#![forbid(unsafe_code)]

mod faults;
mod tidy;

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ok = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(&root()),
        Some("faults") => faults::run(&root(), args.get(1).map_or("1", String::as_str)),
        Some("dist") => dist(),
        _ => {
            eprintln!("usage: cargo xtask tidy | faults [SEED] | dist");
            false
        }
    };
    if !ok {
        std::process::exit(1);
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// Builds the shell and the C library in release mode and lays them out as they are installed.
fn dist() -> bool {
    let root = root();
    let mut c = Command::new("cargo");
    c.current_dir(&root).args(["build", "--release", "-p", "iolite-cli", "-p", "iolite-capi"]);
    if !c.status().is_ok_and(|s| s.success()) {
        return false;
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let target = root.join(target).join("release");
    let place = |from: &str, to: &str| {
        let to = root.join("dist").join(to);
        let made = to.parent().is_none_or(|p| std::fs::create_dir_all(p).is_ok());
        // A file in use is replaced, not overwritten.
        let _ = std::fs::remove_file(&to);
        let done = made && std::fs::copy(target.join(from), &to).is_ok();
        println!("{} {}", if done { "wrote" } else { "could not write" }, to.display());
        done
    };
    let (built, installed) = if cfg!(target_os = "macos") {
        ("libiolite_capi.dylib", "libsqlite3.dylib")
    } else {
        ("libiolite_capi.so", "libsqlite3.so.0")
    };
    let mut ok = place("iolite", "bin/iolite");
    ok &= place(built, &format!("lib/{installed}"));
    ok &= place("libiolite_capi.a", "lib/libsqlite3.a");
    #[cfg(target_os = "linux")]
    {
        // The name by which linkers look for the library.
        let link = root.join("dist/lib/libsqlite3.so");
        let _ = std::fs::remove_file(&link);
        ok &= std::os::unix::fs::symlink(installed, &link).is_ok();
    }
    ok
}

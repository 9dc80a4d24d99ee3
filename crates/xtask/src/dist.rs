//! Builds of the shell and the C library, laid out as they are installed.
//!
//! The small library trades speed for size: it is compiled for size as a whole, a panic (a bug of ours) ends the process where the
//! other builds answer SQLITE_INTERNAL, there are no tables for unwinding, and relocations are packed, which needs a
//! loader that knows it (glibc 2.36, musl 1.2.4, Android 11).

use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo's profile `small` cannot say.
const SMALL_FLAGS: &str = "-C force-unwind-tables=no";
#[cfg(target_os = "linux")]
const SMALL_LINK_FLAGS: &str = " -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--no-eh-frame-hdr";
#[cfg(not(target_os = "linux"))]
const SMALL_LINK_FLAGS: &str = "";

/// Builds what the words ask for: `small`, `rows`, both, or nothing.
pub fn run(root: &Path, words: &[String]) -> bool {
    if let Some(w) = words.iter().find(|w| *w != "small" && *w != "rows") {
        eprintln!("dist: small and rows are known, {w} is not");
        return false;
    }
    let has = |word: &str| words.iter().any(|w| w == word);
    let (small, rows) = (has("small"), has("rows"));
    let variant = match (small, rows) {
        (false, false) => "",
        (true, false) => "small",
        (false, true) => "rows",
        (true, true) => "small-rows",
    };
    let profile = if small { "small" } else { "release" };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let target = root.join(target).join(variant);
    let mut c = Command::new("cargo");
    c.current_dir(root)
        .args(["build", "--profile", profile, "-p", "iolite-capi", "--target-dir"])
        .arg(&target);
    if variant.is_empty() {
        c.args(["-p", "iolite-cli"]);
    }
    if rows {
        c.arg("--no-default-features");
    }
    if small {
        c.env("RUSTFLAGS", [SMALL_FLAGS, SMALL_LINK_FLAGS].concat());
    }
    c.status().is_ok_and(|s| s.success()) && lay_out(&target.join(profile), &root.join("dist").join(variant))
}

/// Copies what was built to where it is installed from.
fn lay_out(built: &Path, dist: &Path) -> bool {
    let place = |from: &str, to: &str| {
        let to = dist.join(to);
        let made = to.parent().is_none_or(|p| std::fs::create_dir_all(p).is_ok());
        // A file in use is replaced, not overwritten.
        let _ = std::fs::remove_file(&to);
        let done = made && std::fs::copy(built.join(from), &to).is_ok();
        println!("{} {}", if done { "wrote" } else { "could not write" }, to.display());
        done
    };
    let (library, installed) = if cfg!(target_os = "macos") {
        ("libiolite_capi.dylib", "libsqlite3.dylib")
    } else {
        ("libiolite_capi.so", "libsqlite3.so.0")
    };
    let mut ok = place(library, &format!("lib/{installed}"));
    ok &= place("libiolite_capi.a", "lib/libsqlite3.a");
    if dist.ends_with("dist") {
        ok &= place("iolite", "bin/iolite");
    }
    #[cfg(target_os = "linux")]
    {
        // The name by which linkers look for the library.
        let link = dist.join("lib/libsqlite3.so");
        let _ = std::fs::remove_file(&link);
        ok &= std::os::unix::fs::symlink(installed, &link).is_ok();
    }
    ok
}

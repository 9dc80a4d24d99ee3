//! `cargo xtask COMMAND`: chores of the project.
//!
//! - `tidy`: layers, file lengths, where `unsafe` stands, headers, forbidden words.
//! - `dist`: builds a release and lays out `dist/bin` and `dist/lib`.
#![forbid(unsafe_code)]

mod tidy;

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ok = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(&root()),
        Some("dist") => dist(),
        _ => {
            eprintln!("usage: cargo xtask tidy | dist");
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

fn dist() -> bool {
    let root = root();
    let mut packages = vec!["iolite-cli"];
    if root.join("crates/capi").is_dir() {
        packages.push("iolite-capi");
    }
    let mut c = Command::new("cargo");
    c.current_dir(&root).args(["build", "--release"]);
    for p in &packages {
        c.args(["-p", p]);
    }
    if !c.status().is_ok_and(|s| s.success()) {
        return false;
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from).join("release");
    let place = |from: &str, to: &str| {
        let to = root.join("dist").join(to);
        let made = to.parent().is_none_or(|p| std::fs::create_dir_all(p).is_ok());
        // A library in use is replaced, not overwritten.
        let _ = std::fs::remove_file(&to);
        let done = made && std::fs::copy(target.join(from), &to).is_ok();
        println!("{} {}", if done { "wrote" } else { "could not write" }, to.display());
        done
    };
    let mut ok = place("iolite", "bin/iolite");
    if packages.len() > 1 {
        ok &= place("libiolite_capi.so", "lib/libsqlite3.so.0");
    }
    ok
}

//! The C programs of `tests/c`: each must print on this library what it prints on the system's SQLite.
//!
//! They need a C compiler, `sqlite3.h` and the system's `libsqlite3`; where these are missing, the test says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lines that may differ, by their beginning in our output, each with the reason.
const KNOWN: &[(&str, &str)] = &[
    ("open g.a row 1 ro: 1 cannot open table with generated columns", "SQLite 3.53 refuses it, 3.40 did not"),
    (
        "not allowed: 1 not authorized",
        "Debian's library allows extensions from the start, the documentation does not",
    ),
];

fn run(c: &mut Command) -> std::io::Result<Output> {
    c.env_remove("LD_LIBRARY_PATH").output()
}

/// The folder of this process for programs and their files, with the library in it as programs look for it.
fn folder() -> Option<PathBuf> {
    let exe = std::env::current_exe().expect("this test's own path");
    // Tests leave it there; only `cargo build` copies it one folder up.
    let built = exe.with_file_name("libiolite_capi.so");
    let dir = std::env::temp_dir().join(format!("iolite-programs-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("lib")).expect("a scratch folder");
    std::fs::copy(built, dir.join("lib/libsqlite3.so.0")).ok().map(|_| dir)
}

fn output(program: &Path, dir: &Path, library: Option<&Path>) -> String {
    let files = dir.join("files");
    let _ = std::fs::remove_dir_all(&files);
    std::fs::create_dir_all(&files).expect("a scratch folder");
    let mut c = Command::new(program);
    c.arg(&files).env_remove("LD_LIBRARY_PATH");
    if let Some(l) = library {
        c.env("LD_LIBRARY_PATH", l);
    }
    let o = c.output().expect("the program runs");
    format!("{}{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr), o.status)
}

#[test]
fn programs_print_what_they_print_on_stock() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let Some(dir) = folder() else {
        println!("not run: no shared library beside this test");
        return;
    };
    let mut ran = 0;
    for entry in std::fs::read_dir(&source).expect("the folder of programs").flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|e| e != "c") {
            continue;
        }
        let program = dir.join(file.file_stem().unwrap());
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-Wall", "-o"]).arg(&program).arg(&file).args(["-lsqlite3", "-lpthread"]);
        match run(&mut cc) {
            Ok(o) if o.status.success() => {}
            Ok(o) if ran == 0 => {
                println!("not run: {}", String::from_utf8_lossy(&o.stderr));
                return;
            }
            Ok(o) => panic!("{}", String::from_utf8_lossy(&o.stderr)),
            Err(e) => {
                println!("not run: {e}");
                return;
            }
        }
        let (ours, stock) = (output(&program, &dir, Some(&dir.join("lib"))), output(&program, &dir, None));
        let (a, b): (Vec<_>, Vec<_>) = (ours.lines().collect(), stock.lines().collect());
        let differs = |(a, b): &(&&str, &&str)| a != b && !KNOWN.iter().any(|k| a.starts_with(k.0));
        let wrong: Vec<_> = a.iter().zip(&b).enumerate().filter(|(_, p)| differs(p)).collect();
        assert!(wrong.is_empty() && a.len() == b.len(), "{}: {wrong:#?}\n{ours}", file.display());
        ran += 1;
    }
    let _ = std::fs::remove_dir_all(&dir);
    assert!(ran > 0);
}

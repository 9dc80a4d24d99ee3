//! The C programs of `tests/c`: each must print on this library what it prints on the system's SQLite.
//!
//! Those of `tests/c/session` and `tests/c/newer` are compared with the pinned SQLite: the system's may lack functions. Those of
//! `tests/c/alone` count by themselves what is wrong, more strictly than any SQLite takes it.
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
    (
        "1018: 0 1 0 1 0 0",
        "counters of loops are on from the start where they are built in; here stock has none",
    ),
    ("ignored|NULL|NULL", "what the authorizer ignores is NULL, as documented; stock's RETURNING gives it"),
];

fn run(c: &mut Command) -> std::io::Result<Output> {
    c.env_remove("LD_LIBRARY_PATH").output()
}

/// The folder of this process for programs and their files, with the library in it as programs look for it.
fn folder(name: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().expect("this test's own path");
    // Tests leave it there; only `cargo build` copies it one folder up.
    let built = exe.with_file_name("libiolite_capi.so");
    let dir = std::env::temp_dir().join(format!("iolite-programs-{name}-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("lib")).expect("a scratch folder");
    std::fs::copy(built, dir.join("lib/libsqlite3.so.0")).ok().map(|_| dir)
}

fn output(program: &Path, dir: &Path, library: Option<&Path>) -> String {
    let files = dir.join("scratch");
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

/// Compiles each program of a folder; `each` is given them. Nothing is run where nothing can be compiled, which is said.
fn compiled(
    source: &Path,
    dir: &Path,
    include: Option<&Path>,
    stock: Option<&Path>,
    each: impl Fn(&Path, &Path),
) {
    let mut ran = 0;
    for entry in std::fs::read_dir(source).expect("the folder of programs").flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|e| e != "c") {
            continue;
        }
        let program = dir.join(file.file_stem().unwrap());
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-Wall", "-o"]).arg(&program).arg(&file);
        if let (Some(include), Some(stock)) = (include, stock) {
            cc.args(OPTIONS).arg("-I").arg(include).arg("-L").arg(stock).arg("-l:libsqlite3.so.0");
        } else {
            cc.arg("-lsqlite3");
        }
        match run(cc.arg("-lpthread")) {
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
        each(&file, &program);
        ran += 1;
    }
    assert!(ran > 0);
}

/// Compiles each program of a folder and compares what it prints on both libraries.
fn compare(source: &Path, dir: &Path, include: Option<&Path>, stock: Option<&Path>) {
    compiled(source, dir, include, stock, |file, program| {
        let (ours, theirs) = (output(program, dir, Some(&dir.join("lib"))), output(program, dir, stock));
        let (a, b): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
        let differs = |(a, b): &(&&str, &&str)| a != b && !KNOWN.iter().any(|k| a.starts_with(k.0));
        let wrong: Vec<_> = a.iter().zip(&b).enumerate().filter(|(_, p)| differs(p)).take(20).collect();
        assert!(wrong.is_empty() && a.len() == b.len(), "{}: {wrong:#?}\n{ours}", file.display());
    });
}

/// Hands over a folder of programs below `tests/c`, and the folder of this process for them.
fn on_this_library(programs: &str, f: impl Fn(&Path, &Path)) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(programs);
    let Some(dir) = folder(if programs.is_empty() { "plain" } else { programs }) else {
        println!("not run: no shared library beside this test");
        return;
    };
    f(&source, &dir);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn programs_print_what_they_print_on_stock() {
    on_this_library("", |source, dir| compare(source, dir, None, None));
}

/// What the pinned SQLite is compiled with.
const OPTIONS: &[&str] = &[
    "-DSQLITE_ENABLE_SESSION",
    "-DSQLITE_ENABLE_PREUPDATE_HOOK",
    "-DSQLITE_ENABLE_SNAPSHOT",
    "-DSQLITE_ENABLE_FTS5",
];

/// The pinned SQLite's source, where cargo keeps it for the crate `iolite-stock`.
fn stock_source() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let found = |e: std::fs::DirEntry| e.path().join("libsqlite3-sys-0.38.1/sqlite3");
    registries.flatten().map(found).find(|p| p.join("sqlite3.c").is_file())
}

/// The folder of the pinned SQLite as a shared library; it is compiled once.
fn pinned_stock(source: &Path) -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stock-pinned");
    let library = dir.join("libsqlite3.so.0");
    if !library.is_file() {
        std::fs::create_dir_all(&dir).ok()?;
        let making = dir.join(format!("making-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fPIC", "-shared", "-Wl,-soname,libsqlite3.so.0", "-DSQLITE_ENABLE_RTREE"])
            .args(OPTIONS);
        cc.arg("-o").arg(&making).arg(source.join("sqlite3.c")).args(["-lpthread", "-lm", "-ldl"]);
        if !run(&mut cc).is_ok_and(|o| o.status.success()) {
            return None;
        }
        std::fs::rename(&making, &library).ok()?;
    }
    Some(dir)
}

/// Compares the programs of a folder with the pinned SQLite.
fn compare_with_pinned(name: &str) {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let (Some(dir), Some(source)) = (folder(name), stock_source()) else {
        println!("not run: no shared library beside this test, or no source of the pinned SQLite");
        return;
    };
    static COMPILING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let stock = {
        let _one = COMPILING.lock();
        pinned_stock(&source)
    };
    match stock {
        Some(stock) => compare(&programs, &dir, Some(&source), Some(&stock)),
        None => println!("not run: the pinned SQLite could not be compiled"),
    }
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn sessions_and_snapshots_are_as_on_stock() {
    compare_with_pinned("session");
}

#[test]
fn what_newer_versions_have_is_as_on_stock() {
    compare_with_pinned("newer");
}

#[test]
fn programs_that_count_find_nothing_wrong() {
    on_this_library("alone", |source, dir| {
        compiled(source, dir, None, None, |file, program| {
            let ours = output(program, dir, Some(&dir.join("lib")));
            assert!(ours.contains("\nwrong 0\n"), "{}: {ours}", file.display());
        });
    });
}

//! The shell as a user sees it: scripts in, text out, exit codes.
//!
//! `scripts/*.sql` are fed to the shell; what it prints must equal the file beside with the ending `.out`. Run with
//! `IOLITE_UPDATE=1` to write those files anew. Scripts that behave alike in every version of sqlite3 begin with
//! `-- same` and are held against the sqlite3 of this machine, if there is one.

mod files;

use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the shell printed, and its exit code.
pub struct Run {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit code.
    pub code: i32,
}

/// Runs a program on a script.
pub fn run_program(program: &str, dir: &Path, args: &[&str], script: &str) -> Run {
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the shell starts");
    let mut input = child.stdin.take().expect("piped");
    let text = script.as_bytes().to_vec();
    let writer = std::thread::spawn(move || {
        // The shell may leave before it has read everything.
        let _ = input.write_all(&text);
    });
    let o = child.wait_with_output().expect("the shell ends");
    writer.join().expect("the writer ends");
    Run {
        out: String::from_utf8_lossy(&o.stdout).into_owned(),
        err: String::from_utf8_lossy(&o.stderr).into_owned(),
        code: o.status.code().unwrap_or(-1),
    }
}

/// Runs our shell.
pub fn run(dir: &Path, args: &[&str], script: &str) -> Run {
    run_program(env!("CARGO_BIN_EXE_iolite"), dir, args, script)
}

/// An empty folder of this test's own, which goes with it.
pub struct Scratch(PathBuf);

/// See [`Scratch`].
pub fn scratch(name: &str) -> Scratch {
    let dir = std::env::temp_dir().join(format!("iolite-cli-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a scratch folder");
    Scratch(dir)
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scripts");
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let stock = Command::new("sqlite3").arg("-version").output().is_ok();
    for f in files.iter().filter(|f| f.extension().is_some_and(|e| e == "sql")) {
        let name = f.file_stem().unwrap().to_string_lossy().into_owned();
        let script = std::fs::read_to_string(f).unwrap();
        let scratch = scratch(&name);
        let r = run(&scratch, &["-batch"], &script);
        let text = format!("{}--- stderr\n{}--- code {}\n", r.out, r.err, r.code);
        let expected = f.with_extension("out");
        if std::env::var_os("IOLITE_UPDATE").is_some() {
            std::fs::write(&expected, &text).unwrap();
        }
        if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{name}:\n{text}"));
        }
        if stock && script.starts_with("-- same") {
            let s = run_program("sqlite3", &scratch, &["-batch"], &script);
            if (&s.out, &s.err, s.code) != (&r.out, &r.err, r.code) {
                wrong.push(format!("{name} differs from sqlite3:\n{}{}{}", s.out, s.err, s.code));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A program that does not outlive its test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ctrl-C in a terminal, made by `script` where that is installed: the line editor must not keep the signal for itself.
#[test]
fn ctrl_c_stops_a_query_in_a_terminal() {
    let shell = format!("{} :memory:", env!("CARGO_BIN_EXE_iolite"));
    let child = std::process::Command::new("script")
        .args(["-qfec", &shell, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(child) = child else { return };
    let mut child = Ended(child);
    let (mut keys, mut screen) = (child.0.stdin.take().unwrap(), child.0.stdout.take().unwrap());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let shown = seen.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = std::io::Read::read(&mut screen, &mut bytes) {
            shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    });
    let wait = |text: &str, keys: &mut dyn FnMut()| {
        for _ in 0..300 {
            if seen.lock().unwrap().contains(text) {
                return;
            }
            keys();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("no {text:?} in {:?}", seen.lock().unwrap());
    };
    let mut press = |text: &str| std::io::Write::write_all(&mut keys, text.as_bytes()).unwrap();
    wait("iolite>", &mut || {});
    press("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;\r");
    std::thread::sleep(std::time::Duration::from_millis(500));
    // Repeated, in case that the query had not begun.
    wait("interrupted", &mut || press("\x03"));
    press("SELECT 'still ' || 'here';\r");
    wait("still here", &mut || {});
    press(".quit\r");
}

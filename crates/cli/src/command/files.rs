//! Commands that have to do with files and other programs.

use super::{Flow, fail, usage};
use crate::input::{self, End, Script};
use crate::output::Output;
use crate::shell::Shell;
use iolite::engine::{Connection, OpenFlags};
use std::io::BufReader;
use std::process::{Command, Stdio};

/// How deep scripts may read scripts.
const MAX_DEPTH: usize = 25;

pub(super) fn cd(s: &mut Shell, a: &[String]) -> Flow {
    match a {
        [_, dir] => match std::env::set_current_dir(dir) {
            Ok(()) => Flow::Next,
            Err(_) => fail(s, &format!("Cannot change to directory \"{dir}\"")),
        },
        _ => usage(s, "cd"),
    }
}

pub(super) fn load(s: &mut Shell, _: &[String]) -> Flow {
    fail(s, "Error: extensions are loaded by the C library, not by this program")
}

pub(super) fn log(s: &mut Shell, a: &[String]) -> Flow {
    match a {
        [_, f] if f == "off" => s.log = None,
        [_, f] if f == "on" => s.log = Some(Output::stdout()),
        [_, f] => match Output::open(if f == "stderr" { "/dev/stderr" } else { f }) {
            Ok(o) => s.log = Some(o),
            Err(e) => return fail(s, &format!("Error: cannot open \"{f}\": {e}")),
        },
        _ => return usage(s, "log"),
    }
    Flow::Next
}

pub(super) fn output(s: &mut Shell, a: &[String]) -> Flow {
    let name = if a.len() > 1 { a[1..].join(" ") } else { String::new() };
    s.once = false;
    if s.set_output(name.trim()) { Flow::Next } else { Flow::Fail }
}

pub(super) fn once(s: &mut Shell, a: &[String]) -> Flow {
    if a.len() < 2 {
        return usage(s, "once");
    }
    if !s.set_output(a[1..].join(" ").trim()) {
        return Flow::Fail;
    }
    s.once = true;
    Flow::Next
}

pub(super) fn system(s: &mut Shell, a: &[String]) -> Flow {
    if a.len() < 2 {
        return usage(s, &a[0]);
    }
    let _ = std::io::Write::flush(&mut s.out);
    // Words with spaces in them were quoted when they were typed.
    let quoted = |w: &String| if w.contains(' ') { format!("\"{w}\"") } else { w.clone() };
    let line = a[1..].iter().map(quoted).collect::<Vec<_>>().join(" ");
    match Command::new("sh").arg("-c").arg(line).status() {
        Ok(status) if status.success() => Flow::Next,
        Ok(status) => {
            let code = status.code().unwrap_or(-1);
            s.complain(&format!("System command returns {code}"));
            Flow::Next
        }
        Err(e) => fail(s, &format!("Error: cannot run the command: {e}")),
    }
}

pub(super) fn read(s: &mut Shell, a: &[String]) -> Flow {
    let name = match a {
        [_, first, ..] if first.starts_with('|') => a[1..].join(" "),
        [_, f] => f.clone(),
        _ => return usage(s, "read"),
    };
    if s.depth >= MAX_DEPTH {
        return fail(s, &format!("Input nesting limit ({MAX_DEPTH}) reached. Check recursion."));
    }
    s.depth += 1;
    let before = s.errors;
    let end = match name.strip_prefix('|') {
        Some(command) => read_command(s, command),
        None => match std::fs::File::open(&name) {
            Ok(f) => Some(input::process(s, &mut Script(BufReader::new(f)), false)),
            Err(_) => {
                s.complain(&format!("Error: cannot open \"{name}\""));
                None
            }
        },
    };
    s.depth -= 1;
    match end {
        Some(End::Exit(code)) => Flow::Exit(code),
        Some(End::Input) if s.errors == before => Flow::Next,
        Some(_) => {
            // Counted where they happened.
            s.errors = s.errors.saturating_sub(1).max(before);
            Flow::Fail
        }
        None => Flow::Fail,
    }
}

fn read_command(s: &mut Shell, command: &str) -> Option<End> {
    let child = Command::new("sh").arg("-c").arg(command).stdout(Stdio::piped()).spawn();
    match child {
        Ok(mut child) => {
            let out = child.stdout.take()?;
            let end = input::process(s, &mut Script(BufReader::new(out)), false);
            let _ = child.wait();
            Some(end)
        }
        Err(e) => {
            s.complain(&format!("Error: cannot open \"|{command}\": {e}"));
            None
        }
    }
}

pub(super) fn open(s: &mut Shell, a: &[String]) -> Flow {
    let (mut file, mut fresh, mut read_only, mut must_exist) = (String::new(), false, false, false);
    for arg in &a[1..] {
        match arg.trim_start_matches('-') {
            "new" if arg.starts_with('-') => fresh = true,
            "readonly" if arg.starts_with('-') => read_only = true,
            "ifexists" if arg.starts_with('-') => must_exist = true,
            _ if arg.starts_with('-') => return fail(s, &format!("unknown option: {arg}")),
            _ if file.is_empty() => file = arg.clone(),
            _ => return fail(s, &format!("extra argument: \"{arg}\"")),
        }
    }
    s.reopen(&file);
    (s.read_only, s.must_exist) = (read_only, must_exist);
    if fresh && !file.is_empty() && file != ":memory:" {
        for end in ["", "-journal", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{file}{end}"));
        }
    }
    if s.ensure_open().is_some() {
        return Flow::Next;
    }
    s.reopen("");
    (s.read_only, s.must_exist) = (false, false);
    s.complain(&format!("Notice: using substitute in-memory database instead of \"{file}\""));
    s.errors = s.errors.saturating_sub(1);
    Flow::Fail
}

/// Copies all pages of one database into another, showing how far it is.
fn copy(s: &mut Shell, what: &str, to: &Connection, to_db: &str, from: &Connection, from_db: &str) -> Flow {
    let result = (|| {
        let (to, from) = (to.btree(to_db)?, from.btree(from_db)?);
        let mut b = iolite_btree::Backup::new(&to, &from)?;
        let bar = crate::progress::Bar::new(what, 0, false);
        while !b.step(1024)? {
            bar.set_total(b.page_count() as u64);
            bar.set((b.page_count() - b.remaining()) as u64);
            if s.interrupts.take() {
                return Err(iolite::Code::Interrupt.into());
            }
        }
        Ok(())
    })();
    match result {
        Ok(()) => Flow::Next,
        Err(e) => {
            let e: iolite::Error = e;
            fail(s, &format!("Error: {}", e.message()))
        }
    }
}

fn two<'a>(s: &mut Shell, a: &'a [String]) -> Option<(&'a str, &'a str)> {
    let words: Vec<&String> = a[1..].iter().filter(|w| !w.starts_with('-')).collect();
    match words.as_slice() {
        [file] => Some(("main", file)),
        [db, file] => Some((db, file)),
        _ => {
            usage(s, &a[0]);
            None
        }
    }
}

pub(super) fn backup(s: &mut Shell, a: &[String]) -> Flow {
    let Some((db, file)) = two(s, a) else { return Flow::Fail };
    let Some(from) = s.ensure_open() else { return Flow::Fail };
    match Connection::open(file) {
        Ok(to) => {
            // An empty source has no pages yet, and so nothing to copy.
            let flow = copy(s, "backup", &to, "main", &from, db);
            match to.close() {
                Ok(()) => flow,
                Err(e) => fail(s, &format!("Error: {}", e.message())),
            }
        }
        Err(e) => fail(s, &format!("Error: cannot open \"{file}\": {}", e.message())),
    }
}

pub(super) fn restore(s: &mut Shell, a: &[String]) -> Flow {
    let Some((db, file)) = two(s, a) else { return Flow::Fail };
    let Some(to) = s.ensure_open() else { return Flow::Fail };
    let flags = OpenFlags { create: false, ..OpenFlags::default() };
    match Connection::open_with(file, flags) {
        Ok(from) => copy(s, "restore", &to, db, &from, "main"),
        Err(e) => fail(s, &format!("Error: cannot open \"{file}\": {}", e.message())),
    }
}

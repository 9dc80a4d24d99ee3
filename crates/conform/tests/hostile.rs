//! Hostile places: folders, files, names, limits and neighbours that a database does not expect, in each journal mode.
//!
//! Each engine meets each place in a process of its own: this binary again, which then runs only the test `actor` and
//! answers statements that it reads from its standard input. What always holds: a statement answers in time; what was
//! acknowledged is there afterwards and what failed is not; stock's `integrity_check` says ok once the place is mended;
//! and iolite answers as stock does unless the place's entry names the difference, which is on the safe side.
//! `docs/hostile-places.md` is the table of what is seen here. Needs root, to be somebody else and to mount.

use iolite_testkit::{Scratch, continue_process, stop_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];

/// Longer than any statement here takes.
const PATIENCE: Duration = Duration::from_secs(4);

/// The rows that a database begins with.
const ROWS: i64 = 10;

/// More than the small disk and the small limit hold.
const MANY: i64 = 3000;

// The other process.

/// Not a test: what runs in the other process.
#[test]
fn actor() {
    let Some(engine) = std::env::var_os("HOSTILE_ENGINE") else { return };
    let path = std::env::var_os("HOSTILE_PATH").expect("a path");
    let say = |text: String| {
        println!("\n@{}", text.replace('\n', " "));
        std::io::stdout().flush().expect("the parent listens");
    };
    let mut run: Box<dyn FnMut(&str) -> String> = if engine == "stock" {
        match iolite_stock::Connection::open(path.to_str().expect("stock is given plain names")) {
            Ok(c) => Box::new(move |sql| match c.query(sql) {
                Ok(rows) => format!("{:?}", rows.first().map(|r| &r[0])),
                Err(e) => format!("error {} {}", e.code, e.message),
            }),
            Err(e) => Box::new(move |_| format!("error {} {}", e.code, e.message)),
        }
    } else {
        let open = || {
            let flags = iolite::engine::OpenFlags { uri: false, ..Default::default() };
            let c = iolite::engine::Connection::open_interruptible(
                path.as_bytes(),
                flags,
                Default::default(),
                None,
            )?;
            c.lock_lease(10)?;
            c.checkpoint_thread(true)?;
            Ok::<_, iolite::Error>(c)
        };
        match open() {
            Ok(c) => Box::new(move |sql| match c.query(sql, &[]) {
                Ok(rows) => format!("{:?}", rows.first().map(|r| &r[0])),
                Err(e) => format!("error {} {}", e.code().number(), e.message()),
            }),
            Err(e) => Box::new(move |_| format!("error {} {}", e.code().number(), e.message())),
        }
    };
    for line in std::io::stdin().lines() {
        say(run(&line.expect("a statement")));
    }
}

/// A connection in a process of its own.
struct Actor {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
    hangs: bool,
}

impl Actor {
    /// `before`: what a shell does first.
    fn new(engine: &str, path: &Path, before: &str) -> Actor {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("{before} exec ${{AS:-}} \"$0\" \"$@\""))
            .arg(std::env::current_exe().expect("this binary"))
            .args(["--exact", "actor", "--nocapture"])
            .env("HOSTILE_ENGINE", engine)
            .env("HOSTILE_PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (send, from) = channel();
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix('@')
                    && send.send(answer.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        let to = child.stdin.take();
        Actor { child, to, from, hangs: false }
    }

    /// The answer to a statement: a value, `error CODE ...`, `hangs` or `dies`.
    fn ask(&mut self, sql: &str) -> String {
        use std::sync::mpsc::RecvTimeoutError::*;
        if self.hangs {
            return "hangs".into();
        }
        if writeln!(self.to.as_mut().expect("open"), "{sql}").is_err() {
            return "dies".into();
        }
        match self.from.recv_timeout(PATIENCE) {
            Ok(a) => a,
            Err(Timeout) => {
                self.hangs = true;
                "hangs".into()
            }
            Err(Disconnected) => "dies".into(),
        }
    }

    /// Closes the connection in order.
    fn end(mut self) {
        self.to = None;
        for _ in 0..200 {
            if self.child.try_wait().expect("our child").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// Places.

/// Where a database is met, and how.
struct World {
    /// Gone when dropped.
    _scratch: Scratch,
    dir: PathBuf,
    mounted: bool,
}

impl World {
    /// A folder with a database that stock made.
    fn new(mode: &str, disk: Option<&str>) -> World {
        let scratch = Scratch::new();
        let dir = scratch.path("place");
        std::fs::create_dir(&dir).expect("a folder");
        let w = World { _scratch: scratch, dir, mounted: disk.is_some() };
        if let Some(size) = disk {
            let size = format!("size={size}");
            let ok = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&w.dir).status();
            assert!(ok.is_ok_and(|s| s.success()), "root may mount a small disk");
        }
        let made = stock(
            &w.db(),
            &format!(
                "PRAGMA journal_mode={mode}; CREATE TABLE t(a INTEGER PRIMARY KEY, b);
                 INSERT INTO t(b) SELECT randomblob(200) FROM generate_series(1, {ROWS});"
            ),
        );
        assert_eq!(made, mode);
        // What stock leaves in PERSIST is not part of any place.
        let _ = std::fs::remove_file(w.beside("-journal"));
        w
    }

    fn db(&self) -> PathBuf {
        self.dir.join("a.db")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut p = self.db().into_os_string();
        p.push(suffix);
        p.into()
    }

    fn allow(&self, dir: u32, db: u32) {
        for (p, bits) in [(&self.dir, dir), (&self.db(), db)] {
            std::fs::set_permissions(p, std::fs::Permissions::from_mode(bits)).expect("our file");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
    }
}

/// What stock's shell answers.
fn stock(db: &Path, sql: &str) -> String {
    let out = Command::new("sqlite3").arg("-batch").arg(db).arg(sql).stdin(Stdio::null()).output();
    let out = out.expect("the sqlite3 shell is installed");
    let text = [out.stdout, out.stderr].concat();
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

/// An answer without what engines may word in their own way.
fn short(answer: &str) -> String {
    let mut words = answer.split(' ');
    match (words.next(), words.next()) {
        (Some("error"), Some(code)) => {
            let code: i32 = code.parse().expect("a code");
            format!("e{}", code & 0xff)
        }
        _ if answer.starts_with("Some(Text(") => "text".into(),
        _ => answer.replace("Some(Int(", "").replace("))", ""),
    }
}

/// Where iolite is stricter: mode (or `*`), what stock answers, what iolite answers.
type Other<'a> = (&'a str, &'a str, &'a str);

/// One place.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    disk: Option<&'a str>,
    before: &'a str,
    plant: &'a dyn Fn(&World),
    /// Between the first read and the writes.
    meanwhile: &'a dyn Fn(&World),
    /// Makes it a good place again.
    heal: &'a dyn Fn(&World),
    /// Where iolite is stricter.
    other: &'a [Other<'a>],
    /// The file itself is harmed: nothing is said about its content.
    harmed: bool,
}

const NOTHING: &dyn Fn(&World) = &|_| {};

const PLAIN: Place<'static> = Place {
    name: "",
    disk: None,
    before: "",
    plant: NOTHING,
    meanwhile: NOTHING,
    heal: NOTHING,
    other: &[],
    harmed: false,
};

/// Somebody who owns nothing.
const NOBODY: &str = "AS='setpriv --reuid=65534 --regid=65534 --clear-groups';";

/// What an engine says in a place, in one line: mode, read, small write, large write, read, and what a new connection
/// reads once the place is good again.
fn met(engine: &str, mode: &str, p: &Place) -> (String, Vec<String>) {
    let mut wrong = Vec::new();
    let w = World::new(mode, p.disk);
    (p.plant)(&w);
    let mut a = Actor::new(engine, &w.db(), p.before);
    let mut said = Vec::new();
    if mode != "wal" {
        said.push(a.ask(&format!("PRAGMA journal_mode={mode}")));
    }
    let count = "SELECT count(*) FROM t";
    said.push(a.ask(count));
    (p.meanwhile)(&w);
    let mut rows = ROWS;
    for n in [1, MANY] {
        let many = format!("WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<{n})");
        let answer = a.ask(&format!("INSERT INTO t(b) {many} SELECT randomblob(200) FROM n"));
        if answer == "None" {
            rows += n;
        }
        said.push(answer);
    }
    said.push(a.ask(count));
    if let Ok(seen) = short(&said[said.len() - 1]).parse::<i64>()
        && seen != rows
        && !p.harmed
    {
        wrong.push(format!("reads {seen} rows of {rows}"));
    }
    if said.iter().any(|s| s == "hangs") {
        // Killed, not closed: it does not listen.
        drop(a);
    } else {
        a.end();
    }
    (p.heal)(&w);
    let after = stock(&w.db(), "PRAGMA integrity_check; SELECT count(*) FROM t");
    if after != format!("ok\n{rows}") && !p.harmed {
        wrong.push(format!("stock reads {after:?} of {rows} rows"));
    }
    let line: Vec<String> = said.iter().map(|s| short(s)).collect();
    if std::env::var_os("HOSTILE_SHOW").is_some() {
        println!("{} {mode} {engine}: {said:?}", p.name);
    }
    (line.join(" "), wrong)
}

/// Both engines in one place, in each mode.
fn place(p: Place) {
    let bad = differences(&p);
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

/// What iolite does otherwise than stock without having a word for it, or does wrong.
fn differences(p: &Place) -> Vec<String> {
    if !is_root() {
        println!("skipped: {} needs root", p.name);
        return Vec::new();
    }
    let mut bad = Vec::new();
    for mode in MODES {
        let (theirs, _) = met("stock", mode, p);
        let (ours, wrong) = met("iolite", mode, p);
        bad.extend(wrong.iter().map(|w| format!("{mode}: iolite {w} (stock: {theirs}; iolite: {ours})")));
        let expected = p.other.iter().find(|o| (o.0 == mode || o.0 == "*") && o.1 == theirs).map(|o| o.2);
        if ours != theirs && expected != Some(ours.as_str()) {
            bad.push(format!("{mode}: stock: {theirs}; iolite: {ours}"));
        }
    }
    bad.into_iter().map(|b| format!("{}: {b}", p.name)).collect()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n")
}

fn unlink(p: &Path) {
    let _ = std::fs::remove_file(p);
    let _ = std::fs::remove_dir_all(p);
}

fn heal_beside(w: &World) {
    // Only what was planted: a journal of the engine's own is needed.
    for s in ["-journal", "-wal", "-shm"] {
        let p = w.beside(s);
        if let Ok(m) = std::fs::symlink_metadata(&p)
            && !m.is_file()
        {
            unlink(&p);
        }
    }
}

#[test]
fn a_good_place() {
    place(PLAIN);
}

#[test]
fn an_unwritable_directory() {
    place(Place { name: "unwritable directory", before: NOBODY, plant: &|w| w.allow(0o755, 0o666), ..PLAIN });
}

#[test]
fn a_read_only_file() {
    place(Place { name: "read-only file", before: NOBODY, plant: &|w| w.allow(0o777, 0o444), ..PLAIN });
}

#[test]
fn a_foreign_file_in_a_foreign_directory() {
    place(Place {
        name: "foreign and read-only",
        before: NOBODY,
        plant: &|w| w.allow(0o755, 0o444),
        ..PLAIN
    });
}

#[test]
fn a_file_that_may_not_be_read() {
    place(Place { name: "unreadable", before: NOBODY, plant: &|w| w.allow(0o777, 0o600), ..PLAIN });
}

#[test]
fn a_full_disk() {
    place(Place { name: "full disk", disk: Some("300k"), ..PLAIN });
}

#[test]
fn a_limit_of_file_sizes() {
    place(Place { name: "ulimit -f", before: "trap '' XFSZ; ulimit -f 150;", ..PLAIN });
}

#[test]
fn a_limit_of_descriptors() {
    let mut bad = Vec::new();
    for n in 4..12 {
        let before = format!("ulimit -n {n};");
        bad.extend(differences(&Place { name: &format!("ulimit -n {n}"), before: &before, ..PLAIN }));
    }
}

const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// What is no file is refused whole; stock waits for a pipe for ever, or reads and then fails to write.
const REFUSED: &[Other] = &[
    ("*", "e10 e10 e10 e10 e10", "e14 e14 e14 e14 e14"),
    ("*", "hangs hangs hangs hangs hangs", "e14 e14 e14 e14 e14"),
    ("*", "text 10 None None 3011", "e14 e14 e14 e14 e14"),
    ("wal", "e10 e10 e10 e10", "e14 e14 e14 e14"),
    ("wal", "hangs hangs hangs hangs", "e14 e14 e14 e14"),
    ("wal", "10 e10 e10 10", "e14 e14 e14 e14"),
    ("wal", "10 e8 e8 10", "e14 e14 e14 e14"),
];

#[test]
fn a_directory_beside() {
    let mut bad = Vec::new();
    for s in BESIDE {
        bad.extend(differences(&Place {
            other: REFUSED,
            name: &format!("directory {s}"),
            plant: &|w| std::fs::create_dir(w.beside(s)).expect("a folder"),
            heal: &heal_beside,
            ..PLAIN
        }));
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn a_pipe_beside() {
    let mut bad = Vec::new();
    for s in BESIDE {
        bad.extend(differences(&Place {
            other: REFUSED,
            name: &format!("FIFO {s}"),
            plant: &|w| {
                assert!(Command::new("mkfifo").arg(w.beside(s)).status().expect("mkfifo").success());
            },
            heal: &heal_beside,
            ..PLAIN
        }));
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn a_link_beside() {
    let victims = std::cell::RefCell::new(Vec::new());
    let mut bad = Vec::new();
    for (s, there) in BESIDE.iter().flat_map(|s| [(s, true), (s, false)]) {
        bad.extend(differences(&Place {
            name: &format!("link {s} {there}"),
            plant: &|w| {
                let victim = w.dir.join("victim");
                if there {
                    std::fs::write(&victim, "precious").expect("a file");
                }
                std::os::unix::fs::symlink(&victim, w.beside(s)).expect("a link");
            },
            heal: &|w| {
                heal_beside(w);
                let now = std::fs::read_to_string(w.dir.join("victim")).ok();
                victims.borrow_mut().push((s.to_string(), there, now));
            },
            ..PLAIN
        }));
    }
    // The second of each pair is iolite's: what a link leads to is neither changed nor made.
    for (s, there, now) in victims.borrow().iter().skip(1).step_by(2) {
        assert_eq!(now.as_deref(), there.then_some("precious"), "{s}");
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn a_file_of_another_program_beside() {
    let mut bad = Vec::new();
    for (s, len) in BESIDE.iter().flat_map(|s| [(s, 1), (s, 100), (s, 100_000)]) {
        bad.extend(differences(&Place {
            name: &format!("text {s} {len}"),
            plant: &|w| std::fs::write(w.beside(s), "Dear diary\n".repeat(len / 11 + 1)).expect("a file"),
            ..PLAIN
        }));
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

fn resize(w: &World, size: u64) {
    std::fs::OpenOptions::new().write(true).open(w.db()).expect("the file").set_len(size).expect("cut");
}

#[test]
fn a_file_cut_or_overwritten_while_open() {
    let mut bad = Vec::new();
    // Within its last page.
    bad.extend(differences(&Place { name: "cut", meanwhile: &|w| resize(w, 5000), harmed: true, ..PLAIN }));
    bad.extend(differences(&Place {
        name: "overwritten",
        meanwhile: &|w| std::fs::write(w.db(), "Dear diary\n".repeat(3000)).expect("a file"),
        harmed: true,
        ..PLAIN
    }));
    bad.extend(differences(&Place {
        name: "removed",
        meanwhile: &|w| unlink(&w.db()),
        harmed: true,
        ..PLAIN
    }));
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn a_journal_replaced_while_open() {
    let mut bad = Vec::new();
    for s in BESIDE {
        bad.extend(differences(&Place {
            name: &format!("removed {s}"),
            meanwhile: &|w| unlink(&w.beside(s)),
            harmed: s == "-wal" || s == "-shm",
            ..PLAIN
        }));
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn a_file_that_is_no_database() {
    let mut bad = Vec::new();
    for len in [0, 1, 99, 100, 511, 4096] {
        bad.extend(differences(&Place {
            // Stock takes a single byte for an empty file.
            other: &[
                ("wal", "e1 e1 e1 e1", "e26 e26 e26 e26"),
                ("*", "text e1 e1 e1 e1", "e26 e26 e26 e26 e26"),
            ],
            name: &format!("text of {len} bytes"),
            plant: &|w| std::fs::write(w.db(), &"Dear diary\n".repeat(400)[..len]).expect("a file"),
            harmed: true,
            ..PLAIN
        }));
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

/// Both engines on a file of this name, which stock's shell reads afterwards.
fn named(name: &[u8]) -> String {
    let s = Scratch::new();
    let db = s.dir().join(std::ffi::OsStr::from_bytes(name));
    if let Some(dir) = db.parent() {
        std::fs::create_dir_all(dir).expect("folders");
    }
    let mut said = Vec::new();
    for mode in MODES {
        let mut a = Actor::new("iolite", &db, "");
        said.push(short(&a.ask(&format!("PRAGMA journal_mode={mode}"))));
        said.push(short(&a.ask("CREATE TABLE IF NOT EXISTS t(a)")));
        said.push(short(&a.ask("INSERT INTO t VALUES(1)")));
        a.end();
    }
    let files = std::fs::read_dir(s.dir()).expect("the folder").count();
    format!("{} | {} | {files}", said.join(" "), stock(&db, "PRAGMA integrity_check; SELECT count(*) FROM t"))
}

#[test]
fn names_that_are_no_text() {
    let fine = "text None None text None None text None None text None None | ok\n4 | 1";
    assert_eq!(named(b"caf\xe9.db"), fine);
    assert_eq!(named(b"\xff\xfe"), fine);
    assert_eq!(named(b"a\nb ?%20#.db"), fine);
}

#[test]
fn a_neighbour_that_is_stopped_with_locks() {
    for mode in MODES {
        for first in ["iolite", "stock"] {
            for second in ["iolite", "stock"] {
                let w = World::new(mode, None);
                let set = format!("PRAGMA journal_mode={mode}");
                let (mut a, mut b) = (Actor::new(first, &w.db(), ""), Actor::new(second, &w.db(), ""));
                if mode != "wal" {
                    assert_eq!((short(&a.ask(&set)), short(&b.ask(&set))), ("text".into(), "text".into()));
                }
                assert_eq!(a.ask("BEGIN IMMEDIATE"), "None");
                assert_eq!(a.ask("INSERT INTO t(b) VALUES(1)"), "None");
                stop_process(a.child.id());
                let met = [b.ask("SELECT count(*) FROM t"), b.ask("INSERT INTO t(b) VALUES(2)")];
                assert_eq!(met.map(|m| short(&m)), ["10", "e5"], "{mode} {first} {second}");
                continue_process(a.child.id());
                assert_eq!(a.ask("COMMIT"), "None");
                assert_eq!(b.ask("INSERT INTO t(b) VALUES(2)"), "None");
                assert_eq!(short(&b.ask("SELECT count(*) FROM t")), "12", "{mode} {first} {second}");
                // Stopped for good.
                assert_eq!(a.ask("BEGIN IMMEDIATE"), "None");
                assert_eq!(a.ask("INSERT INTO t(b) VALUES(3)"), "None");
                stop_process(a.child.id());
                drop(a);
                assert_eq!(b.ask("INSERT INTO t(b) VALUES(4)"), "None");
                b.end();
                assert_eq!(stock(&w.db(), "PRAGMA integrity_check; SELECT count(*) FROM t"), "ok\n13");
            }
        }
    }
}

#[test]
fn a_device_and_a_long_name() {
    let long = Scratch::new();
    for room in [4000, 4085, 4096, 5000] {
        // Folders whose names add up; the system takes 4,095 bytes.
        let mut db = long.dir().to_owned();
        while db.as_os_str().len() + 202 < room {
            db.push("d".repeat(200));
        }
        db.push("f".repeat((room - db.as_os_str().len() - 1).min(200)));
        let _ = std::fs::create_dir_all(db.parent().expect("a folder"));
        let mut a = Actor::new("iolite", &db, "");
        let said = a.ask("CREATE TABLE t(a)");
        assert!(said == "None" || short(&said) == "e14", "{room}: {said}");
        a.end();
    }
    for engine in ["stock", "iolite"] {
        let said = Actor::new(engine, Path::new("/dev/full"), "").ask("CREATE TABLE t(a)");
        assert!(said.starts_with("error"), "{engine}: {said}");
    }
}

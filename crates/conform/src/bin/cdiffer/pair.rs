//! Both libraries, call by call: the first difference of a script, what is known to differ, and how a script is made short.

use super::api::{self, Api};
use super::side::{ABOUT, Fields, Side};
use std::path::{Path, PathBuf};

/// Both tables of functions; they live as long as the process.
pub struct Libraries {
    stock: &'static Api,
    ours: &'static Api,
}

impl Libraries {
    /// Ours lies where cargo puts it: beside this program, or in `deps`.
    pub fn load() -> Libraries {
        let exe = std::env::current_exe().expect("this program's own path");
        let at = |dir: &Path| dir.join("libiolite_capi.so");
        let places: Vec<PathBuf> = match std::env::var_os("IOLITE_LIBRARY") {
            Some(l) => vec![l.into()],
            None => exe.parent().map_or(Vec::new(), |d| vec![at(&d.join("deps")), at(d)]),
        };
        let file = places.iter().find(|p| p.is_file());
        let ours = file
            .ok_or_else(|| "no libiolite_capi.so beside this program".to_string())
            .and_then(|f| api::ours(f));
        match ours {
            Ok(ours) => {
                Libraries { stock: Box::leak(Box::new(api::stock())), ours: Box::leak(Box::new(ours)) }
            }
            Err(e) => {
                eprintln!("cdiffer: {e}");
                std::process::exit(3);
            }
        }
    }
}

/// A difference.
pub struct Found {
    /// The number of the line.
    pub line: usize,
    /// What does not depend on drawn numbers.
    pub kind: String,
    /// The field.
    pub name: String,
    pub stock: String,
    pub ours: String,
}

/// Differences that are explained: a line of the file is what a kind contains, a tab, and the reason.
pub struct Known(Vec<Explained>);

/// What a difference must be like that is explained.
struct Explained {
    harmless: bool,
    /// Its kind contains all of these.
    parts: Vec<String>,
    /// For each of these there is a call before it that contains this: the call's words but for the handle.
    after: Vec<String>,
}

impl Explained {
    /// Reads `~PART & PART after CALL after CALL`: `~` and the calls may be missing.
    fn read(text: &str) -> Explained {
        let (harmless, text) = text.strip_prefix('~').map_or((false, text), |t| (true, t));
        let mut words = text.split(" after ");
        let parts = words.next().unwrap_or("").split(" & ").map(String::from).collect();
        Explained { harmless, parts, after: words.map(String::from).collect() }
    }

    /// `before`: the calls up to this one.
    fn explains(&self, kind: &str, before: &[String]) -> bool {
        let called = |call: &String| before.iter().any(|l| without_handle(l).contains(call));
        self.parts.iter().all(|p| kind.contains(p.as_str())) && self.after.iter().all(called)
    }
}

/// What a difference is worth.
#[derive(PartialEq)]
enum Worth {
    New,
    /// Explained; the sequence ends there.
    Known,
    /// Explained, and the two are in the same state.
    Harmless,
}

impl Known {
    pub fn read(file: Option<&str>) -> Known {
        let text = file.map_or(String::new(), |f| {
            std::fs::read_to_string(f).unwrap_or_else(|e| super::usage(&format!("{f}: {e}")))
        });
        let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        Known(lines.filter_map(|l| Some(Explained::read(l.split_once('\t')?.0))).collect())
    }

    fn worth(&self, kind: &str, before: &[String]) -> Worth {
        match self.0.iter().find(|k| k.explains(kind, before)) {
            None => Worth::New,
            Some(k) if k.harmless => Worth::Harmless,
            Some(_) => Worth::Known,
        }
    }
}

/// Ends the process with a signal unless it calls again in time.
pub fn within_time() {
    // SAFETY: no handler is set: the signal ends the process, which its parent sees.
    unsafe { libc::alarm(20) };
}

/// A value without what depends on drawn numbers, short.
fn shape(v: &str) -> String {
    let mut out = String::new();
    for ch in v.chars().take(60) {
        match ch {
            '0'..='9' if v.len() > 6 => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            '\t' | '\n' => out.push(' '),
            _ => out.push(ch),
        }
    }
    out
}

/// Both without most of what they begin with alike.
fn apart<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let at = (0..=same.saturating_sub(24)).rev().find(|i| a.is_char_boundary(*i)).unwrap_or(0);
    (&a[at..], &b[at..])
}

/// A call without the connection or statement that it is for.
fn without_handle(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let call = words.next().unwrap_or("");
    format!("{call} {}", words.nth(1).unwrap_or(""))
}

/// The first words of the SQL of a line.
fn subject(line: &str) -> String {
    line.split_once(" | ").map_or(String::new(), |(_, sql)| {
        let words: Vec<&str> = sql.split([' ', '(', '=']).filter(|w| !w.is_empty()).take(2).collect();
        words.join(" ")
    })
}

/// The first difference that is more than harmless, and whether it is new.
fn difference(
    i: usize,
    script: &[String],
    stock: &Fields,
    ours: &Fields,
    known: &Known,
) -> Option<(Found, bool)> {
    let line = script.get(i).map_or("end", |l| l);
    let none = ("-".to_string(), "-".to_string());
    for k in 0..stock.len().max(ours.len()) {
        let (a, b) = (stock.get(k).unwrap_or(&none), ours.get(k).unwrap_or(&none));
        if a == b {
            continue;
        }
        // One log is longer: what the other has there is another field.
        let name = if a.0 == b.0 { a.0.clone() } else { format!("{}/{}", a.0, b.0) };
        let call = line.split(' ').next().unwrap_or("");
        let (x, y) = apart(&a.1, &b.1);
        let about =
            stock.first().filter(|f| f.0 == ABOUT).map_or_else(|| subject(line), |f| format!("[{}]", f.1));
        let kind = format!("{call} {about} {name}: {} -> {}", shape(x), shape(y));
        let worth = known.worth(&kind, &script[..i]);
        if worth != Worth::Harmless {
            let found = Found { line: i, kind, name, stock: a.1.clone(), ours: b.1.clone() };
            return Some((found, worth == Worth::New));
        }
    }
    None
}

fn sides(l: &Libraries, dir: &Path) -> (Side, Side) {
    let side = |api: &'static Api, name: &str| {
        let d = dir.join(name);
        let _ = std::fs::remove_dir_all(&d);
        std::fs::create_dir_all(&d).expect("a scratch folder");
        Side::new(api, &d.to_string_lossy(), "x")
    };
    (side(l.stock, "a"), side(l.ours, "b"))
}

/// The first difference, if it is not known. Behind a known one the two may be in other states.
pub fn first_difference(l: &Libraries, script: &[String], dir: &Path, known: &Known) -> Option<Found> {
    let (mut a, mut b) = sides(l, dir);
    let mut found = None;
    for (i, line) in script.iter().enumerate() {
        let (x, y) = (a.run(line), b.run(line));
        found = difference(i, script, &x, &y, known);
        if found.is_some() {
            break;
        }
    }
    let (x, y) = (a.finish(), b.finish());
    found = found.or_else(|| difference(script.len(), script, &x, &y, known));
    found.filter(|f| f.1).map(|f| f.0)
}

/// Prints what both answer, line by line.
pub fn show(l: &Libraries, script: &[String], dir: &Path) {
    let (mut a, mut b) = sides(l, dir);
    let print = |line: &str, x: Fields, y: Fields| {
        println!("{line}");
        for k in 0..x.len().max(y.len()) {
            match (x.get(k), y.get(k)) {
                (Some(p), Some(q)) if p == q => println!("    {}: {}", p.0, p.1),
                (p, q) => {
                    for (who, p) in [("stock", p), ("ours ", q)] {
                        if let Some(p) = p {
                            println!("  ! {who} {}: {}", p.0, p.1);
                        }
                    }
                }
            }
        }
    };
    for line in script {
        let (x, y) = (a.run(line), b.run(line));
        print(line, x, y);
    }
    print("end", a.finish(), b.finish());
    let _ = std::fs::remove_dir_all(dir);
}

/// Leaves out lines as long as the test answers how many are needed.
pub fn shrink(mut script: Vec<String>, mut test: impl FnMut(&[String]) -> Option<usize>) -> Vec<String> {
    let mut budget = 600;
    let mut size = script.len();
    while size > 0 {
        let mut at = 0;
        while at < script.len() && budget > 0 {
            let mut shorter = script.clone();
            shorter.drain(at..(at + size).min(script.len()));
            budget -= 1;
            within_time();
            match test(&shorter) {
                Some(n) => {
                    shorter.truncate(n);
                    script = shorter;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    script
}

//! `cargo xtask faults`: do the instruments find what they should?
//!
//! A copy of the workspace gets faults, each a small change of one line that takes effect only where the variable
//! `IOLITE_FAULT` has its number. Each names the instrument that has to find it: the differential tester by a kind of
//! difference that is not there without the fault, the simulator, `chaos`, `storm` and tests by failing. The instruments are built once
//! in the copy, and run once for each fault, and once for none. A fault that is not found is a hole. The product's own
//! sources never hold a fault.

mod safety;
mod sql;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A change that makes the engine wrong.
struct Fault {
    /// What is wrong then.
    title: &'static str,
    file: &'static str,
    /// The text that is changed, which stands in the file once.
    find: &'static str,
    /// What takes its place; `FAULT` is true while the fault is on.
    with: &'static str,
    /// Who has to find it.
    by: By,
}

/// An instrument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// `differ`: statements on both engines.
    Differ,
    /// `sim` with these options.
    Sim(&'static [&'static str]),
    /// `chaos` for so many seconds.
    Chaos(&'static str),
    /// `storm` for so many seconds.
    Storm(&'static str),
    /// The C programs with several threads, under this tool.
    Threads(&'static str),
    /// A test of this package, by a part of its name.
    Test(&'static str, &'static str),
}

/// All faults in the order of their numbers, from 1.
fn every() -> impl Iterator<Item = (usize, &'static Fault)> {
    sql::FAULTS.iter().chain(safety::FAULTS).enumerate().map(|(i, f)| (i + 1, f))
}

/// What the copy's `base` crate gets.
const SWITCH: &str = "//! Which fault is on.\nuse std::sync::OnceLock;\n/// Whether it is this one.\n\
pub fn on(n: u32) -> bool {\n    static WHICH: OnceLock<u32> = OnceLock::new();\n    \
*WHICH.get_or_init(|| std::env::var(\"IOLITE_FAULT\").ok().and_then(|v| v.parse().ok()).unwrap_or(0)) == n\n}\n";

/// Statements that each run may take.
const STATEMENTS: &str = "60000";

/// Builds and runs; answers whether all faults were found. `which`: the numbers of those to look at, or all.
pub fn run(root: &Path, seed: &str, which: &[usize]) -> bool {
    let copy = root.join("target/faults/tree");
    if let Err(e) = plant(root, &copy) {
        eprintln!("faults: {e}");
        return false;
    }
    let target = root.join("target/faults/target");
    let cargo = |args: &[&str]| {
        let mut c = Command::new("cargo");
        c.current_dir(&copy).env("CARGO_TARGET_DIR", &target).args(args).stdin(Stdio::null());
        c
    };
    let wanted = |n: usize| which.is_empty() || which.contains(&n);
    let faults = || every().filter(|(n, _)| wanted(*n));
    let needs = |test: fn(&By) -> bool| faults().any(|(_, f)| test(&f.by));
    for (needed, bin, package) in [
        (needs(|b| *b == By::Differ), "differ", "iolite-conform"),
        (needs(|b| matches!(b, By::Chaos(_))), "chaos", "iolite-conform"),
        (needs(|b| matches!(b, By::Storm(_))), "storm", "iolite-conform"),
        (needs(|b| matches!(b, By::Sim(_))), "sim", "iolite-sim"),
    ] {
        let args = ["build", "--profile", "perf", "-p", package, "--bin", bin];
        if needed && !cargo(&args).status().is_ok_and(|s| s.success()) {
            eprintln!("faults: the copy does not build");
            return false;
        }
    }
    let differ = Differ { binary: target.join("perf/differ"), known: root.join("target/faults/known"), seed };
    if needs(|b| *b == By::Differ) {
        let kinds = differ.kinds(0, &["--keep-going"]);
        println!("without a fault: {} kinds of difference", kinds.len());
        if std::fs::write(&differ.known, kinds.join("\n")).is_err() {
            return false;
        }
    }
    // Whether an instrument finds something; without a fault it must not.
    let fails = |by: By, fault: usize| {
        let mut c = match by {
            By::Differ => {
                return !differ.kinds(fault, &["--known", &differ.known.to_string_lossy()]).is_empty();
            }
            By::Sim(args) => {
                let mut c = Command::new(target.join("perf/sim"));
                c.args(args);
                c
            }
            By::Chaos(seconds) => {
                let mut c = Command::new(target.join("perf/chaos"));
                c.args(["--seconds", seconds, "--seed", seed]);
                c
            }
            By::Storm(seconds) => {
                let mut c = Command::new(target.join("perf/storm"));
                c.args(["--seconds", seconds, "--seed", seed]);
                c
            }
            By::Threads(tool) => {
                let mut c = Command::new("sh");
                c.current_dir(&copy)
                    .env("CARGO_TARGET_DIR", &target)
                    .args(["crates/capi/tests/races.sh", tool]);
                c
            }
            By::Test(package, name) => cargo(&["test", "--quiet", "-p", package, name]),
        };
        c.env("IOLITE_FAULT", fault.to_string()).stdin(Stdio::null());
        c.output().is_ok_and(|o| !o.status.success())
    };
    let mut sound: Vec<By> = vec![By::Differ];
    let (mut missed, mut all) = (0, 0);
    for (n, f) in faults() {
        if !sound.contains(&f.by) {
            if fails(f.by, 0) {
                println!("{n:>2} CANNOT TELL: fails without a fault: {}", f.title);
                missed += 1;
                all += 1;
                continue;
            }
            sound.push(f.by);
        }
        let begun = Instant::now();
        let found = fails(f.by, n);
        let verdict = if found { "found" } else { "NOT FOUND" };
        println!("{n:>2} {verdict:9} {:>5.0} s  {}", begun.elapsed().as_secs_f64(), f.title);
        missed += !found as usize;
        all += 1;
    }
    println!("{} of {all} faults found", all - missed);
    missed == 0
}

/// The differential tester.
struct Differ<'a> {
    binary: PathBuf,
    /// Kinds of difference that are there without a fault.
    known: PathBuf,
    seed: &'a str,
}

impl Differ<'_> {
    fn kinds(&self, fault: usize, more: &[&str]) -> Vec<String> {
        let mut c = Command::new(&self.binary);
        c.env("IOLITE_FAULT", fault.to_string()).stdin(Stdio::null());
        c.args(["--statements", STATEMENTS, "--seed", self.seed, "--threads", "2", "--show", "0"]).args(more);
        let out = c.output().map(|o| o.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&out).into_owned();
        let list = text.lines().skip_while(|l| !l.contains(" rounds, ")).skip(1);
        // A count and a kind of difference.
        list.filter_map(|l| l.trim_start().split_once("  ")).map(|l| l.1.to_string()).collect()
    }
}

/// Copies the files under version control and changes them.
fn plant(root: &Path, copy: &Path) -> Result<(), String> {
    let list = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output();
    let list = list.map_err(|e| format!("git ls-files: {e}"))?.stdout;
    let list = String::from_utf8_lossy(&list);
    let names: HashSet<&str> = list.split('\0').filter(|n| !n.is_empty()).collect();
    remove_others(copy, copy, &names).map_err(|e| format!("what an older copy left: {e}"))?;
    for name in &names {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(text) = std::fs::read(&from) else { continue };
        // What is the same stays as it is, so that a second build has little to do.
        if std::fs::read(&to).is_ok_and(|t| t == text) && !name.contains("/src/") {
            continue;
        }
        let made = to.parent().is_none_or(|p| std::fs::create_dir_all(p).is_ok());
        if !made || std::fs::write(&to, &text).is_err() {
            return Err(format!("cannot write {}", to.display()));
        }
    }
    let lib = copy.join("crates/base/src/lib.rs");
    let text = std::fs::read_to_string(&lib).map_err(|e| e.to_string())?;
    let text = text.replacen("mod encoding;", "pub mod fault;\nmod encoding;", 1);
    std::fs::write(&lib, text).map_err(|e| e.to_string())?;
    std::fs::write(copy.join("crates/base/src/fault.rs"), SWITCH).map_err(|e| e.to_string())?;
    for (i, f) in every() {
        let file = copy.join("crates").join(f.file);
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", f.file))?;
        if text.matches(f.find).count() != 1 {
            return Err(format!("{}: the place of a fault is not there once: {}", f.file, f.find));
        }
        let switch = format!("iolite_base::fault::on({i})");
        let text = text.replace(f.find, &f.with.replace("FAULT", &switch));
        std::fs::write(&file, text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Says which faults have no place any more: it stands in its file once, or the fault cannot be put back.
pub fn misplaced(root: &Path, wrong: &mut Vec<String>) {
    for (i, f) in every() {
        let text = std::fs::read_to_string(root.join("crates").join(f.file)).unwrap_or_default();
        let places = text.matches(f.find).count();
        if places != 1 {
            wrong.push(format!("seeded fault {i} has {places} places in {}: {}", f.file, f.title));
        }
    }
}

/// Removes the files below `dir` that are not among `names`, which are paths within `copy`: a file that was moved since must not be
/// there twice.
fn remove_others(copy: &Path, dir: &Path, names: &HashSet<&str>) -> std::io::Result<()> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(copy, &path, names)?;
        } else if !path.strip_prefix(copy).is_ok_and(|p| p.to_str().is_some_and(|p| names.contains(p))) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place() {
        let root = crate::root();
        for (_, f) in every() {
            let text = std::fs::read_to_string(root.join("crates").join(f.file)).unwrap_or_default();
            assert_eq!(text.matches(f.find).count(), 1, "{}: {}", f.file, f.find);
            assert!(f.with.contains("FAULT"), "{}", f.title);
        }
    }
}

//! `cargo xtask faults`: does the differential tester find what it should?
//!
//! A copy of the workspace gets twenty faults, each a small change of one line that takes effect only where the variable
//! `IOLITE_FAULT` has its number; `differ` is built once in the copy and run once for each fault, and once for none. A fault
//! that leads to no kind of difference that is not there without it is a hole in the tests. The product's own sources never
//! hold a fault.

use std::path::Path;
use std::process::{Command, Stdio};

/// A change that makes the engine wrong.
struct Fault {
    /// What is wrong then.
    title: &'static str,
    file: &'static str,
    /// The text that is changed, which stands in the file once.
    find: &'static str,
    /// What takes its place; `FAULT` is true while the fault is on.
    with: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault {
        title: "integer addition wraps instead of becoming real",
        file: "value/src/arith.rs",
        find: "Arith::Add => x.checked_add(y),",
        with: "Arith::Add => if FAULT { Some(x.wrapping_add(y)) } else { x.checked_add(y) },",
    },
    Fault {
        title: "descending keys ascend",
        file: "value/src/compare.rs",
        find: "if self.desc != (self.nulls_large && one_is_null)",
        with: "if (self.desc && !FAULT) != (self.nulls_large && one_is_null)",
    },
    Fault {
        title: "an integer equals a real with the same whole part",
        file: "value/src/compare.rs",
        find: "Equal => real_real(0.0, r - whole as f64),",
        with: "Equal => if FAULT { Equal } else { real_real(0.0, r - whole as f64) },",
    },
    Fault {
        title: "a text that starts like a number is one",
        file: "value/src/num.rs",
        find: "let whole = text[i..]",
        with: "let whole = FAULT || text[i..]",
    },
    Fault {
        title: "substr() before the text's start does not shorten",
        file: "func/src/text.rs",
        find: "len = (len + start).max(0);",
        with: "len = if FAULT { len } else { (len + start).max(0) };",
    },
    Fault {
        title: "round() of negative numbers rounds up",
        file: "func/src/scalar.rs",
        find: "(r + if r < 0.0 { -0.5 } else { 0.5 }) as i64",
        with: "(r + if r < 0.0 && !FAULT { -0.5 } else { 0.5 }) as i64",
    },
    Fault {
        title: "compounds compare without the columns' collating sequences",
        file: "codegen/src/compound.rs",
        find: "plan.columns.iter().map(|c| c.collation.clone())",
        with: "plan.columns.iter().map(|c| if FAULT { Default::default() } else { c.collation.clone() })",
    },
    Fault {
        title: "the row without a match keeps the last match's columns",
        file: "codegen/src/loops.rs",
        find: "for c in l.cursors.iter().flatten() {",
        with: "for c in l.cursors.iter().flatten().filter(|_| !FAULT) {",
    },
    Fault {
        title: "an open lower end of an index range is closed",
        file: "codegen/src/access.rs",
        find: "let op = match (a.reverse, inclusive) {",
        with: "let op = match (a.reverse, inclusive || FAULT) {",
    },
    Fault {
        title: "an UPDATE leaves partial indexes alone whose condition it changes",
        file: "codegen/src/write.rs",
        find: "}) || i.filter.as_ref().is_some_and(reads)",
        with: "}) || !FAULT && i.filter.as_ref().is_some_and(reads)",
    },
    Fault {
        title: "OR IGNORE does not ignore NULLs",
        file: "codegen/src/write.rs",
        find: "let policy = if policy == Conflict::Replace {",
        with: "let policy = if policy == Conflict::Replace || FAULT {",
    },
    Fault {
        title: "a CHECK that is NULL fails",
        file: "codegen/src/write.rs",
        find: "self.jump_if(e, ok, true)?;",
        with: "self.jump_if(&e, ok, !FAULT)?;",
    },
    Fault {
        title: "a trigger's WHEN does not count",
        file: "codegen/src/trigger.rs",
        find: "self.jump_unless(&e, end, true)?;",
        with: "if !FAULT { self.jump_unless(&e, end, true)?; }",
    },
    Fault {
        title: "the freelist counts a page too many",
        file: "btree/src/freelist.rs",
        find: "self.set_freelist(next, free - 1)?;",
        with: "self.set_freelist(next, free - 1 + FAULT as u32)?;",
    },
    Fault {
        title: "the last byte of an overflow page is lost",
        file: "btree/src/overflow.rs",
        find: "&[&[0; 4], of_data, of_tail]",
        with: "&[&[0; 4], &of_data[..of_data.len().min(chunk - FAULT as usize)], of_tail]",
    },
    Fault {
        title: "a JSON array counted from its end is off by one",
        file: "func/src/json/path.rs",
        find: "(Place::Back(v), end)",
        with: "(Place::Back(if FAULT { v + 1 } else { v }), end)",
    },
    Fault {
        title: "count(x) counts NULLs",
        file: "func/src/aggregate.rs",
        find: "self.0 += !args.first().is_some_and(Value::is_null) as i64;",
        with: "self.0 += (FAULT || !args.first().is_some_and(Value::is_null)) as i64;",
    },
    Fault {
        title: "a savepoint's rollback forgets pages beyond the second",
        file: "pager/src/undo.rs",
        find: "if r.pgno > db_size || !seen.insert(r.pgno) {",
        with: "if r.pgno > db_size || !seen.insert(r.pgno) || FAULT && seen.len() > 2 {",
    },
    Fault {
        title: "an INSERT does not say which rowid it gave",
        file: "codegen/src/insert.rs",
        find: "let mut flags = p5::COUNT_CHANGE | p5::LAST_ROWID;",
        with: "let mut flags = if FAULT { p5::COUNT_CHANGE } else { p5::COUNT_CHANGE | p5::LAST_ROWID };",
    },
    Fault {
        title: "computed columns of a flattened LEFT JOIN are not NULL where nothing matched",
        file: "plan/src/rewrite/flatten.rs",
        find: "if left && !matches!(e, Expr::Column(_)) {",
        with: "if left && !FAULT && !matches!(e, Expr::Column(_)) {",
    },
];

/// What the copy's `base` crate gets.
const SWITCH: &str = "//! Which fault is on.\nuse std::sync::OnceLock;\n/// Whether it is this one.\n\
pub fn on(n: u32) -> bool {\n    static WHICH: OnceLock<u32> = OnceLock::new();\n    \
*WHICH.get_or_init(|| std::env::var(\"IOLITE_FAULT\").ok().and_then(|v| v.parse().ok()).unwrap_or(0)) == n\n}\n";

/// Statements that each run may take.
const STATEMENTS: &str = "60000";

/// Builds and runs; answers whether all faults were found.
pub fn run(root: &Path, seed: &str) -> bool {
    let copy = root.join("target/faults/tree");
    if let Err(e) = plant(root, &copy) {
        eprintln!("faults: {e}");
        return false;
    }
    let target = root.join("target/faults/target");
    let mut build = Command::new("cargo");
    build.current_dir(&copy).env("CARGO_TARGET_DIR", &target);
    build.args(["build", "--profile", "perf", "-p", "iolite-conform", "--bin", "differ"]);
    if !build.status().is_ok_and(|s| s.success()) {
        eprintln!("faults: the copy does not build");
        return false;
    }
    let differ = target.join("perf/differ");
    let known = root.join("target/faults/known");
    let run = |fault: usize, more: &[&str]| -> Vec<String> {
        let mut c = Command::new(&differ);
        c.env("IOLITE_FAULT", fault.to_string()).stdin(Stdio::null());
        c.args(["--statements", STATEMENTS, "--seed", seed, "--threads", "2", "--show", "0"]).args(more);
        let out = c.output().map(|o| o.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&out).into_owned();
        let list = text.lines().skip_while(|l| !l.contains(" rounds, ")).skip(1);
        // A count and a kind of difference.
        list.filter_map(|l| l.trim_start().split_once("  ")).map(|l| l.1.to_string()).collect()
    };
    let kinds = run(0, &["--keep-going"]);
    println!("without a fault: {} kinds of difference", kinds.len());
    if std::fs::write(&known, kinds.join("\n")).is_err() {
        return false;
    }
    let mut missed = 0;
    for (i, f) in FAULTS.iter().enumerate() {
        let new = run(i + 1, &["--known", &known.to_string_lossy()]);
        let verdict = if new.is_empty() { "NOT FOUND" } else { "found" };
        println!("{:>2} {verdict:9} {}", i + 1, f.title);
        missed += new.is_empty() as usize;
    }
    println!("{} of {} faults found", FAULTS.len() - missed, FAULTS.len());
    missed == 0
}

/// Copies the files under version control and changes them.
fn plant(root: &Path, copy: &Path) -> Result<(), String> {
    let list = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output();
    let list = list.map_err(|e| format!("git ls-files: {e}"))?;
    for name in String::from_utf8_lossy(&list.stdout).split('\0').filter(|n| !n.is_empty()) {
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
    for (i, f) in FAULTS.iter().enumerate() {
        let file = copy.join("crates").join(f.file);
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", f.file))?;
        if text.matches(f.find).count() != 1 {
            return Err(format!("{}: the place of a fault is not there once: {}", f.file, f.find));
        }
        let switch = format!("iolite_base::fault::on({})", i + 1);
        let text = text.replace(f.find, &f.with.replace("FAULT", &switch));
        std::fs::write(&file, text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place() {
        let root = crate::root();
        assert_eq!(FAULTS.len(), 20);
        for f in FAULTS {
            let text = std::fs::read_to_string(root.join("crates").join(f.file)).unwrap_or_default();
            assert_eq!(text.matches(f.find).count(), 1, "{}: {}", f.file, f.find);
            assert!(f.with.contains("FAULT"), "{}", f.title);
        }
    }
}

//! `cargo xtask faults`: do the instruments find what they should?
//!
//! A copy of the workspace gets faults, each a small change of one line that takes effect only where the variable
//! `IOLITE_FAULT` has its number. Each names the instrument that has to find it: the differential tester by a kind of
//! difference that is not there without the fault, the simulator, `chaos` and tests by failing. The instruments are built once
//! in the copy, and run once for each fault, and once for none. A fault that is not found is a hole. The product's own
//! sources never hold a fault.

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
    /// A test of this package, by a part of its name.
    Test(&'static str, &'static str),
}

const FAULTS: &[Fault] = &[
    Fault {
        title: "integer addition wraps instead of becoming real",
        file: "value/src/arith.rs",
        find: "Arith::Add => x.checked_add(y),",
        with: "Arith::Add => if FAULT { Some(x.wrapping_add(y)) } else { x.checked_add(y) },",
        by: By::Differ,
    },
    Fault {
        title: "descending keys ascend",
        file: "value/src/compare.rs",
        find: "if self.desc != (self.nulls_large && one_is_null)",
        with: "if (self.desc && !FAULT) != (self.nulls_large && one_is_null)",
        by: By::Differ,
    },
    Fault {
        title: "an integer equals a real with the same whole part",
        file: "value/src/compare.rs",
        find: "Equal => real_real(0.0, r - whole as f64),",
        with: "Equal => if FAULT { Equal } else { real_real(0.0, r - whole as f64) },",
        by: By::Differ,
    },
    Fault {
        title: "a text that starts like a number is one",
        file: "value/src/num.rs",
        find: "let whole = text[i..]",
        with: "let whole = FAULT || text[i..]",
        by: By::Differ,
    },
    Fault {
        title: "substr() before the text's start does not shorten",
        file: "func/src/text.rs",
        find: "len = (len + start).max(0);",
        with: "len = if FAULT { len } else { (len + start).max(0) };",
        by: By::Differ,
    },
    Fault {
        title: "round() of negative numbers rounds up",
        file: "func/src/scalar.rs",
        find: "(r + if r < 0.0 { -0.5 } else { 0.5 }) as i64",
        with: "(r + if r < 0.0 && !FAULT { -0.5 } else { 0.5 }) as i64",
        by: By::Differ,
    },
    Fault {
        title: "compounds compare without the columns' collating sequences",
        file: "codegen/src/compound.rs",
        find: "plan.columns.iter().map(|c| c.collation.clone())",
        with: "plan.columns.iter().map(|c| if FAULT { Default::default() } else { c.collation.clone() })",
        by: By::Differ,
    },
    Fault {
        title: "the row without a match keeps the last match's columns",
        file: "codegen/src/loops.rs",
        find: "for c in l.cursors.iter().flatten() {",
        with: "for c in l.cursors.iter().flatten().filter(|_| !FAULT) {",
        by: By::Differ,
    },
    Fault {
        title: "an open lower end of an index range is closed",
        file: "codegen/src/access.rs",
        find: "let op = match (a.reverse, inclusive) {",
        with: "let op = match (a.reverse, inclusive || FAULT) {",
        by: By::Differ,
    },
    Fault {
        title: "an UPDATE leaves partial indexes alone whose condition it changes",
        file: "plan/src/modify/update.rs",
        find: "|| i.filter.as_ref().is_some_and(reads)",
        with: "|| !FAULT && i.filter.as_ref().is_some_and(reads)",
        by: By::Differ,
    },
    Fault {
        title: "OR IGNORE does not ignore NULLs",
        file: "plan/src/modify/tests.rs",
        find: "Test::NotNull { column, policy: refusal(policy) }",
        with: "Test::NotNull { column, policy: if FAULT { Conflict::Abort } else { refusal(policy) } }",
        by: By::Differ,
    },
    Fault {
        title: "a CHECK that is NULL fails",
        file: "codegen/src/write.rs",
        find: "self.jump_if(e, ok, true)?;",
        with: "self.jump_if(e, ok, !FAULT)?;",
        by: By::Differ,
    },
    Fault {
        title: "a trigger's WHEN does not count",
        file: "codegen/src/trigger.rs",
        find: "g.jump_unless(e, end, true)?;",
        with: "if !FAULT { g.jump_unless(e, end, true)?; }",
        by: By::Differ,
    },
    Fault {
        title: "the freelist counts a page too many",
        file: "btree/src/freelist.rs",
        find: "self.set_freelist(next, free - 1)?;",
        with: "self.set_freelist(next, free - 1 + FAULT as u32)?;",
        by: By::Differ,
    },
    Fault {
        title: "the last byte of an overflow page is lost",
        file: "btree/src/overflow.rs",
        find: "&[&[0; 4], of_data, of_tail]",
        with: "&[&[0; 4], &of_data[..of_data.len().min(chunk - FAULT as usize)], of_tail]",
        by: By::Differ,
    },
    Fault {
        title: "a JSON array counted from its end is off by one",
        file: "func/src/json/path.rs",
        find: "(Place::Back(v), end)",
        with: "(Place::Back(if FAULT { v + 1 } else { v }), end)",
        by: By::Differ,
    },
    Fault {
        title: "count(x) counts NULLs",
        file: "func/src/aggregate.rs",
        find: "self.0 += !args.first().is_some_and(Value::is_null) as i64;",
        with: "self.0 += (FAULT || !args.first().is_some_and(Value::is_null)) as i64;",
        by: By::Differ,
    },
    Fault {
        title: "a savepoint's rollback forgets pages beyond the second",
        file: "pager/src/undo.rs",
        find: "if r.pgno > db_size || !seen.insert(r.pgno) {",
        with: "if r.pgno > db_size || !seen.insert(r.pgno) || FAULT && seen.len() > 2 {",
        by: By::Differ,
    },
    Fault {
        title: "an INSERT does not say which rowid it gave",
        file: "codegen/src/modify.rs",
        find: "{ 0 } else { p5::COUNT_CHANGE | p5::LAST_ROWID };",
        with: "{ 0 } else if FAULT { p5::COUNT_CHANGE } else { p5::COUNT_CHANGE | p5::LAST_ROWID };",
        by: By::Differ,
    },
    Fault {
        title: "computed columns of a flattened LEFT JOIN are not NULL where nothing matched",
        file: "plan/src/rewrite/flatten.rs",
        find: "if left && !matches!(e, Expr::Column(_)) {",
        with: "if left && !FAULT && !matches!(e, Expr::Column(_)) {",
        by: By::Differ,
    },
    Fault {
        title: "a journal is kept open without a lock",
        file: "pager/src/pager.rs",
        find: "if level < LockLevel::Reserved {",
        with: "if level < LockLevel::Reserved && !FAULT {",
        by: By::Sim(&["--only", "races", "--quick", "--race", "19"]),
    },
    Fault {
        title: "a log's commit is published before the other files are ready",
        file: "iolite/src/txn/commit.rs",
        find: "b.commit_phase_one(Commit::Together { super_journal: None })?;",
        with: "b.commit_phase_one(if FAULT { Commit::Alone } else { Commit::Together { super_journal: None } })?;",
        by: By::Sim(&["--only", "files", "--quick"]),
    },
    Fault {
        title: "a commit over several files takes its locks one after the other",
        file: "iolite/src/txn/commit.rs",
        find: "writers.trees().try_for_each(Btree::lock_for_commit)?;",
        with: "if !FAULT { writers.trees().try_for_each(Btree::lock_for_commit)?; }",
        by: By::Test("iolite", "a_commit_over_two_files_waits_for_its_second_attempt"),
    },
    Fault {
        title: "a commit that was made ready and taken back stays in the log",
        file: "pager/src/wal/mod.rs",
        find: "let cut = self.cut_off();",
        with: "let cut = if FAULT { Ok(()) } else { self.cut_off() };",
        by: By::Sim(&["--only", "files", "--quick"]),
    },
    Fault {
        title: "the super-journal's name is not synced where nothing else was written",
        file: "pager/src/journal.rs",
        find: "&& !self.unsynced {",
        with: "&& (FAULT || !self.unsynced) {",
        by: By::Sim(&["--only", "crash", "--mode", "delete", "--sync", "full"]),
    },
    Fault {
        title: "a journal that is found is written over before it is synced",
        file: "pager/src/journal.rs",
        find: "if self.reused && site.sync != SyncMode::Off {",
        with: "if !FAULT && self.reused && site.sync != SyncMode::Off {",
        by: By::Sim(&["--only", "races", "--quick", "--race", "20"]),
    },
    Fault {
        title: "a commit whose journal has ended counts as failed where the sync did",
        file: "pager/src/txn.rs",
        find: "unsure = file.sync(SyncKind::Full);",
        with: "if FAULT { file.sync(SyncKind::Full)?; } else { unsure = file.sync(SyncKind::Full); }",
        by: By::Sim(&["--only", "files"]),
    },
    Fault {
        title: "the wal-index grows without the write lock",
        file: "pager/src/wal/mod.rs",
        find: "let there = self.index.map(db, 0, self.index.is_heap())?;",
        with: "let there = self.index.map(db, 0, FAULT || self.index.is_heap())?;",
        by: By::Test("iolite-sim", "a_failing_call_leaves_no_half_done_transaction"),
    },
    Fault {
        title: "a checkpoint copies zeros where the log was cut",
        file: "pager/src/wal/mod.rs",
        find: "if self.log.read(out, from)? { Ok(()) }",
        with: "if self.log.read(out, from)? || FAULT { Ok(()) }",
        by: By::Test("iolite", "a_log_that_was_cut_is_an_error"),
    },
    Fault {
        title: "a reader of a log without an index does not look again who is there",
        file: "pager/src/wal/mod.rs",
        find: "        match db.shm_map(0, index::REGION, false) {",
        with: "        match if FAULT { Err(Code::ReadonlyCantinit.into()) } else { db.shm_map(0, index::REGION, false) } {",
        by: By::Sim(&["--only", "races", "--race", "33"]),
    },
    Fault {
        title: "a sync that failed is forgotten with the next one",
        file: "pager/src/wal/chain.rs",
        find: "state.lost.push(lost);",
        with: "if FAULT { state.lost.clear(); } state.lost.push(lost);",
        by: By::Test("iolite-pager", "no_failed_sync_is_forgotten"),
    },
    Fault {
        title: "closing a file that was moved removes the log of its name",
        file: "pager/src/pager.rs",
        find: "Some(f) if self.kind == Kind::File && f.has_moved()? => Err(Code::ReadonlyDbmoved.into()),",
        with: "Some(f) if !FAULT && self.kind == Kind::File && f.has_moved()? => Err(Code::ReadonlyDbmoved.into()),",
        by: By::Test("iolite", "moved"),
    },
    Fault {
        title: "only who makes a file syncs its name",
        file: "os/src/unix/file.rs",
        find: "new_entry: Cell::new(flags.create && flags.kind != FileKind::MainDb),",
        with: "new_entry: Cell::new(!FAULT && flags.create && flags.kind != FileKind::MainDb),",
        by: By::Test("iolite-os", "the_first_sync_carries_the_name"),
    },
    Fault {
        title: "a forked child keeps its parent's locks alive",
        file: "os/src/unix/fork.rs",
        find: "DESCRIPTOR => s.what.store(give_up(null, size as libc::c_int), Relaxed),",
        with: "DESCRIPTOR => if !FAULT { s.what.store(give_up(null, size as libc::c_int), Relaxed) },",
        by: By::Test("iolite", "a_forked_child_keeps_no_lock"),
    },
    Fault {
        title: "a forked child finishes its parent's transaction",
        file: "pager/src/pager.rs",
        find: "self.kind == Kind::File && self.file.as_ref().is_some_and(|f| f.is_inherited())",
        with: "!FAULT && self.kind == Kind::File && self.file.as_ref().is_some_and(|f| f.is_inherited())",
        by: By::Test("iolite", "a_forked_child_may_drop"),
    },
    Fault {
        title: "eager readers stand in a waiting writer's way",
        file: "os/src/unix/file.rs",
        find: "let ask = if self.met_writer.get() {",
        with: "let ask = if self.met_writer.get() && !FAULT {",
        by: By::Test("iolite-os", "readers_that_try_again_at_once"),
    },
    Fault {
        title: "links beside a database are followed",
        file: "os/src/unix/mod.rs",
        find: "let nofollow = flags.kind != FileKind::MainDb;",
        with: "let nofollow = !FAULT && flags.kind != FileKind::MainDb;",
        by: By::Test("iolite", "links_beside_a_database"),
    },
    Fault {
        title: "a journal names any file to be deleted",
        file: "pager/src/recover.rs",
        find: "&& is_super_name(p)",
        with: "&& (FAULT || is_super_name(p))",
        by: By::Test("iolite", "a_journal_cannot_name_a_file"),
    },
    Fault {
        title: "going back to the first savepoint gives the locks up",
        file: "iolite/src/txn/savepoint.rs",
        find: "b.rollback_changes()?",
        with: "if FAULT { b.rollback(false)? } else { b.rollback_changes()? }",
        by: By::Test("iolite", "going_back_to_the_first_savepoint"),
    },
    Fault {
        title: "BEGIN IMMEDIATE that fails keeps the locks it has",
        file: "iolite/src/control.rs",
        find: "                    for b in begun {",
        with: "                    for b in begun.into_iter().filter(|_| !FAULT) {",
        by: By::Test("iolite", "begin_immediate_that_meets"),
    },
    Fault {
        title: "a played back journal hides from backups what others had committed before",
        file: "pager/src/txn.rs",
        find: "        if self.was_read {\n            let mut now = [0; 16];",
        with: "        if self.was_read && (self.header_ok || !FAULT) {\n            let mut now = [0; 16];",
        by: By::Test("iolite", "a_backup_begins_again"),
    },
    Fault {
        title: "a log that counts the pages of a longer file is believed",
        file: "pager/src/txn.rs",
        find: ".filter(|_| !(self.header_ok && self.sized_by_header))",
        with: ".filter(|_| FAULT || !(self.header_ok && self.sized_by_header))",
        by: By::Test("iolite", "a_file_that_is_longer"),
    },
    Fault {
        title: "going back to a savepoint reads databases that nobody reads",
        file: "btree/src/btree.rs",
        find: "        if self.txn_state() != TxnState::Write {\n            // Nothing of it",
        with: "        if !FAULT && self.txn_state() != TxnState::Write {\n            // Nothing of it",
        by: By::Chaos("90"),
    },
];

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
    let faults = || FAULTS.iter().enumerate().map(|(i, f)| (i + 1, f)).filter(|(n, _)| wanted(*n));
    let needs = |test: fn(&By) -> bool| faults().any(|(_, f)| test(&f.by));
    for (needed, bin, package) in [
        (needs(|b| *b == By::Differ), "differ", "iolite-conform"),
        (needs(|b| matches!(b, By::Chaos(_))), "chaos", "iolite-conform"),
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
        assert_eq!(FAULTS.len(), 43);
        for f in FAULTS {
            let text = std::fs::read_to_string(root.join("crates").join(f.file)).unwrap_or_default();
            assert_eq!(text.matches(f.find).count(), 1, "{}: {}", f.file, f.find);
            assert!(f.with.contains("FAULT"), "{}", f.title);
        }
    }
}

//! The quick share of the simulation: what every change of the code should pass. `cargo run --profile perf -p
//! iolite-sim` is the whole.

use iolite::Code;
use iolite_os::FileKind;
use iolite_sim::crash::{Effort, check, lies};
use iolite_sim::disk::{Disk, Op};
use iolite_sim::fault;
use iolite_sim::race::{RACES, Search, explore, left_behind};
use iolite_sim::script::{FILES, MODES, SYNCS, Setting, Subject, record};
use std::sync::Arc;

fn setting(mode: &'static str, sync: &'static str) -> Setting {
    Setting { mode, sync, auto_vacuum: 0, exclusive: false, subject: Subject::Rows, others: &[], seed: 1 }
}

fn crash(setting: Setting, quick: bool) {
    let r = record(Arc::new(Disk::new(1)), setting, setting.script(quick)).unwrap();
    if let Err(e) = check(&r, Effort { samples: 2, nested: 1, stock: 1 }, 0) {
        panic!("{e}");
    }
}

#[test]
fn every_crash_leaves_what_synchronous_allows() {
    for mode in MODES {
        for sync in SYNCS {
            crash(setting(mode, sync), true);
        }
    }
}

#[test]
fn vacuum_several_files_and_changes_of_mode_survive_crashes() {
    for (mode, sync) in [("delete", "full"), ("truncate", "normal"), ("wal", "normal")] {
        crash(Setting { auto_vacuum: 1, ..setting(mode, sync) }, false);
    }
}

/// Large values that go to the file at once, and each sync that they need.
#[test]
fn large_values_in_free_pages_survive_crashes() {
    let large = Setting { subject: Subject::Large, ..setting("wal", "normal") };
    let r = record(Arc::new(Disk::new(1)), large, large.script(true)).unwrap();
    if let Err(e) = check(&r, Effort { samples: 3, nested: 1, stock: 2 }, 0) {
        panic!("{e}");
    }
    for anew in [false, true] {
        // The second seed leaves the first frames of the next commit and those behind them of the killed one.
        left_behind(1, anew).unwrap();
        left_behind(990_002, anew).unwrap();
    }
}

/// Searches of texts and of vectors find what a scan finds, whatever was interrupted.
#[test]
fn searches_find_what_scans_find_after_crashes_and_failing_calls() {
    let of = |mode, sync| Setting { subject: Subject::Search, ..setting(mode, sync) };
    let log = record(Arc::new(Disk::new(1)), of("wal", "normal"), of("wal", "normal").script(true)).unwrap();
    if let Err(e) = check(&log, Effort { samples: 1, nested: 1, stock: 2 }, 0) {
        panic!("{e}");
    }
    let journal = fault::measure(of("delete", "full"), of("delete", "full").script(true)).unwrap();
    for (op, code) in [(Op::Write, Code::Full), (Op::Read, Code::IoerrRead), (Op::Sync, Code::IoerrFsync)] {
        fault::calls(&journal, op, code, false, 131).unwrap();
    }
}

/// Connections that meet at checkpoints, restarts of the log and kept locks.
#[test]
fn no_schedule_of_a_small_race_loses_or_mixes_anything() {
    for setup in RACES {
        let search = match (setup.large, setup.processes) {
            (true, _) => Search { every: 2, pairs: 0, drawn: 10 },
            (_, true) => Search { every: 5, pairs: 0, drawn: 6 },
            _ => Search { every: 1, pairs: 30, drawn: 20 },
        };
        if let Err(e) = explore(*setup, 1, search) {
            panic!("{e}");
        }
    }
}

/// Each kind of sync that is needed is missed when a disk leaves it out.
#[test]
fn a_dropped_sync_is_caught() {
    for (what, setting, of) in [
        ("journal before database", setting("delete", "full"), Some(FileKind::Journal)),
        ("journal before database", setting("truncate", "normal"), Some(FileKind::Journal)),
        ("journal's end", setting("persist", "normal"), Some(FileKind::Journal)),
        ("database before the journal's deletion", setting("delete", "full"), Some(FileKind::MainDb)),
        ("log before the commit is acknowledged", setting("wal", "full"), Some(FileKind::Wal)),
        ("log before the checkpoint", setting("wal", "normal"), Some(FileKind::Wal)),
        ("database before the log is begun anew", setting("wal", "normal"), Some(FileKind::MainDb)),
        ("name of the journal", setting("delete", "full"), None),
        ("name of the deleted journal", setting("delete", "extra"), None),
    ] {
        let (caught, all) = lies(setting, &setting.script(true), of, 7).unwrap();
        assert!(caught > 0, "{what}: none of {all}, {setting:?}");
    }
}

#[test]
fn a_failing_call_leaves_no_half_done_transaction() {
    for (mode, sync) in [("delete", "full"), ("persist", "normal"), ("memory", "normal"), ("wal", "full")] {
        let clean = fault::measure(setting(mode, sync), setting(mode, sync).script(true)).unwrap();
        for op in Op::ALL {
            for (code, persistent) in [(op.code(), false), (op.code(), true), (Code::Full, false)] {
                if code == Code::Full && op != Op::Write {
                    continue;
                }
                fault::calls(&clean, op, code, persistent, 19).unwrap();
            }
        }
    }
}

/// In every combination of modes, each file shows a transaction over three or none does.
#[test]
fn a_failing_call_leaves_several_files_together() {
    for others in [&["delete", "wal"], &["wal", "truncate"], &["wal", "wal"], &["persist", "delete"]] {
        for mode in FILES {
            let setting = Setting { others, ..setting(mode, "full") };
            let clean = fault::measure(setting, setting.script(true)).unwrap();
            for (op, code) in fault::FILE_FAULTS {
                fault::calls(&clean, op, code, false, 31).unwrap();
            }
        }
    }
}

#[test]
fn a_failing_allocation_leaves_no_half_done_transaction() {
    // The plan for failing allocations is process-wide: a process of its own.
    if std::env::var_os("IOLITE_SIM_NOMEM").is_none() {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_failing_allocation_leaves_no_half_done_transaction", "--test-threads=1"])
            .env("IOLITE_SIM_NOMEM", "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    for mode in ["delete", "wal"] {
        let clean = fault::measure(setting(mode, "full"), setting(mode, "full").script(true)).unwrap();
        fault::allocations(&clean, 29).unwrap();
    }
}

//! The quick share of the simulation: what every change of the code should pass. `cargo run --profile perf -p
//! iolite-sim` is the whole.

use iolite_os::FileKind;
use iolite_sim::crash::{Effort, check, lies};
use iolite_sim::disk::Disk;
use iolite_sim::script::{MODES, SYNCS, Setting, record};
use std::sync::Arc;

fn setting(mode: &'static str, sync: &'static str) -> Setting {
    Setting { mode, sync, auto_vacuum: 0, seed: 1 }
}

#[test]
fn every_crash_leaves_what_synchronous_allows() {
    for mode in MODES {
        for sync in SYNCS {
            for auto_vacuum in 0..3 {
                let setting = Setting { auto_vacuum, ..setting(mode, sync) };
                let r = record(Arc::new(Disk::new(1)), setting, setting.script(auto_vacuum != 1)).unwrap();
                let effort = Effort { samples: 3, ..Effort::quick() };
                if let Err(e) = check(&r, effort, 0) {
                    panic!("{e}");
                }
            }
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
        let (caught, all) = lies(setting, of, true).unwrap();
        println!("{what}: {caught} of {all}");
        assert!(caught > 0, "{what}: {setting:?}");
    }
}

//! What a connection keeps when the log begins anew.

use crate::support::*;
use iolite_base::Result;
use iolite_btree::*;
use iolite_os::{File, FileId, OpenFlags, UnixVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

/// The system's files, without what tells that they are the same: a connection over it knows as much of the others as one
/// of another process.
struct Stranger {
    inner: UnixVfs,
}

impl Vfs for Stranger {
    fn name(&self) -> &str {
        "stranger"
    }
    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        Ok(Box::new(StrangersFile { inner: self.inner.open(path, flags)? }))
    }

    iolite_os::pass_to_inner!(delete access full_path clock entropy);
}

struct StrangersFile {
    inner: Box<dyn File>,
}

impl File for StrangersFile {
    fn identity(&self) -> Option<FileId> {
        None
    }
    iolite_os::pass_to_inner!(read write truncate sync size lock unlock check_reserved sector_size characteristics is_read_only has_moved shm_map shm_lock shm_barrier shm_unmap);
}

fn rows(bt: &Btree, root: u32, ids: std::ops::Range<i64>, text: &[u8]) {
    bt.begin_write(false).unwrap();
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    for id in ids {
        c.insert_row(id, &record(&[Col::Blob(text)]), 0, InsertAt::Unknown).unwrap();
    }
    drop(c);
    bt.commit().unwrap();
}

/// The first byte of each row's blob.
fn read(bt: &Btree, root: u32) -> Vec<u8> {
    bt.begin_read().unwrap();
    let mut c = bt.cursor(root, TreeKind::Table, false).unwrap();
    let mut out = Vec::new();
    let mut more = c.first().unwrap();
    while more {
        let (page, at, _) = c.local();
        out.push(page[at + 3]);
        more = c.next().unwrap();
    }
    bt.end_read();
    out
}

fn misses(bt: &Btree) -> u64 {
    bt.cache_stats(true).misses
}

#[test]
fn unchanged_pages_stay_when_another_process_begins_the_log_anew() {
    lives(Arc::new(Stranger { inner: UnixVfs::new() }), false);
}

#[test]
fn unchanged_pages_stay_when_another_connection_begins_the_log_anew() {
    lives(vfs(), true);
}

/// `told`: the reader hears from the writer what a former life has changed, and need not find it out.
fn lives(readers: Arc<dyn Vfs>, told: bool) {
    let s = Scratch::new();
    let path = s.path("a.db");
    let writer = open(&path, &OpenOptions::default());
    writer.set_wal_autocheckpoint(0);
    let root = logged_tree(&writer);
    rows(&writer, root, 0..1000, &[1; 1000]);
    let reader = Btree::open(readers, &path, &OpenOptions::default()).unwrap();
    assert_eq!(read(&reader, root), [1; 1000]);
    let all = misses(&reader);
    assert!(all > 250, "{all}");
    // A long life first, so that the file goes on behind the later ones.
    rows(&writer, root, 0..1000, &[7; 1000]);
    rows(&writer, root, 0..1000, &[1; 1000]);
    writer.checkpoint(CheckpointMode::Restart).unwrap();
    rows(&writer, root, 0..100, &[1; 1001]);
    let mut expected = vec![1; 1000];
    assert_eq!(read(&reader, root), expected);
    misses(&reader);
    for round in 0..7u8 {
        if round == 6 {
            // The next life cuts the file, in the middle of what the reader has not seen of this one.
            rows(&writer, root, 600..1000, &[11; 1000]);
            expected[600..].fill(11);
            writer.set_journal_size_limit(32 + 100 * 4120 + 100).unwrap();
        }
        let (a, b) = (round as i64 * 100, round as i64 * 100 + 50);
        // The last commits of one life and the first of the next, neither of which the reader has seen.
        rows(&writer, root, a..a + 4, &[2 + round; 1000]);
        let done = writer.checkpoint(CheckpointMode::Restart).unwrap();
        assert!(!done.busy && done.log == done.checkpointed, "{done:?}");
        rows(&writer, root, b..b + 4, &[100 + round; 1000]);
        if round == 4 {
            // More than the reader's snapshot of the former life: nothing can be said any more.
            rows(&writer, root, 600..1000, &[9; 1000]);
            expected[600..].fill(9);
        }
        for i in 0..4 {
            expected[(a + i) as usize] = 2 + round;
            expected[(b + i) as usize] = 100 + round;
        }
        assert_eq!(read(&reader, root), expected, "round {round}");
        let reread = misses(&reader);
        // Of 1,000 rows, 400 were changed in these rounds.
        let (many, much) = (round == 4 || round == 6, reread > 200);
        assert!(
            if many { reread >= 100 && much != told } else { reread < 20 },
            "round {round}: {reread} pages read"
        );
        let v = 150 + round;
        rows(&writer, root, 0..200, &[v; 1000]);
        expected[..200].fill(v);
        assert_eq!(read(&reader, root), expected);
        misses(&reader);
    }
}

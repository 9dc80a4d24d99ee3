//! Values of many pages: read in pieces of several pages past the cache, wherever these lie (file, log, cache, spilled
//! by an open transaction), in whatever order the chain goes.

use crate::support::*;
use iolite_base::Buf;
use iolite_btree::*;
use std::collections::BTreeMap;

type Model = BTreeMap<i64, Vec<u8>>;

/// All rows, through pieces read together and through single pages.
fn same(bt: &Btree, root: u32, model: &Model, r: &mut Rng, what: &str) {
    let mut c = bt.cursor(root, TreeKind::Table, false).unwrap();
    let mut more = c.first().unwrap();
    for (k, v) in model {
        assert!(more && c.rowid() == *k, "{what}: row {k}");
        let from = r.below(v.len() as u64 / 2) as usize;
        for (at, len) in [(0, v.len()), (from, v.len() - from), (from, (v.len() - from) / 2)] {
            let mut out = Buf::with_capacity(len).unwrap();
            c.append_payload(at as u32, len, &mut out).unwrap();
            assert!(out[..] == v[at..at + len], "{what}: row {k}, {len} bytes from {at}");
        }
        let mut out = vec![0; v.len()];
        c.read_payload(0, &mut out).unwrap();
        assert!(out == *v, "{what}: row {k} page by page");
        let mut out = Buf::with_capacity(v.len() + 1).unwrap();
        assert!(c.append_payload(0, v.len() + 1, &mut out).is_err());
        more = c.next().unwrap();
    }
    assert!(!more);
}

fn change(bt: &Btree, root: u32, model: &mut Model, r: &mut Rng, page: u32) {
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    for _ in 0..6 {
        let k = r.below(12) as i64;
        if c.seek_rowid(k).unwrap().is_some_and(|o| o.is_eq()) {
            c.delete(false).unwrap();
            model.remove(&k);
        }
        // Pieces of what was deleted are used again, so chains go to and fro.
        if r.below(3) > 0 {
            let pages = [1, 7, 8, 9, 40, 150][r.below(6) as usize];
            let bytes = r.below(page as u64) as usize + pages * page as usize;
            let rec = record(&[Col::Blob(&r.bytes(bytes))]);
            c.insert_row(k, &rec, 0, InsertAt::Unknown).unwrap();
            model.insert(k, rec);
        }
    }
}

#[test]
fn values_of_many_pages_are_read_whole_from_wherever_they_are() {
    for (seed, page) in [(1, 512), (2, 4096)] {
        for mode in [JournalMode::Wal, JournalMode::Delete] {
            let s = Scratch::new();
            let path = s.path("a.db");
            let small = OpenOptions { page_size: page, cache_size: 20, ..OpenOptions::default() };
            let bt = open(&path, &small);
            bt.set_synchronous(SyncMode::Off).unwrap();
            bt.set_journal_mode(mode).unwrap();
            bt.set_wal_autocheckpoint(0);
            bt.begin_write(false).unwrap();
            let root = bt.create_tree(TreeKind::Table).unwrap();
            declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a)");
            bt.commit().unwrap();
            let mut r = Rng(seed);
            let mut model = Model::new();
            for round in 0..8 {
                bt.begin_write(false).unwrap();
                let before = model.clone();
                change(&bt, root, &mut model, &mut r, page);
                same(&bt, root, &model, &mut r, "uncommitted, spilled");
                match round % 4 {
                    3 => {
                        bt.rollback(true).unwrap();
                        model = before;
                    }
                    _ => bt.commit().unwrap(),
                }
                for cache in [20, 2000] {
                    let other = open(&path, &OpenOptions { cache_size: cache, ..OpenOptions::default() });
                    other.begin_read().unwrap();
                    same(&other, root, &model, &mut r, "cold");
                    same(&other, root, &model, &mut r, "warm");
                    other.end_read();
                }
                if mode == JournalMode::Wal && round == 4 {
                    bt.checkpoint(CheckpointMode::Passive).unwrap();
                }
                bt.begin_read().unwrap();
                same(&bt, root, &model, &mut r, "after the transaction");
                bt.end_read();
            }
        }
    }
}

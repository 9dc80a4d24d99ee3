//! Entries in order, and what one cursor leaves to the next.

use crate::support::*;
use iolite_btree::*;
use std::collections::BTreeMap;

struct Feed {
    entries: Vec<Vec<u8>>,
    next: usize,
    /// Says no at this entry.
    fails: usize,
}

impl Ordered for Feed {
    fn entry(&self) -> iolite_base::Result<&[u8]> {
        Ok(&self.entries[self.next])
    }

    fn advance(&mut self) -> iolite_base::Result<bool> {
        self.next += 1;
        if self.next == self.fails {
            return Err(iolite_base::Code::Interrupt.into());
        }
        Ok(self.next < self.entries.len())
    }
}

fn entries(r: &mut Rng, n: u64, page: u64) -> Vec<Vec<u8>> {
    (0..n)
        .map(|i| {
            let size = match r.below(30) {
                0 => r.below(3 * page),
                1..5 => r.below(page / 4),
                _ => r.below(12),
            };
            record(&[Col::Int(i as i64 + 1000), Col::Blob(&r.bytes(size as usize))])
        })
        .collect()
}

fn all(c: &mut Cursor) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut more = c.first().unwrap();
    while more {
        let mut b = vec![0; c.payload_len() as usize];
        c.read_payload(0, &mut b).unwrap();
        out.push(b);
        more = c.next().unwrap();
    }
    out
}

#[test]
fn entries_in_order_fill_an_index() {
    for (k, auto) in [AutoVacuum::None, AutoVacuum::Full].into_iter().enumerate() {
        for (page, cache) in [(512, 5), (512, 2000), (4096, 2000), (65536, 100)] {
            let s = Scratch::new();
            let path = s.path("a.db");
            let opts = OpenOptions { page_size: page, cache_size: cache, ..OpenOptions::default() };
            let bt = open(&path, &opts);
            bt.set_auto_vacuum(auto).unwrap();
            bt.begin_write(false).unwrap();
            let table = bt.create_tree(TreeKind::Table).unwrap();
            declare(&bt, "table", "t", "t", table, "CREATE TABLE t(a, b)");
            let root = bt.create_tree(TreeKind::Index).unwrap();
            let mut r = Rng(7 + k as u64 + page as u64);
            let mut wanted = entries(&mut r, 4000, page as u64);
            // Behind what is there already, in three goes, the second of which ends early.
            let mut c = bt.cursor(root, TreeKind::Index, true).unwrap();
            let mut paused = 0;
            for (from, to, fails) in [(0, 1, 0), (1, 2500, 2000), (2000, 4000, 0)] {
                let list = wanted[from..to].to_vec();
                let mut feed = Feed { entries: list, next: 0, fails: fails - fails.min(from) };
                let done = c.append_all(&mut feed, || {
                    paused += 1;
                    Ok(())
                });
                assert_eq!(done.is_err(), fails > 0);
                c.clear();
            }
            assert!(paused > 10);
            assert_eq!(all(&mut c), wanted);
            drop(c);
            bt.commit().unwrap();
            // One more, as a statement of its own would.
            bt.begin_write(false).unwrap();
            let mut c = bt.cursor(root, TreeKind::Index, true).unwrap();
            let mut never = |_: &[u8]| -> iolite_base::Result<std::cmp::Ordering> { unreachable!() };
            let last = record(&[Col::Int(1 << 40), Col::Blob(b"end")]);
            c.insert_entry(&last, InsertAt::Append, &mut never).unwrap();
            wanted.push(last);
            assert_eq!(all(&mut c), wanted);
            drop(c);
            bt.commit().unwrap();
            bt.begin_read().unwrap();
            let found = bt.integrity_check(&[1, table, root], 10).unwrap().0;
            assert!(found.is_empty(), "{found:?}");
            bt.end_read();
        }
    }
}

/// Statements that come and go: each uses a cursor for one row and lets go of it.
#[test]
fn a_path_left_behind_is_good_only_for_its_tree_as_it_is() {
    for mode in [JournalMode::Wal, JournalMode::Delete] {
        for seed in 1..6 {
            let s = Scratch::new();
            let path = s.path("a.db");
            let opts = OpenOptions { page_size: 512, cache_size: 2000, ..OpenOptions::default() };
            let (one, other) = (open(&path, &opts), open(&path, &opts));
            one.set_journal_mode(mode).unwrap();
            one.set_synchronous(SyncMode::Off).unwrap();
            other.set_synchronous(SyncMode::Off).unwrap();
            one.begin_write(false).unwrap();
            let root = one.create_tree(TreeKind::Table).unwrap();
            declare(&one, "table", "t", "t", root, "CREATE TABLE t(a)");
            one.commit().unwrap();
            let mut r = Rng(seed);
            let mut model: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
            for _ in 0..400 {
                let who = if r.below(3) == 0 { &other } else { &one };
                who.begin_write(false).unwrap();
                let mut cursors = [0, 1].map(|_| who.cursor(root, TreeKind::Table, true).unwrap());
                let before = model.clone();
                let mut saved = None;
                for _ in 0..r.below(12) {
                    let c = &mut cursors[r.below(2) as usize];
                    let id = r.below(300) as i64;
                    match r.below(12) {
                        0 => {
                            who.savepoint_release(0).unwrap();
                            who.savepoint_open(0).unwrap();
                            saved = Some(model.clone());
                        }
                        1 => {
                            if let Some(m) = &saved {
                                who.savepoint_rollback(0).unwrap();
                                model.clone_from(m);
                            }
                        }
                        2..4 => {
                            let found = c.seek_rowid(id).unwrap() == Some(std::cmp::Ordering::Equal);
                            assert_eq!(found, model.remove(&id).is_some());
                            if found {
                                c.delete(r.below(2) == 0).unwrap();
                            }
                        }
                        4..6 => {
                            assert_eq!(c.last().unwrap(), !model.is_empty());
                            if let Some(last) = model.keys().last() {
                                assert_eq!(c.rowid(), *last);
                            }
                        }
                        _ => {
                            let size = r.below(80) as usize;
                            let v = record(&[Col::Blob(&r.bytes(size))]);
                            c.insert_row(id, &v, 0, InsertAt::Unknown).unwrap();
                            model.insert(id, v);
                        }
                    }
                    if r.below(5) > 0 {
                        c.clear();
                    }
                }
                cursors.iter_mut().for_each(Cursor::clear);
                if r.below(4) == 0 {
                    who.rollback(true).unwrap();
                    model = before;
                } else {
                    who.commit().unwrap();
                }
                who.begin_write(false).unwrap();
                let mut c = who.cursor(root, TreeKind::Table, true).unwrap();
                let rows: Vec<Vec<u8>> = model.values().cloned().collect();
                assert_eq!(all(&mut c), rows);
                c.clear();
                who.rollback(true).unwrap();
            }
        }
    }
}

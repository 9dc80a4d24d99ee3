//! Trees against `BTreeMap`: random inserts, replacements, deletions, seeks and walks, with tiny pages and caches, savepoints
//! and rollbacks, and stock SQLite's opinion of the file at the end.

use crate::support::*;
use iolite_btree::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound::*;

fn payload(c: &mut Cursor) -> Vec<u8> {
    let mut out = vec![0; c.payload_len() as usize];
    c.read_payload(0, &mut out).unwrap();
    out
}

fn same_rows(c: &mut Cursor, model: &BTreeMap<i64, Vec<u8>>) {
    let mut more = c.first().unwrap();
    for (k, v) in model {
        assert!(more, "row {k} is missing");
        assert_eq!(c.rowid(), *k);
        assert!(&payload(c) == v, "content of row {k}");
        more = c.next().unwrap();
    }
    assert!(!more);
    let mut more = c.last().unwrap();
    for k in model.keys().rev() {
        assert!(more);
        assert_eq!(c.rowid(), *k);
        more = c.prev().unwrap();
    }
    assert!(!more);
    assert_eq!(c.count().unwrap(), model.len() as u64);
}

fn random_value(r: &mut Rng, page: u32) -> Vec<u8> {
    let n = match r.below(20) {
        0 => r.below(page as u64 * 5),
        1..4 => r.below(page as u64 / 2),
        _ => r.below(40),
    };
    let blob = r.bytes(n as usize);
    record(&[Col::Blob(&blob)])
}

struct Case {
    page: u32,
    reserved: u8,
    cache: i32,
    mode: JournalMode,
    auto: AutoVacuum,
    steps: usize,
    seed: u64,
}

fn run_table(case: &Case) {
    eprintln!("case page {} reserved {} cache {} {:?} {:?} seed {}", case.page, case.reserved, case.cache, case.mode, case.auto, case.seed);
    let s = Scratch::new();
    let path = s.path("t.db");
    let opts = OpenOptions {
        page_size: case.page,
        reserved: case.reserved,
        cache_size: case.cache,
        ..OpenOptions::default()
    };
    let bt = open(&path, &opts);
    bt.set_auto_vacuum(case.auto).unwrap();
    bt.set_synchronous(SyncMode::Off).unwrap();
    bt.set_journal_mode(case.mode).unwrap();
    assert_eq!(bt.journal_mode(), case.mode);
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    let mut model: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    let mut committed = model.clone();
    let mut saves: Vec<BTreeMap<i64, Vec<u8>>> = Vec::new();
    bt.commit().unwrap();
    bt.begin_write(false).unwrap();
    let mut r = Rng(case.seed);
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    let mut walker = bt.cursor(root, TreeKind::Table, false).unwrap();
    let span = 400;
    for step in 0..case.steps {
        let key = r.below(span) as i64 - 50;
        let op = r.below(100);
        if std::env::var_os("IOCHECK").is_some() { eprintln!("op {op} key {key} saves {}", saves.len()); }
        match op {
            0..45 => {
                let v = random_value(&mut r, case.page);
                let at = if r.below(2) == 0 {
                    InsertAt::Unknown
                } else {
                    match c.seek_rowid(key).unwrap() {
                        Some(o) => InsertAt::Here(o),
                        None => InsertAt::Unknown,
                    }
                };
                c.insert_row(key, &v, 0, at).unwrap();
                model.insert(key, v);
            }
            45..50 => {
                let key = model.keys().last().map_or(1, |k| k + 1);
                let v = random_value(&mut r, case.page);
                c.insert_row(key, &v, 0, InsertAt::Append).unwrap();
                model.insert(key, v);
            }
            50..75 => {
                let found = c.seek_rowid(key).unwrap();
                assert_eq!(found == Some(Ordering::Equal), model.contains_key(&key));
                if found == Some(Ordering::Equal) {
                    let keep = r.below(3) > 0;
                    c.delete(keep).unwrap();
                    model.remove(&key);
                    if keep {
                        let up = r.below(2) == 0;
                        let there = if up { c.next().unwrap() } else { c.prev().unwrap() };
                        let want = if up {
                            model.range((Excluded(key), Unbounded)).next().map(|x| *x.0)
                        } else {
                            model.range(..key).next_back().map(|x| *x.0)
                        };
                        assert_eq!(there.then(|| c.rowid()), want, "step {step}");
                    }
                }
            }
            75..85 => match c.seek_rowid(key).unwrap() {
                None => assert!(model.is_empty()),
                Some(Ordering::Equal) => assert!(payload(&mut c) == model[&key]),
                Some(Ordering::Less) => {
                    assert_eq!(Some(c.rowid()), model.range(..key).next_back().map(|x| *x.0))
                }
                Some(Ordering::Greater) => {
                    assert_eq!(Some(c.rowid()), model.range(key..).next().map(|x| *x.0))
                }
            },
            85..93 => {
                // A walk that others write under.
                if !walker.is_valid() {
                    walker.first().unwrap();
                } else {
                    let at = walker.rowid();
                    let there = walker.next().unwrap();
                    let want = model.range((Excluded(at), Unbounded)).next().map(|x| *x.0);
                    assert_eq!(there.then(|| walker.rowid()), want, "step {step}");
                }
            }
            93..95 => {
                bt.savepoint_open(saves.len()).unwrap();
                saves.push(model.clone());
            }
            95..97 if !saves.is_empty() => {
                let d = r.below(saves.len() as u64) as usize;
                if r.below(2) == 0 {
                    bt.savepoint_release(d).unwrap();
                    saves.truncate(d);
                } else {
                    bt.savepoint_rollback(d).unwrap();
                    model = saves[d].clone();
                    saves.truncate(d + 1);
                    walker.clear();
                }
            }
            97 => {
                bt.commit().unwrap();
                committed = model.clone();
                saves.clear();
                bt.begin_write(false).unwrap();
                walker.clear();
            }
            98 if r.below(3) == 0 => {
                bt.rollback(true).unwrap();
                model = committed.clone();
                saves.clear();
                bt.begin_write(false).unwrap();
                walker.clear();
            }
            99 if r.below(10) == 0 => {
                let n = bt.clear_tree(root, TreeKind::Table).unwrap();
                assert_eq!(n, model.len() as u64);
                model.clear();
                walker.clear();
            }
            _ => {
                if case.auto == AutoVacuum::Incremental && saves.is_empty() {
                    bt.incremental_vacuum().unwrap();
                }
            }
        }
        if std::env::var_os("IOCHECK").is_some() {
            assert_eq!(bt.integrity_check(&[1, root], 10).unwrap(), [] as [String; 0], "step {step}");
            eprintln!("{step}");
            same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
        }
        if step % 500 == 0 {
            same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
        }
    }
    same_rows(&mut c, &model);
    bt.commit().unwrap();
    drop((c, walker));
    if case.mode != JournalMode::Wal && case.reserved == 0 {
        check_with_shell(&path);
    }
    bt.close().unwrap();
    check_with_shell(&path);
    if let Some(n) = shell(&path, "SELECT count(*) FROM t") {
        assert_eq!(n, model.len().to_string());
    }
    let bt = open(&path, &opts);
    bt.begin_read().unwrap();
    same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
}

#[test]
fn rows_with_small_pages_and_caches() {
    let mut seed = 1;
    for mode in [JournalMode::Delete, JournalMode::Wal, JournalMode::Truncate, JournalMode::Persist] {
        for cache in [1, 2, 3, 5, 10, 200] {
            for auto in [AutoVacuum::None, AutoVacuum::Full, AutoVacuum::Incremental] {
                seed += 1;
                run_table(&Case { page: 512, reserved: 0, cache, mode, auto, steps: 1500, seed });
            }
        }
    }
}

#[test]
fn rows_in_every_page_size_and_with_reserved_bytes() {
    for (i, page) in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536].into_iter().enumerate() {
        for reserved in [0, 17, 32] {
            run_table(&Case {
                page,
                reserved,
                cache: 20,
                mode: JournalMode::Delete,
                auto: AutoVacuum::None,
                steps: 1200,
                seed: 1000 + i as u64,
            });
        }
    }
}

//! Trees against `BTreeMap`: random inserts, replacements, deletions, seeks and walks, with tiny pages and
//! caches, savepoints and rollbacks, and stock SQLite's opinion of the file at the end.

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
    check: bool,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    File,
    Temp,
    Memory,
}

fn start(case: &Case, s: &Scratch) -> (String, OpenOptions, Btree) {
    let path = if case.place == Place::Temp { String::new() } else { s.path("t.db") };
    let opts = OpenOptions {
        page_size: case.page,
        reserved: case.reserved,
        cache_size: case.cache,
        memory: case.place == Place::Memory,
        ..OpenOptions::default()
    };
    let bt = open(&path, &opts);
    bt.set_auto_vacuum(case.auto).unwrap();
    bt.set_synchronous(SyncMode::Off).unwrap();
    let mode = bt.set_journal_mode(case.mode).unwrap();
    assert!(mode == case.mode || case.place != Place::File);
    bt.begin_write(false).unwrap();
    (path, opts, bt)
}

fn finish(case: &Case, path: &str, bt: Btree) {
    if case.place != Place::File {
        return;
    }
    if case.mode != JournalMode::Wal && case.mode != JournalMode::Persist {
        check_with_shell(path);
    }
    bt.close().unwrap();
    check_with_shell(path);
}

fn run_table(case: &Case) {
    let s = Scratch::new();
    let (path, opts, bt) = start(case, &s);
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
        match r.below(100) {
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
        if case.check {
            assert_eq!(bt.integrity_check(&[1, root], 10).unwrap().0, [] as [String; 0], "step {step}");
            same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
        }
        if step % 500 == 0 {
            same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
        }
    }
    same_rows(&mut c, &model);
    bt.commit().unwrap();
    drop((c, walker));
    finish(case, &path, bt);
    if case.place != Place::File {
        return;
    }
    if let Some(n) = shell(&path, "SELECT count(*) FROM t") {
        assert_eq!(n, model.len().to_string());
    }
    let bt = open(&path, &opts);
    bt.begin_read().unwrap();
    same_rows(&mut bt.cursor(root, TreeKind::Table, false).unwrap(), &model);
}

fn key_of(record: &[u8]) -> &[u8] {
    &record[record[0] as usize..]
}

/// A key that is long for some numbers, so that it overflows.
fn key_bytes(n: u64, page: u32) -> Vec<u8> {
    let mut k = n.to_be_bytes()[6..].to_vec();
    let len = match n % 23 {
        0 => page as u64 * 3,
        1..5 => page as u64 / 4,
        _ => n % 40,
    };
    k.extend((0..len).map(|i| (n * 31 + i) as u8));
    k
}

fn same_keys(c: &mut Cursor, model: &BTreeMap<Vec<u8>, u64>) {
    let mut more = c.first().unwrap();
    for k in model.keys() {
        assert!(more);
        assert!(key_of(&payload(c)) == k);
        more = c.next().unwrap();
    }
    assert!(!more);
    let mut more = c.last().unwrap();
    for k in model.keys().rev() {
        assert!(more);
        assert!(key_of(&payload(c)) == k);
        more = c.prev().unwrap();
    }
    assert!(!more);
    assert_eq!(c.count().unwrap(), model.len() as u64);
}

fn run_index(case: &Case) {
    let s = Scratch::new();
    let (path, _, bt) = start(case, &s);
    let root = bt.create_tree(TreeKind::Index).unwrap();
    declare(&bt, "table", "t", "t", root, "CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID");
    bt.commit().unwrap();
    bt.begin_write(false).unwrap();
    let compare: KeyCompare = std::rc::Rc::new(|a, b| Ok(key_of(a).cmp(key_of(b))));
    let mut c = bt.cursor(root, TreeKind::Index, true).unwrap();
    c.set_compare(compare.clone());
    let mut walker = bt.cursor(root, TreeKind::Index, false).unwrap();
    walker.set_compare(compare);
    let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut committed = model.clone();
    let mut saves: Vec<BTreeMap<Vec<u8>, u64>> = Vec::new();
    let mut r = Rng(case.seed);
    for step in 0..case.steps {
        let n = r.below(500);
        let key = key_bytes(n, case.page);
        let rec = record(&[Col::Blob(&key)]);
        let mut cmp = |e: &[u8]| Ok(key_of(e).cmp(&key[..]));
        match r.below(100) {
            0..45 => {
                let found = c.seek_key(&mut cmp).unwrap();
                let at = match found {
                    Some(o) if r.below(2) == 0 => InsertAt::Here(o),
                    _ => InsertAt::Unknown,
                };
                c.insert_entry(&rec, at, &mut cmp).unwrap();
                model.insert(key, n);
            }
            45..50 => {
                let n = model.values().last().map_or(0, |n| n + 1);
                let key = key_bytes(n, case.page);
                let rec = record(&[Col::Blob(&key)]);
                if n < 60_000 {
                    c.insert_entry(&rec, InsertAt::Append, &mut |e: &[u8]| Ok(key_of(e).cmp(&key[..])))
                        .unwrap();
                    model.insert(key, n);
                }
            }
            50..75 => {
                let found = c.seek_key(&mut cmp).unwrap();
                assert_eq!(found == Some(Ordering::Equal), model.contains_key(&key));
                if found == Some(Ordering::Equal) {
                    let keep = r.below(3) > 0;
                    c.delete(keep).unwrap();
                    model.remove(&key);
                    if keep {
                        let up = r.below(2) == 0;
                        let there = if up { c.next().unwrap() } else { c.prev().unwrap() };
                        let want = if up {
                            model.range::<Vec<u8>, _>((Excluded(&key), Unbounded)).next()
                        } else {
                            model.range::<Vec<u8>, _>(..&key).next_back()
                        };
                        assert_eq!(there, want.is_some(), "step {step}");
                        if there {
                            assert!(key_of(&payload(&mut c)) == want.unwrap().0, "step {step}");
                        }
                    }
                }
            }
            75..85 => match c.seek_key(&mut cmp).unwrap() {
                None => assert!(model.is_empty()),
                Some(Ordering::Equal) => assert!(model.contains_key(&key)),
                Some(Ordering::Less) => {
                    let want = model.range::<Vec<u8>, _>(..&key).next_back();
                    assert!(key_of(&payload(&mut c)) == want.unwrap().0);
                }
                Some(Ordering::Greater) => {
                    let want = model.range::<Vec<u8>, _>(&key..).next();
                    assert!(key_of(&payload(&mut c)) == want.unwrap().0);
                }
            },
            85..93 => {
                if !walker.is_valid() {
                    walker.first().unwrap();
                } else {
                    // Where it stands must survive what others wrote since.
                    let moved = walker.restore().unwrap();
                    if walker.is_valid() && !moved {
                        let at = key_of(&payload(&mut walker)).to_vec();
                        assert!(model.contains_key(&at), "step {step}");
                        let there = walker.next().unwrap();
                        let want = model.range::<Vec<u8>, _>((Excluded(&at), Unbounded)).next();
                        assert_eq!(there, want.is_some(), "step {step}");
                        if there {
                            assert!(key_of(&payload(&mut walker)) == want.unwrap().0, "step {step}");
                        }
                    }
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
            _ => {}
        }
        if case.check {
            assert_eq!(bt.integrity_check(&[1, root], 10).unwrap().0, [] as [String; 0], "step {step}");
            same_keys(&mut bt.cursor(root, TreeKind::Index, false).unwrap(), &model);
        }
    }
    same_keys(&mut c, &model);
    bt.commit().unwrap();
    drop((c, walker));
    finish(case, &path, bt);
    if case.place == Place::File
        && let Some(n) = shell(&path, "SELECT count(*) FROM t")
    {
        assert_eq!(n, model.len().to_string());
    }
}

/// How many times more than usual: for a long search, `IOLITE_ROUNDS=100`.
fn rounds() -> u64 {
    std::env::var("IOLITE_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

fn small_cases(run: fn(&Case)) {
    let mut seed = rounds() * 7919;
    for _ in 0..rounds() {
        for mode in [JournalMode::Delete, JournalMode::Wal, JournalMode::Truncate, JournalMode::Persist] {
            for cache in [1, 2, 3, 5, 10, 200] {
                for auto in [AutoVacuum::None, AutoVacuum::Full, AutoVacuum::Incremental] {
                    seed += 1;
                    let case = Case {
                        page: 512,
                        reserved: 0,
                        cache,
                        mode,
                        auto,
                        steps: 1500,
                        seed,
                        check: std::env::var_os("IOLITE_CHECK_STEPS").is_some(),
                        place: Place::File,
                    };
                    let failed = std::panic::catch_unwind(|| run(&case)).is_err();
                    assert!(!failed, "cache {cache} {mode:?} {auto:?} seed {seed}");
                }
            }
        }
    }
}

#[test]
fn rows_with_small_pages_and_caches() {
    small_cases(run_table);
}

#[test]
fn keys_with_small_pages_and_caches() {
    small_cases(run_index);
}

#[test]
fn trees_without_a_file() {
    for round in 0..rounds() {
        for place in [Place::Temp, Place::Memory] {
            for cache in [1, 5, 30, 1000] {
                for run in [run_table, run_index] {
                    let case = Case {
                        page: if cache == 30 { 4096 } else { 512 },
                        reserved: 0,
                        cache,
                        mode: JournalMode::Memory,
                        auto: if round % 2 == 0 { AutoVacuum::None } else { AutoVacuum::Incremental },
                        steps: 2000,
                        seed: 77 + cache as u64 + round * 1000,
                        check: false,
                        place,
                    };
                    let failed = std::panic::catch_unwind(|| run(&case)).is_err();
                    assert!(!failed, "cache {cache} {place:?} seed {}", case.seed);
                }
            }
        }
    }
}

#[test]
fn every_page_size_and_reserved_bytes() {
    for (i, page) in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536].into_iter().enumerate() {
        for reserved in [0, 17, 32] {
            for run in [run_table, run_index] {
                run(&Case {
                    page,
                    reserved,
                    cache: 20,
                    mode: JournalMode::Delete,
                    auto: AutoVacuum::None,
                    steps: 1200,
                    seed: 1000 + i as u64,
                    check: false,
                    place: Place::File,
                });
            }
        }
    }
}

#[test]
fn pages_are_well_filled() {
    let fill = |order: fn(i64, &mut Rng) -> i64, kind: TreeKind| {
        let bt = open("", &OpenOptions { memory: true, ..OpenOptions::default() });
        bt.begin_write(false).unwrap();
        let root = bt.create_tree(kind).unwrap();
        let before = bt.page_count();
        let mut c = bt.cursor(root, kind, true).unwrap();
        let mut r = Rng(3);
        let mut bytes = 0;
        for i in 0..20_000 {
            let k = order(i, &mut r);
            let at = if k == i { InsertAt::Append } else { InsertAt::Unknown };
            let mut rec = record(&[Col::Int(k), Col::Blob(&[1; 50])]);
            if kind == TreeKind::Table {
                c.insert_row(k, &rec, 0, at).unwrap();
            } else {
                // Bytes that sort as the number does.
                rec.splice(0..0, k.to_be_bytes());
                c.insert_entry(&rec, at, &mut |e: &[u8]| Ok(e.cmp(&rec[..]))).unwrap();
            }
            bytes += rec.len() + 3;
        }
        assert_eq!(bt.integrity_check(&[0, root], 5).unwrap().0, [] as [String; 0]);
        bytes as f64 / ((bt.page_count() - before) as f64 * 4096.0)
    };
    for kind in [TreeKind::Table, TreeKind::Index] {
        let ordered = fill(|i, _| i, kind);
        let random = fill(|_, r| r.below(1 << 40) as i64 + (1 << 20), kind);
        let falling = fill(|i, _| 50_000 - i, kind);
        assert!(ordered > 0.93, "{kind:?} in order: {ordered}");
        assert!(random > 0.7, "{kind:?} at random: {random}");
        assert!(falling > 0.45, "{kind:?} backwards: {falling}");
        eprintln!("{kind:?}: in order {ordered:.3}, at random {random:.3}, backwards {falling:.3}");
    }
}

//! Damaged files: whatever the bytes say, there is an answer or an error, never a panic, a hang or memory
//! without bound.

use crate::support::*;
use iolite_base::Code;
use iolite_btree::*;
use iolite_os::{MemoryVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

/// A file with a table, an index with long keys, overflow chains, free pages.
fn sound_file(page: u32, auto: AutoVacuum) -> Vec<u8> {
    let vfs = Arc::new(MemoryVfs::new());
    let opts = OpenOptions { page_size: page, ..OpenOptions::default() };
    let bt = Btree::open(vfs.clone(), "x", &opts).unwrap();
    bt.set_auto_vacuum(auto).unwrap();
    bt.begin_write(false).unwrap();
    let table = bt.create_tree(TreeKind::Table).unwrap();
    let index = bt.create_tree(TreeKind::Index).unwrap();
    declare(&bt, "table", "t", "t", table, "CREATE TABLE t(a)");
    declare(&bt, "table", "u", "u", index, "CREATE TABLE u(a PRIMARY KEY) WITHOUT ROWID");
    let mut r = Rng(5);
    let mut c = bt.cursor(table, TreeKind::Table, true).unwrap();
    let mut ic = bt.cursor(index, TreeKind::Index, true).unwrap();
    for i in 0..300i64 {
        let n = if i % 20 == 0 { page as u64 * 3 } else { r.below(60) };
        let blob = r.bytes(n as usize);
        c.insert_row(i, &record(&[Col::Blob(&blob)]), 0, InsertAt::Unknown).unwrap();
        let key = record(&[Col::Blob(&blob[..blob.len().min(page as usize)])]);
        ic.insert_entry(&key, InsertAt::Unknown, &mut |e: &[u8]| Ok(e.cmp(&key[..]))).unwrap();
    }
    for i in (0..300).step_by(7) {
        c.seek_rowid(i).unwrap();
        c.delete(false).unwrap();
    }
    drop((c, ic));
    bt.commit().unwrap();
    bt.close().unwrap();
    vfs.content(Path::new("x")).unwrap()
}

/// Does a bit of everything; errors are fine.
fn use_it(bytes: Vec<u8>, seed: u64, roots: (u32, u32)) -> iolite_base::Result<()> {
    let vfs = Arc::new(MemoryVfs::new());
    vfs.put(Path::new("x"), bytes);
    let v: Arc<dyn Vfs> = vfs;
    let bt = Btree::open(v, "x", &OpenOptions { cache_size: 20, ..OpenOptions::default() })?;
    bt.set_synchronous(SyncMode::Off)?;
    bt.begin_read()?;
    let (found, _) = bt.integrity_check(&[1, roots.0, roots.1], 100)?;
    assert!(found.len() <= 100);
    let mut r = Rng(seed);
    let compare: KeyCompare = std::rc::Rc::new(|a, b| Ok(a.cmp(b)));
    for (root, kind) in [(roots.0, TreeKind::Table), (roots.1, TreeKind::Index), (1, TreeKind::Table)] {
        let mut c = bt.cursor(root, kind, false)?;
        c.set_compare(compare.clone());
        let _ = c.count();
        for back in [false, true] {
            let mut more = if back { c.last() } else { c.first() }.unwrap_or(false);
            let mut steps = 0;
            while more && steps < 3000 {
                steps += 1;
                let len = (c.payload_len() as usize).min(100_000);
                let mut buf = vec![0; len];
                let _ = c.read_payload(0, &mut buf);
                more = if back { c.prev() } else { c.next() }.unwrap_or(false);
            }
        }
    }
    let writing = bt.begin_write(false);
    if writing.is_ok() {
        for _ in 0..60 {
            let n = r.below(200) as usize;
            let blob = r.bytes(n);
            let rec = record(&[Col::Blob(&blob)]);
            let mut c = bt.cursor(roots.0, TreeKind::Table, true)?;
            let _ = c.insert_row(r.below(320) as i64, &rec, 0, InsertAt::Unknown);
            if c.seek_rowid(r.below(320) as i64).is_ok_and(|o| o == Some(std::cmp::Ordering::Equal)) {
                let _ = c.delete(true);
                let _ = c.next();
            }
            let mut c = bt.cursor(roots.1, TreeKind::Index, true)?;
            c.set_compare(compare.clone());
            let _ = c.insert_entry(&rec, InsertAt::Unknown, &mut |e: &[u8]| Ok(e.cmp(&rec[..])));
            if c.seek_key(&mut |e: &[u8]| Ok(e.cmp(&blob[..]))).is_ok_and(|o| o.is_some()) {
                let _ = c.delete(true);
                let _ = c.prev();
            }
            let _ = bt.incremental_vacuum();
        }
        let _ = bt.clear_tree(roots.0, TreeKind::Table);
        let _ = bt.drop_tree(roots.1);
        let _ = bt.create_tree(TreeKind::Index);
        if bt.commit().is_err() {
            bt.rollback(true)?;
        }
    }
    Ok(())
}

#[test]
fn flipped_bytes_are_survived() {
    let rounds: u64 = std::env::var("IOLITE_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    for (page, auto) in [(512, AutoVacuum::None), (512, AutoVacuum::Full), (1024, AutoVacuum::Incremental)] {
        let sound = sound_file(page, auto);
        let roots = if auto == AutoVacuum::None { (2, 3) } else { (3, 4) };
        use_it(sound.clone(), 1, roots).unwrap();
        let pages = sound.len() / page as usize;
        for seed in 0..400 * rounds {
            let mut r = Rng(seed * 31 + page as u64);
            let mut bytes = sound.clone();
            for _ in 0..1 + r.below(6) {
                let p = r.below(pages as u64) as usize;
                // Headers and pointers are where it hurts.
                let at = p * page as usize
                    + if r.below(3) > 0 { r.below(40) } else { r.below(page as u64) } as usize
                    + if p == 0 && r.below(2) == 0 { 100 } else { 0 };
                let n = bytes.len();
                let v = match r.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at % n].wrapping_add(1),
                    _ => r.next() as u8,
                };
                bytes[at % n] = v;
            }
            if std::env::var_os("IOLITE_VERBOSE").is_some() {
                eprintln!("seed {seed} page {page}");
            }
            let outcome = std::panic::catch_unwind(|| use_it(bytes, seed, roots));
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(e)) => assert!(
                    matches!(
                        e.code().primary(),
                        Code::Corrupt | Code::Notadb | Code::Readonly | Code::Cantopen
                    ),
                    "seed {seed} page {page}: {e:?}"
                ),
                Err(_) => panic!("panic with seed {seed}, page size {page}, {auto:?}"),
            }
        }
    }
}

#[test]
fn cut_files_are_survived() {
    let sound = sound_file(512, AutoVacuum::None);
    for n in (0..sound.len()).step_by(97).chain(0..120) {
        let _ = use_it(sound[..n].to_vec(), n as u64, (2, 3));
    }
}

#[test]
fn findings_are_said_in_sqlites_words() {
    let sound = sound_file(512, AutoVacuum::None);
    let check = |bytes: Vec<u8>| {
        let vfs = Arc::new(MemoryVfs::new());
        vfs.put(Path::new("x"), bytes);
        let bt = Btree::open(vfs, "x", &OpenOptions::default()).unwrap();
        bt.begin_read().unwrap();
        bt.integrity_check(&[1, 2, 3], 100).unwrap().0
    };
    assert_eq!(check(sound.clone()), [] as [String; 0]);
    let mut b = sound.clone();
    // One free page less than the list holds.
    let free = u32::from_be_bytes(b[36..40].try_into().unwrap());
    b[36..40].copy_from_slice(&(free + 1).to_be_bytes());
    assert_eq!(check(b), [format!("Freelist: size is {free} but should be {}", free + 1)]);
    let mut b = sound.clone();
    b[32..40].fill(0);
    let said = check(b);
    assert_eq!(said.len(), free as usize);
    assert!(said[0].starts_with("Page ") && said[0].ends_with(": never used"), "{said:?}");
    let mut b = sound;
    b[512] = 77;
    assert_eq!(check(b)[0], "Tree 2 page 2: btreeInitPage() returns error code 11");
}

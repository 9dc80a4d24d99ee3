//! Counts instructions: run one of these under `valgrind --tool=callgrind` twice, with different numbers of
//! steps, and divide the difference.
//!
//! `steps WHAT N [ROWS]` where WHAT is seek, next, append, random, delete, index-append, index-random,
//! index-seek, commit or read. With `STEPS_FILE` set, in that file and the journal mode `STEPS_MODE` instead
//! of in memory.

use iolite_btree::*;
use std::sync::Arc;

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let n: i64 = args.next().and_then(|s| s.parse().ok()).unwrap_or(1000);
    let rows: i64 = args.next().and_then(|s| s.parse().ok()).unwrap_or(100_000);
    let vfs: Arc<dyn iolite_os::Vfs> = iolite_os::default_vfs();
    let file = std::env::var("STEPS_FILE").ok();
    let opts = OpenOptions { memory: file.is_none(), cache_size: 1_000_000, ..OpenOptions::default() };
    let bt = Btree::open(vfs, file.as_deref().unwrap_or("x"), &opts).expect("open");
    if let Some(mode) = std::env::var("STEPS_MODE").ok().and_then(|m| JournalMode::from_name(&m)) {
        bt.set_journal_mode(mode).expect("journal mode");
        bt.set_synchronous(SyncMode::Normal).expect("synchronous");
    }
    bt.begin_write(false).expect("begin");
    let table = bt.create_tree(TreeKind::Table).expect("create");
    let index = bt.create_tree(TreeKind::Index).expect("create");
    let payload = [7u8; 60];
    let mut c = bt.cursor(table, TreeKind::Table, true).expect("cursor");
    let key = |i: i64| {
        let mut k = [0u8; 12];
        k[0] = 2;
        k[1] = 32;
        k[2..10].copy_from_slice(&i.to_be_bytes());
        k
    };
    let mix = |i: i64| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
    let mut ic = bt.cursor(index, TreeKind::Index, true).expect("cursor");
    if !what.starts_with("index") {
        for i in 0..rows {
            c.insert_row(i * 2, &payload, 0, InsertAt::Append).expect("insert");
        }
    } else {
        for i in 0..rows {
            let k = key(i << 20);
            ic.insert_entry(&k, InsertAt::Append, &mut |e: &[u8]| Ok(e.cmp(&k))).expect("insert");
        }
    }
    let mut sum = 0u64;
    bt.commit().expect("commit");
    bt.begin_write(false).expect("begin");
    match what.as_str() {
        "seek" => {
            for i in 0..n {
                let k = (mix(i) as u64 % (2 * rows as u64)) as i64;
                sum += c.seek_rowid(k).expect("seek").is_some() as u64;
            }
        }
        "next" => {
            for _ in 0..n {
                if !c.is_valid() {
                    c.first().expect("first");
                }
                c.next().expect("next");
                sum += c.payload_len() as u64;
            }
        }
        "append" => {
            for i in 0..n {
                c.insert_row(rows * 2 + i, &payload, 0, InsertAt::Append).expect("insert");
            }
        }
        "random" => {
            for i in 0..n {
                c.insert_row(mix(i) >> 16, &payload, 0, InsertAt::Unknown).expect("insert");
            }
        }
        "delete" => {
            for i in 0..n {
                let k = (mix(i) as u64 % (2 * rows as u64)) as i64;
                if c.seek_rowid(k).expect("seek") == Some(std::cmp::Ordering::Equal) {
                    c.delete(false).expect("delete");
                }
            }
        }
        "index-append" => {
            for i in 0..n {
                let k = key((rows + i) << 20);
                ic.insert_entry(&k, InsertAt::Append, &mut |e: &[u8]| Ok(e.cmp(&k))).expect("insert");
            }
        }
        "index-random" => {
            for i in 0..n {
                let k = key(((mix(i) as u64 % (rows as u64)) << 20) as i64 + i);
                ic.insert_entry(&k, InsertAt::Unknown, &mut |e: &[u8]| Ok(e.cmp(&k[..]))).expect("insert");
            }
        }
        "index-seek" => {
            for i in 0..n {
                let k = key(((mix(i) as u64 % (rows as u64)) << 20) as i64);
                sum += ic.seek_key(&mut |e: &[u8]| Ok(e.cmp(&k[..]))).expect("seek").is_some() as u64;
            }
        }
        "commit" => {
            bt.commit().expect("commit");
            for i in 0..n {
                bt.begin_write(false).expect("begin");
                c.insert_row(rows * 2 + i, &payload, 0, InsertAt::Append).expect("insert");
                bt.commit().expect("commit");
            }
        }
        "read" => {
            bt.commit().expect("commit");
            for i in 0..n {
                bt.begin_read().expect("begin");
                let k = (mix(i) as u64 % (2 * rows as u64)) as i64;
                sum += c.seek_rowid(k).expect("seek").is_some() as u64;
                bt.end_read();
            }
        }
        other => panic!("no such thing to count: {other}"),
    }
    println!("{what} {n} {sum}");
}

//! What a full cache keeps while a transaction changes more pages than it holds.

use crate::support::*;
use iolite_btree::*;

const ROWS: i64 = 6000;
/// Rows that are changed all the time; they lie on two fifths of the pages that the cache holds.
const HOT: u64 = 160;

/// Changes a row that is changed often, and one of all rows, in turn.
fn change(bt: &Btree, root: u32, times: usize) {
    let mut r = Rng(7);
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    for i in 0..times {
        for row in [r.below(HOT), r.below(ROWS as u64)] {
            let rec = record(&[Col::Int(i as i64), Col::Blob(&[row as u8; 90])]);
            c.insert_row(row as i64, &rec, 0, InsertAt::Unknown).unwrap();
        }
    }
}

#[test]
fn pages_that_are_changed_often_stay() {
    for mode in [JournalMode::Delete, JournalMode::Wal] {
        let s = Scratch::new();
        let opts = OpenOptions { page_size: 512, cache_size: 100, ..OpenOptions::default() };
        let bt = open(&s.path("a.db"), &opts);
        bt.set_synchronous(SyncMode::Off).unwrap();
        bt.set_journal_mode(mode).unwrap();
        bt.begin_write(false).unwrap();
        let root = bt.create_tree(TreeKind::Table).unwrap();
        let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
        for row in 0..ROWS {
            let rec = record(&[Col::Int(row), Col::Blob(&[0; 90])]);
            c.insert_row(row, &rec, 0, InsertAt::Append).unwrap();
        }
        drop(c);
        bt.commit().unwrap();
        bt.begin_write(false).unwrap();
        change(&bt, root, 1000);
        bt.cache_stats(true);
        change(&bt, root, 4000);
        // Each row of all is on a page that is not there, mostly.
        let stats = bt.cache_stats(false);
        assert!(stats.misses < 7500 && stats.spills < 6000, "{mode:?}: {stats:?}");
        bt.commit().unwrap();
    }
}

#[test]
fn statements_on_many_trees_go_on_where_they_stood() {
    let s = Scratch::new();
    // Room for the paths of three trees.
    let opts = OpenOptions { cache_size: 200, ..OpenOptions::default() };
    let bt = open(&s.path("a.db"), &opts);
    bt.begin_write(false).unwrap();
    let roots: Vec<u32> = (0..8).map(|_| bt.create_tree(TreeKind::Table).unwrap()).collect();
    let append = |root: u32, row: i64| {
        let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
        c.insert_row(row, &record(&[Col::Blob(&[row as u8; 40])]), 0, InsertAt::Append).unwrap();
        c.clear();
    };
    for row in 0..500 {
        roots.iter().for_each(|root| append(*root, row));
    }
    for root in &roots {
        append(*root, 500);
        bt.cache_stats(true);
        (501..520).for_each(|row| append(*root, row));
        // The row's page is got to be changed; no path is looked up from the root.
        let stats = bt.cache_stats(false);
        assert!(stats.hits < 30, "{stats:?}");
    }
    for root in &roots {
        let mut c = bt.cursor(*root, TreeKind::Table, false).unwrap();
        assert_eq!(c.count().unwrap(), 520);
    }
    bt.commit().unwrap();
}

//! Online backups while the source is written to: the copy equals the source, whoever writes between the steps.

use crate::support::*;
use iolite_btree::*;

/// Rows and their content, in order.
fn content(bt: &Btree, root: u32) -> Vec<(i64, Vec<u8>)> {
    bt.begin_read().unwrap();
    let mut out = Vec::new();
    let mut c = bt.cursor(root, TreeKind::Table, false).unwrap();
    let mut more = c.first().unwrap();
    while more {
        let mut rec = vec![0; c.payload_len() as usize];
        c.read_payload(0, &mut rec).unwrap();
        out.push((c.rowid(), rec));
        more = c.next().unwrap();
    }
    bt.end_read();
    out
}

/// Changes rows here and there, makes new ones, deletes others.
fn work(bt: &Btree, root: u32, rng: &mut Rng, changes: u64) {
    let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
    for _ in 0..changes {
        let row = rng.below(900) as i64;
        let found = c.seek_rowid(row).unwrap() == Some(std::cmp::Ordering::Equal);
        if found && rng.below(2) == 0 {
            c.delete(false).unwrap();
        } else {
            let size = if rng.below(8) == 0 { 3000 } else { rng.below(200) as usize };
            let bytes = rng.bytes(size);
            c.insert_row(row, &record(&[Col::Blob(&bytes)]), 0, InsertAt::Unknown).unwrap();
        }
    }
}

/// One transaction of the source's own connection: committed, taken back, or in part.
fn transaction(bt: &Btree, root: u32, rng: &mut Rng) {
    bt.begin_write(false).unwrap();
    match rng.below(8) {
        0 => {
            work(bt, root, rng, 30);
            bt.rollback(true).unwrap();
            return;
        }
        1 => {
            work(bt, root, rng, 5);
            bt.savepoint_open(0).unwrap();
            work(bt, root, rng, 30);
            bt.savepoint_rollback(0).unwrap();
        }
        2 => {
            // Most is deleted: the file has free pages.
            let mut c = bt.cursor(root, TreeKind::Table, true).unwrap();
            for row in 100..900 {
                if c.seek_rowid(row).unwrap() == Some(std::cmp::Ordering::Equal) {
                    c.delete(false).unwrap();
                }
            }
        }
        3 => {
            // As the last step of VACUUM does: other content, fewer pages.
            let small = open("", &OpenOptions { memory: true, page_size: 1024, ..OpenOptions::default() });
            small.begin_write(false).unwrap();
            assert_eq!(small.create_tree(TreeKind::Table).unwrap(), root);
            declare(&small, "table", "t", "t", root, "CREATE TABLE t(a)");
            work(&small, root, rng, 60);
            small.commit().unwrap();
            bt.replace_content(&small).unwrap();
        }
        _ => {
            let n = rng.below(40) + 1;
            work(bt, root, rng, n);
        }
    }
    bt.commit().unwrap();
}

#[test]
fn a_backup_equals_its_source_whoever_writes() {
    for seed in 0..60u64 {
        let s = Scratch::new();
        let rng = &mut Rng(seed);
        let kind = seed % 4;
        let memory = kind == 0;
        let name = if memory { String::new() } else { s.path("a.db") };
        let from = open(&name, &OpenOptions { memory, page_size: 1024, ..OpenOptions::default() });
        let wal = kind == 1 || kind == 2 && seed % 8 < 4;
        if wal {
            from.set_journal_mode(JournalMode::Wal).unwrap();
        }
        from.begin_write(false).unwrap();
        let root = from.create_tree(TreeKind::Table).unwrap();
        declare(&from, "table", "t", "t", root, "CREATE TABLE t(a)");
        work(&from, root, rng, 600);
        from.commit().unwrap();
        let other =
            (kind == 2).then(|| open(&name, &OpenOptions { page_size: 1024, ..OpenOptions::default() }));
        let path = s.path("b.db");
        let to = open(&path, &OpenOptions::default());
        let mut b = Backup::new(&to, &from).unwrap();
        let mut steps = 0;
        while !b.step(rng.below(20) as i32 + 1).unwrap() {
            steps += 1;
            if steps < 200 {
                match &other {
                    Some(o) if rng.below(6) == 0 => transaction(o, root, rng),
                    _ if rng.below(4) > 0 => transaction(&from, root, rng),
                    _ => {}
                }
            }
        }
        assert_eq!(content(&to, root), content(&from, root), "seed {seed}");
        assert_eq!(to.page_count(), from.page_count(), "seed {seed}");
        assert_eq!(to.journal_mode() == JournalMode::Wal, wal, "seed {seed}");
        drop((b, to));
        check_with_shell(&path);
    }
}

/// Those to a database in memory make it begin anew (documentation page `backup`): it ends when they do.
#[test]
fn commits_of_the_own_connection_do_not_hold_a_backup_up() {
    for memory in [true, false] {
        let s = Scratch::new();
        let name = if memory { String::new() } else { s.path("a.db") };
        let from = open(&name, &OpenOptions { memory, page_size: 1024, ..OpenOptions::default() });
        let rng = &mut Rng(7);
        from.begin_write(false).unwrap();
        let root = from.create_tree(TreeKind::Table).unwrap();
        work(&from, root, rng, 900);
        from.commit().unwrap();
        let to = open(&s.path("b.db"), &OpenOptions::default());
        let mut b = Backup::new(&to, &from).unwrap();
        let mut steps = 0;
        while !b.step(10).unwrap() {
            steps += 1;
            assert!(steps < 200, "it never ends");
            if !memory || steps < 20 {
                from.begin_write(false).unwrap();
                work(&from, root, rng, 1);
                from.commit().unwrap();
            }
        }
        assert_eq!(content(&to, root), content(&from, root));
    }
}

#[test]
fn an_empty_source_leaves_an_empty_database() {
    for (memory, full) in [(true, true), (false, true), (true, false)] {
        let s = Scratch::new();
        let name = if memory { String::new() } else { s.path("a.db") };
        let from = open(&name, &OpenOptions { memory, ..OpenOptions::default() });
        let path = s.path("b.db");
        let to = open(&path, &OpenOptions { page_size: 1024, ..OpenOptions::default() });
        if full {
            to.begin_write(false).unwrap();
            let root = to.create_tree(TreeKind::Table).unwrap();
            declare(&to, "table", "t", "t", root, "CREATE TABLE t(a)");
            work(&to, root, &mut Rng(1), 100);
            to.commit().unwrap();
        }
        let mut b = Backup::new(&to, &from).unwrap();
        assert!(b.step(5).unwrap());
        assert_eq!((b.page_count(), b.remaining()), (0, 0));
        drop(b);
        assert_eq!(content(&to, 1), Vec::new());
        check_with_shell(&path);
        if let Some(names) = shell(&path, "SELECT count(*) FROM sqlite_schema") {
            assert_eq!(names, "0");
        }
    }
}

#[test]
fn an_abandoned_copy_over_a_database_leaves_it_as_it_was() {
    let s = Scratch::new();
    let path = s.path("b.db");
    let to = open(&path, &OpenOptions { page_size: 1024, ..OpenOptions::default() });
    to.begin_write(false).unwrap();
    let root = to.create_tree(TreeKind::Table).unwrap();
    declare(&to, "table", "t", "t", root, "CREATE TABLE t(a)");
    work(&to, root, &mut Rng(1), 100);
    to.commit().unwrap();
    let before = content(&to, root);
    let from = open("", &OpenOptions { memory: true, page_size: 1024, ..OpenOptions::default() });
    from.begin_write(false).unwrap();
    let other = from.create_tree(TreeKind::Table).unwrap();
    work(&from, other, &mut Rng(2), 500);
    from.commit().unwrap();
    let mut b = Backup::new(&to, &from).unwrap();
    assert!(!b.step(3).unwrap());
    drop(b);
    assert_eq!(content(&to, root), before);
    check_with_shell(&path);
}

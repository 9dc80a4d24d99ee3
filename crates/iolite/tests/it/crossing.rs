//! Paths that cross on one file: journal modes beside each other, several files in one commit, files that move or are cut,
//! links, forks. What is asked each time: is everything there that was committed, and nothing else.

use iolite::engine::{Caches, Code, Connection, OpenFlags};
use iolite_testkit::{Child, Scratch};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::rc::Rc;

const ROWS: i64 = 2000;

fn open(dir: &Scratch, name: &str) -> Connection {
    // As the C library opens: no lease, no checkpoint thread.
    Connection::open_with(&dir.name(name), OpenFlags::default()).unwrap()
}

fn one(c: &Connection, sql: &str) -> String {
    let rows = c.query(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let row: Vec<String> = rows[0].iter().map(|v| v.to_string_lossy()).collect();
    row.join("|")
}

fn run(c: &Connection, sql: &str) {
    c.execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

fn code(c: &Connection, sql: &str) -> Code {
    c.execute_batch(sql).expect_err(sql).code()
}

/// A table whose rows all have the same v: two states of it are told apart, and so is a mixture.
fn fill(c: &Connection) {
    run(
        c,
        &format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, v, x);
             WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             INSERT INTO t SELECT i, 0, hex(zeroblob(100)) FROM n; CREATE INDEX tv ON t(v)"
        ),
    );
}

/// What a new process finds after a crash, by our reckoning and by stock's.
fn after_crash(dir: &Scratch, name: &str) -> String {
    let crashed = dir.killed_now();
    let stock = dir.killed_now();
    let c = open(&crashed, name);
    let ours = one(&c, "SELECT min(v), max(v), count(*) FROM t") + " " + &one(&c, "PRAGMA integrity_check");
    let sql = "SELECT min(v), max(v), count(*) FROM t; PRAGMA integrity_check";
    assert_eq!(stock.stock(name, sql).replace('\n', " "), ours);
    ours
}

fn state(v: i64) -> String {
    format!("{v}|{v}|{ROWS} ok")
}

#[test]
fn a_journal_that_a_neighbour_removes_is_made_anew() {
    for mode in ["truncate", "persist"] {
        for ours in ["normal", "exclusive"] {
            let dir = Scratch::new();
            let a = open(&dir, "a.db");
            run(&a, &format!("PRAGMA journal_mode = {mode}; PRAGMA locking_mode = {ours}"));
            fill(&a);
            run(&a, "UPDATE t SET v = 1; PRAGMA locking_mode = normal; SELECT count(*) FROM t");
            // A neighbour in DELETE mode removes the journal when it commits.
            let b = open(&dir, "a.db");
            run(&b, "PRAGMA journal_mode = delete; UPDATE t SET v = 2");
            assert!(!dir.path("a.db-journal").exists());
            run(&a, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 3");
            assert!(dir.path("a.db-journal").exists(), "{mode} after {ours}");
            assert_eq!(after_crash(&dir, "a.db"), state(2), "{mode} after {ours}");
            run(&a, "COMMIT");
            assert_eq!(after_crash(&dir, "a.db"), state(3));
        }
    }
}

#[test]
fn a_journal_that_a_neighbour_removes_by_a_rollback_is_made_anew() {
    let dir = Scratch::new();
    let a = open(&dir, "a.db");
    run(&a, "PRAGMA journal_mode = truncate");
    fill(&a);
    run(&a, "UPDATE t SET x = hex(zeroblob(600))");
    // A statement that reads on keeps SHARED, and not the journal.
    let mut reading = a.prepare("SELECT id FROM t").unwrap();
    reading.step().unwrap();
    run(&a, "UPDATE t SET v = 1");
    let b = open(&dir, "a.db");
    // More than what a journal gathers in memory; the pages stay in the cache.
    run(&b, "PRAGMA cache_size = 100000; BEGIN; UPDATE t SET v = 2; ROLLBACK");
    assert!(!dir.path("a.db-journal").exists());
    drop(reading);
    run(&a, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 3");
    assert_eq!(after_crash(&dir, "a.db"), state(1));
}

/// Two files in one transaction, in all combinations of modes.
fn two_files(main: &str, aux: &str) -> (Scratch, Connection) {
    let dir = Scratch::new();
    for (name, mode) in [("a.db", main), ("b.db", aux)] {
        let c = open(&dir, name);
        run(&c, &format!("PRAGMA journal_mode = {mode}"));
        fill(&c);
    }
    let c = open(&dir, "a.db");
    run(&c, &format!("ATTACH '{}' AS b", dir.name("b.db")));
    // TRUNCATE and PERSIST belong to the connection, not to the file.
    run(&c, &format!("PRAGMA main.journal_mode = {main}; PRAGMA b.journal_mode = {aux}"));
    (dir, c)
}

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];

#[test]
fn a_commit_over_two_files_that_has_to_wait_has_done_nothing() {
    for main in MODES {
        for aux in MODES.into_iter().filter(|m| *m != "wal") {
            for sync in ["off", "normal", "full"] {
                let (dir, c) = two_files(main, aux);
                run(&c, &format!("PRAGMA main.synchronous = {sync}; PRAGMA b.synchronous = {sync}"));
                let reader = open(&dir, "b.db");
                let mut reading = reader.prepare("SELECT id FROM t").unwrap();
                reading.step().unwrap();
                run(&c, "BEGIN; UPDATE main.t SET v = 1; UPDATE b.t SET v = 1");
                assert_eq!(code(&c, "COMMIT"), Code::Busy);
                assert!(!c.is_autocommit());
                let what = format!("{main}, {aux}, {sync}");
                assert_eq!(after_crash(&dir, "a.db"), state(0), "{what}");
                if main == "wal" {
                    let other = open(&dir, "a.db");
                    assert_eq!(one(&other, "SELECT max(v) FROM t"), "0", "{what}");
                }
                run(&c, "ROLLBACK");
                for name in ["a.db", "b.db"] {
                    assert_eq!(after_crash(&dir, name), state(0), "{what}");
                }
                drop(reading);
                run(&c, "BEGIN; UPDATE main.t SET v = 2; UPDATE b.t SET v = 2; COMMIT");
                for name in ["a.db", "b.db"] {
                    assert_eq!(after_crash(&dir, name), state(2), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_commit_over_two_files_waits_for_its_second_attempt() {
    let (dir, c) = two_files("wal", "delete");
    let reader = open(&dir, "b.db");
    let mut reading = reader.prepare("SELECT id FROM t").unwrap();
    reading.step().unwrap();
    run(&c, "BEGIN; UPDATE main.t SET v = 1; UPDATE b.t SET v = 1");
    assert_eq!(code(&c, "COMMIT"), Code::Busy);
    drop(reading);
    run(&c, "UPDATE main.t SET v = 2; UPDATE b.t SET v = 2; COMMIT");
    for name in ["a.db", "b.db"] {
        assert_eq!(after_crash(&dir, name), state(2));
    }
}

#[test]
fn logs_whose_spilled_commit_the_hook_refuses_are_as_before() {
    let (dir, c) = two_files("wal", "wal");
    c.commit_hook(Some(Rc::new(|| true)));
    run(
        &c,
        "PRAGMA cache_size = 5; PRAGMA b.cache_size = 5; BEGIN; UPDATE main.t SET v = 1; UPDATE b.t SET v = 1",
    );
    assert_eq!(code(&c, "COMMIT"), Code::ConstraintCommithook);
    c.commit_hook(None);
    let other = open(&dir, "a.db");
    assert_eq!(one(&other, "SELECT max(v) FROM t"), "0");
    run(&other, "UPDATE t SET v = 3");
    for (name, v) in [("a.db", 3), ("b.db", 0)] {
        assert_eq!(after_crash(&dir, name), state(v));
    }
}

#[test]
fn going_back_to_the_first_savepoint_keeps_the_write_lock() {
    for mode in ["delete", "truncate", "wal"] {
        for spills in [false, true] {
            let dir = Scratch::new();
            let a = open(&dir, "a.db");
            run(&a, &format!("PRAGMA journal_mode = {mode}"));
            fill(&a);
            let b = open(&dir, "a.db");
            if spills {
                run(&a, "PRAGMA cache_size = 5");
            }
            run(&a, "SAVEPOINT s; UPDATE t SET v = 1; ROLLBACK TO s");
            assert_eq!(code(&b, "UPDATE t SET v = 2"), Code::Busy, "{mode}");
            assert_eq!(one(&a, "SELECT min(v), max(v) FROM t"), "0|0");
            assert_eq!(after_crash(&dir, "a.db"), state(0));
            run(&a, "UPDATE t SET v = 3; ROLLBACK TO s; UPDATE t SET v = 4; RELEASE s");
            assert_eq!(one(&b, "SELECT min(v), max(v) FROM t"), "4|4");
            run(&b, "UPDATE t SET v = 5");
            assert_eq!(after_crash(&dir, "a.db"), state(5));
        }
    }
    // The file's very first transaction, and a database in memory.
    let dir = Scratch::new();
    for name in [dir.name("new.db"), ":memory:".into()] {
        let c = Connection::open(&name).unwrap();
        run(
            &c,
            "SAVEPOINT s; CREATE TABLE t(a); ROLLBACK TO s; CREATE TABLE u(a); INSERT INTO u VALUES(7); RELEASE s",
        );
        assert_eq!(one(&c, "SELECT name, a FROM sqlite_schema, u"), "u|7");
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    }
}

#[test]
fn going_back_to_a_savepoint_asks_nothing_of_databases_that_are_not_read() {
    let (_dir, c) = two_files("delete", "delete");
    for change in
        ["PRAGMA b.journal_mode = wal", "PRAGMA b.locking_mode = exclusive", "PRAGMA b.journal_mode = delete"]
    {
        run(&c, change);
        run(
            &c,
            "PRAGMA b.locking_mode = normal; BEGIN; SAVEPOINT s; UPDATE main.t SET v = 1; ROLLBACK TO s; RELEASE s; COMMIT",
        );
        assert_eq!(one(&c, "SELECT max(v) FROM b.t"), "0");
    }
}

#[test]
fn begin_immediate_that_meets_a_taken_lock_lets_the_others_go() {
    let (dir, c) = two_files("delete", "wal");
    let other = open(&dir, "b.db");
    run(&other, "BEGIN IMMEDIATE");
    assert_eq!(code(&c, "BEGIN IMMEDIATE"), Code::Busy);
    assert!(c.is_autocommit());
    let a = open(&dir, "a.db");
    run(&a, "UPDATE t SET v = 1");
    run(&other, "ROLLBACK");
    run(&c, "BEGIN IMMEDIATE; UPDATE main.t SET v = 2; UPDATE b.t SET v = 2; COMMIT");
    assert_eq!(one(&a, "SELECT max(v) FROM t"), "2");
}

#[test]
fn closing_a_file_that_was_moved_leaves_what_has_its_name_now_alone() {
    let dir = Scratch::new();
    let old = open(&dir, "app.db");
    run(&old, "PRAGMA journal_mode = wal");
    fill(&old);
    fs::rename(dir.path("app.db"), dir.path("old.db")).unwrap();
    for suffix in ["-wal", "-shm"] {
        fs::rename(dir.name("app.db") + suffix, dir.name("old.db") + suffix).unwrap();
    }
    let new = open(&dir, "app.db");
    run(&new, "PRAGMA journal_mode = wal; CREATE TABLE t(v); INSERT INTO t VALUES('precious')");
    drop(old);
    let crashed = dir.killed_now();
    assert_eq!(crashed.stock("app.db", "SELECT v FROM t"), "precious");
    assert_eq!(dir.stock("old.db", "SELECT count(*) FROM t; PRAGMA integrity_check"), format!("{ROWS}\nok"));
}

#[test]
fn a_file_that_was_moved_is_not_written_with_a_journal_elsewhere() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    fill(&c);
    fs::rename(dir.path("a.db"), dir.path("b.db")).unwrap();
    assert_eq!(code(&c, "UPDATE t SET v = 1"), Code::ReadonlyDbmoved);
    assert_eq!(one(&c, "SELECT max(v) FROM t"), "0");
    // The journal of another database that has the name now is none of ours.
    let new = open(&dir, "a.db");
    fill(&new);
    run(&new, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 5");
    assert!(dir.path("a.db-journal").exists());
    assert_eq!(one(&c, "SELECT max(v) FROM t"), "0");
    run(&new, "COMMIT");
    drop((c, new));
    assert_eq!(after_crash(&dir, "a.db"), state(5));
    assert_eq!(after_crash(&dir, "b.db"), state(0));
}

#[test]
fn a_log_that_was_cut_is_an_error_and_no_pages_of_zeros() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    run(&c, "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0");
    fill(&c);
    run(&c, "PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET v = 1");
    let before = fs::read(dir.path("a.db")).unwrap();
    let log = fs::OpenOptions::new().write(true).open(dir.path("a.db-wal")).unwrap();
    log.set_len(log.metadata().unwrap().len() / 2).unwrap();
    let other = open(&dir, "a.db");
    let e = other.query("PRAGMA wal_checkpoint(TRUNCATE)", &[]).unwrap_err();
    assert_eq!(e.code(), Code::IoerrShortRead);
    let after = fs::read(dir.path("a.db")).unwrap();
    for (i, (page, was)) in after.chunks(4096).zip(before.chunks(4096)).enumerate() {
        assert!(page == was || page.iter().any(|&b| b != 0), "page {} is zeros", i + 1);
    }
    assert_eq!(code(&other, "SELECT sum(v) FROM t"), Code::IoerrShortRead);
}

#[test]
fn a_log_has_all_pages_that_the_file_lacks() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    run(&c, "PRAGMA cache_size = 100000; PRAGMA journal_mode = wal; CREATE TABLE t(x)");
    run(&c, "PRAGMA wal_checkpoint(TRUNCATE)");
    // Pages that are free when they are first committed, before one that is not.
    run(
        &c,
        "BEGIN; WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
         INSERT INTO t SELECT zeroblob(3000) FROM n; CREATE TABLE u(y); DELETE FROM t; INSERT INTO u VALUES(1); COMMIT",
    );
    let pages = one(&c, "PRAGMA page_count");
    let crashed = dir.killed_now();
    let told = crashed.stock("a.db", "PRAGMA wal_checkpoint; PRAGMA page_count; PRAGMA integrity_check");
    let (checkpoint, rest) = told.split_once('\n').unwrap();
    assert!(checkpoint.starts_with("0|"), "{told}");
    assert_eq!(rest, format!("{pages}\nok"));
    assert_eq!(fs::metadata(crashed.path("a.db")).unwrap().len(), pages.parse::<u64>().unwrap() * 4096);
}

#[test]
fn a_journal_that_lacks_the_end_of_its_first_sector_tells_of_nothing() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    fill(&c);
    run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 1");
    let journal = fs::read(dir.path("a.db-journal")).unwrap();
    run(&c, "COMMIT");
    drop(c);
    // It says that the file had one page.
    let mut header = journal[..511].to_vec();
    header[16..20].copy_from_slice(&[0, 0, 0, 1]);
    fs::write(dir.path("a.db-journal"), header).unwrap();
    assert_eq!(after_crash(&dir, "a.db"), state(1));
}

#[test]
fn a_file_that_was_cut_is_not_written_on() {
    for mode in ["delete", "truncate", "persist", "wal"] {
        for cut in [0, 100, 4096, 20_000] {
            let dir = Scratch::new();
            let c = open(&dir, "a.db");
            run(&c, &format!("PRAGMA journal_mode = {mode}"));
            fill(&c);
            run(&c, "PRAGMA wal_checkpoint(PASSIVE); SELECT sum(v) FROM t");
            let file = fs::OpenOptions::new().write(true).open(dir.path("a.db")).unwrap();
            file.set_len(cut).unwrap();
            let done = c.execute_batch("INSERT INTO t(v) VALUES(1)");
            // Of an empty file nothing says that it was another one before.
            let code = done.as_ref().map_err(|e| e.code());
            assert!(cut == 0 && mode != "wal" || code == Err(Code::Corrupt), "{mode} {cut}: {done:?}");
            drop(c);
            assert!(cut == 0 || fs::metadata(dir.path("a.db")).unwrap().len() == cut, "{mode} {cut}");
        }
    }
}

#[test]
fn links_beside_a_database_are_not_followed() {
    for (suffix, mode) in [("-journal", "delete"), ("-wal", "wal"), ("-shm", "wal")] {
        let dir = Scratch::new();
        fs::write(dir.path("victim"), "x".repeat(600)).unwrap();
        let c = open(&dir, "a.db");
        run(&c, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(a)"));
        drop(c);
        symlink(dir.path("victim"), dir.name("a.db") + suffix).unwrap();
        let c = open(&dir, "a.db");
        let e = c.execute_batch("PRAGMA cache_size = 1; INSERT INTO t VALUES(hex(zeroblob(2000000)))");
        assert_eq!(e.unwrap_err().code(), Code::Cantopen, "{suffix}");
        drop(c);
        assert_eq!(fs::read(dir.path("victim")).unwrap(), "x".repeat(600).as_bytes(), "{suffix}");
        // A link to nothing makes nothing.
        fs::remove_file(dir.path("victim")).unwrap();
        let c = open(&dir, "a.db");
        assert!(c.execute_batch("INSERT INTO t VALUES(1)").is_err(), "{suffix}");
        assert!(!dir.path("victim").exists(), "{suffix}");
    }
}

#[test]
fn a_link_to_a_database_has_its_journal_beside_the_database() {
    let dir = Scratch::new();
    fs::create_dir(dir.path("there")).unwrap();
    // Also while the database does not exist yet, and through two links.
    symlink("there/real.db", dir.path("link.db")).unwrap();
    symlink("link.db", dir.path("again.db")).unwrap();
    let c = open(&dir, "again.db");
    fill(&c);
    run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 1");
    assert!(dir.path("there/real.db-journal").exists());
    assert_eq!(dir.files(), ["again.db", "link.db", "there"]);
}

#[test]
fn what_root_leaves_belongs_to_the_databases_owner() {
    let dir = Scratch::new();
    if fs::metadata(dir.dir()).unwrap().uid() != 0 {
        println!("not run: only root can give files away");
        return;
    }
    let c = open(&dir, "a.db");
    fill(&c);
    drop(c);
    chown(dir.path("a.db"), Some(65534), Some(65534)).unwrap();
    let c = open(&dir, "a.db");
    run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 1");
    let owner = |name: &str| fs::metadata(dir.path(name)).unwrap().uid();
    assert_eq!(owner("a.db-journal"), 65534);
    run(&c, "COMMIT; PRAGMA journal_mode = wal; UPDATE t SET v = 2");
    assert_eq!((owner("a.db-wal"), owner("a.db-shm")), (65534, 65534));
}

#[test]
fn a_journal_cannot_name_a_file_to_be_deleted() {
    let dir = Scratch::new();
    fs::write(dir.path("precious.txt"), "precious").unwrap();
    let c = open(&dir, "a.db");
    fill(&c);
    run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 1");
    let crashed = dir.killed_now();
    for name in ["precious.txt", "precious-mjABCDEF9AB"] {
        let target = crashed.path(name);
        // Even where it reads like a list of journals.
        let content = match name.ends_with("txt") {
            true => format!("{}\0", crashed.path("a.db-journal").to_str().unwrap()),
            false => "precious".to_string(),
        };
        fs::write(&target, &content).unwrap();
        fs::copy(dir.path("a.db"), crashed.path("a.db")).unwrap();
        let mut journal = fs::read(dir.path("a.db-journal")).unwrap();
        let bytes = target.to_str().unwrap().as_bytes();
        let sum = bytes.iter().fold(0u32, |s, &b| s.wrapping_add(b as i8 as u32));
        journal.extend_from_slice(&(0x4000_0000u32 / 4096 + 1).to_be_bytes());
        journal.extend_from_slice(bytes);
        journal.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        journal.extend_from_slice(&sum.to_be_bytes());
        journal.extend_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
        fs::write(crashed.path("a.db-journal"), &journal).unwrap();
        let c = open(&crashed, "a.db");
        assert_eq!(one(&c, "SELECT min(v), max(v) FROM t"), "0|0");
        assert_eq!(fs::read_to_string(&target).unwrap(), content);
    }
}

#[test]
fn a_backup_begins_again_after_a_dead_neighbours_journal_was_played_back() {
    let dir = Scratch::new();
    let source = open(&dir, "a.db");
    fill(&source);
    let target = open(&dir, "copy.db");
    let mut backup = target.backup("main", &source, "main").unwrap();
    assert!(!backup.step(20).unwrap());
    let committed = Child::fork(|| {
        run(&open(&dir, "a.db"), "UPDATE t SET v = 1");
        true
    });
    assert!(committed.wait());
    // The next one dies with a hot journal. Whoever plays it back has nothing in memory that he could compare with the file.
    let ready = dir.path("ready");
    let dies = Child::fork(|| {
        let c = open(&dir, "a.db");
        run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 2");
        fs::write(&ready, "").unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
        true
    });
    while !ready.exists() {
        std::thread::yield_now();
    }
    dies.kill();
    assert!(fs::metadata(dir.path("a.db-journal")).unwrap().len() > 0);
    while !backup.step(20).unwrap() {}
    drop(backup);
    assert_eq!(one(&target, "SELECT min(v), max(v), count(*) FROM t"), format!("1|1|{ROWS}"));
    assert_eq!(one(&target, "PRAGMA integrity_check"), "ok");
}

#[test]
fn a_backup_into_an_open_file_counts_its_schemas_on() {
    let dir = Scratch::new();
    let a = open(&dir, "a.db");
    run(&a, "CREATE TABLE x(a); CREATE TABLE t(a); CREATE TABLE u(a); INSERT INTO u VALUES ('u')");
    let copy = open(&dir, "b.db");
    let mut out = copy.backup("main", &a, "main").unwrap();
    assert!(out.step(-1).unwrap());
    drop(out);
    run(&a, "DROP TABLE x");
    // The neighbour knows a schema of one count more than the copy, with other root pages.
    let b = open(&dir, "a.db");
    run(&b, "VACUUM");
    assert_eq!(one(&b, "SELECT a FROM u"), "u");
    let mut back = a.backup("main", &copy, "main").unwrap();
    assert!(back.step(-1).unwrap());
    drop(back);
    run(&b, "INSERT INTO u VALUES ('into u')");
    assert_eq!(one(&a, "SELECT count(*) FROM t"), "0");
    assert_eq!(one(&a, "SELECT count(*) FROM u"), "2");
    assert_eq!(one(&b, "PRAGMA integrity_check"), "ok");
}

#[test]
fn a_file_that_is_longer_than_its_header_says_ends_where_that_says() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    run(&c, "PRAGMA auto_vacuum = 1");
    fill(&c);
    drop(c);
    // Whoever is killed between a commit and the cut leaves such a file.
    let file = fs::OpenOptions::new().write(true).open(dir.path("a.db")).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(size + 40 * 4096).unwrap();
    // Stock's log counts the pages of the file.
    dir.stock("a.db", "PRAGMA journal_mode = wal");
    let c = open(&dir, "a.db");
    let pages = one(&c, "PRAGMA page_count");
    assert_eq!(pages, (size / 4096).to_string());
    let told = dir.stock("a.db", "UPDATE t SET v = 1 WHERE id = 1; PRAGMA page_count");
    assert_eq!(one(&c, "PRAGMA page_count"), told.trim_end());
    assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    run(&c, "UPDATE t SET v = 3");
    assert_eq!(after_crash(&dir, "a.db"), state(3));
    assert_eq!(one(&open(&dir, "a.db"), "PRAGMA integrity_check"), "ok");
}

#[test]
fn a_forked_child_keeps_no_lock_of_a_parent_that_died() {
    for mode in ["delete", "wal"] {
        let dir = Scratch::new();
        let c = open(&dir, "a.db");
        run(&c, &format!("PRAGMA journal_mode = {mode}"));
        fill(&c);
        drop(c);
        let (ready, orphan) = (dir.path("ready"), dir.path("orphan"));
        let parent = Child::fork(|| {
            let c = open(&dir, "a.db");
            run(&c, "PRAGMA cache_size = 5; BEGIN IMMEDIATE; UPDATE t SET v = 1");
            // A helper that never touches the database.
            let helper = Child::fork(|| {
                fs::write(&orphan, std::process::id().to_string()).unwrap();
                std::thread::sleep(std::time::Duration::from_secs(60));
                true
            });
            while fs::read_to_string(&orphan).map_or(true, |s| s.is_empty()) {
                std::thread::yield_now();
            }
            fs::write(&ready, "").unwrap();
            helper.wait()
        });
        while !ready.exists() {
            std::thread::yield_now();
        }
        let c = open(&dir, "a.db");
        assert_eq!(code(&c, "UPDATE t SET v = 2"), Code::Busy);
        parent.kill();
        run(&c, "UPDATE t SET v = 3");
        assert_eq!(one(&c, "SELECT min(v), max(v) FROM t"), "3|3");
        drop(c);
        assert_eq!(after_crash(&dir, "a.db"), state(3));
        let orphan: i32 = fs::read_to_string(&orphan).unwrap().parse().unwrap();
        std::process::Command::new("kill").arg("-9").arg(orphan.to_string()).status().unwrap();
    }
}

#[test]
fn a_forked_child_may_drop_what_it_has_inherited_and_open_its_own() {
    for mode in ["delete", "wal"] {
        for locking in ["normal", "exclusive"] {
            let dir = Scratch::new();
            let c = open(&dir, "a.db");
            run(&c, &format!("PRAGMA locking_mode = {locking}; PRAGMA journal_mode = {mode}"));
            fill(&c);
            run(&c, "PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 1");
            let idle = open(&dir, "b.db");
            run(&idle, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v); INSERT INTO t VALUES(1)"));
            let child = Child::fork(|| {
                // Neither finishing nor going on reaches the parent's files.
                let _ = c.execute_batch("UPDATE t SET v = 9");
                let _ = c.execute_batch("COMMIT");
                let _ = c.execute_batch("ROLLBACK");
                drop(c.clone().close());
                // A connection that did nothing when the process forked goes on, with locks of its own.
                run(&idle, "INSERT INTO t VALUES(2)");
                one(&idle, "SELECT sum(v) FROM t") == "3"
            });
            assert!(child.wait(), "{mode} {locking}");
            run(&idle, "INSERT INTO t VALUES(4)");
            assert_eq!(one(&idle, "SELECT sum(v) FROM t"), "7");
            assert_eq!(after_crash(&dir, "a.db"), state(0), "{mode} {locking}");
            run(&c, "COMMIT");
            assert_eq!(after_crash(&dir, "a.db"), state(1), "{mode} {locking}");
        }
    }
}

#[test]
fn what_a_forked_child_commits_is_seen_by_others() {
    let dir = Scratch::new();
    let (forked, go, done) = (dir.path("forked"), dir.path("go"), dir.path("done"));
    let c = open(&dir, "a.db");
    // Its changes leave the first page as it is.
    run(&c, "CREATE TABLE n(v); INSERT INTO n VALUES(0)");
    drop(c);
    let wait_for = |path: &std::path::Path| {
        while !path.exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    // It counts its changes once while it is alone.
    let parent = Child::fork(|| {
        let c = open(&dir, "a.db");
        run(&c, "PRAGMA locking_mode = exclusive; UPDATE n SET v = 1; UPDATE n SET v = 2");
        std::mem::forget(Child::fork(|| {
            wait_for(&go);
            run(&c, "UPDATE n SET v = 3; PRAGMA locking_mode = normal; SELECT v FROM n");
            fs::write(&done, "").is_ok()
        }));
        fs::write(&forked, "").unwrap();
        // The lock ends with this process.
        true
    });
    assert!(parent.wait() && forked.exists());
    let c = open(&dir, "a.db");
    assert_eq!(one(&c, "SELECT v FROM n"), "2");
    fs::write(&go, "").unwrap();
    wait_for(&done);
    assert_eq!(one(&c, "SELECT v FROM n"), "3");
}

#[test]
fn a_forked_child_shares_neither_temporary_tables_nor_chance_with_its_parent() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    run(
        &c,
        "PRAGMA temp_store = file; PRAGMA temp.cache_size = 5; CREATE TABLE m(x); CREATE TEMP TABLE small(x)",
    );
    let bytes = || one(&c, "SELECT hex(randomblob(8))");
    bytes();
    let child = Child::fork(|| {
        // Nothing of it is in a file.
        run(&c, "INSERT INTO small VALUES(1)");
        fs::write(dir.path("drawn"), bytes()).is_ok() && one(&c, "SELECT count(*) FROM small") == "1"
    });
    assert!(child.wait());
    assert_ne!(fs::read_to_string(dir.path("drawn")).unwrap(), bytes());
    run(
        &c,
        &format!(
            "CREATE TEMP TABLE t AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             SELECT i AS id, 0 AS v, hex(zeroblob(100)) AS x FROM n"
        ),
    );
    let child = Child::fork(|| {
        assert_eq!(code(&c, "UPDATE t SET v = 1, x = ''"), Code::IoerrLock);
        assert_eq!(code(&c, "SELECT sum(v) FROM t"), Code::IoerrLock);
        run(&c, "INSERT INTO m VALUES(1)");
        one(&c, "SELECT count(*) FROM m") == "1"
    });
    assert!(child.wait());
    assert_eq!(one(&c, "SELECT sum(v), sum(length(x)) FROM t"), format!("0|{}", 200 * ROWS));
    run(&c, "UPDATE t SET v = 2");
    assert_eq!(one(&c, "PRAGMA temp.integrity_check"), "ok");
}

/// A connection to `a.db` that shares its cache with the others.
fn sharing(dir: &Scratch, caches: &Caches) -> Connection {
    let name = format!("file:{}?cache=shared", dir.name("a.db"));
    let flags = OpenFlags { uri: true, ..OpenFlags::default() };
    Connection::open_interruptible(name.as_bytes(), flags, Default::default(), Some(caches)).unwrap()
}

#[test]
fn a_forked_child_has_caches_of_its_own() {
    for mode in ["delete", "wal"] {
        let dir = Scratch::new();
        let caches = Caches::default();
        let shared = || sharing(&dir, &caches);
        let c = shared();
        run(&c, &format!("PRAGMA journal_mode = {mode}"));
        fill(&c);
        let idle = shared();
        run(&c, "BEGIN; UPDATE t SET v = 1");
        let child = Child::fork(|| {
            // The cache is in the midst of its parent's transaction.
            assert_eq!(code(&idle, "PRAGMA user_version"), Code::IoerrLock);
            assert_eq!(code(&c, "SELECT sum(v) FROM t"), Code::IoerrLock);
            let own = shared();
            assert_eq!(one(&own, "SELECT min(v), max(v), count(*) FROM t"), format!("0|0|{ROWS}"));
            one(&own, "PRAGMA integrity_check") == "ok"
        });
        assert!(child.wait(), "{mode}");
        run(&c, "COMMIT");
        assert_eq!(after_crash(&dir, "a.db"), state(1), "{mode}");
    }
}

#[test]
fn an_image_shows_nothing_that_another_connection_has_not_committed() {
    let dir = Scratch::new();
    let caches = Caches::default();
    let shared = || sharing(&dir, &caches);
    let (c, other) = (shared(), shared());
    run(&c, "CREATE TABLE t(x)");
    let before = other.serialize("main").unwrap();
    run(&c, "BEGIN; INSERT INTO t VALUES(1)");
    assert_eq!(other.serialize("main").unwrap_err().code(), Code::LockedSharedcache);
    assert_ne!(c.serialize("main").unwrap(), before);
    run(&c, "ROLLBACK");
    assert_eq!(other.serialize("main").unwrap(), before);
}

#[test]
fn a_mode_of_vacuuming_is_not_written_into_a_file_that_another_has_made_one_without() {
    let dir = Scratch::new();
    let c = open(&dir, "a.db");
    run(&c, "PRAGMA auto_vacuum = full; CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    let other = open(&dir, "a.db");
    run(&other, "BEGIN IMMEDIATE");
    c.busy_handler(Some(Rc::new(move |_| {
        run(&other, "COMMIT; PRAGMA auto_vacuum = none; VACUUM");
        true
    })))
    .unwrap();
    run(&c, "PRAGMA auto_vacuum = incremental");
    assert_eq!(one(&c, "PRAGMA auto_vacuum"), "0");
    drop(c);
    assert_eq!(dir.stock("a.db", "PRAGMA auto_vacuum; PRAGMA integrity_check").trim(), "0\nok");
}

#[test]
fn a_copy_that_reserves_other_bytes_is_gone_on_with_or_taken_back() {
    for (name, mode) in [("a.db", "delete"), ("a.db", "wal"), (":memory:", "memory")] {
        let dir = Scratch::new();
        let to = if name == ":memory:" { Connection::open_in_memory().unwrap() } else { open(&dir, name) };
        let from = Connection::open_in_memory().unwrap();
        from.reserve_at_vacuum("main", Some(24)).unwrap();
        run(&from, "PRAGMA page_size = 1024");
        run(&to, &format!("PRAGMA page_size = 1024; PRAGMA journal_mode = {mode}"));
        for c in [&from, &to] {
            fill(c);
        }
        run(&from, "UPDATE t SET v = 1");
        let look = |v: i64| {
            let seen = one(&to, "SELECT min(v), max(v), count(*) FROM t")
                + " "
                + &one(&to, "PRAGMA integrity_check");
            assert_eq!(seen, state(v), "{mode}");
        };
        let mut begun = to.backup("main", &from, "main").unwrap();
        begun.step(5).unwrap();
        drop(begun);
        look(0);
        to.backup("main", &from, "main").unwrap().step(-1).unwrap();
        look(1);
        run(&to, "UPDATE t SET v = 2");
        look(2);
        to.reserve_at_vacuum("main", Some(40)).unwrap();
        if mode == "delete" {
            let reader = open(&dir, name);
            run(&reader, "BEGIN; SELECT * FROM t");
            assert_eq!(code(&to, "VACUUM"), Code::Busy);
            run(&reader, "COMMIT");
            look(2);
        }
        run(&to, "VACUUM; UPDATE t SET v = 3");
        look(3);
    }
}

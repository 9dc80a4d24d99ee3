//! Connections to one file that change their locking and journal modes in any order: each sees what was committed, however it was.

use crate::attached::Folder;
use crate::draw::Draw;
use iolite::engine::{Connection, Result};

const STATEMENTS: &[&str] = &[
    "INSERT INTO t VALUES(1)",
    "INSERT INTO t VALUES(zeroblob(9000))",
    "BEGIN; INSERT INTO t VALUES(3); COMMIT",
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM t",
    "BEGIN; SELECT count(*) FROM t; ROLLBACK",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA locking_mode = exclusive; SELECT count(*) FROM t",
    "PRAGMA locking_mode = normal",
    "PRAGMA journal_mode = delete",
    "PRAGMA journal_mode = persist",
    "PRAGMA journal_mode = truncate",
    "PRAGMA journal_mode = memory",
    "PRAGMA journal_mode = off",
    "PRAGMA journal_mode = wal",
    "VACUUM",
];

fn count(c: &Connection) -> Result<i64> {
    Ok(c.query("SELECT count(*) FROM t", &[])?[0][0].to_int())
}

#[test]
fn what_one_commits_others_see_in_any_mode() {
    let dir = Folder::new("locking-modes");
    for round in 0..150 {
        let mut draw = Draw(round);
        let file = dir.file(&format!("{round}.db"));
        let open = || {
            let c = Connection::open(&file).unwrap();
            c.execute_batch("PRAGMA synchronous = off").unwrap();
            c
        };
        let mut all = [open(), open(), open()];
        all[0].execute_batch("CREATE TABLE t(x)").unwrap();
        let (mut rows, mut story) = (0, Vec::new());
        for _ in 0..40 {
            let n = draw.below(3) as usize;
            let Some(sql) = STATEMENTS.get(draw.below(STATEMENTS.len() as u64 + 1) as usize) else {
                all[n] = open();
                story.push(format!("{n}: opened anew"));
                continue;
            };
            let done = all[n].execute_batch(sql);
            story.push(format!("{n}: {sql} {:?}", done.as_ref().err()));
            if done.is_err() {
                // Within a transaction there is more to be taken back.
                let _ = all[n].execute_batch("ROLLBACK");
            } else if sql.contains("INSERT") {
                rows += 1;
            } else if sql.contains("count")
                && let Ok(seen) = count(&all[n])
            {
                assert_eq!(seen, rows, "{}", story.join("\n"));
            }
        }
        drop(all);
        let c = open();
        assert_eq!(count(&c).unwrap(), rows, "{}", story.join("\n"));
        assert_eq!(c.query("PRAGMA integrity_check", &[]).unwrap()[0][0].to_string_lossy(), "ok");
    }
}

/// The journal of a process that was killed is found under exclusive locking, too, when it could not be played back at once.
#[test]
fn a_hot_journal_is_not_passed_over_at_the_second_attempt() {
    let dir = Folder::new("hot-journal-exclusive");
    let (file, other) = (dir.file("a.db"), dir.file("b.db"));
    let own = Connection::open(&file).unwrap();
    own.execute_batch(
        "CREATE TABLE t(x, y); WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 500)
         INSERT INTO t SELECT i, zeroblob(500) FROM i",
    )
    .unwrap();
    let sum = |c: &Connection| c.query("SELECT sum(x) FROM t", &[]).map(|r| r[0][0].to_int());
    let before = sum(&own).unwrap();
    std::fs::copy(&file, &other).unwrap();
    let killed = Connection::open(&other).unwrap();
    killed.execute_batch("PRAGMA cache_size = 5; BEGIN; UPDATE t SET x = x + 1000").unwrap();
    own.execute_batch("PRAGMA locking_mode = exclusive").unwrap();
    let reader = Connection::open(&file).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    sum(&reader).unwrap();
    // What the killed one has left, in the same file.
    let left = std::fs::read(&other).unwrap();
    assert_ne!(left, std::fs::read(&file).unwrap());
    std::io::Write::write_all(&mut std::fs::OpenOptions::new().write(true).open(&file).unwrap(), &left)
        .unwrap();
    std::fs::copy(dir.file("b.db-journal"), dir.file("a.db-journal")).unwrap();
    for _ in 0..3 {
        assert_eq!(sum(&own).unwrap_err().message(), "database is locked");
    }
    drop(reader);
    assert_eq!(sum(&own).unwrap(), before);
    let told = own.query("PRAGMA integrity_check", &[]).unwrap();
    assert_eq!(told[0][0].to_string_lossy(), "ok");
}

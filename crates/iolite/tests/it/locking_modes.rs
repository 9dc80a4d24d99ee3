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

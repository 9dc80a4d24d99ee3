//! The write queue: every job has its own answer, and a batch is one commit.

use iolite::{Code, Connection, Database, Durability, Error, JobOptions, Writer, WriterOptions};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn database(name: &str, sql: &str) -> (Folder, Database) {
    let dir = std::env::temp_dir().join(format!("iolite-writer-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let db = Database::open(dir.join("w.db").to_str().unwrap()).unwrap();
    db.connect().unwrap().execute_batch(&format!("PRAGMA journal_mode = WAL; {sql}")).unwrap();
    (Folder(dir), db)
}

fn insert(n: i64) -> impl FnMut(&Connection) -> iolite::Result<i64> + Send + 'static {
    move |c| {
        c.execute("INSERT INTO t VALUES (?1)", [n])?;
        Ok(c.last_insert_rowid())
    }
}

fn ints(db: &Database, sql: &str) -> Vec<i64> {
    let c = db.connect().unwrap();
    let mut s = c.prepare(sql).unwrap();
    s.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Keeps the queue busy until the result is sent something or dropped: what is handed in meanwhile is one batch.
fn hold(w: &Writer) -> std::sync::mpsc::Sender<()> {
    let (go, wait) = channel::<()>();
    let (began, running) = channel();
    let ticket = w.submit(JobOptions::default(), move |_| {
        began.send(()).map_err(|_| Error::from(Code::Internal))?;
        // Either way it goes on.
        let _ = wait.recv();
        Ok(())
    });
    drop(ticket.unwrap());
    running.recv().unwrap();
    go
}

#[test]
fn every_job_has_its_own_answer() {
    let (_dir, db) = database("answers", "CREATE TABLE t(a UNIQUE)");
    let w = db.writer().unwrap();
    let go = hold(&w);
    let tickets: Vec<_> =
        [1, 2, 1, 3].map(|n| w.submit(JobOptions::default(), insert(n)).unwrap()).into_iter().collect();
    drop(go);
    let answers: Vec<_> =
        tickets.into_iter().map(|t| t.wait().map_err(|e| e.message().to_string())).collect();
    assert_eq!(answers, [Ok(1), Ok(2), Err("UNIQUE constraint failed: t.a".into()), Ok(3)]);
    assert_eq!(ints(&db, "SELECT a FROM t ORDER BY a"), [1, 2, 3]);
}

#[test]
fn what_a_failing_job_did_before_is_taken_back() {
    let (_dir, db) = database("back", "CREATE TABLE t(a UNIQUE)");
    let w = db.writer().unwrap();
    let failed = w.run(|c| {
        c.execute_batch("INSERT INTO t VALUES (1); SAVEPOINT own; INSERT INTO t VALUES (2)")?;
        Err::<(), _>(Error::new(Code::Error, "changed my mind"))
    });
    assert_eq!(failed.unwrap_err().message(), "changed my mind");
    assert_eq!(ints(&db, "SELECT count(*) FROM t"), [0]);
    // An open savepoint of a job that succeeds is part of what it did.
    w.run(|c| c.execute_batch("SAVEPOINT own; INSERT INTO t VALUES (3)")).unwrap();
    assert_eq!(ints(&db, "SELECT a FROM t"), [3]);
}

#[test]
fn jobs_of_many_threads_add_up() {
    let (_dir, db) = database("threads", "CREATE TABLE t(a); INSERT INTO t VALUES (0)");
    let w = db.writer().unwrap();
    std::thread::scope(|s| {
        for _ in 0..8 {
            let w = w.clone();
            s.spawn(move || {
                for _ in 0..50 {
                    w.run(|c| c.execute("UPDATE t SET a = a + 1", [])).unwrap();
                }
            });
        }
    });
    assert_eq!(ints(&db, "SELECT a FROM t"), [400]);
}

#[test]
fn a_job_that_rolls_everything_back_harms_no_other() {
    let (_dir, db) = database("rollback", "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (7)");
    let w = db.writer().unwrap();
    let go = hold(&w);
    let before = w.submit(JobOptions::default(), insert(1)).unwrap();
    let bad =
        w.submit(JobOptions::default(), |c| c.execute("INSERT OR ROLLBACK INTO t VALUES (7)", [])).unwrap();
    let commits = w.submit(JobOptions::default(), |c| c.execute_batch("COMMIT")).unwrap();
    let releases = w.submit(JobOptions::default(), |c| c.execute_batch("RELEASE iolite_job")).unwrap();
    let after = w.submit(JobOptions::default(), insert(2)).unwrap();
    drop(go);
    assert!(before.wait().is_ok());
    assert_eq!(bad.wait().unwrap_err().code(), Code::ConstraintUnique);
    assert_eq!(commits.wait().unwrap_err().message(), "cannot commit - the write queue does");
    assert_eq!(releases.wait().unwrap_err().code(), Code::Misuse);
    assert!(after.wait().is_ok());
    assert_eq!(ints(&db, "SELECT a FROM t ORDER BY a"), [1, 2, 7]);
}

#[test]
fn a_commit_that_fails_is_everybodys_answer() {
    let (_dir, db) = database("commit", "CREATE TABLE t(a)");
    let w = db.writer().unwrap();
    let go = hold(&w);
    let one = w.submit(JobOptions::default(), insert(1)).unwrap();
    let two = w
        .submit(JobOptions::default(), |c| {
            c.commit_hook(Some(|| true));
            Ok(())
        })
        .unwrap();
    drop(go);
    assert_eq!(one.wait().unwrap_err().code(), Code::ConstraintCommithook);
    assert_eq!(two.wait().unwrap_err().code(), Code::ConstraintCommithook);
    assert_eq!(ints(&db, "SELECT count(*) FROM t"), [0]);
}

#[test]
fn a_job_past_its_deadline_does_not_run() {
    let (_dir, db) = database("deadline", "CREATE TABLE t(a)");
    let w = db.writer().unwrap();
    let go = hold(&w);
    let soon = JobOptions { deadline: Some(Instant::now()), ..JobOptions::default() };
    let late = w.submit(soon, insert(1)).unwrap();
    let far = JobOptions { deadline: Some(Instant::now() + Duration::from_secs(600)), ..soon };
    let timely = w.submit(far, insert(2)).unwrap();
    drop(go);
    let e = late.wait().unwrap_err();
    assert_eq!((e.code(), e.message()), (Code::Busy, "the job's deadline has passed"));
    assert!(timely.wait().is_ok());
    assert_eq!(ints(&db, "SELECT a FROM t"), [2]);
}

#[test]
fn a_full_queue_makes_callers_wait() {
    let (_dir, db) = database("full", "CREATE TABLE t(a)");
    let w = db.writer_with(WriterOptions { capacity: 2, ..WriterOptions::default() }).unwrap();
    let go = hold(&w);
    let tickets = [1, 2].map(|n| w.try_submit(JobOptions::default(), insert(n)).unwrap());
    assert_eq!(w.try_submit(JobOptions::default(), insert(3)).err().unwrap().code(), Code::Busy);
    let now = JobOptions { deadline: Some(Instant::now()), ..JobOptions::default() };
    assert_eq!(w.submit(now, insert(4)).err().unwrap().message(), "the write queue is full");
    std::thread::scope(|s| {
        let waits = s.spawn(|| w.run(insert(5)));
        drop(go);
        assert!(waits.join().unwrap().is_ok());
    });
    tickets.into_iter().for_each(|t| assert!(t.wait().is_ok()));
    assert_eq!(ints(&db, "SELECT a FROM t ORDER BY a"), [1, 2, 5]);
}

#[test]
fn the_strictest_wish_of_a_batch_is_the_batchs() {
    let (_dir, db) = database("sync", "CREATE TABLE t(a)");
    let w = db.writer().unwrap();
    let level = |c: &Connection| c.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
    let normal = JobOptions { durability: Durability::Normal, ..JobOptions::default() };
    assert_eq!(w.submit(normal, level).unwrap().wait().unwrap(), 1);
    let go = hold(&w);
    let (a, b) = (w.submit(normal, level).unwrap(), w.submit(JobOptions::default(), level).unwrap());
    drop(go);
    assert_eq!((a.wait().unwrap(), b.wait().unwrap()), (2, 2));
}

#[test]
fn a_panic_is_the_jobs_answer() {
    let (_dir, db) = database("panic", "CREATE TABLE t(a)");
    let w = db.writer().unwrap();
    let bad = w.run(|c| -> iolite::Result<()> {
        c.execute("INSERT INTO t VALUES (1)", [])?;
        panic!("in a job");
    });
    assert_eq!(bad.unwrap_err().message(), "the job panicked");
    w.run(insert(2)).unwrap();
    assert_eq!(ints(&db, "SELECT a FROM t"), [2]);
}

#[test]
fn dropping_the_last_writer_waits_for_what_is_queued() {
    let (_dir, db) = database("drop", "CREATE TABLE t(a)");
    let w = db.writer().unwrap();
    let go = hold(&w);
    let tickets: Vec<_> = (0..20).map(|n| w.submit(JobOptions::default(), insert(n)).unwrap()).collect();
    drop(go);
    drop(w);
    assert!(tickets.iter().all(|t| t.is_ready()));
    assert_eq!(ints(&db, "SELECT count(*) FROM t"), [20]);
    // The next one starts a queue of its own.
    db.writer().unwrap().run(insert(99)).unwrap();
}

#[test]
fn a_forked_child_does_not_wait_for_its_parents_queue() {
    let (_dir, db) = database("forked", "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    let writer = db.writer().unwrap();
    let ticket = writer.submit(JobOptions::default(), |c| c.execute("INSERT INTO t VALUES(2)", [])).unwrap();
    let mut both = Some((writer, ticket));
    let child = iolite_testkit::Child::fork(|| {
        let (writer, ticket) = both.take().unwrap();
        assert_eq!(writer.run(|_| Ok(())).unwrap_err().code(), Code::Misuse);
        assert_eq!(ticket.wait().unwrap_err().code(), Code::Misuse);
        drop((writer.clone(), writer));
        let own = db.writer().unwrap();
        own.run(|c| c.execute("INSERT INTO t VALUES(3)", [])).is_ok()
    });
    assert!(child.wait());
    let (writer, ticket) = both.unwrap();
    ticket.wait().unwrap();
    writer.run(|c| c.execute("INSERT INTO t VALUES(4)", [])).unwrap();
    let sum: i64 = db.connect().unwrap().query_row("SELECT sum(a) FROM t", [], |r| r.get(0)).unwrap();
    assert_eq!(sum, 10);
}

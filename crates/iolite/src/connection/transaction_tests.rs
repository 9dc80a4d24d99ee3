//! Participants, listeners and the counter of deferred foreign keys, which have no user of their own yet.

use super::Connection;
use iolite_base::{Code, Error, Result};
use iolite_ext::{ChangeListener, Context, Function, FunctionFlags, Implementation, Participant, Scalar};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Writes down what it hears.
#[derive(Default)]
struct Log {
    lines: RefCell<Vec<String>>,
    refuses: Cell<bool>,
}

impl Log {
    fn note(&self, line: impl Into<String>) -> Result<()> {
        self.lines.borrow_mut().push(line.into());
        Ok(())
    }

    fn heard(&self) -> String {
        self.lines.take().join(", ")
    }
}

impl Participant for Log {
    fn begin(&self) -> Result<()> {
        self.note("begin")
    }

    fn sync(&self) -> Result<()> {
        self.note("sync")?;
        if self.refuses.get() { Err(Error::sql("it does not fit")) } else { Ok(()) }
    }

    fn commit(&self) {
        let _ = self.note("commit");
    }

    fn rollback(&self) {
        let _ = self.note("rollback");
    }

    fn savepoint(&self, n: i32) -> Result<()> {
        self.note(format!("savepoint {n}"))
    }

    fn release(&self, n: i32) -> Result<()> {
        self.note(format!("release {n}"))
    }

    fn rollback_to(&self, n: i32) -> Result<()> {
        self.note(format!("rollback to {n}"))
    }
}

impl ChangeListener for Log {
    fn row_changed(&self, change: iolite_ext::RowChange, database: &str, table: &str, rowid: i64) {
        let _ = self.note(format!("{change:?} {database}.{table} {rowid}"));
    }

    fn committed(&self) {
        let _ = self.note("committed");
    }

    fn rolled_back(&self) {
        let _ = self.note("rolled back");
    }
}

fn run(c: &Connection, sql: &str) {
    c.execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

fn count(c: &Connection) -> i64 {
    c.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int()
}

/// A connection, a participant, and the function `joined()`, by which a statement takes it in.
fn with_log() -> (Connection, Rc<Log>) {
    struct Join(std::rc::Weak<super::Inner>, Rc<dyn Participant>);
    impl Scalar for Join {
        fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
            let inner = self.0.upgrade().ok_or(Code::Misuse)?;
            Connection(inner).join_transaction(&self.1)?;
            Ok(Value::Int(1))
        }
    }
    let c = Connection::open_in_memory().unwrap();
    run(&c, "CREATE TABLE t(a UNIQUE)");
    let log = Rc::new(Log::default());
    function(&c, "joined", 0, Rc::new(Join(Rc::downgrade(&c.0), log.clone())));
    (c, log)
}

/// A connection with the function `violate(n)`, which counts violations.
fn with_counter() -> Connection {
    struct Violate(std::rc::Weak<super::Inner>);
    impl Scalar for Violate {
        fn call(&self, _: &mut Context<'_>, args: &[Value]) -> Result<Value> {
            let inner = self.0.upgrade().ok_or(Code::Misuse)?;
            Connection(inner).count_deferred_violations(args[0].to_int());
            Ok(args[0].clone())
        }
    }
    let c = Connection::open_in_memory().unwrap();
    run(&c, "CREATE TABLE t(a UNIQUE)");
    function(&c, "violate", 1, Rc::new(Violate(Rc::downgrade(&c.0))));
    c
}

fn function(c: &Connection, name: &str, args: i16, code: Rc<dyn Scalar>) {
    let flags = FunctionFlags::default();
    c.create_function(Function { name: name.into(), args, flags, imp: Implementation::User(code) });
}

fn refused(c: &Connection, sql: &str) {
    let e = c.execute_batch(sql).expect_err(sql);
    assert_eq!((e.code(), e.message()), (Code::ConstraintForeignkey, "FOREIGN KEY constraint failed"));
}

#[test]
fn a_participant_follows_the_transaction() {
    let (c, log) = with_log();
    run(&c, "BEGIN; SAVEPOINT early; INSERT INTO t VALUES(joined())");
    assert_eq!(log.heard(), "begin, savepoint 0");
    run(&c, "SAVEPOINT s; SELECT joined(); ROLLBACK TO s; RELEASE s; RELEASE early");
    assert_eq!(log.heard(), "savepoint 1, rollback to 1, release 1, release 0");
    run(&c, "COMMIT");
    assert_eq!(log.heard(), "sync, commit");
    run(&c, "BEGIN; INSERT INTO t VALUES(joined() + 1); ROLLBACK");
    assert_eq!(log.heard(), "begin, rollback");
}

#[test]
fn a_statement_alone_is_a_transaction_of_participants_too() {
    let (c, log) = with_log();
    run(&c, "INSERT INTO t VALUES(joined())");
    assert_eq!(log.heard(), "begin, sync, commit");
    c.execute_batch("INSERT INTO t VALUES(joined())").unwrap_err();
    assert_eq!(log.heard(), "begin, rollback");
    c.execute_batch("SELECT joined()").unwrap_err();
    assert_eq!(log.heard(), "");
}

#[test]
fn a_statement_that_fails_is_undone_in_participants() {
    let (c, log) = with_log();
    run(&c, "INSERT INTO t VALUES(5); BEGIN; INSERT INTO t VALUES(joined())");
    log.heard();
    c.execute_batch("INSERT INTO t SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5").unwrap_err();
    assert_eq!(log.heard(), "savepoint 0, rollback to 0, release 0");
    run(&c, "INSERT INTO t SELECT 3 UNION ALL SELECT 4");
    assert_eq!(log.heard(), "savepoint 0, release 0");
    run(&c, "COMMIT");
    assert_eq!((count(&c), log.heard().as_str()), (4, "sync, commit"));
}

#[test]
fn a_participant_that_refuses_takes_the_commit_back() {
    let (c, log) = with_log();
    log.refuses.set(true);
    run(&c, "BEGIN; INSERT INTO t VALUES(joined())");
    assert_eq!(c.execute_batch("COMMIT").unwrap_err().message(), "it does not fit");
    assert_eq!(log.heard(), "begin, sync, rollback");
    assert!(c.is_autocommit());
    assert_eq!(count(&c), 0);
}

#[test]
fn a_violated_foreign_key_keeps_the_transaction_open() {
    let c = with_counter();
    run(&c, "BEGIN; INSERT INTO t VALUES(violate(1))");
    refused(&c, "COMMIT");
    assert!(!c.is_autocommit());
    run(&c, "INSERT INTO t VALUES(violate(-1)); COMMIT");
    assert_eq!(count(&c), 2);
    run(&c, "SAVEPOINT first; INSERT INTO t VALUES(violate(2))");
    refused(&c, "RELEASE first");
    run(&c, "ROLLBACK TO first; RELEASE first");
    assert_eq!((c.is_autocommit(), count(&c)), (true, 2));
}

#[test]
fn a_statement_alone_that_leaves_a_violation_is_undone() {
    let c = with_counter();
    refused(&c, "INSERT INTO t VALUES(violate(1))");
    assert_eq!((c.is_autocommit(), count(&c)), (true, 0));
    run(&c, "INSERT INTO t VALUES(violate(-1)), (violate(1))");
    assert_eq!(count(&c), 2);
}

#[test]
fn the_counter_goes_back_with_savepoints_and_failed_statements() {
    let c = with_counter();
    run(&c, "BEGIN; SAVEPOINT s; INSERT INTO t VALUES(violate(3)); ROLLBACK TO s");
    c.execute_batch("INSERT INTO t SELECT violate(7) UNION ALL SELECT 8 UNION ALL SELECT 7").unwrap_err();
    run(&c, "COMMIT; BEGIN; INSERT INTO t VALUES(violate(9))");
    refused(&c, "COMMIT");
    run(&c, "ROLLBACK; BEGIN; INSERT INTO t VALUES(1); COMMIT");
    assert_eq!(count(&c), 1);
}

#[test]
fn a_query_that_fails_takes_no_violation_of_others_back() {
    let c = with_counter();
    run(&c, "BEGIN");
    let mut fails = c.prepare("SELECT 1 UNION ALL SELECT abs(-9223372036854775808)").unwrap();
    fails.step().unwrap();
    run(&c, "INSERT INTO t VALUES(violate(3))");
    assert_eq!(fails.step().unwrap_err().message(), "integer overflow");
    refused(&c, "COMMIT");
}

#[test]
fn a_statement_whose_transaction_is_taken_back_under_it_leaves_no_violation() {
    struct Back(std::rc::Weak<super::Inner>);
    impl Scalar for Back {
        fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
            let inner = self.0.upgrade().ok_or(Code::Misuse)?;
            Connection(inner).execute_batch("ROLLBACK TO s")?;
            Ok(Value::Int(1))
        }
    }
    let c = with_counter();
    function(&c, "back", 0, Rc::new(Back(Rc::downgrade(&c.0))));
    run(&c, "BEGIN; SAVEPOINT s; INSERT INTO t VALUES(violate(2))");
    let e = c.execute_batch("INSERT INTO t SELECT 5 UNION ALL SELECT 6 + back()").unwrap_err();
    assert_eq!(e.code(), Code::AbortRollback);
    run(&c, "COMMIT");
    assert_eq!(count(&c), 0);
}

#[test]
fn marks_above_a_savepoint_go_with_it() {
    let (c, log) = with_log();
    struct Back(std::rc::Weak<super::Inner>);
    impl Scalar for Back {
        fn call(&self, _: &mut Context<'_>, _: &[Value]) -> Result<Value> {
            let inner = self.0.upgrade().ok_or(Code::Misuse)?;
            // The statement in the midst is over; another one gets the mark that it had.
            Connection(inner).execute_batch("ROLLBACK TO s; INSERT INTO t SELECT 10 UNION ALL SELECT 11")?;
            Ok(Value::Int(1))
        }
    }
    function(&c, "back", 0, Rc::new(Back(Rc::downgrade(&c.0))));
    run(&c, "BEGIN; SAVEPOINT s; INSERT INTO t VALUES(joined())");
    assert_eq!(log.heard(), "begin, savepoint 0");
    c.execute_batch("INSERT INTO t SELECT 5 UNION ALL SELECT 6 + back()").unwrap_err();
    assert_eq!(log.heard(), "savepoint 1, rollback to 0, savepoint 1, release 1");
    run(&c, "COMMIT");
    assert_eq!((count(&c), log.heard().as_str()), (2, "sync, commit"));
    assert_eq!(c.query("PRAGMA integrity_check", &[]).unwrap()[0][0].to_string_lossy(), "ok");
}

#[test]
fn listeners_hear_of_transactions_that_changed_something() {
    let (c, log) = with_log();
    c.add_change_listener(log.clone());
    run(&c, "BEGIN; SELECT count(*) FROM t; COMMIT");
    assert_eq!(log.heard(), "");
    run(&c, "INSERT INTO t VALUES(1)");
    assert_eq!(log.heard(), "Insert main.t 1, committed");
    run(&c, "BEGIN; UPDATE t SET a = 2; DELETE FROM t WHERE a = 2; ROLLBACK");
    assert_eq!(log.heard(), "Update main.t 1, Delete main.t 1, rolled back");
}

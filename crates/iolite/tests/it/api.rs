//! The Rust API where its examples do not reach: moving between threads, ends of transactions, conversions, errors.

use iolite::{
    Code, Connection, DropBehavior, Error, FunctionFlags, OptionalExtension, Result, Transaction, Value,
    ValueRef, named_params, params,
};
use iolite_testkit::Scratch;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

fn memory(sql: &str) -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(sql).unwrap();
    db
}

fn int(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

#[test]
fn a_connection_is_send_and_what_it_hands_out_too() {
    fn send<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    send::<Connection>();
    shared::<Value>();
    shared::<Error>();
    shared::<iolite::InterruptHandle>();
    shared::<iolite::Database>();
    shared::<iolite::Writer>();
}

#[test]
fn a_connection_goes_from_thread_to_thread_with_all_that_it_has() {
    let mut db = memory("CREATE TABLE t(a TEXT UNIQUE, b); BEGIN");
    db.create_scalar_function("twice", 1, FunctionFlags::DETERMINISTIC, |ctx| {
        Ok(ctx.get::<String>(0)?.repeat(2))
    })
    .unwrap();
    db.create_collation("backwards", |a, b| b.cmp(a)).unwrap();
    let (say, hear) = channel();
    db.update_hook(Some(move |_, _: &str, _: &str, rowid| {
        let _ = say.send(rowid);
    }));
    let mut texts = Vec::new();
    for n in 0..20 {
        // Each thread runs the programs, and reads the pages, that the ones before it have left.
        (db, texts) = std::thread::spawn(move || {
            db.execute("INSERT INTO t VALUES (twice(?1), zeroblob(900))", [format!("{n:02}")]).unwrap();
            let mut s = db.prepare("SELECT a FROM t ORDER BY a COLLATE backwards").unwrap();
            let texts: Vec<String> =
                s.query_map([], |row| row.get(0)).unwrap().collect::<Result<_>>().unwrap();
            drop(s);
            (db, texts)
        })
        .join()
        .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    assert_eq!((texts.len(), texts[0].as_str(), texts[19].as_str()), (20, "1919", "0000"));
    assert_eq!(hear.try_iter().collect::<Vec<i64>>(), (1..=20).collect::<Vec<i64>>());
}

/// Connections that threads take and give back.
struct Pool {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Pool {
    fn with<T>(&self, f: impl FnOnce(&mut Connection) -> T) -> T {
        let mut idle = self.idle.lock().unwrap();
        let mut c = loop {
            match idle.pop() {
                Some(c) => break c,
                None => idle = self.returned.wait(idle).unwrap(),
            }
        };
        drop(idle);
        let answer = f(&mut c);
        // The one that waited longest is next, so that connections change hands.
        self.idle.lock().unwrap().insert(0, c);
        self.returned.notify_one();
        answer
    }
}

#[test]
fn a_pool_lends_connections_to_more_threads_than_it_has() {
    let dir = Scratch::new();
    let open = |_| {
        let c = Connection::open(dir.name("p.db")).unwrap();
        c.busy_timeout(Duration::from_secs(30)).unwrap();
        c
    };
    let idle: Vec<Connection> = (0..3).map(open).collect();
    idle[0]
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE n(sum)",
        )
        .unwrap();
    idle[0].execute_batch("INSERT INTO n VALUES (0)").unwrap();
    let pool = Pool { idle: Mutex::new(idle), returned: Condvar::new() };
    std::thread::scope(|s| {
        for t in 0..8 {
            let pool = &pool;
            s.spawn(move || {
                for i in 0..40 {
                    let text = pool.with(|c| {
                        let tx = c.transaction_with_behavior(iolite::TransactionBehavior::Immediate).unwrap();
                        tx.execute("INSERT INTO t(v) VALUES (?1)", [format!("{t} {i}")]).unwrap();
                        let id = tx.last_insert_rowid();
                        tx.execute("UPDATE n SET sum = sum + 1", []).unwrap();
                        tx.commit().unwrap();
                        c.query_row("SELECT v FROM t WHERE id = ?1", [id], |row| row.get::<_, String>(0))
                            .unwrap()
                    });
                    assert_eq!(text, format!("{t} {i}"));
                }
            });
        }
    });
    pool.with(|c| {
        assert_eq!((int(c, "SELECT sum FROM n"), int(c, "SELECT count(DISTINCT v) FROM t")), (320, 320));
    });
}

#[test]
fn a_statement_that_is_leaked_does_not_keep_the_file_open() {
    let dir = Scratch::new();
    let db = Connection::open(dir.name("l.db")).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)").unwrap();
    let mut s = db.prepare("SELECT a FROM t").unwrap();
    let mut rows = s.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    std::mem::forget(rows);
    std::mem::forget(s);
    std::thread::spawn(move || {
        assert_eq!(int(&db, "SELECT count(*) FROM t"), 2);
        drop(db);
    })
    .join()
    .unwrap();
    // The last connection that closes copies the log back and removes it.
    assert!(!dir.path("l.db-wal").exists());
}

#[test]
fn a_transaction_ends_as_it_is_told() {
    let mut db = memory("CREATE TABLE t(a)");
    let insert = |tx: &Connection| tx.execute("INSERT INTO t VALUES (1)", []).unwrap();
    drop(db.transaction().map(|tx| insert(&tx)));
    assert_eq!((int(&db, "SELECT count(*) FROM t"), db.is_autocommit()), (0, true));
    let behaves = |tx: &mut Transaction<'_>, how| tx.set_drop_behavior(how);
    {
        let mut tx = db.transaction().unwrap();
        insert(&tx);
        behaves(&mut tx, DropBehavior::Commit);
    }
    assert_eq!((int(&db, "SELECT count(*) FROM t"), db.is_autocommit()), (1, true));
    {
        let mut tx = db.transaction().unwrap();
        insert(&tx);
        behaves(&mut tx, DropBehavior::Ignore);
    }
    assert!(!db.is_autocommit());
    db.execute_batch("COMMIT").unwrap();
    // One that an error has ended already ends in peace.
    db.execute_batch("CREATE UNIQUE INDEX ta ON t(a) WHERE a > 1; INSERT INTO t VALUES (5)").unwrap();
    let tx = db.transaction().unwrap();
    assert_eq!(
        tx.execute("INSERT OR ROLLBACK INTO t VALUES (5)", []).unwrap_err().code(),
        Code::ConstraintUnique
    );
    assert!(tx.commit().is_err());
    assert!(db.is_autocommit());
}

#[test]
fn savepoints_go_back_one_by_one() {
    let mut db = memory("CREATE TABLE t(a)");
    let mut tx = db.transaction().unwrap();
    let mut outer = tx.savepoint().unwrap();
    outer.execute("INSERT INTO t VALUES (1)", []).unwrap();
    {
        let mut inner = outer.savepoint().unwrap();
        inner.execute("INSERT INTO t VALUES (2)", []).unwrap();
        inner.rollback().unwrap();
        inner.execute("INSERT INTO t VALUES (3)", []).unwrap();
        inner.commit().unwrap();
    }
    {
        let named = outer.savepoint_with_name("it's \"mine\"").unwrap();
        named.execute("INSERT INTO t VALUES (4)", []).unwrap();
    }
    outer.commit().unwrap();
    tx.commit().unwrap();
    assert_eq!(int(&db, "SELECT sum(a) FROM t"), 4);
    {
        let sp = db.savepoint().unwrap();
        sp.execute("INSERT INTO t VALUES (100)", []).unwrap();
    }
    assert_eq!((int(&db, "SELECT sum(a) FROM t"), db.is_autocommit()), (4, true));
}

#[test]
fn values_come_back_as_they_were_given() {
    let db = memory("CREATE TABLE t(v)");
    let given = params![
        1u8,
        -1i64,
        2.5f32,
        true,
        "text",
        String::from("owned"),
        vec![0u8, 255],
        [1u8, 2, 3],
        None::<i64>,
        Some("some"),
        Value::Integer(9),
        u64::MAX >> 1
    ];
    for v in given {
        db.execute("INSERT INTO t VALUES (?1)", [v]).unwrap();
    }
    let mut s = db.prepare("SELECT v FROM t").unwrap();
    let all: Vec<Value> = s.query_map([], |row| row.get(0)).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(
        all,
        [
            1.into(),
            (-1).into(),
            2.5.into(),
            true.into(),
            "text".into(),
            "owned".into(),
            vec![0u8, 255].into(),
            vec![1u8, 2, 3].into(),
            Value::Null,
            "some".into(),
            9.into(),
            i64::MAX.into()
        ] as [Value; 12]
    );
    assert_eq!(db.query_row("SELECT ?1", [f64::NAN], |row| row.get::<_, Value>(0)).unwrap(), Value::Null);
    assert_eq!(db.execute("INSERT INTO t VALUES (?1)", [u64::MAX]).unwrap_err().code(), Code::Mismatch);
    let array = |row: &iolite::Row<'_>| row.get::<_, [u8; 2]>(0);
    assert_eq!(db.query_row("SELECT x'0102'", [], array).unwrap(), [1, 2]);
    assert_eq!(
        db.query_row("SELECT x'010203' AS b", [], array).unwrap_err().message(),
        "column 0, b: the blob has 3 bytes, not 2"
    );
    assert!(db.query_row("SELECT CAST(x'ff' AS TEXT)", [], |row| row.get::<_, String>(0)).is_err());
    let raw = |row: &iolite::Row<'_>| Ok(row.get_ref(0)? == ValueRef::Text(b"\xff"));
    assert!(db.query_row("SELECT CAST(x'ff' AS TEXT)", [], raw).unwrap());
}

#[test]
fn a_statement_can_be_left_and_run_again() {
    let db = memory("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)");
    let mut s = db.prepare("SELECT a FROM t WHERE a >= :least ORDER BY a").unwrap();
    for least in 1..=3 {
        let first: i64 = s.query_row(named_params! {":least": least}, |row| row.get(0)).unwrap();
        assert_eq!(first, least);
    }
    // An early end holds no lock and no snapshot.
    db.execute_batch("DROP TABLE t").unwrap();
    assert!(s.query_row([1], |row| row.get::<_, i64>(0)).is_err());
}

#[test]
fn no_row_is_told_from_other_errors() {
    let db = memory("CREATE TABLE t(a)");
    let first = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).optional();
    assert_eq!(first("SELECT a FROM t").unwrap(), None);
    assert_eq!(first("SELECT 1").unwrap(), Some(1));
    assert_eq!(first("SELECT b FROM t").unwrap_err().message(), "no such column: b");
}

#[test]
fn the_error_of_a_closure_is_the_querys() {
    let db = memory("");
    db.create_scalar_function("fail", 1, FunctionFlags::default(), |ctx| -> Result<i64> {
        Err(Error::new(Code::Constraint, format!("no {}", ctx.get::<String>(0)?)))
    })
    .unwrap();
    let e = db.query_row("SELECT fail('way')", [], |row| row.get::<_, i64>(0)).unwrap_err();
    assert_eq!((e.code(), e.message()), (Code::Constraint, "no way"));
    let e = db.query_row("SELECT fail(1)", [], |row| row.get::<_, i64>(0)).unwrap_err();
    assert_eq!(e.message(), "argument 0: invalid type");
}

#[test]
fn rows_that_are_leaked_do_not_shorten_the_next_run() {
    let db = memory("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)");
    let mut s = db.prepare("SELECT a FROM t").unwrap();
    let mut rows = s.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    std::mem::forget(rows);
    assert_eq!(s.query_map([], |row| row.get::<_, i64>(0)).unwrap().count(), 3);
}

#[test]
fn callbacks_may_use_their_connection() {
    thread_local! {
        static DB: std::cell::OnceCell<std::rc::Rc<Connection>> = const { std::cell::OnceCell::new() };
    }
    fn with<T>(f: impl FnOnce(&Connection) -> T) -> T {
        DB.with(|db| f(db.get_or_init(|| std::rc::Rc::new(memory("CREATE TABLE t(a)")))))
    }
    with(|db| {
        db.create_scalar_function("rows", 0, FunctionFlags::default(), |_| {
            with(|db| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)))
        })
        .unwrap();
        db.trace(Some(|_: &str| {
            with(|db| {
                db.trace(None::<fn(&str)>);
                db.create_collation("other", |a, b| a.cmp(b)).unwrap();
                db.execute("INSERT INTO t VALUES (rows())", []).unwrap();
            })
        }));
        db.execute("INSERT INTO t VALUES (rows() + 10)", []).unwrap();
        assert_eq!(int(db, "SELECT sum(a) FROM t"), 11);
    });
}

/// What a program registers under the name of a built-in function may be something else than NULL where its argument is NULL.
#[test]
fn a_program_s_own_length_keeps_rows_without_a_match() {
    let db = memory(
        "CREATE TABLE t(a); CREATE TABLE u(a, b); INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (1, 'x')",
    );
    for (name, args) in [("length", 1), ("abs", 1), ("like", 2)] {
        db.create_scalar_function(name, args, FunctionFlags::DETERMINISTIC, |_| Ok(1)).unwrap();
    }
    for condition in ["length(b)", "abs(b) = 1", "b LIKE 'x%'", "NOT (length(b) = 2 OR abs(b) = 3)"] {
        let sql = format!("SELECT count(*) FROM t LEFT JOIN u ON t.a = u.a WHERE {condition}");
        assert_eq!(int(&db, &sql), 2, "{condition}");
    }
}

#[test]
fn a_function_that_panics_leaves_nothing_half_done() {
    let db = memory("CREATE TABLE t(a); CREATE TABLE log(a)");
    db.create_scalar_function("explode", 1, FunctionFlags::default(), |ctx| match ctx.get::<i64>(0)? {
        3 => panic!("in a function"),
        n => Ok(n),
    })
    .unwrap();
    let rows = "INSERT INTO t SELECT explode(column1) FROM (VALUES (1), (2), (3), (4))";
    let run = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.execute(rows, [])));
    assert!(run().is_err());
    assert_eq!((int(&db, "SELECT count(*) FROM t"), db.is_autocommit()), (0, true));
    db.execute_batch("BEGIN; INSERT INTO t VALUES (10)").unwrap();
    assert!(run().is_err());
    db.execute_batch("COMMIT").unwrap();
    assert_eq!(int(&db, "SELECT sum(a) FROM t"), 10);
    // The statement itself can be used again.
    let mut s = db.prepare("INSERT INTO t SELECT explode(?1) UNION ALL SELECT explode(?2)").unwrap();
    let mut pair =
        |a: i64, b: i64| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| s.execute([a, b])));
    assert!(pair(1, 3).is_err());
    assert_eq!(pair(5, 6).unwrap().unwrap(), 2);
    assert_eq!(int(&db, "SELECT sum(a) FROM t"), 21);
}

#[test]
fn the_busy_handler_is_asked_and_may_give_up() {
    let dir = Scratch::new();
    let mut one = Connection::open(dir.name("b.db")).unwrap();
    one.execute_batch("CREATE TABLE t(a)").unwrap();
    let two = Connection::open(dir.name("b.db")).unwrap();
    let (say, hear) = channel();
    two.busy_handler(Some(move |tries| say.send(tries).is_ok() && tries < 2)).unwrap();
    let tx = one.transaction_with_behavior(iolite::TransactionBehavior::Immediate).unwrap();
    assert_eq!(two.execute("INSERT INTO t VALUES (1)", []).unwrap_err().code(), Code::Busy);
    assert_eq!(hear.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    drop(tx);
    two.execute("INSERT INTO t VALUES (1)", []).unwrap();
}

#[test]
fn a_connection_waits_for_locks_unless_it_is_opened_with_flags() {
    assert_eq!(int(&memory(""), "PRAGMA busy_timeout"), 5000);
    let plain = Connection::open_with_flags(":memory:", iolite::OpenFlags::default()).unwrap();
    assert_eq!(int(&plain, "PRAGMA busy_timeout"), 0);
}

#[test]
fn a_backup_sees_what_is_written_meanwhile() {
    let from = memory("CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000))");
    let mut to = memory("CREATE TABLE old(a)");
    let mut backup = iolite::Backup::new(&from, &mut to).unwrap();
    assert_eq!(backup.step(5).unwrap(), iolite::StepResult::More);
    from.execute("INSERT INTO t VALUES (2)", []).unwrap();
    backup.run_to_completion(5, Duration::ZERO, |_| ()).unwrap();
    drop(backup);
    assert_eq!(int(&to, "SELECT count(*) FROM t"), 2);
    assert!(!to.table_exists(None, "old").unwrap());
}

//! Handles: closed ones, statements that outlive their connection, errors that stay, values that change connections,
//! several threads.

use super::*;
use iolite::engine::{Code, Collate};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A pointer that another thread may have.
struct Give<T>(*mut T);

unsafe impl<T> Send for Give<T> {}

impl<T> Clone for Give<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Give<T> {}

impl<T> Give<T> {
    fn get(self) -> *mut T {
        self.0
    }
}

#[test]
fn closed_handles_are_misuse() {
    let db = open();
    let s = prepare(db, "select 1");
    unsafe {
        assert_eq!(sqlite3_step(s), 100);
        assert_eq!(sqlite3_finalize(s), 0);
        assert_eq!((sqlite3_finalize(s), sqlite3_step(s), sqlite3_reset(s)), (21, 21, 21));
        assert!(sqlite3_sql(s).is_null() && sqlite3_db_handle(s).is_null());
        assert_eq!((sqlite3_bind_int(s, 1, 1), sqlite3_column_int(s, 0)), (21, 0));
        assert_eq!(sqlite3_close(db), 0);
        assert_eq!((sqlite3_close(db), sqlite3_close_v2(db)), (21, 21));
        assert_eq!(text(sqlite3_errmsg(db)), "bad parameter or other API misuse");
        assert_eq!((sqlite3_errcode(db), sqlite3_extended_errcode(db)), (21, 21));
        assert_eq!(exec(db, "select 1"), 21);
        let mut s = null_mut();
        assert_eq!(sqlite3_prepare_v2(db, c"select 1".as_ptr(), -1, &mut s, null_mut()), 21);
        sqlite3_interrupt(db);
        assert_eq!((sqlite3_changes(db), sqlite3_total_changes64(db)), (0, 0));
    }
}

#[test]
fn a_zombie_is_closed_to_its_program_but_not_to_its_statements() {
    let db = open();
    let s = prepare(db, "select 1 union all select 2");
    unsafe {
        assert_eq!(sqlite3_step(s), 100);
        assert_eq!(sqlite3_close(db), 5);
        assert_eq!(
            text(sqlite3_errmsg(db)),
            "unable to close due to unfinalized statements or unfinished backups"
        );
        assert_eq!(sqlite3_close_v2(db), 0);
        assert_eq!((sqlite3_close(db), exec(db, "select 1")), (21, 21));
        assert_eq!((sqlite3_step(s), sqlite3_column_int(s, 0), sqlite3_step(s)), (100, 2, 101));
        assert_eq!(sqlite3_finalize(s), 0);
        assert_eq!(sqlite3_close_v2(db), 21);
    }
}

#[test]
fn the_error_stays_until_something_else_happens() {
    let db = open();
    unsafe {
        exec(db, "create table t(a unique); insert into t values(1)");
        let fine = prepare(db, "select 1");
        let fails = prepare(db, "insert into t values(1)");
        assert_eq!(sqlite3_step(fails), 19);
        let text_now = || text(sqlite3_errmsg(db));
        // Neither a statement that never ran nor one that was reset before has anything to say.
        assert_eq!((sqlite3_reset(fine), sqlite3_errcode(db)), (0, 19));
        assert_eq!((sqlite3_finalize(fine), sqlite3_extended_errcode(db)), (0, 2067));
        assert_eq!((sqlite3_reset(fails), text_now()), (19, "UNIQUE constraint failed: t.a".into()));
        assert_eq!((sqlite3_reset(fails), text_now()), (0, "UNIQUE constraint failed: t.a".into()));
        // What failed says so again when it is finalized, whatever happened since.
        assert_eq!(sqlite3_step(fails), 19);
        assert_eq!((exec(db, "select 1"), text_now()), (0, "not an error".into()));
        assert_eq!(sqlite3_finalize(fails), 19);
        assert_eq!((sqlite3_errcode(db), text_now()), (19, "UNIQUE constraint failed: t.a".into()));
        // A reset of one that went well does count.
        let fine = prepare(db, "select 1");
        assert_eq!(sqlite3_step(fine), 100);
        assert_eq!(exec(db, "nonsense"), 1);
        assert_eq!((sqlite3_reset(fine), sqlite3_errcode(db)), (0, 0));
        sqlite3_finalize(fine);
        sqlite3_close(db);
    }
}

#[test]
fn what_unwinds_breaks_the_connection_only() {
    struct Unwinds;
    impl Collate for Unwinds {
        fn compare(&self, _: &[u8], _: &[u8]) -> std::cmp::Ordering {
            panic!("by design");
        }
    }
    let (db, other) = (open(), open());
    unsafe {
        exec(db, "create table t(a)");
        engine(db).unwrap().create_collation("unwinds", Some(Rc::new(Unwinds)));
        let before = prepare(db, "select 1");
        let s = prepare(db, "select 'a' < 'b' collate unwinds");
        assert_eq!((sqlite3_step(s), sqlite3_errcode(db)), (2, 2));
        assert_eq!(text(sqlite3_errmsg(db)), "internal error: the connection can only be closed");
        assert_eq!((exec(db, "insert into t values(1)"), sqlite3_step(before)), (2, 2));
        assert_eq!((sqlite3_finalize(s), sqlite3_finalize(before)), (2, 2));
        assert_eq!(sqlite3_close(db), 0);
        assert_eq!(one(other, "select 1"), "1");
        sqlite3_close(other);
    }
    assert_eq!(Code::Internal.number(), 2);
}

#[test]
fn the_last_of_several_threads_ends_a_zombie_once() {
    static ENDED: AtomicI32 = AtomicI32::new(0);
    unsafe extern "C" fn ended(_: *mut c_void) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
    const ROUNDS: i32 = 300;
    for _ in 0..ROUNDS {
        let db = open();
        let list: Vec<_> = (0..4).map(|_| Give(prepare(db, "select 1"))).collect();
        unsafe {
            sqlite3_set_clientdata(db, c"x".as_ptr(), std::ptr::dangling_mut(), Some(ended));
            sqlite3_close_v2(db);
        }
        std::thread::scope(|scope| {
            for s in list {
                scope.spawn(move || unsafe {
                    sqlite3_step(s.get());
                    sqlite3_finalize(s.get())
                });
            }
        });
    }
    assert_eq!(ENDED.load(Ordering::Relaxed), ROUNDS);
}

#[test]
fn values_pass_between_connections_of_two_threads() {
    let (a, b) = (open(), open());
    unsafe {
        exec(a, "create table t(x); insert into t values(hex(zeroblob(300)))");
        let from = Give(prepare(a, "select x from t"));
        let to = prepare(b, "select length(?1), ?1");
        for _ in 0..200 {
            assert_eq!(sqlite3_step(from.get()), 100);
            assert_eq!(sqlite3_bind_value(to, 1, sqlite3_column_value(from.get(), 0)), 0);
            std::thread::scope(|scope| {
                // One thread takes the row away while the other looks at its copy.
                scope.spawn(move || {
                    (sqlite3_reset(from.get()), sqlite3_step(from.get()), sqlite3_reset(from.get()))
                });
                assert_eq!((sqlite3_step(to), sqlite3_column_int(to, 0)), (100, 600));
                sqlite3_reset(to);
                sqlite3_clear_bindings(to);
            });
        }
        sqlite3_finalize(from.get());
        sqlite3_finalize(to);
        assert_eq!((sqlite3_close(a), sqlite3_close(b)), (0, 0));
    }
}

#[test]
fn the_authorizer_hears_of_what_is_copied_and_indexed() {
    /// Denies to read a column called `password` and a view called `secret`.
    unsafe extern "C" fn deny(
        _: *mut c_void,
        code: c_int,
        one: *const c_char,
        two: *const c_char,
        _: *const c_char,
        _: *const c_char,
    ) -> c_int {
        (code == 20 && (text(two) == "password" || text(one) == "secret")) as c_int
    }
    let db = open();
    unsafe {
        exec(
            db,
            "create table users(name, password); create view v as select password as p from users;
             create view secret as select 1 as one; create view outer1 as select * from secret;
             create table o(x); create trigger tr after insert on o begin select password from users; end;
             create table plain(a)",
        );
        iolite_capi::authorizer::sqlite3_set_authorizer(db, Some(deny), null_mut());
        for sql in [
            "create table leak as select * from users",
            "create temp table leak as select p from v",
            "create index i on users(password)",
            "create index i on users(\"password\" collate nocase)",
            "create index i on users(upper(password))",
            "create index i on users(name) where password is not null",
            "select p from v",
            "select * from secret",
            "select * from outer1",
            "create table leak as select * from outer1",
            "insert into o values(1)",
            "insert into plain select password from users",
        ] {
            assert_eq!(exec(db, sql), 23, "{sql}");
        }
        for sql in [
            "create index i on users(name)",
            "create table copy as select a from plain",
            "insert into plain values(1)",
            "create index j on plain(a)",
            "create view w as select password from users",
        ] {
            assert_eq!(exec(db, sql), 0, "{sql}: {}", text(sqlite3_errmsg(db)));
        }
        sqlite3_close(db);
    }
}

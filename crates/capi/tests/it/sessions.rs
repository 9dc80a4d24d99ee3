//! Sessions where this library keeps to the documentation and stock does not, or where stock leaves open what happens.

use super::*;
use iolite_capi::changeset::*;
use iolite_capi::changeset_apply::*;
use iolite_capi::preupdate::*;
use iolite_capi::session::*;
use std::cell::Cell;

thread_local! {
    static TOLD: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn told(
    _: *mut c_void,
    _: *mut Db,
    _: c_int,
    _: *const c_char,
    _: *const c_char,
    _: i64,
    _: i64,
) {
    TOLD.with(|t| t.set(t.get() + 1));
}

/// A session of a connection's main database.
fn session(db: *mut Db, rowids: bool) -> *mut CSession {
    let mut s = null_mut();
    unsafe {
        assert_eq!(sqlite3session_create(db, c"main".as_ptr(), &mut s), 0);
        let mut on = rowids as c_int;
        assert_eq!(sqlite3session_object_config(s, 2, &mut on as *mut c_int as *mut c_void), 0);
        assert_eq!(sqlite3session_attach(s, null()), 0);
    }
    s
}

/// The changeset of a session.
fn changeset(s: *mut CSession) -> Vec<u8> {
    let (mut n, mut p) = (0, null_mut());
    unsafe {
        assert_eq!(sqlite3session_changeset(s, &mut n, &mut p), 0);
        let out =
            if n == 0 { Vec::new() } else { std::slice::from_raw_parts(p as *const u8, n as usize).to_vec() };
        sqlite3_free(p);
        out
    }
}

/// How many changes of each operation there are.
fn operations(b: &[u8]) -> (u32, u32, u32) {
    let (mut i, mut out) = (null_mut(), (0, 0, 0));
    unsafe {
        assert_eq!(sqlite3changeset_start(&mut i, b.len() as c_int, b.as_ptr() as *mut c_void), 0);
        while sqlite3changeset_next(i) == 100 {
            let (mut t, mut n, mut op) = (null(), 0, 0);
            assert_eq!(sqlite3changeset_op(i, &mut t, &mut n, &mut op, null_mut()), 0);
            match op {
                18 => out.0 += 1,
                23 => out.1 += 1,
                _ => out.2 += 1,
            }
        }
        assert_eq!(sqlite3changeset_finalize(i), 0);
    }
    out
}

#[test]
fn sessions_record_beside_each_other_and_beside_a_hook() {
    let db = open();
    exec(db, "create table t(a primary key, b)");
    unsafe {
        sqlite3_preupdate_hook(db, Some(told), null_mut());
        let (one, two) = (session(db, false), session(db, false));
        exec(db, "insert into t values(1, 1), (2, 2)");
        sqlite3session_delete(one);
        exec(db, "update t set b = 3 where a = 1");
        sqlite3_preupdate_hook(db, None, null_mut());
        exec(db, "insert into t values(3, 3); analyze");
        assert_eq!((TOLD.with(Cell::get), operations(&changeset(two))), (3, (4, 0, 0)));
        sqlite3session_delete(two);
        assert_eq!(sqlite3_close(db), 0);
    }
}

#[test]
fn many_rows_without_a_primary_key_are_recorded_once_each() {
    let db = open();
    exec(db, "create table t(a, b)");
    let s = session(db, true);
    exec(
        db,
        "with c(x) as (values(1) union all select x + 1 from c where x < 1000) insert into t select x, x from c",
    );
    exec(db, "update t set b = b + 1 where a % 3 = 0; delete from t where a % 5 = 0");
    assert_eq!(operations(&changeset(s)), (800, 0, 0));
    unsafe {
        sqlite3session_delete(s);
        assert_eq!(sqlite3_close(db), 0);
    }
}

unsafe extern "C" fn replace(_: *mut c_void, kind: c_int, i: *mut CIter) -> c_int {
    // Neither is for the iterator of a callback.
    unsafe { assert_eq!((sqlite3changeset_next(i), sqlite3changeset_finalize(i)), (21, 21)) };
    (kind == 3) as c_int
}

#[test]
fn a_row_that_could_not_be_replaced_is_still_there() {
    let (from, to) = (open(), open());
    for db in [from, to] {
        exec(db, "create table t(a primary key, b unique)");
    }
    let s = session(from, false);
    exec(from, "insert into t values(1, 'wanted')");
    exec(to, "insert into t values(1, 'there'), (2, 'wanted')");
    let b = changeset(s);
    unsafe {
        let p = b.as_ptr() as *mut c_void;
        assert_eq!(sqlite3changeset_apply(to, b.len() as c_int, p, None, Some(replace), null_mut()), 0);
        assert_eq!(one(to, "select group_concat(a || b) from t"), "1there,2wanted");
        exec(to, "delete from t where a = 2");
        assert_eq!(sqlite3changeset_apply(to, b.len() as c_int, p, None, Some(replace), null_mut()), 0);
        assert_eq!(one(to, "select group_concat(a || b) from t"), "1wanted");
        sqlite3session_delete(s);
        assert_eq!((sqlite3_close(from), sqlite3_close(to)), (0, 0));
    }
}

#[test]
fn pointers_to_nothing_are_misuse() {
    unsafe {
        assert_eq!(sqlite3session_create(null_mut(), c"main".as_ptr(), &mut null_mut()), 21);
        assert_eq!((sqlite3session_attach(null_mut(), null()), sqlite3session_isempty(null_mut())), (21, 1));
        sqlite3session_delete(null_mut());
        assert_eq!(sqlite3changeset_start(null_mut(), 0, null_mut()), 21);
        assert_eq!((sqlite3changeset_next(null_mut()), sqlite3changeset_finalize(null_mut())), (21, 0));
        assert_eq!(sqlite3changeset_old(null_mut(), 0, &mut null_mut()), 21);
        assert_eq!(sqlite3changeset_invert(0, null(), null_mut(), null_mut()), 21);
        assert_eq!(sqlite3changeset_apply(null_mut(), 0, null_mut(), None, None, null_mut()), 21);
        let db = open();
        assert_eq!(sqlite3changeset_apply(db, 0, null_mut(), None, None, null_mut()), 0);
        let s = session(db, false);
        assert_eq!(sqlite3session_changeset(s, null_mut(), null_mut()), 21);
        assert_eq!(sqlite3session_object_config(s, 1, null_mut()), 21);
        assert_eq!(sqlite3session_diff(s, null(), null(), null_mut()), 21);
        // A session that outlives its connection.
        assert_eq!(sqlite3_close(db), 0);
        assert_eq!(sqlite3session_changeset(s, &mut 0, &mut null_mut()), 21);
        sqlite3session_delete(s);
    }
}

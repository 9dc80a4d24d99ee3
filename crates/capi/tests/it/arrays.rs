//! `carray`: arrays of the program as rows, and when they are let go of.

use super::*;
use iolite_capi::carray_bind::*;
use std::cell::Cell;

fn rows(s: *mut Stmt) -> String {
    let mut out = Vec::new();
    unsafe {
        while sqlite3_step(s) == 100 {
            out.push(text(sqlite3_column_text(s, 0) as *const c_char));
        }
        sqlite3_reset(s);
    }
    out.join(" ")
}

thread_local! {
    static GONE: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn gone(_: *mut c_void) {
    GONE.with(|g| g.set(g.get() + 1));
}

#[test]
fn arrays_are_rows() {
    let db = open();
    let s = prepare(db, "select value from carray(?1)");
    let transient =
        Some(unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(usize::MAX) });
    unsafe {
        let mut numbers = [3i32, 1, 2];
        assert_eq!(sqlite3_carray_bind(s, 1, numbers.as_mut_ptr() as *mut c_void, 3, 0, transient), 0);
        numbers = [9, 9, 9];
        assert_eq!(rows(s), "3 1 2");
        let first = numbers.as_mut_ptr();
        assert_eq!(sqlite3_carray_bind(s, 1, first as *mut c_void, 3, 0, Some(gone)), 0);
        first.write(7);
        assert_eq!(rows(s), "7 9 9");
        let mut reals = [1.5f64, -2.0];
        assert_eq!(sqlite3_carray_bind(s, 1, reals.as_mut_ptr() as *mut c_void, 2, 2, None), 0);
        assert_eq!((rows(s), GONE.with(Cell::get)), ("1.5 -2.0".into(), 1));
        let mut texts = [c"x".as_ptr(), null(), c"yy".as_ptr()];
        assert_eq!(sqlite3_carray_bind(s, 1, texts.as_mut_ptr() as *mut c_void, 3, 3, transient), 0);
        assert_eq!(rows(s), "x NULL yy");
        assert_eq!(sqlite3_carray_bind(s, 1, texts.as_mut_ptr() as *mut c_void, 3, 77, Some(gone)), 1);
        assert_eq!(GONE.with(Cell::get), 2);
        sqlite3_finalize(s);
        let s = prepare(db, "select value from carray(?1, 2, 'char*')");
        assert_eq!(
            sqlite3_bind_pointer(s, 1, texts.as_mut_ptr() as *mut c_void, c"carray".as_ptr(), None),
            0
        );
        assert_eq!(rows(s), "x NULL");
        assert_eq!(sqlite3_bind_pointer(s, 1, texts.as_mut_ptr() as *mut c_void, c"other".as_ptr(), None), 0);
        assert_eq!(rows(s), "");
        sqlite3_finalize(s);
        assert_eq!(one(db, "select count(*) from carray(x'0102030405060708636172726179', 2)"), "0");
        assert_eq!(sqlite3_close(db), 0);
    }
}

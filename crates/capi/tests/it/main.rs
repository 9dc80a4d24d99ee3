//! The C interface as a C program uses it. `tests/python` holds what needs a whole program.
#![allow(clippy::undocumented_unsafe_blocks)]

mod arrays;
mod handles;
mod images;
mod interfering;
mod programs;
mod python;
mod sessions;

use iolite_capi::backup::*;
use iolite_capi::bind::*;
use iolite_capi::blob::*;
use iolite_capi::collation::*;
use iolite_capi::column::*;
use iolite_capi::connection::*;
use iolite_capi::exec::*;
use iolite_capi::file_control::*;
use iolite_capi::filename::*;
use iolite_capi::function::*;
use iolite_capi::info::*;
use iolite_capi::memory::*;
use iolite_capi::opening::*;
use iolite_capi::prepare::*;
use iolite_capi::statement::*;
use iolite_capi::statement_info::*;
use iolite_capi::text::*;
use iolite_capi::value::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

fn open() -> *mut Db {
    let mut db = null_mut();
    assert_eq!(unsafe { sqlite3_open(c":memory:".as_ptr(), &mut db) }, 0);
    db
}

fn text(p: *const c_char) -> String {
    if p.is_null() { "NULL".into() } else { unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned() }
}

fn exec(db: *mut Db, sql: &str) -> c_int {
    let sql = CString::new(sql).unwrap();
    unsafe { sqlite3_exec(db, sql.as_ptr(), None, null_mut(), null_mut()) }
}

fn prepare(db: *mut Db, sql: &str) -> *mut Stmt {
    let sql = CString::new(sql).unwrap();
    let mut s = null_mut();
    let rc = unsafe { sqlite3_prepare_v2(db, sql.as_ptr(), -1, &mut s, null_mut()) };
    assert_eq!(rc, 0, "{}", text(unsafe { sqlite3_errmsg(db) }));
    s
}

/// The first column of the first row as text.
fn one(db: *mut Db, sql: &str) -> String {
    let s = prepare(db, sql);
    unsafe {
        let rc = sqlite3_step(s);
        let out =
            if rc == 100 { text(sqlite3_column_text(s, 0) as *const c_char) } else { format!("rc {rc}") };
        sqlite3_finalize(s);
        out
    }
}

#[test]
fn null_handles_are_misuse() {
    unsafe {
        assert_eq!(sqlite3_step(null_mut()), 21);
        assert_eq!(sqlite3_finalize(null_mut()), 0);
        assert_eq!(sqlite3_close(null_mut()), 0);
        assert_eq!(sqlite3_exec(null_mut(), c"".as_ptr(), None, null_mut(), null_mut()), 21);
        assert_eq!(text(sqlite3_errmsg(null_mut())), "out of memory");
        assert_eq!(sqlite3_bind_int(null_mut(), 1, 1), 21);
        assert_eq!(sqlite3_column_int(null_mut(), 1), 0);
    }
}

#[test]
fn statements() {
    let db = open();
    unsafe {
        assert_eq!(
            exec(db, "create table t(a integer primary key, b text); insert into t values(1,'x'),(2,null)"),
            0
        );
        assert_eq!((sqlite3_changes(db), sqlite3_last_insert_rowid(db)), (2, 2));
        let sql = c"select a, b, :p from t; select 2";
        let (mut s, mut tail) = (null_mut(), null());
        assert_eq!(sqlite3_prepare_v2(db, sql.as_ptr(), -1, &mut s, &mut tail), 0);
        assert_eq!(text(tail).trim(), "select 2");
        assert_eq!(sqlite3_bind_parameter_count(s), 1);
        assert_eq!(text(sqlite3_bind_parameter_name(s, 1)), ":p");
        assert_eq!(sqlite3_bind_parameter_index(s, c":p".as_ptr()), 1);
        assert_eq!(sqlite3_bind_text(s, 1, c"hello".as_ptr(), 4, None), 0);
        assert_eq!(sqlite3_bind_int(s, 2, 1), 25);
        assert_eq!((sqlite3_column_count(s), sqlite3_data_count(s)), (3, 0));
        assert_eq!(sqlite3_step(s), 100);
        assert_eq!(sqlite3_data_count(s), 3);
        assert_eq!(sqlite3_bind_int(s, 1, 1), 21);
        assert_eq!((sqlite3_column_int64(s, 0), sqlite3_column_type(s, 0)), (1, 1));
        assert_eq!((text(sqlite3_column_text(s, 1) as _), sqlite3_column_bytes(s, 1)), ("x".into(), 1));
        assert_eq!(text(sqlite3_column_text(s, 2) as _), "hell");
        let wide = std::slice::from_raw_parts(sqlite3_column_text16(s, 2) as *const u16, 5);
        assert_eq!(String::from_utf16_lossy(wide), "hell\0");
        assert_eq!(text(sqlite3_column_name(s, 1)), "b");
        assert_eq!(text(sqlite3_column_decltype(s, 0)).to_lowercase(), "integer");
        assert_eq!(text(sqlite3_column_table_name(s, 0)), "t");
        let expanded = sqlite3_expanded_sql(s);
        assert_eq!(text(expanded), "select a, b, 'hell' from t;");
        sqlite3_free(expanded as *mut c_void);
        assert_eq!(sqlite3_step(s), 100);
        assert_eq!(sqlite3_column_type(s, 1), 5);
        assert!(sqlite3_column_text(s, 1).is_null());
        assert_eq!(sqlite3_stmt_busy(s), 1);
        assert_eq!(sqlite3_close(db), 5);
        assert_eq!(sqlite3_step(s), 101);
        assert_eq!(sqlite3_reset(s), 0);
        assert_eq!(sqlite3_next_stmt(db, null_mut()), s);
        assert_eq!(sqlite3_close_v2(db), 0);
        // The connection lives as long as its statement.
        assert_eq!(sqlite3_step(s), 100);
        assert_eq!(sqlite3_finalize(s), 0);
    }
}

#[test]
fn errors() {
    let db = open();
    unsafe {
        assert_eq!(exec(db, "create table t(a unique); insert into t values(1)"), 0);
        let mut message = null_mut();
        let sql = c"insert into t values(1)";
        assert_eq!(sqlite3_exec(db, sql.as_ptr(), None, null_mut(), &mut message), 19);
        assert_eq!(text(message), "UNIQUE constraint failed: t.a");
        sqlite3_free(message as *mut c_void);
        assert_eq!((sqlite3_errcode(db), sqlite3_extended_errcode(db)), (19, 2067));
        assert_eq!(text(sqlite3_errstr(5)), "database is locked");
        sqlite3_extended_result_codes(db, 1);
        let s = prepare(db, "insert into t values(1)");
        assert_eq!(sqlite3_step(s), 2067);
        assert_eq!(sqlite3_reset(s), 2067);
        assert_eq!(sqlite3_finalize(s), 0);
        assert_eq!(exec(db, "select nosuch from t"), 1);
        assert_eq!(sqlite3_error_offset(db), 7);
        assert_eq!(text(sqlite3_errmsg(db)), "no such column: nosuch");
        let mut other = null_mut();
        assert_eq!(sqlite3_open(c"/no/such/folder/x".as_ptr(), &mut other), 14);
        assert_eq!(text(sqlite3_errmsg(other)), "unable to open database file");
        sqlite3_close(other);
        sqlite3_close(db);
    }
}

unsafe extern "C" fn add(cx: *mut CContext, n: c_int, v: *mut *mut CValue) {
    unsafe {
        let sum: i64 = (0..n as usize).map(|i| sqlite3_value_int64(*v.add(i))).sum();
        sqlite3_result_int64(cx, sum + sqlite3_user_data(cx) as i64);
    }
}

unsafe extern "C" fn fail(cx: *mut CContext, _: c_int, _: *mut *mut CValue) {
    unsafe { sqlite3_result_error(cx, c"by design".as_ptr(), -1) }
}

unsafe extern "C" fn nothing(_: *mut CContext, _: c_int, _: *mut *mut CValue) {}

unsafe extern "C" fn longest_step(cx: *mut CContext, _: c_int, v: *mut *mut CValue) {
    unsafe {
        let p = sqlite3_aggregate_context(cx, 4) as *mut c_int;
        *p = (*p).max(sqlite3_value_bytes(*v));
    }
}

unsafe extern "C" fn longest_final(cx: *mut CContext) {
    unsafe {
        let p = sqlite3_aggregate_context(cx, 0) as *mut c_int;
        if p.is_null() { sqlite3_result_null(cx) } else { sqlite3_result_int(cx, *p) }
    }
}

unsafe extern "C" fn count_drops(p: *mut c_void) {
    unsafe { *(p as *mut i32) += 1 };
}

#[test]
fn functions_and_collations() {
    let db = open();
    let mut drops = 0i32;
    unsafe {
        let user = 100 as *mut c_void;
        sqlite3_create_function(db, c"addup".as_ptr(), -1, 1, user, Some(add), None, None);
        sqlite3_create_function(db, c"fail".as_ptr(), 0, 1, null_mut(), Some(fail), None, None);
        assert_eq!(one(db, "select addup(1, 2, 3)"), "106");
        assert_eq!(exec(db, "select fail()"), 1);
        assert_eq!(text(sqlite3_errmsg(db)), "by design");
        let p = &mut drops as *mut i32 as *mut c_void;
        let f = Some(count_drops as Destructor);
        let name = c"longest".as_ptr();
        let (step, last) = (Some(longest_step as _), Some(longest_final as _));
        assert_eq!(sqlite3_create_function_v2(db, name, 1, 1, p, None, step, last, f), 0);
        let rows = "(select 'abc' as x union all select 'defgh')";
        assert_eq!(one(db, &format!("select longest(x) from {rows}")), "5");
        assert_eq!(one(db, &format!("select longest(x) from {rows} where 0")), "NULL");
        assert_eq!(sqlite3_create_function(db, name, 1, 1, null_mut(), Some(nothing), None, last), 21);
        assert_eq!(sqlite3_create_function_v2(db, name, 1, 1, null_mut(), None, None, None, None), 0);
        assert_eq!(exec(db, &format!("select longest(x) from {rows}")), 1);

        unsafe extern "C" fn backwards(
            _: *mut c_void,
            n: c_int,
            a: *const c_void,
            m: c_int,
            b: *const c_void,
        ) -> c_int {
            unsafe {
                let a = std::slice::from_raw_parts(a as *const u8, n as usize);
                let b = std::slice::from_raw_parts(b as *const u8, m as usize);
                b.cmp(a) as c_int
            }
        }
        unsafe extern "C" fn supply(_: *mut c_void, db: *mut Db, _: c_int, name: *const c_char) {
            unsafe { sqlite3_create_collation(db, name, 1, null_mut(), Some(backwards)) };
        }
        sqlite3_collation_needed(db, null_mut(), Some(supply));
        assert_eq!(one(db, &format!("select x from {rows} order by x collate backwards")), "defgh");
        sqlite3_close(db);
    }
    assert_eq!(drops, 1);
}

#[test]
fn tables_and_blobs() {
    let db = open();
    unsafe {
        exec(
            db,
            "create table t(a integer primary key autoincrement, b text collate nocase not null, c blob)",
        );
        exec(db, "insert into t values(7, 'x', zeroblob(8)), (8, 'y', null)");
        let (mut rows, mut columns, mut table) = (0, 0, null_mut());
        let sql = c"select a, c is null from t";
        assert_eq!(sqlite3_get_table(db, sql.as_ptr(), &mut table, &mut rows, &mut columns, null_mut()), 0);
        let cells: Vec<String> = (0..6).map(|i| text(*table.add(i))).collect();
        assert_eq!((rows, columns, cells.join(",")), (2, 2, "a,c is null,7,0,8,1".into()));
        sqlite3_free_table(table);
        let (mut kind, mut collation, mut nn, mut pk, mut auto) = (null(), null(), 0, 0, 0);
        let b = c"b".as_ptr();
        let t = c"t".as_ptr();
        let rc = sqlite3_table_column_metadata(
            db,
            null(),
            t,
            b,
            &mut kind,
            &mut collation,
            &mut nn,
            &mut pk,
            &mut auto,
        );
        assert_eq!(
            (rc, text(kind).to_lowercase(), text(collation), nn, pk, auto),
            (0, "text".into(), "nocase".into(), 1, 0, 0)
        );
        let a = c"a".as_ptr();
        sqlite3_table_column_metadata(
            db,
            null(),
            t,
            a,
            &mut kind,
            &mut collation,
            &mut nn,
            &mut pk,
            &mut auto,
        );
        assert_eq!((pk, auto), (1, 1));
        let mut blob = null_mut();
        assert_eq!(sqlite3_blob_open(db, c"main".as_ptr(), t, c"c".as_ptr(), 7, 1, &mut blob), 0);
        assert_eq!(sqlite3_blob_bytes(blob), 8);
        assert_eq!(sqlite3_blob_write(blob, c"abc".as_ptr() as _, 3, 2), 0);
        assert_eq!(sqlite3_blob_write(blob, c"abc".as_ptr() as _, 3, 6), 1);
        let mut out = [0u8; 4];
        assert_eq!(sqlite3_blob_read(blob, out.as_mut_ptr() as _, 4, 1), 0);
        assert_eq!(&out, b"\0abc");
        exec(db, "update t set c = x'00' where a = 7");
        assert_eq!(sqlite3_blob_read(blob, out.as_mut_ptr() as _, 1, 0), 4);
        assert_eq!(sqlite3_blob_close(blob), 0);
        assert_eq!(sqlite3_blob_open(db, c"main".as_ptr(), t, c"c".as_ptr(), 8, 1, &mut blob), 1);
        assert_eq!(text(sqlite3_errmsg(db)), "cannot open value of type null");
        sqlite3_close(db);
    }
}

#[test]
fn backup_and_serialize() {
    let (a, b, c) = (open(), open(), open());
    unsafe {
        exec(a, "create table t(a); insert into t values(1),(2),(3)");
        let main = c"main".as_ptr();
        let backup = sqlite3_backup_init(b, main, a, main);
        assert_eq!(sqlite3_backup_step(backup, 1), 0);
        assert_eq!((sqlite3_backup_remaining(backup), sqlite3_backup_pagecount(backup)), (1, 2));
        assert_eq!(sqlite3_backup_step(backup, -1), 101);
        assert_eq!(sqlite3_backup_finish(backup), 0);
        assert_eq!(one(b, "select sum(a) from t"), "6");
        let mut size = 0;
        let image = sqlite3_serialize(a, main, &mut size, 0);
        assert_eq!(size, 8192);
        assert_eq!(sqlite3_deserialize(c, main, image, size, size, 1), 0);
        assert_eq!(one(c, "select count(*) from t"), "3");
        for d in [a, b, c] {
            assert_eq!(sqlite3_close(d), 0);
        }
    }
}

#[test]
fn strings() {
    unsafe {
        assert_eq!(sqlite3_stricmp(c"aBc".as_ptr(), c"AbC".as_ptr()), 0);
        assert!(sqlite3_strnicmp(c"abcd".as_ptr(), c"ABxx".as_ptr(), 3) < 0);
        assert_eq!(sqlite3_strglob(c"a*c".as_ptr(), c"abc".as_ptr()), 0);
        assert_eq!(sqlite3_strlike(c"A%".as_ptr(), c"abc".as_ptr(), 0), 0);
        assert_eq!(sqlite3_complete(c"select 1;".as_ptr()), 1);
        assert_eq!(text(sqlite3_libversion()), iolite_version_of_sqlite());
        let mut db = null_mut();
        let name = c"file:x?mode=memory&key=value";
        assert_eq!(sqlite3_open_v2(name.as_ptr(), &mut db, 6 | 0x40, null()), 0);
        let f = sqlite3_db_filename(db, c"main".as_ptr());
        assert_eq!(text(sqlite3_uri_parameter(f, c"key".as_ptr())), "value");
        assert_eq!(text(sqlite3_uri_key(f, 0)), "mode");
        sqlite3_close(db);
    }
}

fn iolite_version_of_sqlite() -> &'static str {
    "3.53.4"
}

#[cfg(target_arch = "x86_64")]
#[test]
fn formats() {
    unsafe extern "C" {
        fn sqlite3_mprintf(f: *const c_char, ...) -> *mut c_char;
        fn sqlite3_snprintf(n: c_int, to: *mut c_char, f: *const c_char, ...) -> *mut c_char;
    }
    unsafe {
        let f = c"%d %s %lld %.2f %q %Q %5d|%-5s|%x %c %.*s %u %f %f %f %f %f %f %f %f";
        let p = sqlite3_mprintf(
            f.as_ptr(),
            -5 as c_int,
            c"str".as_ptr(),
            1i64 << 40,
            1.005f64 + 0.12,
            c"it's".as_ptr(),
            null::<c_char>(),
            42 as c_int,
            c"ab".as_ptr(),
            255 as c_int,
            'z' as c_int,
            2 as c_int,
            c"xyz".as_ptr(),
            u32::MAX,
            1.0f64,
            2.0f64,
            3.0f64,
            4.0f64,
            5.0f64,
            6.0f64,
            7.0f64,
            8.5f64,
        );
        let expected = "-5 str 1099511627776 1.13 it''s NULL    42|ab   |ff z xy 4294967295 1.000000 2.000000 \
                        3.000000 4.000000 5.000000 6.000000 7.000000 8.500000";
        assert_eq!(text(p), expected);
        sqlite3_free(p as *mut c_void);
        let mut buffer = [0 as c_char; 6];
        sqlite3_snprintf(6, buffer.as_mut_ptr(), c"%s-%d".as_ptr(), c"abc".as_ptr(), 12345 as c_int);
        assert_eq!(text(buffer.as_ptr()), "abc-1");
    }
}

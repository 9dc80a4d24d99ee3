//! Results: the columns of a statement and the values of its present row.

use crate::connection::Db;
use crate::handle::Answer;
use crate::pointer::POINTER;
use crate::statement::{Body, Column, Stmt, with_stmt};
use crate::value::{CValue, kind};
use iolite::engine::{Code, Encoding, Value};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null;

/// As [`value_as_is`]; a pointer of the program's is NULL.
#[inline]
unsafe fn value<T: Answer>(s: *mut Stmt, i: c_int, none: T, f: impl FnOnce(&Body, &Value) -> T) -> T {
    value_as_is(s, i, none, |st, v| match v {
        Value::Blob(_, POINTER) => f(st, &Value::Null),
        v => f(st, v),
    })
}

/// Runs `f` on the value of column `i` of the present row; `none` if there is none. `f` calls nothing of the program's.
#[inline]
unsafe fn value_as_is<T: Answer>(s: *mut Stmt, i: c_int, none: T, f: impl FnOnce(&Body, &Value) -> T) -> T {
    with_stmt(s, none, |d: &Db, st| {
        if let Ok(inner) = st.inner.try_borrow()
            && st.has_row.get()
            && let Some(v) = inner.row().get(i as usize)
        {
            return f(st, v);
        }
        d.fail_code(crate::RANGE);
        st.mask_failure(d);
        none
    })
}

/// As [`value`], with the buffers in which C sees the column. Where there is no memory for its text, the connection fails with that.
unsafe fn column<T: Answer>(s: *mut Stmt, i: c_int, none: T, f: impl FnOnce(&Value, &mut Column) -> T) -> T {
    let mut short = false;
    let answer = value(s, i, none, |st, v| {
        let mut columns = st.columns.borrow_mut();
        if columns.len() <= i as usize {
            columns.resize_with(i as usize + 1, Column::default);
        }
        let c = &mut columns[i as usize];
        c.used = true;
        if matches!(v, Value::Blob(..)) {
            c.buffers.encoding = encoding_of(st);
        }
        let answer = f(v, c);
        short = std::mem::take(&mut c.buffers.short);
        answer
    });
    if short {
        with_stmt(s, (), |d, _| {
            d.fail(&Code::Nomem.into());
        });
    }
    answer
}

fn encoding_of(st: &Body) -> Encoding {
    st.inner.try_borrow().map_or_else(|_| Default::default(), |i| i.connection().encoding())
}

/// As [`column`], for what asks for UTF-16.
unsafe fn wide_column<T: Answer>(
    s: *mut Stmt,
    i: c_int,
    none: T,
    f: impl FnOnce(&Value, &mut Column) -> T,
) -> T {
    let mut encoding = Encoding::Utf8;
    with_stmt(s, (), |_, st| encoding = encoding_of(st));
    column(s, i, none, |v, c| {
        c.buffers.encoding = encoding;
        c.buffers.characters = encoding == Encoding::Utf8;
        f(v, c)
    })
}

macro_rules! columns {
    ($($name:ident by $column:ident($v:ident, $c:ident) -> $t:ty, $none:expr => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(s: *mut Stmt, i: c_int) -> $t {
            $column(s, i, $none, |$v, $c| $body)
        })*
    };
}

macro_rules! plain_columns {
    ($($name:ident($v:ident) -> $t:ty, $none:expr => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(s: *mut Stmt, i: c_int) -> $t {
            value(s, i, $none, |_, $v| $body)
        })*
    };
}

plain_columns! {
    sqlite3_column_type(v) -> c_int, 5 => kind(v);
    sqlite3_column_int(v) -> c_int, 0 => v.to_int() as c_int;
    sqlite3_column_int64(v) -> i64, 0 => v.to_int();
    sqlite3_column_double(v) -> f64, 0.0 => v.to_real();
}

columns! {
    sqlite3_column_text by column(v, c) -> *const c_uchar, null() => c.buffers.text(v);
    sqlite3_column_text16 by wide_column(v, c) -> *const c_void, null() => c.buffers.wide(v);
    // The row itself keeps the bytes alive until the next step.
    sqlite3_column_blob by column(v, c) -> *const c_void, null() => c.buffers.blob(v);
    sqlite3_column_bytes by column(v, c) -> c_int, 0 => c.buffers.bytes(v);
    sqlite3_column_bytes16 by wide_column(v, c) -> c_int, 0 => c.buffers.bytes16(v);
}

/// The NULL that a column is which is not there.
fn null_value() -> *mut CValue {
    static NONE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *NONE.get_or_init(|| Box::into_raw(Box::<CValue>::default()) as usize) as *mut CValue
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_column_value(s: *mut Stmt, i: c_int) -> *mut CValue {
    let p = column(s, i, null(), |_, _| null());
    let p = value_as_is(s, i, p, |st, v| {
        let c = &mut st.columns.borrow_mut()[i as usize];
        &**c.value.get_or_insert_with(|| Box::new(CValue::new(v.clone()))) as *const CValue
    });
    if p.is_null() { null_value() } else { p as *mut CValue }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_column_count(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.column_count() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_data_count(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| match st.inner.try_borrow() {
        Ok(i) if st.has_row.get() => i.row().len() as c_int,
        _ => 0,
    })
}

/// Keeps a text with the statement and answers a pointer to it, `zeros` zero bytes behind it. The same text again is
/// the same pointer, so that names stay where they are.
pub(crate) fn keep(st: &Body, key: (usize, u8), mut text: Vec<u8>, zeros: usize) -> *const c_char {
    text.extend(std::iter::repeat_n(0, zeros));
    let mut names = st.names.borrow_mut();
    match names.iter().position(|n| n.0 == key) {
        Some(i) if names[i].1 == text => names[i].1.as_ptr() as *const c_char,
        Some(i) => {
            names[i].1 = text;
            names[i].1.as_ptr() as *const c_char
        }
        None => {
            let p = text.as_ptr();
            names.push((key, text));
            p as *const c_char
        }
    }
}

unsafe fn described(
    s: *mut Stmt,
    i: c_int,
    kind: u8,
    wide: bool,
    f: fn(&iolite::engine::ColumnMeta) -> Option<String>,
) -> *const c_char {
    with_stmt(s, null(), |_, st| {
        let found = match st.inner.try_borrow() {
            Ok(inner) => usize::try_from(i).ok().and_then(|i| inner.columns().get(i)).and_then(f),
            Err(_) => None,
        };
        match found {
            Some(t) if wide => {
                let t = crate::text::to_utf16(&iolite_base::raw_text::decode(&t));
                keep(st, (i as usize, kind | 0x80), t, 0)
            }
            Some(t) => keep(st, (i as usize, kind), iolite_base::raw_text::decode(&t).into_owned(), 1),
            None => null(),
        }
    })
}

macro_rules! descriptions {
    ($($name:ident $name16:ident $key:literal $f:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(s: *mut Stmt, i: c_int) -> *const c_char {
            described(s, i, $key, false, $f)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name16(s: *mut Stmt, i: c_int) -> *const c_void {
            described(s, i, $key, true, $f) as *const c_void
        })*
    };
}

descriptions! {
    sqlite3_column_name sqlite3_column_name16 b'c' |c| Some(c.name.to_string());
    sqlite3_column_decltype sqlite3_column_decltype16 b'd' |c| c.decltype.as_ref().map(|t| t.to_string());
    sqlite3_column_database_name sqlite3_column_database_name16 b'b' |c| c.origin.as_ref().map(|o| o.0.to_string());
    sqlite3_column_table_name sqlite3_column_table_name16 b't' |c| c.origin.as_ref().map(|o| o.1.to_string());
    sqlite3_column_origin_name sqlite3_column_origin_name16 b'o' |c| c.origin.as_ref().map(|o| o.2.to_string());
}

//! `sqlite3_bind_*`: values of parameters, and who frees what they were given in.

use crate::connection::{Destructor, destroy, text_option};
use crate::statement::{Stmt, clear_pointers, owner, with_stmt};
use crate::value::{CValue, from_encoding, given, zeroblob};
use crate::{MISUSE, OK, RANGE, TOOBIG};
use iolite::engine::Value;
use iolite_base::raw_text;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_clear_bindings(s: *mut Stmt) -> c_int {
    with_stmt(s, MISUSE, |_, st| match st.inner.try_borrow_mut() {
        Ok(mut i) => {
            i.clear_bindings();
            clear_pointers(st, None);
            OK
        }
        Err(_) => MISUSE,
    })
}

unsafe fn bind(s: *mut Stmt, i: c_int, v: iolite::Result<Value>) -> c_int {
    let length = if let Ok(Value::Text(b, _) | Value::Blob(b, _)) = &v { b.len() } else { 0 };
    put(s, i, length, |to| {
        *to = v?;
        Ok(())
    })
}

/// Has `f` write a value of so many bytes to the place of a parameter.
#[inline]
unsafe fn put(
    s: *mut Stmt,
    i: c_int,
    length: usize,
    f: impl FnOnce(&mut Value) -> iolite::Result<()>,
) -> c_int {
    with_stmt(s, MISUSE, |d, st| {
        let Ok(mut inner) = st.inner.try_borrow_mut() else { return d.fail_code(MISUSE) };
        if st.ran.get() || inner.is_busy() {
            crate::log::log(MISUSE, || {
                [b"bind on a busy prepared statement: [", st.sql.to_bytes(), b"]"].concat()
            });
            return d.fail_code(MISUSE);
        }
        if i < 1 {
            return d.fail_code(RANGE);
        }
        let r = inner.binding(i as usize, length).and_then(f);
        drop(inner);
        clear_pointers(st, Some(i as usize));
        match r {
            Ok(()) => d.note(OK),
            Err(e) => d.fail_code(e.code().number() as c_int),
        }
    })
}

unsafe fn bind_bytes(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: i64,
    f: Option<Destructor>,
    make: impl FnOnce(*const c_void, i64) -> iolite::Result<Value>,
) -> c_int {
    if p.is_null() {
        return bind(s, i, Ok(Value::Null));
    }
    let rc = if n > i32::MAX as i64 {
        with_stmt(s, MISUSE, |d, _| d.fail_code(TOOBIG))
    } else {
        bind(s, i, make(p, n))
    };
    destroy(f, p);
    rc
}

/// As [`bind_bytes`], for bytes that are taken as they are: they go where the value before had its own.
unsafe fn bind_as_is(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: i64,
    f: Option<Destructor>,
    set: fn(&mut Value, &[u8]) -> iolite::Result<()>,
) -> c_int {
    if p.is_null() {
        return bind(s, i, Ok(Value::Null));
    }
    let rc = if n > i32::MAX as i64 {
        with_stmt(s, MISUSE, |d, _| d.fail_code(TOOBIG))
    } else {
        let bytes = given(p, n);
        put(s, i, bytes.len(), |to| set(to, bytes))
    };
    destroy(f, p);
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text(
    s: *mut Stmt,
    i: c_int,
    p: *const c_char,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    bind_as_is(s, i, p as *const c_void, n as i64, f, Value::set_text)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text64(
    s: *mut Stmt,
    i: c_int,
    p: *const c_char,
    n: u64,
    f: Option<Destructor>,
    encoding: c_uchar,
) -> c_int {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    if !matches!(encoding, 2..=4) {
        return bind_as_is(s, i, p as *const c_void, n, f, Value::set_text);
    }
    bind_bytes(s, i, p as *const c_void, n, f, |p, n| from_encoding(p, n, encoding))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text16(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    bind_bytes(s, i, p, n as i64, f, |p, n| Value::text(crate::text::from_utf16(p, n)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_blob(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    if n < 0 {
        return MISUSE;
    }
    bind_as_is(s, i, p, n as i64, f, Value::set_blob)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_blob64(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: u64,
    f: Option<Destructor>,
) -> c_int {
    bind_as_is(s, i, p, i64::try_from(n).unwrap_or(i64::MAX), f, Value::set_blob)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_int(s: *mut Stmt, i: c_int, v: c_int) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Int(v as i64);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_int64(s: *mut Stmt, i: c_int, v: i64) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Int(v);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_double(s: *mut Stmt, i: c_int, v: f64) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::real(v);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_null(s: *mut Stmt, i: c_int) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Null;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_value(s: *mut Stmt, i: c_int, v: *const CValue) -> c_int {
    // A copy: the value may be another connection's.
    bind(s, i, v.as_ref().map_or(Ok(Value::Null), |v| v.copy()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_zeroblob(s: *mut Stmt, i: c_int, n: c_int) -> c_int {
    sqlite3_bind_zeroblob64(s, i, n.max(0) as u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_zeroblob64(s: *mut Stmt, i: c_int, n: u64) -> c_int {
    match zeroblob(n) {
        // Whatever the parameter; the connection's error stays.
        Err(e) => with_stmt(s, MISUSE, |d, _| d.mask(e.code().number() as i32)),
        v => {
            let rc = bind(s, i, v);
            if rc == OK {
                with_stmt(s, (), |_, st| st.zeroed.borrow_mut().push(i as usize));
            }
            rc
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_pointer(
    s: *mut Stmt,
    i: c_int,
    p: *mut c_void,
    name: *const c_char,
    f: Option<Destructor>,
) -> c_int {
    // It is released when another value is bound, or with the statement.
    let rc = bind(s, i, crate::pointer::of_pointer(p, crate::connection::bytes(name)));
    if rc != OK {
        destroy(f, p);
        return rc;
    }
    with_stmt(s, MISUSE, |_, st| {
        st.pointers.borrow_mut().push((i as usize, p, f));
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_count(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.parameter_count() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_name(s: *mut Stmt, i: c_int) -> *const c_char {
    with_stmt(s, null(), |_, st| {
        let name = st.inner.try_borrow().ok();
        let name = name.and_then(|n| n.parameter_name(i.max(0) as usize).map(str::to_string));
        name.map_or(null(), |n| {
            crate::column::keep(st, (i as usize, b'p'), raw_text::decode(&n).into_owned(), 1)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_index(s: *mut Stmt, name: *const c_char) -> c_int {
    let Some(name) = text_option(name) else { return 0 };
    with_stmt(s, 0, |_, st| {
        st.inner.try_borrow().map_or(0, |i| i.parameter_index(&name).unwrap_or(0) as c_int)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_transfer_bindings(from: *mut Stmt, to: *mut Stmt) -> c_int {
    let db = owner(from);
    if db != owner(to) {
        // Values stay with their connection.
        return MISUSE;
    }
    let count = with_stmt(to, -1, |_, st| st.inner.try_borrow().map_or(-1, |i| i.parameter_count() as c_int));
    with_stmt(from, MISUSE, |d, st| {
        let values = match st.inner.try_borrow() {
            Ok(i) => i.bindings().to_vec(),
            Err(_) => return d.fail_code(MISUSE),
        };
        if values.len() as c_int != count {
            return crate::ERROR;
        }
        for (i, v) in values.into_iter().enumerate() {
            bind(to, i as c_int + 1, Ok(v));
        }
        sqlite3_clear_bindings(from)
    })
}

//! A library with SQLite's C functions: statements are prepared, bound, stepped and reset as a program in C does it.

use iolite_bench::engine::{Database, Engine, Query, Result, Value};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

macro_rules! calls {
    ($($name:ident: fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// The calls, looked up once.
        #[derive(Clone, Copy)]
        struct Calls { $($name: unsafe extern "C" fn($($arg),*) -> $ret,)* }
        impl Calls {
            fn load(l: &'static Library) -> Result<Calls> {
                // SAFETY: the types are those of SQLite's documentation.
                unsafe { Ok(Calls { $($name: super::symbol(l, concat!("sqlite3_", stringify!($name)))?,)* }) }
            }
        }
    };
}

calls! {
    libversion: fn() -> *const c_char;
    open: fn(*const c_char, *mut Handle) -> c_int;
    close_v2: fn(Handle) -> c_int;
    errmsg: fn(Handle) -> *const c_char;
    exec: fn(Handle, *const c_char, *const c_void, *mut c_void, *mut *mut c_char) -> c_int;
    prepare_v2: fn(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int;
    finalize: fn(Handle) -> c_int;
    bind_null: fn(Handle, c_int) -> c_int;
    bind_int64: fn(Handle, c_int, i64) -> c_int;
    bind_double: fn(Handle, c_int, f64) -> c_int;
    bind_text: fn(Handle, c_int, *const c_char, c_int, isize) -> c_int;
    bind_blob: fn(Handle, c_int, *const c_void, c_int, isize) -> c_int;
    step: fn(Handle) -> c_int;
    reset: fn(Handle) -> c_int;
    column_count: fn(Handle) -> c_int;
    column_type: fn(Handle, c_int) -> c_int;
    column_int64: fn(Handle, c_int) -> i64;
    column_double: fn(Handle, c_int) -> f64;
    column_bytes: fn(Handle, c_int) -> c_int;
    column_blob: fn(Handle, c_int) -> *const c_void;
}

/// The library.
pub struct Sqlite(Calls);

struct Connection {
    calls: Calls,
    db: Handle,
}

struct Statement<'d> {
    connection: &'d Connection,
    stmt: Handle,
}

const ROW: c_int = 100;
const DONE: c_int = 101;
/// The library copies what it is given.
const TRANSIENT: isize = -1;

impl Sqlite {
    /// Opens the library.
    pub fn load(path: &Path) -> Result<Sqlite> {
        let l = super::open(&[path.to_string_lossy().into_owned()])?;
        Ok(Sqlite(Calls::load(l)?))
    }
}

fn terminated(text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| e.to_string().into())
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "C library"
    }

    fn version(&self) -> String {
        // SAFETY: the call has no conditions, its text is static.
        unsafe { CStr::from_ptr((self.0.libversion)()) }.to_string_lossy().into_owned()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        let name = terminated(&path.to_string_lossy())?;
        let mut db = ptr::null_mut();
        // SAFETY: the name ends with NUL, the place is valid; the handle is closed once.
        let rc = unsafe { (self.0.open)(name.as_ptr(), &mut db) };
        let c = Connection { calls: self.0, db };
        c.check(rc)?;
        Ok(Box::new(c))
    }
}

impl Connection {
    fn check(&self, rc: c_int) -> Result<()> {
        if rc == 0 {
            return Ok(());
        }
        // SAFETY: the connection is open; the text lives until its next call.
        let text = unsafe { CStr::from_ptr((self.calls.errmsg)(self.db)) };
        Err(text.to_string_lossy().into_owned().into())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: closed once; statements borrow the connection, so none is left.
        unsafe { (self.calls.close_v2)(self.db) };
    }
}

impl Database for Connection {
    fn batch(&self, sql: &str) -> Result<()> {
        let text = terminated(sql)?;
        // SAFETY: the connection is open, the text ends with NUL; rows and messages are not asked for.
        let rc = unsafe {
            (self.calls.exec)(self.db, text.as_ptr(), ptr::null(), ptr::null_mut(), ptr::null_mut())
        };
        self.check(rc)
    }

    fn prepare<'d>(&'d self, sql: &str) -> Result<Box<dyn Query + 'd>> {
        let mut stmt = ptr::null_mut();
        // SAFETY: the connection is open, the text is that long, the place is valid; the handle is freed once.
        let rc = unsafe {
            let n = c_int::try_from(sql.len()).unwrap_or(c_int::MAX);
            (self.calls.prepare_v2)(self.db, sql.as_ptr().cast(), n, &mut stmt, ptr::null_mut())
        };
        self.check(rc)?;
        Ok(Box::new(Statement { connection: self, stmt }))
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { (self.connection.calls.finalize)(self.stmt) };
    }
}

impl Statement<'_> {
    fn bind(&self, params: &[Value]) -> Result<()> {
        let c = &self.connection.calls;
        for (i, v) in (1..).zip(params) {
            let size = |b: &[u8]| c_int::try_from(b.len()).unwrap_or(c_int::MAX);
            // SAFETY: the statement is there, texts and blobs are that long and are copied.
            let rc = unsafe {
                match v {
                    Value::Null => (c.bind_null)(self.stmt, i),
                    Value::Int(n) => (c.bind_int64)(self.stmt, i, *n),
                    Value::Real(r) => (c.bind_double)(self.stmt, i, *r),
                    Value::Text(t) => (c.bind_text)(self.stmt, i, t.as_ptr().cast(), size(t), TRANSIENT),
                    Value::Blob(b) => (c.bind_blob)(self.stmt, i, b.as_ptr().cast(), size(b), TRANSIENT),
                }
            };
            self.connection.check(rc)?;
        }
        Ok(())
    }

    /// Runs with these parameters; `row` is called for each row.
    fn each(&self, params: &[Value], mut row: impl FnMut(&Self)) -> Result<()> {
        let c = &self.connection.calls;
        self.bind(params)?;
        loop {
            // SAFETY: the statement is there.
            match unsafe { (c.step)(self.stmt) } {
                ROW => row(self),
                DONE => break,
                rc => {
                    let failed = self.connection.check(rc);
                    // SAFETY: as above. What it answers is known already.
                    unsafe { (c.reset)(self.stmt) };
                    return failed;
                }
            }
        }
        // SAFETY: as above.
        self.connection.check(unsafe { (c.reset)(self.stmt) })
    }

    fn columns(&self) -> c_int {
        // SAFETY: the statement is there.
        unsafe { (self.connection.calls.column_count)(self.stmt) }
    }

    fn column(&self, i: c_int) -> Value {
        let c = &self.connection.calls;
        // SAFETY: the statement stands on a row that has this column; bytes live until the next step.
        unsafe {
            let bytes = || {
                let at: *const u8 = (c.column_blob)(self.stmt, i).cast();
                let n = (c.column_bytes)(self.stmt, i) as usize;
                if n == 0 { Vec::new() } else { std::slice::from_raw_parts(at, n).to_vec() }
            };
            match (c.column_type)(self.stmt, i) {
                1 => Value::Int((c.column_int64)(self.stmt, i)),
                2 => Value::Real((c.column_double)(self.stmt, i)),
                3 => Value::Text(bytes()),
                4 => Value::Blob(bytes()),
                _ => Value::Null,
            }
        }
    }

    fn sum_of(&self, i: c_int) -> i64 {
        let c = &self.connection.calls;
        // SAFETY: as in `column`.
        unsafe {
            match (c.column_type)(self.stmt, i) {
                1 => (c.column_int64)(self.stmt, i),
                2 => (c.column_double)(self.stmt, i) as i64,
                3 | 4 => (c.column_bytes)(self.stmt, i) as i64,
                _ => 0,
            }
        }
    }
}

impl Query for Statement<'_> {
    fn run(&mut self, params: &[Value]) -> Result<i64> {
        let mut sum = 0i64;
        self.each(params, |s| (0..s.columns()).for_each(|i| sum = sum.wrapping_add(s.sum_of(i))))?;
        Ok(sum)
    }

    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        let mut out = Vec::new();
        self.each(params, |s| out.push((0..s.columns()).map(|i| s.column(i)).collect()))?;
        Ok(out)
    }
}

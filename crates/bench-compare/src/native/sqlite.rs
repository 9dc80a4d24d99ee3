//! A library with SQLite's C functions, as far as preparing statements goes.

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
}

/// The library.
pub struct Sqlite(Calls);

struct Connection {
    calls: Calls,
    db: Handle,
}

struct Statement {
    calls: Calls,
    stmt: Handle,
}

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
        Ok(Box::new(Statement { calls: self.calls, stmt }))
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { (self.calls.finalize)(self.stmt) };
    }
}

impl Query for Statement {
    fn run(&mut self, _: &[Value]) -> Result<i64> {
        Err("statements are not run through this library".into())
    }

    fn rows(&mut self, _: &[Value]) -> Result<Vec<Vec<Value>>> {
        Err("statements are not run through this library".into())
    }
}

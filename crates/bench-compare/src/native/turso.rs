//! Turso by the C face of `bridges/turso`: connections, prepared statements.

use iolite_bench::engine::{Error, Kind, Result, Value};
use libloading::Library;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

const OK: i32 = 0;
const BUSY: i32 = 5;
const CONSTRAINT: i32 = 19;
const ROW: i32 = 100;
const DONE: i32 = 101;

macro_rules! calls {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The calls, looked up once.
        struct Calls { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl Calls {
            fn load(l: &'static Library) -> Result<Calls> {
                // SAFETY: the types are those of the bridge's functions.
                unsafe { Ok(Calls { $($name: super::symbol(l, concat!("iolite_turso_", stringify!($name)))?,)* }) }
            }
        }
    };
}

calls! {
    version: fn() -> *const c_char;
    error: fn() -> *const c_char;
    open: fn(*const c_char, usize, *mut Handle) -> i32;
    close: fn(Handle);
    execute: fn(Handle, *const c_char, usize) -> i32;
    prepare: fn(Handle, *const c_char, usize, *mut Handle) -> i32;
    finalize: fn(Handle);
    bind_null: fn(Handle, usize);
    bind_integer: fn(Handle, usize, i64);
    bind_real: fn(Handle, usize, f64);
    bind_text: fn(Handle, usize, *const c_char, usize) -> i32;
    bind_blob: fn(Handle, usize, *const c_void, usize);
    step: fn(Handle) -> i32;
    reset: fn(Handle) -> i32;
    column_count: fn(Handle) -> usize;
    column_type: fn(Handle, usize) -> i32;
    column_integer: fn(Handle, usize) -> i64;
    column_real: fn(Handle, usize) -> f64;
    column_bytes: fn(Handle, usize, *mut usize) -> *const c_void;
}

/// The library.
pub struct Api(Calls);

/// A database with its one connection.
pub struct Connection {
    api: &'static Api,
    db: Handle,
}

/// A prepared statement.
pub struct Statement<'c> {
    conn: &'c Connection,
    stmt: Handle,
}

impl Api {
    /// Opens the library.
    pub fn load(path: &Path) -> Result<&'static Api> {
        let l = super::open(&[path.to_string_lossy().into_owned()])?;
        Ok(Box::leak(Box::new(Api(Calls::load(l)?))))
    }

    fn text(p: *const c_char) -> String {
        // SAFETY: the bridge's texts end with NUL and live until the thread's next error.
        unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
    }

    /// Its version.
    pub fn version(&self) -> String {
        // SAFETY: the call has no conditions.
        Api::text(unsafe { (self.0.version)() })
    }

    fn check(&self, rc: i32) -> Result<()> {
        let kind = match rc {
            OK | ROW | DONE => return Ok(()),
            BUSY => Kind::Busy,
            CONSTRAINT => Kind::Constraint,
            _ => Kind::Other,
        };
        // SAFETY: the call has no conditions.
        Err(Error { kind, message: Api::text(unsafe { (self.0.error)() }) })
    }

    /// Opens a database.
    pub fn connect(&'static self, path: &str) -> Result<Connection> {
        let mut db = ptr::null_mut();
        // SAFETY: the path is that long, the place is valid; the handle is closed once.
        self.check(unsafe { (self.0.open)(path.as_ptr().cast(), path.len(), &mut db) })?;
        Ok(Connection { api: self, db })
    }
}

impl Connection {
    /// Runs statements.
    pub fn execute(&self, sql: &str) -> Result<()> {
        // SAFETY: the connection is open, the text is that long.
        self.api.check(unsafe { (self.api.0.execute)(self.db, sql.as_ptr().cast(), sql.len()) })
    }

    /// Prepares a statement.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let mut stmt = ptr::null_mut();
        let c = &self.api.0;
        // SAFETY: as above; the handle is freed once.
        self.api.check(unsafe { (c.prepare)(self.db, sql.as_ptr().cast(), sql.len(), &mut stmt) })?;
        Ok(Statement { conn: self, stmt })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: closed once; statements borrow the connection, so none is left.
        unsafe { (self.api.0.close)(self.db) };
    }
}

impl Statement<'_> {
    fn bind(&mut self, params: &[Value]) -> Result<()> {
        let (c, s) = (&self.conn.api.0, self.stmt);
        for (i, p) in params.iter().enumerate() {
            let i = i + 1;
            // SAFETY: the statement is open, what is bound is that long and copied.
            unsafe {
                match p {
                    Value::Null => (c.bind_null)(s, i),
                    Value::Int(n) => (c.bind_integer)(s, i, *n),
                    Value::Real(r) => (c.bind_real)(s, i, *r),
                    Value::Text(t) => self.conn.api.check((c.bind_text)(s, i, t.as_ptr().cast(), t.len()))?,
                    Value::Blob(b) => (c.bind_blob)(s, i, b.as_ptr().cast(), b.len()),
                }
            }
        }
        Ok(())
    }

    /// After an error the statement is made ready again; what it says then is what is already known.
    fn step(&mut self) -> Result<bool> {
        let c = &self.conn.api.0;
        // SAFETY: the statement is open.
        let rc = unsafe { (c.step)(self.stmt) };
        self.conn.api.check(rc).inspect_err(|_| {
            // SAFETY: as above.
            unsafe { (c.reset)(self.stmt) };
        })?;
        Ok(rc == ROW)
    }

    fn reset(&mut self) -> Result<()> {
        // SAFETY: the statement is open.
        self.conn.api.check(unsafe { (self.conn.api.0.reset)(self.stmt) })
    }

    /// Calls `f` with each value of the row at which the statement stands.
    #[inline]
    fn each(&self, f: &mut dyn FnMut(Cell<'_>)) {
        let (c, s) = (&self.conn.api.0, self.stmt);
        // SAFETY: the statement stands at a row; bytes live until the next step.
        unsafe {
            for i in 0..(c.column_count)(s) {
                f(match (c.column_type)(s, i) {
                    1 => Cell::Int((c.column_integer)(s, i)),
                    2 => Cell::Real((c.column_real)(s, i)),
                    k @ (3 | 4) => {
                        let mut n = 0;
                        let p = (c.column_bytes)(s, i, &mut n);
                        Cell::Bytes(std::slice::from_raw_parts(p.cast(), n), k == 4)
                    }
                    _ => Cell::Null,
                });
            }
        }
    }

    /// Runs; answers the sum over all values.
    pub fn run(&mut self, params: &[Value]) -> Result<i64> {
        self.bind(params)?;
        let mut sum = 0i64;
        while self.step()? {
            self.each(&mut |v| {
                sum = sum.wrapping_add(match v {
                    Cell::Null => 0,
                    Cell::Int(i) => i,
                    Cell::Real(r) => r as i64,
                    Cell::Bytes(b, _) => b.len() as i64,
                })
            });
        }
        self.reset()?;
        Ok(sum)
    }

    /// Runs; answers all rows.
    pub fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.bind(params)?;
        let mut out: Vec<Vec<Value>> = Vec::new();
        while self.step()? {
            let mut row = Vec::new();
            self.each(&mut |v| {
                row.push(match v {
                    Cell::Null => Value::Null,
                    Cell::Int(i) => Value::Int(i),
                    Cell::Real(r) => Value::Real(r),
                    Cell::Bytes(b, true) => Value::Blob(b.to_vec()),
                    Cell::Bytes(b, false) => Value::Text(b.to_vec()),
                })
            });
            out.push(row);
        }
        self.reset()?;
        Ok(out)
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once, while the connection is open.
        unsafe { (self.conn.api.0.finalize)(self.stmt) };
    }
}

/// One value of a row.
enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    /// Bytes, and whether they are a blob.
    Bytes(&'a [u8], bool),
}

//! DuckDB by its C API: databases, prepared statements, results read from vectors, the appender.

use iolite_bench::engine::{Error, Kind, Result, Value};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

/// `duckdb_result`; only its address and its copies are of interest.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawResult {
    deprecated: [u64; 3],
    pointers: [Handle; 3],
}

macro_rules! calls {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The calls, looked up once.
        struct Calls { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl Calls {
            fn load(l: &'static Library) -> Result<Calls> {
                // SAFETY: the types are those of DuckDB's C header.
                unsafe { Ok(Calls { $($name: super::symbol(l, concat!("duckdb_", stringify!($name)))?,)* }) }
            }
        }
    };
}

calls! {
    library_version: fn() -> *const c_char;
    create_config: fn(*mut Handle) -> i32;
    set_config: fn(Handle, *const c_char, *const c_char) -> i32;
    destroy_config: fn(*mut Handle);
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> i32;
    close: fn(*mut Handle);
    connect: fn(Handle, *mut Handle) -> i32;
    disconnect: fn(*mut Handle);
    query: fn(Handle, *const c_char, *mut RawResult) -> i32;
    destroy_result: fn(*mut RawResult);
    result_error: fn(*mut RawResult) -> *const c_char;
    column_count: fn(*mut RawResult) -> u64;
    column_type: fn(*mut RawResult, u64) -> u32;
    fetch_chunk: fn(RawResult) -> Handle;
    destroy_data_chunk: fn(*mut Handle);
    data_chunk_get_size: fn(Handle) -> u64;
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    prepare: fn(Handle, *const c_char, *mut Handle) -> i32;
    prepare_error: fn(Handle) -> *const c_char;
    destroy_prepare: fn(*mut Handle);
    bind_null: fn(Handle, u64) -> i32;
    bind_int64: fn(Handle, u64, i64) -> i32;
    bind_double: fn(Handle, u64, f64) -> i32;
    bind_varchar_length: fn(Handle, u64, *const c_char, u64) -> i32;
    bind_blob: fn(Handle, u64, *const c_void, u64) -> i32;
    execute_prepared: fn(Handle, *mut RawResult) -> i32;
    appender_create: fn(Handle, *const c_char, *const c_char, *mut Handle) -> i32;
    appender_end_row: fn(Handle) -> i32;
    appender_error: fn(Handle) -> *const c_char;
    appender_flush: fn(Handle) -> i32;
    appender_destroy: fn(*mut Handle) -> i32;
    append_null: fn(Handle) -> i32;
    append_int64: fn(Handle, i64) -> i32;
    append_double: fn(Handle, f64) -> i32;
    append_varchar_length: fn(Handle, *const c_char, u64) -> i32;
    append_blob: fn(Handle, *const c_void, u64) -> i32;
}

/// The library.
pub struct Api(Calls);

/// A database with its one connection.
pub struct Connection {
    api: &'static Api,
    db: Handle,
    conn: Handle,
}

/// A prepared statement.
pub struct Statement<'c> {
    conn: &'c Connection,
    stmt: Handle,
}

struct Rows<'c> {
    c: &'c Calls,
    raw: RawResult,
    types: Vec<u32>,
}

fn text(p: *const c_char) -> String {
    if p.is_null() {
        return "unknown error".into();
    }
    // SAFETY: DuckDB's messages are strings that end with NUL and live as long as their handle.
    unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
}

fn error(message: String) -> Error {
    let constraint = message.contains("Constraint Error");
    let busy = message.contains("Conflict");
    let kind = match (constraint, busy) {
        (true, _) => Kind::Constraint,
        (_, true) => Kind::Busy,
        _ => Kind::Other,
    };
    Error { kind, message }
}

fn c_string(s: &str) -> Result<CString> {
    CString::new(s).map_err(|_| "a text with NUL".into())
}

impl Api {
    /// Opens the library.
    pub fn load(path: &Path) -> Result<&'static Api> {
        let l = super::open(&[path.to_string_lossy().into_owned()])?;
        Ok(Box::leak(Box::new(Api(Calls::load(l)?))))
    }

    /// Its version.
    pub fn version(&self) -> String {
        // SAFETY: the library answers a static string.
        text(unsafe { (self.0.library_version)() })
    }

    /// Opens a database with this many threads.
    pub fn connect(&'static self, path: &str, threads: usize) -> Result<Connection> {
        let c = &self.0;
        let (name, key, value) = (c_string(path)?, c_string("threads")?, c_string(&threads.to_string())?);
        let (mut config, mut db, mut conn) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let mut message: *mut c_char = ptr::null_mut();
        // SAFETY: all places are valid and all strings end with NUL; handles are destroyed once.
        unsafe {
            (c.create_config)(&mut config);
            (c.set_config)(config, key.as_ptr(), value.as_ptr());
            let rc = (c.open_ext)(name.as_ptr(), &mut db, config, &mut message);
            (c.destroy_config)(&mut config);
            if rc != 0 {
                return Err(error(text(message)));
            }
            if (c.connect)(db, &mut conn) != 0 {
                (c.close)(&mut db);
                return Err("DuckDB does not connect".into());
            }
        }
        Ok(Connection { api: self, db, conn })
    }
}

impl Connection {
    /// Runs statements.
    pub fn execute(&self, sql: &str) -> Result<()> {
        let c = &self.api.0;
        let s = c_string(sql)?;
        let mut raw = RawResult { deprecated: [0; 3], pointers: [ptr::null_mut(); 3] };
        // SAFETY: the connection is open, `raw` is a valid place and is destroyed once, by `Rows`.
        let rc = unsafe { (c.query)(self.conn, s.as_ptr(), &mut raw) };
        let mut rows = Rows { c, raw, types: Vec::new() };
        // SAFETY: the message is asked for before the result is destroyed.
        if rc == 0 { Ok(()) } else { Err(error(text(unsafe { (c.result_error)(&mut rows.raw) }))) }
    }

    /// Prepares a statement.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let c = &self.api.0;
        let s = c_string(sql)?;
        let mut stmt = ptr::null_mut();
        // SAFETY: as above.
        let rc = unsafe { (c.prepare)(self.conn, s.as_ptr(), &mut stmt) };
        let st = Statement { conn: self, stmt };
        // SAFETY: the handle is valid, even of a failed statement.
        if rc == 0 { Ok(st) } else { Err(error(text(unsafe { (c.prepare_error)(st.stmt) }))) }
    }

    /// Appends rows to a table; answers how many.
    pub fn append(&self, table: &str, source: &mut dyn FnMut(&mut Vec<Value>) -> bool) -> Result<u64> {
        let c = &self.api.0;
        let name = c_string(table)?;
        let mut a = ptr::null_mut();
        let mut n = 0;
        let mut row = Vec::new();
        // SAFETY: the connection is open; pointers to values are used during the calls only; the appender is destroyed once.
        unsafe {
            let mut rc = (c.appender_create)(self.conn, ptr::null(), name.as_ptr(), &mut a);
            while rc == 0 && source(&mut row) {
                for v in &row {
                    rc |= match v {
                        Value::Null => (c.append_null)(a),
                        Value::Int(i) => (c.append_int64)(a, *i),
                        Value::Real(r) => (c.append_double)(a, *r),
                        Value::Text(t) => (c.append_varchar_length)(a, t.as_ptr().cast(), t.len() as u64),
                        Value::Blob(b) => (c.append_blob)(a, b.as_ptr().cast(), b.len() as u64),
                    };
                }
                rc |= (c.appender_end_row)(a);
                row.clear();
                n += 1;
            }
            if rc == 0 {
                rc = (c.appender_flush)(a);
            }
            let message = if rc == 0 { String::new() } else { text((c.appender_error)(a)) };
            (c.appender_destroy)(&mut a);
            if rc == 0 { Ok(n) } else { Err(error(message)) }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: both handles are open and closed once; statements borrow the connection, so none is left.
        unsafe {
            (self.api.0.disconnect)(&mut self.conn);
            (self.api.0.close)(&mut self.db);
        }
    }
}

impl Statement<'_> {
    fn execute(&mut self, params: &[Value]) -> Result<Rows<'_>> {
        let c = &self.conn.api.0;
        let mut raw = RawResult { deprecated: [0; 3], pointers: [ptr::null_mut(); 3] };
        // SAFETY: the statement is valid; DuckDB copies what is bound; the result is destroyed once, by `Rows`.
        unsafe {
            for (i, p) in params.iter().enumerate() {
                let i = i as u64 + 1;
                let rc = match p {
                    Value::Null => (c.bind_null)(self.stmt, i),
                    Value::Int(n) => (c.bind_int64)(self.stmt, i, *n),
                    Value::Real(r) => (c.bind_double)(self.stmt, i, *r),
                    Value::Text(t) => {
                        (c.bind_varchar_length)(self.stmt, i, t.as_ptr().cast(), t.len() as u64)
                    }
                    Value::Blob(b) => (c.bind_blob)(self.stmt, i, b.as_ptr().cast(), b.len() as u64),
                };
                if rc != 0 {
                    return Err(format!("parameter {i} cannot be bound").into());
                }
            }
            let rc = (c.execute_prepared)(self.stmt, &mut raw);
            let mut rows = Rows { c, raw, types: Vec::new() };
            if rc != 0 {
                return Err(error(text((c.result_error)(&mut rows.raw))));
            }
            let n = (c.column_count)(&mut rows.raw);
            rows.types = (0..n).map(|i| (c.column_type)(&mut rows.raw, i)).collect();
            Ok(rows)
        }
    }

    /// Runs; answers the sum over all values.
    pub fn run(&mut self, params: &[Value]) -> Result<i64> {
        let mut sum = 0i64;
        self.execute(params)?.each(&mut |_, _, v| {
            sum = sum.wrapping_add(match v {
                Cell::Null => 0,
                Cell::Int(i) => i,
                Cell::Real(r) => r as i64,
                Cell::Bytes(b, _) => b.len() as i64,
            })
        })?;
        Ok(sum)
    }

    /// Runs; answers all rows.
    pub fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        let mut out: Vec<Vec<Value>> = Vec::new();
        self.execute(params)?.each(&mut |row, _, v| {
            if out.len() <= row {
                out.push(Vec::new());
            }
            out[row].push(match v {
                Cell::Null => Value::Null,
                Cell::Int(i) => Value::Int(i),
                Cell::Real(r) => Value::Real(r),
                Cell::Bytes(b, true) => Value::Blob(b.to_vec()),
                Cell::Bytes(b, false) => Value::Text(b.to_vec()),
            });
        })?;
        Ok(out)
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once, while the connection is open.
        unsafe { (self.conn.api.0.destroy_prepare)(&mut self.stmt) };
    }
}

/// One value in a vector.
enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    /// Bytes, and whether they are a blob.
    Bytes(&'a [u8], bool),
}

impl Rows<'_> {
    /// Calls `f` with row, column and value, row by row.
    fn each(&mut self, f: &mut dyn FnMut(usize, usize, Cell<'_>)) -> Result<()> {
        let c = self.c;
        let mut first = 0;
        loop {
            // SAFETY: the result is alive; a chunk is destroyed once, after its vectors were read.
            unsafe {
                let mut chunk = (c.fetch_chunk)(self.raw);
                if chunk.is_null() {
                    return Ok(());
                }
                let n = (c.data_chunk_get_size)(chunk) as usize;
                let vectors: Vec<_> = (0..self.types.len())
                    .map(|i| {
                        let v = (c.data_chunk_get_vector)(chunk, i as u64);
                        ((c.vector_get_data)(v).cast::<u8>(), (c.vector_get_validity)(v), self.types[i])
                    })
                    .collect();
                let mut bad = None;
                for row in 0..n {
                    for (k, (data, valid, kind)) in vectors.iter().enumerate() {
                        let there = valid.is_null() || *valid.add(row / 64) >> (row % 64) & 1 == 1;
                        match if there { cell(*data, row, *kind) } else { Some(Cell::Null) } {
                            Some(v) => f(first + row, k, v),
                            None => bad = Some(*kind),
                        }
                    }
                }
                (c.destroy_data_chunk)(&mut chunk);
                if let Some(kind) = bad {
                    return Err(format!("a column of DuckDB's type {kind} cannot be read").into());
                }
                first += n;
            }
        }
    }
}

/// A value of a vector by DuckDB's type numbers.
///
/// # Safety
/// `data` is the data of a flat vector of that type with more than `row` entries.
unsafe fn cell<'a>(data: *const u8, row: usize, kind: u32) -> Option<Cell<'a>> {
    // SAFETY: the caller's promise; the layouts are those of DuckDB's C header.
    unsafe {
        Some(match kind {
            1 | 6 => Cell::Int(*data.add(row) as i64),
            2 => Cell::Int(*data.cast::<i8>().add(row) as i64),
            3 => Cell::Int(*data.cast::<i16>().add(row) as i64),
            4 => Cell::Int(*data.cast::<i32>().add(row) as i64),
            5 | 9 => Cell::Int(*data.cast::<i64>().add(row)),
            7 => Cell::Int(*data.cast::<u16>().add(row) as i64),
            8 => Cell::Int(*data.cast::<u32>().add(row) as i64),
            10 => Cell::Real(*data.cast::<f32>().add(row) as f64),
            11 => Cell::Real(*data.cast::<f64>().add(row)),
            // 128 bits; sums of the workloads fit in 64.
            16 => {
                let p = data.cast::<i64>().add(row * 2);
                let (lo, hi) = (*p, *p.add(1));
                if hi == lo >> 63 {
                    Cell::Int(lo)
                } else {
                    Cell::Real(hi as f64 * 18_446_744_073_709_551_616.0 + lo as u64 as f64)
                }
            }
            17 | 18 => {
                let s = data.add(row * 16);
                let len = *s.cast::<u32>() as usize;
                let p = if len <= 12 { s.add(4) } else { *s.add(8).cast::<*const u8>() };
                Cell::Bytes(std::slice::from_raw_parts(p, len), kind == 18)
            }
            _ => return None,
        })
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once.
        unsafe { (self.c.destroy_result)(&mut self.raw) };
    }
}

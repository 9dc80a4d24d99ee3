//! Stock SQLite, pinned, as the oracle of the comparing tools.
//!
//! A small safe wrapper over the bundled library: open, execute, prepare, bind, step, columns, errors. Its compile options
//! come from `.cargo/config.toml` (`LIBSQLITE3_FLAGS`), so that it behaves as a distribution's build does. No binary
//! that links this crate may link iolite's C library.

use libsqlite3_sys as ffi;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_int};
use std::ptr;

/// A value of stock SQLite.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// An error: extended result code and message.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Extended result code.
    pub code: i32,
    /// Message.
    pub message: String,
}

/// A connection.
pub struct Connection {
    db: *mut ffi::sqlite3,
    /// What `limit_steps` counts down, at a fixed address.
    left: Box<UnsafeCell<i64>>,
}

/// A prepared statement.
pub struct Statement<'c> {
    conn: &'c Connection,
    stmt: *mut ffi::sqlite3_stmt,
}

/// A backup in the making, into another connection's main database.
pub struct Backup<'c> {
    backup: *mut ffi::sqlite3_backup,
    to: &'c Connection,
}

/// An open text or blob.
pub struct Blob<'c> {
    conn: &'c Connection,
    blob: *mut ffi::sqlite3_blob,
}

/// The library's version.
pub fn version() -> String {
    // SAFETY: the library answers a static string.
    unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) }.to_string_lossy().into_owned()
}

impl Connection {
    /// Opens a database.
    pub fn open(name: &str) -> Result<Connection, Error> {
        let name = CString::new(name).expect("a file name without NUL");
        let mut db = ptr::null_mut();
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
        // SAFETY: `name` ends with NUL and `db` is a valid place for the handle.
        let rc = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut db, flags, ptr::null()) };
        let c = Connection { db, left: Box::new(UnsafeCell::new(0)) };
        if rc != ffi::SQLITE_OK {
            return Err(c.error());
        }
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_extended_result_codes(c.db, 1) };
        Ok(c)
    }

    fn error(&self) -> Error {
        // SAFETY: the handle is valid (errors of a failed open are kept in it).
        unsafe {
            Error {
                code: ffi::sqlite3_extended_errcode(self.db),
                message: CStr::from_ptr(ffi::sqlite3_errmsg(self.db)).to_string_lossy().into_owned(),
            }
        }
    }

    /// Prepares the first statement of `sql`; answers it and the length of its text. `None`: only space.
    pub fn prepare_next(&self, sql: &str) -> Result<Option<(Statement<'_>, usize)>, Error> {
        let mut stmt = ptr::null_mut();
        let mut tail = ptr::null();
        let start = sql.as_ptr().cast();
        // SAFETY: the text is given with its length; `stmt` and `tail` are valid places.
        let rc = unsafe { ffi::sqlite3_prepare_v2(self.db, start, sql.len() as c_int, &mut stmt, &mut tail) };
        if rc != ffi::SQLITE_OK {
            return Err(self.error());
        }
        let used = tail as usize - start as usize;
        if stmt.is_null() {
            return Ok(None);
        }
        Ok(Some((Statement { conn: self, stmt }, used)))
    }

    /// Prepares one statement.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>, Error> {
        self.prepare_next(sql)?
            .map(|s| s.0)
            .ok_or(Error { code: ffi::SQLITE_MISUSE, message: "not a statement".into() })
    }

    /// Runs all statements of a text.
    pub fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        let mut rest = sql;
        while let Some((mut s, used)) = self.prepare_next(rest)? {
            while s.step()? {}
            rest = &rest[used..];
        }
        Ok(())
    }

    /// All rows of a query.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, Error> {
        let mut s = self.prepare(sql)?;
        let mut out = Vec::new();
        while s.step()? {
            out.push(s.row());
        }
        Ok(out)
    }

    /// Rows changed by the last statement.
    pub fn changes(&self) -> i64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_changes64(self.db) }
    }

    /// Rows changed since opening.
    pub fn total_changes(&self) -> i64 {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_total_changes64(self.db) }
    }

    /// The rowid of the last INSERT.
    pub fn last_insert_rowid(&self) -> i64 {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_last_insert_rowid(self.db) }
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_get_autocommit(self.db) != 0 }
    }

    /// Interrupts statements once `steps` thousand instructions have run in all; set anew before each statement.
    pub fn limit_steps(&self, steps: i64) {
        extern "C" fn tick(left: *mut std::ffi::c_void) -> c_int {
            // SAFETY: the pointer is the counter that the connection owns; only this thread uses it.
            unsafe {
                let left = left.cast::<i64>();
                *left -= 1;
                (*left < 0) as c_int
            }
        }
        // SAFETY: the counter lives as long as the connection, whose handle is open.
        unsafe {
            *self.left.get() = steps;
            ffi::sqlite3_progress_handler(self.db, 1000, Some(tick), self.left.get().cast());
        }
    }

    /// Loads an extension out of a library.
    pub fn load_extension(&self, path: &str) -> Result<(), Error> {
        let name = CString::new(path).map_err(|_| Error { code: 1, message: "a zero in a name".into() })?;
        // SAFETY: an open connection and a string that lives through the call; no message is asked for.
        let code = unsafe {
            ffi::sqlite3_enable_load_extension(self.db, 1);
            ffi::sqlite3_load_extension(self.db, name.as_ptr(), ptr::null(), ptr::null_mut())
        };
        if code == 0 { Ok(()) } else { Err(Error { code, message: format!("cannot load {path}") }) }
    }

    /// Reserves so many bytes of each page in a database that is still empty.
    pub fn reserve(&self, mut bytes: i32) {
        let arg = (&raw mut bytes).cast();
        // SAFETY: the handle is open, and this request reads and writes one number.
        unsafe { ffi::sqlite3_file_control(self.db, c"main".as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, arg) };
    }

    /// Waits for locks.
    pub fn busy_timeout(&self, ms: i32) {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_busy_timeout(self.db, ms) };
    }
}

impl Connection {
    /// Begins to copy a database of this connection into the main one of `to`.
    pub fn backup<'c>(&'c self, database: &str, to: &'c Connection) -> Result<Backup<'c>, Error> {
        let name = CString::new(database).expect("a name without NUL");
        // SAFETY: both handles are open, and stay so as long as the backup borrows them; the names end with NUL.
        let backup = unsafe { ffi::sqlite3_backup_init(to.db, c"main".as_ptr(), self.db, name.as_ptr()) };
        if backup.is_null() { Err(to.error()) } else { Ok(Backup { backup, to }) }
    }

    /// Opens a value for reading or for overwriting.
    pub fn blob_open(
        &self,
        database: &str,
        table: &str,
        column: &str,
        rowid: i64,
        write: bool,
    ) -> Result<Blob<'_>, Error> {
        let names = [database, table, column].map(|n| CString::new(n).expect("a name without NUL"));
        let mut blob = ptr::null_mut();
        // SAFETY: the handle is open, the names end with NUL, and `blob` is a valid place for the new handle.
        let rc = unsafe {
            let [db, table, column] = [0, 1, 2].map(|i| names[i].as_ptr());
            ffi::sqlite3_blob_open(self.db, db, table, column, rowid, write as c_int, &mut blob)
        };
        if rc == ffi::SQLITE_OK { Ok(Blob { conn: self, blob }) } else { Err(self.error()) }
    }
}

impl Backup<'_> {
    /// Copies so many pages. `true`: it is complete.
    pub fn step(&mut self, pages: i32) -> Result<bool, Error> {
        // SAFETY: the backup is open until it is dropped.
        match unsafe { ffi::sqlite3_backup_step(self.backup, pages) } {
            ffi::SQLITE_OK => Ok(false),
            ffi::SQLITE_DONE => Ok(true),
            code => Err(Error { code, ..self.to.error() }),
        }
    }
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open, and never used again.
        unsafe { ffi::sqlite3_backup_finish(self.backup) };
    }
}

impl Blob<'_> {
    /// The value's length.
    pub fn len(&self) -> usize {
        // SAFETY: the handle is open until it is dropped.
        unsafe { ffi::sqlite3_blob_bytes(self.blob) as usize }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes from `offset` on.
    pub fn read(&mut self, offset: usize, out: &mut [u8]) -> Result<(), Error> {
        let (len, at) = (out.len() as c_int, offset as c_int);
        // SAFETY: as above, and `out` has room for `len` bytes.
        let rc = unsafe { ffi::sqlite3_blob_read(self.blob, out.as_mut_ptr().cast(), len, at) };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(Error { code: rc, ..self.conn.error() }) }
    }

    /// Overwrites bytes from `offset` on.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        // SAFETY: as above, and `bytes` has so many.
        let rc = unsafe {
            ffi::sqlite3_blob_write(self.blob, bytes.as_ptr().cast(), bytes.len() as c_int, offset as c_int)
        };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(Error { code: rc, ..self.conn.error() }) }
    }
}

impl Drop for Blob<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open, and never used again.
        unsafe { ffi::sqlite3_blob_close(self.blob) };
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: statements borrow the connection, so none is left.
        unsafe { ffi::sqlite3_close(self.db) };
    }
}

impl Statement<'_> {
    /// Sets a parameter, counted from 1.
    pub fn bind(&mut self, i: usize, v: &Value) -> Result<(), Error> {
        let i = i as c_int;
        // SAFETY: the statement is valid; texts and blobs are copied by the library.
        let rc = unsafe {
            match v {
                Value::Null => ffi::sqlite3_bind_null(self.stmt, i),
                Value::Int(n) => ffi::sqlite3_bind_int64(self.stmt, i, *n),
                Value::Real(r) => ffi::sqlite3_bind_double(self.stmt, i, *r),
                Value::Text(b) => ffi::sqlite3_bind_text(
                    self.stmt,
                    i,
                    b.as_ptr().cast(),
                    b.len() as c_int,
                    ffi::SQLITE_TRANSIENT(),
                ),
                Value::Blob(b) => ffi::sqlite3_bind_blob(
                    self.stmt,
                    i,
                    b.as_ptr().cast(),
                    b.len() as c_int,
                    ffi::SQLITE_TRANSIENT(),
                ),
            }
        };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(self.conn.error()) }
    }

    /// Runs to the next row; `false` at the end.
    pub fn step(&mut self) -> Result<bool, Error> {
        // SAFETY: the statement is valid.
        match unsafe { ffi::sqlite3_step(self.stmt) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            _ => Err(self.conn.error()),
        }
    }

    /// Makes the statement ready to run again.
    pub fn reset(&mut self) {
        // SAFETY: the statement is valid.
        unsafe { ffi::sqlite3_reset(self.stmt) };
    }

    /// How many columns a row has.
    pub fn column_count(&self) -> usize {
        // SAFETY: the statement is valid.
        unsafe { ffi::sqlite3_column_count(self.stmt) as usize }
    }

    /// A column's name.
    pub fn column_name(&self, i: usize) -> String {
        // SAFETY: the index is below the count, so the library answers a string.
        unsafe { CStr::from_ptr(ffi::sqlite3_column_name(self.stmt, i as c_int)) }
            .to_string_lossy()
            .into_owned()
    }

    /// A column's declared type, for columns of tables.
    pub fn column_decltype(&self, i: usize) -> Option<String> {
        // SAFETY: the statement is valid; the library answers a string or nothing.
        unsafe {
            let p = ffi::sqlite3_column_decltype(self.stmt, i as c_int);
            if p.is_null() { None } else { Some(CStr::from_ptr(p).to_string_lossy().into_owned()) }
        }
    }

    /// Whether the statement leaves the database as it is.
    pub fn is_readonly(&self) -> bool {
        // SAFETY: the statement is valid.
        unsafe { ffi::sqlite3_stmt_readonly(self.stmt) != 0 }
    }

    /// An integer of the present row, without a copy.
    pub fn int(&self, i: usize) -> i64 {
        // SAFETY: the statement is valid.
        unsafe { ffi::sqlite3_column_int64(self.stmt, i as c_int) }
    }

    /// The bytes of a text or blob of the present row, without a copy.
    pub fn bytes(&self, i: usize) -> &[u8] {
        // SAFETY: the pointer stays valid until the next step, which needs `&mut self`.
        unsafe {
            let p = ffi::sqlite3_column_blob(self.stmt, i as c_int);
            let n = ffi::sqlite3_column_bytes(self.stmt, i as c_int) as usize;
            if p.is_null() || n == 0 { &[] } else { std::slice::from_raw_parts(p.cast(), n) }
        }
    }

    /// A value of the present row.
    pub fn value(&self, i: usize) -> Value {
        // SAFETY: the statement is valid.
        match unsafe { ffi::sqlite3_column_type(self.stmt, i as c_int) } {
            ffi::SQLITE_INTEGER => Value::Int(self.int(i)),
            // SAFETY: as above.
            ffi::SQLITE_FLOAT => Value::Real(unsafe { ffi::sqlite3_column_double(self.stmt, i as c_int) }),
            ffi::SQLITE_TEXT => {
                // SAFETY: as above; the text form is asked for first, so that bytes are UTF-8.
                unsafe { ffi::sqlite3_column_text(self.stmt, i as c_int) };
                Value::Text(self.bytes(i).to_vec())
            }
            ffi::SQLITE_BLOB => Value::Blob(self.bytes(i).to_vec()),
            _ => Value::Null,
        }
    }

    /// A column as a number, for benchmarks: integers and reals as they are, the length of texts and blobs.
    pub fn sum_of(&self, i: usize) -> i64 {
        // SAFETY: the statement is valid.
        match unsafe { ffi::sqlite3_column_type(self.stmt, i as c_int) } {
            // SAFETY: as above.
            ffi::SQLITE_INTEGER | ffi::SQLITE_FLOAT => unsafe {
                ffi::sqlite3_column_int64(self.stmt, i as c_int)
            },
            ffi::SQLITE_NULL => 0,
            _ => self.bytes(i).len() as i64,
        }
    }

    /// The present row.
    pub fn row(&self) -> Vec<Value> {
        (0..self.column_count()).map(|i| self.value(i)).collect()
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: finalised once, here.
        unsafe { ffi::sqlite3_finalize(self.stmt) };
    }
}

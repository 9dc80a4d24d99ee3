//! The crate `turso` behind a small C face, so that benchmarks load it at run time and no build of ours needs its packages.
//!
//! Its futures are driven here, on the calling thread. Answers are [`OK`], [`ROW`], [`DONE`], or what went wrong, with a text
//! that the thread keeps until its next error. A panic inside becomes an error; the handle is then good for closing alone.
//! A handle is used by one thread at a time. A statement keeps its connection alive. What it does not know: who measures, and
//! with which settings.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::ptr;
use std::task::{Context, Poll, Waker};
use turso::params::Params;
use turso::{Builder, Connection, Error, Result, Row, Rows, Statement, Value};

/// It went well.
pub const OK: c_int = 0;
/// What is none of the others.
pub const ERROR: c_int = 1;
/// Somebody else holds a lock.
pub const BUSY: c_int = 5;
/// A constraint forbids it.
pub const CONSTRAINT: c_int = 19;
/// A step has come to a row.
pub const ROW: c_int = 100;
/// A step has come to the end.
pub const DONE: c_int = 101;

/// A connection.
pub struct Db(Connection);

/// A prepared statement with what is bound, its run, and the row it stands at.
pub struct Query {
    statement: Statement,
    params: Vec<Value>,
    run: Option<Rows>,
    row: Vec<Value>,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// How often a future is polled at once before the processor is offered to others.
const POLLS: u32 = 64;

/// Drives a future to its end. Each poll does the input and output that it waits for, so that polling again is all there is
/// to do, and nobody needs to be woken.
fn block<T>(f: impl Future<Output = Result<T>>) -> Result<T> {
    let mut f = pin!(f);
    let mut cx = Context::from_waker(Waker::noop());
    for n in 1u32.. {
        if let Poll::Ready(x) = f.as_mut().poll(&mut cx) {
            return x;
        }
        if n % POLLS == 0 {
            std::thread::yield_now();
        }
    }
    unreachable!("polls have no end")
}

fn code(e: &Error) -> c_int {
    match e {
        Error::Busy(_) | Error::BusySnapshot(_) => BUSY,
        Error::Constraint(_) => CONSTRAINT,
        _ => ERROR,
    }
}

fn keep(text: String) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|l| *l.borrow_mut() = text);
}

/// Runs something; keeps the text of what went wrong.
fn guard(f: impl FnOnce() -> Result<c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(rc)) => rc,
        Ok(Err(e)) => {
            keep(e.to_string());
            code(&e)
        }
        Err(p) => {
            let what = p.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| p.downcast_ref::<&str>().copied()).unwrap_or("no message");
            keep(format!("panic: {what}"));
            ERROR
        }
    }
}

/// The bytes that a caller points at.
///
/// # Safety
/// `p` points at `n` bytes that live as long as the answer is used, or `n` is 0.
unsafe fn bytes<'a>(p: *const c_void, n: usize) -> &'a [u8] {
    if n == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(p.cast(), n) }
}

/// The text that a caller points at.
///
/// # Safety
/// As [`bytes`].
unsafe fn text<'a>(p: *const c_char, n: usize) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let b = unsafe { bytes(p.cast(), n) };
    std::str::from_utf8(b).map_err(|e| Error::ConversionFailure(e.to_string()))
}

/// The end of the first statement in a text: behind its semicolon outside of quotes, or the end.
fn statement(sql: &str) -> usize {
    let mut quote = None;
    for (i, b) in sql.bytes().enumerate() {
        match (quote, b) {
            (None, b'\'' | b'"' | b'`') => quote = Some(b),
            (Some(q), b) if q == b => quote = None,
            (None, b';') => return i + 1,
            _ => {}
        }
    }
    sql.len()
}

/// Runs each statement to its end, whatever rows it answers.
fn execute(c: &Connection, mut sql: &str) -> Result<()> {
    while !sql.is_empty() {
        let (first, rest) = sql.split_at(statement(sql));
        if !first.trim_matches(|c: char| c == ';' || c.is_whitespace()).is_empty() {
            block(async {
                let mut rows = c.query(first, ()).await?;
                while rows.next().await?.is_some() {}
                Ok(())
            })?;
        }
        sql = rest;
    }
    Ok(())
}

fn values(row: &Row, into: &mut Vec<Value>) -> Result<()> {
    into.clear();
    for i in 0..row.column_count() {
        into.push(row.get_value(i)?);
    }
    Ok(())
}

impl Query {
    fn step(&mut self) -> Result<c_int> {
        if self.run.is_none() {
            let params = Params::Positional(std::mem::take(&mut self.params));
            self.run = Some(block(self.statement.query(params))?);
        }
        let Some(run) = &mut self.run else { return Ok(DONE) };
        match block(run.next())? {
            Some(r) => values(&r, &mut self.row).map(|()| ROW),
            None => {
                self.run = None;
                Ok(DONE)
            }
        }
    }

    fn reset(&mut self) -> Result<()> {
        self.row.clear();
        // A run that has come to its end is over.
        if self.run.take().is_some() { self.statement.reset() } else { Ok(()) }
    }

    fn bind(&mut self, index: usize, v: Value) {
        if self.params.len() < index {
            self.params.resize(index, Value::Null);
        }
        self.params[index - 1] = v;
    }
}

/// A value of the row at which a statement stands.
///
/// # Safety
/// `q` is a statement's handle; the answer is used before the next call with it.
unsafe fn value<'a>(q: *mut Query, column: usize) -> Option<&'a Value> {
    // SAFETY: the caller's promise.
    unsafe { &*q }.row.get(column)
}

/// The version of the crate.
#[unsafe(no_mangle)]
pub extern "C" fn iolite_turso_version() -> *const c_char {
    c"0.8.3".as_ptr()
}

/// The text of this thread's last error; good until its next.
#[unsafe(no_mangle)]
pub extern "C" fn iolite_turso_error() -> *const c_char {
    LAST.with(|l| l.borrow().as_ptr())
}

/// Opens a database file and a connection to it.
///
/// # Safety
/// `path` points at `n` bytes, `out` at a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_open(path: *const c_char, n: usize, out: *mut *mut Db) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, n) }?;
        let db = block(Builder::new_local(path).build())?;
        let made = Box::into_raw(Box::new(Db(db.connect()?)));
        // SAFETY: the caller's promise.
        unsafe { out.write(made) };
        Ok(OK)
    })
}

/// Closes a connection; with the last one, the database.
///
/// # Safety
/// `db` came from [`iolite_turso_open`] and is not used any more; or it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_close(db: *mut Db) {
    guard(|| {
        if !db.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(db) });
        }
        Ok(OK)
    });
}

/// Runs a text of statements; rows are passed over. No trigger may be among them: its semicolons are taken for ends.
///
/// # Safety
/// `db` is open, `sql` points at `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_execute(db: *mut Db, sql: *const c_char, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { execute(&(*db).0, text(sql, n)?) }.map(|()| OK))
}

/// Prepares a statement.
///
/// # Safety
/// `db` is open, `sql` points at `n` bytes, `out` at a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_prepare(
    db: *mut Db,
    sql: *const c_char,
    n: usize,
    out: *mut *mut Query,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let statement = block(unsafe { (*db).0.prepare(text(sql, n)?) })?;
        let q = Query { statement, params: Vec::new(), run: None, row: Vec::new() };
        // SAFETY: the caller's promise.
        unsafe { out.write(Box::into_raw(Box::new(q))) };
        Ok(OK)
    })
}

/// Frees a statement.
///
/// # Safety
/// `q` came from [`iolite_turso_prepare`] and is not used any more; or it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_finalize(q: *mut Query) {
    guard(|| {
        if !q.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(q) });
        }
        Ok(OK)
    });
}

/// Binds NULL to a parameter; the first is 1.
///
/// # Safety
/// `q` is a statement's handle; `index` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_bind_null(q: *mut Query, index: usize) {
    // SAFETY: the caller's promise.
    unsafe { (*q).bind(index, Value::Null) }
}

/// Binds an integer.
///
/// # Safety
/// As [`iolite_turso_bind_null`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_bind_integer(q: *mut Query, index: usize, v: i64) {
    // SAFETY: the caller's promise.
    unsafe { (*q).bind(index, Value::Integer(v)) }
}

/// Binds a real.
///
/// # Safety
/// As [`iolite_turso_bind_null`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_bind_real(q: *mut Query, index: usize, v: f64) {
    // SAFETY: the caller's promise.
    unsafe { (*q).bind(index, Value::Real(v)) }
}

/// Binds a text, which is copied.
///
/// # Safety
/// As [`iolite_turso_bind_null`]; `p` points at `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_bind_text(
    q: *mut Query,
    index: usize,
    p: *const c_char,
    n: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        (*q).bind(index, Value::Text(text(p, n)?.to_owned()));
        Ok(OK)
    })
}

/// Binds a blob, which is copied.
///
/// # Safety
/// As [`iolite_turso_bind_null`]; `p` points at `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_bind_blob(q: *mut Query, index: usize, p: *const c_void, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { (*q).bind(index, Value::Blob(bytes(p, n).to_vec())) }
}

/// Goes on to the next row: [`ROW`], [`DONE`] or an error.
///
/// # Safety
/// `q` is a statement's handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_step(q: *mut Query) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { (*q).step() })
}

/// Makes a statement ready to run again. What was bound is used up by the run.
///
/// # Safety
/// `q` is a statement's handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_reset(q: *mut Query) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { (*q).reset() }.map(|()| OK))
}

/// How many columns a row has.
///
/// # Safety
/// `q` is a statement's handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_column_count(q: *mut Query) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*q).statement.column_count() }
}

/// The type of a value in the row by SQLite's numbers: 1 integer, 2 real, 3 text, 4 blob, 5 NULL.
///
/// # Safety
/// `q` stands at a row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_column_type(q: *mut Query, column: usize) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { value(q, column) } {
        Some(Value::Integer(_)) => 1,
        Some(Value::Real(_)) => 2,
        Some(Value::Text(_)) => 3,
        Some(Value::Blob(_)) => 4,
        Some(Value::Null) | None => 5,
    }
}

/// The integer in the row; 0 if it is none.
///
/// # Safety
/// `q` stands at a row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_column_integer(q: *mut Query, column: usize) -> i64 {
    // SAFETY: the caller's promise.
    if let Some(Value::Integer(n)) = unsafe { value(q, column) } { *n } else { 0 }
}

/// The real in the row; 0 if it is none.
///
/// # Safety
/// `q` stands at a row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_column_real(q: *mut Query, column: usize) -> f64 {
    // SAFETY: the caller's promise.
    if let Some(Value::Real(r)) = unsafe { value(q, column) } { *r } else { 0.0 }
}

/// The bytes of a text or blob in the row, good until the next step; null if it is neither.
///
/// # Safety
/// `q` stands at a row, `n` is a place for the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_turso_column_bytes(
    q: *mut Query,
    column: usize,
    n: *mut usize,
) -> *const c_void {
    // SAFETY: the caller's promise.
    let b: &[u8] = match unsafe { value(q, column) } {
        Some(Value::Text(t)) => t.as_bytes(),
        Some(Value::Blob(b)) => b,
        _ => return ptr::null(),
    };
    // SAFETY: the caller's promise.
    unsafe { n.write(b.len()) };
    b.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_outside_of_quotes() {
        let ends = |s: &str| s.split_at(statement(s)).0.to_string();
        assert_eq!(ends("BEGIN; COMMIT"), "BEGIN;");
        assert_eq!(ends("INSERT INTO t VALUES('a;''b;'); X"), "INSERT INTO t VALUES('a;''b;');");
        assert_eq!(ends("SELECT 1"), "SELECT 1");
    }
}

//! Incremental access to one value: `sqlite3_blob_*`.
//!
//! The value is read and written by ordinary statements inside the connection's transaction. A handle expires when its
//! row is gone or the value has another size than when it was opened.

use crate::connection::{Db, text, with, within};
use crate::{ERROR, MISUSE, OK};
use iolite::{Code, Connection, Error, Value};
use iolite_sql::print::quote_name;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// What a `sqlite3_blob*` points at.
pub struct Blob {
    db: *mut Db,
    table: String,
    column: String,
    rowid: Cell<i64>,
    size: Cell<usize>,
    writes: bool,
    text: Cell<bool>,
    expired: Cell<bool>,
}

impl Blob {
    fn read(&self, c: &Connection) -> Result<Option<Value>, Error> {
        let q = format!("SELECT {} FROM {} WHERE rowid=?1", self.column, self.table);
        let rows = c.query(&q, &[Value::Int(self.rowid.get())])?;
        Ok(rows.into_iter().next().and_then(|r| r.into_iter().next()))
    }

    /// Reads the value for the first time, or at another row.
    fn begin(&self, c: &Connection) -> Result<(), Error> {
        match self.read(c)? {
            None => Err(Error::sql(format!("no such rowid: {}", self.rowid.get()))),
            Some(Value::Text(b, _)) => {
                self.size.set(b.len());
                self.text.set(true);
                Ok(())
            }
            Some(Value::Blob(b, _)) => {
                self.size.set(b.len());
                self.text.set(false);
                Ok(())
            }
            Some(v) => Err(Error::sql(format!("cannot open value of type {}", v.class().name()))),
        }
    }

    /// The bytes now, if the handle has not expired.
    fn bytes(&self, c: &Connection) -> Result<Vec<u8>, Error> {
        let v = if self.expired.get() { None } else { self.read(c)? };
        match v {
            Some(Value::Text(b, _) | Value::Blob(b, _)) if b.len() == self.size.get() => Ok(b.to_vec()),
            _ => {
                self.expired.set(true);
                Err(Code::Abort.into())
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_open(
    db: *mut Db,
    schema: *const c_char,
    table: *const c_char,
    column: *const c_char,
    rowid: i64,
    flags: c_int,
    out: *mut *mut Blob,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let (schema, table, column) = (text(schema), text(table), text(column));
    with(db, MISUSE, |d| {
        let b = Blob {
            db,
            table: format!("{}.{}", quote_name(&schema), quote_name(&table)),
            column: quote_name(&column).into_owned(),
            rowid: Cell::new(rowid),
            size: Cell::new(0),
            writes: flags != 0,
            text: Cell::new(false),
            expired: Cell::new(false),
        };
        let opened = d.run(|c| {
            let info = format!("PRAGMA {}.table_info({})", quote_name(&schema), quote_name(&table));
            let columns = c.query(&info, &[])?;
            if columns.is_empty() {
                return Err(Error::sql(format!("no such table: {schema}.{table}")));
            }
            if !columns.iter().any(|r| r[1].to_string_lossy().eq_ignore_ascii_case(&column)) {
                return Err(Error::sql(format!("no such column: \"{column}\"")));
            }
            b.begin(c)
        });
        match opened {
            Ok(()) => {
                d.others.set(d.others.get() + 1);
                *out = Box::into_raw(Box::new(b));
                d.ok()
            }
            Err(e) => d.fail(&e),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_reopen(b: *mut Blob, rowid: i64) -> c_int {
    let Some(b) = b.as_ref() else { return MISUSE };
    within(b.db, MISUSE, |d| {
        if b.expired.get() {
            return d.fail_code(4);
        }
        b.rowid.set(rowid);
        let r = d.run(|c| b.begin(c));
        b.expired.set(r.is_err());
        d.outcome(r)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_bytes(b: *mut Blob) -> c_int {
    b.as_ref().map_or(0, |b| if b.expired.get() { 0 } else { b.size.get() as c_int })
}

/// The range `offset..offset + n` if it lies inside the value.
fn range(b: &Blob, n: c_int, offset: c_int) -> Option<std::ops::Range<usize>> {
    let (n, from) = (usize::try_from(n).ok()?, usize::try_from(offset).ok()?);
    let to = from.checked_add(n)?;
    (to <= b.size.get()).then_some(from..to)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_read(b: *mut Blob, to: *mut c_void, n: c_int, offset: c_int) -> c_int {
    let Some(b) = b.as_ref() else { return MISUSE };
    within(b.db, MISUSE, |d| {
        let Some(r) = range(b, n, offset) else { return d.fail_code(ERROR) };
        match d.run(|c| b.bytes(c)) {
            Ok(bytes) => {
                std::ptr::copy_nonoverlapping(bytes[r].as_ptr(), to as *mut u8, n as usize);
                d.ok()
            }
            Err(e) => d.fail(&e),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_write(
    b: *mut Blob,
    from: *const c_void,
    n: c_int,
    offset: c_int,
) -> c_int {
    let Some(b) = b.as_ref() else { return MISUSE };
    within(b.db, MISUSE, |d| {
        if !b.writes {
            return d.fail_code(8);
        }
        let Some(r) = range(b, n, offset) else { return d.fail_code(ERROR) };
        let written = d.run(|c| {
            let mut bytes = b.bytes(c)?;
            bytes[r].copy_from_slice(std::slice::from_raw_parts(from as *const u8, n as usize));
            let v = if b.text.get() { Value::text(&bytes)? } else { Value::blob(&bytes)? };
            let q = format!("UPDATE {} SET {}=?1 WHERE rowid=?2", b.table, b.column);
            c.execute(&q, &[v, Value::Int(b.rowid.get())])
        });
        d.outcome(written)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_close(b: *mut Blob) -> c_int {
    if b.is_null() {
        return OK;
    }
    let b = Box::from_raw(b);
    let db = b.db;
    crate::handle::leaving(db, MISUSE, |d| {
        d.others.set(d.others.get().saturating_sub(1));
        OK
    })
}

//! Incremental access to one value: `sqlite3_blob_*`, which [`iolite::engine::Blob`] does.

use crate::connection::{Db, text, text_option, with, within};
use crate::{MISUSE, OK};
use iolite::{Code, Error};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// What a `sqlite3_blob*` points at.
pub struct CBlob {
    db: *mut Db,
    inner: RefCell<iolite::engine::Blob>,
    /// How the last access went, which closing says again: an expired handle has nothing to say.
    last: RefCell<iolite::Result<()>>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_open(
    db: *mut Db,
    schema: *const c_char,
    table: *const c_char,
    column: *const c_char,
    rowid: i64,
    flags: c_int,
    out: *mut *mut CBlob,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    if table.is_null() || column.is_null() {
        return MISUSE;
    }
    with(db, MISUSE, |d| {
        let (schema, table, column) = (text_option(schema), text(table), text(column));
        match d.run(|c| c.blob_open(schema.as_deref(), &table, &column, rowid, flags != 0)) {
            Ok(b) => {
                d.others.set(d.others.get() + 1);
                d.blobs.set(d.blobs.get() + 1);
                *out =
                    Box::into_raw(Box::new(CBlob { db, inner: RefCell::new(b), last: RefCell::new(Ok(())) }));
                d.ok()
            }
            // Told by the primary code, unless the program has asked for more.
            Err(e) if !d.extended.get() => {
                let at = e.offset();
                let e = Error::new(e.code().primary(), e.message());
                d.fail_to_prepare(&match at {
                    Some(at) => e.at(at),
                    None => e,
                })
            }
            Err(e) => d.fail_to_prepare(&e),
        }
    })
}

/// Runs `f` on an open handle, and `done` where that succeeds.
unsafe fn with_blob(
    b: *mut CBlob,
    done: fn(&Db) -> c_int,
    f: impl FnOnce(&mut iolite::engine::Blob) -> iolite::Result<()>,
) -> c_int {
    let Some(b) = b.as_ref() else { return MISUSE };
    within(b.db, MISUSE, |d| {
        if d.broken.get() {
            return d.fail_broken();
        }
        match b.inner.try_borrow_mut() {
            Ok(mut inner) => {
                let went = f(&mut inner);
                let said = match &went {
                    Err(e) if !matches!(e.code(), Code::Abort | Code::Error) => went.clone(),
                    _ => Ok(()),
                };
                *b.last.borrow_mut() = said;
                went.map_or_else(|e| d.fail(&e), |()| done(d))
            }
            Err(_) => d.fail_code(MISUSE),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_reopen(b: *mut CBlob, rowid: i64) -> c_int {
    // Where it succeeds it says nothing of the connection.
    with_blob(b, |_| OK, |b| b.reopen(rowid))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_bytes(b: *mut CBlob) -> c_int {
    let Some(b) = b.as_ref() else { return 0 };
    within(b.db, 0, |_| b.inner.try_borrow().map_or(0, |b| b.len() as c_int))
}

/// A length and an offset as C gives them.
fn place(n: c_int, offset: c_int) -> iolite::Result<(usize, usize)> {
    match (usize::try_from(n), usize::try_from(offset)) {
        (Ok(n), Ok(offset)) => Ok((n, offset)),
        _ => Err(Code::Error.into()),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_read(b: *mut CBlob, to: *mut c_void, n: c_int, offset: c_int) -> c_int {
    with_blob(b, Db::ok, |b| {
        let (n, offset) = place(n, offset)?;
        let out = if n == 0 { &mut [] } else { std::slice::from_raw_parts_mut(to as *mut u8, n) };
        b.read(offset, out)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_write(
    b: *mut CBlob,
    from: *const c_void,
    n: c_int,
    offset: c_int,
) -> c_int {
    with_blob(b, Db::ok, |b| {
        let (n, offset) = place(n, offset)?;
        b.write(offset, if n == 0 { &[] } else { std::slice::from_raw_parts(from as *const u8, n) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_blob_close(b: *mut CBlob) -> c_int {
    if b.is_null() {
        return OK;
    }
    let b = Box::from_raw(b);
    crate::handle::leaving(b.db, MISUSE, |d| {
        d.others.set(d.others.get().saturating_sub(1));
        d.blobs.set(d.blobs.get().saturating_sub(1));
        match b.inner.into_inner().close().and(b.last.into_inner()) {
            Ok(()) => d.ended(),
            Err(e) => d.fail(&e),
        }
    })
}

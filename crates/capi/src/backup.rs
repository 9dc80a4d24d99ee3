//! Copies of whole databases: `sqlite3_backup_*`, `sqlite3_serialize`, `sqlite3_deserialize`.

use crate::connection::{Db, text_option, with, within};
use crate::handle::leaving;
use crate::{DONE, ERROR, MISUSE, OK};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr::null_mut;

/// What a `sqlite3_backup*` points at.
pub struct CBackup {
    to: *mut Db,
    from: *mut Db,
    inner: RefCell<iolite::engine::Backup>,
    last: std::cell::Cell<c_int>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_backup_init(
    to: *mut Db,
    to_name: *const c_char,
    from: *mut Db,
    from_name: *const c_char,
) -> *mut CBackup {
    let (to_name, from_name) = (text_option(to_name), text_option(from_name));
    with(from, null_mut(), |f| {
        with(to, null_mut(), |t| {
            if std::ptr::eq(t, f) {
                t.fail_text(ERROR, "source and destination must be distinct");
                return null_mut();
            }
            let (from_name, to_name) =
                (from_name.as_deref().unwrap_or("main"), to_name.as_deref().unwrap_or("main"));
            let made = f.run(|source| t.run(|target| target.backup(to_name, source, from_name)));
            match made {
                Ok(b) => {
                    t.others.set(t.others.get() + 1);
                    f.others.set(f.others.get() + 1);
                    Box::into_raw(Box::new(CBackup {
                        to,
                        from,
                        inner: RefCell::new(b),
                        last: std::cell::Cell::new(OK),
                    }))
                }
                Err(e) => {
                    t.fail(&e);
                    null_mut()
                }
            }
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_backup_step(b: *mut CBackup, pages: c_int) -> c_int {
    let Some(b) = b.as_ref() else { return MISUSE };
    within(b.from, MISUSE, |_| {
        within(b.to, MISUSE, |t| {
            let rc = match b.inner.borrow_mut().step(pages) {
                Ok(true) => DONE,
                Ok(false) => OK,
                Err(e) => t.mask(e.code().number() as i32),
            };
            b.last.set(rc);
            rc
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_backup_finish(b: *mut CBackup) -> c_int {
    if b.is_null() {
        return OK;
    }
    let b = Box::from_raw(b);
    let (to, from, last) = (b.to, b.from, b.last.get());
    leaving(from, MISUSE, |f| {
        leaving(to, MISUSE, |t| {
            t.others.set(t.others.get().saturating_sub(1));
            f.others.set(f.others.get().saturating_sub(1));
            drop(b);
            if last == DONE || last == OK { t.ok() } else { t.fail_code(last) }
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_backup_remaining(b: *mut CBackup) -> c_int {
    let Some(b) = b.as_ref() else { return 0 };
    within(b.from, 0, |_| b.inner.borrow().remaining() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_backup_pagecount(b: *mut CBackup) -> c_int {
    let Some(b) = b.as_ref() else { return 0 };
    within(b.from, 0, |_| b.inner.borrow().page_count() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_serialize(
    db: *mut Db,
    name: *const c_char,
    size: *mut i64,
    flags: c_uint,
) -> *mut c_uchar {
    let name = text_option(name).unwrap_or_else(|| "main".into());
    with(db, null_mut(), |d| {
        // What has nothing behind it, or is not there, leaves the connection's error as it is.
        if !size.is_null() {
            *size = -1;
        }
        if !d.conn().is_some_and(|c| c.is_open(&name)) {
            return null_mut();
        }
        d.prepared();
        let bytes = d.run(|c| c.serialize(&name));
        match bytes {
            Ok(b) => {
                if !size.is_null() {
                    *size = b.len() as i64;
                }
                // With SQLITE_SERIALIZE_NOCOPY only a pointer into existing memory may be given; there is none.
                if flags & 1 != 0 { null_mut() } else { crate::memory::copy_out(&b) as *mut c_uchar }
            }
            Err(e) => {
                d.fail(&e);
                null_mut()
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_deserialize(
    db: *mut Db,
    name: *const c_char,
    data: *mut c_uchar,
    size: i64,
    buffer: i64,
    flags: c_uint,
) -> c_int {
    const FREE_ON_CLOSE: c_uint = 1;
    const RESIZEABLE: c_uint = 2;
    const READ_ONLY: c_uint = 4;
    let name = text_option(name).unwrap_or_else(|| "main".into());
    let rc = with(db, MISUSE, |d| {
        let (Ok(size), Ok(buffer)) = (usize::try_from(size), u64::try_from(buffer)) else {
            return d.fail_code(MISUSE);
        };
        // The content is copied, so the buffer may go at once.
        let mut image = Vec::new();
        if let Err(e) = iolite_base::alloc::reserve(&mut image, size) {
            return d.fail(&e);
        }
        if size > 0 && !data.is_null() {
            image.extend_from_slice(std::slice::from_raw_parts(data, size));
        }
        let limit = if flags & RESIZEABLE != 0 { None } else { Some(buffer.max(size as u64)) };
        let options = iolite::engine::ImageOptions { read_only: flags & READ_ONLY != 0, limit };
        if name.eq_ignore_ascii_case("temp") || !d.conn().is_some_and(|c| c.is_open(&name)) {
            return ERROR;
        }
        let done = d.run(|c| c.deserialize(&name, image, options));
        if done.is_ok() && name.eq_ignore_ascii_case("main") {
            *d.filename.borrow_mut() = crate::filename::filename_block(b"", b"", false);
        }
        d.prepared();
        done.map_or_else(|e| d.fail(&e), |()| OK)
    });
    if flags & FREE_ON_CLOSE != 0 {
        crate::memory::sqlite3_free(data as *mut c_void);
    }
    rc
}

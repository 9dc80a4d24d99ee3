//! Copies of whole databases: `sqlite3_backup_*`, `sqlite3_serialize`, `sqlite3_deserialize`.

use crate::connection::{Db, text_option, with, within};
use crate::handle::leaving;
use crate::{DONE, ERROR, MISUSE, OK};
use iolite::Error;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr::null_mut;

/// What a `sqlite3_backup*` points at.
pub struct CBackup {
    to: *mut Db,
    from: *mut Db,
    inner: RefCell<iolite_btree::Backup>,
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
            let made = (|| {
                let source = f.run(|c| c.btree(from_name.as_deref().unwrap_or("main")))?;
                let target = t.run(|c| c.btree(to_name.as_deref().unwrap_or("main")))?;
                iolite_btree::Backup::new(&target, &source)
            })();
            match made {
                Ok(b) => {
                    t.ok();
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
        let bytes = d.run(|c| {
            let b = c.btree(&name)?;
            let idle = b.txn_state() == iolite::TxnState::None;
            b.begin_read()?;
            let mut out = Vec::new();
            let read = (1..=b.page_count()).try_for_each(|p| {
                out.extend_from_slice(&b.read_page(p)?);
                Ok::<(), Error>(())
            });
            if idle {
                b.end_read();
            }
            read.map(|()| out)
        });
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
                if !size.is_null() {
                    *size = -1;
                }
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
    _buffer: i64,
    flags: c_uint,
) -> c_int {
    let name = text_option(name).unwrap_or_else(|| "main".into());
    let rc = with(db, MISUSE, |d| {
        let bytes = match size {
            0 => &[][..],
            n => std::slice::from_raw_parts(data, n.max(0) as usize),
        };
        d.outcome(d.run(|c| load(c, &name, bytes)))
    });
    if flags & 1 != 0 {
        libc::free(data as *mut c_void);
    }
    rc
}

/// Fills a database from an image, by way of a temporary file that the image is written to.
fn load(c: &iolite::Connection, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let io = |e: std::io::Error| Error::new(iolite::Code::Ioerr, e.to_string());
    let mut path = std::env::temp_dir();
    let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    path.push(format!("etilqs_{}_{}", std::process::id(), unique.map_or(0, |d| d.as_nanos())));
    let mut image = bytes.to_vec();
    // An image of a database in WAL mode has no log beside it: its pages are complete.
    if image.len() > 19 && image[18] == 2 {
        image[18..20].fill(1);
    }
    std::fs::write(&path, &image).map_err(io)?;
    let r = (|| {
        let flags = iolite::OpenFlags { create: false, uri: false, ..Default::default() };
        let from = iolite::Connection::open_with(&path.to_string_lossy(), flags)?;
        c.btree(name)?.copy_from(&from.btree("main")?)?;
        from.close()
    })();
    let removed = std::fs::remove_file(&path).map_err(io);
    r.and(removed)
}

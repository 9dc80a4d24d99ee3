//! `sqlite3_file_control`: questions and orders to the file of a database.
//!
//! A few concern the connection and are answered here; all others go to the file: to the method of a registered VFS, or to
//! what our own files know (`vfs_control`). Numbers that nobody knows are `SQLITE_NOTFOUND`.

use crate::connection::{Db, text_option, with};
use crate::vfs_file::{CFile, foreign};
use crate::{ERROR, MISUSE, NOTFOUND, OK};
use iolite::engine::Btree;
use std::ffi::{c_char, c_int, c_uint, c_void};

const LOCKSTATE: c_int = 1;
const FILE_POINTER: c_int = 7;
const PERSIST_WAL: c_int = 10;
const BUSYHANDLER: c_int = 15;
const MMAP_SIZE: c_int = 18;
const VFS_POINTER: c_int = 27;
const JOURNAL_POINTER: c_int = 28;
const DATA_VERSION: c_int = 35;
const SIZE_LIMIT: c_int = 36;
const RESERVE_BYTES: c_int = 38;
const RESET_CACHE: c_int = 42;

/// Called by a VFS that waits for a lock: asks the connection's busy handler.
unsafe extern "C" fn busy(db: *mut c_void, attempts: c_int) -> c_int {
    let db = db as *mut Db;
    with(db, 0, |d| d.conn().map_or(0, |c| c.ask_busy_handler(attempts.max(0) as u32) as c_int))
}

/// Tells a VFS of the user's by whom it may ask whether to wait.
pub(crate) unsafe fn tell_busy_handler(d: &Db, db: *mut Db) {
    let mut list = [busy as *mut c_void, db.cast::<c_void>()];
    if let Ok(b) = d.run(|c| c.btree("main")) {
        let _ = foreign(&b).map(|f| control(f, BUSYHANDLER, list.as_mut_ptr().cast()));
    }
}

unsafe fn control(file: *mut CFile, op: c_int, arg: *mut c_void) -> c_int {
    match (*file).methods.as_ref().and_then(|m| m.control) {
        Some(f) => f(file, op, arg),
        None => NOTFOUND,
    }
}

/// The engine's file, or that of the journal, as C sees it: the same as long as the connection has the file open.
unsafe fn shown(d: &Db, b: &Btree, journal: bool) -> *mut CFile {
    let vfs = b.vfs().map(|v| v.name().to_owned()).unwrap_or_default();
    let found = b.with_files(|file, other| {
        let file = if journal { other } else { file }?;
        match file.foreign() {
            Some(f) => Some(f.as_ptr().cast::<CFile>()),
            None => Some(d.shown_files.show(file, &vfs)),
        }
    });
    found.ok().flatten().unwrap_or_else(|| d.shown_files.none())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_file_control(
    db: *mut Db,
    name: *const c_char,
    op: c_int,
    arg: *mut c_void,
) -> c_int {
    let name = text_option(name).unwrap_or_else(|| "main".into());
    with(db, MISUSE, |d| {
        let Ok(b) = d.run(|c| c.btree(&name)) else { return ERROR };
        let number = arg as *mut c_int;
        match op {
            FILE_POINTER => *(arg as *mut *mut CFile) = shown(d, &b, false),
            JOURNAL_POINTER => *(arg as *mut *mut CFile) = shown(d, &b, true),
            VFS_POINTER => {
                let name = b.vfs().map(|v| v.name().to_owned()).unwrap_or_default();
                *(arg as *mut *mut crate::vfs_methods::CVfs) = crate::vfs::found(&name);
            }
            DATA_VERSION => *(arg as *mut c_uint) = b.data_version(),
            RESERVE_BYTES => {
                let new = *number;
                *number = b.reserved() as c_int;
                if (0..=255).contains(&new) {
                    let _ = b.set_page_size(b.page_size(), Some(new as u8));
                }
            }
            RESET_CACHE => {}
            SIZE_LIMIT if !arg.is_null() => {
                let bytes = &mut *(arg as *mut i64);
                match d.run(|c| c.size_limit(&name, u64::try_from(*bytes).ok())) {
                    Ok(Some(now)) => *bytes = now as i64,
                    _ => return to_file(d, &b, op, arg),
                }
            }
            _ => return to_file(d, &b, op, arg),
        }
        OK
    })
}

/// What the file itself is to answer.
unsafe fn to_file(d: &Db, b: &Btree, op: c_int, arg: *mut c_void) -> c_int {
    let file = shown(d, b, false);
    if (*file).methods.is_null() || foreign(b).is_some() {
        return control(file, op, arg);
    }
    // What the pager knows of a file of ours.
    let number = arg as *mut c_int;
    match op {
        LOCKSTATE => *number = b.lock_level() as c_int,
        PERSIST_WAL => {
            if *number >= 0 {
                let _ = b.set_persist_wal(*number != 0);
            }
            *number = b.persist_wal() as c_int;
        }
        MMAP_SIZE => {
            let (at, old) = (arg as *mut i64, b.mmap_size());
            if *at >= 0 {
                b.set_mmap_size(*at);
            }
            *at = old;
        }
        _ => return control(file, op, arg),
    }
    OK
}

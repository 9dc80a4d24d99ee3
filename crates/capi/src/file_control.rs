//! `sqlite3_file_control`: questions and orders to the file of a database.
//!
//! A few concern the connection and are answered here; all others go to the file: to the method of a registered VFS, or to
//! what our own files know (`file_answers`). Numbers that nobody knows are `SQLITE_NOTFOUND`.

use crate::connection::{Db, text_option, with};
use crate::file_answers::{LOCKSTATE, MMAP_SIZE, PERSIST_WAL};
use crate::vfs_file::{CFile, foreign};
use crate::{ERROR, MISUSE, NOTFOUND, OK};
use iolite::engine::Btree;
use iolite_os::File;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

const FILE_POINTER: c_int = 7;
const BUSYHANDLER: c_int = 15;
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
            None => Some(shown_by(d).show(file, &vfs)),
        }
    });
    found.ok().flatten().unwrap_or_else(|| shown_by(d).none())
}

/// Files of the engine's that C has been shown.
///
/// Each lies in a box of its own: C holds its address.
#[derive(Default)]
#[allow(clippy::vec_box)]
pub(crate) struct ShownFiles(std::cell::RefCell<Vec<Box<CFile>>>);

/// Those of a connection.
fn shown_by(d: &Db) -> Rc<ShownFiles> {
    let mut kept = d.shown_files.borrow_mut();
    let all = kept.get_or_insert_with(|| Rc::new(ShownFiles::default())).clone();
    all.downcast().unwrap_or_default()
}

impl ShownFiles {
    unsafe fn show(&self, file: &dyn File, vfs: &str) -> *mut CFile {
        // SAFETY: the lifetime is that of the connection's file: see `CFile::of_engine`.
        let file: *const (dyn File + 'static) = std::mem::transmute(file as *const dyn File);
        let mut all = self.0.borrow_mut();
        match all.iter_mut().find(|f| f.is_of_engine(file)) {
            Some(f) => &mut **f,
            None => {
                all.push(Box::new(CFile::of_engine(file, vfs)));
                all.last_mut().map_or(null_mut(), |f| &mut **f)
            }
        }
    }

    /// A file that is not open.
    fn none(&self) -> *mut CFile {
        let mut all = self.0.borrow_mut();
        let closed = all.iter().position(|f| f.methods.is_null()).unwrap_or_else(|| {
            all.push(Box::new(CFile::NONE));
            all.len() - 1
        });
        &mut *all[closed]
    }
}

impl Drop for ShownFiles {
    /// The connection is closed.
    fn drop(&mut self) {
        for mut f in self.0.take() {
            // SAFETY: whoever still holds a pointer to it finds a file that is not open.
            unsafe { f.forget() };
        }
    }
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
                *(arg as *mut *mut crate::vfs_file::CVfs) = crate::vfs::found(&name);
            }
            DATA_VERSION => *(arg as *mut c_uint) = b.content_version(),
            RESERVE_BYTES => {
                let new = u8::try_from(*number).ok();
                let told = d.run(|c| c.reserve_at_vacuum(&name, new));
                *number = told.unwrap_or_default() as c_int;
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

//! `sqlite3_file`: files that a program opens by the VFS of `sqlite3_vfs_find`, by the methods of version 1.
//!
//! The engine opens its own files without it. What always holds: `methods` of a file that could not be opened is NULL, so that
//! nobody closes it.

use crate::{NOTFOUND, OK, guard};
use iolite::Code;
use iolite_os::{File, FileKind, LockLevel, OpenFlags, SyncKind};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

const READ_ONLY: c_int = 1;
const READ_WRITE: c_int = 2;
const CREATE: c_int = 4;
const DELETE_ON_CLOSE: c_int = 8;
const EXCLUSIVE: c_int = 0x10;
/// The bits that say what a file is for.
const KINDS: [(c_int, FileKind); 8] = [
    (0x100, FileKind::MainDb),
    (0x200, FileKind::TempDb),
    (0x400, FileKind::TempDb),
    (0x800, FileKind::Journal),
    (0x1000, FileKind::Temp),
    (0x2000, FileKind::Temp),
    (0x4000, FileKind::SuperJournal),
    (0x80000, FileKind::Wal),
];

/// A `sqlite3_file` of this VFS, in memory of the caller.
#[repr(C)]
pub struct CFile {
    methods: *const Methods,
    file: *mut Box<dyn File>,
}

/// A `sqlite3_io_methods` of version 1.
#[repr(C)]
struct Methods {
    version: c_int,
    close: unsafe extern "C" fn(*mut CFile) -> c_int,
    read: unsafe extern "C" fn(*mut CFile, *mut c_void, c_int, i64) -> c_int,
    write: unsafe extern "C" fn(*mut CFile, *const c_void, c_int, i64) -> c_int,
    truncate: unsafe extern "C" fn(*mut CFile, i64) -> c_int,
    sync: unsafe extern "C" fn(*mut CFile, c_int) -> c_int,
    size: unsafe extern "C" fn(*mut CFile, *mut i64) -> c_int,
    lock: unsafe extern "C" fn(*mut CFile, c_int) -> c_int,
    unlock: unsafe extern "C" fn(*mut CFile, c_int) -> c_int,
    check_reserved: unsafe extern "C" fn(*mut CFile, *mut c_int) -> c_int,
    control: unsafe extern "C" fn(*mut CFile, c_int, *mut c_void) -> c_int,
    sector_size: unsafe extern "C" fn(*mut CFile) -> c_int,
    characteristics: unsafe extern "C" fn(*mut CFile) -> c_int,
}

static METHODS: Methods = Methods {
    version: 1,
    close,
    read,
    write,
    truncate,
    sync,
    size,
    lock,
    unlock,
    check_reserved,
    control,
    sector_size,
    characteristics,
};

/// Opens a file into the caller's memory; no path: a temporary one.
pub(crate) unsafe fn open(path: Option<&Path>, out: *mut CFile, flags: c_int, got: *mut c_int) -> c_int {
    let Some(out) = out.as_mut() else { return crate::MISUSE };
    (out.methods, out.file) = (null(), null_mut());
    let kind = KINDS.iter().find(|k| flags & k.0 != 0).map_or(FileKind::Temp, |k| k.1);
    let how = OpenFlags {
        read_only: flags & READ_ONLY != 0,
        create: flags & CREATE != 0,
        exclusive: flags & EXCLUSIVE != 0,
        or_read_only: true,
        ..OpenFlags::read_write(kind)
    };
    let opened: iolite::Result<Box<dyn File>> = guard(Err(Code::Internal.into()), || {
        let vfs = iolite_os::default_vfs();
        let file = vfs.open(path, how)?;
        if let Some(p) = path.filter(|_| flags & DELETE_ON_CLOSE != 0) {
            // Nobody else finds it from now on; it goes when it is closed.
            vfs.delete(p, false)?;
        }
        Ok(file)
    });
    match opened {
        Ok(file) => {
            let read_only = file.is_read_only();
            out.file = Box::into_raw(Box::new(file));
            out.methods = &METHODS;
            if let Some(got) = got.as_mut() {
                *got = if read_only { flags & !(READ_WRITE | CREATE) | READ_ONLY } else { flags };
            }
            OK
        }
        Err(e) => e.code().number() as c_int,
    }
}

/// Runs `f`; answers its error's code.
pub(crate) fn coded(f: impl FnOnce() -> iolite::Result<()>) -> c_int {
    crate::guard(crate::INTERNAL, || f().map_or_else(|e| e.code().number() as c_int, |()| crate::OK))
}

/// Runs `f` on an open file; answers its error's code.
unsafe fn on(f: *mut CFile, run: impl FnOnce(&dyn File) -> iolite::Result<()>) -> c_int {
    match f.as_ref().and_then(|f| f.file.as_ref()) {
        Some(file) => coded(|| run(&**file)),
        None => crate::MISUSE,
    }
}

unsafe extern "C" fn close(f: *mut CFile) -> c_int {
    let Some(f) = f.as_mut() else { return crate::MISUSE };
    f.methods = null();
    let file = std::mem::replace(&mut f.file, null_mut());
    if !file.is_null() {
        guard((), || drop(Box::from_raw(file)));
    }
    OK
}

/// An offset and a length as C gives them.
fn place(n: c_int, offset: i64) -> iolite::Result<(usize, u64)> {
    match (usize::try_from(n), u64::try_from(offset)) {
        (Ok(n), Ok(offset)) => Ok((n, offset)),
        _ => Err(Code::Misuse.into()),
    }
}

unsafe extern "C" fn read(f: *mut CFile, to: *mut c_void, n: c_int, offset: i64) -> c_int {
    on(f, |file| {
        let (n, offset) = place(n, offset)?;
        let whole = file.read(std::slice::from_raw_parts_mut(to as *mut u8, n), offset)?;
        if whole { Ok(()) } else { Err(Code::IoerrShortRead.into()) }
    })
}

unsafe extern "C" fn write(f: *mut CFile, from: *const c_void, n: c_int, offset: i64) -> c_int {
    on(f, |file| {
        let (n, offset) = place(n, offset)?;
        file.write(std::slice::from_raw_parts(from as *const u8, n), offset)
    })
}

unsafe extern "C" fn truncate(f: *mut CFile, size: i64) -> c_int {
    on(f, |file| file.truncate(place(0, size)?.1))
}

unsafe extern "C" fn sync(f: *mut CFile, flags: c_int) -> c_int {
    const DATA_ONLY: c_int = 0x10;
    on(f, |file| file.sync(if flags & DATA_ONLY != 0 { SyncKind::Data } else { SyncKind::Full }))
}

unsafe extern "C" fn size(f: *mut CFile, out: *mut i64) -> c_int {
    on(f, |file| {
        *out = file.size()? as i64;
        Ok(())
    })
}

/// A lock by its number in the C interface.
fn level(n: c_int) -> iolite::Result<LockLevel> {
    Ok(match n {
        0 => LockLevel::None,
        1 => LockLevel::Shared,
        2 => LockLevel::Reserved,
        3 => LockLevel::Pending,
        4 => LockLevel::Exclusive,
        _ => return Err(Code::Misuse.into()),
    })
}

unsafe extern "C" fn lock(f: *mut CFile, to: c_int) -> c_int {
    on(f, |file| file.lock(level(to)?))
}

unsafe extern "C" fn unlock(f: *mut CFile, to: c_int) -> c_int {
    on(f, |file| file.unlock(level(to)?))
}

unsafe extern "C" fn check_reserved(f: *mut CFile, out: *mut c_int) -> c_int {
    on(f, |file| {
        *out = file.check_reserved()? as c_int;
        Ok(())
    })
}

unsafe extern "C" fn control(_: *mut CFile, _: c_int, _: *mut c_void) -> c_int {
    NOTFOUND
}

unsafe extern "C" fn sector_size(f: *mut CFile) -> c_int {
    f.as_ref().and_then(|f| f.file.as_ref()).map_or(4096, |file| file.sector_size() as c_int)
}

unsafe extern "C" fn characteristics(f: *mut CFile) -> c_int {
    const POWERSAFE_OVERWRITE: c_int = 0x1000;
    let safe =
        f.as_ref().and_then(|f| f.file.as_ref()).is_some_and(|f| f.characteristics().powersafe_overwrite);
    if safe { POWERSAFE_OVERWRITE } else { 0 }
}

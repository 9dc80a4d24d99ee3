//! `sqlite3_vfs_find`: the VFS of the system as C sees it.
//!
//! Programs take the clock, randomness and calls on names (delete, access, full path) from it, and open files (`vfs_file`).
//! None can be registered: databases are opened by the engine, which has a VFS of its own.

use crate::connection::{bytes, text_option};
use crate::vfs_file::{CFile, coded};
use iolite_os::Access;
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

type Open = unsafe extern "C" fn(*mut CVfs, *const c_char, *mut CFile, c_int, *mut c_int) -> c_int;

/// A `sqlite3_vfs` of version 2.
#[repr(C)]
pub struct CVfs {
    version: c_int,
    file_size: c_int,
    longest_path: c_int,
    next: *mut CVfs,
    name: *const c_char,
    data: *mut c_void,
    open: Open,
    delete: unsafe extern "C" fn(*mut CVfs, *const c_char, c_int) -> c_int,
    access: unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_int) -> c_int,
    full_path: unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_char) -> c_int,
    dl_open: unsafe extern "C" fn(*mut CVfs, *const c_char) -> *mut c_void,
    dl_error: unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char),
    dl_sym: unsafe extern "C" fn(*mut CVfs, *mut c_void, *const c_char) -> Option<unsafe extern "C" fn()>,
    dl_close: unsafe extern "C" fn(*mut CVfs, *mut c_void),
    randomness: unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int,
    sleep: unsafe extern "C" fn(*mut CVfs, c_int) -> c_int,
    current_time: unsafe extern "C" fn(*mut CVfs, *mut f64) -> c_int,
    last_error: unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int,
    current_time_ms: unsafe extern "C" fn(*mut CVfs, *mut i64) -> c_int,
}

// SAFETY: it does not change, and points to static texts only.
unsafe impl Sync for CVfs {}

static UNIX: CVfs = CVfs {
    version: 2,
    file_size: size_of::<CFile>() as c_int,
    longest_path: 512,
    next: null_mut(),
    name: c"unix".as_ptr(),
    data: null_mut(),
    open,
    delete,
    access,
    full_path,
    dl_open,
    dl_error,
    dl_sym,
    dl_close,
    randomness,
    sleep,
    current_time,
    last_error,
    current_time_ms,
};

unsafe fn path<'a>(p: *const c_char) -> &'a Path {
    Path::new(OsStr::from_bytes(bytes(p)))
}

unsafe extern "C" fn open(
    _: *mut CVfs,
    name: *const c_char,
    file: *mut CFile,
    flags: c_int,
    got: *mut c_int,
) -> c_int {
    let name = if name.is_null() { None } else { Some(path(name)) };
    crate::vfs_file::open(name, file, flags, got)
}

unsafe extern "C" fn delete(_: *mut CVfs, name: *const c_char, sync: c_int) -> c_int {
    coded(|| iolite_os::default_vfs().delete(path(name), sync != 0))
}

unsafe extern "C" fn access(_: *mut CVfs, name: *const c_char, what: c_int, out: *mut c_int) -> c_int {
    coded(|| {
        let what = if what == 1 { Access::ReadWrite } else { Access::Exists };
        let there = iolite_os::default_vfs().access(path(name), what)?;
        if let Some(out) = out.as_mut() {
            *out = there as c_int;
        }
        Ok(())
    })
}

unsafe extern "C" fn full_path(_: *mut CVfs, name: *const c_char, n: c_int, out: *mut c_char) -> c_int {
    coded(|| {
        let full = iolite_os::default_vfs().full_path(path(name))?;
        let b = full.as_os_str().as_bytes();
        if out.is_null() || b.len() + 1 > n.max(0) as usize {
            return Err(iolite::Code::CantopenFullpath.into());
        }
        std::ptr::copy_nonoverlapping(b.as_ptr(), out as *mut u8, b.len());
        *out.add(b.len()) = 0;
        Ok(())
    })
}

unsafe extern "C" fn dl_open(_: *mut CVfs, _: *const c_char) -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn dl_error(_: *mut CVfs, n: c_int, out: *mut c_char) {
    if n > 0 && !out.is_null() {
        *out = 0;
    }
}

unsafe extern "C" fn dl_sym(
    _: *mut CVfs,
    _: *mut c_void,
    _: *const c_char,
) -> Option<unsafe extern "C" fn()> {
    None
}

unsafe extern "C" fn dl_close(_: *mut CVfs, _: *mut c_void) {}

unsafe extern "C" fn randomness(_: *mut CVfs, n: c_int, out: *mut c_char) -> c_int {
    crate::guard(0, || {
        if n > 0 && !out.is_null() {
            let out = std::slice::from_raw_parts_mut(out as *mut u8, n as usize);
            iolite_os::default_vfs().entropy().fill(out);
        }
        n.max(0)
    })
}

unsafe extern "C" fn sleep(_: *mut CVfs, micros: c_int) -> c_int {
    crate::guard(0, || {
        iolite_os::default_vfs().clock().sleep(Duration::from_micros(micros.max(0) as u64));
        micros.max(0)
    })
}

/// Milliseconds since the beginning of Julian days.
fn julian_ms() -> i64 {
    iolite_os::default_vfs().clock().unix_millis() + 210_866_760_000_000
}

unsafe extern "C" fn current_time(_: *mut CVfs, out: *mut f64) -> c_int {
    coded(|| {
        if let Some(out) = out.as_mut() {
            *out = julian_ms() as f64 / 86_400_000.0;
        }
        Ok(())
    })
}

unsafe extern "C" fn current_time_ms(_: *mut CVfs, out: *mut i64) -> c_int {
    coded(|| {
        if let Some(out) = out.as_mut() {
            *out = julian_ms();
        }
        Ok(())
    })
}

unsafe extern "C" fn last_error(_: *mut CVfs, n: c_int, out: *mut c_char) -> c_int {
    dl_error(null_mut(), n, out);
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_find(name: *const c_char) -> *mut CVfs {
    match text_option(name).as_deref() {
        None | Some("unix" | "unix-excl") => &raw const UNIX as *mut CVfs,
        Some(_) => null_mut(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_register(_: *mut CVfs, _: c_int) -> c_int {
    crate::ERROR
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_unregister(_: *mut CVfs) -> c_int {
    crate::ERROR
}

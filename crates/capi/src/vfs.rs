//! `sqlite3_vfs`: the VFSes of the process as C sees them, and the list that they are in.
//!
//! Our own are those of `iolite_os`, for programs that take the clock, randomness and calls on names from them, open files
//! (`vfs_file`) or lay a VFS of their own over one. Those that a program registers are made usable for the engine by `foreign`.
//! What always holds: the list that C sees and that of `iolite_os` name the same VFSes, the default first in both.

use crate::connection::{bytes, text_option};
use crate::foreign::Foreign;
use crate::vfs_file::{CFile, CVfs, OK_SYMLINK, Symbol, coded};
use iolite_os::{Access, PerProcess, Vfs};
use std::cell::UnsafeCell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A VFS of ours. C may read all of it, and the list's link is written under the list's lock.
#[repr(transparent)]
struct Own(UnsafeCell<CVfs>);

// SAFETY: but for the link, which is guarded by the list's lock, it does not change; it points to static texts only.
unsafe impl Sync for Own {}

const fn own(name: &'static CStr, longest_path: c_int) -> Own {
    Own(UnsafeCell::new(CVfs {
        version: 3,
        file_size: size_of::<CFile>() as c_int,
        longest_path,
        next: null_mut(),
        name: name.as_ptr(),
        data: null_mut(),
        open: Some(open),
        delete: Some(delete),
        access: Some(access),
        full_path: Some(full_path),
        dl_open: Some(dl_open),
        dl_error: Some(dl_error),
        dl_sym: Some(dl_sym),
        dl_close: Some(dl_close),
        randomness: Some(randomness),
        sleep: Some(sleep),
        current_time: Some(current_time),
        last_error: Some(last_error),
        current_time_ms: Some(current_time_ms),
        set_call: Some(set_call),
        get_call: Some(get_call),
        next_call: Some(next_call),
    }))
}

/// In the order in which programs that walk the list meet them.
static OWN: [Own; 5] = [
    own(c"unix", 4096),
    own(c"memdb", 4096),
    own(c"unix-excl", 4096),
    own(c"unix-dotfile", 4096),
    own(c"unix-none", 4096),
];

/// The first of the list, which is reached under its lock only.
static FIRST: AtomicPtr<CVfs> = AtomicPtr::new(null_mut());

/// Takes the list's lock; a forked child has its own.
fn lock() -> MutexGuard<'static, ()> {
    static LOCK: PerProcess<Mutex<()>> = PerProcess::new();
    static MADE: AtomicBool = AtomicBool::new(false);
    let held = LOCK.get().lock().unwrap_or_else(PoisonError::into_inner);
    if !MADE.swap(true, Ordering::Relaxed) {
        for pair in OWN.windows(2) {
            // SAFETY: under the lock, before anybody has seen the list.
            unsafe { (*pair[0].0.get()).next = pair[1].0.get() };
        }
        FIRST.store(OWN[0].0.get(), Ordering::Relaxed);
    }
    held
}

/// The VFS behind one of ours.
pub(crate) fn engine_of(vfs: *mut CVfs) -> Option<Arc<dyn Vfs>> {
    let at = OWN.iter().position(|o| o.0.get() == vfs)?;
    iolite_os::system_vfses().get(at).cloned()
}

/// What a VFS of ours is called with.
fn this(vfs: *mut CVfs) -> Arc<dyn Vfs> {
    engine_of(vfs).unwrap_or_else(iolite_os::default_vfs)
}

unsafe fn path<'a>(p: *const c_char) -> &'a Path {
    Path::new(OsStr::from_bytes(bytes(p)))
}

unsafe extern "C" fn open(
    vfs: *mut CVfs,
    name: *const c_char,
    file: *mut CFile,
    flags: c_int,
    got: *mut c_int,
) -> c_int {
    let at = if name.is_null() { None } else { Some(path(name)) };
    crate::vfs_file::open(&this(vfs), at, file, flags, got)
}

unsafe extern "C" fn delete(vfs: *mut CVfs, name: *const c_char, sync: c_int) -> c_int {
    coded(|| this(vfs).delete(path(name), sync != 0))
}

unsafe extern "C" fn access(vfs: *mut CVfs, name: *const c_char, what: c_int, out: *mut c_int) -> c_int {
    coded(|| {
        let what = if what == 1 { Access::ReadWrite } else { Access::Exists };
        let there = this(vfs).access(path(name), what)?;
        if let Some(out) = out.as_mut() {
            *out = there as c_int;
        }
        Ok(())
    })
}

unsafe extern "C" fn full_path(vfs: *mut CVfs, name: *const c_char, n: c_int, out: *mut c_char) -> c_int {
    let mut links = false;
    let rc = coded(|| {
        let vfs = this(vfs);
        links = vfs.is_behind_link(path(name))?;
        let full = vfs.full_path(path(name))?;
        let b = full.as_os_str().as_bytes();
        if out.is_null() || b.len() + 1 > n.max(0) as usize {
            return Err(iolite::Code::CantopenFullpath.into());
        }
        std::ptr::copy_nonoverlapping(b.as_ptr(), out as *mut u8, b.len());
        *out.add(b.len()) = 0;
        Ok(())
    });
    if rc == crate::OK && links { OK_SYMLINK } else { rc }
}

unsafe extern "C" fn dl_open(_: *mut CVfs, name: *const c_char) -> *mut c_void {
    libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_GLOBAL)
}

unsafe extern "C" fn dl_error(_: *mut CVfs, n: c_int, out: *mut c_char) {
    let text = libc::dlerror();
    if n > 0 && !out.is_null() && !text.is_null() {
        libc::strncpy(out, text, n as usize - 1);
        *out.add(n as usize - 1) = 0;
    }
}

unsafe extern "C" fn dl_sym(_: *mut CVfs, library: *mut c_void, name: *const c_char) -> Symbol {
    std::mem::transmute::<*mut c_void, Symbol>(libc::dlsym(library, name))
}

unsafe extern "C" fn dl_close(_: *mut CVfs, library: *mut c_void) {
    libc::dlclose(library);
}

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

unsafe extern "C" fn last_error(_: *mut CVfs, _: c_int, _: *mut c_char) -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// No system call of ours can be replaced by another function.
unsafe extern "C" fn set_call(_: *mut CVfs, name: *const c_char, _: Symbol) -> c_int {
    if name.is_null() { crate::OK } else { crate::NOTFOUND }
}

unsafe extern "C" fn get_call(_: *mut CVfs, _: *const c_char) -> Symbol {
    None
}

unsafe extern "C" fn next_call(_: *mut CVfs, _: *const c_char) -> *const c_char {
    std::ptr::null()
}

/// The VFS of the list with this name.
pub(crate) fn found(name: &str) -> *mut CVfs {
    // SAFETY: a text that ends with a zero byte.
    std::ffi::CString::new(name).map_or(null_mut(), |name| unsafe { sqlite3_vfs_find(name.as_ptr()) })
}

/// Takes a VFS out of the list. The caller holds the lock.
unsafe fn unlink(vfs: *mut CVfs) {
    let mut link = FIRST.as_ptr();
    while !(*link).is_null() {
        if *link == vfs {
            *link = (*vfs).next;
            return;
        }
        link = &raw mut (**link).next;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_find(name: *const c_char) -> *mut CVfs {
    let _held = lock();
    let mut at = FIRST.load(Ordering::Relaxed);
    while !at.is_null() && !name.is_null() && bytes((*at).name) != bytes(name) {
        at = (*at).next;
    }
    at
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_register(vfs: *mut CVfs, make_default: c_int) -> c_int {
    let Some(name) = vfs.as_ref().and_then(|v| text_option(v.name)) else { return crate::MISUSE };
    let _held = lock();
    unlink(vfs);
    let first = FIRST.load(Ordering::Relaxed);
    let link = if make_default != 0 || first.is_null() { FIRST.as_ptr() } else { &raw mut (*first).next };
    (*vfs).next = *link;
    *link = vfs;
    let engine = engine_of(vfs).unwrap_or_else(|| Arc::new(Foreign::new(vfs, name)));
    iolite_os::register_vfs(engine, make_default != 0);
    crate::OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vfs_unregister(vfs: *mut CVfs) -> c_int {
    let Some(name) = vfs.as_ref().and_then(|v| text_option(v.name)) else { return crate::OK };
    let _held = lock();
    unlink(vfs);
    iolite_os::unregister_vfs(&name);
    crate::OK
}

//! `sqlite3_vfs`: the structure by which programs and this library show VFSes to each other.

use crate::vfs_file::CFile;
use std::ffi::{c_char, c_int, c_void};

/// That a symbolic link was on the way, which is no error.
pub(crate) const OK_SYMLINK: c_int = 0x200;

pub(crate) type Symbol = Option<unsafe extern "C" fn()>;

/// A `sqlite3_vfs` of version 3. Of methods that a program may leave out, none is called without looking.
#[repr(C)]
pub struct CVfs {
    pub(crate) version: c_int,
    pub(crate) file_size: c_int,
    pub(crate) longest_path: c_int,
    pub(crate) next: *mut CVfs,
    pub(crate) name: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) open:
        Option<unsafe extern "C" fn(*mut CVfs, *const c_char, *mut CFile, c_int, *mut c_int) -> c_int>,
    pub(crate) delete: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int) -> c_int>,
    pub(crate) access: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub(crate) full_path: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_char) -> c_int>,
    pub(crate) dl_open: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> *mut c_void>,
    pub(crate) dl_error: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char)>,
    pub(crate) dl_sym: Option<unsafe extern "C" fn(*mut CVfs, *mut c_void, *const c_char) -> Symbol>,
    pub(crate) dl_close: Option<unsafe extern "C" fn(*mut CVfs, *mut c_void)>,
    pub(crate) randomness: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) sleep: Option<unsafe extern "C" fn(*mut CVfs, c_int) -> c_int>,
    pub(crate) current_time: Option<unsafe extern "C" fn(*mut CVfs, *mut f64) -> c_int>,
    pub(crate) last_error: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) current_time_ms: Option<unsafe extern "C" fn(*mut CVfs, *mut i64) -> c_int>,
    pub(crate) set_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, Symbol) -> c_int>,
    pub(crate) get_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> Symbol>,
    pub(crate) next_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> *const c_char>,
}

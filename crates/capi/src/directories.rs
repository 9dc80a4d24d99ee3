//! Folders that a program names by variables of the library.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

unsafe fn given<'a>(p: *const c_char) -> &'a [u8] {
    if p.is_null() { b"" } else { CStr::from_ptr(p).to_bytes() }
}

#[unsafe(no_mangle)]
pub static mut sqlite3_temp_directory: *mut c_char = null_mut();

/// The folder for temporary files that a program has set.
pub(crate) fn temp_directory() -> Option<Vec<u8>> {
    // SAFETY: NULL or a text of the program's, which sets it before it opens databases.
    let folder = unsafe { given(sqlite3_temp_directory) };
    (!folder.is_empty()).then(|| folder.to_vec())
}

#[unsafe(no_mangle)]
pub static mut sqlite3_data_directory: *mut c_char = null_mut();

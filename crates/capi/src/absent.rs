//! Entries for what this library does not offer yet: files that C could use.
//!
//! Programs that are linked against them start, and learn from the answer that they cannot be used.

use std::ffi::c_void;
use std::ptr::null_mut;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_database_file_object() -> *mut c_void {
    null_mut()
}

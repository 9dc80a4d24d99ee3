//! Entries for what this library does not offer yet: geometry callbacks, files that C could use.
//!
//! Programs that are linked against them start, and learn from the answer that they cannot be used. An entry that takes
//! arguments in C may ignore them here: the caller clears them away.

use crate::ERROR;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

macro_rules! absent {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            ERROR
        })*
    };
}

absent! {
    sqlite3_rtree_geometry_callback
    sqlite3_rtree_query_callback
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_database_file_object() -> *mut c_void {
    null_mut()
}

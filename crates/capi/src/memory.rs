//! `sqlite3_malloc` and its family, and what is known about memory.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The largest single allocation.
const MOST: u64 = 0x7fff_ff00;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_malloc64(n: u64) -> *mut c_void {
    if n == 0 || n > MOST { null_mut() } else { libc::malloc(n as usize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_malloc(n: c_int) -> *mut c_void {
    if n <= 0 { null_mut() } else { sqlite3_malloc64(n as u64) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_realloc64(p: *mut c_void, n: u64) -> *mut c_void {
    if p.is_null() {
        return sqlite3_malloc64(n);
    }
    if n == 0 {
        libc::free(p);
        return null_mut();
    }
    if n > MOST { null_mut() } else { libc::realloc(p, n as usize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_realloc(p: *mut c_void, n: c_int) -> *mut c_void {
    sqlite3_realloc64(p, n.max(0) as u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_free(p: *mut c_void) {
    libc::free(p);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_msize(p: *mut c_void) -> u64 {
    if p.is_null() { 0 } else { libc::malloc_usable_size(p) as u64 }
}

/// A copy of `b` with a NUL behind it, for the caller to free.
pub(crate) unsafe fn copy_out(b: &[u8]) -> *mut std::ffi::c_char {
    let p = libc::malloc(b.len() + 1) as *mut u8;
    if !p.is_null() {
        std::ptr::copy_nonoverlapping(b.as_ptr(), p, b.len());
        *p.add(b.len()) = 0;
    }
    p as *mut _
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_used() -> i64 {
    iolite_base::alloc::used()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_highwater(reset: c_int) -> i64 {
    iolite_base::alloc::highwater(reset != 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_release_memory(_: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_release_memory(_: *mut c_void) -> c_int {
    crate::OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_soft_heap_limit64(n: i64) -> i64 {
    iolite_base::alloc::soft_limit(n)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_soft_heap_limit(n: c_int) {
    iolite_base::alloc::soft_limit(n.max(0).into());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_hard_heap_limit64(n: i64) -> i64 {
    iolite_base::alloc::hard_limit(n)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_alarm(_: *mut c_void, _: *mut c_void, _: i64) -> c_int {
    crate::OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_thread_cleanup() {}

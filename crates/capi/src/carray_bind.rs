//! `sqlite3_carray_bind`: an array of the program as a value.

use crate::bind::sqlite3_bind_pointer;
use crate::carray::{BOUND, Bound};
use crate::connection::Destructor;
use crate::connection::{destroy, is_transient};
use crate::statement::Stmt;
use crate::{ERROR, NOMEM};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Calls the destructor of an array when it goes.
struct Released(Option<Destructor>, *mut c_void);

impl Drop for Released {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together, and this is their last holder.
        unsafe { destroy(self.0, self.1) };
    }
}

/// Copies an array, and what it points at.
unsafe fn copy_of(data: *const c_void, count: usize, kind: c_uint) -> (Vec<u64>, Vec<Vec<u8>>) {
    let width = match kind {
        0 => 4,
        4 => size_of::<libc::iovec>(),
        _ => 8,
    };
    let mut copy = vec![0u64; (count * width).div_ceil(8)];
    std::ptr::copy_nonoverlapping(data as *const u8, copy.as_mut_ptr() as *mut u8, count * width);
    let mut contents: Vec<Vec<u8>> = Vec::new();
    for k in 0..count {
        if kind == 3 {
            let p = (copy.as_mut_ptr() as *mut *const c_char).add(k);
            if !(*p).is_null() {
                contents.push(CStr::from_ptr(*p).to_bytes_with_nul().to_vec());
                *p = contents.last().map_or(std::ptr::null(), |c| c.as_ptr() as *const c_char);
            }
        } else if kind == 4 {
            let v = (copy.as_mut_ptr() as *mut libc::iovec).add(k);
            if !(*v).iov_base.is_null() {
                contents.push(std::slice::from_raw_parts((*v).iov_base as *const u8, (*v).iov_len).to_vec());
                (*v).iov_base = contents.last().map_or(std::ptr::null_mut(), |c| c.as_ptr() as *mut c_void);
            }
        }
    }
    (copy, contents)
}

unsafe extern "C" fn release(p: *mut c_void) {
    if !p.is_null() {
        crate::guard((), || drop(Box::from_raw(p as *mut Bound)));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_carray_bind_v2(
    s: *mut Stmt,
    i: c_int,
    data: *mut c_void,
    count: c_int,
    kind: c_uint,
    f: Option<Destructor>,
    user: *mut c_void,
) -> c_int {
    if kind > 4 {
        destroy(f, user);
        return ERROR;
    }
    let made = crate::guard(None, || {
        let mut bound = Bound { data, count, kind, keeper: Box::new(()) };
        if !is_transient(f) {
            bound.keeper = Box::new(Released(f, user));
        } else if !data.is_null() {
            let copy = copy_of(data, count.max(0) as usize, kind);
            bound.data = copy.0.as_ptr() as *const c_void;
            bound.keeper = Box::new(copy);
        }
        Some(Box::new(bound))
    });
    match made {
        Some(b) => sqlite3_bind_pointer(s, i, Box::into_raw(b) as *mut c_void, BOUND.as_ptr(), Some(release)),
        None => NOMEM,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_carray_bind(
    s: *mut Stmt,
    i: c_int,
    data: *mut c_void,
    count: c_int,
    kind: c_uint,
    f: Option<Destructor>,
) -> c_int {
    sqlite3_carray_bind_v2(s, i, data, count, kind, f, data)
}

//! Memory of zeroes, as the allocator has it ready: of a large piece the kernel gives the pages as they are written to, where clearing
//! it would take them all.

use crate::{Code, Result};
use std::alloc::{Layout, alloc_zeroed};

/// Numbers that are zero where all their bytes are.
pub(crate) trait Number {}
impl Number for u8 {}
impl Number for u64 {}

/// A vector of `n` zeroes, or `SQLITE_NOMEM`: of a large one the kernel gives the pages as they are written to.
pub(crate) fn zeroed_memory<T: Number>(n: usize) -> Result<Vec<T>> {
    let layout = Layout::array::<T>(n).map_err(|_| Code::Nomem)?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is that of `n` elements and not empty; zeroes are such elements.
    unsafe {
        let at = alloc_zeroed(layout) as *mut T;
        if at.is_null() { Err(Code::Nomem.into()) } else { Ok(Vec::from_raw_parts(at, n, n)) }
    }
}

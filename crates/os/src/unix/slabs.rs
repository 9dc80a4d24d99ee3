//! Where slabs of page memory come from: mappings of their own, so that what is given back is the system's at once.
//!
//! A large page is faulted in as a whole. Where its memory is there that takes a seventh of the time that small pages take
//! for the same bytes; in a virtual machine whose host takes free memory back, in pieces of this very size, it takes
//! five times as long (2 MB: 0.17, 1.2 and 5.7 ms). Nothing tells beforehand, so the first touch of each is timed.
//!
//! What always holds: after a slow large page the next [`PAUSE`] slabs have small ones, which are faulted in together, so that a
//! cache grows as fast as with small pages alone where large ones are slow, but for a tenth.

use iolite_base::slab::{SIZE, Source};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Mappings.
pub const SOURCE: Source = Source { take: map, give: unmap };

/// What takes longer is slow: small pages would not have taken more.
const SLOW: Duration = Duration::from_millis(1);
/// Slabs after which large pages are tried again.
const PAUSE: u32 = 64;

/// How many of the next slabs have small pages.
static SMALL: AtomicU32 = AtomicU32::new(0);

/// A mapping for a slab.
fn map(large_pages: bool) -> *mut u8 {
    let how = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping; what is cut off in front and behind is nobody's yet.
    let slab = unsafe {
        let at = libc::mmap(ptr::null_mut(), 2 * SIZE, how.0, how.1, -1, 0);
        if at == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let before = at.addr().next_multiple_of(SIZE) - at.addr();
        let slab = at.byte_add(before);
        if before > 0 {
            libc::munmap(at, before);
        }
        libc::munmap(slab.byte_add(SIZE), SIZE - before);
        slab.cast()
    };
    if large_pages {
        match SMALL.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => back_by_small_pages(slab),
            Err(_) => back_by_large_page(slab),
        }
    }
    slab
}

/// Has the system back a slab by small pages, all at once.
fn back_by_small_pages(slab: *mut u8) {
    // SAFETY: the slab is a mapping of this size that nobody uses yet. A system that cannot faults them in one by one.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    unsafe {
        libc::madvise(slab.cast(), SIZE, libc::MADV_POPULATE_WRITE);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = slab;
}

/// Has the system back a slab by one large page, and times it.
fn back_by_large_page(slab: *mut u8) {
    let began = Instant::now();
    // SAFETY: the slab is a mapping of this size that nobody uses yet.
    unsafe {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        libc::madvise(slab.cast(), SIZE, libc::MADV_HUGEPAGE);
        slab.write_volatile(0);
    }
    if began.elapsed() > SLOW {
        SMALL.store(PAUSE, Relaxed);
    }
}

/// Gives a slab back.
///
/// # Safety
/// It is from [`map`], and nobody uses it.
unsafe fn unmap(slab: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        libc::munmap(slab.cast(), SIZE);
    }
}

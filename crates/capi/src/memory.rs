//! `sqlite3_malloc` and its family, the allocator that a program may give for it, and what is known about memory.
//!
//! Blocks that pass to or from the program come from the program's allocator, if it has given one, else from the C library.
//! They are counted with what the engine uses. The engine's own memory is Rust's; with an allocator of the program it asks
//! that one first for each piece that the data sizes, and gives the piece back at once: so a failure that the
//! allocator draws is a failure of the engine. A connection and a statement each hold a block of the program's allocator.
//!
//! What always holds: the allocator changes only while the library is shut down, so a block returns to the one it came from.

use crate::{ERROR, NOMEM, OK};
use iolite_base::alloc;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Static mutexes, by C's numbers.
const STATIC_MAIN: c_int = 2;
const STATIC_MEM: c_int = 3;
/// The largest single allocation.
const MOST: u64 = 0x7fff_ff00;

/// C's `sqlite3_mem_methods`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Methods {
    malloc: Option<unsafe extern "C" fn(c_int) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void)>,
    realloc: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void>,
    size: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    roundup: Option<unsafe extern "C" fn(c_int) -> c_int>,
    init: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    shutdown: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

/// The C library's, for programs that wrap them.
const SYSTEM: Methods = Methods {
    malloc: Some(system_malloc),
    free: Some(system_free),
    realloc: Some(system_realloc),
    size: Some(system_size),
    roundup: Some(system_roundup),
    init: Some(system_init),
    shutdown: Some(system_shutdown),
    data: null_mut(),
};

unsafe extern "C" fn system_malloc(n: c_int) -> *mut c_void {
    libc::malloc(n as usize)
}

unsafe extern "C" fn system_free(p: *mut c_void) {
    libc::free(p)
}

unsafe extern "C" fn system_realloc(p: *mut c_void, n: c_int) -> *mut c_void {
    libc::realloc(p, n as usize)
}

unsafe extern "C" fn system_size(p: *mut c_void) -> c_int {
    #[cfg(target_vendor = "apple")]
    let size = libc::malloc_size(p);
    #[cfg(not(target_vendor = "apple"))]
    let size = libc::malloc_usable_size(p);
    size.min(c_int::MAX as usize) as c_int
}

unsafe extern "C" fn system_roundup(n: c_int) -> c_int {
    n.saturating_add(7) & !7
}

unsafe extern "C" fn system_init(_: *mut c_void) -> c_int {
    OK
}

unsafe extern "C" fn system_shutdown(_: *mut c_void) {}

struct Chosen(UnsafeCell<Methods>);

// SAFETY: written only while the library is shut down, when no other thread may be in it (documentation page `c3ref/config`).
unsafe impl Sync for Chosen {}

static CHOSEN: Chosen = Chosen(UnsafeCell::new(SYSTEM));
/// Whether `CHOSEN` is the program's.
static GIVEN: AtomicBool = AtomicBool::new(false);
/// Whether its `init` was called, and `shutdown` not since.
static READY: AtomicBool = AtomicBool::new(false);
/// `SQLITE_CONFIG_MEMSTATUS`.
static COUNTED: AtomicBool = AtomicBool::new(true);
/// Blocks that are out, the most there were, and the largest that was asked for.
static BLOCKS: AtomicI64 = AtomicI64::new(0);
static MOST_BLOCKS: AtomicI64 = AtomicI64::new(0);
static LARGEST: AtomicI64 = AtomicI64::new(0);

/// Settings of the process are settled: it has opened a database, or said that it is ready.
pub(crate) static INITIALIZED: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_initialize() -> c_int {
    if INITIALIZED.load(Acquire) {
        return OK;
    }
    // Other threads wait until all is ready; the allocator that begins may come back here, by the same thread.
    let mutex = crate::mutex::sqlite3_mutex_alloc(STATIC_MAIN);
    crate::mutex::sqlite3_mutex_enter(mutex);
    let rc = begin();
    INITIALIZED.store(rc == OK, Release);
    crate::mutex::sqlite3_mutex_leave(mutex);
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_shutdown() -> c_int {
    if INITIALIZED.swap(false, AcqRel) {
        end();
    }
    OK
}

unsafe fn methods() -> Methods {
    *CHOSEN.0.get()
}

/// Runs `f` with the allocator, one thread at a time where it is the program's and memory is counted.
unsafe fn with_methods<T>(f: impl FnOnce(Methods) -> T) -> T {
    if !(GIVEN.load(Relaxed) && COUNTED.load(Relaxed)) {
        return f(methods());
    }
    let mutex = crate::mutex::sqlite3_mutex_alloc(STATIC_MEM);
    crate::mutex::sqlite3_mutex_enter(mutex);
    let answer = f(methods());
    crate::mutex::sqlite3_mutex_leave(mutex);
    answer
}

/// `SQLITE_CONFIG_MALLOC`; methods without an allocation bring back the C library's.
pub(crate) unsafe fn choose(m: *const Methods) -> c_int {
    let Some(m) = m.as_ref() else { return ERROR };
    let given = m.malloc.is_some();
    *CHOSEN.0.get() = if given { *m } else { SYSTEM };
    // What a program got from `tell` and gives back is the C library's, as before.
    let given = given && m.malloc.map(|f| f as usize) != SYSTEM.malloc.map(|f| f as usize);
    GIVEN.store(given, Relaxed);
    alloc::ask_first(given.then_some(would_give));
    OK
}

/// `SQLITE_CONFIG_GETMALLOC`.
pub(crate) unsafe fn tell(m: *mut Methods) -> c_int {
    let Some(m) = m.as_mut() else { return ERROR };
    *m = methods();
    OK
}

/// `SQLITE_CONFIG_MEMSTATUS`.
pub(crate) fn count_blocks(on: bool) {
    COUNTED.store(on, Relaxed);
}

/// Whether memory is counted.
pub(crate) fn counted() -> bool {
    COUNTED.load(Relaxed)
}

/// Has the allocator begin, if it has not.
unsafe fn begin() -> c_int {
    if READY.swap(true, Relaxed) {
        return OK;
    }
    let m = methods();
    let rc = m.init.map_or(OK, |f| f(m.data));
    READY.store(rc == OK, Relaxed);
    rc
}

/// Has the allocator end.
unsafe fn end() {
    if READY.swap(false, Relaxed) {
        let m = methods();
        if let Some(f) = m.shutdown {
            f(m.data);
        }
    }
}

/// Whether the program's allocator has `n` bytes.
fn would_give(n: usize) -> bool {
    // SAFETY: the block is freed at once.
    unsafe {
        with_methods(|m| {
            let p = m.malloc.map_or(null_mut(), |f| f(n.clamp(1, MOST as usize) as c_int));
            if let (false, Some(free)) = (p.is_null(), m.free) {
                free(p);
            }
            !p.is_null()
        })
    }
}

/// A block of the program's allocator that stands for something of the engine's; nothing where there is no such allocator.
pub(crate) struct Held(*mut c_void, usize);

// SAFETY: the block is freed only, which any thread may do.
unsafe impl Send for Held {}

impl Held {
    pub(crate) fn new(n: u64) -> Result<Held, c_int> {
        if !GIVEN.load(Relaxed) {
            alloc::count(n as usize).map_err(|_| NOMEM)?;
            return Ok(Held(null_mut(), n as usize));
        }
        // SAFETY: freed once, below.
        let p = unsafe { sqlite3_malloc64(n) };
        if p.is_null() { Err(NOMEM) } else { Ok(Held(p, 0)) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the block is this value's, or NULL.
        unsafe { sqlite3_free(self.0) };
        alloc::release(self.1);
    }
}

/// Counts a block; `false` where the limit says no.
unsafe fn came(m: &Methods, p: *mut c_void) -> bool {
    if alloc::count(m.size.map_or(0, |f| f(p)).max(0) as usize).is_err() {
        return false;
    }
    let blocks = BLOCKS.fetch_add(1, Relaxed) + 1;
    MOST_BLOCKS.fetch_max(blocks, Relaxed);
    true
}

unsafe fn went(m: &Methods, p: *mut c_void) {
    alloc::release(m.size.map_or(0, |f| f(p)).max(0) as usize);
    BLOCKS.fetch_sub(1, Relaxed);
}

/// Blocks that are out, and the most there were.
pub(crate) fn blocks(reset: bool) -> (i64, i64) {
    let now = BLOCKS.load(Relaxed);
    (now, if reset { MOST_BLOCKS.swap(now, Relaxed) } else { MOST_BLOCKS.load(Relaxed) })
}

/// The largest block that was asked for.
pub(crate) fn largest(reset: bool) -> i64 {
    if reset { LARGEST.swap(0, Relaxed) } else { LARGEST.load(Relaxed) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_malloc64(n: u64) -> *mut c_void {
    if n == 0 || n > MOST || sqlite3_initialize() != OK {
        return null_mut();
    }
    LARGEST.fetch_max(n as i64, Relaxed);
    with_methods(|m| {
        let size =
            if GIVEN.load(Relaxed) { m.roundup.map_or(n as c_int, |f| f(n as c_int)) } else { n as c_int };
        let Some(f) = m.malloc.filter(|_| size > 0) else { return null_mut() };
        let p = f(size);
        if !p.is_null() && !came(&m, p) {
            m.free.inspect(|f| f(p));
            return null_mut();
        }
        p
    })
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
        sqlite3_free(p);
        return null_mut();
    }
    if n > MOST {
        return null_mut();
    }
    LARGEST.fetch_max(n as i64, Relaxed);
    with_methods(|m| {
        let size = m.roundup.map_or(n as c_int, |f| f(n as c_int));
        let old = m.size.map_or(0, |f| f(p)).max(0) as usize;
        let Some(f) = m.realloc.filter(|_| size > 0) else { return null_mut() };
        if alloc::count(size as usize).is_err() {
            return null_mut();
        }
        let to = f(p, size);
        alloc::release(size as usize);
        if !to.is_null() {
            alloc::release(old);
            // Beyond what was just found to fit it is some bytes at most.
            let _ = alloc::count(m.size.map_or(0, |f| f(to)).max(0) as usize);
        }
        to
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_realloc(p: *mut c_void, n: c_int) -> *mut c_void {
    sqlite3_realloc64(p, n.max(0) as u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_free(p: *mut c_void) {
    if !p.is_null() {
        with_methods(|m| {
            went(&m, p);
            m.free.inspect(|f| f(p));
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_msize(p: *mut c_void) -> u64 {
    if p.is_null() { 0 } else { methods().size.map_or(0, |f| f(p)).max(0) as u64 }
}

/// A copy of `b` with a NUL behind it, for the caller to free.
pub(crate) unsafe fn copy_out(b: &[u8]) -> *mut std::ffi::c_char {
    let p = sqlite3_malloc64(b.len() as u64 + 1) as *mut u8;
    if !p.is_null() {
        std::ptr::copy_nonoverlapping(b.as_ptr(), p, b.len());
        *p.add(b.len()) = 0;
    }
    p as *mut _
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_used() -> i64 {
    if counted() { alloc::used() } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_highwater(reset: c_int) -> i64 {
    if counted() { alloc::highwater(reset != 0) } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_release_memory(_: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_release_memory(_: *mut c_void) -> c_int {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_soft_heap_limit64(n: i64) -> i64 {
    alloc::soft_limit(n)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_soft_heap_limit(n: c_int) {
    alloc::soft_limit(n.max(0).into());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_hard_heap_limit64(n: i64) -> i64 {
    alloc::hard_limit(n)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_memory_alarm(_: *mut c_void, _: *mut c_void, _: i64) -> c_int {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_thread_cleanup() {}

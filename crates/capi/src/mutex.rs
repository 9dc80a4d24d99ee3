//! Mutexes: the connection's, and `sqlite3_mutex_*`.

use std::cell::UnsafeCell;
use std::ffi::c_int;

/// A mutex that its holder may take again.
pub struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made to be used by several threads.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

/// Holds the mutex until dropped.
pub struct Guard(*mut libc::pthread_mutex_t);

impl Default for Mutex {
    fn default() -> Mutex {
        // SAFETY: zero is a value of these plain C structs; both are initialised before use, and the mutex, being in
        // a box, does not move.
        unsafe {
            let m: Box<UnsafeCell<libc::pthread_mutex_t>> = Box::new(UnsafeCell::new(std::mem::zeroed()));
            let mut attr: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attr);
            libc::pthread_mutexattr_settype(&mut attr, libc::PTHREAD_MUTEX_RECURSIVE);
            libc::pthread_mutex_init(m.get(), &attr);
            libc::pthread_mutexattr_destroy(&mut attr);
            Mutex(m)
        }
    }
}

impl Mutex {
    /// Takes the mutex until the guard is dropped.
    pub fn enter(&self) -> Guard {
        let p = self.0.get();
        // SAFETY: initialised, and alive as long as `self`; guards do not outlive their connection.
        unsafe { libc::pthread_mutex_lock(p) };
        Guard(p)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: locked by this thread in `enter`.
        unsafe { libc::pthread_mutex_unlock(self.0) };
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: initialised, and nobody holds it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_alloc(kind: c_int) -> *mut Mutex {
    use std::sync::OnceLock;
    static FIXED: OnceLock<Vec<Mutex>> = OnceLock::new();
    if kind >= 2 {
        // Static mutexes are numbered from 2 up.
        let all = FIXED.get_or_init(|| (0..16).map(|_| Mutex::default()).collect());
        return all.get(kind as usize - 2).map_or(std::ptr::null_mut(), |m| m as *const Mutex as *mut Mutex);
    }
    Box::into_raw(Box::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_free(m: *mut Mutex) {
    if !m.is_null() {
        drop(Box::from_raw(m));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_enter(m: *mut Mutex) {
    if let Some(m) = m.as_ref() {
        libc::pthread_mutex_lock(m.0.get());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_try(m: *mut Mutex) -> c_int {
    match m.as_ref() {
        Some(m) if libc::pthread_mutex_trylock(m.0.get()) != 0 => crate::BUSY,
        _ => crate::OK,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_leave(m: *mut Mutex) {
    if let Some(m) = m.as_ref() {
        libc::pthread_mutex_unlock(m.0.get());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_held(_: *mut Mutex) -> c_int {
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_notheld(_: *mut Mutex) -> c_int {
    1
}

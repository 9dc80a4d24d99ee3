//! Mutexes: the connection's, and `sqlite3_mutex_*`.
//!
//! A connection is used by one thread nearly always, and each of the calls that read a row takes its mutex. So a mutex that the
//! same thread has taken some times without another in between belongs to that thread: entering and leaving are two plain
//! stores then, no atomic operation. The first other thread that comes takes this right away, for good; from then on it is a
//! recursive pthread mutex and nothing else.
//!
//! What always holds:
//! - `owner` is written once, by that thread, while it holds the pthread mutex. `inside`, which counts how often the owner is in by its
//!   right, is written by the owner alone.
//! - The owner enters by its right only if it sees `revoked` unset after it has stored `inside`. Who takes the right away stores `revoked`, has
//!   the kernel make every running thread of the process pass a full barrier (`membarrier`), and then waits until `inside`
//!   is 0. Either the owner's store is seen by that wait, or the owner sees `revoked`: the order within the owner is the compiler's alone.
//! - A thread is in by its right, or by the pthread mutex; an owner that is in by its right goes on so when it enters again.
//! - Nobody waits for `inside` without the pthread mutex, and the owner takes that only when it is not in by its right: no circle.
//!
//! Where the system has no such barrier nobody gets the right. A debug build gives it to nobody either, so that tools that look for
//! races see the locks that they know; tests ask for it.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, compiler_fence};

/// A mutex that its holder may take again.
pub struct Mutex(Box<Inner>);

struct Inner {
    /// The thread that may enter by its right; 0: none yet.
    owner: AtomicUsize,
    /// How often the owner is in by its right.
    inside: AtomicU32,
    /// The owner has lost its right.
    revoked: AtomicBool,
    /// How often the thread `last` took the pthread mutex with none in between; written by its holder.
    turns: AtomicU32,
    last: AtomicUsize,
    /// Whether somebody may own it.
    ownable: bool,
    pthread: UnsafeCell<libc::pthread_mutex_t>,
}

// SAFETY: a pthread mutex is made to be used by several threads; all else is atomic.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// So many turns give a thread the right.
const TURNS: u32 = 50;

/// Holds the mutex until dropped.
pub struct Guard {
    mutex: *const Inner,
    by_right: bool,
    /// With what connections share, which is left first.
    shared: bool,
}

impl Guard {
    /// Takes what connections share, too.
    pub(crate) fn with_shared(mut self) -> Guard {
        take_shared();
        self.shared = true;
        self
    }
}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex::new(!cfg!(debug_assertions))
    }
}

/// The mutex of what all connections have in common that may share caches with each other. It is the innermost: nobody waits for a
/// connection's own while holding it ([`apart`]). Nobody owns it: it is given up and taken back as often as it was taken.
fn shared() -> &'static Mutex {
    static SHARED: OnceLock<Mutex> = OnceLock::new();
    SHARED.get_or_init(|| Mutex::new(false))
}

thread_local! {
    /// How often this thread holds it.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

fn take_shared() {
    std::mem::forget(shared().enter());
    DEPTH.set(DEPTH.get() + 1);
}

#[cold]
fn leave_shared() {
    DEPTH.set(DEPTH.get() - 1);
    drop(Guard { mutex: &*shared().0, by_right: false, shared: false });
}

/// Runs `f`, which may wait for other threads, without holding what is shared.
pub(crate) fn apart<T>(f: impl FnOnce() -> T) -> T {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            (0..self.0).for_each(|_| take_shared());
        }
    }
    let depth = DEPTH.get();
    (0..depth).for_each(|_| leave_shared());
    let _back = Back(depth);
    f()
}

fn this_thread() -> usize {
    // SAFETY: it asks for nothing.
    unsafe { libc::pthread_self() as usize }
}

impl Mutex {
    fn new(ownable: bool) -> Mutex {
        // SAFETY: zero is a value of these plain C structs; both are initialised before use, and the mutex, being in
        // a box, does not move.
        unsafe {
            let inner = Box::new(Inner {
                owner: AtomicUsize::new(0),
                inside: AtomicU32::new(0),
                revoked: AtomicBool::new(false),
                turns: AtomicU32::new(0),
                last: AtomicUsize::new(0),
                ownable,
                pthread: UnsafeCell::new(std::mem::zeroed()),
            });
            let mut attr: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attr);
            libc::pthread_mutexattr_settype(&mut attr, libc::PTHREAD_MUTEX_RECURSIVE);
            libc::pthread_mutex_init(inner.pthread.get(), &attr);
            libc::pthread_mutexattr_destroy(&mut attr);
            Mutex(inner)
        }
    }

    /// Takes the mutex until the guard is dropped.
    #[inline]
    pub fn enter(&self) -> Guard {
        let by_right = self.0.enter_by_right();
        if !by_right {
            self.0.wait();
        }
        // Alive as long as `self`; guards do not outlive their connection.
        Guard { mutex: &*self.0, by_right, shared: false }
    }

    /// Takes the mutex if nobody else has it.
    pub(crate) fn attempt(&self) -> Option<Guard> {
        self.0.attempt().then(|| Guard { mutex: &*self.0, by_right: self.0.is_in_by_right(), shared: false })
    }
}

impl Inner {
    /// Enters as the owner, if this thread is that and still has its right.
    #[inline]
    fn enter_by_right(&self) -> bool {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return false;
        }
        let n = self.inside.load(Ordering::Relaxed);
        self.inside.store(n + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if n == 0 && self.revoked.load(Ordering::Relaxed) {
            self.inside.store(0, Ordering::Release);
            return false;
        }
        true
    }

    /// Leaves as the owner.
    #[inline]
    fn leave_by_right(&self) {
        let n = self.inside.load(Ordering::Relaxed);
        self.inside.store(n - 1, Ordering::Release);
    }

    /// Whether this thread is in by its right.
    fn is_in_by_right(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread() && self.inside.load(Ordering::Relaxed) > 0
    }

    /// Takes the pthread mutex, and the owner's right away.
    #[cold]
    fn wait(&self) {
        // SAFETY: initialised, and alive as long as `self`.
        unsafe { libc::pthread_mutex_lock(self.pthread.get()) };
        self.revoke();
        while self.inside.load(Ordering::Acquire) > 0 {
            // Once in the life of a mutex, and perhaps as long as a query runs.
            // SAFETY: it waits and does nothing else.
            unsafe { libc::usleep(200) };
        }
        self.count();
    }

    /// Makes sure that the owner, if there is one, does not enter by its right any more. The caller holds the pthread mutex.
    fn revoke(&self) {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == 0 || owner == this_thread() || self.revoked.load(Ordering::Relaxed) {
            return;
        }
        self.revoked.store(true, Ordering::SeqCst);
        barrier::everywhere();
    }

    /// Notes a turn of this thread, which holds the pthread mutex, and makes it the owner when it had enough of them.
    fn count(&self) {
        if !self.ownable || self.owner.load(Ordering::Relaxed) != 0 {
            return;
        }
        let me = this_thread();
        let turns = if self.last.swap(me, Ordering::Relaxed) == me {
            self.turns.load(Ordering::Relaxed) + 1
        } else {
            0
        };
        self.turns.store(turns, Ordering::Relaxed);
        if turns >= TURNS && barrier::is_there() {
            self.owner.store(me, Ordering::Relaxed);
        }
    }

    /// Takes the mutex if nobody has it.
    fn attempt(&self) -> bool {
        if self.enter_by_right() {
            return true;
        }
        // SAFETY: initialised.
        if unsafe { libc::pthread_mutex_trylock(self.pthread.get()) } != 0 {
            return false;
        }
        self.revoke();
        let free = self.inside.load(Ordering::Acquire) == 0;
        if !free {
            // SAFETY: locked above.
            unsafe { libc::pthread_mutex_unlock(self.pthread.get()) };
        }
        free
    }
}

/// A full barrier in every running thread of the process, by request of one of them.
mod barrier {
    #[cfg(target_os = "linux")]
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    #[cfg(target_os = "linux")]
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    #[cfg(target_os = "linux")]
    fn ask(what: libc::c_int) -> bool {
        // SAFETY: the call touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, what, 0, 0) == 0 }
    }

    /// Whether the system has it; from then on it may be asked for.
    #[cfg(target_os = "linux")]
    pub fn is_there() -> bool {
        static THERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *THERE.get_or_init(|| ask(REGISTER_PRIVATE_EXPEDITED) && ask(PRIVATE_EXPEDITED))
    }

    /// Has every running thread pass it.
    #[cfg(target_os = "linux")]
    pub fn everywhere() {
        let done = ask(PRIVATE_EXPEDITED) || ask(REGISTER_PRIVATE_EXPEDITED) && ask(PRIVATE_EXPEDITED);
        if !done {
            // Forbidden since it was registered. The owner stores and loads within nanoseconds; whoever sleeps gives it all the time it needs.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn is_there() -> bool {
        false
    }

    #[cfg(not(target_os = "linux"))]
    pub fn everywhere() {}
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if self.shared {
            leave_shared();
        }
        // SAFETY: the mutex is alive, and this thread entered it in `enter`, in this way.
        unsafe {
            match self.by_right {
                true => (*self.mutex).leave_by_right(),
                false => drop(libc::pthread_mutex_unlock((*self.mutex).pthread.get())),
            }
        }
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: initialised, and nobody holds it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.pthread.get()) };
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
        std::mem::forget(m.enter());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_try(m: *mut Mutex) -> c_int {
    match m.as_ref() {
        Some(m) if !m.0.attempt() => crate::BUSY,
        _ => crate::OK,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_mutex_leave(m: *mut Mutex) {
    if let Some(m) = m.as_ref() {
        drop(Guard { mutex: &*m.0, by_right: m.0.is_in_by_right(), shared: false });
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

/// C's `sqlite3_mutex_methods`.
#[repr(C)]
pub struct Methods {
    init: unsafe extern "C" fn() -> c_int,
    end: unsafe extern "C" fn() -> c_int,
    alloc: unsafe extern "C" fn(c_int) -> *mut Mutex,
    free: unsafe extern "C" fn(*mut Mutex),
    enter: unsafe extern "C" fn(*mut Mutex),
    attempt: unsafe extern "C" fn(*mut Mutex) -> c_int,
    leave: unsafe extern "C" fn(*mut Mutex),
    held: unsafe extern "C" fn(*mut Mutex) -> c_int,
    notheld: unsafe extern "C" fn(*mut Mutex) -> c_int,
}

unsafe extern "C" fn nothing_to_do() -> c_int {
    crate::OK
}

/// `SQLITE_CONFIG_GETMUTEX`.
pub(crate) unsafe fn tell(m: *mut Methods) -> c_int {
    if m.is_null() {
        return crate::ERROR;
    }
    m.write(Methods {
        init: nothing_to_do,
        end: nothing_to_do,
        alloc: sqlite3_mutex_alloc,
        free: sqlite3_mutex_free,
        enter: sqlite3_mutex_enter,
        attempt: sqlite3_mutex_try,
        leave: sqlite3_mutex_leave,
        held: sqlite3_mutex_held,
        notheld: sqlite3_mutex_notheld,
    });
    crate::OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A mutex and a count that is changed under it without atomic operations.
    struct Counted(Mutex, UnsafeCell<u64>);

    // SAFETY: the count is reached under the mutex.
    unsafe impl Sync for Counted {}

    impl Counted {
        fn add(&self, nested: bool) {
            let _held = self.0.enter();
            let _again = nested.then(|| self.0.enter());
            // SAFETY: under the mutex.
            unsafe {
                let p = self.1.get();
                let seen = std::ptr::read_volatile(p);
                std::hint::spin_loop();
                std::ptr::write_volatile(p, seen + 1);
            }
        }
    }

    #[test]
    fn one_thread_gets_the_right_and_the_next_one_takes_it() {
        let m = Mutex::new(true);
        assert!(!m.enter().by_right);
        for _ in 0..TURNS {
            drop(m.enter());
        }
        if !barrier::is_there() {
            return;
        }
        assert!(m.enter().by_right);
        {
            let _first = m.enter();
            assert!(m.enter().by_right);
        }
        std::thread::scope(|s| {
            s.spawn(|| assert!(!m.enter().by_right));
        });
        assert!(!m.enter().by_right);
        assert_eq!(m.0.inside.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_tries_does_not_wait_for_the_owner() {
        let m = Mutex::new(true);
        for _ in 0..TURNS + 1 {
            drop(m.enter());
        }
        let held = m.enter();
        std::thread::scope(|s| {
            s.spawn(|| assert!(!m.0.attempt()));
        });
        // It goes on by its right until it is out.
        drop(m.enter());
        drop(held);
        assert!(!m.enter().by_right);
        assert!(m.0.attempt());
        Guard { mutex: &*m.0, by_right: false, shared: false };
    }

    #[test]
    fn two_are_never_in_at_once() {
        for round in 0..300u64 {
            let c = Arc::new(Counted(Mutex::new(true), UnsafeCell::new(0)));
            let going = Arc::new(AtomicBool::new(true));
            let owner = std::thread::spawn({
                let (c, going) = (c.clone(), going.clone());
                move || {
                    let mut n = 0;
                    while going.load(Ordering::Relaxed) || n < 200 {
                        c.add(n % 3 == 0);
                        n += 1;
                    }
                    n
                }
            });
            std::thread::sleep(std::time::Duration::from_micros(round * 7));
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let c = c.clone();
                    std::thread::spawn(move || (0..500).for_each(|n| c.add(n % 2 == 0)))
                })
                .collect();
            for t in others {
                t.join().expect("a thread that ends");
            }
            going.store(false, Ordering::Relaxed);
            let mine: u64 = owner.join().expect("a thread that ends");
            // SAFETY: all threads have ended.
            assert_eq!(unsafe { *c.1.get() }, mine + 1000);
        }
    }
}

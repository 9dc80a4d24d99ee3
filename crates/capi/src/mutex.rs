//! Mutexes: the connection's, and `sqlite3_mutex_*`.
//!
//! A connection is used by one thread nearly always, and each of the calls that read a row takes its mutex. So a mutex that the
//! same thread has taken some times without another in between belongs to that thread: entering and leaving are two plain
//! stores then, no atomic operation. The first other thread that comes takes this right away, for good; from then on it is a
//! pthread mutex that counts how often its holder is in, and nothing else.
//!
//! What always holds:
//! - `owner` is written once, by that thread, while it holds the pthread mutex. `inside`, which counts how often the owner is in by its
//!   right, is written by the owner alone.
//! - The owner enters by its right only if it sees `revoked` unset after it has stored `inside`. Who takes the right away stores `revoked`, has
//!   the kernel make every running thread of the process pass a full barrier (`membarrier`), and then waits until `inside`
//!   is 0. Either the owner's store is seen by that wait, or the owner sees `revoked`: the order within the owner is the compiler's alone.
//! - A thread is in by its right, or by the pthread mutex; an owner that is in by its right goes on so when it enters again.
//! - Nobody waits for `inside` without the pthread mutex, and the owner takes that only when it is not in by its right: no circle.
//! - `holder` is the thread that has the pthread mutex, and `depth` how often; both are written by it alone.
//! - In a forked child, the first to come adopts the mutex. Of the parent's threads there is only the one that called `fork`: if
//!   another one was in, nobody is from then on, and the mutex is `lost`: what it guards was left half changed.
//!
//! Where the system has no such barrier nobody gets the right. A debug build gives it to nobody either, so that tools that look for
//! races see the locks that they know; tests ask for it.

use std::cell::UnsafeCell;
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
    holder: AtomicUsize,
    depth: AtomicU32,
    /// How many forks there had been when it was made, or adopted last.
    forks: AtomicU32,
    lost: AtomicBool,
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
}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex::new(!cfg!(debug_assertions))
    }
}

fn this_thread() -> usize {
    // SAFETY: it asks for nothing.
    unsafe { libc::pthread_self() as usize }
}

impl Mutex {
    fn new(ownable: bool) -> Mutex {
        iolite_os::watch_forks();
        let inner = Box::new(Inner {
            owner: AtomicUsize::new(0),
            inside: AtomicU32::new(0),
            revoked: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            last: AtomicUsize::new(0),
            holder: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            forks: AtomicU32::new(iolite_os::forks()),
            lost: AtomicBool::new(false),
            ownable,
            // SAFETY: zero is a value of this plain C struct, which is initialised before use.
            pthread: UnsafeCell::new(unsafe { std::mem::zeroed() }),
        });
        // SAFETY: the mutex is nobody else's yet, and, being in a box, does not move.
        unsafe { inner.init() };
        Mutex(inner)
    }

    /// Takes the mutex until the guard is dropped. `None`, in a forked child: a thread that the child does not have was in, and
    /// has left what the mutex guards half changed.
    #[inline]
    pub fn enter(&self) -> Option<Guard> {
        let guard = self.take();
        (guard.by_right || !self.0.lost.load(Ordering::Relaxed)).then_some(guard)
    }

    /// As [`Mutex::enter`], whatever there is behind it.
    #[inline]
    fn take(&self) -> Guard {
        let by_right = self.0.enter_by_right();
        if !by_right {
            self.0.wait();
        }
        // Alive as long as `self`; guards do not outlive their connection.
        Guard { mutex: &*self.0, by_right }
    }

    /// One that no thread ever owns, and that can be given up for a while ([`Mutex::apart`]).
    pub(crate) fn unowned() -> Mutex {
        Mutex::new(false)
    }

    /// As [`Mutex::enter`], if nobody else has it.
    pub(crate) fn attempt(&self) -> Option<Guard> {
        let guard = self.0.attempt().then(|| Guard { mutex: &*self.0, by_right: self.0.is_in_by_right() })?;
        (guard.by_right || !self.0.lost.load(Ordering::Relaxed)).then_some(guard)
    }

    /// Runs `f`, which may wait for other threads, while this thread is out of a mutex that nobody owns, however often it was in.
    pub(crate) fn apart<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Back<'m>(&'m Inner, u32);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                if self.1 > 0 {
                    self.0.wait();
                    self.0.depth.store(self.1, Ordering::Relaxed);
                }
            }
        }
        let _back = Back(&self.0, self.0.leave_wholly());
        f()
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
        if n > 0 && self.is_inherited() {
            // A thread of the parent's may have had this one's number.
            self.adopt();
            return self.enter_by_right();
        }
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
        self.adopt();
        if self.enter_again() {
            return;
        }
        // SAFETY: initialised, and alive as long as `self`.
        unsafe { libc::pthread_mutex_lock(self.pthread.get()) };
        self.hold();
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
        self.adopt();
        if self.enter_again() {
            return true;
        }
        // SAFETY: initialised.
        if unsafe { libc::pthread_mutex_trylock(self.pthread.get()) } != 0 {
            return false;
        }
        self.hold();
        self.revoke();
        let free = self.inside.load(Ordering::Acquire) == 0;
        if !free {
            self.leave();
        }
        free
    }

    /// Counts once more, if this thread has the pthread mutex.
    fn enter_again(&self) -> bool {
        let mine = self.holder.load(Ordering::Relaxed) == this_thread();
        if mine {
            self.depth.store(self.depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        mine
    }

    /// Notes that this thread has taken the pthread mutex.
    fn hold(&self) {
        self.holder.store(this_thread(), Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
    }

    /// Leaves as the holder of the pthread mutex; does nothing for others.
    fn leave(&self) {
        self.adopt();
        if self.holder.load(Ordering::Relaxed) != this_thread() {
            return;
        }
        let depth = self.depth.load(Ordering::Relaxed) - 1;
        self.depth.store(depth, Ordering::Relaxed);
        if depth == 0 {
            self.holder.store(0, Ordering::Relaxed);
            // SAFETY: initialised, and locked by this thread.
            unsafe { libc::pthread_mutex_unlock(self.pthread.get()) };
        }
    }

    /// Leaves as the holder of the pthread mutex, and answers how often it was in; 0 for others.
    fn leave_wholly(&self) -> u32 {
        self.adopt();
        if self.holder.load(Ordering::Relaxed) != this_thread() {
            return 0;
        }
        let depth = self.depth.load(Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
        self.leave();
        depth
    }

    /// Makes the pthread mutex, which nobody has.
    ///
    /// # Safety
    /// Nobody else uses it.
    unsafe fn init(&self) {
        // SAFETY: zero is a value of this plain C struct, which is initialised before use; the rest is the caller's promise.
        unsafe {
            let mut attr: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attr);
            // Whoever adopts it may lock it for another thread.
            libc::pthread_mutexattr_settype(&mut attr, libc::PTHREAD_MUTEX_NORMAL);
            libc::pthread_mutex_init(self.pthread.get(), &attr);
            libc::pthread_mutexattr_destroy(&mut attr);
        }
    }

    /// Whether the process was forked since it was made or adopted.
    fn is_inherited(&self) -> bool {
        self.forks.load(Ordering::Acquire) != iolite_os::forks()
    }

    /// Makes it this process's, if it is its parent's.
    fn adopt(&self) {
        if self.is_inherited() {
            self.adopt_inherited();
        }
    }

    #[cold]
    fn adopt_inherited(&self) {
        let now = iolite_os::forks();
        let adopting = now | 1 << 31;
        loop {
            let seen = self.forks.load(Ordering::Acquire);
            if seen == now {
                return;
            }
            if seen == adopting {
                std::thread::yield_now();
            } else if self
                .forks
                .compare_exchange(seen, adopting, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        let here = iolite_os::forking_thread();
        if self.inside.load(Ordering::Relaxed) > 0 && self.owner.load(Ordering::Relaxed) != here {
            self.inside.store(0, Ordering::Relaxed);
            self.lost.store(true, Ordering::Relaxed);
        }
        let holder = self.holder.load(Ordering::Relaxed);
        // SAFETY: all threads of this process come here before they touch it.
        unsafe { self.init() };
        if holder == here {
            // SAFETY: just initialised; nobody has it.
            unsafe { libc::pthread_mutex_lock(self.pthread.get()) };
        } else if holder != 0 {
            self.holder.store(0, Ordering::Relaxed);
            self.lost.store(true, Ordering::Relaxed);
        }
        self.forks.store(now, Ordering::Release);
    }
}

/// A full barrier in every running thread of the process, by request of one of them.
mod barrier {
    #[cfg(target_os = "linux")]
    use std::sync::atomic::{AtomicU8, Ordering};

    #[cfg(target_os = "linux")]
    const UNKNOWN: u8 = 2;
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
        // Threads may ask at the same time: none waits for another, which a forked child would not have.
        static THERE: AtomicU8 = AtomicU8::new(UNKNOWN);
        let mut there = THERE.load(Ordering::Relaxed);
        if there == UNKNOWN {
            there = (ask(REGISTER_PRIVATE_EXPEDITED) && ask(PRIVATE_EXPEDITED)) as u8;
            THERE.store(there, Ordering::Relaxed);
        }
        there == 1
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
        // SAFETY: the mutex is alive, and this thread entered it in `enter`, in this way.
        unsafe {
            match self.by_right {
                true => (*self.mutex).leave_by_right(),
                false => (*self.mutex).leave(),
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
        std::mem::forget(m.take());
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
        drop(Guard { mutex: &*m.0, by_right: m.0.is_in_by_right() });
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
            let _held = self.0.take();
            let _again = nested.then(|| self.0.take());
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
        assert!(!m.take().by_right);
        for _ in 0..TURNS {
            drop(m.take());
        }
        if !barrier::is_there() {
            return;
        }
        assert!(m.take().by_right);
        {
            let _first = m.take();
            assert!(m.take().by_right);
        }
        std::thread::scope(|s| {
            s.spawn(|| assert!(!m.take().by_right));
        });
        assert!(!m.take().by_right);
        assert_eq!(m.0.inside.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_tries_does_not_wait_for_the_owner() {
        let m = Mutex::new(true);
        for _ in 0..TURNS + 1 {
            drop(m.take());
        }
        let held = m.take();
        std::thread::scope(|s| {
            s.spawn(|| assert!(!m.0.attempt()));
        });
        // It goes on by its right until it is out.
        drop(m.take());
        drop(held);
        assert!(!m.take().by_right);
        assert!(m.0.attempt());
        Guard { mutex: &*m.0, by_right: false };
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

//! Read-lock leases: a connection keeps the lock of its last snapshot between statements, for a while.
//!
//! Taking and giving back a read mark costs two system calls, about half of what a point read costs. A lease
//! is a shared lock on a mark that nobody reads under. It lasts until its connection finds that a checkpoint has
//! come up to the mark or that the newest snapshot is far above it, until somebody of this process wants to
//! checkpoint, or until nothing was read for its time: then the housekeeper, one thread per process, gives it back.
//!
//! ```text
//!             put                  take                  put
//!   Free ------------> Idle <---------------> Used ------------> (Idle)
//!    ^                  |                       |
//!    |    given back    v        let go         |
//!    +---------------Going<----(housekeeper)    |
//!    +------------------------------------------+
//! ```
//!
//! What always holds: the lock is held in `Idle` and `Used`, and in `Going` until the kernel was told; only
//! the connection leaves `Free` and `Used`; from `Idle`, whoever exchanges the state has the lock. The
//! housekeeper sleeps without a time limit while all leases are free, and starts with the first lease. A forked child has
//! none, and no leases (`iolite_os::background`).

use iolite_os::{FileId, PerProcess, ShmRelease, background};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

const FREE: u32 = 0;
const IDLE: u32 = 1;
const USED: u32 = 2;
const GOING: u32 = 3;

/// When a connection keeps the lock of its last snapshot, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTerms {
    /// For how many milliseconds a lock is kept unused; 0: not at all.
    pub millis: u32,
    /// So many transactions must have ended within that time before: a connection that reads now and then gains nothing by
    /// a lease, and needs no housekeeper.
    pub after: u32,
}

impl LeaseTerms {
    /// No lease.
    pub const NONE: LeaseTerms = LeaseTerms::from_the_first(0);
    /// What holds where nobody says otherwise.
    pub const USUAL: LeaseTerms = LeaseTerms { millis: 10, after: 32 };

    /// The first transaction already leaves its lock with the lease.
    pub const fn from_the_first(millis: u32) -> LeaseTerms {
        LeaseTerms { millis, after: 1 }
    }
}

/// One connection's lease. See the module's head.
pub struct Lease {
    state: AtomicU32,
    /// The lock held, as the shared memory counts them.
    lock: AtomicU8,
    /// Rises with each statement: how the housekeeper sees that nothing happened.
    uses: AtomicU32,
    /// The housekeeper gave it back: nothing was read for its time.
    over: AtomicBool,
    millis: u32,
    file: FileId,
    release: Arc<dyn ShmRelease>,
}

impl Lease {
    /// A lease that holds nothing. `None` if no thread can be had.
    pub fn new(file: FileId, millis: u32, release: Arc<dyn ShmRelease>) -> Option<Arc<Lease>> {
        let lease = Arc::new(Lease {
            state: AtomicU32::new(FREE),
            lock: AtomicU8::new(0),
            uses: AtomicU32::new(0),
            over: AtomicBool::new(false),
            millis: millis.max(1),
            file,
            release,
        });
        house().join(&lease).then_some(lease)
    }

    /// Takes the lock over from the lease. `false`: it was given back.
    #[inline]
    pub fn take(&self) -> bool {
        if !self.release.is_own() {
            return false;
        }
        loop {
            match self.state.compare_exchange(IDLE, USED, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(GOING) => std::thread::yield_now(),
                Err(_) => return false,
            }
        }
    }

    /// Leaves the lock with the lease.
    #[inline]
    pub fn put(&self, lock: u8) {
        self.uses.store(self.uses.load(Relaxed).wrapping_add(1), Relaxed);
        self.lock.store(lock, Relaxed);
        if self.state.load(Relaxed) == USED {
            // The housekeeper does not lie down while somebody uses a lease.
            self.state.store(IDLE, Release);
            return;
        }
        self.state.store(IDLE, SeqCst);
        if ASLEEP.load(SeqCst) {
            house().wake();
        }
    }

    /// Whether its time ran out since this was last asked.
    pub fn is_over(&self) -> bool {
        self.over.swap(false, Relaxed)
    }

    /// The connection has given the lock back itself.
    pub fn let_go(&self) {
        self.state.store(FREE, Release);
    }

    /// Gives an idle lock back. `false`: it is in use, or was given back.
    fn revoke(&self) -> bool {
        let idle = self.state.compare_exchange(IDLE, GOING, AcqRel, Relaxed).is_ok();
        if idle {
            self.release.release(self.lock.load(Relaxed));
            self.state.store(FREE, Release);
        }
        idle
    }

    /// The connection needs the lease no more, and holds no lock by it.
    pub fn end(self: Arc<Lease>) {
        house().leave(&self);
    }
}

/// Whether there ever was a lease.
pub fn any() -> bool {
    HOUSE.existing().is_some()
}

/// Gives back all idle leases of this process on a file: somebody wants to checkpoint.
pub fn revoke_all(file: FileId) {
    if let Some(h) = HOUSE.existing() {
        for (l, _) in &h.tenants().leases {
            if let Some(l) = l.upgrade()
                && l.file == file
            {
                l.revoke();
            }
        }
    }
}

static HOUSE: PerProcess<House> = PerProcess::new();
static ASLEEP: AtomicBool = AtomicBool::new(false);

fn house() -> &'static House {
    HOUSE.get()
}

#[derive(Default)]
struct House {
    tenants: Mutex<Tenants>,
    bell: Condvar,
}

#[derive(Default)]
struct Tenants {
    /// Each with its count of uses when the housekeeper last looked.
    leases: Vec<(Weak<Lease>, u32)>,
    /// The housekeeper's thread was started.
    kept: bool,
}

impl House {
    fn tenants(&self) -> MutexGuard<'_, Tenants> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&'static self, lease: &Arc<Lease>) -> bool {
        let mut t = self.tenants();
        if !t.kept {
            // The first lease of this process.
            ASLEEP.store(false, SeqCst);
            if !background::keep_house("iolite-lease", || self.keep()) {
                return false;
            }
            t.kept = true;
        }
        t.leases.retain(|l| l.0.strong_count() > 0);
        t.leases.push((Arc::downgrade(lease), 0));
        // Its time may be shorter than that for which the housekeeper rests.
        self.bell.notify_all();
        true
    }

    fn leave(&self, lease: &Arc<Lease>) {
        self.tenants().leases.retain(|l| !std::ptr::eq(l.0.as_ptr(), Arc::as_ptr(lease)));
    }

    fn wake(&self) {
        let _t = self.tenants();
        ASLEEP.store(false, SeqCst);
        self.bell.notify_all();
    }

    /// What the housekeeper does all day.
    fn keep(&self) {
        let mut t = self.tenants();
        loop {
            let mut shortest = u32::MAX;
            let mut quiet = true;
            for (lease, seen) in &mut t.leases {
                let Some(l) = lease.upgrade() else { continue };
                shortest = shortest.min(l.millis);
                let uses = l.uses.load(Relaxed);
                if uses == *seen && l.revoke() {
                    l.over.store(true, Relaxed);
                }
                *seen = uses;
                quiet &= l.state.load(SeqCst) == FREE;
            }
            if quiet {
                ASLEEP.store(true, SeqCst);
                // Who put a lock down before he could see that is seen here.
                let all_free =
                    t.leases.iter().all(|l| l.0.upgrade().is_none_or(|l| l.state.load(SeqCst) == FREE));
                if all_free {
                    while ASLEEP.load(SeqCst) {
                        t = self.bell.wait(t).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                ASLEEP.store(false, SeqCst);
                // Those that joined meanwhile have times of their own.
                continue;
            }
            // A lease is seen idle twice before it goes: half of its time apart.
            let nap = Duration::from_micros((shortest.min(2000) as u64 * 500).max(500));
            t = self.bell.wait_timeout(t, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[derive(Default)]
    struct Counting(AtomicU32);

    impl ShmRelease for Counting {
        fn release(&self, lock: u8) {
            assert_eq!(lock, 4);
            self.0.fetch_add(1, SeqCst);
        }
        fn is_own(&self) -> bool {
            true
        }
    }

    fn wait_until(what: impl Fn() -> bool) {
        let start = Instant::now();
        while !what() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(what());
    }

    #[test]
    fn a_lease_that_comes_when_there_is_none_is_kept_for_its_time_alone() {
        let file = FileId { device: 3, inode: u64::MAX - 1 };
        for millis in [1, 3000] {
            let counting = Arc::new(Counting::default());
            let before = Lease::new(file, millis, counting.clone()).unwrap();
            before.put(4);
            if millis == 1 {
                wait_until(|| counting.0.load(SeqCst) == 1);
                before.clone().end();
            }
            // The housekeeper looks at what there is, and lies down.
            std::thread::sleep(Duration::from_millis(100));
            let other = Arc::new(Counting::default());
            let lease = Lease::new(file, 2, other.clone()).unwrap();
            lease.put(4);
            let start = Instant::now();
            wait_until(|| other.0.load(SeqCst) == 1);
            assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
            lease.end();
            revoke_all(file);
            before.end();
        }
    }

    #[test]
    fn an_idle_lease_is_given_back_once_and_can_begin_anew() {
        let counting = Arc::new(Counting::default());
        let file = FileId { device: 3, inode: u64::MAX };
        let lease = Lease::new(file, 2, counting.clone()).unwrap();
        for round in 1..4 {
            assert!(!lease.take());
            lease.put(4);
            wait_until(|| counting.0.load(SeqCst) == round);
        }
        lease.put(4);
        assert!(lease.take() || counting.0.load(SeqCst) == 4);
        lease.let_go();
        lease.put(4);
        let before = counting.0.load(SeqCst);
        revoke_all(file);
        wait_until(|| counting.0.load(SeqCst) == before + 1);
        assert!(!lease.take());
        lease.end();
    }
}

//! What a forked child gives up before it does anything else.
//!
//! Locks that belong to an open file description live as long as any process has it open, and a mapping of the file
//! counts as well. A child that inherits them and does nothing would hold its parent's locks after the parent has died. And
//! a child that drops what it has inherited must not finish its parent's writes.
//! So each descriptor of a named file, and each mapping, is entered here, and the handler that runs in the child puts
//! `/dev/null` in the place of the descriptor, and private zeros in the place of the mapping. The numbers and addresses stay
//! taken: what the child has inherited can be dropped as usual, reaches no file, and unlocks nothing.
//!
//! ```text
//! Free --enter--> Claimed --> Descriptor | Mapping --leave--> Free            in the process that opened it
//!                                  |          |
//!                           Replaced|Closed   Mapping (of nothing) --leave--> Free     in its forked child
//! ```
//!
//! The lock of the page slabs is held by whoever forks, so that the child finds it free and what it guards whole; other threads
//! do not wait for it.
//!
//! What always holds: entering and leaving take no lock, since the child may come out of a fork in the midst of it; the handler
//! makes system calls only. An entry is made before the first lock is taken through the descriptor.
//! What this does not cover: a mapping that another thread is just making while the process forks, and children that are not
//! made by `fork` (the handler does not run then; descriptors are close-on-exec).

use super::slabs;
use iolite_base::slab;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first use of this library and this process. A handle from before is inherited.
pub fn forks() -> u32 {
    FORKS.load(Acquire)
}

static FORKING_THREAD: AtomicUsize = AtomicUsize::new(0);

/// The thread that called the last fork, as `pthread_self` has it: the only one of its parent's that this process has. 0: there
/// was none.
pub fn forking_thread() -> usize {
    FORKING_THREAD.load(Relaxed)
}

/// Begins to watch for forks, once per process, and has slabs be mappings of their own.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        slab::set_source(slabs::SOURCE);
        // SAFETY: the handlers make system calls and touch atomics, which is allowed between fork and exec.
        unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(in_child));
        }
    });
}

extern "C" fn before() {
    slab::lock_for_fork();
}

extern "C" fn after() {
    slab::unlock_after_fork();
}

const FREE: usize = 0;
const CLAIMED: usize = 1;
const DESCRIPTOR: usize = 2;
/// A descriptor whose number leads to `/dev/null` now.
const REPLACED: usize = 3;
/// A descriptor whose number may be another file's by now.
const CLOSED: usize = 4;
/// Everything from here on is the address of a mapping.
const ADDRESS: usize = 4096;

struct Slot {
    what: AtomicUsize,
    /// The number of a descriptor, the length of a mapping.
    size: AtomicUsize,
}

const SLOTS: usize = 62;

/// Chunks are never freed: a list that only grows can be walked without a lock.
struct Chunk {
    slots: [Slot; SLOTS],
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    const fn new() -> Chunk {
        Chunk {
            slots: [const { Slot { what: AtomicUsize::new(FREE), size: AtomicUsize::new(0) } }; SLOTS],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: null, or a chunk that was leaked by `claim`.
        unsafe { self.next.load(Acquire).as_ref() }
    }
}

static FIRST: Chunk = Chunk::new();

/// An entry of this list. Dropped without [`Watched::leave`], it stays.
pub struct Watched(&'static Slot);

fn claim() -> &'static Slot {
    let mut chunk = &FIRST;
    loop {
        for s in &chunk.slots {
            if s.what.load(Relaxed) == FREE && s.what.compare_exchange(FREE, CLAIMED, AcqRel, Relaxed).is_ok()
            {
                return s;
            }
        }
        chunk = match chunk.next() {
            Some(next) => next,
            None => {
                let new = Box::into_raw(Box::new(Chunk::new()));
                match chunk.next.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
                    // SAFETY: just leaked; chunks are never freed.
                    Ok(_) => unsafe { &*new },
                    Err(other) => {
                        // SAFETY: `new` was shown to nobody; `other` was leaked by whoever was faster.
                        unsafe {
                            drop(Box::from_raw(new));
                            &*other
                        }
                    }
                }
            }
        };
    }
}

impl Watched {
    /// Enters a descriptor.
    pub fn descriptor(number: libc::c_int) -> Watched {
        let slot = claim();
        slot.size.store(number as usize, Relaxed);
        slot.what.store(DESCRIPTOR, Release);
        Watched(slot)
    }

    /// Enters a mapping of machine pages.
    pub fn mapping(at: *mut u8, len: usize) -> Watched {
        let slot = claim();
        slot.size.store(len, Relaxed);
        slot.what.store(at as usize, Release);
        Watched(slot)
    }

    /// Takes the entry back. `false`: the descriptor's number is not ours any more, and is not to be closed.
    pub fn leave(self) -> bool {
        self.0.what.swap(FREE, AcqRel) != CLOSED
    }
}

extern "C" fn in_child() {
    slab::unlock_in_child();
    // SAFETY: it asks for nothing.
    FORKING_THREAD.store(unsafe { libc::pthread_self() } as usize, Relaxed);
    FORKS.fetch_add(1, Release);
    // SAFETY: a constant path.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let mut chunk = Some(&FIRST);
    while let Some(c) = chunk {
        for s in &c.slots {
            let size = s.size.load(Relaxed);
            match s.what.load(Acquire) {
                DESCRIPTOR => s.what.store(give_up(null, size as libc::c_int), Relaxed),
                at if at >= ADDRESS => empty(at, size),
                _ => {}
            }
        }
        chunk = c.next();
    }
    if null >= 0 {
        // SAFETY: opened above.
        unsafe { libc::close(null) };
    }
}

/// Puts `null` in the place of a descriptor, or closes it where that cannot be had.
fn give_up(null: libc::c_int, number: libc::c_int) -> usize {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: both are descriptors of this process.
    let replaced = null >= 0 && unsafe { libc::dup3(null, number, libc::O_CLOEXEC) } >= 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    // SAFETY: both are descriptors of this process.
    let replaced = null >= 0 && unsafe { libc::dup2(null, number) } >= 0;
    if replaced {
        return REPLACED;
    }
    // SAFETY: the child's own copy; `Watched::leave` tells its owner.
    unsafe { libc::close(number) };
    CLOSED
}

/// Puts private zeros in the place of a mapping.
fn empty(at: usize, len: usize) {
    // SAFETY: the range is a mapping of ours, entered by its owner, who alone unmaps it; what reads it through atomics
    // reads zeros from now on.
    unsafe {
        libc::mmap(
            at as *mut libc::c_void,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
    }
}

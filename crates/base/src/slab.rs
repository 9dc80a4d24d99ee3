//! Memory for pages, in large pieces.
//!
//! A page that comes into a cache takes memory that the system has to give first: asked for page by page, that is a
//! fault for each, which took three times as long as reading the page (a first scan of 147 MB: 80 of 190 ms). So pages lie
//! in slabs of two megabytes, and once there are several, the system is asked to back each by one large page. Blocks are
//! given out again last in, first out, so that a scan which lets its pages go uses memory that the processor holds still.
//!
//! What always holds: a slab begins at a multiple of its size, so that a block's slab is found by its address; a block in a
//! slab's list, or behind its last one, is nobody's. Blocks are 64 bytes more than a page apart: the heads of all pages
//! would share a few lines of the processor's caches otherwise. A slab that is empty goes back to the system, but for one of
//! each size. Any thread may give a block back. The lock is held for a few instructions; it is taken around a
//! fork ([`lock_for_fork`]), so that a child finds what it guards whole. Nobody waits for a fork: the thread that forks goes on
//! by its hold, in parent and child, and the others find no room, and lay aside what they give back. For a program's own fork
//! handlers may use a database, and may wait for a thread that uses one.
//!
//! What it does not know: limits and counts ([`crate::alloc`]), what is in a page.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes in a slab, and what its address is a multiple of.
pub const SIZE: usize = 2 << 20;
/// Block sizes: those of pages, from 4,096 bytes on.
const CLASSES: usize = 5;
const SMALLEST: usize = 4096;
/// Bytes between the end of a page and the next.
const APART: usize = 64;
/// Bytes before the first block.
const HEAD: usize = 128;
/// Slabs of one size that are backed by small pages, before large ones are asked for: a small cache stays small.
const SMALL: usize = 2;

/// What a slab begins with.
struct Slab {
    /// The first free block; each leads to the next.
    free: *mut u8,
    /// Blocks from here on were never given out.
    fresh: usize,
    used: usize,
    /// Who takes it back.
    give: unsafe fn(*mut u8),
    /// The slabs of its size that have room.
    next: *mut Slab,
    prev: *mut Slab,
}

/// The slabs of one size.
struct Class {
    with_room: *mut Slab,
    slabs: usize,
    /// How many of them are empty.
    empty: usize,
}

/// All of them, and their lock.
struct Slabs {
    locked: AtomicBool,
    /// The thread that holds the lock around a fork ([`this_thread`]); 0: none.
    forks: AtomicUsize,
    /// Blocks that were given back during a fork.
    aside: AtomicPtr<Aside>,
    classes: UnsafeCell<[Class; CLASSES]>,
}

/// What a block holds that lies aside.
struct Aside {
    next: *mut Aside,
    len: usize,
}

// SAFETY: the classes, and the slabs' heads and free blocks, are touched by the holder of the lock alone.
unsafe impl Sync for Slabs {}

static SLABS: Slabs = Slabs {
    locked: AtomicBool::new(false),
    forks: AtomicUsize::new(0),
    aside: AtomicPtr::new(null_mut()),
    classes: UnsafeCell::new([const { Class { with_room: null_mut(), slabs: 0, empty: 0 } }; CLASSES]),
};

/// Where slabs come from, and go to.
#[derive(Clone, Copy)]
pub struct Source {
    /// [`SIZE`] bytes at a multiple of that, `true`: best backed by one large page; null: there are none.
    pub take: fn(bool) -> *mut u8,
    /// Takes them back.
    ///
    /// # Safety
    /// They are from `take`, and nobody uses them.
    pub give: unsafe fn(*mut u8),
}

static SOURCE: OnceLock<Source> = OnceLock::new();

/// The allocator, as long as nobody has set another one.
const ALLOCATOR: Source = Source {
    // SAFETY: the layout has a size.
    take: |_| unsafe { System.alloc(layout()) },
    // SAFETY: from `take`, with this layout.
    give: |slab| unsafe { System.dealloc(slab, layout()) },
};

/// Sets where slabs come from. (An allocator keeps much of what was given back to it: 180 MB of a cache of 200.)
pub fn set_source(source: Source) {
    let _ = SOURCE.set(source);
}

/// A number that no other thread has; in a forked child, the thread that forked keeps it.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|m| std::ptr::from_ref(m).addr())
}

/// The lock, or what the thread that forks has in its place.
struct Hold {
    ends: bool,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.ends {
            SLABS.locked.store(false, Ordering::Release);
        }
    }
}

/// Takes the lock. `None`: another thread forks.
fn lock() -> Option<Hold> {
    let mut tries = 0u32;
    while SLABS.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        match SLABS.forks.load(Ordering::Relaxed) {
            0 => {}
            forks => return (forks == this_thread()).then_some(Hold { ends: false }),
        }
        tries += 1;
        if tries.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
    Some(Hold { ends: true })
}

/// Takes the lock until the fork is over.
pub fn lock_for_fork() {
    // Another thread's fork is waited for; so does the system.
    let hold = loop {
        match lock() {
            Some(hold) => break hold,
            None => std::thread::yield_now(),
        }
    };
    std::mem::forget(hold);
    SLABS.forks.store(this_thread(), Ordering::Relaxed);
}

/// The fork is over, in the parent: gives the lock back, and what lies aside to its slabs.
pub fn unlock_after_fork() {
    unlock();
    let mut at = SLABS.aside.swap(null_mut(), Ordering::Acquire);
    while let Some(block) = NonNull::new(at) {
        // SAFETY: whoever laid it aside wrote its head, and had it from `take`.
        unsafe {
            let Aside { next, len } = block.read();
            give(block.cast(), len);
            at = next;
        }
    }
}

/// The fork is over, in the child: gives the lock back. What lies aside was perhaps not whole when the process forked.
pub fn unlock_in_child() {
    SLABS.aside.store(null_mut(), Ordering::Relaxed);
    unlock();
}

fn unlock() {
    SLABS.forks.store(0, Ordering::Relaxed);
    SLABS.locked.store(false, Ordering::Release);
}

/// Lays a block aside until the fork is over.
///
/// # Safety
/// As for [`give`].
unsafe fn lay_aside(block: NonNull<u8>, len: usize) {
    let block: NonNull<Aside> = block.cast();
    let mut next = SLABS.aside.load(Ordering::Relaxed);
    loop {
        // SAFETY: a block is aligned and large enough, and nobody else's.
        unsafe { block.write(Aside { next, len }) };
        match SLABS.aside.compare_exchange(next, block.as_ptr(), Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => next = other,
        }
    }
}

/// The class of a page's size.
fn class_of(len: usize) -> Option<usize> {
    let class = (len / SMALLEST).checked_ilog2()? as usize;
    (len == SMALLEST << class && class < CLASSES).then_some(class)
}

const fn layout() -> Layout {
    // SAFETY: a power of two, far from overflow.
    unsafe { Layout::from_size_align_unchecked(SIZE, SIZE) }
}

/// A block of `len` bytes that hold anything. `None`: `len` is no page's size, there is no room, or another thread forks.
pub fn take(len: usize) -> Option<NonNull<u8>> {
    let class = class_of(len)?;
    let _hold = lock()?;
    // SAFETY: the lock is held.
    unsafe { (*SLABS.classes.get())[class].take(len + APART) }
}

/// Gives a block back.
///
/// # Safety
/// It came from [`take`] with this `len`, and nobody has it any more.
pub unsafe fn give(block: NonNull<u8>, len: usize) {
    let class = class_of(len).unwrap_or(0);
    let Some(hold) = lock() else {
        // SAFETY: the caller's promise.
        return unsafe { lay_aside(block, len) };
    };
    // SAFETY: the lock is held; the rest is the caller's promise.
    let gone = unsafe { (*SLABS.classes.get())[class].give(block.as_ptr(), len + APART) };
    drop(hold);
    if let Some(slab) = gone {
        // SAFETY: the slab has no block in use and is in no list; this is who gave it.
        unsafe { ((*slab).give)(slab.cast()) };
    }
}

impl Class {
    /// # Safety
    /// The lock is held.
    unsafe fn take(&mut self, stride: usize) -> Option<NonNull<u8>> {
        // SAFETY: slabs in the list are live; a free block has room for a pointer and was written when it was given back.
        unsafe {
            if self.with_room.is_null() {
                self.add()?;
            }
            let slab = &mut *self.with_room;
            self.empty -= (slab.used == 0) as usize;
            slab.used += 1;
            let block = match slab.free {
                free if !free.is_null() => {
                    slab.free = free.cast::<*mut u8>().read();
                    free
                }
                _ => {
                    let block = self.with_room.cast::<u8>().add(slab.fresh);
                    slab.fresh += stride;
                    block
                }
            };
            if slab.free.is_null() && slab.fresh + stride > SIZE {
                self.unlink(self.with_room);
            }
            NonNull::new(block)
        }
    }

    /// # Safety
    /// The lock is held, and the list is empty.
    unsafe fn add(&mut self) -> Option<()> {
        // SAFETY: the memory is large and aligned enough for the head.
        unsafe {
            let source = SOURCE.get().unwrap_or(&ALLOCATOR);
            let slab: *mut Slab = (source.take)(self.slabs >= SMALL).cast();
            if slab.is_null() {
                return None;
            }
            slab.write(Slab {
                free: null_mut(),
                fresh: HEAD,
                used: 0,
                give: source.give,
                next: null_mut(),
                prev: null_mut(),
            });
            self.slabs += 1;
            self.empty += 1;
            self.link(slab);
            Some(())
        }
    }

    /// # Safety
    /// The lock is held, and the block is one of this class that nobody has.
    unsafe fn give(&mut self, block: *mut u8, stride: usize) -> Option<*mut Slab> {
        // SAFETY: a slab begins at a multiple of its size, so this is the block's; it is live while it has a block in use.
        unsafe {
            let at: *mut Slab = block.map_addr(|a| a & !(SIZE - 1)).cast();
            let slab = &mut *at;
            let had_room = !slab.free.is_null() || slab.fresh + stride <= SIZE;
            block.cast::<*mut u8>().write(slab.free);
            slab.free = block;
            slab.used -= 1;
            if !had_room {
                self.link(at);
            }
            if slab.used > 0 {
                return None;
            }
            self.empty += 1;
            if self.empty == 1 {
                return None;
            }
            self.empty -= 1;
            self.slabs -= 1;
            self.unlink(at);
            Some(at)
        }
    }

    /// # Safety
    /// The lock is held; the slab is live and in no list.
    unsafe fn link(&mut self, slab: *mut Slab) {
        // SAFETY: the caller's promise.
        unsafe {
            (*slab).prev = null_mut();
            (*slab).next = self.with_room;
            if !self.with_room.is_null() {
                (*self.with_room).prev = slab;
            }
        }
        self.with_room = slab;
    }

    /// # Safety
    /// The lock is held; the slab is live and in the list.
    unsafe fn unlink(&mut self, slab: *mut Slab) {
        // SAFETY: the caller's promise; neighbours in the list are live.
        unsafe {
            let (prev, next) = ((*slab).prev, (*slab).next);
            match prev.is_null() {
                true => self.with_room = next,
                false => (*prev).next = next,
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// While one test forks, the others would find no room.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn blocks_are_their_holders_alone() {
        let _alone = alone();
        let mut held: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        let mut seed = 7u64;
        for step in 0..60_000u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let r = (seed >> 33) as usize;
            // Grows to several slabs, and shrinks to none.
            let grow = (step / 10_000).is_multiple_of(2);
            if held.is_empty() || r.is_multiple_of(10) != grow {
                let len = 4096 << (r / 16 % 5).min(r / 512 % 5);
                let b = take(len).unwrap();
                // SAFETY: the block has `len` bytes.
                unsafe { b.as_ptr().write_bytes(step as u8, len) };
                held.push((b, len, step as u8));
            } else {
                let (b, len, mark) = held.swap_remove(r % held.len());
                // SAFETY: the block is held, and was written whole.
                unsafe {
                    assert_eq!(b.as_ptr().read(), mark);
                    assert_eq!(b.as_ptr().add(len - 1).read(), mark);
                    give(b, len);
                }
            }
        }
        for (b, len, mark) in held {
            // SAFETY: as above.
            unsafe {
                assert_eq!(b.as_ptr().add(len / 2).read(), mark);
                give(b, len);
            }
        }
    }

    /// Fork handlers that a program has registered before run between this library's.
    #[test]
    fn the_thread_that_forks_goes_on() {
        let _alone = alone();
        lock_for_fork();
        let block = take(4096).unwrap();
        // SAFETY: just taken.
        unsafe { give(block, 4096) };
        // Others find no room, and what they give back is there again afterwards.
        let held = take(8192).unwrap().as_ptr().expose_provenance();
        let other = std::thread::spawn(move || {
            let block = NonNull::new(std::ptr::with_exposed_provenance_mut(held)).unwrap();
            // SAFETY: the other thread has given it to this one.
            unsafe { give(block, 8192) };
            take(4096).is_none()
        });
        assert!(other.join().unwrap());
        assert!(SLABS.locked.load(Ordering::Relaxed));
        assert!(!SLABS.aside.load(Ordering::Relaxed).is_null());
        unlock_after_fork();
        assert!(SLABS.aside.load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn other_sizes_are_not_for_slabs() {
        for len in [0, 1, 512, 2048, 4095, 4097, 12288, 131072] {
            assert!(take(len).is_none(), "{len}");
        }
    }

    #[test]
    fn threads_give_back_what_others_took() {
        let _alone = alone();
        let (send, receive) = std::sync::mpsc::channel::<usize>();
        let taker = std::thread::spawn(move || {
            for _ in 0..5_000 {
                send.send(take(8192).unwrap().as_ptr().expose_provenance()).unwrap();
            }
        });
        for b in receive {
            // SAFETY: the block is this thread's now.
            unsafe { give(NonNull::new(std::ptr::with_exposed_provenance_mut(b)).unwrap(), 8192) };
        }
        taker.join().unwrap();
    }
}

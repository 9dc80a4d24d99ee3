//! An allocator for programs and libraries that end with iolite: small blocks go through free lists of their thread.
//!
//! Compiling a statement takes some seventy small blocks, and gives them back soon after: a general allocator spends a fifth
//! of the time there, much of it on blocks that grow together and are cut again. Here a block of up to [`LARGEST`] bytes
//! has the size of its class and stays with the thread that gave it back, until that thread ends or its list of the class
//! is full ([`KEPT`] bytes). Everything else is the system's. SQLite's "lookaside" memory does the same per connection.
//!
//! What always holds: a block's class is told by its layout alone, so that a block may be given back by any thread; a
//! block in a list is nobody else's. A thread that is ending, when its lists are gone, speaks to the system directly. The
//! pool counts nothing: what is counted and limited is [`crate::alloc`]'s.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr::null_mut;

/// The largest block that a list keeps, in bytes.
pub const LARGEST: usize = 1024;
/// The most bytes that one list keeps; there are 32 lists in a thread.
pub const KEPT: usize = 16 << 10;

/// Classes are this many bytes apart.
const STEP: usize = 32;
const CLASSES: usize = LARGEST / STEP;
const ALIGN: usize = 16;

/// The allocator: `#[global_allocator] static POOL: Pool = Pool;`.
pub struct Pool;

/// A free block: the first bytes of it lead to the next.
struct Free {
    next: *mut Free,
}

/// The free blocks of one class, and how many more it may keep.
#[derive(Clone, Copy)]
struct List {
    first: *mut Free,
    room: usize,
}

/// The free blocks of one thread, and whether somebody sees to it that they are given back at its end.
struct Lists {
    lists: UnsafeCell<[List; CLASSES]>,
    ends: Cell<bool>,
}

/// Empties its thread's lists when the thread ends.
struct AtEnd;

thread_local! {
    // Without a destructor of its own, this is reached without asking whether it is still there.
    static LISTS: Lists = const {
        let mut lists = [List { first: null_mut(), room: 0 }; CLASSES];
        let mut class = 0;
        while class < CLASSES {
            lists[class].room = KEPT / ((class + 1) * STEP);
            class += 1;
        }
        Lists { lists: UnsafeCell::new(lists), ends: Cell::new(false) }
    };
    static AT_END: AtEnd = const { AtEnd };
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        LISTS.with(|l| {
            for class in 0..CLASSES {
                // SAFETY: the lists are their thread's alone, and nobody else has a reference to them now. Every block in
                // a list is free, has the class's layout and came from the system.
                unsafe {
                    // Without room, blocks that come back later go to the system.
                    let mut block =
                        std::mem::replace(&mut (*l.lists.get())[class], List { first: null_mut(), room: 0 })
                            .first;
                    while !block.is_null() {
                        let next = (*block).next;
                        System.dealloc(block.cast(), layout_of(class));
                        block = next;
                    }
                }
            }
        });
    }
}

/// A block of the system's, for a class whose list is empty.
#[cold]
#[inline(never)]
fn fresh(class: usize) -> *mut u8 {
    // Asked for once: on some systems it takes memory to have something done at a thread's end.
    if !LISTS.with(|l| l.ends.replace(true)) {
        let _ = AT_END.try_with(|_| ());
    }
    // SAFETY: the layout's size is not zero.
    unsafe { System.alloc(layout_of(class)) }
}

/// The class of a layout; `None`: the system's.
#[inline(always)]
fn class_of(layout: Layout) -> Option<usize> {
    (layout.size().wrapping_sub(1) < LARGEST && layout.align() <= ALIGN).then(|| (layout.size() - 1) / STEP)
}

/// What the system is asked for, for a block of the class.
#[inline(always)]
const fn layout_of(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two and the size far from overflow.
    unsafe { Layout::from_size_align_unchecked((class + 1) * STEP, ALIGN) }
}

// SAFETY: blocks of a class come from the system with the class's layout, which is at least as large and as aligned as asked
// for; a block is handed out again only after it came back. Nothing here unwinds or allocates by way of the pool.
unsafe impl GlobalAlloc for Pool {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the trait demands of the caller; the lists are touched by their thread alone, and nothing that runs
        // between reading and writing them calls back.
        unsafe {
            let Some(class) = class_of(layout) else { return System.alloc(layout) };
            let block = LISTS.with(|l| {
                let list = &mut (*l.lists.get())[class];
                let block = list.first;
                if !block.is_null() {
                    list.first = (*block).next;
                    list.room += 1;
                }
                block
            });
            if block.is_null() { fresh(class) } else { block.cast() }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block is free from here on, and large and aligned enough for a `Free`.
        unsafe {
            let Some(class) = class_of(layout) else { return System.dealloc(block, layout) };
            LISTS.with(|l| {
                let list = &mut (*l.lists.get())[class];
                if list.room == 0 {
                    return System.dealloc(block, layout_of(class));
                }
                let block: *mut Free = block.cast();
                (*block).next = list.first;
                list.first = block;
                list.room -= 1;
            });
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above; a block of a class has at least the bytes that are cleared.
        unsafe {
            if class_of(layout).is_none() {
                return System.alloc_zeroed(layout);
            }
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above. The caller promises that `size` with this alignment is a layout.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            match (class_of(layout), class_of(new)) {
                (None, None) => System.realloc(block, layout, size),
                (Some(a), Some(b)) if a == b => block,
                _ => {
                    let to = self.alloc(new);
                    if !to.is_null() {
                        to.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    to
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of `size` bytes, filled with `mark`.
    fn block(size: usize, mark: u8) -> (*mut u8, Layout) {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: the size is not zero.
        let p = unsafe { Pool.alloc(layout) };
        assert!(!p.is_null() && (p as usize).is_multiple_of(8));
        // SAFETY: the block has `size` bytes.
        unsafe { p.write_bytes(mark, size) };
        (p, layout)
    }

    #[test]
    fn blocks_keep_what_is_theirs() {
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let mut seed = 1u64;
        for step in 0..200_000u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let r = (seed >> 33) as usize;
            let mark = step as u8;
            if held.len() < 300 && !r.is_multiple_of(3) || held.is_empty() {
                let (p, l) = block(r % 1500 + 1, mark);
                held.push((p, l, mark));
                continue;
            }
            let (p, l, m) = held.swap_remove(r % held.len());
            // SAFETY: the block is held, has this layout, and every byte was written.
            unsafe {
                assert!((0..l.size()).all(|i| *p.add(i) == m));
                if r.is_multiple_of(5) {
                    let size = r % 2000 + 1;
                    let q = Pool.realloc(p, l, size);
                    assert!((0..l.size().min(size)).all(|i| *q.add(i) == m));
                    q.write_bytes(m, size);
                    held.push((q, Layout::from_size_align(size, 8).expect("a layout"), m));
                } else {
                    Pool.dealloc(p, l);
                }
            }
        }
        for (p, l, _) in held {
            // SAFETY: as above.
            unsafe { Pool.dealloc(p, l) };
        }
    }

    #[test]
    fn blocks_pass_between_threads() {
        let (send, receive) = std::sync::mpsc::channel::<(usize, Layout)>();
        let made = std::thread::spawn(move || {
            for i in 0..10_000usize {
                let (p, l) = block(i % 600 + 1, 7);
                send.send((p as usize, l)).expect("a receiver");
            }
        });
        for (p, l) in receive {
            // SAFETY: the block is this thread's now.
            unsafe {
                assert_eq!(*(p as *mut u8), 7);
                Pool.dealloc(p as *mut u8, l);
            }
        }
        made.join().expect("the thread ends well");
    }

    #[test]
    fn zeroed_blocks_are_zero_however_they_were_used() {
        for size in [1, 31, 32, 33, 500, 1024, 1025, 5000] {
            let (p, l) = block(size, 0xff);
            // SAFETY: blocks are given back as they were taken.
            unsafe {
                Pool.dealloc(p, l);
                let q = Pool.alloc_zeroed(l);
                assert!((0..size).all(|i| *q.add(i) == 0));
                Pool.dealloc(q, l);
            }
        }
    }
}

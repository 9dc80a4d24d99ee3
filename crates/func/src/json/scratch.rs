//! Memory in which JSON is put together, one piece after another.
//!
//! A document that is changed is a blob that grows and a text that is written from it. Both are copied to where they stay, and
//! their memory serves the next one. What is kept belongs to the thread, and is bounded in size.

use std::cell::Cell;

/// What is kept is no larger than this.
const LARGEST: usize = 1 << 16;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `f` with an empty list. A call from within it finds none kept.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // A thread that ends has nothing to keep.
    let mut list = SPARE.try_with(Cell::take).unwrap_or_default();
    list.clear();
    let answer = f(&mut list);
    if list.capacity() <= LARGEST {
        let _ = SPARE.try_with(|s| s.set(list));
    }
    answer
}

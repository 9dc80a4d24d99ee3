//! Memory in which JSON is put together, one piece after another.
//!
//! A document that is changed is a blob that grows and a text that is written from it. Both are copied to where they stay, and
//! their memory serves the next one. What is kept belongs to the thread, and is bounded in size.

use iolite_base::{Result, alloc};
use std::cell::Cell;
use std::thread::LocalKey;

/// What is kept is no larger than this.
const LARGEST: usize = 1 << 19;

type Spare = LocalKey<Cell<Vec<u8>>>;

thread_local! {
    static PIECES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static DOCUMENT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `f` with an empty list. A call from within it finds none kept.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    with_spare(&PIECES, f)
}

/// Runs `f` with a copy of a document, with room for `more` bytes behind it.
#[inline]
pub(super) fn with_copy<R>(of: &[u8], more: usize, f: impl FnOnce(&mut Vec<u8>) -> Result<R>) -> Result<R> {
    with_spare(&DOCUMENT, |list| {
        alloc::reserve(list, of.len() + more)?;
        list.extend_from_slice(of);
        f(list)
    })
}

#[inline(always)]
fn with_spare<R>(spare: &'static Spare, f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // A thread that ends has nothing to keep.
    let mut list = spare.try_with(Cell::take).unwrap_or_default();
    list.clear();
    let answer = f(&mut list);
    if list.capacity() <= LARGEST {
        let _ = spare.try_with(|s| s.set(list));
    }
    answer
}

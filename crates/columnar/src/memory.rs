//! Memory: the budget of the column caches, the limit of what a query makes of columns, and vectors that may fail to grow.
//!
//! All stores of a process share one budget ([`budget`]); which columns go when it is reached is the store's business
//! (`store::make_room`). Hash tables of joins, groups, rows that are to be sorted, and result rows have a limit of their own, for
//! each of them ([`work_size`]). What has no room goes to temporary files (`op::spill`), or is joined share by share
//! (`star::build`).
//!
//! Not counted are dictionaries and what is known of leaves: a column's codes are of no use without the one, a table's
//! columns without the other.

use iolite_base::{Result, alloc};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes in all column caches.
pub(crate) static USED: AtomicUsize = AtomicUsize::new(0);

/// What the column caches of the process may take together.
static BUDGET: AtomicUsize = AtomicUsize::new(1 << 30);

/// What a map, the groups, or the rows of a query may take each.
static WORK: AtomicUsize = AtomicUsize::new(512 << 20);

/// What the column caches of the process may take together, in bytes.
pub fn budget() -> usize {
    BUDGET.load(Relaxed)
}

/// Sets it. What is held beyond goes as queries want room.
pub fn set_budget(bytes: usize) {
    BUDGET.store(bytes, Relaxed);
}

/// What a map, the groups, or the rows of a query in columns may take each, in bytes.
pub fn work_size() -> usize {
    WORK.load(Relaxed)
}

/// Sets it.
pub fn set_work_size(bytes: usize) {
    WORK.store(bytes, Relaxed);
}

/// Whether so much is within that.
pub(crate) fn within(bytes: usize) -> bool {
    bytes <= work_size()
}

/// What one query may hold of columns that are not kept.
pub(crate) fn loose() -> usize {
    budget() / 4
}

/// Whether so many bytes more may be kept.
pub(crate) fn fits(bytes: usize) -> bool {
    USED.load(Relaxed) + bytes <= budget()
}

/// A vector of exactly this room.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    alloc::reserve(&mut v, n)?;
    Ok(v)
}

/// What comes, in a vector of its own: room for all of it is asked for first.
pub(crate) fn listed<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut v = room(items.len())?;
    v.extend(items);
    Ok(v)
}

/// So many times the same.
pub(crate) fn filled<T: Clone>(n: usize, value: T) -> Result<Vec<T>> {
    let mut v = room(n)?;
    v.resize(n, value);
    Ok(v)
}

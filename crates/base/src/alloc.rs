//! Data-sized allocations: counted, limited, fallible, and failing on demand in tests.
//!
//! Everything whose size the data decides (pages, values, sorter runs, hash tables) asks here first.
//! The count is process-wide, as `sqlite3_memory_used` reports it. Small bookkeeping does not ask.
//!
//! Each thread keeps a small credit that the shared count already holds, so that most claims touch no shared memory (two
//! locked additions per value were 8 % of a bulk import). What a thread asks about the count is exact for its own
//! claims; each other thread may hold up to [`CREDIT`] bytes more than it uses, and the highest count may miss as much.

use crate::zeroed::zeroed_memory;
use crate::{Code, Result};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

static USED: AtomicI64 = AtomicI64::new(0);
static HIGH: AtomicI64 = AtomicI64::new(0);
static HARD_LIMIT: AtomicI64 = AtomicI64::new(0);
static SOFT_LIMIT: AtomicI64 = AtomicI64::new(0);
static FAIL_IN: AtomicI64 = AtomicI64::new(-1);
/// Says whether there are so many bytes.
type Ask = fn(usize) -> bool;

/// Who is asked before each claim ([`ask_first`]).
static ASKED: RwLock<Option<Ask>> = RwLock::new(None);
/// Whether a failure is planned or somebody is asked.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The most bytes of credit that a thread keeps.
pub const CREDIT: i64 = 64 << 10;

struct Credit(Cell<i64>);

impl Drop for Credit {
    fn drop(&mut self) {
        USED.fetch_sub(self.0.get(), Relaxed);
    }
}

thread_local! {
    static MINE: Credit = const { Credit(Cell::new(0)) };
}

thread_local! {
    static PROMISED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, whose claims are counted but never refused: what takes changes back that are nowhere else would leave half of
/// them otherwise. The system may still have no memory.
pub fn promised<T>(f: impl FnOnce() -> T) -> T {
    struct Former(bool);
    impl Drop for Former {
        fn drop(&mut self) {
            PROMISED.set(self.0);
        }
    }
    let _former = Former(PROMISED.replace(true));
    f()
}

/// Gives this thread's credit back to the shared count.
fn settle() {
    if let Ok(credit) = MINE.try_with(|c| c.0.replace(0)) {
        let used = USED.fetch_sub(credit, Relaxed) - credit;
        HIGH.fetch_max(used, Relaxed);
    }
}

/// Counts `n` more bytes, or answers `SQLITE_NOMEM` if the hard limit, a planned failure or who is asked first says no.
#[inline]
pub fn claim(n: usize) -> Result<()> {
    if WATCHED.load(Relaxed) {
        watched(n)?;
    }
    count(n)
}

#[cold]
fn watched(n: usize) -> Result<()> {
    if PROMISED.get() {
        return Ok(());
    }
    if FAIL_IN.load(Relaxed) >= 0 && FAIL_IN.fetch_sub(1, Relaxed) <= 0 {
        fail_in(-1);
        return Err(Code::Nomem.into());
    }
    let refused = asked().is_some_and(|gives| !gives(n));
    if refused { Err(Code::Nomem.into()) } else { Ok(()) }
}

fn asked() -> Option<Ask> {
    *ASKED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Has `f` say for each claim from now on whether there is so much memory; `None`: nobody is asked.
pub fn ask_first(f: Option<fn(usize) -> bool>) {
    *ASKED.write().unwrap_or_else(PoisonError::into_inner) = f;
    WATCHED.store(f.is_some() || failure_pending(), Relaxed);
}

/// As [`claim`], but for the hard limit alone.
#[inline]
pub fn count(n: usize) -> Result<()> {
    let from_credit = MINE.try_with(|c| {
        let left = c.0.get() - n as i64;
        if left >= 0 {
            c.0.set(left);
        }
        left >= 0
    });
    if from_credit == Ok(true) { Ok(()) } else { claim_shared(n as i64) }
}

/// Takes `n` bytes, and half a credit where no limit is near, from the shared count.
#[cold]
fn claim_shared(n: i64) -> Result<()> {
    settle();
    let limit = HARD_LIMIT.load(Relaxed);
    let more = if limit > 0 { 0 } else { CREDIT / 2 };
    let used = USED.fetch_add(n + more, Relaxed) + n + more;
    if limit > 0 && used > limit && !PROMISED.get() {
        USED.fetch_sub(n, Relaxed);
        return Err(Code::Nomem.into());
    }
    HIGH.fetch_max(used - more, Relaxed);
    if more > 0 && MINE.try_with(|c| c.0.set(more)).is_err() {
        USED.fetch_sub(more, Relaxed);
    }
    Ok(())
}

/// Gives back what [`claim`] counted.
#[inline]
pub fn release(n: usize) {
    let kept = MINE.try_with(|c| {
        let credit = c.0.get() + n as i64;
        if credit <= CREDIT {
            c.0.set(credit);
        }
        credit <= CREDIT
    });
    if kept != Ok(true) {
        USED.fetch_sub(n as i64, Relaxed);
    }
}

/// Bytes counted now.
pub fn used() -> i64 {
    settle();
    USED.load(Relaxed)
}

/// The highest count since the last reset; `reset` sets it to the present one.
pub fn highwater(reset: bool) -> i64 {
    settle();
    let high = HIGH.load(Relaxed);
    if reset {
        HIGH.store(USED.load(Relaxed), Relaxed);
    }
    high
}

/// Sets the hard heap limit in bytes (0: none) if `n` is not negative; returns the former one.
pub fn hard_limit(n: i64) -> i64 {
    let old = HARD_LIMIT.load(Relaxed);
    settle();
    if n >= 0 {
        HARD_LIMIT.store(n, Relaxed);
        HIGH.store(USED.load(Relaxed), Relaxed);
        // The soft limit is never above the hard one, and goes with it (documentation page `c3ref/hard_heap_limit64`).
        let soft = SOFT_LIMIT.load(Relaxed);
        if soft == 0 || n < soft {
            SOFT_LIMIT.store(n, Relaxed);
        }
    }
    old
}

/// Sets the soft heap limit in bytes (0: none, or the hard limit where there is one) if `n` is not negative; returns the
/// former one. It is kept and told; caches keep to their own sizes, so nothing is given back for it.
pub fn soft_limit(n: i64) -> i64 {
    let old = SOFT_LIMIT.load(Relaxed);
    if n >= 0 {
        let hard = HARD_LIMIT.load(Relaxed);
        let new = if hard > 0 && (n == 0 || n > hard) { hard } else { n };
        SOFT_LIMIT.store(new, Relaxed);
    }
    old
}

/// Makes the `n`-th claim from now (0: the next) fail once; a negative `n` takes the plan back.
/// For tests: the plan is process-wide.
pub fn fail_in(n: i64) {
    FAIL_IN.store(n, Relaxed);
    WATCHED.store(n >= 0 || asked().is_some(), Relaxed);
}

/// Whether a planned failure is still ahead.
pub fn failure_pending() -> bool {
    FAIL_IN.load(Relaxed) >= 0
}

/// A zeroed vector of `n` bytes, or `SQLITE_NOMEM`. Not counted beyond the check: short-lived scratch.
pub fn zeroed(n: usize) -> Result<Vec<u8>> {
    claim(n)?;
    release(n);
    zeroed_memory(n)
}

/// A zeroed vector of `n` words, in the same way. Of a large one the kernel gives the pages as they are written to.
pub fn zeroed_words(n: usize) -> Result<Vec<u64>> {
    claim(8 * n)?;
    release(8 * n);
    zeroed_memory(n)
}

/// Room for `more` further elements in `v`, or `SQLITE_NOMEM`.
#[inline]
pub fn reserve<T>(v: &mut Vec<T>, more: usize) -> Result<()> {
    if v.capacity() - v.len() < more {
        claim(0)?;
        v.try_reserve(more).map_err(|_| Code::Nomem)?;
    }
    Ok(())
}

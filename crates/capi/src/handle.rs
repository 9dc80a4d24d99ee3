//! How long the memory behind a `sqlite3*` and a `sqlite3_stmt*` lives, and who may use it.
//!
//! A program may use a handle after it has closed it. That is an error of the program, and it must stay one: the memory
//! of connections and statements is never given back to the allocator. A slot of a closed connection says that it is
//! closed, waits in a queue, and serves a later connection. So a late call finds a state word and a mutex, and answers
//! `SQLITE_MISUSE`; only when the slot is in use again, it reaches another connection.
//!
//! What always holds: a connection's content is read and changed under its mutex only, but for the state word, which is
//! atomic, and the flag of `sqlite3_interrupt`. Whoever finds a zombie without statements, under the mutex, ends it
//! there and then, so it is ended once. In a forked child, a connection that another thread of the parent was in the midst of
//! is half changed: it stays as it is, and all calls answer `SQLITE_MISUSE`. What unwinds stops here: the connection is broken from then on, its statements
//! answer `SQLITE_INTERNAL`, and closing it takes its transaction back.

use crate::connection::{Db, Held};
use crate::shared_cache::Group;
use crate::{INTERNAL, MISUSE};
use iolite_os::PerProcess;
use iolite_value::num;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection that is open, or that failed to open and holds the reason.
const OPEN: u32 = 0x6f70_656e;
/// Closed by `sqlite3_close_v2` while it has statements, backups or blobs.
const ZOMBIE: u32 = 0x7a6f_6d62;
/// Closed; the slot waits for another connection.
const CLOSED: u32 = 0x636c_6f73;

/// So many slots wait at least before one is used again.
const WAITING: usize = 64;

/// The state of a connection's slot.
pub struct State(AtomicU32);

impl Default for State {
    fn default() -> State {
        State(AtomicU32::new(OPEN))
    }
}

impl State {
    fn is(&self, state: u32) -> bool {
        self.0.load(Ordering::Relaxed) == state
    }

    /// Whether statements and the like may still be used.
    fn is_alive(&self) -> bool {
        !self.is(CLOSED)
    }

    /// Whether a program may use the connection itself.
    pub(crate) fn is_open(&self) -> bool {
        self.is(OPEN)
    }
}

struct Slot(*mut Db);

// SAFETY: a slot in the queue is used by nobody; whoever takes it out owns it.
unsafe impl Send for Slot {}

fn spare() -> MutexGuard<'static, VecDeque<Slot>> {
    static SPARE: PerProcess<Mutex<VecDeque<Slot>>> = PerProcess::new();
    SPARE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a connection into a slot.
/// `group`: those with which it may share caches.
pub(crate) fn place(group: Option<&'static Group>, make: impl FnOnce(&Db)) -> *mut Db {
    let spare = {
        let mut spare = spare();
        if spare.len() > WAITING { spare.pop_front() } else { None }
    };
    let p = match spare {
        Some(Slot(p)) => p,
        None => Box::into_raw(Box::default()),
    };
    // SAFETY: slots are never freed, and this one is nobody else's.
    let d = unsafe { &*p };
    d.set_group(group);
    // A slot that nobody uses was left by everybody, and the group is this process's.
    let _held = d.enter();
    make(d);
    d.state.0.store(OPEN, Ordering::Relaxed);
    p
}

/// An answer of an entry point.
pub(crate) trait Answer: Copy {
    /// What to answer after unwinding, where `self` is the answer for handles that are none.
    fn broken(self) -> Self {
        self
    }
}

impl Answer for i32 {
    fn broken(self) -> i32 {
        // Numbers that are no result codes stay as they are.
        if matches!(self, MISUSE | crate::NOMEM | crate::ERROR) { INTERNAL } else { self }
    }
}

impl Answer for () {}
impl Answer for i64 {}
impl Answer for f64 {}
impl<T> Answer for *const T {}
impl<T> Answer for *mut T {}

/// Runs `f` on an open connection under its mutex; `bad` for NULL, for closed ones, and after unwinding.
pub(crate) unsafe fn with<T: Answer>(db: *mut Db, bad: T, f: impl FnOnce(&Db) -> T) -> T {
    match db.as_ref() {
        Some(d) if d.state.is_open() => within(db, bad, |d| if d.state.is_open() { f(d) } else { bad }),
        _ => bad,
    }
}

/// As [`with`], also for a connection that is kept by its statements alone.
pub(crate) unsafe fn within<T: Answer>(db: *mut Db, bad: T, f: impl FnOnce(&Db) -> T) -> T {
    match db.as_ref() {
        Some(d) if d.state.is_alive() => {
            let Some(_held) = d.enter() else { return bad };
            if !d.state.is_alive() {
                return bad;
            }
            let _digits = digits_of(d);
            contained(d, bad, || f(d))
        }
        _ => bad,
    }
}

/// Some connection has other digits of reals than usual, or had.
static DIGITS: AtomicBool = AtomicBool::new(false);

/// Sets how many digits reals have as texts in what is done with a connection.
pub(crate) fn set_digits(d: &Db, digits: i32) {
    d.digits.set(digits);
    DIGITS.store(true, Ordering::Relaxed);
}

/// For as long as something is done with a connection.
fn digits_of(d: &Db) -> Option<num::Shown> {
    DIGITS.load(Ordering::Relaxed).then(|| {
        // A connection that was not told otherwise has 0.
        num::Shown::digits(if d.digits.get() == 0 { num::USUAL_DIGITS } else { d.digits.get() })
    })
}

fn contained<T: Answer>(d: &Db, bad: T, f: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(t) => t,
        Err(_) => {
            d.broken.set(true);
            let _ = catch_unwind(AssertUnwindSafe(|| d.fail_broken()));
            bad.broken()
        }
    }
}

/// As [`within`], for calls that may take away what kept a zombie alive.
pub(crate) unsafe fn leaving<T: Answer>(db: *mut Db, bad: T, f: impl FnOnce(&Db) -> T) -> T {
    let Some(d) = db.as_ref().filter(|d| d.state.is_alive()) else { return bad };
    let Some(held) = d.enter() else { return bad };
    if !d.state.is_alive() {
        return bad;
    }
    let out = contained(d, bad, || f(d));
    end_if_idle(db, held);
    out
}

/// `sqlite3_close` and `sqlite3_close_v2`, which does not mind statements. `busy` says how it went where the connection is
/// still needed.
pub(crate) unsafe fn close(db: *mut Db, patient: bool, busy: impl FnOnce(&Db) -> i32) -> i32 {
    let Some(d) = db.as_ref() else { return crate::OK };
    if !d.state.is_open() {
        return MISUSE;
    }
    let Some(held) = d.enter() else { return MISUSE };
    if !d.state.is_open() {
        return MISUSE;
    }
    if !patient && !d.is_idle() {
        return contained(d, MISUSE, || busy(d));
    }
    d.state.0.store(ZOMBIE, Ordering::Relaxed);
    end_if_idle(db, held);
    crate::OK
}

/// Ends a zombie that nothing needs any more.
unsafe fn end_if_idle(db: *mut Db, held: Held) {
    let d = &*db;
    if !d.state.is(ZOMBIE) || !d.is_idle() || d.ending.replace(true) {
        return;
    }
    contained(d, (), || d.end());
    d.ending.set(false);
    d.state.0.store(CLOSED, Ordering::Relaxed);
    drop(held);
    spare().push_back(Slot(db));
}

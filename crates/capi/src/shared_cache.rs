//! Shared caches (documentation pages `sharedcache`, `unlock_notify`): the connections that use them, and who waits for whom.
//!
//! All connections that may share a cache (by a flag, by `sqlite3_enable_shared_cache`, by `cache=shared` in their name) belong to one
//! group with one mutex beside their own: caches, and the buffers that values lie in, are used by one thread at a time. A connection is
//! in the group from its opening to its end. A thread gives the group's mutex up while it waits for a connection's own, and while
//! a function or a virtual table of the program's runs, which may wait for another thread: it is given values with bytes of their own.
//! A forked child has a group of its own; what its parent has opened stays in the parent's.
//!
//! What always holds: whatever is in a [`Group`] is touched under its mutex alone; a connection waits for at most one other, and nobody
//! waits in a circle; who is told, is told once. Callbacks run at the end of the transaction that was waited for, within the call that ended it.

use crate::mutex::Mutex;
use iolite::OpenFlags;
use iolite::engine::{Caches, Code, Connection, Error, Member};
use iolite_os::PerProcess;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The connections of a process that may share caches.
pub(crate) struct Group {
    /// The innermost: nobody waits for a connection's own while holding it.
    pub(crate) mutex: Mutex,
    common: Guarded<Common>,
}

impl Default for Group {
    fn default() -> Group {
        Group { mutex: Mutex::unowned(), common: Guarded::default() }
    }
}

/// What they have in common.
#[derive(Default)]
struct Common {
    caches: Caches,
    waiting: RefCell<Vec<Waiting>>,
}

/// A connection that wants to hear of the end of another's transaction.
struct Waiting {
    /// Their numbers as members.
    who: u64,
    by: u64,
    notify: Notify,
    user: *mut c_void,
}

/// `xNotify` of `sqlite3_unlock_notify`.
pub(crate) type Notify = unsafe extern "C" fn(*mut *mut c_void, c_int);

#[derive(Default)]
struct Guarded<T>(T);

// SAFETY: what is inside is reached through `Group` alone, whose callers hold its mutex.
unsafe impl<T> Send for Guarded<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Guarded<T> {}

impl Group {
    /// That of this process.
    pub(crate) fn of_process() -> &'static Group {
        static GROUP: PerProcess<Group> = PerProcess::new();
        GROUP.get()
    }

    /// The caller holds the mutex.
    fn waiting(&self) -> &RefCell<Vec<Waiting>> {
        &self.common.0.waiting
    }
}

/// Whether a URI asks for a shared cache; other names and other words are for the engine to judge.
pub(crate) fn named_shared(name: &[u8]) -> bool {
    name.starts_with(b"file:") && name.windows(12).any(|w| w == b"cache=shared")
}

/// Opens a connection, in the group if it belongs there. The caller holds its mutex.
pub(crate) fn open(
    group: Option<&'static Group>,
    vfs: Arc<dyn iolite_os::Vfs>,
    name: &[u8],
    flags: OpenFlags,
    interrupt: Arc<AtomicBool>,
) -> Result<Connection, Error> {
    let c = Connection::open_in(vfs, name, flags, interrupt, group.map(|g| &g.common.0.caches))?;
    if let (Some(m), Some(group)) = (c.member(), group) {
        let id = m.id();
        m.set_at_end(Some(Rc::new(move || ended(group, id))));
    }
    Ok(c)
}

/// Has a member told when the transaction has ended that was in its way; at once where none was. `SQLITE_LOCKED`: that one
/// waits for this one. The caller holds the group's mutex.
///
/// # Safety
/// `notify` may be called with `user` until it has been, or until it is taken back.
pub(crate) unsafe fn wait(
    group: &Group,
    m: &Member,
    notify: Option<Notify>,
    user: *mut c_void,
) -> Result<(), Error> {
    let waiting = group.waiting();
    waiting.borrow_mut().retain(|w| w.who != m.id());
    let Some(notify) = notify else {
        m.unblock();
        return Ok(());
    };
    let Some(by) = m.blocked_by() else {
        // SAFETY: as the caller says.
        unsafe { notify([user].as_mut_ptr(), 1) };
        return Ok(());
    };
    let mut next = Some(by);
    while let Some(n) = next {
        if n == m.id() {
            return Err(Error::new(Code::Locked, "database is deadlocked"));
        }
        next = waiting.borrow().iter().find(|w| w.who == n).map(|w| w.by);
    }
    // Who came last is told first.
    waiting.borrow_mut().insert(0, Waiting { who: m.id(), by, notify, user });
    Ok(())
}

/// A connection is about to be closed: it waits for nobody any more.
pub(crate) fn leave(group: &Group, c: &Connection) {
    if let Some(m) = c.member() {
        group.waiting().borrow_mut().retain(|w| w.who != m.id());
    }
}

/// A transaction has ended: whoever waited for it is told, several with the same callback at once.
fn ended(group: &Group, by: u64) {
    let mut told = Vec::new();
    group.waiting().borrow_mut().retain(|w| {
        let waits = w.by == by;
        if waits {
            told.push((w.notify, w.user));
        }
        !waits
    });
    while let Some(&(notify, _)) = told.first() {
        let (same, others): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|(n, _)| std::ptr::fn_addr_eq(*n, notify));
        let mut users: Vec<*mut c_void> = same.into_iter().map(|(_, u)| u).collect();
        // SAFETY: the program gave both, to be called now.
        unsafe { notify(users.as_mut_ptr(), users.len() as c_int) };
        told = others;
    }
}

//! Shared caches (documentation page `sharedcache`): several connections of a thread use one pager, and with it one page cache
//! and one transaction on the file.
//!
//! ```text
//!   connection --- Seat --+
//!                         +--- Shared (pager, trees) --- file
//!   connection --- Seat --+
//! ```
//!
//! To others the connections are one. Among each other, tables are locked: many connections read a table, or one writes to
//! it, until its transaction ends. Reading anything locks the schema table (root 1) for reading; changing the schema locks it for
//! writing. Who meets a lock hears `SQLITE_LOCKED_SHAREDCACHE` at once: no busy handler is asked, for the other may be the same thread.
//!
//! What always holds (`check`): at most one seat writes, and then the pager does; while any seat is in a transaction the pager is in one;
//! locks belong to seats in transactions; a lock for writing is alone on its table; a connection has one seat at a database.
//!
//! What it does not know: which tables a statement uses (the program says so before it begins), and threads. A [`crate::Caches`] is not
//! `Send`; whoever shares it between threads keeps all of its connections under one lock.

use iolite_base::{Code, Pgno, Result};
use iolite_pager::{BusyHandler, TxnState};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// The root page of the schema table.
const SCHEMA: Pgno = 1;

/// The connections that may share caches with each other. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Members(Rc<Registry>);

#[derive(Default)]
struct Registry {
    members: RefCell<Vec<Weak<Connected>>>,
    last: Cell<u64>,
}

impl Members {
    /// One more.
    pub fn join(&self) -> Member {
        let id = self.0.last.get() + 1;
        self.0.last.set(id);
        let made = Rc::new(Connected {
            id,
            registry: Rc::downgrade(&self.0),
            transactions: Cell::new(0),
            blocked_by: Cell::new(None),
            at_end: RefCell::new(None),
        });
        let mut members = self.0.members.borrow_mut();
        members.retain(|m| m.strong_count() > 0);
        members.push(Rc::downgrade(&made));
        Member(made)
    }
}

/// A connection that takes part in shared caches.
#[derive(Clone)]
pub struct Member(Rc<Connected>);

struct Connected {
    id: u64,
    registry: Weak<Registry>,
    /// Databases of which it is in a transaction.
    transactions: Cell<u32>,
    blocked_by: Cell<Option<u64>>,
    at_end: RefCell<Option<Rc<dyn Fn()>>>,
}

impl Member {
    /// A number that no other member of its caches has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The member whose lock the last `SQLITE_LOCKED_SHAREDCACHE` was about, until that one's transaction ends.
    pub fn blocked_by(&self) -> Option<u64> {
        self.0.blocked_by.get()
    }

    /// It is not blocked any more.
    pub fn unblock(&self) {
        self.0.blocked_by.set(None);
    }

    /// What is called whenever a transaction of its may have ended.
    pub fn set_at_end(&self, f: Option<Rc<dyn Fn()>>) {
        *self.0.at_end.borrow_mut() = f;
    }

    fn ended(&self) {
        let n = self.0.transactions.get().saturating_sub(1);
        self.0.transactions.set(n);
        if n == 0 {
            self.concluded();
        }
    }

    /// Nobody is blocked by it any more, as far as is known, and those who wait are told: its last transaction has ended, or a
    /// statement outside of `BEGIN`, as on stock, though another one may read on.
    pub fn concluded(&self) {
        if let Some(r) = self.0.registry.upgrade() {
            let others = r.members.borrow();
            let blocked = others.iter().filter_map(Weak::upgrade);
            blocked.filter(|m| m.blocked_by.get() == Some(self.0.id)).for_each(|m| m.blocked_by.set(None));
        }
        let f = self.0.at_end.borrow().clone();
        if let Some(f) = f {
            f();
        }
    }
}

/// The place of one connection at a shared database.
pub(crate) struct Seat {
    member: Member,
    number: u64,
    pub state: Cell<TxnState>,
    /// Savepoints that this connection has open.
    pub savepoints: Cell<usize>,
    pub busy: RefCell<Option<BusyHandler>>,
    own_commits: Cell<u32>,
}

/// What the seats at a database share.
#[derive(Default)]
pub(crate) struct Seats {
    seats: Cell<usize>,
    last_seat: Cell<u64>,
    /// Seats in a transaction.
    active: Cell<usize>,
    locks: RefCell<Vec<TableLock>>,
    /// The seat that writes, and its member.
    writer: Cell<Option<(u64, u64)>>,
    /// The writer wants to be alone.
    exclusive: Cell<bool>,
    /// The writer waits for readers: no others are let in.
    pending: Cell<bool>,
    commits: Cell<u32>,
}

/// One table's lock.
struct TableLock {
    root: Pgno,
    seat: u64,
    member: u64,
    write: bool,
}

impl Seats {
    /// A new seat, for a connection.
    pub fn take(&self, member: &Member) -> Seat {
        self.seats.set(self.seats.get() + 1);
        self.last_seat.set(self.last_seat.get() + 1);
        Seat {
            member: member.clone(),
            number: self.last_seat.get(),
            state: Cell::new(TxnState::None),
            savepoints: Cell::new(0),
            busy: RefCell::new(None),
            own_commits: Cell::new(self.commits.get()),
        }
    }

    /// The member in whose way `seat` would be.
    fn in_the_way(&self, seat: &Seat, root: Pgno, write: bool) -> Option<u64> {
        if self.exclusive.get()
            && let Some((number, member)) = self.writer.get()
            && number != seat.number
        {
            return Some(member);
        }
        let locks = self.locks.borrow();
        let other = locks.iter().find(|l| l.seat != seat.number && l.root == root && (write || l.write));
        other.map(|l| l.member)
    }

    fn lock(&self, seat: &Seat, root: Pgno, write: bool) {
        let mut locks = self.locks.borrow_mut();
        match locks.iter_mut().find(|l| l.seat == seat.number && l.root == root) {
            Some(l) => l.write |= write,
            None => locks.push(TableLock { root, seat: seat.number, member: seat.member.id(), write }),
        }
    }

    /// The seat is in a transaction from now on.
    fn enter(&self, seat: &Seat, state: TxnState) {
        if seat.state.replace(state) == TxnState::None {
            self.active.set(self.active.get() + 1);
            seat.member.0.transactions.set(seat.member.0.transactions.get() + 1);
        }
    }

    /// What the seat's writing held is given up; `reads_on`: its locks stay, for reading.
    fn leave(&self, seat: &Seat, reads_on: bool) {
        if self.writer.get().is_some_and(|(n, _)| n == seat.number) {
            self.writer.set(None);
            self.exclusive.set(false);
            self.pending.set(false);
        }
        let mut locks = self.locks.borrow_mut();
        if reads_on {
            locks.iter_mut().filter(|l| l.seat == seat.number).for_each(|l| l.write = false);
            seat.state.set(TxnState::Read);
            return;
        }
        locks.retain(|l| l.seat != seat.number);
        drop(locks);
        if seat.state.replace(TxnState::None) != TxnState::None {
            self.active.set(self.active.get() - 1);
            if self.active.get() < 2 {
                // The writer is alone: it waits for nobody.
                self.pending.set(false);
            }
            seat.member.ended();
        }
    }

    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let locks = self.locks.borrow();
        for l in locks.iter().filter(|l| l.write) {
            let shared = locks.iter().any(|o| o.root == l.root && o.seat != l.seat);
            assert!(!shared, "a lock for writing is alone on its table");
            assert!(self.writer.get().is_some_and(|(n, _)| n == l.seat), "who holds it writes");
        }
        assert!(locks.is_empty() || self.active.get() > 0, "locks belong to transactions");
        assert!(self.active.get() <= self.seats.get(), "who is in a transaction has a seat");
    }
}

/// The seat behind a handle, and what it shares with others.
#[derive(Clone, Copy)]
pub(crate) struct At<'b> {
    pub seat: &'b Seat,
    pub seats: &'b Seats,
}

impl At<'_> {
    fn blocked<T>(&self, by: u64) -> Result<T> {
        self.seat.member.0.blocked_by.set(Some(by));
        Err(Code::LockedSharedcache.into())
    }

    /// Whether the seat may begin: to read, to write, or to be alone.
    pub fn may_begin(&self, write: bool, exclusive: bool) -> Result<()> {
        let (s, seats) = (self.seat, self.seats);
        let other = seats.writer.get().filter(|(n, _)| *n != s.number);
        if let Some((_, member)) = other.filter(|_| write || seats.pending.get()) {
            return self.blocked(member);
        }
        if exclusive
            && let Some(by) = seats.locks.borrow().iter().find(|l| l.seat != s.number).map(|l| l.member)
        {
            return self.blocked(by);
        }
        self.check_schema()
    }

    /// The seat has begun.
    pub fn begun(&self, state: TxnState, exclusive: bool) {
        self.seats.enter(self.seat, state);
        self.seats.lock(self.seat, SCHEMA, false);
        if state == TxnState::Write {
            self.seats.writer.set(Some((self.seat.number, self.seat.member.id())));
            self.seats.exclusive.set(exclusive);
        }
        self.seats.check();
    }

    /// The seat's transaction has ended, or it only reads on.
    pub fn ended(&self, reads_on: bool) {
        self.seats.leave(self.seat, reads_on);
        self.seats.check();
    }

    /// The seat has committed.
    pub fn committed(&self) {
        self.seats.commits.set(self.seats.commits.get().wrapping_add(1));
        self.seat.own_commits.set(self.seat.own_commits.get().wrapping_add(1));
    }

    /// How often others have committed.
    pub fn commits_of_others(&self) -> u32 {
        self.seats.commits.get().wrapping_sub(self.seat.own_commits.get())
    }

    /// Whether another seat is in a transaction.
    pub fn others_active(&self) -> bool {
        self.seats.active.get() > (self.seat.state.get() != TxnState::None) as usize
    }

    /// Locks a table for the seat's transaction.
    pub fn lock(&self, root: Pgno, write: bool) -> Result<()> {
        if let Some(by) = self.seats.in_the_way(self.seat, root, write) {
            if write {
                self.seats.pending.set(true);
            }
            return self.blocked(by);
        }
        self.seats.lock(self.seat, root, write);
        self.seats.check();
        Ok(())
    }

    /// An error while another seat changes the schema.
    pub fn check_schema(&self) -> Result<()> {
        match self.seats.in_the_way(self.seat, SCHEMA, false) {
            Some(by) => self.blocked(by),
            None => Ok(()),
        }
    }

    /// The seat is given up; answers whether it was the last one.
    pub fn give_up(&self) -> bool {
        self.seats.seats.set(self.seats.seats.get().saturating_sub(1));
        self.seats.seats.get() == 0
    }
}

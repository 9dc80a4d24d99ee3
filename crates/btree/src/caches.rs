//! The caches that connections share, by the names of their files, and what a handle says about its cache's locks.
//!
//! See `shared_cache` for the rules.

use crate::btree::{Btree, Shared};
use crate::shared_cache::{Member, Members};
use iolite_base::{Code, Pgno, Result};
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Caches that some connections share. Clones are the same.
#[derive(Clone, Default)]
pub struct Caches {
    open: Rc<RefCell<Vec<Named>>>,
    members: Members,
}

/// What names a file, and its database while somebody has it open.
type Named = (Vec<u8>, Weak<Shared>);

impl Caches {
    /// A connection that takes part.
    pub fn member(&self) -> Member {
        self.members.join()
    }

    /// The database with this name for a connection: the one that others of this process have open, or what `open` gives. What a
    /// parent had open when this process was forked may be in the midst of its transaction.
    pub fn open(&self, name: &[u8], member: &Member, open: impl FnOnce() -> Result<Btree>) -> Result<Btree> {
        let found = self.open.borrow().iter().find(|(n, _)| n == name).and_then(|(_, s)| s.upgrade());
        let shared = match found.filter(|s| !s.closed.get() && !s.is_inherited()) {
            Some(s) => s,
            None => {
                let s = open()?.0;
                let mut all = self.open.borrow_mut();
                all.retain(|(n, other)| n != name && other.strong_count() > 0);
                all.push((name.to_vec(), Rc::downgrade(&s)));
                s
            }
        };
        let seat = shared.seats.get_or_init(Default::default).take(member);
        Ok(Btree(shared, Some(Rc::new(seat))))
    }
}

impl Btree {
    /// Locks a table, named by its root page, until the transaction ends. `SQLITE_LOCKED_SHAREDCACHE`: another connection that shares
    /// the cache holds a lock. Does nothing where no cache is shared.
    pub fn lock_table(&self, root: Pgno, write: bool) -> Result<()> {
        self.at().map_or(Ok(()), |at| at.lock(root, write))
    }

    /// `SQLITE_LOCKED_SHAREDCACHE` while another connection that shares the cache changes the schema.
    pub fn check_schema_lock(&self) -> Result<()> {
        self.at().map_or(Ok(()), |at| at.check_schema())
    }

    /// `SQLITE_LOCKED` while another connection that shares the cache is in a transaction.
    pub(crate) fn check_alone(&self) -> Result<()> {
        if self.at().is_some_and(|at| at.others_active()) { Err(Code::Locked.into()) } else { Ok(()) }
    }
}

//! Locks where the kernel knows only those that belong to processes.
//!
//! Such locks do not conflict within a process and vanish when any descriptor of the file is closed. So one
//! record per inode counts what the handles of this process hold, only the first and the last of them asks
//! the kernel, and a descriptor that is closed while others hold locks is kept until the last lock is gone.

use super::locks;
use super::sys::{Fd, Owner};
use crate::{FileId, LockLevel, PerProcess};
use iolite_base::{Code, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What the handles of this process hold on one inode.
pub struct Inode {
    held: Mutex<Held>,
}

struct Held {
    /// The level that the kernel knows of.
    level: LockLevel,
    /// Handles at `Shared` or above.
    holders: u32,
    /// Descriptors closed while locks were held.
    waiting: Vec<Fd>,
}

impl Inode {
    /// The record of this process for a file.
    pub fn of(id: FileId) -> Arc<Inode> {
        static ALL: PerProcess<Mutex<HashMap<FileId, Weak<Inode>>>> = PerProcess::new();
        let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(&id).and_then(Weak::upgrade) {
            return found;
        }
        all.retain(|_, w| w.strong_count() > 0);
        let new = Arc::new(Inode {
            held: Mutex::new(Held { level: LockLevel::None, holders: 0, waiting: Vec::new() }),
        });
        all.insert(id, Arc::downgrade(&new));
        new
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the lock of one handle from `mine` to `to`.
    pub fn raise(
        &self,
        fd: &Fd,
        mine: LockLevel,
        to: LockLevel,
    ) -> Result<(), (LockLevel, iolite_base::Error)> {
        let mut h = self.held();
        // Another handle of this process stands in the way: the kernel would not say so.
        if mine != h.level && (h.level >= LockLevel::Pending || to > LockLevel::Shared) {
            return Err((mine, Code::Busy.into()));
        }
        if to == LockLevel::Shared && h.level >= LockLevel::Shared {
            h.holders += 1;
            return Ok(());
        }
        if to == LockLevel::Exclusive && h.holders > 1 {
            // Other readers in this process: new ones are kept out as they would be by readers elsewhere.
            locks::take_pending(fd, Owner::Process, mine)?;
            h.level = LockLevel::Pending;
            return Err((LockLevel::Pending, Code::Busy.into()));
        }
        match locks::raise(fd, Owner::Process, mine, to) {
            Ok(()) => {
                h.level = to;
                if to == LockLevel::Shared {
                    h.holders = 1;
                }
                Ok(())
            }
            Err((level, e)) => {
                h.level = h.level.max(level);
                Err((level, e))
            }
        }
    }

    /// Lowers the lock of one handle.
    pub fn lower(&self, fd: &Fd, mine: LockLevel, to: LockLevel) -> Result<()> {
        let mut h = self.held();
        if mine > LockLevel::Shared {
            locks::lower(fd, Owner::Process, mine, LockLevel::Shared)?;
            h.level = LockLevel::Shared;
        }
        if to == LockLevel::None {
            h.holders -= 1;
            if h.holders == 0 {
                let done = locks::lower(fd, Owner::Process, LockLevel::Shared, LockLevel::None);
                h.level = LockLevel::None;
                h.waiting.clear();
                done?;
            }
        }
        Ok(())
    }

    /// Whether somebody else has RESERVED or more.
    pub fn reserved(&self, fd: &Fd) -> Result<bool> {
        let h = self.held();
        Ok(h.level > LockLevel::Shared || locks::reserved_elsewhere(fd, Owner::Process)?)
    }

    /// Closes a descriptor now or, while locks are held, later.
    pub fn close(&self, fd: Fd) {
        let mut h = self.held();
        if h.holders > 0 {
            h.waiting.push(fd);
        }
    }
}

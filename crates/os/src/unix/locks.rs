//! SQLite's lock levels on byte ranges of the database file (documentation page `lockingv3`).
//!
//! ```text
//! byte 0x40000000      PENDING    write-locked to keep new readers out; they look at it beside taking SHARED
//! byte 0x40000001      RESERVED   write-locked by the one who is going to write
//! bytes 0x40000002..   SHARED     510 bytes, read-locked by readers, write-locked for EXCLUSIVE
//! ```

use super::sys::{self, Fd, Owner};
use crate::LockLevel;
use iolite_base::{Code, Error, Result};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

const PENDING: u64 = 0x4000_0000;
const RESERVED: u64 = PENDING + 1;
const SHARED: u64 = PENDING + 2;
const SHARED_LEN: u64 = 510;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// How often this process has asked for PENDING, for any file.
pub fn pending_taken() -> u32 {
    TAKEN.load(Acquire)
}

/// What an error number of a lock call means.
pub fn busy_or(e: i32, otherwise: Code) -> Error {
    match e {
        libc::EACCES | libc::EAGAIN | libc::ETIMEDOUT | libc::EBUSY | libc::EINTR | libc::ENOLCK => {
            Code::Busy.into()
        }
        libc::EPERM => Code::Perm.into(),
        _ => otherwise.into(),
    }
}

/// When a reader asks whether a writer waits (has PENDING).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// It asked a moment ago.
    Not,
    /// After SHARED was taken: one call more instead of two.
    After,
    /// Before, by holding PENDING meanwhile, as SQLite does: a waiting writer never meets this reader.
    Before,
}

/// Takes SHARED.
pub fn share(fd: &Fd, owner: Owner, ask: Ask) -> Result<()> {
    let set = |kind, start, len| {
        sys::set_lock(fd, owner, kind, start, len).map_err(|e| busy_or(e, Code::IoerrLock))
    };
    if ask == Ask::Before {
        set(libc::F_RDLCK, PENDING, 1)?;
        let shared = set(libc::F_RDLCK, SHARED, SHARED_LEN);
        if let Err(e) = set(libc::F_UNLCK, PENDING, 1) {
            let _ = set(libc::F_UNLCK, PENDING, 2 + SHARED_LEN);
            return Err(e);
        }
        return shared;
    }
    // SQLite holds PENDING while it takes SHARED: three calls. Asking afterwards whether somebody else has it keeps the rule
    // that nobody begins to read then, and saves one of the four that a read costs. A writer may find a reader there that is
    // about to leave; he waits for readers anyway.
    set(libc::F_RDLCK, SHARED, SHARED_LEN)?;
    if ask == Ask::Not {
        return Ok(());
    }
    match sys::conflict(fd, owner, libc::F_RDLCK, PENDING, 1) {
        Ok(libc::F_UNLCK) => Ok(()),
        other => {
            let _ = set(libc::F_UNLCK, SHARED, SHARED_LEN);
            Err(other.map_or_else(|e| busy_or(e, Code::IoerrLock), |_| Code::Busy.into()))
        }
    }
}

/// Raises from `from` to `to`. On failure returns the level that holds now and the error.
pub fn raise(fd: &Fd, owner: Owner, from: LockLevel, to: LockLevel) -> Result<(), (LockLevel, Error)> {
    let set = |kind, start, len| sys::set_lock(fd, owner, kind, start, len);
    match to {
        LockLevel::None | LockLevel::Pending => Ok(()),
        LockLevel::Shared => share(fd, owner, Ask::After).map_err(|e| (from, e)),
        LockLevel::Reserved => {
            set(libc::F_WRLCK, RESERVED, 1).map_err(|e| (from, busy_or(e, Code::IoerrLock)))
        }
        LockLevel::Exclusive => {
            take_pending(fd, owner, from)?;
            set(libc::F_WRLCK, SHARED, SHARED_LEN)
                .map_err(|e| (from.max(LockLevel::Pending), busy_or(e, Code::IoerrLock)))
        }
    }
}

/// The first step to EXCLUSIVE.
pub fn take_pending(fd: &Fd, owner: Owner, from: LockLevel) -> Result<(), (LockLevel, Error)> {
    if from >= LockLevel::Pending {
        return Ok(());
    }
    TAKEN.fetch_add(1, AcqRel);
    sys::set_lock(fd, owner, libc::F_WRLCK, PENDING, 1).map_err(|e| (from, busy_or(e, Code::IoerrLock)))
}

/// Lowers from `from` to `Shared` or `None`.
pub fn lower(fd: &Fd, owner: Owner, from: LockLevel, to: LockLevel) -> Result<()> {
    let set = |kind, start, len| sys::set_lock(fd, owner, kind, start, len);
    if to == LockLevel::None {
        return set(libc::F_UNLCK, PENDING, 2 + SHARED_LEN).map_err(|_| Code::IoerrUnlock.into());
    }
    if from == LockLevel::Exclusive {
        set(libc::F_RDLCK, SHARED, SHARED_LEN).map_err(|_| Code::IoerrRdlock)?;
    }
    if from > LockLevel::Shared {
        set(libc::F_UNLCK, PENDING, 2).map_err(|_| Code::IoerrUnlock)?;
    }
    Ok(())
}

/// Whether another holder has RESERVED or more.
pub fn reserved_elsewhere(fd: &Fd, owner: Owner) -> Result<bool> {
    match sys::get_lock(fd, owner, RESERVED, 1) {
        Ok(kind) => Ok(kind != libc::F_UNLCK),
        Err(_) => Err(Code::IoerrCheckreservedlock.into()),
    }
}

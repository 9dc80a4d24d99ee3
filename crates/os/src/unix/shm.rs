//! The shared memory beside a WAL database: the file `-shm`, mapped, with locks on its bytes 120 to 128.
//!
//! Byte 120 + n is lock n of the wal-index. Byte 128 is read-locked by everybody who has the file mapped:
//! whoever finds it free is first and empties the file, since its content is of no worth once nobody is
//! there.
//!
//! Where locks belong to open file descriptions, each handle has its own and the kernel keeps them apart.
//! Where they belong to processes, all handles of a process on one file share a descriptor (closing another
//! one would drop all locks) and this module keeps them apart.

use super::fork;
use super::locks::busy_or;
use super::sys::{self, Belongs, Fd, How, Mapping, Owner};
use crate::{FileId, PerProcess, ShmLock, ShmRegion, ShmRelease};
use iolite_base::{Code, Result};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const BASE: u64 = 120;
const DEAD_MAN_SWITCH: u64 = 128;
const LOCKS: usize = 8;

/// An open `-shm` file: one handle's, or all handles' of a process.
struct Joint {
    fd: Fd,
    read_only: bool,
    owner: Owner,
    held: Mutex<Held>,
}

/// What the handles on a [`Joint`] hold.
#[derive(Default)]
struct Held {
    /// The dead man's switch is locked.
    attached: bool,
    shared: [u32; LOCKS],
    exclusive: [bool; LOCKS],
}

impl Joint {
    fn open(path: &Path, belongs: Belongs, owner: Owner, read: bool) -> Result<Joint> {
        let reading = How { nofollow: true, ..How::default() };
        let writing = How { write: true, create: true, belongs: Some(belongs), ..reading };
        let write = if read { None } else { sys::open(path, writing).ok() };
        let (mut fd, read_only) = match write {
            Some(fd) => (fd, false),
            None => (sys::open(path, reading).map_err(|_| Code::Cantopen)?, true),
        };
        if owner == Owner::Description {
            fd.watch();
        }
        Ok(Joint { fd, read_only, owner, held: Mutex::default() })
    }

    /// The one of this process for a file.
    fn of_process(path: &Path, belongs: Belongs, read: bool) -> Result<Arc<Joint>> {
        static ALL: PerProcess<Mutex<HashMap<FileId, Weak<Joint>>>> = PerProcess::new();
        let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
        // Looked up by name first: a descriptor that turned out to be a second one could not be closed again.
        if let Ok(st) = sys::stat(path)
            && let Some(found) = all.get(&super::file::id_of(&st)).and_then(Weak::upgrade)
        {
            return Ok(found);
        }
        let new = Arc::new(Joint::open(path, belongs, Owner::Process, read)?);
        let st = sys::fstat(&new.fd).map_err(|_| Code::IoerrFstat)?;
        all.retain(|_, w| w.strong_count() > 0);
        all.insert(super::file::id_of(&st), Arc::downgrade(&new));
        Ok(new)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, kind: libc::c_int, at: u64, n: u64) -> Result<()> {
        sys::set_lock(&self.fd, self.owner, kind, at, n).map_err(|e| busy_or(e, Code::IoerrShmlock))
    }

    /// Joins those who use the memory. Without the right to write, somebody must be there already
    /// (`SQLITE_READONLY_CANTINIT`); locks can be taken all the same.
    fn attach(&self) -> Result<()> {
        let mut held = self.held();
        if held.attached {
            return Ok(());
        }
        let others = sys::get_lock(&self.fd, self.owner, DEAD_MAN_SWITCH, 1).map_err(|_| Code::IoerrLock)?;
        if others == libc::F_UNLCK {
            if self.read_only {
                return Err(Code::ReadonlyCantinit.into());
            }
            // If somebody is faster, he empties the file while he holds the byte alone: busy for a moment.
            self.set(libc::F_WRLCK, DEAD_MAN_SWITCH, 1)?;
            sys::ftruncate(&self.fd, 3).map_err(|_| Code::IoerrShmopen)?;
        } else if others == libc::F_WRLCK {
            return Err(Code::Busy.into());
        }
        self.set(libc::F_RDLCK, DEAD_MAN_SWITCH, 1)?;
        held.attached = true;
        Ok(())
    }
}

/// One handle on the shared memory.
pub struct Shm {
    joint: Arc<Joint>,
    path: PathBuf,
    regions: Vec<Arc<Mapping>>,
    /// Locks that this handle holds, a bit each: only kept where the kernel does not tell handles apart.
    shared: Cell<u8>,
    exclusive: Cell<u8>,
}

impl Shm {
    /// Opens or creates the file beside `db_path`; `read`: only to read it.
    pub fn open(db_path: &Path, db: &Fd, process_locks: bool, read: bool) -> Result<Shm> {
        let mut name = db_path.as_os_str().to_owned();
        name.push("-shm");
        let path = PathBuf::from(name);
        let belongs = Belongs::like(&sys::fstat(db).map_err(|_| Code::IoerrFstat)?);
        let joint = if process_locks {
            Joint::of_process(&path, belongs, read)?
        } else {
            Arc::new(Joint::open(&path, belongs, Owner::Description, read)?)
        };
        Ok(Shm { joint, path, regions: Vec::new(), shared: Cell::new(0), exclusive: Cell::new(0) })
    }

    /// Whether the file could only be opened for reading.
    pub fn is_read_only(&self) -> bool {
        self.joint.read_only
    }

    /// Region `index`, mapping (and, if asked, growing the file) up to it.
    pub fn map(&mut self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.joint.attach()?;
        let fd = &self.joint.fd;
        // Mappings begin at machine pages: where those are larger than a region, several regions share one.
        let per_map = (sys::machine_page() / size).max(1);
        while self.regions.len() * per_map <= index {
            let want = ((self.regions.len() + 1) * per_map * size) as u64;
            let have = sys::fstat(fd).map_err(|_| Code::IoerrShmsize)?.st_size as u64;
            if have < want {
                if !extend {
                    return Ok(None);
                }
                if self.joint.read_only {
                    return Err(Code::Readonly.into());
                }
                // A byte is written to each block, so that a full disk shows here as an error and not at a
                // later store as a signal.
                let mut at = have / 4096 * 4096;
                while at < want {
                    sys::pwrite(fd, &[0], at + 4095).map_err(|_| Code::IoerrShmsize)?;
                    at += 4096;
                }
            }
            let offset = (self.regions.len() * per_map * size) as u64;
            let m = Mapping::new(fd, offset, per_map * size, !self.joint.read_only)
                .map_err(|_| Code::IoerrShmmap)?;
            self.regions.push(Arc::new(m));
        }
        let m = &self.regions[index / per_map];
        // SAFETY: the offset lies inside the mapping, which is page-aligned and lives as long as the Arc.
        let region = unsafe { ShmRegion::new(m.ptr().add(index % per_map * size), size, m.clone()) };
        Ok(Some(region))
    }

    /// See [`ShmRelease`]. Where locks belong to processes, the kernel does not know whose a lock is, and
    /// what this handle holds is kept on its own thread.
    pub fn release(&self) -> Option<Arc<dyn ShmRelease>> {
        if self.joint.owner == Owner::Process {
            return None;
        }
        Some(Arc::new(Release { joint: self.joint.clone(), born_after: fork::forks() }))
    }

    /// Takes or gives back locks.
    pub fn lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        if self.joint.owner == Owner::Process {
            return self.lock_in_process(first, n, how);
        }
        let kind = match how {
            ShmLock::Shared => libc::F_RDLCK,
            ShmLock::Exclusive => libc::F_WRLCK,
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => libc::F_UNLCK,
        };
        self.joint.set(kind, BASE + first as u64, n as u64)
    }

    fn lock_in_process(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        let mut held = self.joint.held();
        let range = first as usize..(first + n) as usize;
        let (mine, alone) = (self.shared.get(), self.exclusive.get());
        let bit = |i: usize| 1u8 << i;
        let mask = range.clone().fold(0, |m, i| m | bit(i));
        match how {
            ShmLock::Shared => {
                for i in range {
                    if mine & bit(i) != 0 {
                        continue;
                    }
                    if held.exclusive[i] {
                        return Err(Code::Busy.into());
                    }
                    if held.shared[i] == 0 {
                        self.joint.set(libc::F_RDLCK, BASE + i as u64, 1)?;
                    }
                    held.shared[i] += 1;
                    self.shared.set(self.shared.get() | bit(i));
                }
            }
            ShmLock::Exclusive => {
                let taken = |i: usize| {
                    (held.exclusive[i] && alone & bit(i) == 0) || held.shared[i] > (mine & bit(i) != 0) as u32
                };
                if range.clone().any(taken) {
                    return Err(Code::Busy.into());
                }
                self.joint.set(libc::F_WRLCK, BASE + first as u64, n as u64)?;
                for i in range {
                    held.exclusive[i] = true;
                }
                self.exclusive.set(alone | mask);
            }
            ShmLock::UnlockShared => {
                for i in range.filter(|&i| mine & bit(i) != 0) {
                    held.shared[i] -= 1;
                    if held.shared[i] == 0 {
                        self.joint.set(libc::F_UNLCK, BASE + i as u64, 1)?;
                    }
                }
                self.shared.set(mine & !mask);
            }
            ShmLock::UnlockExclusive => {
                for i in range.filter(|&i| alone & bit(i) != 0) {
                    held.exclusive[i] = false;
                    self.joint.set(libc::F_UNLCK, BASE + i as u64, 1)?;
                }
                self.exclusive.set(alone & !mask);
            }
        }
        Ok(())
    }

    /// Lets go; with `delete`, removes the file: the caller holds the database exclusively.
    pub fn close(self, delete: bool) {
        if delete {
            let _ = sys::unlink(&self.path);
        }
    }
}

struct Release {
    joint: Arc<Joint>,
    born_after: u32,
}

impl ShmRelease for Release {
    fn release(&self, lock: u8) {
        // A forked child never unlocks: the locks are its parent's.
        if self.is_own() {
            let _ = self.joint.set(libc::F_UNLCK, BASE + lock as u64, 1);
        }
    }

    fn is_own(&self) -> bool {
        self.born_after == fork::forks()
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        if self.joint.owner == Owner::Process {
            let _ = self.lock_in_process(0, LOCKS as u8, ShmLock::UnlockExclusive);
            let _ = self.lock_in_process(0, LOCKS as u8, ShmLock::UnlockShared);
        }
    }
}

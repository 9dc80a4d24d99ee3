//! The shared memory beside a WAL database: the file `-shm`, mapped, with locks on its bytes 120 to 128.
//!
//! Byte 120 + n is lock n of the wal-index. Byte 128 is read-locked by everybody who has the file mapped:
//! whoever finds it free is first and empties the file, since its content is of no worth once nobody is
//! there.

use super::locks::busy_or;
use super::sys::{self, Fd, Mapping, Owner};
use crate::{ShmLock, ShmRegion};
use iolite_base::{Code, Result};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BASE: u64 = 120;
const DEAD_MAN_SWITCH: u64 = 128;

/// One handle on the shared memory.
pub struct Shm {
    fd: Fd,
    path: PathBuf,
    read_only: bool,
    /// The byte of those who have the memory mapped is locked.
    attached: Cell<bool>,
    regions: Vec<Arc<Mapping>>,
    /// Locks held, a bit each: where several handles of a process must not disturb one another, the
    /// kernel keeps them apart, since each has its own description.
    shared: Cell<u16>,
    exclusive: Cell<u16>,
    owner: Owner,
}

impl Shm {
    /// Opens or creates the file beside `db_path`.
    pub fn open(db_path: &Path, db: &Fd) -> Result<Shm> {
        let mut name = db_path.as_os_str().to_owned();
        name.push("-shm");
        let path = PathBuf::from(name);
        let mode = sys::fstat(db).map_err(|_| Code::IoerrFstat)?.st_mode & 0o777;
        let (fd, read_only) = match sys::open(&path, true, true, false, Some(mode)) {
            Ok(fd) => (fd, false),
            Err(_) => (sys::open(&path, false, false, false, None).map_err(|_| Code::Cantopen)?, true),
        };
        let owner = match sys::get_lock(&fd, Owner::Description, DEAD_MAN_SWITCH, 1) {
            Err(libc::EINVAL) => Owner::Process,
            _ => Owner::Description,
        };
        Ok(Shm {
            fd,
            path,
            read_only,
            attached: Cell::new(false),
            regions: Vec::new(),
            shared: Cell::new(0),
            exclusive: Cell::new(0),
            owner,
        })
    }

    /// Joins those who use the memory. Without the right to write, somebody must be there already
    /// (`SQLITE_READONLY_CANTINIT`); locks can be taken all the same.
    fn attach(&self) -> Result<()> {
        if self.attached.get() {
            return Ok(());
        }
        let set = |kind| sys::set_lock(&self.fd, self.owner, kind, DEAD_MAN_SWITCH, 1);
        let others = sys::get_lock(&self.fd, self.owner, DEAD_MAN_SWITCH, 1).map_err(|_| Code::IoerrLock)?;
        if others == libc::F_UNLCK {
            if self.read_only {
                return Err(Code::ReadonlyCantinit.into());
            }
            match set(libc::F_WRLCK) {
                Ok(()) => sys::ftruncate(&self.fd, 3).map_err(|_| Code::IoerrShmopen)?,
                // Somebody was faster; he empties the file while he holds the byte alone.
                Err(e) => return Err(busy_or(e, Code::IoerrLock)),
            }
        } else if others == libc::F_WRLCK {
            return Err(Code::Busy.into());
        }
        set(libc::F_RDLCK).map_err(|e| busy_or(e, Code::IoerrLock))?;
        self.attached.set(true);
        Ok(())
    }

    /// Whether the file could only be opened for reading.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Region `index`, mapping (and, if asked, growing the file) up to it.
    pub fn map(&mut self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.attach()?;
        // Mappings begin at machine pages: where those are larger than a region, several regions share one.
        let per_map = (sys::machine_page() / size).max(1);
        while self.regions.len() * per_map <= index {
            let want = ((self.regions.len() + 1) * per_map * size) as u64;
            let have = sys::fstat(&self.fd).map_err(|_| Code::IoerrShmsize)?.st_size as u64;
            if have < want {
                if !extend {
                    return Ok(None);
                }
                if self.read_only {
                    return Err(Code::Readonly.into());
                }
                // A byte is written to each block, so that a full disk shows here as an error and not at a
                // later store as a signal.
                let mut at = have / 4096 * 4096;
                while at < want {
                    sys::pwrite(&self.fd, &[0], at + 4095).map_err(|_| Code::IoerrShmsize)?;
                    at += 4096;
                }
            }
            let offset = (self.regions.len() * per_map * size) as u64;
            let m = Mapping::new(&self.fd, offset, per_map * size, !self.read_only)
                .map_err(|_| Code::IoerrShmmap)?;
            self.regions.push(Arc::new(m));
        }
        let m = &self.regions[index / per_map];
        // SAFETY: the offset lies inside the mapping, which is page-aligned and lives as long as the Arc.
        let region = unsafe { ShmRegion::new(m.ptr().add(index % per_map * size), size, m.clone()) };
        Ok(Some(region))
    }

    /// Takes or gives back locks.
    pub fn lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        let mask = ((1u16 << n) - 1) << first;
        let kind = match how {
            ShmLock::Shared => libc::F_RDLCK,
            ShmLock::Exclusive => libc::F_WRLCK,
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => libc::F_UNLCK,
        };
        sys::set_lock(&self.fd, self.owner, kind, BASE + first as u64, n as u64)
            .map_err(|e| busy_or(e, Code::IoerrShmlock))?;
        let (s, x) = (self.shared.get(), self.exclusive.get());
        match how {
            ShmLock::Shared => self.shared.set(s | mask),
            ShmLock::Exclusive => self.exclusive.set(x | mask),
            ShmLock::UnlockShared => self.shared.set(s & !mask),
            ShmLock::UnlockExclusive => self.exclusive.set(x & !mask),
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

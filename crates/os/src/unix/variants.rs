//! The unix VFS with other locks on databases: none, a folder beside the file, or one lock for the whole process.
//!
//! What always holds: reading and writing are those of [`UnixVfs`], which is asked to take no locks; files that are no
//! databases are its own. A folder knows one holder: whoever reads keeps all others out. With the lock of the process, its
//! connections are kept apart in memory, where the wal-index is, too: no other process may come in until the last one closes.

use super::UnixVfs;
use super::sys;
use crate::traits::*;
use crate::{MemoryVfs, PerProcess};
use iolite_base::{Code, Result};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How databases are locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherLocks {
    /// Not at all: `unix-none`.
    None,
    /// By a folder whose name is the file's with `.lock` behind it: `unix-dotfile`.
    Folder,
    /// By one exclusive lock for all connections of this process: `unix-excl`.
    Process,
}

/// See the module's head.
pub struct UnixVariant {
    inner: UnixVfs,
    locks: OtherLocks,
}

impl UnixVariant {
    /// The unix VFS with these locks.
    pub fn new(locks: OtherLocks) -> UnixVariant {
        UnixVariant { inner: UnixVfs::new(), locks }
    }
}

impl Vfs for UnixVariant {
    fn name(&self) -> &str {
        match self.locks {
            OtherLocks::None => "unix-none",
            OtherLocks::Folder => "unix-dotfile",
            OtherLocks::Process => "unix-excl",
        }
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        let Some(path) = path.filter(|_| flags.kind == FileKind::MainDb && !flags.nolock) else {
            return self.inner.open(path, flags);
        };
        let inner = self.inner.open(Some(path), OpenFlags { nolock: true, ..flags })?;
        Ok(match self.locks {
            OtherLocks::None => Box::new(Unlocked { inner }),
            OtherLocks::Folder => {
                let mut name = path.as_os_str().to_owned();
                name.push(".lock");
                Box::new(ByFolder { inner, folder: PathBuf::from(name), level: Cell::new(LockLevel::None) })
            }
            OtherLocks::Process => Box::new(ByProcess::join(&self.inner, inner, path, flags)?),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn is_behind_link(&self, path: &Path) -> Result<bool> {
        self.inner.is_behind_link(path)
    }

    crate::pass_to_inner!(delete access full_path clock entropy);
}

struct Unlocked {
    inner: Box<dyn File>,
}

impl File for Unlocked {
    fn has_shm(&self) -> bool {
        false
    }

    fn is_inherited(&self) -> bool {
        self.inner.is_inherited()
    }

    crate::pass_to_inner!(read write truncate sync size lock unlock check_reserved sector_size characteristics);
    crate::pass_to_inner!(is_read_only identity has_moved shm_map shm_lock shm_barrier shm_unmap);
}

struct ByFolder {
    inner: Box<dyn File>,
    folder: PathBuf,
    level: Cell<LockLevel>,
}

impl File for ByFolder {
    fn lock(&self, level: LockLevel) -> Result<()> {
        if self.level.get() == LockLevel::None && level > LockLevel::None {
            sys::mkdir(&self.folder).map_err(|e| match e {
                libc::EEXIST | libc::EACCES => Code::Busy,
                libc::EPERM => Code::Perm,
                _ => Code::IoerrLock,
            })?;
        }
        self.level.set(self.level.get().max(level));
        Ok(())
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        if level == LockLevel::None && self.level.get() > LockLevel::None && !self.is_inherited() {
            match sys::rmdir(&self.folder) {
                Ok(()) | Err(libc::ENOENT) => {}
                Err(_) => return Err(Code::IoerrUnlock.into()),
            }
        }
        self.level.set(self.level.get().min(level));
        Ok(())
    }

    fn check_reserved(&self) -> Result<bool> {
        // Where this file made the folder, nobody else holds anything.
        Ok(self.level.get() == LockLevel::None && sys::stat(&self.folder).is_ok())
    }

    fn has_shm(&self) -> bool {
        false
    }

    fn is_inherited(&self) -> bool {
        self.inner.is_inherited()
    }

    crate::pass_to_inner!(read write truncate sync size sector_size characteristics is_read_only identity);
    crate::pass_to_inner!(has_moved shm_map shm_lock shm_barrier shm_unmap);
}

impl Drop for ByFolder {
    fn drop(&mut self) {
        let _ = self.unlock(LockLevel::None);
    }
}

/// What the connections of this process to one file share.
struct Whole {
    /// Holds the lock of the process.
    file: Option<Box<dyn File>>,
    users: usize,
}

/// The files that this process has to itself, and the connections' locks on them.
#[derive(Default)]
struct Process {
    files: Mutex<HashMap<FileId, Whole>>,
    locks: MemoryVfs,
}

fn process() -> &'static Process {
    static PROCESS: PerProcess<Process> = PerProcess::new();
    PROCESS.get()
}

impl Process {
    fn files(&self) -> MutexGuard<'_, HashMap<FileId, Whole>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(id: FileId) -> PathBuf {
        PathBuf::from(format!("{}:{}", id.device, id.inode))
    }
}

struct ByProcess {
    inner: Box<dyn File>,
    locks: Box<dyn File>,
    id: FileId,
    path: PathBuf,
    flags: OpenFlags,
    vfs: UnixVfs,
}

impl ByProcess {
    fn join(vfs: &UnixVfs, inner: Box<dyn File>, path: &Path, flags: OpenFlags) -> Result<ByProcess> {
        let id = inner.identity().ok_or(Code::IoerrFstat)?;
        let mut files = process().files();
        let locks =
            process().locks.open(Some(&Process::name(id)), OpenFlags::read_write(FileKind::MainDb))?;
        files.entry(id).or_insert(Whole { file: None, users: 0 }).users += 1;
        let vfs = UnixVfs { ..*vfs };
        Ok(ByProcess { inner, locks, id, path: path.to_owned(), flags, vfs })
    }

    /// Takes the lock of the process, if nobody has yet.
    fn lock_process(&self) -> Result<()> {
        let mut files = process().files();
        let Some(whole) = files.get_mut(&self.id) else { return Err(Code::IoerrLock.into()) };
        // Without the right to write there is no lock to be had alone: the process reads as others do.
        if whole.file.is_none() && !self.inner.is_read_only() {
            let file = self
                .vfs
                .open(Some(&self.path), OpenFlags { create: false, exclusive: false, ..self.flags })?;
            file.lock(LockLevel::Shared)?;
            file.lock(LockLevel::Exclusive)?;
            whole.file = Some(file);
        }
        Ok(())
    }
}

impl File for ByProcess {
    fn lock(&self, level: LockLevel) -> Result<()> {
        if level > LockLevel::None {
            self.lock_process()?;
        }
        self.locks.lock(level)
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        self.locks.unlock(level)
    }

    fn check_reserved(&self) -> Result<bool> {
        self.locks.check_reserved()
    }

    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.lock_process()?;
        self.locks.shm_map(index, size, extend)
    }

    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        self.locks.shm_lock(first, n, how)
    }

    fn shm_barrier(&self) {
        self.locks.shm_barrier();
    }

    fn shm_unmap(&self, delete: bool) -> Result<()> {
        self.locks.shm_unmap(delete)
    }

    fn is_inherited(&self) -> bool {
        self.inner.is_inherited()
    }

    crate::pass_to_inner!(read write truncate sync size sector_size characteristics is_read_only identity has_moved);
}

impl Drop for ByProcess {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        let _ = self.locks.shm_unmap(false);
        let _ = self.locks.unlock(LockLevel::None);
        let mut files = process().files();
        if let Some(whole) = files.get_mut(&self.id) {
            whole.users -= 1;
            if whole.users == 0 {
                files.remove(&self.id);
                let _ = process().locks.delete(&Process::name(self.id), false);
            }
        }
    }
}

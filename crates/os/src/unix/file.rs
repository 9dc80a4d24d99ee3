//! One open file of the operating system.

use super::fork;
use super::locks::{self, Ask};
use super::posix::Inode;
use super::shm::Shm;
use super::sys::{self, Fd, Owner, Stat};
use crate::traits::*;
use iolite_base::{Code, Error, Result};
use std::cell::{Cell, OnceCell, RefCell};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;

/// Device and inode have other widths elsewhere.
#[allow(clippy::unnecessary_cast)]
pub fn id_of(st: &Stat) -> FileId {
    FileId { device: st.st_dev as u64, inode: st.st_ino as u64 }
}

/// For how long the answer that nobody had PENDING is good, in nanoseconds: how long a writer waits more at most.
const MOMENT: u64 = 100_000;

/// See the module's head.
pub struct UnixFile {
    fd: Option<Fd>,
    path: Option<PathBuf>,
    flags: OpenFlags,
    level: Cell<LockLevel>,
    id: Cell<Option<FileId>>,
    /// Only this machine writes to it.
    local: OnceCell<bool>,
    /// When SHARED was taken and nobody had PENDING, in nanoseconds, and how often PENDING had been taken then.
    asked: Cell<(u64, u32)>,
    /// Set before the first lock: whose locks this inode uses. `Some`: the process's.
    posix: OnceCell<Option<Arc<Inode>>>,
    shm: RefCell<Option<Shm>>,
    /// The directory entry may not be durable yet.
    new_entry: Cell<bool>,
    /// The last attempt to read met a writer: ask first, so that readers do not stand in his way by asking.
    met_writer: Cell<bool>,
    born_after: u32,
    /// The size is a multiple of it; 0: of nothing.
    chunk: Cell<u64>,
    /// Use the locks of processes even where there are better ones.
    process_locks: bool,
    /// Shared memory is only read.
    reads_shm: bool,
}

impl UnixFile {
    /// A handle on an open descriptor.
    pub fn new(mut fd: Fd, path: Option<PathBuf>, flags: OpenFlags, vfs: &super::UnixVfs) -> UnixFile {
        if path.is_some() {
            fd.watch();
        }
        UnixFile {
            fd: Some(fd),
            flags,
            level: Cell::new(LockLevel::None),
            id: Cell::new(None),
            local: OnceCell::new(),
            asked: Cell::new((0, 0)),
            posix: OnceCell::new(),
            shm: RefCell::new(None),
            // Whoever found the file there cannot know that its name is on disk: its maker may have died before that.
            new_entry: Cell::new(flags.create && flags.kind != FileKind::MainDb),
            met_writer: Cell::new(false),
            born_after: fork::forks(),
            chunk: Cell::new(0),
            process_locks: vfs.process_locks && path.is_some(),
            reads_shm: vfs.reads_shm,
            path,
        }
    }

    fn fd(&self) -> &Fd {
        self.fd.as_ref().expect("closed only by drop")
    }

    /// Takes SHARED. PENDING only keeps readers from following each other for ever, so one that asked a moment ago need not
    /// ask again: a tenth of what a read in a rollback mode costs. What this process did meanwhile counts at once.
    ///
    /// Who takes SHARED and asks afterwards is in a waiting writer's way for as long as that takes, and readers that try
    /// again at once would keep him from ever finding the moment without them. So whoever has met a writer asks before it
    /// takes anything, until it gets through.
    fn share(&self) -> Result<(), (LockLevel, Error)> {
        let (now, taken) = (sys::clock(libc::CLOCK_MONOTONIC), locks::pending_taken());
        let (then, seen) = self.asked.get();
        let ask = if self.met_writer.get() {
            Ask::Before
        } else if taken != seen || now.saturating_sub(then) > MOMENT {
            Ask::After
        } else {
            Ask::Not
        };
        let shared = locks::share(self.fd(), Owner::Description, ask);
        self.met_writer.set(shared.is_err());
        shared.map_err(|e| (LockLevel::None, e))?;
        if ask != Ask::Not {
            self.asked.set((now, taken));
        }
        Ok(())
    }

    fn inherited(&self) -> bool {
        self.born_after != fork::forks()
    }

    fn locking(&self) -> &Option<Arc<Inode>> {
        self.posix.get_or_init(|| {
            if self.process_locks {
                return self.identity().map(Inode::of);
            }
            // A lock far behind the ones in use asks whether the kernel has description locks at all.
            const PROBE: u64 = 0x4000_0000 + 0x1000;
            match sys::get_lock(self.fd(), Owner::Description, PROBE, 1) {
                Err(libc::EINVAL) => self.identity().map(Inode::of),
                _ => None,
            }
        })
    }
}

fn write_error(errno: i32) -> Error {
    match errno {
        libc::ENOSPC | libc::EDQUOT => Code::Full.into(),
        _ => Code::IoerrWrite.into(),
    }
}

impl File for UnixFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        match sys::pread(self.fd(), buf, offset) {
            Ok(n) if n == buf.len() => Ok(true),
            Ok(n) => {
                buf[n..].fill(0);
                Ok(false)
            }
            Err(libc::ERANGE | libc::EIO | libc::ENXIO) => Err(Code::IoerrCorruptfs.into()),
            Err(_) => Err(Code::IoerrRead.into()),
        }
    }

    fn read_new<'b>(&self, buf: &'b mut [MaybeUninit<u8>], offset: u64) -> Result<(&'b mut [u8], bool)> {
        match sys::pread_new(self.fd(), buf, offset) {
            Ok(read) => Ok(read),
            Err(libc::ERANGE | libc::EIO | libc::ENXIO) => Err(Code::IoerrCorruptfs.into()),
            Err(_) => Err(Code::IoerrRead.into()),
        }
    }

    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        sys::pwrite(self.fd(), buf, offset).map_err(write_error)
    }

    fn write_parts(&self, parts: &[&[u8]], offset: u64) -> Result<()> {
        sys::pwritev(self.fd(), parts, offset).map_err(write_error)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let size = size.next_multiple_of(self.chunk.get().max(1));
        sys::ftruncate(self.fd(), size).map_err(|_| Code::IoerrTruncate.into())
    }

    fn sync(&self, kind: SyncKind) -> Result<()> {
        sys::fsync(self.fd(), kind == SyncKind::Full).map_err(|_| Code::IoerrFsync)?;
        if self.new_entry.get() {
            if let Some(path) = &self.path {
                sys::sync_dir_of(path)?;
            }
            self.new_entry.set(false);
        }
        Ok(())
    }

    fn start_writing(&self, offset: u64, len: u64) {
        sys::start_writing(self.fd(), offset, len);
    }

    fn size(&self) -> Result<u64> {
        sys::fstat(self.fd()).map(|st| st.st_size as u64).map_err(|_| Code::IoerrFstat.into())
    }

    fn lock(&self, level: LockLevel) -> Result<()> {
        let now = self.level.get();
        if now >= level {
            return Ok(());
        }
        if self.flags.nolock {
            self.level.set(level);
            return Ok(());
        }
        if self.inherited() {
            return Err(Code::IoerrLock.into());
        }
        let raised = match self.locking() {
            None if level == LockLevel::Shared => self.share(),
            None => locks::raise(self.fd(), Owner::Description, now, level),
            Some(inode) => inode.raise(self.fd(), now, level),
        };
        match raised {
            Ok(()) => {
                self.level.set(level);
                Ok(())
            }
            Err((reached, e)) => {
                self.level.set(reached);
                Err(e)
            }
        }
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        let now = self.level.get();
        if now <= level {
            return Ok(());
        }
        self.level.set(level);
        if self.flags.nolock || self.inherited() {
            return Ok(());
        }
        match self.locking() {
            None => locks::lower(self.fd(), Owner::Description, now, level),
            Some(inode) => inode.lower(self.fd(), now, level),
        }
    }

    fn check_reserved(&self) -> Result<bool> {
        if self.level.get() > LockLevel::Shared {
            return Ok(true);
        }
        if self.flags.nolock {
            return Ok(false);
        }
        match self.locking() {
            None => locks::reserved_elsewhere(self.fd(), Owner::Description),
            Some(inode) => inode.reserved(self.fd()),
        }
    }

    fn sector_size(&self) -> u32 {
        4096
    }

    fn characteristics(&self) -> Characteristics {
        Characteristics { powersafe_overwrite: true, ..Characteristics::default() }
    }

    fn is_read_only(&self) -> bool {
        self.flags.read_only
    }

    fn identity(&self) -> Option<FileId> {
        // An open file stays the one that it is.
        if self.id.get().is_none() {
            self.id.set(sys::fstat(self.fd()).ok().map(|st| id_of(&st)));
        }
        self.id.get()
    }

    #[allow(clippy::unnecessary_cast)]
    fn stamp(&self) -> Result<Option<FileStamp>> {
        if !*self.local.get_or_init(|| sys::is_local(self.fd())) {
            return Ok(None);
        }
        let st = sys::fstat(self.fd()).map_err(|_| Code::IoerrFstat)?;
        let time = |s, n| (s as i64).checked_mul(1_000_000_000).and_then(|t: i64| t.checked_add(n as i64));
        let times = time(st.st_mtime, st.st_mtime_nsec).zip(time(st.st_ctime, st.st_ctime_nsec));
        Ok(times.map(|(modified, changed)| FileStamp {
            id: id_of(&st),
            size: st.st_size as u64,
            modified,
            changed,
        }))
    }

    fn set_chunk(&self, bytes: u64) {
        self.chunk.set(bytes);
    }

    fn notify(&self, note: Note<'_>) -> Result<()> {
        match note {
            Note::SizeHint(size) if self.chunk.get() > 0 && self.size()? < size => self.truncate(size),
            _ => Ok(()),
        }
    }

    fn is_inherited(&self) -> bool {
        self.inherited()
    }

    fn has_moved(&self) -> Result<bool> {
        let Some(path) = &self.path else { return Ok(false) };
        let now = sys::stat(path).ok().map(|st| id_of(&st));
        Ok(now != self.identity())
    }

    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        let Some(path) = &self.path else { return Err(Code::Cantopen.into()) };
        if self.inherited() {
            return Err(Code::IoerrShmmap.into());
        }
        let mut shm = self.shm.borrow_mut();
        if shm.is_none() {
            *shm = Some(Shm::open(path, self.fd(), self.locking().is_some(), self.reads_shm)?);
        }
        shm.as_mut().expect("just opened").map(index, size, extend)
    }

    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        if self.inherited() {
            let unlocking = matches!(how, ShmLock::UnlockShared | ShmLock::UnlockExclusive);
            return if unlocking { Ok(()) } else { Err(Code::IoerrShmlock.into()) };
        }
        match &*self.shm.borrow() {
            Some(shm) => shm.lock(first, n, how),
            None => Err(Code::IoerrShmlock.into()),
        }
    }

    fn shm_barrier(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn shm_unmap(&self, delete: bool) -> Result<()> {
        if let Some(shm) = self.shm.borrow_mut().take() {
            shm.close(delete && !self.inherited());
        }
        Ok(())
    }

    fn shm_release(&self) -> Option<Arc<dyn ShmRelease>> {
        self.shm.borrow().as_ref().and_then(Shm::release)
    }

    fn shm_read_only(&self) -> bool {
        self.shm.borrow().as_ref().is_some_and(|s| s.is_read_only())
    }
}

impl Drop for UnixFile {
    fn drop(&mut self) {
        let _ = self.shm_unmap(false);
        let _ = self.unlock(LockLevel::None);
        if let (Some(fd), Some(Some(inode))) = (self.fd.take(), self.posix.get())
            && !self.inherited()
        {
            inode.close(fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UnixVfs;
    use super::*;

    /// Whoever opens a journal or log to create it syncs its name, also if another one has made it.
    #[test]
    fn the_first_sync_carries_the_name_whoever_made_the_file() {
        let path = std::env::temp_dir().join(format!("iolite-os-name-{}-wal", std::process::id()));
        std::fs::write(&path, "made by another").unwrap();
        let open = |flags| {
            let fd = sys::open(&path, sys::How { write: true, ..Default::default() }).unwrap();
            UnixFile::new(fd, Some(path.clone()), flags, &super::super::UnixVfs::new())
        };
        let log = open(OpenFlags::read_write(FileKind::Wal));
        assert!(log.new_entry.get());
        log.sync(SyncKind::Data).unwrap();
        assert!(!log.new_entry.get());
        let only_looked_at = open(OpenFlags { create: false, ..OpenFlags::read_write(FileKind::Wal) });
        assert!(!only_looked_at.new_entry.get());
        assert!(UnixVfs::new().open(Some(&path), OpenFlags::read_write(FileKind::Wal)).is_ok());
        std::fs::remove_file(&path).unwrap();
    }
}

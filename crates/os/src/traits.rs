//! What a storage engine asks of the world.
//!
//! What always holds: a read past the end of a file gives zeros and says so; a lock level only rises through
//! [`File::lock`] and only falls through [`File::unlock`]; a [`ShmRegion`] stays mapped as long as it is
//! held.

use iolite_base::{Code, Result};
use std::any::Any;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32};
use std::time::Duration;

/// What a file is for. A VFS may treat kinds apart; the simulator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FileKind {
    /// A database.
    MainDb,
    /// A database that lives as long as it is open.
    TempDb,
    /// The rollback journal of a database.
    Journal,
    /// Undo images and sorter runs: private, gone when closed.
    Temp,
    /// The list of journals of a transaction over several files.
    SuperJournal,
    /// A write-ahead log.
    Wal,
    /// What was derived from a database, beside it: may be lost at any time.
    Derived,
}

/// How to open a file.
#[derive(Clone, Copy, Debug)]
pub struct OpenFlags {
    /// What the file is for.
    pub kind: FileKind,
    /// Open for reading only.
    pub read_only: bool,
    /// Create the file if it does not exist.
    pub create: bool,
    /// Fail if the file exists.
    pub exclusive: bool,
    /// If it cannot be opened for writing, open it for reading.
    pub or_read_only: bool,
    /// Take no part in locking: for files that nobody else touches.
    pub nolock: bool,
    /// The caller has seen to it that no link is on the way; a VFS that knows more may refuse.
    pub nofollow: bool,
}

impl OpenFlags {
    /// Read and write, create if missing.
    pub fn read_write(kind: FileKind) -> OpenFlags {
        OpenFlags {
            kind,
            read_only: false,
            create: true,
            exclusive: false,
            or_read_only: false,
            nolock: false,
            nofollow: false,
        }
    }

    /// Read only, must exist.
    pub fn read_only(kind: FileKind) -> OpenFlags {
        OpenFlags { read_only: true, create: false, ..OpenFlags::read_write(kind) }
    }
}

/// What to ask of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Does it exist? An empty file counts as missing, as SQLite has it for journals and logs.
    Exists,
    /// May it be read and written?
    ReadWrite,
}

/// SQLite's five levels of the lock on a database file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockLevel {
    /// No lock.
    None,
    /// Reading; others may read.
    Shared,
    /// Going to write; others may still read.
    Reserved,
    /// Waiting for readers to leave; no new ones come.
    Pending,
    /// Writing, alone.
    Exclusive,
}

/// One of the eight locks beside the wal-index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShmLock {
    /// Take it with others.
    Shared,
    /// Take it alone.
    Exclusive,
    /// Give a shared one back.
    UnlockShared,
    /// Give an exclusive one back.
    UnlockExclusive,
}

/// How much a sync has to carry to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind {
    /// Content and the size, no further metadata.
    Data,
    /// Everything.
    Full,
}

/// What a device promises about writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Characteristics {
    /// A write cut short by a power loss leaves bytes outside its range alone.
    pub powersafe_overwrite: bool,
    /// Appended content reaches the disk before the size does.
    pub safe_append: bool,
    /// Writes reach the disk in the order in which they were made.
    pub sequential: bool,
    /// The file cannot change under us.
    pub immutable: bool,
    /// Nothing of the file outlives the process: there is nothing to recover, so journals are kept in memory, and no log
    /// is offered.
    pub volatile: bool,
}

/// What proves that two names are one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId {
    /// Device, or what stands for it.
    pub device: u64,
    /// Inode, or what stands for it.
    pub inode: u64,
}

/// What the operating system notes of a file: as long as it stays the same, nobody wrote to it. Times are in
/// nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStamp {
    /// Which file.
    pub id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was changed last.
    pub modified: i64,
    /// When anything about it was changed last.
    pub changed: i64,
}

/// What a database file is told of the work on it. Files of the system have no use for it; a VFS of the user's may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note<'a> {
    /// The file is about to become this large.
    SizeHint(u64),
    /// It is about to be synced, or would be if syncs were on; with the name of the transaction's super-journal.
    Sync(Option<&'a [u8]>),
    /// The transaction is committed, and the lock about to be given up.
    CommitPhaseTwo,
    /// All of it is about to be overwritten; it will have this size.
    Overwrite(u64),
    /// So many bytes of it may be mapped; negative: as many as the file thinks good.
    MmapSize(i64),
    /// A checkpoint begins to write.
    CheckpointStart,
    /// It has ended.
    CheckpointDone,
}

/// One 32 KiB (or other agreed size) piece of shared memory, seen as integers in native byte order.
#[derive(Clone)]
pub struct ShmRegion {
    ptr: NonNull<u8>,
    len: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory is only reachable through atomics, and `_owner` keeps it alive on any thread.
unsafe impl Send for ShmRegion {}

impl ShmRegion {
    /// A region over foreign memory.
    ///
    /// # Safety `ptr..ptr+len` must be readable and writable, aligned to 4 bytes, and live as long as
    /// `owner`; all other users must go through atomics or live in other processes.
    pub unsafe fn new(ptr: NonNull<u8>, len: usize, owner: Arc<dyn Any + Send + Sync>) -> ShmRegion {
        ShmRegion { ptr, len, _owner: owner }
    }

    /// The region in 32-bit words.
    #[inline]
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: promised by the maker of the region: mapped, aligned, atomics only.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr() as *const AtomicU32, self.len / 4) }
    }

    /// The region in 16-bit halves. The wal-index never reads a byte at both widths.
    #[inline]
    pub fn halves(&self) -> &[AtomicU16] {
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr() as *const AtomicU16, self.len / 2) }
    }

    /// Where the region lies: for callers in C.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
}

/// Time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 00:00 UTC.
    fn unix_millis(&self) -> i64;
    /// Nanoseconds since some fixed moment; never goes back.
    fn monotonic_nanos(&self) -> u64;
    /// Waits.
    fn sleep(&self, time: Duration);
    /// Whether threads may also wait until another one wakes them; otherwise only [`Clock::sleep`] lets others run.
    fn wakes(&self) -> bool {
        true
    }
    /// The local time zone's offset from UTC, in seconds, at a moment given in seconds since 1970.
    fn local_offset(&self, _unix_seconds: i64) -> i64 {
        0
    }
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// Fills `out` with random bytes.
    fn fill(&self, out: &mut [u8]);
}

/// A place where files live.
pub trait Vfs: Send + Sync {
    /// The name under which it is registered.
    fn name(&self) -> &str;
    /// Opens a file; without a path, a private one that vanishes when closed.
    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>>;
    /// Removes a file; with `sync_dir`, the removal is on disk afterwards. `SQLITE_IOERR_DELETE_NOENT` if
    /// there is none.
    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()>;
    /// Asks about a path.
    fn access(&self, path: &Path, what: Access) -> Result<bool>;
    /// The absolute name behind a path, links resolved.
    fn full_path(&self, path: &Path) -> Result<PathBuf>;
    /// Whether a symbolic link is on the way to a file, or the file is one.
    fn is_behind_link(&self, _path: &Path) -> Result<bool> {
        Ok(false)
    }
    /// The same place for one database that was named by a URI with these parameters; `None`: they mean nothing here.
    fn for_database(&self, _parameters: &[(Vec<u8>, Vec<u8>)]) -> Option<Arc<dyn Vfs>> {
        None
    }
    /// Gives a file the name of another one, which it replaces.
    fn rename(&self, _from: &Path, _to: &Path) -> Result<()> {
        Err(Code::Ioerr.into())
    }
    /// Names the time since the operating system began to run, if it has a name: nothing that was written
    /// since then was lost to a power failure.
    fn boot(&self) -> Option<[u8; 16]> {
        None
    }
    /// Whether threads that the library starts may open files here by name: not where calls are counted or put into an
    /// order.
    fn threads(&self) -> bool {
        false
    }
    /// The clock.
    fn clock(&self) -> &dyn Clock;
    /// The source of randomness.
    fn entropy(&self) -> &dyn Entropy;
}

/// Gives back a lock of a handle's on its shared memory, on any thread, also once the handle is closed. Nobody may use
/// the lock meanwhile.
pub trait ShmRelease: Send + Sync {
    /// Gives lock number `lock` back.
    fn release(&self, lock: u8);
    /// Whether the lock is this process's own: not after `fork`, in the child.
    fn is_own(&self) -> bool;
}

/// An open file. Dropping it closes it and gives up its locks.
pub trait File: Send {
    /// Fills `buf` from `offset`. `false`: the file ended before; the rest of `buf` is zero.
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool>;
    /// As [`File::read`], into memory that holds nothing yet; answers it as bytes.
    fn read_new<'b>(&self, buf: &'b mut [MaybeUninit<u8>], offset: u64) -> Result<(&'b mut [u8], bool)> {
        let bytes = iolite_base::bytes::zero_fill(buf);
        let whole = self.read(bytes, offset)?;
        Ok((bytes, whole))
    }
    /// Writes all of `buf` at `offset`.
    fn write(&self, buf: &[u8], offset: u64) -> Result<()>;
    /// Writes the parts one behind the other from `offset` on.
    fn write_parts(&self, parts: &[&[u8]], offset: u64) -> Result<()> {
        let mut all = Vec::new();
        iolite_base::alloc::reserve(&mut all, parts.iter().map(|p| p.len()).sum())?;
        parts.iter().for_each(|p| all.extend_from_slice(p));
        self.write(&all, offset)
    }
    /// Cuts (or extends) the file to `size` bytes.
    fn truncate(&self, size: u64) -> Result<()>;
    /// Carries written content to the disk. The first sync of a file that was opened with [`OpenFlags::create`] (but a
    /// database) also makes its directory entry durable, whoever made it.
    fn sync(&self, kind: SyncKind) -> Result<()>;
    /// Says that a range will be synced before long: the system may begin to write it meanwhile. A hint, no promise.
    fn start_writing(&self, _offset: u64, _len: u64) {}
    /// The size in bytes.
    fn size(&self) -> Result<u64>;

    /// Raises the lock. `SQLITE_BUSY` if another holder is in the way; a failed step to `Exclusive` may leave
    /// `Pending`.
    fn lock(&self, level: LockLevel) -> Result<()>;
    /// Lowers the lock to `Shared` or `None`.
    fn unlock(&self, level: LockLevel) -> Result<()>;
    /// Whether somebody (this handle included) holds `Reserved` or more.
    fn check_reserved(&self) -> Result<bool>;

    /// The unit in which the device may tear writes, in bytes.
    fn sector_size(&self) -> u32;
    /// What the device promises.
    fn characteristics(&self) -> Characteristics;
    /// Whether the file could only be opened for reading.
    fn is_read_only(&self) -> bool;
    /// What proves identity, where something does.
    fn identity(&self) -> Option<FileId>;
    /// What tells later whether somebody wrote to the file, where something does. Nothing does on file systems that other
    /// machines may write to: what they tell of a file may be old.
    fn stamp(&self) -> Result<Option<FileStamp>> {
        Ok(None)
    }
    /// Whether the handle was opened by a process from which this one was forked: it must not be used any more, only dropped.
    fn is_inherited(&self) -> bool {
        false
    }
    /// Whether the name no longer leads to this file.
    fn has_moved(&self) -> Result<bool>;

    /// Region `index` of the shared memory beside this file. `None` if it does not exist and `extend` is
    /// false. Only while lock 0 is held alone, by whichever handle, may it be made to exist. `SQLITE_READONLY_CANTINIT` or `SQLITE_READONLY` (with the memory mapped for reading by a later
    /// call) as in SQLite.
    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>>;
    /// Takes or gives back the locks `first..first + n` of the shared memory. `SQLITE_BUSY` if they are not
    /// free.
    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()>;
    /// Orders memory accesses before against those after.
    fn shm_barrier(&self);
    /// Lets go of the shared memory; with `delete`, its file too.
    fn shm_unmap(&self, delete: bool) -> Result<()>;
    /// What gives back a lock of this handle's on the shared memory from another thread, while this one does not
    /// use it. `None`: nothing can. Where something can, [`File::shm_lock`] also turns a shared lock of
    /// this handle into an exclusive one and back.
    fn shm_release(&self) -> Option<Arc<dyn ShmRelease>> {
        None
    }
    /// Whether the shared memory can only be read.
    fn shm_read_only(&self) -> bool {
        false
    }
    /// Whether shared memory is offered at all.
    fn has_shm(&self) -> bool {
        true
    }

    /// Tells a database file of the work on it; an error ends that work.
    fn notify(&self, _note: Note<'_>) -> Result<()> {
        Ok(())
    }
    /// Answers a PRAGMA in place of the engine; `None`: it does not. An empty answer is no row.
    fn pragma(&self, _name: &[u8], _value: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    /// From now on the file grows in steps of so many bytes; 0: as it must.
    fn set_chunk(&self, _bytes: u64) {}
    /// Whether the log stays when the last connection closes, if the file has a say in it.
    fn keeps_log(&self) -> Option<bool> {
        None
    }
    /// Whether each page is to be read and written by a call of its own: a VFS of the user's may change pages on the way.
    fn page_by_page(&self) -> bool {
        false
    }
    /// The object of another language behind this file.
    fn foreign(&self) -> Option<NonNull<std::ffi::c_void>> {
        None
    }
}

//! VFSes that programs register, as the engine sees them: each call of the engine's becomes one of `sqlite3_vfs` or
//! `sqlite3_io_methods`.
//!
//! What always holds: a name given to `xOpen` stays where it is until the file is closed, with its URI parameters and the
//! names of journal and log behind it (`filename`); a file has no identity that would be proved, so that each
//! connection has caches and locks of its own; methods that the version of a structure does not have, or that are NULL,
//! are not called. What a callback answers is the code of the engine's error.

use crate::filename::NameBlock;
use crate::vfs_file::{CFile, CVfs, Methods, OK_SYMLINK};
use iolite::engine::{Code, Error, Result};
use iolite_os::*;
use std::cell::Cell;
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The error that a callback's answer means.
pub(crate) fn error_of(rc: c_int) -> Error {
    let code = Code::from_number(rc as u32).or_else(|| Code::from_number(rc as u32 & 0xff));
    code.filter(|c| c.number() != 0).unwrap_or(Code::Error).into()
}

fn done(rc: c_int) -> Result<()> {
    if rc == crate::OK { Ok(()) } else { Err(error_of(rc)) }
}

/// See the module's head.
pub(crate) struct Foreign {
    raw: *mut CVfs,
    name: String,
    /// Parameters of the URI by which a database was named.
    parameters: Vec<(Vec<u8>, Vec<u8>)>,
    /// The names of that database, once it was opened.
    names: Mutex<Option<Arc<NameBlock>>>,
}

// SAFETY: who registers a VFS promises that its methods may be called on any thread, and keeps it where it is.
unsafe impl Send for Foreign {}
// SAFETY: as above; what changes is behind a lock.
unsafe impl Sync for Foreign {}

/// A path as the methods take it.
fn c_name(path: &Path) -> Result<std::ffi::CString> {
    std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| Code::Cantopen.into())
}

impl Foreign {
    /// The VFS at `raw`, under the name it is registered by.
    pub fn new(raw: *mut CVfs, name: String) -> Foreign {
        Foreign { raw, name, parameters: Vec::new(), names: Mutex::new(None) }
    }

    fn vfs(&self) -> &CVfs {
        // SAFETY: it stays where it is while it is registered or in use.
        unsafe { &*self.raw }
    }

    /// The full path, and whether a link is on the way.
    fn resolved(&self, path: &Path) -> Result<(PathBuf, bool)> {
        let Some(full_path) = self.vfs().full_path else { return Ok((path.to_owned(), false)) };
        let name = c_name(path)?;
        let longest = self.vfs().longest_path.max(0) as usize;
        let mut out = vec![0u8; longest + 1];
        // SAFETY: `out` has room for the longest path and a zero byte, as the method is told.
        let rc = unsafe { full_path(self.raw, name.as_ptr(), longest as c_int + 1, out.as_mut_ptr().cast()) };
        if rc != crate::OK && rc != OK_SYMLINK {
            return Err(error_of(rc));
        }
        let len = out.iter().position(|b| *b == 0).ok_or(Code::CantopenFullpath)?;
        out.truncate(len);
        Ok((PathBuf::from(OsStr::from_bytes(&out)), rc == OK_SYMLINK))
    }

    /// Where the name of a file to be opened lies: that of a database is remembered for its journal and log.
    fn name_of(&self, path: &Path, kind: FileKind) -> (Arc<NameBlock>, *const c_char) {
        let path = path.as_os_str().as_bytes();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if kind == FileKind::MainDb {
            let block = Arc::new(NameBlock::new(path, &self.parameters));
            *names = Some(block.clone());
            let name = block.database();
            return (block, name);
        }
        if let Some(block) = &*names
            && let Some(name) = block.named(path)
        {
            return (block.clone(), name);
        }
        let block = Arc::new(NameBlock::new(path, &[]));
        let name = block.database();
        (block, name)
    }
}

/// What a file is for, as `xOpen` is told.
fn kind_flag(kind: FileKind) -> c_int {
    match kind {
        FileKind::MainDb => 0x100,
        FileKind::TempDb => 0x200,
        FileKind::Journal => 0x800,
        FileKind::Temp => 0x1000,
        FileKind::SuperJournal => 0x4000,
        FileKind::Wal => 0x80000,
        FileKind::Derived => 0x2000,
    }
}

impl Vfs for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        const READ_ONLY: c_int = 1;
        const READ_WRITE: c_int = 2;
        const CREATE: c_int = 4;
        const DELETE_ON_CLOSE: c_int = 8;
        const EXCLUSIVE: c_int = 0x10;
        const URI: c_int = 0x40;
        const NOFOLLOW: c_int = 0x0100_0000;
        let open = self.vfs().open.ok_or(Code::Cantopen)?;
        let mut how = kind_flag(flags.kind);
        how |= if flags.read_only { READ_ONLY } else { READ_WRITE };
        for (on, flag) in [
            (flags.create && !flags.read_only, CREATE),
            (flags.exclusive, EXCLUSIVE),
            (flags.nofollow, NOFOLLOW),
            // Parameters stand behind the name.
            (flags.kind == FileKind::MainDb && !self.parameters.is_empty(), URI),
            (path.is_none(), DELETE_ON_CLOSE | EXCLUSIVE | CREATE),
        ] {
            how |= if on { flag } else { 0 };
        }
        let named = path.map(|p| self.name_of(p, flags.kind));
        let name = named.as_ref().map_or(null(), |n| n.1);
        // The method's own structure, all zero at first, aligned for whatever is in it.
        let words = (self.vfs().file_size.max(size_of::<usize>() as c_int) as usize).div_ceil(16);
        let mut memory = vec![0u128; words];
        let raw = memory.as_mut_ptr().cast::<CFile>();
        let mut got = how;
        // SAFETY: the structure has the size that the VFS asks for; the name stays (`ForeignFile::_names`).
        let rc = unsafe { open(self.raw, name, raw, how, &mut got) };
        // SAFETY: the structure begins with the pointer to its methods, which is NULL or valid from now on.
        let methods = unsafe { (*raw).methods };
        if methods.is_null() {
            return Err(if rc == crate::OK { Code::Cantopen.into() } else { error_of(rc) });
        }
        let is_database = flags.kind == FileKind::MainDb;
        let file = ForeignFile {
            raw,
            _memory: memory,
            _names: named.map(|n| n.0),
            read_only: got & READ_ONLY != 0 || flags.read_only,
            nolock: flags.nolock || !is_database,
            shm_read_only: Cell::new(false),
            fetches: Cell::new(false),
        };
        // Dropped on an error, it closes the file, as it must be once its methods are there.
        done(rc)?;
        if is_database {
            crate::filename::opened(name, raw);
        }
        Ok(Box::new(file))
    }

    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        let delete = self.vfs().delete.ok_or(Code::IoerrDelete)?;
        let (_names, name) = self.name_of(path, FileKind::Journal);
        // SAFETY: a name that ends with a zero byte.
        done(unsafe { delete(self.raw, name, sync_dir as c_int) })
    }

    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        let access = self.vfs().access.ok_or(Code::IoerrAccess)?;
        let (_names, name) = self.name_of(path, FileKind::Journal);
        let mut there = 0;
        // SAFETY: a name that ends with a zero byte, a place for the answer.
        done(unsafe { access(self.raw, name, (what == Access::ReadWrite) as c_int, &mut there) })?;
        Ok(there != 0)
    }

    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        Ok(self.resolved(path)?.0)
    }

    fn is_behind_link(&self, path: &Path) -> Result<bool> {
        Ok(self.resolved(path)?.1)
    }

    fn for_database(&self, parameters: &[(Vec<u8>, Vec<u8>)]) -> Option<Arc<dyn Vfs>> {
        let own = Foreign { parameters: parameters.to_vec(), ..Foreign::new(self.raw, self.name.clone()) };
        Some(Arc::new(own))
    }

    fn clock(&self) -> &dyn Clock {
        self
    }

    fn entropy(&self) -> &dyn Entropy {
        self
    }
}

impl Clock for Foreign {
    fn unix_millis(&self) -> i64 {
        let vfs = self.vfs();
        let julian = match (vfs.current_time_ms.filter(|_| vfs.version >= 2), vfs.current_time) {
            (Some(now), _) => {
                let mut ms = 0;
                // SAFETY: a place for the answer.
                unsafe { now(self.raw, &mut ms) };
                ms
            }
            (None, Some(now)) => {
                let mut days = 0.0;
                // SAFETY: as above.
                unsafe { now(self.raw, &mut days) };
                (days * 86_400_000.0) as i64
            }
            (None, None) => return default_vfs().clock().unix_millis(),
        };
        julian - 210_866_760_000_000
    }

    fn monotonic_nanos(&self) -> u64 {
        default_vfs().clock().monotonic_nanos()
    }

    fn sleep(&self, time: Duration) {
        match self.vfs().sleep {
            // SAFETY: a plain number.
            Some(sleep) => drop(unsafe { sleep(self.raw, time.as_micros().min(i32::MAX as u128) as c_int) }),
            None => default_vfs().clock().sleep(time),
        }
    }

    fn wakes(&self) -> bool {
        // Whoever waits does so by `xSleep`, which a program may want to see.
        false
    }

    fn local_offset(&self, unix_seconds: i64) -> i64 {
        default_vfs().clock().local_offset(unix_seconds)
    }
}

impl Entropy for Foreign {
    fn fill(&self, out: &mut [u8]) {
        match self.vfs().randomness {
            // SAFETY: as many bytes as are there.
            Some(fill) => drop(unsafe { fill(self.raw, out.len() as c_int, out.as_mut_ptr().cast()) }),
            None => default_vfs().entropy().fill(out),
        }
    }
}

/// A file of such a VFS.
struct ForeignFile {
    raw: *mut CFile,
    _memory: Vec<u128>,
    _names: Option<Arc<NameBlock>>,
    read_only: bool,
    /// Locks are not for it: a file other than a database, or one that is opened without.
    nolock: bool,
    shm_read_only: Cell<bool>,
    /// Pages are looked for in what the VFS has mapped.
    fetches: Cell<bool>,
}

// SAFETY: one thread at a time uses a file, as the methods are promised in turn.
unsafe impl Send for ForeignFile {}

const SHM_UNLOCK: c_int = 1;
const SHM_LOCK: c_int = 2;
const SHM_SHARED: c_int = 4;
const SHM_EXCLUSIVE: c_int = 8;

impl ForeignFile {
    fn methods(&self) -> &Methods {
        // SAFETY: valid from opening to closing.
        unsafe { &*(*self.raw).methods }
    }

    /// Calls `xFileControl`. `None`: the file does not know the operation.
    fn control(&self, op: c_int, arg: *mut c_void) -> Option<Result<()>> {
        let control = self.methods().control?;
        // SAFETY: `arg` is what the operation takes.
        match unsafe { control(self.raw, op, arg) } {
            crate::NOTFOUND => None,
            rc => Some(done(rc)),
        }
    }
}

impl ForeignFile {
    /// Copies a part of the file from where the VFS has it mapped, if it does.
    fn fetch(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let (Some(fetch), Some(unfetch)) = (self.methods().fetch(), self.methods().unfetch()) else {
            return Ok(false);
        };
        let (n, at) = span(buf.len(), offset)?;
        let mut p: *mut c_void = null_mut();
        // SAFETY: plain numbers, a place for the answer; what is fetched has `n` bytes until it is given back.
        unsafe {
            done(fetch(self.raw, at, n, &mut p))?;
            if p.is_null() {
                return Ok(false);
            }
            std::ptr::copy_nonoverlapping(p.cast::<u8>(), buf.as_mut_ptr(), buf.len());
            done(unfetch(self.raw, at, p))?;
        }
        Ok(true)
    }
}

/// The place of `len` bytes.
fn span(len: usize, offset: u64) -> Result<(c_int, i64)> {
    match (c_int::try_from(len), i64::try_from(offset)) {
        (Ok(n), Ok(at)) => Ok((n, at)),
        _ => Err(Code::Ioerr.into()),
    }
}

impl ForeignFile {
    /// Whether all the bytes were there.
    fn read_once(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let read = self.methods().read.ok_or(Code::IoerrRead)?;
        let (n, at) = span(buf.len(), offset)?;
        // SAFETY: room for as many bytes as are asked for.
        let rc = unsafe { read(self.raw, buf.as_mut_ptr().cast(), n, at) };
        if rc == Code::IoerrShortRead.number() as c_int {
            return Ok(false);
        }
        done(rc).map(|()| true)
    }
}

impl File for ForeignFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let whole = self.read_once(buf, offset)?;
        // Who lacks bytes that the file has, by its own word, must not be believed: page 1 that is taken to be missing is
        // written anew, over all there was. Another process may have written in between, so it is asked twice.
        if !whole
            && offset.checked_add(buf.len() as u64).is_some_and(|end| self.size().is_ok_and(|s| s >= end))
        {
            return if self.read_once(buf, offset)? { Ok(true) } else { Err(Code::IoerrShortRead.into()) };
        }
        Ok(whole)
    }

    fn read_new<'b>(&self, buf: &'b mut [MaybeUninit<u8>], offset: u64) -> Result<(&'b mut [u8], bool)> {
        let bytes = iolite_base::bytes::zero_fill(buf);
        if self.fetches.get() && self.fetch(bytes, offset)? {
            return Ok((bytes, true));
        }
        let whole = self.read(bytes, offset)?;
        Ok((bytes, whole))
    }

    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        let write = self.methods().write.ok_or(Code::IoerrWrite)?;
        let (n, at) = span(buf.len(), offset)?;
        // SAFETY: as many bytes as are there.
        done(unsafe { write(self.raw, buf.as_ptr().cast(), n, at) })
    }

    fn write_parts(&self, parts: &[&[u8]], mut offset: u64) -> Result<()> {
        for part in parts {
            self.write(part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let truncate = self.methods().truncate.ok_or(Code::IoerrTruncate)?;
        // SAFETY: plain numbers.
        done(unsafe { truncate(self.raw, size as i64) })
    }

    fn sync(&self, _kind: SyncKind) -> Result<()> {
        const NORMAL: c_int = 2;
        // Never "data only": the size of a database belongs to its content.
        match self.methods().sync {
            // SAFETY: plain numbers.
            Some(sync) => done(unsafe { sync(self.raw, NORMAL) }),
            None => Ok(()),
        }
    }

    fn size(&self) -> Result<u64> {
        let size = self.methods().size.ok_or(Code::IoerrFstat)?;
        let mut bytes = 0;
        // SAFETY: a place for the answer.
        done(unsafe { size(self.raw, &mut bytes) })?;
        u64::try_from(bytes).map_err(|_| Code::IoerrFstat.into())
    }

    fn lock(&self, level: LockLevel) -> Result<()> {
        match self.methods().lock.filter(|_| !self.nolock) {
            // SAFETY: plain numbers.
            Some(lock) => done(unsafe { lock(self.raw, level as c_int) }),
            None => Ok(()),
        }
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        match self.methods().unlock.filter(|_| !self.nolock) {
            // SAFETY: plain numbers.
            Some(unlock) => done(unsafe { unlock(self.raw, level as c_int) }),
            None => Ok(()),
        }
    }

    fn check_reserved(&self) -> Result<bool> {
        let Some(check) = self.methods().check_reserved.filter(|_| !self.nolock) else { return Ok(false) };
        let mut held = 0;
        // SAFETY: a place for the answer.
        done(unsafe { check(self.raw, &mut held) })?;
        Ok(held != 0)
    }

    fn sector_size(&self) -> u32 {
        // SAFETY: no arguments.
        self.methods().sector_size.map_or(4096, |f| unsafe { f(self.raw) }.max(32) as u32)
    }

    fn characteristics(&self) -> Characteristics {
        const SAFE_APPEND: c_int = 0x200;
        const SEQUENTIAL: c_int = 0x400;
        const POWERSAFE_OVERWRITE: c_int = 0x1000;
        const IMMUTABLE: c_int = 0x2000;
        // SAFETY: no arguments.
        let bits = self.methods().characteristics.map_or(0, |f| unsafe { f(self.raw) });
        Characteristics {
            powersafe_overwrite: bits & POWERSAFE_OVERWRITE != 0,
            safe_append: bits & SAFE_APPEND != 0,
            sequential: bits & SEQUENTIAL != 0,
            immutable: bits & IMMUTABLE != 0,
            volatile: false,
        }
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn identity(&self) -> Option<FileId> {
        None
    }

    fn has_moved(&self) -> Result<bool> {
        const HAS_MOVED: c_int = 20;
        let mut moved = 0;
        self.control(HAS_MOVED, (&raw mut moved).cast()).unwrap_or(Ok(()))?;
        Ok(moved != 0)
    }

    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        let map = self.methods().shm_map().ok_or(Code::IoerrShmmap)?;
        let mut p: *mut c_void = null_mut();
        // SAFETY: plain numbers and a place for the answer.
        let rc = unsafe { map(self.raw, index as c_int, size as c_int, extend as c_int, &mut p) };
        self.shm_read_only.set(rc == Code::Readonly.number() as c_int);
        if rc != crate::OK && !self.shm_read_only.get() {
            return Err(error_of(rc));
        }
        let Some(p) = NonNull::new(p.cast::<u8>()) else { return Ok(None) };
        if !(p.as_ptr() as usize).is_multiple_of(4) {
            return Err(Code::IoerrShmmap.into());
        }
        // SAFETY: the method maps `size` bytes that stay until `xShmUnmap`, behind which the pager looks at none of them.
        Ok(Some(unsafe { ShmRegion::new(p, size, Arc::new(())) }))
    }

    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        let lock = self.methods().shm_lock().ok_or(Code::IoerrShmlock)?;
        let flags = match how {
            ShmLock::Shared => SHM_LOCK | SHM_SHARED,
            ShmLock::Exclusive => SHM_LOCK | SHM_EXCLUSIVE,
            ShmLock::UnlockShared => SHM_UNLOCK | SHM_SHARED,
            ShmLock::UnlockExclusive => SHM_UNLOCK | SHM_EXCLUSIVE,
        };
        // SAFETY: plain numbers.
        done(unsafe { lock(self.raw, first as c_int, n as c_int, flags) })
    }

    fn shm_barrier(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        if let Some(barrier) = self.methods().shm_barrier() {
            // SAFETY: no arguments.
            unsafe { barrier(self.raw) }
        }
    }

    fn shm_unmap(&self, delete: bool) -> Result<()> {
        match self.methods().shm_unmap() {
            // SAFETY: plain numbers.
            Some(unmap) => done(unsafe { unmap(self.raw, delete as c_int) }),
            None => Ok(()),
        }
    }

    fn shm_read_only(&self) -> bool {
        self.shm_read_only.get()
    }

    fn has_shm(&self) -> bool {
        self.methods().shm_map().is_some() && self.methods().shm_lock().is_some()
    }

    fn notify(&self, note: Note<'_>) -> Result<()> {
        let mut bytes: i64;
        let text;
        let (op, arg): (c_int, *mut c_void) = match note {
            Note::SizeHint(n) => {
                bytes = n as i64;
                (5, (&raw mut bytes).cast())
            }
            Note::Overwrite(n) => {
                bytes = n as i64;
                (11, (&raw mut bytes).cast())
            }
            Note::Sync(Some(name)) => {
                text = std::ffi::CString::new(name).map_err(|_| Code::Internal)?;
                (21, text.as_ptr() as *mut c_void)
            }
            Note::Sync(None) => (21, null_mut()),
            Note::CommitPhaseTwo => (22, null_mut()),
            Note::MmapSize(n) => {
                self.fetches.set(n > 0);
                bytes = n;
                (18, (&raw mut bytes).cast())
            }
            Note::CheckpointStart => (39, null_mut()),
            Note::CheckpointDone => (37, null_mut()),
        };
        let said = self.control(op, arg).unwrap_or(Ok(()));
        match note {
            // Hints: what is said to them does not matter.
            Note::Sync(_) | Note::CommitPhaseTwo => said,
            _ => Ok(()),
        }
    }

    fn pragma(&self, name: &[u8], value: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        const PRAGMA: c_int = 14;
        let c = |b: &[u8]| std::ffi::CString::new(b).map_err(|_| Error::from(Code::Error));
        let (name, value) = (c(name)?, value.map(c).transpose()?);
        let mut texts: [*mut c_char; 4] = [null_mut(); 4];
        texts[1] = name.as_ptr().cast_mut();
        texts[2] = value.as_ref().map_or(null_mut(), |v| v.as_ptr().cast_mut());
        let said = self.control(PRAGMA, texts.as_mut_ptr().cast());
        // SAFETY: NULL, or a text that the method has made by `sqlite3_mprintf`, which is ours now.
        let answer = unsafe {
            let answer = crate::connection::bytes(texts[0]).to_vec();
            crate::memory::sqlite3_free(texts[0].cast());
            answer
        };
        match said {
            None => Ok(None),
            Some(Ok(())) => Ok(Some(answer)),
            Some(Err(e)) if answer.is_empty() => Err(e),
            Some(Err(e)) => Err(Error::new(e.code(), iolite_base::raw_text::encode(&answer).into_owned())),
        }
    }

    fn keeps_log(&self) -> Option<bool> {
        const PERSIST_WAL: c_int = 10;
        let mut on: c_int = -1;
        self.control(PERSIST_WAL, (&raw mut on).cast())?.ok()?;
        Some(on == 1)
    }

    fn page_by_page(&self) -> bool {
        true
    }

    fn foreign(&self) -> Option<NonNull<c_void>> {
        NonNull::new(self.raw.cast())
    }
}

impl Drop for ForeignFile {
    fn drop(&mut self) {
        crate::filename::closed(self.raw);
        if let Some(close) = self.methods().close {
            // SAFETY: open until now, and nobody's afterwards.
            unsafe { close(self.raw) };
        }
    }
}

//! A VFS that writes down all that reaches the disk, and fails on demand.
//!
//! Content, locks and shared memory are those of [`MemoryVfs`]; this layer records every change as an
//! [`Event`], in order, and can make the n-th call of a kind fail, or let a sync go by unrecorded, as a disk
//! does that lies. What may remain of the events after a power loss is the business of the module `image`.
//!
//! What always holds: an event is recorded after it took effect, none is recorded for a call that failed (but
//! a write that fails for want of room leaves its first half, as a real one may). Private files have no name
//! and are not recorded: nobody opens them after a crash. Time stands still but for those who sleep; random
//! numbers come from the seed.

use crate::rng::Rng;
use iolite_base::{Code, Result};
use iolite_os::*;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What happened to the disk, or to the script that drives it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A file came into being.
    Create {
        /// Its name.
        path: PathBuf,
        /// Its number, never used for another file.
        file: u32,
        /// What it is for.
        kind: FileKind,
    },
    /// A name was removed.
    Delete {
        /// The name.
        path: PathBuf,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: u32,
        /// Where.
        offset: u64,
        /// What.
        data: Arc<[u8]>,
    },
    /// The size was set.
    Truncate {
        /// The file.
        file: u32,
        /// The new size.
        size: u64,
    },
    /// A file's content and size were carried to the disk.
    Sync {
        /// The file.
        file: u32,
    },
    /// The names were carried to the disk. There is one directory.
    SyncDir,
    /// A step of the script began.
    Begin(usize),
    /// A step of the script was acknowledged.
    Ack(usize),
}

/// Calls that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Op {
    Open,
    Delete,
    Access,
    Read,
    Write,
    Truncate,
    Sync,
    Size,
    Lock,
    CheckReserved,
    ShmMap,
    ShmLock,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 12] = [
        Op::Open,
        Op::Delete,
        Op::Access,
        Op::Read,
        Op::Write,
        Op::Truncate,
        Op::Sync,
        Op::Size,
        Op::Lock,
        Op::CheckReserved,
        Op::ShmMap,
        Op::ShmLock,
    ];

    /// With which code it fails.
    pub fn code(self) -> Code {
        match self {
            Op::Open => Code::Cantopen,
            Op::Delete => Code::IoerrDelete,
            Op::Access => Code::IoerrAccess,
            Op::Read => Code::IoerrRead,
            Op::Write => Code::IoerrWrite,
            Op::Truncate => Code::IoerrTruncate,
            Op::Sync => Code::IoerrFsync,
            Op::Size => Code::IoerrFstat,
            Op::Lock => Code::IoerrLock,
            Op::CheckReserved => Code::IoerrCheckreservedlock,
            Op::ShmMap => Code::IoerrShmmap,
            Op::ShmLock => Code::IoerrShmlock,
        }
    }
}

/// A planned failure.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of call.
    pub op: Op,
    /// Which call from the arming on, counted from 0.
    pub nth: u64,
    /// All later ones fail as well.
    pub persistent: bool,
    /// With which code.
    pub code: Code,
}

/// Syncs that are not carried out although they report success.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    /// `Some`: syncs of files of this kind. `None`: of the directory.
    pub of: Option<FileKind>,
    /// Which one, counted from 0; `None`: all.
    pub nth: Option<u64>,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    files: HashMap<u64, u32>,
    fault: Option<Fault>,
    calls: u64,
    hits: u64,
    lie: Option<Lie>,
    lies: u64,
    op_counts: HashMap<Op, u64>,
}

impl Log {
    fn number(&mut self, inode: u64) -> u32 {
        let next = self.files.len() as u32;
        *self.files.entry(inode).or_insert(next)
    }

    /// Whether this sync is a lie.
    fn lies(&mut self, of: Option<FileKind>) -> bool {
        let Some(l) = self.lie else { return false };
        if l.of != of {
            return false;
        }
        let n = self.lies;
        self.lies += 1;
        l.nth.is_none_or(|k| k == n)
    }
}

struct Shared {
    /// Processes that have died: nothing of theirs reaches the disk any more.
    dead: Mutex<Vec<u32>>,
    log: Mutex<Log>,
    nanos: AtomicU64,
    random: Mutex<Rng>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_dead(&self, process: u32) -> bool {
        process != 0 && self.dead.lock().unwrap_or_else(PoisonError::into_inner).contains(&process)
    }

    fn may(&self, op: Op, process: u32) -> Result<()> {
        crate::baton::hand_over();
        if self.is_dead(process) {
            return Err(Code::Ioerr.into());
        }
        let mut log = self.log();
        *log.op_counts.entry(op).or_default() += 1;
        let Some(f) = log.fault else { return Ok(()) };
        if f.op != op {
            return Ok(());
        }
        let n = log.calls;
        log.calls += 1;
        if n == f.nth || (f.persistent && n > f.nth) {
            log.hits += 1;
            return Err(f.code.into());
        }
        Ok(())
    }
}

impl Clock for Shared {
    fn unix_millis(&self) -> i64 {
        1_700_000_000_000 + (self.nanos.load(Relaxed) / 1_000_000) as i64
    }

    fn monotonic_nanos(&self) -> u64 {
        self.nanos.load(Relaxed)
    }

    fn sleep(&self, time: Duration) {
        crate::baton::wait_for_others();
        self.nanos.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    fn wakes(&self) -> bool {
        false
    }
}

impl Entropy for Shared {
    fn fill(&self, out: &mut [u8]) {
        let mut rng = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        for b in out {
            *b = rng.next() as u8;
        }
    }
}

/// See the module's head.
pub struct Disk {
    inner: MemoryVfs,
    shared: Arc<Shared>,
}

impl Disk {
    /// An empty disk.
    pub fn new(seed: u64) -> Disk {
        let shared = Shared {
            dead: Mutex::default(),
            log: Mutex::default(),
            nanos: AtomicU64::new(0),
            random: Mutex::new(Rng::new(seed)),
        };
        Disk { inner: MemoryVfs::new(), shared: Arc::new(shared) }
    }

    /// A disk on which these files lie, durably. The events that say so are the first ones.
    pub fn holding(seed: u64, files: &crate::image::Files) -> Disk {
        let disk = Disk::new(seed);
        for (path, data) in files {
            let kind = kind_of(path);
            let flags = OpenFlags { nolock: true, ..OpenFlags::read_write(kind) };
            let f = Vfs::open(&disk, Some(path), flags).expect("no fault is planned");
            if !data.is_empty() {
                f.write(data, 0).expect("no fault is planned");
            }
            f.sync(SyncKind::Full).expect("no fault is planned");
        }
        disk.shared.log().events.push(Event::SyncDir);
        disk
    }

    /// One of several processes dies: its locks are gone, and nothing that its handles are told reaches the disk.
    pub fn kill(&self, process: u32) {
        self.shared.dead.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        self.inner.end_process(process);
    }

    /// Writes down what the script does.
    pub fn mark(&self, e: Event) {
        self.shared.log().events.push(e);
    }

    /// A copy of all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.shared.log().events.clone()
    }

    /// The files that exist.
    pub fn names(&self) -> Vec<PathBuf> {
        let mut model = crate::image::Model::new();
        self.shared.log().events.iter().for_each(|e| model.apply(e));
        model.current().into_keys().collect()
    }

    /// All events so far, which are forgotten.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared.log().events)
    }

    /// How many events there are.
    pub fn event_count(&self) -> usize {
        self.shared.log().events.len()
    }

    /// Plans a failure, or takes the plan back.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut log = self.shared.log();
        log.fault = fault;
        log.calls = 0;
        log.hits = 0;
    }

    /// How often the planned failure happened.
    pub fn hits(&self) -> u64 {
        self.shared.log().hits
    }

    /// Plans a lie about syncs.
    pub fn set_lie(&self, lie: Option<Lie>) {
        self.shared.log().lie = lie;
    }

    /// Syncs to which the planned lie may apply, so far.
    pub fn lies(&self) -> u64 {
        self.shared.log().lies
    }

    /// How often a call was made.
    pub fn count(&self, op: Op) -> u64 {
        self.shared.log().op_counts.get(&op).copied().unwrap_or(0)
    }

    /// A file's present content.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.inner.content(path)
    }
}

/// What a file with this name is for.
pub fn kind_of(path: &Path) -> FileKind {
    let name = path.to_string_lossy();
    if name.ends_with("-journal") {
        FileKind::Journal
    } else if name.ends_with("-wal") {
        FileKind::Wal
    } else if name.contains("-mj") {
        FileKind::SuperJournal
    } else {
        FileKind::MainDb
    }
}

impl Vfs for Disk {
    fn name(&self) -> &str {
        "sim"
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        let process = crate::baton::process();
        self.shared.may(Op::Open, process)?;
        let Some(path) = path else {
            let inner = self.inner.open_for(process, None, flags)?;
            let entry = Entry { file: None, kind: flags.kind, new_entry: Mutex::new(false) };
            return Ok(Box::new(DiskFile { inner, shared: self.shared.clone(), entry, process }));
        };
        let existed = self.inner.access(path, Access::ReadWrite)?;
        let inner = self.inner.open_for(process, Some(path), flags)?;
        let inode = inner.identity().map_or(0, |i| i.inode);
        let mut log = self.shared.log();
        let file = log.number(inode);
        if !existed {
            log.events.push(Event::Create { path: path.to_owned(), file, kind: flags.kind });
        }
        drop(log);
        // As the unix VFS has it: whoever opens a journal or log to create it sees to its name with the first sync.
        let new_entry = Mutex::new(flags.create && flags.kind != FileKind::MainDb);
        let entry = Entry { file: Some(file), kind: flags.kind, new_entry };
        Ok(Box::new(DiskFile { inner, shared: self.shared.clone(), entry, process }))
    }

    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        self.shared.may(Op::Delete, crate::baton::process())?;
        self.inner.delete(path, false)?;
        let mut log = self.shared.log();
        log.events.push(Event::Delete { path: path.to_owned() });
        if sync_dir && !log.lies(None) {
            log.events.push(Event::SyncDir);
        }
        Ok(())
    }

    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        self.shared.may(Op::Access, crate::baton::process())?;
        self.inner.access(path, what)
    }

    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.full_path(path)
    }

    fn clock(&self) -> &dyn Clock {
        &*self.shared
    }

    fn entropy(&self) -> &dyn Entropy {
        &*self.shared
    }
}

struct Entry {
    /// `None`: a private file.
    file: Option<u32>,
    kind: FileKind,
    new_entry: Mutex<bool>,
}

struct DiskFile {
    inner: Box<dyn File>,
    shared: Arc<Shared>,
    entry: Entry,
    process: u32,
}

impl DiskFile {
    fn record(&self, make: impl FnOnce(u32) -> Event) {
        if let Some(file) = self.entry.file {
            self.shared.log().events.push(make(file));
        }
    }
}

impl File for DiskFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        self.shared.may(Op::Read, self.process)?;
        self.inner.read(buf, offset)
    }

    fn read_new<'b>(&self, buf: &'b mut [MaybeUninit<u8>], offset: u64) -> Result<(&'b mut [u8], bool)> {
        self.shared.may(Op::Read, self.process)?;
        self.inner.read_new(buf, offset)
    }

    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        let may = self.shared.may(Op::Write, self.process);
        if self.shared.is_dead(self.process) {
            return may;
        }
        let buf = if may.is_err() { &buf[..buf.len() / 2] } else { buf };
        if !buf.is_empty() {
            self.inner.write(buf, offset)?;
            self.record(|file| Event::Write { file, offset, data: buf.into() });
        }
        may
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.shared.may(Op::Truncate, self.process)?;
        self.inner.truncate(size)?;
        self.record(|file| Event::Truncate { file, size });
        Ok(())
    }

    fn sync(&self, kind: SyncKind) -> Result<()> {
        self.shared.may(Op::Sync, self.process)?;
        self.inner.sync(kind)?;
        let Some(file) = self.entry.file else { return Ok(()) };
        let mut log = self.shared.log();
        if !log.lies(Some(self.entry.kind)) {
            log.events.push(Event::Sync { file });
        }
        let mut new_entry = self.entry.new_entry.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *new_entry) && !log.lies(None) {
            log.events.push(Event::SyncDir);
        }
        Ok(())
    }

    fn size(&self) -> Result<u64> {
        self.shared.may(Op::Size, self.process)?;
        self.inner.size()
    }

    fn lock(&self, level: LockLevel) -> Result<()> {
        self.shared.may(Op::Lock, self.process)?;
        self.inner.lock(level)
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        crate::baton::hand_over();
        if self.shared.is_dead(self.process) {
            return Err(Code::IoerrUnlock.into());
        }
        self.inner.unlock(level)
    }

    fn check_reserved(&self) -> Result<bool> {
        self.shared.may(Op::CheckReserved, self.process)?;
        self.inner.check_reserved()
    }

    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        self.shared.may(Op::ShmMap, self.process)?;
        self.inner.shm_map(index, size, extend)
    }

    fn shm_lock(&self, first: u8, n: u8, how: ShmLock) -> Result<()> {
        if matches!(how, ShmLock::Shared | ShmLock::Exclusive) {
            self.shared.may(Op::ShmLock, self.process)?;
        } else {
            crate::baton::hand_over();
            if self.shared.is_dead(self.process) {
                return Err(Code::IoerrShmlock.into());
            }
        }
        self.inner.shm_lock(first, n, how)
    }

    fn shm_release(&self) -> Option<Arc<dyn ShmRelease>> {
        // Called under a lock of the process: no place to hand the baton over.
        self.inner.shm_release()
    }

    fn shm_barrier(&self) {
        crate::baton::hand_over();
        self.inner.shm_barrier()
    }
    iolite_os::pass_to_inner!(sector_size characteristics is_read_only identity has_moved shm_unmap shm_read_only has_shm);
}

//! A VFS whose files are in this process: for tests, for temporary files that need no disk, and as the
//! plainest statement of what the traits mean.
//!
//! What always holds: files with a name are shared by all handles of one [`MemoryVfs`]; locks conflict
//! between handles exactly as on disk; a sync does nothing, since nothing outlives the process. Shared memory only grows while
//! somebody holds its write lock: a VFS of the operating system makes room by writing zeros, which must not meet anything.

use crate::traits::*;
use iolite_base::{Code, Result, alloc};
use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

/// File identities, never the same twice in a process.
static IDS: AtomicU64 = AtomicU64::new(0);

/// Files in memory.
#[derive(Default)]
pub struct MemoryVfs {
    name: Option<&'static str>,
    files: Arc<Names>,
    /// Every open handle.
    handles: Mutex<Vec<Weak<Handle>>>,
    world: World,
}

type Names = Mutex<HashMap<PathBuf, Arc<Mutex<Node>>>>;

#[derive(Default)]
struct Node {
    id: u64,
    data: Vec<u8>,
    shared: u32,
    reserved: bool,
    pending: bool,
    exclusive: bool,
    shm: Vec<Arc<Memory>>,
    shm_shared: [u32; 8],
    shm_exclusive: [bool; 8],
    shm_users: u32,
}

struct Memory(NonNull<u8>, usize);

// SAFETY: the memory is only reached through atomics (ShmRegion).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(len: usize) -> Memory {
        let words = vec![0u64; len / 8].into_boxed_slice();
        Memory(NonNull::from(Box::leak(words)).cast(), len)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let words = std::ptr::slice_from_raw_parts_mut(self.0.as_ptr() as *mut u64, self.1 / 8);
        // SAFETY: made in `new` from a boxed slice of this length.
        drop(unsafe { Box::from_raw(words) });
    }
}

impl MemoryVfs {
    /// An empty world.
    pub fn new() -> MemoryVfs {
        MemoryVfs::default()
    }

    /// An empty world under a name of its own.
    pub fn with_name(name: &'static str) -> MemoryVfs {
        MemoryVfs { name: Some(name), ..MemoryVfs::default() }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Mutex<Node>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Vfs::open`], for one of several processes that the caller plays.
    pub fn open_for(&self, process: u32, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        let id = IDS.fetch_add(1, Relaxed);
        let node = match path {
            None => Arc::new(Mutex::new(Node { id, ..Node::default() })),
            Some(p) => {
                let mut files = self.files();
                match files.get(p) {
                    Some(_) if flags.exclusive => return Err(Code::Cantopen.into()),
                    Some(node) => node.clone(),
                    None if !flags.create || flags.read_only => return Err(Code::Cantopen.into()),
                    None => {
                        let node = Arc::new(Mutex::new(Node { id, ..Node::default() }));
                        files.insert(p.to_owned(), node.clone());
                        node
                    }
                }
            }
        };
        let handle = Arc::new(Handle {
            node,
            process,
            nolock: flags.nolock,
            level: AtomicU8::new(LockLevel::None as u8),
            shm_shared: Arc::default(),
            shm_exclusive: Arc::default(),
            shm_used: AtomicBool::new(false),
        });
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|h| h.strong_count() > 0);
        handles.push(Arc::downgrade(&handle));
        let place = path.map(|p| (self.files.clone(), p.to_owned()));
        Ok(Box::new(MemoryFile { handle, flags, place }))
    }

    /// A process that the caller plays has died: none of its handles holds a lock any more.
    pub fn end_process(&self, process: u32) {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for h in handles.iter().filter_map(Weak::upgrade).filter(|h| h.process == process) {
            h.lower(LockLevel::None);
            h.leave_shm(true);
        }
    }

    /// A copy of a file's content.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let node = self.files().get(path)?.clone();
        Some(lock(&node).data.clone())
    }

    /// Puts a file in place.
    pub fn put(&self, path: &Path, data: Vec<u8>) {
        let id = IDS.fetch_add(1, Relaxed);
        self.files().insert(path.to_owned(), Arc::new(Mutex::new(Node { id, data, ..Node::default() })));
    }
}

fn lock(node: &Arc<Mutex<Node>>) -> MutexGuard<'_, Node> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vfs for MemoryVfs {
    fn name(&self) -> &str {
        self.name.unwrap_or("memory")
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        self.open_for(0, path, flags)
    }

    fn delete(&self, path: &Path, _sync_dir: bool) -> Result<()> {
        match self.files().remove(path) {
            Some(_) => Ok(()),
            None => Err(Code::IoerrDeleteNoent.into()),
        }
    }

    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        let files = self.files();
        let Some(node) = files.get(path) else { return Ok(false) };
        Ok(what != Access::Exists || !lock(node).data.is_empty())
    }

    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn clock(&self) -> &dyn Clock {
        &self.world
    }

    fn entropy(&self) -> &dyn Entropy {
        &self.world
    }
}

struct World {
    start: Instant,
    seed: AtomicU64,
}

impl Default for World {
    fn default() -> World {
        World { start: Instant::now(), seed: AtomicU64::new(0x243f_6a88_85a3_08d3) }
    }
}

impl Clock for World {
    fn unix_millis(&self) -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn local_offset(&self, unix_seconds: i64) -> i64 {
        crate::unix::local_offset(unix_seconds)
    }
}

impl Entropy for World {
    fn fill(&self, out: &mut [u8]) {
        for b in out {
            let x = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
            let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *b = (x >> 56) as u8;
        }
    }
}

/// What a handle holds, where others can take it away.
struct Handle {
    node: Arc<Mutex<Node>>,
    process: u32,
    nolock: bool,
    /// A [`LockLevel`].
    level: AtomicU8,
    /// Shared with those who may give a lock back on another thread.
    shm_shared: Arc<AtomicU8>,
    shm_exclusive: Arc<AtomicU8>,
    shm_used: AtomicBool,
}

impl Handle {
    fn level(&self) -> LockLevel {
        use LockLevel::*;
        [None, Shared, Reserved, Pending, Exclusive][self.level.load(Relaxed) as usize]
    }

    fn set_level(&self, level: LockLevel) {
        self.level.store(level as u8, Relaxed);
    }

    fn lower(&self, level: LockLevel) {
        let now = self.level();
        if now <= level {
            return;
        }
        self.set_level(level);
        if self.nolock {
            return;
        }
        let mut n = lock(&self.node);
        if now == LockLevel::Exclusive {
            n.exclusive = false;
        }
        if now >= LockLevel::Pending {
            n.pending = false;
        }
        if now >= LockLevel::Reserved {
            n.reserved = false;
        }
        if level == LockLevel::None {
            n.shared -= 1;
        }
    }

    fn unlock_shm(&self, n: &mut Node, locks: std::ops::Range<usize>) {
        for i in locks {
            let mask = 1u8 << i;
            if self.shm_shared.fetch_and(!mask, Relaxed) & mask != 0 {
                n.shm_shared[i] -= 1;
            }
            if self.shm_exclusive.fetch_and(!mask, Relaxed) & mask != 0 {
                n.shm_exclusive[i] = false;
            }
        }
    }

    /// `dead`: whoever might give a lock back later is gone as well.
    fn leave_shm(&self, dead: bool) {
        if self.shm_used.swap(false, Relaxed) {
            // What this handle holds alone stays locked where somebody is left who can give it back.
            let kept = match Arc::strong_count(&self.shm_exclusive) {
                1 => 0,
                _ if dead => 0,
                _ => self.shm_exclusive.load(Relaxed),
            };
            let mut n = lock(&self.node);
            for i in (0..8).filter(|i| kept & 1 << i == 0) {
                self.unlock_shm(&mut n, i..i + 1);
            }
            n.shm_users -= 1;
        }
    }
}

struct MemoryFile {
    handle: Arc<Handle>,
    flags: OpenFlags,
    /// The name it was opened by, and what has which name now.
    place: Option<(Arc<Names>, PathBuf)>,
}

impl MemoryFile {
    fn node(&self) -> MutexGuard<'_, Node> {
        lock(&self.handle.node)
    }

    /// Takes part in the shared memory. Who comes first finds none of it.
    fn attach_shm(&self, n: &mut Node) {
        if !self.handle.shm_used.swap(true, Relaxed) {
            if n.shm_users == 0 {
                n.shm.clear();
            }
            n.shm_users += 1;
        }
    }
}

impl File for MemoryFile {
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let n = self.node();
        let from = (offset as usize).min(n.data.len());
        let have = (n.data.len() - from).min(buf.len());
        buf[..have].copy_from_slice(&n.data[from..from + have]);
        buf[have..].fill(0);
        Ok(have == buf.len())
    }

    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        let mut n = self.node();
        let end = offset as usize + buf.len();
        if n.data.len() < end {
            let more = end - n.data.len();
            alloc::reserve(&mut n.data, more)?;
            n.data.resize(end, 0);
        }
        n.data[offset as usize..end].copy_from_slice(buf);
        Ok(())
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.node().data.resize(size as usize, 0);
        Ok(())
    }

    fn sync(&self, _kind: SyncKind) -> Result<()> {
        Ok(())
    }

    fn size(&self) -> Result<u64> {
        Ok(self.node().data.len() as u64)
    }

    fn lock(&self, level: LockLevel) -> Result<()> {
        let now = self.handle.level();
        if now >= level {
            return Ok(());
        }
        if self.flags.nolock {
            self.handle.set_level(level);
            return Ok(());
        }
        let mut n = self.node();
        match level {
            LockLevel::None | LockLevel::Pending => {}
            LockLevel::Shared => {
                if n.pending || n.exclusive {
                    return Err(Code::Busy.into());
                }
                n.shared += 1;
            }
            LockLevel::Reserved => {
                if n.reserved {
                    return Err(Code::Busy.into());
                }
                n.reserved = true;
            }
            LockLevel::Exclusive => {
                if now < LockLevel::Pending {
                    if n.pending || (n.reserved && now < LockLevel::Reserved) {
                        return Err(Code::Busy.into());
                    }
                    n.pending = true;
                    n.reserved = true;
                    self.handle.set_level(LockLevel::Pending);
                }
                if n.shared > 1 {
                    return Err(Code::Busy.into());
                }
                n.exclusive = true;
            }
        }
        self.handle.set_level(level);
        Ok(())
    }

    fn unlock(&self, level: LockLevel) -> Result<()> {
        self.handle.lower(level);
        Ok(())
    }

    fn check_reserved(&self) -> Result<bool> {
        Ok(self.node().reserved)
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
        Some(FileId { device: u64::MAX, inode: self.node().id })
    }

    fn has_moved(&self) -> Result<bool> {
        let Some((files, path)) = &self.place else { return Ok(false) };
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(files.get(path).is_none_or(|now| !Arc::ptr_eq(now, &self.handle.node)))
    }

    fn shm_map(&self, index: usize, size: usize, extend: bool) -> Result<Option<ShmRegion>> {
        let mut n = self.node();
        // Who may not create it is not attached to what nobody has.
        if !extend && n.shm_users == 0 {
            return Ok(None);
        }
        self.attach_shm(&mut n);
        while n.shm.len() <= index {
            if !extend {
                return Ok(None);
            }
            debug_assert!(n.shm_exclusive[0], "shared memory grows without the write lock");
            n.shm.push(Arc::new(Memory::new(size)));
        }
        let m = n.shm[index].clone();
        let owner: Arc<dyn Any + Send + Sync> = m.clone();
        // SAFETY: `m` is zeroed memory aligned to 8, alive as long as the Arc, reached through atomics only.
        Ok(Some(unsafe { ShmRegion::new(m.0, m.1, owner) }))
    }

    fn shm_lock(&self, first: u8, count: u8, how: ShmLock) -> Result<()> {
        let h = &*self.handle;
        let mut n = self.node();
        self.attach_shm(&mut n);
        let range = first as usize..(first + count) as usize;
        let mask = |i: usize| 1u8 << i;
        let (s, x) = (h.shm_shared.load(Relaxed), h.shm_exclusive.load(Relaxed));
        match how {
            ShmLock::Shared => {
                if range.clone().any(|i| n.shm_exclusive[i] && x & mask(i) == 0) {
                    return Err(Code::Busy.into());
                }
                for i in range {
                    if x & mask(i) != 0 {
                        n.shm_exclusive[i] = false;
                        h.shm_exclusive.fetch_and(!mask(i), Relaxed);
                    }
                    if s & mask(i) == 0 {
                        n.shm_shared[i] += 1;
                        h.shm_shared.fetch_or(mask(i), Relaxed);
                    }
                }
            }
            ShmLock::Exclusive => {
                let taken = |i: usize| {
                    (n.shm_exclusive[i] && x & mask(i) == 0) || n.shm_shared[i] > (s & mask(i) != 0) as u32
                };
                if range.clone().any(taken) {
                    return Err(Code::Busy.into());
                }
                for i in range {
                    n.shm_exclusive[i] = true;
                    h.shm_exclusive.fetch_or(mask(i), Relaxed);
                }
            }
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => h.unlock_shm(&mut n, range),
        }
        Ok(())
    }

    fn shm_release(&self) -> Option<Arc<dyn ShmRelease>> {
        let h = &self.handle;
        Some(Arc::new(Release(h.node.clone(), h.shm_shared.clone(), h.shm_exclusive.clone())))
    }

    fn shm_barrier(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn shm_unmap(&self, _delete: bool) -> Result<()> {
        self.handle.leave_shm(false);
        Ok(())
    }
}

struct Release(Arc<Mutex<Node>>, Arc<AtomicU8>, Arc<AtomicU8>);

impl ShmRelease for Release {
    fn release(&self, i: u8) {
        let mut n = lock(&self.0);
        if self.1.fetch_and(!(1 << i), Relaxed) & 1 << i != 0 {
            n.shm_shared[i as usize] -= 1;
        }
        if self.2.fetch_and(!(1 << i), Relaxed) & 1 << i != 0 {
            n.shm_exclusive[i as usize] = false;
        }
    }

    fn is_own(&self) -> bool {
        true
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let _ = self.shm_unmap(false);
        let _ = self.unlock(LockLevel::None);
    }
}

//! Databases in memory that behave as files: those that the connections of a process share by a name
//! (`file:name?mode=memory&cache=shared`, `file:/name?vfs=memdb`), and images that `deserialize` opens.
//!
//! Each is one file in a small world of its own ([`MemoryVfs`]) and is opened like any file, so locks, snapshots and checks
//! of a damaged header are those of files. What always holds: a world lives as long as somebody has its database open;
//! nothing is ever written to a disk, since such a file is volatile ([`Characteristics`]) and keeps its journal in memory.
//! A writer locks out the readers of the whole database while it commits: there are no locks on single tables.

use iolite_base::{Code, Result};
use iolite_btree::{Btree, OpenOptions};
use iolite_os::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The largest database in memory, unless somebody says otherwise.
static MOST: AtomicU64 = AtomicU64::new(1 << 30);

/// Sets the most bytes that databases in memory take which are opened from now on, by name or from an image.
pub fn set_image_limit(bytes: u64) {
    MOST.store(bytes, Ordering::Relaxed);
}

/// The most bytes that a new database in memory takes.
pub(crate) fn most() -> u64 {
    MOST.load(Ordering::Relaxed)
}

/// The one file of a world.
const NAME: &str = "/database";

/// A world with one database.
pub(crate) struct Memory {
    inner: MemoryVfs,
    /// Where the clock and the randomness are.
    host: Arc<dyn Vfs>,
    limit: Arc<AtomicU64>,
    read_only: bool,
}

/// Names and the worlds behind them.
static NAMED: PerProcess<Mutex<HashMap<Vec<u8>, Weak<Memory>>>> = PerProcess::new();

/// Opens the database that the process knows under `name`; the first one makes it.
pub(crate) fn open_named(host: &Arc<dyn Vfs>, name: &[u8], options: &OpenOptions) -> Result<Btree> {
    let mut named = NAMED.get().lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|_, world| world.strong_count() > 0);
    let world = match named.get(name).and_then(Weak::upgrade) {
        Some(world) => world,
        None => {
            let world = Memory::new(host, most());
            world.inner.put(Path::new(NAME), Vec::new());
            named.insert(name.to_vec(), Arc::downgrade(&world));
            world
        }
    };
    open(world, options)
}

/// Opens a private database with this content, which may grow up to `limit` bytes; `locked`: nobody gets the lock to write it.
pub(crate) fn open_image(
    host: &Arc<dyn Vfs>,
    image: Vec<u8>,
    limit: u64,
    options: &OpenOptions,
    locked: bool,
) -> Result<(Btree, SizeLimit)> {
    let mut world = Memory::new(host, limit);
    if let Some(w) = Arc::get_mut(&mut world) {
        w.read_only = locked;
    }
    world.inner.put(Path::new(NAME), image);
    let limit = SizeLimit(world.limit.clone());
    Ok((open(world, options)?, limit))
}

fn open(world: Arc<Memory>, options: &OpenOptions) -> Result<Btree> {
    Btree::open(world, NAME, &OpenOptions { memory: false, ..options.clone() })
}

/// How large a database in memory may become, in bytes.
#[derive(Clone)]
pub(crate) struct SizeLimit(Arc<AtomicU64>);

impl SizeLimit {
    /// The limit; sets it if `bytes` is given, but not below the present size.
    pub fn set(&self, bytes: Option<u64>, size: u64) -> u64 {
        if let Some(n) = bytes {
            self.0.store(n.max(size), Ordering::Relaxed);
        }
        self.0.load(Ordering::Relaxed)
    }
}

impl Memory {
    fn new(host: &Arc<dyn Vfs>, limit: u64) -> Arc<Memory> {
        Arc::new(Memory {
            inner: MemoryVfs::new(),
            host: host.clone(),
            limit: Arc::new(AtomicU64::new(limit)),
            read_only: false,
        })
    }
}

impl Vfs for Memory {
    fn name(&self) -> &str {
        "memdb"
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        match path {
            Some(_) => Ok(Box::new(MemoryDatabase {
                inner: self.inner.open(path, flags)?,
                limit: self.limit.clone(),
                read_only: self.read_only,
            })),
            // Undo images and the like may well go to the disk.
            None => self.host.open(None, flags),
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.host.clock()
    }

    fn entropy(&self) -> &dyn Entropy {
        self.host.entropy()
    }

    iolite_os::pass_to_inner!(delete access full_path);
}

struct MemoryDatabase {
    inner: Box<dyn File>,
    limit: Arc<AtomicU64>,
    read_only: bool,
}

impl File for MemoryDatabase {
    fn write(&self, buf: &[u8], offset: u64) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.limit.load(Ordering::Relaxed) && end > self.inner.size()? {
            return Err(Code::Full.into());
        }
        self.inner.write(buf, offset)
    }

    fn characteristics(&self) -> Characteristics {
        Characteristics { volatile: true, ..self.inner.characteristics() }
    }

    fn has_shm(&self) -> bool {
        false
    }

    /// An image that may not be written is a file that may: it is the lock that nobody gets.
    fn lock(&self, level: LockLevel) -> Result<()> {
        if self.read_only && level > LockLevel::Shared {
            Err(Code::Readonly.into())
        } else {
            self.inner.lock(level)
        }
    }

    iolite_os::pass_to_inner!(read truncate sync size unlock check_reserved sector_size is_read_only identity has_moved);
    iolite_os::pass_to_inner!(shm_map shm_lock shm_barrier shm_unmap);
}

//! What the processes of a round tell each other: numbers of transactions, in a file that all map.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

/// Writers at the most, each with numbers of its own.
pub const WRITERS: usize = 64;

/// The numbers.
#[repr(C)]
pub struct Shared {
    /// The last transaction of each writer that was acknowledged.
    acknowledged: [AtomicI64; WRITERS],
    /// The last one that it began to commit.
    begun: [AtomicI64; WRITERS],
    /// The round is over.
    over: AtomicI64,
}

impl Shared {
    /// Maps the file, making it if need be. It stays mapped.
    pub fn of(dir: &Path) -> std::io::Result<&'static Shared> {
        let how = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = how.open(dir.join("shared"))?;
        file.set_len(size_of::<Shared>() as u64)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file of this size; every content of it is a value of the struct, and it is never unmapped.
        unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            Ok(&*at.cast())
        }
    }

    pub fn begin(&self, writer: usize, n: i64) {
        self.begun[writer].fetch_max(n, SeqCst);
    }

    pub fn acknowledge(&self, writer: usize, n: i64) {
        self.acknowledged[writer].fetch_max(n, SeqCst);
    }

    pub fn acknowledged(&self, writer: usize) -> i64 {
        self.acknowledged[writer].load(SeqCst)
    }

    pub fn begun(&self, writer: usize) -> i64 {
        self.begun[writer].load(SeqCst)
    }

    pub fn end(&self) {
        self.over.store(1, SeqCst);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(SeqCst) != 0
    }
}

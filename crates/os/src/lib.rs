//! The world as traits: files, byte-range locks, shared memory, clock, entropy.
//!
//! [`Vfs`] opens files and names the clock and the source of randomness; [`File`] reads, writes, syncs, locks
//! and maps the shared memory of a WAL. Both mirror SQLite's own VFS methods, so that one written in C can
//! stand below the pager and ours can be handed to C. [`UnixVfs`] speaks to the operating system,
//! [`MemoryVfs`] keeps everything in the process; a simulator is a third one.
//!
//! This crate is the only place with system calls. It knows nothing of pages, journals or SQL: to it a lock
//! is a lock and a file is bytes.

pub mod background;
mod memory;
mod pass;
mod per_process;
mod published;
mod registry;
mod stack;
mod ticks;
mod traits;
mod unix;

pub use memory::MemoryVfs;
pub use per_process::PerProcess;
pub use published::Published;
pub use registry::{register_vfs, system_vfses, unregister_vfs, vfs_named};
pub use stack::has_stack;
pub use ticks::ticks;
pub use traits::{
    Access, Characteristics, Clock, Entropy, File, FileId, FileKind, FileStamp, LockLevel, Note, OpenFlags,
    ShmLock, ShmRegion, ShmRelease, SyncKind, Vfs,
};
pub use unix::{OtherLocks, UnixVariant, UnixVfs, forking_thread, forks, watch_forks};

use std::sync::{Arc, OnceLock};

/// The operating system's own VFS, made once per process.
pub fn default_vfs() -> Arc<dyn Vfs> {
    static VFS: OnceLock<Arc<UnixVfs>> = OnceLock::new();
    VFS.get_or_init(|| Arc::new(UnixVfs::new())).clone()
}

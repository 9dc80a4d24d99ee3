//! The unix VFS: files by descriptor, locks by byte range, time and randomness from the kernel.
//!
//! What always holds: each handle has its own open file description, so that open-file-description (OFD)
//! locks belong to the handle alone; every descriptor is close-on-exec; a process that came out of `fork`
//! has none of its parent's descriptions, and so neither changes nor keeps its locks (module `fork`). A file beside a
//! database (journal, log, shared memory, derived) is never reached through a symbolic link, and belongs to the
//! database's owner.

mod file;
mod fork;
mod locks;
mod posix;
mod shm;
mod signals;
mod slabs;
mod sys;
mod variants;

pub use signals::without_signals;
pub(crate) use sys::local_offset;
pub use variants::{OtherLocks, UnixVariant};

pub use fork::{forking_thread, forks, watch as watch_forks};

use crate::traits::*;
use file::UnixFile;
use iolite_base::{Code, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::{Belongs, Fd, How};

/// Links are followed so far.
const MOST_LINKS: usize = 100;

/// Files of the operating system.
pub struct UnixVfs {
    process_locks: bool,
    /// Shared memory is only read: it must be there, or the log is read without it.
    reads_shm: bool,
}

impl Default for UnixVfs {
    fn default() -> UnixVfs {
        UnixVfs::new()
    }
}

impl UnixVfs {
    /// The VFS. All of them are alike.
    pub fn new() -> UnixVfs {
        fork::watch();
        UnixVfs { process_locks: false, reads_shm: false }
    }

    /// The same with the locks that belong to processes, as on systems that have no others.
    pub fn with_process_locks() -> UnixVfs {
        fork::watch();
        UnixVfs { process_locks: true, reads_shm: false }
    }
}

impl Vfs for UnixVfs {
    fn name(&self) -> &str {
        "unix"
    }

    fn open(&self, path: Option<&Path>, flags: OpenFlags) -> Result<Box<dyn File>> {
        let Some(path) = path else {
            let fd = temp_file(self)?;
            return Ok(Box::new(UnixFile::new(fd, None, flags, self)));
        };
        let file = |fd, flags| -> Result<Box<dyn File>> {
            Ok(Box::new(UnixFile::new(fd, Some(path.to_owned()), flags, self)))
        };
        // Who may write beside a database need not be who may write what a link beside it leads to.
        let nofollow = flags.kind != FileKind::MainDb;
        if !flags.read_only {
            // A journal or log belongs to whom its database belongs to, so that whoever may write one may write both.
            let belongs = if flags.create { belongs_beside(path, flags.kind) } else { None };
            let (create, exclusive) = (flags.create, flags.exclusive);
            match sys::open(path, How { write: true, create, exclusive, nofollow, belongs }) {
                Ok(fd) => return file(fd, flags),
                Err(libc::EACCES) if flags.create && beside(flags.kind) && sys::stat(path).is_err() => {
                    return Err(Code::ReadonlyDirectory.into());
                }
                Err(e) if e == libc::EISDIR || !flags.or_read_only => return Err(Code::Cantopen.into()),
                Err(_) => {}
            }
        }
        let fd = sys::open(path, How { nofollow, ..How::default() }).map_err(|_| Code::Cantopen)?;
        // What is derived from a database is believed: only from those who may write to it.
        if flags.kind == FileKind::Derived && database_of(path).is_some_and(|db| sys::is_foreign(&fd, db)) {
            return Err(Code::Perm.into());
        }
        file(fd, OpenFlags { read_only: true, ..flags })
    }

    fn for_database(&self, parameters: &[(Vec<u8>, Vec<u8>)]) -> Option<std::sync::Arc<dyn Vfs>> {
        let on = |v: &[u8]| matches!(v.to_ascii_lowercase().as_slice(), b"1" | b"on" | b"yes" | b"true");
        let reads_shm = parameters.iter().find(|p| p.0 == b"readonly_shm").is_some_and(|p| on(&p.1));
        reads_shm.then(|| std::sync::Arc::new(UnixVfs { reads_shm, ..*self }) as _)
    }

    fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        match sys::unlink(path) {
            Ok(()) => {}
            Err(libc::ENOENT) => return Err(Code::IoerrDeleteNoent.into()),
            Err(_) => return Err(Code::IoerrDelete.into()),
        }
        if sync_dir { sys::sync_dir_of(path) } else { Ok(()) }
    }

    fn access(&self, path: &Path, what: Access) -> Result<bool> {
        match what {
            Access::Exists => Ok(sys::exists_nonempty(path)),
            Access::ReadWrite => Ok(sys::may_write(path)),
        }
    }

    fn full_path(&self, path: &Path) -> Result<PathBuf> {
        let abs = if path.is_absolute() {
            path.to_owned()
        } else {
            std::env::current_dir().map_err(|_| Code::CantopenFullpath)?.join(path)
        };
        let mut path = abs;
        // A name that leads nowhere yet: its directory is resolved, and what a link names is where the file will be made.
        // Journals must stand beside that, not beside the link.
        for _ in 0..MOST_LINKS {
            if let Ok(real) = std::fs::canonicalize(&path) {
                return Ok(real);
            }
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
            let Ok(dir) = std::fs::canonicalize(dir) else { return Ok(path) };
            match std::fs::read_link(dir.join(name)) {
                Ok(target) => path = dir.join(target),
                Err(_) => return Ok(dir.join(name)),
            }
        }
        Err(Code::CantopenFullpath.into())
    }

    fn is_behind_link(&self, path: &Path) -> Result<bool> {
        let mut at = PathBuf::new();
        if !path.is_absolute() {
            at = std::env::current_dir().map_err(|_| Code::CantopenFullpath)?;
        }
        for part in path.components() {
            at.push(part);
            if std::fs::symlink_metadata(&at).is_ok_and(|m| m.is_symlink()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|_| Code::Ioerr.into())
    }

    fn boot(&self) -> Option<[u8; 16]> {
        // Hexadecimal digits and dashes; elsewhere than on Linux there is none.
        let text = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        let mut out = [0; 16];
        let digits: Vec<u8> =
            text.iter().filter_map(|c| (*c as char).to_digit(16)).map(|d| d as u8).collect();
        if digits.len() != 32 {
            return None;
        }
        for (o, d) in out.iter_mut().zip(digits.chunks(2)) {
            *o = d[0] << 4 | d[1];
        }
        Some(out)
    }

    fn threads(&self) -> bool {
        !self.process_locks
    }

    fn clock(&self) -> &dyn Clock {
        &KernelClock
    }

    fn entropy(&self) -> &dyn Entropy {
        &KernelEntropy
    }
}

/// Whether a file of this kind lies beside a database.
fn beside(kind: FileKind) -> bool {
    matches!(kind, FileKind::Journal | FileKind::Wal | FileKind::SuperJournal | FileKind::Derived)
}

/// The database that a file lies beside: its name is what stands before the last dash.
fn database_of(path: &Path) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt;
    let name = path.as_os_str().as_encoded_bytes();
    let dash = name.iter().rposition(|&b| b == b'-')?;
    Some(Path::new(std::ffi::OsStr::from_bytes(&name[..dash])))
}

/// What a new file beside a database is to be like.
fn belongs_beside(path: &Path, kind: FileKind) -> Option<Belongs> {
    if beside(kind) { sys::belongs_beside(database_of(path)?) } else { None }
}

fn temp_file(vfs: &UnixVfs) -> Result<Fd> {
    let candidates = [
        std::env::var_os("SQLITE_TMPDIR").map(PathBuf::from),
        std::env::var_os("TMPDIR").map(PathBuf::from),
        Some(PathBuf::from("/var/tmp")),
        Some(PathBuf::from("/usr/tmp")),
        Some(PathBuf::from("/tmp")),
        Some(PathBuf::from(".")),
    ];
    for dir in candidates.into_iter().flatten() {
        for _ in 0..10 {
            let mut r = [0u8; 8];
            vfs.entropy().fill(&mut r);
            let path = dir.join(format!("iolite_{:016x}", u64::from_ne_bytes(r)));
            let how = How {
                write: true,
                create: true,
                exclusive: true,
                nofollow: true,
                belongs: Some(Belongs::private()),
            };
            match sys::open(&path, how) {
                Ok(fd) => {
                    // Unlinked at once: it vanishes with the descriptor, whatever happens to the process.
                    let _ = sys::unlink(&path);
                    return Ok(fd);
                }
                Err(libc::EEXIST) => continue,
                Err(_) => break,
            }
        }
    }
    Err(Code::IoerrGettemppath.into())
}

struct KernelClock;

impl Clock for KernelClock {
    fn unix_millis(&self) -> i64 {
        sys::clock(libc::CLOCK_REALTIME) as i64 / 1_000_000
    }

    fn monotonic_nanos(&self) -> u64 {
        sys::clock(libc::CLOCK_MONOTONIC)
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn local_offset(&self, unix_seconds: i64) -> i64 {
        sys::local_offset(unix_seconds)
    }
}

struct KernelEntropy;

impl Entropy for KernelEntropy {
    fn fill(&self, out: &mut [u8]) {
        sys::random(out);
    }
}

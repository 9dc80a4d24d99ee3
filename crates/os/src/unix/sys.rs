//! The system calls themselves, each wrapped once: errors are numbers, interruptions are retried.

use super::fork;
use iolite_base::{Code, Result};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// An open descriptor, closed when dropped.
pub struct Fd {
    number: libc::c_int,
    /// It may carry locks: a forked child gives its copy up (module `fork`).
    watch: Option<fork::Watched>,
}

impl Fd {
    fn new(number: libc::c_int) -> Fd {
        Fd { number, watch: None }
    }

    /// Says that locks are taken through this descriptor: a forked child must not keep them alive.
    pub fn watch(&mut self) {
        self.watch = Some(fork::Watched::descriptor(self.number));
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // A copy that a forked child has given up may be another file's number by now.
        if self.watch.take().is_none_or(|w| w.leave()) {
            // SAFETY: the descriptor is ours and not used afterwards.
            unsafe { libc::close(self.number) };
        }
    }
}

/// Calls whose offsets and sizes have 64 bits whatever the machine's word is: a database is longer than 2 GB on a phone, too.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod abi {
    pub use libc::{
        fstat64 as fstat, ftruncate64 as ftruncate, mmap64 as mmap, off64_t as Offset, pread64 as pread,
        pwrite64 as pwrite, pwritev64 as pwritev, stat64 as stat,
    };
}

/// Elsewhere they always have.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod abi {
    pub use libc::{fstat, ftruncate, mmap, off_t as Offset, pread, pwrite, stat};
}

/// The status of a file.
pub type Stat = abi::stat;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn cpath(path: &Path) -> Result<CString, i32> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::EINVAL)
}

/// Repeats a call that a signal interrupted.
fn retry(mut call: impl FnMut() -> libc::c_int) -> Result<libc::c_int, i32> {
    loop {
        let r = call();
        if r >= 0 {
            return Ok(r);
        }
        let e = errno();
        if e != libc::EINTR {
            return Err(e);
        }
    }
}

/// Who owns a new file, and what may be done with it: as the database beside which it lies.
#[derive(Clone, Copy)]
pub struct Belongs {
    /// The permission bits, whatever the umask says.
    pub mode: u32,
    /// User and group. Only root may give a file away.
    pub owner: Option<(libc::uid_t, libc::gid_t)>,
}

impl Belongs {
    /// As this file.
    pub fn like(st: &Stat) -> Belongs {
        Belongs { mode: st.st_mode & 0o777, owner: Some((st.st_uid, st.st_gid)) }
    }

    /// To this process's user, who alone may read and write it.
    pub fn private() -> Belongs {
        Belongs { mode: 0o600, owner: None }
    }
}

/// How to open a file.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// For writing, too.
    pub write: bool,
    /// Make it if it is missing.
    pub create: bool,
    /// Fail if it exists.
    pub exclusive: bool,
    /// Fail if the name is a symbolic link: somebody else may have planted it.
    pub nofollow: bool,
    /// What a new file is to be like.
    pub belongs: Option<Belongs>,
}

/// Opens a file. Descriptors 0 to 2 are never handed out: a stray `print` must not reach a database.
pub fn open(path: &Path, how: How) -> Result<Fd, i32> {
    let c = cpath(path)?;
    // A pipe under the name would make the call wait for ever. Nothing that is kept in regular files changes by it.
    let mut flags =
        libc::O_CLOEXEC | libc::O_NONBLOCK | if how.write { libc::O_RDWR } else { libc::O_RDONLY };
    if how.create {
        flags |= libc::O_CREAT;
    }
    if how.exclusive {
        flags |= libc::O_EXCL;
    }
    if how.exclusive || how.nofollow {
        flags |= libc::O_NOFOLLOW;
    }
    let bits = how.belongs.map_or(0o644, |b| b.mode) as libc::c_uint;
    // SAFETY: `c` is a NUL-terminated path that lives through the call.
    let mut opened = retry(|| unsafe { libc::open(c.as_ptr(), flags, bits) });
    if opened == Err(libc::EWOULDBLOCK) {
        // Somebody has a lease on it, which only regular files can have, and gives it back when asked.
        // SAFETY: as above.
        opened = retry(|| unsafe { libc::open(c.as_ptr(), flags & !libc::O_NONBLOCK, bits) });
    }
    let mut fd = Fd::new(opened?);
    if fd.number <= 2 {
        // SAFETY: a plain call on our descriptor; the low one closes when replaced.
        fd = Fd::new(retry(|| unsafe { libc::fcntl(fd.number, libc::F_DUPFD_CLOEXEC, 3) })?);
    }
    let st = fstat(&fd)?;
    if st.st_mode & libc::S_IFMT == libc::S_IFDIR {
        return Err(libc::EISDIR);
    }
    if st.st_mode & libc::S_IFMT == libc::S_IFIFO {
        return Err(libc::ESPIPE);
    }
    if let Some(b) = how.belongs
        && how.create
        && st.st_size == 0
    {
        // The umask cut the mode down, but a journal must stay as accessible as its database.
        if st.st_mode & 0o777 != b.mode {
            // SAFETY: a plain call on our descriptor.
            let _ = retry(|| unsafe { libc::fchmod(fd.number, b.mode) });
        }
        // Whoever owns the database must be able to play back what root leaves.
        if let Some((uid, gid)) = b.owner
            && (uid, gid) != (st.st_uid, st.st_gid)
            && is_root()
        {
            // SAFETY: a plain call on our descriptor.
            let _ = retry(|| unsafe { libc::fchown(fd.number, uid, gid) });
        }
    }
    Ok(fd)
}

fn is_root() -> bool {
    // SAFETY: a plain query.
    unsafe { libc::geteuid() == 0 }
}

/// The status of an open file.
pub fn fstat(fd: &Fd) -> Result<Stat, i32> {
    // SAFETY: all-zero is a valid `stat`.
    let mut st: Stat = unsafe { std::mem::zeroed() };
    // SAFETY: `st` is writable and of the right type.
    retry(|| unsafe { abi::fstat(fd.number, &mut st) })?;
    Ok(st)
}

/// Whether a file lies where only this machine writes: not on a network, and not where another program answers for the files.
#[cfg(target_os = "linux")]
pub fn is_local(fd: &Fd) -> bool {
    // SAFETY: all-zero is a valid `statfs`.
    let mut st: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `st` is writable and of the right type.
    let known = retry(|| unsafe { libc::fstatfs(fd.number, &mut st) }).is_ok();
    // AFS, OpenAFS, CEPH, CIFS, CODA, FUSE, GFS2, Lustre, NCP, NFS, OCFS2, SMB, SMB2, 9P.
    const ELSEWHERE: [u32; 14] = [
        0x5346_414f,
        0x6b41_4653,
        0x00c3_6400,
        0xff53_4d42,
        0x7375_7245,
        0x6573_5546,
        0x0116_1970,
        0x0bd0_0bd0,
        0x564c,
        0x6969,
        0x7461_636f,
        0x517b,
        0xfe53_4d42,
        0x0102_1997,
    ];
    #[allow(clippy::unnecessary_cast)]
    let kind = st.f_type as u32;
    known && !ELSEWHERE.contains(&kind)
}

/// Whether a file lies where only this machine writes.
#[cfg(not(target_os = "linux"))]
pub fn is_local(_fd: &Fd) -> bool {
    true
}

/// Whether somebody who cannot write to `like` could have made the file: its owner is neither that one's, nor root, nor
/// this process's.
pub fn is_foreign(fd: &Fd, like: &Path) -> bool {
    let (Ok(own), Ok(like)) = (fstat(fd), stat(like)) else { return true };
    // SAFETY: a plain call.
    let me = unsafe { libc::geteuid() };
    ![like.st_uid, 0, me].contains(&own.st_uid)
}

/// The status of a path. Every read in the rollback modes asks whether there is a journal: a name of common
/// length is copied to the stack, without an allocation.
pub fn stat(path: &Path) -> Result<Stat, i32> {
    let name = path.as_os_str().as_bytes();
    let mut short = [0u8; 256];
    if name.len() < short.len() {
        short[..name.len()].copy_from_slice(name);
        let c = std::ffi::CStr::from_bytes_until_nul(&short).map_err(|_| libc::EINVAL)?;
        // A NUL within the name would end it early.
        return if c.count_bytes() == name.len() { stat_c(c) } else { Err(libc::EINVAL) };
    }
    stat_c(&cpath(path)?)
}

fn stat_c(path: &std::ffi::CStr) -> Result<Stat, i32> {
    // SAFETY: all-zero is a valid `stat`.
    let mut st: Stat = unsafe { std::mem::zeroed() };
    // SAFETY: NUL-terminated path, writable `st`.
    retry(|| unsafe { abi::stat(path.as_ptr(), &mut st) })?;
    Ok(st)
}

/// Whether the path leads to something other than an empty regular file.
pub fn exists_nonempty(path: &Path) -> bool {
    stat(path).is_ok_and(|st| st.st_mode & libc::S_IFMT != libc::S_IFREG || st.st_size > 0)
}

/// What a file beside this one is to be like.
pub fn belongs_beside(path: &Path) -> Option<Belongs> {
    stat(path).ok().map(|st| Belongs::like(&st))
}

/// Whether this process may read and write the path.
pub fn may_write(path: &Path) -> bool {
    // SAFETY: NUL-terminated path.
    cpath(path).is_ok_and(|c| unsafe { libc::access(c.as_ptr(), libc::R_OK | libc::W_OK) } == 0)
}

/// Removes a name.
pub fn unlink(path: &Path) -> Result<(), i32> {
    let c = cpath(path)?;
    // SAFETY: NUL-terminated path.
    retry(|| unsafe { libc::unlink(c.as_ptr()) }).map(|_| ())
}

/// Makes a folder; that it was not there is certain then.
pub fn mkdir(path: &Path) -> Result<(), i32> {
    let c = cpath(path)?;
    // SAFETY: NUL-terminated path.
    retry(|| unsafe { libc::mkdir(c.as_ptr(), 0o777) }).map(|_| ())
}

/// Removes an empty folder.
pub fn rmdir(path: &Path) -> Result<(), i32> {
    let c = cpath(path)?;
    // SAFETY: NUL-terminated path.
    retry(|| unsafe { libc::rmdir(c.as_ptr()) }).map(|_| ())
}

/// Makes the directory entries beside `path` durable.
pub fn sync_dir_of(path: &Path) -> Result<()> {
    let dir = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let c = cpath(dir).map_err(|_| Code::Cantopen)?;
    // A directory that may not be opened cannot be synced; SQLite lets that pass, and so does this.
    // SAFETY: NUL-terminated path.
    let Ok(n) = retry(|| unsafe { libc::open(c.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0) }) else {
        return Ok(());
    };
    let fd = Fd::new(n);
    // SAFETY: our descriptor.
    match retry(|| unsafe { libc::fsync(fd.number) }) {
        Ok(_) | Err(libc::EINVAL) => Ok(()),
        Err(_) => Err(Code::IoerrDirFsync.into()),
    }
}

/// Reads at an offset until `buf` is full or the file ends; returns the number of bytes read.
pub fn pread(fd: &Fd, buf: &mut [u8], offset: u64) -> Result<usize, i32> {
    // SAFETY: `buf` is writable for its length.
    unsafe { pread_raw(fd, buf.as_mut_ptr(), buf.len(), offset) }
}

/// Reads into memory that holds nothing yet; what lies beyond the end of the file reads as zeros, and `false` says so.
pub fn pread_new<'b>(
    fd: &Fd,
    buf: &'b mut [MaybeUninit<u8>],
    offset: u64,
) -> Result<(&'b mut [u8], bool), i32> {
    // SAFETY: `buf` is writable for its length; the kernel only writes to it.
    let done = unsafe { pread_raw(fd, buf.as_mut_ptr().cast(), buf.len(), offset)? };
    iolite_base::bytes::zero_fill(&mut buf[done..]);
    // SAFETY: the first `done` bytes were written by the kernel, the rest just now.
    let bytes = unsafe { buf.assume_init_mut() };
    let whole = done == bytes.len();
    Ok((bytes, whole))
}

/// Reads up to `len` bytes to `to`; the number read is less only at the end of the file.
///
/// # Safety
/// `to` is writable for `len` bytes. It need not be initialised; the bytes counted in the answer are.
unsafe fn pread_raw(fd: &Fd, to: *mut u8, len: usize, offset: u64) -> Result<usize, i32> {
    let mut done = 0;
    while done < len {
        // SAFETY: `done` is less than `len`, so the rest lies within what the caller vouches for.
        let n = unsafe {
            abi::pread(fd.number, to.add(done).cast(), len - done, (offset + done as u64) as abi::Offset)
        };
        match n {
            0 => break,
            n if n > 0 => done += n as usize,
            _ => match errno() {
                libc::EINTR => {}
                e => return Err(e),
            },
        }
    }
    Ok(done)
}

/// Asks the kernel to begin writing a range to the disk, without waiting.
#[cfg(target_os = "linux")]
pub fn start_writing(fd: &Fd, offset: u64, len: u64) {
    // SAFETY: no memory is passed. A failure here shows in the next fsync, too.
    let _ = unsafe {
        libc::sync_file_range(
            fd.number,
            offset as libc::off64_t,
            len as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
}

/// Nothing to ask for here.
#[cfg(not(target_os = "linux"))]
pub fn start_writing(_fd: &Fd, _offset: u64, _len: u64) {}

/// Writes all of `buf` at an offset.
pub fn pwrite(fd: &Fd, buf: &[u8], offset: u64) -> Result<(), i32> {
    let mut done = 0;
    while done < buf.len() {
        let rest = &buf[done..];
        // SAFETY: `rest` is readable for its length.
        let n = unsafe {
            abi::pwrite(
                fd.number,
                rest.as_ptr() as *const libc::c_void,
                rest.len(),
                (offset + done as u64) as abi::Offset,
            )
        };
        match n {
            0 => return Err(libc::ENOSPC),
            n if n > 0 => done += n as usize,
            _ => match errno() {
                libc::EINTR => {}
                e => return Err(e),
            },
        }
    }
    Ok(())
}

/// Writes the parts one behind the other from an offset on.
#[cfg(target_os = "linux")]
pub fn pwritev(fd: &Fd, parts: &[&[u8]], mut offset: u64) -> Result<(), i32> {
    // What the system takes at once is at least this.
    for some in parts.chunks(512) {
        let list: Vec<libc::iovec> = some
            .iter()
            .map(|p| libc::iovec { iov_base: p.as_ptr() as *mut libc::c_void, iov_len: p.len() })
            .collect();
        // SAFETY: each entry is a readable slice that lives until the call is over; nothing is written to it.
        let n = unsafe {
            abi::pwritev(fd.number, list.as_ptr(), list.len() as libc::c_int, offset as abi::Offset)
        };
        // What it did not take, for whatever reason, goes part by part.
        let mut taken = n.max(0) as usize;
        for p in some {
            let now = taken.min(p.len());
            taken -= now;
            pwrite(fd, &p[now..], offset + now as u64)?;
            offset += p.len() as u64;
        }
    }
    Ok(())
}

/// Writes the parts one behind the other from an offset on.
#[cfg(not(target_os = "linux"))]
pub fn pwritev(fd: &Fd, parts: &[&[u8]], mut offset: u64) -> Result<(), i32> {
    for p in parts {
        pwrite(fd, p, offset)?;
        offset += p.len() as u64;
    }
    Ok(())
}

/// Sets the size.
pub fn ftruncate(fd: &Fd, size: u64) -> Result<(), i32> {
    // SAFETY: our descriptor.
    retry(|| unsafe { abi::ftruncate(fd.number, size as abi::Offset) }).map(|_| ())
}

/// Content and what is needed to find it again, the size among that, to the disk. Times of change are not
/// waited for, even if `full`: they cost a journal write of the file system and tell nobody anything.
pub fn fsync(fd: &Fd, full: bool) -> Result<(), i32> {
    #[cfg(target_os = "macos")]
    {
        let _ = full;
        // fsync alone stops at the drive's cache there.
        // SAFETY: our descriptor.
        if retry(|| unsafe { libc::fcntl(fd.number, libc::F_FULLFSYNC, 0) }).is_ok() {
            return Ok(());
        }
        // SAFETY: our descriptor.
        retry(|| unsafe { libc::fsync(fd.number) }).map(|_| ())
    }
    #[cfg(not(target_os = "macos"))]
    {
        let _ = full;
        // SAFETY: our descriptor.
        retry(|| unsafe { libc::fdatasync(fd.number) }).map(|_| ())
    }
}

/// Who owns a lock: the open file description or the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Open file description.
    Description,
    /// Process.
    Process,
}

/// One of `F_RDLCK`, `F_WRLCK`, `F_UNLCK` over a byte range, without waiting. `Err` is the error number.
pub fn set_lock(fd: &Fd, owner: Owner, kind: libc::c_int, start: u64, len: u64) -> Result<(), i32> {
    let cmd = match owner {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Owner::Description => libc::F_OFD_SETLK,
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Owner::Description => return Err(libc::EINVAL),
        Owner::Process => libc::F_SETLK,
    };
    let fl = flock(kind, start, len);
    // SAFETY: `fl` is a valid flock.
    retry(|| unsafe { libc::fcntl(fd.number, cmd, &fl) }).map(|_| ())
}

/// Which lock would stand in the way of an exclusive one over the range: `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
pub fn get_lock(fd: &Fd, owner: Owner, start: u64, len: u64) -> Result<libc::c_int, i32> {
    conflict(fd, owner, libc::F_WRLCK, start, len)
}

/// Which lock of somebody else a lock of this kind would conflict with: `F_UNLCK` for none.
pub fn conflict(fd: &Fd, owner: Owner, kind: libc::c_int, start: u64, len: u64) -> Result<libc::c_int, i32> {
    let cmd = match owner {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Owner::Description => libc::F_OFD_GETLK,
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Owner::Description => return Err(libc::EINVAL),
        Owner::Process => libc::F_GETLK,
    };
    let mut fl = flock(kind, start, len);
    // SAFETY: `fl` is a valid, writable flock.
    retry(|| unsafe { libc::fcntl(fd.number, cmd, &mut fl) })?;
    Ok(fl.l_type as libc::c_int)
}

fn flock(kind: libc::c_int, start: u64, len: u64) -> libc::flock {
    // SAFETY: all-zero is a valid flock; OFD calls ask for l_pid to be 0.
    let mut fl: libc::flock = unsafe { std::mem::zeroed() };
    fl.l_type = kind as _;
    fl.l_whence = libc::SEEK_SET as _;
    fl.l_start = start as libc::off_t;
    fl.l_len = len as libc::off_t;
    fl
}

/// A mapping of a file, undone when dropped. In a forked child it shows zeros (module `fork`).
pub struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
    watch: Option<fork::Watched>,
}

// SAFETY: a mapping is plain memory; whoever shares it uses atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes from `offset`, shared, writable if `write`.
    pub fn new(fd: &Fd, offset: u64, len: usize, write: bool) -> Result<Mapping, i32> {
        let prot = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let p = unsafe {
            abi::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, fd.number, offset as abi::Offset)
        };
        if p == libc::MAP_FAILED {
            return Err(errno());
        }
        let watch = Some(fork::Watched::mapping(p.cast(), len));
        Ok(Mapping { ptr: NonNull::new(p as *mut u8).ok_or(libc::ENOMEM)?, len, watch })
    }

    /// The first byte.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(w) = self.watch.take() {
            w.leave();
        }
        // SAFETY: mapped in `new` with this length; regions handed out hold an Arc of this.
        unsafe { libc::munmap(self.ptr.as_ptr() as *mut libc::c_void, self.len) };
    }
}

/// The page size of the machine.
pub fn machine_page() -> usize {
    // SAFETY: a plain query.
    let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if n > 0 { n as usize } else { 4096 }
}

/// A kernel clock in nanoseconds.
pub fn clock(which: libc::clockid_t) -> u64 {
    // SAFETY: all-zero is a valid timespec.
    let mut t: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `t` is writable.
    unsafe { libc::clock_gettime(which, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// The local time zone's offset from UTC, in seconds, at a moment given in seconds since 1970; 0 where the system does not tell.
pub fn local_offset(unix_seconds: i64) -> i64 {
    let at = unix_seconds as libc::time_t;
    // SAFETY: all-zero is a valid tm.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are there for the time of the call, which keeps neither.
    let told = unsafe { libc::localtime_r(&at, &mut local) };
    if told.is_null() { 0 } else { local.tm_gmtoff as i64 }
}

/// Random bytes from the kernel; from clock and process number should it refuse.
pub fn random(out: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `out` is writable for its length.
        let n = unsafe { libc::getrandom(out.as_mut_ptr() as *mut libc::c_void, out.len(), 0) };
        if n == out.len() as isize {
            return;
        }
    }
    if let Ok(fd) = open(Path::new("/dev/urandom"), How::default())
        && pread_stream(&fd, out)
    {
        return;
    }
    // SAFETY: a plain query.
    let mut x = clock(libc::CLOCK_REALTIME) ^ (unsafe { libc::getpid() } as u64) << 32;
    for b in out {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *b = (x >> 33) as u8;
    }
}

fn pread_stream(fd: &Fd, out: &mut [u8]) -> bool {
    let mut done = 0;
    while done < out.len() {
        let rest = &mut out[done..];
        // SAFETY: `rest` is writable for its length.
        let n = unsafe { libc::read(fd.number, rest.as_mut_ptr() as *mut libc::c_void, rest.len()) };
        if n > 0 {
            done += n as usize;
        } else if n == 0 || errno() != libc::EINTR {
            return false;
        }
    }
    true
}

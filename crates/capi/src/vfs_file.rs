//! `sqlite3_file`: files of our VFSes as C sees them, by the methods of version 3.
//!
//! A program opens them by the VFS of `sqlite3_vfs_find`, or is shown those of the engine by `sqlite3_file_control`; the
//! engine opens its own without this. What always holds: `methods` of a file that could not be opened is NULL, so that nobody
//! closes it; the engine's files are closed by the engine alone.

use crate::file_answers::Modes;
use crate::{OK, guard};
use iolite::Code;
use iolite::engine::Btree;
use iolite_os::{File, FileKind, LockLevel, OpenFlags, ShmLock, ShmRegion, SyncKind, Vfs};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

const READ_ONLY: c_int = 1;
const READ_WRITE: c_int = 2;
const CREATE: c_int = 4;
const DELETE_ON_CLOSE: c_int = 8;
const EXCLUSIVE: c_int = 0x10;
/// The bits that say what a file is for.
const KINDS: [(c_int, FileKind); 8] = [
    (0x100, FileKind::MainDb),
    (0x200, FileKind::TempDb),
    (0x400, FileKind::TempDb),
    (0x800, FileKind::Journal),
    (0x1000, FileKind::Temp),
    (0x2000, FileKind::Temp),
    (0x4000, FileKind::SuperJournal),
    (0x80000, FileKind::Wal),
];

/// A `sqlite3_file`, in memory of the caller. What is behind `methods` belongs to the VFS: here it is a file of ours.
#[repr(C)]
pub struct CFile {
    pub(crate) methods: *const Methods,
    own: *mut OwnFile,
}

/// A file of ours that C has, or sees.
struct OwnFile {
    file: Handle,
    vfs: String,
    /// Shared memory that C has mapped.
    regions: Vec<ShmRegion>,
    modes: Modes,
}

enum Handle {
    /// Opened by C.
    Own(Box<dyn File>),
    /// The engine's, which C may look at while the connection is open.
    Engine(*const dyn File),
}

/// That a symbolic link was on the way, which is no error.
pub(crate) const OK_SYMLINK: c_int = 0x200;

pub(crate) type Symbol = Option<unsafe extern "C" fn()>;

/// A `sqlite3_vfs` of version 3. Of methods that a program may leave out, none is called without looking.
#[repr(C)]
pub struct CVfs {
    pub(crate) version: c_int,
    pub(crate) file_size: c_int,
    pub(crate) longest_path: c_int,
    pub(crate) next: *mut CVfs,
    pub(crate) name: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) open:
        Option<unsafe extern "C" fn(*mut CVfs, *const c_char, *mut CFile, c_int, *mut c_int) -> c_int>,
    pub(crate) delete: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int) -> c_int>,
    pub(crate) access: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub(crate) full_path: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, c_int, *mut c_char) -> c_int>,
    pub(crate) dl_open: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> *mut c_void>,
    pub(crate) dl_error: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char)>,
    pub(crate) dl_sym: Option<unsafe extern "C" fn(*mut CVfs, *mut c_void, *const c_char) -> Symbol>,
    pub(crate) dl_close: Option<unsafe extern "C" fn(*mut CVfs, *mut c_void)>,
    pub(crate) randomness: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) sleep: Option<unsafe extern "C" fn(*mut CVfs, c_int) -> c_int>,
    pub(crate) current_time: Option<unsafe extern "C" fn(*mut CVfs, *mut f64) -> c_int>,
    pub(crate) last_error: Option<unsafe extern "C" fn(*mut CVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) current_time_ms: Option<unsafe extern "C" fn(*mut CVfs, *mut i64) -> c_int>,
    pub(crate) set_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char, Symbol) -> c_int>,
    pub(crate) get_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> Symbol>,
    pub(crate) next_call: Option<unsafe extern "C" fn(*mut CVfs, *const c_char) -> *const c_char>,
}

/// A `sqlite3_io_methods` of version 3. Of methods that a program may leave out, none is called without looking.
#[repr(C)]
pub struct Methods {
    version: c_int,
    pub(crate) close: Option<unsafe extern "C" fn(*mut CFile) -> c_int>,
    pub(crate) read: Option<unsafe extern "C" fn(*mut CFile, *mut c_void, c_int, i64) -> c_int>,
    pub(crate) write: Option<unsafe extern "C" fn(*mut CFile, *const c_void, c_int, i64) -> c_int>,
    pub(crate) truncate: Option<unsafe extern "C" fn(*mut CFile, i64) -> c_int>,
    pub(crate) sync: Option<unsafe extern "C" fn(*mut CFile, c_int) -> c_int>,
    pub(crate) size: Option<unsafe extern "C" fn(*mut CFile, *mut i64) -> c_int>,
    pub(crate) lock: Option<unsafe extern "C" fn(*mut CFile, c_int) -> c_int>,
    pub(crate) unlock: Option<unsafe extern "C" fn(*mut CFile, c_int) -> c_int>,
    pub(crate) check_reserved: Option<unsafe extern "C" fn(*mut CFile, *mut c_int) -> c_int>,
    pub(crate) control: Option<unsafe extern "C" fn(*mut CFile, c_int, *mut c_void) -> c_int>,
    pub(crate) sector_size: Option<unsafe extern "C" fn(*mut CFile) -> c_int>,
    pub(crate) characteristics: Option<unsafe extern "C" fn(*mut CFile) -> c_int>,
    shm_map: Option<ShmMap>,
    shm_lock: Option<unsafe extern "C" fn(*mut CFile, c_int, c_int, c_int) -> c_int>,
    shm_barrier: Option<unsafe extern "C" fn(*mut CFile)>,
    shm_unmap: Option<unsafe extern "C" fn(*mut CFile, c_int) -> c_int>,
    fetch: Option<Fetch>,
    unfetch: Option<unsafe extern "C" fn(*mut CFile, i64, *mut c_void) -> c_int>,
}

type ShmMap = unsafe extern "C" fn(*mut CFile, c_int, c_int, c_int, *mut *mut c_void) -> c_int;
type Fetch = unsafe extern "C" fn(*mut CFile, i64, c_int, *mut *mut c_void) -> c_int;

/// Readers of methods that only later versions have: behind the end of an older structure lies something else.
macro_rules! since {
    ($version:literal: $($name:ident -> $of:ty),*) => {
        impl Methods {
            $(pub(crate) fn $name(&self) -> Option<$of> {
                if self.version >= $version { self.$name } else { None }
            })*
        }
    };
}
since!(2: shm_map -> ShmMap, shm_lock -> unsafe extern "C" fn(*mut CFile, c_int, c_int, c_int) -> c_int);
since!(2: shm_barrier -> unsafe extern "C" fn(*mut CFile), shm_unmap -> unsafe extern "C" fn(*mut CFile, c_int) -> c_int);
since!(3: fetch -> Fetch, unfetch -> unsafe extern "C" fn(*mut CFile, i64, *mut c_void) -> c_int);

static METHODS: Methods = Methods {
    version: 3,
    close: Some(close),
    read: Some(read),
    write: Some(write),
    truncate: Some(truncate),
    sync: Some(sync),
    size: Some(size),
    lock: Some(lock),
    unlock: Some(unlock),
    check_reserved: Some(check_reserved),
    control: Some(control),
    sector_size: Some(sector_size),
    characteristics: Some(characteristics),
    shm_map: Some(shm_map),
    shm_lock: Some(shm_lock),
    shm_barrier: Some(shm_barrier),
    shm_unmap: Some(shm_unmap),
    fetch: Some(fetch),
    unfetch: Some(unfetch),
};

/// The same for files without shared memory.
static PLAIN_METHODS: Methods = Methods { version: 1, ..METHODS };

impl CFile {
    /// No file: what C sees where there is none.
    pub(crate) const NONE: CFile = CFile { methods: null(), own: null_mut() };

    /// The engine's file as C sees it.
    ///
    /// # Safety
    /// `file` is used by C only while it is open, and by one thread at a time.
    pub(crate) unsafe fn of_engine(file: *const dyn File, vfs: &str) -> CFile {
        let shm = (*file).has_shm();
        let own = OwnFile::new(Handle::Engine(file), vfs);
        CFile { methods: if shm { &METHODS } else { &PLAIN_METHODS }, own: Box::into_raw(Box::new(own)) }
    }

    /// Whether it stands for this file of the engine's.
    pub(crate) fn is_of_engine(&self, file: *const dyn File) -> bool {
        // SAFETY: NULL or ours until `forget`.
        let own = unsafe { self.own.as_ref() };
        matches!(own, Some(OwnFile { file: Handle::Engine(f), .. }) if std::ptr::addr_eq(*f, file))
    }

    /// Lets go of what it stands for.
    pub(crate) unsafe fn forget(&mut self) {
        self.methods = null();
        let own = std::mem::replace(&mut self.own, null_mut());
        if !own.is_null() {
            guard((), || drop(Box::from_raw(own)));
        }
    }
}

impl OwnFile {
    fn new(file: Handle, vfs: &str) -> OwnFile {
        OwnFile { file, vfs: vfs.to_owned(), regions: Vec::new(), modes: Modes::default() }
    }

    fn file(&self) -> &dyn File {
        match &self.file {
            Handle::Own(f) => &**f,
            // SAFETY: as `CFile::of_engine` was promised.
            Handle::Engine(f) => unsafe { &**f },
        }
    }
}

/// Opens a file into the caller's memory; no path: a temporary one.
pub(crate) unsafe fn open(
    vfs: &Arc<dyn Vfs>,
    path: Option<&Path>,
    out: *mut CFile,
    flags: c_int,
    got: *mut c_int,
) -> c_int {
    let Some(out) = out.as_mut() else { return crate::MISUSE };
    (out.methods, out.own) = (null(), null_mut());
    let kind = KINDS.iter().find(|k| flags & k.0 != 0).map_or(FileKind::Temp, |k| k.1);
    let how = OpenFlags {
        read_only: flags & READ_ONLY != 0,
        create: flags & CREATE != 0,
        exclusive: flags & EXCLUSIVE != 0,
        or_read_only: true,
        ..OpenFlags::read_write(kind)
    };
    let opened: iolite::Result<Box<dyn File>> = guard(Err(Code::Internal.into()), || {
        let file = vfs.open(path, how)?;
        if let Some(p) = path.filter(|_| flags & DELETE_ON_CLOSE != 0) {
            // Nobody else finds it from now on; it goes when it is closed.
            vfs.delete(p, false)?;
        }
        Ok(file)
    });
    match opened {
        Ok(file) => {
            let read_only = file.is_read_only();
            out.methods = if file.has_shm() { &METHODS } else { &PLAIN_METHODS };
            out.own = Box::into_raw(Box::new(OwnFile::new(Handle::Own(file), vfs.name())));
            if let Some(got) = got.as_mut() {
                *got = if read_only { flags & !(READ_WRITE | CREATE) | READ_ONLY } else { flags };
            }
            OK
        }
        Err(e) => e.code().number() as c_int,
    }
}

/// Runs `f`; answers its error's code.
pub(crate) fn coded(f: impl FnOnce() -> iolite::Result<()>) -> c_int {
    crate::guard(crate::INTERNAL, || f().map_or_else(|e| e.code().number() as c_int, |()| crate::OK))
}

/// Runs `f` on an open file; answers its error's code.
unsafe fn on(f: *mut CFile, run: impl FnOnce(&dyn File) -> iolite::Result<()>) -> c_int {
    with(f, |own| run(own.file()))
}

/// Runs `f` on what is behind an open file; answers its error's code.
unsafe fn with(f: *mut CFile, run: impl FnOnce(&mut OwnFile) -> iolite::Result<()>) -> c_int {
    match f.as_mut().and_then(|f| f.own.as_mut()) {
        Some(own) => coded(|| run(own)),
        None => crate::MISUSE,
    }
}

unsafe extern "C" fn close(f: *mut CFile) -> c_int {
    let Some(f) = f.as_mut() else { return crate::MISUSE };
    if let Some(OwnFile { file: Handle::Engine(_), .. }) = f.own.as_ref() {
        // It is the connection that closes it.
        return crate::MISUSE;
    }
    f.forget();
    OK
}

/// An offset and a length as C gives them.
fn place(n: c_int, offset: i64) -> iolite::Result<(usize, u64)> {
    match (usize::try_from(n), u64::try_from(offset)) {
        (Ok(n), Ok(offset)) => Ok((n, offset)),
        _ => Err(Code::Misuse.into()),
    }
}

unsafe extern "C" fn read(f: *mut CFile, to: *mut c_void, n: c_int, offset: i64) -> c_int {
    on(f, |file| {
        let (n, offset) = place(n, offset)?;
        let whole = file.read(std::slice::from_raw_parts_mut(to as *mut u8, n), offset)?;
        if whole { Ok(()) } else { Err(Code::IoerrShortRead.into()) }
    })
}

unsafe extern "C" fn write(f: *mut CFile, from: *const c_void, n: c_int, offset: i64) -> c_int {
    on(f, |file| {
        let (n, offset) = place(n, offset)?;
        file.write(std::slice::from_raw_parts(from as *const u8, n), offset)
    })
}

unsafe extern "C" fn truncate(f: *mut CFile, size: i64) -> c_int {
    on(f, |file| file.truncate(place(0, size)?.1))
}

unsafe extern "C" fn sync(f: *mut CFile, flags: c_int) -> c_int {
    const FULL: c_int = 3;
    // Content and size are on the disk either way.
    on(f, |file| file.sync(if flags & 0xf == FULL { SyncKind::Full } else { SyncKind::Data }))
}

unsafe extern "C" fn size(f: *mut CFile, out: *mut i64) -> c_int {
    on(f, |file| {
        *out = file.size()? as i64;
        Ok(())
    })
}

/// A lock by its number in the C interface.
fn level(n: c_int) -> iolite::Result<LockLevel> {
    Ok(match n {
        0 => LockLevel::None,
        1 => LockLevel::Shared,
        2 => LockLevel::Reserved,
        3 => LockLevel::Pending,
        4 => LockLevel::Exclusive,
        _ => return Err(Code::Misuse.into()),
    })
}

unsafe extern "C" fn lock(f: *mut CFile, to: c_int) -> c_int {
    with(f, |own| {
        let locked = own.file().lock(level(to)?);
        if locked.is_ok() {
            own.modes.level = own.modes.level.max(to);
        }
        locked
    })
}

unsafe extern "C" fn unlock(f: *mut CFile, to: c_int) -> c_int {
    with(f, |own| {
        own.modes.level = own.modes.level.min(to);
        own.file().unlock(level(to)?)
    })
}

unsafe extern "C" fn check_reserved(f: *mut CFile, out: *mut c_int) -> c_int {
    on(f, |file| {
        *out = file.check_reserved()? as c_int;
        Ok(())
    })
}

unsafe extern "C" fn control(f: *mut CFile, op: c_int, arg: *mut c_void) -> c_int {
    match f.as_mut().and_then(|f| f.own.as_mut()) {
        Some(own) => {
            let OwnFile { file, modes, vfs, .. } = own;
            let file: &dyn File = match file {
                Handle::Own(f) => &**f,
                Handle::Engine(f) => &**f,
            };
            guard(crate::INTERNAL, || crate::file_answers::of_file(file, vfs, modes, op, arg))
        }
        None => crate::MISUSE,
    }
}

unsafe extern "C" fn sector_size(f: *mut CFile) -> c_int {
    f.as_ref().and_then(|f| f.own.as_ref()).map_or(4096, |own| own.file().sector_size() as c_int)
}

unsafe extern "C" fn characteristics(f: *mut CFile) -> c_int {
    const POWERSAFE_OVERWRITE: c_int = 0x1000;
    const SUBPAGE_READ: c_int = 0x8000;
    let Some(own) = f.as_ref().and_then(|f| f.own.as_ref()) else { return 0 };
    let safe = own.file().characteristics().powersafe_overwrite && !own.modes.no_powersafe_overwrite;
    SUBPAGE_READ | if safe { POWERSAFE_OVERWRITE } else { 0 }
}

unsafe extern "C" fn shm_map(
    f: *mut CFile,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    with(f, |own| {
        *out = null_mut();
        let (region, size) = (region.max(0) as usize, size.max(0) as usize);
        while own.regions.len() <= region {
            match own.file().shm_map(own.regions.len(), size, extend != 0)? {
                Some(r) => own.regions.push(r),
                None => return Ok(()),
            }
        }
        *out = own.regions[region].as_ptr().cast();
        if own.file().shm_read_only() { Err(Code::Readonly.into()) } else { Ok(()) }
    })
}

unsafe extern "C" fn shm_lock(f: *mut CFile, first: c_int, n: c_int, flags: c_int) -> c_int {
    let how = match flags {
        5 => ShmLock::UnlockShared,
        6 => ShmLock::Shared,
        9 => ShmLock::UnlockExclusive,
        10 => ShmLock::Exclusive,
        _ => return crate::MISUSE,
    };
    if first < 0 || n < 1 || first + n > 8 {
        return crate::MISUSE;
    }
    on(f, |file| file.shm_lock(first as u8, n as u8, how))
}

unsafe extern "C" fn shm_barrier(f: *mut CFile) {
    on(f, |file| {
        file.shm_barrier();
        Ok(())
    });
}

unsafe extern "C" fn shm_unmap(f: *mut CFile, delete: c_int) -> c_int {
    with(f, |own| {
        own.regions.clear();
        own.file().shm_unmap(delete != 0)
    })
}

/// Nothing is mapped: who asks reads.
unsafe extern "C" fn fetch(_: *mut CFile, _: i64, _: c_int, out: *mut *mut c_void) -> c_int {
    *out = null_mut();
    OK
}

unsafe extern "C" fn unfetch(_: *mut CFile, _: i64, _: *mut c_void) -> c_int {
    OK
}

/// The file of a registered VFS behind a database.
pub(crate) fn foreign(b: &Btree) -> Option<*mut CFile> {
    b.with_files(|file, _| file.and_then(|f| f.foreign())).ok().flatten().map(|f| f.as_ptr().cast())
}

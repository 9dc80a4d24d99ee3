//! Berkeley DB 5.3 by its C API. Its methods are pointers inside the handles; the offsets are those of the ABI that
//! distributions ship for 64-bit machines (`db.h` of 5.3.28), and the version is checked before any is used.

use iolite_bench::engine::{Error, Result};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

/// `DBT`.
#[repr(C)]
struct Dbt {
    data: *mut c_void,
    size: u32,
    ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

impl Dbt {
    fn of(b: &[u8]) -> Dbt {
        let data = b.as_ptr() as *mut c_void;
        Dbt { data, size: b.len() as u32, ulen: 0, dlen: 0, doff: 0, app_data: ptr::null_mut(), flags: 0 }
    }
}

const DB_OPEN: usize = 1008;
const DB_CLOSE: usize = 568;
const DB_PUT: usize = 1024;
const DB_GET: usize = 632;
const DB_SET_CACHE: usize = 1096;
const ENV_OPEN: usize = 1328;
const ENV_CLOSE: usize = 488;
const ENV_TXN_BEGIN: usize = 2040;
const ENV_SET_CACHE: usize = 1632;
const TXN_COMMIT: usize = 240;

const CREATE: u32 = 0x1;
const BTREE: c_int = 1;
const TRANSACTIONAL: u32 = 0x2000 | 0x100 | 0x200 | 0x400;
const USER_MEMORY: u32 = 0x800;
const AUTO_COMMIT: u32 = 0x100;
const NOT_FOUND: c_int = -30988;

type Open = unsafe extern "C" fn(Handle, Handle, *const c_char, *const c_char, c_int, u32, c_int) -> c_int;
type Close = unsafe extern "C" fn(Handle, u32) -> c_int;
type Access = unsafe extern "C" fn(Handle, Handle, *mut Dbt, *mut Dbt, u32) -> c_int;
type SetCache = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
type EnvOpen = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
type TxnBegin = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
type TxnEnd = unsafe extern "C" fn(Handle, u32) -> c_int;

/// The library.
pub struct Api {
    db_create: unsafe extern "C" fn(*mut Handle, Handle, u32) -> c_int,
    env_create: unsafe extern "C" fn(*mut Handle, u32) -> c_int,
    patch: c_int,
}

/// A database, in an environment or without.
pub struct Db {
    env: Handle,
    db: Handle,
}

/// A method of a handle.
///
/// # Safety
/// `h` is a handle whose method of type `T` lies at `offset`.
unsafe fn method<T: Copy>(h: Handle, offset: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { h.cast::<u8>().add(offset).cast::<T>().read() }
}

fn check(rc: c_int, what: &str) -> Result<()> {
    if rc == 0 { Ok(()) } else { Err(Error::from(format!("Berkeley DB: {what}: {rc}"))) }
}

impl Api {
    /// Opens the library, if it is 5.3.
    pub fn load(names: &[String]) -> Result<&'static Api> {
        let l = super::open(names)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the types are those of `db.h`; three valid places.
        let api = unsafe {
            type Version = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
            let version: Version = super::symbol(l, "db_version")?;
            version(&mut major, &mut minor, &mut patch);
            Api {
                db_create: super::symbol(l, "db_create")?,
                env_create: super::symbol(l, "db_env_create")?,
                patch,
            }
        };
        if (major, minor) != (5, 3) {
            return Err(format!("absent: Berkeley DB {major}.{minor} is there, 5.3 is wanted").into());
        }
        Ok(Box::leak(Box::new(api)))
    }

    /// Its version.
    pub fn version(&self) -> String {
        format!("Berkeley DB 5.3.{}", self.patch)
    }

    /// Opens or creates a B-tree: with a transactional environment in `home`, or without; without a file name in memory.
    pub fn open(&self, home: Option<&Path>, file: Option<&str>, cache: u32) -> Result<Db> {
        let mut d = Db { env: ptr::null_mut(), db: ptr::null_mut() };
        let c_text = |s: &str| CString::new(s).map_err(|e| e.to_string());
        let name = file.map(c_text).transpose()?;
        let name = name.as_ref().map_or(ptr::null(), |n| n.as_ptr());
        // SAFETY: handles are new and valid, strings end with NUL, and the version says that the offsets hold.
        unsafe {
            if let Some(h) = home {
                let h = c_text(&h.to_string_lossy())?;
                check((self.env_create)(&mut d.env, 0), "environment")?;
                check(method::<SetCache>(d.env, ENV_SET_CACHE)(d.env, 0, cache, 1), "cache")?;
                check(
                    method::<EnvOpen>(d.env, ENV_OPEN)(d.env, h.as_ptr(), CREATE | TRANSACTIONAL, 0),
                    "open",
                )?;
            }
            check((self.db_create)(&mut d.db, d.env, 0), "handle")?;
            if d.env.is_null() {
                check(method::<SetCache>(d.db, DB_SET_CACHE)(d.db, 0, cache, 1), "cache")?;
            }
            let flags = CREATE | if d.env.is_null() { 0 } else { AUTO_COMMIT };
            let open = method::<Open>(d.db, DB_OPEN);
            check(open(d.db, ptr::null_mut(), name, ptr::null(), BTREE, flags, 0o644), "file")?;
        }
        Ok(d)
    }
}

/// A transaction; without an environment, nothing.
pub struct Txn(Handle);

impl Db {
    /// Begins a transaction, if there is an environment.
    pub fn begin(&mut self) -> Result<Txn> {
        let mut t = ptr::null_mut();
        if !self.env.is_null() {
            // SAFETY: the environment is open and `t` a valid place.
            let rc =
                unsafe { method::<TxnBegin>(self.env, ENV_TXN_BEGIN)(self.env, ptr::null_mut(), &mut t, 0) };
            check(rc, "begin")?;
        }
        Ok(Txn(t))
    }

    /// Writes a value.
    pub fn put(&mut self, t: &Txn, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut k, mut v) = (Dbt::of(key), Dbt::of(value));
        // SAFETY: the database is open, the transaction is nothing or open; the bytes are copied by the call.
        check(unsafe { method::<Access>(self.db, DB_PUT)(self.db, t.0, &mut k, &mut v, 0) }, "put")
    }

    /// Reads a value into a buffer of the caller's.
    pub fn get(&mut self, t: &Txn, key: &[u8], into: &mut [u8]) -> Result<Option<usize>> {
        let mut k = Dbt::of(key);
        let mut v = Dbt::of(into);
        (v.data, v.ulen, v.flags) = (into.as_mut_ptr().cast(), into.len() as u32, USER_MEMORY);
        // SAFETY: as above; the value goes into `into`, whose length is told.
        match unsafe { method::<Access>(self.db, DB_GET)(self.db, t.0, &mut k, &mut v, 0) } {
            NOT_FOUND => Ok(None),
            rc => check(rc, "get").map(|()| Some(v.size as usize)),
        }
    }
}

impl Txn {
    /// No transaction: each call stands alone.
    pub fn none() -> Txn {
        Txn(ptr::null_mut())
    }

    /// Commits, with the sync that the environment promises.
    pub fn commit(self) -> Result<()> {
        if self.0.is_null() {
            return Ok(());
        }
        // SAFETY: the transaction is open and ends here.
        check(unsafe { method::<TxnEnd>(self.0, TXN_COMMIT)(self.0, 0) }, "commit")
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: handles are closed once, the database before its environment.
        unsafe {
            if !self.db.is_null() {
                method::<Close>(self.db, DB_CLOSE)(self.db, 0);
            }
            if !self.env.is_null() {
                method::<Close>(self.env, ENV_CLOSE)(self.env, 0);
            }
        }
    }
}

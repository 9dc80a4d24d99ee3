//! LMDB by its C API: an environment with one unnamed database, read and write transactions.

use iolite_bench::engine::{Error, Result};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

type Handle = *mut c_void;

/// `MDB_val`.
#[repr(C)]
struct Val {
    size: usize,
    data: *mut c_void,
}

impl Val {
    fn of(b: &[u8]) -> Val {
        Val { size: b.len(), data: b.as_ptr() as *mut c_void }
    }
}

/// Flags of an environment, as in `lmdb.h`.
pub const NO_SUBDIR: c_uint = 0x4000;
/// Commits do not sync.
pub const NO_SYNC: c_uint = 0x10000;
const READ_ONLY: c_uint = 0x20000;
/// Keys are integers of the machine's own order.
pub const INTEGER_KEY: c_uint = 0x08;
const CREATE: c_uint = 0x40000;
const NOT_FOUND: c_int = -30798;

struct Calls {
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char,
    env_create: unsafe extern "C" fn(*mut Handle) -> c_int,
    env_set_mapsize: unsafe extern "C" fn(Handle, usize) -> c_int,
    env_open: unsafe extern "C" fn(Handle, *const c_char, c_uint, c_uint) -> c_int,
    env_close: unsafe extern "C" fn(Handle),
    txn_begin: unsafe extern "C" fn(Handle, Handle, c_uint, *mut Handle) -> c_int,
    txn_commit: unsafe extern "C" fn(Handle) -> c_int,
    txn_abort: unsafe extern "C" fn(Handle),
    txn_reset: unsafe extern "C" fn(Handle),
    txn_renew: unsafe extern "C" fn(Handle) -> c_int,
    dbi_open: unsafe extern "C" fn(Handle, *const c_char, c_uint, *mut c_uint) -> c_int,
    get: unsafe extern "C" fn(Handle, c_uint, *mut Val, *mut Val) -> c_int,
    put: unsafe extern "C" fn(Handle, c_uint, *mut Val, *mut Val, c_uint) -> c_int,
}

/// The library.
pub struct Api(Calls);

/// An environment with its one database.
pub struct Env {
    api: &'static Api,
    env: Handle,
    dbi: c_uint,
}

/// A transaction; it keeps its environment open.
pub struct Txn {
    env: Rc<Env>,
    txn: Handle,
}

impl Api {
    /// Opens the library.
    pub fn load(names: &[String]) -> Result<&'static Api> {
        let l: &'static Library = super::open(names)?;
        use super::symbol as s;
        // SAFETY: the types are those of `lmdb.h`.
        let calls = unsafe {
            Calls {
                strerror: s(l, "mdb_strerror")?,
                version: s(l, "mdb_version")?,
                env_create: s(l, "mdb_env_create")?,
                env_set_mapsize: s(l, "mdb_env_set_mapsize")?,
                env_open: s(l, "mdb_env_open")?,
                env_close: s(l, "mdb_env_close")?,
                txn_begin: s(l, "mdb_txn_begin")?,
                txn_commit: s(l, "mdb_txn_commit")?,
                txn_abort: s(l, "mdb_txn_abort")?,
                txn_reset: s(l, "mdb_txn_reset")?,
                txn_renew: s(l, "mdb_txn_renew")?,
                dbi_open: s(l, "mdb_dbi_open")?,
                get: s(l, "mdb_get")?,
                put: s(l, "mdb_put")?,
            }
        };
        Ok(Box::leak(Box::new(Api(calls))))
    }

    /// Its version.
    pub fn version(&self) -> String {
        let mut n = [0; 3];
        let [a, b, c] = &mut n;
        // SAFETY: three valid places.
        unsafe { (self.0.version)(a, b, c) };
        format!("LMDB {}.{}.{}", n[0], n[1], n[2])
    }

    fn check(&self, rc: c_int) -> Result<()> {
        if rc == 0 {
            return Ok(());
        }
        // SAFETY: the library answers a static string.
        let text = unsafe { CStr::from_ptr((self.0.strerror)(rc)) };
        Err(Error::from(format!("LMDB: {}", text.to_string_lossy())))
    }

    /// Opens or creates an environment in one file.
    pub fn open(&'static self, path: &Path, flags: c_uint, db_flags: c_uint) -> Result<Rc<Env>> {
        let name = CString::new(path.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        let mut env = Env { api: self, env: ptr::null_mut(), dbi: 0 };
        // SAFETY: places are valid, the path ends with NUL; the environment is closed once, by its drop.
        unsafe {
            self.check((self.0.env_create)(&mut env.env))?;
            self.check((self.0.env_set_mapsize)(env.env, 4 << 30))?;
            self.check((self.0.env_open)(env.env, name.as_ptr(), flags | NO_SUBDIR, 0o644))?;
        }
        let (mut txn, mut dbi) = (ptr::null_mut(), 0);
        // SAFETY: the environment is open, places are valid; the transaction ends here.
        unsafe {
            self.check((self.0.txn_begin)(env.env, ptr::null_mut(), 0, &mut txn))?;
            self.check((self.0.dbi_open)(txn, ptr::null(), db_flags | CREATE, &mut dbi))?;
            self.check((self.0.txn_commit)(txn))?;
        }
        env.dbi = dbi;
        Ok(Rc::new(env))
    }
}

impl Env {
    /// Begins a transaction.
    pub fn begin(self: &Rc<Env>, read_only: bool) -> Result<Txn> {
        let mut txn = ptr::null_mut();
        let flags = if read_only { READ_ONLY } else { 0 };
        // SAFETY: the environment is open and `txn` a valid place.
        self.api.check(unsafe { (self.api.0.txn_begin)(self.env, ptr::null_mut(), flags, &mut txn) })?;
        Ok(Txn { env: self.clone(), txn })
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: closed once; transactions keep the environment, so none is left.
        unsafe { (self.api.0.env_close)(self.env) };
    }
}

impl Txn {
    /// Reads a value.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut k, mut v) = (Val::of(key), Val { size: 0, data: ptr::null_mut() });
        // SAFETY: the transaction is open; what is found stays mapped until it ends, and it is borrowed until then.
        unsafe {
            match (self.env.api.0.get)(self.txn, self.env.dbi, &mut k, &mut v) {
                0 => Ok(Some(std::slice::from_raw_parts(v.data.cast(), v.size))),
                NOT_FOUND => Ok(None),
                rc => self.env.api.check(rc).map(|()| None),
            }
        }
    }

    /// Writes a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut k, mut v) = (Val::of(key), Val::of(value));
        // SAFETY: the transaction is open; the bytes are copied by the call.
        self.env.api.check(unsafe { (self.env.api.0.put)(self.txn, self.env.dbi, &mut k, &mut v, 0) })
    }

    /// Commits.
    pub fn commit(mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.txn, ptr::null_mut());
        // SAFETY: the transaction is open and ends here, once.
        self.env.api.check(unsafe { (self.env.api.0.txn_commit)(txn) })
    }

    /// Ends a reading transaction and begins it anew on what is committed now.
    pub fn renew(&mut self) -> Result<()> {
        // SAFETY: the transaction is a reading one that is open; nothing read is still borrowed.
        unsafe {
            (self.env.api.0.txn_reset)(self.txn);
            self.env.api.check((self.env.api.0.txn_renew)(self.txn))
        }
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: the transaction was not committed.
            unsafe { (self.env.api.0.txn_abort)(self.txn) };
        }
    }
}

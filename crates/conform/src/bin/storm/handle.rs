//! A connection of either library, by its C functions; several threads may use it at once.

#[allow(dead_code)] // The table is `cdiffer`'s.
#[path = "../cdiffer/api.rs"]
mod api;

use api::{Api, P};
use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// Why a call did nothing.
#[derive(Debug)]
pub enum Trouble {
    /// Somebody was in the way, or wanted it so: that is in order.
    Passing,
    /// It is not.
    Wrong(i32, String),
}

impl Trouble {
    pub fn is_passing(&self) -> bool {
        matches!(self, Trouble::Passing)
    }
}

pub type Result<T> = std::result::Result<T, Trouble>;

const ROW: c_int = 100;
const DONE: c_int = 101;
const READONLY: c_int = 8;
/// READWRITE, CREATE, URI, FULLMUTEX.
const OPEN: c_int = 2 | 4 | 0x40 | 0x1_0000;
/// BUSY, LOCKED, INTERRUPT, ABORT, SCHEMA.
const PASSING: [c_int; 5] = [5, 6, 9, 4, 17];
/// What else may be told of a statement that comes at a bad time.
const BAD_TIMES: [&str; 4] = ["in progress", "within a transaction", "from within", "inside a transaction"];
/// A backup is given up after so many steps that found somebody in the way.
const MOST_WAITS: u32 = 20;
const FREE_ON_CLOSE_RESIZEABLE: u32 = 1 | 2;

/// The library of this name, `stock` or `iolite`; ours lies where cargo puts it.
pub fn library(engine: &str) -> std::result::Result<&'static Api, String> {
    if engine == "stock" {
        return Ok(Box::leak(Box::new(api::stock())));
    }
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let at = |dir: &Path| dir.join("libiolite_capi.so");
    let places: Vec<PathBuf> = match std::env::var_os("IOLITE_LIBRARY") {
        Some(l) => vec![l.into()],
        None => exe.parent().map_or(Vec::new(), |d| vec![at(&d.join("deps")), at(d)]),
    };
    let file = places.iter().find(|p| p.is_file()).ok_or("no libiolite_capi.so beside this program")?;
    Ok(Box::leak(Box::new(api::ours(file)?)))
}

pub type Library = &'static Api;

/// A connection; dropping it closes it, its statements are finalized before or after.
pub struct Handle {
    api: Library,
    db: P,
}

// SAFETY: connections are opened for use by several threads.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: open, and closed once.
        unsafe { (self.api.close_v2)(self.db) };
    }
}

impl Handle {
    pub fn open(api: Library, name: &str, timeout: i32) -> Result<Handle> {
        let name = CString::new(name).unwrap_or_default();
        let mut db = null_mut();
        // SAFETY: a text that ends with a zero byte, a place for the connection.
        let code = unsafe { (api.open_v2)(name.as_ptr(), &mut db, OPEN, std::ptr::null()) };
        let handle = Handle { api, db };
        handle.judge(code)?;
        // SAFETY: it is open.
        unsafe { (api.busy_timeout)(db, timeout) };
        Ok(handle)
    }

    fn judge(&self, code: c_int) -> Result<()> {
        if matches!(code, 0 | ROW | DONE) {
            return Ok(());
        }
        if PASSING.contains(&(code & 0xff)) {
            return Err(Trouble::Passing);
        }
        // SAFETY: a connection; the text is read at once.
        let text = unsafe { CStr::from_ptr((self.api.errmsg)(self.db)) }.to_string_lossy().into_owned();
        if code & 0xff == 1 && BAD_TIMES.iter().any(|t| text.contains(t)) {
            return Err(Trouble::Passing);
        }
        // SAFETY: as above.
        let exactly = unsafe { (self.api.extended_errcode)(self.db) };
        Err(Trouble::Wrong(code, format!("{text} ({exactly})")))
    }

    pub fn run(&self, sql: &str) -> Result<()> {
        let text = CString::new(sql).unwrap_or_default();
        // SAFETY: an open connection, a text that ends with a zero byte.
        let code = unsafe { (self.api.exec)(self.db, text.as_ptr(), None, null_mut(), null_mut()) };
        self.judge(code).map_err(|e| match e {
            Trouble::Wrong(code, text) => Trouble::Wrong(code, format!("{sql}: {text}")),
            other => other,
        })
    }

    pub fn is_autocommit(&self) -> bool {
        // SAFETY: open.
        unsafe { (self.api.get_autocommit)(self.db) != 0 }
    }

    pub fn interrupt(&self) {
        // SAFETY: open.
        unsafe { (self.api.interrupt)(self.db) }
    }

    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        let text = CString::new(sql).unwrap_or_default();
        let mut statement = null_mut();
        // SAFETY: as in `run`.
        let code = unsafe { (self.api.prepare_v2)(self.db, text.as_ptr(), -1, &mut statement, null_mut()) };
        self.judge(code)?;
        Ok(Statement { api: self.api, statement })
    }

    /// The texts of the first row; those that follow are read to the end.
    pub fn row(&self, sql: &str) -> Result<Vec<String>> {
        let s = self.prepare(sql)?;
        let mut first = None;
        loop {
            match s.step() {
                ROW => {
                    first.get_or_insert_with(|| s.texts());
                }
                code => {
                    self.judge(code)?;
                    return Ok(first.unwrap_or_default());
                }
            }
        }
    }

    /// A copy in memory, by an online backup of so many pages at a time.
    pub fn backup(&self, pages: i32, mut between: impl FnMut()) -> Result<Handle> {
        let to = Handle::open(self.api, ":memory:", 0)?;
        let main = c"main".as_ptr();
        // SAFETY: two open connections.
        let backup = unsafe { (self.api.backup_init)(to.db, main, self.db, main) };
        if backup.is_null() {
            return Err(Trouble::Passing);
        }
        // Where somebody is in the way, each step waits as long as the busy handler does.
        let mut waits = 0;
        for _ in 0..300 {
            // SAFETY: begun above.
            let code = unsafe { (self.api.backup_step)(backup, pages) };
            waits += PASSING.contains(&(code & 0xff)) as u32;
            if code == DONE || code != 0 && !PASSING.contains(&(code & 0xff)) || waits > MOST_WAITS {
                break;
            }
            between();
        }
        // SAFETY: begun above, ended once.
        let (left, code) = unsafe { ((self.api.backup_remaining)(backup), (self.api.backup_finish)(backup)) };
        // The source has pages of another size by now, which one in memory cannot take.
        if left > 0 || code & 0xff == READONLY {
            return Err(Trouble::Passing);
        }
        to.judge(code)?;
        Ok(to)
    }

    /// A copy in memory, by its image.
    pub fn image(&self) -> Result<Handle> {
        let to = Handle::open(self.api, ":memory:", 0)?;
        let main = c"main".as_ptr();
        let mut len = 0i64;
        // SAFETY: an open connection.
        let image: *mut u8 = unsafe { (self.api.serialize)(self.db, main, &mut len, 0) }.cast();
        if image.is_null() {
            return Err(Trouble::Passing);
        }
        // SAFETY: the image has so many bytes; the connection frees it. One in memory has no log.
        let code = unsafe {
            if len > 20 && image.add(18).read() == 2 {
                image.add(18).write_bytes(1, 2);
            }
            (self.api.deserialize)(to.db, main, image.cast(), len, len, FREE_ON_CLOSE_RESIZEABLE)
        };
        to.judge(code)?;
        Ok(to)
    }

    /// The bytes of a text, by a blob handle; `None`: it is not to be had.
    pub fn blob(&self, table: &str, column: &str, id: i64) -> Option<Vec<u8>> {
        let (table, column) = (CString::new(table).ok()?, CString::new(column).ok()?);
        let (api, mut blob) = (self.api, null_mut());
        // SAFETY: an open connection and texts that end with zero bytes; the buffer has as many bytes as are read.
        unsafe {
            let main = c"main".as_ptr();
            let opened = (api.blob_open)(self.db, main, table.as_ptr(), column.as_ptr(), id, 0, &mut blob);
            let mut read = 1;
            let mut bytes = Vec::new();
            if opened == 0 {
                bytes.resize((api.blob_bytes)(blob).max(0) as usize, 0);
                read = (api.blob_read)(blob, bytes.as_mut_ptr().cast(), bytes.len() as c_int, 0);
            }
            (api.blob_close)(blob);
            (read == 0).then_some(bytes)
        }
    }
}

/// A prepared statement, which may outlive its connection's closing.
pub struct Statement {
    api: Library,
    statement: P,
}

// SAFETY: as for connections.
unsafe impl Send for Statement {}

impl Statement {
    pub fn step(&self) -> c_int {
        // SAFETY: prepared, and not finalized.
        unsafe { (self.api.step)(self.statement) }
    }

    fn texts(&self) -> Vec<String> {
        let text = |i| {
            // SAFETY: a statement at a row; the text is copied before another call.
            unsafe {
                let t = (self.api.column_text)(self.statement, i);
                if t.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(t.cast()).to_string_lossy().into_owned()
                }
            }
        };
        // SAFETY: prepared.
        (0..unsafe { (self.api.column_count)(self.statement) }).map(text).collect()
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: prepared, and finalized once.
        unsafe { (self.api.finalize)(self.statement) };
    }
}

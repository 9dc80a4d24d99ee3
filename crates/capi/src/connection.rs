//! Connections: what a handle stands for, closing, errors, counters.

use crate::handle::State;
pub(crate) use crate::handle::{with, within};
use crate::mutex::{Guard, Mutex};
use crate::shared_cache::Group;
use crate::statement::Stmt;
use crate::value::CValue;
use crate::{INTERNAL, MISUSE, NOMEM, OK, guard};
use iolite::engine::{Code, Connection, Encoding, Error, Limit, Value};
use iolite_base::raw_text;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A connection that a thread has for itself, and what it shares with others, which is left first.
pub(crate) struct Held {
    _shared: Option<Guard>,
    _own: Guard,
}

/// What a `sqlite3*` points at.
#[derive(Default)]
pub struct Db {
    pub(crate) state: State,
    /// See [`Db::enter`].
    mutex: Mutex,
    /// The connections with which it may share caches; null: it is by itself.
    group: AtomicPtr<Group>,
    /// Something has unwound out of the engine: its state is not to be relied on.
    pub(crate) broken: Cell<bool>,
    /// It is being ended.
    pub(crate) ending: Cell<bool>,
    /// None if opening failed.
    pub(crate) conn: RefCell<Option<Connection>>,
    /// What the program's allocator holds for it.
    pub(crate) held: RefCell<Option<crate::memory::Held>>,
    error: Last,
    /// The significant digits of reals as texts; 0 before somebody says.
    pub(crate) digits: Cell<c_int>,
    /// Codes are told in full.
    pub(crate) extended: Cell<bool>,
    /// Statements not yet finalized.
    pub(crate) statements: RefCell<Vec<*mut Stmt>>,
    /// Memory of statements that are finalized.
    pub(crate) spare: RefCell<VecDeque<*mut Stmt>>,
    /// Backups and blobs not yet closed.
    pub(crate) others: Cell<usize>,
    /// Of these, blobs: they are read by statements that run as long as they are open.
    pub(crate) blobs: Cell<usize>,
    /// What makes running statements stop: belongs to the slot, so that it is there for whoever sets it too late.
    interrupt: Arc<AtomicBool>,
    pub(crate) filename: RefCell<Vec<u8>>,
    /// Files of the engine's that C has been shown.
    pub(crate) shown_files: RefCell<Option<Rc<dyn Any>>>,
    pub(crate) hooks: crate::hooks::Hooks,
    /// What `fts5(pointer)` has handed out.
    pub(crate) fts5: RefCell<Option<Box<dyn Any>>>,
    /// The tokenizers that it was given for FTS3 and FTS4: names, and where their modules are (`fts3_tokenizer`).
    pub(crate) fts3: RefCell<Vec<(Vec<u8>, usize)>>,
    /// Who may load extensions.
    pub(crate) loads: Cell<u8>,
    pub(crate) client_data: RefCell<Vec<ClientData>>,
    /// Pointers that functions have given as results.
    pub(crate) result_pointers: RefCell<Vec<(*mut c_void, Destructor)>>,
    /// What constructors of virtual tables that are running have said, innermost last.
    pub(crate) making: RefCell<Vec<crate::vtab_making::Making>>,
    /// The conflict policy of the `xUpdate` that is running; 0: none runs.
    pub(crate) on_conflict: Cell<c_int>,
}

/// Whether `sqlite3_load_extension` may load, and whether the SQL function may.
pub(crate) const LOADS_BY_C: u8 = 1;
pub(crate) const LOADS_BY_SQL: u8 = 2;

/// A named pointer of the application, and what releases it.
type ClientData = (Vec<u8>, *mut c_void, Option<Destructor>);

/// A function that releases what a pointer stands for.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// What `SQLITE_TRANSIENT` looks like.
pub(crate) fn is_transient(f: Option<Destructor>) -> bool {
    f.is_some_and(|f| f as usize == usize::MAX)
}

/// Runs a destructor that is one. Content is always copied, so it may run at once.
pub(crate) unsafe fn destroy(f: Option<Destructor>, p: *const c_void) {
    if let Some(f) = f.filter(|f| !is_transient(Some(*f))) {
        f(p as *mut c_void);
    }
}

/// The outcome of the last call that has one: many leave it as it is, and the parts are not always set together. A step
/// that answers a row sets the code alone, so that a message of before is read again; an offset stays until a statement is
/// prepared. All that is observed by programs, and is as in SQLite.
#[derive(Default)]
struct Last {
    code: Cell<i32>,
    offset: Cell<i32>,
    message: RefCell<Option<CString>>,
    /// There was a message since the connection was opened.
    spoken: Cell<bool>,
    /// What the system said when a file could not be opened, read or written last.
    system: Cell<i32>,
    wide: RefCell<Vec<u8>>,
}

impl Last {
    fn clear(&self) {
        self.code.set(OK);
        self.offset.set(-1);
        self.put_message(None);
    }

    fn put_message(&self, m: Option<CString>) {
        if let Ok(mut l) = self.message.try_borrow_mut() {
            *l = m;
        }
    }
}

impl Db {
    /// Has it for this thread until the result is dropped, and with it what connections share that share caches. `None`, in a forked
    /// child: a thread that the child does not have was in.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Held> {
        match self.group() {
            None => Some(Held { _shared: None, _own: self.mutex.enter()? }),
            Some(group) => self.enter_together(group),
        }
    }

    #[cold]
    fn enter_together(&self, group: &'static Group) -> Option<Held> {
        let own = match self.mutex.attempt() {
            Some(own) => own,
            None => group.mutex.apart(|| self.mutex.enter())?,
        };
        Some(Held { _shared: Some(group.mutex.enter()?), _own: own })
    }

    /// The connections with which it may share caches.
    #[inline]
    pub(crate) fn group(&self) -> Option<&'static Group> {
        // SAFETY: null, or what `set_group` was given, which lives for ever.
        unsafe { self.group.load(Ordering::Relaxed).as_ref() }
    }

    /// The connection in this slot belongs to a group, or is by itself.
    pub(crate) fn set_group(&self, group: Option<&'static Group>) {
        let group = group.map_or(null_mut(), |g| std::ptr::from_ref(g).cast_mut());
        self.group.store(group, Ordering::Relaxed);
    }

    /// Calls a function of the program's, which may wait for other threads: they may use what is shared meanwhile, but not this
    /// connection. Values that the function is given come from [`Db::lent`].
    #[inline]
    pub(crate) fn calling<T>(&self, f: impl FnOnce() -> T) -> T {
        match self.group() {
            None => f(),
            Some(group) => group.mutex.apart(f),
        }
    }

    /// A value for a function of the program's: where caches are shared with bytes of its own, since the count of those that hold
    /// a page is not for several threads.
    #[inline]
    pub(crate) fn lent(&self, v: &Value) -> iolite::Result<CValue> {
        let lent = CValue::new(v.clone());
        if self.group().is_some() { lent.with_own_bytes() } else { Ok(lent) }
    }

    /// The connection, if it is open.
    pub(crate) fn conn(&self) -> Option<Connection> {
        if self.broken.get() { None } else { self.conn.borrow().clone() }
    }

    /// The flag that makes running statements stop.
    pub(crate) fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.interrupt.clone()
    }

    /// Whether no statement, backup or blob needs it.
    pub(crate) fn is_idle(&self) -> bool {
        self.statements.borrow().is_empty() && self.others.get() == 0
    }

    /// Remembers that something unwound.
    pub(crate) fn fail_broken(&self) -> c_int {
        self.fail_text(INTERNAL, "internal error: the connection can only be closed")
    }

    /// Remembers why there is no connection to work with: opening failed, or something unwound.
    pub(crate) fn fail_closed(&self) -> c_int {
        // Why it could not be opened stays what the connection tells.
        if self.broken.get() { self.fail_broken() } else { MISUSE }
    }

    /// Releases pointers that functions have given as results.
    pub(crate) unsafe fn release_pointers(&self) {
        for (p, f) in self.result_pointers.take() {
            destroy(Some(f), p);
        }
    }

    /// Closes the connection and empties the slot. The caller holds the mutex.
    pub(crate) unsafe fn end(&self) {
        let conn = self.conn.borrow_mut().take();
        self.shown_files.take();
        self.held.take();
        if let Some(c) = conn {
            if let Some(group) = self.group() {
                crate::shared_cache::leave(group, &c);
            }
            let _ = guard(Ok(()), || c.close());
        }
        self.release_pointers();
        let data = std::mem::take(&mut *self.client_data.borrow_mut());
        for (_, p, destroy) in data {
            if let Some(f) = destroy {
                f(p);
            }
        }
        self.interrupt.store(false, Ordering::Relaxed);
        self.hooks.clear();
        self.loads.set(0);
        self.fts5.take();
        self.error.clear();
        self.error.spoken.set(false);
        self.error.system.set(0);
        self.filename.borrow_mut().clear();
        self.extended.set(false);
        self.digits.set(0);
        self.broken.set(false);
        self.others.set(0);
        self.blobs.set(0);
    }

    /// The code as the caller wants it: extended or primary.
    pub(crate) fn mask(&self, code: i32) -> c_int {
        if self.extended.get() { code } else { code & 0xff }
    }

    /// Remembers success.
    pub(crate) fn ok(&self) -> c_int {
        let e = &self.error;
        e.code.set(OK);
        if e.spoken.get() {
            e.put_message(None)
        } else {
            e.offset.set(-1)
        }
        OK
    }

    /// Remembers that a statement was prepared.
    pub(crate) fn prepared(&self) -> c_int {
        self.error.clear();
        OK
    }

    /// Remembers that the run of a statement has ended well.
    pub(crate) fn ended(&self) -> c_int {
        self.error.code.set(OK);
        if self.error.spoken.get() {
            self.error.offset.set(-1);
            self.error.put_message(None);
        }
        OK
    }

    /// Remembers a code, and leaves the rest as it is.
    #[inline]
    pub(crate) fn note(&self, code: c_int) -> c_int {
        self.error.code.set(code);
        code
    }

    /// Remembers an error; answers its code.
    pub(crate) fn fail(&self, e: &Error) -> c_int {
        if e.code() == Code::Internal && self.broken.get() {
            return self.fail_broken();
        }
        let message = e.has_message().then(|| e.message());
        self.set(e.number() as i32, message)
    }

    /// Remembers why a statement could not be prepared, and where its text is wrong.
    pub(crate) fn fail_to_prepare(&self, e: &Error) -> c_int {
        self.error.offset.set(e.offset().map_or(-1, |o| o as i32));
        self.fail(e)
    }

    /// Remembers how a statement's run failed.
    pub(crate) fn fail_to_run(&self, e: &Error) -> c_int {
        self.error.offset.set(-1);
        self.fail(e)
    }

    /// Remembers a bare code.
    pub(crate) fn fail_code(&self, code: c_int) -> c_int {
        self.set(code, None)
    }

    /// Remembers a code with a message.
    pub(crate) fn fail_text(&self, code: c_int, text: &str) -> c_int {
        self.set(code, Some(text))
    }

    /// How a call went that leaves the connection's error as it is.
    pub(crate) fn answer<T>(&self, r: Result<T, Error>) -> c_int {
        r.map_or_else(|e| self.mask(e.number() as i32), |_| OK)
    }

    /// Remembers how a call went.
    pub(crate) fn outcome<T>(&self, r: Result<T, Error>) -> c_int {
        match r {
            Ok(_) => self.ok(),
            Err(e) => self.fail(&e),
        }
    }

    fn set(&self, code: i32, message: Option<&str>) -> c_int {
        self.error.code.set(code);
        if matches!(code & 0xff, crate::IOERR | crate::CANTOPEN) && code != crate::IOERR_NOMEM {
            self.error.system.set(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        self.error.put_message(message.and_then(|m| {
            let mut text = raw_text::decode(m).into_owned();
            text.iter_mut().filter(|b| **b == 0).for_each(|b| *b = b' ');
            CString::new(text).ok()
        }));
        self.error.spoken.set(self.error.spoken.get() || message.is_some());
        self.mask(code)
    }

    /// What `sqlite3_errmsg` answers: a text that lives until the next call that changes it, or for good.
    fn message(&self) -> *const c_char {
        let code = self.error.code.get();
        let said = self.error.message.borrow();
        match said.as_ref().filter(|_| code != OK) {
            Some(m) => m.as_ptr(),
            None => crate::info::static_text(code_text(code)),
        }
    }

    /// Runs `f` on the open connection.
    pub(crate) fn run<T>(&self, f: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        match self.conn() {
            Some(c) => f(&c),
            None if self.broken.get() => Err(Code::Internal.into()),
            None => Err(Code::Misuse.into()),
        }
    }
}

/// The engine's connection behind a handle, for programs that hold both.
///
/// # Safety
/// As for every entry: `db` comes from `sqlite3_open`. The connection must be dropped before the handle is closed, and it
/// may be used only while no other thread uses the handle.
pub unsafe fn engine(db: *mut Db) -> Option<Connection> {
    let mut found = None;
    with(db, (), |d| found = d.conn());
    found
}

/// The text of a code.
pub(crate) fn code_text(code: i32) -> &'static str {
    match code {
        OK => return "not an error",
        crate::ROW => return "another row available",
        crate::DONE => return "no more rows available",
        _ if code & 0xff == 22 => return "unknown error",
        _ => {}
    }
    let known = Code::from_number(code as u32).or_else(|| Code::from_number(code as u32 & 0xff));
    known.map_or("unknown error", Code::text)
}

/// A C string as text, which carries bytes that are not UTF-8; NULL is empty.
pub(crate) unsafe fn text(p: *const c_char) -> String {
    raw_text::encode(bytes(p)).into_owned()
}

/// A C string; None for NULL.
pub(crate) unsafe fn text_option(p: *const c_char) -> Option<String> {
    if p.is_null() { None } else { Some(text(p)) }
}

/// The bytes of a C string; none for NULL.
pub(crate) unsafe fn bytes<'a>(p: *const c_char) -> &'a [u8] {
    if p.is_null() { b"" } else { CStr::from_ptr(p).to_bytes() }
}

/// What comes before it is looked at whether anything needs the connection: virtual tables may hold statements.
unsafe fn closing(d: &Db, db: *mut Db) {
    crate::hooks::closing(d, db);
    if let Some(c) = d.conn() {
        c.forget_virtual_tables();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_close(db: *mut Db) -> c_int {
    with(db, (), |d| closing(d, db));
    crate::handle::close(db, false, |d| {
        d.fail_text(crate::BUSY, "unable to close due to unfinalized statements or unfinished backups")
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_close_v2(db: *mut Db) -> c_int {
    with(db, (), |d| closing(d, db));
    crate::handle::close(db, true, |_| OK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_errcode(db: *mut Db) -> c_int {
    with(db, no_code(db), |d| d.mask(d.error.code.get()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extended_errcode(db: *mut Db) -> c_int {
    with(db, no_code(db), |d| d.error.code.get())
}

/// The code of a handle that is none.
fn no_code(db: *mut Db) -> c_int {
    if db.is_null() { NOMEM } else { MISUSE }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_errmsg(db: *mut Db) -> *const c_char {
    let none = if db.is_null() { c"out of memory" } else { c"bad parameter or other API misuse" };
    with(db, none.as_ptr(), |d| d.message())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_errmsg16(db: *mut Db) -> *const c_void {
    /// A text in UTF-16 for handles that are none.
    const fn wide<const N: usize>(text: &[u8]) -> [u16; N] {
        let mut out = [0; N];
        let mut i = 0;
        while i < text.len() {
            out[i] = text[i] as u16;
            i += 1;
        }
        out
    }
    static NO_MEMORY: [u16; 14] = wide(b"out of memory");
    static NO_HANDLE: [u16; 34] = wide(b"bad parameter or other API misuse");
    let none = if db.is_null() { NO_MEMORY.as_ptr() } else { NO_HANDLE.as_ptr() };
    with(db, none as *const c_void, |d| {
        let mut wide = d.error.wide.borrow_mut();
        *wide = crate::text::to_utf16(CStr::from_ptr(d.message()).to_bytes());
        wide.as_ptr() as *const c_void
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_errstr(code: c_int) -> *const c_char {
    crate::info::static_text(code_text(code))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_error_offset(db: *mut Db) -> c_int {
    with(db, -1, |d| if d.error.code.get() == OK { -1 } else { d.error.offset.get() })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_errmsg(db: *mut Db, code: c_int, message: *const c_char) -> c_int {
    with(db, MISUSE, |d| {
        match text_option(message) {
            Some(m) => d.fail_text(code, &m),
            None => d.fail_code(code),
        };
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_system_errno(db: *mut Db) -> c_int {
    db.as_ref().map_or(0, |d| d.error.system.get())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extended_result_codes(db: *mut Db, on: c_int) -> c_int {
    with(db, MISUSE, |d| {
        d.extended.set(on != 0);
        if let Some(c) = d.conn() {
            c.set_primary_codes(on == 0);
        }
        OK
    })
}

/// Calls `f` on the open connection, or answers `bad`.
unsafe fn ask<T: crate::handle::Answer>(db: *mut Db, bad: T, f: impl FnOnce(&Connection) -> T) -> T {
    with(db, bad, |d| d.conn().map_or(bad, |c| f(&c)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_changes(db: *mut Db) -> c_int {
    ask(db, 0, |c| c.changes() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_changes64(db: *mut Db) -> i64 {
    ask(db, 0, |c| c.changes())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_total_changes(db: *mut Db) -> c_int {
    ask(db, 0, |c| c.total_changes() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_total_changes64(db: *mut Db) -> i64 {
    ask(db, 0, |c| c.total_changes())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_last_insert_rowid(db: *mut Db) -> i64 {
    ask(db, 0, |c| c.last_insert_rowid())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_last_insert_rowid(db: *mut Db, id: i64) {
    ask(db, (), |c| c.set_last_insert_rowid(id))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_get_autocommit(db: *mut Db) -> c_int {
    // Where opening has failed there is no transaction.
    ask(db, 1, |c| c.is_autocommit() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_interrupt(db: *mut Db) {
    // Called from other threads while a statement holds the mutex.
    if let Some(d) = db.as_ref().filter(|d| d.state.is_open()) {
        d.interrupt.store(true, Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_is_interrupted(db: *mut Db) -> c_int {
    db.as_ref().map_or(0, |d| d.interrupt.load(Ordering::Relaxed) as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_limit(db: *mut Db, id: c_int, value: c_int) -> c_int {
    const ALL: [Limit; 13] = [
        Limit::Length,
        Limit::SqlLength,
        Limit::Column,
        Limit::ExprDepth,
        Limit::CompoundSelect,
        Limit::VdbeOp,
        Limit::FunctionArg,
        Limit::Attached,
        Limit::LikePatternLength,
        Limit::VariableNumber,
        Limit::TriggerDepth,
        Limit::WorkerThreads,
        Limit::ParserDepth,
    ];
    let Some(which) = usize::try_from(id).ok().and_then(|i| ALL.get(i)) else { return -1 };
    ask(db, -1, |c| c.limit(*which, (value >= 0).then_some(value)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_mutex(db: *mut Db) -> *mut Mutex {
    db.as_ref().map_or(null_mut(), |d| &d.mutex as *const Mutex as *mut Mutex)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_name(db: *mut Db, n: c_int) -> *const c_char {
    with(db, std::ptr::null(), |d| {
        let name = usize::try_from(n).ok().and_then(|n| d.conn()?.database_name(n));
        name.map_or(std::ptr::null(), |n| crate::info::static_text(&n))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_readonly(db: *mut Db, name: *const c_char) -> c_int {
    let name = text_option(name).unwrap_or_else(|| "main".into());
    ask(db, -1, |c| match c.is_open(&name) {
        true => c.btree(&name).map_or(-1, |b| b.is_read_only() as c_int),
        false => -1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_txn_state(db: *mut Db, name: *const c_char) -> c_int {
    let name = text_option(name);
    ask(db, -1, |c| match c.txn_state(name.as_deref()) {
        None => -1,
        Some(iolite::engine::TxnState::None) => 0,
        Some(iolite::engine::TxnState::Read) => 1,
        Some(iolite::engine::TxnState::Write) => 2,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_cacheflush(db: *mut Db) -> c_int {
    // The connection's error stays as it is.
    with(db, MISUSE, |d| d.run(|c| c.flush()).map_or_else(|e| d.mask(e.code().number() as i32), |()| OK))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_get_clientdata(db: *mut Db, name: *const c_char) -> *mut c_void {
    let name = text(name).into_bytes();
    with(db, null_mut(), |d| d.client_data.borrow().iter().find(|e| e.0 == name).map_or(null_mut(), |e| e.1))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_clientdata(
    db: *mut Db,
    name: *const c_char,
    data: *mut c_void,
    destroy: Option<Destructor>,
) -> c_int {
    let name = text(name).into_bytes();
    with(db, MISUSE, |d| {
        let mut list = d.client_data.borrow_mut();
        let old = list.iter().position(|e| e.0 == name).map(|at| list.remove(at));
        if !data.is_null() {
            list.push((name, data, destroy));
        }
        // The destructor may ask for other data.
        drop(list);
        if let Some((_, p, Some(f))) = old {
            f(p);
        }
        OK
    })
}

/// The encoding of text that C calls UTF-16.
pub(crate) const WIDE: Encoding =
    if cfg!(target_endian = "big") { Encoding::Utf16be } else { Encoding::Utf16le };

//! Callbacks around statements: busy, progress, commit, rollback, update, log size, tracing.

use crate::connection::{Db, with};
use crate::statement::Stmt;
use crate::{MISUSE, OK};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::Duration;

type TraceV2 = unsafe extern "C" fn(c_uint, *mut c_void, *mut c_void, *mut c_void) -> c_int;
type Trace = unsafe extern "C" fn(*mut c_void, *const c_char);
type Profile = unsafe extern "C" fn(*mut c_void, *const c_char, u64);
type WalHook = unsafe extern "C" fn(*mut c_void, *mut Db, *const c_char, c_int) -> c_int;

/// What a connection calls beside the engine's own hooks.
#[derive(Default)]
pub struct Hooks {
    trace_v2: Cell<Option<(c_uint, TraceV2, *mut c_void)>>,
    trace: Cell<Option<(Trace, *mut c_void)>>,
    profile: Cell<Option<(Profile, *mut c_void)>>,
    /// The statement that runs, innermost, while somebody traces.
    running: Cell<Option<*mut Stmt>>,
    /// A statement is told of that begins within another one.
    nested: Cell<bool>,
    wal: Cell<Option<(WalHook, *mut c_void)>>,
    /// Commits that it is to be told of: databases, and frames of their logs.
    wal_told: Rc<RefCell<Vec<(CString, u32)>>>,
    commit_data: Cell<Option<*mut c_void>>,
    rollback_data: Cell<Option<*mut c_void>>,
    update_data: Cell<Option<*mut c_void>>,
    pub(crate) preupdate_data: Cell<Option<*mut c_void>>,
    /// The change that a callback is being told of, in the frame that calls it (`preupdate`).
    pub(crate) preupdate_event: Cell<Option<*const c_void>>,
    pub(crate) needed: Cell<Option<crate::collation::Needed>>,
    /// The program's functions and collating sequences; their data is released when they are replaced, or with the connection.
    pub(crate) functions: RefCell<Vec<crate::function::Registered>>,
    pub(crate) collations: RefCell<Vec<crate::collation::Registered>>,
}

impl Hooks {
    /// Forgets them all.
    pub(crate) fn clear(&self) {
        self.trace_v2.set(None);
        self.trace.set(None);
        self.profile.set(None);
        self.wal.set(None);
        self.wal_told.take();
        self.commit_data.set(None);
        self.rollback_data.set(None);
        self.update_data.set(None);
        self.preupdate_data.set(None);
        self.preupdate_event.set(None);
        self.needed.set(None);
        // As in SQLite, the newest are released first.
        self.functions.take().into_iter().rev().for_each(drop);
        self.collations.take().into_iter().rev().for_each(drop);
    }
}

/// A name as C gets it.
fn c_name(name: &str) -> CString {
    CString::new(iolite_base::raw_text::decode(name)).unwrap_or_default()
}

const STMT: c_uint = 1;
const PROFILE: c_uint = 2;
const ROW: c_uint = 4;
const CLOSE: c_uint = 8;

fn trace(d: &Db, kind: c_uint, p: *mut c_void, x: *mut c_void) {
    if let Some((mask, f, user)) = d.hooks.trace_v2.get()
        && mask & kind != 0
    {
        // SAFETY: registered for this shape of call.
        unsafe { f(kind, user, p, x) };
    }
}

/// Whether the statement that is being told of begins within another one, as a callback of a function does it.
pub(crate) fn is_nested(d: &Db) -> bool {
    d.hooks.nested.get()
}

pub(crate) fn trace_start(d: &Db, s: *mut Stmt, sql: &CStr) {
    if d.hooks.trace_v2.get().is_none() && d.hooks.trace.get().is_none() {
        return;
    }
    let outer = d.hooks.nested.replace(d.hooks.running.get().is_some());
    let comment = is_nested(d).then(|| CString::new([b"-- ", sql.to_bytes()].concat()).unwrap_or_default());
    let text = comment.as_deref().unwrap_or(sql).as_ptr() as *mut c_void;
    trace(d, STMT, s as *mut c_void, text);
    if let Some((f, user)) = d.hooks.trace.get() {
        // SAFETY: registered for this shape of call; the statement is alive.
        unsafe { f(user, crate::statement::traced_text(d, s).as_ptr()) };
    }
    d.hooks.nested.set(outer);
}

/// Says which statement runs from now on; answers which one ran before.
pub(crate) fn now_running(d: &Db, s: Option<*mut Stmt>) -> Option<*mut Stmt> {
    d.hooks.running.replace(s)
}

/// Has the engine tell of triggers' statements if somebody traces.
fn follow_triggers(db: *mut Db, d: &Db) {
    let wanted =
        d.hooks.trace.get().is_some() || d.hooks.trace_v2.get().is_some_and(|(mask, ..)| mask & STMT != 0);
    let Some(c) = d.conn() else { return };
    c.trace_triggers(wanted.then(|| {
        Rc::new(move |text: &str| {
            // SAFETY: the connection runs a statement of this handle, which is open.
            let Some(d) = (unsafe { db.as_ref() }) else { return };
            let text = c_name(text);
            let p = text.as_ptr();
            trace(d, STMT, d.hooks.running.get().map_or(null_mut(), |s| s.cast()), p as *mut c_void);
            if let Some((f, user)) = d.hooks.trace.get() {
                // SAFETY: registered for this shape of call.
                unsafe { f(user, p) };
            }
        }) as iolite::engine::Tracer
    }));
}

pub(crate) fn trace_row(d: &Db, s: *mut Stmt) {
    trace(d, ROW, s as *mut c_void, null_mut());
}

/// Whether somebody wants to know how long statements take.
pub(crate) fn is_timed(d: &Db) -> bool {
    d.hooks.profile.get().is_some() || d.hooks.trace_v2.get().is_some_and(|(mask, ..)| mask & PROFILE != 0)
}

pub(crate) fn trace_end(d: &Db, s: *mut Stmt, took: Duration) {
    let mut nanos = took.as_nanos() as i64;
    trace(d, PROFILE, s as *mut c_void, &mut nanos as *mut i64 as *mut c_void);
    if let Some((f, user)) = d.hooks.profile.get() {
        // SAFETY: registered for this shape of call; the statement is alive.
        unsafe { f(user, crate::statement::sqlite3_sql(s), nanos as u64) };
    }
}

pub(crate) fn closing(d: &Db, db: *mut Db) {
    trace(d, CLOSE, db as *mut c_void, null_mut());
}

/// Behind each statement: tells the WAL hook of commits that have grown logs, and answers what it answers.
#[inline(always)]
pub(crate) fn after_statement(d: &Db, db: *mut Db) -> c_int {
    if d.hooks.wal_told.borrow().is_empty() { OK } else { tell_of_commits(d, db) }
}

#[inline(never)]
fn tell_of_commits(d: &Db, db: *mut Db) -> c_int {
    let told = match d.conn() {
        Some(c) if c.is_autocommit() => d.hooks.wal_told.take(),
        _ => return OK,
    };
    let mut rc = OK;
    for (name, frames) in told {
        if let (OK, Some((f, user))) = (rc, d.hooks.wal.get()) {
            // SAFETY: registered for this shape of call; the name lives across it.
            rc = unsafe { f(user, db, name.as_ptr(), frames as c_int) };
        }
    }
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_trace_v2(
    db: *mut Db,
    mask: c_uint,
    f: Option<TraceV2>,
    user: *mut c_void,
) -> c_int {
    with(db, MISUSE, |d| {
        d.hooks.trace.set(None);
        d.hooks.profile.set(None);
        d.hooks.trace_v2.set(f.filter(|_| mask != 0).map(|f| (mask, f, user)));
        follow_triggers(db, d);
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_trace(db: *mut Db, f: Option<Trace>, user: *mut c_void) -> *mut c_void {
    with(db, null_mut(), |d| {
        d.hooks.trace_v2.set(None);
        d.hooks.profile.set(None);
        let old = d.hooks.trace.replace(f.map(|f| (f, user))).map_or(null_mut(), |o| o.1);
        follow_triggers(db, d);
        old
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_profile(db: *mut Db, f: Option<Profile>, user: *mut c_void) -> *mut c_void {
    with(db, null_mut(), |d| {
        d.hooks.trace.set(None);
        follow_triggers(db, d);
        d.hooks.profile.replace(f.map(|f| (f, user))).map_or(null_mut(), |o| o.1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_busy_timeout(db: *mut Db, ms: c_int) -> c_int {
    with(db, MISUSE, |d| d.answer(d.run(|c| c.busy_timeout(ms.max(0) as u32))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_setlk_timeout(db: *mut Db, ms: c_int, _flags: c_int) -> c_int {
    // Locks that block are not used; the busy handler is another setting.
    with(db, MISUSE, |_| if ms < -1 { crate::RANGE } else { OK })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_busy_handler(
    db: *mut Db,
    f: Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>,
    user: *mut c_void,
) -> c_int {
    with(db, MISUSE, |d| {
        let handler = f.map(|f| {
            // SAFETY: registered for this shape of call.
            Rc::new(move |n: u32| unsafe { f(user, n as c_int) != 0 }) as Rc<dyn Fn(u32) -> bool>
        });
        d.answer(d.run(|c| c.busy_handler(handler)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_progress_handler(
    db: *mut Db,
    n: c_int,
    f: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    user: *mut c_void,
) {
    with(db, (), |d| {
        let handler = f.filter(|_| n > 0).map(|f| {
            // SAFETY: registered for this shape of call.
            Rc::new(move || unsafe { f(user) != 0 }) as Rc<dyn Fn() -> bool>
        });
        if let Some(c) = d.conn() {
            c.progress_handler_every(n.max(0) as u32, handler);
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_commit_hook(
    db: *mut Db,
    f: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    user: *mut c_void,
) -> *mut c_void {
    with(db, null_mut(), |d| {
        let hook = f.map(|f| {
            // SAFETY: registered for this shape of call.
            Rc::new(move || unsafe { f(user) != 0 }) as Rc<dyn Fn() -> bool>
        });
        if let Some(c) = d.conn() {
            c.commit_hook(hook);
        }
        d.hooks.commit_data.replace(Some(user)).unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_rollback_hook(
    db: *mut Db,
    f: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
) -> *mut c_void {
    with(db, null_mut(), |d| {
        let hook = f.map(|f| {
            // SAFETY: registered for this shape of call.
            Rc::new(move || unsafe { f(user) }) as Rc<dyn Fn()>
        });
        if let Some(c) = d.conn() {
            c.rollback_hook(hook);
        }
        d.hooks.rollback_data.replace(Some(user)).unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_update_hook(
    db: *mut Db,
    f: Option<unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char, i64)>,
    user: *mut c_void,
) -> *mut c_void {
    with(db, null_mut(), |d| {
        if let Some(c) = d.conn() {
            match f {
                None => c.update_hook(None),
                Some(f) => c.update_hook(Some(Rc::new(move |kind, db: &str, table: &str, rowid| {
                    let kind = match kind {
                        iolite_vdbe::RowChange::Delete => 9,
                        iolite_vdbe::RowChange::Insert => 18,
                        iolite_vdbe::RowChange::Update => 23,
                    };
                    let (db, table) = (c_name(db), c_name(table));
                    // SAFETY: registered for this shape of call; the names live across it.
                    unsafe { f(user, kind, db.as_ptr(), table.as_ptr(), rowid) };
                }))),
            }
        }
        d.hooks.update_data.replace(Some(user)).unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_wal_hook(db: *mut Db, f: Option<WalHook>, user: *mut c_void) -> *mut c_void {
    with(db, null_mut(), |d| {
        if let Some(c) = d.conn() {
            let told = d.hooks.wal_told.clone();
            let note = move |name: &str, frames| told.borrow_mut().push((c_name(name), frames));
            // Setting it fails on no open connection.
            let _ = c.checkpoint_hook(f.map(|_| Rc::new(note) as _));
        }
        d.hooks.wal.replace(f.map(|f| (f, user))).map_or(null_mut(), |o| o.1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_wal_autocheckpoint(db: *mut Db, n: c_int) -> c_int {
    with(db, MISUSE, |d| d.answer(d.run(|c| c.set_autocheckpoint(n.max(0) as u32))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_wal_checkpoint(db: *mut Db, name: *const c_char) -> c_int {
    sqlite3_wal_checkpoint_v2(db, name, 0, null_mut(), null_mut())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_wal_checkpoint_v2(
    db: *mut Db,
    name: *const c_char,
    mode: c_int,
    log: *mut c_int,
    done: *mut c_int,
) -> c_int {
    use iolite::engine::CheckpointMode as M;
    let name = crate::connection::text_option(name).filter(|n| !n.is_empty());
    for p in [log, done] {
        if !p.is_null() {
            *p = -1;
        }
    }
    with(db, MISUSE, |d| {
        let mode = match mode {
            -1 => M::Noop,
            0 => M::Passive,
            1 => M::Full,
            2 => M::Restart,
            3 => M::Truncate,
            _ => return MISUSE,
        };
        match d.run(|c| c.checkpoint(name.as_deref(), mode)) {
            Ok(r) => {
                if !log.is_null() {
                    *log = r.log;
                }
                if !done.is_null() {
                    *done = r.checkpointed;
                }
                if r.busy { d.fail_code(crate::BUSY) } else { d.ok() }
            }
            Err(e) => d.fail(&e),
        }
    })
}

/// What `sqlite3_autovacuum_pages` was given: released when it is replaced, or with the connection.
struct VacuumPages {
    f: unsafe extern "C" fn(*mut c_void, *const c_char, c_uint, c_uint, c_uint) -> c_uint,
    user: *mut c_void,
    let_go: Option<crate::connection::Destructor>,
}

impl Drop for VacuumPages {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together.
        unsafe { crate::connection::destroy(self.let_go, self.user) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_autovacuum_pages(
    db: *mut Db,
    f: Option<unsafe extern "C" fn(*mut c_void, *const c_char, c_uint, c_uint, c_uint) -> c_uint>,
    user: *mut c_void,
    let_go: Option<crate::connection::Destructor>,
) -> c_int {
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return MISUSE };
        c.vacuum_pages(f.map(|f| {
            let given = VacuumPages { f, user, let_go };
            Rc::new(move |name: &str, size: u32, free: u32, page_size: u32| {
                // The whole of it, so that it lives as long as the closure.
                let (given, name) = (&given, c_name(name));
                // SAFETY: registered for this shape of call.
                unsafe { (given.f)(given.user, name.as_ptr(), size, free, page_size) }
            }) as iolite::engine::VacuumPages
        }));
        OK
    })
}

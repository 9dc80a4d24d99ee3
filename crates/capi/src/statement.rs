//! Prepared statements: preparing, binding, stepping, what is known about them.

use crate::connection::{Db, Destructor, text_option, with, within};
use crate::handle::{Answer, leaving};
use crate::value::{Buffers, CValue};
use crate::{DONE, MISUSE, OK, RANGE, ROW, TOOBIG, guard};
use iolite::engine::{Code, Error, Instruction, Statement, StatementFacts, Step, Value};
use iolite_base::raw_text;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

/// What a `sqlite3_stmt*` points at: a slot that is kept when the statement is finalized (`handle`).
pub struct Stmt {
    /// NULL: finalized.
    db: AtomicPtr<Db>,
    /// There while `db` is not NULL; reached under the connection's mutex.
    body: UnsafeCell<MaybeUninit<Body>>,
}

/// The statement itself.
pub(crate) struct Body {
    pub(crate) inner: RefCell<Statement>,
    sql: CString,
    /// Made by `sqlite3_prepare`: a step answers `SQLITE_ERROR`, and what went wrong is said by `sqlite3_reset`.
    legacy: bool,
    /// It was stepped since it was prepared or reset.
    ran: Cell<bool>,
    /// What the last step failed with: `sqlite3_reset` and `sqlite3_finalize` say it again.
    failed: RefCell<Option<Error>>,
    pub(crate) has_row: Cell<bool>,
    /// The row's values as C saw them.
    pub(crate) columns: RefCell<Vec<Column>>,
    /// Texts handed out: column names and the like.
    pub(crate) names: RefCell<Vec<(NameKey, Vec<u8>)>>,
    /// Between its first step and its end.
    started: Cell<bool>,
    /// When that began, where somebody asks how long it took.
    began: Cell<Option<Instant>>,
    /// Pointers bound by `sqlite3_bind_pointer`.
    pub(crate) pointers: RefCell<Vec<(usize, *mut c_void, Option<Destructor>)>>,
    /// What the program's allocator holds for it.
    _held: crate::memory::Held,
}

/// So many slots of a connection wait at least before one is used again.
const WAITING: usize = 4;

impl Stmt {
    /// Puts a statement into a slot of the connection `db`, which is `d`.
    unsafe fn place(d: &Db, db: *mut Db, body: Body) -> *mut Stmt {
        let mut spare = d.spare.borrow_mut();
        let p = match if spare.len() > WAITING { spare.pop_front() } else { None } {
            Some(p) => p,
            None => Box::into_raw(Box::new(Stmt {
                db: AtomicPtr::default(),
                body: UnsafeCell::new(MaybeUninit::uninit()),
            })),
        };
        (*(*p).body.get()).write(body);
        (*p).db.store(db, Ordering::Relaxed);
        d.statements.borrow_mut().push(p);
        p
    }

    /// Takes the statement out of its slot.
    unsafe fn remove(d: &Db, s: *mut Stmt) -> Body {
        d.statements.borrow_mut().retain(|x| *x != s);
        (*s).db.store(null_mut(), Ordering::Relaxed);
        let body = (*(*s).body.get()).assume_init_read();
        d.spare.borrow_mut().push_back(s);
        body
    }

    /// Whether it runs, or is in the midst of a call.
    pub(crate) unsafe fn is_busy(s: *mut Stmt) -> bool {
        let busy = |b: &Body| b.inner.try_borrow().map_or(true, |i| i.is_busy());
        !(*s).db.load(Ordering::Relaxed).is_null() && busy((*(*s).body.get()).assume_init_ref())
    }
}

/// The connection of a statement; NULL where there is none.
unsafe fn owner(s: *mut Stmt) -> *mut Db {
    s.as_ref().map_or(null_mut(), |s| s.db.load(Ordering::Relaxed))
}

/// Which text: the number of the column, and a letter for its kind.
pub(crate) type NameKey = (usize, u8);

/// One column of the present row.
#[derive(Default)]
pub(crate) struct Column {
    pub(crate) buffers: Buffers,
    pub(crate) value: Option<Box<CValue>>,
    pub(crate) used: bool,
}

/// Runs `f` on a statement under its connection's mutex; `bad` for NULL and for one that is finalized.
pub(crate) unsafe fn with_stmt<T: Answer>(s: *mut Stmt, bad: T, f: impl FnOnce(&Db, &Body) -> T) -> T {
    let db = owner(s);
    within(db, bad, |d| if owner(s) == db { f(d, (*(*s).body.get()).assume_init_ref()) } else { bad })
}

/// `n` bytes of SQL at `p`, or up to the NUL if that comes first or `n` is negative.
unsafe fn sql_bytes<'a>(p: *const c_char, n: c_int) -> &'a [u8] {
    let len = if n < 0 { libc::strlen(p) } else { libc::strnlen(p, n as usize) };
    std::slice::from_raw_parts(p as *const u8, len)
}

unsafe fn prepare(db: *mut Db, sql: &[u8], legacy: bool, out: *mut *mut Stmt, used: &mut usize) -> c_int {
    if out.is_null() || db.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return d.fail_closed() };
        *used = sql.len();
        let Ok(held) = crate::memory::Held::new(256 + sql.len() as u64) else {
            return d.fail(&Error::from(Code::Nomem));
        };
        let mut prepared = c.prepare_bytes(sql);
        if let Err(e) = &prepared
            && crate::collation::ask(d, db, e)
        {
            prepared = c.prepare_bytes(sql);
        }
        if let Err(e) = &prepared {
            crate::log::log(e.code().number() as c_int, || {
                let message = iolite_base::raw_text::decode(e.message()).into_owned();
                [&message, &b" in \""[..], sql, b"\""].concat()
            });
        }
        match prepared {
            Ok(None) => d.prepared(),
            Ok(Some((mut s, length))) => {
                if legacy {
                    s.keep_program();
                }
                *used = length;
                let own = c_text(&s.sql_bytes());
                let body = Body {
                    inner: RefCell::new(s),
                    sql: own,
                    legacy,
                    ran: Cell::new(false),
                    failed: RefCell::new(None),
                    has_row: Cell::new(false),
                    columns: RefCell::default(),
                    names: RefCell::default(),
                    started: Cell::new(false),
                    began: Cell::new(None),
                    pointers: RefCell::default(),
                    _held: held,
                };
                *out = Stmt::place(d, db, body);
                d.prepared()
            }
            Err(e) => d.fail_to_prepare(&e),
        }
    })
}

/// A text as C has it; what NUL bytes it holds are left out.
fn c_text(text: &[u8]) -> CString {
    let mut own = Vec::with_capacity(text.len() + 1);
    own.extend_from_slice(text);
    CString::new(own).unwrap_or_else(|e| {
        let mut own = e.into_vec();
        own.retain(|b| *b != 0);
        CString::new(own).unwrap_or_default()
    })
}

unsafe fn prepare_at(
    db: *mut Db,
    sql: *const c_char,
    n: c_int,
    legacy: bool,
    out: *mut *mut Stmt,
    tail: *mut *const c_char,
) -> c_int {
    if sql.is_null() {
        return MISUSE;
    }
    let mut used = 0;
    let text = sql_bytes(sql, n);
    let rc = prepare(db, text, legacy, out, &mut used);
    if rc != OK && !tail.is_null() {
        used = failed_length(text);
    }
    if !tail.is_null() {
        *tail = sql.add(used);
    }
    rc
}

/// How much of a text was used where its first statement cannot be prepared: the statement, or up to the token that does not
/// belong there.
fn failed_length(sql: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(sql) else { return sql.len() };
    match iolite_sql::parse_next(text, &Default::default()) {
        Ok(Some((_, used))) => used,
        Ok(None) => sql.len(),
        Err(e) => e.offset().map_or(sql.len(), |at| {
            let t = iolite_sql::lexer::Lexer::new(sql, at as usize).token();
            (if t.kind == iolite_sql::token::T::Illegal { t.start } else { t.end }) as usize
        }),
    }
}

unsafe fn prepare16_at(
    db: *mut Db,
    sql: *const c_void,
    n: c_int,
    legacy: bool,
    out: *mut *mut Stmt,
    tail: *mut *const c_void,
) -> c_int {
    if sql.is_null() {
        return MISUSE;
    }
    let text = crate::text::from_utf16(sql, n as i64);
    let mut used = 0;
    let rc = prepare(db, &text, legacy, out, &mut used);
    if rc != OK {
        used = failed_length(&text);
    }
    if !tail.is_null() {
        let units = String::from_utf8_lossy(&text[..used.min(text.len())]).encode_utf16().count();
        *tail = sql.add(units * 2);
    }
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare(
    db: *mut Db,
    sql: *const c_char,
    n: c_int,
    out: *mut *mut Stmt,
    tail: *mut *const c_char,
) -> c_int {
    prepare_at(db, sql, n, true, out, tail)
}

/// Runs `f` as the flags of `sqlite3_prepare_v3` say: without virtual tables, or as ever.
unsafe fn flagged(db: *mut Db, flags: c_uint, f: impl FnOnce() -> c_int) -> c_int {
    const NO_VTAB: c_uint = 4;
    if flags & NO_VTAB == 0 {
        return f();
    }
    with(db, MISUSE, |d| match d.conn() {
        Some(c) => c.without_virtual_tables(f),
        None => f(),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare_v2(
    db: *mut Db,
    sql: *const c_char,
    n: c_int,
    out: *mut *mut Stmt,
    tail: *mut *const c_char,
) -> c_int {
    prepare_at(db, sql, n, false, out, tail)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare_v3(
    db: *mut Db,
    sql: *const c_char,
    n: c_int,
    flags: c_uint,
    out: *mut *mut Stmt,
    tail: *mut *const c_char,
) -> c_int {
    flagged(db, flags, || prepare_at(db, sql, n, false, out, tail))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare16(
    db: *mut Db,
    sql: *const c_void,
    n: c_int,
    out: *mut *mut Stmt,
    tail: *mut *const c_void,
) -> c_int {
    prepare16_at(db, sql, n, true, out, tail)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare16_v2(
    db: *mut Db,
    sql: *const c_void,
    n: c_int,
    out: *mut *mut Stmt,
    tail: *mut *const c_void,
) -> c_int {
    prepare16_at(db, sql, n, false, out, tail)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_prepare16_v3(
    db: *mut Db,
    sql: *const c_void,
    n: c_int,
    flags: c_uint,
    out: *mut *mut Stmt,
    tail: *mut *const c_void,
) -> c_int {
    flagged(db, flags, || prepare16_at(db, sql, n, false, out, tail))
}

impl Body {
    /// As in SQLite, who asks for a column that is not there has the failure of the step before told by its primary code.
    pub(crate) fn mask_failure(&self, d: &Db) {
        if let Some(e) = self.failed.borrow_mut().as_mut()
            && !d.extended.get()
        {
            *e = Error::new(e.code().primary(), e.message());
        }
    }

    /// Forgets the row that was there.
    fn leave_row(&self) {
        self.has_row.set(false);
        for c in self.columns.borrow_mut().iter_mut().filter(|c| c.used) {
            c.buffers.clear();
            c.value = None;
            c.used = false;
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_step(s: *mut Stmt) -> c_int {
    with_stmt(s, MISUSE, |d, st| {
        st.leave_row();
        if d.broken.get() {
            return d.fail_broken();
        }
        // A function called by this very statement has no business here.
        let Ok(mut inner) = st.inner.try_borrow_mut() else { return d.fail_code(MISUSE) };
        if !st.started.replace(true) {
            st.began.set(crate::hooks::is_timed(d).then(Instant::now));
            let explains = inner.program().explain != 0;
            drop(inner);
            if !explains {
                crate::hooks::trace_start(d, s, &st.sql);
            }
            inner = match st.inner.try_borrow_mut() {
                Ok(i) => i,
                Err(_) => return d.fail_code(MISUSE),
            };
        }
        st.ran.set(true);
        let explained = inner.program().explain != 0;
        let before = crate::hooks::now_running(d, Some(s));
        let stepped = inner.step();
        crate::hooks::now_running(d, before);
        let (rc, failed) = match stepped {
            Ok(Step::Row) => {
                st.has_row.set(true);
                (d.note(ROW), None)
            }
            Ok(Step::Done) => (d.note(DONE), None),
            // The connection hears of it when the statement is reset.
            Err(e)
                if st.legacy && !matches!(e.code().primary(), iolite::Code::Busy | iolite::Code::Misuse) =>
            {
                (d.note(crate::ERROR), Some(e))
            }
            Err(e) => (d.fail_to_run(&e), Some(e)),
        };
        drop(inner);
        if let Some(e) = &failed {
            crate::log::log(e.code().number() as c_int, || {
                let message = iolite_base::raw_text::decode(e.message()).into_owned();
                [b"statement aborts: ", &message[..], b"; [", st.sql.to_bytes(), b"]"].concat()
            });
        }
        *st.failed.borrow_mut() = failed;
        if rc == ROW {
            if !explained {
                crate::hooks::trace_row(d, s);
            }
        } else if st.started.take() {
            trace_end(d, st, s);
            let told = crate::hooks::after_statement(d, owner(s));
            if rc == DONE && told != OK {
                let code = u32::try_from(told).ok().and_then(Code::from_number).unwrap_or(Code::Error);
                *st.failed.borrow_mut() = Some(code.into());
                return d.fail_code(told);
            }
        }
        rc
    })
}

fn trace_end(d: &Db, st: &Body, s: *mut Stmt) {
    if let Some(t) = st.began.take() {
        crate::hooks::trace_end(d, s, t.elapsed());
    }
}

/// Ends a statement's run and says how it went. One that did not run leaves the connection's error as it is.
fn reset(d: &Db, st: &Body, s: *mut Stmt) -> c_int {
    st.leave_row();
    let Ok(mut inner) = st.inner.try_borrow_mut() else { return d.fail_code(MISUSE) };
    let r = if d.broken.get() { Err(iolite::Code::Internal.into()) } else { inner.reset() };
    drop(inner);
    let (failed, ran) = (st.failed.borrow_mut().take(), st.ran.replace(false));
    if st.started.take() {
        trace_end(d, st, s);
    }
    // SAFETY: pointers were given with their destructors, and without a running statement no value stands for them.
    unsafe {
        if !d.result_pointers.borrow().is_empty() && !any_busy(d) {
            d.release_pointers();
        }
    }
    match (failed, r) {
        (Some(e), _) | (None, Err(e)) => d.fail_to_run(&e),
        (None, Ok(())) if ran => d.ended(),
        (None, Ok(())) => OK,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_reset(s: *mut Stmt) -> c_int {
    if s.is_null() {
        return OK;
    }
    with_stmt(s, MISUSE, |d, st| reset(d, st, s))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_finalize(s: *mut Stmt) -> c_int {
    if s.is_null() {
        return OK;
    }
    let db = owner(s);
    leaving(db, MISUSE, |d| {
        if owner(s) != db {
            return MISUSE;
        }
        let st = (*(*s).body.get()).assume_init_ref();
        if st.inner.try_borrow_mut().is_err() {
            // A function called by the running statement wants to end it: it cannot go away under its own feet.
            return d.fail_code(MISUSE);
        }
        let rc = reset(d, st, s);
        clear_pointers(st, None);
        drop(Stmt::remove(d, s));
        rc
    })
}

unsafe fn clear_pointers(st: &Body, only: Option<usize>) {
    let mut list = st.pointers.borrow_mut();
    if list.is_empty() {
        return;
    }
    let (gone, kept) = std::mem::take(&mut *list).into_iter().partition(|e| only.is_none_or(|i| i == e.0));
    *list = kept;
    drop(list);
    let gone: Vec<_> = gone;
    for (_, p, destroy) in gone {
        if let Some(f) = destroy {
            f(p);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_clear_bindings(s: *mut Stmt) -> c_int {
    with_stmt(s, MISUSE, |_, st| match st.inner.try_borrow_mut() {
        Ok(mut i) => {
            i.clear_bindings();
            clear_pointers(st, None);
            OK
        }
        Err(_) => MISUSE,
    })
}

unsafe fn bind(s: *mut Stmt, i: c_int, v: iolite::Result<Value>) -> c_int {
    let length = if let Ok(Value::Text(b, _) | Value::Blob(b, _)) = &v { b.len() } else { 0 };
    put(s, i, length, |to| {
        *to = v?;
        Ok(())
    })
}

/// Has `f` write a value of so many bytes to the place of a parameter.
#[inline]
unsafe fn put(
    s: *mut Stmt,
    i: c_int,
    length: usize,
    f: impl FnOnce(&mut Value) -> iolite::Result<()>,
) -> c_int {
    with_stmt(s, MISUSE, |d, st| {
        let Ok(mut inner) = st.inner.try_borrow_mut() else { return d.fail_code(MISUSE) };
        if st.ran.get() || inner.is_busy() {
            crate::log::log(MISUSE, || {
                [b"bind on a busy prepared statement: [", st.sql.to_bytes(), b"]"].concat()
            });
            return d.fail_code(MISUSE);
        }
        if i < 1 {
            return d.fail_code(RANGE);
        }
        let r = inner.binding(i as usize, length).and_then(f);
        drop(inner);
        clear_pointers(st, Some(i as usize));
        match r {
            Ok(()) => d.note(OK),
            Err(e) => d.fail_code(e.code().number() as c_int),
        }
    })
}

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

/// `n` bytes at `p`, or up to the NUL if `n` is negative.
pub(crate) unsafe fn given<'a>(p: *const c_void, n: i64) -> &'a [u8] {
    let len = if n < 0 { libc::strlen(p as *const c_char) } else { n as usize };
    std::slice::from_raw_parts(p as *const u8, len)
}

unsafe fn bind_bytes(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: i64,
    f: Option<Destructor>,
    make: impl FnOnce(*const c_void, i64) -> iolite::Result<Value>,
) -> c_int {
    if p.is_null() {
        return bind(s, i, Ok(Value::Null));
    }
    let rc = if n > i32::MAX as i64 {
        with_stmt(s, MISUSE, |d, _| d.fail_code(TOOBIG))
    } else {
        bind(s, i, make(p, n))
    };
    destroy(f, p);
    rc
}

/// As [`bind_bytes`], for bytes that are taken as they are: they go where the value before had its own.
unsafe fn bind_as_is(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: i64,
    f: Option<Destructor>,
    set: fn(&mut Value, &[u8]) -> iolite::Result<()>,
) -> c_int {
    if p.is_null() {
        return bind(s, i, Ok(Value::Null));
    }
    let rc = if n > i32::MAX as i64 {
        with_stmt(s, MISUSE, |d, _| d.fail_code(TOOBIG))
    } else {
        let bytes = given(p, n);
        put(s, i, bytes.len(), |to| set(to, bytes))
    };
    destroy(f, p);
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text(
    s: *mut Stmt,
    i: c_int,
    p: *const c_char,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    bind_as_is(s, i, p as *const c_void, n as i64, f, Value::set_text)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text64(
    s: *mut Stmt,
    i: c_int,
    p: *const c_char,
    n: u64,
    f: Option<Destructor>,
    encoding: c_uchar,
) -> c_int {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    if !matches!(encoding, 2..=4) {
        return bind_as_is(s, i, p as *const c_void, n, f, Value::set_text);
    }
    bind_bytes(s, i, p as *const c_void, n, f, |p, n| from_encoding(p, n, encoding))
}

/// A text in the given encoding, by its number in the C interface.
pub(crate) unsafe fn from_encoding(p: *const c_void, n: i64, encoding: c_uchar) -> iolite::Result<Value> {
    match encoding {
        2 | 3 => {
            let e = if encoding == 2 { iolite::Encoding::Utf16le } else { iolite::Encoding::Utf16be };
            Ok(Value::Text(iolite_value::utf16::decode(given(p, n), e)?, 0))
        }
        4 => Value::text(crate::text::from_utf16(p, n)),
        _ => Value::text(given(p, n)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_text16(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    bind_bytes(s, i, p, n as i64, f, |p, n| Value::text(crate::text::from_utf16(p, n)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_blob(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: c_int,
    f: Option<Destructor>,
) -> c_int {
    if n < 0 {
        return MISUSE;
    }
    bind_as_is(s, i, p, n as i64, f, Value::set_blob)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_blob64(
    s: *mut Stmt,
    i: c_int,
    p: *const c_void,
    n: u64,
    f: Option<Destructor>,
) -> c_int {
    bind_as_is(s, i, p, i64::try_from(n).unwrap_or(i64::MAX), f, Value::set_blob)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_int(s: *mut Stmt, i: c_int, v: c_int) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Int(v as i64);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_int64(s: *mut Stmt, i: c_int, v: i64) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Int(v);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_double(s: *mut Stmt, i: c_int, v: f64) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::real(v);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_null(s: *mut Stmt, i: c_int) -> c_int {
    put(s, i, 0, |to| {
        *to = Value::Null;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_value(s: *mut Stmt, i: c_int, v: *const CValue) -> c_int {
    // A copy: the value may be another connection's.
    bind(s, i, v.as_ref().map_or(Ok(Value::Null), |v| v.copy()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_zeroblob(s: *mut Stmt, i: c_int, n: c_int) -> c_int {
    sqlite3_bind_zeroblob64(s, i, n.max(0) as u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_zeroblob64(s: *mut Stmt, i: c_int, n: u64) -> c_int {
    match zeroblob(n) {
        // Whatever the parameter; the connection's error stays.
        Err(e) => with_stmt(s, MISUSE, |d, _| d.mask(e.code().number() as i32)),
        v => bind(s, i, v),
    }
}

/// A blob of zeroes.
pub(crate) fn zeroblob(n: u64) -> iolite::Result<Value> {
    if n > 1_000_000_000 {
        return Err(iolite::Code::Toobig.into());
    }
    Value::blob(&iolite_base::alloc::zeroed(n as usize)?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_pointer(
    s: *mut Stmt,
    i: c_int,
    p: *mut c_void,
    name: *const c_char,
    f: Option<Destructor>,
) -> c_int {
    // It is released when another value is bound, or with the statement.
    let rc = bind(s, i, crate::pointer::of_pointer(p, crate::connection::bytes(name)));
    if rc != OK {
        destroy(f, p);
        return rc;
    }
    with_stmt(s, MISUSE, |_, st| {
        st.pointers.borrow_mut().push((i as usize, p, f));
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_count(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.parameter_count() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_name(s: *mut Stmt, i: c_int) -> *const c_char {
    with_stmt(s, null(), |_, st| {
        let name = st.inner.try_borrow().ok();
        let name = name.and_then(|n| n.parameter_name(i.max(0) as usize).map(str::to_string));
        name.map_or(null(), |n| {
            crate::column::keep(st, (i as usize, b'p'), raw_text::decode(&n).into_owned(), 1)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_bind_parameter_index(s: *mut Stmt, name: *const c_char) -> c_int {
    let Some(name) = text_option(name) else { return 0 };
    with_stmt(s, 0, |_, st| {
        st.inner.try_borrow().map_or(0, |i| i.parameter_index(&name).unwrap_or(0) as c_int)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_transfer_bindings(from: *mut Stmt, to: *mut Stmt) -> c_int {
    let db = owner(from);
    if db != owner(to) {
        // Values stay with their connection.
        return MISUSE;
    }
    let count = with_stmt(to, -1, |_, st| st.inner.try_borrow().map_or(-1, |i| i.parameter_count() as c_int));
    with_stmt(from, MISUSE, |d, st| {
        let values = match st.inner.try_borrow() {
            Ok(i) => i.bindings().to_vec(),
            Err(_) => return d.fail_code(MISUSE),
        };
        if values.len() as c_int != count {
            return crate::ERROR;
        }
        for (i, v) in values.into_iter().enumerate() {
            bind(to, i as c_int + 1, Ok(v));
        }
        sqlite3_clear_bindings(from)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_sql(s: *mut Stmt) -> *const c_char {
    // Not under the mutex: the text does not change, and who asks holds the statement.
    if owner(s).is_null() { null() } else { (*(*s).body.get()).assume_init_ref().sql.as_ptr() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_expanded_sql(s: *mut Stmt) -> *mut c_char {
    with_stmt(s, null_mut(), |_, st| {
        let Ok(inner) = st.inner.try_borrow() else {
            // Asked by a callback of the running statement: its values are in use.
            return crate::memory::copy_out(st.sql.to_bytes());
        };
        expanded_within_limit(&inner).map_or(null_mut(), |t| crate::memory::copy_out(&t))
    })
}

/// The text with values, unless it would be too long.
fn expanded_within_limit(s: &Statement) -> Option<Vec<u8>> {
    let text = expanded(s);
    let limit = s.connection().limit(iolite::Limit::Length, None) as usize;
    (text.len() <= limit).then_some(text)
}

/// What `sqlite3_trace` is told: the text with values, or as it was given where that would be too long.
pub(crate) unsafe fn traced_text(s: *mut Stmt) -> CString {
    let st = (*(*s).body.get()).assume_init_ref();
    let text = st.inner.try_borrow().ok().and_then(|i| expanded_within_limit(&i));
    text.and_then(|t| CString::new(t).ok()).unwrap_or_else(|| st.sql.clone())
}

/// A parameter's value as it stands in the text: as `quote()` writes it, blobs in small letters.
fn literal(v: &Value) -> Vec<u8> {
    let mut text = iolite_func::quote(v).unwrap_or_default();
    if matches!(v, Value::Blob(..)) {
        text.make_ascii_lowercase();
    }
    text
}

/// The text with its parameters replaced by their values.
fn expanded(s: &Statement) -> Vec<u8> {
    let sql = s.sql();
    let mut out = Vec::with_capacity(sql.len());
    let mut lexer = iolite_sql::lexer::Lexer::new(sql.as_bytes(), 0);
    let (mut at, mut anonymous) = (0, 0);
    loop {
        let t = lexer.token();
        if t.end <= t.start || t.start as usize >= sql.len() {
            break;
        }
        let (from, to) = (t.start as usize, t.end as usize);
        let word = &sql[from..to];
        if !word.starts_with(['?', ':', '@', '$', '#']) {
            continue;
        }
        let index = match word {
            "?" => {
                anonymous += 1;
                Some(anonymous)
            }
            w => w.strip_prefix('?').and_then(|n| n.parse().ok()).or_else(|| s.parameter_index(w)),
        };
        if let Some(i) = index {
            anonymous = anonymous.max(i);
        }
        out.extend_from_slice(&raw_text::decode(&sql[at..from]));
        let value = index.and_then(|i| s.bindings().get(i - 1)).cloned().unwrap_or_default();
        out.extend_from_slice(&literal(&value));
        at = to;
    }
    out.extend_from_slice(&raw_text::decode(&sql[at..]));
    out
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_normalized_sql(s: *mut Stmt) -> *const c_char {
    with_stmt(s, null(), |_, st| {
        let text = raw_text::encode(st.sql.to_bytes());
        let printed = match iolite_sql::parse_next(&text, &Default::default()) {
            Ok(Some((p, _))) => iolite_sql::print::parsed(&p),
            _ => text.into_owned(),
        };
        crate::column::keep(st, (0, b'n'), raw_text::decode(&printed).into_owned(), 1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_readonly(s: *mut Stmt) -> c_int {
    with_stmt(s, 1, |_, st| st.inner.try_borrow().map_or(1, |i| i.is_readonly() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_busy(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(1, |i| i.is_busy() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_isexplain(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.program().explain as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_explain(s: *mut Stmt, mode: c_int) -> c_int {
    with_stmt(s, MISUSE, |d, st| {
        if !(0..=2).contains(&mode) {
            return crate::ERROR;
        }
        let Ok(mut inner) = st.inner.try_borrow_mut() else { return crate::BUSY };
        if inner.program().explain as c_int == mode {
            return OK;
        }
        if st.ran.get() {
            return crate::BUSY;
        }
        match inner.set_explain(mode as u8) {
            Ok(()) => OK,
            Err(e) if e.code() == iolite::Code::Busy => crate::BUSY,
            Err(e) => d.fail(&e),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_status(s: *mut Stmt, op: c_int, reset: c_int) -> c_int {
    use iolite::engine::StatementCounter as C;
    const MEMORY_USED: c_int = 99;
    let which = match op {
        1 => C::FullScanSteps,
        2 => C::Sorts,
        3 => C::AutoIndexRows,
        4 => C::Instructions,
        5 => C::Recompiled,
        6 => C::Runs,
        7 => C::FilterMisses,
        8 => C::FilterHits,
        MEMORY_USED => {
            return with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.memory_used() as c_int));
        }
        _ => return 0,
    };
    with_stmt(s, 0, |_, st| {
        st.inner.try_borrow_mut().map_or(0, |mut i| i.counter(which, reset != 0) as u32 as c_int)
    })
}

/// Whether a statement of the connection is running.
pub(crate) unsafe fn any_busy(d: &Db) -> bool {
    d.statements.borrow().iter().any(|s| Stmt::is_busy(*s))
}

/// The statements of a connection, for tables that list them. It lives as long as the connection, which asks it while the
/// connection's mutex is held.
pub(crate) struct Prepared(pub(crate) *const Db);

impl iolite::engine::StatementList for Prepared {
    fn facts(&self) -> Vec<StatementFacts> {
        // SAFETY: slots of connections are never freed, and those of statements in its list are in use.
        let bodies = unsafe {
            let list = (*self.0).statements.borrow();
            list.iter().map(|s| &*(**s).body.get().cast::<Body>()).collect::<Vec<_>>()
        };
        let facts = |b: &&Body| match b.inner.try_borrow_mut() {
            Ok(mut s) => s.facts(),
            // The one that asks.
            Err(_) => StatementFacts {
                sql: b.sql.to_bytes().to_vec(),
                readonly: true,
                busy: true,
                runs: 1,
                ..Default::default()
            },
        };
        bodies.iter().rev().map(facts).collect()
    }

    fn instructions(&self, pointer: &Value) -> iolite::Result<Option<Vec<Instruction>>> {
        let p = crate::pointer::pointer_of(pointer, b"stmt-pointer").cast::<Stmt>();
        // SAFETY: as above; what is in the list is a statement in use.
        let body = unsafe {
            let known = (*self.0).statements.borrow().contains(&p);
            known.then(|| &*(*p).body.get().cast::<Body>())
        };
        Ok(body.and_then(|b| b.inner.try_borrow().ok().map(|s| s.explain())))
    }
}

/// Bytes that the programs of a connection's statements take.
pub(crate) unsafe fn memory_used(d: &Db) -> usize {
    let list = d.statements.borrow();
    let bodies = list.iter().map(|s| (*(**s).body.get()).assume_init_ref());
    bodies.filter_map(|b| b.inner.try_borrow().ok().map(|i| i.memory_used())).sum()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_next_stmt(db: *mut Db, s: *mut Stmt) -> *mut Stmt {
    with(db, null_mut(), |d| {
        let list = d.statements.borrow();
        let at =
            if s.is_null() { 0 } else { list.iter().position(|x| *x == s).map_or(list.len(), |i| i + 1) };
        list.get(at).copied().unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_handle(s: *mut Stmt) -> *mut Db {
    owner(s)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_expired(_: *mut Stmt) -> c_int {
    guard(0, || 0)
}

//! Prepared statements: what they hold, and `sqlite3_step`, `sqlite3_reset`, `sqlite3_finalize`.
//!
//! `prepare` makes them, `bind` gives their parameters values, `column` reads their rows, `statement_info` tells of them.

use crate::connection::{Db, Destructor, within};
use crate::handle::{Answer, leaving};
use crate::value::{Buffers, CValue};
use crate::{DONE, MISUSE, OK, ROW};
use iolite::engine::{Code, Error, Statement, Step, Value};
use iolite_base::raw_text;
use iolite_value::num;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

/// What a `sqlite3_stmt*` points at: a slot that is kept when the statement is finalized (`handle`).
pub struct Stmt {
    /// NULL: finalized.
    pub(crate) db: AtomicPtr<Db>,
    /// There while `db` is not NULL; reached under the connection's mutex.
    pub(crate) body: UnsafeCell<MaybeUninit<Body>>,
}

/// The statement itself.
pub(crate) struct Body {
    pub(crate) inner: RefCell<Statement>,
    pub(crate) sql: CString,
    /// Made by `sqlite3_prepare`: a step answers `SQLITE_ERROR`, and what went wrong is said by `sqlite3_reset`.
    pub(crate) legacy: bool,
    /// It was stepped since it was prepared or reset.
    pub(crate) ran: Cell<bool>,
    /// What the last step failed with: `sqlite3_reset` and `sqlite3_finalize` say it again.
    pub(crate) failed: RefCell<Option<Error>>,
    pub(crate) has_row: Cell<bool>,
    /// The row's values as C saw them.
    pub(crate) columns: RefCell<Vec<Column>>,
    /// Texts handed out: column names and the like.
    pub(crate) names: RefCell<Vec<(NameKey, Vec<u8>)>>,
    /// Between its first step and its end.
    pub(crate) started: Cell<bool>,
    /// When that began, where somebody asks how long it took.
    pub(crate) began: Cell<Option<Instant>>,
    /// Pointers bound by `sqlite3_bind_pointer`.
    pub(crate) pointers: RefCell<Vec<(usize, *mut c_void, Option<Destructor>)>>,
    /// Parameters bound by `sqlite3_bind_zeroblob`.
    pub(crate) zeroed: RefCell<Vec<usize>>,
    /// What the program's allocator holds for it.
    pub(crate) _held: crate::memory::Held,
}

/// So many slots of a connection wait at least before one is used again.
const WAITING: usize = 4;

impl Stmt {
    /// Puts a statement into a slot of the connection `db`, which is `d`.
    pub(crate) unsafe fn place(d: &Db, db: *mut Db, body: Body) -> *mut Stmt {
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
pub(crate) unsafe fn owner(s: *mut Stmt) -> *mut Db {
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

impl Body {
    /// As in SQLite, who asks for a column that is not there has the failure of the step before told by its primary code.
    pub(crate) fn mask_failure(&self, d: &Db) {
        if let Some(e) = self.failed.borrow_mut().as_mut()
            && !d.extended.get()
        {
            *e = Error::new(e.code().primary(), e.message());
        }
    }

    /// Forgets the row that was there. Of most statements nobody has looked at one.
    #[inline(always)]
    fn leave_row(&self) {
        self.has_row.set(false);
        if !self.columns.borrow().is_empty() {
            self.forget_columns();
        }
    }

    #[inline(never)]
    fn forget_columns(&self) {
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
        if !st.started.get() {
            // One that has expired begins when it is compiled anew.
            if let Err(e) = asking(d, s, || inner.renew()) {
                drop(inner);
                st.ran.set(false);
                let rc = match st.legacy {
                    true => crate::ERROR,
                    false => d.fail_to_prepare(&e),
                };
                *st.failed.borrow_mut() = Some(e);
                return rc;
            }
            st.started.set(true);
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
        let mut tries = 0;
        let stepped = asking(d, s, || {
            loop {
                if let Some(step) = inner.try_step(&mut tries)? {
                    return Ok(step);
                }
                // One run has ended, another begins.
                trace_end(d, st, s);
                st.began.set(crate::hooks::is_timed(d).then(Instant::now));
            }
        });
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
        let waits = failed.is_some() && inner.is_busy();
        drop(inner);
        if let Some(e) = &failed {
            crate::log::log(e.number() as c_int, || {
                let message = iolite_base::raw_text::decode(e.message()).into_owned();
                [b"statement aborts: ", &message[..], b"; [", st.sql.to_bytes(), b"]"].concat()
            });
        }
        *st.failed.borrow_mut() = failed;
        if rc == ROW {
            if !explained {
                crate::hooks::trace_row(d, s);
            }
        } else if waits {
            trace_end(d, st, s);
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

/// Runs `f`, which may compile the statement anew: it may miss a collating sequence then, for which the program is asked.
unsafe fn asking<T>(d: &Db, s: *mut Stmt, mut f: impl FnMut() -> iolite::Result<T>) -> iolite::Result<T> {
    let mut done = f();
    let mut asked = crate::collation::Asked::default();
    while let Err(e) = &done
        && let Some(go_on) = asked.ask(d, owner(s), e)
        && let Some(c) = d.conn()
    {
        done = go_on.then(&c, &mut f);
    }
    done
}

pub(crate) fn trace_end(d: &Db, st: &Body, s: *mut Stmt) {
    if let Some(t) = st.began.take() {
        crate::hooks::trace_end(d, s, t.elapsed());
    }
}

/// Ends a statement's run and says how it went. One that did not run, or could not be compiled anew for it, leaves the connection's
/// error as it is.
pub(crate) fn reset(d: &Db, st: &Body, s: *mut Stmt) -> c_int {
    st.leave_row();
    let Ok(mut inner) = st.inner.try_borrow_mut() else { return d.fail_code(MISUSE) };
    if st.started.take() {
        drop(inner);
        trace_end(d, st, s);
        inner = match st.inner.try_borrow_mut() {
            Ok(i) => i,
            Err(_) => return d.fail_code(MISUSE),
        };
    }
    let r = if d.broken.get() { Err(iolite::Code::Internal.into()) } else { inner.reset() };
    drop(inner);
    let (failed, ran) = (st.failed.borrow_mut().take(), st.ran.replace(false));
    // SAFETY: pointers were given with their destructors, and without a running statement no value stands for them.
    unsafe {
        if !d.result_pointers.borrow().is_empty() && !any_busy(d) {
            d.release_pointers();
        }
    }
    match (failed, r) {
        (Some(e), _) if !ran => d.answer::<()>(Err(e)),
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

/// Whether a statement of the connection is running.
pub(crate) unsafe fn any_busy(d: &Db) -> bool {
    d.statements.borrow().iter().any(|s| Stmt::is_busy(*s))
}

/// Lets go of bound pointers, and forgets blobs of zeroes: of one parameter's or of all. Most statements have none.
#[inline(always)]
pub(crate) unsafe fn clear_pointers(st: &Body, only: Option<usize>) {
    if !st.zeroed.borrow().is_empty() {
        st.zeroed.borrow_mut().retain(|z| only.is_some_and(|i| i != *z));
    }
    if !st.pointers.borrow().is_empty() {
        release_pointers(st, only);
    }
}

#[cold]
#[inline(never)]
unsafe fn release_pointers(st: &Body, only: Option<usize>) {
    let mut list = st.pointers.borrow_mut();
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
pub unsafe extern "C" fn sqlite3_sql(s: *mut Stmt) -> *const c_char {
    // Not under the mutex: the text does not change, and who asks holds the statement.
    if owner(s).is_null() { null() } else { (*(*s).body.get()).assume_init_ref().sql.as_ptr() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_expanded_sql(s: *mut Stmt) -> *mut c_char {
    with_stmt(s, null_mut(), |d, st| {
        let Ok(inner) = st.inner.try_borrow() else {
            // Asked by a callback of the running statement: its values are in use.
            return crate::memory::copy_out(st.sql.to_bytes());
        };
        expanded_within_limit(d, &inner, &st.zeroed.borrow())
            .map_or(null_mut(), |t| crate::memory::copy_out(&t))
    })
}

/// The text with values, unless it would be too long.
fn expanded_within_limit(d: &Db, s: &Statement, zeroed: &[usize]) -> Option<Vec<u8>> {
    let text = if crate::hooks::is_nested(d) { as_comment(s.sql()) } else { expanded(s, zeroed) };
    let limit = s.connection().limit(iolite::Limit::Length, None) as usize;
    (text.len() < limit).then_some(text)
}

/// What `sqlite3_trace` is told: the text with values, or as it was given where that would be too long.
pub(crate) unsafe fn traced_text(d: &Db, s: *mut Stmt) -> CString {
    let st = (*(*s).body.get()).assume_init_ref();
    let text = st.inner.try_borrow().ok().and_then(|i| expanded_within_limit(d, &i, &st.zeroed.borrow()));
    text.and_then(|t| CString::new(t).ok()).unwrap_or_else(|| st.sql.clone())
}

/// A parameter's value as it stands in the text: as `quote()` writes it, but reals shorter and blobs in small letters.
fn literal(v: &Value) -> Vec<u8> {
    if let Value::Blob(_, crate::pointer::POINTER) = v {
        return b"NULL".to_vec();
    }
    if let Value::Real(r) = v {
        return num::write_real(*r, 15, &mut [0; 32]).to_vec();
    }
    let mut text = iolite_func::quote(v).unwrap_or_default();
    if matches!(v, Value::Blob(..)) {
        text.make_ascii_lowercase();
    }
    text
}

/// The text of a statement that runs within another one, as SQLite tells of it: each line a comment.
fn as_comment(sql: &str) -> Vec<u8> {
    sql.split_inclusive('\n').flat_map(|line| [b"-- ", &*raw_text::decode(line)].concat()).collect()
}

/// The text with its parameters replaced by their values; `zeroed`: those that are blobs of zeroes.
fn expanded(s: &Statement, zeroed: &[usize]) -> Vec<u8> {
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
        match &value {
            Value::Blob(b, _) if index.is_some_and(|i| zeroed.contains(&i)) => {
                out.extend_from_slice(format!("zeroblob({})", b.len()).as_bytes());
            }
            v => out.extend_from_slice(&literal(v)),
        }
        at = to;
    }
    out.extend_from_slice(&raw_text::decode(&sql[at..]));
    out
}

/// Bytes that the programs of a connection's statements take.
pub(crate) unsafe fn memory_used(d: &Db) -> usize {
    let list = d.statements.borrow();
    let bodies = list.iter().map(|s| (*(**s).body.get()).assume_init_ref());
    bodies.filter_map(|b| b.inner.try_borrow().ok().map(|i| i.memory_used())).sum()
}

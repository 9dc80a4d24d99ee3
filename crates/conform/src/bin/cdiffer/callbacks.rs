//! What the driver hands to a library as callbacks: each writes what it is told into one log, which belongs to the call under way.
//!
//! One thread makes all calls, so the log and the library that is being called are thread-local. A callback answers what
//! `Answers` says, set by the script.

use super::api::{Api, P, S};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Values given back. The moment is left open ("after SQLite has finished with it"): ours copies and has finished at once.
    static DESTROYED: Cell<usize> = const { Cell::new(0) };
    static API: Cell<Option<&'static Api>> = const { Cell::new(None) };
}

/// What the callbacks of one connection answer; its address is their user data.
#[derive(Default)]
pub struct Answers {
    /// The connection's number.
    pub id: usize,
    /// The commit hook's.
    pub commit: Cell<c_int>,
    /// The progress handler's, after so many calls.
    pub progress: Cell<(c_int, c_int)>,
    /// How often the busy handler says to try again.
    pub busy: Cell<c_int>,
    /// The authorizer's: for which action, for the how manieth time, which answer; and whether it is silent.
    pub authorizer: Cell<(c_int, c_int, c_int)>,
    /// Whether it logs.
    pub quiet: Cell<bool>,
}

/// Starts the log of a call to this library.
pub fn begin(api: &'static Api) {
    API.set(Some(api));
    LOG.with_borrow_mut(Vec::clear);
}

/// How many values were given back since the last question.
pub fn destroyed() -> usize {
    DESTROYED.replace(0)
}

/// What was logged since.
pub fn end() -> Vec<String> {
    LOG.with_borrow_mut(std::mem::take)
}

fn api() -> &'static Api {
    API.get().expect("a call is under way")
}

/// Adds a line, up to a bound.
pub fn say(line: String) {
    LOG.with_borrow_mut(|l| {
        if l.len() < 400 {
            l.push(line);
        }
    });
}

/// A C text, for the log.
pub fn text(s: S) -> String {
    if s.is_null() {
        return "NULL".into();
    }
    // SAFETY: the libraries hand out texts that end with NUL.
    let t = unsafe { CStr::from_ptr(s) }.to_bytes();
    bytes(t)
}

/// Bytes, for the log: as text where they are printable.
pub fn bytes(t: &[u8]) -> String {
    let shown = &t[..t.len().min(300)];
    match std::str::from_utf8(shown) {
        Ok(s) if !s.contains('\0') => format!("'{}'", s.escape_debug()),
        _ => format!("x'{}'", shown.iter().map(|b| format!("{b:02x}")).collect::<String>()),
    }
}

fn answers<'a>(p: P) -> &'a Answers {
    // SAFETY: every callback is registered with the address of its connection's answers, which outlive the connection.
    unsafe { &*(p as *const Answers) }
}

/// A value as it is, without a conversion of the value itself.
pub fn value(v: P) -> String {
    let a = api();
    if v.is_null() {
        return "no value".into();
    }
    // SAFETY: a value that the library has just handed out; what it points to is copied at once.
    unsafe {
        match (a.value_type)(v) {
            1 => format!("{}", (a.value_int64)(v)),
            2 => format!("{:?}", (a.value_double)(v)),
            3 => {
                let p = (a.value_text)(v) as *const u8;
                bytes(part(p, (a.value_bytes)(v)))
            }
            4 => {
                let p = (a.value_blob)(v) as *const u8;
                format!("blob {}", bytes(part(p, (a.value_bytes)(v))))
            }
            _ => "null".into(),
        }
    }
}

/// As [`value`], for one that goes into a row: whether a whole number is there as a real is the file's business.
fn stored(v: P) -> String {
    let s = value(v);
    s.strip_suffix(".0").map_or(s.clone(), String::from)
}

/// `n` bytes at `p`.
///
/// # Safety
/// They are there, or `p` is NULL.
pub unsafe fn part<'a>(p: *const u8, n: c_int) -> &'a [u8] {
    if p.is_null() || n <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

unsafe fn values(n: c_int, v: *mut P) -> Vec<String> {
    // SAFETY: the library passes `n` values.
    (0..n as usize).map(|i| value(unsafe { *v.add(i) })).collect()
}

/// The destructor of what is bound or set.
pub unsafe extern "C" fn release(p: P) {
    DESTROYED.set(DESTROYED.get() + 1);
    // SAFETY: what is handed over with this destructor comes from malloc, and is given back once: a second time is a bug
    // of the library that the process does not survive, which is a finding.
    unsafe { libc::free(p) };
}

/// The destructor of a registration.
pub unsafe extern "C" fn unregistered(p: P) {
    say(format!("unregistered {}", answers(p).id));
}

/// Rows of `sqlite3_exec`.
pub unsafe extern "C" fn row(_: P, n: c_int, v: *mut S, names: *mut S) -> c_int {
    // SAFETY: `n` texts of each kind.
    let cell = |i: usize| unsafe { format!("{}={}", text(*names.add(i)), text(*v.add(i))) };
    say(format!("row {}", (0..n as usize).map(cell).collect::<Vec<_>>().join(" ")));
    0
}

pub unsafe extern "C" fn commit(p: P) -> c_int {
    say(format!("commit hook {}", answers(p).id));
    answers(p).commit.get()
}

pub unsafe extern "C" fn rollback(p: P) {
    say(format!("rollback hook {}", answers(p).id));
}

pub unsafe extern "C" fn update(p: P, op: c_int, db: S, table: S, rowid: i64) {
    say(format!("update {} {op} {} {} {rowid}", answers(p).id, text(db), text(table)));
}

pub unsafe extern "C" fn preupdate(p: P, db: P, op: c_int, name: S, table: S, old: i64, new: i64) {
    let a = api();
    // SAFETY: within the hook these may be asked.
    unsafe {
        let n = (a.preupdate_count)(db);
        let mut line = format!(
            "preupdate {} {op} {} {} {} {} n={n} depth={} blob={}",
            answers(p).id,
            text(name),
            text(table),
            if op == 18 { 0 } else { old },
            if op == 9 { 0 } else { new },
            (a.preupdate_depth)(db),
            (a.preupdate_blobwrite)(db)
        );
        for i in 0..n {
            let mut v = null_mut();
            let rc = (a.preupdate_old)(db, i, &mut v);
            line += &format!(" old{i}:{rc}:{}", if rc == 0 { stored(v) } else { String::new() });
            let rc = (a.preupdate_new)(db, i, &mut v);
            line += &format!(" new{i}:{rc}:{}", if rc == 0 { stored(v) } else { String::new() });
        }
        say(line);
    }
}

pub unsafe extern "C" fn authorize(p: P, action: c_int, one: S, two: S, db: S, inner: S) -> c_int {
    let a = answers(p);
    if !a.quiet.get() {
        say(format!("auth {action} {} {} {} {}", text(one), text(two), text(db), text(inner)));
    }
    let (wanted, left, answer) = a.authorizer.get();
    if wanted != action || answer == 0 {
        return 0;
    }
    a.authorizer.set((wanted, left - 1, answer));
    if left <= 0 { answer } else { 0 }
}

pub unsafe extern "C" fn progress(p: P) -> c_int {
    let (left, answer) = answers(p).progress.get();
    answers(p).progress.set((left - 1, answer));
    if left <= 0 { answer } else { 0 }
}

pub unsafe extern "C" fn busy(p: P, n: c_int) -> c_int {
    say(format!("busy {} {n}", answers(p).id));
    (n < answers(p).busy.get()) as c_int
}

pub unsafe extern "C" fn trace(mask: c_uint, p: P, _: P, x: P) -> c_int {
    match mask {
        1 => say(format!("trace statement {} {}", answers(p).id, text(x as S))),
        // The time differs.
        2 => say(format!("trace profile {}", answers(p).id)),
        4 => say(format!("trace row {}", answers(p).id)),
        _ => say(format!("trace close {}", answers(p).id)),
    }
    0
}

pub unsafe extern "C" fn wal(p: P, _: P, db: S, pages: c_int) -> c_int {
    say(format!("wal hook {} {} {pages}", answers(p).id, text(db)));
    0
}

pub unsafe extern "C" fn told(list: *mut P, n: c_int) {
    // SAFETY: `n` addresses of answers.
    let ids: Vec<usize> = (0..n as usize).map(|i| answers(unsafe { *list.add(i) }).id).collect();
    say(format!("unlocked {ids:?}"));
}

/// A scalar function: logs its arguments; answers by their number: the first one, a text, an error.
pub unsafe extern "C" fn scalar(ctx: P, n: c_int, v: *mut P) {
    let a = api();
    // SAFETY: within a function these may be called; the arguments are `n`.
    unsafe {
        let id = answers((a.user_data)(ctx)).id;
        let mut more = String::new();
        for i in 0..n as usize {
            let v = *v.add(i);
            more += &format!(" {}{}", (a.value_frombind)(v), (a.value_subtype)(v));
        }
        let aux = (a.get_auxdata)(ctx, 0);
        if aux.is_null() && n > 0 {
            (a.set_auxdata)(ctx, 0, libc::malloc(4), Some(release));
        }
        say(format!("f {id} {:?}{more} aux={}", values(n, v), !aux.is_null()));
        match n {
            0 => (a.result_error)(ctx, c"of no arguments".as_ptr(), -1),
            1 => {
                if (a.value_numeric_type)(*v) == 1 && (a.value_int64)(*v) == 7 {
                    (a.result_error_code)(ctx, 19)
                } else {
                    (a.result_value)(ctx, *v)
                }
            }
            2 => {
                let t = libc::malloc(8) as *mut u8;
                std::ptr::copy_nonoverlapping(b"answer\0".as_ptr(), t, 7);
                (a.result_text)(ctx, t as P, 6, Some(release));
                (a.result_subtype)(ctx, 74);
            }
            _ => {}
        }
    }
}

pub unsafe extern "C" fn add(ctx: P, n: c_int, v: *mut P) {
    let a = api();
    // SAFETY: as in `scalar`; the context has room for the sum.
    unsafe {
        let sum = (a.aggregate_context)(ctx, 8) as *mut i64;
        if n > 0 {
            *sum += (a.value_int64)(*v);
        }
    }
}

pub unsafe extern "C" fn subtract(ctx: P, n: c_int, v: *mut P) {
    let a = api();
    // SAFETY: as above.
    unsafe {
        let sum = (a.aggregate_context)(ctx, 8) as *mut i64;
        if n > 0 {
            *sum -= (a.value_int64)(*v);
        }
    }
}

pub unsafe extern "C" fn total(ctx: P) {
    let a = api();
    // SAFETY: as above; NULL where no step was made.
    unsafe {
        let sum = (a.aggregate_context)(ctx, 0) as *mut i64;
        (a.result_int64)(ctx, if sum.is_null() { -1 } else { *sum });
    }
}

pub unsafe extern "C" fn current(ctx: P) {
    // SAFETY: as above.
    unsafe {
        let sum = (api().aggregate_context)(ctx, 8) as *mut i64;
        (api().result_int64)(ctx, *sum);
    }
}

/// A collation: by the last byte, then by all. How often it is asked is not compared.
pub unsafe extern "C" fn collate(_: P, n: c_int, a: P, m: c_int, b: P) -> c_int {
    // SAFETY: `n` and `m` bytes.
    let (a, b) = unsafe { (part(a as *const u8, n), part(b as *const u8, m)) };
    let o = a.iter().rev().cmp(b.iter().rev());
    o as c_int
}

pub unsafe extern "C" fn needed(p: P, db: P, encoding: c_int, name: S) {
    say(format!("collation needed {} {encoding} {}", answers(p).id, text(name)));
    // SAFETY: registering is what this callback is for.
    unsafe { (api().create_collation)(db, name, encoding, p, Some(collate), Some(unregistered)) };
}

/// A copy of these bytes from malloc, with a zero after them.
pub fn own(b: &[u8]) -> P {
    // SAFETY: the allocation has room for them, and for two zeros.
    unsafe {
        let p = libc::malloc(b.len() + 2) as *mut u8;
        std::ptr::copy_nonoverlapping(b.as_ptr(), p, b.len());
        *p.add(b.len()) = 0;
        *p.add(b.len() + 1) = 0;
        p as *mut c_void
    }
}

/// A text as C has it.
pub fn c(s: &str) -> Vec<c_char> {
    s.bytes().chain([0]).map(|b| b as c_char).collect()
}

/// A destructor's place, with the documented values that are no functions.
pub union Destructor {
    pub word: usize,
    pub function: Option<unsafe extern "C" fn(P)>,
}

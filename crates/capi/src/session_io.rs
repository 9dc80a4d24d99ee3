//! How changesets come in and go out: buffers, or functions of the program that move them in pieces.

use crate::OK;
use iolite_base::{Code, Error};
use iolite_session::{Input, Output};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};

/// `xInput`: fills a buffer.
pub type InputFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int) -> c_int;
/// `xOutput`: takes a buffer.
pub type OutputFn = unsafe extern "C" fn(*mut c_void, *const c_void, c_int) -> c_int;

/// The size of pieces (`sqlite3session_config`).
static PIECE: AtomicI32 = AtomicI32::new(1024);

fn piece() -> usize {
    PIECE.load(Ordering::Relaxed).max(1) as usize
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_config(op: c_int, arg: *mut c_void) -> c_int {
    let Some(n) = (arg as *mut c_int).as_mut().filter(|_| op == 1) else { return crate::MISUSE };
    if *n > 0 {
        PIECE.store(*n, Ordering::Relaxed);
    }
    *n = PIECE.load(Ordering::Relaxed);
    OK
}

/// What functions of the program have answered instead of `SQLITE_OK`: any number.
#[derive(Clone, Default)]
pub(crate) struct Said(Rc<Cell<c_int>>);

impl Said {
    pub fn answer(&self, code: c_int) -> Result<(), Error> {
        if code == OK {
            return Ok(());
        }
        self.0.set(code);
        Err(Code::Ioerr.into())
    }

    /// The number behind an error: what the program has answered, where that was the reason.
    pub fn number(&self, e: &Error) -> c_int {
        match self.0.get() {
            OK => e.code().number() as c_int,
            said => said,
        }
    }

    pub fn outcome(&self, r: Result<(), Error>) -> c_int {
        r.map_or_else(|e| self.number(&e), |()| OK)
    }
}

/// A buffer of the program's. It stays as it is while it is read.
pub(crate) unsafe fn buffer<'a>(n: c_int, p: *const c_void) -> Input<'a> {
    let empty = p.is_null() || n <= 0;
    Input::whole(if empty { &[] } else { std::slice::from_raw_parts(p as *const u8, n as usize) })
}

/// What `f` gives.
pub(crate) unsafe fn pieces_in<'a>(f: InputFn, user: *mut c_void, said: &Said) -> Input<'a> {
    let said = said.clone();
    Input::pieces(
        piece(),
        Box::new(move |b| {
            let mut n = b.len() as c_int;
            // SAFETY: the program's function of this shape, and a buffer of this size.
            said.answer(unsafe { f(user, b.as_mut_ptr() as *mut c_void, &mut n) })?;
            Ok(n.clamp(0, b.len() as c_int) as usize)
        }),
    )
}

/// Hands all over to `f`.
pub(crate) unsafe fn pieces_out<'a>(f: OutputFn, user: *mut c_void, said: &Said) -> Output<'a> {
    let said = said.clone();
    Output::pieces(
        piece(),
        // SAFETY: the program's function of this shape, and a buffer of this size.
        Box::new(move |b| said.answer(unsafe { f(user, b.as_ptr() as *const c_void, b.len() as c_int) })),
    )
}

/// Writes with `f` into a buffer that the program frees.
pub(crate) unsafe fn into_buffer(
    n: *mut c_int,
    out: *mut *mut c_void,
    said: &Said,
    f: impl FnOnce(&mut Output<'_>) -> Result<(), Error>,
) -> c_int {
    if n.is_null() || out.is_null() {
        return crate::MISUSE;
    }
    (*n, *out) = (0, null_mut());
    let mut written = Output::default();
    let bytes = match f(&mut written).and_then(|()| written.finish()) {
        Ok(b) => b,
        Err(e) => return said.number(&e),
    };
    give(&bytes, n, out)
}

/// A copy of `bytes` that the program frees.
pub(crate) unsafe fn give(bytes: &[u8], n: *mut c_int, out: *mut *mut c_void) -> c_int {
    let Ok(len) = c_int::try_from(bytes.len()) else { return crate::TOOBIG };
    if len == 0 {
        return OK;
    }
    let p = crate::memory::copy_out(bytes);
    if p.is_null() {
        return crate::NOMEM;
    }
    (*n, *out) = (len, p as *mut c_void);
    OK
}

/// Writes with `f` to a function of the program's.
pub(crate) unsafe fn into_pieces(
    to: Option<OutputFn>,
    user: *mut c_void,
    said: &Said,
    f: impl FnOnce(&mut Output<'_>) -> Result<(), Error>,
) -> c_int {
    let Some(to) = to else { return crate::MISUSE };
    let mut out = pieces_out(to, user, said);
    said.outcome(f(&mut out).and_then(|()| out.finish().map(|_| ())))
}

/// The message of an error, which the program frees.
pub(crate) unsafe fn say(e: &Error, out: *mut *mut std::ffi::c_char) {
    if !out.is_null() && e.has_message() {
        *out = crate::memory::copy_out(&iolite_base::raw_text::decode(e.message()));
    }
}

//! `sqlite3_set_authorizer`: what is asked, and when, is the engine's.

use crate::{MISUSE, OK};
use crate::connection::{Db, with};
use iolite::Error;
use iolite::engine::Statement;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null;

type Callback = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;

/// The callback and its data.
pub(crate) type Authorizer = (Callback, *mut c_void);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_authorizer(
    db: *mut Db,
    f: Option<Callback>,
    user: *mut c_void,
) -> c_int {
    with(db, MISUSE, |d| {
        d.hooks.authorizer.set(f.map(|f| (f, user)));
        OK
    })
}

/// Asks for all that a compiled statement does.
pub(crate) fn check(d: &Db, s: &Statement) -> Result<(), Error> {
    let Some((f, user)) = d.hooks.authorizer.get() else { return Ok(()) };
    let c = |s: Option<&str>| {
        s.map(|s| CString::new(iolite_base::raw_text::decode(&s.replace('\0', ""))).unwrap_or_default())
    };
    let p = |s: &Option<CString>| s.as_ref().map_or(null(), |s| s.as_ptr());
    iolite::engine::authorize(
        &|code, one, two, db| {
            let (one, two, db) = (c(one), c(two), c(db));
            // SAFETY: registered for this shape of call; the texts live across it.
            unsafe { f(user, code, p(&one), p(&two), p(&db), null()) }
        },
        s,
    )
}

//! `sqlite3_set_authorizer`: what is asked, and when, is the engine's.

use crate::connection::{Db, with};
use crate::{MISUSE, OK};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null;
use std::rc::Rc;

type Callback = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;

/// A callback of C's with its data, as the engine asks it.
struct InC(Callback, *mut c_void);

impl iolite_ext::Authorizer for InC {
    fn ask(&self, q: iolite_ext::Question<'_>) -> i32 {
        let c = |s: Option<&str>| {
            s.map(|s| CString::new(iolite_base::raw_text::decode(&s.replace('\0', ""))).unwrap_or_default())
        };
        let p = |s: &Option<CString>| s.as_ref().map_or(null(), |s| s.as_ptr());
        let (one, two, db, inner) = (c(q.one), c(q.two), c(q.database), c(q.inner));
        // SAFETY: registered for this shape of call; the texts live across it.
        unsafe { (self.0)(self.1, q.action as c_int, p(&one), p(&two), p(&db), p(&inner)) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_authorizer(
    db: *mut Db,
    f: Option<Callback>,
    user: *mut c_void,
) -> c_int {
    with(db, MISUSE, |d| {
        if let Some(c) = d.conn() {
            c.set_authorizer(f.map(|f| Rc::new(InC(f, user)) as Rc<dyn iolite_ext::Authorizer>));
        }
        OK
    })
}

//! `sqlite3changeset_apply` and its versions: the program's callbacks as the decisions of `iolite_session::apply`.

use crate::changeset::CIter;
use crate::connection::{Db, with};
use crate::session_io::{InputFn, Said, buffer, give, pieces_in};
use crate::{MISUSE, OK};
use iolite::engine::Value;
use iolite_session::{Applying, Change, Conflict, Decision, Input};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

type TableFilter = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
type ChangeFilter = unsafe extern "C" fn(*mut c_void, *mut CIter) -> c_int;
type OnConflict = unsafe extern "C" fn(*mut c_void, c_int, *mut CIter) -> c_int;

struct Callbacks {
    table: Option<TableFilter>,
    change: Option<ChangeFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
}

impl Callbacks {
    fn ask(&self, kind: Conflict, mut about: CIter) -> Option<Decision> {
        // SAFETY: the program's function of this shape; what it may ask about lives across the call.
        match unsafe { (self.conflict?)(self.user, kind as c_int, &mut about) } {
            0 => Some(Decision::Omit),
            1 => Some(Decision::Replace),
            2 => Some(Decision::Abort),
            _ => None,
        }
    }
}

impl Applying for Callbacks {
    fn wants_table(&self, name: &str) -> bool {
        let Some(f) = self.table else { return true };
        let name = CString::new(&*iolite_base::raw_text::decode(name)).unwrap_or_default();
        // SAFETY: the program's function of this shape; the name lives across the call.
        unsafe { f(self.user, name.as_ptr()) != 0 }
    }

    fn wants_change(&self, change: &Rc<Change>) -> bool {
        let Some(f) = self.change else { return true };
        // SAFETY: the program's function of this shape; what it may ask about lives across the call.
        unsafe { f(self.user, &mut CIter::of_callback(Some(change), None, None)) != 0 }
    }

    fn conflict(&self, kind: Conflict, change: &Rc<Change>, row: Option<&[Value]>) -> Option<Decision> {
        self.ask(kind, CIter::of_callback(Some(change), row, None))
    }

    fn violated(&self, keys: i64) -> Option<Decision> {
        self.ask(Conflict::ForeignKey, CIter::of_callback(None, None, Some(keys)))
    }
}

unsafe fn run(
    db: *mut Db,
    input: Input<'_>,
    said: &Said,
    callbacks: Callbacks,
    (rebase, n): (*mut *mut c_void, *mut c_int),
    flags: c_int,
) -> c_int {
    with(db, MISUSE, |d| {
        let done = d.run(|c| iolite_session::apply(&*c.host(), input, &callbacks, flags as u32));
        match done {
            Ok(_) if rebase.is_null() || n.is_null() => d.ok(),
            Ok(decided) => {
                (*rebase, *n) = (null_mut(), 0);
                match give(&decided, n, rebase) {
                    OK => d.ok(),
                    code => d.fail_code(code),
                }
            }
            Err(e) if said.number(&e) == e.code().number() as c_int => d.fail(&e),
            Err(e) => {
                // What the program's own function has answered, it is told as it is.
                d.fail_code(said.number(&e));
                said.number(&e)
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply(
    db: *mut Db,
    n: c_int,
    p: *mut c_void,
    filter: Option<TableFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
) -> c_int {
    sqlite3changeset_apply_v2(db, n, p, filter, conflict, user, null_mut(), null_mut(), 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply_v2(
    db: *mut Db,
    n: c_int,
    p: *mut c_void,
    filter: Option<TableFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
    rebase: *mut *mut c_void,
    n_rebase: *mut c_int,
    flags: c_int,
) -> c_int {
    let callbacks = Callbacks { table: filter, change: None, conflict, user };
    run(db, buffer(n, p), &Said::default(), callbacks, (rebase, n_rebase), flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply_v3(
    db: *mut Db,
    n: c_int,
    p: *mut c_void,
    filter: Option<ChangeFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
    rebase: *mut *mut c_void,
    n_rebase: *mut c_int,
    flags: c_int,
) -> c_int {
    let callbacks = Callbacks { table: None, change: filter, conflict, user };
    run(db, buffer(n, p), &Said::default(), callbacks, (rebase, n_rebase), flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply_strm(
    db: *mut Db,
    from: Option<InputFn>,
    in_user: *mut c_void,
    filter: Option<TableFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
) -> c_int {
    sqlite3changeset_apply_v2_strm(db, from, in_user, filter, conflict, user, null_mut(), null_mut(), 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply_v2_strm(
    db: *mut Db,
    from: Option<InputFn>,
    in_user: *mut c_void,
    filter: Option<TableFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
    rebase: *mut *mut c_void,
    n_rebase: *mut c_int,
    flags: c_int,
) -> c_int {
    let Some(from) = from else { return MISUSE };
    let said = Said::default();
    let callbacks = Callbacks { table: filter, change: None, conflict, user };
    run(db, pieces_in(from, in_user, &said), &said, callbacks, (rebase, n_rebase), flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_apply_v3_strm(
    db: *mut Db,
    from: Option<InputFn>,
    in_user: *mut c_void,
    filter: Option<ChangeFilter>,
    conflict: Option<OnConflict>,
    user: *mut c_void,
    rebase: *mut *mut c_void,
    n_rebase: *mut c_int,
    flags: c_int,
) -> c_int {
    let Some(from) = from else { return MISUSE };
    let said = Said::default();
    let callbacks = Callbacks { table: None, change: filter, conflict, user };
    run(db, pieces_in(from, in_user, &said), &said, callbacks, (rebase, n_rebase), flags)
}

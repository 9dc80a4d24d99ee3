//! `sqlite3session_*`: recording what changes. What is remembered and written is `iolite_session::Recorder`'s.

use crate::connection::{Db, text, text_option, with, within};
use crate::session_io::{OutputFn, Said, into_buffer, into_pieces};
use crate::{MISUSE, OK};
use iolite::engine::{Error, Host, PreupdateListener};
use iolite_session::{Output, Recorder};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

/// What a `sqlite3_session*` points at.
pub struct CSession {
    db: *mut Db,
    recorder: Rc<Recorder>,
    listener: Rc<dyn PreupdateListener>,
}

type Filter = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_create(
    db: *mut Db,
    name: *const c_char,
    out: *mut *mut CSession,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return d.fail_closed() };
        let recorder = Rc::new(Recorder::new(&text_option(name).unwrap_or_else(|| "main".into())));
        let listener: Rc<dyn PreupdateListener> = recorder.clone();
        c.add_preupdate_listener(listener.clone());
        *out = Box::into_raw(Box::new(CSession { db, recorder, listener }));
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_delete(s: *mut CSession) {
    let Some(session) = s.as_ref() else { return };
    within(session.db, (), |d| {
        if let Some(c) = d.conn() {
            c.remove_preupdate_listener(&session.listener);
        }
    });
    drop(Box::from_raw(s));
}

/// Runs `f` on a session; `bad` for NULL.
unsafe fn on<T: crate::handle::Answer>(s: *mut CSession, bad: T, f: impl FnOnce(&Recorder) -> T) -> T {
    let Some(s) = s.as_ref() else { return bad };
    let recorder = s.recorder.clone();
    within(s.db, bad, |_| f(&recorder))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_attach(s: *mut CSession, table: *const c_char) -> c_int {
    let name = text_option(table);
    on(s, MISUSE, |r| {
        r.attach(name.as_deref());
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_table_filter(
    s: *mut CSession,
    filter: Option<Filter>,
    user: *mut c_void,
) {
    on(s, (), |r| {
        r.filter_tables(filter.map(|f| {
            let wants = move |name: &str| {
                let name = CString::new(&*iolite_base::raw_text::decode(name)).unwrap_or_default();
                // SAFETY: the program's function of this shape.
                unsafe { f(user, name.as_ptr()) != 0 }
            };
            Rc::new(wants) as Rc<dyn Fn(&str) -> bool>
        }));
    });
}

/// A switch in C: below zero, it stays as it is.
fn switch(n: c_int) -> Option<bool> {
    (n >= 0).then_some(n > 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_enable(s: *mut CSession, on_off: c_int) -> c_int {
    on(s, 0, |r| r.enable(switch(on_off)) as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_indirect(s: *mut CSession, on_off: c_int) -> c_int {
    on(s, 0, |r| r.indirect(switch(on_off)) as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_isempty(s: *mut CSession) -> c_int {
    on(s, 1, |r| r.is_empty() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_memory_used(s: *mut CSession) -> i64 {
    on(s, 0, Recorder::memory_used)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_changeset_size(s: *mut CSession) -> i64 {
    on(s, 0, Recorder::changeset_size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_object_config(
    s: *mut CSession,
    op: c_int,
    arg: *mut c_void,
) -> c_int {
    let Some(n) = (arg as *mut c_int).as_mut() else { return MISUSE };
    on(s, MISUSE, |r| {
        let option = |on| match op {
            1 => Some(r.measures(on)),
            2 => Some(r.rowids(on)),
            _ => None,
        };
        let Some(set) = option(switch(*n)) else { return MISUSE };
        let now = option(None).is_some_and(|r| r == Ok(true));
        *n = now as c_int;
        if set.is_ok() { OK } else { MISUSE }
    })
}

/// Writes what a session has recorded.
unsafe fn changes(s: *mut CSession, patchset: bool, out: &mut Output<'_>) -> Result<(), Error> {
    let Some(s) = s.as_ref() else { return Err(iolite::Code::Misuse.into()) };
    with_host(s, |host| s.recorder.changes(host, patchset, out))
}

unsafe fn with_host(s: &CSession, f: impl FnOnce(&dyn Host) -> Result<(), Error>) -> Result<(), Error> {
    let mut outcome = Err(iolite::Code::Misuse.into());
    with(s.db, (), |d| outcome = d.run(|c| f(&*c.host())));
    outcome
}

macro_rules! writers {
    ($($name:ident $strm:ident $patchset:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(s: *mut CSession, n: *mut c_int, out: *mut *mut c_void) -> c_int {
            into_buffer(n, out, &Said::default(), |o| changes(s, $patchset, o))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $strm(s: *mut CSession, to: Option<OutputFn>, user: *mut c_void) -> c_int {
            into_pieces(to, user, &Said::default(), |o| changes(s, $patchset, o))
        }
    )*};
}

writers! {
    sqlite3session_changeset sqlite3session_changeset_strm false;
    sqlite3session_patchset sqlite3session_patchset_strm true;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3session_diff(
    s: *mut CSession,
    from: *const c_char,
    table: *const c_char,
    message: *mut *mut c_char,
) -> c_int {
    if !message.is_null() {
        *message = null_mut();
    }
    let Some(s) = s.as_ref().filter(|_| !from.is_null() && !table.is_null()) else { return MISUSE };
    let (from, table) = (text(from), text(table));
    match with_host(s, |host| s.recorder.diff(host, &from, &table)) {
        Ok(()) => OK,
        Err(e) => {
            crate::session_io::say(&e, message);
            e.code().number() as c_int
        }
    }
}

//! `sqlite3changegroup_*` and `sqlite3rebaser_*`: several changesets as one, and one behind the decisions about others.

use crate::changeset::CIter;
use crate::connection::{Db, text, with};
use crate::session_io::{InputFn, OutputFn, Said, buffer, into_buffer, into_pieces, pieces_in, say};
use crate::{ERROR, MISUSE, OK, guard};
use iolite::engine::{Error, Host, Value};
use iolite_session::{Group, Input, Reader, Rebaser};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// What a `sqlite3_changegroup*` points at.
pub struct CGroup {
    group: Group,
    /// The connection whose tables changes must fit.
    db: *mut Db,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_new(out: *mut *mut CGroup) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = Box::into_raw(Box::new(CGroup { group: Group::new(), db: null_mut() }));
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_delete(g: *mut CGroup) {
    if !g.is_null() {
        guard((), || drop(Box::from_raw(g)));
    }
}

/// Runs `f` on a group, with the connection if it has one.
unsafe fn on(
    g: *mut CGroup,
    f: impl FnOnce(&mut Group, Option<&dyn Host>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(g) = g.as_mut() else { return Err(iolite::Code::Misuse.into()) };
    let mut outcome = Err(iolite::Code::Misuse.into());
    if g.db.is_null() {
        return guard(Err(iolite::Code::Internal.into()), || f(&mut g.group, None));
    }
    with(g.db, (), |d| outcome = d.run(|c| f(&mut g.group, Some(&*c.host()))));
    outcome
}

fn code(r: Result<(), Error>) -> c_int {
    Said::default().outcome(r)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_schema(
    g: *mut CGroup,
    db: *mut Db,
    name: *const c_char,
) -> c_int {
    let Some(group) = g.as_mut().filter(|_| !db.is_null()) else { return MISUSE };
    let name = crate::connection::text_option(name).unwrap_or_else(|| "main".into());
    let set = group.group.schema(&name);
    if set.is_ok() {
        group.db = db;
    }
    code(set)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_config(g: *mut CGroup, op: c_int, arg: *mut c_void) -> c_int {
    let (Some(g), Some(n)) = (g.as_mut(), (arg as *mut c_int).as_mut()) else { return MISUSE };
    if op != 1 {
        return MISUSE;
    }
    *n = g.group.configure((*n >= 0).then_some(*n > 0)) as c_int;
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_add(g: *mut CGroup, n: c_int, p: *mut c_void) -> c_int {
    code(on(g, |g, host| g.add(&mut Reader::new(buffer(n, p), false), host)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_add_strm(
    g: *mut CGroup,
    from: Option<InputFn>,
    user: *mut c_void,
) -> c_int {
    let Some(from) = from else { return MISUSE };
    let said = Said::default();
    said.outcome(on(g, |g, host| g.add(&mut Reader::new(pieces_in(from, user, &said), false), host)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_add_change(g: *mut CGroup, i: *mut CIter) -> c_int {
    let Some(i) = i.as_ref() else { return MISUSE };
    match i.now() {
        Some(c) if !i.inverts() => code(on(g, |g, host| g.add_change(c, host))),
        _ => ERROR,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_output(
    g: *mut CGroup,
    n: *mut c_int,
    out: *mut *mut c_void,
) -> c_int {
    into_buffer(n, out, &Said::default(), |o| on(g, |g, _| g.output(o)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_output_strm(
    g: *mut CGroup,
    to: Option<OutputFn>,
    user: *mut c_void,
) -> c_int {
    into_pieces(to, user, &Said::default(), |o| on(g, |g, _| g.output(o)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_begin(
    g: *mut CGroup,
    op: c_int,
    table: *const c_char,
    indirect: c_int,
    message: *mut *mut c_char,
) -> c_int {
    if table.is_null() {
        return MISUSE;
    }
    let (op, table) = (u8::try_from(op).unwrap_or(0), text(table));
    said(on(g, |g, host| g.begin_change(op, &table, indirect != 0, host)), message)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_finish(
    g: *mut CGroup,
    discard: c_int,
    message: *mut *mut c_char,
) -> c_int {
    said(on(g, |g, _| g.finish_change(discard != 0)), message)
}

/// The code of an outcome; its message for the program.
unsafe fn said(r: Result<(), Error>, message: *mut *mut c_char) -> c_int {
    if !message.is_null() {
        *message = null_mut();
    }
    if let Err(e) = &r {
        say(e, message);
    }
    code(r)
}

unsafe fn value(g: *mut CGroup, new: c_int, n: c_int, v: iolite::Result<Value>) -> c_int {
    code(v.and_then(|v| on(g, |g, _| g.change_value(new != 0, n as i64, &v))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_int64(
    g: *mut CGroup,
    new: c_int,
    n: c_int,
    v: i64,
) -> c_int {
    value(g, new, n, Ok(Value::Int(v)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_double(
    g: *mut CGroup,
    new: c_int,
    n: c_int,
    v: f64,
) -> c_int {
    value(g, new, n, Ok(Value::real(v)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_null(g: *mut CGroup, new: c_int, n: c_int) -> c_int {
    value(g, new, n, Ok(Value::Null))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_text(
    g: *mut CGroup,
    new: c_int,
    n: c_int,
    p: *const c_char,
    len: c_int,
) -> c_int {
    let b = if len < 0 { crate::connection::bytes(p) } else { bytes(p.cast(), len) };
    value(g, new, n, Value::text(b))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changegroup_change_blob(
    g: *mut CGroup,
    new: c_int,
    n: c_int,
    p: *const c_void,
    len: c_int,
) -> c_int {
    value(g, new, n, Value::blob(bytes(p.cast(), len)))
}

unsafe fn bytes<'a>(p: *const u8, len: c_int) -> &'a [u8] {
    if p.is_null() || len <= 0 { &[] } else { std::slice::from_raw_parts(p, len as usize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3rebaser_create(out: *mut *mut Rebaser) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = Box::into_raw(Box::new(Rebaser::new()));
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3rebaser_delete(r: *mut Rebaser) {
    if !r.is_null() {
        guard((), || drop(Box::from_raw(r)));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3rebaser_configure(r: *mut Rebaser, n: c_int, p: *const c_void) -> c_int {
    let Some(r) = r.as_mut() else { return MISUSE };
    guard(crate::INTERNAL, || code(r.configure(buffer(n, p))))
}

unsafe fn rebase(
    r: *mut Rebaser,
    input: Input<'_>,
    out: &mut iolite_session::Output<'_>,
) -> Result<(), Error> {
    let Some(r) = r.as_ref() else { return Err(iolite::Code::Misuse.into()) };
    guard(Err(iolite::Code::Internal.into()), || r.rebase(input, out))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3rebaser_rebase(
    r: *mut Rebaser,
    n_in: c_int,
    input: *const c_void,
    n_out: *mut c_int,
    out: *mut *mut c_void,
) -> c_int {
    into_buffer(n_out, out, &Said::default(), |o| rebase(r, buffer(n_in, input), o))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3rebaser_rebase_strm(
    r: *mut Rebaser,
    from: Option<InputFn>,
    in_user: *mut c_void,
    to: Option<OutputFn>,
    out_user: *mut c_void,
) -> c_int {
    let Some(from) = from else { return MISUSE };
    let said = Said::default();
    into_pieces(to, out_user, &said, |o| rebase(r, pieces_in(from, in_user, &said), o))
}

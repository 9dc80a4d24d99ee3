//! `sqlite3changeset_*`: going through changesets, inverting and joining them.

use crate::session_io::{InputFn, OutputFn, Said, buffer, into_buffer, into_pieces, pieces_in};
use crate::value::CValue;
use crate::{DONE, MISUSE, OK, RANGE, ROW, guard};
use iolite::engine::{Error, Value};
use iolite_session::{Change, Group, Input, Op, Output, Reader};
use std::cell::OnceCell;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// What a `sqlite3_changeset_iter*` points at: a place in a changeset, or what a callback of `sqlite3changeset_apply` may ask.
#[derive(Default)]
pub struct CIter {
    /// `None`: it belongs to a callback.
    reader: Option<Reader<'static>>,
    said: Said,
    now: Option<Rc<Change>>,
    name: CString,
    keys: Vec<u8>,
    /// The row that a change meets.
    conflict: Option<Vec<Value>>,
    /// How many foreign keys are violated.
    violations: Option<i64>,
    /// Values that were handed out: old, new and of the row in conflict, by column.
    given: Vec<OnceCell<CValue>>,
}

impl CIter {
    /// What a callback may ask about a change.
    pub(crate) fn of_callback(
        c: Option<&Rc<Change>>,
        row: Option<&[Value]>,
        violations: Option<i64>,
    ) -> CIter {
        let mut i = CIter { conflict: row.map(<[Value]>::to_vec), violations, ..CIter::default() };
        i.set(c.cloned());
        i
    }

    pub(crate) fn now(&self) -> Option<&Rc<Change>> {
        self.now.as_ref()
    }

    pub(crate) fn inverts(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::inverts)
    }

    fn set(&mut self, c: Option<Rc<Change>>) {
        self.given.clear();
        if let Some(c) = &c {
            self.given.resize_with(3 * c.table.columns(), OnceCell::new);
            let same = self.now.as_ref().is_some_and(|n| Rc::ptr_eq(&n.table, &c.table));
            if !same {
                self.name = CString::new(&*iolite_base::raw_text::decode(&c.table.name)).unwrap_or_default();
                self.keys = c.table.keys.clone();
            }
        }
        self.now = c;
    }

    fn next(&mut self) -> c_int {
        let Some(reader) = &mut self.reader else { return MISUSE };
        let next = reader.next();
        match next {
            Ok(c) => {
                let code = if c.is_some() { ROW } else { DONE };
                self.set(c);
                code
            }
            Err(e) => {
                self.set(None);
                self.said.number(&e)
            }
        }
    }

    /// Hands out a value of kind `kind`: 0 old, 1 new, 2 of the row in conflict.
    unsafe fn give(
        &self,
        kind: usize,
        n: c_int,
        out: *mut *mut CValue,
        value: impl FnOnce(&Change, usize) -> Result<Option<Value>, Error>,
    ) -> c_int {
        let Some(c) = &self.now else { return MISUSE };
        let columns = c.table.columns();
        let Some(n) = usize::try_from(n).ok().filter(|n| *n < columns) else { return RANGE };
        match value(c, n) {
            Ok(Some(v)) => {
                let cell = self.given[kind * columns + n].get_or_init(|| CValue::new(v));
                *out = (cell as *const CValue).cast_mut();
                OK
            }
            Ok(None) => OK,
            Err(e) => e.code().number() as c_int,
        }
    }
}

unsafe fn start(out: *mut *mut CIter, input: Input<'static>, said: Said, flags: c_int) -> c_int {
    let reader = Some(Reader::new(input, flags & 2 != 0));
    *out = Box::into_raw(Box::new(CIter { reader, said, ..CIter::default() }));
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_start(out: *mut *mut CIter, n: c_int, p: *mut c_void) -> c_int {
    sqlite3changeset_start_v2(out, n, p, 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_start_v2(
    out: *mut *mut CIter,
    n: c_int,
    p: *mut c_void,
    flags: c_int,
) -> c_int {
    if out.is_null() { MISUSE } else { start(out, buffer(n, p), Said::default(), flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_start_strm(
    out: *mut *mut CIter,
    f: Option<InputFn>,
    user: *mut c_void,
) -> c_int {
    sqlite3changeset_start_v2_strm(out, f, user, 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_start_v2_strm(
    out: *mut *mut CIter,
    f: Option<InputFn>,
    user: *mut c_void,
    flags: c_int,
) -> c_int {
    let (Some(f), false) = (f, out.is_null()) else { return MISUSE };
    let said = Said::default();
    start(out, pieces_in(f, user, &said), said, flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_next(i: *mut CIter) -> c_int {
    let Some(i) = i.as_mut() else { return MISUSE };
    guard(crate::INTERNAL, || i.next())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_finalize(i: *mut CIter) -> c_int {
    let Some(iter) = i.as_ref() else { return OK };
    let Some(reader) = &iter.reader else { return MISUSE };
    let code = reader.failed().map_or(OK, |e| iter.said.number(e));
    guard((), || drop(Box::from_raw(i)));
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_op(
    i: *mut CIter,
    table: *mut *const c_char,
    columns: *mut c_int,
    op: *mut c_int,
    indirect: *mut c_int,
) -> c_int {
    let Some(i) = i.as_ref() else { return MISUSE };
    if table.is_null() || columns.is_null() || op.is_null() || i.now.is_none() && i.violations.is_none() {
        return MISUSE;
    }
    // Foreign keys that are violated at the end are nobody's change.
    let c = i.now.as_ref();
    *table = c.map_or(null(), |_| i.name.as_ptr());
    *columns = c.map_or(0, |c| c.table.columns() as c_int);
    *op = c.map_or(0, |c| c.op as c_int);
    if !indirect.is_null() {
        *indirect = c.map_or(0, |c| c.indirect as c_int);
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_pk(
    i: *mut CIter,
    keys: *mut *mut c_uchar,
    columns: *mut c_int,
) -> c_int {
    let known = i.as_ref().filter(|i| i.now.is_some() && !keys.is_null());
    if !keys.is_null() {
        *keys = known.map_or(null(), |i| i.keys.as_ptr()).cast_mut();
    }
    if !columns.is_null() {
        *columns = known.map_or(0, |i| i.keys.len() as c_int);
    }
    let nobodys = i.as_ref().is_some_and(|i| i.violations.is_some());
    if known.is_some() || nobodys { OK } else { MISUSE }
}

/// Runs `f` on an iterator with a place for a value, which is nothing at first.
unsafe fn value_of(i: *mut CIter, out: *mut *mut CValue, f: impl FnOnce(&CIter) -> c_int) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let Some(i) = i.as_ref() else { return MISUSE };
    guard(crate::INTERNAL, || f(i))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_old(i: *mut CIter, n: c_int, out: *mut *mut CValue) -> c_int {
    value_of(i, out, |i| match i.now.as_ref().map(|c| c.op) {
        Some(Op::Update | Op::Delete) => i.give(0, n, out, |c, n| c.old_value(n)),
        _ => MISUSE,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_new(i: *mut CIter, n: c_int, out: *mut *mut CValue) -> c_int {
    value_of(i, out, |i| match i.now.as_ref().map(|c| c.op) {
        Some(Op::Update | Op::Insert) => i.give(1, n, out, |c, n| c.new_value(n)),
        _ => MISUSE,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_conflict(i: *mut CIter, n: c_int, out: *mut *mut CValue) -> c_int {
    value_of(i, out, |i| match &i.conflict {
        Some(row) => i.give(2, n, out, |_, n| Ok(row.get(n).cloned())),
        None => MISUSE,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_fk_conflicts(i: *mut CIter, out: *mut c_int) -> c_int {
    match i.as_ref().and_then(|i| i.violations) {
        Some(n) if !out.is_null() => {
            *out = n.min(c_int::MAX as i64) as c_int;
            OK
        }
        _ => MISUSE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_invert(
    n_in: c_int,
    input: *const c_void,
    n_out: *mut c_int,
    out: *mut *mut c_void,
) -> c_int {
    guard(crate::INTERNAL, || {
        into_buffer(n_out, out, &Said::default(), |o| iolite_session::invert(buffer(n_in, input), o))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_invert_strm(
    from: Option<InputFn>,
    in_user: *mut c_void,
    to: Option<OutputFn>,
    out_user: *mut c_void,
) -> c_int {
    let Some(from) = from else { return MISUSE };
    let said = Said::default();
    guard(crate::INTERNAL, || {
        into_pieces(to, out_user, &said, |o| iolite_session::invert(pieces_in(from, in_user, &said), o))
    })
}

fn concat(a: Input<'_>, b: Input<'_>, out: &mut Output<'_>) -> Result<(), Error> {
    let mut g = Group::new();
    g.add(&mut Reader::new(a, false), None)?;
    g.add(&mut Reader::new(b, false), None)?;
    g.output(out)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_concat(
    n_a: c_int,
    a: *mut c_void,
    n_b: c_int,
    b: *mut c_void,
    n_out: *mut c_int,
    out: *mut *mut c_void,
) -> c_int {
    guard(crate::INTERNAL, || {
        into_buffer(n_out, out, &Said::default(), |o| concat(buffer(n_a, a), buffer(n_b, b), o))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3changeset_concat_strm(
    a: Option<InputFn>,
    a_user: *mut c_void,
    b: Option<InputFn>,
    b_user: *mut c_void,
    to: Option<OutputFn>,
    out_user: *mut c_void,
) -> c_int {
    let (Some(a), Some(b)) = (a, b) else { return MISUSE };
    let said = Said::default();
    guard(crate::INTERNAL, || {
        into_pieces(to, out_user, &said, |o| {
            concat(pieces_in(a, a_user, &said), pieces_in(b, b_user, &said), o)
        })
    })
}

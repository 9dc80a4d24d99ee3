//! `sqlite3_prepare` and its kin: from a text, in UTF-8 or UTF-16, to a statement.

use crate::connection::{Db, with};
use crate::statement::{Body, Stmt};
use crate::{MISUSE, OK};
use iolite::engine::{Code, Error, Limit};
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// `n` bytes of SQL at `p`, or up to the NUL if that comes first or `n` is negative; of a long text no more than its first statement.
/// How long the text is as a whole is not asked: of a script that is prepared statement by statement, that would be asked each time.
unsafe fn sql_bytes<'a>(p: *const c_char, n: c_int) -> &'a [u8] {
    let whole = if n < 0 { usize::MAX } else { n as usize };
    let mut most = 1024.min(whole);
    loop {
        let found = std::slice::from_raw_parts(p as *const u8, libc::strnlen(p, most));
        if found.len() < most || most == whole {
            return found;
        }
        if let Some(end) = iolite_sql::first_end(found) {
            return &found[..end];
        }
        most = most.saturating_mul(8).min(whole);
    }
}

/// `counted`: the text's length as the program gave it, where the text does not end with its NUL.
unsafe fn prepare(
    db: *mut Db,
    (sql, counted): (&[u8], Option<c_int>),
    legacy: bool,
    out: *mut *mut Stmt,
    used: &mut usize,
) -> c_int {
    if out.is_null() || db.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return d.fail_closed() };
        *used = sql.len();
        if counted.is_some_and(|n| n > c.limit(Limit::SqlLength, None)) {
            return d.fail_to_prepare(&Error::new(Code::Toobig, "statement too long"));
        }
        let Ok(held) = crate::memory::Held::new(256 + sql.len() as u64) else {
            return d.fail(&Error::from(Code::Nomem));
        };
        let mut prepared = c.prepare_bytes(sql);
        let mut asked = crate::collation::Asked::default();
        while let Err(e) = &prepared
            && let Some(go_on) = asked.ask(d, db, e)
        {
            prepared = go_on.then(&c, || c.prepare_bytes(sql));
        }
        // The words are for texts whose length the program has counted.
        if let Err(e) = &prepared
            && e.code() == Code::Toobig
            && counted.is_none()
        {
            prepared = Err(Code::Toobig.into());
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
                    zeroed: RefCell::default(),
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
    let counted = (n == 0 || n > 0 && *sql.add(n as usize - 1) != 0).then_some(n);
    let rc = prepare(db, (text, counted), legacy, out, &mut used);
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
    let text = crate::text::from_utf16_within(sql, n as i64);
    let mut used = 0;
    let rc = prepare(db, (&text, None), legacy, out, &mut used);
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

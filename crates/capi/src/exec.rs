//! `sqlite3_exec`, `sqlite3_get_table`, and what is known about a table's column.

use crate::connection::{Db, text, text_option, with};
use crate::memory::{copy_out, sqlite3_free, sqlite3_malloc64};
use crate::{DONE, MISUSE, NOMEM, OK, ROW};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

type Callback = unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

unsafe fn give_error(db: *mut Db, out: *mut *mut c_char) {
    if !out.is_null() {
        let m = std::ffi::CStr::from_ptr(crate::connection::sqlite3_errmsg(db));
        *out = copy_out(m.to_bytes());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_exec(
    db: *mut Db,
    sql: *const c_char,
    f: Option<Callback>,
    user: *mut c_void,
    error: *mut *mut c_char,
) -> c_int {
    // Under the mutex as a whole: the message below is that of this call.
    with(db, MISUSE, |d| {
        // It was never opened.
        if d.conn.borrow().is_none() {
            return MISUSE;
        }
        if !error.is_null() {
            *error = null_mut();
        }
        if d.conn().is_some() {
            d.ok();
        }
        run(db, sql, f, user, error)
    })
}

unsafe fn run(
    db: *mut Db,
    sql: *const c_char,
    f: Option<Callback>,
    user: *mut c_void,
    error: *mut *mut c_char,
) -> c_int {
    use crate::column::{sqlite3_column_count, sqlite3_column_name, sqlite3_column_text};
    use crate::prepare::sqlite3_prepare_v2;
    use crate::statement::{sqlite3_finalize, sqlite3_step};
    let mut rest = if sql.is_null() { c"".as_ptr() } else { sql };
    while *rest != 0 {
        let (mut s, mut tail) = (null_mut(), null());
        let rc = sqlite3_prepare_v2(db, rest, -1, &mut s, &mut tail);
        if rc != OK {
            give_error(db, error);
            return rc;
        }
        rest = tail;
        while (*rest as u8).is_ascii_whitespace() {
            rest = rest.add(1);
        }
        if s.is_null() {
            continue;
        }
        let mut rc;
        loop {
            rc = sqlite3_step(s);
            if rc != ROW {
                break;
            }
            let Some(f) = f else { continue };
            // Asked for behind the step: the statement may have been compiled anew.
            let n = sqlite3_column_count(s);
            let mut names: Vec<*mut c_char> =
                (0..n).map(|i| sqlite3_column_name(s, i) as *mut c_char).collect();
            let mut values: Vec<*mut c_char> =
                (0..n).map(|i| sqlite3_column_text(s, i) as *mut c_char).collect();
            names.push(null_mut());
            values.push(null_mut());
            if f(user, n, values.as_mut_ptr(), names.as_mut_ptr()) != 0 {
                sqlite3_finalize(s);
                let rc = with(db, MISUSE, |d| d.fail_text(4, "query aborted"));
                give_error(db, error);
                return rc;
            }
        }
        if rc != DONE {
            // The text must be read before finalizing says it again.
            give_error(db, error);
            return sqlite3_finalize(s);
        }
        sqlite3_finalize(s);
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_get_table(
    db: *mut Db,
    sql: *const c_char,
    out: *mut *mut *mut c_char,
    rows: *mut c_int,
    columns: *mut c_int,
    error: *mut *mut c_char,
) -> c_int {
    struct Table {
        cells: Vec<*mut c_char>,
        columns: c_int,
        rows: c_int,
        /// The queries have different numbers of columns.
        torn: bool,
    }
    unsafe extern "C" fn row(
        p: *mut c_void,
        n: c_int,
        v: *mut *mut c_char,
        names: *mut *mut c_char,
    ) -> c_int {
        let t = &mut *(p as *mut Table);
        let mut add = |from: *mut *mut c_char| {
            for i in 0..n as usize {
                let cell = *from.add(i);
                t.cells.push(if cell.is_null() {
                    null_mut()
                } else {
                    copy_out(std::ffi::CStr::from_ptr(cell).to_bytes())
                });
            }
        };
        if t.rows == 0 {
            add(names);
            t.columns = n;
        } else if t.columns != n {
            t.torn = true;
            return 1;
        }
        let t = &mut *(p as *mut Table);
        for i in 0..n as usize {
            let cell = *v.add(i);
            t.cells.push(match cell.is_null() {
                true => null_mut(),
                false => copy_out(std::ffi::CStr::from_ptr(cell).to_bytes()),
            });
        }
        t.rows += 1;
        0
    }
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let mut t = Table { cells: Vec::new(), columns: 0, rows: 0, torn: false };
    let rc = sqlite3_exec(db, sql, Some(row), &mut t as *mut Table as *mut c_void, error);
    if rc != OK {
        t.cells.iter().for_each(|c| sqlite3_free(*c as *mut c_void));
        if !t.torn {
            return rc;
        }
        if !error.is_null() {
            sqlite3_free(*error as *mut c_void);
            *error = copy_out(b"sqlite3_get_table() called with two or more incompatible queries");
        }
        return crate::ERROR;
    }
    if !rows.is_null() {
        *rows = t.rows;
    }
    if !columns.is_null() {
        *columns = t.columns;
    }
    // How many cells there are stands before the first, for `sqlite3_free_table`.
    let n = t.cells.len();
    let block = sqlite3_malloc64(((n + 1) * size_of::<*mut c_char>()) as u64) as *mut *mut c_char;
    if block.is_null() {
        return NOMEM;
    }
    *block = n as *mut c_char;
    std::ptr::copy_nonoverlapping(t.cells.as_ptr(), block.add(1), n);
    *out = block.add(1);
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_free_table(table: *mut *mut c_char) {
    if table.is_null() {
        return;
    }
    let block = table.sub(1);
    for i in 0..*block as usize {
        sqlite3_free(*table.add(i) as *mut c_void);
    }
    sqlite3_free(block as *mut c_void);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_table_column_metadata(
    db: *mut Db,
    schema: *const c_char,
    table: *const c_char,
    column: *const c_char,
    decltype: *mut *const c_char,
    collation: *mut *const c_char,
    not_null: *mut c_int,
    primary_key: *mut c_int,
    autoincrement: *mut c_int,
) -> c_int {
    let (schema, table, column) = (text_option(schema), text(table), text_option(column));
    with(db, MISUSE, |d| {
        let found = d.run(|c| c.column_metadata(schema.as_deref(), &table, column.as_deref()));
        let (m, rc) = match found {
            Ok(m) => (Some(m), d.ok()),
            Err(e) => (None, d.fail(&e)),
        };
        let m = m.as_ref();
        let put = |p: *mut c_int, b: bool| {
            if !p.is_null() {
                *p = b as c_int;
            }
        };
        if !decltype.is_null() {
            *decltype = m.and_then(|m| m.decltype.as_deref()).map_or(null(), crate::info::static_text);
        }
        if !collation.is_null() {
            *collation = m.map_or(null(), |m| crate::info::static_text(&m.collation));
        }
        put(not_null, m.is_some_and(|m| m.not_null));
        put(primary_key, m.is_some_and(|m| m.primary_key));
        put(autoincrement, m.is_some_and(|m| m.autoincrement));
        rc
    })
}

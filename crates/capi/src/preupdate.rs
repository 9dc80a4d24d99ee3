//! `sqlite3_preupdate_*`: changes of rows before they are made. What is told is the engine's.

use crate::connection::{Db, with, within};
use crate::value::CValue;
use crate::{MISUSE, OK, RANGE};
use iolite::engine::{Preupdate, PreupdateHook, RowChange, Value};
use std::cell::OnceCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

type Callback = unsafe extern "C" fn(*mut c_void, *mut Db, c_int, *const c_char, *const c_char, i64, i64);

/// The change that is being told of: there while the callback runs.
struct Event<'e> {
    change: &'e Preupdate,
    /// Values handed out, by column.
    old: Vec<OnceCell<CValue>>,
    new: Vec<OnceCell<CValue>>,
}

fn c_name(name: &str) -> CString {
    CString::new(iolite_base::raw_text::decode(name)).unwrap_or_default()
}

/// Calls `f` with what it may ask for in its place.
unsafe fn call(db: *mut Db, f: Callback, user: *mut c_void, change: &Preupdate) {
    let kind = match change.change {
        RowChange::Delete => 9,
        RowChange::Insert => 18,
        RowChange::Update => 23,
    };
    let cells = |r: &Option<Vec<Option<Value>>>| r.iter().flatten().map(|_| OnceCell::new()).collect();
    let event = Event { change, old: cells(&change.old), new: cells(&change.new) };
    let slot = &(*db).hooks.preupdate_event;
    let outer = slot.replace(Some((&raw const event).cast()));
    let (database, table) = (c_name(&change.database), c_name(&change.table));
    f(user, db, kind, database.as_ptr(), table.as_ptr(), change.old_rowid, change.new_rowid);
    slot.set(outer);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_hook(
    db: *mut Db,
    f: Option<Callback>,
    user: *mut c_void,
) -> *mut c_void {
    with(db, null_mut(), |d| {
        let hook = f.map(|f| {
            // SAFETY: registered for this shape of call; the connection calls it, so it is there.
            Rc::new(move |change: &Preupdate| unsafe { call(db, f, user, change) }) as Rc<PreupdateHook>
        });
        if let Some(c) = d.conn() {
            c.preupdate_hook(hook);
        }
        d.hooks.preupdate_data.replace(Some(user)).unwrap_or(null_mut())
    })
}

/// Runs `f` on the change that is being told of; `bad` where there is none.
unsafe fn present<T: crate::handle::Answer>(db: *mut Db, bad: T, f: impl FnOnce(&Event<'_>) -> T) -> T {
    // The callback runs within a step, on whose behalf the mutex is held.
    within(db, bad, |d| match d.hooks.preupdate_event.get() {
        Some(e) => f(&*(e as *const Event<'_>)),
        None => bad,
    })
}

/// As [`present`], for a call whose failure the connection remembers.
unsafe fn told(db: *mut Db, f: impl FnOnce(&Event<'_>) -> c_int) -> c_int {
    let code = present(db, MISUSE, f);
    if code == OK { OK } else { within(db, code, |d| d.fail_code(code)) }
}

/// Hands out the value of a column.
unsafe fn hand_out(
    row: &Option<Vec<Option<Value>>>,
    cells: &[OnceCell<CValue>],
    column: c_int,
    out: *mut *mut CValue,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let Some(row) = row else { return MISUSE };
    let Ok(n) = usize::try_from(column) else { return RANGE };
    if n >= row.len() {
        return MISUSE;
    }
    // A column that is computed when it is read is not in the row.
    let (Some(value), Some(cell)) = (&row[n], cells.get(n)) else { return RANGE };
    *out = cell.get_or_init(|| CValue::new(value.clone())) as *const CValue as *mut CValue;
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_old(db: *mut Db, column: c_int, out: *mut *mut CValue) -> c_int {
    told(db, |e| hand_out(&e.change.old, &e.old, column, out))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_new(db: *mut Db, column: c_int, out: *mut *mut CValue) -> c_int {
    told(db, |e| hand_out(&e.change.new, &e.new, column, out))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_count(db: *mut Db) -> c_int {
    present(db, 0, |e| e.change.columns as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_depth(db: *mut Db) -> c_int {
    present(db, 0, |e| e.change.depth as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_preupdate_blobwrite(db: *mut Db) -> c_int {
    present(db, -1, |e| e.change.blob_column.map_or(-1, |c| c as c_int))
}

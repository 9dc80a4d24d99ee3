//! What is known of statements: their kind, their counters, and which there are on a connection.

use crate::connection::{Db, with};
use crate::statement::{Body, Stmt, owner, with_stmt};
use crate::{MISUSE, OK, guard};
use iolite::engine::{Instruction, StatementFacts, Value};
use iolite_base::raw_text;
use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_normalized_sql(s: *mut Stmt) -> *const c_char {
    with_stmt(s, null(), |_, st| {
        let printed = iolite_sql::normalized(&raw_text::encode(st.sql.to_bytes()));
        crate::column::keep(st, (0, b'n'), raw_text::decode(&printed).into_owned(), 1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_readonly(s: *mut Stmt) -> c_int {
    with_stmt(s, 1, |_, st| st.inner.try_borrow().map_or(1, |i| i.is_readonly() as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_busy(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(1, |i| (i.is_busy() || i.is_listing()) as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_isexplain(s: *mut Stmt) -> c_int {
    with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.program().explain as c_int))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_explain(s: *mut Stmt, mode: c_int) -> c_int {
    with_stmt(s, MISUSE, |d, st| {
        if !(0..=2).contains(&mode) {
            return crate::ERROR;
        }
        let Ok(mut inner) = st.inner.try_borrow_mut() else { return crate::BUSY };
        if inner.program().explain as c_int == mode {
            return OK;
        }
        if st.ran.get() {
            return crate::BUSY;
        }
        match inner.set_explain(mode as u8) {
            Ok(()) => OK,
            Err(e) if e.code() == iolite::Code::Busy => crate::BUSY,
            Err(e) => d.fail(&e),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_status(s: *mut Stmt, op: c_int, reset: c_int) -> c_int {
    use iolite::engine::StatementCounter as C;
    const MEMORY_USED: c_int = 99;
    let which = match op {
        1 => C::FullScanSteps,
        2 => C::Sorts,
        3 => C::AutoIndexRows,
        4 => C::Instructions,
        5 => C::Recompiled,
        6 => C::Runs,
        7 => C::FilterMisses,
        8 => C::FilterHits,
        MEMORY_USED => {
            return with_stmt(s, 0, |_, st| st.inner.try_borrow().map_or(0, |i| i.memory_used() as c_int));
        }
        _ => return 0,
    };
    with_stmt(s, 0, |_, st| {
        st.inner.try_borrow_mut().map_or(0, |mut i| i.counter(which, reset != 0) as u32 as c_int)
    })
}

/// The statements of a connection, for tables that list them. It lives as long as the connection, which asks it while the
/// connection's mutex is held.
pub(crate) struct Prepared(pub(crate) *const Db);

impl iolite::engine::StatementList for Prepared {
    fn facts(&self) -> Vec<StatementFacts> {
        // SAFETY: slots of connections are never freed, and those of statements in its list are in use.
        let bodies = unsafe {
            let list = (*self.0).statements.borrow();
            list.iter().map(|s| &*(**s).body.get().cast::<Body>()).collect::<Vec<_>>()
        };
        let facts = |b: &&Body| match b.inner.try_borrow_mut() {
            Ok(mut s) => s.facts(),
            // The one that asks.
            Err(_) => StatementFacts {
                sql: b.sql.to_bytes().to_vec(),
                readonly: true,
                busy: true,
                runs: 1,
                ..Default::default()
            },
        };
        bodies.iter().rev().map(facts).collect()
    }

    fn instructions(&self, pointer: &Value) -> iolite::Result<Option<Vec<Instruction>>> {
        let p = crate::pointer::pointer_of(pointer, b"stmt-pointer").cast::<Stmt>();
        // SAFETY: as above; what is in the list is a statement in use.
        let body = unsafe {
            let known = (*self.0).statements.borrow().contains(&p);
            known.then(|| &*(*p).body.get().cast::<Body>())
        };
        Ok(body.and_then(|b| b.inner.try_borrow().ok().map(|s| s.explain())))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_next_stmt(db: *mut Db, s: *mut Stmt) -> *mut Stmt {
    with(db, null_mut(), |d| {
        let list = d.statements.borrow();
        let at =
            if s.is_null() { 0 } else { list.iter().position(|x| *x == s).map_or(list.len(), |i| i + 1) };
        list.get(at).copied().unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_handle(s: *mut Stmt) -> *mut Db {
    owner(s)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_expired(_: *mut Stmt) -> c_int {
    guard(0, || 0)
}

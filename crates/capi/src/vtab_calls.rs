//! What modules in C are registered with, and what they say of their tables while they make them.

use crate::connection::destroy;
use crate::connection::{Db, Destructor, text, text_option, with};
use crate::function::{CContext, placeholder};
use crate::text::c_text;
use crate::vtab::{CModule, ModuleInC, Registered};
use crate::{ERROR, MISUSE, OK};
use iolite::engine::{Error, Trust};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_module(
    db: *mut Db,
    name: *const c_char,
    module: *const CModule,
    user: *mut c_void,
) -> c_int {
    sqlite3_create_module_v2(db, name, module, user, None)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_module_v2(
    db: *mut Db,
    name: *const c_char,
    module: *const CModule,
    user: *mut c_void,
    f: Option<Destructor>,
) -> c_int {
    let mut kept = module.is_null();
    let rc = with(db, MISUSE, |d| {
        let (Some(c), Some(name)) = (d.conn(), text_option(name)) else { return d.fail_code(MISUSE) };
        if module.is_null() {
            c.remove_module(&name);
            return d.ok();
        }
        kept = true;
        let registered = Registered { db, name: c_text(&name), methods: module, user, destroy: f };
        c.create_module(&name, Rc::new(ModuleInC(Rc::new(registered))));
        d.ok()
    });
    if !kept {
        destroy(f, user);
    }
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_drop_modules(db: *mut Db, keep: *mut *const c_char) -> c_int {
    let mut names = Vec::new();
    let mut p = keep;
    while !p.is_null() && !(*p).is_null() {
        names.push(text(*p));
        p = p.add(1);
    }
    with(db, MISUSE, |d| {
        if let Some(c) = d.conn() {
            c.retain_modules(&names);
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_declare_vtab(db: *mut Db, sql: *const c_char) -> c_int {
    let Some(sql) = text_option(sql) else { return MISUSE };
    with(db, MISUSE, |d| {
        let writable = d.making.borrow().last().filter(|m| m.declaration.is_none()).map(|m| m.writable);
        let Some(writable) = writable else { return d.fail_code(MISUSE) };
        match iolite::engine::check_declaration(&sql, writable) {
            Ok(key) => {
                if let Some(m) = d.making.borrow_mut().last_mut() {
                    (m.declaration, m.key) = (Some(sql), key);
                }
                d.ok()
            }
            Err(e) if e.has_message() => d.fail(&e),
            Err(_) => ERROR,
        }
    })
}

/// What `sqlite3_vtab_config` can be told.
const CONSTRAINT_SUPPORT: c_int = 1;
const INNOCUOUS: c_int = 2;
const DIRECT_ONLY: c_int = 3;
const USES_ALL_SCHEMAS: c_int = 4;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_config(db: *mut Db, what: c_int, on: c_int) -> c_int {
    with(db, MISUSE, |d| {
        let mut list = d.making.borrow_mut();
        let Some(m) = list.last_mut() else {
            drop(list);
            return d.fail_code(MISUSE);
        };
        match what {
            CONSTRAINT_SUPPORT => m.heeds_conflicts = on != 0,
            INNOCUOUS => m.trust = Trust::Innocuous,
            DIRECT_ONLY => m.trust = Trust::DirectOnly,
            USES_ALL_SCHEMAS => m.all_schemas = true,
            _ => {
                drop(list);
                return d.fail_code(MISUSE);
            }
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_on_conflict(db: *mut Db) -> c_int {
    with(db, 0, |d| d.on_conflict.get())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_nochange(cx: *mut CContext) -> c_int {
    cx.as_ref().is_some_and(CContext::is_unchanged) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_overload_function(db: *mut Db, name: *const c_char, args: c_int) -> c_int {
    let Some(name) = text_option(name).filter(|n| args >= -2 && n.len() <= 255) else { return MISUSE };
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return d.fail_code(MISUSE) };
        if !c.has_function(&name, args as i16) && !c.has_function(&name, -1) {
            c.create_function(placeholder(&name, args as i16, |name| {
                Error::sql(format!("unable to use function {name} in the requested context"))
            }));
        }
        crate::OK
    })
}

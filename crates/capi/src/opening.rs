//! Opening connections: `sqlite3_open` and its kin. What a new connection gets: the modules of this library, and the automatic
//! extensions.

use crate::connection::{Db, bytes, text_option, with};
use crate::shared_cache::{Group, named_shared};
use crate::{MISUSE, NOMEM, OK, guard};
use iolite::engine::{Code, Error, OpenFlags};
use iolite_ext::BuiltinModules;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

const READONLY: c_int = 1;
const CREATE: c_int = 4;
const URI: c_int = 0x40;
const MEMORY: c_int = 0x80;
const NOFOLLOW: c_int = 0x0100_0000;
const SHARED_CACHE: c_int = 0x20000;
const PRIVATE_CACHE: c_int = 0x40000;
const EXTENDED_CODES: c_int = 0x0200_0000;

/// The modules that every connection of this library has.
const MODULES: BuiltinModules = BuiltinModules {
    named: |name| match name {
        "carray" => Some(Rc::new(crate::carray::CArray)),
        _ => (iolite::engine::BUILTIN_MODULES.named)(name),
    },
    names: || {
        let mut names = (iolite::engine::BUILTIN_MODULES.names)();
        names.push("carray".into());
        names
    },
};

unsafe fn open(name: &[u8], out: *mut *mut Db, flags: c_int, vfs: *const c_char) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let rc = crate::memory::sqlite3_initialize();
    if rc != OK {
        return rc;
    }
    let Ok(held) = crate::memory::Held::new(size_of::<Db>() as u64) else { return NOMEM };
    let uri = flags & URI != 0 || crate::info::uri_by_default();
    let shared =
        flags & PRIVATE_CACHE == 0 && (flags & SHARED_CACHE != 0 || crate::info::shared_by_default());
    let options = OpenFlags {
        read_only: flags & READONLY != 0,
        create: flags & CREATE != 0,
        uri,
        memory: flags & MEMORY != 0,
        shared_cache: shared,
        nofollow: flags & NOFOLLOW != 0,
    };
    let vfs = text_option(vfs);
    let mut rc = NOMEM;
    let grouped = shared || uri && named_shared(name);
    let group = grouped.then(Group::of_process);
    let db = crate::handle::place(group, |d| {
        d.extended.set(flags & EXTENDED_CODES != 0);
        *d.held.borrow_mut() = Some(held);
        let opened = guard(Err(Code::Internal.into()), || match iolite_os::vfs_named(vfs.as_deref()) {
            None => Err(Error::sql(format!("no such vfs: {}", vfs.as_deref().unwrap_or_default()))),
            Some(vfs) => crate::shared_cache::open(group, vfs, name, options, d.interrupt_flag()),
        });
        rc = match opened {
            Ok(c) => {
                let file = c.file_name("main").unwrap_or_default();
                *d.filename.borrow_mut() = crate::filename::filename_block(&file, name, options.uri);
                c.set_builtin_modules(MODULES);
                c.set_primary_codes(!d.extended.get());
                c.set_log(Some(crate::log::warned));
                c.set_opener(d as *const Db as usize);
                iolite_fts::set_api(crate::fts5::api);
                iolite_fts3::set_tokenizer_door(crate::fts3_tokenizer::DOOR);
                c.set_statement_list(Some(Rc::new(crate::statement_info::Prepared(d))));
                *d.conn.borrow_mut() = Some(c);
                d.ok()
            }
            Err(e) => d.fail(&e),
        };
    });
    *out = db;
    with(db, (), |d| crate::file_control::tell_busy_handler(d, db));
    if rc == OK && !db.is_null() { crate::extension::run_automatic(db) } else { rc }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_open(name: *const c_char, out: *mut *mut Db) -> c_int {
    open(bytes(name), out, 6, std::ptr::null())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_open_v2(
    name: *const c_char,
    out: *mut *mut Db,
    flags: c_int,
    vfs: *const c_char,
) -> c_int {
    if !matches!(flags & 7, 1 | 2 | 6) {
        if out.is_null() {
            return MISUSE;
        }
        // There is a connection also then, for its message.
        let mut rc = NOMEM;
        *out = crate::handle::place(None, |d| rc = d.fail_code(MISUSE));
        return rc;
    }
    open(bytes(name), out, flags, vfs)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_open16(name: *const c_void, out: *mut *mut Db) -> c_int {
    let rc = open(&crate::text::from_utf16(name, -1), out, 6, std::ptr::null());
    if rc == OK {
        // A database made by this call is in UTF-16, if it is still empty.
        with(*out, (), |d| {
            let _ = d.run(|c| c.execute_batch("PRAGMA encoding='UTF-16'"));
        });
    }
    rc
}

//! Extensions: libraries that a program loads, and those that every new connection gets (documentation pages `loadext`,
//! `c3ref/load_extension`, `c3ref/auto_extension`).
//!
//! An extension is handed the table of this library's entries and calls through it, so that one that was compiled for SQLite works
//! here. What always holds: loading is off until the program allows it; the SQL function needs more than the C function does; a
//! library that was loaded stays loaded, as its functions may be called until the last connection is closed. No lock is held while an
//! entry point runs: it calls back.

use crate::connection::{Db, Destructor, LOADS_BY_C, LOADS_BY_SQL, bytes, with};
use crate::{ERROR, MISUSE, OK};
use iolite_os::Published;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// An entry point: the connection, where to put an error's text, the table.
type Entry = unsafe extern "C" fn(*mut Db, *mut *mut c_char, *const Table) -> c_int;

/// The answer of an entry point that wants to stay for good, which all do here.
const OK_LOAD_PERMANENTLY: c_int = 256;

/// Entries in the order of `struct sqlite3_api_routines`.
#[repr(C)]
pub struct Table([*const c_void; LEN]);

// SAFETY: addresses of functions, never written.
unsafe impl Sync for Table {}

macro_rules! table {
    ($($name:ident)*) => {
        mod entries {
            unsafe extern "C" {
                $(pub fn $name();)*
            }
        }
        const LEN: usize = [$(stringify!($name)),*].len();
        static TABLE: Table = Table([$(entries::$name as *const c_void),*]);
    };
}

table! {
    sqlite3_aggregate_context sqlite3_aggregate_count sqlite3_bind_blob sqlite3_bind_double sqlite3_bind_int
    sqlite3_bind_int64 sqlite3_bind_null sqlite3_bind_parameter_count sqlite3_bind_parameter_index
    sqlite3_bind_parameter_name sqlite3_bind_text sqlite3_bind_text16 sqlite3_bind_value sqlite3_busy_handler
    sqlite3_busy_timeout sqlite3_changes sqlite3_close sqlite3_collation_needed sqlite3_collation_needed16
    sqlite3_column_blob sqlite3_column_bytes sqlite3_column_bytes16 sqlite3_column_count
    sqlite3_column_database_name sqlite3_column_database_name16 sqlite3_column_decltype
    sqlite3_column_decltype16 sqlite3_column_double sqlite3_column_int sqlite3_column_int64 sqlite3_column_name
    sqlite3_column_name16 sqlite3_column_origin_name sqlite3_column_origin_name16 sqlite3_column_table_name
    sqlite3_column_table_name16 sqlite3_column_text sqlite3_column_text16 sqlite3_column_type
    sqlite3_column_value sqlite3_commit_hook sqlite3_complete sqlite3_complete16 sqlite3_create_collation
    sqlite3_create_collation16 sqlite3_create_function sqlite3_create_function16 sqlite3_create_module
    sqlite3_data_count sqlite3_db_handle sqlite3_declare_vtab sqlite3_enable_shared_cache sqlite3_errcode
    sqlite3_errmsg sqlite3_errmsg16 sqlite3_exec sqlite3_expired sqlite3_finalize sqlite3_free
    sqlite3_free_table sqlite3_get_autocommit sqlite3_get_auxdata sqlite3_get_table sqlite3_global_recover
    sqlite3_interrupt sqlite3_last_insert_rowid sqlite3_libversion sqlite3_libversion_number sqlite3_malloc
    sqlite3_mprintf sqlite3_open sqlite3_open16 sqlite3_prepare sqlite3_prepare16 sqlite3_profile
    sqlite3_progress_handler sqlite3_realloc sqlite3_reset sqlite3_result_blob sqlite3_result_double
    sqlite3_result_error sqlite3_result_error16 sqlite3_result_int sqlite3_result_int64 sqlite3_result_null
    sqlite3_result_text sqlite3_result_text16 sqlite3_result_text16be sqlite3_result_text16le
    sqlite3_result_value sqlite3_rollback_hook sqlite3_set_authorizer sqlite3_set_auxdata sqlite3_snprintf
    sqlite3_step sqlite3_table_column_metadata sqlite3_thread_cleanup sqlite3_total_changes sqlite3_trace
    sqlite3_transfer_bindings sqlite3_update_hook sqlite3_user_data sqlite3_value_blob sqlite3_value_bytes
    sqlite3_value_bytes16 sqlite3_value_double sqlite3_value_int sqlite3_value_int64 sqlite3_value_numeric_type
    sqlite3_value_text sqlite3_value_text16 sqlite3_value_text16be sqlite3_value_text16le sqlite3_value_type
    sqlite3_vmprintf sqlite3_overload_function sqlite3_prepare_v2 sqlite3_prepare16_v2 sqlite3_clear_bindings
    sqlite3_create_module_v2 sqlite3_bind_zeroblob sqlite3_blob_bytes sqlite3_blob_close sqlite3_blob_open
    sqlite3_blob_read sqlite3_blob_write sqlite3_create_collation_v2 sqlite3_file_control
    sqlite3_memory_highwater sqlite3_memory_used sqlite3_mutex_alloc sqlite3_mutex_enter sqlite3_mutex_free
    sqlite3_mutex_leave sqlite3_mutex_try sqlite3_open_v2 sqlite3_release_memory sqlite3_result_error_nomem
    sqlite3_result_error_toobig sqlite3_sleep sqlite3_soft_heap_limit sqlite3_vfs_find sqlite3_vfs_register
    sqlite3_vfs_unregister sqlite3_threadsafe sqlite3_result_zeroblob sqlite3_result_error_code
    sqlite3_test_control sqlite3_randomness sqlite3_context_db_handle sqlite3_extended_result_codes
    sqlite3_limit sqlite3_next_stmt sqlite3_sql sqlite3_status sqlite3_backup_finish sqlite3_backup_init
    sqlite3_backup_pagecount sqlite3_backup_remaining sqlite3_backup_step sqlite3_compileoption_get
    sqlite3_compileoption_used sqlite3_create_function_v2 sqlite3_db_config sqlite3_db_mutex sqlite3_db_status
    sqlite3_extended_errcode sqlite3_log sqlite3_soft_heap_limit64 sqlite3_sourceid sqlite3_stmt_status
    sqlite3_strnicmp sqlite3_unlock_notify sqlite3_wal_autocheckpoint sqlite3_wal_checkpoint sqlite3_wal_hook
    sqlite3_blob_reopen sqlite3_vtab_config sqlite3_vtab_on_conflict sqlite3_close_v2 sqlite3_db_filename
    sqlite3_db_readonly sqlite3_db_release_memory sqlite3_errstr sqlite3_stmt_busy sqlite3_stmt_readonly
    sqlite3_stricmp sqlite3_uri_boolean sqlite3_uri_int64 sqlite3_uri_parameter sqlite3_vsnprintf
    sqlite3_wal_checkpoint_v2 sqlite3_auto_extension sqlite3_bind_blob64 sqlite3_bind_text64
    sqlite3_cancel_auto_extension sqlite3_load_extension sqlite3_malloc64 sqlite3_msize sqlite3_realloc64
    sqlite3_reset_auto_extension sqlite3_result_blob64 sqlite3_result_text64 sqlite3_strglob sqlite3_value_dup
    sqlite3_value_free sqlite3_result_zeroblob64 sqlite3_bind_zeroblob64 sqlite3_value_subtype
    sqlite3_result_subtype sqlite3_status64 sqlite3_strlike sqlite3_db_cacheflush sqlite3_system_errno
    sqlite3_trace_v2 sqlite3_expanded_sql sqlite3_set_last_insert_rowid sqlite3_prepare_v3 sqlite3_prepare16_v3
    sqlite3_bind_pointer sqlite3_result_pointer sqlite3_value_pointer sqlite3_vtab_nochange
    sqlite3_value_nochange sqlite3_vtab_collation sqlite3_keyword_count sqlite3_keyword_name
    sqlite3_keyword_check sqlite3_str_new sqlite3_str_finish sqlite3_str_appendf sqlite3_str_vappendf
    sqlite3_str_append sqlite3_str_appendall sqlite3_str_appendchar sqlite3_str_reset sqlite3_str_errcode
    sqlite3_str_length sqlite3_str_value sqlite3_create_window_function sqlite3_normalized_sql
    sqlite3_stmt_isexplain sqlite3_value_frombind sqlite3_drop_modules sqlite3_hard_heap_limit64 sqlite3_uri_key
    sqlite3_filename_database sqlite3_filename_journal sqlite3_filename_wal sqlite3_create_filename
    sqlite3_free_filename sqlite3_database_file_object sqlite3_txn_state sqlite3_changes64
    sqlite3_total_changes64 sqlite3_autovacuum_pages sqlite3_error_offset sqlite3_vtab_rhs_value
    sqlite3_vtab_distinct sqlite3_vtab_in sqlite3_vtab_in_first sqlite3_vtab_in_next sqlite3_deserialize
    sqlite3_serialize sqlite3_db_name sqlite3_value_encoding sqlite3_is_interrupted sqlite3_stmt_explain
    sqlite3_get_clientdata sqlite3_set_clientdata sqlite3_setlk_timeout sqlite3_set_errmsg sqlite3_db_status64
    sqlite3_str_truncate sqlite3_str_free sqlite3_carray_bind sqlite3_carray_bind_v2
}

/// The entry points that every new connection runs.
static AUTOMATIC: Published<Vec<Entry>> = Published::new();

fn automatic() -> &'static [Entry] {
    AUTOMATIC.get().map_or(&[], |l| l)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_auto_extension(entry: Option<Entry>) -> c_int {
    let Some(entry) = entry else { return MISUSE };
    AUTOMATIC.replace(|list| {
        let list = list.map_or(&[][..], |l| l);
        let known = list.iter().any(|e| std::ptr::fn_addr_eq(*e, entry));
        (!known).then(|| [list, &[entry]].concat())
    });
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_cancel_auto_extension(entry: Option<Entry>) -> c_int {
    let Some(entry) = entry else { return 0 };
    let found = Cell::new(false);
    AUTOMATIC.replace(|list| {
        let at = list?.iter().rposition(|e| std::ptr::fn_addr_eq(*e, entry));
        found.set(at.is_some());
        let mut list = list?.clone();
        list.remove(at?);
        Some(list)
    });
    found.get() as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_reset_auto_extension() {
    AUTOMATIC.replace(|list| (!list?.is_empty()).then(Vec::new));
}

/// Runs the automatic extensions on a connection that was just opened; answers what went wrong.
pub(crate) unsafe fn run_automatic(db: *mut Db) -> c_int {
    let mut at = 0;
    loop {
        // An entry point may change the list.
        let Some(entry) = automatic().get(at).copied() else { return OK };
        at += 1;
        let (rc, text) = enter(db, entry);
        if rc != OK {
            let text = format!("automatic extension loading failed: {text}");
            return with(db, MISUSE, |d| d.fail_text(rc, &text));
        }
    }
}

/// Runs an entry point; answers its code, and the text of an error.
unsafe fn enter(db: *mut Db, entry: Entry) -> (c_int, String) {
    let mut error: *mut c_char = null_mut();
    let rc = entry(db, &mut error, &TABLE);
    let text = String::from_utf8_lossy(bytes(error)).into_owned();
    crate::memory::sqlite3_free(error.cast());
    (if rc == OK_LOAD_PERMANENTLY { OK } else { rc }, text)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_enable_load_extension(db: *mut Db, on: c_int) -> c_int {
    allow(db, if on == 0 { 0 } else { LOADS_BY_C | LOADS_BY_SQL })
}

/// Sets who may load extensions into a connection.
unsafe fn allow(db: *mut Db, who: u8) -> c_int {
    let had = with(db, -1, |d| d.loads.replace(who).into());
    // The function is there only where it was allowed: a connection that never loads has nothing to call.
    if had < 0 {
        return MISUSE;
    }
    if who & LOADS_BY_SQL != 0 && had as u8 & LOADS_BY_SQL == 0 {
        for args in [1, 2] {
            let rc = crate::function::sqlite3_create_function_v2(
                db,
                c"load_extension".as_ptr(),
                args,
                UTF8 | DIRECT_ONLY,
                db.cast(),
                Some(load_function),
                None,
                None,
                None::<Destructor>,
            );
            if rc != OK {
                return rc;
            }
        }
    }
    OK
}

const UTF8: c_int = 1;
const DIRECT_ONLY: c_int = 0x80000;

/// `load_extension(file)`, `load_extension(file, entry)`.
unsafe extern "C" fn load_function(
    ctx: *mut crate::function::CContext,
    n: c_int,
    args: *mut *mut crate::value::CValue,
) {
    let text = |i: c_int| {
        if i < n { crate::value::sqlite3_value_text(*args.add(i as usize)).cast::<c_char>() } else { null() }
    };
    let db = crate::function::sqlite3_context_db_handle(ctx);
    if with(db, 0, |d| d.loads.get().into()) as u8 & LOADS_BY_SQL == 0 {
        return crate::function::sqlite3_result_error(ctx, c"not authorized".as_ptr(), -1);
    }
    let mut error = null_mut();
    if load(db, text(0), text(1), &mut error) != OK {
        crate::function::sqlite3_result_error(ctx, error, -1);
    }
    crate::memory::sqlite3_free(error.cast());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_load_extension(
    db: *mut Db,
    file: *const c_char,
    entry: *const c_char,
    error: *mut *mut c_char,
) -> c_int {
    if !error.is_null() {
        *error = null_mut();
    }
    let who = with(db, -1, |d| d.loads.get().into());
    if file.is_null() || who < 0 {
        return MISUSE;
    }
    if who as u8 & LOADS_BY_C == 0 {
        return refuse(error, "not authorized");
    }
    let rc = load(db, file, entry, error);
    with(db, MISUSE, |d| if rc == OK { d.ok() } else { d.fail_code(rc) })
}

unsafe fn refuse(error: *mut *mut c_char, why: &str) -> c_int {
    if !error.is_null() {
        *error = crate::memory::copy_out(why.as_bytes());
    }
    ERROR
}

/// Loads a library and runs its entry point.
unsafe fn load(db: *mut Db, file: *const c_char, entry: *const c_char, error: *mut *mut c_char) -> c_int {
    let name = bytes(file);
    let Some(library) = open_library(name) else {
        return refuse(error, &linker_says().unwrap_or_default());
    };
    let symbol = |n: &CStr| {
        let p = libc::dlsym(library, n.as_ptr());
        // SAFETY: an address, or NULL, which is None.
        std::mem::transmute::<*mut c_void, Option<Entry>>(p)
    };
    let found = if entry.is_null() {
        let named = CString::new(entry_of(name)).unwrap_or_default();
        symbol(c"sqlite3_extension_init").or_else(|| symbol(&named)).ok_or(named)
    } else {
        let named = CStr::from_ptr(entry);
        symbol(named).ok_or(named.to_owned())
    };
    let entry = match found {
        Ok(f) => f,
        Err(named) => {
            let why = linker_says().unwrap_or_else(|| {
                let (named, file) = (named.to_string_lossy(), String::from_utf8_lossy(name));
                format!("no entry point [{named}] in shared library [{file}]")
            });
            libc::dlclose(library);
            return refuse(error, &why);
        }
    };
    let (rc, text) = enter(db, entry);
    if rc == OK { OK } else { refuse(error, &format!("error during initialization: {text}")) }
}

/// The dynamic linker's last complaint.
unsafe fn linker_says() -> Option<String> {
    let why = libc::dlerror();
    (!why.is_null()).then(|| CStr::from_ptr(why).to_string_lossy().into_owned())
}

/// Opens a library by its name, or by that with the system's ending.
unsafe fn open_library(name: &[u8]) -> Option<*mut c_void> {
    let ending: &[u8] = if cfg!(target_os = "macos") { b".dylib" } else { b".so" };
    for name in [name.to_vec(), [name, ending].concat()] {
        let Ok(c) = CString::new(name) else { continue };
        let p = libc::dlopen(c.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        if !p.is_null() {
            return Some(p);
        }
    }
    None
}

/// The entry point that a file's name stands for: its letters up to the first point, without folder and `lib`, between
/// `sqlite3_` and `_init`.
fn entry_of(file: &[u8]) -> Vec<u8> {
    let base = file.rsplit(|b| *b == b'/').next().unwrap_or(file);
    let base = if base.len() > 3 && base[..3].eq_ignore_ascii_case(b"lib") { &base[3..] } else { base };
    let letters = base.iter().take_while(|b| **b != b'.').filter(|b| b.is_ascii_alphabetic());
    let mut out = b"sqlite3_".to_vec();
    out.extend(letters.map(u8::to_ascii_lowercase));
    out.extend_from_slice(b"_init");
    out
}

//! SQLite's C functions as a table: stock's are linked in (crate `iolite-stock`), ours come from the shared library, opened at run
//! time. Both tables have the same shape, so that one interpreter calls either.

use std::ffi::{c_char, c_double, c_int, c_uint, c_void};

/// Any pointer of the interface.
pub type P = *mut c_void;
/// A text of C.
pub type S = *const c_char;
/// A function that frees what it is given.
pub type Free = Option<unsafe extern "C" fn(P)>;
/// A function or a step of an aggregate.
pub type Call = Option<unsafe extern "C" fn(P, c_int, *mut P)>;

macro_rules! table {
    ($($name:ident = $c:literal ( $($t:ty),* ) $(-> $r:ty)?;)*) => {
        /// One library.
        #[allow(missing_docs)]
        pub struct Api { $(pub $name: unsafe extern "C" fn($($t),*) $(-> $r)?,)* }

        /// Stock's library.
        pub fn stock() -> Api {
            mod linked {
                use super::*;
                unsafe extern "C" { $(#[link_name = $c] pub fn $name($(_: $t),*) $(-> $r)?;)* }
            }
            Api { $($name: linked::$name,)* }
        }

        /// Our library, from this file.
        pub fn ours(file: &std::path::Path) -> Result<Api, String> {
            // SAFETY: our own library, whose start-up needs nothing; it is never unloaded.
            let l = unsafe { libloading::Library::new(file) }.map_err(|e| format!("{}: {e}", file.display()))?;
            let l: &'static libloading::Library = Box::leak(Box::new(l));
            Ok(Api {
                $($name: {
                    // SAFETY: the type is that of the documented function of this name.
                    *unsafe { l.get::<unsafe extern "C" fn($($t),*) $(-> $r)?>($c.as_bytes()) }
                        .map_err(|e| format!("{}: {e}", $c))?
                },)*
            })
        }
    };
}

table! {
    open_v2 = "sqlite3_open_v2" (S, *mut P, c_int, S) -> c_int;
    open16 = "sqlite3_open16" (P, *mut P) -> c_int;
    close = "sqlite3_close" (P) -> c_int;
    close_v2 = "sqlite3_close_v2" (P) -> c_int;
    exec = "sqlite3_exec" (S2, S, Option<unsafe extern "C" fn(P, c_int, *mut S, *mut S) -> c_int>, P, *mut P) -> c_int;
    free = "sqlite3_free" (P);
    malloc = "sqlite3_malloc64" (u64) -> P;
    errcode = "sqlite3_errcode" (P) -> c_int;
    extended_errcode = "sqlite3_extended_errcode" (P) -> c_int;
    errmsg = "sqlite3_errmsg" (P) -> S;
    errmsg16 = "sqlite3_errmsg16" (P) -> P;
    error_offset = "sqlite3_error_offset" (P) -> c_int;
    extended_result_codes = "sqlite3_extended_result_codes" (P, c_int) -> c_int;
    changes = "sqlite3_changes64" (P) -> i64;
    total_changes = "sqlite3_total_changes64" (P) -> i64;
    last_insert_rowid = "sqlite3_last_insert_rowid" (P) -> i64;
    set_last_insert_rowid = "sqlite3_set_last_insert_rowid" (P, i64);
    get_autocommit = "sqlite3_get_autocommit" (P) -> c_int;
    txn_state = "sqlite3_txn_state" (P, S) -> c_int;
    db_readonly = "sqlite3_db_readonly" (P, S) -> c_int;
    db_name = "sqlite3_db_name" (P, c_int) -> S;
    next_stmt = "sqlite3_next_stmt" (P, P) -> P;
    interrupt = "sqlite3_interrupt" (P);
    is_interrupted = "sqlite3_is_interrupted" (P) -> c_int;
    limit = "sqlite3_limit" (P, c_int, c_int) -> c_int;
    db_config = "sqlite3_db_config" (P, c_int, c_int, *mut c_int) -> c_int;
    db_cacheflush = "sqlite3_db_cacheflush" (P) -> c_int;
    busy_timeout = "sqlite3_busy_timeout" (P, c_int) -> c_int;
    busy_handler = "sqlite3_busy_handler" (P, Option<unsafe extern "C" fn(P, c_int) -> c_int>, P) -> c_int;
    wal_checkpoint = "sqlite3_wal_checkpoint_v2" (P, S, c_int, *mut c_int, *mut c_int) -> c_int;
    wal_autocheckpoint = "sqlite3_wal_autocheckpoint" (P, c_int) -> c_int;
    column_metadata = "sqlite3_table_column_metadata" (P, S, S, S, *mut S, *mut S, *mut c_int, *mut c_int, *mut c_int) -> c_int;
    get_table = "sqlite3_get_table" (P, S, *mut *mut S, *mut c_int, *mut c_int, *mut P) -> c_int;
    free_table = "sqlite3_free_table" (*mut S);

    prepare = "sqlite3_prepare" (P, S, c_int, *mut P, *mut S) -> c_int;
    prepare_v2 = "sqlite3_prepare_v2" (P, S, c_int, *mut P, *mut S) -> c_int;
    prepare_v3 = "sqlite3_prepare_v3" (P, S, c_int, c_uint, *mut P, *mut S) -> c_int;
    prepare16 = "sqlite3_prepare16" (P, P, c_int, *mut P, *mut P) -> c_int;
    prepare16_v2 = "sqlite3_prepare16_v2" (P, P, c_int, *mut P, *mut P) -> c_int;
    prepare16_v3 = "sqlite3_prepare16_v3" (P, P, c_int, c_uint, *mut P, *mut P) -> c_int;
    finalize = "sqlite3_finalize" (P) -> c_int;
    step = "sqlite3_step" (P) -> c_int;
    reset = "sqlite3_reset" (P) -> c_int;
    clear_bindings = "sqlite3_clear_bindings" (P) -> c_int;
    transfer_bindings = "sqlite3_transfer_bindings" (P, P) -> c_int;
    expired = "sqlite3_expired" (P) -> c_int;
    sql = "sqlite3_sql" (P) -> S;
    expanded_sql = "sqlite3_expanded_sql" (P) -> P;
    stmt_readonly = "sqlite3_stmt_readonly" (P) -> c_int;
    stmt_busy = "sqlite3_stmt_busy" (P) -> c_int;
    stmt_isexplain = "sqlite3_stmt_isexplain" (P) -> c_int;
    stmt_explain = "sqlite3_stmt_explain" (P, c_int) -> c_int;
    stmt_status = "sqlite3_stmt_status" (P, c_int, c_int) -> c_int;
    db_handle = "sqlite3_db_handle" (P) -> P;
    column_count = "sqlite3_column_count" (P) -> c_int;
    data_count = "sqlite3_data_count" (P) -> c_int;
    column_name = "sqlite3_column_name" (P, c_int) -> S;
    column_name16 = "sqlite3_column_name16" (P, c_int) -> P;
    column_decltype = "sqlite3_column_decltype" (P, c_int) -> S;
    column_database_name = "sqlite3_column_database_name" (P, c_int) -> S;
    column_table_name = "sqlite3_column_table_name" (P, c_int) -> S;
    column_origin_name = "sqlite3_column_origin_name" (P, c_int) -> S;
    bind_parameter_count = "sqlite3_bind_parameter_count" (P) -> c_int;
    bind_parameter_name = "sqlite3_bind_parameter_name" (P, c_int) -> S;
    bind_parameter_index = "sqlite3_bind_parameter_index" (P, S) -> c_int;

    bind_null = "sqlite3_bind_null" (P, c_int) -> c_int;
    bind_int = "sqlite3_bind_int" (P, c_int, c_int) -> c_int;
    bind_int64 = "sqlite3_bind_int64" (P, c_int, i64) -> c_int;
    bind_double = "sqlite3_bind_double" (P, c_int, c_double) -> c_int;
    bind_text = "sqlite3_bind_text" (P, c_int, P, c_int, Free) -> c_int;
    bind_text64 = "sqlite3_bind_text64" (P, c_int, P, u64, Free, u8) -> c_int;
    bind_text16 = "sqlite3_bind_text16" (P, c_int, P, c_int, Free) -> c_int;
    bind_blob = "sqlite3_bind_blob" (P, c_int, P, c_int, Free) -> c_int;
    bind_blob64 = "sqlite3_bind_blob64" (P, c_int, P, u64, Free) -> c_int;
    bind_zeroblob = "sqlite3_bind_zeroblob" (P, c_int, c_int) -> c_int;
    bind_zeroblob64 = "sqlite3_bind_zeroblob64" (P, c_int, u64) -> c_int;
    bind_pointer = "sqlite3_bind_pointer" (P, c_int, P, S, Free) -> c_int;
    bind_value = "sqlite3_bind_value" (P, c_int, P) -> c_int;

    column_type = "sqlite3_column_type" (P, c_int) -> c_int;
    column_int = "sqlite3_column_int" (P, c_int) -> c_int;
    column_int64 = "sqlite3_column_int64" (P, c_int) -> i64;
    column_double = "sqlite3_column_double" (P, c_int) -> c_double;
    column_text = "sqlite3_column_text" (P, c_int) -> P;
    column_text16 = "sqlite3_column_text16" (P, c_int) -> P;
    column_blob = "sqlite3_column_blob" (P, c_int) -> P;
    column_bytes = "sqlite3_column_bytes" (P, c_int) -> c_int;
    column_bytes16 = "sqlite3_column_bytes16" (P, c_int) -> c_int;
    column_value = "sqlite3_column_value" (P, c_int) -> P;

    value_type = "sqlite3_value_type" (P) -> c_int;
    value_numeric_type = "sqlite3_value_numeric_type" (P) -> c_int;
    value_int64 = "sqlite3_value_int64" (P) -> i64;
    value_double = "sqlite3_value_double" (P) -> c_double;
    value_text = "sqlite3_value_text" (P) -> P;
    value_blob = "sqlite3_value_blob" (P) -> P;
    value_bytes = "sqlite3_value_bytes" (P) -> c_int;
    value_bytes16 = "sqlite3_value_bytes16" (P) -> c_int;
    value_nochange = "sqlite3_value_nochange" (P) -> c_int;
    value_frombind = "sqlite3_value_frombind" (P) -> c_int;
    value_subtype = "sqlite3_value_subtype" (P) -> c_uint;
    value_encoding = "sqlite3_value_encoding" (P) -> c_int;
    value_dup = "sqlite3_value_dup" (P) -> P;
    value_free = "sqlite3_value_free" (P);

    create_function = "sqlite3_create_function_v2" (P, S, c_int, c_int, P, Call, Call, Option<unsafe extern "C" fn(P)>, Free) -> c_int;
    create_window_function = "sqlite3_create_window_function" (P, S, c_int, c_int, P, Call, Option<unsafe extern "C" fn(P)>, Option<unsafe extern "C" fn(P)>, Call, Free) -> c_int;
    create_collation = "sqlite3_create_collation_v2" (P, S, c_int, P, Option<unsafe extern "C" fn(P, c_int, P, c_int, P) -> c_int>, Free) -> c_int;
    overload_function = "sqlite3_overload_function" (P, S, c_int) -> c_int;
    user_data = "sqlite3_user_data" (P) -> P;
    context_db_handle = "sqlite3_context_db_handle" (P) -> P;
    aggregate_context = "sqlite3_aggregate_context" (P, c_int) -> P;
    get_auxdata = "sqlite3_get_auxdata" (P, c_int) -> P;
    set_auxdata = "sqlite3_set_auxdata" (P, c_int, P, Free);
    result_int64 = "sqlite3_result_int64" (P, i64);
    result_text = "sqlite3_result_text" (P, P, c_int, Free);
    result_value = "sqlite3_result_value" (P, P);
    result_error = "sqlite3_result_error" (P, S, c_int);
    result_error_code = "sqlite3_result_error_code" (P, c_int);
    result_subtype = "sqlite3_result_subtype" (P, c_uint);

    commit_hook = "sqlite3_commit_hook" (P, Option<unsafe extern "C" fn(P) -> c_int>, P) -> P;
    rollback_hook = "sqlite3_rollback_hook" (P, Free, P) -> P;
    update_hook = "sqlite3_update_hook" (P, Option<unsafe extern "C" fn(P, c_int, S, S, i64)>, P) -> P;
    preupdate_hook = "sqlite3_preupdate_hook" (P, Option<unsafe extern "C" fn(P, P, c_int, S, S, i64, i64)>, P) -> P;
    preupdate_old = "sqlite3_preupdate_old" (P, c_int, *mut P) -> c_int;
    preupdate_new = "sqlite3_preupdate_new" (P, c_int, *mut P) -> c_int;
    preupdate_count = "sqlite3_preupdate_count" (P) -> c_int;
    preupdate_depth = "sqlite3_preupdate_depth" (P) -> c_int;
    preupdate_blobwrite = "sqlite3_preupdate_blobwrite" (P) -> c_int;
    set_authorizer = "sqlite3_set_authorizer" (P, Option<unsafe extern "C" fn(P, c_int, S, S, S, S) -> c_int>, P) -> c_int;
    progress_handler = "sqlite3_progress_handler" (P, c_int, Option<unsafe extern "C" fn(P) -> c_int>, P);
    trace = "sqlite3_trace_v2" (P, c_uint, Option<unsafe extern "C" fn(c_uint, P, P, P) -> c_int>, P) -> c_int;
    wal_hook = "sqlite3_wal_hook" (P, Option<unsafe extern "C" fn(P, P, S, c_int) -> c_int>, P) -> P;
    collation_needed = "sqlite3_collation_needed" (P, P, Option<unsafe extern "C" fn(P, P, c_int, S)>) -> c_int;
    unlock_notify = "sqlite3_unlock_notify" (P, Option<unsafe extern "C" fn(*mut P, c_int)>, P) -> c_int;

    blob_open = "sqlite3_blob_open" (P, S, S, S, i64, c_int, *mut P) -> c_int;
    blob_reopen = "sqlite3_blob_reopen" (P, i64) -> c_int;
    blob_close = "sqlite3_blob_close" (P) -> c_int;
    blob_bytes = "sqlite3_blob_bytes" (P) -> c_int;
    blob_read = "sqlite3_blob_read" (P, P, c_int, c_int) -> c_int;
    blob_write = "sqlite3_blob_write" (P, P, c_int, c_int) -> c_int;
    backup_init = "sqlite3_backup_init" (P, S, P, S) -> P;
    backup_step = "sqlite3_backup_step" (P, c_int) -> c_int;
    backup_finish = "sqlite3_backup_finish" (P) -> c_int;
    backup_remaining = "sqlite3_backup_remaining" (P) -> c_int;
    backup_pagecount = "sqlite3_backup_pagecount" (P) -> c_int;
    serialize = "sqlite3_serialize" (P, S, *mut i64, c_uint) -> P;
    deserialize = "sqlite3_deserialize" (P, S, P, i64, i64, c_uint) -> c_int;
}

/// A connection where a text is wanted beside it.
pub type S2 = P;

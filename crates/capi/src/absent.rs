//! Entries for what this library does not offer yet: sessions, change sets, snapshots.
//!
//! Programs that are linked against them start, and learn from the answer that they cannot be used. An entry that takes
//! arguments in C may ignore them here: the caller clears them away.

use crate::ERROR;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

macro_rules! absent {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            ERROR
        })*
    };
}

absent! {
    sqlite3_snapshot_cmp
    sqlite3_snapshot_free
    sqlite3_snapshot_get
    sqlite3_snapshot_open
    sqlite3_snapshot_recover
    sqlite3changegroup_add
    sqlite3changegroup_add_change
    sqlite3changegroup_add_strm
    sqlite3changegroup_change_begin
    sqlite3changegroup_change_blob
    sqlite3changegroup_change_double
    sqlite3changegroup_change_finish
    sqlite3changegroup_change_int64
    sqlite3changegroup_change_null
    sqlite3changegroup_change_text
    sqlite3changegroup_config
    sqlite3changegroup_delete
    sqlite3changegroup_new
    sqlite3changegroup_output
    sqlite3changegroup_output_strm
    sqlite3changegroup_schema
    sqlite3changeset_apply
    sqlite3changeset_apply_strm
    sqlite3changeset_apply_v2
    sqlite3changeset_apply_v2_strm
    sqlite3changeset_apply_v3
    sqlite3changeset_apply_v3_strm
    sqlite3changeset_concat
    sqlite3changeset_concat_strm
    sqlite3changeset_conflict
    sqlite3changeset_finalize
    sqlite3changeset_fk_conflicts
    sqlite3changeset_invert
    sqlite3changeset_invert_strm
    sqlite3changeset_new
    sqlite3changeset_next
    sqlite3changeset_old
    sqlite3changeset_op
    sqlite3changeset_pk
    sqlite3changeset_start
    sqlite3changeset_start_strm
    sqlite3changeset_start_v2
    sqlite3changeset_start_v2_strm
    sqlite3rebaser_configure
    sqlite3rebaser_create
    sqlite3rebaser_delete
    sqlite3rebaser_rebase
    sqlite3rebaser_rebase_strm
    sqlite3session_attach
    sqlite3session_changeset
    sqlite3session_changeset_size
    sqlite3session_changeset_strm
    sqlite3session_config
    sqlite3session_create
    sqlite3session_delete
    sqlite3session_diff
    sqlite3session_enable
    sqlite3session_indirect
    sqlite3session_isempty
    sqlite3session_memory_used
    sqlite3session_object_config
    sqlite3session_patchset
    sqlite3session_patchset_strm
    sqlite3session_table_filter
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_filename() -> *mut c_void {
    null_mut()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_free_filename() {}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_database_file_object() -> *mut c_void {
    null_mut()
}

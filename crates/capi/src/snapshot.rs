//! `sqlite3_snapshot_*`: states of a log by name. A `sqlite3_snapshot` is the name, 48 bytes.

use crate::connection::{Db, text_option, with};
use crate::{MISUSE, NOMEM, OK};
use iolite::engine::{Connection, Error, SnapshotName};
use std::cmp::Ordering;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

const _: () = assert!(size_of::<SnapshotName>() == 48);

/// Runs `f` on a connection and the name of one of its databases. The connection's error stays as it is.
unsafe fn on(
    db: *mut Db,
    schema: *const c_char,
    f: impl FnOnce(&Connection, &str) -> Result<(), Error>,
) -> c_int {
    let schema = text_option(schema).unwrap_or_else(|| "main".into());
    with(db, MISUSE, |d| match d.run(|c| f(c, &schema)) {
        Ok(()) => OK,
        Err(e) => e.code().number() as c_int,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_snapshot_get(
    db: *mut Db,
    schema: *const c_char,
    out: *mut *mut SnapshotName,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let mut name = None;
    let code = on(db, schema, |c, schema| {
        name = Some(c.snapshot(schema)?);
        Ok(())
    });
    let Some(name) = name else { return code };
    let p = crate::memory::sqlite3_malloc64(size_of::<SnapshotName>() as u64) as *mut SnapshotName;
    if p.is_null() {
        return NOMEM;
    }
    p.write_unaligned(name);
    *out = p;
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_snapshot_open(
    db: *mut Db,
    schema: *const c_char,
    snapshot: *mut SnapshotName,
) -> c_int {
    if snapshot.is_null() {
        return MISUSE;
    }
    let name = snapshot.read_unaligned();
    on(db, schema, |c, schema| c.open_snapshot(schema, &name))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_snapshot_recover(db: *mut Db, schema: *const c_char) -> c_int {
    on(db, schema, |c, schema| c.recover_snapshots(schema))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_snapshot_free(snapshot: *mut SnapshotName) {
    crate::memory::sqlite3_free(snapshot.cast());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_snapshot_cmp(a: *mut SnapshotName, b: *mut SnapshotName) -> c_int {
    if a.is_null() || b.is_null() {
        return 0;
    }
    // The log's first salt, which grows with each life of it, and the last frame.
    let age = |p: *mut SnapshotName| {
        let w = p.read_unaligned();
        (w[8], w[4])
    };
    match age(a).cmp(&age(b)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

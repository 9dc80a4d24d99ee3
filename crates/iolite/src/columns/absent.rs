//! A build without the columnar engine (feature `columnar`): all queries run in rows.
//!
//! The settings that concern columns can be read and written; they have no effect.

use super::ColumnCounters;
use crate::connection::{Attached, Inner};
use iolite_base::Result;
use iolite_codegen::Door;
use std::rc::{Rc, Weak};

/// No columns.
pub(crate) type Columns = ();

/// What is left to do when a database has been closed: nothing.
pub(crate) struct Closing;

impl Closing {
    pub fn finish(self) {}
}

/// Where a connection's queries could leave for columns: nowhere.
pub(crate) struct Doorway;

impl Doorway {
    pub fn new(_: &Weak<Inner>) -> Doorway {
        Doorway
    }

    fn door(&self) -> Option<Rc<dyn Door>> {
        None
    }

    /// Nothing was taken for small.
    pub fn take_again(&self) -> bool {
        false
    }
}

pub(crate) fn door(conn: &Inner) -> Option<Rc<dyn Door>> {
    conn.doorway.door()
}

pub(crate) fn closing(_: &mut Attached) -> Option<Closing> {
    None
}

pub(crate) fn column_cache(_: &Inner, _: usize, _: Option<bool>) -> Result<&'static str> {
    Ok("memory")
}

pub(crate) fn column_cache_trust(_: &Inner, _: usize, _: Option<bool>) -> Result<&'static str> {
    Ok("stat")
}

pub(crate) fn column_cache_size(_: Option<i64>) -> i64 {
    0
}

pub(crate) fn column_work_size(_: Option<i64>) -> i64 {
    0
}

pub(crate) fn note(_: &Columns) -> Option<String> {
    None
}

pub(crate) fn counters(_: &Columns) -> ColumnCounters {
    ColumnCounters::default()
}

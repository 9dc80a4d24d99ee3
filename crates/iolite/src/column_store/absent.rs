//! A build without the columnar engine (feature `columnar`): no database has columns.

use super::ColumnCounters;
use iolite_btree::Btree;

/// No columns.
pub(crate) type Columns = ();

/// What is left to do when a database has been closed: nothing.
pub(crate) struct Closing;

impl Closing {
    pub fn finish(self) {}
}

/// Tables that have grown: nobody asks.
#[derive(Default)]
pub(crate) struct Growth(());

impl Growth {
    /// Nothing was taken for small.
    pub fn take_again(&self) -> bool {
        false
    }
}

pub(crate) fn closing(_: &mut Columns, _: Option<&Btree>) -> Option<Closing> {
    None
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

pub(crate) fn refusals(_: &Columns) -> Vec<(String, u64)> {
    Vec::new()
}

pub(crate) fn counters(_: &Columns) -> ColumnCounters {
    ColumnCounters::default()
}

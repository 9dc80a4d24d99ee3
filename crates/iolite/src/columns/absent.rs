//! A build without the columnar engine (feature `columnar`): all queries run in rows.
//!
//! The settings that concern columns can be read and written; they have no effect.

use super::ColumnCounters;
use crate::connection::{Attached, Connection, Inner};
use iolite_base::Result;
use iolite_plan::StatementPlan;

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

/// All blocks are run by their loops.
pub(crate) fn choose(_: &Connection, _: &StatementPlan, _: bool) -> Result<()> {
    Ok(())
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

pub(crate) fn refusals(_: &Columns) -> Vec<(String, u64)> {
    Vec::new()
}

pub(crate) fn counters(_: &Columns) -> ColumnCounters {
    ColumnCounters::default()
}

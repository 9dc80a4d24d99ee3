//! A build without the columnar engine (feature `columnar`): all queries run in rows.
//!
//! The settings that concern columns can be read and written; they have no effect.

use crate::connection::{Connection, Inner};
use iolite_base::Result;
use iolite_plan::StatementPlan;

/// All blocks are run by their loops.
pub(crate) fn choose(_: &Connection, _: &StatementPlan, _: bool) -> Result<()> {
    Ok(())
}

pub(crate) fn column_cache(_: &Inner, _: usize, _: Option<bool>) -> Result<&'static str> {
    Ok("memory")
}

pub(crate) fn column_cache_trust(_: &Inner, _: usize, _: Option<bool>) -> Result<&'static str> {
    Ok("stat")
}

//! Queries in columns: the engine where it is built in (feature `columnar`), joined to connections.

#[cfg(not(feature = "columnar"))]
mod absent;
#[cfg(feature = "columnar")]
mod engine;
#[cfg(feature = "columnar")]
mod executor;
#[cfg(feature = "columnar")]
mod size;

#[cfg(not(feature = "columnar"))]
pub(crate) use absent::*;
#[cfg(feature = "columnar")]
pub(crate) use {engine::*, executor::choose};

use crate::column_store::{ColumnCounters, counters, note, refusals};

impl crate::connection::Connection {
    /// Why columns are no longer kept beside a database, if something went wrong.
    pub fn column_note(&self, db: usize) -> Option<String> {
        self.0.databases.borrow().get(db).and_then(|d| note(&d.columns))
    }

    /// How often queries in columns were left to rows while they ran, by reason.
    pub fn column_refusals(&self, db: usize) -> Vec<(String, u64)> {
        self.0.databases.borrow().get(db).map_or_else(Vec::new, |d| refusals(&d.columns))
    }

    /// What has happened in the column cache of a database.
    pub fn column_counters(&self, db: usize) -> ColumnCounters {
        let dbs = self.0.databases.borrow();
        dbs.get(db).map_or_else(ColumnCounters::default, |d| counters(&d.columns))
    }
}

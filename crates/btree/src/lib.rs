//! Ordered bytes on pages: trees of rows by number, and of records by comparison.
//!
//! A [`Btree`] is one attached database of one connection: transactions, savepoints, the numbers in the
//! file's header, making and dropping trees. A [`Cursor`] walks one tree, finds, inserts and deletes.
//! Everything in the sections 1.2 to 1.8 of the file format happens here: nodes, overflow chains, the
//! freelist, pointer maps.
//!
//! What it does not know: what a record means (comparisons are the caller's), tables, SQL.

#![deny(unsafe_code)]

mod ahead;
mod append;
mod balance;
mod btree;
mod caches;
mod check;
mod copy;
mod cursor;
mod extent;
mod freelist;
mod insert;
mod node;
mod overflow;
pub mod pages;
mod ptrmap;
mod room;
mod run;
mod search;
mod seek;
mod settings;
mod shared_cache;
mod trees;
mod vacuum;

pub use ahead::Ahead;
pub use append::Ordered;
pub use btree::{AutoVacuum, Btree, Reading, VacuumPages};
pub use caches::Caches;
pub use copy::Backup;
pub use cursor::{Cursor, EntryOrder, InsertAt, KeyCompare};
pub use extent::{Extent, RowsChanged};
pub use iolite_os::{FileId, FileStamp};
pub use iolite_pager::{Base, LogMark, Mark, SnapshotName};
pub use iolite_pager::{
    BusyHandler, CacheStats, CheckpointMode, CheckpointResult, Commit, JournalMode, LeaseTerms, LockingMode,
    OpenOptions, SecureDelete, SyncMode, TxnState,
};
pub use node::{Cell, TreeKind};
pub use shared_cache::Member;

//! Pages with transactions.
//!
//! A [`Pager`] is one connection's view of one database: it reads pages, lets them be changed, and commits or
//! takes back the changes, by a rollback journal or a write-ahead log, under the locks that SQLite's file
//! format prescribes. Savepoints, spilling when memory is short, and crash recovery are its business.
//!
//! What it does not know: what stands on a page (apart from the first 100 bytes of page 1), and SQL.

#![deny(unsafe_code)]

mod cache;
mod checkpointer;
mod commits;
mod direct;
mod durability;
mod former;
mod journal;
mod lease;
mod pager;
mod read_ahead;
mod recover;
mod settings;
mod shared;
mod table;
mod txn;
mod types;
mod undo;
mod view;
mod wal;

pub use journal::lock_byte_page;
pub use lease::LeaseTerms;
pub use pager::{Pager, State};
pub use read_ahead::Scan;
pub use types::{
    BusyHandler, CacheStats, CheckpointMode, CheckpointResult, Commit, JournalMode, LockingMode, OpenOptions,
    SecureDelete, SyncMode, TxnState,
};
pub use view::{Base, ClosingNote, Mark, Together};
pub use wal::{LogMark, SnapshotName};

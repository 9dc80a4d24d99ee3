//! iolite: an embedded SQL database that reads and writes SQLite 3 files.
//!
//! A [`Connection`] opens a database and prepares [`Statement`]s. This crate is the one place where the stages are
//! joined: text, AST, bound query, plan, program, machine, trees. It owns transactions across databases, the catalog's
//! life, PRAGMAs, and the statements that the engine carries out by SQL of its own.
#![forbid(unsafe_code)]

mod alter;
mod analyze;
mod attach;
mod blob;
mod check;
mod columns;
mod connection;
mod control;
mod database;
mod describe;
mod env;
mod image;
mod listing;
mod memory;
mod metadata;
mod open;
mod plans;
mod pragma;
mod random;
mod run;
mod schema;
mod stages;
mod statement;
mod txn;
mod vacuum;
mod writer;

pub use blob::Blob;
pub use columns::ColumnCounters;
pub use connection::{Connection, Switch};
pub use database::Database;
pub use image::{Backup, ImageOptions};
pub use iolite_base::{
    Code, Encoding, Error, IOLITE_VERSION, Limit, Result, SQLITE_VERSION, SQLITE_VERSION_NUMBER,
};
pub use iolite_btree::{Btree, CheckpointMode, CheckpointResult, JournalMode, TxnState};
pub use iolite_bytecode::{ColumnMeta, ExplainRow};
#[cfg(feature = "columnar")]
pub use iolite_columnar::set_segment_leaves as set_column_segment_leaves;
pub use iolite_ext::{
    Aggregate, Context, Function, FunctionFlags, Implementation, Module, RowSource, Scalar, VirtualCursor,
    VirtualTable,
};
pub use iolite_value::{Collate, Value};
pub use metadata::ColumnMetadata;
pub use open::OpenFlags;
pub use stages::stages;
pub use statement::{Statement, Step};
pub use writer::{Durability, JobOptions, Ticket, Writer, WriterOptions};

//! iolite: an embedded SQL database that reads and writes SQLite 3 files.
//!
//! A [`Connection`] opens a database; [`Statement`]s, [`Row`]s, [`Transaction`]s and [`Blob`]s borrow it. The names and habits are
//! those of `rusqlite`. Errors are one type, [`Error`], with SQLite's codes.
//!
//! ```
//! use iolite::{Connection, Result, params};
//!
//! struct Person {
//!     id: i64,
//!     name: String,
//!     photo: Option<Vec<u8>>,
//! }
//!
//! fn main() -> Result<()> {
//!     let db = Connection::open_in_memory()?;
//!     db.execute("CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL, photo BLOB)", [])?;
//!     db.execute("INSERT INTO person(name, photo) VALUES (?1, ?2)", params!["Steven", None::<Vec<u8>>])?;
//!
//!     let mut s = db.prepare("SELECT id, name, photo FROM person")?;
//!     let people = s.query_map([], |row| {
//!         Ok(Person { id: row.get("id")?, name: row.get("name")?, photo: row.get("photo")? })
//!     })?;
//!     for person in people {
//!         let person = person?;
//!         println!("{} {} {}", person.id, person.name, person.photo.is_some());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A connection can move between threads. From many threads at once, each has a connection of its own, and changes may go
//! through one write queue: [`Database`].
//!
//! This crate is the one place where the stages are joined: text, AST, bound query, plan, program, machine, trees. It owns
//! transactions across databases, the catalog's life, PRAGMAs, and the statements that the engine carries out by SQL of its own.
#![deny(unsafe_code)]

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod alter;
mod analyze;
mod api;
mod attach;
mod authorize;
mod binding;
mod blob;
mod builtin;
mod check;
mod column_store;
mod columns;
mod compile;
mod connection;
mod control;
mod database;
mod describe;
#[doc(hidden)]
pub mod engine;
mod env;
mod foreign_keys;
mod host;
mod image;
mod listing;
mod memory;
mod metadata;
mod modules;
mod open;
mod plans;
mod pragma;
mod prepare;
mod preupdate;
mod random;
mod running;
mod schema;
mod settings;
mod snapshot;
mod stages;
mod statement;
mod status;
mod table_locks;
mod txn;
mod vacuum;
mod vtabs;
mod was_read;
mod watched;
mod work;
mod writer;

pub use api::{
    Action, Aggregate, AndThenRows, AuthAction, AuthContext, Authorization, Backup, Blob, Column, Connection,
    DropBehavior, FromSql, FromSqlError, FromSqlResult, FunctionContext, InterruptHandle, MappedRows,
    OptionalExtension, Params, ParamsFromIter, Progress, Row, RowIndex, Rows, Savepoint, Statement,
    StepResult, ToSql, ToSqlOutput, Transaction, TransactionBehavior, Type, Value, ValueRef, WindowAggregate,
    params_from_iter,
};
pub use database::Database;
pub use iolite_base::{
    Code, Encoding, Error, IOLITE_VERSION, Limit, Result, SQLITE_VERSION, SQLITE_VERSION_NUMBER,
};
pub use iolite_btree::{CheckpointMode, CheckpointResult, TxnState};
pub use iolite_ext::FunctionFlags;
pub use open::OpenFlags;
pub use writer::{Durability, JobOptions, Ticket, Writer, WriterOptions};

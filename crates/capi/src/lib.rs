//! The C library: `sqlite3_*` functions with SQLite's ABI over the Rust API.
//!
//! Thin: every function here does what SQLite's documentation page of its name says, by asking the engine; no decision
//! about SQL or files is made here. What always holds: each entry takes its connection's mutex (serialized mode, as
//! `sqlite3_threadsafe` answers 1), catches unwinding, and answers `SQLITE_MISUSE` or nothing for NULL handles and
//! for closed ones (`handle`). No value passes from one connection to another but as a copy of its bytes: buffers count their
//! holders without atomic operations, under the mutex of the one connection that they belong to.
//!
//! All entry points are `unsafe`: their contract is the one of the C interface. Pointers that a caller passes are valid
//! as that says; handles come from the function that makes them and are not used behind the one that ends them. Every
//! dereference in an entry point leans on this one fact, so the bodies are unsafe as a whole.
#![allow(unsafe_op_in_unsafe_fn, missing_docs, clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref)]

pub mod authorizer;
pub mod backup;
pub mod bind;
pub mod blob;
pub mod carray;
pub mod carray_bind;
pub mod changegroup;
pub mod changeset;
pub mod changeset_apply;
pub mod collation;
pub mod column;
pub mod connection;
pub mod exec;
pub mod extension;
pub mod file_answers;
pub mod file_control;
pub mod filename;
mod foreign;
mod fts3_tokenizer;
pub mod fts5;
pub mod fts5_context;
pub mod function;
pub mod handle;
pub mod hooks;
pub mod info;
mod log;
pub mod memory;
pub mod mutex;
pub mod opening;
pub mod pointer;
pub mod prepare;
pub mod preupdate;
pub mod printf;
pub mod rtree;
pub mod session;
pub mod session_io;
pub mod shared_cache;
pub mod snapshot;
pub mod statement;
pub mod statement_info;
pub mod text;
pub mod value;
pub mod vfs;
pub mod vfs_file;
pub mod vtab;
pub mod vtab_calls;
pub mod vtab_index;
pub mod vtab_making;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// In debug builds every block is the system's own, so that tools like valgrind see each.
#[cfg(not(debug_assertions))]
#[global_allocator]
static POOL: iolite_base::pool::Pool = iolite_base::pool::Pool;

pub const OK: i32 = 0;
pub const ERROR: i32 = 1;
pub const INTERNAL: i32 = 2;
pub const BUSY: i32 = 5;
pub const NOMEM: i32 = 7;
pub const IOERR: i32 = 10;
pub const NOTFOUND: i32 = 12;
pub const CANTOPEN: i32 = 14;
pub const TOOBIG: i32 = 18;
pub const MISUSE: i32 = 21;
pub const RANGE: i32 = 25;
pub const ROW: i32 = 100;
pub const DONE: i32 = 101;
pub const IOERR_NOMEM: i32 = 3082;

/// Runs `f`; what unwinds stops here and becomes `bad`.
pub(crate) fn guard<T>(bad: T, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(bad)
}

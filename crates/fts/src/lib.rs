//! Full-text search: the modules `fts5` and `fts5vocab`, by the traits of `ext` alone, on SQLite's own structures (documentation
//! page `fts5`).
//!
//! ```text
//! module -> table -> cursor -> query -> index -> store -> the shadow tables
//!             |         +--> auxiliary functions
//!             |         +--> ranked: the best rows, from memory
//!             +--> storage: content, sizes, totals
//! ```
//!
//! What always holds: what one connection has not written yet nobody else sees; a block that is damaged is an error, never a
//! panic.
#![forbid(unsafe_code)]

mod auxiliary;
mod check;
mod config;
mod cursor;
mod functions;
mod index;
mod locale;
mod module;
mod plan;
mod query;
mod ranked;
mod storage;
mod store;
mod table;
mod tokenize;
mod vocabulary;
mod words;

pub use auxiliary::{Auxiliary, EachRow, Instance, Row};
pub use functions::{FUNCTION_NAMES, functions_named, set_api};
pub use module::{BUILTIN, Fts5};

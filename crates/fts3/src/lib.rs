//! Full-text search as it was before FTS5: the modules `fts3`, `fts4`, `fts4aux` and `fts3tokenize`, by the traits of `ext`
//! alone, on SQLite's own structures (documentation page `fts3`).
//!
//! ```text
//! module -> table -> cursor -> query -> index -> store -> the shadow tables
//!             |         +--> functions
//!             +--> storage: content, sizes, totals
//! ```
//!
//! What always holds: what one connection has not written yet nobody else sees; a block that is damaged is an error, never a
//! panic.
#![forbid(unsafe_code)]

mod config;
mod cursor;
mod functions;
mod index;
mod module;
mod plan;
mod query;
mod storage;
mod store;
mod table;
mod tokenize;
mod tokens;
mod varint;
mod vocabulary;
mod words;

pub use functions::{FUNCTION_NAMES, functions_named};
pub use module::BUILTIN;
pub use tokenize::{TokenizerDoor, builtin as tokenizer, exists as has_tokenizer, set_tokenizer_door};

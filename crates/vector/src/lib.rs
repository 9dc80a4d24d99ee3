//! Vectors: the functions `vec_*`, the tables `vec0` and `vec_each`, and `hybrid`, by the traits of `ext` alone. Names, errors and
//! shadow tables are those of sqlite-vec, whose files it reads and writes.
//!
//! ```text
//! functions, each -> vector -> kernel
//! module -> config
//!   +--> table -> plan, store          store: the shadow tables
//!          +----> search -> filter, kernel
//! hybrid: two nested searches, one order
//! ```
//!
//! What always holds: nothing is kept in memory between two statements; a search looks at every vector that its filters leave; shadow
//! tables that are damaged are an error, never a panic.
#![forbid(unsafe_code)]

mod arguments;
mod config;
mod each;
mod filter;
mod functions;
mod hybrid;
mod kernel;
mod module;
mod plan;
mod search;
mod store;
mod table;
mod vector;

pub use functions::{FUNCTION_NAMES, functions_named};
pub use module::BUILTIN;

//! Vectors: the functions `vec_*`, the tables `vec0` and `vec_each`, and `hybrid`, by the traits of `ext` alone. Names, errors and
//! shadow tables are those of sqlite-vec, whose files it reads and writes.
//!
//! ```text
//! functions, each -> vector -> kernel
//! module -> config
//!   +--> table -> plan, store          store: the shadow tables
//!          +----> search -> filter, kernel
//!          +----->  +----> ask -> ivf: inverted lists, an index in the file
//!                   |       `---> hnsw: a graph in memory
//!                   +----> quantized -> dot, kernel       a copy in memory that says which rows need to be measured
//!                          both -> rows: what is made of rows, and how it follows them
//! hybrid: two nested searches, one order
//! ```
//!
//! What always holds: what is kept in memory between two statements belongs to one state of the database; the answer of a search is that of a
//! look at every vector that its filters leave; shadow tables that are damaged are an error, never a panic.
#![deny(unsafe_code)]

mod arguments;
mod ask;
mod config;
mod dot;
mod each;
mod filter;
mod found;
mod functions;
mod hnsw;
mod hybrid;
mod ivf;
mod kernel;
mod module;
mod plan;
mod quantized;
mod rows;
mod search;
mod store;
mod table;
mod vector;

pub use functions::{FUNCTION_NAMES, functions_named};
pub use module::BUILTIN;

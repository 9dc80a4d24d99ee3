//! R*Trees: the modules `rtree`, `rtree_i32` and `geopoly`, by the traits of `ext` alone, on SQLite's own structures
//! (documentation pages `rtree` and `geopoly`).
//!
//! ```text
//! module -> table --> tree -> split          store -> the shadow tables
//!             +-----> cursor -> queue, constraint, geometry
//! geopoly: polygon, overlap, functions; its table stands on tree and cursor
//! ```
//!
//! What always holds: nothing is kept in memory between two changes; a node that is damaged is an error, never a panic, and
//! every way up or down a tree has an end.
#![forbid(unsafe_code)]

mod check;
mod constraint;
mod cursor;
mod functions;
pub mod geometry;
mod geopoly;
mod layout;
mod module;
mod plan;
mod queue;
mod split;
mod store;
mod table;
mod tree;
mod words;

pub use functions::{FUNCTION_NAMES, functions_named};
pub use module::BUILTIN;

//! Rewrites of bound queries, one pass a file. Each leaves a query that means the same.

pub mod flatten;
pub mod outer_join;
mod substitute;

pub use substitute::{replace_in_core, replace_in_expr, replace_in_select};

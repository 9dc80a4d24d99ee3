//! Rewrites of bound queries, one pass a file. Each leaves a query that means the same.

pub mod exists;
pub mod fixed_columns;
pub mod flatten;
pub mod having;
pub mod not_null;
pub mod outer_join;
pub mod push_down;
pub mod renumber;
mod substitute;
pub mod union_all;

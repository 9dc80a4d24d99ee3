//! Binding and planning: an AST and a catalog become a bound query, that becomes a plan tree.
//!
//! `bind` looks names up; `rewrite` simplifies; `terms`, `access`, `cost` and `join_order` choose how rows are
//! found; `plan` is what comes out, plain data; `print` shows it as EXPLAIN QUERY PLAN does. Knows nothing of
//! programs or pages.
#![forbid(unsafe_code)]

mod access;
pub mod bind;
pub mod bound;
mod cost;
mod expr;
mod join_order;
pub mod plan;
mod planner;
mod point;
pub mod print;
mod rewrite;
mod show;
pub mod terms;
mod walk;
mod window;

pub use access::has_subquery;
pub use expr::{comparison_affinity, comparison_collation, match_affinity};
pub use planner::Planner;
pub use walk::select as visit_select;

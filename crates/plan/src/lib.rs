//! Binding and planning: an AST and a catalog become the plan of a statement.
//!
//! [`compile`] is the way through: `bind` looks names up; `rewrite` simplifies; `terms`, `access`, `cost` and
//! `join_order` choose how rows are found; `modify`, `triggers`, `define` and `control` decide what other statements
//! do. What comes out is plain data: `statement`, whose queries are `plan`. `executor` lets others than loops run its
//! blocks; `explain` makes the lines of EXPLAIN QUERY PLAN, `print` a longer form. Knows nothing of programs or pages.
#![forbid(unsafe_code)]

mod access;
pub mod bind;
mod bloom;
pub mod bound;
mod bounds;
mod compile;
mod compiler;
mod control;
mod cost;
mod define;
mod distinct;
pub mod executor;
pub mod explain;
mod expr;
mod join_order;
mod lookup;
mod merge;
mod modify;
pub mod plan;
mod planner;
mod point;
pub mod print;
mod rewrite;
mod show;
pub mod statement;
mod subtypes;
pub mod terms;
mod triggers;
mod values;
mod virtual_access;
mod walk;
mod window;

pub use bound::{CompoundOp, Conflict, FrameExclude, FrameUnit, RaiseKind};
pub use compile::{compile, idle, row_check, work};
pub use expr::has_subquery;
pub use expr::{comparison_affinity, comparison_collation, match_affinity};
pub use statement::StatementPlan;
pub use walk::select as visit_select;

//! From a block of a plan to rows: whether it is one for columns, its compilation, the choice of this run, and the run.
//!
//! [`compile`] makes a [`Query`](crate::query::Query) of a block, or gives the reason why it stays in rows. A run asks [`cost`]
//! first; then the operators for a single table ([`single`]) try, then the star path; what both decline is left to rows.

pub(crate) mod compile;
pub(crate) mod cost;
mod eligible;
pub(crate) mod single;

pub use eligible::pays;

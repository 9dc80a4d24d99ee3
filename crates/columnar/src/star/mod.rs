//! The star path: joins of tables by equalities, with one table scanned.
//!
//! The conditions are split ([`split`]); inner tables become hash tables ([`build`]) or codes laid beside the scanned one
//! ([`derive`]); the scanned table's blocks are filtered and joined ([`scan`], [`probe`]), perhaps by several threads
//! ([`threads`]); joined rows are brought into the order of the planner's loops where that matters ([`loop_order`]), and go to
//! groups ([`group`], [`aggregate`]) or to the result. [`run`] does all that in turn.
//!
//! What always holds: nothing leaves before the last row is computed. Rows and groups come in the order of the loops.
//!
//! What it does not know: whether it pays.

pub(crate) mod aggregate;
pub(crate) mod build;
mod derive;
pub(crate) mod group;
mod loop_order;
pub(crate) mod nested;
mod partitions;
mod probe;
pub(crate) mod run;
mod scan;
mod scope;
pub(crate) mod split;
mod threads;

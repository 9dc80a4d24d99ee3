//! Operators for a single table of any shape: a source, filters, groups, tops, rows.
//!
//! A query's blocks of rows go from the [`source`] through filters to one operator at the end: groups ([`group`]) or rows
//! ([`rows`]). Blocks carry positions; columns that only the result reads are read for the rows that remain. Groups are
//! found by packed numbers of their keys ([`number`], [`keys`], [`intern`]), their aggregates are columns of states
//! ([`state`]), and what is wanted of an order is kept by a bounded list ([`top`]). `pipeline::single` puts them together.
//!
//! What always holds: rows come in the order of the table, so groups know their first row, and sums of reals are added
//! in that order. What an operator does not know, it declines ([`crate::decline`]) before any row has left.
//!
//! What they do not know: joins and bitmaps over codes; those are the star path's.

mod distinct;
pub(crate) mod gather;
pub(crate) mod group;
pub(crate) mod intern;
pub(crate) mod keys;
pub(crate) mod made;
pub(crate) mod number;
pub(crate) mod result;
pub(crate) mod rows;
mod sort_key;
pub(crate) mod source;
pub(crate) mod spill;
pub(crate) mod state;
pub(crate) mod sum;
pub(crate) mod top;
pub(crate) mod window;

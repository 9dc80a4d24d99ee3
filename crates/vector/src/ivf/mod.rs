//! Inverted lists: an index of a column of vectors that lies in tables of the same file and transaction.
//!
//! ```text
//! nearest -> memory -> lists -> format          a search: the lists whose centroids are near, then the vectors that look near
//! maintain -> train, code, lists                a new row waits in the tail; a full tail goes into lists; a long list becomes two
//! ```
//!
//! What always holds: a row of the table is in the tail or in exactly one list, once there are lists; what is kept in memory belongs to one
//! state of the database. An answer has the distances of the vectors as they are stored: only which rows are looked at depends on the index.

mod check;
pub(crate) mod code;
pub(crate) mod format;
mod lists;
mod maintain;
mod memory;
mod nearest;
mod train;

pub(crate) use check::check;
pub(crate) use maintain::{added, command, create, forget_chunk, removed};
pub(crate) use memory::Kept;
pub(crate) use nearest::nearest;
pub(crate) use train::draw;

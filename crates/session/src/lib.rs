//! Changesets and patchsets (documentation page `sessionintro`): what has changed in tables, as bytes that other databases
//! can be changed with.
//!
//! A [`Recorder`] hears of each row before it is changed and remembers its key and what it was; from that and from what
//! the tables hold later it writes a changeset. A [`Reader`] goes through one, [`Group`] combines several, [`Rebaser`]
//! adapts one to what was decided about conflicts elsewhere, and [`apply`] changes a database by it.
//!
//! What always holds: the bytes are those that SQLite's own module reads and writes, the order of changes included; bytes
//! that are damaged are `SQLITE_CORRUPT`. The engine is known as an [`iolite_ext::Host`] alone: tables are read and changed by SQL.
#![forbid(unsafe_code)]

mod apply;
mod build;
mod change;
mod diff;
mod generate;
mod group;
mod input;
mod invert;
mod merge;
mod output;
mod reader;
mod rebase;
mod record;
mod recorder;
mod retry;
mod rows;
mod schema;
mod target;

pub use apply::{Applying, Conflict, Decision, apply, flags};
pub use change::{Change, Op, Table};
pub use group::Group;
pub use input::{Input, Source};
pub use invert::invert;
pub use output::{Output, Sink};
pub use reader::Reader;
pub use rebase::Rebaser;
pub use recorder::Recorder;

use iolite_base::{Code, Error};

/// Bytes that are no changeset.
fn corrupt() -> Error {
    Code::Corrupt.into()
}

/// A name in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

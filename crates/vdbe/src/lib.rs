//! The virtual machine: runs a program over registers and cursors.
//!
//! [`Vm`] is one run of one program. It sees root pages and records, never SQL; what it needs of the connection it asks
//! of an [`Env`]. `exec` is the interpreter's loop; `ops` holds what is too long to stand there.
#![forbid(unsafe_code)]

mod bloom;
mod cursor;
mod env;
mod exec;
mod hash;
mod least;
mod lookahead;
mod machine;
mod ops;
mod profile;
mod radix;
mod runs;
mod sorter;
mod window;

pub use env::{Env, RowBefore};
pub use iolite_ext::RowChange;
pub use machine::{Action, Counters, Outcome, Vm};
pub use profile::{Cost, Profile};

//! The ground floor: what every other crate speaks about.
//!
//! Result codes and the one error type ([`Error`]), reference-counted byte buffers shared by pages and
//! values ([`Buf`], [`Bytes`]), varints and big-endian reads, SQLite's limits, counted fallible
//! allocation, assertion macros and a fast hash. It knows nothing of files, SQL or pages' contents.
//!
//! `unsafe` lives in the modules `bytes`, `pool`, `slab` and `small_str` alone.
#![deny(unsafe_code)]

pub mod alloc;
pub mod be;
#[allow(unsafe_code)]
pub mod bytes;
mod encoding;
mod error;
mod few;
pub mod hash;
pub mod limits;
mod macros;
#[allow(unsafe_code)]
pub mod pool;
pub mod raw_text;
mod rows;
#[allow(unsafe_code)]
pub mod slab;
#[allow(unsafe_code)]
mod small_str;
pub mod varint;
#[allow(unsafe_code)]
mod zeroed;

pub use bytes::{Buf, Bytes, PageData};
pub use encoding::Encoding;
pub use error::{Code, Error, Result};
pub use few::Few;
pub use limits::{Limit, Limits};
pub use rows::Rows;
pub use small_str::{SmallStr, same_name};

/// A page number, counted from 1. Zero means "no page" (file format, section 1.5).
pub type Pgno = u32;

/// The `SQLITE_VERSION` whose behaviour is implemented.
pub const SQLITE_VERSION: &str = "3.53.4";
/// [`SQLITE_VERSION`] as one number: `major * 1_000_000 + minor * 1_000 + patch`.
pub const SQLITE_VERSION_NUMBER: u32 = 3_053_004;
/// iolite's own version.
pub const IOLITE_VERSION: &str = env!("CARGO_PKG_VERSION");

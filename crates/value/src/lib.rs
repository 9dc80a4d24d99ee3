//! Values and what SQLite says of them: storage classes, affinity, collation, comparison, records on disk,
//! conversions between numbers and text, and the arithmetic that both executors call.
//!
//! Everything here is a pure function of bytes and values. Text inside the engine is UTF-8 (or whatever bytes
//! the user claimed to be UTF-8); a UTF-16 database is transcoded where records are read and written.
#![forbid(unsafe_code)]

mod affinity;
pub mod arith;
pub mod collate;
pub mod compare;
pub mod num;
pub mod order;
mod pow10;
pub mod record;
pub mod utf16;
pub mod utf8;
mod value;

pub use affinity::Affinity;
pub use collate::{Collate, Collation, Custom};
pub use compare::KeyInfo;
pub use value::{POINTER, StorageClass, Value};

//! Conformance tools.
//!
//! [`slt`] reads and runs sqllogictest scripts; [`differ`] compares with stock SQLite on generated statements.
#![forbid(unsafe_code)]

pub mod differ;
pub mod slt;

//! Conformance tools.
//!
//! [`slt`] reads and runs sqllogictest scripts.
#![forbid(unsafe_code)]

pub mod slt;

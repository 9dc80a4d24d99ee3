//! The crash and fault simulator.
//!
//! A script of transactions runs on a [`disk`] that records every write and sync. For each moment of the
//! record the
//! [`image`]s that a power loss may leave are made, opened, recovered, checked for integrity, and their
//! content is compared with the states that `PRAGMA synchronous` allows ([`crash`]). Beside that, each call
//! to the disk and each counted allocation fails once, or from then on ([`fault`]). Several connections run
//! interleaved at every call to the disk, and die there ([`race`], [`baton`]). Tables of texts and vectors are searched, too, and must find
//! what a scan finds ([`searches`]). All choices hang on one seed.
//!
//! What it does not know: how the engine works. It sees files, SQL and result codes.

pub mod baton;
pub mod crash;
pub mod disk;
pub mod fault;
pub mod image;
pub mod race;
pub mod rng;
pub mod script;
pub mod searches;
pub mod state;

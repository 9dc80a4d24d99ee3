//! What a user of the Rust API sees.

mod journey;
mod records;
mod transactions;
mod writer;

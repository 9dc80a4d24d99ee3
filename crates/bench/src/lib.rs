//! What the benchmarks share: a small face of a database, iolite and stock SQLite behind it, the measured cases of the row
//! engine, the Star Schema Benchmark.
//!
//! Nothing here loads another engine; that is `bench-compare`. Random numbers come from fixed seeds.
#![forbid(unsafe_code)]

pub mod cases;
pub mod engine;
pub mod events;
pub mod random;
pub mod ssb;

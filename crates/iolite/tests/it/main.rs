//! What a user of the Rust API sees.

mod analyzing;
mod attached;
mod choices;
mod crossing;
mod doors;
mod functions;
mod journey;
mod large;
mod plans;
mod records;
mod scans;
mod searching;
mod sorting;
mod transactions;
mod trust;
mod writer;

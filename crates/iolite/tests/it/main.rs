//! What a user sees: of SQL, through the engine as tools have it, and of the Rust API (`api`, `writer`).

mod analyzing;
mod api;
mod attached;
mod choices;
mod crossing;
mod doors;
mod draw;
mod functions;
mod journey;
mod kept_search;
mod large;
mod nesting;
mod plans;
mod records;
mod scans;
mod searching;
mod seeks;
mod sorting;
mod transactions;
mod trust;
mod vectors;
mod vectors_graph;
mod vectors_index;
mod vtab_writes;
mod vtabs;
mod writer;

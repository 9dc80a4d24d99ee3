//! The quick share of the simulation.

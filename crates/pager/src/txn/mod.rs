//! Transactions: beginning, committing, taking back, savepoints.
//!
//! A pager is open, reads, or writes (`State`); each file here is the way from one state to the next.

mod commit;
mod read;
mod rollback;
mod write;

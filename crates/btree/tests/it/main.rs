//! Tests of the trees as their callers see them, and of the files against the sqlite3 shell where one is
//! installed.

mod append;
mod backups;
mod cache;
mod checkpointer;
mod crash;
mod damage;
mod files;
mod large;
mod lease;
mod lives;
mod model;
mod stock;
mod support;

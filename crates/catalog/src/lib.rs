//! The catalog: what a database contains, built from the rows of its schema table.
//!
//! Reads no file: rows are handed in ([`Schema::add_row`]), statistics too. A [`Schema`] is one database's;
//! [`Catalog`] is a connection's list of them, in which names are looked up in SQLite's order (temp before main
//! before attached ones).
#![forbid(unsafe_code)]

mod build;
mod names;
mod schema;
mod stat;
mod table;

pub use build::{
    check_column_count, constant_default, index_from_ast, stand_in, table_from_ast, trigger_from_ast,
    view_from_ast,
};
pub use schema::{Catalog, Schema, SchemaRow};
pub use stat::{DEFAULT_ROWS, IndexStat};
pub use table::{
    Check, Column, ColumnSource, DefaultValue, ForeignKey, Generated, Index, IndexColumn, IndexOrigin, Table,
    TableKind, Trigger, strict_type,
};

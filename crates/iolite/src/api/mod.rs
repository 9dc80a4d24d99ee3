//! The Rust API: the engine in types that a program can rely on, with the names and habits of `rusqlite`.
//!
//! What always holds: a [`Connection`] owns its engine alone, and whatever else is handed out borrows the connection or is a copy:
//! so a connection can move to another thread. `connection` says why that is sound, and is the only file with `unsafe`.
//!
//! It does not know SQL: what a statement means is the engine's.

mod aggregate;
mod authorizer;
mod backup;
mod blob;
mod connection;
mod function;
mod hooks;
mod interrupt;
mod named;
mod params;
mod pragma;
mod row;
mod statement;
mod transaction;
mod value;
mod value_from;
mod value_to;

pub use aggregate::{Aggregate, WindowAggregate};
pub use authorizer::{AuthAction, AuthContext, Authorization};
pub use backup::{Backup, Progress, StepResult};
pub use blob::Blob;
pub use connection::Connection;
pub use function::FunctionContext;
pub use hooks::Action;
pub use interrupt::InterruptHandle;
pub use params::{Params, ParamsFromIter, params_from_iter};
pub use row::{AndThenRows, MappedRows, OptionalExtension, Row, RowIndex, Rows};
pub use statement::{Column, Statement};
pub use transaction::{DropBehavior, Savepoint, Transaction, TransactionBehavior};
pub use value::{Type, Value, ValueRef};
pub use value_from::{FromSql, FromSqlError, FromSqlResult};
pub use value_to::{ToSql, ToSqlOutput};

//! ALTER TABLE.

use crate::connection::Connection;
use iolite_base::{Error, Result};
use iolite_bytecode::Program;
use iolite_sql::ast::AlterTable;

/// Compiles ALTER TABLE.
pub(crate) fn compile(_conn: &Connection, a: &AlterTable, _text: &str) -> Result<Program> {
    Err(Error::sql(format!("ALTER TABLE is not supported yet: {}", a.table.name.text)))
}

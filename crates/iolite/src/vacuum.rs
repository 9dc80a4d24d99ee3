//! VACUUM.

use crate::connection::Connection;
use iolite_base::{Error, Result};
use iolite_sql::ast::Expr;

/// Rebuilds a database.
pub(crate) fn vacuum(_c: &Connection, _schema: Option<&str>, _into: Option<&Expr>) -> Result<()> {
    Err(Error::sql("VACUUM is not supported yet"))
}

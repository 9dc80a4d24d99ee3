//! Names of databases, tables and pragmas as parts of SQL texts.

use iolite_base::{Error, Result};

/// `"database".`, or nothing for the default one.
pub(super) fn schema_prefix(database: Option<&str>) -> String {
    database.map_or(String::new(), |d| format!("{}.", quoted(d)))
}

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A pragma's name, which cannot be quoted.
pub(super) fn plain(name: &str) -> Result<&str> {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain { Ok(name) } else { Err(Error::sql(format!("not a pragma's name: {name}"))) }
}

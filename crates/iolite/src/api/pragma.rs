//! Pragmas by name and value.

use super::connection::Connection;
use super::named::{plain, quoted, schema_prefix};
use super::row::{Row, no_row};
use super::value::ValueRef;
use super::value_to::ToSql;
use iolite_base::{Error, Result};

impl Connection {
    /// The value of a pragma, as `f` reads it.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let n: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    /// assert_eq!(n, 4096);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn pragma_query_value<T, F>(&self, schema: Option<&str>, name: &str, f: F) -> Result<T>
    where
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        self.query_row(&pragma_text(schema, name, "")?, [], f)
    }

    /// Calls `f` for each row of a pragma.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut names = Vec::new();
    /// db.pragma_query(None, "database_list", |row| Ok(names.push(row.get::<_, String>("name")?)))?;
    /// assert_eq!(names, ["main"]);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn pragma_query<F>(&self, schema: Option<&str>, name: &str, f: F) -> Result<()>
    where
        F: FnMut(&Row<'_>) -> Result<()>,
    {
        self.each_row(&pragma_text(schema, name, "")?, f)
    }

    /// Calls `f` for each row of a pragma with an argument.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute("CREATE TABLE t(a, b)", [])?;
    /// let mut names = Vec::new();
    /// db.pragma(None, "table_info", "t", |row| Ok(names.push(row.get::<_, String>("name")?)))?;
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn pragma<F, V>(&self, schema: Option<&str>, name: &str, value: V, f: F) -> Result<()>
    where
        F: FnMut(&Row<'_>) -> Result<()>,
        V: ToSql,
    {
        self.each_row(&pragma_text(schema, name, &format!("({})", literal(value)?))?, f)
    }

    /// Sets a pragma; what it answers is dropped.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.pragma_update(None, "user_version", 7)?;
    /// assert_eq!(db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?, 7);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn pragma_update<V: ToSql>(&self, schema: Option<&str>, name: &str, value: V) -> Result<()> {
        self.each_row(&pragma_text(schema, name, &format!(" = {}", literal(value)?))?, |_| Ok(()))
    }

    /// Sets a pragma, and reads what it answers.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mode: String = db.pragma_update_and_check(None, "journal_mode", "OFF", |row| row.get(0))?;
    /// assert_eq!(mode, "off");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn pragma_update_and_check<T, F, V>(
        &self,
        schema: Option<&str>,
        name: &str,
        value: V,
        f: F,
    ) -> Result<T>
    where
        F: FnOnce(&Row<'_>) -> Result<T>,
        V: ToSql,
    {
        let mut s = self.prepare(&pragma_text(schema, name, &format!(" = {}", literal(value)?))?)?;
        let mut rows = s.query([])?;
        f(rows.next()?.ok_or_else(no_row)?)
    }

    fn each_row(&self, sql: &str, mut f: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut s = self.prepare(sql)?;
        let mut rows = s.query([])?;
        while let Some(row) = rows.next()? {
            f(row)?;
        }
        Ok(())
    }
}

fn pragma_text(schema: Option<&str>, name: &str, behind: &str) -> Result<String> {
    Ok(format!("PRAGMA {}{}{behind}", schema_prefix(schema), plain(name)?))
}

/// A value as a pragma takes it.
fn literal<V: ToSql>(value: V) -> Result<String> {
    match value.to_sql()?.get() {
        ValueRef::Integer(i) => Ok(i.to_string()),
        ValueRef::Real(r) => Ok(format!("{r:?}")),
        ValueRef::Text(t) => match std::str::from_utf8(t) {
            Ok(t) => Ok(quoted(t)),
            Err(_) => Err(Error::sql("a pragma's value must be UTF-8")),
        },
        ValueRef::Null | ValueRef::Blob(_) => Err(Error::sql("a pragma's value is a number or a text")),
    }
}

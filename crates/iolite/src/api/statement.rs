//! Prepared statements.

use super::connection::Connection;
use super::params::Params;
use super::row::{AndThenRows, MappedRows, Row, Rows, no_row};
use super::value_to::ToSql;
use crate::engine;
use iolite_base::{Code, Error, Result};

/// A prepared statement of a connection.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE t(a INTEGER)")?;
/// let mut insert = db.prepare("INSERT INTO t VALUES (?1)")?;
/// for a in 1..=10 {
///     insert.execute([a])?;
/// }
/// let sum: i64 = db.query_row("SELECT sum(a) FROM t", [], |row| row.get(0))?;
/// assert_eq!(sum, 55);
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Statement<'conn> {
    conn: &'conn Connection,
    /// What is read of it is borrowed from the statement, whatever this says.
    row: Row<'static>,
}

/// A result column.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE t(a INTEGER)")?;
/// let s = db.prepare("SELECT a AS b FROM t")?;
/// let c = &s.columns()[0];
/// assert_eq!((c.name(), c.decl_type(), c.origin()), ("b", Some("INTEGER"), Some(("main", "t", "a"))));
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Column<'stmt>(&'stmt engine::ColumnMeta);

impl<'stmt> Column<'stmt> {
    /// Its name.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a INTEGER)")?;
    /// assert_eq!(db.prepare("SELECT a AS b FROM t")?.columns()[0].name(), "b");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn name(&self) -> &'stmt str {
        &self.0.name
    }

    /// The declared type, for columns of tables.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a INTEGER)")?;
    /// assert_eq!(db.prepare("SELECT a, a + 1 FROM t")?.columns()[1].decl_type(), None);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn decl_type(&self) -> Option<&'stmt str> {
        self.0.decltype.as_deref()
    }

    /// Database, table and column that it comes from, if it is one.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a INTEGER)")?;
    /// assert_eq!(db.prepare("SELECT a AS b FROM t")?.columns()[0].origin(), Some(("main", "t", "a")));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn origin(&self) -> Option<(&'stmt str, &'stmt str, &'stmt str)> {
        self.0.origin.as_ref().map(|(d, t, c)| (&**d, &**t, &**c))
    }
}

impl<'conn> Statement<'conn> {
    pub(super) fn new(conn: &'conn Connection, stmt: engine::Statement) -> Statement<'conn> {
        Statement { conn, row: Row::new(stmt) }
    }

    pub(super) fn step(&mut self) -> Result<bool> {
        self.row.step(self.conn)
    }

    pub(super) fn reset(&mut self) -> Result<()> {
        self.row.reset(self.conn)
    }

    fn bind<P: Params>(&mut self, params: P) -> Result<()> {
        // Rows that were leaked have left it in the midst of a run.
        if self.row.stmt.is_busy() {
            self.reset()?;
        }
        params.bind_in(self)
    }

    /// Runs a statement that answers no rows; says how many rows it changed.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a)")?;
    /// assert_eq!(db.prepare("INSERT INTO t VALUES (?1), (?2)")?.execute((1, "x"))?, 2);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn execute<P: Params>(&mut self, params: P) -> Result<usize> {
        self.bind(params)?;
        let row = self.step();
        let ended = self.reset();
        if row? {
            return Err(Error::new(Code::Misuse, "the statement answers rows: query it"));
        }
        ended?;
        // What changes nothing leaves the count of the statement before it.
        Ok(if self.row.stmt.counts_changes() { self.conn.changes() as usize } else { 0 })
    }

    /// Runs an INSERT of one row; answers its rowid.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a)")?;
    /// assert_eq!(db.prepare("INSERT INTO t VALUES (?1)")?.insert(["x"])?, 1);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn insert<P: Params>(&mut self, params: P) -> Result<i64> {
        match self.execute(params)? {
            1 => Ok(self.conn.last_insert_rowid()),
            n => Err(Error::new(Code::Misuse, format!("the statement has changed {n} rows, not one"))),
        }
    }

    /// Runs a query; its rows are read one by one.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT ?1")?;
    /// let mut rows = s.query(["x"])?;
    /// assert_eq!(rows.next()?.unwrap().get::<_, String>(0)?, "x");
    /// assert!(rows.next()?.is_none());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query<P: Params>(&mut self, params: P) -> Result<Rows<'_>> {
        self.bind(params)?;
        Ok(Rows::new(self.conn, &mut self.row))
    }

    /// Runs a query; its rows come as `f` reads them.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("VALUES ('a', 1), ('b', 2)")?;
    /// let rows = s.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    /// let all: Vec<(String, i64)> = rows.collect::<Result<_, _>>()?;
    /// assert_eq!(all[1], ("b".to_string(), 2));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query_map<T, P, F>(&mut self, params: P, f: F) -> Result<MappedRows<'_, F>>
    where
        P: Params,
        F: FnMut(&Row<'_>) -> Result<T>,
    {
        Ok(self.query(params)?.mapped(f))
    }

    /// As [`Statement::query_map`], for a function with an error type of its own.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("VALUES ('1'), ('x')")?;
    /// let mut parsed = s.query_and_then([], |row| -> Result<i64, Box<dyn std::error::Error>> {
    ///     Ok(row.get::<_, String>(0)?.parse()?)
    /// })?;
    /// assert!(parsed.next().unwrap().is_ok() && parsed.next().unwrap().is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query_and_then<T, E, P, F>(&mut self, params: P, f: F) -> Result<AndThenRows<'_, F>>
    where
        P: Params,
        E: From<Error>,
        F: FnMut(&Row<'_>) -> Result<T, E>,
    {
        Ok(self.query(params)?.and_then(f))
    }

    /// The first row, as `f` reads it: see [`Connection::query_row`].
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT ?1 * 2")?;
    /// assert_eq!(s.query_row([4], |row| row.get::<_, i64>(0))?, 8);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn query_row<T, P, F>(&mut self, params: P, f: F) -> Result<T>
    where
        P: Params,
        F: FnOnce(&Row<'_>) -> Result<T>,
    {
        let mut rows = self.query(params)?;
        f(rows.next()?.ok_or_else(no_row)?)
    }

    /// Whether the query has a row.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert!(!db.prepare("SELECT 1 WHERE ?1")?.exists([false])?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn exists<P: Params>(&mut self, params: P) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    /// How many columns a row has.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let s = db.prepare("SELECT 1 AS a, 2 AS b")?;
    /// assert_eq!((s.column_count(), s.column_names(), s.column_index("B")?), (2, vec!["a", "b"], 1));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn column_count(&self) -> usize {
        self.row.stmt.column_count()
    }

    /// The columns' names.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.prepare("SELECT 1 AS a, 2 AS b")?.column_names(), ["a", "b"]);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn column_names(&self) -> Vec<&str> {
        self.row.stmt.columns().iter().map(|c| &*c.name).collect()
    }

    /// A column's name.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let s = db.prepare("SELECT 1 AS a")?;
    /// assert_eq!(s.column_name(0)?, "a");
    /// assert!(s.column_name(1).is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn column_name(&self, column: usize) -> Result<&str> {
        let name = self.row.stmt.column_name(column);
        name.ok_or_else(|| Error::new(Code::Range, format!("there is no column {column}")))
    }

    /// The number of the column with this name.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.prepare("SELECT 1 AS a, 2 AS b")?.column_index("b")?, 1);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn column_index(&self, name: &str) -> Result<usize> {
        self.row.column_index(name)
    }

    /// The columns.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a INTEGER)")?;
    /// for column in db.prepare("SELECT a FROM t")?.columns() {
    ///     println!("{} {:?}", column.name(), column.decl_type());
    /// }
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn columns(&self) -> Vec<Column<'_>> {
        self.row.stmt.columns().iter().map(Column).collect()
    }

    /// How many parameters there are.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let s = db.prepare("SELECT ?1, :name")?;
    /// assert_eq!((s.parameter_count(), s.parameter_name(2), s.parameter_index(":name")?), (2, Some(":name"), Some(2)));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn parameter_count(&self) -> usize {
        self.row.stmt.parameter_count()
    }

    /// A parameter's name with its leading sign, counted from 1.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.prepare("SELECT ?, $b")?.parameter_name(2), Some("$b"));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn parameter_name(&self, number: usize) -> Option<&str> {
        self.row.stmt.parameter_name(number)
    }

    /// The number of the parameter with this name, counted from 1.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.prepare("SELECT ?, $b")?.parameter_index("$b")?, Some(2));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn parameter_index(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.row.stmt.parameter_index(name))
    }

    /// Sets a parameter, counted from 1.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT ?1 || ?2")?;
    /// s.raw_bind_parameter(1, "a")?;
    /// s.raw_bind_parameter(2, "b")?;
    /// let mut rows = s.raw_query();
    /// assert_eq!(rows.next()?.unwrap().get::<_, String>(0)?, "ab");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn raw_bind_parameter<T: ToSql>(&mut self, number: usize, value: T) -> Result<()> {
        let value = value.to_sql()?;
        let all = self.row.stmt.bindings_mut()?;
        let place = number.checked_sub(1).and_then(|i| all.get_mut(i));
        value.get().store(place.ok_or_else(|| Error::from(Code::Range))?)
    }

    /// Runs a query with the parameters that are set.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT ?1")?;
    /// s.raw_bind_parameter(1, "x")?;
    /// assert_eq!(s.raw_query().next()?.unwrap().get::<_, String>(0)?, "x");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn raw_query(&mut self) -> Rows<'_> {
        Rows::new(self.conn, &mut self.row)
    }

    /// Sets all parameters to NULL.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("SELECT ?1 IS NULL")?;
    /// s.raw_bind_parameter(1, "x")?;
    /// s.clear_bindings();
    /// assert!(s.raw_query().next()?.unwrap().get::<_, bool>(0)?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn clear_bindings(&mut self) {
        self.row.stmt.clear_bindings();
    }

    /// Whether the statement leaves all database files as they are.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert!(db.prepare("SELECT 1")?.readonly());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn readonly(&self) -> bool {
        self.row.stmt.is_readonly()
    }

    /// The statement's text.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert_eq!(db.prepare("SELECT 1")?.sql(), "SELECT 1");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn sql(&self) -> &str {
        self.row.stmt.sql()
    }

    /// Ends the statement, and hears of an error while doing so; dropping it does not.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.prepare("SELECT 1")?.finalize()?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn finalize(mut self) -> Result<()> {
        self.reset()
    }
}

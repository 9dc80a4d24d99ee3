//! Rows, read lazily: a value is converted when it is asked for.

use super::connection::Connection;
use super::value::ValueRef;
use super::value_from::{FromSql, FromSqlError};
use crate::engine;
use iolite_base::{Code, Error, Result};
use std::marker::PhantomData;
use std::time::Instant;

/// The row that a statement stands on.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// db.query_row("SELECT 1 AS a, NULL AS b", [], |row| {
///     let a: i64 = row.get("a")?;
///     let b: Option<String> = row.get(1)?;
///     assert_eq!((a, b), (1, None));
///     assert!(row.get::<_, String>("a").is_err());
///     assert!(row.get::<_, i64>("c").is_err());
///     Ok(())
/// })?;
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Row<'stmt> {
    pub(super) stmt: engine::Statement,
    /// When the present run began, if somebody wants to know.
    began: Option<Instant>,
    statement: PhantomData<&'stmt ()>,
}

impl<'stmt> Row<'stmt> {
    pub(super) fn new(stmt: engine::Statement) -> Row<'stmt> {
        Row { stmt, began: None, statement: PhantomData }
    }

    /// Goes on to the next row; false at the end.
    pub(super) fn step(&mut self, conn: &Connection) -> Result<bool> {
        if !conn.traced.get() {
            return Ok(self.stmt.step()? == engine::Step::Row);
        }
        if !self.stmt.is_busy() {
            conn.tell_start(self.stmt.sql());
            self.began = Some(Instant::now());
        }
        let row = self.stmt.step();
        if !self.stmt.is_busy() {
            self.ended(conn);
        }
        Ok(row? == engine::Step::Row)
    }

    /// Ends the present run.
    pub(super) fn reset(&mut self, conn: &Connection) -> Result<()> {
        let done = self.stmt.reset();
        self.ended(conn);
        done
    }

    fn ended(&mut self, conn: &Connection) {
        if let Some(began) = self.began.take() {
            conn.tell_end(self.stmt.sql(), began.elapsed());
        }
    }

    /// The number of the column with this name.
    pub(super) fn column_index(&self, name: &str) -> Result<usize> {
        let at = self.stmt.columns().iter().position(|c| c.name.eq_ignore_ascii_case(name));
        at.ok_or_else(|| Error::new(Code::Range, format!("there is no column {name}")))
    }

    /// A column's value, by its number from 0 or its name.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let (a, b): (i64, Option<String>) =
    ///     db.query_row("SELECT 1, NULL AS b", [], |row| Ok((row.get(0)?, row.get("b")?)))?;
    /// assert_eq!((a, b), (1, None));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get<I: RowIndex, T: FromSql>(&self, column: I) -> Result<T> {
        let at = column.find(self)?;
        let value = self.value(at)?;
        T::column_result(value).map_err(|e| self.wrong(at, value, &e))
    }

    /// As [`Row::get`]; panics where that would fail.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let n: i64 = db.query_row("SELECT 1", [], |row| Ok(row.get_unwrap(0)))?;
    /// assert_eq!(n, 1);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_unwrap<I: RowIndex, T: FromSql>(&self, column: I) -> T {
        self.get(column).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A column's value where it is, by its number from 0 or its name.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let len = db.query_row("SELECT 'text'", [], |row| Ok(row.get_ref(0)?.as_bytes().unwrap().len()))?;
    /// assert_eq!(len, 4);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_ref<I: RowIndex>(&self, column: I) -> Result<ValueRef<'_>> {
        self.value(column.find(self)?)
    }

    /// As [`Row::get_ref`]; panics where that would fail.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// assert!(db.query_row("SELECT NULL", [], |row| Ok(row.get_ref_unwrap(0).is_null()))?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_ref_unwrap<I: RowIndex>(&self, column: I) -> ValueRef<'_> {
        self.get_ref(column).unwrap_or_else(|e| panic!("{e}"))
    }

    #[inline]
    fn value(&self, at: usize) -> Result<ValueRef<'_>> {
        let v = self.stmt.row().get(at);
        v.map(ValueRef::of).ok_or_else(|| Error::new(Code::Range, format!("there is no column {at}")))
    }

    #[cold]
    fn wrong(&self, at: usize, value: ValueRef<'_>, e: &FromSqlError) -> Error {
        let name = self.stmt.column_name(at).unwrap_or_default();
        let class = value.data_type();
        match e {
            FromSqlError::InvalidType => {
                Error::new(Code::Mismatch, format!("column {at}, {name}: {class} is not of the wanted type"))
            }
            other => Error::new(Code::Mismatch, format!("column {at}, {name}: {other}")),
        }
    }
}

/// What names a column: its number from 0, or its name, in which case of ASCII letters does not matter.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// let n: i64 = db.query_row("SELECT 5 AS Five", [], |row| row.get("five"))?;
/// assert_eq!(n, 5);
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait RowIndex: Copy {
    /// The column's number.
    fn find(self, row: &Row<'_>) -> Result<usize>;
}

impl RowIndex for usize {
    #[inline]
    fn find(self, _: &Row<'_>) -> Result<usize> {
        Ok(self)
    }
}

impl RowIndex for &str {
    fn find(self, row: &Row<'_>) -> Result<usize> {
        row.column_index(self)
    }
}

/// The error of a query that has no row, where one is wanted.
pub(super) fn no_row() -> Error {
    Error::new(Code::Done, "the query returned no rows")
}

/// Turns "no row" into `None`.
///
/// ```
/// use iolite::{Connection, OptionalExtension};
///
/// let db = Connection::open_in_memory()?;
/// let none: Option<i64> = db.query_row("SELECT 1 WHERE 0", [], |row| row.get(0)).optional()?;
/// assert_eq!(none, None);
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait OptionalExtension<T> {
    /// `None` instead of the error that there is no row.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(v) => Ok(Some(v)),
            Err(e) if e.code() == Code::Done => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// The rows of a query, one after the other. When it is dropped, the statement is reset.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// let mut s = db.prepare("SELECT 1 UNION ALL SELECT 2")?;
/// let mut rows = s.query([])?;
/// let mut sum = 0;
/// while let Some(row) = rows.next()? {
///     sum += row.get::<_, i64>(0)?;
/// }
/// assert_eq!(sum, 3);
/// # Ok::<(), iolite::Error>(())
/// ```
#[must_use = "rows are read lazily"]
pub struct Rows<'stmt> {
    conn: &'stmt Connection,
    /// None after the end.
    row: Option<&'stmt mut Row<'static>>,
}

impl<'stmt> Rows<'stmt> {
    pub(super) fn new(conn: &'stmt Connection, row: &'stmt mut Row<'static>) -> Rows<'stmt> {
        Rows { conn, row: Some(row) }
    }

    /// The next row; `None` at the end.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("VALUES (1), (2)")?;
    /// let mut rows = s.query([])?;
    /// while let Some(row) = rows.next()? {
    ///     println!("{}", row.get::<_, i64>(0)?);
    /// }
    /// # Ok::<(), iolite::Error>(())
    /// ```
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<&Row<'stmt>>> {
        let Some(row) = &mut self.row else { return Ok(None) };
        if row.step(self.conn)? {
            return Ok(self.row.as_deref().map(|row| row as &Row<'stmt>));
        }
        self.end()?;
        Ok(None)
    }

    /// The rest of the rows, as `f` reads them.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("VALUES (1), (2)")?;
    /// let all: Vec<i64> = s.query([])?.mapped(|row| row.get(0)).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [1, 2]);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn mapped<T, F: FnMut(&Row<'_>) -> Result<T>>(self, f: F) -> MappedRows<'stmt, F> {
        MappedRows { rows: self, f }
    }

    /// As [`Rows::mapped`], for a function with an error type of its own.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let mut s = db.prepare("VALUES ('1'), ('2')")?;
    /// let read = |row: &iolite::Row<'_>| -> Result<i64, Box<dyn std::error::Error>> {
    ///     Ok(row.get::<_, String>(0)?.parse()?)
    /// };
    /// let all: Vec<i64> = s.query([])?.and_then(read).collect::<Result<_, _>>().unwrap();
    /// assert_eq!(all, [1, 2]);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn and_then<T, E, F>(self, f: F) -> AndThenRows<'stmt, F>
    where
        F: FnMut(&Row<'_>) -> Result<T, E>,
        E: From<Error>,
    {
        AndThenRows { rows: self, f }
    }

    fn end(&mut self) -> Result<()> {
        self.row.take().map_or(Ok(()), |row| row.reset(self.conn))
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // Whatever goes wrong at this point, the next use of the connection reports.
        let _ = self.end();
    }
}

/// The rows of a query as a function reads them: see [`Rows::mapped`] and [`Statement::query_map`](crate::Statement::query_map).
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// let mut s = db.prepare("VALUES (1), (2)")?;
/// for n in s.query_map([], |row| row.get::<_, i64>(0))? {
///     println!("{}", n?);
/// }
/// # Ok::<(), iolite::Error>(())
/// ```
#[must_use = "rows are read lazily"]
pub struct MappedRows<'stmt, F> {
    rows: Rows<'stmt>,
    f: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let f = &mut self.f;
        self.rows.next().transpose().map(|row| row.and_then(f))
    }
}

/// As [`MappedRows`], for a function with an error type of its own.
///
/// ```
/// # let db = iolite::Connection::open_in_memory()?;
/// let mut s = db.prepare("VALUES ('1'), ('2')")?;
/// let parsed = s.query_and_then([], |row| -> Result<i64, Box<dyn std::error::Error>> {
///     Ok(row.get::<_, String>(0)?.parse()?)
/// })?;
/// assert_eq!(parsed.map(Result::unwrap).sum::<i64>(), 3);
/// # Ok::<(), iolite::Error>(())
/// ```
#[must_use = "rows are read lazily"]
pub struct AndThenRows<'stmt, F> {
    rows: Rows<'stmt>,
    f: F,
}

impl<T, E: From<Error>, F: FnMut(&Row<'_>) -> Result<T, E>> Iterator for AndThenRows<'_, F> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        let f = &mut self.f;
        self.rows.next().transpose().map(|row| row.map_err(E::from).and_then(f))
    }
}

//! From SQL to Rust.

use super::value::{Type, Value, ValueRef};
use std::fmt;

/// Why a value is not what a program wants.
///
/// ```
/// # use iolite::{FromSql, FromSqlError, ValueRef};
/// assert!(matches!(u8::column_result(ValueRef::Integer(300)), Err(FromSqlError::OutOfRange(300))));
/// assert!(matches!(i64::column_result(ValueRef::Text(b"1")), Err(FromSqlError::InvalidType)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FromSqlError {
    /// The storage class is another one.
    InvalidType,
    /// The integer does not fit.
    OutOfRange(i64),
    /// The text is not UTF-8.
    Utf8,
    /// The blob has another size.
    InvalidBlobSize {
        /// As wanted.
        expected_size: usize,
        /// As it is.
        blob_size: usize,
    },
    /// Something else.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl FromSqlError {
    /// Something else.
    ///
    /// ```
    /// let e = iolite::FromSqlError::other("no colour");
    /// assert_eq!(e.to_string(), "no colour");
    /// ```
    pub fn other(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FromSqlError {
        FromSqlError::Other(e.into())
    }
}

impl fmt::Display for FromSqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromSqlError::InvalidType => write!(f, "invalid type"),
            FromSqlError::OutOfRange(i) => write!(f, "the value {i} is out of range"),
            FromSqlError::Utf8 => write!(f, "the text is not UTF-8"),
            FromSqlError::InvalidBlobSize { expected_size, blob_size } => {
                write!(f, "the blob has {blob_size} bytes, not {expected_size}")
            }
            FromSqlError::Other(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for FromSqlError {}

/// What [`FromSql::column_result`] answers.
///
/// ```
/// let r: iolite::FromSqlResult<i64> = iolite::ValueRef::Integer(1).as_i64();
/// assert_eq!(r.unwrap(), 1);
/// ```
pub type FromSqlResult<T> = std::result::Result<T, FromSqlError>;

/// A type that a column, or an argument of a function, can be read as. Storage classes are not converted: a text is no number.
///
/// ```
/// use iolite::{Connection, FromSql, FromSqlError, FromSqlResult, ValueRef};
///
/// #[derive(PartialEq, Debug)]
/// enum Colour { Red, Green }
///
/// impl FromSql for Colour {
///     fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
///         match value.as_str()? {
///             "red" => Ok(Colour::Red),
///             "green" => Ok(Colour::Green),
///             other => Err(FromSqlError::other(format!("{other} is no colour"))),
///         }
///     }
/// }
///
/// let db = Connection::open_in_memory()?;
/// assert_eq!(db.query_row("SELECT 'red'", [], |row| row.get::<_, Colour>(0))?, Colour::Red);
/// let e = db.query_row("SELECT 'blue' AS c", [], |row| row.get::<_, Colour>("c")).unwrap_err();
/// assert_eq!(e.message(), "column 0, c: blue is no colour");
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait FromSql: Sized {
    /// Reads a value.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

impl<'a> ValueRef<'a> {
    /// The integer.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert_eq!(ValueRef::Integer(1).as_i64().unwrap(), 1);
    /// ```
    pub fn as_i64(self) -> FromSqlResult<i64> {
        match self {
            ValueRef::Integer(i) => Ok(i),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    /// The number.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert_eq!(ValueRef::Integer(1).as_f64().unwrap(), 1.0);
    /// ```
    pub fn as_f64(self) -> FromSqlResult<f64> {
        match self {
            ValueRef::Real(r) => Ok(r),
            ValueRef::Integer(i) => Ok(i as f64),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    /// The text, which must be UTF-8.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert!(ValueRef::Text(b"\xff").as_str().is_err());
    /// ```
    pub fn as_str(self) -> FromSqlResult<&'a str> {
        match self {
            ValueRef::Text(t) => std::str::from_utf8(t).map_err(|_| FromSqlError::Utf8),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    /// The blob.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert_eq!(ValueRef::Blob(b"\xff").as_blob().unwrap(), [255]);
    /// ```
    pub fn as_blob(self) -> FromSqlResult<&'a [u8]> {
        match self {
            ValueRef::Blob(b) => Ok(b),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    /// The bytes of a text or blob.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert_eq!(ValueRef::Text(b"\xff").as_bytes().unwrap(), [255]);
    /// ```
    pub fn as_bytes(self) -> FromSqlResult<&'a [u8]> {
        match self {
            ValueRef::Text(b) | ValueRef::Blob(b) => Ok(b),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    /// Whether it is NULL.
    ///
    /// ```
    /// # use iolite::ValueRef;
    /// assert!(ValueRef::Null.is_null());
    /// ```
    pub fn is_null(self) -> bool {
        self.data_type() == Type::Null
    }
}

macro_rules! integers {
    ($($t:ty),*) => {
        $(impl FromSql for $t {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let i = value.as_i64()?;
                <$t>::try_from(i).map_err(|_| FromSqlError::OutOfRange(i))
            }
        })*
    };
}

integers!(i8, i16, i32, i64, isize, i128, u8, u16, u32, u64, usize, u128);

impl FromSql for bool {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|i| i != 0)
    }
}

impl FromSql for f64 {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_f64()
    }
}

impl FromSql for f32 {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_f64().map(|r| r as f32)
    }
}

macro_rules! texts {
    ($($t:ty),*) => {
        $(impl FromSql for $t {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str().map(Into::into)
            }
        })*
    };
}

texts!(String, Box<str>, std::rc::Rc<str>, std::sync::Arc<str>);

impl FromSql for Vec<u8> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

impl<const N: usize> FromSql for [u8; N] {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let b = value.as_blob()?;
        b.try_into().map_err(|_| FromSqlError::InvalidBlobSize { expected_size: N, blob_size: b.len() })
    }
}

impl<T: FromSql> FromSql for Option<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if value.is_null() { Ok(None) } else { T::column_result(value).map(Some) }
    }
}

impl FromSql for Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(i) => Value::Integer(i),
            ValueRef::Real(r) => Value::Real(r),
            ValueRef::Text(_) => Value::Text(value.as_str()?.into()),
            ValueRef::Blob(b) => Value::Blob(b.into()),
        })
    }
}

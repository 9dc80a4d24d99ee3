//! From Rust to SQL.

use super::value::{Value, ValueRef};
use iolite_base::{Code, Error, Result};

/// What a [`ToSql`] answers.
///
/// ```
/// # use iolite::{ToSql, ToSqlOutput, ValueRef};
/// assert_eq!("abc".to_sql()?, ToSqlOutput::Borrowed(ValueRef::Text(b"abc")));
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToSqlOutput<'a> {
    /// A value that lies where it was.
    Borrowed(ValueRef<'a>),
    /// A value that was made.
    Owned(Value),
}

impl<'a> ToSqlOutput<'a> {
    pub(super) fn get(&self) -> ValueRef<'_> {
        match self {
            ToSqlOutput::Borrowed(v) => *v,
            ToSqlOutput::Owned(v) => v.into(),
        }
    }
}

impl<'a, T: Into<Value>> From<T> for ToSqlOutput<'a> {
    fn from(v: T) -> Self {
        ToSqlOutput::Owned(v.into())
    }
}

/// A type that can be a parameter, or the result of a function.
///
/// ```
/// use iolite::{Connection, Result, ToSql, ToSqlOutput};
///
/// struct Celsius(f64);
///
/// impl ToSql for Celsius {
///     fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
///         Ok(self.0.into())
///     }
/// }
///
/// let db = Connection::open_in_memory()?;
/// let doubled: f64 = db.query_row("SELECT ?1 * 2", [Celsius(10.5)], |row| row.get(0))?;
/// assert_eq!(doubled, 21.0);
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait ToSql {
    /// The value.
    fn to_sql(&self) -> Result<ToSqlOutput<'_>>;
}

macro_rules! copied {
    ($($t:ty),*) => {
        $(impl ToSql for $t {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Owned((*self).into()))
            }
        })*
    };
}

copied!(bool, i8, i16, i32, i64, u8, u16, u32, f32, f64);

macro_rules! wide {
    ($($t:ty),*) => {
        $(impl ToSql for $t {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                let n = i64::try_from(*self);
                let n = n.map_err(|_| Error::new(Code::Mismatch, format!("{self} is no 64-bit signed integer")))?;
                Ok(ToSqlOutput::Owned(Value::Integer(n)))
            }
        })*
    };
}

wide!(u64, usize, isize, i128, u128);

macro_rules! borrowed {
    ($($t:ty => |$v:ident| $e:expr;)*) => {
        $(impl ToSql for $t {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                let $v = self;
                Ok(ToSqlOutput::Borrowed($e))
            }
        })*
    };
}

borrowed! {
    str => |v| v.into();
    String => |v| v.as_str().into();
    [u8] => |v| v.into();
    Vec<u8> => |v| v.as_slice().into();
    Value => |v| v.into();
    ValueRef<'_> => |v| *v;
    () => |_v| ValueRef::Null;
}

impl<const N: usize> ToSql for [u8; N] {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_slice().into()))
    }
}

impl<T: ToSql> ToSql for Option<T> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Some(v) => v.to_sql(),
            None => Ok(ToSqlOutput::Borrowed(ValueRef::Null)),
        }
    }
}

macro_rules! through {
    ($($t:ty),*) => {
        $(impl<T: ToSql + ?Sized> ToSql for $t {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                (**self).to_sql()
            }
        })*
    };
}

through!(&T, &mut T, Box<T>, std::rc::Rc<T>, std::sync::Arc<T>);

impl<T: ToSql + ToOwned + ?Sized> ToSql for std::borrow::Cow<'_, T> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        (**self).to_sql()
    }
}

impl ToSql for ToSqlOutput<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.get()))
    }
}

//! Values as programs have them: owned, or borrowed from the row where they are.

use iolite_base::Result;
use iolite_value::Value as Engine;

/// A value of one of SQLite's five storage classes, with bytes of its own.
///
/// ```
/// # use iolite::{Connection, Value};
/// let db = Connection::open_in_memory()?;
/// let v: Value = db.query_row("SELECT 'abc'", [], |row| row.get(0))?;
/// assert_eq!(v, Value::Text("abc".into()));
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// NULL.
    #[default]
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// An IEEE double.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A value where it is stored. Text is bytes, which need not be UTF-8.
///
/// ```
/// # use iolite::{Connection, ValueRef};
/// let db = Connection::open_in_memory()?;
/// db.query_row("SELECT x'00ff'", [], |row| {
///     assert_eq!(row.get_ref(0)?, ValueRef::Blob(&[0, 255]));
///     Ok(())
/// })?;
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// NULL.
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// An IEEE double.
    Real(f64),
    /// Text, in UTF-8 unless it was stored otherwise.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// The storage classes.
///
/// ```
/// # use iolite::{Type, Value};
/// assert_eq!(Value::Integer(1).data_type().to_string(), "Integer");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Type {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

impl Value {
    /// The storage class.
    ///
    /// ```
    /// # use iolite::{Type, Value};
    /// assert_eq!(Value::from("text").data_type(), Type::Text);
    /// ```
    pub fn data_type(&self) -> Type {
        ValueRef::from(self).data_type()
    }
}

impl<'a> ValueRef<'a> {
    pub(crate) fn of(v: &'a Engine) -> ValueRef<'a> {
        match v {
            Engine::Null => ValueRef::Null,
            Engine::Int(i) => ValueRef::Integer(*i),
            Engine::Real(r) => ValueRef::Real(*r),
            Engine::Text(b, _) => ValueRef::Text(b),
            Engine::Blob(b, _) => ValueRef::Blob(b),
        }
    }

    /// Writes a copy to where the engine has a value, whose memory can take the next text.
    pub(super) fn store(self, to: &mut Engine) -> Result<()> {
        match self {
            ValueRef::Text(t) => to.set_text(t)?,
            ValueRef::Null => *to = Engine::Null,
            ValueRef::Integer(i) => *to = Engine::Int(i),
            ValueRef::Real(r) => *to = Engine::real(r),
            ValueRef::Blob(b) => *to = Engine::blob(b)?,
        }
        Ok(())
    }

    /// The storage class.
    ///
    /// ```
    /// # use iolite::{Type, ValueRef};
    /// assert_eq!(ValueRef::Blob(b"").data_type(), Type::Blob);
    /// ```
    pub fn data_type(self) -> Type {
        match self {
            ValueRef::Null => Type::Null,
            ValueRef::Integer(_) => Type::Integer,
            ValueRef::Real(_) => Type::Real,
            ValueRef::Text(_) => Type::Text,
            ValueRef::Blob(_) => Type::Blob,
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(v: &'a Value) -> ValueRef<'a> {
        match v {
            Value::Null => ValueRef::Null,
            Value::Integer(i) => ValueRef::Integer(*i),
            Value::Real(r) => ValueRef::Real(*r),
            Value::Text(t) => ValueRef::Text(t.as_bytes()),
            Value::Blob(b) => ValueRef::Blob(b),
        }
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(t: &'a str) -> ValueRef<'a> {
        ValueRef::Text(t.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for ValueRef<'a> {
    fn from(b: &'a [u8]) -> ValueRef<'a> {
        ValueRef::Blob(b)
    }
}

macro_rules! from {
    ($($t:ty => |$v:ident| $e:expr;)*) => {
        $(impl From<$t> for Value {
            fn from($v: $t) -> Value {
                $e
            }
        })*
    };
}

from! {
    bool => |v| Value::Integer(v as i64);
    i8 => |v| Value::Integer(v as i64);
    i16 => |v| Value::Integer(v as i64);
    i32 => |v| Value::Integer(v as i64);
    i64 => |v| Value::Integer(v);
    u8 => |v| Value::Integer(v as i64);
    u16 => |v| Value::Integer(v as i64);
    u32 => |v| Value::Integer(v as i64);
    f32 => |v| Value::Real(v as f64);
    f64 => |v| Value::Real(v);
    String => |v| Value::Text(v);
    &str => |v| Value::Text(v.into());
    Vec<u8> => |v| Value::Blob(v);
    &[u8] => |v| Value::Blob(v.into());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}

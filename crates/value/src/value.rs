use iolite_base::{Buf, Bytes, Encoding, Result};
use std::borrow::Cow;

/// A value of one of SQLite's five storage classes (documentation page `datatype3`).
///
/// Text and blobs are counted runs of bytes, so a clone copies no content; they may lie in a page that they
/// pin. The small number beside them is the subtype (`sqlite3_value_subtype`), 0 for none.
#[derive(Default, Debug)]
pub enum Value {
    /// NULL.
    #[default]
    Null,
    /// A signed 64-bit integer.
    Int(i64),
    /// An IEEE double; never NaN (NaN becomes NULL, see [`Value::real`]).
    Real(f64),
    /// Text in UTF-8, not checked.
    Text(Bytes, u8),
    /// Bytes.
    Blob(Bytes, u8),
}

const _: () = assert!(size_of::<Value>() == 24);

impl Clone for Value {
    #[inline]
    fn clone(&self) -> Value {
        match self {
            Value::Null => Value::Null,
            Value::Int(i) => Value::Int(*i),
            Value::Real(r) => Value::Real(*r),
            Value::Text(b, s) => Value::Text(b.clone(), *s),
            Value::Blob(b, s) => Value::Blob(b.clone(), *s),
        }
    }

    /// Each class is written where it stays. A value that is made elsewhere and moved has its unused bytes moved, too, in words that
    /// overlap, and a load of two stores at once waits for both: 12 cycles a value on an Intel processor.
    #[inline]
    fn clone_from(&mut self, from: &Value) {
        match (from, &mut *self) {
            (Value::Int(i), Value::Int(to)) => *to = *i,
            (Value::Int(i), to) => *to = Value::Int(*i),
            (Value::Null, to) => *to = Value::Null,
            (Value::Real(r), to) => *to = Value::Real(*r),
            (Value::Text(b, s), to) => *to = Value::Text(b.clone(), *s),
            (Value::Blob(b, s), to) => *to = Value::Blob(b.clone(), *s),
        }
    }
}

/// The storage classes, in the order in which values of different classes sort.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum StorageClass {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

impl StorageClass {
    /// The name as `typeof()` gives it.
    pub fn name(self) -> &'static str {
        match self {
            StorageClass::Null => "null",
            StorageClass::Integer => "integer",
            StorageClass::Real => "real",
            StorageClass::Text => "text",
            StorageClass::Blob => "blob",
        }
    }
}

/// The subtype of blobs that stand for pointers of the program (documentation page `bindptr`): they go as arguments into
/// functions of the user and virtual tables, and are NULL to everybody else.
pub const POINTER: u8 = b'p';

impl Value {
    /// Text, copied.
    #[inline]
    pub fn text(s: impl AsRef<[u8]>) -> Result<Value> {
        Ok(Value::Text(Bytes::copy_of(s.as_ref())?, 0))
    }

    /// Makes this value a text, copied into the memory that it has, if nobody else holds it and it is not large.
    #[inline]
    pub fn set_text(&mut self, s: &[u8]) -> Result<()> {
        if let Value::Text(b, subtype) = self
            && b.refill(s)
        {
            *subtype = 0;
            return Ok(());
        }
        *self = Value::Text(self.own_copy(s)?, 0);
        Ok(())
    }

    /// As [`Value::set_text`], for a blob.
    pub fn set_blob(&mut self, b: &[u8]) -> Result<()> {
        if let Value::Blob(own, subtype) = self
            && own.refill(b)
        {
            *subtype = 0;
            return Ok(());
        }
        *self = Value::Blob(self.own_copy(b)?, 0);
        Ok(())
    }

    /// A copy of `s`, in the memory of the text or blob that the value was if that is large enough and nobody else's.
    fn own_copy(&mut self, s: &[u8]) -> Result<Bytes> {
        let own = match std::mem::take(self) {
            Value::Text(b, _) | Value::Blob(b, _) => b.into_buf().spare(),
            _ => None,
        };
        let b = match own {
            Some(mut b) if b.capacity() >= s.len() => {
                b.reuse(s.len())?;
                b.push(s);
                b
            }
            _ => Buf::copy_of(s)?,
        };
        Ok(b.into_bytes())
    }

    /// A blob, copied.
    #[inline]
    pub fn blob(b: &[u8]) -> Result<Value> {
        Ok(Value::Blob(Bytes::copy_of(b)?, 0))
    }

    /// A real, or NULL for NaN.
    #[inline]
    pub fn real(r: f64) -> Value {
        if r.is_nan() { Value::Null } else { Value::Real(r) }
    }

    /// 1 or 0.
    #[inline]
    pub fn bool(b: bool) -> Value {
        Value::Int(b as i64)
    }

    /// The storage class.
    #[inline]
    pub fn class(&self) -> StorageClass {
        match self {
            Value::Null => StorageClass::Null,
            Value::Int(_) => StorageClass::Integer,
            Value::Real(_) => StorageClass::Real,
            Value::Text(..) => StorageClass::Text,
            Value::Blob(..) => StorageClass::Blob,
        }
    }

    /// Whether this is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The bytes of text or blob.
    #[inline]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Value::Text(b, _) | Value::Blob(b, _) => Some(b),
            _ => None,
        }
    }

    /// The subtype.
    pub fn subtype(&self) -> u8 {
        match self {
            Value::Text(_, s) | Value::Blob(_, s) => *s,
            _ => 0,
        }
    }

    /// The value with this subtype, if it is text or a blob.
    #[inline]
    pub fn with_subtype(self, subtype: u8) -> Value {
        match self {
            Value::Text(b, _) => Value::Text(b, subtype),
            Value::Blob(b, _) => Value::Blob(b, subtype),
            other => other,
        }
    }

    /// Forgets the subtype.
    pub fn clear_subtype(&mut self) {
        if let Value::Text(_, s) | Value::Blob(_, s) = self {
            *s = 0;
        }
    }

    /// The value as text, as `CAST(v AS TEXT)` gives it; NULL stays NULL. Text and blobs are not copied.
    #[inline]
    pub fn to_text(&self) -> Result<Value> {
        Ok(match self {
            Value::Null => Value::Null,
            Value::Text(b, s) => Value::Text(b.clone(), *s),
            Value::Blob(b, _) => Value::Text(b.clone(), 0),
            number => Value::text(number.lent_text(&mut [0; 32]))?,
        })
    }

    /// As [`Value::text_bytes`], lent: the text of a number is written into `room`.
    #[inline]
    pub fn lent_text<'a>(&'a self, room: &'a mut crate::num::RealBuf) -> &'a [u8] {
        match self {
            Value::Null => b"",
            Value::Text(b, _) | Value::Blob(b, _) => b,
            Value::Int(i) => crate::num::int_text(*i, room),
            Value::Real(r) => crate::num::lent_real_text(*r, room),
        }
    }

    /// The value's text bytes: what a function that wants a string sees. Empty for NULL.
    #[inline]
    pub fn text_bytes(&self) -> Result<Bytes> {
        match self {
            Value::Text(b, _) | Value::Blob(b, _) => Ok(b.clone()),
            _ => match self.to_text()? {
                Value::Text(b, _) => Ok(b),
                _ => Bytes::copy_of(b""),
            },
        }
    }

    /// As [`Value::text_bytes`], in a database of texts in `enc`: a blob's bytes are read in that encoding.
    pub fn text_bytes_in(&self, enc: Encoding) -> Result<Bytes> {
        match self {
            Value::Blob(b, _) if enc != Encoding::Utf8 => crate::utf16::decode(b, enc),
            _ => self.text_bytes(),
        }
    }

    /// The value, or where it is a blob the text that its bytes are in a database of texts in `enc`.
    pub fn blob_as_text(&self, enc: Encoding) -> Result<Value> {
        Ok(match self {
            Value::Blob(..) => Value::Text(self.text_bytes_in(enc)?, 0),
            _ => self.clone(),
        })
    }

    /// The value, or where it is a blob in a database of texts in `enc`, the blob that spells the same text in UTF-8:
    /// what is read of it as a number is then that text's.
    pub fn blob_in_utf8(&self, enc: Encoding) -> Result<Value> {
        Ok(match self {
            Value::Blob(..) => Value::Blob(self.text_bytes_in(enc)?, 0),
            _ => self.clone(),
        })
    }

    /// The bytes of a blob, or of the text that the value is, in `enc`, which is one of UTF-16.
    pub(crate) fn bytes_in(&self, enc: Encoding) -> Result<Vec<u8>> {
        Ok(match self {
            Value::Blob(b, _) => b.to_vec(),
            _ => crate::utf16::encode(&self.text_bytes()?, enc),
        })
    }

    /// The value's text as a Rust string, invalid bytes replaced.
    pub fn to_string_lossy(&self) -> String {
        self.text_lossy().into_owned()
    }

    /// As [`Value::text_lossy`], but invalid bytes are carried along (`iolite_base::raw_text`): for SQL text and names.
    pub fn text_carried(&self) -> Cow<'_, str> {
        match self {
            Value::Text(b, _) | Value::Blob(b, _) => iolite_base::raw_text::encode(b),
            other => other.text_lossy(),
        }
    }

    /// As [`Value::to_string_lossy`]; text that is valid is lent.
    pub fn text_lossy(&self) -> Cow<'_, str> {
        match self {
            Value::Null => "".into(),
            Value::Int(i) => i.to_string().into(),
            Value::Real(r) => crate::num::real_text(*r).into(),
            Value::Text(b, _) | Value::Blob(b, _) => String::from_utf8_lossy(b),
        }
    }

    /// The value as an integer, as `CAST(v AS INTEGER)` gives it; NULL is 0.
    #[inline]
    pub fn to_int(&self) -> i64 {
        match self {
            Value::Null => 0,
            Value::Int(i) => *i,
            Value::Real(r) => crate::num::real_to_int(*r),
            Value::Text(b, _) | Value::Blob(b, _) => crate::num::text_to_int(b),
        }
    }

    /// The value as a real, as `CAST(v AS REAL)` gives it; NULL is 0.0.
    #[inline]
    pub fn to_real(&self) -> f64 {
        match self {
            Value::Null => 0.0,
            Value::Int(i) => *i as f64,
            Value::Real(r) => *r,
            Value::Text(b, _) | Value::Blob(b, _) => {
                let p = crate::num::prefix(b);
                match p.number {
                    // The sign of a zero is kept, if there is a zero.
                    crate::num::Number::Int(0) if p.any && b.trim_ascii_start().first() == Some(&b'-') => {
                        -0.0
                    }
                    n => n.to_real(),
                }
            }
        }
    }

    /// Truth as `WHERE` sees it: `None` for NULL.
    #[inline]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Null => None,
            Value::Int(i) => Some(*i != 0),
            Value::Real(r) => Some(*r != 0.0),
            Value::Text(..) | Value::Blob(..) => Some(self.to_real() != 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_the_memory_of_the_last_one_unless_it_is_held() {
        let at = |v: &Value| match v {
            Value::Text(b, _) => b.as_ptr(),
            _ => std::ptr::null(),
        };
        let mut v = Value::Int(1);
        v.set_text(b"first").unwrap();
        let first = at(&v);
        v.set_text(b"2nd").unwrap();
        assert_eq!((at(&v), v.to_string_lossy().as_str()), (first, "2nd"));
        let held = v.clone();
        v.set_text(b"third").unwrap();
        assert_ne!(at(&v), first);
        assert_eq!((held.to_string_lossy(), v.to_string_lossy()), ("2nd".into(), "third".into()));
        // A part of a buffer that others hold parts of, and one that is too small.
        let whole = Value::text("whole").unwrap();
        let Value::Text(b, _) = &whole else { unreachable!() };
        let mut part = Value::Blob(b.slice(1, 3), 0);
        part.set_text(b"xyz").unwrap();
        assert_eq!((whole.to_string_lossy(), part.to_string_lossy()), ("whole".into(), "xyz".into()));
        let long = "l".repeat(10_000);
        for text in [long.as_bytes(), b"", b"s"] {
            v.set_text(text).unwrap();
            assert!(matches!(&v, Value::Text(b, 0) if **b == *text));
        }
    }
}

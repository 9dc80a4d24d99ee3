use crate::Value;
use crate::num::{self, Number};
use iolite_base::Result;

/// Column affinity (documentation page `datatype3`, section 3), with SQLite's letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Affinity {
    /// No affinity at all: an expression that is no column.
    #[default]
    None = b'@',
    Blob = b'A',
    Text = b'B',
    Numeric = b'C',
    Integer = b'D',
    Real = b'E',
    /// A view's or subquery's numeric result: text stays text, but comparison is numeric.
    Flexnum = b'F',
}

impl Affinity {
    /// The affinity of a declared type, by the five rules of `datatype3`, section 3.1.
    pub fn of_type(declared: &str) -> Affinity {
        if declared.is_empty() {
            return Affinity::Blob;
        }
        let has =
            |w: &str| declared.as_bytes().windows(w.len()).any(|x| x.eq_ignore_ascii_case(w.as_bytes()));
        if has("INT") {
            Affinity::Integer
        } else if has("CHAR") || has("CLOB") || has("TEXT") {
            Affinity::Text
        } else if has("BLOB") {
            Affinity::Blob
        } else if has("REAL") || has("FLOA") || has("DOUB") {
            Affinity::Real
        } else {
            Affinity::Numeric
        }
    }

    /// NUMERIC, INTEGER, REAL or FLEXNUM.
    #[inline]
    pub fn is_numeric(self) -> bool {
        self >= Affinity::Numeric
    }

    /// The letter, as EXPLAIN prints it.
    pub fn letter(self) -> char {
        self as u8 as char
    }

    /// The affinity with the given letter; anything else is [`Affinity::None`].
    pub fn from_letter(b: u8) -> Affinity {
        match b {
            b'A' => Affinity::Blob,
            b'B' => Affinity::Text,
            b'C' => Affinity::Numeric,
            b'D' => Affinity::Integer,
            b'E' => Affinity::Real,
            b'F' => Affinity::Flexnum,
            _ => Affinity::None,
        }
    }

    /// Applies the affinity to a value on its way into a column or a comparison.
    #[inline(always)]
    pub fn apply(self, v: &mut Value) -> Result<()> {
        match (self, &*v) {
            (Affinity::None | Affinity::Blob, _)
            | (_, Value::Null)
            | (Affinity::Integer | Affinity::Numeric, Value::Int(_))
            | (Affinity::Text, Value::Text(..)) => Ok(()),
            // A whole real is stored as an integer, which has no negative zero.
            (Affinity::Real, Value::Real(r)) => {
                if *r == 0.0 {
                    *v = Value::Real(0.0);
                }
                Ok(())
            }
            _ => self.convert(v),
        }
    }

    /// As [`Affinity::apply`], for values that may have to change.
    #[inline(never)]
    fn convert(self, v: &mut Value) -> Result<()> {
        match self {
            Affinity::None | Affinity::Blob => Ok(()),
            Affinity::Text => match v {
                Value::Int(_) | Value::Real(_) => {
                    *v = v.to_text()?;
                    Ok(())
                }
                _ => Ok(()),
            },
            Affinity::Integer | Affinity::Numeric => {
                match v {
                    Value::Int(_) => {}
                    Value::Real(r) => {
                        if let Some(i) = num::real_as_int(*r) {
                            *v = Value::Int(i);
                        }
                    }
                    Value::Text(b, _) => {
                        if let Some(n) = numeric_text(b) {
                            *v = n;
                        }
                    }
                    _ => {}
                }
                Ok(())
            }
            Affinity::Real | Affinity::Flexnum => {
                if let Value::Text(b, _) = v
                    && let Some(n) = numeric_text(b)
                {
                    *v = n;
                }
                if self == Affinity::Real
                    && let Value::Int(i) = v
                {
                    *v = Value::Real(*i as f64);
                }
                Ok(())
            }
        }
    }

    /// `CAST(v AS type)` where the type has this affinity (`lang_expr`, section 12). NULL stays NULL.
    pub fn cast(self, v: &Value) -> Result<Value> {
        Ok(match self {
            _ if v.is_null() => Value::Null,
            Affinity::Text => match v.to_text()? {
                Value::Text(b, _) => Value::Text(b, 0),
                other => other,
            },
            Affinity::Integer => Value::Int(v.to_int()),
            Affinity::Real => Value::real(v.to_real()),
            Affinity::Numeric | Affinity::Flexnum => match v {
                Value::Text(b, _) | Value::Blob(b, _) => match num::prefix(b).number {
                    Number::Int(i) => Value::Int(i),
                    // Text that is written as a real becomes an integer only where both have digits to spare.
                    Number::Real(r) => match num::real_as_int(r) {
                        Some(i) if i.unsigned_abs() < 1 << 51 || i == -(1 << 51) => Value::Int(i),
                        _ => Value::real(r),
                    },
                },
                Value::Real(r) => match num::real_as_int(*r) {
                    Some(i) if self == Affinity::Flexnum => Value::Int(i),
                    _ => Value::Real(*r),
                },
                other => other.clone(),
            },
            Affinity::None | Affinity::Blob => match v {
                Value::Int(_) | Value::Real(_) => match v.to_text()? {
                    Value::Text(b, _) => Value::Blob(b, 0),
                    other => other,
                },
                Value::Text(b, _) | Value::Blob(b, _) => Value::Blob(b.clone(), 0),
                Value::Null => Value::Null,
            },
        })
    }
}

impl Affinity {
    /// `CAST` in a database of UTF-16 text: a blob holds UTF-16, and a text becomes one that does.
    pub fn cast_utf16(self, v: &Value, enc: iolite_base::Encoding) -> Result<Value> {
        let to_blob = matches!(self, Affinity::None | Affinity::Blob);
        match v {
            Value::Blob(b, _) if !to_blob => self.cast(&Value::Text(crate::utf16::decode(b, enc)?, 0)),
            Value::Text(..) | Value::Int(_) | Value::Real(_) if to_blob => {
                Value::blob(&crate::utf16::encode(&v.text_bytes()?, enc))
            }
            _ => self.cast(v),
        }
    }
}

/// The number that a text is, if all of it is one: an integer where the value is whole and fits.
fn numeric_text(b: &[u8]) -> Option<Value> {
    let first = *b.iter().find(|b| !num::is_space(**b))?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let p = num::prefix(b);
    if !p.any || !p.whole {
        return None;
    }
    let real = match p.number {
        // Digits before a NUL are read as a real, as in SQLite, where the integer has to be all of the text.
        Number::Int(i) if b.contains(&0) => i as f64,
        Number::Int(i) => return Some(Value::Int(i)),
        Number::Real(r) => r,
    };
    Some(match num::real_as_int(real) {
        Some(i) => Value::Int(i),
        None => Value::real(real),
    })
}

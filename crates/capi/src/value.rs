//! `sqlite3_value`: a value with the buffers in which C sees its text.

use crate::pointer::{POINTER, pointer_in};
use crate::text::{characters_to_utf16, to_utf16};
use iolite::engine::{Encoding, Result, Value};
use iolite_base::alloc;
use iolite_value::utf16;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr::{null, null_mut};

/// What a `sqlite3_value*` points at.
#[derive(Default)]
pub struct CValue {
    pub(crate) value: Value,
    pub(crate) pointer: Option<(Vec<u8>, *mut c_void)>,
    /// It stands for a column that an UPDATE of a virtual table leaves as it is.
    pub(crate) unchanged: bool,
    /// It is a parameter's value.
    pub(crate) bound: bool,
    /// It stands for the values of an IN, and which of them is next.
    #[allow(clippy::vec_box)]
    pub(crate) list: Option<(Vec<Box<CValue>>, usize)>,
    buffers: RefCell<Buffers>,
}

/// Text as C saw it last: pointers into these stay valid until the value changes.
#[derive(Default)]
pub(crate) struct Buffers {
    text: Vec<u8>,
    has_text: bool,
    wide: Vec<u8>,
    has_wide: bool,
    /// A blob's bytes with a NUL behind them.
    ended: Vec<u8>,
    has_ended: bool,
    /// What a blob's bytes mean where they are asked for as text: text of the database.
    pub(crate) encoding: Encoding,
    /// It is known that the database is in UTF-8: in UTF-16, what is no character there is U+FFFD.
    pub(crate) characters: bool,
    /// There was no memory for a text that was asked for.
    pub(crate) short: bool,
}

impl Buffers {
    /// Forgets what belongs to the value before.
    pub(crate) fn clear(&mut self) {
        self.has_text = false;
        self.has_wide = false;
        self.has_ended = false;
    }

    /// The text of `v`, NUL behind it. NULL where there is no memory for it, which is noted.
    pub(crate) fn text(&mut self, v: &Value) -> *const c_uchar {
        if v.is_null() {
            return null();
        }
        if !self.has_text {
            let done: Result<()> = match v {
                Value::Blob(b, _) if self.encoding != Encoding::Utf8 => {
                    utf16::decode(b, self.encoding).and_then(|text| put_ended(&mut self.text, &text))
                }
                _ => put_ended(&mut self.text, v.lent_text(&mut [0; 32])),
            };
            if done.is_err() {
                self.short = true;
                return null();
            }
            self.has_text = true;
        }
        self.text.as_ptr()
    }

    /// The text of `v` in UTF-16, NUL behind it.
    pub(crate) fn wide(&mut self, v: &Value) -> *const c_void {
        if v.is_null() {
            return null();
        }
        if !self.has_wide {
            let mut room = [0; 32];
            let whole = v.lent_text(&mut room);
            // Asked for before: a text takes twice its bytes at the most.
            let done = alloc::reserve(&mut Vec::<u8>::new(), 2 * whole.len() + 2).and_then(|()| {
                Ok(match v {
                    _ if self.characters => characters_to_utf16(whole),
                    Value::Blob(b, _) if self.encoding != Encoding::Utf8 => {
                        to_utf16(&utf16::decode(b, self.encoding)?)
                    }
                    _ => to_utf16(whole),
                })
            });
            let Ok(wide) = done else {
                self.short = true;
                return null();
            };
            self.wide = wide;
            self.has_wide = true;
        }
        self.wide.as_ptr() as *const c_void
    }

    /// How long the text of `v` is in bytes.
    pub(crate) fn bytes(&mut self, v: &Value) -> c_int {
        match v {
            Value::Null => 0,
            Value::Blob(..) if self.has_text => self.text.len() as c_int - 1,
            Value::Text(b, _) | Value::Blob(b, _) => b.len() as c_int,
            _ if self.text(v).is_null() => 0,
            _ => self.text.len() as c_int - 1,
        }
    }

    /// How long its UTF-16 is.
    pub(crate) fn bytes16(&mut self, v: &Value) -> c_int {
        match v {
            Value::Null => 0,
            Value::Blob(..) if self.has_wide && self.encoding == Encoding::Utf8 => {
                self.wide.len() as c_int - 2
            }
            Value::Blob(b, _) => b.len() as c_int,
            _ if self.wide(v).is_null() => 0,
            _ => self.wide.len() as c_int - 2,
        }
    }

    /// The bytes of `v`, a NUL behind those of text, and of blobs that are not large: some programs read as text what they have
    /// stored as a blob, or as an array of numbers, which the compiler expects to be aligned. NULL for none.
    pub(crate) fn blob(&mut self, v: &Value) -> *const c_void {
        match v {
            Value::Null => null(),
            // Once its text was asked for it is that, and as long as `bytes` says.
            Value::Blob(..) if self.has_text && self.text.len() == 1 => null(),
            Value::Blob(..) if self.has_text => self.text.as_ptr() as *const c_void,
            Value::Blob(b, _) if b.is_empty() => null(),
            Value::Blob(b, _)
                if b.as_ptr().cast::<u64>().is_aligned() && (b.len() > LARGE || b.has_zero_behind()) =>
            {
                b.as_ptr() as *const c_void
            }
            Value::Blob(b, _) => {
                if !self.has_ended {
                    if put_ended(&mut self.ended, b).is_err() {
                        self.short = true;
                        return null();
                    }
                    self.has_ended = true;
                }
                self.ended.as_ptr() as *const c_void
            }
            Value::Text(b, _) if b.is_empty() => null(),
            _ => self.text(v) as *const c_void,
        }
    }
}

/// Blobs of more bytes are not copied for that: they are read from overflow pages, with a NUL behind them.
const LARGE: usize = 1 << 16;

/// Writes `bytes` and a NUL behind them.
fn put_ended(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    out.clear();
    alloc::reserve(out, bytes.len() + 1)?;
    out.extend_from_slice(bytes);
    out.push(0);
    Ok(())
}

/// The number of a storage class.
pub(crate) fn kind(v: &Value) -> c_int {
    match v {
        Value::Int(_) => 1,
        Value::Real(_) => 2,
        Value::Text(..) => 3,
        Value::Blob(..) => 4,
        Value::Null => 5,
    }
}

impl CValue {
    pub(crate) fn new(value: Value) -> CValue {
        if let Value::Blob(b, POINTER) = &value
            && let Some((p, name)) = pointer_in(b)
        {
            return CValue { pointer: Some((name.to_vec(), p)), ..CValue::default() };
        }
        CValue { value, ..CValue::default() }
    }

    /// The same with bytes of its own.
    pub(crate) fn with_own_bytes(self) -> iolite::Result<CValue> {
        Ok(CValue { value: self.copy()?, ..self })
    }

    /// The value with bytes of its own, for another owner: one that may be used on another thread, or live longer than
    /// the page under the original.
    pub(crate) fn copy(&self) -> iolite::Result<Value> {
        Ok(match &self.value {
            Value::Text(b, s) => Value::text(&**b)?.with_subtype(*s),
            Value::Blob(b, s) => Value::blob(b)?.with_subtype(*s),
            v => v.clone(),
        })
    }
}

macro_rules! getters {
    ($($name:ident($v:ident, $b:ident) -> $t:ty, $none:expr => $body:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(p: *const CValue) -> $t {
            let Some(c) = p.as_ref() else { return $none };
            crate::guard($none, || {
                let ($v, mut buffers) = (&c.value, c.buffers.borrow_mut());
                let $b = &mut *buffers;
                let _ = (&$v, &$b);
                $body
            })
        })*
    };
}

getters! {
    sqlite3_value_type(v, b) -> c_int, 5 => kind(v);
    sqlite3_value_int(v, b) -> c_int, 0 => v.to_int() as c_int;
    sqlite3_value_int64(v, b) -> i64, 0 => v.to_int();
    sqlite3_value_double(v, b) -> f64, 0.0 => v.to_real();
    sqlite3_value_text(v, b) -> *const c_uchar, null() => b.text(v);
    sqlite3_value_text16(v, b) -> *const c_void, null() => b.wide(v);
    sqlite3_value_text16le(v, b) -> *const c_void, null() => b.wide(v);
    sqlite3_value_text16be(v, b) -> *const c_void, null() => {
        b.wide(v);
        b.wide.chunks_exact_mut(2).for_each(|u| u.swap(0, 1));
        b.has_wide = false;
        b.wide.as_ptr() as *const c_void
    };
    sqlite3_value_blob(v, b) -> *const c_void, null() => b.blob(v);
    sqlite3_value_bytes(v, b) -> c_int, 0 => b.bytes(v);
    sqlite3_value_bytes16(v, b) -> c_int, 0 => b.bytes16(v);
    sqlite3_value_subtype(v, b) -> c_uint, 0 => v.subtype() as c_uint;
    sqlite3_value_encoding(v, b) -> c_int, 1 => 1;
}

/// The number that a text is from end to end.
fn numeric(v: &Value) -> Option<Value> {
    let Value::Text(t, _) = v else { return None };
    let s = std::str::from_utf8(t).ok()?.trim();
    if let Ok(n) = s.parse::<i64>() {
        return Some(Value::Int(n));
    }
    let digits = s.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    (digits && s.parse::<f64>().is_ok()).then(|| Value::real(v.to_real()))
}

/// A text that is a number becomes that number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_numeric_type(p: *mut CValue) -> c_int {
    let Some(c) = p.as_mut() else { return 5 };
    if let Some(n) = numeric(&c.value) {
        c.value = n;
        c.buffers.get_mut().clear();
    }
    kind(&c.value)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_nochange(p: *const CValue) -> c_int {
    p.as_ref().is_some_and(|v| v.unchanged) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_pointer(p: *const CValue, name: *const c_char) -> *mut c_void {
    let name = crate::connection::text(name).into_bytes();
    match p.as_ref().and_then(|c| c.pointer.as_ref()) {
        Some((n, p)) if *n == name => *p,
        _ => null_mut(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_dup(p: *const CValue) -> *mut CValue {
    let Some(c) = p.as_ref() else { return null_mut() };
    crate::guard(null_mut(), || match c.copy() {
        Ok(value) => {
            let mut copy = CValue::new(value);
            copy.bound = c.bound;
            Box::into_raw(Box::new(copy))
        }
        Err(_) => null_mut(),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_free(p: *mut CValue) {
    if !p.is_null() {
        drop(Box::from_raw(p));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_value_frombind(v: *mut CValue) -> c_int {
    v.as_ref().is_some_and(|v| v.bound) as c_int
}

/// `n` bytes at `p`, or up to the NUL if `n` is negative; none at NULL.
pub(crate) unsafe fn given<'a>(p: *const c_void, n: i64) -> &'a [u8] {
    if p.is_null() {
        return &[];
    }
    let len = if n < 0 { libc::strlen(p as *const c_char) } else { n as usize };
    std::slice::from_raw_parts(p as *const u8, len)
}

/// A text in the given encoding, by its number in the C interface.
pub(crate) unsafe fn from_encoding(p: *const c_void, n: i64, encoding: c_uchar) -> iolite::Result<Value> {
    match encoding {
        2 | 3 => {
            let e = if encoding == 2 { iolite::Encoding::Utf16le } else { iolite::Encoding::Utf16be };
            let (text, order) = iolite_value::utf16::without_mark(given(p, n), e);
            Ok(Value::Text(iolite_value::utf16::decode(text, order)?, 0))
        }
        4 => Value::text(crate::text::from_utf16(p, n)),
        _ => Value::text(given(p, n)),
    }
}

/// A blob of zeroes.
pub(crate) fn zeroblob(n: u64) -> iolite::Result<Value> {
    if n > 1_000_000_000 {
        return Err(iolite::Code::Toobig.into());
    }
    Ok(Value::Blob(iolite_base::Buf::zeroed(n as usize)?.into_bytes(), 0))
}

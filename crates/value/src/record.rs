//! The record format (file format, section 2.1): a header of serial types, then the fields' bytes.

use crate::{Value, utf16};
use iolite_base::{Buf, Bytes, Code, Encoding, Result, varint};

/// The number of body bytes of a field with serial type `t`.
#[inline(always)]
pub const fn serial_len(t: u64) -> usize {
    const SMALL: [u8; 12] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0];
    if t < 12 { SMALL[t as usize] as usize } else { ((t - 12) / 2) as usize }
}

/// The integer of serial type `t` (1 to 6, 8, 9) at the start of `b`; `None` if `b` is too short.
#[inline(always)]
pub fn read_int(t: u64, b: &[u8]) -> Option<i64> {
    // Types 1 to 4 have as many bytes; those behind are shifted out. One load where a jump by type would be guessed wrong.
    if let (1..=4, Some(c)) = (t, b.first_chunk::<4>()) {
        return Some((i32::from_be_bytes(*c) >> (32 - 8 * t)) as i64);
    }
    Some(match t {
        1 => *b.first()? as i8 as i64,
        2 => i16::from_be_bytes(b.get(..2)?.try_into().ok()?) as i64,
        3 => {
            let c = b.get(..3)?;
            (c[0] as i8 as i64) << 16 | (c[1] as i64) << 8 | c[2] as i64
        }
        4 => i32::from_be_bytes(b.get(..4)?.try_into().ok()?) as i64,
        5 => {
            let c = b.get(..6)?;
            (i16::from_be_bytes([c[0], c[1]]) as i64) << 32
                | u32::from_be_bytes([c[2], c[3], c[4], c[5]]) as i64
        }
        6 => i64::from_be_bytes(b.get(..8)?.try_into().ok()?),
        8 => 0,
        _ => 1,
    })
}

/// The real at the start of `b` (8 bytes, checked by the caller's length; shorter reads as NaN).
#[inline]
pub fn read_real(b: &[u8]) -> f64 {
    match b.get(..8) {
        Some(c) => f64::from_be_bytes(c.try_into().expect("eight bytes")),
        None => f64::NAN,
    }
}

/// The value of one encoded field, its bytes copied.
pub fn value_of(t: u64, b: &[u8], enc: Encoding) -> Result<Value> {
    Ok(match t {
        0 | 10 | 11 => Value::Null,
        7 => Value::real(read_real(b)),
        1..=9 => Value::Int(read_int(t, b).ok_or(Code::Corrupt)?),
        _ if t & 1 == 0 => Value::Blob(Bytes::copy_of(b)?, 0),
        _ if enc == Encoding::Utf8 => Value::Text(Bytes::copy_of(b)?, 0),
        _ => Value::Text(utf16::decode(b, enc)?, 0),
    })
}

/// The value of one encoded field that lies at `off..off+len` of `buf`; text and blobs borrow from it.
/// The caller has checked that the range lies inside.
#[inline]
pub fn value_in(t: u64, buf: &Buf, off: usize, len: usize, enc: Encoding) -> Result<Value> {
    Ok(match t {
        0 | 10 | 11 => Value::Null,
        7 => Value::real(read_real(&buf[off..off + len])),
        1..=9 => Value::Int(read_int(t, &buf[off..off + len]).ok_or(Code::Corrupt)?),
        _ if t & 1 == 0 => Value::Blob(buf.slice(off, len), 0),
        _ if enc == Encoding::Utf8 => Value::Text(buf.slice(off, len), 0),
        _ => Value::Text(utf16::decode(&buf[off..off + len], enc)?, 0),
    })
}

/// Walks a record's header: yields each field's serial type and bytes.
pub struct Header {
    at: usize,
    end: usize,
    body: usize,
}

impl Header {
    /// Stands before the first field. `SQLITE_CORRUPT` if the header does not fit the payload.
    #[inline]
    pub fn new(payload: &[u8]) -> Result<Header> {
        let Some((len, n)) = varint::get(payload) else {
            return Err(Code::Corrupt.into());
        };
        if len > payload.len() as u64 || (len as usize) < n {
            return Err(Code::Corrupt.into());
        }
        Ok(Header { at: n, end: len as usize, body: len as usize })
    }

    /// The next field, or `None` after the last.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<(u64, &'a [u8])>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let Some((t, n)) = varint::get(&payload[self.at..self.end]) else {
            return Err(Code::Corrupt.into());
        };
        self.at += n;
        let len = serial_len(t);
        let Some(b) = payload.get(self.body..).and_then(|p| p.get(..len)) else {
            return Err(Code::Corrupt.into());
        };
        self.body += len;
        Ok(Some((t, b)))
    }
}

/// All values of a record, bytes copied.
pub fn decode(payload: &[u8], enc: Encoding) -> Result<Vec<Value>> {
    let mut h = Header::new(payload)?;
    // No more fields than bytes in the header; in most records each takes one.
    let mut out = Vec::with_capacity((h.end - h.at).min(64));
    while let Some((t, b)) = h.next(payload)? {
        out.push(value_of(t, b, enc)?);
    }
    Ok(out)
}

/// The serial type with which an integer is stored.
#[inline]
pub fn int_type(i: i64) -> u64 {
    /// By the number of bits beside the sign. A table, since numbers of mixed sizes make a chain of comparisons guess wrong.
    const BY_BITS: [u8; 64] = {
        let mut t = [6; 64];
        let mut bits = 0;
        while bits < 48 {
            t[bits] = match bits {
                0..=7 => 1,
                8..=15 => 2,
                16..=23 => 3,
                24..=31 => 4,
                _ => 5,
            };
            bits += 1;
        }
        t
    };
    if i as u64 <= 1 {
        return 8 + i as u64;
    }
    // A negative number needs as many bits as its complement.
    let u = (i ^ (i >> 63)) as u64;
    BY_BITS[(64 - u.leading_zeros() as usize) & 63] as u64
}

/// Appends the encoded record of `values` to `out`. A real that is a whole number keeps its eight bytes: turning
/// it into an integer is REAL affinity's business, see [`encode_field`].
pub fn encode(values: &[Value], enc: Encoding, out: &mut Vec<u8>) -> Result<()> {
    encode_with(values, enc, |_| false, out)
}

/// As [`encode`]; `compact(i)` says that field `i` belongs to a REAL column, whose whole numbers are stored as
/// integers (file format, section 2.3, on REAL columns in `datatype3` section 3). `SQLITE_TOOBIG` beyond 2 GiB.
pub fn encode_with(
    values: &[Value],
    enc: Encoding,
    compact: impl Fn(usize) -> bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut buf = Buf::with_capacity(0)?;
    encode_buf(values, enc, compact, i32::MAX as usize, &mut buf)?;
    iolite_base::alloc::reserve(out, buf.len())?;
    out.extend_from_slice(&buf);
    Ok(())
}

/// Fields whose serial types are remembered between measuring and writing.
const FEW: usize = 64;

/// The largest serial type whose varint is one byte.
const ONE_BYTE: u64 = 0x7f;

/// As [`encode_with`], into a counted buffer whose memory is used again if nobody else holds it. `max` is the longest
/// allowed record: `SQLITE_TOOBIG` beyond.
#[inline]
pub fn encode_buf(
    values: &[Value],
    enc: Encoding,
    compact: impl Fn(usize) -> bool,
    max: usize,
    out: &mut Buf,
) -> Result<()> {
    if enc != Encoding::Utf8 && values.iter().any(|v| matches!(v, Value::Text(..))) {
        return encode_recoded(values, enc, compact, max, out);
    }
    let mut types = [0u8; FEW];
    let Some(types) = types.get_mut(..values.len()) else {
        return encode_wide(values, compact, max, out);
    };
    let (mut header, mut body) = (values.len() + 1, 0);
    let mut narrow = true;
    for (i, (v, kept)) in values.iter().zip(types.iter_mut()).enumerate() {
        let t = serial_type(v, compact(i));
        *kept = t as u8;
        body += serial_len(t);
        if t > ONE_BYTE {
            narrow = false;
            header += varint::len(t) - 1;
        }
    }
    if !narrow {
        header = with_own_length(header);
    }
    if header + body > max {
        return Err(Code::Toobig.into());
    }
    let (head, mut rest) = out.reuse_filled(header + body)?.split_at_mut(header);
    if narrow {
        head[0] = header as u8;
        head[1..].copy_from_slice(types);
    } else {
        let mut at = varint::put(head, header as u64);
        for (v, t) in values.iter().zip(&*types) {
            let bytes = matches!(v, Value::Text(..) | Value::Blob(..));
            let t = if bytes { serial_type(v, false) } else { *t as u64 };
            at += varint::put(&mut head[at..], t);
        }
    }
    for (v, t) in values.iter().zip(types) {
        let bits = match v {
            Value::Text(s, _) | Value::Blob(s, _) => {
                let (own, more) = rest.split_at_mut(s.len());
                own.copy_from_slice(s);
                rest = more;
                continue;
            }
            Value::Real(r) if *t == 7 => r.to_bits(),
            Value::Real(r) => *r as i64 as u64,
            Value::Int(k) => *k as u64,
            Value::Null => continue,
        };
        rest = put_number(bits, serial_len(*t as u64), rest);
    }
    Ok(())
}

/// A header's length, which counts itself: one byte for it is in already.
fn with_own_length(mut header: usize) -> usize {
    for bound in [0x7f, 0x3fff, 0x1f_ffff] {
        header += (header > bound) as usize;
    }
    header
}

/// As [`encode_buf`], of more fields than are remembered.
#[inline(never)]
fn encode_wide(values: &[Value], compact: impl Fn(usize) -> bool, max: usize, out: &mut Buf) -> Result<()> {
    let (mut header, mut body) = (1, 0);
    for (i, v) in values.iter().enumerate() {
        let t = serial_type(v, compact(i));
        header += varint::len(t);
        body += serial_len(t);
    }
    let header = with_own_length(header);
    if header + body > max {
        return Err(Code::Toobig.into());
    }
    let b = out.reuse_filled(header + body)?;
    let (head, mut rest) = b.split_at_mut(header);
    let mut at = varint::put(head, header as u64);
    for (i, v) in values.iter().enumerate() {
        let t = serial_type(v, compact(i));
        at += varint::put(&mut head[at..], t);
        if let Value::Text(s, _) | Value::Blob(s, _) = v {
            let (own, more) = rest.split_at_mut(s.len());
            own.copy_from_slice(s);
            rest = more;
            continue;
        }
        rest = put_number(bits_of(v, t), serial_len(t), rest);
    }
    Ok(())
}

/// As [`encode_buf`], for a record whose last value is a text or blob, and without that value's bytes: whoever writes the
/// record puts them behind.
#[inline(never)]
pub fn encode_head(
    values: &[Value],
    compact: impl Fn(usize) -> bool,
    max: usize,
    out: &mut Buf,
) -> Result<()> {
    let mut types = Vec::new();
    iolite_base::alloc::reserve(&mut types, values.len())?;
    types.extend(values.iter().enumerate().map(|(i, v)| serial_type(v, compact(i))));
    let header = with_own_length(1 + types.iter().map(|t| varint::len(*t)).sum::<usize>());
    let body: usize = types.iter().map(|t| serial_len(*t)).sum();
    if header + body > max {
        return Err(Code::Toobig.into());
    }
    let here = body - types.last().map_or(0, |t| serial_len(*t));
    let (head, mut rest) = out.reuse_filled(header + here)?.split_at_mut(header);
    let mut at = varint::put(head, header as u64);
    for (i, (v, t)) in values.iter().zip(&types).enumerate() {
        at += varint::put(&mut head[at..], *t);
        rest = match v {
            _ if i + 1 == values.len() => rest,
            Value::Text(s, _) | Value::Blob(s, _) => {
                let (own, more) = rest.split_at_mut(s.len());
                own.copy_from_slice(s);
                more
            }
            Value::Real(r) if *t == 7 => put_number(r.to_bits(), 8, rest),
            Value::Real(r) => put_number(*r as i64 as u64, serial_len(*t), rest),
            Value::Int(k) => put_number(*k as u64, serial_len(*t), rest),
            Value::Null => rest,
        };
    }
    Ok(())
}

/// As [`encode_buf`], with texts that go to a UTF-16 database.
#[inline(never)]
fn encode_recoded(
    values: &[Value],
    enc: Encoding,
    compact: impl Fn(usize) -> bool,
    max: usize,
    out: &mut Buf,
) -> Result<()> {
    let (mut few, mut many) = ([0; FEW], Vec::new());
    let types = match few.get_mut(..values.len()) {
        Some(few) => few,
        None => {
            iolite_base::alloc::reserve(&mut many, values.len())?;
            many.resize(values.len(), 0);
            &mut many[..]
        }
    };
    let (mut header, mut body) = (1, 0);
    for (i, (v, kept)) in values.iter().zip(types.iter_mut()).enumerate() {
        *kept = match v {
            Value::Text(b, _) => utf16::encoded_len(b) as u64 * 2 + 13,
            v => serial_type(v, compact(i)),
        };
        header += varint::len(*kept);
        body += serial_len(*kept);
    }
    let header = with_own_length(header);
    if header + body > max {
        return Err(Code::Toobig.into());
    }
    let (head, mut rest) = out.reuse_filled(header + body)?.split_at_mut(header);
    let mut at = varint::put(head, header as u64);
    for (v, t) in values.iter().zip(&*types) {
        at += varint::put(&mut head[at..], *t);
        if let Value::Text(s, _) | Value::Blob(s, _) = v {
            let (own, more) = rest.split_at_mut(serial_len(*t));
            match v {
                Value::Text(..) => utf16::encode_to(s, enc, own),
                _ => own.copy_from_slice(s),
            }
            rest = more;
            continue;
        }
        rest = put_number(bits_of(v, *t), serial_len(*t), rest);
    }
    Ok(())
}

/// A value whose text is in the encoding of the database.
pub fn recoded_value(v: &Value, enc: Encoding) -> Result<Value> {
    match v {
        Value::Text(b, s) if enc != Encoding::Utf8 => {
            Ok(Value::Text(Bytes::copy_of(&utf16::encode(b, enc))?, *s))
        }
        v => Ok(v.clone()),
    }
}

/// Makes a record of another one without field `k`; `false`: it has no such field.
pub fn without(old: &[u8], k: usize, out: &mut Vec<u8>) -> Result<bool> {
    let mut h = Header::new(old)?;
    let (first, body) = (h.at, h.body);
    for _ in 0..k {
        if h.next(old)?.is_none() {
            return Ok(false);
        }
    }
    let before = (h.at, h.body);
    if h.next(old)?.is_none() {
        return Ok(false);
    }
    let types = [&old[first..before.0], &old[h.at..h.end]];
    let header = with_own_length(1 + types[0].len() + types[1].len());
    out.clear();
    iolite_base::alloc::reserve(out, old.len())?;
    varint::push(out, header as u64);
    for part in types.into_iter().chain([&old[body..before.1], &old[h.body..]]) {
        out.extend_from_slice(part);
    }
    Ok(true)
}

/// A part of a patched record.
enum Part<'r, 'v> {
    /// Fields that stay: their serial types and their bytes.
    Old(&'r [u8], &'r [u8]),
    /// A new value; `true`: in a REAL column.
    New(&'v Value, bool),
}

/// Gives the parts of a patched record from left to right.
fn parts<'v>(
    old: &[u8],
    width: usize,
    new: &impl Fn(usize, bool) -> Option<(&'v Value, bool)>,
    each: &mut impl FnMut(Part<'_, 'v>),
) -> Result<()> {
    let mut h = Header::new(old)?;
    let (mut head, mut body) = (h.at, h.body);
    for k in 0..width {
        let before = (h.at, h.body);
        let there = h.next(old)?.is_some();
        if let Some((v, real)) = new(k, there) {
            each(Part::Old(&old[head..before.0], &old[body..before.1]));
            each(Part::New(v, real));
            (head, body) = (h.at, h.body);
        }
    }
    each(Part::Old(&old[head..h.at], &old[body..h.body]));
    Ok(())
}

/// Makes a record of `width` fields out of another one. `new(k, there)` is the new value of field `k`, with `true` for one of
/// a REAL column; `None`: the field stays, which only one can that is there. Texts are in the database's encoding. With
/// `tail`, the last field is new, a text or blob, and its bytes are left out: whoever writes the record puts them behind.
/// `max` as for [`encode_buf`].
pub fn patch<'v>(
    old: &[u8],
    width: usize,
    new: impl Fn(usize, bool) -> Option<(&'v Value, bool)>,
    tail: bool,
    max: usize,
    out: &mut Buf,
) -> Result<()> {
    let (mut header, mut body, mut last) = (1, 0, 0);
    parts(old, width, &new, &mut |p| match p {
        Part::Old(h, b) => {
            header += h.len();
            body += b.len();
        }
        Part::New(v, real) => {
            let t = serial_type(v, real);
            header += varint::len(t);
            last = serial_len(t);
            body += last;
        }
    })?;
    let header = with_own_length(header);
    if header + body > max {
        return Err(Code::Toobig.into());
    }
    let mut left = if tail { body - last } else { body };
    let b = out.reuse_filled(header + left)?;
    let (head, mut rest) = b.split_at_mut(header);
    let mut at = varint::put(head, header as u64);
    parts(old, width, &new, &mut |p| {
        let bytes = match p {
            Part::Old(h, b) => {
                head[at..at + h.len()].copy_from_slice(h);
                at += h.len();
                b
            }
            Part::New(v, real) => {
                let t = serial_type(v, real);
                at += varint::put(&mut head[at..], t);
                match v {
                    Value::Text(b, _) | Value::Blob(b, _) if b.len() > left => &[],
                    Value::Text(b, _) | Value::Blob(b, _) => &b[..],
                    v => {
                        let n = serial_len(t);
                        left -= n;
                        rest = put_number(bits_of(v, t), n, std::mem::take(&mut rest));
                        return;
                    }
                }
            }
        };
        left -= bytes.len();
        let (own, more) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        own.copy_from_slice(bytes);
        rest = more;
    })
}

/// What [`put_number`] writes of a number with this serial type.
#[inline(always)]
fn bits_of(v: &Value, t: u64) -> u64 {
    match v {
        Value::Real(r) if t == 7 => r.to_bits(),
        Value::Real(r) => *r as i64 as u64,
        Value::Int(k) => *k as u64,
        _ => 0,
    }
}

/// Writes the low `n` bytes of `bits`, big-endian, and gives what is behind them. Eight bytes are written at once where
/// there is room: the fields behind write over what is too much (a copy of a length known only at run time is a call).
#[inline(always)]
fn put_number(bits: u64, n: usize, out: &mut [u8]) -> &mut [u8] {
    let bytes = (bits << ((64 - 8 * n) & 63)).to_be_bytes();
    match out.first_chunk_mut::<8>() {
        Some(first) => *first = bytes,
        None => out[..n].copy_from_slice(&bytes[..n]),
    }
    &mut out[n..]
}

#[inline]
fn serial_type(v: &Value, compact: bool) -> u64 {
    match v {
        Value::Null => 0,
        Value::Int(i) => int_type(*i),
        Value::Real(r) => match compact_int(*r, compact) {
            Some(i) => int_type(i),
            None => 7,
        },
        Value::Text(b, _) => b.len() as u64 * 2 + 13,
        Value::Blob(b, _) => b.len() as u64 * 2 + 12,
    }
}

/// The integer that stands for a whole real in a REAL column: those of at most six bytes.
#[inline]
fn compact_int(r: f64, compact: bool) -> Option<i64> {
    if !compact {
        return None;
    }
    let i = r as i64;
    (i as f64 == r && (-0x8000_0000_0000..=0x7fff_ffff_ffff).contains(&i)).then_some(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_field_is_that_of_the_others() {
        // Headers of one byte of length, and of two.
        for n in [1, 3, 130, 300] {
            let values: Vec<Value> =
                (0..n).map(|i| if i % 3 == 0 { Value::text("ab").unwrap() } else { Value::Int(i) }).collect();
            let (mut whole, mut out) = (Vec::new(), Vec::new());
            encode(&values, Encoding::Utf8, &mut whole).unwrap();
            for k in 0..n as usize {
                let mut others = values.clone();
                others.remove(k);
                let mut want = Vec::new();
                encode(&others, Encoding::Utf8, &mut want).unwrap();
                assert!(without(&whole, k, &mut out).unwrap());
                assert_eq!(out, want);
            }
            assert!(!without(&whole, n as usize, &mut out).unwrap());
        }
    }

    #[test]
    fn a_record_and_its_last_value_make_the_whole_record() {
        let long = |n: usize| Value::blob(&vec![7; n]).unwrap();
        for n in [0, 1, 60, 130, 16_400] {
            for last in [0, 1, 20_000, 3_000_000] {
                let mut values: Vec<Value> = (0..n)
                    .map(|i| match i % 5 {
                        0 => Value::Null,
                        1 => Value::Int(i as i64 * i as i64 * 7919 - 9),
                        2 => Value::Real(i as f64 * 0.75),
                        3 => Value::text(&b"some text"[..i % 9]).unwrap(),
                        _ => long(i % 50),
                    })
                    .collect();
                values.push(long(last));
                for real in [false, true] {
                    let (mut whole, mut head) = (Vec::new(), Buf::with_capacity(0).unwrap());
                    encode_with(&values, Encoding::Utf8, |_| real, &mut whole).unwrap();
                    encode_head(&values, |_| real, whole.len(), &mut head).unwrap();
                    assert_eq!([&head[..], &vec![7; last]].concat(), whole, "{n} {last}");
                    assert!(encode_head(&values, |_| real, whole.len() - 1, &mut head).is_err());
                }
            }
        }
    }

    #[test]
    fn records_round_trip_and_headers_past_127_bytes_count_themselves() {
        for n in [0, 1, 5, 125, 126, 127, 128, 200, 16_300, 16_381, 16_382, 16_383, 16_400] {
            let values: Vec<Value> = (0..n).map(|i| Value::Int(i as i64 * 7919 - 1)).collect();
            let mut out = Vec::new();
            encode(&values, Encoding::Utf8, &mut out).unwrap();
            let back = decode(&out, Encoding::Utf8).unwrap();
            assert_eq!(back.len(), n);
            assert!(back.iter().zip(&values).all(|(a, b)| a.to_int() == b.to_int()));
        }
    }

    /// Around the number of fields that are remembered, and around types of one, two and three bytes.
    #[test]
    fn records_of_any_width_round_trip() {
        for n in [0, 1, 2, 63, 64, 65, 125, 126, 127, 200] {
            for len in [0, 57, 58, 8185, 8186, 20_000] {
                for place in [0, n / 2, n.max(1) - 1] {
                    let mut values: Vec<Value> = (0..n)
                        .map(|i| match i % 4 {
                            0 => Value::Int([0, 1, -1, 300, -70_000, 1 << 40, i64::MIN][i % 7]),
                            1 => Value::Null,
                            2 => Value::Real([1.5, 2.0][i % 2]),
                            _ => Value::text("abc").unwrap(),
                        })
                        .collect();
                    if let Some(v) = values.get_mut(place) {
                        *v = Value::text("x".repeat(len)).unwrap();
                    }
                    let (mut out, mut exact) = (Vec::new(), Buf::with_capacity(0).unwrap());
                    encode(&values, Encoding::Utf8, &mut out).unwrap();
                    let back = decode(&out, Encoding::Utf8).unwrap();
                    assert!(format!("{back:?}") == format!("{values:?}"), "{n} fields, {len} bytes");
                    encode_buf(&values, Encoding::Utf8, |_| false, out.len(), &mut exact).unwrap();
                    assert_eq!(&*exact.into_bytes(), &*out);
                    let mut small = Buf::with_capacity(0).unwrap();
                    let e = encode_buf(&values, Encoding::Utf8, |_| false, out.len() - 1, &mut small);
                    assert_eq!(e.unwrap_err().code(), Code::Toobig);
                }
            }
        }
    }

    /// What is made out of another record is what would be made of the values.
    #[test]
    fn a_patched_record_is_the_record_of_its_values() {
        let value = |i: usize| match i % 5 {
            0 => Value::Int([0, 1, -1, 300, 1 << 40][i % 5]),
            1 => Value::Null,
            2 => Value::Real(i as f64 * 0.5),
            3 => Value::text("abc".repeat(i % 70)).unwrap(),
            _ => Value::Int(-(i as i64) << (i % 50)),
        };
        let made = |values: &[Value]| {
            let mut out = Vec::new();
            encode_with(values, Encoding::Utf8, |i| i % 3 == 2, &mut out).unwrap();
            out
        };
        for width in [1usize, 2, 3, 10, 62, 63, 126, 127, 128, 200] {
            for had in [0, 1, width / 2, width, width + 3] {
                let old: Vec<Value> = (0..had).map(value).collect();
                for step in [1, 2, 7, width] {
                    for long in [0, 60, 20_000] {
                        let news: Vec<Value> = (0..width)
                            .map(|k| {
                                if k % 2 == 0 {
                                    Value::text("n".repeat(long)).unwrap()
                                } else {
                                    value(k * 11)
                                }
                            })
                            .collect();
                        let changed = |k: usize| k % step == step - 1;
                        let new =
                            |k: usize, there: bool| (changed(k) || !there).then(|| (&news[k], k % 3 == 2));
                        let whole: Vec<Value> = (0..width)
                            .map(|k| if changed(k) || k >= had { news[k].clone() } else { old[k].clone() })
                            .collect();
                        let (old, whole) = (made(&old), made(&whole));
                        let mut out = Buf::with_capacity(0).unwrap();
                        patch(&old, width, new, false, whole.len(), &mut out).unwrap();
                        assert!(
                            *out.into_bytes() == *whole,
                            "{width} fields of {had}, each {step}th, {long} bytes"
                        );
                        let mut out = Buf::with_capacity(0).unwrap();
                        let e = patch(&old, width, new, false, whole.len() - 1, &mut out).unwrap_err();
                        assert_eq!(e.code(), Code::Toobig);
                        // The last value's bytes left to whoever writes them.
                        let last = width - 1;
                        if let Value::Text(t, _) = &news[last]
                            && (changed(last) || last >= had)
                            && !t.is_empty()
                        {
                            let mut out = Buf::with_capacity(0).unwrap();
                            patch(&old, width, new, true, whole.len(), &mut out).unwrap();
                            assert!(*out.into_bytes() == whole[..whole.len() - t.len()]);
                        }
                    }
                }
            }
        }
        let e = patch(&[9, 1, 1], 2, |_, _| None, false, 100, &mut Buf::with_capacity(0).unwrap());
        assert_eq!(e.unwrap_err().code(), Code::Corrupt);
    }

    #[test]
    fn integers_take_the_fewest_bytes() {
        for (i, t) in [
            (0, 8),
            (1, 9),
            (2, 1),
            (-1, 1),
            (127, 1),
            (128, 2),
            (-128, 1),
            (-129, 2),
            (1 << 47, 6),
            ((1 << 47) - 1, 5),
        ] {
            assert_eq!(int_type(i), t, "{i}");
            let mut b = Vec::new();
            encode(&[Value::Int(i)], Encoding::Utf8, &mut b).unwrap();
            assert_eq!((b[0], b[1] as u64), (2, t));
            assert_eq!(b.len(), 2 + serial_len(t));
            assert_eq!(read_int(t, &b[2..]), Some(i));
        }
    }
}

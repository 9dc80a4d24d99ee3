//! Comparison: of two values, and of an encoded record with a key of values.
//!
//! NULL < numbers < text < blobs. Integers and reals compare by exact value, never by rounding one to the other.

use crate::record::{self, Header};
use crate::{Affinity, Collation, Value, utf16};
use iolite_base::be::beginning;
use iolite_base::{Code, Encoding, Result};
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::rc::Rc;

/// Compares two values of any classes.
#[inline]
pub fn compare(a: &Value, b: &Value, coll: &Collation) -> Ordering {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(y),
        (Value::Text(x, _), Value::Text(y, _)) => coll.compare(x, y),
        _ => compare_mixed(a, b),
    }
}

/// Compares two values as the operators do: converted by the comparison's affinity first. `None`: one is NULL, and the outcome
/// with it. `null_eq`: NULL equals NULL, and is less than all else (IS).
#[inline]
pub fn under(
    a: &Value,
    b: &Value,
    affinity: Affinity,
    null_eq: bool,
    coll: &Collation,
) -> Result<Option<Ordering>> {
    if a.is_null() || b.is_null() {
        return Ok(null_eq.then(|| b.is_null().cmp(&a.is_null())));
    }
    let text = |v: &Value| matches!(v, Value::Text(..));
    let number = |v: &Value| matches!(v, Value::Int(_) | Value::Real(_));
    let to = match affinity {
        Affinity::Text if number(a) || number(b) => Affinity::Text,
        f if f.is_numeric() && (text(a) || text(b)) => Affinity::Numeric,
        _ => return Ok(Some(compare(a, b, coll))),
    };
    let (mut a, mut b) = (a.clone(), b.clone());
    to.apply(&mut a)?;
    to.apply(&mut b)?;
    Ok(Some(compare(&a, &b, coll)))
}

#[inline(never)]
fn compare_mixed(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(x), Value::Real(y)) => int_real(*x, *y),
        (Value::Real(x), Value::Int(y)) => int_real(*y, *x).reverse(),
        (Value::Real(x), Value::Real(y)) => real_real(*x, *y),
        (Value::Blob(x, _), Value::Blob(y, _)) => (**x).cmp(&**y),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(v: &Value) -> u8 {
    match v {
        Value::Null => 0,
        Value::Int(_) | Value::Real(_) => 1,
        Value::Text(..) => 2,
        Value::Blob(..) => 3,
    }
}

#[inline]
fn real_real(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or(Equal)
}

/// The real at the start of a record's body, unless it stands for NULL.
#[inline]
fn real_in(body: &[u8]) -> Option<f64> {
    body.first_chunk().map(|b| f64::from_be_bytes(*b)).filter(|r| !r.is_nan())
}

/// Compares an integer with a real exactly.
pub fn int_real(i: i64, r: f64) -> Ordering {
    if r.is_nan() {
        return Greater;
    }
    if r < -9_223_372_036_854_775_808.0 {
        return Greater;
    }
    if r >= 9_223_372_036_854_775_808.0 {
        return Less;
    }
    let whole = r as i64;
    match i.cmp(&whole) {
        Equal => real_real(0.0, r - whole as f64),
        other => other,
    }
}

/// How the fields of a key compare: what an index, a sorter or an ephemeral table needs to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyInfo {
    /// The database's text encoding.
    pub enc: Encoding,
    /// One entry per field that takes part in comparisons.
    pub fields: Vec<KeyField>,
    /// Fields in a whole record, those beyond `fields` included.
    pub columns: usize,
}

/// How one field compares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyField {
    /// The collating sequence.
    pub coll: Collation,
    /// Descending.
    pub desc: bool,
    /// NULLs sort after everything else in ascending order (before, if descending).
    pub nulls_large: bool,
}

impl KeyInfo {
    /// `n` ascending fields with byte order.
    pub fn plain(n: usize, enc: Encoding) -> Rc<KeyInfo> {
        Rc::new(KeyInfo { enc, fields: vec![KeyField::default(); n], columns: n })
    }

    /// Ascending fields with these collating sequences.
    pub fn ascending(collations: impl IntoIterator<Item = Collation>, enc: Encoding) -> Rc<KeyInfo> {
        let fields: Vec<_> = collations.into_iter().map(KeyField::ascending).collect();
        let columns = fields.len();
        Rc::new(KeyInfo { enc, fields, columns })
    }
}

impl KeyField {
    /// In ascending order by this collating sequence.
    pub fn ascending(coll: Collation) -> KeyField {
        KeyField { coll, ..KeyField::default() }
    }

    /// Applies direction and place of NULLs to the outcome of a comparison that was not `Equal`.
    #[inline]
    pub fn direct(&self, o: Ordering, one_is_null: bool) -> Ordering {
        if self.desc != (self.nulls_large && one_is_null) { o.reverse() } else { o }
    }
}

/// A key that encoded records are compared with, many in one search: what its first field is, is looked at once.
pub struct Probe<'a> {
    key: &'a [Value],
    info: &'a KeyInfo,
    tie: Ordering,
    first: First<'a>,
    /// The first field is in descending order.
    desc: bool,
}

/// The common shapes of a first field.
enum First<'a> {
    Int(i64),
    Real(f64),
    Text(&'a [u8], &'a Collation),
    /// A text that is compared by the bytes that it has in a UTF-16 database: how these begin, their number, and whether there are no more.
    Wide(utf16::Stored, usize, bool),
    Blob(&'a [u8]),
    Null,
    Other,
}

impl<'a> Probe<'a> {
    /// Records are compared with `key` over its first `key.len()` fields at the most; `tie` is the answer where all of
    /// those are equal.
    #[inline]
    pub fn new(key: &'a [Value], info: &'a KeyInfo, tie: Ordering) -> Probe<'a> {
        let first = match (key.first(), info.fields.first()) {
            (Some(Value::Int(k)), Some(_)) => First::Int(*k),
            (Some(Value::Real(k)), Some(_)) => First::Real(*k),
            (Some(Value::Text(k, _)), Some(f)) if info.enc == Encoding::Utf8 => First::Text(k, &f.coll),
            (Some(Value::Text(k, _)), Some(KeyField { coll: Collation::Binary16(enc), .. }))
                if *enc == info.enc =>
            {
                utf16::stored_start(k, *enc)
                    .map_or(First::Other, |(start, n, all)| First::Wide(start, 2 * n, all))
            }
            (Some(Value::Blob(k, _)), Some(_)) => First::Blob(k),
            (Some(Value::Null), Some(_)) => First::Null,
            _ => First::Other,
        };
        let desc = info.fields.first().is_some_and(|f| f.desc);
        Probe { key, info, tie, first, desc }
    }

    /// The first field, if it is an integer and in ascending order.
    #[inline]
    pub fn first_int(&self) -> Option<i64> {
        match self.first {
            First::Int(k) if !self.desc => Some(k),
            _ => None,
        }
    }

    /// The [`beginning`] of what follows the first `from` bytes of the first field, if it is a text in the ascending order of its bytes
    /// and is known to have so many.
    #[inline]
    pub fn first_text(&self, from: usize) -> Option<u64> {
        match self.first {
            First::Text(k, Collation::Binary) if !self.desc => Some(beginning(k.get(from..)?)),
            First::Wide(start, n, all) if !self.desc => {
                let rest = start[..n].get(from..)?;
                (all || rest.len() >= 8).then(|| beginning(rest))
            }
            _ => None,
        }
    }

    /// The first field's text against all texts that begin with `prefix`: before them, one of them, behind them; one of them, too, if
    /// that is not known.
    #[inline]
    pub fn text_against(&self, prefix: &[u8]) -> Ordering {
        match self.first {
            First::Text(k, _) => k[..prefix.len().min(k.len())].cmp(prefix),
            First::Wide(start, n, all) => {
                let prefix = if all { prefix } else { &prefix[..prefix.len().min(n)] };
                start[..prefix.len().min(n)].cmp(prefix)
            }
            _ => Equal,
        }
    }

    /// The second field, in the same way.
    #[inline]
    pub fn second_int(&self) -> Option<i64> {
        match (self.key, &self.info.fields[..]) {
            ([_, Value::Int(k), ..], [_, field, ..]) if !field.desc => Some(*k),
            _ => None,
        }
    }

    /// The record compared with the key. A malformed record is `SQLITE_CORRUPT`.
    #[inline(always)]
    pub fn compare(&self, payload: &[u8]) -> Result<Ordering> {
        // One-byte lengths of the header and of the first type.
        if let [len, t, ..] = *payload
            && (len | t) < 0x80
            && len > 1
            && let Some(body) = payload.get(len as usize..)
        {
            let o = match self.first {
                First::Int(k) if matches!(t, 1..=6 | 8 | 9) => {
                    record::read_int(t as u64, body).map(|v| v.cmp(&k))
                }
                First::Int(k) if t == 7 => real_in(body).map(|r| int_real(k, r).reverse()),
                First::Real(k) if t == 7 => real_in(body).map(|r| real_real(r, k)),
                First::Real(k) if matches!(t, 1..=6 | 8 | 9) => {
                    record::read_int(t as u64, body).map(|v| int_real(v, k))
                }
                First::Text(k, coll) if t >= 13 && t & 1 == 1 => {
                    body.get(..(t as usize - 13) / 2).map(|b| coll.compare(b, k))
                }
                First::Wide(start, n, all) if t >= 13 && t & 1 == 1 => {
                    body.get(..(t as usize - 13) / 2).and_then(|b| against_start(b, &start[..n], all))
                }
                First::Blob(k) if t >= 12 && t & 1 == 0 => {
                    body.get(..(t as usize - 12) / 2).map(|b| b.cmp(k))
                }
                First::Null if t == 0 => Some(Equal),
                _ => None,
            };
            match o {
                Some(Equal) if self.key.len() == 1 => return Ok(self.tie),
                Some(Equal) => {
                    let next = Place { field: 1, at: 2, body: len as usize + SHORT_LEN[t as usize] as usize };
                    return self.rest(payload, next);
                }
                Some(o) => return Ok(if self.desc { o.reverse() } else { o }),
                None => {}
            }
        }
        self.rest(payload, Place { field: 0, at: 1, body: payload.first().map_or(0, |len| *len as usize) })
    }

    /// What [`Probe::compare`] answers by the fields from a place on: those before are equal. The header's length is a byte.
    #[inline(never)]
    fn rest(&self, payload: &[u8], from: Place) -> Result<Ordering> {
        let Place { field: first, mut at, mut body } = from;
        let head = payload.first().map_or(0, |len| *len as usize);
        let Some(header) = payload.get(..head).filter(|_| (1..0x80).contains(&head)) else {
            return self.long(payload);
        };
        for i in first..self.key.len().min(self.info.fields.len()) {
            let (k, field) = (&self.key[i], &self.info.fields[i]);
            let Some(t) = header.get(at).copied() else { return Ok(self.tie) };
            let Some(bytes) = payload.get(body..).filter(|_| t < 0x80) else { return self.long(payload) };
            let len = SHORT_LEN[t as usize] as usize;
            let o = match k {
                Value::Int(k) if matches!(t, 1..=6 | 8 | 9) => {
                    record::read_int(t as u64, bytes).ok_or(Code::Corrupt)?.cmp(k)
                }
                _ => {
                    let bytes = bytes.get(..len).ok_or(Code::Corrupt)?;
                    match k {
                        Value::Text(k, _) if t >= 13 && t & 1 == 1 && self.info.enc == Encoding::Utf8 => {
                            field.coll.compare(bytes, k)
                        }
                        _ => field_cmp(t as u64, bytes, k, &field.coll, self.info.enc)?,
                    }
                }
            };
            if o.is_ne() {
                return Ok(field.direct(o, t == 0 || k.is_null()));
            }
            at += 1;
            body += len;
        }
        Ok(self.tie)
    }

    /// The same for all fields of any record.
    #[inline(never)]
    fn long(&self, payload: &[u8]) -> Result<Ordering> {
        let mut header = Header::new(payload)?;
        for (k, field) in self.key.iter().zip(&self.info.fields) {
            let Some((t, bytes)) = header.next(payload)? else {
                return Ok(self.tie);
            };
            let o = field_cmp(t, bytes, k, &field.coll, self.info.enc)?;
            if o.is_ne() {
                return Ok(field.direct(o, t == 0 || k.is_null()));
            }
        }
        Ok(self.tie)
    }
}

/// Where a field of a record is.
struct Place {
    field: usize,
    /// Its type, in the header.
    at: usize,
    /// Its bytes.
    body: usize,
}

/// The length of a field by its type, where that is one byte.
const SHORT_LEN: [u8; 128] = {
    let mut out = [0; 128];
    let mut t = 0;
    while t < out.len() {
        out[t] = record::serial_len(t as u64) as u8;
        t += 1;
    }
    out
};

/// Compares one encoded field with a value.
fn field_cmp(t: u64, bytes: &[u8], k: &Value, coll: &Collation, enc: Encoding) -> Result<Ordering> {
    Ok(match t {
        0 | 10 | 11 => {
            if k.is_null() {
                Equal
            } else {
                Less
            }
        }
        7 => {
            let r = record::read_real(bytes);
            if r.is_nan() {
                return Ok(if k.is_null() { Equal } else { Less });
            }
            compare(&Value::Real(r), k, coll)
        }
        1..=9 => {
            let i = record::read_int(t, bytes).ok_or(Code::Corrupt)?;
            compare(&Value::Int(i), k, coll)
        }
        _ if t & 1 == 0 => match k {
            Value::Blob(b, _) => bytes.cmp(b),
            _ => Greater,
        },
        _ => match k {
            Value::Text(b, _) if enc == Encoding::Utf8 => coll.compare(bytes, b),
            Value::Text(b, _) => compare_stored(bytes, b, coll, enc)?,
            Value::Blob(..) => Less,
            _ => Greater,
        },
    })
}

/// Compares two texts as they are stored in a UTF-16 database. Sorts of long ones that begin alike did little but decode them.
fn both_stored(a: &[u8], b: &[u8], coll: &Collation, enc: Encoding) -> Result<Ordering> {
    let (a, b) = match coll {
        Collation::Binary16(e) if *e == enc => return Ok(utf16::whole_units(a).cmp(utf16::whole_units(b))),
        Collation::Nocase | Collation::Rtrim => utf16::rests(a, b, enc),
        _ => (a, b),
    };
    Ok(coll.compare(&utf16::decode(a, enc)?, &utf16::decode(b, enc)?))
}

/// Compares a text as it is stored in a UTF-16 database with one that begins in this way. `None`: what follows decides.
fn against_start(stored: &[u8], start: &[u8], all: bool) -> Option<Ordering> {
    let stored = utf16::whole_units(stored);
    let shared = &stored[..start.len().min(stored.len())];
    match shared.cmp(start) {
        Equal if stored.len() > start.len() => all.then_some(Greater),
        Equal if !all => None,
        o => Some(o),
    }
}

/// Compares a text as it is stored in a UTF-16 database with another.
fn compare_stored(bytes: &[u8], b: &[u8], coll: &Collation, enc: Encoding) -> Result<Ordering> {
    let known = match coll {
        Collation::Binary16(_) => utf16::compare_stored(bytes, b, enc, false),
        Collation::Nocase => utf16::compare_stored(bytes, b, enc, true),
        _ => None,
    };
    Ok(match known {
        Some(o) => o,
        None => coll.compare(&utf16::decode(bytes, enc)?, b),
    })
}

/// Whether one of the first `n` fields of an encoded record is NULL.
pub fn has_null(record: &[u8], n: usize) -> Result<bool> {
    let mut h = Header::new(record)?;
    for _ in 0..n {
        match h.next(record)? {
            Some((0, _)) => return Ok(true),
            Some(_) => {}
            None => break,
        }
    }
    Ok(false)
}

/// Compares two encoded records field by field; `n` fields at the most.
pub fn records(a: &[u8], b: &[u8], n: usize, info: &KeyInfo) -> Result<Ordering> {
    first_difference(a, b, n, info).map(|d| d.1)
}

/// How many of their first `n` fields two encoded records have in common, and how the next one orders them.
#[inline]
pub fn first_difference(a: &[u8], b: &[u8], n: usize, info: &KeyInfo) -> Result<(usize, Ordering)> {
    match short_difference(a, b, n, info) {
        Some(found) => Ok(found),
        None => any_difference(a, b, n, info),
    }
}

/// The same for records whose header's length and types take a byte each, as far as fields of one class meet. `None`: it takes the long
/// way. (Reading the headers step by step was more than half of what sorting texts took.)
#[inline(always)]
fn short_difference(a: &[u8], b: &[u8], n: usize, info: &KeyInfo) -> Option<(usize, Ordering)> {
    let (mut at_a, mut at_b) = (*a.first()? as usize, *b.first()? as usize);
    if (at_a | at_b) >= 0x80 {
        return None;
    }
    let (types_a, types_b) = (a.get(1..at_a)?, b.get(1..at_b)?);
    for (k, field) in info.fields.iter().enumerate().take(n) {
        let (Some(&ta), Some(&tb)) = (types_a.get(k), types_b.get(k)) else { return Some((n, Equal)) };
        if (ta | tb) >= 0x80 {
            return None;
        }
        let fa = a.get(at_a..at_a + SHORT_LEN[ta as usize] as usize)?;
        let fb = b.get(at_b..at_b + SHORT_LEN[tb as usize] as usize)?;
        let o = match (ta, tb) {
            (13.., 13..) if ta & tb & 1 == 1 && info.enc == Encoding::Utf8 => field.coll.compare(fa, fb),
            (13.., 13..) if ta & tb & 1 == 1 => both_stored(fa, fb, &field.coll, info.enc).ok()?,
            (1..=6 | 8 | 9, 1..=6 | 8 | 9) => {
                record::read_int(ta as u64, fa)?.cmp(&record::read_int(tb as u64, fb)?)
            }
            (7, 7) => real_real(real_in(fa)?, real_in(fb)?),
            (7, 1..=6 | 8 | 9) => int_real(record::read_int(tb as u64, fb)?, real_in(fa)?).reverse(),
            (1..=6 | 8 | 9, 7) => int_real(record::read_int(ta as u64, fa)?, real_in(fb)?),
            (12.., 12..) if (ta | tb) & 1 == 0 => fa.cmp(fb),
            (0, 0) => Equal,
            _ => return None,
        };
        if o.is_ne() {
            return Some((k, field.direct(o, false)));
        }
        (at_a, at_b) = (at_a + fa.len(), at_b + fb.len());
    }
    Some((n, Equal))
}

#[inline(never)]
fn any_difference(a: &[u8], b: &[u8], n: usize, info: &KeyInfo) -> Result<(usize, Ordering)> {
    let (mut ha, mut hb) = (Header::new(a)?, Header::new(b)?);
    for (k, field) in info.fields.iter().take(n).enumerate() {
        let (Some((ta, fa)), Some((tb, fb))) = (ha.next(a)?, hb.next(b)?) else {
            return Ok((n, Equal));
        };
        let o = match (ta, tb) {
            (1..=6 | 8 | 9, 1..=6 | 8 | 9) => record::read_int(ta, fa).cmp(&record::read_int(tb, fb)),
            (13.., 13..) if ta & tb & 1 == 1 && info.enc == Encoding::Utf8 => field.coll.compare(fa, fb),
            (13.., 13..) if ta & tb & 1 == 1 => both_stored(fa, fb, &field.coll, info.enc)?,
            _ => {
                let k = record::value_of(tb, fb, info.enc)?;
                field_cmp(ta, fa, &k, &field.coll, info.enc)?
            }
        };
        if o.is_ne() {
            return Ok((k, field.direct(o, ta == 0 || tb == 0)));
        }
    }
    Ok((n, Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_records_differ_as_any_do() {
        let mut x = 1u32;
        let mut draw = |n: u32| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) % n
        };
        let info = KeyInfo {
            fields: (0..3)
                .map(|k| KeyField {
                    coll: if k == 1 { Collation::Nocase } else { Collation::Binary },
                    desc: k == 1,
                    nulls_large: k == 2,
                })
                .collect(),
            columns: 3,
            enc: Encoding::Utf8,
        };
        let texts = ["", "a", "A", "ab", "a longer text of forty bytes and some more", "aB"];
        let mut record = || {
            let values: Vec<Value> = (0..draw(5))
                .map(|_| match draw(8) {
                    0 => Value::Null,
                    1 => Value::Real(draw(6) as f64 / 2.0),
                    2 => Value::blob(texts[draw(6) as usize].as_bytes()).unwrap(),
                    3 | 4 => Value::Int([0, 1, 2, -1, 300, 1 << 40][draw(6) as usize]),
                    _ => Value::text(texts[draw(6) as usize]).unwrap(),
                })
                .collect();
            let mut out = Vec::new();
            record::encode(&values, Encoding::Utf8, &mut out).unwrap();
            out
        };
        for _ in 0..20_000 {
            let (a, b) = (record(), record());
            let key: Vec<Value> = record::decode(&b, Encoding::Utf8).unwrap().into_iter().take(3).collect();
            let probe = Probe::new(&key, &info, Less);
            assert_eq!(probe.compare(&a).unwrap(), probe.long(&a).unwrap(), "{a:?} {key:?}");
            for n in 0..=3 {
                let any = any_difference(&a, &b, n, &info).unwrap();
                assert_eq!(first_difference(&a, &b, n, &info).unwrap(), any, "{a:?} {b:?}");
            }
        }
    }
}

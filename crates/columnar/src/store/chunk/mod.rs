//! One column of one segment, encoded; and dictionaries, which all segments of a column share.
//!
//! What always holds: a chunk is a pure function of the pages it was built from (and, for codes of a dictionary, of
//! the entries that were added before, which never change). Codes are as narrow as the segment's values allow, and
//! byte-aligned: a filter compares them as they are.

mod codes;
mod dictionary;
pub(crate) mod image;

pub(crate) use codes::Codes;
pub(crate) use dictionary::Dict;
pub use dictionary::set_dictionary_entries;

use crate::memory::room;
use iolite_base::{Result, alloc, hash::hash_bytes};
use iolite_value::Value;
use iolite_value::order::ValueRef;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Which rows are NULL.
#[derive(Default)]
pub(crate) struct Nulls(Vec<u64>);

impl Nulls {
    fn of(rows: &[u32], len: usize) -> Option<Nulls> {
        if rows.is_empty() {
            return None;
        }
        let mut bits = vec![0u64; len.div_ceil(64)];
        for r in rows {
            bits[*r as usize / 64] |= 1 << (r % 64);
        }
        Some(Nulls(bits))
    }

    /// Whether row `i` is NULL.
    #[inline(always)]
    pub fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 != 0
    }
}

/// What a column's values in a segment look like.
pub(crate) enum Data {
    /// Integers `base`, `base + 1`, ...
    Sequence { base: i64 },
    /// Integers `base + code`; with `nulls`, code 0 is NULL.
    Int { base: i64, nulls: bool, codes: Codes },
    /// Integers that lie too far apart for codes.
    Wide { values: Vec<i64>, nulls: Option<Nulls> },
    /// Reals.
    Real { values: Vec<f64>, nulls: Option<Nulls> },
    /// Values of any kind: entries of the column's dictionary.
    Dict { codes: Codes },
    /// Values of any kind, one by one: many different texts.
    Plain(Plain),
    /// Not here: only what kind of values there are is known. Nobody reads them.
    Away(Shape),
}

/// Of what kind values are that are not here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Shape {
    Int { nulls: bool },
    Real { nulls: bool },
    Dict,
    Plain,
}

/// A column of a segment.
pub(crate) struct Chunk {
    pub data: Data,
    /// Rows.
    pub len: usize,
    /// Least and greatest integer; `min > max`: there is none. For integers only.
    pub min: i64,
    pub max: i64,
    /// Of a derived column: some row has no match.
    pub absent: bool,
    counted: usize,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        alloc::release(self.counted);
    }
}

/// Values that lie one behind the other.
#[derive(Default)]
pub(crate) struct Plain {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

/// A value in bytes that are held elsewhere.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Entry {
    kind: Kind,
    len: u32,
    /// The number's bits, or where the bytes begin.
    data: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Null,
    Int,
    Real,
    Text,
    Blob,
}

/// A field as it is read from a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl<'a> Field<'a> {
    /// Puts the value in the place of another, whose room a text takes over.
    pub fn put(self, to: &mut Value) -> Result<()> {
        match self {
            Field::Text(t) => to.set_text(t),
            other => {
                *to = other.value()?;
                Ok(())
            }
        }
    }

    /// The same as a value.
    pub fn value(self) -> Result<Value> {
        Ok(match self {
            Field::Null => Value::Null,
            Field::Int(i) => Value::Int(i),
            Field::Real(r) => Value::real(r),
            Field::Text(b) => Value::text(b)?,
            Field::Blob(b) => Value::blob(b)?,
        })
    }

    /// A value's field.
    pub fn of(v: &'a Value) -> Field<'a> {
        match v {
            Value::Null => Field::Null,
            Value::Int(i) => Field::Int(*i),
            Value::Real(r) => Field::Real(*r),
            Value::Text(b, _) => Field::Text(b),
            Value::Blob(b, _) => Field::Blob(b),
        }
    }

    /// The same for sorts.
    #[inline]
    pub fn as_ref(self) -> ValueRef<'a> {
        match self {
            Field::Null => ValueRef::Null,
            Field::Int(i) => ValueRef::Int(i),
            Field::Real(r) => ValueRef::Real(r),
            Field::Text(b) => ValueRef::Text(b),
            Field::Blob(b) => ValueRef::Blob(b),
        }
    }

    fn parts(self) -> (Kind, u64, &'a [u8]) {
        match self {
            Field::Null => (Kind::Null, 0, &[]),
            Field::Int(i) => (Kind::Int, i as u64, &[]),
            Field::Real(r) => (Kind::Real, r.to_bits(), &[]),
            Field::Text(b) => (Kind::Text, 0, b),
            Field::Blob(b) => (Kind::Blob, 0, b),
        }
    }

    /// A number that equal fields share, quickly made and not for disk.
    #[inline(always)]
    pub fn quick_hash(self) -> u32 {
        let (kind, data, bytes) = self.parts();
        quick_hash(kind, data, bytes)
    }

    /// Whether it is the same value, not only an equal one.
    #[inline(always)]
    pub fn is_same(self, other: Field<'_>) -> bool {
        let (a, b) = (self.parts(), other.parts());
        a.0 == b.0 && a.1 == b.1 && a.2.len() == b.2.len() && same_bytes(a.2, b.2)
    }

    /// A number that equal fields share.
    pub fn hash(self) -> u64 {
        let (kind, data, bytes) = self.parts();
        let h = if bytes.is_empty() { data.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { hash_bytes(bytes) };
        (h ^ (kind as u64) << 59).wrapping_mul(0xff51_afd7_ed55_8ccd)
    }
}

fn field_of<'b>(e: &Entry, bytes: &'b [u8]) -> Field<'b> {
    let run = || &bytes[e.data as usize..e.data as usize + e.len as usize];
    match e.kind {
        Kind::Null => Field::Null,
        Kind::Int => Field::Int(e.data as i64),
        Kind::Real => Field::Real(f64::from_bits(e.data)),
        Kind::Text => Field::Text(run()),
        Kind::Blob => Field::Blob(run()),
    }
}

impl Plain {
    /// Adds a value.
    pub fn push(&mut self, f: Field<'_>) -> Result<()> {
        let (kind, data, bytes) = f.parts();
        let data = if matches!(kind, Kind::Text | Kind::Blob) { self.bytes.len() as u64 } else { data };
        alloc::reserve(&mut self.entries, 1)?;
        alloc::reserve(&mut self.bytes, bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        self.entries.push(Entry { kind, len: bytes.len() as u32, data });
        Ok(())
    }

    /// A value.
    #[inline]
    pub fn get(&self, i: usize) -> Field<'_> {
        field_of(&self.entries[i], &self.bytes)
    }

    /// What it takes.
    pub fn held(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }
}

/// The first and the last bytes of a run of up to 16: together they are all of it.
#[inline(always)]
fn ends(b: &[u8]) -> Option<(u64, u64)> {
    if let (Some(x), Some(y), true) = (b.first_chunk::<8>(), b.last_chunk::<8>(), b.len() <= 16) {
        return Some((u64::from_le_bytes(*x), u64::from_le_bytes(*y)));
    }
    if let (Some(x), Some(y), true) = (b.first_chunk::<4>(), b.last_chunk::<4>(), b.len() <= 8) {
        return Some((u32::from_le_bytes(*x) as u64, u32::from_le_bytes(*y) as u64));
    }
    match *b {
        [] => Some((0, 0)),
        [x] => Some((x as u64, 0)),
        [x, y] => Some((x as u64, y as u64)),
        [x, y, z] => Some((x as u64 | (y as u64) << 8, z as u64)),
        _ => None,
    }
}

/// Whether two runs of the same length are equal. Most are short: no call is made for these.
#[inline(always)]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    match (ends(a), ends(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

/// A number that equal values share; of what a dictionary is looked up by, and not for disk.
#[inline(always)]
fn quick_hash(kind: Kind, data: u64, bytes: &[u8]) -> u32 {
    let (a, b) = match kind {
        Kind::Text | Kind::Blob => ends(bytes).unwrap_or_else(|| (hash_bytes(bytes), 0)),
        _ => (data, 0),
    };
    let k = bytes.len() as u64 | (kind as u64) << 59;
    let m = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ k ^ 0xc2b2_ae3d_27d4_eb4f) as u128;
    let h = (m as u64) ^ (m >> 64) as u64;
    (h ^ h >> 32) as u32
}

impl Chunk {
    fn new(data: Data, len: usize, min: i64, max: i64) -> Result<Chunk> {
        let mut c = Chunk { data, len, min, max, absent: false, counted: 0 };
        let n = c.bytes();
        alloc::claim(n)?;
        c.counted = n;
        Ok(c)
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        64 + match &self.data {
            Data::Sequence { .. } => 0,
            Data::Int { codes, .. } | Data::Dict { codes } => codes.bytes(),
            Data::Wide { values, nulls } => values.len() * 8 + nulls.as_ref().map_or(0, |n| n.0.len() * 8),
            Data::Real { values, nulls } => values.len() * 8 + nulls.as_ref().map_or(0, |n| n.0.len() * 8),
            Data::Plain(p) => p.bytes.len() + p.entries.len() * size_of::<Entry>(),
            Data::Away(_) => 0,
        }
    }

    /// What is left of it when its values go.
    pub fn away(&self) -> Result<Chunk> {
        Chunk::new(Data::Away(self.shape()), self.len, self.min, self.max)
    }

    /// Of what kind the values are.
    pub fn shape(&self) -> Shape {
        let nulls = self.may_be_null();
        match &self.data {
            Data::Dict { .. } => Shape::Dict,
            Data::Plain(_) => Shape::Plain,
            Data::Real { .. } => Shape::Real { nulls },
            Data::Away(s) => *s,
            _ => Shape::Int { nulls },
        }
    }

    /// Whether all entries are in this dictionary, if the values are entries.
    pub fn is_of(&self, dict: &Dict) -> bool {
        match &self.data {
            Data::Dict { codes } => (0..self.len).all(|i| (codes.get(i) as usize) < dict.len()),
            _ => true,
        }
    }

    /// Integers, some of them NULL (whose place in `values` does not count). The vector is taken only where it stays as it is.
    pub fn of_ints(values: &mut Vec<i64>, nulls: &[u32]) -> Result<Chunk> {
        let len = values.len();
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        let mut next_null = nulls.iter().copied().peekable();
        if nulls.is_empty() {
            for v in values.iter() {
                min = min.min(*v);
                max = max.max(*v);
            }
        } else {
            for (i, v) in values.iter().enumerate() {
                if next_null.peek() == Some(&(i as u32)) {
                    next_null.next();
                    continue;
                }
                min = min.min(*v);
                max = max.max(*v);
            }
        }
        if min > max {
            let mut codes = room(len)?;
            codes.resize(len, 0u8);
            return Chunk::new(Data::Int { base: 0, nulls: true, codes: Codes::U8(codes) }, len, 1, 0);
        }
        let span = max.wrapping_sub(min) as u64;
        if max < min.saturating_add(u32::MAX as i64 - 1) && span < u32::MAX as u64 - 1 && min > i64::MIN {
            let shift = !nulls.is_empty() as i64;
            let base = min - shift;
            for n in nulls {
                values[*n as usize] = base;
            }
            let codes = Codes::pack_by(values, |v| v.wrapping_sub(base) as u32, span as u32 + shift as u32)?;
            return Chunk::new(Data::Int { base, nulls: shift != 0, codes }, len, min, max);
        }
        let values = std::mem::take(values);
        Chunk::new(Data::Wide { nulls: Nulls::of(nulls, len), values }, len, min, max)
    }

    /// Consecutive integers.
    pub fn of_sequence(base: i64, len: usize) -> Result<Chunk> {
        Chunk::new(Data::Sequence { base }, len, base, base + len as i64 - 1)
    }

    /// Integers as codes; `min` and `max` bound them.
    pub fn of_int_codes(
        base: i64,
        nulls: bool,
        codes: Codes,
        len: usize,
        min: i64,
        max: i64,
    ) -> Result<Chunk> {
        Chunk::new(Data::Int { base, nulls, codes }, len, min, max)
    }

    /// Entries of a dictionary, packed.
    pub fn of_dict_codes(codes: Codes, len: usize) -> Result<Chunk> {
        Chunk::new(Data::Dict { codes }, len, 1, 0)
    }

    /// Row numbers: mostly consecutive.
    pub fn of_rowids(values: &mut Vec<i64>) -> Result<Chunk> {
        match (values.first(), values.last()) {
            (Some(a), Some(b)) if b.wrapping_sub(*a) as u64 == values.len() as u64 - 1 => {
                // Row numbers ascend, so these leave no gap.
                Chunk::new(Data::Sequence { base: *a }, values.len(), *a, *b)
            }
            _ => Chunk::of_ints(values, &[]),
        }
    }

    /// Reals.
    pub fn of_reals(values: Vec<f64>, nulls: &[u32]) -> Result<Chunk> {
        let len = values.len();
        Chunk::new(Data::Real { nulls: Nulls::of(nulls, len), values }, len, 1, 0)
    }

    /// Entries of a dictionary.
    pub fn of_codes(codes: &[u32]) -> Result<Chunk> {
        let max = codes.iter().copied().max().unwrap_or(0);
        Chunk::new(Data::Dict { codes: Codes::pack(codes, max)? }, codes.len(), 1, 0)
    }

    /// Values one by one.
    pub fn of_plain(p: Plain) -> Result<Chunk> {
        let len = p.entries.len();
        Chunk::new(Data::Plain(p), len, 1, 0)
    }

    /// A chunk that was built beside an empty dictionary, as it would have been built beside the column's: the same
    /// entries are added to that, in the order in which the rows meet them. `real`: integers stand for reals.
    pub fn renumbered(self, own: &Dict, all: &mut Arc<Dict>, real: bool) -> Result<Chunk> {
        let codes = match &self.data {
            Data::Dict { codes } => {
                let all = Arc::make_mut(all);
                let mut to: Vec<u32> = room(own.len())?;
                for i in 0..own.len() as u32 {
                    let Some(c) = all.code(own.get(i))? else { break };
                    to.push(c);
                }
                match to.len() == own.len() {
                    true if to.iter().zip(0..).all(|(a, b)| *a == b) => return Ok(self),
                    true => {
                        let mut out: Vec<u32> = room(self.len)?;
                        out.extend((0..self.len).map(|i| to[codes.get(i) as usize]));
                        Some(out)
                    }
                    false => None,
                }
            }
            // Other segments of the column hold texts.
            Data::Sequence { .. } | Data::Int { .. } | Data::Wide { .. } | Data::Real { .. }
                if all.len() > 0 && !real =>
            {
                let all = Arc::make_mut(all);
                let mut out: Vec<u32> = room(self.len)?;
                for i in 0..self.len {
                    let Some(c) = all.code(self.field(i, own))? else { break };
                    out.push(c);
                }
                Some(out).filter(|o| o.len() == self.len)
            }
            _ => return Ok(self),
        };
        match codes {
            Some(codes) => Chunk::of_codes(&codes),
            None => {
                // The dictionary is full.
                let mut p = Plain::default();
                (0..self.len).try_for_each(|i| p.push(self.field(i, own)))?;
                Chunk::of_plain(p)
            }
        }
    }

    /// Whether all values are integers or NULL.
    pub fn is_int(&self) -> bool {
        matches!(self.data, Data::Sequence { .. } | Data::Int { .. } | Data::Wide { .. })
    }

    /// Whether some value may be NULL.
    pub fn may_be_null(&self) -> bool {
        match &self.data {
            Data::Sequence { .. } => false,
            Data::Int { nulls, .. } => *nulls,
            Data::Wide { nulls, .. } | Data::Real { nulls, .. } => nulls.is_some(),
            Data::Away(Shape::Int { nulls } | Shape::Real { nulls }) => *nulls,
            _ => true,
        }
    }

    /// The integer in row `i`; `None` is NULL. Only where [`Chunk::is_int`].
    #[inline(always)]
    pub fn int(&self, i: usize) -> Option<i64> {
        match &self.data {
            Data::Sequence { base } => Some(base + i as i64),
            Data::Int { base, nulls, codes } => {
                let c = codes.get(i);
                if *nulls && c == 0 { None } else { Some(base + c as i64) }
            }
            Data::Wide { values, nulls } => match nulls {
                Some(n) if n.has(i) => None,
                _ => Some(values[i]),
            },
            _ => None,
        }
    }

    /// The bits of the real in row `i`; `None` is NULL.
    pub fn real_bits(&self, i: usize) -> Option<u64> {
        match &self.data {
            Data::Real { values, nulls } if nulls.as_ref().is_none_or(|n| !n.has(i)) => {
                Some(values[i].to_bits())
            }
            _ => None,
        }
    }

    /// The value in row `i`.
    #[inline]
    pub fn field<'c>(&'c self, i: usize, dict: &'c Dict) -> Field<'c> {
        match &self.data {
            Data::Dict { codes } => dict.get(codes.get(i)),
            Data::Plain(p) => p.get(i),
            Data::Real { values, nulls } => match nulls {
                Some(n) if n.has(i) => Field::Null,
                _ if values[i].is_nan() => Field::Null,
                _ => Field::Real(values[i]),
            },
            _ => self.int(i).map_or(Field::Null, Field::Int),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_whatever_their_span() {
        for values in [
            vec![5],
            vec![0, 255],
            vec![-1, 255],
            vec![7, 7 + 65_535, 9],
            vec![i64::MIN, i64::MAX, 0],
            vec![i64::MIN, i64::MIN + 1],
            vec![i64::MAX - 1, i64::MAX],
            vec![-4_000_000_000, 0],
            vec![0, u32::MAX as i64 - 2],
            vec![0, u32::MAX as i64],
        ] {
            for nulls in [vec![], vec![0u32]] {
                let mut v = values.clone();
                if !nulls.is_empty() {
                    v.insert(0, 99);
                }
                let c = Chunk::of_ints(&mut v.clone(), &nulls).unwrap();
                for (i, x) in v.iter().enumerate() {
                    let want = if nulls.contains(&(i as u32)) { None } else { Some(*x) };
                    assert_eq!(c.int(i), want, "{v:?}");
                }
            }
        }
    }

    #[test]
    fn a_dictionary_tells_one_from_one_point_zero() {
        let mut d = Dict::default();
        let fields = [Field::Int(1), Field::Real(1.0), Field::Text(b"1"), Field::Blob(b"1"), Field::Null];
        let codes: Vec<_> = fields.iter().map(|f| d.code(*f).unwrap().unwrap()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
        for i in 0..1000 {
            d.code(Field::Int(i)).unwrap();
        }
        assert!(fields.iter().zip(&codes).all(|(f, c)| d.code(*f).unwrap() == Some(*c)));
    }

    #[test]
    fn renumbered_chunks_say_what_they_said() {
        let mut all = Arc::new(Dict::default());
        let texts: Vec<String> = (0..300).map(|i| format!("t{}", i * 7 % 50)).collect();
        let mut ask = |c: Chunk, own: &Dict| {
            let said =
                |c: &Chunk, d: &Dict| format!("{:?}", (0..c.len).map(|i| c.field(i, d)).collect::<Vec<_>>());
            let want = said(&c, own);
            let c = c.renumbered(own, &mut all, false).unwrap();
            assert_eq!(said(&c, &all), want);
            matches!(c.data, Data::Dict { .. })
        };
        let ints = || Chunk::of_ints(&mut vec![5, 0, 7], &[1]).unwrap();
        // Beside an empty dictionary numbers stay what they are.
        assert!(!ask(ints(), &Dict::default()));
        for from in [0, 100, 200] {
            let mut own = Dict::default();
            let codes: Vec<u32> = texts[from..from + 90]
                .iter()
                .map(|t| own.code(Field::Text(t.as_bytes())).unwrap().unwrap())
                .collect();
            assert!(ask(Chunk::of_codes(&codes).unwrap(), &own));
        }
        assert!(ask(ints(), &Dict::default()));
        assert!(ask(Chunk::of_reals(vec![1.5, 0.0], &[1]).unwrap(), &Dict::default()));
        let full = Arc::make_mut(&mut all);
        while full.code(Field::Int(full.len() as i64)).unwrap().is_some() {}
        let mut own = Dict::default();
        let codes =
            [Field::Text(b"t0"), Field::Text(b"new"), Field::Null].map(|f| own.code(f).unwrap().unwrap());
        let c = Chunk::of_codes(&codes).unwrap().renumbered(&own, &mut all, false).unwrap();
        assert!(matches!(c.field(1, &all), Field::Text(b"new")) && matches!(c.data, Data::Plain(_)));
    }
}

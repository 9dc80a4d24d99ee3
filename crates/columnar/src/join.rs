//! The inner sides of joins: a table's rows by key.
//!
//! Keys that lie close together become an array, all others a hash table. A table whose rowid is the key, without
//! gaps, needs neither: a row's place is its key; with gaps, the number of keys before it leads to the row. A key may be
//! of several columns of integers: they are made one number. Rows with equal keys hang together in the order of the
//! table. NULL is no key.

use crate::chunk::{Chunk, Codes, Data, Field, room};
use crate::evict::within;
use crate::expr::Eval;
use crate::kernel::{BLOCK, Bits, Selection};
use crate::pred::{Columns, Kind, Pred};
use iolite_base::{Code, Result, alloc};
use iolite_value::{Affinity, Value};
use std::collections::HashMap;

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// Keys of a smaller span are looked up in an array of rows.
const NEAR: u64 = 1 << 17;

/// How a key leads to a row.
enum Map {
    /// The row `key - min`, if its bit is set.
    Place {
        min: i64,
    },
    /// Keys ascend with the rows: of those that passed, the one with as many keys before it. Counted for each word.
    Rank {
        min: i64,
        before: Vec<u32>,
    },
    /// The row noted for `key - min`, if its bit is set.
    Array {
        min: i64,
        rows: Vec<u32>,
    },
    Hash(Numbers),
    Text(HashMap<Box<[u8]>, u32>),
}

/// Rows by numbers that lie far apart.
struct Numbers {
    keys: Vec<i64>,
    rows: Vec<u32>,
}

impl Numbers {
    fn new(n: usize) -> Result<Numbers> {
        let size = (n * 2).next_power_of_two().max(64);
        within(size * 12)?;
        let (mut keys, mut rows) = (room(size)?, room(size)?);
        keys.resize(size, 0);
        rows.resize(size, NONE);
        Ok(Numbers { keys, rows })
    }

    /// Where a key is, or would be.
    #[inline(always)]
    fn at(&self, key: i64) -> usize {
        let m = key as u64 as u128 * 0x9e37_79b9_7f4a_7c15;
        let mask = self.keys.len() - 1;
        let mut at = ((m as u64) ^ (m >> 64) as u64) as usize & mask;
        while self.rows[at] != NONE && self.keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Several columns as one key: each value less the least, in a number system of the columns' spans.
struct Combined {
    parts: Vec<(i64, i64)>,
}

/// A table's rows by key.
pub(crate) struct Inner {
    map: Map,
    /// Which keys there are, less the least.
    pub bits: Option<Bits>,
    /// The next row with the same key.
    next: Option<Vec<u32>>,
    /// Rows that satisfy the table's own conditions.
    pub passed: Vec<u32>,
    /// Least and greatest integer key of these.
    pub bounds: (i64, i64),
    /// How a key is converted before it is looked up.
    affinity: Affinity,
    combined: Option<Combined>,
}

/// Calls `f` with each block of rows of a table that satisfy conditions on it: the part's number, where the block
/// begins, and the rows within it.
#[allow(clippy::type_complexity)]
pub(crate) fn each_block(
    cols: &Columns,
    preds: &[Pred],
    col_of: &[Option<usize>],
    eval: &Eval<'_>,
    f: &mut dyn FnMut(usize, usize, &[u16]) -> Result<()>,
) -> Result<()> {
    let mut sel = Selection::new();
    for (k, part) in cols.loaded.parts.iter().enumerate() {
        if preds.iter().any(|p| p.excludes(part)) {
            continue;
        }
        let mut from = 0;
        while from < part.rows {
            let span = from..(from + BLOCK).min(part.rows);
            sel.fill(span.len());
            for p in preds {
                p.select(cols, k, span.clone(), col_of, eval, &mut sel)?;
            }
            if sel.len() > 0 {
                f(k, from, sel.rows())?;
            }
            from = span.end;
        }
    }
    Ok(())
}

/// Adds the integers of some rows of a block, and the rows whose integer is there.
fn take_ints(
    chunk: &Chunk,
    from: usize,
    start: usize,
    at: &[u16],
    keys: &mut Vec<i64>,
    rows: &mut Vec<u32>,
) -> Result<()> {
    within(keys.len() * 12)?;
    alloc::reserve(keys, at.len())?;
    alloc::reserve(rows, at.len())?;
    if chunk.may_be_null() {
        for &i in at {
            if let Some(v) = chunk.int(from + i as usize) {
                keys.push(v);
                rows.push((start + from + i as usize) as u32);
            }
        }
        return Ok(());
    }
    rows.extend(at.iter().map(|i| (start + from + *i as usize) as u32));
    match &chunk.data {
        Data::Int { base, codes, .. } => {
            keys.extend(at.iter().map(|i| base + codes.get(from + *i as usize) as i64));
        }
        Data::Sequence { base } => keys.extend(at.iter().map(|i| base + (from + *i as usize) as i64)),
        _ => keys.extend(at.iter().map(|i| chunk.int(from + *i as usize).unwrap_or(0))),
    }
    Ok(())
}

impl Inner {
    /// Builds the rows of a table by columns `keys`; `ascending`: their values ascend with the rows. `None`: values are
    /// of a kind that is not known here.
    #[allow(clippy::too_many_arguments)]
    pub fn build(
        cols: &Columns,
        keys: &[usize],
        ascending: bool,
        affinity: Affinity,
        binary: bool,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Option<Inner>> {
        match *keys {
            [key] => match cols.kinds[key] {
                Kind::Int => Inner::by_int(cols, key, ascending, affinity, preds, col_of, eval).map(Some),
                Kind::Dict | Kind::Mixed if binary && !affinity.is_numeric() => {
                    Inner::by_text(cols, key, affinity, preds, col_of, eval)
                }
                _ => Ok(None),
            },
            _ => Inner::by_several(cols, keys, affinity, preds, col_of, eval),
        }
    }

    /// Whether columns of integers can be one key.
    pub fn can_combine(cols: &Columns, keys: &[usize]) -> bool {
        keys.iter().all(|k| cols.kinds[*k] == Kind::Int) && Inner::combination(cols, keys).is_some()
    }

    fn combination(cols: &Columns, keys: &[usize]) -> Option<Combined> {
        let mut product = 1i64;
        let mut parts = Vec::new();
        for k in keys {
            let (min, max) = cols.bounds[*k];
            let span = if min > max { 1 } else { max.checked_sub(min)?.checked_add(1)? };
            product = product.checked_mul(span).filter(|p| *p < 1 << 62)?;
            parts.push((min, span));
        }
        Some(Combined { parts })
    }

    fn by_several(
        cols: &Columns,
        keys: &[usize],
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Option<Inner>> {
        let Some(combined) = Inner::combination(cols, keys) else { return Ok(None) };
        let (mut numbers, mut passed) = (Vec::new(), Vec::new());
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let part = &cols.loaded.parts[p];
            within(numbers.len() * 12)?;
            alloc::reserve(&mut numbers, at.len())?;
            alloc::reserve(&mut passed, at.len())?;
            'rows: for &i in at {
                let mut number = 0;
                for (k, (min, span)) in keys.iter().zip(&combined.parts) {
                    let Some(v) = part.cols[*k].int(from + i as usize) else { continue 'rows };
                    number = number * span + (v - min);
                }
                numbers.push(number);
                passed.push((part.start + from + i as usize) as u32);
            }
            Ok(())
        })?;
        let (map, next) = Inner::hashed(&numbers, &passed, cols.loaded.rows)?;
        let combined = Some(combined);
        Ok(Some(Inner { map, bits: None, next, passed, bounds: (1, 0), affinity, combined }))
    }

    /// A hash table; of equal keys the first row is the head, each points to the one that comes next.
    #[allow(clippy::type_complexity)]
    fn hashed(keys: &[i64], passed: &[u32], rows: usize) -> Result<(Map, Option<Vec<u32>>)> {
        let mut hash = Numbers::new(keys.len())?;
        let mut next: Option<Vec<u32>> = None;
        for (key, row) in keys.iter().zip(passed).rev() {
            let at = hash.at(*key);
            let head = std::mem::replace(&mut hash.rows[at], *row);
            hash.keys[at] = *key;
            if head != NONE {
                Inner::chain(&mut next, rows)?[*row as usize] = head;
            }
        }
        Ok((Map::Hash(hash), next))
    }

    /// The next row of each row.
    fn chain(next: &mut Option<Vec<u32>>, rows: usize) -> Result<&mut Vec<u32>> {
        if next.is_none() {
            let mut v = room(rows)?;
            v.resize(rows, NONE);
            *next = Some(v);
        }
        next.as_mut().ok_or_else(|| Code::Internal.into())
    }

    fn by_int(
        cols: &Columns,
        key: usize,
        ascending: bool,
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Inner> {
        let (min, max) = cols.bounds[key];
        let rows = cols.loaded.rows;
        let mut passed = Vec::new();
        let span = max.checked_sub(min).map(|d| d as u64);
        let dense = min <= max && span.is_some_and(|s| s < (rows as u64 * 16).max(1 << 16));
        let combined = None;
        let place = dense
            && span == Some(rows as u64 - 1)
            && cols.loaded.parts.iter().all(|p| match p.cols[key].data {
                Data::Sequence { base } => p.rows == 0 || base - min == p.start as i64,
                _ => p.rows == 0,
            });
        if place {
            let mut bits = Bits::new(rows)?;
            each_block(cols, preds, col_of, eval, &mut |p, from, at| {
                let start = cols.loaded.parts[p].start + from;
                alloc::reserve(&mut passed, at.len())?;
                for &i in at {
                    bits.set(start + i as usize);
                    passed.push((start + i as usize) as u32);
                }
                Ok(())
            })?;
            let bounds = match (passed.first(), passed.last()) {
                (Some(a), Some(b)) => (min + *a as i64, min + *b as i64),
                _ => (1, 0),
            };
            let map = Map::Place { min };
            return Ok(Inner { map, bits: Some(bits), next: None, passed, bounds, affinity, combined });
        }
        let mut keys: Vec<i64> = Vec::new();
        let mut bounds = (i64::MAX, i64::MIN);
        // A small array is as near as the bits and counts that would do as well.
        let wide = span.is_none_or(|s| s >= NEAR);
        if dense && ascending && wide {
            let mut bits = Bits::new((max - min + 1) as usize)?;
            each_block(cols, preds, col_of, eval, &mut |p, from, at| {
                let part = &cols.loaded.parts[p];
                keys.clear();
                take_ints(&part.cols[key], from, part.start, at, &mut keys, &mut passed)?;
                // Only a damaged file has rows out of order.
                if keys.first().is_some_and(|k| *k <= bounds.1) || !keys.is_sorted_by(|a, b| a < b) {
                    return Err(Code::Internal.into());
                }
                bounds.0 = bounds.0.min(keys.first().copied().unwrap_or(i64::MAX));
                bounds.1 = bounds.1.max(keys.last().copied().unwrap_or(i64::MIN));
                keys.iter().for_each(|k| {
                    bits.set((k - min) as usize);
                });
                Ok(())
            })?;
            let map = Map::Rank { min, before: bits.counts()? };
            return Ok(Inner { map, bits: Some(bits), next: None, passed, bounds, affinity, combined });
        }
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let part = &cols.loaded.parts[p];
            take_ints(&part.cols[key], from, part.start, at, &mut keys, &mut passed)
        })?;
        for k in &keys {
            bounds = (bounds.0.min(*k), bounds.1.max(*k));
        }
        if !dense {
            let (map, next) = Inner::hashed(&keys, &passed, rows)?;
            return Ok(Inner { map, bits: None, next, passed, bounds, affinity, combined });
        }
        let n = (max - min + 1) as usize;
        within(n * 4)?;
        let mut heads: Vec<u32> = room(n)?;
        heads.resize(n, NONE);
        let mut bits = Bits::new(n)?;
        let mut next: Option<Vec<u32>> = None;
        for (k, row) in keys.iter().zip(&passed).rev() {
            let at = (k - min) as usize;
            bits.set(at);
            let head = std::mem::replace(&mut heads[at], *row);
            if head != NONE {
                Inner::chain(&mut next, rows)?[*row as usize] = head;
            }
        }
        let map = Map::Array { min, rows: heads };
        Ok(Inner { map, bits: Some(bits), next, passed, bounds, affinity, combined })
    }

    fn by_text(
        cols: &Columns,
        key: usize,
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Option<Inner>> {
        let dict = &cols.loaded.dicts[key];
        let rows = cols.loaded.rows;
        let mut passed: Vec<u32> = Vec::new();
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let start = cols.loaded.parts[p].start + from;
            alloc::reserve(&mut passed, at.len())?;
            passed.extend(at.iter().map(|i| (start + *i as usize) as u32));
            Ok(())
        })?;
        let mut hash: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut next: Option<Vec<u32>> = None;
        let mut held = 0;
        for &row in passed.iter().rev() {
            let (p, i) = cols.locate(row as usize);
            let t = match cols.loaded.parts[p].cols[key].field(i, dict) {
                Field::Null => continue,
                Field::Text(t) => t,
                _ => return Ok(None),
            };
            match hash.get_mut(t) {
                None => {
                    held += t.len() + 48;
                    within(held)?;
                    hash.insert(t.into(), row);
                }
                Some(head) => {
                    Inner::chain(&mut next, rows)?[row as usize] = *head;
                    *head = row;
                }
            }
        }
        let map = Map::Text(hash);
        Ok(Some(Inner { map, bits: None, next, passed, bounds: (1, 0), affinity, combined: None }))
    }

    /// Whether no two rows have the same key.
    pub fn unique(&self) -> bool {
        self.next.is_none()
    }

    /// The least key, where keys are an array.
    pub fn base(&self) -> Option<i64> {
        match &self.map {
            Map::Place { min } | Map::Array { min, .. } | Map::Rank { min, .. } => Some(*min),
            _ => None,
        }
    }

    /// The first row with these integers in its key's columns.
    #[inline]
    pub fn find_ints(&self, values: impl Iterator<Item = i64>) -> u32 {
        let (Some(c), Map::Hash(h)) = (&self.combined, &self.map) else { return NONE };
        let mut number = 0;
        for (v, (min, span)) in values.zip(&c.parts) {
            match v.checked_sub(*min) {
                Some(d) if d >= 0 && d < *span => number = number * span + d,
                _ => return NONE,
            }
        }
        h.rows[h.at(number)]
    }

    /// The first row with an integer key.
    #[inline(always)]
    pub fn find_int(&self, key: i64) -> u32 {
        match (&self.map, &self.bits) {
            (Map::Place { min }, Some(bits)) => match usize::try_from(key.wrapping_sub(*min)) {
                Ok(at) if bits.has(at) && key >= *min => at as u32,
                _ => NONE,
            },
            (Map::Rank { min, before }, Some(bits)) => match usize::try_from(key.wrapping_sub(*min)) {
                Ok(at) if bits.has(at) && key >= *min => self.passed[bits.rank(at, before)],
                _ => NONE,
            },
            (Map::Array { min, rows }, _) => {
                if key < *min {
                    return NONE;
                }
                rows.get(key.wrapping_sub(*min) as u64 as usize).copied().unwrap_or(NONE)
            }
            (Map::Hash(h), _) => h.rows[h.at(key)],
            _ => NONE,
        }
    }

    /// The first rows with integers as keys: `base` and a code for each of some rows. `known`: all of them are keys.
    pub fn find_codes(&self, base: i64, codes: &Codes, rows: &[u32], known: bool, out: &mut Vec<u32>) {
        match (&self.map, &self.bits) {
            (Map::Place { min }, _) if known => {
                let shift = (base - min) as u32;
                codes.each(rows, |c| out.push(c.wrapping_add(shift)));
            }
            (Map::Array { min, rows: heads }, _) => {
                let shift = base.wrapping_sub(*min);
                codes.each(rows, |c| {
                    let at = shift.wrapping_add(c as i64) as u64 as usize;
                    out.push(heads.get(at).copied().unwrap_or(NONE));
                });
            }
            (Map::Rank { min, before }, Some(bits)) if known => {
                let shift = base - min;
                codes.each(rows, |c| out.push(self.passed[bits.rank((shift + c as i64) as usize, before)]));
            }
            _ => codes.each(rows, |c| out.push(self.find_int(base + c as i64))),
        }
    }

    /// The first row with a key of any kind.
    pub fn find(&self, key: &Value) -> Result<u32> {
        if key.is_null() {
            return Ok(NONE);
        }
        let text_map = matches!(self.map, Map::Text(_));
        if text_map {
            let mut v = key.clone();
            if self.affinity == Affinity::Text {
                Affinity::Text.apply(&mut v)?;
            }
            return Ok(match (&self.map, &v) {
                (Map::Text(h), Value::Text(t, _)) => h.get(&**t).copied().unwrap_or(NONE),
                _ => NONE,
            });
        }
        let mut v = key.clone();
        if self.affinity.is_numeric() {
            Affinity::Numeric.apply(&mut v)?;
        } else if self.affinity == Affinity::Text && !matches!(v, Value::Int(_)) {
            // Integers compared as texts: not here.
            return Err(Code::Internal.into());
        }
        Ok(match v {
            Value::Int(i) => self.find_int(i),
            Value::Real(r) => {
                let i = r as i64;
                if iolite_value::compare::int_real(i, r).is_eq() { self.find_int(i) } else { NONE }
            }
            _ => NONE,
        })
    }

    /// The next row with the same key.
    #[inline(always)]
    pub fn following(&self, row: u32) -> u32 {
        match &self.next {
            Some(n) => n[row as usize],
            None => NONE,
        }
    }
}

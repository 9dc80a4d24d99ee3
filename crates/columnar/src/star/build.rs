//! The inner sides of joins: a table's rows by key.
//!
//! Keys that lie close together become an array, all others a hash table. A table whose rowid is the key, without
//! gaps, needs neither: a row's place is its key; with gaps, the number of keys before it leads to the row. A key may be
//! of several columns of integers: they are made one number. Rows with equal keys hang together in the order of the
//! table. NULL is no key.

use crate::decline::DECLINED;
use crate::expr::Eval;
use crate::expr::batch::NONE;
use crate::expr::columns::{Columns, Kind};
use crate::expr::filter::Pred;
use crate::kernel::{BLOCK, Bits, Selection};
use crate::memory::room;
use crate::memory::work_size;
use crate::op::intern::Interner;
use crate::store::chunk::{Chunk, Codes, Data, Field};
use iolite_base::hash::hash_bytes;
use iolite_base::{Code, Result, alloc};
use iolite_value::{Affinity, Value};

/// No row in this share of the keys: another share says what there is.
pub(crate) const AWAY: u32 = u32::MAX - 1;

/// More shares than this, those of all tables multiplied, are too many: each is a scan.
pub(crate) const MOST_SHARES: u32 = 1 << 9;

/// Which keys a map holds: those whose hash, modulo `of`, is `nr`. A table whose map has no room is joined share by share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share {
    pub nr: u32,
    pub of: u32,
}

impl Share {
    pub const ALL: Share = Share { nr: 0, of: 1 };

    #[inline(always)]
    fn has(self, hash: u64) -> bool {
        self.of == 1 || (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32 % self.of == self.nr
    }
}

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
    Text(Box<Texts>),
}

/// A map of texts may be so large, whatever the limit says.
const SMALL_MAP: usize = 16384;

/// Rows by texts.
#[derive(Default)]
struct Texts {
    numbers: Interner,
    /// The first row of each.
    rows: Vec<u32>,
}

/// Rows by numbers that lie far apart.
struct Numbers {
    keys: Vec<i64>,
    rows: Vec<u32>,
}

impl Numbers {
    fn size(n: usize) -> usize {
        (n * 2).next_power_of_two().max(64)
    }

    /// Whether there is room for so many.
    fn fit(n: usize, most: usize) -> bool {
        Numbers::size(n) * 12 <= most.max(64 * 12)
    }

    fn new(n: usize) -> Result<Numbers> {
        let size = Numbers::size(n);
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

/// What came of building one.
enum Built {
    Done(InnerTable),
    /// Values are of a kind that is not known here.
    Unknown,
    /// It has no room.
    TooLarge,
}

/// A table's rows by key.
pub(crate) struct InnerTable {
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
    /// The keys that are held.
    pub share: Share,
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
    share: Share,
) -> Result<()> {
    alloc::reserve(keys, at.len())?;
    alloc::reserve(rows, at.len())?;
    if chunk.may_be_null() || share != Share::ALL {
        for &i in at {
            if let Some(v) = chunk.int(from + i as usize).filter(|v| share.has(*v as u64)) {
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

impl InnerTable {
    /// Builds the rows of a table by columns `keys`; `ascending`: their values ascend with the rows. Without a share that
    /// is asked for, it is the first one of as many as it takes. `None`: values are of a kind that is not known here.
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
        share: Option<Share>,
    ) -> Result<Option<InnerTable>> {
        // Later shares are somewhat larger than the first one, or smaller.
        let most = work_size().saturating_mul(if share.is_some_and(|s| s.of > 1) { 4 } else { 1 });
        let make = |share: Share| match *keys {
            [key] => match cols.kinds[key] {
                Kind::Int => {
                    InnerTable::by_int(cols, key, ascending, affinity, preds, col_of, eval, share, most)
                }
                Kind::Dict | Kind::Mixed if binary && !affinity.is_numeric() => {
                    InnerTable::by_text(cols, key, affinity, preds, col_of, eval, share, most)
                }
                _ => Ok(Built::Unknown),
            },
            _ => InnerTable::by_several(cols, keys, affinity, preds, col_of, eval, share, most),
        };
        let mut next = share.unwrap_or(Share::ALL);
        loop {
            match make(next)? {
                Built::Done(i) => return Ok(Some(i)),
                Built::Unknown => return Ok(None),
                // Of all keys twice as many shares are made; a share that is known has to do.
                Built::TooLarge if share.is_none() && next.of < MOST_SHARES => next.of *= 2,
                Built::TooLarge if next.of == 1 => return Ok(None),
                Built::TooLarge => return Err(DECLINED.into()),
            }
        }
    }

    /// Whether columns of integers can be one key.
    pub fn can_combine(cols: &Columns, keys: &[usize]) -> bool {
        keys.iter().all(|k| cols.kinds[*k] == Kind::Int) && InnerTable::combination(cols, keys).is_some()
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

    #[allow(clippy::too_many_arguments)]
    fn by_several(
        cols: &Columns,
        keys: &[usize],
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
        share: Share,
        most: usize,
    ) -> Result<Built> {
        let Some(combined) = InnerTable::combination(cols, keys) else { return Ok(Built::Unknown) };
        let (mut numbers, mut passed) = (Vec::new(), Vec::new());
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let part = &cols.loaded.parts[p];
            if !Numbers::fit(numbers.len(), most) {
                return Ok(());
            }
            alloc::reserve(&mut numbers, at.len())?;
            alloc::reserve(&mut passed, at.len())?;
            'rows: for &i in at {
                let mut number = 0;
                for (k, (min, span)) in keys.iter().zip(&combined.parts) {
                    let Some(v) = part.cols[*k].int(from + i as usize) else { continue 'rows };
                    number = number * span + (v - min);
                }
                if !share.has(number as u64) {
                    continue;
                }
                numbers.push(number);
                passed.push((part.start + from + i as usize) as u32);
            }
            Ok(())
        })?;
        if !Numbers::fit(numbers.len(), most) {
            return Ok(Built::TooLarge);
        }
        let (map, next) = InnerTable::hashed(&numbers, &passed, cols.loaded.rows)?;
        let combined = Some(combined);
        Ok(Built::Done(InnerTable {
            map,
            bits: None,
            next,
            passed,
            bounds: (1, 0),
            affinity,
            combined,
            share,
        }))
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
                InnerTable::chain(&mut next, rows)?[*row as usize] = head;
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

    #[allow(clippy::too_many_arguments)]
    fn by_int(
        cols: &Columns,
        key: usize,
        ascending: bool,
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
        share: Share,
        most: usize,
    ) -> Result<Built> {
        let (min, max) = cols.bounds[key];
        let rows = cols.loaded.rows;
        let mut passed = Vec::new();
        let span = max.checked_sub(min).map(|d| d as u64);
        let dense = min <= max
            && share == Share::ALL
            && span.is_some_and(|s| s < (rows as u64 * 16).max(1 << 16) && s as usize / 8 <= most);
        let done = |map, bits, next, passed, bounds| {
            Ok(Built::Done(InnerTable { map, bits, next, passed, bounds, affinity, combined: None, share }))
        };
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
            let (map, bits) = (Map::Place { min }, Some(bits));
            return done(map, bits, None, passed, bounds);
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
                take_ints(&part.cols[key], from, part.start, at, &mut keys, &mut passed, share)?;
                // Only a damaged file has rows out of order.
                if keys.first().is_some_and(|k| *k <= bounds.1) || !keys.is_sorted_by(|a, b| a < b) {
                    return Err(Code::Corrupt.into());
                }
                bounds.0 = bounds.0.min(keys.first().copied().unwrap_or(i64::MAX));
                bounds.1 = bounds.1.max(keys.last().copied().unwrap_or(i64::MIN));
                keys.iter().for_each(|k| {
                    bits.set((k - min) as usize);
                });
                Ok(())
            })?;
            let (map, bits) = (Map::Rank { min, before: bits.counts()? }, Some(bits));
            return done(map, bits, None, passed, bounds);
        }
        let dense = dense && span.is_some_and(|s| s as usize * 4 <= most);
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let part = &cols.loaded.parts[p];
            if !dense && !Numbers::fit(keys.len(), most) {
                return Ok(());
            }
            take_ints(&part.cols[key], from, part.start, at, &mut keys, &mut passed, share)
        })?;
        if !dense && !Numbers::fit(keys.len(), most) {
            return Ok(Built::TooLarge);
        }
        for k in &keys {
            bounds = (bounds.0.min(*k), bounds.1.max(*k));
        }
        if !dense {
            let (map, next) = InnerTable::hashed(&keys, &passed, rows)?;
            return done(map, None, next, passed, bounds);
        }
        let n = (max - min + 1) as usize;
        let mut heads: Vec<u32> = room(n)?;
        heads.resize(n, NONE);
        let mut bits = Bits::new(n)?;
        let mut next: Option<Vec<u32>> = None;
        for (k, row) in keys.iter().zip(&passed).rev() {
            let at = (k - min) as usize;
            bits.set(at);
            let head = std::mem::replace(&mut heads[at], *row);
            if head != NONE {
                InnerTable::chain(&mut next, rows)?[*row as usize] = head;
            }
        }
        let (map, bits) = (Map::Array { min, rows: heads }, Some(bits));
        done(map, bits, next, passed, bounds)
    }

    #[allow(clippy::too_many_arguments)]
    fn by_text(
        cols: &Columns,
        key: usize,
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
        share: Share,
        most: usize,
    ) -> Result<Built> {
        let dict = &cols.loaded.dicts[key];
        let rows = cols.loaded.rows;
        let mut passed: Vec<u32> = Vec::new();
        each_block(cols, preds, col_of, eval, &mut |p, from, at| {
            let start = cols.loaded.parts[p].start + from;
            alloc::reserve(&mut passed, at.len())?;
            passed.extend(at.iter().map(|i| (start + *i as usize) as u32));
            Ok(())
        })?;
        let mut texts = Texts::default();
        let mut next: Option<Vec<u32>> = None;
        for &row in passed.iter().rev() {
            let (p, i) = cols.locate(row as usize);
            let t = match cols.loaded.parts[p].cols[key].field(i, dict) {
                Field::Null => continue,
                Field::Text(t) => t,
                _ => return Ok(Built::Unknown),
            };
            if share != Share::ALL && !share.has(hash_bytes(t)) {
                continue;
            }
            let number = texts.numbers.number(Field::Text(t))? as usize;
            match texts.rows.get_mut(number) {
                None => {
                    if texts.numbers.bytes() + 4 * number > most.max(SMALL_MAP) {
                        return Ok(Built::TooLarge);
                    }
                    alloc::reserve(&mut texts.rows, 1)?;
                    texts.rows.push(row);
                }
                Some(head) => {
                    InnerTable::chain(&mut next, rows)?[row as usize] = *head;
                    *head = row;
                }
            }
        }
        let map = Map::Text(Box::new(texts));
        let bounds = (1, 0);
        Ok(Built::Done(InnerTable { map, bits: None, next, passed, bounds, affinity, combined: None, share }))
    }

    /// Whether no two rows have the same key.
    pub fn unique(&self) -> bool {
        self.next.is_none()
    }

    /// Whether this is all of the table.
    pub fn is_whole(&self) -> bool {
        self.share == Share::ALL
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
                _ => return self.no_row(),
            }
        }
        match h.rows[h.at(number)] {
            NONE if !self.share.has(number as u64) => AWAY,
            row => row,
        }
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
            (Map::Hash(h), _) => match h.rows[h.at(key)] {
                NONE if !self.share.has(key as u64) => AWAY,
                row => row,
            },
            _ => NONE,
        }
    }

    /// What is found for NULL, and for what is no key.
    pub fn no_row(&self) -> u32 {
        if self.share.nr == 0 { NONE } else { AWAY }
    }

    /// The first rows with integers as keys: `base` and a code for each of some rows. `known`: all of them are keys.
    pub fn find_codes(&self, base: i64, codes: &Codes, rows: &[u32], known: bool, out: &mut Vec<u32>) {
        let from = out.len();
        out.resize(from + rows.len(), NONE);
        let mut to = out[from..].iter_mut();
        let mut put = |row: u32| {
            if let Some(to) = to.next() {
                *to = row;
            }
        };
        match (&self.map, &self.bits) {
            (Map::Place { min }, _) if known => {
                let shift = (base - min) as u32;
                codes.each(rows, |c| put(c.wrapping_add(shift)));
            }
            (Map::Array { min, rows: heads }, _) => {
                let shift = base.wrapping_sub(*min);
                codes.each(rows, |c| {
                    let at = shift.wrapping_add(c as i64) as u64 as usize;
                    put(heads.get(at).copied().unwrap_or(NONE));
                });
            }
            (Map::Rank { min, before }, Some(bits)) if known => {
                let shift = base - min;
                codes.each(rows, |c| put(self.passed[bits.rank((shift + c as i64) as usize, before)]));
            }
            _ => codes.each(rows, |c| put(self.find_int(base + c as i64))),
        }
    }

    /// The first row with a key of any kind.
    pub fn find(&self, key: &Value) -> Result<u32> {
        let nothing = self.no_row();
        if key.is_null() {
            return Ok(nothing);
        }
        let text_map = matches!(self.map, Map::Text(_));
        if text_map {
            let mut v = key.clone();
            if self.affinity == Affinity::Text {
                Affinity::Text.apply(&mut v)?;
            }
            return Ok(match (&self.map, &v) {
                (Map::Text(h), Value::Text(t, _)) => match h.numbers.find(Field::Text(t)) {
                    Some(number) => h.rows[number as usize],
                    None if self.share.has(hash_bytes(t)) => NONE,
                    None => AWAY,
                },
                _ => nothing,
            });
        }
        let mut v = key.clone();
        if self.affinity.is_numeric() {
            Affinity::Numeric.apply(&mut v)?;
        } else if self.affinity == Affinity::Text && !matches!(v, Value::Int(_)) {
            // Integers compared as texts: not here.
            return Err(DECLINED.into());
        }
        Ok(match v {
            Value::Int(i) => self.find_int(i),
            Value::Real(r) => {
                let i = r as i64;
                if iolite_value::compare::int_real(i, r).is_eq() { self.find_int(i) } else { nothing }
            }
            _ => nothing,
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

//! The inner sides of joins: a table's rows by key.
//!
//! Keys that lie close together become an array, all others a hash table. A table whose rowid is the key, without
//! gaps, needs neither: a row's place is its key. Rows with equal keys hang together in the order of the table. NULL
//! is no key.

use crate::chunk::{Data, Field};
use crate::expr::Eval;
use crate::kernel::{BLOCK, Bits, Selection};
use crate::pred::{Columns, Kind, Pred};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Result, alloc};
use iolite_value::{Affinity, Value};
use std::collections::HashMap;

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// How a key leads to a row.
enum Map {
    /// The row `key - min`, if its bit is set.
    Place {
        min: i64,
    },
    /// The row noted for `key - min`, if its bit is set.
    Array {
        min: i64,
        rows: Vec<u32>,
    },
    Hash(FastMap<i64, u32>),
    Text(HashMap<Box<[u8]>, u32>),
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
}

/// Calls `f` with each row of a table that satisfies conditions on it: the part's number, the row within, and the row
/// within the table.
pub(crate) fn each_row(
    cols: &Columns,
    preds: &[Pred],
    col_of: &[Option<usize>],
    eval: &Eval<'_>,
    f: &mut dyn FnMut(usize, usize, usize) -> Result<()>,
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
                p.select(cols, part, span.clone(), col_of, eval, &mut sel)?;
            }
            for &i in sel.rows() {
                let i = from + i as usize;
                f(k, i, part.start + i)?;
            }
            from = span.end;
        }
    }
    Ok(())
}

impl Inner {
    /// Builds the rows of a table by column `key`. `None`: its values are of a kind that is not known here.
    pub fn build(
        cols: &Columns,
        key: usize,
        affinity: Affinity,
        binary: bool,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Option<Inner>> {
        match cols.kinds[key] {
            Kind::Int => Inner::by_int(cols, key, affinity, preds, col_of, eval).map(Some),
            Kind::Dict | Kind::Mixed if binary && !affinity.is_numeric() => {
                Inner::by_text(cols, key, affinity, preds, col_of, eval)
            }
            _ => Ok(None),
        }
    }

    fn by_int(
        cols: &Columns,
        key: usize,
        affinity: Affinity,
        preds: &[Pred],
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
    ) -> Result<Inner> {
        let (min, max) = cols.bounds[key];
        let rows = cols.loaded.rows;
        let mut passed = Vec::new();
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        let span = max.checked_sub(min).map(|d| d as u64);
        let dense = min <= max && span.is_some_and(|s| s < (rows as u64 * 16).max(1 << 16));
        let place = dense
            && span == Some(rows as u64 - 1)
            && cols.loaded.parts.iter().all(|p| match p.cols[key].data {
                Data::Sequence { base } => p.rows == 0 || base - min == p.start as i64,
                _ => p.rows == 0,
            });
        if place {
            let mut bits = Bits::new(rows)?;
            each_row(cols, preds, col_of, eval, &mut |_, _, row| {
                bits.set(row);
                alloc::reserve(&mut passed, 1)?;
                passed.push(row as u32);
                Ok(())
            })?;
            let bounds = match (passed.first(), passed.last()) {
                (Some(a), Some(b)) => (min + *a as i64, min + *b as i64),
                _ => (1, 0),
            };
            let map = Map::Place { min };
            return Ok(Inner { map, bits: Some(bits), next: None, passed, bounds, affinity });
        }
        let mut heads: Vec<u32> = Vec::new();
        let mut bits = None;
        let mut hash: FastMap<i64, u32> = FastMap::default();
        if dense {
            let n = (max - min + 1) as usize;
            heads = crate::chunk::room(n)?;
            heads.resize(n, NONE);
            bits = Some(Bits::new(n)?);
        }
        // Of equal keys the first row is the head; each points to the one that comes next.
        let mut next: Option<Vec<u32>> = None;
        let mut tails: FastMap<u32, u32> = FastMap::default();
        each_row(cols, preds, col_of, eval, &mut |p, i, row| {
            let Some(v) = cols.loaded.parts[p].cols[key].int(i) else { return Ok(()) };
            (least, greatest) = (least.min(v), greatest.max(v));
            let row = row as u32;
            alloc::reserve(&mut passed, 1)?;
            passed.push(row);
            let head = match &mut bits {
                Some(b) => {
                    let at = (v - min) as usize;
                    if b.set(at) {
                        Some(heads[at])
                    } else {
                        heads[at] = row;
                        None
                    }
                }
                None => match hash.entry(v) {
                    std::collections::hash_map::Entry::Occupied(e) => Some(*e.get()),
                    std::collections::hash_map::Entry::Vacant(e) => {
                        e.insert(row);
                        None
                    }
                },
            };
            if let Some(head) = head {
                if next.is_none() {
                    let mut v = crate::chunk::room(rows)?;
                    v.resize(rows, NONE);
                    next = Some(v);
                }
                let tail = tails.insert(head, row).unwrap_or(head);
                if let Some(n) = &mut next {
                    n[tail as usize] = row;
                }
            }
            Ok(())
        })?;
        let map = if dense { Map::Array { min, rows: heads } } else { Map::Hash(hash) };
        Ok(Inner { map, bits, next, passed, bounds: (least, greatest), affinity })
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
        let mut hash: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut next: Option<Vec<u32>> = None;
        let mut tails: FastMap<u32, u32> = FastMap::default();
        let mut passed = Vec::new();
        let mut other = false;
        each_row(cols, preds, col_of, eval, &mut |p, i, row| {
            let t = match cols.loaded.parts[p].cols[key].field(i, dict) {
                Field::Null => return Ok(()),
                Field::Text(t) => t,
                _ => {
                    other = true;
                    return Ok(());
                }
            };
            let row = row as u32;
            alloc::reserve(&mut passed, 1)?;
            passed.push(row);
            match hash.get(t) {
                None => {
                    hash.insert(t.into(), row);
                }
                Some(&head) => {
                    if next.is_none() {
                        let mut v = crate::chunk::room(rows)?;
                        v.resize(rows, NONE);
                        next = Some(v);
                    }
                    let tail = tails.insert(head, row).unwrap_or(head);
                    if let Some(n) = &mut next {
                        n[tail as usize] = row;
                    }
                }
            }
            Ok(())
        })?;
        let map = Map::Text(hash);
        Ok((!other).then_some(Inner { map, bits: None, next, passed, bounds: (1, 0), affinity }))
    }

    /// Whether no two rows have the same key.
    pub fn unique(&self) -> bool {
        self.next.is_none()
    }

    /// The least key, where keys are an array.
    pub fn base(&self) -> Option<i64> {
        match &self.map {
            Map::Place { min } | Map::Array { min, .. } => Some(*min),
            _ => None,
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
            (Map::Array { min, rows }, _) => {
                if key < *min {
                    return NONE;
                }
                rows.get(key.wrapping_sub(*min) as u64 as usize).copied().unwrap_or(NONE)
            }
            (Map::Hash(h), _) => h.get(&key).copied().unwrap_or(NONE),
            _ => NONE,
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

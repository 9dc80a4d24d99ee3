//! Sorting records by key.
//!
//! Records lie one after the other in an arena; what is sorted are small entries with a prefix of the first key field
//! that decides most comparisons. Equal keys keep the order in which they came.

use iolite_base::{Result, alloc};
use iolite_value::{Collation, KeyInfo, Value, compare, record};
use std::cmp::Ordering;
use std::rc::Rc;

struct Entry {
    prefix: u64,
    at: usize,
    len: u32,
}

/// A sorter.
pub(crate) struct Sorter {
    key: Rc<KeyInfo>,
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// Only this many smallest records are wanted.
    limit: Option<usize>,
    next: usize,
}

impl Sorter {
    pub fn new(key: Rc<KeyInfo>, limit: Option<usize>) -> Sorter {
        Sorter { key, arena: Vec::new(), entries: Vec::new(), limit, next: 0 }
    }

    /// Adds a record.
    pub fn insert(&mut self, rec: &[u8]) -> Result<()> {
        alloc::reserve(&mut self.entries, 1)?;
        alloc::reserve(&mut self.arena, rec.len())?;
        let prefix = self.prefix(rec)?;
        let at = self.arena.len();
        self.arena.extend_from_slice(rec);
        self.entries.push(Entry { prefix, at, len: rec.len() as u32 });
        if let Some(n) = self.limit
            && self.entries.len() >= 2 * n + 64
        {
            self.cut(n)?;
        }
        Ok(())
    }

    /// An order-preserving 64-bit image of the first field: different prefixes decide, equal ones do not.
    fn prefix(&self, rec: &[u8]) -> Result<u64> {
        let Some(field) = self.key.fields.first() else { return Ok(0) };
        let mut h = record::Header::new(rec)?;
        let Some((t, bytes)) = h.next(rec)? else { return Ok(0) };
        let real = |r: f64| {
            let bits = r.to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            1 << 62 | ordered >> 2
        };
        let p = match t {
            0 => {
                if field.nulls_large {
                    u64::MAX
                } else {
                    0
                }
            }
            7 => real(record::read_real(bytes) + 0.0),
            1..=9 => real(record::read_int(t, bytes).unwrap_or(0) as f64),
            _ => {
                let class: u64 = if t & 1 == 1 { 2 } else { 3 };
                if class == 2 && field.coll != Collation::Binary {
                    return Ok(if field.desc { !(2 << 62) } else { 2 << 62 });
                }
                let mut b = [0u8; 8];
                let n = bytes.len().min(8);
                b[..n].copy_from_slice(&bytes[..n]);
                class << 62 | u64::from_be_bytes(b) >> 2
            }
        };
        Ok(if field.desc { !p } else { p })
    }

    fn cut(&mut self, n: usize) -> Result<()> {
        self.order()?;
        self.entries.truncate(n);
        // What is left moves together, so that the arena does not grow with what was dropped.
        let total: usize = self.entries.iter().map(|e| e.len as usize).sum();
        let mut arena = Vec::new();
        alloc::reserve(&mut arena, total)?;
        for e in &mut self.entries {
            let at = arena.len();
            arena.extend_from_slice(&self.arena[e.at..e.at + e.len as usize]);
            e.at = at;
        }
        self.arena = arena;
        Ok(())
    }

    fn order(&mut self) -> Result<()> {
        let (arena, key) = (&self.arena, &self.key);
        let n = key.fields.len();
        let mut failed = None;
        self.entries.sort_by(|a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| {
                let (x, y) = (&arena[a.at..a.at + a.len as usize], &arena[b.at..b.at + b.len as usize]);
                compare::records(x, y, n, key).unwrap_or_else(|e| {
                    failed.get_or_insert(e);
                    Ordering::Equal
                })
            })
        });
        failed.map_or(Ok(()), Err)
    }

    /// Sorts and stands on the first record; `false` if there is none.
    pub fn sort(&mut self) -> Result<bool> {
        self.order()?;
        if let Some(n) = self.limit {
            self.entries.truncate(n);
        }
        self.next = 0;
        Ok(!self.entries.is_empty())
    }

    /// Moves on; `false` at the end.
    pub fn next(&mut self) -> bool {
        self.next += 1;
        self.next < self.entries.len()
    }

    /// The present record.
    pub fn record(&self) -> Result<Value> {
        match self.entries.get(self.next) {
            Some(e) => Value::blob(&self.arena[e.at..e.at + e.len as usize]),
            None => Ok(Value::Null),
        }
    }
}

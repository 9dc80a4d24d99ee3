//! Hash aggregation: groups found by key, in order of first appearance, sorted at the end where their order is wanted.
//!
//! Keys that compare equal hash equal: 1 and 1.0, texts equal under their collating sequence.
//!
//! Where few groups are wanted, the first of their order, a heap holds the numbers of those that may be among them, the last on top. What comes
//! behind it is no group: it never will be among the first again.

use iolite_base::{Result, alloc};
use iolite_ext::Aggregate;
use iolite_value::order::{ValueRef, compare_refs, in_order};
use iolite_value::{Collation, KeyInfo, Value, compare};
use std::cmp::Ordering;
use std::hash::Hasher;
use std::rc::Rc;

/// More groups than these are sorted when all are there.
const FEW_GROUPS: usize = 4096;

/// A group's state for one aggregate or bare column.
#[derive(Default)]
pub(crate) enum Slot {
    #[default]
    Empty,
    State(Box<dyn Aggregate>),
    Value(Value),
}

/// The groups.
pub(crate) struct HashTable {
    key: Rc<KeyInfo>,
    width: usize,
    slots: usize,
    keys: Vec<Value>,
    states: Vec<Slot>,
    hashes: Vec<u64>,
    /// Open addressing; 0 is empty, else group number + 1.
    index: Vec<u32>,
    /// The present group.
    pub current: usize,
    order: Vec<u32>,
    at: usize,
    /// So many groups are wanted, where these are few, and the heap of them.
    wanted: Option<usize>,
    first: Vec<u32>,
    /// What the keys take, about.
    bytes: usize,
}

/// The hash of one value under a collating sequence.
pub(crate) fn hash_value(v: &Value, coll: &Collation, h: &mut iolite_base::hash::FastHasher) {
    match v {
        Value::Null => h.write_u64(0x6e),
        Value::Int(i) => h.write_u64(*i as u64),
        Value::Real(r) => {
            let i = *r as i64;
            if i as f64 == *r { h.write_u64(i as u64) } else { h.write_u64(r.to_bits() ^ 0x5bd1) }
        }
        Value::Blob(b, _) => h.write(b),
        Value::Text(b, _) => match coll {
            Collation::Binary | Collation::Binary16(_) => h.write(b),
            _ => match coll.fold(b) {
                Some(b) => h.write(&b),
                None => h.write_u64(0x7c),
            },
        },
    }
}

/// The hash of a key.
pub(crate) fn hash_key(key: &[Value], info: &KeyInfo) -> u64 {
    let mut h = iolite_base::hash::FastHasher::default();
    for (k, v) in key.iter().enumerate() {
        hash_value(v, &info.fields[k].coll, &mut h);
    }
    h.finish()
}

impl HashTable {
    pub fn new(key: Rc<KeyInfo>, width: usize, slots: usize) -> HashTable {
        HashTable {
            key,
            width,
            slots,
            keys: Vec::new(),
            states: Vec::new(),
            hashes: Vec::new(),
            index: vec![0; 64],
            current: 0,
            order: Vec::new(),
            at: 0,
            wanted: None,
            first: Vec::new(),
            bytes: 0,
        }
    }

    /// Only the first groups of the order are wanted.
    pub fn want(&mut self, groups: usize) {
        self.wanted = (groups <= FEW_GROUPS).then_some(groups);
    }

    /// Whether a key comes behind all groups that are wanted.
    #[inline]
    pub fn beyond(&self, key: &[Value]) -> bool {
        self.wanted == Some(self.first.len()) && self.order_of(key, self.key_of(self.first[0])).is_gt()
    }

    fn key_of(&self, group: u32) -> &[Value] {
        &self.keys[group as usize * self.width..][..self.width]
    }

    /// How keys are ordered.
    fn order_of(&self, a: &[Value], b: &[Value]) -> Ordering {
        let each = a.iter().zip(b).zip(&self.key.fields);
        each.map(|((a, b), f)| compare_refs(a.into(), b.into(), f))
            .find(|o| o.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Takes a new group, the last one, into the heap of the first ones, and drops the last of these if there are too many.
    fn rank(&mut self, wanted: usize) -> Result<()> {
        alloc::reserve(&mut self.first, 1)?;
        self.first.push(self.hashes.len() as u32 - 1);
        let behind = |s: &HashTable, a: usize, b: usize| {
            s.order_of(s.key_of(s.first[a]), s.key_of(s.first[b])).is_gt()
        };
        let mut at = self.first.len() - 1;
        while at > 0 && behind(self, at, (at - 1) / 2) {
            self.first.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        if self.first.len() <= wanted {
            return Ok(());
        }
        self.first.swap_remove(0);
        let (mut at, n) = (0, self.first.len());
        loop {
            let mut last = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < n && behind(self, child, last) {
                    last = child;
                }
            }
            if last == at {
                return Ok(());
            }
            self.first.swap(at, last);
            at = last;
        }
    }

    fn same(&self, group: usize, key: &[Value]) -> bool {
        let own = &self.keys[group * self.width..];
        // By number: three iterators side by side take a hundred instructions.
        for (k, f) in self.key.fields.iter().enumerate().take(self.width) {
            let same = match (&own[k], &key[k]) {
                (Value::Int(a), Value::Int(b)) => a == b,
                (Value::Text(a, _), Value::Text(b, _)) if f.coll.is_binary() => a[..] == b[..],
                (a, b) => compare::compare(a, b, &f.coll).is_eq(),
            };
            if !same {
                return false;
            }
        }
        true
    }

    /// The key's group, or the place in the index where it belongs.
    #[inline(always)]
    fn seek(&self, h: u64, key: &[Value]) -> std::result::Result<usize, usize> {
        let mask = self.index.len() - 1;
        let mut at = h as usize & mask;
        loop {
            match self.index[at] {
                0 => return Err(at),
                g => {
                    let g = g as usize - 1;
                    if self.hashes[g] == h && self.same(g, key) {
                        return Ok(g);
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether there is a group of this key.
    #[inline]
    pub fn has(&self, key: &[Value]) -> bool {
        self.seek(hash_key(key, &self.key), key).is_ok()
    }

    /// Makes the key's group the present one; answers whether it was there.
    #[inline]
    pub fn find(&mut self, key: &[Value]) -> Result<bool> {
        let h = hash_key(key, &self.key);
        let at = match self.seek(h, key) {
            Ok(g) => {
                self.current = g;
                return Ok(true);
            }
            Err(at) => at,
        };
        let g = self.hashes.len();
        alloc::reserve(&mut self.keys, self.width)?;
        alloc::reserve(&mut self.states, self.slots)?;
        alloc::reserve(&mut self.hashes, 1)?;
        for v in key {
            self.bytes += size_of::<(Value, u64)>()
                + if let Value::Text(b, _) | Value::Blob(b, _) = v { b.len() } else { 0 };
            self.keys.push(owned(v)?);
        }
        for _ in 0..self.slots {
            self.states.push(Slot::Empty);
        }
        self.hashes.push(h);
        self.index[at] = g as u32 + 1;
        self.current = g;
        if (g + 1) * 2 > self.index.len() {
            self.grow()?;
        }
        if let Some(n) = self.wanted {
            self.rank(n)?;
        }
        Ok(false)
    }

    fn grow(&mut self) -> Result<()> {
        let n = self.index.len() * 2;
        let mut index: Vec<u32> = Vec::new();
        alloc::reserve(&mut index, n)?;
        index.resize(n, 0);
        for (g, h) in self.hashes.iter().enumerate() {
            let mut at = *h as usize & (n - 1);
            while index[at] != 0 {
                at = (at + 1) & (n - 1);
            }
            index[at] = g as u32 + 1;
        }
        self.index = index;
        Ok(())
    }

    /// The present group's slot.
    #[inline]
    pub fn slot(&mut self, i: usize) -> &mut Slot {
        &mut self.states[self.current * self.slots + i]
    }

    /// Sorts the groups and stands on the first; `false` if there is none.
    pub fn sort(&mut self) -> Result<bool> {
        let (keys, width, first) = (&self.keys, self.width, &self.first);
        let group = |row: u32| if self.wanted.is_some() { first[row as usize] } else { row };
        let cell = |row: u32, k: usize| ValueRef::from(&keys[group(row) as usize * width + k]);
        let fields = &self.key.fields[..width.min(self.key.fields.len())];
        let rows = if self.wanted.is_some() { first.len() } else { self.hashes.len() };
        let mut order = in_order(rows, fields, &cell)?;
        order.iter_mut().for_each(|row| *row = group(*row));
        self.order = order;
        self.at = 0;
        Ok(self.step())
    }

    /// Leaves the groups as they are and stands on the first; `false` if there is none.
    pub fn first(&mut self) -> Result<bool> {
        alloc::reserve(&mut self.order, self.hashes.len())?;
        self.order.extend(0..self.hashes.len() as u32);
        self.at = 0;
        Ok(self.step())
    }

    fn step(&mut self) -> bool {
        match self.order.get(self.at) {
            Some(g) => {
                self.current = *g as usize;
                true
            }
            None => false,
        }
    }

    /// Moves to the next group in order.
    pub fn next(&mut self) -> bool {
        self.at += 1;
        self.step()
    }

    /// What the keys take, about, in bytes; 0 if there are none.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How keys compare.
    pub fn info(&self) -> &Rc<KeyInfo> {
        &self.key
    }

    /// How many fields a key has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A value of the present group's key.
    pub fn key(&self, i: usize) -> &Value {
        &self.keys[self.current * self.width + i]
    }
}

/// A value that holds no page.
pub(crate) fn owned(v: &Value) -> Result<Value> {
    Ok(match v {
        Value::Text(b, s) if b.in_page() => Value::Text(iolite_base::Bytes::copy_of(b)?, *s),
        Value::Blob(b, s) if b.in_page() => Value::Blob(iolite_base::Bytes::copy_of(b)?, *s),
        other => other.clone(),
    })
}

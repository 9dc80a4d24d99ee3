//! The least records of a sorter, where no others are wanted: once there are so many, a record comes in only in the place of
//! the greatest, of equal ones the last that came.
//!
//! What always holds: the records lie in the arena in the order in which they came, and the entries are a heap, the greatest
//! at the front, once there are as many as are wanted.

use iolite_base::{Result, alloc};
use iolite_value::record::{self, Header};
use iolite_value::{KeyInfo, Value, compare};
use std::cmp::Ordering;

/// A record in a sorter's arena, with an image of its first field that decides most comparisons.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub prefix: u64,
    pub at: usize,
    pub len: u32,
}

/// How many are wanted, and what is known of those that are there.
pub(crate) struct Least {
    wanted: usize,
    /// Bytes of the arena that records left which went.
    unused: usize,
    /// The key of the greatest record; nothing while it has not been asked for.
    greatest: Vec<Value>,
}

impl Least {
    /// So many, which is not none.
    pub fn new(wanted: usize) -> Least {
        Least { wanted, unused: 0, greatest: Vec::new() }
    }

    /// Forgets all records.
    pub fn reset(&mut self) {
        self.unused = 0;
        self.greatest.clear();
    }

    /// Whether a record with this key would come in.
    pub fn wants(&mut self, arena: &[u8], entries: &[Entry], info: &KeyInfo, key: &[Value]) -> Result<bool> {
        let Some(first) = entries.first().filter(|_| entries.len() >= self.wanted) else { return Ok(true) };
        if self.greatest.is_empty() {
            let rec = bytes(arena, first);
            let mut h = Header::new(rec)?;
            for _ in &info.fields {
                let Some((t, field)) = h.next(rec)? else { break };
                alloc::reserve(&mut self.greatest, 1)?;
                self.greatest.push(record::value_of(t, field, info.enc)?);
            }
        }
        for ((x, y), f) in key.iter().zip(&self.greatest).zip(&info.fields) {
            let o = compare::compare(x, y, &f.coll);
            if o.is_ne() {
                return Ok(f.direct(o, x.is_null() || y.is_null()).is_lt());
            }
        }
        Ok(false)
    }

    /// Takes a record, if it is wanted. There is room for it.
    pub fn insert(
        &mut self,
        arena: &mut Vec<u8>,
        entries: &mut Vec<Entry>,
        info: &KeyInfo,
        prefix: u64,
        rec: &[u8],
    ) -> Result<()> {
        let new = Entry { prefix, at: arena.len(), len: rec.len() as u32 };
        if entries.len() < self.wanted {
            arena.extend_from_slice(rec);
            entries.push(new);
            if entries.len() == self.wanted {
                for at in (0..entries.len() / 2).rev() {
                    sift(arena, entries, info, at)?;
                }
            }
            return Ok(());
        }
        let Some(first) = entries.first().copied() else { return Ok(()) };
        let o = prefix.cmp(&first.prefix);
        let o =
            if o.is_eq() { compare::records(rec, bytes(arena, &first), info.fields.len(), info)? } else { o };
        if o.is_ge() {
            return Ok(());
        }
        arena.extend_from_slice(rec);
        entries[0] = new;
        self.unused += first.len as usize;
        self.greatest.clear();
        sift(arena, entries, info, 0)?;
        if self.unused > arena.len() / 2 + 4096 {
            self.pack(arena, entries)?;
        }
        Ok(())
    }

    /// Moves the records together.
    fn pack(&mut self, arena: &mut Vec<u8>, entries: &mut [Entry]) -> Result<()> {
        let mut order = Vec::new();
        alloc::reserve(&mut order, entries.len())?;
        order.extend(0..entries.len());
        order.sort_unstable_by_key(|k| entries[*k].at);
        let mut to = 0;
        for e in order {
            let e = &mut entries[e];
            arena.copy_within(e.at..e.at + e.len as usize, to);
            e.at = to;
            to += e.len as usize;
        }
        arena.truncate(to);
        self.unused = 0;
        Ok(())
    }
}

fn bytes<'a>(arena: &'a [u8], e: &Entry) -> &'a [u8] {
    &arena[e.at..e.at + e.len as usize]
}

/// Lets the entry at `at` of the heap sink to where it belongs.
fn sift(arena: &[u8], entries: &mut [Entry], info: &KeyInfo, mut at: usize) -> Result<()> {
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        if left >= entries.len() {
            return Ok(());
        }
        let mut most = left;
        if right < entries.len() && order(arena, &entries[left], &entries[right], info)?.is_lt() {
            most = right;
        }
        if order(arena, &entries[at], &entries[most], info)?.is_ge() {
            return Ok(());
        }
        entries.swap(at, most);
        at = most;
    }
}

fn order(arena: &[u8], a: &Entry, b: &Entry, info: &KeyInfo) -> Result<Ordering> {
    let mut o = a.prefix.cmp(&b.prefix);
    if o.is_eq() {
        o = compare::records(bytes(arena, a), bytes(arena, b), info.fields.len(), info)?;
    }
    Ok(o.then(a.at.cmp(&b.at)))
}

//! Sorting records by key.
//!
//! Records lie one after the other in an arena; what is sorted are small entries with a prefix of the first key field
//! that decides most comparisons. Equal keys keep the order in which they came.
//!
//! What does not fit in memory is sorted in parts: each is written as a run to a temporary file, and the runs are merged
//! while they are read, an earlier run first among equals. Where only the first rows are wanted, no others are held (`least`),
//! and nothing is written.

use crate::least::{Entry, Least};
use crate::radix;
use crate::runs::{Reader, Runs};
use iolite_base::{Code, Result, alloc};
use iolite_value::{KeyInfo, Value, compare, record};
use std::cmp::Ordering;
use std::rc::Rc;

/// A sorter.
pub(crate) struct Sorter {
    key: Rc<KeyInfo>,
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// Only so many least records are wanted.
    least: Option<Least>,
    next: usize,
    /// Bytes that records and entries may take before they are written; `usize::MAX`: they never are.
    memory: usize,
    spilled: Option<Spilled>,
    /// The record that the next one is compared with, and its prefix.
    last: Vec<u8>,
    last_prefix: Option<u64>,
}

/// The runs, and their merging.
struct Spilled {
    runs: Runs,
    readers: Vec<Reader>,
    /// The prefix of each reader's record.
    prefixes: Vec<u64>,
    /// The readers that have a record, as a heap: the least at the front.
    heap: Vec<usize>,
}

impl Sorter {
    /// A sorter that holds up to `memory` bytes.
    pub fn new(key: Rc<KeyInfo>, limit: Option<usize>, memory: usize) -> Sorter {
        Sorter {
            key,
            arena: Vec::new(),
            entries: Vec::new(),
            least: limit.map(Least::new),
            next: 0,
            memory,
            spilled: None,
            last: Vec::new(),
            last_prefix: None,
        }
    }

    /// Forgets all records.
    pub fn reset(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.next = 0;
        self.spilled = None;
        self.last_prefix = None;
        if let Some(l) = &mut self.least {
            l.reset();
        }
    }

    /// Whether records have to be written before more come.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.arena.len() + self.entries.len() * size_of::<Entry>() > self.memory && self.least.is_none()
    }

    /// Whether there is a temporary file already.
    pub fn has_file(&self) -> bool {
        self.spilled.is_some()
    }

    /// Gives the sorter the file for what does not fit.
    pub fn set_file(&mut self, file: Box<dyn iolite_os::File>) {
        let runs = Runs::new(file);
        self.spilled = Some(Spilled { runs, readers: Vec::new(), prefixes: Vec::new(), heap: Vec::new() });
    }

    /// Writes what is held as a run.
    pub fn spill(&mut self) -> Result<()> {
        self.order()?;
        let arena = &self.arena;
        if let Some(s) = &mut self.spilled {
            s.runs.write(self.entries.iter().map(|e| &arena[e.at..e.at + e.len as usize]))?;
            self.arena.clear();
            self.entries.clear();
        }
        Ok(())
    }

    /// Adds a record.
    pub fn insert(&mut self, rec: &[u8]) -> Result<()> {
        alloc::reserve(&mut self.entries, 1)?;
        alloc::reserve(&mut self.arena, rec.len())?;
        let prefix = prefix(&self.key, rec)?;
        if let Some(l) = &mut self.least {
            return l.insert(&mut self.arena, &mut self.entries, &self.key, prefix, rec);
        }
        let at = self.arena.len();
        self.arena.extend_from_slice(rec);
        self.entries.push(Entry { prefix, at, len: rec.len() as u32 });
        Ok(())
    }

    /// Whether a record with this key would be among those that are wanted.
    pub fn wants(&mut self, key: &[Value]) -> Result<bool> {
        match &mut self.least {
            Some(l) => l.wants(&self.arena, &self.entries, &self.key, key),
            None => Ok(true),
        }
    }

    fn order(&mut self) -> Result<()> {
        if self.entries.len() < radix::MANY {
            self.entries.sort_by_key(|e| e.prefix);
        } else {
            radix::sort(&mut self.entries, |e| e.prefix)?;
        }
        for equal in self.entries.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if equal.len() > 1 {
                let first = equal[0].prefix;
                refine(&self.arena, &self.key, equal, 0)?;
                equal.iter_mut().for_each(|e| e.prefix = first);
            }
        }
        Ok(())
    }

    /// Sorts and stands on the first record; `false` if there is none.
    pub fn sort(&mut self) -> Result<bool> {
        if self.spilled.is_some() {
            return self.merge();
        }
        if self.least.is_some() {
            // As they came.
            self.entries.sort_unstable_by_key(|e| e.at);
        }
        self.order()?;
        self.next = 0;
        Ok(!self.entries.is_empty())
    }

    fn merge(&mut self) -> Result<bool> {
        self.spill()?;
        (self.arena, self.entries) = (Vec::new(), Vec::new());
        let Some(s) = &mut self.spilled else { return Err(Code::Internal.into()) };
        s.readers = s.runs.readers(self.memory)?;
        s.prefixes = vec![0; s.readers.len()];
        for (k, r) in s.readers.iter_mut().enumerate() {
            if s.runs.next(r)? {
                s.prefixes[k] = prefix(&self.key, r.record())?;
                s.heap.push(k);
            }
        }
        for at in (0..s.heap.len() / 2).rev() {
            s.sift(at, &self.key)?;
        }
        Ok(!s.heap.is_empty())
    }

    /// Moves on; `false` at the end.
    pub fn next(&mut self) -> Result<bool> {
        if let Some(s) = &mut self.spilled {
            return s.next(&self.key);
        }
        self.next += 1;
        Ok(self.next < self.entries.len())
    }

    /// The present record.
    pub fn record(&self) -> Result<&[u8]> {
        match &self.spilled {
            Some(s) => s.heap.first().map(|k| s.readers[*k].record()),
            None => self.entries.get(self.next).map(|e| &self.arena[e.at..e.at + e.len as usize]),
        }
        .ok_or_else(|| Code::Internal.into())
    }

    /// Whether the first `n` fields of the present record are those of the one before, and none of them is NULL. Asked for
    /// each record from the first on.
    pub fn repeats(&mut self, n: usize) -> Result<bool> {
        let Some(s) = &self.spilled else {
            let Some([before, present]) = self.entries.get(self.next.wrapping_sub(1)..=self.next) else {
                return Ok(false);
            };
            if before.prefix != present.prefix {
                return Ok(false);
            }
            let record = |e: &Entry| &self.arena[e.at..e.at + e.len as usize];
            return same_key(record(present), record(before), n, &self.key);
        };
        let prefix = s.heap.first().map(|k| s.prefixes[*k]);
        let alike = std::mem::replace(&mut self.last_prefix, prefix) == prefix;
        let mut last = std::mem::take(&mut self.last);
        let record = self.record()?;
        let same = alike && !last.is_empty() && same_key(record, &last, n, &self.key)?;
        last.clear();
        alloc::reserve(&mut last, record.len())?;
        last.extend_from_slice(record);
        self.last = last;
        Ok(same)
    }
}

fn same_key(a: &[u8], b: &[u8], n: usize, key: &KeyInfo) -> Result<bool> {
    Ok(compare::records(a, b, n, key)?.is_eq() && !compare::has_null(a, n)?)
}

impl Spilled {
    fn next(&mut self, key: &KeyInfo) -> Result<bool> {
        let Some(&k) = self.heap.first() else { return Ok(false) };
        if self.runs.next(&mut self.readers[k])? {
            self.prefixes[k] = prefix(key, self.readers[k].record())?;
        } else {
            self.readers[k] = Reader::default();
            self.heap.swap_remove(0);
        }
        self.sift(0, key)?;
        Ok(!self.heap.is_empty())
    }

    /// Lets the reader at `at` of the heap sink to where it belongs.
    fn sift(&mut self, mut at: usize, key: &KeyInfo) -> Result<()> {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return Ok(());
            }
            let least = if right < self.heap.len() && self.before(right, left, key)? { right } else { left };
            if !self.before(least, at, key)? {
                return Ok(());
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Whether the record of one place of the heap comes before that of another.
    fn before(&self, a: usize, b: usize, key: &KeyInfo) -> Result<bool> {
        let (a, b) = (self.heap[a], self.heap[b]);
        let mut o = self.prefixes[a].cmp(&self.prefixes[b]);
        if o.is_eq() {
            o = compare::records(self.readers[a].record(), self.readers[b].record(), key.fields.len(), key)?;
        }
        Ok(o.then(a.cmp(&b)).is_lt())
    }
}

/// Entries beyond which those of one prefix are sorted by that of the next field.
const REFINED: usize = 8;
/// Fields that are looked at in this way: each is found by going through those before it.
const DEEPEST: usize = 8;

/// Sorts entries whose images of `field` are equal, and whose fields before it are. Where the images are all that there is to
/// the field, those of the next one decide.
fn refine(arena: &[u8], key: &KeyInfo, equal: &mut [Entry], field: usize) -> Result<()> {
    let n = key.fields.len();
    let record = |e: &Entry| &arena[e.at..e.at + e.len as usize];
    let mut whole = equal.len() > REFINED && field < DEEPEST;
    if whole {
        for e in equal.iter() {
            whole &= image(key, record(e), field)?.1;
        }
    }
    if !whole {
        let mut failed = None;
        equal.sort_by(|a, b| {
            compare::records(record(a), record(b), n, key).unwrap_or_else(|e| {
                failed.get_or_insert(e);
                Ordering::Equal
            })
        });
        return failed.map_or(Ok(()), Err);
    }
    if field + 1 >= n {
        return Ok(());
    }
    for e in equal.iter_mut() {
        e.prefix = image(key, record(e), field + 1)?.0;
    }
    equal.sort_by_key(|e| e.prefix);
    for same in equal.chunk_by_mut(|a, b| a.prefix == b.prefix) {
        if same.len() > 1 {
            refine(arena, key, same, field + 1)?;
        }
    }
    Ok(())
}

/// The image of a record's first field: records are in the order of these, or of equal ones.
pub(crate) fn prefix(key: &KeyInfo, rec: &[u8]) -> Result<u64> {
    Ok(image(key, rec, 0)?.0)
}

/// An order-preserving 64-bit image of a field: different images decide. Equal ones do, too, if both say that they are all that
/// there is to the field.
fn image(key: &KeyInfo, rec: &[u8], k: usize) -> Result<(u64, bool)> {
    let Some(field) = key.fields.get(k) else { return Ok((0, false)) };
    let mut h = record::Header::new(rec)?;
    for _ in 0..k {
        h.next(rec)?;
    }
    let Some((t, bytes)) = h.next(rec)? else { return Ok((0, false)) };
    let real = |r: f64| {
        let bits = r.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        1 << 62 | ordered >> 2
    };
    // An integer of 48 bits leaves the last bits of a real alone.
    const EXACT: i64 = 1 << 48;
    let (p, whole) = match t {
        0 => (if field.nulls_large { u64::MAX } else { 0 }, true),
        7 => (real(record::read_real(bytes) + 0.0), false),
        1..=9 => {
            let v = record::read_int(t, bytes).unwrap_or(0);
            (real(v as f64), (-EXACT..=EXACT).contains(&v))
        }
        _ if t & 1 == 1 => {
            let (start, whole) = field.coll.start(bytes, key.enc)?;
            (2 << 62 | u64::from_be_bytes(start) >> 2, whole)
        }
        _ => {
            let mut start = [0; 8];
            let n = bytes.len().min(8);
            start[..n].copy_from_slice(&bytes[..n]);
            // Seven bytes are there as a whole, unless they might be the zeros of a shorter one.
            (3 << 62 | u64::from_be_bytes(start) >> 2, bytes.len() < 8 && !bytes.contains(&0))
        }
    };
    Ok((if field.desc { !p } else { p }, whole))
}

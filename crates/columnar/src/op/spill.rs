//! What does not fit into memory, in a temporary file.
//!
//! Two forms: sorted runs, which are merged ([`Merge`]), and partitions by hash, which are worked on one after the other
//! ([`Partitions`]). Both keep the order in which records came among those that are equal. A file is written from front to
//! back in pieces, read in pieces, never synced, and gone when it is closed. The system's errors (a full disk) are
//! the query's: its program would have to write as much.

use crate::decline::DECLINED;
use crate::runtime::Runtime;
use iolite_base::{Code, Result, alloc};
use iolite_os::File;
use iolite_value::{Collation, Value};
use std::cmp::Ordering;
use std::ops::Range;

/// What is written at once.
const PIECE: usize = 1 << 17;

/// What a partition holds before it is written.
const PART: usize = 1 << 15;

/// Partitions of a file.
pub(crate) const PARTS: usize = 16;

/// A temporary file.
pub(crate) struct Spill {
    file: Box<dyn File>,
    end: u64,
    piece: Vec<u8>,
    start: u64,
}

impl Spill {
    /// Opens one. Where temporary files are to be in memory, the query is not for columns.
    pub fn new(rt: Option<&dyn Runtime>) -> Result<Spill> {
        let file = rt.map(Runtime::temporary).transpose()?.flatten();
        let file = file.ok_or(DECLINED)?;
        Ok(Spill { file, end: 0, piece: Vec::new(), start: 0 })
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.piece, self.end)?;
        self.end += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// Adds a record to the present run.
    pub fn add(&mut self, record: &[u8]) -> Result<()> {
        push_record(&mut self.piece, record)?;
        if self.piece.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Ends the run; answers where it lies.
    pub fn end_run(&mut self) -> Result<Range<u64>> {
        if !self.piece.is_empty() {
            self.flush()?;
        }
        let run = self.start..self.end;
        self.start = self.end;
        Ok(run)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Range<u64>> {
        self.file.write(bytes, self.end)?;
        let at = self.end..self.end + bytes.len() as u64;
        self.end = at.end;
        self.start = self.end;
        Ok(at)
    }
}

fn push_record(to: &mut Vec<u8>, record: &[u8]) -> Result<()> {
    alloc::reserve(to, 4 + record.len())?;
    to.extend_from_slice(&(record.len() as u32).to_le_bytes());
    to.extend_from_slice(record);
    Ok(())
}

fn damaged<T>(o: Option<T>) -> Result<T> {
    o.ok_or_else(|| Code::IoerrShortRead.into())
}

/// Reads a run.
struct Stream {
    rest: Range<u64>,
    buf: Vec<u8>,
    at: usize,
    piece: usize,
}

impl Stream {
    /// Makes `n` bytes of the run stand at `at`.
    fn need(&mut self, file: &Spill, n: usize) -> Result<()> {
        if self.buf.len() - self.at >= n {
            return Ok(());
        }
        self.buf.drain(..self.at);
        self.at = 0;
        let have = self.buf.len();
        let left = (self.rest.end - self.rest.start) as usize;
        let more = left.min(self.piece.max(n - have));
        if have + more < n {
            return damaged(None);
        }
        alloc::reserve(&mut self.buf, more)?;
        self.buf.resize(have + more, 0);
        damaged(file.file.read(&mut self.buf[have..], self.rest.start)?.then_some(()))?;
        self.rest.start += more as u64;
        Ok(())
    }

    fn next(&mut self, file: &Spill) -> Result<Option<&[u8]>> {
        if self.at == self.buf.len() && self.rest.is_empty() {
            return Ok(None);
        }
        self.need(file, 4)?;
        let len = damaged(self.buf[self.at..].first_chunk::<4>())?;
        let len = u32::from_le_bytes(*len) as usize;
        self.at += 4;
        self.need(file, len)?;
        self.at += len;
        Ok(Some(&self.buf[self.at - len..self.at]))
    }
}

/// The first record of a run that was not taken yet, in a form that can be compared.
pub(crate) trait Head: Default {
    /// Takes a record's place.
    fn fill(&mut self, record: &[u8]) -> Result<()>;
}

impl Head for Vec<u8> {
    fn fill(&mut self, record: &[u8]) -> Result<()> {
        self.clear();
        alloc::reserve(self, record.len())?;
        self.extend_from_slice(record);
        Ok(())
    }
}

/// Sorted runs, merged. Of equal records the one of the earlier run comes first.
pub(crate) struct Merge<H> {
    file: Spill,
    streams: Vec<Stream>,
    heads: Vec<H>,
    /// The streams that are not at their end; the first one's head is the least.
    heap: Vec<u32>,
    begun: bool,
}

impl<H: Head> Merge<H> {
    /// Begins; `memory`: about what may be held.
    pub fn new(file: Spill, runs: &[Range<u64>], memory: usize) -> Result<Merge<H>> {
        let piece = (memory / runs.len().max(1)).clamp(1 << 12, 1 << 18);
        let mut m = Merge { file, streams: Vec::new(), heads: Vec::new(), heap: Vec::new(), begun: false };
        for (i, r) in runs.iter().enumerate() {
            let mut s = Stream { rest: r.clone(), buf: Vec::new(), at: 0, piece };
            let mut head = H::default();
            if let Some(record) = s.next(&m.file)? {
                head.fill(record)?;
                m.heap.push(i as u32);
            }
            m.streams.push(s);
            m.heads.push(head);
        }
        Ok(m)
    }

    fn sift(&mut self, mut at: usize, order: &dyn Fn(&H, &H) -> Ordering) {
        let before = |a: u32, b: u32, heads: &[H]| {
            order(&heads[a as usize], &heads[b as usize]).then(a.cmp(&b)).is_lt()
        };
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && before(self.heap[child], self.heap[least], &self.heads) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Exchanges `out` for the next record; `false` at the end.
    pub fn next(&mut self, out: &mut H, order: &dyn Fn(&H, &H) -> Ordering) -> Result<bool> {
        if !self.begun {
            self.begun = true;
            for i in (0..self.heap.len() / 2).rev() {
                self.sift(i, order);
            }
        }
        let Some(first) = self.heap.first().map(|i| *i as usize) else { return Ok(false) };
        std::mem::swap(out, &mut self.heads[first]);
        match self.streams[first].next(&self.file)? {
            Some(record) => self.heads[first].fill(record)?,
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift(0, order);
        Ok(true)
    }
}

/// Records by hash.
pub(crate) struct Partitions {
    file: Spill,
    bufs: Vec<Vec<u8>>,
    extents: Vec<Vec<Range<u64>>>,
    /// How often what is here was parted before.
    pub level: u32,
    /// Records.
    pub count: u64,
}

impl Partitions {
    pub fn new(rt: Option<&dyn Runtime>, level: u32) -> Result<Partitions> {
        let file = Spill::new(rt)?;
        Ok(Partitions {
            file,
            bufs: vec![Vec::new(); PARTS],
            extents: vec![Vec::new(); PARTS],
            level,
            count: 0,
        })
    }

    /// Adds a record. Other bits of its hash count at each level.
    pub fn add(&mut self, hash: u64, record: &[u8]) -> Result<()> {
        let mixed = (hash ^ (self.level as u64) << 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let p = ((mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 60) as usize;
        push_record(&mut self.bufs[p], record)?;
        self.count += 1;
        if self.bufs[p].len() >= PART {
            self.flush(p)?;
        }
        Ok(())
    }

    fn flush(&mut self, p: usize) -> Result<()> {
        if !self.bufs[p].is_empty() {
            self.extents[p].push(self.file.write(&self.bufs[p])?);
            self.bufs[p].clear();
        }
        Ok(())
    }

    /// Writes what is left; nothing is added any more.
    pub fn finish(&mut self) -> Result<()> {
        for p in 0..PARTS {
            self.flush(p)?;
            self.bufs[p] = Vec::new();
        }
        Ok(())
    }

    /// Calls `f` with the records of a partition as they came.
    pub fn each(&self, p: usize, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for e in &self.extents[p] {
            let mut s = Stream { rest: e.clone(), buf: Vec::new(), at: 0, piece: PART };
            while let Some(record) = s.next(&self.file)? {
                f(record)?;
            }
        }
        Ok(())
    }
}

/// Values that were met before, as bytes that equal ones share; no more than fit.
#[derive(Default)]
pub(crate) struct Seen {
    /// A hash, and 0 (empty) or number + 1.
    index: Vec<(u32, u32)>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
    full: bool,
}

/// What [`Seen`] says.
#[derive(PartialEq, Clone, Copy)]
pub(crate) enum Met {
    New,
    Before,
    /// It was not met before there was no room any more; since then who knows.
    NoRoom,
}

impl Seen {
    /// Looks bytes up, and adds them if there is room: `most` bytes, and some entries in any case.
    pub fn meet(&mut self, image: &[u8], hash: u64, most: usize) -> Result<Met> {
        if (self.ends.len() + 1) * 2 > self.index.len() && !self.full {
            self.grow()?;
        }
        let mask = self.index.len() - 1;
        let short = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            match self.index[at] {
                (_, 0) => break,
                (h, n) if h == short && self.get(n as usize - 1) == image => return Ok(Met::Before),
                _ => at = (at + 1) & mask,
            }
        }
        self.full |= self.ends.len() >= 16 && self.held() + image.len() > most;
        if self.full {
            return Ok(Met::NoRoom);
        }
        alloc::reserve(&mut self.bytes, image.len())?;
        alloc::reserve(&mut self.ends, 1)?;
        self.bytes.extend_from_slice(image);
        self.ends.push(self.bytes.len());
        self.index[at] = (short, self.ends.len() as u32);
        Ok(Met::New)
    }

    fn get(&self, n: usize) -> &[u8] {
        let from = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.bytes[from..self.ends[n]]
    }

    fn held(&self) -> usize {
        self.bytes.len() + self.ends.len() * 8 + self.index.len() * 8
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.index.len() * 2).max(64);
        let mut index = crate::memory::room(n)?;
        index.resize(n, (0, 0));
        for k in 0..self.ends.len() {
            let hash = hash_of(self.get(k));
            let mut at = hash as usize & (n - 1);
            while index[at].1 != 0 {
                at = (at + 1) & (n - 1);
            }
            index[at] = ((hash >> 32) as u32, k as u32 + 1);
        }
        self.index = index;
        Ok(())
    }
}

/// The hash that [`Seen`] and partitions go by.
pub(crate) fn hash_of(image: &[u8]) -> u64 {
    let m = iolite_base::hash::hash_bytes(image) as u128 * 0x9e37_79b9_7f4a_7c15;
    m as u64 ^ (m >> 64) as u64
}

/// Adds bytes that values share exactly if they compare equal.
pub(crate) fn push_image(to: &mut Vec<u8>, v: &Value, coll: &Collation) -> Result<()> {
    if let Value::Real(r) = v {
        let i = *r as i64;
        if iolite_value::compare::int_real(i, *r).is_eq() {
            return push_value(to, &Value::Int(i));
        }
    }
    if let Value::Text(t, _) = v
        && let Some(folded) = coll.fold(t)
    {
        return push_bytes(to, 3, 0, &folded);
    }
    match v {
        Value::Text(t, _) => push_bytes(to, 3, 0, t),
        Value::Blob(t, _) => push_bytes(to, 4, 0, t),
        _ => push_value(to, v),
    }
}

fn push_bytes(to: &mut Vec<u8>, tag: u8, subtype: u8, b: &[u8]) -> Result<()> {
    alloc::reserve(to, 6 + b.len())?;
    to.extend_from_slice(&[tag, subtype]);
    to.extend_from_slice(&(b.len() as u32).to_le_bytes());
    to.extend_from_slice(b);
    Ok(())
}

/// Adds a value to a record.
pub(crate) fn push_value(to: &mut Vec<u8>, v: &Value) -> Result<()> {
    let (tag, number) = match v {
        Value::Null => {
            alloc::reserve(to, 1)?;
            to.push(0);
            return Ok(());
        }
        Value::Int(i) => (1, *i as u64),
        Value::Real(r) => (2, r.to_bits()),
        Value::Text(b, s) => return push_bytes(to, 3, *s, b),
        Value::Blob(b, s) => return push_bytes(to, 4, *s, b),
    };
    alloc::reserve(to, 9)?;
    to.push(tag);
    to.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

/// Takes a number of eight bytes off a record.
pub(crate) fn take_u64(record: &mut &[u8]) -> Result<u64> {
    let (first, rest) = damaged(record.split_first_chunk::<8>())?;
    *record = rest;
    Ok(u64::from_le_bytes(*first))
}

/// Takes a number of four bytes off a record.
pub(crate) fn take_u32(record: &mut &[u8]) -> Result<u32> {
    let (first, rest) = damaged(record.split_first_chunk::<4>())?;
    *record = rest;
    Ok(u32::from_le_bytes(*first))
}

/// Takes so many bytes off a record.
pub(crate) fn take_bytes<'r>(record: &mut &'r [u8], n: usize) -> Result<&'r [u8]> {
    let (first, rest) = damaged(record.split_at_checked(n))?;
    *record = rest;
    Ok(first)
}

/// Takes a value off a record.
pub(crate) fn take_value(record: &mut &[u8]) -> Result<Value> {
    let tag = take_bytes(record, 1)?[0];
    Ok(match tag {
        0 => Value::Null,
        1 => Value::Int(take_u64(record)? as i64),
        2 => Value::Real(f64::from_bits(take_u64(record)?)),
        _ => {
            let subtype = take_bytes(record, 1)?[0];
            let len = take_u32(record)? as usize;
            let b = take_bytes(record, len)?;
            let v = if tag == 3 { Value::text(b)? } else { Value::blob(b)? };
            v.with_subtype(subtype)
        }
    })
}

/// Values each of which is wanted once, the first time it comes: those for which there is no room wait in a file.
#[derive(Default)]
pub(crate) struct Once {
    seen: Seen,
    waiting: Option<Partitions>,
    /// How many have waited.
    count: u64,
    record: Vec<u8>,
}

impl Once {
    /// Whether a value is new. `NoRoom`: nobody knows; it is to be passed to [`Once::wait`] with all that is to be done
    /// with it later.
    pub fn meet(&mut self, image: &[u8], most: usize) -> Result<Met> {
        self.seen.meet(image, hash_of(image), most)
    }

    /// Lets a value wait.
    pub fn wait(&mut self, rt: Option<&dyn Runtime>, image: &[u8], payload: &[u8]) -> Result<()> {
        let waiting = match &mut self.waiting {
            Some(w) => w,
            none => none.insert(Partitions::new(rt, 0)?),
        };
        self.record.clear();
        self.record.extend_from_slice(&self.count.to_le_bytes());
        self.record.extend_from_slice(&(image.len() as u32).to_le_bytes());
        self.record.extend_from_slice(image);
        alloc::reserve(&mut self.record, payload.len())?;
        self.record.extend_from_slice(payload);
        self.count += 1;
        waiting.add(hash_of(image), &self.record)
    }

    /// Calls `f` with what is left of those that waited, in the order in which they came.
    pub fn settle(
        &mut self,
        rt: Option<&dyn Runtime>,
        most: usize,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(mut first) = self.waiting.take() else { return Ok(()) };
        self.seen = Seen::default();
        first.finish()?;
        let (mut sorted, mut runs) = (Spill::new(rt)?, Vec::new());
        let mut list: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut held = 0;
        let mut flush = |list: &mut Vec<(u64, Vec<u8>)>, sorted: &mut Spill| -> Result<()> {
            let mut at: Vec<(u64, u32)> = crate::memory::room(list.len())?;
            at.extend(list.iter().enumerate().map(|(i, l)| (l.0, i as u32)));
            crate::sort::by_number(&mut at);
            for (_, i) in at {
                sorted.add(&list[i as usize].1)?;
            }
            list.clear();
            runs.push(sorted.end_run()?);
            Ok(())
        };
        let mut open = vec![first];
        while let Some(parts) = open.pop() {
            for p in 0..PARTS {
                if let Some(rt) = rt {
                    rt.check()?;
                }
                let (mut seen, mut further) = (Seen::default(), None);
                parts.each(p, &mut |record| {
                    let mut rest = record;
                    let number = take_u64(&mut rest)?;
                    let n = take_u32(&mut rest)? as usize;
                    let image = take_bytes(&mut rest, n)?;
                    match seen.meet(image, hash_of(image), most)? {
                        Met::Before => {}
                        Met::New => {
                            let mut own = number.to_be_bytes().to_vec();
                            alloc::reserve(&mut own, rest.len())?;
                            own.extend_from_slice(rest);
                            held += own.len() + size_of::<(u64, Vec<u8>)>();
                            alloc::reserve(&mut list, 1)?;
                            list.push((number, own));
                            if held > most.max(1 << 16) {
                                held = 0;
                                flush(&mut list, &mut sorted)?;
                            }
                        }
                        Met::NoRoom => {
                            let further = match &mut further {
                                Some(w) => w,
                                none => none.insert(Partitions::new(rt, parts.level + 1)?),
                            };
                            further.add(hash_of(image), record)?;
                        }
                    }
                    Ok(())
                })?;
                if let Some(mut further) = further {
                    further.finish()?;
                    open.push(further);
                }
            }
        }
        flush(&mut list, &mut sorted)?;
        let mut merge: Merge<Vec<u8>> = Merge::new(sorted, &runs, most)?;
        let mut record = Vec::new();
        let order = |a: &Vec<u8>, b: &Vec<u8>| a.get(..8).cmp(&b.get(..8));
        while merge.next(&mut record, &order)? {
            f(record.get(8..).unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let values = [
            Value::Null,
            Value::Int(i64::MIN),
            Value::Real(-0.5),
            Value::text("").unwrap(),
            Value::text("ab").unwrap(),
            Value::blob(&[0, 1]).unwrap(),
        ];
        let mut record = Vec::new();
        values.iter().for_each(|v| push_value(&mut record, v).unwrap());
        let mut rest = &record[..];
        for v in &values {
            assert_eq!(format!("{:?}", take_value(&mut rest).unwrap()), format!("{v:?}"));
        }
        assert!(rest.is_empty() && take_value(&mut rest).is_err());
    }

    #[test]
    fn equal_values_have_one_image() {
        let image = |v: &Value, c: &Collation| {
            let mut out = Vec::new();
            push_image(&mut out, v, c).unwrap();
            out
        };
        let b = Collation::Binary;
        assert_eq!(image(&Value::Int(3), &b), image(&Value::Real(3.0), &b));
        let (x, y) = (Value::text("aB").unwrap(), Value::text("Ab").unwrap());
        assert_ne!(image(&x, &b), image(&y, &b));
        assert_eq!(image(&x, &Collation::Nocase), image(&y, &Collation::Nocase));
    }

    #[test]
    fn what_was_seen_is_known_when_there_is_no_room() {
        let mut s = Seen::default();
        let mut meet = |i: u32| {
            let image = i.to_le_bytes();
            s.meet(&image, hash_of(&image), 1 << 12).unwrap()
        };
        let first: Vec<Met> = (0..1000).map(&mut meet).collect();
        let room = first.iter().filter(|m| **m == Met::New).count();
        assert!(room > 16 && room < 1000);
        for i in 0..1000 {
            assert!(meet(i) == if (i as usize) < room { Met::Before } else { Met::NoRoom });
        }
    }
}

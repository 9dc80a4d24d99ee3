//! What an index looks like in its tables, and the bytes of its rows.
//!
//! ```text
//! _ivf_lists   0 -> header: sizes, and the tail: places of rows that are in no list yet       n -> centroid of list n
//! _ivf_codes   list << 20 | sequence -> a full row's worth of entries: code, scale, constant, place, rowid
//! _ivf_places  chunk -> for each of its places the list that has it; 0: none, or the tail
//! ```
//!
//! List 1 is for vectors of which codes say nothing (no numbers, no length); all others have a centroid. A list's rows are full but for
//! the last; each says whether there is another. Every row ends in a sum of its bytes.
//!
//! What always holds: a row that was shortened, changed or lost is `SQLITE_CORRUPT_VTAB` when it is read.

use crate::store::{Place, corrupt, eight};
use iolite_base::{Code, Result, alloc};

/// So many rows wait in the tail before they are put into lists.
pub(crate) const TAIL: usize = 256;
/// The list of vectors of which codes say nothing.
pub(crate) const ODD: u32 = 1;
/// A list's rows have numbers below this.
const SEQUENCES: i64 = 1 << 20;
/// Begins the header.
const MAGIC: u32 = 0x3166_7669;
const HEADER: usize = 40;
const ROW_HEADER: usize = 24;
/// Bytes of an entry beside its code: scale, constant, place, rowid.
const BESIDE: usize = 24;
/// Codes of 4 bits come in groups of so many.
pub(crate) const GROUP: usize = 64;
/// The bytes of a group.
pub(crate) const GROUP_BYTES: usize = GROUP / 2;
/// What a row with its key needs on a leaf beside the value.
const RECORD: usize = 48;

/// A sum over bytes that notices damage; it keeps nobody from making a false one.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |h: u64, w: u64| (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let h = words.iter().fold(bytes.len() as u64, |h, w| mix(h, u64::from_le_bytes(*w)));
    mix(rest.iter().fold(h, |h, b| mix(h, u64::from(*b))), 0x5bd1)
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn put(b: &mut [u8], at: usize, bytes: &[u8]) {
    b[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A place as one number. No table has so many chunks that their numbers, which ascend from 1, do not fit.
pub(crate) fn packed(place: Place) -> Result<u64> {
    match u64::try_from(place.chunk) {
        Ok(chunk) if chunk < 1 << 48 => Ok(chunk << 16 | place.at as u64),
        _ => Err(Code::CorruptVtab.into()),
    }
}

/// The place of such a number.
pub(crate) fn unpacked(n: u64) -> Place {
    Place { chunk: (n >> 16) as i64, at: (n & 0xffff) as usize }
}

/// The sizes of an index, and its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub dimensions: u32,
    /// How many lists there are; 0: they are not made yet.
    pub lists: u32,
    /// How many entries a row has room for.
    pub capacity: u32,
    /// How many lists a search looks at that does not say it; 0: as many as the table's definition says.
    pub probes: u32,
    /// A list of more entries is split.
    pub limit: u32,
    pub tail: Vec<u64>,
}

impl Header {
    /// Of an index without lists.
    pub fn new(dimensions: usize, page_size: usize) -> Header {
        let entry = dimensions.div_ceil(GROUP) * GROUP_BYTES + BESIDE;
        // Where few entries fit, overflow pages waste less.
        let capacity = (page_size.saturating_sub(RECORD + ROW_HEADER) / entry).clamp(8, 4096);
        let (dimensions, capacity) = (dimensions as u32, capacity as u32);
        Header { dimensions, lists: 0, capacity, probes: 0, limit: 0, tail: Vec::new() }
    }

    pub fn write(&self) -> Vec<u8> {
        let mut b = vec![0; HEADER + 8 * TAIL];
        let tail = self.tail.len() as u32;
        let numbers = [MAGIC, self.dimensions, self.lists, self.capacity, self.probes, self.limit, tail, 0];
        for (k, n) in numbers.iter().enumerate() {
            put(&mut b, 4 * k, &n.to_le_bytes());
        }
        for (k, place) in self.tail.iter().enumerate() {
            put(&mut b, HEADER + 8 * k, &place.to_le_bytes());
        }
        let s = sum(&b[..32]) ^ sum(&b[HEADER..]).rotate_left(1);
        put(&mut b, 32, &s.to_le_bytes());
        b
    }

    pub fn read(b: &[u8], dimensions: usize) -> Result<Header> {
        if b.len() != HEADER + 8 * TAIL
            || u64::from_le_bytes(eight(&b[32..])) != sum(&b[..32]) ^ sum(&b[HEADER..]).rotate_left(1)
            || u32_at(b, 0) != MAGIC
            || u32_at(b, 4) as usize != dimensions
        {
            return Err(corrupt());
        }
        let (capacity, tail) = (u32_at(b, 12), u32_at(b, 24) as usize);
        if !(1..=4096).contains(&capacity) || tail > TAIL || u32_at(b, 8) > i32::MAX as u32 {
            return Err(corrupt());
        }
        Ok(Header {
            dimensions: dimensions as u32,
            lists: u32_at(b, 8),
            capacity,
            probes: u32_at(b, 16),
            limit: u32_at(b, 20).max(16),
            tail: b[HEADER..][..8 * tail].as_chunks::<8>().0.iter().map(|p| u64::from_le_bytes(*p)).collect(),
        })
    }

    pub fn layout(&self) -> Layout {
        Layout { groups: (self.dimensions as usize).div_ceil(GROUP), capacity: self.capacity as usize }
    }
}

/// The bytes of a centroid's row.
pub(crate) fn centroid_row(numbers: &[f32]) -> Vec<u8> {
    let mut b: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let s = sum(&b);
    b.extend_from_slice(&s.to_le_bytes());
    b
}

/// The centroid of a row.
pub(crate) fn read_centroid(b: &[u8], dimensions: usize, out: &mut Vec<f32>) -> Result<()> {
    let n = 4 * dimensions;
    if b.len() != n + 8 || sum(&b[..n]) != u64::from_le_bytes(eight(&b[n..])) {
        return Err(corrupt());
    }
    out.extend(b[..n].as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)));
    Ok(())
}

/// How entries lie in a row: all codes, then all scales, constants, places, rowids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Groups of a code.
    pub groups: usize,
    pub capacity: usize,
}

/// What a list has of one vector: code, scale and constant are explained in `code`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub code: Vec<u8>,
    pub scale: f32,
    pub constant: f32,
    pub place: u64,
    pub rowid: i64,
}

impl Layout {
    /// The bytes of a code.
    pub fn code(&self) -> usize {
        self.groups * GROUP_BYTES
    }

    /// The bytes of a row.
    pub fn bytes(&self) -> usize {
        ROW_HEADER + self.capacity * (self.code() + BESIDE)
    }

    /// Where the codes begin, the scales, constants, places, rowids.
    fn parts(&self) -> [usize; 5] {
        let scales = ROW_HEADER + self.capacity * self.code();
        let n = self.capacity;
        [ROW_HEADER, scales, scales + 4 * n, scales + 8 * n, scales + 16 * n]
    }
}

/// The key of a list's row.
pub(crate) fn key(list: u32, sequence: usize) -> i64 {
    i64::from(list) * SEQUENCES + sequence as i64
}

/// The list of such a key.
pub(crate) fn list_of(key: i64) -> i64 {
    key.div_euclid(SEQUENCES)
}

/// A row of a list.
pub(crate) struct Row {
    pub layout: Layout,
    bytes: Vec<u8>,
}

impl Row {
    /// One without entries.
    pub fn new(layout: Layout, list: u32, sequence: usize) -> Result<Row> {
        let mut bytes = alloc::zeroed(layout.bytes())?;
        put(&mut bytes, 0, &list.to_le_bytes());
        put(&mut bytes, 4, &(sequence as u32).to_le_bytes());
        Ok(Row { layout, bytes })
    }

    /// The row of a key, looked over.
    pub fn read(layout: Layout, id: i64, bytes: &[u8]) -> Result<Row> {
        let mut own = alloc::zeroed(bytes.len())?;
        own.copy_from_slice(bytes);
        let row = Row { layout, bytes: own };
        if bytes.len() != layout.bytes()
            || i64::from(u32_at(bytes, 0)) != id / SEQUENCES
            || i64::from(u32_at(bytes, 4)) != id % SEQUENCES
            || row.len() > layout.capacity
            || u64::from_le_bytes(eight(&bytes[16..])) != row.summed()
        {
            return Err(corrupt());
        }
        Ok(row)
    }

    fn summed(&self) -> u64 {
        sum(&self.bytes[..16]) ^ sum(&self.bytes[ROW_HEADER..]).rotate_left(1)
    }

    /// The bytes, as they are to be written.
    pub fn finished(&mut self) -> &[u8] {
        let s = self.summed();
        put(&mut self.bytes, 16, &s.to_le_bytes());
        &self.bytes
    }

    pub fn list(&self) -> u32 {
        u32_at(&self.bytes, 0)
    }

    pub fn sequence(&self) -> usize {
        u32_at(&self.bytes, 4) as usize
    }

    pub fn key(&self) -> i64 {
        key(self.list(), self.sequence())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        u32_at(&self.bytes, 8) as usize
    }

    pub fn is_full(&self) -> bool {
        self.len() == self.layout.capacity
    }

    /// Whether the list goes on in another row.
    pub fn goes_on(&self) -> bool {
        u32_at(&self.bytes, 12) != 0
    }

    pub fn set_goes_on(&mut self, on: bool) {
        put(&mut self.bytes, 12, &u32::from(on).to_le_bytes());
    }

    fn set_len(&mut self, n: usize) {
        put(&mut self.bytes, 8, &(n as u32).to_le_bytes());
    }

    /// The codes of all entries.
    pub fn codes(&self) -> &[u8] {
        &self.bytes[ROW_HEADER..][..self.len() * self.layout.code()]
    }

    pub fn scale(&self, k: usize) -> f32 {
        f32::from_bits(u32_at(&self.bytes, self.layout.parts()[1] + 4 * k))
    }

    pub fn constant(&self, k: usize) -> f32 {
        f32::from_bits(u32_at(&self.bytes, self.layout.parts()[2] + 4 * k))
    }

    pub fn place(&self, k: usize) -> u64 {
        u64::from_le_bytes(eight(&self.bytes[self.layout.parts()[3] + 8 * k..]))
    }

    pub fn rowid(&self, k: usize) -> i64 {
        i64::from_le_bytes(eight(&self.bytes[self.layout.parts()[4] + 8 * k..]))
    }

    pub fn entry(&self, k: usize) -> Entry {
        Entry {
            code: self.codes()[k * self.layout.code()..][..self.layout.code()].to_vec(),
            scale: self.scale(k),
            constant: self.constant(k),
            place: self.place(k),
            rowid: self.rowid(k),
        }
    }

    /// Writes entry `k`.
    pub fn set(&mut self, k: usize, e: &Entry) {
        let [codes, scales, constants, places, rowids] = self.layout.parts();
        put(&mut self.bytes, codes + k * self.layout.code(), &e.code);
        put(&mut self.bytes, scales + 4 * k, &e.scale.to_le_bytes());
        put(&mut self.bytes, constants + 4 * k, &e.constant.to_le_bytes());
        put(&mut self.bytes, places + 8 * k, &e.place.to_le_bytes());
        put(&mut self.bytes, rowids + 8 * k, &e.rowid.to_le_bytes());
    }

    /// Adds an entry to a row that is not full.
    pub fn push(&mut self, e: &Entry) {
        let n = self.len();
        self.set(n, e);
        self.set_len(n + 1);
    }

    /// Takes the last entry out.
    pub fn pop(&mut self) -> Option<Entry> {
        let n = self.len().checked_sub(1)?;
        let last = self.entry(n);
        self.set(n, &Entry { code: vec![0; self.layout.code()], ..Entry::default() });
        self.set_len(n);
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_noticed_anywhere() {
        let layout = Layout { groups: 2, capacity: 10 };
        let mut row = Row::new(layout, 7, 3).unwrap();
        for n in 0..4u64 {
            row.push(&Entry { code: vec![n as u8; 64], scale: 1.0, constant: 2.0, place: n, rowid: 5 });
        }
        let good = row.finished().to_vec();
        let read = Row::read(layout, key(7, 3), &good).unwrap();
        assert_eq!((read.len(), read.entry(3)), (4, row.entry(3)));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Row::read(layout, key(7, 3), &bad).is_err(), "byte {at}");
        }
        assert!(Row::read(layout, key(7, 4), &good).is_err());
        let header = Header { tail: vec![1, 2, 3], limit: 512, ..Header::new(100, 4096) };
        assert_eq!(Header::read(&header.write(), 100).unwrap(), header);
        for at in 0..header.write().len() {
            let mut bad = header.write();
            bad[at] ^= 8;
            assert!(Header::read(&bad, 100).is_err(), "byte {at}");
        }
    }
}

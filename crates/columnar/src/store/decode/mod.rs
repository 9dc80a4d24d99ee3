//! From leaf pages of a rowid table to chunks.
//!
//! Only the header of each record is walked, up to the last field that is wanted; what is found is appended to builders
//! that begin with the simplest form (integers) and change to another when a value does not fit. A value that reaches
//! into overflow pages makes its chunk impure: it may change without any of the leaves changing.

mod builder;

use crate::kernel::heads;
use crate::store::chunk::{Chunk, Dict, Field};
use builder::Builder;
pub(crate) use builder::Spare;
use iolite_base::{Code, Error, Pgno, Result, alloc, be, varint};
use iolite_btree::Btree;
use iolite_btree::TreeKind;
use iolite_btree::pages::{Cell, Layout, TABLE_LEAF};
use iolite_value::record;

/// A column as it is read: equal keys are equal chunks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ColKey {
    /// The record's field; `None` for the rowid.
    pub field: Option<usize>,
    /// Integers stand for reals.
    pub real: bool,
    /// A hash of what a record that ends before the field stands for.
    pub default: u64,
}

/// A column to be read.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub key: ColKey,
    pub default: Field<'a>,
}

/// The bytes of some leaves.
#[derive(Default)]
pub(crate) struct Lot {
    leaves: Vec<Pgno>,
    pages: Vec<u8>,
}

impl Lot {
    /// Copies leaves; what was here goes.
    pub fn fill(&mut self, bt: &Btree, leaves: &[Pgno]) -> Result<()> {
        self.pages.clear();
        self.leaves.clear();
        self.leaves.extend_from_slice(leaves);
        alloc::reserve(&mut self.pages, leaves.len() * bt.page_size() as usize)?;
        each_leaf(bt, leaves, &mut |_, _, page| {
            self.pages.extend_from_slice(page);
            Ok(())
        })
    }
}

/// Where the rows of each leaf begin, and a hash of each leaf.
#[derive(Clone, Default)]
pub(crate) struct Rows {
    /// One more than there are leaves.
    pub first: Vec<u32>,
    pub hashes: Vec<[u64; 2]>,
}

impl Rows {
    /// Rows in all leaves.
    pub fn len(&self) -> usize {
        self.first.last().copied().unwrap_or(0) as usize
    }
}

/// What a segment's pages came to.
pub(crate) struct Built {
    pub rows: Rows,
    pub chunks: Vec<Chunk>,
    /// All values lie on the leaves.
    pub pure: Vec<bool>,
}

fn corrupt() -> Error {
    Code::Corrupt.into()
}

/// The 128-bit hash of a page, keyed: see `OLAP.md`, H12. Four lanes, so that it runs at the speed of memory.
pub(crate) fn hash_page(seed: u64, page: &[u8]) -> [u64; 2] {
    const K: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];
    let mut lanes = [seed ^ K[0], seed.rotate_left(17) ^ K[1], seed ^ K[2], seed.rotate_left(31) ^ K[3]];
    let (blocks, rest) = page.as_chunks::<32>();
    let fold = |lane: u64, v: u64, k: u64| {
        let m = (lane ^ v) as u128 * k as u128;
        lane.rotate_left(29) ^ (m as u64) ^ (m >> 64) as u64
    };
    for b in blocks {
        let (words, _) = b.as_chunks::<8>();
        for i in 0..4 {
            lanes[i] = fold(lanes[i], u64::from_le_bytes(words[i]).wrapping_add(K[3 - i]), K[i]);
        }
    }
    for (i, b) in rest.iter().enumerate() {
        lanes[i % 4] = fold(lanes[i % 4], *b as u64 + 1, K[i % 4]);
    }
    let a = fold(lanes[0], lanes[1], K[2]);
    let b = fold(lanes[2], lanes[3], K[1]);
    [fold(a, b.rotate_left(32), K[0]), fold(b, a.rotate_left(23), K[3])]
}

/// Reads the wanted columns of some leaves.
pub(crate) fn build(
    bt: &Btree,
    seed: u64,
    leaves: &[Pgno],
    wanted: &[Wanted<'_>],
    dicts: &mut [Dict],
    rows_hint: usize,
    spare: &mut Spare,
) -> Result<Built> {
    spare.rows = if rows_hint == 0 { spare.rows } else { rows_hint };
    build_from(&mut |f| each_leaf(bt, leaves, f), Some(bt), bt.layout(), seed, wanted, dicts, spare)
}

/// The same of leaves whose bytes are here; those with values on other pages are an error.
pub(crate) fn build_lot(
    lot: &Lot,
    layout: Layout,
    seed: u64,
    wanted: &[Wanted<'_>],
    dicts: &mut [Dict],
    spare: &mut Spare,
) -> Result<Built> {
    let size = lot.pages.len() / lot.leaves.len().max(1);
    let each = &mut |f: EachLeaf<'_>| {
        let mut pages = lot.leaves.iter().zip(lot.pages.chunks(size.max(1))).enumerate();
        pages.try_for_each(|(i, (pgno, page))| f(i, *pgno, page))
    };
    build_from(each, None, layout, seed, wanted, dicts, spare)
}

/// The same of what `each` passes on; `bt`: where values on other pages are.
fn build_from(
    each: &mut dyn FnMut(EachLeaf<'_>) -> Result<()>,
    bt: Option<&Btree>,
    layout: Layout,
    seed: u64,
    wanted: &[Wanted<'_>],
    dicts: &mut [Dict],
    spare: &mut Spare,
) -> Result<Built> {
    let mut builders = Vec::with_capacity(wanted.len());
    let rows_hint = spare.rows;
    for (w, d) in wanted.iter().zip(dicts.iter_mut()) {
        builders.push(Builder::new(w.key.real, d, rows_hint, spare)?);
    }
    // Wanted fields in the order in which a record holds them.
    let mut fields: Vec<(usize, usize)> =
        wanted.iter().enumerate().filter_map(|(i, w)| w.key.field.map(|f| (f, i))).collect();
    crate::sort::few(&mut fields, |a, b| a > b);
    let rowids: Vec<usize> =
        wanted.iter().enumerate().filter(|(_, w)| w.key.field.is_none()).map(|(i, _)| i).collect();
    let mut rows = Rows::default();
    rows.first.push(0);
    let shape = Shape { spots: vec![0; fields.len()], ..Shape::default() };
    let (spots, begins) = (Vec::new(), [0; 128]);
    let mask = fields.last().and_then(|f| heads::mask(f.0));
    let mut pages = Pages {
        bt,
        layout,
        whole: Vec::new(),
        fields,
        rowids,
        wanted,
        shape,
        spots,
        cells: 0,
        found: 0,
        begins,
        mask,
        unlike: 0,
        until: 0,
    };
    each(&mut |_, pgno, page| {
        rows.hashes.push(hash_page(seed, page));
        let more = pages.leaf(page, pgno, &mut builders)?;
        rows.first.push(rows.len() as u32 + more);
        Ok(())
    })?;
    spare.rows = rows.len();
    let pure = builders.iter().map(|b| b.pure).collect();
    let mut chunks = Vec::with_capacity(builders.len());
    for (b, w) in builders.into_iter().zip(wanted) {
        chunks.push(b.finish(w.key.field.is_none(), spare)?);
    }
    Ok(Built { rows, chunks, pure })
}

/// Pages that are read at once.
const RUN: usize = 32;

/// What is done with each leaf.
type EachLeaf<'f> = &'f mut dyn FnMut(usize, Pgno, &[u8]) -> Result<()>;

/// Calls `f` with each leaf: its place in the list, its number, its bytes. Leaves that follow each other in the file are
/// read at once.
pub(crate) fn each_leaf(bt: &Btree, leaves: &[Pgno], f: EachLeaf<'_>) -> Result<()> {
    let size = bt.page_size() as usize;
    let mut run = Vec::new();
    let mut at = 0;
    while let Some(&pgno) = leaves.get(at) {
        let next = leaves[at..].iter().take(RUN).enumerate();
        let n = next.take_while(|(i, p)| Some(**p) == pgno.checked_add(*i as Pgno)).count();
        if n > 1 && bt.raw_pages(pgno, n, &mut run)? {
            for (i, page) in run.chunks(size).take(n).enumerate() {
                f(at + i, pgno + i as Pgno, page)?;
            }
        } else {
            for (i, &pgno) in leaves[at..at + n].iter().enumerate() {
                f(at + i, pgno, &bt.raw_page(pgno)?)?;
            }
        }
        at += n;
    }
    Ok(())
}

/// What the reading of leaves needs to know.
struct Pages<'a> {
    bt: Option<&'a Btree>,
    layout: Layout,
    /// A payload that lies on several pages.
    whole: Vec<u8>,
    fields: Vec<(usize, usize)>,
    rowids: Vec<usize>,
    wanted: &'a [Wanted<'a>],
    /// What the last plain record was like.
    shape: Shape,
    /// Fields of plain records of a leaf that no builder has yet: for each field room for all cells.
    spots: Vec<Spot>,
    cells: usize,
    /// How many such records.
    found: usize,
    /// Where the fields of a record begin.
    begins: [u32; 128],
    /// The header's bytes up to the last wanted field's type, if these are few.
    mask: Option<u128>,
    /// Records of this leaf that did not begin like the one before, and leaves until that is asked again.
    unlike: usize,
    until: usize,
}

/// Where records of a leaf mostly begin unlike the one before, that is not asked in so many leaves that follow.
const NOT_ASKED: usize = 15;

/// A field of a leaf: its type, of one byte, in the uppermost byte, and where it begins: a page has at most 65,536 bytes.
type Spot = u32;

/// Records that begin alike have their fields at the same places.
#[derive(Default)]
struct Shape {
    /// The first bytes of the header, up to the last wanted field's type.
    mask: u128,
    head: u128,
    /// The wanted fields, from the record's beginning, and where the last one ends.
    spots: Vec<Spot>,
    end: usize,
}

impl Pages<'_> {
    /// Appends the rows of a leaf; answers how many.
    fn leaf(&mut self, page: &[u8], pgno: Pgno, builders: &mut [Builder<'_>]) -> Result<u32> {
        let (hdr, ncell) = leaf_header(page, pgno, &self.layout)?;
        let room = ncell * self.fields.len();
        self.spots.clear();
        alloc::reserve(&mut self.spots, room)?;
        self.spots.resize(room, 0);
        (self.cells, self.found) = (ncell, 0);
        self.until = match self.until {
            0 if self.unlike * 4 > ncell => NOT_ASKED,
            n => n.saturating_sub(1),
        };
        self.unlike = 0;
        for i in 0..ncell {
            let at = be::get_u16(page, hdr + 8 + 2 * i) as usize;
            // By far the most rows: short, whole on the leaf.
            if let Some(c) = Cell::table_leaf(page, at, &self.layout) {
                for &b in &self.rowids {
                    builders[b].push(Field::Int(c.rowid))?;
                }
                let (from, len) = (c.at as usize, c.payload as usize);
                if !self.fields.is_empty() && !self.plain_record(page, from, len)? {
                    self.pass_on(page, builders)?;
                    let local = page.get(from..from + len).ok_or_else(corrupt)?;
                    record_fields(local, local, &self.fields, self.wanted, builders)?;
                }
                continue;
            }
            let cell = Cell::read(page, at, TreeKind::Table, true, &self.layout)?;
            for &b in &self.rowids {
                builders[b].push(Field::Int(cell.rowid))?;
            }
            let local = page.get(cell.at as usize..(cell.at + cell.local) as usize).ok_or_else(corrupt)?;
            if self.fields.is_empty() {
                continue;
            }
            self.pass_on(page, builders)?;
            if cell.overflows() {
                let bt = self.bt.ok_or(Code::Internal)?;
                bt.raw_payload(page, &cell, &mut self.whole)?;
                record_fields(&self.whole, local, &self.fields, self.wanted, builders)?;
            } else {
                record_fields(local, local, &self.fields, self.wanted, builders)?;
            }
        }
        self.pass_on(page, builders)?;
        Ok(ncell as u32)
    }

    /// Gives the builders the fields that were found, a column at a time.
    fn pass_on(&mut self, page: &[u8], builders: &mut [Builder<'_>]) -> Result<()> {
        if self.found > 0 {
            for (spots, &(_, b)) in self.spots.chunks_exact(self.cells).zip(&self.fields) {
                builders[b].push_all(page, &spots[..self.found])?;
            }
            self.found = 0;
        }
        Ok(())
    }

    /// Notes the fields of a record at `at` that is of the last shape.
    #[inline(always)]
    fn note(&mut self, at: usize) {
        let mut to = self.found;
        for s in &self.shape.spots {
            self.spots[to] = s + at as u32;
            to += self.cells;
        }
        self.found += 1;
    }

    /// Finds the wanted fields of a record like most: all of it on the leaf, types of one byte, no field missing. `false`: it
    /// is another one.
    #[inline(always)]
    fn plain_record(&mut self, page: &[u8], at: usize, len: usize) -> Result<bool> {
        if let (Some(mask), Some(head)) = (self.mask, page.get(at..).and_then(|p| p.first_chunk::<16>())) {
            let head = u128::from_le_bytes(*head);
            if self.until == 0 && self.shape.mask != 0 && head & mask == self.shape.head {
                if self.shape.end > len {
                    return Err(corrupt());
                }
                self.note(at);
                return Ok(true);
            }
            self.unlike += 1;
            if let Some(begins) = heads::begins(head, mask) {
                return self.short_head(at, len, head, begins);
            }
        }
        self.other_shape(page, at, len)
    }

    /// The same for a record of which it is known where the wanted fields begin.
    #[inline(always)]
    fn short_head(&mut self, at: usize, len: usize, head: u128, begins: [u8; heads::HEAD]) -> Result<bool> {
        let types = head.to_le_bytes();
        let last = self.fields.last().map_or(0, |f| f.0);
        if (types[0] as usize) < last + 2 {
            // A field is missing.
            return Ok(false);
        }
        let end = begins[last + 1] as usize;
        if end > len {
            return Err(corrupt());
        }
        let spots = self.spots.iter_mut().skip(self.found).step_by(self.cells);
        for (&(want, _), to) in self.fields.iter().zip(spots) {
            *to = (types[want + 1] as u32) << 24 | (begins[want] as u32 + at as u32);
        }
        self.found += 1;
        if self.until == 0 {
            for (&(want, _), spot) in self.fields.iter().zip(&mut self.shape.spots) {
                *spot = (types[want + 1] as u32) << 24 | begins[want] as u32;
            }
            self.shape.mask = self.mask.unwrap_or(0);
            self.shape.head = head & self.shape.mask;
            self.shape.end = end;
        }
        Ok(true)
    }

    /// The same for a record that does not begin like the one before.
    fn other_shape(&mut self, page: &[u8], at: usize, len: usize) -> Result<bool> {
        let Some(&first) = page.get(at) else { return Ok(false) };
        let header = first as usize;
        let Some(types) = page.get(at + 1..at + header) else { return Ok(false) };
        let last = self.fields.last().map_or(0, |f| f.0);
        if first >= 0x80 || last >= types.len() {
            return Ok(false);
        }
        let shape = &mut self.shape;
        shape.mask = 0;
        // Where each field begins, and whether a type takes more than one byte.
        let (mut body, mut long) = (header, 0);
        for (t, begins) in types[..=last].iter().zip(&mut self.begins) {
            *begins = body as u32;
            body += LENGTHS[*t as usize & 127] as usize;
            long |= t;
        }
        if long >= 0x80 {
            return Ok(false);
        }
        for (&(want, _), spot) in self.fields.iter().zip(&mut shape.spots) {
            *spot = (types[want] as u32) << 24 | self.begins[want];
        }
        // What is wanted lies in the record.
        if body > len || at + len > page.len() {
            return Err(corrupt());
        }
        shape.end = body;
        if let (Some(head), true) = (page[at..].first_chunk::<16>(), last + 2 <= 16) {
            shape.mask = u128::MAX >> (128 - 8 * (last + 2));
            shape.head = u128::from_le_bytes(*head) & shape.mask;
        }
        self.note(at);
        Ok(true)
    }
}

/// The field of a spot.
#[inline(always)]
fn field_at(page: &[u8], spot: Spot) -> Result<Field<'_>> {
    let (t, from) = ((spot >> 24) as usize, (spot & 0xff_ffff) as usize);
    let n = LENGTHS[t & 127] as usize;
    Ok(match t {
        1..=6 => Field::Int(int_at(page, t, from)?),
        8 | 9 => Field::Int(t as i64 - 8),
        7 => match record::read_real(page.get(from..from + n).ok_or_else(corrupt)?) {
            r if r.is_nan() => Field::Null,
            r => Field::Real(r),
        },
        0 | 10 | 11 => Field::Null,
        _ => {
            let bytes = page.get(from..from + n).ok_or_else(corrupt)?;
            if t & 1 == 0 { Field::Blob(bytes) } else { Field::Text(bytes) }
        }
    })
}

/// An integer of type 1 to 6, 8 or 9, without a jump by its type; `None`: it is none, or lies at the page's end.
#[inline(always)]
fn int_of(page: &[u8], spot: Spot) -> Option<i64> {
    let (t, from) = (spot >> 24, (spot & 0xff_ffff) as usize);
    let n = LENGTHS[t as usize & 127] as u32;
    let x = page.get(from..)?.first_chunk::<8>()?;
    if t > 9 || 0b11_0111_1110 >> t & 1 == 0 {
        return None;
    }
    // The bytes of the number, and whatever follows them, shifted out again: all of them for 0 and 1.
    let v = i64::from_be_bytes(*x) >> ((64 - 8 * n) & 63);
    Some(if n == 0 { (t == 9) as i64 } else { v })
}

/// An integer of type 1 to 6.
#[inline(always)]
fn int_at(page: &[u8], t: usize, from: usize) -> Result<i64> {
    match page.get(from..).and_then(|p| p.first_chunk::<8>()) {
        // The bytes of the number, and whatever follows them, shifted out again.
        Some(x) => Ok(i64::from_be_bytes(*x) >> (64 - 8 * LENGTHS[t & 127] as u32)),
        None => page.get(from..).and_then(|p| record::read_int(t as u64, p)).ok_or_else(corrupt),
    }
}

/// Where a leaf's header begins, and how many cells there are.
pub(crate) fn leaf_header(page: &[u8], pgno: Pgno, layout: &Layout) -> Result<(usize, usize)> {
    let hdr = if pgno == 1 { 100 } else { 0 };
    if page[hdr] != TABLE_LEAF {
        return Err(corrupt());
    }
    let ncell = be::get_u16(page, hdr + 3) as usize;
    if hdr + 8 + 2 * ncell > layout.usable as usize {
        return Err(corrupt());
    }
    Ok((hdr, ncell))
}

/// Body bytes of the serial types that take one byte of header.
const LENGTHS: [u8; 128] = {
    let mut t = [0; 128];
    let mut i = 0;
    while i < 128 {
        t[i] = record::serial_len(i as u64) as u8;
        i += 1;
    }
    t
};

/// Appends the wanted fields of one record to their builders. `local` is the part of the record on its leaf.
#[inline]
fn record_fields(
    payload: &[u8],
    local: &[u8],
    fields: &[(usize, usize)],
    wanted: &[Wanted<'_>],
    builders: &mut [Builder<'_>],
) -> Result<()> {
    let (header, mut at) = match payload.first() {
        Some(&b) if b < 0x80 => (b as usize, 1),
        _ => match varint::get(payload) {
            Some((h, n)) if h <= payload.len() as u64 => (h as usize, n),
            _ => return Err(corrupt()),
        },
    };
    if header > payload.len() || header < at {
        return Err(corrupt());
    }
    let spilled = header > local.len();
    let mut body = header;
    let mut field = 0;
    for &(want, b) in fields {
        let mut found = None;
        while at < header {
            let t = match payload[at] {
                v if v < 0x80 => {
                    at += 1;
                    v as u64
                }
                _ => {
                    let (t, n) = varint::get(&payload[at..header]).ok_or_else(corrupt)?;
                    at += n;
                    t
                }
            };
            let len = record::serial_len(t);
            let from = body;
            body += len;
            field += 1;
            if field > want {
                found = Some((t, from, len));
                break;
            }
        }
        let builder = &mut builders[b];
        builder.pure &= !spilled;
        let Some((t, from, len)) = found else {
            builder.push(wanted[b].default)?;
            continue;
        };
        if from + len > local.len() {
            builder.pure = false;
        }
        let bytes = payload.get(from..from + len).ok_or_else(corrupt)?;
        let f = match t {
            0 | 10 | 11 => Field::Null,
            7 => match record::read_real(bytes) {
                r if r.is_nan() => Field::Null,
                r => Field::Real(r),
            },
            1..=9 => Field::Int(record::read_int(t, bytes).ok_or_else(corrupt)?),
            _ if t & 1 == 0 => Field::Blob(bytes),
            _ => Field::Text(bytes),
        };
        builder.push(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builders_keep_every_value_whatever_comes_first() {
        let all = [
            Field::Null,
            Field::Int(3),
            Field::Real(2.5),
            Field::Text(b"x"),
            Field::Blob(b"x"),
            Field::Int(i64::MIN),
        ];
        for start in 0..all.len() {
            let mut dict = Dict::default();
            let mut b = Builder::new(false, &mut dict, 0, &mut Spare::default()).unwrap();
            let order: Vec<Field<'_>> = (0..all.len()).map(|i| all[(start + i) % all.len()]).collect();
            for f in &order {
                b.push(*f).unwrap();
            }
            let c = b.finish(false, &mut Spare::default()).unwrap();
            for (i, f) in order.iter().enumerate() {
                assert_eq!(format!("{:?}", c.field(i, &dict)), format!("{f:?}"));
            }
        }
    }

    #[test]
    fn a_column_at_a_time_is_what_row_by_row_is() {
        let mut x = 99u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let page: Vec<u8> = (0..1000).map(|_| below(256) as u8).collect();
        let kinds: [&[u8]; 8] = [
            &[1, 2, 3, 4, 5, 6, 8, 9],
            &[7],
            &[7, 1, 8],
            &[13, 15, 25],
            &[1, 1, 1, 1, 0],
            &[0, 7],
            &[0, 1, 2, 7, 13, 12, 9],
            &[12, 14, 40],
        ];
        for types in kinds {
            for real in [false, true] {
                let (mut one, mut all) = (Dict::default(), Dict::default());
                let mut spare = Spare::default();
                let mut a = Builder::new(real, &mut one, 0, &mut spare).unwrap();
                let mut b = Builder::new(real, &mut all, 0, &mut spare).unwrap();
                for leaf in [1u64, 40, 200] {
                    let spot = |_| {
                        let t = types[below(types.len() as u64) as usize];
                        let most = page.len() as u64 - LENGTHS[t as usize] as u64;
                        // Some lie at the page's very end.
                        (t as u32) << 24 | if below(9) == 0 { most } else { below(most) } as u32
                    };
                    let spots: Vec<Spot> = (0..leaf).map(spot).collect();
                    spots.iter().for_each(|s| a.push(field_at(&page, *s).unwrap()).unwrap());
                    b.push_all(&page, &spots).unwrap();
                }
                let (a, b) = (a.finish(false, &mut spare).unwrap(), b.finish(false, &mut spare).unwrap());
                assert_eq!(a.len, b.len);
                for i in 0..a.len {
                    let (x, y) = (a.field(i, &one), b.field(i, &all));
                    assert_eq!(format!("{x:?}"), format!("{y:?}"), "{types:?}");
                }
            }
        }
    }

    #[test]
    fn a_page_hash_sees_every_byte() {
        let mut page = vec![7u8; 1000];
        let h = hash_page(1, &page);
        assert_ne!(h, hash_page(2, &page));
        for i in 0..page.len() {
            page[i] ^= 1;
            assert_ne!(h, hash_page(1, &page));
            page[i] ^= 1;
        }
    }
}

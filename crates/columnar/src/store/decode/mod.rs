//! From leaf pages of a rowid table to chunks.
//!
//! Only the header of each record is walked, up to the last field that is wanted; what is found is appended to builders
//! that begin with the simplest form (integers) and change to another when a value does not fit. A value that reaches
//! into overflow pages makes its chunk impure: it may change without any of the leaves changing.

mod builder;
mod page;

use crate::kernel::heads;
use crate::store::chunk::{Chunk, Dict, Field};
pub(crate) use builder::{Builder, Spare};
use iolite_base::{Code, Error, Pgno, Result, alloc, be, varint};
use iolite_btree::Btree;
use iolite_btree::TreeKind;
use iolite_btree::pages::{Cell, Layout, TABLE_LEAF};
use iolite_value::{Value, record};
use page::{Pages, Shape, leaf_header};

/// A column as it is read: equal keys are equal chunks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    /// The leaves were read before, and had nothing but integers there.
    pub ints: bool,
}

impl<'a> Wanted<'a> {
    /// A column of leaves that were not read before.
    pub fn new(key: ColKey, default: &'a Value) -> Wanted<'a> {
        Wanted { key, default: Field::of(default), ints: false }
    }
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
        builders.push(Builder::new(w.key.real, w.ints, d, rows_hint, spare)?);
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

/// How many bytes on overflow pages have to be read for columns of some leaves.
pub(crate) fn beyond(bt: &Btree, leaves: &[Pgno], keys: &[ColKey]) -> Result<u64> {
    let mut fields: Vec<(usize, usize)> = keys.iter().filter_map(|k| Some((k.field?, 0))).collect();
    crate::sort::few(&mut fields, |a, b| a > b);
    let (layout, mut bytes) = (bt.layout(), 0);
    each_leaf(bt, leaves, &mut |_, pgno, page| {
        let (hdr, ncell) = leaf_header(page, pgno, &layout)?;
        for i in 0..ncell {
            let at = be::get_u16(page, hdr + 8 + 2 * i) as usize;
            let cell = Cell::read(page, at, TreeKind::Table, true, &layout)?;
            let local = page.get(cell.at as usize..(cell.at + cell.local) as usize).ok_or_else(corrupt)?;
            if cell.overflows() && page::reaches_out(local, &fields) {
                bytes += u64::from(cell.payload - cell.local);
            }
        }
        Ok(())
    })?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::page::{LENGTHS, Spot, field_at};
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
            let mut b = Builder::new(false, false, &mut dict, 0, &mut Spare::default()).unwrap();
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
                let mut a = Builder::new(real, false, &mut one, 0, &mut spare).unwrap();
                let mut b = Builder::new(real, false, &mut all, 0, &mut spare).unwrap();
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

//! What searches keep of an index in memory: centroids in 8 bits, and the lists that were looked at.
//!
//! What always holds: it belongs to one state of the database, and is thrown away with it. Where the state cannot be told, as within a
//! transaction that writes, it is made for one search.

use super::format::{Header, ODD, unpacked};
use super::lists::Tables;
use crate::dot::{RUN, Run, Work, products, total, widest, will_want};
use crate::quantized;
use crate::store::{Place, corrupt};
use iolite_base::{Result, alloc};
use iolite_ext::{Piece, StateNote};

/// So many bytes of lists are kept for a column at the most.
const MOST_LISTS: usize = 192 << 20;

/// What an entry takes beside its code, once it is known where its vector lies.
const BESIDE: usize = 88;

/// What a table has in memory of one state.
#[derive(Default)]
pub(crate) struct Kept {
    state: StateNote,
    columns: Vec<(usize, Index)>,
}

impl Kept {
    /// Takes the index of a column, read anew where it must be.
    pub fn take(&mut self, t: Tables<'_>) -> Result<Index> {
        if t.store.is_state(&mut self.state) != Some(true) {
            self.columns.clear();
        }
        match self.columns.iter().position(|c| c.0 == t.column) {
            Some(at) => Ok(self.columns.swap_remove(at).1),
            None => Index::read(t),
        }
    }

    /// Puts it back, if what it was read from is known to be there still.
    pub fn put(&mut self, t: Tables<'_>, index: Index) {
        if t.store.is_state(&mut self.state) == Some(true) && !self.columns.iter().any(|c| c.0 == t.column) {
            self.columns.push((t.column, index));
        }
    }
}

/// A list.
#[derive(Default)]
pub(crate) struct List {
    pub codes: Vec<u8>,
    pub scales: Vec<f32>,
    pub constants: Vec<f32>,
    pub places: Vec<u64>,
    pub rowids: Vec<i64>,
    /// Where the vectors of entries lie that were measured, and that the table was found to agree with; empty: not known.
    pub pieces: Vec<Box<[Piece]>>,
}

/// A row that is in no list yet, with its vector.
pub(crate) struct Waiting {
    pub place: Place,
    pub rowid: i64,
    pub vector: Vec<u8>,
}

/// For each centroid the square of its distance from the query, less that of the query's length.
struct Ranks<'a> {
    sums: &'a [i32],
    /// Squares and scales.
    known: (&'a [f32], &'a [f32]),
    scale: f32,
    shift: i32,
    ranks: &'a mut [f32],
}

impl Work for Ranks<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.ranks.len();
        let (sums, squares, scales) = (&self.sums[..n], &self.known.0[..n], &self.known.1[..n]);
        for i in 0..n {
            self.ranks[i] = squares[i] - 2.0 * self.scale * scales[i] * (sums[i] - self.shift) as f32;
        }
    }
}

/// An index.
pub(crate) struct Index {
    pub header: Header,
    pub centroids: Vec<f32>,
    /// The centroids' codes plus 128, scales, and squares.
    codes: Vec<Run<u8>>,
    scales: Vec<f32>,
    squares: Vec<f32>,
    lists: Vec<Option<Box<List>>>,
    bytes: usize,
    tail: Option<Vec<Waiting>>,
}

impl Index {
    fn read(t: Tables<'_>) -> Result<Index> {
        let (header, centroids) = t.directory()?;
        let n = t.dimensions();
        let count = header.lists as usize;
        let mut index = Index {
            header,
            centroids,
            codes: Vec::new(),
            scales: Vec::new(),
            squares: Vec::new(),
            lists: Vec::new(),
            bytes: 0,
            tail: None,
        };
        alloc::reserve(&mut index.codes, count * n.div_ceil(RUN))?;
        alloc::reserve(&mut index.lists, count)?;
        index.lists.resize_with(count, || None);
        let mut codes = Vec::new();
        for c in index.centroids.chunks_exact(n) {
            let (scale, _, length) = widest(quantized::Codes { numbers: c, codes: &mut codes });
            index.codes.extend(codes.iter().map(|run| Run(run.0.map(|c| c.wrapping_add(-128) as u8))));
            index.scales.push(scale);
            index.squares.push(length * length);
        }
        Ok(index)
    }

    /// The `n` lists with the nearest centroids, nearest first, and the odd one before all.
    pub fn nearest_lists(&self, query: &[Run<i8>], scale: f32, n: usize) -> Vec<u32> {
        let shift = 128 * total(query);
        let mut sums = Vec::new();
        products(&self.codes, query, &mut sums);
        let mut ranks = vec![0f32; sums.len()];
        let known = (&self.squares[..], &self.scales[..]);
        widest(Ranks { sums: &sums, known, scale, shift, ranks: &mut ranks });
        let mut order: Vec<(f32, u32)> = Vec::with_capacity(2 * n.min(ranks.len()) + 1);
        let mut worst = f32::INFINITY;
        for (i, rank) in ranks.iter().enumerate().skip(ODD as usize) {
            if *rank < worst {
                order.push((*rank, i as u32 + 1));
                if order.len() >= 2 * n {
                    order.select_nth_unstable_by(n - 1, |a, b| a.0.total_cmp(&b.0));
                    order.truncate(n);
                    worst = order[n - 1].0;
                }
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.truncate(n);
        std::iter::once(ODD).chain(order.iter().map(|o| o.1)).collect()
    }

    /// A list, read where it is not there.
    pub fn list(&mut self, t: Tables<'_>, list: u32) -> Result<&mut List> {
        let at = list as usize - 1;
        if self.lists.get(at).ok_or_else(corrupt)?.is_none() {
            let mut l = Box::<List>::default();
            t.list(&self.header, list, |row| {
                let n = row.len();
                alloc::reserve(&mut l.codes, row.codes().len())?;
                l.codes.extend_from_slice(row.codes());
                l.scales.extend((0..n).map(|k| row.scale(k)));
                l.constants.extend((0..n).map(|k| row.constant(k)));
                l.places.extend((0..n).map(|k| row.place(k)));
                l.rowids.extend((0..n).map(|k| row.rowid(k)));
                Ok(())
            })?;
            let n = l.places.len();
            alloc::reserve(&mut l.pieces, n)?;
            l.pieces.resize(n, Box::default());
            let bytes = l.codes.len() + BESIDE * n;
            if self.bytes + bytes > MOST_LISTS {
                self.lists.iter_mut().for_each(|l| *l = None);
                self.bytes = 0;
            }
            self.bytes += bytes;
            self.lists[at] = Some(l);
        }
        self.lists[at].as_deref_mut().ok_or_else(corrupt)
    }

    /// A list is looked at soon.
    pub fn will_want(&self, list: u32) {
        if let Some(Some(l)) = self.lists.get(list as usize - 1) {
            will_want(&l.codes);
            will_want(&l.scales);
            will_want(&l.constants);
        }
    }

    /// The rows that are in no list yet.
    pub fn tail(&mut self, t: Tables<'_>) -> Result<&[Waiting]> {
        if self.tail.is_none() {
            let bytes = t.store.config.vectors[t.column].bytes();
            let mut places: Vec<Place> = self.header.tail.iter().map(|p| unpacked(*p)).collect();
            places.sort_unstable_by_key(|p| (p.chunk, p.at));
            let mut rows = Vec::new();
            for same in places.chunk_by(|a, b| a.chunk == b.chunk) {
                let chunk = t.store.chunk(same[0].chunk)?;
                let vectors = t.store.vectors(t.column, &chunk)?;
                for place in same {
                    if place.at >= chunk.size || !chunk.is_taken(place.at) {
                        return Err(corrupt());
                    }
                    let vector = vectors[bytes * place.at..][..bytes].to_vec();
                    rows.push(Waiting { place: *place, rowid: chunk.rowid(place.at), vector });
                }
            }
            self.tail = Some(rows);
        }
        Ok(self.tail.as_deref().unwrap_or(&[]))
    }
}

//! What searches keep of an index in memory: centroids in 8 bits, and the lists that were looked at.
//!
//! What always holds: it belongs to one state of the index's tables, of the chunks and of the column's vectors. Where lists have changed, those are
//! read again, and so is the tail; where vectors lie is found out anew then. Where it cannot be told what has changed, as within a
//! transaction that changes the table, it is made for one search.

use super::format::{Header, ODD, list_of, unpacked};
use super::lists::Tables;
use crate::dot::{RUN, Run, Work, products, total, widest, will_want};
use crate::quantized;
use crate::store::{Place, corrupt};
use iolite_base::{Result, alloc};
use iolite_ext::{Changed, Changes, Piece, ReadNote};
use std::ops::RangeInclusive;

/// So many bytes of lists are kept for a column at the most.
const MOST_LISTS: usize = 192 << 20;

/// Of so many lists none is looked at whose centroid's distance has more than twice the square of the nearest's; of more the bound is wider.
/// Then 24 lists find of a million vectors as much as 32 without a bound, and 48 at the most.
const USUAL: f32 = 48.0;
/// So many lists are looked at whatever their distance.
const FEW: usize = 4;

/// What an entry takes beside its code, once it is known where its vector lies.
const BESIDE: usize = 88;

/// Where vectors are so many bytes, it is not followed which of them have changed: only whether anything of the database has.
const MOST_FOLLOWED: usize = 128 << 20;

/// At which states the index, and chunks and vectors, were read.
type Notes = [ReadNote; 2];

/// What a table has in memory.
#[derive(Default)]
pub(crate) struct Kept {
    columns: Vec<(usize, Notes, Index)>,
}

impl Kept {
    /// Takes the index of a column, as it is in the present state.
    pub fn take(&mut self, t: Tables<'_>) -> Result<(Notes, Index)> {
        let kept = self.columns.iter().position(|c| c.0 == t.column).map(|at| self.columns.swap_remove(at));
        if let Some((_, mut notes, mut index)) = kept
            && let Some(changes) = t.changes(index.is_large(t), &mut notes)
            && index.follow(t, &changes)?
        {
            return Ok((notes, index));
        }
        let mut notes = Notes::default();
        let index = Index::read(t)?;
        t.changes(index.is_large(t), &mut notes);
        Ok((notes, index))
    }

    /// Puts it back, if what it was read from is known to be there still.
    pub fn put(&mut self, t: Tables<'_>, (mut notes, index): (Notes, Index)) {
        let known = notes.iter().all(Option::is_some);
        let same =
            known && t.changes(index.is_large(t), &mut notes) == Some([Changes::Nothing, Changes::Nothing]);
        if same && !self.columns.iter().any(|c| c.0 == t.column) {
            self.columns.push((t.column, notes, index));
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
    /// Entries of lists of which it is known where their vectors lie.
    measured: Vec<(u32, u32)>,
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
            measured: Vec::new(),
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

    /// Whether its vectors are too many to be followed.
    fn is_large(&self, t: Tables<'_>) -> bool {
        let rows = self.header.lists as usize * (self.header.limit as usize / 4).max(1);
        rows * t.store.config.vectors[t.column].bytes() > MOST_FOLLOWED
    }

    /// Brings it to the present state; false: it is to be read anew.
    fn follow(&mut self, t: Tables<'_>, [index, vectors]: &[Changes; 2]) -> Result<bool> {
        if *index != Changes::Nothing {
            self.tail = None;
            match index.of(0) {
                Changed::Nothing => {}
                Changed::Rows(rows) => {
                    if !self.has_these_lists(t, &rows)? {
                        return Ok(false);
                    }
                }
                Changed::All => return Ok(false),
            }
            match index.of(1) {
                Changed::Nothing => {}
                Changed::Rows(rows) => {
                    for range in rows {
                        let last = list_of(*range.end()).min(self.lists.len() as i64);
                        (list_of(*range.start()).max(1)..=last)
                            .for_each(|l| self.forget_list(l as usize - 1));
                    }
                }
                Changed::All => return Ok(false),
            }
        }
        if *vectors != Changes::Nothing {
            self.tail = None;
            let rows = |changed| match changed {
                Changed::Nothing => Vec::new(),
                Changed::Rows(rows) => rows,
                Changed::All => vec![i64::MIN..=i64::MAX],
            };
            let ranges = [rows(vectors.of(0)), rows(vectors.of(1))].concat();
            self.forget_pieces(|chunk| ranges.iter().any(|r| r.contains(&chunk)));
        }
        Ok(true)
    }

    /// Reads the header, and whether centroids in these ranges are those that are known.
    fn has_these_lists(&mut self, t: Tables<'_>, ranges: &[RangeInclusive<i64>]) -> Result<bool> {
        let header = t.header()?;
        if header.lists != self.header.lists || header.layout() != self.header.layout() {
            return Ok(false);
        }
        self.header = header;
        for range in ranges {
            for list in (*range.start()).max(1)..=(*range.end()).min(i64::from(self.header.lists)) {
                if !self.is_centroid(list as u32, &t.centroid(list)?) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Where vectors of such chunks lie is to be found out anew.
    fn forget_pieces(&mut self, of: impl Fn(i64) -> bool) {
        let lists = &mut self.lists;
        self.measured.retain(|(list, at)| {
            let entry = lists.get_mut(*list as usize - 1).and_then(Option::as_deref_mut);
            let Some(l) = entry.filter(|l| l.pieces.get(*at as usize).is_some_and(|p| !p.is_empty())) else {
                return false;
            };
            let gone = of(unpacked(l.places[*at as usize]).chunk);
            if gone {
                l.pieces[*at as usize] = Box::default();
            }
            !gone
        });
    }

    /// Notes where the vector of an entry lies.
    pub fn found(&mut self, list: u32, at: u32, pieces: Vec<Piece>) {
        if let Some(Some(l)) = self.lists.get_mut(list as usize - 1)
            && let Some(known) = l.pieces.get_mut(at as usize)
        {
            *known = pieces.into_boxed_slice();
            self.measured.push((list, at));
        }
    }

    fn is_centroid(&self, list: u32, numbers: &[f32]) -> bool {
        let n = numbers.len();
        let known = self.centroids.get((list as usize - 1) * n..).and_then(|c| c.get(..n));
        known.is_some_and(|known| known.iter().zip(numbers).all(|(a, b)| a.to_bits() == b.to_bits()))
    }

    fn forget_list(&mut self, at: usize) {
        if let Some(l) = self.lists[at].take() {
            self.bytes = self.bytes.saturating_sub(l.codes.len() + BESIDE * l.places.len());
        }
    }

    /// The `n` lists with the nearest centroids, nearest first, and the odd one before all. Unless `n` is all of them, those are left out that are
    /// much farther away than the first: of a vector, with the square of its length, whose neighbours are all in few lists.
    pub fn nearest_lists(&self, (query, scale, square): (&[Run<i8>], f32, f32), n: usize) -> Vec<u32> {
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
        if let Some((first, _)) = order.first().filter(|_| n < ranks.len() - 1) {
            let farthest = (first + square) * (1.0 + (n as f32 / USUAL).sqrt()) - square;
            let near = order.iter().take_while(|o| o.0 <= farthest).count();
            order.truncate(near.max(n.min(FEW)));
        }
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

//! A column's vectors in memory, a number in 8 bits: a search looks at all of them there, and at few as they are stored.
//!
//! A row is `scale * code` with codes from -119 to 119, and what is left over, of which the length is kept. From both follows how far the
//! row's scalar product with the query can be from that of the codes; so each row has a least and a greatest distance. The rows whose least
//! distance is not above the k-th smallest greatest distance are measured as they are stored.
//!
//! The upper halves of codes, 4 bits, are looked at first, with what the lower ones leave over; they tell of most rows that they are too far away,
//! at half the memory.
//!
//! What always holds: the answer is that of a scan, to the bit, since nothing is left out whose distance could belong to it, and distances are
//! computed by the same kernel. The copy belongs to one state of the chunks and the column's vectors, and to the connection. Where chunks have
//! changed, those are looked at again: rows that are others are left out from then on, and what they are now is added. Where nobody can tell
//! what has changed, as within a transaction that changes the table, there is no copy. It is made when a column was searched some times, within
//! [`MOST_CODES`]; without memory for it there is none.

use crate::config::{MOST_DIMENSIONS, VectorColumn};
use crate::dot::{Packed, RUN, Run, Work, nibble_products, pack, total, widest};
use crate::found::{Found, keep};
use crate::kernel::{LANES, Metric, Query, numbers};
use crate::store::{Chunk, Place, Reader, Store};
use crate::vector::Kind;
use iolite_base::hash::FastMap;
use iolite_base::{Result, alloc};
use iolite_ext::{Changed, Changes, Piece, ReadNote};
use iolite_value::Value;
use std::cell::RefCell;
use std::collections::{BinaryHeap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// A copy is made by the search of a state with this number: it costs as much as about so many searches without it.
const SEARCHES: u32 = 7;
/// The greatest code: its upper half is not above 7.
const MOST_CODE: f32 = 119.0;
const MOST_RUNS: usize = MOST_DIMENSIONS / RUN;
/// So many bytes of codes are kept for a table at the most.
const MOST_CODES: usize = 192 << 20;
/// So many bytes of vectors as they are stored are kept beside them; where they are more, they are read from the table.
const MOST_STORED: usize = 48 << 20;
/// Rows that are there no more are in this chunk.
const GONE: i64 = i64::MIN;
/// Where chunks with more than so many rows have changed, and with more than a quarter of all, the copy is made anew.
const MOST_CHANGED: usize = 8192;
/// Of so many vectors it is remembered where they lie.
const MOST_PIECES: usize = 1 << 20;
/// Rows are looked at in groups of so many: their codes and products stay close to the processor.
const GROUP: usize = 256;
/// By how much sums of `f32` may be off, in parts of the product of both lengths, for each dimension.
const ROUNDING: f32 = 3e-7;

/// What a table has in memory.
#[derive(Default)]
pub(crate) struct Copies {
    columns: Vec<(usize, Copy)>,
}

/// A column's copy.
#[derive(Default)]
struct Copy {
    note: ReadNote,
    /// How often the column was searched since nothing is known of it.
    searches: u32,
    /// None: not made yet. None inside: it would be too large.
    made: Option<Option<Quantized>>,
}

#[derive(Default)]
struct Quantized {
    /// A row has so many runs of codes.
    runs: usize,
    /// Codes are `16 * upper + lower`: the former from -8 to 7, the latter likewise, each plus 8 in 4 bits.
    upper: Packed,
    lower: Packed,
    /// The length of what the upper halves leave over.
    halves: Vec<f32>,
    /// By which number a row's codes are to be multiplied.
    scales: Vec<f32>,
    /// The length of what they leave over.
    rests: Vec<f32>,
    /// The vector's length.
    lengths: Vec<f32>,
    rows: Vec<(i64, Place)>,
    /// How many of them are in chunk [`GONE`]: they are to be left out.
    gone: usize,
    /// The numbers of the others by chunk, once they were asked for.
    by_chunk: FastMap<i64, Vec<u32>>,
    stored: Vec<u8>,
    /// Otherwise, where vectors lie that were read.
    pieces: RefCell<HashMap<u32, Rc<[Piece]>>>,
}

/// The query's part in the bounds.
struct Measure {
    metric: Metric,
    scale: f32,
    rest: f32,
    length: f32,
    /// What the products are too large by: each half of the rows' codes is 8 too large.
    shift: i32,
    /// By how much sums of `f32` may be off, in parts.
    off: f32,
}

impl Measure {
    /// The least and the greatest distance of a row, by the product of codes and its scale, rest and length. What is no number, or too large to
    /// be one, may be any.
    #[inline(always)]
    fn bounds(&self, cosine: bool, product: i32, [scale, rest, length]: [f32; 3]) -> (f32, f32) {
        let product = self.scale * scale * product as f32;
        let off = self.off;
        let both = self.length * length;
        let error = rest * self.length + (length + rest) * self.rest + off * both;
        let (least, greatest) = if cosine {
            (1.0 - (product + error) / both - off, 1.0 - (product - error) / both + off)
        } else {
            let squares = self.length * self.length + length * length;
            let (middle, slack) = (squares - 2.0 * product, 2.0 * error + 2.0 * off * squares);
            ((middle - slack).max(0.0).sqrt() * (1.0 - off), (middle + slack).max(0.0).sqrt() * (1.0 + off))
        };
        let known = error.abs() < f32::MAX && least.abs() < f32::MAX && greatest.abs() < f32::MAX;
        (if known { least } else { f32::NEG_INFINITY }, if known { greatest } else { f32::INFINITY })
    }

    /// Which rows' least distance, by the products of upper halves of codes, is not above `worst`; answers how many.
    #[inline(always)]
    fn near(
        &self,
        cosine: bool,
        products: &[i32],
        rows: [&[f32]; 3],
        worst: f32,
        out: &mut [u16; GROUP],
    ) -> usize {
        let n = products.len().min(GROUP);
        let [scales, rests, lengths] = rows.map(|r| &r[..n]);
        let mut low = [0f32; GROUP];
        for i in 0..n {
            let product = (products[i] - self.shift) * 16;
            low[i] = self.bounds(cosine, product, [scales[i], rests[i], lengths[i]]).0;
        }
        let mut found = 0;
        for (i, low) in low[..n].iter().enumerate() {
            out[found] = i as u16;
            found += usize::from(*low <= worst);
        }
        found
    }
}

/// Lengths whose squares and products the kernel's `f32` holds well: the bounds say nothing of others.
pub(crate) const LENGTHS: std::ops::Range<f32> = 1e-15..1e18;

struct Near<'a> {
    measure: &'a Measure,
    sums: &'a [i32],
    rows: [&'a [f32]; 3],
    worst: f32,
    out: &'a mut [u16; GROUP],
}

impl Work for Near<'_> {
    type Out = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Near { measure, sums, rows, worst, out } = self;
        match measure.metric {
            Metric::Cosine => measure.near(true, sums, rows, worst, out),
            _ => measure.near(false, sums, rows, worst, out),
        }
    }
}

/// The halves of codes, packed.
struct Halves<'a> {
    codes: &'a [Run<i8>],
    upper: &'a mut Vec<u8>,
    lower: &'a mut Vec<u8>,
}

impl Work for Halves<'_> {
    /// The square of the length of the lower halves.
    type Out = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut square = 0i32;
        let (mut upper, mut lower) = ([[0u8; RUN]; MOST_RUNS], [[0u8; RUN]; MOST_RUNS]);
        let n = self.codes.len();
        for (k, run) in self.codes.iter().enumerate() {
            for i in 0..RUN {
                let code = i32::from(run.0[i]);
                let high = (code + 8) >> 4;
                let low = code - 16 * high;
                upper[k][i] = (high + 8) as u8;
                lower[k][i] = (low + 8) as u8;
                square += low * low;
            }
        }
        self.upper.clear();
        self.lower.clear();
        pack(&upper[..n], self.upper);
        pack(&lower[..n], self.lower);
        square as f32
    }
}

/// Makes the codes of a vector: see `quantize`.
pub(crate) struct Codes<'a> {
    pub numbers: &'a [f32],
    pub codes: &'a mut Vec<Run<i8>>,
}

impl Work for Codes<'_> {
    type Out = (f32, f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32, f32) {
        quantize(self.numbers, self.codes)
    }
}

/// The codes of a vector; answers scale, length of the rest (no number: the vector is to be measured in any case), and length.
#[inline(always)]
fn quantize(numbers: &[f32], codes: &mut Vec<Run<i8>>) -> (f32, f32, f32) {
    codes.clear();
    let most = numbers.iter().fold(0f32, |m, x| if x.abs() > m { x.abs() } else { m });
    let scale = most / MOST_CODE;
    let (mut rest, mut square) = (0f64, 0f64);
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for numbers in numbers.chunks(RUN) {
        let mut padded = [0f32; RUN];
        padded[..numbers.len()].copy_from_slice(numbers);
        let mut nearest = [0f32; RUN];
        for (x, to) in padded.iter().zip(&mut nearest) {
            // The nearest integer, by adding a number whose last bit is 1.
            *to = (x * inverse).clamp(-MOST_CODE, MOST_CODE) + 12_582_912.0 - 12_582_912.0;
        }
        let run = Run(nearest.map(|n| n as i8));
        let mut squares = [[0f64; 8]; 2];
        for (numbers, codes) in padded.as_chunks::<8>().0.iter().zip(nearest.as_chunks::<8>().0) {
            for i in 0..8 {
                let x = f64::from(numbers[i]);
                let left = x - f64::from(scale) * f64::from(codes[i]);
                squares[0][i] += left * left;
                squares[1][i] += x * x;
            }
        }
        rest += squares[0].iter().sum::<f64>();
        square += squares[1].iter().sum::<f64>();
        codes.push(run);
    }
    let length = square.sqrt() as f32;
    let rest = if LENGTHS.contains(&length) { rest.sqrt() as f32 * 1.000_001 } else { f32::NAN };
    (scale, rest, length)
}

impl Copies {
    /// The nearest `k` rows, if there is a copy for this: nothing filters, and the measure is one of lengths and products.
    pub fn nearest(
        &mut self,
        store: &Store,
        column: usize,
        query: &Query<'_>,
        k: usize,
    ) -> Result<Option<Vec<Found>>> {
        let c = &store.config.vectors[column];
        if c.kind == Kind::Bit || !matches!(c.metric, Metric::L2 | Metric::Cosine) {
            return Ok(None);
        }
        let at = match self.columns.iter().position(|q| q.0 == column) {
            Some(at) => at,
            None => {
                self.columns.push((column, Copy::default()));
                self.columns.len() - 1
            }
        };
        let copy = &mut self.columns[at].1;
        match store.vector_changes(column, &mut copy.note) {
            Some(Changes::Nothing) => {}
            Some(changes) => {
                // Whatever goes wrong on the way, what is half done is not used.
                let made = copy.made.take();
                let was_made = made.is_some();
                copy.made = follow(made, store, column, &changes)?;
                let all = [0, 1].map(|t| changes.of(t)).contains(&Changed::All);
                if copy.made.is_none() && (was_made || all) {
                    copy.searches = 0;
                }
            }
            None => return Ok(None),
        }
        copy.searches = copy.searches.saturating_add(1);
        if copy.searches < SEARCHES {
            return Ok(None);
        }
        if copy.made.is_none() {
            copy.made = Some(Quantized::of(store, column, c)?);
        }
        match &copy.made {
            Some(Some(q)) => q.nearest(store, column, query, k).map(Some),
            _ => Ok(None),
        }
    }
}

/// Brings a copy to the present state; none: it is to be made anew.
fn follow(
    made: Option<Option<Quantized>>,
    store: &Store,
    column: usize,
    changes: &Changes,
) -> Result<Option<Option<Quantized>>> {
    let ranges = |t: usize| match changes.of(t) {
        Changed::Nothing => Some(Vec::new()),
        Changed::Rows(rows) => Some(rows),
        Changed::All => None,
    };
    let (Some(chunks), Some(vectors)) = (ranges(0), ranges(1)) else { return Ok(None) };
    match made {
        Some(Some(mut q)) => Ok(q.follow(store, column, &chunks, &vectors)?.then_some(Some(q))),
        made => Ok(made),
    }
}

type Ranges = [RangeInclusive<i64>];

fn is_in(ranges: &Ranges, id: i64) -> bool {
    ranges.iter().any(|r| r.contains(&id))
}

/// What is made of one vector after the other.
#[derive(Default)]
struct Made {
    codes: Vec<Run<i8>>,
    upper: Vec<u8>,
    lower: Vec<u8>,
    scale: f32,
    rest: f32,
    half: f32,
    length: f32,
}

impl Made {
    fn of(&mut self, kind: Kind, vector: &[u8]) {
        let numbers = numbers(kind, vector);
        (self.scale, self.rest, self.length) = widest(Codes { numbers: &numbers, codes: &mut self.codes });
        let square = widest(Halves { codes: &self.codes, upper: &mut self.upper, lower: &mut self.lower });
        self.half = self.rest + self.scale * square.sqrt() * 1.000_001;
    }
}

impl Quantized {
    /// A copy of a column; none where it would be too large.
    fn of(store: &Store, column: usize, c: &VectorColumn) -> Result<Option<Quantized>> {
        let bytes = c.bytes();
        let mut q = Quantized { runs: c.dimensions.div_ceil(RUN), ..Quantized::default() };
        let (mut made, mut fits, mut keeps) = (Made::default(), true, true);
        store.chunks("1", &[], |chunk| {
            let taken = (0..chunk.size).filter(|at| chunk.is_taken(*at)).count();
            fits = fits && q.has_room(taken);
            if !fits {
                return Ok(());
            }
            keeps = keeps && q.keeps(taken * bytes);
            let vectors = store.vectors(column, &chunk)?;
            for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
                let vector = &vectors[bytes * at..][..bytes];
                made.of(c.kind, vector);
                q.push(&made, chunk.rowid(at), Place { chunk: chunk.id, at });
                if keeps {
                    q.stored.extend_from_slice(vector);
                }
            }
            Ok(())
        })?;
        if !keeps {
            q.stored = Vec::new();
        }
        Ok(fits.then_some(q))
    }

    /// Makes room for so many more rows; false: they would be too many, or there is no memory.
    fn has_room(&mut self, more: usize) -> bool {
        let bytes = self.runs * RUN;
        (self.rows.len() + more) * bytes <= MOST_CODES
            && [&mut self.upper, &mut self.lower].into_iter().all(|p| p.reserve(more * bytes / 2).is_ok())
            && [&mut self.scales, &mut self.rests, &mut self.halves, &mut self.lengths]
                .into_iter()
                .all(|list| alloc::reserve(list, more).is_ok())
            && alloc::reserve(&mut self.rows, more).is_ok()
    }

    /// The same for their bytes as they are stored.
    fn keeps(&mut self, bytes: usize) -> bool {
        self.stored.len() + bytes <= MOST_STORED && alloc::reserve(&mut self.stored, bytes).is_ok()
    }

    fn push(&mut self, made: &Made, rowid: i64, place: Place) {
        self.upper.push(&made.upper);
        self.lower.push(&made.lower);
        self.scales.push(made.scale);
        self.rests.push(made.rest);
        self.halves.push(made.half);
        self.lengths.push(made.length);
        self.rows.push((rowid, place));
    }

    /// Whether a row is what was made of its vector now.
    fn is(&self, row: usize, made: &Made) -> bool {
        let bytes = self.runs * RUN / 2;
        let numbers = [self.scales[row], self.rests[row], self.halves[row], self.lengths[row]];
        let now = [made.scale, made.rest, made.half, made.length];
        numbers.map(f32::to_bits) == now.map(f32::to_bits)
            && self.upper.bytes()[row * bytes..][..bytes] == made.upper[..]
            && self.lower.bytes()[row * bytes..][..bytes] == made.lower[..]
    }

    /// Brings it to the present state, from which it differs in these chunks, and in the vectors of those; false: it is to be made anew.
    fn follow(&mut self, store: &Store, column: usize, chunks: &Ranges, vectors: &Ranges) -> Result<bool> {
        if self.by_chunk.is_empty() {
            for (i, row) in self.rows.iter().enumerate().filter(|r| r.1.1.chunk != GONE) {
                self.by_chunk.entry(row.1.chunk).or_default().push(i as u32);
            }
        }
        let changed = |id: i64| is_in(chunks, id) || is_in(vectors, id);
        let mut before: Vec<i64> = self.by_chunk.keys().copied().filter(|id| changed(*id)).collect();
        let rows: usize = before.iter().map(|id| self.by_chunk[id].len()).sum();
        let most = (self.rows.len() / 4).max(MOST_CHANGED);
        if rows > most {
            return Ok(false);
        }
        let mut now = Vec::new();
        for range in chunks.iter().chain(vectors) {
            let bounds = [Value::Int(*range.start()), Value::Int(*range.end())];
            store.chunks("chunk_id BETWEEN ?1 AND ?2", &bounds, |chunk| {
                if now.len() * chunk.size <= 2 * most {
                    now.push(chunk);
                }
                Ok(())
            })?;
        }
        now.sort_unstable_by_key(|c| c.id);
        now.dedup_by_key(|c| c.id);
        if now.iter().map(|c| c.size).sum::<usize>() > 2 * most {
            return Ok(false);
        }
        before.retain(|id| now.binary_search_by_key(id, |c| c.id).is_err());
        for id in before {
            for row in self.by_chunk.remove(&id).unwrap_or_default() {
                self.forget(row as usize);
            }
        }
        for chunk in &now {
            if !self.follow_chunk(store, column, chunk, is_in(vectors, chunk.id))? {
                return Ok(false);
            }
        }
        Ok(self.gone <= (self.rows.len() / 4).max(MOST_CHANGED))
    }

    fn forget(&mut self, row: usize) {
        self.rows[row].1.chunk = GONE;
        self.gone += 1;
        self.pieces.borrow_mut().remove(&(row as u32));
    }

    /// `vectors`: they may be others, and not only the rows.
    fn follow_chunk(&mut self, store: &Store, column: usize, chunk: &Chunk, vectors: bool) -> Result<bool> {
        let c = &store.config.vectors[column];
        let bytes = c.bytes();
        let mut known: FastMap<usize, u32> = FastMap::default();
        for row in self.by_chunk.remove(&chunk.id).unwrap_or_default() {
            let (rowid, place) = self.rows[row as usize];
            if place.at < chunk.size && chunk.is_taken(place.at) && chunk.rowid(place.at) == rowid {
                known.insert(place.at, row);
                self.pieces.borrow_mut().remove(&row);
            } else {
                self.forget(row as usize);
            }
        }
        let taken: Vec<usize> = (0..chunk.size).filter(|at| chunk.is_taken(*at)).collect();
        let mut rows = Vec::with_capacity(taken.len());
        if vectors || taken.len() > known.len() {
            let stored = !self.stored.is_empty() || self.rows.is_empty();
            if !self.has_room(taken.len()) || stored && !self.keeps(taken.len() * bytes) {
                return Ok(false);
            }
            let values = store.vectors(column, chunk)?;
            let mut made = Made::default();
            for at in taken {
                let vector = &values[bytes * at..][..bytes];
                if let Some(row) = known.get(&at) {
                    let same = if stored {
                        self.stored[bytes * *row as usize..][..bytes] == *vector
                    } else {
                        !vectors || {
                            made.of(c.kind, vector);
                            self.is(*row as usize, &made)
                        }
                    };
                    if same {
                        rows.push(*row);
                        continue;
                    }
                    self.forget(*row as usize);
                }
                made.of(c.kind, vector);
                rows.push(self.rows.len() as u32);
                self.push(&made, chunk.rowid(at), Place { chunk: chunk.id, at });
                if stored {
                    self.stored.extend_from_slice(vector);
                }
            }
        } else {
            rows.extend(known.values());
        }
        self.by_chunk.insert(chunk.id, rows);
        Ok(true)
    }

    fn nearest(&self, store: &Store, column: usize, query: &Query<'_>, k: usize) -> Result<Vec<Found>> {
        let c = &store.config.vectors[column];
        let mut codes = Vec::new();
        let (scale, rest, length) = widest(Codes { numbers: query.numbers(), codes: &mut codes });
        let shift = 8 * total(&codes);
        let off = ROUNDING * c.dimensions as f32;
        let measure = Measure { metric: c.metric, scale, rest, length, shift, off };
        let n = self.rows.len();
        // Rows whose least distance was not above what was known then.
        let mut near: Vec<(f32, u32)> = Vec::new();
        // The `k` smallest greatest distances, the largest of them on top.
        let mut bounds: BinaryHeap<Bound> = BinaryHeap::new();
        let mut worst = f32::INFINITY;
        let (mut sums, mut lower) = (Vec::new(), Vec::new());
        let mut left = [0u16; GROUP];
        let (bytes, cosine) = (self.runs * RUN / 2, c.metric == Metric::Cosine);
        let (uppers, lowers) = (self.upper.bytes(), self.lower.bytes());
        for from in (0..n).step_by(GROUP) {
            let to = n.min(from + GROUP);
            nibble_products(&uppers[from * bytes..to * bytes], &codes, &mut sums);
            let rows = [&self.scales[from..to], &self.halves[from..to], &self.lengths[from..to]];
            let found = widest(Near { measure: &measure, sums: &sums, rows, worst, out: &mut left });
            alloc::reserve(&mut near, found)?;
            for at in &left[..found] {
                let i = from + usize::from(*at);
                if self.gone > 0 && self.rows[i].1.chunk == GONE {
                    continue;
                }
                nibble_products(&lowers[i * bytes..][..bytes], &codes, &mut lower);
                let product = (sums[i - from] - shift) * 16 + lower[0] - shift;
                let row = [self.scales[i], self.rests[i], self.lengths[i]];
                let (low, high) = measure.bounds(cosine, product, row);
                if low > worst {
                    continue;
                }
                near.push((low, i as u32));
                if high < worst || bounds.len() < k {
                    if bounds.len() == k {
                        bounds.pop();
                    }
                    bounds.push(Bound(high));
                    if bounds.len() == k {
                        worst = bounds.peek().map_or(worst, |b| b.0);
                    }
                }
            }
        }
        near.retain(|(low, _)| *low <= worst);
        near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let bytes = c.bytes();
        let mut heap: BinaryHeap<Found> = BinaryHeap::new();
        let mut read: [Vec<u8>; LANES] = Default::default();
        let mut reader = store.reader(column);
        for group in near.chunks(LANES) {
            // Nothing from here on can be nearer than what there is.
            if heap.len() == k && heap.peek().is_some_and(|worst| f64::from(group[0].0) > worst.distance) {
                break;
            }
            let row = |j: usize| group[j.min(group.len() - 1)].1 as usize;
            let distances = if self.stored.is_empty() {
                for (j, to) in read.iter_mut().enumerate().take(group.len()) {
                    self.read(&mut reader, row(j), bytes, to)?;
                }
                query.distances(std::array::from_fn(|j| &read[j.min(group.len() - 1)][..]))
            } else {
                query.distances(std::array::from_fn(|j| &self.stored[bytes * row(j)..][..bytes]))
            };
            for (j, distance) in distances.into_iter().enumerate().take(group.len()) {
                let (rowid, place) = self.rows[row(j)];
                keep(&mut heap, k, Found { distance, rowid, place });
            }
        }
        Ok(heap.into_sorted_vec())
    }

    /// Reads the vector of a row; where it lies is remembered.
    fn read(&self, reader: &mut Reader<'_>, row: usize, bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(bytes, 0);
        let known = self.pieces.borrow().get(&(row as u32)).cloned();
        match known {
            Some(pieces) => reader.read_pieces(&pieces, out),
            None => {
                reader.read(self.rows[row].1, out)?;
                let pieces = reader.pieces(self.rows[row].1)?;
                let mut known = self.pieces.borrow_mut();
                if known.len() < MOST_PIECES {
                    known.insert(row as u32, pieces.into());
                }
                Ok(())
            }
        }
    }
}

/// A greatest distance.
#[derive(Clone, Copy, PartialEq)]
struct Bound(f32);

impl Eq for Bound {}

impl Ord for Bound {
    fn cmp(&self, other: &Bound) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Bound) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

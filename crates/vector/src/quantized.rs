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
//! computed by the same kernel. The copy follows the table (`rows`), within [`MOST_CODES`]; without memory for it there is none.

use crate::config::MOST_DIMENSIONS;
use crate::dot::{Packed, RUN, Run, Work, nibble_products, nibble_products_at, pack, total, widest};
use crate::found::{Found, keep};
use crate::kernel::{LANES, Metric, Query, numbers};
use crate::rows::{Kept, OfRows, Rows};
use crate::store::{Place, Store};
use crate::vector::Kind;
use iolite_base::{Result, alloc};
use std::collections::BinaryHeap;

/// The greatest code: its upper half is not above 7.
const MOST_CODE: f32 = 119.0;
const MOST_RUNS: usize = MOST_DIMENSIONS / RUN;
/// So many bytes of codes are kept for a table at the most.
const MOST_CODES: usize = 192 << 20;
/// So many bytes of vectors as they are stored are kept beside them; where they are more, they are read from the table.
const MOST_STORED: usize = 48 << 20;
/// Rows are looked at in groups of so many: their codes and products stay close to the processor.
const GROUP: usize = 256;
/// By how much sums of `f32` may be off, in parts of the product of both lengths, for each dimension.
const ROUNDING: f32 = 3e-7;

/// What a table has in memory.
pub(crate) type Copies = Kept<Quantized>;

/// A column's copy.
#[derive(Default)]
pub(crate) struct Quantized {
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
    rows: Rows,
    /// The vectors as they are stored; nothing where they are too many.
    stored: Vec<u8>,
    kind: Kind,
    made: Made,
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

/// The nearest `k` rows, if there is a copy for this: nothing filters, and the measure is one of lengths and products.
pub(crate) fn nearest(
    copies: &mut Copies,
    store: &Store,
    column: usize,
    query: &Query<'_>,
    k: usize,
) -> Result<Option<Vec<Found>>> {
    let c = &store.config.vectors[column];
    if c.kind == Kind::Bit || !matches!(c.metric, Metric::L2 | Metric::Cosine) {
        return Ok(None);
    }
    match copies.present(store, column)? {
        Some(q) => q.nearest(store, column, query, k).map(Some),
        None => Ok(None),
    }
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

impl OfRows for Quantized {
    fn make(store: &Store, column: usize) -> Result<Option<Quantized>> {
        let c = &store.config.vectors[column];
        let bytes = c.bytes();
        let mut q = Quantized { runs: c.dimensions.div_ceil(RUN), kind: c.kind, ..Quantized::default() };
        let (mut fits, mut keeps) = (true, true);
        store.chunks("1", &[], |chunk| {
            let taken = (0..chunk.size).filter(|at| chunk.is_taken(*at)).count();
            fits = fits && q.has_room_for(taken);
            if !fits {
                return Ok(());
            }
            keeps = keeps && q.keeps(taken * bytes);
            let vectors = store.vectors(column, &chunk)?;
            for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
                let vector = &vectors[bytes * at..][..bytes];
                q.rows.push(chunk.rowid(at), Place { chunk: chunk.id, at });
                q.push_codes(vector);
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

    fn rows(&self) -> &Rows {
        &self.rows
    }

    fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn has_room(&mut self, more: usize, bytes: usize) -> bool {
        self.has_room_for(more) && (!self.is_stored() || self.keeps(more * bytes))
    }

    fn is(&mut self, row: usize, vector: &[u8]) -> Result<bool> {
        let n = vector.len();
        Ok(if self.is_stored() {
            self.stored[n * row..][..n] == *vector
        } else {
            self.made.of(self.kind, vector);
            self.is_made(row)
        })
    }

    fn push(&mut self, vector: &[u8]) -> Result<()> {
        if self.is_stored() {
            self.stored.extend_from_slice(vector);
        }
        self.push_codes(vector);
        Ok(())
    }
}

impl Quantized {
    /// Whether vectors are here as they are stored, if there are any.
    fn is_stored(&self) -> bool {
        !self.stored.is_empty() || self.lengths.is_empty()
    }

    /// Makes room for so many more rows; false: they would be too many, or there is no memory.
    fn has_room_for(&mut self, more: usize) -> bool {
        let bytes = self.runs * RUN;
        (self.rows.len() + more) * bytes <= MOST_CODES
            && [&mut self.upper, &mut self.lower].into_iter().all(|p| p.reserve(more * bytes / 2).is_ok())
            && [&mut self.scales, &mut self.rests, &mut self.halves, &mut self.lengths]
                .into_iter()
                .all(|list| alloc::reserve(list, more).is_ok())
            && self.rows.reserve(more).is_ok()
    }

    /// The same for their bytes as they are stored.
    fn keeps(&mut self, bytes: usize) -> bool {
        self.stored.len() + bytes <= MOST_STORED && alloc::reserve(&mut self.stored, bytes).is_ok()
    }

    fn push_codes(&mut self, vector: &[u8]) {
        self.made.of(self.kind, vector);
        let made = &self.made;
        self.upper.push(&made.upper);
        self.lower.push(&made.lower);
        self.scales.push(made.scale);
        self.rests.push(made.rest);
        self.halves.push(made.half);
        self.lengths.push(made.length);
    }

    /// Whether a row is what was made of a vector just now.
    fn is_made(&self, row: usize) -> bool {
        let (bytes, made) = (self.runs * RUN / 2, &self.made);
        let numbers = [self.scales[row], self.rests[row], self.halves[row], self.lengths[row]];
        let now = [made.scale, made.rest, made.half, made.length];
        numbers.map(f32::to_bits) == now.map(f32::to_bits)
            && self.upper.bytes()[row * bytes..][..bytes] == made.upper[..]
            && self.lower.bytes()[row * bytes..][..bytes] == made.lower[..]
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
        let (mut sums, mut lower, mut rows_left) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = [0u16; GROUP];
        let (bytes, cosine) = (self.runs * RUN / 2, c.metric == Metric::Cosine);
        let (uppers, lowers) = (self.upper.bytes(), self.lower.bytes());
        for from in (0..n).step_by(GROUP) {
            let to = n.min(from + GROUP);
            nibble_products(&uppers[from * bytes..to * bytes], &codes, &mut sums);
            let rows = [&self.scales[from..to], &self.halves[from..to], &self.lengths[from..to]];
            let found = widest(Near { measure: &measure, sums: &sums, rows, worst, out: &mut left });
            alloc::reserve(&mut near, found)?;
            rows_left.clear();
            rows_left.extend(left[..found].iter().map(|at| (from + usize::from(*at)) as u32));
            nibble_products_at((lowers, bytes), &rows_left, &codes, &mut lower);
            for (i, lower) in rows_left.iter().zip(&lower) {
                let i = *i as usize;
                if self.rows.is_gone(i) {
                    continue;
                }
                let product = (sums[i - from] - shift) * 16 + lower - shift;
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
                    self.rows.read(&mut reader, row(j), bytes, to)?;
                }
                query.distances(std::array::from_fn(|j| &read[j.min(group.len() - 1)][..]))
            } else {
                query.distances(std::array::from_fn(|j| &self.stored[bytes * row(j)..][..bytes]))
            };
            for (j, distance) in distances.into_iter().enumerate().take(group.len()) {
                let (rowid, place) = self.rows.of(row(j));
                keep(&mut heap, k, Found { distance, rowid, place });
            }
        }
        self.rows.each_open(store, column, |rowid, place, vector| {
            keep(&mut heap, k, Found { distance: query.distance(vector), rowid, place });
            Ok(())
        })?;
        Ok(heap.into_sorted_vec())
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

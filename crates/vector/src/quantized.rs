//! A column's vectors in memory, a number in 8 bits: a search looks at all of them there, and at few as they are stored.
//!
//! A row is `scale * code` with codes from -127 to 127, and what is left over, of which the length is kept. From both follows how far the
//! row's scalar product with the query can be from that of the codes; so each row has a least and a greatest distance. The rows whose least
//! distance is not above the k-th smallest greatest distance are measured as they are stored.
//!
//! What always holds: the answer is that of a scan, to the bit, since nothing is left out whose distance could belong to it, and distances are
//! computed by the same kernel. The copy belongs to one state of the database and to the connection; where the state cannot be told, as
//! within a transaction that writes, there is none. It is made when a state was searched some times, within [`MOST_CODES`];
//! without memory for it there is none.

use crate::config::VectorColumn;
use crate::dot::{RUN, Run, Work, products, total, widest};
use crate::found::{Found, keep};
use crate::kernel::{LANES, Metric, Query, numbers};
use crate::store::{Place, Store};
use crate::vector::Kind;
use iolite_base::{Result, alloc};
use iolite_ext::StateNote;
use std::collections::BinaryHeap;

/// A copy is made by the search of a state with this number: it costs as much as about so many searches without it.
const SEARCHES: u32 = 7;
/// So many bytes of codes are kept for a table at the most.
const MOST_CODES: usize = 192 << 20;
/// So many bytes of vectors as they are stored are kept beside them; where they are more, they are read from the table.
const MOST_STORED: usize = 48 << 20;
/// Rows are looked at in groups of so many: their codes and products stay close to the processor.
const GROUP: usize = 256;
/// By how much sums of `f32` may be off, in parts of the product of both lengths, for each dimension.
const ROUNDING: f32 = 3e-7;

/// What a table has in memory of one state.
#[derive(Default)]
pub(crate) struct Copies {
    state: StateNote,
    /// How often the state was searched.
    searches: u32,
    columns: Vec<(usize, Option<Quantized>)>,
}

#[derive(Default)]
struct Quantized {
    /// Codes of a row, plus 128, in so many runs.
    runs: usize,
    codes: Vec<Run<u8>>,
    /// By which number a row's codes are to be multiplied.
    scales: Vec<f32>,
    /// The length of what they leave over.
    rests: Vec<f32>,
    /// The vector's length.
    lengths: Vec<f32>,
    rows: Vec<(i64, Place)>,
    stored: Vec<u8>,
}

/// The query's part in the bounds.
struct Measure {
    metric: Metric,
    scale: f32,
    rest: f32,
    length: f32,
    /// What the products are too large by: the rows' codes are 128 too large.
    shift: i32,
    /// By how much sums of `f32` may be off, in parts.
    off: f32,
}

impl Measure {
    /// The least and the greatest distance of each row, by the products of codes. What is no number, or too large to be one, may be any.
    #[inline(always)]
    fn bounds(&self, products: &[i32], rows: [&[f32]; 3], low: &mut [f32], high: &mut [f32]) {
        let n = products.len();
        let [scales, rests, lengths] = rows.map(|r| &r[..n]);
        let (low, high) = (&mut low[..n], &mut high[..n]);
        for i in 0..n {
            let product = self.scale * scales[i] * (products[i] - self.shift) as f32;
            let (length, off) = (lengths[i], self.off);
            let both = self.length * length;
            let error = rests[i] * self.length + (length + rests[i]) * self.rest + off * both;
            let (least, greatest) = match self.metric {
                Metric::Cosine => {
                    (1.0 - (product + error) / both - off, 1.0 - (product - error) / both + off)
                }
                _ => {
                    let squares = self.length * self.length + length * length;
                    let (middle, slack) = (squares - 2.0 * product, 2.0 * error + 2.0 * off * squares);
                    (
                        (middle - slack).max(0.0).sqrt() * (1.0 - off),
                        (middle + slack).max(0.0).sqrt() * (1.0 + off),
                    )
                }
            };
            let known = error.abs() < f32::MAX && least.abs() < f32::MAX && greatest.abs() < f32::MAX;
            low[i] = if known { least } else { f32::NEG_INFINITY };
            high[i] = if known { greatest } else { f32::INFINITY };
        }
    }
}

/// Lengths whose squares and products the kernel's `f32` holds well: the bounds say nothing of others.
pub(crate) const LENGTHS: std::ops::Range<f32> = 1e-15..1e18;

struct Bounds<'a> {
    measure: &'a Measure,
    sums: &'a [i32],
    rows: [&'a [f32]; 3],
    low: &'a mut [f32],
    high: &'a mut [f32],
}

impl Work for Bounds<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.measure.bounds(self.sums, self.rows, self.low, self.high);
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
    let scale = most / 127.0;
    let (mut rest, mut square) = (0f64, 0f64);
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for numbers in numbers.chunks(RUN) {
        let mut padded = [0f32; RUN];
        padded[..numbers.len()].copy_from_slice(numbers);
        let mut nearest = [0f32; RUN];
        for (x, to) in padded.iter().zip(&mut nearest) {
            // The nearest integer, by adding a number whose last bit is 1.
            *to = (x * inverse).clamp(-127.0, 127.0) + 12_582_912.0 - 12_582_912.0;
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
        match store.is_state(&mut self.state) {
            Some(true) => {}
            Some(false) => {
                (self.searches, self.columns) = (1, Vec::new());
                return Ok(None);
            }
            None => return Ok(None),
        }
        self.searches += 1;
        if self.searches < SEARCHES {
            return Ok(None);
        }
        let at = match self.columns.iter().position(|q| q.0 == column) {
            Some(at) => at,
            None => {
                self.columns.push((column, Quantized::of(store, column, c)?));
                self.columns.len() - 1
            }
        };
        match &self.columns[at].1 {
            Some(q) => q.nearest(store, column, query, k).map(Some),
            None => Ok(None),
        }
    }
}

impl Quantized {
    /// A copy of a column; none where it would be too large.
    fn of(store: &Store, column: usize, c: &VectorColumn) -> Result<Option<Quantized>> {
        let runs = c.dimensions.div_ceil(RUN);
        let bytes = c.bytes();
        let mut q = Quantized { runs, ..Quantized::default() };
        let (mut codes, mut fits, mut keeps) = (Vec::new(), true, true);
        store.chunks("1", &[], |chunk| {
            let taken = (0..chunk.size).filter(|at| chunk.is_taken(*at)).count();
            fits = fits
                && (q.codes.len() + taken * runs) * RUN <= MOST_CODES
                && alloc::reserve(&mut q.codes, taken * runs).is_ok()
                && [&mut q.scales, &mut q.rests, &mut q.lengths]
                    .into_iter()
                    .all(|list| alloc::reserve(list, taken).is_ok())
                && alloc::reserve(&mut q.rows, taken).is_ok();
            if !fits {
                return Ok(());
            }
            keeps = keeps
                && q.stored.len() + taken * bytes <= MOST_STORED
                && alloc::reserve(&mut q.stored, taken * bytes).is_ok();
            let vectors = store.vectors(column, &chunk)?;
            for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
                let vector = &vectors[bytes * at..][..bytes];
                let numbers = numbers(c.kind, vector);
                let (scale, rest, length) = widest(Codes { numbers: &numbers, codes: &mut codes });
                q.codes.extend(codes.iter().map(|run| Run(run.0.map(|c| c.wrapping_add(-128) as u8))));
                let place = Place { chunk: chunk.id, at };
                q.scales.push(scale);
                q.rests.push(rest);
                q.lengths.push(length);
                q.rows.push((chunk.rowid(at), place));
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

    fn nearest(&self, store: &Store, column: usize, query: &Query<'_>, k: usize) -> Result<Vec<Found>> {
        let c = &store.config.vectors[column];
        let mut codes = Vec::new();
        let (scale, rest, length) = widest(Codes { numbers: query.numbers(), codes: &mut codes });
        let shift = 128 * total(&codes);
        let off = ROUNDING * c.dimensions as f32;
        let measure = Measure { metric: c.metric, scale, rest, length, shift, off };
        let n = self.rows.len();
        // Rows whose least distance was not above what was known then.
        let mut near: Vec<(f32, u32)> = Vec::new();
        // The `k` smallest greatest distances, the largest of them on top.
        let mut bounds: BinaryHeap<Bound> = BinaryHeap::new();
        let mut worst = f32::INFINITY;
        let mut sums = Vec::new();
        let (mut least, mut greatest) = ([0f32; GROUP], [0f32; GROUP]);
        for from in (0..n).step_by(GROUP) {
            let to = n.min(from + GROUP);
            products(&self.codes[from * self.runs..to * self.runs], &codes, &mut sums);
            let rows = [&self.scales[from..to], &self.rests[from..to], &self.lengths[from..to]];
            widest(Bounds { measure: &measure, sums: &sums, rows, low: &mut least, high: &mut greatest });
            alloc::reserve(&mut near, to - from)?;
            for i in 0..to - from {
                if least[i] > worst {
                    continue;
                }
                near.push((least[i], (from + i) as u32));
                if greatest[i] < worst || bounds.len() < k {
                    if bounds.len() == k {
                        bounds.pop();
                    }
                    bounds.push(Bound(greatest[i]));
                    if bounds.len() == k {
                        worst = bounds.peek().map_or(worst, |b| b.0);
                    }
                }
            }
        }
        near.retain(|(low, _)| *low <= worst);
        let bytes = c.bytes();
        let mut heap: BinaryHeap<Found> = BinaryHeap::new();
        let mut candidates = near.iter().map(|(_, i)| *i as usize);
        loop {
            let mut group = [0; LANES];
            let found = group.iter_mut().zip(&mut candidates).map(|(to, i)| *to = i).count();
            if found == 0 {
                break;
            }
            let first = group[0];
            group[found..].fill(first);
            let distances = if self.stored.is_empty() {
                let mut read: [Vec<u8>; LANES] = Default::default();
                for (to, i) in read.iter_mut().zip(&group) {
                    *to = store.vector(column, self.rows[*i].1)?;
                }
                query.distances(std::array::from_fn(|j| &read[j][..]))
            } else {
                query.distances(std::array::from_fn(|j| &self.stored[bytes * group[j]..][..bytes]))
            };
            for (i, distance) in group[..found].iter().zip(distances) {
                let (rowid, place) = self.rows[*i];
                keep(&mut heap, k, Found { distance, rowid, place });
            }
        }
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

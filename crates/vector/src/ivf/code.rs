//! Codes of 4 bits: a vector as the difference from its list's centroid.
//!
//! ```text
//! x = c + scale * code + e            codes from -7 to 7, e: what is left over
//! (q - x)^2 = (q - c)^2 - 2 scale (q . code) + constant + 2 (c - q) . e
//! constant  = 2 c . (scale * code) + (x - c)^2
//! ```
//!
//! Everything but the last term is known. Its size is that of `q - c` times a step of the codes, in a direction that has nothing to do with
//! `e`: so an estimate comes with a margin that it exceeds once in a hundred times. Which rows are answered follows from the vectors
//! as they are stored; a code that errs can only keep a row from being looked at.
//!
//! What always holds: sums are taken in the same order on every machine.

use super::format::{Entry, GROUP};
use crate::config::MOST_DIMENSIONS;
use crate::dot::{Work, pack, widest};
use crate::kernel::Metric;
use crate::quantized::LENGTHS;

/// By how many deviations an estimate may be wrong.
pub(crate) const MARGIN: f32 = 2.5;

const MOST_GROUPS: usize = MOST_DIMENSIONS / GROUP;

/// The square of a vector's length.
pub(crate) fn square(x: &[f32]) -> f64 {
    let mut sums = [0f64; 8];
    let (eights, rest) = x.as_chunks::<8>();
    for e in eights {
        for (s, x) in sums.iter_mut().zip(e) {
            *s += f64::from(*x) * f64::from(*x);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>()
}

/// A vector as the index sees it, of length 1 for cosine; false: codes would say nothing of it.
pub(crate) fn prepared(metric: Metric, x: &mut [f32]) -> bool {
    let length = square(x).sqrt();
    if !LENGTHS.contains(&(length as f32)) {
        return false;
    }
    if metric == Metric::Cosine {
        let by = (1.0 / length) as f32;
        x.iter_mut().for_each(|x| *x *= by);
    }
    true
}

/// Writes the code, scale and constant of `x` in a list with this centroid.
pub(crate) fn encode(x: &[f32], centroid: &[f32], e: &mut Entry) {
    widest(Encode { x, centroid, e });
}

struct Encode<'a> {
    x: &'a [f32],
    centroid: &'a [f32],
    e: &'a mut Entry,
}

impl Work for Encode<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        coded(self.x, self.centroid, self.e);
    }
}

#[inline(always)]
fn coded(x: &[f32], centroid: &[f32], e: &mut Entry) {
    let groups = x.len().div_ceil(GROUP);
    let mut all = [[0u8; GROUP]; MOST_GROUPS];
    let mut most = 0f32;
    for (x, c) in x.iter().zip(centroid) {
        let d = (x - c).abs();
        most = if d > most { d } else { most };
    }
    let scale = most / 7.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let (mut square, mut product) = ([0f32; 16], [0f32; 16]);
    for (g, group) in all[..groups].iter_mut().enumerate() {
        let (mut xs, mut cs) = ([0f32; GROUP], [0f32; GROUP]);
        let end = x.len().min((g + 1) * GROUP);
        xs[..end - g * GROUP].copy_from_slice(&x[g * GROUP..end]);
        cs[..end - g * GROUP].copy_from_slice(&centroid[g * GROUP..end]);
        let mut codes = [0f32; GROUP];
        for i in 0..GROUP {
            // The nearest integer, by adding a number whose last bit is 1.
            codes[i] = ((xs[i] - cs[i]) * inverse).clamp(-7.0, 7.0) + 12_582_912.0 - 12_582_912.0;
        }
        for i in 0..GROUP {
            let r = xs[i] - cs[i];
            square[i % 16] += r * r;
            product[i % 16] += cs[i] * codes[i];
        }
        for i in 0..GROUP {
            group[i] = (codes[i] as i32 + 8) as u8;
        }
    }
    e.code.clear();
    pack(&all[..groups], &mut e.code);
    let (square, product) = (square.iter().sum::<f32>(), product.iter().sum::<f32>());
    (e.scale, e.constant) = (scale, 2.0 * scale * product + square);
}

/// The least and the greatest that the distance of each entry of a list is thought to be, squared.
pub(crate) struct Estimates<'a> {
    pub products: &'a [i32],
    pub scales: &'a [f32],
    pub constants: &'a [f32],
    /// The query's scale, what products are too large by, and the square of its distance from the centroid.
    pub query: (f32, i32, f32),
    pub low: &'a mut [f32],
    pub high: &'a mut [f32],
}

impl Work for Estimates<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let (scale, shift, centre) = self.query;
        let n = self.products.len();
        let (products, scales, constants) = (self.products, &self.scales[..n], &self.constants[..n]);
        let (low, high) = (&mut self.low[..n], &mut self.high[..n]);
        // A step's deviation is its size by the root of 12.
        let wide = MARGIN * 2.0 * centre.max(0.0).sqrt() / 12f32.sqrt();
        for i in 0..n {
            let product = scale * scales[i] * (products[i] - shift) as f32;
            let middle = centre - 2.0 * product + constants[i];
            let margin = wide * scales[i];
            low[i] = middle - margin;
            high[i] = middle + margin;
        }
    }
}

/// The square of the distance of two vectors.
pub(crate) struct Between<'a>(pub &'a [f32], pub &'a [f32]);

impl Work for Between<'_> {
    type Out = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut sums = [0f32; 32];
        let (a, a_rest) = self.0.as_chunks::<32>();
        let (b, b_rest) = self.1.as_chunks::<32>();
        for k in 0..a.len().min(b.len()) {
            for i in 0..32 {
                let d = a[k][i] - b[k][i];
                sums[i] += d * d;
            }
        }
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| (x - y) * (x - y)).sum();
        sums.iter().sum::<f32>() + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dot::nibble_products;
    use crate::quantized::Codes;

    #[test]
    fn estimates_are_near_the_distances() {
        let mut seed = 1u64;
        let mut draw = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        for n in [1, 64, 100, 128, 200] {
            let mut within = 0;
            for _ in 0..200 {
                let c: Vec<f32> = (0..n).map(|_| draw()).collect();
                let x: Vec<f32> = c.iter().map(|c| c + draw() * 0.3).collect();
                let q: Vec<f32> = c.iter().map(|c| c + draw() * 0.3).collect();
                let (mut e, mut codes, mut sums) = (Entry::default(), Vec::new(), Vec::new());
                encode(&x, &c, &mut e);
                let (scale, _, _) = widest(Codes { numbers: &q, codes: &mut codes });
                let shift = 8 * codes.iter().flat_map(|r| r.0).map(i32::from).sum::<i32>();
                nibble_products(&e.code, &codes, &mut sums);
                let centre: f32 = q.iter().zip(&c).map(|(a, b)| (a - b) * (a - b)).sum();
                let (mut low, mut high) = ([0.0], [0.0]);
                widest(Estimates {
                    products: &sums,
                    scales: &[e.scale],
                    constants: &[e.constant],
                    query: (scale, shift, centre),
                    low: &mut low,
                    high: &mut high,
                });
                let d: f32 = q.iter().zip(&x).map(|(a, b)| (a - b) * (a - b)).sum();
                let off = 0.02 * n as f32;
                within += usize::from(low[0] - off <= d && d <= high[0] + off);
            }
            assert!(within >= 195, "{n}: {within}");
        }
    }
}

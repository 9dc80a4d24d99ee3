//! Distances of two vectors.
//!
//! What always holds: an answer is made of the same additions of `f32` in the same order, from the first dimension to the last, on every
//! machine, so that it never depends on a vector unit. Four vectors are measured at a time: their sums do not wait for each other.

use crate::vector::Kind;

/// How far two vectors are from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    L2,
    L1,
    Cosine,
    Hamming,
}

/// So many vectors are measured at a time.
pub(crate) const LANES: usize = 4;

fn f32s(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c))
}

fn i8s(bytes: &[u8]) -> impl Iterator<Item = i8> {
    bytes.iter().map(|b| *b as i8)
}

/// The numbers of a vector; none of bits.
pub(crate) fn numbers(kind: Kind, bytes: &[u8]) -> Vec<f32> {
    match kind {
        Kind::F32 => f32s(bytes).collect(),
        Kind::I8 => i8s(bytes).map(f32::from).collect(),
        Kind::Bit => Vec::new(),
    }
}

/// The numbers of a vector that is asked for, made once for many vectors.
pub(crate) struct Query<'a> {
    kind: Kind,
    metric: Metric,
    bytes: &'a [u8],
    numbers: Vec<f32>,
    magnitude: f32,
}

impl<'a> Query<'a> {
    pub fn new(kind: Kind, metric: Metric, bytes: &'a [u8]) -> Query<'a> {
        let numbers = numbers(kind, bytes);
        let magnitude = numbers.iter().fold(0.0, |sum, x| sum + x * x);
        Query { kind, metric, bytes, numbers, magnitude }
    }

    /// The numbers; none of bits.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// The distances of vectors, which are as long as this one.
    pub fn distances(&self, to: [&[u8]; LANES]) -> [f64; LANES] {
        match self.kind {
            Kind::F32 => self.numbers_to(to.map(|b| b.as_chunks::<4>().0), f32::from_le_bytes),
            Kind::I8 => self.numbers_to(to, |b| f32::from(b as i8)),
            Kind::Bit => to.map(|b| f64::from(differing(self.bytes, b))),
        }
    }

    /// The distance of one.
    pub fn distance(&self, to: &[u8]) -> f64 {
        self.distances([to; LANES])[0]
    }

    #[inline(always)]
    fn numbers_to<T: Copy>(&self, to: [&[T]; LANES], number: impl Fn(T) -> f32) -> [f64; LANES] {
        let n = to.iter().fold(self.numbers.len(), |n, t| n.min(t.len()));
        let [a, b, c, d] = to.map(|t| &t[..n]);
        let numbers = &self.numbers[..n];
        let rows = |i: usize| [number(a[i]), number(b[i]), number(c[i]), number(d[i])];
        match self.metric {
            Metric::L1 => {
                let mut sums = [0f64; LANES];
                for (i, x) in numbers.iter().enumerate() {
                    let row = rows(i);
                    for k in 0..LANES {
                        sums[k] += (f64::from(*x) - f64::from(row[k])).abs();
                    }
                }
                sums
            }
            Metric::Cosine => {
                let (mut dots, mut squares) = ([0f32; LANES], [0f32; LANES]);
                for (i, x) in numbers.iter().enumerate() {
                    let row = rows(i);
                    for k in 0..LANES {
                        dots[k] += x * row[k];
                        squares[k] += row[k] * row[k];
                    }
                }
                std::array::from_fn(|k| {
                    let lengths = f64::from(self.magnitude).sqrt() * f64::from(squares[k]).sqrt();
                    f64::from((1.0 - f64::from(dots[k]) / lengths) as f32)
                })
            }
            Metric::L2 | Metric::Hamming => {
                let mut sums = [0f32; LANES];
                for (i, x) in numbers.iter().enumerate() {
                    let row = rows(i);
                    for k in 0..LANES {
                        let t = x - row[k];
                        sums[k] += t * t;
                    }
                }
                sums.map(|s| f64::from(s.sqrt()))
            }
        }
    }
}

/// How many bits differ.
fn differing(a: &[u8], b: &[u8]) -> u32 {
    let ((a, a_rest), (b, b_rest)) = (words(a), words(b));
    let whole: u32 = a.zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
    whole + a_rest.iter().zip(b_rest).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
}

fn words(bytes: &[u8]) -> (impl Iterator<Item = u64>, &[u8]) {
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    (chunks.map(|c| c.iter().fold(0, |w, b| w << 8 | u64::from(*b))), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_at_a_time_are_as_one() {
        let row = |seed: u32| -> Vec<u8> {
            (0..77u32).flat_map(|i| (((i * 37 + seed * 101) % 97) as f32 / 7.0 - 6.0).to_le_bytes()).collect()
        };
        let rows = [row(1), row(2), row(3), row(4)];
        for metric in [Metric::L2, Metric::L1, Metric::Cosine] {
            let first = row(9);
            let q = Query::new(Kind::F32, metric, &first);
            let all = q.distances([&rows[0], &rows[1], &rows[2], &rows[3]]);
            for k in 0..LANES {
                assert_eq!(all[k].to_bits(), q.distance(&rows[k]).to_bits());
            }
        }
    }

    #[test]
    fn bits_of_any_length() {
        let (a, b) = ([0xffu8; 13], [0x0fu8; 13]);
        assert_eq!(Query::new(Kind::Bit, Metric::Hamming, &a).distance(&b), 52.0);
    }
}

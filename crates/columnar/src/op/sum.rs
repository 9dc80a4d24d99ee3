//! Sums of reals, compensated, in the order of the rows; sums in any order, which prove at the end that the order did not
//! matter; and the names of the functions that sum.
//!
//! What always holds: a sum is, to the bit, the one that `func` computes for the same numbers in the order of the query.
//!
//! **Why an order may not matter.** A compensated sum loses nothing but the rounding of its error term. Of `m` additions each
//! error is at most `u` (2 to the power of -53) times the sum `A` of the magnitudes, the term at most `m u A`, and what
//! its own roundings lose at most `m² u² A`, in any order. Where all numbers that near to the exact sum are rounded to the
//! same real, that real is the sum in every order.

/// Which function a sum is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum SumKind {
    Sum,
    Total,
    Avg,
}

/// A compensated sum (Kahan, Babuska, Neumaier): the one that `func` computes for reals.
#[derive(Clone, Copy, Default)]
pub(crate) struct RealSum {
    sum: f64,
    error: f64,
    n: i64,
}

impl RealSum {
    #[inline(always)]
    pub fn add(&mut self, r: f64) {
        let s = self.sum;
        let t = s + r;
        let (great, small) = if s.abs() > r.abs() { (s, r) } else { (r, s) };
        self.error += (great - t) + small;
        self.sum = t;
        self.n += 1;
    }

    /// How many were added.
    pub fn count(&self) -> i64 {
        self.n
    }

    /// Adds one after the other, without a look at memory in between: what a sum waits for is the one before.
    pub fn add_all(&mut self, list: &[f64]) {
        let mut own = *self;
        list.iter().for_each(|r| own.add(*r));
        *self = own;
    }

    pub fn value(&self) -> f64 {
        if self.error.is_finite() { self.sum + self.error } else { self.sum }
    }
}

/// What compensated sums of `m` additions may be off, for magnitudes of `all` together; twice the bound, for its own rounding.
fn slack(m: f64, all: f64) -> f64 {
    const U: f64 = f64::EPSILON / 2.0;
    2.0 * (m * U) * (m * U) * all
}

/// A sum of reals in any order.
#[derive(Clone, Copy, Default)]
pub(crate) struct FreeSum {
    sum: RealSum,
    magnitudes: f64,
}

impl FreeSum {
    #[inline(always)]
    pub fn add(&mut self, r: f64) {
        self.sum.add(r);
        self.magnitudes += r.abs();
    }

    /// How many were added.
    pub fn count(&self) -> i64 {
        self.sum.n
    }

    /// The sum, if it is the same in every order.
    pub fn value(&self) -> Option<f64> {
        let RealSum { sum, error, n } = self.sum;
        // This sum may be off by as much as another one.
        let off = 2.0 * slack(n as f64, self.magnitudes * 1.001);
        let (lo, hi) = (sum + (error - off), sum + (error + off));
        (lo == hi && lo.is_finite() && (off == 0.0 || off > f64::MIN_POSITIVE)).then_some(lo)
    }
}

/// A sum of integers of any size, in any order.
#[derive(Clone, Copy, Default)]
pub(crate) struct WideSum {
    /// Of those above zero, and of those below.
    parts: [i128; 2],
    n: i64,
}

impl WideSum {
    #[inline(always)]
    pub fn add(&mut self, i: i64) {
        self.parts[(i < 0) as usize] += i as i128;
        self.n += 1;
    }

    /// How many were added.
    pub fn count(&self) -> i64 {
        self.n
    }

    /// The sum, if no partial one of any order leaves 64 bits.
    pub fn whole(&self) -> Option<i64> {
        let [above, below] = self.parts;
        let fits = above <= i64::MAX as i128 && below >= i64::MIN as i128;
        fits.then_some((above + below) as i64)
    }

    /// The sum as a real, if it is the same in every order: exact while it fits in 64 bits, then compensated, large integers
    /// in two parts.
    pub fn real(&self) -> Option<f64> {
        if let Some(i) = self.whole() {
            return Some(i as f64);
        }
        let [above, below] = self.parts;
        let (sum, all) = (above + below, (above - below) as f64);
        let off = (slack(2.0 * self.n as f64 + 4.0, all * 1.001) + 1.0).ceil() as i128;
        let (lo, hi) = ((sum - off) as f64, (sum + off) as f64);
        (lo == hi).then_some(lo)
    }
}

/// Adds each value to the sum of its group; rows of one group often follow each other.
pub(crate) fn add_runs(sums: &mut [RealSum], at: &[u32], values: &[f64]) {
    const RUN: usize = 8;
    let ((runs, rest), (lists, left)) = (at.as_chunks::<RUN>(), values.as_chunks::<RUN>());
    for (groups, list) in runs.iter().zip(lists) {
        if groups.iter().all(|g| *g == groups[0]) {
            sums[groups[0] as usize].add_all(list);
        } else {
            groups.iter().zip(list).for_each(|(g, v)| sums[*g as usize].add(*v));
        }
    }
    rest.iter().zip(left).for_each(|(g, v)| sums[*g as usize].add(*v));
}

/// Which of them a function is, by its name in lower case.
pub(crate) fn sum_kind(name: &str) -> Option<SumKind> {
    match name {
        "sum" => Some(SumKind::Sum),
        "total" => Some(SumKind::Total),
        "avg" => Some(SumKind::Avg),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random (xorshift).
    struct Draw(u64);

    impl Draw {
        fn bits(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, n: u64) -> u64 {
            self.bits() % n
        }
    }

    fn compensated(list: impl Iterator<Item = f64>) -> f64 {
        let mut sum = RealSum::default();
        list.for_each(|r| sum.add(r));
        sum.value()
    }

    #[test]
    fn a_proven_sum_of_reals_is_that_of_every_order() {
        let mut draw = Draw(7);
        let mut proven = 0;
        for round in 0..200 {
            let mut list: Vec<f64> = (0..500)
                .map(|_| match round % 4 {
                    0 => draw.below(100_000) as f64 / 100.0,
                    1 => (draw.bits() as i64 as f64) * 1e-3,
                    2 => (draw.below(2000) as f64 - 1000.0) * 1e10 + draw.below(7) as f64 * 0.1,
                    _ => f64::from_bits((1000 + draw.below(60)) << 52 | draw.bits() >> 12),
                })
                .collect();
            let mut free = FreeSum::default();
            list.iter().for_each(|r| free.add(*r));
            let Some(value) = free.value() else { continue };
            proven += 1;
            for _ in 0..20 {
                for i in (1..list.len()).rev() {
                    list.swap(i, draw.below(i as u64 + 1) as usize);
                }
                assert_eq!(compensated(list.iter().copied()), value);
            }
        }
        assert!(proven > 150, "{proven}");
    }

    #[test]
    fn what_an_order_could_change_is_not_proven() {
        let mut free = FreeSum::default();
        // Half of the last place: which of two reals it is depends on what an error term has lost.
        [1.0, f64::EPSILON / 2.0].iter().for_each(|r| free.add(*r));
        assert_eq!(free.value(), None);
        let mut free = FreeSum::default();
        [1e308, 1e308, -1e308].iter().for_each(|r| free.add(*r));
        assert_eq!(free.value(), None);
        let mut wide = WideSum::default();
        [i64::MAX, 1, -5].iter().for_each(|i| wide.add(*i));
        assert_eq!((wide.whole(), wide.real()), (None, Some((i64::MAX - 4) as f64)));
    }
}

//! Sums of reals, compensated, in the order of the rows; and the names of the functions that sum.
//!
//! What always holds: a sum is, to the bit, the one that `func` computes for the same reals in the same order.

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
        if self.error.is_nan() { self.sum } else { self.sum + self.error }
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

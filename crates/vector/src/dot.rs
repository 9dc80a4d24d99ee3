//! Scalar products of codes in 8 bits: one query with many rows, as fast as the machine's vector unit allows.
//!
//! What always holds: sums are integers, so every machine gives the same. A row is a whole number of runs of 64 codes.
#![allow(unsafe_code)]

/// Codes stand in runs of so many, each where a vector unit likes it best.
pub(crate) const RUN: usize = 64;

/// A run of codes.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Run<T>(pub [T; RUN]);

/// The scalar products of rows of `query.len()` runs with `query`.
pub(crate) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.clear();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the machine has what the function is compiled for.
            unsafe { with_vnni(rows, query, out) };
            return;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { with_avx2(rows, query, out) };
            return;
        }
    }
    all(rows, query, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn with_vnni(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    use std::arch::x86_64::*;
    for row in rows.chunks_exact(query.len()) {
        let mut sums = [_mm512_setzero_si512(); 2];
        for (k, (a, b)) in row.iter().zip(query).enumerate() {
            // SAFETY: both are runs of 64 bytes, at multiples of 64.
            let (a, b) =
                unsafe { (_mm512_load_si512(a.0.as_ptr().cast()), _mm512_load_si512(b.0.as_ptr().cast())) };
            sums[k & 1] = _mm512_dpbusd_epi32(sums[k & 1], a, b);
        }
        out.push(_mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1])));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    all(rows, query, out);
}

/// Runs `f`, compiled for the widest vector unit that the machine has, as far as it can be put in its place.
#[inline]
pub(crate) fn widest(f: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        fn of_512(f: impl FnOnce()) {
            f();
        }
        #[target_feature(enable = "avx2")]
        fn of_256(f: impl FnOnce()) {
            f();
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the machine has what the function is compiled for.
            return unsafe { of_512(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { of_256(f) };
        }
    }
    f();
}

#[inline(always)]
fn all(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    for row in rows.chunks_exact(query.len()) {
        let runs = row.iter().zip(query);
        let one = |(a, b): (&Run<u8>, &Run<i8>)| -> i32 {
            a.0.iter().zip(&b.0).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
        };
        out.push(runs.map(one).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_gives_the_same() {
        for runs in 1..5usize {
            let run = |n: usize| std::array::from_fn(|i| n * RUN + i);
            let query: Vec<_> =
                (0..runs).map(|n| Run(run(n).map(|i: usize| (i * 73 % 255) as u8 as i8))).collect();
            let rows: Vec<_> =
                (0..runs * 7).map(|n| Run(run(n).map(|i: usize| (i * 131 % 256) as u8))).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            products(&rows, &query, &mut fast);
            all(&rows, &query, &mut plain);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), 7);
        }
        let mut most = Vec::new();
        products(&[Run([255; RUN]); 128], &[Run([-128; RUN]); 128], &mut most);
        assert_eq!(most, [-128 * 255 * 8192]);
    }
}

//! Scalar products of codes in 8 bits: one query with many rows, as fast as the machine's vector unit allows.
//!
//! Codes in 4 bits likewise, two in a byte: the first half of a run in the lower halves of 32 bytes, the second in the upper ones.
//!
//! What always holds: sums are integers, so every machine gives the same. A row is a whole number of runs of 64 codes.
#![allow(unsafe_code)]

/// Codes stand in runs of so many, each where a vector unit likes it best.
pub(crate) const RUN: usize = 64;

/// A run's bytes at 4 bits a code.
const HALF: usize = RUN / 2;

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

/// Rows whose sums are taken together: each waits for its last addition less.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 4;

/// The sums of the numbers of each of four registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn four_sums(s: [std::arch::x86_64::__m512i; TOGETHER]) -> [i32; TOGETHER] {
    use std::arch::x86_64::*;
    let half = |x| _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
    let pairs = _mm256_hadd_epi32(half(s[0]), half(s[1]));
    let others = _mm256_hadd_epi32(half(s[2]), half(s[3]));
    let all = _mm256_hadd_epi32(pairs, others);
    let sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    let mut out = [0; TOGETHER];
    // SAFETY: 16 bytes of a value of its own.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn with_vnni(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    use std::arch::x86_64::*;
    let n = query.len();
    let many = rows.len() / n.max(1);
    let (mut row, from, q) = (0, rows.as_ptr(), query.as_ptr());
    out.resize(many, 0);
    while row + TOGETHER <= many {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query, and of rows below `many`, of which there are `n * many` runs; each at a multiple of 64.
            unsafe {
                let b = _mm512_load_si512(q.add(k).cast());
                let a = from.add(row * n + k);
                sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_load_si512(a.cast()), b);
                sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_load_si512(a.add(n).cast()), b);
                sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_load_si512(a.add(2 * n).cast()), b);
                sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_load_si512(a.add(3 * n).cast()), b);
            }
            k += 1;
        }
        let [a, b, c, d] = four_sums(sums);
        out[row] = a;
        out[row + 1] = b;
        out[row + 2] = c;
        out[row + 3] = d;
        row += TOGETHER;
    }
    while row < many {
        let mut sum = _mm512_setzero_si512();
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let a = _mm512_load_si512(from.add(row * n + k).cast());
                sum = _mm512_dpbusd_epi32(sum, a, _mm512_load_si512(q.add(k).cast()));
            }
            k += 1;
        }
        out[row] = _mm512_reduce_add_epi32(sum);
        row += 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    all(rows, query, out);
}

/// The scalar products of rows of codes from 0 to 15 in 4 bits, of `query.len()` runs each, with `query`.
pub(crate) fn nibble_products(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.clear();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the machine has what the function is compiled for.
            unsafe { nibbles_with_vnni(rows, query, out) };
            return;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { nibbles_with_avx2(rows, query, out) };
            return;
        }
    }
    all_nibbles(rows, query, out);
}

/// A run of codes in 4 bits, as bytes.
///
/// # Safety
/// 32 bytes can be read there.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn bytes_of(at: *const u8) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    // SAFETY: the caller's promise.
    let a = unsafe { _mm256_loadu_si256(at.cast()) };
    let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), _mm256_srli_epi16::<4>(a));
    _mm512_and_si512(both, _mm512_set1_epi8(15))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn nibbles_with_vnni(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    use std::arch::x86_64::*;
    let n = query.len();
    let many = rows.len() / (n * HALF).max(1);
    let (mut row, from, q) = (0, rows.as_ptr(), query.as_ptr());
    out.resize(many, 0);
    while row + TOGETHER <= many {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query, at a multiple of 64, and of rows below `many`, of which there are `n * many` runs.
            unsafe {
                let b = _mm512_load_si512(q.add(k).cast());
                let a = from.add((row * n + k) * HALF);
                sums[0] = _mm512_dpbusd_epi32(sums[0], bytes_of(a), b);
                sums[1] = _mm512_dpbusd_epi32(sums[1], bytes_of(a.add(n * HALF)), b);
                sums[2] = _mm512_dpbusd_epi32(sums[2], bytes_of(a.add(2 * n * HALF)), b);
                sums[3] = _mm512_dpbusd_epi32(sums[3], bytes_of(a.add(3 * n * HALF)), b);
            }
            k += 1;
        }
        let [a, b, c, d] = four_sums(sums);
        out[row] = a;
        out[row + 1] = b;
        out[row + 2] = c;
        out[row + 3] = d;
        row += TOGETHER;
    }
    while row < many {
        let mut sum = _mm512_setzero_si512();
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let a = bytes_of(from.add((row * n + k) * HALF));
                sum = _mm512_dpbusd_epi32(sum, a, _mm512_load_si512(q.add(k).cast()));
            }
            k += 1;
        }
        out[row] = _mm512_reduce_add_epi32(sum);
        row += 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn nibbles_with_avx2(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    all_nibbles(rows, query, out);
}

/// Asks for bytes that will be wanted soon: the memory brings them while other work is done.
pub(crate) fn will_want<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let (from, bytes) = (values.as_ptr().cast::<i8>(), size_of_val(values));
        let mut at = 0;
        while at < bytes {
            // SAFETY: an address within the slice; asking for it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.add(at)) };
            at += 64;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// The sum of a query's codes.
pub(crate) fn total(query: &[Run<i8>]) -> i32 {
    let mut sum = 0;
    for run in query {
        for c in &run.0 {
            sum += i32::from(*c);
        }
    }
    sum
}

#[inline(always)]
fn all_nibbles(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    for row in rows.chunks_exact(query.len() * HALF) {
        let mut sum = 0;
        for (a, b) in row.as_chunks::<HALF>().0.iter().zip(query) {
            let (first, second) = b.0.split_at(HALF);
            for i in 0..HALF {
                sum += i32::from(a[i] & 15) * i32::from(first[i]);
                sum += i32::from(a[i] >> 4) * i32::from(second[i]);
            }
        }
        out.push(sum);
    }
}

/// Work that is compiled once for each vector unit.
pub(crate) trait Work {
    type Out;
    /// Does it. To be `inline(always)`, with all that it calls in its loops: only what is put in its place is compiled for the unit.
    fn run(self) -> Self::Out;
}

/// Does work, compiled for the widest vector unit that the machine has.
#[inline]
pub(crate) fn widest<W: Work>(w: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn of_512<W: Work>(w: W) -> W::Out {
            w.run()
        }
        #[target_feature(enable = "avx2")]
        fn of_256<W: Work>(w: W) -> W::Out {
            w.run()
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the machine has what the function is compiled for.
            return unsafe { of_512(w) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { of_256(w) };
        }
    }
    w.run()
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
        for runs in 1..5usize {
            let query: Vec<_> = (0..runs)
                .map(|n| Run(std::array::from_fn(|i| ((n * 64 + i) * 73 % 255) as u8 as i8)))
                .collect();
            let rows: Vec<u8> = (0..runs * HALF * 7).map(|i| (i * 131 % 256) as u8).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            nibble_products(&rows, &query, &mut fast);
            all_nibbles(&rows, &query, &mut plain);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), 7);
        }
        let mut most = Vec::new();
        products(&[Run([255; RUN]); 128], &[Run([-128; RUN]); 128], &mut most);
        assert_eq!(most, [-128 * 255 * 8192]);
    }
}

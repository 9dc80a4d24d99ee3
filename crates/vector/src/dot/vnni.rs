//! Products by AVX-512 with VNNI, which multiplies bytes and adds four products to a number of 32 bits.
//!
//! What always holds: every function is called on a machine that has these units alone, with a place in `out` for each row, and with rows that
//! are wholly within their bytes.

use super::{HALF, Nibbles, Run};
use std::arch::x86_64::*;

/// Rows whose sums are taken together: each waits for its last addition less.
const TOGETHER: usize = 4;

/// The sums of the numbers of each of four registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn four_sums(s: [__m512i; TOGETHER]) -> [i32; TOGETHER] {
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

/// See `super::products`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut [i32]) {
    let n = query.len();
    let (from, q) = (rows.as_ptr(), query.as_ptr());
    let many = out.len();
    assert!(n * many <= rows.len());
    let mut row = 0;
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
        out[row..row + TOGETHER].copy_from_slice(&four_sums(sums));
        row += TOGETHER;
    }
    for (row, out) in out.iter_mut().enumerate().skip(row) {
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
        *out = _mm512_reduce_add_epi32(sum);
    }
}

/// The products of two runs in 4 bits, or of one, added to a sum.
///
/// # Safety
/// 64 bytes can be read at `at`, or 32 where there is no second run.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn add_nibbles(sum: __m512i, at: *const u8, first: __m512i, second: Option<__m512i>) -> __m512i {
    let low = _mm512_set1_epi8(15);
    match second {
        Some(second) => {
            // SAFETY: the caller's promise.
            let a = unsafe { _mm512_loadu_si512(at.cast()) };
            let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(a, low), first);
            _mm512_dpbusd_epi32(sum, _mm512_and_si512(_mm512_srli_epi16::<4>(a), low), second)
        }
        None => {
            // SAFETY: the caller's promise.
            let a = unsafe { _mm256_loadu_si256(at.cast()) };
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), _mm256_srli_epi16::<4>(a));
            _mm512_dpbusd_epi32(sum, _mm512_and_si512(both, low), first)
        }
    }
}

/// See `super::nibble_products`.
///
/// # Safety
/// Each row, from where it begins, has `query.len() * HALF` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn nibbles(rows: Nibbles<'_>, query: &[Run<i8>], out: &mut [i32]) {
    let (n, q, from) = (query.len(), query.as_ptr(), rows.bytes.as_ptr());
    let many = out.len();
    let mut row = 0;
    while row + TOGETHER <= many {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let starts = [rows.at(row), rows.at(row + 1), rows.at(row + 2), rows.at(row + 3)];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query and, where there is one, the next, at multiples of 64; and the same of four rows.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                let a = from.add(k * HALF);
                sums[0] = add_nibbles(sums[0], a.add(starts[0]), first, second);
                sums[1] = add_nibbles(sums[1], a.add(starts[1]), first, second);
                sums[2] = add_nibbles(sums[2], a.add(starts[2]), first, second);
                sums[3] = add_nibbles(sums[3], a.add(starts[3]), first, second);
            }
            k += 2;
        }
        out[row..row + TOGETHER].copy_from_slice(&four_sums(sums));
        row += TOGETHER;
    }
    for (row, out) in out.iter_mut().enumerate().skip(row) {
        let (mut sum, start) = (_mm512_setzero_si512(), rows.at(row));
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                sum = add_nibbles(sum, from.add(start + k * HALF), first, second);
            }
            k += 2;
        }
        *out = _mm512_reduce_add_epi32(sum);
    }
}

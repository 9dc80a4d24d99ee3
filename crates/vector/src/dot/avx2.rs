//! Products by AVX2, which multiplies bytes without a sign by bytes with one and adds two products to a number of 16 bits.
//!
//! What always holds: no sum of 16 bits overflows, since the byte without a sign has 4 bits here: eight products of at most 15 * 128 are
//! 15,360. Codes of 8 bits are multiplied by their halves. Every function is called on a machine that has the unit alone, with a place in `out`
//! for each row, and with rows that are wholly within their bytes.

use super::{HALF, Nibbles, Run};
use std::arch::x86_64::*;

/// Rows whose sums are taken together: each waits for its last addition less, and the query is read once for all.
const TOGETHER: usize = 4;

/// The sums of the numbers of each of four registers.
#[target_feature(enable = "avx2")]
#[inline]
fn four_sums(s: [__m256i; TOGETHER]) -> [i32; TOGETHER] {
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    let sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    let mut out = [0; TOGETHER];
    // SAFETY: 16 bytes of a value of its own.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}

/// The lower and the upper halves of 32 bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn halves(a: __m256i) -> (__m256i, __m256i) {
    let low = _mm256_set1_epi8(15);
    (_mm256_and_si256(a, low), _mm256_and_si256(_mm256_srli_epi16::<4>(a), low))
}

/// A run's two halves.
///
/// # Safety
/// `at` is a run.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn both<T>(at: *const Run<T>) -> [__m256i; 2] {
    let at: *const __m256i = at.cast();
    // SAFETY: the caller's promise; a run lies at a multiple of 64.
    unsafe { [_mm256_load_si256(at), _mm256_load_si256(at.add(1))] }
}

/// The product of a run of codes of 8 bits, added to a sum.
#[target_feature(enable = "avx2")]
#[inline]
fn add_codes(sum: __m256i, codes: [__m256i; 2], query: [__m256i; 2]) -> __m256i {
    let (first, second) = (halves(codes[0]), halves(codes[1]));
    let low =
        _mm256_add_epi16(_mm256_maddubs_epi16(first.0, query[0]), _mm256_maddubs_epi16(second.0, query[1]));
    let high =
        _mm256_add_epi16(_mm256_maddubs_epi16(first.1, query[0]), _mm256_maddubs_epi16(second.1, query[1]));
    let sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
    _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_set1_epi16(16)))
}

/// See `super::products`.
#[target_feature(enable = "avx2")]
pub(super) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut [i32]) {
    let (n, many) = (query.len(), out.len());
    assert!(n * many <= rows.len());
    for row in (0..many).step_by(TOGETHER) {
        // The last row stands for those that are not there.
        let start = |i: usize| (row + i).min(many - 1) * n;
        let starts = [start(0), start(1), start(2), start(3)];
        let mut sums = [_mm256_setzero_si256(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query, and of rows below `many`, of which there are `n * many` runs.
            unsafe {
                let q = both(query.as_ptr().add(k));
                let a = rows.as_ptr().add(k);
                sums[0] = add_codes(sums[0], both(a.add(starts[0])), q);
                sums[1] = add_codes(sums[1], both(a.add(starts[1])), q);
                sums[2] = add_codes(sums[2], both(a.add(starts[2])), q);
                sums[3] = add_codes(sums[3], both(a.add(starts[3])), q);
            }
            k += 1;
        }
        for (out, sum) in out[row..].iter_mut().zip(four_sums(sums)) {
            *out = sum;
        }
    }
}

/// The products of two runs in 4 bits, or of one, added to a sum.
///
/// # Safety
/// 64 bytes can be read at `at`, or 32 where there is no second run.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn add_nibbles(
    sum: __m256i,
    at: *const u8,
    first: [__m256i; 2],
    second: Option<[__m256i; 2]>,
) -> __m256i {
    let at: *const __m256i = at.cast();
    // SAFETY: the caller's promise.
    let a = halves(unsafe { _mm256_loadu_si256(at) });
    let products = match second {
        Some(second) => {
            // SAFETY: as above.
            let b = halves(unsafe { _mm256_loadu_si256(at.add(1)) });
            _mm256_add_epi16(
                _mm256_add_epi16(_mm256_maddubs_epi16(a.0, first[0]), _mm256_maddubs_epi16(b.0, first[1])),
                _mm256_add_epi16(_mm256_maddubs_epi16(a.1, second[0]), _mm256_maddubs_epi16(b.1, second[1])),
            )
        }
        None => _mm256_add_epi16(_mm256_maddubs_epi16(a.0, first[0]), _mm256_maddubs_epi16(a.1, first[1])),
    };
    _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)))
}

/// See `super::nibble_products`.
///
/// # Safety
/// Each row, from where it begins, has `query.len() * HALF` bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn nibbles(rows: Nibbles<'_>, query: &[Run<i8>], out: &mut [i32]) {
    let (n, q, from, many) = (query.len(), query.as_ptr(), rows.bytes.as_ptr(), out.len());
    for row in (0..many).step_by(TOGETHER) {
        // The last row stands for those that are not there.
        let start = |i: usize| rows.at((row + i).min(many - 1));
        let starts = [start(0), start(1), start(2), start(3)];
        let mut sums = [_mm256_setzero_si256(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query and, where there is one, the next; and the same of four rows.
            unsafe {
                let first = both(q.add(k));
                let second = if k + 1 < n { Some(both(q.add(k + 1))) } else { None };
                let a = from.add(k * HALF);
                sums[0] = add_nibbles(sums[0], a.add(starts[0]), first, second);
                sums[1] = add_nibbles(sums[1], a.add(starts[1]), first, second);
                sums[2] = add_nibbles(sums[2], a.add(starts[2]), first, second);
                sums[3] = add_nibbles(sums[3], a.add(starts[3]), first, second);
            }
            k += 2;
        }
        for (out, sum) in out[row..].iter_mut().zip(four_sums(sums)) {
            *out = sum;
        }
    }
}

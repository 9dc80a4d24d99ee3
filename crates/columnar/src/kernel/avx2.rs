//! Kernels for AVX2. There is no unsigned comparison: `x <= s` is `min(x, s) == x`; and no way to put lanes close together
//! but a table of permutations.
#![allow(unsafe_code)]

use super::{Ahead, BLOCK, Bits, Mask, Positions, Slice, Table, scalar};
use crate::kernel::of_three;
use std::arch::x86_64::*;

/// Runs of 64 codes in a block.
const RUNS: usize = BLOCK / 64;

/// The kernels, if this machine can run them.
pub fn table() -> Option<Table> {
    let can = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    can.then_some(Table { range, range_i64, range_f64, member, positions, narrow })
}

fn narrow(a: &mut Mask, b: &Mask) -> usize {
    #[target_feature(enable = "avx2,popcnt")]
    fn with_popcnt(a: &mut Mask, b: &Mask) -> usize {
        scalar::narrow(a, b)
    }
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { with_popcnt(a, b) }
}

fn range(codes: Slice<'_>, lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    out.fill(0);
    // SAFETY: `table` hands this out only where the features are there.
    unsafe {
        match codes {
            Slice::U4(c, n) => halves(c, n, |v| v.wrapping_sub(lo) <= hi - lo, out, ahead),
            Slice::U8(c) if lo <= 0xff => range_u8(c, lo as u8, hi.min(0xff) as u8, out, ahead),
            Slice::U16(c) if lo <= 0xffff => range_u16(c, lo as u16, hi.min(0xffff) as u16, out, ahead),
            Slice::U24(c) => range_u24(c, lo, hi, out, ahead),
            Slice::U32(c) => range_u32(c, lo, hi, out, ahead),
            _ => {}
        }
    }
}

fn member(codes: Slice<'_>, shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) -> bool {
    // Wider codes would need a table that registers do not hold.
    match codes {
        // SAFETY: `table` hands this out only where the features are there.
        Slice::U4(c, n) => unsafe {
            out.fill(0);
            halves(c, n, |v| set.has((v as i64 + shift) as usize), out, ahead)
        },
        // SAFETY: as above.
        Slice::U8(c) => unsafe {
            out.fill(0);
            member_u8(c, set.window(shift), out, ahead)
        },
        _ => return false,
    }
    true
}

/// Marks the codes by runs of 64; `one` says of each of those behind the last whole run whether it is marked.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn by_runs<T: Copy>(
    c: &[T],
    out: &mut Mask,
    ahead: &mut Ahead,
    whole: impl Fn(&[T; 64]) -> u64,
    one: impl Fn(T) -> bool,
) {
    assert!(c.len() <= BLOCK);
    let lines = ahead.in_each(RUNS);
    let (runs, rest) = c.as_chunks::<64>();
    for (run, word) in runs.iter().zip(&mut *out) {
        ahead.fetch(lines);
        *word = whole(run);
    }
    for (i, c) in rest.iter().enumerate() {
        out[runs.len()] |= (one(*c) as u64) << i;
    }
}

/// Whether each byte has all bits set, as bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(bytes: __m256i) -> u64 {
    _mm256_movemask_epi8(bytes) as u32 as u64
}

/// Whether each lane of four bytes has all bits set, as bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bits32(lanes: __m256i) -> u64 {
    _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) as u8 as u64
}

/// Marks the half bytes for which `keep` holds; it is asked once for each of the sixteen.
#[target_feature(enable = "avx2")]
unsafe fn halves(c: &[u8], n: usize, keep: impl Fn(u32) -> bool, out: &mut Mask, ahead: &mut Ahead) {
    assert!(n <= BLOCK && c.len() * 2 >= n);
    let answers: [u8; 16] = std::array::from_fn(|i| if keep(i as u32) { 0xff } else { 0 });
    // SAFETY: 16 bytes are read from an array of 16 bytes.
    let wide_answers = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(answers.as_ptr().cast()) });
    let lines = ahead.in_each(RUNS);
    let (runs, rest) = c[..n / 2].as_chunks::<32>();
    for (run, word) in runs.iter().zip(&mut *out) {
        ahead.fetch(lines);
        let hit = |at: usize| {
            // SAFETY: 16 bytes are read from the first or second half of an array of 32.
            let v = unsafe { _mm_loadu_si128(run.as_ptr().add(at).cast()) };
            // Each byte becomes two, its low half first.
            let wide = _mm256_cvtepu8_epi16(v);
            let both = _mm256_or_si256(wide, _mm256_slli_epi16::<4>(wide));
            bits(_mm256_shuffle_epi8(wide_answers, _mm256_and_si256(both, _mm256_set1_epi8(15))))
        };
        *word = hit(0) | hit(16) << 32;
    }
    let from = runs.len() * 64;
    let odd = (n % 2 == 1).then(|| c[n / 2] & 15);
    for (i, v) in rest.iter().flat_map(|b| [b & 15, b >> 4]).chain(odd).enumerate() {
        out[from / 64] |= (answers[v as usize] as u64 & 1) << i;
    }
}

#[target_feature(enable = "avx2")]
unsafe fn range_u8(c: &[u8], lo: u8, hi: u8, out: &mut Mask, ahead: &mut Ahead) {
    let (low, span) = (_mm256_set1_epi8(lo as i8), _mm256_set1_epi8((hi - lo) as i8));
    let whole = |run: &[u8; 64]| {
        let hit = |at: usize| {
            // SAFETY: 32 bytes are read from the first or second half of an array of 64.
            let v = unsafe { _mm256_loadu_si256(run.as_ptr().add(at).cast()) };
            let v = _mm256_sub_epi8(v, low);
            bits(_mm256_cmpeq_epi8(_mm256_min_epu8(v, span), v))
        };
        hit(0) | hit(32) << 32
    };
    // SAFETY: the same features.
    unsafe { by_runs(c, out, ahead, whole, |v| (lo..=hi).contains(&v)) }
}

#[target_feature(enable = "avx2")]
unsafe fn range_u16(c: &[u16], lo: u16, hi: u16, out: &mut Mask, ahead: &mut Ahead) {
    let (low, span) = (_mm256_set1_epi16(lo as i16), _mm256_set1_epi16((hi - lo) as i16));
    let whole = |run: &[u16; 64]| {
        let hit = |at: usize| {
            // SAFETY: 16 codes are read from one of the quarters of an array of 64.
            let v = unsafe { _mm256_loadu_si256(run.as_ptr().add(at).cast()) };
            let v = _mm256_sub_epi16(v, low);
            _mm256_cmpeq_epi16(_mm256_min_epu16(v, span), v)
        };
        // Packing goes by halves of a register; the permutation puts them in order.
        let two = |a, b| bits(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(a, b)));
        two(hit(0), hit(16)) | two(hit(32), hit(48)) << 32
    };
    // SAFETY: the same features.
    unsafe { by_runs(c, out, ahead, whole, |v| (lo..=hi).contains(&v)) }
}

#[target_feature(enable = "avx2")]
unsafe fn range_u24(c: &[[u8; 3]], lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    let (low, span) = (_mm256_set1_epi32(lo as i32), _mm256_set1_epi32((hi - lo) as i32));
    // The first four codes lie in bytes 0 to 11 of a load, the other four in bytes 4 to 15 of one that begins 8 bytes later.
    let lanes: [u8; 32] = std::array::from_fn(|i| match i % 4 {
        3 => 0x80,
        byte => (i % 16 / 4 * 3 + byte + i / 16 * 4) as u8,
    });
    // SAFETY: 32 bytes are read from an array of 32 bytes.
    let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
    let whole = |run: &[[u8; 3]; 64]| {
        let mut word = 0;
        for eight in 0..8 {
            // SAFETY: eight codes are 24 bytes, and 16 are read at the first and at the eighth of them.
            let v = unsafe {
                let p = run.as_ptr().add(8 * eight).cast::<u8>();
                _mm256_loadu2_m128i(p.add(8).cast(), p.cast())
            };
            let v = _mm256_sub_epi32(_mm256_shuffle_epi8(v, lanes), low);
            word |= bits32(_mm256_cmpeq_epi32(_mm256_min_epu32(v, span), v)) << (8 * eight);
        }
        word
    };
    // SAFETY: the same features.
    unsafe { by_runs(c, out, ahead, whole, |v| (lo..=hi).contains(&of_three(v))) }
}

#[target_feature(enable = "avx2")]
unsafe fn range_u32(c: &[u32], lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    let (low, span) = (_mm256_set1_epi32(lo as i32), _mm256_set1_epi32((hi - lo) as i32));
    let whole = |run: &[u32; 64]| {
        let mut word = 0;
        for eight in 0..8 {
            // SAFETY: 8 codes are read from one of the eighths of an array of 64.
            let v = unsafe { _mm256_loadu_si256(run.as_ptr().add(8 * eight).cast()) };
            let v = _mm256_sub_epi32(v, low);
            word |= bits32(_mm256_cmpeq_epi32(_mm256_min_epu32(v, span), v)) << (8 * eight);
        }
        word
    };
    // SAFETY: the same features.
    unsafe { by_runs(c, out, ahead, whole, |v| (lo..=hi).contains(&v)) }
}

fn range_i64(values: &[i64], lo: i64, hi: i64, out: &mut Mask, ahead: &mut Ahead) {
    #[target_feature(enable = "avx2")]
    fn each(values: &[i64], lo: i64, hi: i64, out: &mut Mask, ahead: &mut Ahead) {
        let (low, high) = (_mm256_set1_epi64x(lo), _mm256_set1_epi64x(hi));
        let four = |v: &[i64; 4]| {
            // SAFETY: four values are read from an array of four.
            let v = unsafe { _mm256_loadu_si256(v.as_ptr().cast()) };
            let out = _mm256_or_si256(_mm256_cmpgt_epi64(low, v), _mm256_cmpgt_epi64(v, high));
            !_mm256_movemask_pd(_mm256_castsi256_pd(out))
        };
        by_fours(values, (lo, hi), out, ahead, four)
    }
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { each(values, lo, hi, out, ahead) }
}

fn range_f64(values: &[f64], lo: f64, hi: f64, out: &mut Mask, ahead: &mut Ahead) {
    #[target_feature(enable = "avx2")]
    fn each(values: &[f64], lo: f64, hi: f64, out: &mut Mask, ahead: &mut Ahead) {
        let (low, high) = (_mm256_set1_pd(lo), _mm256_set1_pd(hi));
        let four = |v: &[f64; 4]| {
            // SAFETY: four values are read from an array of four.
            let v = unsafe { _mm256_loadu_pd(v.as_ptr()) };
            let below = _mm256_cmp_pd::<_CMP_LE_OQ>(v, high);
            _mm256_movemask_pd(_mm256_and_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(low, v), below))
        };
        by_fours(values, (lo, hi), out, ahead, four)
    }
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { each(values, lo, hi, out, ahead) }
}

/// Marks the values in a range; `four` says it of four at once, in the lowest bits.
#[inline]
#[target_feature(enable = "avx2")]
fn by_fours<T: Copy + PartialOrd>(
    values: &[T],
    (lo, hi): (T, T),
    out: &mut Mask,
    ahead: &mut Ahead,
    four: impl Fn(&[T; 4]) -> i32,
) {
    let whole = |run: &[T; 64]| {
        let fours = run.as_chunks::<4>().0.iter().enumerate();
        fours.fold(0, |word, (k, v)| word | ((four(v) & 15) as u64) << (4 * k))
    };
    out.fill(0);
    // SAFETY: the same features.
    unsafe { by_runs(values, out, ahead, whole, |v| (lo..=hi).contains(&v)) }
}

/// Marks the codes that are in a set of numbers below 256.
#[target_feature(enable = "avx2")]
unsafe fn member_u8(c: &[u8], set: [u64; 4], out: &mut Mask, ahead: &mut Ahead) {
    let twice =
        |half: &[u64]| _mm256_set_epi64x(half[1] as i64, half[0] as i64, half[1] as i64, half[0] as i64);
    let (below, above) = (twice(&set[..2]), twice(&set[2..]));
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let whole = |run: &[u8; 64]| {
        let hit = |at: usize| {
            // SAFETY: 32 bytes are read from the first or second half of an array of 64.
            let v = unsafe { _mm256_loadu_si256(run.as_ptr().add(at).cast()) };
            // The byte of the set that has the code's bit, from the half that the code's highest bit names.
            let byte = _mm256_and_si256(_mm256_srli_epi16::<3>(v), _mm256_set1_epi8(15));
            let (low, high) = (_mm256_shuffle_epi8(below, byte), _mm256_shuffle_epi8(above, byte));
            let byte = _mm256_blendv_epi8(low, high, v);
            let bit = _mm256_shuffle_epi8(bit, _mm256_and_si256(v, _mm256_set1_epi8(7)));
            bits(_mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit))
        };
        hit(0) | hit(32) << 32
    };
    let one = |v: u8| set[v as usize / 64] >> (v % 64) & 1 != 0;
    // SAFETY: the same features.
    unsafe { by_runs(c, out, ahead, whole, one) }
}

fn positions(mask: &Mask, rows: usize, out: &mut Positions) {
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { spread(mask, rows, out) }
}

/// For each byte, which of its bits are set, the lowest first.
static SET: [[u8; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut n) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 != 0 {
                all[byte][n] = bit;
                n += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    all
};

#[target_feature(enable = "avx2,popcnt")]
unsafe fn spread(mask: &Mask, rows: usize, out: &mut Positions) {
    assert!(rows <= BLOCK);
    let mut n = 0;
    for (i, word) in mask[..rows.div_ceil(64)].iter().enumerate() {
        if *word == 0 {
            continue;
        }
        for (k, byte) in word.to_le_bytes().into_iter().enumerate() {
            // SAFETY: 8 bytes are read from an array of 8; `n` never exceeds the rows seen before, and the output is 64 places
            // longer than a block.
            unsafe {
                let at = _mm_cvtepu8_epi16(_mm_loadl_epi64(SET[byte as usize].as_ptr().cast()));
                let at = _mm_add_epi16(at, _mm_set1_epi16((64 * i + 8 * k) as i16));
                _mm_storeu_si128(out.as_mut_ptr().add(n).cast(), at);
            }
            n += byte.count_ones() as usize;
        }
    }
}

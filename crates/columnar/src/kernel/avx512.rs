//! Kernels for AVX-512: with byte and word lanes (BW), as all server processors since 2017 have it, and better ones for
//! codes of three bytes and for positions where bytes can be permuted (VBMI) and 16-bit lanes compressed (VBMI2).
//!
//! Small sets are held in four registers, from which permutations fetch the word of each code: 32 codes at a time.
#![allow(unsafe_code)]

use super::{Ahead, BLOCK, Bits, Mask, Positions, Slice, Table};
use std::arch::x86_64::*;

/// Runs of 64 codes in a block.
const RUNS: usize = BLOCK / 64;

/// The kernels, if this machine can run them.
pub fn table() -> Option<Table> {
    let can = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("popcnt");
    can.then_some(Table {
        range: range::<WITHOUT>,
        range_i64,
        range_f64,
        member: member::<WITHOUT>,
        positions,
        narrow,
    })
}

/// The kernels that permute bytes and compress words, if this machine can run them.
pub fn table_vbmi2() -> Option<Table> {
    let can = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vbmi2");
    let table = if can { table() } else { None };
    table.map(|t| Table { range: range::<VBMI>, member: member::<VBMI>, positions: positions_vbmi2, ..t })
}

/// Bytes can be permuted.
const VBMI: bool = true;
const WITHOUT: bool = false;

fn range<const HAS: bool>(codes: Slice<'_>, lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    out.fill(0);
    // SAFETY: `table` hands this out only where the features are there.
    unsafe {
        match codes {
            Slice::U4(c, n) => halves(c, n, |v| v.wrapping_sub(lo) <= hi - lo, out, ahead),
            Slice::U8(c) if lo <= 0xff => range_u8(c, lo as u8, hi.min(0xff) as u8, out, ahead),
            Slice::U16(c) if lo <= 0xffff => range_u16(c, lo as u16, hi.min(0xffff) as u16, out, ahead),
            Slice::U24(c) if HAS => range_u24_vbmi(c, lo, hi, out, ahead),
            Slice::U24(c) => range_u24(c, lo, hi, out, ahead),
            Slice::U32(c) => range_u32(c, lo, hi, out, ahead),
            _ => {}
        }
    }
}

/// A mask of the first `n` of up to 64 lanes.
#[inline(always)]
fn first(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Marks the half bytes for which `keep` holds; it is asked once for each of the sixteen.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn halves(c: &[u8], n: usize, keep: impl Fn(u32) -> bool, out: &mut Mask, ahead: &mut Ahead) {
    assert!(n <= BLOCK && c.len() * 2 >= n);
    let answers: [u8; 16] = std::array::from_fn(|i| if keep(i as u32) { 0xff } else { 0 });
    // SAFETY: 16 bytes are read from an array of 16 bytes.
    let answers = _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(answers.as_ptr().cast()) });
    let lines = ahead.in_each(RUNS);
    for (i, (run, word)) in c.chunks(32).zip(out).enumerate() {
        ahead.fetch(lines);
        let valid = first(run.len()) as u32;
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm256_maskz_loadu_epi8(valid, run.as_ptr().cast()) };
        // Each byte becomes two, its low half first.
        let wide = _mm512_cvtepu8_epi16(v);
        let both = _mm512_or_si512(wide, _mm512_slli_epi16::<4>(wide));
        let codes = _mm512_and_si512(both, _mm512_set1_epi8(15));
        let hit = _mm512_movepi8_mask(_mm512_shuffle_epi8(answers, codes));
        *word = hit & first(n - (64 * i).min(n));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn range_u8(c: &[u8], lo: u8, hi: u8, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm512_set1_epi8(lo as i8), _mm512_set1_epi8((hi - lo) as i8));
    let lines = ahead.in_each(RUNS);
    let (runs, rest) = c.as_chunks::<64>();
    let (out, last) = out.split_at_mut(runs.len());
    for (run, word) in runs.iter().zip(out) {
        ahead.fetch(lines);
        // SAFETY: 64 bytes.
        let v = unsafe { _mm512_loadu_si512(run.as_ptr().cast()) };
        *word = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, low), span);
    }
    for (run, word) in rest.chunks(64).zip(last) {
        ahead.fetch(lines);
        let valid = first(run.len());
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm512_maskz_loadu_epi8(valid, run.as_ptr().cast()) };
        *word = _mm512_mask_cmple_epu8_mask(valid, _mm512_sub_epi8(v, low), span);
    }
}

/// 64 codes of two bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn two_halves(run: &[u16; 64]) -> (__m512i, __m512i) {
    // SAFETY: both loads lie in the run.
    unsafe { (_mm512_loadu_si512(run.as_ptr().cast()), _mm512_loadu_si512(run.as_ptr().add(32).cast())) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn range_u16(c: &[u16], lo: u16, hi: u16, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm512_set1_epi16(lo as i16), _mm512_set1_epi16((hi - lo) as i16));
    let lines = ahead.in_each(RUNS);
    let (runs, rest) = c.as_chunks::<64>();
    let (out, last) = out.split_at_mut(runs.len());
    for (run, word) in runs.iter().zip(out) {
        ahead.fetch(lines);
        // SAFETY: twice 32 codes of two bytes.
        let (a, b) = unsafe { two_halves(run) };
        let a = _mm512_cmple_epu16_mask(_mm512_sub_epi16(a, low), span);
        let b = _mm512_cmple_epu16_mask(_mm512_sub_epi16(b, low), span);
        *word = a as u64 | (b as u64) << 32;
    }
    for (run, word) in rest.chunks(64).zip(last) {
        ahead.fetch(lines);
        for (half, codes) in run.chunks(32).enumerate() {
            let valid = first(codes.len()) as u32;
            // SAFETY: only lanes that lie in the slice are loaded.
            let v = unsafe { _mm512_maskz_loadu_epi16(valid, codes.as_ptr().cast()) };
            let m = _mm512_mask_cmple_epu16_mask(valid, _mm512_sub_epi16(v, low), span);
            *word |= (m as u64) << (32 * half);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn range_u32(c: &[u32], lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm512_set1_epi32(lo as i32), _mm512_set1_epi32((hi - lo) as i32));
    let lines = ahead.in_each(RUNS);
    for (run, word) in c.chunks(64).zip(out) {
        ahead.fetch(lines);
        for (part, codes) in run.chunks(16).enumerate() {
            let valid = first(codes.len()) as u16;
            // SAFETY: only lanes that lie in the slice are loaded.
            let v = unsafe { _mm512_maskz_loadu_epi32(valid, codes.as_ptr().cast()) };
            let m = _mm512_mask_cmple_epu32_mask(valid, _mm512_sub_epi32(v, low), span);
            *word |= (m as u64) << (16 * part);
        }
    }
}

fn range_i64(values: &[i64], lo: i64, hi: i64, out: &mut Mask, ahead: &mut Ahead) {
    #[target_feature(enable = "avx512f")]
    fn eight(values: &[i64], lo: i64, hi: i64) -> u8 {
        let valid = first(values.len()) as u8;
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm512_maskz_loadu_epi64(valid, values.as_ptr()) };
        let above = _mm512_mask_cmpge_epi64_mask(valid, v, _mm512_set1_epi64(lo));
        _mm512_mask_cmple_epi64_mask(above, v, _mm512_set1_epi64(hi))
    }
    // SAFETY: `table` hands this out only where the features are there.
    by_eights(values, out, ahead, |v| unsafe { eight(v, lo, hi) })
}

fn range_f64(values: &[f64], lo: f64, hi: f64, out: &mut Mask, ahead: &mut Ahead) {
    #[target_feature(enable = "avx512f")]
    fn eight(values: &[f64], lo: f64, hi: f64) -> u8 {
        let valid = first(values.len()) as u8;
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm512_maskz_loadu_pd(valid, values.as_ptr()) };
        let above = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(valid, _mm512_set1_pd(lo), v);
        _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(above, v, _mm512_set1_pd(hi))
    }
    // SAFETY: `table` hands this out only where the features are there.
    by_eights(values, out, ahead, |v| unsafe { eight(v, lo, hi) })
}

/// Marks the values that `eight` tells of up to eight each.
#[inline(always)]
fn by_eights<T>(values: &[T], out: &mut Mask, ahead: &mut Ahead, eight: impl Fn(&[T]) -> u8) {
    assert!(values.len() <= BLOCK);
    out.fill(0);
    let lines = ahead.in_each(RUNS);
    for (run, word) in values.chunks(64).zip(out) {
        ahead.fetch(lines);
        *word = run.chunks(8).enumerate().fold(0, |word, (k, v)| word | (eight(v) as u64) << (8 * k));
    }
}

/// Marks the codes of three bytes for which `test` holds, 16 at a time; `lanes` makes lanes of four bytes of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn each_u24(
    c: &[[u8; 3]],
    out: &mut Mask,
    ahead: &mut Ahead,
    lanes: impl Fn(__m512i) -> __m512i,
    test: impl Fn(u16, __m512i) -> u16,
) {
    assert!(c.len() <= BLOCK);
    let lines = ahead.in_each(RUNS);
    for (run, word) in c.chunks(64).zip(out) {
        ahead.fetch(lines);
        for (part, codes) in run.chunks(16).enumerate() {
            let valid = first(codes.len()) as u16;
            // SAFETY: only bytes that lie in the slice are loaded.
            let v = unsafe { _mm512_maskz_loadu_epi8(first(3 * codes.len()), codes.as_ptr().cast()) };
            *word |= (test(valid, lanes(v)) as u64) << (16 * part);
        }
    }
}

/// Makes lanes of four bytes of 48 bytes: each quarter gets its twelve, and each lane takes three of those.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn lanes_of_three() -> impl Fn(__m512i) -> __m512i {
    let quarters: [u32; 16] = std::array::from_fn(|i| (i / 4 * 3 + i % 4).min(15) as u32);
    let bytes: [u8; 64] =
        std::array::from_fn(|i| if i % 4 == 3 { 0x80 } else { (i % 16 / 4 * 3 + i % 4) as u8 });
    // SAFETY: twice 64 bytes are read from arrays of 64 bytes.
    let (quarters, bytes) =
        unsafe { (_mm512_loadu_si512(quarters.as_ptr().cast()), _mm512_loadu_si512(bytes.as_ptr().cast())) };
    move |v| _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, v), bytes)
}

/// The same by one permutation.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn lanes_of_three_vbmi() -> impl Fn(__m512i) -> __m512i {
    let bytes: [u8; 64] = std::array::from_fn(|i| (i / 4 * 3 + i % 4) as u8);
    // SAFETY: 64 bytes are read from an array of 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    // Nothing as the highest byte of each lane.
    move |v| _mm512_maskz_permutexvar_epi8(0x7777_7777_7777_7777, bytes, v)
}

/// Whether lanes are in `lo..=hi`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn within32(lo: u32, hi: u32) -> impl Fn(u16, __m512i) -> u16 {
    let (low, span) = (_mm512_set1_epi32(lo as i32), _mm512_set1_epi32((hi - lo) as i32));
    move |valid, v| _mm512_mask_cmple_epu32_mask(valid, _mm512_sub_epi32(v, low), span)
}

/// Whether lanes are, `shift` added, in the set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn member32(shift: i64, set: &Bits) -> impl Fn(u16, __m512i) -> u16 {
    let (f, shift) = (four(set), _mm512_set1_epi32(shift as i32));
    move |valid, v| test32(&f, valid, _mm512_add_epi32(v, shift))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn range_u24(c: &[[u8; 3]], lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    // SAFETY: the same features.
    unsafe { each_u24(c, out, ahead, lanes_of_three(), within32(lo, hi)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn range_u24_vbmi(c: &[[u8; 3]], lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    // SAFETY: the same features and one more.
    unsafe { each_u24(c, out, ahead, lanes_of_three_vbmi(), within32(lo, hi)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn member_u24(c: &[[u8; 3]], shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) {
    // SAFETY: the same features.
    unsafe { each_u24(c, out, ahead, lanes_of_three(), member32(shift, set)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn member_u24_vbmi(c: &[[u8; 3]], shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) {
    // SAFETY: the same features and one more.
    unsafe { each_u24(c, out, ahead, lanes_of_three_vbmi(), member32(shift, set)) }
}

fn narrow(a: &mut Mask, b: &Mask) -> usize {
    #[target_feature(enable = "avx512f,popcnt")]
    fn with_popcnt(a: &mut Mask, b: &Mask) -> usize {
        super::scalar::narrow(a, b)
    }
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { with_popcnt(a, b) }
}

fn positions(mask: &Mask, rows: usize, out: &mut Positions) {
    // SAFETY: `table` hands this out only where the features are there.
    unsafe { compress32(mask, rows, out) }
}

fn positions_vbmi2(mask: &Mask, rows: usize, out: &mut Positions) {
    // SAFETY: `table_vbmi2` hands this out only where the features are there.
    unsafe { compress16(mask, rows, out) }
}

/// Positions in lanes of four bytes are compressed, and made narrow as they are put down.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
unsafe fn compress32(mask: &Mask, rows: usize, out: &mut Positions) {
    assert!(rows <= BLOCK);
    let lanes: [u32; 16] = std::array::from_fn(|i| i as u32);
    // SAFETY: 64 bytes are read from an array of 64 bytes.
    let mut at = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
    let step = _mm512_set1_epi32(16);
    let mut n = 0;
    for word in &mask[..rows.div_ceil(64)] {
        if *word == 0 {
            at = _mm512_add_epi32(at, _mm512_set1_epi32(64));
            continue;
        }
        for quarter in [*word as u16, (*word >> 16) as u16, (*word >> 32) as u16, (*word >> 48) as u16] {
            let p = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(quarter, at));
            // SAFETY: `n` never exceeds the rows seen before, and the output is 64 places longer than a block.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(n).cast(), p) };
            n += quarter.count_ones() as usize;
            at = _mm512_add_epi32(at, step);
        }
    }
}

/// Positions in lanes of two bytes are compressed.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn compress16(mask: &Mask, rows: usize, out: &mut Positions) {
    assert!(rows <= BLOCK);
    let lanes: [u16; 32] = std::array::from_fn(|i| i as u16);
    // SAFETY: 64 bytes are read from an array of 64 bytes.
    let mut at = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
    let step = _mm512_set1_epi16(32);
    let mut n = 0;
    for word in &mask[..rows.div_ceil(64)] {
        if *word == 0 {
            at = _mm512_add_epi16(at, _mm512_set1_epi16(64));
            continue;
        }
        for half in [*word as u32, (*word >> 32) as u32] {
            // SAFETY: `n` never exceeds the rows seen before, and the output is 64 places longer than a block.
            unsafe {
                let p = _mm512_maskz_compress_epi16(half, at);
                _mm512_storeu_si512(out.as_mut_ptr().add(n).cast(), p);
            }
            n += half.count_ones() as usize;
            at = _mm512_add_epi16(at, step);
        }
    }
}

fn member<const HAS: bool>(
    codes: Slice<'_>,
    shift: i64,
    set: &Bits,
    out: &mut Mask,
    ahead: &mut Ahead,
) -> bool {
    // Sums are computed in the width of the lanes: none may come round to a number of the set.
    let fits = match codes {
        Slice::U4(..) => true,
        Slice::U8(_) => (-60_000..=60_000).contains(&shift),
        Slice::U16(_) => (-60_000..=0).contains(&shift),
        Slice::U24(_) | Slice::U32(_) => (-1_000_000_000..=0).contains(&shift),
    };
    let small = set.len() <= 2048 || matches!(codes, Slice::U4(..));
    if !small || !fits {
        return false;
    }
    out.fill(0);
    // SAFETY: `table` hands this out only where the features are there.
    unsafe {
        match codes {
            Slice::U4(c, n) => halves(c, n, |v| set.has((v as i64 + shift) as usize), out, ahead),
            Slice::U8(c) => member_u8(c, shift, set, out, ahead),
            Slice::U16(c) => member_u16(c, shift, set, out, ahead),
            Slice::U24(c) if HAS => member_u24_vbmi(c, shift, set, out, ahead),
            Slice::U24(c) => member_u24(c, shift, set, out, ahead),
            Slice::U32(c) => member_u32(c, shift, set, out, ahead),
        }
    }
    true
}

/// A set of up to 2,048 numbers in four registers.
struct Four {
    bits: [__m512i; 4],
    len: usize,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn four(set: &Bits) -> Four {
    let w = &set.words[..32];
    // SAFETY: 32 words are four times 64 bytes.
    let r = |i: usize| unsafe { _mm512_loadu_si512(w.as_ptr().add(8 * i).cast()) };
    Four { bits: [r(0), r(1), r(2), r(3)], len: set.len() }
}

/// Which of 32 numbers are in the set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn test16(f: &Four, valid: u32, v: __m512i) -> u32 {
    let within = _mm512_mask_cmplt_epu16_mask(valid, v, _mm512_set1_epi16(f.len as i16));
    let word = _mm512_srli_epi16::<4>(v);
    let low = _mm512_permutex2var_epi16(f.bits[0], word, f.bits[1]);
    let high = _mm512_permutex2var_epi16(f.bits[2], word, f.bits[3]);
    let upper = _mm512_test_epi16_mask(word, _mm512_set1_epi16(64));
    let bits = _mm512_mask_blend_epi16(upper, low, high);
    let bit = _mm512_sllv_epi16(_mm512_set1_epi16(1), _mm512_and_si512(v, _mm512_set1_epi16(15)));
    _mm512_mask_test_epi16_mask(within, bits, bit)
}

/// Which of 16 numbers are in the set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn test32(f: &Four, valid: u16, v: __m512i) -> u16 {
    let within = _mm512_mask_cmplt_epu32_mask(valid, v, _mm512_set1_epi32(f.len as i32));
    let word = _mm512_srli_epi32::<5>(v);
    let low = _mm512_permutex2var_epi32(f.bits[0], word, f.bits[1]);
    let high = _mm512_permutex2var_epi32(f.bits[2], word, f.bits[3]);
    let upper = _mm512_test_epi32_mask(word, _mm512_set1_epi32(32));
    let bits = _mm512_mask_blend_epi32(upper, low, high);
    let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(v, _mm512_set1_epi32(31)));
    _mm512_mask_test_epi32_mask(within, bits, bit)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn member_u8(c: &[u8], shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let shift = _mm512_set1_epi16(shift as i16);
    let lines = ahead.in_each(RUNS);
    for (run, word) in c.chunks(64).zip(out) {
        ahead.fetch(lines);
        for (half, codes) in run.chunks(32).enumerate() {
            let valid = first(codes.len()) as u32;
            // SAFETY: only lanes that lie in the slice are loaded.
            let v = unsafe { _mm256_maskz_loadu_epi8(valid, codes.as_ptr().cast()) };
            let m = test16(&f, valid, _mm512_add_epi16(_mm512_cvtepu8_epi16(v), shift));
            *word |= (m as u64) << (32 * half);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn member_u16(c: &[u16], shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let shift = _mm512_set1_epi16(shift as i16);
    let lines = ahead.in_each(RUNS);
    let (runs, rest) = c.as_chunks::<64>();
    let (out, last) = out.split_at_mut(runs.len());
    for (run, word) in runs.iter().zip(out) {
        ahead.fetch(lines);
        // SAFETY: twice 32 codes of two bytes.
        let (a, b) = unsafe { two_halves(run) };
        let a = test16(&f, u32::MAX, _mm512_add_epi16(a, shift));
        let b = test16(&f, u32::MAX, _mm512_add_epi16(b, shift));
        *word = a as u64 | (b as u64) << 32;
    }
    for (run, word) in rest.chunks(64).zip(last) {
        ahead.fetch(lines);
        for (half, codes) in run.chunks(32).enumerate() {
            let valid = first(codes.len()) as u32;
            // SAFETY: only lanes that lie in the slice are loaded.
            let v = unsafe { _mm512_maskz_loadu_epi16(valid, codes.as_ptr().cast()) };
            let m = test16(&f, valid, _mm512_add_epi16(v, shift));
            *word |= (m as u64) << (32 * half);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn member_u32(c: &[u32], shift: i64, set: &Bits, out: &mut Mask, ahead: &mut Ahead) {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let shift = _mm512_set1_epi32(shift as i32);
    let lines = ahead.in_each(RUNS);
    for (run, word) in c.chunks(64).zip(out) {
        ahead.fetch(lines);
        for (part, codes) in run.chunks(16).enumerate() {
            let valid = first(codes.len()) as u16;
            // SAFETY: only lanes that lie in the slice are loaded.
            let v = unsafe { _mm512_maskz_loadu_epi32(valid, codes.as_ptr().cast()) };
            let m = test32(&f, valid, _mm512_add_epi32(v, shift));
            *word |= (m as u64) << (16 * part);
        }
    }
}

//! Kernels for AVX-512 (with VBMI2, which compresses 16-bit lanes).
//!
//! Positions are compressed in a register and stored whole: behind the end of the output lie 64 places that nobody
//! reads.
#![allow(unsafe_code)]

use super::{BLOCK, Bits, Out, Slice, Table};
use std::arch::x86_64::*;

/// The kernels, if this machine can run them.
pub fn table() -> Option<Table> {
    let can = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt");
    can.then_some(Table { range, member })
}

fn range(codes: Slice<'_>, lo: u32, hi: u32, out: &mut Out) -> usize {
    // SAFETY: `table` hands this out only where the features are there; a block has at most BLOCK codes, which is
    // asserted in each function.
    unsafe {
        match codes {
            Slice::U8(c) => range_u8(c, lo, hi, out),
            Slice::U16(c) => range_u16(c, lo, hi, out),
            Slice::U32(c) => range_u32(c, lo, hi, out),
        }
    }
}

/// Stores the chosen of 32 consecutive positions.
///
/// # Safety
/// At `out` 32 positions can be written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn emit(mask: u32, at: __m512i, out: *mut u16) -> usize {
    // SAFETY: the caller's promise.
    unsafe { _mm512_storeu_si512(out.cast(), _mm512_maskz_compress_epi16(mask, at)) };
    mask.count_ones() as usize
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn first_positions() -> __m512i {
    let lanes: [u16; 32] = std::array::from_fn(|i| i as u16);
    // SAFETY: 64 bytes are read from an array of 64 bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn range_u8(c: &[u8], lo: u32, hi: u32, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    if lo > 0xff {
        return 0;
    }
    let (low, span) = (_mm512_set1_epi8(lo as i8), _mm512_set1_epi8((hi.min(0xff) - lo) as i8));
    let step = _mm512_set1_epi16(32);
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let left = c.len() - i;
        let valid = if left >= 64 { u64::MAX } else { (1u64 << left) - 1 };
        // SAFETY: only lanes that lie in the slice are loaded; `n` never exceeds the codes seen, and the output is
        // 64 places longer than a block.
        unsafe {
            let v = _mm512_maskz_loadu_epi8(valid, c.as_ptr().add(i).cast());
            let m = _mm512_mask_cmple_epu8_mask(valid, _mm512_sub_epi8(v, low), span);
            n += emit(m as u32, at, out.as_mut_ptr().add(n));
            at = _mm512_add_epi16(at, step);
            n += emit((m >> 32) as u32, at, out.as_mut_ptr().add(n));
            at = _mm512_add_epi16(at, step);
        }
        i += 64;
    }
    n
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn range_u16(c: &[u16], lo: u32, hi: u32, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    if lo > 0xffff {
        return 0;
    }
    let (low, span) = (_mm512_set1_epi16(lo as i16), _mm512_set1_epi16((hi.min(0xffff) - lo) as i16));
    let step = _mm512_set1_epi16(32);
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let left = c.len() - i;
        let valid = if left >= 32 { u32::MAX } else { (1u32 << left) - 1 };
        // SAFETY: as in `range_u8`.
        unsafe {
            let v = _mm512_maskz_loadu_epi16(valid, c.as_ptr().add(i).cast());
            let m = _mm512_mask_cmple_epu16_mask(valid, _mm512_sub_epi16(v, low), span);
            n += emit(m, at, out.as_mut_ptr().add(n));
        }
        at = _mm512_add_epi16(at, step);
        i += 32;
    }
    n
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn range_u32(c: &[u32], lo: u32, hi: u32, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm512_set1_epi32(lo as i32), _mm512_set1_epi32((hi - lo) as i32));
    let step = _mm512_set1_epi16(32);
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let mut m = 0u32;
        for half in 0..2 {
            let from = i + 16 * half;
            if from < c.len() {
                let left = c.len() - from;
                let valid = if left >= 16 { u16::MAX } else { (1u16 << left) - 1 };
                // SAFETY: as in `range_u8`.
                let hit = unsafe {
                    let v = _mm512_maskz_loadu_epi32(valid, c.as_ptr().add(from).cast());
                    _mm512_mask_cmple_epu32_mask(valid, _mm512_sub_epi32(v, low), span)
                };
                m |= (hit as u32) << (16 * half);
            }
        }
        // SAFETY: as in `range_u8`.
        n += unsafe { emit(m, at, out.as_mut_ptr().add(n)) };
        at = _mm512_add_epi16(at, step);
        i += 32;
    }
    n
}

fn member(codes: Slice<'_>, shift: i64, set: &Bits, out: &mut Out) -> Option<usize> {
    // With a positive shift a sum of 32 bits could come round to a small number.
    let small = if matches!(codes, Slice::U32(_)) { 0 } else { 1_000_000_000 };
    if set.len() > 2048 || !(-1_000_000_000..=small).contains(&shift) {
        return None;
    }
    // SAFETY: `table` hands this out only where the features are there; a set has at least 32 words.
    unsafe {
        match codes {
            Slice::U16(c) => Some(member_u16(c, shift as i32, set, out)),
            Slice::U32(c) => Some(member_u32(c, shift as i32, set, out)),
            Slice::U8(c) => Some(member_u8(c, shift as i32, set, out)),
        }
    }
}

/// A set of up to 2,048 bits in four registers.
struct Four([__m512i; 4], u32);

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn four(set: &Bits) -> Four {
    let w = &set.words[..32];
    // SAFETY: 32 words are four times 64 bytes.
    let r = |i: usize| unsafe { _mm512_loadu_si512(w.as_ptr().add(8 * i).cast()) };
    Four([r(0), r(1), r(2), r(3)], set.len() as u32)
}

/// Which of 16 numbers are in the set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn test(f: &Four, valid: u16, v: __m512i) -> u16 {
    let within = _mm512_mask_cmplt_epu32_mask(valid, v, _mm512_set1_epi32(f.1 as i32));
    let word = _mm512_srli_epi32::<5>(v);
    let low = _mm512_permutex2var_epi32(f.0[0], word, f.0[1]);
    let high = _mm512_permutex2var_epi32(f.0[2], word, f.0[3]);
    let upper = _mm512_test_epi32_mask(word, _mm512_set1_epi32(32));
    let bits = _mm512_mask_blend_epi32(upper, low, high);
    let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(v, _mm512_set1_epi32(31)));
    _mm512_mask_test_epi32_mask(within, bits, bit)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn member_u16(c: &[u16], shift: i32, set: &Bits, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let (shift, step) = (_mm512_set1_epi32(shift), _mm512_set1_epi16(32));
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let left = c.len() - i;
        let valid = if left >= 32 { u32::MAX } else { (1u32 << left) - 1 };
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm512_maskz_loadu_epi16(valid, c.as_ptr().add(i).cast()) };
        let a = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v));
        let b = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(v));
        let m = test(&f, valid as u16, _mm512_add_epi32(a, shift)) as u32
            | (test(&f, (valid >> 16) as u16, _mm512_add_epi32(b, shift)) as u32) << 16;
        // SAFETY: `n` never exceeds the codes seen, and the output is 64 places longer than a block.
        n += unsafe { emit(m, at, out.as_mut_ptr().add(n)) };
        at = _mm512_add_epi16(at, step);
        i += 32;
    }
    n
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn member_u32(c: &[u32], shift: i32, set: &Bits, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let (shift, step) = (_mm512_set1_epi32(shift), _mm512_set1_epi16(32));
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let mut m = 0u32;
        for half in 0..2 {
            let from = i + 16 * half;
            if from < c.len() {
                let left = c.len() - from;
                let valid = if left >= 16 { u16::MAX } else { (1u16 << left) - 1 };
                // SAFETY: only lanes that lie in the slice are loaded.
                let v = unsafe { _mm512_maskz_loadu_epi32(valid, c.as_ptr().add(from).cast()) };
                m |= (test(&f, valid, _mm512_add_epi32(v, shift)) as u32) << (16 * half);
            }
        }
        // SAFETY: as in `member_u16`.
        n += unsafe { emit(m, at, out.as_mut_ptr().add(n)) };
        at = _mm512_add_epi16(at, step);
        i += 32;
    }
    n
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn member_u8(c: &[u8], shift: i32, set: &Bits, out: &mut Out) -> usize {
    assert!(c.len() <= BLOCK);
    let f = four(set);
    let (shift, step) = (_mm512_set1_epi32(shift), _mm512_set1_epi16(32));
    let mut at = first_positions();
    let mut n = 0;
    let mut i = 0;
    while i < c.len() {
        let left = c.len() - i;
        let valid = if left >= 32 { u32::MAX } else { (1u32 << left) - 1 };
        // SAFETY: only lanes that lie in the slice are loaded.
        let v = unsafe { _mm256_maskz_loadu_epi8(valid, c.as_ptr().add(i).cast()) };
        let a = _mm512_cvtepu8_epi32(_mm256_castsi256_si128(v));
        let b = _mm512_cvtepu8_epi32(_mm256_extracti128_si256::<1>(v));
        let m = test(&f, valid as u16, _mm512_add_epi32(a, shift)) as u32
            | (test(&f, (valid >> 16) as u16, _mm512_add_epi32(b, shift)) as u32) << 16;
        // SAFETY: as in `member_u16`.
        n += unsafe { emit(m, at, out.as_mut_ptr().add(n)) };
        at = _mm512_add_epi16(at, step);
        i += 32;
    }
    n
}

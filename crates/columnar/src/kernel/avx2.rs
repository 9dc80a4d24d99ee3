//! Kernels for AVX2. There is no unsigned comparison: `x <= s` is `min(x, s) == x`.
#![allow(unsafe_code)]

use super::{Ahead, BLOCK, Mask, Slice, Table, scalar};
use std::arch::x86_64::*;

/// The kernels, if this machine can run them.
pub fn table() -> Option<Table> {
    let can = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    can.then_some(Table { range, member: |_, _, _, _, _| false, positions: scalar::positions, narrow })
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
    let n = ahead.in_each(1);
    ahead.fetch(n);
    // SAFETY: `table` hands this out only where the features are there.
    unsafe {
        match codes {
            Slice::U4(..) | Slice::U24(_) => scalar::range(codes, lo, hi, out, ahead),
            Slice::U8(c) if lo <= 0xff => range_u8(c, lo as u8, hi.min(0xff) as u8, out),
            Slice::U16(c) if lo <= 0xffff => range_u16(c, lo as u16, hi.min(0xffff) as u16, out),
            Slice::U32(c) => range_u32(c, lo, hi, out),
            _ => {}
        }
    }
}

/// The bits of codes behind the last whole run, one by one.
fn rest<T: Copy + Into<u32>>(codes: &[T], from: usize, lo: u32, span: u32, out: &mut Mask) {
    for (i, c) in codes.iter().enumerate().skip(from) {
        out[i / 64] |= ((<T as Into<u32>>::into(*c).wrapping_sub(lo) <= span) as u64) << (i % 64);
    }
}

#[target_feature(enable = "avx2")]
unsafe fn range_u8(c: &[u8], lo: u8, hi: u8, out: &mut Mask) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm256_set1_epi8(lo as i8), _mm256_set1_epi8((hi - lo) as i8));
    let (runs, _) = c.as_chunks::<32>();
    for (i, run) in runs.iter().enumerate() {
        // SAFETY: 32 bytes are read from an array of 32 bytes.
        let v = _mm256_sub_epi8(unsafe { _mm256_loadu_si256(run.as_ptr().cast()) }, low);
        let hit = _mm256_cmpeq_epi8(_mm256_min_epu8(v, span), v);
        out[i / 2] |= (_mm256_movemask_epi8(hit) as u32 as u64) << (32 * (i % 2));
    }
    rest(c, runs.len() * 32, lo as u32, (hi - lo) as u32, out);
}

#[target_feature(enable = "avx2")]
unsafe fn range_u16(c: &[u16], lo: u16, hi: u16, out: &mut Mask) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm256_set1_epi16(lo as i16), _mm256_set1_epi16((hi - lo) as i16));
    let (runs, _) = c.as_chunks::<32>();
    for (i, run) in runs.iter().enumerate() {
        let hit = |at: usize| {
            // SAFETY: 16 codes are read from the first or second half of an array of 32.
            let v = unsafe { _mm256_loadu_si256(run.as_ptr().add(at).cast()) };
            let v = _mm256_sub_epi16(v, low);
            _mm256_cmpeq_epi16(_mm256_min_epu16(v, span), v)
        };
        // Packing goes by halves of a register; the permutation puts them in order.
        let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(hit(0), hit(16)));
        out[i / 2] |= (_mm256_movemask_epi8(both) as u32 as u64) << (32 * (i % 2));
    }
    rest(c, runs.len() * 32, lo as u32, (hi - lo) as u32, out);
}

#[target_feature(enable = "avx2")]
unsafe fn range_u32(c: &[u32], lo: u32, hi: u32, out: &mut Mask) {
    assert!(c.len() <= BLOCK);
    let (low, span) = (_mm256_set1_epi32(lo as i32), _mm256_set1_epi32((hi - lo) as i32));
    let (runs, _) = c.as_chunks::<8>();
    for (i, run) in runs.iter().enumerate() {
        // SAFETY: 32 bytes are read from an array of 8 codes of 4 bytes.
        let v = _mm256_sub_epi32(unsafe { _mm256_loadu_si256(run.as_ptr().cast()) }, low);
        let hit = _mm256_cmpeq_epi32(_mm256_min_epu32(v, span), v);
        out[i / 8] |= (_mm256_movemask_ps(_mm256_castsi256_ps(hit)) as u32 as u64) << (8 * (i % 8));
    }
    rest(c, runs.len() * 8, lo, hi - lo, out);
}

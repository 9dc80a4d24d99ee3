//! Kernels that thin out a list of positions.
//!
//! No branch depends on the data: every position is written, and the place for the next one moves on if it stays.
#![allow(unsafe_code)]

use super::{Ahead, Bits, Positions, Slice};
use crate::chunk::of_three;

/// Positions that are tested between two requests for what is wanted next.
const RUN: usize = 32;

/// Positions that are tested at a time.
const FEW: usize = 4;

/// Keeps the positions for which `keep` holds of the code there.
#[inline(always)]
fn thin<T: Copy>(
    codes: &[T],
    at: &mut Positions,
    len: usize,
    ahead: &mut Ahead,
    keep: impl Fn(T) -> bool,
) -> usize {
    // Positions ascend: if the last one lies in the codes, all do.
    assert!(len <= at.len() && (len == 0 || (at[len - 1] as usize) < codes.len()));
    debug_assert!(at[..len].is_sorted());
    let lines = ahead.in_each(len.div_ceil(RUN));
    let mut n = 0;
    // SAFETY: `k` is below `len`, which was checked above.
    let get = |at: &Positions, k: usize| unsafe { *at.get_unchecked(k) };
    // SAFETY: positions ascend, and the last one was checked to lie in the codes.
    let code = |p: u16| unsafe { *codes.get_unchecked(p as usize) };
    let mut put = |at: &mut Positions, p: u16, kept: bool| {
        // SAFETY: `n` never exceeds `k`.
        unsafe { *at.get_unchecked_mut(n) = p };
        n += kept as usize;
    };
    let mut k = 0;
    while k + FEW <= len {
        if k % RUN == 0 {
            ahead.fetch(lines);
        }
        let p = [get(at, k), get(at, k + 1), get(at, k + 2), get(at, k + 3)];
        let kept = [keep(code(p[0])), keep(code(p[1])), keep(code(p[2])), keep(code(p[3]))];
        put(at, p[0], kept[0]);
        put(at, p[1], kept[1]);
        put(at, p[2], kept[2]);
        put(at, p[3], kept[3]);
        k += FEW;
    }
    while k < len {
        let p = get(at, k);
        put(at, p, keep(code(p)));
        k += 1;
    }
    n
}

/// Keeps the positions for which `keep` holds of the half byte there.
fn thin_halves(
    c: &[u8],
    at: &mut Positions,
    len: usize,
    ahead: &mut Ahead,
    keep: impl Fn(u32) -> bool,
) -> usize {
    let all = ahead.in_each(1);
    ahead.fetch(all);
    let mut n = 0;
    for i in 0..len {
        let p = at[i];
        at[n] = p;
        n += keep((c[p as usize / 2] >> (p % 2 * 4) & 15) as u32) as usize;
    }
    n
}

/// Keeps the positions of codes in `lo..=hi`.
pub fn range(codes: Slice<'_>, lo: u32, hi: u32, at: &mut Positions, len: usize, ahead: &mut Ahead) -> usize {
    let span = hi - lo;
    match codes {
        Slice::U4(c, _) => thin_halves(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
        Slice::U8(c) => thin(c, at, len, ahead, |v| (v as u32).wrapping_sub(lo) <= span),
        Slice::U16(c) => thin(c, at, len, ahead, |v| (v as u32).wrapping_sub(lo) <= span),
        Slice::U24(c) => thin(c, at, len, ahead, |v| of_three(v).wrapping_sub(lo) <= span),
        Slice::U32(c) => thin(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
    }
}

/// Keeps the positions of codes that are, `shift` added, in a set.
pub fn member(
    codes: Slice<'_>,
    shift: i64,
    set: &Bits,
    at: &mut Positions,
    len: usize,
    ahead: &mut Ahead,
) -> usize {
    let has = |v: u32| {
        // A sum below zero becomes a great number; the number behind the last is in no set.
        let i = ((v as i64 + shift) as u64).min(set.len as u64) as usize;
        // SAFETY: a set has a word for each 64 numbers up to `len`.
        let word = unsafe { *set.words.get_unchecked(i / 64) };
        word >> (i % 64) & 1 != 0
    };
    match codes {
        Slice::U4(c, _) => thin_halves(c, at, len, ahead, has),
        Slice::U8(c) => thin(c, at, len, ahead, |v| has(v as u32)),
        Slice::U16(c) => thin(c, at, len, ahead, |v| has(v as u32)),
        Slice::U24(c) => thin(c, at, len, ahead, |v| has(of_three(v))),
        Slice::U32(c) => thin(c, at, len, ahead, has),
    }
}

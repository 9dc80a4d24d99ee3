//! Kernels that thin out a list of positions.
//!
//! No branch depends on the data: every position is written, and the place for the next one moves on if it stays.
#![allow(unsafe_code)]

use super::{Ahead, Bits, Positions, Slice};
use crate::kernel::of_three;

/// Positions that are tested between two requests for what is wanted next.
const RUN: usize = 32;

/// Positions that are tested at a time.
const FEW: usize = 4;

/// Codes in memory, of a width of whole bytes.
trait Code: Copy {
    /// The code.
    fn value(self) -> u32;
    /// The code at `p`.
    ///
    /// # Safety
    /// `codes` point to more than `p + 1` of them.
    #[inline(always)]
    unsafe fn before_last(codes: *const Self, p: u16) -> u32 {
        // SAFETY: the caller says so.
        unsafe { *codes.add(p as usize) }.value()
    }
}

impl Code for u8 {
    #[inline(always)]
    fn value(self) -> u32 {
        self as u32
    }
}

impl Code for u16 {
    #[inline(always)]
    fn value(self) -> u32 {
        self as u32
    }
}

impl Code for u32 {
    #[inline(always)]
    fn value(self) -> u32 {
        self
    }
}

impl Code for [u8; 3] {
    #[inline(always)]
    fn value(self) -> u32 {
        of_three(self)
    }

    /// One load of four bytes instead of two and their joining.
    #[inline(always)]
    unsafe fn before_last(codes: *const Self, p: u16) -> u32 {
        // SAFETY: the fourth byte is the first one of the code behind.
        let four = unsafe { codes.add(p as usize).cast::<u32>().read_unaligned() };
        u32::from_le(four) & 0xff_ffff
    }
}

/// Keeps the positions for which `keep` holds of the code there.
#[inline(always)]
fn thin<T: Code>(
    codes: &[T],
    at: &mut Positions,
    len: usize,
    ahead: &mut Ahead,
    keep: impl Fn(u32) -> bool + Copy,
) -> usize {
    // Positions ascend: if the last one lies in the codes, all do.
    assert!(len <= at.len() && (len == 0 || (at[len - 1] as usize) < codes.len()));
    debug_assert!(at[..len].is_sorted_by(|a, b| a < b));
    let Some(last) = len.checked_sub(1) else { return 0 };
    let lines = ahead.in_each(len.div_ceil(RUN));
    let (mut n, mut k) = (0, 0);
    while k < last {
        ahead.fetch(lines);
        let to = (k + RUN).min(last);
        // SAFETY: `k..to` lies before the last position, which lies in the codes; `n` never exceeds `k`.
        n = unsafe { thin_run(codes, at, k, to, n, keep) };
        k = to;
    }
    let p = at[last];
    at[n] = p;
    n + keep(codes[p as usize].value()) as usize
}

/// The same for the positions `from..to`; the first kept one is put at `n`. Answers where the next would be put.
///
/// # Safety
/// `n` is at most `from`; positions ascend, and one behind `to` lies in the codes.
#[inline(always)]
unsafe fn thin_run<T: Code>(
    codes: &[T],
    at: &mut Positions,
    from: usize,
    to: usize,
    mut n: usize,
    keep: impl Fn(u32) -> bool + Copy,
) -> usize {
    let (base, list) = (codes.as_ptr(), at.as_mut_ptr());
    let mut k = from;
    while k + FEW <= to {
        // SAFETY: all four lie before the last position. They are read before anything is put, at or before `k`.
        unsafe {
            let p = [*list.add(k), *list.add(k + 1), *list.add(k + 2), *list.add(k + 3)];
            let kept = p.map(|p| keep(T::before_last(base, p)) as usize);
            *list.add(n) = p[0];
            n += kept[0];
            *list.add(n) = p[1];
            n += kept[1];
            *list.add(n) = p[2];
            n += kept[2];
            *list.add(n) = p[3];
            n += kept[3];
        }
        k += FEW;
    }
    while k < to {
        // SAFETY: as above.
        unsafe {
            let p = *list.add(k);
            *list.add(n) = p;
            n += keep(T::before_last(base, p)) as usize;
        }
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

/// Keeps the positions of codes in `lo..=hi`; where `lo` is the greater one, of those from `lo` over the end of all codes to `hi`.
pub fn range(codes: Slice<'_>, lo: u32, hi: u32, at: &mut Positions, len: usize, ahead: &mut Ahead) -> usize {
    let span = hi.wrapping_sub(lo);
    match codes {
        Slice::U4(c, _) => thin_halves(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
        Slice::U8(c) => thin(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
        Slice::U16(c) => thin(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
        Slice::U24(c) => thin(c, at, len, ahead, |v| v.wrapping_sub(lo) <= span),
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
    let words = &set.words[..];
    let test = move |i: usize| {
        // SAFETY: a set has a word for each 64 numbers up to `len`.
        let word = unsafe { *words.get_unchecked(i / 64) };
        word >> (i % 64) & 1 != 0
    };
    // Sums of 32 bits do not come round to a number of the set: a code is far from the end of these.
    let narrow = !matches!(codes, Slice::U32(_)) && set.len < 1 << 30 && shift.unsigned_abs() < 1 << 30;
    let (short, end) = (shift as u32, set.len.min(u32::MAX as usize) as u32);
    // A sum below zero becomes a great number; the number behind the last is in no set.
    let near = move |v: u32| test(v.wrapping_add(short).min(end) as usize);
    let all = set.len as u64;
    let far = move |v: u32| test(((v as i64 + shift) as u64).min(all) as usize);
    match (codes, narrow) {
        (Slice::U4(c, _), _) => thin_halves(c, at, len, ahead, far),
        (Slice::U8(c), true) => thin(c, at, len, ahead, near),
        (Slice::U8(c), _) => thin(c, at, len, ahead, far),
        (Slice::U16(c), true) => thin(c, at, len, ahead, near),
        (Slice::U16(c), _) => thin(c, at, len, ahead, far),
        (Slice::U24(c), true) => thin(c, at, len, ahead, near),
        (Slice::U24(c), _) => thin(c, at, len, ahead, far),
        (Slice::U32(c), _) => thin(c, at, len, ahead, far),
    }
}

//! Kernels in plain code.

use super::{Ahead, Mask, Positions, Slice};
use crate::kernel::of_three;

/// Marks the codes in `lo..=hi`.
pub fn range(codes: Slice<'_>, lo: u32, hi: u32, out: &mut Mask, ahead: &mut Ahead) {
    let n = ahead.in_each(1);
    ahead.fetch(n);
    fn each<T: Copy + Into<u32>>(codes: &[T], lo: u32, span: u32, out: &mut Mask) {
        out.fill(0);
        for (word, run) in out.iter_mut().zip(codes.chunks(64)) {
            for (i, c) in run.iter().enumerate() {
                *word |= ((<T as Into<u32>>::into(*c).wrapping_sub(lo) <= span) as u64) << i;
            }
        }
    }
    match codes {
        Slice::U4(c, n) => {
            out.fill(0);
            for i in 0..n {
                let v = (c[i / 2] >> (i % 2 * 4) & 15) as u32;
                out[i / 64] |= ((v.wrapping_sub(lo) <= hi - lo) as u64) << (i % 64);
            }
        }
        Slice::U8(c) => each(c, lo, hi - lo, out),
        Slice::U16(c) => each(c, lo, hi - lo, out),
        Slice::U24(c) => {
            out.fill(0);
            for (i, v) in c.iter().enumerate() {
                out[i / 64] |= ((of_three(*v).wrapping_sub(lo) <= hi - lo) as u64) << (i % 64);
            }
        }
        Slice::U32(c) => each(c, lo, hi - lo, out),
    }
}

/// Marks the values in `lo..=hi`.
pub fn between<T: Copy + PartialOrd>(values: &[T], lo: T, hi: T, out: &mut Mask, ahead: &mut Ahead) {
    let n = ahead.in_each(1);
    ahead.fetch(n);
    out.fill(0);
    for (word, run) in out.iter_mut().zip(values.chunks(64)) {
        for (i, v) in run.iter().enumerate() {
            *word |= ((lo <= *v) as u64 & (*v <= hi) as u64) << i;
        }
    }
}

/// The positions of the bits.
pub fn positions(mask: &Mask, _rows: usize, out: &mut Positions) {
    let mut n = 0;
    for (i, word) in mask.iter().enumerate() {
        let mut w = *word;
        while w != 0 {
            out[n] = (i * 64) as u16 + w.trailing_zeros() as u16;
            n += 1;
            w &= w - 1;
        }
    }
}

/// Intersects two masks; answers how many bits are left.
#[inline(always)]
pub fn narrow(a: &mut Mask, b: &Mask) -> usize {
    let mut n = 0;
    for (a, b) in a.iter_mut().zip(b) {
        *a &= b;
        n += a.count_ones();
    }
    n as usize
}

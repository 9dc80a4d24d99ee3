//! Kernels in plain code.

use super::{Out, Slice};

/// Positions of codes in `lo..=hi`.
pub fn range(codes: Slice<'_>, lo: u32, hi: u32, out: &mut Out) -> usize {
    let mut n = 0;
    let mut each = |i: usize, c: u32| {
        out[n] = i as u16;
        n += (c.wrapping_sub(lo) <= hi - lo) as usize;
    };
    match codes {
        Slice::U8(c) => c.iter().enumerate().for_each(|(i, v)| each(i, *v as u32)),
        Slice::U16(c) => c.iter().enumerate().for_each(|(i, v)| each(i, *v as u32)),
        Slice::U32(c) => c.iter().enumerate().for_each(|(i, v)| each(i, *v)),
    }
    n
}

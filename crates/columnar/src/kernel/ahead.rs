//! Asking for memory before it is needed.
//!
//! A scan goes through several columns a block at a time, a few kilobytes of each in turn; the processor sees streams that
//! begin anew at each turn, and waits. What the next block will read is asked for while this one is worked on. Measured
//! with six million rows, of which a fifth is looked up in a set of 25 KB: 3.8 ms without, 1.4 ms with it.
#![allow(unsafe_code)]

use super::Slice;

const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(p: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint; it reads nothing, whatever the address is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_: *const u8) {}

fn bytes(codes: Slice<'_>) -> (*const u8, usize) {
    match codes {
        Slice::U4(c, _) | Slice::U8(c) => (c.as_ptr(), c.len()),
        Slice::U16(c) => (c.as_ptr().cast(), c.len() * 2),
        Slice::U32(c) => (c.as_ptr().cast(), c.len() * 4),
    }
}

/// Codes that will be wanted soon. Kernels ask for them bit by bit, between what they compute.
pub(crate) struct Ahead {
    at: *const u8,
    /// Cache lines.
    left: usize,
}

impl Ahead {
    /// Nothing.
    pub fn nothing() -> Ahead {
        Ahead { at: std::ptr::null(), left: 0 }
    }

    /// All of these.
    pub fn of(codes: Slice<'_>) -> Ahead {
        let (at, n) = bytes(codes);
        Ahead { at, left: n.div_ceil(LINE) }
    }

    /// How many lines.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Asks for the next `n` lines.
    #[inline(always)]
    pub fn fetch(&mut self, n: usize) {
        let n = n.min(self.left);
        for i in 0..n {
            line(self.at.wrapping_add(i * LINE));
        }
        self.at = self.at.wrapping_add(n * LINE);
        self.left -= n;
    }
}

/// Asks for those at some places.
pub(crate) fn fetch_some(codes: Slice<'_>, at: &[u32]) {
    let p = bytes(codes).0;
    // In half bytes.
    let width = match codes {
        Slice::U4(..) => 1,
        Slice::U8(_) => 2,
        Slice::U16(_) => 4,
        Slice::U32(_) => 8,
    };
    for i in at {
        line(p.wrapping_add(*i as usize * width / 2));
    }
}

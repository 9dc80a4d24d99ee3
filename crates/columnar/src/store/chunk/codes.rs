//! Codes: narrow unsigned numbers, as narrow as the greatest allows.
//!
//! What always holds: they are aligned to bytes, or to half bytes, so that a filter compares them as they are.

use crate::kernel::{of_three, three};
use crate::memory::room;
use iolite_base::Result;

/// Narrow unsigned numbers.
pub(crate) enum Codes {
    /// Two to a byte, the first one in the low half.
    U4(Vec<u8>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    /// Three bytes, the least one first.
    U24(Vec<[u8; 3]>),
    U32(Vec<u32>),
}

impl Codes {
    /// As narrow as `max` allows.
    pub fn pack(values: &[u32], max: u32) -> Result<Codes> {
        Codes::pack_by(values, |v| v, max)
    }

    /// The same of what `code` makes of other numbers.
    #[inline]
    pub fn pack_by<T: Copy>(values: &[T], code: impl Fn(T) -> u32, max: u32) -> Result<Codes> {
        Ok(match max {
            0..=0xf => {
                let mut out = room(values.len().div_ceil(2))?;
                let (pairs, last) = values.as_chunks::<2>();
                out.extend(pairs.iter().map(|p| code(p[0]) as u8 | (code(p[1]) as u8) << 4));
                out.extend(last.iter().map(|v| code(*v) as u8));
                Codes::U4(out)
            }
            0x10..=0xff => {
                let mut out = room(values.len())?;
                out.extend(values.iter().map(|v| code(*v) as u8));
                Codes::U8(out)
            }
            0x100..=0xffff => {
                let mut out = room(values.len())?;
                out.extend(values.iter().map(|v| code(*v) as u16));
                Codes::U16(out)
            }
            0x1_0000..=0xff_ffff => {
                let mut out = room(values.len())?;
                out.extend(values.iter().map(|v| three(code(*v))));
                Codes::U24(out)
            }
            _ => {
                let mut out = room(values.len())?;
                out.extend(values.iter().map(|v| code(*v)));
                Codes::U32(out)
            }
        })
    }

    /// One of them.
    #[inline(always)]
    pub fn get(&self, i: usize) -> u32 {
        match self {
            Codes::U4(c) => (c[i / 2] >> (i % 2 * 4) & 15) as u32,
            Codes::U8(c) => c[i] as u32,
            Codes::U16(c) => c[i] as u32,
            Codes::U24(c) => of_three(c[i]),
            Codes::U32(c) => c[i],
        }
    }

    /// Calls `f` with those of some rows.
    #[inline(always)]
    pub fn each(&self, rows: &[u32], mut f: impl FnMut(u32)) {
        match self {
            Codes::U4(c) => {
                for i in rows {
                    f((c[*i as usize / 2] >> (i % 2 * 4) & 15) as u32);
                }
            }
            Codes::U8(c) => {
                for i in rows {
                    f(c[*i as usize] as u32);
                }
            }
            Codes::U16(c) => {
                for i in rows {
                    f(c[*i as usize] as u32);
                }
            }
            Codes::U24(c) => {
                for i in rows {
                    f(of_three(c[*i as usize]));
                }
            }
            Codes::U32(c) => {
                for i in rows {
                    f(c[*i as usize]);
                }
            }
        }
    }

    /// Calls `f` with those of consecutive rows, if they take half a byte each; a run of these begins at an even row.
    #[inline(always)]
    pub fn each_half(&self, rows: std::ops::Range<usize>, mut f: impl FnMut(u32)) {
        debug_assert!(rows.start.is_multiple_of(2));
        let Codes::U4(c) = self else { return };
        for b in &c[rows.start / 2..rows.end / 2] {
            f((b & 15) as u32);
            f((b >> 4) as u32);
        }
        if !rows.len().is_multiple_of(2) {
            f((c[rows.end / 2] & 15) as u32);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Codes::U4(c) | Codes::U8(c) => c.len(),
            Codes::U16(c) => c.len() * 2,
            Codes::U24(c) => c.len() * 3,
            Codes::U32(c) => c.len() * 4,
        }
    }
}

//! The innermost loops: from codes to selections.
//!
//! A selection is a list of positions within a block of at most [`BLOCK`] rows, ascending. Each kernel exists once in
//! plain code, which says what it does, and where it pays again for a vector unit; which one runs is found out once.
//! This is the only place in the crate with `unsafe` code.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use std::sync::OnceLock;

/// Rows in a block.
pub(crate) const BLOCK: usize = 4096;

/// Positions of rows in a block.
pub(crate) struct Selection {
    at: Box<[u16; BLOCK + 64]>,
    len: usize,
}

impl Selection {
    /// An empty one.
    pub fn new() -> Selection {
        Selection { at: Box::new([0; BLOCK + 64]), len: 0 }
    }

    /// All rows of a block of `n`.
    pub fn fill(&mut self, n: usize) {
        for (i, a) in self.at[..n].iter_mut().enumerate() {
            *a = i as u16;
        }
        self.len = n;
    }

    /// The positions.
    #[inline(always)]
    pub fn rows(&self) -> &[u16] {
        &self.at[..self.len]
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Keeps the rows for which `keep` holds.
    #[inline(always)]
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut n = 0;
        for i in 0..self.len {
            let p = self.at[i];
            self.at[n] = p;
            n += keep(p as usize) as usize;
        }
        self.len = n;
    }

    /// As [`Selection::retain`], where `keep` may fail.
    pub fn try_retain<E>(&mut self, mut keep: impl FnMut(usize) -> Result<bool, E>) -> Result<(), E> {
        let mut n = 0;
        for i in 0..self.len {
            let p = self.at[i];
            self.at[n] = p;
            n += keep(p as usize)? as usize;
        }
        self.len = n;
        Ok(())
    }
}

/// A set of codes as bits, 64 to a word.
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// An empty set of numbers below `len`.
    pub fn new(len: usize) -> iolite_base::Result<Bits> {
        let n = len.div_ceil(64).next_multiple_of(8).max(32);
        let mut words = crate::chunk::room(n)?;
        words.resize(n, 0);
        Ok(Bits { words, len })
    }

    /// Puts a number in; answers whether it was there.
    #[inline(always)]
    pub fn set(&mut self, i: usize) -> bool {
        let (w, b) = (i / 64, 1u64 << (i % 64));
        let was = self.words[w] & b != 0;
        self.words[w] |= b;
        was
    }

    /// Whether it is there.
    #[inline(always)]
    pub fn has(&self, i: usize) -> bool {
        i < self.len && self.words[i / 64] >> (i % 64) & 1 != 0
    }

    /// Numbers that may be in.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Codes of some width.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
}

/// Selects the rows whose code is in `lo..=hi`, from all of a block (`fresh`) or from those selected already.
pub(crate) fn range(codes: Slice<'_>, lo: u32, hi: u32, fresh: bool, sel: &mut Selection) {
    if fresh {
        sel.len = (table().range)(codes, lo, hi, &mut sel.at);
        return;
    }
    match codes {
        Slice::U8(c) => sel.retain(|i| (c[i] as u32).wrapping_sub(lo) <= hi - lo),
        Slice::U16(c) => sel.retain(|i| (c[i] as u32).wrapping_sub(lo) <= hi - lo),
        Slice::U32(c) => sel.retain(|i| c[i].wrapping_sub(lo) <= hi - lo),
    }
}

/// Selects the rows whose code, `shift` added, is in a set.
pub(crate) fn member(codes: Slice<'_>, shift: i64, set: &Bits, fresh: bool, sel: &mut Selection) {
    if fresh {
        let n = match codes {
            Slice::U8(c) => c.len(),
            Slice::U16(c) => c.len(),
            Slice::U32(c) => c.len(),
        };
        if let Some(len) = (table().member)(codes, shift, set, &mut sel.at) {
            sel.len = len;
            return;
        }
        sel.fill(n);
    }
    // A sum below zero becomes a great one: it is in no set.
    let at = |c: u32| (c as i64 + shift) as usize;
    match codes {
        Slice::U8(c) => sel.retain(|i| set.has(at(c[i] as u32))),
        Slice::U16(c) => sel.retain(|i| set.has(at(c[i] as u32))),
        Slice::U32(c) => sel.retain(|i| set.has(at(c[i]))),
    }
}

type Out = [u16; BLOCK + 64];

/// The kernels of one vector unit.
struct Table {
    range: fn(Slice<'_>, u32, u32, &mut Out) -> usize,
    /// `None`: this form has no kernel of its own.
    member: fn(Slice<'_>, i64, &Bits, &mut Out) -> Option<usize>,
}

const PLAIN: Table = Table { range: scalar::range, member: |_, _, _, _| None };

fn table() -> &'static Table {
    static CHOSEN: OnceLock<Table> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        if let Some(t) = avx512::table() {
            return t;
        }
        PLAIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, below: u32) -> Vec<u32> {
        let mut x = 12345u64;
        (0..n)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (x >> 33) as u32 % below
            })
            .collect()
    }

    fn selected(f: impl FnOnce(&mut Selection)) -> Vec<u16> {
        let mut s = Selection::new();
        f(&mut s);
        s.rows().to_vec()
    }

    #[test]
    fn vector_kernels_select_what_plain_ones_do() {
        for n in [0, 1, 15, 16, 17, 31, 63, 64, 65, 1000, BLOCK] {
            let (a, b, c) = (numbers(n, 256), numbers(n, 65_536), numbers(n, 1 << 31));
            let bytes: Vec<u8> = a.iter().map(|v| *v as u8).collect();
            let words: Vec<u16> = b.iter().map(|v| *v as u16).collect();
            for (slice, values, lo, hi) in [
                (Slice::U8(&bytes), &a, 10, 200),
                (Slice::U8(&bytes), &a, 0, 255),
                (Slice::U16(&words), &b, 300, 40_000),
                (Slice::U32(&c), &c, 1 << 20, 1 << 30),
            ] {
                let want: Vec<u16> =
                    (0..n).filter(|i| (lo..=hi).contains(&values[*i])).map(|i| i as u16).collect();
                assert_eq!(selected(|s| range(slice, lo, hi, true, s)), want);
                assert_eq!(
                    selected(|s| {
                        s.fill(n);
                        range(slice, lo, hi, false, s)
                    }),
                    want
                );
            }
            for (len, shift) in [(2000usize, 0i64), (2048, -7), (300, 50), (70_000, 3)] {
                let mut set = Bits::new(len).unwrap();
                for v in numbers(len / 3, len as u32) {
                    set.set(v as usize);
                }
                for (slice, values) in [(Slice::U8(&bytes), &a), (Slice::U16(&words), &b), (Slice::U32(&c), &c)]
                {
                    let want: Vec<u16> = (0..n)
                        .filter(|i| set.has((values[*i] as i64 + shift) as usize))
                        .map(|i| i as u16)
                        .collect();
                    assert_eq!(selected(|s| member(slice, shift, &set, true, s)), want, "{n} {len} {shift}");
                    let mut s = Selection::new();
                    s.fill(n);
                    member(slice, shift, &set, false, &mut s);
                    assert_eq!(s.rows(), want);
                }
            }
        }
    }
}

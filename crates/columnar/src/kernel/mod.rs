//! The innermost loops: from codes to selections, and where the fields of a record begin ([`heads`]).
//!
//! A selection says which rows of a block of at most [`BLOCK`] are still in: first as a bit mask, which conditions narrow
//! for all rows at once, later, when few are left, as a list of positions. Each kernel exists once in plain code, which
//! says what it does, and where it pays again for each vector unit; which one runs is found out once. This is the only
//! place in the crate with `unsafe` code.

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod heads;
mod list;
mod scalar;
mod three;

pub(crate) use three::{of_three, three};

pub(crate) use ahead::{Ahead, fetch_all, fetch_at, fetch_some};
use std::sync::OnceLock;

/// Rows in a block. Fewer, and the columns' streams begin anew too often; of more, what is asked for ahead does not stay in
/// the second cache.
pub(crate) const BLOCK: usize = 16384;

/// Rows in the first block of a scan that may end soon; each has twice as many as the one before.
pub(crate) const FIRST_BLOCK: usize = 128;

/// Rows that are joined and added up at a time: what is computed of them stays in the first cache.
pub(crate) const BATCH: usize = 4096;

const WORDS: usize = BLOCK / 64;

/// One bit for each row of a block.
type Mask = [u64; WORDS];
/// Positions; behind the last one lie places that kernels may write to.
type Positions = [u16; BLOCK + 64];

/// A mask is narrowed as long as more than one in so many rows is left.
const SPARSE: usize = 16;

/// Which rows of a block are in.
pub(crate) struct Selection {
    mask: Box<Mask>,
    scratch: Box<Mask>,
    at: Box<Positions>,
    len: usize,
    /// Rows of the block.
    rows: usize,
    /// The list counts, not the mask.
    listed: bool,
    /// What is to be asked for while kernels run.
    pub ahead: Ahead,
}

impl Selection {
    /// An empty one.
    pub fn new() -> Selection {
        Selection {
            mask: Box::new([0; WORDS]),
            scratch: Box::new([0; WORDS]),
            at: Box::new([0; BLOCK + 64]),
            len: 0,
            rows: 0,
            listed: false,
            ahead: Ahead::new(),
        }
    }

    /// All rows of a block of `n`.
    pub fn fill(&mut self, n: usize) {
        debug_assert!(n <= BLOCK);
        for (i, w) in self.mask.iter_mut().enumerate() {
            let left = n.saturating_sub(64 * i);
            *w = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
        }
        self.len = n;
        self.rows = n;
        self.listed = false;
    }

    /// No rows.
    pub fn clear(&mut self) {
        self.len = 0;
        self.listed = true;
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The positions, ascending.
    #[inline]
    pub fn rows(&mut self) -> &[u16] {
        self.list();
        &self.at[..self.len]
    }

    fn list(&mut self) {
        if !self.listed {
            self.listed = true;
            (table().positions)(&self.mask, self.rows, &mut self.at);
        }
    }

    /// Whether conditions are better tested on all rows.
    fn dense(&self) -> bool {
        !self.listed && self.len * SPARSE > self.rows
    }

    /// Takes the rows of the scratch mask only.
    fn narrow(&mut self) {
        self.len = (table().narrow)(&mut self.mask, &self.scratch);
    }

    /// Takes the rows of the mask that the scratch mask does not have.
    fn exclude(&mut self) {
        self.scratch.iter_mut().for_each(|w| *w = !*w);
        self.narrow();
    }

    /// Keeps the rows for which `keep` holds.
    #[inline(always)]
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.list();
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
        self.list();
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
#[derive(Clone)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// An empty set of numbers below `len`.
    pub fn new(len: usize) -> iolite_base::Result<Bits> {
        // At least as many as fill the four registers of the kernel for small sets; and a place behind the last one.
        let n = (len / 64 + 1).max(32);
        let mut words = crate::memory::room(n)?;
        words.resize(n, 0);
        Ok(Bits { words, len })
    }

    /// Puts a number in; answers whether it was there.
    #[inline(always)]
    pub fn set(&mut self, i: usize) -> bool {
        debug_assert!(i < self.len);
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

    /// Which of the numbers from `from` to 255 more are there.
    #[cfg(target_arch = "x86_64")]
    fn window(&self, from: i64) -> [u64; 4] {
        let word = |w: i64| usize::try_from(w).ok().and_then(|w| self.words.get(w)).copied().unwrap_or(0);
        let (w, b) = (from >> 6, from & 63);
        // Shifted in two steps, as no shift is by 64.
        [0, 1, 2, 3].map(|k| word(w + k) >> b | word(w + k + 1) << 1 << (63 - b))
    }

    /// For each word, how many numbers below it are there.
    pub fn counts(&self) -> iolite_base::Result<Vec<u32>> {
        let mut out = crate::memory::room(self.words.len())?;
        let mut n = 0;
        for w in &self.words {
            out.push(n);
            n += w.count_ones();
        }
        Ok(out)
    }

    /// How many numbers below `i` are there, given [`Bits::counts`].
    #[inline(always)]
    pub fn rank(&self, i: usize, counts: &[u32]) -> usize {
        let below = self.words[i / 64] & ((1u64 << (i % 64)) - 1);
        (counts[i / 64] + below.count_ones()) as usize
    }

    /// Numbers that may be in.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Codes of some width.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    /// Two to a byte; and how many.
    U4(&'a [u8], usize),
    U8(&'a [u8]),
    U16(&'a [u16]),
    /// Three bytes each.
    U24(&'a [[u8; 3]]),
    U32(&'a [u32]),
}

impl Slice<'_> {
    /// How many lie in a cache line.
    pub fn in_a_line(&self) -> usize {
        match self {
            Slice::U4(..) => 128,
            Slice::U8(_) => 64,
            Slice::U16(_) => 32,
            Slice::U24(_) => 21,
            Slice::U32(_) => 16,
        }
    }

    fn len(&self) -> usize {
        match self {
            Slice::U4(_, n) => *n,
            Slice::U8(c) => c.len(),
            Slice::U16(c) => c.len(),
            Slice::U24(c) => c.len(),
            Slice::U32(c) => c.len(),
        }
    }
}

/// Keeps the rows whose code is in `lo..=hi`.
pub(crate) fn range(codes: Slice<'_>, lo: u32, hi: u32, sel: &mut Selection) {
    assert!(codes.len() == sel.rows && lo <= hi);
    if sel.dense() {
        (table().range)(codes, lo, hi, &mut sel.scratch, &mut sel.ahead);
        sel.narrow();
        return;
    }
    sel.list();
    sel.len = list::range(codes, lo, hi, &mut sel.at, sel.len, &mut sel.ahead);
}

/// Keeps the rows whose code is not in `lo..=hi`, which is not all codes there are.
pub(crate) fn outside(codes: Slice<'_>, lo: u32, hi: u32, sel: &mut Selection) {
    assert!(codes.len() == sel.rows && lo <= hi && (lo, hi) != (0, u32::MAX));
    if sel.dense() {
        (table().range)(codes, lo, hi, &mut sel.scratch, &mut sel.ahead);
        sel.exclude();
        return;
    }
    sel.list();
    // From behind `hi` over the end of all codes to before `lo`.
    let (lo, hi) = (hi.wrapping_add(1), lo.wrapping_sub(1));
    sel.len = list::range(codes, lo, hi, &mut sel.at, sel.len, &mut sel.ahead);
}

/// Keeps the rows whose integer is not in `lo..=hi`.
pub(crate) fn outside_i64(values: &[i64], lo: i64, hi: i64, sel: &mut Selection) {
    assert!(values.len() == sel.rows);
    if !sel.dense() {
        return sel.retain(|i| values[i] < lo || values[i] > hi);
    }
    (table().range_i64)(values, lo, hi, &mut sel.scratch, &mut sel.ahead);
    sel.exclude();
}

/// Keeps the rows whose integer is in `lo..=hi`.
pub(crate) fn range_i64(values: &[i64], lo: i64, hi: i64, sel: &mut Selection) {
    between(values, (lo, hi), table().range_i64, sel);
}

/// Keeps the rows whose real is in `lo..=hi`.
pub(crate) fn range_f64(values: &[f64], lo: f64, hi: f64, sel: &mut Selection) {
    between(values, (lo, hi), table().range_f64, sel);
}

fn between<T: Copy + PartialOrd>(values: &[T], (lo, hi): (T, T), marks: Between<T>, sel: &mut Selection) {
    assert!(values.len() == sel.rows);
    if !sel.dense() {
        return sel.retain(|i| lo <= values[i] && values[i] <= hi);
    }
    marks(values, lo, hi, &mut sel.scratch, &mut sel.ahead);
    sel.narrow();
}

/// Keeps the rows whose code, `shift` added, is in a set.
pub(crate) fn member(codes: Slice<'_>, shift: i64, set: &Bits, sel: &mut Selection) {
    assert!(codes.len() == sel.rows);
    if sel.dense() && (table().member)(codes, shift, set, &mut sel.scratch, &mut sel.ahead) {
        sel.narrow();
        return;
    }
    sel.list();
    sel.len = list::member(codes, shift, set, &mut sel.at, sel.len, &mut sel.ahead);
}

/// Marks the values from one to another.
type Between<T> = fn(&[T], T, T, &mut Mask, &mut Ahead);

/// The kernels of one vector unit.
struct Table {
    range: fn(Slice<'_>, u32, u32, &mut Mask, &mut Ahead),
    range_i64: Between<i64>,
    range_f64: Between<f64>,
    /// `false`: this form has no kernel of its own.
    member: fn(Slice<'_>, i64, &Bits, &mut Mask, &mut Ahead) -> bool,
    positions: fn(&Mask, usize, &mut Positions),
    /// Intersects; answers how many are left.
    narrow: fn(&mut Mask, &Mask) -> usize,
}

const PLAIN: Table = Table {
    range: scalar::range,
    range_i64: scalar::between,
    range_f64: scalar::between,
    member: |_, _, _, _, _| false,
    positions: scalar::positions,
    narrow: scalar::narrow,
};

fn table() -> &'static Table {
    static CHOSEN: OnceLock<Table> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        if let Some(t) = avx512::table_vbmi2().or_else(avx512::table).or_else(avx2::table) {
            return t;
        }
        PLAIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(codes: Slice<'_>) -> Ahead {
        let mut a = Ahead::new();
        a.add(codes);
        a.add(codes);
        a.allot(0.8);
        a
    }

    fn numbers(n: usize, below: u32) -> Vec<u32> {
        let mut x = 12345u64;
        (0..n)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (x >> 33) as u32 % below
            })
            .collect()
    }

    /// The kernels of all vector units that this machine has.
    fn tables() -> Vec<Table> {
        let mut out = vec![PLAIN];
        #[cfg(target_arch = "x86_64")]
        out.extend([avx2::table(), avx512::table(), avx512::table_vbmi2()].into_iter().flatten());
        out
    }

    /// The positions that a table's kernel marks.
    fn marked(t: &Table, n: usize, f: impl Fn(&mut Mask) -> bool) -> Option<Vec<u16>> {
        let mut mask = [u64::MAX; WORDS];
        if !f(&mut mask) {
            return None;
        }
        let mut all = Selection::new();
        all.fill(n);
        let len = (t.narrow)(&mut all.mask, &mask);
        let mut at = [0; BLOCK + 64];
        (t.positions)(&all.mask, n, &mut at);
        Some(at[..len].to_vec())
    }

    /// What `f` leaves of all rows, from a mask and from a list, by this machine's kernels.
    fn selected(n: usize, f: impl Fn(&mut Selection)) -> Vec<u16> {
        let mut dense = Selection::new();
        dense.fill(n);
        f(&mut dense);
        let mut sparse = Selection::new();
        sparse.fill(n);
        sparse.list();
        f(&mut sparse);
        assert_eq!(dense.len(), sparse.len());
        assert_eq!(dense.rows(), sparse.rows());
        dense.rows().to_vec()
    }

    #[test]
    fn kernels_select_what_the_comparison_says() {
        for n in [0, 1, 15, 16, 17, 31, 63, 64, 65, 1000, BLOCK] {
            let (a, b, c) = (numbers(n, 256), numbers(n, 65_536), numbers(n, 1 << 31));
            let bytes: Vec<u8> = a.iter().map(|v| *v as u8).collect();
            let words: Vec<u16> = b.iter().map(|v| *v as u16).collect();
            let d: Vec<u32> = a.iter().map(|v| v % 16).collect();
            let halves: Vec<u8> =
                d.chunks(2).map(|p| p[0] as u8 | (p.get(1).copied().unwrap_or(9) as u8) << 4).collect();
            let e: Vec<u32> = c.iter().map(|v| v & 0xff_ffff).collect();
            let threes: Vec<[u8; 3]> = e.iter().map(|v| crate::kernel::three(*v)).collect();
            for (slice, values, lo, hi) in [
                (Slice::U4(&halves, n), &d, 3, 11),
                (Slice::U4(&halves, n), &d, 0, 15),
                (Slice::U4(&halves, n), &d, 20, 70),
                (Slice::U4(&halves, n), &d, 5, u32::MAX),
                (Slice::U8(&bytes), &a, 10, 200),
                (Slice::U8(&bytes), &a, 0, 255),
                (Slice::U8(&bytes), &a, 7, 70_000),
                (Slice::U8(&bytes), &a, 300, 70_000),
                (Slice::U16(&words), &b, 300, 40_000),
                (Slice::U16(&words), &b, 300, u32::MAX),
                (Slice::U24(&threes), &e, 1 << 10, 1 << 20),
                (Slice::U24(&threes), &e, 1 << 10, u32::MAX),
                (Slice::U32(&c), &c, 1 << 20, 1 << 30),
            ] {
                let want: Vec<u16> =
                    (0..n).filter(|i| (lo..=hi).contains(&values[*i])).map(|i| i as u16).collect();
                assert_eq!(selected(n, |s| range(slice, lo, hi, s)), want);
                let others: Vec<u16> = (0..n as u16).filter(|i| !want.contains(i)).collect();
                assert_eq!(selected(n, |s| outside(slice, lo, hi, s)), others);
                for t in tables() {
                    let got = marked(&t, n, |m| {
                        (t.range)(slice, lo, hi, m, &mut some(slice));
                        true
                    });
                    assert_eq!(got, Some(want.clone()));
                }
            }
        }
    }

    /// Whether this machine's choice and each of its kernels select the values that the comparison says.
    fn lie_between<T: Copy + PartialOrd + std::fmt::Debug>(
        values: &[T],
        (lo, hi): (T, T),
        chosen: fn(&[T], T, T, &mut Selection),
        of: fn(&Table) -> Between<T>,
    ) {
        let n = values.len();
        let want: Vec<u16> = (0..n).filter(|i| (lo..=hi).contains(&values[*i])).map(|i| i as u16).collect();
        assert_eq!(selected(n, |s| chosen(values, lo, hi, s)), want);
        for t in tables() {
            let got = marked(&t, n, |m| {
                of(&t)(values, lo, hi, m, &mut Ahead::new());
                true
            });
            assert_eq!(got.as_ref(), Some(&want), "{n} {lo:?} {hi:?}");
        }
    }

    #[test]
    fn kernels_select_the_wide_numbers_that_lie_between() {
        const INF: f64 = f64::INFINITY;
        let (least, most) = (i64::MIN, i64::MAX);
        for n in [0, 1, 3, 4, 5, 8, 63, 64, 65, 130, 1000, BLOCK] {
            let mut ints: Vec<i64> =
                numbers(n, u32::MAX).iter().map(|v| (*v as i64 - (1 << 31)) << 31).collect();
            ints.iter_mut().step_by(7).for_each(|v| *v = [least, most, 0, -1, 5][*v as usize % 5]);
            let mut reals: Vec<f64> = ints.iter().map(|v| *v as f64 / 1e9).collect();
            reals
                .iter_mut()
                .step_by(5)
                .for_each(|v| *v = [-INF, INF, -0.0, 0.0, 5e-324][v.to_bits() as usize % 5]);
            for range in [(0, 0), (5, 5), (-1, most), (least, -1), (least, most), (3, 2), (-9, 1 << 40)] {
                lie_between(&ints, range, range_i64, |t| t.range_i64);
            }
            for range in [(0.0, 0.0), (5e-324, INF), (-INF, -0.0), (-INF, -INF), (1.0, 0.5), (-3.5, 1e9)] {
                lie_between(&reals, range, range_f64, |t| t.range_f64);
            }
        }
    }

    #[test]
    fn kernels_select_what_is_in_the_set() {
        for n in [0, 1, 15, 16, 17, 31, 63, 64, 65, 1000, BLOCK] {
            let (a, mut b, mut c) = (numbers(n, 256), numbers(n, 65_536), numbers(n, 1 << 31));
            // Some that may be in.
            b.iter_mut().step_by(3).for_each(|v| *v %= 2500);
            c.iter_mut().step_by(3).for_each(|v| *v %= 2500);
            if n > 0 {
                (b[n / 2], c[n / 2]) = (65_535, u32::MAX);
            }
            let bytes: Vec<u8> = a.iter().map(|v| *v as u8).collect();
            let words: Vec<u16> = b.iter().map(|v| *v as u16).collect();
            for (len, shift) in [
                (2000usize, 0i64),
                (2048, -7),
                (300, 50),
                (70_000, 3),
                (5, 1),
                (2000, -64_000),
                (2000, 60_000),
                (1 << 21, -(1 << 33)),
            ] {
                let mut set = Bits::new(len).unwrap();
                for v in numbers(len / 3, len as u32) {
                    set.set(v as usize);
                }
                let d: Vec<u32> = a.iter().map(|v| v % 16).collect();
                let halves: Vec<u8> =
                    d.chunks(2).map(|p| p[0] as u8 | (p.get(1).copied().unwrap_or(9) as u8) << 4).collect();
                let e: Vec<u32> = c.iter().map(|v| v & 0xff_ffff).collect();
                let threes: Vec<[u8; 3]> = e.iter().map(|v| crate::kernel::three(*v)).collect();
                let slices = [
                    (Slice::U4(&halves, n), &d),
                    (Slice::U8(&bytes), &a),
                    (Slice::U16(&words), &b),
                    (Slice::U24(&threes), &e),
                    (Slice::U32(&c), &c),
                ];
                for (slice, values) in slices {
                    let want: Vec<u16> = (0..n)
                        .filter(|i| set.has((values[*i] as i64 + shift) as usize))
                        .map(|i| i as u16)
                        .collect();
                    assert_eq!(selected(n, |s| member(slice, shift, &set, s)), want, "{n} {len} {shift}");
                    for t in tables() {
                        let got = marked(&t, n, |m| (t.member)(slice, shift, &set, m, &mut some(slice)));
                        assert!(got.is_none_or(|g| g == want), "{n} {len} {shift}");
                    }
                }
            }
        }
    }
}

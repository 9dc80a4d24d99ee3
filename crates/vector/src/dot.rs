//! Scalar products of codes in 8 bits: one query with many rows, as fast as the machine's vector unit allows.
//!
//! Codes in 4 bits likewise, two in a byte: of two runs the first stands in the lower halves of 64 bytes, the second in the upper ones; of a
//! last run alone the first 32 codes in the lower halves of 32 bytes.
//!
//! What always holds: sums are integers, so every machine gives the same. A row is a whole number of runs of 64 codes. A vector unit's own
//! functions are in a file of its name and are called from here alone, after a look at what the machine has.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod plain;
#[cfg(target_arch = "x86_64")]
mod vnni;

/// Codes stand in runs of so many, each where a vector unit likes it best.
pub(crate) const RUN: usize = 64;

/// A run's bytes at 4 bits a code.
pub(crate) const HALF: usize = RUN / 2;

/// A run of codes.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Run<T>(pub [T; RUN]);

/// Does with the functions of the widest vector unit that the machine has: each has those that are named here.
macro_rules! by_unit {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
            {
                // SAFETY: the machine has what the function is compiled for, and the caller saw to what the function asks of its arguments.
                return unsafe { vnni::$name($($argument),*) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: as above.
                return unsafe { avx2::$name($($argument),*) };
            }
        }
        plain::$name($($argument),*)
    }};
}

/// The scalar products of rows of `query.len()` runs with `query`.
pub(crate) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.clear();
    out.resize(rows.len() / query.len().max(1), 0);
    by_unit!(products(rows, query, out))
}

/// Rows of codes in 4 bits: where each of them begins.
#[derive(Clone, Copy)]
struct Nibbles<'a> {
    bytes: &'a [u8],
    stride: usize,
    /// Which rows are asked for; all, from the first, where nothing is said.
    rows: Option<&'a [u32]>,
}

impl Nibbles<'_> {
    /// Where the bytes of the `n`-th row that is asked for begin.
    #[inline(always)]
    fn at(&self, n: usize) -> usize {
        self.stride * self.rows.map_or(n, |rows| rows[n] as usize)
    }
}

/// The scalar products of rows of codes from 0 to 15 in 4 bits, of `query.len()` runs each, with `query`.
pub(crate) fn nibble_products(bytes: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    let stride = query.len() * HALF;
    out.clear();
    out.resize(bytes.len() / stride.max(1), 0);
    let rows = Nibbles { bytes, stride, rows: None };
    by_unit!(nibbles(rows, query, out))
}

/// The same of rows that lie apart: row `n` begins at `n * stride`.
pub(crate) fn nibble_products_at(
    (bytes, stride): (&[u8], usize),
    rows: &[u32],
    query: &[Run<i8>],
    out: &mut Vec<i32>,
) {
    out.clear();
    out.resize(rows.len(), 0);
    // Where the next row would begin that is not whole.
    let beyond = (bytes.len() + stride).saturating_sub(query.len() * HALF) / stride.max(1);
    for at in rows {
        assert!((*at as usize) < beyond && query.len() * HALF <= stride);
    }
    let rows = Nibbles { bytes, stride, rows: Some(rows) };
    by_unit!(nibbles(rows, query, out))
}

/// Asks for bytes that will be wanted soon: the memory brings them while other work is done.
#[inline]
pub(crate) fn will_want<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let (from, bytes) = (values.as_ptr().cast::<i8>(), size_of_val(values));
        let mut at = 0;
        while at < bytes {
            // SAFETY: an address within the slice; asking for it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.add(at)) };
            at += 64;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// The sum of a query's codes.
pub(crate) fn total(query: &[Run<i8>]) -> i32 {
    let mut sum = 0;
    for run in query {
        for c in &run.0 {
            sum += i32::from(*c);
        }
    }
    sum
}

/// Appends codes from 0 to 15, a whole number of runs, in 4 bits each.
#[inline(always)]
pub(crate) fn pack(codes: &[[u8; RUN]], out: &mut Vec<u8>) {
    let (pairs, last) = codes.as_chunks::<2>();
    for [a, b] in pairs {
        out.extend_from_slice(&std::array::from_fn::<u8, RUN, _>(|i| a[i] | b[i] << 4));
    }
    for a in last {
        out.extend_from_slice(&std::array::from_fn::<u8, HALF, _>(|i| a[i] | a[HALF + i] << 4));
    }
}

/// Makes codes from -8 to 7 of such a row, which are as many runs as there are in `out`.
pub(crate) fn unpack(row: &[u8], out: &mut [Run<i8>]) {
    let (pairs, last) = out.as_chunks_mut::<2>();
    let (whole, rest) = row.split_at(pairs.len() * RUN);
    for (bytes, [a, b]) in whole.as_chunks::<RUN>().0.iter().zip(pairs) {
        for ((byte, a), b) in bytes.iter().zip(&mut a.0).zip(&mut b.0) {
            *a = (byte & 15) as i8 - 8;
            *b = (byte >> 4) as i8 - 8;
        }
    }
    for (bytes, a) in rest.as_chunks::<HALF>().0.iter().zip(last) {
        let (a, b) = a.0.split_at_mut(HALF);
        for ((byte, a), b) in bytes.iter().zip(a).zip(b) {
            *a = (byte & 15) as i8 - 8;
            *b = (byte >> 4) as i8 - 8;
        }
    }
}

/// Bytes that begin where a vector unit likes it best.
#[derive(Default)]
pub(crate) struct Packed {
    runs: Vec<Run<u8>>,
    len: usize,
}

impl Packed {
    /// Appends bytes, for which room was [reserved](Packed::reserve).
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = self.len % RUN;
            if at == 0 {
                self.runs.push(Run([0; RUN]));
            }
            let n = bytes.len().min(RUN - at);
            if let Some(last) = self.runs.last_mut() {
                last.0[at..at + n].copy_from_slice(&bytes[..n]);
            }
            self.len += n;
            bytes = &bytes[n..];
        }
    }

    /// Makes room for so many bytes.
    pub fn reserve(&mut self, bytes: usize) -> iolite_base::Result<()> {
        iolite_base::alloc::reserve(&mut self.runs, bytes.div_ceil(RUN) + 1)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: runs are nothing but bytes, one after another, and `len` of them were written.
        unsafe { std::slice::from_raw_parts(self.runs.as_ptr().cast(), self.len) }
    }
}

/// Work that is compiled once for each vector unit.
pub(crate) trait Work {
    type Out;
    /// Does it. To be `inline(always)`, with all that it calls in its loops: only what is put in its place is compiled for the unit.
    fn run(self) -> Self::Out;
}

/// Does work, compiled for the widest vector unit that the machine has.
#[inline]
pub(crate) fn widest<W: Work>(w: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn of_512<W: Work>(w: W) -> W::Out {
            w.run()
        }
        #[target_feature(enable = "avx2")]
        fn of_256<W: Work>(w: W) -> W::Out {
            w.run()
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the machine has what the function is compiled for.
            return unsafe { of_512(w) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { of_256(w) };
        }
    }
    w.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_gives_the_same() {
        for runs in 1..5usize {
            let run = |n: usize| std::array::from_fn(|i| n * RUN + i);
            let query: Vec<_> =
                (0..runs).map(|n| Run(run(n).map(|i: usize| (i * 73 % 255) as u8 as i8))).collect();
            let rows: Vec<_> =
                (0..runs * 7).map(|n| Run(run(n).map(|i: usize| (i * 131 % 256) as u8))).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            products(&rows, &query, &mut fast);
            plain.resize(7, 0);
            plain::products(&rows, &query, &mut plain);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), 7);
        }
        for runs in 1..5usize {
            let query: Vec<_> = (0..runs)
                .map(|n| Run(std::array::from_fn(|i| ((n * 64 + i) * 73 % 255) as u8 as i8)))
                .collect();
            let bytes: Vec<u8> = (0..runs * HALF * 7).map(|i| (i * 131 % 256) as u8).collect();
            let (mut fast, mut plain) = (Vec::new(), vec![0; 7]);
            nibble_products(&bytes, &query, &mut fast);
            plain::nibbles(Nibbles { bytes: &bytes, stride: runs * HALF, rows: None }, &query, &mut plain);
            assert_eq!(fast, plain);
            let order = [6, 0, 3, 3, 1, 5];
            nibble_products_at((&bytes, runs * HALF), &order, &query, &mut fast);
            assert_eq!(fast, order.map(|at| plain[at as usize]));
            nibble_products_at((&bytes, runs * HALF), &[], &query, &mut fast);
            assert!(fast.is_empty());
        }
        for runs in 1..5usize {
            let codes: Vec<[u8; RUN]> =
                (0..runs).map(|n| std::array::from_fn(|i| ((n * 64 + i) * 73 % 16) as u8)).collect();
            let (mut packed, mut out) = (Vec::new(), vec![Run([0; RUN]); runs]);
            pack(&codes, &mut packed);
            unpack(&packed, &mut out);
            for (run, codes) in out.iter().zip(&codes) {
                assert_eq!(run.0, codes.map(|c| c as i8 - 8));
            }
        }
        let mut most = Vec::new();
        products(&[Run([255; RUN]); 128], &[Run([-128; RUN]); 128], &mut most);
        assert_eq!(most, [-128 * 255 * 8192]);
        nibble_products(&[255; 128 * HALF], &[Run([-128; RUN]); 128], &mut most);
        assert_eq!(most, [-128 * 15 * 8192]);
    }

    /// The narrower unit of a machine that has the wider one, too.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn avx2_gives_the_same_as_plain_code() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        for (runs, rows) in [(1, 1), (2, 5), (3, 8), (6, 3)] {
            let query: Vec<_> = (0..runs).map(|n| Run([(100 - 31 * n as i32) as i8; RUN])).collect();
            let codes: Vec<_> =
                (0..runs * rows).map(|n| Run(std::array::from_fn(|i| (n * 37 + i * 5) as u8))).collect();
            let (mut fast, mut plain) = (vec![0; rows], vec![0; rows]);
            // SAFETY: the machine has the unit.
            unsafe { avx2::products(&codes, &query, &mut fast) };
            plain::products(&codes, &query, &mut plain);
            assert_eq!(fast, plain);
            let bytes: Vec<u8> = (0..runs * HALF * rows).map(|i| (i * 131 % 256) as u8).collect();
            let all = Nibbles { bytes: &bytes, stride: runs * HALF, rows: None };
            // SAFETY: the machine has the unit, and rows are whole.
            unsafe { avx2::nibbles(all, &query, &mut fast) };
            plain::nibbles(all, &query, &mut plain);
            assert_eq!(fast, plain);
        }
    }
}

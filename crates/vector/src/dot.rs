//! Scalar products of codes in 8 bits: one query with many rows, as fast as the machine's vector unit allows.
//!
//! Codes in 4 bits likewise, two in a byte: of two runs the first stands in the lower halves of 64 bytes, the second in the upper ones; of a
//! last run alone the first 32 codes in the lower halves of 32 bytes.
//!
//! What always holds: sums are integers, so every machine gives the same. A row is a whole number of runs of 64 codes.
#![allow(unsafe_code)]

/// Codes stand in runs of so many, each where a vector unit likes it best.
pub(crate) const RUN: usize = 64;

/// A run's bytes at 4 bits a code.
pub(crate) const HALF: usize = RUN / 2;

/// A run of codes.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Run<T>(pub [T; RUN]);

/// The scalar products of rows of `query.len()` runs with `query`.
pub(crate) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.clear();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the machine has what the function is compiled for.
            unsafe { with_vnni(rows, query, out) };
            return;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { with_avx2(rows, query, out) };
            return;
        }
    }
    all(rows, query, out);
}

/// Rows whose sums are taken together: each waits for its last addition less.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 4;

/// The sums of the numbers of each of four registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
fn four_sums(s: [std::arch::x86_64::__m512i; TOGETHER]) -> [i32; TOGETHER] {
    use std::arch::x86_64::*;
    let half = |x| _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
    let pairs = _mm256_hadd_epi32(half(s[0]), half(s[1]));
    let others = _mm256_hadd_epi32(half(s[2]), half(s[3]));
    let all = _mm256_hadd_epi32(pairs, others);
    let sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    let mut out = [0; TOGETHER];
    // SAFETY: 16 bytes of a value of its own.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn with_vnni(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    use std::arch::x86_64::*;
    let n = query.len();
    let many = rows.len() / n.max(1);
    let (mut row, from, q) = (0, rows.as_ptr(), query.as_ptr());
    out.resize(many, 0);
    while row + TOGETHER <= many {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query, and of rows below `many`, of which there are `n * many` runs; each at a multiple of 64.
            unsafe {
                let b = _mm512_load_si512(q.add(k).cast());
                let a = from.add(row * n + k);
                sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_load_si512(a.cast()), b);
                sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_load_si512(a.add(n).cast()), b);
                sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_load_si512(a.add(2 * n).cast()), b);
                sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_load_si512(a.add(3 * n).cast()), b);
            }
            k += 1;
        }
        let [a, b, c, d] = four_sums(sums);
        out[row] = a;
        out[row + 1] = b;
        out[row + 2] = c;
        out[row + 3] = d;
        row += TOGETHER;
    }
    while row < many {
        let mut sum = _mm512_setzero_si512();
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let a = _mm512_load_si512(from.add(row * n + k).cast());
                sum = _mm512_dpbusd_epi32(sum, a, _mm512_load_si512(q.add(k).cast()));
            }
            k += 1;
        }
        out[row] = _mm512_reduce_add_epi32(sum);
        row += 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    all(rows, query, out);
}

/// The scalar products of rows of codes from 0 to 15 in 4 bits, of `query.len()` runs each, with `query`.
pub(crate) fn nibble_products(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.clear();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the machine has what the function is compiled for.
            unsafe { nibbles_with_vnni(rows, query, out) };
            return;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { nibbles_with_avx2(rows, query, out) };
            return;
        }
    }
    all_nibbles(rows, query, out);
}

/// The products of two runs in 4 bits, or of one, added to a sum.
///
/// # Safety
/// 64 bytes can be read at `at`, or 32 where there is no second run.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn add_nibbles(
    sum: std::arch::x86_64::__m512i,
    at: *const u8,
    first: std::arch::x86_64::__m512i,
    second: Option<std::arch::x86_64::__m512i>,
) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    let low = _mm512_set1_epi8(15);
    match second {
        Some(second) => {
            // SAFETY: the caller's promise.
            let a = unsafe { _mm512_loadu_si512(at.cast()) };
            let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(a, low), first);
            _mm512_dpbusd_epi32(sum, _mm512_and_si512(_mm512_srli_epi16::<4>(a), low), second)
        }
        None => {
            // SAFETY: the caller's promise.
            let a = unsafe { _mm256_loadu_si256(at.cast()) };
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), _mm256_srli_epi16::<4>(a));
            _mm512_dpbusd_epi32(sum, _mm512_and_si512(both, low), first)
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn nibbles_with_vnni(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    use std::arch::x86_64::*;
    let n = query.len();
    let many = rows.len() / (n * HALF).max(1);
    let (mut row, from, q) = (0, rows.as_ptr(), query.as_ptr());
    out.resize(many, 0);
    while row + TOGETHER <= many {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query and, where there is one, the next, at multiples of 64; and the same of four rows below
            // `many`, of which there are `n * many` runs.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                let a = from.add((row * n + k) * HALF);
                sums[0] = add_nibbles(sums[0], a, first, second);
                sums[1] = add_nibbles(sums[1], a.add(n * HALF), first, second);
                sums[2] = add_nibbles(sums[2], a.add(2 * n * HALF), first, second);
                sums[3] = add_nibbles(sums[3], a.add(3 * n * HALF), first, second);
            }
            k += 2;
        }
        let [a, b, c, d] = four_sums(sums);
        out[row] = a;
        out[row + 1] = b;
        out[row + 2] = c;
        out[row + 3] = d;
        row += TOGETHER;
    }
    while row < many {
        let mut sum = _mm512_setzero_si512();
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                sum = add_nibbles(sum, from.add((row * n + k) * HALF), first, second);
            }
            k += 2;
        }
        out[row] = _mm512_reduce_add_epi32(sum);
        row += 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn nibbles_with_avx2(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    all_nibbles(rows, query, out);
}

/// The same of rows that lie apart: row `n` begins at `n * stride`.
pub(crate) fn nibble_products_at(
    (bytes, stride): (&[u8], usize),
    rows: &[u32],
    query: &[Run<i8>],
    out: &mut Vec<i32>,
) {
    out.clear();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the machine has what the function is compiled for.
            unsafe { nibbles_at_with_vnni((bytes, stride), rows, query, out) };
            return;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { nibbles_at_with_avx2((bytes, stride), rows, query, out) };
            return;
        }
    }
    all_nibbles_at((bytes, stride), rows, query, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn nibbles_at_with_vnni(
    (bytes, stride): (&[u8], usize),
    rows: &[u32],
    query: &[Run<i8>],
    out: &mut Vec<i32>,
) {
    use std::arch::x86_64::*;
    let (n, q) = (query.len(), query.as_ptr());
    out.resize(rows.len(), 0);
    // Where the next row would begin that is not whole.
    let beyond = (bytes.len() + stride).saturating_sub(n * HALF) / stride.max(1);
    for at in rows {
        assert!((*at as usize) < beyond && n * HALF <= stride);
    }
    let from = bytes.as_ptr();
    let mut i = 0;
    while i + TOGETHER <= rows.len() {
        let mut sums = [_mm512_setzero_si512(); TOGETHER];
        let mut k = 0;
        while k < n {
            // SAFETY: run `k` of `n` in the query and, where there is one, the next, at multiples of 64; and the same of four rows, which were
            // found to be within the bytes.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                let a = from.add(k * HALF);
                sums[0] = add_nibbles(sums[0], a.add(rows[i] as usize * stride), first, second);
                sums[1] = add_nibbles(sums[1], a.add(rows[i + 1] as usize * stride), first, second);
                sums[2] = add_nibbles(sums[2], a.add(rows[i + 2] as usize * stride), first, second);
                sums[3] = add_nibbles(sums[3], a.add(rows[i + 3] as usize * stride), first, second);
            }
            k += 2;
        }
        let [a, b, c, d] = four_sums(sums);
        out[i] = a;
        out[i + 1] = b;
        out[i + 2] = c;
        out[i + 3] = d;
        i += TOGETHER;
    }
    while i < rows.len() {
        let mut sum = _mm512_setzero_si512();
        let mut k = 0;
        while k < n {
            // SAFETY: as above.
            unsafe {
                let first = _mm512_load_si512(q.add(k).cast());
                let second = if k + 1 < n { Some(_mm512_load_si512(q.add(k + 1).cast())) } else { None };
                sum = add_nibbles(sum, from.add(rows[i] as usize * stride + k * HALF), first, second);
            }
            k += 2;
        }
        out[i] = _mm512_reduce_add_epi32(sum);
        i += 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn nibbles_at_with_avx2(data: (&[u8], usize), rows: &[u32], query: &[Run<i8>], out: &mut Vec<i32>) {
    all_nibbles_at(data, rows, query, out);
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

#[inline(always)]
fn all_nibbles(rows: &[u8], query: &[Run<i8>], out: &mut Vec<i32>) {
    out.extend(rows.chunks_exact(query.len() * HALF).map(|row| nibbles_of(row, query)));
}

#[inline(always)]
fn all_nibbles_at((bytes, stride): (&[u8], usize), rows: &[u32], query: &[Run<i8>], out: &mut Vec<i32>) {
    let row = |at: u32| &bytes[at as usize * stride..][..query.len() * HALF];
    out.extend(rows.iter().map(|at| nibbles_of(row(*at), query)));
}

/// The product of one row.
#[inline(always)]
fn nibbles_of(row: &[u8], query: &[Run<i8>]) -> i32 {
    let (pairs, last) = query.as_chunks::<2>();
    let mut sum = 0;
    let (whole, rest) = row.split_at(pairs.len() * RUN);
    for (bytes, [a, b]) in whole.as_chunks::<RUN>().0.iter().zip(pairs) {
        for (byte, (a, b)) in bytes.iter().zip(a.0.iter().zip(&b.0)) {
            sum += i32::from(byte & 15) * i32::from(*a) + i32::from(byte >> 4) * i32::from(*b);
        }
    }
    for (bytes, a) in rest.as_chunks::<HALF>().0.iter().zip(last) {
        let (a, b) = a.0.split_at(HALF);
        for (byte, (a, b)) in bytes.iter().zip(a.iter().zip(b)) {
            sum += i32::from(byte & 15) * i32::from(*a) + i32::from(byte >> 4) * i32::from(*b);
        }
    }
    sum
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

#[inline(always)]
fn all(rows: &[Run<u8>], query: &[Run<i8>], out: &mut Vec<i32>) {
    for row in rows.chunks_exact(query.len()) {
        let runs = row.iter().zip(query);
        let one = |(a, b): (&Run<u8>, &Run<i8>)| -> i32 {
            a.0.iter().zip(&b.0).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
        };
        out.push(runs.map(one).sum());
    }
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
            all(&rows, &query, &mut plain);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), 7);
        }
        for runs in 1..5usize {
            let query: Vec<_> = (0..runs)
                .map(|n| Run(std::array::from_fn(|i| ((n * 64 + i) * 73 % 255) as u8 as i8)))
                .collect();
            let rows: Vec<u8> = (0..runs * HALF * 7).map(|i| (i * 131 % 256) as u8).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            nibble_products(&rows, &query, &mut fast);
            all_nibbles(&rows, &query, &mut plain);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), 7);
            let order = [6, 0, 3, 3, 1, 5];
            nibble_products_at((&rows, runs * HALF), &order, &query, &mut fast);
            assert_eq!(fast, order.map(|at| plain[at as usize]));
            fast.clear();
            all_nibbles_at((&rows, runs * HALF), &order, &query, &mut fast);
            assert_eq!(fast, order.map(|at| plain[at as usize]));
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
    }
}

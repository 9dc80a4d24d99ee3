//! Products by plain code, for machines without a vector unit that has functions of its own here.

use super::{HALF, Nibbles, RUN, Run};

/// See `super::products`; `out` has a place for each row.
pub(super) fn products(rows: &[Run<u8>], query: &[Run<i8>], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let runs = row.iter().zip(query);
        let one = |(a, b): (&Run<u8>, &Run<i8>)| -> i32 {
            a.0.iter().zip(&b.0).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
        };
        *out = runs.map(one).sum();
    }
}

/// See `super::nibble_products`; `out` has a place for each row.
pub(super) fn nibbles(rows: Nibbles<'_>, query: &[Run<i8>], out: &mut [i32]) {
    for (n, out) in out.iter_mut().enumerate() {
        *out = nibbles_of(&rows.bytes[rows.at(n)..][..query.len() * HALF], query);
    }
}

/// The product of one row.
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

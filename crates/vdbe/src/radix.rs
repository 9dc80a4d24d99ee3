//! Sorting by 64-bit keys, digit by digit.
//!
//! Stable: equal keys keep their order. Only the bits in which keys differ are looked at, from the lowest on, in digits of up
//! to eleven bits: integers within a million take two or three passes, where comparing takes seventeen.

use iolite_base::{Result, alloc};

/// From so many on it pays.
pub(crate) const MANY: usize = 512;
/// Bits of a digit at most: the counters of one pass lie in the processor's first cache.
const DIGIT: u32 = 11;

/// Sorts by `key`.
pub(crate) fn sort<T: Copy>(items: &mut Vec<T>, key: impl Fn(&T) -> u64) -> Result<()> {
    let Some(first) = items.first().map(&key) else { return Ok(()) };
    let (mut differ, mut before, mut ordered) = (0, first, true);
    for item in items.iter() {
        let k = key(item);
        differ |= k ^ first;
        ordered &= before <= k;
        before = k;
    }
    if ordered {
        return Ok(());
    }
    let lowest = differ.trailing_zeros();
    let bits = 64 - differ.leading_zeros() - lowest;
    let passes = bits.div_ceil(DIGIT);
    let width = bits.div_ceil(passes);
    let mask = (1u64 << width) - 1;
    let mut other: Vec<T> = Vec::new();
    alloc::reserve(&mut other, items.len())?;
    // What lies there is written over before it is read.
    other.extend_from_slice(items);
    for pass in 0..passes {
        let shift = lowest + pass * width;
        let digit = |item: &T| (key(item) >> shift & mask) as usize;
        let mut places = [0usize; 1 << DIGIT];
        for item in items.iter() {
            places[digit(item)] += 1;
        }
        let mut next = 0;
        for p in &mut places[..1 << width] {
            next += std::mem::replace(p, next);
        }
        for item in items.iter() {
            let p = &mut places[digit(item)];
            other[*p] = *item;
            *p += 1;
        }
        std::mem::swap(items, &mut other);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::sort;

    #[test]
    fn sorts_stably_whatever_the_bits() {
        let mut x = 1u64;
        for shape in 0..64 {
            let mut items: Vec<(u64, usize)> = (0..1500)
                .map(|i| {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let k = (x >> shape) ^ (x >> 63).wrapping_neg() & u64::from(shape % 3 == 0);
                    (if shape % 2 == 0 { k & !0xff } else { k }, i)
                })
                .collect();
            let mut wanted = items.clone();
            wanted.sort_by_key(|i| i.0);
            sort(&mut items, |i| i.0).unwrap();
            assert_eq!(items, wanted);
        }
    }
}

//! Where the fields of a record begin, told from the first sixteen bytes of its header at once.
//!
//! Most records of a table begin unlike the one before (a number has a byte more, a text has another length), so the
//! lengths of the fields are added up anew for each; sixteen at once, without a jump that could be guessed wrong. What it
//! does not know: headers of more bytes, types of more than one byte, fields that begin behind byte 255. For these, and on
//! processors without this arithmetic, there is `None`, and the types are walked one by one.
#![allow(unsafe_code)]

/// How many bytes of a header are looked at: its length and 15 types.
pub(crate) const HEAD: usize = 16;

/// The bytes of a header up to the type of field `last`; `None`: these are too many.
pub(crate) fn mask(last: usize) -> Option<u128> {
    (last + 2 <= HEAD).then(|| u128::MAX >> (128 - 8 * (last + 2)))
}

/// Where the fields begin whose types are under the mask, and, behind the last of them, where that one ends.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn begins(head: u128, mask: u128) -> Option<[u8; HEAD]> {
    // SAFETY: SSE2 belongs to x86-64, whatever the processor.
    unsafe { with_vectors(head, mask) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn with_vectors(head: u128, mask: u128) -> Option<[u8; HEAD]> {
    use std::arch::x86_64::*;
    let head = head & mask;
    let t = _mm_set_epi64x((head >> 64) as i64, head as i64);
    if _mm_movemask_epi8(t) != 0 {
        return None;
    }
    // Types 0 to 7 have 0, 1, 2, 3, 4, 6, 8, 8 bytes; 8 to 11 none; the others half of what they are above 12.
    let small = _mm_sub_epi8(
        _mm_sub_epi8(t, _mm_cmpgt_epi8(t, _mm_set1_epi8(4))),
        _mm_cmpeq_epi8(t, _mm_set1_epi8(6)),
    );
    let small = _mm_andnot_si128(_mm_cmpgt_epi8(t, _mm_set1_epi8(7)), small);
    let long = _mm_subs_epu8(t, _mm_set1_epi8(12));
    let long = _mm_and_si128(_mm_srli_epi16(long, 1), _mm_set1_epi8(0x7f));
    // The header's own length stands for itself.
    let first = _mm_set_epi64x(0, 0xff);
    let lengths = _mm_andnot_si128(first, _mm_or_si128(small, long));
    let lengths = _mm_or_si128(lengths, _mm_and_si128(first, t));
    let all = _mm_sad_epu8(lengths, _mm_setzero_si128());
    if _mm_cvtsi128_si64(all) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(all, all)) > 255 {
        return None;
    }
    let sum = _mm_add_epi8(lengths, _mm_slli_si128(lengths, 1));
    let sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 2));
    let sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 4));
    let sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 8));
    let (low, high) = (_mm_cvtsi128_si64(sum), _mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
    Some((low as u64 as u128 | (high as u64 as u128) << 64).to_le_bytes())
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn begins(_head: u128, _mask: u128) -> Option<[u8; HEAD]> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use iolite_value::record;

    #[test]
    fn sixteen_at_once_are_what_one_by_one_are() {
        let mut x = 5u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let (mut found, mut other) = (0, 0);
        for round in 0..200_000 {
            let last = below(15) as usize;
            let most = [10, 14, 30, 128, 132][round % 5];
            let mut head = [0u8; HEAD];
            head[0] = last as u8 + 2 + below(9) as u8 * 12;
            head[1..].iter_mut().for_each(|t| *t = below(most) as u8);
            let got = begins(u128::from_le_bytes(head), mask(last).unwrap());
            let mut want = vec![head[0] as usize];
            for t in &head[1..last + 2] {
                want.push(want[want.len() - 1] + record::serial_len(*t as u64));
            }
            if head[..last + 2].iter().any(|b| *b > 127) || want[last + 1] > 255 {
                assert!(got.is_none());
                other += 1;
                continue;
            }
            let got = got.unwrap();
            assert!(want.iter().zip(&got).all(|(w, g)| *w == *g as usize), "{head:?} {last}");
            found += 1;
        }
        assert!(found > 100_000 && other > 1_000);
    }
}

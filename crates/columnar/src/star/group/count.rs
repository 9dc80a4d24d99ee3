//! Counting the rows of groups.
//!
//! A counter that was just written is read again only some cycles later; where there are few groups, neighbours often
//! meet in one, and every row would wait for the row before. So rows take turns among several sets of counters, which
//! are added up at the end of the block. Codes of half a byte are counted two at a time, by the byte that they share.
//! Where there are many groups, four neighbours that are equal are counted as one.

use super::{Groups, Source, State};
use crate::expr::batch::Batch;
use crate::expr::filter::codes_of;
use crate::kernel::Slice;
use crate::kernel::of_three;
use crate::star::aggregate::Acc;
use crate::star::scope::JoinScope;
use crate::store::chunk::Data;
use iolite_base::{Code, Result};

/// Sets of counters.
const SETS: usize = 4;
/// Counters of a set.
const FEW: usize = 256;

type Sets = [[u32; FEW]; SETS];

/// Codes whose counting is all there is to do with a batch, and what they are counted as.
pub(super) struct Shift {
    /// Added to a code it is its group.
    add: usize,
    /// Code 0 is NULL, whose group is the first.
    nulls: bool,
}

impl Groups<'_> {
    /// The codes to be counted, if a batch takes no more: all rows of a run, one key, nothing but counts.
    pub(super) fn counted_codes<'b>(
        &self,
        b: &'b Batch<'_>,
        s: &JoinScope<'_>,
    ) -> Option<(Slice<'b>, Shift)> {
        let [source] = &self.sources[..] else { return None };
        let simple = b.whole && self.dense && self.picks.is_empty();
        if !simple || !self.st.accs.iter().all(|a| matches!(a, Acc::Rows)) {
            return None;
        }
        let first = *b.outer.first()? as usize;
        let span = first..first + b.outer.len();
        let (Source::Int { table, col, .. } | Source::Dict { table, col, .. }) = source else { return None };
        // Two codes of half a byte share a byte.
        if *table != s.places.outer || !first.is_multiple_of(2) {
            return None;
        }
        let chunk = &b.cols[*table].loaded.parts[b.part].cols[*col];
        let shift = match (source, &chunk.data) {
            (Source::Int { min, nullable, .. }, Data::Int { base, nulls, .. }) => {
                Shift { add: usize::try_from(base + *nullable as i64 - min).ok()?, nulls: *nulls }
            }
            (Source::Dict { .. }, Data::Dict { .. }) => Shift { add: 0, nulls: false },
            _ => return None,
        };
        Some((codes_of(chunk, &span)?, shift))
    }
}

impl State {
    /// Counts rows by their codes.
    pub(super) fn count_codes(&mut self, codes: Slice<'_>, shift: Shift) -> Result<()> {
        let rows = self.rows.get_mut(shift.add..).ok_or(Code::Internal)?;
        let before = rows.first().copied().unwrap_or(0);
        by_code(codes, rows);
        if shift.nulls {
            let nulls = std::mem::replace(&mut self.rows[shift.add], before) - before;
            self.rows[0] += nulls;
        }
        Ok(())
    }
}

/// Counts the rows of each group.
pub(super) fn groups(at: &[u32], rows: &mut [i64]) {
    if rows.len() <= FEW && at.len() >= FEW {
        let mut sets: Sets = [[0; FEW]; SETS];
        in_turn(at, &mut sets, |g| *g as u8);
        add_up(&sets, rows);
    } else {
        many(at, rows, |g| *g);
    }
}

/// Counts the rows of each code.
fn by_code(codes: Slice<'_>, rows: &mut [i64]) {
    let mut sets: Sets = [[0; FEW]; SETS];
    match codes {
        Slice::U4(c, n) => {
            // A last byte may be half used.
            if n % 2 != 0 {
                rows[(c[n / 2] & 15) as usize] += 1;
            }
            in_turn(&c[..n / 2], &mut sets, |b| *b);
            let mut halves: Sets = [[0; FEW]; SETS];
            for set in &sets {
                for (high, line) in set.chunks_exact(16).enumerate() {
                    halves[0][..16].iter_mut().zip(line).for_each(|(own, n)| *own += n);
                    halves[1][high] += line.iter().sum::<u32>();
                }
            }
            add_up(&halves, rows);
        }
        Slice::U8(c) if c.len() >= FEW => {
            in_turn(c, &mut sets, |b| *b);
            add_up(&sets, rows);
        }
        Slice::U8(c) => many(c, rows, |c| *c as u32),
        Slice::U16(c) => many(c, rows, |c| *c as u32),
        Slice::U24(c) => many(c, rows, |c| of_three(*c)),
        Slice::U32(c) => many(c, rows, |c| *c),
    }
}

/// Counts small numbers, one set of counters after the other.
fn in_turn<T>(list: &[T], sets: &mut Sets, value: impl Fn(&T) -> u8) {
    let (fours, rest) = list.as_chunks::<SETS>();
    let [a, b, c, d] = sets;
    for four in fours {
        a[value(&four[0]) as usize] += 1;
        b[value(&four[1]) as usize] += 1;
        c[value(&four[2]) as usize] += 1;
        d[value(&four[3]) as usize] += 1;
    }
    rest.iter().for_each(|v| a[value(v) as usize] += 1);
}

/// Adds what all sets have counted.
fn add_up(sets: &Sets, rows: &mut [i64]) {
    let [a, b, c, d] = sets;
    let mut sums = [0u32; FEW];
    for (i, s) in sums.iter_mut().enumerate() {
        *s = a[i] + b[i] + c[i] + d[i];
    }
    let n = rows.len().min(FEW);
    rows[..n].iter_mut().zip(&sums).for_each(|(own, n)| *own += *n as i64);
    assert!(sums[n..].iter().all(|n| *n == 0), "a code beyond the last group");
}

/// Counts numbers of any size.
#[inline(always)]
fn many<T: Copy + PartialEq>(list: &[T], rows: &mut [i64], value: impl Fn(&T) -> u32) {
    let (fours, rest) = list.as_chunks::<4>();
    for four in fours {
        let [a, b, c, d] = *four;
        if a == d && a == b && a == c {
            rows[value(&a) as usize] += 4;
        } else {
            four.iter().for_each(|v| rows[value(v) as usize] += 1);
        }
    }
    rest.iter().for_each(|v| rows[value(v) as usize] += 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::three;

    #[test]
    fn counts_are_those_of_one_counter() {
        let mut x = 7u64;
        for n in [0usize, 1, 2, 3, 5, 255, 256, 257, 1000, 4095, 4096] {
            for most in [1u32, 10, 16, 200, 256, 1000, 70_000] {
                for repeat in [1u64, 3, 100] {
                    let mut turn = 0;
                    let list: Vec<u32> = (0..n)
                        .map(|_| {
                            turn += 1;
                            if turn % repeat == 0 {
                                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                            }
                            (x >> 33) as u32 % most
                        })
                        .collect();
                    let mut want = vec![3i64; most as usize];
                    list.iter().for_each(|v| want[*v as usize] += 1);
                    let check = |f: &dyn Fn(&mut [i64])| {
                        let mut rows = vec![3i64; most as usize];
                        f(&mut rows);
                        assert_eq!(rows, want, "{n} of {most}");
                    };
                    check(&|rows| groups(&list, rows));
                    check(&|rows| by_code(Slice::U32(&list), rows));
                    let threes: Vec<[u8; 3]> = list.iter().map(|v| three(*v)).collect();
                    check(&|rows| by_code(Slice::U24(&threes), rows));
                    if most <= 1 << 16 {
                        let words: Vec<u16> = list.iter().map(|v| *v as u16).collect();
                        check(&|rows| by_code(Slice::U16(&words), rows));
                    }
                    if most <= 256 {
                        let bytes: Vec<u8> = list.iter().map(|v| *v as u8).collect();
                        check(&|rows| by_code(Slice::U8(&bytes), rows));
                    }
                    if most <= 16 {
                        let pair = |p: &[u32]| p[0] as u8 | (p.get(1).copied().unwrap_or(15) as u8) << 4;
                        let halves: Vec<u8> = list.chunks(2).map(pair).collect();
                        check(&|rows| by_code(Slice::U4(&halves, n), rows));
                    }
                }
            }
        }
    }
}

//! Key sets of inner tables, all asked about a row of an outer table at its loop's head.
//!
//! A set of rowids that lie close together is a bitmap, and exact; one that would become too wide turns into a Bloom
//! filter. Either says yes too often at most, never no too often. The sets are asked in the order of what they were seen to
//! let through, the strictest first, which is looked at again every so many rows (lookahead information passing: Zhu et al.,
//! VLDB 2017; "SQLite: Past, Present, and Future", VLDB 2022, section 4.2).
//!
//! What always holds: all keys are added before the first row is asked about.

use crate::bloom::Bloom;
use iolite_base::Result;
use std::hash::Hasher;

/// A bitmap may have this many words whatever it holds: 128 KB, a part of the second cache.
const ALWAYS: usize = 1 << 14;

/// Rows between two looks at the order.
const PERIOD: u32 = 1 << 10;

/// What a row says of a key.
pub(crate) enum Key {
    Is(i64),
    /// NULL, or a value that no rowid equals.
    None,
    /// It cannot be told here.
    Unknown,
}

/// The filters of one loop.
pub(crate) struct Lookahead {
    sets: Vec<Set>,
    rows: u32,
}

struct Set {
    /// As the program counts them.
    number: usize,
    keys: Keys,
    added: usize,
    asked: u32,
    passed: u32,
}

enum Keys {
    /// From `base` on, a bit for each number.
    Bits {
        base: i64,
        words: Vec<u64>,
    },
    Bloom(Bloom),
}

impl Lookahead {
    /// That many empty sets.
    pub fn new(sets: usize) -> Lookahead {
        let set = |number| {
            let keys = Keys::Bits { base: 0, words: Vec::new() };
            Set { number, keys, added: 0, asked: 0, passed: 0 }
        };
        Lookahead { sets: (0..sets).map(set).collect(), rows: 0 }
    }

    /// Adds a key to set `number`, which has `most` of them as far as is known.
    pub fn add(&mut self, number: usize, key: i64, most: usize) -> Result<()> {
        match self.sets.iter_mut().find(|s| s.number == number) {
            Some(s) => s.add(key, most),
            None => Ok(()),
        }
    }

    /// Whether a row may have a partner everywhere; `key` tells what it has for a set.
    #[inline(always)]
    pub fn may_match(&mut self, mut key: impl FnMut(usize) -> Result<Key>) -> Result<bool> {
        self.rows += 1;
        if self.rows == PERIOD {
            self.reorder();
        }
        for s in &mut self.sets {
            s.asked += 1;
            match key(s.number)? {
                Key::Is(k) if s.keys.may_have(k) => {}
                Key::Unknown => {}
                _ => return Ok(false),
            }
            s.passed += 1;
        }
        Ok(true)
    }

    /// Puts the sets that let least through first. Earlier rows count half from now on.
    #[cold]
    fn reorder(&mut self) {
        self.rows = 0;
        let share = |s: &Set| f64::from(s.passed + 1) / f64::from(s.asked + 1);
        self.sets.sort_by(|a, b| share(a).total_cmp(&share(b)));
        for s in &mut self.sets {
            (s.asked, s.passed) = (s.asked / 2, s.passed / 2);
        }
    }
}

impl Set {
    fn add(&mut self, key: i64, most: usize) -> Result<()> {
        self.added += 1;
        if let Keys::Bits { base, words } = &mut self.keys {
            if words.is_empty() {
                *base = key & !63;
            }
            let (word, bit) = place(*base, key);
            if word < words.len() {
                words[word] |= bit;
                return Ok(());
            }
            // A word for each key, or as many as are kept in any case.
            if word < ALWAYS.max(self.added) {
                iolite_base::alloc::reserve(words, word + 1 - words.len())?;
                words.resize(word + 1, 0);
                words[word] |= bit;
                return Ok(());
            }
            let mut bloom = Bloom::new(most.max(self.added * 2).max(1024))?;
            for (w, word) in words.iter().enumerate() {
                let mut left = *word;
                while left != 0 {
                    bloom.add(hash(*base + (w * 64) as i64 + i64::from(left.trailing_zeros())));
                    left &= left - 1;
                }
            }
            self.keys = Keys::Bloom(bloom);
        }
        if let Keys::Bloom(b) = &mut self.keys {
            b.add(hash(key));
        }
        Ok(())
    }
}

impl Keys {
    #[inline(always)]
    fn may_have(&self, key: i64) -> bool {
        match self {
            Keys::Bits { base, words } => {
                let (word, bit) = place(*base, key);
                words.get(word).is_some_and(|w| w & bit != 0)
            }
            Keys::Bloom(b) => b.may_have(hash(key)),
        }
    }
}

/// Word and bit of a key; keys before the base have a word beyond all that there are.
#[inline(always)]
fn place(base: i64, key: i64) -> (usize, u64) {
    let off = key.wrapping_sub(base) as u64;
    ((off >> 6) as usize, 1 << (off & 63))
}

fn hash(key: i64) -> u64 {
    let mut h = iolite_base::hash::FastHasher::default();
    h.write_i64(key);
    h.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &[i64]) -> Lookahead {
        let mut f = Lookahead::new(1);
        for k in keys {
            f.add(0, *k, keys.len()).unwrap();
        }
        f
    }

    fn has(f: &mut Lookahead, k: i64) -> bool {
        f.may_match(|_| Ok(Key::Is(k))).unwrap()
    }

    #[test]
    fn keys_that_lie_close_together_are_told_exactly() {
        for first in [1, -70, i64::MIN, i64::MAX - 300] {
            let keys: Vec<i64> = (0..100).map(|k| first + k * 3).collect();
            let mut f = of(&keys);
            for k in 0..300 {
                assert_eq!(has(&mut f, first + k), k % 3 == 0, "{}", first + k);
            }
            assert!(!has(&mut f, first.wrapping_sub(1)));
            assert!(!has(&mut f, first.wrapping_add(1_000_000)));
        }
    }

    #[test]
    fn keys_far_apart_are_all_found_and_few_others() {
        let keys: Vec<i64> = (0..5000).map(|k| i64::MIN + k * 1_000_000_007_000).collect();
        let mut f = of(&keys);
        assert!(matches!(f.sets[0].keys, Keys::Bloom(_)));
        assert!(keys.iter().all(|k| has(&mut f, *k)));
        let others = keys.iter().filter(|k| has(&mut f, **k + 1)).count();
        assert!(others < 500, "{others} of 5000 others");
    }

    #[test]
    fn the_strictest_set_comes_to_be_asked_first() {
        let mut f = Lookahead::new(2);
        (0..100).for_each(|k| f.add(0, k, 100).unwrap());
        f.add(1, 7, 1).unwrap();
        let mut asked = [0, 0];
        for row in 0..4 * PERIOD {
            f.may_match(|set| {
                asked[set] += 1;
                Ok(Key::Is(i64::from(row % 100)))
            })
            .unwrap();
        }
        // All rows of the first period pass set 0, a hundredth of the others are asked of it.
        assert_eq!(asked[1], 4 * PERIOD);
        assert!(asked[0] < 2 * PERIOD, "{asked:?}");
    }

    #[test]
    fn an_empty_set_and_no_key_match_nothing_and_an_unknown_one_does() {
        let mut f = Lookahead::new(1);
        assert!(!has(&mut f, 0));
        let mut f = of(&[0]);
        assert!(!f.may_match(|_| Ok(Key::None)).unwrap());
        assert!(f.may_match(|_| Ok(Key::Unknown)).unwrap());
    }
}

//! The values that the groups of an aggregate with DISTINCT have seen: pairs of a group and a number.
//!
//! What always holds: of rows with the same pair the first one is told of, and no other.

use super::keys::{KeyTable, Wide};
use super::number::Numbers;
use crate::decline::because;
use crate::expr::Ex;
use crate::expr::batch::Batch;
use crate::expr::scope::Scope;
use crate::kernel::Bits;
use crate::memory::within;
use iolite_base::Result;

/// A global set of at most so many bits stands for values of DISTINCT.
const MOST_BITS: u32 = 27;

/// Which pairs of a group and a value there have been.
enum Pairs {
    /// Without groups: the numbers' own count says it.
    Ids,
    Bits(Bits),
    Narrow(KeyTable<u64>, u32),
    Wide(KeyTable<Wide>),
}

pub(crate) struct Distinct {
    /// NULL does not count.
    counts: bool,
    numbers: Numbers,
    pairs: Pairs,
    pub n: Vec<i64>,
    found: Vec<u64>,
    keys: Vec<u64>,
    wide: Vec<Wide>,
    ids: Vec<u32>,
}

impl Distinct {
    pub fn new(
        ex: &Ex,
        coll: &iolite_value::Collation,
        one: bool,
        counts: bool,
        s: &Scope<'_>,
    ) -> Result<Distinct> {
        let numbers = Numbers::new(std::slice::from_ref(ex), std::slice::from_ref(coll), s)?;
        let bits = numbers.bits();
        if bits == 0 {
            // Nothing tells NULL from another constant.
            return Err(because("DISTINCT over a constant"));
        }
        if bits > 64 {
            return Err(because("an aggregate that depends on the order of an index"));
        }
        let pairs = match one {
            true if numbers.are_ids() && counts => Pairs::Ids,
            true if bits <= MOST_BITS && !numbers.are_ids() && within(1 << bits >> 3) => {
                Pairs::Bits(Bits::new(1 << bits)?)
            }
            true => Pairs::Narrow(KeyTable::new(), 64),
            false if bits <= 32 => Pairs::Narrow(KeyTable::new(), bits),
            false => Pairs::Wide(KeyTable::new()),
        };
        let (found, keys, wide) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Distinct { counts, numbers, pairs, n: Vec::new(), found, keys, wide, ids: Vec::new() })
    }

    pub fn bytes(&self) -> usize {
        let pairs = match &self.pairs {
            Pairs::Ids => 0,
            Pairs::Bits(b) => b.len() / 8,
            Pairs::Narrow(t, _) => t.bytes(),
            Pairs::Wide(t) => t.bytes(),
        };
        self.numbers.bytes() + pairs + self.n.len() * 8
    }

    /// Takes in rows; `new` is told of each row whose group has its value for the first time.
    pub fn push(
        &mut self,
        b: &Batch<'_>,
        at: &[u32],
        s: &Scope<'_>,
        new: &mut dyn FnMut(usize, u32) -> Result<()>,
    ) -> Result<()> {
        self.numbers.narrow(b, s, &mut self.found)?;
        let null = self.numbers.null(s);
        let group = |i: usize| at.get(i).copied().unwrap_or(0);
        let mut known = match &mut self.pairs {
            Pairs::Ids => return Ok(()),
            Pairs::Bits(bits) => {
                for (i, v) in self.found.iter().enumerate() {
                    if !bits.set(*v as usize) && (Some(*v) != null || !self.counts) {
                        self.n[0] += 1;
                        new(i, 0)?;
                    }
                }
                return Ok(());
            }
            Pairs::Narrow(t, bits) => {
                self.keys.clear();
                let shift = *bits;
                let pair =
                    |(i, v): (usize, &u64)| if shift == 64 { *v } else { (group(i) as u64) << shift | v };
                self.keys.extend(self.found.iter().enumerate().map(pair));
                let before = t.len();
                t.find_all(&self.keys, &mut self.ids)?;
                before
            }
            Pairs::Wide(t) => {
                self.wide.clear();
                let pair = |(i, v): (usize, &u64)| Wide(*v, group(i) as u64);
                self.wide.extend(self.found.iter().enumerate().map(pair));
                let before = t.len();
                t.find_all(&self.wide, &mut self.ids)?;
                before
            }
        };
        for (i, id) in self.ids.iter().enumerate() {
            if *id as usize == known {
                known += 1;
                if Some(self.found[i]) != null || !self.counts {
                    self.n[group(i) as usize] += 1;
                    new(i, group(i))?;
                }
            }
        }
        Ok(())
    }

    pub fn count(&self, g: usize, one: bool, s: &Scope<'_>) -> i64 {
        match self.pairs {
            Pairs::Ids if one => self.numbers.count() as i64 - self.numbers.null(s).is_some() as i64,
            _ => self.n[g],
        }
    }
}

//! A hash table from packed keys to numbers that are given one after the other.
//!
//! What always holds: the numbers are 0, 1, 2, ... in the order in which keys were first met. Keys are looked up in
//! batches: the places of the keys some steps ahead are asked for while one is compared.

use crate::kernel::fetch_at;
use crate::memory::room;
use iolite_base::Result;

/// How far ahead places are asked for.
const AHEAD: usize = 12;

/// Tables of so many places grow faster.
const GROWN: usize = 1 << 15;

/// A packed key.
pub(crate) trait Packed: Copy + Eq + Default {
    /// A number that equal keys share.
    fn hash(self) -> usize;
}

const K: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

impl Packed for u64 {
    #[inline(always)]
    fn hash(self) -> usize {
        let m = (self ^ K[1]) as u128 * K[0] as u128;
        ((m as u64) ^ (m >> 64) as u64) as usize
    }
}

/// A key of two words: the lower one, the upper one.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wide(pub u64, pub u64);

impl From<u128> for Wide {
    #[inline(always)]
    fn from(n: u128) -> Wide {
        Wide(n as u64, (n >> 64) as u64)
    }
}

impl Packed for Wide {
    #[inline(always)]
    fn hash(self) -> usize {
        let m = (self.0 ^ K[1]) as u128 * K[0] as u128;
        let low = (m as u64) ^ (m >> 64) as u64;
        let m = (low ^ self.1) as u128 * K[1] as u128;
        ((m as u64) ^ (m >> 64) as u64) as usize
    }
}

#[derive(Clone, Copy, Default)]
struct Slot<K> {
    key: K,
    /// Number and one; 0: empty.
    number: u32,
}

/// The table. See the module's head.
pub(crate) struct KeyTable<K> {
    slots: Vec<Slot<K>>,
    len: u32,
}

impl<K: Packed> KeyTable<K> {
    /// An empty one.
    pub fn new() -> KeyTable<K> {
        KeyTable { slots: Vec::new(), len: 0 }
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<K>>()
    }

    /// Room for so many more.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let least = ((self.len as usize + more) * 2).next_power_of_two().max(1024);
        if least <= self.slots.len() {
            return Ok(());
        }
        // What has grown to this size goes on growing.
        let wanted = if (GROWN..GROWN << 6).contains(&least) { least * 4 } else { least };
        let mut slots: Vec<Slot<K>> = room(wanted)?;
        slots.resize(wanted, Slot::default());
        let mask = wanted - 1;
        for (i, s) in self.slots.iter().enumerate() {
            if let Some(next) = self.slots.get(i + 2 * AHEAD).filter(|s| s.number != 0) {
                fetch_at(&slots, next.key.hash() & mask);
            }
            if s.number == 0 {
                continue;
            }
            let mut at = s.key.hash() & mask;
            while slots[at].number != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = *s;
        }
        self.slots = slots;
        Ok(())
    }

    /// The numbers of some keys; new ones are added.
    pub fn find_all(&mut self, keys: &[K], out: &mut Vec<u32>) -> Result<()> {
        self.reserve(keys.len())?;
        out.clear();
        let mask = self.slots.len() - 1;
        for (i, key) in keys.iter().enumerate() {
            if let Some(next) = keys.get(i + AHEAD) {
                fetch_at(&self.slots, next.hash() & mask);
            }
            let mut at = key.hash() & mask;
            let number = loop {
                let s = &mut self.slots[at];
                if s.number == 0 {
                    self.len += 1;
                    *s = Slot { key: *key, number: self.len };
                    break self.len;
                }
                if s.key == *key {
                    break s.number;
                }
                at = (at + 1) & mask;
            };
            out.push(number - 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_the_order_in_which_keys_are_met() {
        let mut narrow = KeyTable::<u64>::new();
        let mut wide = KeyTable::<Wide>::new();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut seen: Vec<u64> = Vec::new();
        for round in 0..20u64 {
            let keys: Vec<u64> =
                (0..1000).map(|i| (i * 7919 + round * 13) % 5003 * (u64::MAX / 5003)).collect();
            let doubled: Vec<Wide> = keys.iter().map(|k| Wide(5, *k)).collect();
            narrow.find_all(&keys, &mut a).unwrap();
            wide.find_all(&doubled, &mut b).unwrap();
            assert_eq!(a, b);
            for (k, n) in keys.iter().zip(&a) {
                let want = seen.iter().position(|s| s == k).unwrap_or_else(|| {
                    seen.push(*k);
                    seen.len() - 1
                });
                assert_eq!(*n as usize, want);
            }
        }
        assert_eq!((narrow.len(), wide.len()), (seen.len(), seen.len()));
    }
}

//! Numbers for values of any kind: 0, 1, 2, ... in the order in which they are first met.
//!
//! What always holds: two values share a number exactly if they are the same value, and SQL takes no two values with
//! different numbers for equal. Where it would (1 beside 1.0, zeros of two signs), the interner declines.

use crate::decline::because;
use crate::kernel::fetch_at;
use crate::memory::room;
use crate::store::chunk::{Field, Plain};
use iolite_base::Result;

/// How far ahead places are asked for.
const AHEAD: usize = 12;

/// Tables of so many places grow faster.
const GROWN: usize = 1 << 15;

/// See the module's head.
#[derive(Default)]
pub(crate) struct Interner {
    /// A hash in the upper half; below it a number and one, 0: empty.
    slots: Vec<u64>,
    values: Plain,
    len: u32,
    ints: bool,
    reals: bool,
    /// The number of NULL.
    null: Option<u32>,
    hashes: Vec<u32>,
}

impl Interner {
    /// How many values.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The value that has a number.
    pub fn value(&self, number: u32) -> Field<'_> {
        self.values.get(number as usize)
    }

    /// The number of NULL, if that was met.
    pub fn null(&self) -> Option<u32> {
        self.null
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        self.slots.len() * 8 + self.values.held()
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let least = ((self.len as usize + more) * 2).next_power_of_two().max(1024);
        if least <= self.slots.len() {
            return Ok(());
        }
        // What has grown to this size goes on growing.
        let wanted = if (GROWN..GROWN << 6).contains(&least) { least * 4 } else { least };
        let mut slots: Vec<u64> = room(wanted)?;
        slots.resize(wanted, 0);
        let mask = wanted - 1;
        for (i, s) in self.slots.iter().enumerate() {
            if let Some(next) = self.slots.get(i + 2 * AHEAD).filter(|s| **s != 0) {
                fetch_at(&slots, (next >> 32) as usize & mask);
            }
            if *s == 0 {
                continue;
            }
            let mut at = (s >> 32) as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = *s;
        }
        self.slots = slots;
        Ok(())
    }

    /// The numbers of some values.
    pub fn all(&mut self, list: &[Field<'_>], out: &mut Vec<u32>) -> Result<()> {
        self.reserve(list.len())?;
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.extend(list.iter().map(|f| f.quick_hash()));
        let mask = self.slots.len() - 1;
        out.clear();
        for (i, f) in list.iter().enumerate() {
            if let Some(h) = hashes.get(i + AHEAD) {
                fetch_at(&self.slots, *h as usize & mask);
            }
            out.push(self.look(*f, hashes[i])?);
        }
        self.hashes = hashes;
        Ok(())
    }

    /// The number of one value.
    #[inline]
    pub fn number(&mut self, f: Field<'_>) -> Result<u32> {
        self.reserve(1)?;
        self.look(f, f.quick_hash())
    }

    /// The number of a value, if it was met.
    #[inline]
    pub fn find(&self, f: Field<'_>) -> Option<u32> {
        if self.slots.is_empty() { None } else { self.place(f, f.quick_hash()).ok() }
    }

    #[inline]
    fn look(&mut self, f: Field<'_>, hash: u32) -> Result<u32> {
        match self.place(f, hash) {
            Ok(number) => Ok(number),
            Err(at) => self.add(f, hash, at),
        }
    }

    /// The number of a value, or the empty place where it would be. There are places.
    #[inline(always)]
    fn place(&self, f: Field<'_>, hash: u32) -> std::result::Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let s = self.slots[at];
            if s == 0 {
                return Err(at);
            }
            let number = s as u32 - 1;
            if (s >> 32) as u32 == hash && self.values.get(number as usize).is_same(f) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    fn add(&mut self, f: Field<'_>, hash: u32, at: usize) -> Result<u32> {
        match f {
            Field::Null => self.null = Some(self.len),
            Field::Int(_) => self.ints = true,
            Field::Real(r) if r == 0.0 && r.is_sign_negative() => {
                return Err(because("zeros of two signs among keys"));
            }
            Field::Real(_) => self.reals = true,
            _ => {}
        }
        if self.ints && self.reals || self.len == u32::MAX - 1 {
            return Err(because("integers and reals among one key"));
        }
        self.values.push(f)?;
        self.len += 1;
        self.slots[at] = (hash as u64) << 32 | self.len as u64;
        Ok(self.len - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_the_same_number_and_equal_ones_decline() {
        let mut i = Interner::default();
        let texts: Vec<String> = (0..3000).map(|n| format!("text {}", n % 1000)).collect();
        let list: Vec<Field<'_>> = texts.iter().map(|t| Field::Text(t.as_bytes())).collect();
        let mut out = Vec::new();
        i.all(&list, &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(n, o)| *o as usize == n % 1000));
        let number = |i: &mut Interner, f| {
            let mut out = Vec::new();
            i.all(&[f], &mut out).map(|_| out[0])
        };
        assert_eq!(number(&mut i, Field::Null).unwrap(), 1000);
        assert_eq!(number(&mut i, Field::Blob(b"text 1")).unwrap(), 1001);
        assert_eq!(number(&mut i, Field::Int(1)).unwrap(), 1002);
        assert_eq!((number(&mut i, Field::Null).unwrap(), i.null()), (1000, Some(1000)));
        assert!(number(&mut i, Field::Real(1.0)).is_err());
        assert!(number(&mut Interner::default(), Field::Real(-0.0)).is_err());
    }
}

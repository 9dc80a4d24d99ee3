//! The private page table of a session: page number to page, with the bookkeeping of writing and eviction.
//!
//! What always holds: a page number has at most one slot; the index finds it by linear probing from a
//! multiplicative hash, at most half full; slots on the free list hold no page.
//!
//! A hit costs a multiplication, a probe and a plain increment: no atomic operation, no lock. Eviction sweeps
//! like a clock; a page enters unreferenced and is marked when hit again, so one long scan pushes out its own
//! pages first. The table does not know what may be evicted when: its caller asks for candidates.

use iolite_base::{Buf, Pgno, Result, alloc};

/// The page differs from what the file or log holds.
pub const DIRTY: u8 = 1;
/// The page was hit since the hand last came by.
pub const RECENT: u8 = 2;
/// The page need not be written: it became a free page whose content nobody reads.
pub const DONT_WRITE: u8 = 4;

/// One page in the table.
pub struct Slot {
    /// Its number; 0 for a free slot.
    pub pgno: Pgno,
    /// `DIRTY`, `RECENT`, `DONT_WRITE`.
    pub flags: u8,
    /// The serial of the newest undo level for which the page's image was saved.
    pub saved: u64,
    /// The page.
    pub buf: Option<Buf>,
}

/// See the module's head.
pub struct PageTable {
    index: Vec<(Pgno, u32)>,
    shift: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    used: usize,
    hand: usize,
}

const EMPTY: (Pgno, u32) = (0, 0);

impl PageTable {
    /// An empty table.
    pub fn new() -> PageTable {
        PageTable { index: Vec::new(), shift: 32, slots: Vec::new(), free: Vec::new(), used: 0, hand: 0 }
    }

    #[inline(always)]
    fn home(&self, pgno: Pgno) -> usize {
        (pgno.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// The slot of a page.
    #[inline(always)]
    pub fn find(&self, pgno: Pgno) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mask = self.index.len() - 1;
        let mut i = self.home(pgno);
        loop {
            let (key, slot) = self.index[i & mask];
            // First, since page number 0 is asked for by damaged files.
            if key == 0 {
                return None;
            }
            if key == pgno {
                return Some(slot as usize);
            }
            i += 1;
        }
    }

    /// The slot behind a number from [`PageTable::find`].
    #[inline(always)]
    pub fn slot(&self, i: usize) -> &Slot {
        &self.slots[i]
    }

    /// The same, to change.
    #[inline(always)]
    pub fn slot_mut(&mut self, i: usize) -> &mut Slot {
        &mut self.slots[i]
    }

    /// A page that was not changed since it was read or committed.
    pub fn clean(&self, pgno: Pgno) -> Option<Buf> {
        let slot = &self.slots[self.find(pgno)?];
        slot.buf.clone().filter(|_| slot.flags & (DIRTY | DONT_WRITE) == 0)
    }

    /// Pages held.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Puts a page in that is not there yet; returns its slot.
    pub fn insert(&mut self, pgno: Pgno, buf: Buf) -> Result<usize> {
        debug_assert!(pgno != 0 && self.find(pgno).is_none());
        if (self.used + 1) * 2 > self.index.len() {
            self.grow()?;
        }
        let new = Slot { pgno, flags: 0, saved: 0, buf: Some(buf) };
        let slot = match self.free.pop() {
            Some(s) => {
                self.slots[s as usize] = new;
                s as usize
            }
            None => {
                alloc::reserve(&mut self.slots, 1)?;
                alloc::reserve(&mut self.free, self.slots.len() + 1)?;
                self.slots.push(new);
                self.slots.len() - 1
            }
        };
        self.link(pgno, slot as u32);
        self.used += 1;
        Ok(slot)
    }

    fn link(&mut self, pgno: Pgno, slot: u32) {
        let mask = self.index.len() - 1;
        let mut i = self.home(pgno);
        while self.index[i & mask].0 != 0 {
            i += 1;
        }
        self.index[i & mask] = (pgno, slot);
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.index.len() * 2).max(32);
        let mut bigger = Vec::new();
        alloc::reserve(&mut bigger, n)?;
        bigger.resize(n, EMPTY);
        let old = std::mem::replace(&mut self.index, bigger);
        self.shift = 32 - n.trailing_zeros();
        for (pgno, slot) in old {
            if pgno != 0 {
                self.link(pgno, slot);
            }
        }
        Ok(())
    }

    /// Takes a page out.
    pub fn remove(&mut self, pgno: Pgno) -> Option<Slot> {
        let slot = self.find(pgno)?;
        let mask = self.index.len() - 1;
        let mut hole = self.home(pgno);
        while self.index[hole & mask].0 != pgno {
            hole += 1;
        }
        hole &= mask;
        // Entries behind the hole move up unless that would put them before their home.
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let (key, _) = self.index[i];
            if key == 0 {
                break;
            }
            let home = self.home(key);
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[i];
                hole = i;
            }
        }
        self.index[hole] = EMPTY;
        self.used -= 1;
        self.free.push(slot as u32);
        let empty = Slot { pgno: 0, flags: 0, saved: 0, buf: None };
        Some(std::mem::replace(&mut self.slots[slot], empty))
    }

    /// Lets all pages go.
    pub fn clear(&mut self) {
        *self = PageTable::new();
    }

    /// All pages, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|s| s.pgno != 0)
    }

    /// A clean page that nobody but the table holds and that was not hit lately.
    pub fn victim(&mut self) -> Option<Pgno> {
        // Twice round: the first time takes marks away, the second finds. A table full of dirty or held pages
        // would be swept in vain at every miss, hence the bound.
        let bound = (self.slots.len() * 2).min(512);
        for _ in 0..bound {
            self.hand += 1;
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let s = &mut self.slots[self.hand];
            let Some(buf) = &s.buf else { continue };
            if s.flags & DIRTY != 0 || buf.refs() > 1 {
                continue;
            }
            if s.flags & RECENT != 0 {
                s.flags &= !RECENT;
                continue;
            }
            return Some(s.pgno);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn finds_exactly_what_was_put_in_and_not_taken_out() {
        let mut t = PageTable::new();
        let mut model = BTreeSet::new();
        let mut x = 7u32;
        for _ in 0..20_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pgno = (x >> 8) % 300 + 1;
            if model.remove(&pgno) {
                assert_eq!(t.remove(pgno).unwrap().pgno, pgno);
            } else {
                model.insert(pgno);
                t.insert(pgno, Buf::copy_of(&pgno.to_be_bytes()).unwrap()).unwrap();
            }
            assert_eq!(t.len(), model.len());
        }
        for pgno in 1..=300 {
            let found = t.find(pgno).map(|i| t.slot(i).buf.as_ref().unwrap().to_vec());
            assert_eq!(found, model.contains(&pgno).then(|| pgno.to_be_bytes().to_vec()));
        }
        assert!(t.find(0).is_none());
        assert!(t.victim().is_some_and(|p| model.contains(&p)));
    }
}

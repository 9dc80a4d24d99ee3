//! The private page table of a session: page number to page, with the bookkeeping of writing and eviction.
//!
//! What always holds: a page number has at most one slot, which linear probing from a multiplicative hash finds; at most
//! half of the slots are in use, and a free one holds no page. A slot's number is good until the next insertion or
//! removal.
//!
//! A hit costs a multiplication, a probe and a plain increment: no atomic operation, no lock. The slots themselves are
//! hashed, and each names the place of its page's bytes: in a database larger than the processor's caches a hit waits
//! for memory twice (the slot; then the buffer's count and the page, which is asked for before) instead of four times
//! (a separate index before, the page only afterwards): half of the time of a descent.
//!
//! Eviction sweeps like a clock whose hand leaps; a page enters unreferenced and is marked when hit again, so one long scan pushes out its
//! own pages first. The table does not know what may be evicted when: its caller asks for candidates.

use iolite_base::bytes::prefetch_at;
use iolite_base::{Buf, Pgno, Result, alloc};

/// The page differs from what the file or log holds.
pub const DIRTY: u8 = 1;
/// The page was hit since the hand last came by.
pub const RECENT: u8 = 2;
/// The page need not be written: it became a free page whose content nobody reads.
pub const DONT_WRITE: u8 = 4;
/// The page was a free one, of whose content nothing depends, when the transaction began.
pub const WAS_FREE: u8 = 8;

/// So many lines of a page are asked for: its header, and most of the pointers to its cells.
const LOOKED_AT: usize = 5;

/// One page in the table: half of a line of the processor's caches.
#[repr(align(32))]
pub struct Slot {
    buf: Option<Buf>,
    /// Where the page's bytes are: a hint.
    place: usize,
    /// The serial of the newest undo level for which the page's image was saved.
    pub saved: u64,
    /// Its number; 0 for a free slot.
    pub pgno: Pgno,
    /// `DIRTY`, `RECENT`, `DONT_WRITE`, `WAS_FREE`.
    pub flags: u8,
}

impl Slot {
    const FREE: Slot = Slot { buf: None, place: 0, saved: 0, pgno: 0, flags: 0 };

    /// The page.
    #[inline(always)]
    pub fn buf(&self) -> Option<&Buf> {
        self.buf.as_ref()
    }

    /// Another image of the page.
    pub fn set_buf(&mut self, buf: Buf) {
        self.place = buf.as_ptr() as usize;
        self.buf = Some(buf);
    }
}

/// See the module's head.
pub struct PageTable {
    slots: Vec<Slot>,
    shift: u32,
    used: usize,
    hand: usize,
}

impl PageTable {
    /// An empty table.
    pub fn new() -> PageTable {
        PageTable { slots: Vec::new(), shift: 32, used: 0, hand: 0 }
    }

    #[inline(always)]
    fn home(&self, pgno: Pgno) -> usize {
        (pgno.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// The slot of a page.
    #[inline(always)]
    pub fn find(&self, pgno: Pgno) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut i = self.home(pgno) & mask;
        loop {
            let key = self.slots[i].pgno;
            // First, since page number 0 is asked for by damaged files.
            if key == 0 {
                return None;
            }
            if key == pgno {
                return Some(i);
            }
            i = (i + 1) & mask;
        }
    }

    /// A page, marked as used; its first bytes are asked of memory before the buffer's count is touched.
    #[inline(always)]
    pub fn hit(&mut self, pgno: Pgno) -> Option<Buf> {
        let i = self.find(pgno)?;
        let slot = &mut self.slots[i];
        for line in 0..LOOKED_AT {
            prefetch_at(slot.place + 64 * line);
        }
        slot.flags |= RECENT;
        slot.buf.clone()
    }

    /// Asks memory for the slot of a page, or for where its search begins.
    #[inline]
    pub fn ask_for_place(&self, pgno: Pgno) {
        if let Some(slot) = self.slots.get(self.home(pgno)) {
            prefetch_at(slot as *const Slot as usize);
        }
    }

    /// Asks memory for a page: its count, and what is looked at first.
    #[inline]
    pub fn ask_for_page(&self, pgno: Pgno) {
        if let Some(slot) = self.find(pgno).map(|i| &self.slots[i]) {
            slot.buf.iter().for_each(Buf::prefetch_count);
            (0..LOOKED_AT).for_each(|line| prefetch_at(slot.place + 64 * line));
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
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow()?;
        }
        let place = buf.as_ptr() as usize;
        self.used += 1;
        Ok(self.link(Slot { buf: Some(buf), place, saved: 0, pgno, flags: 0 }))
    }

    fn link(&mut self, slot: Slot) -> usize {
        let mask = self.slots.len() - 1;
        let mut i = self.home(slot.pgno) & mask;
        while self.slots[i].pgno != 0 {
            i = (i + 1) & mask;
        }
        self.slots[i] = slot;
        i
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.slots.len() * 2).max(32);
        let mut bigger = Vec::new();
        alloc::reserve(&mut bigger, n)?;
        bigger.resize_with(n, || Slot::FREE);
        let old = std::mem::replace(&mut self.slots, bigger);
        self.shift = 32 - n.trailing_zeros();
        for slot in old {
            if slot.pgno != 0 {
                self.link(slot);
            }
        }
        Ok(())
    }

    /// Takes a page out.
    pub fn remove(&mut self, pgno: Pgno) -> Option<Slot> {
        let mut hole = self.find(pgno)?;
        let mask = self.slots.len() - 1;
        let gone = std::mem::replace(&mut self.slots[hole], Slot::FREE);
        // Those behind the hole move up unless that would put them before their home.
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let key = self.slots[i].pgno;
            if key == 0 {
                break;
            }
            let home = self.home(key) & mask;
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.slots.swap(hole, i);
                hole = i;
            }
        }
        self.used -= 1;
        Some(gone)
    }

    /// Lets all pages go.
    pub fn clear(&mut self) {
        *self = PageTable::new();
    }

    /// All pages, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|s| s.pgno != 0)
    }

    /// The hand's next slot. It goes over all slots in an order that is spread over the table at any time. (From slot to slot it left the
    /// slots before it nearly full and those behind it nearly empty: with a full cache a search looked at dozens of slots.)
    #[inline]
    fn advance(&mut self) -> usize {
        self.hand = self.after(self.hand);
        self.hand
    }

    /// The slot that the hand comes to behind this one.
    #[inline(always)]
    fn after(&self, hand: usize) -> usize {
        // Odd, and the number of slots is a power of two: each slot has its turn.
        let stride = self.home(1) | 1;
        (hand + stride) & self.slots.len().wrapping_sub(1)
    }

    /// The next page that nobody but the table holds and that was not hit lately. Of a changed one the number is told beside: it has to be
    /// written first. `clean`: only clean ones are asked for.
    pub fn victim(&mut self, clean: bool) -> Option<(Pgno, bool)> {
        // Twice round: the first time takes marks away, the second finds. A table full of held pages would be swept in vain at every
        // miss, hence the bound.
        let bound = (self.slots.len() * 2).min(1024);
        for _ in 0..bound {
            let hand = self.advance();
            let s = &mut self.slots[hand];
            let Some(buf) = &s.buf else { continue };
            let dirty = s.flags & DIRTY != 0;
            if dirty && clean {
                continue;
            }
            if s.flags & RECENT != 0 {
                s.flags &= !RECENT;
                continue;
            }
            if buf.refs() == 1 {
                return Some((s.pgno, dirty));
            }
        }
        None
    }

    /// Changed pages that nobody but the table holds, `most` at the most, in the order in which the hand would come to them, which stays
    /// where it is: those that were not hit lately, and where these are few, a quarter of `most` whatever they are.
    pub fn changed(&self, most: usize) -> Result<Vec<(Pgno, Buf)>> {
        let mut pages = Vec::new();
        for (want, recent) in [(most, 0), (most.div_ceil(4), RECENT)] {
            let mut hand = self.hand;
            for _ in 0..self.slots.len() {
                if pages.len() >= want {
                    break;
                }
                let s = &self.slots[hand];
                if let Some(buf) = &s.buf
                    && s.flags & (DIRTY | RECENT) == DIRTY | recent
                    && buf.refs() == 1
                {
                    alloc::reserve(&mut pages, 1)?;
                    pages.push((s.pgno, buf.clone()));
                }
                hand = self.after(hand);
            }
        }
        Ok(pages)
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
            let found = t.find(pgno).map(|i| t.slot(i).buf().unwrap().to_vec());
            assert_eq!(found, model.contains(&pgno).then(|| pgno.to_be_bytes().to_vec()));
        }
        assert!(t.find(0).is_none());
        assert!(t.victim(true).is_some_and(|p| model.contains(&p.0)));
    }

    #[test]
    fn pages_hit_lately_have_a_second_turn() {
        let mut t = PageTable::new();
        for pgno in 1..=12 {
            let i = t.insert(pgno, Buf::copy_of(&[pgno as u8]).unwrap()).unwrap();
            t.slot_mut(i).flags = if pgno > 10 { 0 } else { DIRTY };
        }
        let held = t.hit(1).unwrap();
        t.hit(2).unwrap();
        let of = |pages: Vec<(Pgno, Buf)>| {
            let mut numbers: Vec<_> = pages.iter().map(|p| p.0).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(of(t.changed(20).unwrap()), (3..=10).collect::<Vec<_>>());
        // Where there are few others, those hit lately make up a quarter.
        assert_eq!(of(t.changed(40).unwrap()), (2..=10).collect::<Vec<_>>());
        assert_eq!(t.changed(4).unwrap().len(), 4);
        let seen: BTreeSet<_> = (0..10).map(|_| t.victim(false).unwrap()).collect();
        assert_eq!(seen, (3..=12).map(|p| (p, p <= 10)).collect());
        assert!((0..11).any(|_| t.victim(false) == Some((2, true))));
        assert!((0..4).all(|_| t.victim(true).is_some_and(|v| v.0 > 10 && !v.1)));
        drop(held);
    }
}

//! Finding entries.
//!
//! Within a node the search runs on the raw bytes of the cells. From where the cursor already stands, the cheap cases come
//! first: the same row, the one after it, anything beyond the last.

use crate::cursor::{Cursor, Pos};
use crate::node::*;
use iolite_base::{Code, Result};
use std::cmp::Ordering;

impl Cursor {
    /// Goes to the row, or next to where it would be: how the entry that the cursor stands on compares with `rowid`. `None`: the tree
    /// is empty.
    #[inline]
    pub fn seek_rowid(&mut self, rowid: i64) -> Result<Option<Ordering>> {
        if self.pos == Pos::Valid && self.skip == 0 && self.current() {
            if self.cell.rowid == rowid {
                return Ok(Some(Ordering::Equal));
            }
            if self.cell.rowid < rowid {
                if self.is_last() {
                    return Ok(Some(Ordering::Less));
                }
                if self.cell.rowid.wrapping_add(1) == rowid
                    && let Some(n) = self.path.last()
                    && n.idx + 1 < n.ncell
                {
                    self.next()?;
                    return Ok(Some(self.cell.rowid.cmp(&rowid)));
                }
            }
        }
        self.seek_rowid_from_root(rowid)
    }

    fn seek_rowid_from_root(&mut self, rowid: i64) -> Result<Option<Ordering>> {
        self.to_root()?;
        self.pos = Pos::Invalid;
        let sought = Sought::new(rowid);
        loop {
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            if n.leaf {
                return self.seek_in_leaf(&sought, rowid);
            }
            // The first cell whose row number is not below: rows up to and including it are left of it.
            let low = n.search_rowid(&sought)?;
            n.idx = low;
            let pgno = n.child(low)?;
            let child = self.load(pgno)?;
            self.path.push(child);
        }
    }

    #[inline(always)]
    fn seek_in_leaf(&mut self, sought: &Sought, rowid: i64) -> Result<Option<Ordering>> {
        let depth = self.path.len();
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        if n.ncell == 0 {
            return if depth == 1 { Ok(None) } else { Err(corrupt()) };
        }
        let low = n.search_rowid(sought)?;
        n.idx = low.min(n.ncell - 1);
        self.read_cell()?;
        Ok(Some(self.cell.rowid.cmp(&rowid)))
    }

    /// Goes to an entry for which `cmp` (entry against key) answers `Equal`, or next to where it would be: how the entry that the
    /// cursor stands on compares. `None`: the tree is empty.
    pub fn seek_key<F>(&mut self, cmp: &mut F) -> Result<Option<Ordering>>
    where
        F: FnMut(&[u8]) -> Result<Ordering>,
    {
        if self.is_last() && self.kind == TreeKind::Index {
            // Appending in order is common enough to ask the last entry first.
            let n = self.path.last().ok_or(Code::Internal)?;
            let last = n.idx;
            if self.compare_cell(last, cmp)? == Ordering::Less && self.is_last() {
                return Ok(Some(Ordering::Less));
            }
        }
        // A comparison may run user code, and that may write to this tree: then begin again.
        for _ in 0..100 {
            self.to_root()?;
            self.pos = Pos::Invalid;
            let found = self.seek_key_from_root(cmp);
            if self.current() {
                return found;
            }
            self.disarm();
        }
        Err(Code::Locked.into())
    }

    fn seek_key_from_root<F>(&mut self, cmp: &mut F) -> Result<Option<Ordering>>
    where
        F: FnMut(&[u8]) -> Result<Ordering>,
    {
        loop {
            let n = self.path.last().ok_or(Code::Internal)?;
            let leaf = n.leaf;
            if leaf && n.ncell == 0 {
                return if self.path.len() == 1 { Ok(None) } else { Err(corrupt()) };
            }
            let (mut low, mut high) = (0, n.ncell);
            let mut last = Ordering::Less;
            let mut last_at = u32::MAX;
            while low < high {
                let mid = (low + high) / 2;
                let c = self.compare_cell(mid, cmp)?;
                match c {
                    Ordering::Less => low = mid + 1,
                    Ordering::Greater => high = mid,
                    Ordering::Equal => {
                        self.top().idx = mid;
                        self.read_cell()?;
                        return Ok(Some(Ordering::Equal));
                    }
                }
                last = c;
                last_at = mid;
            }
            if leaf {
                let n = self.top();
                n.idx = low.min(n.ncell - 1);
                // The entry at `low` is greater, unless the search ran past the end.
                let c = if low == n.ncell {
                    Ordering::Less
                } else {
                    debug_assert!(last_at != low || last == Ordering::Greater);
                    Ordering::Greater
                };
                self.read_cell()?;
                return Ok(Some(c));
            }
            let n = self.top();
            n.idx = low;
            let pgno = n.child(low)?;
            let child = self.load(pgno)?;
            self.path.push(child);
        }
    }

    #[inline(always)]
    fn top(&mut self) -> &mut Node {
        let last = self.path.len() - 1;
        &mut self.path[last]
    }

    /// Compares cell `i` of the top node with the key.
    #[inline]
    fn compare_cell<F>(&mut self, i: u32, cmp: &mut F) -> Result<Ordering>
    where
        F: FnMut(&[u8]) -> Result<Ordering>,
    {
        let n = self.path.last().ok_or(Code::Internal)?;
        let mut at = n.cell_at(i);
        if !n.leaf {
            at += 4;
        }
        // A payload of up to 127 bytes, which is always whole on the node: one byte of length.
        match n.page.get(at) {
            Some(&len) if len < 0x80 && (len as u32) <= self.layout.max_index => {
                match n.page.get(at + 1..at + 1 + len as usize) {
                    Some(entry) => cmp(entry),
                    None => Err(corrupt()),
                }
            }
            _ => self.compare_long(i, cmp),
        }
    }

    #[inline(never)]
    fn compare_long<F>(&mut self, i: u32, cmp: &mut F) -> Result<Ordering>
    where
        F: FnMut(&[u8]) -> Result<Ordering>,
    {
        let n = self.path.last().ok_or(Code::Internal)?;
        let cell = Cell::read(&n.page, n.cell_at(i), TreeKind::Index, n.leaf, &self.layout)?;
        let local = cell.at as usize..(cell.at + cell.local) as usize;
        if !cell.overflows() {
            return cmp(&n.page[local]);
        }
        let mut whole = std::mem::take(&mut self.whole);
        let read = self.bt.whole_payload(&n.page, &cell, &mut whole);
        let done = read.and_then(|()| cmp(&whole));
        self.whole = whole;
        done
    }
}

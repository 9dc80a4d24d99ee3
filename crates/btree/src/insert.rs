//! Inserting and deleting entries.
//!
//! Most changes touch one leaf with room for them and happen in place; the rest goes to the module `balance`.

use crate::balance::neighbours;
use crate::cursor::{Cursor, EntryOrder, InsertAt, Pos};
use crate::node::*;
use crate::overflow::LARGE;
use crate::ptrmap;
use crate::room::*;
use iolite_base::{Code, Result, alloc, be, varint};
use iolite_pager::SecureDelete;
use std::cmp::Ordering;

/// The first `n` bytes of two runs, one behind the other, are taken off them.
fn take<'b>(rest: &mut (&'b [u8], &'b [u8]), n: usize) -> (&'b [u8], &'b [u8]) {
    let (first, second);
    (first, rest.0) = rest.0.split_at(n.min(rest.0.len()));
    (second, rest.1) = rest.1.split_at((n - first.len()).min(rest.1.len()));
    (first, second)
}

/// Whether bytes are those of two runs, one behind the other.
fn is_joined(bytes: &[u8], (first, second): (&[u8], &[u8])) -> bool {
    bytes.len() == first.len() + second.len() && bytes.starts_with(first) && bytes.ends_with(second)
}

impl Cursor {
    /// The tree is about to change: the other cursors on it will find their places anew.
    #[inline]
    pub(crate) fn touch(&mut self) -> Result<()> {
        self.may_write()?;
        if self.tree.armed.get() > 0 {
            self.bt.save_slots(&self.tree)?;
        }
        let was_current = self.current();
        let next = self.tree.generation.get().wrapping_add(1);
        self.tree.generation.set(next);
        if was_current {
            self.generation = next;
        }
        Ok(())
    }

    /// Inserts a row, or replaces the one with this number. `zeros` zero bytes follow the payload.
    pub fn insert_row(&mut self, rowid: i64, payload: &[u8], zeros: u32, at: InsertAt) -> Result<()> {
        let place = self.place_of_row(rowid, at)?;
        let done = match place {
            None => self.go_to_root().map(|()| false)?,
            Some(Ordering::Equal) => self.overwrite(payload, &[], zeros)?,
            Some(c) => self.insert_in_gap(c == Ordering::Less, Some(rowid), payload, zeros)?,
        };
        if done {
            return Ok(());
        }
        self.put_row(place, rowid, payload, &[], zeros)
    }

    /// As [`Cursor::insert_row`], with a payload in two parts, so that a large value need not be copied behind the others:
    /// it goes to its pages from where it is.
    pub fn insert_large(&mut self, rowid: i64, payload: &[u8], tail: &[u8], at: InsertAt) -> Result<()> {
        let place = self.place_of_row(rowid, at)?;
        match place {
            None => self.go_to_root()?,
            Some(Ordering::Equal) if self.overwrite(payload, tail, 0)? => return Ok(()),
            Some(_) => {}
        }
        self.put_row(place, rowid, payload, tail, 0)
    }

    fn place_of_row(&mut self, rowid: i64, at: InsertAt) -> Result<Option<Ordering>> {
        self.may_write()?;
        Ok(match at {
            InsertAt::Here(c) if self.pos == Pos::Valid && self.skip == 0 && self.current() => {
                debug_assert!(c.is_ne() || self.cell.rowid == rowid);
                Some(c)
            }
            InsertAt::Append if !self.is_last() && !self.last()? => None,
            // A number drawn at random, or one that a trigger was faster with, belongs elsewhere.
            InsertAt::Append if self.cell.rowid < rowid => Some(Ordering::Less),
            _ => self.seek_rowid(rowid)?,
        })
    }

    fn put_row(
        &mut self,
        place: Option<Ordering>,
        rowid: i64,
        payload: &[u8],
        tail: &[u8],
        zeros: u32,
    ) -> Result<()> {
        self.build_cell(Some(rowid), payload, tail, zeros)?;
        let done = self.place_cell(place, rowid);
        self.shrink_scratch();
        done
    }

    /// Inserts a record into an index, or replaces the one that compares equal.
    pub fn insert_entry<F>(&mut self, payload: &[u8], at: InsertAt, cmp: &mut F) -> Result<()>
    where
        F: EntryOrder,
    {
        self.may_write()?;
        let place = match at {
            // Where an entry is gone, the cursor stands at a neighbour.
            InsertAt::Here(c) if self.pos == Pos::Valid && self.skip == 0 && self.current() => {
                debug_assert!(c.is_ne() || self.seek_key(cmp)? == Some(c));
                Some(c)
            }
            InsertAt::Append if self.is_last() => Some(Ordering::Less),
            InsertAt::Append => self.last()?.then_some(Ordering::Less),
            _ => self.seek_key(cmp)?,
        };
        self.tree.appended.set(place == Some(Ordering::Less) && self.is_last());
        let done = match place {
            None => self.go_to_root().map(|()| false)?,
            Some(Ordering::Equal) => self.overwrite(payload, &[], 0)?,
            Some(c) => self.insert_in_gap(c == Ordering::Less, None, payload, 0)?,
        };
        if done {
            return Ok(());
        }
        self.build_cell(None, payload, &[], 0)?;
        let done = self.place_cell(place, 0);
        self.shrink_scratch();
        done
    }

    /// The common case, without building the cell first: it does not overflow, and the gap of the leaf has
    /// room for it, whatever freeblocks there are. `false`: nothing was done. (This takes 300 instructions for a small
    /// row, the way through `new_cell` and a long list of freeblocks 2,000.)
    fn insert_in_gap(
        &mut self,
        behind: bool,
        rowid: Option<i64>,
        payload: &[u8],
        zeros: u32,
    ) -> Result<bool> {
        let total = payload.len() + zeros as usize;
        let (max, head) = match rowid {
            Some(r) => (self.layout.max_table, varint::len(total as u64) + varint::len(r as u64)),
            None => (self.layout.max_index, varint::len(total as u64)),
        };
        let size = head + total;
        if total > max as usize || size < 4 || !self.write {
            return Ok(false);
        }
        self.disarm();
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        let (hdr, ptrs, ncell) = (n.header(), n.ptrs as usize, n.ncell as usize);
        let first = ptrs + 2 * ncell;
        let top = content_start(&n.page, hdr);
        if !n.leaf || !has_gap(&n.page, n.frame(&self.layout), size + 2) {
            return Ok(false);
        }
        if self.tree.armed.get() > 0 {
            self.bt.save_slots(&self.tree)?;
        }
        let next = self.tree.generation.get().wrapping_add(1);
        self.tree.generation.set(next);
        self.generation = next;
        let idx = n.idx + behind as u32;
        let at = top - size;
        let pointer = ptrs + 2 * idx as usize;
        self.bt.pager()?.edit(n.pgno, &mut n.page, |b| {
            let cell = &mut b[at..top];
            let mut k = varint::put(cell, total as u64);
            if let Some(r) = rowid {
                k += varint::put(&mut cell[k..], r as u64);
            }
            cell[k..k + payload.len()].copy_from_slice(payload);
            if zeros > 0 {
                cell[k + payload.len()..].fill(0);
            }
            if pointer < first {
                b.copy_within(pointer..first, pointer + 2);
            }
            be::put_u16(b, pointer, at as u16);
            be::put_u16(b, hdr + 3, ncell as u16 + 1);
            be::put_u16(b, hdr + 5, at as u16);
        })?;
        n.ncell += 1;
        n.idx = idx;
        self.cell = Cell {
            rowid: rowid.unwrap_or(0),
            payload: total as u32,
            local: total as u32,
            at: (at + head) as u32,
            head: head as u32,
        };
        self.pos = Pos::Valid;
        self.skip = 0;
        Ok(true)
    }

    /// Writes a payload over the present one if it is as long. What is the same stays as it is: a transaction that changes nothing writes
    /// nothing. `false`: nothing was done.
    #[inline]
    fn overwrite(&mut self, payload: &[u8], tail: &[u8], zeros: u32) -> Result<bool> {
        let old = self.cell;
        if zeros > 0 || old.payload as usize != payload.len() + tail.len() || !self.write {
            return Ok(false);
        }
        if old.overflows() || !tail.is_empty() {
            return self.overwrite_chain(payload, tail);
        }
        let n = self.path.last().ok_or(Code::Internal)?;
        let (from, to) = (old.at as usize, old.at as usize + payload.len());
        let Some(present) = n.page.get(from..to).filter(|_| n.leaf) else { return Ok(false) };
        self.skip = 0;
        if present == payload {
            return Ok(true);
        }
        self.disarm();
        self.touch()?;
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        self.bt.pager()?.edit(n.pgno, &mut n.page, |b| b[from..to].copy_from_slice(payload))?;
        Ok(true)
    }

    /// The same for a payload that goes on in overflow pages: of a long row mostly what lies on the leaf changes, so that one page is
    /// written and not the whole chain. A value of [`LARGE`] bytes and more that differs where the chain begins gets a new chain, which
    /// need not be read.
    #[inline(never)]
    fn overwrite_chain(&mut self, payload: &[u8], tail: &[u8]) -> Result<bool> {
        let old = self.cell;
        let n = self.path.last().ok_or(Code::Internal)?;
        let (from, to) = (old.at as usize, (old.at + old.local) as usize);
        let Some(present) = n.page.get(from..to).filter(|_| n.leaf && old.overflows()) else {
            return Ok(false);
        };
        let chunk = self.layout.usable as usize - 4;
        let mut rest = (payload, tail);
        let here = take(&mut rest, present.len());
        let same_here = is_joined(present, here);
        let mut next = old.overflow(&n.page);
        if old.payload as usize >= LARGE {
            let mut behind = rest;
            let parts = take(&mut behind, chunk);
            let page = self.bt.pager()?.get(next)?;
            if !page.get(4..).is_some_and(|p| is_joined(&p[..chunk.min(p.len())], parts)) {
                return Ok(false);
            }
        }
        self.disarm();
        if !same_here {
            self.touch()?;
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            self.bt.pager()?.edit(n.pgno, &mut n.page, |b| {
                iolite_base::bytes::fill_bytes(&mut b[from..to], &[here.0, here.1])
            })?;
        }
        let mut touched = !same_here;
        while !rest.0.is_empty() || !rest.1.is_empty() {
            if next < 2 {
                return Err(corrupt());
            }
            let parts = take(&mut rest, chunk);
            let to = 4 + parts.0.len() + parts.1.len();
            let mut page = self.bt.pager()?.get(next)?;
            if !is_joined(page.get(4..to).ok_or_else(corrupt)?, parts) {
                if !std::mem::replace(&mut touched, true) {
                    self.touch()?;
                }
                self.bt.pager()?.edit(next, &mut page, |b| {
                    iolite_base::bytes::fill_bytes(&mut b[4..to], &[parts.0, parts.1])
                })?;
            }
            next = be::get_u32(&page, 0);
        }
        self.skip = 0;
        Ok(true)
    }

    fn shrink_scratch(&mut self) {
        if self.new_cell.capacity() > 1 << 17 {
            self.new_cell = Vec::new();
        }
    }

    /// Builds the leaf cell in `new_cell`; what does not fit there goes to overflow pages.
    fn build_cell(&mut self, rowid: Option<i64>, payload: &[u8], tail: &[u8], zeros: u32) -> Result<()> {
        let total = payload.len() + tail.len() + zeros as usize;
        if total > i32::MAX as usize {
            return Err(Code::Toobig.into());
        }
        let kind = if rowid.is_some() { TreeKind::Table } else { TreeKind::Index };
        let local = self.layout.local(kind, total as u32) as usize;
        let mut out = std::mem::take(&mut self.new_cell);
        out.clear();
        alloc::reserve(&mut out, local + 22)?;
        let mut head = [0u8; 18];
        let mut n = varint::put(&mut head, total as u64);
        if let Some(r) = rowid {
            n += varint::put(&mut head[n..], r as u64);
        }
        out.extend_from_slice(&head[..n]);
        let (here, payload) = payload.split_at(local.min(payload.len()));
        out.extend_from_slice(here);
        let (here, tail) = tail.split_at((local - here.len()).min(tail.len()));
        out.extend_from_slice(here);
        out.resize(n + local, 0);
        if local < total {
            let zeros = total - local - payload.len() - tail.len();
            let first = self.bt.write_chain(payload, tail, zeros)?;
            out.extend_from_slice(&first.to_be_bytes());
        }
        self.new_cell = out;
        Ok(())
    }

    /// Puts `new_cell` where the cursor stands: before, behind, or instead of its entry.
    fn place_cell(&mut self, place: Option<Ordering>, rowid: i64) -> Result<()> {
        self.disarm();
        self.touch()?;
        self.skip = 0;
        let top = self.path.last().ok_or(Code::Internal)?;
        let leaf = top.leaf;
        let idx = match place {
            None => 0,
            Some(Ordering::Less) => top.idx + 1,
            _ => top.idx,
        };
        if place == Some(Ordering::Equal) {
            let old = self.cell;
            if old.overflows() {
                let page = top.page.clone();
                self.bt.free_chain(&page, &old)?;
            }
            if !leaf {
                let child = top.child(idx)?;
                let mut cell = child.to_be_bytes().to_vec();
                cell.extend_from_slice(&self.new_cell);
                let level = self.path.len() - 1;
                self.save_new_key(rowid);
                self.replace_interior(level, idx, &cell)?;
                return self.after_balance();
            }
            self.remove_from_leaf(idx, old.size())?;
        }
        if !leaf {
            return Err(Code::Internal.into());
        }
        let need = self.new_cell.len().max(4) + 2;
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        let frame = n.frame(&self.layout);
        // Behind all others a full leaf mostly stays as it is: it is not prepared for a change before that is known.
        if idx == n.ncell && !has_gap(&n.page, frame, need) && free_space(&n.page, frame)? < need {
            return self.split(idx, rowid);
        }
        let cell = std::mem::take(&mut self.new_cell);
        let done = self.bt.pager()?.edit(n.pgno, &mut n.page, |b| insert_cell(b, frame, idx as usize, &cell));
        self.new_cell = cell;
        if !done?? {
            return self.split(idx, rowid);
        }
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        n.ncell += 1;
        n.idx = idx;
        self.note_chain()?;
        self.read_cell().map(|_| ())
    }

    /// Enters the new cell's chain into the pointer map.
    #[inline]
    fn note_chain(&mut self) -> Result<()> {
        if !self.bt.has_ptrmap() {
            return Ok(());
        }
        let n = self.path.last().ok_or(Code::Internal)?;
        let cell = Cell::read(&n.page, n.cell_at(n.idx), self.kind, n.leaf, &self.layout)?;
        if cell.overflows() {
            self.bt.put_ptrmap(cell.overflow(&n.page), ptrmap::OVERFLOW_FIRST, n.pgno)?;
        }
        Ok(())
    }

    /// Remembers the key of `new_cell`, for finding it after the tree was rebuilt around it.
    pub(crate) fn save_new_key(&mut self, rowid: i64) {
        self.saved_rowid = rowid;
        if self.kind == TreeKind::Index {
            self.saved_key.clear();
            if let Some((len, n)) = varint::get(&self.new_cell) {
                let local = self.layout.local(TreeKind::Index, len as u32) as usize;
                self.saved_key.extend_from_slice(&self.new_cell[n..n + local]);
            }
        }
    }

    /// After a rebuild the path is void; the key leads back.
    pub(crate) fn after_balance(&mut self) -> Result<()> {
        self.disarm();
        self.path.clear();
        self.pos = Pos::Saved;
        if self.kind == TreeKind::Index {
            self.finish_saved_key()?;
        }
        Ok(())
    }

    /// A key whose tail went to overflow pages is completed from there.
    fn finish_saved_key(&mut self) -> Result<()> {
        let Some((len, n)) = varint::get(&self.new_cell) else { return Ok(()) };
        let local = self.layout.local(TreeKind::Index, len as u32);
        if local as u64 == len || self.saved_key.len() != local as usize {
            return Ok(());
        }
        let cell = Cell { rowid: 0, payload: len as u32, local, at: n as u32, head: n as u32 };
        let mut key = std::mem::take(&mut self.saved_key);
        let done = self.bt.whole_payload(&self.new_cell, &cell, &mut key);
        self.saved_key = key;
        done
    }

    fn remove_from_leaf(&mut self, idx: u32, size: u32) -> Result<()> {
        let wipe = self.bt.secure_delete.get() != SecureDelete::Off;
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        let frame = n.frame(&self.layout);
        let mut pager = self.bt.pager()?;
        pager.edit(n.pgno, &mut n.page, |b| remove_cell(b, frame, idx as usize, size as usize, wipe))??;
        drop(pager);
        n.ncell -= 1;
        Ok(())
    }

    /// Deletes the entry that the cursor stands on. With `keep`, [`Cursor::next`] and [`Cursor::prev`] then
    /// go to its neighbours.
    pub fn delete(&mut self, keep: bool) -> Result<()> {
        self.may_write()?;
        if self.is_stale() && self.restore()? {
            return Ok(());
        }
        if self.pos != Pos::Valid {
            return Err(corrupt());
        }
        let top = self.path.last().ok_or(Code::Internal)?;
        let (leaf, idx, cell) = (top.leaf, top.idx, self.cell);
        if !leaf {
            return self.delete_interior(keep);
        }
        let page = top.page.clone();
        let usable = self.layout.usable as usize;
        let underfull = self.path.len() > 1 && !self.has_many_cells(top) && {
            let used = usable - free_space(&page, top.frame(&self.layout))?;
            let left = used.saturating_sub(cell.size() as usize + 2);
            let falls_below = |part: usize| used * part >= usable && left * part < usable;
            top.ncell == 1 || [3, 6, 12].into_iter().any(falls_below) && self.frees_a_page(left)?
        };
        if underfull && keep {
            self.save_position()?;
        }
        self.disarm();
        self.touch()?;
        self.bt.free_chain(&page, &cell)?;
        drop(page);
        self.remove_from_leaf(idx, cell.size())?;
        if underfull {
            self.rebalance_leaf()?;
            self.path.clear();
            self.pos = if keep { Pos::Saved } else { Pos::Invalid };
            return Ok(());
        }
        if !keep {
            self.pos = Pos::Invalid;
            return Ok(());
        }
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        if n.ncell == 0 {
            // Only a root may be empty.
            self.pos = Pos::Invalid;
            return Ok(());
        }
        if n.idx < n.ncell {
            self.read_cell()?;
            self.skip = 1;
        } else {
            n.idx -= 1;
            self.read_cell()?;
            self.skip = -1;
        }
        Ok(())
    }

    /// Whether a leaf is surely, or most likely, at least a third full after it has lost a cell: its freeblocks need not be walked through
    /// then. A cell and its pointer take six bytes at least; else three cells stand for all. Where they are larger than the others, the
    /// leaf stays as it is until one of the others goes.
    fn has_many_cells(&self, leaf: &Node) -> bool {
        let (left, usable) = (leaf.ncell as usize - 1, self.layout.usable as usize);
        if left * 6 * 3 >= usable {
            return true;
        }
        let most = if self.kind == TreeKind::Table { self.layout.max_table } else { self.layout.max_index };
        // What a cell takes at least, by the length of its payload. Of one that overflows nothing is said.
        let size = |i: u32| {
            let at = leaf.cell_at(i);
            let payload = match leaf.page.get(at..at + 2) {
                Some(&[a, _]) if a < 0x80 => a as u32,
                Some(&[a, b]) if b < 0x80 => (a as u32 & 0x7f) << 7 | b as u32,
                _ => 0,
            };
            if payload <= most { payload as usize + 3 } else { 0 }
        };
        let least = size(0).min(size(leaf.ncell / 2)).min(size(leaf.ncell - 1));
        left * least * 3 >= usable
    }

    /// Whether a leaf on which `left` bytes are in use and its neighbours would take fewer pages, rebuilt together. (A leaf whose rows go
    /// one after the other was evened out with its neighbours again and again before it was empty: half of what deleting a range took.)
    fn frees_a_page(&self, left: usize) -> Result<bool> {
        let Some([parent, _]) = self.path.last_chunk::<2>() else { return Ok(false) };
        let children = parent.ncell as usize + 1;
        if children == 1 {
            return Ok(true);
        }
        let usable = self.layout.usable as usize;
        let siblings = neighbours(parent.idx as usize, children);
        let count = siblings.len();
        let mut total = left;
        for i in siblings.filter(|i| *i != parent.idx as usize) {
            let page = self.bt.pager()?.get(parent.child(i as u32)?)?;
            let node = Node::new(page, parent.child(i as u32)?, self.kind, &self.layout)?;
            total += usable - free_space(&node.page, node.frame(&self.layout))?;
            if self.kind == TreeKind::Index {
                // The entry between them comes down.
                total += self.cell.size() as usize + 2;
            }
        }
        Ok(total.div_ceil(usable - usable / 8) < count)
    }

    /// Saves the present key without giving the path up.
    pub(crate) fn save_position(&mut self) -> Result<()> {
        self.saved_rowid = self.cell.rowid;
        if self.kind == TreeKind::Index {
            let mut key = std::mem::take(&mut self.saved_key);
            let n = self.path.last().ok_or(Code::Internal)?;
            let done = self.bt.whole_payload(&n.page, &self.cell, &mut key);
            self.saved_key = key;
            return done;
        }
        Ok(())
    }

    /// An entry on an interior node divides its children: the last one below its left child takes its place.
    fn delete_interior(&mut self, keep: bool) -> Result<()> {
        if keep {
            self.save_position()?;
        }
        self.disarm();
        self.touch()?;
        let level = self.path.len() - 1;
        let n = &self.path[level];
        let (idx, cell) = (n.idx, self.cell);
        let child = n.child(idx)?;
        let page = n.page.clone();
        self.bt.free_chain(&page, &cell)?;
        drop(page);
        let below = self.load(child)?;
        self.path.push(below);
        self.descend_right()?;
        let leaf = self.path.last().ok_or(Code::Internal)?;
        let at = leaf.cell_at(leaf.idx);
        let last = Cell::read(&leaf.page, at, TreeKind::Index, true, &self.layout)?;
        let len = last.len() as usize;
        let mut divider = child.to_be_bytes().to_vec();
        divider.extend_from_slice(&leaf.page[at..at + len]);
        let leaf_idx = leaf.idx;
        self.remove_from_leaf(leaf_idx, last.size())?;
        self.rebalance_with_divider(level, idx, divider)?;
        self.path.clear();
        self.pos = if keep { Pos::Saved } else { Pos::Invalid };
        Ok(())
    }
}

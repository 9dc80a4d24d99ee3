//! Entries that arrive in order, at the right edge of the tree.
//!
//! What always holds: a full leaf stays as it is and a new one takes what comes; of an index leaf, the last entry goes up
//! to the parent, between the two. So pages are left full, and nothing is laid out twice.

use crate::cursor::{Cursor, InsertAt, Pos};
use crate::node::*;
use crate::ptrmap;
use crate::room::*;
use iolite_base::{Code, Error, Result, alloc, be, varint};
use iolite_pager::SecureDelete;
use std::cmp::Ordering;

/// Entries of an index in their order, one after the other.
pub trait Ordered {
    /// The present one.
    fn entry(&self) -> Result<&[u8]>;
    /// Goes to the next; `false`: there is none.
    fn advance(&mut self) -> Result<bool>;
}

impl Cursor {
    /// Appends entries, of which the first comes behind all in the index. `between` is called now and then, at least
    /// once a page, while nothing of the tree is borrowed.
    pub fn append_all(
        &mut self,
        from: &mut impl Ordered,
        mut between: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        loop {
            between()?;
            let mut never = |_: &[u8]| -> Result<Ordering> { Err(Code::Internal.into()) };
            self.insert_entry(from.entry()?, InsertAt::Append, &mut never)?;
            if !from.advance()? || !self.fill_leaf(from)? {
                return Ok(());
            }
        }
    }

    /// Appends entries to the last leaf as long as they fit in its gap. `false`: that was all.
    fn fill_leaf(&mut self, from: &mut impl Ordered) -> Result<bool> {
        if !self.last()? || self.armed || self.tree.armed.get() > 0 {
            return Ok(true);
        }
        self.touch()?;
        let (usable, max) = (self.layout.usable as usize, self.layout.max_index as usize);
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        let (hdr, ptrs, mut ncell) = (n.header(), n.ptrs as usize, n.ncell as usize);
        let mut top = content_start(&n.page, hdr);
        if !n.leaf || be::get_u16(&n.page, hdr + 1) != 0 || top > usable {
            return Ok(true);
        }
        let mut failed: Option<Error> = None;
        let mut more = true;
        self.bt.pager()?.edit(n.pgno, &mut n.page, |b| {
            while more {
                let entry = match from.entry() {
                    Ok(e) => e,
                    Err(e) => {
                        failed = Some(e);
                        break;
                    }
                };
                let head = varint::len(entry.len() as u64);
                let size = head + entry.len();
                if entry.len() > max || size < 4 || top < ptrs + 2 * ncell + 2 + size {
                    break;
                }
                top -= size;
                let cell = &mut b[top..top + size];
                varint::put(cell, entry.len() as u64);
                cell[head..].copy_from_slice(entry);
                be::put_u16(b, ptrs + 2 * ncell, top as u16);
                ncell += 1;
                more = match from.advance() {
                    Ok(more) => more,
                    Err(e) => {
                        failed = Some(e);
                        false
                    }
                };
            }
            be::put_u16(b, hdr + 3, ncell as u16);
            set_content_start(b, hdr, top);
        })?;
        n.ncell = ncell as u32;
        n.idx = n.ncell - 1;
        self.read_cell()?;
        failed.map_or(Ok(more), Err)
    }

    /// Puts `new_cell`, which comes behind all entries, on a new leaf beside the last one, on which the cursor stands and
    /// which is full. `false`: that is not possible, nothing was done.
    pub(crate) fn append_leaf(&mut self) -> Result<bool> {
        let level = self.path.len() - 1;
        let index = self.kind == TreeKind::Index;
        let leaf = &self.path[level];
        let old = leaf.pgno;
        if leaf.ncell < 2 {
            return Ok(false);
        }
        let last = Cell::read(&leaf.page, leaf.cell_at(leaf.ncell - 1), self.kind, true, &self.layout)?;
        if index && last.overflows() && self.bt.has_ptrmap() {
            return Ok(false);
        }
        let mut divider = Vec::new();
        alloc::reserve(&mut divider, 16 + last.len() as usize)?;
        divider.extend_from_slice(&old.to_be_bytes());
        if index {
            let at = leaf.cell_at(leaf.ncell - 1);
            divider.extend_from_slice(&leaf.page[at..at + last.len() as usize]);
        } else {
            let mut b = [0; 9];
            let n = varint::put(&mut b, last.rowid as u64);
            divider.extend_from_slice(&b[..n]);
        }
        let usable = self.layout.usable as usize;
        let parent = &self.path[level - 1];
        let frame = parent.frame(&self.layout);
        if free_space(&parent.page, frame)? < divider.len() + 2 {
            return Ok(false);
        }
        let (pgno, mut page) = self.bt.allocate_page(old)?;
        let cell = std::mem::take(&mut self.new_cell);
        let made = self.bt.pager()?.edit(pgno, &mut page, |b| {
            make_empty(b, 0, flag(self.kind, true), usable);
            insert_cell(b, Frame { hdr: 0, ptrs: 8, ncell: 0, usable }, 0, &cell)
        });
        self.new_cell = cell;
        let mut fits = made??;
        let parent = &mut self.path[level - 1];
        fits &= self.bt.pager()?.edit(parent.pgno, &mut parent.page, |b| {
            be::put_u32(b, frame.hdr + 8, pgno);
            insert_cell(b, frame, frame.ncell, &divider)
        })??;
        if !fits {
            return Err(corrupt());
        }
        parent.ncell += 1;
        parent.idx = parent.ncell;
        let parent_pgno = parent.pgno;
        if index {
            let wipe = self.bt.secure_delete.get() != SecureDelete::Off;
            let leaf = &mut self.path[level];
            let frame = leaf.frame(&self.layout);
            self.bt.pager()?.edit(old, &mut leaf.page, |b| {
                remove_cell(b, frame, frame.ncell - 1, last.size() as usize, wipe)
            })??;
        }
        self.path[level] = Node::new(page, pgno, self.kind, &self.layout)?;
        if self.bt.has_ptrmap() {
            self.bt.put_ptrmap(pgno, ptrmap::NODE, parent_pgno)?;
            self.bt.put_children_ptrmap(pgno, self.kind)?;
        }
        self.pos = Pos::Valid;
        self.read_cell()?;
        Ok(true)
    }
}

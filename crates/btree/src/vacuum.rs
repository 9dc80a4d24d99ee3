//! Giving pages back to the file system: `auto_vacuum` and `incremental_vacuum`, and the places of roots in
//! databases with pointer maps.
//!
//! What always holds there: roots stand before all other pages (but map pages), so that vacuuming, which
//! moves the last page of the file into a free one, never moves a root.

use crate::btree::{AutoVacuum, Btree, Shared};
use crate::node::*;
use crate::ptrmap;
use iolite_base::{Code, Pgno, Result, be};

impl Shared {
    /// Takes a certain free page off the freelist.
    fn take_free(&self, pgno: Pgno) -> Result<()> {
        self.take_free_where(|p| p == pgno).and_then(|p| p.map(|_| ()).ok_or_else(corrupt))
    }

    /// Takes the first free page that suits off the freelist.
    fn take_free_where(&self, suits: impl Fn(Pgno) -> bool) -> Result<Option<Pgno>> {
        let (size, most) = (self.pager()?.db_size(), self.layout.get().usable / 4 - 2);
        let p1 = self.header_page()?;
        let count = be::get_u32(&p1, 36);
        let mut trunk = be::get_u32(&p1, 32);
        drop(p1);
        let mut before = 0;
        for _ in 0..=count {
            if trunk == 0 {
                return Ok(None);
            }
            if trunk < 2 || trunk > size {
                return Err(corrupt());
            }
            let mut page = self.pager()?.get(trunk)?;
            let leaves = be::get_u32(&page, 4);
            if leaves > most {
                return Err(corrupt());
            }
            let next = be::get_u32(&page, 0);
            if suits(trunk) {
                // Unlike a leaf, a trunk says something: a rollback needs it.
                self.has_content.borrow_mut().insert(trunk);
                // The trunk itself: its first leaf takes over, or the next trunk moves up.
                let heir = if leaves == 0 {
                    next
                } else {
                    let heir = be::get_u32(&page, 8);
                    if heir < 2 || heir > size {
                        return Err(corrupt());
                    }
                    let mut pager = self.pager()?;
                    let mut new = pager.get(heir)?;
                    pager.edit(heir, &mut new, |b| {
                        be::put_u32(b, 0, next);
                        be::put_u32(b, 4, leaves - 1);
                        let rest = 4 * (leaves as usize - 1);
                        b[8..8 + rest].copy_from_slice(&page[12..12 + rest]);
                    })?;
                    heir
                };
                if before == 0 {
                    self.set_freelist(heir, count - 1)?;
                } else {
                    let mut pager = self.pager()?;
                    let mut b = pager.get(before)?;
                    pager.edit(before, &mut b, |b| be::put_u32(b, 0, heir))?;
                    drop(pager);
                    self.set_header_u32(36, count - 1)?;
                }
                return Ok(Some(trunk));
            }
            for i in 0..leaves as usize {
                let leaf = be::get_u32(&page, 8 + 4 * i);
                if leaf < 2 || leaf > size {
                    return Err(corrupt());
                }
                if suits(leaf) {
                    let last = be::get_u32(&page, 8 + 4 * (leaves as usize - 1));
                    self.pager()?.edit(trunk, &mut page, |b| {
                        be::put_u32(b, 8 + 4 * i, last);
                        be::put_u32(b, 4, leaves - 1);
                    })?;
                    self.set_header_u32(36, count - 1)?;
                    return Ok(Some(leaf));
                }
            }
            before = trunk;
            trunk = next;
        }
        Err(corrupt())
    }

    /// Moves a page that the pointer map describes to another number, and turns whoever points to it.
    fn relocate(&self, from: Pgno, kind: u8, parent: Pgno, to: Pgno) -> Result<()> {
        if from < 3 {
            return Err(corrupt());
        }
        let content = self.pager()?.get(from)?;
        {
            let mut pager = self.pager()?;
            let mut page = pager.get(to)?;
            pager.edit(to, &mut page, |b| b.copy_from_slice(&content))?;
        }
        self.has_content.borrow_mut().insert(from);
        match kind {
            ptrmap::NODE | ptrmap::ROOT => {
                let tree = match content[0] {
                    TABLE_LEAF | TABLE_INTERIOR => TreeKind::Table,
                    INDEX_LEAF | INDEX_INTERIOR => TreeKind::Index,
                    _ => return Err(corrupt()),
                };
                self.put_children_ptrmap(to, tree)?;
            }
            _ => {
                let next = be::get_u32(&content, 0);
                if next != 0 {
                    self.put_ptrmap(next, ptrmap::OVERFLOW_NEXT, to)?;
                }
            }
        }
        drop(content);
        if kind != ptrmap::ROOT {
            self.turn_pointer(parent, from, to, kind)?;
            self.put_ptrmap(to, kind, parent)?;
        }
        Ok(())
    }

    /// Makes the pointer to `from` on page `parent` one to `to`.
    fn turn_pointer(&self, parent: Pgno, from: Pgno, to: Pgno, kind: u8) -> Result<()> {
        let mut page = self.pager()?.get(parent)?;
        let at = if kind == ptrmap::OVERFLOW_NEXT {
            if be::get_u32(&page, 0) != from {
                return Err(corrupt());
            }
            0
        } else {
            let layout = self.layout.get();
            let tree = match page[header_at(parent)] {
                TABLE_LEAF | TABLE_INTERIOR => TreeKind::Table,
                _ => TreeKind::Index,
            };
            let node = Node::new(page.clone(), parent, tree, &layout)?;
            let mut found = None;
            for i in 0..node.ncell {
                let at = node.cell_at(i);
                if kind == ptrmap::OVERFLOW_FIRST {
                    let cell = Cell::read(&node.page, at, tree, node.leaf, &layout)?;
                    if cell.overflow(&node.page) == from {
                        found = Some((cell.at + cell.local) as usize);
                        break;
                    }
                } else if !node.leaf && node.child(i)? == from {
                    found = Some(at);
                    break;
                }
            }
            if found.is_none() && kind == ptrmap::NODE && !node.leaf && node.child(node.ncell)? == from {
                found = Some(node.header() + 8);
            }
            found.ok_or_else(corrupt)?
        };
        self.pager()?.edit(parent, &mut page, |b| be::put_u32(b, at, to))
    }

    /// Whether a page number belongs to no tree: map pages and the lock-byte page.
    fn is_fixed(&self, pgno: Pgno) -> Result<bool> {
        Ok(pgno == self.pager()?.lock_page() || self.is_ptrmap(pgno)?)
    }

    /// The size of the database once `free` of its `size` pages are gone, with the map pages that go with
    /// them.
    fn final_size(&self, size: Pgno, free: u32) -> Result<Pgno> {
        let usable = self.layout.get().usable;
        let lock = self.pager()?.lock_page();
        let entries = usable / 5;
        let last_map = ptrmap::page_of(size, usable, lock);
        let maps =
            (free as u64 + entries as u64 + last_map as u64).saturating_sub(size as u64) / entries as u64;
        let mut end = (size as u64).checked_sub(free as u64 + maps).ok_or_else(corrupt)? as Pgno;
        if size > lock && end < lock {
            end = end.saturating_sub(1);
        }
        while end > 1 && (self.is_ptrmap(end)? || end == lock) {
            end -= 1;
        }
        if end == 0 { Err(corrupt()) } else { Ok(end) }
    }

    /// Frees the last page of the database, moving its content into a free page before `end`. `commit`: the
    /// pages beyond `end` all go, so what is free there need not be taken off the list one by one.
    fn vacuum_step(&self, end: Pgno, last: Pgno, commit: bool) -> Result<bool> {
        if !self.is_fixed(last)? {
            let free = self.header_u32(36)?;
            if free == 0 {
                return Ok(false);
            }
            let (kind, parent) = self.get_ptrmap(last)?;
            if kind == ptrmap::ROOT {
                return Err(corrupt());
            }
            if kind == ptrmap::FREE {
                if !commit {
                    self.take_free(last)?;
                }
            } else {
                let to = self.take_free_where(|p| p <= end)?.ok_or_else(corrupt)?;
                self.reuse(to)?;
                self.relocate(last, kind, parent, to)?;
            }
        }
        if !commit {
            let mut next = last - 1;
            while self.is_fixed(next)? {
                next -= 1;
            }
            self.pager()?.truncate_image(next)?;
        }
        Ok(true)
    }
}

impl Btree {
    /// A free place for a new root: right behind the other roots.
    pub(crate) fn root_place(&self) -> Result<Pgno> {
        let bt = &*self.0;
        bt.save_all()?;
        bt.bump_all();
        let mut root = bt.header_u32(52)?;
        if root > self.page_count() {
            return Err(corrupt());
        }
        root += 1;
        while bt.is_fixed(root)? {
            root += 1;
        }
        if root > self.page_count() {
            let (pgno, _) = bt.allocate_page(0)?;
            if pgno != root {
                // A free page lies somewhere before: that cannot be, since roots come first.
                return Err(corrupt());
            }
        } else {
            let (kind, parent) = bt.get_ptrmap(root)?;
            match kind {
                ptrmap::ROOT => return Err(corrupt()),
                ptrmap::FREE => {
                    bt.take_free(root)?;
                    bt.reuse(root)?;
                }
                _ => {
                    let (to, page) = bt.allocate_page(0)?;
                    drop(page);
                    // Taking the page may have moved nothing, but the map is read anew: it may have been it.
                    let (kind, parent) = if to == root { (kind, parent) } else { bt.get_ptrmap(root)? };
                    if to == root || kind == ptrmap::ROOT || kind == ptrmap::FREE {
                        return Err(corrupt());
                    }
                    bt.relocate(root, kind, parent, to)?;
                }
            }
        }
        bt.put_root(root)?;
        bt.set_header_u32(52, root)?;
        Ok(root)
    }

    /// Frees a root that was emptied; the last root moves into its place.
    pub(crate) fn drop_root(&self, root: Pgno) -> Result<Option<Pgno>> {
        let bt = &*self.0;
        bt.save_all()?;
        bt.bump_all();
        let last = bt.header_u32(52)?;
        if root > last {
            return Err(corrupt());
        }
        let moved = if root == last {
            bt.free_page(root)?;
            None
        } else {
            let (kind, _) = bt.get_ptrmap(last)?;
            if kind != ptrmap::ROOT {
                return Err(corrupt());
            }
            bt.relocate(last, ptrmap::ROOT, 0, root)?;
            bt.free_page(last)?;
            Some(last)
        };
        let mut end = last - 1;
        while end > 1 && bt.is_fixed(end)? {
            end -= 1;
        }
        bt.set_header_u32(52, end)?;
        bt.refresh()?;
        Ok(moved)
    }

    /// With `auto_vacuum=full`, before a commit: all free pages go, or as many as somebody who is asked says.
    pub(crate) fn auto_vacuum_commit(&self) -> Result<()> {
        let bt = &*self.0;
        let size = self.page_count();
        let free = bt.header_u32(36)?;
        if free > 0 && (bt.is_fixed(size)? || free >= size) {
            return Err(corrupt());
        }
        let ask = bt.vacuum_pages.borrow().clone();
        let go = ask.map_or(free, |f| f(size, free, self.page_size()).min(free));
        if go == 0 {
            return Ok(());
        }
        bt.save_all()?;
        let end = bt.final_size(size, go)?;
        if end > size {
            return Err(corrupt());
        }
        let mut last = size;
        while last > end {
            if !bt.vacuum_step(end, last, go == free)? {
                break;
            }
            last -= 1;
        }
        if go == free {
            bt.set_freelist(0, 0)?;
        }
        self.pager()?.truncate_image(end)?;
        bt.bump_all();
        Ok(())
    }

    /// Gives one free page back to the file system. `false`: there is none (or the database has no pointer
    /// maps).
    pub fn incremental_vacuum(&self) -> Result<bool> {
        let bt = &*self.0;
        if self.auto_vacuum() == AutoVacuum::None {
            return Ok(false);
        }
        self.begin_write(false)?;
        let size = self.page_count();
        let free = bt.header_u32(36)?;
        if free == 0 {
            return Ok(false);
        }
        if free >= size {
            return Err(corrupt());
        }
        let end = bt.final_size(size, free)?;
        bt.save_all()?;
        let done =
            if end < size { bt.vacuum_step(end, size, false)? } else { return Err(Code::Corrupt.into()) };
        bt.bump_all();
        Ok(done)
    }
}

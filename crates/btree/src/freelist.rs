//! Taking pages from the freelist and giving them back (file format, section 1.5).
//!
//! ```text
//! page 1: first trunk at 32, free pages at 36      trunk: next trunk 4 | leaves 4 | leaf page numbers ...
//! ```

use crate::btree::Shared;
use crate::node::corrupt;
use crate::ptrmap;
use iolite_base::bytes::fill_bytes;
use iolite_base::{Buf, Code, Pgno, Result, alloc, be};
use iolite_pager::SecureDelete;

impl Shared {
    /// A page to write on: from the freelist, or at the end of the file. Its content is of no meaning.
    pub(crate) fn allocate_page(&self, near: Pgno) -> Result<(Pgno, Buf)> {
        self.allocate(near, None)
    }

    /// As [`Shared::allocate_page`]; the page holds `parts`, one behind the other, and zeros behind them.
    pub(crate) fn allocate_filled(&self, near: Pgno, parts: &[&[u8]]) -> Result<(Pgno, Buf)> {
        self.allocate(near, Some(parts))
    }

    fn allocate(&self, _near: Pgno, parts: Option<&[&[u8]]>) -> Result<(Pgno, Buf)> {
        let p1 = self.header_page()?;
        let free = be::get_u32(&p1, 36);
        let trunk = be::get_u32(&p1, 32);
        drop(p1);
        if free == 0 {
            return self.extend(parts);
        }
        let size = self.pager()?.db_size();
        if trunk < 2 || trunk > size || free >= size {
            return Err(corrupt());
        }
        let mut page = self.pager()?.get(trunk)?;
        let leaves = be::get_u32(&page, 4);
        if leaves == 0 {
            let next = be::get_u32(&page, 0);
            if next > size {
                return Err(corrupt());
            }
            self.set_freelist(next, free - 1)?;
            self.fill(trunk, &mut page, parts)?;
            return Ok((trunk, page));
        }
        if leaves > self.layout.get().usable / 4 - 2 {
            return Err(corrupt());
        }
        let leaf = be::get_u32(&page, 8 + 4 * (leaves as usize - 1));
        if leaf < 2 || leaf > size || leaf == trunk {
            return Err(corrupt());
        }
        self.pager()?.edit(trunk, &mut page, |b| be::put_u32(b, 4, leaves - 1))?;
        self.set_header_u32(36, free - 1)?;
        if let Some(parts) = parts
            && !self.has_content.borrow().contains(&leaf)
        {
            return Ok((leaf, self.pager()?.get_filled(leaf, parts)?));
        }
        let mut page = self.reuse(leaf)?;
        self.fill(leaf, &mut page, parts)?;
        Ok((leaf, page))
    }

    /// Takes up to `most` leaves off the freelist that were there when the transaction began, in ascending order; none if there
    /// are fewer than `least`.
    pub(crate) fn take_unused(&self, least: usize, most: usize) -> Result<Vec<Pgno>> {
        let p1 = self.header_page()?;
        let free = be::get_u32(&p1, 36);
        let mut trunk = be::get_u32(&p1, 32);
        drop(p1);
        let mut taken = Vec::new();
        let size = self.pager()?.db_size();
        if (free as usize) < least || free >= size {
            return Ok(taken);
        }
        // What stays on each trunk that something is taken from.
        let mut trunks: Vec<(Pgno, Vec<Pgno>)> = Vec::new();
        let mut left = free;
        while trunk != 0 && taken.len() < most {
            if trunk < 2 || trunk > size || left == 0 {
                return Err(corrupt());
            }
            left -= 1;
            let page = self.pager()?.get(trunk)?;
            let leaves = be::get_u32(&page, 4);
            if leaves > self.layout.get().usable / 4 - 2 {
                return Err(corrupt());
            }
            let (before, mut stay) = (taken.len(), Vec::new());
            alloc::reserve(&mut taken, leaves as usize)?;
            alloc::reserve(&mut stay, leaves as usize)?;
            let has_content = self.has_content.borrow();
            for i in 0..leaves as usize {
                let leaf = be::get_u32(&page, 8 + 4 * i);
                if leaf < 2 || leaf > size || leaf == trunk {
                    return Err(corrupt());
                }
                let fits = taken.len() < most && !has_content.contains(&leaf);
                if fits { &mut taken } else { &mut stay }.push(leaf);
            }
            if taken.len() > before {
                alloc::reserve(&mut trunks, 1)?;
                trunks.push((trunk, stay));
            }
            trunk = be::get_u32(&page, 0);
        }
        if taken.len() < least || taken.len() > free as usize {
            return Ok(Vec::new());
        }
        taken.sort_unstable();
        if taken.windows(2).any(|w| w[0] == w[1]) {
            return Err(corrupt());
        }
        for (trunk, stay) in trunks {
            let mut pager = self.pager()?;
            let mut page = pager.get(trunk)?;
            pager.edit(trunk, &mut page, |b| {
                be::put_u32(b, 4, stay.len() as u32);
                for (i, leaf) in stay.iter().enumerate() {
                    be::put_u32(b, 8 + 4 * i, *leaf);
                }
            })?;
        }
        self.set_header_u32(36, free - taken.len() as u32)?;
        Ok(taken)
    }

    fn fill(&self, pgno: Pgno, page: &mut Buf, parts: Option<&[&[u8]]>) -> Result<()> {
        match parts {
            Some(parts) => self.pager()?.edit(pgno, page, |b| fill_bytes(b, parts)),
            None => Ok(()),
        }
    }

    /// A free leaf page as a sheet to write on: only one freed in this transaction has content that a
    /// rollback needs.
    pub(crate) fn reuse(&self, pgno: Pgno) -> Result<Buf> {
        let needed = self.has_content.borrow().contains(&pgno);
        let mut pager = self.pager()?;
        if needed { pager.get(pgno) } else { pager.get_blank(pgno) }
    }

    pub(crate) fn set_freelist(&self, trunk: Pgno, count: u32) -> Result<()> {
        let mut pager = self.pager()?;
        let mut p1 = pager.get(1)?;
        pager.edit(1, &mut p1, |b| {
            be::put_u32(b, 32, trunk);
            be::put_u32(b, 36, count);
        })
    }

    /// A page beyond the present end.
    fn extend(&self, parts: Option<&[&[u8]]>) -> Result<(Pgno, Buf)> {
        let mut pager = self.pager()?;
        let max = pager.max_pages();
        let mut pgno = pager.db_size() + 1;
        if pgno == pager.lock_page() {
            pgno += 1;
        }
        if self.has_ptrmap() && ptrmap::page_of(pgno, pager.usable(), pager.lock_page()) == pgno {
            if pgno > max {
                return Err(Code::Full.into());
            }
            pager.extend(pgno, None)?;
            pgno += 1;
            if pgno == pager.lock_page() {
                pgno += 1;
            }
        }
        if pgno > max {
            return Err(Code::Full.into());
        }
        let page = pager.extend(pgno, parts)?;
        Ok((pgno, page))
    }

    /// Puts a page on the freelist.
    pub(crate) fn free_page(&self, pgno: Pgno) -> Result<()> {
        let size = self.pager()?.db_size();
        if pgno < 2 || pgno > size {
            return Err(corrupt());
        }
        let p1 = self.header_page()?;
        let free = be::get_u32(&p1, 36);
        let trunk = be::get_u32(&p1, 32);
        drop(p1);
        if free >= size {
            return Err(corrupt());
        }
        let secure = self.secure_delete.get();
        if secure == SecureDelete::On {
            let mut pager = self.pager()?;
            let mut page = pager.get(pgno)?;
            pager.edit(pgno, &mut page, |b| b.fill(0))?;
        }
        if self.has_ptrmap() {
            self.put_ptrmap(pgno, ptrmap::FREE, 0)?;
        }
        if free > 0 {
            if trunk < 2 || trunk > size {
                return Err(corrupt());
            }
            let mut pager = self.pager()?;
            let mut page = pager.get(trunk)?;
            let leaves = be::get_u32(&page, 4);
            let most = self.layout.get().usable / 4 - 2;
            if leaves > most {
                return Err(corrupt());
            }
            // Six entries less than fit: versions before 3.6.0 misjudge fuller trunks.
            if leaves < most - 6 {
                pager.edit(trunk, &mut page, |b| {
                    be::put_u32(b, 4, leaves + 1);
                    be::put_u32(b, 8 + 4 * leaves as usize, pgno);
                })?;
                if secure == SecureDelete::Off {
                    pager.dont_write(pgno);
                }
                let mut p1 = pager.get(1)?;
                pager.edit(1, &mut p1, |b| be::put_u32(b, 36, free + 1))?;
                drop(pager);
                self.has_content.borrow_mut().insert(pgno);
                return Ok(());
            }
        }
        let mut pager = self.pager()?;
        let mut page = pager.get(pgno)?;
        pager.edit(pgno, &mut page, |b| {
            be::put_u32(b, 0, if free > 0 { trunk } else { 0 });
            be::put_u32(b, 4, 0);
        })?;
        drop(pager);
        self.set_freelist(pgno, free + 1)
    }
}

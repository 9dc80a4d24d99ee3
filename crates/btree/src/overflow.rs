//! Overflow chains: the part of a payload that does not fit on its node (file format, section 1.7).

use crate::btree::Shared;
use crate::cursor::Cursor;
use crate::node::*;
use crate::ptrmap;
use iolite_base::{Buf, Code, Pgno, Result, alloc, be};

/// Pages of a chain that are read together at first; a chain of fewer goes through the cache.
const FIRST_RUN: usize = 8;
/// The most: 256 KB of 4 KB, which stay in a core's cache until they are copied.
const LONGEST_RUN: usize = 64;
/// From so many bytes on, with `PRAGMA large_value_direct`, a chain is laid on pages that may be written to the file at once:
/// that costs a sync more, which takes as long as writing some 64 KB.
pub(crate) const LARGE: usize = 1 << 16;

impl Shared {
    /// Collects a payload from node and chain.
    pub(crate) fn whole_payload(&self, page: &[u8], cell: &Cell, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let local = page.get(cell.at as usize..(cell.at + cell.local) as usize).ok_or_else(corrupt)?;
        let mut left = (cell.payload - cell.local) as usize;
        let chunk = self.layout.get().usable as usize - 4;
        let mut pager = self.pager()?;
        // The length is the file's claim. It is believed piece by piece: a chain that ends early costs no
        // memory.
        if left.div_ceil(chunk) > pager.db_size() as usize {
            return Err(corrupt());
        }
        alloc::reserve(out, cell.payload as usize)?;
        out.extend_from_slice(local);
        let mut next = cell.overflow(page);
        while left > 0 {
            if next == 0 {
                return Err(corrupt());
            }
            let p = pager.get(next)?;
            let n = left.min(chunk);
            out.extend_from_slice(&p[4..4 + n]);
            left -= n;
            next = be::get_u32(&p, 0);
        }
        Ok(())
    }

    /// Writes `data`, then `tail`, then `zeros` zero bytes to a new chain; returns its first page.
    pub(crate) fn write_chain(&self, mut data: &[u8], mut tail: &[u8], zeros: usize) -> Result<Pgno> {
        let chunk = self.layout.get().usable as usize - 4;
        let total = data.len() + tail.len() + zeros;
        let mut first = 0;
        let mut prev: Option<(Pgno, Buf)> = None;
        let mut done = 0;
        // Pointer maps go to the log for each page, and where there are some, free pages are given back.
        let unused = match total >= LARGE && !self.has_ptrmap() && self.pager()?.wants_unused() {
            true => self.take_unused(LARGE.div_ceil(chunk), total.div_ceil(chunk))?,
            false => Vec::new(),
        };
        let mut unused = unused.into_iter().peekable();
        while done < total {
            let near = prev.as_ref().map_or(0, |p| p.0 + 1);
            let (of_data, of_tail);
            (of_data, data) = data.split_at(data.len().min(chunk));
            (of_tail, tail) = tail.split_at(tail.len().min(chunk - of_data.len()));
            let (pgno, page) = match unused.next() {
                Some(pgno) => {
                    let next = unused.peek().map_or([0; 4], |p| p.to_be_bytes());
                    (pgno, self.pager()?.get_unused(pgno, &[&next, of_data, of_tail])?)
                }
                None => self.allocate_filled(near, &[&[0; 4], of_data, of_tail])?,
            };
            match &mut prev {
                None => first = pgno,
                Some((_, buf)) if be::get_u32(buf, 0) == pgno => {}
                Some((p, buf)) => {
                    self.pager()?.edit(*p, buf, |b| be::put_u32(b, 0, pgno))?;
                    if self.has_ptrmap() {
                        self.put_ptrmap(pgno, ptrmap::OVERFLOW_NEXT, *p)?;
                    }
                }
            }
            prev = Some((pgno, page));
            done += chunk;
        }
        Ok(first)
    }

    /// Frees the chain of a cell.
    pub(crate) fn free_chain(&self, page: &[u8], cell: &Cell) -> Result<()> {
        if !cell.overflows() {
            return Ok(());
        }
        let chunk = self.layout.get().usable - 4;
        let mut left = (cell.payload - cell.local).div_ceil(chunk);
        let mut next = cell.overflow(page);
        while left > 0 {
            let buf = self.pager()?.get(next)?;
            let after = be::get_u32(&buf, 0);
            drop(buf);
            left -= 1;
            if next < 2 {
                return Err(corrupt());
            }
            self.free_page(next)?;
            next = after;
        }
        Ok(())
    }
}

impl Cursor {
    /// Copies `out.len()` bytes of payload from `offset` on.
    pub fn read_payload(&mut self, offset: u32, out: &mut [u8]) -> Result<()> {
        if offset as u64 + out.len() as u64 > self.cell.payload as u64 {
            return Err(corrupt());
        }
        let n = self.path.last().ok_or(Code::Internal)?;
        let mut offset = offset as usize;
        let mut out = out;
        let local = self.cell.local as usize;
        if offset < local {
            let k = out.len().min(local - offset);
            let at = self.cell.at as usize + offset;
            out[..k].copy_from_slice(&n.page[at..at + k]);
            out = &mut out[k..];
            offset += k;
        }
        if out.is_empty() {
            return Ok(());
        }
        offset -= local;
        let chunk = self.layout.usable as usize - 4;
        let mut i = offset / chunk;
        let mut within = offset % chunk;
        while !out.is_empty() {
            let pgno = self.chain_page(i)?;
            let page = self.bt.pager()?.get(pgno)?;
            let k = out.len().min(chunk - within);
            out[..k].copy_from_slice(&page[4 + within..4 + within + k]);
            out = &mut out[k..];
            within = 0;
            i += 1;
        }
        Ok(())
    }

    /// Where `len` bytes of payload from `offset` on lie: hands page, place on it and number of bytes of each part to `f`.
    pub fn payload_pieces(&mut self, offset: u32, len: u32, mut f: impl FnMut(Pgno, u32, u32)) -> Result<()> {
        if u64::from(offset) + u64::from(len) > u64::from(self.cell.payload) {
            return Err(corrupt());
        }
        let n = self.path.last().ok_or(Code::Internal)?;
        let (mut offset, mut len, local) = (offset, len, self.cell.local);
        if offset < local {
            let k = len.min(local - offset);
            f(n.pgno, self.cell.at + offset, k);
            (offset, len) = (offset + k, len - k);
        }
        let chunk = self.layout.usable - 4;
        while len > 0 {
            let (i, within) = ((offset - local) / chunk, (offset - local) % chunk);
            let k = len.min(chunk - within);
            f(self.chain_page(i as usize)?, 4 + within, k);
            (offset, len) = (offset + k, len - k);
        }
        Ok(())
    }

    /// Appends `len` bytes of payload from `offset` on to a buffer that has room for them. Pages of a long chain that are
    /// not in the cache are read many at a time, and stay outside of it.
    pub fn append_payload(&mut self, offset: u32, len: usize, out: &mut Buf) -> Result<()> {
        if offset as u64 + len as u64 > self.cell.payload as u64 {
            return Err(corrupt());
        }
        let mut push = |bytes: &[u8]| -> Result<()> {
            if out.push(bytes) { Ok(()) } else { Err(Code::Internal.into()) }
        };
        let n = self.path.last().ok_or(Code::Internal)?;
        let (mut offset, mut left) = (offset as usize, len);
        let local = self.cell.local as usize;
        if offset < local {
            let k = left.min(local - offset);
            let at = self.cell.at as usize + offset;
            push(n.page.get(at..at + k).ok_or_else(corrupt)?)?;
            left -= k;
            offset += k;
        }
        if left == 0 {
            return Ok(());
        }
        offset -= local;
        let chunk = self.layout.usable as usize - 4;
        let mut i = offset / chunk;
        let mut within = offset % chunk;
        let mut run = Vec::new();
        let mut most = FIRST_RUN;
        // What is wanted of a page: from `within`, on later pages from the beginning.
        let mut take = |page: &[u8], left: &mut usize, within: &mut usize| {
            let from = 4 + std::mem::take(within);
            let k = (*left).min(chunk + 4 - from);
            *left -= k;
            push(&page[from..from + k])
        };
        while left > 0 {
            let pgno = self.chain_page(i)?;
            let mut pager = self.bt.pager()?;
            if i == offset / chunk && left.div_ceil(chunk) > pager.db_size() as usize {
                return Err(corrupt());
            }
            let wanted = (within + left).div_ceil(chunk);
            let together = match wanted >= FIRST_RUN && !pager.is_cached(pgno) {
                true => pager.read_together(pgno, wanted.min(most), &mut run)?,
                false => None,
            };
            let Some(t) = together else {
                let page = pager.get(pgno)?;
                let next = be::get_u32(&page, 0);
                pager.will_want(next);
                drop(pager);
                take(&page, &mut left, &mut within)?;
                i += 1;
                self.note_next(i, next)?;
                continue;
            };
            drop(pager);
            most = (most * 2).min(LONGEST_RUN);
            for at in 0..t.pages {
                let page = t.page(at, &run);
                let next = be::get_u32(page, 0);
                take(page, &mut left, &mut within)?;
                i += 1;
                self.note_next(i, next)?;
                if next != pgno.wrapping_add(at as Pgno + 1) {
                    most = FIRST_RUN;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Remembers that page `i` of the present chain is `next`, if all before it are known.
    fn note_next(&mut self, i: usize, next: Pgno) -> Result<()> {
        if self.chain.len() == i {
            alloc::reserve(&mut self.chain, 1)?;
            self.chain.push(next);
        }
        Ok(())
    }

    /// Overwrites payload in place: for incremental writes to a blob, whose length stays.
    pub fn write_payload(&mut self, offset: u32, data: &[u8]) -> Result<()> {
        self.may_write()?;
        if self.is_stale() && self.restore()? {
            return Err(Code::Abort.into());
        }
        if offset as u64 + data.len() as u64 > self.cell.payload as u64 {
            return Err(corrupt());
        }
        self.touch()?;
        // Only content changes: the chain stays what it is.
        self.chain_generation = self.generation;
        let mut offset = offset as usize;
        let mut data = data;
        let local = self.cell.local as usize;
        if offset < local {
            let k = data.len().min(local - offset);
            let at = self.cell.at as usize + offset;
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            let (now, rest) = data.split_at(k);
            self.bt.pager()?.edit(n.pgno, &mut n.page, |b| b[at..at + k].copy_from_slice(now))?;
            data = rest;
            offset += k;
        }
        if data.is_empty() {
            return Ok(());
        }
        offset -= local;
        let chunk = self.layout.usable as usize - 4;
        let mut i = offset / chunk;
        let mut within = offset % chunk;
        while !data.is_empty() {
            let pgno = self.chain_page(i)?;
            let mut pager = self.bt.pager()?;
            let mut page = pager.get(pgno)?;
            let k = data.len().min(chunk - within);
            let (now, rest) = data.split_at(k);
            pager.edit(pgno, &mut page, |b| b[4 + within..4 + within + k].copy_from_slice(now))?;
            data = rest;
            within = 0;
            i += 1;
        }
        Ok(())
    }

    /// Page `i` of the present entry's chain; what was walked is remembered.
    fn chain_page(&mut self, i: usize) -> Result<Pgno> {
        let n = self.path.last().ok_or(Code::Internal)?;
        let first = self.cell.overflow(&n.page);
        if first == 0 {
            return Err(corrupt());
        }
        let known = self.chain_of == first && self.chain_generation == self.generation;
        if !known || self.chain.is_empty() {
            self.chain.clear();
            self.chain.push(first);
            self.chain_of = first;
            self.chain_generation = self.generation;
        }
        let pages = (self.cell.payload - self.cell.local).div_ceil(self.layout.usable - 4) as usize;
        if i >= pages {
            return Err(corrupt());
        }
        while self.chain.len() <= i {
            let last = *self.chain.last().ok_or(Code::Internal)?;
            let page = self.bt.pager()?.get(last)?;
            alloc::reserve(&mut self.chain, 1)?;
            self.chain.push(be::get_u32(&page, 0));
        }
        Ok(self.chain[i])
    }
}

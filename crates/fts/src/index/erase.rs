//! Takes entries out of segments where they stand, as the setting `secure-delete` wants it.
//!
//! An entry goes with its rowid and its places, also those in the leaves behind its own. A term that has no rows left goes, too,
//! and with the last term of a leaf what `%_idx` says of the leaf; only the first leaf of a segment keeps that.
//!
//! What always holds: leaves stay, empty ones too, so that those behind them keep their numbers. The index of a doclist's leaves
//! stays as it was: it may name leaves that have no rows any more, and rows that come before the first one there.

use super::Index;
use super::leaf::{Leaf, leaf_id};
use super::position::{push, varint};
use super::segment::{SegmentCursor, Spot};
use super::structure::Structure;
use crate::config::{Detail, VERSION_SECURE};
use crate::store::{Sql, Store};
use iolite_base::Result;
use iolite_value::Value;

/// What a leaf has before its content.
const HEADER: usize = 4;

/// A leaf that is being changed.
struct Page {
    bytes: Vec<u8>,
    /// Where its terms stand.
    terms: Vec<usize>,
    had_terms: bool,
}

impl Page {
    fn new(leaf: &Leaf) -> Option<Page> {
        let (mut terms, mut term, mut at) = (Vec::new(), 0usize, leaf.size);
        while at < leaf.bytes.len() {
            term = term.checked_add(usize::try_from(varint(&leaf.bytes, &mut at)?).ok()?)?;
            if term < HEADER || term >= leaf.size {
                return None;
            }
            terms.push(term);
        }
        Some(Page { bytes: leaf.bytes[..leaf.size].to_vec(), had_terms: !terms.is_empty(), terms })
    }

    fn set_first_row(&mut self, at: u16) {
        self.bytes[..2].copy_from_slice(&at.to_be_bytes());
    }

    /// Puts `with` in the place of some bytes, which are not fewer; terms behind them move. `None`: damage.
    fn replace(&mut self, from: usize, to: usize, with: &[u8]) -> Option<()> {
        let shorter = to.checked_sub(from)?.checked_sub(with.len())?;
        for t in self.terms.iter_mut().filter(|t| **t > from) {
            *t = t.checked_sub(shorter).filter(|_| *t >= to)?;
        }
        self.bytes.splice(from..to, with.iter().copied());
        Some(())
    }

    /// Takes out a term that has no rows, or whose only entry ends at `next`. `None`: damage.
    fn remove_term(&mut self, n: usize, next: usize, term: &[u8]) -> Option<()> {
        let from = self.terms[n];
        if next == self.bytes.len() {
            self.terms.remove(n);
            return self.replace(from, next, &[]);
        }
        // The next term shares its first bytes with this one: it will share those that this one shares with the one before it.
        let mut at = next;
        let kept = usize::try_from(varint(&self.bytes, &mut at)?).ok()?;
        let own = usize::try_from(varint(&self.bytes, &mut at)?).ok()?;
        let text = self.bytes.get(at..at.checked_add(own)?)?;
        let mut with = Vec::new();
        let mut keep = 0;
        if n > 0 {
            keep = usize::try_from(varint(&self.bytes, &mut from.clone())?).ok()?.min(kept);
            push(&mut with, keep as u64);
        }
        let shared = term.get(keep..kept)?;
        push(&mut with, (shared.len() + own) as u64);
        with.extend_from_slice(shared);
        with.extend_from_slice(text);
        if self.terms.get(n + 1) != Some(&next) {
            return None;
        }
        self.terms.remove(n + 1);
        self.replace(from, at + own, &with)
    }

    fn write(mut self, store: &Store, segment: u32, page: u32) -> Result<()> {
        let size = self.bytes.len() as u16;
        self.bytes[2..HEADER].copy_from_slice(&size.to_be_bytes());
        let mut last = 0;
        for t in &self.terms {
            push(&mut self.bytes, (t - last) as u64);
            last = *t;
        }
        if self.had_terms && self.terms.is_empty() && page != 1 {
            store.run(Sql::DeletePage, &[Value::Int(segment.into()), Value::Int(page.into())])?;
        }
        store.write(leaf_id(segment, page), &self.bytes)
    }
}

fn read(store: &Store, segment: u32, page: u32) -> Result<Leaf> {
    let id = leaf_id(segment, page);
    Leaf::new(store.block(id)?).ok_or_else(|| store.corrupt_block(id))
}

/// Where an entry begins in its leaf, and its rowid as it stands there.
fn begin(spot: &Spot, detail: Detail) -> Option<(usize, u64)> {
    let bytes = &spot.leaf.bytes[..spot.leaf.size];
    let mut at = if spot.page == spot.term_page { spot.term_rows } else { spot.leaf.first_rowid()? };
    loop {
        let start = at;
        let rowid = varint(bytes, &mut at)?;
        let mut size = 0;
        if detail == Detail::None {
            for _ in 0..2 {
                at += (at < spot.end && bytes.get(at) == Some(&0)) as usize;
            }
        } else {
            size = usize::try_from(varint(bytes, &mut at)? >> 1).ok()?;
        }
        if at >= spot.data {
            return (at == spot.data).then_some((start, rowid));
        }
        at += size;
    }
}

/// Takes places out of the leaves behind an entry's own; answers whether the doclist ends there.
fn erase_rest(store: &Store, spot: &Spot, detail: Detail) -> Result<bool> {
    let segment = spot.segment.id;
    for n in spot.page + 1..=spot.segment.last {
        let corrupt = || store.corrupt_page(segment, n);
        let leaf = read(store, segment, n)?;
        let mut page = Page::new(&leaf).ok_or_else(corrupt)?;
        let (row, size) = (leaf.first_rowid(), leaf.size);
        let next = row.or(page.terms.first().copied());
        let end = next.unwrap_or(size);
        if end < HEADER || next == Some(size) || end > size || page.terms.first().is_some_and(|t| *t < end) {
            return Err(corrupt());
        }
        if end > HEADER && detail != Detail::None {
            page.replace(HEADER, end, &[]).ok_or_else(corrupt)?;
            if row.is_some() {
                page.set_first_row(HEADER as u16);
            }
            page.write(store, segment, n)?;
        }
        if next.is_some() {
            return Ok(row.is_none());
        }
    }
    Ok(true)
}

/// The last row of a doclist is about to go that is the first thing in its leaf. If there are no others before it, its term goes.
fn remove_bare_term(store: &Store, spot: &Spot) -> Result<()> {
    let segment = spot.segment.id;
    for n in spot.term_page + 1..spot.page {
        if store.block(leaf_id(segment, n))?.len() != HEADER {
            return Ok(());
        }
    }
    let leaf = read(store, segment, spot.term_page)?;
    if leaf.size != spot.term_rows {
        return Ok(());
    }
    let corrupt = || store.corrupt_page(segment, spot.term_page);
    let mut page = Page::new(&leaf).ok_or_else(corrupt)?;
    let last = page.terms.len().checked_sub(1).ok_or_else(corrupt)?;
    page.remove_term(last, leaf.size, &spot.term).ok_or_else(corrupt)?;
    page.write(store, segment, spot.term_page)
}

/// Takes out an entry.
fn erase(store: &Store, spot: &Spot, detail: Detail) -> Result<()> {
    let corrupt = || store.corrupt_page(spot.segment.id, spot.page);
    let mut page = Page::new(&spot.leaf).ok_or_else(corrupt)?;
    let size = spot.leaf.size;
    let (start, rowid) = begin(spot, detail).ok_or_else(corrupt)?;
    let next = spot.next.min(size);
    let last = if next == size { erase_rest(store, spot, detail)? } else { next == spot.end };
    let mut with = Vec::new();
    if spot.deleted {
        // It takes the row out of older segments: that stays.
        push(&mut with, rowid);
        with.push((detail != Detail::None) as u8);
        page.replace(start, next, &with).ok_or_else(corrupt)?;
        return page.write(store, spot.segment.id, spot.page);
    }
    if spot.leaf.first_rowid() == Some(start) && (last || next == size) {
        page.set_first_row(0);
    }
    if !last {
        let mut to = next;
        if next < size {
            let delta = varint(&page.bytes, &mut to).ok_or_else(corrupt)?;
            push(&mut with, rowid.wrapping_add(delta));
        }
        page.replace(start, to, &with).ok_or_else(corrupt)?;
    } else if spot.page == spot.term_page && start == spot.term_rows {
        let n = page.terms.partition_point(|t| *t <= start).checked_sub(1).ok_or_else(corrupt)?;
        page.remove_term(n, next, &spot.term).ok_or_else(corrupt)?;
    } else {
        if start == HEADER {
            remove_bare_term(store, spot)?;
        }
        page.replace(start, next, &[]).ok_or_else(corrupt)?;
    }
    page.write(store, spot.segment.id, spot.page)
}

impl Index {
    /// Takes a term of a row out of the segments. What hides older entries of the row stays.
    pub(super) fn erase(&self, structure: &Structure, term: &[u8], rowid: i64) -> Result<()> {
        let settings = &self.config.settings;
        if settings.version.get() != VERSION_SECURE {
            self.store.run(Sql::WriteConfig, &[Value::text("version")?, Value::Int(VERSION_SECURE)])?;
            settings.version.set(VERSION_SECURE);
            settings.cookie.set(settings.cookie.get().wrapping_add(1));
        }
        for g in structure.newest_first() {
            let mut c = SegmentCursor::term(&self.store, g, term, false)?;
            if !c.eof && c.rowid < rowid {
                c.advance(rowid)?;
            }
            if c.eof || c.rowid != rowid {
                continue;
            }
            if let Some(spot) = c.spot() {
                erase(&self.store, &spot, self.config.detail)?;
                if spot.deleted {
                    break;
                }
            }
        }
        Ok(())
    }
}

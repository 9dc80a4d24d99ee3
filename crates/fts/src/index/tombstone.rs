//! Rows that are deleted from a segment of a contentless table: hash tables of rowids beside the segment.
//!
//! ```text
//! u8 size of a slot, 4 or 8 | u8 whether rowid 0 is in it | u16 - | u32 how many there are | slots
//! ```
//!
//! A rowid belongs to the page that its remainder says. What always holds: a slot of zero is free, and half of a page's are.

use super::leaf::tombstone_id;
use super::structure::Segment;
use crate::store::Store;
use iolite_base::{Bytes, Result};

const HEADER: usize = 8;
/// The least that a page has of slots.
const LEAST_SLOTS: usize = 32;

/// A page of slots, as bytes.
struct Page<'p>(&'p [u8]);

impl Page<'_> {
    fn width(&self) -> usize {
        if self.0.first() == Some(&4) { 4 } else { 8 }
    }

    fn slots(&self) -> usize {
        if self.0.len() > 16 { (self.0.len() - HEADER) / self.width() } else { 1 }
    }

    fn slot(&self, n: usize) -> u64 {
        let at = HEADER + n * self.width();
        match self.0.get(at..at + self.width()) {
            Some(b) => b.iter().fold(0, |n, x| n << 8 | u64::from(*x)),
            None => 0,
        }
    }

    fn count(&self) -> usize {
        self.0.get(4..8).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
    }

    fn has(&self, rowid: u64, pages: u64) -> bool {
        if rowid == 0 {
            return self.0.get(1).is_some_and(|b| *b != 0);
        }
        let slots = self.slots();
        let mut n = (rowid / pages) as usize % slots;
        for _ in 0..=slots {
            match self.slot(n) {
                0 => return false,
                r if r == rowid => return true,
                _ => n = (n + 1) % slots,
            }
        }
        true
    }

    fn rowids(&self) -> impl Iterator<Item = u64> + '_ {
        let zero = self.0.get(1).is_some_and(|b| *b != 0).then_some(0);
        (0..self.slots()).map(|n| self.slot(n)).filter(|r| *r != 0).chain(zero)
    }
}

fn empty(width: usize, slots: usize) -> Vec<u8> {
    let mut page = vec![0; HEADER + slots * width];
    page[0] = width as u8;
    page
}

/// Why a rowid does not go into a page.
#[derive(PartialEq, Eq)]
enum Refusal {
    Full,
}

/// Puts a rowid into a page of several.
fn put(page: &mut [u8], rowid: u64, pages: u64, force: bool) -> Result<(), Refusal> {
    let p = Page(page);
    let (width, slots, count) = (p.width(), p.slots(), p.count());
    if width == 4 && rowid > u32::MAX.into() {
        return Err(Refusal::Full);
    }
    if rowid == 0 {
        page[1] = 1;
        return Ok(());
    }
    if !force && count >= slots / 2 {
        return Err(Refusal::Full);
    }
    let mut n = (rowid / pages) as usize % slots;
    let mut tried = 0;
    while Page(page).slot(n) != 0 {
        n = (n + 1) % slots;
        tried += 1;
        if tried > slots {
            return Err(Refusal::Full);
        }
    }
    page[4..8].copy_from_slice(&(count as u32 + 1).to_be_bytes());
    let at = HEADER + n * width;
    page[at..at + width].copy_from_slice(&rowid.to_be_bytes()[8 - width..]);
    Ok(())
}

/// Looks rowids up.
pub(crate) struct Reader {
    segment: u32,
    pages: Vec<Option<Bytes>>,
}

impl Reader {
    /// A reader, if the segment has any tombstones.
    pub fn new(s: &Segment) -> Option<Reader> {
        (s.tombstone_pages > 0)
            .then(|| Reader { segment: s.id, pages: vec![None; s.tombstone_pages as usize] })
    }

    /// Whether a row is deleted.
    pub fn has(&mut self, store: &Store, rowid: i64) -> Result<bool> {
        let count = self.pages.len() as u64;
        let n = (rowid as u64 % count) as usize;
        if self.pages[n].is_none() {
            let page = store.find(tombstone_id(self.segment, n as u32))?;
            self.pages[n] = Some(page.unwrap_or(Bytes::copy_of(&[])?));
        }
        let page = self.pages[n].as_deref().unwrap_or_default();
        Ok(page.len() >= HEADER && Page(page).has(rowid as u64, count))
    }
}

/// Marks a row of a segment as deleted.
pub(crate) fn add(store: &Store, s: &mut Segment, rowid: i64) -> Result<()> {
    let rowid = rowid as u64;
    let mut width = 4;
    if s.tombstone_pages > 0 {
        let count = u64::from(s.tombstone_pages);
        let n = (rowid % count) as u32;
        let id = tombstone_id(s.id, n);
        if let Some(block) = store.find(id)?.filter(|b| b.len() >= HEADER) {
            let mut page = block.to_vec();
            width = Page(&page).width();
            if put(&mut page, rowid, count, false).is_ok() {
                return store.write(id, &page);
            }
        }
    }
    if rowid > u32::MAX.into() {
        width = 8;
    }
    let mut pages = rebuilt(store, s, width)?;
    let count = pages.len() as u64;
    let _ = put(&mut pages[(rowid % count) as usize], rowid, count, true);
    for (n, page) in pages.iter().enumerate() {
        store.write(tombstone_id(s.id, n as u32), page)?;
    }
    s.tombstone_pages = pages.len() as u32;
    Ok(())
}

/// The tombstones of a segment in larger pages, or more of them.
fn rebuilt(store: &Store, s: &Segment, width: usize) -> Result<Vec<Vec<u8>>> {
    let most = LEAST_SLOTS.max((store.config.settings.page_size.get() - HEADER) / width);
    let mut old = Vec::new();
    for n in 0..s.tombstone_pages {
        if let Some(b) = store.find(tombstone_id(s.id, n))?.filter(|b| b.len() >= HEADER) {
            old.push(b);
        }
    }
    let (mut count, mut slots) = match s.tombstone_pages {
        0 => (1, LEAST_SLOTS),
        1 => {
            let wanted = old.first().map_or(0, |b| Page(b).count() * 4).max(LEAST_SLOTS);
            if wanted > most { (3, most) } else { (1, wanted) }
        }
        n => (n as usize * 2 + 1, most),
    };
    loop {
        let mut pages = vec![empty(width, slots); count];
        let mut rowids = old.iter().flat_map(|b| Page(b).rowids().collect::<Vec<_>>());
        if rowids.all(|r| put(&mut pages[(r % count as u64) as usize], r, count as u64, false).is_ok()) {
            return Ok(pages);
        }
        (count, slots) = (count * 2 + 1, most);
    }
}

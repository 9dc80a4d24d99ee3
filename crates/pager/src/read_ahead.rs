//! Reading ahead for a scan: pages that follow each other in the file come with one call of the system.
//!
//! A scan of a table asks for one leaf after the other. A call for each page costs as much as the copying does, and in a database
//! larger than the cache each new page pushes out another one that has to be found first, while the memory of the pages that the
//! scan has left lies in the processor's caches still. So the scan says which pages come next, and which it has left.
//!
//! Pages that come for the first time are let go in this way once the cache has its first share ([`crate::former`]).
//!
//! In company, a scan leaves its pages for the other sessions as long as there is room for them, and pushes none of theirs out: to pass
//! each page through the shared ones took twice as long as reading it.
//!
//! What always holds: only what the scan itself had read ahead leaves early. Reading ahead is a hint: where it fails or a page is
//! elsewhere (log, cache, another session), the page is read when it is wanted.

use crate::pager::Pager;
use crate::table::{DIRTY, RECENT};
use iolite_base::{Buf, PageData, Pgno, Result};
use std::ops::Range;

/// The most bytes that are read at once.
const MOST: usize = 64 << 10;
/// How often a scan that asks in vain does not ask at the most, before it tries again.
const MOST_SKIPS: u32 = 16;

/// A scan, as the pager knows it.
#[derive(Default)]
pub struct Scan {
    /// What it has read ahead last.
    ahead: Range<Pgno>,
    /// A page that was to leave, and was held: a register has a text that lies in it.
    held: Option<Pgno>,
    /// How often it does not ask now, and how often it did not after it had asked in vain last.
    skips: u32,
    skipped: u32,
}

impl Scan {
    /// Whether a page is among those that were read ahead last.
    #[inline]
    pub fn has_read(&self, pgno: Pgno) -> bool {
        self.ahead.contains(&pgno)
    }
}

impl Pager {
    /// Reads pages ahead for a scan, as many of `pages` from the first on (`back`: from the last one) as lie together in the file and
    /// are not cached. The scan has left what was read ahead for it before.
    pub fn read_ahead(&mut self, pages: Range<Pgno>, back: bool, scan: &mut Scan) {
        if scan.skips > 0 {
            scan.skips -= 1;
            return;
        }
        let n = self.pages_ahead(&pages, back);
        let first = if back { pages.end - n as Pgno } else { pages.start };
        let behind = std::mem::take(&mut scan.ahead);
        if n == 0 {
            scan.skipped = (scan.skipped * 2).clamp(1, MOST_SKIPS);
            scan.skips = scan.skipped;
            return;
        }
        scan.skipped = 0;
        if self.is_full_for(first, n) {
            let held = scan.held.take();
            scan.held = behind.chain(held).filter(|p| !self.let_go(*p)).last();
        }
        // One alone is read when it is wanted.
        let mut done = 1;
        if n > 1 {
            let mut bytes = std::mem::take(&mut self.ahead);
            if let Ok(true) = self.read_file(first, n, &mut bytes) {
                done = self.keep_ahead(first, n, &bytes).unwrap_or(0);
            }
            self.ahead = bytes;
        }
        scan.ahead = first..first + done;
    }

    /// How many of some pages may be read ahead: up to the first one that is elsewhere.
    fn pages_ahead(&mut self, pages: &Range<Pgno>, back: bool) -> usize {
        let next = if back { pages.end.saturating_sub(1) } else { pages.start };
        if !self.reads_runs() || self.is_shared(next) {
            return 0;
        }
        let most = (MOST / self.page_size as usize).min(self.cache_target / 4);
        let mut wanted = |p: &Pgno| {
            (1..=self.db_size).contains(p)
                && self.table.find(*p).is_none()
                && self.is_in_file(*p).unwrap_or(false)
        };
        match back {
            true => pages.clone().rev().take(most).take_while(&mut wanted).count(),
            false => pages.clone().take(most).take_while(&mut wanted).count(),
        }
    }

    /// Whether another session has left a page for this one, and probably those that follow.
    fn is_shared(&mut self, pgno: Pgno) -> bool {
        match (self.shared_name(pgno), &self.share) {
            (Ok(Some((era, frame))), Some(share)) => share.get(era, pgno, frame).is_some(),
            _ => false,
        }
    }

    /// Lets go a page that nobody has changed; `false`: somebody holds it.
    fn let_go(&mut self, pgno: Pgno) -> bool {
        let Some(i) = self.table.find(pgno) else { return true };
        let slot = self.table.slot(i);
        let held = slot.buf().is_some_and(|b| b.refs() > 1);
        if !held && slot.flags & DIRTY == 0 {
            self.table.remove(pgno);
            self.former.note(pgno, self.cache_target);
        }
        !held
    }

    /// Puts what was read into the table; answers how many pages.
    fn keep_ahead(&mut self, first: Pgno, n: usize, bytes: &[u8]) -> Result<Pgno> {
        let mut done = 0;
        let mut offer = Vec::new();
        for page in bytes.chunks_exact(self.page_size as usize).take(n) {
            let pgno = first + done;
            self.make_room()?;
            // Making room may have read it: a journal takes the neighbours of a page along.
            if self.table.find(pgno).is_none() {
                let page = PageData::copy_of(page)?;
                if let Some((era, frame)) = self.shared_name(pgno)? {
                    offer.push((era, pgno, frame, page.clone()));
                }
                let i = self.table.insert(pgno, Buf::of_page(page)?)?;
                // Nobody has used it yet, but somebody will.
                self.table.slot_mut(i).flags |= RECENT;
                self.stats.misses += 1;
            }
            done += 1;
        }
        if let Some(share) = &self.share {
            share.offer(&offer);
        }
        Ok(done)
    }
}

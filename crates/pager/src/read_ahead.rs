//! Reading ahead for a scan: pages that follow each other in the file come with one call of the system.
//!
//! A scan of a table asks for one leaf after the other. A call for each page costs as much as the copying does, and in a database
//! larger than the cache each new page pushes out another one that has to be found first, while the memory of the pages that the
//! scan has left lies in the processor's caches still. So the scan says which pages come next, and which it has left.
//!
//! Memory that is touched for the first time is dear, too: filling a cache of 64 MB took 40 of the 90 ms that a first scan of 147 MB
//! took. So a first scan keeps a small part of the cache, and lets go what is behind it; a tree that is scanned again fills the cache.
//!
//! What always holds: only what the scan itself had read ahead leaves early. Reading ahead is a hint: where it fails or a page is
//! elsewhere (log, cache, another session), the page is read when it is wanted.

use crate::pager::{Kind, Pager};
use crate::table::DIRTY;
use iolite_base::{Buf, PageData, Pgno, Result};
use std::ops::Range;

/// The most bytes that are read at once.
const MOST: usize = 64 << 10;
/// The share of the cache that a first scan fills: one of so many.
const SHARE: usize = 16;
/// Roots that are remembered as scanned before.
const ROOTS: usize = 16;

/// A scan, as the pager knows it.
#[derive(Default)]
pub struct Scan {
    /// How many pages it has read ahead.
    pages: usize,
    /// Whether it lets go what is behind it, once that is decided.
    lets_go: Option<bool>,
    /// What it has read ahead last.
    ahead: Range<Pgno>,
    /// A page that was to leave, and was held: a register has a text that lies in it.
    held: Option<Pgno>,
}

impl Scan {
    /// Whether a page is among those that were read ahead last.
    #[inline]
    pub fn has_read(&self, pgno: Pgno) -> bool {
        self.ahead.contains(&pgno)
    }
}

impl Pager {
    /// Reads pages ahead for a scan of the tree at `root`, as many of `pages` from the first on as lie together in the file and are
    /// not cached. The scan has left what was read ahead for it before.
    pub fn read_ahead(&mut self, pages: Range<Pgno>, root: Pgno, scan: &mut Scan) {
        let first = pages.start;
        let n = self.pages_ahead(&pages);
        let behind = std::mem::take(&mut scan.ahead);
        if n == 0 {
            return;
        }
        if scan.lets_go.is_none() && scan.pages >= self.cache_target / SHARE {
            scan.lets_go = Some(self.is_first_scan(root));
        }
        if scan.lets_go == Some(true) || self.table.len() + n > self.cache_target {
            let held = scan.held.take();
            scan.held = behind.chain(held).filter(|p| !self.let_go(*p)).last();
        }
        // One alone is read when it is wanted.
        let mut done = 1;
        if n > 1 {
            let mut bytes = std::mem::take(&mut self.ahead);
            if let Ok(true) = self.read_run(first, n, &mut bytes) {
                done = self.keep_ahead(first, n, &bytes).unwrap_or(0);
            }
            self.ahead = bytes;
        }
        scan.ahead = first..first + done;
        scan.pages += done as usize;
    }

    /// How many of some pages may be read ahead.
    fn pages_ahead(&self, pages: &Range<Pgno>) -> usize {
        let shared = self.share.as_ref().is_some_and(|s| s.in_company());
        if self.kind != Kind::File || shared {
            return 0;
        }
        let most = (MOST / self.page_size as usize).min(self.cache_target / 4);
        let end = pages.end.min(self.db_size.saturating_add(1));
        (pages.start..end).take(most).take_while(|p| self.table.find(*p).is_none()).count()
    }

    /// Whether a tree was not scanned before; it was from now on.
    fn is_first_scan(&mut self, root: Pgno) -> bool {
        if self.scanned.contains(&root) {
            return false;
        }
        self.scanned.truncate(ROOTS - 1);
        self.scanned.insert(0, root);
        true
    }

    /// Lets go a page that nobody has changed; `false`: somebody holds it.
    fn let_go(&mut self, pgno: Pgno) -> bool {
        let Some(i) = self.table.find(pgno) else { return true };
        let slot = self.table.slot(i);
        let held = slot.buf().is_some_and(|b| b.refs() > 1);
        if !held && slot.flags & DIRTY == 0 {
            self.table.remove(pgno);
        }
        !held
    }

    /// Puts what was read into the table; answers how many pages.
    fn keep_ahead(&mut self, first: Pgno, n: usize, bytes: &[u8]) -> Result<Pgno> {
        let mut done = 0;
        for page in bytes.chunks_exact(self.page_size as usize).take(n) {
            self.make_room()?;
            let pgno = first + done;
            // Making room may have read it: a journal takes the neighbours of a page along.
            if self.table.find(pgno).is_none() {
                self.table.insert(pgno, Buf::of_page(PageData::copy_of(page)?)?)?;
                self.stats.misses += 1;
            }
            done += 1;
        }
        Ok(done)
    }
}

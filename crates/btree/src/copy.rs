//! Copying whole databases: backup page by page, and the last step of VACUUM.
//!
//! What always holds: the source is read in one snapshot per step; if others changed it since the step before, copying begins
//! again. What the source's own connection commits between steps is told to the backup ([`Watch`]), and those pages are copied
//! anew with the next step; after a rollback copying begins again. The destination is written in one transaction, which
//! commits when all pages are there.

use crate::btree::Btree;
use iolite_base::{Code, Pgno, Result, be, hash::FastSet};
use iolite_pager::{JournalMode, TxnState};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What the source's own connection has changed since the last step.
#[derive(Default)]
pub(crate) struct Watch {
    pages: RefCell<FastSet<Pgno>>,
    /// Anything may have changed.
    all: Cell<bool>,
}

impl Watch {
    pub(crate) fn note(&self, pages: &FastSet<Pgno>, all: bool) {
        self.pages.borrow_mut().extend(pages);
        self.all.set(self.all.get() | all);
    }
}

/// A backup in progress (`sqlite3_backup`).
pub struct Backup {
    to: Btree,
    from: Btree,
    /// The page to copy next.
    next: Pgno,
    total: Pgno,
    /// The source as the last step saw it: a number that others' changes raise, and the size of its pages.
    seen: Option<(u32, u32)>,
    watch: Rc<Watch>,
    writing: bool,
    done: bool,
}

impl Backup {
    /// A backup of `from` into `to`. Nothing is read or locked yet.
    pub fn new(to: &Btree, from: &Btree) -> Result<Backup> {
        if to.txn_state() != TxnState::None {
            return Err(iolite_base::Error::sql("destination database is in use"));
        }
        Ok(Backup {
            to: to.clone(),
            from: from.clone(),
            next: 1,
            total: 0,
            seen: None,
            watch: Rc::default(),
            writing: false,
            done: false,
        })
    }

    /// Copies up to `pages` pages (all, if negative). `true`: the backup is complete and committed.
    /// `SQLITE_BUSY` and `SQLITE_LOCKED` may be tried again.
    pub fn step(&mut self, pages: i32) -> Result<bool> {
        if self.done {
            return Ok(true);
        }
        // Whoever shares the cache and writes: what is not committed is no part of a copy.
        if self.from.pager_state() == TxnState::Write {
            return Err(Code::Busy.into());
        }
        let _reading = self.from.read_guard()?;
        self.step_in_snapshot(pages)
    }

    fn step_in_snapshot(&mut self, pages: i32) -> Result<bool> {
        if !self.writing {
            self.to.begin_read()?;
            if self.to.page_count() == 0 {
                // An empty destination takes the source's page size.
                self.to.end_read();
                self.to.set_page_size(self.from.page_size(), Some(self.from.reserved()))?;
            }
            self.to.begin_write(true)?;
            self.writing = true;
            self.from.0.watchers.borrow_mut().push(Rc::downgrade(&self.watch));
            self.from.pager()?.watch_changes(true);
        }
        let version = (self.from.data_version(), self.from.page_size());
        let others = self.seen.replace(version) != Some(version);
        let changed = self.watch.pages.take();
        // As stock has it: a commit to a database in memory begins the copy anew.
        let in_memory = self.from.is_memory() || self.from.is_transient();
        if self.watch.all.take() || others || in_memory && !changed.is_empty() {
            self.next = 1;
        }
        let total = self.from.page_count();
        if total > 0 {
            self.to.check_page_size(&self.from)?;
        }
        self.total = total;
        self.next = self.next.min(total + 1);
        let lock = self.from.pager()?.lock_page();
        for &p in changed.iter().filter(|p| **p < self.next && **p != lock) {
            let page = self.from.read_page(p)?;
            self.to.put_source_page(p, &page)?;
        }
        let mut left = if pages < 0 { u32::MAX } else { pages as u32 };
        while self.next <= self.total && left > 0 {
            if self.next != lock {
                let page = self.from.read_page(self.next)?;
                self.to.put_source_page(self.next, &page)?;
            }
            self.next += 1;
            left -= 1;
        }
        if self.next <= self.total {
            return Ok(false);
        }
        self.finish()?;
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        if self.total == 0 {
            self.to.make_bare()?;
        } else {
            // Its first page has changed with every commit of the source.
            let page = self.from.read_page(1)?;
            self.to.put_source_page(1, &page)?;
            self.to.fit_to_source(self.total, self.from.page_size())?;
        }
        let wal = self.total > 0 && be::get_u16(&self.from.read_page(1)?, 18) == 0x0202;
        self.to.commit()?;
        self.writing = false;
        self.done = true;
        if self.to.page_size() != self.from.page_size() {
            // Learn the new page size.
            self.to.begin_read()?;
            self.to.end_read();
        }
        if wal && !self.to.is_transient() {
            // The copy is complete; where there can be no log, or others read already, it stays without one.
            let _ = self.to.set_journal_mode(JournalMode::Wal);
        }
        Ok(())
    }

    /// Pages of the source at the last step.
    pub fn page_count(&self) -> Pgno {
        self.total
    }

    /// Pages still to copy, as of the last step.
    pub fn remaining(&self) -> Pgno {
        if self.done { 0 } else { self.total + 1 - self.next.min(self.total + 1) }
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        if self.writing {
            let _ = self.to.rollback(true);
        }
    }
}

impl Btree {
    /// Makes this database a copy of another: all pages, in one transaction.
    pub fn copy_from(&self, from: &Btree) -> Result<()> {
        let mut b = Backup::new(self, from)?;
        while !b.step(-1)? {}
        Ok(())
    }

    /// Makes the content of this database that of `from`, within the write transaction that is open here,
    /// which may still be taken back: the last step of VACUUM. The page size may change thereby (not in WAL
    /// mode).
    pub fn replace_content(&self, from: &Btree) -> Result<()> {
        from.begin_read()?;
        let total = from.page_count();
        let lock = from.pager()?.lock_page();
        self.check_page_size(from)?;
        for p in 1..=total {
            if p != lock {
                let page = from.read_page(p)?;
                self.put_source_page(p, &page)?;
            }
        }
        self.fit_to_source(total, from.page_size())
    }

    /// Leaves nothing of the content but an empty first page.
    fn make_bare(&self) -> Result<()> {
        let mut pager = self.pager()?;
        pager.refuse_direct();
        pager.truncate_image(1)?;
        let mut p1 = pager.get(1)?;
        self.0.write_first_page(&mut pager, &mut p1)?;
        drop(pager);
        let size = self.page_size();
        self.fit_to_source(1, size)
    }

    /// Pages of another size can be written as the bytes they are, if a file is behind them and no log.
    fn check_page_size(&self, from: &Btree) -> Result<()> {
        let pager = self.pager()?;
        if pager.page_size() != from.page_size() && (pager.is_transient() || pager.is_wal()) {
            return Err(Code::Readonly.into());
        }
        Ok(())
    }

    /// Writes a page of the source where its bytes belong.
    fn put_source_page(&self, number: Pgno, data: &[u8]) -> Result<()> {
        let mut pager = self.pager()?;
        pager.refuse_direct();
        let size = pager.page_size() as u64;
        let from = (number as u64 - 1) * data.len() as u64;
        let to = from + data.len() as u64;
        let mut at = from;
        while at < to {
            let pgno = (at / size) as Pgno + 1;
            let within = (at % size) as usize;
            let n = (size as usize - within).min((to - at) as usize);
            let piece = &data[(at - from) as usize..(at - from) as usize + n];
            at += n as u64;
            if pgno == pager.lock_page() {
                continue;
            }
            let mut page =
                if pgno > pager.db_size() { pager.extend(pgno, None)? } else { pager.get(pgno)? };
            pager.edit(pgno, &mut page, |b| {
                // Whether there is a log is the destination's own affair, and its counters of changes and of schemas go on:
                // others who have an older state in memory would believe it where a count came again.
                let versions = [b[18], b[19]];
                let counter: [u8; 4] = b[24..28].try_into().expect("four bytes");
                let cookie: [u8; 4] = b[40..44].try_into().expect("four bytes");
                b[within..within + n].copy_from_slice(piece);
                if pgno == 1 && within == 0 {
                    b[18..20].copy_from_slice(if versions[0] == 0 { &[1, 1] } else { &versions });
                    b[24..28].copy_from_slice(&counter);
                    b[40..44].copy_from_slice(&cookie);
                }
            })?;
        }
        Ok(())
    }

    /// All pages of the source are here: nothing else must be.
    fn fit_to_source(&self, total: Pgno, source_size: u32) -> Result<()> {
        let mut pager = self.pager()?;
        let bytes = total as u64 * source_size as u64;
        let pages = bytes.div_ceil(pager.page_size() as u64) as Pgno;
        if pager.db_size() > pages {
            pager.truncate_image(pages)?;
        }
        let foreign = pager.page_size() != source_size;
        drop(pager);
        // Prepared statements of other connections notice by the cookie.
        let cookie = self.0.header_u32(40)?;
        self.0.set_header_u32(40, cookie.wrapping_add(1))?;
        self.0.bump_all();
        if foreign {
            return self.pager()?.set_foreign_image(total, bytes);
        }
        let reserved = self.0.header_page()?[20];
        self.pager()?.set_reserved_by_content(reserved);
        self.0.refresh()
    }
}

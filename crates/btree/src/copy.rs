//! Copying whole databases: backup page by page, and the last step of VACUUM.
//!
//! What always holds: the source is read in one snapshot per step; if it changed since the step before (other
//! than through a backup that was told of it), copying begins again. The destination is written in one
//! transaction, which commits when all pages are there.

use crate::btree::Btree;
use iolite_base::{Code, Pgno, Result};
use iolite_pager::TxnState;

/// A backup in progress (`sqlite3_backup`).
pub struct Backup {
    to: Btree,
    from: Btree,
    /// The page to copy next.
    next: Pgno,
    total: Pgno,
    /// The source as the last step saw it.
    seen: Option<(u32, u32)>,
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
        let was_open = self.from.txn_state() == TxnState::None;
        if self.from.txn_state() == TxnState::Write {
            return Err(Code::Busy.into());
        }
        self.from.begin_read()?;
        let done = self.step_in_snapshot(pages);
        if was_open {
            self.from.end_read();
        }
        done
    }

    fn step_in_snapshot(&mut self, pages: i32) -> Result<bool> {
        if !self.writing {
            self.to.begin_read()?;
            if self.to.page_count() == 0 {
                // An empty destination takes the source's page size.
                self.to.end_read();
                self.to.set_page_size(self.from.page_size(), Some(self.from.reserved()))?;
            }
            self.to.check_page_size(&self.from)?;
            self.to.begin_write(true)?;
            self.writing = true;
        }
        let version = (self.from.data_version(), self.from.change_counter()?);
        if self.seen.replace(version).is_some_and(|old| old != version) {
            self.next = 1;
        }
        self.total = self.from.page_count();
        let lock = self.from.pager()?.lock_page();
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
        self.to.fit_to_source(self.total, self.from.page_size())?;
        self.to.commit()?;
        self.writing = false;
        self.done = true;
        if self.to.page_size() != self.from.page_size() {
            // Learn the new page size.
            self.to.begin_read()?;
            self.to.end_read();
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
                // Whether there is a log is the destination's own affair.
                let versions = [b[18], b[19]];
                b[within..within + n].copy_from_slice(piece);
                if pgno == 1 && within == 0 {
                    b[18..20].copy_from_slice(if versions[0] == 0 { &[1, 1] } else { &versions });
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
        self.0.refresh()
    }
}

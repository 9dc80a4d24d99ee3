//! Fetching pages, changing them, and making room.
//!
//! What always holds: a page is changed in place only while the table and the one who changes it are its only
//! holders; whoever else held it keeps the bytes he saw. Before the first change under an undo level, the
//! image is saved for it; before the first change of a transaction, the original is in the rollback journal.

use crate::former::first_share;
use crate::journal::{Journal, Site};
use crate::pager::{Kind, Pager, State};
use crate::table::{DIRTY, DONT_WRITE, RECENT};
use crate::types::*;
use iolite_base::bytes::{fill_bytes, fill_from, zero_fill};
use iolite_base::{Buf, Code, PageData, Pgno, Result, alloc, hash::FastSet};
use iolite_os::{FileKind, LockLevel, OpenFlags};
use std::mem::MaybeUninit;
use std::sync::Arc;

#[allow(unsafe_code)]
mod in_place {
    use iolite_base::Buf;

    /// The bytes of a page that the page table also holds, to be changed.
    #[inline(always)]
    pub fn bytes<'a>(page: &'a mut Buf, _table: &'a mut crate::table::PageTable) -> Option<&'a mut [u8]> {
        // SAFETY: the other holder is the slot in the table (`Pager::prepare` saw to that), and the table is
        // borrowed mutably for as long as the bytes are, so it cannot hand the page out meanwhile.
        unsafe { page.page_mut() }
    }
}

/// Where a page's present content is.
enum Content {
    /// Nowhere yet: zeros.
    Blank,
    /// In this frame of the log.
    Frame(u32),
    /// In the file.
    File,
}

impl Pager {
    /// The page, for reading.
    #[inline]
    pub fn get(&mut self, pgno: Pgno) -> Result<Buf> {
        match self.table.hit(pgno) {
            Some(page) => {
                self.stats.hits += 1;
                Ok(page)
            }
            None => self.fetch(pgno),
        }
    }

    /// A page, if it is at hand; nobody counts that as use.
    #[inline]
    pub fn peek(&self, pgno: Pgno) -> Option<&Buf> {
        self.table.slot(self.table.find(pgno)?).buf()
    }

    /// Asks memory for where a page is at hand: a hint.
    #[inline]
    pub fn ask_for_place(&self, pgno: Pgno) {
        self.table.ask_for_place(pgno);
    }

    /// Asks memory for the first bytes of a page, if it is at hand: a hint.
    #[inline]
    pub fn ask_for_page(&self, pgno: Pgno) {
        self.table.ask_for_page(pgno);
    }

    #[inline(never)]
    fn fetch(&mut self, pgno: Pgno) -> Result<Buf> {
        if pgno == 0 || pgno > self.db_size || pgno == self.lock_page() || self.state == State::Open {
            return Err(if self.state == State::Open { Code::Misuse } else { Code::Corrupt }.into());
        }
        self.stats.misses += 1;
        self.make_room()?;
        let name = self.shared_name(pgno)?;
        let known = match (name, &self.share) {
            (Some((era, frame)), Some(share)) => share.get(era, pgno, frame),
            _ => None,
        };
        let buf = match known {
            Some(page) => Buf::of_page(page)?,
            None => {
                let page = PageData::filled(self.page_size as usize, |raw| self.read_new(pgno, raw))?;
                if let (Some((era, frame)), Some(share)) = (name, &self.share) {
                    share.put(era, pgno, frame, &page);
                }
                Buf::of_page(page)?
            }
        };
        self.table.insert(pgno, buf.clone())?;
        Ok(buf)
    }

    /// Under which era and frame the page can be shared with other sessions, if it can.
    pub(crate) fn shared_name(&mut self, pgno: Pgno) -> Result<Option<(u64, u32)>> {
        // What this session wrote itself and did not commit yet concerns nobody else.
        let Some(era) = self.era else { return Ok(None) };
        let Some(file) = &self.file else { return Ok(None) };
        match &mut self.wal {
            None if self.state < State::WriterDbMod => Ok(Some((era, 0))),
            None => Ok(None),
            Some(wal) => Ok(wal.name_of(&**file, pgno)?.map(|frame| (era, frame))),
        }
    }

    /// Reads a page from log or file into memory that holds nothing yet.
    fn read_new<'b>(&mut self, pgno: Pgno, raw: &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]> {
        match (self.content_of(pgno)?, &self.wal, &self.file) {
            (Content::Frame(frame), Some(wal), _) => wal.read_frame(frame, raw),
            (Content::File, _, Some(file)) => {
                let (out, _) = file.read_new(raw, (pgno as u64 - 1) * self.page_size as u64)?;
                self.note_first_page(pgno, out);
                Ok(out)
            }
            _ => Ok(zero_fill(raw)),
        }
    }

    /// Where the present content of a page is.
    fn content_of(&mut self, pgno: Pgno) -> Result<Content> {
        let Some(file) = &self.file else { return Ok(Content::Blank) };
        if let Some(wal) = &mut self.wal {
            let frame = wal.find_frame(&**file, pgno)?;
            if frame != 0 {
                return Ok(Content::Frame(frame));
            }
        }
        if self.kind == Kind::Temp && pgno > self.file_pages {
            return Ok(Content::Blank);
        }
        Ok(Content::File)
    }

    /// The bytes of the first page by which a change of the file is noticed.
    fn note_first_page(&mut self, pgno: Pgno, page: &[u8]) {
        if pgno == 1 && self.wal.is_none() && self.kind == Kind::File {
            self.file_version.copy_from_slice(&page[24..40]);
        }
    }

    /// The page as a blank sheet, for one that was free or lies beyond the end: nothing is read, and its old
    /// content is not kept for a rollback, since nobody needs it.
    pub fn get_blank(&mut self, pgno: Pgno) -> Result<Buf> {
        self.blank(pgno, None)
    }

    /// As [`Pager::get_blank`], but the page holds `parts`, one behind the other, and zeros behind them.
    pub fn get_filled(&mut self, pgno: Pgno, parts: &[&[u8]]) -> Result<Buf> {
        self.blank(pgno, Some(parts))
    }

    fn blank(&mut self, pgno: Pgno, parts: Option<&[&[u8]]>) -> Result<Buf> {
        if pgno == 0 || pgno == self.lock_page() || self.state < State::WriterLocked {
            return Err(Code::Corrupt.into());
        }
        self.begin_changes()?;
        let size = self.page_size as usize;
        let page = match parts {
            None => PageData::zeroed(size)?,
            Some(parts) => PageData::filled(size, |raw| Ok(fill_from(raw, parts)))?,
        };
        let buf = Buf::of_page(page)?;
        self.room_for_dirty(1)?;
        let i = match self.table.find(pgno) {
            Some(i) => i,
            None => {
                self.make_room()?;
                self.table.insert(pgno, buf.clone())?
            }
        };
        let serial = self.serial;
        let slot = self.table.slot_mut(i);
        let was_dirty = slot.flags & DIRTY != 0;
        slot.set_buf(buf.clone());
        slot.flags = DIRTY | RECENT;
        slot.saved = serial;
        self.db_size = self.db_size.max(pgno);
        if !was_dirty {
            self.note_dirty(pgno);
        }
        self.note_watched(pgno);
        if pgno <= self.orig_size
            && let Some(j) = &mut self.journal
        {
            j.mark(pgno);
        }
        Ok(buf)
    }

    /// The page behind the present end, to write on; it holds `parts`, or zeros. If the database was larger when the transaction began,
    /// its content is kept for a rollback.
    pub fn extend(&mut self, pgno: Pgno, parts: Option<&[&[u8]]>) -> Result<Buf> {
        if pgno > self.orig_size || pgno <= self.db_size {
            return self.blank(pgno, parts);
        }
        self.db_size = pgno;
        let mut page = self.get(pgno)?;
        self.edit(pgno, &mut page, |b| fill_bytes(b, parts.unwrap_or_default()))?;
        Ok(page)
    }

    /// Room in the list of changed pages. Asked for before a page is marked: one that is marked and not
    /// listed would survive a rollback, and never be written.
    pub(crate) fn room_for_dirty(&mut self, more: usize) -> Result<()> {
        alloc::reserve(&mut self.dirty, more)
    }

    pub(crate) fn note_dirty(&mut self, pgno: Pgno) {
        if self.kind == Kind::File {
            self.dirty.push(pgno);
        }
    }

    #[inline]
    fn note_watched(&mut self, pgno: Pgno) {
        if let Some(w) = &mut self.watched {
            w.insert(pgno);
        }
    }

    /// Notes from now on which pages this session changes, or no more.
    pub fn watch_changes(&mut self, on: bool) {
        if on != self.watched.is_some() {
            self.watched = on.then(FastSet::default);
        }
    }

    /// The pages that this session may have changed since it was asked last.
    pub fn take_changes(&mut self) -> FastSet<Pgno> {
        self.watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Changes a page in place. `page` is the caller's hold on it; afterwards it is the changed page, which
    /// need not be the same memory.
    #[inline]
    pub fn edit<R>(&mut self, pgno: Pgno, page: &mut Buf, f: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let ready = match self.table.find(pgno) {
            Some(i) => {
                let slot = self.table.slot(i);
                slot.saved == self.serial
                    && slot.flags & (DIRTY | DONT_WRITE) == DIRTY
                    && page.refs() <= 2
                    && slot.buf().is_some_and(|b| b.same(page))
            }
            None => false,
        };
        if !ready {
            self.prepare(pgno, page)?;
        }
        match in_place::bytes(page, &mut self.table) {
            Some(bytes) => Ok(f(bytes)),
            None => Err(Code::Internal.into()),
        }
    }

    /// Makes sure that the page is journaled, saved, dirty, and held by the table and `page` alone.
    #[inline(never)]
    fn prepare(&mut self, pgno: Pgno, page: &mut Buf) -> Result<()> {
        if self.state < State::WriterLocked {
            return Err(Code::Readonly.into());
        }
        self.begin_changes()?;
        self.room_for_dirty(1)?;
        let i = match self.table.find(pgno) {
            Some(i) => i,
            // Evicted while a cursor held it. Others may have changed it before that: what counts is what was written.
            None => {
                self.fetch(pgno)?;
                self.table.find(pgno).ok_or(Code::Internal)?
            }
        };
        let slot = self.table.slot(i);
        let (saved, was_dirty) = (slot.saved, slot.flags & DIRTY != 0);
        let held = slot.buf().cloned().ok_or(Code::Internal)?;
        if saved != self.serial || !was_dirty {
            if pgno <= self.orig_size && self.journal.as_ref().is_some_and(|j| !j.contains(pgno)) {
                self.journal_sector(pgno, &held)?;
            }
            if let Some(level) = self.undo.lacking(pgno, saved) {
                self.undo.save(pgno, level, held.clone())?;
                self.undo.trim((self.cache_target / 2).max(64), &*self.vfs)?;
            }
        }
        let same = held.same(page);
        // Ours (`held`), the table's, and the caller's if it is the same.
        let others = held.refs() - 2 - same as usize;
        let shared = held.page().is_none_or(|p| Arc::strong_count(p) != 1);
        // Journaling may have read other pages.
        let i = self.table.find(pgno).ok_or(Code::Internal)?;
        let slot = self.table.slot_mut(i);
        if others > 0 || shared {
            let copy = Buf::of_page(PageData::copy_of(&held)?)?;
            slot.set_buf(copy.clone());
            *page = copy;
        } else if !same {
            *page = held.clone();
        }
        slot.flags = (slot.flags | DIRTY | RECENT) & !DONT_WRITE;
        slot.saved = self.serial;
        if !was_dirty {
            self.note_dirty(pgno);
        }
        self.note_watched(pgno);
        Ok(())
    }

    /// Records the original of a page, and of the others that share a sector of the device with it: a torn
    /// write could damage them, too.
    fn journal_sector(&mut self, pgno: Pgno, page: &Buf) -> Result<()> {
        let per_sector = self.sector() / self.page_size;
        if per_sector <= 1 {
            return self.journal_page(pgno, page);
        }
        let first = (pgno - 1) / per_sector * per_sector + 1;
        for p in first..(first + per_sector).min(self.orig_size + 1) {
            if p == pgno {
                self.journal_page(pgno, page)?;
            } else if p != self.lock_page() && self.journal.as_ref().is_some_and(|j| !j.contains(p)) {
                let neighbour = self.get(p)?;
                self.journal_page(p, &neighbour)?;
            }
        }
        Ok(())
    }

    fn journal_page(&mut self, pgno: Pgno, page: &Buf) -> Result<()> {
        let nonce = self.random();
        let Some(mut j) = self.journal.take() else { return Ok(()) };
        let done = j.add(&self.site(nonce), pgno, page);
        self.journal = Some(j);
        done
    }

    pub(crate) fn site(&self, nonce: u32) -> Site<'_> {
        Site {
            vfs: &*self.vfs,
            path: &self.journal_path,
            sync: self.sync,
            device: self.file.as_ref().map(|f| f.characteristics()).unwrap_or_default(),
            nonce,
            inherited: self.is_inherited(),
        }
    }

    /// The transaction is about to change something.
    fn begin_changes(&mut self) -> Result<()> {
        if self.state != State::WriterLocked {
            return Ok(());
        }
        self.pressed = false;
        if self.kind == Kind::File && self.wal.is_none() && self.journal_mode != JournalMode::Off {
            let memory = self.journal_mode == JournalMode::Memory;
            if !memory {
                // Nobody who opens the file by its present name would find the journal.
                self.stays_in_place()?;
            }
            let kept = self.kept_journal.take();
            let mut journal = Journal::new(memory, kept, self.sector(), self.page_size, self.orig_size);
            if let Err(e) = journal.open(&self.site(0)) {
                if e.code() == Code::IoerrWrite && self.journal_mode == JournalMode::Delete {
                    // Somebody else's, and of no worth since it is not hot: another may be made once it is gone.
                    let _ = self.vfs.delete(&self.journal_path, false);
                }
                return Err(e);
            }
            self.journal = Some(journal);
        }
        self.state = State::WriterCacheMod;
        Ok(())
    }

    /// Says that a page just freed need not be written. Taken back by its next change. A log has all pages that the file lacks:
    /// SQLite takes one for damaged that is too short for the size that it tells of.
    pub fn dont_write(&mut self, pgno: Pgno) {
        let is_lacking = self.wal.is_some() && pgno > self.orig_size;
        if self.kind != Kind::File || self.undo.depth() > 0 || is_lacking {
            return;
        }
        if let Some(i) = self.table.find(pgno) {
            let slot = self.table.slot_mut(i);
            if slot.flags & DIRTY != 0 {
                slot.flags |= DONT_WRITE;
            }
        }
    }

    /// Makes the database end after `pages`: what lies beyond is dropped.
    pub fn truncate_image(&mut self, pages: Pgno) -> Result<()> {
        for p in pages + 1..=self.db_size {
            if self.undo.depth() > 0 && p != self.lock_page() {
                // A page that is only here would be lost for those who go back to a savepoint.
                let saved = self.table.find(p).map_or(0, |i| self.table.slot(i).saved);
                if let Some(level) = self.undo.lacking(p, saved) {
                    let image = self.get(p)?;
                    self.undo.save(p, level, image)?;
                }
            }
            self.table.remove(p);
        }
        self.db_size = pages;
        Ok(())
    }

    /// Room for one more page. The cache size is a target: where nothing can go, the cache grows.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        if self.table.len() < self.cache_target || self.kind == Kind::Memory {
            return Ok(());
        }
        self.evict()
    }

    /// Whether `n` more pages that a scan reads from `pgno` on find no room but that of others: the cache is full, or has its first
    /// share and does not know them.
    pub(crate) fn is_full_for(&self, pgno: Pgno, n: usize) -> bool {
        let held = self.table.len() + n;
        held > self.cache_target || held > first_share(self.page_size) && !self.former.has(pgno)
    }

    #[inline(never)]
    fn evict(&mut self) -> Result<()> {
        let mut left = 2;
        // The first page is written once no clean one is left: who reads the file has to go then. From there on clean and changed pages
        // are alike, or else those that all ways lead through would make room for those that were changed once.
        let mut clean = !self.pressed;
        while self.table.len() >= self.cache_target && left > 0 {
            let victim = match self.table.victim(clean) {
                None if clean && self.spill(true)? => self.table.victim(true),
                found => found,
            };
            let Some((pgno, dirty)) = victim else { break };
            if dirty {
                // Others are written with it. Where that is not possible, clean ones go.
                clean = true;
                self.spill(false)?;
                if self.table.find(pgno).is_none_or(|i| self.table.slot(i).flags & DIRTY != 0) {
                    continue;
                }
            }
            left -= 1;
            self.table.remove(pgno);
            self.former.note(pgno, self.cache_target);
        }
        Ok(())
    }

    /// Writes the changed pages of an open transaction that nobody holds, without ending it. `SQLITE_BUSY` if readers are in
    /// the way of a database without a log.
    pub fn flush(&mut self) -> Result<()> {
        if self.kind != Kind::File || self.state < State::WriterCacheMod {
            return Ok(());
        }
        let enabled = std::mem::replace(&mut self.spill_enabled, true);
        let flushed = (|| {
            while self.spill(true)? {}
            Ok::<(), iolite_base::Error>(())
        })();
        self.spill_enabled = enabled;
        flushed?;
        let kept_out = self.wal.is_none() && self.lock < LockLevel::Exclusive;
        let dirty = self.table.iter().any(|s| s.flags & DIRTY != 0);
        if kept_out && dirty && self.journal.is_some() { Err(Code::Busy.into()) } else { Ok(()) }
    }

    /// Writes changed pages that nobody holds, so that they can be evicted. `false`: not possible now, or not worth a sync unless they
    /// `must` be written.
    fn spill(&mut self, must: bool) -> Result<bool> {
        let writing = self.state >= State::WriterCacheMod || self.kind == Kind::Temp;
        if !self.spill_enabled || !writing || self.is_inherited() {
            return Ok(false);
        }
        if self.kind == Kind::File && self.wal.is_none() {
            // Without a journal on disk the file cannot be touched before commit.
            if self.journal.is_none() && self.journal_mode != JournalMode::Off {
                return Ok(false);
            }
            match self.raise(LockLevel::Exclusive) {
                Ok(()) => {}
                Err(e) if e.code() == Code::Busy => {
                    // Readers are there: the cache grows instead. PENDING stays, as in SQLite, so that they
                    // are the last ones.
                    return Ok(false);
                }
                Err(e) => return Err(e),
            }
        }
        // In one go: a spill may cost a sync in rollback modes. Pages whose originals are safe need none; if there are some, they go alone
        // until a third of the cache waits for a sync. (Where they always went alone, the others filled the cache, and these few were read
        // and written again and again: twice the reads of an INSERT ... SELECT into three indexes.)
        let mut pages = self.table.changed((self.cache_target / 6).max(1))?;
        if let Some(j) = self.journal.as_ref().filter(|_| self.kind == Kind::File && self.wal.is_none())
            && j.unsealed() < self.cache_target / 3
            && (!must || pages.iter().any(|p| j.covers(p.0)))
        {
            pages.retain(|p| j.covers(p.0));
        }
        if pages.is_empty() {
            return Ok(false);
        }
        pages.sort_unstable_by_key(|p| p.0);
        pages.retain(|p| p.0 <= self.db_size);
        self.stats.spills += pages.len() as u64;
        match self.kind {
            Kind::Memory => return Ok(false),
            Kind::Temp => self.write_temp(&pages)?,
            Kind::File if self.wal.is_some() => {
                let mut others = pages.clone();
                self.write_direct(&mut others)?;
                if !others.is_empty() {
                    self.append_frames(&others, 0)?;
                }
            }
            Kind::File => {
                let synced = match self.journal.as_ref().and_then(|j| j.sealed_for(&pages)) {
                    Some(synced) => synced,
                    None => self.seal_journal()?,
                };
                let _written = self.write_pages(&synced, &pages)?;
            }
        }
        for (pgno, _) in &pages {
            if let Some(i) = self.table.find(*pgno) {
                let slot = self.table.slot_mut(i);
                slot.flags &= !(DIRTY | DONT_WRITE);
                slot.saved = 0;
            }
        }
        self.pressed = true;
        Ok(true)
    }

    fn write_temp(&mut self, pages: &[(Pgno, Buf)]) -> Result<()> {
        if self.file.is_none() {
            let flags = OpenFlags::read_write(FileKind::TempDb);
            self.file = Some(self.vfs.open(None, flags)?);
        }
        let file = self.file.as_ref().expect("opened above");
        for (pgno, buf) in pages {
            file.write(buf, (*pgno as u64 - 1) * self.page_size as u64)?;
            self.file_pages = self.file_pages.max(*pgno);
        }
        Ok(())
    }
}

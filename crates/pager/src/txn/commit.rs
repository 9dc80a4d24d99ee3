//! Committing.
//!
//! The order of a commit in the rollback modes, which crash safety rests on: EXCLUSIVE lock; journal synced;
//! its header with the number of records synced; database written; database synced; journal ended (this
//! commits); locks given up. The tokens of the module `durability` pass from step to step.

use crate::durability::{Synced, Truncatable, Written};
use crate::pager::{Kind, Pager, State};
use crate::shared::Era;
use crate::table::{DIRTY, DONT_WRITE, WAS_FREE};
use crate::types::*;
use iolite_base::{Buf, Code, Pgno, Result, SQLITE_VERSION_NUMBER, alloc, be};
use iolite_os::{FileKind, LockLevel, Note, OpenFlags, SyncKind};

impl Pager {
    /// Takes the lock that a commit needs: the step that may be busy, so that the caller can wait and repeat
    /// it.
    pub fn lock_for_commit(&mut self) -> Result<()> {
        if self.kind == Kind::File && self.wal.is_none() && self.state >= State::WriterCacheMod {
            self.raise(LockLevel::Exclusive)?;
        }
        Ok(())
    }

    /// The first half of a commit: after it, all is on disk, but a rollback is still possible (rollback
    /// modes, and where others commit together), or the transaction is committed (WAL, alone).
    pub fn commit_phase_one(&mut self, commit: Commit<'_>) -> Result<()> {
        let done = self.write_transaction(commit);
        self.note_failed_sync(&done);
        done
    }

    /// After a sync that failed, nobody of this process writes any more: see [`crate::shared::Share::fail`].
    pub(crate) fn note_failed_sync<T>(&self, done: &Result<T>) {
        if let (Err(e), Some(share)) = (done, &self.share)
            && e.code() == Code::IoerrFsync
        {
            share.fail();
        }
    }

    pub(super) fn write_transaction(&mut self, commit: Commit<'_>) -> Result<()> {
        if let Some(e) = &self.error {
            return Err(e.clone());
        }
        if let Some(e) = &self.half_undone {
            return Err(e.clone());
        }
        if self.is_inherited() {
            return Err(Code::IoerrLock.into());
        }
        if self.state < State::WriterCacheMod
            || self.kind != Kind::File
            || self.state == State::WriterFinished
        {
            return Ok(());
        }
        self.lock_for_commit()?;
        self.stamp_header()?;
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let mut pages: Vec<(Pgno, Buf)> = Vec::new();
        alloc::reserve(&mut pages, self.dirty.len())?;
        for &pgno in &self.dirty {
            if pgno <= self.db_size
                && let Some(i) = self.table.find(pgno)
            {
                let slot = self.table.slot(i);
                if slot.flags & (DIRTY | DONT_WRITE) == DIRTY
                    && let Some(buf) = slot.buf()
                {
                    pages.push((pgno, buf.clone()));
                }
            }
        }
        if self.wal.is_some() {
            self.write_direct(&mut pages)?;
            self.settle_direct(&mut pages)?;
            if commit != Commit::Alone {
                if !pages.is_empty() {
                    let sync = self.log_sync();
                    let file = self.file.as_deref().ok_or(Code::Misuse)?;
                    let wal = self.wal.as_mut().expect("called in WAL mode");
                    wal.prepare(file, &pages, self.db_size, self.page_size, sync)?;
                    self.stats.writes += pages.len() as u64;
                }
                self.state = State::WriterFinished;
                return Ok(());
            }
            if !pages.is_empty() {
                self.append_frames(&pages, self.db_size)?;
                self.share_frames(&pages);
            }
            drop(pages);
            self.frames_are_published();
            self.state = State::WriterFinished;
            return Ok(());
        }
        if let Commit::Together { super_journal: Some(name) } = commit
            && let Some(mut j) = self.journal.take()
        {
            let nonce = self.random();
            let named = j.name_super(&self.site(nonce), name);
            self.journal = Some(j);
            named?;
        }
        let synced = self.seal_journal()?;
        let size = self.wanted_pages() as u64 * self.page_size as u64;
        if self.wanted_pages() > self.file_pages {
            self.file()?.notify(Note::SizeHint(size))?;
        }
        let written = self.write_pages(&synced, &pages)?;
        drop(pages);
        self.extend_file()?;
        let file = self.file()?;
        let together = if let Commit::Together { super_journal } = commit { super_journal } else { None };
        file.notify(Note::Sync(together))?;
        if self.sync != SyncMode::Off {
            file.sync(if self.sync >= SyncMode::Full { SyncKind::Data } else { SyncKind::Full })?;
        }
        let _truncatable: Truncatable = written.synced();
        self.state = State::WriterFinished;
        Ok(())
    }

    /// What a transaction has changed is the log's newest state now.
    pub(super) fn frames_are_published(&mut self) {
        self.end_direct();
        let changed = std::mem::take(&mut self.dirty);
        self.forget_dirty(&changed);
    }

    /// Pages just committed to the log: others need not read them from there.
    pub(super) fn share_frames(&mut self, pages: &[(Pgno, Buf)]) {
        let (Some(salts), Some(_)) = (self.wal.as_ref().and_then(|w| w.salts()), self.era) else { return };
        // The log may have been begun anew by this very commit.
        let Some(era) = self.serial_of(Era::Log(salts)) else { return };
        let (Some(share), Some(wal)) = (&self.share, &self.wal) else { return };
        let first = wal.last_frame() - pages.len() as u32 + 1;
        for (i, (pgno, buf)) in pages.iter().enumerate() {
            if let Some(page) = buf.page() {
                share.put(era, *pgno, first + i as u32, page);
            }
        }
    }

    /// The second half: ends the journal, which commits, and gives up what locks there is no more need for. An error after
    /// which there is no write transaction any more: it is committed, and may not outlive a loss of power.
    pub fn commit_phase_two(&mut self, end_read: bool) -> Result<()> {
        if self.state < State::WriterLocked {
            if end_read {
                self.end_read();
            }
            return Ok(());
        }
        let changed = self.state > State::WriterLocked;
        let mut unsure = Ok(());
        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file)
            && wal.is_prepared()
        {
            wal.publish_prepared(&**file);
            self.frames_are_published();
        }
        if self.kind == Kind::File && self.wal.is_none() && changed {
            unsure = self.end_journal()?;
            self.note_failed_sync(&unsure);
            // The transaction is committed. A file that is not cut is longer than its header says, which harms nobody; one that
            // is cut though the journal may come back would lack what that does not hold.
            let cuts = unsure.is_ok();
            if cuts {
                let _ = self.shrink_file();
            }
            let changed = std::mem::take(&mut self.dirty);
            self.forget_dirty(&changed);
            let foreign = self.foreign_image.take();
            if let Some((_, bytes)) = foreign {
                if cuts {
                    let _ = self.file()?.truncate(bytes);
                }
                self.page_size_fixed = false;
            }
            self.change_counted = true;
            let before = self.file_version;
            if let Some(i) = self.table.find(1)
                && let Some(p1) = self.table.slot(i).buf()
            {
                self.file_version.copy_from_slice(&p1[24..40]);
            }
            if let Some(share) = self.share.as_ref().filter(|_| foreign.is_none() && !self.lock_kept()) {
                share.commits().note(before, self.file_version, &changed);
            }
            if let (Some(share), Some(era), None) = (&self.share, self.era, foreign) {
                share.advance(era, Era::Journal(self.file_version), &changed);
            }
            if foreign.is_some() {
                self.reset_cache();
            }
        }
        if changed && self.kind == Kind::File {
            let told = self.file()?.notify(Note::CommitPhaseTwo);
            unsure = unsure.and(told);
        }
        self.end_write(end_read);
        unsure
    }

    pub(super) fn end_write(&mut self, end_read: bool) {
        self.undo.clear();
        self.dirty.clear();
        self.journal = None;
        self.foreign_image = None;
        self.reserved_before = None;
        self.half_undone = None;
        // The state of the file is another one: the next transaction finds out which.
        self.era = None;
        self.serial += 1;
        self.end_direct();
        self.state = State::Reader;
        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
            wal.end_write(&**file);
        } else if self.kind == Kind::File && self.locking_mode == LockingMode::Normal {
            self.unlock(LockLevel::Shared);
        }
        self.check();
        if end_read {
            self.end_read();
        }
    }

    /// Page 1 gets a new change counter and the size of the database.
    pub(super) fn stamp_header(&mut self) -> Result<()> {
        if self.db_size == 0 {
            return Ok(());
        }
        let mut p1 = self.get(1)?;
        let counter = be::get_u32(&p1, 24);
        let db_size = self.foreign_image.map_or(self.db_size, |f| f.0);
        let current = be::get_u32(&p1, 28) == db_size && be::get_u32(&p1, 92) == counter;
        let page_one_dirty = self.table.find(1).is_some_and(|i| self.table.slot(i).flags & DIRTY != 0);
        let count = match self.wal {
            // The log's header tells of changes; page 1 is written only if it changes anyway, or to carry the
            // commit of pages that were all spilled.
            Some(_) => page_one_dirty || !current || self.all_spilled(),
            None => !(self.change_counted && self.lock_kept() && current && !page_one_dirty),
        };
        if !count {
            return Ok(());
        }
        self.sized_by_header = true;
        self.edit(1, &mut p1, |b| {
            let next = counter.wrapping_add(1);
            be::put_u32(b, 24, next);
            be::put_u32(b, 28, db_size);
            be::put_u32(b, 92, next);
            be::put_u32(b, 96, SQLITE_VERSION_NUMBER);
        })
    }

    pub(super) fn all_spilled(&self) -> bool {
        !self.dirty.iter().any(|&p| {
            self.table.find(p).is_some_and(|i| {
                p <= self.db_size && self.table.slot(i).flags & (DIRTY | DONT_WRITE) == DIRTY
            })
        })
    }

    pub(super) fn lock_kept(&self) -> bool {
        self.locking_mode == LockingMode::Exclusive
    }

    pub(crate) fn seal_journal(&mut self) -> Result<Synced> {
        let Some(mut j) = self.journal.take() else { return Ok(Synced::of_journal()) };
        let nonce = self.random();
        let sealed = j.seal(&self.site(nonce));
        self.journal = Some(j);
        sealed
    }

    pub(crate) fn write_pages(&mut self, synced: &Synced, pages: &[(Pgno, Buf)]) -> Result<Written> {
        debug_assert!(self.lock == LockLevel::Exclusive || self.nolock);
        self.state = State::WriterDbMod;
        let size = self.page_size as u64;
        for (pgno, buf) in pages {
            self.file()?.write(buf, (*pgno as u64 - 1) * size)?;
            self.file_pages = self.file_pages.max(*pgno);
        }
        self.stats.writes += pages.len() as u64;
        Ok(Written::over(synced))
    }

    /// Pages the file should have: the lock-byte page is never written, so a database that ends there ends
    /// before it.
    pub(super) fn wanted_pages(&self) -> Pgno {
        self.db_size - (self.db_size == self.lock_page()) as Pgno
    }

    /// Extends the file to the size of the database: the last pages may not have been written.
    pub(super) fn extend_file(&mut self) -> Result<()> {
        let pages = self.wanted_pages();
        if self.file_pages < pages {
            let want = pages as u64 * self.page_size as u64;
            let file = self.file()?;
            if file.size()? < want {
                file.truncate(want)?;
            }
            self.file_pages = pages;
        }
        Ok(())
    }

    /// Cuts the file to the size of the database. Only once the transaction is committed: the journal does
    /// not hold the pages that go.
    pub(super) fn shrink_file(&mut self) -> Result<()> {
        if self.shrinks() {
            let pages = self.wanted_pages();
            self.file()?.truncate(pages as u64 * self.page_size as u64)?;
            self.file_pages = pages;
        }
        Ok(())
    }

    pub(super) fn shrinks(&self) -> bool {
        self.file_pages > self.wanted_pages() && self.db_size < self.orig_size
    }

    /// Whether the header says that there is a log.
    pub(super) fn asks_for_log(&self) -> bool {
        let p1 = self.table.find(1).and_then(|i| self.table.slot(i).buf());
        p1.is_some_and(|b| b[19] == 2)
    }

    /// Whether the end of this transaction cuts pages off the file.
    pub(super) fn will_shrink(&self) -> bool {
        self.state == State::WriterFinished && (self.shrinks() || self.foreign_image.is_some())
    }

    pub(crate) fn append_frames(&mut self, pages: &[(Pgno, Buf)], commit: Pgno) -> Result<()> {
        let file = self.file.as_deref().ok_or(Code::Misuse)?;
        let wal = self.wal.as_mut().expect("called in WAL mode");
        let sync = if self.sync == SyncMode::Off { None } else { Some(self.sync) };
        match commit {
            0 => wal.spill(file, pages, self.page_size, sync)?,
            _ => wal.append(file, pages, commit, self.page_size, sync)?,
        }
        self.stats.writes += pages.len() as u64;
        Ok(())
    }

    pub(super) fn forget_dirty(&mut self, dirty: &[Pgno]) {
        for &p in dirty {
            if p > self.db_size {
                self.table.remove(p);
                continue;
            }
            if let Some(i) = self.table.find(p) {
                let slot = self.table.slot_mut(i);
                if slot.flags & DONT_WRITE != 0 {
                    // What the file holds differs from what is here.
                    self.table.remove(p);
                } else {
                    slot.flags &= !(DIRTY | WAS_FREE);
                }
            }
        }
    }

    /// Ends the journal: the moment of commit in the rollback modes. An error outside: it is as it was. Inside: it has ended,
    /// and may come back after a loss of power.
    pub(crate) fn end_journal(&mut self) -> Result<Result<()>> {
        let Some(journal) = self.journal.take() else { return Ok(Ok(())) };
        let has_super = journal.has_super();
        let Some(file) = journal.into_file() else { return Ok(Ok(())) };
        let mut unsure = Ok(());
        let sync = self.sync;
        // The pages about to be cut off are not in the journal: it must not come back after the cut. Nor may
        // it beside a log: a checkpoint changes pages that it would restore.
        let for_good = sync != SyncMode::Off && (self.will_shrink() || self.asks_for_log());
        let mode = match self.journal_mode {
            // Beside a log there is none to be kept for.
            _ if self.asks_for_log() => JournalMode::Delete,
            JournalMode::Delete if self.locking_mode == LockingMode::Exclusive => JournalMode::Persist,
            m => m,
        };
        match mode {
            JournalMode::Truncate => {
                file.truncate(0)?;
                if sync >= SyncMode::Full || for_good {
                    unsure = file.sync(SyncKind::Full);
                }
                self.kept_journal = Some(file);
            }
            JournalMode::Persist => {
                let limit = self.journal_size_limit;
                if has_super || limit == 0 {
                    // A name left at the end could be taken for that of a later journal.
                    file.truncate(0)?;
                } else if let Err(e) = file.write(&[0; 28], 0) {
                    // A part of it may have arrived: without its first bytes the journal has ended.
                    let mut magic = [0; 8];
                    if file.read(&mut magic, 0).is_err() || magic == crate::journal::MAGIC {
                        return Err(e);
                    }
                    unsure = Err(e);
                }
                if sync != SyncMode::Off && unsure.is_ok() {
                    unsure = file.sync(SyncKind::Data);
                }
                if limit > 0 && file.size().is_ok_and(|s| s > limit as u64) {
                    // A journal longer than wished is worth no error: the transaction is committed.
                    let _ = file.truncate(limit as u64);
                }
                self.kept_journal = Some(file);
            }
            _ => {
                drop(file);
                match self.vfs.delete(&self.journal_path, sync == SyncMode::Extra || for_good) {
                    Err(e) if e.code() == Code::IoerrDeleteNoent => {}
                    Err(e) if self.exists(&self.journal_path).unwrap_or(true) => return Err(e),
                    // It is gone; its folder could not be synced.
                    other => unsure = other,
                }
            }
        }
        Ok(unsure)
    }

    /// Whether a commit of several databases needs this one in a super-journal.
    pub fn needs_super_journal(&self) -> bool {
        self.kind == Kind::File
            && self.wal.is_none()
            && self.state >= State::WriterCacheMod
            && self.sync != SyncMode::Off
            && !matches!(self.journal_mode, JournalMode::Memory | JournalMode::Off)
    }

    /// Writes a super-journal for the named journals, beside this database; returns its name.
    pub fn write_super_journal(&mut self, journals: &[Vec<u8>]) -> Result<std::path::PathBuf> {
        use std::path::PathBuf;
        let mut path = PathBuf::new();
        for attempt in 0..100 {
            let mut name = self.path.as_os_str().to_owned();
            // The last three characters, on file systems that keep only three, must look like no other
            // suffix.
            name.push(format!("-mj{:06X}9{:02X}", self.random() & 0xff_ffff, attempt as u8));
            path = PathBuf::from(name);
            if !self.exists(&path)? {
                break;
            }
        }
        let flags = OpenFlags { exclusive: true, ..OpenFlags::read_write(FileKind::SuperJournal) };
        let file = self.vfs.open(Some(&path), flags)?;
        let mut all = Vec::new();
        for j in journals {
            all.extend_from_slice(j);
            all.push(0);
        }
        let written = file.write(&all, 0).and_then(|()| file.sync(SyncKind::Full));
        if written.is_err() {
            drop(file);
            let _ = self.vfs.delete(&path, false);
        }
        written.map(|()| path)
    }
}

//! Transactions: beginning, committing, taking back, savepoints.
//!
//! The order of a commit in the rollback modes, which crash safety rests on: EXCLUSIVE lock; journal synced;
//! its header with the number of records synced; database written; database synced; journal ended (this
//! commits); locks given up. The tokens of the module `durability` pass from step to step.

use crate::durability::{Synced, Truncatable, Written};
use crate::pager::{Kind, Pager, State};
use crate::shared::Era;
use crate::table::{DIRTY, DONT_WRITE, WAS_FREE};
use crate::types::*;
use crate::wal::{Role, Snapshot, SnapshotName};
use iolite_base::{Buf, Code, Error, Pgno, Result, SQLITE_VERSION_NUMBER, alloc, be};
use iolite_os::{FileKind, LockLevel, Note, OpenFlags, SyncKind};
use std::time::Duration;

const HEADER: &[u8; 16] = b"SQLite format 3\0";

impl Pager {
    /// Begins to read: from now on the database stands still. `SQLITE_BUSY` may be worth another attempt.
    pub fn begin_read(&mut self) -> Result<()> {
        if let Some(e) = &self.error {
            return Err(e.clone());
        }
        if self.state != State::Open {
            return Ok(());
        }
        if self.is_inherited() {
            self.open_again()?;
        }
        if self.kind != Kind::File {
            self.state = State::Reader;
            return Ok(());
        }
        let begun = self.begin_read_file();
        if begun.is_err() {
            self.state = State::Open;
            match &mut self.wal {
                Some(wal) => wal.end_read(self.file.as_deref().expect("a log belongs to a file")),
                None if self.locking_mode == LockingMode::Normal => self.unlock(LockLevel::None),
                None => {}
            }
        }
        self.check();
        begun
    }

    /// The name of the state that is being read. `SQLITE_ERROR` without a log that somebody has written to, and for who writes.
    pub fn snapshot_name(&self) -> Result<SnapshotName> {
        match &self.wal {
            Some(wal) if self.state == State::Reader => wal.snapshot_name(),
            _ => Err(Code::Error.into()),
        }
    }

    /// Begins to read the state that was named. A transaction that reads already goes on there, or, if that state is not to be
    /// had, as it was. `SQLITE_ERROR` unless it is known that there is a log.
    pub fn begin_read_at(&mut self, name: &SnapshotName) -> Result<()> {
        let (Some(wal), Some(file)) = (&mut self.wal, &self.file) else { return Err(Code::Error.into()) };
        match self.state {
            State::Open => {}
            State::Reader => {
                wal.check_snapshot(&**file, name)?;
                self.end_read();
            }
            _ => return Err(Code::Error.into()),
        }
        self.wanted = Some(*name);
        let begun = self.begin_read();
        self.wanted = None;
        begun
    }

    /// Makes states of the log readable again that a recovery has left in doubt. `SQLITE_ERROR` without a log.
    pub fn recover_snapshots(&mut self) -> Result<()> {
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) if self.state == State::Reader => wal.recover_snapshots(&**file),
            _ => Err(Code::Error.into()),
        }
    }

    fn begin_read_file(&mut self) -> Result<()> {
        // Each turn learns something that changes how to read: the page size, that there is a log.
        for _ in 0..5 {
            if self.wal.is_some() {
                self.begin_read_wal()?;
            } else {
                self.begin_read_journal()?;
            }
            self.state = State::Reader;
            // An unchanged log is still in its era: asking again would take a lock that all sessions share.
            if self.wal.is_none() || !self.same_log {
                self.era = None;
            }
            // Page 1, which most commits change, is to come from the others as well.
            if self.era.is_none() && self.wal.as_ref().is_some_and(|w| w.page_size() == self.page_size) {
                self.enter_era();
            }
            if self.header_ok || self.read_header()? {
                if self.era.is_none() {
                    self.enter_era();
                }
                return Ok(());
            }
            self.state = State::Open;
            if let Some(wal) = &mut self.wal {
                wal.end_read(self.file.as_deref().expect("a log belongs to a file"));
            }
        }
        Err(Code::Protocol.into())
    }

    /// Finds out whether there are other sessions to share pages with.
    fn enter_era(&mut self) {
        let Some(share) = &self.share else { return };
        // In exclusive mode the header does not change with every commit.
        if !share.in_company() || self.locking_mode == LockingMode::Exclusive || self.db_size == 0 {
            return;
        }
        let era = match &self.wal {
            None => Some(Era::Journal(self.file_version)),
            Some(wal) => wal.salts().map(Era::Log),
        };
        self.era = era.and_then(|e| self.serial_of(e));
    }

    /// The serial under which pages of an era are shared. What the file has may have changed since this process last looked
    /// at the log.
    fn serial_of(&mut self, era: Era) -> Option<u64> {
        let share = self.share.as_ref()?;
        let (Some(wal), Era::Log(salts)) = (&mut self.wal, era) else { return Some(share.enter(era, None)) };
        let from = if self.entered.0 == salts { self.entered.1 } else { share.looked_at(era) };
        let last = wal.last_frame();
        let told = wal.direct_since(self.file.as_deref()?, from);
        self.entered = (salts, last);
        Some(share.enter(era, Some((from, last, told))))
    }

    fn begin_read_journal(&mut self) -> Result<()> {
        let had_lock = self.lock >= LockLevel::Shared;
        self.raise(LockLevel::Shared)?;
        if had_lock && self.header_ok {
            // Kept from the last transaction: nobody could change anything.
            return Ok(());
        }
        if self.lock <= LockLevel::Shared && !self.immutable {
            self.roll_back_hot_journal()?;
        }
        // A dead one's journal may just have been played back: nothing in memory counts then, and others may have committed
        // before that one began.
        if self.was_read {
            let mut now = [0; 16];
            self.file()?.read(&mut now, 24)?;
            if now != self.file_version {
                self.data_version = self.data_version.wrapping_add(1);
            } else if self.header_ok {
                return Ok(());
            }
        }
        self.reset_cache();
        let size = self.file()?.size()?;
        self.file_pages = size.div_ceil(self.page_size as u64).min(u32::MAX as u64 - 1) as Pgno;
        self.db_size = self.file_pages;
        if !self.immutable && self.exists(&self.wal_path.clone())? {
            if size == 0 {
                // A log without a database is left over from one that was deleted.
                if !self.read_only && self.stays_in_place().is_ok() {
                    self.vfs.delete(&self.wal_path, false)?;
                }
            } else {
                self.open_wal()?;
                return self.begin_read_wal();
            }
        }
        Ok(())
    }

    fn begin_read_wal(&mut self) -> Result<()> {
        let file = self.file.as_deref().expect("a log belongs to a file");
        let wal = self.wal.as_mut().expect("called in WAL mode");
        let change = match self.wanted {
            None => wal.begin_read(file)?,
            Some(name) => wal.begin_read_at(file, &name)?,
        };
        self.same_log = matches!(change, Snapshot::Same);
        match change {
            Snapshot::Same => {}
            Snapshot::Appended(pages) => {
                self.data_version = self.data_version.wrapping_add(1);
                self.forget_changed(&pages);
            }
            Snapshot::Other => {
                if self.was_read {
                    self.data_version = self.data_version.wrapping_add(1);
                }
                self.reset_cache();
            }
        }
        let wal = self.wal.as_ref().expect("called in WAL mode");
        let (pages, page_size) = (wal.db_pages(), wal.page_size());
        if !self.page_size_fixed && page_size != 0 && page_size != self.page_size {
            // Page 1, which says it, may be in the log itself.
            self.page_size = page_size;
            self.set_cache_size(self.cache_setting);
            self.reset_cache();
        }
        if pages != 0 {
            self.take_size_of_log();
        } else if !self.header_ok {
            let size = self.file()?.size()?;
            self.file_pages = size.div_ceil(self.page_size as u64).min(u32::MAX as u64 - 1) as Pgno;
            self.db_size = self.file_pages;
        }
        Ok(())
    }

    /// The size that the log tells, unless a header that still holds has told one.
    fn take_size_of_log(&mut self) {
        if let Some(wal) = self.wal.as_ref().filter(|_| !(self.header_ok && self.sized_by_header)) {
            self.db_size = wal.db_pages();
        }
    }

    /// Reads and checks page 1. `false`: begin again, with what was learnt.
    fn read_header(&mut self) -> Result<bool> {
        if self.db_size == 0 {
            self.file_version = [0; 16];
            self.format_read_only = false;
            self.header_ok = true;
            self.was_read = true;
            return Ok(true);
        }
        let p1 = self.get(1)?;
        let notadb = || Error::from(Code::Notadb);
        if p1[..16] != HEADER[..] {
            return Err(notadb());
        }
        let size = match be::get_u16(&p1, 16) {
            1 => 65536,
            n => n as u32,
        };
        if !size.is_power_of_two()
            || !(512..=65536).contains(&size)
            || p1[21..24] != [64, 32, 32]
            || p1[19] > 2
        {
            return Err(notadb());
        }
        let reserved = p1[20];
        if size - (reserved as u32) < 480 {
            return Err(notadb());
        }
        self.reserved = reserved;
        self.page_size_fixed = true;
        if size != self.page_size {
            self.page_size = size;
            self.set_cache_size(self.cache_setting);
            self.reset_cache();
            return Ok(false);
        }
        if p1[19] == 2 && self.wal.is_none() && !self.immutable && !self.no_wal {
            self.open_wal()?;
            self.reset_cache();
            return Ok(false);
        }
        self.format_read_only = p1[18] > 2;
        let pages = be::get_u32(&p1, 28);
        self.sized_by_header = pages != 0 && p1[24..28] == p1[92..96];
        if self.sized_by_header {
            if pages > self.db_size {
                return Err(Code::Corrupt.into());
            }
            self.db_size = pages;
        }
        self.header_ok = true;
        self.was_read = true;
        Ok(true)
    }

    /// Ends reading, if nothing is being written.
    pub fn end_read(&mut self) {
        if self.state != State::Reader {
            return;
        }
        self.state = State::Open;
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) => wal.end_read(&**file),
            _ if self.locking_mode == LockingMode::Normal => self.unlock(LockLevel::None),
            _ => {}
        }
    }

    /// Before [`Pager::begin_read`], for those who are going to write: in WAL mode, waits for the other writers of the
    /// process, at most for `patience`.
    pub fn await_turn(&mut self, patience: Duration) -> Result<()> {
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) if self.state == State::Open => {
                wal.await_turn(&**file, Role::Follower, patience)
            }
            _ => Ok(()),
        }
    }

    /// They do not write after all.
    pub fn leave_turn(&mut self) {
        if let (Some(wal), true) = (&mut self.wal, self.state < State::WriterLocked) {
            wal.leave_turn();
        }
    }

    /// Begins to write; with `exclusive`, keeps others from reading, too (not in WAL mode). After [`Pager::await_turn`] it
    /// moves on to the newest state, which other connections of the process may be about to sync: nothing may have been
    /// read yet.
    pub fn begin_write(&mut self, exclusive: bool) -> Result<()> {
        if let Some(e) = &self.error {
            return Err(e.clone());
        }
        if self.state >= State::WriterLocked {
            return Ok(());
        }
        debug_assert!(self.state == State::Reader);
        if self.is_inherited() {
            return Err(Code::IoerrLock.into());
        }
        if self.read_only || self.format_read_only {
            return Err(Code::Readonly.into());
        }
        if self.share.as_ref().is_some_and(|s| s.has_failed()) {
            // After a failed sync the kernel may have dropped what was not written, and a second one would
            // succeed without it.
            return Err(Code::IoerrFsync.into());
        }
        if self.kind == Kind::File {
            match &mut self.wal {
                Some(wal) => {
                    let file = self.file.as_deref().expect("a log belongs to a file");
                    let moved = wal.begin_write(file)?;
                    let begun = self.move_on(moved).and_then(|()| self.check_file_size());
                    if let Err(e) = begun {
                        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
                            wal.end_write(&**file);
                        }
                        return Err(e);
                    }
                }
                None => {
                    self.raise(LockLevel::Reserved)?;
                    let begun = self.check_file_size().and_then(|()| match exclusive {
                        true => self.raise(LockLevel::Exclusive),
                        false => Ok(()),
                    });
                    if begun.is_err() && self.locking_mode == LockingMode::Normal {
                        self.unlock(LockLevel::Shared);
                    }
                    begun?;
                }
            }
        }
        self.orig_size = self.db_size;
        self.dirty.clear();
        self.serial += 1;
        if self.kind != Kind::File {
            self.undo.push(self.serial, self.db_size)?;
        }
        self.state = State::WriterLocked;
        self.check();
        Ok(())
    }

    /// `SQLITE_CORRUPT` where somebody cut the file, though its header (or what is known of it) says that nothing has changed:
    /// what is in memory must not be written around what is gone. In WAL mode only the file that holds everything can be told
    /// to be whole.
    fn check_file_size(&mut self) -> Result<()> {
        if self.wal.as_ref().is_some_and(|w| !w.reads_file_alone_when_writing()) || self.db_size == 0 {
            return Ok(());
        }
        // A last page that is there in part counts, as it does in SQLite.
        if self.file()?.size()?.div_ceil(self.page_size as u64) < self.wanted_pages() as u64 {
            self.reset_cache();
            return Err(Code::Corrupt.into());
        }
        Ok(())
    }

    /// Lets pages go that have other content now.
    fn forget_changed(&mut self, pages: &[Pgno]) {
        self.epoch += 1;
        for &p in pages {
            self.table.remove(p);
            self.header_ok &= p != 1;
        }
    }

    /// The snapshot has moved on.
    fn move_on(&mut self, change: Snapshot) -> Result<()> {
        match change {
            Snapshot::Same => return Ok(()),
            Snapshot::Appended(pages) => {
                self.forget_changed(&pages);
            }
            Snapshot::Other => {
                self.reset_cache();
                self.era = None;
            }
        }
        self.data_version = self.data_version.wrapping_add(1);
        self.same_log = false;
        self.take_size_of_log();
        if !self.header_ok && !self.read_header()? {
            // Other pages altogether: to be read from the beginning.
            return Err(Code::BusySnapshot.into());
        }
        Ok(())
    }

    fn base_level(&self) -> usize {
        (self.kind != Kind::File) as usize
    }

    /// Opens savepoints until `depth + 1` are open.
    pub fn savepoint_open(&mut self, depth: usize) -> Result<()> {
        if self.state < State::WriterLocked {
            return Ok(());
        }
        while self.undo.depth() < self.base_level() + depth + 1 {
            self.serial += 1;
            self.undo.push(self.serial, self.db_size)?;
        }
        Ok(())
    }

    /// Closes savepoint `depth` and all above it; their changes stay.
    pub fn savepoint_release(&mut self, depth: usize) {
        self.undo.release(self.base_level() + depth);
    }

    /// Takes back what happened since savepoint `depth` was opened; it stays open, those above it are gone.
    pub fn savepoint_rollback(&mut self, depth: usize) -> Result<()> {
        let level = self.base_level() + depth;
        if level >= self.undo.depth() {
            return Ok(());
        }
        let undone = self.undo_to(level);
        if let Err(e) = &undone {
            self.half_undone = Some(e.clone());
        }
        undone
    }

    fn undo_to(&mut self, level: usize) -> Result<()> {
        self.epoch += 1;
        self.serial += 1;
        let size = self.undo.db_size(level);
        let images = self.undo.rollback(level, self.serial, self.page_size as usize)?;
        self.room_for_dirty(images.len())?;
        if size < self.db_size {
            let beyond: Vec<Pgno> = self.table.iter().map(|s| s.pgno).filter(|&p| p > size).collect();
            for p in beyond {
                self.table.remove(p);
            }
        }
        self.db_size = size;
        for (pgno, image) in images {
            match self.table.find(pgno) {
                Some(i) => {
                    let slot = self.table.slot_mut(i);
                    slot.set_buf(image);
                    slot.flags = (slot.flags | DIRTY) & !DONT_WRITE;
                    slot.saved = 0;
                }
                None => {
                    let i = self.table.insert(pgno, image)?;
                    self.table.slot_mut(i).flags = DIRTY;
                }
            }
            self.note_dirty(pgno);
        }
        Ok(())
    }

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

    fn write_transaction(&mut self, commit: Commit<'_>) -> Result<()> {
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
    fn frames_are_published(&mut self) {
        self.end_direct();
        let changed = std::mem::take(&mut self.dirty);
        self.forget_dirty(&changed);
    }

    /// Pages just committed to the log: others need not read them from there.
    fn share_frames(&mut self, pages: &[(Pgno, Buf)]) {
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
            if let Some(i) = self.table.find(1)
                && let Some(p1) = self.table.slot(i).buf()
            {
                self.file_version.copy_from_slice(&p1[24..40]);
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

    /// Takes the whole transaction back.
    pub fn rollback(&mut self, end_read: bool) -> Result<()> {
        if self.state < State::WriterLocked {
            if end_read {
                self.end_read();
            }
            return Ok(());
        }
        if self.is_inherited() {
            // The transaction is the parent's, and so are its journal and its frames.
            self.abandon();
            return Ok(());
        }
        if self.state == State::WriterFinished && self.wal.as_ref().is_some_and(|w| !w.is_prepared()) {
            // It is published: nobody can take it back.
            self.end_write(end_read);
            return Ok(());
        }
        // A commit that failed at its last step, the journal's end, has let go of the journal.
        let ending = self.state == State::WriterFinished
            && self.wal.is_none()
            && self.journal.is_none()
            && !matches!(self.journal_mode, JournalMode::Memory | JournalMode::Off);
        let in_file = ending || self.journal.as_ref().is_some_and(|j| j.in_file());
        let undone = if ending && self.kind == Kind::File { Ok(()) } else { self.undo_transaction() };
        self.epoch += 1;
        if (ending || undone.is_err()) && self.kind == Kind::File {
            if !in_file && self.wal.is_none() && self.state >= State::WriterDbMod {
                self.error = undone.as_ref().err().cloned();
            }
            self.give_up();
            return undone;
        }
        self.end_write(end_read);
        undone
    }

    /// Gives a transaction up that could not be taken back. The file may be half restored. Where the journal is a file it is
    /// hot now: nothing in memory counts any more, and the next reader plays it back.
    fn give_up(&mut self) {
        self.reset_cache();
        self.journal = None;
        self.foreign_image = None;
        self.half_undone = None;
        self.era = None;
        self.undo.clear();
        self.dirty.clear();
        self.end_direct();
        self.state = State::Open;
        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
            wal.end_write(&**file);
            wal.end_read(&**file);
        } else {
            self.unlock(LockLevel::None);
        }
    }

    /// Takes back what the transaction has changed, and stays the writer: nobody else can have written when it goes on.
    pub fn rollback_changes(&mut self) -> Result<()> {
        if self.state < State::WriterCacheMod || self.is_inherited() {
            return Ok(());
        }
        debug_assert!(self.state < State::WriterFinished);
        let in_file = self.journal.as_ref().is_some_and(|j| j.in_file());
        if let Err(e) = self.undo_transaction() {
            if in_file && self.journal.is_none() {
                // All was restored but the journal would not end. There is none to try again with.
                self.epoch += 1;
                self.give_up();
            } else {
                self.half_undone = Some(e.clone());
            }
            return Err(e);
        }
        self.epoch += 1;
        self.serial += 1;
        self.dirty.clear();
        self.foreign_image = None;
        self.half_undone = None;
        self.end_direct();
        if self.kind == Kind::File {
            self.undo.clear();
            // The file, or the log, is as it was; which pages others know of it is found out by the next transaction.
            self.era = None;
        }
        self.state = State::WriterLocked;
        self.check();
        Ok(())
    }

    fn undo_transaction(&mut self) -> Result<()> {
        if self.kind != Kind::File {
            return self.undo_to(0);
        }
        let touched = std::mem::take(&mut self.dirty);
        for p in touched {
            self.table.remove(p);
        }
        if self.state > State::WriterLocked
            && let (Some(wal), Some(file)) = (&mut self.wal, &self.file)
        {
            wal.undo(&**file)?;
        }
        if self.state >= State::WriterDbMod && self.wal.is_none() {
            match self.journal.take() {
                Some(mut j) => {
                    let played = self.play_back(&mut j);
                    self.journal = Some(j);
                    played?;
                }
                None => {
                    // journal_mode=OFF after a spill: there is nothing to go back to.
                    self.reset_cache();
                    return Err(Code::Corrupt.into());
                }
            }
        }
        self.db_size = self.orig_size;
        if self.journal.is_some() {
            // If it comes back after a loss of power, it is played back once more.
            let unsure = self.end_journal()?;
            self.note_failed_sync(&unsure);
        }
        Ok(())
    }

    fn play_back(&mut self, journal: &mut crate::journal::Journal) -> Result<()> {
        let file = self.file.as_deref().ok_or(Code::Misuse)?;
        let size = self.page_size as u64;
        let site = self.site(0);
        journal.play(&site, &mut |pgno, page| file.write(page, (pgno as u64 - 1) * size))?;
        file.truncate(self.orig_size as u64 * size)?;
        if self.sync != SyncMode::Off {
            file.sync(SyncKind::Full)?;
        }
        self.file_pages = self.orig_size;
        Ok(())
    }

    fn end_write(&mut self, end_read: bool) {
        self.undo.clear();
        self.dirty.clear();
        self.journal = None;
        self.foreign_image = None;
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
    fn stamp_header(&mut self) -> Result<()> {
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

    fn all_spilled(&self) -> bool {
        !self.dirty.iter().any(|&p| {
            self.table.find(p).is_some_and(|i| {
                p <= self.db_size && self.table.slot(i).flags & (DIRTY | DONT_WRITE) == DIRTY
            })
        })
    }

    fn lock_kept(&self) -> bool {
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
    fn wanted_pages(&self) -> Pgno {
        self.db_size - (self.db_size == self.lock_page()) as Pgno
    }

    /// Extends the file to the size of the database: the last pages may not have been written.
    fn extend_file(&mut self) -> Result<()> {
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
    fn shrink_file(&mut self) -> Result<()> {
        if self.shrinks() {
            let pages = self.wanted_pages();
            self.file()?.truncate(pages as u64 * self.page_size as u64)?;
            self.file_pages = pages;
        }
        Ok(())
    }

    fn shrinks(&self) -> bool {
        self.file_pages > self.wanted_pages() && self.db_size < self.orig_size
    }

    /// Whether the header says that there is a log.
    fn asks_for_log(&self) -> bool {
        let p1 = self.table.find(1).and_then(|i| self.table.slot(i).buf());
        p1.is_some_and(|b| b[19] == 2)
    }

    /// Whether the end of this transaction cuts pages off the file.
    fn will_shrink(&self) -> bool {
        self.state == State::WriterFinished && (self.shrinks() || self.foreign_image.is_some())
    }

    pub(crate) fn append_frames(&mut self, pages: &[(Pgno, Buf)], commit: Pgno) -> Result<()> {
        let file = self.file.as_deref().ok_or(Code::Misuse)?;
        let wal = self.wal.as_mut().expect("called in WAL mode");
        let sync = if self.sync == SyncMode::Off { None } else { Some(self.sync) };
        wal.append(file, pages, commit, self.page_size, sync)?;
        self.stats.writes += pages.len() as u64;
        Ok(())
    }

    fn forget_dirty(&mut self, dirty: &[Pgno]) {
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

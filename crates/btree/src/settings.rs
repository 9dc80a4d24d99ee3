//! What pragmas and the C API ask of a database, and set.

use crate::btree::{AutoVacuum, Btree};
use iolite_base::{Code, Encoding, Pgno, Result, be};
use iolite_pager::*;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

impl Btree {
    /// The text encoding: the header's, or the one set for a database that is still empty.
    pub fn encoding(&self) -> Result<Encoding> {
        match self.0.header_u32(56)? {
            0 => Ok(self.0.encoding.get()),
            // As in SQLite two bits of it count.
            n => Ok(Encoding::from_header(n & 3).unwrap_or_default()),
        }
    }

    /// Sets the encoding that a database gets with its first table.
    pub fn set_encoding(&self, e: Encoding) {
        self.0.encoding.set(e);
    }

    /// Bytes in a page.
    pub fn page_size(&self) -> u32 {
        self.0.pager.borrow().page_size()
    }

    /// Bytes at the end of each page that hold no content.
    pub fn reserved(&self) -> u8 {
        self.0.pager.borrow().reserved()
    }

    /// Sets page size and reserved bytes; `false`: the database has content already.
    pub fn set_page_size(&self, size: u32, reserved: Option<u8>) -> Result<bool> {
        let done = self.pager()?.set_page_size(size, reserved);
        if done {
            self.0.refresh()?;
        }
        Ok(done)
    }

    /// Pages in the database.
    pub fn page_count(&self) -> Pgno {
        self.0.pager.borrow().db_size()
    }

    /// Free pages in the database.
    pub fn freelist_count(&self) -> Result<u32> {
        self.0.header_u32(36)
    }

    /// `PRAGMA cache_size`.
    pub fn cache_size(&self) -> i32 {
        self.0.pager.borrow().cache_size()
    }

    /// About how many pages the cache may hold.
    pub fn cache_pages(&self) -> usize {
        self.0.pager.borrow().cache_target()
    }

    /// Sets it: pages, or KiB if negative.
    pub fn set_cache_size(&self, n: i32) -> Result<()> {
        self.pager()?.set_cache_size(n);
        Ok(())
    }

    /// `PRAGMA cache_spill`.
    pub fn set_cache_spill(&self, on: bool) -> Result<()> {
        self.pager()?.set_spill(on);
        Ok(())
    }

    /// Lets unused pages go (`sqlite3_db_release_memory`).
    pub fn release_memory(&self) -> Result<()> {
        self.0.forget_parked();
        self.pager()?.shrink();
        Ok(())
    }

    /// Counters of the page cache; `reset` sets them to zero.
    pub fn cache_stats(&self, reset: bool) -> CacheStats {
        self.0.pager.borrow_mut().stats(reset)
    }

    /// Bytes that cached pages take.
    pub fn cache_bytes(&self) -> usize {
        self.0.pager.borrow().cache_bytes()
    }

    /// The journal mode in force.
    pub fn journal_mode(&self) -> JournalMode {
        self.0.pager.borrow().journal_mode()
    }

    /// Whether the write transaction has changed anything yet.
    pub fn has_changed(&self) -> bool {
        self.0.pager.borrow().has_changed()
    }

    /// Sets the journal mode, rewriting the header where that is needed; returns the mode in force. No
    /// transaction may be open for a change to or from WAL.
    pub fn set_journal_mode(&self, mode: JournalMode) -> Result<JournalMode> {
        if self.pager()?.is_transient() {
            return Ok(self.pager()?.set_journal_mode(mode));
        }
        let was_open = self.txn_state() == TxnState::None;
        // The header says whether there is a log.
        self.begin_read()?;
        let now = self.journal_mode();
        let wants_wal = mode == JournalMode::Wal;
        if (now == JournalMode::Wal) == wants_wal {
            let set = self.pager()?.set_journal_mode(mode);
            if was_open {
                self.end_read();
            }
            return Ok(set);
        }
        if wants_wal && !self.pager()?.wal_possible() {
            if was_open {
                self.end_read();
            }
            return Ok(now);
        }
        if !was_open {
            return Err(iolite_base::Error::sql(if wants_wal {
                "cannot change into wal mode from within a transaction"
            } else {
                "cannot change out of wal mode from within a transaction"
            }));
        }
        self.end_read();
        self.check_alone()?;
        if !wants_wal {
            self.waiting_leave_wal()?;
            self.pager()?.set_no_wal(true);
            let changed = self.set_format_version(1);
            self.pager()?.set_no_wal(false);
            changed?;
            return Ok(self.pager()?.set_journal_mode(mode));
        }
        self.set_format_version(2)?;
        // Whoever reads next opens the log, and holds a lock from then on.
        self.pager()?.header_names_log();
        Ok(JournalMode::Wal)
    }

    fn waiting_leave_wal(&self) -> Result<()> {
        let left = self.pager()?.leave_wal();
        if left.is_err() {
            // Others are there: the log stays in use.
            self.begin_read()?;
            self.end_read();
        }
        left
    }

    /// Writes the two version numbers at offset 18: 1 for a journal, 2 for a log.
    fn set_format_version(&self, v: u8) -> Result<()> {
        self.begin_write(false)?;
        let page = self.0.header_page()?;
        if page[18] != v || page[19] != v {
            let mut page = page;
            self.pager()?.edit(1, &mut page, |b| {
                b[18] = v;
                b[19] = v;
            })?;
        }
        drop_guard(self.commit(), self)?;
        // A mode is only believed from the header: read it again.
        self.pager()?.forget_header();
        Ok(())
    }

    /// `PRAGMA locking_mode`.
    pub fn locking_mode(&self) -> LockingMode {
        self.0.pager.borrow().locking_mode()
    }

    /// Sets it; returns the one in force.
    pub fn set_locking_mode(&self, mode: LockingMode) -> Result<LockingMode> {
        Ok(self.pager()?.set_locking_mode(mode))
    }

    /// `PRAGMA synchronous`.
    pub fn synchronous(&self) -> SyncMode {
        self.0.pager.borrow().sync_mode()
    }

    /// Sets it.
    pub fn set_synchronous(&self, mode: SyncMode) -> Result<()> {
        self.pager()?.set_sync_mode(mode);
        Ok(())
    }

    /// `PRAGMA auto_vacuum`.
    pub fn auto_vacuum(&self) -> AutoVacuum {
        self.0.auto_vacuum.get()
    }

    /// Sets it. A database with content can only change between full and incremental; `false`: it cannot
    /// change.
    pub fn set_auto_vacuum(&self, mode: AutoVacuum) -> Result<bool> {
        if self.page_count() == 0 && !self.pager()?.page_size_fixed() {
            self.0.auto_vacuum.set(mode);
            return Ok(true);
        }
        let now = self.auto_vacuum();
        if now != AutoVacuum::None && mode != AutoVacuum::None {
            self.0.auto_vacuum.set(mode);
        }
        Ok((now == AutoVacuum::None) == (mode == AutoVacuum::None))
    }

    /// `PRAGMA secure_delete`.
    pub fn secure_delete(&self) -> SecureDelete {
        self.0.secure_delete.get()
    }

    /// Sets it.
    pub fn set_secure_delete(&self, mode: SecureDelete) {
        self.0.secure_delete.set(mode);
    }

    /// `PRAGMA max_page_count`.
    pub fn max_page_count(&self) -> Pgno {
        self.0.pager.borrow().max_pages()
    }

    /// Sets it (0 only asks); returns the one in force.
    pub fn set_max_page_count(&self, n: Pgno) -> Result<Pgno> {
        Ok(self.pager()?.set_max_pages(n))
    }

    /// `PRAGMA journal_size_limit`.
    pub fn journal_size_limit(&self) -> i64 {
        self.0.pager.borrow().journal_size_limit()
    }

    /// Sets it; -1 is no limit.
    pub fn set_journal_size_limit(&self, n: i64) -> Result<()> {
        self.pager()?.set_journal_size_limit(n);
        Ok(())
    }

    /// `PRAGMA wal_autocheckpoint`.
    pub fn wal_autocheckpoint(&self) -> u32 {
        self.0.autocheckpoint.get()
    }

    /// Sets it; 0 turns it off.
    pub fn set_wal_autocheckpoint(&self, frames: u32) {
        self.0.autocheckpoint.set(frames);
        if let Ok(mut p) = self.pager() {
            p.set_lease_frames(if frames == 0 { 1000 } else { frames });
        }
    }

    /// `PRAGMA lock_lease_ms`.
    pub fn lock_lease(&self) -> u32 {
        self.0.pager.borrow().lock_lease()
    }

    /// Sets it.
    pub fn set_lock_lease(&self, terms: LeaseTerms) -> Result<()> {
        self.pager()?.set_lock_lease(terms);
        Ok(())
    }

    /// `PRAGMA checkpoint_thread`.
    pub fn checkpoint_thread(&self) -> bool {
        self.0.pager.borrow().checkpoint_thread()
    }

    /// Sets it: whether checkpoints after a commit may be left to a thread.
    pub fn set_checkpoint_thread(&self, on: bool) -> Result<()> {
        self.pager()?.set_checkpoint_thread(on);
        Ok(())
    }

    /// `PRAGMA large_value_direct`.
    pub fn large_value_direct(&self) -> bool {
        self.0.pager.borrow().large_value_direct()
    }

    /// Sets it: whether large values may go to the file at once, beside a log.
    pub fn set_large_value_direct(&self, on: bool) -> Result<()> {
        self.pager()?.set_large_value_direct(on);
        Ok(())
    }

    /// Whether a file that is shorter than its header says is read all the same.
    pub fn set_salvages(&self, on: bool) -> Result<()> {
        self.pager()?.set_salvages(on);
        Ok(())
    }

    /// Frames in the log after the last commit, 0 if that had nothing to write: what a WAL hook is told.
    pub fn wal_frames(&self) -> u32 {
        self.0.committed_frames.get()
    }

    /// Copies frames from the log into the database.
    pub fn checkpoint(&self, mode: CheckpointMode) -> Result<CheckpointResult> {
        self.check_alone()?;
        self.pager()?.checkpoint(mode)
    }

    /// Whether the log stays when the last connection closes.
    pub fn set_persist_wal(&self, on: bool) -> Result<()> {
        self.pager()?.set_persist_wal(on);
        Ok(())
    }

    /// As set.
    pub fn persist_wal(&self) -> bool {
        self.0.pager.borrow().persist_wal()
    }

    /// Who is asked whether to wait for a lock.
    pub fn set_busy_handler(&self, handler: Option<BusyHandler>) -> Result<()> {
        if let Some(seat) = &self.1 {
            *seat.busy.borrow_mut() = handler;
            return Ok(());
        }
        self.pager()?.set_busy_handler(handler.clone());
        *self.0.busy.borrow_mut() = handler;
        Ok(())
    }

    /// Waits for locks up to so many milliseconds, in growing steps; 0 turns waiting off.
    pub fn set_busy_timeout(&self, ms: u32) -> Result<()> {
        if ms == 0 {
            return self.set_busy_handler(None);
        }
        let vfs = self.pager()?.vfs().clone();
        let began = Cell::new(0);
        let handler = move |attempt: u32| {
            let now = vfs.clock().monotonic_nanos();
            if attempt == 0 {
                began.set(now);
            }
            // Short at first, and growing slowly (SQLite: 1, 2, 5, 10, 15, 20, 25 ms). A writer that commits without a pause leaves
            // the file free for a tenth of the time: who asks ten times gets in, and who sleeps long finds the lock taken by
            // those who came later.
            let step = (50_000 << (attempt / 2).min(8)).min(5_000_000);
            // By the clock: the attempts themselves wait a little, too.
            let left = (ms as u64 * 1_000_000).saturating_sub(now.saturating_sub(began.get()));
            if left == 0 {
                return false;
            }
            vfs.clock().sleep(Duration::from_nanos(left.min(step)));
            true
        };
        self.set_busy_handler(Some(Rc::new(handler)))
    }

    /// Sets who is asked, before a commit with `auto_vacuum=full`, how many free pages go.
    pub fn set_vacuum_pages(&self, ask: Option<crate::VacuumPages>) {
        *self.0.vacuum_pages.borrow_mut() = ask;
    }

    /// Who is asked whether to wait.
    pub fn busy_handler(&self) -> Option<crate::BusyHandler> {
        self.0.busy.borrow().clone()
    }

    /// The lock that is held on the file.
    pub fn lock_level(&self) -> iolite_os::LockLevel {
        self.0.pager.borrow().lock_level()
    }

    /// The file grows in steps of so many bytes; 0: as it must.
    pub fn set_chunk_size(&self, bytes: u64) -> Result<()> {
        self.with_files(|file, _| file.map_or((), |f| f.set_chunk(bytes)))
    }

    /// `PRAGMA mmap_size`: remembered. Pages are read, not mapped, unless the VFS is a user's, which is told.
    pub fn mmap_size(&self) -> i64 {
        self.0.mmap_size.get()
    }

    /// Sets it.
    pub fn set_mmap_size(&self, bytes: i64) {
        self.0.mmap_size.set(bytes.max(0));
        let _ = self.with_files(|file, _| file.map(|f| f.notify(iolite_os::Note::MmapSize(bytes))));
    }

    /// Leaves the log as it is when the last connection closes.
    pub fn set_no_checkpoint_on_close(&self, on: bool) -> Result<()> {
        self.pager()?.set_no_checkpoint_on_close(on);
        Ok(())
    }

    /// Whether the database cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.0.pager.borrow().is_read_only()
    }

    /// Whether it is kept in memory.
    pub fn is_memory(&self) -> bool {
        self.0.pager.borrow().is_memory()
    }

    /// Whether it is private and vanishes when closed.
    pub fn is_transient(&self) -> bool {
        self.0.pager.borrow().is_transient()
    }

    /// The file's full name; empty where there is none.
    pub fn file_name(&self) -> PathBuf {
        self.0.pager.borrow().path().to_owned()
    }

    /// The rollback journal's name.
    pub fn journal_name(&self) -> PathBuf {
        self.0.pager.borrow().journal_path().to_owned()
    }

    /// The log's name.
    pub fn wal_name(&self) -> PathBuf {
        self.0.pager.borrow().wal_path().to_owned()
    }

    /// Changes when another connection changed the database (`PRAGMA data_version`).
    pub fn data_version(&self) -> u32 {
        let neighbours = self.at().map_or(0, |at| at.commits_of_others());
        self.0.pager.borrow().data_version().wrapping_add(neighbours)
    }

    /// Changes whenever anybody, this connection included, has changed the database (`SQLITE_FCNTL_DATA_VERSION`).
    pub fn content_version(&self) -> u32 {
        self.data_version().wrapping_add(self.0.pager.borrow().write_count() as u32)
    }

    /// The counter at offset 24 of the header.
    pub fn change_counter(&self) -> Result<u32> {
        self.0.header_u32(24)
    }

    /// Whether a commit of several databases needs this one in a super-journal.
    pub fn needs_super_journal(&self) -> bool {
        self.0.pager.borrow().needs_super_journal()
    }

    /// Whether somebody else has a write transaction open, or may have.
    pub fn has_moved(&self) -> Result<bool> {
        self.pager()?.has_moved()
    }

    /// Runs `f` on the database's file, if there is one, and on the journal's or log's.
    pub fn with_files<T>(
        &self,
        f: impl FnOnce(Option<&dyn iolite_os::File>, Option<&dyn iolite_os::File>) -> T,
    ) -> Result<T> {
        let pager = self.pager()?;
        Ok(f(pager.raw_file(), pager.raw_journal()))
    }

    /// The VFS below.
    pub fn vfs(&self) -> Result<std::sync::Arc<dyn iolite_os::Vfs>> {
        Ok(self.pager()?.vfs().clone())
    }

    /// The content of page `pgno`, as this transaction sees it.
    pub fn read_page(&self, pgno: Pgno) -> Result<iolite_base::Buf> {
        self.pager()?.get(pgno)
    }

    /// Overwrites a page: for writing a database page by page. All cursors lose their places.
    pub fn write_page(&self, pgno: Pgno, data: &[u8]) -> Result<()> {
        self.0.save_all()?;
        let mut pager = self.pager()?;
        pager.refuse_direct();
        let mut page = if pgno > pager.db_size() { pager.get_blank(pgno)? } else { pager.get(pgno)? };
        if data.len() != page.len() {
            return Err(Code::Misuse.into());
        }
        pager.edit(pgno, &mut page, |b| b.copy_from_slice(data))?;
        drop(pager);
        self.0.bump_all();
        if pgno == 1 {
            self.0.refresh()?;
        }
        Ok(())
    }

    /// Page size according to the header of page 1.
    pub fn header_page_size(&self) -> Result<u32> {
        let p1 = self.0.header_page()?;
        Ok(match be::get_u16(&p1, 16) {
            1 => 65536,
            n => n as u32,
        })
    }
}

/// A failed commit is taken back.
fn drop_guard(done: Result<()>, bt: &Btree) -> Result<()> {
    if done.is_err() {
        let _ = bt.rollback(true);
    }
    done
}

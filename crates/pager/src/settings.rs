//! What pragmas ask and set.

use crate::checkpointer::{self, Job};
use crate::lease::LeaseTerms;
use crate::pager::{Kind, Pager, State};
use crate::types::*;
use crate::wal::{Role, Wal};
use iolite_base::{Code, Pgno, Result};
use iolite_os::{File, LockLevel, Vfs};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a checkpoint on the way waits for the other writers.
const ON_THE_WAY: Duration = Duration::from_millis(5);
/// How long, and how often, to wait for each lock when the log is to begin anew.
const ANEW_STEP: Duration = Duration::from_micros(50);
const ANEW_STEPS: u32 = 60;

impl Pager {
    /// Bytes in a page.
    #[inline]
    pub fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Bytes at the end of each page that hold no content.
    pub fn reserved(&self) -> u8 {
        self.reserved
    }

    /// Page size less reserved bytes.
    #[inline]
    pub fn usable(&self) -> u32 {
        self.page_size - self.reserved as u32
    }

    /// Pages in the database.
    #[inline]
    pub fn db_size(&self) -> Pgno {
        self.db_size
    }

    /// Pages in the database when the write transaction began.
    pub fn orig_size(&self) -> Pgno {
        self.orig_size
    }

    /// Where the transaction stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether page size and reserved bytes are given by existing content.
    pub fn page_size_fixed(&self) -> bool {
        self.page_size_fixed || self.db_size > 0
    }

    /// Sets page size and reserved bytes of an empty database; `false` if it is not empty.
    pub fn set_page_size(&mut self, size: u32, reserved: Option<u8>) -> bool {
        if self.state > State::Reader || self.page_size_fixed() {
            return false;
        }
        let reserved = reserved.unwrap_or(self.reserved);
        if !size.is_power_of_two() || !(512..=65536).contains(&size) || size - (reserved as u32) < 480 {
            return false;
        }
        self.page_size = size;
        self.reserved = reserved;
        self.table.clear();
        self.set_cache_size(self.cache_setting);
        true
    }

    /// Says that the content being written consists of `pages` pages of another size, `bytes` bytes in all.
    /// It is read as such once the transaction has ended.
    pub fn set_foreign_image(&mut self, pages: Pgno, bytes: u64) -> Result<()> {
        if self.kind != Kind::File || self.wal.is_some() || self.state < State::WriterLocked {
            return Err(Code::Readonly.into());
        }
        self.foreign_image = Some((pages, bytes));
        Ok(())
    }

    /// Says how many bytes of each page the content being written reserves; if it is taken back, those of before count again.
    pub fn set_reserved_by_content(&mut self, reserved: u8) {
        let before = std::mem::replace(&mut self.reserved, reserved);
        self.reserved_before.get_or_insert(before);
    }

    /// `PRAGMA cache_size`: pages, or KiB if negative.
    pub fn set_cache_size(&mut self, n: i32) {
        self.cache_setting = n;
        self.cache_target = if n >= 0 {
            n as usize
        } else {
            ((-(n as i64) * 1024) / (self.page_size as i64 + 64)).min(1_000_000_000) as usize
        };
        let room = self.cache_room();
        if let Some(share) = &mut self.share {
            share.set_room(room);
        }
    }

    /// About how many bytes the cache may take.
    pub(crate) fn cache_room(&self) -> usize {
        self.cache_target.saturating_mul(self.page_size as usize).min(isize::MAX as usize >> 16)
    }

    /// About how many pages the cache may hold.
    #[inline]
    pub fn cache_target(&self) -> usize {
        self.cache_target
    }

    /// As set.
    pub fn cache_size(&self) -> i32 {
        self.cache_setting
    }

    /// `PRAGMA cache_spill`.
    pub fn set_spill(&mut self, on: bool) {
        self.spill_enabled = on;
    }

    /// Lets unused pages go.
    pub fn shrink(&mut self) {
        if self.kind == Kind::File {
            let clean: Vec<Pgno> = self
                .table
                .iter()
                .filter(|s| s.flags & crate::table::DIRTY == 0 && s.buf().is_some_and(|b| b.refs() == 1))
                .map(|s| s.pgno)
                .collect();
            for p in clean {
                self.table.remove(p);
            }
        }
    }

    /// `PRAGMA synchronous`.
    pub fn sync_mode(&self) -> SyncMode {
        self.sync
    }

    /// Sets it.
    pub fn set_sync_mode(&mut self, mode: SyncMode) {
        self.sync = mode;
        self.set_lease_frames(self.lease_frames);
    }

    /// The journal mode in force.
    pub fn journal_mode(&self) -> JournalMode {
        if self.is_wal() || self.names_log { JournalMode::Wal } else { self.journal_mode }
    }

    /// Sets one of the rollback modes (not to or from WAL); returns the mode in force.
    pub fn set_journal_mode(&mut self, mode: JournalMode) -> JournalMode {
        let mode = match self.volatile {
            false => mode,
            // A private file journals to memory, whatever it is told.
            _ if self.kind == Kind::Temp && mode != JournalMode::Wal => mode,
            // Nothing but memory to journal to.
            _ if matches!(mode, JournalMode::Memory | JournalMode::Off) => mode,
            _ => self.journal_mode,
        };
        if self.wal.is_some() || mode == JournalMode::Wal || self.state >= State::WriterCacheMod {
            return self.journal_mode();
        }
        let old = std::mem::replace(&mut self.journal_mode, mode);
        let keeps = |m| matches!(m, JournalMode::Persist | JournalMode::Truncate);
        if self.kind == Kind::File && keeps(old) && !keeps(mode) {
            self.kept_journal = None;
            // The file lies there without meaning. Only with RESERVED is it certain that nobody writes it.
            if self.stays_in_place().is_err() {
                return mode;
            }
            if self.lock >= LockLevel::Reserved {
                let _ = self.vfs.delete(&self.journal_path, false);
            } else if self.state == State::Open && self.raise(LockLevel::Shared).is_ok() {
                if self.raise(LockLevel::Reserved).is_ok() {
                    let _ = self.vfs.delete(&self.journal_path, false);
                }
                self.unlock(LockLevel::None);
            } else if self.state == State::Reader && self.raise(LockLevel::Reserved).is_ok() {
                let _ = self.vfs.delete(&self.journal_path, false);
                self.unlock(LockLevel::Shared);
            }
        }
        mode
    }

    /// Whether a write-ahead log is open.
    pub fn is_wal(&self) -> bool {
        self.wal.is_some()
    }

    /// Whether the database can have a write-ahead log.
    pub fn wal_possible(&self) -> bool {
        !self.volatile
            && !self.nolock
            && (self.locking_mode == LockingMode::Exclusive
                || self.file.as_ref().is_some_and(|f| f.has_shm()))
    }

    /// The lock that is held on the file.
    pub fn lock_level(&self) -> LockLevel {
        self.lock
    }

    /// `PRAGMA locking_mode`.
    pub fn locking_mode(&self) -> LockingMode {
        // What is in memory or transient is nobody else's.
        if self.kind == Kind::File && !self.volatile { self.locking_mode } else { LockingMode::Exclusive }
    }

    /// Sets it; in WAL mode with a shared index, an exclusive mode holds from the next write on.
    pub fn set_locking_mode(&mut self, mode: LockingMode) -> LockingMode {
        if self.kind == Kind::File && !self.volatile {
            let heap = self.wal.as_ref().is_some_and(|w| w.has_heap_index());
            if mode == LockingMode::Normal && heap {
                // A private index cannot be shared any more: fold the log, then begin again.
                if self.state == State::Open && self.close_wal(false).is_ok() {
                    self.reset_cache();
                    self.unlock(LockLevel::None);
                    self.locking_mode = mode;
                }
                return self.locking_mode;
            }
            self.locking_mode = mode;
            // Without a log, locks are given back when the next transaction ends.
            if mode == LockingMode::Normal && self.wal.is_some() && self.lock > LockLevel::Shared {
                self.unlock(LockLevel::Shared);
            }
        }
        self.locking_mode()
    }

    /// `PRAGMA max_page_count`.
    pub fn max_pages(&self) -> Pgno {
        self.max_pages
    }

    /// Sets it, never below the present size.
    pub fn set_max_pages(&mut self, n: Pgno) -> Pgno {
        if n > 0 {
            self.max_pages = n.min(0xffff_fffe);
        }
        self.max_pages = self.max_pages.max(self.db_size);
        self.max_pages
    }

    /// `PRAGMA journal_size_limit`.
    pub fn journal_size_limit(&self) -> i64 {
        self.journal_size_limit
    }

    /// Sets it; -1 is no limit.
    pub fn set_journal_size_limit(&mut self, n: i64) {
        self.journal_size_limit = n.max(-1);
        if let Some(w) = &mut self.wal {
            w.size_limit = self.journal_size_limit;
        }
    }

    /// `PRAGMA lock_lease_ms`: for how long a read lock on a log is kept unused. 0: not at all.
    pub fn lock_lease(&self) -> u32 {
        self.lease.millis
    }

    /// Sets it. The usual terms are for files of a VFS that says that threads may open them.
    pub fn set_lock_lease(&mut self, terms: LeaseTerms) {
        let fits = terms != LeaseTerms::USUAL || (self.kind == Kind::File && self.vfs.threads());
        self.lease = if fits { terms } else { LeaseTerms::NONE };
        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
            wal.end_lease(&**file);
            wal.lease_terms = self.lease;
        }
    }

    /// Says from how many frames on the log is to be copied back: locks that hinder it are then not kept.
    pub fn set_lease_frames(&mut self, frames: u32) {
        self.lease_frames = frames;
        let frames = self.most_leased_frames();
        if let Some(wal) = &mut self.wal {
            wal.lease_frames = frames;
            wal.others_sync = self.checkpoint_thread && self.sync == SyncMode::Normal;
        }
    }

    /// A job of the checkpointer's takes leases back itself, and the log is longer when it begins anew.
    fn most_leased_frames(&self) -> u32 {
        let times = if self.leaves_checkpoints() { checkpointer::LOST } else { 1 };
        self.lease_frames.saturating_mul(times)
    }

    /// Only commits that do not wait for the disk gain by it. At FULL a checkpoint is 8 % of them, and a log that grows to
    /// several times its length first makes each sync one of the file's length, too: 122 us a commit instead of 100.
    fn leaves_checkpoints(&self) -> bool {
        self.checkpoint_thread && self.sync == SyncMode::Normal
    }

    /// `PRAGMA checkpoint_thread`: whether checkpoints after a commit may be left to a thread.
    pub fn checkpoint_thread(&self) -> bool {
        self.checkpoint_thread
    }

    /// Sets it. Where files cannot be opened by threads, or locks not be told apart, nothing changes.
    pub fn set_checkpoint_thread(&mut self, on: bool) {
        self.checkpoint_thread = on && self.kind == Kind::File && self.vfs.threads();
        self.asked_at = 0;
        self.set_lease_frames(self.lease_frames);
    }

    /// Takes back or waits for a checkpoint that was left to the thread.
    pub(crate) fn rest(&self) {
        if let Some(share) = &self.share {
            checkpointer::rest(share.database());
        }
    }

    /// After a commit that left so many frames in the log or more.
    pub fn checkpoint_after_commit(&mut self, frames: u32) {
        if !self.leave_checkpoint(frames) {
            self.checkpoint_on_the_way(frames);
        }
    }

    /// Leaves it to the thread, if there may be one and its jobs come to an end.
    fn leave_checkpoint(&mut self, frames: u32) -> bool {
        let (true, Some(share), Some(wal), Some(file)) =
            (self.leaves_checkpoints(), &self.share, &self.wal, &self.file)
        else {
            return false;
        };
        let last = wal.last_frame();
        if wal.has_heap_index() {
            return false;
        }
        // If readers are in the way, asking again is of use only after a while: the longer, the longer they are there.
        let long = frames.saturating_mul(checkpointer::LOST);
        let pause = if self.asked_at >= long { frames.max(self.asked_at / 4) } else { frames };
        if last >= self.asked_at && last < self.asked_at.saturating_add(pause) && self.asked_at > 0 {
            return true;
        }
        if last >= long {
            // Whoever commits faster than the thread gets on waits for it, or the log would grow for as long as that.
            checkpointer::rest(share.database());
            self.asked_at = last;
            self.begin_log_anew();
            return true;
        }
        let (Some(id), Some(_)) = (file.identity(), file.shm_release()) else { return false };
        let asked = checkpointer::ask(Job {
            database: share.database().clone(),
            vfs: self.vfs.clone(),
            path: self.path.clone(),
            id,
            wal_path: self.wal_path.clone(),
            page_size: self.page_size,
            sync: (self.sync != SyncMode::Off).then_some(self.sync),
            frames,
        });
        if asked {
            self.asked_at = last;
        }
        asked
    }

    /// Copies all frames with the writers of all processes locked out for the last ones, and lets the readers go that are in
    /// the log's way: several processes that write without a pause leave no moment in which everything is copied and
    /// nobody reads (400 MB of log after two seconds, measured).
    fn begin_log_anew(&mut self) {
        if self.state != State::Open || !self.copying(|wal, file| wal.begin_copying(file)) {
            return;
        }
        let _ = self.copy_back(CheckpointMode::Passive);
        let clock = self.vfs.clone();
        let busy: BusyHandler = Rc::new(move |attempts| {
            clock.clock().sleep(ANEW_STEP);
            attempts < ANEW_STEPS
        });
        let kept = self.busy.replace(busy);
        let _ = self.copy_back(CheckpointMode::Restart);
        self.busy = kept;
        self.copying(|wal, _| {
            wal.end_copying();
            true
        });
    }

    /// Whether the log stays when the last connection closes.
    pub fn persist_wal(&self) -> bool {
        self.persist_wal
    }

    /// Sets it (`SQLITE_FCNTL_PERSIST_WAL`).
    pub fn set_persist_wal(&mut self, on: bool) {
        self.persist_wal = on;
    }

    /// Reads a file also if it is shorter than its header says.
    pub fn set_salvages(&mut self, on: bool) {
        self.salvages = on;
    }

    /// Leaves the log as it is when the last connection closes.
    pub fn set_no_checkpoint_on_close(&mut self, on: bool) {
        self.no_checkpoint_on_close = on;
    }

    /// Whether the file was opened for reading alone.
    pub fn file_is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the database cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only || self.format_read_only
    }

    /// Whether there is no file behind it at all.
    pub fn is_memory(&self) -> bool {
        self.kind == Kind::Memory || self.kind == Kind::File && self.volatile
    }

    /// Whether it is private and vanishes when closed.
    pub fn is_transient(&self) -> bool {
        self.kind != Kind::File
    }

    /// The file's full name; empty where there is none.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rollback journal's name.
    pub fn journal_path(&self) -> &Path {
        &self.journal_path
    }

    /// The write-ahead log's name.
    pub fn wal_path(&self) -> &Path {
        &self.wal_path
    }

    /// Changes when another connection changed the database.
    pub fn data_version(&self) -> u32 {
        self.data_version
    }

    /// Whether the write transaction has changed anything yet.
    pub fn has_changed(&self) -> bool {
        self.state > State::WriterLocked
    }

    /// How many write transactions of this session have ended.
    pub fn write_count(&self) -> u64 {
        self.serial
    }

    /// Rises when pages may have changed other than by this session's own edits.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Who is asked whether to wait for a lock.
    pub fn set_busy_handler(&mut self, handler: Option<BusyHandler>) {
        self.busy = handler;
    }

    /// The VFS below.
    pub fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// Counters; `reset` sets them to zero.
    pub fn stats(&mut self, reset: bool) -> CacheStats {
        let s = self.stats;
        if reset {
            self.stats = CacheStats::default();
        }
        s
    }

    /// Bytes held by cached pages.
    pub fn cache_bytes(&self) -> usize {
        self.table.len() * (self.page_size as usize + 64)
    }

    /// Whether the file lies no longer under its name.
    pub fn has_moved(&self) -> Result<bool> {
        match &self.file {
            Some(f) if self.kind == Kind::File => f.has_moved(),
            _ => Ok(false),
        }
    }

    /// The file itself, for file controls.
    pub fn raw_file(&self) -> Option<&dyn iolite_os::File> {
        self.file.as_deref()
    }

    /// The rollback journal's file or the log, if one is open, for file controls.
    pub fn raw_journal(&self) -> Option<&dyn iolite_os::File> {
        match (&self.wal, &self.journal) {
            (Some(wal), _) => Some(wal.raw_file()),
            (None, Some(journal)) => journal.raw_file(),
            (None, None) => self.kept_journal.as_deref(),
        }
    }

    /// Opens the log of a database whose header asks for one.
    pub(crate) fn open_wal(&mut self) -> Result<()> {
        if !self.wal_possible() {
            return Err(Code::Cantopen.into());
        }
        // Beside the old name lies the log of another database, if any.
        self.stays_in_place()?;
        if self.locking_mode == LockingMode::Exclusive {
            self.raise(LockLevel::Exclusive)?;
        }
        let heap = self.lock == LockLevel::Exclusive;
        let flags = iolite_os::OpenFlags {
            // A reader, too, needs a log to look into, even an empty one.
            or_read_only: true,
            ..iolite_os::OpenFlags::read_write(iolite_os::FileKind::Wal)
        };
        let log = self.vfs.open(Some(&self.wal_path), flags)?;
        let mut wal = Wal::new(log, heap, self.vfs.clone());
        wal.chain = self.share.as_ref().map(|s| s.chain());
        wal.shared = self.share.as_ref().map(|s| s.database().clone());
        wal.size_limit = self.journal_size_limit;
        (wal.lease_terms, wal.lease_frames) = (self.lease, self.most_leased_frames());
        wal.others_sync = self.leaves_checkpoints();
        self.wal = Some(wal);
        self.kept_journal = None;
        Ok(())
    }

    /// Leaves WAL mode: folds the log into the file and removes it. `SQLITE_BUSY` if others have the database
    /// open.
    pub fn leave_wal(&mut self) -> Result<()> {
        if self.wal.is_none() {
            return Ok(());
        }
        debug_assert!(self.state == State::Open);
        self.rest();
        self.raise(LockLevel::Shared)?;
        if let Err(e) = self.raise(LockLevel::Exclusive) {
            self.unlock(LockLevel::Shared);
            return Err(e);
        }
        if let Err(e) = self.close_wal(true) {
            self.unlock(LockLevel::None);
            self.reset_cache();
            return Err(e);
        }
        self.journal_mode = JournalMode::Delete;
        self.reset_cache();
        // EXCLUSIVE stays until the header says so, too: see `set_no_wal`.
        Ok(())
    }

    /// While set, a header that asks for a log is not obeyed: for the transaction that changes the header.
    pub fn set_no_wal(&mut self, on: bool) {
        self.no_wal = on;
    }

    /// Copies frames from the log into the database file.
    pub fn checkpoint(&mut self, mode: CheckpointMode) -> Result<CheckpointResult> {
        self.rest();
        self.copy_back(mode)
    }

    fn copy_back(&mut self, mode: CheckpointMode) -> Result<CheckpointResult> {
        let none = CheckpointResult { busy: false, log: -1, checkpointed: -1 };
        if self.state != State::Open {
            return Err(Code::Locked.into());
        }
        if self.kind != Kind::File {
            return Ok(none);
        }
        if self.wal.is_none() {
            // The log of a database that was not read yet is only known from its header.
            if self.state == State::Open {
                self.begin_read()?;
                self.end_read();
            }
            if self.wal.is_none() {
                return Ok(none);
            }
        }
        let sync = if self.sync == SyncMode::Off { None } else { Some(self.sync) };
        let busy = self.busy.clone();
        let busy = if mode == CheckpointMode::Passive { None } else { busy };
        let file = self.file.as_deref().expect("a log belongs to a file");
        let wal = self.wal.as_mut().expect("checked above");
        let table = &self.table;
        let done = wal.checkpoint(file, mode, sync, busy, self.page_size, &|p| table.clean(p));
        self.note_failed_sync(&done);
        done
    }

    /// After a commit that left so many frames in the log or more: copies what can be copied, and what came meanwhile while
    /// the other writers of the process pause. Without that there would always be a frame that is not copied, and the log
    /// would never begin anew; with it from the beginning, they would wait for two long syncs.
    fn checkpoint_on_the_way(&mut self, frames: u32) {
        if self.state != State::Open || !self.copying(|wal, file| wal.begin_copying(file)) {
            return;
        }
        // What cannot be copied now is copied later: no reason to fail a commit that happened.
        let _ = self.copy_back(CheckpointMode::Passive);
        let more = |wal: &mut Wal, _: &dyn File| !wal.has_less_to_copy(frames);
        let turn = |wal: &mut Wal, file: &dyn File| wal.await_turn(file, Role::Copier, ON_THE_WAY).is_ok();
        if self.copying(more) && self.copying(turn) {
            if self.copying(more) {
                let _ = self.copy_back(CheckpointMode::Passive);
            }
            self.leave_turn();
        }
        self.copying(|wal, _| {
            wal.end_copying();
            true
        });
    }

    fn copying(&mut self, f: impl FnOnce(&mut Wal, &dyn File) -> bool) -> bool {
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) => f(wal, &**file),
            _ => false,
        }
    }

    /// Makes the next read transaction look at the header again.
    pub fn forget_header(&mut self) {
        if self.state == State::Open {
            self.reset_cache();
        }
    }

    /// Until somebody reads, the mode is that of a log, and no lock is held.
    pub fn header_names_log(&mut self) {
        self.names_log = self.wal.is_none();
    }

    /// Frames in the log after the last commit: what the WAL hook is told.
    pub fn wal_frames(&self) -> u32 {
        self.wal.as_ref().map_or(0, |w| w.last_frame())
    }
}

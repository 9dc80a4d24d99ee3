//! The pager: its state, opening and closing.
//!
//! ```text
//! Open --begin_read--> Reader --begin_write--> WriterLocked --first change--> WriterCacheMod
//!   ^                  |  ^  ^                    |                              |
//!   +-----end_read-----+  |  +------rollback------+                              | spill, commit
//!                         |  +------rollback-------------------------------------+ (rollback modes)
//!                         |  |                                                   v
//!                         |  +------rollback--------------------------------- WriterDbMod
//!                         |                                                      | phase one
//!                         +------phase two------------------------------- WriterFinished
//! ```
//!
//! What always holds ([`Pager::check`]): in `Reader` and above a database file is locked SHARED at least (in
//! WAL mode also in `Open`, once the log was opened); in `WriterLocked` and above RESERVED at least or the
//! log's write lock; in `WriterDbMod` EXCLUSIVE. A journal is kept open from one transaction to the next only under
//! RESERVED or more. Undo levels exist only in `WriterLocked` and above. In a
//! log's mode the database file is never written by a transaction, but for free pages (module `direct`).

use crate::checkpointer;
use crate::direct::Direct;
use crate::former::Former;
use crate::journal::{self, Journal};
use crate::lease::LeaseTerms;
use crate::shared::Share;
use crate::table::PageTable;
use crate::types::*;
use crate::undo::Undo;
use crate::wal::Wal;
use iolite_base::{Code, Error, Pgno, Result, hash::FastSet};
use iolite_os::{Access, File, FileKind, LockLevel, OpenFlags, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a session stands. See the drawing at the module's head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// No transaction.
    Open,
    /// Reading.
    Reader,
    /// May write; nothing changed.
    WriterLocked,
    /// Pages changed in memory (or in the log, uncommitted).
    WriterCacheMod,
    /// The database file was changed.
    WriterDbMod,
    /// All is in the file and synced; only the journal still says otherwise.
    WriterFinished,
}

/// What is behind the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A database file.
    File,
    /// A private file that exists only once memory is short.
    Temp,
    /// Nothing.
    Memory,
}

/// One connection's pages of one database.
pub struct Pager {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) kind: Kind,
    /// Its content ends with the process.
    pub(crate) volatile: bool,
    pub(crate) file: Option<Box<dyn File>>,
    pub(crate) path: PathBuf,
    pub(crate) journal_path: PathBuf,
    pub(crate) wal_path: PathBuf,
    pub(crate) read_only: bool,
    /// The file's header says that this version must not write it.
    pub(crate) format_read_only: bool,
    pub(crate) immutable: bool,
    pub(crate) nolock: bool,

    pub(crate) page_size: u32,
    pub(crate) reserved: u8,
    /// Page size and reserved bytes come from a file's header.
    pub(crate) page_size_fixed: bool,

    pub(crate) state: State,
    pub(crate) lock: LockLevel,
    /// The header is about to say that there is no log: what it says now does not count.
    pub(crate) no_wal: bool,
    /// The header has been made to name a log, which the next read opens.
    pub(crate) names_log: bool,
    pub(crate) locking_mode: LockingMode,
    pub(crate) journal_mode: JournalMode,
    pub(crate) sync: SyncMode,
    pub(crate) cache_setting: i32,
    pub(crate) cache_target: usize,
    pub(crate) spill_enabled: bool,
    /// The transaction has written pages for want of room.
    pub(crate) pressed: bool,
    pub(crate) max_pages: Pgno,
    pub(crate) journal_size_limit: i64,
    pub(crate) persist_wal: bool,
    /// A file may be shorter than its header says: what there is counts then.
    pub(crate) salvages: bool,
    /// The log stays as it is when the last connection closes.
    pub(crate) no_checkpoint_on_close: bool,
    /// When read locks are kept unused.
    pub(crate) lease: LeaseTerms,
    /// From so many frames on none is.
    pub(crate) lease_frames: u32,
    /// Checkpoints may be left to a thread: wanted, and the log's frames when one was left last.
    pub(crate) checkpoint_thread: bool,
    pub(crate) asked_at: u32,
    /// `PRAGMA large_value_direct`, and how far the present transaction has come with it.
    pub(crate) large_direct: bool,
    pub(crate) direct: Direct,
    /// The log, by its salts, and the frame of it under which this session last shared pages.
    pub(crate) entered: ([u8; 8], u32),
    pub(crate) busy: Option<BusyHandler>,

    pub(crate) table: PageTable,
    /// Where pages are read ahead into.
    pub(crate) ahead: Vec<u8>,
    pub(crate) former: Former,
    pub(crate) db_size: Pgno,
    /// The size when the write transaction began.
    pub(crate) orig_size: Pgno,
    /// Pages in the database file, as far as this session wrote or saw it.
    pub(crate) file_pages: Pgno,
    /// Bytes 24 to 39 of the file when the cache was filled (rollback modes).
    pub(crate) file_version: [u8; 16],
    /// The header was checked and the cache belongs to it.
    pub(crate) header_ok: bool,
    /// The header tells the database's size, which counts then: the file may be longer, and so may what a log says that another
    /// engine began on such a file.
    pub(crate) sized_by_header: bool,
    /// The database was read before: whether others have changed it since can be told, also where the cache is gone.
    /// The state that a transaction which is just beginning is to read, if that is not the newest.
    pub(crate) wanted: Option<crate::wal::SnapshotName>,
    pub(crate) was_read: bool,
    /// All pages changed in this transaction; may name a page twice.
    pub(crate) dirty: Vec<Pgno>,
    /// The same for those who asked to be told ([`Pager::watch_changes`]): all pages that may have changed since they asked last.
    pub(crate) watched: Option<FastSet<Pgno>>,
    pub(crate) serial: u64,
    pub(crate) undo: Undo,
    pub(crate) journal: Option<Journal>,
    /// A journal file kept open between transactions, while RESERVED or more is held: without it, anybody may remove the
    /// file, and what is written to a removed journal plays nothing back.
    pub(crate) kept_journal: Option<Box<dyn File>>,
    pub(crate) wal: Option<Wal>,
    /// The counter was raised since the file is locked against all others: that happens once.
    pub(crate) change_counted: bool,
    pub(crate) data_version: u32,
    /// Raised whenever cached pages may have changed under cursors.
    pub(crate) epoch: u64,
    /// The content being written has pages of another size: so many, of so many bytes in all.
    pub(crate) foreign_image: Option<(Pgno, u64)>,
    /// The bytes reserved on each page before the content that is being written, where that reserves others.
    pub(crate) reserved_before: Option<u8>,
    pub(crate) error: Option<Error>,
    /// Going back to a savepoint failed on the way: the transaction cannot be committed any more.
    pub(crate) half_undone: Option<Error>,
    pub(crate) stats: CacheStats,
    /// What other sessions of this process know of the file.
    pub(crate) share: Option<Share>,
    /// The era of the present read transaction, if pages are shared in it.
    pub(crate) era: Option<u64>,
    /// The present transaction reads the same state of the log as the one before.
    pub(crate) same_log: bool,
    pub(crate) random: u64,
    /// Who is told when the last connection closes.
    pub(crate) closing: Option<crate::view::ClosingNote>,
}

impl Pager {
    /// Opens a database. Only the file itself is opened; nothing is read or locked.
    pub fn open(vfs: Arc<dyn Vfs>, path: &Path, opts: &OpenOptions) -> Result<Pager> {
        let kind = if opts.memory {
            Kind::Memory
        } else if path.as_os_str().is_empty() {
            Kind::Temp
        } else {
            Kind::File
        };
        let mut full = PathBuf::new();
        let mut file = None;
        let mut read_only = false;
        let mut volatile = kind != Kind::File;
        let mut immutable = opts.immutable;
        if kind == Kind::File {
            if opts.nofollow && vfs.is_behind_link(path)? {
                return Err(Code::CantopenSymlink.into());
            }
            full = vfs.full_path(path)?;
            let flags = OpenFlags {
                kind: FileKind::MainDb,
                read_only: opts.read_only,
                create: opts.create && !opts.read_only,
                exclusive: false,
                or_read_only: true,
                nolock: opts.nolock || opts.immutable,
                nofollow: opts.nofollow,
            };
            let f = vfs.open(Some(&full), flags)?;
            immutable |= f.characteristics().immutable;
            read_only = f.is_read_only() || immutable;
            volatile = f.characteristics().volatile;
            file = Some(f);
        }
        let with = |suffix: &str| {
            let mut name = full.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let mut pager = Pager {
            journal_path: with("-journal"),
            wal_path: with("-wal"),
            path: full,
            vfs,
            kind,
            volatile,
            file,
            read_only,
            format_read_only: false,
            immutable,
            nolock: opts.nolock || immutable,
            page_size: opts.page_size,
            reserved: opts.reserved,
            page_size_fixed: false,
            state: State::Open,
            lock: LockLevel::None,
            no_wal: false,
            names_log: false,
            locking_mode: if kind == Kind::File { LockingMode::Normal } else { LockingMode::Exclusive },
            journal_mode: if volatile && kind != Kind::Temp {
                JournalMode::Memory
            } else {
                JournalMode::Delete
            },
            sync: SyncMode::Full,
            cache_setting: opts.cache_size,
            cache_target: 0,
            spill_enabled: true,
            pressed: false,
            max_pages: 0xffff_fffe,
            journal_size_limit: -1,
            persist_wal: false,
            salvages: false,
            no_checkpoint_on_close: false,
            lease: LeaseTerms::NONE,
            lease_frames: 1000,
            checkpoint_thread: false,
            asked_at: 0,
            large_direct: false,
            direct: Direct::Untried,
            entered: ([0; 8], 0),
            busy: None,
            table: PageTable::new(),
            ahead: Vec::new(),
            former: Former::default(),
            db_size: 0,
            orig_size: 0,
            file_pages: 0,
            file_version: [0; 16],
            header_ok: false,
            sized_by_header: false,
            wanted: None,
            was_read: false,
            dirty: Vec::new(),
            watched: None,
            serial: 1,
            undo: Undo::default(),
            journal: None,
            kept_journal: None,
            wal: None,
            change_counted: false,
            data_version: 1,
            epoch: 0,
            foreign_image: None,
            reserved_before: None,
            error: None,
            half_undone: None,
            stats: CacheStats::default(),
            share: None,
            era: None,
            same_log: false,
            random: 0,
            closing: None,
        };
        pager.set_cache_size(opts.cache_size);
        if let Some(id) = pager.file.as_ref().and_then(|f| f.identity()) {
            pager.share = Some(Share::join(id, pager.cache_room()));
        }
        Ok(pager)
    }

    /// Ends everything: an open transaction is taken back, a log that nobody else uses is copied into the
    /// database and removed.
    pub fn close(&mut self) -> Result<()> {
        if self.is_inherited() {
            self.abandon();
            self.file = None;
            return Ok(());
        }
        let rolled_back = if self.state > State::Reader { self.rollback(true) } else { Ok(()) };
        if self.state != State::Open {
            self.end_read();
        }
        if let Some(share) = &mut self.share
            && share.leave()
        {
            checkpointer::rest(share.database());
        }
        let closed = self.close_wal(false);
        self.unlock(LockLevel::None);
        self.table.clear();
        self.share = None;
        self.file = None;
        rolled_back.and(closed)
    }

    /// A journal that was kept for the next transaction of an exclusive mode goes with the lock.
    fn finish_kept_journal(&mut self) {
        if self.kept_journal.take().is_some()
            && matches!(self.journal_mode, JournalMode::Delete)
            && self.stays_in_place().is_ok()
        {
            let _ = self.vfs.delete(&self.journal_path, false);
        }
    }

    /// Whether this process was forked from the one that opened the file: whatever was under way is its parent's to end.
    pub fn is_inherited(&self) -> bool {
        self.file.as_ref().is_some_and(|f| f.is_inherited())
    }

    /// Lets everything of a parent's go without a word to the disk: its transaction, its locks, its log.
    pub(crate) fn abandon(&mut self) {
        self.undo.clear();
        self.dirty.clear();
        self.journal = None;
        self.kept_journal = None;
        self.foreign_image = None;
        self.half_undone = None;
        self.era = None;
        self.entered = ([0; 8], 0);
        self.direct = Direct::Untried;
        self.wal = None;
        self.state = State::Open;
        self.lock = LockLevel::None;
        self.change_counted = false;
        // Its next journal would have the same nonce.
        self.random = 0;
        // Its locks may have been held when the process forked.
        std::mem::forget(self.share.take());
        self.reset_cache();
    }

    /// Opens the file again for the process that this one has become by a fork: locks of its own need a description of its own.
    pub(crate) fn open_again(&mut self) -> Result<()> {
        let Some(old) = &self.file else { return Err(Code::Misuse.into()) };
        let flags = OpenFlags {
            kind: FileKind::MainDb,
            read_only: self.read_only,
            create: false,
            exclusive: false,
            or_read_only: false,
            nolock: self.nolock,
            nofollow: false,
        };
        let new = self.vfs.open(Some(&self.path), flags)?;
        if new.identity() != old.identity() || old.identity().is_none() {
            return Err(Code::ReadonlyDbmoved.into());
        }
        self.abandon();
        let room = self.cache_room();
        self.share = new.identity().map(|id| Share::join(id, room));
        self.file = Some(new);
        Ok(())
    }

    /// `SQLITE_READONLY_DBMOVED` where the file no longer lies under its name: journal and log of that name belong to
    /// another database then, or would never be found.
    pub(crate) fn stays_in_place(&self) -> Result<()> {
        match &self.file {
            Some(f) if self.kind == Kind::File && f.has_moved()? => Err(Code::ReadonlyDbmoved.into()),
            _ => Ok(()),
        }
    }

    /// Folds the log into the database if this is the last connection. Used by closing and by leaving WAL
    /// mode, when its name must go for good: it would count again beside a rollback journal.
    pub(crate) fn close_wal(&mut self, for_good: bool) -> Result<()> {
        let Some(mut wal) = self.wal.take() else { return Ok(()) };
        let file = self.file.as_deref().expect("a log belongs to a file");
        if let Err(e) = self.stays_in_place() {
            // The log of that name is another database's by now, or the next one's.
            wal.close(file, false);
            return if for_good { Err(e) } else { Ok(()) };
        }
        let mut alone = self.lock == LockLevel::Exclusive;
        if !alone && !self.read_only && !wal.is_read_only() && file.lock(LockLevel::Exclusive).is_ok() {
            self.lock = LockLevel::Exclusive;
            alone = true;
        }
        let mut done = Ok(());
        let mut delete = false;
        if alone && !self.read_only && (for_good || !self.no_checkpoint_on_close) {
            let sync = if self.sync == SyncMode::Off { None } else { Some(self.sync) };
            let table = &self.table;
            let cached = |p| table.clean(p);
            let copied = wal.checkpoint(file, CheckpointMode::Passive, sync, None, self.page_size, &cached);
            done = copied.map(|_| ());
            delete = done.is_ok() && wal.is_backfilled();
            if let (true, Some(note)) = (delete, self.closing.take()) {
                // Nobody can write meanwhile.
                note(wal.last_mark(), self.base_now(true, true).unwrap_or(None));
            }
        }
        let keep = delete && !for_good && file.keeps_log().unwrap_or(self.persist_wal);
        wal.close(file, delete && !keep);
        if keep && self.journal_size_limit >= 0 {
            wal.limit_size(0);
        }
        drop(wal);
        if delete && !keep {
            let gone = self.vfs.delete(&self.wal_path, for_good && self.sync != SyncMode::Off);
            match gone {
                Err(e) if for_good && e.code() != Code::IoerrDeleteNoent => return done.and(Err(e)),
                _ => {}
            }
        }
        done
    }

    /// The state, as callers ask for it.
    pub fn txn_state(&self) -> TxnState {
        match self.state {
            State::Open => TxnState::None,
            State::Reader => TxnState::Read,
            _ => TxnState::Write,
        }
    }

    /// Asserts the drawing at the module's head.
    pub(crate) fn check(&self) {
        if self.kind != Kind::File || self.nolock {
            return;
        }
        debug_assert!(self.state < State::Reader || self.lock >= LockLevel::Shared);
        debug_assert!(
            self.state < State::WriterLocked || self.lock >= LockLevel::Reserved || self.wal.is_some()
        );
        debug_assert!(self.state != State::WriterDbMod || self.lock == LockLevel::Exclusive);
        debug_assert!(self.state >= State::WriterLocked || self.undo.depth() == 0);
        debug_assert!(self.wal.is_none() || self.state != State::WriterDbMod);
        debug_assert!(self.direct == Direct::Untried || self.state >= State::WriterLocked);
        debug_assert!(self.kept_journal.is_none() || self.lock >= LockLevel::Reserved);
    }

    pub(crate) fn raise(&mut self, level: LockLevel) -> Result<()> {
        if self.lock >= level {
            return Ok(());
        }
        if let Some(f) = &self.file {
            f.lock(level)?;
        }
        self.lock = level;
        Ok(())
    }

    /// From SHARED to EXCLUSIVE; where that fails the locks are as before, so that others go on.
    pub(crate) fn raise_alone(&mut self) -> Result<()> {
        let before = self.lock;
        let raised = self.raise(LockLevel::Exclusive);
        if raised.is_err() {
            self.lock = LockLevel::Exclusive;
            self.unlock(before);
        }
        raised
    }

    pub(crate) fn unlock(&mut self, level: LockLevel) {
        if level < LockLevel::Reserved {
            self.finish_kept_journal();
        }
        if level < LockLevel::Exclusive {
            self.change_counted = false;
        }
        if let Some(f) = &self.file {
            // A failed unlock leaves others waiting, not data wrong; the next lock call reports.
            let _ = f.unlock(level);
        }
        self.lock = self.lock.min(level);
    }

    /// A random number that need not be hard to guess.
    pub(crate) fn random(&mut self) -> u32 {
        if self.random == 0 {
            let mut seed = [0; 8];
            self.vfs.entropy().fill(&mut seed);
            self.random = u64::from_ne_bytes(seed) | 1;
        }
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 32) as u32
    }

    /// The unit in which journal headers are laid out.
    pub(crate) fn sector(&self) -> u32 {
        match &self.file {
            Some(f) if !f.characteristics().powersafe_overwrite => f.sector_size().clamp(512, 65536),
            _ => 512,
        }
    }

    /// The page that holds the lock bytes.
    pub fn lock_page(&self) -> Pgno {
        journal::lock_byte_page(self.page_size)
    }

    /// Whether `-wal` or `-journal` is there with content.
    pub(crate) fn exists(&self, path: &Path) -> Result<bool> {
        self.vfs.access(path, Access::Exists)
    }

    /// Lets all pages go: they may belong to another state of the file.
    pub(crate) fn reset_cache(&mut self) {
        self.table.clear();
        self.header_ok = false;
        self.epoch += 1;
    }

    pub(crate) fn file(&self) -> Result<&dyn File> {
        self.file.as_deref().ok_or_else(|| Code::Misuse.into())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

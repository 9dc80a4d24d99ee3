//! The write-ahead log (file format, section 4; documentation page `walformat`).
//!
//! ```text
//! log file:    header 32 | frame | frame | ...          frame = header 24 + page
//! wal-index:   two copies of the header | backfill count, read marks, locks | page numbers and hash tables
//! ```
//!
//! A reader fixes the last frame it will look at and, by a shared lock on one of five read marks, keeps
//! checkpoints from writing what lies behind that frame into the database. A writer appends frames and, with
//! the last one, publishes a new header. A checkpoint copies frames into the database; once all are copied
//! and nobody reads from the log any more, the next writer begins it anew.
//!
//! What always holds: a header is published only after its frames were written (and, from `synchronous=FULL`
//! on, synced); both copies agree whenever nobody is between the two stores; `backfill <= last frame`;
//! backfill only grows under the checkpoint lock and becomes zero only under the write lock with all marks
//! free; frames are never rewritten within a transaction. How the writers of one process share a sync is said in `chain`.

pub(crate) mod chain;
mod checkpoint;
pub(crate) mod direct;
mod index;
mod lives;
mod read;
mod recover;
mod snapshot;
mod sum;
mod view;
mod write;

use crate::lease::{Lease, LeaseTerms};
use crate::shared::{Database, Era};
use crate::types::*;
pub(crate) use chain::Role;
use chain::{Chain, Turn};
use index::{Header, Index};
use iolite_base::{Buf, Code, Pgno, Result, alloc, be};
use iolite_os::{File, Note, ShmLock, ShmRelease, SyncKind, Vfs};
pub use snapshot::SnapshotName;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use sum::checksum;
pub use view::LogMark;

pub(crate) const LOCK_WRITE: u8 = 0;
pub(crate) const LOCK_CHECKPOINT: u8 = 1;
pub(crate) const LOCK_RECOVER: u8 = 2;
pub(crate) const LOCK_READ: u8 = 3;
pub(crate) const MARKS: u8 = 5;
pub(crate) const NOT_USED: u32 = u32::MAX;
pub(crate) const FRAME_HEADER: u64 = 24;
pub(crate) const LOG_HEADER: u64 = 32;
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// What a new read transaction finds compared with the one before.
pub enum Snapshot {
    /// The same state.
    Same,
    /// The same log went on: these pages have newer frames.
    Appended(Vec<Pgno>),
    /// Anything may have changed.
    Other,
}

/// One connection's view of a log.
pub struct Wal {
    log: Box<dyn File>,
    vfs: Arc<dyn Vfs>,
    index: Index,
    /// The header of the snapshot; during a write transaction, with the frames appended so far.
    header: Header,
    /// The read mark held; `None` outside of a transaction.
    mark: Option<u8>,
    /// Frames below this one are in the database file for certain, and are not looked for.
    first_frame: u32,
    writing: bool,
    /// The state that a transaction which is just beginning is to read, if that is not the newest.
    wanted: Option<Header>,
    /// The index is a private one for this transaction: see `begin_read_private`.
    private: bool,
    /// The checkpoint sequence number of the log's header.
    sequence: u32,
    /// `PRAGMA journal_size_limit`; negative: none.
    pub size_limit: i64,
    /// The snapshot that the pager's cache belongs to.
    seen: Option<Header>,
    scratch: Vec<u8>,
    /// When to keep the read lock between transactions.
    pub lease_terms: LeaseTerms,
    /// No lock on a mark is kept once the log has so many frames: the next writer should find the marks free.
    pub lease_frames: u32,
    lease: Option<Arc<Lease>>,
    /// How many transactions have ended in a row without a lease, and when the first of them did (`Clock::monotonic_nanos`).
    in_a_row: (u32, u64),
    /// They were enough (`LeaseTerms::after`), and the lease has not run out since.
    warm: bool,
    /// What the lease's lock protects: the header's words, and the mark.
    leased: ([u32; 12], u8),
    /// The transaction goes on under the lease, and nothing was written in it.
    resumed: bool,
    /// Leases cannot be had here.
    no_lease: bool,
    /// Checkpoints, and the syncs before them, are a thread's.
    pub others_sync: bool,
    /// The writers of this process on this log, where they can be told apart from others.
    pub chain: Option<Arc<Chain>>,
    /// What the sessions of this process share, if they do: see [`Database::begin_anew`].
    pub shared: Option<Arc<Database>>,
    /// This connection's turn among them.
    turn: Option<(Turn, Arc<dyn ShmRelease>)>,
    /// The header that the write transaction started on.
    base: Header,
    /// The checkpoint lock is held for pages that go to the file (module `direct`).
    direct: bool,
    /// The life of the log (its salts) behind whose end this connection has looked for frames that were never published.
    swept: [u8; 8],
    /// The checkpoint lock is held for a checkpoint.
    copying: bool,
    /// A commit's frames are written and not published ([`Wal::prepare`]): whether they were synced.
    prepared: Option<bool>,
    /// The first frame of this transaction that was written over: from it on, checksums are computed anew before the commit.
    rewritten: Option<u32>,
}

impl Wal {
    /// A view of an open log; with `heap_index`, the index is private (the database is locked exclusively).
    pub fn new(log: Box<dyn File>, heap_index: bool, vfs: Arc<dyn Vfs>) -> Wal {
        Wal {
            log,
            vfs,
            index: Index::new(heap_index),
            header: Header::default(),
            mark: None,
            first_frame: 1,
            wanted: None,
            writing: false,
            private: false,
            sequence: 0,
            size_limit: -1,
            seen: None,
            scratch: Vec::new(),
            lease_terms: LeaseTerms::NONE,
            lease_frames: 1000,
            lease: None,
            in_a_row: (0, 0),
            warm: false,
            leased: ([0; 12], 0),
            resumed: false,
            no_lease: false,
            others_sync: false,
            chain: None,
            shared: None,
            turn: None,
            base: Header::default(),
            direct: false,
            swept: [0; 8],
            copying: false,
            prepared: None,
            rewritten: None,
        }
    }

    /// Whether the log could only be opened for reading.
    pub fn is_read_only(&self) -> bool {
        self.log.is_read_only()
    }

    /// The log's file.
    pub fn raw_file(&self) -> &dyn File {
        &*self.log
    }

    /// Whether the index is private.
    pub fn has_heap_index(&self) -> bool {
        self.index.is_heap()
    }

    /// Pages in the database at this snapshot; 0: ask the file.
    pub fn db_pages(&self) -> Pgno {
        self.header.db_pages
    }

    /// The last frame of the snapshot.
    pub fn last_frame(&self) -> u32 {
        self.header.last_frame
    }

    pub(crate) fn frame_offset(&self, frame: u32) -> u64 {
        LOG_HEADER + (frame as u64 - 1) * (self.header.page_size() as u64 + FRAME_HEADER)
    }

    /// Whether the log's checksums are computed on big-endian words.
    fn big_endian(&self) -> bool {
        self.header.big_endian_sum
    }

    fn lock(&self, db: &dyn File, first: u8, n: u8, how: ShmLock) -> Result<()> {
        if self.index.is_heap() { Ok(()) } else { db.shm_lock(first, n, how) }
    }

    fn lock_exclusive(&self, db: &dyn File, first: u8, n: u8) -> Result<()> {
        self.lock(db, first, n, ShmLock::Exclusive)
    }

    fn unlock_exclusive(&self, db: &dyn File, first: u8, n: u8) {
        // A lock that cannot be given back makes others wait; there is no better answer here.
        let _ = self.lock(db, first, n, ShmLock::UnlockExclusive);
    }

    fn unlock_shared(&self, db: &dyn File, lock: u8) {
        let _ = self.lock(db, lock, 1, ShmLock::UnlockShared);
    }

    /// The newest frame of a page at this snapshot; 0: the page is in the database.
    #[inline]
    pub fn find_frame(&mut self, db: &dyn File, pgno: Pgno) -> Result<u32> {
        let last = self.header.last_frame;
        let ignored = match self.mark {
            None => true,
            Some(0) => !self.writing && !self.private,
            Some(_) => false,
        };
        if last < self.first_frame || ignored {
            return Ok(0);
        }
        self.index.find(db, pgno, self.first_frame, last)
    }

    /// Bytes in a page of the log; before its first frame nothing that is a page's size.
    pub fn page_size(&self) -> u32 {
        self.header.page_size()
    }

    /// What names one life of the log; `None` before its first frame.
    pub fn salts(&self) -> Option<[u8; 8]> {
        (self.header.salt != [0; 8]).then_some(self.header.salt)
    }

    /// The newest committed frame of a page at this snapshot, copied into the database or not; 0 if there is
    /// none. `None`: not known for certain, or not committed.
    pub fn name_of(&mut self, db: &dyn File, pgno: Pgno) -> Result<Option<u32>> {
        let last = self.header.last_frame;
        if self.private || self.mark.is_none() {
            return Ok(None);
        }
        let frame = if last == 0 { 0 } else { self.index.find(db, pgno, 1, last)? };
        // Mark 0 does not keep a writer from beginning the log anew. He publishes that before he changes the
        // tables, so a header that is still the same says that the answer is right.
        db.shm_barrier();
        let sure = if self.writing {
            // Frames of one's own are not committed, and those of the head that one started on may not be published: a
            // sync that fails takes them back.
            let published = self.index.header().filter(|h| h.salt == self.header.salt);
            let same_life = self.seen.as_ref().is_some_and(|s| s.salt == self.header.salt);
            self.mark != Some(0)
                && same_life
                && frame <= self.base.last_frame
                && published.is_some_and(|h| frame <= h.last_frame)
        } else {
            self.mark != Some(0) || self.index.header_is(&self.header)
        };
        Ok(sure.then_some(frame))
    }

    /// Reads a frame's page.
    pub fn read_frame<'b>(&self, frame: u32, out: &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]> {
        match self.log.read_new(out, self.frame_offset(frame) + FRAME_HEADER)? {
            (page, true) => Ok(page),
            // Somebody cut the log: zeros are not what was committed.
            (_, false) => Err(Code::IoerrShortRead.into()),
        }
    }

    /// Reads a stretch of the log as it is.
    pub(crate) fn read_log(&self, out: &mut [u8], from: u64) -> Result<()> {
        if self.log.read(out, from)? { Ok(()) } else { Err(Code::IoerrShortRead.into()) }
    }

    /// Lets go of the index; with `delete`, of its file.
    pub fn close(&mut self, db: &dyn File, delete: bool) {
        self.end_read(db);
        self.leave_turn();
        self.end_lease(db);
        if !self.index.is_heap() {
            let _ = db.shm_unmap(delete);
        }
    }

    /// Whether the log holds fewer frames than that, or nothing that the database does not hold.
    pub fn has_less_to_copy(&self, frames: u32) -> bool {
        self.index.header().is_some_and(|h| h.last_frame < frames || self.index.backfill() == h.last_frame)
    }

    /// Whether the database holds all that the log holds.
    pub fn is_backfilled(&self) -> bool {
        match self.index.header() {
            Some(h) => self.index.backfill() == h.last_frame,
            None => true,
        }
    }
}

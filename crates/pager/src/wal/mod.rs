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
mod recover;
mod snapshot;
mod sum;
mod view;

use crate::lease::{self, Lease};
use crate::shared::{Database, Era};
use crate::types::*;
pub(crate) use chain::Role;
use chain::{Chain, Commit, Turn};
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
    /// How long to keep the read lock between transactions; 0: not at all.
    pub lease_millis: u32,
    /// No lock on a mark is kept once the log has so many frames: the next writer should find the marks free.
    pub lease_frames: u32,
    lease: Option<Arc<Lease>>,
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
    /// The checkpoint lock is held for a checkpoint.
    copying: bool,
    /// A commit's frames are written and not published ([`Wal::prepare`]): whether they were synced.
    prepared: Option<bool>,
}

/// An attempt to fix a snapshot.
enum Attempt {
    Done,
    Retry,
}

/// Bytes that are written at once.
const BATCH: usize = 1 << 18;
/// So few frames are joined before they are written.
const FEW: usize = 3;
/// Bytes of the log whose writing is begun together.
const EARLY: u64 = 1 << 18;

/// By how many frames the mark under a kept lock may lag behind the connection's snapshot.
const MOST_BEHIND: u32 = 128;

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
            lease_millis: 0,
            lease_frames: 1000,
            lease: None,
            leased: ([0; 12], 0),
            resumed: false,
            no_lease: false,
            others_sync: false,
            chain: None,
            shared: None,
            turn: None,
            base: Header::default(),
            direct: false,
            copying: false,
            prepared: None,
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

    /// Fixes a snapshot.
    pub fn begin_read(&mut self, db: &dyn File) -> Result<Snapshot> {
        debug_assert!(self.mark.is_none());
        if self.lease.is_some()
            && let Some(change) = self.resume(db)?
        {
            return Ok(change);
        }
        let mut attempts = 0u32;
        loop {
            let attempt = match self.try_begin_read(db, false) {
                Err(e) if e.code() == Code::ReadonlyCantinit => self.begin_read_private(db),
                other => other,
            };
            match attempt? {
                Attempt::Done => break,
                Attempt::Retry => {
                    attempts += 1;
                    self.back_off(attempts)?;
                }
            }
        }
        let change = match self.seen.take() {
            Some(old) if old == self.header => Snapshot::Same,
            Some(old) => self.changed_since_seen(db, &old)?.map_or(Snapshot::Other, Snapshot::Appended),
            None => Snapshot::Other,
        };
        self.seen = Some(self.header.clone());
        Ok(change)
    }

    /// The pages that differ between the snapshot before and the one in hand; `None`: perhaps all.
    fn changed_since_seen(&mut self, db: &dyn File, old: &Header) -> Result<Option<Vec<Pgno>>> {
        let (from, to) = (old.last_frame + 1, self.header.last_frame);
        let pages = if old.salt != self.header.salt {
            self.changed_across(db, old)?
        } else if from <= to + 1 && self.index.map(db, index::region_of(to), false)? {
            Some(self.index.pages(from, to))
        } else {
            None
        };
        // Mark 0 does not keep a writer from beginning the log anew and overwriting what was just read; he publishes that
        // first.
        db.shm_barrier();
        let sure = self.mark != Some(0) || self.private || self.index.header_is(&self.header);
        Ok(pages.filter(|_| sure).and_then(direct::named))
    }

    /// Somebody recovers, resets or checkpoints the log; the longer it takes, the longer the wait.
    fn back_off(&self, attempts: u32) -> Result<()> {
        if attempts > 100 {
            return Err(Code::Protocol.into());
        }
        if attempts > 5 {
            let micros = if attempts >= 10 { (attempts - 9).pow(2) as u64 * 39 } else { 1 };
            self.vfs.clock().sleep(Duration::from_micros(micros.min(323_000)));
        }
        Ok(())
    }

    /// Reads on under the lock kept from the last transaction, if it was not given back and is the one that a
    /// new transaction would take now, or protects what that would read.
    #[inline]
    fn resume(&mut self, db: &dyn File) -> Result<Option<Snapshot>> {
        let Some(lease) = &self.lease else { return Ok(None) };
        if !lease.take() {
            return Ok(None);
        }
        let (words, mark) = &self.leased;
        db.shm_barrier();
        if self.index.words_are(words) && (*mark == 0 || self.index.backfill() < self.header.last_frame) {
            self.mark = Some(*mark);
            self.resumed = true;
            return Ok(Some(Snapshot::Same));
        }
        self.resume_behind(db)
    }

    /// Somebody committed since. The mark under the lock lies below the newest snapshot then, and protects it as well (see
    /// `keep_lock`): four calls less for a read after each commit of others. Once a checkpoint has come as far as the mark,
    /// the lock is in its way and is given up.
    fn resume_behind(&mut self, db: &dyn File) -> Result<Option<Snapshot>> {
        let mark = self.leased.1;
        let newest = self.index.header().filter(|h| h.salt == self.header.salt && mark != 0);
        if let (Some(new), Some(old)) = (newest, self.seen.take()) {
            let below = self.index.mark(mark);
            if old == self.header
                && below <= old.last_frame
                && old.last_frame <= new.last_frame
                && new.last_frame - below <= MOST_BEHIND
                && self.index.backfill() < below
                && new.last_frame < self.lease_frames
            {
                self.header = new;
                self.mark = Some(mark);
                let pages = self.changed_since_seen(db, &old)?;
                self.seen = Some(self.header.clone());
                self.leased = (self.header.words(), mark);
                self.resumed = true;
                return Ok(Some(pages.map_or(Snapshot::Other, Snapshot::Appended)));
            }
            self.seen = Some(old);
        }
        self.unlock_shared(db, LOCK_READ + mark);
        if let Some(lease) = &self.lease {
            lease.let_go();
        }
        Ok(None)
    }

    /// Leaves the lock of the ending transaction with the lease. `false`: it is to be given back.
    fn keep_lock(&mut self, db: &dyn File, mark: u8) -> bool {
        if let Some(lease) = &self.lease
            && std::mem::take(&mut self.resumed)
        {
            lease.put(LOCK_READ + mark);
            return true;
        }
        if self.lease_millis == 0 || self.no_lease || self.index.is_heap() {
            return false;
        }
        let last = self.header.last_frame;
        let newest = match mark {
            0 => self.index.backfill() == last,
            _ => last < self.lease_frames && self.index.backfill() < last,
        };
        if !newest || self.seen.as_ref() != Some(&self.header) {
            return false;
        }
        // A mark somewhat below the snapshot protects it as well: what lies between is read from the log, and a
        // checkpoint goes as far as the mark. Two calls less for nearly every commit.
        let behind = mark > 0 && last.saturating_sub(self.index.mark(mark)) > MOST_BEHIND;
        if behind && (db.shm_read_only() || !self.raise_own_mark(db, mark, last)) {
            return false;
        }
        if self.lease.is_none() {
            let made = db.shm_release().zip(db.identity());
            self.lease = made.and_then(|(r, id)| Lease::new(id, self.lease_millis, r));
            self.no_lease = self.lease.is_none();
        }
        let Some(lease) = &self.lease else { return false };
        self.leased = (self.header.words(), mark);
        lease.put(LOCK_READ + mark);
        true
    }

    /// Moves the mark under the shared lock held to the newest frame, if nobody else reads under it: after
    /// commits of one's own. Two calls now save three at the beginning of the next transaction.
    fn raise_own_mark(&self, db: &dyn File, mark: u8, last: u32) -> bool {
        if self.lock_exclusive(db, LOCK_READ + mark, 1).is_err() {
            return false;
        }
        self.index.set_mark(mark, last);
        self.lock(db, LOCK_READ + mark, 1, ShmLock::Shared).is_ok()
    }

    /// Makes idle connections of this process give their locks back.
    fn revoke_leases(&self, db: &dyn File) {
        if !self.index.is_heap()
            && lease::any()
            && let Some(id) = db.identity()
        {
            lease::revoke_all(id);
        }
    }

    /// Gives the kept lock back, outside of a transaction.
    fn give_back(&self, db: &dyn File) {
        if let Some(lease) = &self.lease
            && self.mark.is_none()
            && lease.take()
        {
            self.unlock_shared(db, LOCK_READ + self.leased.1);
            lease.let_go();
        }
    }

    /// Gives up the lease and the lock under it.
    pub fn end_lease(&mut self, db: &dyn File) {
        self.give_back(db);
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
        self.resumed = false;
        self.no_lease = false;
    }

    /// Nobody has the shared index mapped, and this connection may not write to it: it reads the log into an
    /// index of its own. Mark 0 keeps checkpoints away meanwhile, and without one the log is only added to.
    fn begin_read_private(&mut self, db: &dyn File) -> Result<Attempt> {
        if self.wanted.is_some() {
            // An index of its own knows the newest state alone.
            return Err(Code::ErrorSnapshot.into());
        }
        match db.shm_lock(LOCK_READ, 1, ShmLock::Shared) {
            Ok(()) => {}
            Err(e) if e.code() == Code::Busy => return Ok(Attempt::Retry),
            Err(e) => return Err(e),
        }
        // Somebody may have come meanwhile, have copied the whole log and begun it anew, before the mark was held: only if
        // nobody is there now does the log stand still. With somebody there, the shared index is the one to read.
        match db.shm_map(0, index::REGION, false) {
            Err(e) if e.code() == Code::ReadonlyCantinit => {}
            other => {
                let _ = db.shm_lock(LOCK_READ, 1, ShmLock::UnlockShared);
                return other.map(|_| Attempt::Retry);
            }
        }
        self.private = true;
        self.mark = Some(0);
        self.index = Index::new(true);
        self.first_frame = 1;
        match self.rebuild(db) {
            Ok(()) => Ok(Attempt::Done),
            Err(e) => {
                self.end_read(db);
                Err(e)
            }
        }
    }

    fn try_begin_read(&mut self, db: &dyn File, use_log: bool) -> Result<Attempt> {
        match self.read_index_header(db) {
            Ok(()) => {}
            Err(e) if e.code() == Code::Busy => {
                // Who holds the write lock may be recovering: then the recovery lock is taken, too.
                match self.lock(db, LOCK_RECOVER, 1, ShmLock::Shared) {
                    Ok(()) => {
                        self.unlock_shared(db, LOCK_RECOVER);
                        return Ok(Attempt::Retry);
                    }
                    Err(e) if e.code() == Code::Busy => return Ok(Attempt::Retry),
                    Err(e) => return Err(e),
                }
            }
            Err(e) => return Err(e),
        }
        let newest = self.header.last_frame;
        let last = self.wanted.as_ref().map_or(newest, |w| w.last_frame.min(newest));
        if !use_log && self.wanted.is_none() && self.index.backfill() == last {
            // All is in the database: read from there alone.
            match self.lock(db, LOCK_READ, 1, ShmLock::Shared) {
                Ok(()) => {
                    db.shm_barrier();
                    if self.index.header_is(&self.header) {
                        self.mark = Some(0);
                        self.first_frame = last + 1;
                        return Ok(Attempt::Done);
                    }
                    self.unlock_shared(db, LOCK_READ);
                    return Ok(Attempt::Retry);
                }
                Err(e) if e.code() == Code::Busy => {}
                Err(e) => return Err(e),
            }
        }
        // The greatest mark that is not beyond the snapshot, raised to it if one of the marks is free.
        let mut best = 0u8;
        let mut best_value = 0;
        for i in 1..MARKS {
            let v = self.index.mark(i);
            if v <= last && v >= best_value {
                best = i;
                best_value = v;
            }
        }
        if (best_value < last || best == 0) && !db.shm_read_only() {
            for i in 1..MARKS {
                match self.lock_exclusive(db, LOCK_READ + i, 1) {
                    Ok(()) => {
                        self.index.set_mark(i, last);
                        best = i;
                        best_value = last;
                        self.unlock_exclusive(db, LOCK_READ + i, 1);
                        break;
                    }
                    Err(e) if e.code() == Code::Busy => {}
                    Err(e) => return Err(e),
                }
            }
        }
        if best == 0 {
            return if db.shm_read_only() { Err(Code::ReadonlyCantinit.into()) } else { Ok(Attempt::Retry) };
        }
        match self.lock(db, LOCK_READ + best, 1, ShmLock::Shared) {
            Ok(()) => {}
            Err(e) if e.code() == Code::Busy => return Ok(Attempt::Retry),
            Err(e) => return Err(e),
        }
        // Read before the check below: if a checkpoint moves on afterwards, it does not move past our mark.
        let first = self.index.backfill() + 1;
        db.shm_barrier();
        if self.index.mark(best) != best_value || !self.index.header_is(&self.header) {
            self.unlock_shared(db, LOCK_READ + best);
            return Ok(Attempt::Retry);
        }
        self.go_back(db, best)?;
        self.first_frame = first;
        self.mark = Some(best);
        Ok(Attempt::Done)
    }

    /// Reads the index's header; recovers it from the log where it is not valid.
    fn read_index_header(&mut self, db: &dyn File) -> Result<()> {
        // Only who holds the write lock makes the index grow: to make room, zeros are written to the file, and without the
        // lock they could meet what another connection has just put there.
        let there = self.index.map(db, 0, self.index.is_heap())?;
        if let Some(h) = self.index.header().filter(|_| there) {
            self.header = h;
            return Ok(());
        }
        if db.shm_read_only() {
            // Whoever holds the write lock may be recovering it: busy for a moment.
            self.lock(db, LOCK_WRITE, 1, ShmLock::Shared)?;
            self.unlock_shared(db, LOCK_WRITE);
            return Err(Code::ReadonlyRecovery.into());
        }
        if self.turn.as_ref().is_some_and(|t| t.0.head.is_some()) {
            // Another connection of the process holds the write lock and is just publishing.
            return Err(Code::Busy.into());
        }
        let locked = self.writing;
        if !locked {
            self.lock_write(db, Duration::ZERO)?;
        }
        let done = match self.index.map(db, 0, true).map(|_| self.index.header()) {
            Ok(Some(h)) => {
                self.header = h;
                Ok(())
            }
            Ok(None) => self.recover(db),
            Err(e) => Err(e),
        };
        if !locked {
            self.unlock_write(db);
        }
        done
    }

    /// Lets the snapshot go.
    pub fn end_read(&mut self, db: &dyn File) {
        self.end_write(db);
        let private = std::mem::take(&mut self.private);
        if private {
            // The next transaction may find somebody who keeps the shared one.
            self.index = Index::new(false);
        }
        if let Some(m) = self.mark.take()
            && (private || !self.keep_lock(db, m))
        {
            self.unlock_shared(db, LOCK_READ + m);
            if let Some(lease) = &self.lease {
                lease.let_go();
            }
        }
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

    /// Waits for a turn among the writers of the process, at most for `patience`. Before a snapshot is fixed.
    pub fn await_turn(&mut self, db: &dyn File, role: Role, patience: Duration) -> Result<()> {
        let me = if self.index.is_heap() || self.turn.is_some() { None } else { db.shm_release() };
        if let Some((chain, me)) = self.chain.as_ref().zip(me) {
            self.turn = Some((chain.begin(&me, role, patience, self.vfs.clock())?, me));
        }
        Ok(())
    }

    /// Whether to checkpoint on the way; `false`: another connection of the process does.
    pub fn begin_copying(&self, db: &dyn File) -> bool {
        let me = if self.index.is_heap() { None } else { db.shm_release() };
        self.chain.as_ref().zip(me).is_none_or(|(chain, me)| chain.begin_copying(&me))
    }

    /// It is done.
    pub fn end_copying(&self) {
        if let Some(chain) = &self.chain {
            chain.end_copying();
        }
    }

    /// Gives an unused turn up.
    pub fn leave_turn(&mut self) {
        if let Some((chain, _)) = self.chain.as_ref().zip(self.turn.take()) {
            chain.end(self.vfs.clock());
        }
    }

    /// Takes the write lock, or goes on under the one that another connection of the process holds.
    fn lock_write(&mut self, db: &dyn File, patience: Duration) -> Result<()> {
        self.await_turn(db, Role::Alone, patience)?;
        let Some((chain, (turn, me))) = self.chain.as_ref().zip(self.turn.as_ref()) else {
            return self.lock_exclusive(db, LOCK_WRITE, 1);
        };
        if turn.head.is_none() {
            if let Err(e) = self.lock_exclusive(db, LOCK_WRITE, 1) {
                self.leave_turn();
                return Err(e);
            }
            chain.hold(me, self.vfs.clock());
        }
        Ok(())
    }

    /// Gives it up.
    fn unlock_write(&mut self, db: &dyn File) {
        match (&self.chain, self.turn.take()) {
            (Some(chain), Some(_)) => chain.end(self.vfs.clock()),
            _ => self.unlock_exclusive(db, LOCK_WRITE, 1),
        }
    }

    /// Takes the write lock. `SQLITE_BUSY_SNAPSHOT` if somebody wrote since the snapshot; where a turn was waited for
    /// before the snapshot was fixed, that moves on instead.
    pub fn begin_write(&mut self, db: &dyn File) -> Result<Snapshot> {
        if self.log.is_read_only() || db.shm_read_only() || self.private {
            self.leave_turn();
            return Err(Code::Readonly.into());
        }
        let fresh = self.turn.is_some();
        self.lock_write(db, Duration::ZERO)?;
        self.resumed = false;
        let turn = self.turn.as_ref().map(|t| (t.0.head.clone(), t.0.after));
        let moved = match turn {
            // Who promised not to read the log cannot start on what is only there.
            Some((Some(_), after)) if self.mark == Some(0) => {
                let chain = self.chain.clone().ok_or(Code::Internal)?;
                self.settle(db, &chain, after).map(|()| None)
            }
            Some((Some(head), _)) => self.move_on(db, head),
            _ if self.index.header_is(&self.header) => Ok(Some(Snapshot::Same)),
            _ if fresh && self.mark != Some(0) => {
                self.index.header().map_or(Ok(None), |h| self.move_on(db, h))
            }
            _ => Ok(None),
        };
        match moved {
            Ok(Some(change)) => {
                self.writing = true;
                self.base = self.header.clone();
                Ok(change)
            }
            other => {
                self.unlock_write(db);
                Err(other.err().unwrap_or_else(|| Code::BusySnapshot.into()))
            }
        }
    }

    /// Moves the snapshot on to a later one of the same log; the mark held protects that, too. `None`: it is another log.
    fn move_on(&mut self, db: &dyn File, to: Header) -> Result<Option<Snapshot>> {
        let (from, last) = (self.header.last_frame + 1, to.last_frame);
        if to.salt != self.header.salt || last + 1 < from || self.seen.as_ref() != Some(&self.header) {
            return Ok(None);
        }
        if last >= from && !self.index.map(db, index::region_of(last), false)? {
            return Ok(None);
        }
        let pages = if last >= from { self.index.pages(from, last) } else { Vec::new() };
        self.header = to;
        self.seen = Some(self.header.clone());
        Ok(Some(match direct::named(pages) {
            Some(pages) if pages.is_empty() => Snapshot::Same,
            Some(pages) => Snapshot::Appended(pages),
            None => Snapshot::Other,
        }))
    }

    /// Gives the write lock up.
    pub fn end_write(&mut self, db: &dyn File) {
        self.end_direct(db);
        if !self.writing {
            return;
        }
        self.writing = false;
        match (self.chain.clone(), self.turn.take()) {
            (Some(chain), Some((turn, _))) => {
                chain.end(self.vfs.clock());
                // What was read in this transaction must stay true.
                if turn.head.is_some() && self.settle(db, &chain, turn.after).is_err() {
                    self.seen = None;
                }
            }
            _ => self.unlock_exclusive(db, LOCK_WRITE, 1),
        }
    }

    /// Waits until a commit of the chain is published, or publishes it.
    fn settle(&self, db: &dyn File, chain: &Chain, number: u64) -> Result<()> {
        chain.settle(number, self.vfs.clock(), |head| {
            self.log.sync(SyncKind::Data)?;
            self.index.publish(db, &mut head.clone());
            Ok(())
        })
    }

    /// Forgets frames that were appended and not published. A commit that was published stays: the base is behind it.
    pub fn undo(&mut self, db: &dyn File) -> Result<()> {
        if !self.writing {
            return Ok(());
        }
        let prepared = self.prepared.take();
        self.header = self.base.clone();
        let forgotten = self.index.forget_beyond(db, self.header.last_frame);
        if let Some(synced) = prepared {
            // A recovery would find a whole commit. Where the disk takes no more writes, it is there until somebody appends
            // again: no reason to fail those who read on.
            let cut = self.cut_off();
            if synced && cut.is_ok() {
                let _ = self.log.sync(SyncKind::Data);
            }
        }
        forgotten
    }

    /// The first half of a commit over several files: writes its frames, and syncs them if a commit is to wait for that, so that
    /// nothing can go wrong in [`Wal::publish_prepared`]. Until then [`Wal::undo`] takes it back.
    pub fn prepare(
        &mut self,
        db: &dyn File,
        pages: &[(Pgno, Buf)],
        db_pages: Pgno,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<()> {
        // What it stands on has to be certain.
        let head = self.turn.as_ref().filter(|t| t.0.head.is_some()).map(|t| t.0.after);
        if let (Some(number), Some(chain)) = (head, self.chain.clone()) {
            self.settle(db, &chain, number)?;
        }
        let full = sync.is_some_and(|s| s >= SyncMode::Full);
        self.prepared = Some(full);
        self.write_frames(db, pages, db_pages, page_size, sync)?;
        if full {
            self.log.sync(SyncKind::Data)?;
        }
        Ok(())
    }

    /// Whether a commit waits for [`Wal::publish_prepared`].
    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// The second half. The turn is kept, so nobody has appended meanwhile.
    pub fn publish_prepared(&mut self, db: &dyn File) {
        if self.prepared.take().is_some() {
            self.index.publish(db, &mut self.header);
            self.is_published();
        }
    }

    /// The header in hand is what everybody sees now.
    fn is_published(&mut self) {
        self.base = self.header.clone();
        self.seen = Some(self.header.clone());
    }

    /// Appends frames for `pages`; with `commit` (the database's size), publishes them.
    pub fn append(
        &mut self,
        db: &dyn File,
        pages: &[(Pgno, Buf)],
        commit: Pgno,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<()> {
        self.write_frames(db, pages, commit, page_size, sync)?;
        if commit != 0 {
            let full = sync.is_some_and(|s| s >= SyncMode::Full);
            if full && self.turn.is_none() {
                self.log.sync(SyncKind::Data)?;
            }
            self.commit(db, full)?;
            self.is_published();
        }
        Ok(())
    }

    /// Writes frames for `pages` and enters them into the index; with `commit`, the last one says that it ends a commit.
    fn write_frames(
        &mut self,
        db: &dyn File,
        pages: &[(Pgno, Buf)],
        commit: Pgno,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<()> {
        debug_assert!(self.writing);
        let vfs = self.vfs.clone();
        self.restart_if_possible(db, &*vfs)?;
        if self.header.last_frame == 0 {
            self.write_log_header(&*vfs, page_size, sync)?;
        }
        let full = sync.is_some_and(|s| s >= SyncMode::Full);
        let mut sum = self.header.frame_sum;
        let big = self.big_endian();
        let first = self.header.last_frame;
        let frame_len = page_size as usize + FRAME_HEADER as usize;
        let mut at = self.frame_offset(first + 1);
        let mut left = pages.len();
        // Several frames to a write, many of them straight from their pages: a large commit is a few system calls and no copy.
        for some in pages.chunks((BATCH / frame_len).max(1)) {
            let join = some.len() <= FEW && !self.log.page_by_page();
            let each = if join { frame_len } else { FRAME_HEADER as usize };
            self.scratch.clear();
            alloc::reserve(&mut self.scratch, some.len() * each)?;
            for (pgno, page) in some {
                left -= 1;
                let mut h = [0u8; FRAME_HEADER as usize];
                be::put_u32(&mut h, 0, *pgno);
                be::put_u32(&mut h, 4, if left == 0 { commit } else { 0 });
                h[8..16].copy_from_slice(&self.header.salt);
                sum = checksum(big, sum, &h[..8]);
                sum = checksum(big, sum, page);
                be::put_u32(&mut h, 16, sum[0]);
                be::put_u32(&mut h, 20, sum[1]);
                self.scratch.extend_from_slice(&h);
                if join {
                    self.scratch.extend_from_slice(page);
                }
            }
            let from = at;
            at += (some.len() * frame_len) as u64;
            if join {
                self.log.write(&self.scratch, from)?;
                continue;
            }
            let (heads, _) = self.scratch.as_chunks::<{ FRAME_HEADER as usize }>();
            let mut parts: Vec<&[u8]> = Vec::new();
            alloc::reserve(&mut parts, 2 * some.len())?;
            for (head, (_, page)) in heads.iter().zip(some) {
                parts.push(head);
                parts.push(page);
            }
            self.log.write_parts(&parts, from)?;
        }
        if !full && sync.is_some() {
            self.write_early(self.frame_offset(first + 1), at);
        }
        let mut frame = first;
        for (pgno, _) in pages {
            frame += 1;
            self.index.append(db, frame, *pgno)?;
        }
        self.header.frame_sum = sum;
        self.header.last_frame = frame;
        if commit != 0 {
            if self.size_limit >= 0 && first == 0 {
                self.limit_size_to(at);
            }
            self.header.db_pages = commit;
            self.header.change = self.header.change.wrapping_add(1);
        }
        Ok(())
    }

    /// Makes the appended frames the log's last commit.
    fn commit(&mut self, db: &dyn File, full: bool) -> Result<()> {
        if let (Some(chain), Some((turn, _))) = (self.chain.clone(), &self.turn)
            && let Commit::Wait(number) = chain.commit(turn, &self.header, full)?
        {
            self.writing = false;
            self.turn = None;
            let settled = self.settle(db, &chain, number);
            if settled.is_err() {
                // Its frames stay where they are: the next writer finds them in his way and removes them.
                self.header = self.index.header().unwrap_or_default();
                self.seen = None;
            }
            return settled;
        }
        self.index.publish(db, &mut self.header);
        Ok(())
    }

    /// Where commits are not synced, the checkpoint syncs them all: the system begins to write a piece of the log whenever
    /// one is full. The sync of a thousand frames took 3.5 ms, as much as a fifth of the commits before it. Where a thread
    /// does that, nobody waits for it, and telling the system (76 us a piece) is a tenth of those commits.
    fn write_early(&self, from: u64, to: u64) {
        let small = to - from < EARLY;
        let (from, to) = (from / EARLY * EARLY, to / EARLY * EARLY);
        if from < to && !(small && self.others_sync) {
            self.log.start_writing(from, to - from);
        }
    }

    fn write_log_header(&mut self, vfs: &dyn Vfs, page_size: u32, sync: Option<SyncMode>) -> Result<()> {
        let mut h = [0u8; LOG_HEADER as usize];
        let big = cfg!(target_endian = "big");
        be::put_u32(&mut h, 0, MAGIC | big as u32);
        be::put_u32(&mut h, 4, VERSION);
        be::put_u32(&mut h, 8, page_size);
        be::put_u32(&mut h, 12, self.sequence);
        if self.sequence == 0 {
            vfs.entropy().fill(&mut self.header.salt);
        }
        h[16..24].copy_from_slice(&self.header.salt);
        let sum = checksum(big, [0, 0], &h[..24]);
        be::put_u32(&mut h, 24, sum[0]);
        be::put_u32(&mut h, 28, sum[1]);
        self.header.set_page_size(page_size);
        self.header.big_endian_sum = big;
        self.header.frame_sum = sum;
        self.log.write(&h, 0)?;
        // The header must not reach the disk after frames that it makes valid: old frames with an old header
        // under new ones would be taken for a log that ends early.
        if sync.is_some() {
            self.log.sync(SyncKind::Full)?;
        }
        Ok(())
    }

    /// At the start of a write: if all frames are in the database and nobody reads from the log, begins it
    /// anew.
    fn restart_if_possible(&mut self, db: &dyn File, vfs: &dyn Vfs) -> Result<()> {
        if self.mark != Some(0) {
            return Ok(());
        }
        if self.index.backfill() > 0 {
            self.revoke_leases(db);
            match self.lock_exclusive(db, LOCK_READ + 1, MARKS - 1) {
                Ok(()) => {
                    let mut salt = [0u8; 4];
                    vfs.entropy().fill(&mut salt);
                    self.restart(db, salt);
                    self.unlock_exclusive(db, LOCK_READ + 1, MARKS - 1);
                }
                Err(e) if e.code() == Code::Busy => {}
                Err(e) => return Err(e),
            }
        }
        // A writer reads its own frames, so the promise of mark 0 (never to read the log) must be given up.
        self.unlock_shared(db, LOCK_READ);
        self.mark = None;
        let mut attempts = 0;
        while let Attempt::Retry = self.try_begin_read(db, true)? {
            attempts += 1;
            self.back_off(attempts)?;
        }
        self.base = self.header.clone();
        Ok(())
    }

    /// Empties the log for the next writer. Write lock and all marks but 0 are held.
    fn restart(&mut self, db: &dyn File, salt2: [u8; 4]) {
        self.sequence = self.sequence.wrapping_add(1);
        let (salt, last) = (self.header.salt, std::mem::take(&mut self.header.last_frame));
        let first = be::get_u32(&salt, 0).wrapping_add(1);
        be::put_u32(&mut self.header.salt, 0, first);
        self.header.salt[4..].copy_from_slice(&salt2);
        // Before anybody can see the new life, and ask for its pages.
        if let Some(shared) = &self.shared
            && shared.in_company()
            && last > 0
            && self.index.map(db, index::region_of(last), false).unwrap_or(false)
        {
            let frames = self.index.pages(1, last);
            shared.begin_anew(Era::Log(salt), Era::Log(self.header.salt), frames, self.header.db_pages);
        }
        self.index.publish(db, &mut self.header);
        self.index.set_backfill(0);
        self.index.set_backfill_attempted(0);
        self.index.set_mark(1, 0);
        for i in 2..MARKS {
            self.index.set_mark(i, NOT_USED);
        }
    }

    fn limit_size_to(&mut self, used: u64) {
        let keep = used.max(self.size_limit as u64);
        if self.log.size().is_ok_and(|s| s > keep) {
            let _ = self.log.truncate(keep);
        }
    }

    /// Cuts the log's file.
    pub fn limit_size(&mut self, size: u64) {
        let _ = self.log.truncate(size);
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

//! Write transactions: the turn among the writers of the process, the lock, frames, the header that publishes them, and the
//! log begun anew.
//!
//! What always holds: frames that were published are never written again, and those of a transaction's own only before its commit,
//! whose sums run over what they hold then; the log is begun anew only while nobody reads
//! from it.

use super::chain::Role;
use super::chain::{Chain, Commit};
use super::index::{self, Header};
use super::read::Attempt;
use super::sum::checksum;
use super::{
    FRAME_HEADER, LOCK_READ, LOCK_WRITE, LOG_HEADER, MAGIC, MARKS, NOT_USED, Snapshot, VERSION, Wal, direct,
};
use crate::shared::Era;
use crate::types::*;
use iolite_base::{Buf, Code, Pgno, Result, alloc, be};
use iolite_os::{File, SyncKind, Vfs};
use std::time::Duration;

/// Bytes that are written at once.
const BATCH: usize = 1 << 18;
/// So few frames are joined before they are written.
const FEW: usize = 3;
/// Bytes of the log whose writing is begun together.
const EARLY: u64 = 1 << 18;

impl Wal {
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
    pub(super) fn lock_write(&mut self, db: &dyn File, patience: Duration) -> Result<()> {
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
    pub(super) fn unlock_write(&mut self, db: &dyn File) {
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
                self.rewritten = None;
                Ok(change)
            }
            other => {
                self.unlock_write(db);
                Err(other.err().unwrap_or_else(|| Code::BusySnapshot.into()))
            }
        }
    }

    /// Moves the snapshot on to a later one of the same log; the mark held protects that, too. `None`: it is another log.
    pub(super) fn move_on(&mut self, db: &dyn File, to: Header) -> Result<Option<Snapshot>> {
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
    pub(super) fn settle(&self, db: &dyn File, chain: &Chain, number: u64) -> Result<()> {
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
        self.rewritten = None;
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
    pub(super) fn is_published(&mut self) {
        self.base = self.header.clone();
        self.seen = Some(self.header.clone());
    }

    /// Writes pages of a transaction that goes on. Those that it has written before are written over: nobody else reads them, and a
    /// large transaction with a small cache wrote fifty times what it changed.
    pub fn spill(
        &mut self,
        db: &dyn File,
        pages: &[(Pgno, Buf)],
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<()> {
        let (own, last) = (self.base.last_frame + 1, self.header.last_frame);
        let mut new = Vec::new();
        alloc::reserve(&mut new, pages.len())?;
        for (pgno, page) in pages {
            let frame = if last < own { 0 } else { self.index.find(db, *pgno, own, last)? };
            if frame == 0 {
                new.push((*pgno, page.clone()));
                continue;
            }
            self.rewritten = Some(self.rewritten.map_or(frame, |first| first.min(frame)));
            self.log.write(page, self.frame_offset(frame) + FRAME_HEADER)?;
        }
        if new.is_empty() { Ok(()) } else { self.write_frames(db, &new, 0, page_size, sync) }
    }

    /// Makes the checksums run on over frames that were written over.
    fn sum_again(&mut self, page_size: u32) -> Result<()> {
        let Some(first) = self.rewritten else { return Ok(()) };
        let len = page_size as usize + FRAME_HEADER as usize;
        // The sum before it ends the frame's header, or the log's.
        let before =
            if first == 1 { LOG_HEADER - 8 } else { self.frame_offset(first - 1) + FRAME_HEADER - 8 };
        let mut at = [0; 8];
        self.read_log(&mut at, before)?;
        let mut sum = [be::get_u32(&at, 0), be::get_u32(&at, 4)];
        let big = self.big_endian();
        let mut scratch = std::mem::take(&mut self.scratch);
        let summed = (|| -> Result<()> {
            scratch.clear();
            alloc::reserve(&mut scratch, len)?;
            scratch.resize(len, 0);
            for frame in first..=self.header.last_frame {
                let from = self.frame_offset(frame);
                self.read_log(&mut scratch, from)?;
                let (head, page) = scratch.split_at_mut(FRAME_HEADER as usize);
                sum = checksum(big, sum, &head[..8]);
                sum = checksum(big, sum, page);
                be::put_u32(head, 16, sum[0]);
                be::put_u32(head, 20, sum[1]);
                self.log.write(&head[16..], from + FRAME_HEADER - 8)?;
            }
            Ok(())
        })();
        self.scratch = scratch;
        summed?;
        self.header.frame_sum = sum;
        self.rewritten = None;
        Ok(())
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
    pub(super) fn write_frames(
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
        if commit != 0 {
            self.sum_again(page_size)?;
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
    pub(super) fn commit(&mut self, db: &dyn File, full: bool) -> Result<()> {
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
    pub(super) fn write_early(&self, from: u64, to: u64) {
        let small = to - from < EARLY;
        let (from, to) = (from / EARLY * EARLY, to / EARLY * EARLY);
        if from < to && !(small && self.others_sync) {
            self.log.start_writing(from, to - from);
        }
    }

    pub(super) fn write_log_header(
        &mut self,
        vfs: &dyn Vfs,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<()> {
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
    pub(super) fn restart_if_possible(&mut self, db: &dyn File, vfs: &dyn Vfs) -> Result<()> {
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
    pub(super) fn restart(&mut self, db: &dyn File, salt2: [u8; 4]) {
        self.sequence = self.sequence.wrapping_add(1);
        let (salt, last) = (self.header.salt, std::mem::take(&mut self.header.last_frame));
        let first = be::get_u32(&salt, 0).wrapping_add(1);
        be::put_u32(&mut self.header.salt, 0, first);
        self.header.salt[4..].copy_from_slice(&salt2);
        // Before anybody can see the new life, and ask for its pages.
        if let Some(shared) = &self.shared
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

    pub(super) fn limit_size_to(&mut self, used: u64) {
        let keep = used.max(self.size_limit as u64);
        if self.log.size().is_ok_and(|s| s > keep) {
            let _ = self.log.truncate(keep);
        }
    }

    /// Cuts the log's file.
    pub fn limit_size(&mut self, size: u64) {
        let _ = self.log.truncate(size);
    }
}

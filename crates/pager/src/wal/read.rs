//! Read transactions: which mark, which header, what has changed since the last one, and the lease by which a lock on a mark
//! is kept between transactions.

use super::index::{self, Header, Index};
use super::{LOCK_READ, LOCK_RECOVER, LOCK_WRITE, MARKS, Snapshot, Wal, direct};
use crate::lease::{self, Lease};
use iolite_base::{Code, Pgno, Result};
use iolite_os::{File, ShmLock};
use std::time::Duration;

/// An attempt to fix a snapshot.
pub(super) enum Attempt {
    Done,
    Retry,
}

/// By how many frames the mark under a kept lock may lag behind the connection's snapshot.
const MOST_BEHIND: u32 = 128;

impl Wal {
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
    pub(super) fn changed_since_seen(&mut self, db: &dyn File, old: &Header) -> Result<Option<Vec<Pgno>>> {
        let (from, to) = (old.last_frame + 1, self.header.last_frame);
        let pages = if old.salt != self.header.salt {
            let new = self.header.clone();
            self.changed_across(db, (&super::LogMark::of(old), old.page_size()), new)?
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
    pub(super) fn back_off(&self, attempts: u32) -> Result<()> {
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
    pub(super) fn resume(&mut self, db: &dyn File) -> Result<Option<Snapshot>> {
        let Some(lease) = &self.lease else { return Ok(None) };
        if !lease.take() {
            self.warm &= !lease.is_over();
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
    pub(super) fn resume_behind(&mut self, db: &dyn File) -> Result<Option<Snapshot>> {
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
    pub(super) fn keep_lock(&mut self, db: &dyn File, mark: u8) -> bool {
        if let Some(lease) = &self.lease
            && std::mem::take(&mut self.resumed)
        {
            lease.put(LOCK_READ + mark);
            return true;
        }
        if self.lease_terms.millis == 0 || self.no_lease || self.index.is_heap() || !self.is_warm() {
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
            self.lease = made.and_then(|(r, id)| Lease::new(id, self.lease_terms.millis, r));
            self.no_lease = self.lease.is_none();
        }
        let Some(lease) = &self.lease else { return false };
        self.leased = (self.header.words(), mark);
        lease.put(LOCK_READ + mark);
        true
    }

    /// Whether transactions follow each other as closely as the terms of leases ask for.
    fn is_warm(&mut self) -> bool {
        if self.warm || self.lease_terms.after <= 1 {
            return true;
        }
        let (count, since) = &mut self.in_a_row;
        if *count == 0 {
            *since = self.vfs.clock().monotonic_nanos();
        }
        *count += 1;
        if *count >= self.lease_terms.after {
            let time = self.vfs.clock().monotonic_nanos() - *since;
            *count = 0;
            self.warm = time <= u64::from(self.lease_terms.millis) * 1_000_000;
        }
        self.warm
    }

    /// Moves the mark under the shared lock held to the newest frame, if nobody else reads under it: after
    /// commits of one's own. Two calls now save three at the beginning of the next transaction.
    pub(super) fn raise_own_mark(&self, db: &dyn File, mark: u8, last: u32) -> bool {
        if self.lock_exclusive(db, LOCK_READ + mark, 1).is_err() {
            return false;
        }
        self.index.set_mark(mark, last);
        self.lock(db, LOCK_READ + mark, 1, ShmLock::Shared).is_ok()
    }

    /// Makes idle connections of this process give their locks back.
    pub(super) fn revoke_leases(&self, db: &dyn File) {
        if !self.index.is_heap()
            && lease::any()
            && let Some(id) = db.identity()
        {
            lease::revoke_all(id);
        }
    }

    /// Gives the kept lock back, outside of a transaction.
    pub(super) fn give_back(&self, db: &dyn File) {
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
        (self.in_a_row, self.warm) = ((0, 0), false);
    }

    /// Nobody has the shared index mapped, and this connection may not write to it: it reads the log into an
    /// index of its own. Mark 0 keeps checkpoints away meanwhile, and without one the log is only added to.
    pub(super) fn begin_read_private(&mut self, db: &dyn File) -> Result<Attempt> {
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

    pub(super) fn try_begin_read(&mut self, db: &dyn File, use_log: bool) -> Result<Attempt> {
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
    pub(super) fn read_index_header(&mut self, db: &dyn File) -> Result<()> {
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
}

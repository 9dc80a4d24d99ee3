//! What a log has to do with pages that its writer puts into the database file itself. The argument is at the head of
//! `crate::direct`.

use super::*;

/// Whether commits whose frames are of these pages, in order, wrote to the file itself: each such commit has two frames of
/// page 1 one behind the other. (Two commits that change nothing but page 1 look the same, and no harm is done.)
pub(crate) fn told(frames: &[Pgno]) -> bool {
    frames.windows(2).any(|w| w == [1, 1])
}

/// The pages that changed, where the frames name them all.
pub(super) fn named(frames: Vec<Pgno>) -> Option<Vec<Pgno>> {
    if told(&frames) { None } else { Some(frames) }
}

impl Wal {
    /// Whether a commit behind frame `from`, up to the snapshot, wrote to the file itself, or it cannot be told.
    pub fn direct_since(&mut self, db: &dyn File, from: u32) -> bool {
        let last = self.header.last_frame;
        if from >= last {
            return false;
        }
        if !self.index.map(db, index::region_of(last), false).unwrap_or(false) {
            return true;
        }
        let told = told(&self.index.pages(from + 1, last));
        // Mark 0 does not keep a writer from beginning the log anew meanwhile.
        db.shm_barrier();
        told || self.mark == Some(0) && !self.private && !self.index.header_is(&self.header)
    }

    /// Makes sure that pages which are free in the state that this write transaction began from can be overwritten in the
    /// file, until [`Wal::end_direct`]. `false`: they cannot.
    pub fn begin_direct(
        &mut self,
        db: &dyn File,
        vfs: &dyn Vfs,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<bool> {
        debug_assert!(self.writing && !self.direct);
        // Readers come to what is published. What this transaction stands on must be that.
        let head = self.turn.as_ref().filter(|t| t.0.head.is_some()).map(|t| t.0.after);
        if let (Some(number), Some(chain)) = (head, self.chain.clone()) {
            self.settle(db, &chain, number)?;
        }
        self.restart_if_possible(db, vfs)?;
        db.shm_barrier();
        if self.private || !self.index.header_is(&self.base) {
            return Ok(false);
        }
        match self.lock_exclusive(db, LOCK_CHECKPOINT, 1) {
            Ok(()) => self.direct = true,
            Err(e) if e.code() == Code::Busy => return Ok(false),
            Err(e) => return Err(e),
        }
        let ready = self.make_ready(db, vfs, page_size, sync);
        if !matches!(ready, Ok(true)) {
            self.end_direct(db);
        }
        ready
    }

    fn make_ready(
        &mut self,
        db: &dyn File,
        vfs: &dyn Vfs,
        page_size: u32,
        sync: Option<SyncMode>,
    ) -> Result<bool> {
        if !self.is_past(db)? {
            self.revoke_leases(db);
            if !self.is_past(db)? {
                return Ok(false);
            }
        }
        self.cut_off()?;
        if self.header.last_frame == 0 {
            // The file may still hold the log's former life, with frames at its end that were never published.
            self.write_log_header(vfs, page_size, sync)?;
        } else if let Some(s) = sync {
            self.log.sync(if s >= SyncMode::Full { SyncKind::Data } else { SyncKind::Full })?;
        }
        // Who opens a snapshot by its name (`sqlite3_snapshot_open`) is told that older ones are gone.
        self.index.set_backfill_attempted(self.base.last_frame);
        Ok(true)
    }

    /// Whether nobody reads an older state than the one this transaction began from. A mark below that may be a reader's of
    /// any state since; one who reads the file alone may be of any state of a former log.
    fn is_past(&self, db: &dyn File) -> Result<bool> {
        let last = self.base.last_frame;
        for i in 0..MARKS {
            if i > 0 && self.index.mark(i) == last {
                continue;
            }
            if self.mark == Some(i) {
                if i == 0 || !self.raise_own_mark(db, i, last) {
                    return Ok(false);
                }
                continue;
            }
            match self.lock_exclusive(db, LOCK_READ + i, 1) {
                Ok(()) => self.unlock_exclusive(db, LOCK_READ + i, 1),
                Err(e) if e.code() == Code::Busy => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Makes all frames of this life worthless that lie behind the last one: a writer that was killed before it published
    /// them, or could not sync them, left them, and a recovery would take them for committed. Only the first of them is not
    /// enough: the next writer's first frames may be the same as those, and lead on to the others.
    ///
    /// They follow each other, as long as power lasts; what a loss of it leaves may have gaps. So the first time in a life of the
    /// log all that lies behind is looked at. It goes backwards: who is killed on the way leaves no gap.
    pub(super) fn cut_off(&mut self) -> Result<()> {
        let whole = self.swept != self.header.salt;
        let mut found: Vec<u64> = Vec::new();
        let mut head = [0; FRAME_HEADER as usize];
        for frame in self.header.last_frame + 1.. {
            let at = self.frame_offset(frame);
            if !self.log.read(&mut head, at)? {
                break;
            }
            if head[8..16] == self.header.salt {
                alloc::reserve(&mut found, 1)?;
                found.push(at);
            } else if !whole {
                break;
            }
        }
        for at in found.into_iter().rev() {
            self.log.write(&[0; FRAME_HEADER as usize], at)?;
        }
        self.swept = self.header.salt;
        Ok(())
    }

    /// Whether the log has a frame of the page, copied into the database or not, committed or not.
    pub fn has_frame(&mut self, db: &dyn File, pgno: Pgno) -> Result<bool> {
        let last = self.header.last_frame;
        Ok(last > 0 && self.index.find(db, pgno, 1, last)? != 0)
    }

    /// The transaction is published, or taken back: others may checkpoint again.
    pub fn end_direct(&mut self, db: &dyn File) {
        if std::mem::take(&mut self.direct) {
            self.unlock_exclusive(db, LOCK_CHECKPOINT, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_frames_of_page_one_tell_of_pages_without_frames() {
        assert!(told(&[3, 1, 1, 7]));
        assert!(!told(&[1, 7, 1, 7, 7]) && !told(&[1]) && !told(&[]));
        assert_eq!(named(vec![1, 7, 1]), Some(vec![1, 7, 1]));
        assert_eq!(named(vec![1, 1, 7]), None);
    }
}

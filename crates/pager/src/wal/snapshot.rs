//! Snapshots by name (documentation page `c3ref/snapshot`): a state of the log that a reader can come back to.
//!
//! The name is the index's header at that state. It can be read as long as the log has not begun anew and no checkpoint has
//! tried to copy frames behind it: the checkpoint lock, shared, keeps that so until a mark at or below the state is held.

use super::*;

/// The name of a snapshot: a header of the wal-index.
pub type SnapshotName = [u32; 12];

impl Wal {
    /// The name of the state that is being read. `SQLITE_ERROR` if nothing was ever committed to the log.
    pub fn snapshot_name(&self) -> Result<SnapshotName> {
        let h = &self.header;
        if self.mark.is_none() || self.writing || self.private || (h.frame_sum == [0; 2] && h.salt == [0; 8])
        {
            return Err(Code::Error.into());
        }
        Ok(h.words())
    }

    /// `SQLITE_ERROR_SNAPSHOT` if a state cannot be read any more.
    pub fn check_snapshot(&mut self, db: &dyn File, name: &SnapshotName) -> Result<()> {
        let wanted = Header::of_words(name).ok_or(Code::Error)?;
        self.lock(db, LOCK_CHECKPOINT, 1, ShmLock::Shared)?;
        let there = self.is_there(&wanted);
        self.unlock_shared(db, LOCK_CHECKPOINT);
        if there { Ok(()) } else { Err(Code::ErrorSnapshot.into()) }
    }

    /// Under the checkpoint lock: whether a state can be read.
    fn is_there(&self, wanted: &Header) -> bool {
        let live =
            self.index.header().is_some_and(|h| h.salt == wanted.salt && h.last_frame >= wanted.last_frame);
        live && wanted.last_frame >= self.index.backfill_attempted()
    }

    /// As [`Wal::begin_read`], of a state that was named.
    pub fn begin_read_at(&mut self, db: &dyn File, name: &SnapshotName) -> Result<Snapshot> {
        let wanted = Header::of_words(name).ok_or(Code::Error)?;
        self.end_lease(db);
        self.lock(db, LOCK_CHECKPOINT, 1, ShmLock::Shared)?;
        self.wanted = Some(wanted);
        let begun = self.begin_read(db);
        self.wanted = None;
        self.unlock_shared(db, LOCK_CHECKPOINT);
        begun
    }

    /// A mark at or below the state that is wanted is held: reads that state, if it is there.
    pub(super) fn go_back(&mut self, db: &dyn File, mark: u8) -> Result<()> {
        let Some(wanted) = self.wanted.clone() else { return Ok(()) };
        if self.is_there(&wanted) {
            self.header = wanted;
            return Ok(());
        }
        self.unlock_shared(db, LOCK_READ + mark);
        Err(Code::ErrorSnapshot.into())
    }

    /// Makes states readable again of which a recovery did not know whether they were overwritten: a frame that is not in the
    /// database file, and so its successors, was never copied.
    pub fn recover_snapshots(&mut self, db: &dyn File) -> Result<()> {
        self.lock_exclusive(db, LOCK_CHECKPOINT, 1)?;
        let done = self.find_copied(db);
        self.unlock_exclusive(db, LOCK_CHECKPOINT, 1);
        done
    }

    fn find_copied(&mut self, db: &dyn File) -> Result<()> {
        let size = self.header.page_size() as usize;
        if size == 0 {
            return Ok(());
        }
        let (mut frame, mut page) = (alloc::zeroed(size)?, alloc::zeroed(size)?);
        let file_size = db.size()?;
        let last = self.index.backfill_attempted().min(self.header.last_frame);
        for at in (self.index.backfill() + 1..=last).rev() {
            if !self.index.map(db, index::region_of(at), false)? {
                break;
            }
            let Some(pgno) = self.index.page(at) else { break };
            let from = (pgno as u64 - 1) * size as u64;
            if from + size as u64 <= file_size {
                self.log.read(&mut frame, self.frame_offset(at) + FRAME_HEADER)?;
                db.read(&mut page, from)?;
                if frame == page {
                    break;
                }
            }
            self.index.set_backfill_attempted(at - 1);
        }
        Ok(())
    }
}

//! What changed when a log began anew: so that a connection keeps its pages from one life of the log to the next.
//!
//! ```text
//! former life   1 2 3 ....... L L+1 ... L'          L: what the connection has seen; L': what was copied at the end
//! present life  1 ... n                              written over the former one's first frames
//! ```
//!
//! A log begins anew only when all its frames are in the database. So the pages that differ between the two snapshots are
//! those of the frames from L + 1 to L' and those of the present life. The former are still in the file, with the former
//! salts, as long as the present life has not come that far. How far it has come can be seen: frames are written in
//! ascending order, so if frame L is found unharmed after those behind it were read, they were unharmed as well. The file must
//! go on behind them, with a frame of an older life: where it ends, it may have been cut. Where a connection of this process
//! began the log anew, it has left word of the former frames' pages ([`Database::former_frames`]), and nothing is read. Nor
//! is anything read from a VFS of the program's: it may know the log's frames, and keep only those of the present life.
//!
//! What always holds: the list may name pages that did not change (frames of a transaction that was taken back), but none
//! that did is missing; where the lives do not follow each other, or something is in doubt, there is no list.

use super::*;

/// More frames than that are not looked at: reading the pages again may cost less.
const MOST: u32 = 500;

impl Wal {
    /// The pages that differ between a state of the log's former life, whose pages had that size, and one of its present life.
    pub(super) fn changed_across(
        &mut self,
        db: &dyn File,
        (old, page_size): (&LogMark, u32),
        new: Header,
    ) -> Result<Option<Vec<Pgno>>> {
        let follows = be::get_u32(&new.salt, 0) == be::get_u32(&old.salt, 0).wrapping_add(1);
        if follows && !self.private {
            let known =
                self.shared.as_ref().and_then(|s| s.former_frames(Era::Log(old.salt), Era::Log(new.salt)));
            if let Some(later) = known.as_ref().and_then(|k| k.get(old.last as usize..)) {
                return self.with_present_life(db, &new, later.to_vec());
            }
        }
        let same_pages = page_size == new.page_size() || new.last_frame == 0;
        let may_read = !self.private && !self.log.page_by_page();
        if !follows || !same_pages || new.last_frame >= old.last || !may_read {
            return Ok(None);
        }
        let size = page_size as u64 + FRAME_HEADER;
        let at = |frame: u32| LOG_HEADER + (frame as u64 - 1) * size;
        let mut pages = Vec::new();
        let mut head = [0u8; FRAME_HEADER as usize];
        for frame in old.last + 1.. {
            if !self.log.read(&mut head, at(frame))? {
                // The file may have been cut here (`journal_size_limit`): what stood behind is not known.
                return Ok(None);
            }
            if head[8..16] != old.salt {
                break;
            }
            if frame - old.last > MOST {
                return Ok(None);
            }
            pages.push(be::get_u32(&head, 0));
        }
        let sum = |head: &[u8]| [be::get_u32(head, 16), be::get_u32(head, 20)];
        if !self.log.read(&mut head, at(old.last))? || head[8..16] != old.salt || sum(&head) != old.sum {
            return Ok(None);
        }
        self.with_present_life(db, &new, pages)
    }

    fn with_present_life(
        &mut self,
        db: &dyn File,
        new: &Header,
        mut pages: Vec<Pgno>,
    ) -> Result<Option<Vec<Pgno>>> {
        if new.last_frame > 0 {
            if !self.index.map(db, index::region_of(new.last_frame), false)? {
                return Ok(None);
            }
            pages.extend(self.index.pages(1, new.last_frame));
        }
        Ok(Some(pages))
    }
}

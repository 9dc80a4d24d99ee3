//! What a cache of things derived from pages may ask of a log: which state is read, what lies between two states.

use super::index::{Header, region_of};
use super::{FRAME_HEADER, Wal, direct};
use iolite_base::{Pgno, Result, be};
use iolite_os::File;

/// A state of a log: its salts, a committed frame, and the running checksum up to that frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogMark {
    /// Names one life of the log. Zeros, of a log that was never begun, name nothing: there were many such times.
    pub salt: [u8; 8],
    /// Counts commits: what a page cache is held to be valid by, when all of the header is the same.
    pub change: u32,
    /// The last frame.
    pub last: u32,
    /// The checksum up to it. After a power loss other frames may take the same numbers under the same salts.
    pub sum: [u32; 2],
}

impl LogMark {
    pub(super) fn of(h: &Header) -> LogMark {
        LogMark { salt: h.salt, change: h.change, last: h.last_frame, sum: h.frame_sum }
    }
}

impl Wal {
    /// The state that the present transaction reads; `None` if it has no name that others could use.
    pub fn mark(&self) -> Option<LogMark> {
        let h = &self.header;
        let named = !self.writing && !self.private && self.mark.is_some();
        let begun = h.salt != [0; 8];
        let mark = LogMark::of(h);
        (named && begun).then_some(mark)
    }

    /// The state from which the present write transaction began; `None` if there is none, or it has no such name.
    pub fn base_mark(&self) -> Option<LogMark> {
        let h = &self.base;
        let named = self.writing && !self.private && self.mark.is_some();
        let begun = h.salt != [0; 8];
        let mark = LogMark::of(h);
        (named && begun).then_some(mark)
    }

    /// Whether there is no log yet that could name the state.
    pub fn is_unnamed(&self) -> bool {
        self.header.salt == [0; 8] && self.header.last_frame == 0
    }

    /// Whether the present transaction finds all in the database file.
    pub fn reads_file_alone(&self) -> bool {
        self.mark == Some(0) && !self.private && !self.writing
    }

    /// Whether the write transaction that has just begun finds all in the database file.
    pub fn reads_file_alone_when_writing(&self) -> bool {
        self.mark == Some(0) && !self.private
    }

    /// The state that the log's header in hand describes.
    pub fn last_mark(&self) -> LogMark {
        let h = &self.header;
        LogMark::of(h)
    }

    /// The pages that the log holds of the state that is being read; `None`: that cannot be told.
    pub fn all_pages(&mut self, db: &dyn File) -> Result<Option<Vec<Pgno>>> {
        let Some(now) = self.mark() else { return Ok(None) };
        if now.last == 0 {
            return Ok(Some(Vec::new()));
        }
        if !self.index.map(db, region_of(now.last), false)? {
            return Ok(None);
        }
        let pages = self.index.pages(1, now.last);
        db.shm_barrier();
        let live = self.index.header().is_some_and(|h| h.salt == now.salt && h.last_frame >= now.last);
        Ok(if live { direct::named(pages) } else { None })
    }

    /// The pages that differ between `then` and the state that is being read, or, within a write transaction, the one from
    /// which it began; `None` if that cannot be told.
    pub fn changed_since(&mut self, db: &dyn File, then: &LogMark) -> Result<Option<Vec<Pgno>>> {
        let Some(now) = self.mark().or_else(|| self.base_mark()) else { return Ok(None) };
        if now.salt != then.salt {
            let new = if self.writing { self.base.clone() } else { self.header.clone() };
            let pages = self.changed_across(db, (then, new.page_size()), new)?;
            db.shm_barrier();
            let live = self.index.header().is_some_and(|h| h.salt == now.salt && h.last_frame >= now.last);
            return Ok(pages.filter(|_| live).and_then(direct::named));
        }
        let live = |w: &Wal| w.index.header().filter(|h| h.salt == then.salt).map(|h| h.last_frame);
        if live(self).is_none_or(|last| last < then.last) || !self.on_chain(then)? {
            return Ok(None);
        }
        let (from, to) = (now.last.min(then.last), now.last.max(then.last));
        let mut pages = Vec::new();
        if from < to {
            if !self.index.map(db, region_of(to), false)? {
                return Ok(None);
            }
            pages = self.index.pages(from + 1, to);
        }
        // A reader on mark 0 does not keep a writer from beginning the log anew; he publishes that first.
        db.shm_barrier();
        Ok(live(self).and_then(|_| direct::named(pages)))
    }

    /// Whether the log's frame of that number carries that checksum.
    fn on_chain(&self, then: &LogMark) -> Result<bool> {
        if then.last == 0 || then.last == self.header.last_frame && then.sum == self.header.frame_sum {
            return Ok(true);
        }
        let mut b = [0u8; 8];
        let at = self.frame_offset(then.last) + FRAME_HEADER - 8;
        Ok(self.log.read(&mut b, at)? && [be::get_u32(&b, 0), be::get_u32(&b, 4)] == then.sum)
    }
}

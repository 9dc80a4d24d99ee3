//! Rebuilding the wal-index from the log: the first connection after a crash does this.

use super::index::{Header, REGION, base_of, enter, heap_region, region_of};
use super::*;
use std::sync::atomic::Ordering::{Relaxed, Release};

impl Wal {
    /// Reads the log from the start as far as its checksums hold, and publishes what was committed. The write
    /// lock is held.
    pub(super) fn recover(&mut self, db: &dyn File) -> Result<()> {
        // Checkpoint and recovery locks: from here on, nobody else looks at the index. Who checkpoints, or writes to the file,
        // has the first one already, and keeps it.
        let (first, n) = if self.copying || self.direct { (LOCK_RECOVER, 1) } else { (LOCK_CHECKPOINT, 2) };
        self.lock_exclusive(db, first, n)?;
        let done = self.rebuild(db);
        self.unlock_exclusive(db, first, n);
        done
    }

    pub(super) fn rebuild(&mut self, db: &dyn File) -> Result<()> {
        self.header = Header::default();
        let mut committed = Header::default();
        let size = self.log.size()?;
        if size > LOG_HEADER {
            let mut h = [0u8; LOG_HEADER as usize];
            self.log.read(&mut h, 0)?;
            let magic = be::get_u32(&h, 0);
            let page_size = be::get_u32(&h, 8);
            let plausible =
                magic & !1 == MAGIC && page_size.is_power_of_two() && (512..=65536).contains(&page_size);
            if plausible {
                let big = magic & 1 == 1;
                let sum = checksum(big, [0, 0], &h[..24]);
                if sum == [be::get_u32(&h, 24), be::get_u32(&h, 28)] {
                    if be::get_u32(&h, 4) != VERSION {
                        return Err(Code::Cantopen.into());
                    }
                    self.sequence = be::get_u32(&h, 12);
                    committed.big_endian_sum = big;
                    committed.set_page_size(page_size);
                    committed.salt.copy_from_slice(&h[16..24]);
                    committed.frame_sum = sum;
                    self.scan(db, &mut committed, size, page_size)?;
                }
            }
        }
        self.header = committed;
        self.index.map(db, 0, true)?;
        self.index.publish(db, &mut self.header);
        self.index.set_backfill(0);
        self.index.set_backfill_attempted(self.header.last_frame);
        self.index.set_mark(0, 0);
        for i in 1..MARKS {
            match self.lock_exclusive(db, LOCK_READ + i, 1) {
                Ok(()) => {
                    let all = i == 1 && self.header.last_frame != 0;
                    self.index.set_mark(i, if all { self.header.last_frame } else { NOT_USED });
                    self.unlock_exclusive(db, LOCK_READ + i, 1);
                }
                Err(e) if e.code() == Code::Busy => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn scan(&mut self, db: &dyn File, committed: &mut Header, size: u64, page_size: u32) -> Result<()> {
        let frame_len = page_size as u64 + FRAME_HEADER;
        let frames = ((size - LOG_HEADER) / frame_len).min(u32::MAX as u64 - 1) as u32;
        let mut frame_bytes = alloc::zeroed(frame_len as usize)?;
        let mut sum = committed.frame_sum;
        let mut region = heap_region();
        let mut region_no = 0;
        for frame in 1..=frames {
            let at = LOG_HEADER + (frame as u64 - 1) * frame_len;
            if !self.log.read(&mut frame_bytes, at)? {
                break;
            }
            let (h, page) = frame_bytes.split_at(FRAME_HEADER as usize);
            let pgno = be::get_u32(h, 0);
            if h[8..16] != committed.salt || pgno == 0 {
                break;
            }
            sum = checksum(committed.big_endian_sum, sum, &h[..8]);
            sum = checksum(committed.big_endian_sum, sum, page);
            if sum != [be::get_u32(h, 16), be::get_u32(h, 20)] {
                break;
            }
            if region_of(frame) != region_no {
                self.put_region(db, region_no, &region)?;
                region = heap_region();
                region_no = region_of(frame);
            }
            enter(&region, region_no, frame, pgno)?;
            let db_pages = be::get_u32(h, 4);
            if db_pages != 0 {
                committed.last_frame = frame;
                committed.db_pages = db_pages;
                committed.frame_sum = sum;
            }
        }
        self.put_region(db, region_no, &region)?;
        if committed.last_frame > 0 {
            self.index.forget_beyond(db, committed.last_frame)?;
        }
        Ok(())
    }

    /// Stores a rebuilt region where it differs: a reader that still uses the old one, which is the same as
    /// far as its snapshot goes, must never see a gap.
    fn put_region(&mut self, db: &dyn File, region: usize, from: &iolite_os::ShmRegion) -> Result<()> {
        debug_assert!(base_of(region) < u32::MAX);
        self.index.map(db, region, true)?;
        let to = self.index.region(region).words();
        let skip = if region == 0 { 34 } else { 0 };
        for (t, f) in to[skip..REGION / 4].iter().zip(&from.words()[skip..]) {
            let v = f.load(Relaxed);
            if t.load(Relaxed) != v {
                t.store(v, Release);
            }
        }
        Ok(())
    }
}

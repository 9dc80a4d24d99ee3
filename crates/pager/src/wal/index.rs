//! The wal-index: the header that publishes commits, read marks, and hash tables from page number to frame.
//!
//! It lies in shared memory (or, in exclusive mode, on the heap), in native byte order, laid out as
//! documentation page `walformat` says. What always holds: a slot of a hash table is zero or names an entry
//! of the page-number array of its region; an entry is written before the slot that names it, so that a
//! reader without a lock sees either nothing or a frame beyond its snapshot.

use iolite_base::{Code, Pgno, Result};
use iolite_os::{File, ShmRegion};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub(crate) const REGION: usize = 32768;
const PER_REGION: u32 = 4096;
const FIRST_REGION: u32 = 4062;
/// Words before the page numbers of the first region.
const HEAD_WORDS: usize = 34;
const HASH_AT: usize = 8192;
const SLOTS: u32 = 8192;
const VERSION: u32 = 3_007_000;
/// How often a header is read before it counts as invalid. Writing one takes some 20 ns.
const TRIES: usize = 50;

/// The part of the header that names a snapshot.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Header {
    /// Counts commits.
    pub change: u32,
    /// How the log's checksums are computed.
    pub big_endian_sum: bool,
    size: u16,
    /// The last committed frame.
    pub last_frame: u32,
    /// Pages in the database.
    pub db_pages: Pgno,
    /// The checksum up to the last frame.
    pub frame_sum: [u32; 2],
    /// As in the log's header.
    pub salt: [u8; 8],
}

impl Header {
    /// Bytes in a page.
    pub fn page_size(&self) -> u32 {
        if self.size == 1 { 65536 } else { self.size as u32 }
    }

    /// Sets them.
    pub fn set_page_size(&mut self, n: u32) {
        self.size = if n == 65536 { 1 } else { n as u16 };
    }

    pub(crate) fn words(&self) -> [u32; 12] {
        let s = self.size.to_ne_bytes();
        let mut w = [0u32; 12];
        w[0] = VERSION;
        w[2] = self.change;
        w[3] = u32::from_ne_bytes([1, self.big_endian_sum as u8, s[0], s[1]]);
        w[4] = self.last_frame;
        w[5] = self.db_pages;
        w[6] = self.frame_sum[0];
        w[7] = self.frame_sum[1];
        w[8] = u32::from_ne_bytes(self.salt[..4].try_into().expect("four bytes"));
        w[9] = u32::from_ne_bytes(self.salt[4..].try_into().expect("four bytes"));
        let sum = sum_of(&w);
        w[10] = sum[0];
        w[11] = sum[1];
        w
    }

    pub(super) fn of_words(w: &[u32; 12]) -> Option<Header> {
        let b = w[3].to_ne_bytes();
        if b[0] == 0 || sum_of(w) != [w[10], w[11]] || w[0] != VERSION {
            return None;
        }
        let mut salt = [0; 8];
        salt[..4].copy_from_slice(&w[8].to_ne_bytes());
        salt[4..].copy_from_slice(&w[9].to_ne_bytes());
        Some(Header {
            change: w[2],
            big_endian_sum: b[1] != 0,
            size: u16::from_ne_bytes([b[2], b[3]]),
            last_frame: w[4],
            db_pages: w[5],
            frame_sum: [w[6], w[7]],
            salt,
        })
    }
}

/// The checksum over the first ten words, in native order.
fn sum_of(w: &[u32; 12]) -> [u32; 2] {
    let (mut a, mut b) = (0u32, 0u32);
    for pair in w[..10].as_chunks::<2>().0 {
        a = a.wrapping_add(pair[0]).wrapping_add(b);
        b = b.wrapping_add(pair[1]).wrapping_add(a);
    }
    [a, b]
}

/// See the module's head.
pub struct Index {
    heap: bool,
    regions: Vec<ShmRegion>,
}

/// Private memory in the shape of a shared region.
pub(crate) fn heap_region() -> ShmRegion {
    let memory: Arc<Vec<std::sync::atomic::AtomicU64>> =
        Arc::new((0..REGION / 8).map(|_| std::sync::atomic::AtomicU64::new(0)).collect());
    let ptr = NonNull::from(&memory[0]).cast();
    let owner: Arc<dyn Any + Send + Sync> = memory;
    region(ptr, owner)
}

#[allow(unsafe_code)]
fn region(ptr: NonNull<u8>, owner: Arc<dyn Any + Send + Sync>) -> ShmRegion {
    // SAFETY: `ptr` is the start of `REGION` bytes of atomics that `owner` keeps alive.
    unsafe { ShmRegion::new(ptr, REGION, owner) }
}

/// Which region a frame's entry is in.
pub(crate) fn region_of(frame: u32) -> usize {
    ((frame + PER_REGION - FIRST_REGION - 1) / PER_REGION) as usize
}

/// The frame before the first one of a region.
pub(crate) fn base_of(region: usize) -> u32 {
    if region == 0 { 0 } else { FIRST_REGION + (region as u32 - 1) * PER_REGION }
}

fn entries(region: usize) -> u32 {
    if region == 0 { FIRST_REGION } else { PER_REGION }
}

/// The word where a region's page numbers begin.
fn pages_at(region: usize) -> usize {
    if region == 0 { HEAD_WORDS } else { 0 }
}

fn home(pgno: Pgno) -> u32 {
    pgno.wrapping_mul(383) % SLOTS
}

/// Enters a frame into its region.
pub(crate) fn enter(r: &ShmRegion, region: usize, frame: u32, pgno: Pgno) -> Result<()> {
    let entry = frame - base_of(region);
    r.words()[pages_at(region) + entry as usize - 1].store(pgno, Release);
    let slots = slots_of(r)?;
    // At most `entry` slots are taken; more is a sign of damaged memory. A page that every commit changes
    // makes a long run of them, so this loop counts.
    let first = home(pgno) as usize;
    for slot in first..=first + entry as usize {
        let s = &slots[slot % SLOTS as usize];
        if s.load(Relaxed) == 0 {
            s.store(entry as u16, Release);
            return Ok(());
        }
    }
    Err(Code::Corrupt.into())
}

/// The hash table of a region.
#[inline(always)]
fn slots_of(r: &ShmRegion) -> Result<&[AtomicU16; SLOTS as usize]> {
    r.halves().get(HASH_AT..).and_then(|h| h.first_chunk()).ok_or_else(|| Code::Corrupt.into())
}

impl Index {
    /// An index that is mapped as it is needed.
    pub fn new(heap: bool) -> Index {
        Index { heap, regions: Vec::new() }
    }

    /// Whether it is private.
    pub fn is_heap(&self) -> bool {
        self.heap
    }

    /// Maps regions up to `region`. `false`: it does not exist, and `extend` is not set.
    pub fn map(&mut self, db: &dyn File, region: usize, extend: bool) -> Result<bool> {
        while self.regions.len() <= region {
            let r = if self.heap {
                heap_region()
            } else {
                match db.shm_map(self.regions.len(), REGION, extend)? {
                    Some(r) => r,
                    None => return Ok(false),
                }
            };
            self.regions.push(r);
        }
        Ok(true)
    }

    pub(crate) fn region(&self, i: usize) -> &ShmRegion {
        &self.regions[i]
    }

    fn word(&self, i: usize) -> u32 {
        self.regions[0].words()[i].load(Acquire)
    }

    /// The published header; `None` if it is not valid, or being written for longer than it takes.
    pub fn header(&self) -> Option<Header> {
        // Who finds none takes the write lock to recover the log, and another thread's commit hears `SQLITE_BUSY`: in a
        // checkpoint beside 100,000 commits a second that happened every second time.
        for _ in 0..TRIES {
            if let Some(h) = self.whole_header() {
                return Some(h);
            }
            std::hint::spin_loop();
        }
        None
    }

    fn whole_header(&self) -> Option<Header> {
        let words = self.regions.first()?.words();
        let (mut a, mut b) = ([0; 12], [0; 12]);
        for i in 0..12 {
            a[i] = words[i].load(Acquire);
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        for i in 0..12 {
            b[i] = words[12 + i].load(Acquire);
        }
        if a != b {
            return None;
        }
        Header::of_words(&a)
    }

    /// Whether the first copy is this header.
    pub fn header_is(&self, h: &Header) -> bool {
        self.words_are(&h.words())
    }

    /// Whether the first copy is still these words.
    #[inline]
    pub fn words_are(&self, h: &[u32; 12]) -> bool {
        let Some(words) = self.regions.first().and_then(|r| r.words().first_chunk::<12>()) else {
            return false;
        };
        let mut differ = 0;
        for i in 0..12 {
            differ |= words[i].load(Acquire) ^ h[i];
        }
        differ == 0
    }

    /// Publishes a header: the second copy first, so that a reader that sees a new first one sees a new
    /// second one.
    pub fn publish(&self, db: &dyn File, h: &mut Header) {
        let w = h.words();
        let words = self.regions[0].words();
        for i in 0..12 {
            words[12 + i].store(w[i], Release);
        }
        db.shm_barrier();
        for i in 0..12 {
            words[i].store(w[i], Release);
        }
    }

    /// Frames known to be in the database.
    pub fn backfill(&self) -> u32 {
        self.word(24)
    }

    /// Sets it.
    pub fn set_backfill(&self, n: u32) {
        self.regions[0].words()[24].store(n, Release);
    }

    /// Frames that a checkpoint began to copy at some time.
    pub fn backfill_attempted(&self) -> u32 {
        self.word(32)
    }

    /// Frames that a checkpoint began to copy.
    pub fn set_backfill_attempted(&self, n: u32) {
        self.regions[0].words()[32].store(n, Release);
    }

    /// Read mark `i`.
    pub fn mark(&self, i: u8) -> u32 {
        self.word(25 + i as usize)
    }

    /// Sets it.
    pub fn set_mark(&self, i: u8, frame: u32) {
        self.regions[0].words()[25 + i as usize].store(frame, Release);
    }

    /// The newest frame of a page between `first` and `last`; 0 if there is none.
    pub fn find(&mut self, db: &dyn File, pgno: Pgno, first: u32, last: u32) -> Result<u32> {
        for region in (region_of(first)..=region_of(last)).rev() {
            if region >= self.regions.len() && !self.map(db, region, false)? {
                continue;
            }
            let words = self.regions[region].words();
            let slots = slots_of(&self.regions[region])?;
            let (base, at) = (base_of(region), pages_at(region));
            let mut found = 0;
            let mut slot = home(pgno) as usize;
            let mut left = SLOTS;
            loop {
                let entry = slots[slot % SLOTS as usize].load(Acquire) as u32;
                if entry == 0 {
                    break;
                }
                let frame = base + entry;
                if frame <= last
                    && frame >= first
                    && entry <= entries(region)
                    && words[at + entry as usize - 1].load(Acquire) == pgno
                {
                    found = found.max(frame);
                }
                slot += 1;
                left -= 1;
                if left == 0 {
                    return Err(Code::Corrupt.into());
                }
            }
            if found != 0 {
                return Ok(found);
            }
        }
        Ok(0)
    }

    /// The pages of the frames from `first` to `last`. Their regions must be mapped.
    pub fn pages(&self, first: u32, last: u32) -> Vec<Pgno> {
        (first..=last).map(|f| self.page(f).unwrap_or(0)).collect()
    }

    /// The page of a frame.
    pub fn page(&self, frame: u32) -> Option<Pgno> {
        let region = region_of(frame);
        let r = self.regions.get(region)?;
        Some(r.words()[pages_at(region) + (frame - base_of(region)) as usize - 1].load(Acquire))
    }

    /// Enters an appended frame.
    pub fn append(&mut self, db: &dyn File, frame: u32, pgno: Pgno) -> Result<()> {
        let region = region_of(frame);
        self.map(db, region, true)?;
        let r = &self.regions[region];
        let entry = frame - base_of(region);
        if entry == 1 {
            for w in &r.words()[pages_at(region)..] {
                w.store(0, Relaxed);
            }
        }
        if r.words()[pages_at(region) + entry as usize - 1].load(Relaxed) != 0 {
            // Left by a writer that died before its commit.
            self.forget_beyond(db, frame - 1)?;
        }
        enter(&self.regions[region], region, frame, pgno)
    }

    /// Removes the entries of frames beyond `last` from the region where `last` lies: a later writer would
    /// otherwise find them in his way. Those in regions behind are cleared when the region is begun.
    pub fn forget_beyond(&mut self, db: &dyn File, last: u32) -> Result<()> {
        if last == 0 {
            return Ok(());
        }
        let region = region_of(last);
        self.map(db, region, true)?;
        let r = &self.regions[region];
        let limit = last - base_of(region);
        for h in &r.halves()[HASH_AT..] {
            if h.load(Relaxed) as u32 > limit {
                h.store(0, Relaxed);
            }
        }
        for w in &r.words()[pages_at(region) + limit as usize..HASH_AT / 2] {
            w.store(0, Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fall_into_regions_as_the_format_says() {
        assert_eq!((region_of(1), region_of(4062)), (0, 0));
        assert_eq!((region_of(4063), region_of(8158), region_of(8159)), (1, 1, 2));
        assert_eq!((base_of(0), base_of(1), base_of(2)), (0, 4062, 8158));
    }

    #[test]
    fn the_sum_of_the_header_is_that_of_a_log() {
        let w: [u32; 12] = std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x9e37_79b9));
        let bytes: Vec<u8> = w[..10].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(sum_of(&w), super::super::checksum(cfg!(target_endian = "big"), [0, 0], &bytes));
    }

    #[test]
    fn a_header_survives_its_words() {
        let mut h = Header { change: 7, last_frame: 9, db_pages: 3, salt: *b"abcdefgh", ..Header::default() };
        h.set_page_size(65536);
        assert_eq!(Header::of_words(&h.words()), Some(h.clone()));
        let mut w = h.words();
        w[4] += 1;
        assert_eq!(Header::of_words(&w), None);
    }
}

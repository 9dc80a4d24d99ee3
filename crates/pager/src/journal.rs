//! The rollback journal (file format, section 3): writing one, and playing one back.
//!
//! ```text
//! segment:  header, padded to a sector | record | record | ...      the next segment starts at a sector
//! header:   magic 8 | records 4 | nonce 4 | pages in the database before 4 | sector size 4 | page size 4
//! record:   page number 4 | page as it was before | checksum 4
//! end:      lock-byte page number 4 | name of the super-journal | its length 4 | its checksum 4 | magic 8
//! ```
//!
//! What always holds: a journal is not sealed while bytes of it, the super-journal's name included, may be missing on the
//! disk; no page is recorded twice; nothing of a segment counts until its header carries magic
//! and number of records, which happens after the records were synced ([`Journal::seal`]). Records are
//! gathered in memory and written in large pieces; a small transaction's journal is one write. Before the end of a transaction a page
//! may be written only if what it and its sector held was recorded by a seal ([`Journal::covers`]).

use crate::durability::Synced;
use crate::types::SyncMode;
use iolite_base::{Buf, Code, Pgno, Result, alloc, be, hash::FastSet};
use iolite_os::{Characteristics, File, FileKind, OpenFlags, SyncKind, Vfs};
use std::path::Path;

/// What a journal begins with.
pub const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEADER: usize = 28;
/// Unwritten records beyond this go to the file.
const BUFFER: usize = 1 << 20;

/// The sampled checksum of a page record.
pub fn checksum(nonce: u32, page: &[u8]) -> u32 {
    let mut sum = nonce;
    let mut x = page.len() as isize - 200;
    while x > 0 {
        sum = sum.wrapping_add(page[x as usize] as u32);
        x -= 200;
    }
    sum
}

/// Where a journal's bytes live.
enum Place {
    /// In memory only (`journal_mode=MEMORY`).
    Memory,
    /// In a file, opened by the first change.
    File(Option<Box<dyn File>>),
}

/// A journal being written.
pub struct Journal {
    place: Place,
    /// Bytes from file offset `base` that were not written yet.
    buf: Vec<u8>,
    base: u64,
    /// Where the present segment's header stands.
    header: u64,
    records: u32,
    /// A segment was begun and not sealed.
    open: bool,
    nonce: u32,
    sector: u32,
    page_size: u32,
    orig_size: Pgno,
    pages: FastSet<Pgno>,
    /// Those of them that were recorded since the last seal.
    unsealed: FastSet<Pgno>,
    /// It was sealed before: the size of the database is on record.
    begun: bool,
    /// Content from an earlier transaction may lie in the file.
    reused: bool,
    /// The super-journal's name was written.
    super_written: bool,
    /// Bytes were written to the file and not synced.
    unsynced: bool,
}

/// What a journal needs to know of its surroundings.
pub struct Site<'a> {
    /// Where to open files.
    pub vfs: &'a dyn Vfs,
    /// The journal's name.
    pub path: &'a Path,
    /// How much to sync.
    pub sync: SyncMode,
    /// What the device promises.
    pub device: Characteristics,
    /// A random number for the next segment.
    pub nonce: u32,
    /// The transaction is that of the process from which this one was forked.
    pub inherited: bool,
}

impl Journal {
    /// An empty journal; no file is touched yet. `kept` is one left open by an earlier transaction.
    pub fn new(
        memory: bool,
        kept: Option<Box<dyn File>>,
        sector: u32,
        page_size: u32,
        orig_size: Pgno,
    ) -> Journal {
        Journal {
            reused: kept.is_some(),
            place: if memory { Place::Memory } else { Place::File(kept) },
            buf: Vec::new(),
            base: 0,
            header: 0,
            records: 0,
            open: false,
            nonce: 0,
            sector,
            page_size,
            orig_size,
            pages: FastSet::default(),
            unsealed: FastSet::default(),
            begun: false,
            super_written: false,
            unsynced: false,
        }
    }

    /// Whether the page's original is recorded (or need not be).
    #[inline]
    pub fn contains(&self, pgno: Pgno) -> bool {
        self.pages.contains(&pgno)
    }

    /// Counts the page as recorded although it is not: its original content is of no worth.
    pub fn mark(&mut self, pgno: Pgno) {
        self.pages.insert(pgno);
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.header == 0 && self.records == 0
    }

    /// Whether the journal's bytes were handed to a file.
    pub fn in_file(&self) -> bool {
        matches!(self.place, Place::File(Some(_)))
    }

    /// Records the original of a page.
    pub fn add(&mut self, site: &Site, pgno: Pgno, page: &[u8]) -> Result<()> {
        if !self.open {
            self.begin_segment(site)?;
        }
        let n = page.len() + 8;
        alloc::reserve(&mut self.buf, n)?;
        self.buf.extend_from_slice(&pgno.to_be_bytes());
        self.buf.extend_from_slice(page);
        self.buf.extend_from_slice(&checksum(self.nonce, page).to_be_bytes());
        self.records += 1;
        self.pages.insert(pgno);
        self.unsealed.insert(pgno);
        if self.buf.len() > BUFFER && !matches!(self.place, Place::Memory) {
            self.flush(site)?;
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    fn pad(&mut self) -> Result<()> {
        let end = self.end();
        let aligned = end.next_multiple_of(self.sector as u64);
        alloc::reserve(&mut self.buf, (aligned - end) as usize)?;
        self.buf.resize(self.buf.len() + (aligned - end) as usize, 0);
        Ok(())
    }

    fn begin_segment(&mut self, site: &Site) -> Result<()> {
        self.pad()?;
        self.header = self.end();
        self.records = 0;
        self.nonce = site.nonce;
        let mut h = [0u8; HEADER];
        // Where nothing is synced, or appends are safe, the header counts from the start and the number of
        // records follows from the size. Else it stays without magic until the records are on disk.
        if self.counts_at_once(site) {
            h[..8].copy_from_slice(&MAGIC);
            be::put_u32(&mut h, 8, u32::MAX);
        }
        be::put_u32(&mut h, 12, self.nonce);
        be::put_u32(&mut h, 16, self.orig_size);
        be::put_u32(&mut h, 20, self.sector);
        be::put_u32(&mut h, 24, self.page_size);
        alloc::reserve(&mut self.buf, self.sector as usize)?;
        self.buf.extend_from_slice(&h);
        self.pad()?;
        self.open = true;
        Ok(())
    }

    fn counts_at_once(&self, site: &Site) -> bool {
        site.sync == SyncMode::Off || site.device.safe_append || matches!(self.place, Place::Memory)
    }

    /// Opens the file, if there is one to open: where none can be made, the transaction learns it before it has changed anything.
    pub fn open(&mut self, site: &Site) -> Result<()> {
        let Place::File(file) = &mut self.place else { return Ok(()) };
        if site.inherited {
            return Err(Code::IoerrLock.into());
        }
        if file.is_none() {
            let flags = OpenFlags { or_read_only: true, ..OpenFlags::read_write(FileKind::Journal) };
            let left = site.vfs.open(Some(site.path), flags)?;
            if left.is_read_only() {
                return Err(Code::IoerrWrite.into());
            }
            // A journal that somebody left (persisted, or recovered) may be longer than ours will be. And whoever made its
            // header worthless may have died before that was on the disk: what is written now must not come before it.
            self.reused = left.size()? > 0;
            if self.reused && site.sync != SyncMode::Off {
                left.sync(SyncKind::Data)?;
            }
            *file = Some(left);
        }
        Ok(())
    }

    fn flush(&mut self, site: &Site) -> Result<()> {
        self.open(site)?;
        let Place::File(file) = &mut self.place else { return Ok(()) };
        if !self.buf.is_empty() {
            self.unsynced = true;
            file.as_ref().expect("opened above").write(&self.buf, self.base)?;
            self.base += self.buf.len() as u64;
            self.buf.clear();
        }
        Ok(())
    }

    /// Its file, once there is one.
    pub fn raw_file(&self) -> Option<&dyn File> {
        match &self.place {
            Place::File(file) => file.as_deref(),
            _ => None,
        }
    }

    /// Whether a changed page may be written as things are: what it and the pages that share its sector held before was recorded
    /// by the last seal.
    pub fn covers(&self, pgno: Pgno) -> bool {
        let per_sector = (self.sector / self.page_size).max(1);
        let first = (pgno - 1) / per_sector * per_sector + 1;
        self.begun && (first..first + per_sector).all(|p| !self.unsealed.contains(&p))
    }

    /// How many pages wait for a seal.
    pub fn unsealed(&self) -> usize {
        self.unsealed.len()
    }

    /// That these pages may be written without another seal, if they may.
    pub fn sealed_for(&self, pages: &[(Pgno, Buf)]) -> Option<Synced> {
        pages.iter().all(|p| self.covers(p.0)).then(Synced::of_journal)
    }

    /// Makes all records so far count: they are on disk, then the header that names their number is.
    pub fn seal(&mut self, site: &Site) -> Result<Synced> {
        let sealed = self.seal_open(site)?;
        self.unsealed.clear();
        self.begun = true;
        Ok(sealed)
    }

    fn seal_open(&mut self, site: &Site) -> Result<Synced> {
        if self.end() == 0 && !matches!(self.place, Place::Memory) {
            // Nothing had to be recorded (the database was empty), but its former size has to be: otherwise a
            // crash leaves a part of the first transaction.
            self.begin_segment(site)?;
        }
        if !self.open && self.buf.is_empty() && !self.unsynced {
            return Ok(Synced::of_journal());
        }
        self.flush(site)?;
        let at_once = self.counts_at_once(site);
        let Place::File(Some(file)) = &self.place else { return Ok(Synced::of_journal()) };
        if at_once {
            if site.sync != SyncMode::Off {
                file.sync(SyncKind::Full)?;
            }
            self.unsynced = false;
            // The one segment goes on.
            return Ok(Synced::of_journal());
        }
        if self.open {
            self.guard_end(&**file)?;
            if site.sync >= SyncMode::Full && !site.device.sequential {
                file.sync(SyncKind::Full)?;
            }
            let mut h = [0u8; 12];
            h[..8].copy_from_slice(&MAGIC);
            be::put_u32(&mut h, 8, self.records);
            file.write(&h, self.header)?;
        }
        file.sync(if site.sync >= SyncMode::Full { SyncKind::Data } else { SyncKind::Full })?;
        self.open = false;
        self.unsynced = false;
        Ok(Synced::of_journal())
    }

    /// A header of an older journal where our next segment would begin must not be taken for ours.
    fn guard_end(&self, file: &dyn File) -> Result<()> {
        if !self.reused {
            return Ok(());
        }
        let next = self.base.next_multiple_of(self.sector as u64);
        let mut old = [0u8; 8];
        file.read(&mut old, next)?;
        if old == MAGIC {
            file.write(&[0], next)?;
        }
        Ok(())
    }

    /// Writes the name of the super-journal behind the records.
    pub fn name_super(&mut self, site: &Site, name: &[u8]) -> Result<()> {
        if matches!(self.place, Place::Memory) || self.super_written || name.is_empty() {
            return Ok(());
        }
        if !self.open && self.is_empty() {
            // A journal without records still has to carry the name.
            self.begin_segment(site)?;
        }
        if site.sync >= SyncMode::Full {
            self.pad()?;
        }
        let sum = name.iter().fold(0u32, |s, &b| s.wrapping_add(b as i8 as u32));
        let lock_page = lock_byte_page(self.page_size);
        alloc::reserve(&mut self.buf, name.len() + 20)?;
        self.buf.extend_from_slice(&lock_page.to_be_bytes());
        self.buf.extend_from_slice(name);
        self.buf.extend_from_slice(&(name.len() as u32).to_be_bytes());
        self.buf.extend_from_slice(&sum.to_be_bytes());
        self.buf.extend_from_slice(&MAGIC);
        self.flush(site)?;
        if let Place::File(Some(file)) = &self.place
            && file.size()? > self.base
        {
            // The name is found from the end of the file.
            file.truncate(self.base)?;
        }
        self.super_written = true;
        Ok(())
    }

    /// Whether it names a super-journal.
    pub fn has_super(&self) -> bool {
        self.super_written
    }

    /// Ends the journal: its file, if one was opened.
    pub fn into_file(self) -> Option<Box<dyn File>> {
        match self.place {
            Place::Memory => None,
            Place::File(f) => f,
        }
    }

    /// Plays all records back, in memory or from the file.
    pub fn play(&mut self, site: &Site, restore: &mut dyn FnMut(Pgno, &[u8]) -> Result<()>) -> Result<()> {
        if let Place::Memory = self.place {
            let record = self.page_size as usize + 8;
            let mut at = self.sector as usize;
            while at + record <= self.buf.len() {
                restore(be::get_u32(&self.buf, at), &self.buf[at + 4..at + record - 4])?;
                at += record;
            }
            return Ok(());
        }
        // What stands in a segment that is not sealed was never overwritten in the database. It must not be
        // made to count now: its records are not synced, and a power loss would restore what is there
        // instead.
        let end = if self.counts_at_once(site) {
            self.flush(site)?;
            self.base
        } else if self.open {
            self.header
        } else {
            self.base
        };
        if let Place::File(Some(file)) = &self.place {
            let mut reader = Reader::new(&**file, end)?;
            while let Some(pgno) = reader.next()? {
                restore(pgno, reader.page())?;
            }
        }
        Ok(())
    }
}

/// The page that holds the lock bytes and nothing else.
#[inline]
pub fn lock_byte_page(page_size: u32) -> Pgno {
    0x4000_0000 / page_size + 1
}

/// Reads a journal's records, as far as they count.
pub struct Reader<'a> {
    file: &'a dyn File,
    size: u64,
    at: u64,
    left: u32,
    nonce: u32,
    sector: u32,
    /// The database's size before the transaction, from the first header.
    pub orig_size: Pgno,
    /// The page size.
    pub page_size: u32,
    record: Vec<u8>,
    seen: FastSet<Pgno>,
    done: bool,
}

impl<'a> Reader<'a> {
    /// A reader at the first header of a journal of `size` bytes.
    pub fn new(file: &'a dyn File, size: u64) -> Result<Reader<'a>> {
        let mut r = Reader {
            file,
            size,
            at: 0,
            left: 0,
            nonce: 0,
            sector: 512,
            orig_size: 0,
            page_size: 0,
            record: Vec::new(),
            seen: FastSet::default(),
            done: false,
        };
        if !r.header()? {
            r.done = true;
        }
        Ok(r)
    }

    /// Whether there was a header that counts.
    pub fn is_valid(&self) -> bool {
        self.page_size != 0
    }

    fn header(&mut self) -> Result<bool> {
        let at = self.at.next_multiple_of(self.sector as u64);
        // The rest of its sector is written with it: what follows can have been done only then.
        if at + self.sector as u64 > self.size {
            return Ok(false);
        }
        let mut h = [0u8; HEADER];
        if !self.file.read(&mut h, at)? || h[..8] != MAGIC {
            return Ok(false);
        }
        if at == 0 {
            let (sector, page_size) = (be::get_u32(&h, 20), be::get_u32(&h, 24));
            let page_size = if page_size == 0 { 4096 } else { page_size };
            let fits = |n: u32, low: u32| n.is_power_of_two() && (low..=65536).contains(&n);
            if !fits(page_size, 512) || !fits(sector, 32) {
                return Ok(false);
            }
            self.sector = sector;
            self.page_size = page_size;
            self.orig_size = be::get_u32(&h, 16);
            self.record = alloc::zeroed(page_size as usize + 8)?;
        }
        self.nonce = be::get_u32(&h, 12);
        self.at = at + self.sector as u64;
        let records = be::get_u32(&h, 8);
        self.left = if records == u32::MAX {
            (self.size.saturating_sub(self.at) / self.record.len() as u64).min(u32::MAX as u64) as u32
        } else {
            records
        };
        Ok(true)
    }

    /// The next record's page number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Pgno>> {
        while !self.done {
            if self.left == 0 {
                if !self.header()? || self.left == 0 {
                    break;
                }
                continue;
            }
            let n = self.record.len() as u64;
            if self.at + n > self.size || !self.file.read(&mut self.record, self.at)? {
                break;
            }
            self.at += n;
            self.left -= 1;
            let pgno = be::get_u32(&self.record, 0);
            if pgno == 0 || pgno == lock_byte_page(self.page_size) {
                break;
            }
            let sum = be::get_u32(&self.record, self.record.len() - 4);
            if pgno > self.orig_size || self.seen.contains(&pgno) {
                continue;
            }
            if sum != checksum(self.nonce, self.page()) {
                break;
            }
            self.seen.insert(pgno);
            return Ok(Some(pgno));
        }
        self.done = true;
        Ok(None)
    }

    /// The present record's page.
    pub fn page(&self) -> &[u8] {
        &self.record[4..self.record.len() - 4]
    }
}

/// The super-journal named at the end of a journal.
pub fn super_name(file: &dyn File) -> Result<Option<Vec<u8>>> {
    let size = file.size()?;
    if size < 20 {
        return Ok(None);
    }
    let mut tail = [0u8; 16];
    file.read(&mut tail, size - 16)?;
    let len = be::get_u32(&tail, 0) as u64;
    if tail[8..] != MAGIC || len == 0 || len > size - 16 || len > 4096 {
        return Ok(None);
    }
    let mut name = alloc::zeroed(len as usize)?;
    file.read(&mut name, size - 16 - len)?;
    let sum = name.iter().fold(0u32, |s, &b| s.wrapping_add(b as i8 as u32));
    if sum != be::get_u32(&tail, 4) {
        // A torn tail: no name rather than a wrong one.
        return Ok(None);
    }
    Ok(Some(name))
}

/// The journals named in a super-journal.
pub fn super_children(vfs: &dyn Vfs, path: &Path) -> Result<Vec<Vec<u8>>> {
    let file = vfs.open(Some(path), OpenFlags::read_only(FileKind::SuperJournal))?;
    let size = file.size()?;
    if size > 1 << 20 {
        return Err(Code::Corrupt.into());
    }
    let mut all = alloc::zeroed(size as usize)?;
    file.read(&mut all, 0)?;
    Ok(all.split(|&b| b == 0).filter(|n| !n.is_empty()).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_samples_every_two_hundredth_byte_from_the_end() {
        let mut page = [0u8; 512];
        page[312] = 5;
        page[112] = 7;
        page[113] = 9;
        assert_eq!(checksum(100, &page), 112);
    }
}

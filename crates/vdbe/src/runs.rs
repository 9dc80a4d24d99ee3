//! Sorted runs of records in a temporary file, and their merging.
//!
//! A run is records one after the other, each behind its length (four bytes, the least first). The file is nobody else's
//! and gone when it is closed; nothing in it is synced. Written and read in pieces, so that a run costs one buffer.

use iolite_base::{Code, Result, alloc};
use iolite_os::File;
use std::ops::Range;

/// What is written at once.
const PIECE: usize = 1 << 18;
/// What a reader holds at least, and at most unless a record is longer.
const LEAST: usize = 4 << 10;
const MOST: usize = 1 << 18;

/// The file with its runs.
pub(crate) struct Runs {
    file: Box<dyn File>,
    /// Where each run lies.
    runs: Vec<Range<u64>>,
    end: u64,
    piece: Vec<u8>,
}

/// Reads one run.
#[derive(Default)]
pub(crate) struct Reader {
    /// What is not in `buf` yet.
    rest: Range<u64>,
    buf: Vec<u8>,
    /// The part of `buf` that holds bytes of the run.
    held: Range<usize>,
    /// The present record, in `buf`.
    record: Range<usize>,
}

impl Runs {
    pub fn new(file: Box<dyn File>) -> Runs {
        Runs { file, runs: Vec::new(), end: 0, piece: Vec::new() }
    }

    /// Writes a run.
    pub fn write<'r>(&mut self, records: impl Iterator<Item = &'r [u8]>) -> Result<()> {
        let start = self.end;
        for r in records {
            if self.piece.len() + 4 + r.len() > PIECE {
                self.flush()?;
            }
            alloc::reserve(&mut self.piece, 4 + r.len())?;
            self.piece.extend_from_slice(&(r.len() as u32).to_le_bytes());
            self.piece.extend_from_slice(r);
        }
        self.flush()?;
        self.runs.push(start..self.end);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.piece, self.end)?;
        self.end += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// A reader for each run, each before its first record; together they hold about `memory` bytes.
    pub fn readers(&mut self, memory: usize) -> Result<Vec<Reader>> {
        self.piece = Vec::new();
        let each = (memory / self.runs.len().max(1)).clamp(LEAST, MOST);
        let mut out = Vec::new();
        for r in &self.runs {
            let buf = alloc::zeroed(each)?;
            out.push(Reader { rest: r.clone(), buf, held: 0..0, record: 0..0 });
        }
        Ok(out)
    }

    /// Moves a reader to its next record; `false` at the end.
    pub fn next(&self, r: &mut Reader) -> Result<bool> {
        r.held.start = r.record.end.max(r.held.start);
        if r.held.is_empty() && r.rest.is_empty() {
            return Ok(false);
        }
        self.fill(r, 4)?;
        let at = r.held.start;
        let len = u32::from_le_bytes(r.buf[at..at + 4].try_into().expect("four bytes")) as usize;
        self.fill(r, 4 + len)?;
        let at = r.held.start + 4;
        r.record = at..at + len;
        Ok(true)
    }

    /// Sees to it that `n` bytes are held.
    fn fill(&self, r: &mut Reader, n: usize) -> Result<()> {
        if r.held.len() >= n {
            return Ok(());
        }
        r.buf.copy_within(r.held.clone(), 0);
        r.held = 0..r.held.len();
        r.record = 0..0;
        if r.buf.len() < n {
            let more = n - r.buf.len();
            alloc::reserve(&mut r.buf, more)?;
            r.buf.resize(n, 0);
        }
        let room = (r.buf.len() - r.held.end) as u64;
        let wanted = room.min(r.rest.end - r.rest.start) as usize;
        if !self.file.read(&mut r.buf[r.held.end..r.held.end + wanted], r.rest.start)? {
            return Err(Code::IoerrShortRead.into());
        }
        r.rest.start += wanted as u64;
        r.held.end += wanted;
        if r.held.len() < n { Err(Code::IoerrShortRead.into()) } else { Ok(()) }
    }
}

impl Reader {
    /// The present record.
    pub fn record(&self) -> &[u8] {
        &self.buf[self.record.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::{FileKind, OpenFlags, Vfs};

    #[test]
    fn runs_come_back_as_they_were() {
        let vfs = iolite_os::MemoryVfs::new();
        let file = vfs.open(None, OpenFlags::read_write(FileKind::Temp)).unwrap();
        let mut runs = Runs::new(file);
        let record = |run: usize, i: usize| vec![(run * 31 + i) as u8; (i * i * 7 + run) % 9000];
        let lens = [0, 1, 700, 50];
        for (k, n) in lens.iter().enumerate() {
            let all: Vec<Vec<u8>> = (0..*n).map(|i| record(k, i)).collect();
            runs.write(all.iter().map(Vec::as_slice)).unwrap();
        }
        // One longer than any buffer.
        let long = vec![9u8; 3 * MOST];
        runs.write([&long[..], b"x"].into_iter()).unwrap();
        let mut readers = runs.readers(1).unwrap();
        for (k, n) in lens.iter().enumerate() {
            for i in 0..*n {
                assert!(runs.next(&mut readers[k]).unwrap());
                assert_eq!(readers[k].record(), record(k, i), "run {k}, record {i}");
            }
            assert!(!runs.next(&mut readers[k]).unwrap());
        }
        assert!(runs.next(&mut readers[4]).unwrap());
        assert_eq!(readers[4].record(), long);
        assert!(runs.next(&mut readers[4]).unwrap());
        assert_eq!(readers[4].record(), b"x");
        assert!(!runs.next(&mut readers[4]).unwrap());
    }
}

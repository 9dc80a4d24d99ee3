//! Which state of the database a transaction reads, for those who keep what they derived from its pages.

use crate::pager::{Kind, Pager, State};
use crate::types::LockingMode;
use crate::wal::LogMark;
use iolite_base::{Pgno, Result};
use iolite_os::FileId;

/// A state of a database. Equal marks of one file are equal contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A state of the write-ahead log.
    Log(LogMark),
    /// Bytes 24 to 39 of a file without a log.
    Journal([u8; 16]),
    /// A database that only this session sees: counters of its changes.
    Private(u64, u64),
}

impl Pager {
    /// The file, if it can be told apart from others.
    pub fn identity(&self) -> Option<FileId> {
        self.file.as_ref().and_then(|f| f.identity())
    }

    /// The state being read. `None` within a write transaction, and where no name for it is sure.
    pub fn mark(&self) -> Option<Mark> {
        if self.state != State::Reader || !self.header_ok && self.kind == Kind::File {
            return None;
        }
        match (&self.wal, self.kind) {
            (Some(w), _) => w.mark().map(Mark::Log),
            // In exclusive mode the header does not change with every commit.
            (None, Kind::File) if self.locking_mode == LockingMode::Normal && self.db_size > 0 => {
                Some(Mark::Journal(self.file_version))
            }
            (None, Kind::File) => None,
            (None, _) => Some(Mark::Private(self.serial, self.epoch)),
        }
    }

    /// Reads `n` consecutive pages from the file at once, past the cache. `false`: some of them are elsewhere.
    pub fn read_run(&mut self, first: Pgno, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        let last = first as u64 + n as u64 - 1;
        let lock_page = self.lock_page() as u64;
        let Some(file) = &self.file else { return Ok(false) };
        if self.kind != Kind::File
            || self.state != State::Reader
            || last > self.db_size as u64
            || (first as u64..=last).contains(&lock_page)
        {
            return Ok(false);
        }
        if let Some(wal) = &mut self.wal {
            for p in first..=last as Pgno {
                if wal.find_frame(&**file, p)? != 0 {
                    return Ok(false);
                }
            }
        }
        let size = self.page_size as usize;
        if out.len() < n * size {
            iolite_base::alloc::reserve(out, n * size - out.len())?;
            out.resize(n * size, 0);
        }
        file.read(&mut out[..n * size], (first as u64 - 1) * size as u64)
    }

    /// The pages that differ between `then` and the state being read; `None` if that cannot be told.
    pub fn changed_since(&mut self, then: &Mark) -> Result<Option<Vec<Pgno>>> {
        if self.mark().as_ref() == Some(then) {
            return Ok(Some(Vec::new()));
        }
        match (then, &mut self.wal, &self.file) {
            (Mark::Log(l), Some(w), Some(f)) => w.changed_since(&**f, l),
            _ => Ok(None),
        }
    }
}

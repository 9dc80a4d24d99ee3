//! Which state of the database a transaction reads, for those who keep what they derived from its pages.
//!
//! Two names of a state. A [`Mark`] holds as long as the process has the file open. What is to be believed later, by
//! another process, is named by mark and [`Base`] together: what the operating system notes of the file, taken while
//! nobody could write to it, and long enough after the last change that a later one must leave another trace. The base
//! alone names the state where the file holds all of it ([`Base::whole`]); otherwise the log that the mark names has to
//! be there still. A power failure may keep a file's times and lose its content: whoever keeps a base keeps the name of
//! the operating system's run beside it.

use crate::pager::{Kind, Pager, State};
use crate::types::LockingMode;
use crate::wal::LogMark;
use iolite_base::{Pgno, Result};
use iolite_os::{Clock, FileId, FileStamp};
use std::time::Duration;

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

/// A database file as it lies on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    /// What the operating system says of it.
    pub stamp: FileStamp,
    /// Bytes 24 to 39: other ones after nearly every change.
    pub header: [u8; 16],
    /// It holds all of the state that is read; otherwise the rest is in the log.
    pub whole: bool,
}

/// Called while the last connection closes: the log's last state, which the file now holds alone.
pub type ClosingNote = Box<dyn FnOnce(LogMark, Option<Base>)>;

/// Times of files advance in steps: nanoseconds until a further change must leave another one.
const STEP: i64 = 20_000_000;
/// The same where times have whole seconds (or two).
const COARSE_STEP: i64 = 2_100_000_000;

/// How long until a change would be seen in the stamp; `None`: it lies in the future.
fn unsettled(stamp: &FileStamp, clock: &dyn Clock) -> Option<Duration> {
    let coarse = stamp.modified % 1_000_000_000 == 0 && stamp.changed % 1_000_000_000 == 0;
    let step = if coarse { COARSE_STEP } else { STEP };
    let now = clock.unix_millis().checked_mul(1_000_000)?;
    let last = stamp.changed.max(stamp.modified);
    let left = last.checked_add(step)?.checked_sub(now)?;
    (last <= now.checked_add(1_000_000)?).then(|| Duration::from_nanos(left.max(0) as u64))
}

impl Pager {
    /// The file's base now. Somebody holds a lock that keeps others from changing what it says.
    pub(crate) fn base_now(&self, whole: bool, wait: bool) -> Result<Option<Base>> {
        let Some(file) = self.file.as_ref().filter(|_| !self.nolock) else { return Ok(None) };
        let Some(mut stamp) = file.stamp()? else { return Ok(None) };
        match unsettled(&stamp, self.vfs.clock()) {
            None => return Ok(None),
            Some(left) if left.is_zero() => {}
            Some(left) if wait && left < Duration::from_millis(50) => {
                self.vfs.clock().sleep(left + Duration::from_millis(1));
                match file.stamp()? {
                    Some(again) if unsettled(&again, self.vfs.clock()) == Some(Duration::ZERO) => {
                        stamp = again
                    }
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        }
        let mut header = [0; 16];
        file.read(&mut header, 24)?;
        Ok(Some(Base { stamp, header, whole }))
    }

    /// Whether the file alone holds the state that is read.
    fn is_whole(&self) -> bool {
        self.wal.as_ref().is_none_or(crate::wal::Wal::reads_file_alone)
    }

    /// The base of the state that is read; with `wait`, some milliseconds may pass until there is one. `None`: what is
    /// known of the file does not name it.
    pub fn base(&self, wait: bool) -> Result<Option<Base>> {
        match self.mark() {
            Some(Mark::Log(_) | Mark::Journal(_)) => self.base_now(self.is_whole(), wait),
            _ => Ok(None),
        }
    }

    /// The pages that differ between the state of that mark and base, kept from another time, and the one being read;
    /// `None` if that cannot be told.
    pub fn changed_since_base(&mut self, mark: &Mark, base: &Base) -> Result<Option<Vec<Pgno>>> {
        if self.mark().is_none() || self.nolock {
            return Ok(None);
        }
        let Some(file) = &self.file else { return Ok(None) };
        let mut header = [0; 16];
        file.read(&mut header, 24)?;
        if file.stamp()? != Some(base.stamp) || header != base.header {
            return Ok(None);
        }
        match (base.whole, self.is_whole(), &mut self.wal) {
            (true, true, _) => Ok(Some(Vec::new())),
            (true, false, Some(w)) => w.all_pages(&**file),
            (false, ..) => self.changed_since(mark),
            _ => Ok(None),
        }
    }

    /// Asks to be told when the last connection has folded the log into the file.
    pub fn note_closing(&mut self, note: ClosingNote) {
        self.closing = Some(note);
    }

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

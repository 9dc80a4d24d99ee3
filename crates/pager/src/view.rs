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
use crate::wal::{FRAME_HEADER, LogMark};
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
    /// A file in WAL mode that has no log: only what the operating system says of the file names it.
    File(Base),
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

/// In what two states over the same file differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Difference {
    Nothing,
    /// In what the log holds.
    Log,
    /// In what the log got since the mark, if it is the same log still.
    SinceMark,
}

/// What lies between a state and the present one if the file is the same: all of the states is in it, or not.
fn difference(then_whole: bool, now_whole: bool) -> Difference {
    match (then_whole, now_whole) {
        (true, true) => Difference::Nothing,
        (true, false) => Difference::Log,
        (false, _) => Difference::SinceMark,
    }
}

/// How pages lie in what [`Pager::read_together`] read.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    /// How many.
    pub pages: usize,
    stride: usize,
    head: usize,
    size: usize,
}

impl Together {
    /// The `i`-th page.
    pub fn page<'b>(&self, i: usize, from: &'b [u8]) -> &'b [u8] {
        &from[i * self.stride + self.head..][..self.size]
    }
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
            Some(Mark::File(base)) => Ok(Some(base)),
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
        match (difference(base.whole, self.is_whole()), &mut self.wal) {
            (Difference::Nothing, _) => Ok(Some(Vec::new())),
            (Difference::Log, Some(w)) => w.all_pages(&**file),
            (Difference::Log, None) => Ok(None),
            (Difference::SinceMark, _) => self.changed_since(mark),
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
            (Some(w), _) if w.is_unnamed() => {
                // Who reads the file alone holds a lock that keeps it as it is.
                let base = self.base_now(true, false).unwrap_or(None);
                base.filter(|_| w.reads_file_alone()).map(Mark::File)
            }
            (Some(w), _) => w.mark().map(Mark::Log),
            // In exclusive mode the header does not change with every commit.
            (None, Kind::File) if self.locking_mode == LockingMode::Normal && self.db_size > 0 => {
                Some(Mark::Journal(self.file_version))
            }
            (None, Kind::File) => None,
            (None, _) => Some(Mark::Private(self.serial, self.epoch)),
        }
    }

    /// Within a write transaction: the state from which it began, and all pages that it changed, or changed back, since.
    /// `None` where no name for that state is sure.
    pub fn began_from(&self) -> Option<(Mark, &[Pgno])> {
        let writing = self.state >= State::WriterLocked && self.state < State::WriterFinished;
        if !writing || !self.header_ok || self.kind != Kind::File || self.foreign_image.is_some() {
            return None;
        }
        let mark = match &self.wal {
            Some(w) => Mark::Log(w.base_mark()?),
            None if self.locking_mode == LockingMode::Normal && self.orig_size > 0 => {
                Mark::Journal(self.file_version)
            }
            None => return None,
        };
        Some((mark, &self.dirty))
    }

    /// Reads `n` consecutive pages from the file at once, past the cache. `false`: some of them are elsewhere.
    pub fn read_run(&mut self, first: Pgno, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        let end = first as u64 + n as u64;
        if !self.reads_runs() || end > self.db_size as u64 + 1 {
            return Ok(false);
        }
        for pgno in first..end as Pgno {
            if !self.is_in_file(pgno)? {
                return Ok(false);
            }
        }
        self.read_file(first, n, out)
    }

    /// Whether several pages may be read from the file at once now.
    pub(crate) fn reads_runs(&self) -> bool {
        self.kind == Kind::File
            && matches!(self.state, State::Reader | State::WriterLocked)
            && self.file.as_ref().is_some_and(|f| !f.page_by_page())
    }

    /// Whether the file has a page as it is to be read: the log has none.
    pub(crate) fn is_in_file(&mut self, pgno: Pgno) -> Result<bool> {
        let frame = match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) => wal.find_frame(&**file, pgno)?,
            _ => 0,
        };
        Ok(frame == 0 && pgno != self.lock_page())
    }

    /// Reads pages that the file has. `false`: it is shorter.
    pub(crate) fn read_file(&self, first: Pgno, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let size = self.page_size as usize;
        if out.len() < n * size {
            iolite_base::alloc::reserve(out, n * size - out.len())?;
            out.resize(n * size, 0);
        }
        file.read(&mut out[..n * size], (first as u64 - 1) * size as u64)
    }

    /// Reads consecutive pages from `first` on at once, past the cache: for values that fill many pages. As many as
    /// `most`, and as lie together in the file or in the log, none of them cached; `None`: fewer than two, get them one
    /// by one.
    pub fn read_together(
        &mut self,
        first: Pgno,
        most: usize,
        into: &mut Vec<u8>,
    ) -> Result<Option<Together>> {
        let (Some(file), Kind::File) = (&self.file, self.kind) else { return Ok(None) };
        if first == 0 || self.state == State::Open || file.page_by_page() {
            return Ok(None);
        }
        let lock_page = self.lock_page();
        let end = self.db_size.min(first.saturating_add(most as Pgno).saturating_sub(1));
        let mut n = 0;
        let mut start = 0;
        for pgno in first..=end {
            if pgno == lock_page || self.table.find(pgno).is_some() {
                break;
            }
            let frame = match &mut self.wal {
                Some(wal) => wal.find_frame(&**file, pgno)?,
                None => 0,
            };
            if n == 0 {
                start = frame;
            } else if frame != if start == 0 { 0 } else { start + n } {
                break;
            }
            n += 1;
        }
        if n < 2 {
            return Ok(None);
        }
        let size = self.page_size as usize;
        let (stride, head, from) = match (&self.wal, start) {
            (Some(wal), 1..) => {
                (size + FRAME_HEADER as usize, FRAME_HEADER as usize, wal.frame_offset(start))
            }
            _ => (size, 0, (first as u64 - 1) * size as u64),
        };
        let bytes = n as usize * stride;
        if into.len() < bytes {
            iolite_base::alloc::reserve(into, bytes - into.len())?;
            into.resize(bytes, 0);
        }
        let out = &mut into[..bytes];
        match (&self.wal, start) {
            (Some(wal), 1..) => wal.read_log(out, from)?,
            _ => {
                file.read(out, from)?;
            }
        }
        self.stats.misses += n as u64;
        Ok(Some(Together { pages: n as usize, stride, head, size }))
    }

    /// Hints that a page will be wanted next.
    #[inline]
    pub fn will_want(&self, pgno: Pgno) {
        if let Some(i) = self.table.find(pgno)
            && let Some(buf) = self.table.slot(i).buf()
        {
            iolite_base::bytes::prefetch(buf);
        }
    }

    /// Whether a page is at hand.
    #[inline]
    pub fn is_cached(&self, pgno: Pgno) -> bool {
        self.table.find(pgno).is_some()
    }

    /// Whether bytes 24 to 39 of the file name the state that is read, or from which the present write transaction began.
    fn is_in_journal_mode(&self) -> bool {
        let now = self.mark().or_else(|| self.began_from().map(|b| b.0));
        now == Some(Mark::Journal(self.file_version))
    }

    /// The pages that differ between `then` and the state being read; `None` if that cannot be told.
    pub fn changed_since(&mut self, then: &Mark) -> Result<Option<Vec<Pgno>>> {
        if self.mark().as_ref() == Some(then) {
            return Ok(Some(Vec::new()));
        }
        let in_file = self.is_in_journal_mode();
        match (then, &mut self.wal, &self.file) {
            (Mark::Log(l), Some(w), Some(f)) => w.changed_since(&**f, l),
            (Mark::File(base), Some(_), Some(_)) => self.changed_since_base(then, base),
            (Mark::Journal(then), None, Some(_)) if in_file => {
                Ok(self.share.as_ref().and_then(|s| s.commits().between(*then, self.file_version)))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = 2;

    /// A database of two pages, whose contents are numbers.
    #[derive(Clone, Default)]
    struct Model {
        file: [u32; PAGES],
        stamp: u32,
        boot: u32,
        salt: u32,
        frames: Vec<(usize, u32)>,
        backfilled: usize,
        next: u32,
        /// What was kept, and what it said then.
        kept: Option<Kept>,
    }

    #[derive(Clone)]
    struct Kept {
        content: [u32; PAGES],
        salt: u32,
        /// Stands for number and checksum of the last frame.
        chain: Vec<(usize, u32)>,
        boot: u32,
        base: Option<(u32, u32, bool)>,
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Op {
        /// A commit to the log, which begins anew if it may.
        Commit(usize),
        /// One of a page that the log has already.
        Append(usize),
        Checkpoint,
        HalfCheckpoint,
        /// The last connection closes; with `true` it is told.
        Close(bool),
        /// The power fails: what was not synced is lost.
        PowerLoss,
        /// Another file is copied over this one.
        Restore,
        /// A commit without a log.
        Rollback(usize),
        Keep,
    }

    const OPS: [Op; 11] = [
        Op::Commit(0),
        Op::Commit(1),
        Op::Append(0),
        Op::Checkpoint,
        Op::HalfCheckpoint,
        Op::Close(false),
        Op::Close(true),
        Op::PowerLoss,
        Op::Restore,
        Op::Rollback(1),
        Op::Keep,
    ];

    impl Model {
        fn content(&self) -> [u32; PAGES] {
            let mut c = self.file;
            self.frames.iter().for_each(|(p, v)| c[*p] = *v);
            c
        }

        fn whole(&self) -> bool {
            self.backfilled == self.frames.len()
        }

        fn copy(&mut self, to: usize) {
            for i in self.backfilled..to {
                let (p, v) = self.frames[i];
                self.file[p] = v;
                self.stamp += 1;
            }
            self.backfilled = self.backfilled.max(to);
        }

        fn append(&mut self, page: usize) {
            if self.salt == 0 {
                self.next += 1;
                self.salt = self.next;
            }
            self.next += 1;
            self.frames.push((page, self.next));
        }

        fn drop_log(&mut self) {
            (self.salt, self.backfilled) = (0, 0);
            self.frames.clear();
        }

        fn keep(&mut self) {
            self.kept = Some(Kept {
                content: self.content(),
                salt: self.salt,
                chain: self.frames.clone(),
                boot: self.boot,
                base: Some((self.stamp, self.boot, self.whole())),
            });
        }

        /// `false`: it cannot happen now.
        fn apply(&mut self, op: Op) -> bool {
            match op {
                Op::Commit(p) => {
                    if !self.frames.is_empty() && self.whole() {
                        self.drop_log();
                    }
                    self.append(p);
                }
                Op::Append(p) if !self.frames.is_empty() => self.append(p),
                Op::Checkpoint if !self.whole() => self.copy(self.frames.len()),
                Op::HalfCheckpoint if self.backfilled + 1 < self.frames.len() => {
                    self.copy(self.backfilled + 1)
                }
                Op::Close(told) if !self.frames.is_empty() => {
                    let (salt, chain) = (self.salt, self.frames.clone());
                    self.copy(self.frames.len());
                    if let Some(k) = self.kept.as_mut().filter(|_| told) {
                        // The edge from the log's last state to the file, known to the process that kept the state.
                        let same = k.boot == self.boot && k.salt == salt && k.chain == chain;
                        k.base = same.then_some((self.stamp, self.boot, true));
                    }
                    self.drop_log();
                }
                Op::PowerLoss => {
                    if self.frames.len() > self.backfilled {
                        self.frames.pop();
                    }
                    // The log counts from its beginning again.
                    self.backfilled = 0;
                    // The file's times may survive what was written at them.
                    self.file[0] = 0;
                    self.boot += 1;
                }
                Op::Restore => {
                    self.next += 1;
                    self.file = [self.next; PAGES];
                    self.stamp += 1;
                    self.drop_log();
                }
                Op::Rollback(p) if self.frames.is_empty() => {
                    self.next += 1;
                    self.file[p] = self.next;
                    self.stamp += 1;
                }
                Op::Keep if self.kept.is_none() => self.keep(),
                _ => return false,
            }
            true
        }

        /// The pages that the rules say have changed; `None`: they must be looked at.
        fn changed(&self, k: &Kept) -> Option<Vec<usize>> {
            let (stamp, boot, whole) = k.base?;
            if (stamp, boot) != (self.stamp, self.boot) {
                return None;
            }
            match difference(whole, self.whole()) {
                Difference::Nothing => Some(Vec::new()),
                Difference::Log => Some(self.frames.iter().map(|f| f.0).collect()),
                Difference::SinceMark => {
                    let same = k.salt == self.salt && self.salt != 0 && self.frames.starts_with(&k.chain);
                    same.then(|| self.frames[k.chain.len()..].iter().map(|f| f.0).collect())
                }
            }
        }
    }

    fn explore(m: &Model, depth: u32, path: &mut Vec<Op>, told: &mut [u64; 2]) {
        if let Some(k) = &m.kept {
            let (content, changed) = (m.content(), m.changed(k));
            told[changed.is_some() as usize] += 1;
            if let Some(changed) = changed {
                for p in (0..PAGES).filter(|p| !changed.contains(p)) {
                    assert_eq!(content[p], k.content[p], "page {p} after {path:?}");
                }
            }
        }
        if depth == 0 {
            return;
        }
        for op in OPS {
            let mut next = m.clone();
            if next.apply(op) {
                path.push(op);
                explore(&next, depth - 1, path, told);
                path.pop();
            }
        }
    }

    #[test]
    fn a_state_kept_is_never_taken_for_another_one() {
        let mut told = [0; 2];
        explore(&Model::default(), 9, &mut Vec::new(), &mut told);
        assert!(told[0] > 10_000 && told[1] > 10_000, "{told:?}");
    }
}

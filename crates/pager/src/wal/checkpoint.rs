//! Checkpoints: copying frames into the database.
//!
//! ```text
//! checkpoint lock -> [write lock] -> marks looked at, raised where free
//!   -> mark 0 locked, header looked at again -> log synced -> pages written
//!   -> [database cut] -> database synced -> backfill count raised -> mark 0 free
//!   -> [FULL: was all copied?] -> [RESTART: marks 1 to 4 locked, TRUNCATE: log emptied]
//! ```
//!
//! What always holds: no frame beyond a mark that somebody holds is copied; the count is raised only for
//! frames of the log that the header in hand describes. The second rule was broken in SQLite until 2026:
//! between reading the header and locking mark 0, a writer could begin the log anew, and the count was raised
//! for the new log. So the header is compared once more under mark 0, which a writer needs for a restart.

use super::*;

/// The page as a connection's cache has it, if it is there unchanged.
pub type Cached<'a> = &'a dyn Fn(Pgno) -> Option<Buf>;

/// Pages that lie next to each other in the database are written together, up to so many bytes.
const TOGETHER: usize = 1 << 16;

/// After so many bytes the system is told to begin writing them, so that the sync at the end finds less to wait for.
const SEND: usize = 1 << 18;

/// How long to wait for the writers of this process before the busy handler is asked.
const PATIENCE: Duration = Duration::from_millis(5);

/// Neighbouring pages on their way to the file.
struct Run {
    first: Pgno,
    /// Those from the cache, which are written from where they are; `None`: the next one in `read`.
    pages: Vec<Option<Buf>>,
    read: Vec<u8>,
    size: usize,
}

impl Run {
    /// Writes them, and is empty then; how many bytes it was.
    fn write(&mut self, db: &dyn File) -> Result<usize> {
        let n = self.pages.len() * self.size;
        if n > 0 {
            let at = (self.first as u64 - 1) * self.size as u64;
            let mut parts: Vec<&[u8]> = Vec::new();
            alloc::reserve(&mut parts, self.pages.len())?;
            let mut read = self.read.chunks_exact(self.size);
            for p in &self.pages {
                parts.push(match p {
                    Some(page) => page,
                    None => read.next().ok_or(Code::Internal)?,
                });
            }
            match parts[..] {
                [one] => db.write(one, at)?,
                _ => db.write_parts(&parts, at)?,
            }
            self.pages.clear();
            self.read.clear();
        }
        Ok(n)
    }
}

impl Wal {
    /// Copies as much as `mode` asks for. `busy` is asked whether to wait where somebody is in the way;
    /// `cached` spares reading what this connection has at its last snapshot.
    #[allow(clippy::too_many_arguments)]
    pub fn checkpoint(
        &mut self,
        db: &dyn File,
        mode: CheckpointMode,
        sync: Option<SyncMode>,
        busy: Option<BusyHandler>,
        page_size: u32,
        cached: Cached<'_>,
    ) -> Result<CheckpointResult> {
        if self.log.is_read_only() || db.shm_read_only() {
            return Err(Code::Readonly.into());
        }
        if mode == CheckpointMode::Noop {
            self.refresh_header(db)?;
            return Ok(self.result(false));
        }
        self.give_back(db);
        self.revoke_leases(db);
        self.wait_exclusive(db, LOCK_CHECKPOINT, 1, &busy)?;
        self.copying = true;
        let done = self.checkpoint_alone(db, mode, sync, &busy, page_size, cached);
        self.copying = false;
        self.unlock_exclusive(db, LOCK_CHECKPOINT, 1);
        done
    }

    /// The checkpoint lock is held.
    fn checkpoint_alone(
        &mut self,
        db: &dyn File,
        mode: CheckpointMode,
        sync: Option<SyncMode>,
        busy: &Option<BusyHandler>,
        page_size: u32,
        cached: Cached<'_>,
    ) -> Result<CheckpointResult> {
        let mut effective = mode;
        let mut wrote_lock = false;
        let mut blocked = false;
        if mode > CheckpointMode::Passive && !self.writing {
            match self.wait_write(db, busy) {
                Ok(()) => {
                    self.writing = true;
                    wrote_lock = true;
                }
                Err(e) if e.code() == Code::Busy => {
                    effective = CheckpointMode::Passive;
                    blocked = true;
                }
                Err(e) => return Err(e),
            }
        }
        let done = self.checkpoint_locked(db, effective, sync, busy, page_size, cached);
        // Once the write lock is given back, another log may stand there, of which nothing was copied.
        let result = match done {
            Ok(finished) => Ok(self.result(blocked || !finished)),
            Err(e) if e.code() == Code::Busy => Ok(self.result(true)),
            Err(e) => Err(e),
        };
        if wrote_lock {
            self.end_write(db);
        }
        result
    }

    fn result(&self, busy: bool) -> CheckpointResult {
        match self.index.header() {
            Some(h) => CheckpointResult {
                busy,
                log: h.last_frame as i32,
                checkpointed: self.index.backfill().min(h.last_frame) as i32,
            },
            None => CheckpointResult { busy, log: 0, checkpointed: 0 },
        }
    }

    fn wait_exclusive(&self, db: &dyn File, first: u8, n: u8, busy: &Option<BusyHandler>) -> Result<()> {
        let mut attempts = 0;
        loop {
            match self.lock_exclusive(db, first, n) {
                Err(e) if e.code() == Code::Busy => match busy {
                    Some(ask) if ask(attempts) => attempts += 1,
                    _ => return Err(e),
                },
                other => return other,
            }
        }
    }

    fn wait_write(&mut self, db: &dyn File, busy: &Option<BusyHandler>) -> Result<()> {
        let mut attempts = 0;
        loop {
            match self.lock_write(db, if busy.is_some() { PATIENCE } else { Duration::ZERO }) {
                Err(e) if e.code() == Code::Busy => match busy {
                    Some(ask) if ask(attempts) => attempts += 1,
                    _ => return Err(e),
                },
                other => return other,
            }
        }
    }

    /// The published header, recovered if need be. Within a read transaction, the snapshot's own stays.
    fn refresh_header(&mut self, db: &dyn File) -> Result<Header> {
        if self.mark.is_some() {
            return Ok(self.index.header().unwrap_or_else(|| self.header.clone()));
        }
        self.read_index_header(db)?;
        Ok(self.header.clone())
    }

    /// `true`: all that the mode asks for was done.
    fn checkpoint_locked(
        &mut self,
        db: &dyn File,
        mode: CheckpointMode,
        sync: Option<SyncMode>,
        busy: &Option<BusyHandler>,
        page_size: u32,
        cached: Cached<'_>,
    ) -> Result<bool> {
        let h = self.refresh_header(db)?;
        // From here on a writer may begin the log anew, and the count of copied frames be that of another
        // log. (The simulator changes connections at barriers.)
        db.shm_barrier();
        if h.last_frame > 0 && h.page_size() != page_size {
            return Err(Code::Corrupt.into());
        }
        let mut waiting = if mode == CheckpointMode::Passive { None } else { busy.clone() };
        if self.index.backfill() < h.last_frame {
            let mut safe = h.last_frame;
            for i in 1..MARKS {
                let m = self.index.mark(i);
                if m >= safe {
                    continue;
                }
                match self.wait_exclusive(db, LOCK_READ + i, 1, &waiting) {
                    Ok(()) => {
                        self.index.set_mark(i, if i == 1 { safe } else { NOT_USED });
                        self.unlock_exclusive(db, LOCK_READ + i, 1);
                    }
                    Err(e) if e.code() == Code::Busy => {
                        safe = m;
                        waiting = None;
                    }
                    Err(e) => return Err(e),
                }
            }
            if self.index.backfill() < safe {
                self.wait_exclusive(db, LOCK_READ, 1, &waiting)?;
                // See the module's head: the log must still be the one that `h` describes.
                let copied = match self.index.header() {
                    Some(now) if now.salt == h.salt && now.last_frame >= h.last_frame => {
                        let from = self.index.backfill();
                        if from < safe { self.copy_frames(db, &h, from, safe, sync, cached) } else { Ok(()) }
                    }
                    _ => Err(Code::Busy.into()),
                };
                self.unlock_exclusive(db, LOCK_READ, 1);
                copied?;
            }
        }
        if mode == CheckpointMode::Passive {
            return Ok(true);
        }
        if self.index.backfill() < h.last_frame {
            return Ok(false);
        }
        if mode >= CheckpointMode::Restart {
            self.wait_exclusive(db, LOCK_READ + 1, MARKS - 1, &waiting)?;
            let mut cut = Ok(());
            if mode == CheckpointMode::Truncate {
                // Emptying the file under a header that still counts its frames would lose them for readers
                // who come now, so the header goes first.
                let mut salt = [0u8; 4];
                self.vfs.entropy().fill(&mut salt);
                self.header = h;
                self.restart(db, salt);
                cut = self.log.truncate(0);
            }
            self.unlock_exclusive(db, LOCK_READ + 1, MARKS - 1);
            cut?;
        }
        Ok(true)
    }

    fn copy_frames(
        &mut self,
        db: &dyn File,
        h: &Header,
        from: u32,
        safe: u32,
        sync: Option<SyncMode>,
        cached: Cached<'_>,
    ) -> Result<()> {
        let page_size = h.page_size();
        self.index.set_backfill_attempted(safe);
        db.notify(Note::CheckpointStart)?;
        if let Some(s) = sync {
            self.log.sync(if s >= SyncMode::Full { SyncKind::Data } else { SyncKind::Full })?;
        }
        // The newest frame of each page, in page order.
        let mut newest: Vec<(Pgno, u32)> = Vec::new();
        alloc::reserve(&mut newest, (h.last_frame - from) as usize)?;
        for frame in from + 1..=h.last_frame {
            if !self.index.map(db, super::index::region_of(frame), false)? {
                return Err(Code::IoerrShmsize.into());
            }
            newest.push((self.index.page(frame).unwrap_or(0), frame));
        }
        newest.sort_unstable();
        // Only a page whose newest frame of all is among those to copy is copied: what the cache has at this
        // very header is that frame.
        let cache_counts = self.seen.as_ref() == Some(h);
        let size = page_size as usize;
        db.notify(Note::SizeHint(h.db_pages as u64 * page_size as u64))?;
        let mut run = Run { first: 0, pages: Vec::new(), read: Vec::new(), size };
        let mut unsent = 0;
        let mut it = newest.iter().peekable();
        while let Some(&(pgno, frame)) = it.next() {
            let superseded = it.peek().is_some_and(|n| n.0 == pgno);
            if superseded || frame > safe || pgno > h.db_pages || pgno == 0 {
                continue;
            }
            let next = run.first as usize + run.pages.len();
            if pgno as usize != next || (run.pages.len() + 1) * size > TOGETHER {
                unsent += run.write(db)?;
                if unsent >= SEND && sync.is_some() {
                    db.start_writing(0, h.db_pages as u64 * page_size as u64);
                    unsent = 0;
                }
            }
            if run.pages.is_empty() {
                run.first = pgno;
            }
            let own = cached(pgno).filter(|_| cache_counts);
            // What other sessions of the process have of this very frame.
            let theirs = || Buf::of_page(self.shared.as_ref()?.page(Era::Log(h.salt), pgno, frame)?).ok();
            let page = own.or_else(theirs).filter(|b| b.len() == size);
            if page.is_none() {
                let at = LOG_HEADER + (frame as u64 - 1) * (page_size as u64 + FRAME_HEADER) + FRAME_HEADER;
                let start = run.read.len();
                alloc::reserve(&mut run.read, size)?;
                run.read.resize(start + size, 0);
                self.read_log(&mut run.read[start..], at)?;
            }
            alloc::reserve(&mut run.pages, 1)?;
            run.pages.push(page);
        }
        run.write(db)?;
        if safe == self.index.header().map_or(0, |n| n.last_frame) {
            let want = h.db_pages as u64 * page_size as u64;
            if db.size()? != want {
                db.truncate(want)?;
            }
        }
        db.notify(Note::Sync(None))?;
        if sync.is_some() {
            db.sync(SyncKind::Data)?;
        }
        self.index.set_backfill(safe);
        db.notify(Note::CheckpointDone)?;
        Ok(())
    }
}

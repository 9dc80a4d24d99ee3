//! Large values written once (`PRAGMA large_value_direct`): in WAL mode, pages of overflow chains that were free when the
//! transaction began go straight to the database file, which is synced before the commit's frames are appended. Without it
//! they are written twice, to the log and by the checkpoint.
//!
//! ```text
//! Untried --first such page is to be written--> Open   --commit: file synced, frames appended--> (published) Untried
//!                                          \--> Refused --commit: frames only----------------------------> Untried
//! ```
//!
//! Call *base* the state in which the transaction began. A page P may be written like that if it was a leaf of base's
//! freelist (the tree says so by [`Pager::get_unused`]) and the log has no frame of it, copied or not. Before the first
//! byte ([`Wal::begin_direct`]):
//!
//! 1. Base is published, and nobody reads an older state, at one moment after the write lock was taken: each read mark can be
//!    locked, but for those that stand at base's last frame. Who comes later finds base, where P is free: nobody who reads
//!    looks at P. (Who copies free pages as well may find anything there, as before.)
//! 2. The log is synced, and ends with base: all frames behind it are made worthless. So a recovery finds base or a later
//!    state: neither one before, in which P was in use, nor a commit that was never published, whose writer was killed and
//!    may have had other content in P. If the log begins anew, its new header is written first, too.
//! 3. The checkpoint lock is held, until the commit is published: a checkpoint that began with an older state may cut the
//!    file to its size. Checkpoints write only pages that have frames, so later ones leave P alone.
//!
//! The file is synced before the frames are appended: where the commit is found after a crash, P's content is. Before that,
//! and after a rollback, P is free and holds other bytes: nobody minds. If a later commit writes P otherwise, it gets a
//! frame, and frames win.
//!
//! *Pages in caches.* No frame tells other connections that P has changed. Stock SQLite lets all pages go when the log's header
//! has changed. Connections of ours keep what has no newer frame, so a commit that wrote to the file says so: it begins with two
//! frames of page 1 ([`wal::direct::told`]). Whoever finds them between the state he knows and the one he reads, in whichever
//! life of the log, takes all to be changed; the shared pages of a process that are those of the file are let go before
//! somebody of that state asks for them, and what readers of the state before still put in is lost (`shared`: `enter`). A
//! transaction that has written to the file shares nothing more.
//!
//! *New pages* go to the log. To write them behind the end of the file is not sound, though nobody reads there: if the
//! writer is killed between appending its last frame and publishing it, somebody's checkpoint cuts the file to base's size, and a
//! recovery finds the commit in the log and its pages gone. A database whose free pages are given back (auto-vacuum) has
//! none to write to.
//!
//! What always holds: in `Open` the write lock and the checkpoint lock are held; in the file, nothing has changed but pages that are
//! free in base. In `Refused`, nothing has.

use crate::pager::{Kind, Pager, State};
use crate::table::{DIRTY, WAS_FREE};
use crate::types::SyncMode;
#[cfg(doc)]
use crate::wal::{self, Wal};
use iolite_base::{Buf, Code, Pgno, Result, alloc};
use iolite_os::SyncKind;

/// Pages that follow each other are written together, up to so many bytes.
const TOGETHER: usize = 1 << 20;

/// How far a transaction has come with writing to the file. See the module's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direct {
    Untried,
    Refused,
    Open,
}

impl Pager {
    /// `PRAGMA large_value_direct`.
    pub fn large_value_direct(&self) -> bool {
        self.large_direct
    }

    /// Sets it.
    pub fn set_large_value_direct(&mut self, on: bool) {
        self.large_direct = on;
    }

    /// Whether free pages for a large value are of use.
    pub fn wants_unused(&self) -> bool {
        self.large_direct && self.wal.is_some() && self.direct != Direct::Refused
    }

    /// Pages of this transaction come from elsewhere: which ones were free when it began is no longer known.
    pub fn refuse_direct(&mut self) {
        if self.direct == Direct::Untried && self.state >= State::WriterLocked {
            self.direct = Direct::Refused;
        }
    }

    /// As [`Pager::get_filled`], for a page that was a leaf of the freelist when the transaction began: its content is free to
    /// be overwritten, whatever becomes of the transaction.
    pub fn get_unused(&mut self, pgno: Pgno, parts: &[&[u8]]) -> Result<Buf> {
        let page = self.get_filled(pgno, parts)?;
        if pgno <= self.orig_size
            && let Some(i) = self.table.find(pgno)
        {
            self.table.slot_mut(i).flags |= WAS_FREE;
        }
        Ok(page)
    }

    /// Writes those of the changed pages to the file that may go there, and leaves the others in the list, which is in order.
    pub(crate) fn write_direct(&mut self, pages: &mut Vec<(Pgno, Buf)>) -> Result<()> {
        if !self.large_direct || self.wal.is_none() || self.kind != Kind::File {
            return Ok(());
        }
        let was_free = |p: &Pager, pgno: Pgno| {
            p.table.find(pgno).is_some_and(|i| p.table.slot(i).flags & (DIRTY | WAS_FREE) == DIRTY | WAS_FREE)
        };
        if !pages.iter().any(|(p, _)| was_free(self, *p)) || !self.open_direct()? {
            return Ok(());
        }
        let mut others = Vec::new();
        let mut run: Vec<(Pgno, Buf)> = Vec::new();
        alloc::reserve(&mut others, pages.len() + 2)?;
        alloc::reserve(&mut run, (TOGETHER / self.page_size as usize).min(pages.len()))?;
        for (pgno, page) in std::mem::take(pages) {
            let fits = was_free(self, pgno);
            let (Some(wal), Some(file)) = (&mut self.wal, &self.file) else {
                return Err(Code::Internal.into());
            };
            if !fits || wal.has_frame(&**file, pgno)? {
                others.push((pgno, page));
                continue;
            }
            let full = (run.len() + 1) * self.page_size as usize > TOGETHER;
            if full || run.last().is_some_and(|l| l.0 + 1 != pgno) {
                self.write_run(&mut run)?;
            }
            run.push((pgno, page));
        }
        self.write_run(&mut run)?;
        *pages = others;
        Ok(())
    }

    /// Takes what is needed before the first byte, unless that was done or tried.
    fn open_direct(&mut self) -> Result<bool> {
        if self.direct == Direct::Untried {
            debug_assert!(self.state >= State::WriterLocked);
            let sync = self.log_sync();
            let (Some(wal), Some(file)) = (&mut self.wal, &self.file) else { return Ok(false) };
            let ready = wal.begin_direct(&**file, &*self.vfs, self.page_size, sync)?;
            self.direct = if ready { Direct::Open } else { Direct::Refused };
            // The file's pages of this transaction are nobody else's.
            self.era = self.era.filter(|_| !ready);
        }
        Ok(self.direct == Direct::Open)
    }

    pub(crate) fn log_sync(&self) -> Option<SyncMode> {
        if self.sync == SyncMode::Off { None } else { Some(self.sync) }
    }

    fn write_run(&mut self, run: &mut Vec<(Pgno, Buf)>) -> Result<()> {
        let Some(first) = run.first().map(|r| r.0) else { return Ok(()) };
        let size = self.page_size as u64;
        let at = (first as u64 - 1) * size;
        let mut parts: Vec<&[u8]> = Vec::new();
        alloc::reserve(&mut parts, run.len())?;
        parts.extend(run.iter().map(|(_, page)| &page[..]));
        let file = self.file()?;
        file.write_parts(&parts, at)?;
        if self.sync != SyncMode::Off {
            file.start_writing(at, run.len() as u64 * size);
        }
        self.stats.writes += run.len() as u64;
        run.clear();
        Ok(())
    }

    /// Before a commit's frames are appended: carries what went to the file to the disk, and lets the frames tell of it.
    pub(crate) fn settle_direct(&mut self, pages: &mut Vec<(Pgno, Buf)>) -> Result<()> {
        if self.direct != Direct::Open {
            return Ok(());
        }
        if self.sync != SyncMode::Off {
            self.file()?.sync(SyncKind::Data)?;
        }
        let first = self.get(1)?;
        alloc::reserve(pages, 2)?;
        if pages.first().is_none_or(|p| p.0 != 1) {
            pages.insert(0, (1, first.clone()));
        }
        pages.insert(0, (1, first));
        Ok(())
    }

    /// The transaction is published or taken back.
    pub(crate) fn end_direct(&mut self) {
        if std::mem::replace(&mut self.direct, Direct::Untried) == Direct::Open
            && let (Some(wal), Some(file)) = (&mut self.wal, &self.file)
        {
            wal.end_direct(&**file);
        }
    }
}

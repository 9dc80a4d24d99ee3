//! Beginning to write, and savepoints within a write transaction.

use crate::pager::{Kind, Pager, State};
use crate::table::{DIRTY, DONT_WRITE};
use crate::types::*;
use crate::wal::{Role, Snapshot};
use iolite_base::{Code, Pgno, Result, alloc};
use iolite_os::LockLevel;
use std::time::Duration;

impl Pager {
    /// Before [`Pager::begin_read`], for those who are going to write: in WAL mode, waits for the other writers of the
    /// process, at most for `patience`.
    pub fn await_turn(&mut self, patience: Duration) -> Result<()> {
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) if self.state == State::Open => {
                wal.await_turn(&**file, Role::Follower, patience)
            }
            _ => Ok(()),
        }
    }

    /// They do not write after all.
    pub fn leave_turn(&mut self) {
        if let (Some(wal), true) = (&mut self.wal, self.state < State::WriterLocked) {
            wal.leave_turn();
        }
    }

    /// Begins to write; with `exclusive`, keeps others from reading, too (not in WAL mode). After [`Pager::await_turn`] it
    /// moves on to the newest state, which other connections of the process may be about to sync: nothing may have been
    /// read yet.
    pub fn begin_write(&mut self, exclusive: bool) -> Result<()> {
        if let Some(e) = &self.error {
            return Err(e.clone());
        }
        if self.state >= State::WriterLocked {
            return Ok(());
        }
        debug_assert!(self.state == State::Reader);
        if self.is_inherited() {
            return Err(Code::IoerrLock.into());
        }
        if self.read_only || self.format_read_only {
            return Err(Code::Readonly.into());
        }
        if self.share.as_ref().is_some_and(|s| s.has_failed()) {
            // After a failed sync the kernel may have dropped what was not written, and a second one would
            // succeed without it.
            return Err(Code::IoerrFsync.into());
        }
        if self.kind == Kind::File {
            // Whoever has the log open holds a lock on the file, too: this one keeps all others out.
            if self.wal.is_some() && self.locking_mode == LockingMode::Exclusive {
                self.raise_alone()?;
            }
            match &mut self.wal {
                Some(wal) => {
                    let file = self.file.as_deref().expect("a log belongs to a file");
                    let moved = wal.begin_write(file)?;
                    let begun = self.move_on(moved).and_then(|()| self.check_file_size());
                    if let Err(e) = begun {
                        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
                            wal.end_write(&**file);
                        }
                        return Err(e);
                    }
                }
                None => {
                    self.raise(LockLevel::Reserved)?;
                    let begun = self.check_file_size().and_then(|()| match exclusive {
                        true => self.raise(LockLevel::Exclusive),
                        false => Ok(()),
                    });
                    if begun.is_err() && self.locking_mode == LockingMode::Normal {
                        self.unlock(LockLevel::Shared);
                    }
                    begun?;
                }
            }
        }
        self.orig_size = self.db_size;
        self.dirty.clear();
        self.serial += 1;
        if self.kind != Kind::File {
            self.undo.push(self.serial, self.db_size)?;
        }
        self.state = State::WriterLocked;
        self.check();
        Ok(())
    }

    /// `SQLITE_CORRUPT` where somebody cut the file, though its header (or what is known of it) says that nothing has changed:
    /// what is in memory must not be written around what is gone. In WAL mode only the file that holds everything can be told
    /// to be whole.
    pub(super) fn check_file_size(&mut self) -> Result<()> {
        if self.wal.as_ref().is_some_and(|w| !w.reads_file_alone_when_writing()) || self.db_size == 0 {
            return Ok(());
        }
        // A last page that is there in part counts, as it does in SQLite.
        if self.file()?.size()?.div_ceil(self.page_size as u64) < self.wanted_pages() as u64 {
            self.reset_cache();
            return Err(Code::Corrupt.into());
        }
        Ok(())
    }

    /// Lets pages go that have other content now.
    pub(super) fn forget_changed(&mut self, pages: &[Pgno]) {
        self.epoch += 1;
        for &p in pages {
            self.table.remove(p);
            self.header_ok &= p != 1;
        }
    }

    /// The snapshot has moved on.
    pub(super) fn move_on(&mut self, change: Snapshot) -> Result<()> {
        match change {
            Snapshot::Same => return Ok(()),
            Snapshot::Appended(pages) => {
                self.forget_changed(&pages);
            }
            Snapshot::Other => {
                self.reset_cache();
                self.era = None;
            }
        }
        self.data_version = self.data_version.wrapping_add(1);
        self.same_log = false;
        self.take_size_of_log();
        if !self.header_ok && !self.read_header()? {
            // Other pages altogether: to be read from the beginning.
            return Err(Code::BusySnapshot.into());
        }
        Ok(())
    }

    pub(super) fn base_level(&self) -> usize {
        (self.kind != Kind::File) as usize
    }

    /// Opens savepoints until `depth + 1` are open.
    pub fn savepoint_open(&mut self, depth: usize) -> Result<()> {
        if self.state < State::WriterLocked {
            return Ok(());
        }
        while self.undo.depth() < self.base_level() + depth + 1 {
            self.serial += 1;
            self.undo.push(self.serial, self.db_size)?;
        }
        Ok(())
    }

    /// Closes savepoint `depth` and all above it; their changes stay.
    pub fn savepoint_release(&mut self, depth: usize) {
        self.undo.release(self.base_level() + depth);
    }

    /// Takes back what happened since savepoint `depth` was opened; it stays open, those above it are gone.
    pub fn savepoint_rollback(&mut self, depth: usize) -> Result<()> {
        let level = self.base_level() + depth;
        if level >= self.undo.depth() {
            return Ok(());
        }
        let undone = self.undo_to(level);
        if let Err(e) = &undone {
            self.half_undone = Some(e.clone());
        }
        undone
    }

    pub(super) fn undo_to(&mut self, level: usize) -> Result<()> {
        match self.kind {
            Kind::File => self.restore_images(level),
            // Nothing but these images can take the changes back.
            _ => alloc::promised(|| self.restore_images(level)),
        }
    }

    fn restore_images(&mut self, level: usize) -> Result<()> {
        self.epoch += 1;
        self.serial += 1;
        let size = self.undo.db_size(level);
        let images = self.undo.rollback(level, self.serial, self.page_size as usize)?;
        self.room_for_dirty(images.len())?;
        if size < self.db_size {
            let beyond: Vec<Pgno> = self.table.iter().map(|s| s.pgno).filter(|&p| p > size).collect();
            for p in beyond {
                self.table.remove(p);
            }
        }
        self.db_size = size;
        for (pgno, image) in images {
            match self.table.find(pgno) {
                Some(i) => {
                    let slot = self.table.slot_mut(i);
                    slot.set_buf(image);
                    slot.flags = (slot.flags | DIRTY) & !DONT_WRITE;
                    slot.saved = 0;
                }
                None => {
                    let i = self.table.insert(pgno, image)?;
                    self.table.slot_mut(i).flags = DIRTY;
                }
            }
            self.note_dirty(pgno);
        }
        Ok(())
    }
}

//! Taking a transaction back.

use crate::pager::{Kind, Pager, State};
use crate::types::*;
use iolite_base::{Code, Result};
use iolite_os::{LockLevel, SyncKind};

impl Pager {
    /// Takes the whole transaction back.
    pub fn rollback(&mut self, end_read: bool) -> Result<()> {
        if self.state < State::WriterLocked {
            if end_read {
                self.end_read();
            }
            return Ok(());
        }
        if self.is_inherited() {
            // The transaction is the parent's, and so are its journal and its frames.
            self.abandon();
            return Ok(());
        }
        if self.state == State::WriterFinished && self.wal.as_ref().is_some_and(|w| !w.is_prepared()) {
            // It is published: nobody can take it back.
            self.end_write(end_read);
            return Ok(());
        }
        // A commit that failed at its last step, the journal's end, has let go of the journal.
        let ending = self.state == State::WriterFinished
            && self.wal.is_none()
            && self.journal.is_none()
            && !matches!(self.journal_mode, JournalMode::Memory | JournalMode::Off);
        let in_file = ending || self.journal.as_ref().is_some_and(|j| j.in_file());
        let undone = if ending && self.kind == Kind::File { Ok(()) } else { self.undo_transaction() };
        self.epoch += 1;
        if (ending || undone.is_err()) && self.kind == Kind::File {
            if !in_file && self.wal.is_none() && self.state >= State::WriterDbMod {
                self.error = undone.as_ref().err().cloned();
            }
            self.give_up();
            return undone;
        }
        self.end_write(end_read);
        undone
    }

    /// Gives a transaction up that could not be taken back. The file may be half restored. Where the journal is a file it is
    /// hot now: nothing in memory counts any more, and the next reader plays it back.
    pub(super) fn give_up(&mut self) {
        self.reset_cache();
        self.journal = None;
        self.foreign_image = None;
        self.half_undone = None;
        self.era = None;
        self.undo.clear();
        self.dirty.clear();
        self.end_direct();
        self.state = State::Open;
        if let (Some(wal), Some(file)) = (&mut self.wal, &self.file) {
            wal.end_write(&**file);
            wal.end_read(&**file);
        } else {
            self.unlock(LockLevel::None);
        }
    }

    /// Takes back what the transaction has changed, and stays the writer: nobody else can have written when it goes on.
    pub fn rollback_changes(&mut self) -> Result<()> {
        if self.state < State::WriterCacheMod || self.is_inherited() {
            self.undo.release(self.base_level());
            return Ok(());
        }
        debug_assert!(self.state < State::WriterFinished);
        let in_file = self.journal.as_ref().is_some_and(|j| j.in_file());
        if let Err(e) = self.undo_transaction() {
            if in_file && self.journal.is_none() {
                // All was restored but the journal would not end. There is none to try again with.
                self.epoch += 1;
                self.give_up();
            } else {
                self.half_undone = Some(e.clone());
            }
            return Err(e);
        }
        self.epoch += 1;
        self.serial += 1;
        self.dirty.clear();
        self.foreign_image = None;
        self.half_undone = None;
        self.end_direct();
        if self.kind == Kind::File {
            self.undo.clear();
            // The file, or the log, is as it was; which pages others know of it is found out by the next transaction.
            self.era = None;
        }
        self.state = State::WriterLocked;
        self.check();
        Ok(())
    }

    pub(super) fn undo_transaction(&mut self) -> Result<()> {
        self.reserved = self.reserved_before.take().unwrap_or(self.reserved);
        if self.kind != Kind::File {
            return self.undo_to(0);
        }
        let touched = std::mem::take(&mut self.dirty);
        for p in touched {
            self.table.remove(p);
        }
        if self.state > State::WriterLocked
            && let (Some(wal), Some(file)) = (&mut self.wal, &self.file)
        {
            wal.undo(&**file)?;
        }
        if self.state >= State::WriterDbMod && self.wal.is_none() {
            match self.journal.take() {
                Some(mut j) => {
                    let played = self.play_back(&mut j);
                    self.journal = Some(j);
                    played?;
                }
                None => {
                    // journal_mode=OFF after a spill: there is nothing to go back to.
                    self.reset_cache();
                    return Err(Code::Corrupt.into());
                }
            }
        }
        self.db_size = self.orig_size;
        if self.journal.is_some() {
            // If it comes back after a loss of power, it is played back once more.
            let unsure = self.end_journal()?;
            self.note_failed_sync(&unsure);
        }
        Ok(())
    }

    pub(super) fn play_back(&mut self, journal: &mut crate::journal::Journal) -> Result<()> {
        let file = self.file.as_deref().ok_or(Code::Misuse)?;
        let size = self.page_size as u64;
        let site = self.site(0);
        journal.play(&site, &mut |pgno, page| file.write(page, (pgno as u64 - 1) * size))?;
        file.truncate(self.orig_size as u64 * size)?;
        if self.sync != SyncMode::Off {
            file.sync(SyncKind::Full)?;
        }
        self.file_pages = self.orig_size;
        Ok(())
    }
}

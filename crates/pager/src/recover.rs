//! What a crashed writer left behind in the rollback modes: finding out whether a journal is hot, and playing
//! it back. (A log's recovery is in the module `wal`.)

use crate::journal::{self, Reader};
use crate::pager::Pager;
use crate::types::*;
use iolite_base::{Code, Pgno, Result};
use iolite_os::{FileKind, LockLevel, OpenFlags, SyncKind};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn path_of(name: &[u8]) -> PathBuf {
    // SAFETY is no question here: names are bytes on unix, and what is not UTF-8 elsewhere is replaced.
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        PathBuf::from(OsString::from_vec(name.to_vec()))
    }
    #[cfg(not(unix))]
    {
        PathBuf::from(OsString::from(String::from_utf8_lossy(name).into_owned()))
    }
}

/// Whether a name ends as those of super-journals do: `-mj`, six digits, a nine, two digits, all hexadecimal.
fn is_super_name(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    let Some((_, [b'-', b'm', b'j', digits @ ..])) = name.split_at_checked(name.len().wrapping_sub(12))
    else {
        return false;
    };
    digits[6] == b'9' && digits.iter().all(u8::is_ascii_hexdigit)
}

impl Pager {
    /// With SHARED held: if a journal is hot, plays it back.
    pub(crate) fn roll_back_hot_journal(&mut self) -> Result<()> {
        if self.kept_journal.is_some() && self.lock > LockLevel::Shared {
            return Ok(());
        }
        // The journal beside the name is another database's where the file was moved.
        if !self.exists(&self.journal_path)? || self.stays_in_place().is_err() || !self.journal_is_hot()? {
            return Ok(());
        }
        let path = self.journal_path.clone();
        if self.read_only {
            return Err(Code::ReadonlyRollback.into());
        }
        // Straight to EXCLUSIVE: with RESERVED in between, others would take the journal for a live one's.
        if let Err(e) = self.raise(LockLevel::Exclusive) {
            self.unlock(LockLevel::Shared);
            return Err(e);
        }
        self.kept_journal = None;
        let done = self.play_hot_journal(&path);
        self.unlock(LockLevel::Shared);
        self.reset_cache();
        done
    }

    fn journal_is_hot(&mut self) -> Result<bool> {
        if self.file()?.check_reserved()? {
            // Somebody is writing it.
            return Ok(false);
        }
        if self.file()?.size()? == 0 {
            // Left over from a database that was deleted. RESERVED keeps a new writer from making one
            // meanwhile.
            if !self.read_only && self.raise(LockLevel::Reserved).is_ok() {
                // Or somebody who took back the first transaction came no further than cutting the file: that
                // has to be on disk before the journal goes.
                let cut = match self.sync {
                    SyncMode::Off => Ok(()),
                    _ => self.file()?.sync(SyncKind::Full),
                };
                if cut.is_ok() {
                    let _ = self.vfs.delete(&self.journal_path, false);
                }
                self.unlock(LockLevel::Shared);
            }
            return Ok(false);
        }
        let Ok(file) = self.vfs.open(Some(&self.journal_path), OpenFlags::read_only(FileKind::Journal))
        else {
            // It vanished, or may not be read: the attempt to play it back will tell.
            return self.exists(&self.journal_path.clone());
        };
        let mut first = [0u8];
        file.read(&mut first, 0)?;
        Ok(first[0] != 0)
    }

    fn play_hot_journal(&mut self, path: &Path) -> Result<()> {
        if !self.exists(path)? {
            // Another process was faster.
            return Ok(());
        }
        let flags = OpenFlags { create: false, ..OpenFlags::read_write(FileKind::Journal) };
        let journal = self.vfs.open(Some(path), flags)?;
        if self.sync != SyncMode::Off {
            // What was read from it must not be lost in a second crash after it was played back.
            journal.sync(SyncKind::Full)?;
        }
        let super_path = journal::super_name(&*journal)?.map(|n| path_of(&n));
        let committed = match &super_path {
            Some(p) => !self.exists(p)?,
            None => false,
        };
        if !committed {
            let size = journal.size()?;
            let mut reader = Reader::new(&*journal, size)?;
            if reader.is_valid() {
                let page_size = reader.page_size as u64;
                let db = self.file()?;
                db.truncate(reader.orig_size as u64 * page_size)?;
                while let Some(pgno) = reader.next()? {
                    db.write(reader.page(), (pgno as u64 - 1) * page_size)?;
                }
                if self.sync != SyncMode::Off {
                    db.sync(SyncKind::Full)?;
                }
                self.file_pages = reader.orig_size as Pgno;
            }
        }
        self.end_played_journal(journal, path, super_path.is_some())?;
        if let (Some(p), false) = (&super_path, committed)
            && is_super_name(p)
        {
            self.delete_stale_super(p, path)?;
        }
        Ok(())
    }

    fn end_played_journal(
        &mut self,
        journal: Box<dyn iolite_os::File>,
        path: &Path,
        has_super: bool,
    ) -> Result<()> {
        match self.journal_mode {
            JournalMode::Persist if !has_super => {
                journal.write(&[0; 28], 0)?;
                journal.sync(SyncKind::Data)
            }
            JournalMode::Persist | JournalMode::Truncate => {
                journal.truncate(0)?;
                journal.sync(SyncKind::Full)
            }
            _ => {
                drop(journal);
                self.vfs.delete(path, self.sync == SyncMode::Extra)
            }
        }
    }

    /// Removes a super-journal that no journal points to any more, and that lists the journal just played back: whatever
    /// else a journal may name is somebody's file.
    fn delete_stale_super(&mut self, path: &Path, played: &Path) -> Result<()> {
        if !self.exists(path)? {
            return Ok(());
        }
        // What vanishes here was ended by somebody who has played another of its journals back.
        let children = match journal::super_children(&*self.vfs, path) {
            Err(_) if !self.exists(path)? => return Ok(()),
            other => other?,
        };
        if !children.iter().any(|c| path_of(c) == played) {
            return Ok(());
        }
        for child in children {
            let child = path_of(&child);
            if !self.exists(&child)? {
                continue;
            }
            let file = match self.vfs.open(Some(&child), OpenFlags::read_only(FileKind::Journal)) {
                Err(_) if !self.exists(&child)? => continue,
                other => other?,
            };
            if journal::super_name(&*file)?.is_some_and(|n| path_of(&n) == path) {
                return Ok(());
            }
        }
        self.vfs.delete(path, false)
    }
}

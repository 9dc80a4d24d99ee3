//! Beginning and ending to read: the lock or the mark, the header, what the cache still knows.

use crate::pager::{Kind, Pager, State};
use crate::shared::Era;
use crate::types::*;
use crate::wal::{Snapshot, SnapshotName};
use iolite_base::{Code, Error, Pgno, Result, be};
use iolite_os::LockLevel;

const HEADER: &[u8; 16] = b"SQLite format 3\0";

impl Pager {
    /// Begins to read: from now on the database stands still. `SQLITE_BUSY` may be worth another attempt.
    pub fn begin_read(&mut self) -> Result<()> {
        if let Some(e) = &self.error {
            return Err(e.clone());
        }
        match (self.state, self.is_inherited()) {
            (State::Open, true) if self.kind == Kind::File => self.open_again()?,
            (State::Open, false) => {}
            // The transaction is the parent's, and so is a file without a name, which both would write.
            (_, true) => return Err(Code::IoerrLock.into()),
            (_, false) => return Ok(()),
        }
        if self.kind != Kind::File {
            self.state = State::Reader;
            return Ok(());
        }
        let kept = self.locking_mode == LockingMode::Exclusive && self.lock > LockLevel::None;
        let begun = self.begin_read_file();
        if begun.is_err() {
            self.state = State::Open;
            match &mut self.wal {
                Some(wal) => wal.end_read(self.file.as_deref().expect("a log belongs to a file")),
                // A lock that was just taken does not say that nothing has changed since the last transaction.
                None if !kept => self.unlock(LockLevel::None),
                None => {}
            }
        }
        self.names_log &= begun.is_err();
        self.check();
        begun
    }

    /// The name of the state that is being read. `SQLITE_ERROR` without a log that somebody has written to, and for who writes.
    pub fn snapshot_name(&self) -> Result<SnapshotName> {
        match &self.wal {
            Some(wal) if self.state == State::Reader => wal.snapshot_name(),
            _ => Err(Code::Error.into()),
        }
    }

    /// Begins to read the state that was named. A transaction that reads already goes on there, or, if that state is not to be
    /// had, as it was. `SQLITE_ERROR` unless it is known that there is a log.
    pub fn begin_read_at(&mut self, name: &SnapshotName) -> Result<()> {
        let (Some(wal), Some(file)) = (&mut self.wal, &self.file) else { return Err(Code::Error.into()) };
        match self.state {
            State::Open => {}
            State::Reader => {
                wal.check_snapshot(&**file, name)?;
                self.end_read();
            }
            _ => return Err(Code::Error.into()),
        }
        self.wanted = Some(*name);
        let begun = self.begin_read();
        self.wanted = None;
        begun
    }

    /// Makes states of the log readable again that a recovery has left in doubt. `SQLITE_ERROR` without a log.
    pub fn recover_snapshots(&mut self) -> Result<()> {
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) if self.state == State::Reader => wal.recover_snapshots(&**file),
            _ => Err(Code::Error.into()),
        }
    }

    pub(super) fn begin_read_file(&mut self) -> Result<()> {
        // Each turn learns something that changes how to read: the page size, that there is a log.
        for _ in 0..5 {
            if self.wal.is_some() {
                self.begin_read_wal()?;
            } else {
                self.begin_read_journal()?;
            }
            self.state = State::Reader;
            // An unchanged log is still in its era: asking again would take a lock that all sessions share.
            if self.wal.is_none() || !self.same_log {
                self.era = None;
            }
            // Page 1, which most commits change, is to come from the others as well.
            if self.era.is_none() && self.wal.as_ref().is_some_and(|w| w.page_size() == self.page_size) {
                self.enter_era();
            }
            if self.header_ok || self.read_header()? {
                if self.era.is_none() {
                    self.enter_era();
                }
                return Ok(());
            }
            self.state = State::Open;
            if let Some(wal) = &mut self.wal {
                wal.end_read(self.file.as_deref().expect("a log belongs to a file"));
            }
        }
        Err(Code::Protocol.into())
    }

    /// Finds out whether there are other sessions to share pages with.
    pub(super) fn enter_era(&mut self) {
        let Some(share) = &self.share else { return };
        // In exclusive mode the header does not change with every commit.
        if !share.in_company() || self.locking_mode == LockingMode::Exclusive || self.db_size == 0 {
            return;
        }
        let era = match &self.wal {
            None => Some(Era::Journal(self.file_version)),
            Some(wal) => wal.salts().map(Era::Log),
        };
        self.era = era.and_then(|e| self.serial_of(e));
    }

    /// The serial under which pages of an era are shared. What the file has may have changed since this process last looked
    /// at the log.
    pub(super) fn serial_of(&mut self, era: Era) -> Option<u64> {
        let share = self.share.as_ref()?;
        let (Some(wal), Era::Log(salts)) = (&mut self.wal, era) else { return Some(share.enter(era, None)) };
        let from = if self.entered.0 == salts { self.entered.1 } else { share.looked_at(era) };
        let last = wal.last_frame();
        let told = wal.direct_since(self.file.as_deref()?, from);
        self.entered = (salts, last);
        Some(share.enter(era, Some((from, last, told))))
    }

    pub(super) fn begin_read_journal(&mut self) -> Result<()> {
        let had_lock = self.lock >= LockLevel::Shared;
        self.raise(LockLevel::Shared)?;
        if had_lock && self.header_ok {
            // Kept from the last transaction: nobody could change anything.
            return Ok(());
        }
        if self.lock <= LockLevel::Shared && !self.immutable {
            self.roll_back_hot_journal()?;
        }
        // A dead one's journal may just have been played back: nothing in memory counts then, and others may have committed
        // before that one began.
        if self.was_read {
            let mut now = [0; 16];
            self.file()?.read(&mut now, 24)?;
            if now != self.file_version {
                self.data_version = self.data_version.wrapping_add(1);
            } else if self.header_ok {
                return Ok(());
            }
        }
        self.reset_cache();
        let size = self.file()?.size()?;
        self.file_pages = size.div_ceil(self.page_size as u64).min(u32::MAX as u64 - 1) as Pgno;
        self.db_size = self.file_pages;
        if !self.immutable && self.exists(&self.wal_path.clone())? {
            if size == 0 {
                // A log without a database is left over from one that was deleted.
                if !self.read_only && self.stays_in_place().is_ok() {
                    self.vfs.delete(&self.wal_path, false)?;
                }
            } else {
                self.open_wal()?;
                return self.begin_read_wal();
            }
        }
        Ok(())
    }

    pub(super) fn begin_read_wal(&mut self) -> Result<()> {
        let file = self.file.as_deref().expect("a log belongs to a file");
        let wal = self.wal.as_mut().expect("called in WAL mode");
        let change = match self.wanted {
            None => wal.begin_read(file)?,
            Some(name) => wal.begin_read_at(file, &name)?,
        };
        self.same_log = matches!(change, Snapshot::Same);
        match change {
            Snapshot::Same => {}
            Snapshot::Appended(pages) => {
                self.data_version = self.data_version.wrapping_add(1);
                self.forget_changed(&pages);
            }
            Snapshot::Other => {
                if self.was_read {
                    self.data_version = self.data_version.wrapping_add(1);
                }
                self.reset_cache();
            }
        }
        let wal = self.wal.as_ref().expect("called in WAL mode");
        let (pages, page_size) = (wal.db_pages(), wal.page_size());
        if !self.page_size_fixed && page_size != 0 && page_size != self.page_size {
            // Page 1, which says it, may be in the log itself.
            self.page_size = page_size;
            self.set_cache_size(self.cache_setting);
            self.reset_cache();
        }
        if pages != 0 {
            self.take_size_of_log();
        } else if !self.header_ok {
            let size = self.file()?.size()?;
            self.file_pages = size.div_ceil(self.page_size as u64).min(u32::MAX as u64 - 1) as Pgno;
            self.db_size = self.file_pages;
        }
        Ok(())
    }

    /// The size that the log tells, unless a header that still holds has told one.
    pub(super) fn take_size_of_log(&mut self) {
        if let Some(wal) = self.wal.as_ref().filter(|_| !(self.header_ok && self.sized_by_header)) {
            self.db_size = wal.db_pages();
        }
    }

    /// Reads and checks page 1. `false`: begin again, with what was learnt.
    pub(super) fn read_header(&mut self) -> Result<bool> {
        if self.db_size == 0 {
            self.file_version = [0; 16];
            self.format_read_only = false;
            self.header_ok = true;
            self.was_read = true;
            return Ok(true);
        }
        let p1 = self.get(1)?;
        let notadb = || Error::from(Code::Notadb);
        if p1[..16] != HEADER[..] {
            return Err(notadb());
        }
        let size = match be::get_u16(&p1, 16) {
            1 => 65536,
            n => n as u32,
        };
        if !size.is_power_of_two()
            || !(512..=65536).contains(&size)
            || p1[21..24] != [64, 32, 32]
            || p1[19] > 2
        {
            return Err(notadb());
        }
        let reserved = p1[20];
        if size - (reserved as u32) < 480 {
            return Err(notadb());
        }
        self.reserved = reserved;
        self.page_size_fixed = true;
        if size != self.page_size {
            self.page_size = size;
            self.set_cache_size(self.cache_setting);
            self.reset_cache();
            return Ok(false);
        }
        if p1[19] == 2 && self.wal.is_none() && !self.immutable && !self.no_wal {
            self.open_wal()?;
            self.reset_cache();
            return Ok(false);
        }
        self.format_read_only = p1[18] > 2;
        let pages = be::get_u32(&p1, 28);
        self.sized_by_header = pages != 0 && p1[24..28] == p1[92..96];
        if self.sized_by_header {
            if pages > self.db_size && !self.salvages {
                return Err(Code::Corrupt.into());
            }
            self.db_size = pages.min(self.db_size);
        }
        self.header_ok = true;
        self.was_read = true;
        Ok(true)
    }

    /// Ends reading, if nothing is being written.
    pub fn end_read(&mut self) {
        if self.state != State::Reader {
            return;
        }
        self.state = State::Open;
        match (&mut self.wal, &self.file) {
            (Some(wal), Some(file)) => wal.end_read(&**file),
            _ if self.locking_mode == LockingMode::Normal => self.unlock(LockLevel::None),
            _ => {}
        }
    }
}

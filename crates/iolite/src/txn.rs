//! Transactions over all databases of a connection: commit, rollback, savepoints.
//!
//! A commit over several files is one decision:
//!
//! ```text
//! ask the hook -> lock all -> make all ready -> decide -> publish all
//!       |             |              |             |
//!       +-- refused   +-- BUSY:      +-- error:    +-- error: all is taken back
//!           (stays open)  (stays open)   all is taken back
//! ```
//!
//! *Lock*: every file that keeps readers out while it is written has EXCLUSIVE, so nobody has to be waited for afterwards.
//! *Ready*: every journal is synced, every database written and synced, every log's frames written (and synced, where its commits
//! wait for that) and not published. *Decide*: with two rollback journals or more, the file that lists them is deleted;
//! with one, that journal ends; with logs alone, there is nothing left that could fail. *Publish*: journals end, headers of logs are
//! stored.
//!
//! What always holds: no file shows the transaction before the decision; after it, whatever fails, every file does. After a crash
//! of the machine between decision and publication, files with journals have it as one; each log is by itself,
//! as the documentation of WAL mode says.

use crate::connection::Inner;
use iolite_base::{Code, Error, Result};
use iolite_btree::{Btree, Commit, TxnState};
use std::path::Path;

impl Inner {
    fn open_trees(&self) -> Vec<Btree> {
        self.databases.borrow().iter().filter_map(|d| d.btree.clone()).collect()
    }

    /// Commits every database. `SQLITE_BUSY`: somebody is in the way, nothing happened, and the transaction is still open.
    pub fn commit_all(&self) -> Result<()> {
        if let Some(alone) = self.only_writer() {
            return self.commit_one(&alone);
        }
        let trees = self.open_trees();
        let writing: Vec<Btree> =
            trees.iter().filter(|b| b.txn_state() == TxnState::Write).cloned().collect();
        if !writing.is_empty() {
            let hook = self.commit_hook.borrow().clone();
            if let Some(h) = hook
                && h()
            {
                return Err(Code::ConstraintCommithook.into());
            }
        }
        for b in &writing {
            b.lock_for_commit()?;
        }
        let keep = self.running.get() > 1;
        let done = match &writing[..] {
            [] => Ok(()),
            [one] => one.commit_phase_one(Commit::Alone).and_then(|()| one.commit_phase_two(!keep)),
            several => self.commit_together(several, !keep),
        };
        match done {
            Ok(()) => {}
            // The transaction is committed; it is not certain that it outlives a loss of power.
            Err(e) if writing.iter().all(|b| b.txn_state() != TxnState::Write) => {
                self.end_transaction();
                return Err(e);
            }
            // All locks are held: nobody can be waited for any more, and nothing may stay half ready.
            Err(e) if writing.len() > 1 => {
                let _ = self.rollback_all();
                let busy = e.code().primary() == Code::Busy;
                return Err(if busy { Code::IoerrLock.into() } else { e });
            }
            Err(e) => return Err(e),
        }
        if !keep {
            for b in &trees {
                b.end_read();
            }
        }
        self.end_transaction();
        Ok(())
    }

    /// From "make all ready" on: see the drawing at the module's head.
    fn commit_together(&self, writing: &[Btree], end_read: bool) -> Result<()> {
        let (journaled, others): (Vec<&Btree>, Vec<&Btree>) =
            writing.iter().partition(|b| b.needs_super_journal());
        let mut list = None;
        if journaled.len() > 1 {
            let names: Vec<Vec<u8>> =
                journaled.iter().map(|b| b.journal_name().into_os_string().into_encoded_bytes()).collect();
            let path = journaled[0].write_super_journal(&names)?;
            // As long as a journal names it, it has to be there: without it, the journal counts as committed.
            *self.super_journal.borrow_mut() = Some(path.clone());
            list = Some(path);
        }
        let name = list.as_ref().map(|p| p.as_os_str().as_encoded_bytes());
        for b in &journaled {
            b.commit_phase_one(Commit::Together { super_journal: name })?;
        }
        for b in &others {
            b.commit_phase_one(Commit::Together { super_journal: None })?;
        }
        let mut unsure = Ok(());
        let mut decided = false;
        if let Some(path) = &list {
            unsure = self.decide_by_deleting(path)?;
            *self.super_journal.borrow_mut() = None;
            decided = true;
        }
        for b in journaled.into_iter().chain(others) {
            match b.commit_phase_two(end_read) {
                Ok(()) => {}
                Err(e) if b.txn_state() != TxnState::Write => unsure = Err(e),
                // A journal that is left names a list that is gone, and will be removed.
                Err(_) if decided => drop(b.rollback(end_read)),
                Err(e) => return Err(e),
            }
            decided = true;
        }
        unsure
    }

    /// Without the list, no journal that it names is hot any more. An error outside: it is still there. Inside: it is gone, but
    /// may be back after a loss of power.
    fn decide_by_deleting(&self, list: &Path) -> Result<Result<()>> {
        match self.vfs.delete(list, true) {
            Ok(()) => Ok(Ok(())),
            Err(e) => match self.vfs.access(list, iolite_os::Access::Exists) {
                Ok(true) => Err(e),
                _ => Ok(Err(Code::IoerrDirFsync.into())),
            },
        }
    }

    /// The one database with a write transaction, if there is exactly one and no hook to ask.
    fn only_writer(&self) -> Option<Btree> {
        if self.commit_hook.borrow().is_some() {
            return None;
        }
        let dbs = self.databases.borrow();
        let mut writing =
            dbs.iter().filter_map(|d| d.btree.as_ref()).filter(|b| b.txn_state() == TxnState::Write);
        let first = writing.next()?;
        writing.next().is_none().then(|| first.clone())
    }

    /// Commits the only database that was written to: the common case, without lists.
    fn commit_one(&self, b: &Btree) -> Result<()> {
        b.commit_phase_one(Commit::Alone)?;
        let keep = self.running.get() > 1;
        let done = b.commit_phase_two(!keep);
        if done.is_err() && b.txn_state() == TxnState::Write {
            return done;
        }
        if !keep {
            self.end_reads();
        }
        self.end_transaction();
        done
    }

    fn end_transaction(&self) {
        if !self.savepoints.borrow().is_empty() {
            // Databases that were not written to have heard of them, too.
            for b in self.open_trees() {
                let _ = b.savepoint_release(0);
            }
        }
        self.savepoints.borrow_mut().clear();
        self.savepoint_began.set(false);
        self.flags.defer_foreign_keys.set(false);
    }

    /// Rolls every database back; auto-commit is on afterwards.
    pub fn rollback_all(&self) -> Result<()> {
        let mut first = Ok(());
        let mut wrote = false;
        let keep = self.running.get() > 1;
        self.undone.set(self.undone.get().wrapping_add(1));
        // Savepoints of statements that are running are gone, too.
        self.statement_depth.set(0);
        for b in self.open_trees() {
            b.trip_writers();
            if b.txn_state() == TxnState::Write {
                wrote = true;
            }
            let r = b.rollback(!keep);
            if first.is_ok() {
                first = r;
            }
        }
        let listed = self.super_journal.borrow_mut().take();
        if let (Some(path), Ok(())) = (listed, &first) {
            // Where this fails, a file stays that means nothing.
            let _ = self.vfs.delete(&path, false);
        }
        self.autocommit.set(true);
        self.end_transaction();
        if wrote {
            self.check_schemas()?;
            let hook = self.rollback_hook.borrow().clone();
            if let Some(h) = hook {
                h();
            }
        }
        first
    }

    /// Forgets schemas that are not what the files say: after a rollback, or when another connection has changed
    /// them. Answers whether there was one.
    pub fn check_schemas(&self) -> Result<bool> {
        let mut stale = false;
        let n = self.catalog.borrow().schemas.len();
        for db in 0..n {
            let Some(b) = self.btree_if_open(db) else { continue };
            let schema = self.catalog.borrow().schemas[db].clone();
            if !schema.loaded {
                continue;
            }
            let was = b.txn_state();
            let cookie = b.begin_read().and_then(|()| b.meta(1));
            if was == TxnState::None {
                b.end_read();
            }
            if cookie.ok() != Some(schema.cookie) {
                self.forget_schema(db);
                stale = true;
            }
        }
        Ok(stale)
    }

    /// Ends read transactions that nobody needs any more.
    pub fn end_reads(&self) {
        for d in self.databases.borrow().iter() {
            if let Some(b) = &d.btree
                && b.txn_state() == TxnState::Read
            {
                b.end_read();
            }
        }
    }

    /// Opens a savepoint in every database that has one less than are open.
    pub fn open_savepoints(&self, depth: usize) -> Result<()> {
        for b in self.open_trees() {
            b.savepoint_open(depth)?;
        }
        Ok(())
    }

    /// Brings a database that has just begun to write to the present depth.
    pub fn catch_up_savepoints(&self, b: &Btree) -> Result<()> {
        for depth in 0..self.savepoint_depth() {
            b.savepoint_open(depth)?;
        }
        Ok(())
    }

    /// Open savepoints, those of statements included.
    pub fn savepoint_depth(&self) -> usize {
        let named = self.savepoints.borrow().len();
        let named = named - self.savepoint_began.get() as usize;
        named + self.statement_depth.get()
    }

    /// `SAVEPOINT name`.
    pub fn savepoint(&self, name: &str) -> Result<()> {
        if self.writing.get() > 0 {
            return Err(Error::new(Code::Busy, "cannot open savepoint - SQL statements in progress"));
        }
        if self.autocommit.get() {
            self.autocommit.set(false);
            self.savepoint_began.set(true);
            self.savepoints.borrow_mut().push(name.into());
            return Ok(());
        }
        let depth = self.savepoint_depth();
        self.open_savepoints(depth)?;
        self.savepoints.borrow_mut().push(name.into());
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let list = self.savepoints.borrow();
        list.iter()
            .rposition(|n| n.eq_ignore_ascii_case(name))
            .ok_or_else(|| Error::sql(format!("no such savepoint: {name}")))
    }

    /// `RELEASE name`.
    pub fn release(&self, name: &str) -> Result<()> {
        let at = self.find_savepoint(name)?;
        if self.writing.get() > 0 {
            return Err(Error::new(Code::Busy, "cannot release savepoint - SQL statements in progress"));
        }
        if at == 0 && self.savepoint_began.get() {
            self.autocommit.set(true);
            if let Err(e) = self.commit_all() {
                if e.code().primary() == Code::Busy {
                    self.autocommit.set(false);
                } else {
                    let _ = self.rollback_all();
                }
                return Err(e);
            }
            return Ok(());
        }
        let depth = at - self.savepoint_began.get() as usize;
        for b in self.open_trees() {
            b.savepoint_release(depth)?;
        }
        self.savepoints.borrow_mut().truncate(at);
        Ok(())
    }

    /// `ROLLBACK TO name`: the savepoint stays open.
    pub fn rollback_to(&self, name: &str) -> Result<()> {
        let at = self.find_savepoint(name)?;
        let whole = at == 0 && self.savepoint_began.get();
        self.undone.set(self.undone.get().wrapping_add(1));
        for b in self.open_trees() {
            b.trip_writers();
            let undone = if !whole {
                b.savepoint_rollback(at - self.savepoint_began.get() as usize)
            } else if b.txn_state() == TxnState::Write {
                // The locks stay: nobody may write before this transaction goes on.
                b.rollback_changes()
            } else {
                Ok(())
            };
            if let Err(e) = undone {
                // Neither done nor undone: only the whole can be taken back now.
                let _ = self.rollback_all();
                return Err(e);
            }
        }
        self.savepoints.borrow_mut().truncate(at + 1);
        self.check_schemas().map(|_| ())
    }
}

//! Commit and rollback.
//!
//! A commit over several files is one decision:
//!
//! ```text
//! ask -> lock all -> make all ready -> decide -> publish all -> tell
//!  |         |             |              |
//!  |         +-- BUSY:     +-- error:     +-- error: all is taken back
//!  |            (stays open)  all is taken back
//!  +-- foreign keys: stays open; hook, virtual table: all is taken back
//! ```
//!
//! *Ask*: the counter of deferred foreign keys is at zero, virtual tables write what they have kept back (so before anything is
//! locked: they may write to trees). *Lock*: every file that keeps readers out while it is written has EXCLUSIVE, so
//! nobody has to be waited for afterwards. Then the hook agrees: it does not hear of a commit that has to be tried again.
//! *Ready*: every journal is synced, every database written and synced, every log's frames written (and synced, where its commits
//! wait for that) and not published. *Decide*: with two rollback journals or more, the file that lists them is deleted;
//! with one, that journal ends; with logs alone, there is nothing left that could fail. *Publish*: journals end, headers of logs are
//! stored. *Tell*: virtual tables, listeners.
//!
//! What always holds: no file shows the transaction before the decision; after it, whatever fails, every file does. After a crash
//! of the machine between decision and publication, files with journals have it as one; each log is by itself,
//! as the documentation of WAL mode says.

use super::{Owner, State, Transaction};
use iolite_base::{Code, Error, Result};
use iolite_btree::{Btree, Commit, TxnState};
use std::path::Path;

/// The databases that a transaction has written to. Nearly always it is one: no list is made for it.
#[derive(Default)]
struct Writers {
    first: Option<Writer>,
    others: Vec<Writer>,
}

/// A database with a write transaction.
struct Writer {
    number: usize,
    tree: Btree,
}

impl Writers {
    fn of(c: &impl Owner) -> Writers {
        let mut out = Writers::default();
        c.each_tree(|number, tree| {
            if tree.txn_state() != TxnState::Write {
                return;
            }
            let w = Writer { number, tree: tree.clone() };
            match out.first {
                None => out.first = Some(w),
                Some(_) => out.others.push(w),
            }
        });
        out
    }

    fn all(&self) -> impl Iterator<Item = &Writer> {
        self.first.iter().chain(&self.others)
    }

    fn trees(&self) -> impl Iterator<Item = &Btree> {
        self.all().map(|w| &w.tree)
    }
}

impl Transaction {
    /// Commits every database. After `SQLITE_BUSY` (somebody is in the way) and `SQLITE_CONSTRAINT_FOREIGNKEY`, nothing has happened,
    /// and a transaction that somebody began is still open. After other errors all is taken back.
    pub fn commit(&self, c: &impl Owner) -> Result<()> {
        let was = self.state.replace(State::Committing);
        let done = self.commit_once(c);
        match &done {
            Ok(()) => {}
            Err(e) if was == State::Open && stays_open(e) => self.state.set(State::Open),
            // What goes wrong while it is undone matters less than why.
            Err(_) => drop(self.rollback(c)),
        }
        self.check();
        done
    }

    fn commit_once(&self, c: &impl Owner) -> Result<()> {
        if self.deferred.get() > 0 {
            return Err(Error::new(Code::ConstraintForeignkey, "FOREIGN KEY constraint failed"));
        }
        if self.watched.get() {
            self.syncing.set(true);
            let synced = self.each_participant(|m| m.participant.sync());
            self.syncing.set(false);
            synced?;
        }
        let writers = Writers::of(c);
        if self.watched.get() && writers.first.is_some() {
            self.ask_hook(&writers)?;
        }
        let end_read = self.running.get() <= 1;
        let done = match (&writers.first, writers.others.is_empty()) {
            (None, _) => Ok(()),
            // It takes its lock itself.
            (Some(Writer { tree, .. }), true) => {
                tree.commit_phase_one(Commit::Alone).and_then(|()| tree.commit_phase_two(end_read))
            }
            (Some(_), false) => {
                writers.trees().try_for_each(Btree::lock_for_commit)?;
                // All locks are held: nobody can be waited for any more, and nothing may stay half ready.
                self.commit_together(c, &writers, end_read).map_err(|e| match e.code().primary() {
                    Code::Busy => Code::IoerrLock.into(),
                    _ => e,
                })
            }
        };
        // Where nobody writes any more, it is committed; with an error it is not certain that it outlives a loss of power.
        if done.is_err() && writers.trees().any(|b| b.txn_state() == TxnState::Write) {
            return done;
        }
        if self.running.get() == 0 {
            // A statement does so when it leaves.
            c.end_reads();
        }
        self.end(c);
        if self.watched.get() {
            self.tell_committed(c, &writers);
        }
        done
    }

    fn ask_hook(&self, writers: &Writers) -> Result<()> {
        let hook = self.commit_hook.borrow().clone();
        let Some(refuses) = hook else { return Ok(()) };
        writers.trees().try_for_each(Btree::lock_for_commit)?;
        if refuses() { Err(Code::ConstraintCommithook.into()) } else { Ok(()) }
    }

    fn tell_committed(&self, c: &impl Owner, writers: &Writers) {
        self.dismiss().iter().for_each(|m| m.participant.commit());
        if writers.first.is_some() {
            self.each_listener(|l| l.committed());
        }
        writers.all().for_each(|w| self.tell_of_log(c, w.number, &w.tree));
    }

    /// Tells how long a database's log is after a commit.
    pub fn tell_of_log(&self, c: &impl Owner, db: usize, tree: &Btree) {
        let hook = self.wal_hook.borrow().clone();
        let Some(hook) = hook else { return };
        let name = c.database_name(db);
        let frames = tree.wal_frames();
        if let Some(name) = name.filter(|_| frames > 0) {
            hook(&name, frames);
        }
    }

    /// From "make all ready" on: see the drawing at the module's head.
    fn commit_together(&self, c: &impl Owner, writers: &Writers, end_read: bool) -> Result<()> {
        let (journaled, others): (Vec<&Btree>, Vec<&Btree>) =
            writers.trees().partition(|b| b.needs_super_journal());
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
            unsure = decide_by_deleting(c, path)?;
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

    /// Takes every database back; nobody has begun a transaction afterwards.
    pub fn rollback(&self, c: &impl Owner) -> Result<()> {
        self.take_back(c, true)
    }

    /// As [`Transaction::rollback`], where nothing was changed that anybody could hear of.
    pub fn rollback_untold(&self, c: &impl Owner) -> Result<()> {
        self.take_back(c, false)
    }

    /// The schema cookies of databases that are written to.
    pub(super) fn cookies(&self, c: &impl Owner) -> Vec<Option<u32>> {
        let cookie = |b: Btree| b.meta(1).ok().filter(|_| b.txn_state() == TxnState::Write);
        c.open_trees().into_iter().map(cookie).collect()
    }

    /// Where one of them is another one since changes were taken back, statements that read on would read trees that are gone.
    pub(super) fn cut_readers(&self, c: &impl Owner, before: &[Option<u32>]) {
        let other =
            |(b, then): (Btree, &Option<u32>)| then.is_some() && b.reading(|b| b.meta(1)).ok() != *then;
        if self.running.get() > 0 && c.open_trees().into_iter().zip(before).any(other) {
            c.open_trees().into_iter().for_each(|b| b.cut_cursors());
        }
    }

    fn take_back(&self, c: &impl Owner, told: bool) -> Result<()> {
        let mut first = Ok(());
        let mut wrote = false;
        let begun = !self.is_autocommit();
        let end_read = self.running.get() <= 1;
        self.undone.set(self.undone.get().wrapping_add(1));
        // Marks of statements that are running are gone, too.
        self.forget_statement_marks();
        let schemas = self.cookies(c);
        for b in c.open_trees() {
            b.trip_writers();
            if b.txn_state() == TxnState::Write {
                wrote = true;
            }
            let r = b.rollback(end_read);
            if first.is_ok() {
                first = r;
            }
        }
        let listed = self.super_journal.borrow_mut().take();
        if let (Some(path), Ok(())) = (listed, &first) {
            // Where this fails, a file stays that means nothing.
            let _ = c.vfs().delete(&path, false);
        }
        self.end(c);
        self.abandon();
        self.check();
        if wrote {
            if begun {
                // Others began before the statement that fails alone: what they read was there before it, and is again.
                self.cut_readers(c, &schemas);
            }
            c.check_schemas();
        }
        if told && (wrote || begun) {
            let hook = self.rollback_hook.borrow().clone();
            if let Some(h) = hook {
                h();
            }
        }
        if told && wrote {
            self.each_listener(|l| l.rolled_back());
        }
        first
    }
}

/// After this, a transaction that somebody began is as it was before the attempt.
fn stays_open(e: &Error) -> bool {
    e.code().primary() == Code::Busy || e.code() == Code::ConstraintForeignkey
}

/// Without the list, no journal that it names is hot any more. An error outside: it is still there. Inside: it is gone, but
/// may be back after a loss of power.
fn decide_by_deleting(c: &impl Owner, list: &Path) -> Result<Result<()>> {
    match c.vfs().delete(list, true) {
        Ok(()) => Ok(Ok(())),
        Err(e) => match c.vfs().access(list, iolite_os::Access::Exists) {
            Ok(false) => Ok(Err(Code::IoerrDirFsync.into())),
            // Where nobody knows, all that can be taken back is: a list that is still there makes journals that are left hot.
            _ => Err(e),
        },
    }
}

//! One attached database of one connection: transactions, savepoints, header numbers, cursors.
//!
//! What always holds: the pager is borrowed for single calls only, never while code of others runs
//! (comparisons, busy handlers of the connection); a change of pages other than by a cursor raises the
//! generation of every tree.

use crate::copy::Watch;
use crate::cursor::{Cursor, Parked, Slot, Tree};
use crate::node::{Layout, TABLE_LEAF, TreeKind, corrupt};
use crate::room::make_empty;
use crate::shared_cache::{At, Seat, Seats};
use iolite_base::{Buf, Code, Encoding, Pgno, Result, be, hash::FastMap, hash::FastSet};
use iolite_os::Vfs;
use iolite_pager::{BusyHandler, Commit, OpenOptions, Pager, SecureDelete, SnapshotName, State, TxnState};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

/// Given the pages of a database, its free ones and the bytes of each, answers how many of the free ones are to go.
pub type VacuumPages = Rc<dyn Fn(u32, u32, u32) -> u32>;

/// `PRAGMA auto_vacuum`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoVacuum {
    /// Free pages stay in the file.
    None = 0,
    /// They are given back at each commit.
    Full = 1,
    /// They are given back when asked for.
    Incremental = 2,
}

/// See the module's head. Clones are the same database. Where the cache is shared, the connection's seat is beside it.
#[derive(Clone)]
pub struct Btree(pub(crate) Rc<Shared>, pub(crate) Option<Rc<Seat>>);

/// A read transaction that was begun for a while: see [`Btree::read_guard`].
#[must_use]
pub struct Reading {
    bt: Option<Btree>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(bt) = &self.bt {
            bt.end_read();
        }
    }
}

pub(crate) struct Shared {
    pub pager: RefCell<Pager>,
    pub layout: Cell<Layout>,
    pub trees: RefCell<FastMap<Pgno, Rc<Tree>>>,
    /// Trees that may have a parked path, the one that was listed last at the end.
    pub parked: RefCell<VecDeque<Weak<Tree>>>,
    /// The setting; for a database with content, what its header says.
    pub auto_vacuum: Cell<AutoVacuum>,
    pub secure_delete: Cell<SecureDelete>,
    /// Pages freed in this transaction, whose old content a rollback needs.
    pub has_content: RefCell<FastSet<Pgno>>,
    /// Rises when changes are taken back under statements that write: their cursors may not write any more.
    pub trips: Cell<u32>,
    /// Rises when a change of the schema is taken back: trees of open cursors may be gone, and their pages another tree's.
    pub cuts: Cell<u32>,
    /// Savepoints that are open (or will be, once something is written).
    pub savepoints: Cell<usize>,
    pub epoch: Cell<u64>,
    /// Pages in the database when the header was last looked at.
    pub seen_size: Cell<Pgno>,
    pub busy: RefCell<Option<BusyHandler>>,
    pub autocheckpoint: Cell<u32>,
    /// Frames in the log after the last commit, for the WAL hook.
    pub committed_frames: Cell<u32>,
    /// Free pages were given back for this commit; a repeated attempt need not do it again.
    pub vacuumed: Cell<bool>,
    pub encoding: Cell<Encoding>,
    pub mmap_size: Cell<i64>,
    /// Asked before a commit how many free pages go.
    pub vacuum_pages: RefCell<Option<VacuumPages>>,
    /// Backups of this database that have begun.
    pub watchers: RefCell<Vec<Weak<Watch>>>,
    /// What its connections share, where several do.
    pub seats: OnceCell<Seats>,
    pub closed: Cell<bool>,
}

impl Shared {
    /// The pager, for one call. Busy only if user code called back from within a call on it.
    #[inline(always)]
    pub fn pager(&self) -> Result<RefMut<'_, Pager>> {
        self.pager.try_borrow_mut().map_err(|_| Code::Misuse.into())
    }

    /// Whether it is open in the process from which this one was forked.
    pub fn is_inherited(&self) -> bool {
        self.pager().is_ok_and(|p| p.is_inherited())
    }

    pub fn tree(&self, root: Pgno) -> Rc<Tree> {
        self.trees
            .borrow_mut()
            .entry(root)
            .or_insert_with(|| {
                Rc::new(Tree {
                    generation: Cell::new(1),
                    slots: RefCell::new(Vec::<Slot>::new()),
                    armed: Cell::new(0),
                    appended: Cell::new(false),
                    near: Cell::new(0),
                    parked: RefCell::new(Parked::default()),
                    listed: Cell::new(false),
                })
            })
            .clone()
    }

    /// Makes all cursors look for their places anew.
    pub fn bump_all(&self) {
        self.forget_parked();
        self.trees.borrow_mut().retain(|_, t| {
            t.generation.set(t.generation.get().wrapping_add(1));
            // Trees that no cursor is open on need no memory.
            Rc::strong_count(t) > 1
        });
    }

    /// Lets go of the pages of all parked paths.
    pub fn forget_parked(&self) {
        self.unlist_parked(0);
    }

    /// Lets a tree that is not listed have a parked path; those that were listed before lose theirs where there would be more than `most`.
    /// (Where the first ones kept theirs, a connection with the default cache had paths for seven trees and for no others.)
    pub fn list_parked(&self, tree: &Rc<Tree>, most: usize) {
        self.unlist_parked(most.saturating_sub(1));
        self.parked.borrow_mut().push_back(Rc::downgrade(tree));
        tree.listed.set(true);
    }

    fn unlist_parked(&self, most: usize) {
        let mut list = self.parked.borrow_mut();
        while list.len() > most {
            if let Some(t) = list.pop_front().and_then(|t| t.upgrade()) {
                t.listed.set(false);
                t.parked.borrow_mut().forget();
            }
        }
    }

    /// Saves the keys of cursors on overflowing entries of all trees: pages are about to move or go.
    pub fn save_all(&self) -> Result<()> {
        let trees: Vec<Rc<Tree>> = self.trees.borrow().values().cloned().collect();
        for t in trees {
            self.save_slots(&t)?;
        }
        Ok(())
    }

    /// Saves the keys of cursors on overflowing entries of a tree.
    pub fn save_slots(&self, tree: &Tree) -> Result<()> {
        if tree.armed.get() == 0 {
            return Ok(());
        }
        for slot in tree.slots.borrow_mut().iter_mut() {
            if slot.key.is_none()
                && let Some((page, cell)) = &slot.at
            {
                let mut key = Vec::new();
                self.whole_payload(page, cell, &mut key)?;
                slot.key = Some(key);
            }
        }
        Ok(())
    }

    pub fn header_page(&self) -> Result<Buf> {
        self.pager()?.get(1)
    }

    pub fn header_u32(&self, at: usize) -> Result<u32> {
        let mut pager = self.pager()?;
        if pager.db_size() == 0 {
            return Ok(0);
        }
        Ok(be::get_u32(&pager.get(1)?, at))
    }

    pub fn set_header_u32(&self, at: usize, v: u32) -> Result<()> {
        let mut pager = self.pager()?;
        let mut p1 = pager.get(1)?;
        pager.edit(1, &mut p1, |b| be::put_u32(b, at, v))
    }

    /// A database without pages gets its first one.
    pub fn create_first_page(&self) -> Result<()> {
        let mut pager = self.pager()?;
        if pager.db_size() > 0 {
            return Ok(());
        }
        let mut p1 = pager.get_blank(1)?;
        self.write_first_page(&mut pager, &mut p1)?;
        drop(pager);
        // Cursors that read the database as empty.
        self.bump_all();
        Ok(())
    }

    /// Page 1 of a database without content. Whether there is a log, and the counters of changes, stay if they are there.
    pub fn write_first_page(&self, pager: &mut Pager, p1: &mut Buf) -> Result<()> {
        let (size, reserved, usable) = (pager.page_size(), pager.reserved(), pager.usable() as usize);
        let auto = self.auto_vacuum.get();
        pager.edit(1, p1, |b| {
            b[..16].copy_from_slice(b"SQLite format 3\0");
            be::put_u16(b, 16, if size == 65536 { 1 } else { size as u16 });
            if b[18] == 0 {
                b[18..20].copy_from_slice(&[1, 1]);
            }
            b[20] = reserved;
            b[21..24].copy_from_slice(&[64, 32, 32]);
            b[32..40].fill(0);
            b[44..92].fill(0);
            b[100..].fill(0);
            make_empty(b, 100, TABLE_LEAF, usable);
            be::put_u32(b, 52, (auto != AutoVacuum::None) as u32);
            be::put_u32(b, 64, (auto == AutoVacuum::Incremental) as u32);
        })
    }

    /// Tells the backups of this database what the transaction that ends now has changed.
    fn tell_watchers(&self, pager: &mut Pager, undone: bool) {
        let mut watchers = self.watchers.borrow_mut();
        if watchers.is_empty() {
            return;
        }
        let pages = pager.take_changes();
        watchers.retain(|w| {
            let Some(w) = w.upgrade() else { return false };
            w.note(&pages, undone);
            true
        });
        pager.watch_changes(!watchers.is_empty());
    }

    pub fn refresh(&self) -> Result<()> {
        let (epoch, layout, size) = {
            let pager = self.pager()?;
            (pager.epoch(), Layout::new(pager.usable()), pager.db_size())
        };
        if epoch != self.epoch.get() {
            self.epoch.set(epoch);
            self.bump_all();
        }
        if layout.usable != self.layout.get().usable {
            self.layout.set(layout);
            self.bump_all();
        }
        self.seen_size.set(size);
        if size > 0 {
            let p1 = self.header_page()?;
            self.auto_vacuum.set(match (be::get_u32(&p1, 52), be::get_u32(&p1, 64)) {
                (0, _) => AutoVacuum::None,
                (_, 0) => AutoVacuum::Full,
                _ => AutoVacuum::Incremental,
            });
        }
        Ok(())
    }

    /// As [`Shared::refresh`], if anything changed since the last time: most statements find nothing new.
    pub fn refresh_if_changed(&self) -> Result<()> {
        let unchanged = {
            let pager = self.pager()?;
            pager.epoch() == self.epoch.get()
                && pager.db_size() == self.seen_size.get()
                && pager.usable() == self.layout.get().usable
        };
        if unchanged { Ok(()) } else { self.refresh() }
    }

    pub fn has_ptrmap(&self) -> bool {
        self.auto_vacuum.get() != AutoVacuum::None
    }
}

/// How long a writer waits for the others of its process before it asks the busy handler: they hand the lock on within the
/// time of a commit, and the handler sleeps.
const PATIENCE: Duration = Duration::from_millis(5);
/// How often a writer may find its snapshot overtaken before it counts as busy.
const MOST_OVERTAKEN: u32 = 100;

impl Btree {
    /// Opens a database; with an empty path, a private one that vanishes when closed. Nothing is read yet.
    pub fn open(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, opts: &OpenOptions) -> Result<Btree> {
        let pager = Pager::open(vfs, path.as_ref(), opts)?;
        let layout = Layout::new(pager.usable());
        let epoch = pager.epoch();
        let shared = Rc::new(Shared {
            pager: RefCell::new(pager),
            layout: Cell::new(layout),
            trees: RefCell::new(FastMap::default()),
            parked: RefCell::default(),
            auto_vacuum: Cell::new(AutoVacuum::None),
            secure_delete: Cell::new(SecureDelete::Off),
            has_content: RefCell::new(FastSet::default()),
            trips: Cell::new(0),
            cuts: Cell::new(0),
            savepoints: Cell::new(0),
            epoch: Cell::new(epoch),
            seen_size: Cell::new(0),
            busy: RefCell::new(None),
            autocheckpoint: Cell::new(1000),
            committed_frames: Cell::new(0),
            vacuumed: Cell::new(false),
            encoding: Cell::new(Encoding::Utf8),
            mmap_size: Cell::new(0),
            vacuum_pages: RefCell::default(),
            watchers: RefCell::default(),
            seats: OnceCell::new(),
            closed: Cell::new(false),
        });
        Ok(Btree(shared, None))
    }

    /// A private database for intermediate results, in a write transaction. No file exists until memory is
    /// short.
    pub fn ephemeral(vfs: Arc<dyn Vfs>) -> Result<Btree> {
        let bt = Btree::open(vfs, "", &OpenOptions::default())?;
        bt.begin_write(false)?;
        Ok(bt)
    }

    /// Whether nobody else holds it, as cursors do.
    pub fn is_alone(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }

    /// Closes it: an open transaction is taken back. A shared cache lives on as long as another connection uses it.
    pub fn close(self) -> Result<()> {
        if let Some(at) = self.at() {
            let undone = self.rollback(true);
            if !at.give_up() {
                return undone;
            }
        }
        self.0.closed.set(true);
        self.0.bump_all();
        self.0.pager()?.close()
    }

    pub(crate) fn pager(&self) -> Result<RefMut<'_, Pager>> {
        self.0.pager()
    }

    /// Repeats a call that may find a lock taken, as long as the busy handler says so.
    fn waiting<T>(&self, mut call: impl FnMut(&mut Pager) -> Result<T>) -> Result<T> {
        let mut attempts = 0;
        loop {
            let done = call(&mut *self.pager()?);
            match done {
                Err(e) if e.code() == Code::Busy => match self.busy() {
                    Some(ask) if ask(attempts) => attempts += 1,
                    _ => return Err(e),
                },
                other => return other,
            }
        }
    }

    /// This connection's seat, where the cache is shared.
    #[inline]
    pub(crate) fn at(&self) -> Option<At<'_>> {
        let seat = self.1.as_deref()?;
        Some(At { seat, seats: self.0.seats.get()? })
    }

    /// Whether other connections may use the same cache.
    fn is_shared(&self) -> bool {
        self.1.is_some()
    }

    fn busy(&self) -> Option<BusyHandler> {
        match &self.1 {
            Some(seat) => seat.busy.borrow().clone(),
            None => self.0.busy.borrow().clone(),
        }
    }

    /// Savepoints of this connection that are open.
    fn savepoints(&self) -> &Cell<usize> {
        self.1.as_ref().map_or(&self.0.savepoints, |seat| &seat.savepoints)
    }

    /// Begins to read, unless that happened already.
    #[inline]
    pub fn begin_read(&self) -> Result<()> {
        let Some(at) = self.at().filter(|at| at.seat.state.get() == TxnState::None) else {
            return self.begin_read_alone();
        };
        at.may_begin(false, false)?;
        self.begin_read_alone()?;
        at.begun(TxnState::Read, false);
        Ok(())
    }

    #[inline]
    fn begin_read_alone(&self) -> Result<()> {
        let mut pager = self.pager()?;
        if pager.state() != State::Open {
            return pager.begin_read();
        }
        drop(pager);
        self.begin_read_slow()
    }

    /// Runs `f` in a read transaction, which ends with it unless it was there before.
    pub fn reading<T>(&self, f: impl FnOnce(&Btree) -> Result<T>) -> Result<T> {
        let _reading = self.read_guard()?;
        f(self)
    }

    /// Begins to read, unless that happened already; what was begun ends with the guard, on whatever way.
    pub fn read_guard(&self) -> Result<Reading> {
        let begins = self.txn_state() == TxnState::None;
        self.begin_read()?;
        Ok(Reading { bt: begins.then(|| self.clone()) })
    }

    /// The name of the state that is being read.
    pub fn snapshot_name(&self) -> Result<SnapshotName> {
        self.pager()?.snapshot_name()
    }

    /// Begins to read the state that was named, or goes over to it.
    pub fn begin_read_at(&self, name: &SnapshotName) -> Result<()> {
        if self.is_shared() {
            return Err(Code::Error.into());
        }
        self.waiting(|p| p.begin_read_at(name))?;
        let fresh = self.0.refresh_if_changed();
        if fresh.is_err() {
            self.end_read();
        }
        fresh
    }

    /// Makes states readable again that a recovery has left in doubt.
    pub fn recover_snapshots(&self) -> Result<()> {
        self.reading(|b| b.pager()?.recover_snapshots())
    }

    fn begin_read_slow(&self) -> Result<()> {
        self.waiting(|p| p.begin_read())?;
        let fresh = self.0.refresh_if_changed();
        if fresh.is_err() {
            self.end_read_alone();
        }
        fresh
    }

    /// Begins to write, unless that happened already. `exclusive` keeps readers out, too. If others are in
    /// the way: `SQLITE_BUSY`, or `SQLITE_BUSY_SNAPSHOT` if they wrote since this connection began to read.
    pub fn begin_write(&self, exclusive: bool) -> Result<()> {
        let Some(at) = self.at() else { return self.begin_write_alone(exclusive) };
        if at.seat.state.get() == TxnState::Write {
            return Ok(());
        }
        at.may_begin(true, exclusive)?;
        self.begin_write_alone(exclusive)?;
        at.begun(TxnState::Write, exclusive);
        Ok(())
    }

    fn begin_write_alone(&self, exclusive: bool) -> Result<()> {
        let state = self.pager()?.state();
        if state >= State::WriterLocked {
            return Ok(());
        }
        // Nothing that could be read would change it.
        if self.pager()?.file_is_read_only() {
            return Err(Code::Readonly.into());
        }
        let was_open = state == State::Open;
        let mut attempts = 0;
        let mut overtaken = 0;
        loop {
            // Only who held no lock before may wait: two readers that both want to write would wait for each other for
            // ever.
            let waits = was_open && self.busy().is_some();
            let patience = if waits { PATIENCE } else { Duration::ZERO };
            let begun = self.begin_write_once(exclusive, patience);
            match begun {
                Ok(()) => break,
                Err(e) => {
                    if was_open {
                        self.end_read_alone();
                        if e.code() == Code::BusySnapshot && overtaken < MOST_OVERTAKEN {
                            // Nothing was read yet: begin with what is there now.
                            overtaken += 1;
                            continue;
                        }
                        if e.code().primary() == Code::Busy
                            && let Some(ask) = self.busy()
                            && ask(attempts)
                        {
                            attempts += 1;
                            continue;
                        }
                    }
                    return Err(e);
                }
            }
        }
        self.0.has_content.borrow_mut().clear();
        self.0.vacuumed.set(false);
        let started = self.0.refresh_if_changed().and_then(|()| self.0.create_first_page()).and_then(|()| {
            let n = self.savepoints().get();
            if n > 0 { self.pager()?.savepoint_open(n - 1) } else { Ok(()) }
        });
        if let Err(e) = started {
            let _ = self.undo_with(|p| p.rollback(was_open));
            return Err(e);
        }
        Ok(())
    }

    fn begin_write_once(&self, exclusive: bool, patience: Duration) -> Result<()> {
        self.pager()?.await_turn(patience)?;
        // Only the caller asks the busy handler: two loops, one in the other, would wait for the product of both.
        let begin = || {
            if self.pager()?.state() == State::Open {
                self.pager()?.begin_read()?;
                self.0.refresh_if_changed()?;
            }
            self.pager()?.begin_write(exclusive)
        };
        let begun = begin();
        if begun.is_err() {
            self.pager()?.leave_turn();
        }
        begun
    }

    /// Ends reading; does nothing within a write transaction.
    pub fn end_read(&self) {
        if let Some(at) = self.at() {
            if at.seat.state.get() != TxnState::Read {
                return;
            }
            let last = !at.others_active();
            at.ended(false);
            if !last {
                return;
            }
        }
        self.end_read_alone();
    }

    fn end_read_alone(&self) {
        if let Ok(mut p) = self.pager() {
            p.end_read();
        }
    }

    /// The transaction's state.
    pub fn txn_state(&self) -> TxnState {
        match &self.1 {
            Some(seat) => seat.state.get(),
            None => self.pager_state(),
        }
    }

    /// The state of the transaction on the file, whichever connection's that is.
    pub(crate) fn pager_state(&self) -> TxnState {
        self.pager().map_or(TxnState::Write, |p| p.txn_state())
    }

    /// `SQLITE_LOCKED_SHAREDCACHE` while another connection that shares the cache writes: what is read page by page shows that.
    pub fn check_no_other_writes(&self) -> Result<()> {
        match self.txn_state() != TxnState::Write && self.pager_state() == TxnState::Write {
            true => Err(Code::LockedSharedcache.into()),
            false => Ok(()),
        }
    }

    /// The first half of a commit: see [`Btree::commit_phase_two`].
    pub fn commit_phase_one(&self, commit: Commit<'_>) -> Result<()> {
        if self.txn_state() != TxnState::Write {
            return Ok(());
        }
        if self.0.auto_vacuum.get() == AutoVacuum::Full && !self.0.vacuumed.get() {
            // Where it stops in the midst, pages have moved and the end stands: that must not be committed by another attempt.
            self.auto_vacuum_commit().map_err(|e| match e.code().primary() {
                Code::Busy => Code::IoerrLock.into(),
                _ => e,
            })?;
            self.0.vacuumed.set(true);
        }
        self.lock_for_commit()?;
        self.pager()?.commit_phase_one(commit)
    }

    /// Takes the lock that the first half of a commit needs, waiting for it if need be.
    pub fn lock_for_commit(&self) -> Result<()> {
        self.waiting(|p| p.lock_for_commit())
    }

    /// The second half: this is what makes the transaction durable and visible. `end_read`: no statement
    /// reads on. An error after which there is no write transaction any more: it is committed, and may not outlive a loss of
    /// power.
    pub fn commit_phase_two(&self, end_read: bool) -> Result<()> {
        let Some(at) = self.at() else { return self.commit_phase_two_alone(end_read) };
        if at.seat.state.get() != TxnState::Write {
            if end_read {
                self.end_read();
            }
            return Ok(());
        }
        let done = self.commit_phase_two_alone(end_read && !at.others_active());
        if self.pager_state() != TxnState::Write {
            at.committed();
            at.ended(!end_read);
        }
        done
    }

    fn commit_phase_two_alone(&self, end_read: bool) -> Result<()> {
        let writing = self.txn_state() == TxnState::Write;
        if writing {
            self.0.tell_watchers(&mut *self.pager()?, false);
        }
        let changed = self.pager()?.has_changed();
        let done = self.pager()?.commit_phase_two(end_read);
        if done.is_err() && self.pager_state() == TxnState::Write {
            return done;
        }
        if writing {
            self.0.has_content.borrow_mut().clear();
            self.savepoints().set(0);
            let frames = self.pager()?.wal_frames();
            self.0.committed_frames.set(if changed { frames } else { 0 });
            let limit = self.0.autocheckpoint.get();
            if limit > 0 && frames >= limit && end_read {
                self.pager()?.checkpoint_after_commit(limit);
            }
        }
        done
    }

    /// Both halves, for a transaction on this database alone.
    pub fn commit(&self) -> Result<()> {
        self.commit_phase_one(Commit::Alone)?;
        self.commit_phase_two(true)
    }

    /// Writes changed pages while the transaction stays open (`sqlite3_db_cacheflush`).
    pub fn flush(&self) -> Result<()> {
        self.waiting(|p| p.flush())
    }

    /// Takes the transaction back.
    pub fn rollback(&self, end_read: bool) -> Result<()> {
        let Some(at) = self.at() else { return self.undo_with(|p| p.rollback(end_read)) };
        if at.seat.state.get() != TxnState::Write {
            if end_read {
                self.end_read();
            }
            return Ok(());
        }
        let last = !at.others_active();
        let done = self.undo_with(|p| p.rollback(end_read && last));
        at.ended(!end_read);
        done
    }

    /// Takes all changes of the transaction back, and goes on writing in it.
    pub fn rollback_changes(&self) -> Result<()> {
        if self.txn_state() != TxnState::Write {
            // Nothing was changed, but savepoints may wait for the first change.
            self.savepoints().set(0);
            return Ok(());
        }
        self.undo_with(|p| p.rollback_changes())?;
        if self.txn_state() == TxnState::Write { self.0.create_first_page() } else { Ok(()) }
    }

    fn undo_with(&self, undo: impl FnOnce(&mut Pager) -> Result<()>) -> Result<()> {
        self.0.save_all_for_rollback();
        if self.pager_state() == TxnState::Write {
            self.0.tell_watchers(&mut *self.pager()?, true);
        }
        let done = undo(&mut *self.pager()?);
        self.0.has_content.borrow_mut().clear();
        self.savepoints().set(0);
        self.0.bump_all();
        let epoch = self.pager()?.epoch();
        self.0.epoch.set(epoch);
        if self.pager_state() != TxnState::None {
            self.0.refresh()?;
        }
        done
    }

    /// Opens savepoints until `depth + 1` are open.
    pub fn savepoint_open(&self, depth: usize) -> Result<()> {
        self.savepoints().set(self.savepoints().get().max(depth + 1));
        if self.is_shared() && self.txn_state() != TxnState::Write {
            return Ok(());
        }
        self.pager()?.savepoint_open(depth)
    }

    /// Closes savepoint `depth` and those above; their changes stay.
    pub fn savepoint_release(&self, depth: usize) -> Result<()> {
        self.savepoints().set(self.savepoints().get().min(depth));
        if self.is_shared() && self.txn_state() != TxnState::Write {
            return Ok(());
        }
        self.pager()?.savepoint_release(depth);
        Ok(())
    }

    /// Cursors that write stop with `SQLITE_ABORT_ROLLBACK` from now on: what their statements changed is taken back.
    pub fn trip_writers(&self) {
        if self.is_shared() && self.txn_state() != TxnState::Write {
            // Those are another connection's.
            return;
        }
        self.0.trips.set(self.0.trips.get().wrapping_add(1));
    }

    /// All cursors that are open stop with `SQLITE_ABORT_ROLLBACK` where they would look for their place again: the schema that they
    /// were opened by is taken back.
    pub fn cut_cursors(&self) {
        self.0.cuts.set(self.0.cuts.get().wrapping_add(1));
        // All look for their place then.
        self.0.bump_all();
    }

    /// A number that is another one after [`Btree::cut_cursors`].
    pub fn cuts(&self) -> u32 {
        self.0.cuts.get()
    }

    /// Goes back to when savepoint `depth` was opened. It stays open; those above it are gone.
    pub fn savepoint_rollback(&self, depth: usize) -> Result<()> {
        self.savepoints().set(self.savepoints().get().min(depth + 1));
        if self.txn_state() != TxnState::Write {
            // Nothing of it was changed, and what it holds is not even known where nobody reads.
            return Ok(());
        }
        self.0.save_all_for_rollback();
        let done = self.pager()?.savepoint_rollback(depth);
        self.0.bump_all();
        let epoch = self.pager()?.epoch();
        self.0.epoch.set(epoch);
        self.0.refresh()?;
        done
    }

    /// Number `i` of the header: 0 freelist pages, 1 schema cookie, 2 schema format, 3 default cache size, 4
    /// largest root, 5 encoding, 6 user version, 7 incremental vacuum, 8 application id; 15: the data version
    /// of this connection.
    pub fn meta(&self, i: usize) -> Result<u32> {
        match i {
            15 => Ok(self.data_version()),
            0..15 => self.0.header_u32(36 + 4 * i),
            _ => Err(Code::Range.into()),
        }
    }

    /// Sets such a number.
    pub fn set_meta(&self, i: usize, v: u32) -> Result<()> {
        if !(1..15).contains(&i) {
            return Err(Code::Range.into());
        }
        self.0.set_header_u32(36 + 4 * i, v)?;
        if i == 7 {
            self.0.refresh()?;
        }
        Ok(())
    }

    /// A cursor on the tree with this root. No page is read yet.
    pub fn cursor(&self, root: Pgno, kind: TreeKind, write: bool) -> Result<Cursor> {
        if write && self.is_read_only() {
            return Err(Code::Readonly.into());
        }
        if root == 0 {
            return Err(corrupt());
        }
        let tree = self.0.tree(root);
        Ok(Cursor::new(self.0.clone(), tree, root, kind, write))
    }

    /// The name of a super-journal for several databases' journals, written beside this database.
    pub fn write_super_journal(&self, journals: &[Vec<u8>]) -> Result<PathBuf> {
        self.pager()?.write_super_journal(journals)
    }
}

impl Shared {
    /// Before a rollback: cursors on overflowing entries save their keys while the pages still fit their
    /// images.
    pub fn save_all_for_rollback(&self) {
        // A page that cannot be read now leaves a cursor without a key; it then reports that it moved.
        let _ = self.save_all();
    }
}

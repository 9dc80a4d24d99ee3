//! The transaction of a connection, over all its databases.
//!
//! ```text
//!          BEGIN, SAVEPOINT
//!   Auto ------------------------> Open --- ROLLBACK --> Auto
//!    |                             |  ^
//!    |                             |  |  SQLITE_BUSY, violated foreign keys:
//!    |      COMMIT, or RELEASE of  |  |  nothing has happened
//!    |      the first savepoint    v  |
//!    +-------------------------> Committing --- done, or taken back --> Auto
//!      the last statement
//!      that writes ends
//! ```
//!
//! *Auto*: each statement is a transaction of its own. *Open*: it goes on until somebody ends it. *Committing*: hooks may be asked,
//! locks waited for; `sqlite3_get_autocommit` answers as in *Auto*.
//!
//! Part in it take the trees of the databases, virtual tables ([`Participant`]s), the counter of deferred foreign keys, and
//! listeners, who hear of the end. A savepoint and a running statement that may have to be undone alone are *marks* in it: places
//! that one can go back to, numbered from 0, the named ones first. Each keeps what the counter was.
//!
//! What always holds (`check`): named savepoints, participants and a counter above zero are there only in a transaction (in
//! *Auto*: that of a statement); who writes runs; each statement's mark belongs to a statement that writes; a list of journals
//! exists only while committing.
//!
//! It does not know what statements do, and not how a file commits: that is the pager's.

mod commit;
mod savepoint;
mod statement;

pub(crate) use statement::{Outcome, RowCounts};

use iolite_base::Result;
use iolite_btree::Btree;
use iolite_ext::{ChangeListener, Participant, RowChange};
use iolite_os::Vfs;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// What a transaction asks of the connection that it belongs to.
pub(crate) trait Owner {
    /// The trees of all databases that have any.
    fn open_trees(&self) -> Vec<Btree>;
    /// Calls `f` with the number and the trees of each database that has any. `f` calls nobody's code.
    fn each_tree(&self, f: impl FnMut(usize, &Btree));
    /// The name of a database.
    fn database_name(&self, db: usize) -> Option<Rc<str>>;
    /// Where lists of journals are.
    fn vfs(&self) -> &dyn Vfs;
    /// Ends read transactions that nobody needs any more.
    fn end_reads(&self);
    /// Changes were taken back: what is known of schemas may no longer be so.
    fn check_schemas(&self);
    /// A statement has changed `own` rows, and with its triggers `total` that were not counted yet.
    fn count_rows(&self, own: i64, total: i64);
    /// No transaction is open, as far as those are concerned who share the connection's caches.
    fn conclude(&self);
}

/// See the drawing at the module's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Auto,
    Open,
    Committing,
}

/// A named savepoint.
struct Savepoint {
    name: Box<str>,
    /// The counter of deferred foreign keys when it was opened.
    deferred: i64,
    by_pragma: i64,
}

pub(crate) type WalHook = dyn Fn(&str, u32);

/// A participant, and how many savepoints it knows of.
#[derive(Clone)]
struct Member {
    participant: Rc<dyn Participant>,
    told: i32,
}

impl Member {
    fn is(&self, p: &Rc<dyn Participant>) -> bool {
        std::ptr::addr_eq(Rc::as_ptr(p), Rc::as_ptr(&self.participant))
    }
}

/// The transaction of a connection. See the module's head.
#[derive(Default)]
pub(crate) struct Transaction {
    state: Cell<State>,
    /// Open savepoints, outermost first.
    savepoints: RefCell<Vec<Savepoint>>,
    /// The first savepoint began the transaction: going back to it is going back to the beginning, and it needs no mark.
    savepoint_began: Cell<bool>,
    /// Marks of statements, above the named ones.
    statement_marks: Cell<usize>,
    /// Those of them whose statements have ended, while statements that began later go on: they lie below the marks of these,
    /// and stay until then.
    ended_marks: RefCell<Vec<usize>>,
    /// Rises when changes are taken back, all or to a savepoint: statements that were writing then stop.
    undone: Cell<u32>,
    /// Statements between their first step and their end.
    running: Cell<u32>,
    /// Those of them that write.
    writing: Cell<u32>,
    /// Those of them that have begun to read or write databases: trees must not be dropped under them.
    reading: Cell<u32>,
    /// How deep statements are in each other that the engine runs for itself; they commit nothing.
    nested: Cell<u32>,
    /// The transaction is another's to end: the write queue's.
    held: Cell<bool>,
    /// The list of journals of a commit that has begun and not ended.
    super_journal: RefCell<Option<PathBuf>>,
    /// `PRAGMA defer_foreign_keys`, until the transaction ends.
    defer_foreign_keys: Cell<bool>,
    /// Violations of deferred foreign keys that are still to be mended.
    deferred: Cell<i64>,
    /// How many of them count here only for `PRAGMA defer_foreign_keys`.
    by_pragma: Cell<i64>,
    participants: RefCell<Vec<Member>>,
    /// Participants are asked to write what they have kept back.
    syncing: Cell<bool>,
    /// How many statements are waiting for modules to destroy tables: what these drop is not read by them.
    destroying: Cell<u32>,
    /// How deep programs run, and calls of participants, in each other.
    stepping: Cell<u32>,
    listeners: RefCell<Vec<Rc<dyn ChangeListener>>>,
    /// Asked before each commit; `true` turns it into a rollback.
    commit_hook: RefCell<Option<Rc<dyn Fn() -> bool>>>,
    /// Called after each rollback.
    rollback_hook: RefCell<Option<Rc<dyn Fn()>>>,
    /// Called after each commit that a log has taken, with the database's name and the log's frames.
    wal_hook: RefCell<Option<Rc<WalHook>>>,
    /// It is there instead of automatic checkpoints.
    checkpointed_by_hook: Cell<bool>,
    /// Somebody but the trees is asked before a commit, or told of it: most commits look at this alone.
    watched: Cell<bool>,
}

/// Something counted that ends with this value, on whatever way.
#[must_use]
pub(crate) struct Counted<'t>(&'t Cell<u32>);

impl<'t> Counted<'t> {
    fn new(count: &'t Cell<u32>) -> Counted<'t> {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Transaction {
    /// Whether nobody has begun a transaction that must be ended.
    #[inline]
    pub fn is_autocommit(&self) -> bool {
        self.state.get() != State::Open
    }

    /// A transaction is open from now on.
    pub fn open(&self) {
        self.state.set(State::Open);
        self.check();
    }

    /// How many statements are running.
    #[inline]
    pub fn running(&self) -> u32 {
        self.running.get()
    }

    /// Whether a statement that writes is running.
    pub fn is_writing(&self) -> bool {
        self.writing.get() > 0
    }

    /// A statement has begun to read or write databases; it says so when it leaves.
    #[inline]
    pub fn note_reader(&self) {
        self.reading.set(self.reading.get() + 1);
    }

    /// As [`Transaction::note_reader`], for as long as the answer lives.
    pub fn reader(&self) -> Counted<'_> {
        Counted::new(&self.reading)
    }

    /// What runs while the answer lives is run by the engine for itself.
    pub fn nest(&self) -> Counted<'_> {
        Counted::new(&self.nested)
    }

    /// Whether the engine runs statements for itself.
    #[inline]
    pub fn is_nested(&self) -> bool {
        self.nested.get() > 0
    }

    /// Whether only the write queue may end the transaction.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }

    /// Says whether only the write queue may end the transaction.
    pub fn hold(&self, on: bool) {
        self.held.set(on);
    }

    /// A number that rises when changes are taken back under statements that write.
    #[inline]
    pub fn undone(&self) -> u32 {
        self.undone.get()
    }

    /// `PRAGMA defer_foreign_keys`.
    pub fn defer_foreign_keys(&self) -> &Cell<bool> {
        &self.defer_foreign_keys
    }

    /// How many violations of deferred foreign keys are to be mended before a commit.
    #[inline]
    pub fn deferred(&self) -> i64 {
        self.deferred.get()
    }

    /// Notes that so many of the violations count only for `PRAGMA defer_foreign_keys`.
    pub fn defer_by_pragma(&self, n: i64) {
        self.by_pragma.set(self.by_pragma.get() + n);
    }

    /// `PRAGMA defer_foreign_keys` is off: what counts only for it is forgotten, as on stock.
    pub fn forget_deferred_by_pragma(&self) {
        self.defer(-self.by_pragma.take());
    }

    /// Counts violations of deferred foreign keys: `n` more, or fewer.
    pub fn defer(&self, n: i64) {
        self.deferred.set(self.deferred.get() + n);
        self.check();
    }

    /// Takes a participant in, unless it takes part already.
    pub fn join(&self, p: &Rc<dyn Participant>) -> Result<()> {
        if self.is_autocommit() && !self.is_writing() {
            return Err(iolite_base::Error::new(
                iolite_base::Code::Misuse,
                "there is no transaction to join",
            ));
        }
        if self.participants.borrow().iter().any(|m| m.is(p)) {
            return Ok(());
        }
        p.begin()?;
        let depth = self.depth() as i32;
        self.participants.borrow_mut().push(Member { participant: p.clone(), told: depth });
        self.note_watched();
        self.check();
        if depth > 0 {
            let _calling = self.step();
            p.savepoint(depth - 1)?;
        }
        Ok(())
    }

    /// Takes in a participant that was made in the transaction, and knows so.
    pub fn join_made(&self, p: &Rc<dyn Participant>) {
        self.participants.borrow_mut().push(Member { participant: p.clone(), told: 0 });
        self.note_watched();
    }

    /// A participant is gone.
    pub fn quit(&self, p: &Rc<dyn Participant>) {
        self.participants.borrow_mut().retain(|m| !m.is(p));
        self.note_watched();
    }

    /// As far as participants are concerned, the transaction is taken back.
    pub fn abandon(&self) {
        self.dismiss().iter().for_each(|m| m.participant.rollback());
    }

    /// A module destroys a table while the answer lives.
    pub fn destroy(&self) -> Counted<'_> {
        Counted::new(&self.destroying)
    }

    /// Whether others than the statement that asks, and those that it runs for, are reading or writing.
    pub fn others_read(&self) -> bool {
        !self.is_nested() && self.reading.get() > self.destroying.get() + 1
    }

    /// A program runs, or a participant is called, while the answer lives.
    #[inline]
    pub fn step(&self) -> Counted<'_> {
        Counted::new(&self.stepping)
    }

    /// Whether one does.
    pub fn is_stepping(&self) -> bool {
        self.stepping.get() > 0
    }

    /// Whether participants write what they have kept back, before a commit.
    pub fn is_syncing(&self) -> bool {
        self.syncing.get()
    }

    /// Adds a listener, which hears of all transactions to come.
    pub fn listen(&self, l: Rc<dyn ChangeListener>) {
        self.listeners.borrow_mut().push(l);
        self.note_watched();
    }

    /// Whether there is any.
    #[inline]
    pub fn has_listeners(&self) -> bool {
        !self.listeners.borrow().is_empty()
    }

    /// Tells listeners of a changed row.
    pub fn row_changed(&self, change: RowChange, database: &str, table: &str, rowid: i64) {
        self.each_listener(|l| l.row_changed(change, database, table, rowid));
    }

    /// Sets what is asked before each commit; `true` turns it into a rollback.
    pub fn set_commit_hook(&self, f: Option<Rc<dyn Fn() -> bool>>) {
        *self.commit_hook.borrow_mut() = f;
        self.note_watched();
    }

    /// Sets what is called after each rollback.
    pub fn set_rollback_hook(&self, f: Option<Rc<dyn Fn()>>) {
        *self.rollback_hook.borrow_mut() = f;
    }

    /// Sets what is called after each commit that a log has taken.
    pub fn set_wal_hook(&self, f: Option<Rc<WalHook>>) {
        *self.wal_hook.borrow_mut() = f;
        self.note_watched();
    }

    /// Says whether the hook is there instead of automatic checkpoints, and answers whether it was.
    pub fn set_checkpointed_by_hook(&self, is: bool) -> bool {
        self.checkpointed_by_hook.replace(is)
    }

    fn note_watched(&self) {
        let hooks = self.commit_hook.borrow().is_some() || self.wal_hook.borrow().is_some();
        let others = !self.participants.borrow().is_empty() || !self.listeners.borrow().is_empty();
        self.watched.set(hooks || others);
    }

    /// Those who took part; nobody does any more.
    fn dismiss(&self) -> Vec<Member> {
        if self.participants.borrow().is_empty() {
            return Vec::new();
        }
        let all = self.participants.take();
        self.note_watched();
        all
    }

    /// Those who take part now: called without a borrow, since they may call back.
    fn each_participant(&self, f: impl FnMut(&Member) -> Result<()>) -> Result<()> {
        if self.participants.borrow().is_empty() {
            return Ok(());
        }
        let _calling = self.step();
        let all = self.participants.borrow().clone();
        all.iter().try_for_each(f)
    }

    /// Tells participants of a new savepoint; while they write what they have kept back, they hear of none.
    fn tell_savepoint(&self, n: usize) -> Result<()> {
        if self.participants.borrow().is_empty() || self.syncing.get() {
            return Ok(());
        }
        self.participants.borrow_mut().iter_mut().for_each(|m| m.told = n as i32 + 1);
        self.each_participant(|m| m.participant.savepoint(n as i32))
    }

    /// Tells those who know of savepoint `n`, or of one inside it.
    fn tell_marked(&self, n: i32, f: impl Fn(&dyn Participant, i32) -> Result<()>) -> Result<()> {
        if self.syncing.get() {
            return Ok(());
        }
        self.each_participant(|m| if m.told > n { f(&*m.participant, n) } else { Ok(()) })
    }

    fn each_listener(&self, f: impl Fn(&dyn ChangeListener)) {
        if self.listeners.borrow().is_empty() {
            return;
        }
        let all = self.listeners.borrow().clone();
        all.iter().for_each(|l| f(&**l));
    }

    /// The state after the end: whatever belonged to the transaction is gone.
    fn end(&self, c: &impl Owner) {
        if !self.savepoints.borrow().is_empty() {
            // Databases that were not written to have heard of them, too.
            for b in c.open_trees() {
                let _ = b.savepoint_release(0);
            }
            self.savepoints.borrow_mut().clear();
        }
        self.savepoint_began.set(false);
        self.defer_foreign_keys.set(false);
        self.deferred.set(0);
        self.by_pragma.set(0);
        self.state.set(State::Auto);
    }

    /// What the module's head says. Called after each change, in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let state = self.state.get();
        let named = self.savepoints.borrow().len();
        let somewhere = state != State::Auto || self.writing.get() > 0;
        assert!(named == 0 || state != State::Auto, "a savepoint is in a transaction");
        assert!(!self.savepoint_began.get() || named > 0, "the savepoint that began is the first one");
        assert!(self.writing.get() <= self.running.get(), "who writes runs");
        assert!(
            self.statement_marks.get() <= self.writing.get() as usize + self.ended_marks.borrow().len(),
            "a mark is of a statement that writes"
        );
        assert!(somewhere || self.participants.borrow().is_empty(), "participants are in a transaction");
        assert!(somewhere || self.deferred.get() == 0, "the counter counts in a transaction");
        assert!(self.super_journal.borrow().is_none() || state == State::Committing, "a list is of a commit");
    }
}

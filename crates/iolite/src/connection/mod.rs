//! A connection: databases, catalog, functions, settings, counters.
//!
//! All state is in cells: user code called from a statement may come back to the same connection. No borrow is held
//! across such a call. A connection and its statements live on one thread, or move to another as a whole
//! (`api/connection.rs`).
//!
//! Here it is opened, asked and closed. `inner` is what it consists of, `handlers` who is told or asked of what it does,
//! `registry` the functions, collating sequences and modules that it knows.

mod handlers;
mod inner;
mod owner;
mod registry;
#[cfg(test)]
mod transaction_tests;

pub(crate) use inner::{Attached, Inner};

use crate::open::{OpenFlags, Sharing, target};
use crate::settings::{Settings, Switch};
use crate::txn::Transaction;
use iolite_base::{Encoding, Error, Limit, Result};
use iolite_btree::{Btree, Caches, CheckpointMode, CheckpointResult, LeaseTerms, Member, TxnState};
use iolite_catalog::{Catalog, Schema};
use iolite_os::Vfs;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Given a database's name, its pages, its free ones and the bytes of each, answers how many of the free ones are to go.
pub type VacuumPages = Rc<dyn Fn(&str, u32, u32, u32) -> u32>;
/// Told of what is allowed and may be a mistake: a code, and who makes the text.
pub type Log = fn(iolite_base::Code, &dyn Fn() -> String);
/// Told the text of a trigger's statement, as a comment, when it begins.
pub type Tracer = Rc<dyn Fn(&str)>;

/// A connection to a database and to those attached beside it.
#[derive(Clone)]
pub struct Connection(pub(crate) Rc<Inner>);

impl Connection {
    /// Reads a switch; sets it if `on` is given. Answers what holds now.
    pub fn switch(&self, which: Switch, on: Option<bool>) -> bool {
        let cell = self.0.settings.switch(which);
        if let Some(on) = on
            && cell.replace(on) != on
        {
            self.0.expire_statements();
        }
        if which == Switch::WritableSchema {
            // A database that is being worked with goes on as it is.
            let _ = self.0.settle_salvaging();
        }
        cell.get()
    }

    /// How many significant digits reals have as texts while [`iolite_value::num::Shown`] says so. Up to 3 leave it as it
    /// is, and there are 23 at the most.
    pub fn real_digits(&self, digits: i32) -> i32 {
        let cell = &self.0.settings.real_digits;
        let digits = if digits > 3 { digits.min(23) } else { cell.get() };
        if cell.replace(digits) != digits {
            self.0.expire_statements();
        }
        digits
    }

    /// Opens a database file, creating it if it is missing. An empty name or `:memory:` is a private transient one.
    /// Large queries use all cores (`PRAGMA threads`), as in one that is opened with flags only when asked to.
    pub fn open(name: &str) -> Result<Connection> {
        let c = Connection::open_with(name, OpenFlags::default())?;
        c.tune()?;
        Ok(c)
    }

    /// The settings of [`Connection::open`].
    pub(crate) fn tune(&self) -> Result<()> {
        self.0.settings.threads.set(crate::settings::cores());
        Ok(())
    }

    /// For how long read locks on a log are kept after a statement, in milliseconds; 0: not at all.
    pub fn lock_lease(&self, ms: u32) -> Result<()> {
        let terms = LeaseTerms::from_the_first(ms);
        self.0.settings.lock_lease.set(terms);
        self.0.open_trees().iter().try_for_each(|b| b.set_lock_lease(terms))
    }

    /// Whether checkpoints after a commit may be left to a thread of this process (`PRAGMA checkpoint_thread`).
    pub fn checkpoint_thread(&self, on: bool) -> Result<()> {
        self.0.settings.checkpoint_thread.set(on);
        self.0.open_trees().iter().try_for_each(|b| b.set_checkpoint_thread(on))
    }

    /// A private database in memory.
    pub fn open_in_memory() -> Result<Connection> {
        Connection::open(":memory:")
    }

    /// Opens a database as `flags` say.
    pub fn open_with(name: &str, flags: OpenFlags) -> Result<Connection> {
        Connection::open_interruptible(name.as_bytes(), flags, Arc::default(), None)
    }

    /// Opens a database on a VFS of one's own.
    pub fn open_on(vfs: Arc<dyn Vfs>, name: &str, flags: OpenFlags) -> Result<Connection> {
        Connection::open_in(vfs, name.as_bytes(), flags, Arc::default(), None)
    }

    /// As [`Connection::open_with`], for a name in the system's bytes and with the flag by which other threads interrupt
    /// statements, which may outlive the connection. It shares the caches of `caches` where its flags or a URI say so.
    pub fn open_interruptible(
        name: &[u8],
        flags: OpenFlags,
        interrupt: Arc<AtomicBool>,
        caches: Option<&Caches>,
    ) -> Result<Connection> {
        let vfs = iolite_os::vfs_named(None).ok_or_else(|| Error::sql("no such vfs: "))?;
        Connection::open_in(vfs, name, flags, interrupt, caches)
    }

    /// Its part in shared caches, if it shares any.
    pub fn member(&self) -> Option<Member> {
        self.0.sharing.as_ref().map(|s| s.member.clone())
    }

    /// As [`Connection::open_interruptible`], on a VFS.
    pub fn open_in(
        vfs: Arc<dyn Vfs>,
        name: &[u8],
        flags: OpenFlags,
        interrupt: Arc<AtomicBool>,
        caches: Option<&Caches>,
    ) -> Result<Connection> {
        iolite_sql::watch_stack(iolite_os::has_stack);
        let t = target(name, flags, &vfs)?;
        let sharing = caches.map(|c| Sharing { caches: c.clone(), member: c.member() });
        let shared = if sharing.is_some() { t.cache_name()? } else { t.shared.clone() };
        let btree = t.open(sharing.as_ref())?;
        let main = Attached { shared, ..Attached::new("main", Some(btree.clone())) };
        let temp = Attached::new("temp", None);
        let schemas = vec![Rc::new(Schema::new("main")), Rc::new(Schema::new("temp"))];
        let mut registry = crate::builtin::registry();
        registry.set_builtin_modules(crate::builtin::MODULES);
        let inner = Rc::new_cyclic(|own| Inner {
            own: own.clone(),
            vfs: t.others,
            vtabs: crate::vtabs::Tables::default(),
            open_flags: flags,
            sharing,
            databases: RefCell::new(vec![main, temp]),
            catalog: RefCell::new(Rc::new(Catalog { schemas })),
            registry: RefCell::new(Rc::new(registry)),
            limits: RefCell::default(),
            generations: RefCell::new(Rc::new(vec![0, 0])),
            expired: Cell::new(0),
            settings: Settings::default(),
            txn: Transaction::default(),
            last_rowid: Cell::new(0),
            changes: Cell::new(0),
            total_changes: Cell::new(0),
            interrupt,
            opener: Cell::new(0),
            statement_time: Cell::new(0),
            progress: RefCell::new(None),
            statements: RefCell::new(None),
            log: Cell::new(None),
            collations_asked_for: Cell::new(false),
            progress_every: Cell::new(0),
            uncounted: Cell::new(0),
            update_hook: RefCell::new(None),
            preupdate: crate::preupdate::Listeners::default(),
            busy: RefCell::new(None),
            vacuum_pages: RefCell::default(),
            tracer: RefCell::default(),
            closed: Cell::new(false),
            watched: RefCell::default(),
            growth: crate::column_store::Growth::default(),
            overridden: RefCell::default(),
            column_runs: Cell::new(0),
            column_errors: Cell::new(0),
            profile: RefCell::new(None),
            cache_base: Cell::default(),
            spare_vm: Cell::default(),
            no_program: Rc::default(),
            plans: RefCell::default(),
            no_virtual: Cell::new(false),
            primary_codes: Cell::new(false),
            authorizer: RefCell::default(),
            random: RefCell::default(),
            vacuum_page_size: Cell::new(0),
            vacuum_reserved: Cell::new(None),
            vacuum_auto_vacuum: Cell::new(None),
        });
        inner.settle_housekeeping(&btree)?;
        Ok(Connection(inner))
    }

    /// Rows changed by the last INSERT, UPDATE or DELETE.
    pub fn changes(&self) -> i64 {
        self.0.changes.get()
    }

    /// How many arms of queries have run in columns on this connection.
    pub fn column_runs(&self) -> u64 {
        self.0.column_runs.get()
    }

    /// How many runs in columns have ended with an error of the engine, and were answered by loops instead (or, with `PRAGMA
    /// analytics = force`, failed): none, unless pages are damaged.
    pub fn column_errors(&self) -> u64 {
        self.0.column_errors.get()
    }

    /// Rows changed since the connection was opened.
    pub fn total_changes(&self) -> i64 {
        self.0.total_changes.get()
    }

    /// The rowid of the last INSERT.
    pub fn last_insert_rowid(&self) -> i64 {
        self.0.last_rowid.get()
    }

    /// Sets what [`Connection::last_insert_rowid`] answers.
    pub fn set_last_insert_rowid(&self, id: i64) {
        self.0.last_rowid.set(id);
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.0.txn.is_autocommit()
    }

    /// The state of the transaction on one database, or the highest of all.
    pub fn txn_state(&self, database: Option<&str>) -> Option<TxnState> {
        let dbs = self.0.databases.borrow();
        let mut best = None;
        for d in dbs.iter() {
            if database.is_none_or(|n| n.eq_ignore_ascii_case(&d.name)) {
                let s = d.btree.as_ref().map_or(TxnState::None, |b| b.txn_state());
                best = Some(best.map_or(s, |b: TxnState| b.max(s)));
            }
        }
        best
    }

    /// A handle by which another thread may interrupt a running statement.
    pub fn interrupt_handle(&self) -> Arc<AtomicBool> {
        self.0.interrupt.clone()
    }

    /// Makes running statements stop.
    pub fn interrupt(&self) {
        self.0.interrupt.store(true, Ordering::Relaxed);
    }

    /// Gives the main database another name; `main` stays one, too.
    pub fn rename_main(&self, name: &str) {
        self.0.databases.borrow_mut()[0].name = name.into();
        self.0.edit_schema(0, |s| s.name = name.into());
        self.0.expire_statements();
    }

    /// Remembers what the program that opened the connection knows it by: functions may ask ([`iolite_ext::Host::opener`]).
    pub fn set_opener(&self, opener: usize) {
        self.0.opener.set(opener);
    }

    /// Reads a limit; sets it if `value` is given. Answers the former value.
    pub fn limit(&self, which: Limit, value: Option<i32>) -> i32 {
        if value.is_some() {
            self.0.plans.borrow_mut().clear();
        }
        Rc::make_mut(&mut self.0.limits.borrow_mut()).set(which, value.unwrap_or(-1))
    }

    /// Copies the log of a database back into its file, or of all databases: then what is answered of the log is that of the
    /// first, and one that is busy does not keep the others from being copied.
    pub fn checkpoint(&self, database: Option<&str>, mode: CheckpointMode) -> Result<CheckpointResult> {
        let trees = match database {
            Some(name) => match self.0.catalog.borrow().database(name) {
                Some(at) => vec![self.0.btree_if_open(at)],
                None => return Err(Error::sql(format!("unknown database: {name}"))),
            },
            None => self.0.databases.borrow().iter().map(|d| d.btree.clone()).collect(),
        };
        let mut out = CheckpointResult { busy: false, log: -1, checkpointed: -1 };
        for (i, b) in trees.into_iter().enumerate() {
            let Some(b) = b else { continue };
            if b.txn_state() != TxnState::None {
                return Err(iolite_base::Code::Locked.into());
            }
            match b.checkpoint(mode) {
                Ok(r) => {
                    out.busy |= r.busy;
                    if i == 0 || database.is_some() {
                        (out.log, out.checkpointed) = (r.log, r.checkpointed);
                    }
                }
                Err(e) if e.code().primary() == iolite_base::Code::Busy => out.busy = true,
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }

    /// Writes the changed pages of open transactions, which stay open. `SQLITE_BUSY` if that was not possible everywhere.
    pub fn flush(&self) -> Result<()> {
        let trees = self.0.open_trees();
        let mut busy = Ok(());
        for b in trees {
            match b.flush() {
                Err(e) if e.code().primary() == iolite_base::Code::Busy => busy = Err(e),
                other => other?,
            }
        }
        busy
    }

    /// The trees of a database, for tools.
    pub fn btree(&self, database: &str) -> Result<Btree> {
        let at = self.0.database_number(database)?;
        self.0.btree_of(at)
    }

    /// The main database's encoding.
    pub fn encoding(&self) -> Encoding {
        self.0.encoding()
    }

    /// Whether there is something behind a database's name: `temp` is made when it is first needed.
    pub fn is_open(&self, database: &str) -> bool {
        self.0.database_number(database).is_ok_and(|at| self.0.btree_if_open(at).is_some())
    }

    /// The full name of a database's file, in the system's bytes; empty where no file is behind it.
    pub fn file_name(&self, database: &str) -> Result<Vec<u8>> {
        let at = self.0.database_number(database)?;
        Ok(self.0.databases.borrow().get(at).map(|d| d.file.clone()).unwrap_or_default())
    }

    /// The name of the database with this number, if there is one: 0 is `main`, 1 is `temp`.
    pub fn database_name(&self, number: usize) -> Option<Rc<str>> {
        self.0.databases.borrow().get(number).map(|d| d.name.clone())
    }

    /// Closes the connection; statements still running are ended.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

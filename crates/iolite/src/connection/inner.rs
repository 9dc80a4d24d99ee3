//! What a connection consists of.

use super::{Tracer, VacuumPages};
use crate::open::{OpenFlags, Sharing};
use crate::settings::Settings;
use crate::txn::Transaction;
use iolite_base::{Encoding, Error, Limits, Result};
use iolite_btree::{Btree, BusyHandler};
use iolite_catalog::Catalog;
use iolite_ext::{Registry, StatementList};
use iolite_os::Vfs;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One attached database.
pub(crate) struct Attached {
    pub name: Rc<str>,
    /// None: the temp database before its first use.
    pub btree: Option<Btree>,
    /// The full name of its file, in the system's bytes; empty for none.
    pub file: Vec<u8>,
    /// The name by which other connections share it, if it is in memory.
    pub shared: Option<Vec<u8>>,
    /// Its cache has a size that somebody asked for, or that its header names: later ones of headers do not count.
    pub cache_sized: Cell<bool>,
    /// How many backups read it or write it.
    pub backups: Rc<Cell<u32>>,
    /// How large it may become, where it was opened from an image.
    pub size_limit: Option<crate::memory::SizeLimit>,
    /// Columns derived from its tables.
    pub columns: crate::column_store::Columns,
}

impl Attached {
    /// A database under a name.
    pub fn new(name: &str, btree: Option<Btree>) -> Attached {
        Attached {
            name: name.into(),
            file: btree.as_ref().map(crate::open::file_of).unwrap_or_default(),
            btree,
            shared: None,
            cache_sized: Cell::new(false),
            backups: Rc::default(),
            size_limit: None,
            columns: Default::default(),
        }
    }
}

/// What a connection consists of.
pub(crate) struct Inner {
    /// This connection.
    pub own: std::rc::Weak<Inner>,
    pub vfs: Arc<dyn Vfs>,
    /// Its virtual tables.
    pub vtabs: crate::vtabs::Tables,
    /// As the connection was opened: databases attached later are opened likewise.
    pub open_flags: OpenFlags,
    /// Where it shares caches.
    pub sharing: Option<Sharing>,
    pub databases: RefCell<Vec<Attached>>,
    pub catalog: RefCell<Rc<Catalog>>,
    /// Behind a count: who compiles holds what there is, and borrows nothing while code of modules runs.
    pub registry: RefCell<Rc<Registry>>,
    pub limits: RefCell<Rc<Limits>>,
    /// Rises with each change of a database's schema in the catalog.
    pub generations: RefCell<Rc<Vec<u64>>>,
    /// How often all statements have expired, for what they depend on beside the schemas has changed.
    pub expired: Cell<u64>,
    pub settings: Settings,
    pub txn: Transaction,
    pub last_rowid: Cell<i64>,
    pub changes: Cell<i64>,
    pub total_changes: Cell<i64>,
    pub interrupt: Arc<AtomicBool>,
    /// What the program that opened the connection knows it by.
    pub opener: Cell<usize>,
    pub statement_time: Cell<i64>,
    pub progress: RefCell<Option<Rc<dyn Fn() -> bool>>>,
    /// Who lists the statements that were prepared on it.
    pub statements: RefCell<Option<Rc<dyn StatementList>>>,
    /// Somebody is asked for collating sequences that are missing: what names one fails at first.
    pub collations_asked_for: Cell<bool>,
    /// Told of what may be a mistake.
    pub log: Cell<Option<super::Log>>,
    /// At how many instructions of a program it is asked; 0: as often as is good.
    pub progress_every: Cell<u32>,
    /// What else was done since, in instructions that it stands for.
    pub uncounted: Cell<usize>,
    #[allow(clippy::type_complexity)]
    pub update_hook: RefCell<Option<Rc<dyn Fn(iolite_vdbe::RowChange, &str, &str, i64)>>>,
    /// Who is told of rows before they are changed.
    pub preupdate: crate::preupdate::Listeners,
    pub busy: RefCell<Option<BusyHandler>>,
    /// Asked how many free pages of a database go at a commit.
    pub vacuum_pages: RefCell<Option<VacuumPages>>,
    /// Told of the statements of triggers.
    pub tracer: RefCell<Option<Tracer>>,
    pub closed: Cell<bool>,
    /// Rows that handles of incremental access stand on.
    pub watched: RefCell<Vec<Rc<crate::watched::Watched>>>,
    pub growth: crate::column_store::Growth,
    /// Names of built-in functions that the user has replaced.
    pub overridden: RefCell<Vec<String>>,
    /// Arms of queries that ran in columns.
    pub column_runs: Cell<u64>,
    /// Runs in columns that ended with an error of the engine.
    pub column_errors: Cell<u64>,
    /// What EXPLAIN ANALYZE learns of the run: the number of a source, and what it tells.
    pub profile: RefCell<Option<Vec<(u32, String)>>>,
    /// What the page caches' counters said when they were set back.
    pub cache_base: Cell<iolite_btree::CacheStats>,
    /// The memory of a statement's machine for the next one, and the program that it holds meanwhile.
    pub spare_vm: Cell<Option<Box<iolite_vdbe::Vm>>>,
    pub no_program: Rc<iolite_bytecode::Program>,
    /// Programs by their text.
    pub plans: RefCell<crate::plans::Plans>,
    /// Statements that are compiled now may not name virtual tables.
    pub no_virtual: Cell<bool>,
    /// Statements of functions and modules fail with primary codes.
    pub primary_codes: Cell<bool>,
    /// Is asked for what statements do.
    pub authorizer: RefCell<Option<Rc<dyn iolite_ext::Authorizer>>>,
    /// What `random()` and new rowids are made of.
    pub random: RefCell<crate::random::Randomness>,
    /// The page size that the next VACUUM gives the file; 0: as it is.
    pub vacuum_page_size: Cell<u32>,
    /// Bytes at the end of each page that VACUUM of a database (by its number) sets aside.
    pub vacuum_reserved: Cell<Option<(usize, u8)>>,
    /// The auto-vacuum mode likewise.
    pub vacuum_auto_vacuum: Cell<Option<iolite_btree::AutoVacuum>>,
}

impl Inner {
    /// The number of the database with this name.
    pub fn database_number(&self, name: &str) -> Result<usize> {
        let at = self.catalog.borrow().database(name);
        at.ok_or_else(|| Error::sql(format!("unknown database {name}")))
    }

    /// The trees of a database; the temp database is made at its first use.
    pub fn btree_of(&self, db: usize) -> Result<Btree> {
        let mut dbs = self.databases.borrow_mut();
        let Some(d) = dbs.get_mut(db) else { return Err(iolite_base::Code::Internal.into()) };
        if let Some(b) = &d.btree {
            return Ok(b.clone());
        }
        let options = iolite_btree::OpenOptions {
            memory: self.settings.temp_store() == 2,
            page_size: 4096,
            ..Default::default()
        };
        let b = Btree::open(self.vfs.clone(), "", &options)?;
        b.set_encoding(self.catalog.borrow().schemas[0].encoding);
        d.btree = Some(b.clone());
        Ok(b)
    }

    /// Gives a database the settings that hold for all of the connection's.
    pub fn settle(&self, b: &Btree) -> Result<()> {
        b.set_encoding(self.encoding());
        match self.busy.borrow().clone() {
            Some(h) => b.set_busy_handler(Some(h))?,
            None => b.set_busy_timeout(self.settings.busy_timeout())?,
        }
        b.set_wal_autocheckpoint(self.settings.autocheckpoint());
        self.settle_housekeeping(b)?;
        if let Some(m) = self.settings.locking_mode() {
            b.set_locking_mode(m)?;
        }
        b.set_salvages(self.settings.writable_schema())?;
        b.set_large_value_direct(self.settings.large_value_direct())
    }

    /// Says whether files are read that are shorter than they say, as where the schema may be mended.
    pub fn settle_salvaging(&self) -> Result<()> {
        self.open_trees().iter().try_for_each(|b| b.set_salvages(self.settings.writable_schema()))
    }

    /// Says what a thread of the process may do for a database.
    pub fn settle_housekeeping(&self, b: &Btree) -> Result<()> {
        b.set_lock_lease(self.settings.lock_lease())?;
        b.set_checkpoint_thread(self.settings.checkpoint_thread())
    }

    /// Lets a database ask how many free pages go.
    pub fn settle_vacuum(&self, b: &Btree, name: &Rc<str>) {
        let ask = self.vacuum_pages.borrow().clone().map(|f| {
            let name = name.clone();
            Rc::new(move |size, free, page_size| f(&name, size, free, page_size)) as iolite_btree::VacuumPages
        });
        b.set_vacuum_pages(ask);
    }

    /// Begins to write to a database: the one way in, so that `PRAGMA query_only` holds for every write.
    pub fn begin_write(&self, b: &Btree, exclusive: bool) -> Result<()> {
        self.check_query_only()?;
        b.begin_write(exclusive)
    }

    /// An error while `PRAGMA query_only` is on.
    pub fn check_query_only(&self) -> Result<()> {
        if self.settings.query_only() { Err(iolite_base::Code::Readonly.into()) } else { Ok(()) }
    }

    /// The database's trees if they exist.
    pub fn btree_if_open(&self, db: usize) -> Option<Btree> {
        self.databases.borrow().get(db).and_then(|d| d.btree.clone())
    }

    /// Pages that were fetched from elsewhere than their database's cache.
    pub fn pages_read(&self) -> u64 {
        let databases = self.databases.borrow();
        databases.iter().filter_map(|d| d.btree.as_ref()).map(|b| b.cache_stats(false).misses).sum()
    }

    /// The main database's encoding.
    pub fn encoding(&self) -> Encoding {
        self.catalog.borrow().schemas[0].encoding
    }

    /// Makes all prepared statements compile anew before their next run.
    pub fn expire_statements(&self) {
        let mut generations = self.generations.borrow_mut();
        // The same for all: numbers of databases shift when one is detached, and must not meet an old generation.
        let next = generations.iter().max().map_or(1, |g| g + 1);
        Rc::make_mut(&mut generations).fill(next);
        drop(generations);
        self.expired.set(self.expired.get() + 1);
        self.plans.borrow_mut().clear();
    }

    /// Whether anybody is asked for what statements do.
    pub fn has_authorizer(&self) -> bool {
        self.authorizer.borrow().is_some()
    }

    /// Who is asked for the statement that is being compiled; nobody for the engine's own.
    pub fn asked_authorizer(&self) -> Option<Rc<dyn iolite_ext::Authorizer>> {
        if self.txn.is_nested() { None } else { self.authorizer.borrow().clone() }
    }

    /// What code generation needs to know.
    pub fn codegen_settings(&self) -> iolite_codegen::Settings {
        iolite_codegen::Settings {
            generations: self.generations.borrow().clone(),
            recursive_triggers: self.settings.recursive_triggers(),
            reverse_unordered: self.settings.reverse_unordered(),
            nested: self.txn.is_nested(),
            counts_rows: self.settings.count_changes() && !self.txn.is_nested(),
            most_instructions: 0,
        }
    }

    /// Closes all databases; an open transaction is taken back.
    pub fn close(&self) -> Result<()> {
        if self.closed.replace(true) {
            return Ok(());
        }
        if !self.txn.is_autocommit() {
            self.txn.rollback(self)?;
        }
        self.plans.borrow_mut().clear();
        self.vtabs.clear();
        let mut first = Ok(());
        for mut d in self.databases.borrow_mut().drain(..) {
            let columns = crate::column_store::closing(&mut d.columns, d.btree.as_ref());
            if let Some(b) = d.btree {
                let _ = b.set_no_checkpoint_on_close(self.settings.no_checkpoint_on_close());
                let r = b.close();
                if first.is_ok() {
                    first = r;
                }
            }
            if let Some(c) = columns {
                c.finish();
            }
        }
        first
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // An error while closing has nobody left to hear it; recovery at the next open sees to the rest.
        let _ = self.close();
    }
}

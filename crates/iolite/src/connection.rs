//! A connection: databases, catalog, functions, settings, counters.
//!
//! All state is in cells: user code called from a statement may come back to the same connection. No borrow is held
//! across such a call. A connection and its statements live on one thread, or move to another as a whole
//! (`api/connection.rs`).

use crate::open::{OpenFlags, Sharing, target};
use crate::statement::Statement;
use crate::txn::Transaction;
use iolite_base::{Encoding, Error, Limit, Limits, Result, raw_text};
use iolite_btree::{Btree, BusyHandler, Caches, CheckpointMode, CheckpointResult, Member, TxnState};
use iolite_catalog::{Catalog, Schema};
use iolite_codegen::Settings;
use iolite_ext::{
    BuiltinModules, ChangeListener, Function, Module, Participant, PreupdateListener, Registry, StatementList,
};
use iolite_os::Vfs;
use iolite_value::Collate;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Given a database's name, its pages, its free ones and the bytes of each, answers how many of the free ones are to go.
pub type VacuumPages = Rc<dyn Fn(&str, u32, u32, u32) -> u32>;
/// Told the text of a trigger's statement, as a comment, when it begins.
pub type Tracer = Rc<dyn Fn(&str)>;

/// A connection to a database and to those attached beside it.
#[derive(Clone)]
pub struct Connection(pub(crate) Rc<Inner>);

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
    pub columns: crate::columns::Columns,
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
    pub flags: Flags,
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
    /// At how many instructions of a program it is asked; 0: as often as is good.
    pub progress_every: Cell<u32>,
    #[allow(clippy::type_complexity)]
    pub update_hook: RefCell<Option<Rc<dyn Fn(iolite_vdbe::RowChange, &str, &str, i64)>>>,
    /// Who is told of rows before they are changed.
    pub preupdate: crate::preupdate::Listeners,
    pub busy: RefCell<Option<BusyHandler>>,
    pub busy_timeout: Cell<u32>,
    /// Asked how many free pages of a database go at a commit.
    pub vacuum_pages: RefCell<Option<VacuumPages>>,
    /// Told of the statements of triggers.
    pub tracer: RefCell<Option<Tracer>>,
    /// `PRAGMA lock_lease_ms`, for databases attached later.
    pub lock_lease: Cell<u32>,
    /// `PRAGMA checkpoint_thread`, for the same.
    pub checkpoint_thread: Cell<bool>,
    /// `PRAGMA large_value_direct`, for the same.
    pub large_value_direct: Cell<bool>,
    pub closed: Cell<bool>,
    /// Rows that handles of incremental access stand on.
    pub watched: RefCell<Vec<Rc<crate::watched::Watched>>>,
    pub growth: crate::columns::Growth,
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
    /// Is asked for what statements do.
    pub authorizer: RefCell<Option<Rc<dyn iolite_ext::Authorizer>>>,
    /// What `random()` and new rowids are made of.
    pub random: RefCell<crate::random::Randomness>,
    /// The page size that the next VACUUM gives the file; 0: as it is.
    pub vacuum_page_size: Cell<u32>,
    /// The auto-vacuum mode likewise.
    pub vacuum_auto_vacuum: Cell<Option<iolite_btree::AutoVacuum>>,
}

/// Settings made by PRAGMA that the catalog or programs depend on.
#[derive(Default)]
pub(crate) struct Flags {
    pub foreign_keys: Cell<bool>,
    /// Foreign keys have no actions for now.
    pub no_key_actions: Cell<bool>,
    pub recursive_triggers: Cell<bool>,
    pub ignore_checks: Cell<bool>,
    pub writable_schema: Cell<bool>,
    pub reverse_unordered: Cell<bool>,
    pub case_sensitive_like: Cell<bool>,
    pub count_changes: Cell<bool>,
    pub empty_result_callbacks: Cell<bool>,
    pub full_column_names: Cell<bool>,
    pub short_column_names: Cell<bool>,
    pub legacy_alter_table: Cell<bool>,
    pub query_only: Cell<bool>,
    pub trusted_schema: Cell<bool>,
    pub automatic_index: Cell<bool>,
    pub cell_size_check: Cell<bool>,
    pub checkpoint_fullfsync: Cell<bool>,
    pub fullfsync: Cell<bool>,
    pub read_uncommitted: Cell<bool>,
    pub temp_store: Cell<i64>,
    pub analysis_limit: Cell<i64>,
    /// `PRAGMA cache_spill`: the pages from which on they are written early; 0: never.
    pub cache_spill: Cell<i64>,
    /// `PRAGMA locking_mode` without the name of a database, if it was set.
    pub locking_mode: Cell<Option<iolite_btree::LockingMode>>,
    pub threads: Cell<i64>,
    /// Bytes that a sorter holds before it writes to a temporary file.
    pub sort_memory: Cell<i64>,
    /// `PRAGMA column_derivation`: whether columns of inner tables may be laid beside outer ones.
    pub column_derivation: Cell<bool>,
    /// `PRAGMA lookahead_filters`: whether joins ask Bloom filters first.
    pub lookahead_filters: Cell<bool>,
    pub dqs_dml: Cell<bool>,
    pub dqs_ddl: Cell<bool>,
    pub attach_create: Cell<bool>,
    pub attach_write: Cell<bool>,
    /// Switches that change nothing yet.
    pub remembered: [Cell<bool>; 5],
    pub triggers: Cell<bool>,
    pub views: Cell<bool>,
    pub stable_plans: Cell<bool>,
    /// What SQL alone could spoil the file with is ignored: a writable schema, no journal, another schema version.
    pub defensive: Cell<bool>,
    /// VACUUM leaves an empty database.
    pub reset_database: Cell<bool>,
    /// Closing leaves logs as they are.
    pub no_checkpoint_on_close: Cell<bool>,
    pub analytics: Cell<crate::columns::Analytics>,
}

/// A switch of a connection that is no pragma.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// What SQL alone could spoil the file with is ignored: a writable schema, no journal, another schema version.
    Defensive,
    /// VACUUM leaves an empty database.
    ResetDatabase,
    /// Closing the last connection leaves the log as it is.
    NoCheckpointOnClose,
    /// Words in double quotes that name nothing are strings.
    DoubleQuotedStrings,
    /// Triggers fire, those of the temp database in any case.
    Triggers,
    /// Views may be read, those of the temp database in any case.
    Views,
    /// The values of parameters do not change plans. They never do here: the switch is remembered.
    StablePlans,
    /// Words in double quotes that name nothing are strings also where a schema is defined.
    DoubleQuotedDefinitions,
    /// ATTACH may make a file.
    AttachCreate,
    /// What ATTACH opens may be written to.
    AttachWrite,
    /// Remembered: pointers as values of `fts3_tokenizer()`.
    Fts3Tokenizer,
    /// Remembered: plans of triggers in EXPLAIN QUERY PLAN.
    TriggerPlans,
    /// Remembered: the oldest file format for new databases.
    LegacyFormat,
    /// Remembered: counters of loops.
    ScanStatus,
    /// Remembered: comments in SQL.
    Comments,
    /// `PRAGMA foreign_keys`, also within a transaction.
    ForeignKeys,
    /// `PRAGMA writable_schema`.
    WritableSchema,
    /// `PRAGMA legacy_alter_table`.
    LegacyAlterTable,
    /// `PRAGMA trusted_schema`.
    TrustedSchema,
    /// `PRAGMA reverse_unordered_selects`.
    ReverseUnordered,
}

impl Connection {
    /// Reads a switch; sets it if `on` is given. Answers what holds now.
    pub fn switch(&self, which: Switch, on: Option<bool>) -> bool {
        let f = &self.0.flags;
        let cell = match which {
            Switch::Defensive => &f.defensive,
            Switch::ResetDatabase => &f.reset_database,
            Switch::NoCheckpointOnClose => &f.no_checkpoint_on_close,
            Switch::DoubleQuotedStrings => &f.dqs_dml,
            Switch::Triggers => &f.triggers,
            Switch::Views => &f.views,
            Switch::StablePlans => &f.stable_plans,
            Switch::DoubleQuotedDefinitions => &f.dqs_ddl,
            Switch::AttachCreate => &f.attach_create,
            Switch::AttachWrite => &f.attach_write,
            Switch::Fts3Tokenizer => &f.remembered[0],
            Switch::TriggerPlans => &f.remembered[1],
            Switch::LegacyFormat => &f.remembered[2],
            Switch::ScanStatus => &f.remembered[3],
            Switch::Comments => &f.remembered[4],
            Switch::ForeignKeys => &f.foreign_keys,
            Switch::WritableSchema => &f.writable_schema,
            Switch::LegacyAlterTable => &f.legacy_alter_table,
            Switch::TrustedSchema => &f.trusted_schema,
            Switch::ReverseUnordered => &f.reverse_unordered,
        };
        if let Some(on) = on
            && cell.replace(on) != on
        {
            self.0.expire_statements();
        }
        cell.get()
    }

    /// Opens a database file, creating it if it is missing. An empty name or `:memory:` is a private transient one.
    /// It keeps its read lock for some milliseconds after a statement (`PRAGMA lock_lease_ms`), leaves checkpoints to a
    /// thread (`PRAGMA checkpoint_thread`), and large queries use all cores (`PRAGMA threads`), as one that is opened with flags does only when asked to.
    pub fn open(name: &str) -> Result<Connection> {
        let c = Connection::open_with(name, OpenFlags::default())?;
        c.tune()?;
        Ok(c)
    }

    /// The settings of [`Connection::open`].
    pub(crate) fn tune(&self) -> Result<()> {
        self.lock_lease(10)?;
        self.checkpoint_thread(true)?;
        self.0.flags.threads.set(crate::columns::cores());
        Ok(())
    }

    /// For how long read locks on a log are kept after a statement, in milliseconds; 0: not at all.
    pub fn lock_lease(&self, ms: u32) -> Result<()> {
        self.0.lock_lease.set(ms);
        let trees: Vec<Btree> = self.0.databases.borrow().iter().filter_map(|d| d.btree.clone()).collect();
        trees.iter().try_for_each(|b| b.set_lock_lease(ms))
    }

    /// Whether checkpoints after a commit may be left to a thread of this process (`PRAGMA checkpoint_thread`).
    pub fn checkpoint_thread(&self, on: bool) -> Result<()> {
        self.0.checkpoint_thread.set(on);
        let trees: Vec<Btree> = self.0.databases.borrow().iter().filter_map(|d| d.btree.clone()).collect();
        trees.iter().try_for_each(|b| b.set_checkpoint_thread(on))
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
        Connection::open_new(vfs, name.as_bytes(), flags, Arc::default(), None)
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
        Connection::open_new(vfs, name, flags, interrupt, caches)
    }

    /// As [`Connection::open_interruptible`], on a VFS.
    pub fn open_in(
        vfs: Arc<dyn Vfs>,
        name: &[u8],
        flags: OpenFlags,
        interrupt: Arc<AtomicBool>,
        caches: Option<&Caches>,
    ) -> Result<Connection> {
        Connection::open_new(vfs, name, flags, interrupt, caches)
    }

    /// Says who lists the statements that were prepared on it.
    pub fn set_statement_list(&self, list: Option<Rc<dyn StatementList>>) {
        *self.0.statements.borrow_mut() = list;
    }

    /// Its part in shared caches, if it shares any.
    pub fn member(&self) -> Option<Member> {
        self.0.sharing.as_ref().map(|s| s.member.clone())
    }

    fn open_new(
        vfs: Arc<dyn Vfs>,
        name: &[u8],
        flags: OpenFlags,
        interrupt: Arc<AtomicBool>,
        caches: Option<&Caches>,
    ) -> Result<Connection> {
        let t = target(name, flags, &vfs)?;
        let sharing = caches.map(|c| Sharing { caches: c.clone(), member: c.member() });
        let shared = if sharing.is_some() { t.cache_name()? } else { t.shared.clone() };
        let btree = t.open(sharing.as_ref())?;
        let f = Flags::default();
        f.short_column_names.set(true);
        f.trusted_schema.set(true);
        f.sort_memory.set(64 << 20);
        f.cache_spill.set(1);
        f.automatic_index.set(true);
        f.column_derivation.set(true);
        f.lookahead_filters.set(true);
        f.dqs_dml.set(true);
        f.dqs_ddl.set(true);
        f.attach_create.set(true);
        f.attach_write.set(true);
        f.remembered[3].set(true);
        f.remembered[4].set(true);
        f.triggers.set(true);
        f.views.set(true);
        let main = Attached { shared, ..Attached::new("main", Some(btree)) };
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
            flags: f,
            txn: Transaction::default(),
            last_rowid: Cell::new(0),
            changes: Cell::new(0),
            total_changes: Cell::new(0),
            interrupt,
            opener: Cell::new(0),
            statement_time: Cell::new(0),
            progress: RefCell::new(None),
            statements: RefCell::new(None),
            progress_every: Cell::new(0),
            update_hook: RefCell::new(None),
            preupdate: crate::preupdate::Listeners::default(),
            busy: RefCell::new(None),
            busy_timeout: Cell::new(0),
            vacuum_pages: RefCell::default(),
            tracer: RefCell::default(),
            lock_lease: Cell::new(0),
            checkpoint_thread: Cell::new(false),
            large_value_direct: Cell::new(false),
            closed: Cell::new(false),
            watched: RefCell::default(),
            growth: crate::columns::Growth::default(),
            overridden: RefCell::default(),
            column_runs: Cell::new(0),
            column_errors: Cell::new(0),
            profile: RefCell::new(None),
            cache_base: Cell::default(),
            spare_vm: Cell::default(),
            no_program: Rc::default(),
            plans: RefCell::default(),
            no_virtual: Cell::new(false),
            authorizer: RefCell::default(),
            random: RefCell::default(),
            vacuum_page_size: Cell::new(0),
            vacuum_auto_vacuum: Cell::new(None),
        });
        Ok(Connection(inner))
    }

    /// Prepares the first statement of `sql`; answers it and the text behind it. `None` if there is only space.
    pub fn prepare_next<'s>(&self, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
        // What the engine runs for itself carries bytes on purpose.
        if raw_text::may_carry(sql.as_bytes()) && !self.0.txn.is_nested() {
            let prepared = self.prepare_bytes(sql.as_bytes())?;
            return Ok(prepared.map(|(s, used)| (s, sql.get(used..).unwrap_or_default())));
        }
        crate::run::prepare_next(self, sql)
    }

    /// As [`Connection::prepare_next`], for bytes that need not be UTF-8: literals and names keep theirs. Answers the
    /// statement and the length of its text.
    pub fn prepare_bytes(&self, sql: &[u8]) -> Result<Option<(Statement, usize)>> {
        let text = raw_text::encode(sql);
        // An offset into the text as it was given.
        let given = |at: usize| text.get(..at).map_or(at, |t| raw_text::decode(t).len());
        match crate::run::prepare_next(self, &text) {
            Ok(None) => Ok(None),
            Ok(Some((s, rest))) => Ok(Some((s, given(text.len() - rest.len())))),
            Err(e) => match e.offset() {
                Some(at) if matches!(text, std::borrow::Cow::Owned(_)) => {
                    Err(Error::new(e.code(), e.message()).at(given(at as usize) as u32))
                }
                _ => Err(e),
            },
        }
    }

    /// Prepares a text of exactly one statement; `SQLITE_MISUSE` if there are several. The program of a text that was prepared lately is used again
    /// (`PRAGMA plan_cache` says how many are kept).
    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        match self.prepare_next(sql)? {
            Some((s, rest)) => {
                // What runs half of a text says nothing of the other half.
                if !rest.is_empty() && iolite_sql::parse_next(rest, &self.0.limits.borrow())?.is_some() {
                    return Err(Error::new(
                        iolite_base::Code::Misuse,
                        "the text has more than one statement",
                    ));
                }
                Ok(s)
            }
            None => Err(Error::new(iolite_base::Code::Misuse, "not a statement")),
        }
    }

    /// Runs all statements of a text, dropping their rows.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        let mut rest = sql;
        while let Some((mut s, tail)) = self.prepare_next(rest)? {
            while s.step()? == crate::statement::Step::Row {}
            s.reset()?;
            rest = tail;
        }
        Ok(())
    }

    /// Runs one statement with parameters; answers how many rows it changed.
    pub fn execute(&self, sql: &str, params: &[iolite_value::Value]) -> Result<i64> {
        let mut s = self.prepare(sql)?;
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        while s.step()? == crate::statement::Step::Row {}
        s.reset()?;
        Ok(self.changes())
    }

    /// All rows of a query.
    pub fn query(&self, sql: &str, params: &[iolite_value::Value]) -> Result<Vec<Vec<iolite_value::Value>>> {
        let mut s = self.prepare(sql)?;
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        let mut out = Vec::new();
        while s.step()? == crate::statement::Step::Row {
            out.push(s.row().to_vec());
        }
        s.reset()?;
        Ok(out)
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

    /// Waits up to `ms` milliseconds for locks.
    pub fn busy_timeout(&self, ms: u32) -> Result<()> {
        self.0.busy_timeout.set(ms);
        *self.0.busy.borrow_mut() = None;
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                b.set_busy_timeout(ms)?;
            }
        }
        Ok(())
    }

    /// Calls `handler` with the number of tries so far while a lock is held by others; `false` gives up.
    pub fn busy_handler(&self, handler: Option<BusyHandler>) -> Result<()> {
        self.0.busy_timeout.set(0);
        *self.0.busy.borrow_mut() = handler.clone();
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                b.set_busy_handler(handler.clone())?;
            }
        }
        Ok(())
    }

    /// Sets who is asked, before a commit to a database with `auto_vacuum=full`, how many free pages go.
    pub fn vacuum_pages(&self, ask: Option<VacuumPages>) {
        *self.0.vacuum_pages.borrow_mut() = ask;
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                self.0.settle_vacuum(b, &d.name);
            }
        }
    }

    /// Sets who is told of the statements of triggers.
    pub fn trace_triggers(&self, tell: Option<Tracer>) {
        *self.0.tracer.borrow_mut() = tell;
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

    /// A module by its name.
    pub fn module(&self, name: &str) -> Option<Rc<dyn Module>> {
        self.0.registry.borrow().module(name)
    }

    /// Asks the handler that was set, or the time limit, whether a lock is worth another attempt, and waits meanwhile.
    pub fn ask_busy_handler(&self, attempts: u32) -> bool {
        let handler = self.0.busy.borrow().clone();
        match handler.or_else(|| self.btree("main").ok()?.busy_handler()) {
            Some(handler) => handler(attempts),
            None => false,
        }
    }

    /// Calls `f` now and then during long statements; `true` interrupts.
    pub fn progress_handler(&self, f: Option<Rc<dyn Fn() -> bool>>) {
        self.progress_handler_every(0, f);
    }

    /// As [`Connection::progress_handler`], about once in `instructions` of a program; 0: as often as is good.
    pub fn progress_handler_every(&self, instructions: u32, f: Option<Rc<dyn Fn() -> bool>>) {
        self.0.progress_every.set(if f.is_none() { 0 } else { instructions });
        *self.0.progress.borrow_mut() = f;
    }

    /// Calls `f` before each commit; `true` turns it into a rollback.
    pub fn commit_hook(&self, f: Option<Rc<dyn Fn() -> bool>>) {
        self.0.txn.set_commit_hook(f);
    }

    /// Calls `f` after each rollback.
    pub fn rollback_hook(&self, f: Option<Rc<dyn Fn()>>) {
        self.0.txn.set_rollback_hook(f);
    }

    /// Takes something that keeps changes of its own into the transaction. `SQLITE_MISUSE` if there is none.
    pub fn join_transaction(&self, p: &Rc<dyn Participant>) -> Result<()> {
        self.0.txn.join(p)
    }

    /// Counts violations of deferred foreign keys, `n` more or fewer. Above zero, nothing is committed.
    pub fn count_deferred_violations(&self, n: i64) {
        self.0.txn.defer(n);
    }

    /// Tells `l` from now on what becomes of transactions.
    pub fn add_change_listener(&self, l: Rc<dyn ChangeListener>) {
        self.0.txn.listen(l);
    }

    /// Calls `f` after each commit that a log has taken, with the name of the database and the log's frames.
    pub fn wal_hook(&self, f: Option<Rc<crate::txn::WalHook>>) {
        self.0.txn.set_wal_hook(f);
    }

    /// Calls `f` before each change of a row of a table, but not of the schema and other tables of the engine's own.
    pub fn preupdate_hook(&self, f: Option<Rc<crate::preupdate::PreupdateHook>>) {
        self.0.preupdate.set_hook(f);
    }

    /// Tells `l` of each change of a row of a table before it is made, until it is removed. The statistics of ANALYZE are such
    /// rows, other tables of the engine's own are not.
    pub fn add_preupdate_listener(&self, l: Rc<dyn PreupdateListener>) {
        self.0.preupdate.add(l);
    }

    /// Tells `l` of no more changes.
    pub fn remove_preupdate_listener(&self, l: &Rc<dyn PreupdateListener>) {
        self.0.preupdate.remove(l);
    }

    /// The connection as modules see it.
    pub fn host(&self) -> Rc<dyn iolite_ext::Host> {
        self.0.clone()
    }

    /// Calls `f` for each changed row with database, table and rowid.
    #[allow(clippy::type_complexity)]
    pub fn update_hook(&self, f: Option<Rc<dyn Fn(iolite_vdbe::RowChange, &str, &str, i64)>>) {
        *self.0.update_hook.borrow_mut() = f;
    }

    /// Registers a function.
    pub fn create_function(&self, f: Function) {
        // A new one makes no program wrong, but it may be one that a text could not be compiled without.
        let replaces = self.has_function(&f.name, f.args);
        self.0.overridden.borrow_mut().push(f.name.to_ascii_lowercase());
        Rc::make_mut(&mut self.0.registry.borrow_mut()).add_function(f);
        if replaces {
            self.0.expire_statements();
        }
    }

    /// Removes a function.
    pub fn remove_function(&self, name: &str, args: i16) {
        Rc::make_mut(&mut self.0.registry.borrow_mut()).remove_function(name, args);
        self.0.expire_statements();
    }

    /// Whether there is a function of this name for just this number of arguments, -1: any.
    pub fn has_function(&self, name: &str, args: i16) -> bool {
        let registry = self.0.registry.borrow().clone();
        registry.functions().iter().any(|f| f.args == args && f.name.eq_ignore_ascii_case(name))
    }

    /// Whether there is a collating sequence of this name.
    pub fn has_collation(&self, name: &str) -> bool {
        let registry = self.0.registry.borrow().clone();
        registry.collation_names().iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    /// Registers a collating sequence, or removes it.
    pub fn create_collation(&self, name: &str, c: Option<Rc<dyn Collate>>) {
        let replaces = self.has_collation(name);
        Rc::make_mut(&mut self.0.registry.borrow_mut()).set_collation(name, c);
        if replaces {
            self.0.expire_statements();
        }
    }

    /// Registers a virtual table module. Tables of a former one of this name stay what they are.
    pub fn create_module(&self, name: &str, m: Rc<dyn Module>) {
        self.change_modules(|r| r.add_module(name, m));
    }

    /// Removes a virtual table module that was registered.
    pub fn remove_module(&self, name: &str) {
        self.change_modules(|r| r.remove_module(name));
    }

    /// Removes the virtual table modules that are not in the list.
    pub fn retain_modules(&self, keep: &[String]) {
        self.change_modules(|r| r.retain_modules(keep));
    }

    /// Sets the modules that are there without being registered.
    pub fn set_builtin_modules(&self, modules: BuiltinModules) {
        Rc::make_mut(&mut self.0.registry.borrow_mut()).set_builtin_modules(modules);
    }

    fn change_modules(&self, f: impl FnOnce(&mut Registry)) {
        let before = self.0.registry.borrow().clone();
        let mut registry = (*before).clone();
        f(&mut registry);
        *self.0.registry.borrow_mut() = Rc::new(registry);
        self.0.expire_statements();
        self.0.sweep_virtual();
        // Modules that are gone run code of their own now: nothing is borrowed.
        drop(before);
    }

    /// Disconnects all virtual tables, as if all that they do in a transaction were taken back. Those that are used after all
    /// are connected anew.
    pub fn forget_virtual_tables(&self) {
        self.0.forget_virtual();
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
        let trees: Vec<Btree> = self.0.databases.borrow().iter().filter_map(|d| d.btree.clone()).collect();
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

    /// Has somebody asked for what statements do when they are compiled; all are compiled anew.
    pub fn set_authorizer(&self, a: Option<Rc<dyn iolite_ext::Authorizer>>) {
        let asks = a.is_some();
        let former = std::mem::replace(&mut *self.0.authorizer.borrow_mut(), a);
        drop(former);
        if asks {
            self.0.expire_statements();
        }
    }

    /// Runs `f`, during which statements that name virtual tables are not compiled.
    pub fn without_virtual_tables<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.0.no_virtual.replace(true);
        let out = f();
        self.0.no_virtual.set(before);
        out
    }

    /// Runs `f`, during which nobody is asked for what statements do: they are none of the user's.
    pub fn unasked<T>(&self, f: impl FnOnce(&Connection) -> T) -> T {
        let kept = self.0.authorizer.take();
        let out = f(self);
        *self.0.authorizer.borrow_mut() = kept;
        out
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
            memory: self.flags.temp_store.get() == 2,
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
            None => b.set_busy_timeout(self.busy_timeout.get())?,
        }
        b.set_lock_lease(self.lock_lease.get())?;
        b.set_checkpoint_thread(self.checkpoint_thread.get())?;
        if let Some(m) = self.flags.locking_mode.get() {
            b.set_locking_mode(m)?;
        }
        b.set_large_value_direct(self.large_value_direct.get())
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
        if self.flags.query_only.get() { Err(iolite_base::Code::Readonly.into()) } else { Ok(()) }
    }

    /// The database's trees if they exist.
    pub fn btree_if_open(&self, db: usize) -> Option<Btree> {
        self.databases.borrow().get(db).and_then(|d| d.btree.clone())
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
    pub fn settings(&self) -> Settings {
        Settings {
            generations: self.generations.borrow().clone(),
            recursive_triggers: self.flags.recursive_triggers.get(),
            reverse_unordered: self.flags.reverse_unordered.get(),
            nested: self.txn.is_nested(),
            counts_rows: self.flags.count_changes.get() && !self.txn.is_nested(),
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
            let columns = crate::columns::closing(&mut d);
            if let Some(b) = d.btree {
                let _ = b.set_no_checkpoint_on_close(self.flags.no_checkpoint_on_close.get());
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

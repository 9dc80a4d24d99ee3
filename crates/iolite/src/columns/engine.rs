//! The columnar engine, joined to connections: the door that code generation asks, and what a run in columns needs.

use super::{Analytics, ColumnCounters, MOST_THREADS};
use crate::connection::{Attached, Inner};
use iolite_base::{Code, Encoding, Pgno, Result};
use iolite_btree::Btree;
use iolite_codegen::{Ask, Door, Offer, Taken};
use iolite_columnar::{Answer, Asked, Closing, Compiled, Profile, Runtime, Store};
use iolite_ext::{Host, RowSource, SourceFactory};
use iolite_plan::bound::{SourceKind, Subquery};
use iolite_plan::plan::{CorePlan, EqTerm, Level, SelectPlan};
use iolite_value::Value;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The columns of a database that is attached to a connection, once they are wanted.
pub(crate) type Columns = OnceCell<Arc<Store>>;

/// Where a connection's queries can leave for columns.
pub(crate) struct Doorway {
    /// The connection, for programs that come back to it.
    conn: Weak<Inner>,
    /// Made when it is first wanted.
    door: OnceCell<Rc<dyn Door>>,
    /// Tables that were thought to be small and were found not to be.
    grown: RefCell<Vec<(usize, Pgno)>>,
    /// A run was ended for that: the statement is to be compiled anew.
    again: Cell<bool>,
}

impl Doorway {
    pub fn new(conn: &Weak<Inner>) -> Doorway {
        Doorway {
            conn: conn.clone(),
            door: OnceCell::new(),
            grown: RefCell::default(),
            again: Cell::new(false),
        }
    }

    /// Whether the run that has just failed was ended because tables have grown.
    pub fn take_again(&self) -> bool {
        self.again.take()
    }
}

/// Tables of fewer rows, by their statistics, are taken for small: a leaf seldom has fewer than 60.
const FEW_ROWS: f64 = 4_000.0;

/// The door of a connection, if it has one at present.
pub(crate) fn door(conn: &Inner) -> Option<Rc<dyn Door>> {
    let mode = conn.flags.analytics.get();
    let rows_only = mode == Analytics::Off
        || conn.txn.is_nested()
        || conn.flags.reverse_unordered.get()
        || conn.encoding() != Encoding::Utf8;
    let d = &conn.doorway;
    let make = || Rc::new(ColumnDoor { conn: d.conn.clone() }) as Rc<dyn Door>;
    (!rows_only).then(|| d.door.get_or_init(make).clone())
}

/// Whether an arm begins with a scan, or with keys that an arm finds which does.
fn scans(core: &CorePlan, plan_of: &dyn Fn(&Subquery) -> Option<SelectPlan>) -> bool {
    use iolite_plan::plan::Access::*;
    let query = |e: &EqTerm| match e {
        EqTerm::InSelect(i, _) => {
            plan_of(&i.select).is_some_and(|p| p.cores.iter().all(|c| scans(c, plan_of)))
        }
        _ => false,
    };
    core.levels.first().is_some_and(|l| match &l.access {
        Scan { .. } | IndexScan { .. } | RowidRange { .. } | Auto { .. } => true,
        RowidEq { eq, .. } => query(eq),
        Index(a) => a.eq.iter().any(query),
        _ => false,
    })
}

struct ColumnDoor {
    conn: Weak<Inner>,
}

impl ColumnDoor {
    /// For an arm of which all tables were small when they were last looked at, or are by their statistics: what looks at
    /// them again before each run. Compiling such an arm for columns takes longer than running it in rows.
    fn watch(&self, conn: &Inner, ask: &Ask<'_>) -> Option<SourceFactory> {
        // What is never taken needs no watching.
        let table = |l: &Level| matches!(l.source.kind, SourceKind::Table { .. }) && !l.source.join.right;
        if ask.core.window.is_some() || !ask.core.levels.iter().all(table) {
            return None;
        }
        let mut roots: Vec<(usize, Pgno)> = Vec::new();
        let small = (ask.every_table)(&mut |db, table| {
            let at = (db, table.root.get());
            if roots.contains(&at) {
                return true;
            }
            roots.push(at);
            let dbs = conn.databases.borrow();
            let seen = dbs.get(db).and_then(|d| d.columns.get()).and_then(|s| s.was_large(at.1));
            let rows = table.rows.get();
            let guess = || rows != iolite_catalog::DEFAULT_ROWS && rows < FEW_ROWS;
            table.has_rowid() && !conn.doorway.grown.borrow().contains(&at) && seen.map_or_else(guess, |l| !l)
        });
        if !small || roots.is_empty() {
            return None;
        }
        let conn = self.conn.clone();
        Some(SourceFactory(Rc::new(move |_, _| {
            let Some(conn) = conn.upgrade() else { return Err(Code::Misuse.into()) };
            let large = |(db, root): &&(usize, Pgno)| {
                let is = || store(&conn, *db, &conn.btree_of(*db)?)?.is_large(&conn.btree_of(*db)?, *root);
                // What cannot be read now is found by the loops, if they come there.
                is().unwrap_or(false)
            };
            match roots.iter().find(large) {
                None => Ok(None),
                Some(at) => {
                    conn.doorway.grown.borrow_mut().push(*at);
                    conn.doorway.again.set(true);
                    conn.expire_statements();
                    Err(Code::Schema.into())
                }
            }
        })))
    }
}

impl Door for ColumnDoor {
    fn offer(&self, ask: &Ask<'_>) -> Result<Offer> {
        let Some(conn) = self.conn.upgrade() else { return Ok(Offer::No(None)) };
        let force = conn.flags.analytics.get() == Analytics::Force;
        // The cheapest question first: an arm that finds its rows by key is none for columns.
        if !force && !scans(ask.core, ask.plan_of) {
            return Ok(Offer::No(None));
        }
        if !force
            && !ask.explained
            && let Some(watch) = self.watch(&conn, ask)
        {
            return Ok(Offer::Small(watch));
        }
        let overridden = |name: &str| conn.overridden.borrow().iter().any(|n| n.eq_ignore_ascii_case(name));
        let asked = Asked {
            core: ask.core,
            order: ask.order,
            limited: ask.limited,
            default_of: ask.default_of,
            overridden: &overridden,
            plan_of: ask.plan_of,
        };
        let compiled = match Compiled::new(&asked) {
            Ok(c) => c,
            Err(why) => return Ok(Offer::No(force.then_some(why))),
        };
        if !force && !compiled.worth_it() {
            return Ok(Offer::No(None));
        }
        let mut notes: Vec<String> = Vec::new();
        let shown = ask.explained && (force || large(&conn, &compiled)?);
        for l in ask.core.levels.iter().filter(|_| shown) {
            let word = if notes.is_empty() { "SCAN" } else { "JOIN" };
            notes.push(format!("{word} {} IN COLUMNS", iolite_plan::print::source_name(&l.source)));
        }
        let tables = compiled.tables();
        for name in tables.into_iter().filter_map(|t| t.2).filter(|_| shown) {
            notes.push(format!("NESTED {name} IN COLUMNS"));
        }
        let params = compiled.params().to_vec();
        let conn = self.conn.clone();
        let noted = Rc::new(Cell::new(0));
        let line = noted.clone();
        let source = SourceFactory(Rc::new(move |host, given| {
            let Some(conn) = conn.upgrade() else { return Err(Code::Misuse.into()) };
            let wanted = given.first().map_or(-1, Value::to_int);
            let profile = conn.profile.borrow().is_some().then(Profile::default);
            let rt = Run { conn: &conn, host, force, profile: profile.as_ref() };
            let rows = compiled.run(&rt, given.get(1..).unwrap_or(&[]), wanted)?;
            let stores: Vec<(Arc<Store>, Btree)> = {
                let dbs = conn.databases.borrow();
                dbs.iter().filter_map(|d| d.columns.get().cloned().zip(d.btree.clone())).collect()
            };
            stores.iter().for_each(|(s, bt)| s.after_run(bt));
            if let (Some(p), Some(lines)) = (profile, &mut *conn.profile.borrow_mut()) {
                lines.extend(p.into_lines().into_iter().map(|l| (line.get(), l)));
            }
            Ok(rows.map(|rows| {
                conn.column_runs.set(conn.column_runs.get() + 1);
                Box::new(Rows(rows)) as Box<dyn RowSource>
            }))
        }));
        Ok(Offer::Take(Taken { source, params, notes, noted }))
    }
}

/// Whether a table of the arm is as large as a run in columns wants it.
fn large(conn: &Rc<Inner>, compiled: &Compiled) -> Result<bool> {
    for (db, root, _) in compiled.tables() {
        let bt = conn.btree_of(db)?;
        if bt.reading(|bt| store(conn, db, bt)?.is_large(bt, root))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Before a database of a connection closes: its columns are to be written afterwards, if this connection is the last
/// one of the process to hold them.
pub(crate) fn closing(d: &mut Attached) -> Option<Closing> {
    let store = d.columns.take()?;
    let bt = d.btree.as_ref()?;
    store.settle();
    (Arc::strong_count(&store) == 1).then(|| store.closing(bt)).flatten()
}

/// `PRAGMA column_cache`: whether columns are kept beside the database; sets it if `persist` says so.
pub(crate) fn column_cache(conn: &Inner, db: usize, persist: Option<bool>) -> Result<&'static str> {
    let bt = conn.btree_of(db)?;
    bt.reading(|bt| {
        let store = store(conn, db, bt)?;
        if let Some(on) = persist {
            store.set_persistent(bt, on);
        }
        Ok(if store.is_persistent() { "persist" } else { "memory" })
    })
}

/// `PRAGMA column_cache_trust`: whether what the operating system says of a file is believed.
pub(crate) fn column_cache_trust(conn: &Inner, db: usize, hash: Option<bool>) -> Result<&'static str> {
    let store = store(conn, db, &conn.btree_of(db)?)?;
    if let Some(h) = hash {
        store.set_hash_only(h);
    }
    Ok(if store.is_hash_only() { "hash" } else { "stat" })
}

/// `PRAGMA column_cache_size`: what the columns of the process may take together, in KiB.
pub(crate) fn column_cache_size(set: Option<i64>) -> i64 {
    if let Some(kib) = set.and_then(|n| usize::try_from(n).ok()) {
        iolite_columnar::set_budget(kib.saturating_mul(1024));
    }
    (iolite_columnar::budget() / 1024) as i64
}

/// `PRAGMA column_work_size`: what a map, the groups or the rows of a query in columns may take each, in KiB.
pub(crate) fn column_work_size(set: Option<i64>) -> i64 {
    if let Some(kib) = set.and_then(|n| usize::try_from(n).ok()) {
        iolite_columnar::set_work_size(kib.saturating_mul(1024));
    }
    (iolite_columnar::work_size() / 1024) as i64
}

pub(crate) fn store(conn: &Inner, db: usize, bt: &Btree) -> Result<Arc<Store>> {
    let dbs = conn.databases.borrow();
    let d = dbs.get(db).ok_or(Code::Internal)?;
    Ok(d.columns.get_or_init(|| Store::of(bt)).clone())
}

/// Computed rows.
struct Rows(Answer);

impl RowSource for Rows {
    fn next(&mut self, out: &mut [Value]) -> Result<bool> {
        self.0.next(out)
    }
}

struct Run<'a> {
    conn: &'a Rc<Inner>,
    host: &'a dyn Host,
    force: bool,
    profile: Option<&'a Profile>,
}

impl Runtime for Run<'_> {
    fn host(&self) -> &dyn Host {
        self.host
    }

    fn btree(&self, db: usize) -> Result<Btree> {
        self.conn.btree_of(db)
    }

    fn store(&self, db: usize) -> Result<Arc<Store>> {
        store(self.conn, db, &self.conn.btree_of(db)?)
    }

    fn check(&self) -> Result<()> {
        crate::env::interrupted(self.conn)
    }

    fn force(&self) -> bool {
        self.force
    }

    fn temporary(&self) -> Result<Option<Box<dyn iolite_os::File>>> {
        if self.conn.flags.temp_store.get() == 2 {
            return Ok(None);
        }
        let flags = iolite_os::OpenFlags::read_write(iolite_os::FileKind::Temp);
        self.conn.vfs.open(None, flags).map(Some)
    }

    fn threads(&self) -> usize {
        usize::try_from(self.conn.flags.threads.get()).unwrap_or(0).clamp(1, MOST_THREADS)
    }

    fn derives(&self) -> bool {
        self.conn.flags.column_derivation.get()
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile
    }

    fn nanos(&self) -> u64 {
        self.conn.vfs.clock().monotonic_nanos()
    }
}

/// Why columns are no longer kept beside a database, if something went wrong.
pub(crate) fn note(columns: &Columns) -> Option<String> {
    columns.get().and_then(|s| s.note())
}

/// What has happened among the columns of a database.
pub(crate) fn counters(columns: &Columns) -> ColumnCounters {
    let Some(store) = columns.get() else { return ColumnCounters::default() };
    let n = |a: &std::sync::atomic::AtomicU64| a.load(std::sync::atomic::Ordering::Relaxed);
    let c = &store.counters;
    ColumnCounters {
        decoded: n(&c.decoded),
        patched: n(&c.patched),
        hashed: n(&c.hashed),
        derived: n(&c.derived),
        adopted: n(&c.adopted),
        loaded: n(&c.loaded),
        rejected: n(&c.rejected),
        published: n(&c.published),
        evicted: n(&c.evicted),
    }
}

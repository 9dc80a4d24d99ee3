//! A process of a round: threads that hand connections to each other, or use one at the same time.

use crate::handle::{Handle, Library, Result, Statement, Trouble, library};
use crate::model::{Known, check, last_of};
use crate::shared::{Shared, WRITERS};
use iolite_conform::differ::rng::Rng;
use iolite_testkit::Child;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// How the connections of a process belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Each is by itself; a thread that has one has it alone for some steps.
    Own,
    /// As `Own`, but they share a cache.
    Cache,
    /// There is one, which all threads use whenever they like.
    One,
}

/// What a process was drawn to be.
pub struct Drawn {
    pub engine: &'static str,
    pub kind: Kind,
    pub threads: usize,
    pub slots: usize,
}

impl Drawn {
    pub fn draw(rng: &mut Rng) -> Drawn {
        let engine = *rng.pick(&["iolite", "iolite", "stock"]);
        let kind = match *rng.pick(&[Kind::Own, Kind::Own, Kind::Cache, Kind::One]) {
            // Stock alone, in all processes, loses half of a transaction in one of ten rounds of some seeds.
            Kind::Cache if engine == "stock" => Kind::Own,
            kind => kind,
        };
        let threads = rng.range(2, 4);
        let slots = if kind == Kind::One { threads } else { rng.range(1, 6) };
        Drawn { engine, kind, threads, slots }
    }
}

/// A connection's place.
struct Slot {
    state: Mutex<State>,
    /// For those who interrupt it.
    shown: RwLock<Option<Arc<Handle>>>,
}

#[derive(Default)]
struct State {
    db: Option<Arc<Handle>>,
    held: Option<Statement>,
    writer: usize,
    /// Its last transaction that is there.
    n: i64,
    /// `n` is known.
    known: bool,
    open: bool,
    /// The open transaction has its row of the ledger.
    wrote: bool,
    savepoints: usize,
}

struct Process {
    api: Library,
    dir: PathBuf,
    drawn: Drawn,
    shared: &'static Shared,
    slots: Vec<Slot>,
    /// Statements whose connections were closed.
    orphans: Mutex<Vec<Statement>>,
    wrong: Mutex<Vec<String>>,
}

fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transaction of a writer as one statement.
fn change(writer: usize, n: i64, rng: &mut Rng) -> String {
    let from = rng.below(1000);
    let (kind, x, y) = match rng.below(10) {
        0..4 => (0, *rng.pick(&[0, 1, 3, 20]), *rng.pick(&[3, 60, 700, 5000])),
        4..7 => (1, from, from + rng.below(200)),
        7 => (2, from, from + rng.below(150)),
        _ => (3, from, from + rng.below(150)),
    };
    format!("INSERT INTO doit VALUES({writer}, {n}, {kind}, {x}, {y})")
}

/// Runs until the round is over; answers what went wrong.
pub fn work(dir: &Path, number: usize, seed: u64) -> std::result::Result<Vec<String>, String> {
    let mut rng = Rng::new(seed);
    let drawn = Drawn::draw(&mut rng);
    let slot = |i| Slot {
        state: Mutex::new(State { writer: number * 16 + i, ..State::default() }),
        shown: RwLock::default(),
    };
    let p = Process {
        api: library(drawn.engine)?,
        dir: dir.to_owned(),
        shared: Shared::of(dir).map_err(|e| e.to_string())?,
        slots: (0..drawn.slots).map(slot).collect(),
        orphans: Mutex::default(),
        wrong: Mutex::default(),
        drawn,
    };
    if p.drawn.kind == Kind::One {
        let Some(db) = p.opened(&mut rng) else { return Ok(locked(&p.wrong).clone()) };
        p.slots.iter().for_each(|s| locked(&s.state).db = Some(db.clone()));
    }
    std::thread::scope(|s| {
        for t in 0..p.drawn.threads as u64 {
            let (p, rng) = (&p, Rng::new(seed ^ (t + 1) << 40));
            s.spawn(move || p.thread(rng));
        }
    });
    Ok(locked(&p.wrong).clone())
}

impl Process {
    fn wrong(&self, what: &str) {
        let text = format!("{} {:?}: {what}", self.drawn.engine, self.drawn.kind);
        locked(&self.wrong).push(text);
    }

    /// Takes down what is not in order; answers whether the call was done.
    fn note<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(t) => return Some(t),
            Err(Trouble::Passing) => {}
            // The text, which says whether it is in order, may be another thread's by now.
            Err(Trouble::Wrong(1, _)) if self.drawn.kind == Kind::One => {}
            Err(Trouble::Wrong(code, text)) => self.wrong(&format!("{what}: {code} {text}")),
        }
        None
    }

    fn opened(&self, rng: &mut Rng) -> Option<Arc<Handle>> {
        let end = if self.drawn.kind == Kind::Cache { "?cache=shared" } else { "" };
        let name = format!("file:{}{end}", self.dir.join("a.db").display());
        let db = Handle::open(self.api, &name, *rng.pick(&[0, 1, 10, 50, 200]));
        let db = self.note("open", db)?;
        for _ in 0..rng.below(4) {
            self.note("setting", db.run(rng.pick::<&str>(SETTINGS)));
        }
        Some(Arc::new(db))
    }

    fn thread(&self, mut rng: Rng) {
        while !self.shared.is_over() && locked(&self.wrong).len() < 5 {
            let i = rng.below(self.slots.len());
            let Ok(mut state) = self.slots[i].state.try_lock() else {
                std::thread::yield_now();
                continue;
            };
            for _ in 0..rng.range(1, 5) {
                self.step(i, &mut state, &mut rng);
            }
        }
    }

    fn step(&self, i: usize, s: &mut State, rng: &mut Rng) {
        let alone = self.drawn.kind == Kind::One;
        if s.db.is_none() {
            s.db = self.opened(rng);
            *self.slots[i].shown.write().unwrap_or_else(PoisonError::into_inner) = s.db.clone();
            (s.open, s.known) = (false, false);
        }
        let Some(db) = s.db.clone() else { return };
        if !alone && s.open == db.is_autocommit() {
            // An error has taken the transaction back, or a COMMIT failed at its last step.
            s.known &= !s.open;
            s.open = false;
            let _ = db.run("ROLLBACK");
        }
        if !s.known && !s.open {
            self.learn(&db, s);
        } else if s.open {
            self.within(&db, s, rng);
        } else {
            self.outside(i, &db, s, rng);
        }
    }

    /// Finds out which of the writer's transactions are there.
    fn learn(&self, db: &Handle, s: &mut State) {
        s.held = None;
        let acknowledged = self.shared.acknowledged(s.writer);
        let Some(n) = self.note("learn", last_of(db, s.writer)) else { return };
        if n < acknowledged || n > self.shared.begun(s.writer) {
            self.wrong(&format!("LOST or early: {n} of {acknowledged} acknowledged"));
        }
        self.shared.acknowledge(s.writer, n);
        (s.n, s.known) = (n, true);
    }

    fn done(&self, s: &mut State) {
        s.n += 1;
        self.shared.acknowledge(s.writer, s.n);
    }

    /// A step within a transaction.
    fn within(&self, db: &Handle, s: &mut State, rng: &mut Rng) {
        match rng.below(100) {
            0..30 if !s.wrote => {
                s.wrote = self.note("write", db.run(&change(s.writer, s.n + 1, rng))).is_some()
            }
            0..30 => {
                let from = rng.below(900);
                let change = format!(
                    "UPDATE t SET ver = ver + 1, pad = printf('%.*c', {}, char(65 + (ver + 1) % 26)) WHERE k BETWEEN {from} AND {}",
                    rng.below(900),
                    from + rng.below(300)
                );
                self.note("write more", db.run(&change));
            }
            30..45 if s.savepoints < 3 => {
                if self.note("savepoint", db.run(&format!("SAVEPOINT s{}", s.savepoints))).is_some() {
                    s.savepoints += 1;
                }
                self.note("delete", db.run("DELETE FROM t WHERE k % 97 = 5"));
            }
            30..55 if s.savepoints > 0 => {
                s.savepoints -= 1;
                let n = s.savepoints;
                self.note("rollback to", db.run(&format!("ROLLBACK TO s{n}; RELEASE s{n}")));
                match last_of(db, s.writer) {
                    Ok(n) => s.wrote = n > s.n,
                    // Whether its row of the ledger is there is not known.
                    Err(_) => drop(db.run("ROLLBACK")),
                }
            }
            55..65 => self.look("in a transaction", db, &Known::of_some_time(Some(s.writer))),
            65..72 => {
                s.held = None;
                if self.note("rollback", db.run("ROLLBACK")).is_some() {
                    s.open = false;
                }
            }
            _ if s.wrote => {
                self.shared.begin(s.writer, s.n + 1);
                match db.run("COMMIT") {
                    Ok(()) => {
                        self.done(s);
                        s.open = false;
                    }
                    Err(e) => {
                        s.known &= e.is_passing() && !db.is_autocommit();
                        self.note("commit", Err::<(), _>(e));
                    }
                }
            }
            _ => {}
        }
    }

    fn look(&self, what: &str, db: &Handle, known: &Known) {
        if let Some(Some(wrong)) = self.note(what, check(db, known, self.shared)) {
            self.wrong(&format!("{what}: {wrong}"));
        }
    }

    /// A copy must be a state of the database, and whole.
    fn look_at_copy(&self, what: &str, copy: Result<Handle>, known: &Known) {
        let Some(copy) = self.note(what, copy) else { return };
        self.look(what, &copy, known);
        self.sound(what, &copy);
    }

    fn sound(&self, what: &str, db: &Handle) {
        if let Some(told) = self.note(what, db.row("PRAGMA integrity_check"))
            && told != ["ok"]
        {
            self.wrong(&format!("{what}: integrity_check: {told:?}"));
        }
    }

    /// A step outside of transactions.
    fn outside(&self, i: usize, db: &Arc<Handle>, s: &mut State, rng: &mut Rng) {
        let alone = self.drawn.kind == Kind::One;
        // Where others hold a snapshot of the same cache, a new statement sees that one.
        let known = match self.drawn.kind {
            Kind::Own if s.held.is_none() => Known::of_now(self.shared),
            _ => Known::of_some_time(None),
        };
        match rng.below(100) {
            0..20 if !alone => {
                let begin = *rng.pick(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]);
                if self.note("begin", db.run(begin)).is_some() {
                    (s.open, s.wrote, s.savepoints) = (true, false, 0);
                }
            }
            0..40 => {
                self.shared.begin(s.writer, s.n + 1);
                match db.run(&change(s.writer, s.n + 1, rng)) {
                    Ok(()) => self.done(s),
                    Err(e) => {
                        s.known = false;
                        self.note("change", Err::<(), _>(e));
                    }
                }
            }
            40..60 => self.look("read", db, &known),
            60..65 if !alone => match s.held.take() {
                Some(_) => {}
                None => {
                    if let Some(held) = self.note("hold", db.prepare("SELECT id, pad FROM t ORDER BY id")) {
                        held.step();
                        s.held = Some(held);
                    }
                }
            },
            65..69 if !alone => {
                locked(&self.orphans).extend(s.held.take());
                *self.slots[i].shown.write().unwrap_or_else(PoisonError::into_inner) = None;
                s.db = None;
            }
            69..73 => {
                let orphan = locked(&self.orphans).pop();
                if let Some(o) = orphan {
                    o.step();
                }
            }
            73..76 => drop(self.note("setting", db.run(rng.pick::<&str>(SETTINGS)))),
            76..79 => drop(self.note("vacuum", db.run(rng.pick::<&str>(VACUUMS)))),
            79..82 => {
                let mode = *rng.pick(&["wal", "delete", "truncate", "persist"]);
                self.note("journal mode", db.run(&format!("PRAGMA journal_mode = {mode}")));
            }
            82..86 => {
                let mode = *rng.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"]);
                self.note("checkpoint", db.run(&format!("PRAGMA wal_checkpoint({mode})")));
            }
            86..88 => {
                let pages = *rng.pick(&[1, 5, 20, -1]);
                let copy = db.backup(pages, || std::thread::sleep(Duration::from_micros(200)));
                self.look_at_copy("backup", copy, &known);
            }
            // Stock's images of a shared cache hold what is not committed, and those that others change meanwhile.
            88..90 if self.drawn.engine == "iolite" => self.look_at_copy("image", db.image(), &known),
            90..92 => {
                let file = self.dir.join(format!("into{}", s.writer));
                let _ = std::fs::remove_file(&file);
                if self.note("vacuum into", db.run(&format!("VACUUM INTO '{}'", file.display()))).is_some() {
                    let copy = Handle::open(self.api, &file.to_string_lossy(), 0);
                    self.look_at_copy("vacuum into", copy, &known);
                }
            }
            92..94 => {
                if let Some(id) = self.note("id", db.row("SELECT min(id) FROM t"))
                    && let Some(id) = id.first().and_then(|n| n.parse().ok())
                    && let Some(text) = db.blob("t", "pad", id)
                    && text.windows(2).any(|w| w[0] != w[1])
                {
                    self.wrong("a torn blob");
                }
            }
            94..95 => self.sound("integrity", db),
            95..97 => {
                let other = self.slots[rng.below(self.slots.len())].shown.read();
                if let Ok(other) = other
                    && let Some(other) = &*other
                {
                    other.interrupt();
                }
            }
            97..98 if self.drawn.engine == "iolite" => self.fork(db, s, rng),
            _ => {}
        }
    }

    /// A child uses a connection of its own, or one that this thread has and that is idle, while other threads are in calls.
    fn fork(&self, db: &Handle, s: &mut State, rng: &mut Rng) {
        let inherited = rng.chance(50) && self.drawn.kind == Kind::Own && s.held.is_none();
        let mut own = Rng::new(rng.next());
        let child = Child::fork(|| {
            // SAFETY: the default action ends the child, which waits for something then.
            unsafe { libc::alarm(20) };
            let used = match inherited {
                true => self.in_child(db, &mut own),
                false => self.opened(&mut own).map_or(Ok(()), |db| self.in_child(&db, &mut own)),
            };
            if let Err(Trouble::Wrong(code, text)) = &used {
                eprintln!("a forked child: {code} {text}");
            }
            matches!(used, Ok(()) | Err(Trouble::Passing))
        });
        if !child.wait() {
            self.wrong(&format!("a forked child failed, inherited: {inherited}"));
        }
    }

    /// Reads, and writes as a writer that only children are.
    fn in_child(&self, db: &Handle, rng: &mut Rng) -> Result<()> {
        let wrong = |what: String| Err(Trouble::Wrong(0, what));
        check(db, &Known::of_some_time(None), self.shared)?.map_or(Ok(()), wrong)?;
        let writer = FIRST_CHILD + std::process::id() as usize % (WRITERS - 1 - FIRST_CHILD);
        let n = last_of(db, writer)? + 1;
        self.shared.begin(writer, n);
        match db.run(&change(writer, n, rng)) {
            Ok(()) => self.shared.acknowledge(writer, n),
            // A child of a process that was killed may have the same number.
            Err(Trouble::Wrong(CONSTRAINT, _)) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// Writers from this number on are forked children.
const FIRST_CHILD: usize = 48;
const CONSTRAINT: i32 = 19;

const SETTINGS: &[&str] = &[
    "PRAGMA cache_size = 3",
    "PRAGMA cache_size = 50",
    "PRAGMA cache_size = 2000",
    "PRAGMA synchronous = off",
    "PRAGMA synchronous = normal",
    "PRAGMA synchronous = full",
    "PRAGMA wal_autocheckpoint = 1",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA journal_size_limit = 0",
    "PRAGMA mmap_size = 1000000",
    "PRAGMA temp_store = 2",
    "PRAGMA shrink_memory",
    "PRAGMA optimize",
    "PRAGMA lock_lease_ms = 0",
    "PRAGMA lock_lease_ms = 100",
    "PRAGMA checkpoint_thread = off",
    "PRAGMA checkpoint_thread = on",
    "PRAGMA analytics = force",
    "PRAGMA analytics = auto",
    "PRAGMA threads = 3",
    "PRAGMA secure_delete = on",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA locking_mode = normal",
    "PRAGMA locking_mode = normal",
];

const VACUUMS: &[&str] = &[
    "VACUUM",
    "PRAGMA incremental_vacuum(5)",
    "PRAGMA page_size = 512; VACUUM",
    "PRAGMA page_size = 4096; VACUUM",
    "PRAGMA auto_vacuum = 1; VACUUM",
    "PRAGMA auto_vacuum = 2; VACUUM",
];

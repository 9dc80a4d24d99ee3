//! Schedules: connections as threads, of which one runs at a time. Whoever calls the disk hands the baton
//! over, and a list of choices says who goes on: each interleaving of calls can be repeated.
//!
//! Choices are explored by how often a thread is taken off although it could go on (a *preemption*): first
//! never, then once at each place, then twice at each pair of places, in the order of the calls; beyond that,
//! seeded ones. Most races need one or two.
//!
//! What always holds: exactly one registered thread runs between two hand-overs; a thread that waits (sleeps,
//! or was told that something is busy) lets the others run first. What happens between two calls to the disk
//! is not interleaved: stores to the shared memory are seen in their order, as on one processor.

use crate::disk::{Disk, Event, Fault, Op};
use crate::image::{Files, Model};
use crate::rng::Rng;
use crate::script::large;
use crate::state;
use iolite::{Code, Connection, OpenFlags, Value};
use iolite_os::{File, FileId, MemoryVfs, Vfs};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Who takes part, and who runs.
struct Baton {
    state: Mutex<Race>,
    changed: Condvar,
}

struct Race {
    running: usize,
    alive: Vec<bool>,
    /// Hand-overs so far.
    calls: usize,
    /// At which hand-overs another thread goes on, and which of the others.
    switches: Vec<(usize, usize)>,
    /// Instead of switches: who goes on is drawn.
    random: Option<Rng>,
    /// Too many hand-overs: nobody gets anywhere.
    stuck: bool,
}

/// Beyond so many calls, threads wait for each other in vain.
const PATIENCE: usize = 20_000;

thread_local! {
    static ME: RefCell<Option<(Arc<Baton>, usize)>> = const { RefCell::new(None) };
}

impl Baton {
    fn race(&self) -> MutexGuard<'_, Race> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `next` run and waits until it is `me` again.
    fn pass(&self, mut race: MutexGuard<'_, Race>, me: usize, next: usize) {
        race.running = next;
        self.changed.notify_all();
        while race.running != me {
            race = self.changed.wait(race).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn others(race: &Race, me: usize) -> Vec<usize> {
        let n = race.alive.len();
        (1..n).map(|i| (me + i) % n).filter(|&i| race.alive[i]).collect()
    }
}

fn with_baton(f: impl FnOnce(&Arc<Baton>, usize)) {
    let mine = ME.with(|m| m.borrow().clone());
    if let Some((baton, me)) = mine {
        f(&baton, me);
    }
}

/// A thread of a race is about to call the disk.
pub fn hand_over() {
    with_baton(|baton, me| {
        let mut race = baton.race();
        let call = race.calls;
        race.calls += 1;
        race.stuck |= call > PATIENCE;
        let others = Baton::others(&race, me);
        if others.is_empty() {
            return;
        }
        let next = match &mut race.random {
            Some(rng) => rng.percent(30).then(|| others[rng.below(others.len() as u64) as usize]),
            None => {
                let hit = race.switches.iter().find(|s| s.0 == call);
                hit.map(|s| others[s.1 % others.len()])
            }
        };
        if let Some(next) = next {
            baton.pass(race, me, next);
        }
    });
}

/// A thread of a race has to wait: the others go on.
pub fn wait_for_others() {
    with_baton(|baton, me| {
        let mut race = baton.race();
        race.calls += 1;
        race.stuck |= race.calls > PATIENCE;
        if let Some(&next) = Baton::others(&race, me).first() {
            baton.pass(race, me, next);
        }
    });
}

/// What each connection does: statements, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Adds one to all rows, in one transaction, so many times.
    Write(usize),
    /// Reads all rows so many times; they must be equal, and not older than what was acknowledged before.
    Read(usize),
    /// Runs checkpoints of these modes.
    Checkpoint(&'static [&'static str]),
}

/// A race: its connections, and for how long they keep their read locks.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// One entry a connection.
    pub parts: &'static [Part],
    /// `PRAGMA lock_lease_ms`. Time stands still here: what is kept is kept until somebody needs it.
    pub lease: u32,
    /// `synchronous=full` instead of `normal`: what was acknowledged or read survives a loss of power.
    pub full: bool,
    /// `PRAGMA wal_autocheckpoint`.
    pub auto: u32,
    /// A large value tells the same as the rows, and goes to the file at once.
    pub large: bool,
    /// Every second connection is as one of another process.
    pub apart: bool,
}

/// Rows on pages of their own.
const ROWS: i64 = 3;

/// The disk, as another process sees it: nothing tells that its files are the same.
struct Apart {
    inner: Arc<Disk>,
}

struct ApartFile {
    inner: Box<dyn File>,
}

impl File for ApartFile {
    fn identity(&self) -> Option<FileId> {
        None
    }
    iolite_os::pass_to_inner!(read write truncate sync size lock unlock check_reserved sector_size characteristics is_read_only has_moved shm_map shm_lock shm_barrier shm_unmap);
}

impl Vfs for Apart {
    fn name(&self) -> &str {
        "apart"
    }
    fn open(&self, path: Option<&Path>, flags: iolite_os::OpenFlags) -> iolite_base::Result<Box<dyn File>> {
        Ok(Box::new(ApartFile { inner: self.inner.open(path, flags)? }))
    }
    iolite_os::pass_to_inner!(delete access full_path clock entropy);
}

struct Shared {
    large: bool,
    disk: Arc<Disk>,
    /// Connections open one after the other: that is not the race.
    opening: Mutex<()>,
    /// Transactions acknowledged, and begun.
    acked: AtomicI64,
    begun: AtomicI64,
}

impl Shared {
    fn open(&self, apart: bool, lease: u32, full: bool, auto: u32) -> Result<Connection, String> {
        let vfs: Arc<dyn Vfs> =
            if apart { Arc::new(Apart { inner: self.disk.clone() }) } else { self.disk.clone() };
        let c = Connection::open_on(vfs, state::MAIN, OpenFlags::default())
            .map_err(|e| format!("open: {e:?}"))?;
        let sync = if full { "full" } else { "normal" };
        let pragmas = format!(
            "PRAGMA page_size=512; PRAGMA journal_mode=wal; PRAGMA synchronous={sync}; \
             PRAGMA wal_autocheckpoint={auto}; PRAGMA lock_lease_ms={lease}; PRAGMA large_value_direct={}",
            self.large as u8
        );
        c.execute_batch(&pragmas).map_err(|e| format!("pragmas: {e:?}"))?;
        Ok(c)
    }

    fn value(&self, c: &Connection) -> Result<Option<i64>, String> {
        value(c, self.large)
    }
}

/// The number in all rows, of which the large value tells the same; `None`: busy.
fn value(c: &Connection, large: bool) -> Result<Option<i64>, String> {
    // The first pages of it come from the cache, long chains past it.
    let whole = filler("v");
    let same = format!(
        " WHERE rowid > 1 OR substr(filler, 1, 2000) = substr({whole}, 1, 2000) AND filler = {whole}"
    );
    let same = if large { &same } else { "" };
    let rows = match c.query(&format!("SELECT min(v), max(v), count(*) FROM t{same}"), &[]) {
        Ok(rows) => rows,
        Err(e) if e.code().primary() == Code::Busy => return Ok(None),
        Err(e) => return Err(format!("reading: {e:?}")),
    };
    match &rows[0][..] {
        [Value::Int(a), Value::Int(b), Value::Int(ROWS)] if a == b => Ok(Some(*a)),
        other => Err(format!("a snapshot that never was: {other:?}")),
    }
}

/// The large value that goes with a number.
fn filler(number: &str) -> String {
    large(&format!("char(65 + {number} % 26)"))
}

/// Adds to all rows.
fn step(by: u32, large: bool) -> String {
    let with =
        format!(", filler = CASE rowid WHEN 1 THEN {} ELSE filler END", filler(&format!("(v + {by})")));
    format!("UPDATE t SET v = v + {by}{}", if large { &with } else { "" })
}

/// A writer of a large value appends its commit and cannot publish it, as if it were killed; then another process writes
/// one. Whatever a loss of power leaves of that is one of the states. `anew`: the first one begins the log.
pub fn left_behind(seed: u64, anew: bool) -> Result<(), String> {
    let shared = Shared {
        large: true,
        disk: Arc::new(Disk::new(seed)),
        opening: Mutex::default(),
        acked: AtomicI64::new(0),
        begun: AtomicI64::new(0),
    };
    let first = shared.prepare(true)?;
    let run = |c: &Connection, sql: &str| c.execute_batch(sql).map_err(|e| format!("{sql}: {e:?}"));
    if !anew {
        run(&first, "CREATE TABLE u(x)")?;
    }
    let (killed, next) = (shared.open(true, 0, true, 0)?, shared.open(true, 0, true, 0)?);
    // The log before the file is written, (its header,) the file, the commit.
    let nth = 2 + anew as u64;
    let failing = Fault { op: Op::Sync, nth, persistent: false, code: Op::Sync.code() };
    shared.disk.set_fault(Some(failing));
    if run(&killed, &step(1, true)).is_ok() || shared.disk.hits() == 0 {
        return Err("the sync of the first commit did not fail".into());
    }
    shared.disk.set_fault(None);
    let before = shared.disk.events().len();
    shared.disk.mark(Event::Begin(2));
    run(&next, &step(2, true))?;
    shared.disk.mark(Event::Ack(2));
    survives(&shared.disk.events(), before, seed, true)
}

impl Shared {
    /// The first connection, and the table.
    fn prepare(&self, full: bool) -> Result<Connection, String> {
        let first = self.open(false, 0, full, 0)?;
        let run = |sql: &str| first.execute_batch(sql).map_err(|e| format!("setting up: {e:?}"));
        run("CREATE TABLE t(v INTEGER, filler BLOB); \
             INSERT INTO t VALUES(0, zeroblob(300)), (0, zeroblob(300)), (0, zeroblob(300))")?;
        if self.large {
            // Two of the same: the second one leaves the pages of the first free, and neither is in the log.
            let put = format!("UPDATE t SET filler = {} WHERE rowid = 1", filler("v"));
            run(&format!("{put}; {put}; PRAGMA wal_checkpoint(TRUNCATE)"))?;
        }
        Ok(first)
    }

    fn play(&self, part: Part, c: &Connection) -> Result<(), String> {
        let busy = |e: &iolite::Error| e.code().primary() == Code::Busy;
        match part {
            Part::Write(n) => {
                for _ in 0..n {
                    let begun = self.begun.fetch_add(1, SeqCst) + 1;
                    self.disk.mark(Event::Begin(begun as usize));
                    match c.execute_batch(&step(1, self.large)) {
                        Ok(()) => {
                            let acked = self.acked.fetch_add(1, SeqCst) + 1;
                            self.disk.mark(Event::Ack(acked as usize));
                        }
                        Err(e) if busy(&e) => {
                            self.begun.fetch_sub(1, SeqCst);
                            wait_for_others();
                        }
                        Err(e) => return Err(format!("writing: {e:?}")),
                    }
                }
            }
            Part::Read(n) => {
                for _ in 0..n {
                    let before = self.acked.load(SeqCst);
                    let seen = self.value(c)?;
                    let after = self.begun.load(SeqCst);
                    match seen {
                        None => wait_for_others(),
                        // What was seen may be told to others: it must not be lost any more.
                        Some(v) if (before..=after).contains(&v) => self.disk.mark(Event::Ack(v as usize)),
                        Some(v) => {
                            return Err(format!(
                                "read {v}, acknowledged before {before}, begun after {after}"
                            ));
                        }
                    }
                }
            }
            Part::Checkpoint(modes) => {
                for m in modes {
                    match c.execute_batch(&format!("PRAGMA wal_checkpoint({m})")) {
                        Err(e) if !busy(&e) => return Err(format!("checkpoint {m}: {e:?}")),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// The value in these files, after recovery.
fn value_in(files: &Files, large: bool) -> Result<i64, String> {
    let vfs = MemoryVfs::new();
    files.iter().for_each(|(path, data)| vfs.put(path, data.clone()));
    let c = Connection::open_on(Arc::new(vfs), state::MAIN, OpenFlags::default())
        .map_err(|e| format!("open: {e:?}"))?;
    let found = value(&c, large)?.ok_or_else(|| "busy".to_string());
    if large {
        let check = c.query("PRAGMA integrity_check", &[]).map_err(|e| format!("{e:?}"))?;
        if check[0][0].to_string_lossy() != "ok" {
            return Err(format!("integrity_check: {}", check[0][0].to_string_lossy()));
        }
    }
    found
}

/// Images looked at after each event.
const IMAGES: usize = 16;

/// Whether a loss of power after any event from `from` on leaves all that was acknowledged or read before, and nothing but
/// what was begun.
fn survives(events: &[Event], from: usize, seed: u64, large: bool) -> Result<(), String> {
    let mut model = Model::new();
    let (mut begun, mut acked) = (0, 0);
    for (at, e) in events.iter().enumerate() {
        match e {
            Event::Begin(n) => begun = begun.max(*n as i64),
            Event::Ack(n) => acked = acked.max(*n as i64),
            other => model.apply(other),
        }
        if at < from || matches!(e, Event::Begin(_)) {
            continue;
        }
        let mut wrong = None;
        let mut left = IMAGES;
        model.images(seed ^ at as u64, IMAGES, &mut |files, _| {
            left -= 1;
            wrong = match value_in(&files, large) {
                Ok(v) if (acked..=begun).contains(&v) => None,
                Ok(v) => Some(format!("{v} is left, acknowledged or read {acked}, begun {begun}")),
                Err(e) => Some(e),
            };
            wrong.is_none() && left > 0
        });
        if let Some(w) = wrong {
            return Err(format!("power loss at event {at} of {}: {w}", events.len()));
        }
    }
    Ok(())
}

/// Runs a race once; with `power`, looks at losses of power, too. Answers how many hand-overs there were.
fn run(
    setup: Setup,
    seed: u64,
    switches: Vec<(usize, usize)>,
    random: Option<Rng>,
    power: bool,
) -> Result<usize, String> {
    let shared = Arc::new(Shared {
        large: setup.large,
        disk: Arc::new(Disk::new(seed)),
        opening: Mutex::default(),
        acked: AtomicI64::new(0),
        begun: AtomicI64::new(0),
    });
    let first = shared.prepare(setup.full)?;
    let n = setup.parts.len();
    let before = shared.disk.events().len();
    let baton = Arc::new(Baton {
        state: Mutex::new(Race {
            running: usize::MAX,
            alive: vec![true; n],
            calls: 0,
            switches,
            random,
            stuck: false,
        }),
        changed: Condvar::new(),
    });
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let (opened, all_open) = std::sync::mpsc::channel();
        let threads: Vec<_> = setup
            .parts
            .iter()
            .enumerate()
            .map(|(me, &part)| {
                let (shared, baton, opened) = (shared.clone(), baton.clone(), opened.clone());
                scope.spawn(move || {
                    // The schema is read, and the first lock kept, before the race.
                    let opening = shared.opening.lock().unwrap_or_else(PoisonError::into_inner);
                    let ready = shared
                        .open(setup.apart && me % 2 == 1, setup.lease, setup.full, setup.auto)
                        .and_then(|c| shared.value(&c).map(|_| c));
                    drop(opening);
                    let _ = opened.send(());
                    let mut race = baton.race();
                    while race.running != me {
                        race = baton.changed.wait(race).unwrap_or_else(PoisonError::into_inner);
                    }
                    drop(race);
                    ME.set(Some((baton.clone(), me)));
                    let done = catch_unwind(AssertUnwindSafe(|| {
                        let c = ready?;
                        let done = shared.play(part, &c);
                        drop(c);
                        done
                    }));
                    ME.set(None);
                    let mut race = baton.race();
                    race.alive[me] = false;
                    race.running = Baton::others(&race, me).first().copied().unwrap_or(usize::MAX);
                    baton.changed.notify_all();
                    done.unwrap_or_else(|_| Err("a panic".into()))
                })
            })
            .collect();
        for _ in 0..n {
            let _ = all_open.recv();
        }
        baton.race().running = 0;
        baton.changed.notify_all();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a panic".into()))).collect()
    });
    for (i, r) in results.into_iter().enumerate() {
        r.map_err(|e| format!("connection {i}: {e}"))?;
    }
    let (calls, stuck) = {
        let race = baton.race();
        (race.calls, race.stuck)
    };
    if stuck {
        return Err("nobody gets anywhere".into());
    }
    if power && setup.full {
        survives(&shared.disk.events(), before, seed, setup.large)?;
    }
    // A log whose counts are wrong may show it only to those who write on.
    for more in 0..3 {
        let acked = shared.acked.load(SeqCst) + more;
        let read = shared.value(&first)?;
        if read != Some(acked) {
            return Err(format!("at the end, after {more} more writes, {read:?} instead of {acked}"));
        }
        if more < 2 {
            first.execute_batch(&step(1, setup.large)).map_err(|e| format!("at the end: {e:?}"))?;
        }
    }
    // Killed now, all acknowledged is there.
    let mut model = Model::new();
    shared.disk.events().iter().for_each(|e| model.apply(e));
    let killed = state::recover(&model.current())?;
    drop(first);
    let closed = state::recover_on(shared.disk.clone(), false)?;
    if killed != closed {
        return Err(format!("killed and closed differ: {}", crate::crash::differing(&closed, &killed)));
    }
    Ok(calls)
}

/// How many schedules were run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Schedules {
    /// With none, one and two preemptions.
    pub systematic: u64,
    /// Drawn.
    pub random: u64,
}

/// Runs a race under all schedules with up to one preemption, under those with two (every `stride`-th first
/// place), and under `random` drawn ones.
pub fn explore(setup: Setup, seed: u64, stride: usize, random: u64) -> Result<Schedules, String> {
    let mut done = Schedules::default();
    let others = setup.parts.len() - 1;
    let told = |what: String, how: String| format!("{setup:?} seed {seed} {how}: {what}");
    let mut go = |switches: Vec<(usize, usize)>| {
        done.systematic += 1;
        // An image of a large value takes ten times as long.
        let looked_at = !setup.large || switches.first().is_none_or(|s| s.0 % 24 == 0);
        let power = switches.len() < 2 && looked_at;
        run(setup, seed, switches.clone(), None, power).map_err(|e| told(e, format!("switches {switches:?}")))
    };
    let calls = go(Vec::new())?;
    for first in 0..calls {
        for to in 0..others {
            let calls = go(vec![(first, to)])?;
            if stride == 0 || first % stride != 0 {
                continue;
            }
            for second in first + 1..calls {
                for back in 0..others {
                    go(vec![(first, to), (second, back)])?;
                }
            }
        }
    }
    for i in 0..random {
        let rng = Rng::new(seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let power = !setup.large || i % 16 == 0;
        run(setup, seed, Vec::new(), Some(rng), power).map_err(|e| told(e, format!("drawn {i}")))?;
        done.random += 1;
    }
    Ok(done)
}

/// The races: small, and each about another meeting.
pub const RACES: &[Setup] = &[
    Setup {
        parts: &[Part::Write(2), Part::Read(3)],
        lease: 0,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(3), Part::Checkpoint(&["passive", "restart"])],
        lease: 0,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Checkpoint(&["truncate"]), Part::Read(2)],
        lease: 0,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Checkpoint(&["restart"]), Part::Checkpoint(&["passive"]), Part::Write(2)],
        lease: 0,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Read(3)],
        lease: 60_000,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        lease: 60_000,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Checkpoint(&["passive", "truncate"]), Part::Read(3)],
        lease: 60_000,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Checkpoint(&["restart"]), Part::Write(2), Part::Read(2)],
        lease: 60_000,
        full: false,
        auto: 0,
        large: false,
        apart: false,
    },
    // Writers that share a sync.
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        lease: 0,
        full: true,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(1), Part::Write(2), Part::Write(1)],
        lease: 60_000,
        full: true,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(1), Part::Read(2)],
        lease: 0,
        full: true,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(1), Part::Write(2), Part::Checkpoint(&["truncate"])],
        lease: 60_000,
        full: true,
        auto: 0,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(3), Part::Write(2)],
        lease: 60_000,
        full: true,
        auto: 5,
        large: false,
        apart: false,
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(2), Part::Read(2)],
        lease: 0,
        full: false,
        auto: 5,
        large: false,
        apart: false,
    },
    // Large values, which overwrite free pages of the file. Who reads comes first: one preemption in the midst of it.
    Setup {
        parts: &[Part::Read(3), Part::Write(3)],
        lease: 0,
        full: false,
        auto: 0,
        large: true,
        apart: false,
    },
    Setup {
        parts: &[Part::Read(3), Part::Write(3)],
        lease: 60_000,
        full: false,
        auto: 0,
        large: true,
        apart: true,
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        lease: 60_000,
        full: true,
        auto: 0,
        large: true,
        apart: false,
    },
    Setup {
        parts: &[Part::Read(2), Part::Checkpoint(&["passive", "truncate"]), Part::Write(3)],
        lease: 0,
        full: false,
        auto: 0,
        large: true,
        apart: true,
    },
];

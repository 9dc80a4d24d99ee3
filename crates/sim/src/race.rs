//! Races: connections that meet on one file, under all schedules of few preemptions and under drawn ones.
//!
//! Each race is small and about another meeting: journal modes beside each other, checkpoints, kept locks, shared syncs, the
//! first to come after a crash, one who dies in the midst. Schedules are explored by how often a thread is taken off although it
//! could go on (a *preemption*): first never, then once at each place, then twice at each pair of places, in the order of the
//! calls; beyond that, seeded ones. Most races need one or two. Where one dies, it dies at each of its calls.
//!
//! What always holds afterwards: a reader saw one state, none older than what was acknowledged before; at the end, and after
//! crashes, all that was acknowledged is there, and nothing but what was begun.

use crate::baton::{Baton, Schedule, play_process, process, wait_for_others};
use crate::disk::{Disk, Event, Fault, Op};
use crate::image::{Files, Model};
use crate::rng::Rng;
use crate::script::large;
use crate::state;
use iolite::engine::{Code, Connection, OpenFlags, Value};
use iolite_os::{File, FileId, MemoryVfs, ShmRegion, Vfs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// What each connection does: statements, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Adds one to all rows, in one transaction, so many times.
    Write(usize),
    /// Reads all rows so many times; they must be equal, and not older than what was acknowledged before.
    Read(usize),
    /// Runs checkpoints of these modes.
    Checkpoint(&'static [&'static str]),
    /// Writes, and has the log begin anew, so many times.
    Renew(usize),
}

/// What a process that has died left behind before the race. The connections are opened in the race then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// There was none.
    Nothing,
    /// A log, and no index of it.
    Log,
    /// A journal in the midst of a transaction, part of which is in the file.
    Journal,
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
    /// Every connection is.
    pub processes: bool,
    /// The journal mode of each connection; none: WAL.
    pub modes: &'static [&'static str],
    /// `PRAGMA cache_size`: with a small one, transactions spill.
    pub cache: u32,
    /// This connection's process dies, at each of its calls in turn.
    pub dies: Option<usize>,
    /// What was there before.
    pub left: Left,
    /// Each transaction changes two files.
    pub files: bool,
    /// This connection may not write to the shared memory, and finds none where nobody else has it.
    pub guest: Option<usize>,
}

/// Connections of one process on a file in WAL mode.
const WAL: Setup = Setup {
    parts: &[],
    lease: 0,
    full: false,
    auto: 0,
    large: false,
    apart: false,
    processes: false,
    modes: &[],
    cache: 0,
    dies: None,
    left: Left::Nothing,
    files: false,
    guest: None,
};

/// Connections of processes of their own.
const PROCESSES: Setup = Setup { processes: true, full: true, ..WAL };

/// The process that has died before the race.
const DEAD: u32 = 99;

/// Rows on pages of their own.
const ROWS: i64 = 3;

/// The disk, as another process sees it: nothing tells that its files are the same.
struct Apart {
    inner: Arc<Disk>,
    guest: bool,
}

struct ApartFile {
    inner: Box<dyn File>,
    guest: bool,
}

impl File for ApartFile {
    fn identity(&self) -> Option<FileId> {
        None
    }
    fn shm_map(&self, index: usize, size: usize, extend: bool) -> iolite_base::Result<Option<ShmRegion>> {
        let region = self.inner.shm_map(index, size, extend && !self.guest)?;
        if self.guest && index == 0 && region.is_none() {
            return Err(Code::ReadonlyCantinit.into());
        }
        Ok(region)
    }
    fn shm_read_only(&self) -> bool {
        self.guest
    }
    iolite_os::pass_to_inner!(read write truncate sync size lock unlock check_reserved sector_size characteristics is_read_only has_moved shm_lock shm_barrier shm_unmap);
}

impl Vfs for Apart {
    fn name(&self) -> &str {
        "apart"
    }
    fn open(&self, path: Option<&Path>, flags: iolite_os::OpenFlags) -> iolite_base::Result<Box<dyn File>> {
        Ok(Box::new(ApartFile { inner: self.inner.open(path, flags)?, guest: self.guest }))
    }
    iolite_os::pass_to_inner!(delete access full_path clock entropy);
}

struct Shared {
    setup: Setup,
    disk: Arc<Disk>,
    /// Connections open one after the other: that is not the race.
    opening: Mutex<()>,
    /// Transactions acknowledged, and begun.
    acked: AtomicI64,
    begun: AtomicI64,
}

impl Shared {
    fn new(setup: Setup, seed: u64) -> Shared {
        Shared {
            setup,
            disk: Arc::new(Disk::new(seed)),
            opening: Mutex::default(),
            acked: AtomicI64::new(0),
            begun: AtomicI64::new(0),
        }
    }

    fn mode(&self, number: usize) -> &'static str {
        self.setup.modes.get(number).copied().unwrap_or("wal")
    }

    /// A connection in the journal mode of the one with this number.
    fn open(&self, apart: bool, number: usize) -> iolite::Result<Connection> {
        let Setup { full, auto, lease, large, cache, processes, files, .. } = self.setup;
        // Those who set up and look afterwards, outside of the race, are no guests.
        let guest = process() != 0 && process() != DEAD && self.setup.guest == Some(number);
        let vfs: Arc<dyn Vfs> = match apart || processes {
            true => Arc::new(Apart { inner: self.disk.clone(), guest }),
            false => self.disk.clone(),
        };
        let c = Connection::open_on(vfs, state::MAIN, OpenFlags::default())?;
        let mode = self.mode(number);
        let sync = match (full, mode) {
            (false, _) => "normal",
            (true, "delete") => "extra",
            (true, _) => "full",
        };
        let each = |db: &str| {
            format!(
                "PRAGMA {db}.page_size=512; PRAGMA {db}.cache_size={}; PRAGMA {db}.synchronous={sync}; \
                 PRAGMA {db}.journal_mode={mode};",
                if cache == 0 { 2000 } else { cache }
            )
        };
        c.execute_batch(&each("main"))?;
        if files {
            c.execute_batch(&format!("ATTACH '{}' AS aux; {}", state::AUX, each("aux")))?;
        }
        c.execute_batch(&format!(
            "PRAGMA wal_autocheckpoint={auto}; PRAGMA lock_lease_ms={lease}; PRAGMA large_value_direct={}",
            large as u8
        ))?;
        Ok(c)
    }

    fn value(&self, c: &Connection) -> Result<Option<i64>, String> {
        value(c, self.setup)
    }
}

/// Whether it is worth another attempt: somebody is in the way, or has attached himself to a log and not recovered it yet, which
/// a guest cannot do.
fn is_busy(e: &iolite::Error) -> bool {
    e.code().primary() == Code::Busy || e.code() == Code::ReadonlyRecovery
}

/// The number in all rows, of which the large value tells the same; `None`: busy.
fn value(c: &Connection, Setup { large, files, .. }: Setup) -> Result<Option<i64>, String> {
    // The first pages of it come from the cache, long chains past it.
    let whole = filler("v");
    let same = format!(
        " WHERE rowid > 1 OR substr(filler, 1, 2000) = substr({whole}, 1, 2000) AND filler = {whole}"
    );
    let same = if large { &same } else { "" };
    let (from, want) = match files {
        true => ("(SELECT v FROM main.t UNION ALL SELECT v FROM aux.t)", 2 * ROWS),
        false => ("t", ROWS),
    };
    let rows = match c.query(&format!("SELECT min(v), max(v), count(*) FROM {from}{same}"), &[]) {
        Ok(rows) => rows,
        Err(e) if is_busy(&e) => return Ok(None),
        Err(e) => return Err(format!("reading: {e:?}")),
    };
    match &rows[0][..] {
        [Value::Int(a), Value::Int(b), Value::Int(n)] if a == b && *n == want => Ok(Some(*a)),
        other => Err(format!("a snapshot that never was: {other:?}")),
    }
}

/// The large value that goes with a number.
fn filler(number: &str) -> String {
    large(&format!("char(65 + {number} % 26)"))
}

/// Adds to all rows.
fn step(by: u32, Setup { large, files, .. }: Setup) -> String {
    if files {
        return format!("BEGIN; UPDATE main.t SET v = v + {by}; UPDATE aux.t SET v = v + {by}; COMMIT");
    }
    let with =
        format!(", filler = CASE rowid WHEN 1 THEN {} ELSE filler END", filler(&format!("(v + {by})")));
    format!("UPDATE t SET v = v + {by}{}", if large { &with } else { "" })
}

/// A writer of a large value appends its commit and cannot publish it, as if it were killed; then another process writes
/// one. Whatever a loss of power leaves of that is one of the states. `anew`: the first one begins the log.
pub fn left_behind(seed: u64, anew: bool) -> Result<(), String> {
    let setup = Setup { large: true, full: true, ..WAL };
    let shared = Shared::new(setup, seed);
    let first = shared.prepare()?;
    let run = |c: &Connection, sql: &str| c.execute_batch(sql).map_err(|e| format!("{sql}: {e:?}"));
    let open = |apart| shared.open(apart, 0).map_err(|e| format!("open: {e:?}"));
    if !anew {
        run(&first, "CREATE TABLE u(x)")?;
    }
    let (killed, next) = (open(true)?, open(true)?);
    // The log before the file is written, (its header,) the file, the commit.
    let nth = 2 + anew as u64;
    let failing = Fault { op: Op::Sync, nth, persistent: false, code: Op::Sync.code() };
    shared.disk.set_fault(Some(failing));
    if run(&killed, &step(1, setup)).is_ok() || shared.disk.hits() == 0 {
        return Err("the sync of the first commit did not fail".into());
    }
    shared.disk.set_fault(None);
    let before = shared.disk.events().len();
    shared.disk.mark(Event::Begin(2));
    run(&next, &step(2, setup))?;
    shared.disk.mark(Event::Ack(2));
    survives(&shared.disk.events(), before, seed, setup)
}

impl Shared {
    /// The first connection, and the table.
    fn prepare(&self) -> Result<Connection, String> {
        let told = |e| format!("setting up: {e:?}");
        let first = self.open(false, 0).map_err(told)?;
        let run = |sql: &str| first.execute_batch(sql).map_err(told);
        for db in if self.setup.files { &["main", "aux"][..] } else { &["main"] } {
            run(&format!(
                "CREATE TABLE {db}.t(v INTEGER, filler BLOB); \
                 INSERT INTO {db}.t VALUES(0, zeroblob(300)), (0, zeroblob(300)), (0, zeroblob(300))"
            ))?;
        }
        if self.setup.large {
            // Two of a length: the second one leaves the pages of the first free, and neither is in the log.
            let put = |number| format!("UPDATE t SET filler = {} WHERE rowid = 1", filler(number));
            run(&format!("{}; {}; PRAGMA wal_checkpoint(TRUNCATE)", put("v + 1"), put("v")))?;
        }
        Ok(first)
    }

    /// A process that dies, and what it leaves behind.
    fn leave(&self) -> Result<(), String> {
        let told = |e| format!("leaving something behind: {e:?}");
        let died = play_process(DEAD, || {
            let c = self.open(false, 0).map_err(told)?;
            match self.setup.left {
                Left::Nothing => {}
                Left::Log => {
                    self.begun.store(1, SeqCst);
                    self.disk.mark(Event::Begin(1));
                    c.execute_batch(&step(1, self.setup)).map_err(told)?;
                    self.acked.store(1, SeqCst);
                    self.disk.mark(Event::Ack(1));
                }
                Left::Journal => {
                    let change = "PRAGMA cache_size = 1; BEGIN; UPDATE t SET v = v + 7; UPDATE t SET filler = zeroblob(900); \
                                  UPDATE t SET v = v + 7";
                    c.execute_batch(change).map_err(told)?;
                    let journal = self.disk.content(Path::new("main.db-journal"));
                    if journal.is_none_or(|j| j.first() != Some(&0xd9)) {
                        return Err("no hot journal was left behind".into());
                    }
                }
            }
            Ok::<_, String>(c)
        })?;
        self.disk.kill(DEAD);
        drop(died);
        Ok(())
    }

    /// Opens a connection in the midst of the race: others may be in the way.
    fn open_in_race(&self, number: usize) -> Result<Connection, String> {
        for _ in 0..100 {
            match self.open(false, number) {
                Err(e) if is_busy(&e) => wait_for_others(),
                other => return other.map_err(|e| format!("open: {e:?}")),
            }
        }
        Err("cannot open for others".into())
    }

    fn play(&self, part: Part, c: &Connection) -> Result<(), String> {
        let busy = |e: &iolite::Error| e.code().primary() == Code::Busy;
        match part {
            Part::Renew(n) => {
                for _ in 0..n {
                    self.play(Part::Write(1), c)?;
                    self.play(Part::Checkpoint(&["restart"]), c)?;
                }
            }
            Part::Write(n) => {
                for _ in 0..n {
                    let begun = self.begun.fetch_add(1, SeqCst) + 1;
                    self.disk.mark(Event::Begin(begun as usize));
                    match c.execute_batch(&step(1, self.setup)) {
                        Ok(()) => {
                            let acked = self.acked.fetch_add(1, SeqCst) + 1;
                            self.disk.mark(Event::Ack(acked as usize));
                        }
                        Err(e) if busy(&e) => {
                            if !c.is_autocommit() {
                                c.execute_batch("ROLLBACK").map_err(|e| format!("rollback: {e:?}"))?;
                            }
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
                for &m in modes {
                    match c.query(&format!("PRAGMA wal_checkpoint({m})"), &[]) {
                        Err(e) if busy(&e) => {}
                        Err(e) => return Err(format!("checkpoint {m}: {e:?}")),
                        Ok(rows) => {
                            let [stopped, log, copied] = [0, 1, 2].map(|i| rows[0][i].to_int());
                            if m != "passive" && stopped == 0 && log != copied {
                                return Err(format!("checkpoint {m}: {copied} of {log} frames, not busy"));
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The value in these files, after recovery.
fn value_in(files: &Files, setup: Setup) -> Result<i64, String> {
    let vfs = MemoryVfs::new();
    files.iter().for_each(|(path, data)| vfs.put(path, data.clone()));
    let c = Connection::open_on(Arc::new(vfs), state::MAIN, OpenFlags::default())
        .map_err(|e| format!("open: {e:?}"))?;
    if setup.files {
        c.execute_batch(&format!("ATTACH '{}' AS aux", state::AUX)).map_err(|e| format!("attach: {e:?}"))?;
    }
    let found = value(&c, setup)?.ok_or_else(|| "busy".to_string());
    if setup.large || setup.processes {
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
fn survives(events: &[Event], from: usize, seed: u64, setup: Setup) -> Result<(), String> {
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
            wrong = match value_in(&files, setup) {
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

/// Runs a race once; with `power`, looks at losses of power, too. Answers how many hand-overs there were, of all and of each.
fn run(setup: Setup, seed: u64, schedule: Schedule, power: bool) -> Result<(usize, Vec<usize>), String> {
    let shared = Arc::new(Shared::new(setup, seed));
    let mut first = Some(shared.prepare()?);
    if setup.left != Left::Nothing {
        // Nobody is there when the race begins: the first one to come finds out what has to be done.
        first = None;
        shared.leave()?;
    }
    let before = shared.disk.events().len();
    let baton = Baton::new(setup.parts.len(), schedule);
    let (mut results, mut looked) = (Vec::new(), Ok(()));
    std::thread::scope(|scope| {
        let (opened, all_open) = std::sync::mpsc::channel();
        let threads: Vec<_> = setup
            .parts
            .iter()
            .enumerate()
            .map(|(me, &part)| {
                let (shared, baton, opened) = (shared.clone(), baton.clone(), opened.clone());
                let process = if setup.processes { me as u32 + 1 } else { 0 };
                let play = move || {
                    // The schema is read, and the first lock kept, before the race.
                    let ready = (setup.left == Left::Nothing).then(|| {
                        let _opening = shared.opening.lock().unwrap_or_else(PoisonError::into_inner);
                        let c = shared
                            .open(setup.apart && me % 2 == 1, me)
                            .map_err(|e| format!("open: {e:?}"))?;
                        shared.value(&c).map(|_| c)
                    });
                    let _ = opened.send(());
                    let done = baton.take_part(me, &shared.disk, || {
                        catch_unwind(AssertUnwindSafe(|| {
                            let c = ready.unwrap_or_else(|| shared.open_in_race(me))?;
                            let done = shared.play(part, &c);
                            drop(c);
                            done
                        }))
                    });
                    let done = done.unwrap_or_else(|_| Err("a panic".into()));
                    // Who has died says nothing any more.
                    if baton.died(me) { Ok(()) } else { done }
                };
                scope.spawn(move || play_process(process, play))
            })
            .collect();
        for _ in &threads {
            let _ = all_open.recv();
        }
        baton.run();
        // Those who died have not moved since.
        looked = look(&shared, first.take(), seed, before, power, baton.calls());
        baton.end();
        results = threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a panic".into()))).collect();
    });
    for (i, r) in results.into_iter().enumerate() {
        r.map_err(|e| format!("connection {i}: {e}"))?;
    }
    looked?;
    baton.calls().ok_or_else(|| "nobody gets anywhere".into())
}

/// What is there when all have come to an end.
fn look(
    shared: &Shared,
    first: Option<Connection>,
    seed: u64,
    before: usize,
    power: bool,
    calls: Option<(usize, Vec<usize>)>,
) -> Result<(), String> {
    let setup = shared.setup;
    if calls.is_none() {
        return Err("nobody gets anywhere".into());
    }
    // What is left now is what a kill of all would leave; a loss of power may leave less.
    let (acked, begun) = (shared.acked.load(SeqCst), shared.begun.load(SeqCst));
    let mut model = Model::new();
    shared.disk.events().iter().for_each(|e| model.apply(e));
    let killed = value_in(&model.current(), setup).map_err(|e| format!("killed: {e}"))?;
    if !(acked..=begun).contains(&killed) {
        return Err(format!("killed, {killed} is left, acknowledged {acked}, begun {begun}"));
    }
    if power && setup.full {
        survives(&shared.disk.events(), before, seed, setup)?;
    }
    // A log whose counts are wrong may show it only to those who write on.
    let first = match first {
        Some(c) => c,
        None => shared.open(false, 0).map_err(|e| format!("at the end: {e:?}"))?,
    };
    let mut now = shared.value(&first)?.ok_or("at the end: busy")?;
    if !(acked..=begun).contains(&now) {
        return Err(format!("at the end, {now} is read, acknowledged {acked}, begun {begun}"));
    }
    for _ in 0..2 {
        first.execute_batch(&step(1, setup)).map_err(|e| format!("at the end: {e:?}"))?;
        now += 1;
        let read = shared.value(&first)?;
        if read != Some(now) {
            return Err(format!("at the end, {read:?} instead of {now}"));
        }
    }
    // Killed now, all acknowledged is there.
    let mut model = Model::new();
    shared.disk.events().iter().for_each(|e| model.apply(e));
    let killed = state::recover(&model.current())?;
    drop(first);
    let closed = state::recover_on(shared.disk.clone(), &|f| setup.files && f == state::AUX)?;
    if killed != closed {
        return Err(format!("killed and closed differ: {}", crate::crash::differing(&closed, &killed)));
    }
    Ok(())
}

/// How many schedules were run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Schedules {
    /// With none, one and two preemptions, or two and then turns.
    pub systematic: u64,
    /// In which a process died, with none or one preemption.
    pub deaths: u64,
    /// Drawn.
    pub random: u64,
}

/// How many schedules to look at.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// One preemption, or a death, at every so many places.
    pub every: usize,
    /// A second one, where the first is at every so many places; 0: none.
    pub pairs: usize,
    /// Drawn ones.
    pub drawn: u64,
}

/// Runs a race under schedules with up to two preemptions, and under drawn ones. Where one dies, it does so at its calls,
/// without a preemption and with one, and in half of the drawn ones.
pub fn explore(setup: Setup, seed: u64, search: Search) -> Result<Schedules, String> {
    let Search { every, pairs: stride, drawn: random } = search;
    let mut done = Schedules::default();
    let others = setup.parts.len() - 1;
    let told = |what: String, schedule: &Schedule| format!("{setup:?} seed {seed} {schedule:?}: {what}");
    let go = |schedule: Schedule, power: bool| {
        run(setup, seed, schedule.clone(), power).map_err(|e| told(e, &schedule))
    };
    let mut with = |switches: Vec<(usize, usize)>, in_turns: Option<usize>| {
        done.systematic += 1;
        // An image of a large value takes ten times as long.
        let looked_at = !setup.large || switches.first().is_none_or(|s| s.0 % 24 == 0);
        let power = switches.len() < 2 && looked_at;
        go(Schedule { switches, in_turns, ..Schedule::default() }, power)
    };
    let (calls, own) = with(Vec::new(), None)?;
    for first in (0..calls).step_by(every) {
        for to in 0..others {
            let (calls, _) = with(vec![(first, to)], None)?;
            if stride == 0 || first % stride != 0 {
                continue;
            }
            for second in first + 1..calls {
                for back in 0..others {
                    with(vec![(first, to), (second, back)], None)?;
                    if setup.guest.is_some() {
                        // What goes wrong here takes a third one.
                        with(vec![(first, to), (second, back)], Some(second + 1))?;
                    }
                }
            }
        }
    }
    if let Some(who) = setup.dies {
        for at in (0..own[who]).step_by(every) {
            let death = Some((who, at));
            done.deaths += 1;
            go(Schedule { death, ..Schedule::default() }, true)?;
            if stride == 0 {
                continue;
            }
            for (first, to) in
                (at % stride..calls).step_by(stride).flat_map(|f| (0..others).map(move |t| (f, t)))
            {
                done.deaths += 1;
                go(Schedule { death, switches: vec![(first, to)], ..Schedule::default() }, false)?;
            }
        }
    }
    for i in 0..random {
        let mut rng = Rng::new(seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let power = !setup.large || i % 16 == 0;
        let death = setup.dies.filter(|_| i % 2 == 0).map(|who| (who, rng.below(own[who] as u64) as usize));
        go(Schedule { random: Some(rng), death, ..Schedule::default() }, power)?;
        done.random += 1;
    }
    Ok(done)
}

/// The races: small, and each about another meeting.
pub const RACES: &[Setup] = &[
    Setup { parts: &[Part::Write(2), Part::Read(3)], ..WAL },
    Setup { parts: &[Part::Write(3), Part::Checkpoint(&["passive", "restart"])], ..WAL },
    Setup { parts: &[Part::Write(2), Part::Checkpoint(&["truncate"]), Part::Read(2)], ..WAL },
    Setup { parts: &[Part::Checkpoint(&["restart"]), Part::Checkpoint(&["passive"]), Part::Write(2)], ..WAL },
    Setup { parts: &[Part::Write(2), Part::Read(3)], lease: 60_000, ..WAL },
    Setup { parts: &[Part::Write(2), Part::Write(2)], lease: 60_000, ..WAL },
    Setup {
        parts: &[Part::Write(2), Part::Checkpoint(&["passive", "truncate"]), Part::Read(3)],
        lease: 60_000,
        ..WAL
    },
    Setup { parts: &[Part::Checkpoint(&["restart"]), Part::Write(2), Part::Read(2)], lease: 60_000, ..WAL },
    // Writers that share a sync.
    Setup { parts: &[Part::Write(2), Part::Write(2)], full: true, ..WAL },
    Setup { parts: &[Part::Write(1), Part::Write(2), Part::Write(1)], lease: 60_000, full: true, ..WAL },
    Setup { parts: &[Part::Write(2), Part::Write(1), Part::Read(2)], full: true, ..WAL },
    Setup {
        parts: &[Part::Write(1), Part::Write(2), Part::Checkpoint(&["truncate"])],
        lease: 60_000,
        full: true,
        ..WAL
    },
    Setup { parts: &[Part::Write(3), Part::Write(2)], lease: 60_000, full: true, auto: 5, ..WAL },
    Setup { parts: &[Part::Write(2), Part::Write(2), Part::Read(2)], auto: 5, ..WAL },
    // Large values, which overwrite free pages of the file. Who reads comes first: one preemption in the midst of it.
    Setup { parts: &[Part::Read(3), Part::Write(3)], large: true, ..WAL },
    Setup { parts: &[Part::Read(3), Part::Write(3)], lease: 60_000, large: true, apart: true, ..WAL },
    Setup { parts: &[Part::Write(2), Part::Write(2)], lease: 60_000, full: true, large: true, ..WAL },
    Setup {
        parts: &[Part::Read(2), Part::Checkpoint(&["passive", "truncate"]), Part::Write(3)],
        large: true,
        apart: true,
        ..WAL
    },
    // Processes in rollback modes: PENDING, journals that are kept, cut and removed beside each other.
    Setup { parts: &[Part::Write(2), Part::Write(2)], modes: &["delete", "delete"], ..PROCESSES },
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        modes: &["truncate", "delete"],
        cache: 1,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        modes: &["persist", "delete"],
        cache: 1,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        modes: &["persist", "truncate"],
        cache: 1,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(2), Part::Read(2), Part::Write(1)],
        modes: &["delete", "delete", "truncate"],
        cache: 1,
        ..PROCESSES
    },
    // The first to come finds a hot journal, and may die while it plays that back.
    Setup {
        parts: &[Part::Read(1), Part::Read(1)],
        modes: &["delete", "delete"],
        left: Left::Journal,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(1), Part::Write(1)],
        modes: &["truncate", "persist"],
        left: Left::Journal,
        dies: Some(0),
        ..PROCESSES
    },
    // The first to come finds a log without an index.
    Setup { parts: &[Part::Read(1), Part::Write(1)], left: Left::Log, dies: Some(1), ..PROCESSES },
    Setup {
        parts: &[Part::Write(1), Part::Checkpoint(&["passive"])],
        left: Left::Log,
        dies: Some(1),
        ..PROCESSES
    },
    // One dies in the midst of a commit, a checkpoint, a restart of the log.
    Setup { parts: &[Part::Write(2), Part::Write(2)], dies: Some(0), ..PROCESSES },
    Setup {
        parts: &[Part::Write(1), Part::Checkpoint(&["restart", "truncate"]), Part::Read(2)],
        dies: Some(1),
        ..PROCESSES
    },
    Setup { parts: &[Part::Write(3), Part::Write(2)], auto: 3, dies: Some(0), ..PROCESSES },
    // Two files in one transaction.
    Setup {
        parts: &[Part::Write(2), Part::Write(2)],
        modes: &["delete", "delete"],
        files: true,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(1), Part::Read(2)],
        modes: &["truncate", "delete"],
        files: true,
        cache: 1,
        dies: Some(0),
        ..PROCESSES
    },
    Setup {
        parts: &[Part::Write(2), Part::Read(2)],
        modes: &["persist", "persist"],
        files: true,
        cache: 1,
        ..PROCESSES
    },
    // A reader without an index of the log, and somebody who comes meanwhile and has the log begin anew.
    Setup { parts: &[Part::Read(2), Part::Renew(3)], left: Left::Log, guest: Some(0), ..PROCESSES },
];

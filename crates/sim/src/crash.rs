//! Crashes: every image of every moment is recovered and compared with what `PRAGMA synchronous` allows.
//!
//! States are numbered by the steps of the script. At each moment there is a *floor*, the newest step that
//! must survive, and a top, the step under way. What lies in between is allowed:
//!
//! | journal | synchronous | a step is on the floor |
//! |---|---|---|
//! | any | OFF | never: no promise after a power loss |
//! | DELETE | EXTRA | when it was acknowledged |
//! | DELETE | NORMAL, FULL | once the directory was synced after it: the journal's deletion may be lost |
//! | TRUNCATE | FULL, EXTRA | when it was acknowledged |
//! | TRUNCATE | NORMAL | once the journal was synced after it |
//! | PERSIST | NORMAL and above | when it was acknowledged |
//! | WAL | FULL, EXTRA | when it was acknowledged |
//! | WAL | NORMAL | once the log was synced after it |
//! | MEMORY, OFF | NORMAL and above | when it was acknowledged, until the next one begins to write: a crash in the midst of a transaction may leave anything |
//!
//! A crash of the process alone leaves all that was written: the newest acknowledged step must be there, or
//! the one under way (not with MEMORY and OFF in the midst of a transaction).

use crate::disk::{Disk, Event, Lie};
use crate::image::{Files, Model, digest_of};
use crate::rng::Rng;
use crate::script::{Act, Record, Setting, record};
use crate::state;
use iolite_os::FileKind;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// How hard to look.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Images of a moment where there are too many for all.
    pub samples: usize,
    /// Of 1000 new images, how many are also crashed in the midst of their recovery.
    pub nested: u64,
    /// Of 1000 new images, how many stock SQLite recovers, too.
    pub stock: u64,
}

impl Effort {
    /// As far as the issue asks.
    pub fn full() -> Effort {
        Effort { samples: 64, nested: 20, stock: 10 }
    }

    /// What fits into a test run.
    pub fn quick() -> Effort {
        Effort { samples: 12, nested: 4, stock: 2 }
    }
}

/// What was looked at.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Moments.
    pub points: u64,
    /// Images made.
    pub images: u64,
    /// Images that no other moment had, recovered.
    pub recoveries: u64,
    /// Images recovered after a second crash, in the midst of the first recovery.
    pub nested: u64,
    /// Images recovered by stock SQLite.
    pub stock: u64,
    /// Runs with a fault.
    pub faults: u64,
}

impl Counts {
    /// Adds.
    pub fn add(&mut self, o: Counts) {
        self.points += o.points;
        self.images += o.images;
        self.recoveries += o.recoveries;
        self.nested += o.nested;
        self.stock += o.stock;
        self.faults += o.faults;
    }
}

/// What a step waits for before it can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Needs {
    Nothing,
    Directory,
    Journal,
    Log,
    /// Nothing makes it safe while others write.
    Quiet,
    Never,
}

fn needs(mode: &str, sync: &str) -> Needs {
    match (mode, sync) {
        (_, "off") => Needs::Never,
        ("memory" | "off", _) => Needs::Quiet,
        ("delete", "extra") => Needs::Nothing,
        ("delete", _) => Needs::Directory,
        ("truncate", "normal") => Needs::Journal,
        ("wal", "normal") => Needs::Log,
        _ => Needs::Nothing,
    }
}

/// The modes in force during each step.
fn modes(record: &Record) -> Vec<&'static str> {
    let mut mode = record.setting.mode;
    let mut all = vec![mode];
    for act in &record.steps {
        if let Act::Sql(s) = act
            && let Some(m) = s.strip_prefix("PRAGMA journal_mode=")
        {
            mode = crate::script::MODES.into_iter().find(|x| *x == m).unwrap_or(mode);
        }
        all.push(mode);
    }
    all
}

/// Where a record stands at one moment.
struct Moment {
    model: Model,
    modes: Vec<&'static str>,
    sync: &'static str,
    kinds: HashMap<u32, FileKind>,
    /// The newest step begun, and the newest acknowledged.
    begun: usize,
    acked: usize,
    floor: usize,
    /// Acknowledged steps above the floor, what each waits for, and for which journals.
    waiting: Vec<(usize, Needs, HashSet<u32>)>,
    /// Journals that were cut and not synced since.
    loose: HashSet<u32>,
    /// In a mode without a journal on disk: the database was written since the last step ended.
    unsafe_now: bool,
}

impl Moment {
    fn new(record: &Record) -> Moment {
        let mut model = Model::new();
        model.ordered_journals = record.setting.sync == "normal";
        Moment {
            model,
            modes: modes(record),
            sync: record.setting.sync,
            kinds: HashMap::new(),
            begun: 0,
            acked: 0,
            floor: 0,
            waiting: Vec::new(),
            loose: HashSet::new(),
            unsafe_now: false,
        }
    }

    fn mode(&self) -> &'static str {
        self.modes[self.begun]
    }

    fn reached(&mut self, what: Needs) {
        for w in &mut self.waiting {
            if w.1 == what {
                w.1 = Needs::Nothing;
            }
        }
        self.raise_floor();
    }

    fn raise_floor(&mut self) {
        while let Some((step, Needs::Nothing, _)) = self.waiting.first() {
            self.floor = *step;
            self.waiting.remove(0);
        }
    }

    fn apply(&mut self, e: &Event) {
        self.model.apply(e);
        match e {
            Event::Create { file, kind, .. } => drop(self.kinds.insert(*file, *kind)),
            Event::Begin(n) => self.begun = *n,
            Event::Ack(n) => {
                self.acked = *n;
                let needs = match needs(self.mode(), self.sync) {
                    Needs::Journal if self.loose.is_empty() => Needs::Nothing,
                    other => other,
                };
                self.waiting.push((*n, needs, self.loose.clone()));
                self.raise_floor();
                self.unsafe_now = false;
            }
            Event::SyncDir => self.reached(Needs::Directory),
            Event::Sync { file } => match self.kinds.get(file) {
                Some(FileKind::Journal) => {
                    self.loose.remove(file);
                    for w in &mut self.waiting {
                        if w.1 == Needs::Journal && w.2.remove(file) && w.2.is_empty() {
                            w.1 = Needs::Nothing;
                        }
                    }
                    self.raise_floor();
                }
                Some(FileKind::Wal) => self.reached(Needs::Log),
                _ => {}
            },
            Event::Write { file, .. } | Event::Truncate { file, .. } => {
                if matches!(e, Event::Truncate { .. }) && self.kinds.get(file) == Some(&FileKind::Journal) {
                    self.loose.insert(*file);
                }
                let unguarded = matches!(self.mode(), "memory" | "off");
                if unguarded && self.kinds.get(file) == Some(&FileKind::MainDb) {
                    self.unsafe_now = true;
                }
            }
            Event::Delete { .. } => {}
        }
    }

    /// The states allowed after a power loss; `None`: anything.
    fn after_power_loss(&self) -> Option<std::ops::RangeInclusive<usize>> {
        if self.sync == "off" || self.unsafe_now {
            return None;
        }
        let mut floor = self.floor;
        if matches!(self.mode(), "memory" | "off") {
            if self.begun != self.acked {
                return None;
            }
            floor = self.acked;
        }
        Some(floor..=self.begun)
    }

    /// The states allowed after a crash of the process.
    fn after_crash(&self) -> Option<std::ops::RangeInclusive<usize>> {
        (!self.unsafe_now).then_some(self.acked..=self.begun)
    }
}

/// Remembers what each image recovers to.
#[derive(Default)]
pub struct Verdicts(HashMap<u64, Result<String, String>>);

impl Verdicts {
    fn of(&mut self, files: &Files, counts: &mut Counts) -> (bool, u64, Result<String, String>) {
        let key = digest_of(files);
        if let Some(v) = self.0.get(&key) {
            return (false, key, v.clone());
        }
        counts.recoveries += 1;
        let v = state::recover(files);
        self.0.insert(key, v.clone());
        (true, key, v)
    }
}

/// Crashes a record at every event from `from` on. The error says where, and what was found.
pub fn check(record: &Record, effort: Effort, from: usize) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut verdicts = Verdicts::default();
    let mut m = Moment::new(record);
    let seed = record.setting.seed;
    let last = record.events.len();
    for (at, e) in record.events.iter().enumerate() {
        m.apply(e);
        if at < from || matches!(e, Event::Begin(_)) {
            continue;
        }
        let (acked, begun, floor) = (m.acked, m.begun, m.floor);
        let place = |what: &str| {
            let step = begun.checked_sub(1).map_or("opening".into(), |i| format!("{:?}", record.steps[i]));
            let s = &record.setting;
            format!(
                "{what} at event {at} of {last} ({}), mode {} synchronous {} auto_vacuum {} exclusive {} seed {}, step {begun}: \
                 {step} (acknowledged {acked}, floor {floor})",
                short(e),
                s.mode,
                s.sync,
                s.auto_vacuum,
                s.exclusive,
                s.seed
            )
        };
        // A commit that waits for its own journal's next sync may be lost where a later one of another file
        // is not.
        let apart = needs(m.mode(), m.sync) == Needs::Journal;
        let fits = |allowed: &std::ops::RangeInclusive<usize>, content: &str| {
            let mut states = allowed.clone().filter_map(|i| record.states.get(i));
            if apart {
                let (main, aux) = parts(content);
                return states.clone().any(|s| parts(s).0 == main) && states.any(|s| parts(s).1 == aux);
            }
            states.any(|s| s == content)
        };
        counts.points += 1;
        let mut wrong: Option<String> = None;
        if let Some(allowed) = m.after_crash() {
            let files = m.model.current();
            counts.images += 1;
            let (_, key, got) = verdicts.of(&files, &mut counts);
            wrong = judge(&got, &allowed, &fits, record).map(|w| {
                format!("{}\nimage {key:016x}: {w}\n{}", place("crash of the process"), listing(&files))
            });
        }
        let Some(allowed) = m.after_power_loss() else {
            match wrong {
                Some(w) => return Err(w),
                None => continue,
            }
        };
        let point_seed = seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Rng::new(point_seed ^ 0x5eed);
        let mut number = 0;
        // Without a journal nobody ever syncs the directory, in SQLite neither: the name of a new database
        // may be missing.
        let nameless = matches!(m.mode(), "memory" | "off");
        if wrong.is_none() {
            m.model.images(point_seed, effort.samples, &mut |files, names_kept| {
                if nameless && !names_kept {
                    return true;
                }
                counts.images += 1;
                number += 1;
                let (new, key, got) = verdicts.of(&files, &mut counts);
                wrong = judge(&got, &allowed, &fits, record);
                let mut how = "power loss";
                if wrong.is_none() && new && rng.below(1000) < effort.nested {
                    how = "power loss, and another one in the recovery,";
                    wrong = again(&files, rng.next(), &allowed, &fits, record, &mut counts);
                }
                // A super-journal's names mean nothing in another folder.
                let portable = !files.keys().any(|p| p.to_string_lossy().contains("-mj"));
                if wrong.is_none() && new && portable && rng.below(1000) < effort.stock {
                    how = "power loss, recovered by stock SQLite,";
                    counts.stock += 1;
                    wrong = judge(&crate::state::stock_recover(&files, key), &allowed, &fits, record);
                }
                if let Some(w) = &wrong {
                    wrong =
                        Some(format!("{}\nimage {number} {key:016x}: {w}\n{}", place(how), listing(&files)));
                }
                wrong.is_none()
            });
        }
        if let Some(w) = wrong {
            return Err(w);
        }
    }
    Ok(counts)
}

/// The contents of the two databases.
fn parts(content: &str) -> (&str, &str) {
    content.split_at(content.find("database aux\n").unwrap_or(content.len()))
}

/// Lets each sync of a kind (every `stride`-th) be a lie, one after the other, and answers how many of them
/// were caught by the crashes that follow, and how many there were. At least one of each kind must be: else
/// the simulator proves nothing.
pub fn lies(
    setting: Setting,
    steps: &[Act],
    of: Option<FileKind>,
    stride: usize,
) -> Result<(u64, u64), String> {
    let run = |nth| {
        let disk = Arc::new(Disk::new(setting.seed));
        disk.set_lie(Some(Lie { of, nth: Some(nth) }));
        let r = record(disk.clone(), setting, steps.to_vec())?;
        Ok::<_, String>((r, disk.lies()))
    };
    let (_, total) = run(u64::MAX)?;
    let (mut caught, mut all) = (0, 0);
    for nth in (0..total).step_by(stride) {
        caught += check(&run(nth)?.0, Effort { nested: 0, stock: 0, ..Effort::quick() }, 0).is_err() as u64;
        all += 1;
    }
    Ok((caught, all))
}

fn short(e: &Event) -> String {
    match e {
        Event::Write { file, offset, data } => {
            format!("write of {} bytes at {offset} to file {file}", data.len())
        }
        other => format!("{other:?}"),
    }
}

fn listing(files: &Files) -> String {
    let mut out = String::from("files:");
    for (p, data) in files {
        out.push_str(&format!(" {} ({} bytes)", p.display(), data.len()));
    }
    out
}

/// `None`: as it should be.
fn judge(
    got: &Result<String, String>,
    allowed: &std::ops::RangeInclusive<usize>,
    fits: &dyn Fn(&std::ops::RangeInclusive<usize>, &str) -> bool,
    record: &Record,
) -> Option<String> {
    match got {
        Err(e) => Some(e.clone()),
        Ok(content) if fits(allowed, content) => None,
        Ok(content) => Some(match record.states.iter().rposition(|s| s == content) {
            Some(i) => format!("the state after step {i}, allowed are {allowed:?}"),
            None => format!(
                "a state that never was, allowed are {allowed:?}: {}",
                differing(&record.states[(*allowed.end()).min(record.states.len() - 1)], content)
            ),
        }),
    }
}

/// The lines in which two contents differ.
pub fn differing(want: &str, got: &str) -> String {
    let (a, b): (HashSet<&str>, HashSet<&str>) = (want.lines().collect(), got.lines().collect());
    let mut out = String::new();
    for l in want.lines().filter(|l| !b.contains(l)).take(4) {
        out.push_str(&format!("\n  missing  {l}"));
    }
    for l in got.lines().filter(|l| !a.contains(l)).take(4) {
        out.push_str(&format!("\n  too much {l}"));
    }
    out
}

/// Crashes once more, at every event of the recovery.
fn again(
    files: &Files,
    seed: u64,
    allowed: &std::ops::RangeInclusive<usize>,
    fits: &dyn Fn(&std::ops::RangeInclusive<usize>, &str) -> bool,
    record: &Record,
    counts: &mut Counts,
) -> Option<String> {
    let disk = Arc::new(Disk::holding(seed, files));
    let settled = disk.event_count();
    let there = |f: &str| files.get(Path::new(f)).is_some_and(|f| !f.is_empty());
    if let Err(e) = state::recover_on(disk.clone(), &there) {
        return Some(format!("recorded recovery: {e}"));
    }
    let mut model = Model::new();
    let mut seen = HashSet::new();
    let mut wrong = None;
    for (at, e) in disk.take_events().iter().enumerate() {
        model.apply(e);
        if at + 1 < settled {
            continue;
        }
        model.images(seed ^ at as u64, 8, &mut |files, _| {
            if seen.insert(digest_of(&files)) {
                counts.nested += 1;
                wrong = judge(&state::recover(&files), allowed, fits, record)
                    .map(|w| format!("second crash at event {at} of the recovery ({}): {w}", short(e)));
            }
            wrong.is_none()
        });
        if wrong.is_some() {
            break;
        }
    }
    wrong
}

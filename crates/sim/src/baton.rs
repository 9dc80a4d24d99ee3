//! Who runs: connections are threads, of which one runs at a time. Whoever calls the disk hands the baton over, and a
//! [`Schedule`] says who goes on, and who dies: each interleaving of calls can be repeated.
//!
//! What always holds: exactly one registered thread runs between two hand-overs; a thread that waits (sleeps,
//! or was told that something is busy) lets the others run first. What happens between two calls to the disk
//! is not interleaved: stores to the shared memory are seen in their order, as on one processor. A thread that dies
//! stops where it is, in the midst of whatever it was doing; its locks are gone, and what it does after the race is over
//! reaches no disk.

use crate::disk::Disk;
use crate::rng::Rng;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Who goes on at which hand-over.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// At which hand-overs another thread goes on, and which of the others.
    pub switches: Vec<(usize, usize)>,
    /// From this hand-over on, another thread goes on at each.
    pub in_turns: Option<usize>,
    /// Instead of switches: who goes on is drawn.
    pub random: Option<Rng>,
    /// Which thread dies, and at which of its own hand-overs.
    pub death: Option<(usize, usize)>,
}

/// Who takes part, and who runs.
pub struct Baton {
    state: Mutex<Race>,
    changed: Condvar,
}

struct Race {
    running: usize,
    alive: Vec<bool>,
    /// Hand-overs so far: of all, and of each.
    calls: usize,
    own: Vec<usize>,
    schedule: Schedule,
    /// Too many hand-overs: nobody gets anywhere.
    stuck: bool,
    /// All has been looked at: those who died may end.
    over: bool,
}

/// Nobody: before the race, and after it.
const NOBODY: usize = usize::MAX;
/// Beyond so many calls, threads wait for each other in vain.
const PATIENCE: usize = 20_000;

#[derive(Clone)]
struct Me {
    baton: Arc<Baton>,
    number: usize,
    disk: Arc<Disk>,
}

thread_local! {
    static ME: RefCell<Option<Me>> = const { RefCell::new(None) };
    static PROCESS: Cell<u32> = const { Cell::new(0) };
}

/// The process that this thread plays; 0 is one that never dies.
pub fn process() -> u32 {
    PROCESS.get()
}

/// Plays a process on this thread.
pub fn play_process<T>(process: u32, f: impl FnOnce() -> T) -> T {
    let before = PROCESS.replace(process);
    let done = f();
    PROCESS.set(before);
    done
}

impl Baton {
    /// A race of `n` threads that has not begun.
    pub fn new(n: usize, schedule: Schedule) -> Arc<Baton> {
        Arc::new(Baton {
            state: Mutex::new(Race {
                running: NOBODY,
                alive: vec![true; n],
                calls: 0,
                own: vec![0; n],
                schedule,
                stuck: false,
                over: false,
            }),
            changed: Condvar::new(),
        })
    }

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

    /// Nothing more comes of `me`.
    fn leave(&self, race: &mut Race, me: usize) {
        race.alive[me] = false;
        race.running = Baton::others(race, me).first().copied().unwrap_or(NOBODY);
        self.changed.notify_all();
    }

    /// Waits for the turn of thread `number`, then does its part. If it dies on the way, this returns when the race is
    /// over.
    pub fn take_part<T>(self: &Arc<Baton>, number: usize, disk: &Arc<Disk>, part: impl FnOnce() -> T) -> T {
        let mut race = self.race();
        while race.running != number {
            race = self.changed.wait(race).unwrap_or_else(PoisonError::into_inner);
        }
        drop(race);
        ME.set(Some(Me { baton: self.clone(), number, disk: disk.clone() }));
        let done = part();
        ME.set(None);
        let mut race = self.race();
        if race.alive[number] {
            self.leave(&mut race, number);
        }
        done
    }

    /// Lets the first thread run, and waits until all have come to an end.
    pub fn run(&self) {
        let mut race = self.race();
        race.running = 0;
        self.changed.notify_all();
        while race.running != NOBODY {
            race = self.changed.wait(race).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Those who died may end.
    pub fn end(&self) {
        self.race().over = true;
        self.changed.notify_all();
    }

    /// Whether a thread was still alive at the end.
    pub fn died(&self, number: usize) -> bool {
        let race = self.race();
        race.schedule.death.is_some_and(|d| d.0 == number && race.own[number] > d.1)
    }

    /// Hand-overs, and those of each thread; `None`: they waited for each other in vain.
    pub fn calls(&self) -> Option<(usize, Vec<usize>)> {
        let race = self.race();
        (!race.stuck).then(|| (race.calls, race.own.clone()))
    }
}

fn with_baton(f: impl FnOnce(&Me)) {
    let mine = ME.with(|m| m.borrow().clone());
    if let Some(me) = mine {
        f(&me);
    }
}

/// A thread of a race is about to call the disk.
pub fn hand_over() {
    with_baton(|Me { baton, number: me, disk }| {
        let me = *me;
        let mut race = baton.race();
        if !race.alive[me] {
            return;
        }
        let (call, own) = (race.calls, race.own[me]);
        race.calls += 1;
        race.own[me] += 1;
        race.stuck |= call > PATIENCE;
        if race.schedule.death == Some((me, own)) {
            disk.kill(process());
            baton.leave(&mut race, me);
            while !race.over {
                race = baton.changed.wait(race).unwrap_or_else(PoisonError::into_inner);
            }
            return;
        }
        let others = Baton::others(&race, me);
        if others.is_empty() {
            return;
        }
        let turns = race.schedule.in_turns.is_some_and(|from| call >= from);
        let next = match &mut race.schedule.random {
            Some(rng) => rng.percent(30).then(|| others[rng.below(others.len() as u64) as usize]),
            None if turns => Some(others[0]),
            None => {
                let hit = race.schedule.switches.iter().find(|s| s.0 == call);
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
    with_baton(|Me { baton, number: me, .. }| {
        let mut race = baton.race();
        race.calls += 1;
        race.stuck |= race.calls > PATIENCE;
        if race.alive[*me]
            && let Some(&next) = Baton::others(&race, *me).first()
        {
            baton.pass(race, *me, next);
        }
    });
}

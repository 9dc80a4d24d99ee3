//! Group commit: the writers of one process on one log, and whose turn it is.
//!
//! SQLite's writers are serial, and at `synchronous=FULL` each holds the write lock while it waits for the disk. Here a
//! writer lets go of its turn once its frames are written: the next one starts on that unpublished *head*, and one sync,
//! then one header, publishes all that was appended meanwhile. A sync costs some 100 us, a small commit's own work 10.
//!
//! ```text
//! writer     turn | frames written | turn over, waits ...................... | committed
//! next one          ....waits..... | turn | frames written | turn over, waits | committed
//! disk                             | sync of the first ....| sync of both     |
//! wal-index                                       header of the first ^       ^ header of both
//! write lock ======================================================================== (one, of all)
//! ```
//!
//! What always holds:
//! - The write lock of the wal-index is held from the first turn until nothing is unpublished and nobody has the turn. It
//!   belongs to the open file of whoever took it first (`holder`), and whoever comes last gives it back.
//! - A header is published after a sync of all its frames, by the one who synced; so readers, and programs of other
//!   processes, never see what a loss of power could take back, and a commit returns only after that.
//! - Frames are appended under the turn alone, each writer's behind the head it started on. A loss of power leaves a
//!   prefix of the commits, as always in a log: the checksums run on from frame to frame.
//! - A sync that fails, fails all that was appended and not published, and the writer that has started on it. Published are
//!   still the commits before, and this process writes no more.
//! - A writer whose snapshot is older than the head starts on the head if it has not read yet, or hears
//!   `SQLITE_BUSY_SNAPSHOT`.
//! - Who checkpoints on the way takes a turn for the last frames, with nothing unpublished and nobody writing, and comes
//!   before those who write: else there would always be some frame that is not copied, and a log that grows for ever
//!   (25 MB a second, measured).
//! - Writers wait for their turn before they fix a snapshot: a read mark held while waiting would keep the log from
//!   beginning anew.
//! - After [`LONGEST`], nobody follows any more, and for [`REST`] nobody of this process begins who can wait: programs of
//!   other processes ask for the lock now and then.
//!
//! No lock of this module is held while the disk or the wal-index is called. It knows nothing of pages and files.

use super::index::Header;
use crate::wal::LOCK_WRITE;
use iolite_base::{Code, Result};
use iolite_os::{Clock, ShmRelease};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// For how long writers follow each other under one hold of the lock, in nanoseconds.
const LONGEST: u64 = 20_000_000;
/// How long the lock is left to others then.
const REST: u64 = 1_000_000;
/// How long a sync is put off for the sake of those who are about to append, where it takes as long itself or longer.
/// Without that, they wait for the next one, and two groups of half the threads take turns (3.4 commits a sync of eight
/// threads). Where a sync takes less, that is just right: while it is on its way, the other half works
/// (`docs/storage-speed.md`).
const LINGER: u64 = 150_000;
/// How long a wait takes where threads cannot wake each other.
const STEP: Duration = Duration::from_micros(20);

/// The writers of one process on one file.
#[derive(Default)]
pub struct Chain {
    state: Mutex<State>,
    /// The turn may be free.
    turn: Condvar,
    /// Nobody is about to append any more.
    still: Condvar,
    /// As in the state, for those who wait: they need not take its lock one after the other.
    published: AtomicU64,
    /// A sync has failed at some time: who waits asks the state.
    failed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Whose open file holds the write lock.
    holder: Option<Arc<dyn ShmRelease>>,
    /// Who has the turn.
    writer: Option<Arc<dyn ShmRelease>>,
    /// Somebody syncs and publishes.
    syncing: bool,
    /// The last commit that was appended, if it is not published.
    head: Option<Header>,
    /// Commits appended and published since the process began; of the latter those that failed, a pair for each sync that
    /// did: from the one after the first number to the second.
    appended: u64,
    published: u64,
    lost: Vec<(u64, u64)>,
    /// When the lock was taken, and until when it is left to others.
    since: u64,
    rest_until: u64,
    /// Somebody followed under this hold of the lock.
    followed: bool,
    /// How many wait for a turn; of these, how many want one with nothing unpublished: they come first.
    waiting: u32,
    quiet: u32,
    /// Somebody checkpoints on the way: one is enough.
    copying: Option<Arc<dyn ShmRelease>>,
    /// Somebody waits for `still`: waking nobody is a system call as well.
    lingers: bool,
    /// How many commits were under way when the last sync had ended: those that it served and those that came too late. As
    /// many are likely to be there again soon.
    crowd: u64,
    /// What a sync takes, in nanoseconds: a quarter of the last ones took less.
    sync_takes: u64,
    /// Who waits for the commit of this number, or sleeps again until then. Each is woken alone: eight threads that wake up
    /// together and take the state's lock in turn made 14 futex calls a commit.
    unsettled: Vec<(u64, Thread)>,
    /// The turn is a copier's.
    kept: bool,
}

/// What a turn is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writing, on commits that are not published yet if need be.
    Follower,
    /// Writing on what is published.
    Alone,
    /// Copying the last frames, with nothing unpublished and nobody writing.
    Copier,
}

/// A turn.
pub struct Turn {
    /// The unpublished head to start on; `None`: the lock is to be taken ([`Chain::hold`]).
    pub head: Option<Header>,
    /// The number of the commit it starts on.
    pub after: u64,
}

/// What becomes of a commit whose frames are written.
pub enum Commit {
    /// Nothing below it waits for a sync, nor does it: it may be published at once, and the turn goes on.
    AtOnce,
    /// The turn is over; it is to be settled under this number.
    Wait(u64),
}

impl State {
    /// In a forked child, what the parent did and does is nobody's business here.
    fn forget_parent(&mut self) {
        let foreign = |r: &Option<Arc<dyn ShmRelease>>| r.as_ref().is_some_and(|r| !r.is_own());
        if foreign(&self.holder) || foreign(&self.writer) || foreign(&self.copying) {
            *self = State::default();
        }
    }

    /// Whether somebody who wants to follow, or wants nothing unpublished, may begin. Who cannot wait is not told to.
    fn is_free(&self, follow: bool, impatient: bool, now: u64) -> bool {
        self.writer.is_none()
            && match self.holder {
                None => !follow || impatient || (now >= self.rest_until && self.quiet == 0),
                Some(_) => follow && self.quiet == 0 && now.saturating_sub(self.since) < LONGEST,
            }
    }

    /// Nobody is about to append, nor likely to be soon.
    fn is_complete(&self) -> bool {
        self.waiting <= self.quiet && self.writer.is_none() && self.appended - self.published >= self.crowd
    }

    /// A sync has taken so long. Those that others on the disk held up, and those whose thread waited for a processor, say
    /// little: so it is not the mean.
    fn note_sync(&mut self, nanos: u64) {
        let step = self.sync_takes / 16 + 1_000;
        self.sync_takes = match nanos < self.sync_takes {
            true => self.sync_takes.saturating_sub(3 * step).max(nanos),
            false => (self.sync_takes + step).min(nanos),
        };
    }

    fn is_lost(&self, number: u64) -> bool {
        self.lost.iter().any(|l| number > l.0 && number <= l.1)
    }

    /// Gives the write lock back if nothing is left to do under it.
    fn tidy(&mut self, now: u64) {
        if self.writer.is_none() && !self.syncing && self.published == self.appended {
            self.head = None;
            if let Some(h) = self.holder.take() {
                h.release(LOCK_WRITE);
                if std::mem::take(&mut self.followed) && now.saturating_sub(self.since) > LONGEST {
                    self.rest_until = now + REST;
                }
            }
        }
    }
}

impl Chain {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for at most `most`; where threads must not wait for each other (the simulator), the clock lets others run.
    fn pause<'c>(
        &'c self,
        bell: &Condvar,
        state: MutexGuard<'c, State>,
        most: Duration,
        clock: &dyn Clock,
    ) -> MutexGuard<'c, State> {
        if clock.wakes() {
            return bell.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        clock.sleep(STEP);
        self.state()
    }

    /// Takes the turn, waiting for it at most for `patience`: `SQLITE_BUSY`. A copier's turn, which this process has brought
    /// about, is waited for in any case.
    pub fn begin(
        &self,
        me: &Arc<dyn ShmRelease>,
        role: Role,
        patience: Duration,
        clock: &dyn Clock,
    ) -> Result<Turn> {
        let end = clock.monotonic_nanos().saturating_add(patience.as_nanos() as u64);
        let mut state = self.state();
        let (mut waits, follow) = (false, role == Role::Follower);
        state.waiting += 1;
        let begun = loop {
            state.forget_parent();
            let now = clock.monotonic_nanos();
            if state.is_free(follow, patience.is_zero(), now) {
                state.writer = Some(me.clone());
                state.kept = role == Role::Copier;
                state.followed |= state.holder.is_some();
                let head = state.holder.as_ref().and(state.head.clone());
                break Ok(Turn { head, after: state.appended });
            }
            if now >= end && !(state.kept && state.writer.is_some()) {
                break Err(Code::Busy.into());
            }
            if !follow && !std::mem::replace(&mut waits, true) {
                state.quiet += 1;
            }
            // A turn that is of no use here may be of use to another one, who wants it for something else: if it is of use to
            // nobody, they would wake each other all the time.
            let of_my_kind = if follow { state.waiting - state.quiet } else { state.quiet };
            if state.waiting > of_my_kind && state.is_free(!follow, false, now) {
                self.turn.notify_one();
            }
            let left = Duration::from_nanos(end.saturating_sub(now)).min(Duration::from_millis(1));
            let left = if left.is_zero() { Duration::from_millis(1) } else { left };
            state = self.pause(&self.turn, state, left, clock);
        };
        state.waiting = state.waiting.saturating_sub(1);
        if waits {
            state.quiet = state.quiet.saturating_sub(1);
        }
        begun
    }

    /// The one who has the turn has taken the write lock.
    pub fn hold(&self, me: &Arc<dyn ShmRelease>, clock: &dyn Clock) {
        let mut state = self.state();
        state.holder = Some(me.clone());
        state.since = clock.monotonic_nanos();
    }

    /// The turn is over, and nothing was committed in it that is not published.
    pub fn end(&self, clock: &dyn Clock) {
        let mut state = self.state();
        state.writer = None;
        state.tidy(clock.monotonic_nanos());
        let (wanted, lingers) = (state.waiting > 0, state.lingers);
        drop(state);
        if wanted {
            self.turn.notify_one();
        }
        if lingers {
            self.still.notify_one();
        }
    }

    /// Whether to checkpoint on the way: nobody else does.
    pub fn begin_copying(&self, me: &Arc<dyn ShmRelease>) -> bool {
        let mut state = self.state();
        state.forget_parent();
        let free = state.copying.is_none();
        if free {
            state.copying = Some(me.clone());
        }
        free
    }

    /// It is done.
    pub fn end_copying(&self) {
        self.state().copying = None;
    }

    /// The frames up to `header` are written. `SQLITE_IOERR_FSYNC` if what they stand on has failed; the turn goes on then.
    pub fn commit(&self, turn: &Turn, header: &Header, sync: bool) -> Result<Commit> {
        let mut state = self.state();
        if turn.head.is_some() && state.is_lost(turn.after) {
            return Err(Code::IoerrFsync.into());
        }
        if !sync && state.published == state.appended {
            return Ok(Commit::AtOnce);
        }
        state.appended += 1;
        state.head = Some(header.clone());
        state.writer = None;
        let (number, last) = (state.appended, state.waiting == 0);
        let still = last && state.lingers && state.is_complete();
        drop(state);
        if !last {
            self.turn.notify_one();
        } else if still {
            self.still.notify_one();
        }
        Ok(Commit::Wait(number))
    }

    /// Waits until a commit is published, and does it if nobody else does: `publish` syncs, then publishes the header.
    pub fn settle(
        &self,
        number: u64,
        clock: &dyn Clock,
        mut publish: impl FnMut(&Header) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state();
        loop {
            if state.published >= number {
                return if state.is_lost(number) { Err(Code::IoerrFsync.into()) } else { Ok(()) };
            }
            if state.syncing {
                match self.await_settled(state, number, clock) {
                    Some(again) => state = again,
                    None => return Ok(()),
                }
                continue;
            }
            state.syncing = true;
            let end = clock.monotonic_nanos() + LINGER;
            while state.sync_takes >= LINGER && !state.is_complete() && clock.wakes() {
                let now = clock.monotonic_nanos();
                if now >= end {
                    break;
                }
                state.lingers = true;
                state = self.pause(&self.still, state, Duration::from_nanos(end - now), clock);
                state.lingers = false;
            }
            let (before, upto) = (state.published, state.appended);
            let Some(head) = state.head.clone() else {
                state.syncing = false;
                return Err(Code::Internal.into());
            };
            drop(state);
            let begun = clock.monotonic_nanos();
            let done = publish(&head);
            let ended = clock.monotonic_nanos();
            state = self.state();
            state.note_sync(ended.saturating_sub(begun));
            state.syncing = false;
            state.crowd = state.appended - before;
            match &done {
                Ok(()) => state.published = upto,
                Err(_) => {
                    // Who waits for an earlier one may wake up after this: no failure is forgotten. There are few, since
                    // after the first one nobody of this process begins to write.
                    let lost = (state.published, state.appended);
                    state.lost.push(lost);
                    state.published = state.appended;
                }
            }
            state.tidy(ended);
            self.published.store(state.published, Release);
            if done.is_err() {
                self.failed.store(true, Release);
            }
            let wanted = state.waiting > 0;
            // Those who are served, and of the others the one who has waited longest, to sync what is left.
            let published = state.published;
            let mut others = 0;
            let woken: Vec<Thread> = state
                .unsettled
                .extract_if(.., |(n, _)| {
                    others += (*n > published) as u32;
                    *n <= published || others == 1
                })
                .map(|w| w.1)
                .collect();
            drop(state);
            if wanted {
                self.turn.notify_one();
            }
            woken.into_iter().for_each(|t| t.unpark());
            done?;
            state = self.state();
        }
    }

    /// Sleeps while somebody syncs. `None`: the commit is published.
    fn await_settled<'c>(
        &'c self,
        mut state: MutexGuard<'c, State>,
        number: u64,
        clock: &dyn Clock,
    ) -> Option<MutexGuard<'c, State>> {
        if !clock.wakes() {
            drop(state);
            clock.sleep(STEP);
            return Some(self.state());
        }
        let me = thread::current();
        let id = me.id();
        state.unsettled.push((number, me));
        drop(state);
        thread::park_timeout(Duration::from_millis(5));
        if self.published.load(Acquire) >= number && !self.failed.load(Acquire) {
            return None;
        }
        state = self.state();
        state.unsettled.retain(|(_, t)| t.id() != id);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sync_takes_is_what_the_faster_ones_take() {
        let mut s = State::default();
        (0..200).for_each(|i| s.note_sync(if i % 3 == 0 { 5_000_000 } else { 60_000 }));
        assert!(s.sync_takes < LINGER, "others held some up: {}", s.sync_takes);
        (0..200).for_each(|i| s.note_sync(if i % 8 == 0 { 60_000 } else { 2_000_000 }));
        assert!(s.sync_takes > LINGER, "the disk is slow: {}", s.sync_takes);
    }

    struct Holder;

    impl ShmRelease for Holder {
        fn release(&self, _lock: u8) {}
        fn is_own(&self) -> bool {
            true
        }
    }

    struct Still;

    impl Clock for Still {
        fn unix_millis(&self) -> i64 {
            0
        }
        fn monotonic_nanos(&self) -> u64 {
            0
        }
        fn sleep(&self, _time: Duration) {}
        fn wakes(&self) -> bool {
            false
        }
    }

    fn append(chain: &Chain, me: &Arc<dyn ShmRelease>) -> u64 {
        let turn = chain.begin(me, Role::Follower, Duration::ZERO, &Still).unwrap();
        if turn.head.is_none() {
            chain.hold(me, &Still);
        }
        match chain.commit(&turn, &Header::default(), true).unwrap() {
            Commit::Wait(n) => n,
            Commit::AtOnce => panic!("a commit that waits for a sync"),
        }
    }

    /// Who wakes up late learns of the sync that failed for its commit, whatever happened since.
    #[test]
    fn no_failed_sync_is_forgotten() {
        let chain = Chain::default();
        let me: Arc<dyn ShmRelease> = Arc::new(Holder);
        let fails = |_: &Header| Err(Code::IoerrFsync.into());
        let first = append(&chain, &me);
        assert!(chain.settle(first, &Still, fails).is_err());
        let second = append(&chain, &me);
        assert!(chain.settle(second, &Still, |_| Ok(())).is_ok());
        let third = append(&chain, &me);
        assert!(chain.settle(third, &Still, fails).is_err());
        let settled = [first, second, third].map(|n| chain.settle(n, &Still, |_| Ok(())).is_ok());
        assert_eq!(settled, [false, true, false]);
    }
}

//! What the probes of a program write down (`iolite_bytecode::probed`): how often each place was reached, and what passed until
//! the next one was.
//!
//! A place is charged with all that happens before the next probe: of an instruction that hands a row out, what the caller does
//! with it. What a probe itself takes is measured when the profile is made and taken off.

use crate::{Env, Vm};
use iolite_bytecode::Insn;
use iolite_os::ticks;

/// What a place has cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cost {
    /// How often it was reached.
    pub times: u64,
    /// In ticks of the processor's counter ([`ticks`]).
    pub ticks: u64,
    /// Pages read from files.
    pub pages: u64,
}

/// The costs of a run by place.
#[derive(Default, Debug)]
pub struct Profile {
    costs: Vec<Cost>,
    /// Where the program is, since when, and how many pages had been read.
    at: Option<usize>,
    since: u64,
    pages: u64,
    /// What a probe takes of its own.
    own: u64,
}

/// So many probes are tried to learn what one takes.
const TRIALS: u64 = 1000;

impl Profile {
    /// A profile of `places`, nothing written down. `pages_read` is what probes ask as well, so that its cost is in theirs.
    pub fn new(places: usize, pages_read: impl Fn() -> u64) -> Profile {
        let mut trial = Profile { costs: vec![Cost::default()], ..Profile::default() };
        let start = ticks();
        for _ in 0..TRIALS {
            trial.reach(0, pages_read());
        }
        let own = (ticks() - start) / TRIALS;
        Profile { costs: vec![Cost::default(); places], own, ..Profile::default() }
    }

    /// The costs by place.
    pub fn costs(&self) -> &[Cost] {
        &self.costs
    }

    /// The run has ended, `pages` having been read since it began.
    pub fn end(&mut self, pages: u64) {
        self.leave(ticks(), pages);
        self.at = None;
    }

    /// Charges the present place with what has passed since it was reached.
    fn leave(&mut self, now: u64, pages: u64) {
        if let Some(c) = self.at.and_then(|at| self.costs.get_mut(at)) {
            c.ticks += now.saturating_sub(self.since).saturating_sub(self.own);
            c.pages += pages.saturating_sub(self.pages);
        }
    }

    fn reach(&mut self, place: usize, pages: u64) {
        let now = ticks();
        self.leave(now, pages);
        if let Some(c) = self.costs.get_mut(place) {
            c.times += 1;
        }
        (self.at, self.since, self.pages) = (Some(place), now, pages);
    }
}

impl Vm {
    /// Goes on with the place of this probe.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe(&mut self, i: &Insn, env: &dyn Env) {
        if let Some(p) = &mut self.profile {
            p.reach(i.p1 as usize, env.pages_read());
        }
    }
}

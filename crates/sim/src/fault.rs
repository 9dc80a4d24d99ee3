//! Faults: the n-th call of a kind fails, or the n-th counted allocation, for every n until a run comes
//! through.
//!
//! After a failed step: the code tells of the fault, not of damage; what the same connection then reads is
//! the state before the step or the one after it, whole; it can write, or says that a sync failed; a crash at
//! once, or an orderly end, leaves a database that is whole and holds what was read; power losses from the
//! fault on leave what `PRAGMA synchronous` allows.
//!
//! Over several files the same holds for all of them together: each shows the step, or none does. (But for a disk on which
//! from some moment on nothing can be written: a log whose commit was made ready cannot be made worthless again there.)
//!
//! Without a journal (`journal_mode=OFF`) a failed step may leave anything: there, only codes are looked at.
//! With one in memory, a crash may, as long as the rollback itself has failed.

use crate::crash::{Counts, Effort, check, differing};
use crate::disk::{Disk, Event, Fault, Op};
use crate::script::{Act, Record, Runner, Setting, record};
use crate::state;
use iolite::engine::{Code, Error};
use iolite_base::alloc;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// What fails.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// A call to the disk.
    Call(Fault),
    /// The allocation with this number.
    Allocation(u64),
}

impl Plan {
    fn may_answer(&self, e: &Error) -> bool {
        let p = e.code().primary();
        match self {
            Plan::Allocation(_) => p == Code::Nomem,
            Plan::Call(f) => {
                let own = f.code.primary();
                // A lock that fails while a hot journal is looked for, and a log that cannot be opened.
                p == own || matches!(p, Code::Ioerr | Code::Cantopen | Code::Busy | Code::Protocol)
            }
        }
    }

    fn hits(&self, disk: &Disk) -> bool {
        match self {
            Plan::Call(_) => disk.hits() > 0,
            Plan::Allocation(_) => !alloc::failure_pending(),
        }
    }

    fn disarm(&self, disk: &Disk) {
        match self {
            Plan::Call(_) => disk.set_fault(None),
            Plan::Allocation(_) => alloc::fail_in(-1),
        }
    }
}

/// What may go wrong in the midst of a commit over several files.
pub const FILE_FAULTS: [(Op, Code); 8] = [
    (Op::Lock, Code::Busy),
    (Op::ShmLock, Code::Busy),
    (Op::Write, Code::Full),
    (Op::Write, Code::IoerrWrite),
    (Op::Sync, Code::IoerrFsync),
    (Op::Truncate, Code::IoerrTruncate),
    (Op::Delete, Code::IoerrDelete),
    (Op::Open, Code::Cantopen),
];

/// How a run ended.
enum Ended {
    /// No call was left to fail.
    Unharmed,
    /// The fault happened and all was as it should be.
    Sound,
    /// So it was, and the transaction that the failed statement was part of stayed open: it was taken back.
    SoundWithin,
}

/// Runs the script once for each call that can fail. `stride`: every so many calls only.
pub fn calls(clean: &Record, op: Op, code: Code, persistent: bool, stride: u64) -> Result<Counts, String> {
    let first = clean.setting.seed % stride;
    each(clean, stride, first, |nth| Plan::Call(Fault { op, nth, persistent, code }))
}

/// Runs the script once for each allocation that can fail. The plan is process-wide: nothing else may run
/// meanwhile.
pub fn allocations(clean: &Record, stride: u64) -> Result<Counts, String> {
    each(clean, stride, clean.setting.seed % stride, Plan::Allocation)
}

fn each(clean: &Record, stride: u64, first: u64, plan: impl Fn(u64) -> Plan) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut nth = first;
    loop {
        let p = plan(nth);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let ended = run(clean, p, nth, false, &mut counts)?;
            match ended {
                // What the statements before the failed one did may be committed as well.
                Ended::SoundWithin => run(clean, p, nth, true, &mut counts),
                ended => Ok(ended),
            }
        }));
        let told = |what: String| {
            let s = &clean.setting;
            format!(
                "{p:?}, mode {} {:?} synchronous {} auto_vacuum {} seed {}: {what}",
                s.mode, s.others, s.sync, s.auto_vacuum, s.seed
            )
        };
        match ran {
            Err(_) => {
                alloc::fail_in(-1);
                return Err(told("a panic".into()));
            }
            Ok(Err(e)) => {
                alloc::fail_in(-1);
                return Err(told(e));
            }
            Ok(Ok(Ended::Unharmed)) => return Ok(counts),
            Ok(Ok(Ended::Sound | Ended::SoundWithin)) => counts.faults += 1,
        }
        nth += stride;
    }
}

/// `commits`: a transaction that stays open behind the failed statement is committed.
fn run(clean: &Record, plan: Plan, nth: u64, commits: bool, counts: &mut Counts) -> Result<Ended, String> {
    let disk = Arc::new(Disk::new(clean.setting.seed));
    let mut runner = Runner::new(disk.clone(), clean.setting);
    match plan {
        Plan::Call(f) => disk.set_fault(Some(f)),
        Plan::Allocation(n) => alloc::fail_in(n as i64),
    }
    for (i, act) in clean.steps.iter().enumerate() {
        let step = i + 1;
        disk.mark(Event::Begin(step));
        let before = disk.event_count();
        let done = runner.run(act);
        let Err(e) = done else {
            disk.mark(Event::Ack(step));
            continue;
        };
        let told = |what: String| format!("step {step} {act:?}: {e:?}, then {what}");
        if !plan.hits(&disk) {
            return Err(told("no fault had happened".into()));
        }
        if !plan.may_answer(&e) {
            return Err(told("that is no answer to the fault".into()));
        }
        let mut fault = After { clean, plan, step, runner, disk, nth, commits };
        return fault.look(before, counts).map_err(told);
    }
    // A fault that every step survived is as good as none, but not the last one.
    let hit = plan.hits(&disk);
    plan.disarm(&disk);
    let content = runner.content()?;
    if content != clean.states[clean.steps.len()] {
        return Err(format!(
            "all steps reported success, but{}",
            differing(clean.states.last().unwrap(), &content)
        ));
    }
    Ok(if hit { Ended::Sound } else { Ended::Unharmed })
}

/// A run after the step that failed.
struct After<'a> {
    clean: &'a Record,
    plan: Plan,
    step: usize,
    runner: Runner,
    disk: Arc<Disk>,
    nth: u64,
    commits: bool,
}

impl After<'_> {
    fn whole(&self, content: &str, changed: bool) -> Result<usize, String> {
        let probe = |s: &str| {
            if !changed || s.is_empty() {
                return s.to_string();
            }
            let at = s.find("user_version ").unwrap_or(s.len());
            let end = s[at..].find('\n').map_or(s.len(), |e| at + e);
            format!("{}user_version 99{}", &s[..at], &s[end..])
        };
        [self.step - 1, self.step].into_iter().find(|&i| probe(&self.clean.states[i]) == content).ok_or_else(
            || {
                format!(
                    "a state that is neither before nor after: {}",
                    differing(&self.clean.states[self.step - 1], content)
                )
            },
        )
    }

    fn look(&mut self, from: usize, counts: &mut Counts) -> Result<Ended, String> {
        let setting = self.clean.setting;
        let anything = setting.mode == "off";
        let persistent = matches!(self.plan, Plan::Call(Fault { persistent: true, .. }));
        let mut rolled_back = true;
        let mut ended = Ended::Sound;
        if let Some(c) = self.runner.conn.clone()
            && !c.is_autocommit()
        {
            if self.commits {
                self.plan.disarm(&self.disk);
                if c.execute_batch("COMMIT").is_ok() {
                    return self.committed().map(|()| Ended::Sound);
                }
            } else if !anything && !persistent {
                ended = Ended::SoundWithin;
            }
            rolled_back = c.execute_batch("ROLLBACK").is_ok() || c.is_autocommit();
        }
        self.plan.disarm(&self.disk);
        if anything {
            return Ok(ended);
        }
        // Whether the fault is of the kind after which nothing more is written.
        let syncs = matches!(self.plan, Plan::Call(Fault { op: Op::Sync, .. }));
        let logs = setting.mode == "wal" || setting.others.contains(&"wal");
        let stuck = persistent && logs && !setting.others.is_empty();
        let crash_safe = (setting.mode != "memory" || (rolled_back && !persistent)) && !stuck;
        if crash_safe {
            self.crash("at once", false)?;
        }
        let read = self.runner.content();
        let mut seen = match &read {
            Ok(content) => {
                Some(self.whole(content, false).map_err(|e| format!("the same connection reads {e}"))?)
            }
            Err(e) if syncs || setting.mode == "memory" => {
                let _ = e;
                None
            }
            Err(e) => return Err(format!("the same connection cannot read: {e}")),
        };
        // What a loss of power leaves of several files is told for one mode of all of them.
        let one_mode = setting.others.is_empty();
        if setting.sync != "off" && setting.mode != "memory" && one_mode && self.nth.is_multiple_of(11) {
            self.power_loss(from, counts)?;
        }
        let mut changed = false;
        // A database that the first step did not make has nothing to change.
        if let Some(i) = seen
            && !self.clean.states[i].is_empty()
        {
            let c = self.runner.connection().map_err(|e| format!("{e:?}"))?;
            match c.execute_batch("PRAGMA user_version = 99") {
                Ok(()) => changed = true,
                Err(e) if syncs && e.code() == Code::IoerrFsync => {}
                Err(e) => return Err(format!("the same connection cannot write: {e:?}")),
            }
            let content = self.runner.content().map_err(|e| format!("reading after writing: {e}"))?;
            seen = Some(self.whole(&content, changed).map_err(|e| format!("after writing: {e}"))?);
            if setting.mode != "memory" || !syncs {
                self.crash("after writing", changed)?;
            }
        }
        self.runner.end();
        let there = |f: &str| self.disk.content(Path::new(f)).is_some_and(|f| !f.is_empty());
        let content = match state::recover_on(self.disk.clone(), &there) {
            Err(_) if setting.mode == "memory" && seen.is_none() => return Ok(ended),
            other => other.map_err(|e| format!("opened anew: {e}"))?,
        };
        let now = self.whole(&content, changed).map_err(|e| format!("opened anew: {e}"))?;
        match seen {
            Some(s) if self.clean.states[s] != self.clean.states[now] => {
                Err(format!("read the state after step {s}, opened anew that after step {now}"))
            }
            _ => Ok(ended),
        }
    }

    /// A part of the step was committed: which, nobody wrote down, but it must be one state for all who look.
    fn committed(&mut self) -> Result<(), String> {
        let read = self.runner.content().map_err(|e| format!("committed a part: {e}"))?;
        let killed = state::recover(&self.files()).map_err(|e| format!("committed a part, killed: {e}"))?;
        if read != killed {
            return Err(format!("committed a part, killed: {}", differing(&read, &killed)));
        }
        Ok(())
    }

    fn files(&self) -> crate::image::Files {
        let names = self.disk.names().into_iter();
        names.map(|n| (n.clone(), self.disk.content(&n).unwrap_or_default())).collect()
    }

    /// The process is killed now.
    fn crash(&self, when: &str, changed: bool) -> Result<(), String> {
        let content = state::recover(&self.files()).map_err(|e| format!("killed {when}: {e}"))?;
        self.whole(&content, changed).map(|_| ()).map_err(|e| format!("killed {when}: {e}"))
    }

    /// Power losses at every event since the step began.
    fn power_loss(&self, from: usize, counts: &mut Counts) -> Result<(), String> {
        let record = Record {
            events: self.disk.events(),
            states: self.clean.states.clone(),
            steps: self.clean.steps.clone(),
            setting: self.clean.setting,
        };
        let effort = Effort { samples: 4, nested: 0, stock: 0 };
        counts.add(check(&record, effort, from)?);
        Ok(())
    }
}

/// The clean run by which the others are measured.
pub fn measure(setting: Setting, steps: Vec<Act>) -> Result<Record, String> {
    record(Arc::new(Disk::new(setting.seed)), setting, steps)
}

//! One run of one program: registers, cursors, frames of triggers.

use crate::bloom::Bloom;
use crate::cursor::VCursor;
use crate::profile::Profile;
use iolite_base::hash::FastMap;
use iolite_base::{Bytes, Code, Encoding, Error, Limit, Result};
use iolite_bytecode::{Insn, Program};
use iolite_ext::{Aggregate, AuxData};
use iolite_value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

mod kept;

use kept::Kept;

/// What a step ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A result row stands in the registers.
    Row,
    /// The program has ended.
    Done,
}

/// What a failing statement does to the transaction (conflict policies).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Action {
    /// Undoes the statement.
    #[default]
    Abort,
    /// Keeps what was done so far.
    Fail,
    /// Undoes the transaction.
    Rollback,
}

/// Counters of a run (`sqlite3_stmt_status`).
#[derive(Clone, Copy, Default, Debug)]
#[allow(missing_docs)]
pub struct Counters {
    pub vm_steps: u64,
    pub fullscan_steps: u64,
    pub sorts: u64,
    pub auto_index_rows: u64,
    pub filter_hits: u64,
    pub filter_misses: u64,
    /// Programs of triggers that were run.
    pub triggers: u64,
}

/// What a running program owns; a trigger's program gets its own and gives it back.
pub(crate) struct Frame {
    pub program: Rc<Program>,
    pub pc: usize,
    pub regs: Vec<Value>,
    pub cursors: Vec<Option<VCursor>>,
    /// Which `Once` have been passed, a bit each.
    pub once: Vec<u64>,
    /// In a place of its own: a frame is moved at each call of a trigger.
    pub extra: Box<Extra>,
    pub compare: Ordering,
    /// Which sub-program it is of.
    pub number: usize,
    /// First register of the parameters in the caller.
    pub params: usize,
    pub last_rowid: i64,
    pub changes: i64,
    /// `changes()` when a program was called from here.
    pub reported: i64,
    /// `total_changes` when the program was entered, and after its last finished statement.
    pub entered: i64,
    pub counted: i64,
}

/// What some programs have beside registers and cursors.
#[derive(Default)]
pub(crate) struct Extra {
    /// Running aggregates, by the register that stands for them.
    pub states: Vec<Option<Box<dyn Aggregate>>>,
    pub row_sets: FastMap<i32, RowSet>,
    /// Lists of values for filters of virtual tables, by the register that stands for them.
    pub lists: FastMap<i32, Vec<Value>>,
    pub blooms: FastMap<i32, Bloom>,
    pub aux: Vec<AuxData>,
    /// The last value of the row about to be inserted, if it is large: its record ends before it.
    pub tail: Option<Bytes>,
    /// What calls of aggregates find for it.
    pub aggregate_aux: AuxData,
}

/// Rowids seen, by batch.
#[derive(Default)]
pub(crate) struct RowSet {
    /// The batch in which each rowid was first added.
    pub seen: FastMap<i64, i64>,
}

/// A run of a program.
pub struct Vm {
    pub(crate) main: Rc<Program>,
    pub(crate) f: Frame,
    /// The programs that wait for the one that runs. (A frame is large: it is exchanged, and moved as little as can be.)
    #[allow(clippy::vec_box)]
    pub(crate) callers: Vec<Box<Frame>>,
    /// Parameter values, by number less one.
    pub params: Vec<Value>,
    pub(crate) result: (usize, usize),
    /// Rows changed by this run that count in `changes()`.
    pub changes: i64,
    /// Rows changed in triggers and by REPLACE included.
    pub total_changes: i64,
    /// The last rowid that was made by the statement itself, not by a trigger.
    pub made_rowid: i64,
    /// The run has written to a stored tree.
    pub begun: bool,
    /// Violations of immediate foreign keys by this run.
    pub(crate) violations: i64,
    /// `last_insert_rowid()` before the statement.
    pub(crate) rowid_before: i64,
    /// Those of them that count even if the statement fails: finished statements of triggers.
    pub settled_changes: i64,
    /// What the error that ended the run does to the transaction.
    pub action: Action,
    /// Counters.
    pub counters: Counters,
    /// What a program with probes has written down.
    pub profile: Option<Box<Profile>>,
    pub(crate) started: bool,
    pub(crate) enc: Encoding,
    pub(crate) max_length: usize,
    pub(crate) max_depth: usize,
    /// Instructions since it was last asked whether to stop.
    pub(crate) cpu: u32,
    /// Those of them that the counters know.
    pub(crate) settled: u32,
    /// At how many of them to ask whether to stop.
    pub(crate) every: u32,
    /// Counted so far when it is asked next: `every`, or less once somebody has said so.
    pub(crate) ask_at: u32,
    /// AUTOINCREMENT's largest rowids, by number less one: of the run, so that triggers share them.
    pub(crate) sequences: Vec<i64>,
    /// Trees that sub-programs may not write to for now.
    pub(crate) locked: Vec<crate::ops::write::Lock>,
    /// Somebody wants to know of changes of rows before they are made.
    pub(crate) announces: bool,
    /// The row that the first half of an UPDATE has deleted, for the second, where changes are announced.
    pub(crate) leaving: Option<crate::ops::before::Stored>,
    /// What is kept of former runs.
    pub(crate) kept: Kept,
}

impl Frame {
    fn new(program: Rc<Program>) -> Frame {
        let mut cursors = Vec::new();
        cursors.resize_with(program.cursors, || None);
        let mut extra = Box::<Extra>::default();
        extra.aux.resize_with(program.sites, AuxData::default);
        Frame {
            pc: 0,
            regs: vec![Value::Null; program.registers + 1],
            cursors,
            once: vec![0; program.onces.div_ceil(64)],
            extra,
            compare: Ordering::Equal,
            number: 0,
            params: 0,
            last_rowid: 0,
            changes: 0,
            reported: 0,
            entered: 0,
            counted: 0,
            program,
        }
    }
}

impl Vm {
    /// A run of `program`, not started.
    pub fn new(program: Rc<Program>) -> Vm {
        let params = vec![Value::Null; program.variables.len()];
        Vm {
            f: Frame::new(program.clone()),
            main: program,
            callers: Vec::new(),
            params,
            result: (0, 0),
            changes: 0,
            total_changes: 0,
            settled_changes: 0,
            made_rowid: 0,
            begun: false,
            violations: 0,
            rowid_before: 0,
            action: Action::Abort,
            counters: Counters::default(),
            profile: None,
            started: false,
            enc: Encoding::Utf8,
            max_length: 1_000_000_000,
            max_depth: 1000,
            cpu: 0,
            settled: 0,
            every: crate::exec::CHECK_EVERY,
            ask_at: crate::exec::CHECK_EVERY,
            sequences: Vec::new(),
            locked: Vec::new(),
            announces: false,
            leaving: None,
            kept: Kept::default(),
        }
    }

    /// Lets go of its program and of all that the run held, keeping its memory; `nothing` is its program until
    /// [`Vm::renew`].
    pub fn retire(&mut self, nothing: &Rc<Program>) {
        self.reset();
        self.kept.forget_programs();
        self.f.cursors.clear();
        self.f.regs.clear();
        self.f.once.clear();
        self.f.extra.aux.clear();
        self.params.clear();
        self.f.program = nothing.clone();
        self.main = nothing.clone();
    }

    /// Makes a machine that has retired the run of a program, not started.
    pub fn renew(&mut self, program: Rc<Program>) {
        debug_assert!(self.f.cursors.is_empty() && self.params.is_empty());
        let f = &mut self.f;
        f.cursors.resize_with(program.cursors, || None);
        f.regs.resize(program.registers + 1, Value::Null);
        f.once.resize(program.onces.div_ceil(64), 0);
        f.extra.aux.resize_with(program.sites, AuxData::default);
        (f.pc, f.compare, f.last_rowid, f.entered, f.counted) = (0, Ordering::Equal, 0, 0, 0);
        f.program = program.clone();
        self.params.resize(program.variables.len(), Value::Null);
        self.counters = Counters::default();
        (self.cpu, self.settled) = (0, 0);
        self.main = program;
    }

    /// Whether its memory is worth keeping for another program.
    pub fn is_small(&self) -> bool {
        self.f.regs.capacity() <= 512 && self.f.cursors.capacity() <= 64
    }

    /// The program.
    pub fn program(&self) -> &Rc<Program> {
        &self.main
    }

    /// Whether a run is under way.
    pub fn is_running(&self) -> bool {
        self.started
    }

    /// Ends the run: closes cursors, forgets registers. Parameters stay.
    pub fn reset(&mut self) {
        if !self.started {
            return;
        }
        while let Some(f) = self.callers.pop() {
            self.f = *f;
        }
        self.kept.settle(&mut self.f);
        self.sequences.clear();
        self.locked.clear();
        self.changes = 0;
        self.total_changes = 0;
        self.settled_changes = 0;
        self.begun = false;
        self.violations = 0;
        self.action = Action::Abort;
        self.started = false;
        self.result = (0, 0);
    }

    /// Closes the cursors on virtual tables: their code runs before the transaction ends.
    pub fn close_virtual(&mut self) {
        let frames = std::iter::once(&mut self.f).chain(self.callers.iter_mut().map(|f| &mut **f));
        for c in frames.flat_map(|f| &mut f.cursors) {
            if matches!(c, Some(VCursor::Virtual { .. })) {
                *c = None;
            }
        }
    }

    /// The values of the present result row.
    #[inline]
    pub fn row(&self) -> &[Value] {
        let (first, n) = self.result;
        &self.f.regs[first..first + n]
    }

    /// Whether `Program` and `Fire` may enter the sub-program: `false` if it may not run within itself and does.
    pub(crate) fn may_call(&self, i: &Insn) -> Result<bool> {
        let Some(sub) = self.main.subprograms.get(i.p3 as usize) else {
            return Err(Code::Internal.into());
        };
        // One trigger may have several programs, by conflict policy: its name tells them apart from others'.
        let running = |p: &Program| match (&p.trigger, &sub.trigger) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        if i.p5 & 1 != 0 && (running(&self.f.program) || self.callers.iter().any(|f| running(&f.program))) {
            return Ok(false);
        }
        if self.callers.len() >= self.max_depth {
            return Err(Error::sql("too many levels of trigger recursion"));
        }
        Ok(true)
    }

    /// Enters the sub-program with this number.
    pub(crate) fn call(&mut self, number: usize, params: usize) {
        let mut f = match self.kept.frame(number) {
            Some(mut f) => {
                (f.last_rowid, f.reported, f.compare) = (0, 0, Ordering::Equal);
                f
            }
            None => Box::new(Frame::new(self.main.subprograms[number].clone())),
        };
        (f.number, f.params) = (number, params);
        self.counters.triggers += 1;
        f.changes = std::mem::take(&mut self.changes);
        (f.entered, f.counted) = (self.total_changes, self.total_changes);
        std::mem::swap(&mut self.f, &mut f);
        self.callers.push(f);
    }

    /// AUTOINCREMENT's largest rowid of sequence `n`, from 1.
    pub(crate) fn sequence(&mut self, n: i32) -> &mut i64 {
        let at = n as usize - 1;
        if self.sequences.len() <= at {
            self.sequences.resize(at + 1, 0);
        }
        &mut self.sequences[at]
    }

    /// Leaves the program of a trigger; `false` if none is running.
    pub(crate) fn leave(&mut self, env: &dyn crate::Env) -> bool {
        match self.callers.pop() {
            Some(mut inner) => {
                std::mem::swap(&mut self.f, &mut inner);
                self.changes = inner.changes;
                self.f.counted += self.total_changes - inner.entered;
                env.set_last_insert_rowid(self.f.last_rowid);
                env.settle_changes(self.f.reported, 0);
                self.kept.give_frame(inner);
                true
            }
            None => false,
        }
    }

    pub(crate) fn begin(&mut self, env: &dyn crate::Env) {
        self.started = true;
        self.announces = env.watches_before();
        self.leaving = None;
        self.enc = env.encoding();
        self.max_length = env.limit(Limit::Length).max(0) as usize;
        self.max_depth = env.limit(Limit::TriggerDepth).max(0) as usize;
    }
}

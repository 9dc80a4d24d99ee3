//! The interpreter's loop.
//!
//! Jumps set `pc`; every other instruction leaves it at the next one. Nothing of the connection is borrowed across an
//! instruction, so functions may call back.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::{Outcome, Vm};
use crate::ops;
use iolite_base::{Code, Encoding, Result};
use iolite_bytecode::{Insn, Opcode, P4, p5};
use iolite_value::arith::{self, Arith};
use iolite_value::{Affinity, POINTER, Value};
use std::cell::Cell;
use std::cmp::Ordering;

/// Interruption is asked for once in so many instructions, unless [`Vm::check_every`] says otherwise.
pub(crate) const CHECK_EVERY: u32 = 8000;

impl Vm {
    /// Runs to the next row or the end.
    pub fn step(&mut self, env: &dyn Env) -> Result<Outcome> {
        if !self.started {
            self.begin(env);
        }
        let from = self.f.pc;
        loop {
            let program = self.f.program.clone();
            match self.run(&Cell::new(env), &program.insns) {
                Ok(Some(o)) => {
                    // Straight ways are counted at their end.
                    self.cpu += (self.f.pc.saturating_sub(from) + 1) as u32;
                    if self.cpu >= self.every {
                        self.ask(env)?;
                    }
                    return Ok(o);
                }
                // A trigger's program was entered or left.
                Ok(None) => continue,
                Err(e) => {
                    if let Some(outermost) = self.callers.first() {
                        env.set_last_insert_rowid(outermost.last_rowid);
                        // What triggers changed is no change of the statement's own.
                        self.changes = self.callers.get(1).map_or(&self.f, |f| f).changes;
                    }
                    return Err(e);
                }
            }
        }
    }

    #[inline(always)]
    fn reg(&self, n: i32) -> &Value {
        &self.f.regs[n as usize]
    }

    #[inline(always)]
    fn set(&mut self, n: i32, v: Value) {
        self.f.regs[n as usize] = v;
    }

    /// An integer mostly follows an integer, which nobody has to let go of.
    #[inline(always)]
    fn set_int(&mut self, n: i32, i: i64) {
        match &mut self.f.regs[n as usize] {
            Value::Int(before) => *before = i,
            other => *other = Value::Int(i),
        }
    }

    #[inline(always)]
    fn copy(&mut self, from: i32, to: i32) {
        if from != to {
            let [from, to] =
                self.f.regs.get_disjoint_mut([from as usize, to as usize]).expect("two registers");
            match from {
                Value::Int(n) => *to = Value::Int(*n),
                from => to.clone_from(from),
            }
        }
    }

    /// Runs until a row is there, or a program was entered or left, or the end.
    ///
    /// What the instructions ask the connection for is reached through a cell: otherwise the compiler reads the addresses of all its
    /// functions before the loop begins, a hundred instructions for each row that is answered and each short statement.
    #[inline(never)]
    fn run(&mut self, env: &Cell<&dyn Env>, insns: &[Insn]) -> Result<Option<Outcome>> {
        let mut pc = self.f.pc;
        loop {
            let i = &insns[pc];
            pc += 1;
            match i.op {
                Opcode::Init | Opcode::Goto => {
                    if (i.p2 as usize) < pc {
                        self.tick(pc - i.p2 as usize, env)?;
                    }
                    pc = i.p2 as usize;
                }
                Opcode::Gosub => {
                    self.set(i.p1, Value::Int(pc as i64));
                    pc = i.p2 as usize;
                }
                Opcode::Return => match self.reg(i.p1) {
                    Value::Int(at) => pc = *at as usize,
                    _ if i.p3 == 1 => {}
                    _ => return Err(Code::Internal.into()),
                },
                Opcode::InitCoroutine => {
                    self.set(i.p1, Value::Int(i.p3 as i64));
                    if i.p2 != 0 {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::EndCoroutine => {
                    if let Value::Int(at) = self.reg(i.p1) {
                        let caller = *at as usize - 1;
                        // From now on a Yield by the caller meets the end at once.
                        self.set(i.p1, Value::Int(-(pc as i64)));
                        pc = insns[caller].p2 as usize;
                    }
                }
                Opcode::Yield => match self.reg(i.p1) {
                    Value::Int(at) if *at >= 0 => {
                        let to = *at as usize;
                        self.set(i.p1, Value::Int(pc as i64));
                        pc = to;
                    }
                    _ => pc = i.p2 as usize,
                },
                Opcode::Halt => {
                    self.f.pc = pc - 1;
                    return ops::halt::halt(self, i, env.get());
                }
                Opcode::HaltIfNull => {
                    if self.reg(i.p3).is_null() {
                        return Err(ops::halt::constraint(self, i, None));
                    }
                }
                Opcode::Once => {
                    let bit = 1u64 << (i.p1 & 63);
                    let word = &mut self.f.once[i.p1 as usize >> 6];
                    if *word & bit != 0 {
                        pc = i.p2 as usize;
                    } else {
                        *word |= bit;
                    }
                }
                Opcode::If => {
                    let jump = match self.reg(i.p1) {
                        Value::Int(v) => *v != 0,
                        _ => self.truth(i.p1)?.unwrap_or(i.p3 != 0),
                    };
                    if jump {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::IfNot => {
                    let jump = match self.reg(i.p1) {
                        Value::Int(v) => *v == 0,
                        _ => self.truth(i.p1)?.map_or(i.p3 != 0, |t| !t),
                    };
                    if jump {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::IfPos => {
                    if let Value::Int(v) = &mut self.f.regs[i.p1 as usize]
                        && *v > 0
                    {
                        *v -= i.p3 as i64;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::PassRows => {
                    if ops::row::pass_rows(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::DecrJumpZero => {
                    if let Value::Int(v) = &mut self.f.regs[i.p1 as usize] {
                        *v = v.saturating_sub(1);
                        if *v == 0 {
                            pc = i.p2 as usize;
                        }
                    }
                }
                Opcode::IsNull => {
                    if self.reg(i.p1).is_null() {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::NotNull => {
                    if !self.reg(i.p1).is_null() {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::IsTrue => {
                    let t = match self.truth(i.p1)? {
                        Some(t) => t != matches!(i.p4, P4::Int(1)),
                        None => i.p3 != 0,
                    };
                    self.set(i.p2, Value::bool(t));
                }
                Opcode::ZeroOrNull => {
                    let null = self.reg(i.p1).is_null() || self.reg(i.p3).is_null();
                    self.set(i.p2, if null { Value::Null } else { Value::Int(0) });
                }
                Opcode::ClrSubtype => self.f.regs[i.p1 as usize].clear_subtype(),
                Opcode::ClrSubtypes => {
                    let first = i.p1 as usize;
                    let row = &mut self.f.regs[first..first + i.p3 as usize];
                    if row.iter().all(|v| v.subtype() == 0) {
                        pc = i.p2 as usize;
                    } else {
                        row.iter_mut().for_each(Value::clear_subtype);
                    }
                }
                Opcode::Jump => {
                    pc = match self.f.compare {
                        Ordering::Less => i.p1,
                        Ordering::Equal => i.p2,
                        Ordering::Greater => i.p3,
                    } as usize;
                }
                Opcode::Compare => ops::compare::keys(self, i),
                Opcode::Explain => {}
                Opcode::Probe => self.probe(i, env.get()),
                Opcode::Integer => self.set_int(i.p2, i.p1 as i64),
                Opcode::Int64 => {
                    if let P4::Int(v) = i.p4 {
                        self.set(i.p2, Value::Int(v));
                    }
                }
                Opcode::Real => {
                    if let P4::Real(v) = i.p4 {
                        self.set(i.p2, Value::real(v));
                    }
                }
                Opcode::String8 => {
                    if let P4::Bytes(b) = &i.p4 {
                        self.set(i.p2, Value::Text(b.clone(), 0));
                    }
                }
                Opcode::Blob => {
                    if let P4::Bytes(b) = &i.p4 {
                        self.set(i.p2, Value::Blob(b.clone(), 0));
                    }
                }
                Opcode::Null => {
                    self.set(i.p2, Value::Null);
                    for r in i.p2 + 1..=i.p3 {
                        self.set(r, Value::Null);
                    }
                }
                Opcode::GivenRow => {
                    if !ops::row::given_row(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Variable => {
                    let (regs, params) = (&mut self.f.regs[..], &self.params[..]);
                    let mut i = i;
                    loop {
                        let to = &mut regs[i.p2 as usize];
                        match params.get(i.p1 as usize - 1) {
                            Some(Value::Int(n)) => *to = Value::Int(*n),
                            Some(Value::Blob(_, POINTER)) if i.p3 == 0 => *to = Value::Null,
                            Some(v) => to.clone_from(v),
                            None => *to = Value::Null,
                        }
                        // They come in runs: an INSERT has one for each column.
                        match insns.get(pc) {
                            Some(next) if next.op == Opcode::Variable => i = next,
                            _ => break,
                        }
                        pc += 1;
                    }
                }
                Opcode::Copy => {
                    for k in 0..=i.p3 {
                        self.copy(i.p1 + k, i.p2 + k);
                    }
                }
                Opcode::SCopy => self.copy(i.p1, i.p2),
                Opcode::Add => self.arith(Arith::Add, i)?,
                Opcode::Subtract => self.arith(Arith::Sub, i)?,
                Opcode::Multiply => self.arith(Arith::Mul, i)?,
                Opcode::Divide => self.arith(Arith::Div, i)?,
                Opcode::Remainder => self.arith(Arith::Rem, i)?,
                Opcode::Concat => {
                    let v = if self.enc == Encoding::Utf8 {
                        arith::concat(self.reg(i.p2), self.reg(i.p1), self.max_length)?
                    } else {
                        arith::concat_utf16(self.reg(i.p2), self.reg(i.p1), self.enc, self.max_length)?
                    };
                    self.set(i.p3, v);
                }
                Opcode::BitAnd => self.binary(arith::bit_and, i)?,
                Opcode::BitOr => self.binary(arith::bit_or, i)?,
                Opcode::ShiftLeft => self.binary(arith::shift_left, i)?,
                Opcode::ShiftRight => self.binary(arith::shift_right, i)?,
                Opcode::BitNot => {
                    let v = match self.spelled(i.p1)? {
                        Some(v) => arith::bit_not(&v),
                        None => arith::bit_not(self.reg(i.p1)),
                    };
                    self.set(i.p2, v);
                }
                Opcode::Not => {
                    let v = self.truth(i.p1)?.map_or(Value::Null, |t| Value::bool(!t));
                    self.set(i.p2, v);
                }
                Opcode::And | Opcode::Or => {
                    let (a, b) = (self.truth(i.p1)?, self.truth(i.p2)?);
                    let t = if i.op == Opcode::And { arith::and(a, b) } else { arith::or(a, b) };
                    self.set(i.p3, t.map_or(Value::Null, Value::bool));
                }
                Opcode::MustBeInt => {
                    if !matches!(self.reg(i.p1), Value::Int(_)) {
                        let mut v = self.reg(i.p1).clone();
                        Affinity::Numeric.apply(&mut v)?;
                        match v {
                            Value::Int(_) => self.set(i.p1, v),
                            _ if i.p2 != 0 => pc = i.p2 as usize,
                            _ => return Err(Code::Mismatch.into()),
                        }
                    }
                }
                Opcode::RealAffinity => {
                    if let Value::Int(v) = self.reg(i.p1) {
                        let r = *v as f64;
                        self.set(i.p1, Value::Real(r));
                    }
                }
                Opcode::Cast => {
                    let to = Affinity::from_letter(i.p2 as u8);
                    let v = if self.enc == Encoding::Utf8 {
                        to.cast(self.reg(i.p1))?
                    } else {
                        to.cast_utf16(self.reg(i.p1), self.enc)?
                    };
                    // JSON that becomes text is JSON still.
                    let subtype = if to == Affinity::Text { self.reg(i.p1).subtype() } else { 0 };
                    self.set(i.p1, v.with_subtype(subtype));
                }
                Opcode::Affinity => {
                    if let P4::Affinities(list) = &i.p4 {
                        let first = i.p1 as usize;
                        let regs = &mut self.f.regs[first..first + list.len()];
                        for (v, a) in regs.iter_mut().zip(list.iter()) {
                            // Most integers are on their way into columns of integers.
                            if *a != Affinity::Integer || !matches!(v, Value::Int(_)) {
                                a.apply(v)?;
                            }
                        }
                    }
                }
                Opcode::TypeCheck => ops::strict::check(self, i)?,
                Opcode::Eq | Opcode::Ne | Opcode::Lt | Opcode::Le | Opcode::Gt | Opcode::Ge => {
                    if ops::compare::jumps(self, i)? {
                        if (i.p2 as usize) < pc {
                            self.tick(pc - i.p2 as usize, env)?;
                        }
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Function => {
                    self.f.pc = pc;
                    ops::function::call(self, i, env.get())?;
                }
                Opcode::AggStep => ops::aggregate::step(self, i, env.get())?,
                Opcode::AggFinal => ops::aggregate::finish(self, i, env.get())?,
                Opcode::OpenRead | Opcode::OpenWrite => ops::open::table(self, i, env.get())?,
                Opcode::ReopenIdx => ops::open::reopen(self, i, env.get())?,
                Opcode::OpenEphemeral | Opcode::OpenAutoindex => ops::open::ephemeral(self, i, env.get())?,
                Opcode::OpenDup => ops::open::duplicate(self, i)?,
                Opcode::OpenPseudo => ops::open::pseudo(self, i),
                Opcode::SorterOpen => ops::sort::open(self, i, env.get()),
                Opcode::Close => self.f.cursors[i.p1 as usize] = None,
                Opcode::NullRow => ops::row::null_row(self, i),
                Opcode::IfNullRow => {
                    if ops::row::is_null_row(self, i.p1) {
                        self.set(i.p3, Value::Null);
                        pc = i.p2 as usize;
                    }
                }
                Opcode::DeferredSeek => ops::seek::deferred(self, i)?,
                Opcode::FinishSeek => self.pay(i.p1)?,
                Opcode::SeekRowid | Opcode::NotExists => {
                    if !ops::seek::rowid(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SeekGE | Opcode::SeekGT | Opcode::SeekLE | Opcode::SeekLT => {
                    if !ops::seek::range(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Found => {
                    if ops::seek::found(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::NotFound => {
                    if !ops::seek::found(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::NoConflict => {
                    let n = if let P4::Int(n) = i.p4 { n as usize } else { 0 };
                    let key = &self.f.regs[i.p3 as usize..i.p3 as usize + n];
                    if key.iter().any(Value::is_null) {
                        // Nothing was sought: what an earlier row's probe found must not place this one's entry.
                        if let Some(VCursor::Tree(t)) = &mut self.f.cursors[i.p1 as usize] {
                            t.probe = None;
                        }
                        pc = i.p2 as usize;
                    } else if !ops::seek::found(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Rewind => {
                    let t = self.tree(i.p1)?;
                    let any = t.cur.first()?;
                    t.moved(any);
                    t.whole = t.transient.is_none();
                    if !any {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Last => {
                    let t = self.tree(i.p1)?;
                    let any = t.cur.last()?;
                    t.moved(any);
                    t.whole = t.transient.is_none();
                    if !any {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Next => {
                    let Some(VCursor::Tree(t)) = &mut self.f.cursors[i.p1 as usize] else { continue };
                    // A cursor on NULLs that stands nowhere: an outer join's.
                    if t.null_row && t.deferred.is_none() && !t.cur.is_valid() {
                        continue;
                    }
                    if i.p5 & p5::THEN_COLUMN != 0 {
                        let behind = pc;
                        pc = ops::row::next_row(self, insns, behind)?;
                        if pc == behind {
                            continue;
                        }
                        self.tick(behind - i.p2 as usize, env)?;
                        pc += ops::aggregate::quick_steps(
                            &mut self.f.extra.states,
                            &self.f.regs,
                            &insns[pc..behind],
                        );
                        // Columns and steps of aggregates alone: the rest of the leaf goes round there.
                        if pc + 1 == behind {
                            let (rows, each) = (self.every - 1 - self.cpu, (behind - i.p2 as usize) as u32);
                            let walked;
                            (pc, walked) = ops::row::leaf_rows(self, insns, pc, rows / each)?;
                            self.cpu += walked * each;
                        }
                        continue;
                    }
                    let more = t.cur.next()?;
                    t.moved(more);
                    if more {
                        self.counters.fullscan_steps += t.whole as u64;
                        self.tick(pc - i.p2 as usize, env)?;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Prev => {
                    // A set that has not been made, because what stands before it in the key was NULL: an outer join's.
                    let Some(VCursor::Tree(t)) = &mut self.f.cursors[i.p1 as usize] else { continue };
                    let more = t.cur.is_valid() && t.cur.prev()?;
                    t.moved(more);
                    if more {
                        let whole = t.whole as u64;
                        self.counters.fullscan_steps += whole;
                        self.tick(pc - i.p2 as usize, env)?;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::IdxGE | Opcode::IdxGT | Opcode::IdxLE | Opcode::IdxLT => {
                    if ops::seek::index_compare(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::IdxRowid => {
                    let t = self.tree(i.p1)?;
                    let v = if t.null_row {
                        Value::Null
                    } else {
                        t.settle()?;
                        Value::Int(t.index_rowid()?)
                    };
                    self.set(i.p2, v);
                }
                Opcode::IdxInsert => ops::write::index_insert(self, i, env.get())?,
                Opcode::IdxDelete => ops::write::index_delete(self, i)?,
                Opcode::Rowid => match &self.f.cursors[i.p1 as usize] {
                    Some(VCursor::Tree(t)) if t.is_on_row() => {
                        let id = t.cur.rowid();
                        self.set_int(i.p2, id);
                    }
                    _ => {
                        let v = ops::row::rowid(self, i.p1)?;
                        self.set(i.p2, v);
                    }
                },
                Opcode::Column => pc = ops::row::columns(self, insns, pc - 1)?,
                Opcode::RowData => ops::row::data(self, i)?,
                Opcode::MakeRecord => ops::row::make_record(self, i)?,
                Opcode::PatchRecord => ops::row::patch_record(self, i)?,
                Opcode::AutoincMax => {
                    let id = self.reg(i.p2).to_int();
                    let largest = self.sequence(i.p1);
                    *largest = id.max(*largest);
                }
                Opcode::AutoincRead => {
                    let n = *self.sequence(i.p1);
                    self.set(i.p2, Value::Int(n));
                }
                Opcode::NewRowid => ops::write::new_rowid(self, i, env.get())?,
                Opcode::CursorLock => ops::write::lock(self, i)?,
                Opcode::CursorUnlock => drop(self.locked.pop()),
                Opcode::Insert => ops::write::insert(self, i, env.get())?,
                Opcode::Delete => ops::write::delete(self, i, env.get())?,
                Opcode::FkCount => {
                    let n = self.reg(i.p2).to_int() * i.p3 as i64;
                    if n == 0 {
                    } else if env.get().defers_keys() {
                        env.get().count_deferred(n, true);
                    } else if i.p1 == 1 {
                        env.get().count_deferred(n, false);
                    } else {
                        self.violations += n;
                    }
                }
                Opcode::FkIfZero => {
                    let deferred = i.p1 == 1 || i.p1 == 0 && env.get().defers_keys();
                    if (if deferred { env.get().deferred() } else { self.violations }) == 0 {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::FkIfDeferred => {
                    if env.get().defers_keys() {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Trace => {
                    if let P4::Name(text) = &i.p4 {
                        env.get().trace(text);
                    }
                }
                Opcode::ChangeCount => self.set(i.p2, Value::Int(self.changes)),
                Opcode::ResetCount => {
                    let more = self.total_changes - self.f.counted;
                    self.settled_changes += more;
                    self.f.counted = self.total_changes;
                    env.get().settle_changes(self.changes, more);
                    self.changes = 0;
                }
                Opcode::Count => {
                    let t = self.tree(i.p1)?;
                    let n = t.cur.count()?;
                    t.moved(false);
                    self.set(i.p2, Value::Int(n as i64));
                }
                Opcode::CountRun => ops::seek::count_run(self, i)?,
                Opcode::Sequence => {
                    let n = match self.tree(i.p1) {
                        Ok(t) => {
                            t.sequence += 1;
                            t.sequence - 1
                        }
                        Err(_) => ops::queue::number(self, i)?,
                    };
                    self.set(i.p2, Value::Int(n));
                }
                Opcode::SorterSkip => {
                    if !ops::sort::wants(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SorterInsert => ops::sort::insert(self, i, env.get())?,
                Opcode::SorterSort => {
                    self.counters.sorts += u64::from(i.p5 & p5::AUTO_INDEX == 0);
                    if !ops::sort::sort(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SorterNext => {
                    if let Some(VCursor::Sorter(s)) = &mut self.f.cursors[i.p1 as usize]
                        && s.next()?
                    {
                        self.tick(pc - i.p2 as usize, env)?;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SorterFill => {
                    if ops::sort::fill(self, i, env.get())? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SorterData => ops::sort::data(self, i)?,
                Opcode::ResetSorter => ops::sort::reset(self, i)?,
                Opcode::ResultRow => {
                    self.result = (i.p1 as usize, i.p2 as usize);
                    self.f.pc = pc;
                    return Ok(Some(Outcome::Row));
                }
                Opcode::HashOpen => ops::hash::open(self, i),
                Opcode::HashBeyond => {
                    if ops::hash::beyond(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::HashFind => {
                    if ops::hash::find(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::HashStep => ops::hash::step(self, i, env.get())?,
                Opcode::HashStore => ops::hash::store(self, i)?,
                Opcode::HashSort => {
                    self.counters.sorts += 1;
                    if !ops::hash::table(&mut self.f.cursors, i.p1)?.sort()? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::HashFirst => {
                    // Whoever counts sorts counts one for groups.
                    self.counters.sorts += 1;
                    if !ops::hash::table(&mut self.f.cursors, i.p1)?.first()? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::HashNext => {
                    if ops::hash::table(&mut self.f.cursors, i.p1)?.next() {
                        self.tick(pc - i.p2 as usize, env)?;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::HashKey => ops::hash::key(self, i)?,
                Opcode::HashGroup => {
                    let n = ops::hash::table(&mut self.f.cursors, i.p1)?.current;
                    self.set(i.p2, Value::Int(n as i64));
                }
                Opcode::HashSlot => ops::hash::slot(self, i, env.get())?,
                Opcode::FilterBegin => ops::filter::begin(self, i)?,
                Opcode::FilterAdd => ops::filter::add(self, i),
                Opcode::FilterOpen => ops::filter::open(self, i),
                Opcode::FilterRowid => ops::filter::add_rowid(self, i)?,
                Opcode::WindowOpen => ops::window::open(self, i)?,
                Opcode::WindowRow => ops::window::add(self, i, env.get())?,
                Opcode::WindowOffsets => ops::window::offsets(self, i)?,
                Opcode::WindowRun => {
                    if !ops::window::run(self, i, env.get())? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::WindowNext => {
                    if !ops::window::next(self, i, env.get())? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Filter => {
                    if ops::filter::may_have(self, i) {
                        self.counters.filter_misses += 1;
                    } else {
                        self.counters.filter_hits += 1;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::FilterRow => {
                    if !ops::filter::row_may_match(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::QueueOpen => ops::queue::open(self, i),
                Opcode::QueueAdd => ops::queue::add(self, i, env.get())?,
                Opcode::QueueTake => {
                    if !ops::queue::take(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SetOpen => ops::set::open(self, i)?,
                Opcode::SetAdd => {
                    if ops::set::add(self, i, env.get())? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SetMissing => {
                    if !ops::set::has(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::SetEmpty => {
                    if ops::set::is_empty(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::RowSetTest => {
                    let batch = if let P4::Int(n) = i.p4 { n } else { 0 };
                    let id = self.reg(i.p3).to_int();
                    if self.reg(i.p1).is_null() {
                        self.f.extra.row_sets.insert(i.p1, Default::default());
                        self.set(i.p1, Value::Int(0));
                    }
                    let set = self.f.extra.row_sets.entry(i.p1).or_default();
                    match set.seen.get(&id) {
                        Some(_) => pc = i.p2 as usize,
                        None => {
                            set.seen.insert(id, batch);
                        }
                    }
                }
                Opcode::OffsetLimit => {
                    let (limit, offset) = (self.reg(i.p1).to_int(), self.reg(i.p3).to_int().max(0));
                    let both = if limit <= 0 { -1 } else { limit.checked_add(offset).unwrap_or(-1) };
                    self.set(i.p2, Value::Int(both));
                }
                Opcode::Fire => {
                    if self.may_call(i)? {
                        if let P4::Name(title) = &i.p4 {
                            env.get().trace(title);
                        }
                    } else {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::Program => {
                    if !self.may_call(i)? {
                        continue;
                    }
                    // Left at this instruction: RAISE(IGNORE) finds its jump target here.
                    self.f.pc = pc - 1;
                    self.f.last_rowid = env.get().last_insert_rowid();
                    self.f.reported = env.get().changes();
                    self.call(i.p3 as usize, i.p1 as usize);
                    return Ok(None);
                }
                Opcode::Param => {
                    let Some(caller) = self.callers.last() else { return Err(Code::Internal.into()) };
                    let v = caller.regs[self.f.params + i.p1 as usize].clone();
                    self.set(i.p2, v);
                }
                Opcode::Transaction => {
                    let generation = if let P4::Int(g) = i.p4 { g as u64 } else { 0 };
                    self.rowid_before = env.get().last_insert_rowid();
                    env.get().begin(i.p1 as usize, i.p2, i.p3 as u32, generation)?;
                    // Empty where no cache is shared.
                    let own = self.f.program.locks.iter().filter(|l| l.db == i.p1 as usize);
                    own.into_iter().try_for_each(|l| env.get().lock_table(l))?;
                }
                Opcode::ReadCookie => {
                    let v = env.get().btree(i.p1 as usize)?.meta(i.p3 as usize)?;
                    self.set(i.p2, Value::Int(v as i64));
                }
                Opcode::SetCookie => env.get().set_meta(i.p1 as usize, i.p2 as usize, i.p3 as u32)?,
                Opcode::CreateBtree => ops::schema::create(self, i, env.get())?,
                Opcode::Destroy => ops::schema::destroy(self, i, env.get())?,
                Opcode::Clear => ops::schema::clear(self, i, env.get())?,
                Opcode::ParseSchema => {
                    self.f.pc = pc;
                    let name = if let P4::Name(n) = &i.p4 { Some(&**n) } else { None };
                    env.get().parse_schema(i.p1 as usize, name)?;
                }
                Opcode::DropTable | Opcode::DropIndex | Opcode::DropTrigger => {
                    if let P4::Name(n) = &i.p4 {
                        match i.op {
                            Opcode::DropTable => env.get().drop_table(i.p1 as usize, n),
                            Opcode::DropIndex => env.get().drop_index(i.p1 as usize, n),
                            _ => env.get().drop_trigger(i.p1 as usize, n),
                        }
                    }
                }
                Opcode::MoveRoot => {
                    let from = self.reg(i.p2).to_int() as u32;
                    env.get().move_root(i.p1 as usize, from, i.p3 as u32)?;
                }
                Opcode::SqlExec => {
                    if let P4::Name(sql) = &i.p4 {
                        self.f.pc = pc;
                        env.get().exec_nested(sql)?;
                    }
                }
                Opcode::VBegin => {
                    if let P4::VirtualTable(t) = &i.p4 {
                        self.f.pc = pc;
                        env.get().begin_virtual(t)?;
                    }
                }
                Opcode::VUpdate => {
                    self.f.pc = pc;
                    ops::virt::update(self, i, env.get())?;
                }
                Opcode::VList => ops::virt::list(self, i),
                Opcode::VCreate | Opcode::VDestroy => {
                    if let P4::Name(n) = &i.p4 {
                        self.f.pc = pc;
                        match i.op {
                            Opcode::VCreate => env.get().create_virtual(i.p1 as usize, n)?,
                            _ => env.get().destroy_virtual(i.p1 as usize, n)?,
                        }
                    }
                }
                Opcode::VOpen => ops::virt::open(self, i)?,
                Opcode::VFilter => {
                    if !ops::virt::filter(self, i)? {
                        pc = i.p2 as usize;
                    }
                }
                Opcode::VColumn => ops::virt::column(self, i)?,
                Opcode::VNext => {
                    if ops::virt::next(self, i)? {
                        self.tick(pc - i.p2 as usize, env)?;
                        pc = i.p2 as usize;
                    }
                }
                Opcode::VRowid => ops::virt::rowid(self, i)?,
                Opcode::SourceOpen => {
                    if let P4::Source(f) = &i.p4 {
                        self.f.pc = pc;
                        let given = &self.f.regs[i.p3 as usize..i.p3 as usize + i.p5 as usize];
                        match (f.0)(env.get(), given)? {
                            Some(s) => self.f.cursors[i.p1 as usize] = Some(VCursor::Source(s)),
                            None => pc = i.p2 as usize,
                        }
                    }
                }
                Opcode::SourceNext => {
                    // The source may call back: it is taken out while it runs.
                    let Some(VCursor::Source(mut s)) = self.f.cursors[i.p1 as usize].take() else {
                        return Err(Code::Internal.into());
                    };
                    let (first, n) = (i.p3 as usize, i.p5 as usize);
                    let more = s.next(&mut self.f.regs[first..first + n])?;
                    self.f.cursors[i.p1 as usize] = Some(VCursor::Source(s));
                    if !more {
                        pc = i.p2 as usize;
                    }
                }
            }
        }
    }

    /// Asks whether to stop once in `instructions`; 0: as often as is good.
    pub fn check_every(&mut self, instructions: u32) {
        let every = if instructions == 0 { CHECK_EVERY } else { instructions.min(i32::MAX as u32) };
        if self.every != every {
            self.settle_counters();
            (self.every, self.ask_at) = (every, every);
            (self.cpu, self.settled) = (0, 0);
        }
    }

    /// Counts the instructions between a jump back and where it goes, as if all of them had run; asks now and then whether
    /// to stop.
    #[inline(always)]
    fn tick(&mut self, instructions: usize, env: &Cell<&dyn Env>) -> Result<()> {
        self.cpu += instructions as u32;
        if self.cpu >= self.ask_at { self.ask(env.get()) } else { Ok(()) }
    }

    /// Asks whether to stop at the next jump back.
    pub(crate) fn ask_soon(&mut self) {
        self.ask_at = 0;
    }

    #[inline(never)]
    fn ask(&mut self, env: &dyn Env) -> Result<()> {
        self.settle_counters();
        let times = self.cpu / self.every;
        self.cpu %= self.every;
        self.settled = self.cpu;
        self.ask_at = self.every;
        match times {
            0 => env.check_after(0),
            _ => (0..times).try_for_each(|_| env.check_interrupt()),
        }
    }

    /// Brings the counters up to now.
    pub fn settle_counters(&mut self) {
        self.counters.vm_steps += (self.cpu - self.settled) as u64;
        self.settled = self.cpu;
    }

    #[inline(always)]
    fn arith(&mut self, op: Arith, i: &Insn) -> Result<()> {
        if let (Value::Int(a), Value::Int(b)) = (self.reg(i.p2), self.reg(i.p1)) {
            let whole = match op {
                Arith::Add => a.checked_add(*b),
                Arith::Sub => a.checked_sub(*b),
                Arith::Mul => a.checked_mul(*b),
                _ => None,
            };
            if let Some(v) = whole {
                self.set_int(i.p3, v);
                return Ok(());
            }
        }
        self.binary(|a, b| arith::arith(op, a, b), i)
    }

    /// `P3 = f(P2, P1)`, where `f` reads its operands as numbers.
    #[inline(always)]
    fn binary(&mut self, f: impl Fn(&Value, &Value) -> Value, i: &Insn) -> Result<()> {
        let v = if self.enc == Encoding::Utf8 {
            f(self.reg(i.p2), self.reg(i.p1))
        } else {
            let (a, b) = (self.spelled(i.p2)?, self.spelled(i.p1)?);
            f(a.as_ref().unwrap_or(self.reg(i.p2)), b.as_ref().unwrap_or(self.reg(i.p1)))
        };
        self.set(i.p3, v);
        Ok(())
    }

    /// What a register is as a condition.
    fn truth(&self, r: i32) -> Result<Option<bool>> {
        Ok(match self.spelled(r)? {
            Some(v) => v.truth(),
            None => self.reg(r).truth(),
        })
    }

    /// A blob in a database of UTF-16, which is read as a number by the text that its bytes spell; None of all else.
    #[inline]
    fn spelled(&self, r: i32) -> Result<Option<Value>> {
        match self.reg(r) {
            v @ Value::Blob(..) if self.enc != Encoding::Utf8 => v.blob_in_utf8(self.enc).map(Some),
            _ => Ok(None),
        }
    }
}

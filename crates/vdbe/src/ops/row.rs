//! Reading rows, making records.

use crate::cursor::{PseudoCursor, RowCache, TreeCursor, VCursor, near_int, near_value};
use crate::machine::Vm;
use crate::ops::aggregate;
use iolite_base::{Buf, Code, Encoding, Result};
use iolite_bytecode::{Given, Insn, Opcode, P4, p5};
use iolite_value::{Affinity, POINTER, Value, record};
use std::cmp::Ordering;

pub(crate) fn null_row(vm: &mut Vm, i: &Insn) {
    match &mut vm.f.cursors[i.p1 as usize] {
        Some(VCursor::Tree(t)) => {
            // It stands nowhere, so that the loop's Next finds its end.
            t.cur.clear();
            t.moved(false);
        }
        // With p2 the record has changed; without, the cursor stands on NULLs.
        Some(VCursor::Pseudo(p)) => {
            p.cache.reset();
            p.null_row = i.p2 == 0;
        }
        Some(VCursor::Virtual { null_row, .. }) => *null_row = true,
        // An automatic index that has not been built, because no loop around it had a row.
        None => {
            let p = PseudoCursor { reg: 0, null_row: true, cache: RowCache::default() };
            vm.f.cursors[i.p1 as usize] = Some(VCursor::Pseudo(p));
        }
        _ => {}
    }
}

pub(crate) fn is_null_row(vm: &Vm, n: i32) -> bool {
    match &vm.f.cursors[n as usize] {
        Some(VCursor::Tree(t)) => t.null_row,
        Some(VCursor::Pseudo(p)) => p.null_row,
        Some(VCursor::Virtual { null_row, .. }) => *null_row,
        _ => true,
    }
}

pub(crate) fn rowid(vm: &mut Vm, n: i32) -> Result<Value> {
    match &mut vm.f.cursors[n as usize] {
        Some(VCursor::Tree(t)) => {
            if let Some(x) = t.deferred
                && let Some(VCursor::Tree(index)) = &mut vm.f.cursors[x]
            {
                index.settle()?;
                return Ok(Value::Int(index.index_rowid()?));
            }
            let t = vm.tree(n)?;
            if t.null_row {
                return Ok(Value::Null);
            }
            t.settle()?;
            Ok(if t.null_row { Value::Null } else { Value::Int(t.cur.rowid()) })
        }
        _ => Ok(Value::Null),
    }
}

/// The `Column` at `pc`, and those of the same cursor that follow it; returns where it goes on.
#[inline(always)]
pub(crate) fn columns(vm: &mut Vm, insns: &[Insn], pc: usize) -> Result<usize> {
    let i = &insns[pc];
    let frame = &mut vm.f;
    let Some(VCursor::Tree(t)) = &mut frame.cursors[i.p1 as usize] else {
        pseudo_column(vm, i)?;
        return Ok(pc + 1);
    };
    if !t.is_on_row() {
        unsettled_column(vm, i)?;
        return Ok(pc + 1);
    }
    fields(t, &mut frame.regs, vm.enc, insns, pc)
}

/// The `Column` at `pc`, and those that follow it, of a cursor that stands on its row.
#[inline(always)]
pub(crate) fn fields(
    t: &mut TreeCursor,
    regs: &mut [Value],
    enc: Encoding,
    insns: &[Insn],
    mut pc: usize,
) -> Result<usize> {
    loop {
        let i = &insns[pc];
        let out = &mut regs[i.p3 as usize];
        if !t.field(i.p2 as usize, enc, i.p5, out)? {
            *out = missing(i);
        }
        pc += 1;
        if i.p5 & p5::THEN_COLUMN == 0 {
            return Ok(pc);
        }
    }
}

/// The `Next` before `behind`, and the columns of the row that its loop begins with; returns where the program goes on.
///
/// This and [`leaf_rows`] are functions of their own: within the interpreter's loop nearly all that they work with would lie on the stack
/// (a third of the instructions were loads and stores of that).
#[inline(never)]
pub(crate) fn next_row(vm: &mut Vm, insns: &[Insn], behind: usize) -> Result<usize> {
    let i = &insns[behind - 1];
    let enc = vm.enc;
    let frame = &mut vm.f;
    let Some(VCursor::Tree(t)) = &mut frame.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let each = (behind - i.p2 as usize) as u32;
    let mut most = (vm.every - 1 - vm.cpu.min(vm.every - 1)) / each;
    loop {
        let more = t.cur.next()?;
        t.moved(more);
        if !more {
            return Ok(behind);
        }
        vm.counters.fullscan_steps += t.whole as u64;
        let first = i.p2 as usize;
        let pc = fields(t, &mut frame.regs, enc, insns, first)?;
        if most == 0 || !passes_over(&insns[pc], behind - 1, &frame.regs) {
            return Ok(pc);
        }
        most -= 1;
        vm.cpu += each;
        if pc == first + 1 && most > 0 {
            let passed = pass_leaf(t, &insns[first], &insns[pc], &frame.regs, most)?;
            most -= passed;
            vm.cpu += each * passed;
            vm.counters.fullscan_steps += if t.whole { u64::from(passed) } else { 0 };
        }
    }
}

/// Passes over the rows that follow on the present leaf as long as a comparison of integers leaves them out, by their only column, and
/// `most` at most: how many. The cursor stands on the last of them.
#[inline(never)]
fn pass_leaf(t: &mut TreeCursor, column: &Insn, test: &Insn, regs: &[Value], most: u32) -> Result<u32> {
    let (Some(left), Some(right)) = (regs.get(test.p3 as usize), regs.get(test.p1 as usize)) else {
        return Ok(0);
    };
    let (field, by_left) = (column.p2 as usize, test.p3 == column.p3);
    let Value::Int(other) = *(if by_left { right } else { left }) else { return Ok(0) };
    if !by_left && test.p1 != column.p3 {
        return Ok(0);
    }
    let leaves = |i: i64| {
        let order = if by_left { i.cmp(&other) } else { other.cmp(&i) };
        leaves_out(test.op, order)
    };
    let passed = t.cur.walk_while(most, |page, cell| {
        near_int(page, cell.at as usize, cell.local as usize, field).is_some_and(leaves)
    })?;
    if passed > 0 {
        t.moved(true);
    }
    Ok(passed)
}

/// Whether a comparison of integers leads to the `Next` at `next`: in a scan for few rows most rows are left there.
#[inline(always)]
fn passes_over(i: &Insn, next: usize, regs: &[Value]) -> bool {
    if i.p2 as usize != next {
        return false;
    }
    let ints = || match (regs.get(i.p3 as usize), regs.get(i.p1 as usize)) {
        (Some(Value::Int(a)), Some(Value::Int(b))) => Some(a.cmp(b)),
        _ => None,
    };
    ints().is_some_and(|order| leaves_out(i.op, order))
}

/// Whether a comparison jumps, if its sides are in this order.
#[inline(always)]
fn leaves_out(op: Opcode, order: Ordering) -> bool {
    match op {
        Opcode::Ne => order.is_ne(),
        Opcode::Eq => order.is_eq(),
        Opcode::Lt => order.is_lt(),
        Opcode::Le => order.is_le(),
        Opcode::Gt => order.is_gt(),
        Opcode::Ge => order.is_ge(),
        _ => false,
    }
}

/// Goes through the rows that follow on the present leaf, `most` at most, by a loop of nothing but columns and steps of aggregates, from
/// `first` to the `Next` at `last`, as long as they are plain: where the program goes on, and how many rows there were.
#[inline(never)]
pub(crate) fn leaf_rows(vm: &mut Vm, insns: &[Insn], last: usize, most: u32) -> Result<(usize, u32)> {
    let i = &insns[last];
    let (first, enc) = (i.p2 as usize, vm.enc);
    let frame = &mut vm.f;
    let Some(VCursor::Tree(t)) = &mut frame.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let body = &insns[first..last];
    let columns = 1 + body.iter().take_while(|i| i.p5 & p5::THEN_COLUMN != 0).count();
    let (columns, steps) = body.split_at(columns);
    let (regs, states) = (&mut frame.regs, &mut frame.extra.states);
    let mut pc = last;
    let rows = t.cur.walk(most, |page, cell| {
        let (off, len) = (cell.at as usize, cell.local as usize);
        let near = columns.iter().all(|i| {
            let out = &mut regs[i.p3 as usize];
            near_value(page, off, len, i.p2 as usize, enc, i.p5 & p5::COPY != 0, out)
        });
        if !near {
            // The instructions read this row's columns.
            pc = first;
            return false;
        }
        let done = aggregate::quick_steps(states, regs, steps);
        pc = first + columns.len() + done;
        pc == last
    })?;
    if rows > 0 {
        t.moved(true);
        vm.counters.fullscan_steps += if t.whole { rows as u64 } else { 0 };
    }
    Ok((pc, rows))
}

/// The next of the rows that stand in the text. `false`: there is none.
pub(crate) fn given_row(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let P4::Rows(rows) = &i.p4 else { return Err(Code::Internal.into()) };
    let regs = &mut vm.f.regs;
    let Value::Int(number) = &mut regs[i.p1 as usize] else { return Err(Code::Internal.into()) };
    let Some(row) = rows.get(*number as usize) else { return Ok(false) };
    *number += 1;
    for (to, field) in regs[i.p3 as usize..].iter_mut().zip(row) {
        let v = match field {
            Given::Value(v) => v,
            Given::Parameter(n) => vm.params.get(*n as usize - 1).unwrap_or(&Value::Null),
        };
        match v {
            Value::Int(n) => *to = Value::Int(*n),
            Value::Blob(_, POINTER) => *to = Value::Null,
            v => to.clone_from(v),
        }
    }
    Ok(true)
}

/// Passes over the row of a cursor and those that follow it on its leaf, as many as a register says, and subtracts them. `false`: it says none.
pub(crate) fn pass_rows(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let frame = &mut vm.f;
    let Value::Int(left) = &mut frame.regs[i.p3 as usize] else { return Ok(false) };
    if *left <= 0 {
        return Ok(false);
    }
    *left -= 1;
    if let Some(VCursor::Tree(t)) = &mut frame.cursors[i.p1 as usize]
        && t.is_on_row()
    {
        let passed = t.cur.pass(u32::try_from(*left).unwrap_or(u32::MAX), i.p5 != 0)?;
        if passed > 0 {
            t.moved(true);
            *left -= i64::from(passed);
            vm.counters.fullscan_steps += if t.whole { u64::from(passed) } else { 0 };
        }
    }
    Ok(true)
}

/// A record that ends before the column: the column's default.
#[cold]
fn missing(i: &Insn) -> Value {
    match &i.p4 {
        P4::Value(d) => (**d).clone(),
        _ => Value::Null,
    }
}

/// A column of a cursor that must first find its row.
#[inline(never)]
fn unsettled_column(vm: &mut Vm, i: &Insn) -> Result<()> {
    let enc = vm.enc;
    if vm.tree(i.p1)?.null_row {
        vm.put(i.p3, Value::Null);
        return Ok(());
    }
    vm.pay(i.p1)?;
    let t = vm.tree(i.p1)?;
    t.settle()?;
    if t.null_row {
        vm.put(i.p3, Value::Null);
        return Ok(());
    }
    let mut v = Value::Null;
    if t.field(i.p2 as usize, enc, i.p5, &mut v)? {
        vm.put(i.p3, v);
    } else {
        vm.put(i.p3, missing(i));
    }
    Ok(())
}

#[inline(never)]
fn pseudo_column(vm: &mut Vm, i: &Insn) -> Result<()> {
    let Some(VCursor::Pseudo(p)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let found = match &vm.f.regs[p.reg] {
        Value::Blob(b, _) if !p.null_row => p.field(b, i.p2 as usize, vm.enc)?,
        _ => Some(Value::Null),
    };
    match found {
        Some(v) => vm.put(i.p3, v),
        None => vm.put(i.p3, missing(i)),
    }
    Ok(())
}

pub(crate) fn data(vm: &mut Vm, i: &Insn) -> Result<()> {
    if let Some(VCursor::Pseudo(p)) = &vm.f.cursors[i.p1 as usize] {
        let v = vm.f.regs[p.reg].clone();
        vm.put(i.p2, v);
        return Ok(());
    }
    vm.pay(i.p1)?;
    let t = vm.tree(i.p1)?;
    t.settle()?;
    let v = t.with_record(Value::blob)?;
    vm.put(i.p2, v);
    Ok(())
}

/// Memory for a record: that of the register's former one.
#[inline]
fn record_memory(vm: &mut Vm, register: i32) -> Result<Buf> {
    match std::mem::take(&mut vm.f.regs[register as usize]) {
        Value::Blob(b, _) => Ok(b.into_buf()),
        _ => match vm.kept.record() {
            Some(b) => Ok(b),
            None => Buf::with_capacity(64),
        },
    }
}

pub(crate) fn make_record(vm: &mut Vm, i: &Insn) -> Result<()> {
    let first = i.p1 as usize;
    let n = i.p2 as usize;
    let mut buf = record_memory(vm, i.p3)?;
    match &i.p4 {
        P4::Affinities(list) => {
            let mut reals = false;
            for (v, a) in vm.f.regs[first..first + n].iter_mut().zip(list.iter()) {
                if *a != Affinity::Real {
                    a.apply(v)?;
                    continue;
                }
                reals = true;
                match v {
                    // Small whole numbers of a REAL column are stored as integers: no need to make reals of them first.
                    Value::Int(i) if i.unsigned_abs() < 1 << 47 => {}
                    Value::Real(_) => {}
                    v => a.apply(v)?,
                }
            }
            if reals {
                encode(vm, i, |k| list.get(k) == Some(&Affinity::Real), &mut buf)?;
            } else {
                encode(vm, i, |_| false, &mut buf)?;
            }
        }
        _ => encode(vm, i, |_| false, &mut buf)?,
    }
    vm.put(i.p3, Value::Blob(buf.into_bytes(), 0));
    Ok(())
}

/// The row's record with some fields anew: what stays is neither decoded nor encoded.
pub(crate) fn patch_record(vm: &mut Vm, i: &Insn) -> Result<()> {
    vm.pay(i.p1)?;
    vm.tree(i.p1)?.settle()?;
    let mut buf = record_memory(vm, i.p3)?;
    let (P4::Patch(fields), Some(VCursor::Tree(t))) = (&i.p4, &mut vm.f.cursors[i.p1 as usize]) else {
        return Err(Code::Internal.into());
    };
    if t.null_row {
        return Err(Code::Internal.into());
    }
    let regs = &vm.f.regs[i.p2 as usize..];
    let recoded = match vm.enc {
        Encoding::Utf8 => Vec::new(),
        // Rare: the new values once more, texts in the database's encoding, by their fields.
        enc => fields
            .iter()
            .map(|f| record::recoded_value(f.register.map_or(&f.default, |r| &regs[r as usize]), enc))
            .collect::<Result<_>>()?,
    };
    let new = |k: usize, there: bool| {
        let f = &fields[k];
        let own = match f.register {
            Some(r) => &regs[r as usize],
            None if there => return None,
            None => &f.default,
        };
        Some((recoded.get(k).unwrap_or(own), f.real))
    };
    let tail = match fields.last().and_then(|f| f.register).map(|r| &regs[r as usize]) {
        Some(Value::Text(b, _) | Value::Blob(b, _))
            if i.p5 & p5::FOR_INSERT != 0 && b.len() >= LARGE && vm.enc == Encoding::Utf8 =>
        {
            Some(b.clone())
        }
        _ => None,
    };
    let len = t.cur.payload_len() as usize;
    let (page, at, local) = t.cur.local();
    if local == len {
        record::patch(&page[at..at + len], fields.len(), new, tail.is_some(), vm.max_length, &mut buf)?;
    } else {
        let mut whole = iolite_base::alloc::zeroed(len)?;
        t.cur.read_payload(0, &mut whole)?;
        record::patch(&whole, fields.len(), new, tail.is_some(), vm.max_length, &mut buf)?;
    }
    if tail.is_some() {
        vm.f.extra.tail = tail;
    }
    vm.put(i.p3, Value::Blob(buf.into_bytes(), 0));
    Ok(())
}

/// From this length on, the bytes of a row's last value are not copied behind the others.
const LARGE: usize = 4 << 10;

#[inline(always)]
fn encode(vm: &mut Vm, i: &Insn, real: impl Fn(usize) -> bool, buf: &mut Buf) -> Result<()> {
    let values = &vm.f.regs[i.p1 as usize..(i.p1 + i.p2) as usize];
    if i.p5 & p5::FOR_INSERT != 0
        && let Some(Value::Text(b, _) | Value::Blob(b, _)) = values.last()
        && b.len() >= LARGE
        && vm.enc == Encoding::Utf8
    {
        vm.f.extra.tail = Some(b.clone());
        return record::encode_head(values, real, vm.max_length, buf);
    }
    record::encode_buf(values, vm.enc, real, vm.max_length, buf)
}

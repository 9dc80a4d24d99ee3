//! Virtual tables.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::{Action, Vm};
use iolite_base::{Code, Result};
use iolite_bytecode::{Insn, P4, p5};
use iolite_ext::{Change, FilterArgs, OnConflict, VirtualCursor};
use iolite_value::{POINTER, Value};

/// Takes the module's cursor out of its place while `f` runs: the table's code may call back.
#[inline]
fn with<T>(
    vm: &mut Vm,
    n: i32,
    f: impl FnOnce(&mut Vm, &mut Box<dyn VirtualCursor>, bool) -> Result<T>,
) -> Result<T> {
    let Some(VCursor::Virtual { cursor, null_row }) = &mut vm.f.cursors[n as usize] else {
        return Err(Code::Internal.into());
    };
    let (mut taken, null_row) = (cursor.take().ok_or(Code::Internal)?, *null_row);
    let out = f(vm, &mut taken, null_row);
    if let Some(VCursor::Virtual { cursor, .. }) = &mut vm.f.cursors[n as usize] {
        *cursor = Some(taken);
    }
    out
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) -> Result<()> {
    let P4::VirtualTable(t) = &i.p4 else { return Err(Code::Internal.into()) };
    let cursor = Some(t.open()?);
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Virtual { cursor, null_row: false });
    Ok(())
}

pub(crate) fn filter(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let P4::VirtualPlan(plan) = &i.p4 else { return Err(Code::Internal.into()) };
    if let Some(VCursor::Virtual { null_row, .. }) = &mut vm.f.cursors[i.p1 as usize] {
        *null_row = false;
    }
    let base = i.p3 as usize;
    let (num, n) = (vm.f.regs[base].to_int() as i32, vm.f.regs[base + 1].to_int() as usize);
    let mut lists = Vec::new();
    for k in (0..n.min(16)).filter(|k| i.p5 & 1 << k != 0) {
        lists.push((k, vm.f.extra.lists.remove(&(i.p3 + 2 + k as i32)).unwrap_or_default()));
    }
    with(vm, i.p1, |vm, c, _| {
        let args = FilterArgs::new(&vm.f.regs[base + 2..base + 2 + n], &lists);
        c.filter(num, &plan.text, &args.with_data(plan.data.as_ref()))?;
        Ok(!c.eof())
    })
}

/// Adds a value to a list for a filter, or begins it.
pub(crate) fn list(vm: &mut Vm, i: &Insn) {
    if i.p1 == 0 {
        vm.put(i.p3, Value::Null);
        vm.f.extra.lists.insert(i.p3, Vec::new());
        return;
    }
    let value = vm.f.regs[i.p1 as usize].clone();
    vm.f.extra.lists.entry(i.p3).or_default().push(value);
}

pub(crate) fn column(vm: &mut Vm, i: &Insn) -> Result<()> {
    if let P4::Int(unchanged) = i.p4 {
        let known = with(vm, i.p1, |_, c, _| c.column_unchanged(i.p2 as usize))?;
        if known.is_none() {
            let bits = vm.f.regs[unchanged as usize].to_int() | 1 << i.p2;
            vm.put(unchanged as i32, Value::Int(bits));
        }
        vm.put(i.p3, known.unwrap_or_default());
        return Ok(());
    }
    let v = with(vm, i.p1, |_, c, null| if null { Ok(Value::Null) } else { c.column(i.p2 as usize) })?;
    let stays = i.p5 & p5::PASSES != 0 || !matches!(v, Value::Blob(_, POINTER));
    vm.put(i.p3, if stays { v } else { Value::Null });
    Ok(())
}

pub(crate) fn next(vm: &mut Vm, i: &Insn) -> Result<bool> {
    with(vm, i.p1, |_, c, null| {
        if null {
            return Ok(false);
        }
        c.next()?;
        Ok(!c.eof())
    })
}

pub(crate) fn rowid(vm: &mut Vm, i: &Insn) -> Result<()> {
    let v = with(vm, i.p1, |_, c, null| if null { Ok(Value::Null) } else { c.rowid().map(Value::Int) })?;
    vm.put(i.p2, v);
    Ok(())
}

/// Tells a virtual table of a change.
pub(crate) fn update(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let P4::VirtualTable(table) = &i.p4 else { return Err(Code::Internal.into()) };
    let (first, n) = (i.p3 as usize, i.p2 as usize);
    // The module may call back, but it cannot reach this program's registers.
    let told = &vm.f.regs[first..first + n];
    let (conflict, action) = match i.p5 & 15 {
        1 => (OnConflict::Rollback, Action::Rollback),
        2 => (OnConflict::Ignore, Action::Abort),
        3 => (OnConflict::Fail, Action::Fail),
        5 => (OnConflict::Replace, Action::Abort),
        _ => (OnConflict::Abort, Action::Abort),
    };
    let change = Change {
        old: (i.p1 != 1).then(|| &told[0]),
        new: (n > 1).then(|| (&told[1], &told[2..])),
        unchanged: if i.p1 == 2 { vm.f.regs[first + n].to_int() as u64 } else { 0 },
        conflict,
    };
    match table.update(&change) {
        Ok(rowid) if i.p1 == 1 => env.set_last_insert_rowid(rowid),
        Ok(_) => {}
        Err(e) => {
            if e.code().primary() == Code::Constraint && i.p5 & 16 != 0 {
                if conflict == OnConflict::Ignore {
                    return Ok(());
                }
                vm.action = action;
            }
            return Err(e);
        }
    }
    vm.changes += 1;
    vm.total_changes += 1;
    Ok(())
}

//! Hash aggregation.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::hash::{HashTable, Slot, owned};
use crate::machine::Vm;
use crate::ops::aggregate::{arguments, make, with_context};
use iolite_base::{Code, Result};
use iolite_bytecode::{Insn, P4};
use iolite_value::Value;

pub(crate) fn table(cursors: &mut [Option<VCursor>], n: i32) -> Result<&mut HashTable> {
    match &mut cursors[n as usize] {
        Some(VCursor::Hash(h)) => Ok(h),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) {
    if let P4::KeyInfo(k) = &i.p4 {
        let mut h = HashTable::new(k.clone(), i.p2 as usize, i.p3 as usize);
        if i.p5 > 0
            && let Value::Int(n) = vm.f.regs[i.p5 as usize]
            && n > 0
        {
            h.want(n as usize);
        }
        vm.f.cursors[i.p1 as usize] = Some(VCursor::Hash(h));
    }
}

#[inline]
pub(crate) fn beyond(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let h = table(&mut vm.f.cursors, i.p1)?;
    let first = i.p3 as usize;
    let n = h.width();
    Ok(h.beyond(&vm.f.regs[first..first + n]))
}

#[inline]
pub(crate) fn find(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let h = table(&mut vm.f.cursors, i.p1)?;
    let first = i.p3 as usize;
    let n = h.width();
    h.find(&vm.f.regs[first..first + n])
}

#[inline]
pub(crate) fn step(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let P4::Function(f) = &i.p4 else { return Err(Code::Internal.into()) };
    let slot = table(&mut vm.f.cursors, i.p1)?.slot(i.p3 as usize);
    let first = i.p2 as usize;
    if i.p5 == 0
        && let Slot::State(s) = slot
        && s.quick_step(&vm.f.regs[first..first + f.args])
    {
        return Ok(());
    }
    // Taken out while it runs: a function may call back.
    let mut s = match std::mem::take(slot) {
        Slot::State(s) => s,
        _ => make(f)?,
    };
    let done = arguments(f, &vm.f.regs[first..first + f.args], vm.enc)
        .and_then(|args| with_context(f, env, &mut vm.f.extra.aggregate_aux, |c| s.step(c, &args)));
    let changed = i.p5 != 0 && s.changed();
    *table(&mut vm.f.cursors, i.p1)?.slot(i.p3 as usize) = Slot::State(s);
    done?;
    if changed {
        vm.put(i.p5 as i32, Value::Int(1));
    }
    Ok(())
}

pub(crate) fn store(vm: &mut Vm, i: &Insn) -> Result<()> {
    let v = owned(&vm.f.regs[i.p2 as usize])?;
    *table(&mut vm.f.cursors, i.p1)?.slot(i.p3 as usize) = Slot::Value(v);
    Ok(())
}

pub(crate) fn key(vm: &mut Vm, i: &Insn) -> Result<()> {
    for k in 0..table(&mut vm.f.cursors, i.p1)?.width() {
        let v = table(&mut vm.f.cursors, i.p1)?.key(k).clone();
        vm.put(i.p2 + k as i32, v);
    }
    Ok(())
}

pub(crate) fn slot(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let s = std::mem::take(table(&mut vm.f.cursors, i.p1)?.slot(i.p3 as usize));
    let v = match (s, &i.p4) {
        (Slot::State(mut s), P4::Function(f)) => {
            with_context(f, env, &mut vm.f.extra.aggregate_aux, |c| s.finish(c))?
        }
        (Slot::Empty, P4::Function(f)) => {
            let mut s = make(f)?;
            with_context(f, env, &mut vm.f.extra.aggregate_aux, |c| s.finish(c))?
        }
        (Slot::Value(v), _) => v,
        _ => Value::Null,
    };
    vm.put(i.p2, v);
    Ok(())
}

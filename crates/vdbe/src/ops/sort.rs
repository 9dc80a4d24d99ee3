//! Sorters.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::Vm;
use crate::sorter::Sorter;
use iolite_base::{Code, Result};
use iolite_bytecode::{Insn, P4};
use iolite_value::Value;

fn sorter(vm: &mut Vm, n: i32) -> Result<&mut Sorter> {
    match &mut vm.f.cursors[n as usize] {
        Some(VCursor::Sorter(s)) => Ok(s),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn, env: &dyn Env) {
    let limit = match (i.p3, &vm.f.regs[i.p3 as usize]) {
        (0, _) => None,
        (_, Value::Int(n)) if *n > 0 => usize::try_from(*n).ok().filter(|n| *n < 1 << 20),
        _ => None,
    };
    if let P4::KeyInfo(k) = &i.p4 {
        vm.f.cursors[i.p1 as usize] = Some(VCursor::Sorter(Sorter::new(k.clone(), limit, env.sort_memory())));
    }
}

pub(crate) fn insert(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let Some(VCursor::Sorter(s)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    if s.is_full() {
        if !s.has_file() {
            s.set_file(env.temporary_file()?);
        }
        s.spill()?;
    }
    match &vm.f.regs[i.p2 as usize] {
        Value::Blob(b, _) => s.insert(b),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn sort(vm: &mut Vm, i: &Insn) -> Result<bool> {
    sorter(vm, i.p1)?.sort()
}

pub(crate) fn data(vm: &mut Vm, i: &Insn) -> Result<()> {
    let v = sorter(vm, i.p1)?.record()?;
    vm.put(i.p2, v);
    if let Some(VCursor::Pseudo(p)) = &mut vm.f.cursors[i.p3 as usize] {
        p.cache.reset();
        p.null_row = false;
    }
    Ok(())
}

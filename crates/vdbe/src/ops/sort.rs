//! Sorters.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::Vm;
use crate::sorter::Sorter;
use iolite_base::{Buf, Code, Result};
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

pub(crate) fn reset(vm: &mut Vm, i: &Insn) -> Result<()> {
    sorter(vm, i.p1)?.reset();
    Ok(())
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

/// Whether the key of the sorter's record was the last one's, too.
pub(crate) fn repeats(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    sorter(vm, i.p1)?.repeats(n)
}

pub(crate) fn data(vm: &mut Vm, i: &Insn) -> Result<()> {
    // The register's former record gives its memory.
    let mut buf = match std::mem::take(&mut vm.f.regs[i.p2 as usize]) {
        Value::Blob(b, _) => b.into_buf(),
        _ => Buf::with_capacity(64)?,
    };
    let record = sorter(vm, i.p1)?.record()?;
    buf.reuse_filled(record.len())?.copy_from_slice(record);
    vm.put(i.p2, Value::Blob(buf.into_bytes(), 0));
    if let Some(VCursor::Pseudo(p)) = &mut vm.f.cursors[i.p3 as usize] {
        p.cache.reset();
        p.null_row = false;
    }
    Ok(())
}

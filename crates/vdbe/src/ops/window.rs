//! Instructions on lists of rows for window functions.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::Vm;
use crate::window::Rows;
use iolite_base::{Code, Result};
use iolite_bytecode::{FrameEdge, Insn, P4};
use iolite_value::Value;

fn list(vm: &mut Vm, n: i32) -> Result<&mut Rows> {
    match &mut vm.f.cursors[n as usize] {
        Some(VCursor::Window(w)) => Ok(w),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn add(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let (first, n) = (i.p2 as usize, i.p3 as usize);
    let Some(VCursor::Window(list)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    list.add(&vm.f.regs[first..first + n], env)
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) -> Result<()> {
    let P4::Windows(passes) = &i.p4 else { return Err(Code::Internal.into()) };
    let delivered = usize::try_from(i.p2 - 1).ok();
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Window(Box::new(Rows::new(passes.clone(), delivered))));
    Ok(())
}

pub(crate) fn offsets(vm: &mut Vm, i: &Insn) -> Result<()> {
    let passes = list(vm, i.p1)?.passes();
    let offset = |e: &FrameEdge| match e {
        FrameEdge::Preceding(r) | FrameEdge::Following(r) => vm.f.regs[*r as usize].clone(),
        _ => Value::Null,
    };
    let offsets = passes.iter().map(|p| (offset(&p.start), offset(&p.end))).collect();
    list(vm, i.p1)?.set_offsets(offsets);
    Ok(())
}

/// `false` if too few rows were added yet.
pub(crate) fn run(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<bool> {
    let (whole, list) = (i.p3 != 0, list(vm, i.p1)?);
    if !whole && !list.is_due() {
        return Ok(false);
    }
    list.begin(whole, env)?;
    Ok(true)
}

/// `false` at the end.
pub(crate) fn next(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<bool> {
    let Some(VCursor::Window(list)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    list.next(&mut vm.f.regs[i.p3 as usize..], env)
}

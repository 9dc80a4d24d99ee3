//! Virtual tables.

use crate::cursor::VCursor;
use crate::machine::Vm;
use iolite_base::{Code, Result};
use iolite_bytecode::{Insn, P4};
use iolite_ext::VirtualCursor;
use iolite_value::Value;

/// Takes the cursor out while `f` runs: the table's code may call back.
fn with<T>(
    vm: &mut Vm,
    n: i32,
    f: impl FnOnce(&mut Vm, &mut Box<dyn VirtualCursor>, bool) -> Result<T>,
) -> Result<T> {
    match vm.f.cursors[n as usize].take() {
        Some(VCursor::Virtual { mut cursor, null_row }) => {
            let out = f(vm, &mut cursor, null_row);
            vm.f.cursors[n as usize] = Some(VCursor::Virtual { cursor, null_row });
            out
        }
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) -> Result<()> {
    let P4::VirtualTable(t) = &i.p4 else { return Err(Code::Internal.into()) };
    let cursor = t.open()?;
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Virtual { cursor, null_row: false });
    Ok(())
}

pub(crate) fn filter(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let P4::Name(text) = &i.p4 else { return Err(Code::Internal.into()) };
    if let Some(VCursor::Virtual { null_row, .. }) = &mut vm.f.cursors[i.p1 as usize] {
        *null_row = false;
    }
    let base = i.p3 as usize;
    let (num, n) = (vm.f.regs[base].to_int() as i32, vm.f.regs[base + 1].to_int() as usize);
    with(vm, i.p1, |vm, c, _| {
        c.filter(num, text, &vm.f.regs[base + 2..base + 2 + n])?;
        Ok(!c.eof())
    })
}

pub(crate) fn column(vm: &mut Vm, i: &Insn) -> Result<()> {
    let v = with(vm, i.p1, |_, c, null| if null { Ok(Value::Null) } else { c.column(i.p2 as usize) })?;
    vm.put(i.p3, v);
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

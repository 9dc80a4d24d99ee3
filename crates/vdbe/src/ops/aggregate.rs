//! Aggregates whose state belongs to a register: NULL there means "no row yet".

use crate::env::Env;
use crate::machine::Vm;
use iolite_base::{Code, Result};
use iolite_bytecode::{FunctionCall, Insn, P4};
use iolite_ext::{Aggregate, AuxData, Context, Host, Implementation};
use iolite_value::Value;

/// A fresh state.
pub(crate) fn make(f: &FunctionCall) -> Result<Box<dyn Aggregate>> {
    match &f.function.imp {
        Implementation::Aggregate(make) => Ok(make()),
        _ => Err(Code::Internal.into()),
    }
}

/// Runs `g` with a context for the call.
pub(crate) fn with_context<T>(f: &FunctionCall, env: &dyn Env, g: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let host: &dyn Host = env;
    let mut aux = AuxData::default();
    let mut ctx = Context { host, collation: &f.collation, aux: &mut aux };
    g(&mut ctx)
}

fn call(i: &Insn) -> Result<&FunctionCall> {
    match &i.p4 {
        P4::Function(f) => Ok(f),
        _ => Err(Code::Internal.into()),
    }
}

fn take(vm: &mut Vm, reg: i32, f: &FunctionCall) -> Result<Box<dyn Aggregate>> {
    let known = vm.f.states.remove(&reg);
    match (&vm.f.regs[reg as usize], known) {
        (Value::Int(_), Some(s)) => Ok(s),
        _ => {
            vm.put(reg, Value::Int(1));
            make(f)
        }
    }
}

pub(crate) fn step(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let mut s = take(vm, i.p3, f)?;
    let first = i.p2 as usize;
    let args = &vm.f.regs[first..first + f.args];
    with_context(f, env, |c| s.step(c, args))?;
    if i.p1 != 0 && s.changed() {
        vm.put(i.p1, Value::Int(1));
    }
    vm.f.states.insert(i.p3, s);
    Ok(())
}

pub(crate) fn inverse(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let mut s = take(vm, i.p3, f)?;
    let first = i.p2 as usize;
    let args = &vm.f.regs[first..first + f.args];
    with_context(f, env, |c| s.inverse(c, args))?;
    vm.f.states.insert(i.p3, s);
    Ok(())
}

pub(crate) fn value(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let mut s = take(vm, i.p1, f)?;
    let v = with_context(f, env, |c| s.value(c))?;
    vm.f.states.insert(i.p1, s);
    vm.put(i.p3, v);
    Ok(())
}

pub(crate) fn finish(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let mut s = take(vm, i.p1, f)?;
    let v = with_context(f, env, |c| s.finish(c))?;
    vm.put(i.p1, v);
    Ok(())
}
